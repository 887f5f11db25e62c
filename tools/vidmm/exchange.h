/* SPDX-License-Identifier: MIT */
/*
 * exchange: what the processes of a replay pass one another: the keys under which buffers are shared, each with its global handle and the
 * content that it must have. For processes that are programs of their own it lies in memory that all of them map at the same
 * address, made before they are forked. It has no lock: processes in one program run on one thread, others keep the
 * recorded order around it (order.h).
 */
#ifndef VIDMM_TOOLS_EXCHANGE_H
#define VIDMM_TOOLS_EXCHANGE_H

#include "content.h"

/* A buffer that some process exported, under the recording's key. */
struct exchange_key {
	uint64_t key;
	uint32_t global_handle;
	uint32_t process; /* index of the exporter */
	uint32_t users;   /* open buffers, the exporter's included; 0: the memory is gone */
	uint64_t size_bytes;
	struct content *content; /* NULL when nothing is verified */
};

struct exchange;

/* NULL when out of memory. `between_programs`: for whatever is forked from here on. */
struct exchange *exchange_create(bool between_programs);
void exchange_destroy(struct exchange *exchange); /* NULL is fine */
/* The newest one of that key whose memory still exists; NULL: none. */
struct exchange_key *exchange_find(struct exchange *exchange, uint64_t key);
/* NULL when out of memory. */
struct exchange_key *exchange_add(struct exchange *exchange);
struct exchange_key *exchange_at(struct exchange *exchange, uint32_t index);
uint32_t exchange_index(const struct exchange *exchange, const struct exchange_key *key);
void exchange_put(struct exchange *exchange, uint32_t index);
/* Makes *content (NULL is fine) one that all processes can reach, and refers to it once more; false when out of memory. */
bool exchange_take(struct exchange *exchange, struct exchange_key *key, struct content **content);

#endif
