/* SPDX-License-Identifier: MIT */
/* softgpu of WDDM 2.x with little video memory: eviction, return, budgets, moves. */
#include "gva_client.h"

#include <string.h>

/* Two clients of which only one fits at a time. */
static void bytes_survive_eviction_and_return(void **state, const struct gva_options *options)
{
	struct gva_memory memory[2];
	struct gva_client c[2];
	struct client host;

	gva_start(&host, state, options);
	for (uint32_t i = 0; i < 2; i++) {
		gva_open(&host, &c[i]);
		memory[i] = gva_memory(&c[i], 2560 * KIB, GVA_VRAM | GVA_APERTURE);
		for (uint32_t k = 0; k < 10; k++)
			gva_fill(&c[i], memory[i].at + k * 256 * KIB, 256 * KIB, i << 16 | k << 8);
		gva_run(&c[i], 0);
	}
	for (uint32_t round = 1; round < 6; round++)
		for (uint32_t i = 0; i < 2; i++) {
			gva_copy(&c[i], memory[i].at + (round - 1) * 256 * KIB,
				 memory[i].at + (round + 4) * 256 * KIB, 256 * KIB);
			gva_run(&c[i], round % 2);
		}
	for (uint32_t i = 0; i < 2; i++)
		for (uint32_t k = 0; k < 10; k++)
			gva_expect(&c[i], memory[i].handle, k * 256 * KIB, 256 * KIB,
				   i << 16 | k % 5 << 8);
	gva_close(&c[0]);
	gva_close(&c[1]);
	gva_stop(&host);
}

static void res_08_bytes_survive_with_pages_of_4_kib(void **state)
{
	bytes_survive_eviction_and_return(state, &(struct gva_options){.vram_bytes = 4 * MIB});
}

static void res_08_bytes_survive_with_pages_of_64_kib(void **state)
{
	bytes_survive_eviction_and_return(
		state, &(struct gva_options){.vram_bytes = 4 * MIB, .page_bytes = 64 * KIB});
}

static void res_08_bytes_survive_with_two_levels_of_tables(void **state)
{
	bytes_survive_eviction_and_return(
		state, &(struct gva_options){.vram_bytes = 4 * MIB, .levels = 2});
}

/* A packet behind the running one is taken back and submitted again by its address. */
static void pre_04_res_08_preempted_packets_run_again_at_their_addresses(void **state)
{
	const struct gva_options options = {.vram_bytes = 4 * MIB, .preemption = true};
	struct client host;
	struct gva_client c[2];
	struct gva_memory memory[2];

	bytes_survive_eviction_and_return(state, &options);
	gva_start(&host, state, &options);
	for (uint32_t i = 0; i < 2; i++) {
		gva_open(&host, &c[i]);
		memory[i] = gva_memory(&c[i], MIB, GVA_VRAM | GVA_APERTURE);
		for (uint32_t k = 0; k < 16; k++) {
			gva_fill(&c[i], memory[i].at + k * 64 * KIB, 64 * KIB, i << 8 | k);
			gva_stall(&c[i], 5000000);
			gva_submit(&c[i], 0);
		}
	}
	struct gva_memory more = gva_memory(&c[0], 2560 * KIB, GVA_VRAM);
	gva_fill(&c[0], more.at, more.bytes, 0x77);
	gva_submit(&c[0], 0);
	gva_wait(&c[0]);
	gva_wait(&c[1]);
	for (uint32_t i = 0; i < 32; i++)
		gva_expect(&c[i % 2], memory[i % 2].handle, i / 2 * 64 * KIB, 64 * KIB,
			   i % 2 << 8 | i / 2);
	gva_expect(&c[0], more.handle, 0, more.bytes, 0x77);
	gva_close(&c[0]);
	gva_close(&c[1]);
	gva_stop(&host);
}

/* RES-06: after Evict and MakeResident the content is the same, and the addresses are. */
static void res_06_evict_and_make_resident_keep_content_and_addresses(void **state)
{
	struct client host;
	struct gva_client c;

	gva_start(&host, state, &(struct gva_options){0});
	gva_open(&host, &c);
	struct gva_memory memory = gva_memory(&c, 256 * KIB, GVA_VRAM);
	for (uint32_t i = 0; i < 4; i++) {
		gva_fill(&c, memory.at + i * 64 * KIB, 64 * KIB, 0x100 + i);
		gva_run(&c, 0);
		gva_evict(&c, memory.handle);
		gva_expect(&c, memory.handle, i * 64 * KIB, 64 * KIB, 0x100 + i);
		gva_make_resident(&c, memory.handle);
	}
	for (uint32_t i = 0; i < 4; i++)
		gva_expect(&c, memory.handle, i * 64 * KIB, 64 * KIB, 0x100 + i);
	gva_close(&c);
	gva_stop(&host);
}

/* What the CPU writes through Lock2 is what the GPU reads, wherever the memory is. */
static void lock2_of_evicted_memory(struct gva_client *c, uint32_t set)
{
	struct gva_memory memory = gva_memory(c, 64 * KIB, set),
			  other = gva_memory(c, 64 * KIB, set);

	for (uint32_t i = 0; i < 3; i++) {
		char *data = gva_lock(c, memory.handle);

		memset(data, (int)(0x40 + i), 64 * KIB);
		gva_unlock(c, memory.handle);
		gva_copy(c, memory.at, other.at, 64 * KIB);
		gva_run(c, 1);
		gva_expect(c, other.handle, 0, 64 * KIB, 0x01010101u * (0x40 + i));
		gva_evict(c, memory.handle);
		gva_make_resident(c, memory.handle);
	}
}

static void pag_24_lock2_and_the_gpu_share_the_bytes(void **state)
{
	struct client host;
	struct gva_client c;

	gva_start(&host, state, &(struct gva_options){0});
	gva_open(&host, &c);
	lock2_of_evicted_memory(&c, GVA_VRAM);
	lock2_of_evicted_memory(&c, GVA_APERTURE);
	gva_close(&c);
	gva_stop(&host);
}

/*
 * One client's packets run on node 0 while the other one maps, uses and frees memory: the paging
 * node flushes TLBs between the commands of the first. In the end each byte is where it belongs.
 */
static void va_13_tlbs_are_flushed_while_the_other_node_runs(void **state)
{
	enum { ROUNDS = 24 };
	const struct gva_options options = {.vram_bytes = 8 * MIB};
	struct gva_client busy, other;
	struct client host;

	gva_start(&host, state, &options);
	gva_open(&host, &busy);
	gva_open(&host, &other);
	struct gva_memory memory = gva_memory(&busy, 2 * MIB, GVA_VRAM);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		for (uint32_t i = 0; i < 8; i++)
			gva_fill(&busy, memory.at + i * 256 * KIB, 256 * KIB, round << 8 | i);
		gva_submit(&busy, 0);
		struct gva_memory mine =
			gva_memory(&other, (round % 5 + 1) * 64 * KIB, round % 3 ? GVA_VRAM : 0);
		gva_fill(&other, mine.at, mine.bytes, 0xE000 + round);
		gva_run(&other, 1);
		gva_expect(&other, mine.handle, 0, mine.bytes, 0xE000 + round);
		gva_destroy(&other, mine.handle);
	}
	gva_wait(&busy);
	for (uint32_t i = 0; i < 8; i++)
		gva_expect(&busy, memory.handle, i * 256 * KIB, 256 * KIB, (ROUNDS - 1) << 8 | i);
	gva_close(&other);
	gva_close(&busy);
	gva_stop(&host);
}

/*
 * A copy from memory is queued behind a wait, then the memory leaves the residency list and other
 * memory takes its place. The copy finds the memory resident all the same.
 */
enum leaving {
	LEAVES_BY_EVICT,
	LEAVES_IF_NECESSARY,
	LEAVES_BY_DESTRUCTION,
	LEAVES_BY_OFFER,
	LEAVES_BY_EVICT_AND_OFFER,
	LEAVINGS
};

static void leave(struct gva_client *c, D3DKMT_HANDLE allocation, enum leaving how)
{
	D3DKMT_EVICT args = {.hDevice = c->device,
			     .NumAllocations = 1,
			     .AllocationList = &allocation,
			     .Flags.EvictOnlyIfNecessary = how == LEAVES_IF_NECESSARY};

	const D3DKMT_OFFERALLOCATIONS offer = {.hDevice = c->device,
					       .HandleList = &allocation,
					       .NumAllocations = 1,
					       .Priority = D3DKMT_OFFER_PRIORITY_NORMAL};

	gva_enter(c);
	if (how == LEAVES_BY_DESTRUCTION)
		gva_destroy(c, allocation);
	else if (how != LEAVES_BY_OFFER)
		assert_int_equal(D3DKMTEvict(&args), STATUS_SUCCESS);
	if (how == LEAVES_BY_OFFER || how == LEAVES_BY_EVICT_AND_OFFER)
		assert_int_equal(D3DKMTOfferAllocations(&offer), STATUS_SUCCESS);
}

static void leaves_before_queued_work_runs(void **state, enum leaving how, uint32_t set)
{
	struct client host;
	struct gva_client c;

	gva_start(&host, state, &(struct gva_options){.vram_bytes = 4 * MIB});
	gva_open(&host, &c);
	struct gva_memory target = gva_memory(&c, 64 * KIB, GVA_APERTURE);
	struct gva_memory memory = gva_memory(&c, 2560 * KIB, set);
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 fence = {.hDevice = c.device,
						     .Info.Type = D3DDDI_MONITORED_FENCE};
	const uint64_t value = 1;

	assert_int_equal(D3DKMTCreateSynchronizationObject2(&fence), STATUS_SUCCESS);
	const D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU wait = {
		.hContext = c.context[0],
		.ObjectCount = 1,
		.ObjectHandleArray = &fence.hSyncObject,
		.MonitoredFenceValueArray = &value};
	const D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU signal = {.hDevice = c.device,
								  .ObjectCount = 1,
								  .ObjectHandleArray =
									  &fence.hSyncObject,
								  .FenceValueArray = &value};
	gva_fill(&c, memory.at, memory.bytes, 0x1EAF1EAF);
	gva_run(&c, 0);
	assert_int_equal(D3DKMTWaitForSynchronizationObjectFromGpu(&wait), STATUS_SUCCESS);
	gva_copy(&c, memory.at + 1024 * KIB, target.at, 64 * KIB);
	gva_submit(&c, 0);
	leave(&c, memory.handle, how);
	/*
	 * This memory is needed by no packet that is queued before it. Offered memory is still in
	 * the list, which then exceeds the segment: the content leaves without this.
	 */
	struct gva_memory other = gva_memory(&c, how == LEAVES_BY_OFFER ? MIB : 2560 * KIB,
					     how == LEAVES_BY_OFFER ? GVA_APERTURE : GVA_VRAM);
	gva_enter(&c);
	assert_int_equal(D3DKMTSignalSynchronizationObjectFromCpu(&signal), STATUS_SUCCESS);
	gva_wait(&c);
	assert_int_equal(gva_state(&c), D3DKMT_DEVICEEXECUTION_ACTIVE);
	gva_expect(&c, target.handle, 0, target.bytes, 0x1EAF1EAF);
	gva_fill(&c, other.at, other.bytes, 0x07E2);
	gva_run(&c, 0);
	gva_expect(&c, other.handle, 0, other.bytes, 0x07E2);
	gva_close(&c);
	gva_stop(&host);
}

static void res_07_alf_37_ofr_01_queued_work_finds_what_left_the_list(void **state)
{
	for (uint32_t how = 0; how < LEAVINGS; how++) {
		leaves_before_queued_work_runs(state, (enum leaving)how, GVA_VRAM);
		leaves_before_queued_work_runs(state, (enum leaving)how, GVA_VRAM | GVA_APERTURE);
	}
}

static uint64_t paged_out(struct gva_client *c)
{
	struct vidmm_adapter_statistics statistics = {.struct_size = sizeof(statistics)};

	vidmm_settle(c->host->host);
	vidmm_adapter_statistics(c->host->adapter, &statistics);
	return statistics.bytes_paged_out;
}

static uint64_t paged_in(struct gva_client *c)
{
	struct vidmm_adapter_statistics statistics = {.struct_size = sizeof(statistics)};

	client_idle(c->host);
	vidmm_adapter_statistics(c->host->adapter, &statistics);
	return statistics.bytes_paged_in;
}

static void q_321_what_the_client_evicts_comes_in_again_as_trimmed(void **state)
{
	struct vidmm_adapter_statistics s = {.struct_size = sizeof(s)};
	struct client host;
	struct gva_client c;

	gva_start(&host, state, &(struct gva_options){.vram_bytes = 4 * MIB});
	gva_open(&host, &c);
	uint64_t before = paged_in(&c);
	struct gva_memory memory = {gva_allocate(&c, 2 * MIB, GVA_VRAM), 2 * MIB, 0};
	memory.at = gva_map(&c, memory.handle, memory.bytes, 0);
	memset(gva_lock(&c, memory.handle), 0x51, memory.bytes);
	gva_unlock(&c, memory.handle);
	gva_make_resident(&c, memory.handle);
	uint64_t first = paged_in(&c) - before;
	gva_evict(&c, memory.handle);
	while (!paged_out(&c))
		;
	gva_make_resident(&c, memory.handle);
	assert_int_equal(paged_in(&c), before + first + 2 * MIB);
	vidmm_adapter_statistics(host.adapter, &s);
	assert_true(first == 2 * MIB && s.bytes_paged_in_trim == 2 * MIB);
	assert_true(s.bytes_paged_in_capacity == 0 && s.bytes_paged_in_fragmentation == 0);
	assert_int_equal(s.evictions_trim, 1);
	gva_close(&c);
	gva_stop(&host);
}

/* The CPU writes first: then MakeResident brings the content into video memory, if it has space. */
static void q_200_makeresident_moves_content_into_the_preferred_segment(void **state)
{
	const uint32_t both = GVA_VRAM | GVA_APERTURE;
	struct client host;
	struct gva_client c;

	gva_start(&host, state, &(struct gva_options){.vram_bytes = 4 * MIB});
	gva_open(&host, &c);
	uint64_t before = paged_in(&c);
	struct gva_memory memory = {gva_allocate(&c, 2 * MIB, both), 2 * MIB, 0};
	memory.at = gva_map(&c, memory.handle, memory.bytes, 0);
	memset(gva_lock(&c, memory.handle), 0x51, memory.bytes);
	/* While it is locked, it stays in system memory. */
	gva_make_resident(&c, memory.handle);
	assert_int_equal(paged_in(&c), before);
	gva_unlock(&c, memory.handle);
	gva_evict(&c, memory.handle);
	gva_make_resident(&c, memory.handle);
	assert_int_equal(paged_in(&c), before + 2 * MIB);
	/* After an eviction, too. */
	gva_evict(&c, memory.handle);
	while (!paged_out(&c))
		;
	gva_make_resident(&c, memory.handle);
	assert_int_equal(paged_in(&c), before + 4 * MIB);
	gva_expect(&c, memory.handle, 0, memory.bytes, 0x51515151);
	/* Nothing on the list gives way to it. */
	struct gva_memory more = {gva_allocate(&c, 3 * MIB, both), 3 * MIB, 0};
	D3DDDI_MAKERESIDENT args = {.hPagingQueue = c.queue.hPagingQueue,
				    .NumAllocations = 1,
				    .AllocationList = &more.handle,
				    .Flags.CantTrimFurther = 1};
	more.at = gva_map(&c, more.handle, more.bytes, 0);
	memset(gva_lock(&c, more.handle), 0x52, more.bytes);
	gva_unlock(&c, more.handle);
	NTSTATUS status = D3DKMTMakeResident(&args);
	assert_true(status == STATUS_SUCCESS || status == STATUS_PENDING);
	assert_int_equal(paged_in(&c), before + 4 * MIB);
	gva_copy(&c, more.at, memory.at, MIB);
	gva_run(&c, 0);
	gva_expect(&c, memory.handle, 0, MIB, 0x52525252);
	gva_expect(&c, memory.handle, MIB, MIB, 0x51515151);
	gva_close(&c);
	gva_stop(&host);
}

/*
 * NotWrittenTo is about the GPU since the last MakeResident. What the CPU wrote, or the GPU before
 * that, is not lost when the segment's copy is dropped.
 */
static void evict_not_written(struct gva_client *c, D3DKMT_HANDLE allocation, bool not_written)
{
	D3DKMT_EVICT args = {.hDevice = c->device,
			     .NumAllocations = 1,
			     .AllocationList = &allocation,
			     .Flags.EvictOnlyIfNecessary = 1};

	args.Flags.NotWrittenTo = not_written;
	gva_enter(c);
	assert_int_equal(D3DKMTEvict(&args), STATUS_SUCCESS);
}

static void q_201_notwrittento_does_not_cover_other_writes(void **state)
{
	struct client host;
	struct gva_client c;

	gva_start(&host, state, &(struct gva_options){.vram_bytes = 4 * MIB});
	gva_open(&host, &c);
	for (uint32_t by_cpu = 0; by_cpu < 2; by_cpu++) {
		struct gva_memory memory = gva_memory(&c, 2 * MIB, GVA_VRAM);

		if (by_cpu) {
			memset(gva_lock(&c, memory.handle), 0x33, memory.bytes);
			gva_unlock(&c, memory.handle);
			evict_not_written(&c, memory.handle, true);
		} else {
			gva_fill(&c, memory.at, memory.bytes, 0x33333333);
			gva_run(&c, 0);
			evict_not_written(&c, memory.handle, false);
			gva_make_resident(&c, memory.handle);
			evict_not_written(&c, memory.handle, true);
		}
		struct gva_memory other = gva_memory(&c, 3 * MIB, GVA_VRAM);
		gva_expect(&c, memory.handle, 0, memory.bytes, 0x33333333);
		gva_destroy(&c, other.handle);
		gva_destroy(&c, memory.handle);
		client_idle(&host);
	}
	gva_close(&c);
	gva_stop(&host);
}

static D3DKMT_QUERYVIDEOMEMORYINFO query(struct gva_client *c, D3DKMT_MEMORY_SEGMENT_GROUP group)
{
	D3DKMT_QUERYVIDEOMEMORYINFO args = {.hAdapter = c->adapter, .MemorySegmentGroup = group};

	gva_enter(c);
	assert_int_equal(D3DKMTQueryVideoMemoryInfo(&args), STATUS_SUCCESS);
	return args;
}

static void res_10_both_groups_have_budgets_and_usage(void **state)
{
	struct client host;
	struct gva_client c;

	gva_start(&host, state, &(struct gva_options){.vram_bytes = 8 * MIB});
	gva_open(&host, &c);
	uint64_t before = query(&c, D3DKMT_MEMORY_SEGMENT_GROUP_LOCAL).CurrentUsage,
		 system = query(&c, D3DKMT_MEMORY_SEGMENT_GROUP_NON_LOCAL).CurrentUsage;
	assert_true(query(&c, D3DKMT_MEMORY_SEGMENT_GROUP_LOCAL).Budget > 4 * MIB);
	assert_true(query(&c, D3DKMT_MEMORY_SEGMENT_GROUP_NON_LOCAL).Budget > 4 * MIB);
	struct gva_memory local = gva_memory(&c, 2 * MIB, GVA_VRAM);
	assert_int_equal(query(&c, D3DKMT_MEMORY_SEGMENT_GROUP_LOCAL).CurrentUsage,
			 before + 2 * MIB);
	gva_memory(&c, MIB, GVA_APERTURE);
	assert_int_equal(query(&c, D3DKMT_MEMORY_SEGMENT_GROUP_NON_LOCAL).CurrentUsage,
			 system + MIB);
	gva_evict(&c, local.handle);
	assert_int_equal(query(&c, D3DKMT_MEMORY_SEGMENT_GROUP_LOCAL).CurrentUsage, before);
	gva_close(&c);
	gva_stop(&host);
}

static void alf_02_properties_of_1_x_are_refused(void **state)
{
	static const uint32_t flags[] = {
		SOFTGPU_ALLOCATION_TILED_X, SOFTGPU_ALLOCATION_SYNCHRONOUS_PAGING,
		SOFTGPU_ALLOCATION_LINK_MIRRORED, SOFTGPU_ALLOCATION_LINK_INSTANCED};
	struct softgpu_allocation spec = {.version = SOFTGPU_ALLOCATION_VERSION,
					  .size_bytes = 64 * KIB};
	D3DKMT_HANDLE allocation;
	struct client host;
	struct gva_client c;

	gva_start(&host, state, &(struct gva_options){0});
	gva_open(&host, &c);
	for (uint32_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		spec.flags = flags[i];
		spec.stride_bytes = flags[i] == SOFTGPU_ALLOCATION_TILED_X ? 512 : 0;
		spec.segment_set = GVA_VRAM;
		assert_int_equal(gva_try_allocate(&c, &spec, &allocation),
				 STATUS_INVALID_PARAMETER);
	}
	spec.flags = spec.stride_bytes = 0;
	spec.renaming_limit = 2;
	assert_int_equal(gva_try_allocate(&c, &spec, &allocation), STATUS_INVALID_PARAMETER);
	spec.renaming_limit = 0;
	spec.hinted_banks = 1;
	assert_int_equal(gva_try_allocate(&c, &spec, &allocation), STATUS_INVALID_PARAMETER);
	spec.hinted_banks = 0;
	assert_int_equal(gva_try_allocate(&c, &spec, &allocation), STATUS_SUCCESS);
	spec.flags = SOFTGPU_ALLOCATION_ACCESSED_PHYSICALLY;
	assert_int_equal(gva_try_allocate(&c, &spec, &allocation), STATUS_SUCCESS);
	gva_close(&c);
	gva_stop(&host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(res_08_bytes_survive_with_pages_of_4_kib),
		ON_BOTH(res_08_bytes_survive_with_pages_of_64_kib),
		ON_BOTH(res_08_bytes_survive_with_two_levels_of_tables),
		ON_BOTH(pre_04_res_08_preempted_packets_run_again_at_their_addresses),
		ON_BOTH(res_06_evict_and_make_resident_keep_content_and_addresses),
		ON_BOTH(pag_24_lock2_and_the_gpu_share_the_bytes),
		ON_BOTH(res_07_alf_37_ofr_01_queued_work_finds_what_left_the_list),
		ON_BOTH(q_201_notwrittento_does_not_cover_other_writes),
		ON_BOTH(q_200_makeresident_moves_content_into_the_preferred_segment),
		ON_BOTH(q_321_what_the_client_evicts_comes_in_again_as_trimmed),
		ON_BOTH(va_13_tlbs_are_flushed_while_the_other_node_runs),
		ON_BOTH(res_10_both_groups_have_budgets_and_usage),
		ON_SIM(alf_02_properties_of_1_x_are_refused),
	};

	return cmocka_run_group_tests_name("softgpu_residency", tests, NULL, NULL);
}
