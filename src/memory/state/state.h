/* SPDX-License-Identifier: MIT */
/*
 * Tier 1, state: allocations, instances, segments and their order of use, the paging timeline.
 * Nothing here moves content.
 */
#ifndef VMM_MEMORY_STATE_H
#define VMM_MEMORY_STATE_H

#include "memory/state/extents.h"
#include "memory/state/types.h"

static inline bool vmm_is_existing(const struct vmm_allocation *allocation)
{
	return (allocation->flags & VMM_ALLOCATION_EXISTING) != 0;
}

/* Is the allocation never renamed, even by a lock with Discard? (REN-14) */
static inline bool vmm_allocation_is_never_renamed(const struct vmm_allocation *allocation)
{
	return allocation->shared | allocation->pinned | allocation->primary |
	       vmm_is_existing(allocation);
}

/*
 * ShareBackingStoreWithKmd: the miniport has the address of the backing store. The store therefore
 * lives as long as the allocation. (ALF-30)
 */
static inline bool vmm_is_shared_with_kmd(const struct vmm_allocation *allocation)
{
	return (allocation->flags2 & VMM_ALLOCATION2_SHARE_BACKING) != 0;
}

static inline struct vmm_segment *vmm_memory_segment(struct vmm_memory *memory, uint32_t id)
{
	return &memory->segment[id - 1];
}

/* Records the number of a packet that uses the memory. */
static inline void vmm_mark_used(_Atomic uint64_t *slot, uint64_t sequence)
{
	atomic_store_explicit(slot, sequence, memory_order_relaxed);
}

/* A part of a segment with a common element in vmm_segment.last_reader. */
#define VMM_LAST_READER_BYTES ((uint64_t)64 << 10)

/* ---- fair.c: the share of each process in a segment (SEG-27) ---- */
void vmm_fair_enter(struct vmm_segment *segment, const struct vmm_allocation *allocation)
	VMM_REQUIRES(vmm_paging_lock_class);
void vmm_fair_leave(struct vmm_segment *segment, const struct vmm_allocation *allocation)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Returns the id of the process with the most bytes in the segment; 0 if fewer than two processes
 * have any.
 */
uint32_t vmm_fair_largest(const struct vmm_segment *segment);

/* ---- pool.c ---- */
/* Returns a zeroed allocation, or NULL without memory. */
struct vmm_allocation *vmm_pool_take(struct vmm_memory *memory);
/* Frees it; NULL is allowed. Any thread, any lock. */
void vmm_pool_give(struct vmm_memory *memory, struct vmm_allocation *allocation);
void vmm_pool_finish(struct vmm_pool *pool);

/* ---- tallies (QST-03) ---- */
static inline void vmm_tally_add(struct vmm_tally *tally, const struct vmm_allocation *allocation)
{
	tally->count++;
	tally->bytes += allocation->size_bytes;
}

static inline void vmm_tally_created(struct vmm_memory *memory,
				     const struct vmm_allocation *allocation)
{
	atomic_fetch_add_explicit(&memory->created_count, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&memory->created_bytes, allocation->size_bytes,
				  memory_order_relaxed);
}

/* ---- segment.c: allocates and frees all ranges of segments; counts mapped_bytes ---- */
vmm_status vmm_segments_create(struct vmm_memory *memory);
void vmm_segments_destroy(struct vmm_memory *memory);
/*
 * Like vmm_range_allocate. Also returns VMM_NO_VIDEO_MEMORY if the limit of all apertures would be
 * exceeded. (SEG-05)
 */
vmm_status vmm_segment_allocate(struct vmm_memory *memory, struct vmm_segment *segment,
				const struct vmm_range_request *request, vmm_range_node *node,
				uint64_t *offset) VMM_REQUIRES(vmm_paging_lock_class);
void vmm_segment_free(struct vmm_memory *memory, struct vmm_segment *segment, vmm_range_node node);
/*
 * The same in several extents of a memory segment, in multiples of unit_bytes. The second function
 * allocates extents for OWNER that were freed before, where they were; all or nothing.
 */
vmm_status vmm_segment_allocate_extents(struct vmm_segment *segment,
					const struct vmm_range_request *request,
					uint64_t unit_bytes, struct vmm_range_extents **extents);
vmm_status vmm_segment_allocate_again(struct vmm_segment *segment, struct vmm_instance *owner,
				      struct vmm_range_extents *extents);
/* Frees the range or the extents that the instance has. */
void vmm_segment_free_placement(struct vmm_memory *memory, struct vmm_segment *segment,
				struct vmm_instance *instance) VMM_REQUIRES(vmm_paging_lock_class);
/* Would size_bytes more exceed what all aperture segments may map together? (SEG-05) */
static inline bool vmm_segment_is_over_limit(const struct vmm_memory *memory,
					     const struct vmm_segment *segment, uint64_t size_bytes)
{
	return segment->aperture && size_bytes > memory->shared_system_bytes - memory->mapped_bytes;
}

/* Returns the set of the aperture segments. */
uint32_t vmm_segment_apertures(const struct vmm_memory *memory);

/* ---- lru.c ---- */
/* Records a use of the instance, which is in a segment. */
void vmm_residency_touch(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Uses of many instances, in order: vmm_lru_use for each, between the two others. The caller holds
 * the paging lock for all of it and records no other use meanwhile.
 */
struct vmm_lru_uses {
	struct vmm_memory *memory;
	uint64_t counter;
	bool journal; /* the journal has not overflowed */
};
static inline struct vmm_lru_uses vmm_lru_uses_begin(struct vmm_memory *memory)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	return (struct vmm_lru_uses){memory, memory->use_counter,
				     memory->touched_count <= memory->touched_max};
}
/* Returns false if the journal has overflowed. */
bool vmm_lru_use_in_journal(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
static inline void vmm_lru_use(struct vmm_lru_uses *uses, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&uses->memory->adapter->paging_lock);
	instance->last_use = ++uses->counter;
	if (uses->journal)
		uses->journal = vmm_lru_use_in_journal(uses->memory, instance);
}
static inline void vmm_lru_uses_end(const struct vmm_lru_uses *uses)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&uses->memory->adapter->paging_lock);
	uses->memory->use_counter = uses->counter;
}
/* Sorts the lists of all segments by last use. To be called before a list is read in that order. */
void vmm_lru_order_slow(struct vmm_memory *memory) VMM_REQUIRES(vmm_paging_lock_class);
static inline void vmm_lru_order(struct vmm_memory *memory) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	if (memory->touched_count)
		vmm_lru_order_slow(memory);
}
/* Appends an instance that has been placed in a segment to the list of its class. */
void vmm_lru_enter(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * To be called before an instance is taken off its list: the journal must not contain it any more.
 */
void vmm_lru_leave(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Removes the instance from the kept candidates of its class. To be called before it leaves its
 * list, moves in it or changes its class.
 */
void vmm_lru_forget_slow(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
static inline void vmm_lru_forget(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_unlikely(instance->is_kept))
		vmm_lru_forget_slow(memory, instance);
}
/* Returns whether A is behind B in the order of a list: that of arrival or that of use. */
static inline bool vmm_lru_is_after(const struct vmm_memory *memory, const struct vmm_instance *a,
				    const struct vmm_instance *b)
{
	return memory->order->walk == VMM_POLICY_SECOND_CHANCE ? a->uses.arrival > b->uses.arrival
							       : a->last_use > b->last_use;
}
/* Returns the number of the submission whose uses are being recorded. */
static inline uint64_t vmm_lru_submission(const struct vmm_memory *memory)
{
	return memory->use_counter >> VMM_USE_SUBMISSION_SHIFT;
}
vmm_status vmm_lru_create(struct vmm_memory *memory, const struct vmm_policy_order *order);
void vmm_lru_destroy(struct vmm_memory *memory);

/* ---- valued.c: what an instance has with a policy of the embedder (Q-350) ---- */
struct vmm_valued {
	struct vmm_policy_node node;
	struct vmm_policy_queue *queue; /* that it is in; NULL: none */
	struct vmm_instance *instance;
	uint64_t asked;   /* number of the pick that last asked for its value again */
	bool arrived;     /* in a segment, and `used` was not called since */
	uint64_t state[]; /* the policy's */
};
/*
 * Allocates what a new instance needs. VMM_NO_MEMORY: nothing has changed. Does nothing if the
 * policy is one of vidmm's.
 */
vmm_status vmm_valued_create(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
VMM_MUST_CHECK;
void vmm_valued_free(struct vmm_instance *instance);
/*
 * The functions below expect an instance that has such a part. They are called when it enters the
 * list of its class; before it leaves; for a use, with VIDMM_POLICY_MISSED or 0; and when it was
 * used or its class has changed, which gives it its new position.
 */
void vmm_valued_enter(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
void vmm_valued_leave(struct vmm_instance *instance) VMM_REQUIRES(vmm_paging_lock_class);
void vmm_valued_use(struct vmm_memory *memory, struct vmm_instance *instance, uint64_t submission,
		    uint32_t flags) VMM_REQUIRES(vmm_paging_lock_class);
void vmm_valued_update(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Returns the policy's value of it. */
uint64_t vmm_valued_ask(struct vmm_memory *memory, struct vmm_instance *instance, bool leaving)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Asks for the value of the instance, which has the lowest one, again. Returns false if it has not
 * grown; otherwise the instance gets its new position.
 */
bool vmm_valued_spare(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);

/* ---- instance.c ---- */
/* To be called when the allocation's segment sets or flags have changed. */
static inline void vmm_allocation_set_serving(struct vmm_allocation *allocation)
{
	allocation->serving = (allocation->read_set & allocation->write_set) << 1;
	if (vmm_unlikely(allocation->flags & VMM_ALLOCATION_SYNCHRONOUS_PAGING))
		vmm_allocation_mark(allocation, VMM_MARK_SYNCHRONOUS, true);
}
/* Is there an aperture segment in both its read and its write set? */
bool vmm_allocation_reaches_aperture(const struct vmm_allocation *allocation)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Returns the memory segments of the allocation's sets: a swizzling range can show it only there.
 */
uint32_t vmm_allocation_memory_set(const struct vmm_allocation *allocation)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Returns the segments it may be resident in: those for both reads and writes, or, if there are
 * none, for writes.
 */
uint32_t vmm_allocation_resident_set(const struct vmm_allocation *allocation)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Does that set contain an aperture segment? */
bool vmm_allocation_resident_set_has_aperture(const struct vmm_allocation *allocation)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Is the instance resident in its backing store? Without AccessedPhysically the pages in system
 * memory count as being in the aperture segment, and no range of it is taken. (PAG-24)
 */
bool vmm_instance_is_resident_in_system(const struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * ref.c: the first function stores the numbers of the packets that the ref's device has queued, in
 * departs_after. The second one returns whether those are complete. (RES-07, OFR-01)
 */
void vmm_ref_note_queued(struct vmm_ref *ref) VMM_REQUIRES(vmm_paging_lock_class);
bool vmm_ref_queued_is_done(const struct vmm_ref *ref) VMM_REQUIRES(vmm_paging_lock_class);

/*
 * Obstacles to a lock: states of an instance in which some rule may refuse a lock of it, whatever
 * the flags of the lock are. The fast path is enabled only if there is none. The slow paths of both
 * memory models ask the rules for those that there are (vmm_lock_check_obstacles).
 */
enum {
	VMM_OBSTACLE_CONTENT_LOST = 1, /* by a reset (TDR-11) */
	VMM_OBSTACLE_OFFERED = 2,      /* or an offer is queued (LOCK-25) */
	VMM_OBSTACLE_UNCOMMITTED = 4,  /* a reclaim found no system memory (OFR-14) */
	VMM_OBSTACLE_NOT_CURRENT = 8,  /* a newer instance exists (LOCK-26, REN-19) */
	VMM_OBSTACLE_CLOSING = 16,     /* no handle names it anymore */
};
static inline uint32_t vmm_lock_obstacles(const struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_allocation *allocation = instance->allocation;

	vmm_assert_held(&allocation->adapter->paging_lock);
	return (allocation->reset_lost ? VMM_OBSTACLE_CONTENT_LOST : 0u) |
	       (allocation->offer | allocation->offer_queued ? VMM_OBSTACLE_OFFERED : 0u) |
	       (allocation->uncommitted ? VMM_OBSTACLE_UNCOMMITTED : 0u) |
	       (instance->state != VMM_INSTANCE_CURRENT ? VMM_OBSTACLE_NOT_CURRENT : 0u) |
	       (allocation->closing ? VMM_OBSTACLE_CLOSING : 0u);
}
/*
 * Is the instance locked by the CPU, which could access it nowhere else, while the GPU may use it?
 * Then it stays in its segment, and returns there after a loss of power. (LOCK-48, LKR-09)
 */
bool vmm_lock_fixes_placement(const struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Does no prepared packet use the memory of the instance? */
bool vmm_instance_unused(const struct vmm_instance *instance);
/* Adds a new, zeroed instance to the allocation. */
void vmm_instance_init(struct vmm_instance *instance, struct vmm_allocation *allocation)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Returns the eviction class: VMM_CLASS_PINNED or enum vmm_policy_class. */
uint32_t vmm_allocation_class(const struct vmm_allocation *allocation)
	VMM_REQUIRES(vmm_paging_lock_class);

/* ---- unlock_wait.c: work that waits until other processes unlock (Q-340) ---- */
/*
 * Until vmm_unlock_wait_for_none, searches for space are for work of that process, which may wait
 * for unlocks; 0: it may not.
 */
void vmm_unlock_wait_for(struct vmm_memory *memory, uint32_t process)
	VMM_REQUIRES(vmm_paging_lock_class);
void vmm_unlock_wait_for_none(struct vmm_memory *memory) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * May the work for which space is searched wait until the instance, which is locked, is unlocked?
 */
bool vmm_unlock_is_awaitable(const struct vmm_memory *memory, const struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * A search found no space. `locked`: it found an instance whose unlock may be awaited, and that
 * could be evicted then.
 */
void vmm_unlock_note_search(struct vmm_memory *memory, bool locked)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * An instance was unlocked, left its segment for good, or left a residency list: work that waits
 * tries again.
 */
void vmm_unlock_released(struct vmm_memory *memory) VMM_REQUIRES(vmm_paging_lock_class);

/* ---- paging_timeline.c ---- */
/*
 * Returns the sequence number of the packet that holds, or will hold after the next flush, the
 * newest command. No thread may wait for a higher one.
 */
uint64_t vmm_paging_sequence(const struct vmm_memory *memory) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Records the newest paging packet as the last one that touches the instance. With moves_content a
 * CPU lock waits for that packet.
 */
void vmm_paging_mark_instance(struct vmm_memory *memory, struct vmm_instance *instance,
			      bool moves_content) VMM_REQUIRES(vmm_paging_lock_class);
/* Returns the sequence number of the last paging packet that touches the instance. */
uint64_t vmm_paging_last_of(const struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * The instance is about to move or leave. If it belongs to a context, makes the nodes switch away
 * from that context first. (SUB-20)
 */
void vmm_paging_switch_away(struct vmm_memory *memory, const struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);

#endif
