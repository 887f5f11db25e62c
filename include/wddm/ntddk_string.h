/* SPDX-License-Identifier: MIT */
/*
 * Counted strings, characters, GUIDs and run-time helpers. Part of ntddk.h.
 *
 * Text is UTF-16; case is that of Latin letters. Between ANSI and Unicode every character below 256
 * has its own value, and others become '?'.
 */
#ifndef WDDM_NTDDK_STRING_H
#define WDDM_NTDDK_STRING_H

#include "ntddk_types.h"
#include "ntddk_status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct _STRING {
	USHORT Length;
	USHORT MaximumLength;
	PCHAR Buffer;
} STRING, *PSTRING, ANSI_STRING, *PANSI_STRING;
typedef const STRING *PCSTRING, *PCANSI_STRING;

#ifndef UNICODE_NULL
#define UNICODE_NULL ((WCHAR)0)
#endif
#ifndef UNICODE_STRING_MAX_BYTES
#define UNICODE_STRING_MAX_BYTES ((USHORT)65534)
#define UNICODE_STRING_MAX_CHARS 32767
#endif
#ifndef RTL_CONSTANT_STRING
#define RTL_CONSTANT_STRING(text)                                                        \
	{                                                                                \
		sizeof(text) - sizeof((text)[0]), sizeof(text), WDDM_STRING_BUFFER(text) \
	}
#endif
#ifdef __cplusplus
#define WDDM_STRING_BUFFER(text) const_cast<WddmCharacterOf<decltype(&(text)[0])>::type *>(text)
#else
#define WDDM_STRING_BUFFER(text) (text)
#endif
#ifndef DECLARE_CONST_UNICODE_STRING
#define DECLARE_CONST_UNICODE_STRING(name, text)                                 \
	const WCHAR name##_buffer[] = text;                                      \
	const UNICODE_STRING name = {sizeof(text) - sizeof(WCHAR), sizeof(text), \
				     (PWSTR)(ULONG_PTR)name##_buffer}
#endif
#ifndef DECLARE_UNICODE_STRING_SIZE
#define DECLARE_UNICODE_STRING_SIZE(name, characters) \
	WCHAR name##_buffer[characters];              \
	UNICODE_STRING name = {0, (characters) * sizeof(WCHAR), name##_buffer}
#endif

/* ---- characters [any] ---- */

WCHAR RtlUpcaseUnicodeChar(WCHAR SourceCharacter);
WCHAR RtlDowncaseUnicodeChar(WCHAR SourceCharacter);
CHAR RtlUpperChar(CHAR Character);

/* ---- strings: [any] if the text is resident, those that allocate [P] ---- */

VOID RtlInitUnicodeString(PUNICODE_STRING DestinationString, PCWSTR SourceString);
NTSTATUS RtlInitUnicodeStringEx(PUNICODE_STRING DestinationString, PCWSTR SourceString);
VOID RtlInitAnsiString(PANSI_STRING DestinationString, PCSTR SourceString);
VOID RtlInitString(PSTRING DestinationString, PCSTR SourceString);
static inline VOID RtlInitEmptyUnicodeString(PUNICODE_STRING DestinationString, PWSTR Buffer,
					     USHORT BufferSize)
{
	DestinationString->Length = 0;
	DestinationString->MaximumLength = BufferSize;
	DestinationString->Buffer = Buffer;
}

BOOLEAN RtlEqualUnicodeString(PCUNICODE_STRING String1, PCUNICODE_STRING String2,
			      BOOLEAN CaseInSensitive);
LONG RtlCompareUnicodeString(PCUNICODE_STRING String1, PCUNICODE_STRING String2,
			     BOOLEAN CaseInSensitive);
BOOLEAN RtlPrefixUnicodeString(PCUNICODE_STRING String1, PCUNICODE_STRING String2,
			       BOOLEAN CaseInSensitive);
BOOLEAN RtlEqualString(const STRING *String1, const STRING *String2, BOOLEAN CaseInSensitive);
LONG RtlCompareString(const STRING *String1, const STRING *String2, BOOLEAN CaseInSensitive);

/* What does not fit is left out. A terminator is added if there is space. */
VOID RtlCopyUnicodeString(PUNICODE_STRING DestinationString, PCUNICODE_STRING SourceString);
VOID RtlCopyString(PSTRING DestinationString, const STRING *SourceString);
/* STATUS_BUFFER_TOO_SMALL: nothing is changed. */
NTSTATUS RtlAppendUnicodeStringToString(PUNICODE_STRING Destination, PCUNICODE_STRING Source);
NTSTATUS RtlAppendUnicodeToString(PUNICODE_STRING Destination, PCWSTR Source);
NTSTATUS RtlUpcaseUnicodeString(PUNICODE_STRING DestinationString, PCUNICODE_STRING SourceString,
				BOOLEAN AllocateDestinationString);

NTSTATUS RtlUnicodeStringToAnsiString(PANSI_STRING DestinationString, PCUNICODE_STRING SourceString,
				      BOOLEAN AllocateDestinationString);
NTSTATUS RtlAnsiStringToUnicodeString(PUNICODE_STRING DestinationString, PCANSI_STRING SourceString,
				      BOOLEAN AllocateDestinationString);
#define RtlUnicodeStringToAnsiSize(string) (((string)->Length / (ULONG)sizeof(WCHAR)) + 1)
#define RtlAnsiStringToUnicodeSize(string) (((string)->Length + 1) * (ULONG)sizeof(WCHAR))
VOID RtlFreeUnicodeString(PUNICODE_STRING UnicodeString);
VOID RtlFreeAnsiString(PANSI_STRING AnsiString);

/* Base 0: 10, or what a prefix 0x, 0o or 0b says. */
NTSTATUS RtlUnicodeStringToInteger(PCUNICODE_STRING String, ULONG Base, PULONG Value);
NTSTATUS RtlIntegerToUnicodeString(ULONG Value, ULONG Base, PUNICODE_STRING String);
NTSTATUS RtlInt64ToUnicodeString(ULONGLONG Value, ULONG Base, PUNICODE_STRING String);
NTSTATUS RtlStringFromGUID(const GUID *Guid, PUNICODE_STRING GuidString); /* allocates */
NTSTATUS RtlGUIDFromString(PCUNICODE_STRING GuidString, GUID *Guid);

/* ---- memory [any] ---- */

SIZE_T RtlCompareMemory(const VOID *Source1, const VOID *Source2,
			SIZE_T Length); /* bytes that agree */

#ifdef __cplusplus
}
extern "C++" {
/*
 * The character type of a literal without const: C++ literals are const, counted strings are not.
 */
template <typename pointer> struct WddmCharacterOf;
template <typename character> struct WddmCharacterOf<const character *> {
	typedef character type;
};
template <typename character> struct WddmCharacterOf<character *> {
	typedef character type;
};
}
#endif

#endif
