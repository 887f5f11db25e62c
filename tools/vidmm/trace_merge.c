/* SPDX-License-Identifier: MIT */
/*
 * Merges recordings: it holds the next event of each reader and returns the earliest. There are few
 * readers, so a linear search is enough.
 */
#include <stdlib.h>

#include "trace.h"

struct lane {
	struct trace_reader *reader;
	struct trace_event event;
	uint64_t shift_ns;        /* difference of its t0 to the earliest t0 */
	enum trace_result result; /* of the read that filled `event` */
};

struct trace_merge {
	unsigned count;
	/*
	 * the lane whose event was returned last, which is read on before the next choice; count:
	 * none
	 */
	unsigned returned;
	struct lane lane[];
};

struct trace_merge *trace_merge_create(struct trace_reader *const *readers, unsigned count)
{
	struct trace_merge *merge = calloc(1, sizeof(*merge) + count * sizeof(merge->lane[0]));
	uint64_t first_ns = UINT64_MAX;
	unsigned i;

	if (!merge)
		return NULL;
	merge->count = merge->returned = count;
	for (i = 0; i < count; i++) {
		uint64_t t0_ns = trace_header(readers[i])->t0_ns;

		if (t0_ns < first_ns)
			first_ns = t0_ns;
	}
	for (i = 0; i < count; i++) {
		struct lane *lane = &merge->lane[i];

		lane->reader = readers[i];
		lane->shift_ns = trace_header(readers[i])->t0_ns - first_ns;
		lane->result = trace_next(lane->reader, &lane->event);
	}
	return merge;
}

void trace_merge_destroy(struct trace_merge *merge)
{
	free(merge);
}

enum trace_result trace_merge_next(struct trace_merge *merge, unsigned *process, uint64_t *when_ns,
				   const struct trace_event **event)
{
	struct lane *best = NULL;
	uint64_t best_ns = 0;
	unsigned i;

	if (merge->returned < merge->count) {
		struct lane *lane = &merge->lane[merge->returned];

		lane->result = trace_next(lane->reader, &lane->event);
	}
	for (i = 0; i < merge->count; i++) {
		struct lane *lane = &merge->lane[i];
		uint64_t at_ns = lane->event.time_ns + lane->shift_ns;

		if (lane->result == TRACE_END)
			continue;
		if (lane->result != TRACE_OK) {
			*process = i;
			merge->returned = merge->count;
			return lane->result;
		}
		if (!best || at_ns < best_ns) {
			best = lane;
			best_ns = at_ns;
		}
	}
	if (!best) {
		merge->returned = merge->count;
		return TRACE_END;
	}
	merge->returned = (unsigned)(best - merge->lane);
	*process = merge->returned;
	*when_ns = best_ns;
	*event = &best->event;
	return TRACE_OK;
}
