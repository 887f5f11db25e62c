/* SPDX-License-Identifier: MIT */
/*
 * The types of hardware scheduling, and what its files in this tier provide to each other.
 *
 *   vmm_hw_submit   a command joins the `waiting` list of its queue
 *   hw_queue.c      a thread with the paging lock makes the device's residency list resident,
 *                   numbers the command on the hardware timeline and submits it: `running`
 *   interrupt, DPC  the progress fence says which commands are complete (hw_fence.c)
 *   hw_suspend.c    suspends contexts whose memory is to move, and resumes them
 *   hw_reset.c      resets engines that do not answer
 *
 * Memory sees the numbers on the timeline only. While a number is not complete, the residency list
 * of its device stays in place. Suspending a context completes the numbers of its commands. They
 * get new numbers before it resumes.
 *
 * Locks: the paging lock guards contexts, queues and `waiting`. The state lock guards `running`,
 * the states, and what an interrupt changes. The lists of contexts and queues are written with both
 * locks held, so either lock suffices to read them.
 */
#ifndef VMM_SCHED_HW_PRIVATE_H
#define VMM_SCHED_HW_PRIVATE_H

#include "sched/hw_sched.h"
#include "sched/state/types.h"

#define VMM_HW_REPORTS_MAX 64u /* a power of two */

struct vmm_hw_queue;
struct vmm_hw_sync;

struct vmm_hw_packet {
	struct vmm_list link; /* in one list of its queue at a time */
	struct vmm_hw_queue *queue;
	struct vmm_hw_sync *sync; /* the wait or signal that this is; NULL: a command */
	uint64_t id, address;
	uint32_t bytes;
	void *private_data;
	uint32_t private_bytes, private_capacity;
	/* PRS-10: memory of the commands of presents, kept for the next; unused: the client's. */
	struct vmm_dma_memory memory;
	bool present;           /* counted against the limit (SUB-17); state lock */
	bool held;              /* `work` is on the timeline and keeps memory in use; state lock */
	uint64_t paging_needed; /* held: paging packet that must be complete first */
	struct vmm_work work;
};

struct vmm_hw_queue {
	struct vmm_hw_context *context;
	struct vmm_list link;          /* in context->queues */
	uint32_t handle, fence_handle; /* written before others can find the queue */
	/*
	 * The progress fence. Clients can only wait for it (MFN-35, MFN-37), but with GPU virtual
	 * addresses their commands can store its value.
	 */
	struct vmm_sync *fence;
	void *kmd_queue;
	D3DDDI_CREATEHWQUEUEFLAGS flags;
	bool ending;         /* a thread is ending it; paging lock */
	bool abandoned;      /* that thread does not wait for its commands; paging lock */
	uint32_t presenting; /* threads that prepare a present on it; paging lock */
	uint64_t last_id;    /* of the newest command; paging lock */
	/* unused_presents: those with memory for the commands of a present. */
	struct vmm_list waiting, unused, unused_presents;
	/* State lock: */
	struct vmm_list running;        /* commands that the miniport has, oldest first */
	_Atomic uint32_t running_count; /* also read without the lock */
	/*
	 * Id of the newest command that the miniport has; value of the fence when it was last read.
	 */
	uint64_t submitted_id, last_value;
	uint64_t since_ns; /* when the oldest became the oldest, or when the context resumed */
	/* Half of the timeout has passed and the fence was read (SUB-14). */
	bool fence_read;
};

enum vmm_hw_state {
	VMM_HW_RUNNING,
	VMM_HW_SUSPENDING, /* requested; its commands may still be on the GPU */
	VMM_HW_SUSPENDED,
	VMM_HW_RESUMING /* its memory is reserved; the paging for it is queued */
};

struct vmm_hw_context {
	struct vmm_device *device;
	struct vmm_list link; /* in hw->contexts */
	struct vmm_list queues;
	void *kmd_context;
	uint32_t handle, node; /* written before others can find the context */
	/*
	 * enum vmm_hw_state. Written with the state lock held, and the paging lock too except for
	 * SUSPENDING to SUSPENDED.
	 */
	_Atomic uint32_t state;
	uint64_t suspend_fence; /* fence of the newest suspension request; same locks */
	uint64_t suspended_ns;  /* when the suspension was requested */
	uint64_t paging_needed; /* RESUMING: paging packet that must be complete first */
	uint64_t unlock_ticket; /* its memory waits for an unlock; 0: not; paging lock */
	/*
	 * It waits for the DMA buffers of packets up to that submission (vmm_dma_pinned_at); 0: it
	 * does not. buffer_waits: so many times since it last got memory. Paging lock.
	 */
	uint64_t awaits_buffers_of;
	uint32_t buffer_waits;
	struct vmm_va_context va; /* of a device with GPU virtual addresses */
	/* Of a DMA buffer of its presents, and of the private data of one (PRS-10). */
	uint32_t present_bytes, present_private_bytes;
	bool distrusted;              /* a progress fence has a wrong value; state lock */
	bool ending;                  /* a thread is ending it; paging lock */
	uint32_t creating_queues;     /* threads that create a queue of it; paging lock */
	bool invalidated, collateral; /* during the reset of an engine (TDR-21) */
	/* What clients set; whether the miniport has properties, and which (SCH-10). */
	int32_t priority, in_process;
	bool properties_sent;
	DXGKARG_SETCONTEXTSCHEDULINGPROPERTIES properties;
};

struct vmm_hw_ack {
	void *kmd_context;
	uint64_t fence;
};

/* Reset of the hardware engine of one node. State lock. */
struct vmm_hw_engine {
	bool wanted, running, failed;
	uint64_t since_ns;
	struct vmm_timeout timeout;
};

struct vmm_hw {
	struct vmm_list contexts;
	/*
	 * Its memory did not fit yet: no other device gets more until it has. NULL: none. Paging
	 * lock.
	 */
	const struct vmm_device *starving;
	/* Packets that the miniport does not have, plus contexts that are not RUNNING. */
	_Atomic uint32_t waiting;
	_Atomic uint32_t resetting; /* bit n: node n is being reset, no submissions (TDR-21) */
	struct vmm_hw_engine engine[VMM_NODES_MAX];
	/* Rings: written at DIRQL, read by the DPC. */
	struct vmm_hw_ack ack[VMM_HW_REPORTS_MAX];
	_Atomic uint32_t ack_head, ack_tail;
	DXGKARGCB_NOTIFY_INTERRUPT_DATA fault[VMM_HW_REPORTS_MAX];
	_Atomic uint32_t fault_head, fault_tail;
	/* Page faults that found their ring full, and that the DPC has not reported yet. */
	_Atomic uint32_t faults_dropped;
	_Atomic bool signaled;
	_Atomic bool distrusted; /* a context is, and must leave the GPU */
	_Atomic bool changed; /* a priority class has changed: properties must be compared again */
};

static inline struct vmm_hw_packet *vmm_hw_first(const struct vmm_list *list)
{
	return vmm_container_of(list->next, struct vmm_hw_packet, link);
}

/* ---- hw_packet.c ---- */
/* State lock: completes the packet's number on the timeline; completes the packet. */
void vmm_hw_release_locked(struct vmm_hw_packet *packet) VMM_REQUIRES(vmm_state_lock_class);
void vmm_hw_retire_locked(struct vmm_hw_packet *packet) VMM_REQUIRES(vmm_state_lock_class);
/*
 * Take an unused packet of the queue, or allocate one (NULL: no memory); give an unused one back.
 * Packets of presents have space for private data, and get their memory from the caller.
 */
struct vmm_hw_packet *vmm_hw_take_packet(struct vmm_hw_queue *queue)
	VMM_REQUIRES(vmm_paging_lock_class);
struct vmm_hw_packet *vmm_hw_take_present(struct vmm_hw_queue *queue)
	VMM_REQUIRES(vmm_paging_lock_class);
void vmm_hw_put_packet(struct vmm_hw_packet *packet);
/* The same with the state lock held. A present no longer counts against its limit (SUB-17). */
void vmm_hw_put_packet_locked(struct vmm_hw_packet *packet) VMM_REQUIRES(vmm_state_lock_class);
/* Frees a packet when the queue ends. No lock held. */
void vmm_hw_free_packet(struct vmm_hw_packet *packet);
/* Copies the private data of the command into the packet. Returns false without memory. */
bool vmm_hw_copy_private(struct vmm_hw_packet *packet, const struct vmm_hw_command *command)
	VMM_REQUIRES(vmm_paging_lock_class);

/* ---- hw_state.c ---- */
/*
 * Look up a context or queue by handle. Return NULL, with a finding, if the handle is not a live
 * one of the device (SYN-23). Paging lock held.
 */
struct vmm_hw_context *vmm_hw_find_context_locked(struct vmm_device *device, uint32_t handle)
	VMM_REQUIRES(vmm_paging_lock_class);
struct vmm_hw_queue *vmm_hw_find_queue_locked(struct vmm_device *device, uint32_t handle)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Returns true if the context is RUNNING and has commands on the GPU. State lock held. */
bool vmm_hw_is_running_locked(const struct vmm_hw_context *context)
	VMM_REQUIRES(vmm_state_lock_class);
/* The context has left the GPU: releases its commands' memory. State lock held. */
void vmm_hw_suspended_locked(struct vmm_hw_context *context) VMM_REQUIRES(vmm_state_lock_class);
/* Requests the reset of an engine that does not answer. State lock held. */
void vmm_hw_want_reset_locked(struct vmm_sched *sched, const struct vmm_timeout *timeout)
	VMM_REQUIRES(vmm_state_lock_class);

/* ---- hw_sync.c; paging lock held ---- */
/*
 * Tries to do the wait or signal that is first in its queue. Returns true if it is done;
 * packet->sync is then NULL.
 */
bool vmm_hw_sync_passed(struct vmm_hw_packet *packet);
/* Returns true if the packet is a wait that has begun and is not satisfied. */
bool vmm_hw_sync_holds(const struct vmm_hw_packet *packet);
void vmm_hw_sync_drop(struct vmm_hw_packet *packet);
/* Drops the packets that have not been submitted. */
void vmm_hw_drop_waiting(struct vmm_hw_queue *queue) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Check and create a wait or signal, with no lock held; queue it in its queues. The second frees it
 * if it fails. *queued: a queue has it, which is then to be pumped.
 */
NTSTATUS vmm_hw_sync_create(struct vmm_device *device, const struct vmm_hw_sync_request *request,
			    struct vmm_hw_sync **sync) VMM_MUST_CHECK;
NTSTATUS vmm_hw_sync_enqueue_locked(struct vmm_device *device,
				    const struct vmm_hw_sync_request *request,
				    struct vmm_hw_sync *sync, bool *queued)
	VMM_REQUIRES(vmm_paging_lock_class);

/* ---- hw_priority.c ---- */
NTSTATUS vmm_hw_setup_bands(struct vmm_sched *sched);
/*
 * SCH-10: sends the context's scheduling properties to the miniport if they have changed. send_all:
 * of every context that has sent some. Paging lock held.
 */
NTSTATUS vmm_hw_send_properties(struct vmm_hw_context *context) VMM_REQUIRES(vmm_paging_lock_class);
void vmm_hw_send_all_properties_locked(struct vmm_sched *sched) VMM_REQUIRES(vmm_paging_lock_class);

/* ---- hw_reset.c ---- */
/*
 * Completes the context's submitted commands, drops the waiting ones, and releases all waits for
 * its progress fences. Paging lock held.
 */
void vmm_hw_lose_context(struct vmm_hw_context *context) VMM_REQUIRES(vmm_paging_lock_class);

#endif
