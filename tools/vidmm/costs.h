/* SPDX-License-Identifier: MIT */
/*
 * costs: the time of the CPU that submissions and paging operations cost in a graphics kernel. On a
 * sim host code takes no time, so the thread that plays the recordings sleeps for it instead, after
 * the event that caused it.
 */
#ifndef VIDMM_TOOLS_COSTS_H
#define VIDMM_TOOLS_COSTS_H

#include <stdbool.h>
#include <vidmm/vidmm.h>

enum cost_kind {
	COST_SUBMIT,   /* a command buffer */
	COST_TRANSFER, /* paging operations: a copy, ... */
	COST_FILL,
	COST_MAP, /* ... a range of the aperture mapped or unmapped, ... */
	COST_UNMAP,
	COST_TABLE, /* ... updates of page tables in a row, a flush of translations */
	COST_FLUSH,
	COST_RANGE, /* a swizzling range assigned */
	COST_COUNT
};

/* ns for one of each; all 0: the CPU takes no time */
struct cost_model {
	uint64_t ns[COST_COUNT];
};

extern const char *const cost_names[COST_COUNT];
/*
 * TEXT: "none", "model" (the values of docs/link-costs.md), or values in us that replace some of
 * the model's, as "submit=5,map=12.5". Returns false for other texts.
 */
bool cost_model_parse(const char *text, struct cost_model *model);
bool cost_model_is_none(const struct cost_model *model);

struct costs;
/* NULL: out of memory */
struct costs *costs_create(struct vidmm_host *host, const struct cost_model *model);
void costs_destroy(struct costs *costs); /* NULL is allowed */
/* Returns the cost since the last call, in ns. */
uint64_t costs_take(struct costs *costs);

#endif
