/* SPDX-License-Identifier: MIT */
/*
 * The types of all tiers of sched (README.md). The functions that one file of sched provides to
 * others are in the header of its tier, which has the name of the tier.
 *
 * Comments name three locks of the adapter, outermost first: submit lock, paging lock, state lock
 * (docs/locking.md). The name of a lock after a member says which lock guards the member. After a
 * function it says which lock the caller holds.
 *
 * The path of a packet: prepare queue (sched->prepare), ready queue of its context (vmm_turn.ready)
 * or of paging (vmm_node.paging), hardware queue (vmm_node.hardware), retired.
 */
#ifndef VMM_SCHED_TYPES_H
#define VMM_SCHED_TYPES_H

#include "sched/sched.h"
#include "sync/packet.h"
#include "sync/sync.h"

#define VMM_DMA_BUFFERS_PER_CONTEXT 16u
#define VMM_PAGING_PACKETS          256u
/* A power of two, not less than the packets that may be outstanding on a node (SUB-15). */
#define VMM_FAULTS_MAX              64u

/*
 * One entry of a context's queue that cannot go to the GPU at once (steps.c): a wait, a signal, or
 * a DMA buffer that was queued behind a wait. State lock.
 */
enum vmm_step_kind { VMM_STEP_BUFFER, VMM_STEP_WAIT, VMM_STEP_SIGNAL };
struct vmm_step {
	struct vmm_list link; /* in context->steps.queue */
	uint8_t kind;         /* enum vmm_step_kind */
	/* A wait: the context has reached it; its completion callback has run. */
	bool begun, completed;
	/* An event said that the step blocks the context or is behind one that does (MFN-31). */
	bool announced;
	/* Satisfied before it could be withdrawn; its completion callback is still to come. */
	bool completing;
	struct vmm_context *context;
	struct vmm_software *software; /* of a wait or a signal */
	/* A signal: number of the context's packet that precedes it on the timeline; 0: none. */
	uint64_t after;
};

#define VMM_SPARE_SOFTWARE 1024u
/* A software packet: one wait or signal, which several contexts may have to reach. */
struct vmm_software {
	struct vmm_sync_packet sync;
	struct vmm_step own;                 /* the step of the first context */
	struct vmm_step *more;               /* the steps of the other contexts; usually NULL */
	uint32_t left;                       /* steps that are not done; state lock */
	bool dropped;                        /* a context that was to reach it is lost or ended */
	struct vmm_software *next_completed; /* in sched->completed_waits */
	struct vmm_list free;                /* in sched->free_software; state lock */
};

/* The steps of one context (steps.c). State lock. */
struct vmm_steps {
	struct vmm_list queue;
	struct vmm_list link;  /* in sched->stepping while the queue is not empty */
	uint32_t holding;      /* waits and buffers in the queue; a new buffer queues behind them */
	bool advancing;        /* a thread is advancing this queue */
	bool ending;           /* the first unsatisfied wait and all steps behind it are given up */
	_Atomic bool given_up; /* a wait has been given up */
	/* The newest packet of the context that is complete; that the miniport has or had. */
	uint64_t done, submitted;
	struct vmm_sync_owner owner;
};

/* One submission to the hardware. */
struct vmm_packet {
	struct vmm_list link; /* in one list at a time: prepare, node ready, node hardware, free */
	bool paging;
	bool synchronous; /* no render packet is submitted until it is complete (PAG-21) */
	bool cancelled;   /* completes in queue order without reaching the hardware */
	bool refused;     /* by the miniport: completes with the packets before it (SUB-23) */
	/* This is vmm_dma.part: its completion does not complete the buffer (SPL-07). */
	bool portion;
	uint32_t node, timeline;
	uint64_t sequence; /* on the timeline */
	/* Packet of the paging timeline that must be complete before this one runs; 0: none. */
	uint64_t paging_needed;
	uint32_t fence;
	uint32_t overdue; /* how many times it was preempted because it was overdue */
	DXGKARG_SUBMITCOMMAND submit;
};

/* The memory of a DMA buffer. */
struct vmm_dma_memory {
	/* GPU virtual addresses (PRS-09); NULL: none. */
	struct vmm_va_range *range;
	struct vmm_backing backing;
	uint64_t bus_address;
	uint64_t mapped_by;     /* paging packet that maps it */
	uint64_t charged_bytes; /* to the process, for memory at GPU virtual addresses */
};

/* What holds the aperture mapping of a DMA buffer. */
enum vmm_dma_hold {
	VMM_DMA_MOVABLE,   /* nothing */
	VMM_DMA_PINNED,    /* the buffer is with the miniport, or prepared and not retired */
	VMM_DMA_UNMAPPING, /* a thread with the paging and the state lock unmaps it now */
};

/* One DMA buffer with its lists and packets. It belongs to the pool of its context. */
struct vmm_dma {
	struct vmm_packet packet;
	struct vmm_work work; /* while it is queued */
	struct vmm_step step; /* while it is held behind a wait */
	/*
	 * Not submitted before every packet of the node up to this number is (order.c); 0: any
	 * time.
	 */
	uint64_t after;
	uint32_t preempted; /* how many times it was running when its node was preempted */
	bool shielded;      /* do not preempt it again (SCH-06) */
	struct vmm_context *context;
	struct vmm_list pool; /* in context->free_dma while unused; state lock */
	struct vmm_list all;  /* in context->all_dma; state lock */
	/* In sched->mapped_dma while it is mapped into an aperture; paging lock. */
	struct vmm_list mapped;
	struct vmm_dma_memory memory;
	/*
	 * Where an aperture maps the buffer (DMA-05). Segment 0 and address 0: not mapped. On a
	 * context that needs no aperture: segment 0 and the bus address. Written with the paging
	 * lock and the state lock held.
	 */
	struct vmm_dma_mapping place;
	_Atomic(enum vmm_dma_hold) hold; /* of its aperture mapping; see vmm_dma_pin */
	void *private_data;
	uint64_t charged_bytes; /* to the account of its context's process */
	DXGK_ALLOCATIONLIST *list;
	struct vmm_instance **instances; /* parallel to list; NULL for NULL entries */
	uint8_t *uses;                   /* parallel to list: VMM_USES_* */
	D3DDDI_PATCHLOCATIONLIST *patches;
	uint32_t list_count, patch_count, used_bytes, private_used;
	/*
	 * The portion that is being prepared: its patch locations and its bytes. Unless the buffer
	 * is split it is the whole buffer (SPL-01, SPL-02). When split, `part` carries each portion
	 * but the last, and the buffer stays at the head of the prepare queue. Paging lock;
	 * parts_busy: state lock.
	 */
	uint32_t patch_start, patch_end, start, end;
	uint32_t part_patch_start; /* first patch location of `part` */
	uint32_t failed_patch; /* the patch location whose allocation could not be made resident */
	uint32_t attempts;     /* to make the set resident that had to wait, one after the other */
	bool awaits_buffers;   /* it waits until no DMA buffer of another packet is pinned */
	bool split;            /* the portions before `start` have been submitted */
	/* Submissions of the latest portion that are not complete; several if broadcast. */
	uint32_t parts_busy;
	struct vmm_packet part;
	uint64_t submission; /* adapter->submissions when it was queued */
	uint64_t placements; /* adapter->placements when the list was captured */
	/*
	 * At capture every listed allocation was resident at its placement, with nothing to be
	 * done.
	 */
	bool in_place;
	bool writing;  /* an entry is written */
	bool renamed;  /* the allocation of an entry has more than one instance */
	bool offering; /* an entry carries an offer */
	bool null_rendering;
	uint64_t commands; /* GPU virtual address of the commands (virtual.c, PRS-09) */
	/* What it was filled for; set once it is filled. */
	const struct vmm_submission_kind *kind;
	bool counts_as_present; /* counted against the present limit until it completes (SUB-17) */
	struct vmm_flip *flip;  /* becomes due when this buffer completes; usually NULL */
	/*
	 * Broadcast (copies.c). `copies`: of a buffer, the copies that other contexts run.
	 * `copy`: of a copy, its link in that list. `owner`: of a copy, the buffer whose memory it
	 * uses. `users`: submissions of the buffer and its copies that are not complete; 0: not
	 * broadcast. The buffer is free when `users` reaches 0. State lock.
	 */
	struct vmm_list copies, copy;
	struct vmm_dma *owner;
	uint32_t users;
	/* Checksum of the portion that begins at sum_start (SPL-16); paging lock. */
	bool sum_valid;
	uint32_t sum_start;
	uint64_t sum;
};

/*
 * A flip: the primary that a source shows, or is to show. State lock; segment and address: paging
 * lock until `programmed`.
 */
struct vmm_flip {
	struct vmm_list link; /* in the queue of its source, or in the display's free list */
	struct vmm_device *device;
	struct vmm_allocation *allocation; /* NULL: reserved, and not queued yet */
	struct vmm_instance *instance;
	uint32_t source_id, handle, process;
	void *kmd_context;
	D3DDDI_FLIPINTERVAL_TYPE interval;
	bool no_wait, mmio;
	bool due;        /* its packet is complete */
	bool programmed; /* the miniport has the address; a vsync will report it */
	/* The flip is shown when these numbers are complete, one of each timeline (PRS-04). */
	uint64_t after[VMM_TIMELINES_MAX];
	uint32_t segment;
	uint64_t address, set_ns;
};

enum {
	VMM_USES_WRITE = 0x1, /* the entry may be written */
	/* The priority at which the completion of the buffer offers the allocation (DMA-24). */
	VMM_USES_OFFER = 0x1C,
	VMM_USES_OFFER_SHIFT = 2,
};

/*
 * Scheduling state of a context on its node (order.c). State lock, except the two members that
 * clients set.
 */
struct vmm_turn {
	_Atomic int32_t priority;    /* -7 to 7, or an absolute level (SCH-01, SCH-02) */
	_Atomic uint32_t in_process; /* 0 or 1 (SCH-03) */
	struct vmm_list ready;       /* its prepared packets, in order */
	struct vmm_list link;        /* in node->contexts while `ready` is not empty */
	uint32_t running;            /* its packets that the miniport has */
	uint32_t level;              /* its effective priority when that was last computed */
	uint64_t used_ns;        /* virtual runtime: node time used, on the clock of its level */
	uint64_t cost_ns;        /* node time of its last packet */
	uint64_t waits_since_ns; /* node->busy_ns when it last ran or became ready */
};

struct vmm_context {
	struct vmm_device *device;
	struct vmm_turn turn;
	struct vmm_list link; /* in device->contexts */
	void *hazard; /* its handle for protected lookups (hazard.h): hContext of the callbacks */
	void *kmd_context;
	uint32_t handle, node;    /* node: numbered as in port.h */
	uint32_t ordinal, engine; /* the same node as the miniport numbers it */
	uint32_t flags;
	/* What the miniport asked for (DMA-01). */
	uint32_t dma_bytes, dma_segment_set, dma_private_bytes, list_size, patch_size;
	/*
	 * Commands are at GPU virtual addresses: DMA buffers for presents only, `va` is used
	 * (virtual.c).
	 */
	bool by_address;
	uint32_t present_bytes; /* of a DMA buffer of its presents (PRS-09) */
	struct vmm_va_context va;
	bool no_patching; /* DMA-25: no patch locations, and DxgkDdiPatch is not called */
	struct vmm_context_buffers user; /* what a submission reads */
	/*
	 * Where the client writes: the same buffers as `user`, unless the client is out-of-process.
	 */
	struct vmm_context_buffers mapped;
	struct vmm_client_buffers *client_buffers; /* of an out-of-process client; else NULL */
	struct vmm_steps steps;
	/* State lock. Counts: buffers of the pool, those not free, those queued. */
	struct vmm_list free_dma, all_dma;
	uint32_t dma_count VMM_GUARDED_BY(vmm_state_lock_class);
	uint32_t dma_taken VMM_GUARDED_BY(vmm_state_lock_class);
	uint32_t queued VMM_GUARDED_BY(vmm_state_lock_class);
	struct vmm_list free_copies; /* vmm_dma.pool of unused copies; state lock */
	/* Its buffers that were broadcast to other contexts and are not free yet. */
	_Atomic uint32_t shared_buffers;
	_Atomic uint32_t broadcast_calls; /* calls in progress that broadcast to this context */
	uint64_t last_sequence;
};

struct vmm_fault {
	uint32_t fence, status;
};

#define VMM_PAGE_FAULTS_MAX 8u /* a power of two */
struct vmm_page_fault {
	uint32_t fence, flags; /* DXGK_PAGE_FAULT_FLAGS */
	struct vmm_page_fault_record record;
};

struct vmm_hw;
struct vmm_hw_context;
/* Why a node or an adapter is reset. */
struct vmm_timeout {
	bool fault; /* nothing timed out: a page fault asks for the reset (TDR-19) */
	uint32_t node, fence;
	uint32_t process, context; /* of the packet; 0: paging, or only a preemption is late */
	/* owner of the hardware queue; compared, never dereferenced */
	const struct vmm_hw_context *hw;
	uint32_t request; /* id of the preemption request that the node has not answered; 0: none */
	uint64_t running_ns;
};

/* Reset of one node's engine (engine.c). State lock. */
struct vmm_engine {
	bool wanted, running; /* the reset is requested; it is in progress */
	bool failed;          /* the engine's reset is not enough: the adapter is reset next */
	/*
	 * A device was lost and its queued packets are to be canceled; counted in sched->chores.
	 */
	bool device_lost;
	uint64_t since_ns; /* when the reset was requested */
	struct vmm_timeout timeout;
	bool masked; /* reports of the node are recorded but take no effect */
};

/*
 * Preemption of one node (preempt.c). State lock, except the answer: the interrupt writes it, the
 * DPC reads it.
 */
struct vmm_preempt {
	bool wanted;       /* a request is to be made */
	uint32_t fence;    /* id of the request that is outstanding; 0: none */
	uint64_t since_ns; /* when it became wanted */
	uint32_t answer, answer_last;
	_Atomic bool answered;
	bool reset; /* a reset discarded requests: late answers up to reset_fence are ignored */
	uint32_t reset_fence; /* the newest id at that reset */
};

/* Effective priorities (order.c): 6 of idle contexts, 84 relative ones, 15 of real time. */
#define VMM_LEVELS 105u

/*
 * What interrupts have reported about a node, written at DIRQL, read by the DPC. The DPC looks at
 * all nodes; so that it reads one cache line for that, these are apart from the nodes.
 */
struct vmm_node_report {
	_Atomic uint32_t fence;           /* newest completed fence */
	_Atomic bool completed;           /* `fence` has not been applied yet */
	_Atomic bool faulted_or_answered; /* a fault, a page fault or the answer to a preemption */
};

struct vmm_node {
	/*
	 * ---- What packets of the node write most often: two cache lines ----
	 */
	/*
	 * Ready queues: vmm_turn.link of contexts that have prepared packets. State lock; packets
	 * leave them only with the paging lock held, too.
	 */
	_Alignas(VMM_CACHE_LINE) struct vmm_list contexts;
	/*
	 * Packets that the miniport has. State lock; the DPC removes them without the paging lock.
	 */
	struct vmm_list hardware;
	/* State lock. */
	uint32_t hardware_count VMM_GUARDED_BY(vmm_state_lock_class);
	/* Packets in `contexts` that will not run. */
	uint32_t cancelled VMM_GUARDED_BY(vmm_state_lock_class);
	uint32_t newest;         /* the newest id that the miniport was given on this node */
	uint32_t last_completed; /* fence */
	uint32_t last_submitted; /* fence */
	/* The next packet needs a newer id, which needs PASSIVE_LEVEL; counted in sched->chores. */
	bool stale VMM_GUARDED_BY(vmm_state_lock_class);
	/* Node time that completed packets took. */
	uint64_t busy_ns VMM_GUARDED_BY(vmm_state_lock_class);
	/* Of the first packet in `hardware` (watch.c): when it became the first. */
	uint64_t since_ns VMM_GUARDED_BY(vmm_state_lock_class);
	/* When the miniport was asked for its current fence; 0: not yet (SUB-14). */
	uint64_t queried_ns VMM_GUARDED_BY(vmm_state_lock_class);
	/* It has timed out, whatever the time (vmm_watch_expire). */
	bool expired VMM_GUARDED_BY(vmm_state_lock_class);
	/*
	 * The context of the newest submission, if its device has context allocations; NULL: that
	 * was paging, or a device without any. Paging lock.
	 */
	struct vmm_context *current VMM_GUARDED_BY(vmm_paging_lock_class);
	/*
	 * The device whose packet completed last; NULL: that was paging, or the device has ended.
	 */
	struct vmm_device *last_device VMM_GUARDED_BY(vmm_state_lock_class);

	/* Ready queue of paging packets in submission order; guarded like `contexts`. */
	struct vmm_list paging;
	/* Of all clients, and of paging (counts.h). */
	struct vmm_node_counts clients VMM_GUARDED_BY(vmm_state_lock_class);
	struct vmm_node_counts system VMM_GUARDED_BY(vmm_state_lock_class);
	uint64_t clock_ns[VMM_LEVELS] VMM_GUARDED_BY(vmm_state_lock_class);
	/*
	 * Contexts below are named by vmm_context.live, because these members outlive contexts. A
	 * new context may reuse the memory of one that ended, but never its handle; comparing
	 * addresses would make scheduling depend on the allocator.
	 */
	/* Context that has the current time slice. */
	const void *holder VMM_GUARDED_BY(vmm_state_lock_class);
	/* Submit lock: which context queued which packet. */
	const void *owner[VMM_TIMELINE_AHEAD]; /* indexed by packet number modulo the size */
	const void *newest_owner;
	uint64_t newest_of_others;             /* newest packet that is not of newest_owner */
	uint64_t newest_flip[VMM_SOURCES_MAX]; /* newest flip of each source on this node */
	/* Written at DIRQL, read by the DPC. The faults are ring buffers. */
	struct vmm_fault fault[VMM_FAULTS_MAX];
	_Atomic uint32_t fault_head, fault_tail;
	struct vmm_page_fault page_fault[VMM_PAGE_FAULTS_MAX];
	_Atomic uint32_t page_fault_head, page_fault_tail;
	struct vmm_preempt preempt;
	struct vmm_engine engine;
};

struct vmm_sched {
	struct vmm_adapter *adapter;
	const struct vmm_port_caps *caps;
	const struct vmm_working_set *working_set;
	/*
	 * ---- What each submission writes: one cache line ----
	 */
	/* Render packets to be prepared, in call order; state lock. */
	_Alignas(VMM_CACHE_LINE) struct vmm_list prepare;
	_Atomic uint32_t prepare_count;
	_Atomic uint32_t ready_count; /* packets in ready queues */
	/* Packets that the miniport has. */
	uint32_t hardware_total VMM_GUARDED_BY(vmm_state_lock_class);
	_Atomic uint32_t kicks; /* changes when a completion may have made packets submittable */
	/* Patch locations of all submissions. */
	uint64_t patches VMM_GUARDED_BY(vmm_state_lock_class);
	/* Counts attempts to make a working set resident; identifies each of them. Paging lock. */
	uint64_t preparations VMM_GUARDED_BY(vmm_paging_lock_class);
	/* Its last attempt found memory, or buffers, in use; only to be compared. */
	const struct vmm_dma *awaits_memory VMM_GUARDED_BY(vmm_paging_lock_class);
	uint32_t next_fence; /* paging lock */

	_Alignas(VMM_CACHE_LINE) struct vmm_node_report report[VMM_NODES_MAX];
	struct vmm_node node[VMM_NODES_MAX];
	struct vmm_list address_updates; /* address.c; paging lock */
	struct vmm_list mapped_dma;      /* buffers that are mapped into an aperture; paging lock */
	/* Packets for paging. State lock. */
	struct vmm_list free_paging;
	struct vmm_packet paging_packet[VMM_PAGING_PACKETS];
	/*
	 * Ring indexed by number of the paging timeline: packets of that number that are not
	 * complete. A number has one packet for each physical adapter that has work, and is
	 * complete when all of them are. State lock.
	 */
	uint8_t paging_parts[VMM_PAGING_PACKETS] VMM_GUARDED_BY(vmm_state_lock_class);
	/* steps.c: contexts that have steps; software packets for reuse. State lock. */
	struct vmm_list stepping, free_software;
	/* At most VMM_SPARE_SOFTWARE. */
	uint32_t free_software_count VMM_GUARDED_BY(vmm_state_lock_class);
	_Atomic uint32_t stepping_count;
	/* Completion list (lock-free stack): waits that are satisfied, newest first. */
	_Atomic(struct vmm_software *) completed_waits;
	_Atomic uint32_t callbacks;   /* completion callbacks of waits in progress; a futex */
	_Atomic bool fences_signaled; /* an interrupt reported a signaled fence (MFN-27) */
	/*
	 * Deferred work for the next holder of the paging lock: preemption requests, engine resets,
	 * cancellations after a lost device, packets that need a new id
	 * (vmm_chores_locked).
	 */
	_Atomic uint32_t chores;
	_Atomic bool
		blocked; /* the worker waits for the GPU on behalf of the first packet to prepare */
	_Atomic bool handed_over; /* the worker is to feed the GPU (vmm_sched_hand_over) */
	/* Nodes with engine.device_lost set. */
	uint32_t losing_nodes VMM_GUARDED_BY(vmm_state_lock_class);
	struct vmm_hw *hw; /* hardware queues (hw_private.h); NULL: none */
	/* Commands of hardware queues that the miniport has. */
	uint32_t hw_running VMM_GUARDED_BY(vmm_state_lock_class);
	/* Number of the newest synchronous paging packet that was submitted; state lock. */
	uint64_t newest_synchronous VMM_GUARDED_BY(vmm_state_lock_class);
	/*
	 * A hardware context waits for DMA buffers. A thread that ends a translation clears the
	 * flag and wakes the worker; retirements wake it in any case.
	 */
	_Atomic bool hw_awaits_buffers;
	_Atomic uint64_t splits;
	uint64_t slice_ns,
		patience_ns; /* time slice; waiting time that counts as starvation (SCH-06) */
	/*
	 * Bit map of the slots that a scan has seen (split.c); allocated on first use. Paging lock.
	 */
	uint64_t *slots;
	uint32_t slot_words VMM_GUARDED_BY(vmm_paging_lock_class);
	/* vmm_ddi_creation.link (context_memory.c); state lock */
	struct vmm_list ddi_creations;
	void *system_device;           /* the device of adapter->paging_context */
	struct vmm_display *display;   /* NULL: the adapter has no sources */
	struct vmm_periodic *periodic; /* NULL: no periodic fences */
	struct vmm_os_thread *worker;
	_Atomic uint32_t work; /* futex of the worker */
	struct vidmm_tdr_options tdr;
	struct vmm_os_thread *watchdog; /* NULL: timeouts are disabled */
	_Atomic uint32_t watch;         /* futex of the watchdog */
	_Atomic bool watch_asleep; /* the next submission to an idle GPU must wake the watchdog */
	_Atomic bool watch_quit;
	/* Ring: when the adapter was reset. Only the watchdog uses it. */
	uint64_t reset_ns[VIDMM_TDR_LIMIT_MAX];
	_Atomic bool quit;
	/* No power: nothing new is prepared, and nothing is closed in the miniport. */
	_Atomic bool halted;
	_Atomic bool devices_halted;       /* creation of devices is blocked */
	_Atomic uint32_t creating_devices; /* threads that create a device */
};
_Static_assert(offsetof(struct vmm_node, paging) - offsetof(struct vmm_node, contexts) <=
		       2 * VMM_CACHE_LINE,
	       "what packets write most often of their node is in two cache lines");
_Static_assert(
	offsetof(struct vmm_sched, report) - offsetof(struct vmm_sched, prepare) ==
			VMM_CACHE_LINE &&
		sizeof(((struct vmm_sched *)NULL)->report) <= VMM_CACHE_LINE,
	"what each submission writes, and what each DPC reads of all nodes, is one cache line "
	"each");

static inline bool vmm_fence_reached(uint32_t completed, uint32_t fence)
{
	return (int32_t)(completed - fence) >= 0; /* ids wrap */
}

#endif
