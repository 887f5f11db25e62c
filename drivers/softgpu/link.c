/* SPDX-License-Identifier: MIT */
/*
 * Links of two adapters. Devices of one driver object belong together; the first one added is the
 * lead. LinkedAdapters says whether they are a link; otherwise there is no DxgkDdiLinkDevice.
 *
 * The list of all adapters is the only state of the driver outside its adapters. AddDevice,
 * LinkDevice and RemoveDevice change it, for several driver objects at once.
 */
#include "softgpu_private.h"

#include "atomic.h"

static struct softgpu_adapter *known;
static uint32_t known_lock;

void softgpu_link_add(struct softgpu_adapter *adapter, PDEVICE_OBJECT device)
{
	adapter->driver = device ? device->DriverObject : NULL;
	adapter->link[0] = adapter;
	adapter->link_count = 1;
	softgpu_bus_init(&adapter->bus);
	softgpu_spin_lock(&known_lock);
	adapter->next_known = known;
	known = adapter;
	softgpu_spin_unlock(&known_lock);
}

void softgpu_link_remove(struct softgpu_adapter *adapter)
{
	struct softgpu_adapter **at = &known;

	softgpu_spin_lock(&known_lock);
	while (*at != adapter)
		at = &(*at)->next_known;
	*at = adapter->next_known;
	softgpu_spin_unlock(&known_lock);
}

static struct softgpu_adapter *first_of_driver(const struct softgpu_adapter *adapter)
{
	struct softgpu_adapter *other;

	softgpu_spin_lock(&known_lock);
	for (other = known; other; other = other->next_known)
		if (other != adapter && other->driver == adapter->driver)
			break;
	softgpu_spin_unlock(&known_lock);
	return other;
}

NTSTATUS softgpu_link_device(const PDEVICE_OBJECT PhysicalDeviceObject,
			     IN_CONST_PVOID MiniportDeviceContext, PLINKED_DEVICE LinkedDevice)
{
	struct softgpu_adapter *adapter = MiniportDeviceContext;
	struct softgpu_adapter *lead = first_of_driver(adapter);

	(void)PhysicalDeviceObject;
	LinkedDevice->ChainUid = 1;
	LinkedDevice->NumberOfLinksInChain = SOFTGPU_LINKS;
	LinkedDevice->LeadLink = lead == NULL;
	if (!lead)
		return STATUS_SUCCESS;
	adapter->link_index = 1;
	adapter->link[0] = lead->link[0] = lead;
	adapter->link[1] = lead->link[1] = adapter;
	adapter->link_count = lead->link_count = SOFTGPU_LINKS;
	return STATUS_SUCCESS;
}

struct softgpu_engine *softgpu_engine_of(struct softgpu_adapter *adapter, uint32_t node,
					 uint32_t engine)
{
	return node < SOFTGPU_NODES && engine < adapter->link_count
		       ? &adapter->link[engine]->engines[node]
		       : NULL;
}
