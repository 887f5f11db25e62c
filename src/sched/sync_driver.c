/* SPDX-License-Identifier: MIT */
/* What sync needs of the miniport: its side of the notifications that it signals, and the beats of periodic fences. */
#include "sched/sched_private.h"

static vmm_status create_event(struct vmm_device *device, int event, void **result)
{
	struct vmm_port_cpu_event *made = NULL;
	NTSTATUS status =
		vmm_port_create_cpu_event(device->adapter->port, device->kmd_device, event, &made);

	*result = made;
	return status;
}

static void destroy_event(struct vmm_adapter *adapter, void *event)
{
	vmm_port_destroy_cpu_event(adapter->port, event);
}

static vmm_status tell_event(struct vmm_device *device, void *event, uint32_t flags, void *record)
{
	return vmm_port_escape_cpu_event(device->adapter->port, device->kmd_device, flags, event,
					 record);
}

const struct vmm_sync_driver vmm_sched_sync_driver = {
	.create_event = create_event,
	.destroy_event = destroy_event,
	.tell_event = tell_event,
	.target_count = vmm_periodic_target_count,
	.begin_beat = vmm_periodic_begin,
};
