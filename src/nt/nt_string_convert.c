/* SPDX-License-Identifier: MIT */
/*
 * Conversions of counted strings: case, ANSI, numbers, GUIDs. Those that allocate use paged pool,
 * which RtlFreeUnicodeString and RtlFreeAnsiString free. Stateless.
 */
#include "nt/nt_internal.h"

#include <stdio.h>
#include <string.h>

#define STRING_TAG 0x72745352u /* "RStr" */

/* Allocates a buffer of the string if the caller asked for it. */
static NTSTATUS prepare(void **buffer, USHORT *maximum, uint32_t bytes, uint32_t terminator,
			bool allocate_it)
{
	if (bytes + terminator > UINT16_MAX)
		return STATUS_INVALID_PARAMETER_2;
	if (!allocate_it)
		return bytes <= *maximum ? STATUS_SUCCESS : STATUS_BUFFER_OVERFLOW;
	*buffer = ExAllocatePoolWithTag(PagedPool, bytes + terminator, STRING_TAG);
	if (!*buffer)
		return STATUS_NO_MEMORY;
	*maximum = (USHORT)(bytes + terminator);
	return STATUS_SUCCESS;
}

NTSTATUS RtlUpcaseUnicodeString(PUNICODE_STRING DestinationString, PCUNICODE_STRING SourceString,
				BOOLEAN AllocateDestinationString)
{
	void *buffer = DestinationString->Buffer;
	NTSTATUS status;

	nt_limit(vmm_nt_current(), "RtlUpcaseUnicodeString", PASSIVE_LEVEL);
	if (AllocateDestinationString && !SourceString->Length) {
		*DestinationString = (UNICODE_STRING){0};
		return STATUS_SUCCESS;
	}
	status = prepare(&buffer, &DestinationString->MaximumLength, SourceString->Length, 0,
			 AllocateDestinationString);
	if (!NT_SUCCESS(status) || status == STATUS_BUFFER_OVERFLOW)
		return status;
	DestinationString->Buffer = buffer;
	DestinationString->Length = SourceString->Length;
	for (size_t i = 0; i < SourceString->Length / sizeof(WCHAR); i++)
		DestinationString->Buffer[i] = RtlUpcaseUnicodeChar(SourceString->Buffer[i]);
	return STATUS_SUCCESS;
}

NTSTATUS RtlUnicodeStringToAnsiString(PANSI_STRING DestinationString, PCUNICODE_STRING SourceString,
				      BOOLEAN AllocateDestinationString)
{
	uint32_t count = SourceString->Length / (uint32_t)sizeof(WCHAR);
	void *buffer = DestinationString->Buffer;
	NTSTATUS status;

	nt_limit(vmm_nt_current(), "RtlUnicodeStringToAnsiString", PASSIVE_LEVEL);
	status = prepare(&buffer, &DestinationString->MaximumLength,
			 AllocateDestinationString ? count : count + 1,
			 AllocateDestinationString ? 1 : 0, AllocateDestinationString);
	if (!NT_SUCCESS(status))
		return status;
	DestinationString->Buffer = buffer;
	DestinationString->Length = (USHORT)count;
	for (uint32_t i = 0; i < count; i++) {
		WCHAR c = SourceString->Buffer[i];

		DestinationString->Buffer[i] = c < 256 ? (char)c : '?';
	}
	DestinationString->Buffer[count] = 0;
	return STATUS_SUCCESS;
}

NTSTATUS RtlAnsiStringToUnicodeString(PUNICODE_STRING DestinationString, PCANSI_STRING SourceString,
				      BOOLEAN AllocateDestinationString)
{
	uint32_t count = SourceString->Length, bytes = count * (uint32_t)sizeof(WCHAR);
	void *buffer = DestinationString->Buffer;
	NTSTATUS status;

	nt_limit(vmm_nt_current(), "RtlAnsiStringToUnicodeString", PASSIVE_LEVEL);
	status = prepare(&buffer, &DestinationString->MaximumLength,
			 AllocateDestinationString ? bytes : bytes + (uint32_t)sizeof(WCHAR),
			 AllocateDestinationString ? (uint32_t)sizeof(WCHAR) : 0,
			 AllocateDestinationString);
	if (!NT_SUCCESS(status))
		return status;
	DestinationString->Buffer = buffer;
	DestinationString->Length = (USHORT)bytes;
	for (uint32_t i = 0; i < count; i++)
		DestinationString->Buffer[i] = (WCHAR)(unsigned char)SourceString->Buffer[i];
	DestinationString->Buffer[count] = 0;
	return STATUS_SUCCESS;
}

VOID RtlFreeUnicodeString(PUNICODE_STRING UnicodeString)
{
	nt_limit(vmm_nt_current(), "RtlFreeUnicodeString", APC_LEVEL);
	if (UnicodeString->Buffer)
		ExFreePool(UnicodeString->Buffer);
	*UnicodeString = (UNICODE_STRING){0};
}

VOID RtlFreeAnsiString(PANSI_STRING AnsiString)
{
	nt_limit(vmm_nt_current(), "RtlFreeAnsiString", APC_LEVEL);
	if (AnsiString->Buffer)
		ExFreePool(AnsiString->Buffer);
	*AnsiString = (ANSI_STRING){0};
}

/* ---- numbers ---- */

static ULONG digit_of(WCHAR c)
{
	if (c >= '0' && c <= '9')
		return (ULONG)(c - '0');
	c = RtlUpcaseUnicodeChar(c);
	return c >= 'A' && c <= 'F' ? (ULONG)(c - 'A') + 10 : UINT32_MAX;
}

/* The base of a prefix 0x, 0o or 0b; 10 and no characters without one. */
static ULONG base_of(const WCHAR *at, size_t left, size_t *used)
{
	*used = 2;
	if (left >= 2 && at[0] == '0') {
		switch (at[1]) {
		case 'x':
			return 16;
		case 'o':
			return 8;
		case 'b':
			return 2;
		default:
			break;
		}
	}
	*used = 0;
	return 10;
}

NTSTATUS RtlUnicodeStringToInteger(PCUNICODE_STRING String, ULONG Base, PULONG Value)
{
	const WCHAR *at = String->Buffer, *end = at + String->Length / sizeof(WCHAR);
	bool negative = false;
	ULONG value = 0;
	size_t used = 0;

	nt_limit(vmm_nt_current(), "RtlUnicodeStringToInteger", PASSIVE_LEVEL);
	if (Base != 0 && Base != 2 && Base != 8 && Base != 10 && Base != 16)
		return STATUS_INVALID_PARAMETER;
	while (at < end && *at <= ' ')
		at++;
	if (at < end && (*at == '-' || *at == '+'))
		negative = *at++ == '-';
	if (!Base)
		Base = base_of(at, (size_t)(end - at), &used);
	for (at += used; at < end && digit_of(*at) < Base; at++)
		value = value * Base + digit_of(*at);
	*Value = negative ? 0u - value : value;
	return STATUS_SUCCESS;
}

NTSTATUS RtlInt64ToUnicodeString(ULONGLONG Value, ULONG Base, PUNICODE_STRING String)
{
	ULONG base = Base ? Base : 10;
	WCHAR digits[64];
	size_t count = 0;

	if (base != 2 && base != 8 && base != 10 && base != 16)
		return STATUS_INVALID_PARAMETER;
	do {
		digits[count++] = (WCHAR) "0123456789ABCDEF"[Value % base];
		Value /= base;
	} while (Value);
	if (count * sizeof(WCHAR) > String->MaximumLength)
		return STATUS_BUFFER_OVERFLOW;
	for (size_t i = 0; i < count; i++)
		String->Buffer[i] = digits[count - 1 - i];
	String->Length = (USHORT)(count * sizeof(WCHAR));
	if (String->Length + sizeof(WCHAR) <= String->MaximumLength)
		String->Buffer[count] = 0;
	return STATUS_SUCCESS;
}

NTSTATUS RtlIntegerToUnicodeString(ULONG Value, ULONG Base, PUNICODE_STRING String)
{
	nt_limit(vmm_nt_current(), "RtlIntegerToUnicodeString", PASSIVE_LEVEL);
	return RtlInt64ToUnicodeString(Value, Base, String);
}

/* ---- GUIDs: {00000000-0000-0000-0000-000000000000} ---- */

#define GUID_CHARACTERS 38

NTSTATUS RtlStringFromGUID(const GUID *Guid, PUNICODE_STRING GuidString)
{
	char text[GUID_CHARACTERS + 1];
	ANSI_STRING ansi;

	snprintf(text, sizeof(text), "{%08X-%04X-%04X-%02X%02X-%02X%02X%02X%02X%02X%02X}",
		 Guid->Data1, Guid->Data2, Guid->Data3, Guid->Data4[0], Guid->Data4[1],
		 Guid->Data4[2], Guid->Data4[3], Guid->Data4[4], Guid->Data4[5], Guid->Data4[6],
		 Guid->Data4[7]);
	RtlInitAnsiString(&ansi, text);
	return RtlAnsiStringToUnicodeString(GuidString, &ansi, TRUE);
}

/* Reads digits of base 16; sets *valid to false at another character. */
static ULONG hexadecimal(const WCHAR *at, int count, bool *valid)
{
	ULONG value = 0;

	for (int i = 0; i < count; i++) {
		ULONG digit = digit_of(at[i]);

		*valid = *valid && digit < 16;
		value = value * 16 + digit % 16;
	}
	return value;
}

NTSTATUS RtlGUIDFromString(PCUNICODE_STRING GuidString, GUID *Guid)
{
	static const char dashes[] = {9, 14, 19, 24};
	const WCHAR *text = GuidString->Buffer;
	GUID guid;
	bool valid;

	nt_limit(vmm_nt_current(), "RtlGUIDFromString", PASSIVE_LEVEL);
	if (GuidString->Length < GUID_CHARACTERS * sizeof(WCHAR))
		return STATUS_INVALID_PARAMETER;
	valid = text[0] == '{' && text[GUID_CHARACTERS - 1] == '}';
	for (size_t i = 0; i < sizeof(dashes); i++)
		valid = valid && text[(int)dashes[i]] == '-';
	guid.Data1 = hexadecimal(text + 1, 8, &valid);
	guid.Data2 = (uint16_t)hexadecimal(text + 10, 4, &valid);
	guid.Data3 = (uint16_t)hexadecimal(text + 15, 4, &valid);
	for (int i = 0; i < 8; i++)
		guid.Data4[i] = (uint8_t)hexadecimal(text + (i < 2 ? 20 : 21) + 2 * i, 2, &valid);
	if (!valid)
		return STATUS_INVALID_PARAMETER;
	*Guid = guid;
	return STATUS_SUCCESS;
}
