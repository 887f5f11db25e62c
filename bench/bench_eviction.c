/* SPDX-License-Identifier: MIT */
/*
 * The cost of a victim among 100,000 resident allocations, for each eviction policy. A submission
 * references 16 allocations that are not resident, those that were evicted longest ago, so each
 * reference evicts one allocation of the same size. No content is copied (bare.c). The time
 * includes the reference, the page-in, and the event by which the case learns the victim.
 */
#include "bare.h"
#include "bench.h"

#include <d3dumddi.h>
#include <stdlib.h>
#include <vidmm/softgpu.h>
#include <vidmm/vidmm.h>

#define PAGE      4096u
#define RESIDENTS 100000u
#define OUTSIDE   1000u /* allocations that are not resident */
#define NAMED     16u   /* references of one submission */

/* Values of `parameter` behind those of enum vidmm_eviction_policy. */
enum { VALUED = VIDMM_EVICTION_PREDICTED + 1, FALLING };

struct eviction {
	struct vidmm_host *host;
	struct vidmm_adapter *adapter;
	struct vidmm_process *process;
	struct vidmm_device *device;
	const D3DDDI_DEVICECALLBACKS *callbacks;
	HANDLE context;
	char *commands;
	D3DDDI_ALLOCATIONLIST *list;
	/* A ring of those that are not resident, the one that was evicted first at `first`. */
	D3DKMT_HANDLE outside[2 * OUTSIDE];
	uint32_t first, count;
};

/* ---- the policy as three functions: least recently used (vidmm/policy.h) ---- */

static const struct vidmm_policy_description *describe_valued(void)
{
	static const struct vidmm_policy_description d = {.struct_size = sizeof(d),
							  .version = VIDMM_POLICY_VERSION,
							  .name = "valued",
							  .state_bytes = 8};

	return &d;
}

static const struct vidmm_policy_description *describe_falling(void)
{
	static const struct vidmm_policy_description d = {.struct_size = sizeof(d),
							  .version = VIDMM_POLICY_VERSION,
							  .name = "falling",
							  .state_bytes = 8,
							  .flags = VIDMM_POLICY_VALUES_FALL};

	return &d;
}

static void used(void *state, const struct vidmm_policy_use *use)
{
	*(uint64_t *)state = use->submission;
}

static uint64_t value(void *state, const struct vidmm_policy_candidate *candidate)
{
	(void)state;
	return candidate->used;
}

/* ---- the world ---- */

static void note_victim(void *context, const struct vidmm_event *event, const char *text)
{
	struct eviction *e = context;

	(void)text;
	if (event->reason != VIDMM_RESIDENCY_PRESSURE)
		return;
	if (e->count == 2 * OUTSIDE)
		abort();
	e->outside[(e->first + e->count++) % (2 * OUTSIDE)] = event->object;
}

static void eviction_destroy(void *state)
{
	struct eviction *e = state;

	if (e->device)
		vidmm_device_destroy(e->device);
	if (e->process)
		vidmm_process_close(e->process);
	if (e->adapter)
		vidmm_adapter_stop(e->adapter);
	if (e->host)
		vidmm_host_destroy(e->host);
	free(e);
}

static bool start(struct eviction *e, uint64_t policy)
{
	static const struct vidmm_policy valued = {describe_valued, used, value};
	static const struct vidmm_policy falling = {describe_falling, used, value};
	static const uint64_t bar_bytes = (uint64_t)RESIDENTS * PAGE;
	const struct vidmm_registry_value registry[] = {{"EngineBytesPerUs", 0},
							{"DmaBufferSegmentSet", 0},
							{"PagingBufferSegment", 0},
							{"VidmmEvictionPolicy", policy}};
	const struct vidmm_host_options host = {.struct_size = sizeof(host),
						.kind = VIDMM_HOST_SIM};
	const struct vidmm_adapter_options adapter = {.struct_size = sizeof(adapter),
						      .driver_entry = softgpu_driver_entry,
						      .bar_sizes = &bar_bytes,
						      .bar_count = 1,
						      .registry = registry,
						      .registry_count = policy < VALUED ? 4 : 3,
						      .eviction_policy = policy == VALUED ? &valued
									 : policy == FALLING
										 ? &falling
										 : NULL};

	if (vidmm_host_create(&host, &e->host) < 0 ||
	    vidmm_adapter_start(e->host, &adapter, &e->adapter) < 0 ||
	    vidmm_process_open(e->host, "bench", &e->process) < 0 ||
	    vidmm_device_create(e->process, e->adapter, &e->device) < 0)
		return false;
	e->callbacks = vidmm_device_callbacks(e->device);
	return vidmm_subscribe(e->host, UINT64_C(1) << VIDMM_EVENT_RESIDENCY, note_victim, e) != 0;
}

static bool create_context(struct eviction *e)
{
	D3DDDICB_CREATECONTEXT create = {.EngineAffinity = 1};

	if (FAILED(e->callbacks->pfnCreateContextCb(vidmm_device_handle(e->device), &create)))
		return false;
	e->context = create.hContext;
	e->commands = create.pCommandBuffer;
	e->list = create.pAllocationList;
	return true;
}

static bool allocate(struct eviction *e, D3DKMT_HANDLE *handle)
{
	struct softgpu_allocation wish = {
		.version = SOFTGPU_ALLOCATION_VERSION, .size_bytes = PAGE, .segment_set = 0x1};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &wish,
				      .PrivateDriverDataSize = sizeof(wish)};
	D3DDDICB_ALLOCATE args = {.NumAllocations = 1, .pAllocationInfo = &info};

	if (FAILED(e->callbacks->pfnAllocateCb(vidmm_device_handle(e->device), &args)))
		return false;
	*handle = info.hAllocation;
	return true;
}

/* Submits a buffer that writes NAMED allocations, which makes them resident. */
static void submit(struct eviction *e, const D3DKMT_HANDLE named[NAMED])
{
	struct softgpu_reference *reference = (struct softgpu_reference *)(void *)e->commands;
	D3DDDICB_RENDER render = {.hContext = e->context,
				  .CommandLength = NAMED * (uint32_t)sizeof(*reference),
				  .NumAllocations = NAMED};

	for (uint32_t i = 0; i < NAMED; i++) {
		reference[i] = (struct softgpu_reference){
			.command = {SOFTGPU_REFERENCE, SOFTGPU_FLAG_WRITE, sizeof(*reference)},
			.operand.allocation = i};
		e->list[i] = (D3DDDI_ALLOCATIONLIST){.hAllocation = named[i], .Value = 1};
	}
	if (FAILED(e->callbacks->pfnRenderCb(vidmm_device_handle(e->device), &render)))
		abort();
	e->commands = render.pNewCommandBuffer;
	e->list = render.pNewAllocationList;
	vidmm_adapter_wait_idle(e->adapter);
}

static void run_eviction(void *state, uint64_t steps)
{
	struct eviction *e = state;
	uint32_t outside = e->count;

	for (uint64_t step = 0; step < steps; step++) {
		D3DKMT_HANDLE named[NAMED];

		for (uint32_t i = 0; i < NAMED; i++, e->count--) {
			named[i] = e->outside[e->first];
			e->first = (e->first + 1) % (2 * OUTSIDE);
		}
		submit(e, named);
	}
	/* another number of victims: the measurement would be wrong */
	if (e->count != outside)
		abort();
}

/* Fills the memory, which evicts nothing, and creates OUTSIDE more. */
static bool fill(struct eviction *e)
{
	D3DKMT_HANDLE named[NAMED];

	for (uint32_t i = 0; i < RESIDENTS / NAMED; i++) {
		for (uint32_t k = 0; k < NAMED; k++)
			if (!allocate(e, &named[k]))
				return false;
		submit(e, named);
	}
	if (e->count)
		return false;
	for (; e->count < OUTSIDE; e->count++)
		if (!allocate(e, &e->outside[e->count]))
			return false;
	run_eviction(e, 2 * OUTSIDE / NAMED);
	return true;
}

static void *eviction_create(const struct bench_case *self)
{
	struct eviction *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	bench_bare(BENCH_NO_PAGING);
	bool good = start(e, self->parameter) && create_context(e) && fill(e);
	bench_bare(BENCH_WHOLE);
	if (good)
		return e;
	eviction_destroy(e);
	return NULL;
}

#define EVICTION(policy_name, policy, other)                                                    \
	BENCH(.name = "eviction." policy_name "_100k", .per_run = NAMED, .parameter = (policy), \
	      .peer = other, .setup = eviction_create, .run = run_eviction,                     \
	      .teardown = eviction_destroy)

EVICTION("lru", VIDMM_EVICTION_LRU, NULL);
EVICTION("clock", VIDMM_EVICTION_CLOCK, "eviction.lru_100k");
EVICTION("mru", VIDMM_EVICTION_MRU, "eviction.lru_100k");
EVICTION("predicted", VIDMM_EVICTION_PREDICTED, "eviction.lru_100k");
/* Of the embedder: a tree of 100,000 values; and 1024 calls of a function for each victim. */
EVICTION("valued", VALUED, "eviction.lru_100k");
EVICTION("falling", FALLING, "eviction.lru_100k");
