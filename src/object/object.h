/* SPDX-License-Identifier: MIT */
/*
 * object: the structures that several modules of the core share: worlds, adapters, processes,
 * devices, resources; their owners, handles and lifetimes. It decides nothing about memory or
 * scheduling. The modules memory and sched do: each has its own structures (memory/allocation.h
 * has allocations and their instances), and the members here whose comments name it.
 *
 * A comment names the lock that guards a member. A member without one is constant once the object
 * is visible to other threads.
 *
 * Locks, outermost first: submit, paging, process, state, sync, shared (docs/locking.md).
 */
#ifndef VMM_OBJECT_OBJECT_H
#define VMM_OBJECT_OBJECT_H

#include <stdatomic.h>
#include <vidmm/eviction.h>
#include <vidmm/policy.h>
#include "base/base.h"
#include "handle/handle.h"
#include "object/hazard.h"
#include "object/locks.h"
#include "observe/observe.h"
#include "os/os.h"

#define VMM_RANK_SUBMIT  10u
#define VMM_RANK_PAGING  20u
#define VMM_RANK_PROCESS 40u
#define VMM_RANK_STATE   45u
#define VMM_RANK_SYNC    47u
#define VMM_RANK_SHARED  50u

#define VMM_SOURCES_MAX  16u /* video present sources */
/* How long a CPU lock spins before it sleeps: about the cost of one sleep and one wake-up. */
#define VMM_LOCK_SPIN_NS 2000u

#define VMM_NODES_MAX     4u
/*
 * A timeline numbers the packets of one queue. Each node has one for render work; paging has one
 * more, because paging overtakes the queued render work of its node. All hardware queues of an
 * adapter share the last one; their commands complete in any order.
 */
#define VMM_TIMELINES_MAX (VMM_NODES_MAX + 2u)
#define VMM_LINKS_MAX     4u /* physical adapters of a linked adapter */

struct vmm_port;
struct vmm_memory;
struct vmm_sched;
struct vmm_nt;
struct vmm_view_state;
struct vmm_section;
struct vmm_fast_lock_table;
struct vmm_sync_driver;
struct vmm_va;
struct vmm_allocation;
struct vmm_instance;

/* What the adapters and processes of one library instance share. */
struct vmm_world {
	struct vmm_os *os;
	struct vmm_nt *nt;
	struct vmm_observe *observe;
	/* Rank SHARED. Guards the next five members. */
	struct vmm_os_mutex shared_lock;
	struct vmm_handle_table shared; /* global handles of shared resources */
	struct vmm_list adapters;       /* vmm_adapter.world_link of the published adapters */
	struct vmm_list nt_handles;     /* nt_handle.c */
	struct vmm_list bundles;        /* memory: the resources that NT handles name */
	/* The number of nt_handles; read without the lock, too. */
	_Atomic uint32_t nt_handle_count;
	/* Rank SYNC. Guards the state of synchronization objects and the next member. */
	struct vmm_os_mutex sync_lock;
	struct vmm_list sync_awaited; /* sync: fences that have a waiter */
	/* Waits on those fences, and waits about to be added. Written under the sync lock. */
	_Atomic uint32_t sync_awaited_count;
	/* The last number of a synchronization object (one for all its openings), of an owner. */
	_Atomic uint64_t sync_numbers, sync_owner_numbers;
	/* The next two: guarded by the shared lock. */
	uint32_t next_process_id;
	uint32_t live_processes;
	/* No miniport is called again, so what it allocated is not its leak. */
	_Atomic bool abandoned;
	bool sharing_rights; /* the access of NT handles is enforced (SHR-10) */
	/*
	 * The current epoch. It points to own_epoch, or to epoch_page once vmm_world_share_epoch
	 * has made that page. The page and the watchdog are set under the shared lock.
	 */
	_Atomic(_Atomic uint64_t *) epoch;
	_Atomic uint64_t own_epoch;
	/* a struct vmm_lock_epoch; set together with `watchdog` */
	struct vmm_os_memory epoch_page;
	struct vmm_os_watchdog *watchdog; /* constant while epoch_sleepers has entries */
	struct vmm_list epoch_sleepers;   /* guarded by the shared lock */
	_Atomic uint32_t epoch_sleeper_count;
	/* changes.c */
	_Atomic(const struct vmm_world_watcher *) watcher;
	_Atomic uint32_t changes; /* wait word: incremented by each change */
};

/*
 * ---- changes.c ----
 * A module above the core that watches a world. Both functions are called with no mutex held.
 */
struct vmm_process;
struct vmm_world_watcher {
	/* The process ends. No function of the program is called for that process afterwards. */
	void (*process_ends)(struct vmm_world *world, struct vmm_process *process);
	/* The world ends. The watcher's threads have ended when the function returns. */
	void (*world_ends)(struct vmm_world *world);
};
void vmm_world_watch(struct vmm_world *world, const struct vmm_world_watcher *watcher);
/*
 * Wakes the watcher's threads after an adapter has started or ended, or a budget has changed. Does
 * not wait; the caller may hold any mutex.
 */
void vmm_world_changed(struct vmm_world *world);
/* Tell the watcher. The caller holds no mutex. */
void vmm_world_process_ends(struct vmm_world *world, struct vmm_process *process);
void vmm_world_ends(struct vmm_world *world);

/*
 * ---- epoch.c ----
 * Out-of-process clients lock allocations without a message as long as the epoch is the one that
 * their lock words were enabled in (docs/adr/0002-locks-without-a-message.md).
 */
void vmm_world_epoch_init(struct vmm_world *world);
void vmm_world_epoch_finish(struct vmm_world *world);
/*
 * Returns in *fd a read-only descriptor of the page with the struct vmm_lock_epoch. Makes the page
 * at the first call. The caller closes the descriptor. Linux only.
 */
vmm_status vmm_world_share_epoch(struct vmm_world *world, int *fd) VMM_MUST_CHECK;
/*
 * A futex on which threads of clients sleep that must look at the epoch again when it changes. The
 * epoch must have been shared before sleepers are added.
 */
struct vmm_epoch_sleepers {
	struct vmm_list link;
	_Atomic uint32_t *turns; /* incremented before the sleepers are woken */
};
void vmm_world_add_sleepers(struct vmm_world *world, struct vmm_epoch_sleepers *sleepers);
void vmm_world_remove_sleepers(struct vmm_world *world, struct vmm_epoch_sleepers *sleepers);
void vmm_world_wake_sleepers(struct vmm_world *world);
static inline uint64_t vmm_world_epoch(struct vmm_world *world)
{
	return atomic_load(atomic_load(&world->epoch));
}
/*
 * Advances the epoch, which disables the fast locks of out-of-process clients: their locks come to
 * the host until the host finds no reason against the fast path and enables it again. Call it after
 * any change that makes a call refuse or wait where it did not before, and after a subscription.
 */
static inline void vmm_world_next_epoch(struct vmm_world *world)
{
	atomic_fetch_add(atomic_load_explicit(&world->epoch, memory_order_acquire), 1);
	if (vmm_unlikely(atomic_load(&world->epoch_sleeper_count)))
		vmm_world_wake_sleepers(world);
}

/*
 * Out-of-order completions up to this many packets after vmm_timeline.completed are noted in
 * vmm_timeline.done. For packets further ahead the list of work is searched.
 */
#define VMM_TIMELINE_AHEAD 1024u

/*
 * Progress of one timeline. Its packets are numbered 1, 2, 3 ... in 64 bits; sched maps them to the
 * DDI's 32-bit fence ids. The packets of one context complete in order, and so do all paging
 * packets. Different contexts of a node complete out of order (SCH-05).
 */
struct vmm_timeline {
	/*
	 * The last number assigned. Written under the submit lock (nodes) or the paging lock
	 * (paging).
	 */
	_Alignas(VMM_CACHE_LINE) _Atomic uint64_t queued;
	/* Every packet up to this one is complete. Written under the state lock. */
	_Atomic uint64_t completed;
	/*
	 * Packets complete out of order: how many, and a ring of bits. Written under the state
	 * lock.
	 */
	_Atomic uint32_t ahead;
	_Atomic uint64_t done[VMM_TIMELINE_AHEAD / 64];
	/* The newest complete packet that is too far ahead for the ring; 0: none. */
	_Atomic uint64_t beyond;
	/* vmm_work.link of the incomplete packets, in order. State lock. Empty for paging. */
	struct vmm_list work;
};

/* An incomplete packet of a node, and the instances it references. Guarded by the state lock. */
struct vmm_work {
	struct vmm_list link;
	uint64_t sequence;
	const struct vmm_device *device;
	struct vmm_instance *const *instances; /* an element may be NULL */
	const uint8_t *writes;                 /* parallel to instances; bit 0: it may be written */
	uint32_t count;
	bool prepared;  /* the instances it references are resident for it */
	bool submitted; /* the miniport has it */
	bool held;      /* it is queued behind an unsatisfied wait of its context */
};

/*
 * What clients can query about an adapter. The parts mean the same as the DDI members of these
 * names.
 */
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
	uint64_t driver_version; /* four words, the highest first (DXC-17) */
	bool hardware, integrated, detachable;
	/* Asks the miniport for the private data of its user-mode driver. Set by the port. */
	int32_t (*driver_private)(struct vmm_port *port, void *data, uint32_t size_bytes);
	struct vmm_adapter_value *values; /* of both its registry keys */
	uint32_t value_count;
};

/* How candidates of one eviction class are ordered (memory/state/lru.c). Constant after start. */
struct vmm_adapter_eviction {
	uint32_t policy;              /* enum vmm_policy_name */
	vidmm_eviction_rank_fn *rank; /* of VMM_POLICY_RANKED */
	void *context;
	/* Of VMM_POLICY_VALUED and VMM_POLICY_FALLING, else NULL */
	vidmm_policy_used_fn *used;
	vidmm_policy_value_fn *value;
	uint32_t state_bytes;
	bool scatters; /* a policy of vidmm, or this one, does */
};

/* What a node has done for some clients, in total. (QST-06) */
struct vmm_node_counts {
	uint64_t running_ns; /* that its packets took */
	uint32_t switches;   /* to a context of the clients from another one */
	/* Submissions of clients: queued, and complete. [1]: flips by a DDI call; [0]: others. */
	uint32_t queued[2], done[2];
	/* DMA packets: the miniport got them, completed them, gave them up, reported a fault. */
	uint32_t submitted, completed, preempted, faulted;
};

struct vmm_memory_model;

struct vmm_adapter {
	struct vmm_world *world;
	struct vmm_os *os;
	struct vmm_observe *observe;
	struct vmm_port *port;
	struct vmm_memory *memory;
	/* What the memory manager does differently by WDDM version (memory/model.h). */
	const struct vmm_memory_model *model;
	struct vmm_sched *sched;
	const struct vmm_sync_driver *sync_driver; /* sync's calls to the miniport (sync.h) */
	/*
	 * sched: called after `ending` of a device is set. Gives up queued waits of ending devices
	 * that nothing will satisfy. No lock held.
	 */
	void (*device_ends)(struct vmm_adapter *adapter);
	/* The next two: guarded by world->shared_lock. */
	struct vmm_list world_link;
	/* Calls between vmm_adapter_get and vmm_adapter_put. */
	uint32_t callers_inside VMM_GUARDED_BY(vmm_shared_lock_class);
	/* Incremented by vmm_adapter_put. Futex of the thread that stops the adapter. */
	_Atomic uint32_t departures;
	uint32_t luid; /* ADP-05; 0 while the adapter is not started */
	/* Constant after start, down to hw_queues. */
	uint32_t interface_version; /* the DDI version that the miniport registered */
	bool verify;                /* run the expensive checks, too */
	bool verify_driver;         /* VidmmVerifyDriver: checks of the miniport */
	/* Copies of the model's properties of these names. */
	bool residency_lists, client_synchronizes;
	bool narrow_fences; /* GPU writes are 32 bits wide: No64BitAtomics (MFN-06) */
	struct vmm_adapter_identity identity;
	struct vmm_adapter_eviction eviction;
	uint32_t physical_adapters;       /* more than 1: linked adapter */
	uint32_t node_count, paging_node; /* of the lead adapter */
	uint32_t paging_timeline;         /* = node_count */
	/* The adapter has hardware queues; their timeline follows paging_timeline. */
	bool hw_queues;

	/*
	 * Each of the three mutexes has a cache line with what is written under it at every call:
	 * threads that submit side by side hand these lines to each other, and each costs a
	 * submission the time of a hand-over.
	 */
	/* Serializes submissions: the order of sequence numbers is the order of the queue. */
	_Alignas(VMM_CACHE_LINE) struct vmm_os_mutex submit_lock;
	/* Number of submissions begun; written under the submit lock. */
	_Atomic uint64_t submissions;
	/* Number (see submissions) of the newest submission with all references marked as used. */
	_Atomic uint64_t captured;
	/* Guards placement of every instance, segments, paging buffers; scheduler-class DDIs. */
	_Alignas(VMM_CACHE_LINE) struct vmm_os_mutex paging_lock;
	/*
	 * Incremented when an instance is moved, marked for handover, or first locked on the slow
	 * path of WDDM 1.x. While it is unchanged, an instance found resident and unlocked still
	 * is. Paging lock.
	 */
	uint64_t placements VMM_GUARDED_BY(vmm_paging_lock_class);
	/* Guards queues, progress of nodes, device lists. Never held across a DDI. */
	_Alignas(VMM_CACHE_LINE) struct vmm_os_mutex state_lock;

	/* The miniport's system context on each physical adapter, in which paging runs (SCH-09). */
	_Alignas(VMM_CACHE_LINE) void *paging_context[VMM_LINKS_MAX];

	struct vmm_timeline timeline[VMM_TIMELINES_MAX];
	/*
	 * `progress` is written often, so it is off the cache lines that threads read while they
	 * spin for the end of a packet.
	 */
	/* Incremented whenever a timeline completes something. Futex of all waits for the GPU. */
	_Alignas(VMM_CACHE_LINE) _Atomic uint32_t progress;
	_Atomic uint32_t progress_waiters;
	/* How long a CPU lock spins for its packet before it sleeps; constant. */
	_Alignas(VMM_CACHE_LINE) uint32_t spin_ns;
	_Atomic uint32_t zombies; /* memory: closed references that wait for the GPU */
	/* memory: pending operations of paging queues, and evictions that are due. */
	_Atomic uint32_t paging_work;
	_Atomic bool trims_asleep; /* memory: the thread that sends trim requests is asleep */
	/*
	 * Eviction found memory held by hardware queues; their contexts must be suspended (SCH-11).
	 */
	_Atomic bool hw_blocks_eviction;
	_Atomic bool removed;    /* nothing completes anymore */
	_Atomic bool recovering; /* being reset: only the resetting thread makes progress */
	_Atomic uint32_t resets; /* number of resets (TDR-07) */
	/* vmm_port_suspensions during the last reset: devices from before it are lost (TDR-07). */
	uint32_t reset_suspension VMM_GUARDED_BY(vmm_state_lock_class);
	/* Removed or stopping: every door answers DEVICE_REMOVED (LOCK-33, PNP-03). */
	_Atomic bool closed;

	/* Global handles; guarded by world->shared_lock. */
	uint32_t shared_primary[VMM_SOURCES_MAX] VMM_GUARDED_BY(vmm_shared_lock_class);
	struct vmm_list devices; /* guarded by the state lock */
	/* The rest is guarded by the paging lock. */
	uint32_t allocation_count;
	/*
	 * Placements of client objects that were refused because a paging packet still read the
	 * range: the number of such packets, and the newest. Counted since a packet was last
	 * prepared or an operation placed (memory: client_object.c).
	 */
	uint32_t placement_retries VMM_GUARDED_BY(vmm_paging_lock_class);
	uint64_t placement_retry_packet VMM_GUARDED_BY(vmm_paging_lock_class);
};
_Static_assert(offsetof(struct vmm_adapter, paging_lock) -
				       offsetof(struct vmm_adapter, submit_lock) ==
			       VMM_CACHE_LINE &&
		       offsetof(struct vmm_adapter, state_lock) -
				       offsetof(struct vmm_adapter, paging_lock) ==
			       VMM_CACHE_LINE,
	       "each mutex has one cache line with what is written under it");

/* Cache entry that maps a D3DKMT handle of a device to its hazard handle without a lock. */
struct vmm_device_cache_entry {
	_Atomic uint32_t handle; /* 0: empty, or being changed */
	_Atomic(void *) hazard;  /* hazard handle */
};
#define VMM_DEVICE_CACHE_SIZE 16u /* power of two */

#define VMM_ENGINE_RESETS_MAX 64u /* VIDMM_TDR_LIMIT_MAX */

/*
 * The host memory and descriptors charged to one process, and its limits (src/serve). Charged are
 * the process, its allocations, and each backing store made for it. Atomic counters; no lock.
 */
struct vmm_account {
	_Atomic uint32_t references;
	_Atomic uint32_t refused; /* number of charges refused */
	_Atomic uint64_t bytes;
	uint64_t limit_bytes; /* 0: no limit; constant */
	/* Descriptors held for the process in addition to handles: events of waits. */
	_Atomic uint32_t events;
	uint32_t events_limit; /* 0: no limit; constant once the process has handles */
};
struct vmm_process;
/* Returns a new account with one reference. NULL: no memory. */
struct vmm_account *vmm_account_create(uint64_t limit_bytes);
/* All following functions accept NULL, the account of a process that is not limited. */
struct vmm_account *vmm_account_get(struct vmm_account *account);
void vmm_account_put(struct vmm_account *account);
/* Charges bytes. Returns false, and charges nothing, if that would exceed the limit. */
bool vmm_account_charge(struct vmm_account *account, uint64_t bytes) VMM_MUST_CHECK;
void vmm_account_refund(struct vmm_account *account, uint64_t bytes);
/*
 * Charges bytes of queued work `what` to the account of the process. Returns false if that exceeds
 * the limit, and emits a reason. handle: the queue, or 0.
 */
bool vmm_process_charge_queued(const struct vmm_process *process, uint32_t handle, const char *what,
			       uint64_t bytes) VMM_MUST_CHECK;
/*
 * Charges one event; false: over the limit. A charged event holds a reference to the account, which
 * vmm_account_put_event releases.
 */
bool vmm_account_take_event(struct vmm_account *account) VMM_MUST_CHECK;
void vmm_account_put_event(struct vmm_account *account);

struct vmm_process {
	_Atomic bool reserves;  /* it has reserved memory on some adapter (PRI-14) */
	_Atomic bool addresses; /* it has GPU virtual addresses on some adapter */
	struct vmm_world *world;
	uint32_t id;
	char name[32];
	/* Maps views into an out-of-process client. NULL: in-process. Constant. */
	struct vmm_os_viewer *viewer;
	struct vmm_account *account; /* NULL: not limited; constant once it has handles */
	/* Rank PROCESS. Guards the handle table, the lists of references, and `devices`. */
	struct vmm_os_mutex lock;
	struct vmm_handle_table handles;
	struct vmm_list devices;
	struct vmm_list stopped_devices; /* stopped.h; guarded by `lock` */
	/*
	 * sync: objects that belong to no device, and keyed mutexes; guarded by world->sync_lock.
	 */
	struct vmm_list syncs, keyed;
	/* Written under `lock`. */
	struct vmm_device_cache_entry device_cache[VMM_DEVICE_CACHE_SIZE];
	_Atomic uint32_t priority_class; /* D3DKMT_SCHEDULINGPRIORITYCLASS (SCH-04) */
	/* The client has gone: waits made for it are given up. */
	_Atomic bool abandoned;
	_Atomic bool may_raise; /* it holds the increase-priority privilege (SCH-02) */
	/* It has hung engines too often: all its devices are refused (TDR-20). */
	_Atomic bool denied;
	/* The next two: guarded by world->shared_lock. Engine resets: number, and ring of times. */
	uint32_t engine_resets VMM_GUARDED_BY(vmm_shared_lock_class);
	uint64_t engine_reset_ns[VMM_ENGINE_RESETS_MAX] VMM_GUARDED_BY(vmm_shared_lock_class);
};

/*
 * From HUNG on the device is lost: by a reset of its adapter or engine (TDR-07), or by a page fault
 * (TDR-19).
 */
enum vmm_device_error {
	VMM_DEVICE_OK,
	VMM_DEVICE_OUT_OF_MEMORY,
	VMM_DEVICE_FAULT,
	VMM_DEVICE_HUNG,
	VMM_DEVICE_RESET,
	VMM_DEVICE_PAGE_FAULT,
	VMM_DEVICE_PAGE_FAULT_RESET /* a page fault, and then its adapter was reset */
};

/* What the miniport reported about the page fault that the device was lost with (TDR-19). */
struct vmm_page_fault_record {
	uint64_t sequence_number, virtual_address;
	uint32_t stage, bind_table_entry, flags;
	uint32_t device_specific, code; /* of DXGK_FAULT_ERROR_CODE */
};

struct vmm_device {
	void *hazard; /* hazard handle, and hDevice of its callbacks (hazard.h) */
	/* The next two: accessed only by the thread that stops the adapter or changes its power. */
	bool stopped; /* the adapter was stopped: the device ends, its handles stay (stopped.h) */
	bool paused;  /* calls on the device and its contexts wait until power is back */
	uint32_t handle;
	struct vmm_process *process;
	struct vmm_adapter *adapter;
	void *kmd_device;
	bool one_buffer;              /* GuaranteedDmaBufferContract (DMA-30) */
	struct vmm_list process_link; /* guarded by process->lock */
	struct vmm_list adapter_link; /* guarded by adapter->state_lock */
	/* The next three: guarded by process->lock. */
	struct vmm_list contexts;
	struct vmm_list resources;
	struct vmm_list refs; /* vmm_ref.device_link */
	/* enum vmm_device_error; the first error stays, except for a reset */
	_Atomic uint32_t error;
	struct vmm_page_fault_record page_fault VMM_GUARDED_BY(vmm_state_lock_class);
	/* Hazard handle of its first context; not cleared when that context ends (DMA-09). */
	_Atomic(void *) default_context;
	_Atomic bool ending; /* a thread waits until no call is inside the device */
	/* Its last packet on each timeline; written under the submit lock. */
	_Atomic uint64_t queued[VMM_TIMELINES_MAX];
	/*
	 * Guarded by the state lock. Presents that are incomplete, and flips not yet on the screen.
	 * present_limit 0: the default (SUB-17).
	 */
	uint32_t presents VMM_GUARDED_BY(vmm_state_lock_class);
	uint32_t present_limit VMM_GUARDED_BY(vmm_state_lock_class);
	uint32_t flips[VMM_SOURCES_MAX] VMM_GUARDED_BY(vmm_state_lock_class);
	/* sched; of the device, and of earlier ones of the process. Guarded by the state lock. */
	struct vmm_node_counts node_counts[VMM_NODES_MAX] VMM_GUARDED_BY(vmm_state_lock_class);
	/* memory, from WDDM 2.0 on; guarded by the paging lock. */
	struct vmm_list residency; /* vmm_ref.residency_link */
	struct vmm_list leaving;   /* vmm_ref.leaving_link */
	struct vmm_list paging_queues;
	struct vmm_list context_allocations; /* the miniport's own allocations (PRE-11) */
	_Atomic bool has_context_memory;     /* set with the first of those, never cleared */
	struct vmm_residency_demand *demand; /* bytes of the residency list, by segments */
	struct vmm_budget *budget;
	struct vmm_va *va; /* memory: GPU virtual addresses; NULL: none; constant */
	/* memory: fast locks of its allocations (fast_lock.h). */
	_Atomic(struct vmm_fast_lock_table *) fast_locks;
	/* Guarded by world->sync_lock. `sleepers` links struct vmm_sleeper; the rest is sync's. */
	struct vmm_list sleepers, syncs, sync_pages, sync_windows, sync_waits, sync_owners, keyed;
	void *door;           /* state of the door that created the device */
	uint32_t umd_trim;    /* its registration for trim notifications; 0: none */
	void *sched_defaults; /* sched: what DXGK_DEVICEINFO said */
};

/* A runtime resource of one device. Its allocations are its refs. */
struct vmm_resource {
	uint32_t handle;
	struct vmm_device *device;
	void *runtime_handle;     /* hResource of the runtime; NULL for opened resources */
	struct vmm_list link;     /* in device->resources */
	struct vmm_list end_link; /* in the list of the call that destroys it */
	struct vmm_list refs;     /* vmm_ref.resource_link */
	struct vmm_share *share;  /* NULL: private, or nothing allocated yet */
	bool opened; /* from another device's share; released with its last allocation */
	bool shared; /* announced by the runtime before its allocations (ALF-35) */
	bool busy;   /* a call is creating or opening allocations of it; guarded by process->lock */
	struct vmm_kmd_resource *kmd; /* NULL for opened resources and ones without allocations */
};

/*
 * The miniport's resource (hResource of DxgkDdiCreateAllocation). It lives as long as an allocation
 * or a handle of it.
 */
struct vmm_kmd_resource {
	void *handle;
	uint32_t references; /* guarded by the paging lock */
};

/* What several opens of one shared resource have in common. */
struct vmm_share {
	/* The next three: guarded by world->shared_lock. */
	uint32_t global_handle;      /* 0: shared by NT handles */
	uint32_t references;         /* held by resources and bundles */
	struct vmm_list orphan_link; /* in memory->orphans */
	struct vmm_adapter *adapter;
	uint32_t count;
	struct vmm_allocation **allocations; /* each element holds a reference */
	/*
	 * Private data of the resource, copied, for DxgkDdiOpenAllocation by other devices
	 * (ALF-34).
	 */
	void *private_data;
	uint32_t private_bytes;
	void *runtime_data; /* the runtime's, returned to devices that open the resource (ALC-08) */
	uint32_t runtime_bytes;
	void **item_private_data;
	uint32_t *item_private_bytes;
	/*
	 * The private data came from the miniport. Clients get that of the allocations, not that of
	 * the resource (ROP-03).
	 */
	bool standard;
	struct vmm_section *section; /* of a cross-adapter resource (ALF-39), else NULL */
};

/* ---- the locks: docs/locking.md has the order and what each protects ---- */
VMM_LOCK_PAIR(vmm_submit_lock, vmm_submit_unlock, vmm_submit_lock_class, vmm_os_mutex,
	      struct vmm_adapter, submit_lock);
VMM_LOCK_PAIR(vmm_state_lock, vmm_state_unlock, vmm_state_lock_class, vmm_os_mutex,
	      struct vmm_adapter, state_lock);
VMM_LOCK_PAIR(vmm_process_lock, vmm_process_unlock, vmm_process_lock_class, vmm_os_mutex,
	      struct vmm_process, lock);
VMM_LOCK_PAIR(vmm_sync_lock, vmm_sync_unlock, vmm_sync_lock_class, vmm_os_mutex, struct vmm_world,
	      sync_lock);
VMM_LOCK_PAIR(vmm_shared_lock, vmm_shared_unlock, vmm_shared_lock_class, vmm_os_mutex,
	      struct vmm_world, shared_lock);

/* ---- lifetime (object.c) ---- */
vmm_status vmm_world_init(struct vmm_world *world, struct vmm_os *os, struct vmm_nt *nt,
			  struct vmm_observe *observe);
void vmm_world_finish(struct vmm_world *world);
vmm_status vmm_process_create(struct vmm_world *world, const char *name,
			      struct vmm_process **process) VMM_MUST_CHECK;
/* The process has no device left. */
void vmm_process_destroy(struct vmm_process *process);
void vmm_adapter_init(struct vmm_adapter *adapter, struct vmm_world *world);
void vmm_adapter_finish(struct vmm_adapter *adapter);
/* Makes the adapter visible to vmm_adapter_get until vmm_adapter_withdraw. */
void vmm_adapter_publish(struct vmm_adapter *adapter, uint32_t luid);
void vmm_adapter_withdraw(struct vmm_adapter *adapter);
/* Waits until every vmm_adapter_get of the withdrawn adapter has been put. No lock held. */
void vmm_adapter_await_callers(struct vmm_adapter *adapter);
/*
 * Returns the adapter with that LUID, or NULL. It cannot be stopped completely until
 * vmm_adapter_put.
 */
struct vmm_adapter *vmm_adapter_get(struct vmm_world *world, uint32_t luid);
/* Like vmm_adapter_get, by index in the order of their start. NULL: index is too high. */
struct vmm_adapter *vmm_adapter_nth(struct vmm_world *world, uint32_t index);
/* Releases what vmm_adapter_get or vmm_adapter_nth returned. NULL is allowed. */
void vmm_adapter_put(struct vmm_adapter *adapter);

/*
 * Lock-free cache from D3DKMT handles to hazard handles. vmm_device_cache_find returns the hazard
 * handle of a device, which may have ended by now; NULL: not cached, look it up. An entry is set
 * after a look-up and dropped together with the handle; the caller of these two holds the process
 * lock.
 */
void vmm_device_cache_add_locked(struct vmm_process *process, uint32_t handle, void *hazard)
	VMM_REQUIRES(vmm_process_lock_class);
void vmm_device_cache_drop_locked(struct vmm_process *process, uint32_t handle)
	VMM_REQUIRES(vmm_process_lock_class);
static inline void *vmm_device_cache_find(const struct vmm_process *process, uint32_t handle)
{
	const struct vmm_device_cache_entry *entry =
		&process->device_cache[handle >> VMM_HANDLE_INDEX_SHIFT &
				       (VMM_DEVICE_CACHE_SIZE - 1)];

	if (!handle || atomic_load_explicit(&entry->handle, memory_order_acquire) != handle)
		return NULL;
	void *hazard = atomic_load_explicit(&entry->hazard, memory_order_acquire);
	/* A writer clears `handle` before it replaces `hazard`. */
	return atomic_load_explicit(&entry->handle, memory_order_relaxed) == handle ? hazard : NULL;
}

/*
 * Sets the process on whose behalf the calling thread enters the miniport. Handles that the
 * miniport asks about are looked up in that process. Returns the previous one, which the caller
 * restores.
 */
struct vmm_process *vmm_calling_process_set(struct vmm_os *os, struct vmm_process *process);
struct vmm_process *vmm_calling_process(struct vmm_os *os);

/* Sets the error of the device, unless it has one already. */
static inline void vmm_device_fail(struct vmm_device *device, enum vmm_device_error error)
{
	uint32_t none = VMM_DEVICE_OK;

	atomic_compare_exchange_strong(&device->error, &none, (uint32_t)error);
	vmm_world_next_epoch(device->process->world);
}

/*
 * Returns whether an out-of-process client may skip the host for a call that would emit these two
 * events and the door event. It may not while one of them has a subscriber,
 * nor while the device would refuse the call. The caller reads the epoch first: a thread that
 * changes one of these conditions advances the epoch after it (vmm_world_next_epoch).
 */
bool vmm_device_may_bypass_host(const struct vmm_device *device, uint32_t event, uint32_t other);

/*
 * Status of calls on a device whose adapter is present. VMM_OK: no error. VMM_DEVICE_REMOVED: the
 * device is lost by a reset. VMM_GPU_EXCEPTION: it is in error otherwise: by a page fault, by a
 * fault of one of its packets, or because its memory does not fit. (PRI-16, TDR-07, TDR-19)
 */
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

/*
 * ---- validity (valid.c) ----
 * The invariants of a device, which the modules assert where they are entered. The predicate takes
 * constant time and no lock. It reads constant and atomic members.
 *
 * Process and adapter are of one world, only adapters of WDDM 2.0 or later have GPU virtual
 * addresses, and the error is one of enum vmm_device_error.
 */
bool vmm_device_is_valid(const struct vmm_device *device);

/* Returns whether the device is lost: it can only be destroyed. (TDR-07) */
static inline bool vmm_device_lost(const struct vmm_device *device)
{
	return vmm_unlikely(atomic_load_explicit(&device->error, memory_order_relaxed) >=
			    VMM_DEVICE_HUNG);
}

#include "object/progress.h"

#endif
