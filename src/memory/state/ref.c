/* SPDX-License-Identifier: MIT */
/*
 * The finding for a handle that names no reference of the calling device, and the packets that a
 * device has queued when one of its references changes.
 */
#include "memory/state/state.h"
#include "object/progress.h"

void vmm_ref_report(const struct vmm_device *device, uint32_t handle, const char *rule,
		    const char *what)
{
	const struct vmm_handle_table *table = &device->process->handles;
	struct vmm_ref *ref = vmm_handle_lookup(table, handle, VMM_HANDLE_ALLOCATION);

	vmm_assert_held(&device->process->lock);
	if (ref && ref->device)
		vmm_finding(device->process->world->observe, rule, device->process->id, handle,
			    "%s: allocation 0x%08x belongs to device 0x%08x, not to 0x%08x", what,
			    handle, ref->device->handle, device->handle);
	else
		vmm_finding(device->process->world->observe, rule, device->process->id, handle,
			    "%s: 0x%08x is not a live allocation handle (%s)", what, handle,
			    vmm_handle_explain(table, handle, VMM_HANDLE_ALLOCATION));
}

void vmm_ref_note_queued(struct vmm_ref *ref)
{
	vmm_assert_held(&ref->allocation->adapter->paging_lock);
	for (uint32_t t = 0; t < vmm_timeline_count(ref->device->adapter); t++)
		ref->departs_after[t] =
			atomic_load_explicit(&ref->device->queued[t], memory_order_relaxed);
}

bool vmm_ref_queued_is_done(const struct vmm_ref *ref)
{
	vmm_assert_held(&ref->allocation->adapter->paging_lock);
	for (uint32_t t = 0; t < vmm_timeline_count(ref->device->adapter); t++)
		if (!vmm_device_done(ref->device, t, ref->departs_after[t]))
			return false;
	return true;
}
