/* SPDX-License-Identifier: MIT */
/*
 * test_range_outermost [SEED]: in a heap with thousands of holes, the place of each request in a
 * window or from the end is that of a search through all holes in address order.
 */
#include <stdlib.h>

#include "support/test.h"

#include "range/range.h"

#define PAGE     ((uint64_t)4096)
#define UNITS    (UINT64_C(1) << 18)
#define LIVE_MAX 3000u
#define STEPS    12000u
#define SEEDS    6u
#define NOWHERE  UINT64_MAX

static uint64_t only_seed;

struct churn {
	struct vmm_range_heap *heap;
	uint64_t random;
	vmm_range_node live[LIVE_MAX];
	uint32_t live_count;
	uint32_t outermost; /* such requests that found a place */
};

static uint64_t draw(struct churn *churn, uint64_t below)
{
	churn->random = churn->random * 6364136223846793005u + 1442695040888963407u;
	return (churn->random >> 33) % below;
}

/* Most holes are small, so that a large request has to pass many of them. */
static uint64_t draw_bytes(struct churn *churn)
{
	uint64_t pages = UINT64_C(1) << draw(churn, 9);

	return (pages + draw(churn, pages)) * PAGE;
}

/* The place that the request has in a hole; NOWHERE: it does not fit. */
static uint64_t place_in(uint64_t low, uint64_t high, const struct vmm_range_request *request)
{
	uint64_t alignment = request->alignment ? request->alignment : PAGE, at;

	low = low > request->low ? low : request->low;
	high = request->high && request->high < high ? request->high : high;
	if (high < low || high - low < request->size_bytes)
		return NOWHERE;
	at = request->flags & VMM_RANGE_FROM_END
		     ? (high - request->size_bytes) / alignment * alignment
		     : (low + alignment - 1) / alignment * alignment;
	return at >= low && at + request->size_bytes <= high ? at : NOWHERE;
}

static uint64_t expected_place(const struct churn *churn, const struct vmm_range_request *request)
{
	uint64_t found = NOWHERE;

	for (vmm_range_node node = vmm_range_next(churn->heap, VMM_RANGE_NONE);
	     node != VMM_RANGE_NONE; node = vmm_range_next(churn->heap, node)) {
		uint64_t low = vmm_range_offset(churn->heap, node), at;

		if (!vmm_range_is_free(churn->heap, node))
			continue;
		at = place_in(low, low + vmm_range_size(churn->heap, node), request);
		if (at == NOWHERE)
			continue;
		found = at;
		if (!(request->flags & VMM_RANGE_FROM_END))
			break;
	}
	return found;
}

static struct vmm_range_request draw_request(struct churn *churn, bool outermost)
{
	struct vmm_range_request request = {.size_bytes = draw_bytes(churn), .owner = churn};
	uint64_t kind = draw(churn, 4);

	if (!outermost)
		return request;
	if (kind != 0) {
		request.low = draw(churn, UNITS) * PAGE;
		request.high = request.low + (1 + draw(churn, UNITS)) * PAGE;
	}
	if (kind != 1)
		request.flags = VMM_RANGE_FROM_END;
	if (!draw(churn, 4))
		request.alignment = PAGE << draw(churn, 6);
	return request;
}

static void allocate(struct churn *churn, bool outermost)
{
	const struct vmm_range_request request = draw_request(churn, outermost);
	bool starved = outermost && !draw(churn, 32);
	vmm_range_node node;
	uint64_t at, expected = outermost ? expected_place(churn, &request) : NOWHERE;

	if (starved)
		vmm_calloc_fail_after(1);
	vmm_status status = vmm_range_allocate(churn->heap, &request, &node, &at);
	vmm_calloc_fail_after(0);
	if (status == VMM_OK)
		churn->live[churn->live_count++] = node;
	if (!outermost || (starved && status == VMM_NO_MEMORY))
		return;
	assert_int_equal(status, expected == NOWHERE ? VMM_NO_VIDEO_MEMORY : VMM_OK);
	if (expected == NOWHERE)
		return;
	assert_int_equal(at, expected);
	churn->outermost++;
}

static void free_one(struct churn *churn)
{
	uint32_t victim = (uint32_t)draw(churn, churn->live_count);

	vmm_range_free(churn->heap, churn->live[victim]);
	churn->live[victim] = churn->live[--churn->live_count];
}

static void run(uint64_t seed)
{
	struct churn churn = {.random = seed};

	print_message("# seed %llu\n", (unsigned long long)seed);
	assert_int_equal(vmm_range_heap_create(UNITS * PAGE, PAGE, &churn.heap), VMM_OK);
	for (uint32_t step = 0; step < STEPS; step++) {
		bool full = churn.live_count == LIVE_MAX;

		if (full || (churn.live_count > LIVE_MAX / 2 && draw(&churn, 2)))
			free_one(&churn);
		else
			allocate(&churn, churn.live_count > LIVE_MAX / 4 && draw(&churn, 2));
		if (step % 256 == 0)
			vmm_range_check(churn.heap);
	}
	assert_true(churn.outermost > STEPS / 20);
	while (churn.live_count)
		free_one(&churn);
	vmm_range_check(churn.heap);
	vmm_range_heap_destroy(churn.heap);
}

static void the_place_is_that_of_a_search_through_all_holes(void **state)
{
	(void)state;
	if (only_seed)
		run(only_seed);
	for (uint64_t seed = 1; !only_seed && seed <= SEEDS; seed++)
		run(seed);
}

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_place_is_that_of_a_search_through_all_holes),
	};

	if (count > 1)
		only_seed = strtoull(arguments[1], NULL, 0);
	return cmocka_run_group_tests_name("range_outermost", tests, NULL, NULL);
}
