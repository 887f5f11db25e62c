/* SPDX-License-Identifier: MIT */
/*
 * All 2048 combinations of lock flags, on allocations of several kinds in several states, against an oracle that
 * was written from the rules: status, finding, handle, waiting, and what must not have changed.
 */
#include <stdio.h>

#include "lock_oracle.h"
#include "world.h"

enum state { FRESH, RESIDENT, READING, WRITING, AWAY, STATES };

struct kind {
	uint32_t flags, segment_set, stride;
	bool hidden_vram, incoherent, no_ranges;
};

static const struct kind kinds[] = {
	{.flags = CPU},
	{.flags = CPU, .segment_set = VRAM},
	{.flags = CPU, .segment_set = APERTURE},
	{.flags = CPU | SOFTGPU_ALLOCATION_CACHED, .segment_set = APERTURE},
	{.flags = CPU | SOFTGPU_ALLOCATION_CACHED, .segment_set = APERTURE, .incoherent = true},
	{.flags = CPU | SOFTGPU_ALLOCATION_TILED_Y, .stride = 512},
	{.flags = 0},
	{.flags = CPU, .hidden_vram = true},
	{.flags = CPU, .segment_set = VRAM, .no_ranges = true},
};

static struct oracle_allocation describe(const struct kind *k, enum state s, uint32_t residency)
{
	return (struct oracle_allocation){
		.cpu_visible = k->flags & CPU,
		.aperture = !k->segment_set || (k->segment_set & APERTURE),
		.swizzled = k->stride != 0,
		.memory = !k->segment_set || (k->segment_set & VRAM),
		.unswizzles = !k->stride && !k->hidden_vram && !k->no_ranges, /* softgpu's ranges */
		.alternates =
			!k->stride && !k->no_ranges && (!k->segment_set || (k->segment_set & VRAM)),
		.ranges = !k->no_ranges,
		.away = s == AWAY,
		.cached = k->flags & SOFTGPU_ALLOCATION_CACHED,
		.coherent = !k->incoherent,
		.hidden = k->hidden_vram && residency == IN_VRAM,
		.reading = s == READING || s == WRITING,
		.writing = s == WRITING,
	};
}

static D3DKMT_HANDLE prepare(struct world *w, const struct kind *k, enum state s)
{
	struct softgpu_allocation wish = wish_of(PAGE, k->flags, k->segment_set);

	wish.stride_bytes = k->stride;
	D3DKMT_HANDLE a = allocate_wish(&w->device, &wish);
	if (s == FRESH)
		return a;
	if (k->flags & CPU) {
		*(uint32_t *)client_lock(&w->device, a, 0) = 0x12345678;
		assert_int_equal(client_unlock(&w->device, a), S_OK);
	}
	if (s == AWAY)
		return a; /* written by the CPU, in no segment */
	use_now(w, a, true);
	if (s == RESIDENT)
		return a;
	gate_close(w);
	client_reference(&w->context, a, s == WRITING);
	client_submit(&w->context);
	return a;
}

static void check_refusal(struct world *w, D3DKMT_HANDLE a, uint32_t flags,
			  const struct oracle_answer *expected)
{
	const char *rules = expected->rules;
	bool named = false;

	for (const char *rule = rules; rule && *rule;
	     rule += strcspn(rule, " "), rule += *rule == ' ') {
		char id[16];

		snprintf(id, sizeof(id), "%.*s", (int)strcspn(rule, " "), rule);
		named |= client_found(&w->client, id);
	}
	if (w->client.findings != (rules != NULL) || (rules && !named))
		fail_msg("flags 0x%03x: %u findings, %s, expected %s", flags, w->client.findings,
			 w->client.finding[0], rules ? rules : "none");
	/* The lock count is what it was: there is nothing to unlock. */
	assert_int_equal(client_unlock(&w->device, a), E_INVALIDARG);
}

static void check_success(struct world *w, D3DKMT_HANDLE a, D3DKMT_HANDLE got, uint32_t flags,
			  const struct oracle_answer *expected)
{
	if (expected->renames ? got == a : got != a && !expected->may_rename)
		fail_msg("flags 0x%03x: handle 0x%08x came back for 0x%08x", flags, got, a);
	assert_int_equal(w->client.findings, 0);
	assert_int_equal(client_unlock(&w->device, got), S_OK);
	assert_int_equal(client_unlock(&w->device, got), E_INVALIDARG); /* once and no more */
}

/* A lock that waits must come back with the gate open; one that does not must come back with it closed. */
static HRESULT call(struct world *w, D3DKMT_HANDLE *handle, uint32_t flags, bool waits, void **data)
{
	struct helper h;

	if (!waits)
		return client_try_lock(&w->device, handle, flags, data);
	lock_elsewhere(&h, w, *handle, flags);
	gate_open(w);
	helper_join(&h);
	assert_true(h.gate_was_open);
	*handle = h.allocation;
	*data = h.data;
	return h.result;
}

static void one_combination(struct world *w, const struct kind *k, enum state s, uint32_t flags)
{
	D3DKMT_HANDLE a = prepare(w, k, s), handle = a;
	uint32_t before = client_residency(&w->device, a);
	struct oracle_allocation allocation = describe(k, s, before);
	struct oracle_answer expected = oracle_lock(flags, &allocation);
	void *data = &handle;

	client_forget(&w->client);
	HRESULT result = call(w, &handle, flags, expected.waits, &data);
	if (result != expected.result)
		fail_msg("kind %d, state %d, flags 0x%03x: 0x%08x, expected 0x%08x",
			 (int)(k - kinds), s, flags, (unsigned)result, (unsigned)expected.result);
	assert_int_equal(data != NULL, result == S_OK);
	if (result == S_OK) {
		check_success(w, a, handle, flags, &expected);
	} else {
		assert_int_equal(handle, a);
		check_refusal(w, a, flags, &expected);
	}
	if (handle != a || !expected.may_rename)
		assert_int_equal(client_residency(&w->device, a), expected.evicts ? EVICTED
								  : expected.pages_in
									  ? IN_VRAM
									  : (int)before);
	gate_open(w);
	/* Whatever came of it, the content is what was written. An honoured Discard may leave anything (REN-15). */
	if ((k->flags & CPU) && s != FRESH && handle == a && !expected.may_rename) {
		assert_int_equal(*(uint32_t *)client_lock(&w->device, a, READ_ONLY), 0x12345678);
		assert_int_equal(client_unlock(&w->device, a), S_OK);
	}
	assert_int_equal(client_deallocate(&w->device, a), S_OK);
	client_idle(&w->client);
	client_forget(&w->client);
}

static void start_for(struct world *w, void **state, const struct kind *k)
{
	struct vidmm_registry_value values[] = {{"VramCpuVisible", !k->hidden_vram},
						{"ApertureCoherent", !k->incoherent},
						{"SwizzlingRanges", k->no_ranges ? 0 : 64}};
	struct client_options options = {.registry = values, .registry_count = 3};

	world_start(w, state, &options);
}

static void one_kind(void **state, const struct kind *k, bool (*leave_out)(enum state, uint32_t))
{
	struct world w;

	start_for(&w, state, k);
	for (enum state s = FRESH; s < STATES; s++)
		for (uint32_t flags = 0; flags < 0x800; flags++)
			if (!leave_out(s, flags))
				one_combination(&w, k, s, flags);
	world_stop(&w);
}

static bool nothing(enum state s, uint32_t flags)
{
	(void)s;
	(void)flags;
	return false;
}

static bool busy_with_flags_that_are_not_about_waiting(enum state s, uint32_t flags)
{
	return (s == READING || s == WRITING) &&
	       (flags & (READ_ONLY | WRITE_ONLY | LOCK_ENTIRE | USE_ALTERNATE_VA));
}

static void every_combination_answers_as_the_rules_say(void **state)
{
	bool sim = *(uint32_t *)*state == VIDMM_HOST_SIM;

	/* Real threads take their time: there, a plain allocation and one that must move for the CPU. */
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		if (sim)
			one_kind(state, &kinds[k], nothing);
		else if (k == 0 || kinds[k].hidden_vram)
			one_kind(state, &kinds[k], busy_with_flags_that_are_not_about_waiting);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(every_combination_answers_as_the_rules_say),
	};

	return cmocka_run_group_tests_name("lock flags", tests, NULL, NULL);
}
