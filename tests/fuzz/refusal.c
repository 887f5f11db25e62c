/* SPDX-License-Identifier: MIT */
#include "refusal.h"

#include <d3dkmthk.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FIXED_SEEDS 24u
#define STEPS       400u

static uint64_t first_seed = 1;
static time_t end; /* 0: the fixed seeds */

/* A byte for what has up to 256 values, so that a byte of the input decides one thing. */
static uint32_t draw_from_input(struct refusal *r, uint32_t below)
{
	uint32_t value = 0, bytes = below <= 256 ? 1 : 4;

	for (; bytes && r->input_bytes; bytes--, r->input_bytes--)
		value = value << 8 | *r->input++;
	return value % below;
}

uint32_t refusal_draw(struct refusal *r, uint32_t below)
{
	if (r->guided)
		return draw_from_input(r, below);
	uint64_t x = r->random += 0x9E3779B97F4A7C15u;

	x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
	x = (x ^ x >> 27) * 0x94D049BB133111EBu;
	return (uint32_t)((x ^ x >> 31) >> 32) % below;
}

uint64_t refusal_wide(struct refusal *r)
{
	uint64_t any = (uint64_t)refusal_draw(r, UINT32_MAX) << 32 | refusal_draw(r, UINT32_MAX);

	switch (refusal_draw(r, 5)) {
	case 0:
		return any % 8;
	case 1:
		return (uint64_t)1 << any % 64;
	case 2:
		return UINT64_MAX - any % 9000;
	case 3:
		return UINT32_MAX - any % 3;
	default:
		return any;
	}
}

D3DKMT_HANDLE refusal_bad_handle(struct refusal *r)
{
	const D3DKMT_HANDLE known[] = {0,
				       1,
				       UINT32_MAX,
				       r->stale,
				       r->stale,
				       r->kmt_adapter,
				       r->kmt_device,
				       r->kmt_context,
				       r->kmt_resource};
	uint32_t which = refusal_draw(r, 12);

	if (which < sizeof(known) / sizeof(known[0]))
		return known[which];
	/* Returns a handle that is not live: live handles are few, with small indexes. */
	return refusal_draw(r, UINT32_MAX) | 0xE0000000u;
}

uint32_t refusal_bad_list(struct refusal *r, D3DKMT_HANDLE *list, D3DKMT_HANDLE good)
{
	uint32_t count = 1 + refusal_draw(r, 4);

	for (uint32_t i = 0; i < count; i++)
		list[i] = good;
	list[refusal_draw(r, count)] = refusal_bad_handle(r);
	return count;
}

void refusal_wrong(const struct refusal *r, const char *what, uint64_t got)
{
	fail_msg("seed %" PRIu64 ", step %u, %s (0x%x): %s (0x%" PRIx64 "); last finding: %s",
		 r->seed, r->step, r->what ? r->what : "start", r->detail, what, got,
		 r->w.client.findings ? r->w.client.finding[0] : "none");
}

void refusal_expect(const struct refusal *r, HRESULT result)
{
	static const HRESULT documented[] = {E_INVALIDARG,
					     E_NOTIMPL,
					     E_OUTOFMEMORY,
					     D3DERR_OUTOFVIDEOMEMORY,
					     D3DDDIERR_INVALIDHANDLE,
					     D3DDDIERR_INVALIDUSERBUFFER,
					     D3DDDIERR_CANTRENDERLOCKEDALLOCATION,
					     D3DDDIERR_INVALIDINSTRUCTION,
					     (HRESULT)0xC0262115 /* a handle of another device */};

	for (size_t i = 0; i < sizeof(documented) / sizeof(documented[0]); i++)
		if (result == documented[i])
			return;
	refusal_wrong(r, "not a documented refusal", (uint32_t)result);
}

/* ---- state that must not change ---- */

static void take(struct refusal *r, struct refusal_snapshot *s)
{
	const struct scripted_miniport *m = r->w.m;

	memset(s, 0, sizeof(*s));
	s->statistics.struct_size = sizeof(s->statistics);
	vidmm_adapter_statistics(r->w.client.adapter, &s->statistics);
	s->statistics.peak_resident_bytes = s->statistics.peak_system_bytes = 0;
	for (uint32_t i = 0; i < VIDMM_SEGMENTS_MAX; i++)
		s->statistics.segment[i].peak_resident_bytes = 0;
	s->devices = m->live_devices;
	s->contexts = m->live_contexts;
	s->allocations = m->live_allocations;
	s->opens = m->live_opens;
	for (uint32_t i = 0; i < WITNESSES; i++)
		s->residency[i] = client_residency(&r->w.device, r->witness[i]);
}

static void compare_numbers(struct refusal *r)
{
	struct refusal_snapshot now;
	const unsigned char *before = (const unsigned char *)&r->before;

	take(r, &now);
	for (size_t i = 0; i < sizeof(now); i++)
		if (before[i] != ((const unsigned char *)&now)[i])
			refusal_wrong(r, "the snapshot differs at byte", i);
	vidmm_adapter_check(r->w.client.adapter);
}

static void compare_bytes(struct refusal *r)
{
	for (uint32_t i = 0; i < WITNESSES - 1; i++)
		client_expect(&r->w.device, r->witness[i], WITNESS_BYTES, 1000 * i);
	for (uint32_t i = 0; i < WITNESS_BYTES / 4; i++)
		if (r->locked[i] != 1000 * (WITNESSES - 1) + i)
			refusal_wrong(r, "the locked one differs at", i);
}

/* ---- one seed ---- */

static void with_banks(struct scripted_miniport *m)
{
	static SIZE_T borders[] = {4 * MIB, 8 * MIB, 12 * MIB};

	m->settings.segment[0].flags |= 0x8; /* UseBanking */
	m->settings.segment[0].bank_count = REFUSAL_BANKS;
	m->settings.segment[0].bank_table = borders;
}

static void set_up_kmt(struct refusal *r)
{
	D3DKMT_ADAPTERINFO info;
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1, .pAdapters = &info};
	struct scripted_allocation spec = {.size_bytes = 4096, .flags = WORLD_CPU_VISIBLE};
	D3DDDI_ALLOCATIONINFO item = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec)};

	vidmm_d3dkmt_attach(r->w.device.process);
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	D3DKMT_CREATEDEVICE device = {.hAdapter = r->kmt_adapter = info.hAdapter};
	assert_int_equal(D3DKMTCreateDevice(&device), STATUS_SUCCESS);
	r->kmt_device = device.hDevice;
	D3DKMT_CREATECONTEXT context = {.hDevice = r->kmt_device};
	assert_int_equal(D3DKMTCreateContext(&context), STATUS_SUCCESS);
	r->kmt_context = context.hContext;
	D3DKMT_CREATEALLOCATION create = {.hDevice = r->kmt_device,
					  .NumAllocations = 1,
					  .pAllocationInfo = &item,
					  .Flags.CreateResource = 1};
	assert_int_equal(D3DKMTCreateAllocation(&create), STATUS_SUCCESS);
	r->kmt_resource = create.hResource;
	r->kmt_allocation = item.hAllocation;
}

static void set_up(struct refusal *r, void **kind)
{
	static const uint32_t sets[WITNESSES] = {WORLD_MEMORY, WORLD_APERTURE, 0, 0};
	struct world *w = &r->w;

	world_start(w, kind, with_banks);
	w->m->settings.complete_at_once = true;
	for (uint32_t i = 0; i < WITNESSES; i++) {
		r->witness[i] = world_allocate(w, WITNESS_BYTES, sets[i]);
		client_write(&w->device, r->witness[i], WITNESS_BYTES, 1000 * i);
		if (i <
		    3) /* in its segment; the last one, which is locked, stays in system memory */
			world_submit_write(&w->context, r->witness[i], 0, 1000 * i);
	}
	r->offered = world_allocate(w, WITNESS_BYTES, 0);
	D3DDDICB_OFFERALLOCATIONS offer = {
		.NumAllocations = 1, .HandleList = &r->offered, .Priority = 1};
	assert_int_equal(w->device.cb->pfnOfferAllocationsCb(w->device.handle, &offer), S_OK);
	client_open(&w->client, &r->other);
	r->foreign = world_allocate_as(
		&r->other,
		&(struct scripted_allocation){.size_bytes = 4096, .flags = WORLD_CPU_VISIBLE});
	r->stale = world_allocate(w, 4096, 0);
	assert_int_equal(client_deallocate(&w->device, r->stale), S_OK);
	client_idle(&w->client);
	/*
	 * An allocation of pages first collects those that paging no longer reads; from here on
	 * there are none to collect.
	 */
	D3DKMT_HANDLE last = world_allocate(w, 4096, 0);
	client_write(&w->device, last, 4096, 0);
	assert_int_equal(client_deallocate(&w->device, last), S_OK);
	r->locked = client_lock(&w->device, r->witness[WITNESSES - 1], 0);
	set_up_kmt(r);
	take(r, &r->before);
}

static void tear_down(struct refusal *r)
{
	struct world *w = &r->w;
	BOOL discarded = 7;
	D3DDDICB_RECLAIMALLOCATIONS reclaim = {
		.NumAllocations = 1, .HandleList = &r->offered, .pDiscarded = &discarded};

	compare_bytes(r);
	assert_int_equal(client_unlock(&w->device, r->witness[WITNESSES - 1]), S_OK);
	assert_int_equal(w->device.cb->pfnReclaimAllocationsCb(w->device.handle, &reclaim), S_OK);
	assert_int_equal(discarded, 0);
	world_submit_write(&w->context, r->witness[0], 4, 77); /* the adapter goes on */
	client_idle(&w->client);
	assert_int_equal(world_word(w, r->witness[0], 4), 77);
	const D3DKMT_DESTROYDEVICE end_kmt = {.hDevice = r->kmt_device};
	assert_int_equal(D3DKMTDestroyDevice(&end_kmt), STATUS_SUCCESS);
	vidmm_d3dkmt_attach(NULL);
	scripted_forget(w->m);
	client_close(&r->other);
	world_stop(w);
}

static void run_seed(uint64_t seed)
{
	struct refusal *r = calloc(1, sizeof(*r));
	void *kind = seed % 4 == 3 ? &world_linux : &world_sim;

	assert_non_null(r);
	r->seed = r->random = seed;
	set_up(r, &kind);
	for (r->step = 0; r->step < STEPS; r->step++) {
		refusal_program.step(r);
		client_forget(&r->w.client);
		compare_numbers(r);
		if (r->step % 50 == 0)
			compare_bytes(r);
		if (r->step % 100 == 99)
			scripted_forget(r->w.m);
	}
	tear_down(r);
	free(r);
}

static void nothing_changes(void **state)
{
	uint64_t seed = first_seed;

	(void)state;
	while (end ? time(NULL) < end : seed < first_seed + FIXED_SEEDS)
		run_seed(seed++);
	printf("# %" PRIu64 " calls refused, seeds %" PRIu64 " to %" PRIu64 "\n",
	       (seed - first_seed) * STEPS, first_seed, seed - 1);
}

int refusal_main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_changes)};

	if (count > 1)
		end = time(NULL) + strtol(arguments[1], NULL, 0);
	if (count > 2)
		first_seed = strtoull(arguments[2], NULL, 0);
	return cmocka_run_group_tests_name(refusal_program.name, tests, NULL, NULL);
}

static struct refusal *guided;

static void end_guided(void)
{
	tear_down(guided);
	free(guided);
}

static void begin_guided(void)
{
	void *kind = &world_sim;

	guided = calloc(1, sizeof(*guided));
	assert_non_null(guided);
	set_up(guided, &kind);
	guided->guided = true;
	(void)atexit(end_guided);
}

void refusal_input(const uint8_t *data, size_t size)
{
	if (!guided)
		begin_guided();
	guided->input = data;
	guided->input_bytes = size;
	for (guided->step = 0; guided->input_bytes; guided->step++) {
		refusal_program.step(guided);
		client_forget(&guided->w.client);
	}
	compare_numbers(guided);
	compare_bytes(guided);
	scripted_forget(guided->w.m);
}
