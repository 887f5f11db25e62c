/* SPDX-License-Identifier: MIT */
/*
 * Oracle for locks: the expected result of a lock, derived from the text of the LOCK, REN and SWZ
 * rules alone. Inputs are the flags, the page list, the allocation and its state. The oracle knows
 * nothing of the implementation. The checks come in the order of Q-02.
 */
#ifndef VMM_TESTS_CONFORMANCE_LOCK_ORACLE_H
#define VMM_TESTS_CONFORMANCE_LOCK_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

enum oracle_list {
	ORACLE_NO_LIST,
	ORACLE_LIST,         /* every entry is a page of the allocation */
	ORACLE_PAST_THE_END, /* one entry is past the end */
	ORACLE_NO_POINTER,   /* NumPages is not 0, pPages is NULL */
	ORACLE_NO_ENTRIES,   /* NumPages is 0, pPages is not NULL */
	ORACLE_LISTS
};

struct oracle_request {
	uint32_t flags;
	enum oracle_list list;
};

enum oracle_held { ORACLE_UNLOCKED, ORACLE_PLAIN, ORACLE_RANGE }; /* state machine 4.4 */

struct oracle_allocation {
	/* properties since creation */
	bool cpu_visible, protected, aperture, swizzled, cached, shared, pinned, existing, primary;
	bool for_alternate; /* a primary with UseAlternateVA */
	bool memory;        /* its segment set contains a memory segment */
	bool through;       /* its EvictionSegmentSet is not 0 */
	bool permanent;     /* PermanentSysMem: the CPU works on the retained system copy */
	bool foreign;       /* shared, and created by another process */
	bool unswizzles;    /* the miniport has a range for it, and the memory is CPU-visible */
	/* the miniport has a range for it at an alternate address (UseAlternateVA) */
	bool alternates;
	bool ranges;   /* the adapter has swizzling ranges */
	bool coherent; /* the adapter has a coherent aperture */
	/* current state */
	bool offered, superseded, retired;
	enum oracle_held held;
	bool away;             /* its content is in system memory and in no segment */
	bool hidden;           /* it is resident in a segment without CpuVisible */
	bool gpu_newer;        /* of two copies the GPU's is the newer */
	bool reading, writing; /* GPU accesses that are pending */
};

enum oracle_place { ORACLE_STAYS, ORACLE_LEAVES, ORACLE_COMES_IN, ORACLE_ANYWHERE };

struct oracle_answer {
	int32_t status; /* NTSTATUS */
	/* of a refusal: the finding has one of these ids; empty: no finding is expected */
	char rules[128];
	bool waits;   /* waits for the GPU */
	bool renames; /* returns another handle */
	bool may_rename;
	enum oracle_place place; /* where the referenced instance is afterwards */
};

struct oracle_answer oracle_lock(struct oracle_request request, const struct oracle_allocation *a);
/* Section 3.2 of the catalog: the HRESULT that a device callback returns for the same result. */
int32_t oracle_hresult(int32_t status);

#endif
