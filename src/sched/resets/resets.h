/* SPDX-License-Identifier: MIT */
/*
 * What takes packets off a node: reports, preemption, faults, resets, removal.
 * A tier of sched (README.md): its files, and those of higher tiers, include this header.
 */
#ifndef VMM_SCHED_RESETS_H
#define VMM_SCHED_RESETS_H

#include "sched/completion/completion.h"

/* ---- cancel.c ---- */
/* Tells the miniport that the packet will not run. Paging lock. */
void vmm_cancel_packet(struct vmm_sched *sched, struct vmm_packet *packet)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Cancels the prepared packets of lost devices (TDR-12). Paging lock. */
void vmm_cancel_lost(struct vmm_sched *sched) VMM_REQUIRES(vmm_paging_lock_class);

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

/* ---- reports.c ---- */
/* DIRQL, with VidmmVerifyDriver: a fence id that was reported before. */
void vmm_report_check(struct vmm_sched *sched, uint32_t index, uint32_t fence);
/* DIRQL: record the completion of a fence id; a fault, unless its ring is full. */
void vmm_report_completed(struct vmm_node_report *report, uint32_t fence);
bool vmm_report_fault(struct vmm_node *node, uint32_t fence, uint32_t status);
/* DIRQL: discards all recorded reports of the node; fence: the newest that is complete. */
void vmm_reports_forget(struct vmm_sched *sched, uint32_t index, uint32_t fence);
/*
 * Applies the recorded completions and faults of the node. Returns the number of packets that
 * retired. State lock.
 */
uint32_t vmm_reports_retire_locked(struct vmm_sched *sched, uint32_t index)
	VMM_REQUIRES(vmm_state_lock_class);
/* Applies all recorded reports of the node, as the DPC does. State lock. */
void vmm_queue_flush_locked(struct vmm_sched *sched, uint32_t index)
	VMM_REQUIRES(vmm_state_lock_class);

/* ---- page_fault.c ---- */
/* DIRQL: records a page fault. Returns false if the ring is full. */
bool vmm_page_fault_record(struct vmm_node *node, const DXGKARGCB_NOTIFY_INTERRUPT_DATA *data);
/*
 * Applies the recorded page faults. Returns the number of packets that this completed. State lock.
 */
uint32_t vmm_page_faults_locked(struct vmm_sched *sched, uint32_t index)
	VMM_REQUIRES(vmm_state_lock_class);
void vmm_page_faults_forget(struct vmm_node *node); /* DIRQL */

/* ---- engine.c ---- */
/* A page fault asks for the reset of the node's engine, or of the adapter. State lock. */
void vmm_engine_fault_locked(struct vmm_sched *sched, const struct vmm_timeout *timeout,
			     bool adapter) VMM_REQUIRES(vmm_state_lock_class);
/* A device was lost outside a reset: requests that its packets are canceled. State lock. */
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

/* ---- removal.c ---- */
/*
 * Is the device gone? While the miniport is being notified of a removal, a hung packet is still
 * with the GPU, and no reset is made any more. (PNP-08)
 */
bool vmm_sched_is_gone(const struct vmm_adapter *adapter);
/*
 * Removes the adapter, as nothing completes any more; packets count as complete. The first with no
 * lock held, the second with the paging lock.
 */
void vmm_sched_abandon(struct vmm_adapter *adapter);
void vmm_sched_abandon_locked(struct vmm_adapter *adapter) VMM_REQUIRES(vmm_paging_lock_class);

/* ---- hw_fence.c, hw_priority.c, hw_reset.c; without hardware queues each does nothing ---- */
/*
 * DIRQL: records an interrupt. Returns false if the type is not one of hardware scheduling, or if
 * the ring of suspension answers is full.
 */
bool vmm_hw_record(struct vmm_sched *sched, const DXGKARGCB_NOTIFY_INTERRUPT_DATA *data);
/*
 * DISPATCH: applies the records. Returns true if a command completed or a context left the GPU.
 * The caller has found sched->hw.
 */
bool vmm_hw_reported(struct vmm_sched *sched);
/*
 * Reads the progress fences and retires what they cover. Returns the number of commands. Neither
 * state nor sync lock held.
 */
uint32_t vmm_hw_scan(struct vmm_sched *sched);
/* The priority class of a process has changed (SCH-10). No lock held. */
void vmm_hw_class_changed(struct vmm_sched *sched);
bool vmm_hw_is_watched_locked(const struct vmm_sched *sched)
	VMM_REQUIRES(vmm_state_lock_class); /* state lock */
/* Returns the device of the context that timed out; NULL if the context has ended. State lock. */
const struct vmm_device *vmm_hw_device(const struct vmm_sched *sched,
				       const struct vmm_timeout *timeout);
/* Returns true if a command or a suspension is outstanding. Takes the state lock. */
bool vmm_hw_has_outstanding(struct vmm_sched *sched);
/* Resets the node's hardware engine if that was requested. Paging lock. */
void vmm_hw_reset_chore_locked(struct vmm_sched *sched, uint32_t node)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Ends all commands after the adapter's reset or removal. Paging lock. */
void vmm_hw_forget_locked(struct vmm_sched *sched) VMM_REQUIRES(vmm_paging_lock_class);
NTSTATUS vmm_hw_invalidate(struct vmm_sched *sched, const void *handle, bool collateral);

#endif
