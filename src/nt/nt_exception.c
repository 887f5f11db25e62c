/* SPDX-License-Identifier: MIT */
/*
 * Structured exceptions. Each thread has a list of the __try blocks in which it is, innermost
 * first. An exception takes the first one off the list and jumps to it. Faults of the processor
 * become exceptions in the handler of faults, which is installed with the first block of the
 * process. A fault outside every block has the effect that it had before.
 */
#include "nt/nt_internal.h"

#define KMODE_EXCEPTION_NOT_HANDLED 0x1Eu
/* Addresses below belong to no memory, so that a NULL pointer to a structure is found. */
#define LOWEST_USER_ADDRESS         0x10000u

/* The innermost block of the calling thread, in the slot of each world in which it has one. */
enum { TRY_SLOT = 8 };

static PWDDM_TRY *innermost_of_thread(void)
{
	struct vmm_nt *nt = vmm_nt_current();

	return (PWDDM_TRY *)(void *)&VMM_OS_OWN(nt->os)->slot[TRY_SLOT];
}

/*
 * Blocks in which this system thread is, of all threads of a sim world. At 0 no world is needed,
 * and the handler of faults does not look for one.
 */
static _Thread_local uint32_t active_blocks;

static void leave_block(PWDDM_TRY try_block)
{
	*innermost_of_thread() = try_block->Outer;
	try_block->Phase = WddmTryAfterBlock;
	active_blocks--;
}

__attribute__((noreturn)) static void deliver(PWDDM_TRY try_block, const EXCEPTION_RECORD *record)
{
	try_block->Record = *record;
	try_block->Pointers.ExceptionRecord = &try_block->Record;
	try_block->Pointers.ContextRecord = NULL;
	try_block->Raised = TRUE;
	leave_block(try_block);
	longjmp(try_block->Environment, 1);
}

static NTSTATUS status_of(enum vmm_os_fault_kind kind)
{
	switch (kind) {
	case VMM_OS_FAULT_DIVIDE:
		return STATUS_INTEGER_DIVIDE_BY_ZERO;
	case VMM_OS_FAULT_ARITHMETIC:
		return STATUS_FLOAT_INVALID_OPERATION;
	case VMM_OS_FAULT_INSTRUCTION:
		return STATUS_ILLEGAL_INSTRUCTION;
	default:
		return STATUS_ACCESS_VIOLATION;
	}
}

/* In a signal handler. */
static void on_fault(const struct vmm_os_fault *fault)
{
	EXCEPTION_RECORD record = {.ExceptionCode = status_of(fault->kind),
				   .ExceptionAddress = fault->instruction};
	PWDDM_TRY try_block;

	if (!active_blocks)
		return;
	try_block = (PWDDM_TRY)(uintptr_t)vmm_os_here.own->slot[TRY_SLOT];
	/*
	 * With more mutexes than at the begin of the block, the fault is in the library or in a
	 * device model that the driver called. A jump would leave these locked.
	 */
	if (!try_block || vmm_os_held_count() != try_block->Held)
		return;
	if (fault->kind == VMM_OS_FAULT_ACCESS) {
		record.NumberParameters = 2;
		record.ExceptionInformation[0] = fault->is_write;
		record.ExceptionInformation[1] = (ULONG_PTR)fault->address;
	}
	deliver(try_block, &record);
}

BOOLEAN WddmTryNext(PWDDM_TRY Try)
{
	PWDDM_TRY *innermost;

	switch (Try->Phase) {
	case WddmTryNotBegun:
		innermost = innermost_of_thread();
		if (!*innermost)
			vmm_os_catch_faults(on_fault);
		Try->Outer = *innermost;
		Try->Phase = WddmTryInBlock;
		Try->Held = vmm_os_held_count();
		*innermost = Try;
		active_blocks++;
		return TRUE;
	case WddmTryInBlock:
		leave_block(Try);
		return TRUE;
	default:
		Try->Phase = WddmTryEnded;
		if (Try->Raised && !Try->Handled)
			RtlRaiseException(&Try->Record);
		return FALSE;
	}
}

VOID WddmTryEnd(PWDDM_TRY Try)
{
	if (Try->Phase == WddmTryInBlock)
		leave_block(Try);
	Try->Phase = WddmTryEnded;
}

BOOLEAN WddmTryFilter(PWDDM_TRY Try, LONG Result)
{
	if (Result < 0)
		nt_violation(vmm_nt_current(), "NT-20", "__except",
			     "a filter returned EXCEPTION_CONTINUE_EXECUTION for exception "
			     "0x%08x, but the block has been left already",
			     (unsigned)Try->Record.ExceptionCode);
	Try->Handled = Result > 0;
	return Try->Handled;
}

VOID WddmTryLeave(PWDDM_TRY Try)
{
	leave_block(Try);
	longjmp(Try->Environment, 1);
}

VOID RtlRaiseException(PEXCEPTION_RECORD ExceptionRecord)
{
	EXCEPTION_RECORD record = *ExceptionRecord;
	PWDDM_TRY try_block = *innermost_of_thread();

	if (try_block)
		deliver(try_block, &record);
	KeBugCheckEx(KMODE_EXCEPTION_NOT_HANDLED, (ULONG_PTR)(ULONG)record.ExceptionCode,
		     (ULONG_PTR)record.ExceptionAddress, record.ExceptionInformation[0],
		     record.ExceptionInformation[1]);
}

VOID ExRaiseStatus(NTSTATUS Status)
{
	EXCEPTION_RECORD record = {.ExceptionCode = Status,
				   .ExceptionFlags = EXCEPTION_NONCONTINUABLE,
				   .ExceptionAddress = __builtin_return_address(0)};

	RtlRaiseException(&record);
}

VOID ExRaiseAccessViolation(VOID)
{
	ExRaiseStatus(STATUS_ACCESS_VIOLATION);
}

VOID ExRaiseDatatypeMisalignment(VOID)
{
	ExRaiseStatus(STATUS_DATATYPE_MISALIGNMENT);
}

/* Raises what is wrong with the range itself. Returns its last byte. */
static ULONG_PTR check_range(ULONG_PTR first, SIZE_T length, ULONG alignment)
{
	if (alignment && first % alignment)
		ExRaiseStatus(STATUS_DATATYPE_MISALIGNMENT);
	if (first < LOWEST_USER_ADDRESS || first + (length - 1) < first)
		ExRaiseStatus(STATUS_ACCESS_VIOLATION);
	return first + (length - 1);
}

VOID ProbeForRead(const volatile VOID *Address, SIZE_T Length, ULONG Alignment)
{
	nt_limit(vmm_nt_current(), "ProbeForRead", APC_LEVEL);
	if (Length)
		check_range((ULONG_PTR)Address, Length, Alignment);
}

VOID ProbeForWrite(volatile VOID *Address, SIZE_T Length, ULONG Alignment)
{
	nt_limit(vmm_nt_current(), "ProbeForWrite", APC_LEVEL);
	if (!Length)
		return;
	ULONG_PTR last = check_range((ULONG_PTR)Address, Length, Alignment);

	for (ULONG_PTR at = (ULONG_PTR)Address;; at = (at | (PAGE_SIZE - 1)) + 1) {
		volatile UCHAR *byte = (volatile UCHAR *)at;

		*byte = *byte;
		if ((at | (PAGE_SIZE - 1)) >= last)
			return;
	}
}

bool nt_try_is_active(void)
{
	return *innermost_of_thread() != NULL;
}
