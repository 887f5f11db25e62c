/* SPDX-License-Identifier: MIT */
/*
 * world: what all processes of one replay share. The host and the adapter, the keys under which buffers are shared,
 * the numbers of contents, the counters of the result, and the way to complain.
 */
#ifndef VIDMM_TOOLS_WORLD_H
#define VIDMM_TOOLS_WORLD_H

#include <pthread.h>

#include "content.h"
#include "history.h"
#include "replay.h"

struct umd;

/* A buffer that some process exported, under the recording's key. */
struct world_key {
	uint64_t key;
	uint32_t global_handle;
	uint32_t process; /* index of the exporter */
	uint32_t users;   /* open buffers, the exporter's included; 0: the memory is gone */
	uint64_t size_bytes;
	struct content *content; /* NULL when nothing is verified */
};

struct world_name {
	uint32_t process, buffer;
};

struct world {
	const struct replay_options *options;
	struct replay_result *result;
	struct vidmm_host *host;
	struct vidmm_adapter *adapter;
	struct umd **processes;
	unsigned process_count;
	struct history *history; /* NULL when nothing is verified */
	uint32_t block_bytes;    /* of verification; 0: none */
	struct world_key *keys;
	uint32_t key_count, key_room;
	struct world_name *names; /* of contents, by number - 1 */
	uint32_t name_count, name_room;
	uint32_t finding_subscription, event_subscription;
	bool deadlocked;

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
/* The newest one of that key whose memory still exists; NULL: none. */
struct world_key *world_find_key(struct world *world, uint64_t key);
struct world_key *world_add_key(struct world *world);
void world_key_put(struct world *world, uint32_t index);

#endif
