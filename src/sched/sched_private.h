/* SPDX-License-Identifier: MIT */
#ifndef VMM_SCHED_PRIVATE_H
#define VMM_SCHED_PRIVATE_H

#include "sched/sched.h"
#include "sync/packet.h"
#include "sync/sync.h"

extern const struct vmm_sync_driver vmm_sched_sync_driver; /* sync_driver.c */

#define VMM_DMA_BUFFERS_PER_CONTEXT 16u
#define VMM_PAGING_PACKETS          256u
#define VMM_FAULTS_MAX \
	64u /* a power of two, not less than what may be outstanding on a node (SUB-15) */

/*
 * What a context's queue has that is not at once for the GPU (steps.c): waits, signals, and DMA buffers that are behind a
 * wait. Guarded by the state lock.
 */
enum vmm_step_kind { VMM_STEP_BUFFER, VMM_STEP_WAIT, VMM_STEP_SIGNAL };
struct vmm_step {
	struct vmm_list link; /* in context->steps.queue */
	uint8_t kind;         /* enum vmm_step_kind */
	bool begun, told;     /* a wait: it has been reached; it is over, and that has been told */
	bool said;            /* that it holds the context, or stands behind what does (MFN-31) */
	bool over;            /* its end came before it could be withdrawn: it will be told */
	struct vmm_context *context;
	struct vmm_software *software; /* of a wait or signal */
	uint64_t after; /* a signal: the context's packet that it comes after; 0: none */
};

#define VMM_SPARE_SOFTWARE 1024u
/* A wait, or a signal, which several contexts may have to reach. */
struct vmm_software {
	struct vmm_sync_packet sync;
	struct vmm_step own;            /* the first context's */
	struct vmm_step *more;          /* the other contexts'; NULL for most */
	uint32_t left;                  /* steps that are not done; guarded by the state lock */
	bool dropped;                   /* a context that is lost, or ended, was to reach it */
	struct vmm_software *next_told; /* in sched->told */
	struct vmm_list free;           /* in sched->free_software; guarded by the state lock */
};

/* Of a context (steps.c). Guarded by the state lock. */
struct vmm_steps {
	struct vmm_list queue;
	struct vmm_list link;  /* in sched->stepping while there are some */
	uint32_t holding;      /* waits and buffers in the queue: what comes now is behind them */
	bool advancing;        /* somebody is at it */
	bool ending;           /* a wait that is not satisfied, and all behind it, is given up */
	_Atomic bool given_up; /* that has happened */
	uint64_t done, submitted; /* its newest packet that is complete, that the GPU has had */
	struct vmm_sync_owner owner;
};

/* What the hardware executes. */
struct vmm_packet {
	struct vmm_list link; /* in one queue at a time: prepare, node ready, node hardware, free */
	bool paging;
	bool synchronous; /* no render packet is submitted until it is complete (PAG-21) */
	bool cancelled;   /* completes in its turn without reaching the hardware */
	bool refused;     /* by the miniport: complete once those before it are (SUB-23) */
	bool portion;     /* vmm_dma.part: its completion completes nothing but itself (SPL-07) */
	uint32_t node, timeline;
	uint64_t sequence; /* on the timeline */
	uint64_t
		paging_needed; /* must be complete on the paging timeline before this may run; 0: nothing */
	uint32_t fence;
	DXGKARG_SUBMITCOMMAND submit;
};

/* One DMA buffer with everything that travels with it; belongs to a context's pool. */
struct vmm_dma {
	struct vmm_packet packet;
	struct vmm_work work; /* while it is queued */
	struct vmm_step step; /* while it is held behind a wait */
	uint64_t after; /* submitted once everything up to there has been (order.c); 0: whenever */
	uint32_t preempted; /* how often it was running when its node was preempted */
	bool shielded;      /* not again (SCH-06) */
	struct vmm_context *context;
	struct vmm_list
		pool; /* in context->free_dma while nobody uses it; guarded by the state lock */
	struct vmm_list all; /* in context->all_dma; likewise */
	struct vmm_list
		mapped; /* in sched->mapped_dma while it has a place; guarded by the paging lock */
	struct vmm_backing backing;
	uint64_t bus_address;
	/*
	 * The place in an aperture (DMA-05); segment 0 and address 0: none yet, or given up. Without an aperture segment 0 and
	 * the bus address. Changes under the paging and the state lock.
	 */
	struct vmm_dma_place place;
	bool pinned; /* with the miniport, or prepared and not retired; guarded by the state lock */
	uint64_t mapped_by; /* paging packet that maps it */
	void *private_data;
	uint64_t charged_bytes; /* to the account of its context's process */
	DXGK_ALLOCATIONLIST *list;
	struct vmm_instance **instances; /* parallel to list; NULL for NULL entries */
	uint8_t *uses;                   /* parallel to list: VMM_USE_* */
	D3DDDI_PATCHLOCATIONLIST *patches;
	uint32_t list_count, patch_count, used_bytes, private_used;
	/*
	 * The portion that is being prepared: its patch locations and its bytes; all there is unless the buffer is split
	 * (SPL-01, SPL-02). Then `part` carries each portion but the last, while the buffer stays at the head of the prepare
	 * queue. Guarded by the paging lock, parts_busy by the state lock.
	 */
	uint32_t patch_start, patch_end, start, end;
	uint32_t part_patch_start; /* of `part` */
	uint32_t short_of;         /* the patch location whose allocation found no room */
	bool split;                /* the portions before `start` are with the GPU, or done */
	uint32_t
		parts_busy; /* submissions of the last of them that are not done; more than one of a broadcast */
	struct vmm_packet part;
	uint64_t submission; /* adapter->submissions when it was queued */
	uint64_t placements; /* adapter->placements when the list was captured */
	bool in_place; /* all that is listed was there, and nothing to be done before its use (memory.h) */
	bool writing;  /* some entry is written */
	bool renamed;  /* some entry's allocation has more than one instance */
	bool offering; /* some entry has an offer */
	bool null_rendering;
	uint64_t commands;      /* where they are, by GPU virtual address (virtual.c) */
	uint32_t present;       /* VMM_PRESENT_...; 0: a render */
	bool counts_as_present; /* its completion makes room for another (SUB-17) */
	struct vmm_flip *flip;  /* is due when this completes; NULL for most */
	/*
	 * Broadcast (broadcast.c). Of a buffer: the copies that other contexts run, of a copy: its place among them, and the
	 * buffer whose memory it has. Until all are complete (`users`; 0: it is not broadcast) the buffer is not free. State lock.
	 */
	struct vmm_list copies, copy;
	struct vmm_dma *owner;
	uint32_t users;
	bool summed; /* what the portion that begins at sum_start contains (SPL-16); paging lock */
	uint32_t sum_start;
	uint64_t sum;
};

enum { VMM_PRESENT_PACKET = 1, VMM_PRESENT_MMIO = 2 };

/* What a source shows or is to show. Guarded by the state lock, the place by the paging lock until it is set. */
struct vmm_flip {
	struct vmm_list link; /* in its source's queue, or among the free ones */
	struct vmm_device *device;
	struct vmm_allocation *allocation; /* NULL: reserved, and not queued yet */
	struct vmm_instance *instance;
	uint32_t source_id, handle, process;
	void *kmd_context;
	D3DDDI_FLIPINTERVAL_TYPE interval;
	bool no_wait, mmio;
	bool due;                          /* its packet is complete */
	bool set;                          /* the miniport knows; a vsync will tell */
	uint64_t after[VMM_TIMELINES_MAX]; /* nothing is shown before these are complete (PRS-04) */
	uint32_t segment;
	uint64_t address, set_ns;
};

enum {
	VMM_USES_WRITE = 0x1, /* it may be written */
	VMM_USES_OFFER =
		0x1C, /* the priority at which the buffer's completion offers it (DMA-24) */
	VMM_USES_OFFER_SHIFT = 2,
};

/*
 * How a context's packets get their turn (order.c). Guarded by the state lock, but for what clients set.
 */
struct vmm_turn {
	_Atomic int32_t priority;    /* -7 to 7, or an absolute level (SCH-01, SCH-02) */
	_Atomic uint32_t in_process; /* 0 or 1 (SCH-03) */
	struct vmm_list ready;       /* its prepared packets, in order */
	struct vmm_list link;        /* in the node's contexts while it has some */
	uint32_t running;            /* packets of it with the miniport */
	uint32_t level;              /* its effective priority when that was last looked at */
	uint64_t used_ns;            /* of the node's time, as the clock of its level counts it */
	uint64_t cost_ns;            /* of its last packet */
	uint64_t waits_since_ns;     /* of the node's busy time: its turn was then, or it came */
};

struct vmm_context {
	struct vmm_device *device;
	struct vmm_turn turn;
	struct vmm_list link; /* in device->contexts */
	void *live;           /* hContext of its callbacks (live.h) */
	void *kmd_context;
	uint32_t handle, node;    /* as the core counts nodes (port.h) */
	uint32_t ordinal, engine; /* as the miniport does */
	uint32_t flags;
	uint32_t dma_bytes, dma_segment_set, dma_private_bytes, list_size,
		patch_size; /* as the miniport asked (DMA-01) */
	bool by_address;    /* virtual.c: it has no DMA buffers, and `va` counts */
	struct vmm_va_context va;
	bool no_patching; /* DMA-25: there are no patch locations, and the miniport has nothing to patch */
	struct vmm_context_buffers user; /* what is read at a submission */
	struct vmm_context_buffers
		shown; /* where its client writes: the same, unless that is apart */
	struct vmm_context_apart *apart; /* then it is copied; else NULL */
	struct vmm_steps steps;
	/* Guarded by the state lock, like the counts: how many there are, of these not free, of these queued. */
	struct vmm_list free_dma, all_dma;
	uint32_t dma_count, dma_taken, queued;
	struct vmm_list free_copies; /* vmm_dma.pool of copies of others' buffers; likewise */
	_Atomic uint32_t lent;     /* its buffers that others run, too, and that are not free yet */
	_Atomic uint32_t borrowed; /* calls that broadcast to it are under way */
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
struct vmm_timeout {
	bool fault; /* it is none, but a page fault that asks for a reset (TDR-19) */
	uint32_t node, fence;
	const struct vmm_hw_context *hw; /* of a hardware queue: whose; only compared */
	uint32_t request; /* the preemption request that it does not answer; 0: none was made */
	uint64_t running_ns;
};

/* Of a node (engine.c): the reset of its engine. Guarded by the state lock. */
struct vmm_engine {
	bool wanted, running; /* since then */
	bool failed;          /* the adapter's reset is next */
	bool lost; /* a device was: what it had queued is to be cancelled; one of the chores */
	uint64_t since_ns;
	struct vmm_timeout timeout; /* why */
	bool masked;                /* what its interrupts say takes no effect meanwhile */
};

/* Of a node (preempt.c). Guarded by the state lock, but for the answer: the interrupt writes it, the DPC reads it. */
struct vmm_preempt {
	bool wanted;       /* a request is to be made */
	uint32_t fence;    /* of the request that is outstanding, 0: none */
	uint64_t since_ns; /* wanted since */
	uint32_t answer, answer_last;
	_Atomic bool answered;
	bool reset; /* the adapter was, when that was the newest id: answers up to it are late ones */
	uint32_t reset_fence;
};

/* Effective priorities (order.c): 6 of idle contexts, 84 relative ones, 15 of real time. */
#define VMM_LEVELS 105u

struct vmm_node {
	/* Guarded by the state lock; they lose packets, but to the miniport's answers, under the paging lock alone. */
	struct vmm_list paging;   /* paging packets in submission order */
	struct vmm_list contexts; /* vmm_turn.link of those that have prepared packets */
	struct vmm_list hardware; /* with the miniport; guarded by the state lock */
	uint32_t hardware_count;
	uint32_t cancelled; /* packets in `contexts` that will not run */
	uint32_t newest;    /* the newest id that the miniport has heard of here */
	bool stale; /* what is next needs a newer one, and with it PASSIVE_LEVEL: one of the chores */
	uint64_t busy_ns; /* its time that completed packets took */
	uint64_t clock_ns[VMM_LEVELS];
	/*
	 * vmm_context.live, since these outlast contexts: another one may have the memory of one that is gone, but never its
	 * number. What a node chooses would depend on the memory allocator otherwise.
	 */
	const void *holder; /* whose slice it is */
	/* Who queued what here; under the submit lock. */
	const void *owner[VMM_TIMELINE_AHEAD]; /* of the packet of that number */
	const void *newest_owner;
	uint64_t newest_of_others;         /* the newest packet that is not the newest owner's */
	uint64_t flipped[VMM_SOURCES_MAX]; /* the newest flip of each source here; submit lock */
	_Atomic uint32_t reported;         /* newest completed fence the interrupt told; DIRQL */
	_Atomic uint32_t report_pending;
	struct vmm_fault fault[VMM_FAULTS_MAX]; /* ring: written at DIRQL, read by the DPC */
	_Atomic uint32_t fault_head, fault_tail;
	struct vmm_page_fault page_fault[VMM_PAGE_FAULTS_MAX]; /* likewise */
	_Atomic uint32_t page_fault_head, page_fault_tail;
	/* Whose packet was submitted last, if its device has context allocations; NULL: paging, or others. Paging lock. */
	struct vmm_context *current;
	uint32_t last_completed; /* fence */
	uint32_t last_submitted;
	/* Of the packet that is first in `hardware`; guarded by the state lock (watch.c). */
	uint64_t since_ns;   /* it is first since then */
	uint64_t queried_ns; /* the miniport was asked for its fence then; 0: not yet (SUB-14) */
	struct vmm_preempt preempt;
	struct vmm_engine engine;
	struct vmm_device
		*last_device; /* whose packet completed last; NULL: paging, or it has ended */
};

struct vmm_sched {
	struct vmm_adapter *adapter;
	const struct vmm_port_caps *caps;
	struct vmm_node node[VMM_NODES_MAX];
	struct vmm_list address_updates; /* address.c; guarded by the paging lock */
	struct vmm_list
		prepare; /* render packets waiting for preparation, call order; guarded by the state lock */
	struct vmm_list
		mapped_dma; /* buffers with a place in an aperture; guarded by the paging lock */
	struct vmm_list free_paging;
	struct vmm_packet paging_packet[VMM_PAGING_PACKETS];
	/*
	 * Ring: packets of that number of the paging timeline that are not complete. One of them is complete when all its
	 * packets are, one for each physical adapter that has something to do. Guarded by the state lock.
	 */
	uint8_t paging_parts[VMM_PAGING_PACKETS];
	/* steps.c: contexts with steps, packets to be used again; guarded by the state lock. */
	struct vmm_list stepping, free_software;
	uint32_t free_software_count; /* never more than VMM_SPARE_SOFTWARE */
	_Atomic uint32_t stepping_count;
	_Atomic(struct vmm_software *) told; /* waits that are over, newest first */
	_Atomic uint32_t tellers;            /* who is about to say so */
	_Atomic bool fences_signaled;        /* an interrupt said so (MFN-27) */
	_Atomic uint32_t ready_count;        /* packets in ready queues */
	_Atomic uint32_t prepare_count;
	_Atomic uint32_t chores; /* preemptions to be requested or to be followed up (preempt.c) */
	_Atomic bool
		blocked; /* the worker waits for the GPU on behalf of the first packet to prepare */
	_Atomic uint32_t kicks; /* moves when a completion may have made packets submittable */
	uint32_t hardware_total;
	uint32_t losing;     /* nodes whose engine.lost is set; state lock */
	struct vmm_hw *hw;   /* hardware queues (hw_private.h); NULL: none */
	uint32_t hw_running; /* commands of theirs with the miniport; state lock */
	uint64_t alone; /* the newest synchronous paging packet that was submitted; state lock */
	uint32_t next_fence;   /* guarded by the paging lock */
	uint64_t preparations; /* guarded by the paging lock */
	uint64_t patches;      /* of all submissions; guarded by the state lock */
	_Atomic uint64_t splits;
	uint64_t slice_ns, patience_ns; /* SCH-06 */
	/* Which slots have been looked at (split.c); made when first needed, guarded by the paging lock. */
	uint64_t *slots;
	uint32_t slot_words;
	struct vmm_list making; /* vmm_making.link (context_memory.c); guarded by the state lock */
	void *system_device;    /* its contexts are the adapter's paging_context */
	struct vmm_display *display;   /* NULL: the adapter shows nothing */
	struct vmm_periodic *periodic; /* likewise */
	struct vmm_os_thread *worker;
	_Atomic uint32_t work; /* futex of the worker */
	struct vidmm_tdr_options tdr;
	struct vmm_os_thread *watchdog; /* NULL: no timeouts */
	_Atomic uint32_t watch;         /* its futex */
	_Atomic bool watch_asleep;      /* until somebody submits to an idle GPU */
	_Atomic bool watch_quit;
	uint64_t reset_ns
		[VIDMM_TDR_LIMIT_MAX]; /* ring: when the adapter was reset; the watchdog's */
	_Atomic bool quit;
	_Atomic bool halted; /* nothing new is prepared, nothing closed in the miniport: no power */
	_Atomic bool devices_halted; /* nobody makes a device */
	_Atomic uint32_t making_devices;
};

/* hw_*.c; all do nothing without hardware queues */
vmm_status vmm_hw_start(struct vmm_sched *sched) VMM_MUST_CHECK;
void vmm_hw_destroy(struct vmm_sched *sched);
/* Its contexts and queues end. Nobody is inside the device; no lock held. */
void vmm_hw_destroy_device(struct vmm_device *device);
/* DIRQL: records; false: it is none of theirs, or means nothing. DISPATCH: has something completed or left the GPU? */
bool vmm_hw_record(struct vmm_sched *sched, const DXGKARGCB_NOTIFY_INTERRUPT_DATA *data);
bool vmm_hw_reported(struct vmm_sched *sched);
/* What the progress fences say takes effect: how many commands. Neither state nor sync lock held. */
uint32_t vmm_hw_scan(struct vmm_sched *sched);
/* Would the worker find something to do after a completion? */
bool vmm_hw_waits(const struct vmm_sched *sched);
/* The class of some process is another one (SCH-10). No lock held. */
void vmm_hw_class_changed(struct vmm_sched *sched);
/* The worker's, no lock held. */
void vmm_hw_work(struct vmm_adapter *adapter);
void vmm_hw_feed(struct vmm_adapter *adapter);
/* Memory could not move because of them: they are suspended (SCH-11). Paging lock held. True: some are off the GPU already. */
bool vmm_hw_make_way_locked(struct vmm_sched *sched);
/* All of them, for a change of power; true: they are. Paging lock held, PASSIVE_LEVEL. */
bool vmm_hw_halt_locked(struct vmm_sched *sched);
/* What is due on the watchdog is done; false: nothing was, and when there will be. */
bool vmm_hw_watch(struct vmm_sched *sched, uint64_t *when_ns);
bool vmm_hw_is_watched_locked(const struct vmm_sched *sched); /* state lock held */
/* Whose context it is; NULL: it has ended. State lock held. */
const struct vmm_device *vmm_hw_device(const struct vmm_sched *sched,
				       const struct vmm_timeout *timeout);
bool vmm_hw_owes(struct vmm_sched *sched);
void vmm_hw_reset_chore_locked(struct vmm_sched *sched, uint32_t node); /* paging lock held */
void vmm_hw_forget_locked(struct vmm_sched *sched);                     /* likewise */
NTSTATUS vmm_hw_invalidate(struct vmm_sched *sched, const void *handle, bool collateral);
/* fence.c */
uint32_t vmm_fence_next(struct vmm_sched *sched);
static inline bool vmm_fence_reached(uint32_t completed, uint32_t fence)
{
	return (int32_t)(completed - fence) >= 0; /* ids wrap */
}
/* order.c */
void vmm_turn_init(struct vmm_context *context);
/* Is the GPU at, or waiting for, somebody else's work on the node? Then what the piece must not overtake. Submit lock held. */
uint64_t vmm_order_after(struct vmm_sched *sched, const struct vmm_dma *dma);
void vmm_order_queued(struct vmm_sched *sched, const struct vmm_dma *dma, uint64_t sequence);
/* State lock held: */
void vmm_order_ready_locked(struct vmm_node *node, struct vmm_packet *packet);
void vmm_order_again_locked(struct vmm_node *node, struct vmm_packet *packet);
void vmm_order_take_locked(struct vmm_node *node, struct vmm_packet *packet);
/*
 * Which packet is next, of those that may run; NULL: none. `urgent`: what the node is at should make room for it (SCH-05).
 * `stale`: that packet, or the one that only paging goes before, was overtaken: ids rise on a node (SUB-01), so it needs a new
 * one and must be patched again for it (PAT-14).
 */
struct vmm_packet *vmm_order_next_locked(struct vmm_sched *sched, struct vmm_node *node,
					 bool *urgent, struct vmm_packet **stale);
/* The packet has had that much of the node's time. */
void vmm_order_charge_locked(struct vmm_node *node, const struct vmm_packet *packet, uint64_t ns);
static inline struct vmm_packet *vmm_order_first(const struct vmm_context *context)
{
	return vmm_container_of(context->turn.ready.next, struct vmm_packet, link);
}
/* steps.c */
void vmm_steps_init(struct vmm_context *context);
/* A DMA buffer is queued, and has its number. False: nothing holds it. State lock held. */
bool vmm_steps_hold_locked(struct vmm_context *context, struct vmm_dma *dma);
/*
 * Packets have completed, been submitted or cancelled, devices been lost, waits come to their end: what is due is done. True: packets
 * to be prepared have come. The paging lock held at most.
 */
bool vmm_steps_advance(struct vmm_sched *sched);
/* The same where nobody may prepare them: the worker does. */
void vmm_steps_look(struct vmm_sched *sched);
/* The calls on it are over, or are to come out: what waits is given up. No lock held. */
void vmm_steps_give_up(struct vmm_context *context);
/* That, and all its steps are done or dropped; what it held is free. No lock held. */
void vmm_steps_end(struct vmm_context *context);
void vmm_steps_destroy(struct vmm_sched *sched);
/* priority.c */
uint32_t vmm_priority_level(const struct vmm_context *context);
/* May it wait for ever while others have work? */
bool vmm_level_may_starve(uint32_t level);
/* Does it yield to nobody, however long they wait? */
bool vmm_level_never_yields(uint32_t level);
/* queue.c */
void vmm_queue_ready(struct vmm_sched *sched, struct vmm_packet *packet); /* paging lock held */
/* The same of a whole buffer, off the prepare queue, and of its copies. */
void vmm_queue_prepared(struct vmm_sched *sched, struct vmm_dma *dma);
void vmm_queue_drain_locked(struct vmm_sched *sched); /* paging lock held */
void vmm_queue_abandon_locked(
	struct vmm_adapter
		*adapter); /* removed adapter: everything counts as done; paging lock held */
void vmm_packet_retired_locked(struct vmm_sched *sched,
			       struct vmm_packet *packet); /* state lock held */
/* That fence and everything before it is complete; how many were. State lock held. */
uint32_t vmm_queue_retire_locked(struct vmm_sched *sched, struct vmm_node *node, uint32_t fence);
/* All reports of the node take effect, as in the DPC. State lock held. */
void vmm_queue_flush_locked(struct vmm_sched *sched, uint32_t index);
/* SUB-12: the miniport reported an id that is not with the hardware. State lock held. */
void vmm_queue_refuse_report(struct vmm_sched *sched, uint32_t index, uint32_t fence);
/* page_fault.c */
/* DIRQL: records. False: more than there is room for. */
bool vmm_page_fault_record(struct vmm_node *node, const DXGKARGCB_NOTIFY_INTERRUPT_DATA *data);
/* They take effect; how many packets are complete with that. State lock held. */
uint32_t vmm_page_faults_locked(struct vmm_sched *sched, uint32_t index);
static inline uint32_t vmm_page_faults(struct vmm_sched *sched, uint32_t index)
{
	const struct vmm_node *node = &sched->node[index];

	return vmm_likely(atomic_load(&node->page_fault_tail) ==
			  atomic_load(&node->page_fault_head))
		       ? 0
		       : vmm_page_faults_locked(sched, index);
}
void vmm_page_faults_forget(struct vmm_node *node); /* DIRQL */
/* engine.c */
/* A page fault asks for the reset of the node's engine, or of the adapter. State lock held. */
void vmm_engine_fault_locked(struct vmm_sched *sched, const struct vmm_timeout *timeout,
			     bool adapter);
/* A device was lost outside a reset. State lock held. */
void vmm_engine_cancel_locked(struct vmm_sched *sched, struct vmm_node *node);
/* The device's command hung the engine, or (collateral) only suffered from it: lost. State lock held. */
void vmm_engine_blame_locked(struct vmm_sched *sched, struct vmm_device *device,
			     const struct vmm_timeout *timeout, bool collateral);
/* On the watchdog. False: it is for the adapter's reset. */
bool vmm_engine_want(struct vmm_sched *sched, const struct vmm_timeout *timeout);
void vmm_engine_chore_locked(struct vmm_sched *sched,
			     uint32_t index); /* paging lock, PASSIVE_LEVEL */
/* The adapter was reset, or nothing completes any more. State lock held. */
void vmm_engine_forget_locked(struct vmm_sched *sched, struct vmm_node *node);
/* Paging lock held, PASSIVE_LEVEL: a packet that waits for its new id gets it. */
void vmm_queue_renew_stale(struct vmm_sched *sched, struct vmm_node *node);
/* preempt.c */
/* State lock held: the node is to be preempted by whoever has the paging lock next. Nothing on a miniport that is not aware. */
void vmm_preempt_want_locked(struct vmm_sched *sched, struct vmm_node *node);
/* Paging lock held. Makes the request, if one is wanted. */
void vmm_preempt_request(struct vmm_sched *sched, uint32_t index) VMM_COLD;
void vmm_preempt_chores_locked(struct vmm_sched *sched) VMM_COLD; /* paging lock held */
void vmm_preempt_record(struct vmm_sched *sched,
			const DXGKARGCB_NOTIFY_INTERRUPT_DATA *data); /* DIRQL */
/* The DPC, state lock held: has the node answered a request? */
bool vmm_preempt_answered_locked(struct vmm_sched *sched, uint32_t index);
/* The engine was reset: what is with the miniport is taken back; how many. Paging and state lock held. */
uint32_t vmm_preempt_aborted_locked(struct vmm_sched *sched, struct vmm_node *node);
/* The adapter was reset. Paging and state lock held. */
void vmm_preempt_forget_locked(struct vmm_sched *sched, struct vmm_node *node);
/* sched.c */
/* Nothing completes any more. No lock held. */
void vmm_sched_abandon(struct vmm_adapter *adapter);
/* Everything queued is complete, or the adapter given up. On the worker; the submit lock held at most. */
void vmm_sched_feed_until_idle(struct vmm_adapter *adapter, uint32_t reason);
/* What Patch is told of a portion is what Submit will be told (PAT-15); the lists are still empty. */
DXGKARG_PATCH vmm_patch_of(const DXGKARG_SUBMITCOMMAND *submit, void *dma_buffer);
void vmm_sched_wait(struct vmm_adapter *adapter, uint32_t timeline, uint64_t sequence,
		    uint32_t reason); /* no lock held */
/* prepare.c */
/* A packet in a ready queue gets a new id and is patched again (PAT-14). Paging lock held, PASSIVE_LEVEL. */
void vmm_prepare_renew(struct vmm_sched *sched, struct vmm_packet *packet);
/* First in the prepare queue, it completes unexecuted, in its turn; so do its copies. Paging lock held. */
void vmm_prepare_cancelled(struct vmm_sched *sched, struct vmm_dma *dma);
void vmm_prepare_pump(
	struct vmm_adapter *adapter); /* a client's: the worker takes over what must wait */
void vmm_prepare_pump_waiting(struct vmm_adapter *adapter); /* until nothing is left to prepare */
void vmm_prepare_paging_work(struct vmm_adapter *adapter);  /* goes on with paging queues (2.x) */
/* gather.c; paging lock held */
/* The portion, made smaller where it must be, is resident as of sched->preparations, and its buffer pinned. */
vmm_status vmm_gather(struct vmm_sched *sched, struct vmm_dma *dma) VMM_MUST_CHECK;
/* Is all that is listed in its place since the list was captured? Then nothing is to be brought in, and no address has changed. */
static inline bool vmm_gather_is_needless(const struct vmm_dma *dma)
{
	return vmm_likely(dma->in_place &&
			  dma->placements == dma->context->device->adapter->placements &&
			  !dma->split);
}
/* What a packet of a 2.x device needs, as of sched->preparations. */
struct vmm_residency_set vmm_gather_set(const struct vmm_sched *sched, const struct vmm_dma *dma);
/* context_memory.c: context allocations (PRE-11, SUB-20) */
/* What the miniport is making on this thread, and may make memory for; context NULL: the device. */
struct vmm_making {
	struct vmm_list link;
	struct vmm_device *device;
	const struct vmm_context *context;
	const struct vmm_os_thread *thread;
};
void vmm_making_begin(struct vmm_making *making, struct vmm_device *device,
		      const struct vmm_context *context);
void vmm_making_end(struct vmm_making *making);
NTSTATUS vmm_context_memory_create(struct vmm_sched *sched,
				   DXGKARGCB_CREATECONTEXTALLOCATION *args);
NTSTATUS vmm_context_memory_destroy(struct vmm_sched *sched, HANDLE allocation);
/* Of the context that runs the buffer, and of those that run it with it, in memory as of that preparation. */
vmm_status vmm_context_memory_gather(struct vmm_dma *dma, uint64_t preparation) VMM_MUST_CHECK;
bool vmm_context_memory_is_in_place(const struct vmm_dma *dma);
static inline bool vmm_context_memory_is_none(const struct vmm_dma *dma)
{
	return vmm_likely(vmm_list_empty(&dma->context->device->context_allocations) &&
			  !dma->users);
}
/* Its packets are complete, the miniport is about to end it: no node is on it any more. No lock held. */
void vmm_context_memory_leave(struct vmm_context *context);
/* of struct vmm_memory_engine */
uint64_t vmm_sched_switch_context(struct vmm_adapter *adapter, const struct vmm_device *device,
				  const void *context);
/* sched.c: packets of one number of the paging timeline, which is given out. Waits where there are none; false: in vain. */
bool vmm_paging_packets_take(struct vmm_sched *sched, struct vmm_list *taken, uint32_t count,
			     uint64_t *sequence);
/* split.c; paging lock held */
/* The first and one after the last patch location of those that share the SplitOffset of `patch`. */
uint32_t vmm_split_group(const struct vmm_dma *dma, uint32_t patch);
uint32_t vmm_split_group_end(const struct vmm_dma *dma, uint32_t patch);
/* Ends the portion before that patch location, the first of its group; patch_count: the portion is all the rest. */
void vmm_split_end_at(struct vmm_dma *dma, uint32_t patch);
/* The portion has been patched: to its node, and on to the rest. */
void vmm_split_send(struct vmm_sched *sched, struct vmm_dma *dma);
/* VMM_PENDING: its last portion is not done yet. */
vmm_status vmm_split_resume(struct vmm_sched *sched, struct vmm_dma *dma) VMM_MUST_CHECK;
/* SPL-05: bound in the resource table where the buffer is split. */
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
/* broadcast.c */
static inline struct vmm_dma *vmm_copy_of(struct vmm_list *link)
{
	return vmm_container_of(link, struct vmm_dma, copy);
}
/* Whose memory it is. */
static inline struct vmm_dma *vmm_dma_buffer(struct vmm_dma *dma)
{
	return vmm_unlikely(dma->owner != NULL) ? dma->owner : dma;
}
/* The contexts that run a buffer besides its owner, all of the owner's device. None of them ends while the call has them. */
struct vmm_broadcast {
	uint32_t count;
	struct vmm_context *context[VMM_BROADCAST_MAX];
};
/* Copies for a buffer that is to be queued. `b` NULL: none. STATUS_NO_MEMORY: give the buffer back. */
NTSTATUS vmm_broadcast_equip(const struct vmm_broadcast *b, struct vmm_dma *dma) VMM_MUST_CHECK;
/* Is one of the contexts behind a wait? Submit lock held: then no buffer comes behind one before it is given up. */
bool vmm_broadcast_is_held(const struct vmm_context *owner, const struct vmm_broadcast *b) VMM_COLD;
void vmm_broadcast_release_locked(struct vmm_dma *dma); /* it was not queued; state lock held */
void vmm_broadcast_lend_locked(struct vmm_dma *dma);    /* it is being; state lock held */
/* The portion of the buffer, and its place, are those of its copies. Paging lock held. */
void vmm_broadcast_follow(struct vmm_dma *dma) VMM_COLD;
/* Its copies are prepared: to their nodes. State lock held. */
void vmm_broadcast_ready_locked(struct vmm_sched *sched, struct vmm_dma *dma) VMM_COLD;
/* SPL-16, on request: what a submission of it is to run is what the others run. Paging lock held. */
void vmm_broadcast_verify(struct vmm_sched *sched, struct vmm_dma *dma,
			  const DXGKARG_SUBMITCOMMAND *submit) VMM_COLD;
/* The context ends: nobody is about to broadcast to it; nobody runs its buffers any more. No lock held. */
void vmm_broadcast_await_calls(const struct vmm_context *context);
void vmm_broadcast_await_copies(struct vmm_context *context);
void vmm_broadcast_free_copies(struct vmm_context *context);
/* watch.c */
/* The node's first packet is another one now, or its first: state lock held. */
static inline void vmm_watch_moved_locked(struct vmm_sched *sched, struct vmm_node *node)
{
	node->since_ns = vmm_os_now_ns(sched->adapter->os);
	node->queried_ns = 0;
}
void vmm_watch_wake(struct vmm_sched *sched) VMM_COLD;
/* Something is with an idle GPU again. No lock but the paging lock. */
static inline void vmm_watch_submitted(struct vmm_sched *sched)
{
	if (vmm_unlikely(atomic_load(&sched->watch_asleep)))
		vmm_watch_wake(sched);
}
void vmm_watch_stop(struct vmm_sched *sched);
/* recover.c */
/* On the watchdog: the adapter is reset, or dead. */
void vmm_recover(struct vmm_sched *sched, const struct vmm_timeout *timeout);
void vmm_recovery_event(struct vmm_sched *sched, uint32_t what, const struct vmm_timeout *timeout);
/* Prepared packets of lost devices will not run (TDR-12). Paging lock held. */
void vmm_cancel_lost(struct vmm_sched *sched);
/* A packet of a lost device that has not been prepared completes unexecuted (TDR-12). Paging lock held. */
void vmm_cancel_waiting(struct vmm_sched *sched, struct vmm_dma *dma) VMM_COLD;
/* power.c */
/* Around the making of a device: waits while the adapter has no power. */
vmm_status vmm_power_begin_device(struct vmm_adapter *adapter) VMM_MUST_CHECK;
void vmm_power_end_device(struct vmm_adapter *adapter);
/* A buffer that is being split goes on: what is bound where it was cut must not move (SPL-05). */
static inline bool vmm_power_holds_back(const struct vmm_sched *sched, const struct vmm_dma *dma)
{
	return vmm_unlikely(atomic_load_explicit(&sched->halted, memory_order_relaxed)) &&
	       !dma->split;
}
/* worker.c */
void vmm_worker_wake(struct vmm_sched *sched);
void vmm_worker_main(void *adapter);
void vmm_worker_reap(struct vmm_adapter *adapter); /* the submit lock held at most */
/* present.c */
/* Its DMA buffer, or the last of them, is complete: state lock held. */
void vmm_present_done_locked(struct vmm_dma *dma);
void vmm_present_fill_submit(const struct vmm_dma *dma, DXGKARG_SUBMITCOMMAND *submit);
/* periodic.c */
vmm_status vmm_periodic_create(struct vmm_sched *sched) VMM_MUST_CHECK;
/* The worker has ended, the miniport is still there. */
void vmm_periodic_stop(struct vmm_sched *sched);
uint32_t vmm_periodic_target_count(const struct vmm_adapter *adapter);
vmm_status vmm_periodic_begin(struct vmm_adapter *adapter, uint32_t target, uint64_t time_100ns,
			      struct vmm_sync_beat **result) VMM_MUST_CHECK;
/* DIRQL; the interrupt of a target that is there. */
void vmm_periodic_record(struct vmm_sched *sched, const DXGKARGCB_NOTIFY_INTERRUPT_DATA *data);
/* DISPATCH. The paging lock held at most. */
void vmm_periodic_pass_on(struct vmm_sched *sched);
/* The worker, with no lock. */
void vmm_periodic_work(struct vmm_adapter *adapter);

/* display.c */
struct vmm_submission;
struct vmm_translated;
vmm_status vmm_display_create(struct vmm_adapter *adapter) VMM_MUST_CHECK;
void vmm_display_destroy(struct vmm_sched *sched);
/* On the worker, no lock held: flips that are due. */
void vmm_display_work(struct vmm_adapter *adapter);
/* Is there a flip that a completion may have made possible? */
bool vmm_display_waits(const struct vmm_sched *sched);
/* A place in the queue of the source for a flip of the device's; NULL: there is none, or its limit is reached. State lock held. */
struct vmm_flip *vmm_flip_reserve_locked(struct vmm_device *device, uint32_t source_id);
void vmm_flip_cancel(struct vmm_adapter *adapter, struct vmm_flip *flip);
/* What is to be shown, and what must be complete before. Submit lock held. */
void vmm_flip_queued(const struct vmm_submission *s, struct vmm_dma *dma);
/* Its packet has no bytes, but what it flips to must be in memory. */
void vmm_flip_describe(struct vmm_dma *dma, struct vmm_translated *t);
/* Its packet is complete: state lock held. */
void vmm_flip_due_locked(struct vmm_sched *sched, struct vmm_flip *flip);
/* Somebody waits for a flip whose vsync is overdue: it counts as shown. When to look again, VMM_OS_FOREVER: not for this. */
uint64_t vmm_flip_overdue(struct vmm_adapter *adapter);
/* DIRQL: records. DISPATCH, state lock held: did a flip come true? */
void vmm_display_record(struct vmm_sched *sched, const DXGKARGCB_NOTIFY_INTERRUPT_DATA *data);
bool vmm_display_reported_locked(struct vmm_sched *sched);
/* Nothing is shown or will be: the adapter was reset, or lost its power. Paging lock held. */
void vmm_display_forget_locked(struct vmm_sched *sched);
/* The device ends, and its packets are complete: what it shows goes dark. No lock held. */
void vmm_display_close_device(struct vmm_device *device);
/* The context ends: the miniport is not told of it any more. No lock held. */
void vmm_display_close_context(struct vmm_context *context);
/* dma.c */
void vmm_dma_init_links(struct vmm_dma *dma);
/* ---- address.c: updates of GPU virtual addresses (VA-10) ---- */
void vmm_address_work(struct vmm_adapter *adapter);
/* What is queued for it is dropped; nobody is inside it. */
void vmm_address_end_device(struct vmm_device *device);

/* ---- virtual.c: contexts whose commands are at GPU virtual addresses (SUB-23 to SUB-26) ---- */
NTSTATUS vmm_command_begin(struct vmm_context *context);
NTSTATUS vmm_command_refuse_present(const struct vmm_context *context);
/* SUB-25: STATUS_INVALID_USER_BUFFER: the miniport refuses it. `object`: the handle of a context or hardware queue. The paging lock at most. */
NTSTATUS vmm_command_validate(const struct vmm_device *device, uint32_t object,
			      DXGKARG_VALIDATESUBMITCOMMAND *args) VMM_MUST_CHECK;

NTSTATUS vmm_dma_get(struct vmm_context *context, struct vmm_dma **dma);
void vmm_dma_put(struct vmm_dma *dma); /* a packet retired; state lock held */
void vmm_dma_give_back(struct vmm_dma *dma);
/* While pinned the buffer keeps its place, or stays without one. */
void vmm_dma_pin(struct vmm_dma *dma, bool pinned);
/* Paging lock held, pinned. VMM_PENDING: there is none as long as the GPU uses the aperture (DMA-05). */
vmm_status vmm_dma_place(struct vmm_dma *dma) VMM_MUST_CHECK;
/* Paging lock held. All that are not pinned give up their places; the next use maps them again. Did one have a place? */
bool vmm_dma_give_up_places(struct vmm_adapter *adapter);
/* The same of all: the adapter was reset. */
void vmm_dma_forget_places(struct vmm_adapter *adapter);
/* Paging lock held. Does another have a place that it will be able to give up? */
bool vmm_dma_will_give_up(struct vmm_adapter *adapter, const struct vmm_dma *wanting);
void vmm_dma_destroy_all(struct vmm_context *context);

/* apart.c: a context's buffers in another address space. */
/* What its client gets told of them; the others are made. */
vmm_status vmm_context_show(struct vmm_context *context) VMM_MUST_CHECK;
void vmm_context_hide(struct vmm_context *context);
/* What the request, whose sizes are right, names of them is copied. The submit lock is held. */
void vmm_context_fetch_slowly(struct vmm_context *context,
			      const struct vmm_render_request *request);
static inline void vmm_context_fetch(struct vmm_context *context,
				     const struct vmm_render_request *request)
{
	if (vmm_unlikely(context->apart != NULL))
		vmm_context_fetch_slowly(context, request);
}

#endif
