/* SPDX-License-Identifier: MIT */
/*
 * conform_stage: a host, an adapter on the miniport and a process with a device, on which a
 * situation acts through the user-mode driver of the replay. Each step returns false if it failed;
 * then the outcome says so.
 */
#ifndef VIDMM_TOOLS_CONFORM_STAGE_H
#define VIDMM_TOOLS_CONFORM_STAGE_H

#include "conform.h"
#include "umd_private.h"

#define STAGE_DDIS_MAX 128u

/* Work of the GPU since the stage began, as the events count it. */
struct stage_work {
	uint64_t submissions;      /* render submissions that were accepted */
	uint64_t renders, packets; /* packets that the miniport got: of render submissions; all */
	uint64_t retired;          /* packets that are complete */
};

struct conform_stage {
	const struct conform_options *conform;
	struct conform_outcome *outcome;
	struct replay_options options;
	struct replay_result result;
	struct world world;
	bool started;         /* the world */
	bool starting;        /* the adapter; findings are those of its start */
	bool repeats_refusal; /* the adapter does not start, as in the situation "start" */
	bool is_start;        /* the situation "start", whose findings the others do not repeat */
	uint32_t buffers;     /* created */
	char message[240];    /* the last one of the replay */
	char wrong[240];      /* the first one about wrong content */
	pthread_mutex_t lock;
	/* Counts of events, by enum vidmm_ddi and enum vidmm_recovery. */
	uint64_t ddis[STAGE_DDIS_MAX], recoveries[32];
	struct stage_work work;
};

/* limit_bytes: memory_limit_bytes of the adapter; 0: none. */
bool stage_start(struct conform_stage *stage, uint64_t limit_bytes);
/* Opens a process with a device; a further one replaces the earlier, whose process is closed. */
bool stage_open(struct conform_stage *stage);
/* Stops everything and takes over findings and counts. */
void stage_stop(struct conform_stage *stage);

/* Buffers have the ids 1, 2 ... */
bool stage_create(struct conform_stage *stage, uint64_t size_bytes);
/* One submission that references COUNT buffers from id FIRST on. */
bool stage_submit(struct conform_stage *stage, uint32_t first, uint32_t count, bool write);
bool stage_destroy(struct conform_stage *stage, uint32_t id);
bool stage_cpu_write(struct conform_stage *stage, uint32_t id);
bool stage_cpu_read(struct conform_stage *stage, uint32_t id);
/* Compares the content of all buffers. */
bool stage_verify(struct conform_stage *stage);
struct vidmm_adapter_statistics stage_statistics(const struct conform_stage *stage);
struct stage_work stage_work(struct conform_stage *stage);

/* Ends the situation with an outcome, unless it broke before. */
void stage_say(struct conform_stage *stage, enum conform_state state, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
