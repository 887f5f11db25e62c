/* SPDX-License-Identifier: MIT */
/*
 * Transfers, fills and updates by GPU virtual address, for adapters that have such addresses
 * (PAG-26). The
 * operation is split into chunks. For each chunk the pages of both sides are mapped into the
 * paging window, in the address space of the system paging process: UpdatePageTable, FlushTlb, then
 * TransferVirtual or FillVirtual. All of these run in order on the paging timeline.
 *
 * Entries of the window stay valid until another chunk replaces them: only these operations use its
 * addresses.
 */
#include "memory/state/state.h"
#include "memory/transfer/paging.h"
#include "memory/transfer/va_entries.h"

enum { FROM, TO };

/* One operation, and the chunk of it that is being built. */
struct operation {
	struct vmm_memory *memory;
	struct vmm_instance *instance;
	const struct vmm_paging_content *content;
	/* the chunk: bytes of the allocation, and their addresses on both sides */
	uint64_t offset, bytes;
	uint64_t address[2];
};

/* ---- the window ---- */

/*
 * Returns the distance of the chunk's first page from the beginning of its 64 KiB page, which its
 * address has as well (VA-05); 0 in memory with 4 KiB pages.
 */
static uint64_t phase_of(const struct operation *o, uint32_t side)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_gpu_location *location = &o->content->side[side];

	vmm_assert_held(&o->memory->adapter->paging_lock);
	if (!location->segment ||
	    vmm_memory_segment(o->memory, location->segment)->port->page_bytes !=
		    VMM_LARGE_PAGE_SIZE)
		return 0;
	return vmm_gpu_page(location, o->offset >> VMM_PAGE_SHIFT) << VMM_PAGE_SHIFT &
	       (VMM_LARGE_PAGE_SIZE - 1);
}

/*
 * Returns whether entries may be changed only when the commands that use them are complete. With
 * CPU_VIRTUAL the CPU writes them while the operation is built.
 */
static bool writes_at_once(const struct vmm_va *va)
{
	return vmm_va_mmu(va)->caps.PageTableUpdateMode == DXGK_PAGETABLEUPDATE_CPU_VIRTUAL;
}

/*
 * Finds a part of the window for the chunk; *at receives its offset in both sides. The GPU writes
 * entries in order with the commands that use them, so every chunk gets the first part. Entries
 * that the CPU writes are used in turn: at the end of the window the thread waits until the GPU has
 * completed all chunks.
 */
static vmm_status find_part(struct operation *o, uint64_t *at) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_memory *memory = o->memory;
	struct vmm_paging_window *window = &memory->window;
	uint64_t size = vmm_align_up(o->bytes, VMM_LARGE_PAGE_SIZE) + VMM_LARGE_PAGE_SIZE;
	vmm_status status = VMM_OK;

	vmm_assert_held(&memory->adapter->paging_lock);
	*at = 0;
	if (!writes_at_once(window->va))
		return VMM_OK;
	if (window->next + size > window->side_bytes ||
	    (window->next && vmm_va_mmu(window->va)->caps.PageTableUpdateRequireAddressSpaceIdle)) {
		uint64_t last = vmm_memory_flush_locked(memory->adapter);

		status = memory->engine->wait_locked(memory->adapter,
						     memory->adapter->paging_timeline, last,
						     VIDMM_WAIT_PAGING_BUFFER);
		window->next = 0;
	}
	*at = window->next;
	window->next += size;
	return status;
}

static vmm_status map_side(struct operation *o, uint32_t side, uint64_t at)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_paging_window *window = &o->memory->window;
	uint64_t start = window->base + side * window->side_bytes + at + phase_of(o, side);
	const struct vmm_va_pages pages = {.location = &o->content->side[side],
					   .allocation = o->instance->allocation,
					   .base = start,
					   .end = start + vmm_align_up(o->bytes, VMM_PAGE_SIZE),
					   .offset = o->offset,
					   .protection = side == TO ? VMM_VA_WRITE : 0};

	vmm_assert_held(&o->memory->adapter->paging_lock);
	o->address[side] = start;
	return vmm_va_write_pages(window->va, &pages);
}

/* Notes that the chunk's entries are valid. Returns whether some may have been valid before. */
static bool note_mapped(struct operation *o, uint32_t side) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_paging_window *window = &o->memory->window;
	uint64_t start = o->address[side] - window->base - side * window->side_bytes;
	uint64_t end = start + vmm_align_up(o->bytes, VMM_PAGE_SIZE);
	bool before = start < window->mapped_end[side];

	vmm_assert_held(&o->memory->adapter->paging_lock);
	window->mapped_end[side] = vmm_max_u64(window->mapped_end[side], end);
	return before;
}

static uint32_t first_side(const struct operation *o)
{
	return o->content->kind == VMM_PAGING_VIRTUAL_TRANSFER ? FROM : TO;
}

/* Maps the chunk. Invalid entries may need no flush (VA-13). */
static vmm_status map_chunk(struct operation *o) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_va *va = o->memory->window.va;
	uint32_t first = first_side(o);
	bool flush = !vmm_va_mmu(va)->caps.InvalidTlbEntriesNotCached;
	uint64_t at;
	vmm_status status = find_part(o, &at);

	vmm_assert_held(&o->memory->adapter->paging_lock);
	for (uint32_t side = first; side <= TO && vmm_ok(status); side++) {
		status = map_side(o, side, at);
		flush |= note_mapped(o, side);
	}
	if (!vmm_ok(status) || !flush)
		return status;
	return vmm_va_flush(va, o->address[first],
			    o->address[TO] + vmm_align_up(o->bytes, VMM_PAGE_SIZE));
}

/* ---- page tables ---- */

uint64_t vmm_paging_leaf_address(const struct vmm_memory *memory, uint64_t address)
{
	const struct vmm_paging_window *window = &memory->window;
	uint32_t shift = vmm_va_shift(vmm_va_mmu(window->va), 1);

	vmm_assert_held(&memory->adapter->paging_lock);
	return window->leaves + ((address >> shift) - (window->base >> shift)) *
					vmm_va_mmu(window->va)->level[0].PageTableSizeInBytes;
}

vmm_status vmm_paging_map_table(struct vmm_memory *memory, const struct vmm_va_table *table,
				uint64_t *address)
{
	struct vmm_paging_window *window = &memory->window;
	const struct vmm_gpu_location location = vmm_va_location(table);
	const struct vmm_va_pages pages = {.location = &location,
					   .base = window->table_base,
					   .end = window->table_base +
						  vmm_align_up(table->size_bytes, VMM_PAGE_SIZE),
					   .protection = VMM_VA_WRITE};
	bool flush =
		window->table_mapped || !vmm_va_mmu(window->va)->caps.InvalidTlbEntriesNotCached;

	vmm_assert_held(&memory->adapter->paging_lock);
	*address = window->table_base;
	if (window->table == table)
		return VMM_OK;
	if (table->size_bytes > window->table_bytes)
		return vmm_refuse_reason(memory->adapter->observe, VMM_NO_MEMORY, 0, 0,
					 "Q-166: a page table of %llu bytes is not mapped in the "
					 "paging process, whose window has %llu bytes for it",
					 (unsigned long long)table->size_bytes,
					 (unsigned long long)window->table_bytes);
	window->table = NULL;
	vmm_status status = vmm_va_write_pages(window->va, &pages);
	if (vmm_ok(status) && flush)
		status = vmm_va_flush(window->va, pages.base, pages.end);
	if (!vmm_ok(status))
		return status;
	window->table = table;
	window->table_mapped = true;
	return VMM_OK;
}

/* ---- operations ---- */

static DXGK_MEMORY_TRANSFER_DIRECTION direction_of(const struct vmm_paging_content *content)
{
	if (!content->side[FROM].segment)
		return DXGK_MEMORY_TRANSFER_SYSTEM_TO_LOCAL;
	return content->side[TO].segment ? DXGK_MEMORY_TRANSFER_LOCAL_TO_LOCAL
					 : DXGK_MEMORY_TRANSFER_LOCAL_TO_SYSTEM;
}

/* The offset in the allocation is not part of the addresses: they are those of the chunk. */
static DXGKARG_BUILDPAGINGBUFFER transfer_of(const struct operation *o)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	HANDLE allocation = o->instance->allocation->kmd_allocation;
	DXGKARG_BUILDPAGINGBUFFER args = {.Operation = DXGK_OPERATION_VIRTUAL_TRANSFER};

	vmm_assert_held(&o->memory->adapter->paging_lock);
	args.TransferVirtual.hAllocation = allocation;
	args.TransferVirtual.AllocationOffsetInBytes = o->offset;
	args.TransferVirtual.TransferSizeInBytes = o->bytes;
	args.TransferVirtual.SourceVirtualAddress = o->address[FROM];
	args.TransferVirtual.DestinationVirtualAddress = o->address[TO];
	args.TransferVirtual.TransferDirection = direction_of(o->content);
	if (vmm_va_mmu(o->memory->window.va)->caps.LegacyBehaviors.SourcePageTableVaInTransfer) {
		args.TransferVirtual.SourcePageTable =
			vmm_paging_leaf_address(o->memory, o->address[FROM]);
		args.TransferVirtual.DestinationPageTable =
			vmm_paging_leaf_address(o->memory, o->address[TO]);
	}
	return args;
}

static DXGKARG_BUILDPAGINGBUFFER arguments_of(const struct operation *o)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	DXGKARG_BUILDPAGINGBUFFER args = {0};

	vmm_assert_held(&o->memory->adapter->paging_lock);
	switch (o->content->kind) {
	case VMM_PAGING_VIRTUAL_FILL:
		args.Operation = DXGK_OPERATION_VIRTUAL_FILL;
		args.FillVirtual.hAllocation = o->instance->allocation->kmd_allocation;
		args.FillVirtual.AllocationOffsetInBytes = o->offset;
		args.FillVirtual.FillSizeInBytes = o->bytes;
		args.FillVirtual.DestinationVirtualAddress = o->address[TO];
		return args;
	case VMM_PAGING_VIRTUAL_UPDATE_CONTEXT:
		args.Operation = DXGK_OPERATION_UPDATE_CONTEXT_ALLOCATION;
		args.UpdateContextAllocation.ContextAllocation = o->address[TO];
		args.UpdateContextAllocation.ContextAllocationSize = o->bytes;
		args.UpdateContextAllocation.pDriverPrivateData = o->content->private_data;
		args.UpdateContextAllocation.DriverPrivateDataSize = o->content->private_bytes;
		return args;
	case VMM_PAGING_VIRTUAL_NOTIFY:
		args.Operation = DXGK_OPERATION_NOTIFY_ALLOC;
		args.NotifyAlloc.hAllocation = o->instance->allocation->kmd_allocation;
		args.NotifyAlloc.Flags.Eviction = 1;
		args.NotifyAlloc.OffsetInBytes = o->offset;
		args.NotifyAlloc.SizeInBytes = o->bytes;
		args.NotifyAlloc.GpuVirtualAddressAtOffset = o->address[TO];
		return args;
	default:
		return transfer_of(o);
	}
}

/*
 * After a notification the chunk is unmapped (PAG-29), unless the CPU writes the entries: the GPU
 * has not executed the commands yet. Then another chunk replaces the entries, as after a transfer.
 * (Q-221)
 */
static vmm_status unmap_chunk(struct operation *o) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_va *va = o->memory->window.va;

	vmm_assert_held(&o->memory->adapter->paging_lock);
	if (o->content->kind != VMM_PAGING_VIRTUAL_NOTIFY || writes_at_once(va))
		return VMM_OK;
	return vmm_va_erase(va, o->address[TO], vmm_align_up(o->bytes, VMM_PAGE_SIZE), 0);
}

static vmm_status build_chunk(struct operation *o) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_paging_content *content = o->content;
	vmm_status status = map_chunk(o);

	vmm_assert_held(&o->memory->adapter->paging_lock);
	if (!vmm_ok(status))
		return status;
	DXGKARG_BUILDPAGINGBUFFER args = arguments_of(o);
	status = vmm_paging_build_for(o->memory, &args, o->instance);
	if (vmm_ok(status))
		vmm_event(o->memory->adapter->observe, VIDMM_EVENT_PAGING,
			  o->instance->allocation->owner, o->instance->handle,
			  (uint32_t)args.Operation, o->bytes, content->side[FROM].segment,
			  content->side[TO].segment, o->instance->offset);
	return vmm_ok(status) ? unmap_chunk(o) : status;
}

vmm_status vmm_paging_virtual(struct vmm_memory *memory, struct vmm_instance *instance,
			      const struct vmm_paging_content *content)
{
	uint64_t most = memory->window.side_bytes - VMM_LARGE_PAGE_SIZE, done = 0;
	struct operation o = {.memory = memory, .instance = instance, .content = content};
	vmm_status status = VMM_OK;

	vmm_assert_held(&memory->adapter->paging_lock);
	while (done < content->size_bytes && vmm_ok(status)) {
		o.offset = content->offset + done;
		o.bytes = vmm_min_u64(content->size_bytes - done, most);
		status = build_chunk(&o);
		done += o.bytes;
	}
	return status;
}

/* No page says that the operation may come in parts, as a transfer may. (VA-21) */
vmm_status vmm_paging_update_context(struct vmm_memory *memory, struct vmm_instance *instance,
				     void *private_data, uint32_t private_bytes)
{
	uint64_t most = memory->window.side_bytes - VMM_LARGE_PAGE_SIZE;
	struct vmm_paging_content content = {.kind = VMM_PAGING_VIRTUAL_UPDATE_CONTEXT,
					     .size_bytes = instance->allocation->size_bytes,
					     .private_data = private_data,
					     .private_bytes = private_bytes};

	vmm_assert_held(&memory->adapter->paging_lock);
	if (content.size_bytes > most)
		return vmm_refuse_reason(
			memory->adapter->observe, VMM_NO_MEMORY, instance->allocation->owner, 0,
			"VA-21: a context allocation of %llu bytes cannot be "
			"updated: the paging process has %llu bytes for it",
			(unsigned long long)content.size_bytes, (unsigned long long)most);
	if (!vmm_va_locate(instance, &content.side[TO]))
		return VMM_INVALID_PARAMETER;
	return vmm_paging_virtual(memory, instance, &content);
}
