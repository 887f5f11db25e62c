/* SPDX-License-Identifier: MIT */
/*
 * What the files of this module share: the module's state and the contracts between its files. The
 * adapter's paging lock guards everything here. The caller holds it unless a function says that no
 * lock is held.
 *
 * Paging operations are in paging.h, creation and destruction in creation.h, WDDM 2.x residency in
 * residency_list.h.
 *
 * Words used throughout:
 * - Placement: where an instance's content is (enum vmm_placement), and its range of a segment if
 *   it is in one.
 * - Preparation: the number of one try to make a packet's memory resident. What that packet needs
 *   is not evicted for it.
 * - VMM_PENDING: the GPU uses what would have to be evicted. Nothing changed; the caller waits for
 *   progress and retries.
 * - VMM_NO_VIDEO_MEMORY: there is no free space, and waiting for the GPU does not help.
 */
#ifndef VMM_MEMORY_PRIVATE_H
#define VMM_MEMORY_PRIVATE_H

#include "memory/creation.h"
#include "memory/memory.h"
#include "memory/paging.h"
#include "memory/residency_list.h"
#include "memory/statistics.h"
#include "policy/policy.h"
#include "range/range.h"

#define VMM_ARENA_BYTES ((uint64_t)64 << 20)
#define VMM_ARENAS_MAX  4096u

/* DXGK_ALLOCATIONINFOFLAGS */
enum {
	VMM_ALLOCATION_PERMANENT = 0x2,
	VMM_ALLOCATION_CACHED = 0x4,
	VMM_ALLOCATION_PROTECTED = 0x8,
	VMM_ALLOCATION_EXISTING = 0x30, /* ExistingSysMem, ExistingKernelSysMem */
	/* WDDM 1.x; both bits are cleared in the stored flags of an allocation of 2.x */
	VMM_ALLOCATION_SWIZZLED = 0x80,
	VMM_ALLOCATION_ALTERNATE = 0x400, /* UseAlternateVA */
	/* before WDDM 2.0 */
	VMM_ALLOCATION_LINK_MIRRORED = 0x1000,
	VMM_ALLOCATION_LINK_INSTANCED = 0x2000,
	VMM_ALLOCATION_LINKED = VMM_ALLOCATION_LINK_MIRRORED | VMM_ALLOCATION_LINK_INSTANCED,
	/* from WDDM 2.0 on */
	VMM_ALLOCATION_ACCESSED_PHYSICALLY = 0x8000,
	VMM_ALLOCATION_NOTIFY_RESIDENCY = 0x10000,
	VMM_ALLOCATION_HARDWARE_PROTECTED = 0x20000,
	VMM_ALLOCATION_MAP_CPU_VISIBLE = 0x2000, /* from WDDM 2.9 on: MapApertureCpuVisible */
	VMM_ALLOCATION_CPU_VISIBLE_ON_DEMAND = 0x40000,
	VMM_ALLOCATION_VISIBLE = 0x40001, /* CpuVisible, CpuVisibleOnDemand */
	/* the system copy is retained while the content is in a memory segment (PAG-13) */
	VMM_ALLOCATION_RETAINED = VMM_ALLOCATION_PERMANENT | VMM_ALLOCATION_EXISTING,
};

/* DXGK_ALLOCATIONINFOFLAGS2 */
enum {
	VMM_ALLOCATION2_SHARE_BACKING = 0x1,
	/* from WDDM 3.2 on */
	VMM_ALLOCATION2_NOTIFY_EVICTION = 0x10,
	VMM_ALLOCATION2_NOTIFY_IOMMU_UNMAP = 0x20,
};

/*
 * The class of pinned allocations. It comes after the policy's eviction classes, so no victim is
 * picked from it. (PAG-18)
 */
#define VMM_CLASS_PINNED ((uint32_t)VMM_POLICY_CLASS_COUNT)
#define VMM_CLASS_COUNT  ((uint32_t)VMM_POLICY_CLASS_COUNT + 1)

/* The bytes that one process has in a segment (fair.c). */
#define VMM_SHARES 48u
struct vmm_fair_share {
	uint32_t owner; /* process id */
	uint64_t bytes;
};

struct vmm_segment {
	const struct vmm_port_segment *port;
	struct vmm_range_heap *heap;
	/* BAR of a memory segment that is wholly CPU-visible, else NULL */
	struct vmm_os_memory *cpu_memory;
	uint64_t cpu_offset; /* of the segment in cpu_memory and in bar */
	/* the BAR, also if only swizzling ranges make it visible (SWZ-24) */
	struct vmm_os_memory *bar;
	/*
	 * With `bar`, one per VMM_LAST_READER_BYTES: the last paging packet that may read what left
	 * there (client_object.c).
	 */
	uint64_t *last_reader;
	/* 2.x: CPU host aperture of a segment without a BAR, or NULL */
	struct vmm_host_aperture *host;
	bool aperture;
	/*
	 * Size of the heap. The commit limit of an aperture segment may be below the segment's size
	 * (SEG-04).
	 */
	uint64_t capacity_bytes;
	uint64_t invalid_bytes; /* SEG-26 */
	uint64_t resident_bytes, peak_bytes;
	uint32_t residents;
	/* vmm_instance.lru; head: least recently used (lru.c) */
	struct vmm_list lru[VMM_CLASS_COUNT];
	struct vmm_fair_share share[VMM_SHARES];
	uint32_t share_count;
};

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

/* An allocated range of a segment. */
struct vmm_free_space {
	vmm_range_node node;
	uint64_t offset;
};

/*
 * Backing pages to be freed once the paging timeline has completed `sequence`: a packet up to that
 * one reads them.
 */
struct vmm_deferred {
	struct vmm_list link;
	struct vmm_backing backing;
	uint64_t sequence;
};

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

/* A CPU address of an instance that is not the address of its view: UseAlternateVA (SWZ-24). */
struct vmm_alternate {
	struct vmm_os_view view;
	uint32_t range, private_data; /* of the swizzling range that it was created for */
	/* evicted while locked: the content returns by SpecialLockTransfer (SWZ-25) */
	bool special;
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

/* Memory that a miniport has created for a context (context_allocation.c). */
struct vmm_context_allocation {
	struct vmm_list link; /* in device->context_allocations */
	struct vmm_list all;  /* in memory->context_allocations */
	struct vmm_device *device;
	const void *context; /* NULL: for all of the device's */
	bool initialized;
	struct vmm_allocation allocation;
};

#define VMM_TOUCHED_MAX 8192u

/* The allocator of struct vmm_allocation (pool.c). */
struct vmm_pool {
	struct vmm_pool_chunk *chunk;          /* the newest */
	uint32_t fresh;                        /* elements of it that have been used once */
	struct vmm_pool_free *free;            /* free list; guarded by the paging lock */
	_Atomic(struct vmm_pool_free *) given; /* freed since then; lock-free stack */
};

/*
 * The one call from the store (arena.c) to a later tier, made when a new backing store would exceed
 * the limit of system memory. Frees the backing store of one allocation that its client can spare,
 * and returns true; false if there is none. It neither creates a backing store nor places an
 * instance. The caller holds the paging lock. vmm_memory_create sets it to vmm_offer_decommit.
 * (OFR-14)
 */
typedef bool vmm_decommit_fn(struct vmm_memory *memory);

struct vmm_memory {
	struct vmm_adapter *adapter;
	const struct vmm_memory_engine *engine;
	const struct vmm_port_caps *caps;
	const struct vmm_memory_model *model;
	struct vmm_segment segment[VMM_PORT_SEGMENTS_MAX];
	uint32_t segment_count;
	uint32_t pitched_set;    /* segments with PitchAlignment; bit N is segment N + 1 */
	uint32_t large_page_set; /* segments with Use64KBPages */

	struct vmm_arena *arenas;
	uint32_t arena_count;
	uint32_t arenas_empty; /* not counting the first */
	uint64_t system_bytes, system_limit_bytes;
	uint64_t peak_system_bytes VMM_GUARDED_BY(vmm_paging_lock_class);
	vmm_decommit_fn *decommit;
	struct vmm_list deferred; /* vmm_deferred, oldest first */
	struct vmm_deferred *spare_deferred;
	/* Unlocked while the paging lock was held; written back before it is released. */
	struct vmm_list uploads;  /* vmm_retained_copy.waiting */
	struct vmm_list partials; /* vmm_partial.waiting */

	struct vmm_backing dummy_page; /* what unmapped aperture pages point to (PAG-10) */
	struct vmm_list allocations;   /* vmm_allocation.all */
	struct vmm_pool pool;
	/* the miniport builds paging commands that no engine will execute (PAG-27) */
	bool resetting VMM_GUARDED_BY(vmm_paging_lock_class);
	struct vmm_paging_lane lane[VMM_LINKS_MAX]; /* by physical adapter; 0: the lead */
	uint32_t lane_count;
	/* Commands were written since the last flush. */
	bool pending VMM_GUARDED_BY(vmm_paging_lock_class);
	/* One of them concerns a SynchronousPaging allocation. */
	bool synchronous VMM_GUARDED_BY(vmm_paging_lock_class);
	/*
	 * The pending commands run after the paging timeline has completed this number, which only
	 * rises.
	 */
	uint64_t after VMM_GUARDED_BY(vmm_paging_lock_class);

	/* SEG-05 */
	uint64_t dedicated_video_bytes, dedicated_system_bytes, shared_system_bytes;
	uint64_t mapped_bytes; /* through all aperture segments; at most shared_system_bytes */

	struct vmm_swizzling_range *ranges; /* range_count of them: grows on demand */
	uint32_t range_count;

	uint64_t use_counter;
	/*
	 * Journal of the instances used since the lists of the segments were last sorted (lru.c).
	 */
	struct vmm_instance **touched;
	uint32_t touched_count; /* VMM_TOUCHED_MAX + 1: the journal overflowed */
	uint64_t resident_total VMM_GUARDED_BY(vmm_paging_lock_class);
	uint64_t peak_total VMM_GUARDED_BY(vmm_paging_lock_class);
	struct vmm_peak_readers peaks;
	struct vmm_list closed; /* vmm_ref.zombie_link: handle closed, the GPU may still use it */
	/*
	 * Instances with this `split_rest` are evicted last: the rest of a split DMA buffer needs
	 * them.
	 * 0: none.
	 */
	uint64_t split_rest VMM_GUARDED_BY(vmm_paging_lock_class);
	/* vmm_share.orphan_link: unreferenced; guarded by world->shared_lock */
	struct vmm_list orphans;
	_Atomic uint32_t orphan_count;       /* length of `orphans`, readable without that lock */
	struct vmm_list context_allocations; /* of all devices (context_allocation.c) */
	struct vmm_list queued_offers;       /* vmm_allocation.queued_offer.link */
	/* 2.x */
	struct vmm_list paging_queues; /* vmm_paging_queue.link, the highest priority first */
	struct vmm_list departures;    /* vmm_ref.departure_link */
	struct vmm_list budgets;       /* vmm_budget.link */
	struct vmm_list vas;           /* vmm_va.link */
	struct vmm_trims *trims;       /* NULL until a device registers */
	uint64_t residency_rounds VMM_GUARDED_BY(vmm_paging_lock_class);

	/* vmm_instance.lru: returns to its placement when power is back */
	struct vmm_list power_returns;
	/* New paging buffers are not mapped. */
	bool powering_down VMM_GUARDED_BY(vmm_paging_lock_class);
	/* A mapping in a CPU host aperture is to be removed. */
	bool host_unwanted VMM_GUARDED_BY(vmm_paging_lock_class);
	struct vmm_memory_statistics statistics;
	uint64_t instances VMM_GUARDED_BY(vmm_paging_lock_class);
};

static inline bool vmm_is_existing(const struct vmm_allocation *allocation)
{
	return (allocation->flags & VMM_ALLOCATION_EXISTING) != 0;
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

/* The `preparation` of a caller that prepares no packet. */
#define VMM_NO_PREPARATION UINT64_MAX

/* ---- victim.c ---- */
struct vmm_search {
	struct vmm_memory *memory;
	struct vmm_segment *segment;
	struct vmm_range_request request;
	uint64_t preparation;
	/* Set by the search when nothing else is left to evict (locked_allowed, loss_allowed). */
	bool locked_allowed; /* instances that the CPU has locked may be evicted (PAG-16) */
	bool blocked;        /* found: the GPU uses an instance that could otherwise be evicted */
	bool loss_allowed;   /* instances that lose their content by it may be evicted (PAG-20) */
	bool fragile;        /* found: an instance that would lose its content if evicted */
	bool spared;         /* found: the first pass left out what queued work or a list needs */
	bool compacted;      /* the free space of the segment has been compacted (SPL-13) */
};
/*
 * Allocates a range for the search's request, evicting victims as needed. Returns
 * VMM_NO_VIDEO_MEMORY if that fails; search->blocked then says that there will be space once the
 * GPU is done. (PAG-02)
 */
vmm_status vmm_free_space_find(struct vmm_search *search, struct vmm_free_space *space)
	VMM_REQUIRES(vmm_paging_lock_class);

/* ---- compact.c ---- */
/*
 * Moves idle instances inside a memory segment so that the request fits in one piece. Returns
 * VMM_NO_VIDEO_MEMORY if that is not possible; nothing was moved then. (PAG-20)
 */
vmm_status vmm_compact(struct vmm_memory *memory, struct vmm_segment *segment,
		       const struct vmm_range_request *request, uint64_t preparation)
	VMM_REQUIRES(vmm_paging_lock_class);

/* ---- pool.c ---- */
/* Returns a zeroed allocation, or NULL without memory. */
struct vmm_allocation *vmm_pool_take(struct vmm_memory *memory);
/* Frees it; NULL is allowed. Any thread, any lock. */
void vmm_pool_give(struct vmm_memory *memory, struct vmm_allocation *allocation);
void vmm_pool_finish(struct vmm_pool *pool);

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

/* ---- va_entries.c: GPU virtual addresses; these do nothing on an adapter without them ---- */
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
/* Would size_bytes more exceed what all aperture segments may map together? (SEG-05) */
static inline bool vmm_segment_is_over_limit(const struct vmm_memory *memory,
					     const struct vmm_segment *segment, uint64_t size_bytes)
{
	return segment->aperture && size_bytes > memory->shared_system_bytes - memory->mapped_bytes;
}

/* Returns the set of the aperture segments. */
uint32_t vmm_segment_apertures(const struct vmm_memory *memory);

/* ---- placement.c: segments, banks and directions that the miniport prefers ---- */
/*
 * Writes the segment ids of the set in the order to be tried; returns their number. (SEG-16,
 * SEG-18)
 */
uint32_t vmm_placement_candidates(const struct vmm_memory *memory,
				  const struct vmm_allocation *allocation, uint32_t set,
				  uint32_t order[VMM_PORT_SEGMENTS_MAX]);
/* Returns the enum vmm_range_flags for that segment: from which end to search. (SEG-17, ALF-17) */
uint32_t vmm_placement_flags(const struct vmm_allocation *allocation, uint32_t segment_id);
/*
 * Returns the offset at which the part of the segment begins that pinned allocations may use.
 * (PAG-19)
 */
uint64_t vmm_placement_pinned_zone(const struct vmm_segment *segment);
/* Returns the bank hints of a new allocation that have a meaning; 0: none. (SEG-14) */
uint32_t vmm_placement_hinted_banks(const struct vmm_memory *memory,
				    const DXGK_ALLOCATIONINFO *info);
/*
 * Allocates a range in the first hinted bank with free space. The request's owner has hints.
 * Returns VMM_NO_VIDEO_MEMORY if no hinted bank has space; nothing is evicted. (SEG-15)
 */
vmm_status vmm_placement_in_hinted_bank(struct vmm_memory *memory, struct vmm_segment *segment,
					const struct vmm_range_request *anywhere,
					struct vmm_free_space *space)
	VMM_REQUIRES(vmm_paging_lock_class);

/* ---- protected.c: protected ranges (VPR) of segments (ALF-26) ---- */
/*
 * Returns the set of segments with a protected range of at least size_bytes; with 0: of all that
 * have one.
 */
uint32_t vmm_protected_set(const struct vmm_memory *memory, uint64_t size_bytes);
/* For a new allocation with CreateInVpr: removes the segments that cannot hold it from its sets. */
void vmm_protected_describe(const struct vmm_memory *memory, struct vmm_allocation *allocation)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Returns the usable bytes of the protected range. */
uint64_t vmm_protected_bytes(const struct vmm_segment *segment);
/* Is the protected range reserved for protected allocations? */
bool vmm_protected_is_reserved(const struct vmm_segment *segment);
/*
 * Returns a request with the instance's size, alignment and direction in that segment, without
 * bounds.
 */
struct vmm_range_request vmm_placement_request(const struct vmm_segment *segment,
					       struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
struct vmm_placement_part {
	uint64_t low, high; /* high 0: to the end of the segment */
};
/*
 * Writes the parts of the segment that may hold the request's owner, the preferred one first;
 * returns their number.
 */
uint32_t vmm_placement_parts(struct vmm_memory *memory, struct vmm_segment *segment,
			     const struct vmm_range_request *request,
			     struct vmm_placement_part part[2]) VMM_REQUIRES(vmm_paging_lock_class);
/* Returns the widest of those parts inside the zone for pinned allocations. (PAG-19) */
struct vmm_placement_part vmm_placement_pinned_part(const struct vmm_segment *segment,
						    const struct vmm_allocation *allocation);

/* ---- footprint.c: the bytes that an allocation takes in a segment (SEG-10, SEG-11) ---- */
uint64_t vmm_footprint_bytes(const struct vmm_segment *segment,
			     const struct vmm_allocation *allocation);
/* Rounds size_bytes up to the unit of the segment's protected range. */
uint64_t vmm_footprint_protected_units(const struct vmm_segment *segment, uint64_t size_bytes);
/* Returns the most that it takes in any segment of its sets. */
uint64_t vmm_footprint_largest(const struct vmm_memory *memory,
			       const struct vmm_allocation *allocation);
/*
 * Returns the segments that an allocation with that PitchAlignedSize cannot be placed in. (SEG-10)
 */
uint32_t vmm_footprint_excluded_set(const struct vmm_memory *memory, uint64_t pitch_bytes);
/* Checks Alignment and PitchAlignedSize against the segments of the sets. (SEG-10, SEG-11) */
struct vmm_flags_verdict vmm_footprint_check(const struct vmm_memory *memory,
					     const DXGK_ALLOCATIONINFO *info);
/*
 * Stores the sizes of a new allocation and removes the segments that it cannot be placed in from
 * its sets.
 */
void vmm_footprint_describe(const struct vmm_memory *memory, struct vmm_allocation *allocation,
			    uint64_t pitch_aligned_bytes);

/* ---- lru.c ---- */
/* Records a use of the instance, which is in a segment. */
void vmm_residency_touch(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
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
static inline void vmm_lru_forget(struct vmm_memory *memory) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	if (memory->touched_count <= VMM_TOUCHED_MAX)
		vmm_lru_order(memory);
}

/* ---- occupancy.c: instances in segments ---- */
/* To be called when the allocation's segment sets or flags have changed. */
static inline void vmm_allocation_set_serving(struct vmm_allocation *allocation)
{
	allocation->serving = (allocation->read_set & allocation->write_set) << 1;
	if (vmm_unlikely(allocation->flags & VMM_ALLOCATION_SYNCHRONOUS_PAGING))
		vmm_allocation_mark(allocation, VMM_MARK_SYNCHRONOUS, true);
}
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

#include "memory/cpu_access.h"

/* ---- dma.c ---- */
/* Returns the request for the aperture range of a DMA buffer. */
struct vmm_range_request vmm_dma_request(struct vmm_backing *backing);
/* Like vmm_memory_dma_map_locked, but evicts nothing. */
vmm_status vmm_dma_map_in_free_space(struct vmm_memory *memory, struct vmm_backing *backing,
				     uint32_t segment_set, struct vmm_dma_mapping *place)
	VMM_REQUIRES(vmm_paging_lock_class);

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

/* ---- instance.c ---- */
/* Is the allocation never renamed, even by a lock with Discard? (REN-14) */
static inline bool vmm_allocation_is_never_renamed(const struct vmm_allocation *allocation)
{
	return allocation->shared | allocation->pinned | allocation->primary |
	       vmm_is_existing(allocation);
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

/* ---- lock.c ---- */
/*
 * pfnLockCb on an adapter of WDDM 1.x, for locks that vmm_lock_fast did not serve: waits for the
 * GPU. Takes the locks itself. (LOCK-05)
 */
NTSTATUS vmm_lock_synchronized(struct vmm_device *device, struct vmm_lock_request *request);

/* ---- rename.c ---- */
/*
 * Picks or creates the instance for a lock with Discard. *wait_for: a busy instance to wait for
 * instead. (REN)
 */
NTSTATUS vmm_rename_select(struct vmm_device *device, struct vmm_ref *ref, uint32_t flags,
			   struct vmm_ref **chosen, struct vmm_instance **wait_for)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Fast path: returns the instance that vmm_rename_select would pick if it is idle and mapped, else
 * NULL. *current gets the current instance, or NULL.
 */
struct vmm_instance *vmm_rename_ready(struct vmm_allocation *allocation, uint32_t flags,
				      struct vmm_instance **current)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Makes the chosen instance the current one. */
void vmm_rename_commit(struct vmm_device *device, struct vmm_ref *ref, uint32_t old_handle)
	VMM_REQUIRES(vmm_paging_lock_class);
/* The same for a caller that knows the current instance; NULL: there is none. */
void vmm_rename_commit_from(struct vmm_device *device, struct vmm_ref *ref,
			    struct vmm_instance *current, uint32_t old_handle)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Was the instance created by vmm_rename_select for this lock? */
bool vmm_rename_is_growth(const struct vmm_ref *ref);
/* Destroys such an instance after the lock has failed. */
void vmm_rename_undo_growth(struct vmm_device *device, struct vmm_ref *ref)
	VMM_REQUIRES(vmm_paging_lock_class);

/* ---- offer.c, offer_queued.c, reclaim.c ---- */
/*
 * The entries of one call. Each is an allocation or a resource, which stands for all its
 * allocations.
 */
struct vmm_offer_walk {
	struct vmm_device *device;
	const struct vmm_handle_set *set;
	const char *rule;     /* that a bad entry breaks */
	bool no_presentation; /* a primary must be named by its allocation handle (OFR-11) */
};
typedef NTSTATUS vmm_offer_fn(struct vmm_device *device, struct vmm_ref *ref, void *context);
/* Checks that exactly one of the two arrays is given. (OFR-02) */
NTSTATUS vmm_offer_check_set(struct vmm_device *device, const struct vmm_handle_set *set);
/*
 * Calls fn for each allocation of entry `index`, up to the first failure. The caller holds the
 * process lock, too.
 */
NTSTATUS vmm_offer_each(const struct vmm_offer_walk *walk, uint32_t index, vmm_offer_fn *fn,
			void *context) VMM_REQUIRES(vmm_process_lock_class);
/*
 * Frees the system memory of one allocation that is offered with AllowDecommit and in no segment,
 * the one of the lowest class. Returns false if there is none. (OFR-14)
 */
bool vmm_offer_decommit(struct vmm_memory *memory) VMM_REQUIRES(vmm_paging_lock_class);
/* Offers the allocation with that priority; 0: it is not offered any more. */
void vmm_allocation_set_offer(struct vmm_allocation *allocation, uint32_t priority)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Cancels a queued offer. */
void vmm_offer_cancel(struct vmm_allocation *allocation) VMM_REQUIRES(vmm_paging_lock_class);
/* Puts all queued offers into effect whose DMA buffer is complete. */
void vmm_offers_apply_due(struct vmm_memory *memory) VMM_REQUIRES(vmm_paging_lock_class);

static inline void vmm_mark_used(_Atomic uint64_t *slot, uint64_t sequence)
{
	atomic_store_explicit(slot, sequence, memory_order_relaxed);
}

#endif
