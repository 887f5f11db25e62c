/* SPDX-License-Identifier: MIT */
/* Values of monitored fences: where clients read them, and the effect of CPU signals (MFN). */
#include "sync_world.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

/* The access of the mapping of an address: "r--s"; "none" where nothing is mapped. */
static void access_of(const void *address, char access[5])
{
	uintptr_t first, end, at = (uintptr_t)address;
	char line[256], found[5];
	FILE *maps = fopen("/proc/self/maps", "r");

	assert_non_null(maps);
	snprintf(access, 5, "none");
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &first, &end, found) == 3 &&
		    at >= first && at < end)
			snprintf(access, 5, "%s", found);
	assert_int_equal(fclose(maps), 0);
}

static void mfn_01_mfn_02_mfn_03_the_client_reads_the_value_at_a_read_only_address(void **state)
{
	static const uint64_t values[] = {0, 1, (uint64_t)1 << 63, UINT64_MAX};
	struct sync_world s;
	char access[5];

	sync_start(&s, state, sync_3_0);
	for (uint32_t i = 0; i < 4; i++) {
		D3DKMT_CREATESYNCHRONIZATIONOBJECT2 args = {.Info.MonitoredFence.InitialFenceValue =
								    values[i]};

		assert_int_equal(sync_try_create(&s, D3DDDI_MONITORED_FENCE, 0x80, &args), 0);
		const uint64_t *word = args.Info.MonitoredFence.FenceValueCPUVirtualAddress;
		assert_non_null(word);
		assert_int_equal((uintptr_t)word % 8, 0);
		assert_int_equal(*word, values[i]);
		assert_int_equal(args.Info.MonitoredFence.FenceValueGPUVirtualAddress, 0);
		access_of(word, access);
		assert_string_equal(access, "r--s");
	}
	sync_stop(&s);
}

/* Fences of a device share pages with no other device; the mapping is removed with the device. */
static void mfn_39_syn_14_fence_pages_belong_to_one_device_and_end_with_it(void **state)
{
	struct sync_world s;
	char access[5];

	sync_start(&s, state, sync_3_0);
	struct sync_fence one = sync_fence(&s, 0, 1);
	D3DKMT_HANDLE first = s.device;
	s.device = sync_open_device(&s);
	struct sync_fence two = sync_fence(&s, 0, 2);
	assert_true(((uintptr_t)one.value ^ (uintptr_t)two.value) >> 12 != 0);
	const D3DKMT_DESTROYDEVICE end = {.hDevice = s.device};
	assert_int_equal(D3DKMTDestroyDevice(&end), STATUS_SUCCESS);
	s.device = first;
	access_of((const void *)two.value, access);
	assert_true(access[0] != 'r' || access[3] != 's');
	assert_int_equal(*one.value, 1);
	/*
	 * More fences than one page has slots. A new fence in the slot of a destroyed one reads its
	 * own initial value.
	 */
	const _Atomic uint64_t *last = NULL;
	for (uint32_t i = 0; i < 1000; i++) {
		struct sync_fence f = sync_fence(&s, 0, i);

		assert_true(f.value != last);
		assert_int_equal(*f.value, i);
		if (i % 3 == 0)
			assert_int_equal(sync_destroy(f.handle), STATUS_SUCCESS);
		last = i % 3 ? f.value : NULL;
	}
	sync_stop(&s);
}

static void mfn_20_mfn_23_mfn_41_a_signal_raises_the_value(void **state)
{
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	struct sync_fence f = sync_fence(&s, 0, 0);
	assert_int_equal(sync_signal(s.device, f.handle, 10), STATUS_SUCCESS);
	assert_int_equal(*f.value, 10);
	assert_int_equal(sync_signal(s.device, f.handle, 5), STATUS_INVALID_PARAMETER);
	sync_found(&s, "MFN-23");
	assert_int_equal(*f.value, 10);
	assert_int_equal(sync_signal(s.device, f.handle, 10), STATUS_SUCCESS);
	assert_int_equal(sync_wait(s.device, f.handle, 10), STATUS_SUCCESS);
	assert_int_equal(sync_wait(s.device, f.handle, 0), STATUS_SUCCESS);
	sync_stop(&s);
}

static void refuses_lower_values(void **state, world_setup *setup)
{
	struct sync_world s;

	sync_start(&s, state, setup);
	struct sync_fence f = sync_fence(&s, 0, 10);
	/* The first call on a handle takes the locked path, a later one may take the quick path. */
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(sync_signal(s.device, f.handle, 10), STATUS_SUCCESS);
		assert_int_equal(sync_signal(s.device, f.handle, 9), STATUS_INVALID_PARAMETER);
		sync_found(&s, "MFN-23");
		assert_int_equal(sync_signal(s.device, f.handle, 0), STATUS_INVALID_PARAMETER);
		sync_found(&s, "MFN-23");
		assert_int_equal(sync_wait(s.device, f.handle, 10), STATUS_SUCCESS);
	}
	assert_int_equal(sync_signal(s.device, f.handle, 11), STATUS_SUCCESS);
	assert_int_equal(sync_signal_with(s.device, f.handle, 9, 4), STATUS_SUCCESS); /* rewinds */
	assert_int_equal(sync_signal(s.device, f.handle, 10), STATUS_SUCCESS);
	assert_int_equal(sync_signal(s.device, f.handle, 9), STATUS_INVALID_PARAMETER);
	sync_found(&s, "MFN-23");
	assert_int_equal(sync_wait(s.device, f.handle, 10), STATUS_SUCCESS);
	sync_stop(&s);
}

static void mfn_23_a_lower_value_from_the_cpu_is_refused_and_an_equal_one_is_not(void **state)
{
	refuses_lower_values(state, sync_3_0);
}

static void mfn_23_mfn_06_a_lower_value_for_32_bits_of_storage_is_refused(void **state)
{
	refuses_lower_values(state, sync_narrow);
}

static void mfn_23_with_one_lower_value_no_fence_of_a_call_is_signaled(void **state)
{
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	struct sync_fence a = sync_fence(&s, 0, 1), b = sync_fence(&s, 0, 5);
	const D3DKMT_HANDLE handles[] = {a.handle, b.handle}, twice[] = {a.handle, a.handle};
	UINT64 values[] = {2, 4};
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU args = {.hDevice = s.device,
							  .ObjectCount = 2,
							  .ObjectHandleArray = handles,
							  .FenceValueArray = values};
	assert_int_equal(D3DKMTSignalSynchronizationObjectFromCpu(&args), STATUS_INVALID_PARAMETER);
	sync_found(&s, "MFN-23");
	assert_true(*a.value == 1 && *b.value == 5);
	values[1] = 5;
	assert_int_equal(D3DKMTSignalSynchronizationObjectFromCpu(&args), STATUS_SUCCESS);
	assert_true(*a.value == 2 && *b.value == 5);
	/* Each value is compared with the fence's before the call. */
	args.ObjectHandleArray = twice;
	values[0] = 7;
	assert_int_equal(D3DKMTSignalSynchronizationObjectFromCpu(&args), STATUS_SUCCESS);
	assert_int_equal(*a.value, 7);
	sync_stop(&s);
}

static void mfn_24_mfn_42_syn_24_cpu_signal_flags_are_checked(void **state)
{
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	struct sync_fence f = sync_fence(&s, 0, 10);
	assert_int_equal(sync_signal_with(s.device, f.handle, 5, 4), STATUS_SUCCESS);
	assert_int_equal(*f.value, 5);
	assert_int_equal(sync_signal_with(s.device, f.handle, 6, 1), STATUS_SUCCESS);
	assert_int_equal(*f.value, 6);
	assert_int_equal(sync_signal_with(s.device, f.handle, 7, 2), STATUS_INVALID_PARAMETER);
	sync_found(&s, "MFN-42");
	for (uint32_t bit = 3; bit < 32; bit++) {
		assert_int_equal(sync_signal_with(s.device, f.handle, 7, 1u << bit),
				 STATUS_INVALID_PARAMETER);
		sync_found(&s, "SYN-24");
	}
	assert_int_equal(*f.value, 6);
	sync_stop(&s);
}

static void mfn_20_syn_22_syn_33_a_cpu_signal_takes_one_to_thirty_two_live_objects(void **state)
{
	D3DKMT_HANDLE handles[33];
	UINT64 values[33];
	struct sync_fence f[32];
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	for (uint32_t i = 0; i < 33; i++) {
		if (i < 32)
			f[i] = sync_fence(&s, 0, 0);
		handles[i] = f[i % 32].handle;
		values[i] = i + 1;
	}
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU args = {
		.hDevice = s.device, .ObjectHandleArray = handles, .FenceValueArray = values};
	for (args.ObjectCount = 0; args.ObjectCount <= 33; args.ObjectCount += 33) {
		assert_int_equal(D3DKMTSignalSynchronizationObjectFromCpu(&args),
				 STATUS_INVALID_PARAMETER);
		sync_found(&s, "MFN-20");
	}
	args.ObjectCount = 32;
	handles[31] = s.device; /* one bad entry: nothing changes */
	assert_int_equal(D3DKMTSignalSynchronizationObjectFromCpu(&args), STATUS_INVALID_PARAMETER);
	sync_found(&s, "SYN-22");
	for (uint32_t i = 0; i < 32; i++)
		assert_int_equal(*f[i].value, 0);
	handles[31] = f[31].handle;
	assert_int_equal(D3DKMTSignalSynchronizationObjectFromCpu(&args), STATUS_SUCCESS);
	for (uint32_t i = 0; i < 32; i++)
		assert_int_equal(*f[i].value, i + 1);
	args.ObjectHandleArray = NULL;
	assert_int_equal(D3DKMTSignalSynchronizationObjectFromCpu(&args), STATUS_INVALID_PARAMETER);
	sync_found(&s, "SYN-33");
	args.ObjectHandleArray = handles;
	args.FenceValueArray = NULL;
	assert_int_equal(D3DKMTSignalSynchronizationObjectFromCpu(&args), STATUS_INVALID_PARAMETER);
	sync_found(&s, "SYN-33");
	sync_stop(&s);
}

static void sfl_15_sfl_16_nosignal_and_nowait_deny_cpu_signals_and_waits(void **state)
{
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	struct sync_fence silent = sync_fence(&s, 0x10, 3), deaf = sync_fence(&s, 0x20, 3);
	assert_int_equal(sync_signal(s.device, silent.handle, 9), STATUS_ACCESS_DENIED);
	sync_found(&s, "SFL-15");
	assert_int_equal(*silent.value, 3);
	assert_int_equal(sync_wait(s.device, silent.handle, 3), STATUS_SUCCESS);
	assert_int_equal(sync_wait(s.device, deaf.handle, 3), STATUS_ACCESS_DENIED);
	sync_found(&s, "SFL-16");
	assert_int_equal(sync_signal(s.device, deaf.handle, 9), STATUS_SUCCESS);
	assert_int_equal(*deaf.value, 9);
	int event = sync_event();
	assert_int_equal(sync_wait_event(s.device, deaf.handle, 3, event), STATUS_ACCESS_DENIED);
	sync_found(&s, "SFL-16");
	assert_int_equal(sync_events(event), 0);
	close(event);
	sync_stop(&s);
}

static void hnd_07_syn_13_handles_of_another_process_are_refused(void **state)
{
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	struct sync_fence f = sync_fence(&s, 0, 0);
	assert_int_equal(sync_signal(0, f.handle, 1), STATUS_INVALID_PARAMETER);
	sync_found(&s, "HND-07");
	assert_int_equal(sync_wait(f.handle, f.handle, 0), STATUS_INVALID_PARAMETER);
	sync_found(&s, "HND-07");
	vidmm_d3dkmt_enter(s.other);
	assert_int_equal(sync_signal(s.other_device, f.handle, 1), STATUS_INVALID_PARAMETER);
	sync_found(&s, "SYN-22");
	assert_int_equal(sync_wait(s.other_device, f.handle, 0), STATUS_INVALID_PARAMETER);
	sync_found(&s, "SYN-22");
	vidmm_d3dkmt_enter(NULL);
	assert_int_equal(*f.value, 0);
	sync_stop(&s);
}

/* The value passes 32 bits and continues; bytes above the stored word are not written. */
static void mfn_06_mfn_07_fences_of_32_bits_survive_wrap_around(void **state)
{
	const uint64_t start = 0xFFFFFFF0, end = 0x100000010;
	struct sync_waiter waiters[4] = {0};
	struct sync_world s;

	sync_start(&s, state, sync_narrow);
	struct sync_fence f = sync_fence(&s, 0, start);
	assert_int_equal(*f.value, 0xFFFFFFF0);
	for (uint32_t i = 0; i < 4; i++) {
		waiters[i].process = s.process;
		sync_waiter_start(&s, &waiters[i], f.handle, start + 4 + 8 * i);
	}
	for (uint64_t value = start + 1; value <= end; value++) {
		assert_int_equal(sync_signal(s.device, f.handle, value), STATUS_SUCCESS);
		assert_int_equal(*f.value, (uint32_t)value);
		assert_int_equal(sync_wait(s.device, f.handle, value), STATUS_SUCCESS);
		assert_int_equal(sync_signal(s.device, f.handle, value - 1),
				 STATUS_INVALID_PARAMETER);
		sync_found(&s, "MFN-23");
		vidmm_settle(s.w.client.host);
		for (uint32_t i = 0; i < 4; i++)
			if (value < waiters[i].value)
				assert_int_equal(waiters[i].done, 0);
	}
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(sync_waiter_join(&waiters[i]), STATUS_SUCCESS);
	/* SFL-20: fences without GPU access have 64 bits here too. */
	f = sync_fence(&s, 0x80, 0x100000001);
	assert_int_equal(*f.value, 0x100000001);
	assert_int_equal(sync_signal(s.device, f.handle, UINT64_MAX - 1), STATUS_SUCCESS);
	assert_int_equal(*f.value, UINT64_MAX - 1);
	sync_stop(&s);
}

static void mfn_08_sfl_20_values_out_of_32_bit_reach_are_refused(void **state)
{
	struct sync_world s;

	sync_start(&s, state, sync_narrow);
	struct sync_fence f = sync_fence(&s, 0, 100);
	assert_int_equal(sync_wait(s.device, f.handle, 100 + 0x80000000ull),
			 STATUS_INVALID_PARAMETER);
	sync_found(&s, "MFN-08");
	assert_int_equal(sync_signal(s.device, f.handle, 100 + 0x80000000ull),
			 STATUS_INVALID_PARAMETER);
	sync_found(&s, "MFN-08");
	assert_int_equal(*f.value, 100);
	assert_int_equal(sync_signal(s.device, f.handle, 100 + 0x7FFFFFFFull), STATUS_SUCCESS);
	assert_int_equal(sync_wait(s.device, f.handle, 0), STATUS_SUCCESS); /* MFN-10 */
	assert_int_equal(sync_signal_with(s.device, f.handle, 101, 4), STATUS_SUCCESS);
	assert_int_equal(*f.value, 101);
	f = sync_fence(&s, 0, 0x200000000);
	assert_int_equal(sync_signal_with(s.device, f.handle, 1, 4), STATUS_INVALID_PARAMETER);
	sync_found(&s, "MFN-08");
	sync_stop(&s);
}

/* The same through the callbacks of a user-mode driver. */
static void mfn_01_mfn_20_device_callbacks_create_and_signal_fences(void **state)
{
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	const D3DDDI_DEVICECALLBACKS *cb = s.w.device.cb;
	HANDLE device = s.w.device.handle;
	D3DDDICB_CREATESYNCHRONIZATIONOBJECT2 create = {
		.Info = {.Type = D3DDDI_MONITORED_FENCE, .MonitoredFence.InitialFenceValue = 4}};
	assert_int_equal(cb->pfnCreateSynchronizationObject2Cb(device, &create), S_OK);
	const _Atomic uint64_t *value = create.Info.MonitoredFence.FenceValueCPUVirtualAddress;
	assert_int_equal(*value, 4);
	UINT64 to = 6;
	const D3DDDICB_SIGNALSYNCHRONIZATIONOBJECTFROMCPU signal = {
		.ObjectCount = 1, .ObjectHandleArray = &create.hSyncObject, .FenceValueArray = &to};
	assert_int_equal(cb->pfnSignalSynchronizationObjectFromCpuCb(device, &signal), S_OK);
	assert_int_equal(*value, 6);
	to = 5;
	assert_int_equal(cb->pfnSignalSynchronizationObjectFromCpuCb(device, &signal),
			 E_INVALIDARG);
	sync_found(&s, "MFN-23");
	to = 6;
	const D3DDDICB_WAITFORSYNCHRONIZATIONOBJECTFROMCPU wait = {
		.ObjectCount = 1, .ObjectHandleArray = &create.hSyncObject, .FenceValueArray = &to};
	assert_int_equal(cb->pfnWaitForSynchronizationObjectFromCpuCb(device, &wait), S_OK);
	const D3DDDICB_DESTROYSYNCHRONIZATIONOBJECT end = {.hSyncObject = create.hSyncObject};
	assert_int_equal(cb->pfnDestroySynchronizationObjectCb(device, &end), S_OK);
	assert_int_equal(cb->pfnDestroySynchronizationObjectCb(device, &end), E_INVALIDARG);
	sync_found(&s, "SYN-12");
	assert_int_equal(cb->pfnSignalSynchronizationObjectFromCpuCb(device, &signal),
			 E_INVALIDARG);
	sync_found(&s, "SYN-22");
	create.Info.Flags.Value = 0x30;
	assert_int_equal(cb->pfnCreateSynchronizationObject2Cb(device, &create), E_INVALIDARG);
	sync_found(&s, "SFL-17");
	D3DDDICB_CREATESYNCHRONIZATIONOBJECT first = {.Info.Type = D3DDDI_FENCE};
	assert_int_equal(cb->pfnCreateSynchronizationObjectCb(device, &first), E_INVALIDARG);
	sync_found(&s, "SYN-05");
	assert_int_equal(cb->pfnCreateSynchronizationObject2Cb(device, NULL), E_INVALIDARG);
	sync_found(&s, "HND-11");
	assert_int_equal(cb->pfnCreateSynchronizationObjectCb(device, NULL), E_INVALIDARG);
	sync_found(&s, "HND-11");
	assert_int_equal(cb->pfnDestroySynchronizationObjectCb(device, NULL), E_INVALIDARG);
	sync_found(&s, "HND-11");
	assert_int_equal(cb->pfnSignalSynchronizationObjectFromCpuCb(device, NULL), E_INVALIDARG);
	sync_found(&s, "HND-11");
	assert_int_equal(cb->pfnWaitForSynchronizationObjectFromCpuCb(device, NULL), E_INVALIDARG);
	sync_found(&s, "HND-11");
	sync_stop(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(mfn_01_mfn_02_mfn_03_the_client_reads_the_value_at_a_read_only_address),
		ON_BOTH(mfn_39_syn_14_fence_pages_belong_to_one_device_and_end_with_it),
		ON_BOTH(mfn_20_mfn_23_mfn_41_a_signal_raises_the_value),
		ON_BOTH(mfn_23_a_lower_value_from_the_cpu_is_refused_and_an_equal_one_is_not),
		ON_BOTH(mfn_23_mfn_06_a_lower_value_for_32_bits_of_storage_is_refused),
		ON_BOTH(mfn_23_with_one_lower_value_no_fence_of_a_call_is_signaled),
		ON_BOTH(mfn_24_mfn_42_syn_24_cpu_signal_flags_are_checked),
		ON_BOTH(mfn_20_syn_22_syn_33_a_cpu_signal_takes_one_to_thirty_two_live_objects),
		ON_BOTH(sfl_15_sfl_16_nosignal_and_nowait_deny_cpu_signals_and_waits),
		ON_BOTH(hnd_07_syn_13_handles_of_another_process_are_refused),
		ON_BOTH(mfn_06_mfn_07_fences_of_32_bits_survive_wrap_around),
		ON_BOTH(mfn_08_sfl_20_values_out_of_32_bit_reach_are_refused),
		ON_BOTH(mfn_01_mfn_20_device_callbacks_create_and_signal_fences),
	};

	return cmocka_run_group_tests_name("sync fence", tests, NULL, NULL);
}
