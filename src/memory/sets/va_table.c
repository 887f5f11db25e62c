/* SPDX-License-Identifier: MIT */
/*
 * Page tables: created for each part of the address space that is taken, in the segments that the
 * miniport names for their level (VA-11). All entries of a table are invalid before another table
 * or a context refers to it. Level 0 is the leaf. With two levels, the root is replaced by a larger
 * one when a higher address is taken. Tables that were evicted (residency/tables.c) get memory
 * again and are written anew.
 */
#include "memory/placement/placement.h"
#include "memory/residency/residency.h"
#include "memory/sets/va_private.h"
#include "memory/state/state.h"
#include "memory/store/store.h"
#include "memory/transfer/va_entries.h"
#include "range/range.h"
#include "vaspace/vaspace.h"

/* Bytes of address space that one entry of that level covers. */
static uint64_t coverage(const struct vmm_va *va, uint32_t level)
{
	return (uint64_t)1 << vmm_va_shift(vmm_va_mmu(va), level);
}

/* ---- memory of a table ---- */

VMM_COLD static void report_no_place(const struct vmm_va *va, const struct vmm_va_table *table)
{
	vmm_reason(
		va->memory->adapter->observe, STATUS_NO_MEMORY, va->process ? va->process->id : 0,
		0,
		"VA-11: no free range in segment %u for a page table of %llu bytes (level %u, for "
		"addresses from 0x%llx), nor memory there that may be evicted",
		table->segment, (unsigned long long)table->size_bytes, table->level,
		(unsigned long long)table->base);
}

/*
 * Takes the memory of a table. In a segment its offset is a multiple of its level's alignment and
 * of the segment's pages; in system memory it is a multiple of 4096. The preparation's working set
 * stays, and so do the tables of this process.
 */
static vmm_status allocate_memory(struct vmm_va *va, struct vmm_va_table *table,
				  uint64_t preparation) VMM_REQUIRES(vmm_paging_lock_class)
{
	const uint32_t alignment = vmm_va_mmu(va)->level[table->level].PageTableAlignmentInBytes;
	struct vmm_memory *memory = va->memory;
	struct vmm_free_space space;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (!table->segment) {
		vmm_status status =
			vmm_backing_create(memory, table->size_bytes, true, &table->backing);

		table->placed = vmm_ok(status);
		if (table->placed)
			table->offset = vmm_backing_bus_address(memory, &table->backing);
		return status;
	}
	struct vmm_segment *segment = vmm_memory_segment(memory, table->segment);
	/*
	 * Allocated from the end, so that long-lived tables do not fragment the space for
	 * allocations.
	 */
	const struct vmm_range_request request = {
		.size_bytes = vmm_align_up(table->size_bytes, segment->port->page_bytes),
		.alignment = vmm_max_u64(alignment, segment->port->page_bytes),
		.flags = VMM_RANGE_FROM_END};
	vmm_status status =
		vmm_residency_take_space(memory, segment, &request, preparation, &space);
	/* A submission whose tables have no place gets a reason of its preparation. */
	if (vmm_unlikely(status == VMM_NO_VIDEO_MEMORY) && preparation == VMM_NO_PREPARATION)
		report_no_place(va, table);
	if (status != VMM_OK)
		return status;
	table->placed = true;
	table->range = space.node;
	table->offset = space.offset;
	segment->invalid_bytes += request.size_bytes; /* not available to allocations */
	segment->table_count++;
	if (va->process) {
		segment->movable_bytes += request.size_bytes;
		va->placed_bytes[table->segment - 1] += request.size_bytes;
	}
	return VMM_OK;
}

/* Counts the memory that the table needs in its segment, whether or not it has it. */
static void count_table(struct vmm_va *va, struct vmm_va_table *table)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&va->memory->adapter->paging_lock);
	if (!table->segment)
		return;
	table->counted_bytes =
		vmm_align_up(table->size_bytes,
			     vmm_memory_segment(va->memory, table->segment)->port->page_bytes);
	va->table_bytes[table->segment - 1] += table->counted_bytes;
}

static vmm_status initialize(struct vmm_va *va, struct vmm_va_table *table)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	DXGK_PTE invalid = {{{0}}, {0}};
	const struct vmm_va_write write = {.table = table,
					   .count = table->entries,
					   .entries = &invalid,
					   .repeat = true,
					   .initial = true};

	vmm_assert_held(&va->memory->adapter->paging_lock);
	return vmm_va_update(va, &write);
}

/* Frees the table and its memory, if it has any. The port may have ended. */
static void free_table(struct vmm_va *va, struct vmm_va_table *table)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&va->memory->adapter->paging_lock);
	vmm_table_free_memory(va->memory, va, table);
	if (va->near == table)
		va->near = NULL;
	if (table->counted_bytes)
		va->table_bytes[table->segment - 1] -= table->counted_bytes;
	vmm_free(table->child);
	vmm_free(table);
}

/* Creates a table with its memory and all entries invalid. */
static vmm_status create(struct vmm_va *va, const struct vmm_va_table *shape,
			 struct vmm_va_table **result) VMM_REQUIRES(vmm_paging_lock_class)
{
	const DXGK_PAGE_TABLE_LEVEL_DESC *desc = &vmm_va_mmu(va)->level[shape->level];
	struct vmm_va_table *table = vmm_calloc(1, sizeof(*table));
	vmm_status status = VMM_OK;

	vmm_assert_held(&va->memory->adapter->paging_lock);
	if (!table)
		return VMM_NO_MEMORY;
	*table = *shape;
	table->shift = vmm_va_shift(vmm_va_mmu(va), table->level);
	table->segment =
		va->process ? desc->PageTableSegmentId : desc->PagingProcessPageTableSegmentId;
	count_table(va, table);
	if (table->level)
		table->child = vmm_calloc(table->entries, sizeof(struct vmm_va_table *));
	if (table->level && !table->child)
		status = VMM_NO_MEMORY;
	if (status == VMM_OK)
		status = allocate_memory(va, table, VMM_NO_PREPARATION);
	if (status == VMM_OK)
		status = initialize(va, table);
	if (status != VMM_OK) {
		free_table(va, table);
		return status;
	}
	*result = table;
	return VMM_OK;
}

/* ---- entries that refer to tables ---- */

static vmm_status write_pointer(struct vmm_va *va, struct vmm_va_table *parent, uint32_t index)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_va_table *child = parent->child[index];
	DXGK_PTE entry = {{{0}}, {0}};

	vmm_assert_held(&va->memory->adapter->paging_lock);
	if (child)
		entry = vmm_va_pointer(child);
	const struct vmm_va_write write = {
		.table = parent, .start = index, .count = 1, .entries = &entry};
	vmm_status status = vmm_va_update(va, &write);
	if (status != VMM_OK)
		return status;
	uint64_t base = parent->base + index * coverage(va, parent->level);
	if (child && vmm_va_mmu(va)->caps.InvalidTlbEntriesNotCached)
		return VMM_OK;
	return vmm_va_flush(va, base, base + coverage(va, parent->level));
}

static vmm_status add_child(struct vmm_va *va, struct vmm_va_table *parent, uint32_t index)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const DXGK_PAGE_TABLE_LEVEL_DESC *desc = &vmm_va_mmu(va)->level[parent->level - 1];
	const struct vmm_va_table shape = {
		.parent = parent,
		.base = parent->base + index * coverage(va, parent->level),
		.level = parent->level - 1,
		.index = index,
		.entries = 1u << desc->PageTableIndexBitCount,
		.size_bytes = desc->PageTableSizeInBytes,
	};
	struct vmm_va_table *table;
	vmm_status status = create(va, &shape, &table);

	vmm_assert_held(&va->memory->adapter->paging_lock);
	if (status != VMM_OK)
		return status;
	parent->child[index] = table;
	parent->children++;
	return write_pointer(va, parent, index);
}

static void destroy_table(struct vmm_va *va, struct vmm_va_table *table)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_va_table *parent = table->parent;

	vmm_assert_held(&va->memory->adapter->paging_lock);
	vmm_assert(!table->children);
	if (parent) {
		parent->child[table->index] = NULL;
		parent->children--;
		(void)!vmm_ok(write_pointer(va, parent, table->index));
	}
	free_table(va, table);
}

/* ---- the root ---- */

void vmm_va_send_root(struct vmm_va *va, const struct vmm_va_context *context)
{
	if (va->evicted) /* it is sent when it has memory again */
		return;
	const DXGKARG_SETROOTPAGETABLE args = {
		.hContext = context->kmd_context,
		.Address = {.SegmentId = va->root->segment, .SegmentOffset = va->root->offset},
		.NumEntries = va->root->entries};

	vmm_port_set_root(va->memory->adapter->port, &args);
}

static vmm_status wait_device_idle(const struct vmm_device *device, uint32_t timeline)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = device->adapter;
	uint64_t last = atomic_load(&device->queued[timeline]);

	vmm_assert_held(&adapter->paging_lock);
	if (vmm_timeline_quiet(adapter, timeline, last, true))
		return VMM_OK;
	return adapter->memory->engine->wait_locked(adapter, timeline, last, VIDMM_WAIT_SPACE);
}

/*
 * Waits until no context of the space runs on the GPU (VA-12). A suspended hardware context does
 * not, and its commands count as complete.
 */
static vmm_status wait_contexts_idle(struct vmm_va *va) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = va->memory->adapter;
	vmm_status status = VMM_OK;
	struct vmm_list *link;

	vmm_assert_held(&va->memory->adapter->paging_lock);
	vmm_memory_flush_locked(adapter);
	vmm_list_for_each (link, &va->contexts) {
		const struct vmm_device *device =
			vmm_container_of(link, struct vmm_va_context, link)->device;

		for (uint32_t t = 0; t < adapter->node_count && vmm_ok(status); t++)
			status = wait_device_idle(device, t);
		if (adapter->hw_queues && vmm_ok(status))
			status = wait_device_idle(device, vmm_hw_timeline(adapter));
	}
	return status;
}

static vmm_status create_root(struct vmm_va *va, uint32_t entries, struct vmm_va_table **root)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_port_gpummu *mmu = vmm_va_mmu(va);
	uint32_t top = mmu->caps.PageTableLevelCount - 1;
	struct vmm_va_table shape = {.level = top,
				     .entries = 1u << mmu->level[top].PageTableIndexBitCount,
				     .size_bytes = mmu->level[top].PageTableSizeInBytes};
	NTSTATUS status = STATUS_SUCCESS;

	vmm_assert_held(&va->memory->adapter->paging_lock);
	if (top == 1) {
		/* With two levels the root is only as large as necessary. */
		shape.entries = entries;
		status = vmm_port_root_table_size(va->memory->adapter->port, &shape.entries,
						  &shape.size_bytes);
	}
	return NT_SUCCESS(status) ? create(va, &shape, root) : status;
}

vmm_status vmm_va_root_create(struct vmm_va *va)
{
	const struct vmm_port_gpummu *mmu = vmm_va_mmu(va);
	uint32_t entries = 1u << mmu->level[1].PageTableIndexBitCount;

	vmm_assert_held(&va->memory->adapter->paging_lock);
	return create_root(va, entries, &va->root);
}

static vmm_status grow_root(struct vmm_va *va, uint32_t entries) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_va_table *old = va->root, *root;
	vmm_status status = create_root(va, entries, &root);
	struct vmm_list *link;

	vmm_assert_held(&va->memory->adapter->paging_lock);
	if (status != VMM_OK)
		return status;
	for (uint32_t i = 0; i < old->entries; i++) {
		root->child[i] = old->child[i];
		if (!root->child[i])
			continue;
		root->child[i]->parent = root;
		root->children++;
		old->child[i] = NULL;
		status = vmm_ok(status) ? write_pointer(va, root, i) : status;
	}
	old->children = 0;
	if (vmm_ok(status))
		status = wait_contexts_idle(va);
	va->root = root;
	vmm_list_for_each (link, &va->contexts)
		vmm_va_send_root(va, vmm_container_of(link, struct vmm_va_context, link));
	destroy_table(va, old);
	return status;
}

/* ---- eviction and return (VA-22) ---- */

static vmm_status allocate_all(struct vmm_va *va, struct vmm_va_table *table, uint64_t preparation)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_status status = table->placed ? VMM_OK : allocate_memory(va, table, preparation);

	vmm_assert_held(&va->memory->adapter->paging_lock);
	for (uint32_t i = 0; table->level && i < table->entries && status == VMM_OK; i++)
		if (table->child[i])
			status = allocate_all(va, table->child[i], preparation);
	return status;
}

/* Writes all tables of a client's process, and tells the miniport where the root is. (VA-12) */
static void rewrite_all(struct vmm_va *va) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_list *link;

	vmm_assert_held(&va->memory->adapter->paging_lock);
	vmm_va_tables_rewrite(va);
	vmm_va_pieces_rewrite(va);
	vmm_list_for_each (link, &va->contexts)
		vmm_va_send_root(va, vmm_container_of(link, struct vmm_va_context, link));
}

vmm_status vmm_va_bring_back(struct vmm_va *va, uint64_t preparation)
{
	vmm_assert_held(&va->memory->adapter->paging_lock);
	if (vmm_likely(!va->evicted))
		return VMM_OK;
	va->memory->placing = va;
	vmm_status status = allocate_all(va, va->root, preparation);

	va->memory->placing = NULL;
	if (status != VMM_OK) {
		vmm_tables_free_memory(va, va->root);
		return status;
	}
	va->evicted = false;
	rewrite_all(va);
	va->written_by = vmm_paging_sequence(va->memory);
	return VMM_OK;
}

vmm_status vmm_va_gather(struct vmm_device *device, uint64_t preparation)
{
	struct vmm_va *va = device->va;

	vmm_assert_held(&device->adapter->paging_lock);
	if (vmm_likely(!va))
		return VMM_OK;
	va->used_by = preparation;
	return vmm_va_bring_back(va, preparation);
}

uint64_t vmm_va_written_by(const struct vmm_device *device)
{
	vmm_assert_held(&device->adapter->paging_lock);
	return device->va ? device->va->written_by : 0;
}

void vmm_va_rewrite_one(struct vmm_va *va)
{
	vmm_assert_held(&va->memory->adapter->paging_lock);
	if (!va->evicted)
		rewrite_all(va);
}

/* ---- creation and removal of tables on request ---- */

vmm_status vmm_va_create_tables(struct vmm_va *va, uint64_t base, uint64_t size)
{
	uint64_t step = coverage(va, 1), end = base + size;
	uint64_t last = (end - 1) >> va->root->shift;
	vmm_status status = vmm_va_bring_back(va, VMM_NO_PREPARATION);

	vmm_assert_held(&va->memory->adapter->paging_lock);
	va->memory->placing = va;
	if (status == VMM_OK && last >= va->root->entries)
		status = grow_root(va, (uint32_t)last + 1);
	for (uint64_t at = vmm_align_down(base, step); at < end && status == VMM_OK; at += step) {
		struct vmm_va_table *table = va->root;

		if (vmm_likely(vmm_va_leaf(va, at) != NULL))
			continue;
		while (table->level && status == VMM_OK) {
			uint32_t index = vmm_va_index(table, at);

			if (!table->child[index])
				status = add_child(va, table, index);
			if (status == VMM_OK)
				table = table->child[index];
		}
	}
	va->memory->placing = NULL;
	return status;
}

/*
 * Does the table translate a taken address? The addresses from the given one on are searched first:
 * those are near the range that was released.
 */
static bool is_taken_near(struct vmm_va *va, const struct vmm_va_table *table, uint64_t address)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	uint64_t reach = (uint64_t)1 << table->parent->shift,
		 from = vmm_max_u64(address, table->base);

	vmm_assert_held(&va->memory->adapter->paging_lock);
	return vmm_vaspace_is_taken(va->space, from, table->base + reach - from) ||
	       vmm_vaspace_is_taken(va->space, table->base, reach);
}

static void prune(struct vmm_va *va, struct vmm_va_table *table, uint64_t base, uint64_t end)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	uint64_t each = (uint64_t)1 << table->shift;
	uint32_t first = base > table->base ? vmm_va_index(table, base) : 0;

	vmm_assert_held(&va->memory->adapter->paging_lock);
	for (uint32_t i = first; i < table->entries && table->base + i * each < end; i++) {
		struct vmm_va_table *child = table->child[i];

		if (!child)
			continue;
		if (child->level)
			prune(va, child, base, end);
		if (!child->children && !is_taken_near(va, child, base))
			destroy_table(va, child);
	}
}

void vmm_va_prune(struct vmm_va *va, uint64_t base, uint64_t size)
{
	vmm_assert_held(&va->memory->adapter->paging_lock);
	struct vmm_va_table *leaf = vmm_va_leaf(va, base);

	/* Most ranges are in one leaf, which others keep. */
	if (leaf && (base + size - 1 - leaf->base) >> leaf->parent->shift == 0 &&
	    is_taken_near(va, leaf, base))
		return;
	prune(va, va->root, base, base + size);
}

static void free_all(struct vmm_va *va, struct vmm_va_table *table)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&va->memory->adapter->paging_lock);
	for (uint32_t i = 0; table->level && i < table->entries; i++)
		if (table->child[i])
			free_all(va, table->child[i]);
	table->children = 0;
	free_table(va, table);
}

void vmm_va_tables_free(struct vmm_va *va)
{
	vmm_assert_held(&va->memory->adapter->paging_lock);
	if (va->root)
		free_all(va, va->root);
	va->root = NULL;
}

static void rewrite(struct vmm_va *va, struct vmm_va_table *table)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_status status = initialize(va, table);

	vmm_assert_held(&va->memory->adapter->paging_lock);
	for (uint32_t i = 0; table->level && i < table->entries && vmm_ok(status); i++) {
		if (!table->child[i])
			continue;
		rewrite(va, table->child[i]);
		status = write_pointer(va, table, i);
	}
}

void vmm_va_tables_rewrite(struct vmm_va *va)
{
	vmm_assert_held(&va->memory->adapter->paging_lock);
	rewrite(va, va->root);
}
