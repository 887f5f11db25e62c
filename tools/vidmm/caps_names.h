/* SPDX-License-Identifier: MIT */
/*
 * Names of the DDI: flags, interface versions, preemption granularities, steps of a start; and the
 * table of the members of DXGK_DRIVERCAPS that are shown.
 */
#ifndef VIDMM_TOOLS_CAPS_NAMES_H
#define VIDMM_TOOLS_CAPS_NAMES_H

#include <stddef.h>
#include <vidmm/caps.h>

/* Names indexed by bit number. Bits from `count` on are reserved. */
struct flag_names {
	const char *const *names;
	unsigned count;
};
extern const struct flag_names segment_flags, scheduling_flags, memory_flags;

/* Returns the name of bit BIT. For a bit without a name the text is written to RESERVED. */
const char *flag_name(const struct flag_names *flags, unsigned bit, char reserved[16]);
/* Writes the names of the set bits, such as "CpuVisible UseBanking", or "-" for 0. Returns TEXT. */
const char *flags_text(const struct flag_names *flags, uint32_t value, char *text, size_t size);

/* Returns the WDDM version of an interface version ("1.3" for 0x4002), or "unknown". */
const char *interface_name(uint32_t version);
/* Parses "1.3", "2.7" or a hexadecimal number. Returns false if there is no such version. */
int interface_parse(const char *text, uint64_t *version);
/* Returns the name of a WDDMVersion ("1.3" for 0x1300); "not reported" for 0. */
const char *wddm_version_name(uint32_t version);
const char *preemption_name(uint32_t granularity, int compute);
/* Return the name of a step of the start: step_name for text output, step_key for JSON. */
const char *step_name(uint32_t step);
const char *step_key(uint32_t step);

enum cap_kind {
	CAP_COUNT,
	CAP_BYTES,
	CAP_ADDRESS,
	CAP_SCHEDULING,
	CAP_MEMORY,
	CAP_WDDM,
	CAP_GRAPHICS_PREEMPTION,
	CAP_COMPUTE_PREEMPTION,
	CAP_BOOLEAN
};

struct cap {
	const char *name; /* member of DXGK_DRIVERCAPS */
	enum cap_kind kind;
	size_t offset, size;  /* of the member of struct vidmm_adapter_report */
	uint32_t since_bytes; /* the smallest sizeof(DXGK_DRIVERCAPS) that contains the member */
};
extern const struct cap caps_table[];
extern const unsigned caps_count;
uint64_t cap_value(const struct cap *cap, const struct vidmm_adapter_report *report);

#endif
