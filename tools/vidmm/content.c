/* SPDX-License-Identifier: MIT */
/*
 * Contents of buffers: versions of their blocks, with one value for all blocks where they are
 * equal.
 */
#include <stdlib.h>

#include "content.h"

struct content *content_create(uint32_t number, uint64_t size_bytes, uint32_t block_bytes)
{
	struct content *content = calloc(1, sizeof(*content));

	if (!content)
		return NULL;
	content->number = number;
	content->references = 1;
	content->block_bytes = block_bytes;
	content->block_count = (uint32_t)((size_bytes + block_bytes - 1) / block_bytes);
	content->uniform = true;
	return content;
}

struct content *content_get(struct content *content)
{
	content->references++;
	return content;
}

void content_put(struct content *content)
{
	if (!content || --content->references > 0 || content->in_arena)
		return;
	free(content->versions);
	free(content);
}

uint32_t content_next_version(struct content *content)
{
	/* 0 means zero-filled and CONTENT_UNKNOWN means unverifiable: neither is ever assigned. */
	content->last_version =
		content->last_version + 1 == CONTENT_UNKNOWN ? 1 : content->last_version + 1;
	return content->last_version;
}

uint32_t content_version(const struct content *content, uint32_t block)
{
	return content->uniform ? content->version : content->versions[block];
}

void content_set_all(struct content *content, uint32_t version)
{
	content->uniform = true;
	content->version = version;
}

bool content_set(struct content *content, uint32_t block, uint32_t version)
{
	uint32_t i;

	if (content->uniform && content->version == version)
		return true;
	if (content->uniform && content->block_count == 1) {
		content->version = version;
		return true;
	}
	if (!content->versions) {
		content->versions = malloc(content->block_count * sizeof(*content->versions));
		if (!content->versions)
			return false;
	}
	if (content->uniform) {
		for (i = 0; i < content->block_count; i++)
			content->versions[i] = content->version;
		content->uniform = false;
	}
	content->versions[block] = version;
	return true;
}

uint32_t content_run(const struct content *content, uint32_t first)
{
	uint32_t next;

	if (content->uniform)
		return content->block_count - first;
	for (next = first + 1; next < content->block_count; next++) {
		if (content->versions[next] != content->versions[first])
			break;
	}
	return next - first;
}
