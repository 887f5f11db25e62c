/* SPDX-License-Identifier: MIT */
/*
 * The fixed cost of a submission as the number of contexts and of processes grows: one thread
 * submits to each of them in turn, with one reference and one patch location each, as submit.fixed
 * does with one context. More contexts cost cache misses at most. The number of live allocations
 * grows in bench_create.c, that of references in bench_submit.c.
 */
#include "bare.h"
#include "bench.h"
#include "bench_null.h"

#include <d3dumddi.h>
#include <stdlib.h>
#include <vidmm/softgpu.h>
#include <vidmm/vidmm.h>

enum { CONTEXTS_MAX = 64 };

#define BAR_BYTES (UINT64_C(64) << 20)

struct context {
	HANDLE handle, device;
};

struct scale {
	struct bench_null_world world;
	struct context context[CONTEXTS_MAX];
	uint32_t process_count, context_count, at;
};

#define PARAMETER(processes, contexts) ((processes) | (contexts) << 8)

static void scale_destroy(void *state)
{
	struct scale *s = state;

	bench_null_world_finish(&s->world);
	free(s);
}

static bool start(struct scale *s)
{
	const struct vidmm_registry_value registry[] = {{"EngineBytesPerUs", 0},
							{"DmaBufferSegmentSet", 0}};
	const struct vidmm_adapter_options options = {.registry = registry, .registry_count = 2};

	return bench_null_world_start(&s->world, bench_null_entries, BAR_BYTES, &options,
				      s->process_count);
}

/* Creates a context, and its list with one allocation. */
static bool create_context(struct scale *s, uint32_t i)
{
	struct softgpu_allocation wish = {
		.version = SOFTGPU_ALLOCATION_VERSION, .size_bytes = 4096, .segment_set = 0x1};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &wish,
				      .PrivateDriverDataSize = sizeof(wish)};
	D3DDDICB_ALLOCATE allocate = {.NumAllocations = 1, .pAllocationInfo = &info};
	D3DDDICB_CREATECONTEXT create = {.EngineAffinity = 1};
	struct context *c = &s->context[i];

	c->device = vidmm_device_handle(s->world.device[i % s->process_count]);
	if (FAILED(s->world.cb->pfnCreateContextCb(c->device, &create)) ||
	    FAILED(s->world.cb->pfnAllocateCb(c->device, &allocate)))
		return false;
	c->handle = create.hContext;
	create.pAllocationList[0] = (D3DDDI_ALLOCATIONLIST){.hAllocation = info.hAllocation};
	return true;
}

static void run_submit(void *state, uint64_t steps)
{
	struct scale *s = state;

	bench_null_patches(1);
	while (steps--) {
		const struct context *c = &s->context[s->at];
		D3DDDICB_RENDER render = {
			.hContext = c->handle, .CommandLength = 8, .NumAllocations = 1};

		bench_require(SUCCEEDED(s->world.cb->pfnRenderCb(c->device, &render)));
		s->at = s->at + 1 < s->context_count ? s->at + 1 : 0;
	}
}

static void *scale_create(const struct bench_case *self)
{
	struct scale *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->process_count = self->parameter & 0xFF;
	s->context_count = (uint32_t)(self->parameter >> 8);
	bool good = start(s);
	for (uint32_t i = 0; i < s->context_count && good; i++)
		good = create_context(s, i);
	if (!good) {
		scale_destroy(s);
		return NULL;
	}
	run_submit(s, s->context_count); /* everything is resident from here on */
	vidmm_adapter_wait_idle(s->world.adapter);
	return s;
}

#define SCALE(text, processes, contexts)                                          \
	BENCH(.name = "scale." text, .peer = "submit.fixed",                      \
	      .parameter = PARAMETER(processes, contexts), .setup = scale_create, \
	      .run = run_submit, .teardown = scale_destroy)
SCALE("contexts_2", 1, 2);
SCALE("contexts_8", 1, 8);
SCALE("contexts_64", 1, 64);
SCALE("processes_4", 4, 4);
SCALE("processes_16", 16, 16);
SCALE("processes_16_contexts_64", 16, 64);
