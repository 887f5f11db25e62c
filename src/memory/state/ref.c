/* SPDX-License-Identifier: MIT */
/* The finding for a handle that names no reference of the calling device. */
#include "memory/allocation.h"

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
