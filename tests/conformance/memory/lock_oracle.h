/* SPDX-License-Identifier: MIT */
/*
 * What a lock of an allocation answers, from the text of the LOCK, REN and SWZ rules alone: which flags, on what
 * allocation, in which state. It knows nothing of how vidmm does it.
 */
#ifndef VMM_TESTS_CONFORMANCE_LOCK_ORACLE_H
#define VMM_TESTS_CONFORMANCE_LOCK_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

struct oracle_allocation {
	bool cpu_visible, aperture, swizzled, cached, shared;
	bool memory;           /* its set names a memory segment */
	bool unswizzles;       /* the miniport has a range for it, and the CPU sees the memory */
	bool alternates;       /* it has a range for an address of its own (UseAlternateVA) */
	bool ranges;           /* it has ranges at all */
	bool away;             /* its content is in system memory, and in no segment */
	bool coherent;         /* the adapter has a coherent aperture */
	bool hidden;           /* now in a segment that the CPU cannot see */
	bool reading, writing; /* by the GPU, now */
};

struct oracle_answer {
	int32_t result;    /* HRESULT */
	const char *rules; /* of a refusal: the finding names one of these; NULL: no finding */
	bool waits;        /* for the GPU */
	bool renames;      /* another handle comes back */
	bool may_rename;
	bool evicts;
	bool pages_in; /* into the memory segment */
};

struct oracle_answer oracle_lock(uint32_t flags, const struct oracle_allocation *a);

#endif
