/* SPDX-License-Identifier: MIT */
/*
 * Eviction of page tables (VA-22). Under memory pressure an idle process loses all its tables that
 * are in memory segments: no prepared packet uses them. Their entries are not copied, because the
 * address space and the placements of the allocations say what they were.
 * sets/va_table.c creates the tables anew, elsewhere, before a packet of the process is submitted.
 */
#include "memory/residency/residency.h"
#include "memory/state/state.h"
#include "memory/store/store.h"
#include "memory/transfer/va_entries.h"
#include "range/range.h"

void vmm_table_free_memory(struct vmm_memory *memory, struct vmm_va *va, struct vmm_va_table *table)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	if (memory->window.table == table)
		memory->window.table = NULL;
	if (!table->placed)
		return;
	table->placed = false;
	if (!table->segment) {
		vmm_backing_destroy_after(memory, &table->backing, vmm_paging_sequence(memory));
		return;
	}
	struct vmm_segment *segment = vmm_memory_segment(memory, table->segment);
	uint64_t bytes = vmm_range_size(segment->heap, table->range);

	segment->invalid_bytes -= bytes;
	segment->table_count--;
	if (va->process) {
		segment->movable_bytes -= bytes;
		va->placed_bytes[table->segment - 1] -= bytes;
	}
	vmm_segment_free(memory, segment, table->range);
}

void vmm_tables_free_memory(struct vmm_va *va, struct vmm_va_table *table)
{
	vmm_assert_held(&va->memory->adapter->paging_lock);
	for (uint32_t i = 0; table->level && i < table->entries; i++)
		if (table->child[i])
			vmm_tables_free_memory(va, table->child[i]);
	if (table->segment)
		vmm_table_free_memory(va->memory, va, table);
}

/* How soon the tables of a process are needed. */
enum need { NEED_LATER, NEED_QUEUED, NEED_NOW };

static enum need need_of_timeline(const struct vmm_timeline *timeline, const struct vmm_va *va)
{
	const struct vmm_list *link;
	enum need need = NEED_LATER;

	vmm_list_for_each (link, &timeline->work) {
		const struct vmm_work *work = vmm_container_of(link, struct vmm_work, link);

		if (work->device->va != va)
			continue;
		if (work->prepared)
			return NEED_NOW;
		need = NEED_QUEUED;
	}
	return need;
}

/*
 * NEED_NOW: a packet is prepared that runs in the address space, or the GPU has a command of a
 * hardware queue. Its tables may not change their place. Commands of a suspended context count as
 * complete.
 */
static enum need need_of(const struct vmm_va *va) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = va->memory->adapter;
	enum need need = NEED_LATER;

	vmm_assert_held(&adapter->paging_lock);
	vmm_state_lock(adapter);
	for (uint32_t t = 0; t < vmm_timeline_count(adapter) && need != NEED_NOW; t++) {
		enum need here = t == adapter->paging_timeline
					 ? NEED_LATER
					 : need_of_timeline(&adapter->timeline[t], va);

		need = here > need ? here : need;
	}
	vmm_state_unlock(adapter);
	return need;
}

/*
 * Returns the process with tables in the segment whose last packet was prepared first. The process
 * that asks comes last: its tables are needed again soon, in another place. Those of a
 * process with queued packets would come back at the next attempt: if a wait for the GPU may help,
 * the caller waits instead.
 */
static struct vmm_va *pick(const struct vmm_search *search) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_memory *memory = search->memory;
	const struct vmm_instance *wanted = search->request.owner;
	uint32_t asks = wanted ? wanted->allocation->owner : 0;
	struct vmm_va *found = NULL, *own = NULL;
	const struct vmm_list *link;

	vmm_assert_held(&search->memory->adapter->paging_lock);
	vmm_list_for_each (link, &memory->vas) {
		struct vmm_va *va = vmm_container_of(link, struct vmm_va, link);

		if (!va->placed_bytes[search->segment - memory->segment] || va == memory->placing ||
		    va->used_by == search->preparation)
			continue;
		if (need_of(va) >= (search->blocked ? NEED_QUEUED : NEED_NOW))
			continue;
		if (vmm_va_owner(va) == asks)
			own = va;
		else if (!found || va->used_by < found->used_by)
			found = va;
	}
	return found ? found : own;
}

/* ExplicitPageTableInvalidation: every entry becomes invalid before its table is freed. */
static void invalidate(struct vmm_va *va, struct vmm_va_table *table)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	DXGK_PTE invalid = {{{0}}, {0}};
	const struct vmm_va_write write = {
		.table = table, .count = table->entries, .entries = &invalid, .repeat = true};

	vmm_assert_held(&va->memory->adapter->paging_lock);
	for (uint32_t i = 0; table->level && i < table->entries; i++)
		if (table->child[i])
			invalidate(va, table->child[i]);
	(void)!vmm_ok(vmm_va_update(va, &write));
}

static void forget_entries(struct vmm_va *va) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_va_piece *piece = vmm_vaspace_piece(va->space, 0);

	vmm_assert_held(&va->memory->adapter->paging_lock);
	for (; piece; piece = vmm_vaspace_next(va->space, piece))
		piece->live = false;
}

bool vmm_tables_evict(const struct vmm_search *search)
{
	struct vmm_memory *memory = search->memory;
	struct vmm_va *va = memory->resetting ? NULL : pick(search);

	vmm_assert_held(&search->memory->adapter->paging_lock);
	if (!va)
		return false;
	if (vmm_va_mmu(va)->caps.ExplicitPageTableInvalidation)
		invalidate(va, va->root);
	/* Nothing that the GPU has kept may outlive the tables. Both addresses 0: all. (VA-13) */
	(void)!vmm_ok(vmm_va_flush(va, 0, 0));
	vmm_tables_free_memory(va, va->root);
	forget_entries(va);
	va->evicted = true;
	memory->adapter->placements++;
	return true;
}
