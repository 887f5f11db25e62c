/* SPDX-License-Identifier: MIT */
/*
 * Run-time helpers, registry, debug output and bug checks. Part of ntddk.h.
 */
#ifndef WDDM_NTDDK_SERVICE_H
#define WDDM_NTDDK_SERVICE_H

#include "ntddk_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- memory and strings [any] ---- */

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

SIZE_T RtlCompareMemory(const VOID *Source1, const VOID *Source2,
			SIZE_T Length); /* bytes that agree */
VOID RtlInitUnicodeString(PUNICODE_STRING DestinationString, PCWSTR SourceString);
BOOLEAN RtlEqualUnicodeString(PCUNICODE_STRING String1, PCUNICODE_STRING String2,
			      BOOLEAN CaseInSensitive);

/* ---- registry [P]: reads the values that the port set up ---- */

#ifndef REG_NONE
#define REG_NONE      0
#define REG_SZ        1
#define REG_EXPAND_SZ 2
#define REG_BINARY    3
#define REG_DWORD     4
#define REG_MULTI_SZ  7
#define REG_QWORD     11
#endif

typedef enum _KEY_VALUE_INFORMATION_CLASS {
	KeyValueBasicInformation,
	KeyValueFullInformation,
	KeyValuePartialInformation,
} KEY_VALUE_INFORMATION_CLASS;

typedef struct _KEY_VALUE_PARTIAL_INFORMATION {
	ULONG TitleIndex;
	ULONG Type;
	ULONG DataLength;
	UCHAR Data[1];
} KEY_VALUE_PARTIAL_INFORMATION, *PKEY_VALUE_PARTIAL_INFORMATION;

NTSTATUS ZwOpenKey(PHANDLE KeyHandle, ACCESS_MASK DesiredAccess,
		   POBJECT_ATTRIBUTES ObjectAttributes);
/* KeyValuePartialInformation only; other classes: STATUS_NOT_SUPPORTED. */
NTSTATUS ZwQueryValueKey(HANDLE KeyHandle, PUNICODE_STRING ValueName,
			 KEY_VALUE_INFORMATION_CLASS KeyValueInformationClass,
			 PVOID KeyValueInformation, ULONG Length, PULONG ResultLength);

typedef NTSTATUS RTL_QUERY_REGISTRY_ROUTINE(PWSTR ValueName, ULONG ValueType, PVOID ValueData,
					    ULONG ValueLength, PVOID Context, PVOID EntryContext);
typedef RTL_QUERY_REGISTRY_ROUTINE *PRTL_QUERY_REGISTRY_ROUTINE;

typedef struct _RTL_QUERY_REGISTRY_TABLE {
	PRTL_QUERY_REGISTRY_ROUTINE QueryRoutine;
	ULONG Flags;
	PWSTR Name;
	PVOID EntryContext;
	ULONG DefaultType;
	PVOID DefaultData;
	ULONG DefaultLength;
} RTL_QUERY_REGISTRY_TABLE, *PRTL_QUERY_REGISTRY_TABLE;

#define RTL_REGISTRY_ABSOLUTE 0
#define RTL_REGISTRY_SERVICES 1
#define RTL_REGISTRY_CONTROL  2
#define RTL_REGISTRY_HANDLE   0x40000000
#define RTL_REGISTRY_OPTIONAL 0x80000000

#define RTL_QUERY_REGISTRY_SUBKEY          0x00000001
#define RTL_QUERY_REGISTRY_TOPKEY          0x00000002
#define RTL_QUERY_REGISTRY_REQUIRED        0x00000004
#define RTL_QUERY_REGISTRY_NOVALUE         0x00000008
#define RTL_QUERY_REGISTRY_NOEXPAND        0x00000010
#define RTL_QUERY_REGISTRY_DIRECT          0x00000020
#define RTL_QUERY_REGISTRY_DELETE          0x00000040
#define RTL_QUERY_REGISTRY_TYPECHECK       0x00000100
#define RTL_QUERY_REGISTRY_TYPECHECK_SHIFT 24

/*
 * Entries with a Name, through a routine or RTL_QUERY_REGISTRY_DIRECT into a caller's buffer.
 * Subkeys, enumeration and deletion are STATUS_NOT_SUPPORTED.
 */
NTSTATUS RtlQueryRegistryValues(ULONG RelativeTo, PCWSTR Path, PRTL_QUERY_REGISTRY_TABLE QueryTable,
				PVOID Context, PVOID Environment);

/* ---- debug output, asserts, bug checks [any] ---- */

ULONG DbgPrint(const char *Format, ...);
ULONG DbgPrintEx(ULONG ComponentId, ULONG Level, const char *Format, ...);

/* Kernel macros call these. They report and return: a miniport's error never ends the process. */
VOID WddmAssertFailed(const char *Expression, const char *File, LONG Line);
VOID WddmPagedCode(const char *Function);

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

/* Simulated: reports the bug check to the host, which stops the adapter, and returns. */
VOID KeBugCheckEx(ULONG BugCheckCode, ULONG_PTR BugCheckParameter1, ULONG_PTR BugCheckParameter2,
		  ULONG_PTR BugCheckParameter3, ULONG_PTR BugCheckParameter4);

#ifdef __cplusplus
}
#endif

#endif
