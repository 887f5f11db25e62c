/* SPDX-License-Identifier: MIT */
/*
 * Paging through the UMD door: a working set four times as large as video memory, all of it
 * written. Each submission references the part that was evicted longest ago. The peer copies as
 * many bytes as a step moves in and out together. The host is sim: the engine copies on the same
 * CPU, and the time includes the work of the library.
 */
#include "bare.h"
#include "bench.h"

#include <d3dumddi.h>
#include <stdlib.h>
#include <vidmm/softgpu.h>
#include <vidmm/vidmm.h>

#define VRAM_BYTES    (UINT64_C(32) << 20)
#define WORKING_BYTES (4 * VRAM_BYTES)
#define MOVED_BYTES   (UINT64_C(64) << 20) /* bytes that one step moves */
#define NAMED_BYTES   (UINT64_C(8) << 20)  /* bytes that one submission references */

struct paging {
	struct vidmm_host *host;
	struct vidmm_adapter *adapter;
	struct vidmm_process *process;
	struct vidmm_device *device;
	const D3DDDI_DEVICECALLBACKS *callbacks;
	D3DKMT_HANDLE *allocations;
	uint64_t allocation_bytes;
	uint32_t count, next;
	HANDLE context;
	char *commands;
	D3DDDI_ALLOCATIONLIST *list;
};

static void paging_destroy(void *state)
{
	struct paging *p = state;

	if (p->device)
		vidmm_device_destroy(p->device);
	if (p->process)
		vidmm_process_close(p->process);
	if (p->adapter)
		vidmm_adapter_stop(p->adapter);
	if (p->host)
		vidmm_host_destroy(p->host);
	free(p->allocations);
	free(p);
}

static bool start(struct paging *p)
{
	static const uint64_t bar_bytes = VRAM_BYTES;
	const struct vidmm_registry_value registry[] = {{"EngineBytesPerUs", 0}};
	const struct vidmm_host_options host = {.struct_size = sizeof(host),
						.kind = VIDMM_HOST_SIM};
	const struct vidmm_adapter_options adapter = {.struct_size = sizeof(adapter),
						      .driver_entry = softgpu_driver_entry,
						      .bar_sizes = &bar_bytes,
						      .bar_count = 1,
						      .registry = registry,
						      .registry_count = 1};

	if (vidmm_host_create(&host, &p->host) < 0 ||
	    vidmm_adapter_start(p->host, &adapter, &p->adapter) < 0 ||
	    vidmm_process_open(p->host, "bench", &p->process) < 0 ||
	    vidmm_device_create(p->process, p->adapter, &p->device) < 0)
		return false;
	p->callbacks = vidmm_device_callbacks(p->device);
	return true;
}

static bool create_context(struct paging *p)
{
	D3DDDICB_CREATECONTEXT create = {.EngineAffinity = 1};

	if (FAILED(p->callbacks->pfnCreateContextCb(vidmm_device_handle(p->device), &create)))
		return false;
	p->context = create.hContext;
	p->commands = create.pCommandBuffer;
	p->list = create.pAllocationList;
	return true;
}

static bool allocate(struct paging *p)
{
	p->count = (uint32_t)(WORKING_BYTES / p->allocation_bytes);
	p->allocations = calloc(p->count, sizeof(*p->allocations));
	if (!p->allocations)
		return false;
	for (uint32_t i = 0; i < p->count; i++) {
		struct softgpu_allocation wish = {.version = SOFTGPU_ALLOCATION_VERSION,
						  .size_bytes = p->allocation_bytes,
						  .segment_set = 0x1};
		D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &wish,
					      .PrivateDriverDataSize = sizeof(wish)};
		D3DDDICB_ALLOCATE allocate = {.NumAllocations = 1, .pAllocationInfo = &info};

		if (FAILED(p->callbacks->pfnAllocateCb(vidmm_device_handle(p->device), &allocate)))
			return false;
		p->allocations[i] = info.hAllocation;
	}
	return true;
}

/* Submits a buffer that writes the next NAMED_BYTES of the working set. */
static void submit(struct paging *p)
{
	uint32_t named = (uint32_t)(NAMED_BYTES / p->allocation_bytes);
	struct softgpu_reference *reference = (struct softgpu_reference *)(void *)p->commands;
	D3DDDICB_RENDER render = {.hContext = p->context,
				  .CommandLength = named * (uint32_t)sizeof(*reference),
				  .NumAllocations = named};

	for (uint32_t i = 0; i < named; i++) {
		reference[i] = (struct softgpu_reference){
			.command = {SOFTGPU_REFERENCE, SOFTGPU_FLAG_WRITE, sizeof(*reference)},
			.operand.allocation = i};
		p->list[i] =
			(D3DDDI_ALLOCATIONLIST){.hAllocation = p->allocations[p->next], .Value = 1};
		p->next = (p->next + 1) % p->count;
	}
	if (FAILED(p->callbacks->pfnRenderCb(vidmm_device_handle(p->device), &render)))
		abort();
	p->commands = render.pNewCommandBuffer;
	p->list = render.pNewAllocationList;
}

static uint64_t bytes_moved(struct paging *p)
{
	struct vidmm_adapter_statistics statistics = {.struct_size = sizeof(statistics)};

	vidmm_adapter_statistics(p->adapter, &statistics);
	return statistics.bytes_paged_in + statistics.bytes_paged_out;
}

static void run_paging(void *state, uint64_t steps)
{
	struct paging *p = state;
	uint64_t moved = bytes_moved(p);

	for (uint64_t done = 0; done < steps * MOVED_BYTES / 2; done += NAMED_BYTES)
		submit(p);
	vidmm_adapter_wait_idle(p->adapter);
	/* another number of bytes was moved: the measurement would be wrong */
	if (bytes_moved(p) - moved != steps * MOVED_BYTES)
		abort();
}

/*
 * PARAMETER is the size of an allocation. The working set is paged twice: afterwards every page has
 * been touched.
 */
static void *paging_create(const struct bench_case *self)
{
	struct paging *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->allocation_bytes = self->parameter;
	if (!start(p) || !create_context(p) || !allocate(p)) {
		paging_destroy(p);
		return NULL;
	}
	for (uint64_t done = 0; done < 2 * WORKING_BYTES; done += NAMED_BYTES)
		submit(p);
	vidmm_adapter_wait_idle(p->adapter);
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
 * includes the reference and two DDI calls.
 */
BENCH(.name = "paging.evicted_64k", .per_run = MOVED_BYTES / 2 / (UINT64_C(64) << 10),
      .peer = "range.pair_10k", .parameter = UINT64_C(64) << 10, .setup = bookkeeping_create,
      .run = run_paging, .teardown = paging_destroy);
