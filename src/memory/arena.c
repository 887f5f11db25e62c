/* SPDX-License-Identifier: MIT */
/*
 * System memory: backing stores and DMA buffers are carved out of a few large memory objects, so that an allocation
 * costs no file descriptor and no system call, and its pages keep our permanent mapping and bus address.
 * Decision 6 of docs/architecture.md: pages that had an owner are zeroed before a new one can see them.
 *
 * What a client in another address space may be shown lies in memory objects that hold nothing else, because a descriptor can
 * neither be cut to a range nor taken back. They go when it has gone, and each when it is empty.
 */
#include "memory/arena.h"
#include "memory/private.h"

#include <string.h>

/* Of one that was closed, with its bus addresses if they are enough; else a new one. */
static struct vmm_arena *free_slot(struct vmm_memory *memory, uint64_t size_bytes)
{
	for (uint32_t i = 0; i < memory->arena_count; i++)
		if (!memory->arenas[i].heap && memory->arenas[i].physical_bytes >= size_bytes)
			return &memory->arenas[i];
	if (memory->arena_count == VMM_ARENAS_MAX)
		return NULL;
	return &memory->arenas[memory->arena_count];
}

static void arena_close(struct vmm_memory *memory, struct vmm_arena *arena)
{
	vmm_nt_phys_remove(memory->adapter->world->nt, arena->physical);
	vmm_os_memory_destroy(&arena->memory);
	vmm_range_heap_destroy(arena->heap);
	*arena = (struct vmm_arena){.physical = arena->physical,
				    .physical_bytes = arena->physical_bytes};
}

/* What all arenas of that owner have, and what is used of it. */
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

/* Free pages that were used are memory nonetheless, and nobody is charged for them. */
static void give_loose_pages_back(struct vmm_arena *arena)
{
	vmm_range_node node = VMM_RANGE_NONE;

	while ((node = vmm_range_next(arena->heap, node)) != VMM_RANGE_NONE)
		if (vmm_range_is_free(arena->heap, node))
			vmm_os_memory_discard(&arena->memory, vmm_range_offset(arena->heap, node),
					      vmm_range_size(arena->heap, node));
	arena->loose = false;
}

/* Another arena is needed though others have room: one page in use holds each. */
static void give_all_loose_pages_back(struct vmm_memory *memory, uint64_t owner)
{
	for (uint32_t i = 0; i < memory->arena_count; i++)
		if (memory->arenas[i].owner == owner && memory->arenas[i].loose)
			give_loose_pages_back(&memory->arenas[i]);
}

static vmm_status arena_create(struct vmm_memory *memory, uint64_t size_bytes, uint64_t owner,
			       uint32_t *index)
{
	size_bytes = vmm_align_up(vmm_max_u64(size_bytes, VMM_ARENA_BYTES), (uint64_t)2 << 20);
	struct vmm_arena *arena = free_slot(memory, size_bytes);
	vmm_status status;

	if (!arena)
		return VMM_NO_MEMORY;
	status = vmm_range_heap_create(size_bytes, VMM_PAGE_SIZE, &arena->heap);
	if (!vmm_ok(status))
		return status;
	status = vmm_os_memory_create(memory->adapter->os, "system memory", size_bytes,
				      &arena->memory);
	if (!vmm_ok(status))
		goto out_heap;
	if (!arena->physical_bytes) {
		arena->physical = vmm_nt_phys_reserve(memory->adapter->world->nt, size_bytes);
		arena->physical_bytes = size_bytes;
	}
	status = vmm_nt_phys_add(memory->adapter->world->nt, arena->physical, &arena->memory, 0,
				 size_bytes);
	if (!vmm_ok(status))
		goto out_memory;
	vmm_os_memory_set_owner(&arena->memory, owner);
	arena->owner = owner;
	*index = (uint32_t)(arena - memory->arenas);
	if (*index == memory->arena_count)
		memory->arena_count++;
	memory->arenas_empty += *index > 0;
	return VMM_OK;

out_memory:
	vmm_os_memory_destroy(&arena->memory);
out_heap:
	vmm_range_heap_destroy(arena->heap);
	arena->heap = NULL;
	return status;
}

/*
 * What nobody uses goes back to the system, once what is used would fill the rest by half only: so that ups and downs cost nothing. The
 * last one of a client goes with it. The engines of a dead adapter's miniport may still be anywhere.
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
	for (uint32_t i = 0; i < memory->arena_count; i++)
		memory->arenas[i].orphan |= memory->arenas[i].owner == owner;
	close_empty(memory, owner);
}

static void arena_use(struct vmm_memory *memory, struct vmm_arena *arena, uint64_t size_bytes)
{
	memory->arenas_empty -= !arena->used_bytes && arena != memory->arenas;
	arena->used_bytes += size_bytes;
	memory->system_bytes += size_bytes;
	memory->peak_system_bytes = vmm_max_u64(memory->peak_system_bytes, memory->system_bytes);
}

static void arena_unuse(struct vmm_memory *memory, struct vmm_arena *arena, uint64_t size_bytes)
{
	arena->used_bytes -= size_bytes;
	arena->loose = true;
	memory->system_bytes -= size_bytes;
	memory->arenas_empty += !arena->used_bytes && arena != memory->arenas;
	if (vmm_unlikely(memory->arenas_empty))
		close_empty(memory, arena->owner);
}

static vmm_status arena_allocate(struct vmm_memory *memory, uint64_t owner, uint64_t size_bytes,
				 uint32_t *index, vmm_range_node *node, uint64_t *offset)
{
	struct vmm_range_request request = {
		.size_bytes = size_bytes,
		/* Large stores start on a huge page so that their mapping can use one. */
		.alignment = size_bytes >= ((uint64_t)2 << 20) ? (uint64_t)2 << 20 : VMM_PAGE_SIZE,
	};

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
	if (vmm_unlikely(owner)) /* who pays for what is in use alone */
		give_all_loose_pages_back(memory, owner);
	vmm_status status = arena_create(memory, size_bytes, owner, index);
	if (!vmm_ok(status))
		return status;
	return vmm_range_allocate(memory->arenas[*index].heap, &request, node, offset);
}

/* Pages that paging packets still read come free with those packets: where the limit is near, they are waited for. */
static bool below_limit(struct vmm_memory *memory, uint64_t size_bytes)
{
	struct vmm_adapter *adapter = memory->adapter;

	while (memory->system_limit_bytes - memory->system_bytes < size_bytes) {
		if (vmm_list_empty(&memory->deferred)) {
			if (!vmm_offer_decommit(memory)) /* OFR-14 */
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

/* Nobody reads them: they come free with the last packet that did. Then the pages are zero as far as it is said. */
static void prepare_pages(struct vmm_arena *arena, uint64_t offset, uint64_t size_bytes, bool zero)
{
	vmm_os_memory_expect(&arena->memory, offset, size_bytes);
	if (zero && offset < arena->clean_from)
		memset(arena->memory.base + offset, 0,
		       vmm_min_u64(size_bytes, arena->clean_from - offset));
	arena->clean_from = vmm_max_u64(arena->clean_from, offset + size_bytes);
}

static vmm_status create(struct vmm_memory *memory, uint64_t size_bytes, bool zero, uint64_t owner,
			 struct vmm_backing *backing)
{
	uint32_t index;
	vmm_range_node node;
	uint64_t offset;
	vmm_status status;

	vmm_assert(!backing->arena);
	/*
	 * What a dead adapter abandoned counts as complete, but its miniport's engines may still be at it: its memory is given
	 * to nobody else.
	 */
	if (atomic_load(&memory->adapter->removed))
		return VMM_DEVICE_REMOVED;
	if (size_bytes >
	    UINT32_MAX) { /* ByteCount of an MDL, which describes a backing store, has 32 bits */
		vmm_reason(
			memory->adapter->observe, STATUS_NO_MEMORY, 0, 0,
			"a backing store of %llu bytes: 4 GiB and more in one piece are not built",
			(unsigned long long)size_bytes);
		return VMM_NO_MEMORY;
	}
	vmm_backing_collect(memory); /* pages that have been used before cost no fault */
	if (!below_limit(memory, size_bytes))
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
	return create(memory, size_bytes, zero, 0, backing);
}

static vmm_status create_charged(struct vmm_memory *memory, const struct vmm_allocation *allocation,
				 uint64_t size_bytes, bool zero, struct vmm_backing *backing)
{
	struct vmm_account *account = allocation->account;

	if (!vmm_account_charge(account, size_bytes)) {
		vmm_reason(memory->adapter->observe, VMM_NO_MEMORY, allocation->owner,
			   allocation->first.handle,
			   "a backing store of %llu bytes: process %u may have %llu of system "
			   "memory and has %llu",
			   (unsigned long long)size_bytes, allocation->owner,
			   (unsigned long long)account->limit_bytes,
			   (unsigned long long)atomic_load(&account->bytes));
		return VMM_NO_MEMORY;
	}
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
	if (vmm_likely(!allocation->viewer && !allocation->account))
		return vmm_backing_create(memory, size_bytes, zero, backing);
	return create_charged(memory, allocation, size_bytes, zero, backing);
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
		vmm_link_parts_destroy(memory, backing);
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
		/* No memory for the note: wait instead, which needs none. A removed adapter copies nothing any more. */
		vmm_memory_flush_locked(
			memory->adapter); /* the packet may still be in the making */
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

	return arena->physical + (uint64_t)(backing->address - arena->memory.base);
}

const struct vmm_os_memory *vmm_backing_memory(const struct vmm_memory *memory,
					       const struct vmm_backing *backing, uint64_t *offset)
{
	const struct vmm_arena *arena = &memory->arenas[backing->arena - 1];

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
	vmm_free(memory->arenas);
}
