/* SPDX-License-Identifier: MIT */
/* Events. The state is in the object; waiting is in nt_wait.c. Guarded by the dispatcher lock. */
#include "nt/nt_internal.h"

VOID KeInitializeEvent(PRKEVENT Event, EVENT_TYPE Type, BOOLEAN State)
{
	nt_header_init(&Event->Header,
		       Type == SynchronizationEvent ? OBJECT_SYNCHRONIZATION_EVENT
						    : OBJECT_NOTIFICATION_EVENT,
		       State);
}

static bool is_event(struct vmm_nt *nt, const char *service, const KEVENT *event)
{
	nt_limit(nt, service, DISPATCH_LEVEL);
	return nt_header_valid(nt, service, &event->Header, OBJECT_NOTIFICATION_EVENT,
			       OBJECT_SYNCHRONIZATION_EVENT);
}

LONG KeSetEvent(PRKEVENT Event, KPRIORITY Increment, BOOLEAN Wait)
{
	struct vmm_nt *nt = vmm_nt_current();
	_Atomic uint32_t *waiter = NULL;
	LONG before;

	(void)Increment;
	if (!is_event(nt, "KeSetEvent", Event))
		return 0;
	/*
	 * Wait = TRUE only saves a thread switch before the wait that follows. It is not allowed at
	 * DISPATCH.
	 */
	if (Wait)
		nt_limit(nt, "KeSetEvent", APC_LEVEL);
	nt_dispatcher_lock(nt);
	before = Event->Header.SignalState;
	if (!before)
		waiter = nt_signal_locked(nt, &Event->Header);
	nt_dispatcher_unlock_and_wake(nt, waiter);
	return before;
}

LONG KeResetEvent(PRKEVENT Event)
{
	struct vmm_nt *nt = vmm_nt_current();
	LONG before;

	if (!is_event(nt, "KeResetEvent", Event))
		return 0;
	nt_dispatcher_lock(nt);
	before = Event->Header.SignalState;
	Event->Header.SignalState = 0;
	nt_dispatcher_unlock(nt);
	return before;
}

VOID KeClearEvent(PRKEVENT Event)
{
	struct vmm_nt *nt = vmm_nt_current();

	if (!is_event(nt, "KeClearEvent", Event))
		return;
	nt_dispatcher_lock(nt);
	Event->Header.SignalState = 0;
	nt_dispatcher_unlock(nt);
}

LONG KeReadStateEvent(PRKEVENT Event)
{
	struct vmm_nt *nt = vmm_nt_current();
	LONG state;

	if (!is_event(nt, "KeReadStateEvent", Event))
		return 0;
	nt_dispatcher_lock(nt);
	state = Event->Header.SignalState;
	nt_dispatcher_unlock(nt);
	nt_polled(nt);
	return state;
}
