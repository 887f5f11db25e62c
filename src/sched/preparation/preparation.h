/* SPDX-License-Identifier: MIT */
/*
 * Preparation of packets in call order, the pool of buffers, the display, and the commands of
 * hardware queues.
 * A tier of sched (README.md): its files, and those of higher tiers, include this header.
 */
#ifndef VMM_SCHED_PREPARATION_H
#define VMM_SCHED_PREPARATION_H

#include "sched/node_queue/node_queue.h"

/* ---- hw_queue.c, hw_suspend.c; paging lock held, PASSIVE_LEVEL ---- */
struct vmm_hw_packet;
/* Submits every command that may run. */
void vmm_hw_pump_locked(struct vmm_sched *sched) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Makes the residency list of the context's device resident. Returns VMM_PENDING while the memory
 * is in use, locked by other processes, or taken by DMA buffers that packets need, and
 * while the worker waits for memory on behalf of a packet or another device starves. Any other
 * failure but VMM_DEVICE_REMOVED has put the device in error, with a reason.
 */
vmm_status vmm_hw_gather_locked(struct vmm_hw_context *context,
				struct vmm_residency_set *set) VMM_MUST_CHECK
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Gives the packet the next number of the timeline, which keeps the set in use. Returns the paging
 * packet that must be complete first.
 */
uint64_t vmm_hw_hold(struct vmm_hw_packet *packet, const struct vmm_residency_set *set)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Requests a suspension. Returns false if the miniport refused, and the engine is to be reset, or
 * if the adapter is being reset.
 */
bool vmm_hw_suspend(struct vmm_hw_context *context) VMM_REQUIRES(vmm_paging_lock_class);
void vmm_hw_resume_locked(struct vmm_sched *sched) VMM_REQUIRES(vmm_paging_lock_class);

/*
 * ---- hw_suspend.c; without hardware queues each function does nothing, unless its caller must
 * find sched->hw first ----
 */
/*
 * Returns true if the worker has hardware queues to look at after a completion. The caller has
 * found sched->hw.
 */
bool vmm_hw_waits(const struct vmm_sched *sched);
/*
 * Called by the worker, with no paging lock. vmm_hw_feed submits commands but resumes no context.
 */
void vmm_hw_work(struct vmm_adapter *adapter);
void vmm_hw_feed(struct vmm_adapter *adapter);
/*
 * Suspends the contexts whose memory paging wanted to move and could not (SCH-11). Returns true if
 * memory or a context was released at once. Paging lock. The caller has found sched->hw.
 */
bool vmm_hw_suspend_for_memory_locked(struct vmm_sched *sched) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Suspends all contexts, before a power transition. Returns true when none is on the GPU. Paging
 * lock, PASSIVE_LEVEL.
 */
bool vmm_hw_halt_locked(struct vmm_sched *sched) VMM_REQUIRES(vmm_paging_lock_class);

/* ---- shortage.c ---- */
/*
 * System memory ran out. Running packets, and allocations that were deallocated but not closed yet,
 * will free some for a packet; running packets and commands, for a command of a hardware queue.
 * Without any of them a wait would be in vain.
 */
bool vmm_shortage_ends_with_packets(struct vmm_sched *sched) VMM_REQUIRES(vmm_paging_lock_class);
bool vmm_shortage_ends_with_work(struct vmm_sched *sched) VMM_REQUIRES(vmm_paging_lock_class);

/* ---- prepare.c ---- */
/*
 * Completes the first buffer of the prepare queue, and its copies, unexecuted and in queue order.
 * Paging lock.
 */
void vmm_prepare_cancelled(struct vmm_sched *sched, struct vmm_dma *dma)
	VMM_REQUIRES(vmm_paging_lock_class);
/* In a client's thread: prepares packets up to the first that must wait; the worker continues. */
void vmm_prepare_pump(struct vmm_adapter *adapter);
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
/*
 * Returns true if preparation is halted and the buffer must stay queued. A buffer that is being
 * split continues: what is bound at its split point must not move (SPL-05).
 */
static inline bool vmm_power_holds_back(const struct vmm_sched *sched, const struct vmm_dma *dma)
{
	return vmm_unlikely(atomic_load_explicit(&sched->halted, memory_order_relaxed)) &&
	       !dma->split;
}

/* ---- pool.c: the pool of DMA buffers of a context ---- */
/*
 * Takes a buffer from the pool, creates one, or waits for the oldest in flight. STATUS_NO_MEMORY,
 * STATUS_DEVICE_REMOVED.
 */
NTSTATUS vmm_dma_get(struct vmm_context *context, struct vmm_dma **dma);
/* The same, preparing packets meanwhile: the worker may be waiting for the submit lock. */
NTSTATUS vmm_dma_get_locked(struct vmm_context *context, struct vmm_dma **dma)
	VMM_REQUIRES(vmm_submit_lock_class);
/*
 * Gives the buffer memory at a GPU virtual address, if it has none (PRS-09). Returns
 * STATUS_NO_MEMORY, or STATUS_DEVICE_REMOVED. No lock held. The first is vmm_dma_memory_add, which
 * waits while that is pending.
 */
NTSTATUS vmm_dma_memory_get(struct vmm_device *device, uint32_t object, uint32_t size_bytes,
			    struct vmm_dma_memory *memory) VMM_MUST_CHECK;
NTSTATUS vmm_dma_get_memory(struct vmm_dma *dma) VMM_MUST_CHECK;
/* The same, preparing packets meanwhile, as vmm_dma_get_locked. */
NTSTATUS vmm_dma_get_memory_locked(struct vmm_dma *dma) VMM_MUST_CHECK
	VMM_REQUIRES(vmm_submit_lock_class);
/* Returns a buffer that was not queued to the pool. */
void vmm_dma_give_back(struct vmm_dma *dma);

/* ---- display.c ---- */
/* Called by the worker: shows the flips that are due. No lock held. */
void vmm_display_work(struct vmm_adapter *adapter);
/*
 * The device ends, and its packets are complete: makes the sources that show its primaries dark. No
 * lock held.
 */
void vmm_display_close_device(struct vmm_device *device);
/* The context ends: flips no longer name it to the miniport. No lock held. */
void vmm_display_close_context(struct vmm_context *context);

#endif
