/* SPDX-License-Identifier: MIT */
/* an eviction policy of the embedder as three functions (vidmm/policy.h). */
#include "base/base.h"
#include "world.h"

/* What the functions note in the state of an allocation; all 0 at first. */
struct state {
	uint64_t magic, uses, last, arrivals, missed, asked, bad;
};

/* What the calls for all allocations had as arguments. One test runs at a time. */
static struct {
	struct vidmm_policy_description description;
	D3DKMT_HANDLE first; /* to be evicted */
	uint64_t used, asked, leaving;
	uint64_t last_submission, bad;
	uint64_t (*value)(struct state *state, const struct vidmm_policy_candidate *candidate);
	struct state of_first;
	struct vidmm_policy_candidate candidate_of_first;
} seen;

static const struct vidmm_policy_description *describe(void)
{
	return &seen.description;
}

static void used(void *state, const struct vidmm_policy_use *use)
{
	struct state *s = state;
	bool was_told = s->magic == use->allocation;

	/* The state is 0, or what it was; submissions rise, or are the same after an arrival. */
	seen.bad += s->magic && !was_told;
	seen.bad += use->submission < s->last || use->submission < seen.last_submission;
	seen.bad += use->submission == s->last && !(use->flags & VIDMM_POLICY_ARRIVED);
	seen.bad += !s->uses && !(use->flags & VIDMM_POLICY_ARRIVED);
	seen.last_submission = use->submission;
	s->magic = use->allocation;
	s->last = use->submission;
	s->uses++;
	s->arrivals += use->flags & VIDMM_POLICY_ARRIVED ? 1 : 0;
	s->missed += use->flags & VIDMM_POLICY_MISSED ? 1 : 0;
	seen.used++;
}

static uint64_t value(void *state, const struct vidmm_policy_candidate *c)
{
	struct state *s = state;

	seen.bad += s->magic != c->allocation || c->used < c->arrived || c->now <= c->used;
	seen.bad += s->last != c->last_submission || c->submission < c->last_submission;
	seen.asked++;
	seen.leaving += c->leaving;
	s->asked++;
	if (c->allocation == seen.first) {
		seen.of_first = *s;
		seen.candidate_of_first = *c;
	}
	return seen.value(s, c);
}

static const struct vidmm_policy policy = {describe, used, value};

static uint64_t least_recent(struct state *s, const struct vidmm_policy_candidate *c)
{
	(void)s;
	return c->used;
}

static uint64_t wanted_first(struct state *s, const struct vidmm_policy_candidate *c)
{
	(void)s;
	return c->allocation == seen.first ? 0 : 1000;
}

/* A later turn each time, without end. */
static uint64_t always_spared(struct state *s, const struct vidmm_policy_candidate *c)
{
	(void)c;
	return s->asked << 32;
}

static uint64_t nonsense(struct state *s, const struct vidmm_policy_candidate *c)
{
	s->bad = (s->bad + c->used) * UINT64_C(6364136223846793005) + 1;
	return s->bad >> (s->bad >> 58);
}

/* FLAGS: of the description. MIB_COUNT: the capacity. Only the test's allocations are in it. */
static void start(struct world *w, void **state, uint32_t flags, uint32_t mib_count,
		  uint64_t (*function)(struct state *, const struct vidmm_policy_candidate *))
{
	static const struct vidmm_registry_value registry[] = {{"DmaBufferSegmentSet", 0},
							       {"PagingBufferSegment", 0}};
	const struct client_options options = {.vram_bytes = (uint64_t)mib_count * MIB,
					       .registry = registry,
					       .registry_count = 2,
					       .eviction_policy = &policy};

	memset(&seen, 0, sizeof(seen));
	seen.description =
		(struct vidmm_policy_description){.struct_size = sizeof(seen.description),
						  .version = VIDMM_POLICY_VERSION,
						  .name = "test",
						  .state_bytes = sizeof(struct state),
						  .flags = flags};
	seen.value = function;
	world_start(w, state, &options);
}

static void stop(struct world *w)
{
	vidmm_adapter_check(w->client.adapter);
	world_stop(w);
	assert_int_equal(seen.bad, 0);
}

static void q_350_the_functions_choose_the_victim_and_learn_all_uses(void **state)
{
	for (uint32_t flags = 0; flags < 2; flags++) {
		D3DKMT_HANDLE a[6];
		struct world w;

		start(&w, state, flags, 4, wanted_first);
		allocate_all(&w, a, 6);
		for (int i = 0; i < 12; i++)
			use_now(&w, a[i % 4], false);
		assert_int_equal(seen.used + seen.asked, 0); /* everything fits */
		seen.first = a[2];
		use_now(&w, a[4], false);
		assert_int_equal(in_vram(&w, a, 6), 0x1B);
		assert_true(seen.used >= 12); /* and the word of the gate, in the aperture */
		assert_int_equal(seen.leaving, flags ? 0 : 1);
		/* Used in submissions 3, 7 and 11 of 12; the eviction is for the 13th. */
		assert_int_equal(seen.of_first.uses, 3);
		assert_int_equal(seen.of_first.arrivals, 1);
		assert_int_equal(seen.of_first.missed, 0);
		assert_int_equal(seen.candidate_of_first.submission -
					 seen.candidate_of_first.last_submission,
				 2);
		assert_int_equal(seen.candidate_of_first.interval_count, 2);
		assert_int_equal(seen.candidate_of_first.intervals[0], 4);
		assert_int_equal(seen.candidate_of_first.size_bytes, MIB);
		/* The state is kept while it is evicted. */
		seen.first = a[0];
		use_now(&w, a[2], false);
		assert_int_equal(in_vram(&w, a, 6), 0x1E);
		seen.first = a[2];
		use_now(&w, a[5], false);
		assert_int_equal(in_vram(&w, a, 6), 0x3A);
		assert_int_equal(seen.of_first.uses, 4);
		assert_int_equal(seen.of_first.arrivals, 2);
		stop(&w);
	}
}

static void q_350_of_equal_values_the_least_recently_used_leaves(void **state)
{
	for (uint32_t flags = 0; flags < 2; flags++) {
		D3DKMT_HANDLE a[5];
		struct world w;

		start(&w, state, flags, 4, wanted_first);
		allocate_all(&w, a, 5);
		for (int i = 0; i < 4; i++)
			use_now(&w, a[i], false);
		use_now(&w, a[0], false);
		use_now(&w, a[4], false);
		assert_int_equal(in_vram(&w, a, 5), 0x1D);
		stop(&w);
	}
}

static void q_350_a_policy_orders_inside_a_class_alone(void **state)
{
	D3DKMT_HANDLE a[6];
	struct world w;

	start(&w, state, 0, 4, wanted_first);
	allocate_all(&w, a, 6);
	for (int i = 0; i < 8; i++)
		use_now(&w, a[i % 4], false);
	seen.first = a[0];
	set_priority(&w, a[3], D3DDDI_ALLOCATIONPRIORITY_LOW);
	vidmm_adapter_check(w.client.adapter); /* a[3] is in the queue of its new class */
	use_now(&w, a[4], false);
	assert_int_equal(in_vram(&w, a, 6), 0x17);
	use_now(&w, a[5], false);
	assert_int_equal(in_vram(&w, a, 6), 0x36);
	stop(&w);
}

static void q_350_instances_of_a_renamed_allocation_have_states(void **state)
{
	D3DKMT_HANDLE a[3], renamed;
	struct world w;
	void *data;

	start(&w, state, 0, 3, least_recent);
	allocate_all(&w, a, 3);
	renamed = allocate_in(&w.device, MIB, CPU, VRAM);
	for (int i = 0; i < 6; i++) {
		gate_close(&w);
		client_reference(&w.context, renamed, false);
		client_submit(&w.context);
		assert_int_equal(client_try_lock(&w.device, &renamed, DISCARD, &data), S_OK);
		assert_int_equal(client_unlock(&w.device, renamed), S_OK);
		gate_open(&w);
		client_idle(&w.client);
		use_now(&w, a[i % 3], false);
		vidmm_adapter_check(w.client.adapter);
	}
	assert_true(world_statistics(&w).renames > 0);
	stop(&w);
}

/* 64 uses in each of 1100 submissions: more than the journal of 65536 has space for. */
static void q_350_uses_beyond_the_journal_are_marked(void **state)
{
	const uint64_t bytes = MIB / 16;
	D3DKMT_HANDLE a[64], more;
	struct world w;

	start(&w, state, 0, 4, least_recent);
	for (uint32_t i = 0; i < 64; i++)
		a[i] = allocate_in(&w.device, bytes, CPU, VRAM);
	for (uint32_t s = 0; s < 1100; s++) {
		for (uint32_t i = 0; i < 64; i++)
			client_reference(&w.context, a[i], false);
		client_submit(&w.context);
		client_idle(&w.client);
	}
	assert_int_equal(seen.used, 0);
	seen.first = a[40];
	assert_int_equal(client_deallocate(&w.device, a[0]), S_OK);
	use_now(&w, a[2], false);
	vidmm_adapter_check(w.client.adapter);
	for (uint32_t i = 0; i < 3; i++) {
		more = allocate_in(&w.device, bytes, CPU, VRAM);
		use_now(&w, more, false);
	}
	assert_int_equal(seen.of_first.missed, 1);
	/* The last use before the eviction for submission 1102 or later. */
	assert_true(seen.candidate_of_first.submission - seen.of_first.last <= 3);
	assert_int_equal(client_residency(&w.device, a[1]), EVICTED);
	stop(&w);
}

/* Each is asked once in a search, then the first is taken. */
static void q_353_a_policy_that_spares_all_does_not_stop_evictions(void **state)
{
	D3DKMT_HANDLE a[8];
	struct world w;

	start(&w, state, 0, 4, always_spared);
	allocate_all(&w, a, 8);
	for (int i = 0; i < 64; i++) {
		uint64_t before = seen.leaving;

		use_now(&w, a[i % 8], false);
		assert_true(seen.leaving - before <= 4);
	}
	assert_true(seen.leaving > 60);
	stop(&w);
}

static void q_353_nonsense_as_values_breaks_no_invariant(void **state)
{
	for (uint32_t flags = 0; flags < 4; flags++) {
		D3DKMT_HANDLE a[24];
		uint64_t seed = flags;
		struct world w;

		start(&w, state, flags, 7, nonsense);
		for (uint32_t i = 0; i < 24; i++)
			a[i] = allocate_in(&w.device, MIB / 4 * (1 + i % 5), CPU, VRAM);
		for (uint32_t step = 0; step < 400; step++) {
			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
			uint32_t i = (uint32_t)(seed >> 33) % 24;

			if (step % 7 == 3)
				set_priority(&w, a[i],
					     step % 2 ? D3DDDI_ALLOCATIONPRIORITY_LOW
						      : D3DDDI_ALLOCATIONPRIORITY_HIGH);
			use_now(&w, a[i], step % 3 == 0);
			if (step % 16 == 0)
				vidmm_adapter_check(w.client.adapter);
			if (step % 50 != 49)
				continue;
			assert_int_equal(client_deallocate(&w.device, a[i]), S_OK);
			a[i] = allocate_in(&w.device, MIB / 2, CPU, VRAM);
		}
		assert_true(seen.asked > 100);
		stop(&w);
	}
}

static void q_350_out_of_memory_for_a_state_changes_nothing(void **state)
{
	uint32_t failures = 0;
	struct world w;

	start(&w, state, 0, 4, least_recent);
	for (uint32_t n = 1; n < 40; n++) {
		struct softgpu_allocation wish = wish_of(PAGE, CPU, VRAM);
		D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &wish,
					      .PrivateDriverDataSize = sizeof(wish)};
		D3DDDICB_ALLOCATE args = {.NumAllocations = 1, .pAllocationInfo = &info};
		uint64_t before = world_statistics(&w).allocations;

		vmm_calloc_fail_after(n);
		HRESULT result = w.device.cb->pfnAllocateCb(w.device.handle, &args);
		vmm_calloc_fail_after(0);
		if (result == S_OK) {
			assert_int_equal(client_deallocate(&w.device, info.hAllocation), S_OK);
			continue;
		}
		assert_int_equal(result, E_OUTOFMEMORY);
		assert_int_equal(world_statistics(&w).allocations, before);
		failures++;
	}
	assert_true(failures > 1);
	stop(&w);
}

/* STATE: that of the test. Expects a refused start with a reason that begins with TEXT. */
static void expect_refused(void **state, const struct client_options *options, const char *text)
{
	struct client_options with_kind = *options;
	struct client client;

	with_kind.kind = *(const uint32_t *)*state;
	assert_int_equal(client_try_start(&client, &with_kind), STATUS_INVALID_PARAMETER);
	assert_true(client_told(&client, (uint32_t)STATUS_INVALID_PARAMETER, text));
	client_stop(&client);
}

static uint64_t rank(void *context, const struct vidmm_eviction_candidate *candidate)
{
	(void)context;
	return candidate->idle;
}

static void q_351_what_is_not_valid_refuses_the_start(void **state)
{
	static const struct vidmm_registry_value registry[] = {{"VidmmEvictionPolicy", 0}};
	static const struct vidmm_policy lacking = {describe, used, NULL};
	struct client_options options = {.vram_bytes = MIB, .eviction_policy = &lacking};

	expect_refused(state, &options, "Q-351: the function value of the policy is NULL");
	options.eviction_policy = &policy;
	seen.description.version = 7;
	expect_refused(state, &options, "Q-351: the policy is of version 7: expected version 1");
	options.eviction_rank = rank;
	expect_refused(state, &options,
		       "Q-351: the options have an eviction_policy and an eviction_rank");
	options.eviction_rank = NULL;
	options.registry = registry;
	options.registry_count = 1;
	expect_refused(state, &options,
		       "Q-351: the options have an eviction_policy and VidmmEvictionPolicy");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(q_350_the_functions_choose_the_victim_and_learn_all_uses),
		BOTH(q_350_of_equal_values_the_least_recently_used_leaves),
		BOTH(q_350_a_policy_orders_inside_a_class_alone),
		BOTH(q_350_instances_of_a_renamed_allocation_have_states),
		BOTH(q_350_uses_beyond_the_journal_are_marked),
		BOTH(q_353_a_policy_that_spares_all_does_not_stop_evictions),
		BOTH(q_353_nonsense_as_values_breaks_no_invariant),
		BOTH(q_350_out_of_memory_for_a_state_changes_nothing),
		BOTH(q_351_what_is_not_valid_refuses_the_start),
	};

	return cmocka_run_group_tests_name("policy_functions", tests, NULL, NULL);
}
