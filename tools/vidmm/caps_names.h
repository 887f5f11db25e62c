/* SPDX-License-Identifier: MIT */
/* The interface's words: names of flags, versions and steps, and the capabilities that are shown. */
#ifndef VIDMM_TOOLS_CAPS_NAMES_H
#define VIDMM_TOOLS_CAPS_NAMES_H

#include <stddef.h>
#include <vidmm/caps.h>

/* Names by bit; what is above the last is reserved. */
struct flag_names {
	const char *const *names;
	unsigned count;
};
extern const struct flag_names segment_flags, scheduling_flags, memory_flags;

/* Of bit `bit`; `reserved` holds the text for one without a name. */
const char *flag_name(const struct flag_names *flags, unsigned bit, char reserved[16]);
/* "CpuVisible UseBanking"; "-" for none. Returns `text`. */
const char *flags_text(const struct flag_names *flags, uint32_t value, char *text, size_t size);

/* "1.3" of 0x4002; "unknown". */
const char *interface_name(uint32_t version);
/* "1.3", "2.7" or a number; false: no such version. */
int interface_parse(const char *text, uint64_t *version);
/* "1.3" of 0x1300; "not said" of 0. */
const char *wddm_version_name(uint32_t version);
const char *preemption_name(uint32_t granularity, int compute);
/* For people and, as the first word, for programs. */
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
	const char *name; /* the interface's */
	enum cap_kind kind;
	size_t offset, size;  /* in struct vidmm_adapter_report */
	uint32_t since_bytes; /* the structure of a version that has it is at least as long */
};
extern const struct cap caps_table[];
extern const unsigned caps_count;
uint64_t cap_value(const struct cap *cap, const struct vidmm_adapter_report *report);

#endif
