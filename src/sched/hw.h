/* SPDX-License-Identifier: MIT */
/*
 * What the other files of sched call of the hardware queues (hw_*.c).
 * Included by sched_private.h, whose types it uses.
 */
/* Outside the guard: this header is a part of that one, which includes it behind its types. */
#include "sched/sched_private.h"

#ifndef VMM_SCHED_HW_H
#define VMM_SCHED_HW_H

/* ---- hw_*.c; without hardware queues each function does nothing ---- */
vmm_status vmm_hw_start(struct vmm_sched *sched) VMM_MUST_CHECK;
void vmm_hw_destroy(struct vmm_sched *sched);
/* Ends the device's contexts and queues. No other thread is inside the device. No lock held. */
void vmm_hw_destroy_device(struct vmm_device *device);
/*
 * DIRQL: records an interrupt. Returns false if the type is not one of hardware scheduling, or if
 * the ring of suspension answers is full.
 */
bool vmm_hw_record(struct vmm_sched *sched, const DXGKARGCB_NOTIFY_INTERRUPT_DATA *data);
/* DISPATCH: applies the records. Returns true if a command completed or a context left the GPU. */
bool vmm_hw_reported(struct vmm_sched *sched);
/*
 * Reads the progress fences and retires what they cover. Returns the number of commands. Neither
 * state nor sync lock held.
 */
uint32_t vmm_hw_scan(struct vmm_sched *sched);
/* Returns true if the worker has hardware queues to look at after a completion. */
bool vmm_hw_waits(const struct vmm_sched *sched);
/* The priority class of a process has changed (SCH-10). No lock held. */
void vmm_hw_class_changed(struct vmm_sched *sched);
/*
 * Called by the worker, with no paging lock. vmm_hw_feed submits commands but resumes no context.
 */
void vmm_hw_work(struct vmm_adapter *adapter);
void vmm_hw_feed(struct vmm_adapter *adapter);
/*
 * Suspends the contexts whose memory paging wanted to move and could not (SCH-11). Returns true if
 * memory or a context was released at once. Paging lock.
 */
bool vmm_hw_suspend_for_memory_locked(struct vmm_sched *sched) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Suspends all contexts, before a power transition. Returns true when none is on the GPU. Paging
 * lock, PASSIVE_LEVEL.
 */
bool vmm_hw_halt_locked(struct vmm_sched *sched) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Called by the watchdog: does what is due. Returns false if nothing was; *when_ns is then the next
 * deadline.
 */
bool vmm_hw_watch(struct vmm_sched *sched, uint64_t *when_ns);
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
