/* SPDX-License-Identifier: MIT */
#include "memory_size.h"

#include <stdio.h>
#include <string.h>

#include "units.h"

#define PAGE            ((uint64_t)4096)
#define END             ((uint64_t)1 << 40) /* a BAR of an adapter is below */
#define MIB             ((uint64_t)1 << 20)
#define EXTRA_BYTES_MIN ((uint64_t)256 * 1024)

static const char suffix[] = "largest";

bool memory_size_parse(const char *text, struct memory_size *size)
{
	size_t length = strlen(text), tail = sizeof(suffix) - 1;
	char percent[16];

	*size = (struct memory_size){0};
	if (length > tail && length - tail < sizeof(percent) &&
	    strcmp(text + length - tail, suffix) == 0) {
		snprintf(percent, sizeof(percent), "%.*s", (int)(length - tail), text);
		size->largest = true;
		return units_parse_percent(percent, &size->percent);
	}
	/* "50" is more likely a percentage without its sign than 50 bytes. */
	return units_parse_percent(text, &size->percent) ||
	       (units_parse_size(text, &size->bytes) && size->bytes >= PAGE &&
		size->bytes <= END - PAGE);
}

const char *memory_size_percent_of(const struct memory_size *size)
{
	return size->largest ? suffix : "peak";
}

static uint64_t round_up(double bytes, uint64_t unit)
{
	return ((uint64_t)bytes + unit - 1) / unit * unit;
}

uint64_t memory_size_bytes(const struct memory_size *size, const struct replay_measure *measure)
{
	uint64_t share, least = measure->largest_buffer_bytes + EXTRA_BYTES_MIN;

	if (size->bytes)
		return (size->bytes + PAGE - 1) & ~(PAGE - 1);
	if (!size->largest)
		return round_up((double)measure->peak_live_bytes * size->percent / 100, MIB);
	share = round_up((double)measure->largest_submission_bytes * size->percent / 100, PAGE);
	return share > least ? share : round_up((double)least, PAGE);
}
