/* SPDX-License-Identifier: MIT */
/*
 * The language of Windows driver source. vidmm-cc includes this header before every source of a
 * driver; no source includes it itself.
 *
 * - NULL is 0 in C++, because driver source writes `= NULL` for a pure virtual function.
 * - 64-bit integers are `long long`, as on Windows, also under their names of the C library. So a
 *   driver may define uint64_t itself.
 * - Words of the compiler on Windows: calling conventions, __declspec, __int8 to __int64,
 *   __forceinline, intrinsics.
 * - `long` has 64 bits on this target and 32 on Windows: a driver uses LONG and ULONG.
 */
#ifndef WDDM_DRIVER_H
#define WDDM_DRIVER_H

#define WDDM_DRIVER_SOURCE    1
#define WDDM_OWN_BASE_TYPES   1
#define WDDM_SAL1_ANNOTATIONS 1

#include <stddef.h>
#include <stdint.h>
#include <stdarg.h>
#include <string.h>

#ifdef __cplusplus
#undef NULL
#define NULL 0
#endif

#include "sal.h"
#include "wchar16.h"

typedef long long wddm_int64_t;
typedef unsigned long long wddm_uint64_t;
#define int64_t  wddm_int64_t
#define uint64_t wddm_uint64_t

/* clang has these words itself with -fms-extensions, gcc only __declspec for Windows. */
#ifndef __clang__
#define __pragma(x)
#define __int8 char
#define __int16 short
#define __int32 int
#define __int64 long long
#define __cdecl
#define __stdcall
#define __fastcall
#define __thiscall
#define __vectorcall
#define __forceinline static inline __attribute__((always_inline))
#define __w64
#define __ptr32
#define __ptr64
#define __unaligned
#define __uuidof(x) _uuidof_is_not_supported
#define __assume(x)    ((void)0)
#define __noop(...)    ((void)0)
#define __debugbreak() DbgBreakPoint()
#else
#undef __cdecl
#define __cdecl
#undef __stdcall
#define __stdcall
#undef __fastcall
#define __fastcall
#undef __noop
#define __noop(...) ((void)0)
#undef __debugbreak
#define __debugbreak() DbgBreakPoint()
#define __forceinline static inline __attribute__((always_inline))
#endif
#ifdef __cplusplus
/* A member function cannot be static in this sense. */
#undef __forceinline
#define __forceinline inline __attribute__((always_inline))
#endif
#define _cdecl
#define _stdcall
#define __inline inline
#define FASTCALL

/* __declspec(x): each x that driver source has. gcc has no word for the others. */
#ifndef __declspec
#define __declspec(x) WDDM_DECLSPEC_##x
#define WDDM_DECLSPEC_align(n)   __attribute__((aligned(n)))
#define WDDM_DECLSPEC_noinline   __attribute__((noinline))
#define WDDM_DECLSPEC_noreturn   __attribute__((noreturn))
#define WDDM_DECLSPEC_naked      __attribute__((naked))
#define WDDM_DECLSPEC_thread     __thread
#define WDDM_DECLSPEC_selectany  __attribute__((weak))
#define WDDM_DECLSPEC_deprecated __attribute__((deprecated))
#define WDDM_DECLSPEC_dllexport
#define WDDM_DECLSPEC_dllimport
#define WDDM_DECLSPEC_novtable
#define WDDM_DECLSPEC_nothrow
#define WDDM_DECLSPEC_restrict
#define WDDM_DECLSPEC_noalias
#define WDDM_DECLSPEC_code_seg(s)
#define WDDM_DECLSPEC_allocate(s)
#define WDDM_DECLSPEC_uuid(s)
#define WDDM_DECLSPEC_property(...)
#endif
#ifndef DECLSPEC_ALIGN
#define DECLSPEC_ALIGN(n)  __attribute__((aligned(n)))
#define DECLSPEC_NOINLINE  __attribute__((noinline))
#define DECLSPEC_NORETURN  __attribute__((noreturn))
#define DECLSPEC_SELECTANY __attribute__((weak))
#define DECLSPEC_NOVTABLE
#define DECLSPEC_IMPORT
#endif

#define _ReturnAddress()          __builtin_return_address(0)
#define _AddressOfReturnAddress() __builtin_frame_address(0)
#define _byteswap_ushort(x)       __builtin_bswap16(x)
#define _byteswap_ulong(x)        __builtin_bswap32(x)
#define _byteswap_uint64(x)       __builtin_bswap64(x)
#define _countof(array)           (sizeof(array) / sizeof((array)[0]))
#ifdef __cplusplus
#define C_ASSERT(e) static_assert(e, #e)
#else
#define C_ASSERT(e) _Static_assert(e, #e)
#endif
#ifndef __cplusplus
#define static_assert _Static_assert
#endif
#define UNALIGNED
#define CSHORT short

/*
 * A driver's logging macro ends in `format, __VA_ARGS__`. The compiler on Windows leaves out the
 * comma if nothing follows; so do these macros.
 */
#define DbgPrint(format, ...) (DbgPrint)(format __VA_OPT__(, ) __VA_ARGS__)
#define DbgPrintEx(component, level, format, ...) \
	(DbgPrintEx)(component, level, format __VA_OPT__(, ) __VA_ARGS__)
#if !defined(min) && !defined(NOMINMAX)
#define min(a, b) (((a) < (b)) ? (a) : (b))
#define max(a, b) (((a) > (b)) ? (a) : (b))
#endif
#define ANYSIZE_ARRAY 1

#endif
