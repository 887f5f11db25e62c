/* SPDX-License-Identifier: MIT */
/*
 * An eviction policy as three functions: of the embedder (eviction_policy of
 * vidmm_adapter_options), or exported by a shared object that `vidmm ... --policy ./FILE.so` loads
 * (docs/policies.md). A policy orders the allocations of one eviction class and process. Offered
 * memory, priorities and the shares of processes come before it.
 *
 * An allocation here is one instance of it: each instance of a renamed allocation has a state.
 *
 * Threads. The adapter calls all three functions, on any thread, with its paging lock held: one
 * call at a time for an adapter. Several adapters may call at the same time. So `used` and `value`
 * may write the state that they get, and should write nothing else. They must not block, allocate
 * memory, or call vidmm. The adapter does not call them when a command buffer is submitted, but
 * before it searches for a victim: first `used` for each use since the last search, in the order of
 * the uses.
 *
 * Results. Every value is valid, and decides the order alone: no value, and no change of one, can
 * make the library evict what is in use, pinned or needed. A function that crashes, never returns,
 * or writes outside the state takes the process with it.
 */
#ifndef VIDMM_POLICY_H
#define VIDMM_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes when a policy that was compiled for an earlier one can no longer be used. */
#define VIDMM_POLICY_VERSION   1u
/* The largest state of an allocation, in bytes. */
#define VIDMM_POLICY_STATE_MAX 64u
/* The longest name, without its terminator. */
#define VIDMM_POLICY_NAME_MAX  31u

/* ---- flags of a description ---- */
/*
 * The value of an allocation may fall, or others may overtake it, without a use of it: no order is
 * kept. Each eviction compares the values of up to 1024 candidates, half of them the least and half
 * the most recently used ones. Without this flag the order is kept in a tree: an eviction, and each
 * change of a value, takes O(log n).
 */
#define VIDMM_POLICY_VALUES_FALL 0x1u
/*
 * The victims are scattered over the segment: once enough bytes are free for a request that must be
 * contiguous, content is moved together instead of evicting more.
 */
#define VIDMM_POLICY_SCATTERS    0x2u

/*
 * What a policy is. struct_size and version come first in every version. An adapter refuses a
 * description that breaks a condition with STATUS_INVALID_PARAMETER and a reason.
 */
struct vidmm_policy_description {
	uint32_t struct_size; /* sizeof(struct vidmm_policy_description) */
	uint32_t version;     /* VIDMM_POLICY_VERSION */
	/*
	 * 1 to VIDMM_POLICY_NAME_MAX of a-z, 0-9, - and _, the first a letter; not the name of one
	 * of vidmm's policies, "reference" or "all".
	 */
	const char *name;
	uint32_t state_bytes; /* of each allocation, 0 to VIDMM_POLICY_STATE_MAX */
	uint32_t flags;       /* VIDMM_POLICY_VALUES_FALL, VIDMM_POLICY_SCATTERS */
};

/* ---- flags of a use ---- */
#define VIDMM_POLICY_ARRIVED 0x1u /* the first use since the allocation came into its segment */
#define VIDMM_POLICY_MISSED  0x2u /* `used` was not called for earlier uses of it */

/* The uses of an allocation by one submission, or since it came into its segment. */
struct vidmm_policy_use {
	uint64_t submission; /* number of the submission of the adapter, from 1; never falls */
	uint32_t flags;
	uint32_t process, allocation; /* as in events: id of the process, and handle */
	uint64_t size_bytes;
};

/* An allocation in a segment. Orders count the uses on the adapter; a later one is greater. */
struct vidmm_policy_candidate {
	uint32_t process, allocation; /* as in events */
	uint64_t size_bytes;
	uint64_t used;            /* order of its last use; no two candidates have the same */
	uint64_t arrived;         /* order in which it came into its segment */
	uint64_t now;             /* greater than every order so far */
	uint64_t submission;      /* number of the submission that needs memory */
	uint64_t last_submission; /* number of the one that used it last; 0: none */
	/*
	 * The submissions between its last uses, the latest first; more than 65535 are stored as
	 * that. A time with uses that were left out (the journal was full) is not among them.
	 */
	const uint16_t *intervals;
	uint32_t interval_count; /* 0 to 16 */
	/*
	 * It has the lowest value and may be evicted: it is, unless the value that is returned now
	 * is greater than before. Always false with VIDMM_POLICY_VALUES_FALL.
	 */
	bool leaving;
};

/*
 * Returns the description, which stays valid while an adapter uses the policy. Called once for
 * each adapter, before it starts.
 */
typedef const struct vidmm_policy_description *vidmm_policy_describe_fn(void);
/*
 * Notes a use. state: state_bytes of the allocation, aligned to 8 bytes, all 0 at first, and kept
 * until the allocation ends, also while it is evicted; NULL if state_bytes is 0. Called in the
 * order of uses, once for each submission and allocation that it uses.
 */
typedef void vidmm_policy_used_fn(void *state, const struct vidmm_policy_use *use);
/*
 * Returns what it is worth to keep the candidate, in any unit: the one with the lowest value is
 * evicted, of equal ones the least recently used. 0 with VIDMM_POLICY_VALUES_FALL: the others need
 * not be compared. Called after `used`, and for at most 1024 candidates of an eviction again
 * (`leaving`).
 */
typedef uint64_t vidmm_policy_value_fn(void *state, const struct vidmm_policy_candidate *candidate);

/* The table of functions; none is NULL. */
struct vidmm_policy {
	vidmm_policy_describe_fn *describe;
	vidmm_policy_used_fn *used;
	vidmm_policy_value_fn *value;
};

/* What a shared object exports. */
#define VIDMM_POLICY_EXPORT __attribute__((visibility("default")))
VIDMM_POLICY_EXPORT vidmm_policy_describe_fn vidmm_policy_describe;
VIDMM_POLICY_EXPORT vidmm_policy_used_fn vidmm_policy_used;
VIDMM_POLICY_EXPORT vidmm_policy_value_fn vidmm_policy_value;

#ifdef __cplusplus
}
#endif

#endif
