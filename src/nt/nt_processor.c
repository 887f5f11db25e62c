/* SPDX-License-Identifier: MIT */
/*
 * Processor numbers, ticks, floating-point state, the current process and thread. Stateless: a
 * thread's identity is its processor.
 */
#include "nt/nt_internal.h"

#define PROCESSORS     64u
#define TIME_INCREMENT 156250u /* 15.625 ms */

static char system_process;

static uint32_t self(void)
{
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);

	return nt_identity(nt, slots);
}

ULONG KeGetCurrentProcessorNumberEx(PPROCESSOR_NUMBER ProcNumber)
{
	ULONG number = (self() - 1) % PROCESSORS;

	if (ProcNumber)
		*ProcNumber = (PROCESSOR_NUMBER){.Number = (UCHAR)number};
	return number;
}

ULONG KeQueryActiveProcessorCountEx(USHORT GroupNumber)
{
	return GroupNumber == 0 || GroupNumber == ALL_PROCESSOR_GROUPS ? PROCESSORS : 0;
}

ULONG KeQueryMaximumProcessorCountEx(USHORT GroupNumber)
{
	return KeQueryActiveProcessorCountEx(GroupNumber);
}

KAFFINITY KeQueryActiveProcessors(VOID)
{
	return ~(KAFFINITY)0;
}

USHORT KeQueryActiveGroupCount(VOID)
{
	return 1;
}

ULONG KeQueryTimeIncrement(VOID)
{
	return TIME_INCREMENT;
}

ULONGLONG KeQueryInterruptTimePrecise(PULONG64 QpcTimeStamp)
{
	ULONGLONG now = KeQueryInterruptTime();

	/* The performance counter has the same unit and the same beginning. */
	*QpcTimeStamp = now;
	return now;
}

ULONGLONG KeQueryUnbiasedInterruptTime(VOID)
{
	return KeQueryInterruptTime(); /* the system never sleeps */
}

NTSTATUS KeSaveFloatingPointState(PKFLOATING_SAVE FloatSave)
{
	(void)FloatSave;
	nt_limit(vmm_nt_current(), "KeSaveFloatingPointState", DISPATCH_LEVEL);
	return STATUS_SUCCESS;
}

NTSTATUS KeRestoreFloatingPointState(PKFLOATING_SAVE FloatSave)
{
	(void)FloatSave;
	nt_limit(vmm_nt_current(), "KeRestoreFloatingPointState", DISPATCH_LEVEL);
	return STATUS_SUCCESS;
}

NTSTATUS KeSaveExtendedProcessorState(ULONG64 Mask, PXSTATE_SAVE XStateSave)
{
	(void)Mask, (void)XStateSave;
	nt_limit(vmm_nt_current(), "KeSaveExtendedProcessorState", DISPATCH_LEVEL);
	return STATUS_SUCCESS;
}

VOID KeRestoreExtendedProcessorState(PXSTATE_SAVE XStateSave)
{
	(void)XStateSave;
	nt_limit(vmm_nt_current(), "KeRestoreExtendedProcessorState", DISPATCH_LEVEL);
}

PEPROCESS IoGetCurrentProcess(VOID)
{
	return (PEPROCESS)(void *)&system_process;
}

HANDLE PsGetCurrentProcessId(VOID)
{
	return (HANDLE)(ULONG_PTR)4;
}

HANDLE PsGetProcessId(PEPROCESS Process)
{
	return (void *)Process == (void *)&system_process ? PsGetCurrentProcessId() : NULL;
}

PKTHREAD KeGetCurrentThread(VOID)
{
	uint64_t *slots;

	nt_caller(&slots);
	if (slots[SLOT_THREAD])
		return (PKTHREAD)(uintptr_t)slots[SLOT_THREAD];
	return (PKTHREAD)(void *)slots;
}

HANDLE PsGetCurrentThreadId(VOID)
{
	uint64_t *slots;
	const struct nt_thread *thread;

	nt_caller(&slots);
	thread = (const struct nt_thread *)(uintptr_t)slots[SLOT_THREAD];
	/* The id that PsCreateSystemThread returns; ids of other threads have bit 16. */
	return (HANDLE)(ULONG_PTR)(thread ? thread->number : self() + 0x10000);
}

BOOLEAN KeInvalidateAllCaches(VOID)
{
	/* Memory is coherent: what is left is the order of accesses. */
	KeMemoryBarrier();
	return TRUE;
}
