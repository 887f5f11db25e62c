/* SPDX-License-Identifier: MIT */
/*
 * Tier 6, residency: an instance enters and leaves a segment. Page-in, eviction, the choice of
 * victims, compaction.
 */
#ifndef VMM_MEMORY_RESIDENCY_H
#define VMM_MEMORY_RESIDENCY_H

#include "memory/placement/placement.h"
#include "memory/transfer/va_entries.h"

/* The `preparation` of a caller that prepares no packet. */
#define VMM_NO_PREPARATION   UINT64_MAX
/* That of a CPU lock: what other locks wait for keeps its space and its place. */
#define VMM_LOCK_PREPARATION (UINT64_MAX - 1)

/* ---- victim.c ---- */
/* Returns whether another lock waits for content of the instance that it has paged in. */
bool vmm_arrival_is_kept(const struct vmm_memory *memory, const struct vmm_instance *instance,
			 uint64_t preparation) VMM_REQUIRES(vmm_paging_lock_class);
/* Segments with more instances are not compacted before an eviction, which takes O(n). */
#define VMM_COMPACTED_MAX 2048u
struct vmm_search {
	struct vmm_memory *memory;
	struct vmm_segment *segment;
	struct vmm_range_request request;
	const struct vmm_instance *wanted; /* what the space is for; NULL: no instance */
	uint64_t preparation;
	uint64_t unit_bytes; /* of the extents that the request may be served in; 0: one range */
	bool at_home;        /* in allocation->home_extents, if that is set */
	/* Set by the search when nothing else is left to evict (locked_allowed, loss_allowed). */
	bool locked_allowed; /* instances that the CPU has locked may be evicted (PAG-16) */
	bool blocked;        /* found: the GPU uses an instance that could otherwise be evicted */
	bool loss_allowed;   /* instances that lose their content by it may be evicted (PAG-20) */
	bool fragile;        /* found: an instance that would lose its content if evicted */
	/* found: another process has locked what could otherwise be evicted */
	bool unlock_helps;
	bool spared;    /* found: the first pass left out what queued work or a list needs */
	bool compacted; /* the free space of the segment has been compacted (SPL-13) */
	bool immovable; /* moving content together before an eviction has failed */
};
/*
 * Allocates a range or extents for the search's request, evicting victims as needed. Returns
 * VMM_NO_VIDEO_MEMORY if that fails; search->blocked then says that there will be space once the
 * GPU is done. (PAG-02)
 */
vmm_status vmm_free_space_find(struct vmm_search *search, struct vmm_free_space *space)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Evicts idle instances until the request fits, and allocates the range. What that preparation
 * wants stays.
 */
vmm_status vmm_residency_take_space(struct vmm_memory *memory, struct vmm_segment *segment,
				    const struct vmm_range_request *request, uint64_t preparation,
				    struct vmm_free_space *space)
	VMM_REQUIRES(vmm_paging_lock_class);
/* The same without allocating the range. */
vmm_status vmm_residency_make_space(struct vmm_memory *memory, struct vmm_segment *segment,
				    const struct vmm_range_request *request)
	VMM_REQUIRES(vmm_paging_lock_class);

/*
 * Returns whether the instance is in the requested part of the segment and can be evicted now.
 * Temporary obstacles are recorded in the search. With `spare` instances that queued work or a
 * residency list needs are no victims.
 */
bool vmm_search_allows(struct vmm_search *search, const struct vmm_instance *instance, bool spare)
	VMM_REQUIRES(vmm_paging_lock_class);

/* ---- pick.c ---- */
/* Only instances of that process, or with `others` only those of all others; 0: of any. */
struct vmm_pick_owner {
	uint32_t process;
	bool others;
};
/*
 * Returns the victim of a class in the order of the adapter's policy. What the rest of a
 * split buffer needs comes after all others, the part needed last first. NULL: there is no
 * victim.
 */
struct vmm_instance *vmm_pick_in_class(struct vmm_search *search, uint32_t class_index,
				       struct vmm_pick_owner owner, bool spare)
	VMM_REQUIRES(vmm_paging_lock_class);

/* ---- tables.c: page tables of idle processes leave their segments (VA-22) ---- */
/*
 * Evicts the tables of the process that was idle longest, if they have memory in the search's
 * segment. Returns false if there is none: each is in use, or is the one that asks.
 */
bool vmm_tables_evict(const struct vmm_search *search) VMM_REQUIRES(vmm_paging_lock_class);
/* Frees the memory of one table, or of the table and those below it that are in segments. */
void vmm_table_free_memory(struct vmm_memory *memory, struct vmm_va *va, struct vmm_va_table *table)
	VMM_REQUIRES(vmm_paging_lock_class);
void vmm_tables_free_memory(struct vmm_va *va, struct vmm_va_table *table)
	VMM_REQUIRES(vmm_paging_lock_class);

/* ---- compact.c ---- */
/*
 * Moves idle instances inside a memory segment so that the request fits in one piece. Returns
 * VMM_NO_VIDEO_MEMORY if that is not possible; nothing was moved then. Without `wait` VMM_PENDING:
 * paging must first end where the content of an out-of-process client would move. (PAG-20)
 */
vmm_status vmm_compact(struct vmm_memory *memory, struct vmm_segment *segment,
		       const struct vmm_range_request *request, uint64_t preparation, bool wait)
	VMM_REQUIRES(vmm_paging_lock_class);

/* ---- notify.c: NotifyAlloc before an eviction, for 3.2 miniports that ask for it (PAG-29) ---- */
/*
 * Notifies the miniport that the instance, which is resident in system memory without a range of
 * the aperture segment, is about to leave it. Does nothing if the miniport did not ask for it.
 */
vmm_status vmm_notify_leaving_system(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
static inline bool vmm_notify_is_wanted(const struct vmm_allocation *allocation)
{
	return vmm_unlikely(allocation->flags2 & VMM_ALLOCATION2_NOTIFY_EVICTION);
}

/* ---- occupancy.c: instances in segments ---- */
/* Sets the instance's offset in that segment. */
static inline void vmm_residency_set_offset(const struct vmm_segment *segment,
					    struct vmm_instance *instance, uint64_t offset)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	instance->offset = offset;
	instance->address = segment->port->gpu_base + offset;
	instance->allocation->adapter->placements++;
}
/* Moves the allocation's instances to the lists of their current eviction class. */
void vmm_allocation_reclass(struct vmm_allocation *allocation) VMM_REQUIRES(vmm_paging_lock_class);
/* The instance, which is in no segment, gets that range of the segment. */
void vmm_residency_enter_segment(struct vmm_memory *memory, struct vmm_instance *instance,
				 struct vmm_segment *segment, const struct vmm_free_space *space)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Takes the instance, which the GPU does not use, out of its segment. The caller sets its new
 * placement.
 */
void vmm_residency_leave_segment(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/* The same for a placement to which no content and no client object has come yet. */
void vmm_residency_release_placement(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Counts an eviction from that segment, for `reason`: VIDMM_RESIDENCY_*, and notes its cause.
 * (QST-03, Q-321)
 */
void vmm_eviction_count(struct vmm_memory *memory, struct vmm_instance *instance, uint32_t segment,
			uint32_t reason) VMM_REQUIRES(vmm_paging_lock_class);
/* Reports where the instance is now. `reason`: VIDMM_RESIDENCY_*. */
void vmm_residency_event(struct vmm_memory *memory, const struct vmm_instance *instance,
			 uint32_t reason, uint32_t old_segment) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Takes the instance out of its segment without a copy: it is destroyed or its content is
 * discarded.
 */
void vmm_residency_drop(struct vmm_memory *memory, struct vmm_instance *instance, uint32_t reason)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * The adapter was reset: takes the instance out of its segment without paging commands. `place`:
 * where its content is now; VMM_PLACEMENT_LOST: it has none.
 */
void vmm_residency_reset(struct vmm_memory *memory, struct vmm_instance *instance,
			 enum vmm_placement place) VMM_REQUIRES(vmm_paging_lock_class);
/* Frees everything that the instance has. The GPU does not use it. */
void vmm_instance_finish(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);

/* ---- residency.c: page-in ---- */
/* Places an instance that will be pinned in the zone for those. (ALF-19, ALF-20, PAG-19) */
vmm_status vmm_residency_pin(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Places the instance where it was before power was lost: home_segment and home_offset, which are
 * free.
 */
vmm_status vmm_residency_pin_again(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Places an instance that is in no segment in one of the set, for a CPU lock. (SWZ-04) */
vmm_status vmm_residency_bring_in(struct vmm_memory *memory, struct vmm_instance *instance,
				  uint32_t set) VMM_REQUIRES(vmm_paging_lock_class);
/* Places the instance in a segment of the set. Evicts what that preparation does not want. */
vmm_status vmm_residency_place(struct vmm_memory *memory, struct vmm_instance *instance,
			       uint32_t set, uint64_t preparation)
	VMM_REQUIRES(vmm_paging_lock_class);

/* ---- eviction.c: an instance leaves its segment, and its content is saved ---- */
/* The content has no backing store yet: always copies it to a new one. (PAG-12) */
vmm_status vmm_eviction_to_new_store(struct vmm_memory *memory, struct vmm_instance *instance,
				     uint64_t preparation) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * The backing store was kept. Content that is `not_written` equals it and is discarded instead of
 * copied. (PRI-10)
 */
vmm_status vmm_eviction_to_kept_store(struct vmm_memory *memory, struct vmm_instance *instance,
				      uint64_t preparation) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Evicts a resident instance to its backing store. The GPU does not use the instance. `reason`:
 * VIDMM_RESIDENCY_*. Returns VMM_PENDING if the GPU uses what is in the way (see
 * vmm_eviction_blocker), VMM_NOT_SUPPORTED if the instance must stay: pinned (PAG-18), on the
 * screen (PRS-06), or locked so that CPU stores could be lost.
 */
vmm_status vmm_residency_evict_for(struct vmm_memory *memory, struct vmm_instance *instance,
				   uint32_t reason, uint64_t preparation)
	VMM_REQUIRES(vmm_paging_lock_class);
vmm_status vmm_residency_evict(struct vmm_memory *memory, struct vmm_instance *instance,
			       uint32_t reason) VMM_REQUIRES(vmm_paging_lock_class);
/* Do pinned allocations leave too little space in every aperture of the eviction set? (PAG-20) */
bool vmm_eviction_is_blocked_by_pinned(const struct vmm_memory *memory,
				       const struct vmm_allocation *allocation)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Would eviction from its memory segment lose the instance's content? (PAG-20) */
static inline bool vmm_eviction_loses_content(const struct vmm_memory *memory,
					      const struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	return vmm_unlikely(instance->allocation->eviction_set) &&
	       instance->place == VMM_PLACEMENT_MEMORY &&
	       !(instance->retained && !instance->gpu_wrote) &&
	       vmm_eviction_is_blocked_by_pinned(memory, instance->allocation);
}
/*
 * After VMM_PENDING: returns a packet to wait for. If what was in the way has become idle, that is
 * a packet that is already complete.
 */
void vmm_eviction_blocker(struct vmm_memory *memory, const struct vmm_instance *instance,
			  uint32_t *timeline, uint64_t *sequence)
	VMM_REQUIRES(vmm_paging_lock_class);

/* ---- offer_queued.c ---- */
/* Offers the allocation with that priority; 0: it is not offered any more. */
void vmm_allocation_set_offer(struct vmm_allocation *allocation, uint32_t priority)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Cancels a queued offer. */
void vmm_offer_cancel(struct vmm_allocation *allocation) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Queues an offer that takes effect when ref->departs_after are complete, which the caller has set.
 * (OFR-01)
 */
void vmm_offer_after_device(const struct vmm_ref *ref, uint32_t priority)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Puts all queued offers into effect whose DMA buffer is complete. */
void vmm_offers_apply_due(struct vmm_memory *memory) VMM_REQUIRES(vmm_paging_lock_class);

#endif
