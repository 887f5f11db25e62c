/* SPDX-License-Identifier: MIT */
/* Attributes as bits, and the filters of lists. */
#include "dxcore/dxcore_private.h"

#include <string.h>

static const struct {
	GUID guid;
	uint32_t bit;
} known[] = {
	{DXCORE_D3D11_GRAPHICS, VMM_DXCORE_D3D11_GRAPHICS},
	{DXCORE_D3D12_GRAPHICS, VMM_DXCORE_D3D12_GRAPHICS},
	{DXCORE_D3D12_CORE_COMPUTE, VMM_DXCORE_D3D12_CORE_COMPUTE},
	{DXCORE_D3D12_GENERIC_ML, VMM_DXCORE_D3D12_GENERIC_ML},
	{DXCORE_D3D12_GENERIC_MEDIA, VMM_DXCORE_D3D12_GENERIC_MEDIA},
	{DXCORE_HARDWARE_TYPE_GPU, DXCoreHardwareTypeFilterFlags_GPU << VMM_DXCORE_HARDWARE_SHIFT},
	{DXCORE_HARDWARE_TYPE_COMPUTE_ACCELERATOR,
	 DXCoreHardwareTypeFilterFlags_ComputeAccelerator << VMM_DXCORE_HARDWARE_SHIFT},
	{DXCORE_HARDWARE_TYPE_NPU, DXCoreHardwareTypeFilterFlags_NPU << VMM_DXCORE_HARDWARE_SHIFT},
	{DXCORE_HARDWARE_TYPE_MEDIA_ACCELERATOR,
	 DXCoreHardwareTypeFilterFlags_MediaAccelerator << VMM_DXCORE_HARDWARE_SHIFT},
};

bool vmm_dxcore_is_guid(const GUID *a, const GUID *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

uint32_t vmm_dxcore_attribute(const GUID *attribute)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (vmm_dxcore_is_guid(attribute, &known[i].guid))
			return known[i].bit;
	return 0;
}

bool vmm_dxcore_selects(const struct vmm_dxcore_filter *filter, uint32_t attributes)
{
	bool selects = !filter->impossible && (attributes & filter->all) == filter->all;

	for (size_t i = 0; i < sizeof(filter->any) / sizeof(filter->any[0]); i++)
		selects = selects && (!filter->any[i] || attributes & filter->any[i]);
	return selects;
}

#define TYPE(name) (DXCoreHardwareTypeFilterFlags_##name << VMM_DXCORE_HARDWARE_SHIFT)

/* Which types of hardware run a workload, the more specialized ones first. (DXC-13) */
static const uint32_t workloads[][VMM_DXCORE_TYPES] = {
	[DXCoreWorkload_Graphics] = {TYPE(GPU)},
	[DXCoreWorkload_Compute] = {TYPE(ComputeAccelerator), TYPE(NPU), TYPE(GPU)},
	[DXCoreWorkload_Media] = {TYPE(MediaAccelerator), TYPE(GPU)},
	[DXCoreWorkload_MachineLearning] = {TYPE(NPU), TYPE(ComputeAccelerator), TYPE(GPU)},
};

bool vmm_dxcore_workload(uint32_t workload, uint32_t runtimes, uint32_t hardware,
			 struct vmm_dxcore_filter *filter, uint32_t first[VMM_DXCORE_TYPES])
{
	const uint32_t all_runtimes =
		DXCoreRuntimeFilterFlags_D3D11 | DXCoreRuntimeFilterFlags_D3D12;

	if (workload > DXCoreWorkload_MachineLearning || runtimes & ~all_runtimes ||
	    hardware & ~(uint32_t)(VMM_DXCORE_HARDWARE >> VMM_DXCORE_HARDWARE_SHIFT))
		return false;
	*filter = (struct vmm_dxcore_filter){0};
	memcpy(first, workloads[workload], sizeof(workloads[workload]));
	for (uint32_t i = 0; first[i]; i++)
		filter->any[0] |= first[i];
	filter->any[1] = hardware << VMM_DXCORE_HARDWARE_SHIFT;
	if (runtimes & DXCoreRuntimeFilterFlags_D3D11)
		filter->all = VMM_DXCORE_D3D11_GRAPHICS;
	if (runtimes & DXCoreRuntimeFilterFlags_D3D12)
		filter->any[2] = VMM_DXCORE_RUNTIMES & ~(uint32_t)VMM_DXCORE_D3D11_GRAPHICS;
	return true;
}
