/* SPDX-License-Identifier: MIT */
/*
 * Trace messages of drivers that are written for WPP. Their formats have conversions such as
 * %!STATUS!, whose meaning is the name between the marks. Each becomes a plain conversion here, and
 * the text is printed as debug output.
 */
#include "nt/nt_internal.h"

#include <string.h>

enum { LEVEL_WARNING = 3, FORMAT_BYTES = 512 };

static const struct {
	const char *name, *conversion;
} conversions[] = {
	{"STATUS", "0x%08x"},
	{"NTSTATUS", "0x%08x"},
	{"HRESULT", "0x%08x"},
	{"WINERROR", "%u"},
	{"BOOLEAN", "%u"},
	{"BOOL", "%u"},
	{"bool", "%u"},
	{"UBYTE", "%u"},
	{"irql", "%u"},
	{"CHAR", "%c"},
	{"PVOID", "%p"},
	{"HANDLE", "%p"},
	{"ULONG", "%u"},
	{"LONG", "%d"},
	{"ULONG64", "%I64u"},
	{"USTR", "%wZ"},
	{"PUNICODE_STRING", "%wZ"},
};

/* Returns NULL for a name whose argument has an unknown type. */
static const char *conversion_of(const char *name, size_t length)
{
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(conversions); i++)
		if (strlen(conversions[i].name) == length &&
		    !strncmp(conversions[i].name, name, length))
			return conversions[i].conversion;
	return NULL;
}

static size_t append(char *text, size_t used, const char *more, size_t length)
{
	if (length > FORMAT_BYTES - 1 - used)
		length = FORMAT_BYTES - 1 - used;
	memcpy(text + used, more, length);
	return used + length;
}

/* Writes FORMAT with plain conversions. It ends before an argument of unknown type. */
static void translate(char *text, const char *function, const char *format)
{
	size_t used = append(text, 0, function, strlen(function));

	used = append(text, used, ": ", 2);
	while (*format) {
		const char *mark = strstr(format, "%!"), *end = mark ? strchr(mark + 2, '!') : NULL;
		const char *plain;

		if (!end) {
			used = append(text, used, format, strlen(format));
			break;
		}
		used = append(text, used, format, (size_t)(mark - format));
		format = end + 1;
		if (!strncmp(mark, "%!FUNC!", 7)) {
			used = append(text, used, function, strlen(function));
			continue;
		}
		plain = conversion_of(mark + 2, (size_t)(end - mark - 2));
		if (!plain) {
			used = append(text, used, "...", 3);
			break;
		}
		used = append(text, used, plain, strlen(plain));
	}
	text[used] = '\0';
}

static void trace(ULONG level, const char *function, const char *format, va_list arguments)
{
	char plain[FORMAT_BYTES];

	/* As the recorder of WPP does, which shows nothing unless a person asks for it. */
	if (level > LEVEL_WARNING)
		return;
	translate(plain, function, format);
	nt_print(DPFLTR_IHVVIDEO_ID, level, plain, arguments);
}

VOID WddmTraceMessage(ULONG Level, const char *Function, const char *Format, ...)
{
	va_list arguments;

	va_start(arguments, Format);
	trace(Level, Function, Format, arguments);
	va_end(arguments);
}

VOID WddmTraceMessageWide(ULONG Level, const char *Function, const WCHAR *Format, ...)
{
	char format[FORMAT_BYTES];
	va_list arguments;
	size_t i;

	for (i = 0; Format[i] && i + 1 < sizeof(format); i++)
		format[i] = Format[i] < 0x80 ? (char)Format[i] : '?';
	format[i] = '\0';
	va_start(arguments, Format);
	trace(Level, Function, format, arguments);
	va_end(arguments);
}
