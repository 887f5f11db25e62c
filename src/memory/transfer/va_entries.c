/* SPDX-License-Identifier: MIT */
/*
 * Page table entries: UpdatePageTable and FlushTlb operations of DxgkDdiBuildPagingBuffer, in order
 * with all other paging.
 *
 * An entry is valid while its page has a placement that the GPU can use, in a memory segment or in
 * system memory. The entry changes with the placement. It is invalidated before another owner gets
 * the memory (VA-13).
 */
#include "memory/state/state.h"
#include "memory/transfer/paging.h"
#include "memory/transfer/va_entries.h"
#include "vaspace/vaspace.h"

#define ENTRIES_MAX 256u /* maximum number of entries in one operation */

/* ---- lookup ---- */

uint32_t vmm_va_shift(const struct vmm_port_gpummu *mmu, uint32_t level)
{
	uint32_t shift = VMM_PAGE_SHIFT;

	for (uint32_t i = 0; i < level; i++)
		shift += mmu->level[i].PageTableIndexBitCount;
	return shift;
}

struct vmm_va_table *vmm_va_leaf(struct vmm_va *va, uint64_t address)
{
	struct vmm_va_table *table = va->near;

	vmm_assert_held(&va->memory->adapter->paging_lock);
	if (vmm_likely(table != NULL) && !((address - table->base) >> table->parent->shift))
		return table;
	table = va->root;
	while (table && table->level) {
		uint32_t index = vmm_va_index(table, address);

		table = index < table->entries ? table->child[index] : NULL;
	}
	va->near = table;
	return table;
}

/* ---- operations on tables ---- */

static void report_event(struct vmm_va *va, uint32_t operation, uint64_t handle, uint64_t bytes,
			 uint64_t address)
{
	vmm_event(va->memory->adapter->observe, VIDMM_EVENT_PAGING, vmm_va_owner(va),
		  (uint32_t)handle, operation, bytes, 0, 0, address);
}

/* Tables in a memory segment are those of the paging process, in a CPU-visible segment (VA-11). */
static char *cpu_address(const struct vmm_va *va, const struct vmm_va_table *table)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&va->memory->adapter->paging_lock);
	if (!table->segment)
		return table->backing.address;
	const struct vmm_segment *segment = vmm_memory_segment(va->memory, table->segment);

	return segment->cpu_memory->base + segment->cpu_offset + table->offset;
}

struct vmm_gpu_location vmm_va_location(const struct vmm_va_table *table)
{
	struct vmm_gpu_location location = {.segment = table->segment,
					    .page = table->offset >> VMM_PAGE_SHIFT};

	location.list.Flags.Contiguous = 1;
	return location;
}

/*
 * Sets the table's address in the form that the mode wants. A GPU virtual address is one of the
 * paging process: leaf tables of that process have one, tables of others are mapped first.
 */
static vmm_status set_address(struct vmm_va *va, const struct vmm_va_table *table,
			      DXGK_BUILDPAGINGBUFFER_UPDATEPAGETABLE *args)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_status status = VMM_OK;
	uint64_t address = 0;

	vmm_assert_held(&va->memory->adapter->paging_lock);
	args->UpdateMode = va->immediate ? DXGK_PAGETABLEUPDATE_CPU_VIRTUAL
					 : vmm_va_mmu(va)->caps.PageTableUpdateMode;
	switch (args->UpdateMode) {
	case DXGK_PAGETABLEUPDATE_CPU_VIRTUAL:
		args->PageTableAddress.CpuVirtual = cpu_address(va, table);
		break;
	case DXGK_PAGETABLEUPDATE_GPU_VIRTUAL:
		if (va->process)
			status = vmm_paging_map_table(va->memory, table, &address);
		else
			address = vmm_paging_leaf_address(va->memory, table->base);
		args->PageTableAddress.GpuVirtual = address;
		break;
	default:
		args->PageTableAddress.GpuPhysical.SegmentId = table->segment;
		args->PageTableAddress.GpuPhysical.SegmentOffset = table->offset;
	}
	return status;
}

vmm_status vmm_va_update(struct vmm_va *va, const struct vmm_va_write *write)
{
	const struct vmm_va_table *table = write->table;
	DXGKARG_BUILDPAGINGBUFFER args = {.Operation = DXGK_OPERATION_UPDATE_PAGE_TABLE};

	vmm_assert_held(&va->memory->adapter->paging_lock);
	if (vmm_unlikely(va->evicted))
		return VMM_OK;
	args.UpdatePageTable.PageTableLevel = table->level;
	args.UpdatePageTable.pPageTableEntries = write->entries;
	args.UpdatePageTable.StartIndex = write->start;
	args.UpdatePageTable.NumPageTableEntries = write->count;
	args.UpdatePageTable.Flags.Repeat = write->repeat;
	args.UpdatePageTable.Flags.InitialUpdate = write->initial;
	args.UpdatePageTable.DriverProtection = write->driver_protection;
	args.UpdatePageTable.hProcess = va->kmd_process;
	args.UpdatePageTable.FirstPteVirtualAddress =
		table->base + ((uint64_t)write->start << table->shift);
	if (write->allocation) {
		args.UpdatePageTable.hAllocation = write->allocation->kmd_allocation;
		args.UpdatePageTable.AllocationOffsetInBytes = write->offset;
	}
	vmm_status status = set_address(va, table, &args.UpdatePageTable);
	if (!vmm_ok(status))
		return status;
	status = va->immediate ? vmm_paging_execute(va->memory, &args)
			       : vmm_paging_build(va->memory, &args);
	if (!vmm_ok(status))
		return status;
	/*
	 * If the miniport requires it, no context of the address space runs at the same time
	 * (VA-13). Only the paging contexts have the address space of the paging process.
	 */
	if (va->process && vmm_va_mmu(va)->caps.PageTableUpdateRequireAddressSpaceIdle)
		va->memory->synchronous |= va->memory->pending;
	report_event(va, VIDMM_PAGING_UPDATE_PAGE_TABLE,
		     write->allocation ? write->allocation->first.handle : 0,
		     (uint64_t)write->count << VMM_PAGE_SHIFT,
		     args.UpdatePageTable.FirstPteVirtualAddress);
	return VMM_OK;
}

vmm_status vmm_va_flush(struct vmm_va *va, uint64_t base, uint64_t end)
{
	DXGKARG_BUILDPAGINGBUFFER args = {.Operation = DXGK_OPERATION_FLUSH_TLB};

	vmm_assert_held(&va->memory->adapter->paging_lock);
	/* The root is being created, or no command has used the tables yet, or they are evicted. */
	if (!va->root || va->immediate || va->evicted)
		return VMM_OK;
	args.FlushTlb.RootPageTableAddress.SegmentId = va->root->segment;
	args.FlushTlb.RootPageTableAddress.SegmentOffset = va->root->offset;
	args.FlushTlb.hProcess = va->kmd_process;
	args.FlushTlb.StartVirtualAddress = base;
	args.FlushTlb.EndVirtualAddress = end;
	vmm_status status = vmm_paging_build(va->memory, &args);
	if (vmm_ok(status))
		report_event(va, VIDMM_PAGING_FLUSH_TLB, 0, end - base, base);
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

/* ---- GPU locations of an instance's pages ---- */

struct vmm_gpu_location vmm_gpu_location_of_pages(const void *mdl)
{
	struct vmm_gpu_location location = {0};

	vmm_port_describe_pages(mdl, &location.list);
	if (location.list.Flags.Contiguous)
		location.page = location.list.BasePageNumber;
	return location;
}

bool vmm_va_locate(const struct vmm_instance *instance, struct vmm_gpu_location *location)
{
	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	*location = (struct vmm_gpu_location){.segment = instance->segment};
	if (instance->place == VMM_PLACEMENT_MEMORY) {
		location->page = instance->offset >> VMM_PAGE_SHIFT;
		location->extents = instance->extents;
		return true;
	}
	if (instance->place != VMM_PLACEMENT_APERTURE &&
	    !vmm_instance_is_resident_in_system(instance))
		return false;
	/* An aperture placement means the system pages behind it (PAG-24). */
	*location = vmm_gpu_location_of_pages(instance->backing.mdl);
	return true;
}

static bool is_contiguous(const struct vmm_gpu_location *location)
{
	return !location->extents && (location->segment || location->list.Flags.Contiguous);
}

uint64_t vmm_gpu_page(const struct vmm_gpu_location *location, uint64_t index)
{
	if (vmm_likely(is_contiguous(location)))
		return location->page + index;
	if (!location->extents)
		return location->list.Pages[index];
	return vmm_extent_of(location->extents, 0, index << VMM_PAGE_SHIFT, UINT64_MAX).offset >>
	       VMM_PAGE_SHIFT;
}

/* Returns a number that differs between locations and is never 0. */
static uint64_t location_key(const struct vmm_gpu_location *location)
{
	return ((uint64_t)(location->segment + 1) << 52) + vmm_gpu_page(location, 0);
}

static DXGK_PTE make_entry(const struct vmm_va *va, const struct vmm_va_pages *pages)
{
	const struct vmm_gpu_location *location = pages->location;
	const struct vmm_allocation *allocation = pages->allocation;
	const DXGK_GPUMMUCAPS *caps = &vmm_va_mmu(va)->caps;
	DXGK_PTE entry = {{{0}}, {0}};

	/* VA-06 */
	entry.Valid = 1;
	entry.ReadOnly = caps->ReadOnlyMemorySupported && !(pages->protection & VMM_VA_WRITE);
	entry.NoExecute = caps->NoExecuteMemorySupported && !(pages->protection & VMM_VA_EXECUTE);
	entry.Segment = location->segment & 0x1F;
	entry.CacheCoherent = !location->segment && caps->CacheCoherentMemorySupported &&
			      (!allocation || (allocation->flags & VMM_ALLOCATION_CACHED));
	return entry;
}

/* ---- pieces: parts of a range with one content ---- */

/* Caller guarantees that [base, end) lies in one leaf. */
static vmm_status fill_entries(struct vmm_va *va, struct vmm_va_table *leaf, uint64_t base,
			       uint64_t end, DXGK_PTE entry, uint64_t driver_protection)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_va_write write = {
		.table = leaf,
		.start = (uint32_t)((base - leaf->base) >> VMM_PAGE_SHIFT),
		.count = (uint32_t)((end - base) >> VMM_PAGE_SHIFT),
		.entries = &entry,
		.repeat = true,
		.driver_protection = driver_protection};

	vmm_assert_held(&va->memory->adapter->paging_lock);
	return vmm_va_update(va, &write);
}

/*
 * Copies the entry, with the addresses of the location's pages from the first one on. Inlined, gcc
 * would compute the flags from the protection again for each entry.
 */
VMM_NOINLINE static void make_entries(DXGK_PTE *entries, uint32_t count, DXGK_PTE entry,
				      const struct vmm_gpu_location *location, uint64_t first)
{
	if (vmm_likely(is_contiguous(location)))
		for (entry.PageAddress = location->page + first; count--; entry.PageAddress++)
			*entries++ = entry;
	else
		for (uint32_t i = 0; i < count; i++) {
			entry.PageAddress = vmm_gpu_page(location, first + i);
			entries[i] = entry;
		}
}

/* Caller guarantees that [base, end) lies in one leaf. */
static vmm_status write_leaf(struct vmm_va *va, struct vmm_va_table *leaf,
			     const struct vmm_va_pages *pages, uint64_t base, uint64_t end)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	DXGK_PTE entry = make_entry(va, pages);
	vmm_status status = VMM_OK;

	vmm_assert_held(&va->memory->adapter->paging_lock);
	while (base < end && vmm_ok(status)) {
		DXGK_PTE entries[ENTRIES_MAX];
		uint64_t offset = pages->offset + (base - pages->base);
		uint32_t count = (uint32_t)vmm_min_u64((end - base) >> VMM_PAGE_SHIFT, ENTRIES_MAX);
		const struct vmm_va_write write = {
			.table = leaf,
			.start = (uint32_t)((base - leaf->base) >> VMM_PAGE_SHIFT),
			.count = count,
			.entries = entries,
			.allocation = pages->allocation,
			.offset = offset,
			.driver_protection = pages->driver_protection};

		make_entries(entries, count, entry, pages->location, offset >> VMM_PAGE_SHIFT);
		status = vmm_va_update(va, &write);
		base += (uint64_t)count << VMM_PAGE_SHIFT;
	}
	return status;
}

static uint64_t leaf_end(const struct vmm_va *va, uint64_t address)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	uint64_t reach = (uint64_t)1 << vmm_va_shift(vmm_va_mmu(va), 1);

	vmm_assert_held(&va->memory->adapter->paging_lock);
	return vmm_align_down(address, reach) + reach;
}

vmm_status vmm_va_write_pages(struct vmm_va *va, const struct vmm_va_pages *pages)
{
	uint64_t at = pages->base;
	vmm_status status = VMM_OK;

	vmm_assert_held(&va->memory->adapter->paging_lock);
	while (at < pages->end && vmm_ok(status)) {
		uint64_t to = vmm_min_u64(pages->end, leaf_end(va, at));
		struct vmm_va_table *leaf = vmm_va_leaf(va, at);

		vmm_assert(leaf);
		status = write_leaf(va, leaf, pages, at, to);
		at = to;
	}
	return status;
}

/* Writes entries that read as zero. */
static vmm_status write_zero(struct vmm_va *va, const struct vmm_va_piece *piece)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	uint64_t at = piece->base, end = at + piece->size;
	DXGK_PTE zero = {{{0}}, {0}};
	vmm_status status = VMM_OK;

	vmm_assert_held(&va->memory->adapter->paging_lock);
	zero.Valid = zero.Zero = 1;
	while (at < end && vmm_ok(status)) {
		uint64_t to = vmm_min_u64(end, leaf_end(va, at));
		struct vmm_va_table *leaf = vmm_va_leaf(va, at);

		vmm_assert(leaf);
		status = fill_entries(va, leaf, at, to, zero, piece->content.driver_protection);
		at = to;
	}
	return status;
}

vmm_status vmm_va_erase(struct vmm_va *va, uint64_t base, uint64_t size, uint64_t driver_protection)
{
	const DXGK_PTE invalid = {{{0}}, {0}};
	uint64_t end = base + size, at = base;
	vmm_status status = VMM_OK;

	vmm_assert_held(&va->memory->adapter->paging_lock);
	while (at < end && vmm_ok(status)) {
		uint64_t to = vmm_min_u64(end, leaf_end(va, at));
		struct vmm_va_table *leaf = vmm_va_leaf(va, at);

		if (leaf)
			status = fill_entries(va, leaf, at, to, invalid, driver_protection);
		at = to;
	}
	return vmm_ok(status) ? vmm_va_flush(va, base, end) : status;
}

vmm_status vmm_va_write_piece(struct vmm_va *va, struct vmm_va_piece *piece, bool changed)
{
	const struct vmm_va_content *content = &piece->content;
	const struct vmm_ref *ref = content->object; /* NULL: pages of no allocation */
	uint64_t end = piece->base + piece->size;
	struct vmm_gpu_location location = {0};
	const struct vmm_va_pages pages = {.location = &location,
					   .allocation = ref ? ref->allocation : NULL,
					   .base = piece->base,
					   .end = end,
					   .offset = content->offset,
					   .protection = content->protection,
					   .driver_protection = content->driver_protection};

	vmm_assert_held(&va->memory->adapter->paging_lock);
	location.list.Flags.Contiguous = 1; /* with VMM_VA_PAGES the offset is the bus address */
	if (content->kind == VMM_VA_MAPPED && !vmm_va_locate(ref->instance, &location))
		return VMM_OK;
	vmm_status status = content->kind == VMM_VA_ZERO ? write_zero(va, piece)
							 : vmm_va_write_pages(va, &pages);
	piece->live = vmm_ok(status) && !va->evicted;
	if (!vmm_ok(status) || (!changed && vmm_va_mmu(va)->caps.InvalidTlbEntriesNotCached))
		return status;
	return vmm_va_flush(va, piece->base, end);
}

static struct vmm_va *va_of(const struct vmm_va_piece *piece)
{
	return ((const struct vmm_ref *)piece->content.object)->device->va;
}

void vmm_va_write_entries_slow(struct vmm_memory *memory, struct vmm_instance *instance)
{
	struct vmm_allocation *a = instance->allocation;
	struct vmm_list *link;
	struct vmm_gpu_location location;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_list_empty(&a->mappings) || !vmm_va_locate(instance, &location) ||
	    a->mapped_at == location_key(&location))
		return;
	a->mapped_at = location_key(&location);
	vmm_list_for_each (link, &a->mappings) {
		struct vmm_va_piece *piece = vmm_container_of(link, struct vmm_va_piece, link);

		(void)!vmm_ok(vmm_va_write_piece(va_of(piece), piece, piece->live));
	}
	vmm_paging_mark_instance(memory, instance, false);
}

void vmm_va_invalidate_entries_slow(struct vmm_memory *memory, struct vmm_instance *instance)
{
	struct vmm_allocation *a = instance->allocation;
	struct vmm_list *link;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (!a->mapped_at)
		return;
	a->mapped_at = 0;
	vmm_list_for_each (link, &a->mappings) {
		struct vmm_va_piece *piece = vmm_container_of(link, struct vmm_va_piece, link);

		if (piece->live && !memory->resetting)
			(void)!vmm_ok(vmm_va_erase(va_of(piece), piece->base, piece->size,
						   piece->content.driver_protection));
		piece->live = false;
	}
	if (!memory->resetting)
		vmm_paging_mark_instance(memory, instance, false);
}

void vmm_va_pieces_rewrite(struct vmm_va *va)
{
	struct vmm_va_piece *piece = vmm_vaspace_piece(va->space, 0);

	vmm_assert_held(&va->memory->adapter->paging_lock);
	for (; piece; piece = vmm_vaspace_next(va->space, piece)) {
		const struct vmm_ref *ref = piece->content.object;

		piece->live = false;
		/* Pieces without a placement get their entries when they are placed. */
		if (piece->content.kind == VMM_VA_ZERO || piece->content.kind == VMM_VA_PAGES ||
		    (ref && ref->allocation->mapped_at))
			(void)!vmm_ok(vmm_va_write_piece(va, piece, false));
	}
}
