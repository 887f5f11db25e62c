/* SPDX-License-Identifier: MIT */
/*
 * world: what all processes of one replay in this program share. The place where the memory manager is (door.h), the keys
 * under which buffers are shared, the numbers of contents, the counters of the result, and the way to complain.
 */
#ifndef VIDMM_TOOLS_WORLD_H
#define VIDMM_TOOLS_WORLD_H

#include <pthread.h>

#include "content.h"
#include "door.h"
#include "exchange.h"
#include "history.h"
#include "order.h"
#include "replay.h"

struct umd;

struct world_name {
	uint32_t process, buffer;
};

/*
 * The replay's processes that are programs of their own: this one among how many, and what they have in common (crew.h).
 * All zero where one program has them all.
 */
struct world_crew {
	unsigned index, count;
	struct exchange *exchange;
	struct order *order;
	const struct trace_header *headers; /* of all */
	uint64_t shift_ns;                  /* its recording began so long after the earliest */
};

struct world {
	const struct replay_options *options;
	struct replay_result *result;
	const struct door_place *place;
	struct door_adapter adapter_sizes;
	struct umd **processes;
	unsigned process_count;
	struct world_crew crew;
	struct exchange *exchange; /* the crew's, or its own */
	uint32_t block_bytes;      /* of verification; 0: none */
	struct world_name
		*names; /* of contents, by number - 1; of a crew every count'th number is its own */
	uint32_t name_count, name_room;
	bool deadlocked;

	/* Of door_there: who asks the host, and what it said at first. */
	struct vidmm_connection *connection;
	struct vidmm_adapter_statistics before;

	/* Of door_here. */
	struct vidmm_host *host;
	struct vidmm_adapter *adapter;
	struct history *history; /* NULL when nothing is verified */
	uint32_t finding_subscription, event_subscription;

	/* What events of any thread write; read it under the lock while the world runs. */
	pthread_mutex_t lock; /* also protects the findings in `result` */
	char last_reason[240];
};

enum replay_status world_start(struct world *world);
void world_stop(struct world *world);

/* One line to the user, without a newline. */
void world_message(struct world *world, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* NULL when out of memory. */
struct content *world_content(struct world *world, uint32_t process, uint32_t buffer,
			      uint64_t size_bytes);
/* A block does not carry what it should; `found` is what it does carry. */
struct softgpu_stamp;
void world_wrong_stamp(struct world *world, const struct softgpu_stamp *expected,
		       const struct softgpu_stamp *found, const char *who);
#endif
