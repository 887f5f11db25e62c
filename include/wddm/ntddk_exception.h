/* SPDX-License-Identifier: MIT */
/*
 * Structured exceptions: __try, __except, __finally and __leave for drivers' source, and the
 * services that raise exceptions. Part of ntddk.h; the four words only in source that vidmm-cc
 * compiles (WDDM_DRIVER_SOURCE).
 *
 * An exception is raised by a service below, or by a wrong access, a division by zero or an
 * illegal instruction while a __try block is active on the thread. It reaches the innermost block
 * of the thread. An exception that no block handles is bug check 0x1E
 * (KMODE_EXCEPTION_NOT_HANDLED), and ends the process.
 *
 * Differences from Windows:
 * - The filter of __except is evaluated after the block has been left. So the result
 *   EXCEPTION_CONTINUE_EXECUTION is not possible; it is reported (NT-20) and the search goes on.
 * - `break`, `continue` out of a block, and `return`, `goto` out of a block with __finally, do not
 *   compile (vidmm-cc refuses them).
 * - A fault inside a service or a device model, which holds locks, is no exception: it ends the
 *   process.
 * - Every fault of floating-point arithmetic is STATUS_FLOAT_INVALID_OPERATION.
 * - A variable that changes in the block has its new value after the exception only in code
 *   compiled with -O0 or if it is volatile. vidmm-cc compiles a source with __try with -O0.
 *
 * Source: the try-except and try-finally pages of the C language reference; the pages of
 * ExRaiseStatus, ProbeForRead, ProbeForWrite, EXCEPTION_RECORD.
 */
#ifndef WDDM_NTDDK_EXCEPTION_H
#define WDDM_NTDDK_EXCEPTION_H

#include <setjmp.h>
#include "ntddk_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define EXCEPTION_EXECUTE_HANDLER    1
#define EXCEPTION_CONTINUE_SEARCH    0
#define EXCEPTION_CONTINUE_EXECUTION (-1)

#define EXCEPTION_NONCONTINUABLE     0x1
#define EXCEPTION_MAXIMUM_PARAMETERS 15

#ifndef STATUS_DATATYPE_MISALIGNMENT
#define STATUS_DATATYPE_MISALIGNMENT ((NTSTATUS)0x80000002)
#endif
#ifndef STATUS_ILLEGAL_INSTRUCTION
#define STATUS_ILLEGAL_INSTRUCTION ((NTSTATUS)0xC000001D)
#endif
#ifndef STATUS_FLOAT_INVALID_OPERATION
#define STATUS_FLOAT_INVALID_OPERATION ((NTSTATUS)0xC0000090)
#endif
#ifndef STATUS_INTEGER_DIVIDE_BY_ZERO
#define STATUS_INTEGER_DIVIDE_BY_ZERO ((NTSTATUS)0xC0000094)
#endif

typedef struct _EXCEPTION_RECORD {
	NTSTATUS ExceptionCode;
	ULONG ExceptionFlags;
	struct _EXCEPTION_RECORD *ExceptionRecord;
	PVOID ExceptionAddress; /* of the instruction; if a service raised it, behind the call */
	ULONG NumberParameters;
	/* wrong access: [0] 1 for a write, 0 for a read or unknown; [1] the address */
	ULONG_PTR ExceptionInformation[EXCEPTION_MAXIMUM_PARAMETERS];
} EXCEPTION_RECORD, *PEXCEPTION_RECORD;

typedef struct _CONTEXT *PCONTEXT; /* never filled in */

typedef struct _EXCEPTION_POINTERS {
	PEXCEPTION_RECORD ExceptionRecord;
	PCONTEXT ContextRecord; /* NULL */
} EXCEPTION_POINTERS, *PEXCEPTION_POINTERS;

/* [any] Raise and do not return. */
__attribute__((noreturn)) VOID ExRaiseStatus(NTSTATUS Status);
__attribute__((noreturn)) VOID ExRaiseAccessViolation(VOID);
__attribute__((noreturn)) VOID ExRaiseDatatypeMisalignment(VOID);
__attribute__((noreturn)) VOID RtlRaiseException(PEXCEPTION_RECORD ExceptionRecord);

/*
 * [A] Raise STATUS_DATATYPE_MISALIGNMENT or STATUS_ACCESS_VIOLATION. The second accesses a byte of
 * each page. A driver here has the address space of its clients, so both accept any memory.
 */
VOID ProbeForRead(const volatile VOID *Address, SIZE_T Length, ULONG Alignment);
VOID ProbeForWrite(volatile VOID *Address, SIZE_T Length, ULONG Alignment);

/* ---- what the four words are made of ---- */

typedef enum _WDDM_TRY_PHASE {
	WddmTryNotBegun,
	WddmTryInBlock,
	WddmTryAfterBlock, /* __except or __finally */
	WddmTryEnded,
} WDDM_TRY_PHASE;

typedef struct _WDDM_TRY {
	struct _WDDM_TRY *Outer;
	WDDM_TRY_PHASE Phase;
	BOOLEAN Raised, Handled;
	ULONG Held; /* mutexes of the library that the thread held at the begin */
	EXCEPTION_RECORD Record;
	EXCEPTION_POINTERS Pointers;
	jmp_buf Environment;
} WDDM_TRY, *PWDDM_TRY;

BOOLEAN WddmTryNext(PWDDM_TRY Try); /* to the next phase; FALSE: the statement ended */
VOID WddmTryEnd(PWDDM_TRY Try);     /* the statement was left in any way */
BOOLEAN WddmTryFilter(PWDDM_TRY Try, LONG Result);
__attribute__((noreturn)) VOID WddmTryLeave(PWDDM_TRY Try);

#if defined(WDDM_DRIVER_SOURCE) || defined(WDDM_STRUCTURED_EXCEPTIONS)
/* The formatter takes the words for those of the language. */
/* clang-format off */
#undef __try
#undef __except
#undef __finally
#undef __leave
#define __try                                                                                    \
	for (WDDM_TRY WddmTry __attribute__((cleanup(WddmTryEnd))) = {}; WddmTryNext(&WddmTry);) \
		if (WddmTry.Phase == WddmTryInBlock && setjmp(WddmTry.Environment) == 0)
#define __except(filter) else if (WddmTry.Raised && WddmTryFilter(&WddmTry, (filter)))
#define __finally else
#define __leave WddmTryLeave(&WddmTry)
#define try_leave WddmTryLeave(&WddmTry)

#define GetExceptionCode()        (WddmTry.Record.ExceptionCode)
#define GetExceptionInformation() (&WddmTry.Pointers)
#define AbnormalTermination()     (WddmTry.Raised)
#define _exception_code()         GetExceptionCode()
#define _exception_info()         GetExceptionInformation()
#define _abnormal_termination()   AbnormalTermination()
/* clang-format on */
#endif

#ifdef __cplusplus
}
#endif

#endif
