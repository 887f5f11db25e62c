/* SPDX-License-Identifier: MIT */
/*
 * REN and REF: which instance a lock with Discard returns, and which instances a submission may
 * still reference.
 */
#include "world.h"

#define INVALID_INSTANCE ((HRESULT)0xC0262113)

static D3DKMT_HANDLE allocate_limited(struct world *w, uint32_t limit)
{
	struct softgpu_allocation wish = wish_of(PAGE, CPU, 0);

	wish.renaming_limit = limit;
	return allocate_wish(&w->device, &wish);
}

/* Locks with Discard, writes, unlocks; returns the instance's handle. */
static D3DKMT_HANDLE discard(struct world *w, D3DKMT_HANDLE a, uint32_t pattern)
{
	void *data;

	assert_int_equal(client_try_lock(&w->device, &a, DISCARD, &data), S_OK);
	for (uint32_t i = 0; i < PAGE / 4; i++)
		((uint32_t *)data)[i] = pattern;
	assert_int_equal(client_unlock(&w->device, a), S_OK);
	return a;
}

static void submit_use(struct world *w, D3DKMT_HANDLE a)
{
	client_reference(&w->context, a, false);
	client_submit(&w->context);
}

static void ren_01_a_busy_allocation_gets_another_instance(void **state)
{
	struct world w;
	void *old, *new;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a0 = client_allocate(&w.device, PAGE, CPU), a1 = a0;

	old = client_lock(&w.device, a0, 0);
	assert_int_equal(client_unlock(&w.device, a0), S_OK);
	gate_close(&w);
	submit_use(&w, a0);
	assert_int_equal(client_try_lock(&w.device, &a1, DISCARD, &new), S_OK);
	assert_int_not_equal(a1, a0);
	assert_ptr_not_equal(old, new);
	assert_int_equal(client_unlock(&w.device, a1), S_OK);
	assert_int_equal(client_unlock(&w.device, a0),
			 E_INVALIDARG); /* the lock is one of the new instance */
	client_forget(&w.client);
	world_stop(&w);
}

static void ren_02_an_idle_current_instance_is_not_handed_out_again(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a0 = client_allocate(&w.device, PAGE, CPU),
		      out = client_allocate(&w.device, PAGE, CPU);

	client_write(&w.device, a0, PAGE, 0x0A000000);
	client_copy(&w.context, a0, out, PAGE); /* in the command buffer, not submitted yet */
	D3DKMT_HANDLE a1 = discard(&w, a0, 0xB1B1B1B1);
	assert_int_not_equal(a1, a0);
	client_submit(&w.context);
	client_expect(&w.device, out, PAGE,
		      0x0A000000); /* the GPU read the content at the time of recording */
	world_stop(&w);
}

static void ren_02_the_handle_may_stay_with_noexistingreference(void **state)
{
	struct world w;
	D3DKMT_HANDLE seen[4];

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = client_allocate(&w.device, PAGE, CPU);

	for (int i = 0; i < 4; i++) {
		seen[i] = i ? seen[i - 1] : a;
		assert_int_equal(
			client_try_lock(&w.device, &seen[i], DISCARD | NO_EXISTING_REFERENCE, NULL),
			S_OK);
		assert_int_equal(client_unlock(&w.device, seen[i]), S_OK);
	}
	assert_int_equal(world_statistics(&w).instances,
			 2); /* the gate and this one: no further instance was needed */
	world_stop(&w);
}

static void ren_03_the_gpu_keeps_the_content_of_the_old_instance(void **state)
{
	struct world w;
	void *data;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a0 = client_allocate(&w.device, PAGE, CPU), a1 = a0;
	D3DKMT_HANDLE out = client_allocate(&w.device, PAGE, CPU);

	client_write(&w.device, a0, PAGE, 0x03000000);
	gate_close(&w);
	client_copy(&w.context, a0, out, PAGE);
	client_submit(&w.context);
	assert_int_equal(client_try_lock(&w.device, &a1, DISCARD, &data), S_OK); /* does not wait */
	memset(data, 0xEE, PAGE);
	assert_int_equal(client_unlock(&w.device, a1), S_OK);
	gate_open(&w);
	client_expect(&w.device, out, PAGE, 0x03000000);
	world_stop(&w);
}

static void ren_04_ref_09_new_instances_share_one_miniport_allocation(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = client_allocate(&w.device, PAGE, CPU);
	HANDLE open = NULL;

	for (int i = 0; i < 5; i++) {
		a = discard(&w, a, 1);
		gate_close(&w);
		submit_use(&w, a);
		const struct probe_call *call = probe_find(PROBE_RENDER, (uint32_t)i);
		assert_non_null(call);
		if (open)
			assert_ptr_equal(call->list[1].hDeviceSpecificAllocation, open);
		open = call->list[1].hDeviceSpecificAllocation;
		gate_open(&w);
	}
	assert_int_equal(probe_count(PROBE_CREATE), 1);
	assert_int_equal(probe_count(PROBE_OPEN), 1);
	world_stop(&w);
}

static void ren_05_instances_are_resident_at_different_addresses(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a0 = client_allocate(&w.device, PAGE, CPU);
	HANDLE kmd = probe_last_created();

	gate_close(&w);
	submit_use(&w, a0);
	D3DKMT_HANDLE a1 = discard(&w, a0, 1);
	submit_use(&w, a1);
	assert_int_equal(client_residency(&w.device, a0), IN_VRAM);
	assert_int_equal(client_residency(&w.device, a1), IN_VRAM);
	gate_open(&w);
	client_idle(&w.client);
	const struct probe_call *first = probe_find_paging(DXGK_OPERATION_FILL, kmd, 0);
	const struct probe_call *second = probe_find_paging(DXGK_OPERATION_TRANSFER, kmd, 0);
	assert_non_null(first);
	assert_non_null(second);
	assert_true(first->paging.Fill.Destination.SegmentAddress.QuadPart !=
		    second->paging.Transfer.Destination.SegmentAddress.QuadPart);
	assert_int_equal(probe_paging_count(-1, kmd), 2);
	world_stop(&w);
}

static void ren_06_discards_cycle_through_a_bounded_list(void **state)
{
	struct world w;
	D3DKMT_HANDLE seen[8];
	uint32_t distinct = 0;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = client_allocate(&w.device, PAGE, CPU);

	for (int i = 0; i < 60; i++) {
		a = discard(&w, a, (uint32_t)i);
		use_now(&w, a, false);
		uint32_t n = 0;
		while (n < distinct && seen[n] != a)
			n++;
		if (n == distinct) {
			assert_true(distinct < 8);
			seen[distinct++] = a;
		}
	}
	/*
	 * Each is used and idle before the next discard: two would suffice, the first superseded
	 * one makes it three.
	 */
	assert_true(distinct <= 3);
	world_stop(&w);
}

static void ren_07_the_limit_counts_the_current_instance(void **state)
{
	struct world w;
	D3DKMT_HANDLE a[4];

	world_start(&w, state, NULL);
	a[0] = allocate_limited(&w, 3);
	gate_close(&w);
	submit_use(&w, a[0]);
	for (int i = 1; i < 3; i++) {
		a[i] = discard(&w, a[i - 1], 7);
		assert_int_not_equal(a[i], a[i - 1]);
		submit_use(&w, a[i]);
	}
	assert_int_not_equal(a[2], a[0]);
	assert_int_equal(world_statistics(&w).instances, 4);
	struct helper h;
	lock_on_thread(&h, &w, a[2], DISCARD); /* waits for one of the three */
	gate_open(&w);
	helper_join(&h);
	assert_int_equal(h.result, S_OK);
	assert_true(h.gate_was_open);
	assert_int_equal(h.allocation, a[0]); /* the instance that was superseded first */
	assert_int_equal(world_statistics(&w).instances, 4);
	world_stop(&w);
}

static void ren_08_without_a_limit_every_busy_discard_gets_memory(void **state)
{
	enum { COUNT = 32 };
	struct world w;
	D3DKMT_HANDLE a[COUNT + 1];

	world_start(&w, state, NULL);
	a[0] = client_allocate(&w.device, PAGE, CPU);
	gate_close(&w);
	submit_use(&w, a[0]);
	for (int i = 1; i <= COUNT; i++) {
		a[i] = discard(&w, a[i - 1], (uint32_t)i);
		for (int j = 0; j < i; j++)
			assert_int_not_equal(a[i], a[j]);
		if (i < 8)
			submit_use(&w, a[i]);
	}
	world_stop(&w);
}

/*
 * Less than a sixteenth of system memory is left: a discard waits for an instance, as with a limit.
 */
static void ren_08_with_little_system_memory_the_pool_does_not_grow(void **state)
{
	const struct client_options options = {.vram_bytes = 16 * MIB,
					       .system_memory_bytes = 16 * MIB};
	struct helper h;
	struct world w;

	world_start(&w, state, &options);
	uint64_t others = world_statistics(&w).instances;
	D3DKMT_HANDLE a = allocate_in(&w.device, 256 * KIB, CPU, VRAM);
	for (uint32_t i = 0; i < 4; i++) {
		use_now(&w, a, true);
		a = discard(&w, a, i);
	}
	use_now(&w, a, true);
	uint64_t pool = world_statistics(&w).instances - others;
	D3DKMT_HANDLE last = lock_all_system_memory(&w, 512 * KIB);
	/* DMA buffers need some. */
	assert_int_equal(client_unlock(&w.device, last), S_OK);
	assert_int_equal(client_deallocate(&w.device, last), S_OK);
	uint64_t instances = world_statistics(&w).instances;
	gate_close(&w);
	for (uint32_t i = 1; i < pool; i++) {
		submit_use(&w, a);
		a = discard(&w, a, i);
	}
	submit_use(&w, a);
	lock_on_thread(&h, &w, a, DISCARD);
	gate_open(&w);
	helper_join(&h);
	assert_int_equal(h.result, S_OK);
	assert_true(h.gate_was_open);
	assert_int_equal(world_statistics(&w).instances, instances);
	world_stop(&w);
}

static void ren_09_under_pressure_retired_instances_are_freed_without_a_copy(void **state)
{
	struct world w;
	void *data;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a0 = allocate_in(&w.device, PAGE, CPU, VRAM);
	HANDLE kmd = probe_last_created();
	use_now(&w, a0, true);
	D3DKMT_HANDLE a1 = discard(&w, a0, 0x0909), a2;
	use_now(&w, a1, true);        /* retires a0; both are in video memory */
	a2 = discard(&w, a1, 0x0A0A); /* superseded, not retired: a buffer may reference a1 */
	assert_int_equal(a2, a0);
	a2 = discard(&w, a2, 0x0B0B);
	use_now(&w, a2, true);
	uint64_t instances = world_statistics(&w).instances;
	probe_forget();
	evict_by_pressure(&w, a2);
	/* The newest instance keeps its content; retired ones do not. */
	assert_int_equal(probe_paging_count(DXGK_OPERATION_TRANSFER, kmd), 1);
	assert_true(probe_paging_count(DXGK_OPERATION_DISCARD_CONTENT, kmd) >= 1);
	const uint32_t *words = client_lock(&w.device, a2, READ_ONLY);
	assert_int_equal(words[0], 0x0B0B);
	assert_int_equal(client_unlock(&w.device, a2), S_OK);
	/* Their memory is freed, but the instances exist. */
	D3DKMT_HANDLE next = a2;
	assert_int_equal(client_try_lock(&w.device, &next, DISCARD, &data), S_OK);
	assert_int_not_equal(next, a2);
	assert_int_equal(client_unlock(&w.device, next), S_OK);
	assert_true(world_statistics(&w).instances == instances);
	world_stop(&w);
}

/*
 * A command buffer may reference an instance that no newer one has retired: it is evicted with its
 * content. An instance in use by the GPU is not evicted.
 */
static void ren_09_instances_not_yet_retired_keep_their_content(void **state)
{
	struct client_options options = {.vram_bytes = 4 * MIB};
	struct world w;

	world_start(&w, state, &options);
	D3DKMT_HANDLE a0 = allocate_in(&w.device, PAGE, CPU, VRAM),
		      out = allocate_in(&w.device, PAGE, CPU, APERTURE);
	HANDLE kmd = probe_find(PROBE_CREATE, 0)->object;

	client_write(&w.device, a0, PAGE, 0x0900);
	use_now(&w, a0, false);
	D3DKMT_HANDLE a1 = discard(&w, a0, 0x0901); /* superseded, and not retired */
	probe_forget();
	evict_by_pressure(&w, a0);
	assert_int_equal(probe_paging_count(DXGK_OPERATION_TRANSFER, kmd), 1);
	assert_int_equal(probe_paging_count(DXGK_OPERATION_DISCARD_CONTENT, kmd), 0);
	client_copy(&w.context, a0, out, PAGE);
	client_submit(&w.context);
	client_expect(&w.device, out, PAGE, 0x0900);
	/* Retired, and busy. */
	gate_close(&w);
	client_reference(&w.context, a0, false);
	client_reference(&w.context, a1, false);
	client_submit(&w.context);
	D3DKMT_HANDLE large = allocate_in(&w.device, 4 * MIB, 0, VRAM);
	client_reference(&w.context, large, false);
	client_submit(&w.context);
	for (int i = 0; i < 20; i++)
		vidmm_settle(w.client.host);
	assert_int_equal(client_residency(&w.device, large), EVICTED);
	assert_int_equal(client_residency(&w.device, a1), IN_VRAM);
	gate_open(&w);
	client_idle(&w.client);
	assert_int_equal(client_residency(&w.device, large), IN_VRAM);
	world_stop(&w);
}

static void ren_10_ref_10_with_a_full_list_discard_waits_for_a_retired_instance(void **state)
{
	struct world w;
	struct helper h;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a0 = allocate_limited(&w, 2);

	gate_close(&w);
	submit_use(&w, a0);
	D3DKMT_HANDLE a1 = discard(&w, a0, 1);
	submit_use(&w, a1); /* retires a0, which is busy */
	lock_on_thread(&h, &w, a1, DISCARD);
	assert_int_equal(atomic_load(&h.state), 1);
	gate_open(&w);
	helper_join(&h);
	assert_true(h.gate_was_open);
	assert_int_equal(h.result, S_OK);
	assert_int_equal(h.allocation, a0);
	world_stop(&w);
}

static void expect_no_instance(struct world *w, D3DKMT_HANDLE a)
{
	D3DKMT_HANDLE handle = a;
	void *data = &handle;

	assert_int_equal(client_try_lock(&w->device, &handle, DISCARD, &data),
			 D3DERR_WASSTILLDRAWING);
	assert_int_equal(handle, a);
	assert_null(data);
	assert_int_equal(w->client.findings, 0); /* no rule was broken */
}

static void ren_11_without_a_retired_instance_discard_fails_at_once(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE one = allocate_limited(&w, 1), two = allocate_limited(&w, 2);

	expect_no_instance(&w, one); /* idle */
	gate_close(&w);
	client_reference(&w.context, one, false);
	client_reference(&w.context, two, false);
	client_submit(&w.context);
	expect_no_instance(&w, one); /* busy */
	D3DKMT_HANDLE handed_out = discard(&w, two, 2);
	expect_no_instance(
		&w, handed_out); /* two is busy and not retired: its successor was never used */
	client_lock(&w.device, handed_out, 0);
	assert_int_equal(client_unlock(&w.device, handed_out), S_OK);
	world_stop(&w);
}

static void ren_12_ref_08_noexistingreference_may_reuse_any_instance(void **state)
{
	struct world w;
	struct helper h;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = allocate_limited(&w, 1), handle = a;

	expect_no_instance(&w, a);
	use_now(&w, a, false); /* the flush */
	assert_int_equal(client_try_lock(&w.device, &handle, DISCARD | NO_EXISTING_REFERENCE, NULL),
			 S_OK);
	assert_int_equal(handle, a);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	gate_close(&w);
	submit_use(&w, a);
	/* busy: the lock waits for it */
	lock_on_thread(&h, &w, a, DISCARD | NO_EXISTING_REFERENCE);
	assert_int_equal(atomic_load(&h.state), 1);
	gate_open(&w);
	helper_join(&h);
	assert_true(h.gate_was_open);
	assert_int_equal(h.result, S_OK);
	assert_int_equal(h.allocation, a);
	world_stop(&w);
}

/*
 * An idle allocation with one instance keeps it, and its lock word. While that instance is locked
 * Discard creates another one; after that NoExistingReference cycles through both.
 */
static void ren_12_a_single_instance_is_reused_only_while_it_is_not_locked(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = client_allocate(&w.device, PAGE, CPU), handle = a;
	uint32_t *first = client_lock(&w.device, a, 0), *again;

	assert_int_equal(client_unlock(&w.device, a), S_OK);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(client_try_lock(&w.device, &handle,
						 DISCARD | NO_EXISTING_REFERENCE, (void **)&again),
				 S_OK);
		assert_int_equal(handle, a);
		assert_ptr_equal(again, first);
		assert_int_equal(client_unlock(&w.device, a), S_OK);
	}
	client_lock(&w.device, a, 0);
	assert_int_equal(client_try_lock(&w.device, &handle, DISCARD | NO_EXISTING_REFERENCE, NULL),
			 S_OK);
	assert_int_not_equal(handle, a);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_int_equal(client_unlock(&w.device, handle), S_OK);
	D3DKMT_HANDLE other = handle;
	assert_int_equal(client_try_lock(&w.device, &handle, DISCARD | NO_EXISTING_REFERENCE, NULL),
			 S_OK);
	assert_int_equal(handle, a);
	assert_int_equal(client_unlock(&w.device, handle), S_OK);
	assert_int_equal(client_try_lock(&w.device, &handle, DISCARD | NO_EXISTING_REFERENCE, NULL),
			 S_OK);
	assert_int_equal(handle, other);
	assert_int_equal(client_unlock(&w.device, handle), S_OK);
	world_stop(&w);
}

static void ren_13_noexistingreference_alone_changes_nothing(void **state)
{
	struct world w;
	struct helper h;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = client_allocate(&w.device, PAGE, CPU);

	gate_close(&w);
	submit_use(&w, a);
	expect_lock_refused(&w, a, NO_EXISTING_REFERENCE | DONOT_WAIT, D3DERR_WASSTILLDRAWING,
			    NULL);
	lock_on_thread(&h, &w, a, NO_EXISTING_REFERENCE);
	gate_open(&w);
	helper_join(&h);
	assert_true(h.gate_was_open);
	assert_int_equal(h.allocation, a);
	world_stop(&w);
}

static void ren_15_writes_after_a_discard_reach_the_gpu(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = client_allocate(&w.device, PAGE, CPU),
		      out = client_allocate(&w.device, PAGE, CPU);

	for (uint32_t i = 0; i < 20; i++) {
		a = discard(&w, a, 0x1000 + i);
		client_copy(&w.context, a, out, PAGE);
		client_submit(&w.context);
		const uint32_t *words = client_lock(&w.device, out, READ_ONLY);
		assert_int_equal(words[0], 0x1000 + i);
		assert_int_equal(words[PAGE / 4 - 1], 0x1000 + i);
		assert_int_equal(client_unlock(&w.device, out), S_OK);
	}
	world_stop(&w);
}

static void ren_21_without_discard_the_handle_never_changes(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = client_allocate(&w.device, PAGE, CPU), handle = a;

	gate_close(&w);
	submit_use(&w, a);
	expect_lock_refused(&w, a, DONOT_WAIT, D3DERR_WASSTILLDRAWING,
			    NULL); /* the signal for the driver to rename by itself */
	gate_open(&w);
	client_idle(&w.client);
	assert_int_equal(client_try_lock(&w.device, &handle, DONOT_WAIT, NULL), S_OK);
	assert_int_equal(handle, a);
	assert_int_equal(world_statistics(&w).instances, 2);
	world_stop(&w);
}

static void lock_26_a_retired_instance_cannot_be_locked(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a0 = client_allocate(&w.device, PAGE, CPU), a1 = discard(&w, a0, 1);

	use_now(&w, a1, false);
	expect_lock_refused(&w, a0, 0, E_INVALIDARG, "LOCK-26");
	expect_lock_refused(&w, a0, DISCARD, E_INVALIDARG, "LOCK-26");
	client_lock(&w.device, a1, 0);
	assert_int_equal(client_unlock(&w.device, a1), S_OK);
	world_stop(&w);
}

static void set_out_of_order_lock(void *context, DXGK_DRIVERCAPS *caps)
{
	(void)context;
	caps->MemoryManagementCaps.OutOfOrderLock = 1;
}

static void ren_19_ref_12_an_older_instance_is_locked_only_with_outoforderlock(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a0 = client_allocate(&w.device, PAGE, CPU);
	discard(&w, a0, 1);
	expect_lock_refused(&w, a0, 0, E_INVALIDARG, "REN-19");
	world_stop(&w);

	probe.edit_caps = set_out_of_order_lock;
	world_start(&w, state, NULL);
	a0 = client_allocate(&w.device, PAGE, CPU);
	client_write(&w.device, a0, PAGE, 0x190);
	D3DKMT_HANDLE a1 = discard(&w, a0, 1);
	client_expect(&w.device, a0, PAGE, 0x190);
	use_now(&w, a1, false);
	/* retired: refused with the capability as well */
	expect_lock_refused(&w, a0, 0, E_INVALIDARG, "LOCK-26");
	world_stop(&w);
}

static void ren_20_any_live_handle_destroys_all_instances(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	for (uint32_t which = 0; which < 3; which++) {
		D3DKMT_HANDLE a[3] = {client_allocate(&w.device, PAGE, CPU)};

		a[1] = discard(&w, a[0], 1);
		a[2] = discard(&w, a[1], 2);
		gate_close(&w);
		submit_use(&w, a[0]);
		assert_int_equal(world_statistics(&w).instances, 4);
		assert_int_equal(client_deallocate(&w.device, a[which]), S_OK);
		for (int i = 0; i < 3; i++)
			expect_lock_refused(&w, a[i], 0, E_INVALIDARG, "LOCK-31");
		assert_int_equal(world_statistics(&w).instances,
				 4); /* the GPU still uses the first one */
		gate_open(&w);
		client_idle(&w.client);
		while (world_statistics(&w).allocations != 1)
			vidmm_settle(w.client.host);
		assert_int_equal(world_statistics(&w).instances, 1);
	}
	world_stop(&w);
}

static void ren_20_a_deallocation_may_list_two_instances(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a[2] = {client_allocate(&w.device, PAGE, CPU)};

	a[1] = discard(&w, a[0], 1);
	D3DDDICB_DEALLOCATE args = {.NumAllocations = 2, .HandleList = a};
	assert_int_equal(w.device.cb->pfnDeallocateCb(w.device.handle, &args), S_OK);
	assert_int_equal(world_statistics(&w).instances, 1);
	world_stop(&w);
}

static void ren_23_ref_01_the_old_handle_is_valid_until_the_new_one_is_used(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a0 = client_allocate(&w.device, PAGE, CPU), a1 = discard(&w, a0, 1);

	use_now(&w, a0, false);
	use_now(&w, a0, false);
	use_now(&w, a1, false);
	client_reference(&w.context, a0, false);
	assert_int_equal(client_try_submit(&w.context), INVALID_INSTANCE);
	assert_true(client_found(&w.client, "REN-16"));
	client_forget(&w.client);
	world_stop(&w);
}

static void ren_16_ref_02_a_used_instance_retires_the_older_ones(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a0 = client_allocate(&w.device, PAGE, CPU), a1 = discard(&w, a0, 1),
		      a2 = discard(&w, a1, 2);

	use_now(&w, a2, false);
	for (int i = 0; i < 2; i++) {
		client_forget(&w.client);
		client_reference(&w.context, i ? a1 : a0, false);
		assert_int_equal(client_try_submit(&w.context), INVALID_INSTANCE);
		assert_true(client_found(&w.client, "REN-16"));
	}
	client_forget(&w.client);
	use_now(&w, a2, false);
	world_stop(&w);
}

static HRESULT submit_in_order(struct client_context *context, const D3DKMT_HANDLE *order,
			       uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		client_reference(context, order[i], false);
	return client_try_submit(context);
}

static void ren_17_ref_03_ref_04_an_older_instance_after_a_newer_one_is_refused(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a0 = client_allocate(&w.device, PAGE, CPU), a1 = discard(&w, a0, 1),
		      a2 = discard(&w, a1, 2);
	const D3DKMT_HANDLE bad[][4] = {
		{a1, a0, a2, a2}, {a0, a1, a0, a2}, {a2, a2, a0, a1}, {a0, a2, a1, a2}};
	const D3DKMT_HANDLE good[] = {a0, a0, a1, a1, a2};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		client_forget(&w.client);
		assert_int_equal(submit_in_order(&w.context, bad[i], 4), INVALID_INSTANCE);
		assert_true(client_found(&w.client, "REF-03"));
	}
	client_forget(&w.client);
	client_idle(&w.client);
	assert_int_equal(probe_count(PROBE_SUBMIT),
			 0); /* nothing was submitted, no instance has changed */
	client_lock(&w.device, a2, DONOT_WAIT);
	assert_int_equal(client_unlock(&w.device, a2), S_OK);
	assert_int_equal(submit_in_order(&w.context, good, 5), S_OK);
	/* Now a2 has been used. */
	assert_int_equal(submit_in_order(&w.context, good + 1, 1), INVALID_INSTANCE);
	client_forget(&w.client);
	world_stop(&w);
}

static void ref_05_instance_order_holds_across_contexts_of_a_device(void **state)
{
	struct world w;
	struct client_context second;

	world_start(&w, state, NULL);
	client_context(&w.device, 0, &second);
	D3DKMT_HANDLE a0 = client_allocate(&w.device, PAGE, CPU), a1 = discard(&w, a0, 1);

	use_now(&w, a1, false);
	client_reference(&second, a0, false);
	assert_int_equal(client_try_submit(&second), INVALID_INSTANCE);
	client_forget(&w.client);
	client_context_end(&second);
	world_stop(&w);
}

static HRESULT submit_donotretire(struct world *w, D3DKMT_HANDLE kept, D3DKMT_HANDLE other)
{
	client_reference(&w->context, kept, false);
	w->context.c.pAllocationList[0].DoNotRetireInstance = 1;
	if (other)
		client_reference(&w->context, other, false);
	return client_try_submit(&w->context);
}

static void ren_18_ref_06_donotretireinstance_allows_one_more_buffer(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a0 = client_allocate(&w.device, PAGE, CPU), a1 = discard(&w, a0, 1);

	assert_int_equal(submit_donotretire(&w, a0, a1), S_OK);
	assert_int_equal(submit_donotretire(&w, a0, 0), S_OK); /* again with the flag */
	use_now(&w, a0, false);                                /* without it: the last use */
	client_reference(&w.context, a0, false);
	assert_int_equal(client_try_submit(&w.context), INVALID_INSTANCE);
	assert_true(client_found(&w.client, "REN-16"));
	client_forget(&w.client);
	use_now(&w, a1, false);
	world_stop(&w);
}

static void ref_06_the_next_use_of_a_newer_instance_retires_the_older(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a0 = client_allocate(&w.device, PAGE, CPU), a1 = discard(&w, a0, 1);

	assert_int_equal(submit_donotretire(&w, a0, a1), S_OK);
	use_now(&w, a1, false);
	client_reference(&w.context, a0, false);
	assert_int_equal(client_try_submit(&w.context), INVALID_INSTANCE);
	client_forget(&w.client);
	/*
	 * As long as no newer instance is used, the flag has no effect, and its absence retires
	 * nothing.
	 */
	D3DKMT_HANDLE b0 = client_allocate(&w.device, PAGE, CPU), b1 = discard(&w, b0, 1);
	assert_int_equal(submit_donotretire(&w, b0, 0), S_OK);
	use_now(&w, b0, false);
	use_now(&w, b0, false);
	use_now(&w, b1, false);
	world_stop(&w);
}

static void ref_07_retired_instances_become_reusable_under_any_discard_rate(void **state)
{
	struct world w;
	uint64_t most = 0;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = client_allocate(&w.device, PAGE, CPU);

	for (uint32_t i = 0; i < 10000; i++) {
		void *data;

		assert_int_equal(client_try_lock(&w.device, &a, DISCARD, &data), S_OK);
		*(uint32_t *)data = i;
		assert_int_equal(client_unlock(&w.device, a), S_OK);
		submit_use(&w, a);
		if (i % 100 == 0 && world_statistics(&w).instances > most)
			most = world_statistics(&w).instances;
	}
	assert_true(most <=
		    /*
		 * at most 16 DMA buffers are in flight; the rest have not been seen by the DPC yet
		 */
		    64);
	world_stop(&w);
}

struct grower {
	struct world *world;
	struct vidmm_thread *thread;
	uint32_t done, rounds;
};

/*
 * Each discard creates an instance besides the first one, which is the newest reference of the
 * device.
 */
static void grow_and_end(void *argument)
{
	struct grower *g = argument;
	struct softgpu_allocation wish = wish_of(PAGE, CPU, 0);
	D3DKMT_HANDLE handle;
	bool ok = true;

	wish.renaming_limit = 2;
	while (ok && g->done < g->rounds) {
		ok = client_try_allocate(&g->world->device, &wish, NULL, &handle, NULL) == S_OK &&
		     client_try_lock(&g->world->device, &handle, DISCARD, NULL) == S_OK &&
		     client_unlock(&g->world->device, handle) == S_OK &&
		     client_deallocate(&g->world->device, handle) == S_OK;
		g->done += ok;
	}
}

/*
 * ThreadSanitizer reports it if a new instance copies more of the first one's reference than it
 * may read.
 */
static void ren_04_creating_an_instance_races_with_other_creations(void **state)
{
	struct grower g[2];
	struct world w;

	world_start(&w, state, NULL);
	for (uint32_t i = 0; i < 2; i++) {
		g[i] = (struct grower){.world = &w, .rounds = 2000};
		assert_int_equal(vidmm_thread_create(w.client.host, "grower", grow_and_end, &g[i],
						     &g[i].thread),
				 0);
	}
	for (uint32_t i = 0; i < 2; i++) {
		vidmm_thread_join(g[i].thread);
		assert_int_equal(g[i].done, g[i].rounds);
	}
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(ren_01_a_busy_allocation_gets_another_instance),
		BOTH(ren_02_an_idle_current_instance_is_not_handed_out_again),
		BOTH(ren_02_the_handle_may_stay_with_noexistingreference),
		BOTH(ren_03_the_gpu_keeps_the_content_of_the_old_instance),
		BOTH(ren_04_ref_09_new_instances_share_one_miniport_allocation),
		BOTH(ren_04_creating_an_instance_races_with_other_creations),
		BOTH(ren_05_instances_are_resident_at_different_addresses),
		BOTH(ren_06_discards_cycle_through_a_bounded_list),
		BOTH(ren_07_the_limit_counts_the_current_instance),
		BOTH(ren_08_without_a_limit_every_busy_discard_gets_memory),
		BOTH(ren_08_with_little_system_memory_the_pool_does_not_grow),
		BOTH(ren_09_under_pressure_retired_instances_are_freed_without_a_copy),
		BOTH(ren_09_instances_not_yet_retired_keep_their_content),
		BOTH(ren_10_ref_10_with_a_full_list_discard_waits_for_a_retired_instance),
		BOTH(ren_11_without_a_retired_instance_discard_fails_at_once),
		BOTH(ren_12_ref_08_noexistingreference_may_reuse_any_instance),
		BOTH(ren_12_a_single_instance_is_reused_only_while_it_is_not_locked),
		BOTH(ren_13_noexistingreference_alone_changes_nothing),
		BOTH(ren_15_writes_after_a_discard_reach_the_gpu),
		BOTH(ren_16_ref_02_a_used_instance_retires_the_older_ones),
		BOTH(ren_17_ref_03_ref_04_an_older_instance_after_a_newer_one_is_refused),
		BOTH(ren_18_ref_06_donotretireinstance_allows_one_more_buffer),
		BOTH(ren_19_ref_12_an_older_instance_is_locked_only_with_outoforderlock),
		BOTH(ren_20_any_live_handle_destroys_all_instances),
		BOTH(ren_20_a_deallocation_may_list_two_instances),
		BOTH(ren_21_without_discard_the_handle_never_changes),
		BOTH(ren_23_ref_01_the_old_handle_is_valid_until_the_new_one_is_used),
		BOTH(ref_05_instance_order_holds_across_contexts_of_a_device),
		BOTH(ref_06_the_next_use_of_a_newer_instance_retires_the_older),
		BOTH(ref_07_retired_instances_become_reusable_under_any_discard_rate),
		BOTH(lock_26_a_retired_instance_cannot_be_locked),
	};

	return cmocka_run_group_tests_name("rename", tests, NULL, NULL);
}
