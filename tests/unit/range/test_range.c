/* SPDX-License-Identifier: MIT */
/*
 * The range heap, one guarantee per test. Sizes and offsets here are in pages unless they say
 * bytes.
 */
#include "support/test.h"
#include "unit/aborts.h"

#include "range/range.h"

#define PAGE ((uint64_t)4096)

static struct vmm_range_heap *make_heap(uint64_t pages)
{
	struct vmm_range_heap *heap;

	assert_int_equal(vmm_range_heap_create(pages * PAGE, PAGE, &heap), VMM_OK);
	vmm_range_check(heap);
	return heap;
}

struct got {
	vmm_status status;
	vmm_range_node node;
	uint64_t page;
};

static struct got request(struct vmm_range_heap *heap, const struct vmm_range_request *request)
{
	struct got got = {.node = 0xABCD, .page = 0x1234 * PAGE};

	got.status = vmm_range_allocate(heap, request, &got.node, &got.page);
	vmm_range_check(heap);
	if (got.status == VMM_OK) {
		assert_int_equal(vmm_range_offset(heap, got.node), got.page);
		assert_int_equal(vmm_range_size(heap, got.node), request->size_bytes);
		assert_ptr_equal(vmm_range_owner(heap, got.node), request->owner);
		assert_false(vmm_range_is_free(heap, got.node));
	} else {
		assert_int_equal(got.node, 0xABCD);
		assert_int_equal(got.page, 0x1234 * PAGE);
	}
	assert_int_equal(got.page % PAGE, 0);
	got.page /= PAGE;
	return got;
}

static struct got take(struct vmm_range_heap *heap, uint64_t pages)
{
	return request(heap,
		       &(struct vmm_range_request){.size_bytes = pages * PAGE, .owner = heap});
}

static struct got take_in(struct vmm_range_heap *heap, uint64_t pages, uint64_t low, uint64_t high,
			  uint32_t flags)
{
	return request(heap, &(struct vmm_range_request){.size_bytes = pages * PAGE,
							 .low = low * PAGE,
							 .high = high * PAGE,
							 .flags = flags,
							 .owner = heap});
}

static void give(struct vmm_range_heap *heap, struct got got)
{
	vmm_range_free(heap, got.node);
	vmm_range_check(heap);
}

static void assert_figures(const struct vmm_range_heap *heap, uint64_t free_pages, uint64_t largest,
			   uint32_t live, uint32_t holes)
{
	struct vmm_range_statistics figures;

	vmm_range_statistics(heap, &figures);
	assert_int_equal(figures.free_bytes, free_pages * PAGE);
	assert_int_equal(figures.largest_free_bytes, largest * PAGE);
	assert_int_equal(figures.live_ranges, live);
	assert_int_equal(figures.free_ranges, holes);
}

static void invalid_heap_sizes_are_refused(void **state)
{
	struct vmm_range_heap *heap = (void *)state;

	assert_int_equal(vmm_range_heap_create(0, PAGE, &heap), VMM_INVALID_PARAMETER);
	assert_int_equal(vmm_range_heap_create(PAGE + 1, PAGE, &heap), VMM_INVALID_PARAMETER);
	assert_int_equal(vmm_range_heap_create(PAGE, 0, &heap), VMM_INVALID_PARAMETER);
	assert_int_equal(vmm_range_heap_create(3 * PAGE, 3, &heap), VMM_INVALID_PARAMETER);
	assert_int_equal(vmm_range_heap_create(PAGE << 31, PAGE, &heap), VMM_INVALID_PARAMETER);
	assert_ptr_equal(heap, state);
	vmm_range_heap_destroy(NULL);
}

static void alf_17_from_end_starts_at_the_end_of_the_segment(void **state)
{
	struct vmm_range_heap *heap = make_heap(100);
	struct got low, first, second;

	(void)state;
	first = take_in(heap, 7, 0, 0, VMM_RANGE_FROM_END);
	assert_int_equal(first.page, 100 - 7);
	low = take(heap, 5);
	assert_int_equal(low.page, 0);
	second = take_in(heap, 10, 0, 0, VMM_RANGE_FROM_END);
	assert_int_equal(second.page, 100 - 7 - 10);
	give(heap, first);
	/* The highest free range that fits, not the best fit and not the largest hole. */
	assert_int_equal(take_in(heap, 2, 0, 0, VMM_RANGE_FROM_END).page, 98);
	assert_int_equal(take_in(heap, 6, 0, 0, VMM_RANGE_FROM_END).page, 83 - 6);
	vmm_range_heap_destroy(heap);
}

static void seg_15_a_bank_is_searched_upward_or_downward(void **state)
{
	struct vmm_range_heap *heap = make_heap(100);
	struct got hole;

	(void)state;
	assert_int_equal(take_in(heap, 4, 40, 60, 0).page, 40);
	assert_int_equal(take_in(heap, 4, 40, 60, VMM_RANGE_FROM_END).page, 56);
	hole = take_in(heap, 2, 40, 60, 0);
	assert_int_equal(hole.page, 44);
	assert_int_equal(take_in(heap, 2, 40, 60, 0).page, 46);
	give(heap, hole);
	/*
	 * The lowest and the highest address in the bank, although a better fit is free elsewhere.
	 */
	assert_int_equal(take_in(heap, 1, 40, 60, 0).page, 44);
	assert_int_equal(take_in(heap, 1, 40, 60, VMM_RANGE_FROM_END).page, 55);
	assert_int_equal(take_in(heap, 1, 0, 41, VMM_RANGE_FROM_END).page, 39);
	vmm_range_heap_destroy(heap);
}

static void seg_15_a_full_bank_fails_although_the_segment_has_free_space(void **state)
{
	struct vmm_range_heap *heap = make_heap(100);

	(void)state;
	assert_int_equal(take_in(heap, 21, 40, 60, 0).status, VMM_NO_VIDEO_MEMORY);
	assert_int_equal(take_in(heap, 20, 40, 60, 0).page, 40);
	assert_int_equal(take_in(heap, 1, 40, 60, 0).status, VMM_NO_VIDEO_MEMORY);
	assert_int_equal(take_in(heap, 1, 40, 60, VMM_RANGE_FROM_END).status, VMM_NO_VIDEO_MEMORY);
	assert_int_equal(take_in(heap, 1, 60, 60, 0).status, VMM_NO_VIDEO_MEMORY);
	assert_int_equal(take_in(heap, 1, 61, 60, 0).status, VMM_NO_VIDEO_MEMORY);
	assert_int_equal(take_in(heap, 1, 100, 0, 0).status, VMM_NO_VIDEO_MEMORY);
	assert_int_equal(take_in(heap, 1, UINT64_MAX / PAGE, 0, 0).status, VMM_NO_VIDEO_MEMORY);
	assert_int_equal(take_in(heap, 1, 99, UINT64_MAX / PAGE, 0).page, 99);
	assert_int_equal(take_in(heap, 1, 98, (uint64_t)1 << 32, 0).page, 98);
	vmm_range_heap_destroy(heap);
}

static void an_unaligned_window_shrinks_to_whole_pages(void **state)
{
	struct vmm_range_heap *heap = make_heap(10);
	struct vmm_range_request in = {
		.size_bytes = PAGE, .low = 2 * PAGE + 1, .high = 5 * PAGE - 1, .owner = heap};

	(void)state;
	assert_int_equal(request(heap, &in).page, 3);
	assert_int_equal(request(heap, &in).status, VMM_NO_VIDEO_MEMORY);
	in.low = 6 * PAGE + 1;
	in.high = 6 * PAGE + 2;
	assert_int_equal(request(heap, &in).status, VMM_NO_VIDEO_MEMORY);
	in.low = UINT64_MAX;
	in.high = 0;
	assert_int_equal(request(heap, &in).status, VMM_NO_VIDEO_MEMORY);
	vmm_range_heap_destroy(heap);
}

static void alignment_leaves_a_free_range_in_front(void **state)
{
	struct vmm_range_heap *heap = make_heap(64);
	struct vmm_range_request aligned = {
		.size_bytes = 3 * PAGE, .alignment = 16 * PAGE, .owner = heap};
	struct got got;

	(void)state;
	assert_int_equal(take(heap, 1).page, 0);
	got = request(heap, &aligned);
	assert_int_equal(got.page, 16);
	assert_figures(heap, 60, 45, 2, 2);
	aligned.flags = VMM_RANGE_FROM_END;
	assert_int_equal(request(heap, &aligned).page, 48);
	assert_int_equal(request(heap, &aligned).page, 32);
	assert_int_equal(request(heap, &aligned).status, VMM_NO_VIDEO_MEMORY);
	give(heap, got);
	assert_int_equal(request(heap, &aligned).page, 16);
	aligned.alignment = 1; /* finer than the granule */
	assert_int_equal(request(heap, &aligned).page, 61);
	vmm_range_heap_destroy(heap);
}

static void an_alignment_beyond_the_heap_leaves_offset_zero(void **state)
{
	struct vmm_range_heap *heap = make_heap(8);
	struct vmm_range_request aligned = {.size_bytes = PAGE, .owner = heap};

	(void)state;
	for (int bit = 15; bit < 64; bit++) {
		struct got got;

		aligned.alignment = (uint64_t)1 << bit;
		aligned.flags = bit & 1 ? VMM_RANGE_FROM_END : 0;
		got = request(heap, &aligned);
		assert_int_equal(got.page, 0);
		assert_int_equal(request(heap, &aligned).status, VMM_NO_VIDEO_MEMORY);
		give(heap, got);
	}
	vmm_range_heap_destroy(heap);
}

static void a_freed_range_is_merged_with_free_neighbors(void **state)
{
	struct vmm_range_heap *heap = make_heap(30);
	struct got a = take(heap, 10), b = take(heap, 10), c = take(heap, 10);

	(void)state;
	assert_figures(heap, 0, 0, 3, 0);
	give(heap, b); /* between two live ones */
	assert_figures(heap, 10, 10, 2, 1);
	give(heap, a); /* the hole is behind it */
	assert_figures(heap, 20, 20, 1, 1);
	a = take(heap, 10);
	assert_int_equal(a.page, 0);
	give(heap, c); /* the hole is in front of it */
	assert_figures(heap, 20, 20, 1, 1);
	b = take(heap, 10);
	c = take(heap, 10);
	give(heap, a);
	give(heap, c);
	assert_figures(heap, 20, 10, 1, 2);
	give(heap, b); /* holes on both sides */
	assert_figures(heap, 30, 30, 0, 1);
	vmm_range_heap_destroy(heap);
}

static void the_best_fitting_hole_is_taken(void **state)
{
	struct vmm_range_heap *heap = make_heap(1000);
	static const uint64_t sizes[] = {9, 3, 200, 5, 30};
	struct got holes[VMM_ARRAY_LENGTH(sizes)];

	(void)state;
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(sizes); i++) {
		holes[i] = take(heap, sizes[i]);
		take(heap, 1);
	}
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(sizes); i++)
		give(heap, holes[i]);
	assert_int_equal(take(heap, 5).page, holes[3].page);
	assert_int_equal(take(heap, 4).page, holes[0].page);
	assert_int_equal(take(heap, 28).page, holes[4].page);
	assert_int_equal(take(heap, 3).page, holes[1].page);
	assert_int_equal(take(heap, 3).page, holes[0].page + 4);
	vmm_range_heap_destroy(heap);
}

/* Many holes of one bin, all too small but one; no larger hole is left. */
static void a_hole_that_fits_is_found_behind_many_that_do_not(void **state)
{
	enum { HOLES = 40, SMALL = 1024, LARGE = 1030 }; /* one bin holds 1024 .. 1055 */
	struct vmm_range_heap *heap = make_heap(HOLES * (SMALL + 1) + LARGE - SMALL);
	struct got ranges[HOLES];

	(void)state;
	for (unsigned large = 0; large < HOLES; large += 13) {
		for (unsigned i = 0; i < HOLES; i++) {
			ranges[i] = take(heap, i == large ? LARGE : SMALL);
			assert_int_equal(take(heap, 1).status, VMM_OK);
		}
		for (unsigned i = 0; i < HOLES; i++)
			give(heap, ranges[i]);
		assert_figures(heap, (HOLES - 1) * SMALL + LARGE, LARGE, HOLES, HOLES);
		assert_int_equal(take(heap, LARGE + 1).status, VMM_NO_VIDEO_MEMORY);
		assert_int_equal(take(heap, LARGE - 1).page, ranges[large].page);
		vmm_range_heap_destroy(heap);
		heap = make_heap(HOLES * (SMALL + 1) + LARGE - SMALL);
	}
	vmm_range_heap_destroy(heap);
}

/*
 * Many holes that are large enough but not aligned: each is 17 pages behind the previous one, so
 * one in 32 is aligned to 32.
 */
static void an_aligned_hole_is_found_behind_many_that_are_not(void **state)
{
	enum { HOLES = 50, STEP = 17 };
	struct vmm_range_heap *heap = make_heap(HOLES * STEP);
	struct vmm_range_request aligned = {
		.size_bytes = 10 * PAGE, .alignment = 32 * PAGE, .owner = heap};
	struct got ranges[HOLES];
	uint64_t first, second;

	(void)state;
	for (unsigned i = 0; i < HOLES; i++) {
		ranges[i] = take(heap, 10);
		assert_int_equal(take(heap, STEP - 10).status, VMM_OK);
	}
	for (unsigned i = 0; i < HOLES; i++)
		give(heap, ranges[i]);
	first = request(heap, &aligned).page;
	second = request(heap, &aligned).page;
	assert_int_equal(first + second, 32 * STEP); /* the two are pages 0 and 32 * STEP */
	assert_true(first == 0 || second == 0);
	assert_int_equal(request(heap, &aligned).status, VMM_NO_VIDEO_MEMORY);
	vmm_range_heap_destroy(heap);
}

static void a_tight_heap_fills_from_its_low_end(void **state)
{
	enum { RANGES = 64 };
	struct vmm_range_heap *heap = make_heap(RANGES * 4);
	static const unsigned freed[] = {9, 40, 3, 50, 21};
	static const unsigned order[] = {3, 9, 21, 40, 50};
	struct got ranges[RANGES];

	(void)state;
	for (unsigned i = 0; i < RANGES; i++)
		ranges[i] = take(heap, 4);
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(freed); i++)
		give(heap, ranges[freed[i]]);
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(order); i++)
		assert_int_equal(take(heap, 4).page, ranges[order[i]].page);
	vmm_range_heap_destroy(heap);
}

static void a_full_heap_fails_and_changes_nothing(void **state)
{
	struct vmm_range_heap *heap = make_heap(16);
	struct vmm_range_request huge = {.size_bytes = UINT64_MAX - PAGE + 1};

	(void)state;
	assert_int_equal(take(heap, 17).status, VMM_NO_VIDEO_MEMORY);
	assert_int_equal(request(heap, &huge).status, VMM_NO_VIDEO_MEMORY);
	assert_int_equal(take(heap, 16).page, 0);
	assert_int_equal(take(heap, 1).status, VMM_NO_VIDEO_MEMORY);
	assert_int_equal(take_in(heap, 1, 0, 0, VMM_RANGE_FROM_END).status, VMM_NO_VIDEO_MEMORY);
	assert_figures(heap, 0, 0, 1, 0);
	vmm_range_heap_destroy(heap);
}

static void a_failed_metadata_allocation_changes_nothing(void **state)
{
	struct vmm_range_heap *heap = make_heap(10000), *untouched = heap;
	uint32_t failed = 0;

	(void)state;
	for (uint32_t i = 0; i < 5000; i++) {
		struct vmm_range_statistics before, after;
		struct got got;

		vmm_range_statistics(heap, &before);
		/* The heap can do without its index by address, but not without nodes. */
		vmm_calloc_fail_after(1 + i % 6);
		got = take_in(heap, 1, 2 * i, 0, 0); /* each leaves a hole in front */
		vmm_calloc_fail_after(0);
		vmm_range_statistics(heap, &after);
		if (got.status == VMM_OK)
			continue;
		assert_int_equal(got.status, VMM_NO_MEMORY);
		assert_memory_equal(&before, &after, sizeof(before));
		failed++;
		assert_int_equal(take_in(heap, 1, 2 * i, 0, 0).status, VMM_OK);
	}
	assert_true(failed > 5);
	for (uint32_t n = 1; n <= 3; n++) {
		vmm_calloc_fail_after(n);
		assert_int_equal(vmm_range_heap_create(PAGE, PAGE, &untouched), VMM_NO_MEMORY);
		assert_ptr_equal(untouched, heap);
	}
	vmm_calloc_fail_after(0);
	vmm_range_heap_destroy(heap);
}

static void the_walk_goes_in_address_order(void **state)
{
	struct vmm_range_heap *heap = make_heap(20);
	struct got a = take(heap, 4), b = take(heap, 5), c = take(heap, 6);
	vmm_range_node node;

	(void)state;
	give(heap, b);
	node = vmm_range_next(heap, VMM_RANGE_NONE);
	assert_int_equal(node, a.node);
	node = vmm_range_next(heap, node);
	assert_true(vmm_range_is_free(heap, node));
	assert_null(vmm_range_owner(heap, node));
	assert_int_equal(vmm_range_offset(heap, node), 4 * PAGE);
	assert_int_equal(vmm_range_size(heap, node), 5 * PAGE);
	node = vmm_range_next(heap, node);
	assert_int_equal(node, c.node);
	assert_ptr_equal(vmm_range_owner(heap, node), heap);
	node = vmm_range_next(heap, node);
	assert_true(vmm_range_is_free(heap, node));
	assert_int_equal(vmm_range_next(heap, node), VMM_RANGE_NONE);
	vmm_range_heap_destroy(heap);
}

static void range_nodes_stay_valid_when_the_metadata_grows(void **state)
{
	enum { RANGES = 3000 };
	struct vmm_range_heap *heap = make_heap(2 * RANGES);
	static struct got ranges[RANGES];

	(void)state;
	for (unsigned i = 0; i < RANGES; i++) {
		struct vmm_range_request one = {.size_bytes = 2 * PAGE, .owner = &ranges[i]};

		assert_int_equal(vmm_range_allocate(heap, &one, &ranges[i].node, &ranges[i].page),
				 VMM_OK);
	}
	for (unsigned i = 0; i < RANGES; i++) {
		assert_int_equal(vmm_range_offset(heap, ranges[i].node), ranges[i].page);
		assert_ptr_equal(vmm_range_owner(heap, ranges[i].node), &ranges[i]);
	}
	for (unsigned i = 0; i < RANGES; i += 2)
		vmm_range_free(heap, ranges[i].node);
	vmm_range_check(heap);
	assert_figures(heap, RANGES, 2, RANGES / 2, RANGES / 2);
	for (unsigned i = 1; i < RANGES; i += 2)
		vmm_range_free(heap, ranges[i].node);
	assert_figures(heap, 2 * RANGES, 2 * RANGES, 0, 1);
	vmm_range_check(heap);
	vmm_range_heap_destroy(heap);
}

static void the_largest_heap_works_to_its_last_page(void **state)
{
	uint64_t pages = ((uint64_t)1 << 31) - 1;
	struct vmm_range_heap *heap = make_heap(pages);
	struct got all;

	(void)state;
	assert_figures(heap, pages, pages, 0, 1);
	assert_int_equal(take_in(heap, 1, 0, 0, VMM_RANGE_FROM_END).page, pages - 1);
	all = take(heap, pages - 1);
	assert_int_equal(all.page, 0);
	give(heap, all);
	assert_int_equal(take_in(heap, 3, pages - 4, 0, 0).page, pages - 4);
	vmm_range_heap_destroy(heap);
}

struct misuse {
	struct vmm_range_heap *heap;
	vmm_range_node node;
};

static void free_twice(void *arg)
{
	struct misuse *misuse = arg;

	vmm_range_free(misuse->heap, misuse->node);
	vmm_range_free(misuse->heap, misuse->node);
}

static void free_a_hole(void *arg)
{
	struct misuse *misuse = arg;

	vmm_range_free(misuse->heap, vmm_range_next(misuse->heap, misuse->node));
}

static void free_none(void *arg)
{
	vmm_range_free(((struct misuse *)arg)->heap, VMM_RANGE_NONE);
}

static void free_zero(void *arg)
{
	vmm_range_free(((struct misuse *)arg)->heap, 0);
}

static void allocate(void *arg, uint64_t size_bytes, uint64_t alignment)
{
	struct vmm_range_request bad = {.size_bytes = size_bytes, .alignment = alignment};
	vmm_range_node node;
	uint64_t offset;

	if (vmm_range_allocate(((struct misuse *)arg)->heap, &bad, &node, &offset) != VMM_OK)
		_exit(2);
}

static void allocate_nothing(void *arg)
{
	allocate(arg, 0, 0);
}

static void allocate_half_a_page(void *arg)
{
	allocate(arg, PAGE + PAGE / 2, 0);
}

static void allocate_aligned_to_three_pages(void *arg)
{
	allocate(arg, PAGE, 3 * PAGE);
}

static void internal_misuse_asserts(void **state)
{
	struct vmm_range_heap *heap = make_heap(10);
	struct misuse misuse = {.heap = heap, .node = take(heap, 2).node};

	(void)state;
	assert_true(aborts(free_twice, &misuse));
	assert_true(aborts(free_a_hole, &misuse));
	assert_true(aborts(free_none, &misuse));
	assert_true(aborts(free_zero, &misuse));
	assert_true(aborts(allocate_nothing, &misuse));
	assert_true(aborts(allocate_half_a_page, &misuse));
	assert_true(aborts(allocate_aligned_to_three_pages, &misuse));
	vmm_range_heap_destroy(heap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(invalid_heap_sizes_are_refused),
		cmocka_unit_test(alf_17_from_end_starts_at_the_end_of_the_segment),
		cmocka_unit_test(seg_15_a_bank_is_searched_upward_or_downward),
		cmocka_unit_test(seg_15_a_full_bank_fails_although_the_segment_has_free_space),
		cmocka_unit_test(an_unaligned_window_shrinks_to_whole_pages),
		cmocka_unit_test(alignment_leaves_a_free_range_in_front),
		cmocka_unit_test(an_alignment_beyond_the_heap_leaves_offset_zero),
		cmocka_unit_test(a_freed_range_is_merged_with_free_neighbors),
		cmocka_unit_test(the_best_fitting_hole_is_taken),
		cmocka_unit_test(a_hole_that_fits_is_found_behind_many_that_do_not),
		cmocka_unit_test(an_aligned_hole_is_found_behind_many_that_are_not),
		cmocka_unit_test(a_tight_heap_fills_from_its_low_end),
		cmocka_unit_test(a_full_heap_fails_and_changes_nothing),
		cmocka_unit_test(a_failed_metadata_allocation_changes_nothing),
		cmocka_unit_test(the_walk_goes_in_address_order),
		cmocka_unit_test(range_nodes_stay_valid_when_the_metadata_grows),
		cmocka_unit_test(the_largest_heap_works_to_its_last_page),
		cmocka_unit_test(internal_misuse_asserts),
	};

	return cmocka_run_group_tests_name("range", tests, NULL, NULL);
}
