/* SPDX-License-Identifier: MIT */
/*
 * Submission; the end of steps, of broadcasts and of hardware contexts; recovery; power.
 * A tier of sched (README.md): its files, and those of higher tiers, include this header.
 */
#ifndef VMM_SCHED_CALLS_H
#define VMM_SCHED_CALLS_H

#include "sched/preparation/preparation.h"

/* ---- synchronize.c ---- */
/* Gives up the waits, then blocks until all steps are done or dropped. No lock held. */
void vmm_steps_end(struct vmm_context *context);

/* ---- submission.c ---- */
/*
 * Captures the list, has the commands translated into pieces, queues them (DMA-29), and has them
 * prepared. The caller has set `kind`, `context` and the arguments. No lock held.
 */
NTSTATUS vmm_submission_run(struct vmm_submission *s) VMM_MUST_CHECK;

/* ---- virtual.c ---- */
NTSTATUS vmm_command_begin(struct vmm_context *context);

/* ---- broadcast.c ---- */
/*
 * Finds the further contexts of a broadcast. They do not end before vmm_broadcast_end, which is
 * called after a failure, too. STATUS_INVALID_PARAMETER: too many; or one that is not a live
 * context of the owner's device, is the owner, or is named twice. No lock held.
 */
NTSTATUS vmm_broadcast_begin(const struct vmm_context *owner,
			     const struct vmm_broadcast_names *names,
			     struct vmm_broadcast *b) VMM_MUST_CHECK;
void vmm_broadcast_end(const struct vmm_context *owner, struct vmm_broadcast *b);
/*
 * The context ends: wait until no call broadcasts to it; wait until no other context runs its
 * buffers. No lock held.
 */
void vmm_broadcast_await_calls(const struct vmm_context *context);
void vmm_broadcast_await_copies(struct vmm_context *context);

/* ---- recover.c ---- */
/* Called by the watchdog: resets the adapter, or removes it if that fails. */
void vmm_recover(struct vmm_sched *sched, const struct vmm_timeout *timeout);

/* ---- working_set_wddm1.c, working_set_wddm2.c ---- */
extern const struct vmm_working_set vmm_working_set_wddm1, vmm_working_set_wddm2;

/* ---- usage.c ---- */
/*
 * The device has left the adapter's list: its counters go to another device of its process. With
 * none left, the process starts from 0 again.
 */
void vmm_usage_leave_locked(struct vmm_device *device) VMM_REQUIRES(vmm_state_lock_class);

/* ---- owner.c ---- */
/* Releases all sources that the device owns. (OWN-03) */
void vmm_owner_leave_locked(struct vmm_device *device) VMM_REQUIRES(vmm_state_lock_class);

/* ---- power.c ---- */
/*
 * Bracket the creation of a device, or another call of the miniport that no device protects from a
 * change of power. begin waits while the adapter has no power.
 */
vmm_status vmm_power_begin_device(struct vmm_adapter *adapter) VMM_MUST_CHECK;
void vmm_power_end_device(struct vmm_adapter *adapter);

/* ---- hw_context.c, hw_watch.c; without hardware queues each function does nothing ---- */
vmm_status vmm_hw_start(struct vmm_sched *sched) VMM_MUST_CHECK;
void vmm_hw_destroy(struct vmm_sched *sched);
/* Ends the device's contexts and queues. No other thread is inside the device. No lock held. */
void vmm_hw_destroy_device(struct vmm_device *device);
/*
 * Called by the watchdog: does what is due. Returns false if nothing was; *when_ns is then the next
 * deadline.
 */
bool vmm_hw_watch(struct vmm_sched *sched, uint64_t *when_ns);

#endif
