/* SPDX-License-Identifier: MIT */
/*
 * Faults, preemption, lost devices, the resets of engines and of the adapter, and the watchdog that
 * requests them.
 * Included by sched_private.h, whose types it uses.
 */
/* Outside the guard: this header is a part of that one, which includes it behind its types. */
#include "sched/sched_private.h"

#ifndef VMM_SCHED_RECOVERY_H
#define VMM_SCHED_RECOVERY_H

/* ---- page_fault.c ---- */
/* DIRQL: records a page fault. Returns false if the ring is full. */
bool vmm_page_fault_record(struct vmm_node *node, const DXGKARGCB_NOTIFY_INTERRUPT_DATA *data);
/*
 * Applies the recorded page faults. Returns the number of packets that this completed. State lock.
 */
uint32_t vmm_page_faults_locked(struct vmm_sched *sched, uint32_t index)
	VMM_REQUIRES(vmm_state_lock_class);
static inline uint32_t vmm_page_faults(struct vmm_sched *sched, uint32_t index)
	VMM_REQUIRES(vmm_state_lock_class)
{
	const struct vmm_node *node = &sched->node[index];

	vmm_assert_held(&sched->adapter->state_lock);
	return vmm_likely(atomic_load(&node->page_fault_tail) ==
			  atomic_load(&node->page_fault_head))
		       ? 0
		       : vmm_page_faults_locked(sched, index);
}
void vmm_page_faults_forget(struct vmm_node *node); /* DIRQL */

/* ---- engine.c ---- */
/* A page fault asks for the reset of the node's engine, or of the adapter. State lock. */
void vmm_engine_fault_locked(struct vmm_sched *sched, const struct vmm_timeout *timeout,
			     bool adapter) VMM_REQUIRES(vmm_state_lock_class);
/* A device was lost outside a reset: requests that its packets are cancelled. State lock. */
void vmm_engine_cancel_locked(struct vmm_sched *sched, struct vmm_node *node)
	VMM_REQUIRES(vmm_state_lock_class);
/* Marks a device lost, which hung the engine or (collateral) only suffers from it. State lock. */
void vmm_engine_blame_locked(struct vmm_sched *sched, struct vmm_device *device,
			     const struct vmm_timeout *timeout, bool collateral)
	VMM_REQUIRES(vmm_state_lock_class);
/*
 * Requests the reset of an engine, which is then deferred work: the caller kicks. Returns false if
 * the adapter must be reset instead.
 */
bool vmm_engine_want(struct vmm_sched *sched, const struct vmm_timeout *timeout);
/* Discards the node's requests after the adapter's reset or removal. State lock. */
void vmm_engine_forget_locked(struct vmm_sched *sched, struct vmm_node *node)
	VMM_REQUIRES(vmm_state_lock_class);
/*
 * Takes the cancellation off the deferred work. Returns true if one was requested. State lock.
 */
bool vmm_engine_take_lost_locked(struct vmm_sched *sched, struct vmm_engine *e)
	VMM_REQUIRES(vmm_state_lock_class);
void vmm_recovery_event(struct vmm_sched *sched, uint32_t what, const struct vmm_timeout *timeout);

/* ---- engine_reset.c ---- */
/* Does the node's requested reset and cancellations. Paging lock, PASSIVE_LEVEL. */
void vmm_engine_chore_locked(struct vmm_sched *sched, uint32_t index)
	VMM_REQUIRES(vmm_paging_lock_class);

/* ---- preempt.c ---- */
/*
 * Asks the next holder of the paging lock to preempt the node. Does nothing if the miniport is not
 * preemption-aware. State lock.
 */
void vmm_preempt_want_locked(struct vmm_sched *sched, struct vmm_node *node)
	VMM_REQUIRES(vmm_state_lock_class);
/* Makes the request, if one is wanted. Paging lock. */
void vmm_preempt_request(struct vmm_sched *sched, uint32_t index) VMM_COLD
	VMM_REQUIRES(vmm_paging_lock_class);
/* DIRQL: records the answer to a request. */
void vmm_preempt_record(struct vmm_sched *sched, const DXGKARGCB_NOTIFY_INTERRUPT_DATA *data);
/* DPC: applies the node's answer to a request. Returns true if there was one. State lock. */
bool vmm_preempt_answered_locked(struct vmm_sched *sched, uint32_t index)
	VMM_REQUIRES(vmm_state_lock_class);
/*
 * The engine was reset: moves the packets that the miniport had back to the ready queues. Returns
 * their number. Paging lock and state lock.
 */
uint32_t vmm_preempt_aborted_locked(struct vmm_sched *sched, struct vmm_node *node)
	VMM_REQUIRES(vmm_state_lock_class);
/* Discards the node's request after the adapter's reset. Paging lock and state lock. */
void vmm_preempt_forget_locked(struct vmm_sched *sched, struct vmm_node *node)
	VMM_REQUIRES(vmm_state_lock_class);

/* ---- cancel.c ---- */
/* Tells the miniport that the packet will not run. Paging lock. */
void vmm_cancel_packet(struct vmm_sched *sched, struct vmm_packet *packet)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Cancels the prepared packets of lost devices (TDR-12). Paging lock. */
void vmm_cancel_lost(struct vmm_sched *sched) VMM_REQUIRES(vmm_paging_lock_class);

/* ---- chores.c ---- */
/* Does the deferred work of all nodes (sched->chores). Paging lock. */
void vmm_chores_locked(struct vmm_sched *sched) VMM_COLD VMM_REQUIRES(vmm_paging_lock_class);

/* ---- watch.c ---- */
/* The first packet of the node has changed: restarts its timeout. State lock. */
static inline void vmm_watch_restart_locked(struct vmm_sched *sched, struct vmm_node *node)
	VMM_REQUIRES(vmm_state_lock_class)
{
	vmm_assert_held(&sched->adapter->state_lock);
	node->since_ns = vmm_os_now_ns(sched->adapter->os);
	node->queried_ns = 0;
}
/*
 * Work is about to be submitted: wakes the watchdog if the GPU was idle. The caller holds no lock
 * but the paging lock.
 */
static inline void vmm_watch_submitted(struct vmm_sched *sched)
{
	if (vmm_unlikely(atomic_load(&sched->watch_asleep)))
		vmm_watch_wake(sched);
}
void vmm_watch_stop(struct vmm_sched *sched);

/* ---- recover.c ---- */
/* Called by the watchdog: resets the adapter, or removes it if that fails. */
void vmm_recover(struct vmm_sched *sched, const struct vmm_timeout *timeout);

#endif
