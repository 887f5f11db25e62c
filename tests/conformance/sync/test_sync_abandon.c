/* SPDX-License-Identifier: MIT */
/*
 * The end of an out-of-process client whose calls wait: waiting calls return, later calls do not
 * wait, and then the process can be closed.
 */
#include "host/host_private.h" /* before d3dkmthk.h, see kmt.h */

#include "sync_world.h"

struct key_waiter {
	struct vidmm_process *process;
	D3DKMT_HANDLE handle;
	NTSTATUS result;
	struct vidmm_thread *thread;
};

static NTSTATUS acquire(D3DKMT_HANDLE handle, uint64_t key)
{
	D3DKMT_ACQUIREKEYEDMUTEX args = {.hKeyedMutex = handle, .Key = key};

	return D3DKMTAcquireKeyedMutex(&args);
}

static void wait_for_key(void *argument)
{
	struct key_waiter *v = argument;

	vidmm_d3dkmt_enter(v->process);
	v->result = acquire(v->handle, 77);
	vidmm_d3dkmt_enter(NULL);
}

/* A thread of each process waits; only the calls of one return. */
static void shr_33_waits_of_a_dead_client_process_return(void **state)
{
	struct sync_waiter mine = {0}, theirs = {0};
	struct key_waiter key;
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	struct sync_fence f = sync_fence(&s, 0, 0);
	mine.process = s.process;
	sync_waiter_start(&s, &mine, f.handle, 1);
	D3DKMT_CREATEKEYEDMUTEX m = {.InitialValue = 0};
	assert_int_equal(D3DKMTCreateKeyedMutex(&m), STATUS_SUCCESS);
	key = (struct key_waiter){.process = s.process, .handle = m.hKeyedMutex};
	assert_int_equal(vidmm_thread_create(s.w.client.host, "waits for a key", wait_for_key, &key,
					     &key.thread),
			 0);
	vidmm_settle(s.w.client.host);
	vidmm_d3dkmt_enter(s.other);
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 made = {.hDevice = s.other_device,
						    .Info.Type = D3DDDI_MONITORED_FENCE};
	assert_int_equal(D3DKMTCreateSynchronizationObject2(&made), STATUS_SUCCESS);
	theirs.process = s.other;
	theirs.device = s.other_device;
	sync_waiter_start(&s, &theirs, made.hSyncObject, 1);

	vmm_process_abandon(s.process);
	assert_int_equal(sync_waiter_join(&mine), STATUS_CANCELLED);
	vidmm_thread_join(key.thread);
	assert_int_equal(key.result, STATUS_CANCELLED);
	vidmm_settle(s.w.client.host);
	assert_int_equal(theirs.done, 0);
	/* Later calls do not wait, but take what is available at once. */
	vidmm_d3dkmt_enter(s.process);
	assert_int_equal(sync_wait(s.device, f.handle, 1), STATUS_CANCELLED);
	assert_int_equal(sync_wait(s.device, f.handle, 0), STATUS_SUCCESS);
	assert_int_equal(acquire(m.hKeyedMutex, 77), STATUS_CANCELLED);
	vidmm_d3dkmt_enter(s.other);
	assert_int_equal(sync_signal(s.other_device, made.hSyncObject, 1), STATUS_SUCCESS);
	assert_int_equal(sync_waiter_join(&theirs), STATUS_SUCCESS);
	vidmm_d3dkmt_enter(s.process);
	sync_stop(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(shr_33_waits_of_a_dead_client_process_return),
	};

	return cmocka_run_group_tests_name("sync abandon", tests, NULL, NULL);
}
