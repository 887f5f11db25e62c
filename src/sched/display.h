/* SPDX-License-Identifier: MIT */
/*
 * What reaches the screen: flips (flip.c, display.c), and the periodic signals of display
 * targets.
 * Included by sched_private.h, whose types it uses.
 */
/* Outside the guard: this header is a part of that one, which includes it behind its types. */
#include "sched/sched_private.h"

#ifndef VMM_SCHED_DISPLAY_H
#define VMM_SCHED_DISPLAY_H

/* ---- periodic.c ---- */
vmm_status vmm_periodic_create(struct vmm_sched *sched) VMM_MUST_CHECK;
/* Stops periodic signals. The worker has ended; the miniport still exists. */
void vmm_periodic_stop(struct vmm_sched *sched);
uint32_t vmm_periodic_target_count(const struct vmm_adapter *adapter);
vmm_status vmm_periodic_begin(struct vmm_adapter *adapter, uint32_t target, uint64_t time_100ns,
			      struct vmm_sync_periodic_source **result) VMM_MUST_CHECK;
/* DIRQL: records an interrupt of an existing target. */
void vmm_periodic_record(struct vmm_sched *sched, const DXGKARGCB_NOTIFY_INTERRUPT_DATA *data);
/*
 * DISPATCH: signals the fences of what was recorded. The caller holds no lock but the paging lock.
 */
void vmm_periodic_dispatch(struct vmm_sched *sched);
/* Called by the worker. No lock held. */
void vmm_periodic_work(struct vmm_adapter *adapter);

/* ---- flip.c, display.c ---- */
struct vmm_submission;
vmm_status vmm_display_create(struct vmm_adapter *adapter) VMM_MUST_CHECK;
void vmm_display_destroy(struct vmm_sched *sched);
/* Called by the worker: shows the flips that are due. No lock held. */
void vmm_display_work(struct vmm_adapter *adapter);
/* Returns true if a completion may have made a flip ready to be shown. */
bool vmm_display_waits(const struct vmm_sched *sched);
/*
 * Reserves a flip of the source for the device. Returns NULL if none is free or the device has
 * reached its limit. State lock.
 */
struct vmm_flip *vmm_flip_reserve_locked(struct vmm_device *device, uint32_t source_id)
	VMM_REQUIRES(vmm_state_lock_class);
void vmm_flip_cancel(struct vmm_adapter *adapter, struct vmm_flip *flip);
/* Fills in the primary to be shown, and which packets must be complete before. Submit lock. */
void vmm_flip_queued(const struct vmm_submission *s, struct vmm_dma *dma)
	VMM_REQUIRES(vmm_submit_lock_class);
/* The packet of the flip is complete. State lock. */
void vmm_flip_due_locked(struct vmm_sched *sched, struct vmm_flip *flip)
	VMM_REQUIRES(vmm_state_lock_class);
/*
 * Called by a thread that waits for a flip: counts flips as shown whose vsync is overdue. Returns
 * the time of the next deadline in ns; VMM_OS_FOREVER: none.
 */
uint64_t vmm_flip_overdue(struct vmm_adapter *adapter);
/* DIRQL: records a vsync. */
void vmm_display_record(struct vmm_sched *sched, const DXGKARGCB_NOTIFY_INTERRUPT_DATA *data);
/* DISPATCH: applies recorded vsyncs. Returns true if a flip was completed. State lock. */
bool vmm_display_reported_locked(struct vmm_sched *sched) VMM_REQUIRES(vmm_state_lock_class);
/*
 * The adapter was reset or lost its power: makes all sources dark and drops the flips that are due.
 * Paging lock.
 */
void vmm_display_forget_locked(struct vmm_sched *sched) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * The device ends, and its packets are complete: makes the sources that show its primaries dark. No
 * lock held.
 */
void vmm_display_close_device(struct vmm_device *device);
/* The context ends: flips no longer name it to the miniport. No lock held. */
void vmm_display_close_context(struct vmm_context *context);

#endif
