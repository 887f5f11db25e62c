/* SPDX-License-Identifier: MIT */
/*
 * System memory. Backing stores and DMA buffers are carved out of arenas: a few large memory
 * objects, each with a range heap. An allocation thus costs no file descriptor and no system call.
 * Its pages have a permanent host mapping and bus address. Pages that had an owner are zeroed
 * before a new one can see them (docs/architecture.md, decision 6).
 *
 * Content that an out-of-process client may map is in arenas that hold content of that client only,
 * because a file descriptor can neither be restricted to a range nor revoked. After the client has
 * ended, each of its arenas is closed as soon as it is empty.
 *
 * All arenas of one owner are parts of one file, the owner's pool. So a client costs one descriptor
 * here, which it gets with its first allocation, and no eviction or packet fails for lack of one.
 *
 * The number of arenas follows use with hysteresis: an empty arena is closed only if the rest would
 * then be at most half full. The first arena is never closed before the end.
 */
#include "memory/store/arena.h"
#include "memory/store/store.h"
#include "range/range.h"

#include <string.h>

#define POOL_BYTES ((uint64_t)1 << 40) /* more than any limit of system memory in use */

/*
 * Returns the slot of a closed arena whose bus address range is large enough, else a new slot.
 * NULL: all are in use.
 */
static struct vmm_arena *free_slot(struct vmm_memory *memory, uint64_t size_bytes)
{
	for (uint32_t i = 0; i < memory->arena_count; i++)
		if (!memory->arenas[i].heap && memory->arenas[i].physical_bytes >= size_bytes)
			return &memory->arenas[i];
	if (memory->arena_count == VMM_ARENAS_MAX)
		return NULL;
	return &memory->arenas[memory->arena_count];
}

/* ---- pools ---- */

static struct vmm_arena_pool *find_pool(const struct vmm_memory *memory, uint64_t owner)
{
	struct vmm_list *link;

	vmm_list_for_each (link, &memory->arena_pools) {
		struct vmm_arena_pool *pool = vmm_container_of(link, struct vmm_arena_pool, link);

		if (pool->owner == owner)
			return pool;
	}
	return NULL;
}

vmm_status vmm_arenas_prepare(struct vmm_memory *memory, uint64_t owner)
{
	struct vmm_arena_pool *pool;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (find_pool(memory, owner))
		return VMM_OK;
	pool = vmm_calloc(1, sizeof(*pool));
	if (!pool)
		return VMM_NO_MEMORY;
	pool->owner = owner;
	pool->size_bytes = POOL_BYTES;
	if (!vmm_ok(vmm_os_pool_create("system memory", &pool->size_bytes, &pool->file))) {
		vmm_free(pool);
		return VMM_NO_MEMORY;
	}
	vmm_list_push_back(&memory->arena_pools, &pool->link);
	return VMM_OK;
}

/* Closes the pool if its owner has ended and nothing is in it. */
static void put_pool(struct vmm_arena_pool *pool)
{
	if (!pool->orphan || pool->arenas)
		return;
	vmm_list_remove(&pool->link);
	vmm_os_descriptor_close(pool->file);
	vmm_free(pool);
}

/*
 * The arena gets its memory: in the pool of the owner, or a separate file if there is no pool or
 * the slot is not in it.
 */
static vmm_status make_memory(struct vmm_memory *memory, struct vmm_arena *arena,
			      uint64_t size_bytes, uint64_t owner)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_os *os = memory->adapter->os;
	struct vmm_arena_pool *pool = NULL;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_ok(vmm_arenas_prepare(memory, owner)))
		pool = find_pool(memory, owner);
	if (!pool || arena->pool_offset > pool->size_bytes ||
	    size_bytes > pool->size_bytes - arena->pool_offset)
		return vmm_os_memory_create(os, "system memory", size_bytes, &arena->memory);
	vmm_status status = vmm_os_memory_create_in(os, "system memory", pool->file,
						    arena->pool_offset, size_bytes, &arena->memory);

	if (vmm_ok(status)) {
		arena->pool = pool;
		pool->arenas++;
	}
	return status;
}

/* What a client has locked when it ends stays mapped there, so its pages are kept then. */
static void free_memory(struct vmm_arena *arena)
{
	if (arena->pool && !arena->pool->orphan)
		vmm_os_memory_discard(&arena->memory, 0, arena->memory.size_bytes);
	vmm_os_memory_destroy(&arena->memory);
	if (arena->pool) {
		arena->pool->arenas--;
		put_pool(arena->pool);
	}
	arena->pool = NULL;
}

/* ---- arenas ---- */

static void arena_close(struct vmm_memory *memory, struct vmm_arena *arena)
{
	vmm_nt_phys_remove(memory->adapter->world->nt, arena->physical);
	free_memory(arena);
	vmm_range_heap_destroy(arena->heap);
	*arena = (struct vmm_arena){.physical = arena->physical,
				    .physical_bytes = arena->physical_bytes,
				    .pool_offset = arena->pool_offset};
}

/*
 * Returns the size in bytes of all arenas of that owner, and in *used how many of them are in use.
 */
static uint64_t bytes_of(const struct vmm_memory *memory, uint64_t owner, uint64_t *used)
{
	uint64_t bytes = 0;

	*used = 0;
	for (uint32_t i = 0; i < memory->arena_count; i++) {
		const struct vmm_arena *arena = &memory->arenas[i];

		if (!arena->heap || arena->owner != owner)
			continue;
		bytes += arena->memory.size_bytes;
		*used += arena->used_bytes;
	}
	return bytes;
}

/* Discards all free pages. Freed pages still occupy memory, and no process is charged for them. */
static void discard_free_pages(struct vmm_arena *arena)
{
	vmm_range_node node = VMM_RANGE_NONE;

	while ((node = vmm_range_next(arena->heap, node)) != VMM_RANGE_NONE)
		if (vmm_range_is_free(arena->heap, node))
			vmm_os_memory_discard(&arena->memory, vmm_range_offset(arena->heap, node),
					      vmm_range_size(arena->heap, node));
	arena->has_freed_pages = false;
}

/*
 * For all arenas of an owner that needs another one. Its arenas may be fragmented: one used page
 * keeps each open.
 */
static void discard_free_pages_of(struct vmm_memory *memory, uint64_t owner)
{
	for (uint32_t i = 0; i < memory->arena_count; i++)
		if (memory->arenas[i].owner == owner && memory->arenas[i].has_freed_pages)
			discard_free_pages(&memory->arenas[i]);
}

static vmm_status arena_create(struct vmm_memory *memory, uint64_t size_bytes, uint64_t owner,
			       uint32_t *index) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	size_bytes = vmm_align_up(vmm_max_u64(size_bytes, VMM_ARENA_BYTES), (uint64_t)2 << 20);
	struct vmm_arena *arena = free_slot(memory, size_bytes);
	vmm_status status;

	if (!arena)
		return VMM_NO_MEMORY;
	status = vmm_range_heap_create(size_bytes, VMM_PAGE_SIZE, &arena->heap);
	if (!vmm_ok(status))
		return status;
	if (!arena->physical_bytes)
		arena->pool_offset = memory->arenas_end;
	status = make_memory(memory, arena, size_bytes, owner);
	if (!vmm_ok(status))
		goto out_heap;
	if (!arena->physical_bytes) {
		arena->physical = vmm_nt_phys_reserve(memory->adapter->world->nt, size_bytes);
		arena->physical_bytes = size_bytes;
		memory->arenas_end += size_bytes;
		memory->arena_count++;
	}
	status = vmm_nt_phys_add(memory->adapter->world->nt, arena->physical, &arena->memory, 0,
				 size_bytes);
	if (!vmm_ok(status))
		goto out_memory;
	vmm_os_memory_set_owner(&arena->memory, owner);
	arena->owner = owner;
	*index = (uint32_t)(arena - memory->arenas);
	memory->arenas_empty += *index > 0;
	return VMM_OK;

out_memory:
	free_memory(arena);
out_heap:
	vmm_range_heap_destroy(arena->heap);
	arena->heap = NULL;
	return status;
}

/*
 * Closes empty arenas of that owner, highest index first, as long as the remaining ones are at most
 * half full. This hysteresis makes alternating frees and allocations cheap. A client's last arena
 * is closed only after the client has ended. No arena of a removed adapter is closed: the
 * miniport's engines may still access any memory.
 */
static void close_empty(struct vmm_memory *memory, uint64_t owner)
{
	uint64_t used, bytes = bytes_of(memory, owner, &used);

	if (atomic_load(&memory->adapter->removed))
		return;
	for (uint32_t i = memory->arena_count - 1; i > 0 && memory->arenas_empty; i--) {
		struct vmm_arena *arena = &memory->arenas[i];

		if (!arena->heap || arena->owner != owner || arena->used_bytes)
			continue;
		bytes -= arena->memory.size_bytes;
		if (!arena->orphan && (!bytes || used > bytes / 2))
			return;
		arena_close(memory, arena);
		memory->arenas_empty--;
	}
}

void vmm_arenas_end_owner(struct vmm_memory *memory, uint64_t owner)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	struct vmm_arena_pool *pool = find_pool(memory, owner);

	for (uint32_t i = 0; i < memory->arena_count; i++)
		memory->arenas[i].orphan |= memory->arenas[i].owner == owner;
	if (pool) {
		pool->orphan = true;
		pool->arenas++; /* it is in use here */
	}
	close_empty(memory, owner);
	if (pool) {
		pool->arenas--;
		put_pool(pool);
	}
}

static void arena_use(struct vmm_memory *memory, struct vmm_arena *arena, uint64_t size_bytes)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	memory->arenas_empty -= !arena->used_bytes && arena != memory->arenas;
	arena->used_bytes += size_bytes;
	memory->system_bytes += size_bytes;
	memory->peak_system_bytes = vmm_max_u64(memory->peak_system_bytes, memory->system_bytes);
}

static void arena_unuse(struct vmm_memory *memory, struct vmm_arena *arena, uint64_t size_bytes)
{
	arena->used_bytes -= size_bytes;
	arena->has_freed_pages = true;
	memory->system_bytes -= size_bytes;
	memory->arenas_empty += !arena->used_bytes && arena != memory->arenas;
	if (vmm_unlikely(memory->arenas_empty))
		close_empty(memory, arena->owner);
}

static vmm_status arena_allocate(struct vmm_memory *memory, uint64_t owner, uint64_t size_bytes,
				 uint32_t *index, vmm_range_node *node, uint64_t *offset)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_range_request request = {
		.size_bytes = size_bytes,
		/*
		 * Large stores begin at a huge page boundary so that their mapping can use huge
		 * pages.
		 */
		.alignment = size_bytes >= ((uint64_t)2 << 20) ? (uint64_t)2 << 20 : VMM_PAGE_SIZE,
	};

	vmm_assert_held(&memory->adapter->paging_lock);
	for (uint32_t i = 0; i < memory->arena_count; i++) {
		const struct vmm_arena *arena = &memory->arenas[i];

		if (arena->owner != owner ||
		    arena->memory.size_bytes - arena->used_bytes < size_bytes)
			continue;
		if (vmm_ok(vmm_range_allocate(arena->heap, &request, node, offset))) {
			*index = i;
			return VMM_OK;
		}
	}
	if (vmm_unlikely(owner)) /* its account is charged for used pages only */
		discard_free_pages_of(memory, owner);
	vmm_status status = arena_create(memory, size_bytes, owner, index);
	if (!vmm_ok(status))
		return status;
	return vmm_range_allocate(memory->arenas[*index].heap, &request, node, offset);
}

/*
 * Returns true if SIZE_BYTES more fit below the limit of system memory. Near the limit it waits for
 * the paging packets whose completion frees pages, and then decommits offered allocations (OFR-14).
 */
static bool make_available(struct vmm_memory *memory, uint64_t size_bytes)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = memory->adapter;

	vmm_assert_held(&memory->adapter->paging_lock);
	while (memory->system_limit_bytes - memory->system_bytes < size_bytes) {
		if (vmm_list_empty(&memory->deferred)) {
			if (!memory->decommit(memory))
				return false;
			continue;
		}
		uint64_t oldest = vmm_container_of(memory->deferred.next, struct vmm_deferred, link)
					  ->sequence;

		vmm_memory_flush_locked(adapter);
		if (!vmm_ok(memory->engine->wait_locked(adapter, adapter->paging_timeline, oldest,
							VIDMM_WAIT_SPACE)))
			return false;
		vmm_backing_collect(memory);
	}
	return true;
}

/*
 * Zeroes the pages if ZERO says so and if they were used before. No packet reads them any more:
 * pages are freed only when the last packet that reads them is complete.
 */
static void prepare_pages(struct vmm_arena *arena, uint64_t offset, uint64_t size_bytes, bool zero)
{
	vmm_os_memory_expect(&arena->memory, offset, size_bytes);
	if (zero && offset < arena->clean_from)
		memset(arena->memory.base + offset, 0,
		       vmm_min_u64(size_bytes, arena->clean_from - offset));
	arena->clean_from = vmm_max_u64(arena->clean_from, offset + size_bytes);
}

static vmm_status create(struct vmm_memory *memory, uint64_t size_bytes, bool zero, uint64_t owner,
			 struct vmm_backing *backing) VMM_REQUIRES(vmm_paging_lock_class)
{
	uint32_t index;
	vmm_range_node node;
	uint64_t offset;
	vmm_status status;

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_assert(!backing->arena);
	/*
	 * Packets of a removed adapter count as complete, but the miniport's engines may still
	 * access their memory. So its memory is never reused.
	 */
	if (atomic_load(&memory->adapter->removed))
		return VMM_DEVICE_REMOVED;
	/* An MDL describes the backing store, and its ByteCount has 32 bits. */
	if (size_bytes > UINT32_MAX)
		return vmm_refuse_reason(
			memory->adapter->observe, VMM_NO_MEMORY, 0, 0,
			"backing store of %llu bytes refused: 4 GiB or more in one piece "
			"is not built",
			(unsigned long long)size_bytes);
	vmm_backing_collect(memory); /* pages that were used before cost no page fault */
	if (!make_available(memory, size_bytes))
		return VMM_NO_MEMORY;
	status = arena_allocate(memory, owner, size_bytes, &index, &node, &offset);
	if (!vmm_ok(status))
		return VMM_NO_MEMORY;
	struct vmm_arena *arena = &memory->arenas[index];
	status = vmm_nt_mdl_create(memory->adapter->world->nt, &arena->memory, offset, size_bytes,
				   arena->physical + offset, (struct _MDL **)&backing->mdl);
	if (!vmm_ok(status)) {
		vmm_range_free(arena->heap, node);
		return status;
	}
	prepare_pages(arena, offset, size_bytes, zero);
	backing->size_bytes = size_bytes;
	backing->arena = index + 1;
	backing->node = node;
	backing->address = arena->memory.base + offset;
	arena_use(memory, arena, size_bytes);
	return VMM_OK;
}

vmm_status vmm_backing_create(struct vmm_memory *memory, uint64_t size_bytes, bool zero,
			      struct vmm_backing *backing)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	return create(memory, size_bytes, zero, 0, backing);
}

static vmm_status create_charged(struct vmm_memory *memory, const struct vmm_allocation *allocation,
				 uint64_t size_bytes, bool zero, struct vmm_backing *backing)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_account *account = allocation->account;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (!vmm_account_charge(account, size_bytes))
		return vmm_refuse_reason(
			memory->adapter->observe, VMM_NO_MEMORY, allocation->owner,
			allocation->first.handle,
			"backing store of %llu bytes refused: process %u may have %llu bytes of "
			"system memory and has %llu",
			(unsigned long long)size_bytes, allocation->owner,
			(unsigned long long)account->limit_bytes,
			(unsigned long long)atomic_load(&account->bytes));
	uint64_t owner = allocation->viewer ? vmm_os_viewer_owner(allocation->viewer) : 0;
	vmm_status status = create(memory, size_bytes, zero, owner, backing);

	if (vmm_ok(status))
		backing->account = vmm_account_get(account);
	else
		vmm_account_refund(account, size_bytes);
	return status;
}

vmm_status vmm_backing_create_for(struct vmm_memory *memory,
				  const struct vmm_allocation *allocation, uint64_t size_bytes,
				  bool zero, struct vmm_backing *backing)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_likely(!allocation->viewer && !allocation->account))
		return vmm_backing_create(memory, size_bytes, zero, backing);
	return create_charged(memory, allocation, size_bytes, zero, backing);
}

static void destroy_parts(struct vmm_memory *memory, struct vmm_backing *backing)
{
	for (uint32_t i = 0; backing->parts && i < VMM_LINKS_MAX; i++)
		vmm_nt_mdl_destroy(memory->adapter->world->nt, backing->parts[i]);
	vmm_free(backing->parts);
	backing->parts = NULL;
}

void vmm_backing_destroy(struct vmm_memory *memory, struct vmm_backing *backing)
{
	if (!backing->arena)
		return;
	if (vmm_backing_is_existing(backing)) {
		vmm_existing_unlock(memory, backing);
		return;
	}
	struct vmm_arena *arena = &memory->arenas[backing->arena - 1];

	if (vmm_unlikely(backing->parts != NULL))
		destroy_parts(memory, backing);
	vmm_nt_mdl_destroy(memory->adapter->world->nt, backing->mdl);
	vmm_range_free(arena->heap, backing->node);
	arena_unuse(memory, arena, backing->size_bytes);
	vmm_account_refund(backing->account, backing->size_bytes);
	vmm_account_put(backing->account);
	memset(backing, 0, sizeof(*backing));
}

void vmm_backing_destroy_after(struct vmm_memory *memory, struct vmm_backing *backing,
			       uint64_t sequence)
{
	struct vmm_deferred *deferred;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (!backing->arena)
		return;
	if (vmm_timeline_done(memory->adapter, memory->adapter->paging_timeline, sequence)) {
		vmm_backing_destroy(memory, backing);
		return;
	}
	deferred = memory->spare_deferred;
	memory->spare_deferred = NULL;
	if (!deferred)
		deferred = vmm_calloc(1, sizeof(*deferred));
	if (!deferred) {
		/*
		 * Without memory for the list entry, wait instead. The packet may not be submitted
		 * yet, so flush first. The status does not matter: a removed adapter copies nothing
		 * any more.
		 */
		vmm_memory_flush_locked(memory->adapter);
		(void)!memory->engine->wait_locked(memory->adapter,
						   memory->adapter->paging_timeline, sequence,
						   VIDMM_WAIT_SPACE);
		vmm_backing_destroy(memory, backing);
		return;
	}
	deferred->backing = *backing;
	deferred->sequence = sequence;
	vmm_list_push_back(&memory->deferred, &deferred->link);
	memset(backing, 0, sizeof(*backing));
}

void vmm_backing_collect(struct vmm_memory *memory)
{
	while (!vmm_list_empty(&memory->deferred)) {
		struct vmm_deferred *d =
			vmm_container_of(memory->deferred.next, struct vmm_deferred, link);

		if (!vmm_timeline_done(memory->adapter, memory->adapter->paging_timeline,
				       d->sequence))
			return;
		vmm_list_remove(&d->link);
		vmm_backing_destroy(memory, &d->backing);
		if (memory->spare_deferred)
			vmm_free(d);
		else
			memory->spare_deferred = d;
	}
}

uint64_t vmm_backing_bus_address(const struct vmm_memory *memory, const struct vmm_backing *backing)
{
	const struct vmm_arena *arena = &memory->arenas[backing->arena - 1];

	vmm_assert_held(&memory->adapter->paging_lock);
	return arena->physical + (uint64_t)(backing->address - arena->memory.base);
}

const struct vmm_os_memory *vmm_backing_memory(const struct vmm_memory *memory,
					       const struct vmm_backing *backing, uint64_t *offset)
{
	const struct vmm_arena *arena = &memory->arenas[backing->arena - 1];

	vmm_assert_held(&memory->adapter->paging_lock);
	*offset = (uint64_t)(backing->address - arena->memory.base);
	return &arena->memory;
}

void vmm_arenas_finish(struct vmm_memory *memory)
{
	vmm_assert(vmm_list_empty(&memory->deferred));
	vmm_free(memory->spare_deferred);
	for (uint32_t i = 0; i < memory->arena_count; i++) {
		struct vmm_arena *arena = &memory->arenas[i];

		vmm_assert(arena->used_bytes == 0);
		if (arena->heap)
			arena_close(memory, arena);
	}
	while (!vmm_list_empty(&memory->arena_pools)) {
		struct vmm_arena_pool *pool =
			vmm_container_of(memory->arena_pools.next, struct vmm_arena_pool, link);

		pool->orphan = true;
		put_pool(pool);
	}
	vmm_free(memory->arenas);
}
