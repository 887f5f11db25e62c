/* SPDX-License-Identifier: MIT */
/*
 * Integer arithmetic and conversions that check for overflow: RtlULongAdd, RtlULongSub,
 * RtlULongMult and so on for each type, RtlSIZETToULong and so on for each pair.
 * STATUS_INTEGER_OVERFLOW: the result is all ones. Source: the ntintsafe.h pages of the Windows
 * driver documentation.
 */
#ifndef WDDM_NTINTSAFE_H
#define WDDM_NTINTSAFE_H

#include "wddm_base.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef WDDM_HAVE_SSIZE_T
#define WDDM_HAVE_SSIZE_T
typedef intptr_t SSIZE_T;
#endif

#define WDDM_CHECKED(name, type, operation)                                 \
	static inline NTSTATUS name(type Left, type Right, type *Result)    \
	{                                                                   \
		if (!__builtin_##operation##_overflow(Left, Right, Result)) \
			return STATUS_SUCCESS;                              \
		*Result = (type)-1;                                         \
		return STATUS_INTEGER_OVERFLOW;                             \
	}
#define WDDM_ARITHMETIC(name, type)             \
	WDDM_CHECKED(Rtl##name##Add, type, add) \
	WDDM_CHECKED(Rtl##name##Sub, type, sub) \
	WDDM_CHECKED(Rtl##name##Mult, type, mul)
#define WDDM_CONVERT(name, type, to_name, to_type)                                   \
	static inline NTSTATUS Rtl##name##To##to_name(type Operand, to_type *Result) \
	{                                                                            \
		if (!__builtin_add_overflow(Operand, 0, Result))                     \
			return STATUS_SUCCESS;                                       \
		*Result = (to_type)-1;                                               \
		return STATUS_INTEGER_OVERFLOW;                                      \
	}
/* From one type to every type. */
#define WDDM_CONVERT_ALL(name, type)                   \
	WDDM_CONVERT(name, type, Int8, INT8)           \
	WDDM_CONVERT(name, type, UInt8, UINT8)         \
	WDDM_CONVERT(name, type, Short, SHORT)         \
	WDDM_CONVERT(name, type, UShort, USHORT)       \
	WDDM_CONVERT(name, type, Int, INT)             \
	WDDM_CONVERT(name, type, UInt, UINT)           \
	WDDM_CONVERT(name, type, Long, LONG)           \
	WDDM_CONVERT(name, type, ULong, ULONG)         \
	WDDM_CONVERT(name, type, LongLong, LONGLONG)   \
	WDDM_CONVERT(name, type, ULongLong, ULONGLONG) \
	WDDM_CONVERT(name, type, IntPtr, INT_PTR)      \
	WDDM_CONVERT(name, type, UIntPtr, UINT_PTR)    \
	WDDM_CONVERT(name, type, LongPtr, LONG_PTR)    \
	WDDM_CONVERT(name, type, ULongPtr, ULONG_PTR)  \
	WDDM_CONVERT(name, type, PtrdiffT, ptrdiff_t)  \
	WDDM_CONVERT(name, type, SizeT, SIZE_T)        \
	WDDM_CONVERT(name, type, SSIZET, SSIZE_T)      \
	WDDM_CONVERT(name, type, SIZET, SIZE_T)        \
	WDDM_CONVERT(name, type, Char, CHAR)           \
	WDDM_CONVERT(name, type, UChar, UCHAR)         \
	WDDM_CONVERT(name, type, Byte, BYTE)           \
	WDDM_CONVERT(name, type, Word, WORD)           \
	WDDM_CONVERT(name, type, DWord, DWORD)         \
	WDDM_CONVERT(name, type, DWordPtr, ULONG_PTR)

WDDM_ARITHMETIC(Int8, INT8)
WDDM_ARITHMETIC(UInt8, UINT8)
WDDM_ARITHMETIC(Short, SHORT)
WDDM_ARITHMETIC(UShort, USHORT)
WDDM_ARITHMETIC(Int, INT)
WDDM_ARITHMETIC(UInt, UINT)
WDDM_ARITHMETIC(Long, LONG)
WDDM_ARITHMETIC(ULong, ULONG)
WDDM_ARITHMETIC(LongLong, LONGLONG)
WDDM_ARITHMETIC(ULongLong, ULONGLONG)
WDDM_ARITHMETIC(IntPtr, INT_PTR)
WDDM_ARITHMETIC(UIntPtr, UINT_PTR)
WDDM_ARITHMETIC(LongPtr, LONG_PTR)
WDDM_ARITHMETIC(ULongPtr, ULONG_PTR)
WDDM_ARITHMETIC(PtrdiffT, ptrdiff_t)
WDDM_ARITHMETIC(SizeT, SIZE_T)
WDDM_ARITHMETIC(SSIZET, SSIZE_T)
WDDM_ARITHMETIC(SIZET, SIZE_T)
WDDM_ARITHMETIC(DWordPtr, ULONG_PTR)
WDDM_ARITHMETIC(Word, WORD)
WDDM_ARITHMETIC(DWord, DWORD)

WDDM_CONVERT_ALL(Int8, INT8)
WDDM_CONVERT_ALL(UInt8, UINT8)
WDDM_CONVERT_ALL(Short, SHORT)
WDDM_CONVERT_ALL(UShort, USHORT)
WDDM_CONVERT_ALL(Int, INT)
WDDM_CONVERT_ALL(UInt, UINT)
WDDM_CONVERT_ALL(Long, LONG)
WDDM_CONVERT_ALL(ULong, ULONG)
WDDM_CONVERT_ALL(LongLong, LONGLONG)
WDDM_CONVERT_ALL(ULongLong, ULONGLONG)
WDDM_CONVERT_ALL(IntPtr, INT_PTR)
WDDM_CONVERT_ALL(UIntPtr, UINT_PTR)
WDDM_CONVERT_ALL(LongPtr, LONG_PTR)
WDDM_CONVERT_ALL(ULongPtr, ULONG_PTR)
WDDM_CONVERT_ALL(PtrdiffT, ptrdiff_t)
WDDM_CONVERT_ALL(SizeT, SIZE_T)
WDDM_CONVERT_ALL(SSIZET, SSIZE_T)
WDDM_CONVERT_ALL(SIZET, SIZE_T)

#undef WDDM_CONVERT_ALL
#undef WDDM_CONVERT
#undef WDDM_ARITHMETIC
#undef WDDM_CHECKED

#ifdef __cplusplus
}
#endif

#endif
