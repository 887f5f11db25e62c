/* SPDX-License-Identifier: MIT */
/*
 * What the files of hardware scheduling share.
 *
 *   vmm_hw_submit   a command joins its queue's `waiting`; whoever has the paging lock (hw_queue.c) gathers the device's residency
 *                   list, numbers the command on the adapter's hardware timeline and gives it to the miniport: `running`
 *   interrupt, DPC  the progress fence says how far the GPU has got (hw_fence.c)
 *   hw_suspend.c    contexts make way for memory that is to move, and come back
 *   hw_reset.c      engines that do not answer
 *
 * A number on the timeline is what memory sees: as long as it is not complete, the list of the device stays where it is. A
 * suspended context gives its commands' numbers back, and they get new ones before it resumes.
 *
 * Locks: contexts, queues and `waiting` by the paging lock; `running`, states and what an interrupt changes by the state lock.
 * Members of lists change under both, so that either suffices to look.
 */
#ifndef VMM_SCHED_HW_PRIVATE_H
#define VMM_SCHED_HW_PRIVATE_H

#include "sched/hw_sched.h"
#include "sched/sched_private.h"

#define VMM_HW_REPORTS_MAX 64u /* a power of two */

struct vmm_hw_queue;
struct vmm_hw_sync;

struct vmm_hw_packet {
	struct vmm_list link; /* in one list of its queue at a time */
	struct vmm_hw_queue *queue;
	struct vmm_hw_sync *sync; /* a wait or a signal; NULL: a command */
	uint64_t id, address;
	uint32_t bytes;
	void *private_data;
	uint32_t private_bytes, private_room;
	bool held;              /* `work` is on the timeline; state lock */
	uint64_t paging_needed; /* held: that paging packet comes before it */
	struct vmm_work work;
};

struct vmm_hw_queue {
	struct vmm_hw_context *context;
	struct vmm_list link; /* in context->queues */
	uint32_t handle, fence_handle;
	struct vmm_sync *fence; /* clients can only wait for it (MFN-35, MFN-37) */
	void *kmd_queue;
	D3DDDI_CREATEHWQUEUEFLAGS flags;
	bool ending;      /* somebody ends it; paging lock */
	uint64_t last_id; /* of the newest command; paging lock */
	struct vmm_list waiting, unused;
	/* State lock: */
	struct vmm_list running;        /* with the miniport, oldest first */
	_Atomic uint32_t running_count; /* read without it, too */
	uint64_t handed_id,
		seen;      /* the newest that the miniport has; the fence when last looked at */
	uint64_t since_ns; /* the oldest is that since then, or since the context runs again */
	bool looked;       /* half of the time has passed, and the fence was read (SUB-14) */
};

enum vmm_hw_state {
	VMM_HW_RUNNING,
	VMM_HW_SUSPENDING, /* asked; what it has is still with the GPU */
	VMM_HW_SUSPENDED,
	VMM_HW_RESUMING /* its list is there, and its paging on the way */
};

struct vmm_hw_context {
	struct vmm_device *device;
	struct vmm_list link; /* in hw->contexts */
	struct vmm_list queues;
	void *kmd_context;
	uint32_t handle, node;
	/* enum vmm_hw_state. Changes under the state lock; only SUSPENDING becomes SUSPENDED without the paging lock, too. */
	_Atomic uint32_t state;
	uint64_t suspend_fence; /* the newest that was asked for; likewise */
	uint64_t suspended_ns;
	uint64_t paging_needed;       /* RESUMING */
	bool ending;                  /* nothing new is taken; paging lock */
	uint32_t making;              /* queues that are being made; paging lock */
	bool invalidated, collateral; /* during the reset of an engine (TDR-21) */
	/* What clients set, and what the miniport was told last (SCH-10). */
	int32_t priority, in_process;
	bool told;
	DXGKARG_SETCONTEXTSCHEDULINGPROPERTIES properties;
};

struct vmm_hw_ack {
	void *kmd_context;
	uint64_t fence;
};

/* The reset of a node's engine; state lock. */
struct vmm_hw_engine {
	bool wanted, running, failed;
	uint64_t since_ns;
	struct vmm_timeout timeout;
};

struct vmm_hw {
	struct vmm_list contexts;
	const struct vmm_device
		*starving; /* memory is kept for it: nobody else is given more; paging lock */
	_Atomic uint32_t
		waiting; /* packets that are not with the miniport, and contexts that do not run */
	_Atomic uint32_t resetting; /* bit per node: no submissions (TDR-21) */
	struct vmm_hw_engine engine[VMM_NODES_MAX];
	/* Rings: written at DIRQL, read by the DPC. */
	struct vmm_hw_ack ack[VMM_HW_REPORTS_MAX];
	_Atomic uint32_t ack_head, ack_tail;
	DXGKARGCB_NOTIFY_INTERRUPT_DATA fault[VMM_HW_REPORTS_MAX];
	_Atomic uint32_t fault_head, fault_tail;
	_Atomic bool signaled;
	_Atomic bool changed; /* the class of a process: properties are looked at again */
};

static inline struct vmm_hw_packet *vmm_hw_first(const struct vmm_list *list)
{
	return vmm_container_of(list->next, struct vmm_hw_packet, link);
}

/* ---- hw_queue.c; paging lock held, PASSIVE_LEVEL ---- */
/* Hands over whatever may run. */
void vmm_hw_pump_locked(struct vmm_sched *sched);
/*
 * May it look for memory now? Not while the worker waits for some on behalf of a packet, which would have made way for nothing;
 * nor while memory is kept for another device.
 */
bool vmm_hw_may_gather(const struct vmm_hw_context *context);
/* Memory for what the context's commands need: VMM_PENDING as long as somebody else has it. */
vmm_status vmm_hw_gather_locked(struct vmm_hw_context *context,
				struct vmm_residency_set *set) VMM_MUST_CHECK;
/* It gets the next number of the timeline, which holds the set. Returns the paging packet that comes before it. */
uint64_t vmm_hw_hold(struct vmm_hw_packet *packet, const struct vmm_residency_set *set);
/* What has not been handed over will not run. */
void vmm_hw_drop_waiting(struct vmm_hw_queue *queue);
/* State lock held. */
void vmm_hw_release_locked(struct vmm_hw_packet *packet);
void vmm_hw_retire_locked(struct vmm_hw_packet *packet);

struct vmm_hw_packet *vmm_hw_take_packet(struct vmm_hw_queue *queue); /* NULL: no memory */
void vmm_hw_put_packet(struct vmm_hw_packet *packet);
/* The queue ends. */
void vmm_hw_free_packet(struct vmm_hw_packet *packet);

/* ---- hw_sync.c; paging lock held ---- */
/* It is first in its queue. True: it has been done, and is a packet like any other again. */
bool vmm_hw_sync_passed(struct vmm_hw_packet *packet);
/* Is it a wait that has begun and is not satisfied? */
bool vmm_hw_sync_holds(const struct vmm_hw_packet *packet);
void vmm_hw_sync_drop(struct vmm_hw_packet *packet);

/* ---- hw_context.c ---- */
/* NULL and a finding: not a live one of the device (SYN-23). Paging lock held. */
struct vmm_hw_context *vmm_hw_find_context_locked(struct vmm_device *device, uint32_t handle);
struct vmm_hw_queue *vmm_hw_find_queue_locked(struct vmm_device *device, uint32_t handle);
/* ---- hw_priority.c ---- */
NTSTATUS vmm_hw_setup_bands(struct vmm_sched *sched);
/* SCH-10: the miniport hears what the context's properties are, if they are not what it was told. Paging lock held. */
NTSTATUS vmm_hw_tell_properties(struct vmm_hw_context *context);
void vmm_hw_tell_all_locked(struct vmm_sched *sched);

/* ---- hw_suspend.c ---- */
/* The context has left the GPU: what it holds may move. State lock held. */
void vmm_hw_suspended_locked(struct vmm_hw_context *context);
/* Paging lock held, PASSIVE_LEVEL; false: refused, its engine is to be reset. */
bool vmm_hw_suspend(struct vmm_hw_context *context);
void vmm_hw_resume_locked(struct vmm_sched *sched);

/* ---- hw_reset.c ---- */
/* State lock held: the engine of the node does not answer. */
void vmm_hw_want_reset_locked(struct vmm_sched *sched, const struct vmm_timeout *timeout);
/* Its commands count as over, those that wait will not run, whoever waits for its fences is released. Paging lock held. */
void vmm_hw_lose_context(struct vmm_hw_context *context);

#endif
