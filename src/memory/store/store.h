/* SPDX-License-Identifier: MIT */
/*
 * Tier 2, store: pages of system memory. Backing stores carved from arenas, pages that vidmm does
 * not own, content on every physical adapter of a link.
 */
#ifndef VMM_MEMORY_STORE_H
#define VMM_MEMORY_STORE_H

#include "memory/state/types.h"

/* ---- arena.c ---- */
vmm_status vmm_backing_create(struct vmm_memory *memory, uint64_t size_bytes, bool zero,
			      struct vmm_backing *backing) VMM_REQUIRES(vmm_paging_lock_class);
/* Frees the pages now: neither the GPU nor a paging command uses them. */
void vmm_backing_destroy(struct vmm_memory *memory, struct vmm_backing *backing);
/* Frees the pages once the paging timeline has completed `sequence`. */
void vmm_backing_destroy_after(struct vmm_memory *memory, struct vmm_backing *backing,
			       uint64_t sequence) VMM_REQUIRES(vmm_paging_lock_class);
/* Frees the deferred backings whose packet is complete. */
void vmm_backing_collect(struct vmm_memory *memory);
uint64_t vmm_backing_bus_address(const struct vmm_memory *memory, const struct vmm_backing *backing)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Returns the memory object that holds the pages; *offset: where they begin in it. */
const struct vmm_os_memory *vmm_backing_memory(const struct vmm_memory *memory,
					       const struct vmm_backing *backing, uint64_t *offset)
	VMM_REQUIRES(vmm_paging_lock_class);
void vmm_arenas_finish(struct vmm_memory *memory);
/*
 * As vmm_backing_create, in an arena that the allocation's creator may map, and charged to its
 * process.
 */
vmm_status vmm_backing_create_for(struct vmm_memory *memory,
				  const struct vmm_allocation *allocation, uint64_t size_bytes,
				  bool zero, struct vmm_backing *backing)
	VMM_REQUIRES(vmm_paging_lock_class);

/* ---- backing_share.c: ShareBackingStoreWithKmd (ALF-30) ---- */
/*
 * Calls DxgkDdiSetAllocationBackingStore with the store's address. Does nothing without the flag.
 * No lock is held.
 */
NTSTATUS vmm_backing_share_announce(struct vmm_memory *memory,
				    const struct vmm_allocation *allocation);
/*
 * The allocation ends: moves the shared store to the caller. The caller frees it after
 * DxgkDdiDestroyAllocation has returned. Returns an empty backing without the flag.
 */
struct vmm_backing vmm_backing_share_take(struct vmm_allocation *allocation)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Frees that store; takes the paging lock itself. */
void vmm_backing_share_free(struct vmm_memory *memory, struct vmm_backing *store);

/* ---- link.c: content on every physical adapter of a link (PAG-22, PAG-23) ---- */
/*
 * Returns how many physical adapters hold a copy: all of them, or the lead alone (1). Always the
 * first ones.
 */
static inline uint32_t vmm_link_copies(const struct vmm_allocation *allocation)
{
	return allocation->flags & VMM_ALLOCATION_LINKED ? allocation->adapter->physical_adapters
							 : 1;
}
static inline bool vmm_link_is_mirrored(const struct vmm_allocation *allocation)
{
	return (allocation->flags & VMM_ALLOCATION_LINK_MIRRORED) &&
	       allocation->adapter->physical_adapters > 1;
}
static inline bool vmm_link_is_instanced(const struct vmm_allocation *allocation)
{
	return (allocation->flags & VMM_ALLOCATION_LINK_INSTANCED) &&
	       allocation->adapter->physical_adapters > 1;
}
/*
 * Returns the size of the backing store and of the CPU mapping. LinkInstanced: one part per adapter
 * in a row. (SWZ-30)
 */
static inline uint64_t vmm_store_bytes(const struct vmm_allocation *allocation)
{
	return vmm_unlikely(vmm_link_is_instanced(allocation))
		       ? allocation->size_bytes * allocation->adapter->physical_adapters
		       : allocation->size_bytes;
}
/* Like vmm_backing_create, with the size of the instance's store. */
vmm_status vmm_link_store_create(struct vmm_memory *memory, struct vmm_instance *instance,
				 bool zero) VMM_REQUIRES(vmm_paging_lock_class);
/* Allocates the backing store if there is none. */
vmm_status vmm_residency_ensure_backing(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Returns the MDL over the pages of the backing store that belong to that physical adapter. */
static inline void *vmm_link_mdl(const struct vmm_instance *instance, uint32_t physical)
{
	return vmm_unlikely(instance->backing.parts != NULL) ? instance->backing.parts[physical]
							     : instance->backing.mdl;
}
/*
 * Orders paging across the adapters of a link: commands built after this call run, on all adapters,
 * after the last packet that writes the instance's store.
 */
void vmm_link_order(struct vmm_memory *memory, const struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Returns the name of a property that is not implemented together with a link flag, or NULL. */
const char *vmm_link_not_built(uint32_t flags);

/* ---- section.c: pages that vidmm does not own (ALF-13, ALF-38) ---- */
/* Locks the pages at `pointer` and makes them the backing store. (ALF-13) */
vmm_status vmm_existing_lock(struct vmm_memory *memory, const void *pointer, uint64_t size_bytes,
			     struct vmm_backing *backing) VMM_REQUIRES(vmm_paging_lock_class);
void vmm_existing_unlock(struct vmm_memory *memory, struct vmm_backing *backing);
bool vmm_backing_is_existing(const struct vmm_backing *backing);

/*
 * The surface of a cross-adapter resource, as its creator's miniport describes it. Only the process
 * `owner` may lock it (LOCK-24).
 */
struct vmm_picture {
	uint32_t width, height, owner;
	D3DDDIFORMAT format;
};
struct vmm_section {
	struct vmm_os_memory memory;
	struct vmm_picture picture;
	/* where the content begins; 0 except for out-of-process memory (existing.c) */
	uint64_t offset;
	_Atomic uint32_t references;
};
/* Creates a section of new memory, with one reference. */
vmm_status vmm_section_create(struct vmm_os *os, uint64_t size_bytes,
			      struct vmm_section **section) VMM_MUST_CHECK;
/* Adds a reference and returns the section. */
struct vmm_section *vmm_section_get(struct vmm_section *section);
/* Like vmm_existing_lock for the section's memory. The backing holds a reference to the section. */
vmm_status vmm_section_lock(struct vmm_memory *memory, struct vmm_section *section,
			    uint64_t size_bytes, struct vmm_backing *backing)
	VMM_REQUIRES(vmm_paging_lock_class);

#endif
