/* SPDX-License-Identifier: MIT */
/*
 * world: the state that all recorded processes of a replay in this process share: how to reach the
 * memory manager (host_ops.h), the table of shared buffers, the numbers of contents, the result,
 * and the output of messages.
 */
#ifndef VIDMM_TOOLS_WORLD_H
#define VIDMM_TOOLS_WORLD_H

#include <pthread.h>
#include <vidmm/commands.h>

#include "content.h"
#include "exchange.h"
#include "history.h"
#include "host_ops.h"
#include "order.h"
#include "replay.h"

struct thrash;
struct times;
struct umd;
struct next_uses;
struct victims;

/* The buffer that a content number belongs to: index of its process, and id in the recording. */
struct content_owner {
	uint32_t process, buffer;
};

/*
 * A worker process: its index, the number of workers, and what they share (workers.h). All zero if
 * one process plays all recordings.
 */
struct world_worker {
	unsigned index, count;
	struct exchange *exchange;
	struct order *order;
	const struct trace_header *headers; /* the headers of all recordings */
	/* its recording begins this much later than the earliest one */
	uint64_t shift_ns;
};

struct world {
	const struct replay_options *options;
	struct replay_result *result;
	const struct host_ops *ops;
	struct host_adapter_sizes adapter_sizes;
	struct umd **processes;
	unsigned process_count;
	/* The miniport is of WDDM 2.x. commands: of a foreign one; NULL: it knows softgpu's. */
	bool wddm2;
	const struct vidmm_commands *commands;
	uint32_t wished_segment; /* of new allocations of a foreign miniport; 0: any */
	bool undivided;          /* a submission is one command buffer, whatever its size */
	struct world_worker worker;
	struct exchange *exchange; /* shared by all workers, or the world's */
	uint32_t block_bytes;      /* bytes of a block for verification; 0: no verification */
	/* buffers by content number: index (number - 1) / number of workers */
	struct content_owner *content_owners;
	uint32_t owner_count, owner_capacity;
	void **shared_uses; /* umd_memory.c: by index in the exchange */
	uint32_t shared_uses_count;
	bool deadlocked;
	/* with REPLAY_POLICY_REFERENCE or against_reference, else NULL */
	struct next_uses *next_uses;

	/* For host_remote: the connection that asks for statistics, and the first sample. */
	struct vidmm_connection *connection;
	struct vidmm_adapter_statistics before;

	/* For host_local. */
	struct vidmm_host *host;
	struct vidmm_adapter *adapter;
	struct history *history; /* NULL without verification */
	struct times *times;     /* NULL without gpu_time */
	struct thrash *thrash;   /* NULL if no list of the most paged buffers is wanted */
	struct victims *victims; /* NULL without against_reference */
	uint32_t finding_subscription, event_subscription;

	/*
	 * Written by event callbacks on any thread. While the world runs, accessed with the lock
	 * held.
	 */
	pthread_mutex_t lock; /* also guards the findings in `result` */
	char last_reason[240];
};

enum replay_status world_start(struct world *world);
void world_stop(struct world *world);

/* Reports one line, without a newline. */
void world_message(struct world *world, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/*
 * Reports that the adapter, or the device of PROGRAM, was refused, and keeps that in the result.
 * Returns the status that the replay ends with.
 */
enum replay_status world_refused(struct world *world, const char *program, vidmm_status status);
/*
 * Keeps a finding in the result and reports it, if it is the first of its rule. world_finding takes
 * the lock; the other one is called with it.
 */
void world_finding(struct world *world, const char *text);
void world_keep_finding(struct world *world, const char *text);
/* Creates the content of a buffer with a new number. Returns NULL when out of memory. */
struct content *world_content(struct world *world, uint32_t process, uint32_t buffer,
			      uint64_t size_bytes);
/* Reports a block with a wrong stamp. CHECKER is "the GPU" or "the CPU". */
struct softgpu_stamp;
void world_wrong_stamp(struct world *world, const struct softgpu_stamp *expected,
		       const struct softgpu_stamp *found, const char *checker);
#endif
