/* SPDX-License-Identifier: MIT */
/* The slow path of trace_scan_value: more than eight digits. */
#include "trace_scan.h"

uint64_t trace_scan_long(const char *p, size_t digits)
{
	uint64_t sum = 0;
	size_t i;

	if (digits == 0)
		return TRACE_SCAN_BAD;
	if (digits > 8 && digits <= 16) /* times of events have this length */
		return trace_scan_eight(p, digits - 8) * (uint64_t)100000000 +
		       trace_scan_eight(p + digits - 8, 8);
	for (i = 0; i < digits; i++) {
		if (__builtin_mul_overflow(sum, (uint64_t)10, &sum) ||
		    __builtin_add_overflow(sum, (uint64_t)(p[i] - '0'), &sum))
			return TRACE_SCAN_BAD;
	}
	return sum;
}
