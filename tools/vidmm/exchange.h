/* SPDX-License-Identifier: MIT */
/*
 * exchange: the table of shared buffers of a replay. For each key of the recordings it holds the
 * global handle and the expected content. For worker processes it is in memory that all of them map
 * at the same address, created before they are forked. It has no lock: processes in one program run
 * on one thread, and worker processes touch it in the recorded order only (order.h).
 */
#ifndef VIDMM_TOOLS_EXCHANGE_H
#define VIDMM_TOOLS_EXCHANGE_H

#include "content.h"

/* A buffer that a process exported, under its key in the recordings. */
struct exchange_key {
	uint64_t key;
	uint32_t global_handle;
	uint32_t process; /* index of the exporter */
	/* open buffers, the exporter's included; 0: the memory no longer exists */
	uint32_t users;
	uint64_t size_bytes;
	struct content *content; /* NULL without verification */
};

struct exchange;

/*
 * Returns NULL when out of memory. BETWEEN_PROCESSES: the table is shared with processes forked
 * later.
 */
struct exchange *exchange_create(bool between_processes);
void exchange_destroy(struct exchange *exchange); /* NULL is allowed */
/*
 * Returns an element with that key whose memory still exists, the one with the highest index; NULL
 * if there is none.
 */
struct exchange_key *exchange_find(struct exchange *exchange, uint64_t key);
/* Adds an element, in an unused slot if there is one. Returns NULL when out of memory. */
struct exchange_key *exchange_add(struct exchange *exchange);
struct exchange_key *exchange_at(struct exchange *exchange, uint32_t index);
uint32_t exchange_index(const struct exchange *exchange, const struct exchange_key *key);
void exchange_put(struct exchange *exchange, uint32_t index);
/*
 * Stores *CONTENT in KEY with one more reference. Between processes it is moved to the shared
 * memory first, and *CONTENT changes. NULL is allowed. Returns false when out of memory.
 */
bool exchange_share_content(struct exchange *exchange, struct exchange_key *key,
			    struct content **content);

#endif
