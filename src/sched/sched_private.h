/* SPDX-License-Identifier: MIT */
#ifndef VMM_SCHED_PRIVATE_H
#define VMM_SCHED_PRIVATE_H

#include "sched/sched.h"

#define VMM_DMA_BUFFERS_PER_CONTEXT 16u
#define VMM_PAGING_PACKETS          256u
#define VMM_FAULTS_MAX \
	64u /* a power of two, not less than what may be outstanding on a node (SUB-15) */

/* What the hardware executes. */
struct vmm_packet {
	struct vmm_list link; /* in one queue at a time: prepare, node ready, node hardware, free */
	bool paging;
	bool synchronous; /* no render packet is submitted until it is complete (PAG-21) */
	bool cancelled;   /* completes in its turn without reaching the hardware */
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
	struct vmm_context *context;
	struct vmm_list
		pool; /* in context->free_dma while nobody uses it; guarded by the state lock */
	struct vmm_list
		mapped; /* in sched->mapped_dma while it has a place; guarded by the paging lock */
	struct vmm_backing backing;
	uint64_t bus_address;
	/*
	 * The place in an aperture (DMA-05); segment 0 and address 0: none yet, or given up. Without an aperture segment 0 and
	 * the bus address. Changes under the paging and the state lock.
	 */
	uint32_t segment, range;
	uint64_t address;
	bool pinned; /* with the miniport, or prepared and not retired; guarded by the state lock */
	uint64_t mapped_by; /* paging packet that maps it */
	void *private_data;
	DXGK_ALLOCATIONLIST *list;
	struct vmm_instance **instances; /* parallel to list; NULL for NULL entries */
	uint8_t *offers;                 /* parallel to list: what its completion offers (DMA-24) */
	D3DDDI_PATCHLOCATIONLIST *patches;
	uint32_t list_count, patch_count, used_bytes, private_used;
	/*
	 * The portion that is being prepared: its patch locations and its bytes; all there is unless the buffer is split
	 * (SPL-01, SPL-02). Then `part` carries each portion but the last, while the buffer stays at the head of the prepare
	 * queue. Guarded by the paging lock, part_busy by the state lock.
	 */
	uint32_t patch_start, patch_end, start, end;
	uint32_t short_of; /* the patch location whose allocation found no room */
	bool split;        /* the portions before `start` are with the GPU, or done */
	bool part_busy;    /* the last of them is not done */
	struct vmm_packet part;
	uint64_t submission; /* adapter->submissions when it was queued */
	bool renamed;        /* some entry's allocation has more than one instance */
	bool offering;       /* some entry has an offer */
	bool null_rendering;
};

struct vmm_context {
	struct vmm_device *device;
	struct vmm_list link; /* in device->contexts */
	void *live;           /* hContext of its callbacks (live.h) */
	void *kmd_context;
	uint32_t handle, node, engine;
	uint32_t flags;
	uint32_t dma_bytes, dma_segment_set, dma_private_bytes, list_size,
		patch_size; /* as the miniport asked (DMA-01) */
	struct vmm_context_buffers user;
	struct vmm_list free_dma; /* guarded by the state lock, like the two counts */
	uint32_t dma_count, queued;
	uint64_t last_sequence;
	struct vmm_dma *all[VMM_DMA_BUFFERS_PER_CONTEXT];
};

struct vmm_fault {
	uint32_t fence, status;
};

struct vmm_node {
	struct vmm_list ready; /* prepared packets in submission order; guarded by the state lock */
	struct vmm_list hardware; /* with the miniport; guarded by the state lock */
	uint32_t hardware_count;
	_Atomic uint32_t reported; /* newest completed fence the interrupt told; DIRQL */
	_Atomic uint32_t report_pending;
	struct vmm_fault fault[VMM_FAULTS_MAX]; /* ring: written at DIRQL, read by the DPC */
	_Atomic uint32_t fault_head, fault_tail;
	uint32_t last_completed; /* fence */
	uint32_t last_submitted;
};

struct vmm_sched {
	struct vmm_adapter *adapter;
	const struct vmm_port_caps *caps;
	struct vmm_node node[VMM_NODES_MAX];
	struct vmm_list
		prepare; /* render packets waiting for preparation, call order; guarded by the state lock */
	struct vmm_list
		mapped_dma; /* buffers with a place in an aperture; guarded by the paging lock */
	struct vmm_list free_paging;
	struct vmm_packet paging_packet[VMM_PAGING_PACKETS];
	_Atomic uint32_t ready_count; /* packets in ready queues */
	_Atomic uint32_t prepare_count;
	_Atomic bool
		blocked; /* the worker waits for the GPU on behalf of the first packet to prepare */
	_Atomic uint32_t kicks; /* moves when a completion may have made packets submittable */
	uint32_t hardware_total;
	uint64_t alone; /* the newest synchronous paging packet that was submitted; state lock */
	uint32_t next_fence;   /* guarded by the paging lock */
	uint64_t preparations; /* guarded by the paging lock */
	/* Which slots have been looked at (split.c); made when first needed, guarded by the paging lock. */
	uint64_t *slots;
	uint32_t slot_words;
	void *system_device, *system_context;
	struct vmm_os_thread *worker;
	_Atomic uint32_t work; /* futex of the worker */
	_Atomic bool quit;
};

/* fence.c */
uint32_t vmm_fence_next(struct vmm_sched *sched);
static inline bool vmm_fence_reached(uint32_t completed, uint32_t fence)
{
	return (int32_t)(completed - fence) >= 0; /* ids wrap */
}
/* queue.c */
void vmm_queue_ready(struct vmm_sched *sched, struct vmm_packet *packet); /* paging lock held */
void vmm_queue_drain_locked(struct vmm_sched *sched);                     /* paging lock held */
void vmm_queue_abandon_locked(
	struct vmm_adapter
		*adapter); /* removed adapter: everything counts as done; paging lock held */
void vmm_packet_retired_locked(struct vmm_sched *sched,
			       struct vmm_packet *packet); /* state lock held */
/* sched.c */
/* What Patch is told of a portion is what Submit will be told (PAT-15); the lists are still empty. */
DXGKARG_PATCH vmm_patch_of(const DXGKARG_SUBMITCOMMAND *submit, void *dma_buffer);
void vmm_sched_wait(struct vmm_adapter *adapter, uint32_t timeline, uint64_t sequence,
		    uint32_t reason); /* no lock held */
/* prepare.c */
void vmm_prepare_pump(
	struct vmm_adapter *adapter); /* a client's: the worker takes over what must wait */
void vmm_prepare_pump_waiting(struct vmm_adapter *adapter); /* until nothing is left to prepare */
void vmm_prepare_paging_work(struct vmm_adapter *adapter);  /* goes on with paging queues (2.x) */
/* gather.c; paging lock held */
/* The portion, made smaller where it must be, is resident as of sched->preparations, and its buffer pinned. */
vmm_status vmm_gather(struct vmm_sched *sched, struct vmm_dma *dma) VMM_MUST_CHECK;
/* What a packet of a 2.x device needs, as of sched->preparations. */
struct vmm_residency_set vmm_gather_set(const struct vmm_sched *sched, const struct vmm_dma *dma);
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
/* worker.c */
void vmm_worker_wake(struct vmm_sched *sched);
void vmm_worker_main(void *adapter);
void vmm_worker_reap(struct vmm_adapter *adapter); /* the submit lock held at most */
/* dma.c */
NTSTATUS vmm_dma_get(struct vmm_context *context, struct vmm_dma **dma);
void vmm_dma_put(struct vmm_dma *dma); /* a packet retired; state lock held */
void vmm_dma_give_back(struct vmm_dma *dma);
/* While pinned the buffer keeps its place, or stays without one. */
void vmm_dma_pin(struct vmm_dma *dma, bool pinned);
/* Paging lock held, pinned. VMM_PENDING: there is none as long as the GPU uses the aperture (DMA-05). */
vmm_status vmm_dma_place(struct vmm_dma *dma) VMM_MUST_CHECK;
/* Paging lock held. All that are not pinned give up their places; the next use maps them again. Did one have a place? */
bool vmm_dma_give_up_places(struct vmm_adapter *adapter);
/* Paging lock held. Does another have a place that it will be able to give up? */
bool vmm_dma_will_give_up(struct vmm_adapter *adapter, const struct vmm_dma *wanting);
void vmm_dma_destroy_all(struct vmm_context *context);

#endif
