/* SPDX-License-Identifier: MIT */
/*
 * A removed adapter: after a fatal answer of the miniport, whatever the memory manager was doing,
 * every call reports it at once and no thread keeps waiting. All objects can still be destroyed
 * (LOCK-33, OFR-15, PAG-09).
 */
#include "world.h"

#define REMOVED D3DDDIERR_DEVICEREMOVED

static const struct client_options small = {.vram_bytes = 4 * MIB, .aperture_bytes = 16 * MIB};

struct fault {
	int operation;
	bool transfer_out;
	uint32_t after; /* that many operations of the kind still succeed */
	NTSTATUS status;
	uint32_t calls;
};

static bool answer_fault(void *context, DXGKARG_BUILDPAGINGBUFFER *args, NTSTATUS *status)
{
	struct fault *f = context;

	if ((int)args->Operation != f->operation)
		return false;
	if (args->Operation == DXGK_OPERATION_TRANSFER &&
	    f->transfer_out != (args->Transfer.Source.SegmentId != 0))
		return false;
	if (f->calls++ < f->after)
		return false;
	*status = f->status;
	return true;
}

/* All calls that a driver might make; outputs are unchanged. */
static void expect_every_call_removed(struct world *w, D3DKMT_HANDLE a)
{
	const D3DDDI_DEVICECALLBACKS *cb = w->device.cb;
	HANDLE d = w->device.handle;
	struct softgpu_allocation wish = wish_of(PAGE, CPU, 0);
	D3DKMT_HANDLE made = 7;
	UINT priority = D3DDDI_ALLOCATIONPRIORITY_LOW;
	D3DDDI_RESIDENCYSTATUS residency = 9;
	BOOL discarded = 5;
	D3DDDICB_LOCK lock = {.hAllocation = a, .pData = &wish};
	D3DDDICB_OFFERALLOCATIONS offer = {
		.HandleList = &a, .NumAllocations = 1, .Priority = D3DDDI_OFFER_PRIORITY_LOW};
	D3DDDICB_RECLAIMALLOCATIONS reclaim = {
		.HandleList = &a, .NumAllocations = 1, .pDiscarded = &discarded};
	D3DDDICB_SETPRIORITY set = {
		.HandleList = &a, .NumAllocations = 1, .pPriorities = &priority};
	D3DDDICB_QUERYRESIDENCY query = {
		.HandleList = &a, .NumAllocations = 1, .pResidencyStatus = &residency};
	D3DDDICB_CREATECONTEXT context = {.NodeOrdinal = 0};
	struct vidmm_device *device = NULL;

	assert_int_equal(client_try_allocate(&w->device, &wish, NULL, &made, NULL), REMOVED);
	assert_int_equal(made, 0);
	assert_int_equal(cb->pfnLockCb(d, &lock), REMOVED);
	assert_int_equal(lock.hAllocation, a);
	assert_null(lock.pData);
	assert_int_equal(cb->pfnOfferAllocationsCb(d, &offer), REMOVED);
	assert_int_equal(cb->pfnReclaimAllocationsCb(d, &reclaim), REMOVED);
	assert_int_equal(discarded, 5);
	assert_int_equal(cb->pfnSetPriorityCb(d, &set), REMOVED);
	assert_int_equal(cb->pfnQueryResidencyCb(d, &query), REMOVED);
	assert_int_equal(residency, 9);
	assert_int_equal(cb->pfnCreateContextCb(d, &context), REMOVED);
	assert_null(context.hContext);
	assert_int_equal(client_try_submit(&w->context), REMOVED);
	assert_true(vidmm_device_create(w->device.process, w->client.adapter, &device) < 0);
	assert_null(device);
}

/* The calls of a driver that shuts down. */
static void expect_shutdown_works(struct world *w, D3DKMT_HANDLE locked, D3DKMT_HANDLE other)
{
	assert_int_equal(client_unlock(&w->device, locked), S_OK);
	assert_int_equal(client_unlock(&w->device, locked), E_INVALIDARG);
	assert_int_equal(client_deallocate(&w->device, other), S_OK);
	assert_int_equal(client_deallocate(&w->device, other), E_INVALIDARG);
}

/* Various operations until the fault: the GPU uses, moves, maps and drops what the CPU writes. */
static void work_until_removed(struct world *w, D3DKMT_HANDLE *locked, D3DKMT_HANDLE *other)
{
	D3DKMT_HANDLE a[6], mapped = allocate_in(&w->device, PAGE, CPU, APERTURE), big;

	*locked = allocate_in(&w->device, PAGE, CPU, 0);
	client_lock(&w->device, *locked, 0);
	*other = mapped;
	for (int i = 0; i < 6; i++) {
		a[i] = allocate_in(&w->device, MIB, CPU, VRAM);
		if (i % 2)
			client_write(&w->device, a[i], MIB, (uint32_t)i);
	}
	big = allocate_in(&w->device, 7 * MIB, CPU, APERTURE);
	for (int round = 0; round < 12; round++) {
		client_reference(&w->context, a[round % 6], true);
		client_reference(&w->context, mapped, true);
		(void)client_try_submit(&w->context);
		client_reference(&w->context, big, true);
		(void)client_try_submit(&w->context);
		D3DDDICB_OFFERALLOCATIONS offer = {.HandleList = &a[0],
						   .NumAllocations = 1,
						   .Priority = D3DDDI_OFFER_PRIORITY_LOW};
		D3DKMT_HANDLE handle = a[5];
		if (round == 2)
			(void)w->device.cb->pfnOfferAllocationsCb(w->device.handle, &offer);
		if (round == 4)
			(void)client_deallocate(&w->device, big);
		if (client_try_lock(&w->device, &handle, 0, NULL) == S_OK)
			(void)client_unlock(&w->device, handle);
	}
	client_idle(&w->client);
}

static void lock_33_ofr_15_pag_09_a_refused_paging_operation_removes_the_adapter(void **state)
{
	static const struct fault faults[] = {
		{.operation = DXGK_OPERATION_FILL, .status = STATUS_UNSUCCESSFUL},
		{.operation = DXGK_OPERATION_FILL, .after = 2, .status = STATUS_NO_MEMORY},
		{.operation = DXGK_OPERATION_TRANSFER, .status = STATUS_INVALID_PARAMETER},
		{.operation = DXGK_OPERATION_TRANSFER, .after = 2, .status = STATUS_NOT_SUPPORTED},
		{.operation = DXGK_OPERATION_TRANSFER,
		 .transfer_out = true,
		 .status = STATUS_UNSUCCESSFUL},
		{.operation = DXGK_OPERATION_TRANSFER,
		 .transfer_out = true,
		 .after = 1,
		 .status = STATUS_PENDING},
		{.operation = DXGK_OPERATION_MAP_APERTURE_SEGMENT,
		 .after = 1,
		 .status = STATUS_UNSUCCESSFUL},
		{.operation = DXGK_OPERATION_UNMAP_APERTURE_SEGMENT, .status = STATUS_UNSUCCESSFUL},
		/*
		 * Reissued after the answers that were given: the allocation is idle, the buffer
		 * is empty.
		 */
		{.operation = DXGK_OPERATION_TRANSFER, .status = STATUS_GRAPHICS_ALLOCATION_BUSY},
		{.operation = DXGK_OPERATION_FILL, .status = STATUS_GRAPHICS_ALLOCATION_BUSY},
		{.operation = DXGK_OPERATION_FILL,
		 .status = STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER},
	};

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct fault fault = faults[i];
		D3DKMT_HANDLE locked, other;
		struct world w;

		probe_reset();
		world_start(&w, state, &small);
		w.expect_fatal = true;
		probe.context = &fault;
		probe.answer_paging = answer_fault;
		work_until_removed(&w, &locked, &other);
		if (!w.client.fatals)
			fail_msg("fault %zu did not strike", i);
		assert_int_equal(w.client.fatals, 1);
		assert_true(client_found(&w.client, "PAG-09"));
		expect_every_call_removed(&w, other);
		expect_shutdown_works(&w, locked, other);
		client_forget(&w.client);
		world_stop(&w);
	}
}

static bool fail_all(void *context, DXGKARG_BUILDPAGINGBUFFER *args, NTSTATUS *status)
{
	(void)context;
	(void)args;
	*status = STATUS_UNSUCCESSFUL;
	return true;
}

/* The adapter is removed while the GPU works. */
static void remove_adapter(struct world *w)
{
	struct client_context second;

	client_context(&w->device, 1, &second);
	D3DKMT_HANDLE a = client_allocate(&w->device, PAGE, CPU);
	probe.answer_paging = fail_all;
	client_reference(&second, a, true);
	(void)client_try_submit(&second);
	w->expect_fatal = true;
	assert_int_equal(w->client.fatals, 1);
	client_forget(&w->client);
}

static void lock_33_a_waiting_lock_returns_device_removed_at_once(void **state)
{
	struct world w;
	struct helper plain, renaming;
	struct softgpu_allocation limited = wish_of(PAGE, CPU, 0);

	world_start(&w, state, &small);
	limited.renaming_limit = 1;
	D3DKMT_HANDLE a = client_allocate(&w.device, PAGE, CPU),
		      b = allocate_wish(&w.device, &limited);
	use_now(&w, a, true);
	use_now(&w, b, true);
	gate_close(&w);
	client_reference(&w.context, a, true);
	client_reference(&w.context, b, true);
	client_submit(&w.context);
	lock_on_thread(&plain, &w, a, 0);
	lock_on_thread(&renaming, &w, b, DISCARD | NO_EXISTING_REFERENCE);
	remove_adapter(&w);
	helper_join(&plain); /* the gate is still closed */
	helper_join(&renaming);
	assert_int_equal(plain.result, REMOVED);
	assert_int_equal(renaming.result, REMOVED);
	assert_null(plain.data);
	assert_int_equal(renaming.allocation, b);
	expect_every_call_removed(&w, a);
	world_stop(&w);
}

static void lock_33_unprepared_submissions_end_with_the_adapter(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE busy = allocate_in(&w.device, 3 * MIB, CPU, VRAM),
		      next = allocate_in(&w.device, 3 * MIB, CPU, VRAM);
	use_now(&w, busy, true);
	gate_close(&w);
	client_reference(&w.context, busy, true);
	client_submit(&w.context);
	for (int i = 0; i < 5; i++) {
		client_reference(&w.context, next, true); /* must wait for free space */
		client_submit(&w.context);
	}
	probe.answer_paging = fail_all;
	w.expect_fatal = true;
	gate_open(&w); /* now there is space, and paging fails */
	client_idle(&w.client);
	while (!w.client.fatals)
		vidmm_settle(w.client.host);
	client_forget(&w.client);
	expect_every_call_removed(&w, busy);
	world_stop(&w);
}

static void lock_04_a_lock_stays_valid_after_adapter_removal(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE in_vram = allocate_in(&w.device, PAGE, CPU, VRAM),
		      mapped = allocate_in(&w.device, PAGE, CPU, APERTURE);
	use_now(&w, in_vram, true);
	use_now(&w, mapped, true);
	uint32_t *one = client_lock(&w.device, in_vram, 0),
		 *two = client_lock(&w.device, mapped, 0);
	one[0] = two[0] = 4;
	remove_adapter(&w);
	one[1] = one[0] + 1;
	two[1] = two[0] + 1;
	assert_int_equal(one[1] + two[1], 10);
	assert_int_equal(client_unlock(&w.device, in_vram), S_OK);
	assert_int_equal(client_unlock(&w.device, mapped), S_OK);
	world_stop(&w);
}

static void pag_09_a_locked_allocation_whose_move_fails_stays_in_use(void **state)
{
	struct fault fault = {.operation = DXGK_OPERATION_TRANSFER,
			      .transfer_out = true,
			      .status = STATUS_UNSUCCESSFUL};
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_in(&w.device, PAGE, CPU, 0);
	use_now(&w, a, true);
	uint32_t *words = client_lock(&w.device, a, 0);
	words[0] = 1;
	probe.context = &fault;
	probe.answer_paging = answer_fault;
	w.expect_fatal = true;
	client_reference(&w.context, a, true);
	(void)client_try_submit(&w.context);
	assert_int_equal(w.client.fatals, 1);
	client_forget(&w.client);
	/* a store through a mapping that was write-protected does not block forever */
	words[1] = words[0] + 1;
	assert_int_equal(words[1], 2);
	world_stop(&w);
}

static void a_removed_adapter_is_torn_down_with_all_objects_alive(void **state)
{
	static int runtime;
	struct softgpu_allocation wish = wish_of(PAGE, CPU, 0);
	struct client_device other;
	struct world w;
	D3DKMT_HANDLE a, resource, global, theirs;
	uint32_t count = 1;

	world_start(&w, state, &small);
	client_open(&w.client, &other);
	assert_int_equal(vidmm_resource_set_shared(w.device.device, &runtime), 0);
	assert_int_equal(client_try_allocate(&w.device, &wish, &runtime, &a, &resource), S_OK);
	assert_int_equal(vidmm_resource_share(w.device.device, resource, &global), 0);
	assert_int_equal(vidmm_resource_open(other.device, global, &resource, &theirs, &count), 0);
	D3DKMT_HANDLE renamed = client_allocate(&w.device, PAGE, CPU),
		      gone = client_allocate(&w.device, PAGE, CPU);
	use_now(&w, renamed, true);
	assert_int_equal(client_try_lock(&w.device, &renamed, DISCARD, NULL), S_OK);
	gate_close(&w);
	client_reference(&w.context, gone, true);
	client_submit(&w.context);
	assert_int_equal(client_deallocate(&w.device, gone),
			 S_OK); /* waits for the GPU, without end now */
	remove_adapter(&w);
	count = 1;
	assert_true(vidmm_resource_open(other.device, global, &resource, &theirs, &count) < 0);
	assert_true(vidmm_resource_share(w.device.device, resource, &global) < 0);
	assert_true(vidmm_resource_set_shared(w.device.device, &w) < 0);
	client_close(&other);
	world_stop(&w);
}

static void count_excuses(void *context, const struct vidmm_event *event, const char *text)
{
	(void)event;
	if (strstr(text, "was not asked to end its objects") && strstr(text, "never freed"))
		atomic_fetch_add((_Atomic uint32_t *)context, 1);
}

/* A finding would blame the miniport; the fixture accepts none. */
static void nt_06_a_removed_miniport_is_not_blamed_for_leaked_memory(void **state)
{
	struct world w;
	_Atomic uint32_t excuses = 0;

	world_start(&w, state, &small);
	client_allocate(&w.device, PAGE, CPU);
	assert_int_not_equal(
		vidmm_subscribe(w.client.host, 1ull << VIDMM_EVENT_REASON, count_excuses, &excuses),
		0);
	remove_adapter(&w);
	world_stop(&w);
	assert_int_equal(excuses, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(nt_06_a_removed_miniport_is_not_blamed_for_leaked_memory),
		BOTH(lock_33_ofr_15_pag_09_a_refused_paging_operation_removes_the_adapter),
		BOTH(lock_33_a_waiting_lock_returns_device_removed_at_once),
		BOTH(lock_33_unprepared_submissions_end_with_the_adapter),
		BOTH(lock_04_a_lock_stays_valid_after_adapter_removal),
		BOTH(pag_09_a_locked_allocation_whose_move_fails_stays_in_use),
		BOTH(a_removed_adapter_is_torn_down_with_all_objects_alive),
	};

	return cmocka_run_group_tests_name("removed", tests, NULL, NULL);
}
