/* SPDX-License-Identifier: MIT */
/*
 * Locks and unlocks that only count, from the entry of the call to its door event. Most calls are
 * such: the lock word of the allocation is enabled (memory/fast_lock.h), the device is alive, and
 * the events of the call have no subscriber. They are shorter than the general steps of a call,
 * which keep the call's state in memory for the paths that are rarely taken.
 *
 * Each function here makes the whole call, or returns false and has done nothing. Then the caller
 * makes the call step by step, and reads its argument again as if for the first time: nothing that
 * was read here is used any more.
 */
#ifndef VMM_DOORS_COMMON_QUICK_LOCK_H
#define VMM_DOORS_COMMON_QUICK_LOCK_H

#include "doors/common/call.h"
#include "memory/fast_lock.h"

/*
 * Returns the calling thread's counters of events if the door event and events of `type` would only
 * be counted, else NULL.
 */
VMM_ALWAYS_INLINE struct vmm_observe_set *vmm_quick_counters(const struct vmm_device *device,
							     uint32_t type)
{
	const struct vmm_observe *observe = device->adapter->observe;
	uint32_t own = vmm_observe_thread;

	if (vmm_unlikely(own - 1 >= VMM_OBSERVE_SETS - 1 || vmm_observe_stamps(observe, type) ||
			 vmm_observe_stamps(observe, VIDMM_EVENT_DOOR)))
		return NULL;
	return &((const struct vmm_observe_front *)observe)->sets[own];
}

/* Returns whether a lock on the device can succeed, and need not wait for a reset. (LOCK-33) */
VMM_ALWAYS_INLINE bool vmm_quick_may_lock(const struct vmm_device *device)
{
	const struct vmm_adapter *adapter = device->adapter;

	return !atomic_load_explicit(&adapter->closed, memory_order_relaxed) &&
	       !atomic_load_explicit(&adapter->recovering, memory_order_relaxed) &&
	       atomic_load_explicit(&device->error, memory_order_relaxed) == VMM_DEVICE_OK;
}

/* A lock with flags; with `lock2` one of Lock2, which has none. Returns the address, or NULL. */
VMM_ALWAYS_INLINE char *vmm_quick_lock_entered(const struct vmm_device *device, uint32_t handle,
					       uint32_t flags, bool lock2)
{
	bool wddm2 = device->adapter->client_synchronizes;
	bool plain = lock2 ? wddm2 : vmm_lock_flags_are_plain(wddm2, flags, false);
	struct vmm_observe_set *counters = vmm_quick_counters(device, VIDMM_EVENT_LOCK);
	uint64_t bytes;

	if (vmm_unlikely(!plain || !counters || !vmm_quick_may_lock(device)))
		return NULL;
	char *address = vmm_fast_lock_acquire(device, handle, flags, &bytes);
	if (vmm_unlikely(!address))
		return NULL;
	vmm_observe_count(&counters->types[VIDMM_EVENT_LOCK], flags, 0, bytes, handle);
	vmm_observe_count(&counters->types[VIDMM_EVENT_DOOR], STATUS_SUCCESS, lock2, 0, flags);
	return address;
}

/* pfnLockCb, D3DKMTLock, Lock2. hazard: the HANDLE of the device, or any other. */
VMM_ALWAYS_INLINE bool vmm_quick_lock(const void *hazard, uint32_t handle, uint32_t flags,
				      bool lock2, void **data)
{
	/* On WDDM 1.x a lock with Discard usually renames, so the attempt would be in vain. */
	if (vmm_unlikely(flags & VMM_LOCK_DISCARD))
		return false;
	struct vmm_hazard_entry entry = vmm_hazard_enter_quick(VMM_HAZARD_DEVICE, hazard);
	if (vmm_unlikely(!entry.object))
		return false;
	char *address = vmm_quick_lock_entered(entry.object, handle, flags, lock2);
	if (vmm_likely(address))
		*data = address;
	vmm_hazard_leave_quick(entry);
	return address != NULL;
}

/* The unlock of one allocation, on a device that was entered; also if it is lost. (LOCK-33) */
VMM_ALWAYS_INLINE bool vmm_quick_unlock_entered(const struct vmm_device *device, uint32_t handle)
{
	struct vmm_observe_set *counters = vmm_quick_counters(device, VIDMM_EVENT_UNLOCK);

	if (vmm_unlikely(!counters || !vmm_fast_lock_release(device, handle)))
		return false;
	vmm_observe_count(&counters->types[VIDMM_EVENT_UNLOCK], 0, 0, 0, 0);
	vmm_observe_count(&counters->types[VIDMM_EVENT_DOOR], STATUS_SUCCESS, 1, 0, 0);
	return true;
}

/* Unlock2. */
VMM_ALWAYS_INLINE bool vmm_quick_unlock(const void *hazard, uint32_t handle)
{
	struct vmm_hazard_entry entry = vmm_hazard_enter_quick(VMM_HAZARD_DEVICE, hazard);

	if (vmm_unlikely(!entry.object))
		return false;
	bool done = vmm_quick_unlock_entered(entry.object, handle);
	vmm_hazard_leave_quick(entry);
	return done;
}

/*
 * pfnUnlockCb, D3DKMTUnlock: the same if the list names one allocation. The members of the caller's
 * argument are read only if the device is live, as in the full call.
 */
VMM_ALWAYS_INLINE bool vmm_quick_unlock_list(const void *hazard, const uint32_t *const *handles,
					     const uint32_t *count)
{
	struct vmm_hazard_entry entry = vmm_hazard_enter_quick(VMM_HAZARD_DEVICE, hazard);

	if (vmm_unlikely(!entry.object))
		return false;
	const uint32_t *list = *handles;
	bool done =
		vmm_likely(*count == 1 && list) && vmm_quick_unlock_entered(entry.object, list[0]);
	vmm_hazard_leave_quick(entry);
	return done;
}

#endif
