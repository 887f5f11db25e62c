/* SPDX-License-Identifier: MIT */
/*
 * The table of shared buffers. Between processes, the table and the contents are carved out of one
 * shared anonymous mapping.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "exchange.h"
#include "grow.h"

#define KEYS_MAX    65536u
/* reserved addresses; the kernel allocates pages on first use */
#define ARENA_BYTES ((size_t)256 << 20)

struct exchange {
	struct exchange_key *keys;
	uint32_t key_count, key_capacity;
	/*
	 * Between processes: the arena that follows this structure in the mapping. Contents are
	 * never given back to it, because exports are few. NULL: everything is allocated on the
	 * heap.
	 */
	char *arena;
	size_t arena_used;
};

static void *take_from_arena(struct exchange *exchange, size_t bytes)
{
	char *memory = exchange->arena + exchange->arena_used;

	bytes = (bytes + 15) & ~(size_t)15;
	if (bytes > ARENA_BYTES - exchange->arena_used)
		return NULL;
	exchange->arena_used += bytes;
	return memory;
}

static struct exchange *create_mapping(void)
{
	struct exchange *exchange =
		mmap(NULL, sizeof(*exchange) + ARENA_BYTES, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (exchange == MAP_FAILED)
		return NULL;
	exchange->arena = (char *)(exchange + 1);
	exchange->keys = take_from_arena(exchange, KEYS_MAX * sizeof(*exchange->keys));
	exchange->key_capacity = KEYS_MAX;
	return exchange;
}

struct exchange *exchange_create(bool between_processes)
{
	return between_processes ? create_mapping() : calloc(1, sizeof(struct exchange));
}

void exchange_destroy(struct exchange *exchange)
{
	uint32_t i;

	if (!exchange)
		return;
	for (i = 0; i < exchange->key_count && !exchange->arena; i++)
		content_put(exchange->keys[i].content);
	if (exchange->arena) {
		munmap(exchange, sizeof(*exchange) + ARENA_BYTES);
		return;
	}
	free(exchange->keys);
	free(exchange);
}

struct exchange_key *exchange_find(struct exchange *exchange, uint64_t key)
{
	uint32_t i;

	for (i = exchange->key_count; i-- > 0;) {
		if (exchange->keys[i].key == key && exchange->keys[i].users > 0)
			return &exchange->keys[i];
	}
	return NULL;
}

static bool has_space(struct exchange *exchange)
{
	if (exchange->arena)
		return exchange->key_count < exchange->key_capacity;
	return grow_array((void **)&exchange->keys, &exchange->key_capacity, exchange->key_count,
			  sizeof(*exchange->keys));
}

struct exchange_key *exchange_add(struct exchange *exchange)
{
	uint32_t i;

	for (i = 0; i < exchange->key_count && exchange->keys[i].users > 0; i++)
		;
	if (i == exchange->key_count) {
		if (!has_space(exchange))
			return NULL;
		exchange->key_count++;
	}
	exchange->keys[i] = (struct exchange_key){0};
	return &exchange->keys[i];
}

struct exchange_key *exchange_at(struct exchange *exchange, uint32_t index)
{
	return &exchange->keys[index];
}

uint32_t exchange_index(const struct exchange *exchange, const struct exchange_key *key)
{
	return (uint32_t)(key - exchange->keys);
}

void exchange_put(struct exchange *exchange, uint32_t index)
{
	struct exchange_key *key = &exchange->keys[index];

	if (--key->users > 0)
		return;
	content_put(key->content);
	key->content = NULL;
}

bool exchange_share_content(struct exchange *exchange, struct exchange_key *key,
			    struct content **content)
{
	struct content *moved;
	size_t versions;

	if (!*content)
		return true;
	if (!exchange->arena || (*content)->in_arena) {
		key->content = content_get(*content);
		return true;
	}
	versions = (*content)->block_count * sizeof(*moved->versions);
	moved = take_from_arena(exchange, sizeof(*moved) + versions);
	if (!moved)
		return false;
	*moved = **content;
	moved->in_arena = true;
	moved->references = 1;
	moved->versions = (uint32_t *)(moved + 1);
	if (!moved->uniform)
		memcpy(moved->versions, (*content)->versions, versions);
	content_put(*content);
	*content = moved;
	key->content = content_get(moved);
	return true;
}
