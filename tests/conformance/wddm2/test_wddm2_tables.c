/* SPDX-License-Identifier: MIT */
/*
 * Page tables: when they are created, their entries, and their updates while memory moves, under
 * pressure, through a reset and a power cycle. The GPU that walks them is the scripted one, which
 * also detects missing flushes.
 */
#include "va_world.h"

#include <stdlib.h>
#include <string.h>

static uint32_t count_of(const struct va_world *v, DXGK_BUILDPAGINGBUFFER_OPERATION operation)
{
	return wddm2_operations(&v->w, operation);
}

/* The n-th update of a client's process. */
static const DXGK_BUILDPAGINGBUFFER_UPDATEPAGETABLE *update(const struct va_world *v, uint32_t n)
{
	for (uint32_t i = 0; scripted_nth(v->w.m, VIDMM_DDI_BUILD_PAGING_BUFFER, i); i++) {
		const struct scripted_call *call =
			scripted_nth(v->w.m, VIDMM_DDI_BUILD_PAGING_BUFFER, i);

		if (call->in.paging.Operation == DXGK_OPERATION_UPDATE_PAGE_TABLE &&
		    call->in.paging.UpdatePageTable.hProcess != &v->w.m->paging_process && !n--)
			return &call->in.paging.UpdatePageTable;
	}
	return NULL;
}

/* At each level the whole table is made invalid first, then the level above refers to it. */
static void va_11_a_table_is_invalid_before_it_is_used(void **state)
{
	struct va_world v;

	va_begin(&v, state, va_memory);
	D3DKMT_HANDLE a = va_allocate(&v, 64 * KIB, WORLD_MEMORY);
	const DXGK_BUILDPAGINGBUFFER_UPDATEPAGETABLE *u = update(&v, 0);
	assert_int_equal(u->PageTableLevel, 2); /* the root, with the process */
	assert_true(u->Flags.InitialUpdate && u->Flags.Repeat);
	assert_int_equal(u->NumPageTableEntries, 256);
	uint64_t at = va_map(&v, a, 64 * KIB);
	const struct {
		UINT level, entries;
		bool initial;
	} expected[] = {{1, 256, true}, {2, 1, false}, {0, 256, true}, {1, 1, false}};
	for (uint32_t i = 0; i < 4; i++) {
		u = update(&v, 1 + i);
		assert_int_equal(u->PageTableLevel, expected[i].level);
		assert_int_equal(u->NumPageTableEntries, expected[i].entries);
		assert_int_equal(u->Flags.InitialUpdate, expected[i].initial);
		assert_int_equal(u->UpdateMode, DXGK_PAGETABLEUPDATE_GPU_PHYSICAL);
		assert_ptr_equal(u->hProcess, v.process);
		assert_null(u->hAllocation);
	}
	assert_null(update(&v, 5)); /* none of it is in memory yet */
	va_make(&v, a);
	u = update(&v, 5);
	assert_int_equal(u->PageTableLevel, 0);
	assert_int_equal(u->NumPageTableEntries, 16);
	assert_int_equal(u->FirstPteVirtualAddress, at);
	assert_non_null(u->hAllocation);
	va_finish(&v);
}

static void aligned(struct scripted_miniport *m)
{
	va_memory(m);
	for (uint32_t level = 0; level < 3; level++)
		m->settings.mmu.level[level].PageTableAlignmentInBytes = 64 * KIB << level;
}

/*
 * Tables of one page each. At every level their addresses are multiples of the alignment that the
 * miniport reports.
 */
static void va_11_tables_are_at_the_alignment_of_their_level(void **state)
{
	const DXGK_BUILDPAGINGBUFFER_UPDATEPAGETABLE *u;
	uint32_t tables[3] = {0};
	struct va_world v;

	va_begin(&v, state, aligned);
	D3DKMT_HANDLE a = va_allocate(&v, 4 * MIB, WORLD_MEMORY);
	uint64_t at = va_map(&v, a, 4 * MIB);
	va_make(&v, a);
	va_store(&v, at + 3 * MIB, 0xA);
	assert_int_equal(va_word(&v, at + 3 * MIB), 0xA);
	for (uint32_t i = 0; (u = update(&v, i)) != NULL; i++) {
		uint64_t offset = u->PageTableAddress.GpuPhysical.SegmentOffset;

		assert_int_equal(u->PageTableAddress.GpuPhysical.SegmentId, 1);
		assert_int_equal(offset % (64 * KIB << u->PageTableLevel), 0);
		tables[u->PageTableLevel] += u->Flags.InitialUpdate;
	}
	assert_true(tables[0] >= 4 && tables[1] >= 1);
	assert_int_equal(tables[2], 1);
	va_finish(&v);
}

/* Tables of addresses that are free again are freed: allocations can use the memory. */
static void va_11_page_tables_are_freed_with_their_last_mapping(void **state)
{
	struct va_world v;

	va_begin(&v, state, va_memory);
	D3DKMT_HANDLE a = va_allocate(&v, 4 * MIB, WORLD_MEMORY),
		      all = va_allocate(&v, 16 * MIB - 4096, WORLD_MEMORY),
		      most = va_allocate(&v, 16 * MIB - 8 * PAGE_BYTES, WORLD_MEMORY);
	D3DDDI_MAKERESIDENT args;
	/* The root is one page, so an allocation may have the rest. */
	assert_int_equal(wddm2_try_make_one(&v.w.device, &v.queue, all, &args), E_PENDING);
	wddm2_await(&v.w, &v.queue, args.PagingFenceValue);
	assert_int_equal(wddm2_evict(&v.w.device, all, 0), S_OK);
	wddm2_run(&v.w);
	/* four or five leaves, and one table above them */
	uint64_t at = va_map(&v, a, 4 * MIB);
	assert_int_equal(wddm2_try_make_one(&v.w.device, &v.queue, all, &args), E_OUTOFMEMORY);
	va_make(&v, most);
	assert_int_equal(wddm2_evict(&v.w.device, most, 0), S_OK);
	wddm2_run(&v.w);
	assert_int_equal(va_free(&v, at, 4 * MIB), S_OK);
	va_make(&v, all);
	va_finish(&v);
}

/* Locked memory leaves no page for a table: the map fails, and says why. */
static void va_11_a_map_without_space_for_a_table_says_so(void **state)
{
	struct va_world v;

	va_begin(&v, state, va_memory);
	D3DKMT_HANDLE a = va_allocate(&v, 64 * KIB, WORLD_MEMORY),
		      all = va_allocate(&v, 16 * MIB - 4096, WORLD_MEMORY);
	va_make(&v, all);
	D3DDDICB_LOCK2 lock = {.hAllocation = all};
	assert_int_equal(v.w.device.cb->pfnLock2Cb(v.w.device.handle, &lock), S_OK);
	D3DDDI_MAPGPUVIRTUALADDRESS args = va_mapping(&v, a, 1);
	(void)client_told(&v.w.client, 0, "");
	assert_int_equal(va_try_map(&v, &args), E_OUTOFMEMORY);
	assert_true(client_told(&v.w.client, (uint32_t)STATUS_NO_MEMORY, "VA-11: no free range"));
	const D3DDDICB_UNLOCK2 unlock = {.hAllocation = all};
	assert_int_equal(v.w.device.cb->pfnUnlock2Cb(v.w.device.handle, &unlock), S_OK);
	assert_int_equal(wddm2_evict(&v.w.device, all, 0), S_OK);
	wddm2_run(&v.w);
	va_must_map(&v, &args);
	va_finish(&v);
}

/*
 * VA-13: evicted, replaced by another allocation, paged in again: no entry ever pointed to the
 * other's memory.
 */
static void va_13_entries_are_invalidated_before_the_memory_is_reused(void **state)
{
	struct va_world v;

	va_begin(&v, state, va_memory);
	D3DKMT_HANDLE a = va_allocate(&v, 8 * MIB, WORLD_MEMORY),
		      b = va_allocate(&v, 12 * MIB, WORLD_MEMORY);
	uint64_t at = va_map(&v, a, 8 * MIB), bt = va_map(&v, b, 12 * MIB);
	va_make(&v, a);
	va_store(&v, at + 4096, 0xA);
	assert_int_equal(wddm2_evict(&v.w.device, a, 0), S_OK);
	wddm2_run(&v.w);
	uint32_t flushes = count_of(&v, DXGK_OPERATION_FLUSH_TLB);
	va_make(&v, b);
	assert_true(count_of(&v, DXGK_OPERATION_FLUSH_TLB) > flushes);
	assert_false(va_is_there(&v, at + 4096));
	va_store(&v, bt + 4096, 0xB);
	assert_int_equal(wddm2_evict(&v.w.device, b, 0), S_OK);
	wddm2_run(&v.w);
	va_make(&v, a);
	assert_int_equal(va_word(&v, at + 4096), 0xA);
	va_finish(&v);
}

static void not_cached(struct scripted_miniport *m)
{
	va_memory(m);
	m->settings.mmu.caps.InvalidTlbEntriesNotCached = 1;
}

static void va_13_invalid_to_valid_needs_no_flush_with_invalidtlbentriesnotcached(void **state)
{
	struct va_world v;

	va_begin(&v, state, not_cached);
	D3DKMT_HANDLE a = va_allocate(&v, 64 * KIB, WORLD_MEMORY);
	uint64_t at = va_map(&v, a, 64 * KIB);
	assert_false(va_is_there(&v, at));
	va_make(&v, a);
	assert_int_equal(count_of(&v, DXGK_OPERATION_FLUSH_TLB), 0);
	assert_true(va_is_there(&v, at));
	/*
	 * An eviction makes the entries invalid, with a flush. At the return only the window is
	 * flushed that the content moves through.
	 */
	assert_int_equal(wddm2_evict(&v.w.device, a, 0), S_OK);
	wddm2_run(&v.w);
	uint32_t flushes = count_of(&v, DXGK_OPERATION_FLUSH_TLB);
	va_make(&v, a);
	assert_int_equal(count_of(&v, DXGK_OPERATION_FLUSH_TLB), flushes + 1);
	assert_true(va_is_there(&v, at));
	assert_int_equal(va_free(&v, at, 64 * KIB), S_OK);
	assert_true(count_of(&v, DXGK_OPERATION_FLUSH_TLB) > flushes + 1);
	assert_false(va_is_there(&v, at));
	va_finish(&v);
}

/* Also if the allocation that takes over the addresses was mapped nowhere before. */
static void va_13_valid_to_valid_needs_a_flush_with_invalidtlbentriesnotcached(void **state)
{
	struct va_world v;

	va_begin(&v, state, not_cached);
	D3DKMT_HANDLE a = va_allocate(&v, 64 * KIB, WORLD_MEMORY),
		      b = va_allocate(&v, PAGE_BYTES, WORLD_MEMORY);
	va_make(&v, a);
	va_make(&v, b);
	uint64_t at = va_reserve(&v, 0, 64 * KIB, D3DDDIGPUVIRTUALADDRESS_RESERVE_NO_ACCESS);
	D3DDDI_MAPGPUVIRTUALADDRESS args = va_mapping(&v, a, 16);
	args.BaseAddress = at;
	va_must_map(&v, &args);
	va_store(&v, at + 5 * PAGE_BYTES, 0xA); /* the translation is in the TLB now */
	args = va_mapping(&v, b, 1);
	args.BaseAddress = at + 5 * PAGE_BYTES;
	va_must_map(&v, &args);
	va_store(&v, at + 5 * PAGE_BYTES, 0xB);
	args = va_mapping(&v, a, 16);
	va_must_map(&v, &args);
	assert_int_equal(va_word(&v, args.VirtualAddress + 5 * PAGE_BYTES), 0xA);
	va_finish(&v);
}

/*
 * Tables in system memory, written by the CPU; pages in system memory as well, not mapped into the
 * aperture (PAG-24).
 */
static void va_11_tables_in_system_memory_are_updated_by_the_cpu_at_once(void **state)
{
	struct va_world v;

	va_begin(&v, state, va_system);
	D3DKMT_HANDLE a = va_allocate(&v, 256 * KIB, WORLD_APERTURE);
	uint64_t at = va_map(&v, a, 256 * KIB);
	va_make(&v, a);
	DXGK_PTE entry;
	assert_true(scripted_walk(v.process, at + 128 * KIB, &entry));
	assert_int_equal(entry.Segment, 0);
	va_store(&v, at + 128 * KIB, 0x5151);
	assert_int_equal(update(&v, 0)->UpdateMode, DXGK_PAGETABLEUPDATE_CPU_VIRTUAL);
	assert_int_equal(world_word(&v.w, a, 128 * KIB), 0x5151);
	va_finish(&v);
}

static void pnp_06_page_tables_are_restored_at_power_on(void **state)
{
	struct va_world v;

	va_begin(&v, state, va_memory);
	D3DKMT_HANDLE a = va_allocate(&v, 64 * KIB, WORLD_MEMORY | WORLD_APERTURE);
	uint64_t at = va_map(&v, a, 64 * KIB), r = va_reserve(&v, 0, 64 * KIB, 1);
	va_make(&v, a);
	va_store(&v, at, 0xBEEF);
	assert_int_equal(
		vidmm_adapter_set_power(v.w.client.adapter, VIDMM_POWER_D3, VIDMM_SLEEP_STANDBY),
		0);
	/* its memory loses its content */
	memset(v.w.m->bar, 0xEE, SCRIPTED_BAR_BYTES);
	assert_int_equal(
		vidmm_adapter_set_power(v.w.client.adapter, VIDMM_POWER_D0, VIDMM_SLEEP_STANDBY),
		0);
	wddm2_run(&v.w);
	memset(v.process->tlb, 0, sizeof(v.process->tlb));
	assert_int_equal(va_word(&v, r), 0);
	va_make(&v, a);
	assert_int_equal(va_word(&v, at), 0xBEEF);
	va_finish(&v);
}

/*
 * Page-in: first the content, then the notification, then the tables. Eviction: the notification
 * is first.
 */
static void va_14_notify_residency_is_between_content_and_page_tables(void **state)
{
	struct va_world v;
	const struct scripted_allocation spec = {.size_bytes = 64 * KIB,
						 .flags = PHYSICAL | NOTIFY_RESIDENCY,
						 .read_set = WORLD_MEMORY,
						 .write_set = WORLD_MEMORY};
	D3DKMT_HANDLE a;

	va_begin(&v, state, va_memory);
	assert_int_equal(wddm2_try_allocate(&v.w.device, &spec, &a), S_OK);
	va_map(&v, a, 64 * KIB);
	scripted_forget(v.w.m);
	va_make(&v, a);
	assert_int_equal(wddm2_evict(&v.w.device, a, 0), S_OK);
	wddm2_run(&v.w);
	const DXGK_BUILDPAGINGBUFFER_OPERATION expected[] = {
		DXGK_OPERATION_UPDATE_PAGE_TABLE, /* of the paging process */
		DXGK_OPERATION_FLUSH_TLB,         DXGK_OPERATION_VIRTUAL_FILL,
		DXGK_OPERATION_NOTIFY_RESIDENCY, /* 1 */
		DXGK_OPERATION_UPDATE_PAGE_TABLE, DXGK_OPERATION_FLUSH_TLB,
		DXGK_OPERATION_NOTIFY_RESIDENCY,  /* 0 */
		DXGK_OPERATION_UPDATE_PAGE_TABLE, /* source and destination */
		DXGK_OPERATION_UPDATE_PAGE_TABLE, DXGK_OPERATION_FLUSH_TLB,
		DXGK_OPERATION_VIRTUAL_TRANSFER,  DXGK_OPERATION_UPDATE_PAGE_TABLE,
		DXGK_OPERATION_FLUSH_TLB};
	for (uint32_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		const struct scripted_call *call =
			scripted_nth(v.w.m, VIDMM_DDI_BUILD_PAGING_BUFFER, i);

		assert_non_null(call);
		assert_int_equal(call->in.paging.Operation, expected[i]);
		if (expected[i] == DXGK_OPERATION_NOTIFY_RESIDENCY)
			assert_int_equal(call->in.paging.NotifyResidency.Resident, i == 3);
	}
	va_finish(&v);
}

/* ---- under pressure ---- */

#define OBJECTS 6u
struct thing {
	D3DKMT_HANDLE handle;
	uint64_t at[3]; /* addresses; 0: none */
	uint32_t word;
	bool listed;
};
struct random_run {
	struct va_world v;
	struct thing thing[OBJECTS];
	uint64_t seed;
};

static uint32_t draw(struct random_run *c, uint32_t below)
{
	c->seed = c->seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(c->seed >> 33) % below;
}

#define THING_BYTES (5 * (uint64_t)MIB)
#define PROBE       (3 * (uint64_t)MIB + 4096)

static void list(struct random_run *c, struct thing *t, bool listed)
{
	if (t->listed == listed)
		return;
	t->listed = listed;
	if (listed) {
		va_make(&c->v, t->handle);
		return;
	}
	assert_int_equal(wddm2_evict(&c->v.w.device, t->handle, 0), S_OK);
	wddm2_run(&c->v.w);
}

static uint32_t listed_count(const struct random_run *c)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < OBJECTS; i++)
		count += c->thing[i].listed;
	return count;
}

static void toggle_mapping(struct random_run *c, struct thing *t)
{
	uint64_t *at = &t->at[draw(c, 3)];

	if (*at) {
		assert_int_equal(va_free(&c->v, *at, THING_BYTES), S_OK);
		assert_false(va_is_there(&c->v, *at + PROBE));
		*at = 0;
		return;
	}
	*at = va_map(&c->v, t->handle, THING_BYTES);
}

static void look(struct random_run *c)
{
	for (uint32_t i = 0; i < OBJECTS; i++)
		for (uint32_t k = 0; k < 3; k++) {
			const struct thing *t = &c->thing[i];

			if (t->at[k] && t->listed)
				assert_int_equal(va_word(&c->v, t->at[k] + PROBE), t->word);
		}
}

static void step(struct random_run *c)
{
	struct thing *t = &c->thing[draw(c, OBJECTS)];

	switch (draw(c, 4)) {
	case 0:
		toggle_mapping(c, t);
		break;
	case 1: /* three of them fit, with their tables */
		if (!t->listed && listed_count(c) == 2)
			list(c, &c->thing[draw(c, OBJECTS)], false);
		if (listed_count(c) < 2)
			list(c, t, true);
		break;
	case 2:
		list(c, t, false);
		break;
	default:
		for (uint32_t k = 0; k < 3 && t->listed; k++)
			if (t->at[k]) {
				t->word = draw(c, 1u << 30);
				va_store(&c->v, t->at[k] + PROBE, t->word);
				break;
			}
	}
	look(c);
}

static void random_run(void **state, world_setup *setup, uint64_t seed)
{
	struct random_run c = {.seed = seed};

	va_begin(&c.v, state, setup);
	for (uint32_t i = 0; i < OBJECTS; i++)
		c.thing[i].handle = va_allocate(
			&c.v, THING_BYTES, i % 2 ? WORLD_MEMORY | WORLD_APERTURE : WORLD_MEMORY);
	for (uint32_t i = 0; i < 120; i++)
		step(&c);
	va_finish(&c.v);
}

static void va_13_gpu_reads_correct_content_through_random_moves(void **state)
{
	for (uint64_t seed = 1; seed <= 3; seed++) {
		random_run(state, va_memory, seed);
		random_run(state, va_two_levels, seed + 100);
		random_run(state, va_system, seed + 200);
		random_run(state, va_virtual, seed + 300);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_SIM(va_11_a_table_is_invalid_before_it_is_used),
		ON_SIM(va_11_tables_are_at_the_alignment_of_their_level),
		ON_SIM(va_11_page_tables_are_freed_with_their_last_mapping),
		ON_SIM(va_11_a_map_without_space_for_a_table_says_so),
		ON_SIM(va_11_tables_in_system_memory_are_updated_by_the_cpu_at_once),
		ON_BOTH(va_13_entries_are_invalidated_before_the_memory_is_reused),
		ON_SIM(va_13_invalid_to_valid_needs_no_flush_with_invalidtlbentriesnotcached),
		ON_SIM(va_13_valid_to_valid_needs_a_flush_with_invalidtlbentriesnotcached),
		ON_SIM(va_14_notify_residency_is_between_content_and_page_tables),
		ON_SIM(pnp_06_page_tables_are_restored_at_power_on),
		ON_SIM(va_13_gpu_reads_correct_content_through_random_moves),
	};

	return cmocka_run_group_tests_name("wddm2_tables", tests, NULL, NULL);
}
