/* SPDX-License-Identifier: MIT */
/*
 * Paging through the UMD door: a working set four times as large as video memory, all of it
 * written. Each submission references the part that was evicted longest ago. The peer copies as
 * many bytes as a step moves in and out together. The host is sim: the engine copies on the same
 * CPU, and the time includes the work of the library.
 */
#include "bare.h"
#include "bench.h"
#include "bench_client.h"

#include <stdlib.h>

#define VRAM_BYTES    (UINT64_C(32) << 20)
#define WORKING_BYTES (4 * VRAM_BYTES)
#define MOVED_BYTES   (UINT64_C(64) << 20) /* bytes that one step moves */
#define NAMED_BYTES   (UINT64_C(8) << 20)  /* bytes that one submission references */

/* A bit of a case's parameter; the others are the size of an allocation, a multiple of 4 KiB. */
#define WITH_LRU UINT64_C(1)

struct paging {
	struct bench_client client;
	enum vidmm_eviction_policy policy;
	D3DKMT_HANDLE *allocations;
	uint64_t allocation_bytes;
	uint32_t count, next;
};

static void paging_destroy(void *state)
{
	struct paging *p = state;

	bench_client_finish(&p->client);
	free(p->allocations);
	free(p);
}

static bool start(struct paging *p)
{
	const struct vidmm_registry_value registry[] = {{"EngineBytesPerUs", 0},
							{"VidmmEvictionPolicy", p->policy}};
	const struct vidmm_adapter_options options = {.registry = registry, .registry_count = 2};

	return bench_client_start(&p->client, VRAM_BYTES, &options);
}

static bool allocate(struct paging *p)
{
	p->count = (uint32_t)(WORKING_BYTES / p->allocation_bytes);
	p->allocations = calloc(p->count, sizeof(*p->allocations));
	if (!p->allocations)
		return false;
	for (uint32_t i = 0; i < p->count; i++)
		if (!bench_client_allocate(&p->client, p->allocation_bytes, &p->allocations[i]))
			return false;
	return true;
}

/* Submits a buffer that writes the next NAMED_BYTES of the working set, which are a part of it. */
static void submit(struct paging *p)
{
	uint32_t named = (uint32_t)(NAMED_BYTES / p->allocation_bytes);

	bench_client_write(&p->client, &p->allocations[p->next], named);
	p->next = (p->next + named) % p->count;
}

static uint64_t bytes_moved(struct paging *p)
{
	struct vidmm_adapter_statistics statistics = {.struct_size = sizeof(statistics)};

	vidmm_adapter_statistics(p->client.adapter, &statistics);
	return statistics.bytes_paged_in + statistics.bytes_paged_out;
}

static void run_paging(void *state, uint64_t steps)
{
	struct paging *p = state;
	uint64_t moved = bytes_moved(p);

	for (uint64_t done = 0; done < steps * MOVED_BYTES / 2; done += NAMED_BYTES)
		submit(p);
	vidmm_adapter_wait_idle(p->client.adapter);
	/* another number of bytes was moved: the measurement would be wrong */
	if (bytes_moved(p) - moved != steps * MOVED_BYTES)
		abort();
}

/*
 * PARAMETER is the size of an allocation, and WITH_LRU if the least recently used one is evicted
 * instead of the default policy's victim. The working set is paged twice: afterwards every page has
 * been touched.
 */
static void *paging_create(const struct bench_case *self)
{
	struct paging *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->allocation_bytes = self->parameter & ~WITH_LRU;
	p->policy = self->parameter & WITH_LRU ? VIDMM_EVICTION_LRU : VIDMM_EVICTION_POLICY_DEFAULT;
	if (!start(p) || !allocate(p)) {
		paging_destroy(p);
		return NULL;
	}
	for (uint64_t done = 0; done < 2 * WORKING_BYTES; done += NAMED_BYTES)
		submit(p);
	vidmm_adapter_wait_idle(p->client.adapter);
	return p;
}

/* The goal is 95 % of the throughput of non-temporal copies, the fastest at these sizes. */
BENCH(.name = "paging.quarter_1m", .bytes = MOVED_BYTES, .peer = "floor.stream_copy_64m",
      .ratio_max = 1 / 0.95, .parameter = UINT64_C(1) << 20, .setup = paging_create,
      .run = run_paging, .teardown = paging_destroy);
BENCH(.name = "paging.quarter_8m", .bytes = MOVED_BYTES, .peer = "floor.stream_copy_64m",
      .ratio_max = 1 / 0.95, .parameter = UINT64_C(8) << 20, .setup = paging_create,
      .run = run_paging, .teardown = paging_destroy);
/* The copies are small, and also from DRAM. */
BENCH(.name = "paging.quarter_64k", .bytes = MOVED_BYTES, .peer = "floor.memcpy_64m",
      .ratio_max = 1 / 0.95, .parameter = UINT64_C(64) << 10, .setup = paging_create,
      .run = run_paging, .teardown = paging_destroy);

/* ---- without copies: the library's cost of an eviction and a page-in ---- */

static void *bookkeeping_create(const struct bench_case *self)
{
	bench_bare(BENCH_NO_PAGING);
	void *state = paging_create(self);
	bench_bare(BENCH_WHOLE);
	return state;
}

/*
 * Each referenced allocation evicts one and is paged in; the peer allocates one range. The time
 * includes the reference and two DDI calls. The row of LRU leaves out what the default policy
 * costs.
 */
BENCH(.name = "paging.evicted_64k", .per_run = MOVED_BYTES / 2 / (UINT64_C(64) << 10),
      .peer = "range.pair_10k", .parameter = UINT64_C(64) << 10, .setup = bookkeeping_create,
      .run = run_paging, .teardown = paging_destroy);
BENCH(.name = "paging.evicted_lru_64k", .per_run = MOVED_BYTES / 2 / (UINT64_C(64) << 10),
      .peer = "range.pair_10k", .parameter = (UINT64_C(64) << 10) | WITH_LRU,
      .setup = bookkeeping_create, .run = run_paging, .teardown = paging_destroy);
