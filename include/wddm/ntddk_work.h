/* SPDX-License-Identifier: MIT */
/*
 * Work items, look-aside lists, remove locks, rundown protection. Part of ntddk.h.
 */
#ifndef WDDM_NTDDK_WORK_H
#define WDDM_NTDDK_WORK_H

#include "ntddk_sync.h"
#include "ntddk_memory.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- work items [D]: a routine that a system thread calls at PASSIVE_LEVEL ---- */

typedef enum _WORK_QUEUE_TYPE {
	CriticalWorkQueue,
	DelayedWorkQueue,
	HyperCriticalWorkQueue,
	NormalWorkQueue,
	BackgroundWorkQueue,
	RealTimeWorkQueue,
	SuperCriticalWorkQueue,
	MaximumWorkQueue,
	CustomPriorityWorkQueue = 32,
} WORK_QUEUE_TYPE;

typedef VOID WORKER_THREAD_ROUTINE(PVOID Parameter);
typedef WORKER_THREAD_ROUTINE *PWORKER_THREAD_ROUTINE;

typedef struct _WORK_QUEUE_ITEM {
	LIST_ENTRY List;
	PWORKER_THREAD_ROUTINE WorkerRoutine;
	PVOID Parameter;
} WORK_QUEUE_ITEM, *PWORK_QUEUE_ITEM;

static inline VOID ExInitializeWorkItem(PWORK_QUEUE_ITEM Item, PWORKER_THREAD_ROUTINE Routine,
					PVOID Context)
{
	Item->WorkerRoutine = Routine;
	Item->Parameter = Context;
	Item->List.Flink = Item->List.Blink = NULL;
}

/* The queue type makes no difference. The routine may free or queue the item. */
VOID ExQueueWorkItem(PWORK_QUEUE_ITEM WorkItem, WORK_QUEUE_TYPE QueueType);

typedef struct _IO_WORKITEM *PIO_WORKITEM;
typedef VOID IO_WORKITEM_ROUTINE(PDEVICE_OBJECT DeviceObject, PVOID Context);
typedef IO_WORKITEM_ROUTINE *PIO_WORKITEM_ROUTINE;
typedef VOID IO_WORKITEM_ROUTINE_EX(PVOID IoObject, PVOID Context, PIO_WORKITEM IoWorkItem);
typedef IO_WORKITEM_ROUTINE_EX *PIO_WORKITEM_ROUTINE_EX;

PIO_WORKITEM IoAllocateWorkItem(PDEVICE_OBJECT DeviceObject);
VOID IoFreeWorkItem(PIO_WORKITEM IoWorkItem);
ULONG IoSizeofWorkItem(VOID); /* [any] */
VOID IoInitializeWorkItem(PVOID IoObject, PIO_WORKITEM IoWorkItem);
VOID IoUninitializeWorkItem(PIO_WORKITEM IoWorkItem);
VOID IoQueueWorkItem(PIO_WORKITEM IoWorkItem, PIO_WORKITEM_ROUTINE WorkerRoutine,
		     WORK_QUEUE_TYPE QueueType, PVOID Context);
VOID IoQueueWorkItemEx(PIO_WORKITEM IoWorkItem, PIO_WORKITEM_ROUTINE_EX WorkerRoutine,
		       WORK_QUEUE_TYPE QueueType, PVOID Context);

/* ---- look-aside lists [D], paged [A]: freed blocks of one size are kept for the next use ---- */

typedef PVOID ALLOCATE_FUNCTION(POOL_TYPE PoolType, SIZE_T NumberOfBytes, ULONG Tag);
typedef ALLOCATE_FUNCTION *PALLOCATE_FUNCTION;
typedef VOID FREE_FUNCTION(PVOID Buffer);
typedef FREE_FUNCTION *PFREE_FUNCTION;

struct _LOOKASIDE_LIST_EX;
typedef PVOID ALLOCATE_FUNCTION_EX(POOL_TYPE PoolType, SIZE_T NumberOfBytes, ULONG Tag,
				   struct _LOOKASIDE_LIST_EX *Lookaside);
typedef ALLOCATE_FUNCTION_EX *PALLOCATE_FUNCTION_EX;
typedef VOID FREE_FUNCTION_EX(PVOID Buffer, struct _LOOKASIDE_LIST_EX *Lookaside);
typedef FREE_FUNCTION_EX *PFREE_FUNCTION_EX;

typedef struct _GENERAL_LOOKASIDE {
	PVOID First; /* of the kept blocks */
	ULONG Initialized;
	ULONG Kept;
	ULONG Depth; /* the most that are kept */
	ULONG Tag;
	POOL_TYPE Type;
	ULONG Size;
	ULONG TotalAllocates;
	ULONG AllocateMisses;
	ULONG TotalFrees;
	ULONG FreeMisses;
	ULONG Outstanding;
	ULONG Reserved;
	PALLOCATE_FUNCTION_EX AllocateEx;
	PFREE_FUNCTION_EX FreeEx;
	PALLOCATE_FUNCTION Allocate;
	PFREE_FUNCTION Free;
} GENERAL_LOOKASIDE, *PGENERAL_LOOKASIDE;

typedef struct _LOOKASIDE_LIST_EX {
	GENERAL_LOOKASIDE L;
} LOOKASIDE_LIST_EX, *PLOOKASIDE_LIST_EX;
typedef struct _NPAGED_LOOKASIDE_LIST {
	GENERAL_LOOKASIDE L;
} NPAGED_LOOKASIDE_LIST, *PNPAGED_LOOKASIDE_LIST;
typedef struct _PAGED_LOOKASIDE_LIST {
	GENERAL_LOOKASIDE L;
} PAGED_LOOKASIDE_LIST, *PPAGED_LOOKASIDE_LIST;

#define EX_LOOKASIDE_LIST_EX_FLAGS_RAISE_ON_FAIL 0x00000001
#define EX_LOOKASIDE_LIST_EX_FLAGS_FAIL_NO_RAISE 0x00000002

VOID ExInitializeNPagedLookasideList(PNPAGED_LOOKASIDE_LIST Lookaside, PALLOCATE_FUNCTION Allocate,
				     PFREE_FUNCTION Free, ULONG Flags, SIZE_T Size, ULONG Tag,
				     USHORT Depth);
VOID ExDeleteNPagedLookasideList(PNPAGED_LOOKASIDE_LIST Lookaside);
PVOID ExAllocateFromNPagedLookasideList(PNPAGED_LOOKASIDE_LIST Lookaside);
VOID ExFreeToNPagedLookasideList(PNPAGED_LOOKASIDE_LIST Lookaside, PVOID Entry);

VOID ExInitializePagedLookasideList(PPAGED_LOOKASIDE_LIST Lookaside, PALLOCATE_FUNCTION Allocate,
				    PFREE_FUNCTION Free, ULONG Flags, SIZE_T Size, ULONG Tag,
				    USHORT Depth);
VOID ExDeletePagedLookasideList(PPAGED_LOOKASIDE_LIST Lookaside);
PVOID ExAllocateFromPagedLookasideList(PPAGED_LOOKASIDE_LIST Lookaside);
VOID ExFreeToPagedLookasideList(PPAGED_LOOKASIDE_LIST Lookaside, PVOID Entry);

NTSTATUS ExInitializeLookasideListEx(PLOOKASIDE_LIST_EX Lookaside, PALLOCATE_FUNCTION_EX Allocate,
				     PFREE_FUNCTION_EX Free, POOL_TYPE PoolType, ULONG Flags,
				     SIZE_T Size, ULONG Tag, USHORT Depth);
VOID ExDeleteLookasideListEx(PLOOKASIDE_LIST_EX Lookaside);
VOID ExFlushLookasideListEx(PLOOKASIDE_LIST_EX Lookaside);
PVOID ExAllocateFromLookasideListEx(PLOOKASIDE_LIST_EX Lookaside);
VOID ExFreeToLookasideListEx(PLOOKASIDE_LIST_EX Lookaside, PVOID Entry);

/* ---- remove locks: count what is in progress, and wait for its end ---- */

typedef struct _IO_REMOVE_LOCK_COMMON_BLOCK {
	BOOLEAN Removed;
	BOOLEAN Reserved[3];
	LONG volatile IoCount;
	KEVENT RemoveEvent;
} IO_REMOVE_LOCK_COMMON_BLOCK;

typedef struct _IO_REMOVE_LOCK {
	IO_REMOVE_LOCK_COMMON_BLOCK Common;
} IO_REMOVE_LOCK, *PIO_REMOVE_LOCK;

VOID IoInitializeRemoveLockEx(PIO_REMOVE_LOCK Lock, ULONG AllocateTag, ULONG MaxLockedMinutes,
			      ULONG HighWatermark, ULONG RemlockSize); /* [P] */
/* [D] STATUS_DELETE_PENDING: IoReleaseRemoveLockAndWait was called. */
NTSTATUS IoAcquireRemoveLockEx(PIO_REMOVE_LOCK RemoveLock, PVOID Tag, PCSTR File, ULONG Line,
			       ULONG RemlockSize);
VOID IoReleaseRemoveLockEx(PIO_REMOVE_LOCK RemoveLock, PVOID Tag, ULONG RemlockSize); /* [D] */
VOID IoReleaseRemoveLockAndWaitEx(PIO_REMOVE_LOCK RemoveLock, PVOID Tag,
				  ULONG RemlockSize); /* [P] */

#ifndef IoInitializeRemoveLock
#define IoInitializeRemoveLock(lock, tag, minutes, high) \
	IoInitializeRemoveLockEx((lock), (tag), (minutes), (high), sizeof(IO_REMOVE_LOCK))
#define IoAcquireRemoveLock(lock, tag) \
	IoAcquireRemoveLockEx((lock), (tag), __FILE__, __LINE__, sizeof(IO_REMOVE_LOCK))
#define IoReleaseRemoveLock(lock, tag) IoReleaseRemoveLockEx((lock), (tag), sizeof(IO_REMOVE_LOCK))
#define IoReleaseRemoveLockAndWait(lock, tag) \
	IoReleaseRemoveLockAndWaitEx((lock), (tag), sizeof(IO_REMOVE_LOCK))
#endif

/* ---- rundown protection: uses of an object that ends when the last use has ended ---- */

typedef struct _EX_RUNDOWN_REF {
	ULONG_PTR Count;
} EX_RUNDOWN_REF, *PEX_RUNDOWN_REF;

VOID ExInitializeRundownProtection(PEX_RUNDOWN_REF RunRef);   /* [any] */
VOID ExReInitializeRundownProtection(PEX_RUNDOWN_REF RunRef); /* [any] */
BOOLEAN ExAcquireRundownProtection(PEX_RUNDOWN_REF RunRef);   /* [D]; FALSE: it ends */
BOOLEAN ExAcquireRundownProtectionEx(PEX_RUNDOWN_REF RunRef, ULONG Count);
VOID ExReleaseRundownProtection(PEX_RUNDOWN_REF RunRef); /* [D] */
VOID ExReleaseRundownProtectionEx(PEX_RUNDOWN_REF RunRef, ULONG Count);
VOID ExWaitForRundownProtectionRelease(PEX_RUNDOWN_REF RunRef); /* [A] */
VOID ExRundownCompleted(PEX_RUNDOWN_REF RunRef);                /* [any] */

#ifdef __cplusplus
}
#endif

#endif
