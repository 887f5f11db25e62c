/* SPDX-License-Identifier: MIT */
/* Reset of an adapter: TDR-03 to TDR-12, PAG-27, LOCK-33, OFR-15. */
#include "timeout_world.h"

#include <string.h>

enum {
	ACQUIRE_APERTURE = 0x40,
	OVERLAY = 0x100, /* DXGK_ALLOCATIONINFOFLAGS */
	CAPTURE = 0x200,
	STATE_RESET = 2, /* D3DKMT_DEVICEEXECUTION_STATE */
	STATE_HUNG = 3,
};

/* One packet that never ends; returns when the reset is over. */
static void hang_and_recover(struct timeout_world *t)
{
	timeout_hang(t);
	world_submit_use(&t->w.context, t->a);
	timeout_await(t, VIDMM_RECOVERY_RESTARTED, 1);
	client_idle(&t->w.client);
}

/* ---- the order of the calls ---- */

static void with_everything(struct scripted_miniport *m)
{
	m->settings.caps.NumberOfSwizzlingRanges = 4;
	m->settings.context.DmaBufferSegmentSet = WORLD_APERTURE;
	m->settings.paging_segment = 2;
}

static bool is_unmap(const struct scripted_call *call)
{
	return call->in.paging.Operation == DXGK_OPERATION_UNMAP_APERTURE_SEGMENT;
}

struct cleanup {
	uint32_t transfers, unmaps, releases, unmapped_buffers;
};

static void note_cleanup(const struct scripted_call *call, struct cleanup *c)
{
	if (call->ddi == VIDMM_DDI_RELEASE_SWIZZLING_RANGE) {
		c->releases++;
		return;
	}
	assert_int_equal(call->ddi, VIDMM_DDI_BUILD_PAGING_BUFFER);
	if (is_unmap(call)) {
		c->unmaps++;
		c->unmapped_buffers += !call->in.paging.UnmapApertureSegment.hAllocation;
		return;
	}
	assert_int_equal(call->in.paging.Operation, DXGK_OPERATION_TRANSFER);
	assert_int_equal(call->in.paging.Transfer.TransferSize, 0);
	assert_non_null(call->in.paging.Transfer.hAllocation);
	assert_int_equal(call->in.paging.Transfer.Source.SegmentId, 1);
	assert_true((uint64_t)call->in.paging.Transfer.Source.SegmentAddress.QuadPart >=
		    SCRIPTED_MEMORY_BASE);
	c->transfers++;
}

/* Asserts that call number *at of the log is this one, at that IRQL. */
static void expect_call(struct timeout_world *t, uint32_t *at, enum vidmm_ddi ddi)
{
	const struct scripted_call *call = scripted_at(t->w.m, (*at)++);

	assert_non_null(call);
	if (call->ddi != ddi)
		fail_msg("call %u of: %s", *at - 1, scripted_order(t->w.m));
	assert_int_equal(call->irql, PASSIVE_LEVEL);
}

static void tdr_05_pag_27_reset_ddis_come_in_the_documented_order(void **state)
{
	struct timeout_world t;
	struct cleanup c = {0};
	uint32_t at = 0;

	timeout_start(&t, state, with_everything, NULL);
	D3DKMT_HANDLE mapped = world_allocate(&t.w, 64 * KIB, WORLD_APERTURE),
		      seen = world_allocate(&t.w, 64 * KIB, WORLD_MEMORY);
	world_submit_use(&t.w.context, mapped);
	world_submit_use(&t.w.context, seen);
	client_lock(&t.w.device, seen, ACQUIRE_APERTURE);
	timeout_hang(&t);
	world_submit_use(&t.w.context, t.a);
	timeout_await(&t, VIDMM_RECOVERY_RESTARTED, 1);
	/* Render, Patch, SubmitCommand */
	while (scripted_at(t.w.m, at)->ddi != VIDMM_DDI_QUERY_CURRENT_FENCE)
		at++;
	expect_call(&t, &at, VIDMM_DDI_QUERY_CURRENT_FENCE);
	expect_call(&t, &at, VIDMM_DDI_COLLECT_DBG_INFO);
	assert_int_equal(scripted_at(t.w.m, at - 1)->in.debug.Reason, 0x117); /* TDR-03 */
	expect_call(&t, &at, VIDMM_DDI_RESET_FROM_TIMEOUT);
	while (scripted_at(t.w.m, at)->ddi != VIDMM_DDI_RESTART_FROM_TIMEOUT)
		note_cleanup(scripted_at(t.w.m, at++), &c);
	expect_call(&t, &at, VIDMM_DDI_RESTART_FROM_TIMEOUT);
	assert_int_equal(c.transfers, 2); /* a and seen */
	assert_int_equal(c.releases, 1);
	assert_true(c.unmapped_buffers >= 2); /* DMA buffers and the paging buffer */
	assert_int_equal(c.unmaps - c.unmapped_buffers, 1);
	assert_int_equal(client_unlock(&t.w.device, seen), S_OK);
	timeout_stop(&t);
}

static void pag_27_nothing_is_resident_after_a_reset(void **state)
{
	struct timeout_world t;
	struct vidmm_adapter_statistics statistics = {.struct_size = sizeof(statistics)};

	timeout_start(&t, state, NULL, NULL);
	world_submit_use(&t.w.context, world_allocate(&t.w, 64 * KIB, WORLD_APERTURE));
	hang_and_recover(&t);
	vidmm_adapter_check(t.w.client.adapter);
	vidmm_adapter_statistics(t.w.client.adapter, &statistics);
	assert_int_equal(statistics.segment[0].resident_bytes, 0);
	assert_int_equal(statistics.segment[1].resident_bytes, 0);
	assert_int_equal(statistics.mapped_bytes, 0);
	timeout_stop(&t);
}

/*
 * Content-lost notifications that do not fit one paging buffer reuse the same buffer, because they
 * are not executed.
 */
static void with_small_paging_buffer(struct scripted_miniport *m)
{
	m->settings.paging_bytes = 4096;
}

static void pag_27_reset_cleanup_reuses_a_full_paging_buffer(void **state)
{
	struct timeout_world t;

	timeout_start(&t, state, with_small_paging_buffer, NULL);
	for (uint32_t i = 0; i < 120; i++)
		world_submit_use(&t.w.context, world_allocate(&t.w, PAGE_BYTES, WORLD_APERTURE));
	hang_and_recover(&t);
	assert_int_equal(t.w.m->faults, 0);
	timeout_reopen(&t);
	assert_false(timeout_is_lost(&t.w.device, t.a));
	timeout_stop(&t);
}

/* ---- failures ---- */

static void tdr_03_a_failed_collect_dbg_info_does_not_stop_recovery(void **state)
{
	struct timeout_world t;

	timeout_start(&t, state, NULL, NULL);
	scripted_fail(t.w.m, VIDMM_DDI_COLLECT_DBG_INFO, STATUS_NO_MEMORY, 1);
	hang_and_recover(&t);
	assert_int_equal(t.w.fatals, 0);
	timeout_reopen(&t);
	assert_false(timeout_is_lost(&t.w.device, t.a));
	timeout_stop(&t);
}

static void fail_recovery(void **state, enum vidmm_ddi ddi)
{
	struct timeout_world t;

	timeout_start(&t, state, NULL, NULL);
	scripted_fail(t.w.m, ddi, STATUS_UNSUCCESSFUL, 1);
	timeout_hang(&t);
	world_submit_use(&t.w.context, t.a);
	client_idle(&t.w.client);
	world_expect_finding(&t.w, "TDR-08");
	assert_int_equal(t.w.fatals, 1);
	assert_int_equal(t.w.fatal[0], 0x116);
	assert_true(timeout_is_lost(&t.w.device, t.a));
	t.w.expected_fatals = 1;
	timeout_stop(&t);
}

static void tdr_08_a_failed_reset_is_fatal(void **state)
{
	fail_recovery(state, VIDMM_DDI_RESET_FROM_TIMEOUT);
}

static void tdr_08_a_failed_restart_is_fatal(void **state)
{
	fail_recovery(state, VIDMM_DDI_RESTART_FROM_TIMEOUT);
}

/* ---- threads inside the miniport ---- */

struct blocker {
	struct timeout_world *t;
	struct client_context *context;
	_Atomic bool inside, leave;
	_Atomic uint32_t result;
};

static void block_in_render(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	struct blocker *b = context;
	LARGE_INTEGER a_moment = {.QuadPart = -100000};

	(void)m;
	if (call->ddi != VIDMM_DDI_RENDER || call->handle == NULL || atomic_load(&b->leave))
		return;
	atomic_store(&b->inside, true);
	while (!atomic_load(&b->leave))
		KeDelayExecutionThread(KernelMode, FALSE, &a_moment);
}

static void render_and_block(void *argument)
{
	struct blocker *b = argument;

	world_use(b->context, b->t->a);
	atomic_store(&b->result, (uint32_t)client_try_submit(b->context));
}

static struct vidmm_thread *start_blocking(struct timeout_world *t, struct blocker *b,
					   struct client_context *second)
{
	struct vidmm_thread *thread;

	client_context(&t->w.device, 0, second);
	timeout_hang(t);
	world_submit_use(&t->w.context, t->a);
	*b = (struct blocker){.t = t, .context = second};
	t->w.m->hook_context = b;
	t->w.m->hook = block_in_render;
	assert_int_equal(
		vidmm_thread_create(t->w.client.host, "in render", render_and_block, b, &thread),
		0);
	while (!atomic_load(&b->inside))
		vidmm_settle(t->w.client.host);
	return thread;
}

static void tdr_04_a_thread_inside_the_miniport_past_tdrddidelay_is_fatal(void **state)
{
	struct vidmm_tdr_options tdr = timeout_defaults(*(uint32_t *)*state);
	struct client_context second;
	struct timeout_world t;
	struct blocker b;

	if (*(uint32_t *)*state == VIDMM_HOST_LINUX)
		tdr.ddi_delay_ms = 100;
	timeout_start(&t, state, NULL, &tdr);
	struct vidmm_thread *thread = start_blocking(&t, &b, &second);
	/* waiting threads are released although that thread is still inside */
	client_idle(&t.w.client);
	assert_int_equal(t.w.fatals, 1);
	assert_int_equal(t.w.fatal[0], 0x116);
	assert_int_equal(scripted_count(t.w.m, VIDMM_DDI_RESET_FROM_TIMEOUT), 0);
	atomic_store(&b.leave, true);
	vidmm_thread_join(thread);
	t.w.expected_fatals = 1;
	timeout_stop(&t);
}

static void tdr_06_the_reset_waits_until_no_thread_is_inside_the_miniport(void **state)
{
	struct client_context second;
	struct timeout_world t;
	struct blocker b;

	timeout_start(&t, state, NULL, NULL);
	struct vidmm_thread *thread = start_blocking(&t, &b, &second);
	timeout_await(&t, VIDMM_RECOVERY_TIMEOUT, 1);
	/* less than TdrDdiDelay */
	if (t.w.kind == VIDMM_HOST_SIM)
		timeout_pass(&t, 2 * NS_PER_S);
	assert_int_equal(timeout_count(VIDMM_RECOVERY_RESET), 0);
	atomic_store(&b.leave, true);
	vidmm_thread_join(thread);
	timeout_await(&t, VIDMM_RECOVERY_RESTARTED, 1);
	assert_int_equal(t.w.fatals, 0);
	/* the packet that it queued does not run and does not stay queued */
	client_idle(&t.w.client);
	t.w.m->hook = NULL;
	timeout_reopen(&t);
	assert_false(timeout_is_lost(&t.w.device, t.a));
	timeout_stop(&t);
}

/* ---- devices ---- */

/* The execution state of the device; 0: it was not lost. */
static uint64_t lost_as(const struct client_device *device)
{
	uint32_t process = vidmm_process_id(device->process),
		 n = timeout_count(VIDMM_RECOVERY_DEVICE_LOST);

	for (uint32_t i = 0; i < n; i++) {
		struct vidmm_event event = timeout_event(VIDMM_RECOVERY_DEVICE_LOST, i);

		if (event.process == process)
			return event.arg[0];
	}
	return 0;
}

static void expect_removed(struct client_device *device, D3DKMT_HANDLE a)
{
	D3DDDICB_CREATECONTEXT context = {0};
	D3DDDICB_ALLOCATE allocate = {0};
	UINT priority = 1;
	D3DDDICB_SETPRIORITY set = {
		.NumAllocations = 1, .HandleList = &a, .pPriorities = &priority};
	D3DDDICB_OFFERALLOCATIONS offer = {
		.HandleList = &a, .NumAllocations = 1, .Priority = D3DDDI_OFFER_PRIORITY_LOW};
	BOOL discarded = 7;
	D3DDDICB_RECLAIMALLOCATIONS reclaim = {
		.HandleList = &a, .pDiscarded = &discarded, .NumAllocations = 1};

	assert_true(timeout_is_lost(device, a));
	assert_int_equal(device->cb->pfnCreateContextCb(device->handle, &context),
			 D3DDDIERR_DEVICEREMOVED);
	assert_int_equal(device->cb->pfnAllocateCb(device->handle, &allocate),
			 D3DDDIERR_DEVICEREMOVED);
	assert_int_equal(device->cb->pfnSetPriorityCb(device->handle, &set),
			 D3DDDIERR_DEVICEREMOVED);
	assert_int_equal(device->cb->pfnOfferAllocationsCb(device->handle, &offer),
			 D3DDDIERR_DEVICEREMOVED);
	assert_int_equal(device->cb->pfnReclaimAllocationsCb(device->handle, &reclaim),
			 D3DDDIERR_DEVICEREMOVED);
	assert_int_equal(discarded, 7);
}

static void tdr_07_lock_33_ofr_15_every_device_is_lost(void **state)
{
	const struct scripted_allocation spec = {.size_bytes = 64 * KIB,
						 .flags = WORLD_CPU_VISIBLE};
	struct timeout_world t;
	struct client_device other;
	struct client_context others;

	timeout_start(&t, state, NULL, NULL);
	client_open(&t.w.client, &other);
	client_context(&other, 0, &others);
	D3DKMT_HANDLE b = world_allocate_as(&other, &spec);
	world_submit_use(&others, b);
	timeout_hang(&t);
	world_submit_use(&t.w.context, t.a);
	world_submit_use(&others, b);
	timeout_await(&t, VIDMM_RECOVERY_RESTARTED, 1);
	assert_int_equal(lost_as(&t.w.device), STATE_HUNG);
	assert_int_equal(lost_as(&other), STATE_RESET);
	expect_removed(&t.w.device, t.a);
	expect_removed(&other, b);
	world_use(&others, b);
	assert_int_equal(client_try_submit(&others), D3DDDIERR_DEVICEREMOVED);
	/* They can be destroyed piece by piece, and the miniport gets each call. */
	assert_int_equal(client_deallocate(&other, b), S_OK);
	client_context_end(&others);
	client_idle(&t.w.client);
	client_close(&other);
	assert_true(scripted_count(t.w.m, VIDMM_DDI_CLOSE_ALLOCATION) >= 1);
	assert_int_equal(scripted_count(t.w.m, VIDMM_DDI_DESTROY_CONTEXT), 1);
	assert_int_equal(scripted_count(t.w.m, VIDMM_DDI_DESTROY_DEVICE), 1);
	timeout_stop(&t);
}

struct creator {
	struct timeout_world *t;
	struct vidmm_device *device;
	_Atomic bool begun;
	vidmm_status result;
};

static void create_device(void *argument)
{
	struct creator *c = argument;

	atomic_store(&c->begun, true);
	c->result = vidmm_device_create(c->t->w.device.process, c->t->w.client.adapter, &c->device);
}

/*
 * The reset waits for a thread to leave the miniport, and CreateDevice waits for the reset, which
 * does not lose the device: the miniport creates it afterwards.
 */
static void tdr_07_a_device_whose_creation_waits_for_the_reset_is_not_lost(void **state)
{
	const struct scripted_allocation spec = {.size_bytes = 64 * KIB,
						 .flags = WORLD_CPU_VISIBLE};
	struct client_context second;
	struct timeout_world t;
	struct blocker b;

	timeout_start(&t, state, NULL, NULL);
	struct creator c = {.t = &t};
	struct vidmm_thread *thread = start_blocking(&t, &b, &second), *creating;
	timeout_await(&t, VIDMM_RECOVERY_TIMEOUT, 1);
	timeout_pass(&t, 1 * NS_PER_S);
	assert_int_equal(
		vidmm_thread_create(t.w.client.host, "creates", create_device, &c, &creating), 0);
	timeout_pass(&t, 1 * NS_PER_S);
	assert_true(atomic_load(&c.begun));
	assert_int_equal(scripted_count(t.w.m, VIDMM_DDI_CREATE_DEVICE), 0);
	assert_int_equal(timeout_count(VIDMM_RECOVERY_RESET), 0);
	atomic_store(&b.leave, true);
	vidmm_thread_join(thread);
	vidmm_thread_join(creating);
	assert_int_equal(timeout_count(VIDMM_RECOVERY_RESET), 1);
	assert_int_equal(c.result, 0);
	struct client_device device = t.w.device;
	device.device = c.device;
	device.handle = vidmm_device_handle(c.device);
	t.w.m->hook = NULL;
	t.w.m->settings.complete_at_once = true;
	D3DKMT_HANDLE a = world_allocate_as(&device, &spec);
	assert_false(timeout_is_lost(&device, a));
	assert_true(timeout_is_lost(&t.w.device, t.a));
	vidmm_device_destroy(c.device);
	timeout_stop(&t);
}

static void tdr_07_the_same_process_can_create_working_devices(void **state)
{
	const struct scripted_allocation spec = {.size_bytes = 64 * KIB,
						 .flags = WORLD_CPU_VISIBLE};
	struct timeout_world t;
	struct client_context context;

	timeout_start(&t, state, NULL, NULL);
	hang_and_recover(&t);
	struct client_device second = t.w.device;
	t.w.m->settings.complete_at_once = true;
	assert_int_equal(
		vidmm_device_create(t.w.device.process, t.w.client.adapter, &second.device), 0);
	second.handle = vidmm_device_handle(second.device);
	client_context(&second, 0, &context);
	D3DKMT_HANDLE b = world_allocate_as(&second, &spec);
	world_submit_write(&context, b, 64, 0xC0FFEE);
	client_idle(&t.w.client);
	const uint32_t *words = client_lock(&second, b, 0);
	assert_int_equal(words[0], 0); /* zero, not the former content at that address */
	assert_int_equal(words[16], 0xC0FFEE);
	assert_int_equal(client_unlock(&second, b), S_OK);
	assert_true(timeout_is_lost(&t.w.device, t.a));
	vidmm_device_destroy(second.device);
	timeout_stop(&t);
}

/* ---- waiting threads ---- */

struct waiter {
	struct client_device *device;
	D3DKMT_HANDLE allocation;
	_Atomic uint32_t result;
};

static void lock_and_wait(void *argument)
{
	struct waiter *waiter = argument;

	atomic_store(&waiter->result,
		     (uint32_t)client_try_lock(waiter->device, &waiter->allocation, 0, NULL));
}

static void tdr_09_waiting_threads_are_released_by_a_reset(void **state)
{
	struct timeout_world t;
	struct vidmm_thread *thread;

	timeout_start(&t, state, NULL, NULL);
	struct waiter waiter = {.device = &t.w.device, .allocation = t.a};
	timeout_hang(&t);
	world_submit_use(&t.w.context, t.a);
	assert_int_equal(
		vidmm_thread_create(t.w.client.host, "waits", lock_and_wait, &waiter, &thread), 0);
	/*
	 * More packets than the context's pool of DMA buffers: the last ones wait for a buffer and
	 * then fail with the reset.
	 */
	HRESULT result = S_OK;
	for (uint32_t i = 0; i < 40 && result == S_OK; i++) {
		world_use(&t.w.context, t.a);
		result = client_try_submit(&t.w.context);
	}
	assert_int_equal(result, D3DDDIERR_DEVICEREMOVED);
	vidmm_thread_join(thread);
	assert_int_equal(atomic_load(&waiter.result), (uint32_t)D3DDDIERR_DEVICEREMOVED);
	client_context_end(&t.w.context); /* and this no longer waits either */
	timeout_stop(&t);
}

/* As above, but the device is destroyed before the world. */
static void tdr_09_a_reset_ends_the_wait_of_a_device_destruction(void **state)
{
	struct timeout_world t;

	timeout_start(&t, state, NULL, NULL);
	timeout_hang(&t);
	for (uint32_t i = 0; i < 5; i++)
		world_submit_use(&t.w.context, t.a);
	/* nothing has completed; the call returns because of the reset */
	client_close(&t.w.device);
	assert_int_equal(timeout_count(VIDMM_RECOVERY_RESTARTED), 1);
	t.w.m->settings.complete_at_once = true;
	world_stop_adapter(&t.w);
}

static void tdr_09_a_reset_ends_the_wait_of_an_adapter_stop(void **state)
{
	struct timeout_world t;

	timeout_start(&t, state, NULL, NULL);
	timeout_hang(&t);
	world_submit_use(&t.w.context, t.a);
	vidmm_adapter_stop(t.w.client.adapter);
	assert_int_equal(timeout_count(VIDMM_RECOVERY_RESTARTED), 1);
	assert_int_equal(t.w.m->live_devices, 0);
	assert_int_equal(t.w.m->live_allocations, 0);
	vidmm_process_close(t.w.device.process);
	vidmm_host_destroy(t.w.client.host);
	assert_int_equal(t.w.client.findings, 0);
	scripted_destroy(t.w.m);
}

static void tdr_09_late_interrupts_for_old_ids_are_ignored(void **state)
{
	struct timeout_world t;

	timeout_start(&t, state, NULL, NULL);
	timeout_hang(&t);
	world_submit_use(&t.w.context, t.a);
	world_submit_use(&t.w.context, t.a);
	uint32_t first =
		world_nth_of(&t.w, VIDMM_DDI_SUBMIT_COMMAND, false, 0)->in.submit.SubmissionFenceId;
	uint32_t second =
		world_nth_of(&t.w, VIDMM_DDI_SUBMIT_COMMAND, false, 1)->in.submit.SubmissionFenceId;
	timeout_await(&t, VIDMM_RECOVERY_RESTARTED, 1);
	scripted_report(t.w.m, 0, first);
	scripted_report(t.w.m, 0, second);
	assert_int_equal(t.w.fatals, 0);
	assert_int_equal(t.w.client.findings, 0);
	timeout_reopen(&t);
	assert_int_equal((int32_t)(scripted_last(t.w.m, VIDMM_DDI_SUBMIT_COMMAND)
					   ->in.submit.SubmissionFenceId -
				   second) > 0,
			 1); /* fence ids continue */
	scripted_report(t.w.m, 0, first);
	assert_int_equal(t.w.fatals, 0);
	timeout_stop(&t);
}

/*
 * Paging hangs while a thread waits for it with the paging lock held (LKR-01: a locked allocation
 * moves).
 */
static void tdr_09_a_wait_with_the_paging_lock_held_ends_with_the_reset(void **state)
{
	struct timeout_world t;

	timeout_start(&t, state, NULL, NULL);
	uint32_t *words = client_lock(&t.w.device, t.a, 0);
	words[0] = 1;
	timeout_hang(&t);
	world_use(&t.w.context, t.a);
	(void)client_try_submit(&t.w.context);
	timeout_await(&t, VIDMM_RECOVERY_RESTARTED, 1);
	/* node 1, the paging node */
	assert_int_equal(timeout_event(VIDMM_RECOVERY_TIMEOUT, 0).arg[1], 1);
	assert_int_equal(lost_as(&t.w.device), STATE_RESET);
	words[1] = 2; /* TDR-11: the pointer is still valid */
	assert_int_equal(words[1], 2);
	assert_int_equal(client_unlock(&t.w.device, t.a), S_OK);
	client_idle(&t.w.client);
	timeout_reopen(&t);
	assert_false(timeout_is_lost(&t.w.device, t.a));
	timeout_stop(&t);
}

/* ---- content ---- */

static void tdr_11_locks_and_pointers_survive_the_reset(void **state)
{
	struct timeout_world t;

	timeout_start(&t, state, NULL, NULL);
	D3DKMT_HANDLE mapped = world_allocate(&t.w, 64 * KIB, WORLD_APERTURE),
		      other = world_allocate(&t.w, 64 * KIB, 0);
	world_submit_use(&t.w.context, mapped);
	client_idle(&t.w.client);
	uint32_t *in_memory = client_lock(&t.w.device, t.a, 0),
		 *in_aperture = client_lock(&t.w.device, mapped, 0);
	in_memory[3] = 0x11111111;
	in_aperture[3] = 0x22222222;
	timeout_hang(&t);
	world_submit_use(&t.w.context, other);
	timeout_await(&t, VIDMM_RECOVERY_RESTARTED, 1);
	/*
	 * The lock shows system memory instead of the segment: no bytes of other processes, and
	 * other processes do not see these.
	 */
	assert_int_equal(in_memory[3], 0);
	assert_int_equal(in_aperture[3], 0x22222222);
	in_memory[3] = 0x33333333;
	uint32_t word = 0;
	assert_true(scripted_gpu_access(t.w.m, 1, SCRIPTED_MEMORY_BASE + 12, &word, 4, false));
	assert_int_not_equal(word, 0x33333333);
	assert_int_equal(in_memory[3], 0x33333333);
	assert_true(timeout_is_lost(&t.w.device, t.a)); /* no new lock */
	assert_int_equal(client_unlock(&t.w.device, mapped), S_OK);
	assert_int_equal(client_unlock(&t.w.device, t.a), S_OK);
	timeout_stop(&t);
}

/* Stand-ins for the resource handles of the runtime. */
static int runtime[2];

static D3DKMT_HANDLE share_as(struct timeout_world *t, uint32_t index, uint32_t set, uint32_t flags,
			      uint32_t *global)
{
	struct scripted_allocation spec = {
		.size_bytes = 64 * KIB, .flags = flags, .read_set = set, .write_set = set};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec)};
	D3DDDICB_ALLOCATE args = {
		.hResource = &runtime[index], .NumAllocations = 1, .pAllocationInfo = &info};
	struct client_device *device = &t->w.device;

	assert_int_equal(vidmm_resource_set_shared(device->device, &runtime[index]), 0);
	assert_int_equal(device->cb->pfnAllocateCb(device->handle, &args), S_OK);
	assert_int_equal(vidmm_resource_share(device->device, args.hKMResource, global), 0);
	return info.hAllocation;
}

static D3DKMT_HANDLE share(struct timeout_world *t, uint32_t index, uint32_t set, uint32_t *global)
{
	return share_as(t, index, set, WORLD_CPU_VISIBLE, global);
}

static void open_second(struct timeout_world *t, struct client_device *second)
{
	*second = t->w.device;
	t->w.m->settings.complete_at_once = true;
	assert_int_equal(
		vidmm_device_create(t->w.device.process, t->w.client.adapter, &second->device), 0);
	second->handle = vidmm_device_handle(second->device);
}

/*
 * TDR-11: a surviving handle of a new device finds the content that was in system memory; content
 * of video memory is lost.
 */
static void tdr_11_shared_content_in_system_memory_survives(void **state)
{
	struct timeout_world t;
	uint32_t global[2], count = 1;
	D3DKMT_HANDLE resource, opened[2];
	struct client_context context;
	void *data;

	timeout_start(&t, state, NULL, NULL);
	D3DKMT_HANDLE mapped = share(&t, 0, WORLD_APERTURE, &global[0]),
		      lost = share(&t, 1, WORLD_MEMORY, &global[1]);
	world_submit_write(&t.w.context, mapped, 8, 0x5AFE);
	world_submit_write(&t.w.context, lost, 8, 0x1057);
	hang_and_recover(&t);
	struct client_device second;
	open_second(&t, &second);
	client_context(&second, 0, &context);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(vidmm_resource_open(second.device, global[i], &resource,
						     &opened[i], &count),
				 0);
	assert_int_equal(client_try_lock(&second, &opened[0], 0, &data), S_OK);
	assert_int_equal(((const uint32_t *)data)[2], 0x5AFE);
	assert_int_equal(client_unlock(&second, opened[0]), S_OK);
	world_submit_use(&context, opened[0]);
	assert_int_equal((uint32_t)client_try_lock(&second, &opened[1], 0, &data), 0xC0262116);
	world_use(&context, opened[1]);
	assert_int_equal((uint32_t)client_try_submit(&context), 0xC0262116);
	assert_int_equal(t.w.client.findings, 0); /* it is not an error of that device */
	vidmm_device_destroy(second.device);
	timeout_stop(&t);
}

static HRESULT try_offer(struct client_device *device, D3DKMT_HANDLE allocation)
{
	D3DDDICB_OFFERALLOCATIONS args = {.HandleList = &allocation,
					  .NumAllocations = 1,
					  .Priority = D3DDDI_OFFER_PRIORITY_LOW};

	return device->cb->pfnOfferAllocationsCb(device->handle, &args);
}

/* OFR-08 refuses pinned allocations: before the reset it is pinned, afterwards not. */
static void pag_27_pinned_allocations_are_unpinned_by_a_reset(void **state)
{
	const struct scripted_allocation overlay = {.size_bytes = 64 * KIB,
						    .flags = OVERLAY,
						    .read_set = WORLD_MEMORY,
						    .write_set = WORLD_MEMORY};
	struct timeout_world t;
	struct client_device second;
	D3DKMT_HANDLE resource, opened;
	uint32_t global, count = 1, transfers = 0;

	timeout_start(&t, state, NULL, NULL);
	world_allocate_as(&t.w.device, &overlay);
	D3DKMT_HANDLE capture = share_as(&t, 0, WORLD_APERTURE, CAPTURE, &global);
	assert_int_equal(try_offer(&t.w.device, capture), E_INVALIDARG);
	world_expect_finding(&t.w, "OFR-08");
	hang_and_recover(&t);
	for (uint32_t i = 0; i < scripted_count(t.w.m, VIDMM_DDI_BUILD_PAGING_BUFFER); i++)
		transfers += scripted_nth(t.w.m, VIDMM_DDI_BUILD_PAGING_BUFFER, i)
				     ->in.paging.Operation == DXGK_OPERATION_TRANSFER;
	assert_int_equal(transfers, 2); /* of the overlay and of a */
	open_second(&t, &second);
	assert_int_equal(vidmm_resource_open(second.device, global, &resource, &opened, &count), 0);
	assert_int_equal(try_offer(&second, opened), S_OK);
	vidmm_adapter_check(t.w.client.adapter);
	vidmm_device_destroy(second.device);
	timeout_stop(&t);
}

/* ---- packets that never ran ---- */

static void with_cancel(struct scripted_miniport *m)
{
	m->settings.caps.SchedulingCaps.CancelCommandAware = 1;
	m->settings.table.DxgkDdiCancelCommand = scripted_cancel_command;
}

static void tdr_12_queued_packets_of_lost_devices_are_cancelled_once(void **state)
{
	struct timeout_world t;

	timeout_start(&t, state, with_cancel, NULL);
	timeout_hang(&t);
	for (uint32_t i = 0; i < 6; i++)
		world_submit_use(&t.w.context, t.a);
	timeout_await(&t, VIDMM_RECOVERY_RESTARTED, 1);
	client_idle(&t.w.client);
	/* SUB-16; the others are never submitted (TDR-12) */
	assert_int_equal(world_render_submits(&t.w), 2);
	assert_int_equal(scripted_count(t.w.m, VIDMM_DDI_CANCEL_COMMAND), 4);
	for (uint32_t i = 0; i < 4; i++) {
		const struct scripted_call *cancel =
			scripted_nth(t.w.m, VIDMM_DDI_CANCEL_COMMAND, i);
		const DXGKARG_CANCELCOMMAND *args = &cancel->in.cancel;

		assert_int_equal(cancel->irql, PASSIVE_LEVEL);
		assert_int_equal(args->DmaBufferSubmissionStartOffset, 0);
		assert_int_equal(args->DmaBufferSubmissionEndOffset,
				 sizeof(struct scripted_command));
		assert_int_equal(args->AllocationListSize, 1);
		assert_int_equal(args->PatchLocationListSize, 1);
		assert_int_equal(args->PatchLocationListSubmissionLength, 1);
		assert_non_null(args->pDmaBuffer);
		for (uint32_t j = 0; j < i; j++)
			assert_ptr_not_equal(scripted_nth(t.w.m, VIDMM_DDI_CANCEL_COMMAND, j)
						     ->in.cancel.pDmaBuffer,
					     args->pDmaBuffer);
	}
	timeout_stop(&t);
}

static void tdr_12_without_the_capability_no_packet_is_cancelled(void **state)
{
	struct timeout_world t;

	timeout_start(&t, state, NULL, NULL);
	timeout_hang(&t);
	for (uint32_t i = 0; i < 6; i++)
		world_submit_use(&t.w.context, t.a);
	client_idle(&t.w.client);
	assert_int_equal(world_render_submits(&t.w), 2);
	timeout_stop(&t);
}

static void tdr_12_a_failed_cancelcommand_is_fatal(void **state)
{
	struct timeout_world t;

	timeout_start(&t, state, with_cancel, NULL);
	scripted_fail(t.w.m, VIDMM_DDI_CANCEL_COMMAND, STATUS_UNSUCCESSFUL, 1);
	timeout_hang(&t);
	for (uint32_t i = 0; i < 6; i++)
		world_submit_use(&t.w.context, t.a);
	client_idle(&t.w.client);
	world_expect_finding(&t.w, "TDR-12");
	assert_int_equal(t.w.fatals, 1);
	assert_int_equal(t.w.fatal[0], 0x119);
	assert_int_equal(t.w.fatal[1], 0x9);
	assert_int_equal(t.w.fatal[2], (uint32_t)STATUS_UNSUCCESSFUL);
	t.w.expected_fatals = 1;
	timeout_stop(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(tdr_05_pag_27_reset_ddis_come_in_the_documented_order),
		ON_BOTH(pag_27_nothing_is_resident_after_a_reset),
		ON_SIM(pag_27_reset_cleanup_reuses_a_full_paging_buffer),
		ON_BOTH(pag_27_pinned_allocations_are_unpinned_by_a_reset),
		ON_SIM(tdr_03_a_failed_collect_dbg_info_does_not_stop_recovery),
		ON_BOTH(tdr_08_a_failed_reset_is_fatal),
		ON_SIM(tdr_08_a_failed_restart_is_fatal),
		ON_BOTH(tdr_04_a_thread_inside_the_miniport_past_tdrddidelay_is_fatal),
		ON_BOTH(tdr_06_the_reset_waits_until_no_thread_is_inside_the_miniport),
		ON_BOTH(tdr_07_lock_33_ofr_15_every_device_is_lost),
		/* only on the simulator does a test know that the reset has closed the gate */
		ON_SIM(tdr_07_a_device_whose_creation_waits_for_the_reset_is_not_lost),
		ON_BOTH(tdr_07_the_same_process_can_create_working_devices),
		ON_BOTH(tdr_09_waiting_threads_are_released_by_a_reset),
		ON_BOTH(tdr_09_a_reset_ends_the_wait_of_a_device_destruction),
		ON_BOTH(tdr_09_a_reset_ends_the_wait_of_an_adapter_stop),
		ON_SIM(tdr_09_late_interrupts_for_old_ids_are_ignored),
		ON_BOTH(tdr_09_a_wait_with_the_paging_lock_held_ends_with_the_reset),
		ON_BOTH(tdr_11_locks_and_pointers_survive_the_reset),
		ON_BOTH(tdr_11_shared_content_in_system_memory_survives),
		ON_BOTH(tdr_12_queued_packets_of_lost_devices_are_cancelled_once),
		ON_SIM(tdr_12_without_the_capability_no_packet_is_cancelled),
		ON_SIM(tdr_12_a_failed_cancelcommand_is_fatal),
	};

	return cmocka_run_group_tests_name("sched reset", tests, NULL, NULL);
}
