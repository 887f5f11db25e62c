/* SPDX-License-Identifier: MIT */
/*
 * object: who exists, who owns whom, who may see whom. Adapters, processes, devices, contexts, resources,
 * allocations and their instances: their structures, handles and references. It decides nothing about memory
 * or scheduling; those modules keep their own state in the members that are marked as theirs.
 *
 * Locks, outermost first (docs/locking.md): submit, paging, process, state, sync.
 */
#ifndef VMM_OBJECT_OBJECT_H
#define VMM_OBJECT_OBJECT_H

#include <stdatomic.h>
#include "base/base.h"
#include "handle/handle.h"
#include "object/live.h"
#include "observe/observe.h"
#include "os/os.h"

#define VMM_RANK_SUBMIT  10u
#define VMM_RANK_PAGING  20u
#define VMM_RANK_PROCESS 40u
#define VMM_RANK_STATE   45u
#define VMM_RANK_SYNC    47u
#define VMM_RANK_SHARED  50u

#define VMM_SOURCES_MAX  16u /* of video present */
/* A good part of what it costs to put a thread to sleep and to wake it. */
#define VMM_LOCK_SPIN_NS 2000u

#define VMM_NODES_MAX     4u
/*
 * A timeline is a queue whose packets complete in order: one per node for render work and one for paging work (which
 * overtakes queued render work of its node, so the two cannot share an order). Behind them, where there are hardware
 * queues, one for all of those: their commands complete in any order.
 */
#define VMM_TIMELINES_MAX (VMM_NODES_MAX + 2u)
#define VMM_LINKS_MAX     4u /* physical adapters of a link */

struct vmm_port;
struct vmm_memory;
struct vmm_sched;
struct vmm_nt;
struct vmm_view_state;
struct vmm_section;
struct vmm_gate;
struct vmm_gates;
struct vmm_sync_driver;
struct vmm_context_allocation;
struct vmm_va;

/* One world: what several adapters and processes share. */
struct vmm_world {
	struct vmm_os *os;
	struct vmm_nt *nt;
	struct vmm_observe *observe;
	struct vmm_os_mutex
		shared_lock; /* rank SHARED: guards the members below, and what says so */
	struct vmm_handle_table shared; /* global handles of shared resources */
	struct vmm_list adapters;       /* vmm_adapter.world_link of those that run */
	struct vmm_list nt_handles;     /* nt_handle.c; guarded by the shared lock */
	struct vmm_list bundles; /* of memory: what NT handles of resources name; shared lock */
	struct vmm_os_mutex sync_lock; /* rank SYNC: who waits for which synchronization object */
	struct vmm_list sync_awaited;  /* of sync: fences that somebody waits for; guarded by it */
	_Atomic uint32_t sync_awaited_count; /* waits in them, or about to be; written under it */
	/* Given to synchronization objects, so that all openings of one have a name in events, and to owners of them. */
	_Atomic uint64_t sync_numbers, sync_owner_numbers;
	uint32_t next_process_id;
	uint32_t live_processes;
	_Atomic bool
		abandoned;   /* a miniport is not entered any more, so it frees no objects either */
	bool sharing_rights; /* the access of NT handles is enforced (SHR-10) */
	/* Of locks that nobody asks for: own_epoch, until somebody elsewhere is to see it. The page: shared lock. */
	_Atomic(_Atomic uint64_t *) epoch;
	_Atomic uint64_t own_epoch;
	struct vmm_os_memory epoch_page; /* a struct vmm_lock_epoch; then there is a keeper */
	struct vmm_os_keeper *keeper;    /* constant as long as anybody sleeps elsewhere */
	struct vmm_list epoch_sleepers;  /* shared lock */
	_Atomic uint32_t epoch_sleeper_count;
};

/* ---- epoch.c: what clients in other address spaces may do without asking (docs/adr/0002-locks-without-a-message.md) ---- */
void vmm_world_epoch_init(struct vmm_world *world);
void vmm_world_epoch_finish(struct vmm_world *world);
/* A descriptor of the page, a struct vmm_lock_epoch, to be read alone; the caller's. Linux. */
vmm_status vmm_world_share_epoch(struct vmm_world *world, int *fd) VMM_MUST_CHECK;
/* A word on which clients sleep who are to look at the epoch when it has changed. It must have been shared. */
struct vmm_epoch_sleepers {
	struct vmm_list link;
	_Atomic uint32_t *turns; /* raised before they are woken */
};
void vmm_world_add_sleepers(struct vmm_world *world, struct vmm_epoch_sleepers *sleepers);
void vmm_world_remove_sleepers(struct vmm_world *world, struct vmm_epoch_sleepers *sleepers);
void vmm_world_tell_sleepers(struct vmm_world *world);
static inline uint64_t vmm_world_epoch(struct vmm_world *world)
{
	return atomic_load(atomic_load(&world->epoch));
}
/*
 * Behind whatever has a door refuse a call that it let in before, or makes it wait, and behind a subscription: locks of other
 * address spaces come to the host again, until one finds there that nothing speaks against them.
 */
static inline void vmm_world_next_epoch(struct vmm_world *world)
{
	atomic_fetch_add(atomic_load_explicit(&world->epoch, memory_order_acquire), 1);
	if (vmm_unlikely(atomic_load(&world->epoch_sleeper_count)))
		vmm_world_tell_sleepers(world);
}

/* So far ahead of the oldest packet that is not complete, others' completion is noted; further on one has to look. */
#define VMM_TIMELINE_AHEAD 1024u

/*
 * Progress of one timeline. Its packets are numbered 1, 2, 3 ... in 64 bits; the DDI's 32-bit fence ids live in sched. Those of
 * one context complete in order, and all of paging; a context may be ahead of another one (SCH-05).
 */
struct vmm_timeline {
	_Atomic uint64_t
		queued; /* last number given out: under the submit lock (nodes) or the paging lock (paging) */
	_Atomic uint64_t
		completed; /* every packet up to here is complete; written under the state lock */
	/* Complete ahead of that: a ring of bits, and how many are set. Written under the state lock. */
	_Atomic uint32_t ahead;
	_Atomic uint64_t done[VMM_TIMELINE_AHEAD / 64];
	_Atomic uint64_t beyond; /* the newest that was too far ahead for it; 0: none is */
	struct vmm_list
		work; /* vmm_work.link, in order; guarded by the state lock; not of paging */
};

/* A packet of a node that is not complete, and what it names. Guarded by the state lock. */
struct vmm_work {
	struct vmm_list link;
	uint64_t sequence;
	const struct vmm_device *device;
	struct vmm_instance *const *instances; /* NULL elements name nothing */
	const uint8_t *writes;                 /* parallel to it; bit 0: it may write it */
	uint32_t count;
	bool prepared;  /* what it names is in memory for it */
	bool submitted; /* the miniport has it */
	bool held;      /* it comes behind a wait of its context that is not satisfied */
};

/* What clients are told about an adapter; its parts have the meaning of the DDI members of these names. */
struct vmm_adapter_value {
	char name[128];
	uint64_t value;
};
struct vmm_adapter_identity {
	char description[129];  /* QAI-06 */
	char driver_store[260]; /* REG-04 */
	uint16_t vendor, device, subsystem_vendor, subsystem;
	uint8_t revision;
	uint32_t bus_type, bus, slot;
	uint32_t graphics_preemption, compute_preemption;
	bool non_vga, smooth_rotation, per_engine_tdr, cross_adapter_resource;
	/* The miniport's words to its user-mode driver; given by whoever knows ports. */
	int32_t (*driver_private)(struct vmm_port *port, void *data, uint32_t size_bytes);
	struct vmm_adapter_value *values; /* of both its registry keys */
	uint32_t value_count;
};

struct vmm_adapter {
	struct vmm_world *world;
	struct vmm_os *os;
	struct vmm_observe *observe;
	struct vmm_port *port;
	struct vmm_memory *memory;
	struct vmm_sched *sched;
	const struct vmm_sync_driver *sync_driver; /* of sync, from whoever knows the port */
	/* Of sched: `ending` of a device is set; what its calls wait for and nobody will do is given up. No lock held. */
	void (*device_ends)(struct vmm_adapter *adapter);
	struct vmm_list world_link; /* guarded by world->shared_lock */
	uint32_t visitors; /* calls that vmm_adapter_get let in; guarded by world->shared_lock */
	_Atomic uint32_t left;      /* moves when one of them has gone; futex of who stops it */
	uint32_t luid;              /* ADP-05; 0 while it does not run */
	uint32_t interface_version; /* that its miniport registered */
	bool verify;                /* what takes time is looked at, too; constant after start */
	bool wddm2;                 /* 2.0 or later: residency lists instead of references */
	bool narrow_fences;         /* its GPU stores 32 bits at once: No64BitAtomics (MFN-06) */
	struct vmm_adapter_identity identity; /* constant after start */
	uint32_t physical_adapters;           /* constant after start; more than 1: it is a link */
	uint32_t node_count, paging_node;     /* constant after start; the lead's */
	uint32_t paging_timeline;             /* = node_count */
	bool hw_queues; /* it has hardware queues, whose timeline is the next; constant after start */

	struct vmm_os_mutex
		submit_lock; /* one submission at a time: sequence order is queue order */
	struct vmm_os_mutex
		paging_lock; /* placement of every instance, segments, paging buffers, scheduler-class DDIs */
	struct vmm_os_mutex
		state_lock; /* queues, node progress, device lists; never held across a DDI */

	/* The miniport's system context on each physical adapter, in which its paging runs (SCH-09); constant after start. */
	void *paging_context[VMM_LINKS_MAX];

	struct vmm_timeline timeline[VMM_TIMELINES_MAX];
	/* Not in one cache line with what those read who look for a packet's end without sleeping. */
	char apart_before[64];
	_Atomic uint32_t
		progress; /* moves whenever a node completes something; the futex of everybody who waits for a GPU */
	_Atomic uint32_t progress_waiters;
	char apart_after[64];
	uint32_t spin_ns; /* how long a lock looks for its packet before it sleeps; constant */
	_Atomic uint32_t zombies; /* closed references that wait for the GPU (memory) */
	_Atomic uint32_t
		paging_work; /* operations of paging queues and evictions that are due (memory) */
	_Atomic uint64_t submissions; /* how many there have been; moves under the submit lock */
	_Atomic bool trims_asleep;    /* the thread that asks devices to trim (memory) */
	_Atomic uint64_t captured;    /* that, once what the last of them uses counts as used */
	/* Memory was to move that commands of hardware queues hold: their contexts are to make way (SCH-11). */
	_Atomic bool hw_in_the_way;
	_Atomic bool removed;    /* nothing completes any more */
	_Atomic bool recovering; /* it is being reset: nobody but who does that gets on */
	_Atomic uint32_t resets; /* how often it was (TDR-07) */
	_Atomic bool
		closed; /* that, or it is stopping: every door answers DEVICE_REMOVED (LOCK-33, PNP-03) */

	uint32_t
		shared_primary[VMM_SOURCES_MAX]; /* global handles; guarded by world->shared_lock */
	struct vmm_list devices;                 /* guarded by the state lock */
	uint32_t allocation_count;               /* guarded by the paging lock */
	/*
	 * Moves when an instance gets another place, or is locked, or handed over (memory): what was found in its place before, and
	 * unlocked, still is as long as this is the same. Guarded by the paging lock.
	 */
	uint64_t placements;
	/*
	 * For how many paging packets, the last of which is that, a place was given back because they still read it (memory/private.c),
	 * since a packet was last prepared or an operation placed. Guarded by the paging lock.
	 */
	uint32_t turned_away;
	uint64_t turned_away_for;
};

/* The live handle of a device by its D3DKMT handle, to be found without a lock. */
struct vmm_device_name {
	_Atomic uint32_t handle; /* 0: of nobody, or just being changed */
	_Atomic(void *) live;
};
#define VMM_DEVICE_NAMES 16u /* power of two */

#define VMM_ENGINE_RESETS_MAX 64u /* VIDMM_TDR_LIMIT_MAX */

/*
 * What a process has taken of the host's memory, and may take (src/serve). Its own, its allocations' and that of each backing store
 * that was charged to it. No lock.
 */
struct vmm_account {
	_Atomic uint32_t references;
	_Atomic uint32_t refused; /* charges */
	_Atomic uint64_t bytes;
	uint64_t limit_bytes; /* 0: none; constant */
	/* Descriptors of its own that are kept for it beside handles: events of waits. */
	_Atomic uint32_t events;
	uint32_t events_limit; /* 0: none; constant once it has handles */
};
struct vmm_process;
struct vmm_account *vmm_account_create(uint64_t limit_bytes); /* NULL: no memory */
/* All of them take NULL, of a process that nobody counts for. */
struct vmm_account *vmm_account_get(struct vmm_account *account);
void vmm_account_put(struct vmm_account *account);
/* False: it would be beyond the limit, and is not charged. */
bool vmm_account_charge(struct vmm_account *account, uint64_t bytes) VMM_MUST_CHECK;
void vmm_account_refund(struct vmm_account *account, uint64_t bytes);
/* The same of what is queued for the process, to its account. False: and a reason says what it was; handle: whose queue, or 0. */
bool vmm_process_charge_queued(const struct vmm_process *process, uint32_t handle, const char *what,
			       uint64_t bytes) VMM_MUST_CHECK;
/* The same of an event; what is charged keeps the account, and putting it back puts that. */
bool vmm_account_take_event(struct vmm_account *account) VMM_MUST_CHECK;
void vmm_account_put_event(struct vmm_account *account);

struct vmm_process {
	_Atomic bool reserves;  /* memory of some adapter (PRI-14) */
	_Atomic bool addresses; /* it has GPU virtual addresses on some adapter */
	struct vmm_world *world;
	uint32_t id;
	char name[32];
	struct vmm_os_viewer
		*viewer; /* who carries out its views; NULL: it is in this one; constant */
	struct vmm_account *account; /* NULL: nobody counts; constant once it has handles */
	struct vmm_os_mutex lock;    /* rank PROCESS: handle table, reference lists */
	struct vmm_handle_table handles;
	struct vmm_list devices; /* guarded by lock */
	/* Of sync: what is no device's, and keyed mutexes; guarded by world->sync_lock. */
	struct vmm_list syncs, keyed;
	struct vmm_device_name device_names[VMM_DEVICE_NAMES]; /* written under it */
	_Atomic uint32_t priority_class; /* D3DKMT_SCHEDULINGPRIORITYCLASS (SCH-04) */
	_Atomic bool
		abandoned; /* nobody is there any more who would hear what a call of it waits for */
	_Atomic bool may_raise; /* it holds the increase-priority privilege (SCH-02) */
	_Atomic bool
		denied; /* it has hung engines too often: no device of it works any more (TDR-20) */
	uint32_t engine_resets; /* guarded by world->shared_lock, like the ring of when they were */
	uint64_t engine_reset_ns[VMM_ENGINE_RESETS_MAX];
};

/* From HUNG on the device is lost: with its adapter's or engine's reset (TDR-07), or with a page fault (TDR-19). */
enum vmm_device_error {
	VMM_DEVICE_OK,
	VMM_DEVICE_OUT_OF_MEMORY,
	VMM_DEVICE_FAULT,
	VMM_DEVICE_HUNG,
	VMM_DEVICE_RESET,
	VMM_DEVICE_PAGE_FAULT,
	VMM_DEVICE_PAGE_FAULT_RESET /* that, and then its adapter was reset */
};

/* What the miniport said of the page fault that a device was lost with (TDR-19). */
struct vmm_page_fault_record {
	uint64_t sequence_number, virtual_address;
	uint32_t stage, bind_table_entry, flags;
	uint32_t device_specific, code; /* of DXGK_FAULT_ERROR_CODE */
};

struct vmm_device {
	void *live;   /* hDevice of its callbacks (live.h) */
	bool stopped; /* by the adapter's stop, which alone looks at this: its handles are dead */
	bool paused; /* by a change of power, which alone looks at this: nobody enters it or its contexts */
	uint32_t handle;
	struct vmm_process *process;
	struct vmm_adapter *adapter;
	void *kmd_device;
	bool one_buffer;              /* GuaranteedDmaBufferContract (DMA-30) */
	struct vmm_list process_link; /* guarded by process->lock */
	struct vmm_list adapter_link; /* guarded by adapter->state_lock */
	struct vmm_list contexts;     /* guarded by process->lock */
	struct vmm_list resources;    /* guarded by process->lock */
	struct vmm_list refs;         /* vmm_ref.device_link; guarded by process->lock */
	_Atomic uint32_t error; /* enum vmm_device_error; once set it stays, but for a reset */
	struct vmm_page_fault_record page_fault; /* guarded by the state lock */
	_Atomic(void *)
		default_context; /* live handle of its first context; stays when that ends (DMA-09) */
	_Atomic bool ending;     /* somebody waits for the calls on it to come back */
	/* Its last packet on each timeline; written under the submit lock. */
	_Atomic uint64_t queued[VMM_TIMELINES_MAX];
	/* Presents that are not complete, flips that are not shown; 0 of a limit: the default (SUB-17). State lock. */
	uint32_t presents, present_limit, flips[VMM_SOURCES_MAX];
	/* From 2.0 on (memory's): what it keeps resident, and how much of it is for which segments. Paging lock. */
	struct vmm_list residency; /* vmm_ref.residency_link */
	struct vmm_list paging_queues;
	struct vmm_list context_allocations; /* memory's: its miniport's own (PRE-11); likewise */
	_Atomic bool has_context_memory;     /* or had; from the first of them on */
	struct vmm_residency_demand *demand;
	struct vmm_budget *budget;
	struct vmm_va *va; /* memory's: GPU virtual addresses; NULL: there are none; constant */
	_Atomic(struct vmm_gates *) gates; /* memory's: of its allocations (gate.h) */
	/* Guarded by world->sync_lock: struct vmm_sleeper; the rest is of sync. */
	struct vmm_list sleepers, syncs, sync_pages, sync_windows, sync_waits, sync_owners, keyed;
	void *door;           /* owned by the door that created the device */
	uint32_t umd_trim;    /* its registration for trim notifications; 0: none */
	void *sched_defaults; /* owned by sched: DXGK_DEVICEINFO figures */
};

/* A runtime resource of one device. Its allocations are its refs. */
struct vmm_resource {
	uint32_t handle;
	struct vmm_device *device;
	void *runtime_handle;    /* hResource of the runtime; NULL for opened resources */
	struct vmm_list link;    /* in device->resources */
	struct vmm_list refs;    /* vmm_ref.resource_link */
	struct vmm_share *share; /* NULL: private, or nothing allocated yet */
	bool opened;             /* from somebody else's share; released with its last allocation */
	bool shared;             /* announced by the runtime before its allocations (ALF-35) */
	bool busy; /* a call is creating or opening allocations of it; guarded by process->lock */
	struct vmm_kmd_resource *kmd; /* NULL for opened resources and ones without allocations */
};

/* The miniport's resource (hResource of DxgkDdiCreateAllocation): lives as long as an allocation or a handle of it. */
struct vmm_kmd_resource {
	void *handle;
	uint32_t references; /* guarded by the paging lock */
};

/* What several opens of one shared resource have in common. */
struct vmm_share {
	uint32_t global_handle; /* 0: it is shared by NT handles; guarded by world->shared_lock */
	uint32_t references; /* resources and bundles that name it; guarded by world->shared_lock */
	struct vmm_list orphan_link; /* in memory->orphans; guarded by world->shared_lock */
	struct vmm_adapter *adapter;
	uint32_t count;
	struct vmm_allocation **allocations; /* each holds a reference of its own */
	void *private_data; /* of the resource; copies, for DxgkDdiOpenAllocation by others (ALF-34) */
	uint32_t private_bytes;
	void *runtime_data; /* of the runtime, for whoever opens it (ALC-08) */
	uint32_t runtime_bytes;
	void **item_private_data;
	uint32_t *item_private_bytes;
	bool standard; /* the private data is the miniport's answer to us, of which no client knows (ROP-03) */
	struct vmm_section *section; /* of a cross-adapter resource (ALF-39); NULL for all others */
};

enum vmm_place {
	VMM_PLACE_FRESH,    /* no content yet: reads as zero */
	VMM_PLACE_SYSTEM,   /* content in the system backing store */
	VMM_PLACE_MEMORY,   /* in a memory segment */
	VMM_PLACE_APERTURE, /* backing pages mapped in an aperture segment */
	VMM_PLACE_LOST      /* offered content taken */
};

enum vmm_instance_state { VMM_INSTANCE_CURRENT, VMM_INSTANCE_PREVIOUS, VMM_INSTANCE_RETIRED };

/* Pages of system memory that back an instance. */
struct vmm_backing {
	uint64_t size_bytes;
	uint32_t arena; /* index + 1; 0: none */
	uint32_t node;  /* range node in the arena */
	char *address;  /* our permanent mapping */
	char *seen_at; /* where a client that is apart has the same memory as its own; NULL: nowhere */
	struct vmm_section *section; /* of whose memory it is; NULL for most */
	void *mdl;                   /* PMDL over these pages; cached while the backing lives */
	void **parts; /* LinkInstanced: a PMDL for each adapter of the link, over its part; else NULL */
	struct vmm_account *account; /* that its bytes are charged to, or NULL */
};

struct vmm_allocation;
struct vmm_kept;
struct vmm_partial;
struct vmm_alternate;

/* In whose hands the content is, where a GPU does not look into the CPU's caches (ALF-15). */
enum vmm_cache { VMM_CACHE_CLEAN, VMM_CACHE_CPU, VMM_CACHE_GPU };

/*
 * One place and content of an allocation; more than one only while it is being renamed (REN). What every submission that
 * names it looks at or writes comes first: two lines of cache.
 */
struct vmm_instance {
	/* guarded by the adapter's paging lock, but for what is said to be atomic */
	union {
		struct {
			uint32_t lock_count; /* while its gate is shut: see vmm_locks */
			bool gated; /* its gate is open, or says that it is busy (gate.h) */
			bool handover; /* the CPU had it: something is to be done before the GPU uses it */
			uint8_t segment; /* id, in MEMORY and APERTURE */
			uint8_t place;   /* enum vmm_place */
		};
		uint64_t head; /* all of these in one load */
	};
	uint64_t address;  /* where the GPU finds it: segment base + offset (DMA-18); 0: nowhere */
	uint64_t prepared; /* the preparation that has already made it resident */
	uint64_t last_use; /* the adapter's use counter */
	/*
	 * Per timeline: the last prepared packet whose memory it is (eviction waits for these), and the last packet that uses /
	 * writes it by the allocation list (locks and destruction wait for these). Relaxed atomics: written under the submit or
	 * paging lock, read by anybody.
	 */
	_Atomic uint64_t active[VMM_TIMELINES_MAX];
	_Atomic uint64_t queued[VMM_TIMELINES_MAX];
	/* The last paging packet that updates the GPU's copy (PAG-14): the GPU waits for it, the CPU does not. */
	_Atomic uint64_t updated;
	_Atomic uint64_t written[VMM_TIMELINES_MAX];
	struct vmm_allocation *allocation;
	struct vmm_gate
		*gate; /* where locks are counted while there is nothing else to do; or NULL */
	uint8_t state; /* enum vmm_instance_state */
	uint8_t class_index; /* enum vmm_policy_class of the list it is in */
	bool gpu_wrote;      /* since it was paged in (PAG-13, PAG-31) */
	uint8_t newest; /* LinkMirrored: the adapter of the link whose GPU wrote last since then */
	/* Bit per timeline: several contexts have read it since it was last written (sched's); under the submit lock. */
	uint8_t shared_use;
	bool not_written;    /* 2.x: whoever evicts it next may drop the segment's copy (PRI-10) */
	bool announced;      /* 2.x: the miniport was last told that it is resident (PAG-25) */
	bool held;           /* 2.x: locked while nowhere, and stays out until unlocked (LOCK-48) */
	bool discarded;      /* offered content was taken; reported by the next reclaim */
	bool view_current;   /* the view shows the place of now */
	uint8_t cache;       /* enum vmm_cache; of Cached allocations */
	bool linear;         /* Swizzled, and its content in system memory is not (SWZ-09) */
	uint32_t lock_flags; /* of the outermost lock */
	uint64_t wanted;     /* the preparation whose buffer lists it: not a victim for that one */
	uint64_t
		bound; /* the preparation whose buffer has it bound at a split: it stays (SPL-05) */
	/* The rest of a split buffer, and the first of its patch locations that names it (vmm_memory_expect). */
	uint64_t rest;
	uint32_t needed_at;
	uint64_t offset;      /* in the segment */
	uint32_t range;       /* node in the segment's heap */
	uint32_t lock_data;   /* its PrivateDriverData, which names its swizzling range */
	uint32_t range_count; /* swizzling ranges that are its own (SWZ-07) */
	uint32_t handle;      /* the owner's handle of this instance */
	uint64_t generation;  /* order in which instances became current (REN-17) */
	uint64_t kept_by;     /* the submission that named it with DoNotRetireInstance (REF-06) */
	struct vmm_list lru;  /* in the segment's class list while resident */
	struct vmm_list sibling; /* in allocation->instances */
	struct vmm_backing backing;
	struct vmm_kept
		*kept; /* its system copy stays while it is resident (PAG-13); NULL for most */
	struct vmm_partial
		*partial; /* some pages are locked in system memory (LOCK-21); NULL for most */
	struct vmm_os_view view;
	struct vmm_alternate *
		alternate; /* a further address, of what is in system memory (SWZ-24); NULL for most */
	bool own; /* a private object lies over its place in a memory segment (memory/private.c) */
	struct vmm_host_mapping
		*host; /* 2.x: its pages in a CPU host aperture (SWZ-29); NULL for most */
};

/* Of instance->head: is there anything but where it is? And in which segment that is. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define VMM_HEAD_SEGMENT_SHIFT 48u
#define VMM_HEAD_SPECIAL       ((UINT64_C(1) << 48) - 1)
#else
#define VMM_HEAD_SEGMENT_SHIFT 8u
#define VMM_HEAD_SPECIAL       (~UINT64_C(0xFFFF))
#endif
_Static_assert(offsetof(struct vmm_instance, segment) == 6, "as these say");

/* OFR-10: it counts once the timeline has completed that packet. */
struct vmm_queued_offer {
	uint32_t timeline, handle;
	uint64_t sequence;
	struct vmm_list link; /* in memory's list while there is one */
};

/* One device's hold on an allocation: what a handle names. */
struct vmm_ref {
	/* What every submission looks at. */
	struct vmm_allocation *allocation;
	void *kmd_open;                /* hDeviceSpecificAllocation */
	struct vmm_instance *instance; /* the one this handle names */
	struct vmm_device *device;     /* NULL while it is being made: nobody's yet */
	uint32_t handle;
	struct vmm_resource *resource; /* NULL: belongs to the device alone */
	bool creator;
	bool extra;          /* a further handle of a renamed allocation: owns no open of its own */
	uint32_t lock_count; /* its part of instance->lock_count, with the same guard */
	/* From 2.0 on; guarded by the paging lock. */
	uint32_t
		residency_count; /* MakeResident less Evict (RES-01); 0: not on the device's list */
	uint64_t listed_at;      /* adapter->submissions when it came onto the list */
	struct vmm_list residency_link; /* in device->residency */
	struct vmm_list departure_link; /* in memory's list of those to be evicted (RES-07) ... */
	uint64_t departs_after[VMM_TIMELINES_MAX]; /* ... once these packets are complete; so is its
						      end waited for (ALF-37) */
	bool not_in_use;                           /* so its client says who ended it */
	struct vmm_deallocation *ended_by; /* whose caller waits for its end; NULL: nobody */
	struct vmm_list device_link, resource_link, zombie_link;
};

enum {
	VMM_MARK_OFFERED = 1,
	VMM_MARK_OFFER_QUEUED = 2,
	VMM_MARK_CONTENT_LOST = 4,
	VMM_MARK_REPLACED = 8,
	VMM_MARK_RENAMED = 16,
	VMM_MARK_SYNCHRONOUS = 32, /* paging (PAG-21) */
};

/*
 * In a room of its own (pool.c of memory). Of what each reference of a submission costs nearly all is the lines of cache that are
 * touched: here the begin of its ref, which is read, and one with the marks and the begin of its first instance.
 */
struct vmm_allocation {
	_Alignas(64) struct vmm_ref own; /* the creator's */
	struct vmm_adapter *adapter;
	uint64_t size_bytes;  /* rounded to pages (SEG-11) */
	uint64_t pitch_bytes; /* in a segment with PitchAlignment (SEG-10); 0: it goes to none */
	uint64_t alignment;
	uint32_t flags2;       /* 3.0: DXGK_ALLOCATIONINFOFLAGS2.Value */
	uint32_t eviction_set; /* segment set */
	uint32_t preferred;    /* DXGK_SEGMENTPREFERENCE.Value */
	uint32_t hinted_banks; /* DXGK_SEGMENTBANKPREFERENCE.Value; 0 where it has no meaning */
	uint32_t renaming_limit;
	uint32_t priority;
	void *kmd_allocation;
	struct vmm_os_viewer
		*viewer; /* of its creator, if that is apart and the CPU may see it; paging lock */
	struct vmm_account *account; /* of its creator; constant */
	uint32_t owner;      /* process that created it; it may be gone, its id comes never again */
	uint32_t references; /* vmm_refs; guarded by the paging lock */
	bool shared, primary;
	uint32_t source_id; /* VidPnSourceId of a primary */
	/* Flips to it that are queued, or on the screen: it stays where it is, and is not destroyed (PRS-06). */
	_Atomic uint32_t shown;
	bool closing; /* the only handle of a private one is gone */
	bool gone; /* the miniport has been told of its end; its places wait for the GPU (ALF-37) */
	bool pinned;             /* Overlay or Capture: placed at creation, stays there (PAG-18) */
	bool in_vpr;             /* CreateInVpr: in the protected range of a segment (ALF-26) */
	_Atomic bool reset_lost; /* content_lost because the adapter was reset (TDR-11) */
	uint8_t home_segment;    /* where it returns to when the adapter has power again */
	uint64_t home_offset;
	void *kmd_device; /* the creator's; NULL for primaries and once the creator is gone (PAG-10) */
	struct vmm_kmd_resource *kmd_resource;
	const struct vmm_context_allocation *of_context; /* PRE-11; NULL for most */
	uint32_t listed; /* 2.x: residency lists it is on; guarded by the paging lock */
	/* Of memory: where GPUs have it mapped by virtual address, and which place the tables name; likewise. */
	struct vmm_list mappings;
	uint64_t mapped_at; /* 0: none */
	uint64_t generation;
	uint64_t ordered_by,
		ordered_generation; /* newest instance that submission has named so far (REF-03) */
	uint64_t used_generation;   /* newest instance that a queued submission uses (REF-02) */
	struct vmm_list instances;  /* guarded by the paging lock */
	struct vmm_list all;        /* in memory's list, likewise */
	struct vmm_queued_offer queued_offer;
	uint32_t flags;               /* DXGK_ALLOCATIONINFOFLAGS.Value */
	uint32_t read_set, write_set; /* segment sets */
	uint32_t instance_count;
	uint8_t offer; /* 0 or D3DDDI_OFFER_PRIORITY; guarded by the paging lock, as is the next */
	uint8_t offer_queued; /* the priority of queued_offer; 0: there is none */
	_Atomic bool
		content_lost; /* it could not leave a memory segment (PAG-20); no more rendering with it */
	_Atomic bool replaced; /* a newer shared primary of its source exists (DMA-36) */
	bool decommit;         /* offered with AllowDecommit (OFR-14) */
	bool uncommitted;      /* a reclaim found no system memory for it: it stays offered */
	_Alignas(64) _Atomic uint32_t marks; /* VMM_MARK_: a reference to it has to be looked at */
	uint32_t serving; /* bit n: segment n is in both sets; none is for segment 0 */
	struct vmm_instance first;
};

/* ---- lifetime (object.c) ---- */
vmm_status vmm_world_init(struct vmm_world *world, struct vmm_os *os, struct vmm_nt *nt,
			  struct vmm_observe *observe);
void vmm_world_finish(struct vmm_world *world);
vmm_status vmm_process_create(struct vmm_world *world, const char *name,
			      struct vmm_process **process) VMM_MUST_CHECK;
void vmm_process_destroy(struct vmm_process *process); /* its devices are gone */
void vmm_adapter_init(struct vmm_adapter *adapter, struct vmm_world *world);
void vmm_adapter_finish(struct vmm_adapter *adapter);
/* From here on clients find it, until it is withdrawn. */
void vmm_adapter_publish(struct vmm_adapter *adapter, uint32_t luid);
void vmm_adapter_withdraw(struct vmm_adapter *adapter);
/* Waits until whoever found it before it was withdrawn has put it back. No lock held. */
void vmm_adapter_await_visitors(struct vmm_adapter *adapter);
/* It stays until vmm_adapter_put. NULL: none has that LUID. */
struct vmm_adapter *vmm_adapter_get(struct vmm_world *world, uint32_t luid);
/* The same, by the order of their start; NULL: there are fewer. */
struct vmm_adapter *vmm_adapter_nth(struct vmm_world *world, uint32_t index);
void vmm_adapter_put(struct vmm_adapter *adapter); /* NULL: nothing */
uint32_t vmm_adapter_count(struct vmm_world *world);

/* Look-up of an allocation's handle for a device. NULL: not live, not of this device's process, or of another device. */
static inline struct vmm_ref *vmm_ref_lookup_locked(const struct vmm_device *device,
						    uint32_t handle)
{
	struct vmm_ref *ref = (struct vmm_ref *)vmm_handle_lookup(&device->process->handles, handle,
								  VMM_HANDLE_ALLOCATION);

	/* Handles are the process's, but a call may only name allocations of its own device (LOCK-31, DMA-16). */
	return vmm_likely(ref && ref->device == device) ? ref : NULL;
}
/*
 * Of a list with so many what is looked at is not in the nearest cache: it is asked for that many elements before. What a submission
 * looks at of who a handle names is, of nearly all, in these two lines; nothing is read, whatever is there.
 */
enum { VMM_LONG_LIST = 400, VMM_LIST_AHEAD = 16 };
static inline void vmm_ref_expect(const struct vmm_handle_view *handles, uint32_t handle)
{
	uintptr_t ref = (uintptr_t)vmm_handle_find(handles, handle, VMM_HANDLE_ALLOCATION);

	vmm_prefetch(ref);
	vmm_prefetch(ref + offsetof(struct vmm_allocation, marks) -
		     offsetof(struct vmm_allocation, own));
}
/* Emits the finding for a handle that look-up refused. */
void vmm_ref_report(const struct vmm_device *device, uint32_t handle, const char *rule,
		    const char *what);

/*
 * A device by its handle, without a lock: what live.h knows it by, which may have ended by now. NULL: look it up. It gets its
 * name when it has been looked up, and loses it with its handle; process lock held.
 */
void vmm_device_set_name_locked(struct vmm_process *process, uint32_t handle, void *live);
void vmm_device_drop_name_locked(struct vmm_process *process, uint32_t handle);
static inline void *vmm_device_by_name(const struct vmm_process *process, uint32_t handle)
{
	const struct vmm_device_name *name =
		&process->device_names[handle >> VMM_HANDLE_INDEX_SHIFT & (VMM_DEVICE_NAMES - 1)];

	if (!handle || atomic_load_explicit(&name->handle, memory_order_acquire) != handle)
		return NULL;
	void *live = atomic_load_explicit(&name->live, memory_order_acquire);
	/* Who writes another one has taken the name away before. */
	return atomic_load_explicit(&name->handle, memory_order_relaxed) == handle ? live : NULL;
}

/*
 * The process on whose behalf the calling thread is inside the miniport: handles that the miniport asks about are that
 * process's. Returns what it was before; give that back afterwards.
 */
struct vmm_process *vmm_calling_process_set(struct vmm_os *os, struct vmm_process *process);
struct vmm_process *vmm_calling_process(struct vmm_os *os);

/* ---- progress (progress.c) ---- */
/* The packets themselves: in with its number, out when complete, which its timeline then says. State lock held. */
void vmm_work_add_locked(struct vmm_timeline *timeline, struct vmm_work *work);
void vmm_work_done_locked(struct vmm_timeline *timeline, struct vmm_work *work);
bool vmm_timeline_is_ahead(const struct vmm_adapter *adapter, uint32_t timeline, uint64_t sequence);
/* Is every packet up to that one complete? */
static inline bool vmm_timeline_passed(const struct vmm_adapter *adapter, uint32_t timeline,
				       uint64_t sequence)
{
	return vmm_likely(sequence <= atomic_load_explicit(&adapter->timeline[timeline].completed,
							   memory_order_acquire));
}
/* Is that packet complete, and with it what its context queued before? Of a node: not with the state lock held. */
static inline bool vmm_timeline_done(const struct vmm_adapter *adapter, uint32_t timeline,
				     uint64_t sequence)
{
	return vmm_timeline_passed(adapter, timeline, sequence) ||
	       (vmm_unlikely(atomic_load_explicit(&adapter->timeline[timeline].ahead,
						  memory_order_relaxed)) &&
		vmm_timeline_is_ahead(adapter, timeline, sequence));
}
/* Are all packets of the device up to that one complete? Not with the state lock held. */
bool vmm_device_done(const struct vmm_device *device, uint32_t timeline, uint64_t sequence);

static inline uint32_t vmm_hw_timeline(const struct vmm_adapter *adapter)
{
	return adapter->paging_timeline + 1;
}
static inline uint32_t vmm_timeline_count(const struct vmm_adapter *adapter)
{
	return adapter->node_count + 1 + (adapter->hw_queues ? 1 : 0);
}

/* Where the paging of a physical adapter runs: each has that node (SCH-09). */
static inline uint32_t vmm_paging_node_of(const struct vmm_adapter *adapter, uint32_t physical)
{
	return adapter->paging_node + physical * (adapter->node_count / adapter->physical_adapters);
}

enum vmm_use { VMM_USE_ANY, VMM_USE_WRITE, VMM_USE_ACTIVE };
/*
 * Another prepared packet has its memory. One that came behind a wait is prepared after packets with higher numbers: the highest is
 * what counts, the others are looked for (vmm_instance_busy).
 */
static inline void vmm_instance_activate(struct vmm_instance *instance, uint32_t timeline,
					 uint64_t sequence)
{
	if (vmm_likely(sequence >
		       atomic_load_explicit(&instance->active[timeline], memory_order_relaxed)))
		atomic_store_explicit(&instance->active[timeline], sequence, memory_order_relaxed);
}
/* Is a packet with a higher number than that prepared and not complete? State lock not held. */
bool vmm_timeline_is_overtaken(struct vmm_adapter *adapter, uint32_t timeline, uint64_t sequence);
/* The first timeline on which that use is not complete, and the packet; false: idle. Not with the state lock held. */
bool vmm_instance_busy(const struct vmm_instance *instance, enum vmm_use use, uint32_t *timeline,
		       uint64_t *sequence);
/* Does a node's packet that is not complete name it; has the miniport all of those? */
bool vmm_instance_named(const struct vmm_instance *instance, bool *submitted);
/* Is a packet that may write it, up to that one of the timeline, not complete? State lock held. */
bool vmm_instance_unwritten_locked(const struct vmm_instance *instance, uint32_t timeline,
				   uint64_t sequence);
/* As vmm_instance_busy for any use, without a question. */
static inline bool vmm_instance_is_idle(const struct vmm_instance *instance)
{
	const struct vmm_adapter *adapter = instance->allocation->adapter;
	const struct vmm_timeline *at = adapter->timeline;
	const _Atomic uint64_t *last = instance->queued;

	for (uint32_t left = vmm_timeline_count(adapter); left; left--, at++, last++)
		if (vmm_unlikely(atomic_load_explicit(last, memory_order_relaxed) >
				 atomic_load_explicit(&at->completed, memory_order_acquire)))
			return !vmm_instance_busy(instance, VMM_USE_ANY, NULL, NULL);
	return true;
}
/*
 * Sleeps until the timeline has completed the packet, or the adapter is removed (VMM_DEVICE_REMOVED). No core lock held.
 * Emits VIDMM_EVENT_WAIT with the reason. waited_ns may be NULL.
 */
vmm_status vmm_wait_timeline(struct vmm_adapter *adapter, uint32_t timeline, uint64_t sequence,
			     uint32_t reason, uint64_t *waited_ns) VMM_MUST_CHECK;
/* The same of a lock, by a call that is in the device. VMM_PENDING: that is paused, and the call has to leave it first (PNP-05). */
vmm_status vmm_wait_for_lock(struct vmm_device *device, uint32_t timeline, uint64_t sequence,
			     uint64_t *waited_ns) VMM_MUST_CHECK;
/* Is everything up to that packet complete or held; or, `prepared`, not prepared? State lock not held. */
bool vmm_timeline_quiet(struct vmm_adapter *adapter, uint32_t timeline, uint64_t sequence,
			bool prepared);
/* The same for that packet and all before it; what is held by a wait of its context is not waited for. */
vmm_status vmm_wait_timeline_passed(struct vmm_adapter *adapter, uint32_t timeline,
				    uint64_t sequence, uint32_t reason) VMM_MUST_CHECK;
/* Sleeps until any timeline completes something after `seen` (read of adapter->progress). */
vmm_status vmm_wait_progress(struct vmm_adapter *adapter, uint32_t seen,
			     uint32_t reason) VMM_MUST_CHECK;
/* Called after a timeline moved. */
void vmm_progress_signal(struct vmm_adapter *adapter);
/*
 * A thread that may sleep for ever inside a device. Whoever wants it out sets its condition first and disturbs the device
 * then; the sleeper puts itself into the list, and looks for such conditions then: one of the two sees the other.
 */
enum { VMM_SLEEPER_DONE = 1, VMM_SLEEPER_DISTURBED = 2 };
struct vmm_sleeper {
	struct vmm_list link;   /* in device->sleepers */
	_Atomic uint32_t state; /* its futex: bits, 0 while it sleeps */
};
void vmm_device_disturb(struct vmm_device *device);
/* All its devices; takes the state lock. */
void vmm_adapter_disturb(struct vmm_adapter *adapter);
/* vmm_live_end of a device, whose calls that could wait for ever come back first. */
struct vmm_device *vmm_device_end(const void *handle) VMM_MUST_CHECK;
/*
 * whoever made the process's calls has gone: those that wait inside the core come back, with an error, and none waits any more. What
 * its contexts have queued behind waits is given up, as at the end of its devices (MFN-18). vidmm_process_close can follow when
 * the calls are back. No lock held; keyed mutexes are sync's.
 */
void vmm_process_disturb(struct vmm_process *process);
/* Sleeps while the adapter is being reset. The submit lock held at most. */
void vmm_await_recovery(struct vmm_adapter *adapter);

/* The first error is the one that is told. */
static inline void vmm_device_fail(struct vmm_device *device, enum vmm_device_error error)
{
	uint32_t none = VMM_DEVICE_OK;

	atomic_compare_exchange_strong(&device->error, &none, (uint32_t)error);
	vmm_world_next_epoch(device->process->world);
}

/* What one of the members says that a submission would have to look at; the mark follows it at once. */
static inline void vmm_allocation_mark(struct vmm_allocation *allocation, uint32_t mark, bool set)
{
	if (set)
		atomic_fetch_or_explicit(&allocation->marks, mark, memory_order_relaxed);
	else
		atomic_fetch_and_explicit(&allocation->marks, ~mark, memory_order_relaxed);
}

/* PRS-06 */
static inline bool vmm_allocation_is_shown(const struct vmm_allocation *allocation)
{
	return vmm_unlikely(atomic_load_explicit(&allocation->shown, memory_order_relaxed) != 0);
}

/*
 * May a client do by itself what comes to these two events or to a door call (epoch.c)? Not while somebody listens. Looked
 * at after the epoch: who changes any of it goes on to the next one behind that.
 */
bool vmm_device_may_go_unseen(const struct vmm_device *device, uint32_t event, uint32_t other);

/* What calls on a device in error answer, its adapter being there (TDR-07, TDR-19). */
static inline vmm_status vmm_device_answer(const struct vmm_device *device)
{
	uint32_t error = atomic_load_explicit(&device->error, memory_order_relaxed);

	if (vmm_likely(error == VMM_DEVICE_OK))
		return VMM_OK;
	return error == VMM_DEVICE_HUNG || error == VMM_DEVICE_RESET ||
			       error == VMM_DEVICE_PAGE_FAULT_RESET
		       ? VMM_DEVICE_REMOVED
		       : VMM_GPU_EXCEPTION;
}

/* TDR-07: it can only be ended. */
static inline bool vmm_device_lost(const struct vmm_device *device)
{
	return vmm_unlikely(atomic_load_explicit(&device->error, memory_order_relaxed) >=
			    VMM_DEVICE_HUNG);
}

#endif
