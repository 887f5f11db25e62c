/* SPDX-License-Identifier: MIT */
/*
 * What an adapter of WDDM 2.x says besides DXGK_DRIVERCAPS: which of the GPU's address spaces there are, and of its
 * physical adapter how many nodes it has and which of them pages.
 */
#include <string.h>
#include "port/port_internal.h"

/* VA-15; and what of it is built: physical addresses alone, or page tables that are managed here. */
NTSTATUS vmm_port_check_addressing(struct vmm_port *port, const DXGK_DRIVERCAPS *caps)
{
	DXGK_VIDMMCAPS memory = caps->MemoryManagementCaps;

	if ((memory.GpuMmuSupported && memory.IoMmuSupported) ||
	    (memory.VirtualAddressingSupported && !memory.GpuMmuSupported &&
	     !memory.IoMmuSupported)) {
		vmm_finding(port->observe, "VA-15", 0, 0,
			    "MemoryManagementCaps 0x%x: VirtualAddressingSupported needs one of "
			    "GpuMmuSupported and IoMmuSupported, and they exclude each other",
			    memory.Value);
		return STATUS_INVALID_PARAMETER;
	}
	port->caps.gpummu.supported = memory.VirtualAddressingSupported && memory.GpuMmuSupported;
	if (port->caps.gpummu.supported || (!memory.VirtualAddressingSupported &&
					    !memory.GpuMmuSupported && !memory.IoMmuSupported))
		return STATUS_SUCCESS;
	vmm_reason(
		port->observe, STATUS_NOT_SUPPORTED, 0, 0,
		"MemoryManagementCaps 0x%x: of virtual addressing what is built is the GpuMmu model, "
		"VirtualAddressingSupported with GpuMmuSupported",
		memory.Value);
	return STATUS_NOT_SUPPORTED;
}

static NTSTATUS check(struct vmm_port *port, const DXGK_DRIVERCAPS *caps,
		      DXGK_PHYSICALADAPTERCAPS *physical)
{
	UINT nodes = caps->SchedulingCaps.MultiEngineAware
			     ? caps->GpuEngineTopology.NbAsymetricProcessingNodes
			     : 1;

	if (physical->NumExecutionNodes != nodes) {
		vmm_finding(port->observe, "SCH-07", 0, 0,
			    "PHYSICALADAPTERCAPS has %u execution nodes, DRIVERCAPS %u",
			    physical->NumExecutionNodes, nodes);
		return STATUS_INVALID_PARAMETER;
	}
	if (physical->Flags.GpuMmu && !port->caps.gpummu.supported) {
		vmm_finding(
			port->observe, "VA-15", 0, 0,
			"PHYSICALADAPTERCAPS has GpuMmuSupported, MemoryManagementCaps 0x%x has not",
			caps->MemoryManagementCaps.Value);
		return STATUS_INVALID_PARAMETER;
	}
	physical->Flags.GpuMmu = 0;
	if (!physical->Flags.Value)
		return STATUS_SUCCESS;
	vmm_reason(port->observe, STATUS_NOT_SUPPORTED, 0, 0,
		   "PHYSICALADAPTERCAPS has flags 0x%x: none of them is built",
		   physical->Flags.Value);
	return STATUS_NOT_SUPPORTED;
}

/* SCH-09: from 2.0 on the paging node is the physical adapter's. It takes the place of PagingNode. */
NTSTATUS vmm_port_query_physical_adapter(struct vmm_port *port, DXGK_DRIVERCAPS *caps)
{
	DXGK_PHYSICALADAPTERCAPS physical;
	UINT index = 0;
	DXGKARG_QUERYADAPTERINFO args = {
		.Type = DXGKQAITYPE_PHYSICALADAPTERCAPS,
		.pInputData = &index,
		.InputDataSize = sizeof(index),
		.pOutputData = &physical,
		.OutputDataSize = sizeof(physical),
	};
	NTSTATUS status;

	memset(&physical, 0, sizeof(physical));
	physical.DxgkPhysicalAdapterHandle = port;
	status = vmm_port_query_adapter_info(port, &args);
	if (status < 0) {
		vmm_reason(port->observe, status, 0, 0,
			   "DxgkDdiQueryAdapterInfo(PHYSICALADAPTERCAPS) failed with 0x%08x: a 2.x "
			   "adapter names its paging node there",
			   (unsigned)status);
		return status;
	}
	status = check(port, caps, &physical);
	caps->MemoryManagementCaps.PagingNode = physical.PagingNodeIndex;
	return status;
}
