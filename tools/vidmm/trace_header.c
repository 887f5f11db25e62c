/* SPDX-License-Identifier: MIT */
/*
 * Reads the nine header lines. Their texts are printed on terminals and in JSON, so they are
 * reduced to printable UTF-8 here.
 */
#include <stdlib.h>
#include <string.h>

#include "trace_private.h"

/*
 * Returns the length of the printable, well-formed UTF-8 character at P; 0 for control characters
 * and for malformed bytes.
 */
static size_t utf8_length(const unsigned char *p, size_t left)
{
	static const struct {
		unsigned char first, last, second_first, second_last, length;
	} forms[] = {
		{0x20, 0x7E, 0, 0, 1},       {0xC2, 0xC2, 0xA0, 0xBF, 2},
		{0xC3, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
		{0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3},
		{0xEE, 0xEF, 0x80, 0xBF, 3}, {0xF0, 0xF0, 0x90, 0xBF, 4},
		{0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
	};
	size_t i, k;

	for (i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (p[0] < forms[i].first || p[0] > forms[i].last || forms[i].length > left)
			continue;
		for (k = 1; k < forms[i].length; k++) {
			unsigned char low = k == 1 ? forms[i].second_first : 0x80;
			unsigned char high = k == 1 ? forms[i].second_last : 0xBF;

			if (p[k] < low || p[k] > high)
				return 0;
		}
		return forms[i].length;
	}
	return 0;
}

/*
 * Copies printable UTF-8 and replaces each other byte by '?'. If TO is too small, the text ends at
 * a character boundary.
 */
static void copy_text(char *to, size_t size, const char *from, const char *end)
{
	size_t used = 0;

	while (from < end) {
		size_t length = utf8_length((const unsigned char *)from, (size_t)(end - from));

		if (used + (length ? length : 1) >= size)
			break;
		if (length)
			memcpy(to + used, from, length);
		else
			to[used] = '?';
		used += length ? length : 1;
		from += length ? length : 1;
	}
	to[used] = '\0';
}

static void read_model(struct trace_header *header, const char *from, const char *end)
{
	char text[256];
	const char *base, *rate;

	copy_text(text, sizeof(text), from, end);
	base = strstr(text, "base_ns=");
	rate = strstr(text, "bytes_per_ns=");
	if (base)
		header->base_ns = strtoull(base + 8, NULL, 10);
	if (rate)
		header->bytes_per_ns = strtod(rate + 13, NULL);
	if (!(header->bytes_per_ns > 0 && header->bytes_per_ns < 1e9))
		header->bytes_per_ns = 0;
}

static enum trace_result read_value(struct trace_reader *reader, unsigned index, const char *from,
				    const char *end)
{
	struct trace_header *header = &reader->header;
	struct trace_scan scan;

	switch (index) {
	case 0:
		if (end - from != 1 || *from != '1')
			return trace_bad(reader, "unsupported format version: expected 1");
		break;
	case 1:
		copy_text(header->program, sizeof(header->program), from, end);
		break;
	case 2:
		copy_text(header->note, sizeof(header->note), from, end);
		break;
	case 3:
		copy_text(header->driver, sizeof(header->driver), from, end);
		break;
	case 4:
		copy_text(header->chipset, sizeof(header->chipset), from, end);
		break;
	case 5:
		copy_text(header->date, sizeof(header->date), from, end);
		break;
	case 6:
		trace_scan_at(&scan, from);
		trace_scan_stop(&scan);
		if (!trace_scan_u64(&scan, &header->t0_ns) || scan.stop != end ||
		    header->t0_ns > INT64_MAX / 2)
			return trace_bad(reader, "#t0: expected a time in ns");
		break;
	case 7:
		read_model(header, from, end);
		break;
	default:
		if (end - from != 1 || (*from != '0' && *from != '1'))
			return trace_bad(reader, "#wtrack: expected 0 or 1");
		header->write_tracking = *from == '1';
		break;
	}
	return TRACE_OK;
}

enum trace_result trace_read_header(struct trace_reader *reader)
{
	static const char *const keys[TRACE_HEADER_LINES] = {"gemtrace", "program", "note",
							     "driver",   "chipset", "date",
							     "t0",       "model",   "wtrack"};
	unsigned i;

	for (i = 0; i < TRACE_HEADER_LINES; i++) {
		size_t length = strlen(keys[i]);
		enum trace_result result = trace_fill(reader);
		const char *end, *value;

		if (result != TRACE_OK)
			return result;
		end = memchr(reader->at, '\n', (size_t)(reader->lines_end - reader->at));
		value = reader->at + 1 + length;
		if (*reader->at != '#' || (size_t)(end - reader->at) < 1 + length ||
		    memcmp(reader->at + 1, keys[i], length) != 0 || (value < end && *value != ' '))
			return trace_bad(reader, "header line \"#%s\" expected", keys[i]);
		result = read_value(reader, i, value < end ? value + 1 : end, end);
		if (result != TRACE_OK)
			return result;
		reader->at = end + 1;
		reader->line++;
	}
	return TRACE_OK;
}
