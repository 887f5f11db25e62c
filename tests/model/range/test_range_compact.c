/* SPDX-License-Identifier: MIT */
/*
 * Compaction: ranges of random sizes are allocated and freed in a heap of 1 GiB that is filled to a
 * given part. A request that does not fit in one piece is served by moving other ranges. Every plan
 * is checked before it is executed: sources, destinations and the resulting hole must not overlap,
 * and ranges that may not move stay.
 */
#include <stdlib.h>
#include <string.h>

#include "support/test.h"

#include "range/range.h"

#define PAGE   ((uint64_t)4096)
#define HEAP   ((uint64_t)1 << 30)
#define RANGES 65536u
#define PLACED 20000u
#define PART   10000u /* results are in units of 1 / PART */

struct live {
	uint64_t pages;
	vmm_range_node node;
	bool stays;
	bool from_end;
};

struct churn {
	uint64_t random, live_pages;
	/*
	 * typical sizes of GPU allocations, else spread evenly over the powers of two up to 16 MiB
	 */
	bool mix;
	uint32_t staying_of_16;
	struct vmm_range_heap *heap;
	struct live *live[RANGES]; /* the owners */
	uint32_t count;
	struct vmm_range_compaction plan;
	uint64_t asked, placed, moved_pages, moves;
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

static void describe(const struct live *live, struct vmm_range_request *request)
{
	request->flags = live->from_end ? VMM_RANGE_FROM_END : 0;
}

static bool may_move(void *context, void *owner, struct vmm_range_request *request)
{
	const struct live *live = owner;

	assert_non_null(context);
	assert_non_null(live);
	if (live->stays)
		return false;
	describe(live, request);
	return true;
}

static void drop_random(struct churn *churn)
{
	uint32_t index = (uint32_t)draw(churn, churn->count);
	struct live *live = churn->live[index];

	vmm_range_free(churn->heap, live->node);
	churn->live_pages -= live->pages;
	churn->live[index] = churn->live[--churn->count];
	free(live);
}

static bool disjoint(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size)
{
	return a + a_size <= b || b + b_size <= a;
}

static void check_plan(const struct churn *churn, uint64_t size)
{
	const struct vmm_range_compaction *plan = &churn->plan;
	uint64_t bytes = 0;

	assert_true(plan->moves > 0);
	for (uint32_t i = 0; i < plan->moves; i++) {
		uint64_t from = vmm_range_offset(churn->heap, plan->move[i].from);
		uint64_t to = vmm_range_offset(churn->heap, plan->move[i].to);
		uint64_t each = vmm_range_size(churn->heap, plan->move[i].from);
		const struct live *live = vmm_range_owner(churn->heap, plan->move[i].from);

		assert_false(live->stays);
		assert_ptr_equal(vmm_range_owner(churn->heap, plan->move[i].to), live);
		assert_int_equal(vmm_range_size(churn->heap, plan->move[i].to), each);
		assert_true(disjoint(from, each, to, each));
		/* otherwise no move would be needed */
		assert_false(disjoint(from, each, plan->offset, size));
		assert_true(disjoint(to, each, plan->offset, size));
		bytes += each;
	}
	assert_int_equal(bytes, plan->bytes);
}

static void carry_out(struct churn *churn)
{
	for (uint32_t i = 0; i < churn->plan.moves; i++) {
		struct live *live = vmm_range_owner(churn->heap, churn->plan.move[i].from);

		vmm_range_free(churn->heap, live->node);
		live->node = churn->plan.move[i].to;
	}
	churn->moves += churn->plan.moves;
	churn->moved_pages += churn->plan.bytes / PAGE;
}

static bool place(struct churn *churn, uint64_t pages, bool compact)
{
	struct live *live = calloc(1, sizeof(*live));
	struct vmm_range_request request = {.size_bytes = pages * PAGE, .owner = live};
	uint64_t offset;

	assert_non_null(live);
	live->pages = pages;
	live->stays = draw(churn, 16) < churn->staying_of_16;
	live->from_end = draw(churn, 16) == 0;
	describe(live, &request);
	vmm_status status = vmm_range_allocate(churn->heap, &request, &live->node, &offset);
	if (status == VMM_NO_VIDEO_MEMORY && compact) {
		status = vmm_range_plan_compaction(churn->heap, &request, &churn->plan);
		if (status == VMM_OK) {
			check_plan(churn, request.size_bytes);
			carry_out(churn);
			request.low = churn->plan.offset;
			request.high = request.low + request.size_bytes;
			assert_int_equal(
				vmm_range_allocate(churn->heap, &request, &live->node, &offset),
				VMM_OK);
		}
	}
	if (status != VMM_OK) {
		free(live);
		return false;
	}
	assert_true(churn->count < RANGES);
	churn->live[churn->count++] = live;
	churn->live_pages += pages;
	return true;
}

/* The part of the requests that succeed while that percentage of the heap is in use with them. */
static uint64_t success(struct churn *churn, uint32_t percent, bool compact)
{
	churn->plan = (struct vmm_range_compaction){.may_move = may_move, .context = churn};
	assert_int_equal(vmm_range_heap_create(HEAP, PAGE, &churn->heap), VMM_OK);
	for (uint32_t i = 0; i < PLACED; i++) {
		uint64_t pages = draw_pages(churn);

		while (churn->live_pages + pages > HEAP / PAGE * percent / 100)
			drop_random(churn);
		churn->asked += pages;
		churn->placed += place(churn, pages, compact);
		if (i % 1024 == 0)
			vmm_range_check(churn->heap);
	}
	vmm_range_check(churn->heap);
	while (churn->count)
		drop_random(churn);
	vmm_range_heap_destroy(churn->heap);
	return churn->placed * PART / PLACED;
}

static uint64_t compare(uint32_t percent, bool mix, uint32_t staying_of_16)
{
	static struct churn plain, compacted;

	memset(&plain, 0, sizeof(plain));
	plain.random = percent;
	plain.mix = mix;
	plain.staying_of_16 = staying_of_16;
	compacted = plain;
	uint64_t without = success(&plain, percent, false),
		 with = success(&compacted, percent, true);
	print_message("# %u %% load, %s, %u of 16 fixed: %llu of %u succeed without compaction, "
		      "%llu with; %llu moves of %llu of 10000 of the requested bytes\n",
		      percent, mix ? "GPU sizes" : "all magnitudes", staying_of_16,
		      (unsigned long long)without, PART, (unsigned long long)with,
		      (unsigned long long)compacted.moves,
		      (unsigned long long)(compacted.moved_pages * PART / compacted.asked));
	assert_true(with >= without);
	return with;
}

static void with_a_tenth_free_compaction_serves_every_request(void **state)
{
	(void)state;
	for (uint32_t mix = 0; mix < 2; mix++) {
		assert_int_equal(compare(80, mix, 0), PART);
		assert_int_equal(compare(90, mix, 0), PART);
	}
}

static void with_a_twentieth_free_compaction_serves_nearly_every_request(void **state)
{
	(void)state;
	assert_true(compare(95, false, 0) >= PART * 99 / 100);
	assert_true(compare(95, true, 0) >= PART * 99 / 100);
}

static void compaction_works_around_fixed_ranges(void **state)
{
	(void)state;
	compare(90, true, 2);
	compare(90, true, 8);
}

static void a_failed_compaction_changes_nothing(void **state)
{
	struct vmm_range_compaction plan = {.may_move = may_move, .context = &plan};
	struct live stays = {.stays = true}, moves = {.stays = false};
	struct vmm_range_request request = {.size_bytes = 8 * PAGE, .owner = &moves};
	struct vmm_range_statistics before, after;
	struct vmm_range_heap *heap;
	vmm_range_node node[8];
	uint64_t offset;

	(void)state;
	assert_int_equal(vmm_range_heap_create(64 * PAGE, PAGE, &heap), VMM_OK);
	for (uint32_t i = 0; i < 8; i++) { /* eight eighths, every other of which is fixed */
		request.owner = i % 2 ? &stays : &moves;
		assert_int_equal(vmm_range_allocate(heap, &request, &node[i], &offset), VMM_OK);
	}
	vmm_range_free(heap, node[0]);
	vmm_range_free(heap, node[4]);
	vmm_range_statistics(heap, &before);
	request.size_bytes = 16 * PAGE; /* as large as all free space */
	assert_int_equal(vmm_range_plan_compaction(heap, &request, &plan), VMM_NO_VIDEO_MEMORY);
	request.size_bytes = 17 * PAGE;
	assert_int_equal(vmm_range_plan_compaction(heap, &request, &plan), VMM_NO_VIDEO_MEMORY);
	assert_int_equal(plan.moves, 0);
	vmm_range_statistics(heap, &after);
	assert_memory_equal(&before, &after, sizeof(before));
	vmm_range_free(heap, node[3]); /* between a movable range and a hole: now a plan exists */
	request.size_bytes = 16 * PAGE + 8 * PAGE;
	assert_int_equal(vmm_range_plan_compaction(heap, &request, &plan), VMM_OK);
	assert_int_equal(plan.moves, 1);
	assert_int_equal(plan.move[0].from, node[2]);
	assert_int_equal(vmm_range_offset(heap, plan.move[0].to), 0);
	assert_int_equal(plan.offset, 16 * PAGE);
	vmm_range_compaction_undo(heap, &plan);
	vmm_range_check(heap);
	vmm_range_heap_destroy(heap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(with_a_tenth_free_compaction_serves_every_request),
		cmocka_unit_test(with_a_twentieth_free_compaction_serves_nearly_every_request),
		cmocka_unit_test(compaction_works_around_fixed_ranges),
		cmocka_unit_test(a_failed_compaction_changes_nothing),
	};

	return cmocka_run_group_tests_name("range_compact", tests, NULL, NULL);
}
