/* SPDX-License-Identifier: MIT */
#include "times.h"

#include <stdlib.h>

struct times {
	struct frames *frames;
	struct latency *latency;
	struct waits *waits;
};

struct times *times_create(struct vidmm_host *host, const struct trace_header *headers,
			   unsigned process_count)
{
	struct times *times = calloc(1, sizeof(*times));

	if (!times)
		return NULL;
	times->frames = frames_create(headers, process_count);
	if (times->frames)
		times->latency = latency_create(host, times->frames);
	times->waits = waits_create(host);
	if (times->latency && times->waits)
		return times;
	times_destroy(times);
	return NULL;
}

void times_destroy(struct times *times)
{
	if (!times)
		return;
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
	return result;
}
