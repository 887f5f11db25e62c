/* SPDX-License-Identifier: MIT */
/*
 * content: the expected content of a buffer, for verification. A buffer is divided into blocks.
 * Each block begins with a stamp (softgpu.h) of buffer, block and version. This structure holds the
 * version that each block must have. Processes that share a buffer share its content. Used by one
 * thread at a time: the thread of the replay, or the worker process whose turn it is (order.h).
 */
#ifndef VIDMM_TOOLS_CONTENT_H
#define VIDMM_TOOLS_CONTENT_H

#include <stdbool.h>
#include <stdint.h>

#define CONTENT_UNKNOWN UINT32_MAX /* unverifiable: not checked until the next write */

struct content {
	uint32_t number; /* the buffer's number in stamps, unique in a replay */
	uint32_t references;
	/* for messages: index of the process, and id in its recording */
	uint32_t process, buffer;
	uint32_t block_bytes, block_count;
	uint32_t last_version; /* the last version that was assigned */
	bool uniform;          /* every block has `version`; if false, versions[] applies */
	bool in_arena;         /* memory of the arena of exchange.c, never freed */
	uint32_t version;
	uint32_t *versions; /* [block_count]; NULL until two blocks differ for the first time */
};

/* Creates a zero-filled content (version 0). Returns NULL when out of memory. */
struct content *content_create(uint32_t number, uint64_t size_bytes, uint32_t block_bytes);
struct content *content_get(struct content *content);
void content_put(struct content *content); /* NULL is allowed */

uint32_t content_next_version(struct content *content);
uint32_t content_version(const struct content *content, uint32_t block);
void content_set_all(struct content *content, uint32_t version);
/* Returns false when out of memory; then nothing has changed. */
bool content_set(struct content *content, uint32_t block, uint32_t version);
/* Returns the number of consecutive blocks from FIRST on that have its version. */
uint32_t content_run(const struct content *content, uint32_t first);

#endif
