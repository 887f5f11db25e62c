/* SPDX-License-Identifier: MIT */
/*
 * Segments from WDDM 2.0 on: pages of 64 KiB (SEG-11), invalid ranges (SEG-26), the set that
 * counts (SEG-16, SEG-19), and primaries without CPU access (ALF-31).
 */
#include "wddm2_world.h"

#define LARGE_PAGE     (64 * KIB)
#define USE_64KB_PAGES 0x800u
#define NONE           ((D3DKMT_HANDLE)0)

static void at_once(struct scripted_miniport *m)
{
	wddm2_0(m);
	m->settings.complete_at_once = true;
}

static void large_pages(struct scripted_miniport *m)
{
	at_once(m);
	m->settings.segment[0].flags |= USE_64KB_PAGES;
}

static struct scripted_allocation wish(uint64_t bytes, uint32_t set)
{
	return (struct scripted_allocation){
		.size_bytes = bytes, .flags = PHYSICAL, .read_set = set, .write_set = set};
}

/* Makes it resident. Returns the offset in the memory segment at which it is filled. */
static uint64_t place(struct world *w, const D3DDDICB_CREATEPAGINGQUEUE *queue, D3DKMT_HANDLE a)
{
	uint32_t before = wddm2_operations(w, DXGK_OPERATION_FILL);
	const struct scripted_call *call;

	wddm2_make(w, &w->device, queue, &a, 1);
	assert_int_equal(wddm2_operations(w, DXGK_OPERATION_FILL), before + 1);
	call = scripted_nth(w->m, VIDMM_DDI_BUILD_PAGING_BUFFER,
			    scripted_count(w->m, VIDMM_DDI_BUILD_PAGING_BUFFER) - 1);
	assert_int_equal(call->in.paging.Operation, DXGK_OPERATION_FILL);
	assert_int_equal(call->in.paging.Fill.Destination.SegmentId, 1);
	return (uint64_t)call->in.paging.Fill.Destination.SegmentAddress.QuadPart -
	       SCRIPTED_MEMORY_BASE;
}

static void seg_11_alignment_must_be_a_multiple_of_the_segment_page_size(void **state)
{
	static const uint32_t bad[] = {4096, 32 * KIB}, good[] = {LARGE_PAGE, 1024 * KIB, 0};
	struct scripted_allocation spec = wish(20 * KIB, WORLD_MEMORY | WORLD_APERTURE);
	struct world w;
	D3DKMT_HANDLE a;

	world_start(&w, state, large_pages);
	for (uint32_t i = 0; i < 2; i++) {
		spec.alignment = bad[i];
		assert_int_equal(wddm2_try_allocate(&w.device, &spec, &a), E_INVALIDARG);
		world_expect_finding(&w, "SEG-11");
		assert_int_equal(a, NONE);
		assert_int_equal(w.m->live_allocations, 0);
	}
	for (uint32_t i = 0; i < 3; i++) {
		spec.alignment = good[i]; /* 0: none requested beyond the page size */
		assert_int_equal(wddm2_try_allocate(&w.device, &spec, &a), S_OK);
	}
	spec = wish(20 * KIB, WORLD_APERTURE); /* whose pages are the host's */
	assert_int_equal(wddm2_try_allocate(&w.device, &spec, &a), S_OK);
	wddm2_stop(&w);
	world_start(&w, state, at_once); /* like those of other segments */
	spec = wish(20 * KIB, WORLD_MEMORY);
	assert_int_equal(wddm2_try_allocate(&w.device, &spec, &a), S_OK);
	wddm2_stop(&w);
}

/* In 16 MiB there are 256 pages, and a page has one owner. */
static void seg_11_an_allocation_occupies_whole_segment_pages(void **state)
{
	struct scripted_allocation spec = wish(20 * KIB, WORLD_MEMORY);
	D3DDDI_MAKERESIDENT args;
	bool taken[16] = {false};
	struct world w;
	D3DKMT_HANDLE a;

	world_start(&w, state, large_pages);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	spec.alignment = LARGE_PAGE;
	for (uint32_t i = 0; i < 16; i++) {
		assert_int_equal(wddm2_try_allocate(&w.device, &spec, &a), S_OK);
		uint64_t at = place(&w, &queue, a);

		assert_int_equal(at % LARGE_PAGE, 0);
		assert_true(at < 16 * LARGE_PAGE);
		assert_false(taken[at / LARGE_PAGE]);
		taken[at / LARGE_PAGE] = true;
	}
	spec.size_bytes = 16 * MIB - 16 * LARGE_PAGE;
	assert_int_equal(wddm2_try_allocate(&w.device, &spec, &a), S_OK);
	assert_int_equal(place(&w, &queue, a), 16 * LARGE_PAGE);
	spec.size_bytes = PAGE_BYTES;
	assert_int_equal(wddm2_try_allocate(&w.device, &spec, &a), S_OK);
	assert_int_equal(wddm2_try_make_one(&w.device, &queue, a, &args), E_OUTOFMEMORY);
	assert_int_equal(args.NumBytesToTrim, LARGE_PAGE);
	vidmm_adapter_check(w.client.adapter);
	wddm2_stop(&w);
}

static const DXGK_MEMORYRANGE holes[] = {
	{.SegmentOffset = 1 * MIB, .SizeInBytes = 1 * MIB},
	{.SegmentOffset = 5 * MIB, .SizeInBytes = 64 * KIB},
	{.SegmentOffset = 15 * MIB, .SizeInBytes = 1 * MIB},
};
enum { HOLES = sizeof(holes) / sizeof(holes[0]) };

static void with_holes(struct scripted_miniport *m)
{
	at_once(m);
	m->settings.invalid[0] = holes;
	m->settings.invalid_counts[0] = HOLES;
}

/* All of the memory, in pieces of every size, from both ends. */
static void seg_26_nothing_is_ever_placed_in_an_invalid_range(void **state)
{
	uint64_t left = 16 * MIB - 2 * MIB - 64 * KIB;
	D3DDDI_MAKERESIDENT args;
	struct world w;
	D3DKMT_HANDLE a;

	world_start(&w, state, with_holes);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	for (uint32_t i = 0; left; i++) {
		uint64_t bytes = (uint64_t)(64 * KIB) << (i % 3);
		struct scripted_allocation spec = wish(bytes < left ? bytes : left, WORLD_MEMORY);

		spec.flags |= i % 2 ? 0x40 : 0; /* FromEndOfSegment */
		assert_int_equal(wddm2_try_allocate(&w.device, &spec, &a), S_OK);
		uint64_t at = place(&w, &queue, a);
		for (uint32_t h = 0; h < HOLES; h++)
			assert_true(at + spec.size_bytes <= holes[h].SegmentOffset ||
				    at >= holes[h].SegmentOffset + holes[h].SizeInBytes);
		left -= spec.size_bytes;
	}
	const struct scripted_allocation more = wish(PAGE_BYTES, WORLD_MEMORY);
	assert_int_equal(wddm2_try_allocate(&w.device, &more, &a), S_OK);
	assert_int_equal(wddm2_try_make_one(&w.device, &queue, a, &args), E_OUTOFMEMORY);
	vidmm_adapter_check(w.client.adapter);
	wddm2_stop(&w);
}

/*
 * The read set is ignored: the allocation is placed in the write set, and its preferences must be
 * in the write set.
 */
static void seg_16_seg_19_the_read_set_is_ignored(void **state)
{
	struct scripted_allocation spec = wish(64 * KIB, WORLD_MEMORY);
	struct world w;
	D3DKMT_HANDLE a;

	world_start(&w, state, at_once);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	spec.read_set = WORLD_APERTURE;
	assert_int_equal(wddm2_try_allocate(&w.device, &spec, &a), S_OK);
	(void)place(&w, &queue, a);
	world_submit_use(&w.context, a); /* read only, it is not moved */
	world_run(&w);
	assert_true(wddm2_is_in_memory(&w.device, a));
	spec.read_set = 0x80000000; /* invalid segments */
	assert_int_equal(wddm2_try_allocate(&w.device, &spec, &a), S_OK);
	spec.write_set = 0x80000000;
	assert_int_equal(wddm2_try_allocate(&w.device, &spec, &a), E_INVALIDARG);
	world_expect_finding(&w, "SEG-19");
	spec = wish(64 * KIB, WORLD_MEMORY);
	spec.read_set = WORLD_MEMORY | WORLD_APERTURE;
	spec.preferred = 2;
	assert_int_equal(wddm2_try_allocate(&w.device, &spec, &a), E_INVALIDARG);
	world_expect_finding(&w, "SEG-16");
	spec.write_set = WORLD_MEMORY | WORLD_APERTURE;
	assert_int_equal(wddm2_try_allocate(&w.device, &spec, &a), S_OK);
	wddm2_stop(&w);
}

static void hidden(struct scripted_miniport *m)
{
	at_once(m);
	m->settings.segment[0].flags = 0;
}

static void hidden_with_capability(struct scripted_miniport *m)
{
	hidden(m);
	m->settings.caps.MemoryManagementCaps.NonCpuVisiblePrimary = 1;
}

static HRESULT try_primary(struct world *w, uint32_t set)
{
	struct scripted_allocation spec = wish(64 * KIB, set);

	spec.flags = ACCESSED_PHYSICALLY;
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec),
				      .Flags.Primary = 1};
	D3DDDICB_ALLOCATE args = {.NumAllocations = 1, .pAllocationInfo = &info};

	return w->device.cb->pfnAllocateCb(w->device.handle, &args);
}

static void alf_31_a_noncpuvisibleprimary_may_be_in_a_hidden_segment(void **state)
{
	struct world w;

	world_start(&w, state, hidden);
	assert_int_equal(try_primary(&w, WORLD_MEMORY), E_INVALIDARG);
	world_expect_finding(&w, "ALF-31");
	assert_int_equal(try_primary(&w, WORLD_APERTURE), S_OK);
	wddm2_stop(&w);
	world_start(&w, state, hidden_with_capability);
	assert_int_equal(try_primary(&w, WORLD_MEMORY), S_OK);
	wddm2_stop(&w);
}

static void pitched(struct scripted_miniport *m)
{
	wddm2_1(m);
	m->settings.complete_at_once = true;
	m->settings.segment[0].flags |= 0x20; /* PitchAlignment */
}

/*
 * An allocation without PitchAlignedSize cannot get the segment later, either. Next to another
 * segment it is left out.
 */
static void seg_10_pri_15_an_update_cannot_add_a_pitch_segment_without_size(void **state)
{
	struct scripted_allocation spec = wish(64 * KIB, WORLD_APERTURE);
	D3DDDI_UPDATEALLOCPROPERTY args = {.PropertyMaskValue = 0x2};
	D3DKMT_HANDLE with, without;
	struct world w;

	world_start(&w, state, pitched);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	spec.flags = ACCESSED_PHYSICALLY; /* CPU access would not permit this set (SEG-25) */
	assert_int_equal(wddm2_try_allocate(&w.device, &spec, &without), S_OK);
	spec.pitch_aligned_bytes = 128 * KIB;
	assert_int_equal(wddm2_try_allocate(&w.device, &spec, &with), S_OK);
	args.hPagingQueue = queue.hPagingQueue;
	args.hAllocation = without;
	args.SupportedSegmentSet = WORLD_MEMORY;
	assert_int_equal(w.device.cb->pfnUpdateAllocationPropertyCb(w.device.handle, &args),
			 E_INVALIDARG);
	world_expect_finding(&w, "PRI-15");
	args.SupportedSegmentSet = WORLD_MEMORY | WORLD_APERTURE;
	assert_int_equal(w.device.cb->pfnUpdateAllocationPropertyCb(w.device.handle, &args), S_OK);
	wddm2_make(&w, &w.device, &queue, &without, 1);
	assert_int_equal(client_residency(&w.device, without), 2);
	args.hAllocation = with;
	args.SupportedSegmentSet = WORLD_MEMORY;
	assert_int_equal(w.device.cb->pfnUpdateAllocationPropertyCb(w.device.handle, &args), S_OK);
	wddm2_make(&w, &w.device, &queue, &with, 1);
	assert_int_equal(client_residency(&w.device, with), 1);
	wddm2_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_SIM(seg_11_alignment_must_be_a_multiple_of_the_segment_page_size),
		ON_SIM(seg_11_an_allocation_occupies_whole_segment_pages),
		ON_SIM(seg_10_pri_15_an_update_cannot_add_a_pitch_segment_without_size),
		ON_SIM(seg_26_nothing_is_ever_placed_in_an_invalid_range),
		ON_SIM(seg_16_seg_19_the_read_set_is_ignored),
		ON_SIM(alf_31_a_noncpuvisibleprimary_may_be_in_a_hidden_segment),
	};

	return cmocka_run_group_tests_name("wddm2 segments", tests, NULL, NULL);
}
