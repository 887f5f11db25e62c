/* SPDX-License-Identifier: MIT */
/*
 * IRQL, spin locks, DPCs, waitable objects, timers, threads and time. Part of ntddk.h.
 *
 * Intervals and times are in units of 100 ns: negative = relative to now, positive = absolute since
 * 1601. Alertable waits are never alerted, because no service sends alerts.
 */
#ifndef WDDM_NTDDK_SYNC_H
#define WDDM_NTDDK_SYNC_H

#include "ntddk_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- IRQL [any] ---- */

KIRQL KeGetCurrentIrql(VOID);
KIRQL KfRaiseIrql(KIRQL NewIrql);
VOID KeLowerIrql(KIRQL NewIrql);

static inline VOID KeRaiseIrql(KIRQL NewIrql, PKIRQL OldIrql)
{
	*OldIrql = KfRaiseIrql(NewIrql);
}

/* ---- spin locks: at DISPATCH_LEVEL from acquire to release ---- */

typedef ULONG_PTR KSPIN_LOCK, *PKSPIN_LOCK;

static inline VOID KeInitializeSpinLock(PKSPIN_LOCK SpinLock)
{
	*SpinLock = 0;
}

KIRQL KeAcquireSpinLockRaiseToDpc(PKSPIN_LOCK SpinLock);     /* [D] */
VOID KeReleaseSpinLock(PKSPIN_LOCK SpinLock, KIRQL NewIrql); /* at DISPATCH_LEVEL */
VOID KeAcquireSpinLockAtDpcLevel(PKSPIN_LOCK SpinLock);      /* at DISPATCH_LEVEL */
VOID KeReleaseSpinLockFromDpcLevel(PKSPIN_LOCK SpinLock);    /* at DISPATCH_LEVEL */
BOOLEAN KeTryToAcquireSpinLockAtDpcLevel(PKSPIN_LOCK SpinLock);
BOOLEAN KeTestSpinLock(PKSPIN_LOCK SpinLock); /* TRUE: it is free at this moment */
/* For a loop that waits for another processor: lets other threads run. */
VOID YieldProcessor(VOID);

static inline VOID KeAcquireSpinLock(PKSPIN_LOCK SpinLock, PKIRQL OldIrql)
{
	*OldIrql = KeAcquireSpinLockRaiseToDpc(SpinLock);
}

/* ---- DPCs ---- */

struct _KDPC;
typedef VOID KDEFERRED_ROUTINE(struct _KDPC *Dpc, PVOID DeferredContext, PVOID SystemArgument1,
			       PVOID SystemArgument2);
typedef KDEFERRED_ROUTINE *PKDEFERRED_ROUTINE;

typedef struct _KDPC {
	ULONG Type;
	ULONG Queued;
	LIST_ENTRY DpcListEntry;
	PKDEFERRED_ROUTINE DeferredRoutine;
	PVOID DeferredContext;
	PVOID SystemArgument1;
	PVOID SystemArgument2;
	PVOID DpcData;
} KDPC, *PKDPC, *PRKDPC;

VOID KeInitializeDpc(PRKDPC Dpc, PKDEFERRED_ROUTINE DeferredRoutine,
		     PVOID DeferredContext); /* [any] */
/*
 * FALSE: it is queued already [any]. The routine runs at DISPATCH_LEVEL on the first thread whose
 * IRQL drops below that level, or on the calling thread if its IRQL is lower. It is never entered
 * a second time while it runs.
 */
BOOLEAN KeInsertQueueDpc(PRKDPC Dpc, PVOID SystemArgument1, PVOID SystemArgument2);
BOOLEAN KeRemoveQueueDpc(PRKDPC Dpc); /* [any] */
VOID KeFlushQueuedDpcs(VOID);         /* [P] */

/* ---- waitable objects ---- */

typedef struct _DISPATCHER_HEADER {
	UCHAR Type;
	UCHAR Reserved[3];
	LONG SignalState;
	LIST_ENTRY WaitListHead;
} DISPATCHER_HEADER, *PDISPATCHER_HEADER;

typedef struct _KWAIT_BLOCK {
	LIST_ENTRY WaitListEntry;
	PVOID Waiter;
	PDISPATCHER_HEADER Object;
	ULONG WaitKey;
	ULONG Reserved;
} KWAIT_BLOCK, *PKWAIT_BLOCK;

typedef enum _WAIT_TYPE { WaitAll, WaitAny } WAIT_TYPE;
typedef enum _KWAIT_REASON {
	Executive,
	FreePage,
	PageIn,
	PoolAllocation,
	DelayExecution,
	Suspended,
	UserRequest,
	MaximumWaitReason = 41,
} KWAIT_REASON;

#define THREAD_WAIT_OBJECTS  3
#define MAXIMUM_WAIT_OBJECTS 64

/* Waits [A], or [D] with a zero timeout. */
NTSTATUS KeWaitForSingleObject(PVOID Object, KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode,
			       BOOLEAN Alertable, PLARGE_INTEGER Timeout);
/* More than THREAD_WAIT_OBJECTS objects need a WaitBlockArray. */
NTSTATUS KeWaitForMultipleObjects(ULONG Count, PVOID Object[], WAIT_TYPE WaitType,
				  KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode,
				  BOOLEAN Alertable, PLARGE_INTEGER Timeout,
				  PKWAIT_BLOCK WaitBlockArray);
NTSTATUS KeDelayExecutionThread(KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
				PLARGE_INTEGER Interval); /* [A] */
VOID KeStallExecutionProcessor(ULONG MicroSeconds);       /* [any] */

typedef enum _EVENT_TYPE { NotificationEvent, SynchronizationEvent } EVENT_TYPE;

typedef struct _KEVENT {
	DISPATCHER_HEADER Header;
} KEVENT, *PKEVENT, *PRKEVENT;

VOID KeInitializeEvent(PRKEVENT Event, EVENT_TYPE Type, BOOLEAN State); /* [any] */
LONG KeSetEvent(PRKEVENT Event, KPRIORITY Increment, BOOLEAN Wait);     /* [D]; the state before */
VOID KeClearEvent(PRKEVENT Event);                                      /* [D] */
LONG KeResetEvent(PRKEVENT Event);                                      /* [D]; the state before */
LONG KeReadStateEvent(PRKEVENT Event);                                  /* [D] */

#ifndef IO_NO_INCREMENT
#define IO_NO_INCREMENT 0
#endif
#ifndef EVENT_INCREMENT
#define EVENT_INCREMENT 1
#endif

/* ---- timers ---- */

typedef enum _TIMER_TYPE { NotificationTimer, SynchronizationTimer } TIMER_TYPE;

typedef struct _KTIMER {
	DISPATCHER_HEADER Header;
	ULONGLONG DueTime;
	LIST_ENTRY TimerListEntry;
	PKDPC Dpc;
	ULONG Period;
	ULONG Queued;
} KTIMER, *PKTIMER;

VOID KeInitializeTimer(PKTIMER Timer);                    /* [D]; a notification timer */
VOID KeInitializeTimerEx(PKTIMER Timer, TIMER_TYPE Type); /* [D] */
/* TRUE: the timer was already set [D]. Period in ms, 0 = once. */
BOOLEAN KeSetTimer(PKTIMER Timer, LARGE_INTEGER DueTime, PKDPC Dpc);
BOOLEAN KeSetTimerEx(PKTIMER Timer, LARGE_INTEGER DueTime, LONG Period, PKDPC Dpc);
BOOLEAN KeCancelTimer(PKTIMER Timer);    /* [D]; TRUE: it was set */
BOOLEAN KeReadStateTimer(PKTIMER Timer); /* [D] */

/* ---- threads and handles ---- */

typedef VOID KSTART_ROUTINE(PVOID StartContext);
typedef KSTART_ROUTINE *PKSTART_ROUTINE;

NTSTATUS PsCreateSystemThread(PHANDLE ThreadHandle, ULONG DesiredAccess,
			      POBJECT_ATTRIBUTES ObjectAttributes, HANDLE ProcessHandle,
			      PCLIENT_ID ClientId, PKSTART_ROUTINE StartRoutine,
			      PVOID StartContext); /* [P] */
/* Returns only if the caller is not a thread of PsCreateSystemThread [P]. */
NTSTATUS PsTerminateSystemThread(NTSTATUS ExitStatus);

NTSTATUS ZwClose(HANDLE Handle); /* [P] */

/* ---- time [any] ---- */

LARGE_INTEGER KeQueryPerformanceCounter(PLARGE_INTEGER PerformanceFrequency);
VOID KeQuerySystemTimePrecise(PLARGE_INTEGER CurrentTime);
ULONGLONG KeQueryInterruptTime(VOID);

static inline VOID KeQuerySystemTime(PLARGE_INTEGER CurrentTime)
{
	KeQuerySystemTimePrecise(CurrentTime);
}

#ifdef __cplusplus
}
#endif

#endif
