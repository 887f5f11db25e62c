/* SPDX-License-Identifier: MIT */
/*
 * content: what the driver believes to be in a buffer, for verification. A buffer is cut into blocks, each begins
 * with a stamp (softgpu.h) that names buffer, block and version; here is the version that each block must carry.
 * Processes that share a buffer share its content. Belongs to the replay's one thread.
 */
#ifndef VIDMM_TOOLS_CONTENT_H
#define VIDMM_TOOLS_CONTENT_H

#include <stdbool.h>
#include <stdint.h>

#define CONTENT_UNKNOWN UINT32_MAX /* nobody may rely on what is there; not checked until written */

struct content {
	uint32_t number; /* in stamps; never used twice in a replay */
	uint32_t references;
	uint32_t process,
		buffer; /* whom messages name: index of the process, id in its recording */
	uint32_t block_bytes, block_count;
	uint32_t last_version; /* given out */
	bool uniform;          /* every block has `version`; else see versions[] */
	bool fixed;            /* not of the heap (exchange.c), and never freed */
	uint32_t version;
	uint32_t *versions; /* [block_count]; NULL until blocks first differ */
};

/* All zero: version 0. NULL when out of memory. */
struct content *content_create(uint32_t number, uint64_t size_bytes, uint32_t block_bytes);
struct content *content_get(struct content *content);
void content_put(struct content *content); /* NULL is fine */

uint32_t content_next_version(struct content *content);
uint32_t content_version(const struct content *content, uint32_t block);
void content_set_all(struct content *content, uint32_t version);
/* False when out of memory; nothing has changed then. */
bool content_set(struct content *content, uint32_t block, uint32_t version);
/* How many blocks from `first` on carry the same version as that one. */
uint32_t content_run(const struct content *content, uint32_t first);

#endif
