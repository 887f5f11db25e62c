/* SPDX-License-Identifier: MIT */
/*
 * Tier 3, transfer: page tables of GPU virtual address spaces, and their entries (va_entries.c).
 * sets/va_private.h has what creates the tables.
 */
#ifndef VMM_MEMORY_VA_ENTRIES_H
#define VMM_MEMORY_VA_ENTRIES_H

#include "memory/state/types.h"
#include "memory/va.h"
#include "vaspace/vaspace.h"

/*
 * A page table. It exists while an address that it translates is taken. Its memory in a
 * segment may be evicted; the table then gets other memory (VA-22).
 */
struct vmm_va_table {
	struct vmm_va_table *parent;
	/* child tables by index; NULL in a leaf */
	struct vmm_va_table **child;
	/* the first address that it translates */
	uint64_t base;
	uint32_t level, index, entries, children;
	uint32_t shift; /* an entry covers 1 << shift bytes */
	uint64_t size_bytes;
	/* 0: in system memory, see `backing` */
	uint32_t segment;
	uint64_t counted_bytes; /* what the table adds to va->table_bytes of the segment */
	bool placed;            /* it has memory: `range` of the segment, or `backing` */
	vmm_range_node range;
	/* offset in the segment, or the bus address */
	uint64_t offset;
	struct vmm_backing backing;
};

/* The address space of one process on one adapter. */
struct vmm_va {
	struct vmm_list link; /* in memory->vas; the system paging process is not */
	struct vmm_memory *memory;
	/* NULL: the system paging process (PAG-26) */
	const struct vmm_process *process;
	/* passed to DxgkDdiCreateProcess */
	struct vmm_port_process port;
	void *kmd_process;
	/* the paging process: the miniport has it, as kmd_process */
	bool created;
	/*
	 * The paging process's tables are being set up: the miniport writes entries with the CPU,
	 * before DxgkDdiBuildPagingBuffer returns (VA-11).
	 */
	bool immediate;
	struct vmm_vaspace *space;
	struct vmm_va_table *root;
	struct vmm_va_table *near; /* the leaf that was looked up last; NULL: none */
	/*
	 * The tables in segments have no memory: entries are neither written nor flushed, until
	 * vmm_va_bring_back. (VA-22)
	 */
	bool evicted;
	/* The preparation of the last packet that needed the tables. */
	uint64_t used_by;
	/* The paging packet that wrote the tables when they were last brought back; 0: none. */
	uint64_t written_by;
	/* By segment: bytes of the tables there, and the bytes that all tables need there. */
	uint64_t placed_bytes[VMM_PORT_SEGMENTS_MAX], table_bytes[VMM_PORT_SEGMENTS_MAX];
	struct vmm_list contexts; /* vmm_va_context.link */
};

static inline const struct vmm_port_gpummu *vmm_va_mmu(const struct vmm_va *va)
{
	return &va->memory->caps->gpummu;
}

/* Id of the process, for events and findings; 0: the system paging process. */
static inline uint32_t vmm_va_owner(const struct vmm_va *va)
{
	return va->process ? va->process->id : 0;
}

/* ---- va_entries.c: these do nothing on an adapter without GPU virtual addresses ---- */
void vmm_va_write_entries_slow(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
void vmm_va_invalidate_entries_slow(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/* The instance has a placement: writes it into the page tables. */
static inline void vmm_va_write_entries(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_unlikely(memory->caps->gpummu.supported))
		vmm_va_write_entries_slow(memory, instance);
}
/* The instance is about to lose its placement: makes its page table entries invalid. (VA-13) */
static inline void vmm_va_invalidate_entries(struct vmm_memory *memory,
					     struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_unlikely(memory->caps->gpummu.supported))
		vmm_va_invalidate_entries_slow(memory, instance);
}

/* ---- va_entries.c: entries of page tables (VA-13) ---- */
/* Number of address bits below the index of that level. */
uint32_t vmm_va_shift(const struct vmm_port_gpummu *mmu, uint32_t level);
/* Returns the index of the table's entry for that address; beyond its entries if there is none. */
static inline uint32_t vmm_va_index(const struct vmm_va_table *table, uint64_t address)
{
	return (uint32_t)((address - table->base) >> table->shift);
}
/* Returns the leaf table that translates the address, or NULL. */
struct vmm_va_table *vmm_va_leaf(struct vmm_va *va, uint64_t address)
	VMM_REQUIRES(vmm_paging_lock_class);
struct vmm_va_write {
	struct vmm_va_table *table;
	uint32_t start, count;
	DXGK_PTE *entries;
	bool repeat, initial;
	/* the owner of the pages; NULL: no allocation */
	const struct vmm_allocation *allocation;
	uint64_t offset, driver_protection;
};
vmm_status vmm_va_update(struct vmm_va *va, const struct vmm_va_write *write)
	VMM_REQUIRES(vmm_paging_lock_class);
vmm_status vmm_va_flush(struct vmm_va *va, uint64_t base, uint64_t end)
	VMM_REQUIRES(vmm_paging_lock_class);
/* The pages of an instance's content at one placement, for page table entries. */
struct vmm_gpu_location {
	uint32_t segment; /* 0: system memory */
	/* first page number in the segment, or on the bus if the pages are contiguous */
	uint64_t page;
	DXGK_ADL list;
	const struct vmm_range_extents *extents; /* of the segment; NULL: contiguous from `page` */
};
/* Returns the pages of a backing store. */
struct vmm_gpu_location vmm_gpu_location_of_pages(const void *mdl);
/* Returns false if the GPU cannot reach the instance by a virtual address. */
bool vmm_va_locate(const struct vmm_instance *instance, struct vmm_gpu_location *location)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Returns the number of one page, counted from the start of the content. */
uint64_t vmm_gpu_page(const struct vmm_gpu_location *location, uint64_t index);

/* Returns the pages of a table. */
struct vmm_gpu_location vmm_va_location(const struct vmm_va_table *table);

struct vmm_va_pages {
	const struct vmm_gpu_location *location;
	/* the owner of the pages; NULL: no allocation */
	const struct vmm_allocation *allocation;
	/* the addresses [base, end) translate to the location's pages from byte `offset` on */
	uint64_t base, end, offset;
	uint64_t protection, driver_protection;
};
/* Writes the entries of addresses whose tables exist. Flushes nothing. */
vmm_status vmm_va_write_pages(struct vmm_va *va, const struct vmm_va_pages *pages)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Returns the entry that refers to a table. */
DXGK_PTE vmm_va_pointer(const struct vmm_va_table *table);
/*
 * Write a piece's entries, or invalidate those of a range. `changed`: the range had valid entries.
 */
vmm_status vmm_va_write_piece(struct vmm_va *va, struct vmm_va_piece *piece, bool changed)
	VMM_REQUIRES(vmm_paging_lock_class);
vmm_status vmm_va_erase(struct vmm_va *va, uint64_t base, uint64_t size, uint64_t driver_protection)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Writes the entries of all pieces of a space after its tables were emptied. */
void vmm_va_pieces_rewrite(struct vmm_va *va) VMM_REQUIRES(vmm_paging_lock_class);

#endif
