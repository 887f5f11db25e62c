/* SPDX-License-Identifier: MIT */
/* Parses and prints sizes, percentages, counts and times. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "units.h"

/*
 * Parses a plain decimal number. A sign, exponent, blank, hexadecimal number or "inf", which strtod
 * accepts, is refused.
 */
static bool parse_number(const char *text, double *value, const char **end)
{
	char *stop;

	if (!isdigit((unsigned char)*text) || text[strspn(text, "0123456789.")] == 'e' ||
	    (text[0] == '0' && (text[1] | 0x20) == 'x'))
		return false;
	errno = 0;
	*value = strtod(text, &stop);
	*end = stop;
	return errno == 0;
}

bool units_parse_size(const char *text, uint64_t *bytes)
{
	static const char letters[] = "KMGT";
	const char *unit, *letter;
	double value;

	if (!parse_number(text, &value, &unit))
		return false;
	letter = *unit ? strchr(letters, toupper((unsigned char)*unit)) : NULL;
	if (letter) {
		value *= (double)((uint64_t)1024 << 10 * (letter - letters));
		unit++;
		if (*unit == 'i')
			unit++;
	}
	if (*unit == 'B' || *unit == 'b')
		unit++;
	if (*unit != '\0' || value < 1 || value > (double)((uint64_t)1 << 60))
		return false;
	*bytes = (uint64_t)value;
	return true;
}

bool units_parse_percent(const char *text, double *percent)
{
	const char *end;

	return parse_number(text, percent, &end) && strcmp(end, "%") == 0 && *percent > 0 &&
	       *percent <= 100000;
}

bool units_parse_u64(const char *text, uint64_t *value)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*value = strtoull(text, &end, 0);
	return errno == 0 && *end == '\0';
}

const char *units_count(uint64_t count, char *text, size_t size)
{
	char digits[24];
	size_t length = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, count), i, used = 0;

	for (i = 0; i < length && used + 2 < size; i++) {
		if (i > 0 && (length - i) % 3 == 0)
			text[used++] = ',';
		text[used++] = digits[i];
	}
	text[used] = '\0';
	return text;
}

/* Prints three significant digits. */
static const char *scaled(double value, const char *unit, char *text, size_t size)
{
	snprintf(text, size, "%.*f %s", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value, unit);
	return text;
}

const char *units_bytes(uint64_t bytes, char *text, size_t size)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
	double value = (double)bytes / 1024;
	unsigned i;

	if (bytes < 1024) {
		snprintf(text, size, "%" PRIu64 " B", bytes);
		return text;
	}
	for (i = 0; i < 3 && value >= 1023.5; i++)
		value /= 1024;
	return scaled(value, units[i], text, size);
}

const char *units_time(uint64_t ns, char *text, size_t size)
{
	if (ns < 1000)
		snprintf(text, size, "%" PRIu64 " ns", ns);
	else if (ns < 1000000)
		scaled((double)ns / 1e3, "us", text, size);
	else if (ns < 1000000000)
		scaled((double)ns / 1e6, "ms", text, size);
	else
		scaled((double)ns / 1e9, "s", text, size);
	return text;
}
