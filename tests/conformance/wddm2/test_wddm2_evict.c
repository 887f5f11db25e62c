/* SPDX-License-Identifier: MIT */
/* pfnEvictCb: what it refuses, when memory is freed, and whether its content is copied. */
#include "wddm2_world.h"

static void at_once(struct scripted_miniport *m)
{
	wddm2_0(m);
	m->settings.complete_at_once = true;
}

/* RES-06, PRI-10: a list with one refused entry changes nothing. */
static void res_06_evict_below_zero_is_refused(void **state)
{
	struct world w;

	world_start(&w, state, at_once);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY),
		      b = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	const D3DKMT_HANDLE both[] = {a, b}, twice[] = {a, a};
	D3DDDICB_EVICT args = {.NumAllocations = 2, .AllocationList = both};
	wddm2_make(&w, &w.device, &queue, &a, 1);
	assert_int_equal(w.device.cb->pfnEvictCb(w.device.handle, &args), E_INVALIDARG);
	world_expect_finding(&w, "RES-06");
	args.AllocationList = twice;
	assert_int_equal(w.device.cb->pfnEvictCb(w.device.handle, &args), E_INVALIDARG);
	world_expect_finding(&w, "RES-06");
	world_submit_use(&w.context, a); /* it is still resident */
	assert_int_equal(wddm2_evict(&w.device, a, 0), S_OK);
	wddm2_stop(&w);
}

/*
 * Without a flag the memory is freed at once, with the content copied out; with
 * EvictOnlyIfNecessary under pressure.
 */
static void res_06_evictonlyifnecessary_defers_eviction_until_pressure(void **state)
{
	struct world w;

	world_start(&w, state, at_once);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 8 * MIB, WORLD_MEMORY),
		      b = wddm2_allocate(&w.device, 8 * MIB, WORLD_MEMORY),
		      c = wddm2_allocate(&w.device, 8 * MIB, WORLD_MEMORY);
	const D3DKMT_HANDLE both[] = {a, b};
	wddm2_make(&w, &w.device, &queue, both, 2);
	world_submit_write(&w.context, a, 0, 0xA);
	world_submit_write(&w.context, b, 0, 0xB);
	world_run(&w);
	assert_int_equal(wddm2_evict(&w.device, a, 0), S_OK);
	assert_int_equal(wddm2_evict(&w.device, b, EVICT_ONLY_IF_NECESSARY), S_OK);
	while (wddm2_is_in_memory(&w.device, a))
		vidmm_settle(w.client.host);
	world_run(&w);
	assert_true(wddm2_is_in_memory(&w.device, b));
	assert_int_equal(wddm2_transfers(&w, false), 1);
	const D3DKMT_HANDLE next[] = {a, c};
	wddm2_make(&w, &w.device, &queue, next, 2);
	assert_false(wddm2_is_in_memory(&w.device, b));
	assert_int_equal(wddm2_transfers(&w, false), 2);
	assert_int_equal(world_word(&w, a, 0), 0xA);
	assert_int_equal(world_word(&w, b, 0), 0xB);
	wddm2_stop(&w);
}

/* While the count is above 0 the flag is ignored: the next plain Evict frees the memory. */
static void res_06_only_the_flags_of_the_last_evict_apply(void **state)
{
	struct world w;

	world_start(&w, state, at_once);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	const D3DKMT_HANDLE twice[] = {a, a};
	wddm2_make(&w, &w.device, &queue, twice, 2);
	assert_int_equal(wddm2_evict(&w.device, a, EVICT_ONLY_IF_NECESSARY), S_OK);
	assert_int_equal(wddm2_evict(&w.device, a, 0), S_OK);
	while (wddm2_is_in_memory(&w.device, a))
		vidmm_settle(w.client.host);
	wddm2_stop(&w);
}

/* PRI-10: on any Evict call the flag drops the segment's copy; the system copy is used. */
static void pri_10_notwrittento_drops_the_segment_copy(void **state)
{
	static const uint32_t flags[][2] = {{NOT_WRITTEN_TO, 0}, {0, NOT_WRITTEN_TO}, {0, 0}};
	struct world w;

	for (uint32_t i = 0; i < 3; i++) {
		world_start(&w, state, at_once);
		D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
		D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
		const D3DKMT_HANDLE twice[] = {a, a};
		uint32_t *words = client_lock(&w.device, a, 0);
		words[3] = 0x33;
		assert_int_equal(client_unlock(&w.device, a), S_OK);
		wddm2_make(&w, &w.device, &queue, twice, 2);
		assert_int_equal(wddm2_transfers(&w, true), 1);
		for (uint32_t k = 0; k < 2; k++)
			assert_int_equal(wddm2_evict(&w.device, a, flags[i][k]), S_OK);
		while (wddm2_is_in_memory(&w.device, a))
			vidmm_settle(w.client.host);
		assert_int_equal(wddm2_transfers(&w, false), i == 2);
		assert_int_equal(world_word(&w, a, 12), 0x33);
		wddm2_stop(&w);
	}
}

/* Content that is made resident again counts as dirty again. */
static void pri_10_content_made_resident_again_is_dirty_again(void **state)
{
	struct world w;

	world_start(&w, state, at_once);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	const D3DKMT_HANDLE twice[] = {a, a};
	wddm2_make(&w, &w.device, &queue, twice, 2);
	assert_int_equal(wddm2_evict(&w.device, a, NOT_WRITTEN_TO), S_OK);
	world_submit_write(&w.context, a, 8, 0x88);
	world_run(&w);
	assert_int_equal(wddm2_evict(&w.device, a, 0), S_OK);
	while (wddm2_is_in_memory(&w.device, a))
		vidmm_settle(w.client.host);
	assert_int_equal(wddm2_transfers(&w, false), 1);
	assert_int_equal(world_word(&w, a, 8), 0x88);
	wddm2_stop(&w);
}

/*
 * The report is about the stay in memory before it. Another device takes the memory, and what comes
 * back counts as dirty.
 */
static void pri_10_a_report_ends_when_the_allocation_leaves_its_memory(void **state)
{
	struct client_device other;
	struct client_context others;
	struct world w;

	world_start(&w, state, at_once);
	client_open(&w.client, &other);
	client_context(&other, 0, &others);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device), second = wddm2_queue(&other);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY),
		      all = wddm2_allocate(&other, 16 * MIB, WORLD_MEMORY);
	const D3DKMT_HANDLE twice[] = {a, a};
	wddm2_make(&w, &w.device, &queue, twice, 2);
	assert_int_equal(wddm2_evict(&w.device, a, NOT_WRITTEN_TO), S_OK);
	wddm2_make(&w, &other, &second, &all, 1);
	world_submit_use(&others, all);
	wddm2_run(&w);
	assert_false(wddm2_is_in_memory(&w.device, a));
	assert_int_equal(wddm2_evict(&other, all, 0), S_OK);
	world_submit_use(&w.context, a);
	wddm2_run(&w);
	assert_true(wddm2_is_in_memory(&w.device, a));
	uint32_t transfers = wddm2_transfers(&w, false);
	assert_int_equal(wddm2_evict(&w.device, a, 0), S_OK);
	while (wddm2_is_in_memory(&w.device, a))
		vidmm_settle(w.client.host);
	assert_int_equal(wddm2_transfers(&w, false), transfers + 1);
	client_context_end(&others);
	client_close(&other);
	wddm2_stop(&w);
}

/* The call returns at once. GPU work queued before finds its memory unchanged. */
static void res_07_eviction_waits_for_gpu_work_queued_before(void **state)
{
	struct world w;

	world_start(&w, state, wddm2_0);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	world_submit_write(&w.context, a, 4, 0x44);
	world_submit_write(&w.context, a, 8, 0x88);
	assert_int_equal(wddm2_evict(&w.device, a, 0), S_OK);
	for (uint32_t i = 0; i < 20; i++)
		vidmm_settle(w.client.host);
	assert_int_equal(wddm2_transfers(&w, false), 0);
	assert_true(wddm2_is_in_memory(&w.device, a));
	world_run(&w);
	while (wddm2_is_in_memory(&w.device, a)) {
		scripted_complete_all(w.m);
		vidmm_settle(w.client.host);
	}
	world_run(&w);
	assert_int_equal(wddm2_transfers(&w, false), 1);
	assert_int_equal(world_word(&w, a, 4), 0x44);
	assert_int_equal(world_word(&w, a, 8), 0x88);
	wddm2_stop(&w);
}

/* The same for work that is not submitted yet, and whose list it was on. */
static void res_07_eviction_waits_for_work_not_yet_submitted(void **state)
{
	struct world w;
	struct client_device other;
	struct client_context others;
	D3DDDI_MAKERESIDENT args;

	world_start(&w, state, wddm2_0);
	client_open(&w.client, &other);
	client_context(&other, 0, &others);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device), theirs = wddm2_queue(&other);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 2 * MIB, WORLD_MEMORY),
		      b = wddm2_allocate(&w.device, 8 * MIB, WORLD_APERTURE),
		      c = wddm2_allocate(&other, 12 * MIB, WORLD_APERTURE);
	wddm2_make(&w, &other, &theirs, &c, 1);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	world_submit_use(&others, c);
	assert_int_equal(wddm2_try_make_one(&w.device, &queue, b, &args), E_PENDING);
	world_submit_write(&w.context, b, 0, 0xB); /* waits for the memory of c */
	assert_int_equal(wddm2_evict(&w.device, a, 0), S_OK);
	for (uint32_t i = 0; i < 20; i++)
		vidmm_settle(w.client.host);
	assert_true(wddm2_is_in_memory(&w.device, a));
	world_run(&w);
	while (wddm2_is_in_memory(&w.device, a)) {
		scripted_complete_all(w.m);
		vidmm_settle(w.client.host);
	}
	world_run(&w);
	assert_int_equal(world_word(&w, b, 0), 0xB);
	w.m->settings.complete_at_once = true;
	client_context_end(&others);
	client_close(&other);
	wddm2_stop(&w);
}

static HRESULT wait_for(const struct world *w, D3DKMT_HANDLE fence, uint64_t value)
{
	const D3DDDICB_WAITFORSYNCHRONIZATIONOBJECTFROMGPU args = {
		.hContext = w->context.c.hContext,
		.ObjectCount = 1,
		.ObjectHandleArray = &fence,
		.MonitoredFenceValueArray = &value};

	return w->device.cb->pfnWaitForSynchronizationObjectFromGpuCb(w->device.handle, &args);
}

static HRESULT signal(const struct world *w, D3DKMT_HANDLE fence, uint64_t value)
{
	const D3DDDICB_SIGNALSYNCHRONIZATIONOBJECTFROMCPU args = {
		.ObjectCount = 1, .ObjectHandleArray = &fence, .FenceValueArray = &value};

	return w->device.cb->pfnSignalSynchronizationObjectFromCpuCb(w->device.handle, &args);
}

/*
 * Two allocations have left the list in turn. The packet that needs the first one finds it evicted
 * for another device; all packets that need the second one are complete by then.
 */
static void res_07_what_has_left_is_needed_by_different_packets(void **state)
{
	struct world w;
	struct client_device other;
	D3DDDICB_CREATESYNCHRONIZATIONOBJECT2 fence = {.Info.Type = D3DDDI_MONITORED_FENCE};

	world_start(&w, state, wddm2_0);
	client_open(&w.client, &other);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device), theirs = wddm2_queue(&other);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY),
		      b = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY),
		      all = wddm2_allocate(&other, SCRIPTED_BAR_BYTES, WORLD_MEMORY);
	const D3DKMT_HANDLE both[] = {a, b};
	assert_int_equal(w.device.cb->pfnCreateSynchronizationObject2Cb(w.device.handle, &fence),
			 S_OK);
	wddm2_make(&w, &w.device, &queue, both, 2);
	world_submit_write(&w.context, b, 0, 0xB);
	assert_int_equal(wddm2_evict(&w.device, a, EVICT_ONLY_IF_NECESSARY), S_OK);
	assert_int_equal(wddm2_evict(&w.device, b, EVICT_ONLY_IF_NECESSARY), S_OK);
	D3DDDI_MAKERESIDENT args;
	assert_int_equal(wddm2_try_make_one(&w.device, &queue, a, &args), S_OK);
	assert_int_equal(wait_for(&w, fence.hSyncObject, 1), S_OK);
	world_submit_write(&w.context, a, 0, 0xA);
	assert_int_equal(wddm2_evict(&w.device, a, EVICT_ONLY_IF_NECESSARY), S_OK);
	wddm2_make(&w, &other, &theirs, &all, 1); /* the GPU executes the first packet */
	assert_false(wddm2_is_in_memory(&w.device, a));
	assert_int_equal(world_render_submits(&w), 1);
	assert_int_equal(signal(&w, fence.hSyncObject, 1), S_OK);
	while (world_render_submits(&w) < 2) {
		scripted_complete_all(w.m);
		vidmm_settle(w.client.host);
	}
	assert_false(wddm2_is_in_memory(&w.device, b));
	wddm2_run(&w);
	assert_int_equal(world_word(&w, a, 0), 0xA);
	assert_int_equal(world_word(&w, b, 0), 0xB);
	w.m->settings.complete_at_once = true;
	client_close(&other);
	wddm2_stop(&w);
}

/* MakeResident before the eviction keeps it in memory. */
static void res_07_makeresident_cancels_a_pending_eviction(void **state)
{
	struct world w;
	D3DDDI_MAKERESIDENT args;

	world_start(&w, state, wddm2_0);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	world_submit_write(&w.context, a, 4, 0x44);
	assert_int_equal(wddm2_evict(&w.device, a, 0), S_OK);
	assert_int_equal(wddm2_try_make_one(&w.device, &queue, a, &args), S_OK);
	world_run(&w);
	assert_true(wddm2_is_in_memory(&w.device, a));
	assert_int_equal(wddm2_transfers(&w, false), 0);
	wddm2_stop(&w);
}

/* Its handle is destroyed while its eviction is pending, or while it is on the list. */
static void res_12_a_destroyed_allocation_is_removed_from_residency_lists(void **state)
{
	struct world w;

	world_start(&w, state, wddm2_0);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 8 * MIB, WORLD_MEMORY),
		      b = wddm2_allocate(&w.device, 8 * MIB, WORLD_MEMORY), all;
	const D3DKMT_HANDLE both[] = {a, b};
	wddm2_make(&w, &w.device, &queue, both, 2);
	world_submit_use(&w.context, a);
	world_submit_use(&w.context, b);
	assert_int_equal(wddm2_evict(&w.device, a, 0), S_OK);
	assert_int_equal(client_deallocate(&w.device, a), S_OK); /* does not wait (ALF-37) */
	assert_int_equal(client_deallocate(&w.device, b), S_OK);
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_DESTROY_ALLOCATION), 0);
	world_run(&w);
	world_await(&w, VIDMM_DDI_DESTROY_ALLOCATION, 2);
	all = wddm2_allocate(&w.device, 16 * MIB, WORLD_MEMORY);
	wddm2_make(&w, &w.device, &queue, &all, 1);
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_DESTROY_ALLOCATION), 2);
	wddm2_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(res_06_evict_below_zero_is_refused),
		ON_BOTH(res_06_evictonlyifnecessary_defers_eviction_until_pressure),
		ON_BOTH(res_06_only_the_flags_of_the_last_evict_apply),
		ON_BOTH(pri_10_notwrittento_drops_the_segment_copy),
		ON_BOTH(pri_10_content_made_resident_again_is_dirty_again),
		ON_BOTH(pri_10_a_report_ends_when_the_allocation_leaves_its_memory),
		ON_BOTH(res_07_eviction_waits_for_gpu_work_queued_before),
		ON_BOTH(res_07_eviction_waits_for_work_not_yet_submitted),
		ON_BOTH(res_07_what_has_left_is_needed_by_different_packets),
		ON_BOTH(res_07_makeresident_cancels_a_pending_eviction),
		ON_BOTH(res_12_a_destroyed_allocation_is_removed_from_residency_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
