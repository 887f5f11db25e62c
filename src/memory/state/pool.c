/* SPDX-License-Identifier: MIT */
/*
 * Slab allocator of struct vmm_allocation: elements lie side by side on huge pages of 2 MiB, each
 * on separate cache lines. A submission visits thousands of allocations in random order. If each
 * were allocated from the heap it would be on a different page, between data of the miniport, and
 * the TLB misses would cost more than the work. The first chunk uses small pages until a quarter of
 * it is used, so that few allocations need little memory.
 *
 * Elements are taken under the paging lock. Any thread may free one without a lock: it pushes the
 * element onto the lock-free stack `given`. The taker pops the whole stack at once, so there is no
 * ABA problem. Chunks are freed when the adapter ends. Under a sanitizer each element comes from
 * the heap, so that uses after free are found.
 */
#include "base/failure.h"
#include "memory/state/state.h"

#include <stdlib.h>
#include <string.h>

/* The first word of a free element. */
struct vmm_pool_free {
	struct vmm_pool_free *next;
};

struct vmm_pool_chunk {
	struct vmm_pool_chunk *before;
	char *pages;
};

/*
 * The stride is an odd number of cache lines, so that the same member of all elements is spread
 * over all cache sets.
 */
enum {
	LINES = (sizeof(struct vmm_allocation) + VMM_CACHE_LINE - 1) / VMM_CACHE_LINE | 1,
	STRIDE = LINES * VMM_CACHE_LINE,
	PER_CHUNK = VMM_OS_HUGE_PAGE / STRIDE,
};

#ifdef VMM_SANITIZED
struct vmm_allocation *vmm_pool_take(struct vmm_memory *memory)
{
	(void)memory;
	struct vmm_allocation *a =
		vmm_fails(VMM_FAIL_ALLOCATION) ? NULL : aligned_alloc(VMM_CACHE_LINE, STRIDE);

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
	/*
	 * Once a chunk is full, the next one is expected to be filled as well: huge pages at once.
	 */
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

	if (vmm_unlikely(vmm_fails(VMM_FAIL_ALLOCATION)))
		return NULL;
	if (!found)
		found = atomic_exchange_explicit(&pool->given, NULL, memory_order_acquire);
	if (!found)
		return take_fresh(pool); /* the system has zeroed it */
	pool->free = found->next;
	return memset(found, 0, sizeof(struct vmm_allocation));
}

void vmm_pool_give(struct vmm_memory *memory, struct vmm_allocation *allocation)
{
	struct vmm_pool_free *end = (struct vmm_pool_free *)(void *)allocation;

	if (!allocation)
		return;
	/*
	 * No ABA problem: vmm_pool_take exchanges the whole stack, and never pops a single element.
	 */
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
