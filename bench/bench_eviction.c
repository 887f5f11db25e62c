/* SPDX-License-Identifier: MIT */
/*
 * The cost of a victim among 100,000 resident allocations, for each eviction policy. A submission
 * references 16 allocations that are not resident, those that were evicted longest ago, so each
 * reference evicts one allocation of the same size. No content is copied (bare.c). The time
 * includes the reference, the page-in, and the event by which the case learns the victim.
 */
#include "bare.h"
#include "bench.h"
#include "bench_client.h"

#include <stdlib.h>

#define PAGE      4096u
#define RESIDENTS 100000u
#define OUTSIDE   1000u /* allocations that are not resident */
#define NAMED     16u   /* references of one submission */

/* Values of `parameter` behind those of enum vidmm_eviction_policy. */
enum { VALUED = VIDMM_EVICTION_PREDICTED + 1, FALLING };

struct eviction {
	struct bench_client client;
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

	bench_client_finish(&e->client);
	free(e);
}

static bool start(struct eviction *e, uint64_t policy)
{
	static const struct vidmm_policy valued = {describe_valued, used, value};
	static const struct vidmm_policy falling = {describe_falling, used, value};
	const struct vidmm_registry_value registry[] = {{"EngineBytesPerUs", 0},
							{"DmaBufferSegmentSet", 0},
							{"PagingBufferSegment", 0},
							{"VidmmEvictionPolicy", policy}};
	const struct vidmm_adapter_options options = {.registry = registry,
						      .registry_count = policy < VALUED ? 4 : 3,
						      .eviction_policy = policy == VALUED ? &valued
									 : policy == FALLING
										 ? &falling
										 : NULL};

	return bench_client_start(&e->client, (uint64_t)RESIDENTS * PAGE, &options) &&
	       vidmm_subscribe(e->client.host, UINT64_C(1) << VIDMM_EVENT_RESIDENCY, note_victim,
			       e) != 0;
}

/* Writes the allocations, which makes them resident. */
static void submit(struct eviction *e, const D3DKMT_HANDLE named[NAMED])
{
	bench_client_write(&e->client, named, NAMED);
	vidmm_adapter_wait_idle(e->client.adapter);
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
			if (!bench_client_allocate(&e->client, PAGE, &named[k]))
				return false;
		submit(e, named);
	}
	if (e->count)
		return false;
	for (; e->count < OUTSIDE; e->count++)
		if (!bench_client_allocate(&e->client, PAGE, &e->outside[e->count]))
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
	bool good = start(e, self->parameter) && fill(e);
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
