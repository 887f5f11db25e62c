/* SPDX-License-Identifier: MIT */
/*
 * Counted strings: begin, compare, copy, append. Case is folded for Latin letters. Stateless; the
 * conversions, which allocate, are in nt_string_convert.c.
 */
#include "nt/nt_internal.h"

#include <string.h>

WCHAR RtlUpcaseUnicodeChar(WCHAR SourceCharacter)
{
	uint32_t c = SourceCharacter;

	if (c == 0xFF)
		return 0x178; /* LATIN SMALL LETTER Y WITH DIAERESIS */
	if ((c >= 'a' && c <= 'z') || (c >= 0xE0 && c < 0xFF && c != 0xF7))
		c -= 0x20;
	return (WCHAR)c;
}

WCHAR RtlDowncaseUnicodeChar(WCHAR SourceCharacter)
{
	uint32_t c = SourceCharacter;

	if ((c >= 'A' && c <= 'Z') || (c >= 0xC0 && c <= 0xDE && c != 0xD7))
		c += 0x20;
	return (WCHAR)c;
}

CHAR RtlUpperChar(CHAR Character)
{
	return Character >= 'a' && Character <= 'z' ? (CHAR)(Character - 0x20) : Character;
}

/* ---- begin ---- */

VOID RtlInitUnicodeString(PUNICODE_STRING DestinationString, PCWSTR SourceString)
{
	/* Lengths are USHORT bytes: a longer text is cut at the last whole character. */
	const size_t longest = (UINT16_MAX - 1) / sizeof(WCHAR) - 1;
	size_t length = 0;

	while (SourceString && SourceString[length] && length < longest)
		length++;
	DestinationString->Buffer = (PWSTR)(uintptr_t)SourceString;
	DestinationString->Length = (USHORT)(length * sizeof(WCHAR));
	DestinationString->MaximumLength =
		SourceString ? (USHORT)((length + 1) * sizeof(WCHAR)) : 0;
}

NTSTATUS RtlInitUnicodeStringEx(PUNICODE_STRING DestinationString, PCWSTR SourceString)
{
	RtlInitUnicodeString(DestinationString, SourceString);
	if (SourceString && SourceString[DestinationString->Length / sizeof(WCHAR)]) {
		*DestinationString = (UNICODE_STRING){0};
		return STATUS_NAME_TOO_LONG;
	}
	return STATUS_SUCCESS;
}

VOID RtlInitString(PSTRING DestinationString, PCSTR SourceString)
{
	size_t length = 0;

	while (SourceString && SourceString[length] && length < UINT16_MAX - 1)
		length++;
	DestinationString->Buffer = (PCHAR)(uintptr_t)SourceString;
	DestinationString->Length = (USHORT)length;
	DestinationString->MaximumLength = SourceString ? (USHORT)(length + 1) : 0;
}

VOID RtlInitAnsiString(PANSI_STRING DestinationString, PCSTR SourceString)
{
	RtlInitString(DestinationString, SourceString);
}

/* ---- compare ---- */

/* Of the first characters, at most; then by length. */
static LONG compare_wide(PCUNICODE_STRING a, PCUNICODE_STRING b, bool fold)
{
	size_t count = (a->Length < b->Length ? a->Length : b->Length) / sizeof(WCHAR);

	for (size_t i = 0; i < count; i++) {
		WCHAR x = a->Buffer[i], y = b->Buffer[i];

		if (fold) {
			x = RtlUpcaseUnicodeChar(x);
			y = RtlUpcaseUnicodeChar(y);
		}
		if (x != y)
			return (LONG)x - (LONG)y;
	}
	return (LONG)a->Length - (LONG)b->Length;
}

BOOLEAN RtlEqualUnicodeString(PCUNICODE_STRING String1, PCUNICODE_STRING String2,
			      BOOLEAN CaseInSensitive)
{
	return (BOOLEAN)(String1->Length == String2->Length &&
			 compare_wide(String1, String2, CaseInSensitive) == 0);
}

LONG RtlCompareUnicodeString(PCUNICODE_STRING String1, PCUNICODE_STRING String2,
			     BOOLEAN CaseInSensitive)
{
	return compare_wide(String1, String2, CaseInSensitive);
}

BOOLEAN RtlPrefixUnicodeString(PCUNICODE_STRING String1, PCUNICODE_STRING String2,
			       BOOLEAN CaseInSensitive)
{
	UNICODE_STRING part = *String2;

	if (String1->Length > String2->Length)
		return FALSE;
	part.Length = String1->Length;
	return RtlEqualUnicodeString(String1, &part, CaseInSensitive);
}

LONG RtlCompareString(const STRING *String1, const STRING *String2, BOOLEAN CaseInSensitive)
{
	size_t count = String1->Length < String2->Length ? String1->Length : String2->Length;

	for (size_t i = 0; i < count; i++) {
		CHAR x = String1->Buffer[i], y = String2->Buffer[i];

		if (CaseInSensitive) {
			x = RtlUpperChar(x);
			y = RtlUpperChar(y);
		}
		if (x != y)
			return (LONG)(unsigned char)x - (LONG)(unsigned char)y;
	}
	return (LONG)String1->Length - (LONG)String2->Length;
}

BOOLEAN RtlEqualString(const STRING *String1, const STRING *String2, BOOLEAN CaseInSensitive)
{
	return (BOOLEAN)(String1->Length == String2->Length &&
			 RtlCompareString(String1, String2, CaseInSensitive) == 0);
}

/* ---- copy and append ---- */

static void terminate(PUNICODE_STRING string)
{
	if (string->Length + sizeof(WCHAR) <= string->MaximumLength)
		string->Buffer[string->Length / sizeof(WCHAR)] = 0;
}

VOID RtlCopyUnicodeString(PUNICODE_STRING DestinationString, PCUNICODE_STRING SourceString)
{
	USHORT length = SourceString ? SourceString->Length : 0;

	if (length > DestinationString->MaximumLength)
		length = DestinationString->MaximumLength & (USHORT)~1u;
	if (length)
		memmove(DestinationString->Buffer, SourceString->Buffer, length);
	DestinationString->Length = length;
	terminate(DestinationString);
}

VOID RtlCopyString(PSTRING DestinationString, const STRING *SourceString)
{
	USHORT length = SourceString ? SourceString->Length : 0;

	if (length > DestinationString->MaximumLength)
		length = DestinationString->MaximumLength;
	if (length)
		memmove(DestinationString->Buffer, SourceString->Buffer, length);
	DestinationString->Length = length;
}

NTSTATUS RtlAppendUnicodeStringToString(PUNICODE_STRING Destination, PCUNICODE_STRING Source)
{
	if (Source->Length > Destination->MaximumLength - Destination->Length)
		return STATUS_BUFFER_TOO_SMALL;
	if (Source->Length)
		memmove((char *)Destination->Buffer + Destination->Length, Source->Buffer,
			Source->Length);
	Destination->Length = (USHORT)(Destination->Length + Source->Length);
	terminate(Destination);
	return STATUS_SUCCESS;
}

NTSTATUS RtlAppendUnicodeToString(PUNICODE_STRING Destination, PCWSTR Source)
{
	UNICODE_STRING source;

	if (!NT_SUCCESS(RtlInitUnicodeStringEx(&source, Source)))
		return STATUS_BUFFER_TOO_SMALL;
	return RtlAppendUnicodeStringToString(Destination, &source);
}
