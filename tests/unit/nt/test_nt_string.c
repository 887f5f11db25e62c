/* SPDX-License-Identifier: MIT */
/* Counted strings, conversions, ntstrsafe.h and ntintsafe.h. */
#include "nt_world.h"

#include <ntintsafe.h>
#include <ntstrsafe.h>

DECLARE_CONST_UNICODE_STRING(constant_name, L"Vram");

static void expect_text(PCUNICODE_STRING string, PCWSTR text)
{
	UNICODE_STRING expected;

	RtlInitUnicodeString(&expected, text);
	assert_int_equal(string->Length, expected.Length);
	assert_memory_equal(string->Buffer, expected.Buffer, expected.Length);
}

static void counted_strings_are_copied_and_compared(void **state)
{
	WCHAR buffer[6];
	UNICODE_STRING string, other = RTL_CONSTANT_STRING(L"vRAMs");
	STRING narrow = RTL_CONSTANT_STRING("abc"), upper;

	(void)state;
	RtlInitEmptyUnicodeString(&string, buffer, sizeof(buffer));
	RtlCopyUnicodeString(&string, &constant_name);
	expect_text(&string, L"Vram");
	assert_int_equal(buffer[4], 0);
	assert_int_equal(RtlAppendUnicodeToString(&string, L"-x"), STATUS_SUCCESS);
	assert_int_equal(RtlAppendUnicodeToString(&string, L"y"), STATUS_BUFFER_TOO_SMALL);
	expect_text(&string, L"Vram-x");
	assert_true(RtlPrefixUnicodeString(&constant_name, &other, TRUE));
	assert_false(RtlPrefixUnicodeString(&constant_name, &other, FALSE));
	assert_true(RtlCompareUnicodeString(&constant_name, &other, TRUE) < 0);
	assert_true(RtlCompareUnicodeString(&constant_name, &other, FALSE) < 0);
	assert_int_equal(RtlUpcaseUnicodeChar(0xE9), 0xC9);
	assert_int_equal(RtlUpcaseUnicodeChar(0xF7), 0xF7);
	assert_int_equal(RtlDowncaseUnicodeChar('Q'), 'q');
	RtlInitAnsiString(&upper, "ABC");
	assert_true(RtlEqualString(&narrow, &upper, TRUE));
	assert_false(RtlEqualString(&narrow, &upper, FALSE));
	RtlInitAnsiString(&upper, NULL);
	assert_int_equal(upper.MaximumLength, 0);
}

static void strings_are_converted(void **state)
{
	char text[5];
	ANSI_STRING narrow = {0, sizeof(text), text}, allocated;
	UNICODE_STRING wide, number = RTL_CONSTANT_STRING(L"  -0x1F"), back;
	WCHAR buffer[12];
	ULONG value = 0;

	(void)state;
	assert_int_equal(RtlUnicodeStringToAnsiString(&narrow, &constant_name, FALSE),
			 STATUS_SUCCESS);
	assert_string_equal(text, "Vram");
	narrow.MaximumLength = 4;
	assert_int_equal(RtlUnicodeStringToAnsiString(&narrow, &constant_name, FALSE),
			 STATUS_BUFFER_OVERFLOW);
	assert_int_equal(RtlUnicodeStringToAnsiString(&allocated, &constant_name, TRUE),
			 STATUS_SUCCESS);
	assert_int_equal(RtlAnsiStringToUnicodeString(&wide, &allocated, TRUE), STATUS_SUCCESS);
	expect_text(&wide, L"Vram");
	RtlFreeAnsiString(&allocated);
	RtlFreeUnicodeString(&wide);
	assert_null(wide.Buffer);
	assert_int_equal(RtlUnicodeStringToInteger(&number, 0, &value), STATUS_SUCCESS);
	assert_int_equal(value, (ULONG)-31);
	assert_int_equal(RtlUnicodeStringToInteger(&number, 7, &value), STATUS_INVALID_PARAMETER);
	RtlInitEmptyUnicodeString(&back, buffer, sizeof(buffer));
	assert_int_equal(RtlIntegerToUnicodeString(4096, 16, &back), STATUS_SUCCESS);
	expect_text(&back, L"1000");
	back.MaximumLength = 4;
	assert_int_equal(RtlIntegerToUnicodeString(4096, 10, &back), STATUS_BUFFER_OVERFLOW);
	assert_int_equal(RtlUpcaseUnicodeString(&wide, &constant_name, TRUE), STATUS_SUCCESS);
	expect_text(&wide, L"VRAM");
	RtlFreeUnicodeString(&wide);
	RtlInitEmptyUnicodeString(&wide, buffer, sizeof(buffer));
	RtlInitEmptyUnicodeString(&back, buffer, sizeof(buffer));
	assert_int_equal(RtlUpcaseUnicodeString(&wide, &back, TRUE), STATUS_SUCCESS);
	assert_true(!wide.Buffer && !wide.MaximumLength && !wide.Length);
}

static void guids_are_written_and_read(void **state)
{
	const GUID guid = {0x4d36e968, 0xe325, 0x11ce, {0xbf, 0xc1, 8, 0, 0x2b, 0xe1, 3, 0x18}};
	UNICODE_STRING text;
	GUID again;

	(void)state;
	assert_int_equal(RtlStringFromGUID(&guid, &text), STATUS_SUCCESS);
	expect_text(&text, L"{4D36E968-E325-11CE-BFC1-08002BE10318}");
	assert_int_equal(RtlGUIDFromString(&text, &again), STATUS_SUCCESS);
	assert_memory_equal(&guid, &again, sizeof(guid));
	text.Buffer[9] = '+';
	assert_int_equal(RtlGUIDFromString(&text, &again), STATUS_INVALID_PARAMETER);
	text.Buffer[9] = '-';
	text.Buffer[37] = ')';
	assert_int_equal(RtlGUIDFromString(&text, &again), STATUS_INVALID_PARAMETER);
	RtlFreeUnicodeString(&text);
}

static void safe_strings_are_always_terminated(void **state)
{
	STRING counted = RTL_CONSTANT_STRING("ab");
	char text[8];
	SIZE_T length = 0;

	(void)state;
	assert_int_equal(RtlStringCbCopyA(text, sizeof(text), "ring"), STATUS_SUCCESS);
	assert_int_equal(RtlStringCchCatA(text, 8, "buffer"), STATUS_BUFFER_OVERFLOW);
	assert_string_equal(text, "ringbuf");
	assert_int_equal(RtlStringCchLengthA(text, 8, &length), STATUS_SUCCESS);
	assert_int_equal(length, 7);
	assert_int_equal(RtlStringCchLengthA(text, 7, &length), STATUS_INVALID_PARAMETER);
	assert_int_equal(RtlStringCchCopyA(text, 0, "x"), STATUS_INVALID_PARAMETER);
	assert_int_equal(RtlStringCchCopyNA(text, 8, "engine", 3), STATUS_SUCCESS);
	assert_string_equal(text, "eng");
	assert_int_equal(RtlStringCchPrintfA(text, 8, "%u:%ws", 12, L"ab"), STATUS_SUCCESS);
	assert_string_equal(text, "12:ab");
	assert_int_equal(RtlStringCchPrintfA(text, 8, "%Z %wZ", &counted, &constant_name),
			 STATUS_SUCCESS);
	assert_string_equal(text, "ab Vram");
	assert_int_equal(RtlStringCbPrintfA(text, 8, "%s", "12345678"), STATUS_BUFFER_OVERFLOW);
	assert_string_equal(text, "1234567");
}

static void wide_safe_strings_have_16_bits(void **state)
{
	WCHAR text[16];
	UNICODE_STRING string;
	SIZE_T length = 0;

	(void)state;
	assert_int_equal(RtlStringCbCopyW(text, sizeof(text), L"\x20AC"), STATUS_SUCCESS);
	assert_int_equal(RtlStringCchCatW(text, 16, L"uro"), STATUS_SUCCESS);
	assert_int_equal(RtlStringCbLengthW(text, sizeof(text), &length), STATUS_SUCCESS);
	assert_int_equal(length, 8);
	assert_int_equal(RtlStringCchPrintfW(text, 16, L"%s-%S-%04x%c", L"\x20AC", "n", 0xAB, L'z'),
			 STATUS_SUCCESS);
	RtlInitUnicodeString(&string, text);
	expect_text(&string, L"\x20AC-n-00abz");
	RtlInitEmptyUnicodeString(&string, text, 8);
	assert_int_equal(RtlUnicodeStringPrintf(&string, L"%u", 12345), STATUS_BUFFER_OVERFLOW);
	expect_text(&string, L"123");
	assert_int_equal(RtlUnicodeStringCopyString(&string, L"abcde"), STATUS_BUFFER_OVERFLOW);
	expect_text(&string, L"abcd");
	string.Length = 10;
	assert_int_equal(RtlUnicodeStringCat(&string, &constant_name), STATUS_INVALID_PARAMETER);
}

static void integers_are_checked(void **state)
{
	ULONG sum = 0;
	LONG difference = 0;
	SIZE_T product = 0;
	USHORT narrow = 0;

	(void)state;
	assert_int_equal(RtlULongAdd(1, 2, &sum), STATUS_SUCCESS);
	assert_int_equal(sum, 3);
	assert_int_equal(RtlULongAdd(UINT32_MAX, 1, &sum), STATUS_INTEGER_OVERFLOW);
	assert_int_equal(sum, UINT32_MAX);
	assert_int_equal(RtlULongSub(1, 2, &sum), STATUS_INTEGER_OVERFLOW);
	assert_int_equal(RtlLongSub(INT32_MIN, 1, &difference), STATUS_INTEGER_OVERFLOW);
	assert_int_equal(RtlSizeTMult(SIZE_MAX / 2, 3, &product), STATUS_INTEGER_OVERFLOW);
	assert_int_equal(RtlSIZETAdd(SIZE_MAX - 1, 1, &product), STATUS_SUCCESS);
	assert_int_equal(RtlULongLongToULong(1ull << 32, &sum), STATUS_INTEGER_OVERFLOW);
	assert_int_equal(RtlULongLongToULong(77, &sum), STATUS_SUCCESS);
	assert_int_equal(sum, 77);
	assert_int_equal(RtlLongToULong(-1, &sum), STATUS_INTEGER_OVERFLOW);
	assert_int_equal(RtlULongToUShort(65536, &narrow), STATUS_INTEGER_OVERFLOW);
	assert_int_equal(narrow, 0xFFFF);
	assert_int_equal(RtlULongToLong(0x80000000, &difference), STATUS_INTEGER_OVERFLOW);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_SIM(counted_strings_are_copied_and_compared),
		ON_SIM(strings_are_converted),
		ON_SIM(guids_are_written_and_read),
		ON_SIM(safe_strings_are_always_terminated),
		ON_SIM(wide_safe_strings_have_16_bits),
		ON_SIM(integers_are_checked),
	};

	return cmocka_run_group_tests_name("nt_string", tests, NULL, NULL);
}
