/* SPDX-License-Identifier: MIT */
/* What the files of this module share. Everything is guarded by the adapter's paging lock. */
#ifndef VMM_MEMORY_PRIVATE_H
#define VMM_MEMORY_PRIVATE_H

#include "memory/figures.h"
#include "memory/memory.h"
#include "policy/policy.h"
#include "range/range.h"

#define VMM_ARENA_BYTES ((uint64_t)64 << 20)
#define VMM_ARENAS_MAX  4096u

/* DXGK_ALLOCATIONINFOFLAGS that say what is in system memory. */
enum {
	VMM_ALLOCATION_PERMANENT = 0x2,
	VMM_ALLOCATION_CACHED = 0x4,
	VMM_ALLOCATION_PROTECTED = 0x8,
	VMM_ALLOCATION_EXISTING = 0x30, /* ExistingSysMem, ExistingKernelSysMem */
	VMM_ALLOCATION_SWIZZLED =
		0x80, /* 1.x, as the next; never set in what is kept of a 2.x allocation */
	VMM_ALLOCATION_ALTERNATE = 0x400,      /* UseAlternateVA */
	VMM_ALLOCATION_LINK_MIRRORED = 0x1000, /* below 2.0 alone, as the next */
	VMM_ALLOCATION_LINK_INSTANCED = 0x2000,
	VMM_ALLOCATION_LINKED = VMM_ALLOCATION_LINK_MIRRORED | VMM_ALLOCATION_LINK_INSTANCED,
	VMM_ALLOCATION_ACCESSED_PHYSICALLY = 0x8000, /* from here on: 2.x */
	VMM_ALLOCATION_NOTIFY_RESIDENCY = 0x10000,
	VMM_ALLOCATION_HARDWARE_PROTECTED = 0x20000,
	VMM_ALLOCATION_MAP_CPU_VISIBLE = 0x2000, /* from 2.9 on; MapApertureCpuVisible */
	VMM_ALLOCATION_CPU_VISIBLE_ON_DEMAND = 0x40000,
	VMM_ALLOCATION_VISIBLE = 0x40001, /* CpuVisible, CpuVisibleOnDemand */
	VMM_ALLOCATION_KEPT = VMM_ALLOCATION_PERMANENT | VMM_ALLOCATION_EXISTING,
};

/* DXGK_ALLOCATIONINFOFLAGS2 */
enum {
	VMM_ALLOCATION2_SHARE_BACKING = 0x1,
	VMM_ALLOCATION2_NOTIFY_EVICTION = 0x10, /* from here on: 3.2 */
	VMM_ALLOCATION2_NOTIFY_IOMMU_UNMAP = 0x20,
};

/* Behind the classes of policy, out of reach of whoever looks for a victim: what is pinned (PAG-18). */
#define VMM_CLASS_PINNED ((uint32_t)VMM_POLICY_CLASS_COUNT)
#define VMM_CLASS_COUNT  ((uint32_t)VMM_POLICY_CLASS_COUNT + 1)

/* What a process has in a segment (fair.c). */
#define VMM_SHARES 48u
struct vmm_fair_share {
	uint32_t owner; /* process */
	uint64_t bytes;
};

struct vmm_segment {
	const struct vmm_port_segment *port;
	struct vmm_range_heap *heap;
	struct vmm_os_memory *cpu_memory; /* BAR behind a CPU-visible memory segment, else NULL */
	uint64_t cpu_offset;              /* of it, and of `bar` */
	struct vmm_os_memory *bar;        /* the same, also where ranges alone show it (SWZ-24) */
	uint64_t *left;                   /* with `bar`: by private.h, who reads who has left */
	struct vmm_host_aperture *host;   /* 2.x: the CPU's way into a hidden one, or NULL */
	bool aperture;
	uint64_t
		capacity_bytes; /* of the heap: an aperture's commit limit may be below its size (SEG-04) */
	uint64_t invalid_bytes; /* SEG-26 */
	uint64_t resident_bytes, peak_bytes;
	uint32_t residents;
	struct vmm_list lru[VMM_CLASS_COUNT]; /* head: least recently used */
	struct vmm_fair_share share[VMM_SHARES];
	uint32_t share_count;
};

/* ---- fair.c: SEG-27 ---- */
void vmm_fair_enter(struct vmm_segment *segment, const struct vmm_allocation *allocation);
void vmm_fair_leave(struct vmm_segment *segment, const struct vmm_allocation *allocation);
/* The process that has the most; 0: there are not two. */
uint32_t vmm_fair_largest(const struct vmm_segment *segment);

/* A range of a segment, taken. */
struct vmm_room {
	vmm_range_node node;
	uint64_t offset;
};

/* Backing pages whose last reader is a paging packet that has not completed yet. */
struct vmm_deferred {
	struct vmm_list link;
	struct vmm_backing backing;
	uint64_t sequence;
};

/*
 * Of an instance whose system copy stays while it is in a memory segment: the pages in which the CPU may have made the two
 * differ. Never any while the GPU's copy is the newer one.
 */
struct vmm_kept {
	struct vmm_instance *instance;
	struct vmm_list waiting; /* in memory->uploads */
	bool all;                /* no list was given: every page (LOCK-22) */
	bool some;               /* a bit is set */
	bool open;               /* locked, and not for reading alone */
	uint64_t page_count;
	uint64_t pages[]; /* a bit each */
};

struct vmm_paging_buffer {
	struct vmm_backing backing;
	uint64_t bus_address;
	uint32_t segment, range; /* aperture mapping, 0: none */
	uint64_t address;
	void *private_data;
	uint64_t last_sequence; /* reusable once the paging timeline has completed it */
};
#define VMM_PAGING_BUFFERS_MAX 64u

/* The paging buffers of one physical adapter. */
struct vmm_paging_lane {
	uint32_t physical;
	struct vmm_paging_buffer buffer[VMM_PAGING_BUFFERS_MAX];
	uint32_t buffer_count, current_buffer;
	uint32_t start,
		write; /* offsets in the current buffer: unsubmitted commands are [start, write) */
	uint32_t private_start, private_write;
	bool pending; /* commands were collected here since the last flush */
};

/* An address for the CPU that is not that of the instance's view: UseAlternateVA (SWZ-24). */
struct vmm_alternate {
	struct vmm_os_view view;
	uint32_t range, private_data; /* of the swizzling range that it was made for */
	bool special; /* evicted under a lock: the content goes back as it came (SWZ-25) */
};

/* One of the miniport's swizzling ranges; its index is the RangeId. */
struct vmm_swizzling_range {
	struct vmm_instance *owner; /* NULL: free */
	uint32_t private_data;
	uint64_t last_use;
	/* what the miniport answered */
	uint64_t physical, size_bytes;
	bool changed; /* not what it was asked for: for alternate addresses alone (SWZ-03) */
	bool laid;    /* window.c: its window is a client's that is apart */
	struct vmm_alternate *alternate; /* NULL: no lock has wanted one */
};

#define VMM_TOUCHED_MAX 8192u

/* Room for allocations (pool.c). */
struct vmm_pool {
	struct vmm_pool_chunk *chunk;          /* the newest */
	uint32_t fresh;                        /* of it, so many have been taken */
	struct vmm_pool_free *free;            /* given back, and found so under the paging lock */
	_Atomic(struct vmm_pool_free *) given; /* given back since then */
};

struct vmm_memory {
	struct vmm_adapter *adapter;
	const struct vmm_memory_engine *engine;
	const struct vmm_port_caps *caps;
	struct vmm_segment segment[VMM_PORT_SEGMENTS_MAX];
	uint32_t segment_count;

	struct vmm_arena *arenas;
	uint32_t arena_count;
	uint32_t arenas_empty; /* besides the first */
	uint64_t system_bytes, system_limit_bytes, peak_system_bytes;
	struct vmm_list deferred; /* vmm_deferred, oldest first */
	struct vmm_deferred *spare_deferred;
	struct vmm_list
		uploads; /* vmm_kept: unlocked in this hold of the lock, to be copied to their segments */
	struct vmm_list partials; /* vmm_partial, the same */

	struct vmm_backing dummy_page; /* where unmapped aperture pages point (PAG-10) */
	struct vmm_list allocations;   /* vmm_allocation.all */
	struct vmm_pool pool;
	bool resetting; /* paging commands are written for nobody but the miniport (PAG-27) */
	struct vmm_paging_lane lane[VMM_LINKS_MAX]; /* of each physical adapter, the lead's first */
	uint32_t lane_count;
	bool pending;     /* commands were collected since the last flush */
	bool synchronous; /* one of them names a SynchronousPaging allocation */
	uint64_t
		after; /* what is collected runs when the paging timeline has completed that number; it only rises */

	/* SEG-05 */
	uint64_t dedicated_video_bytes, dedicated_system_bytes, shared_system_bytes;
	uint64_t mapped_bytes; /* through all apertures: never more than shared_system_bytes */

	struct vmm_swizzling_range *ranges; /* as many as have been needed */
	uint32_t range_count;

	uint64_t use_counter;
	/* Used since the lists of the segments were last put in order (recency.c). */
	struct vmm_instance **touched;
	uint32_t touched_count; /* VMM_TOUCHED_MAX + 1: more than there is room for */
	uint64_t resident_total, peak_total;
	struct vmm_looks looks;
	struct vmm_list closed;  /* vmm_ref.zombie_link: no handle, but the GPU may still use it */
	uint64_t rest;           /* vmm_instance.rest of those that leave last; 0: nobody */
	struct vmm_list orphans; /* vmm_share.orphan_link: nothing names them; world->shared_lock */
	_Atomic uint32_t orphan_count;       /* so that who finds none takes no lock */
	struct vmm_list context_allocations; /* of all devices (context_allocation.c) */
	struct vmm_list queued_offers;       /* vmm_allocation.queued_offer.link */
	struct vmm_list paging_queues; /* 2.x: vmm_paging_queue.link, the highest priority first */
	struct vmm_list departures;    /* 2.x: vmm_ref.departure_link */
	struct vmm_list budgets;       /* 2.x: vmm_budget.link */
	struct vmm_list vas;           /* 2.x: vmm_va.link */
	struct vmm_trims *trims;       /* 2.x: NULL until somebody registers */
	uint64_t residency_rounds;
	struct vmm_list away; /* vmm_instance.lru of what returns to its place with the power */
	bool powering_down;   /* paging buffers are not mapped any more */
	bool host_unwanted;   /* a mapping in a host aperture is to go */
	struct vmm_memory_figures figures;
	uint64_t instances;
};

static inline bool vmm_is_existing(const struct vmm_allocation *allocation)
{
	return (allocation->flags & VMM_ALLOCATION_EXISTING) != 0;
}

/* ALF-30: its miniport has the address of its backing store, which therefore stays as long as it lives. */
static inline bool vmm_is_shared_with_kmd(const struct vmm_allocation *allocation)
{
	return (allocation->flags2 & VMM_ALLOCATION2_SHARE_BACKING) != 0;
}

static inline struct vmm_segment *vmm_memory_segment(struct vmm_memory *memory, uint32_t id)
{
	return &memory->segment[id - 1];
}

/* ---- room.c ---- */
struct vmm_search {
	struct vmm_memory *memory;
	struct vmm_segment *segment;
	struct vmm_range_request request;
	uint64_t preparation;
	bool locked_allowed; /* nothing else is left: what the CPU has locked may move under it (PAG-16) */
	bool blocked;        /* something that could leave is in use by the GPU */
	bool loss_allowed; /* nor is anything else: what cannot leave with its content may lose it (PAG-20) */
	bool fragile; /* some such thing is there */
	bool spared; /* the first look passed over what is offered and still needed by queued work */
	bool compacted; /* what is free has been brought together as far as it can be (SPL-13) */
};
/* VMM_NO_VIDEO_MEMORY: there is none; search->blocked: but there will be when the GPU is done. */
vmm_status vmm_room_find(struct vmm_search *search, struct vmm_room *room);

/* ---- compact.c ---- */
/*
 * Moves idle residents of a memory segment so that the request fits there in one piece. VMM_NO_VIDEO_MEMORY: it is of no
 * avail, and nothing was moved.
 */
vmm_status vmm_compact(struct vmm_memory *memory, struct vmm_segment *segment,
		       const struct vmm_range_request *request, uint64_t preparation);

/* ---- pool.c ---- */
struct vmm_allocation *vmm_pool_take(struct vmm_memory *memory); /* zeroed; NULL: no memory */
void vmm_pool_give(struct vmm_memory *memory, struct vmm_allocation *allocation); /* or NULL */
void vmm_pool_finish(struct vmm_pool *pool);

/* ---- arena.c ---- */
vmm_status vmm_backing_create(struct vmm_memory *memory, uint64_t size_bytes, bool zero,
			      struct vmm_backing *backing);
void vmm_backing_destroy(struct vmm_memory *memory, struct vmm_backing *backing);
void vmm_backing_destroy_after(struct vmm_memory *memory, struct vmm_backing *backing,
			       uint64_t sequence);
void vmm_backing_collect(struct vmm_memory *memory); /* frees what completed */
uint64_t vmm_backing_bus_address(const struct vmm_memory *memory,
				 const struct vmm_backing *backing);
const struct vmm_os_memory *vmm_backing_memory(const struct vmm_memory *memory,
					       const struct vmm_backing *backing, uint64_t *offset);
void vmm_arenas_finish(struct vmm_memory *memory);

/* Bytes of an instance, in whole pages, and where in an aperture they are; of one adapter if it is a link's. */
struct vmm_paging_part {
	uint64_t offset, size_bytes;
	uint32_t physical, segment;
	uint64_t at;
};

/* ---- backing_share.c: ShareBackingStoreWithKmd (ALF-30) ---- */
/* The miniport hears the address; no lock held. Nothing for others. */
NTSTATUS vmm_backing_share_tell(struct vmm_memory *memory, const struct vmm_allocation *allocation);
/* The allocation ends: what its miniport was told of is the caller's, until that has been told of the end. */
struct vmm_backing vmm_backing_share_take(struct vmm_allocation *allocation);
void vmm_backing_share_free(struct vmm_memory *memory, struct vmm_backing *store);

/* ---- paging.c: operations are appended to the current paging buffer ---- */
vmm_status vmm_paging_buffers_create(struct vmm_memory *memory);
void vmm_paging_buffers_destroy(struct vmm_memory *memory);
/* Out of the aperture and, when there is power again, back into it. Nothing is pending; paging lock held. */
vmm_status vmm_paging_buffers_unmap(struct vmm_memory *memory);
vmm_status vmm_paging_buffers_remap(struct vmm_memory *memory);
/* Of the packet that has, or on its way out will have, the newest command: nothing may be waited for beyond it. */
uint64_t vmm_paging_sequence(const struct vmm_memory *memory);
vmm_status vmm_paging_transfer(struct vmm_memory *memory, struct vmm_instance *instance, bool in);
/* PRE-11: INIT_CONTEXT_RESOURCE where it is; address: the CPU's, or NULL. */
vmm_status vmm_paging_init_context(struct vmm_memory *memory, struct vmm_instance *instance,
				   void *address);
/* A part of its store, in whole pages, between the same places. */
vmm_status vmm_paging_transfer_part(struct vmm_memory *memory, struct vmm_instance *instance,
				    bool in, uint64_t offset, uint64_t size_bytes);
/* SPECIAL_LOCK_TRANSFER between its place and those pages (SWZ-25). */
vmm_status vmm_paging_special(struct vmm_memory *memory, struct vmm_instance *instance,
			      const struct vmm_alternate *alternate,
			      const struct vmm_backing *pages, bool in);
vmm_status vmm_paging_fill(struct vmm_memory *memory, struct vmm_instance *instance);
vmm_status vmm_paging_discard(struct vmm_memory *memory, struct vmm_instance *instance);
/* PAG-25: to who asked for it with ExplicitResidencyNotification; nothing for others. */
/* To another place in its memory segment; the two do not overlap. */
vmm_status vmm_paging_move(struct vmm_memory *memory, struct vmm_instance *instance, uint64_t to);
vmm_status vmm_paging_notify(struct vmm_memory *memory, struct vmm_instance *instance,
			     bool resident);
/* PAG-29: NOTIFY_ALLOC with Eviction of those bytes, which the GPU reaches at that place. */
vmm_status vmm_paging_notify_alloc(struct vmm_memory *memory, struct vmm_instance *instance,
				   const struct vmm_paging_part *part);
/* Bytes of its backing pages, from that offset on, into an aperture and out of it; all in whole pages. */
vmm_status vmm_paging_map_part(struct vmm_memory *memory, struct vmm_instance *instance,
			       const struct vmm_paging_part *part);
vmm_status vmm_paging_unmap_part(struct vmm_memory *memory, struct vmm_instance *instance,
				 const struct vmm_paging_part *part);
/* PAG-27: a Transfer of size 0 out of its memory segment. */
vmm_status vmm_paging_report_lost(struct vmm_memory *memory, struct vmm_instance *instance);
/* What is collected will not be submitted; the buffers are in no aperture any more. */
void vmm_paging_forget(struct vmm_memory *memory);
vmm_status vmm_paging_map_current(struct vmm_memory *memory);
vmm_status vmm_paging_map(struct vmm_memory *memory, struct vmm_instance *instance);
vmm_status vmm_paging_unmap(struct vmm_memory *memory, struct vmm_instance *instance);
/* Leaves its memory segment on the adapters that did not copy it out (PAG-22); nothing for all others. */
vmm_status vmm_paging_leave_mirrors(struct vmm_memory *memory, struct vmm_instance *instance);
/* Out of memory through that place in an aperture: Map, Transfer, Unmap (PAG-17). */
vmm_status vmm_paging_transfer_through(struct vmm_memory *memory, struct vmm_instance *instance,
				       uint32_t aperture, uint64_t offset);
/* A buffer, on that physical adapter. */
vmm_status vmm_paging_map_buffer(struct vmm_memory *memory, uint32_t physical,
				 const struct vmm_backing *backing, uint32_t segment,
				 uint64_t offset);
vmm_status vmm_paging_unmap_range(struct vmm_memory *memory, uint32_t physical, uint32_t segment,
				  uint64_t offset, uint64_t size_bytes);

/* Any other operation, of no allocation, on the lead. */
vmm_status vmm_paging_build(struct vmm_memory *memory, DXGKARG_BUILDPAGINGBUFFER *args);

/* ---- va_entries.c: GPU virtual addresses; where there are none, nothing happens ---- */
void vmm_va_refresh_slowly(struct vmm_memory *memory, struct vmm_instance *instance);
void vmm_va_hide_slowly(struct vmm_memory *memory, struct vmm_instance *instance);
/* It has a place: page tables name that one. */
static inline void vmm_va_refresh(struct vmm_memory *memory, struct vmm_instance *instance)
{
	if (vmm_unlikely(memory->caps->gpummu.supported))
		vmm_va_refresh_slowly(memory, instance);
}
/* It is about to lose it: no page table does (VA-13). */
static inline void vmm_va_hide(struct vmm_memory *memory, struct vmm_instance *instance)
{
	if (vmm_unlikely(memory->caps->gpummu.supported))
		vmm_va_hide_slowly(memory, instance);
}

/* ---- notify.c: what a 3.2 miniport wants to hear of its allocation before it leaves (PAG-29) ---- */
/* An aperture is about to lose it; afterwards *told. Nothing for who did not ask. */
vmm_status vmm_notify_leaving_aperture(struct vmm_memory *memory, struct vmm_instance *instance,
				       bool *told);
/* It is in system memory without a place in the aperture, and nobody wants it there any more. */
vmm_status vmm_notify_leaving_system(struct vmm_memory *memory, struct vmm_instance *instance);
static inline bool vmm_notify_is_wanted(const struct vmm_allocation *allocation)
{
	return vmm_unlikely(allocation->flags2 & VMM_ALLOCATION2_NOTIFY_EVICTION);
}

/* ---- segment.c: every range of a segment is taken and given back here, so that what is mapped is counted ---- */
vmm_status vmm_segments_create(struct vmm_memory *memory);
void vmm_segments_destroy(struct vmm_memory *memory);
/* As vmm_range_allocate; VMM_NO_VIDEO_MEMORY also where an aperture may not map that much more (SEG-05). */
vmm_status vmm_segment_allocate(struct vmm_memory *memory, struct vmm_segment *segment,
				const struct vmm_range_request *request, vmm_range_node *node,
				uint64_t *offset);
void vmm_segment_free(struct vmm_memory *memory, struct vmm_segment *segment, vmm_range_node node);
/* SEG-05: would a mapping of that size exceed what all apertures may map together? */
static inline bool vmm_segment_is_over_limit(const struct vmm_memory *memory,
					     const struct vmm_segment *segment, uint64_t size_bytes)
{
	return segment->aperture && size_bytes > memory->shared_system_bytes - memory->mapped_bytes;
}

/* ---- place.c: where an allocation is to be looked a place for ---- */
/* Segment ids of the set in the order in which they are tried; how many. */
uint32_t vmm_place_candidates(const struct vmm_memory *memory,
			      const struct vmm_allocation *allocation, uint32_t set,
			      uint32_t order[VMM_PORT_SEGMENTS_MAX]);
/* enum vmm_range_flags for that segment. */
uint32_t vmm_place_flags(const struct vmm_allocation *allocation, uint32_t segment_id);
/* PAG-19: where the part of a segment begins that what is pinned may occupy. */
uint64_t vmm_place_pinned_zone(const struct vmm_segment *segment);
/* The banks that a new allocation hints at: those it may hint at, else 0 (SEG-14). */
uint32_t vmm_place_hinted_banks(const struct vmm_memory *memory, const DXGK_ALLOCATIONINFO *info);
/* Free space in the first hinted bank that has it, for an owner with hints. VMM_NO_VIDEO_MEMORY: none has. */
vmm_status vmm_place_in_hinted_bank(struct vmm_memory *memory, struct vmm_segment *segment,
				    const struct vmm_range_request *anywhere,
				    struct vmm_room *room);

/* ---- protected.c: protected ranges of segments (ALF-26) ---- */
/* The segments whose protected range could hold so much; 0 bytes: that have one. */
uint32_t vmm_protected_set(const struct vmm_memory *memory, uint64_t size_bytes);
/* A new allocation with CreateInVpr: its sets keep what can serve it. */
void vmm_protected_describe(const struct vmm_memory *memory, struct vmm_allocation *allocation);
/* In whole units of its range. */
uint64_t vmm_protected_units(const struct vmm_segment *segment, uint64_t size_bytes);
uint64_t vmm_protected_room(const struct vmm_segment *segment);
/* Is the range kept for what is protected? */
bool vmm_protected_is_kept(const struct vmm_segment *segment);
/* Size and alignment that it has in that segment; where, is for the parts to say. */
struct vmm_range_request vmm_place_request(const struct vmm_segment *segment,
					   struct vmm_instance *instance);
struct vmm_place_part {
	uint64_t low, high; /* high 0: to the end */
};
/* The parts of the segment in which the request's owner may be and has the room to, the better one first; how many. */
uint32_t vmm_place_parts(struct vmm_memory *memory, struct vmm_segment *segment,
			 const struct vmm_range_request *request, struct vmm_place_part part[2]);
/* Of what may be pinned (PAG-19), the widest. */
struct vmm_place_part vmm_place_pinned_part(const struct vmm_segment *segment,
					    const struct vmm_allocation *allocation);

/* ---- residency.c ---- */
void vmm_residency_touch(struct vmm_memory *memory, struct vmm_instance *instance);
/* Its sets or its flags are others now. */
static inline void vmm_allocation_set_serving(struct vmm_allocation *allocation)
{
	allocation->serving = (allocation->read_set & allocation->write_set) << 1;
	if (vmm_unlikely(allocation->flags & VMM_ALLOCATION_SYNCHRONOUS_PAGING))
		vmm_allocation_mark(allocation, VMM_MARK_SYNCHRONOUS, true);
}
/* Its place in that segment is another now. */
static inline void vmm_residency_set_offset(const struct vmm_segment *segment,
					    struct vmm_instance *instance, uint64_t offset)
{
	instance->offset = offset;
	instance->address = segment->port->gpu_base + offset;
	instance->allocation->adapter->placements++;
}

/* ---- recency.c ---- */
/* The lists of all segments are in the order of use. Whoever goes through one by that order asks for it first. */
void vmm_recency_settle_slowly(struct vmm_memory *memory);
static inline void vmm_recency_settle(struct vmm_memory *memory)
{
	if (memory->touched_count)
		vmm_recency_settle_slowly(memory);
}
/* It has come into a segment. */
void vmm_recency_enter(struct vmm_memory *memory, struct vmm_instance *instance);
/* It leaves its list: nothing is to be found of it among what was touched. */
static inline void vmm_recency_forget(struct vmm_memory *memory)
{
	if (memory->touched_count <= VMM_TOUCHED_MAX)
		vmm_recency_settle(memory);
}
void vmm_residency_reclass(struct vmm_memory *memory, struct vmm_instance *instance);
/*
 * Moves a resident instance to its backing store; the caller made sure that the GPU does not use it. VMM_PENDING: it
 * uses what is in the way (vmm_eviction_blocker).
 */
vmm_status vmm_residency_evict_for(struct vmm_memory *memory, struct vmm_instance *instance,
				   uint32_t reason, uint64_t preparation);
vmm_status vmm_residency_evict(struct vmm_memory *memory, struct vmm_instance *instance,
			       uint32_t reason);
/* Leaves its segment without copying: destroyed or discarded content. */
void vmm_residency_drop(struct vmm_memory *memory, struct vmm_instance *instance, uint32_t reason);
/* The adapter was reset: it is in no segment any more. `place`: where its content is, VMM_PLACE_LOST: nowhere. */
void vmm_residency_reset(struct vmm_memory *memory, struct vmm_instance *instance,
			 enum vmm_place place);
vmm_status vmm_residency_give_backing(struct vmm_memory *memory, struct vmm_instance *instance);
/*
 * ALF-19, ALF-20: gives an instance that is to be pinned its place for good. VMM_PENDING: the GPU uses what is in the
 * way. VMM_NO_VIDEO_MEMORY: there is none (PAG-19).
 */
vmm_status vmm_residency_pin(struct vmm_memory *memory, struct vmm_instance *instance);
/* Back to where it was pinned (home_segment, home_offset), which is free. */
vmm_status vmm_residency_pin_again(struct vmm_memory *memory, struct vmm_instance *instance);
/*
 * Into a segment of the set for the CPU's sake (SWZ-04); it is in none. VMM_PENDING: the GPU uses what is in the way;
 * wait for progress.
 */
vmm_status vmm_residency_bring_in(struct vmm_memory *memory, struct vmm_instance *instance,
				  uint32_t set);
/* Into a segment of the set, pushing out what that preparation does not want. As place by a reference. */
vmm_status vmm_residency_place(struct vmm_memory *memory, struct vmm_instance *instance,
			       uint32_t set, uint64_t preparation);
bool vmm_instance_unused(
	const struct vmm_instance *instance); /* no prepared packet uses its memory */
/*
 * Evicts what is idle until a range of that size and place is free, and takes it. What that preparation wants stays.
 * VMM_PENDING: the GPU uses the rest. VMM_NO_VIDEO_MEMORY: there is no use in waiting.
 */
#define VMM_NO_PREPARATION UINT64_MAX
vmm_status vmm_residency_take_room(struct vmm_memory *memory, struct vmm_segment *segment,
				   const struct vmm_range_request *request, uint64_t preparation,
				   struct vmm_room *room);
/* The same without taking it. */
vmm_status vmm_residency_make_room(struct vmm_memory *memory, struct vmm_segment *segment,
				   const struct vmm_range_request *request);

/* ---- eviction.c: the way of content out of a memory segment ---- */
/* Through an aperture of its set, or straight (PAG-17, SEG-20); its backing store is there. VMM_PENDING: see above. */
vmm_status vmm_eviction_transfer(struct vmm_memory *memory, struct vmm_instance *instance,
				 uint64_t preparation);
/* The same from 2.0 on, with the store that is there or a new one. */
vmm_status vmm_eviction_wddm2(struct vmm_memory *memory, struct vmm_instance *instance,
			      uint64_t preparation);
/* PAG-20: would eviction from its memory segment lose its content? */
bool vmm_eviction_is_blocked_by_pinned(const struct vmm_memory *memory,
				       const struct vmm_allocation *allocation);
static inline bool vmm_eviction_loses_content(const struct vmm_memory *memory,
					      const struct vmm_instance *instance)
{
	return vmm_unlikely(instance->allocation->eviction_set) &&
	       instance->place == VMM_PLACE_MEMORY && !(instance->kept && !instance->gpu_wrote) &&
	       vmm_eviction_is_blocked_by_pinned(memory, instance->allocation);
}
/* The largest that can pass what is pinned in the apertures of the set. */
uint64_t vmm_eviction_widest(const struct vmm_memory *memory, uint32_t eviction_set);
/* A packet to wait for after VMM_PENDING; one that is complete when what was in the way is idle by now. */
void vmm_eviction_blocker(struct vmm_memory *memory, const struct vmm_instance *instance,
			  uint32_t *timeline, uint64_t *sequence);
/* The last paging packet that touches the instance; where it moves content, the CPU waits for it. */
void vmm_residency_mark_paged(struct vmm_memory *memory, struct vmm_instance *instance,
			      bool moves_content);

/* ---- sysmem.c: system copies that stay (PAG-13 to PAG-15); instances without one are left alone ---- */
/* Of a new instance; system_memory: the caller's own, of Existing... allocations (ALF-13). */
vmm_status vmm_kept_create(struct vmm_memory *memory, struct vmm_instance *instance,
			   const void *system_memory, struct vmm_section *section);
void vmm_kept_free(struct vmm_instance *instance);
/* The GPU's newer copy on its way back into the system copy. The GPU does not use the instance. */
vmm_status vmm_kept_bring_back(struct vmm_memory *memory, struct vmm_instance *instance);
/* The lock has succeeded; content: does anybody want what was there (REN-15)? */
void vmm_kept_locked(struct vmm_instance *instance, const struct vmm_lock_request *request,
		     bool content);
/* If that was the last lock: its pages follow before the GPU uses the instance again. Is there anything to follow? */
bool vmm_kept_unlocked(struct vmm_instance *instance);
/* The same, at the next vmm_kept_upload_all if the GPU allows it. */
void vmm_kept_upload_soon(struct vmm_memory *memory, struct vmm_instance *instance);
void vmm_kept_upload_all(struct vmm_memory *memory);
void vmm_kept_left_segment(struct vmm_instance *instance); /* the system copy is all there is */
/* What is due before the GPU uses it where it is. VMM_PENDING: the GPU reads it just now. */
vmm_status vmm_hand_over(struct vmm_memory *memory, struct vmm_instance *instance);

/* ---- swizzle.c: swizzling ranges, and content that is unswizzled for the CPU (SWZ) ---- */
#define VMM_LOCK_ACQUIRE_APERTURE 0x040u
#define VMM_LOCK_USE_ALTERNATE_VA 0x200u
static inline bool vmm_instance_is_swizzled(const struct vmm_instance *instance)
{
	return (instance->allocation->flags & VMM_ALLOCATION_SWIZZLED) != 0;
}
struct vmm_aperture_lock {
	struct vmm_instance *instance;
	const struct vmm_lock_request *request;
	bool may_wait; /* whatever DonotWait says */
	/* the answer "wait, then try again" */
	bool wait, wait_for_progress;
	uint32_t timeline, progress_seen;
	uint64_t sequence;
	const char *rule, *why; /* of a refusal that is the caller's fault */
};
/* Sees to it that what the CPU will be shown is the linear image. The GPU is done as far as the flags ask for it. */
NTSTATUS vmm_swizzle_lock(struct vmm_memory *memory, struct vmm_aperture_lock *lock);
void vmm_swizzle_release_all(struct vmm_memory *memory, struct vmm_instance *instance);
/* SWZ-13: before it leaves its memory segment. */
static inline void vmm_swizzle_release(struct vmm_memory *memory, struct vmm_instance *instance)
{
	if (vmm_unlikely(instance->range_count))
		vmm_swizzle_release_all(memory, instance);
}
/* Those of a swizzled allocation that show it where it is. It has no lock. */
void vmm_swizzle_release_in_place(struct vmm_memory *memory, struct vmm_instance *instance);
uint32_t vmm_swizzle_memory_set(const struct vmm_allocation *allocation); /* where a range may be */
struct vmm_swizzling_range *vmm_swizzle_find(struct vmm_memory *memory,
					     const struct vmm_instance *instance,
					     uint32_t private_data);
/*
 * ALF-22: a place and a range for a new primary. VMM_PENDING: the GPU uses what is in the way. VMM_NO_VIDEO_MEMORY: there is
 * no room, or no range. VMM_INVALID_PARAMETER: the miniport has none for it.
 */
vmm_status vmm_swizzle_create(struct vmm_memory *memory, struct vmm_instance *instance);
/*
 * Content that left under a lock in a form of the miniport's own comes back before the CPU sees it in another way, or
 * there is nothing to do.
 */
NTSTATUS vmm_swizzle_restore(struct vmm_memory *memory, struct vmm_aperture_lock *lock);
void vmm_swizzle_finish(struct vmm_memory *memory);
void vmm_swizzle_check(const struct vmm_memory *memory);

/* ---- alternate.c: addresses for UseAlternateVA ---- */
/* Is the answer to be lived with? It names memory of the device or of the instance itself, and enough of it. */
bool vmm_alternate_range_is_valid(const struct vmm_memory *memory,
				  const struct vmm_instance *instance,
				  const DXGKARG_ACQUIRESWIZZLINGRANGE *answer);
/* The address, made if there is none. VMM_NO_MEMORY: none can be reserved; else as of vmm_window_lay. */
vmm_status vmm_alternate_show_range(struct vmm_memory *memory, struct vmm_swizzling_range *range);
vmm_status vmm_alternate_show(struct vmm_memory *memory, struct vmm_instance *instance,
			      uint32_t private_data, char **address);
/*
 * LKR-07: the content of an instance that is locked by the address of a range goes to system memory; what is left is to
 * take it out of its segment. VMM_NOT_SUPPORTED: it must stay.
 */
vmm_status vmm_alternate_leave(struct vmm_memory *memory, struct vmm_instance *instance);
/* SWZ-25: back from there, into the place that it has been given. */
vmm_status vmm_alternate_return(struct vmm_memory *memory, struct vmm_instance *instance);
/* ALF-15: what the CPU wrote at such addresses is written back. */
/* The adapter is reset: an address that is locked shows empty pages of system memory from now on (TDR-11). */
vmm_status vmm_alternate_abandon(struct vmm_memory *memory, struct vmm_instance *instance);
void vmm_alternate_flush(struct vmm_memory *memory, const struct vmm_instance *instance);
void vmm_alternate_free(struct vmm_alternate **alternate);
static inline void vmm_alternate_drop(struct vmm_instance *instance)
{
	if (vmm_unlikely(instance->alternate))
		vmm_alternate_free(&instance->alternate);
}
static inline bool vmm_alternate_is_locked(const struct vmm_instance *instance)
{
	return vmm_locks(instance) && (instance->lock_flags & VMM_LOCK_USE_ALTERNATE_VA);
}
/* Its content left under such a lock (SWZ-25). */
static inline bool vmm_alternate_is_special(const struct vmm_instance *instance)
{
	return vmm_unlikely(instance->alternate) && instance->alternate->special;
}
/* The same, and the image is not that of the allocation: only this address and the miniport understand it. */
bool vmm_alternate_is_foreign(const struct vmm_instance *instance);

/* ---- partial.c: pages of an instance in a memory segment, unswizzled for the CPU (LOCK-21) ---- */
/* Those pages of the request that are not there yet are on their way to system memory. */
vmm_status vmm_partial_take(struct vmm_memory *memory, struct vmm_instance *instance,
			    const struct vmm_lock_request *request);
bool vmm_partial_covers(const struct vmm_instance *instance,
			const struct vmm_lock_request *request);
void vmm_partial_locked(struct vmm_instance *instance, uint32_t flags);
void vmm_partial_unlocked(struct vmm_memory *memory, struct vmm_instance *instance);
/* Those that were unlocked go back if the GPU allows it. */
void vmm_partial_settle_all(struct vmm_memory *memory);
/* Back; nobody has it locked. VMM_PENDING: the GPU reads it just now. */
vmm_status vmm_partial_settle(struct vmm_memory *memory, struct vmm_instance *instance);
/* The other pages follow: all of it is on its way to system memory. */
vmm_status vmm_partial_leave(struct vmm_memory *memory, struct vmm_instance *instance);
void vmm_partial_drop(struct vmm_memory *memory, struct vmm_instance *instance);

/* ---- existing.c: memory of the caller's own ---- */
NTSTATUS vmm_existing_check(struct vmm_device *device, const struct vmm_allocate_item *item,
			    const DXGK_ALLOCATIONINFO *info);
/* Of a process apart, after all checks: its memory as a section, item->adopted. No lock is held. */
NTSTATUS vmm_existing_adopt(struct vmm_device *device, struct vmm_allocate_item *item,
			    const DXGK_ALLOCATIONINFO *info);
vmm_status vmm_existing_lock(struct vmm_memory *memory, const void *pointer, uint64_t size_bytes,
			     struct vmm_backing *backing);
void vmm_existing_unlock(struct vmm_memory *memory, struct vmm_backing *backing);
bool vmm_backing_is_existing(const struct vmm_backing *backing);
/* An allocation whose handle goes, noted in the list; for vmm_existing_let_go. Paging lock held. */
void vmm_existing_depart(struct vmm_allocation *allocation, struct vmm_list *departing);
/* Waits until nobody but the caller uses their memory any more. No lock held. */
void vmm_existing_let_go(struct vmm_memory *memory, struct vmm_list *departing);

/* ---- coherence.c: caches (ALF-15); what is not Cached is left alone ---- */
/* Before the GPU uses it in the segment that it is in; `seen`: the place where the CPU had it. */
void vmm_coherence_to_gpu(struct vmm_memory *memory, struct vmm_instance *instance,
			  enum vmm_place seen);
/* Before the CPU goes in. */
void vmm_coherence_to_cpu(struct vmm_memory *memory, struct vmm_instance *instance, bool read_only);

/* ---- host_aperture.c: the CPU's way into memory segments of 2.x that it cannot see (SWZ-29) ---- */
vmm_status vmm_host_aperture_create(struct vmm_memory *memory, struct vmm_segment *segment);
void vmm_host_aperture_destroy(struct vmm_segment *segment);
void vmm_host_aperture_check(const struct vmm_segment *segment);
/* It is in a memory segment. VMM_NO_VIDEO_MEMORY: there is no aperture, or what is locked leaves no room in it. */
vmm_status vmm_host_map(struct vmm_memory *memory, struct vmm_instance *instance);
/* The view, which is reserved, shows what is mapped. */
vmm_status vmm_host_show(struct vmm_memory *memory, struct vmm_instance *instance);
/* The view shows it no longer, or is frozen. Nothing for what is not mapped. */
void vmm_host_unmap(struct vmm_memory *memory, struct vmm_instance *instance);
/* For who holds more than the paging lock; the second one then does it. */
void vmm_host_unmap_soon(struct vmm_memory *memory, struct vmm_instance *instance);
void vmm_host_unmap_unwanted(struct vmm_memory *memory);
void vmm_host_end_viewer(struct vmm_memory *memory, uint64_t owner);

/* ---- view.c ---- */
vmm_status vmm_view_show(struct vmm_memory *memory, struct vmm_instance *instance);
void vmm_view_hide(struct vmm_instance *instance);

/* ---- memory.c ---- */
/* As vmm_memory_dma_map_locked, where there is room; nobody is evicted for it. */
vmm_status vmm_dma_map_in_free_space(struct vmm_memory *memory, struct vmm_backing *backing,
				     uint32_t segment_set, struct vmm_dma_place *place);

/* ---- link.c: content on every physical adapter of a link (PAG-22, PAG-23) ---- */
/* On how many it is, always the first ones: all of them, or the lead alone. */
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
/* Of its backing store, and of what the CPU sees: one part after the other if it is LinkInstanced (SWZ-30). */
static inline uint64_t vmm_store_bytes(const struct vmm_allocation *allocation)
{
	return vmm_unlikely(vmm_link_is_instanced(allocation))
		       ? allocation->size_bytes * allocation->adapter->physical_adapters
		       : allocation->size_bytes;
}
/* As vmm_backing_create, of the size that it needs. */
vmm_status vmm_link_store_create(struct vmm_memory *memory, struct vmm_instance *instance,
				 bool zero);
void vmm_link_parts_destroy(struct vmm_memory *memory, struct vmm_backing *backing);
/* The pages that are that adapter's. */
static inline void *vmm_link_mdl(const struct vmm_instance *instance, uint32_t physical)
{
	return vmm_unlikely(instance->backing.parts != NULL) ? instance->backing.parts[physical]
							     : instance->backing.mdl;
}
/* Its store may still be written by the GPU of one adapter: what is built from here on runs on all of them after that. */
void vmm_link_order(struct vmm_memory *memory, const struct vmm_instance *instance);
/* NULL, or a property that is not built together with a link flag. */
const char *vmm_link_not_built(uint32_t flags);

/* ---- instance.c ---- */
/* REN-14: Discard does not rename it. */
static inline bool vmm_allocation_keeps_its_name(const struct vmm_allocation *allocation)
{
	return allocation->shared | allocation->pinned | allocation->primary |
	       vmm_is_existing(allocation);
}
/* Is there an aperture where both reads and writes may find it? */
bool vmm_allocation_reaches_aperture(const struct vmm_allocation *allocation);
void vmm_instance_init(struct vmm_instance *instance, struct vmm_allocation *allocation);
void vmm_instance_finish(struct vmm_memory *memory, struct vmm_instance *instance); /* idle */
uint32_t vmm_allocation_class(const struct vmm_allocation *allocation);

/* ---- context_allocation.c ---- */
/* It is about to move or to leave; nothing for others (SUB-20). */
void vmm_context_allocation_let_go(struct vmm_memory *memory, const struct vmm_instance *instance);

/* ---- rename.c ---- */
NTSTATUS vmm_rename_select(struct vmm_device *device, struct vmm_ref *ref, uint32_t flags,
			   struct vmm_ref **chosen, struct vmm_instance **wait_for);
/* The instance that a discard lock gets where it needs nothing but to be taken; NULL: it is not as simple as that. */
struct vmm_instance *vmm_rename_ready(struct vmm_allocation *allocation, uint32_t flags,
				      struct vmm_instance **current);
void vmm_rename_commit(struct vmm_device *device, struct vmm_ref *ref, uint32_t old_handle);
/* The same for who knows the current instance, or that there is none (NULL). */
void vmm_rename_commit_from(struct vmm_device *device, struct vmm_ref *ref,
			    struct vmm_instance *current, uint32_t old_handle);
bool vmm_rename_is_growth(const struct vmm_ref *ref); /* made for this lock */
void vmm_rename_undo_growth(struct vmm_device *device, struct vmm_ref *ref);

/* ---- offer.c, offer_queued.c, reclaim.c ---- */
/* Entries of one call, each an allocation or all those of a resource; `rule` is the one that a bad entry breaks. */
struct vmm_offer_walk {
	struct vmm_device *device;
	const struct vmm_handle_set *set;
	const char *rule;
	bool no_presentation; /* OFR-11: what may be displayed is to be named by its handle */
};
typedef NTSTATUS vmm_offer_fn(struct vmm_device *device, struct vmm_ref *ref, void *context);
NTSTATUS vmm_offer_check_set(struct vmm_device *device, const struct vmm_handle_set *set);
/* Both locks held. Calls fn for each allocation that entry `index` names. */
NTSTATUS vmm_offer_each(const struct vmm_offer_walk *walk, uint32_t index, vmm_offer_fn *fn,
			void *context);
/*
 * OFR-14: takes the system memory of what is offered with AllowDecommit and in no segment, the least wanted first. Is
 * there one?
 */
bool vmm_offer_decommit(struct vmm_memory *memory);
void vmm_allocation_set_offer(struct vmm_allocation *allocation, uint32_t priority); /* 0: none */
void vmm_offer_cancel(struct vmm_allocation *allocation); /* the queued one */
void vmm_offers_settle(struct vmm_memory *memory);        /* all whose time has come */

/* ---- validate.c ---- */
struct vmm_allocation_asker {
	struct vmm_device *device;
	bool shared;      /* it will be part of a shared resource */
	bool has_section; /* the memory is a section's, which nobody takes away */
};
NTSTATUS vmm_allocation_validate(struct vmm_memory *memory, const DXGK_ALLOCATIONINFO *info,
				 const struct vmm_allocate_item *item,
				 const struct vmm_allocation_asker *asker);

/* ---- resident.c: residency lists (RES-01) ---- */
/* Where an allocation may be when it is resident, whoever uses it. */
uint32_t vmm_resident_set(const struct vmm_allocation *allocation);
bool vmm_resident_reaches_aperture(const struct vmm_allocation *allocation);
/* Without AccessedPhysically the pages in system memory are reached without the aperture (PAG-24). */
bool vmm_resident_in_system(const struct vmm_instance *instance);
/* A number of its own for a round of placing. */
uint64_t vmm_resident_round(struct vmm_memory *memory);
/* It is on a list, and is not brought in for it: held by the CPU (LOCK-48), offered, or its content lost. */
bool vmm_resident_stays_out(struct vmm_instance *instance);
/* VMM_PENDING also where the CPU holds it out. */
vmm_status vmm_resident_place(struct vmm_memory *memory, struct vmm_instance *instance,
			      uint64_t preparation);
/* It is in system memory for the CPU's sake and stays resident: if not at once, then before the next packet runs. */
void vmm_resident_into_aperture(struct vmm_memory *memory, struct vmm_instance *instance);
/* Wants all of the list, so that nothing of it leaves for the rest of it. */
void vmm_resident_want(struct vmm_device *device, uint64_t preparation);
/* Those, which are on the list and not held out, into memory. Are all of them there now? */
bool vmm_resident_bring_in(struct vmm_device *device, struct vmm_ref *const *refs, uint32_t count);
/* What one on the list adds to the sums that are kept of it. */
void vmm_resident_account(struct vmm_ref *ref, bool add);
vmm_status vmm_resident_list(struct vmm_ref *ref);
void vmm_resident_unlist(struct vmm_ref *ref);
/* The CPU has it and it is in no segment: is it one that the CPU holds out (LOCK-48)? */
void vmm_resident_hold_out(struct vmm_instance *instance);
/* All of a lost device's list. */
void vmm_resident_lose(struct vmm_device *device);
/* The ref goes: off the list, out of what waits. */
void vmm_resident_forget(struct vmm_ref *ref);
void vmm_resident_device_end(struct vmm_device *device); /* its refs are gone */
/* Bytes by which the list with these additions exceeds what can be in memory together; 0: none. */
uint64_t vmm_resident_excess(struct vmm_device *device, struct vmm_ref *const *added,
			     uint32_t count);
/* The last paging packet that touches it. */
uint64_t vmm_resident_paged(const struct vmm_instance *instance);
/* Off the list and not wanted back: out it goes when the GPU work queued so far is complete (RES-07). */
void vmm_resident_depart(struct vmm_ref *ref);
void vmm_resident_departures(struct vmm_memory *memory);

/* ---- budget.c ---- */
/* The process's account on this adapter, made when first needed; NULL: no memory. */
struct vmm_budget *vmm_budget_of(struct vmm_device *device);
void vmm_budget_charge(struct vmm_ref *ref, bool listed);
/* By how many bytes usage would exceed the budget with these additions. */
uint64_t vmm_budget_excess(struct vmm_device *device, struct vmm_ref *const *added, uint32_t count);
void vmm_budgets_finish(struct vmm_memory *memory);

/* ---- trim.c ---- */
/* Around what may make a budget less; paging lock held. */
void vmm_trims_before_budget(struct vmm_memory *memory);
void vmm_trims_after_budget(struct vmm_memory *memory);
/* The device ends: its notifications do. No lock held. */
void vmm_trims_end(struct vmm_device *device);
void vmm_trims_finish(struct vmm_memory *memory);

/* ---- paging_queue.c ---- */
struct vmm_paging_queue;
struct vmm_paging_queue *vmm_paging_queue_find_locked(struct vmm_device *device, uint32_t handle);
/* An operation on these refs, done when all of them are placed and paged; *value is what the fence will have. */
vmm_status vmm_paging_queue_add(struct vmm_paging_queue *queue, struct vmm_ref *const *refs,
				uint32_t count, uint64_t *value);
/* The same in two steps, of which only the first can fail; what is not added is freed. */
struct vmm_paging_operation *vmm_paging_operation_create(uint32_t count);
void vmm_paging_operation_free(struct vmm_paging_operation *operation);
/* One that is nothing but paging that is collected already: done with that packet. */
uint64_t vmm_paging_operation_add_paged(struct vmm_paging_queue *queue,
					struct vmm_paging_operation *operation, uint64_t sequence);
uint64_t vmm_paging_operation_add(struct vmm_paging_queue *queue,
				  struct vmm_paging_operation *operation,
				  struct vmm_ref *const *refs, uint32_t count);
void vmm_paging_queues_forget(struct vmm_ref *ref);
void vmm_paging_queues_lose(struct vmm_device *device);
void vmm_paging_queues_end(struct vmm_device *device);

/* ---- lock2.c ---- */
NTSTATUS vmm_lock_wddm2(struct vmm_device *device, struct vmm_lock_request *request); /* LOCK-51 */
/* A lock of it was given back, by whatever way. Paging lock held. */
void vmm_lock_wddm2_released(struct vmm_instance *instance);

/* ---- validate_wddm2.c ---- */
struct vmm_flags_verdict {
	const char *rule, *what; /* NULL: nothing is wrong */
};

/* ---- what of a segment it takes (footprint.c; SEG-10, SEG-11) ---- */
uint64_t vmm_footprint_bytes(const struct vmm_segment *segment,
			     const struct vmm_allocation *allocation);
/* In the worst of its segments. */
uint64_t vmm_footprint_largest(const struct vmm_memory *memory,
			       const struct vmm_allocation *allocation);
/* Where nothing of that PitchAlignedSize goes. */
uint32_t vmm_footprint_closed_set(const struct vmm_memory *memory, uint64_t pitch_bytes);
struct vmm_flags_verdict vmm_footprint_check(const struct vmm_memory *memory,
					     const DXGK_ALLOCATIONINFO *info);
void vmm_footprint_describe(const struct vmm_memory *memory, struct vmm_allocation *allocation,
			    uint64_t pitch_aligned_bytes);

struct vmm_flags_verdict vmm_flags_check_wddm2(const struct vmm_memory *memory, uint32_t flags);
/* DXGK_ALLOCATIONINFOFLAGS2 of an allocation that is, or is not, shared, for apertures alone, over existing memory. */
struct vmm_flags_verdict vmm_flags_check_wddm3(const struct vmm_memory *memory, uint32_t flags2,
					       bool shared, bool only_apertures, bool existing);
bool vmm_flags_are_built_wddm3(uint32_t flags2);
/* 3.0: DXGK_ALLOCATIONINFOFLAGS2 of a new allocation; of an older miniport what stands there is not looked at. */
uint32_t vmm_flags2_of(const struct vmm_memory *memory, const DXGK_ALLOCATIONINFO *info);
bool vmm_flags_in_vpr(const struct vmm_memory *memory, uint32_t flags);
uint32_t vmm_flags_built_wddm2(void);
/* What is remembered of a new allocation's flags: bits that mean the same in every version. */
uint32_t vmm_flags_kept(const struct vmm_memory *memory, uint32_t flags);
/* ---- section.c ---- */
/* The picture of a cross-adapter resource, as its creator's miniport describes it; owner: who may lock it (LOCK-24). */
struct vmm_picture {
	uint32_t width, height, owner;
	D3DDDIFORMAT format;
};
struct vmm_section {
	struct vmm_os_memory memory;
	struct vmm_picture picture;
	uint64_t offset; /* of what counts; 0 but for memory of a process apart (existing.c) */
	_Atomic uint32_t references;
};
vmm_status vmm_section_create(struct vmm_os *os, uint64_t size_bytes,
			      struct vmm_section **section) VMM_MUST_CHECK;
struct vmm_section *vmm_section_get(struct vmm_section *section);
/* As vmm_existing_lock; the backing holds the section. */
vmm_status vmm_section_lock(struct vmm_memory *memory, struct vmm_section *section,
			    uint64_t size_bytes, struct vmm_backing *backing);

/* ---- standard.c: what the system describes instead of a driver (ALF-38) ---- */
/* Private data for the one item, from the miniport; it becomes the request's. */
NTSTATUS vmm_standard_describe(struct vmm_device *device, struct vmm_allocate_request *request);
/* Is the miniport's answer what was asked for? */
NTSTATUS vmm_standard_check(struct vmm_device *device, const struct vmm_allocate_request *request,
			    const DXGK_ALLOCATIONINFO *info);

/* Two calls of DxgkDdiGetStandardAllocationDriverData; the miniport may complete the surface. */
NTSTATUS vmm_standard_ask(struct vmm_device *device, struct vmm_allocate_request *request,
			  const char *rule, D3DKMDT_GDISURFACEDATA *surface);

/* ---- cross_adapter.c: resources that several adapters have (ALF-39) ---- */
/* Before the miniport creates it: may it be, and for one with a section, its private data. */
NTSTATUS vmm_cross_adapter_describe(struct vmm_device *device,
				    struct vmm_allocate_request *request);
/* Is the miniport's answer one? The memory of a new one is made: request->section. */
NTSTATUS vmm_cross_adapter_check(struct vmm_device *device, struct vmm_allocate_request *request,
				 const DXGK_ALLOCATIONINFO *info);
/* A device of another adapter than its creator's opens it; the caller keeps its hold on the section. */
NTSTATUS vmm_cross_adapter_open(struct vmm_device *device, struct vmm_section *section,
				uint32_t *resource, uint32_t *allocation);

/* ---- resource.c ---- */
struct vmm_resource *vmm_resource_find_locked(struct vmm_device *device,
					      const void *runtime_resource);
NTSTATUS vmm_resource_prepare(struct vmm_device *device, void *runtime_resource, uint32_t count,
			      struct vmm_resource **resource, bool *created);
/* The call that prepared it has failed; resource may be NULL. */
void vmm_resource_unprepare(struct vmm_resource *resource, bool created);
void vmm_resource_detach(struct vmm_resource *resource); /* handle and list gone; freed */
NTSTATUS vmm_share_create(struct vmm_resource *resource, const struct vmm_allocate_request *request,
			  struct vmm_allocation *const *allocations);

void vmm_share_put(struct vmm_world *world, struct vmm_share *share);
/*
 * Lets go of it without ending anything here, for who is not inside a device of its adapter: the worker does. True: that was
 * the last one, so the worker wants to be woken. The world's shared lock is held.
 */
bool vmm_share_put_later_locked(struct vmm_share *share) VMM_MUST_CHECK;
void vmm_shares_reap(struct vmm_memory *memory); /* no lock held but the submit lock */
/* That of a key; NULL: there is none (any more). The world's shared lock is held. */
struct vmm_share *vmm_bundle_share_locked(const struct vmm_bundle *bundle);

/* ---- destroy_flags.c: what pfnDeallocate2Cb may ask for (ALF-37) ---- */
struct vmm_deallocation {
	struct vmm_list departing; /* see vmm_existing_depart */
	struct vmm_list unused;    /* vmm_ref.zombie_link: see destroy.c */
	uint32_t flags;            /* D3DDDICB_DESTROYALLOCATION2FLAGS.Value */
	uint32_t open;             /* handles that are not closed yet; guarded by the paging lock */
};
NTSTATUS vmm_deallocation_check(struct vmm_device *device, uint32_t flags);
/* The handle goes; paging lock held. */
void vmm_deallocation_note(struct vmm_deallocation *d, struct vmm_ref *ref);
/* AssumeNotInUse: the miniport is told now. The submit lock is held, no other. */
void vmm_deallocation_tell(struct vmm_memory *memory, const struct vmm_deallocation *d);
/* SynchronousDestroy: until all of it is closed and its memory is free. No lock held. */
void vmm_deallocation_wait(const struct vmm_device *device, struct vmm_deallocation *d);
/* What that handle named is closed. No lock held. */
void vmm_deallocation_closed(struct vmm_memory *memory, struct vmm_deallocation *deallocation);

/* ---- destroy.c ---- */
/* Drops one reference; the last one ends the allocation in the miniport too. No lock held; the GPU is done with it. */
void vmm_allocation_put(struct vmm_memory *memory, struct vmm_allocation *allocation);

static inline void vmm_mark_used(_Atomic uint64_t *slot, uint64_t sequence)
{
	atomic_store_explicit(slot, sequence, memory_order_relaxed);
}

#endif
