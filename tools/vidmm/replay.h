/* SPDX-License-Identifier: MIT */
/*
 * replay: runs recordings through vidmm. A user-mode driver (umd.h) for the built-in software GPU makes of each
 * recorded event the callbacks that a WDDM driver would make; docs/replay.md has the mapping. The command line, the
 * tests and the fuzz program all come through replay_run.
 *
 * One thread drives every process, in merged order, so that a run on the simulator is a function of recordings,
 * options and seed alone.
 */
#ifndef VIDMM_TOOLS_REPLAY_H
#define VIDMM_TOOLS_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <vidmm/vidmm.h>

#include "trace.h"

/* Also the exit codes of `vidmm`. */
enum replay_status {
	REPLAY_CLEAN = 0,
	REPLAY_FINDINGS = 1, /* a rule was broken, content was wrong, or the program did not fit */
	REPLAY_USAGE = 2,
	REPLAY_BAD_INPUT = 3,
	REPLAY_ENVIRONMENT = 4 /* a file, memory or thread could not be had */
};

enum replay_verify { REPLAY_VERIFY_NONE, REPLAY_VERIFY_STAMPS, REPLAY_VERIFY_FULL };

/* A recording: a file, or with `data` bytes in memory (then `path` is its name in messages). */
struct replay_input {
	const char *path;
	const void *data;
	size_t size;
};

struct replay_options {
	const struct replay_input *inputs;
	unsigned input_count;
	const struct trace_limits *limits;   /* NULL: trace_default_limits */
	uint64_t vram_bytes, aperture_bytes; /* aperture_bytes 0: the adapter has none */
	enum replay_verify verify;
	uint32_t host_kind; /* enum vidmm_host_kind */
	uint64_t seed;
	uint32_t switch_per_1024;
	bool limit_ranges; /* the GPU has `ranges` swizzling ranges instead of softgpu's 64 */
	uint32_t ranges;
	bool gpu_time;                       /* the recording's pace and its model of GPU time */
	vidmm_driver_entry_fn *driver_entry; /* NULL: softgpu */
	/*
	 * NULL: the memory manager is in this program. Else the socket of a host that is another one ("": the one that
	 * vidmm_connect finds): each recording is then played by a program of its own. What is said above about memory, host, GPU and
	 * driver is that host's business and not used; nor are events.
	 */
	const char *connect;
	void (*message)(void *context,
			const char *text); /* findings and errors, one line each; NULL: dropped */
	void *message_context;
	void (*progress)(void *context, double fraction); /* called often; NULL: not */
	void *progress_context;
	bool hash_events;      /* sim: keep event_hash, which costs a few ns for each event */
	vidmm_event_fn *event; /* every event; NULL: not */
	void *event_context;
};

#define REPLAY_FINDINGS_KEPT 32u
struct replay_finding {
	char text[240];
	uint64_t count; /* of its rule */
};

struct replay_result {
	enum replay_status status;
	struct trace_header *headers; /* input_count of them */
	unsigned process_count;

	/* What the recordings asked for. */
	uint64_t events, submissions, references, relocations;
	uint64_t peak_live_bytes;

	/* What the driver did about it. */
	uint64_t renders, extra_renders; /* pfnRenderCb calls; those beyond one a submission */
	uint64_t offers, reclaims, discarded;
	uint64_t clamped_deltas, unmatched_imports, refused_tilings, foreign_accesses,
		ignored_tilings, ignored_exports;
	uint64_t bytes_written; /* by the CPU */

	/* What vidmm did (figures.h); replay_knows. Of a host that is another program: what all its clients had it do meanwhile. */
	bool told;                           /* it has said so */
	uint64_t vram_bytes, aperture_bytes; /* that the adapter has; aperture_bytes 0: none */
	uint64_t patches;                    /* patch locations of accepted submissions */
	uint64_t bytes_paged_in, bytes_paged_out, bytes_filled, bytes_discarded, bytes_moved;
	uint64_t evictions, renames, lock_waits, lock_wait_ns, splits;
	uint64_t waits_avoided; /* renames of what the GPU had not finished with */
	/* Swizzling ranges: given out, taken from another for it, and locks for which there was none. */
	uint64_t ranges_acquired, ranges_reclaimed, range_fallbacks;
	uint64_t peak_resident_bytes, peak_system_bytes;
	unsigned segment_count;
	struct vidmm_segment_statistics segment[VIDMM_SEGMENTS_MAX];

	uint64_t blocks_checked; /* by the CPU; the GPU's checks are not counted */
	uint64_t verify_errors;
	uint64_t finding_count;
	unsigned
		finding_kinds; /* rules, of which the first REPLAY_FINDINGS_KEPT are in `findings` */
	struct replay_finding findings[REPLAY_FINDINGS_KEPT];

	uint64_t event_hash; /* 0: not asked for */
	uint64_t virtual_ns, wall_ns;
};

/* Always fills *result (with status), to be released by replay_result_finish. */
enum replay_status replay_run(const struct replay_options *options, struct replay_result *result);
void replay_result_finish(struct replay_result *result);
/* Is the member at this offset of a result a figure, or something that nobody has said? */
bool replay_knows(const struct replay_options *options, const struct replay_result *result,
		  size_t offset);

/*
 * Reads the recordings once and finds the most bytes of buffers alive at a time, all processes together. Of the
 * options it uses inputs, limits, message and progress.
 */
struct replay_measure {
	uint64_t peak_live_bytes;
	uint64_t largest_buffer_bytes;
	/* sizes of all its buffers; 0 unless asked for */
	uint64_t largest_submission_bytes;
};
enum replay_status replay_measure(const struct replay_options *options, bool submissions,
				  struct replay_measure *measure);

#endif
