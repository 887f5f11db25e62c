/* SPDX-License-Identifier: MIT */
/* times: the latencies, frames and waits of a run on virtual or real time, followed together. */
#ifndef VIDMM_TOOLS_TIMES_H
#define VIDMM_TOOLS_TIMES_H

#include "replay.h"

struct times;
/* Time 0 of the recordings is now. NULL: out of memory */
struct times *times_create(struct vidmm_host *host, const struct cost_model *costs,
			   const struct trace_header *headers, unsigned process_count);
void times_destroy(struct times *times); /* NULL is allowed */
/* An event is about to be played; WHEN_NS is its time since the first event. */
void times_event(struct times *times, unsigned process, const struct trace_event *event,
		 uint64_t when_ns);
/*
 * Returns how long the CPU has to sleep for the event that was played; counted for the process as
 * the cost of its calls.
 */
uint64_t times_cost_ns(struct times *times, unsigned process);
/* No event follows, and the GPU is idle. Comes before times_of. */
void times_end(struct times *times);
/* INDEX and ID: of the recording and its process in events; FRAMES_NONE and 0: all processes. */
struct process_times times_of(struct times *times, uint32_t index, uint32_t id);

#endif
