/* SPDX-License-Identifier: MIT */
/*
 * random_illegal [FIRST_SEED [CALLS]]: a million random calls with invalid flags, values and
 * handles, in all builds together (support/seeds.h). Each is refused with the documented status
 * and rule, and changes nothing: statistics, residency, objects of the miniport. The legal calls in
 * between find every byte.
 */
#include "illegal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/seeds.h"

/* Of each build. One thread: ThreadSanitizer finds little in it. */
static const uint64_t share_of_build[] = {600000, 200000, 200000, 20000};
#define FEW   200000u
#define SEEDS 1000u /* of a build, at most */

enum { ROUNDS = 100, LEGAL_EACH = 8, ILLEGAL_EACH = 50 };

static const struct {
	const char *name;
	illegal_call *call;
} kinds[] = {
	{"creates", illegal_create},
	{"locks", illegal_lock},
	{"unlocks", illegal_unlock},
	{"offers", illegal_offer},
	{"reclaims", illegal_reclaim},
	{"priorities", illegal_priority},
	{"MakeResidents", illegal_make_resident},
	{"Evicts", illegal_evict},
	{"deallocations", illegal_deallocate},
	{"properties", illegal_update},
	{"renders", illegal_render},
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static uint64_t first_seed, calls, done[KINDS], not_built;

/* ---- state that must not change ---- */

struct snapshot {
	struct vidmm_adapter_statistics statistics;
	uint32_t contexts, allocations, opens;
	uint32_t residency[ITEMS];
};

static void take(struct random *r, struct snapshot *s)
{
	D3DKMT_HANDLE handles[ITEMS];
	uint32_t count = 0;

	memset(s, 0, sizeof(*s));
	s->statistics.struct_size = sizeof(s->statistics);
	vidmm_adapter_statistics(r->w.client.adapter, &s->statistics);
	s->statistics.peak_resident_bytes = s->statistics.peak_system_bytes = 0;
	for (uint32_t i = 0; i < VIDMM_SEGMENTS_MAX; i++)
		s->statistics.segment[i].peak_resident_bytes = 0;
	s->contexts = r->w.m->live_contexts;
	s->allocations = r->w.m->live_allocations;
	s->opens = r->w.m->live_opens;
	for (uint32_t i = 0; i < ITEMS; i++)
		if (r->item[i].handle)
			handles[count++] = r->item[i].handle;
	D3DDDICB_QUERYRESIDENCY args = {.NumAllocations = count,
					.HandleList = handles,
					.pResidencyStatus =
						(D3DDDI_RESIDENCYSTATUS *)(void *)s->residency};
	if (count)
		assert_int_equal(r->w.device.cb->pfnQueryResidencyCb(r->w.device.handle, &args),
				 S_OK);
}

/* A render may be refused after it has taken a DMA buffer, so the context's pool may grow. */
static void compare(struct random *r, const struct item *item, struct snapshot *before,
		    bool may_grow_pool)
{
	struct snapshot now;
	const unsigned char *a = (const unsigned char *)before;

	take(r, &now);
	if (may_grow_pool)
		before->statistics.system_bytes = now.statistics.system_bytes;
	for (size_t i = 0; memcmp(before, &now, sizeof(now)) && i < sizeof(now); i++)
		if (a[i] != ((const unsigned char *)&now)[i])
			random_wrong(r, item, "the snapshot differs at byte", i);
	vidmm_adapter_check(r->w.client.adapter);
}

/* ---- one call ---- */

static bool found_one_of(const struct client *client, char *rules)
{
	if (!*rules)
		return client->findings != 0;
	for (char *rule = strtok(rules, " "); rule; rule = strtok(NULL, " "))
		if (client_found(client, rule))
			return true;
	return false;
}

static bool refuse_one(struct random *r, struct snapshot *before)
{
	uint32_t kind = draw(r, KINDS);
	struct illegal call = {.r = r, .item = random_item(r)};

	if (!call.item)
		return false;
	r->what = kinds[kind].name;
	HRESULT result = kinds[kind].call(&call);
	if (!call.r)
		return false;
	if (call.not_built ? result != E_NOTIMPL && result != E_INVALIDARG : result != E_INVALIDARG)
		random_wrong(r, call.item, "not refused as it should be, flags << 32 | result",
			     (uint64_t)call.flags << 32 | (uint32_t)result);
	if (result == E_INVALIDARG) {
		char rules[sizeof(call.rules)];

		memcpy(rules, call.rules, sizeof(rules));
		if (!found_one_of(&r->w.client, rules))
			random_wrong(r, call.item, call.rules, r->w.client.findings);
	}
	not_built += result == E_NOTIMPL;
	done[kind]++;
	client_forget(&r->w.client);
	compare(r, call.item, before, kinds[kind].call == illegal_render);
	return true;
}

static uint64_t run_seed(uint64_t seed, struct random_totals *totals)
{
	struct random *r = calloc(1, sizeof(*r));
	struct snapshot before;
	uint64_t refused = 0;

	assert_non_null(r);
	random_begin(r, seed);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		for (uint32_t i = 0; i < LEGAL_EACH; i++)
			random_step(r);
		/*
		 * Frees deferred memory now: otherwise a later call would, and change the snapshot.
		 */
		random_idle(r);
		vidmm_settle(r->w.client.host);
		take(r, &before);
		for (uint32_t i = 0; i < ILLEGAL_EACH; i++)
			refused += refuse_one(r, &before);
		scripted_forget(r->w.m);
	}
	random_end(r, totals);
	free(r);
	return refused;
}

static void illegal_calls_change_nothing(void **state)
{
	struct random_totals totals = {.operations = 0};
	uint64_t seed = first_seed, refused = 0;

	(void)state;
	while (refused < calls)
		refused += run_seed(seed++, &totals);
	printf("# %" PRIu64 " illegal calls refused, %" PRIu64
	       " of them as not built, between %" PRIu64 " legal ones, seeds %" PRIu64
	       " to %" PRIu64 "\n#",
	       refused, not_built, totals.operations, first_seed, seed - 1);
	for (uint32_t k = 0; k < KINDS; k++) {
		printf(" %" PRIu64 " %s%s", done[k], kinds[k].name, k + 1 < KINDS ? "," : "\n");
		assert_true(calls < FEW || done[k] > calls / 200);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(illegal_calls_change_nothing)};

	first_seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1 + seeds_build_number() * SEEDS;
	calls = argc > 2 ? strtoull(argv[2], NULL, 0) : share_of_build[seeds_build_number() & 3];
	return cmocka_run_group_tests_name("random_illegal", tests, NULL, NULL);
}
