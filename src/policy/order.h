/* SPDX-License-Identifier: MIT */
/*
 * order: the order in which candidates for eviction are taken inside one eviction class, and what
 * is remembered of the uses of a candidate for it. The class (policy.h) and the fair share (SEG-27)
 * always come first. docs/policies.md compares the policies. No lock, no I/O; a function changes
 * only its arguments.
 *
 * Time is counted in submissions of the adapter: candidates of different processes compete for one
 * segment, so they need one clock, and a clock of submissions does not depend on the speed of the
 * machine.
 */
#ifndef VMM_POLICY_ORDER_H
#define VMM_POLICY_ORDER_H

#include "base/base.h"

/* The values of VidmmEvictionPolicy (vidmm.h). */
enum vmm_policy_name {
	VMM_POLICY_LRU = 0,
	VMM_POLICY_CLOCK,
	VMM_POLICY_MRU,
	VMM_POLICY_PREDICTED,
	VMM_POLICY_NAMED,                     /* the number of policies that have a name */
	VMM_POLICY_RANKED = VMM_POLICY_NAMED, /* by a function of the embedder */
	/* By three functions of the embedder: its values are kept in order, or fall. */
	VMM_POLICY_VALUED,
	VMM_POLICY_FALLING
};

/* Which candidate of a class is the victim. */
enum vmm_policy_walk {
	VMM_POLICY_LEAST_RECENT,  /* the first in the order of use */
	VMM_POLICY_MOST_RECENT,   /* the last */
	VMM_POLICY_SECOND_CHANCE, /* the first in the order of arrival that was not used since */
	VMM_POLICY_FARTHEST,      /* the one with the greatest distance to its next use */
	VMM_POLICY_LEAST_VALUE    /* the first in a queue by value (queue.h) */
};

/*
 * The uses of one candidate: a cache line. An interval is the number of submissions between two
 * uses of the candidate; those above VMM_POLICY_INTERVAL_MAX are stored as that.
 */
#define VMM_POLICY_INTERVALS    16u
#define VMM_POLICY_INTERVAL_MAX UINT16_MAX
/* The order of the prediction by partial matching: how many of the latest intervals are matched. */
#define VMM_POLICY_CONTEXT      2u
struct vmm_policy_uses {
	uint64_t last;    /* submission of the last use; 0: not used yet */
	uint64_t arrival; /* second chance: use counter when it entered, or was last spared */
	uint16_t interval[VMM_POLICY_INTERVALS]; /* the latest first */
	/*
	 * The expected next use, `expected` after the last one, as long as idle < valid_to; of an
	 * overdue candidate (order.c) the idle time from which on it is dead.
	 */
	uint32_t expected, valid_to;
	uint8_t count; /* of intervals */
};

/* Greater than every distance that is not VMM_POLICY_DEAD. */
#define VMM_POLICY_DEAD UINT64_MAX

struct vmm_policy_order {
	const char *name;
	enum vmm_policy_walk walk;
	bool keeps_intervals; /* vmm_policy_use is called for each use */
	bool scatters;        /* content is moved together where free bytes suffice */
	bool steady;          /* a distance changes only with a submission or a use */
};
const struct vmm_policy_order *vmm_policy_order(enum vmm_policy_name name);

/* Adds a use in that submission. A second use in one submission changes nothing. */
void vmm_policy_use(struct vmm_policy_uses *uses, uint64_t submission);
/*
 * Says that the last use was in that submission, if it was later than those that were added. The
 * time between is no interval: uses in it may have been left out. The intervals before and after
 * it count as consecutive.
 */
void vmm_policy_missed(struct vmm_policy_uses *uses, uint64_t submission);
/*
 * Returns the number of submissions until the next use as expected in submission NOW, which does
 * not use the candidate: the median of the remembered intervals that are longer than the
 * time since the last use, less that time; that time itself if there are no intervals. Of those
 * longer ones only they count that followed two intervals like the last two, each like the one at
 * its place; if there are none, those that followed one like the last one, else all. Two are alike
 * if the shorter one is at least half of the other. If none is longer, the use is overdue: 1, or
 * VMM_POLICY_DEAD from twice the longest interval on.
 */
uint64_t vmm_policy_distance(struct vmm_policy_uses *uses, uint64_t now);

#endif
