/* SPDX-License-Identifier: MIT */
/* Residency lists when packets of one node complete out of order (RES-08, SCH-05). */
#include "wddm2_world.h"

#include <priority_world.h>

static D3DKMT_HANDLE allocate(struct lane *lane, uint64_t bytes)
{
	struct scripted_allocation spec = {.size_bytes = bytes,
					   .flags = PHYSICAL,
					   .read_set = WORLD_MEMORY,
					   .write_set = WORLD_MEMORY};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec)};
	D3DKMT_CREATEALLOCATION args = {
		.hDevice = lane->device, .NumAllocations = 1, .pAllocationInfo = &info};

	lane_enter(lane);
	assert_int_equal(D3DKMTCreateAllocation(&args), STATUS_SUCCESS);
	return info.hAllocation;
}

static D3DKMT_CREATEPAGINGQUEUE queue_of(struct lane *lane)
{
	D3DKMT_CREATEPAGINGQUEUE queue = {.hDevice = lane->device};

	lane_enter(lane);
	assert_int_equal(D3DKMTCreatePagingQueue(&queue), STATUS_SUCCESS);
	return queue;
}

static NTSTATUS make(struct lane *lane, const D3DKMT_CREATEPAGINGQUEUE *queue, D3DKMT_HANDLE a)
{
	D3DDDI_MAKERESIDENT args = {
		.hPagingQueue = queue->hPagingQueue, .NumAllocations = 1, .AllocationList = &a};

	lane_enter(lane);
	NTSTATUS status = D3DKMTMakeResident(&args);
	client_settle(&lane->world->w.client);
	return status;
}

static bool is_in_memory(struct lane *lane, D3DKMT_HANDLE a)
{
	D3DKMT_ALLOCATIONRESIDENCYSTATUS status;
	const D3DKMT_QUERYALLOCATIONRESIDENCY ask = {.hDevice = lane->device,
						     .phAllocationList = &a,
						     .AllocationCount = 1,
						     .pResidencyStatus = &status};

	lane_enter(lane);
	assert_int_equal(D3DKMTQueryAllocationResidency(&ask), STATUS_SUCCESS);
	return status == D3DKMT_ALLOCATIONRESIDENCYSTATUS_RESIDENTINGPUMEMORY;
}

/*
 * Two packets need all of the device's list. The newer one has overtaken the older one and is
 * complete. The older one, which references another allocation, keeps the large one in memory.
 */
static void res_08_sch_05_the_list_is_resident_until_the_overtaken_packet_completes(void **state)
{
	struct priority_world p;

	priority_start(&p, state, wddm2_0, NULL, NULL);
	struct lane *low = priority_open(&p, 0, 'l'), *high = priority_open(&p, 0, 'h'),
		    *blocker = priority_open(&p, 1, '-');
	const D3DKMT_CREATEPAGINGQUEUE ours = queue_of(low), theirs = queue_of(blocker);
	D3DKMT_HANDLE large = allocate(low, 12 * MIB), little = allocate(low, 4 * KIB),
		      blocks = allocate(blocker, 4 * KIB), wanted = allocate(blocker, 12 * MIB);
	(void)make(low, &ours, large);
	(void)make(low, &ours, little);
	(void)make(blocker, &theirs, blocks);
	wddm2_run(&p.w);
	assert_true(is_in_memory(low, large));
	lane_priority(high, 2);
	for (uint32_t i = 0; i < 2; i++) /* as many as the miniport gets at a time */
		lane_submit_use(blocker, blocks);
	lane_submit_use(low, little);
	lane_submit_use(high, little);
	priority_complete(&p, 3);
	assert_string_equal(priority_order(&p), "--hl");
	D3DKMT_EVICT evict = {
		.hDevice = low->device, .NumAllocations = 1, .AllocationList = &large};
	lane_enter(low);
	assert_int_equal(D3DKMTEvict(&evict), STATUS_SUCCESS);
	assert_int_equal(make(blocker, &theirs, wanted), STATUS_PENDING);
	assert_true(is_in_memory(low, large));
	assert_false(is_in_memory(blocker, wanted));
	assert_int_equal(wddm2_transfers(&p.w, false), 0);
	wddm2_run(&p.w);
	assert_false(is_in_memory(low, large));
	assert_true(is_in_memory(blocker, wanted));
	priority_stop(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(res_08_sch_05_the_list_is_resident_until_the_overtaken_packet_completes),
	};

	return cmocka_run_group_tests_name("wddm2_overtaken", tests, NULL, NULL);
}
