/* SPDX-License-Identifier: MIT */
#include "wddm2_world.h"

static void version(struct scripted_miniport *m, ULONG interface_version)
{
	scripted_set_version(m, interface_version);
	m->settings.caps.WDDMVersion = DXGKDDI_WDDMv2;
}

void wddm2_0(struct scripted_miniport *m)
{
	version(m, DXGKDDI_INTERFACE_VERSION_WDDM2_0);
}

void wddm2_1(struct scripted_miniport *m)
{
	version(m, DXGKDDI_INTERFACE_VERSION_WDDM2_1);
}

HRESULT wddm2_try_allocate(struct client_device *device, const struct scripted_allocation *spec,
			   D3DKMT_HANDLE *handle)
{
	struct scripted_allocation private_data = *spec;
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &private_data,
				      .PrivateDriverDataSize = sizeof(private_data)};
	D3DDDICB_ALLOCATE args = {.NumAllocations = 1, .pAllocationInfo = &info};
	HRESULT result = device->cb->pfnAllocateCb(device->handle, &args);

	*handle = info.hAllocation;
	return result;
}

D3DKMT_HANDLE wddm2_allocate(struct client_device *device, uint64_t bytes, uint32_t segment_set)
{
	const struct scripted_allocation spec = {.size_bytes = bytes,
						 .flags = PHYSICAL,
						 .read_set = segment_set,
						 .write_set = segment_set};
	D3DKMT_HANDLE handle;

	assert_int_equal(wddm2_try_allocate(device, &spec, &handle), S_OK);
	return handle;
}
