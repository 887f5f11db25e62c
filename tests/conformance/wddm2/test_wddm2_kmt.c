/* SPDX-License-Identifier: MIT */
/* Residency for a D3DKMT client: paging queues, MakeResident, Evict, waiting for a fence. */
#include "wddm2_world.h"

#include <d3dkmthk.h>

struct kmt {
	struct world w;
	struct vidmm_process *process;
	D3DKMT_HANDLE device;
	D3DKMT_CREATEPAGINGQUEUE queue;
};

static void at_once(struct scripted_miniport *m)
{
	wddm2_0(m);
	m->settings.complete_at_once = true;
}

static void start(struct kmt *k, void **state, world_setup *setup)
{
	D3DKMT_ADAPTERINFO info;
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1, .pAdapters = &info};
	D3DKMT_CREATEDEVICE device = {0};

	world_start(&k->w, state, setup);
	assert_int_equal(vidmm_process_open(k->w.client.host, "kmt", &k->process), 0);
	vidmm_d3dkmt_attach(k->process);
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	device.hAdapter = info.hAdapter;
	assert_int_equal(D3DKMTCreateDevice(&device), STATUS_SUCCESS);
	k->device = device.hDevice;
	k->queue = (D3DKMT_CREATEPAGINGQUEUE){.hDevice = k->device};
}

static void stop(struct kmt *k)
{
	vidmm_process_close(k->process);
	wddm2_stop(&k->w);
}

static D3DKMT_HANDLE allocate(struct kmt *k)
{
	struct scripted_allocation spec = {.size_bytes = 64 * KIB,
					   .flags = PHYSICAL,
					   .read_set = WORLD_MEMORY,
					   .write_set = WORLD_MEMORY};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec)};
	D3DKMT_CREATEALLOCATION args = {
		.hDevice = k->device, .NumAllocations = 1, .pAllocationInfo = &info};

	assert_int_equal(D3DKMTCreateAllocation(&args), STATUS_SUCCESS);
	return info.hAllocation;
}

static D3DKMT_ALLOCATIONRESIDENCYSTATUS residency(struct kmt *k, D3DKMT_HANDLE a)
{
	D3DKMT_ALLOCATIONRESIDENCYSTATUS status;
	const D3DKMT_QUERYALLOCATIONRESIDENCY ask = {.hDevice = k->device,
						     .phAllocationList = &a,
						     .AllocationCount = 1,
						     .pResidencyStatus = &status};

	assert_int_equal(D3DKMTQueryAllocationResidency(&ask), STATUS_SUCCESS);
	return status;
}

static void res_01_res_06_d3dkmtmakeresident_and_evict(void **state)
{
	struct kmt k;

	start(&k, state, at_once);
	assert_int_equal(D3DKMTCreatePagingQueue(&k.queue), STATUS_SUCCESS);
	D3DKMT_HANDLE a = allocate(&k);
	D3DDDI_MAKERESIDENT make = {
		.hPagingQueue = k.queue.hPagingQueue, .NumAllocations = 1, .AllocationList = &a};
	D3DKMT_EVICT evict = {.hDevice = k.device, .NumAllocations = 1, .AllocationList = &a};
	assert_int_not_equal(residency(&k, a),
			     D3DKMT_ALLOCATIONRESIDENCYSTATUS_RESIDENTINGPUMEMORY);
	NTSTATUS status = D3DKMTMakeResident(&make);
	assert_true(status == STATUS_SUCCESS || status == STATUS_PENDING);
	assert_int_equal(make.NumAllocations, 1);
	const D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU wait = {
		.hDevice = k.device,
		.ObjectCount = 1,
		.ObjectHandleArray = &k.queue.hSyncObject,
		.FenceValueArray = &make.PagingFenceValue};
	assert_int_equal(D3DKMTWaitForSynchronizationObjectFromCpu(&wait), STATUS_SUCCESS);
	assert_int_equal(residency(&k, a), D3DKMT_ALLOCATIONRESIDENCYSTATUS_RESIDENTINGPUMEMORY);
	assert_int_equal(D3DKMTEvict(&evict), STATUS_SUCCESS);
	assert_int_equal(evict.NumBytesToTrim, 0);
	assert_int_equal(D3DKMTEvict(&evict), STATUS_INVALID_PARAMETER);
	world_expect_finding(&k.w, "RES-06");
	const D3DDDI_DESTROYPAGINGQUEUE end = {.hPagingQueue = k.queue.hPagingQueue};
	D3DDDI_DESTROYPAGINGQUEUE args = end;
	assert_int_equal(D3DKMTDestroyPagingQueue(&args), STATUS_SUCCESS);
	assert_int_equal(D3DKMTDestroyPagingQueue(&args), STATUS_INVALID_PARAMETER);
	world_expect_finding(&k.w, "HND-07");
	stop(&k);
}

static void lock_42_lock_45_d3dkmtlock2_gives_an_address_and_takes_no_flags(void **state)
{
	struct kmt k;

	start(&k, state, at_once);
	D3DKMT_HANDLE a = allocate(&k);
	D3DKMT_LOCK2 lock = {.hDevice = k.device, .hAllocation = a, .Flags.Value = 1, .pData = &k};
	const D3DKMT_UNLOCK2 unlock = {.hDevice = k.device, .hAllocation = a};
	assert_int_equal(D3DKMTLock2(&lock), STATUS_INVALID_PARAMETER);
	world_expect_finding(&k.w, "LOCK-42");
	assert_null(lock.pData);
	lock.Flags.Value = 0;
	assert_int_equal(D3DKMTLock2(&lock), STATUS_SUCCESS);
	*(uint32_t *)lock.pData = 0x42;
	assert_int_equal(D3DKMTUnlock2(&unlock), STATUS_SUCCESS);
	assert_int_equal(D3DKMTUnlock2(&unlock), STATUS_INVALID_PARAMETER);
	world_expect_finding(&k.w, "LOCK-28");
	assert_int_equal(D3DKMTLock2(&lock), STATUS_SUCCESS);
	assert_int_equal(*(uint32_t *)lock.pData, 0x42);
	assert_int_equal(D3DKMTUnlock2(&unlock), STATUS_SUCCESS);
	stop(&k);
}

/*
 * Calls that name only a queue find its device through it; a queue of another process is invalid.
 */
static void hnd_07_a_paging_queue_of_another_process_is_refused(void **state)
{
	struct kmt k;

	start(&k, state, at_once);
	D3DKMT_HANDLE a = allocate(&k);
	D3DDDICB_CREATEPAGINGQUEUE first = wddm2_queue(&k.w.device),
				   second = wddm2_queue(&k.w.device);
	assert_int_equal(D3DKMTCreatePagingQueue(&k.queue), STATUS_SUCCESS);
	D3DKMT_HANDLE foreign = first.hPagingQueue == k.queue.hPagingQueue ? second.hPagingQueue
									   : first.hPagingQueue;
	D3DDDI_MAKERESIDENT make = {
		.hPagingQueue = foreign, .NumAllocations = 1, .AllocationList = &a};
	assert_int_equal(D3DKMTMakeResident(&make), STATUS_INVALID_PARAMETER);
	world_expect_finding(&k.w, "HND-07");
	assert_int_equal(make.NumAllocations, 0);
	make = (D3DDDI_MAKERESIDENT){
		.hPagingQueue = k.queue.hSyncObject, .NumAllocations = 1, .AllocationList = &a};
	assert_int_equal(D3DKMTMakeResident(&make), STATUS_INVALID_PARAMETER);
	world_expect_finding(&k.w, "HND-07");
	stop(&k);
}

static void before_wddm_2_0_residency_calls_are_refused(void **state)
{
	struct kmt k;

	start(&k, state, NULL);
	D3DKMT_HANDLE a = 0x40;
	D3DKMT_EVICT evict = {.hDevice = k.device, .NumAllocations = 1, .AllocationList = &a};
	assert_int_equal(D3DKMTCreatePagingQueue(&k.queue), STATUS_NOT_SUPPORTED);
	assert_int_equal(k.queue.hPagingQueue, 0);
	assert_int_equal(D3DKMTEvict(&evict), STATUS_NOT_SUPPORTED);
	stop(&k);
}

static void hnd_11_a_null_argument_is_refused(void **state)
{
	struct kmt k;

	start(&k, state, at_once);
	assert_int_equal(D3DKMTCreatePagingQueue(NULL), STATUS_INVALID_PARAMETER);
	world_expect_finding(&k.w, "HND-11");
	assert_int_equal(D3DKMTDestroyPagingQueue(NULL), STATUS_INVALID_PARAMETER);
	world_expect_finding(&k.w, "HND-11");
	assert_int_equal(D3DKMTMakeResident(NULL), STATUS_INVALID_PARAMETER);
	world_expect_finding(&k.w, "HND-11");
	assert_int_equal(D3DKMTEvict(NULL), STATUS_INVALID_PARAMETER);
	world_expect_finding(&k.w, "HND-11");
	assert_int_equal(D3DKMTLock2(NULL), STATUS_INVALID_PARAMETER);
	world_expect_finding(&k.w, "HND-11");
	assert_int_equal(D3DKMTUnlock2(NULL), STATUS_INVALID_PARAMETER);
	world_expect_finding(&k.w, "HND-11");
	assert_int_equal(D3DKMTWaitForSynchronizationObjectFromCpu(NULL), STATUS_INVALID_PARAMETER);
	world_expect_finding(&k.w, "HND-11");
	stop(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(res_01_res_06_d3dkmtmakeresident_and_evict),
		ON_BOTH(lock_42_lock_45_d3dkmtlock2_gives_an_address_and_takes_no_flags),
		ON_BOTH(hnd_07_a_paging_queue_of_another_process_is_refused),
		ON_BOTH(before_wddm_2_0_residency_calls_are_refused),
		ON_BOTH(hnd_11_a_null_argument_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
