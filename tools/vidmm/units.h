/* SPDX-License-Identifier: MIT */
/* Sizes, shares, times and counts, as people write and read them. */
#ifndef VIDMM_TOOLS_UNITS_H
#define VIDMM_TOOLS_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "4096", "512K", "1.5G", "256MiB"; powers of 1024. */
bool units_parse_size(const char *text, uint64_t *bytes);
/* "50%", "12.5%", above 0. */
bool units_parse_percent(const char *text, double *percent);
bool units_parse_u64(const char *text, uint64_t *value);

/* All return `text`. "1,234,567"; "1.18 GiB"; "39.7 s". */
const char *units_count(uint64_t count, char *text, size_t size);
const char *units_bytes(uint64_t bytes, char *text, size_t size);
const char *units_time(uint64_t ns, char *text, size_t size);

#endif
