/* SPDX-License-Identifier: MIT */
/*
 * frames: when the GPU completed each frame of a recorded program, beside the recording.
 *
 * A recording has no presents. A program that shares its images with a compositor writes these
 * exported buffers in turn, so a frame ends with its last submission that writes one of them before
 * the program writes another one (swaps). A program that wrote fewer than two of them has no such
 * marker. Its frames end where it then submits nothing for 4 ms (pauses).
 *
 * When the recording completed a frame follows from the model of the GPU in its header: each
 * submission takes base time and its bytes at the model's rate (gpu_time.h), and the submissions of
 * a ring execute one after the other.
 *
 * Frames are counted as they complete, so memory depends on how many are queued.
 */
#ifndef VIDMM_TOOLS_FRAMES_H
#define VIDMM_TOOLS_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "histogram.h"
#include "trace.h"

#define FRAMES_PAUSE_NS     4000000u
#define FRAMES_TOLERANCE_NS 1000000u

struct frames_summary {
	uint64_t count;                 /* completed frames */
	struct histogram_summary times; /* from the completion of one frame to that of the next */
	/*
	 * Frames that completed more than the tolerance after the recording had both completed them
	 * and submitted the end of the next frame.
	 */
	uint64_t late;
	uint64_t stall_ns; /* the largest excess of a frame time over the recorded one */
	bool swaps;        /* some frames ended by swaps */
};

/* The frames that a submission belongs to. */
struct frame_label {
	uint32_t process; /* index of the recording; FRAMES_NONE: no frame */
	uint32_t swap;    /* number of the frame by swaps; FRAMES_NONE: no image was written */
	uint32_t pause;   /* number of the frame by pauses */
};
#define FRAMES_NONE UINT32_MAX

struct frames;
/* NULL: out of memory */
struct frames *frames_create(const struct trace_header *headers, unsigned process_count);
void frames_destroy(struct frames *frames); /* NULL is allowed */
/* An event is about to be played; WHEN_NS is its time since the first event. */
struct frame_label frames_event(struct frames *frames, unsigned process,
				const struct trace_event *event, uint64_t when_ns);
/*
 * A command buffer of a submission was accepted, or completed at NOW_NS since the first event.
 * Called on any thread.
 */
void frames_accepted(struct frames *frames, struct frame_label label);
void frames_completed(struct frames *frames, struct frame_label label, uint64_t now_ns);
/* No event follows. Comes before the summaries. */
void frames_end(struct frames *frames);
/* process FRAMES_NONE: of all processes */
void frames_summary(struct frames *frames, uint32_t process, struct frames_summary *summary);
/* The GPU time of the submissions so far by the recording's model. */
uint64_t frames_recorded_gpu_ns(struct frames *frames, uint32_t process);

#endif
