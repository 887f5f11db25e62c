/* SPDX-License-Identifier: MIT */
/* The predicate of devices, which the modules assert where they are entered. */
#include "object/object.h"

bool vmm_device_is_valid(const struct vmm_device *device)
{
	const struct vmm_adapter *adapter = device->adapter;

	return adapter && device->process && device->process->world == adapter->world &&
	       (!device->va || adapter->residency_lists) &&
	       atomic_load_explicit(&device->error, memory_order_relaxed) <=
		       VMM_DEVICE_PAGE_FAULT_RESET;
}
