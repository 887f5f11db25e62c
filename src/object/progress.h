/* SPDX-License-Identifier: MIT */
/*
 * progress: packets of timelines, and waiting for the GPU (progress.c). Included by object.h, which
 * defines the structures.
 */
#ifndef VMM_OBJECT_PROGRESS_H
#define VMM_OBJECT_PROGRESS_H

#include "object/object.h"

/*
 * Add a packet to timeline t of the adapter, with its sequence number set; and remove it when it is
 * complete, which updates the timeline. Caller holds the state lock.
 */
void vmm_work_add_locked(struct vmm_adapter *adapter, uint32_t t, struct vmm_work *work)
	VMM_REQUIRES(vmm_state_lock_class);
void vmm_work_done_locked(struct vmm_adapter *adapter, uint32_t t, struct vmm_work *work)
	VMM_REQUIRES(vmm_state_lock_class);
/*
 * Returns whether that packet is complete, also one that completed before an older packet of its
 * timeline. Slower than vmm_timeline_done, which calls it for a timeline that has such packets. The
 * caller must not hold the state lock if the timeline is a node's. May return false for a packet
 * that completes during the call.
 */
bool vmm_timeline_is_ahead(const struct vmm_adapter *adapter, uint32_t timeline, uint64_t sequence);
/* Returns whether every packet up to that one is complete. */
static inline bool vmm_timeline_passed(const struct vmm_adapter *adapter, uint32_t timeline,
				       uint64_t sequence)
{
	return vmm_likely(sequence <= atomic_load_explicit(&adapter->timeline[timeline].completed,
							   memory_order_acquire));
}
/*
 * Returns whether that packet is complete, and with it all earlier packets of its context. The
 * caller must not hold the state lock if the timeline is a node's.
 */
static inline bool vmm_timeline_done(const struct vmm_adapter *adapter, uint32_t timeline,
				     uint64_t sequence)
{
	return vmm_timeline_passed(adapter, timeline, sequence) ||
	       (vmm_unlikely(atomic_load_explicit(&adapter->timeline[timeline].ahead,
						  memory_order_relaxed)) &&
		vmm_timeline_is_ahead(adapter, timeline, sequence));
}
/*
 * Returns whether all packets of the device up to that one are complete. The caller must not hold
 * the state lock.
 */
bool vmm_device_done(const struct vmm_device *device, uint32_t timeline, uint64_t sequence);

static inline uint32_t vmm_hw_timeline(const struct vmm_adapter *adapter)
{
	return adapter->paging_timeline + 1;
}
static inline uint32_t vmm_timeline_count(const struct vmm_adapter *adapter)
{
	return adapter->node_count + 1 + (adapter->hw_queues ? 1 : 0);
}

/* The node on which paging of a physical adapter runs (SCH-09). */
static inline uint32_t vmm_paging_node_of(const struct vmm_adapter *adapter, uint32_t physical)
{
	return adapter->paging_node + physical * (adapter->node_count / adapter->physical_adapters);
}

/*
 * Returns whether a packet with a higher number is prepared and incomplete. Takes the state lock.
 */
bool vmm_timeline_is_overtaken(struct vmm_adapter *adapter, uint32_t timeline, uint64_t sequence);
/*
 * Sleeps until the timeline has completed the packet. Returns VMM_DEVICE_REMOVED if the adapter is
 * removed or the calling process abandoned. Emits VIDMM_EVENT_WAIT with the reason. Adds the time
 * to *waited_ns, which may be NULL. No core lock held.
 */
vmm_status vmm_wait_timeline(struct vmm_adapter *adapter, uint32_t timeline, uint64_t sequence,
			     uint32_t reason, uint64_t *waited_ns) VMM_MUST_CHECK;
/*
 * The same for a CPU lock, whose call is inside the device. Returns VMM_PENDING if the device is
 * being paused: the call must leave the device first. (PNP-05)
 */
vmm_status vmm_wait_for_lock(struct vmm_device *device, uint32_t timeline, uint64_t sequence,
			     uint64_t *waited_ns) VMM_MUST_CHECK;
/*
 * Returns whether every packet up to that one is complete or held by a wait of its context. With
 * `prepared`: complete or not prepared. The caller must not hold the state lock.
 */
bool vmm_timeline_quiet(struct vmm_adapter *adapter, uint32_t timeline, uint64_t sequence,
			bool prepared);
/*
 * Like vmm_wait_timeline, for that packet and all before it, except packets held by a wait of their
 * context.
 */
vmm_status vmm_wait_timeline_passed(struct vmm_adapter *adapter, uint32_t timeline,
				    uint64_t sequence, uint32_t reason) VMM_MUST_CHECK;
/* Sleeps until adapter->progress differs from `seen`, which the caller read from it before. */
vmm_status vmm_wait_progress(struct vmm_adapter *adapter, uint32_t seen,
			     uint32_t reason) VMM_MUST_CHECK;
/* Wakes all waits for the GPU. Call it after a timeline has advanced. */
void vmm_progress_signal(struct vmm_adapter *adapter);
/*
 * A thread that may sleep without a limit inside a device. A thread that wants it to leave first
 * sets a condition and then calls vmm_device_disturb. The sleeper first adds itself to the list and
 * then checks such conditions. So at least one of the two sees the other.
 */
enum { VMM_SLEEPER_DONE = 1, VMM_SLEEPER_DISTURBED = 2 };
struct vmm_sleeper {
	struct vmm_list link;   /* in device->sleepers */
	_Atomic uint32_t state; /* its futex: VMM_SLEEPER_ bits, 0 while it sleeps */
};
void vmm_device_disturb(struct vmm_device *device);
/* Disturbs all devices of the adapter. Takes the state lock. */
void vmm_adapter_disturb(struct vmm_adapter *adapter);
/*
 * vmm_hazard_retire for a device, after unblocking the calls inside it that could sleep without a
 * limit.
 */
struct vmm_device *vmm_device_end(const void *handle) VMM_MUST_CHECK;
/* The same with vmm_hazard_retire_stopped: the adapter stops. */
struct vmm_device *vmm_device_stop(const void *handle) VMM_MUST_CHECK;
/*
 * Abandons a process whose client has gone. Its calls that wait inside the core return with
 * an error, and later ones do not wait. Work that its contexts have queued behind waits is given
 * up, as at the end of its devices (MFN-18). Once all calls have returned, vidmm_process_close may
 * follow. Waits for keyed mutexes are ended by sync. No lock held.
 */
void vmm_process_disturb(struct vmm_process *process);
/* Sleeps while the adapter is being reset. The caller holds no lock but the submit lock. */
void vmm_await_recovery(struct vmm_adapter *adapter);

#endif
