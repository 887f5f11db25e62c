/* SPDX-License-Identifier: MIT */
/*
 * What does not fit beside memory that another process has locked waits until that process unlocks
 * (RES-08, LOCK-48, Q-340). The segment has 16 MiB. The fixture's device is another process's than
 * that of the hardware context.
 */
#include "hw_world.h"

#include <string.h>

#define OVERLAY 0x100u /* pinned */

/* ---- the other process ---- */

static void lock_theirs(struct hw_world *h, D3DKMT_HANDLE allocation)
{
	D3DDDICB_LOCK2 args = {.hAllocation = allocation};

	assert_int_equal(h->w.device.cb->pfnLock2Cb(h->w.device.handle, &args), S_OK);
	assert_non_null(args.pData);
}

static void unlock_theirs(struct hw_world *h, D3DKMT_HANDLE allocation)
{
	const D3DDDICB_UNLOCK2 args = {.hAllocation = allocation};

	assert_int_equal(h->w.device.cb->pfnUnlock2Cb(h->w.device.handle, &args), S_OK);
	hw_settle(h);
}

static uint32_t submitted(const struct hw_world *h)
{
	return scripted_count(h->w.m, VIDMM_DDI_SUBMIT_COMMAND_TO_HW_QUEUE);
}

/* ---- commands of hardware queues ---- */

static void res_08_lock_48_a_command_waits_until_another_process_unlocks(void **state)
{
	struct hw_world h;

	hw_start(&h, state, NULL);
	hw_listed(&h, h.device, 12 * MIB);
	struct hw_queue q = hw_queue(&h, h.context, 0);
	D3DKMT_HANDLE theirs = hw_theirs_in_memory(&h, 8 * MIB, 0);
	lock_theirs(&h, theirs);
	(void)client_told(&h.w.client, 0, "");
	assert_int_equal(hw_submit(&q, 1), STATUS_SUCCESS);
	hw_run(&h);
	assert_int_equal(submitted(&h), 0);
	assert_int_equal(hw_state_of(h.device), D3DKMT_DEVICEEXECUTION_ACTIVE);
	assert_true(client_told(&h.w.client, STATUS_PENDING, "Q-340"));
	lock_theirs(&h, theirs);
	unlock_theirs(&h, theirs); /* one of two locks */
	hw_run(&h);
	assert_int_equal(submitted(&h), 0);
	unlock_theirs(&h, theirs);
	hw_run(&h);
	assert_int_equal(hw_value(&q), 1);
	assert_int_equal(hw_state_of(h.device), D3DKMT_DEVICEEXECUTION_ACTIVE);
	hw_stop(&h);
}

/* The memory of a command on the GPU is given to a packet, and locked when it is to come back. */
static void sch_11_res_08_a_suspended_context_resumes_after_the_unlock(void **state)
{
	struct hw_world h;

	hw_start(&h, state, NULL);
	hw_listed(&h, h.device, 12 * MIB);
	struct hw_queue q = hw_queue(&h, h.context, 0);
	D3DKMT_HANDLE theirs = wddm2_allocate(&h.w.device, 8 * MIB, WORLD_MEMORY);
	assert_int_equal(hw_submit(&q, 1), STATUS_SUCCESS);
	hw_settle(&h);
	assert_int_equal(submitted(&h), 1);
	/* A packet of the other device needs the memory, and keeps it until it is complete. */
	hw_use_theirs(&h, theirs);
	assert_int_equal(scripted_count(h.w.m, VIDMM_DDI_SUSPEND_CONTEXT), 1);
	lock_theirs(&h, theirs);
	hw_run(&h);
	assert_int_equal(scripted_count(h.w.m, VIDMM_DDI_RESUME_CONTEXT), 0);
	assert_int_equal(hw_state_of(h.device), D3DKMT_DEVICEEXECUTION_ACTIVE);
	unlock_theirs(&h, theirs);
	hw_run(&h);
	assert_int_equal(scripted_count(h.w.m, VIDMM_DDI_RESUME_CONTEXT), 1);
	assert_int_equal(hw_value(&q), 1);
	hw_stop(&h);
}

/* The thread that would unlock may be the one that waits for the command. */
static void res_08_the_own_process_s_locks_are_not_waited_for(void **state)
{
	struct hw_world h;

	hw_start(&h, state, NULL);
	D3DKMT_HANDLE other = hw_device(&h), mine = hw_listed(&h, other, 8 * MIB);
	D3DKMT_LOCK2 lock = {.hDevice = other, .hAllocation = mine};
	hw_listed(&h, h.device, 12 * MIB);
	hw_make_resident(&h, other, mine);
	struct hw_queue q = hw_queue(&h, h.context, 0);
	assert_int_equal(D3DKMTLock2(&lock), STATUS_SUCCESS);
	(void)client_told(&h.w.client, 0, "");
	assert_int_equal(hw_submit(&q, 1), STATUS_SUCCESS);
	hw_run(&h);
	assert_int_equal(hw_state_of(h.device), D3DKMT_DEVICEEXECUTION_ERROR_OUTOFMEMORY);
	assert_true(client_told(&h.w.client, (uint32_t)STATUS_NO_VIDEO_MEMORY, "RES-08"));
	assert_int_equal(submitted(&h), 0);
	hw_stop(&h);
}

/* Pinned memory leaves too little space, with or without locks. */
static void res_08_a_list_that_does_not_fit_is_an_error(void **state)
{
	for (uint32_t locked = 0; locked < 2; locked++) {
		struct hw_world h;

		hw_start(&h, state, NULL);
		hw_listed(&h, h.device, 14 * MIB);
		struct hw_queue q = hw_queue(&h, h.context, 0);
		/* A client of a host gets its own pages there once the old content has left. */
		h.w.m->settings.complete_at_once = true;
		hw_theirs_in_memory(&h, 3 * MIB, OVERLAY);
		h.w.m->settings.complete_at_once = false;
		D3DKMT_HANDLE theirs = hw_theirs_in_memory(&h, MIB, 0);
		if (locked)
			lock_theirs(&h, theirs);
		(void)client_told(&h.w.client, 0, "");
		assert_int_equal(hw_submit(&q, 1), STATUS_SUCCESS);
		hw_run(&h);
		if (locked) {
			assert_int_equal(hw_state_of(h.device), D3DKMT_DEVICEEXECUTION_ACTIVE);
			assert_true(client_told(&h.w.client, STATUS_PENDING, "Q-340"));
			unlock_theirs(&h, theirs);
			hw_run(&h);
		}
		assert_int_equal(hw_state_of(h.device), D3DKMT_DEVICEEXECUTION_ERROR_OUTOFMEMORY);
		assert_true(client_told(&h.w.client, (uint32_t)STATUS_NO_VIDEO_MEMORY, "RES-08"));
		assert_int_equal(submitted(&h), 0);
		hw_stop(&h);
	}
}

/* Two devices that wait do not evict each other; and others get memory meanwhile. */
static void res_08_devices_that_wait_for_an_unlock_leave_others_their_memory(void **state)
{
	struct hw_world h;

	hw_start(&h, state, NULL);
	D3DKMT_HANDLE second = hw_device(&h), third = hw_device(&h);
	for (uint32_t i = 0; i < 3; i++) {
		hw_listed(&h, h.device, 4 * MIB);
		hw_listed(&h, second, 4 * MIB);
	}
	hw_listed(&h, third, 4 * MIB);
	struct hw_queue q = hw_queue(&h, h.context, 0), r = hw_queue(&h, hw_context(second), 0),
			s = hw_queue(&h, hw_context(third), 0);
	D3DKMT_HANDLE theirs = hw_theirs_in_memory(&h, 6 * MIB, 0);
	lock_theirs(&h, theirs);
	assert_int_equal(hw_submit(&q, 1), STATUS_SUCCESS);
	assert_int_equal(hw_submit(&r, 1), STATUS_SUCCESS);
	hw_run(&h);
	assert_int_equal(submitted(&h), 0);
	assert_int_equal(hw_submit(&s, 1), STATUS_SUCCESS);
	hw_run(&h);
	assert_int_equal(hw_value(&s), 1);
	uint32_t operations = wddm2_transfers(&h.w, true) + wddm2_transfers(&h.w, false);
	for (uint32_t i = 2; i <= 8; i++) { /* each completion wakes the worker */
		assert_int_equal(hw_submit(&s, i), STATUS_SUCCESS);
		hw_run(&h);
		assert_int_equal(hw_value(&s), i);
	}
	assert_int_equal(wddm2_transfers(&h.w, true) + wddm2_transfers(&h.w, false), operations);
	assert_int_equal(submitted(&h), 8);
	unlock_theirs(&h, theirs);
	hw_run(&h);
	assert_int_equal(hw_value(&q), 1);
	assert_int_equal(hw_value(&r), 1);
	hw_stop(&h);
}

/* A destroyed allocation is unlocked; one that leaves the list makes the list smaller. */
static void res_08_a_wait_for_an_unlock_ends_when_the_list_fits(void **state)
{
	for (uint32_t how = 0; how < 2; how++) {
		struct hw_world h;

		hw_start(&h, state, NULL);
		hw_listed(&h, h.device, 8 * MIB);
		D3DKMT_HANDLE last = hw_listed(&h, h.device, 4 * MIB);
		struct hw_queue q = hw_queue(&h, h.context, 0);
		D3DKMT_HANDLE theirs = hw_theirs_in_memory(&h, 6 * MIB, 0);
		lock_theirs(&h, theirs);
		assert_int_equal(hw_submit(&q, 1), STATUS_SUCCESS);
		hw_run(&h);
		assert_int_equal(submitted(&h), 0);
		if (how) {
			D3DKMT_EVICT evict = {
				.hDevice = h.device, .NumAllocations = 1, .AllocationList = &last};

			assert_int_equal(D3DKMTEvict(&evict), STATUS_SUCCESS);
		} else {
			assert_int_equal(client_deallocate(&h.w.device, theirs), S_OK);
		}
		hw_run(&h);
		assert_int_equal(hw_value(&q), 1);
		hw_stop(&h);
	}
}

/* ---- the end of what waits ---- */

static void q_341_a_queue_that_waits_for_an_unlock_ends_without_it(void **state)
{
	struct hw_world h;

	hw_start(&h, state, NULL);
	hw_listed(&h, h.device, 12 * MIB);
	struct hw_queue q = hw_queue(&h, h.context, 0), r = hw_queue(&h, h.context, 0);
	D3DKMT_HANDLE theirs = hw_theirs_in_memory(&h, 8 * MIB, 0);
	lock_theirs(&h, theirs);
	assert_int_equal(hw_submit(&q, 1), STATUS_SUCCESS);
	assert_int_equal(hw_submit(&r, 1), STATUS_SUCCESS);
	hw_run(&h);
	hw_destroy_queue(&q); /* on the thread that could unlock */
	unlock_theirs(&h, theirs);
	hw_run(&h);
	assert_int_equal(submitted(&h), 1);
	assert_int_equal(hw_value(&r), 1);
	hw_stop(&h);
}

static void q_341_a_suspended_queue_ends_before_its_context_resumes(void **state)
{
	struct hw_world h;

	hw_start(&h, state, NULL);
	hw_listed(&h, h.device, 12 * MIB);
	struct hw_queue q = hw_queue(&h, h.context, 0), r = hw_queue(&h, h.context, 0);
	D3DKMT_HANDLE theirs = wddm2_allocate(&h.w.device, 8 * MIB, WORLD_MEMORY);
	assert_int_equal(hw_submit(&q, 1), STATUS_SUCCESS);
	assert_int_equal(hw_submit(&r, 1), STATUS_SUCCESS);
	hw_settle(&h);
	hw_use_theirs(&h, theirs);
	lock_theirs(&h, theirs);
	hw_run(&h);
	hw_destroy_queue(&q);
	assert_int_equal(scripted_count(h.w.m, VIDMM_DDI_RESUME_CONTEXT), 0);
	unlock_theirs(&h, theirs);
	hw_run(&h);
	assert_int_equal(scripted_count(h.w.m, VIDMM_DDI_RESUME_CONTEXT), 1);
	assert_int_equal(hw_value(&r), 1);
	hw_stop(&h);
}

/* ---- operations of paging queues ---- */

static void res_03_makeresident_is_pending_until_another_process_unlocks(void **state)
{
	struct hw_world h;
	uint64_t value;

	hw_start(&h, state, NULL);
	D3DKMT_HANDLE theirs = hw_theirs_in_memory(&h, 8 * MIB, 0);
	lock_theirs(&h, theirs);
	D3DKMT_CREATEPAGINGQUEUE queue = {.hDevice = h.device};
	assert_int_equal(D3DKMTCreatePagingQueue(&queue), STATUS_SUCCESS);
	D3DKMT_HANDLE mine = hw_allocate(h.device, 12 * MIB);
	assert_int_equal(hw_make(queue.hPagingQueue, mine, &value), STATUS_PENDING);
	hw_run(&h);
	const _Atomic uint64_t *fence = queue.FenceValueCPUVirtualAddress;
	assert_true(atomic_load(fence) < value);
	unlock_theirs(&h, theirs);
	hw_run(&h);
	assert_true(atomic_load(fence) >= value);
	hw_stop(&h);
}

static void res_05_makeresident_fails_beside_the_own_process_s_locks(void **state)
{
	struct hw_world h;

	hw_start(&h, state, NULL);
	D3DKMT_HANDLE other = hw_device(&h), mine = hw_listed(&h, other, 8 * MIB);
	D3DKMT_LOCK2 lock = {.hDevice = other, .hAllocation = mine};
	assert_int_equal(D3DKMTLock2(&lock), STATUS_SUCCESS);
	D3DKMT_HANDLE larger = hw_allocate(h.device, 12 * MIB);
	D3DDDI_MAKERESIDENT make = {.hPagingQueue = hw_paging_queue(h.device),
				    .NumAllocations = 1,
				    .AllocationList = &larger};
	(void)client_told(&h.w.client, 0, "");
	assert_int_equal(D3DKMTMakeResident(&make), STATUS_NO_MEMORY);
	assert_int_equal(make.NumBytesToTrim, 12 * MIB);
	assert_true(client_told(&h.w.client, (uint32_t)STATUS_NO_MEMORY,
				"RES-05: make resident: the device's list"));
	hw_run(&h);
	hw_stop(&h);
}

static void res_04_a_paging_queue_that_waits_for_an_unlock_ends_without_it(void **state)
{
	struct hw_world h;
	uint64_t value;

	hw_start(&h, state, NULL);
	D3DKMT_HANDLE theirs = hw_theirs_in_memory(&h, 8 * MIB, 0);
	lock_theirs(&h, theirs);
	D3DDDI_DESTROYPAGINGQUEUE destroy = {.hPagingQueue = hw_paging_queue(h.device)};
	assert_int_equal(hw_make(destroy.hPagingQueue, hw_allocate(h.device, 12 * MIB), &value),
			 STATUS_PENDING);
	hw_run(&h);
	assert_int_equal(D3DKMTDestroyPagingQueue(&destroy), STATUS_SUCCESS);
	unlock_theirs(&h, theirs);
	hw_stop(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(res_08_lock_48_a_command_waits_until_another_process_unlocks),
		ON_BOTH(sch_11_res_08_a_suspended_context_resumes_after_the_unlock),
		ON_BOTH(res_08_the_own_process_s_locks_are_not_waited_for),
		ON_BOTH(res_08_a_list_that_does_not_fit_is_an_error),
		ON_BOTH(res_08_devices_that_wait_for_an_unlock_leave_others_their_memory),
		ON_BOTH(res_08_a_wait_for_an_unlock_ends_when_the_list_fits),
		ON_BOTH(q_341_a_queue_that_waits_for_an_unlock_ends_without_it),
		ON_BOTH(q_341_a_suspended_queue_ends_before_its_context_resumes),
		ON_BOTH(res_03_makeresident_is_pending_until_another_process_unlocks),
		ON_BOTH(res_05_makeresident_fails_beside_the_own_process_s_locks),
		ON_BOTH(res_04_a_paging_queue_that_waits_for_an_unlock_ends_without_it),
	};

	return cmocka_run_group_tests_name("wddm2_unlock_wait", tests, NULL, NULL);
}
