/* SPDX-License-Identifier: MIT */
#include "times.h"

#include <stdlib.h>

struct times {
	struct frames *frames;
	struct latency *latency;
	struct waits *waits;
	struct costs *costs; /* NULL: the CPU takes no time */
	unsigned count;
	uint64_t cost_ns[]; /* of each process */
};

struct times *times_create(struct vidmm_host *host, const struct cost_model *costs,
			   const struct trace_header *headers, unsigned process_count)
{
	struct times *times = calloc(1, sizeof(*times) + process_count * sizeof(times->cost_ns[0]));
	bool has_costs = !cost_model_is_none(costs);

	if (!times)
		return NULL;
	times->count = process_count;
	if (has_costs)
		times->costs = costs_create(host, costs);
	times->frames = frames_create(headers, process_count);
	if (times->frames)
		times->latency = latency_create(host, times->frames);
	times->waits = waits_create(host);
	if (times->latency && times->waits && (times->costs || !has_costs))
		return times;
	times_destroy(times);
	return NULL;
}

void times_destroy(struct times *times)
{
	if (!times)
		return;
	costs_destroy(times->costs);
	waits_destroy(times->waits);
	latency_destroy(times->latency);
	frames_destroy(times->frames);
	free(times);
}

void times_event(struct times *times, unsigned process, const struct trace_event *event,
		 uint64_t when_ns)
{
	latency_label(times->latency, frames_event(times->frames, process, event, when_ns));
}

uint64_t times_cost_ns(struct times *times, unsigned process)
{
	uint64_t ns = times->costs ? costs_take(times->costs) : 0;

	times->cost_ns[process] += ns;
	return ns;
}

void times_end(struct times *times)
{
	frames_end(times->frames);
}

struct process_times times_of(struct times *times, uint32_t index, uint32_t id)
{
	struct process_times result;

	latency_summary(times->latency, id, &result.latency);
	frames_summary(times->frames, index, &result.frames);
	waits_summary(times->waits, id, frames_recorded_gpu_ns(times->frames, index),
		      &result.waits);
	for (unsigned i = 0; i < times->count; i++)
		if (index == FRAMES_NONE || index == i)
			result.waits.cpu_cost_ns += times->cost_ns[i];
	return result;
}
