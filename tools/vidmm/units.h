/* SPDX-License-Identifier: MIT */
/* Text forms of sizes, percentages, times and counts, for options and for output. */
#ifndef VIDMM_TOOLS_UNITS_H
#define VIDMM_TOOLS_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Parses a size such as "4096", "512K", "1.5G" or "256MiB" (powers of 1024). All parsers return
 * false for other texts.
 */
bool units_parse_size(const char *text, uint64_t *bytes);
/* Parses a percentage above 0, such as "50%" or "12.5%". */
bool units_parse_percent(const char *text, double *percent);
bool units_parse_u64(const char *text, uint64_t *value);

/* Write "1,234,567", "1.18 GiB" and "39.7 s". All return TEXT. */
const char *units_count(uint64_t count, char *text, size_t size);
const char *units_bytes(uint64_t bytes, char *text, size_t size);
const char *units_time(uint64_t ns, char *text, size_t size);

#endif
