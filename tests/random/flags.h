/* SPDX-License-Identifier: MIT */
/*
 * Which allocation properties a miniport may give, derived from docs/rules/allocation-flags.md
 * alone, independently of the code of vidmm.
 */
#ifndef VMM_TESTS_RANDOM_FLAGS_H
#define VMM_TESTS_RANDOM_FLAGS_H

#include <stdbool.h>
#include <stdint.h>

enum { /* DXGK_ALLOCATIONINFOFLAGS; where the meaning of a bit changes with 2.0, both names */
       CPU_VISIBLE = 0x1,
       PERMANENT = 0x2,
       CACHED = 0x4,
       PROTECTED = 0x8,
       EXISTING = 0x10,
       EXISTING_KERNEL = 0x20,
       FROM_END = 0x40,
       SWIZZLED = 0x80,
       OVERLAY = 0x100,
       CAPTURE = 0x200,
       ALTERNATE = 0x400,
       SYNCHRONOUS = 0x800,
       LINK_MIRRORED = 0x1000,
       LINK_INSTANCED = 0x2000,
       HISTORY = 0x4000,
       NO_LARGE_PAGES = 0x80,
       IN_VPR = 0x400,
       MAP_VISIBLE = 0x2000,
       PHYSICAL = 0x8000,
       NOTIFY = 0x10000,
       HARDWARE_PROTECTED = 0x20000,
       ON_DEMAND = 0x40000,
       PINNED = OVERLAY | CAPTURE,
       KEPT = PERMANENT | EXISTING | EXISTING_KERNEL,
};

/* A request and the properties of its adapter. */
struct flags_case {
	uint32_t version; /* DXGKDDI_INTERFACE_VERSION_... */
	uint32_t flags, flags2;
	bool primary;
	bool memory, kernel_memory; /* pSystemMem: memory of the client, of the miniport */
	bool aperture;              /* the segment sets contain an aperture */
	bool hidden;                /* the sets contain a memory segment without CpuVisible */
	bool coherent;              /* the adapter has a coherent aperture */
	bool ranges;                /* the adapter has swizzling ranges */
	bool vpr;                   /* the sets contain a segment with a protected range */
	bool map_aperture2;
};

enum flags_verdict { FLAGS_GOOD, FLAGS_NOT_BUILT, FLAGS_BAD };

/* rules: the broken rules, separated by spaces. The finding may name any of them. */
enum flags_verdict flags_judge(const struct flags_case *c, char rules[128]);
/* Returns the bits that the version defines. */
uint32_t flags_known(uint32_t version);
bool flags_is_wddm2(uint32_t version);

#endif
