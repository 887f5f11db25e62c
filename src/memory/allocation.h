/* SPDX-License-Identifier: MIT */
/*
 * Allocations, their instances, the references behind allocation handles, and backing stores: the
 * state that the memory manager keeps for them. Each structure is divided into groups; the heading
 * of a group says which lock guards it. Constant: set before another thread can see the object.
 *
 * The scheduler reads these structures, too. It writes only what a heading gives to it.
 */
#ifndef VMM_MEMORY_ALLOCATION_H
#define VMM_MEMORY_ALLOCATION_H

#include "object/object.h"
#include "policy/order.h"

struct vmm_alternate;
struct vmm_context_allocation;
struct vmm_deallocation;
struct vmm_fast_lock;
struct vmm_host_mapping;
struct vmm_partial;
struct vmm_range_extents;
struct vmm_retained_copy;
struct vmm_section;

enum vmm_placement {
	VMM_PLACEMENT_FRESH,    /* no content yet: reads as zero */
	VMM_PLACEMENT_SYSTEM,   /* content in the system backing store */
	VMM_PLACEMENT_MEMORY,   /* in a memory segment */
	VMM_PLACEMENT_APERTURE, /* backing pages mapped in an aperture segment */
	VMM_PLACEMENT_LOST      /* offered content was discarded */
};

enum vmm_instance_state { VMM_INSTANCE_CURRENT, VMM_INSTANCE_PREVIOUS, VMM_INSTANCE_RETIRED };

/* Pages of system memory that back an instance. Paging lock. */
struct vmm_backing {
	uint64_t size_bytes;
	uint32_t arena; /* index + 1; 0: none */
	uint32_t node;  /* range node in the arena */
	char *address;  /* the host's permanent mapping */
	/* Address at which an out-of-process client has the same memory mapped, or NULL. */
	char *client_address;
	struct vmm_section *section; /* the section that owns the memory, else NULL */
	void *mdl;                   /* PMDL over these pages; cached while the backing lives */
	/* LinkInstanced: one PMDL per adapter of the link, over its part; else NULL. */
	void **parts;
	struct vmm_account *account; /* its bytes are charged to this account; may be NULL */
};

/* Owner of the content where the GPU does not snoop the CPU's caches (ALF-15). */
enum vmm_cache { VMM_CACHE_CLEAN, VMM_CACHE_CPU, VMM_CACHE_GPU };

/*
 * One placement and content of an allocation. An allocation has several only while it is being
 * renamed (REN). The paging lock guards every group, except where its heading says otherwise.
 *
 * The members that every submission of a reference touches come first, in two cache lines.
 */
struct vmm_instance {
	/* ---- Head: what a submission reads in one load ---- */
	union {
		struct {
			uint32_t lock_count; /* while its fast lock is disabled: see vmm_locks */
			/* the fast lock is enabled, or says busy (fast_lock.h) */
			bool has_fast_lock;
			bool handover;   /* the CPU had it: work is due before the GPU uses it */
			uint8_t segment; /* segment id, in MEMORY and APERTURE */
			uint8_t place;   /* enum vmm_placement */
		};
		uint64_t head; /* all of these in one load */
	};
	uint64_t address;  /* GPU address: segment base + offset (DMA-18); 0: not resident */
	uint64_t prepared; /* the preparation that has already made it resident */
	uint64_t last_use; /* the adapter's use counter (state/lru.c) */
	/*
	 * ---- Use by the GPU, per timeline: relaxed atomics, written under the submit or paging
	 * lock, read without a lock (use.h) ----
	 * active: the last prepared packet that needs its memory; eviction waits for it. queued,
	 * written: the last packet that uses or writes it by the allocation list; CPU locks and
	 * destruction wait for these.
	 */
	_Atomic uint64_t active[VMM_TIMELINES_MAX];
	_Atomic uint64_t queued[VMM_TIMELINES_MAX];
	/*
	 * The last paging packet that updates the GPU's copy. The GPU waits for it, the CPU does
	 * not. (PAG-14)
	 */
	_Atomic uint64_t updated;
	_Atomic uint64_t written[VMM_TIMELINES_MAX];
	/* ---- What most submissions read besides ---- */
	struct vmm_allocation *allocation; /* constant */
	/* The lock word that counts locks on the fast path; or NULL. */
	struct vmm_fast_lock *fast_lock;
	uint8_t state;       /* enum vmm_instance_state */
	uint8_t class_index; /* enum vmm_policy_class of the LRU list it is in */
	bool gpu_wrote;      /* since it was paged in (PAG-13, PAG-31) */
	uint8_t newest; /* LinkMirrored: the physical adapter that wrote last since the page-in */
	/*
	 * sched, submit lock. Bit per timeline: several contexts have read it since it was last
	 * written.
	 */
	uint8_t shared_use;

	/* ---- WDDM 2.x ---- */
	bool not_written; /* the next eviction may drop the segment's copy (PRI-10) */
	/*
	 * The segment's copy may differ from the store: it was written to by the CPU, or on an
	 * earlier stay on a residency list. NotWrittenTo does not cover that.
	 */
	bool store_stale;
	bool announced; /* the miniport was last notified that it is resident (PAG-25) */
	bool held;      /* locked while not resident; stays out until unlocked (LOCK-48) */

	/* ---- CPU access: bytes of the groups below that fill this word ---- */
	bool view_current; /* the CPU mapping shows the present placement */
	uint8_t cache;     /* enum vmm_cache; of Cached allocations */
	bool linear;       /* Swizzled, but its content in system memory is linear (SWZ-09) */
	bool discarded;    /* offered content was discarded; the next reclaim reports it */

	/* ---- Placement, and what a packet in preparation keeps there ---- */
	uint32_t range;       /* node in the segment's heap */
	uint64_t offset;      /* in the segment */
	struct vmm_list lru;  /* in the segment's class list while resident */
	uint64_t required_by; /* the preparation whose buffer lists it and must not evict it */
	/* The preparation whose buffer has it bound at a split: it stays resident (SPL-05). */
	uint64_t bound;
	/*
	 * Working set of the rest of a split buffer: which split, and the first patch location that
	 * references it (vmm_memory_set_split_rest).
	 */
	uint64_t split_rest;
	uint32_t needed_at;
	/* A client object overlays its placement in a segment (client_object.c). */
	bool has_client_object;
	uint8_t paging_cause; /* enum vmm_paging_cause, of the next bytes that are paged in */
	/* 2.x: all its ranges, if there are several; `range` and `offset` are the first. */
	struct vmm_range_extents *extents;

	/* ---- Content in system memory ---- */
	struct vmm_backing backing;
	/* System-memory copy retained while it is resident (PAG-13); usually NULL. */
	struct vmm_retained_copy *retained;

	/* ---- CPU access ---- */
	uint32_t lock_flags;  /* of the outermost lock */
	uint32_t lock_data;   /* PrivateDriverData of the lock; identifies its swizzling range */
	uint32_t range_count; /* swizzling ranges that it alone uses (SWZ-07) */
	/* 2.x: the process that has locked it, or did last; 0: several have. Paging lock */
	uint32_t locked_by;
	struct vmm_os_view view;
	/* Set while some pages are locked in system memory (LOCK-21); usually NULL. */
	struct vmm_partial *partial;
	/* A second CPU address, of UseAlternateVA locks (SWZ-24); usually NULL. */
	struct vmm_alternate *alternate;
	/* 2.x: its pages in a CPU host aperture (SWZ-29); usually NULL. */
	struct vmm_host_mapping *host;

	/* ---- Order of eviction: written when the journal of uses is read (lru.c) ---- */
	struct vmm_policy_uses uses;
	bool is_kept; /* in segment->farthest of its class */
	/* With a policy of the embedder (state/valued.c, Q-350); else NULL. */
	struct vmm_valued *valued;

	/* ---- Renaming ---- */
	uint32_t handle;     /* the owner's handle of this instance */
	uint64_t generation; /* order in which instances became current (REN-17) */
	/* The submission that referenced it with DoNotRetireInstance (REF-06). */
	uint64_t not_retired_by;
	struct vmm_list sibling; /* in allocation->instances */
};

/*
 * Parts of instance->head: the segment id, and everything except segment and place. A nonzero
 * VMM_HEAD_SPECIAL part means that a submission must look closer.
 */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define VMM_HEAD_SEGMENT_SHIFT 48u
#define VMM_HEAD_SPECIAL       ((UINT64_C(1) << 48) - 1)
#else
#define VMM_HEAD_SEGMENT_SHIFT 8u
#define VMM_HEAD_SPECIAL       (~UINT64_C(0xFFFF))
#endif
_Static_assert(offsetof(struct vmm_instance, segment) == 6, "VMM_HEAD_ masks match the layout");
_Static_assert(offsetof(struct vmm_instance, updated) <= 2 * VMM_CACHE_LINE,
	       "what every submission touches is in two cache lines");
_Static_assert(offsetof(struct vmm_instance, not_written) <= 4 * VMM_CACHE_LINE,
	       "what most submissions touch is in the next two cache lines");

/* An offer that takes effect once the timeline has completed the packet (OFR-10). Paging lock. */
struct vmm_queued_offer {
	uint32_t timeline, handle;
	uint64_t sequence;
	const struct vmm_ref *after; /* not NULL: due when its departs_after are complete instead */
	struct vmm_list link;        /* in the list of queued offers */
};

/* One device's reference to an allocation: the object behind an allocation handle. */
struct vmm_ref {
	/* ---- What every submission reads. Constant, except that renaming changes `instance`
	 * (paging lock) ---- */
	struct vmm_allocation *allocation;
	void *kmd_open;                /* hDeviceSpecificAllocation */
	struct vmm_instance *instance; /* the instance this handle names */
	struct vmm_device *device;     /* NULL while the reference is being created */
	uint32_t handle;

	/* ---- Calls that name it. Paging lock ---- */
	/*
	 * Entries for this reference, so far, in the list of handles that a call checks; 0 at any
	 * other time.
	 */
	uint32_t times_listed VMM_GUARDED_BY(vmm_paging_lock_class);
	/*
	 * WDDM 2.x: MakeResident calls less Evict calls (RES-01); 0: not on the residency list of
	 * the device.
	 */
	uint32_t residency_count;

	/* ---- Ownership. Constant; the links are guarded by the process lock ---- */
	struct vmm_resource *resource; /* NULL: belongs to the device alone */
	struct vmm_list device_link, resource_link;
	bool creator;
	bool extra; /* a further handle of a renamed allocation, without a kmd_open to close */

	/* ---- Its end. Paging lock ---- */
	bool not_in_use; /* destroyed with AssumeNotInUse */
	/* Its handle is destroyed. */
	bool retired VMM_GUARDED_BY(vmm_paging_lock_class);
	/* The deallocation call that waits for its end (SynchronousDestroy); or NULL. */
	struct vmm_deallocation *ended_by;
	struct vmm_list zombie_link;

	/* ---- CPU access: guarded like instance->lock_count ---- */
	uint32_t lock_count; /* its part of instance->lock_count */

	/* ---- WDDM 2.x: residency list of the device. Paging lock ---- */
	/* `submissions` of the adapter when it was added to the residency list. */
	uint64_t listed_at VMM_GUARDED_BY(vmm_paging_lock_class);
	struct vmm_list residency_link; /* in device->residency */
	/*
	 * In device->leaving while packets that were queued when it left the list may need it:
	 * those with a number above left_from, up to left_at. (RES-07)
	 */
	struct vmm_list leaving_link;
	uint64_t left_from VMM_GUARDED_BY(vmm_paging_lock_class);
	uint64_t left_at VMM_GUARDED_BY(vmm_paging_lock_class);
	/* In the list of pending evictions (RES-07) ... */
	struct vmm_list departure_link;
	/* ... until these packets are complete. Its destruction waits for them, too (ALF-37). */
	uint64_t departs_after[VMM_TIMELINES_MAX];
};
_Static_assert(offsetof(struct vmm_ref, resource) <= VMM_CACHE_LINE,
	       "what every submission reads of a reference is in one cache line");

enum {
	VMM_MARK_OFFERED = 1,
	VMM_MARK_OFFER_QUEUED = 2,
	VMM_MARK_CONTENT_LOST = 4,
	VMM_MARK_REPLACED = 8,
	VMM_MARK_RENAMED = 16,
	VMM_MARK_SYNCHRONOUS = 32, /* paging (PAG-21) */
};

/*
 * Allocated from a pool of its size (pool.c of memory). The cost of a reference in a submission is
 * mostly the number of cache lines it touches. So the layout makes them two: the head of the ref,
 * which is read, and one line with the marks and the head of the first instance.
 */
struct vmm_allocation {
	_Alignas(VMM_CACHE_LINE) struct vmm_ref own; /* the creator's */

	/* ---- What the miniport and the creator said. Constant ---- */
	struct vmm_adapter *adapter;
	void *kmd_allocation;
	struct vmm_kmd_resource *kmd_resource;
	uint64_t size_bytes;  /* rounded up to pages (SEG-11) */
	uint64_t pitch_bytes; /* in a segment with PitchAlignment (SEG-10); 0: no such segment */
	uint64_t alignment;
	uint32_t flags;               /* DXGK_ALLOCATIONINFOFLAGS.Value */
	uint32_t flags2;              /* 3.0: DXGK_ALLOCATIONINFOFLAGS2.Value */
	uint32_t read_set, write_set; /* segment sets */
	uint32_t eviction_set;        /* segment set; 0 with GPU virtual addresses (PAG-26) */
	uint32_t preferred;           /* DXGK_SEGMENTPREFERENCE.Value */
	uint32_t hinted_banks; /* DXGK_SEGMENTBANKPREFERENCE.Value; 0 where it has no meaning */
	uint32_t renaming_limit;
	uint32_t source_id; /* VidPnSourceId of a primary */
	bool shared, primary;
	bool pinned; /* Overlay or Capture: placed at creation, stays there (PAG-18) */
	bool in_vpr; /* CreateInVpr: in the protected range of a segment (ALF-26) */
	const struct vmm_context_allocation *of_context; /* PRE-11; usually NULL */

	/* ---- Its creator. Constant, except as said ---- */
	/* The creator's; NULL for primaries and once the creator is gone (PAG-10). Paging lock. */
	void *kmd_device;
	/*
	 * The creator's, if that is an out-of-process client and the CPU may map it. Paging lock.
	 */
	struct vmm_os_viewer *viewer;
	struct vmm_account *account; /* the creator's */
	/* id of the creator's process, which may be gone; ids are not reused */
	uint32_t owner;

	/* ---- Lifetime. Paging lock ---- */
	uint32_t references; /* number of vmm_refs */
	/* Shared existing memory: its handles, the last of which releases the memory (ALF-40). */
	uint32_t open_handles;
	struct vmm_list all; /* in the list of all allocations */
	bool closing;        /* not shared, and its only handle has been closed */
	/* The miniport was notified that it ended; its placements wait for the GPU (ALF-37). */
	bool gone;
	/* Atomic flags that are read without the lock, except in the creation and the end: */
	/*
	 * It could not be evicted from a memory segment (PAG-20); submissions with it are refused.
	 */
	_Atomic bool content_lost;
	_Atomic bool reset_lost; /* content_lost because the adapter was reset (TDR-11) */
	_Atomic bool replaced;   /* a newer shared primary of its source exists (DMA-36) */
	/*
	 * Flips to it that are queued or on the screen: it is neither moved nor destroyed (PRS-06).
	 */
	_Atomic uint32_t displayed;

	/* ---- Placement. Paging lock ---- */
	uint32_t priority;
	/* Placement to restore when the adapter has power again. */
	uint8_t home_segment;
	uint64_t home_offset;
	struct vmm_range_extents *home_extents; /* NULL: contiguous from home_offset on */

	/* ---- Offers. Paging lock ---- */
	uint8_t offer;        /* 0 or D3DDDI_OFFER_PRIORITY */
	uint8_t offer_queued; /* the priority of queued_offer; 0: no offer is queued */
	bool decommit;        /* offered with AllowDecommit (OFR-14) */
	bool uncommitted;     /* a reclaim found no system memory for it: it stays offered */
	struct vmm_queued_offer queued_offer;

	/* ---- Renaming. Paging lock ---- */
	struct vmm_list instances;
	uint32_t instance_count;
	uint64_t generation;
	/* The newest instance referenced by the submission ordered_by so far (REF-03). */
	uint64_t ordered_by, ordered_generation;
	uint64_t used_generation; /* newest instance that a queued submission uses (REF-02) */

	/* ---- WDDM 2.x. Paging lock ---- */
	/* Number of residency lists it is on. */
	uint32_t listed VMM_GUARDED_BY(vmm_paging_lock_class);
	/* Its GPU virtual mappings, and the placement that the page tables have (or 0). */
	struct vmm_list mappings;
	uint64_t mapped_at VMM_GUARDED_BY(vmm_paging_lock_class);

	/* ---- What every submission touches: one cache line, with the head of `first` ---- */
	_Alignas(VMM_CACHE_LINE) _Atomic uint32_t
		marks;    /* VMM_MARK_: submissions must check the allocation */
	uint32_t serving; /* bit n: segment n is in both sets; segment 0 has no bit */
	struct vmm_instance first;
};
_Static_assert(offsetof(struct vmm_allocation, own) == 0 &&
		       offsetof(struct vmm_allocation, marks) % VMM_CACHE_LINE == 0 &&
		       offsetof(struct vmm_allocation, first.active) -
				       offsetof(struct vmm_allocation, marks) <=
			       VMM_CACHE_LINE,
	       "a submission reads two cache lines of an allocation");

/* ---- references by handle (ref.c) ---- */

/*
 * Looks up an allocation handle for a device. Returns NULL if the handle is not live in the
 * device's process, or belongs to another device. Caller holds the process lock.
 */
static inline struct vmm_ref *vmm_ref_lookup_locked(const struct vmm_device *device,
						    uint32_t handle)
	VMM_REQUIRES(vmm_process_lock_class)
{
	vmm_assert_held(&device->process->lock);
	struct vmm_ref *ref = (struct vmm_ref *)vmm_handle_lookup(&device->process->handles, handle,
								  VMM_HANDLE_ALLOCATION);

	/* Handles are per process, but a call may name allocations of its device only.
	 * (LOCK-31, DMA-16) */
	return vmm_likely(ref && ref->device == device) ? ref : NULL;
}
/*
 * Lists of at least VMM_LONG_LIST references do not fit in the nearest cache. For those a
 * submission prefetches the reference VMM_LIST_AHEAD elements ahead: the two cache lines that it
 * reads of nearly every reference. vmm_ref_prefetch only prefetches, so a stale handle does no
 * harm.
 */
enum { VMM_LONG_LIST = 400, VMM_LIST_AHEAD = 16 };
/* Returns how many references of such a list, from the first on, prefetch a later one. */
static inline uint32_t vmm_list_with_prefetch(uint32_t count)
{
	return count > VMM_LONG_LIST ? count - VMM_LIST_AHEAD : 0;
}
static inline void vmm_ref_prefetch(const struct vmm_ref *ref)
{
	vmm_prefetch((uintptr_t)ref);
	vmm_prefetch((uintptr_t)ref + offsetof(struct vmm_allocation, marks) -
		     offsetof(struct vmm_allocation, own));
}
static inline void vmm_ref_prefetch_handle(const struct vmm_handle_view *handles, uint32_t handle)
{
	vmm_ref_prefetch(vmm_handle_find(handles, handle, VMM_HANDLE_ALLOCATION));
}
/* Emits the finding for a handle that vmm_ref_lookup_locked refused. */
void vmm_ref_report(const struct vmm_device *device, uint32_t handle, const char *rule,
		    const char *what) VMM_REQUIRES(vmm_process_lock_class);

/* ---- allocations ---- */

/*
 * Sets or clears a VMM_MARK_ bit. Call it right after changing the member that the bit stands for:
 * submissions check the members only if a bit is set.
 */
static inline void vmm_allocation_mark(struct vmm_allocation *allocation, uint32_t mark, bool set)
{
	if (set)
		atomic_fetch_or_explicit(&allocation->marks, mark, memory_order_relaxed);
	else
		atomic_fetch_and_explicit(&allocation->marks, ~mark, memory_order_relaxed);
}

/* Returns whether a flip to the allocation is queued or on the screen. (PRS-06) */
static inline bool vmm_allocation_is_displayed(const struct vmm_allocation *allocation)
{
	return vmm_unlikely(atomic_load_explicit(&allocation->displayed, memory_order_relaxed) !=
			    0);
}

/*
 * ---- validity (valid.c) ----
 * Invariants that the modules assert where they are entered. They take constant time.
 */
/*
 * The instance has a segment in MEMORY and APERTURE only, and an address only there. Placement,
 * state and cache are of their enumerations. Without a fast lock none is enabled.
 */
bool vmm_instance_is_valid_locked(const struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * The allocation has whole pages and at least one instance. `serving` and the marks for offers and
 * renaming agree with the members that they stand for.
 */
bool vmm_allocation_is_valid_locked(const struct vmm_allocation *allocation)
	VMM_REQUIRES(vmm_paging_lock_class);

#endif
