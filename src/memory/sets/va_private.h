/* SPDX-License-Identifier: MIT */
/* GPU virtual address spaces: what the va_*.c files of this tier share. */
#ifndef VMM_MEMORY_VA_PRIVATE_H
#define VMM_MEMORY_VA_PRIVATE_H

#include "memory/transfer/va_entries.h"

/* ---- va_table.c ---- */
/*
 * Create the root table, or the tables that translate [base, base + size). Return VMM_PENDING if
 * the GPU uses the memory that a table needs. Tables created until then stay until vmm_va_prune().
 *
 * The pages get their content afterwards: on the way, evicted tables return with the entries of all
 * pieces of the space (VA-22), and instances that move write theirs.
 */
vmm_status vmm_va_root_create(struct vmm_va *va) VMM_REQUIRES(vmm_paging_lock_class);
vmm_status vmm_va_create_tables(struct vmm_va *va, uint64_t base, uint64_t size)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Destroys the tables in the range that translate no taken address. */
void vmm_va_prune(struct vmm_va *va, uint64_t base, uint64_t size)
	VMM_REQUIRES(vmm_paging_lock_class);
void vmm_va_tables_free(struct vmm_va *va) VMM_REQUIRES(vmm_paging_lock_class);
/* Rewrites all tables after they have lost their content. */
void vmm_va_tables_rewrite(struct vmm_va *va) VMM_REQUIRES(vmm_paging_lock_class);
/* The same for a client's process, with all entries; evicted tables stay as they are. */
void vmm_va_rewrite_one(struct vmm_va *va) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Before a packet of the device runs: page tables that were evicted return (VA-22). Returns as
 * vmm_memory_make_resident_locked. Then the paging packet that the packet must wait for; 0: none.
 */
vmm_status vmm_va_gather(struct vmm_device *device, uint64_t preparation) VMM_MUST_CHECK
	VMM_REQUIRES(vmm_paging_lock_class);
uint64_t vmm_va_written_by(const struct vmm_device *device) VMM_REQUIRES(vmm_paging_lock_class);

/*
 * Gives evicted tables memory again, writes them and sends the root. VMM_PENDING: the GPU uses the
 * memory; VMM_NO_VIDEO_MEMORY: there is none. (VA-22)
 */
vmm_status vmm_va_bring_back(struct vmm_va *va, uint64_t preparation)
	VMM_REQUIRES(vmm_paging_lock_class);
void vmm_va_send_root(struct vmm_va *va, const struct vmm_va_context *context);

/* ---- va_map.c ---- */
/* Returns the context allocation of that handle; NULL: there is none. Paging lock held. */
struct vmm_context_allocation *vmm_context_allocation_find(const struct vmm_memory *memory,
							   const void *handle)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Sets the content of pages of one range, whose tables exist, and writes their entries. */
vmm_status vmm_va_set_content(struct vmm_va *va, uint64_t base, uint64_t size,
			      const struct vmm_va_content *content)
	VMM_REQUIRES(vmm_paging_lock_class);

/* ---- va_space.c ---- */
/*
 * Creates the space of a process (NULL: the system paging process) without tables. Its object in
 * the miniport is va->kmd_process. Caller holds no lock.
 */
NTSTATUS vmm_va_space_create(struct vmm_adapter *adapter, const struct vmm_process *process,
			     struct vmm_va **result);
void vmm_va_space_free(struct vmm_va *va);
struct vmm_va *vmm_va_find(struct vmm_memory *memory, const struct vmm_process *process)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Finds or creates the process's address space. Caller holds no lock. */
NTSTATUS vmm_va_get(struct vmm_adapter *adapter, struct vmm_process *process,
		    struct vmm_va **result);
/* Releases the range with its mappings, and tables that become unused. */
void vmm_va_release(struct vmm_va *va, struct vmm_va_range *range)
	VMM_REQUIRES(vmm_paging_lock_class);

/* ---- va_system.c: the system paging process (PAG-26) ---- */
/* Creates its tables and its window, and sets the root of the paging contexts. */
vmm_status vmm_va_start_system(struct vmm_adapter *adapter) VMM_REQUIRES(vmm_paging_lock_class);
/* Writes the tables again after they have lost their content. */
void vmm_va_rewrite_system(struct vmm_memory *memory) VMM_REQUIRES(vmm_paging_lock_class);
/* Frees the tables; the adapter has stopped. */
void vmm_va_free_system(struct vmm_memory *memory) VMM_REQUIRES(vmm_paging_lock_class);

/* For destroy.c: removes the mappings of a reference whose handle is closed. */
void vmm_va_forget_ref(struct vmm_ref *ref) VMM_REQUIRES(vmm_paging_lock_class);
/* For power.c and reset.c: rewrites all tables after a power loss or an adapter reset. */
void vmm_va_rewrite(struct vmm_memory *memory) VMM_REQUIRES(vmm_paging_lock_class);

#endif
