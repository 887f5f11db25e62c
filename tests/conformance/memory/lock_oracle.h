/* SPDX-License-Identifier: MIT */
/*
 * What a lock answers, from the text of the LOCK, REN and SWZ rules alone: which flags and which page list, on what
 * allocation, in which state. It knows nothing of how vidmm does it. The checks come in the order of Q-02.
 */
#ifndef VMM_TESTS_CONFORMANCE_LOCK_ORACLE_H
#define VMM_TESTS_CONFORMANCE_LOCK_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

enum oracle_list {
	ORACLE_NO_LIST,
	ORACLE_LIST,         /* every entry names a page */
	ORACLE_PAST_THE_END, /* one entry does not */
	ORACLE_NO_POINTER,   /* NumPages is not 0, pPages is NULL */
	ORACLE_NO_ENTRIES,   /* the other way round */
	ORACLE_LISTS
};

struct oracle_request {
	uint32_t flags;
	enum oracle_list list;
};

enum oracle_held { ORACLE_UNLOCKED, ORACLE_PLAIN, ORACLE_RANGE }; /* state machine 4.4 */

struct oracle_allocation {
	/* as it was created */
	bool cpu_visible, protected, aperture, swizzled, cached, shared, pinned, existing, primary;
	bool for_alternate; /* a primary with UseAlternateVA */
	bool memory;        /* its set names a memory segment */
	bool through;       /* its EvictionSegmentSet is not 0 */
	bool permanent;     /* its system copy stays: the CPU works on that */
	bool foreign;       /* shared, and another process created it */
	bool unswizzles;    /* the miniport has a range for it, and the CPU sees the memory */
	bool alternates;    /* it has a range for an address of its own (UseAlternateVA) */
	bool ranges;        /* it has ranges at all */
	bool coherent;      /* the adapter has a coherent aperture */
	/* as it is now */
	bool offered, superseded, retired;
	enum oracle_held held;
	bool away;             /* its content is in system memory, and in no segment */
	bool hidden;           /* in a segment that the CPU cannot see */
	bool gpu_newer;        /* of two copies the GPU's counts */
	bool reading, writing; /* by the GPU */
};

enum oracle_place { ORACLE_STAYS, ORACLE_LEAVES, ORACLE_COMES_IN, ORACLE_ANYWHERE };

struct oracle_answer {
	int32_t status;  /* NTSTATUS */
	char rules[128]; /* of a refusal: the finding names one of these; empty: no finding */
	bool waits;      /* for the GPU */
	bool renames;    /* another handle comes back */
	bool may_rename;
	enum oracle_place place; /* of what was named */
};

struct oracle_answer oracle_lock(struct oracle_request request, const struct oracle_allocation *a);
/* Section 3.2 of the catalogue: the same through a device callback. */
int32_t oracle_hresult(int32_t status);

#endif
