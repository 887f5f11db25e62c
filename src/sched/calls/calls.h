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

/* DMA-31, DMA-37: the miniport returned a GPU exception, so the device is in error. */
void vmm_submission_fail_device(const struct vmm_submission *s) VMM_COLD;

/* ---- present.c ---- */
struct vmm_present;
/*
 * Begin checks a request and chooses its rectangles; the caller has set device, object and words.
 * End frees them, also after a failure.
 */
NTSTATUS vmm_present_begin(struct vmm_present *p,
			   const struct vmm_present_request *request) VMM_MUST_CHECK;
void vmm_present_end(struct vmm_present *p);
/*
 * SUB-17: counts the present against the limit of its device. Waits until it is below, or returns
 * STATUS_GRAPHICS_ALLOCATION_BUSY if the request does not wait. STATUS_DEVICE_REMOVED.
 */
NTSTATUS vmm_present_reserve(struct vmm_present *p) VMM_MUST_CHECK;
void vmm_present_unreserve(struct vmm_present *p);
/* Maps source and destination for the commands of the miniport. */
NTSTATUS vmm_present_map(const struct vmm_present *p) VMM_MUST_CHECK;
/* Lists source and destination as DxgkDdiPresent expects them. (DMA-32) */
void vmm_present_list(const struct vmm_present *p,
		      D3DDDI_ALLOCATIONLIST list[DXGK_PRESENT_MAX_INDEX]);
/* Report why a present is refused, or what of it is not built; return the status. */
NTSTATUS vmm_present_refuse(const struct vmm_present *p, const char *rule, const char *what,
			    uint64_t value) VMM_COLD;
NTSTATUS vmm_present_not_built(const struct vmm_present *p, const char *rule,
			       const char *what) VMM_COLD;

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

/* ---- hw_submit.c; paging lock held ---- */
struct vmm_hw_queue;
struct vmm_hw_packet;
/* STATUS_INVALID_PARAMETER: the id is not above that of the queue's newest command (SUB-27). */
NTSTATUS vmm_hw_check_id(const struct vmm_hw_queue *queue, uint64_t id) VMM_MUST_CHECK
	VMM_REQUIRES(vmm_paging_lock_class);
/* Appends a packet to its queue, and submits what may run. */
void vmm_hw_enqueue(struct vmm_hw_packet *packet) VMM_REQUIRES(vmm_paging_lock_class);
/* Called after that, when the paging lock is released: the worker continues. */
void vmm_hw_enqueued(struct vmm_adapter *adapter);

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
