/* SPDX-License-Identifier: MIT */
/*
 * Run-time helpers, debug output and bug checks. Part of ntddk.h.
 */
#ifndef WDDM_NTDDK_SERVICE_H
#define WDDM_NTDDK_SERVICE_H

#include <stdarg.h>

#include "ntddk_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- memory [any] ---- */

#ifndef RtlCopyMemory
#define RtlCopyMemory(destination, source, length) \
	__builtin_memcpy((destination), (source), (length))
#endif
#ifndef RtlMoveMemory
#define RtlMoveMemory(destination, source, length) \
	__builtin_memmove((destination), (source), (length))
#endif
#ifndef RtlFillMemory
#define RtlFillMemory(destination, length, fill) __builtin_memset((destination), (fill), (length))
#endif
#ifndef RtlZeroMemory
#define RtlZeroMemory(destination, length) __builtin_memset((destination), 0, (length))
#endif
#ifndef RtlEqualMemory
#define RtlEqualMemory(a, b, length) (!__builtin_memcmp((a), (b), (length)))
#endif

/* ---- debug output, asserts, bug checks [any] ---- */

#ifndef DPFLTR_ERROR_LEVEL
#define DPFLTR_ERROR_LEVEL   0
#define DPFLTR_WARNING_LEVEL 1
#define DPFLTR_TRACE_LEVEL   2
#define DPFLTR_INFO_LEVEL    3
#define DPFLTR_MASK          0x80000000
#endif

/* The components of drivers. */
#ifndef DPFLTR_IHVVIDEO_ID
#define DPFLTR_SYSTEM_ID       0
#define DPFLTR_VIDEO_ID        27
#define DPFLTR_VIDEOPRT_ID     29
#define DPFLTR_IHVDRIVER_ID    77
#define DPFLTR_IHVVIDEO_ID     78
#define DPFLTR_IHVAUDIO_ID     79
#define DPFLTR_IHVNETWORK_ID   80
#define DPFLTR_IHVSTREAMING_ID 81
#define DPFLTR_IHVBUS_ID       82
#define DPFLTR_DEFAULT_ID      101
#endif

ULONG(DbgPrint)(const char *Format, ...);
ULONG(DbgPrintEx)(ULONG ComponentId, ULONG Level, const char *Format, ...);
ULONG vDbgPrintEx(ULONG ComponentId, ULONG Level, PCSTR Format, va_list arglist);
ULONG vDbgPrintExWithPrefix(PCSTR Prefix, ULONG ComponentId, ULONG Level, PCSTR Format,
			    va_list arglist);
/*
 * Under the functions of ntstrsafe.h. Characters is the size of the buffer and not 0.
 * STATUS_BUFFER_OVERFLOW: the text was cut, and is terminated.
 */
NTSTATUS WddmFormatA(CHAR *Text, SIZE_T Characters, const CHAR *Format, va_list Arguments);
NTSTATUS WddmFormatW(WCHAR *Text, SIZE_T Characters, const WCHAR *Format, va_list Arguments);
/* No debugger is attached: reported like a bug check (NT-09), and returns. */
VOID DbgBreakPoint(VOID);
VOID DbgBreakPointWithStatus(ULONG Status);

/* Kernel macros call these. They report and return: a miniport's error never ends the process. */
VOID WddmAssertFailed(const char *Expression, const char *File, LONG Line);
VOID WddmPagedCode(const char *Function);
/* Trace macros call these. Format may have conversions of WPP (%!STATUS!, %!FUNC! ...). */
VOID WddmTraceMessage(ULONG Level, const char *Function, const char *Format, ...);
VOID WddmTraceMessageWide(ULONG Level, const char *Function, const WCHAR *Format, ...);

#ifndef ASSERT
#define ASSERT(expression) \
	((expression) ? (void)0 : WddmAssertFailed(#expression, __FILE__, __LINE__))
#endif
#ifndef NT_ASSERT
#define NT_ASSERT(expression) \
	((expression) ? (void)0 : WddmAssertFailed(#expression, __FILE__, __LINE__))
#endif
#ifndef PAGED_CODE
#define PAGED_CODE() WddmPagedCode(__func__)
#endif
#ifndef KdPrint
#define KdPrint(arguments) ((void)DbgPrint arguments)
#endif
#ifndef KdPrintEx
#define KdPrintEx(arguments) ((void)DbgPrintEx arguments)
#endif
#ifndef KdBreakPoint
#define KdBreakPoint()                 DbgBreakPoint()
#define KdBreakPointWithStatus(status) DbgBreakPointWithStatus(status)
#endif
#ifndef ASSERTMSG
#define ASSERTMSG(message, expression) \
	((expression) ? (void)0 : WddmAssertFailed((message), __FILE__, __LINE__))
#endif
#ifndef NT_VERIFY
#define NT_VERIFY(expression) \
	((expression) ? TRUE : (WddmAssertFailed(#expression, __FILE__, __LINE__), FALSE))
#endif
#ifndef C_ASSERT
#ifdef __cplusplus
#define C_ASSERT(expression) static_assert(expression, #expression)
#else
#define C_ASSERT(expression) _Static_assert(expression, #expression)
#endif
#endif

/* Simulated: reports the bug check to the host, and ends the process by SIGABRT. */
__attribute__((noreturn)) VOID KeBugCheckEx(ULONG BugCheckCode, ULONG_PTR BugCheckParameter1,
					    ULONG_PTR BugCheckParameter2,
					    ULONG_PTR BugCheckParameter3,
					    ULONG_PTR BugCheckParameter4);

__attribute__((noreturn)) static inline VOID KeBugCheck(ULONG BugCheckCode)
{
	KeBugCheckEx(BugCheckCode, 0, 0, 0, 0);
}

#ifdef __cplusplus
}
#endif

#endif
