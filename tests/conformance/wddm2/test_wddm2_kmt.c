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

static ULONG version; /* the miniport's */

static void of_that_version(struct scripted_miniport *m)
{
	at_once(m);
	scripted_set_version(m, version);
	if (version < DXGKDDI_INTERFACE_VERSION_WDDM2_0)
		m->settings.caps.WDDMVersion = DXGKDDI_WDDMv1_3;
}

static uint32_t driver_version(struct kmt *k, KMTQUERYADAPTERINFOTYPE type)
{
	D3DKMT_ADAPTERINFO info;
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1, .pAdapters = &info};
	uint32_t words[2] = {0, 0x55555555};

	vidmm_d3dkmt_enter(k->process);
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	const D3DKMT_QUERYADAPTERINFO ask = {.hAdapter = info.hAdapter,
					     .Type = type,
					     .pPrivateDriverData = words,
					     .PrivateDriverDataSize = sizeof(words)};
	assert_int_equal(D3DKMTQueryAdapterInfo(&ask), STATUS_SUCCESS);
	assert_int_equal(words[1], 0x55555555);
	return words[0];
}

static void qai_08_the_driver_version_is_that_of_the_interface_version(void **state)
{
	static const struct {
		ULONG interface_version;
		uint32_t driver_version;
	} cases[] = {
		{DXGKDDI_INTERFACE_VERSION_WDDM1_3, KMT_DRIVERVERSION_WDDM_1_3},
		{DXGKDDI_INTERFACE_VERSION_WDDM2_0, KMT_DRIVERVERSION_WDDM_2_0},
		{DXGKDDI_INTERFACE_VERSION_WDDM2_1, KMT_DRIVERVERSION_WDDM_2_1},
		{DXGKDDI_INTERFACE_VERSION_WDDM2_1_6, KMT_DRIVERVERSION_WDDM_2_1},
		{DXGKDDI_INTERFACE_VERSION_WDDM2_2, KMT_DRIVERVERSION_WDDM_2_2},
		{DXGKDDI_INTERFACE_VERSION_WDDM2_3, KMT_DRIVERVERSION_WDDM_2_3},
		{DXGKDDI_INTERFACE_VERSION_WDDM2_4, KMT_DRIVERVERSION_WDDM_2_4},
		{DXGKDDI_INTERFACE_VERSION_WDDM2_5, KMT_DRIVERVERSION_WDDM_2_5},
		{DXGKDDI_INTERFACE_VERSION_WDDM2_6, KMT_DRIVERVERSION_WDDM_2_6},
		{DXGKDDI_INTERFACE_VERSION_WDDM2_7, KMT_DRIVERVERSION_WDDM_2_7},
		{DXGKDDI_INTERFACE_VERSION_WDDM2_8, KMT_DRIVERVERSION_WDDM_2_8},
		{DXGKDDI_INTERFACE_VERSION_WDDM2_9, KMT_DRIVERVERSION_WDDM_2_9},
		{DXGKDDI_INTERFACE_VERSION_WDDM3_0, KMT_DRIVERVERSION_WDDM_3_0},
		{DXGKDDI_INTERFACE_VERSION_WDDM3_1, KMT_DRIVERVERSION_WDDM_3_1},
		{DXGKDDI_INTERFACE_VERSION_WDDM3_2, KMT_DRIVERVERSION_WDDM_3_2},
	};
	struct kmt k;

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		version = cases[i].interface_version;
		start(&k, state, of_that_version);
		assert_int_equal(driver_version(&k, KMTQAITYPE_DRIVERVERSION),
				 cases[i].driver_version);
		assert_int_equal(driver_version(&k, KMTQAITYPE_DRIVERVERSION_RENDER),
				 cases[i].driver_version);
		stop(&k);
	}
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

static VOID APIENTRY stable_power(IN_CONST_HANDLE adapter,
				  IN_CONST_PDXGKARG_SETSTABLEPOWERSTATE args)
{
	(void)adapter;
	(void)args;
	fail_msg("its arguments are not public");
}

static void with_stable_power(struct scripted_miniport *m)
{
	at_once(m);
	m->settings.table.DxgkDdiSetStablePowerState = stable_power;
}

static void clk_05_a_miniport_that_sets_the_clocks_is_not_asked(void **state)
{
	D3DKMT_ADAPTERINFO info;
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1, .pAdapters = &info};
	struct kmt k;

	start(&k, state, with_stable_power);
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	const D3DKMT_SETSTABLEPOWERSTATE args = {.hAdapter = info.hAdapter, .Enabled = TRUE};
	assert_int_equal(D3DKMTSetStablePowerState(&args), STATUS_NOT_SUPPORTED);
	stop(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(clk_05_a_miniport_that_sets_the_clocks_is_not_asked),
		ON_BOTH(res_01_res_06_d3dkmtmakeresident_and_evict),
		ON_BOTH(lock_42_lock_45_d3dkmtlock2_gives_an_address_and_takes_no_flags),
		ON_BOTH(hnd_07_a_paging_queue_of_another_process_is_refused),
		ON_BOTH(before_wddm_2_0_residency_calls_are_refused),
		ON_BOTH(qai_08_the_driver_version_is_that_of_the_interface_version),
		ON_BOTH(hnd_11_a_null_argument_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
