/* SPDX-License-Identifier: MIT */
/*
 * latency: how long the command buffers of a process took, from the call that submitted them to the
 * interrupt of their completion, by the host's clock. Computed from the event stream. A buffer in
 * several portions ends with the last one.
 */
#ifndef VIDMM_TOOLS_LATENCY_H
#define VIDMM_TOOLS_LATENCY_H

#include <vidmm/vidmm.h>

#include "frames.h"
#include "histogram.h"

struct latency;
/*
 * FRAMES learns when the command buffers of its frames complete, in time since this call. NULL: out
 * of memory
 */
struct latency *latency_create(struct vidmm_host *host, struct frames *frames);
void latency_destroy(struct latency *latency); /* NULL is allowed */
/* The command buffers that are submitted from now on belong to these frames. */
void latency_label(struct latency *latency, struct frame_label label);
/* Of the command buffers that have completed. process 0: of all processes. */
void latency_summary(struct latency *latency, uint32_t process, struct histogram_summary *summary);

#endif
