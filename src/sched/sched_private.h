/* SPDX-License-Identifier: MIT */
/*
 * The types that the files of sched share, and the functions that they call in each other.
 *
 * Locks that the comments name: the submit lock, the paging lock and the state lock of the adapter,
 * outermost first (docs/locking.md). "Submit lock", "paging lock" or "state lock" after a member
 * says which lock guards it; after a function it says which lock the caller holds.
 *
 * The path of a packet: prepare queue (sched->prepare), ready queue of its context (vmm_turn.ready)
 * or of paging (vmm_node.paging), hardware queue (vmm_node.hardware), retired.
 */
#ifndef VMM_SCHED_PRIVATE_H
#define VMM_SCHED_PRIVATE_H

#include "sched/sched.h"
#include "sync/packet.h"
#include "sync/sync.h"

extern const struct vmm_sync_driver vmm_sched_sync_driver; /* sync_driver.c */

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
	/* The newest packet of the context that is complete; that was submitted to the GPU. */
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
	DXGKARG_SUBMITCOMMAND submit;
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
	struct vmm_backing backing;
	uint64_t bus_address;
	/*
	 * Where an aperture maps the buffer (DMA-05). Segment 0 and address 0: not mapped. On a
	 * context that needs no aperture: segment 0 and the bus address. Written with the paging
	 * lock and the state lock held.
	 */
	struct vmm_dma_mapping place;
	bool pinned;        /* with the miniport, or prepared and not retired; state lock */
	uint64_t mapped_by; /* paging packet that maps it */
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
	uint64_t commands;      /* GPU virtual address of the commands (virtual.c) */
	uint32_t present;       /* VMM_PRESENT_* flags; 0: a render */
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

enum { VMM_PRESENT_PACKET = 1, VMM_PRESENT_MMIO = 2 };

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
	/* Commands are at GPU virtual addresses: no DMA buffers, `va` is used (virtual.c). */
	bool by_address;
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
	 * A device was lost and its queued packets are to be cancelled; counted in sched->chores.
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

struct vmm_node {
	/* Ready queues. State lock; packets leave them only with the paging lock held, too. */
	struct vmm_list paging;   /* paging packets in submission order */
	struct vmm_list contexts; /* vmm_turn.link of contexts that have prepared packets */
	/*
	 * Packets that the miniport has. State lock; the DPC removes them without the paging lock.
	 */
	struct vmm_list hardware;
	/* State lock. */
	uint32_t hardware_count VMM_GUARDED_BY(vmm_state_lock_class);
	/* Packets in `contexts` that will not run. */
	uint32_t cancelled VMM_GUARDED_BY(vmm_state_lock_class);
	uint32_t newest; /* the newest id that the miniport was given on this node */
	/* The next packet needs a newer id, which needs PASSIVE_LEVEL; counted in sched->chores. */
	bool stale VMM_GUARDED_BY(vmm_state_lock_class);
	/* Node time that completed packets took. */
	uint64_t busy_ns VMM_GUARDED_BY(vmm_state_lock_class);
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
	_Atomic uint32_t reported; /* newest completed fence that an interrupt reported */
	_Atomic uint32_t report_pending;
	struct vmm_fault fault[VMM_FAULTS_MAX];
	_Atomic uint32_t fault_head, fault_tail;
	struct vmm_page_fault page_fault[VMM_PAGE_FAULTS_MAX];
	_Atomic uint32_t page_fault_head, page_fault_tail;
	/*
	 * The context of the newest submission, if its device has context allocations; NULL: that
	 * was paging, or a device without any. Paging lock.
	 */
	struct vmm_context *current VMM_GUARDED_BY(vmm_paging_lock_class);
	uint32_t last_completed; /* fence */
	uint32_t last_submitted; /* fence */
	/* Of the first packet in `hardware` (watch.c). State lock. */
	/* When it became the first. */
	uint64_t since_ns VMM_GUARDED_BY(vmm_state_lock_class);
	/* When the miniport was asked for its current fence; 0: not yet (SUB-14). */
	uint64_t queried_ns VMM_GUARDED_BY(vmm_state_lock_class);
	struct vmm_preempt preempt;
	struct vmm_engine engine;
	/*
	 * The device whose packet completed last; NULL: that was paging, or the device has ended.
	 */
	struct vmm_device *last_device VMM_GUARDED_BY(vmm_state_lock_class);
};

struct vmm_sched {
	struct vmm_adapter *adapter;
	const struct vmm_port_caps *caps;
	struct vmm_node node[VMM_NODES_MAX];
	struct vmm_list address_updates; /* address.c; paging lock */
	struct vmm_list prepare;    /* render packets to be prepared, in call order; state lock */
	struct vmm_list mapped_dma; /* buffers that are mapped into an aperture; paging lock */
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
	_Atomic uint32_t ready_count; /* packets in ready queues */
	_Atomic uint32_t prepare_count;
	/*
	 * Deferred work for the next holder of the paging lock: preemption requests, engine resets,
	 * cancellations after a lost device, packets that need a new id
	 * (vmm_chores_locked).
	 */
	_Atomic uint32_t chores;
	_Atomic bool
		blocked; /* the worker waits for the GPU on behalf of the first packet to prepare */
	_Atomic uint32_t kicks;   /* changes when a completion may have made packets submittable */
	_Atomic bool handed_over; /* the worker is to feed the GPU (vmm_sched_hand_over) */
	/* Packets that the miniport has. */
	uint32_t hardware_total VMM_GUARDED_BY(vmm_state_lock_class);
	/* Nodes with engine.device_lost set. */
	uint32_t losing_nodes VMM_GUARDED_BY(vmm_state_lock_class);
	struct vmm_hw *hw; /* hardware queues (hw_private.h); NULL: none */
	/* Commands of hardware queues that the miniport has. */
	uint32_t hw_running VMM_GUARDED_BY(vmm_state_lock_class);
	/* Number of the newest synchronous paging packet that was submitted; state lock. */
	uint64_t newest_synchronous VMM_GUARDED_BY(vmm_state_lock_class);
	uint32_t next_fence; /* paging lock */
	/* Counts attempts to make a working set resident; identifies each of them. Paging lock. */
	uint64_t preparations VMM_GUARDED_BY(vmm_paging_lock_class);
	/* Patch locations of all submissions. */
	uint64_t patches VMM_GUARDED_BY(vmm_state_lock_class);
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

/* ---- order.c ---- */
void vmm_turn_init(struct vmm_context *context);
/*
 * Returns the number of the newest packet of the node that the buffer must not overtake; 0: none,
 * or the GPU has no outstanding work of other contexts there. Submit lock.
 */
uint64_t vmm_order_after(struct vmm_sched *sched, const struct vmm_dma *dma)
	VMM_REQUIRES(vmm_submit_lock_class);
/* Notes that the buffer was queued under that number. Submit lock. */
void vmm_order_queued(struct vmm_sched *sched, const struct vmm_dma *dma, uint64_t sequence)
	VMM_REQUIRES(vmm_state_lock_class);
/* Append a packet to its ready queue; put it back at the head; remove it. State lock. */
void vmm_order_ready_locked(struct vmm_sched *sched, struct vmm_packet *packet)
	VMM_REQUIRES(vmm_state_lock_class);
void vmm_order_requeue_locked(struct vmm_sched *sched, struct vmm_packet *packet)
	VMM_REQUIRES(vmm_state_lock_class);
void vmm_order_take_locked(struct vmm_sched *sched, struct vmm_packet *packet)
	VMM_REQUIRES(vmm_state_lock_class);
/*
 * Returns the packet that the node runs next, of those that may run; NULL: none. State lock.
 *
 *   *urgent  set if what the node runs now is to be preempted for the packet (SCH-05)
 *   *stale   set to a render packet that was overtaken: the returned one, or the one behind the
 *            returned paging packet. Ids rise on a node (SUB-01), so it needs a new id and must be
 *            patched again (PAT-14).
 */
struct vmm_packet *vmm_order_next_locked(struct vmm_sched *sched, struct vmm_node *node,
					 bool *urgent, struct vmm_packet **stale)
	VMM_REQUIRES(vmm_state_lock_class);
/* Charges `ns` of node time to the context of the packet. State lock. */
void vmm_order_charge_locked(struct vmm_sched *sched, const struct vmm_packet *packet, uint64_t ns)
	VMM_REQUIRES(vmm_state_lock_class);
static inline struct vmm_packet *vmm_order_first(const struct vmm_context *context)
{
	return vmm_container_of(context->turn.ready.next, struct vmm_packet, link);
}

/* Appends a prepared packet to its ready queue, and counts it. Paging lock. */
void vmm_queue_ready(struct vmm_sched *sched, struct vmm_packet *packet)
	VMM_REQUIRES(vmm_paging_lock_class);

/* ---- steps.c ---- */
void vmm_steps_init(struct vmm_context *context);
/*
 * Holds a DMA buffer that was queued, and has its number, behind the waits of the context. Returns
 * false if there are none. State lock.
 */
bool vmm_steps_hold_locked(struct vmm_context *context, struct vmm_dma *dma)
	VMM_REQUIRES(vmm_state_lock_class);
/*
 * Does every step that has become possible: after completions, submissions, cancellations, a lost
 * device, or satisfied waits. Returns true if buffers were released to the prepare queue. The
 * caller holds no lock but the paging lock.
 */
bool vmm_steps_advance(struct vmm_sched *sched);
/* The same where the caller may not prepare packets: wakes the worker if buffers were released. */
void vmm_steps_poll(struct vmm_sched *sched);
/*
 * Queues a wait or a signal in its contexts. Sets *released if buffers joined the prepare queue:
 * the caller then prepares packets. No lock held.
 */
NTSTATUS vmm_steps_queue(struct vmm_context *context, const struct vmm_sched_sync *sync,
			 bool *released) VMM_MUST_CHECK;
/* Gives up unsatisfied waits: the context ends or its calls must return. No lock held. */
void vmm_steps_give_up(struct vmm_context *context);
void vmm_steps_destroy(struct vmm_sched *sched);

/* ---- synchronize.c ---- */
/* Gives up the waits, then blocks until all steps are done or dropped. No lock held. */
void vmm_steps_end(struct vmm_context *context);

/* ---- level.c ---- */
uint32_t vmm_priority_level(const struct vmm_context *context) VMM_REQUIRES(vmm_state_lock_class);
/* Returns true if a context of this level may wait without limit while others have work. */
bool vmm_level_may_starve(uint32_t level);
/* Returns true if a context of this level yields to no other, however long the other waits. */
bool vmm_level_never_yields(uint32_t level);

/* ---- retire.c ---- */
uint32_t vmm_fence_next(struct vmm_sched *sched) VMM_REQUIRES(vmm_paging_lock_class);
static inline bool vmm_fence_reached(uint32_t completed, uint32_t fence)
{
	return (int32_t)(completed - fence) >= 0; /* ids wrap */
}
/* The packet is complete. State lock. */
void vmm_packet_retired_locked(struct vmm_sched *sched, struct vmm_packet *packet)
	VMM_REQUIRES(vmm_state_lock_class);
/* Retires that fence and every packet before it. Returns the number of packets. State lock. */
uint32_t vmm_queue_retire_locked(struct vmm_sched *sched, struct vmm_node *node, uint32_t fence)
	VMM_REQUIRES(vmm_state_lock_class);
/* Returns the packet with that id that the miniport has; NULL: it has none. State lock. */
struct vmm_packet *vmm_on_hardware(const struct vmm_node *node, uint32_t fence);
/* SUB-12: the miniport reported an id that the hardware does not have. State lock. */
void vmm_queue_refuse_report(struct vmm_sched *sched, uint32_t index, uint32_t fence);

/* ---- reports.c ---- */
/* DIRQL: record the completion of a fence id; a fault, unless its ring is full. */
void vmm_report_completed(struct vmm_node *node, uint32_t fence);
bool vmm_report_fault(struct vmm_node *node, uint32_t fence, uint32_t status);
/*
 * Applies the recorded completions and faults of the node. Returns the number of packets that
 * retired. State lock.
 */
uint32_t vmm_reports_retire_locked(struct vmm_sched *sched, uint32_t index)
	VMM_REQUIRES(vmm_state_lock_class);
/* Applies all recorded reports of the node, as the DPC does. State lock. */
void vmm_queue_flush_locked(struct vmm_sched *sched, uint32_t index)
	VMM_REQUIRES(vmm_state_lock_class);

/* ---- patch.c ---- */
/* Returns DxgkDdiPatch arguments that equal the submission (PAT-15); the lists are empty. */
DXGKARG_PATCH vmm_patch_of(const DXGKARG_SUBMITCOMMAND *submit, void *dma_buffer);
/*
 * Makes one submission of the portion: sets its fence id and the arguments of Submit, and has it
 * patched. `needed`: the paging packet that must complete before it. Paging lock.
 */
NTSTATUS vmm_portion_launch(struct vmm_sched *sched, struct vmm_dma *dma, uint64_t needed)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Gives a ready packet a new id and patches it again (PAT-14). Returns false if its device is lost:
 * then the packet is about to be cancelled (TDR-12). Paging lock, PASSIVE_LEVEL.
 */
bool vmm_packet_renew(struct vmm_sched *sched, struct vmm_packet *packet)
	VMM_REQUIRES(vmm_paging_lock_class);

/* ---- queue.c ---- */
/*
 * Moves a whole buffer and its copies from the prepare queue to the ready queues; may submit it.
 * Paging lock.
 */
void vmm_queue_prepared(struct vmm_sched *sched, struct vmm_dma *dma)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Submits every packet that may run, and does the deferred work. Paging lock. */
void vmm_queue_drain_locked(struct vmm_sched *sched) VMM_REQUIRES(vmm_paging_lock_class);
/* ---- removal.c ---- */
/*
 * Removes the adapter, as nothing completes any more; packets count as complete. The first with no
 * lock held, the second with the paging lock.
 */
void vmm_sched_abandon(struct vmm_adapter *adapter);
void vmm_sched_abandon_locked(struct vmm_adapter *adapter) VMM_REQUIRES(vmm_paging_lock_class);

/* ---- wait.c ---- */
/*
 * Submits what is ready and does the deferred work of the nodes. A thread that sleeps with the
 * submit lock held calls this at each progress, because the worker, which would do it, may wait for
 * that lock. Unlike vmm_sched_kick it waits for the paging lock: its holder may be a DPC, which
 * leaves work for PASSIVE_LEVEL to the worker.
 */
void vmm_sched_feed_locked(struct vmm_adapter *adapter) VMM_REQUIRES(vmm_submit_lock_class);
/*
 * Called by the worker: submits packets until everything that is queued now is complete. If that
 * cannot be, abandons the adapter. The caller holds no lock but the submit lock.
 */
void vmm_sched_feed_until_idle(struct vmm_adapter *adapter, uint32_t reason)
	VMM_REQUIRES(vmm_submit_lock_class);
/* Waits for a packet of a timeline. If that fails, abandons the adapter. No lock held. */
void vmm_sched_wait(struct vmm_adapter *adapter, uint32_t timeline, uint64_t sequence,
		    uint32_t reason);
/* ---- prepare.c ---- */
/*
 * Completes the first buffer of the prepare queue, and its copies, unexecuted and in queue order.
 * Paging lock.
 */
void vmm_prepare_cancelled(struct vmm_sched *sched, struct vmm_dma *dma)
	VMM_REQUIRES(vmm_paging_lock_class);
/* In a client's thread: prepares packets up to the first that must wait; the worker continues. */
void vmm_prepare_pump(struct vmm_adapter *adapter);
/* Prepares packets, and waits for the GPU where necessary, until the prepare queue is empty. */
/* Prepares packets until none is left to prepare, waiting for the GPU meanwhile. */
void vmm_prepare_pump_waiting(struct vmm_adapter *adapter);
void vmm_prepare_pump_waiting_locked(struct vmm_adapter *adapter)
	VMM_REQUIRES(vmm_submit_lock_class);
/*
 * Closes in the miniport what clients destroyed and the GPU has finished with. The caller holds no
 * lock but the submit lock.
 */
void vmm_reap(struct vmm_adapter *adapter);
void vmm_reap_locked(struct vmm_adapter *adapter) VMM_REQUIRES(vmm_submit_lock_class);
/* Continues the operations of paging queues (2.x). */
void vmm_prepare_paging_work(struct vmm_adapter *adapter);

/* ---- gather.c; paging lock ---- */
/*
 * Makes the working set of the portion resident, as of sched->preparations, and pins the buffer.
 * Ends the portion earlier if its working set does not fit. Returns VMM_PENDING if the GPU must
 * complete work first.
 */
vmm_status vmm_gather(struct vmm_sched *sched, struct vmm_dma *dma) VMM_MUST_CHECK
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Returns true if every listed allocation was resident at its placement when the list was captured
 * and no placement has changed since. Nothing is then to be made resident, and the addresses in the
 * list are valid.
 */
static inline bool vmm_gather_is_needless(const struct vmm_dma *dma)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&dma->context->device->adapter->paging_lock);
	return vmm_likely(dma->in_place &&
			  dma->placements == dma->context->device->adapter->placements &&
			  !dma->split);
}
/* Returns the set that a packet of a 2.x device needs, as of sched->preparations. */
struct vmm_residency_set vmm_gather_set(const struct vmm_sched *sched, const struct vmm_dma *dma)
	VMM_REQUIRES(vmm_paging_lock_class);

/* ---- context_memory.c: context allocations (PRE-11, SUB-20) ---- */
/*
 * A call of DxgkDdiCreateDevice or DxgkDdiCreateContext in progress on a thread. Within it the
 * miniport may create context allocations. context NULL: the device is being created.
 */
struct vmm_ddi_creation {
	struct vmm_list link;
	struct vmm_device *device;
	const struct vmm_context *context;
	const struct vmm_os_thread *thread;
};
void vmm_ddi_creation_begin(struct vmm_ddi_creation *creation, struct vmm_device *device,
			    const struct vmm_context *context);
void vmm_ddi_creation_end(struct vmm_ddi_creation *creation);
NTSTATUS vmm_context_memory_create(struct vmm_sched *sched,
				   DXGKARGCB_CREATECONTEXTALLOCATION *args);
NTSTATUS vmm_context_memory_destroy(struct vmm_sched *sched, HANDLE allocation);
/*
 * Makes the context allocations of the context that runs the buffer, and of the contexts of its
 * copies, resident as of that preparation. Paging lock.
 */
vmm_status vmm_context_memory_gather(struct vmm_dma *dma, uint64_t preparation) VMM_MUST_CHECK
	VMM_REQUIRES(vmm_paging_lock_class);
bool vmm_context_memory_is_in_place(const struct vmm_dma *dma) VMM_REQUIRES(vmm_paging_lock_class);
static inline bool vmm_context_memory_is_none(const struct vmm_dma *dma)
{
	return vmm_likely(vmm_list_empty(&dma->context->device->context_allocations) &&
			  !dma->users);
}

/* ---- paging.c ---- */
/*
 * The context's packets are complete and the miniport is about to destroy it: switches its node off
 * the context. No lock held.
 */
void vmm_context_memory_leave(struct vmm_context *context);

/* ---- split.c; paging lock ---- */
/*
 * Return the first, and one after the last, of the patch locations that share the SplitOffset of
 * `patch`.
 */
uint32_t vmm_split_group(const struct vmm_dma *dma, uint32_t patch)
	VMM_REQUIRES(vmm_paging_lock_class);
uint32_t vmm_split_group_end(const struct vmm_dma *dma, uint32_t patch)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Ends the portion before `patch`, the first patch location of its group. patch_count: the portion
 * is the whole rest.
 */
void vmm_split_end_at(struct vmm_dma *dma, uint32_t patch) VMM_REQUIRES(vmm_paging_lock_class);
/* The portion has been patched: appends it to its ready queue and begins the next one. */
void vmm_split_send(struct vmm_sched *sched, struct vmm_dma *dma)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Prepares for the next portion. Returns VMM_PENDING while the one before is not complete. */
vmm_status vmm_split_resume(struct vmm_sched *sched, struct vmm_dma *dma) VMM_MUST_CHECK
	VMM_REQUIRES(vmm_paging_lock_class);
/* SPL-05: returns true if the resource table holds the instance at the split point. */
static inline bool vmm_split_is_bound(const struct vmm_dma *dma,
				      const struct vmm_instance *instance)
{
	return dma->split && atomic_load_explicit(&instance->active[dma->packet.timeline],
						  memory_order_relaxed) == dma->packet.sequence;
}
static inline struct vmm_dma *vmm_dma_of(struct vmm_packet *packet)
{
	return packet->portion ? vmm_container_of(packet, struct vmm_dma, part)
			       : vmm_container_of(packet, struct vmm_dma, packet);
}

/* ---- copies.c, broadcast.c ---- */
static inline struct vmm_dma *vmm_copy_of(struct vmm_list *link)
{
	return vmm_container_of(link, struct vmm_dma, copy);
}
/* Returns the buffer whose memory a buffer or copy uses. */
static inline struct vmm_dma *vmm_dma_buffer(struct vmm_dma *dma)
{
	return vmm_unlikely(dma->owner != NULL) ? dma->owner : dma;
}
/*
 * The contexts, of the owner's device, that run a buffer besides its owner. None of them ends
 * during the call.
 */
struct vmm_broadcast {
	uint32_t count;
	struct vmm_context *context[VMM_BROADCAST_MAX];
};
/*
 * Attaches one copy for each context of `b` (NULL: none) to a buffer that is about to be queued.
 * STATUS_NO_MEMORY: the caller gives the buffer back.
 */
NTSTATUS vmm_broadcast_add_copies(const struct vmm_broadcast *b,
				  struct vmm_dma *dma) VMM_MUST_CHECK;
/*
 * Returns true, with a reason reported, if one of the contexts has a wait in its queue. The submit
 * lock keeps buffers from being queued behind a wait until the caller has refused.
 */
bool vmm_broadcast_is_held(const struct vmm_context *owner, const struct vmm_broadcast *b) VMM_COLD
	VMM_REQUIRES(vmm_submit_lock_class);
/* Returns the copies of a buffer that was not queued. State lock. */
void vmm_broadcast_release_locked(struct vmm_dma *dma) VMM_REQUIRES(vmm_state_lock_class);
/* The buffer is being queued: its copies share its memory and lists. State lock. */
void vmm_broadcast_share_locked(struct vmm_dma *dma) VMM_REQUIRES(vmm_state_lock_class);
/* Copies the buffer's current portion and placement to its copies. Paging lock. */
void vmm_broadcast_copy_portion(struct vmm_dma *dma) VMM_COLD VMM_REQUIRES(vmm_paging_lock_class);
/* Appends the prepared copies to their ready queues. State lock. */
void vmm_broadcast_ready_locked(struct vmm_sched *sched, struct vmm_dma *dma) VMM_COLD
	VMM_REQUIRES(vmm_state_lock_class);
/*
 * SPL-16, if verification is enabled: checks that all contexts run the same content. Paging lock.
 */
void vmm_broadcast_verify(struct vmm_sched *sched, struct vmm_dma *dma,
			  const DXGKARG_SUBMITCOMMAND *submit) VMM_COLD
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * The context ends: wait until no call broadcasts to it; wait until no other context runs its
 * buffers; free its copies. No lock held.
 */
void vmm_broadcast_await_calls(const struct vmm_context *context);
void vmm_broadcast_await_copies(struct vmm_context *context);
void vmm_broadcast_free_copies(struct vmm_context *context);

/* ---- power.c ---- */
/* Bracket the creation of a device. begin waits while the adapter has no power. */
vmm_status vmm_power_begin_device(struct vmm_adapter *adapter) VMM_MUST_CHECK;
void vmm_power_end_device(struct vmm_adapter *adapter);
/*
 * Returns true if preparation is halted and the buffer must stay queued. A buffer that is being
 * split continues: what is bound at its split point must not move (SPL-05).
 */
static inline bool vmm_power_holds_back(const struct vmm_sched *sched, const struct vmm_dma *dma)
{
	return vmm_unlikely(atomic_load_explicit(&sched->halted, memory_order_relaxed)) &&
	       !dma->split;
}

/* ---- wake.c; any lock held ---- */
void vmm_worker_wake(struct vmm_sched *sched);
void vmm_watch_wake(struct vmm_sched *sched) VMM_COLD;

void vmm_worker_main(void *adapter); /* worker.c */

#include "sched/display.h"
#include "sched/hw.h"
#include "sched/recovery.h"

/* ---- address.c: updates of GPU virtual addresses (VA-10) ---- */
void vmm_address_work(struct vmm_adapter *adapter);
/* Drops the device's queued updates. No thread is inside the device. */
void vmm_address_end_device(struct vmm_device *device);

/* ---- virtual.c: contexts whose commands are at GPU virtual addresses (SUB-23 to SUB-26) ---- */
NTSTATUS vmm_command_begin(struct vmm_context *context);
NTSTATUS vmm_command_refuse_present(const struct vmm_context *context);
/*
 * SUB-25: lets the miniport check the private data. `object`: the handle of the context or hardware
 * queue. STATUS_INVALID_USER_BUFFER: the miniport refuses it. The caller holds no lock but the
 * paging lock.
 */
NTSTATUS vmm_command_validate(const struct vmm_device *device, uint32_t object,
			      DXGKARG_VALIDATESUBMITCOMMAND *args) VMM_MUST_CHECK;

/* ---- pool.c: the pool of DMA buffers of a context ---- */
/*
 * Takes a buffer from the pool, creates one, or waits for the oldest in flight. STATUS_NO_MEMORY,
 * STATUS_DEVICE_REMOVED.
 */
NTSTATUS vmm_dma_get(struct vmm_context *context, struct vmm_dma **dma);
/* The same, preparing packets meanwhile: the worker may be waiting for the submit lock. */
NTSTATUS vmm_dma_get_locked(struct vmm_context *context, struct vmm_dma **dma)
	VMM_REQUIRES(vmm_submit_lock_class);
/* Returns a buffer that was not queued to the pool. */
void vmm_dma_give_back(struct vmm_dma *dma);

/* ---- dma.c: the memory of DMA buffers ---- */
void vmm_dma_init_links(struct vmm_dma *dma);
/* Creates a buffer for the pool of the context. NULL: no memory, or over the process's limit. */
struct vmm_dma *vmm_dma_create(struct vmm_context *context) VMM_MUST_CHECK;
/* While pinned, the buffer's aperture mapping does not change. */
void vmm_dma_pin(struct vmm_dma *dma, bool pinned);
/*
 * Maps a pinned buffer into an aperture. Returns VMM_PENDING if no mapping is possible while the
 * GPU uses the aperture (DMA-05). Paging lock.
 */
vmm_status vmm_dma_map(struct vmm_dma *dma) VMM_MUST_CHECK VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Unmaps all buffers that are not pinned; their next use maps them again. Returns true if one was
 * mapped. Paging lock.
 */
bool vmm_dma_unmap_unpinned(struct vmm_adapter *adapter) VMM_REQUIRES(vmm_paging_lock_class);
/* Unmaps all buffers after the adapter's reset. Paging lock. */
void vmm_dma_unmap_all(struct vmm_adapter *adapter) VMM_REQUIRES(vmm_paging_lock_class);
/* Returns true if another mapped buffer is pinned, and so can be unmapped later. Paging lock. */
bool vmm_dma_another_is_pinned(struct vmm_adapter *adapter, const struct vmm_dma *wanting)
	VMM_REQUIRES(vmm_paging_lock_class);
void vmm_dma_destroy_all(struct vmm_context *context);

/* ---- validity (valid.c): asserted where a function is given a context; constant time ---- */
/*
 * The context's node and adapter of the link exist, its priorities are in range (SCH-01 to SCH-03),
 * and its sizes agree with by_address and no_patching. Reads constant and atomic members.
 */
bool vmm_context_is_valid(const struct vmm_context *context);
/* Also: at most all buffers are taken, and fewer if one is free. */
bool vmm_context_is_consistent_locked(const struct vmm_context *context)
	VMM_REQUIRES(vmm_state_lock_class);

/* ---- client_buffers.c: command buffer and lists of an out-of-process client ---- */
/* Sets context->mapped; maps the buffers into an out-of-process client. */
vmm_status vmm_context_map_buffers(struct vmm_context *context) VMM_MUST_CHECK;
void vmm_context_unmap_buffers(struct vmm_context *context);
/*
 * Copies what the request names from the client's buffers. The request's sizes have been checked.
 * Submit lock.
 */
void vmm_context_copy_buffers_slow(struct vmm_context *context,
				   const struct vmm_render_request *request)
	VMM_REQUIRES(vmm_submit_lock_class);
static inline void vmm_context_copy_buffers(struct vmm_context *context,
					    const struct vmm_render_request *request)
	VMM_REQUIRES(vmm_submit_lock_class)
{
	vmm_assert_held(&context->device->adapter->submit_lock);
	if (vmm_unlikely(context->client_buffers != NULL))
		vmm_context_copy_buffers_slow(context, request);
}

#endif
