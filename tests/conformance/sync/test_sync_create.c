/* SPDX-License-Identifier: MIT */
/*
 * Creation and destruction of synchronization objects: arguments, types, flags, handles (SYN, SFL).
 */
#include "sync_world.h"

#include <string.h>

#include "base/base.h"

static void syn_01_hnd_11_a_null_argument_is_refused(void **state)
{
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	assert_int_equal(D3DKMTCreateSynchronizationObject(NULL), STATUS_INVALID_PARAMETER);
	sync_found(&s, "HND-11");
	assert_int_equal(D3DKMTCreateSynchronizationObject2(NULL), STATUS_INVALID_PARAMETER);
	sync_found(&s, "HND-11");
	assert_int_equal(D3DKMTDestroySynchronizationObject(NULL), STATUS_INVALID_PARAMETER);
	sync_found(&s, "HND-11");
	assert_int_equal(D3DKMTSignalSynchronizationObjectFromCpu(NULL), STATUS_INVALID_PARAMETER);
	sync_found(&s, "HND-11");
	assert_int_equal(D3DKMTWaitForSynchronizationObjectFromCpu(NULL), STATUS_INVALID_PARAMETER);
	sync_found(&s, "HND-11");
	sync_stop(&s);
}

static void syn_02_syn_03_syn_05_v1_create_accepts_mutex_and_semaphore_only(void **state)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT args = {0};
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	assert_int_equal(D3DKMTCreateSynchronizationObject(&args), STATUS_INVALID_PARAMETER);
	sync_found(&s, "HND-07"); /* SYN-02: no device */
	args.hDevice = s.device;
	args.hSyncObject = 0xdead;
	assert_int_equal(D3DKMTCreateSynchronizationObject(&args), STATUS_INVALID_PARAMETER);
	sync_found(&s, "SYN-03");
	for (uint32_t type = 3; type <= 8; type++) {
		args.Info.Type = (D3DDDI_SYNCHRONIZATIONOBJECT_TYPE)type;
		assert_int_equal(D3DKMTCreateSynchronizationObject(&args),
				 STATUS_INVALID_PARAMETER);
		sync_found(&s, "SYN-05");
	}
	assert_int_equal(args.hSyncObject, 0xdead);
	sync_stop(&s);
}

static void syn_04_create_needs_a_live_device(void **state)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 args = {.Info.Type = D3DDDI_MONITORED_FENCE};
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	assert_int_equal(D3DKMTCreateSynchronizationObject2(&args), STATUS_INVALID_PARAMETER);
	sync_found(&s, "HND-07");
	D3DKMT_HANDLE gone = sync_open_device(&s);
	const D3DKMT_DESTROYDEVICE end = {.hDevice = gone};
	assert_int_equal(D3DKMTDestroyDevice(&end), STATUS_SUCCESS);
	args.hDevice = gone;
	assert_int_equal(D3DKMTCreateSynchronizationObject2(&args), STATUS_INVALID_PARAMETER);
	sync_found(&s, "HND-07");
	args.hDevice = s.device;
	assert_int_equal(D3DKMTCreateSynchronizationObject2(&args), STATUS_SUCCESS);
	sync_stop(&s);
}

/* Undefined types are refused, and so is a periodic fence without a display. */
static void syn_06_syn_10_v2_create_accepts_the_defined_types(void **state)
{
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	for (uint32_t type = 0; type < 10; type++) {
		D3DKMT_CREATESYNCHRONIZATIONOBJECT2 args = {.hSyncObject = 0xdead};
		args.Info.SharedHandle = 0xbeef;
		if (type >= 1 && type <= 5)
			continue;
		if (type == D3DDDI_PERIODIC_MONITORED_FENCE)
			args.Info.PeriodicMonitoredFence.hAdapter = s.adapter;
		NTSTATUS status = sync_try_create(&s, type, 0, &args);
		if (type == D3DDDI_PERIODIC_MONITORED_FENCE) {
			assert_int_equal(status, STATUS_NOT_SUPPORTED);
		} else {
			assert_int_equal(status, STATUS_INVALID_PARAMETER);
			sync_found(&s, "SYN-06");
		}
		assert_int_equal(args.hSyncObject, 0xdead); /* SYN-10 */
		assert_int_equal(args.Info.SharedHandle, 0xbeef);
	}
	sync_stop(&s);
}

static void at_1_3(struct scripted_miniport *m)
{
	scripted_set_version(m, DXGKDDI_INTERFACE_VERSION_WDDM1_3);
	m->settings.complete_at_once = true;
}

static void sfl_32_the_adapters_interface_version_decides_which_flags_exist(void **state)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 args = {0};
	struct sync_world s;

	sync_start(&s, state, at_1_3);
	assert_int_equal(sync_try_create(&s, D3DDDI_MONITORED_FENCE, 0, &args),
			 STATUS_INVALID_PARAMETER);
	sync_found(&s, "SYN-06");
	assert_int_equal(sync_try_create(&s, D3DDDI_FENCE, 8, &args), STATUS_INVALID_PARAMETER);
	sync_found(&s, "SFL-32");
	sync_stop(&s);
	sync_start(&s, state, sync_2_0);
	assert_int_equal(sync_try_create(&s, D3DDDI_CPU_NOTIFICATION, 0x100, &args),
			 STATUS_INVALID_PARAMETER);
	sync_found(&s, "SFL-32");
	assert_int_equal(sync_try_create(&s, D3DDDI_PERIODIC_MONITORED_FENCE, 0, &args),
			 STATUS_INVALID_PARAMETER);
	sync_found(&s, "SYN-06");
	assert_int_equal(sync_try_create(&s, D3DDDI_MONITORED_FENCE, 0, &args), STATUS_SUCCESS);
	sync_stop(&s);
}

/* One call per rule with the flag that violates it, through the D3DKMT functions. */
static void sfl_03_sfl_05_sfl_10_sfl_13_flags_not_legal_for_the_type_are_refused(void **state)
{
	static const struct {
		uint32_t type, flags;
		const char *rule;
	} cases[] = {
		{5, 0x001, "SFL-03"}, {6, 0x001, "SFL-03"}, {1, 0x002, "SFL-05"},
		{5, 0x004, "SFL-10"}, {2, 0x005, "SFL-10"}, {3, 0x008, "SFL-13"},
		{5, 0x030, "SFL-17"}, {3, 0x010, "SFL-17"}, {1, 0x040, "SFL-18"},
		{1, 0x080, "SFL-20"}, {4, 0x080, "SFL-20"}, {5, 0x100, "SFL-23"},
		{4, 0x101, "SFL-25"}, {5, 0x200, "SFL-32"}, {5, 0x80000000, "SFL-31"},
	};
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		D3DKMT_CREATESYNCHRONIZATIONOBJECT2 args = {.hSyncObject = 0xdead};

		assert_int_equal(sync_try_create(&s, cases[i].type, cases[i].flags, &args),
				 STATUS_INVALID_PARAMETER);
		sync_found(&s, cases[i].rule);
		assert_int_equal(args.hSyncObject, 0xdead);
	}
	sync_stop(&s);
}

static void sem_02_cpn_02_mfn_09_invalid_type_parameters_are_refused(void **state)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 args = {
		.Info.Semaphore = {.MaxCount = 1, .InitialCount = 2}};
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	assert_int_equal(sync_try_create(&s, D3DDDI_SEMAPHORE, 0, &args), STATUS_INVALID_PARAMETER);
	sync_found(&s, "SEM-02");
	memset(&args, 0, sizeof(args));
	args.Info.CPUNotification.Event = (HANDLE)(uintptr_t)9999;
	assert_int_equal(sync_try_create(&s, D3DDDI_CPU_NOTIFICATION, 0, &args),
			 STATUS_INVALID_HANDLE);
	sync_found(&s, "CPN-02");
	args.Info.CPUNotification.Event = NULL;
	assert_int_equal(sync_try_create(&s, D3DDDI_CPU_NOTIFICATION, 0, &args),
			 STATUS_INVALID_HANDLE);
	sync_found(&s, "CPN-02");
	for (uint32_t affinity = 0; affinity < 2; affinity++) {
		memset(&args, 0, sizeof(args));
		args.Info.MonitoredFence.EngineAffinity = affinity;
		assert_int_equal(sync_try_create(&s, D3DDDI_MONITORED_FENCE, 0, &args),
				 STATUS_SUCCESS);
	}
	args.Info.MonitoredFence.EngineAffinity = 2;
	assert_int_equal(sync_try_create(&s, D3DDDI_MONITORED_FENCE, 0, &args),
			 STATUS_INVALID_PARAMETER);
	sync_found(&s, "MFN-09");
	sync_stop(&s);
}

static void pmf_01_pmf_06_a_periodic_fence_needs_a_display_target(void **state)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 args = {.hSyncObject = 0xdead};
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	const D3DKMT_HANDLE bad[] = {0, s.device, s.adapter + 0x4000};
	for (uint32_t i = 0; i < 3; i++) {
		args.Info.PeriodicMonitoredFence.hAdapter = bad[i];
		assert_int_equal(sync_try_create(&s, D3DDDI_PERIODIC_MONITORED_FENCE, 0, &args),
				 STATUS_INVALID_PARAMETER);
		sync_found(&s, "PMF-01");
	}
	args.Info.PeriodicMonitoredFence.hAdapter = s.adapter;
	assert_int_equal(sync_try_create(&s, D3DDDI_PERIODIC_MONITORED_FENCE, 0, &args),
			 STATUS_NOT_SUPPORTED);
	assert_int_equal(args.hSyncObject, 0xdead);
	sync_stop(&s);
}

static void syn_07_syn_08_syn_09_handles_go_up_by_0x40(void **state)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 refused = {0};
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	D3DKMT_HANDLE before = s.device;
	for (uint32_t i = 0; i < 50; i++) {
		struct sync_fence f = sync_fence(&s, 0, i);

		assert_int_equal(f.handle, before + 0x40);
		assert_int_equal(f.handle & 0x3F, 0);
		assert_int_not_equal(f.handle >> 30, 0);
		assert_int_equal(*f.value, i);
		before = f.handle;
		assert_int_equal(sync_try_create(&s, D3DDDI_MONITORED_FENCE, 0x30, &refused),
				 STATUS_INVALID_PARAMETER);
		sync_found(&s, "SFL-17");
	}
	assert_int_equal(sync_destroy(before), STATUS_SUCCESS);
	assert_int_not_equal(sync_fence(&s, 0, 0).handle, before);
	sync_stop(&s);
}

static void syn_11_syn_12_syn_13_destroy_of_invalid_handles_is_refused(void **state)
{
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	struct sync_fence f = sync_fence(&s, 0, 0);
	const D3DKMT_HANDLE bad[] = {0, s.device, f.handle | 2, 0x12345, f.handle + 0x400};
	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(sync_destroy(bad[i]), STATUS_INVALID_PARAMETER);
		sync_found(&s, "SYN-12");
	}
	vidmm_d3dkmt_enter(s.other); /* SYN-13 */
	assert_int_equal(sync_destroy(f.handle), STATUS_INVALID_PARAMETER);
	sync_found(&s, "SYN-12");
	vidmm_d3dkmt_enter(NULL);
	assert_int_equal(sync_destroy(f.handle), STATUS_SUCCESS);
	assert_int_equal(sync_destroy(f.handle), STATUS_INVALID_PARAMETER);
	sync_found(&s, "SYN-12");
	sync_stop(&s);
}

static void syn_14_syn_15_objects_end_with_their_device_or_process(void **state)
{
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	D3DKMT_HANDLE second = sync_open_device(&s), first = s.device;
	s.device = second;
	struct sync_fence f = sync_fence(&s, 0, 1);
	s.device = first;
	assert_int_equal(sync_wait(first, f.handle, 1), STATUS_SUCCESS); /* created by any device */
	const D3DKMT_DESTROYDEVICE end = {.hDevice = second};
	assert_int_equal(D3DKMTDestroyDevice(&end), STATUS_SUCCESS);
	assert_int_equal(sync_wait(first, f.handle, 1), STATUS_INVALID_PARAMETER);
	sync_found(&s, "SYN-22");
	assert_int_equal(sync_destroy(f.handle), STATUS_INVALID_PARAMETER);
	sync_found(&s, "SYN-12");
	for (uint32_t i = 0; i < 300; i++) /* SYN-15: left for the end of the process */
		(void)sync_fence(&s, 0, i);
	sync_stop(&s);
}

/* SYN-16: fields that the type does not use may have any value; SFL-01: SharedHandle returns 0. */
static void syn_16_sfl_01_unused_input_fields_are_ignored(void **state)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 args;
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	memset(&args, 0xff, sizeof(args));
	args.Info.MonitoredFence.InitialFenceValue = 7;
	args.Info.MonitoredFence.EngineAffinity = 0;
	assert_int_equal(sync_try_create(&s, D3DDDI_MONITORED_FENCE, 0, &args), STATUS_SUCCESS);
	assert_int_equal(args.Info.SharedHandle, 0);
	assert_int_equal(args.Info.MonitoredFence.InitialFenceValue, 7);
	sync_stop(&s);
}

/*
 * Each memory allocation of a creation fails once; nothing remains, not even a used handle number.
 */
static void syn_17_creation_without_memory_leaves_nothing(void **state)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 args = {.hSyncObject = 0xdead};
	struct sync_world s;
	uint32_t failed = 0;

	sync_start(&s, state, sync_3_0);
	struct sync_fence before = sync_fence(&s, 0, 0);
	for (uint32_t n = 1;; n++) {
		vmm_calloc_fail_after(n);
		NTSTATUS status = sync_try_create(&s, D3DDDI_MONITORED_FENCE, n % 2 ? 0 : 3, &args);
		vmm_calloc_fail_after(0);
		if (!status && n > 4)
			break;
		if (!status) {
			assert_int_equal(sync_destroy(args.hSyncObject), STATUS_SUCCESS);
			args.hSyncObject = 0xdead;
			continue;
		}
		assert_int_equal(status, STATUS_NO_MEMORY);
		assert_int_equal(args.hSyncObject, 0xdead);
		failed++;
	}
	assert_true(failed >= 3);
	assert_int_equal(sync_wait(s.device, before.handle, 0), STATUS_SUCCESS);
	sync_stop(&s);
}

/* Each opening of a shared fence maps its page at a separate address. One mapping is refused. */
static void syn_17_shr_32_without_a_mapping_no_shared_fence_is_created(void **state)
{
	struct sync_world s;
	uint32_t n = 0;
	bool refused;

	sync_start(&s, state, sync_3_0);
	do {
		D3DKMT_CREATESYNCHRONIZATIONOBJECT2 args = {.Info.MonitoredFence.InitialFenceValue =
								    17};
		(void)vidmm_fail_nth(VIDMM_FAIL_MAPPING, ++n);
		NTSTATUS status = sync_try_create(&s, D3DDDI_MONITORED_FENCE, 0x3, &args);
		refused = !vidmm_fail_nth(VIDMM_FAIL_MAPPING, 0);
		assert_int_equal(status, refused ? STATUS_NO_MEMORY : STATUS_SUCCESS);
		if (refused)
			continue;
		const uint64_t *value = args.Info.MonitoredFence.FenceValueCPUVirtualAddress;
		assert_int_equal(*value, 17);
		assert_int_equal(sync_destroy(args.hSyncObject), STATUS_SUCCESS);
	} while (refused);
	assert_true(n > 1);
	sync_stop(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(syn_01_hnd_11_a_null_argument_is_refused),
		ON_BOTH(syn_02_syn_03_syn_05_v1_create_accepts_mutex_and_semaphore_only),
		ON_BOTH(syn_04_create_needs_a_live_device),
		ON_BOTH(syn_06_syn_10_v2_create_accepts_the_defined_types),
		ON_BOTH(sfl_32_the_adapters_interface_version_decides_which_flags_exist),
		ON_BOTH(sfl_03_sfl_05_sfl_10_sfl_13_flags_not_legal_for_the_type_are_refused),
		ON_BOTH(sem_02_cpn_02_mfn_09_invalid_type_parameters_are_refused),
		ON_BOTH(pmf_01_pmf_06_a_periodic_fence_needs_a_display_target),
		ON_BOTH(syn_07_syn_08_syn_09_handles_go_up_by_0x40),
		ON_BOTH(syn_11_syn_12_syn_13_destroy_of_invalid_handles_is_refused),
		ON_BOTH(syn_14_syn_15_objects_end_with_their_device_or_process),
		ON_BOTH(syn_16_sfl_01_unused_input_fields_are_ignored),
		ON_BOTH(syn_17_creation_without_memory_leaves_nothing),
		ON_SIM(syn_17_shr_32_without_a_mapping_no_shared_fence_is_created),
	};

	return cmocka_run_group_tests_name("sync create", tests, NULL, NULL);
}
