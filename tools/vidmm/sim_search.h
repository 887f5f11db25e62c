/* SPDX-License-Identifier: MIT */
/*
 * sim_search: the search for few steps that still fail. A candidate is a smaller plan than the best
 * one so far. A candidate function makes them by number; the search tries them one after the other,
 * and each that breaks the same rule becomes the best one.
 */
#ifndef VIDMM_TOOLS_SIM_SEARCH_H
#define VIDMM_TOOLS_SIM_SEARCH_H

#include "sim.h"

struct sim_search {
	struct sim_plan plan;    /* with the settings of the best */
	struct sim_step *steps;  /* of the best */
	uint64_t count;          /* of `steps` */
	struct sim_step *fewer;  /* of the candidate */
	uint64_t fewer_count;    /* of `fewer` */
	struct sim_setup setup;  /* of the candidate */
	struct sim_step *picked; /* shared memory for those of sim_plan */
	uint64_t part;           /* for sim_part_left_out: that many steps */
	uint64_t runs;
	const char *rule;         /* that a candidate must break */
	bool alone;               /* each candidate in another process */
	bool lacking;             /* a run had no process or no memory */
	struct sim_result *trial; /* shared memory: of the last run */
};

/*
 * Makes candidate INDEX in `fewer`, `fewer_count` and `setup`, which have the steps and settings of
 * the best one.
 */
typedef enum sim_next sim_candidate_fn(struct sim_search *s, uint64_t index);

/* ---- sim_candidates.c ---- */
/* The last steps only: 64, 128, and so on. */
sim_candidate_fn sim_last_steps;
/* Without part INDEX from the end, of `part` steps: later steps depend on earlier ones. */
sim_candidate_fn sim_part_left_out;
/* Without two steps, if there are few. */
sim_candidate_fn sim_pair_left_out;
/* Without all steps of one operation, of a process, with an allocation, or with any fault. */
sim_candidate_fn sim_group_left_out;
/* With one setting that is simpler. */
sim_candidate_fn sim_setting_simpler;
/* With one number of a step that is simpler, or with another process for all steps of one. */
sim_candidate_fn sim_step_simpler;
/* The picked steps, without those that were skipped. */
sim_candidate_fn sim_picked_steps;

#endif
