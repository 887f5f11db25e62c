/* SPDX-License-Identifier: MIT */
/*
 * Kernel timers: one list per world, sorted by due time, and one thread that waits for the first.
 * An expired timer is signaled and its DPC queued; the DPC runs on the timer thread. Guarded by the
 * dispatcher lock.
 */
#include "nt/nt_internal.h"

#define NS_PER_MS 1000000u

static void insert_locked(struct vmm_nt *nt, KTIMER *timer) VMM_REQUIRES(nt_dispatcher_class)
{
	LIST_ENTRY *entry = nt->timers.Blink;

	vmm_assert_held(&nt->dispatcher);
	/*
	 * Searched from the end: new timers are mostly the latest ones, and equal ones keep their
	 * order.
	 */
	while (entry != &nt->timers &&
	       CONTAINING_RECORD(entry, KTIMER, TimerListEntry)->DueTime > timer->DueTime)
		entry = entry->Blink;
	InsertHeadList(entry, &timer->TimerListEntry);
	timer->Queued = 1;
}

static void remove_locked(const struct vmm_nt *nt, KTIMER *timer) VMM_REQUIRES(nt_dispatcher_class)
{
	vmm_assert_held(&nt->dispatcher);
	RemoveEntryList(&timer->TimerListEntry);
	timer->Queued = 0;
}

/* Takes the first timer if it is due. Returns its DPC and the word to wake. */
static bool expire_first_locked(struct vmm_nt *nt, KDPC **dpc, _Atomic uint32_t **waiter)
	VMM_REQUIRES(nt_dispatcher_class)
{
	KTIMER *timer;

	vmm_assert_held(&nt->dispatcher);
	if (IsListEmpty(&nt->timers))
		return false;
	timer = CONTAINING_RECORD(nt->timers.Flink, KTIMER, TimerListEntry);
	if (timer->DueTime > vmm_os_now_ns(nt->os))
		return false;
	remove_locked(nt, timer);
	if (timer->Period) {
		timer->DueTime += (uint64_t)timer->Period * NS_PER_MS;
		insert_locked(nt, timer);
	}
	*dpc = timer->Dpc;
	*waiter = nt_signal_locked(nt, &timer->Header);
	return true;
}

static uint64_t first_due_locked(const struct vmm_nt *nt) VMM_REQUIRES(nt_dispatcher_class)
{
	vmm_assert_held(&nt->dispatcher);
	if (IsListEmpty(&nt->timers))
		return VMM_OS_FOREVER;
	return CONTAINING_RECORD(nt->timers.Flink, KTIMER, TimerListEntry)->DueTime;
}

static void run(void *arg)
{
	struct vmm_nt *nt = arg;

	for (;;) {
		_Atomic uint32_t *waiter = NULL;
		KDPC *dpc = NULL;
		bool expired, stop;
		uint32_t changed;
		uint64_t due;

		nt_dispatcher_lock(nt);
		expired = expire_first_locked(nt, &dpc, &waiter);
		due = first_due_locked(nt);
		changed = atomic_load_explicit(&nt->timers_changed, memory_order_relaxed);
		stop = nt->timers_stop;
		nt_dispatcher_unlock_and_wake(nt, waiter);
		if (stop)
			return;
		if (dpc)
			KeInsertQueueDpc(dpc, NULL, NULL);
		if (!expired)
			vmm_os_wait(nt->os, &nt->timers_changed, changed, due, NULL, 0);
	}
}

static void notify_thread_locked(struct vmm_nt *nt) VMM_REQUIRES(nt_dispatcher_class)
{
	vmm_assert_held(&nt->dispatcher);
	atomic_fetch_add_explicit(&nt->timers_changed, 1, memory_order_release);
	vmm_os_wake(nt->os, &nt->timers_changed, 1);
}

vmm_status nt_timer_init(struct vmm_nt *nt)
{
	vmm_os_mutex_init(&nt->dispatcher, nt->os, VMM_NT_RANK, "kernel dispatcher");
	InitializeListHead(&nt->timers);
	vmm_list_init(&nt->resources);
	return vmm_os_thread_create(nt->os, "kernel timers", run, nt, &nt->timer_thread);
}

void nt_timer_finish(struct vmm_nt *nt)
{
	nt_dispatcher_lock(nt);
	nt->timers_stop = true;
	notify_thread_locked(nt);
	nt_dispatcher_unlock(nt);
	vmm_os_thread_join(nt->timer_thread);
	while (!IsListEmpty(&nt->timers)) {
		KTIMER *timer = CONTAINING_RECORD(nt->timers.Flink, KTIMER, TimerListEntry);

		RemoveEntryList(&timer->TimerListEntry);
		timer->Queued = 0;
		nt_violation(nt, "NT-06", "KeSetTimer", "a timer due at %llu ns was never canceled",
			     (unsigned long long)timer->DueTime);
	}
	nt_resource_finish(nt);
	vmm_os_mutex_finish(&nt->dispatcher);
}

/* ---- services ---- */

VOID KeInitializeTimerEx(PKTIMER Timer, TIMER_TYPE Type)
{
	nt_limit(vmm_nt_current(), "KeInitializeTimer", DISPATCH_LEVEL);
	*Timer = (KTIMER){0};
	nt_header_init(&Timer->Header,
		       Type == SynchronizationTimer ? OBJECT_SYNCHRONIZATION_TIMER
						    : OBJECT_NOTIFICATION_TIMER,
		       false);
}

VOID KeInitializeTimer(PKTIMER Timer)
{
	KeInitializeTimerEx(Timer, NotificationTimer);
}

static bool is_timer(struct vmm_nt *nt, const char *service, const KTIMER *timer)
{
	nt_limit(nt, service, DISPATCH_LEVEL);
	return nt_header_valid(nt, service, &timer->Header, OBJECT_NOTIFICATION_TIMER,
			       OBJECT_SYNCHRONIZATION_TIMER);
}

BOOLEAN KeSetTimerEx(PKTIMER Timer, LARGE_INTEGER DueTime, LONG Period, PKDPC Dpc)
{
	struct vmm_nt *nt = vmm_nt_current();
	bool running;

	if (!is_timer(nt, "KeSetTimer", Timer))
		return FALSE;
	if (Period < 0) {
		nt_violation(
			nt, "NT-07", "KeSetTimer",
			"the period is %d ms, but must not be negative; the call has no effect",
			Period);
		return FALSE;
	}
	nt_dispatcher_lock(nt);
	running = Timer->Queued;
	if (running)
		remove_locked(nt, Timer);
	Timer->Header.SignalState = 0;
	Timer->DueTime = nt_deadline_ns(nt, &DueTime);
	Timer->Period = (ULONG)Period;
	Timer->Dpc = Dpc;
	insert_locked(nt, Timer);
	if (nt->timers.Flink == &Timer->TimerListEntry)
		notify_thread_locked(nt);
	nt_dispatcher_unlock(nt);
	return (BOOLEAN)running;
}

BOOLEAN KeSetTimer(PKTIMER Timer, LARGE_INTEGER DueTime, PKDPC Dpc)
{
	return KeSetTimerEx(Timer, DueTime, 0, Dpc);
}

BOOLEAN KeCancelTimer(PKTIMER Timer)
{
	struct vmm_nt *nt = vmm_nt_current();
	bool running;

	if (!is_timer(nt, "KeCancelTimer", Timer))
		return FALSE;
	nt_dispatcher_lock(nt);
	running = Timer->Queued;
	if (running)
		remove_locked(nt, Timer);
	nt_dispatcher_unlock(nt);
	return (BOOLEAN)running;
}

BOOLEAN KeReadStateTimer(PKTIMER Timer)
{
	struct vmm_nt *nt = vmm_nt_current();
	LONG state;

	if (!is_timer(nt, "KeReadStateTimer", Timer))
		return FALSE;
	nt_dispatcher_lock(nt);
	state = Timer->Header.SignalState;
	nt_dispatcher_unlock(nt);
	nt_polled(nt);
	return (BOOLEAN)(state != 0);
}
