/* SPDX-License-Identifier: MIT */
/* Calls on devices that cannot be entered, and copies of a caller's arrays. */
#include "doors/common/call.h"

#include <string.h>

NTSTATUS vmm_door_no_device(struct vmm_door_call *call, const void *hazard, bool cleaning)
{
	bool stopped = vmm_hazard_is_stopped(hazard);

	call->on_stopped = stopped && cleaning;
	return stopped ? STATUS_DEVICE_REMOVED : STATUS_INVALID_PARAMETER;
}

NTSTATUS vmm_door_lost_status(const struct vmm_device *device)
{
	return atomic_load_explicit(&device->adapter->closed, memory_order_relaxed)
		       ? STATUS_DEVICE_REMOVED
		       : vmm_device_answer(device);
}

NTSTATUS vmm_door_copy_in(const void *array, uint32_t count, uint32_t limit, size_t element,
			  void *local, size_t local_bytes, void **copy)
{
	*copy = NULL;
	if (!count)
		return STATUS_SUCCESS;
	if (!array || count > limit)
		return STATUS_INVALID_PARAMETER;
	if (count * element > local_bytes)
		return vmm_copy_in(array, count, limit, element, copy);
	memcpy(local, array, count * element);
	*copy = local;
	return STATUS_SUCCESS;
}

NTSTATUS vmm_door_copy_given(const void *array, uint32_t count, uint32_t limit, size_t element,
			     void *local, size_t local_bytes, void **copy)
{
	*copy = array && !count ? local : NULL;
	return array && count
		       ? vmm_door_copy_in(array, count, limit, element, local, local_bytes, copy)
		       : STATUS_SUCCESS;
}

void vmm_door_copy_done(void *copy, const void *local)
{
	if (copy != local)
		vmm_free(copy);
}
