/* SPDX-License-Identifier: MIT */
/*
 * Tier 5, CPU image: where the CPU finds the bytes of an instance, and in which form. Swizzling
 * ranges, alternate addresses, locks of single pages, CPU caches, CPU host apertures, CPU mappings.
 */
#ifndef VMM_MEMORY_IMAGE_H
#define VMM_MEMORY_IMAGE_H

#include "memory/state/state.h"
#include "memory/transfer/paging.h"

/*
 * Of an instance whose system copy is retained while it is in a memory segment: the dirty pages, in
 * which the CPU may have made the system copy newer. There are none while the GPU's copy is the
 * newer one (instance->gpu_wrote).
 */
struct vmm_retained_copy {
	struct vmm_instance *instance;
	struct vmm_list waiting; /* in memory->uploads */
	bool all;                /* every page is dirty: the lock gave no page list (LOCK-22) */
	bool some;               /* a bit in pages[] is set */
	bool open;               /* locked for writing */
	uint64_t page_count;
	uint64_t pages[]; /* dirty bits, one per page */
};

/* One of the miniport's swizzling ranges; its index is the RangeId. */
struct vmm_swizzling_range {
	struct vmm_instance *owner; /* NULL: free */
	uint32_t private_data;
	uint64_t last_use;
	uint64_t physical, size_bytes; /* the miniport's answer */
	bool changed;  /* answer and request differ: alternate addresses only (SWZ-03) */
	bool overlaid; /* its window belongs to an out-of-process client (window.c) */
	struct vmm_alternate *alternate; /* NULL: no lock has asked for one */
};
static inline bool vmm_instance_is_swizzled(const struct vmm_instance *instance)
{
	return (instance->allocation->flags & VMM_ALLOCATION_SWIZZLED) != 0;
}

/* ---- sysmem.c: retained system copies (PAG-13 to PAG-15) ---- */
/*
 * All of these do nothing for an instance without a retained copy, except vmm_retained_restore,
 * which needs one, and vmm_hand_over_to_gpu.
 *
 * Creates the copy of a new instance. system_memory: the caller's memory of an Existing...
 * allocation (ALF-13).
 */
vmm_status vmm_retained_create(struct vmm_memory *memory, struct vmm_instance *instance,
			       const void *system_memory, struct vmm_section *section)
	VMM_REQUIRES(vmm_paging_lock_class);
void vmm_retained_free(struct vmm_instance *instance);
/* Copies the GPU's newer content to the system copy. The GPU does not use the instance. */
vmm_status vmm_retained_restore(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * A lock has succeeded: marks the listed pages dirty. `content`: the caller wants the old content
 * (REN-15).
 */
void vmm_retained_note_lock(struct vmm_instance *instance, const struct vmm_lock_request *request,
			    bool content) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * After an unlock: returns true if it was the last one and dirty pages are to be uploaded before
 * the next GPU use.
 */
bool vmm_retained_note_unlock(struct vmm_instance *instance) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * The same; if the GPU does not use the instance, the next vmm_retained_upload_all uploads the
 * pages.
 */
void vmm_retained_upload_soon(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
void vmm_retained_upload_all(struct vmm_memory *memory) VMM_REQUIRES(vmm_paging_lock_class);
/* The instance has left its memory segment: the system copy is the only one. */
void vmm_retained_left_segment(struct vmm_instance *instance) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Does what is due before the GPU uses the instance where it is: writes dirty pages back, flushes
 * CPU caches. Returns VMM_PENDING if the GPU reads the pages at that moment.
 */
vmm_status vmm_hand_over_to_gpu(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);

/* ---- swizzle_range.c: the table of swizzling ranges ---- */
/*
 * Releases all swizzling ranges of the instance. To be called before it leaves its memory segment.
 * (SWZ-13)
 */
void vmm_swizzle_release_all(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
static inline void vmm_swizzle_release(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_unlikely(instance->range_count))
		vmm_swizzle_release_all(memory, instance);
}
/* Releases those of an unlocked, swizzled instance whose window is the instance's own placement. */
void vmm_swizzle_release_in_place(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Returns the instance's range for that PrivateDriverData, or NULL. */
struct vmm_swizzling_range *vmm_swizzle_find(struct vmm_memory *memory,
					     const struct vmm_instance *instance,
					     uint32_t private_data)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Finds or acquires the instance's range for that PrivateDriverData; reclaims another instance's
 * range if all are in use. may_change: the miniport may answer with another address and size.
 * (SWZ-06, SWZ-08)
 */
vmm_status vmm_swizzle_take(struct vmm_memory *memory, struct vmm_instance *instance,
			    uint32_t private_data, bool may_change)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * The same for an alternate address, which it maps. Returns VMM_PENDING if the GPU must finish
 * first. (SWZ-24)
 */
vmm_status vmm_swizzle_take_alternate(struct vmm_memory *memory, struct vmm_instance *instance,
				      uint32_t private_data) VMM_REQUIRES(vmm_paging_lock_class);
/* Records that a lock found no range and uses a copy in system memory. */
void vmm_swizzle_note_fallback(struct vmm_memory *memory, const struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
void vmm_swizzle_finish(struct vmm_memory *memory);
void vmm_swizzle_check(const struct vmm_memory *memory) VMM_REQUIRES(vmm_paging_lock_class);

/* ---- alternate.c: addresses for UseAlternateVA (SWZ-24) ---- */
/*
 * Is the miniport's answer usable? It must name memory of the device, or the instance's own pages,
 * and be large enough. A finding says what is wrong.
 */
bool vmm_alternate_range_is_valid(const struct vmm_memory *memory,
				  const struct vmm_instance *instance,
				  const DXGKARG_ACQUIRESWIZZLINGRANGE *answer)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Creates the range's address if there is none. VMM_NO_MEMORY: no address space; others: see
 * vmm_window_overlay.
 */
vmm_status vmm_alternate_map_range(struct vmm_memory *memory, struct vmm_swizzling_range *range)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Sets *address to the alternate address of the instance, which is created if there is none: that
 * of `range`, the instance's range for that PrivateDriverData, or if `range` is NULL, one of the
 * pages in system memory.
 */
vmm_status vmm_alternate_map(struct vmm_memory *memory, struct vmm_instance *instance,
			     const struct vmm_swizzling_range *range, uint32_t private_data,
			     char **address) VMM_REQUIRES(vmm_paging_lock_class);
/* Writes CPU caches back for what was written through such addresses. (ALF-15) */
void vmm_alternate_flush(struct vmm_memory *memory, const struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Ends all alternate addresses of the instance. Its content and state do not change. */
void vmm_alternate_end(struct vmm_memory *memory, struct vmm_instance *instance);
void vmm_alternate_free(struct vmm_alternate **alternate);
static inline void vmm_alternate_drop(struct vmm_instance *instance)
{
	if (vmm_unlikely(instance->alternate))
		vmm_alternate_free(&instance->alternate);
}
static inline bool vmm_alternate_has_lock(const struct vmm_instance *instance)
{
	return vmm_locks(instance) && (instance->lock_flags & VMM_LOCK_USE_ALTERNATE_VA);
}
/* Was the content evicted while it was locked at such an address? (SWZ-25) */
static inline bool vmm_alternate_is_special(const struct vmm_instance *instance)
{
	return vmm_unlikely(instance->alternate) && instance->alternate->special;
}
/*
 * The same, and does the image differ in size from the allocation? Then only this address and the
 * miniport understand it.
 */
bool vmm_alternate_is_resized(const struct vmm_instance *instance);

/* ---- alternate_paging.c ---- */
/*
 * Copies the content of an instance that is locked through the address of a range to system memory.
 * The caller then takes the instance out of its segment. VMM_NOT_SUPPORTED: it must stay. (LKR-07)
 */
vmm_status vmm_alternate_evict(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Copies that content back to the placement that the instance has been given. (SWZ-25) */
vmm_status vmm_alternate_restore(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/* The adapter is reset: a locked address is remapped to empty pages of system memory. (TDR-11) */
vmm_status vmm_alternate_abandon(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);

/* ---- partial.c: locks of single pages of an instance in a memory segment (LOCK-21) ---- */
/* Transfers the pages of the request that are not there yet to system memory, unswizzled. */
vmm_status vmm_partial_take(struct vmm_memory *memory, struct vmm_instance *instance,
			    const struct vmm_lock_request *request)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Are all pages of the request in system memory? */
bool vmm_partial_covers(const struct vmm_instance *instance, const struct vmm_lock_request *request)
	VMM_REQUIRES(vmm_paging_lock_class);
/* A lock has been granted: without ReadOnly the pages count as written. (LOCK-06) */
void vmm_partial_note_lock(struct vmm_instance *instance, uint32_t flags);
/* After an unlock: if it was the last one, queues the instance in memory->partials. */
void vmm_partial_unlocked(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Transfers the pages of all instances in memory->partials back that the GPU does not use. */
void vmm_partial_write_back_all(struct vmm_memory *memory) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Transfers the pages of an unlocked instance back. VMM_PENDING: the GPU reads the instance at that
 * moment.
 */
vmm_status vmm_partial_write_back(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/* For an eviction: transfers all other pages to system memory, too. */
vmm_status vmm_partial_evict(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Drops the system copy of the pages without a transfer. */
void vmm_partial_drop(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);

/* ---- coherence.c: CPU caches (ALF-15); these do nothing for an allocation without Cached ---- */
/*
 * Before the GPU uses the instance in its segment. `seen`: the placement in which the CPU accessed
 * it.
 */
void vmm_coherence_to_gpu(struct vmm_memory *memory, struct vmm_instance *instance,
			  enum vmm_placement seen) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Flushes the CPU cache lines of a range of the content, in bytes, unless the GPU snoops them.
 * (CCH-01)
 */
void vmm_coherence_flush_range(struct vmm_memory *memory, const struct vmm_instance *instance,
			       uint64_t offset, uint64_t length)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Before the CPU accesses it. */
void vmm_coherence_to_cpu(struct vmm_memory *memory, struct vmm_instance *instance, bool read_only)
	VMM_REQUIRES(vmm_paging_lock_class);

/* ---- host_aperture.c: CPU host apertures of 2.x memory segments without a BAR (SWZ-29) ---- */
/* Create and destroy the apertures of all segments that have one. */
vmm_status vmm_host_apertures_create(struct vmm_memory *memory);
void vmm_host_apertures_destroy(struct vmm_memory *memory);
void vmm_host_aperture_check(const struct vmm_segment *segment);
/*
 * Maps an instance in a memory segment into the segment's host aperture. VMM_NO_VIDEO_MEMORY: there
 * is no aperture, or locked instances leave too few pages in it.
 */
vmm_status vmm_host_map(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Maps those aperture pages at the instance's CPU mapping, whose addresses are reserved. */
vmm_status vmm_host_map_view(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Unmaps the instance from the aperture. Before, the caller has unmapped or write-protected its CPU
 * mapping. Does nothing if the instance is not mapped.
 */
void vmm_host_unmap(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * For a caller that holds more than the paging lock: marks the mapping; vmm_host_unmap_unwanted
 * removes it.
 */
void vmm_host_unmap_soon(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
void vmm_host_unmap_unwanted(struct vmm_memory *memory) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Makes the client objects over host apertures that an owner can need. VMM_NO_MEMORY: no memory, or
 * no descriptor.
 */
vmm_status vmm_host_prepare_viewer(struct vmm_memory *memory, uint64_t owner)
	VMM_REQUIRES(vmm_paging_lock_class);
/* The client process `owner` has ended: ends its client objects in all host apertures. */
void vmm_host_end_viewer(struct vmm_memory *memory, uint64_t owner)
	VMM_REQUIRES(vmm_paging_lock_class);

/* ---- view.c, view_map.c: CPU mappings, whose type is struct vmm_os_view (LOCK-04) ---- */
/* Maps the instance's current placement at its address, which is reserved at the first call. */
vmm_status vmm_view_map(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * The instance leaves its placement: ends its CPU mapping. The mapping of a locked instance stays;
 * the caller maps it again.
 */
void vmm_view_unmap(struct vmm_instance *instance) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * The content has left what the view of a locked instance shows, which cannot be undone, and the
 * system refuses to map its new place: the pointer faults from now on.
 */
void vmm_view_lose(const struct vmm_instance *instance, struct vmm_os_view *view)
	VMM_REQUIRES(vmm_paging_lock_class);

#endif
