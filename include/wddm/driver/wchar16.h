/* SPDX-License-Identifier: MIT */
/*
 * Functions for strings of 16-bit wide characters under their names of the C library, whose
 * functions have 32-bit characters. Upper and lower case are those of ASCII.
 */
#ifndef WDDM_WCHAR16_H
#define WDDM_WCHAR16_H

#include <stddef.h>
#include <string.h>

#ifdef __cplusplus
static_assert(sizeof(wchar_t) == 2, "driver source is compiled with -fshort-wchar");
#else
_Static_assert(sizeof(wchar_t) == 2, "driver source is compiled with -fshort-wchar");
#endif

static inline size_t WddmWideLength(const wchar_t *text)
{
	size_t length = 0;

	while (text[length])
		length++;
	return length;
}

static inline size_t WddmWideLengthAtMost(const wchar_t *text, size_t most)
{
	size_t length = 0;

	while (length < most && text[length])
		length++;
	return length;
}

static inline wchar_t WddmWideLower(wchar_t c)
{
	return c >= 'A' && c <= 'Z' ? (wchar_t)(c - 'A' + 'a') : c;
}

static inline wchar_t WddmWideUpper(wchar_t c)
{
	return c >= 'a' && c <= 'z' ? (wchar_t)(c - 'a' + 'A') : c;
}

static inline int WddmWideCompare(const wchar_t *a, const wchar_t *b, size_t most, int ignore_case)
{
	for (size_t i = 0; i < most; i++) {
		wchar_t x = ignore_case ? WddmWideLower(a[i]) : a[i];
		wchar_t y = ignore_case ? WddmWideLower(b[i]) : b[i];

		if (x != y)
			return x < y ? -1 : 1;
		if (!x)
			return 0;
	}
	return 0;
}

static inline wchar_t *WddmWideCopy(wchar_t *to, const wchar_t *from)
{
	memcpy(to, from, (WddmWideLength(from) + 1) * sizeof(*from));
	return to;
}

/* As wcsncpy: the rest of `most` characters becomes 0. */
static inline wchar_t *WddmWideCopyAtMost(wchar_t *to, const wchar_t *from, size_t most)
{
	size_t length = WddmWideLengthAtMost(from, most);

	memcpy(to, from, length * sizeof(*from));
	memset(to + length, 0, (most - length) * sizeof(*to));
	return to;
}

static inline wchar_t *WddmWideAppend(wchar_t *to, const wchar_t *from)
{
	WddmWideCopy(to + WddmWideLength(to), from);
	return to;
}

static inline wchar_t *WddmWideFind(const wchar_t *text, wchar_t c)
{
	for (; *text != c; text++)
		if (!*text)
			return NULL;
	return (wchar_t *)text;
}

static inline wchar_t *WddmWideFindLast(const wchar_t *text, wchar_t c)
{
	const wchar_t *found = NULL;

	do {
		if (*text == c)
			found = text;
	} while (*text++);
	return (wchar_t *)found;
}

static inline wchar_t *WddmWideFindText(const wchar_t *text, const wchar_t *part)
{
	size_t length = WddmWideLength(part);

	for (;; text++) {
		if (!WddmWideCompare(text, part, length, 0))
			return (wchar_t *)text;
		if (!*text)
			return NULL;
	}
}

static inline int WddmNarrowCompare(const char *a, const char *b, size_t most)
{
	for (size_t i = 0; i < most; i++) {
		wchar_t x = WddmWideLower((unsigned char)a[i]),
			y = WddmWideLower((unsigned char)b[i]);

		if (x != y)
			return x < y ? -1 : 1;
		if (!x)
			return 0;
	}
	return 0;
}

#define wcslen(text)            WddmWideLength(text)
#define wcsnlen(text, most)     WddmWideLengthAtMost(text, most)
#define wcscmp(a, b)            WddmWideCompare(a, b, (size_t)-1, 0)
#define wcsncmp(a, b, most)     WddmWideCompare(a, b, most, 0)
#define _wcsicmp(a, b)          WddmWideCompare(a, b, (size_t)-1, 1)
#define _wcsnicmp(a, b, most)   WddmWideCompare(a, b, most, 1)
#define wcscpy(to, from)        WddmWideCopy(to, from)
#define wcsncpy(to, from, most) WddmWideCopyAtMost(to, from, most)
#define wcscat(to, from)        WddmWideAppend(to, from)
#define wcschr(text, c)         WddmWideFind(text, c)
#define wcsrchr(text, c)        WddmWideFindLast(text, c)
#define wcsstr(text, part)      WddmWideFindText(text, part)
#define towlower(c)             WddmWideLower(c)
#define towupper(c)             WddmWideUpper(c)
#define _stricmp(a, b)          WddmNarrowCompare(a, b, (size_t)-1)
#define _strnicmp(a, b, most)   WddmNarrowCompare(a, b, most)
#define _snprintf               snprintf
#define _vsnprintf              vsnprintf

#endif
