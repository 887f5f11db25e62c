/* SPDX-License-Identifier: MIT */
/*
 * Strings in buffers whose size is known: copy, append, length, printf. Cch functions count
 * characters, Cb functions bytes. The result is always terminated; STATUS_BUFFER_OVERFLOW: it was
 * cut. STATUS_INVALID_PARAMETER: the size is 0 or too large, or there is no terminator.
 *
 * W functions take the 16-bit characters of driver source and call nothing of libc. Formats are
 * those of DbgPrint. Source: the ntstrsafe.h pages of the Windows driver documentation.
 */
#ifndef WDDM_NTSTRSAFE_H
#define WDDM_NTSTRSAFE_H

#include <stdarg.h>

#include "ntddk.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NTSTRSAFE_MAX_CCH                2147483647
#define NTSTRSAFE_MAX_LENGTH             (NTSTRSAFE_MAX_CCH - 1)
#define NTSTRSAFE_UNICODE_STRING_MAX_CCH (0xFFFF / sizeof(WCHAR))

typedef CHAR *NTSTRSAFE_PSTR;
typedef const CHAR *NTSTRSAFE_PCSTR;
typedef WCHAR *NTSTRSAFE_PWSTR;
typedef const WCHAR *NTSTRSAFE_PCWSTR;

/* One family of functions; X is the suffix, TYPE the character. */
#define WDDM_STRSAFE(X, TYPE)                                                                      \
	static inline NTSTATUS RtlStringCchLength##X(const TYPE *psz, SIZE_T cchMax,               \
						     SIZE_T *pcchLength)                           \
	{                                                                                          \
		SIZE_T length = 0;                                                                 \
		if (pcchLength)                                                                    \
			*pcchLength = 0;                                                           \
		if (!psz || cchMax > NTSTRSAFE_MAX_CCH)                                            \
			return STATUS_INVALID_PARAMETER;                                           \
		while (length < cchMax && psz[length])                                             \
			length++;                                                                  \
		if (length == cchMax)                                                              \
			return STATUS_INVALID_PARAMETER;                                           \
		if (pcchLength)                                                                    \
			*pcchLength = length;                                                      \
		return STATUS_SUCCESS;                                                             \
	}                                                                                          \
	static inline NTSTATUS RtlStringCchCopyN##X(TYPE *pszDest, SIZE_T cchDest,                 \
						    const TYPE *pszSrc, SIZE_T cchToCopy)          \
	{                                                                                          \
		SIZE_T i = 0;                                                                      \
		if (!cchDest || cchDest > NTSTRSAFE_MAX_CCH)                                       \
			return STATUS_INVALID_PARAMETER;                                           \
		while (i + 1 < cchDest && i < cchToCopy && pszSrc[i]) {                            \
			pszDest[i] = pszSrc[i];                                                    \
			i++;                                                                       \
		}                                                                                  \
		pszDest[i] = 0;                                                                    \
		return i < cchToCopy && pszSrc[i] ? STATUS_BUFFER_OVERFLOW : STATUS_SUCCESS;       \
	}                                                                                          \
	static inline NTSTATUS RtlStringCchCopy##X(TYPE *pszDest, SIZE_T cchDest,                  \
						   const TYPE *pszSrc)                             \
	{                                                                                          \
		return RtlStringCchCopyN##X(pszDest, cchDest, pszSrc, NTSTRSAFE_MAX_CCH);          \
	}                                                                                          \
	static inline NTSTATUS RtlStringCchCatN##X(TYPE *pszDest, SIZE_T cchDest,                  \
						   const TYPE *pszSrc, SIZE_T cchToAppend)         \
	{                                                                                          \
		SIZE_T used = 0;                                                                   \
		NTSTATUS status = RtlStringCchLength##X(pszDest, cchDest, &used);                  \
		if (!NT_SUCCESS(status))                                                           \
			return status;                                                             \
		return RtlStringCchCopyN##X(pszDest + used, cchDest - used, pszSrc, cchToAppend);  \
	}                                                                                          \
	static inline NTSTATUS RtlStringCchCat##X(TYPE *pszDest, SIZE_T cchDest,                   \
						  const TYPE *pszSrc)                              \
	{                                                                                          \
		return RtlStringCchCatN##X(pszDest, cchDest, pszSrc, NTSTRSAFE_MAX_CCH);           \
	}                                                                                          \
	static inline NTSTATUS RtlStringCchVPrintf##X(TYPE *pszDest, SIZE_T cchDest,               \
						      const TYPE *pszFormat, va_list argList)      \
	{                                                                                          \
		if (!cchDest || cchDest > NTSTRSAFE_MAX_CCH)                                       \
			return STATUS_INVALID_PARAMETER;                                           \
		return WddmFormat##X(pszDest, cchDest, pszFormat, argList);                        \
	}                                                                                          \
	static inline NTSTATUS RtlStringCchPrintf##X(TYPE *pszDest, SIZE_T cchDest,                \
						     const TYPE *pszFormat, ...)                   \
	{                                                                                          \
		NTSTATUS status;                                                                   \
		va_list arguments;                                                                 \
		va_start(arguments, pszFormat);                                                    \
		status = RtlStringCchVPrintf##X(pszDest, cchDest, pszFormat, arguments);           \
		va_end(arguments);                                                                 \
		return status;                                                                     \
	}                                                                                          \
	static inline NTSTATUS RtlStringCbLength##X(const TYPE *psz, SIZE_T cbMax,                 \
						    SIZE_T *pcbLength)                             \
	{                                                                                          \
		SIZE_T length = 0;                                                                 \
		NTSTATUS status = RtlStringCchLength##X(psz, cbMax / sizeof(TYPE), &length);       \
		if (pcbLength)                                                                     \
			*pcbLength = length * sizeof(TYPE);                                        \
		return status;                                                                     \
	}                                                                                          \
	static inline NTSTATUS RtlStringCbCopy##X(TYPE *pszDest, SIZE_T cbDest,                    \
						  const TYPE *pszSrc)                              \
	{                                                                                          \
		return RtlStringCchCopy##X(pszDest, cbDest / sizeof(TYPE), pszSrc);                \
	}                                                                                          \
	static inline NTSTATUS RtlStringCbCopyN##X(TYPE *pszDest, SIZE_T cbDest,                   \
						   const TYPE *pszSrc, SIZE_T cbCount)             \
	{                                                                                          \
		return RtlStringCchCopyN##X(pszDest, cbDest / sizeof(TYPE), pszSrc,                \
					    cbCount / sizeof(TYPE));                               \
	}                                                                                          \
	static inline NTSTATUS RtlStringCbCat##X(TYPE *pszDest, SIZE_T cbDest, const TYPE *pszSrc) \
	{                                                                                          \
		return RtlStringCchCat##X(pszDest, cbDest / sizeof(TYPE), pszSrc);                 \
	}                                                                                          \
	static inline NTSTATUS RtlStringCbCatN##X(TYPE *pszDest, SIZE_T cbDest,                    \
						  const TYPE *pszSrc, SIZE_T cbCount)              \
	{                                                                                          \
		return RtlStringCchCatN##X(pszDest, cbDest / sizeof(TYPE), pszSrc,                 \
					   cbCount / sizeof(TYPE));                                \
	}                                                                                          \
	static inline NTSTATUS RtlStringCbVPrintf##X(TYPE *pszDest, SIZE_T cbDest,                 \
						     const TYPE *pszFormat, va_list argList)       \
	{                                                                                          \
		return RtlStringCchVPrintf##X(pszDest, cbDest / sizeof(TYPE), pszFormat, argList); \
	}                                                                                          \
	static inline NTSTATUS RtlStringCbPrintf##X(TYPE *pszDest, SIZE_T cbDest,                  \
						    const TYPE *pszFormat, ...)                    \
	{                                                                                          \
		NTSTATUS status;                                                                   \
		va_list arguments;                                                                 \
		va_start(arguments, pszFormat);                                                    \
		status = RtlStringCbVPrintf##X(pszDest, cbDest, pszFormat, arguments);             \
		va_end(arguments);                                                                 \
		return status;                                                                     \
	}

WDDM_STRSAFE(A, CHAR)
WDDM_STRSAFE(W, WCHAR)
#undef WDDM_STRSAFE

/* ---- counted strings: Length changes, MaximumLength is the size; no terminator is needed ---- */

static inline NTSTATUS RtlUnicodeStringInit(PUNICODE_STRING DestinationString, PCWSTR pszSrc)
{
	NTSTATUS status = RtlInitUnicodeStringEx(DestinationString, pszSrc);

	return NT_SUCCESS(status) ? status : STATUS_INVALID_PARAMETER;
}

static inline NTSTATUS RtlUnicodeStringValidate(PCUNICODE_STRING SourceString)
{
	if (SourceString && ((SourceString->Length | SourceString->MaximumLength) % sizeof(WCHAR) ||
			     SourceString->Length > SourceString->MaximumLength ||
			     (!SourceString->Buffer && SourceString->MaximumLength)))
		return STATUS_INVALID_PARAMETER;
	return STATUS_SUCCESS;
}

/* Appends what fits. */
static inline NTSTATUS RtlUnicodeStringCat(PUNICODE_STRING DestinationString,
					   PCUNICODE_STRING SourceString)
{
	NTSTATUS status = RtlUnicodeStringValidate(DestinationString);
	UNICODE_STRING part;

	if (NT_SUCCESS(status))
		status = RtlUnicodeStringValidate(SourceString);
	if (!NT_SUCCESS(status))
		return status;
	part = *SourceString;
	if (part.Length > DestinationString->MaximumLength - DestinationString->Length) {
		part.Length =
			(USHORT)(DestinationString->MaximumLength - DestinationString->Length);
		status = STATUS_BUFFER_OVERFLOW;
	}
	(void)RtlAppendUnicodeStringToString(DestinationString, &part);
	return status;
}

static inline NTSTATUS RtlUnicodeStringCopy(PUNICODE_STRING DestinationString,
					    PCUNICODE_STRING SourceString)
{
	DestinationString->Length = 0;
	return RtlUnicodeStringCat(DestinationString, SourceString);
}

static inline NTSTATUS RtlUnicodeStringCatString(PUNICODE_STRING DestinationString, PCWSTR pszSrc)
{
	UNICODE_STRING source;
	NTSTATUS status = RtlUnicodeStringInit(&source, pszSrc);

	return NT_SUCCESS(status) ? RtlUnicodeStringCat(DestinationString, &source) : status;
}

static inline NTSTATUS RtlUnicodeStringCopyString(PUNICODE_STRING DestinationString, PCWSTR pszSrc)
{
	DestinationString->Length = 0;
	return RtlUnicodeStringCatString(DestinationString, pszSrc);
}

/* One character of the buffer holds a terminator, which Windows does not need. */
static inline NTSTATUS RtlUnicodeStringVPrintf(PUNICODE_STRING DestinationString, PCWSTR pszFormat,
					       va_list argList)
{
	SIZE_T length = 0;
	NTSTATUS status = RtlUnicodeStringValidate(DestinationString);

	if (!NT_SUCCESS(status))
		return status;
	status = RtlStringCbVPrintfW(DestinationString->Buffer, DestinationString->MaximumLength,
				     pszFormat, argList);
	if (status != STATUS_INVALID_PARAMETER)
		(void)RtlStringCbLengthW(DestinationString->Buffer,
					 DestinationString->MaximumLength, &length);
	DestinationString->Length = (USHORT)length;
	return status;
}

static inline NTSTATUS RtlUnicodeStringPrintf(PUNICODE_STRING DestinationString, PCWSTR pszFormat,
					      ...)
{
	NTSTATUS status;
	va_list arguments;

	va_start(arguments, pszFormat);
	status = RtlUnicodeStringVPrintf(DestinationString, pszFormat, arguments);
	va_end(arguments);
	return status;
}

#ifdef __cplusplus
}
#endif

#endif
