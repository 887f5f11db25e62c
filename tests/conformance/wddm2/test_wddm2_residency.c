/* SPDX-License-Identifier: MIT */
/*
 * Residency lists: their entries, what a submission may reference, and what is resident when it
 * runs.
 */
#include "wddm2_world.h"

#include <string.h>

static void at_once(struct scripted_miniport *m)
{
	wddm2_0(m);
	m->settings.complete_at_once = true;
}

static D3DKMT_HANDLE allocate_as(struct client_device *device, uint32_t flags, uint64_t bytes)
{
	const struct scripted_allocation spec = {.size_bytes = bytes,
						 .flags = flags,
						 .read_set = WORLD_MEMORY,
						 .write_set = WORLD_MEMORY};
	D3DKMT_HANDLE handle;

	assert_int_equal(wddm2_try_allocate(device, &spec, &handle), S_OK);
	return handle;
}

static void res_01_pri_05_each_makeresident_counts_until_the_last_evict(void **state)
{
	struct world w;

	world_start(&w, state, at_once);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	for (uint32_t i = 0; i < 2; i++)
		wddm2_make(&w, &w.device, &queue, &a, 1);
	assert_int_equal(wddm2_evict(&w.device, a, 0), S_OK);
	world_submit_write(&w.context, a, 4, 0x77); /* still on the list */
	world_run(&w);
	assert_int_equal(world_word(&w, a, 4), 0x77);
	assert_int_equal(wddm2_evict(&w.device, a, 0), S_OK);
	world_run(&w);
	assert_int_equal(wddm2_evict(&w.device, a, 0), E_INVALIDARG); /* RES-06 */
	world_expect_finding(&w, "RES-06");
	assert_int_equal(world_word(&w, a, 4), 0x77);
	wddm2_stop(&w);
}

/* Two MakeResident, one Evict: still resident while other allocations need the space. */
static void res_01_a_listed_allocation_is_not_evicted_under_pressure(void **state)
{
	struct world w;
	struct client_device other;

	world_start(&w, state, at_once);
	client_open(&w.client, &other);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device), others = wddm2_queue(&other);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 8 * MIB, WORLD_MEMORY),
		      unlisted = wddm2_allocate(&w.device, 4 * MIB, WORLD_MEMORY),
		      b = wddm2_allocate(&other, 8 * MIB, WORLD_MEMORY);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	wddm2_make(&w, &w.device, &queue, &unlisted, 1);
	assert_int_equal(wddm2_evict(&w.device, a, 0), S_OK);
	assert_int_equal(wddm2_evict(&w.device, unlisted, EVICT_ONLY_IF_NECESSARY), S_OK);
	world_run(&w);
	assert_true(wddm2_is_in_memory(&w.device, unlisted));
	wddm2_make(&w, &other, &others, &b, 1);
	assert_true(wddm2_is_in_memory(&other, b));
	assert_true(wddm2_is_in_memory(&w.device, a));
	assert_false(wddm2_is_in_memory(&w.device, unlisted));
	client_close(&other);
	wddm2_stop(&w);
}

static void res_02_pri_09_makeresident_with_one_bad_handle_changes_no_count(void **state)
{
	struct world w;
	struct client_device other;

	world_start(&w, state, at_once);
	client_open(&w.client, &other);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY),
		      foreign = wddm2_allocate(&other, 64 * KIB, WORLD_MEMORY);
	const D3DKMT_HANDLE bad[] = {foreign, 0x4242, 0};
	D3DKMT_HANDLE list[2] = {a, 0};

	for (uint32_t i = 0; i < 3; i++) {
		D3DDDI_MAKERESIDENT args = {.hPagingQueue = queue.hPagingQueue,
					    .NumAllocations = 2,
					    .AllocationList = list};
		list[1] = bad[i];
		assert_int_equal(wddm2_try_make(&w.device, &args), E_INVALIDARG);
		world_expect_finding(&w, "PRI-09");
		assert_int_equal(args.NumAllocations, 0);
		assert_int_equal(wddm2_evict(&w.device, a, 0), E_INVALIDARG);
		world_expect_finding(&w, "RES-06");
	}
	list[1] = a; /* listed twice, counted twice */
	wddm2_make(&w, &w.device, &queue, list, 2);
	assert_int_equal(wddm2_evict(&w.device, a, 0), S_OK);
	assert_int_equal(wddm2_evict(&w.device, a, 0), S_OK);
	client_close(&other);
	wddm2_stop(&w);
}

/* All before it are resident, and counted in several batches before the bad handle is found. */
static void res_02_a_bad_handle_behind_many_resident_ones_changes_no_count(void **state)
{
	enum { COUNT = 70 };
	static const uint32_t places[] = {0, 1, 31, 32, 33, 63, 64, COUNT - 1};
	struct world w;
	D3DKMT_HANDLE list[COUNT];

	world_start(&w, state, at_once);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	for (uint32_t i = 0; i < COUNT; i++)
		list[i] = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	wddm2_make(&w, &w.device, &queue, list, COUNT);
	for (uint32_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		D3DDDI_MAKERESIDENT args = {.hPagingQueue = queue.hPagingQueue,
					    .NumAllocations = COUNT,
					    .AllocationList = list};
		D3DKMT_HANDLE good = list[places[i]];

		list[places[i]] = 0x4242;
		assert_int_equal(wddm2_try_make(&w.device, &args), E_INVALIDARG);
		world_expect_finding(&w, "PRI-09");
		list[places[i]] = good;
	}
	wddm2_make(&w, &w.device, &queue, list, COUNT);
	for (uint32_t i = 0; i < COUNT; i++) { /* two counts each, not more */
		assert_int_equal(wddm2_evict(&w.device, list[i], 0), S_OK);
		assert_int_equal(wddm2_evict(&w.device, list[i], 0), S_OK);
		assert_int_equal(wddm2_evict(&w.device, list[i], 0), E_INVALIDARG);
		world_expect_finding(&w, "RES-06");
	}
	wddm2_stop(&w);
}

static void res_02_a_paging_queue_of_another_device_is_refused(void **state)
{
	struct world w;
	struct client_device other;
	D3DDDI_MAKERESIDENT args;

	world_start(&w, state, at_once);
	client_open(&w.client, &other);
	D3DDDICB_CREATEPAGINGQUEUE foreign = wddm2_queue(&other), mine = wddm2_queue(&w.device);
	D3DDDICB_CREATEPAGINGQUEUE fence = {.hPagingQueue = mine.hSyncObject};
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	assert_int_equal(wddm2_try_make_one(&w.device, &foreign, a, &args), E_INVALIDARG);
	world_expect_finding(&w, "RES-02");
	assert_int_equal(wddm2_try_make_one(&w.device, &fence, a, &args), E_INVALIDARG);
	world_expect_finding(&w, "RES-02");
	assert_int_equal(args.NumAllocations, 0);
	wddm2_make(&w, &w.device, &mine, &a, 1);
	client_close(&other);
	wddm2_stop(&w);
}

static void pri_09_reserved_flags_are_refused(void **state)
{
	struct world w;

	world_start(&w, state, at_once);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	UINT priority = 0x78000000;
	D3DDDI_MAKERESIDENT args = {.hPagingQueue = queue.hPagingQueue,
				    .NumAllocations = 1,
				    .AllocationList = &a,
				    .PriorityList = &priority,
				    .Flags.Value = 0x4};
	assert_int_equal(wddm2_try_make(&w.device, &args), E_INVALIDARG);
	world_expect_finding(&w, "PRI-09");
	args.Flags.Value = 0;
	args.NumAllocations = 1;
	HRESULT result = wddm2_try_make(&w.device, &args); /* PriorityList is ignored */
	assert_true(result == S_OK || result == E_PENDING);
	assert_int_equal(wddm2_evict(&w.device, a, 0x4), E_INVALIDARG);
	world_expect_finding(&w, "PRI-09");
	assert_int_equal(wddm2_evict(&w.device, a, 0), S_OK); /* it was still on the list */
	wddm2_stop(&w);
}

/*
 * DMA-35: neither list makes anything resident; referencing a non-resident allocation is an access
 * to it.
 */
static void dma_26_pri_11_referencing_a_non_resident_allocation_is_a_device_error(void **state)
{
	struct world w;

	world_start(&w, state, at_once);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY),
		      b = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	world_submit_use(&w.context, a);
	world_run(&w);
	uint32_t operations = scripted_count(w.m, VIDMM_DDI_BUILD_PAGING_BUFFER);
	world_use(&w.context, b);
	assert_int_equal(client_try_submit(&w.context), D3DDDIERR_DEVICEREMOVED);
	world_expect_finding(&w, "DMA-26");
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_BUILD_PAGING_BUFFER), operations);
	world_use(&w.context, a);
	assert_int_equal(client_try_submit(&w.context), D3DDDIERR_DEVICEREMOVED);
	assert_int_equal(world_render_submits(&w), 1);
	wddm2_stop(&w);
}

static void dma_27_pag_24_only_accessedphysically_allocations_are_patched(void **state)
{
	/* One for memory segments only would have an address. */
	const struct scripted_allocation spec = {.size_bytes = 64 * KIB,
						 .flags = WORLD_CPU_VISIBLE,
						 .read_set = WORLD_MEMORY | WORLD_APERTURE,
						 .write_set = WORLD_MEMORY | WORLD_APERTURE};
	struct world w;
	D3DKMT_HANDLE a;

	world_start(&w, state, at_once);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE b = allocate_as(&w.device, PHYSICAL, 64 * KIB);
	assert_int_equal(wddm2_try_allocate(&w.device, &spec, &a), S_OK);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	wddm2_make(&w, &w.device, &queue, &b, 1);
	world_use(&w.context, b);
	world_use(&w.context, a);
	assert_int_equal(client_try_submit(&w.context), (HRESULT)0xC0262110);
	world_expect_finding(&w, "DMA-27");
	assert_int_equal(world_render_submits(&w), 0);
	world_submit_use(&w.context, b); /* there was no other effect */
	world_run(&w);
	assert_int_equal(world_render_submits(&w), 1);
	wddm2_stop(&w);
}

/*
 * In memory it is contiguous. In system memory only AccessedPhysically allocations are mapped into
 * the aperture.
 */
static void pag_24_only_accessedphysically_is_mapped_into_the_aperture(void **state)
{
	struct scripted_allocation spec = {.size_bytes = 64 * KIB,
					   .flags = WORLD_CPU_VISIBLE,
					   .read_set = WORLD_APERTURE,
					   .write_set = WORLD_APERTURE};
	struct world w;
	D3DKMT_HANDLE a, b;

	world_start(&w, state, at_once);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	uint32_t before = wddm2_operations(&w, DXGK_OPERATION_MAP_APERTURE_SEGMENT);
	assert_int_equal(wddm2_try_allocate(&w.device, &spec, &a), S_OK);
	spec.flags = PHYSICAL;
	assert_int_equal(wddm2_try_allocate(&w.device, &spec, &b), S_OK);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	assert_int_equal(wddm2_operations(&w, DXGK_OPERATION_MAP_APERTURE_SEGMENT), before);
	wddm2_make(&w, &w.device, &queue, &b, 1);
	assert_int_equal(wddm2_operations(&w, DXGK_OPERATION_MAP_APERTURE_SEGMENT), before + 1);
	wddm2_stop(&w);
}

/* The aperture segment is the allocation's first choice, and its content is in system memory. */
static void pag_24_content_whose_first_choice_is_an_aperture_stays_in_system_memory(void **state)
{
	const struct scripted_allocation spec = {.size_bytes = 64 * KIB,
						 .flags = WORLD_CPU_VISIBLE,
						 .read_set = WORLD_MEMORY | WORLD_APERTURE,
						 .write_set = WORLD_MEMORY | WORLD_APERTURE,
						 .preferred = 2};
	struct world w;
	D3DKMT_HANDLE a;

	world_start(&w, state, at_once);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	assert_int_equal(wddm2_try_allocate(&w.device, &spec, &a), S_OK);
	uint32_t before = scripted_count(w.m, VIDMM_DDI_BUILD_PAGING_BUFFER);
	for (uint32_t i = 0; i < 3; i++) {
		wddm2_make(&w, &w.device, &queue, &a, 1);
		assert_int_equal(client_residency(&w.device, a),
				 D3DDDI_RESIDENCYSTATUS_RESIDENTINSHAREDMEMORY);
	}
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_BUILD_PAGING_BUFFER), before);
	wddm2_stop(&w);
}

/*
 * Two devices that need 70 % of the memory each take turns. Listed allocations that no submission
 * references are paged in as well.
 */
static void res_08_pri_12_devices_whose_lists_do_not_fit_take_turns(void **state)
{
	struct world w;
	struct client_device other;
	struct client_context others;
	D3DKMT_HANDLE mine[2], theirs[2];

	world_start(&w, state, at_once);
	client_open(&w.client, &other);
	client_context(&other, 0, &others);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device), second = wddm2_queue(&other);
	for (uint32_t i = 0; i < 2; i++) {
		mine[i] = wddm2_allocate(&w.device, 6 * MIB, WORLD_MEMORY);
		theirs[i] = wddm2_allocate(&other, 6 * MIB, WORLD_MEMORY);
	}
	wddm2_make(&w, &w.device, &queue, mine, 2);
	wddm2_make(&w, &other, &second, theirs, 2);
	for (uint32_t round = 0; round < 4; round++) {
		world_submit_write(&w.context, mine[round % 2], 4 * round, 0x100 + round);
		world_run(&w);
		assert_true(wddm2_is_in_memory(&w.device, mine[0]));
		assert_true(wddm2_is_in_memory(&w.device, mine[1]));
		world_submit_write(&others, theirs[round % 2], 4 * round, 0x200 + round);
		world_run(&w);
		assert_true(wddm2_is_in_memory(&other, theirs[0]));
		assert_true(wddm2_is_in_memory(&other, theirs[1]));
	}
	for (uint32_t round = 0; round < 4; round++) {
		uint32_t *words = client_lock(&other, theirs[round % 2], 0x1);

		assert_int_equal(words[round], 0x200 + round);
		assert_int_equal(client_unlock(&other, theirs[round % 2]), S_OK);
		assert_int_equal(world_word(&w, mine[round % 2], 4 * round), 0x100 + round);
	}
	client_context_end(&others);
	client_close(&other);
	wddm2_stop(&w);
}

/*
 * The larger part of the list lies in the middle of 16 MiB, with 5 MiB on each side. The other
 * 5.5 MiB fit only if it moves.
 */
struct middle {
	struct world w;
	D3DDDICB_CREATEPAGINGQUEUE queue;
	D3DKMT_HANDLE middle, other;
};

static void middle_begin(struct middle *m, void **state, world_setup *setup)
{
	world_start(&m->w, state, setup);
	m->queue = wddm2_queue(&m->w.device);
	D3DKMT_HANDLE below = wddm2_allocate(&m->w.device, 5 * MIB, WORLD_MEMORY);
	m->middle = wddm2_allocate(&m->w.device, 6 * MIB, WORLD_MEMORY);
	m->other = wddm2_allocate(&m->w.device, 11 * MIB / 2, WORLD_MEMORY);
	wddm2_make(&m->w, &m->w.device, &m->queue, &below, 1);
	wddm2_make(&m->w, &m->w.device, &m->queue, &m->middle, 1);
	assert_int_equal(client_deallocate(&m->w.device, below), S_OK);
	wddm2_run(&m->w);
	world_submit_write(&m->w.context, m->middle, 6 * MIB - 4, 0x77);
}

static void middle_end(struct middle *m)
{
	world_submit_write(&m->w.context, m->other, 11 * MIB / 2 - 4, 0x88);
	wddm2_run(&m->w);
	assert_true(wddm2_is_in_memory(&m->w.device, m->middle));
	assert_true(wddm2_is_in_memory(&m->w.device, m->other));
	assert_int_equal(world_word(&m->w, m->middle, 6 * MIB - 4), 0x77);
	assert_int_equal(world_word(&m->w, m->other, 11 * MIB / 2 - 4), 0x88);
	wddm2_stop(&m->w);
}

static void res_02_spl_13_a_listed_allocation_in_the_middle_is_placed_anew(void **state)
{
	struct middle m;

	middle_begin(&m, state, at_once);
	wddm2_run(&m.w);
	wddm2_make(&m.w, &m.w.device, &m.queue, &m.other, 1);
	middle_end(&m);
}

/* The call places the list, and its fence comes after the content. */
static void res_02_spl_13_the_fence_waits_for_what_is_placed_anew(void **state)
{
	struct middle m;
	D3DDDI_MAKERESIDENT args;

	middle_begin(&m, state, wddm2_0);
	wddm2_run(&m.w);
	assert_int_equal(wddm2_try_make_one(&m.w.device, &m.queue, m.other, &args), E_PENDING);
	assert_true(wddm2_is_in_memory(&m.w.device, m.other));
	assert_true(wddm2_fence(&m.queue) < args.PagingFenceValue);
	wddm2_await(&m.w, &m.queue, args.PagingFenceValue);
	middle_end(&m);
}

/* The GPU uses it when the other is made resident, so the paging queue places the list. */
static void res_04_spl_13_a_busy_allocation_in_the_middle_is_placed_anew(void **state)
{
	struct middle m;
	D3DDDI_MAKERESIDENT args;

	middle_begin(&m, state, wddm2_0);
	assert_int_equal(wddm2_try_make_one(&m.w.device, &m.queue, m.other, &args), E_PENDING);
	wddm2_await(&m.w, &m.queue, args.PagingFenceValue);
	middle_end(&m);
}

/* The packet that needs both does not wait for the paging queue. */
static void res_08_spl_13_a_packet_places_its_list_anew(void **state)
{
	struct middle m;
	D3DDDI_MAKERESIDENT args;

	middle_begin(&m, state, wddm2_0);
	assert_int_equal(wddm2_try_make_one(&m.w.device, &m.queue, m.other, &args), E_PENDING);
	world_submit_write(&m.w.context, m.other, 0, 0x99);
	wddm2_run(&m.w);
	assert_int_equal(world_word(&m.w, m.other, 0), 0x99);
	middle_end(&m);
}

/* A submission does not wait for allocations listed after it. */
static void res_08_a_submission_needs_the_list_at_submission_time(void **state)
{
	struct world w;
	D3DDDI_MAKERESIDENT args;

	world_start(&w, state, wddm2_0);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 8 * MIB, WORLD_MEMORY),
		      b = wddm2_allocate(&w.device, 8 * MIB, WORLD_MEMORY),
		      c = wddm2_allocate(&w.device, 4 * MIB, WORLD_MEMORY);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	wddm2_make(&w, &w.device, &queue, &b, 1);
	world_submit_write(&w.context, a, 0, 0x1);
	world_submit_write(&w.context, a, 4, 0x2); /* the first one is still with the GPU */
	assert_int_equal(wddm2_evict(&w.device, b, 0), S_OK);
	assert_int_equal(wddm2_try_make_one(&w.device, &queue, c, &args), E_PENDING);
	world_run(&w);
	wddm2_await(&w, &queue, args.PagingFenceValue);
	assert_int_equal(world_render_submits(&w), 2);
	assert_int_equal(world_word(&w, a, 4), 0x2);
	assert_true(wddm2_is_in_memory(&w.device, c));
	wddm2_stop(&w);
}

/* On 1.x references decide; there is no list. */
static void res_01_before_wddm_2_0_there_are_no_residency_lists(void **state)
{
	struct world w;
	D3DDDICB_CREATEPAGINGQUEUE queue = {0};
	D3DDDI_MAKERESIDENT args = {0};

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, WORLD_MEMORY);
	assert_int_equal(w.device.cb->pfnCreatePagingQueueCb(w.device.handle, &queue), E_NOTIMPL);
	assert_int_equal(queue.hPagingQueue, 0);
	assert_int_equal(wddm2_try_make_one(&w.device, &queue, a, &args), E_NOTIMPL);
	assert_int_equal(wddm2_evict(&w.device, a, 0), E_NOTIMPL);
	world_submit_write(&w.context, a, 0, 0x5);
	world_run(&w);
	assert_int_equal(world_word(&w, a, 0), 0x5);
	wddm2_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(res_01_pri_05_each_makeresident_counts_until_the_last_evict),
		ON_BOTH(res_01_a_listed_allocation_is_not_evicted_under_pressure),
		ON_BOTH(res_02_pri_09_makeresident_with_one_bad_handle_changes_no_count),
		ON_BOTH(res_02_a_bad_handle_behind_many_resident_ones_changes_no_count),
		ON_BOTH(res_02_a_paging_queue_of_another_device_is_refused),
		ON_BOTH(pri_09_reserved_flags_are_refused),
		ON_BOTH(dma_26_pri_11_referencing_a_non_resident_allocation_is_a_device_error),
		ON_BOTH(dma_27_pag_24_only_accessedphysically_allocations_are_patched),
		ON_BOTH(pag_24_only_accessedphysically_is_mapped_into_the_aperture),
		ON_BOTH(pag_24_content_whose_first_choice_is_an_aperture_stays_in_system_memory),
		ON_BOTH(res_08_pri_12_devices_whose_lists_do_not_fit_take_turns),
		ON_BOTH(res_02_spl_13_a_listed_allocation_in_the_middle_is_placed_anew),
		ON_BOTH(res_02_spl_13_the_fence_waits_for_what_is_placed_anew),
		ON_BOTH(res_04_spl_13_a_busy_allocation_in_the_middle_is_placed_anew),
		ON_BOTH(res_08_spl_13_a_packet_places_its_list_anew),
		ON_BOTH(res_08_a_submission_needs_the_list_at_submission_time),
		ON_BOTH(res_01_before_wddm_2_0_there_are_no_residency_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
