/* SPDX-License-Identifier: MIT */
/*
 * What the page tables say: DxgkDdiBuildPagingBuffer with UpdatePageTable and FlushTlb, in the stream of all paging. An entry
 * is valid while its page has a place where the GPU may use it, in a memory segment or in system memory; it changes with that place,
 * and is gone before somebody else gets the memory (VA-13).
 */
#include "memory/va_private.h"

#define ENTRIES_MAX 256u /* of one operation */

static void say(struct vmm_va *va, uint32_t operation, uint64_t handle, uint64_t bytes,
		uint64_t address)
{
	vmm_event(va->memory->adapter->observe, VIDMM_EVENT_PAGING, va->process->id,
		  (uint32_t)handle, operation, bytes, 0, 0, address);
}

vmm_status vmm_va_update(struct vmm_va *va, const struct vmm_va_write *write)
{
	const struct vmm_va_table *table = write->table;
	DXGKARG_BUILDPAGINGBUFFER args = {.Operation = DXGK_OPERATION_UPDATE_PAGE_TABLE};
	uint64_t reach = (uint64_t)1 << vmm_va_shift(vmm_va_mmu(va), table->level);

	args.UpdatePageTable.PageTableLevel = table->level;
	args.UpdatePageTable.UpdateMode = vmm_va_mmu(va)->caps.PageTableUpdateMode;
	if (args.UpdatePageTable.UpdateMode == DXGK_PAGETABLEUPDATE_CPU_VIRTUAL) {
		args.UpdatePageTable.PageTableAddress.CpuVirtual = table->backing.address;
	} else {
		args.UpdatePageTable.PageTableAddress.GpuPhysical.SegmentId = table->segment;
		args.UpdatePageTable.PageTableAddress.GpuPhysical.SegmentOffset = table->offset;
	}
	args.UpdatePageTable.pPageTableEntries = write->entries;
	args.UpdatePageTable.StartIndex = write->start;
	args.UpdatePageTable.NumPageTableEntries = write->count;
	args.UpdatePageTable.Flags.Repeat = write->repeat;
	args.UpdatePageTable.Flags.InitialUpdate = write->initial;
	args.UpdatePageTable.DriverProtection = write->driver_protection;
	args.UpdatePageTable.hProcess = va->kmd_process;
	args.UpdatePageTable.FirstPteVirtualAddress = table->base + write->start * reach;
	if (write->allocation) {
		args.UpdatePageTable.hAllocation = write->allocation->kmd_allocation;
		args.UpdatePageTable.AllocationOffsetInBytes = write->offset;
	}
	vmm_status status = vmm_paging_build(va->memory, &args);
	if (!vmm_ok(status))
		return status;
	/* VA-13: where it must be so, no context of the space runs beside it. */
	if (vmm_va_mmu(va)->caps.PageTableUpdateRequireAddressSpaceIdle)
		va->memory->synchronous |= va->memory->pending;
	say(va, VIDMM_PAGING_UPDATE_PAGE_TABLE,
	    write->allocation ? write->allocation->first.handle : 0,
	    (uint64_t)write->count << VMM_PAGE_SHIFT, args.UpdatePageTable.FirstPteVirtualAddress);
	return VMM_OK;
}

vmm_status vmm_va_flush(struct vmm_va *va, uint64_t base, uint64_t end)
{
	DXGKARG_BUILDPAGINGBUFFER args = {.Operation = DXGK_OPERATION_FLUSH_TLB};

	if (!va->root) /* that is being made */
		return VMM_OK;
	args.FlushTlb.RootPageTableAddress.SegmentId = va->root->segment;
	args.FlushTlb.RootPageTableAddress.SegmentOffset = va->root->offset;
	args.FlushTlb.hProcess = va->kmd_process;
	args.FlushTlb.StartVirtualAddress = base;
	args.FlushTlb.EndVirtualAddress = end;
	vmm_status status = vmm_paging_build(va->memory, &args);
	if (vmm_ok(status))
		say(va, VIDMM_PAGING_FLUSH_TLB, 0, end - base, base);
	return status;
}

DXGK_PTE vmm_va_pointer(const struct vmm_va_table *table)
{
	DXGK_PTE entry = {{{0}}, {0}};

	entry.Valid = 1;
	entry.Segment = table->segment & 0x1F;
	entry.PageTableAddress = table->offset >> VMM_PAGE_SHIFT;
	return entry;
}

/* ---- where the pages of an instance are ---- */

struct place {
	uint32_t segment; /* 0: system memory */
	uint64_t page;    /* number of the first in the segment, or the bus's if they are one run */
	DXGK_ADL list;
};

/* Is there any place where the GPU may find it by a virtual address? */
static bool find_place(const struct vmm_instance *instance, struct place *place)
{
	*place = (struct place){.segment = instance->segment};
	if (instance->place == VMM_PLACE_MEMORY) {
		place->page = instance->offset >> VMM_PAGE_SHIFT;
		return true;
	}
	if (instance->place != VMM_PLACE_APERTURE && !vmm_resident_in_system(instance))
		return false;
	/* PAG-24: an aperture stands for the pages behind it. */
	place->segment = 0;
	vmm_port_describe_pages(instance->backing.mdl, &place->list);
	if (place->list.Flags.Contiguous)
		place->page = place->list.BasePageNumber;
	return true;
}

static uint64_t page_of(const struct place *place, uint64_t index)
{
	if (place->segment || place->list.Flags.Contiguous)
		return place->page + index;
	return place->list.Pages[index];
}

/* What differs between two places; 0 for none. */
static uint64_t key_of(const struct place *place)
{
	return ((uint64_t)(place->segment + 1) << 52) + page_of(place, 0);
}

static DXGK_PTE entry_of(const struct vmm_va *va, const struct vmm_va_content *content,
			 const struct vmm_allocation *allocation, const struct place *place)
{
	const DXGK_GPUMMUCAPS *caps = &vmm_va_mmu(va)->caps;
	DXGK_PTE entry = {{{0}}, {0}};

	/* VA-06 */
	entry.Valid = 1;
	entry.ReadOnly = caps->ReadOnlyMemorySupported && !(content->protection & VMM_VA_WRITE);
	entry.NoExecute = caps->NoExecuteMemorySupported && !(content->protection & VMM_VA_EXECUTE);
	entry.Segment = place->segment & 0x1F;
	entry.CacheCoherent = !place->segment && caps->CacheCoherentMemorySupported &&
			      (!allocation || (allocation->flags & VMM_ALLOCATION_CACHED));
	return entry;
}

/* ---- pieces ---- */

/* [base, end) lies in one leaf. */
static vmm_status repeat(struct vmm_va *va, struct vmm_va_table *leaf, uint64_t base, uint64_t end,
			 DXGK_PTE entry, uint64_t driver_protection)
{
	const struct vmm_va_write write = {
		.table = leaf,
		.start = (uint32_t)((base - leaf->base) >> VMM_PAGE_SHIFT),
		.count = (uint32_t)((end - base) >> VMM_PAGE_SHIFT),
		.entries = &entry,
		.repeat = true,
		.driver_protection = driver_protection};

	return vmm_va_update(va, &write);
}

static vmm_status map(struct vmm_va *va, struct vmm_va_table *leaf,
		      const struct vmm_va_piece *piece, const struct place *place, uint64_t base,
		      uint64_t end)
{
	const struct vmm_ref *ref = piece->content.object; /* NULL: of no allocation */
	const struct vmm_allocation *allocation = ref ? ref->allocation : NULL;
	DXGK_PTE entry = entry_of(va, &piece->content, allocation, place);
	vmm_status status = VMM_OK;

	while (base < end && vmm_ok(status)) {
		DXGK_PTE entries[ENTRIES_MAX];
		uint64_t offset = piece->content.offset + (base - piece->node.base);
		uint32_t count = (uint32_t)vmm_min_u64((end - base) >> VMM_PAGE_SHIFT, ENTRIES_MAX);
		const struct vmm_va_write write = {
			.table = leaf,
			.start = (uint32_t)((base - leaf->base) >> VMM_PAGE_SHIFT),
			.count = count,
			.entries = entries,
			.allocation = allocation,
			.offset = offset,
			.driver_protection = piece->content.driver_protection};

		for (uint32_t i = 0; i < count; i++) {
			entries[i] = entry;
			entries[i].PageAddress = page_of(place, (offset >> VMM_PAGE_SHIFT) + i);
		}
		status = vmm_va_update(va, &write);
		base += (uint64_t)count << VMM_PAGE_SHIFT;
	}
	return status;
}

static uint64_t leaf_end(const struct vmm_va *va, uint64_t address)
{
	uint64_t reach = (uint64_t)1 << vmm_va_shift(vmm_va_mmu(va), 1);

	return vmm_align_down(address, reach) + reach;
}

vmm_status vmm_va_erase(struct vmm_va *va, uint64_t base, uint64_t size, uint64_t driver_protection)
{
	const DXGK_PTE invalid = {{{0}}, {0}};
	uint64_t end = base + size, at = base;
	vmm_status status = VMM_OK;

	while (at < end && vmm_ok(status)) {
		uint64_t to = vmm_min_u64(end, leaf_end(va, at));
		struct vmm_va_table *leaf = vmm_va_leaf(va, at);

		if (leaf)
			status = repeat(va, leaf, at, to, invalid, driver_protection);
		at = to;
	}
	return vmm_ok(status) ? vmm_va_flush(va, base, end) : status;
}

vmm_status vmm_va_write_piece(struct vmm_va *va, struct vmm_va_piece *piece, bool changed)
{
	const struct vmm_va_content *content = &piece->content;
	uint64_t at = piece->node.base, end = at + piece->node.size;
	DXGK_PTE zero = {{{0}}, {0}};
	struct place place = {0};
	vmm_status status = VMM_OK;

	zero.Valid = zero.Zero = 1;
	place.list.Flags.Contiguous = 1; /* of VMM_VA_PAGES the offset is the address */
	if (content->kind == VMM_VA_MAPPED &&
	    !find_place(((const struct vmm_ref *)content->object)->instance, &place))
		return VMM_OK;
	while (at < end && vmm_ok(status)) {
		uint64_t to = vmm_min_u64(end, leaf_end(va, at));
		struct vmm_va_table *leaf = vmm_va_leaf(va, at);

		vmm_assert(leaf);
		status = content->kind != VMM_VA_ZERO
				 ? map(va, leaf, piece, &place, at, to)
				 : repeat(va, leaf, at, to, zero, content->driver_protection);
		at = to;
	}
	piece->live = vmm_ok(status);
	if (!vmm_ok(status) || (!changed && vmm_va_mmu(va)->caps.InvalidTlbEntriesNotCached))
		return status;
	return vmm_va_flush(va, piece->node.base, end);
}

static struct vmm_va *va_of(const struct vmm_va_piece *piece)
{
	return ((const struct vmm_ref *)piece->content.object)->device->va;
}

void vmm_va_refresh_slowly(struct vmm_memory *memory, struct vmm_instance *instance)
{
	struct vmm_allocation *a = instance->allocation;
	struct vmm_list *link;
	struct place place;

	if (vmm_list_empty(&a->mappings) || !find_place(instance, &place) ||
	    a->mapped_at == key_of(&place))
		return;
	a->mapped_at = key_of(&place);
	vmm_list_for_each (link, &a->mappings) {
		struct vmm_va_piece *piece = vmm_container_of(link, struct vmm_va_piece, link);

		(void)!vmm_ok(vmm_va_write_piece(va_of(piece), piece, piece->live));
	}
	vmm_residency_mark_paged(memory, instance, false);
}

void vmm_va_hide_slowly(struct vmm_memory *memory, struct vmm_instance *instance)
{
	struct vmm_allocation *a = instance->allocation;
	struct vmm_list *link;

	if (!a->mapped_at)
		return;
	a->mapped_at = 0;
	vmm_list_for_each (link, &a->mappings) {
		struct vmm_va_piece *piece = vmm_container_of(link, struct vmm_va_piece, link);

		if (piece->live && !memory->resetting)
			(void)!vmm_ok(vmm_va_erase(va_of(piece), piece->node.base, piece->node.size,
						   piece->content.driver_protection));
		piece->live = false;
	}
	if (!memory->resetting)
		vmm_residency_mark_paged(memory, instance, false);
}

void vmm_va_pieces_rewrite(struct vmm_va *va)
{
	struct vmm_va_piece *piece = vmm_vaspace_piece(va->space, 0);

	for (; piece; piece = vmm_vaspace_next(va->space, piece)) {
		const struct vmm_ref *ref = piece->content.object;

		piece->live = false;
		/* What is not known to be anywhere gets its entries when it is. */
		if (piece->content.kind == VMM_VA_ZERO || piece->content.kind == VMM_VA_PAGES ||
		    (ref && ref->allocation->mapped_at))
			(void)!vmm_ok(vmm_va_write_piece(va, piece, false));
	}
}
