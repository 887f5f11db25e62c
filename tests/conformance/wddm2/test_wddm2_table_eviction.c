/* SPDX-License-Identifier: MIT */
/*
 * Page tables of an idle process are evicted under memory pressure, and return before its next
 * packet (VA-22, Q-222). The segment has 16 MiB; the tables of the first process are in the way of
 * what another process makes resident.
 */
#include "command_world.h"

#include <string.h>

/* All of the segment but the root table of the process. */
#define ALMOST_ALL (SCRIPTED_BAR_BYTES - PAGE_BYTES)

struct pair {
	struct stage s;
	struct client_device other;
	D3DDDICB_CREATEPAGINGQUEUE queue; /* of the other device */
	D3DKMT_HANDLE large;              /* of the other device */
};

/* The target is in memory, so the stage has tables of three levels there. */
static void begin(struct pair *p, void **state, world_setup *setup)
{
	stage_begin(&p->s, state, setup);
	client_open(&p->s.v.w.client, &p->other);
	p->queue = wddm2_queue(&p->other);
	p->large = wddm2_allocate(&p->other, ALMOST_ALL, WORLD_MEMORY);
}

static void finish(struct pair *p)
{
	client_close(&p->other);
	stage_finish(&p->s);
}

static void list_large(struct pair *p)
{
	wddm2_make(&p->s.v.w, &p->other, &p->queue, &p->large, 1);
}

static void store(struct pair *p, uint64_t at, uint32_t value)
{
	D3DDDICB_SUBMITCOMMAND args = stage_command(&p->s);

	stage_fill(&p->s, at, value);
	assert_int_equal(stage_submit(&p->s, &args), S_OK);
	wddm2_run(&p->s.v.w);
}

/* Is there a flush of all addresses of the first process since that operation? */
static bool flushed_all(const struct pair *p, uint32_t from)
{
	const struct scripted_miniport *m = p->s.v.w.m;
	const struct scripted_call *call;

	for (; (call = scripted_nth(m, VIDMM_DDI_BUILD_PAGING_BUFFER, from)) != NULL; from++) {
		const DXGK_BUILDPAGINGBUFFER_FLUSHTLB *flush = &call->in.paging.FlushTlb;

		if (call->in.paging.Operation == DXGK_OPERATION_FLUSH_TLB &&
		    flush->hProcess == p->s.v.process && !flush->StartVirtualAddress &&
		    !flush->EndVirtualAddress)
			return true;
	}
	return false;
}

static uint32_t flushes(const struct pair *p, uint32_t from)
{
	const struct scripted_miniport *m = p->s.v.w.m;
	const struct scripted_call *call;
	uint32_t count = 0;

	for (; (call = scripted_nth(m, VIDMM_DDI_BUILD_PAGING_BUFFER, from)) != NULL; from++)
		count += call->in.paging.Operation == DXGK_OPERATION_FLUSH_TLB &&
			 call->in.paging.FlushTlb.hProcess == p->s.v.process;
	return count;
}

/* Updates of tables of the first process since that operation: all, or only initial ones. */
static uint32_t updates(const struct pair *p, uint32_t from, bool initial)
{
	const struct scripted_miniport *m = p->s.v.w.m;
	const struct scripted_call *call;
	uint32_t count = 0;

	for (; (call = scripted_nth(m, VIDMM_DDI_BUILD_PAGING_BUFFER, from)) != NULL; from++) {
		const DXGK_BUILDPAGINGBUFFER_UPDATEPAGETABLE *u = &call->in.paging.UpdatePageTable;

		count += call->in.paging.Operation == DXGK_OPERATION_UPDATE_PAGE_TABLE &&
			 u->hProcess == p->s.v.process && (!initial || u->Flags.InitialUpdate);
	}
	return count;
}

static uint32_t operations(const struct pair *p)
{
	return scripted_count(p->s.v.w.m, VIDMM_DDI_BUILD_PAGING_BUFFER);
}

static uint32_t roots(const struct pair *p)
{
	return scripted_count(p->s.v.w.m, VIDMM_DDI_SET_ROOT_PAGE_TABLE);
}

static void return_before_the_next_packet(void **state, world_setup *setup)
{
	struct pair p;

	begin(&p, state, setup);
	store(&p, p.s.target_at + 64, 0x1111);
	assert_int_equal(va_word(&p.s.v, p.s.target_at + 64), 0x1111);
	uint32_t from = operations(&p), sent = roots(&p);
	list_large(&p); /* the target leaves, and the tables */
	assert_true(flushed_all(&p, from));
	assert_int_equal(updates(&p, from, true), 0);
	assert_int_equal(roots(&p), sent);
	/*
	 * The packet brings all back, and the other's allocation leaves: its list waits its turn.
	 */
	from = operations(&p);
	store(&p, p.s.target_at + 128, 0x2222);
	assert_true(updates(&p, from, true) >= p.s.v.w.m->settings.mmu.caps.PageTableLevelCount);
	assert_int_equal(roots(&p), sent + 1);
	assert_int_equal(va_word(&p.s.v, p.s.target_at + 64), 0x1111);
	assert_int_equal(va_word(&p.s.v, p.s.target_at + 128), 0x2222);
	/* Nothing else changed: the next packet needs no update. */
	from = operations(&p);
	store(&p, p.s.target_at + 192, 0x3333);
	assert_int_equal(updates(&p, from, false), 0);
	finish(&p);
}

static void va_22_tables_of_an_idle_process_return_before_its_next_packet(void **state)
{
	return_before_the_next_packet(state, va_memory);
	return_before_the_next_packet(state, va_two_levels);
	return_before_the_next_packet(state, va_virtual);
}

static void without_invalid_entries(struct scripted_miniport *m)
{
	va_memory(m);
	m->settings.mmu.caps.InvalidTlbEntriesNotCached = 1;
}

/* The entries were invalid while the tables were away, so the GPU cannot have cached them. */
static void va_13_va_22_returning_tables_need_no_flush_without_invalid_entries(void **state)
{
	static world_setup *const setups[] = {va_memory, without_invalid_entries};

	for (uint32_t i = 0; i < 2; i++) {
		struct pair p;

		begin(&p, state, setups[i]);
		store(&p, p.s.target_at + 64, 0x1111);
		list_large(&p);
		uint32_t from = operations(&p);
		store(&p, p.s.target_at + 128, 0x2222);
		assert_true(updates(&p, from, true) > 0);
		assert_int_equal(flushes(&p, from) == 0, i);
		assert_int_equal(va_word(&p.s.v, p.s.target_at + 64), 0x1111);
		finish(&p);
	}
}

/* Both processes run in turn; each time the other's tables and allocations leave. */
static void va_22_processes_take_turns(void **state)
{
	struct pair p;

	begin(&p, state, va_memory);
	for (uint32_t i = 0; i < 4; i++) {
		store(&p, p.s.target_at + 64, i);
		assert_int_equal(va_word(&p.s.v, p.s.target_at + 64), i);
		list_large(&p);
		assert_true(wddm2_is_in_memory(&p.other, p.large));
		assert_int_equal(wddm2_evict(&p.other, p.large, 0), S_OK);
		wddm2_run(&p.s.v.w);
	}
	finish(&p);
}

static void va_22_addresses_change_while_the_tables_are_evicted(void **state)
{
	struct pair p;

	begin(&p, state, va_memory);
	D3DKMT_HANDLE more = va_allocate(&p.s.v, 64 * KIB, WORLD_APERTURE);
	uint64_t at = va_map(&p.s.v, more, 64 * KIB);
	va_make(&p.s.v, more);
	list_large(&p);
	/* Free and Evict need no table. */
	assert_int_equal(va_free(&p.s.v, at, 64 * KIB), S_OK);
	assert_int_equal(wddm2_evict(&p.s.v.w.device, more, 0), S_OK);
	wddm2_run(&p.s.v.w);
	store(&p, p.s.target_at + 64, 0x1111);
	assert_int_equal(va_word(&p.s.v, p.s.target_at + 64), 0x1111);
	assert_false(va_is_there(&p.s.v, at));
	/* Map does, and brings them back. */
	list_large(&p);
	uint32_t from = operations(&p);
	va_make(&p.s.v, more);
	at = va_map(&p.s.v, more, 64 * KIB);
	assert_true(updates(&p, from, true) >= 3);
	store(&p, at + 64, 0x2222);
	assert_int_equal(va_word(&p.s.v, at + 64), 0x2222);
	finish(&p);
}

/* Returns the GPU address of a new monitored fence with that value. */
static uint64_t fence_at(struct pair *p, uint64_t value)
{
	const struct client_device *device = &p->s.v.w.device;
	D3DDDICB_CREATESYNCHRONIZATIONOBJECT2 args = {
		.Info = {.Type = D3DDDI_MONITORED_FENCE,
			 .MonitoredFence.InitialFenceValue = value}};

	assert_int_equal(device->cb->pfnCreateSynchronizationObject2Cb(device->handle, &args),
			 S_OK);
	return args.Info.MonitoredFence.FenceValueGPUVirtualAddress;
}

/*
 * The space takes addresses that no table translates yet, so tables return and new ones are made.
 */
static void new_addresses_while_evicted(void **state, world_setup *setup)
{
	struct pair p;

	begin(&p, state, setup);
	D3DKMT_HANDLE more = va_allocate(&p.s.v, 64 * KIB, WORLD_APERTURE);
	uint64_t at = va_map(&p.s.v, more, 64 * KIB);
	va_make(&p.s.v, more);
	va_store(&p.s.v, at + 64, 0x1111);
	uint64_t reserved = va_reserve(&p.s.v, 0, 64 * LEAF_BYTES, 0);
	/* The page of a fence: its range is behind the reservation. */
	list_large(&p);
	uint32_t from = operations(&p);
	uint64_t fence = fence_at(&p, 0x2222);
	assert_true(fence >= reserved + 64 * LEAF_BYTES);
	assert_true(updates(&p, from, true) >= p.s.v.w.m->settings.mmu.caps.PageTableLevelCount);
	assert_int_equal(va_word(&p.s.v, fence), 0x2222);
	/* A second mapping of content that has a place. */
	list_large(&p);
	D3DDDI_MAPGPUVIRTUALADDRESS map = va_mapping(&p.s.v, more, 16);
	map.BaseAddress = 256 * LEAF_BYTES;
	va_must_map(&p.s.v, &map);
	assert_int_equal(va_word(&p.s.v, 256 * LEAF_BYTES + 64), 0x1111);
	/* Pages that read as zero. */
	list_large(&p);
	assert_int_equal(va_reserve(&p.s.v, 512 * LEAF_BYTES, 64 * KIB, 1), 512 * LEAF_BYTES);
	assert_int_equal(va_word(&p.s.v, 512 * LEAF_BYTES), 0);
	/* All that was there before is there again. */
	assert_int_equal(va_word(&p.s.v, at + 64), 0x1111);
	assert_int_equal(va_word(&p.s.v, 256 * LEAF_BYTES + 64), 0x1111);
	assert_int_equal(va_word(&p.s.v, fence), 0x2222);
	finish(&p);
}

static void va_22_new_addresses_bring_evicted_tables_back(void **state)
{
	new_addresses_while_evicted(state, va_memory);
	new_addresses_while_evicted(state, va_two_levels);
	new_addresses_while_evicted(state, va_virtual);
}

static void incomplete(struct scripted_miniport *m)
{
	va_memory(m);
	m->settings.complete_at_once = false;
}

/* The GPU would walk tables that belong to another process. */
static void va_22_tables_of_a_prepared_packet_stay(void **state)
{
	D3DDDI_MAKERESIDENT args;
	struct pair p;

	begin(&p, state, incomplete);
	D3DDDICB_SUBMITCOMMAND command = stage_command(&p.s);
	wddm2_run(&p.s.v.w);
	uint32_t from = operations(&p);
	assert_int_equal(stage_submit(&p.s, &command), S_OK);
	assert_int_equal(wddm2_try_make_one(&p.other, &p.queue, p.large, &args), E_PENDING);
	vidmm_settle(p.s.v.w.client.host);
	assert_false(flushed_all(&p, from));
	wddm2_run(&p.s.v.w); /* the packet completes */
	wddm2_await(&p.s.v.w, &p.queue, args.PagingFenceValue);
	assert_true(flushed_all(&p, from));
	finish(&p);
}

/* The other process, with a packet that runs and uses its allocation of `bytes`. */
static void run_other(struct pair *p, struct stage *theirs, uint64_t bytes)
{
	*theirs = p->s;
	theirs->v.w.device = p->other;
	theirs->v.queue = p->queue;
	theirs->v.process = scripted_process(p->s.v.w.m, 1);
	assert_int_equal(stage_try_context(theirs, &theirs->context), S_OK);
	theirs->commands = va_allocate(&theirs->v, 64 * KIB, WORLD_APERTURE);
	theirs->commands_at = va_map(&theirs->v, theirs->commands, 64 * KIB);
	va_make(&theirs->v, theirs->commands);
	theirs->target = va_allocate(&theirs->v, bytes, WORLD_MEMORY);
	theirs->target_at = va_map(&theirs->v, theirs->target, bytes);
	va_make(&theirs->v, theirs->target);
	stage_fill(theirs, theirs->target_at, 0x0DD);
	D3DDDICB_SUBMITCOMMAND command = stage_command(theirs);
	assert_int_equal(stage_submit(theirs, &command), S_OK);
	vidmm_settle(p->s.v.w.client.host);
	while (scripted_complete(p->s.v.w.m, 1, UINT32_MAX))
		vidmm_settle(p->s.v.w.client.host);
	assert_int_equal(scripted_outstanding(p->s.v.w.m, 0), 1);
}

/*
 * Memory that the GPU uses now will be free. Until then the tables of a process with a queued
 * packet stay: each attempt to prepare the packet would bring them back.
 */
static void q_222_tables_of_a_queued_packet_stay_while_a_wait_may_help(void **state)
{
	struct stage theirs;
	D3DDDI_MAKERESIDENT args;
	struct pair p;

	begin(&p, state, incomplete);
	struct scripted_miniport *m = p.s.v.w.m;
	D3DKMT_HANDLE wide = wddm2_allocate(&p.s.v.w.device, 8 * MIB, WORLD_MEMORY);

	wddm2_run(&p.s.v.w);
	run_other(&p, &theirs, 12 * MIB);
	assert_int_equal(wddm2_try_make_one(&p.s.v.w.device, &p.s.v.queue, wide, &args), E_PENDING);
	D3DDDICB_SUBMITCOMMAND command = stage_command(&p.s);
	assert_int_equal(stage_submit(&p.s, &command), S_OK);
	vidmm_settle(p.s.v.w.client.host);
	uint32_t from = operations(&p);
	for (uint32_t i = 0; i < 8; i++) {
		scripted_complete(m, 1, UINT32_MAX);
		scripted_report_progress(m, 1);
		vidmm_settle(p.s.v.w.client.host);
	}
	assert_int_equal(scripted_outstanding(m, 0), 1);
	assert_int_equal(flushes(&p, from), 0);
	assert_int_equal(updates(&p, from, false), 0);
	wddm2_run(&p.s.v.w);
	wddm2_await(&p.s.v.w, &p.s.v.queue, args.PagingFenceValue);
	assert_int_equal(va_word(&p.s.v, p.s.target_at + 64), 0x600D);
	m->settings.complete_at_once = true;
	stage_destroy_context(&theirs, theirs.context);
	finish(&p);
}

static void explicit_invalidation(struct scripted_miniport *m)
{
	va_memory(m);
	m->settings.mmu.caps.ExplicitPageTableInvalidation = 1;
}

/* Every table is made invalid before its memory is freed, if the miniport asks for that. */
static void q_222_entries_are_invalidated_on_request(void **state)
{
	struct pair p;

	begin(&p, state, va_memory);
	wddm2_evict(&p.s.v.w.device, p.s.target, 0);
	wddm2_run(&p.s.v.w);
	uint32_t from = operations(&p);
	list_large(&p);
	assert_int_equal(updates(&p, from, false), 0);
	finish(&p);
	begin(&p, state, explicit_invalidation);
	wddm2_evict(&p.s.v.w.device, p.s.target, 0);
	wddm2_run(&p.s.v.w);
	from = operations(&p);
	list_large(&p);
	assert_true(updates(&p, from, false) >= 3);
	assert_int_equal(updates(&p, from, true), 0);
	finish(&p);
}

/* A reset and a power cycle leave evicted tables alone. */
static void va_22_evicted_tables_survive_a_power_cycle(void **state)
{
	struct pair p;

	begin(&p, state, va_memory);
	store(&p, p.s.target_at + 64, 0x1111);
	list_large(&p);
	uint32_t from = operations(&p);
	assert_int_equal(vidmm_adapter_set_power(p.s.v.w.client.adapter, VIDMM_POWER_D3,
						 VIDMM_SLEEP_STANDBY),
			 0);
	memset(p.s.v.w.m->bar, 0xEE, SCRIPTED_BAR_BYTES);
	assert_int_equal(vidmm_adapter_set_power(p.s.v.w.client.adapter, VIDMM_POWER_D0,
						 VIDMM_SLEEP_STANDBY),
			 0);
	wddm2_run(&p.s.v.w);
	assert_int_equal(updates(&p, from, true), 0);
	memset(p.s.v.process->tlb, 0, sizeof(p.s.v.process->tlb));
	store(&p, p.s.target_at + 128, 0x2222);
	assert_int_equal(va_word(&p.s.v, p.s.target_at + 64), 0x1111);
	assert_int_equal(va_word(&p.s.v, p.s.target_at + 128), 0x2222);
	finish(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(va_22_tables_of_an_idle_process_return_before_its_next_packet),
		ON_BOTH(va_13_va_22_returning_tables_need_no_flush_without_invalid_entries),
		ON_BOTH(va_22_processes_take_turns),
		ON_SIM(va_22_addresses_change_while_the_tables_are_evicted),
		ON_BOTH(va_22_new_addresses_bring_evicted_tables_back),
		ON_SIM(va_22_tables_of_a_prepared_packet_stay),
		ON_BOTH(q_222_tables_of_a_queued_packet_stay_while_a_wait_may_help),
		ON_SIM(q_222_entries_are_invalidated_on_request),
		ON_SIM(va_22_evicted_tables_survive_a_power_cycle),
	};

	return cmocka_run_group_tests_name("wddm2_table_eviction", tests, NULL, NULL);
}
