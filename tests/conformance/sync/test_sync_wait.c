/* SPDX-License-Identifier: MIT */
/* CPU waits: blocking waits and events, and what ends them (MFN, SFL). */
#include "sync_world.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/base.h"

static void mfn_11_mfn_16_a_signal_frees_only_satisfied_waits(void **state)
{
	struct sync_waiter waiters[8] = {0};
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	struct sync_fence f = sync_fence(&s, 0, 0);
	for (uint32_t i = 0; i < 8; i++) {
		waiters[i].process = s.process;
		sync_waiter_start(&s, &waiters[i], f.handle, i + 1);
	}
	assert_int_equal(sync_signal(s.device, f.handle, 4), STATUS_SUCCESS);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(sync_waiter_join(&waiters[i]), STATUS_SUCCESS);
	for (uint32_t i = 0; i < 20; i++)
		vidmm_settle(s.w.client.host);
	for (uint32_t i = 4; i < 8; i++)
		assert_int_equal(waiters[i].done, 0);
	assert_int_equal(sync_signal(s.device, f.handle, 8), STATUS_SUCCESS);
	for (uint32_t i = 4; i < 8; i++)
		assert_int_equal(sync_waiter_join(&waiters[i]), STATUS_SUCCESS);
	sync_stop(&s);
}

/* Three fences; for each an event and a sleeping thread. */
static void mfn_20_mfn_11_a_signal_of_several_wakes_the_waiters_of_each(void **state)
{
	enum { FENCES = 3 };
	struct sync_waiter waiters[FENCES] = {0};
	D3DKMT_HANDLE handles[FENCES];
	UINT64 values[FENCES];
	int events[FENCES];
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	for (uint32_t i = 0; i < FENCES; i++) {
		handles[i] = sync_fence(&s, 0, 0).handle;
		values[i] = i + 1;
		events[i] = sync_event();
		assert_int_equal(sync_wait_event(s.device, handles[i], values[i], events[i]),
				 STATUS_SUCCESS);
		waiters[i].process = s.process;
		sync_waiter_start(&s, &waiters[i], handles[i], values[i]);
	}
	const D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU args = {.hDevice = s.device,
								.ObjectCount = FENCES,
								.ObjectHandleArray = handles,
								.FenceValueArray = values};
	assert_int_equal(D3DKMTSignalSynchronizationObjectFromCpu(&args), STATUS_SUCCESS);
	for (uint32_t i = 0; i < FENCES; i++) {
		assert_int_equal(sync_events(events[i]), 1);
		close(events[i]);
	}
	for (uint32_t i = 0; i < FENCES; i++)
		assert_int_equal(sync_waiter_join(&waiters[i]), STATUS_SUCCESS);
	sync_stop(&s);
}

static void mfn_12_mfn_13_mfn_41_an_event_is_set_once(void **state)
{
	struct sync_world s;
	int pipes[2];

	sync_start(&s, state, sync_3_0);
	struct sync_fence f = sync_fence(&s, 0, 5);
	int event = sync_event();
	assert_int_equal(sync_wait_event(s.device, f.handle, 5, event), STATUS_SUCCESS);
	assert_int_equal(sync_events(event), 1); /* it was satisfied already */
	assert_int_equal(sync_wait_event(s.device, f.handle, 7, event), STATUS_SUCCESS);
	assert_int_equal(sync_wait_event(s.device, f.handle, 9, event), STATUS_SUCCESS);
	assert_int_equal(sync_signal(s.device, f.handle, 6), STATUS_SUCCESS);
	assert_int_equal(sync_events(event), 0);
	assert_int_equal(sync_signal(s.device, f.handle, 8), STATUS_SUCCESS);
	assert_int_equal(sync_events(event), 1);
	assert_int_equal(sync_signal(s.device, f.handle, 8), STATUS_SUCCESS);
	assert_int_equal(sync_events(event), 0);
	assert_int_equal(sync_signal(s.device, f.handle, 100), STATUS_SUCCESS);
	assert_int_equal(sync_events(event), 1);
	assert_int_equal(pipe(pipes), 0);
	const int bad[] = {pipes[1], 9999, event + 4000};
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(sync_wait_event(s.device, f.handle, 200, bad[i]),
				 STATUS_INVALID_HANDLE);
		sync_found(&s, "MFN-13");
	}
	/* The client may close its descriptor before the event is set. */
	int kept = dup(event);
	assert_int_equal(sync_wait_event(s.device, f.handle, 101, event), STATUS_SUCCESS);
	close(event);
	assert_int_equal(sync_signal(s.device, f.handle, 101), STATUS_SUCCESS);
	assert_int_equal(sync_events(kept), 1);
	close(kept);
	close(pipes[0]);
	close(pipes[1]);
	sync_stop(&s);
}

static void mfn_12_a_full_event_does_not_block_the_signal(void **state)
{
	const uint64_t most = UINT64_MAX - 1;
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	struct sync_fence f = sync_fence(&s, 0, 0);
	int event = sync_event();
	assert_int_equal(write(event, &most, sizeof(most)), sizeof(most));
	assert_int_equal(sync_wait_event(s.device, f.handle, 1, event), STATUS_SUCCESS);
	assert_int_equal(sync_signal(s.device, f.handle, 1), STATUS_SUCCESS);
	assert_int_equal(sync_events(event), most);
	close(event);
	sync_stop(&s);
}

struct many {
	struct sync_world *s;
	D3DKMT_HANDLE handles[100];
	uint64_t values[100];
	uint32_t count, flags;
	NTSTATUS result;
	_Atomic uint32_t done;
};

static void wait_for_many(void *argument)
{
	struct many *m = argument;

	m->result = sync_wait_all(m->s->device, m->handles, m->values, m->count, m->flags);
	atomic_store(&m->done, 1);
}

/* 64 fences, and 100, which exceed the buffer on the stack; any, then all. */
static void mfn_14_mfn_15_wait_for_all_or_any_of_many_fences(void **state)
{
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	for (uint32_t round = 0; round < 4; round++) {
		struct many m = {.s = &s, .count = round < 2 ? 64 : 100, .flags = round % 2};
		struct vidmm_thread *thread;

		for (uint32_t i = 0; i < m.count; i++) {
			m.handles[i] = sync_fence(&s, 0, 0).handle;
			m.values[i] = i % 3 + 1;
		}
		m.handles[7] = m.handles[8]; /* twice, for 2 and 3 */
		assert_int_equal(
			vidmm_thread_create(s.w.client.host, "many", wait_for_many, &m, &thread),
			0);
		vidmm_settle(s.w.client.host);
		for (uint32_t i = 0; i < m.count && !(m.flags & 1); i++) {
			assert_int_equal(m.done, 0);
			assert_int_equal(sync_signal(s.device, m.handles[i], 3), 0);
			vidmm_settle(s.w.client.host);
		}
		assert_int_equal(sync_signal(s.device, m.handles[40], 3), 0);
		vidmm_thread_join(thread);
		assert_int_equal(m.result, STATUS_SUCCESS);
	}
	const D3DKMT_HANDLE f = sync_fence(&s, 0, 0).handle;
	const uint64_t zero = 0;
	assert_int_equal(sync_wait_all(s.device, &f, &zero, 0, 0), STATUS_INVALID_PARAMETER);
	sync_found(&s, "MFN-14");
	assert_int_equal(sync_wait_all(s.device, &f, &zero, 1, 2), STATUS_INVALID_PARAMETER);
	sync_found(&s, "MFN-14");
	sync_stop(&s);
}

/* One of two fences has its value when the wait for both begins. */
static void mfn_14_a_wait_for_all_waits_for_the_fence_that_lacks_its_value(void **state)
{
	struct vidmm_thread *thread;
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	for (uint32_t missing = 0; missing < 2; missing++) {
		struct many m = {.s = &s, .count = 2, .values = {5, 5}};

		for (uint32_t i = 0; i < 2; i++)
			m.handles[i] = sync_fence(&s, 0, i == missing ? 4 : 5).handle;
		assert_int_equal(
			vidmm_thread_create(s.w.client.host, "both", wait_for_many, &m, &thread),
			0);
		vidmm_settle(s.w.client.host);
		assert_int_equal(m.done, 0);
		assert_int_equal(sync_signal(s.device, m.handles[missing], 5), STATUS_SUCCESS);
		vidmm_thread_join(thread);
		assert_int_equal(m.result, STATUS_SUCCESS);
	}
	sync_stop(&s);
}

/* Destroying a fence frees its waiters; a wait for another fence continues. */
static void mfn_17_sfl_27_sfl_30_destroying_a_fence_frees_its_waiters(void **state)
{
	struct sync_waiter v[3] = {0};
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	struct sync_fence f = sync_fence(&s, 0, 0), g = sync_fence(&s, 0, 0);
	int event = sync_event();
	for (uint32_t i = 0; i < 3; i++) {
		v[i].process = s.process;
		sync_waiter_start(&s, &v[i], i < 2 ? f.handle : g.handle, 5);
	}
	assert_int_equal(sync_wait_event(s.device, f.handle, 5, event), STATUS_SUCCESS);
	assert_int_equal(v[0].done + v[1].done + v[2].done, 0);
	assert_int_equal(sync_destroy(f.handle), STATUS_SUCCESS);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(sync_waiter_join(&v[i]), STATUS_CANCELLED);
	assert_int_equal(sync_events(event), 1);
	vidmm_settle(s.w.client.host);
	assert_int_equal(v[2].done, 0);
	assert_int_equal(sync_signal(s.device, g.handle, 5), STATUS_SUCCESS);
	assert_int_equal(sync_waiter_join(&v[2]), STATUS_SUCCESS);
	close(event);
	sync_stop(&s);
}

/*
 * UnwaitCpuWaitersOnlyOnDestroy exists from 3.2 on; its effect is tested below the D3DKMT
 * functions.
 */
static void sfl_32_a_flag_of_a_later_version_is_refused(void **state)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 args = {0};
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	assert_int_equal(sync_try_create(&s, D3DDDI_MONITORED_FENCE, 0x400, &args),
			 STATUS_INVALID_PARAMETER);
	sync_found(&s, "SFL-32");
	sync_stop(&s);
}

/* A wait through a device ends with that device, also if the fence belongs to another one. */
static void mfn_18_syn_14_destroying_a_device_frees_waits_through_it(void **state)
{
	struct sync_waiter v = {0};
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	struct sync_fence f = sync_fence(&s, 0, 0);
	int event = sync_event();
	v.process = s.process;
	v.device = sync_open_device(&s);
	assert_int_equal(sync_wait_event(v.device, f.handle, 5, event), STATUS_SUCCESS);
	sync_waiter_start(&s, &v, f.handle, 5);
	assert_int_equal(v.done, 0);
	const D3DKMT_DESTROYDEVICE end = {.hDevice = v.device};
	assert_int_equal(D3DKMTDestroyDevice(&end), STATUS_SUCCESS);
	assert_int_equal(sync_waiter_join(&v), STATUS_CANCELLED);
	assert_int_equal(sync_events(event), 1);
	assert_int_equal(sync_signal(s.device, f.handle, 5), STATUS_SUCCESS);
	assert_int_equal(sync_events(event), 0);
	close(event);
	sync_stop(&s);
}

/* MFN-24: a satisfied wait stays satisfied; a later one is compared with the lower value. */
static void mfn_24_a_wait_after_a_rewind_waits(void **state)
{
	struct sync_waiter v = {0};
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	struct sync_fence f = sync_fence(&s, 0, 10);
	v.process = s.process;
	assert_int_equal(sync_signal_with(s.device, f.handle, 5, 4), STATUS_SUCCESS);
	sync_waiter_start(&s, &v, f.handle, 7);
	assert_int_equal(v.done, 0);
	assert_int_equal(sync_signal(s.device, f.handle, 7), STATUS_SUCCESS);
	assert_int_equal(sync_waiter_join(&v), STATUS_SUCCESS);
	sync_stop(&s);
}

/* MFN-34: the caller may change the arrays when the call has returned. */
static void mfn_34_the_arrays_are_copied_at_the_call(void **state)
{
	struct sync_world s;
	uint64_t value = 3;

	sync_start(&s, state, sync_3_0);
	struct sync_fence f = sync_fence(&s, 0, 0);
	D3DKMT_HANDLE handle = f.handle;
	int event = sync_event();
	const D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU args = {.hDevice = s.device,
								 .ObjectCount = 1,
								 .ObjectHandleArray = &handle,
								 .FenceValueArray = &value,
								 .hAsyncEvent =
									 (HANDLE)(uintptr_t)event};
	assert_int_equal(D3DKMTWaitForSynchronizationObjectFromCpu(&args), STATUS_SUCCESS);
	value = 1000;
	handle = 0;
	assert_int_equal(sync_signal(s.device, f.handle, 3), STATUS_SUCCESS);
	assert_int_equal(sync_events(event), 1);
	close(event);
	sync_stop(&s);
}

static _Atomic uint32_t alarms;

static void on_alarm(int number)
{
	(void)number;
	atomic_fetch_add(&alarms, 1);
}

/* POSIX signals interrupt any thread of the process; the wait continues. */
static void mfn_19_posix_signals_to_the_thread_end_no_wait(void **state)
{
	struct sigaction action = {.sa_handler = on_alarm}, before;
	const struct itimerval often = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};
	struct sync_waiter v = {0};
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	struct sync_fence f = sync_fence(&s, 0, 0);
	v.process = s.process;
	assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	sync_waiter_start(&s, &v, f.handle, 1);
	atomic_store(&alarms, 0); /* from here on it waits */
	while (atomic_load(&alarms) < 10)
		assert_int_equal(v.done, 0);
	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
	assert_int_equal(sync_signal(s.device, f.handle, 1), STATUS_SUCCESS);
	assert_int_equal(sync_waiter_join(&v), STATUS_SUCCESS);
	assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
	sync_stop(&s);
}

/*
 * PNP-05: a waiting thread leaves the device while the adapter has no power, and continues to wait
 * afterwards.
 */
static void pnp_05_mfn_18_a_cpu_wait_survives_a_power_change(void **state)
{
	struct sync_waiter v[2] = {0};
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	struct sync_fence f = sync_fence(&s, 0, 0);
	for (uint32_t i = 0; i < 2; i++) {
		v[i].process = s.process;
		sync_waiter_start(&s, &v[i], f.handle, 1 + i);
	}
	assert_int_equal(
		vidmm_adapter_set_power(s.w.client.adapter, VIDMM_POWER_D3, VIDMM_SLEEP_STANDBY),
		0);
	vidmm_settle(s.w.client.host);
	assert_int_equal(vidmm_adapter_set_power(s.w.client.adapter, VIDMM_POWER_D0, 0), 0);
	vidmm_settle(s.w.client.host);
	assert_int_equal(v[0].done + v[1].done, 0);
	assert_int_equal(sync_signal(s.device, f.handle, 1), STATUS_SUCCESS);
	assert_int_equal(sync_waiter_join(&v[0]), STATUS_SUCCESS);
	assert_int_equal(sync_destroy(f.handle), STATUS_SUCCESS);
	assert_int_equal(sync_waiter_join(&v[1]), STATUS_CANCELLED);
	sync_stop(&s);
}

static bool is_ready(int file)
{
	struct pollfd look = {.fd = file, .events = POLLIN};

	return poll(&look, 1, 0) == 1 && (look.revents & POLLIN);
}

static void mfn_40_the_sync_file_descriptor_polls_ready_at_the_value(void **state)
{
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	struct sync_fence f = sync_fence(&s, 0, 5), deaf = sync_fence(&s, 0x20, 5);
	D3DKMT_CREATESYNCFILE there = {
		.hDevice = s.device, .hMonitoredFence = f.handle, .FenceValue = 5};
	D3DKMT_CREATESYNCFILE later = {
		.hDevice = s.device, .hMonitoredFence = f.handle, .FenceValue = 7};
	assert_int_equal(D3DKMTCreateSyncFile(&there), STATUS_SUCCESS);
	assert_int_equal(D3DKMTCreateSyncFile(&later), STATUS_SUCCESS);
	assert_true(there.hSyncFile >= 3 && later.hSyncFile >= 3);
	assert_true(is_ready((int)there.hSyncFile));
	assert_int_equal(sync_signal(s.device, f.handle, 6), STATUS_SUCCESS);
	assert_false(is_ready((int)later.hSyncFile));
	assert_int_equal(sync_signal(s.device, f.handle, 7), STATUS_SUCCESS);
	assert_true(is_ready((int)later.hSyncFile));
	assert_true(is_ready((int)later.hSyncFile));
	close((int)there.hSyncFile);
	close((int)later.hSyncFile);
	there.hSyncFile = 0xdead;
	there.hMonitoredFence = s.device;
	assert_int_equal(D3DKMTCreateSyncFile(&there), STATUS_INVALID_PARAMETER);
	sync_found(&s, "SYN-22");
	there.hMonitoredFence = deaf.handle;
	assert_int_equal(D3DKMTCreateSyncFile(&there), STATUS_ACCESS_DENIED);
	sync_found(&s, "SFL-16");
	assert_int_equal(D3DKMTCreateSyncFile(NULL), STATUS_INVALID_PARAMETER);
	sync_found(&s, "HND-11");
	assert_int_equal(there.hSyncFile, 0xdead);
	sync_stop(&s);
}

/* Neither allocates memory: an allocation would fail here. */
static void mfn_20_mfn_11_signals_and_waits_allocate_nothing(void **state)
{
	struct sync_waiter v = {0};
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	struct sync_fence f = sync_fence(&s, 0, 0);
	v.process = s.process;
	vmm_calloc_fail_after(1);
	assert_int_equal(sync_signal(s.device, f.handle, 1), STATUS_SUCCESS);
	assert_int_equal(sync_wait(s.device, f.handle, 1), STATUS_SUCCESS);
	vmm_calloc_fail_after(0);
	sync_waiter_start(&s, &v, f.handle, 2);
	vmm_calloc_fail_after(1);
	assert_int_equal(sync_signal(s.device, f.handle, 2), STATUS_SUCCESS);
	vmm_calloc_fail_after(0);
	assert_int_equal(sync_waiter_join(&v), STATUS_SUCCESS);
	sync_stop(&s);
}

static void removable(struct scripted_miniport *m)
{
	sync_3_0(m);
	m->settings.caps.SupportSurpriseRemoval = 1;
}

/* No packet and no client signals the fence any more. */
static void pnp_08_the_removal_of_the_adapter_ends_the_waits_of_its_devices(void **state)
{
	struct sync_world s;
	struct sync_waiter v = {0};

	sync_start(&s, state, removable);
	struct sync_fence f = sync_fence(&s, 0, 0);
	v.process = s.process;
	sync_waiter_start(&s, &v, f.handle, 1);
	assert_int_equal(atomic_load(&v.done), 0);
	assert_int_equal(vidmm_adapter_remove(s.w.client.adapter, VIDMM_REMOVAL_PNP), 0);
	assert_int_equal(sync_waiter_join(&v), STATUS_DEVICE_REMOVED);
	sync_stop(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(mfn_11_mfn_16_a_signal_frees_only_satisfied_waits),
		ON_BOTH(mfn_20_mfn_11_a_signal_of_several_wakes_the_waiters_of_each),
		ON_BOTH(mfn_12_mfn_13_mfn_41_an_event_is_set_once),
		ON_BOTH(mfn_12_a_full_event_does_not_block_the_signal),
		ON_BOTH(mfn_14_mfn_15_wait_for_all_or_any_of_many_fences),
		ON_BOTH(mfn_14_a_wait_for_all_waits_for_the_fence_that_lacks_its_value),
		ON_BOTH(mfn_17_sfl_27_sfl_30_destroying_a_fence_frees_its_waiters),
		ON_BOTH(sfl_32_a_flag_of_a_later_version_is_refused),
		ON_BOTH(mfn_18_syn_14_destroying_a_device_frees_waits_through_it),
		ON_BOTH(mfn_24_a_wait_after_a_rewind_waits),
		ON_BOTH(mfn_34_the_arrays_are_copied_at_the_call),
		ON_BOTH(mfn_40_the_sync_file_descriptor_polls_ready_at_the_value),
		ON_BOTH(mfn_20_mfn_11_signals_and_waits_allocate_nothing),
		ON_BOTH(mfn_19_posix_signals_to_the_thread_end_no_wait),
		ON_BOTH(pnp_05_mfn_18_a_cpu_wait_survives_a_power_change),
		ON_BOTH(pnp_08_the_removal_of_the_adapter_ends_the_waits_of_its_devices),
	};

	return cmocka_run_group_tests_name("sync wait", tests, NULL, NULL);
}
