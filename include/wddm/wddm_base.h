/* SPDX-License-Identifier: MIT */
/*
 * The base types under the DDI headers: integers, handles, LUID, GUID, annotations.
 *
 * Defines every type that the DDI takes from the platform. DDI structures are in the other headers,
 * kernel services in ntddk.h.
 *
 * Widths are Windows widths on every target: LONG, ULONG, DWORD, INT, UINT, BOOL, NTSTATUS and
 * HRESULT have 32 bits and are never `long`, which has 64 bits on Linux. Pointers, HANDLE,
 * SIZE_T and ULONG_PTR have pointer size. WCHAR is wchar_t: 32 bits for a native client, 16 bits
 * for driver source, which is compiled with -fshort-wchar.
 *
 * A Linux client written for WSL has its own base types (wsl/winadapter.h of directx-headers).
 * Both sets define the same tags, so only one can be in a translation unit. When that header
 * can be reached it supplies the base types, and what it lacks is added here; including it
 * again before or after ours then changes nothing. WDDM_OWN_BASE_TYPES keeps ours instead.
 */
#ifndef WDDM_BASE_H
#define WDDM_BASE_H

#include <stddef.h>
#include <stdint.h>

#if !defined(WDDM_OWN_BASE_TYPES) && defined(__has_include)
#if __has_include(<wsl/winadapter.h>) && __has_include(<unknwn.h>)
#define WDDM_BASE_FROM_WINADAPTER 1
#endif
#endif

#ifdef WDDM_BASE_FROM_WINADAPTER
#ifdef __cplusplus
extern "C++" {
#endif
#include <wsl/winadapter.h>
#ifdef __cplusplus
}
#endif
#endif

#include "wddm_annotations.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef WDDM_BASE_FROM_WINADAPTER

typedef char CHAR;
typedef unsigned char UCHAR;
typedef unsigned char BYTE;
typedef unsigned char BOOLEAN;
typedef uint16_t USHORT;
typedef uint16_t WORD;
typedef int32_t INT;
typedef int32_t LONG;
typedef int32_t BOOL;
typedef uint32_t UINT;
typedef uint32_t ULONG;
typedef uint32_t DWORD;
typedef int8_t INT8;
typedef uint8_t UINT8;
typedef int16_t INT16;
typedef uint16_t UINT16;
typedef int32_t INT32;
typedef uint32_t UINT32;
typedef int64_t INT64;
typedef uint64_t UINT64;
typedef int64_t LONGLONG;
typedef uint64_t ULONGLONG;
typedef int64_t LONG64;
typedef uint64_t ULONG64;
typedef intptr_t INT_PTR;
typedef uintptr_t UINT_PTR;
typedef intptr_t LONG_PTR;
typedef uintptr_t ULONG_PTR;
typedef size_t SIZE_T;
typedef float FLOAT;
typedef double DOUBLE;
typedef wchar_t WCHAR;
typedef void *PVOID;
typedef void *LPVOID;
typedef const void *LPCVOID;
typedef void *HANDLE;
typedef LONG HRESULT;

/* Window handles travel in the present structures only. They are 32 bits wide there because the
 * Linux clients of the table in tests/abi declare them so. */
typedef int HWND;
typedef int HDC;
typedef int PALETTEENTRY;

typedef UCHAR *PUCHAR;
typedef USHORT *PUSHORT;
typedef WCHAR *PWSTR;
typedef const WCHAR *PCWSTR;
typedef CHAR *PSTR;
typedef const CHAR *PCSTR;
typedef ULONG_PTR *PULONG_PTR;

/* 64 bits read as one number or as two halves; HighPart is signed. */
typedef union _LARGE_INTEGER {
	struct {
		ULONG LowPart;
		LONG HighPart;
	};
	struct {
		ULONG LowPart;
		LONG HighPart;
	} u;
	LONGLONG QuadPart;
} LARGE_INTEGER;
typedef LARGE_INTEGER *PLARGE_INTEGER;

typedef union _ULARGE_INTEGER {
	struct {
		ULONG LowPart;
		ULONG HighPart;
	};
	struct {
		ULONG LowPart;
		ULONG HighPart;
	} u;
	ULONGLONG QuadPart;
} ULARGE_INTEGER;
typedef ULARGE_INTEGER *PULARGE_INTEGER;

/* Names an adapter until the machine restarts. 8 bytes, aligned to 4. */
typedef struct _LUID {
	ULONG LowPart;
	LONG HighPart;
} LUID;

typedef struct _GUID {
	uint32_t Data1;
	uint16_t Data2;
	uint16_t Data3;
	uint8_t Data4[8];
} GUID;

typedef struct _RECT {
	LONG left;
	LONG top;
	LONG right;
	LONG bottom;
} RECT;

typedef struct tagRECTL {
	LONG left;
	LONG top;
	LONG right;
	LONG bottom;
} RECTL;

typedef struct tagPOINT {
	LONG x;
	LONG y;
} POINT;

#ifndef VOID
#define VOID void
#endif

#ifndef TRUE
#define TRUE 1
#endif
#ifndef FALSE
#define FALSE 0
#endif
#ifndef MAX_PATH
#define MAX_PATH 260
#endif

#ifndef SUCCEEDED
#define SUCCEEDED(hr) ((HRESULT)(hr) >= 0)
#endif
#ifndef FAILED
#define FAILED(hr) ((HRESULT)(hr) < 0)
#endif

#endif /* WDDM_BASE_FROM_WINADAPTER */

typedef LONG NTSTATUS;
typedef int16_t SHORT;
typedef CHAR *PCHAR;
typedef BYTE *PBYTE;
typedef BOOL *PBOOL;
typedef BOOLEAN *PBOOLEAN;
typedef SHORT *PSHORT;
typedef LONG *PLONG;
typedef ULONG *PULONG;
typedef INT *PINT;
typedef UINT *PUINT;
typedef DWORD *PDWORD;
typedef HANDLE *PHANDLE;
typedef SIZE_T *PSIZE_T;
typedef LONGLONG *PLONGLONG;
typedef ULONGLONG *PULONGLONG;
typedef UINT64 *PUINT64;
typedef LUID *PLUID;
typedef GUID *LPGUID;
typedef const GUID *LPCGUID;

/* A bus or segment address. Bytes. The type is signed, the value is unsigned. */
typedef LARGE_INTEGER PHYSICAL_ADDRESS;
typedef PHYSICAL_ADDRESS *PPHYSICAL_ADDRESS;

/* The page list of the kernel. Drivers use it as a pointer; ntddk.h defines it. */
typedef struct _MDL *PMDL;

#ifndef NT_SUCCESS
#define NT_SUCCESS(status) ((NTSTATUS)(status) >= 0)
#endif

#ifdef __cplusplus
}
#endif

#include "wddm_status.h"

#endif
