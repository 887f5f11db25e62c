/* SPDX-License-Identifier: MIT */
/*
 * Creation and destruction of allocations through the UMD door: one operation destroys a random
 * live allocation and creates another. It includes the events and the calls of the four allocation
 * DDIs, which do nothing here (in create.softgpu_pair they are softgpu's). No memory is touched,
 * because a new allocation is not resident. The peer is malloc(64) and free with as many live
 * blocks in the same random order: the cost that caches impose on any bookkeeping of that many
 * objects.
 */
#include "bare.h"
#include "bench.h"

#include <stdlib.h>
#include <d3dumddi.h>
#include <vidmm/softgpu.h>
#include <vidmm/vidmm.h>

enum { DRAWS = 1 << 16 };

struct workload {
	uint64_t size_bytes; /* 0: malloc(64) */
	uint32_t live;
	bool softgpu;
};

static const struct workload workloads[] = {
	{64 << 10, 1, false},   {1 << 20, 1, false}, {16 << 20, 1, false}, {64 << 10, 1000, false},
	{4096, 1000000, false}, {0, 1, false},       {0, 1000, false},     {0, 1000000, false},
	{64 << 10, 1, true},    {4096, 1000, false}, {4096, 10000, false}, {4096, 100000, false},
};

struct churn {
	const struct workload *workload;
	struct vidmm_host *host;
	struct vidmm_adapter *adapter;
	struct vidmm_process *process;
	struct vidmm_device *device;
	const D3DDDI_DEVICECALLBACKS *callbacks;
	void *handle;
	D3DKMT_HANDLE *allocations;
	void **blocks;
	uint32_t *victims;
	uint32_t at, failures;
};

static D3DKMT_HANDLE create(struct churn *churn)
{
	struct softgpu_allocation description = {.version = SOFTGPU_ALLOCATION_VERSION,
						 .flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
						 .size_bytes = churn->workload->size_bytes};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &description,
				      .PrivateDriverDataSize = sizeof(description)};
	D3DDDICB_ALLOCATE args = {.NumAllocations = 1, .pAllocationInfo = &info};

	if (churn->callbacks->pfnAllocateCb(churn->handle, &args) != S_OK)
		churn->failures++;
	return info.hAllocation;
}

static void destroy(struct churn *churn, D3DKMT_HANDLE allocation)
{
	D3DDDICB_DEALLOCATE args = {.NumAllocations = 1, .HandleList = &allocation};

	if (churn->callbacks->pfnDeallocateCb(churn->handle, &args) != S_OK)
		churn->failures++;
}

static bool open_device(struct churn *churn)
{
	static const uint64_t bar_bytes = 256 << 20;
	struct vidmm_host_options host = {.struct_size = sizeof(host), .kind = VIDMM_HOST_LINUX};
	struct vidmm_adapter_options adapter = {.struct_size = sizeof(adapter),
						.driver_entry = softgpu_driver_entry,
						.bar_sizes = &bar_bytes,
						.bar_count = 1};

	if (vidmm_host_create(&host, &churn->host) < 0)
		return false;
	bench_bare(churn->workload->softgpu ? BENCH_WHOLE : BENCH_NO_OBJECTS);
	vidmm_status status = vidmm_adapter_start(churn->host, &adapter, &churn->adapter);
	bench_bare(BENCH_WHOLE);
	if (status < 0 || vidmm_process_open(churn->host, "bench", &churn->process) < 0 ||
	    vidmm_device_create(churn->process, churn->adapter, &churn->device) < 0)
		return false;
	churn->callbacks = vidmm_device_callbacks(churn->device);
	churn->handle = vidmm_device_handle(churn->device);
	return true;
}

/* Destroying the device destroys its live allocations. */
static void close_device(struct churn *churn)
{
	vidmm_device_destroy(churn->device);
	vidmm_process_close(churn->process);
	vidmm_adapter_stop(churn->adapter);
	vidmm_host_destroy(churn->host);
}

static void churn_destroy(void *state)
{
	struct churn *churn = state;

	for (uint32_t i = 0; churn->blocks && i < churn->workload->live; i++)
		free(churn->blocks[i]);
	close_device(churn);
	free(churn->allocations);
	free(churn->blocks);
	free(churn->victims);
	free(churn);
}

static bool fill(struct churn *churn)
{
	uint64_t seed = 1;
	uint32_t live = churn->workload->live;

	if (churn->workload->size_bytes && !open_device(churn))
		return false;
	for (uint32_t i = 0; i < live; i++) {
		if (churn->workload->size_bytes)
			churn->allocations[i] = create(churn);
		else
			churn->blocks[i] = malloc(64);
	}
	for (uint32_t i = 0; i < DRAWS; i++) {
		seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		churn->victims[i] = (uint32_t)((seed >> 33) % live);
	}
	return churn->failures == 0;
}

static void *churn_create(const struct bench_case *self)
{
	struct churn *churn = calloc(1, sizeof(*churn));

	if (!churn)
		return NULL;
	churn->workload = &workloads[self->parameter];
	churn->allocations = calloc(churn->workload->live, sizeof(*churn->allocations));
	churn->blocks = calloc(churn->workload->live, sizeof(*churn->blocks));
	churn->victims = calloc(DRAWS, sizeof(*churn->victims));
	if (churn->allocations && churn->blocks && churn->victims && fill(churn))
		return churn;
	churn_destroy(churn);
	return NULL;
}

static void run_allocations(void *state, uint64_t steps)
{
	struct churn *churn = state;

	for (uint64_t i = 0; i < steps; i++) {
		uint32_t victim = churn->victims[churn->at++ % DRAWS];

		destroy(churn, churn->allocations[victim]);
		churn->allocations[victim] = create(churn);
	}
	bench_require(churn->failures == 0);
}

static void run_malloc(void *state, uint64_t steps)
{
	struct churn *churn = state;

	for (uint64_t i = 0; i < steps; i++) {
		uint32_t victim = churn->victims[churn->at++ % DRAWS];

		free(churn->blocks[victim]);
		churn->blocks[victim] = malloc(64);
	}
}

#define PAIR_IN_STEPS(index, text, against, most, least)                                \
	BENCH(.name = "create.pair_" text, .parameter = (index), .setup = churn_create, \
	      .run = run_allocations, .teardown = churn_destroy, .steps_min = (least),  \
	      .peer = (against), .ratio_max = (most))
#define PAIR(index, text, against, most) PAIR_IN_STEPS(index, text, against, most, 0)
PAIR(0, "64k", "create.malloc_1", 15);
/* Neither size nor the number of live allocations may matter, except for cache misses. */
PAIR(1, "1m", "create.pair_64k", 1.5);
PAIR(2, "16m", "create.pair_64k", 1.5);
PAIR(3, "64k_1000_live", "create.malloc_1000", 15);
PAIR(9, "4k_1000_live", "create.pair_64k_1000_live", 0);
PAIR(10, "4k_10000_live", "create.pair_64k_1000_live", 0);
/*
 * The cost as the number grows; create.malloc_* is what caches impose. On a virtual machine the
 * address translations of so much memory may be gone after the other cases have run. The first
 * access to each region of that memory then takes microseconds. A round is long enough for these
 * accesses to be a small part.
 */
PAIR_IN_STEPS(4, "4k_1000000_live", "create.pair_64k_1000_live", 1.5, 1 << 14);
PAIR_IN_STEPS(11, "4k_100000_live", "create.pair_64k_1000_live", 0, 1 << 14);
BENCH(.name = "create.softgpu_pair", .parameter = 8, .setup = churn_create, .run = run_allocations,
      .teardown = churn_destroy, .peer = "create.pair_64k");

#define MALLOC(index, text)                                                               \
	BENCH(.name = "create.malloc_" text, .parameter = (index), .setup = churn_create, \
	      .run = run_malloc, .teardown = churn_destroy)
MALLOC(5, "1");
MALLOC(6, "1000");
MALLOC(7, "1000000");
