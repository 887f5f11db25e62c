/* SPDX-License-Identifier: MIT */
/*
 * Where allocations live: side by side on pages of 2 MiB, each on lines of cache of its own. A submission goes through thousands of
 * them in no order, and from the heap each would be on a page of its own, between what its miniport allocated: what it costs to find
 * the page is then more than all that is done there. A chunk is of small pages until a quarter of it is used, so that few
 * allocations cost little memory.
 *
 * Taken under the paging lock; given back by anybody. Chunks stay until the adapter ends. A sanitizer gets each from the heap, so that
 * it sees uses after their end.
 */
#include "memory/memory_private.h"

#include <stdlib.h>
#include <string.h>

#define LINE_BYTES 64u

/* Of a free one, its first word. */
struct vmm_pool_free {
	struct vmm_pool_free *next;
};

struct vmm_pool_chunk {
	struct vmm_pool_chunk *before;
	char *pages;
};

/* An odd number of lines: then what is at the same place in each is spread over all sets of every cache. */
enum {
	LINES = (sizeof(struct vmm_allocation) + LINE_BYTES - 1) / LINE_BYTES | 1,
	STRIDE = LINES * LINE_BYTES,
	PER_CHUNK = VMM_OS_HUGE_PAGE / STRIDE,
};

#ifdef VMM_SANITIZED
struct vmm_allocation *vmm_pool_take(struct vmm_memory *memory)
{
	(void)memory;
	struct vmm_allocation *a = vmm_calloc_fails() ? NULL : aligned_alloc(LINE_BYTES, STRIDE);

	if (a)
		memset(a, 0, sizeof(*a));
	return a;
}

void vmm_pool_give(struct vmm_memory *memory, struct vmm_allocation *allocation)
{
	(void)memory;
	free(allocation);
}
#else
static bool add_chunk(struct vmm_pool *pool)
{
	struct vmm_pool_chunk *chunk = vmm_calloc(1, sizeof(*chunk));

	if (!chunk)
		return false;
	chunk->pages = vmm_os_pages_create();
	if (!chunk->pages) {
		vmm_free(chunk);
		return false;
	}
	/* Who has filled one fills the next. */
	if (pool->chunk)
		vmm_os_pages_join(chunk->pages);
	chunk->before = pool->chunk;
	pool->chunk = chunk;
	pool->fresh = 0;
	return true;
}

static void *take_fresh(struct vmm_pool *pool)
{
	if ((!pool->chunk || pool->fresh == PER_CHUNK) && !add_chunk(pool))
		return NULL;
	if (pool->fresh == PER_CHUNK / 4 && !pool->chunk->before)
		vmm_os_pages_join(pool->chunk->pages);
	return pool->chunk->pages + (size_t)STRIDE * pool->fresh++;
}

struct vmm_allocation *vmm_pool_take(struct vmm_memory *memory)
{
	struct vmm_pool *pool = &memory->pool;
	struct vmm_pool_free *found = pool->free;

	if (vmm_unlikely(vmm_calloc_fails()))
		return NULL;
	if (!found)
		found = atomic_exchange_explicit(&pool->given, NULL, memory_order_acquire);
	if (!found)
		return take_fresh(pool); /* zero, as it comes from the system */
	pool->free = found->next;
	return memset(found, 0, sizeof(struct vmm_allocation));
}

void vmm_pool_give(struct vmm_memory *memory, struct vmm_allocation *allocation)
{
	struct vmm_pool_free *end = (struct vmm_pool_free *)(void *)allocation;

	if (!allocation)
		return;
	/* Whoever takes them takes all: none can come back between these two. */
	end->next = atomic_load_explicit(&memory->pool.given, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(&memory->pool.given, &end->next, end,
						      memory_order_release, memory_order_relaxed))
		;
}
#endif

void vmm_pool_finish(struct vmm_pool *pool)
{
	while (pool->chunk) {
		struct vmm_pool_chunk *chunk = pool->chunk;

		pool->chunk = chunk->before;
		vmm_os_pages_destroy(chunk->pages);
		vmm_free(chunk);
	}
}
