/* SPDX-License-Identifier: MIT */
/*
 * Submission: the next packet of each node, deferred work, paging packets, waits for the GPU.
 * A tier of sched (README.md): its files, and those of higher tiers, include this header.
 */
#ifndef VMM_SCHED_NODE_QUEUE_H
#define VMM_SCHED_NODE_QUEUE_H

#include "sched/resets/resets.h"

/* ---- chores.c ---- */
/* Does the deferred work of all nodes (sched->chores). Paging lock. */
void vmm_chores_locked(struct vmm_sched *sched) VMM_COLD VMM_REQUIRES(vmm_paging_lock_class);

/* ---- queue.c ---- */
/*
 * Moves a whole buffer and its copies from the prepare queue to the ready queues; may submit it.
 * Paging lock.
 */
void vmm_queue_prepared(struct vmm_sched *sched, struct vmm_dma *dma)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Submits every packet that may run, and does the deferred work. Paging lock. */
void vmm_queue_drain_locked(struct vmm_sched *sched) VMM_REQUIRES(vmm_paging_lock_class);

/* ---- paging.c ---- */
/*
 * The context's packets are complete and the miniport is about to destroy it: switches its node off
 * the context. No lock held.
 */
void vmm_context_memory_leave(struct vmm_context *context);

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

#endif
