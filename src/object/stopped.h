/* SPDX-License-Identifier: MIT */
/*
 * stopped: devices of a stopped adapter, of which only the handles remain. A stop ends a device
 * with all that it has, but its handle stays until the client destroys the device, and so do the
 * handles of its contexts, queues, synchronization objects and trim registrations. Calls on them
 * answer STATUS_DEVICE_REMOVED, and are not mistaken for calls on a handle that never existed
 * (PNP-03). Of struct vmm_device only process, handle and hazard are valid then.
 */
#ifndef VMM_OBJECT_STOPPED_H
#define VMM_OBJECT_STOPPED_H

#include "object/object.h"

/*
 * Destroys a handle of the device or of an object of it; if its adapter stops, the handle becomes
 * one of type VMM_HANDLE_STOPPED for the device. Returns what vmm_handle_destroy returns. The
 * caller is inside the device or ends it, and holds the process lock.
 */
bool vmm_device_handle_destroy_locked(struct vmm_device *device, uint32_t handle)
	VMM_REQUIRES(vmm_process_lock_class);
/*
 * Returns the hazard handle of the device if `handle` is such a handle; otherwise NULL. Process
 * lock held.
 */
void *vmm_stopped_device_find_locked(const struct vmm_process *process, uint32_t handle)
	VMM_REQUIRES(vmm_process_lock_class);
/* A stopped device has ended, and is in no list. Keeps it for the client. No lock held. */
void vmm_stopped_device_keep(struct vmm_device *device);
/* The client destroys the device. Returns false if it is not a stopped one. No lock held. */
bool vmm_stopped_device_end(const void *hazard);
/* The process ends, and has no other devices. No lock held. */
void vmm_stopped_devices_end(struct vmm_process *process);

#endif
