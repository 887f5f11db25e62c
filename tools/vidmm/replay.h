/* SPDX-License-Identifier: MIT */
/*
 * replay: plays recordings against the memory manager. A user-mode driver (umd.h) for the built-in
 * software GPU turns each recorded event into the callbacks that a WDDM driver would call;
 * docs/replay.md has the mapping. The command line, the tests and the fuzz program all use
 * replay_run.
 *
 * One thread drives all processes in merged order. On sim, a run is therefore a function of
 * recordings, options and seed.
 */
#ifndef VIDMM_TOOLS_REPLAY_H
#define VIDMM_TOOLS_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <vidmm/commands.h>
#include <vidmm/vidmm.h>

#include "costs.h"
#include "latency.h"
#include "link.h"
#include "thrash.h"
#include "trace.h"
#include "waits.h"

/* Results, from good to bad; also the exit codes of `vidmm`. */
enum replay_status {
	REPLAY_CLEAN = 0,
	/*
	 * A rule was broken, content was wrong, the program did not fit, or the adapter or a device
	 * was refused.
	 */
	REPLAY_FINDINGS = 1,
	REPLAY_USAGE = 2,
	REPLAY_BAD_INPUT = 3,
	REPLAY_ENVIRONMENT = 4 /* a file, memory or a thread is not available */
};

/* The default size of the aperture segment. */
#define REPLAY_APERTURE_BYTES ((uint64_t)1 << 30)

/* "clean", "findings", "usage", "bad input" or "environment" */
extern const char *const replay_status_names[];
/* The driver models, as options take them: "wddm1", "wddm2", NULL. Index: replay_options.wddm2. */
extern const char *const replay_models[];

/* The order of eviction inside an eviction class (docs/policies.md). */
enum replay_policy {
	REPLAY_POLICY_DEFAULT, /* the library's */
	REPLAY_POLICY_FIRST,   /* the values of enum vidmm_eviction_policy, in its order */
	REPLAY_POLICY_REFERENCE =
		REPLAY_POLICY_FIRST + VIDMM_EVICTION_PREDICTED + 1, /* the recordings' next uses */
	/* and what follows: that of policy_functions, from a file (policy.h) */
	REPLAY_POLICY_FILE
};

enum replay_verify { REPLAY_VERIFY_NONE, REPLAY_VERIFY_STAMPS, REPLAY_VERIFY_FULL };

/*
 * A recording: a file, or bytes in memory if `data` is not NULL (PATH is then its name in
 * messages).
 */
struct replay_input {
	const char *path;
	const void *data;
	size_t size;
};

struct replay_options {
	const struct replay_input *inputs;
	unsigned input_count;
	const struct trace_limits *limits; /* NULL: trace_default_limits */
	/* aperture_bytes 0: the adapter has no aperture segment */
	uint64_t vram_bytes, aperture_bytes;
	/*
	 * The most memory of this machine that the buffers may take; 0: no limit. Not with
	 * `connect`.
	 */
	uint64_t memory_bytes;
	enum replay_verify verify;
	uint32_t host_kind; /* enum vidmm_host_kind */
	uint64_t seed;
	uint32_t switch_per_1024;
	/* the GPU has `ranges` swizzling ranges; if false, softgpu's default of 64 */
	bool limit_ranges;
	uint32_t ranges;
	bool gpu_time;           /* GPU time by the recording's model; false: the GPU takes none */
	bool recorded_pace;      /* events at the recorded times; false: as fast as possible */
	struct link_model link;  /* the time of paging and of work in the aperture, if gpu_time */
	struct cost_model costs; /* sim: the time of the CPU, if gpu_time */
	bool shared_paging;      /* paging uses the engine of the submissions */
	/* No bytes are moved or written. Needs softgpu of WDDM 1.x, and no verification. */
	bool no_content;
	bool wddm2;             /* softgpu and its driver are of WDDM 2.x */
	bool by_bytes;          /* counts what the policy pages if only bytes count (by_bytes.h) */
	bool against_reference; /* counts victims that `reference` keeps; needs what it needs */
	unsigned thrash_count;  /* length of the list of the most paged buffers; 0: none */
	/* REPLAY_POLICY_REFERENCE needs host kind VIDMM_HOST_SIM and recordings that are files */
	enum replay_policy policy;
	const struct vidmm_policy *policy_functions; /* from REPLAY_POLICY_FILE on, else NULL */
	vidmm_driver_entry_fn *driver_entry;         /* NULL: softgpu */
	/* additional registry values of the adapter */
	const struct vidmm_registry_value *settings;
	unsigned setting_count;
	/*
	 * The command adapter of a driver that does not know softgpu's commands; NULL: it does.
	 * With one, or if bars is not NULL, the driver has the BARs of `bars`, or those of
	 * device_model (NULL: none), and only the values of `settings`, and reports its model
	 * itself; vram_bytes is the most that is used of each memory segment.
	 * aperture_bytes, wddm2, ranges, link, no_content and gpu_time do not apply.
	 */
	vidmm_commands_describe_fn *commands;
	const uint64_t *bars;
	unsigned bar_count; /* 0 with a device model */
	const struct vidmm_device_model *device_model;
	/*
	 * NULL: the memory manager is in this process. Otherwise the socket of a host in another
	 * process; "" is the default socket of vidmm_connect. Each recording is then played by a
	 * worker process. The members above about memory, host kind, GPU and driver are not used,
	 * and there are no events.
	 */
	const char *connect;
	/* called for findings and errors, one line each; NULL: they are dropped */
	void (*message)(void *context, const char *text);
	void *message_context;
	/*
	 * Whether a finding is known already: then it is dropped. Called one at a time, on any
	 * thread, and must not block. NULL: none is known.
	 */
	bool (*known)(void *context, const char *text);
	void *known_context;
	/* called often, with 0 to 1; NULL: never */
	void (*progress)(void *context, double fraction);
	void *progress_context;
	bool hash_events;      /* sim: compute event_hash, which costs some ns for each event */
	vidmm_event_fn *event; /* called for every event; NULL: never */
	void *event_context;
};

#define REPLAY_FINDINGS_KEPT 32u
struct replay_finding {
	char text[240];
	uint64_t count; /* findings of this rule */
};

/* The adapter or the device that could not be created. */
struct replay_refusal {
	bool refused;     /* false: none, and the other members are 0 */
	bool device;      /* else the adapter */
	char program[64]; /* whose device it is */
	vidmm_status status;
	char reason[240]; /* "": the library gave none */
};

/* How long the work of a process, or of all, took. All 0 without gpu_time. */
struct process_times {
	struct histogram_summary latency; /* of command buffers */
	struct frames_summary frames;
	struct waits_summary waits;
};

struct replay_result {
	enum replay_status status;
	struct replay_refusal refusal;
	char commands[VIDMM_COMMANDS_NAME_MAX + 1]; /* name of the command adapter, or "" */
	bool wddm2;                                 /* the driver is of WDDM 2.x */
	struct trace_header *headers;               /* [process_count] */
	unsigned process_count;

	/* Counts of the recordings. */
	uint64_t events, submissions, references, relocations;
	uint64_t by_bytes_again; /* with by_bytes: paged in again if only bytes count */
	uint64_t peak_live_bytes;

	/* Counts of the user-mode drivers. */
	uint64_t renders, extra_renders; /* pfnRenderCb calls; those beyond one per submission */
	uint64_t offers, reclaims, discarded;
	uint64_t clamped_deltas, unmatched_imports, refused_tilings, foreign_accesses,
		ignored_tilings, ignored_exports;
	uint64_t bytes_written; /* written by the CPU */
	/*
	 * What the driver of WDDM 2.x does itself: renames of busy buffers, waits of the CPU for
	 * the GPU, evictions to stay within the budget, and submissions that exceed it alone.
	 * The first two are also in the counts of the same names below.
	 */
	struct {
		uint64_t renames, waits, wait_ns, trimmed, over_budget;
	} driver;

	/*
	 * Counts of the memory manager (statistics.h). Of a host in another process: for all its
	 * clients during the replay. replay_has_value says which members are valid.
	 */
	bool statistics_known;               /* the counts of this group are valid */
	uint64_t vram_bytes, aperture_bytes; /* of the adapter; aperture_bytes 0: no aperture */
	uint64_t patches;                    /* patch locations of accepted submissions */
	uint64_t bytes_paged_in, bytes_paged_out, bytes_filled, bytes_discarded, bytes_moved;
	uint64_t evictions, renames, lock_waits, lock_wait_ns, splits;
	/*
	 * Parts of bytes_paged_in and of evictions: `first` is into video memory for
	 * the first time, `again` the sum of the other five; `video` is the sum of the evictions
	 * without those from the aperture. `policy`, with
	 * against_reference only, is part of capacity and fragmentation together: the policy
	 * `reference` would have evicted others (victims.h).
	 */
	struct {
		uint64_t first, again, capacity, fragmentation, lock, trim, other, policy;
	} paged_in;
	struct {
		uint64_t aperture, video, capacity, fragmentation, lock, trim, other, policy;
	} evicted;
	uint64_t waits_avoided; /* renames while the GPU still used the previous instance */
	/*
	 * Swizzling ranges: acquired, of those taken from another allocation, and locks without a
	 * range.
	 */
	uint64_t ranges_acquired, ranges_reclaimed, range_fallbacks;
	uint64_t peak_resident_bytes, peak_system_bytes;
	unsigned segment_count;
	struct vidmm_segment_statistics segment[VIDMM_SEGMENTS_MAX];

	uint64_t blocks_checked; /* checks by the CPU; those by the GPU are not counted */
	uint64_t verify_errors;
	uint64_t finding_count;
	/* broken rules; the first REPLAY_FINDINGS_KEPT are in `findings` */
	unsigned finding_kinds;
	struct replay_finding findings[REPLAY_FINDINGS_KEPT];

	/* A host in another process reports none. */
	struct process_times times;
	struct process_times *process_times; /* [process_count] */

	/*
	 * The most paged buffers, in the order of thrash_top. A host in another process has none.
	 */
	struct thrash_entry *thrash;
	unsigned thrash_count;

	uint64_t event_hash; /* 0: not computed */
	uint64_t virtual_ns, wall_ns;
};

/* Plays the recordings. Always fills *RESULT, status included; replay_result_finish frees it. */
enum replay_status replay_run(const struct replay_options *options, struct replay_result *result);
void replay_result_finish(struct replay_result *result);
/*
 * Returns whether the member of a result at OFFSET has a value. Findings of a host in another
 * process have none, nor have statistics that the host did not report.
 */
bool replay_has_value(const struct replay_options *options, const struct replay_result *result,
		      size_t offset);

/*
 * Reads the recordings once and finds the peak of the bytes of live buffers, over all processes
 * together. It uses the options inputs, limits, message and progress.
 */
struct replay_measure {
	uint64_t peak_live_bytes;
	uint64_t largest_buffer_bytes;
	/* all buffers of the largest submission; 0 unless SUBMISSIONS was true */
	uint64_t largest_submission_bytes;
};
enum replay_status replay_measure(const struct replay_options *options, bool submissions,
				  struct replay_measure *measure);

#endif
