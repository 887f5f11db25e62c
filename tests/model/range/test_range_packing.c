/* SPDX-License-Identifier: MIT */
/*
 * How well the heap packs, compared with an exact best fit that examines every hole. Allocations of
 * random sizes go into a heap that is always full: when one fails, random ranges are freed until it
 * fits. Measured are the part of the heap in use at the moments of failure, and how many
 * allocations succeed when a tenth of the heap is free.
 */
#include <string.h>

#include "support/test.h"

#include "range/range.h"

#define PAGE    ((uint64_t)4096)
#define RANGES  65536u
#define PLACED  20000u
#define SETTLED 4000u /* after these the heap is in its steady state */
#define SEEDS   6u
#define PART    10000u /* results are in units of 1 / PART */
#define WORSE   100u   /* permitted loss against the best fit, over all seeds: 1 % */

/* Exact best fit: holes sorted by address, the smallest that fits, the lowest of equals. */
struct naive {
	struct {
		uint64_t start, size;
	} holes[RANGES];
	uint32_t count;
};

static bool naive_allocate(struct naive *naive, uint64_t size, uint64_t *start)
{
	uint32_t best = UINT32_MAX;

	for (uint32_t i = 0; i < naive->count; i++)
		if (naive->holes[i].size >= size &&
		    (best == UINT32_MAX || naive->holes[i].size < naive->holes[best].size))
			best = i;
	if (best == UINT32_MAX)
		return false;
	*start = naive->holes[best].start;
	naive->holes[best].start += size;
	naive->holes[best].size -= size;
	if (!naive->holes[best].size)
		memmove(&naive->holes[best], &naive->holes[best + 1],
			(--naive->count - best) * sizeof(naive->holes[0]));
	return true;
}

/* Merges the hole at this index with the next one if they touch. */
static void naive_join(struct naive *naive, uint32_t at)
{
	if (at + 1 == naive->count ||
	    naive->holes[at].start + naive->holes[at].size != naive->holes[at + 1].start)
		return;
	naive->holes[at].size += naive->holes[at + 1].size;
	naive->count--;
	memmove(&naive->holes[at + 1], &naive->holes[at + 2],
		(naive->count - at - 1) * sizeof(naive->holes[0]));
}

static void naive_free(struct naive *naive, uint64_t start, uint64_t size)
{
	uint32_t at = 0;

	while (at < naive->count && naive->holes[at].start < start)
		at++;
	memmove(&naive->holes[at + 1], &naive->holes[at],
		(naive->count++ - at) * sizeof(naive->holes[0]));
	naive->holes[at].start = start;
	naive->holes[at].size = size;
	naive_join(naive, at);
	if (at)
		naive_join(naive, at - 1);
}

struct live {
	uint64_t start, size;
	vmm_range_node node;
};

struct churn {
	uint64_t random, pages, live_pages;
	/*
	 * typical sizes of GPU allocations, else spread evenly over the powers of two up to 16 MiB
	 */
	bool mix;
	struct vmm_range_heap *heap; /* NULL: the naive heap */
	struct naive *naive;
	struct live live[RANGES];
	uint32_t count;
};

static uint64_t draw(struct churn *churn, uint64_t below)
{
	churn->random = churn->random * 6364136223846793005u + 1442695040888963407u;
	return (churn->random >> 33) % below;
}

static uint64_t draw_pages(struct churn *churn)
{
	/* render targets of 720p to 1440p */
	static const uint64_t targets[] = {900, 2025, 4050, 3600};
	uint64_t kind = draw(churn, 20), pages = (uint64_t)1 << draw(churn, 12);

	if (!churn->mix || kind >= 18)
		return pages + draw(churn, pages);
	if (kind < 8)
		return (uint64_t)1 << draw(churn, 5);
	/* textures */
	if (kind < 16)
		return (uint64_t)64 << 2 * draw(churn, 4);
	return targets[draw(churn, 4)];
}

static bool place(struct churn *churn, uint64_t pages)
{
	struct vmm_range_request request = {.size_bytes = pages * PAGE, .owner = churn};
	struct live *live = &churn->live[churn->count];

	assert_true(churn->count < RANGES);
	if (churn->heap
		    ? vmm_range_allocate(churn->heap, &request, &live->node, &live->start) != VMM_OK
		    : !naive_allocate(churn->naive, pages, &live->start))
		return false;
	live->size = pages;
	churn->live_pages += pages;
	churn->count++;
	return true;
}

static void drop_random(struct churn *churn)
{
	struct live *live = &churn->live[draw(churn, churn->count)];

	if (churn->heap)
		vmm_range_free(churn->heap, live->node);
	else
		naive_free(churn->naive, live->start, live->size);
	churn->live_pages -= live->size;
	*live = churn->live[--churn->count];
}

struct packing {
	uint64_t used_at_failure, success_at_90;
};

static struct packing measure(struct churn *churn)
{
	uint64_t used = 0, failures = 0, good = 0;

	for (uint32_t i = 0; i < PLACED; i++) {
		uint64_t pages = draw_pages(churn);
		bool counted = i < SETTLED;

		while (!place(churn, pages)) {
			used += counted ? 0 : churn->live_pages;
			failures += !counted;
			counted = true;
			drop_random(churn);
		}
	}
	for (uint32_t i = 0; i < PLACED; i++) {
		uint64_t pages = draw_pages(churn);

		while (churn->live_pages + pages > churn->pages * 9 / 10)
			drop_random(churn);
		good += place(churn, pages) && i >= SETTLED;
	}
	assert_true(failures > 100);
	return (struct packing){.used_at_failure = used / failures * PART / churn->pages,
				.success_at_90 = good * PART / (PLACED - SETTLED)};
}

static struct packing measure_ours(struct churn *churn)
{
	struct packing packing;

	assert_int_equal(vmm_range_heap_create(churn->pages * PAGE, PAGE, &churn->heap), VMM_OK);
	packing = measure(churn);
	vmm_range_check(churn->heap);
	vmm_range_heap_destroy(churn->heap);
	return packing;
}

static struct packing measure_best_fit(struct churn *churn)
{
	static struct naive naive;

	naive = (struct naive){.holes = {{.size = churn->pages}}, .count = 1};
	churn->naive = &naive;
	return measure(churn);
}

static struct packing mean(struct packing (*fn)(struct churn *churn), uint64_t heap_bytes, bool mix)
{
	static struct churn churn;
	struct packing sum = {0};

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct packing one;

		churn = (struct churn){.random = seed, .pages = heap_bytes / PAGE, .mix = mix};
		one = fn(&churn);
		sum.used_at_failure += one.used_at_failure;
		sum.success_at_90 += one.success_at_90;
	}
	return (struct packing){sum.used_at_failure / SEEDS, sum.success_at_90 / SEEDS};
}

static void compare(uint64_t heap_bytes, bool mix)
{
	struct packing ours = mean(measure_ours, heap_bytes, mix);
	struct packing best = mean(measure_best_fit, heap_bytes, mix);

	print_message("# of %u: used at failure %u (best fit %u), success at 90 %% load %u (%u)\n",
		      PART, (unsigned)ours.used_at_failure, (unsigned)best.used_at_failure,
		      (unsigned)ours.success_at_90, (unsigned)best.success_at_90);
	assert_true(ours.used_at_failure + WORSE >= best.used_at_failure);
	assert_true(ours.success_at_90 + WORSE >= best.success_at_90);
}

/* Results of the best allocators that were measured, which are slower (in units of 1 / PART). */
static void sizes_of_all_magnitudes_fill_a_heap_before_one_fails(void **state)
{
	static const struct {
		uint64_t heap_bytes;
		uint32_t least;
	} goals[] = {
		{(uint64_t)256 << 20, 7600}, {(uint64_t)1 << 30, 8150}, {(uint64_t)4 << 30, 8600}};

	(void)state;
	for (uint32_t i = 0; i < sizeof(goals) / sizeof(goals[0]); i++) {
		struct packing ours = mean(measure_ours, goals[i].heap_bytes, false);

		print_message("# %u MiB: used at failure %u of %u, goal %u\n",
			      (unsigned)(goals[i].heap_bytes >> 20), (unsigned)ours.used_at_failure,
			      PART, goals[i].least);
		assert_true(ours.used_at_failure >= goals[i].least);
	}
}

static void sizes_of_all_magnitudes_pack_as_with_an_exact_best_fit(void **state)
{
	(void)state;
	compare((uint64_t)256 << 20, false);
	compare((uint64_t)1 << 30, false);
}

static void sizes_of_a_gpu_pack_as_with_an_exact_best_fit(void **state)
{
	(void)state;
	compare((uint64_t)1 << 30, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_of_all_magnitudes_fill_a_heap_before_one_fails),
		cmocka_unit_test(sizes_of_all_magnitudes_pack_as_with_an_exact_best_fit),
		cmocka_unit_test(sizes_of_a_gpu_pack_as_with_an_exact_best_fit),
	};

	return cmocka_run_group_tests_name("range_packing", tests, NULL, NULL);
}
