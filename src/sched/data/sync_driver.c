/* SPDX-License-Identifier: MIT */
/*
 * The services that sync needs from the miniport: its side of CPU event notifications, and the
 * periodic signals of periodic fences.
 */
#include "sched/data/data.h"

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

static vmm_status pass_record(struct vmm_device *device, void *event, uint32_t flags, void *record)
{
	return vmm_port_escape_cpu_event(device->adapter->port, device->kmd_device, flags, event,
					 record);
}

static vmm_status map_pages(struct vmm_device *device, const struct vmm_os_memory *pages,
			    uint64_t size_bytes, void **window, uint64_t *address)
{
	struct vmm_va_window *made = NULL;
	vmm_status status = vmm_va_map_pages(device, pages, size_bytes, &made, address);

	*window = made;
	return status;
}

static void unmap_pages(struct vmm_device *device, void *window)
{
	vmm_va_unmap_pages(device, window);
}

const struct vmm_sync_driver vmm_sched_sync_driver = {
	.map_pages = map_pages,
	.unmap_pages = unmap_pages,
	.create_event = create_event,
	.destroy_event = destroy_event,
	.pass_record = pass_record,
	.target_count = vmm_periodic_target_count,
	.begin_periodic = vmm_periodic_begin,
};
