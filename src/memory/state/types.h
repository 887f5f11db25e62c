/* SPDX-License-Identifier: MIT */
/*
 * What all tiers of this module share: the module's state, segments, paging buffers. The adapter's
 * paging lock guards everything in the module. The caller of a function of any tier holds it unless
 * the comment of the function says that no lock is held.
 *
 * Words used throughout:
 * - Placement: where an instance's content is (enum vmm_placement), and its range of a segment if
 *   it is in one.
 * - Preparation: the number of one attempt to make a packet's memory resident. The attempt stores
 *   it in each instance that the packet needs, and evicts no instance that has it.
 * - VMM_PENDING: the GPU uses the memory that would have to be evicted. Nothing changed; the caller
 *   waits for progress and retries.
 * - VMM_NO_VIDEO_MEMORY: there is no free space, and waiting for the GPU does not help.
 */
#ifndef VMM_MEMORY_TYPES_H
#define VMM_MEMORY_TYPES_H

#include "memory/memory.h"
#include "policy/order.h"
#include "policy/policy.h"
#include "policy/queue.h"
#include "range/range.h"

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

/*
 * The farthest candidates of a class as a search found them, for the next searches of its
 * preparation (residency/farthest.c).
 */
#define VMM_FARTHEST_MAX 64u
struct vmm_farthest_of { /* of that search; one with equal values may take its candidates */
	uint64_t submission, preparation;
	uint64_t low, high;
	uint32_t process;
	bool others, spare, locked_allowed, loss_allowed;
};
struct vmm_farthest {
	struct vmm_farthest_of of;
	uint32_t count;
	/* farthest first; NULL: left the list, was used, or changed its class (vmm_lru_forget) */
	struct vmm_instance *instance[VMM_FARTHEST_MAX];
};

struct vmm_segment {
	const struct vmm_port_segment *port;
	struct vmm_range_heap *heap;
	/* what a memory segment that is wholly CPU-visible is in, mostly a BAR; else NULL */
	const struct vmm_os_memory *cpu_memory;
	uint64_t cpu_offset; /* of the segment in cpu_memory and in bar */
	/* the BAR, also if only swizzling ranges make it visible (SWZ-24) */
	const struct vmm_os_memory *bar;
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
	uint64_t invalid_bytes; /* SEG-26; and of page tables */
	uint32_t table_count;   /* page tables in the segment, a range each */
	/* Of invalid_bytes: the tables of clients' processes, which may be evicted (VA-22). */
	uint64_t movable_bytes;
	uint64_t resident_bytes, peak_bytes;
	uint32_t residents;
	/* vmm_instance.lru; head: least recently used (lru.c) */
	struct vmm_list lru[VMM_CLASS_COUNT];
	/* vmm_valued.node, of VMM_POLICY_LEAST_VALUE; else empty (valued.c) */
	struct vmm_policy_queue queue[VMM_CLASS_COUNT];
	/* of VMM_POLICY_FARTHEST; else empty (residency/farthest.c) */
	struct vmm_farthest farthest[VMM_CLASS_COUNT];
	struct vmm_fair_share share[VMM_SHARES];
	uint32_t share_count;
};

/* Memory that a miniport has created for a context (context_allocation.c). */
struct vmm_context_allocation {
	struct vmm_list link; /* in device->context_allocations */
	struct vmm_list all;  /* in memory->context_allocations */
	struct vmm_device *device;
	const void *context; /* NULL: for all of the device's */
	bool initialized;
	struct vmm_ref ref; /* what its mappings at GPU virtual addresses name (VA-20) */
	struct vmm_allocation allocation;
};

/*
 * Entries of the journal of uses: for a policy that reads the order of use alone, and for one that
 * also keeps intervals and so should read every entry (lru.c).
 */
#define VMM_TOUCHED_FOR_ORDER     8192u
#define VMM_TOUCHED_FOR_INTERVALS 65536u
/* The use counter has the number of the submission above the number of the use in it. */
#define VMM_USE_SUBMISSION_SHIFT  20u
/* The entries of the journal from `first` on belong to that submission. */
struct vmm_use_mark {
	uint64_t submission;
	uint32_t first;
};
#define VMM_USE_MARKS_MAX 4096u

/* The allocator of struct vmm_allocation (pool.c). */
struct vmm_pool {
	struct vmm_pool_chunk *chunk;          /* the newest */
	uint32_t fresh;                        /* elements of it that have been used once */
	struct vmm_pool_free *free;            /* free list; guarded by the paging lock */
	_Atomic(struct vmm_pool_free *) given; /* freed since then; lock-free stack */
};

/* One paging buffer. It may be reused once the paging timeline has completed last_sequence. */
struct vmm_paging_buffer {
	struct vmm_backing backing;
	uint64_t bus_address;
	uint32_t segment, range; /* aperture mapping; segment 0: not mapped */
	uint64_t address;        /* for the GPU: in the aperture if mapped, else bus_address */
	void *private_data;
	uint64_t last_sequence; /* the newest paging packet with commands from this buffer */
	bool mapping;           /* its Map command is being written */
};
#define VMM_PAGING_BUFFERS_MAX 64u

/*
 * The paging buffers of one physical adapter: a ring that grows up to VMM_PAGING_BUFFERS_MAX. The
 * commands in [start, write) of the current buffer are not submitted yet; private_start and
 * private_write are the same offsets in the buffer's private data.
 */
struct vmm_paging_lane {
	uint32_t physical;
	struct vmm_paging_buffer buffer[VMM_PAGING_BUFFERS_MAX];
	uint32_t buffer_count, current_buffer;
	uint32_t start, write;
	uint32_t private_start, private_write;
	bool pending; /* commands were written here since the last flush */
};

/* Highest number of bytes resident in each segment, in all segments, and in backing stores. */
struct vmm_peaks {
	uint64_t segment_bytes[VMM_PORT_SEGMENTS_MAX], total_bytes, system_bytes;
};

struct vmm_peak_readers {
	/* from the adapter's start until the last read by any process */
	struct vmm_peaks since_start;
	/* one entry for each process that reads statistics repeatedly */
	struct vmm_list readers;
};

/*
 * The one call from the store (arena.c) to a later tier, made when a new backing store would exceed
 * the limit of system memory. Frees the backing store of one allocation that its client can spare,
 * and returns true; false if there is none. It neither creates a backing store nor places an
 * instance. The caller holds the paging lock. vmm_memory_create sets it to vmm_offer_decommit.
 * (OFR-14)
 */
typedef bool vmm_decommit_fn(struct vmm_memory *memory);

/*
 * The GPU addresses through which transfers and fills reach memory, in the address space of the
 * system paging process. Side 0 is for the source, side 1, which follows it, for the destination.
 * (PAG-26)
 */
struct vmm_paging_window {
	struct vmm_va *va; /* NULL: the adapter has no GPU virtual addresses */
	uint64_t base, bytes, side_bytes;
	/* Offset in both sides where the next chunk may begin; chunks before it may be in use. */
	uint64_t next;
	/* Entries beyond this offset of a side were never valid. */
	uint64_t mapped_end[2];
	/*
	 * With GPU_VIRTUAL: the addresses where a table of another process is mapped while
	 * its entries are written; the table that is mapped there, or NULL; whether one ever was.
	 */
	uint64_t table_base, table_bytes;
	const struct vmm_va_table *table;
	bool table_mapped;
	/* Address of the leaf tables that translate the window, in a row; 0: they have none. */
	uint64_t leaves;
};

/* Of unlock_wait.c. */
struct vmm_unlock_wait {
	/* The process for which space is searched, if its work may wait for unlocks; 0: none. */
	uint32_t process VMM_GUARDED_BY(vmm_paging_lock_class);
	/* The last search that failed found what another process has locked. */
	bool helps VMM_GUARDED_BY(vmm_paging_lock_class);
	bool pending VMM_GUARDED_BY(vmm_paging_lock_class); /* some work waits */
	/* Number of events that may end such a wait. */
	uint64_t releases VMM_GUARDED_BY(vmm_paging_lock_class);
};

/*
 * A CPU lock that waits until paging has brought its content into a segment. Other locks take
 * neither the space nor the place from the instance before the lock is tried again: otherwise locks
 * that need each other's space would page forever.
 */
struct vmm_arrival {
	struct vmm_list link;
	/*
	 * Nor do packets and paging operations. The lock waits for paging only (2.x), so they do
	 * not wait for each other.
	 */
	bool kept_from_all;
	const struct vmm_instance *instance; /* only compared: it may be destroyed meanwhile */
};

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
	uint64_t arenas_end;   /* end of the last slot in a pool */
	struct vmm_list arena_pools;
	uint64_t system_bytes, system_limit_bytes;
	uint64_t peak_system_bytes VMM_GUARDED_BY(vmm_paging_lock_class);
	vmm_decommit_fn *decommit;
	struct vmm_list deferred; /* vmm_deferred, oldest first */
	struct vmm_deferred *spare_deferred;
	/* Unlocked while the paging lock was held; written back before it is released. */
	struct vmm_list uploads;  /* vmm_retained_copy.waiting */
	struct vmm_list partials; /* vmm_partial.waiting */
	struct vmm_list arrivals; /* vmm_arrival.link */

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

	/* While a victim is evicted to free space: the cause; else VMM_CAUSE_FIRST. */
	enum vmm_paging_cause pressure VMM_GUARDED_BY(vmm_paging_lock_class);

	struct vmm_swizzling_range *ranges; /* range_count of them: grows on demand */
	uint32_t range_count;

	const struct vmm_policy_order *order; /* of candidates for eviction; constant */
	uint64_t picks;                       /* searches of a queue by value so far */
	/* Written at each submission: these members down to touched_kept share a cache line. */
	_Alignas(VMM_CACHE_LINE) uint64_t use_counter;
	/*
	 * Journal of the instances used since the lists of the segments were last sorted (lru.c).
	 */
	struct vmm_instance **touched;
	uint32_t touched_max;   /* the space of the journal; constant */
	uint32_t touched_count; /* touched_max + 1: the journal overflowed */
	/* Where submissions begin in the journal; NULL: the policy keeps no intervals. */
	struct vmm_use_mark *marks;
	uint32_t mark_count;
	/* After an overflow: entries that are still valid and have not been read. */
	uint32_t touched_kept;
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
	/* Its tables are being given memory: none of them is evicted. NULL: none. */
	const struct vmm_va *placing VMM_GUARDED_BY(vmm_paging_lock_class);
	struct vmm_paging_window window VMM_GUARDED_BY(vmm_paging_lock_class);
	struct vmm_trims *trims; /* NULL until a device registers */
	uint64_t residency_rounds VMM_GUARDED_BY(vmm_paging_lock_class);
	/* Searches so far that would have found space without packets that the GPU runs. */
	uint64_t blocked_searches VMM_GUARDED_BY(vmm_paging_lock_class);
	uint64_t paging_turns VMM_GUARDED_BY(vmm_paging_lock_class); /* given so far */
	/* The first packet to prepare waits for memory that the GPU uses. */
	bool packet_waits VMM_GUARDED_BY(vmm_paging_lock_class);
	struct vmm_unlock_wait unlock_wait;

	/* vmm_instance.lru: returns to its placement when power is back */
	struct vmm_list power_returns;
	/* New paging buffers are not mapped. */
	bool powering_down VMM_GUARDED_BY(vmm_paging_lock_class);
	/* A mapping in a CPU host aperture is to be removed. */
	bool host_unwanted VMM_GUARDED_BY(vmm_paging_lock_class);
	struct vmm_memory_statistics statistics; /* all but what statistics.c fills in */
	/* Of statistics.tallies.created; without a lock, because a creation ends without one. */
	_Atomic uint64_t created_count, created_bytes;
	uint64_t instances VMM_GUARDED_BY(vmm_paging_lock_class);
};

#endif
