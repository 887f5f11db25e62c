/* SPDX-License-Identifier: MIT */
/*
 * Debug output. Drivers write format strings for another ABI and library: %lu takes 32 bits, %I64x
 * takes 64, %ws, %ls and %S take UTF-16, %wZ a counted string. Each conversion is parsed here and
 * printed separately.
 */
#include "nt/nt_internal.h"

#include <stdio.h>
#include <string.h>

#define NUMBER_MAX 4096 /* of a field or precision; no text is longer */

enum width { WIDTH_INT, WIDTH_64, WIDTH_POINTER, WIDTH_WIDE, WIDTH_NARROW };

struct output {
	char *text; /* one of both */
	WCHAR *wide;
	size_t size, used; /* characters */
	bool cut;          /* characters were left out */
};

struct conversion {
	char flags[8];        /* of at most 6, and the one of a negative field */
	int field, precision; /* -1: none */
	enum width width;
	char letter;
};

static void put_character(struct output *output, WCHAR c)
{
	if (output->used + 1 >= output->size) {
		output->cut = true;
		return;
	}
	if (output->wide)
		output->wide[output->used++] = c;
	else
		output->text[output->used++] = (char)c;
}

static void put(struct output *output, const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		put_character(output, (unsigned char)text[i]);
}

/* In narrow text, characters that are not ASCII become '?'. */
static void put_wide(struct output *output, const WCHAR *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		put_character(output, output->wide || text[i] < 0x80 ? text[i] : (WCHAR)'?');
}

static size_t wide_length(const WCHAR *text, int precision)
{
	size_t length = 0;

	while ((precision < 0 || length < (size_t)precision) && text[length])
		length++;
	return length;
}

static size_t narrow_length(const char *text, int precision)
{
	size_t length = 0;

	while ((precision < 0 || length < (size_t)precision) && text[length])
		length++;
	return length;
}

static const char *parse_number(const char *at, int *number, va_list *arguments)
{
	if (*at == '*') {
		*number = va_arg(*arguments, int);
		if (*number > NUMBER_MAX)
			*number = NUMBER_MAX;
		if (*number < -NUMBER_MAX)
			*number = -NUMBER_MAX;
		return at + 1;
	}
	for (*number = 0; *at >= '0' && *at <= '9' && *number < NUMBER_MAX; at++)
		*number = *number * 10 + (*at - '0');
	return at;
}

static const char *parse_width(const char *at, enum width *width)
{
	*width = WIDTH_INT;
	if (!strncmp(at, "I64", 3) || !strncmp(at, "I32", 3)) {
		*width = at[1] == '6' ? WIDTH_64 : WIDTH_INT;
		return at + 3;
	}
	if (!strncmp(at, "ll", 2)) {
		*width = WIDTH_64;
		return at + 2;
	}
	if (*at == 'I' || *at == 'z' || *at == 't' || *at == 'j') {
		*width = WIDTH_POINTER;
		return at + 1;
	}
	if (*at == 'h') {
		*width = WIDTH_NARROW;
		return at[1] == 'h' ? at + 2 : at + 1;
	}
	if (*at == 'l' || *at == 'w') {
		*width = WIDTH_WIDE; /* wide, for text; a LONG is an int */
		return at + 1;
	}
	return at;
}

static const char *parse(const char *at, struct conversion *conversion, va_list *arguments)
{
	size_t flags = 0;

	*conversion = (struct conversion){.field = -1, .precision = -1};
	while (*at && strchr("-+ #0", *at)) {
		if (flags + 2 < sizeof(conversion->flags))
			conversion->flags[flags++] = *at;
		at++;
	}
	if (*at == '*' || (*at >= '1' && *at <= '9')) {
		at = parse_number(at, &conversion->field, arguments);
		if (conversion->field < 0) {
			conversion->flags[flags] = '-';
			conversion->field = -conversion->field;
		}
	}
	if (*at == '.')
		at = parse_number(at + 1, &conversion->precision, arguments);
	at = parse_width(at, &conversion->width);
	conversion->letter = *at;
	return *at ? at + 1 : at;
}

/* Builds "%<flags><field>.<precision>" followed by `tail`. */
static void make_format(char *format, size_t size, const struct conversion *conversion,
			const char *tail)
{
	int length = snprintf(format, size, "%%%s", conversion->flags);

	if (conversion->field >= 0)
		length += snprintf(format + length, size - (size_t)length, "%d", conversion->field);
	if (conversion->precision >= 0)
		length += snprintf(format + length, size - (size_t)length, ".%d",
				   conversion->precision);
	snprintf(format + length, size - (size_t)length, "%s", tail);
}

static void put_number(struct output *output, const struct conversion *conversion,
		       va_list *arguments)
{
	bool is_signed = conversion->letter == 'd' || conversion->letter == 'i';
	char tail[4] = {'l', 'l', conversion->letter, 0}, format[48], text[128];
	unsigned long long value;
	int length;

	if (conversion->width == WIDTH_64 || conversion->width == WIDTH_POINTER)
		value = va_arg(*arguments, unsigned long long);
	else if (is_signed)
		value = (unsigned long long)(long long)va_arg(*arguments, int);
	else
		value = va_arg(*arguments, unsigned int);
	make_format(format, sizeof(format), conversion, tail);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	length = snprintf(text, sizeof(text), format, value);
#pragma GCC diagnostic pop
	put(output, text, vmm_min_u64((uint64_t)length, sizeof(text) - 1));
}

/* %s and %c have the width of the format, %S and %C the other one. */
static bool is_wide(const struct output *output, const struct conversion *conversion, char other)
{
	if (conversion->width == WIDTH_WIDE || conversion->width == WIDTH_NARROW)
		return conversion->width == WIDTH_WIDE;
	return (output->wide != NULL) != (conversion->letter == other);
}

static void put_text(struct output *output, const struct conversion *conversion, va_list *arguments)
{
	bool wide = is_wide(output, conversion, 'S');
	const void *text = va_arg(*arguments, const void *);

	if (!text)
		put(output, "(null)", 6);
	else if (wide)
		put_wide(output, text, wide_length(text, conversion->precision));
	else
		put(output, text, narrow_length(text, conversion->precision));
}

/* %wZ takes a UNICODE_STRING, %Z a STRING. */
static void put_counted(struct output *output, const struct conversion *conversion,
			va_list *arguments)
{
	const void *string = va_arg(*arguments, const void *);
	const UNICODE_STRING *wide = string;
	const STRING *narrow = string;

	if (!string || !wide->Buffer)
		put(output, "(null)", 6);
	else if (conversion->width == WIDTH_WIDE)
		put_wide(output, wide->Buffer, wide->Length / sizeof(WCHAR));
	else
		put(output, narrow->Buffer, narrow->Length);
}

static void put_one(struct output *output, const struct conversion *conversion, int c)
{
	const WCHAR wide = (WCHAR)c;

	if (is_wide(output, conversion, 'C'))
		put_wide(output, &wide, 1);
	else
		put_character(output, (unsigned char)c);
}

static void put_conversion(struct output *output, const struct conversion *conversion,
			   va_list *arguments)
{
	char text[32];
	int length;

	switch (conversion->letter) {
	case 'd':
	case 'i':
	case 'u':
	case 'x':
	case 'X':
	case 'o':
		put_number(output, conversion, arguments);
		break;
	case 's':
	case 'S':
		put_text(output, conversion, arguments);
		break;
	case 'Z':
		put_counted(output, conversion, arguments);
		break;
	case 'c':
	case 'C':
		put_one(output, conversion, va_arg(*arguments, int));
		break;
	case 'p':
		length = snprintf(text, sizeof(text), "%016llX",
				  (unsigned long long)(uintptr_t)va_arg(*arguments, void *));
		put(output, text, (size_t)length);
		break;
	case '%':
		put(output, "%", 1);
		break;
	default:
		/*
		 * An unknown conversion takes no argument: a wrong guess of its size would corrupt
		 * all that follow.
		 */
		put(output, "%?", 2);
		break;
	}
}

bool nt_format(char *text, size_t size, const char *format, va_list arguments)
{
	struct output output = {.text = text, .size = size};
	va_list copy;

	va_copy(copy, arguments);
	while (*format) {
		struct conversion conversion;

		if (*format != '%') {
			put(&output, format++, 1);
			continue;
		}
		format = parse(format + 1, &conversion, &copy);
		put_conversion(&output, &conversion, &copy);
	}
	va_end(copy);
	output.text[output.used] = 0;
	return !output.cut;
}

/*
 * The characters behind a percent sign, which are ASCII; the rest of the format is not looked at.
 */
static void narrow_conversion(char *narrow, size_t size, const WCHAR *format)
{
	size_t used = 0;

	while (used + 1 < size && format[used] && format[used] < 0x80) {
		narrow[used] = (char)format[used];
		used++;
	}
	narrow[used] = 0;
}

bool nt_format_wide(WCHAR *text, size_t size, const WCHAR *format, va_list arguments)
{
	struct output output = {.wide = text, .size = size};
	va_list copy;

	va_copy(copy, arguments);
	while (*format) {
		struct conversion conversion;
		char narrow[32];

		if (*format != '%') {
			put_wide(&output, format++, 1);
			continue;
		}
		narrow_conversion(narrow, sizeof(narrow), ++format);
		format += parse(narrow, &conversion, &copy) - narrow;
		put_conversion(&output, &conversion, &copy);
	}
	va_end(copy);
	output.wide[output.used] = 0;
	return !output.cut;
}

/* ---- services ---- */

NTSTATUS WddmFormatA(CHAR *Text, SIZE_T Characters, const CHAR *Format, va_list Arguments)
{
	return nt_format(Text, Characters, Format, Arguments) ? STATUS_SUCCESS
							      : STATUS_BUFFER_OVERFLOW;
}

NTSTATUS WddmFormatW(WCHAR *Text, SIZE_T Characters, const WCHAR *Format, va_list Arguments)
{
	return nt_format_wide(Text, Characters, Format, Arguments) ? STATUS_SUCCESS
								   : STATUS_BUFFER_OVERFLOW;
}

static void print(const char *prefix, uint32_t component, uint32_t level, const char *format,
		  va_list arguments)
{
	struct vmm_nt *nt = vmm_nt_current();
	char text[512]; /* the kernel debugger transmits at most 512 bytes of one call */

	if (!nt->config.print)
		return;
	snprintf(text, sizeof(text), "%s", prefix);
	nt_format(text + strlen(text), sizeof(text) - strlen(text), format, arguments);
	nt->config.print(nt->config.context, component, level, text);
}

void nt_print(uint32_t component, uint32_t level, const char *format, va_list arguments)
{
	print("", component, level, format, arguments);
}

ULONG(DbgPrint)(const char *Format, ...)
{
	va_list arguments;

	va_start(arguments, Format);
	/* DbgPrint has component DEFAULT (101) and level INFO (3). */
	print("", 101, 3, Format, arguments);
	va_end(arguments);
	return STATUS_SUCCESS;
}

ULONG(DbgPrintEx)(ULONG ComponentId, ULONG Level, const char *Format, ...)
{
	va_list arguments;

	va_start(arguments, Format);
	print("", ComponentId, Level, Format, arguments);
	va_end(arguments);
	return STATUS_SUCCESS;
}

ULONG vDbgPrintEx(ULONG ComponentId, ULONG Level, PCSTR Format, va_list arglist)
{
	print("", ComponentId, Level, Format, arglist);
	return STATUS_SUCCESS;
}

ULONG vDbgPrintExWithPrefix(PCSTR Prefix, ULONG ComponentId, ULONG Level, PCSTR Format,
			    va_list arglist)
{
	print(Prefix, ComponentId, Level, Format, arglist);
	return STATUS_SUCCESS;
}

VOID DbgBreakPoint(VOID)
{
	nt_violation(vmm_nt_current(), "NT-09", "DbgBreakPoint",
		     "a break point without a debugger ends Windows");
}

VOID DbgBreakPointWithStatus(ULONG Status)
{
	nt_violation(vmm_nt_current(), "NT-09", "DbgBreakPointWithStatus",
		     "a break point (status 0x%x) without a debugger ends Windows", Status);
}
