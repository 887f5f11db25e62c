/* SPDX-License-Identifier: MIT */
/* What the va_*.c files share. Everything is guarded by the adapter's paging lock. */
#ifndef VMM_MEMORY_VA_PRIVATE_H
#define VMM_MEMORY_VA_PRIVATE_H

#include "memory/memory_private.h"
#include "memory/va.h"
#include "vaspace/vaspace.h"

/* A page table. It stays where it is as long as something below it is taken. */
struct vmm_va_table {
	struct vmm_va_table *parent;
	struct vmm_va_table **child; /* of a level above the leaf, by index; else NULL */
	uint64_t base;               /* the first address that it translates */
	uint32_t level, index, entries, children;
	uint64_t size_bytes;
	uint32_t segment; /* 0: in system memory, `backing` */
	vmm_range_node range;
	uint64_t offset; /* in the segment, or the bus address */
	struct vmm_backing backing;
};

/* One process on one adapter. */
struct vmm_va {
	struct vmm_list link; /* in memory->vas */
	struct vmm_memory *memory;
	const struct vmm_process *process;
	struct vmm_port_process port; /* for DxgkDdiCreateProcess */
	void *kmd_process;
	bool created; /* kmd_process counts */
	struct vmm_vaspace *space;
	struct vmm_va_table *root;
	struct vmm_list contexts; /* vmm_va_context.link */
};

static inline const struct vmm_port_gpummu *vmm_va_mmu(const struct vmm_va *va)
{
	return &va->memory->caps->gpummu;
}
/* How many bits of an address are below the index of that level. */
uint32_t vmm_va_shift(const struct vmm_port_gpummu *mmu, uint32_t level);

/* ---- va_table.c ---- */
/* VMM_PENDING: the GPU uses what is in the way of a table. What was made before that stays until vmm_va_prune. */
vmm_status vmm_va_root_create(struct vmm_va *va);
vmm_status vmm_va_tables(struct vmm_va *va, uint64_t base, uint64_t size);
/* The leaf that translates the address; NULL: none does. */
struct vmm_va_table *vmm_va_leaf(const struct vmm_va *va, uint64_t address);
/* Tables there whose addresses nobody has taken any more go. */
void vmm_va_prune(struct vmm_va *va, uint64_t base, uint64_t size);
void vmm_va_tables_free(struct vmm_va *va);
/* All of them have lost their content. */
void vmm_va_tables_rewrite(struct vmm_va *va);
void vmm_va_tell_root(struct vmm_va *va, const struct vmm_va_context *context);

/* ---- va_entries.c ---- */
struct vmm_va_write {
	struct vmm_va_table *table;
	uint32_t start, count;
	DXGK_PTE *entries;
	bool repeat, initial;
	const struct vmm_allocation *allocation; /* whose pages they are; NULL: of none */
	uint64_t offset, driver_protection;
};
vmm_status vmm_va_update(struct vmm_va *va, const struct vmm_va_write *write);
vmm_status vmm_va_flush(struct vmm_va *va, uint64_t base, uint64_t end);
/* What the table says of a lower one, or nothing. */
DXGK_PTE vmm_va_pointer(const struct vmm_va_table *table);
/* The piece's pages into the tables, or out of them. `changed`: something valid was there before. */
vmm_status vmm_va_write_piece(struct vmm_va *va, struct vmm_va_piece *piece, bool changed);
vmm_status vmm_va_erase(struct vmm_va *va, uint64_t base, uint64_t size,
			uint64_t driver_protection);
/* The same for all pieces of a space whose tables are empty. */
void vmm_va_pieces_rewrite(struct vmm_va *va);

/* ---- va_map.c ---- */
/* Pages of one range, whose tables are there, become that content. */
vmm_status vmm_va_put(struct vmm_va *va, uint64_t base, uint64_t size,
		      const struct vmm_va_content *content);

/* ---- va_space.c ---- */
struct vmm_va *vmm_va_find(struct vmm_memory *memory, const struct vmm_process *process);
/* Makes it if there is none. No lock held. */
NTSTATUS vmm_va_get(struct vmm_adapter *adapter, struct vmm_process *process,
		    struct vmm_va **result);
/* The range goes, with what it maps, and tables that nobody needs. */
void vmm_va_release(struct vmm_va *va, struct vmm_va_range *range);

/* For destroy.c: the handle goes, and what is mapped by it. */
void vmm_va_forget_ref(struct vmm_ref *ref);
/* For power.c and reset.c: all tables are written anew: their memory had no power, or the adapter was reset. */
void vmm_va_rewrite(struct vmm_memory *memory);

#endif
