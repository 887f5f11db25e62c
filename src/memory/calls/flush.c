/* SPDX-License-Identifier: MIT */
/*
 * What a client may ask to be finished: the CPU caches of a range of an allocation (CCH-01), and
 * the moves of allocations that are under way (CCH-03).
 */
#include "memory/image/image.h"
#include "memory/state/state.h"
#include "object/progress.h"

static NTSTATUS check_range(const struct vmm_device *device, uint32_t handle,
			    const struct vmm_allocation *a, uint64_t offset, uint64_t length)
{
	if (offset <= a->size_bytes && length <= a->size_bytes - offset)
		return STATUS_SUCCESS;
	return vmm_refuse_rule(device->adapter->observe, STATUS_INVALID_PARAMETER, "CCH-02",
			       device->process->id, handle,
			       "invalidate the cache of 0x%08x: %llu bytes at offset %llu are not "
			       "inside its %llu bytes",
			       handle, (unsigned long long)length, (unsigned long long)offset,
			       (unsigned long long)a->size_bytes);
}

NTSTATUS vmm_memory_invalidate_cache(struct vmm_device *device, uint32_t handle, uint64_t offset,
				     uint64_t length)
{
	NTSTATUS status = STATUS_INVALID_PARAMETER;

	vmm_assert(vmm_device_is_valid(device));
	vmm_paging_lock(device->adapter);
	vmm_process_lock(device->process);
	const struct vmm_ref *ref = vmm_ref_lookup_locked(device, handle);
	if (!ref)
		vmm_ref_report(device, handle, "CCH-02", "invalidate the cache");
	vmm_process_unlock(device->process);
	if (ref)
		status = check_range(device, handle, ref->allocation, offset, length);
	if (NT_SUCCESS(status))
		vmm_coherence_flush_range(device->adapter->memory, ref->instance, offset, length);
	vmm_paging_unlock_idle(device->adapter);
	return status;
}

NTSTATUS vmm_memory_flush_transitions(struct vmm_adapter *adapter, struct vmm_process *process)
{
	if (atomic_load(&adapter->removed))
		return STATUS_DEVICE_REMOVED;
	vmm_paging_lock(adapter);
	uint64_t sequence = vmm_memory_flush_locked(adapter);
	vmm_paging_commit(adapter);
	if (vmm_timeline_done(adapter, adapter->paging_timeline, sequence))
		return STATUS_SUCCESS;
	struct vmm_process *before = vmm_calling_process_set(adapter->os, process);
	vmm_status status = vmm_wait_timeline(adapter, adapter->paging_timeline, sequence,
					      VIDMM_WAIT_HEAP, NULL);
	vmm_calling_process_set(adapter->os, before);
	return status;
}
