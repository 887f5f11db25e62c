/* SPDX-License-Identifier: MIT */
/*
 * Locks that drivers use besides spin locks: mutexes, semaphores, fast and guarded mutexes, push
 * locks, shared spin locks, queued spin locks, resources, critical regions. Part of ntddk.h.
 *
 * Members are opaque. A lock that is zero is free, except for KMUTEX, KSEMAPHORE and ERESOURCE.
 */
#ifndef WDDM_NTDDK_LOCK_H
#define WDDM_NTDDK_LOCK_H

#include "ntddk_sync.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- critical and guarded regions [A]: APCs are disabled, which resources require ---- */

VOID KeEnterCriticalRegion(VOID);
VOID KeLeaveCriticalRegion(VOID);
VOID KeEnterGuardedRegion(VOID);
VOID KeLeaveGuardedRegion(VOID);
BOOLEAN KeAreApcsDisabled(VOID);    /* [D] in either region, or at APC_LEVEL and above */
BOOLEAN KeAreAllApcsDisabled(VOID); /* [D] in a guarded region, or at APC_LEVEL and above */

/* ---- mutexes and semaphores, which are waited for ---- */

typedef struct _KMUTANT {
	DISPATCHER_HEADER Header;
	ULONG Owner;
	ULONG Reserved;
} KMUTANT, *PKMUTANT, *PRKMUTANT, KMUTEX, *PKMUTEX, *PRKMUTEX;

VOID KeInitializeMutex(PRKMUTEX Mutex, ULONG Level); /* [any]; free */
LONG KeReleaseMutex(PRKMUTEX Mutex, BOOLEAN Wait);   /* [D]; the state before: 0 is the last */
LONG KeReadStateMutex(PRKMUTEX Mutex);               /* [D]; 1: free */
#define KeWaitForMutexObject KeWaitForSingleObject

typedef struct _KSEMAPHORE {
	DISPATCHER_HEADER Header;
	LONG Limit;
	ULONG Reserved;
} KSEMAPHORE, *PKSEMAPHORE, *PRKSEMAPHORE;

VOID KeInitializeSemaphore(PRKSEMAPHORE Semaphore, LONG Count, LONG Limit);
/* [D]; the count before. Above the limit nothing changes. */
LONG KeReleaseSemaphore(PRKSEMAPHORE Semaphore, KPRIORITY Increment, LONG Adjustment, BOOLEAN Wait);
LONG KeReadStateSemaphore(PRKSEMAPHORE Semaphore); /* [any] */

/* ---- fast mutexes [A]: the owner is at APC_LEVEL; not recursive ---- */

typedef struct _FAST_MUTEX {
	ULONG Word;
	ULONG OldIrql;
	KEVENT Event;
	ULONG_PTR Reserved[3];
} FAST_MUTEX, *PFAST_MUTEX, KGUARDED_MUTEX, *PKGUARDED_MUTEX;

VOID ExInitializeFastMutex(PFAST_MUTEX FastMutex); /* [D] */
VOID ExAcquireFastMutex(PFAST_MUTEX FastMutex);
BOOLEAN ExTryToAcquireFastMutex(PFAST_MUTEX FastMutex);
VOID ExReleaseFastMutex(PFAST_MUTEX FastMutex);
/* The IRQL does not change: the caller is at APC_LEVEL or in a critical region. */
VOID ExAcquireFastMutexUnsafe(PFAST_MUTEX FastMutex);
VOID ExReleaseFastMutexUnsafe(PFAST_MUTEX FastMutex);

VOID KeInitializeGuardedMutex(PKGUARDED_MUTEX Mutex);
VOID KeAcquireGuardedMutex(PKGUARDED_MUTEX Mutex);
BOOLEAN KeTryToAcquireGuardedMutex(PKGUARDED_MUTEX Mutex);
VOID KeReleaseGuardedMutex(PKGUARDED_MUTEX Mutex);
VOID KeAcquireGuardedMutexUnsafe(PKGUARDED_MUTEX Mutex);
VOID KeReleaseGuardedMutexUnsafe(PKGUARDED_MUTEX Mutex);

/* ---- push locks [A], in a critical region: shared or exclusive; not recursive ---- */

typedef ULONG_PTR EX_PUSH_LOCK, *PEX_PUSH_LOCK;

VOID ExInitializePushLock(PEX_PUSH_LOCK PushLock);
VOID ExAcquirePushLockExclusiveEx(PEX_PUSH_LOCK PushLock, ULONG Flags);
VOID ExAcquirePushLockSharedEx(PEX_PUSH_LOCK PushLock, ULONG Flags);
VOID ExReleasePushLockExclusiveEx(PEX_PUSH_LOCK PushLock, ULONG Flags);
VOID ExReleasePushLockSharedEx(PEX_PUSH_LOCK PushLock, ULONG Flags);

#define EX_DEFAULT_PUSH_LOCK_FLAGS 0
#ifndef ExAcquirePushLockExclusive
#define ExAcquirePushLockExclusive(lock) ExAcquirePushLockExclusiveEx((lock), 0)
#define ExAcquirePushLockShared(lock)    ExAcquirePushLockSharedEx((lock), 0)
#define ExReleasePushLockExclusive(lock) ExReleasePushLockExclusiveEx((lock), 0)
#define ExReleasePushLockShared(lock)    ExReleasePushLockSharedEx((lock), 0)
#endif

/* ---- shared spin locks: at DISPATCH_LEVEL from acquire to release ---- */

typedef LONG volatile EX_SPIN_LOCK, *PEX_SPIN_LOCK;

KIRQL ExAcquireSpinLockExclusive(PEX_SPIN_LOCK SpinLock); /* [D] */
VOID ExReleaseSpinLockExclusive(PEX_SPIN_LOCK SpinLock, KIRQL OldIrql);
VOID ExAcquireSpinLockExclusiveAtDpcLevel(PEX_SPIN_LOCK SpinLock);
VOID ExReleaseSpinLockExclusiveFromDpcLevel(PEX_SPIN_LOCK SpinLock);
KIRQL ExAcquireSpinLockShared(PEX_SPIN_LOCK SpinLock); /* [D] */
VOID ExReleaseSpinLockShared(PEX_SPIN_LOCK SpinLock, KIRQL OldIrql);
VOID ExAcquireSpinLockSharedAtDpcLevel(PEX_SPIN_LOCK SpinLock);
VOID ExReleaseSpinLockSharedFromDpcLevel(PEX_SPIN_LOCK SpinLock);
/* TRUE: the caller was the only one that shared the lock, and has it exclusively now. */
LONG ExTryConvertSharedSpinLockExclusive(PEX_SPIN_LOCK SpinLock);

/* ---- queued spin locks: the same lock as KeAcquireSpinLock ---- */

typedef struct _KSPIN_LOCK_QUEUE {
	struct _KSPIN_LOCK_QUEUE *volatile Next;
	PKSPIN_LOCK volatile Lock;
} KSPIN_LOCK_QUEUE, *PKSPIN_LOCK_QUEUE;

typedef struct _KLOCK_QUEUE_HANDLE {
	KSPIN_LOCK_QUEUE LockQueue;
	KIRQL OldIrql;
} KLOCK_QUEUE_HANDLE, *PKLOCK_QUEUE_HANDLE;

static inline VOID KeAcquireInStackQueuedSpinLock(PKSPIN_LOCK SpinLock,
						  PKLOCK_QUEUE_HANDLE LockHandle)
{
	LockHandle->LockQueue.Next = NULL;
	LockHandle->LockQueue.Lock = SpinLock;
	LockHandle->OldIrql = KeAcquireSpinLockRaiseToDpc(SpinLock);
}

static inline VOID KeReleaseInStackQueuedSpinLock(PKLOCK_QUEUE_HANDLE LockHandle)
{
	KeReleaseSpinLock(LockHandle->LockQueue.Lock, LockHandle->OldIrql);
}

static inline VOID KeAcquireInStackQueuedSpinLockAtDpcLevel(PKSPIN_LOCK SpinLock,
							    PKLOCK_QUEUE_HANDLE LockHandle)
{
	LockHandle->LockQueue.Next = NULL;
	LockHandle->LockQueue.Lock = SpinLock;
	LockHandle->OldIrql = DISPATCH_LEVEL;
	KeAcquireSpinLockAtDpcLevel(SpinLock);
}

static inline VOID KeReleaseInStackQueuedSpinLockFromDpcLevel(PKLOCK_QUEUE_HANDLE LockHandle)
{
	KeReleaseSpinLockFromDpcLevel(LockHandle->LockQueue.Lock);
}

/* ---- resources: shared or exclusive, recursive; the caller is in a critical region ---- */

typedef ULONG_PTR ERESOURCE_THREAD, *PERESOURCE_THREAD;

typedef struct _ERESOURCE {
	PVOID OwnerTable;
	ULONG Spare;
	ULONG Type;
	ULONG Exclusive;
	ULONG Generation;
	ULONG NumberOfSharedWaiters;
	ULONG NumberOfExclusiveWaiters;
	ULONG_PTR Reserved[9];
} ERESOURCE, *PERESOURCE;

NTSTATUS ExInitializeResourceLite(PERESOURCE Resource);   /* [D] */
NTSTATUS ExReinitializeResourceLite(PERESOURCE Resource); /* [A] */
NTSTATUS ExDeleteResourceLite(PERESOURCE Resource);       /* [A] */
/* [A], [D] without Wait. FALSE: it would have to wait. */
BOOLEAN ExAcquireResourceExclusiveLite(PERESOURCE Resource, BOOLEAN Wait);
BOOLEAN ExAcquireResourceSharedLite(PERESOURCE Resource, BOOLEAN Wait);
/* Before exclusive waiters; behind them, even if the caller shares it already. */
BOOLEAN ExAcquireSharedStarveExclusive(PERESOURCE Resource, BOOLEAN Wait);
BOOLEAN ExAcquireSharedWaitForExclusive(PERESOURCE Resource, BOOLEAN Wait);
VOID ExReleaseResourceLite(PERESOURCE Resource); /* [D] */
VOID ExReleaseResourceForThreadLite(PERESOURCE Resource, ERESOURCE_THREAD ResourceThreadId);
VOID ExConvertExclusiveToSharedLite(PERESOURCE Resource);       /* [A] */
BOOLEAN ExIsResourceAcquiredExclusiveLite(PERESOURCE Resource); /* [D] by the caller */
ULONG ExIsResourceAcquiredSharedLite(PERESOURCE Resource);      /* [D] times, either way */
ULONG ExGetExclusiveWaiterCount(PERESOURCE Resource);           /* [D] */
ULONG ExGetSharedWaiterCount(PERESOURCE Resource);              /* [D] */
ERESOURCE_THREAD ExGetCurrentResourceThread(VOID);              /* [any] */
PVOID ExEnterCriticalRegionAndAcquireResourceExclusive(PERESOURCE Resource);
PVOID ExEnterCriticalRegionAndAcquireResourceShared(PERESOURCE Resource);
VOID ExReleaseResourceAndLeaveCriticalRegion(PERESOURCE Resource);

#ifndef ExIsResourceAcquiredLite
#define ExIsResourceAcquiredLite ExIsResourceAcquiredSharedLite
#define ExTryToAcquireResourceExclusiveLite(resource) \
	ExAcquireResourceExclusiveLite((resource), FALSE)
#endif

#ifdef __cplusplus
}
#endif

#endif
