/* SPDX-License-Identifier: MIT */
/* Work items, look-aside lists, remove locks, rundown protection. */
#include "nt_world.h"

struct work {
	KEVENT done, go;
	PIO_WORKITEM item;
	PVOID object;
	KIRQL irql;
	_Atomic LONG calls;
	IO_REMOVE_LOCK lock;
	EX_RUNDOWN_REF rundown;
};

static void wait_for(PKEVENT event)
{
	assert_int_equal(KeWaitForSingleObject(event, Executive, KernelMode, FALSE, NULL),
			 STATUS_SUCCESS);
}

static VOID first_routine(PVOID context)
{
	struct work *w = context;

	w->irql = KeGetCurrentIrql();
	atomic_fetch_add(&w->calls, 1);
	KeSetEvent(&w->done, 0, FALSE);
}

static VOID io_routine(PDEVICE_OBJECT object, PVOID context)
{
	struct work *w = context;

	w->object = object;
	IoFreeWorkItem(w->item);
	KeSetEvent(&w->done, 0, FALSE);
}

static VOID waits_for_go(PVOID context)
{
	struct work *w = context;

	wait_for(&w->go);
	KeSetEvent(&w->done, 0, FALSE);
}

static VOID sets_go(PVOID object, PVOID context, PIO_WORKITEM item)
{
	struct work *w = context;

	(void)object, (void)item;
	KeSetEvent(&w->go, 0, FALSE);
}

static void work_items_run_at_passive_level(void **state)
{
	struct work w = {.irql = HIGH_LEVEL};
	WORK_QUEUE_ITEM item, waiting;
	DEVICE_OBJECT device = {.Type = 3};
	KIRQL irql;

	(void)state;
	KeInitializeEvent(&w.done, SynchronizationEvent, FALSE);
	KeInitializeEvent(&w.go, NotificationEvent, FALSE);
	ExInitializeWorkItem(&item, first_routine, &w);
	KeRaiseIrql(DISPATCH_LEVEL, &irql);
	ExQueueWorkItem(&item, DelayedWorkQueue);
	KeLowerIrql(irql);
	wait_for(&w.done);
	assert_int_equal(w.irql, PASSIVE_LEVEL);
	w.item = IoAllocateWorkItem(&device);
	IoQueueWorkItem(w.item, io_routine, DelayedWorkQueue, &w);
	wait_for(&w.done);
	assert_ptr_equal(w.object, &device);
	/* An item that waits for a later one does not hold it up. */
	ExInitializeWorkItem(&waiting, waits_for_go, &w);
	ExQueueWorkItem(&waiting, DelayedWorkQueue);
	w.item = IoAllocateWorkItem(&device);
	IoQueueWorkItemEx(w.item, sets_go, DelayedWorkQueue, &w);
	wait_for(&w.done);
	IoFreeWorkItem(w.item);
	assert_int_equal(w.calls, 1);
}

static void nt_15_a_work_item_is_queued_once(void **state)
{
	struct world *world = *state;
	struct work w = {.irql = 0};
	WORK_QUEUE_ITEM item;

	KeInitializeEvent(&w.done, SynchronizationEvent, FALSE);
	ExInitializeWorkItem(&item, NULL, &w);
	ExQueueWorkItem(&item, DelayedWorkQueue);
	expect_violation(world, "NT-15", "ExQueueWorkItem", "no routine");
	/* On sim no other thread runs before this one waits. */
	ExInitializeWorkItem(&item, first_routine, &w);
	ExQueueWorkItem(&item, DelayedWorkQueue);
	ExQueueWorkItem(&item, DelayedWorkQueue);
	expect_violation(world, "NT-15", "ExQueueWorkItem", "queued already");
	wait_for(&w.done);
	assert_int_equal(w.calls, 1);
}

static void nt_15_lookaside_lists_keep_blocks_and_count_those_in_use(void **state)
{
	struct world *world = *state;
	NPAGED_LOOKASIDE_LIST list;
	LOOKASIDE_LIST_EX ex;
	PVOID a, b;

	ExInitializeNPagedLookasideList(&list, NULL, NULL, 0, 48, TAG, 0);
	a = ExAllocateFromNPagedLookasideList(&list);
	memset(a, 1, 48);
	ExFreeToNPagedLookasideList(&list, a);
	b = ExAllocateFromNPagedLookasideList(&list);
	assert_ptr_equal(a, b);
	assert_int_equal(list.L.TotalAllocates, 2);
	assert_int_equal(list.L.AllocateMisses, 1);
	ExDeleteNPagedLookasideList(&list);
	expect_violation(world, "NT-15", "ExDeleteNPagedLookasideList", "1 blocks of 48 bytes");
	ExFreePoolWithTag(b, TAG);
	assert_null(ExAllocateFromNPagedLookasideList(&list));
	expect_violation(world, "NT-07", "ExAllocateFromNPagedLookasideList", "not initialized");
	assert_int_equal(ExInitializeLookasideListEx(&ex, NULL, NULL, PagedPool, 4, 8, TAG, 0),
			 STATUS_INVALID_PARAMETER);
	assert_int_equal(ExInitializeLookasideListEx(&ex, NULL, NULL, PagedPool, 0, 8, TAG, 0),
			 STATUS_SUCCESS);
	a = ExAllocateFromLookasideListEx(&ex);
	ExFreeToLookasideListEx(&ex, a);
	ExFreeToLookasideListEx(&ex, a);
	expect_violation(world, "NT-15", "ExFreeToLookasideListEx", "in use");
	ExDeleteLookasideListEx(&ex);
}

static VOID removes(PVOID context)
{
	struct work *w = context;

	assert_int_equal(IoAcquireRemoveLock(&w->lock, NULL), STATUS_SUCCESS);
	KeSetEvent(&w->go, 0, FALSE);
	IoReleaseRemoveLockAndWait(&w->lock, NULL);
	atomic_fetch_add(&w->calls, 1);
}

static void nt_15_remove_locks_wait_for_the_last_use(void **state)
{
	struct world *world = *state;
	struct work w = {.irql = 0};
	PVOID thread;

	KeInitializeEvent(&w.go, NotificationEvent, FALSE);
	IoInitializeRemoveLock(&w.lock, TAG, 0, 0);
	IoReleaseRemoveLock(&w.lock, NULL);
	expect_violation(world, "NT-15", "IoReleaseRemoveLock", "more often");
	assert_int_equal(IoAcquireRemoveLock(&w.lock, NULL), STATUS_SUCCESS);
	thread = start_thread(removes, &w);
	wait_for(&w.go);
	while (IoAcquireRemoveLock(&w.lock, NULL) == STATUS_SUCCESS) {
		IoReleaseRemoveLock(&w.lock, NULL);
		YieldProcessor();
	}
	assert_int_equal(w.calls, 0);
	IoReleaseRemoveLock(&w.lock, NULL);
	end_thread(thread);
	assert_int_equal(w.calls, 1);
}

static VOID runs_down(PVOID context)
{
	struct work *w = context;

	ExWaitForRundownProtectionRelease(&w->rundown);
	atomic_fetch_add(&w->calls, 1);
}

static void nt_15_rundown_waits_for_the_last_use(void **state)
{
	struct world *world = *state;
	struct work w = {.irql = 0};
	PVOID thread;

	ExInitializeRundownProtection(&w.rundown);
	ExReleaseRundownProtection(&w.rundown);
	expect_violation(world, "NT-15", "ExReleaseRundownProtection", "acquired 0 times");
	assert_true(ExAcquireRundownProtection(&w.rundown));
	thread = start_thread(runs_down, &w);
	while (ExAcquireRundownProtection(&w.rundown)) {
		ExReleaseRundownProtection(&w.rundown);
		YieldProcessor();
	}
	assert_int_equal(w.calls, 0);
	ExReInitializeRundownProtection(&w.rundown);
	expect_violation(world, "NT-15", "ExReInitializeRundownProtection", "not complete");
	ExReleaseRundownProtection(&w.rundown);
	end_thread(thread);
	assert_int_equal(w.calls, 1);
	ExReInitializeRundownProtection(&w.rundown);
	assert_true(ExAcquireRundownProtection(&w.rundown));
	ExReleaseRundownProtection(&w.rundown);
}

/* A thread that could not be created is tried again with the next item. */
static void work_items_survive_threads_that_are_not_created(void **state)
{
	struct work w = {.irql = HIGH_LEVEL};
	WORK_QUEUE_ITEM item[20];

	(void)state;
	KeInitializeEvent(&w.done, SynchronizationEvent, FALSE);
	for (int i = 0; i < 20; i++) {
		ExInitializeWorkItem(&item[i], first_routine, &w);
		vmm_calloc_fail_after(i < 19 ? 1 : 0);
		ExQueueWorkItem(&item[i], DelayedWorkQueue);
		assert_int_equal(atomic_load(&w.calls), 0);
	}
	while (atomic_load(&w.calls) < 20)
		wait_for(&w.done);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(work_items_run_at_passive_level),
		ON_SIM(work_items_survive_threads_that_are_not_created),
		ON_SIM(nt_15_a_work_item_is_queued_once),
		ON_SIM(nt_15_lookaside_lists_keep_blocks_and_count_those_in_use),
		BOTH(nt_15_remove_locks_wait_for_the_last_use),
		BOTH(nt_15_rundown_waits_for_the_last_use),
	};

	return cmocka_run_group_tests_name("nt_work", tests, NULL, NULL);
}
