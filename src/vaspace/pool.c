/* SPDX-License-Identifier: MIT */
/*
 * Objects of one size that an address space takes and gives back with every Map and Free. They come
 * from chunks and are reused last-in-first-out, so a call that finds one takes nothing from the
 * heap. Under a sanitizer each object comes from the heap, so that uses after free are found.
 */
#include "base/failure.h"
#include "vaspace/vaspace_private.h"

enum { PER_CHUNK = 32 };

static void push(struct vmm_va_pool *pool, void *object)
{
	*(void **)object = pool->unused;
	pool->unused = object;
	pool->unused_count++;
}

static void *pop(struct vmm_va_pool *pool)
{
	void *object = pool->unused;

	pool->unused = *(void **)object;
	pool->unused_count--;
	return object;
}

#ifdef VMM_SANITIZED
static bool grow(struct vmm_va_pool *pool)
{
	void *object = vmm_calloc(1, pool->size);

	if (object)
		push(pool, object);
	return object != NULL;
}

void vmm_va_pool_give(struct vmm_va_pool *pool, void *object)
{
	(void)pool;
	vmm_free(object);
}
#else
/* The first element of a chunk is its link to the one before. */
static bool grow(struct vmm_va_pool *pool)
{
	char *chunk = vmm_calloc(PER_CHUNK + 1, pool->size);

	if (!chunk)
		return false;
	*(void **)chunk = pool->chunks;
	pool->chunks = chunk;
	for (uint32_t i = PER_CHUNK; i; i--)
		push(pool, chunk + i * pool->size);
	return true;
}

void vmm_va_pool_give(struct vmm_va_pool *pool, void *object)
{
	push(pool, object);
}
#endif

vmm_status vmm_va_pool_reserve(struct vmm_va_pool *pool, uint32_t count)
{
	while (vmm_unlikely(pool->unused_count < count))
		if (!grow(pool))
			return VMM_NO_MEMORY;
	return VMM_OK;
}

void *vmm_va_pool_take(struct vmm_va_pool *pool)
{
	if (vmm_fails(VMM_FAIL_ALLOCATION) || !vmm_ok(vmm_va_pool_reserve(pool, 1)))
		return NULL;
	return pop(pool);
}

void *vmm_va_pool_take_reserved(struct vmm_va_pool *pool)
{
	vmm_assert(pool->unused);
	return pop(pool);
}

void vmm_va_pool_finish(struct vmm_va_pool *pool)
{
	void *next;

#ifdef VMM_SANITIZED
	while (pool->unused)
		vmm_free(pop(pool));
#endif
	for (; pool->chunks; pool->chunks = next) {
		next = *(void **)pool->chunks;
		vmm_free(pool->chunks);
	}
	pool->unused = NULL;
	pool->unused_count = 0;
}
