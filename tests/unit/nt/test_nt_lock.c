/* SPDX-License-Identifier: MIT */
/* Mutexes, semaphores, fast mutexes, push locks, shared spin locks, resources, regions. */
#include "nt_world.h"

static LARGE_INTEGER no_time;

static NTSTATUS poll(PVOID object)
{
	return KeWaitForSingleObject(object, Executive, KernelMode, FALSE, &no_time);
}

/* One thread that runs a routine to its end. */
static void in_thread(PKSTART_ROUTINE routine, PVOID context)
{
	end_thread(start_thread(routine, context));
}

/* ---- mutexes and semaphores ---- */

struct shared {
	KMUTEX mutex;
	FAST_MUTEX fast;
	ERESOURCE resource;
	EX_PUSH_LOCK push;
	EX_SPIN_LOCK spin;
	KEVENT ready, go;
	BOOLEAN granted;
	NTSTATUS status;
	LONG count;
};

static VOID poll_mutex(PVOID context)
{
	struct shared *s = context;

	s->status = poll(&s->mutex);
	if (s->status == STATUS_SUCCESS)
		KeReleaseMutex(&s->mutex, FALSE);
}

static void nt_14_mutexes_are_recursive_and_owned(void **state)
{
	struct world *world = *state;
	struct shared s = {.count = 0};

	KeInitializeMutex(&s.mutex, 0);
	assert_int_equal(KeReadStateMutex(&s.mutex), 1);
	assert_int_equal(poll(&s.mutex), STATUS_SUCCESS);
	assert_int_equal(KeWaitForMutexObject(&s.mutex, Executive, KernelMode, FALSE, NULL),
			 STATUS_SUCCESS);
	assert_int_equal(KeReadStateMutex(&s.mutex), -1);
	in_thread(poll_mutex, &s);
	assert_int_equal(s.status, STATUS_TIMEOUT);
	assert_int_equal(KeReleaseMutex(&s.mutex, FALSE), -1);
	assert_int_equal(KeReleaseMutex(&s.mutex, FALSE), 0);
	in_thread(poll_mutex, &s);
	assert_int_equal(s.status, STATUS_SUCCESS);
	KeReleaseMutex(&s.mutex, FALSE);
	expect_violation(world, "NT-14", "KeReleaseMutex", "the owner is 0");
}

static VOID take_mutex(PVOID context)
{
	struct shared *s = context;

	KeSetEvent(&s->ready, 0, FALSE);
	KeWaitForSingleObject(&s->mutex, Executive, KernelMode, FALSE, NULL);
	s->count++;
	KeReleaseMutex(&s->mutex, FALSE);
}

static void a_released_mutex_goes_to_a_waiter(void **state)
{
	struct shared s = {.count = 0};
	PVOID thread;

	(void)state;
	KeInitializeMutex(&s.mutex, 0);
	KeInitializeEvent(&s.ready, NotificationEvent, FALSE);
	assert_int_equal(poll(&s.mutex), STATUS_SUCCESS);
	thread = start_thread(take_mutex, &s);
	KeWaitForSingleObject(&s.ready, Executive, KernelMode, FALSE, NULL);
	assert_int_equal(s.count, 0);
	KeReleaseMutex(&s.mutex, FALSE);
	end_thread(thread);
	assert_int_equal(s.count, 1);
}

static void nt_14_semaphores_count_to_their_limit(void **state)
{
	struct world *world = *state;
	KSEMAPHORE semaphore;

	KeInitializeSemaphore(&semaphore, 1, 3);
	assert_int_equal(poll(&semaphore), STATUS_SUCCESS);
	assert_int_equal(poll(&semaphore), STATUS_TIMEOUT);
	assert_int_equal(KeReleaseSemaphore(&semaphore, 0, 2, FALSE), 0);
	assert_int_equal(KeReleaseSemaphore(&semaphore, 0, 2, FALSE), 2);
	expect_violation(world, "NT-14", "KeReleaseSemaphore", "limit is 3");
	assert_int_equal(KeReadStateSemaphore(&semaphore), 2);
	assert_int_equal(poll(&semaphore), STATUS_SUCCESS);
	assert_int_equal(poll(&semaphore), STATUS_SUCCESS);
	assert_int_equal(poll(&semaphore), STATUS_TIMEOUT);
}

/* ---- fast mutexes, push locks, shared spin locks ---- */

static VOID count_in_fast_mutex(PVOID context)
{
	struct shared *s = context;

	for (int i = 0; i < 200; i++) {
		LONG before;

		ExAcquireFastMutex(&s->fast);
		before = s->count;
		if (i % 50 == 0)
			YieldProcessor();
		s->count = before + 1;
		ExReleaseFastMutex(&s->fast);
	}
}

static void fast_mutexes_exclude_each_other(void **state)
{
	struct shared s = {.count = 0};
	PVOID threads[3];

	(void)state;
	ExInitializeFastMutex(&s.fast);
	for (int i = 0; i < 3; i++)
		threads[i] = start_thread(count_in_fast_mutex, &s);
	for (int i = 0; i < 3; i++)
		end_thread(threads[i]);
	assert_int_equal(s.count, 600);
}

static VOID try_fast_mutex(PVOID context)
{
	struct shared *s = context;

	s->granted = ExTryToAcquireFastMutex(&s->fast);
	if (s->granted)
		ExReleaseFastMutex(&s->fast);
}

static void nt_14_fast_mutexes_have_one_owner_at_apc_level(void **state)
{
	struct world *world = *state;
	struct shared s = {.count = 0};

	ExInitializeFastMutex(&s.fast);
	ExReleaseFastMutex(&s.fast);
	assert_int_equal(atomic_exchange(&world->violations, 0), 2); /* the IRQL, and the owner */
	ExAcquireFastMutex(&s.fast);
	assert_int_equal(KeGetCurrentIrql(), APC_LEVEL);
	ExAcquireFastMutex(&s.fast);
	expect_violation(world, "NT-14", "ExAcquireFastMutex", "holds this lock already");
	ExReleaseFastMutex(&s.fast);
	assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
	in_thread(try_fast_mutex, &s);
	assert_true(s.granted);
	ExAcquireFastMutexUnsafe(&s.fast);
	expect_violation(world, "NT-14", "ExAcquireFastMutexUnsafe", "critical region");
	ExReleaseFastMutexUnsafe(&s.fast);
	KeAcquireGuardedMutex(&s.fast);
	assert_true(KeAreAllApcsDisabled());
	assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
	in_thread(try_fast_mutex, &s);
	assert_false(s.granted);
	KeAcquireGuardedMutex(&s.fast);
	expect_violation(world, "NT-14", "KeAcquireGuardedMutex", "holds this lock already");
	KeReleaseGuardedMutex(&s.fast);
	assert_false(KeAreApcsDisabled());
}

static VOID try_guarded_mutex(PVOID context)
{
	struct shared *s = context;

	s->granted = KeTryToAcquireGuardedMutex(&s->fast);
	if (s->granted)
		KeReleaseGuardedMutex(&s->fast);
}

static void nt_14_guarded_mutexes_have_one_owner_in_a_guarded_region(void **state)
{
	struct world *world = *state;
	struct shared s = {.count = 0};

	KeInitializeGuardedMutex(&s.fast);
	assert_true(KeTryToAcquireGuardedMutex(&s.fast));
	assert_true(KeAreAllApcsDisabled());
	assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
	in_thread(try_guarded_mutex, &s);
	assert_false(s.granted);
	KeReleaseGuardedMutex(&s.fast);
	assert_false(KeAreAllApcsDisabled());
	in_thread(try_guarded_mutex, &s);
	assert_true(s.granted);
	/* A release without the lock does not leave a region. */
	KeEnterGuardedRegion();
	KeReleaseGuardedMutex(&s.fast);
	expect_violation(world, "NT-14", "KeReleaseGuardedMutex", "the owner is 0");
	assert_true(KeAreAllApcsDisabled());
	KeAcquireGuardedMutexUnsafe(&s.fast);
	in_thread(try_guarded_mutex, &s);
	assert_false(s.granted);
	KeReleaseGuardedMutexUnsafe(&s.fast);
	KeLeaveGuardedRegion();
	KeAcquireGuardedMutexUnsafe(&s.fast);
	expect_violation(world, "NT-14", "KeAcquireGuardedMutexUnsafe", "critical region");
	KeReleaseGuardedMutexUnsafe(&s.fast);
	in_thread(try_guarded_mutex, &s);
	assert_true(s.granted);
}

static void nt_04_exclusive_spin_locks_raise_to_dispatch_level(void **state)
{
	EX_SPIN_LOCK lock = 0;
	KIRQL before = ExAcquireSpinLockExclusive(&lock);

	(void)state;
	assert_int_equal(before, PASSIVE_LEVEL);
	assert_int_equal(KeGetCurrentIrql(), DISPATCH_LEVEL);
	ExReleaseSpinLockExclusive(&lock, before);
	assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
	before = ExAcquireSpinLockShared(&lock);
	ExReleaseSpinLockShared(&lock, before);
	assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
}

static void each_thread_is_a_processor_of_one_group(void **state)
{
	PROCESSOR_NUMBER number = {.Group = 7};
	ULONG self = KeGetCurrentProcessorNumberEx(&number);

	(void)state;
	assert_int_equal(number.Group, 0);
	assert_int_equal(number.Number, self);
	assert_int_equal(KeGetCurrentProcessorNumberEx(NULL), self);
	assert_int_equal(KeQueryActiveGroupCount(), 1);
	assert_int_equal(KeQueryActiveProcessorCountEx(1), 0);
	assert_int_equal(KeQueryMaximumProcessorCountEx(0), KeQueryActiveProcessorCountEx(0));
	assert_true(self < KeQueryActiveProcessorCountEx(ALL_PROCESSOR_GROUPS));
	assert_true(KeQueryActiveProcessors() >> self & 1);
}

static void nt_04_shared_spin_locks_are_used_at_dispatch_level(void **state)
{
	struct world *world = *state;
	EX_SPIN_LOCK lock = 0;

	ExAcquireSpinLockExclusiveAtDpcLevel(&lock);
	expect_violation(world, "NT-04", "ExAcquireSpinLockExclusiveAtDpcLevel", "IRQL 0");
	ExReleaseSpinLockExclusiveFromDpcLevel(&lock);
	expect_violation(world, "NT-04", "ExReleaseSpinLockExclusiveFromDpcLevel", "IRQL 0");
	ExAcquireSpinLockSharedAtDpcLevel(&lock);
	expect_violation(world, "NT-04", "ExAcquireSpinLockSharedAtDpcLevel", "IRQL 0");
	ExReleaseSpinLockSharedFromDpcLevel(&lock);
	expect_violation(world, "NT-04", "ExReleaseSpinLockSharedFromDpcLevel", "IRQL 0");
	assert_int_equal(lock, 0);
}

static void nt_14_regions_are_left_as_often_as_entered(void **state)
{
	struct world *world = *state;

	KeEnterCriticalRegion();
	KeEnterCriticalRegion();
	KeLeaveCriticalRegion();
	assert_true(KeAreApcsDisabled());
	assert_false(KeAreAllApcsDisabled());
	KeLeaveCriticalRegion();
	assert_false(KeAreApcsDisabled());
	KeLeaveCriticalRegion();
	expect_violation(world, "NT-14", "KeLeaveCriticalRegion", "no such region");
}

static VOID share_locks(PVOID context)
{
	struct shared *s = context;

	KeEnterCriticalRegion();
	ExAcquirePushLockShared(&s->push);
	ExReleasePushLockShared(&s->push);
	KeLeaveCriticalRegion();
	ExReleaseSpinLockShared(&s->spin, ExAcquireSpinLockShared(&s->spin));
	s->count++;
}

static void nt_14_shared_locks_are_shared(void **state)
{
	struct world *world = *state;
	struct shared s = {.count = 0};
	KIRQL irql;

	ExInitializePushLock(&s.push);
	KeEnterCriticalRegion();
	ExAcquirePushLockShared(&s.push);
	irql = ExAcquireSpinLockShared(&s.spin);
	ExReleaseSpinLockSharedFromDpcLevel(&s.spin);
	KeLowerIrql(irql);
	in_thread(share_locks, &s);
	assert_int_equal(s.count, 1);
	ExReleasePushLockShared(&s.push);
	ExReleasePushLockShared(&s.push);
	expect_violation(world, "NT-14", "ExReleasePushLockShared", "does not hold");
	ExAcquirePushLockExclusive(&s.push);
	ExAcquirePushLockShared(&s.push);
	expect_violation(world, "NT-14", "ExAcquirePushLockShared", "already");
	ExReleasePushLockExclusive(&s.push);
	KeLeaveCriticalRegion();
	irql = ExAcquireSpinLockShared(&s.spin);
	assert_int_equal(KeGetCurrentIrql(), DISPATCH_LEVEL);
	assert_true(ExTryConvertSharedSpinLockExclusive(&s.spin));
	ExReleaseSpinLockExclusive(&s.spin, irql);
	assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
	assert_int_equal(s.spin, 0);
}

static void queued_spin_locks_raise_and_lower(void **state)
{
	KLOCK_QUEUE_HANDLE handle;
	KSPIN_LOCK lock;
	KIRQL irql;

	(void)state;
	KeInitializeSpinLock(&lock);
	KeAcquireInStackQueuedSpinLock(&lock, &handle);
	assert_int_equal(KeGetCurrentIrql(), DISPATCH_LEVEL);
	assert_false(KeTestSpinLock(&lock));
	KeReleaseInStackQueuedSpinLock(&handle);
	KeRaiseIrql(DISPATCH_LEVEL, &irql);
	KeAcquireInStackQueuedSpinLockAtDpcLevel(&lock, &handle);
	KeReleaseInStackQueuedSpinLockFromDpcLevel(&handle);
	KeLowerIrql(irql);
	assert_true(KeTestSpinLock(&lock));
}

/* ---- resources ---- */

static VOID try_exclusive(PVOID context)
{
	struct shared *s = context;

	KeEnterCriticalRegion();
	s->granted = ExAcquireResourceExclusiveLite(&s->resource, FALSE);
	if (s->granted)
		ExReleaseResourceLite(&s->resource);
	KeLeaveCriticalRegion();
}

static VOID take_exclusive(PVOID context)
{
	struct shared *s = context;

	ExEnterCriticalRegionAndAcquireResourceExclusive(&s->resource);
	s->count++;
	ExReleaseResourceAndLeaveCriticalRegion(&s->resource);
}

static void resources_are_shared_or_exclusive(void **state)
{
	struct shared s = {.count = 0};
	PVOID thread;

	(void)state;
	ExInitializeResourceLite(&s.resource);
	KeEnterCriticalRegion();
	assert_true(ExAcquireResourceExclusiveLite(&s.resource, TRUE));
	assert_true(ExAcquireResourceSharedLite(&s.resource, TRUE));
	assert_true(ExIsResourceAcquiredExclusiveLite(&s.resource));
	assert_int_equal(ExIsResourceAcquiredSharedLite(&s.resource), 2);
	ExReleaseResourceLite(&s.resource);
	in_thread(try_exclusive, &s);
	assert_false(s.granted);
	ExConvertExclusiveToSharedLite(&s.resource);
	assert_false(ExIsResourceAcquiredExclusiveLite(&s.resource));
	thread = start_thread(take_exclusive, &s);
	while (!ExGetExclusiveWaiterCount(&s.resource))
		YieldProcessor();
	/* A thread that shares the resource may do so again, in spite of the waiter. */
	assert_true(ExAcquireResourceSharedLite(&s.resource, FALSE));
	assert_false(ExAcquireSharedWaitForExclusive(&s.resource, FALSE));
	assert_int_equal(s.count, 0);
	ExReleaseResourceLite(&s.resource);
	ExReleaseResourceForThreadLite(&s.resource, ExGetCurrentResourceThread());
	end_thread(thread);
	assert_int_equal(s.count, 1);
	KeLeaveCriticalRegion();
	assert_int_equal(ExDeleteResourceLite(&s.resource), STATUS_SUCCESS);
}

static void nt_14_wrong_uses_of_resources_are_found(void **state)
{
	struct world *world = *state;
	struct shared s = {.count = 0};

	ExInitializeResourceLite(&s.resource);
	ExReleaseResourceLite(&s.resource);
	expect_violation(world, "NT-14", "ExReleaseResourceLite", "does not hold");
	assert_true(ExAcquireResourceSharedLite(&s.resource, TRUE));
	expect_violation(world, "NT-14", "ExAcquireResourceSharedLite", "critical region");
	KeEnterCriticalRegion();
	assert_false(ExAcquireResourceExclusiveLite(&s.resource, TRUE));
	expect_violation(world, "NT-14", "ExAcquireResourceExclusiveLite", "wait for itself");
	KeLeaveCriticalRegion();
	assert_int_equal(ExDeleteResourceLite(&s.resource), STATUS_SUCCESS);
	expect_violation(world, "NT-14", "ExDeleteResourceLite", "acquired 1 times");
	assert_int_equal(ExDeleteResourceLite(&s.resource), STATUS_INVALID_PARAMETER);
	expect_violation(world, "NT-07", "ExDeleteResourceLite", "not initialized");
	assert_null(s.resource.OwnerTable);
	assert_false(ExIsResourceAcquiredExclusiveLite(&s.resource));
	expect_violation(world, "NT-07", "ExIsResourceAcquiredExclusiveLite", "not initialized");
	assert_int_equal(ExIsResourceAcquiredSharedLite(&s.resource), 0);
	expect_violation(world, "NT-07", "ExIsResourceAcquiredSharedLite", "not initialized");
}

struct waiter {
	FAST_MUTEX fast;
	EX_PUSH_LOCK push;
	ERESOURCE resource;
	EX_RUNDOWN_REF rundown;
	struct vmm_os *os;
	uint64_t *slots;
	PVOID thread;
	int what;
};

static void waits(PVOID context)
{
	struct waiter *w = context;

	w->slots = VMM_OS_OWN(w->os)->slot;
	if (w->what == 0) {
		ExAcquireFastMutex(&w->fast);
		ExReleaseFastMutex(&w->fast);
	} else if (w->what == 1) {
		KeEnterCriticalRegion();
		ExAcquirePushLockSharedEx(&w->push, 0);
		ExReleasePushLockSharedEx(&w->push, 0);
		KeLeaveCriticalRegion();
	} else if (w->what == 2) {
		ExEnterCriticalRegionAndAcquireResourceShared(&w->resource);
		ExReleaseResourceAndLeaveCriticalRegion(&w->resource);
	} else {
		ExWaitForRundownProtectionRelease(&w->rundown);
	}
	assert_int_equal(w->slots[VMM_NT_SLOT_WAIT], 0);
}

static void expect_wait(struct world *world, struct waiter *w, int what, const char *service)
{
	w->what = what;
	w->thread = start_thread(waits, w);
	vmm_os_settle(world->os);
	assert_string_equal((const char *)(uintptr_t)w->slots[VMM_NT_SLOT_WAIT], service);
}

/* Reports of hangs name the service in which a thread waits. */
static void waiting_threads_name_their_service(void **state)
{
	struct world *world = *state;
	struct waiter w = {.os = world->os};

	ExInitializeFastMutex(&w.fast);
	ExInitializeRundownProtection(&w.rundown);
	assert_int_equal(ExInitializeResourceLite(&w.resource), STATUS_SUCCESS);
	ExInitializePushLock(&w.push);
	KeEnterCriticalRegion();
	ExAcquireFastMutexUnsafe(&w.fast);
	expect_wait(world, &w, 0, "ExAcquireFastMutex");
	ExReleaseFastMutexUnsafe(&w.fast);
	end_thread(w.thread);
	ExAcquirePushLockExclusiveEx(&w.push, 0);
	expect_wait(world, &w, 1, "ExAcquirePushLockShared");
	ExReleasePushLockExclusiveEx(&w.push, 0);
	KeLeaveCriticalRegion();
	end_thread(w.thread);
	ExEnterCriticalRegionAndAcquireResourceExclusive(&w.resource);
	expect_wait(world, &w, 2, "ExAcquireResourceSharedLite");
	ExReleaseResourceAndLeaveCriticalRegion(&w.resource);
	end_thread(w.thread);
	assert_true(ExAcquireRundownProtection(&w.rundown));
	expect_wait(world, &w, 3, "ExWaitForRundownProtectionRelease");
	ExReleaseRundownProtection(&w.rundown);
	end_thread(w.thread);
	assert_int_equal(ExDeleteResourceLite(&w.resource), STATUS_SUCCESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(nt_14_mutexes_are_recursive_and_owned),
		BOTH(a_released_mutex_goes_to_a_waiter),
		ON_SIM(nt_14_semaphores_count_to_their_limit),
		BOTH(fast_mutexes_exclude_each_other),
		BOTH(nt_14_fast_mutexes_have_one_owner_at_apc_level),
		BOTH(nt_14_guarded_mutexes_have_one_owner_in_a_guarded_region),
		BOTH(nt_04_exclusive_spin_locks_raise_to_dispatch_level),
		BOTH(each_thread_is_a_processor_of_one_group),
		ON_SIM(waiting_threads_name_their_service),
		ON_SIM(nt_04_shared_spin_locks_are_used_at_dispatch_level),
		ON_SIM(nt_14_regions_are_left_as_often_as_entered),
		BOTH(nt_14_shared_locks_are_shared),
		ON_SIM(queued_spin_locks_raise_and_lower),
		BOTH(resources_are_shared_or_exclusive),
		ON_SIM(nt_14_wrong_uses_of_resources_are_found),
	};

	return cmocka_run_group_tests_name("nt_lock", tests, NULL, NULL);
}
