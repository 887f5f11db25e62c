/* SPDX-License-Identifier: MIT */
/*
 * Processors, ticks, floating-point state, the current process and thread. Part of ntddk.h.
 *
 * Each thread has a number of a processor that no other thread has, up to 64 threads, because
 * threads at DISPATCH_LEVEL run in parallel here. So data per processor is never shared by
 * accident.
 */
#ifndef WDDM_NTDDK_PROCESSOR_H
#define WDDM_NTDDK_PROCESSOR_H

#include "ntddk_sync.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct _PROCESSOR_NUMBER {
	USHORT Group;
	UCHAR Number;
	UCHAR Reserved;
} PROCESSOR_NUMBER, *PPROCESSOR_NUMBER;

#define ALL_PROCESSOR_GROUPS 0xFFFF
#define MAXIMUM_PROCESSORS   64

ULONG KeGetCurrentProcessorNumberEx(PPROCESSOR_NUMBER ProcNumber); /* [any] */
ULONG KeQueryActiveProcessorCountEx(USHORT GroupNumber);           /* [any] */
ULONG KeQueryMaximumProcessorCountEx(USHORT GroupNumber);          /* [any] */
KAFFINITY KeQueryActiveProcessors(VOID);                           /* [any] */
USHORT KeQueryActiveGroupCount(VOID);                              /* [any] */

static inline ULONG KeGetCurrentProcessorNumber(VOID)
{
	return KeGetCurrentProcessorNumberEx(NULL);
}

static inline ULONG KeQueryActiveProcessorCount(KAFFINITY *ActiveProcessors)
{
	if (ActiveProcessors)
		*ActiveProcessors = KeQueryActiveProcessors();
	return KeQueryActiveProcessorCountEx(0);
}

static inline ULONG KeQueryMaximumProcessorCount(VOID)
{
	return KeQueryMaximumProcessorCountEx(0);
}

/* ---- ticks [any] ---- */

ULONG KeQueryTimeIncrement(VOID); /* 100 ns units per tick */
ULONGLONG KeQueryInterruptTimePrecise(PULONG64 QpcTimeStamp);
ULONGLONG KeQueryUnbiasedInterruptTime(VOID);

static inline VOID KeQueryTickCount(PLARGE_INTEGER TickCount)
{
	TickCount->QuadPart = (LONGLONG)(KeQueryInterruptTime() / KeQueryTimeIncrement());
}

/* ---- floating point [D]: each thread keeps its state, so there is nothing to save ---- */

typedef struct _KFLOATING_SAVE {
	ULONG Dummy;
} KFLOATING_SAVE, *PKFLOATING_SAVE;

typedef struct _XSTATE_SAVE {
	ULONG64 Dummy[8];
} XSTATE_SAVE, *PXSTATE_SAVE;

#define XSTATE_MASK_LEGACY 3ull
#define XSTATE_MASK_GSSE   4ull
#define XSTATE_MASK_AVX    4ull

NTSTATUS KeSaveFloatingPointState(PKFLOATING_SAVE FloatSave);
NTSTATUS KeRestoreFloatingPointState(PKFLOATING_SAVE FloatSave);
NTSTATUS KeSaveExtendedProcessorState(ULONG64 Mask, PXSTATE_SAVE XStateSave);
VOID KeRestoreExtendedProcessorState(PXSTATE_SAVE XStateSave);

/* ---- process and thread [any]: there is one process, the system ---- */

PEPROCESS IoGetCurrentProcess(VOID);
HANDLE PsGetCurrentProcessId(VOID);
HANDLE PsGetProcessId(PEPROCESS Process);
/* The object of a thread of PsCreateSystemThread; other threads have a value that names them. */
PKTHREAD KeGetCurrentThread(VOID);
HANDLE PsGetCurrentThreadId(VOID);

#ifndef PsGetCurrentProcess
#define PsGetCurrentProcess IoGetCurrentProcess
#endif
#ifndef PsGetCurrentThread
#define PsGetCurrentThread KeGetCurrentThread
#endif

#ifdef __cplusplus
}
#endif

#endif
