/* SPDX-License-Identifier: MIT */
/*
 * Mutexes, semaphores, fences and CPU notifications as objects: creation, sharing, CPU calls,
 * destruction.
 */
#include "sync_world.h"

#include <string.h>
#include <unistd.h>

#include "base/base.h"

#define SHARED 3u /* Shared and NtSecuritySharing */

/* The four types, as they are created here. */
static D3DKMT_CREATESYNCHRONIZATIONOBJECT2 filled(uint32_t type, int event)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 args;

	memset(&args, 0xAA, sizeof(args));
	if (type == D3DDDI_SYNCHRONIZATION_MUTEX)
		args.Info.SynchronizationMutex.InitialState = 1;
	else if (type == D3DDDI_SEMAPHORE)
		args.Info.Semaphore.MaxCount = args.Info.Semaphore.InitialCount = 3;
	else if (type == D3DDDI_FENCE)
		args.Info.Fence.FenceValue = 7;
	else
		args.Info.CPUNotification.Event = (HANDLE)(uintptr_t)event;
	return args;
}

static D3DKMT_HANDLE create(struct sync_world *s, uint32_t type, uint32_t flags, int event)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 args = filled(type, event);

	assert_int_equal(sync_try_create(s, type, flags, &args), STATUS_SUCCESS);
	return args.hSyncObject;
}

static NTSTATUS share(D3DKMT_HANDLE object, int *nt)
{
	HANDLE handle = NULL;
	NTSTATUS status = D3DKMTShareObjects(1, &object, NULL, 0x20000, &handle);

	*nt = (int)(uintptr_t)handle;
	return status;
}

static NTSTATUS open_as(D3DKMT_HANDLE device, int nt, uint32_t flags,
			D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2 *args)
{
	memset(args, 0xAA, sizeof(*args));
	args->hNtHandle = (HANDLE)(intptr_t)nt;
	args->hDevice = device;
	args->Flags.Value = flags;
	return D3DKMTOpenSyncObjectFromNtHandle2(args);
}

static void syn_06_syn_07_syn_16_fen_04_legacy_types_are_created_without_addresses(void **state)
{
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	int event = sync_event();
	D3DKMT_HANDLE before = s.device;
	for (uint32_t type = 1; type <= 4; type++) {
		D3DKMT_CREATESYNCHRONIZATIONOBJECT2 args = filled(type, event), was;

		args.hDevice = s.device;
		args.Info.Type = (D3DDDI_SYNCHRONIZATIONOBJECT_TYPE)type;
		args.Info.Flags.Value = 0;
		was = args;
		assert_int_equal(D3DKMTCreateSynchronizationObject2(&args), STATUS_SUCCESS);
		assert_int_equal(args.hSyncObject, before + 0x40); /* SYN-08 */
		assert_int_equal(args.Info.SharedHandle, 0);       /* SFL-01 */
		before = args.hSyncObject;
		was.hSyncObject = args.hSyncObject;
		was.Info.SharedHandle = 0;
		assert_memory_equal(&args, &was, sizeof(args)); /* FEN-04 */
		assert_int_equal(sync_destroy(args.hSyncObject), STATUS_SUCCESS);
		assert_int_equal(sync_destroy(args.hSyncObject), STATUS_INVALID_PARAMETER);
		sync_found(&s, "SYN-12");
	}
	close(event);
	sync_stop(&s);
}

static void syn_05_syn_20_sem_01_v1_create_makes_mutexes_and_semaphores(void **state)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT args = {0};
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 empty = {0};
	struct sync_world s;
	int nt;

	sync_start(&s, state, sync_3_0);
	args.hDevice = s.device;
	for (uint32_t type = 1; type <= 2; type++) { /* SEM-01: all zero is a semaphore, too */
		args.Info.Type = (D3DDDI_SYNCHRONIZATIONOBJECT_TYPE)type;
		assert_int_equal(D3DKMTCreateSynchronizationObject(&args), STATUS_SUCCESS);
		assert_int_equal(share(args.hSyncObject, &nt), STATUS_INVALID_PARAMETER);
		sync_found(&s, "SHR-06"); /* SYN-19 */
		assert_int_equal(sync_destroy(args.hSyncObject), STATUS_SUCCESS);
	}
	args.Info.Semaphore.InitialCount = 2;
	args.Info.Semaphore.MaxCount = 1;
	args.hSyncObject = 0xdead;
	assert_int_equal(D3DKMTCreateSynchronizationObject(&args), STATUS_INVALID_PARAMETER);
	sync_found(&s, "SEM-02");
	assert_int_equal(args.hSyncObject, 0xdead);
	assert_int_equal(sync_try_create(&s, D3DDDI_SEMAPHORE, 0, &empty), STATUS_SUCCESS);
	sync_stop(&s);
}

/* SHR-14: this call opens any type; a type without addresses leaves those outputs unchanged. */
static void shr_06_shr_12_shr_14_each_type_is_shared_and_opened(void **state)
{
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	int event = sync_event();
	for (uint32_t type = 1; type <= 4; type++) {
		D3DKMT_HANDLE object = create(&s, type, SHARED, event);
		D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2 args;
		D3DKMT_OPENSYNCOBJECTFROMNTHANDLE plain = {0};
		int nt, again;

		assert_int_equal(share(object, &nt), STATUS_SUCCESS);
		assert_int_equal(sync_destroy(object), STATUS_SUCCESS);
		vidmm_d3dkmt_enter(s.other);
		assert_int_equal(open_as(s.other_device, nt, 0, &args), STATUS_SUCCESS);
		assert_int_equal(args.MonitoredFence.FenceValueGPUVirtualAddress,
				 0xAAAAAAAAAAAAAAAA);
		assert_true(args.MonitoredFence.FenceValueCPUVirtualAddress ==
			    (void *)0xAAAAAAAAAAAAAAAA);
		plain.hNtHandle = (HANDLE)(intptr_t)nt;
		assert_int_equal(D3DKMTOpenSyncObjectFromNtHandle(&plain), STATUS_SUCCESS);
		assert_int_not_equal(plain.hSyncObject, args.hSyncObject);
		assert_int_equal(share(plain.hSyncObject, &again), STATUS_SUCCESS); /* SHR-19 */
		assert_int_equal(sync_destroy(plain.hSyncObject), STATUS_SUCCESS);
		assert_int_equal(sync_destroy(args.hSyncObject), STATUS_SUCCESS);
		close(nt);
		close(again);
		vidmm_d3dkmt_enter(NULL);
	}
	close(event);
	sync_stop(&s);
}

static void sfl_34_monitored_fence_flags_are_refused_when_opening_other_types(void **state)
{
	static const struct {
		uint32_t flag;
		const char *rule;
	} flags[] = {
		{0x08, "SFL-13"}, {0x10, "SFL-17"}, {0x20, "SFL-17"},
		{0x40, "SFL-18"}, {0x80, "SFL-20"}, {0x100, "SFL-34"},
	};
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	int event = sync_event();
	for (uint32_t type = 1; type <= 4; type++) {
		D3DKMT_HANDLE object = create(&s, type, SHARED, event);
		D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2 args;
		int nt;

		assert_int_equal(share(object, &nt), STATUS_SUCCESS);
		for (uint32_t i = 0; i < VMM_ARRAY_LENGTH(flags); i++) {
			assert_int_equal(open_as(s.device, nt, flags[i].flag, &args),
					 STATUS_INVALID_PARAMETER);
			sync_found(&s, flags[i].rule);
			assert_int_equal(args.hSyncObject, 0xAAAAAAAA);
		}
		assert_int_equal(open_as(s.device, nt, 0x7, &args), STATUS_SUCCESS);
		close(nt);
	}
	close(event);
	sync_stop(&s);
}

static void syn_14_legacy_types_outlive_the_creating_device(void **state)
{
	D3DKMT_HANDLE objects[5];
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	int event = sync_event();
	D3DKMT_HANDLE first = s.device;
	s.device = sync_open_device(&s);
	for (uint32_t type = 1; type <= 4; type++)
		objects[type] = create(&s, type, type % 2 ? SHARED : 0, event);
	const D3DKMT_DESTROYDEVICE end = {.hDevice = s.device};
	assert_int_equal(D3DKMTDestroyDevice(&end), STATUS_SUCCESS);
	for (uint32_t type = 1; type <= 3; type++)
		assert_int_equal(sync_destroy(objects[type]), STATUS_SUCCESS);
	s.device = first;
	close(event); /* SYN-15: the notification is left for the end of the process */
	sync_stop(&s);
}

static void mtx_07_mfn_22_cpn_04_the_cpu_waits_for_monitored_fences_only(void **state)
{
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	int event = sync_event();
	struct sync_fence good = sync_fence(&s, 0, 1);
	for (uint32_t type = 1; type <= 4; type++) {
		D3DKMT_HANDLE object = create(&s, type, 0, event);
		const D3DKMT_HANDLE both[2] = {good.handle, object};
		const uint64_t values[2] = {5, 5};
		D3DKMT_CREATESYNCFILE file = {.hDevice = s.device, .hMonitoredFence = object};
		const D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU two = {
			.hDevice = s.device,
			.ObjectCount = 2,
			.ObjectHandleArray = both,
			.FenceValueArray = (const UINT64 *)values};
		const char *waits = type == 1 ? "MTX-07" : type == 4 ? "CPN-04" : "MFN-22";
		const char *signals = type == 1 ? "MTX-07" : "MFN-22";

		assert_int_equal(sync_wait(s.device, object, 0), STATUS_INVALID_PARAMETER);
		sync_found(&s, waits);
		assert_int_equal(sync_wait_event(s.device, object, 0, event),
				 STATUS_INVALID_PARAMETER);
		sync_found(&s, waits);
		assert_int_equal(sync_signal(s.device, object, 1), STATUS_INVALID_PARAMETER);
		sync_found(&s, signals);
		assert_int_equal(D3DKMTSignalSynchronizationObjectFromCpu(&two),
				 STATUS_INVALID_PARAMETER);
		sync_found(&s, signals);
		assert_int_equal(*good.value, 1); /* SYN-22 */
		assert_int_equal(D3DKMTCreateSyncFile(&file), STATUS_INVALID_PARAMETER);
		sync_found(&s, waits);
	}
	assert_int_equal(sync_events(event), 0);
	close(event);
	sync_stop(&s);
}

/* CPN-01: the object has its own descriptor; a refused creation leaves none. */
static uint32_t open_descriptors(void)
{
	uint32_t count = 0;

	for (int fd = 0; fd < 256; fd++) {
		int copy = dup(fd);

		count += copy >= 0;
		if (copy >= 0)
			close(copy);
	}
	return count;
}

static void cpn_01_cpn_02_the_object_keeps_a_reference_to_its_event(void **state)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 args = {0};
	struct sync_world s;
	int pipes[2];

	sync_start(&s, state, sync_3_0);
	int event = sync_event();
	uint32_t before = open_descriptors();
	D3DKMT_HANDLE object = create(&s, D3DDDI_CPU_NOTIFICATION, 0, event);
	assert_int_equal(open_descriptors(), before + 1);
	assert_int_equal(sync_destroy(object), STATUS_SUCCESS);
	assert_int_equal(open_descriptors(), before);
	args.Info.CPUNotification.Event = (HANDLE)(uintptr_t)event;
	assert_int_equal(sync_try_create(&s, D3DDDI_CPU_NOTIFICATION, 0x8, &args),
			 STATUS_INVALID_PARAMETER);
	sync_found(&s, "SFL-13");
	assert_int_equal(open_descriptors(), before);
	assert_int_equal(pipe(pipes), 0);
	args.Info.CPUNotification.Event = (HANDLE)(uintptr_t)pipes[1];
	assert_int_equal(sync_try_create(&s, D3DDDI_CPU_NOTIFICATION, 0, &args),
			 STATUS_INVALID_HANDLE);
	sync_found(&s, "CPN-02");
	assert_int_equal(open_descriptors(), before + 2);
	close(pipes[0]);
	close(pipes[1]);
	close(event);
	sync_stop(&s);
}

static void syn_17_out_of_memory_leaves_nothing(void **state)
{
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	int event = sync_event();
	for (uint32_t type = 1; type <= 4; type++) {
		uint32_t before = open_descriptors();

		for (uint32_t n = 1; n <= 2; n++) {
			D3DKMT_CREATESYNCHRONIZATIONOBJECT2 args = filled(type, event);

			args.hSyncObject = 0xdead;
			vmm_calloc_fail_after(n);
			NTSTATUS status = sync_try_create(&s, type, 0, &args);
			vmm_calloc_fail_after(0);
			assert_int_equal(status, STATUS_NO_MEMORY);
			assert_int_equal(args.hSyncObject, 0xdead);
			assert_int_equal(open_descriptors(), before);
		}
	}
	close(event);
	sync_stop(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(syn_06_syn_07_syn_16_fen_04_legacy_types_are_created_without_addresses),
		ON_BOTH(syn_05_syn_20_sem_01_v1_create_makes_mutexes_and_semaphores),
		ON_BOTH(shr_06_shr_12_shr_14_each_type_is_shared_and_opened),
		ON_BOTH(sfl_34_monitored_fence_flags_are_refused_when_opening_other_types),
		ON_BOTH(syn_14_legacy_types_outlive_the_creating_device),
		ON_BOTH(mtx_07_mfn_22_cpn_04_the_cpu_waits_for_monitored_fences_only),
		ON_BOTH(cpn_01_cpn_02_the_object_keeps_a_reference_to_its_event),
		ON_BOTH(syn_17_out_of_memory_leaves_nothing),
	};

	return cmocka_run_group_tests_name("sync types", tests, NULL, NULL);
}
