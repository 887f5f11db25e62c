/* SPDX-License-Identifier: MIT */
/*
 * Free-space search in a segment: one operation frees a random range and allocates another one,
 * with sizes spread evenly over the powers of two. The peer does the same with malloc(64) in the
 * same random order: the cost that caches impose on any bookkeeping of that many objects. The goals
 * are the ratios of OffsetAllocator, the fastest known allocator of this kind, in the same loop.
 */
#include "bench.h"

#include <stdlib.h>

#include "range/range.h"

enum { DRAWS = 1 << 17, PAGE_SHIFT = 12 };

enum kind { ANYWHERE, ALIGNED, FROM_END, WINDOW, MALLOC };

struct workload {
	const char *name;
	enum kind kind;
	uint32_t live;
	uint64_t heap_bytes;
	uint32_t octaves; /* number of powers of two of the sizes, from one page */
};

#define GIB ((uint64_t)1 << 30)

static const struct workload workloads[] = {
	{"1k", ANYWHERE, 1000, 4 * GIB, 12},
	{"10k", ANYWHERE, 10000, 64 * GIB, 12},
	{"10k_full", ANYWHERE, 10000, 24 * GIB, 12},
	{"100k", ANYWHERE, 100000, 512 * GIB, 12},
	{"10k_aligned", ALIGNED, 10000, 64 * GIB, 12},
	{"10k_from_end", FROM_END, 10000, 64 * GIB, 12},
	{"10k_window", WINDOW, 10000, 64 * GIB, 12},
	{"malloc_1k", MALLOC, 1000, 0, 0},
	{"malloc_10k", MALLOC, 10000, 0, 0},
	{"malloc_100k", MALLOC, 100000, 0, 0},
};

struct churn {
	const struct workload *workload;
	struct vmm_range_heap *heap;
	vmm_range_node *nodes;
	void **blocks;
	uint32_t *victims;
	uint64_t *sizes;
	uint32_t at;
};

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *seed >> 33;
}

/* Draws a size. All powers of two up to the largest are equally likely. */
static uint64_t draw_size(uint64_t *seed, uint32_t octaves)
{
	uint64_t pages = (uint64_t)1 << next_random(seed) % octaves;

	return (pages + next_random(seed) % pages) << PAGE_SHIFT;
}

static vmm_range_node place(struct churn *churn, uint64_t size_bytes)
{
	struct vmm_range_request request = {.size_bytes = size_bytes, .owner = churn};
	vmm_range_node node;
	uint64_t offset;

	if (churn->workload->kind == ALIGNED)
		request.alignment = 64 << 10;
	if (churn->workload->kind == FROM_END)
		request.flags = VMM_RANGE_FROM_END;
	if (churn->workload->kind == WINDOW)
		request.high = churn->workload->heap_bytes / 2;
	if (vmm_range_allocate(churn->heap, &request, &node, &offset) != VMM_OK)
		return VMM_RANGE_NONE;
	return node;
}

static void churn_destroy(void *state)
{
	struct churn *churn = state;

	for (uint32_t i = 0; churn->blocks && i < churn->workload->live; i++)
		free(churn->blocks[i]);
	vmm_range_heap_destroy(churn->heap);
	free(churn->nodes);
	free(churn->blocks);
	free(churn->victims);
	free(churn->sizes);
	free(churn);
}

static bool fill(struct churn *churn, uint64_t *seed)
{
	const struct workload *workload = churn->workload;

	if (workload->kind != MALLOC &&
	    vmm_range_heap_create(workload->heap_bytes, (uint64_t)1 << PAGE_SHIFT, &churn->heap) !=
		    VMM_OK)
		return false;
	for (uint32_t i = 0; i < workload->live; i++) {
		if (workload->kind == MALLOC)
			churn->blocks[i] = malloc(64);
		else
			churn->nodes[i] = place(churn, draw_size(seed, workload->octaves));
	}
	for (uint32_t i = 0; i < DRAWS; i++) {
		churn->victims[i] = (uint32_t)(next_random(seed) % workload->live);
		churn->sizes[i] =
			workload->kind == MALLOC ? 64 : draw_size(seed, workload->octaves);
	}
	return true;
}

static void *churn_create(const struct bench_case *self)
{
	uint64_t seed = 1;
	struct churn *churn = calloc(1, sizeof(*churn));

	if (!churn)
		return NULL;
	churn->workload = &workloads[self->parameter];
	churn->nodes = calloc(churn->workload->live, sizeof(*churn->nodes));
	churn->blocks = calloc(churn->workload->live, sizeof(*churn->blocks));
	churn->victims = calloc(DRAWS, sizeof(*churn->victims));
	churn->sizes = calloc(DRAWS, sizeof(*churn->sizes));
	if (churn->nodes && churn->blocks && churn->victims && churn->sizes && fill(churn, &seed))
		return churn;
	churn_destroy(churn);
	return NULL;
}

static void run_ranges(void *state, uint64_t steps)
{
	struct churn *churn = state;

	for (uint64_t i = 0; i < steps; i++) {
		uint32_t at = churn->at++ % DRAWS, victim = churn->victims[at];

		/* NONE: the previous allocation found no free space */
		if (churn->nodes[victim] != VMM_RANGE_NONE)
			vmm_range_free(churn->heap, churn->nodes[victim]);
		churn->nodes[victim] = place(churn, churn->sizes[at]);
	}
}

static void run_malloc(void *state, uint64_t steps)
{
	struct churn *churn = state;

	for (uint64_t i = 0; i < steps; i++) {
		uint32_t at = churn->at++ % DRAWS, victim = churn->victims[at];

		free(churn->blocks[victim]);
		churn->blocks[victim] = malloc(churn->sizes[at]);
	}
}

#define RANGE(index, text, against, most)                                              \
	BENCH(.name = "range.pair_" text, .parameter = (index), .setup = churn_create, \
	      .run = run_ranges, .teardown = churn_destroy, .peer = (against),         \
	      .ratio_max = (most))
RANGE(0, "1k", "range.malloc_1k", 3.1);
RANGE(1, "10k", "range.malloc_10k", 3.1);
RANGE(2, "10k_full", "range.malloc_10k", 3.1);
RANGE(3, "100k", "range.malloc_100k", 3.1);
RANGE(4, "10k_aligned", "range.pair_10k", 0);
RANGE(5, "10k_from_end", "range.pair_10k", 2);
RANGE(6, "10k_window", "range.pair_10k", 2);

#define MALLOC_PAIR(index, text)                                                         \
	BENCH(.name = "range.malloc_" text, .parameter = (index), .setup = churn_create, \
	      .run = run_malloc, .teardown = churn_destroy)
MALLOC_PAIR(7, "1k");
MALLOC_PAIR(8, "10k");
MALLOC_PAIR(9, "100k");
