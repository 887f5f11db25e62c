/* SPDX-License-Identifier: MIT */
/*
 * Capabilities of WDDM 2.x. The address spaces of the GPU are checked in MemoryManagementCaps of
 * DXGK_DRIVERCAPS. The number of nodes, and the node that runs paging packets, are queried in
 * DXGK_PHYSICALADAPTERCAPS.
 */
#include <string.h>
#include "port/port_internal.h"

/*
 * Checks the address spaces (VA-15). Supported are physical addresses alone, and page tables that
 * the library manages.
 */
NTSTATUS vmm_port_check_addressing(struct vmm_port *port, const DXGK_DRIVERCAPS *caps)
{
	DXGK_VIDMMCAPS memory = caps->MemoryManagementCaps;

	if ((memory.GpuMmuSupported && memory.IoMmuSupported) ||
	    (memory.VirtualAddressingSupported && !memory.GpuMmuSupported &&
	     !memory.IoMmuSupported))
		return vmm_refuse_rule(
			port->observe, STATUS_INVALID_PARAMETER, "VA-15", 0, 0,
			"MemoryManagementCaps 0x%x: VirtualAddressingSupported needs one of "
			"GpuMmuSupported and IoMmuSupported, and they exclude each other",
			memory.Value);
	port->caps.gpummu.supported = memory.VirtualAddressingSupported && memory.GpuMmuSupported;
	if (port->caps.gpummu.supported || (!memory.VirtualAddressingSupported &&
					    !memory.GpuMmuSupported && !memory.IoMmuSupported))
		return STATUS_SUCCESS;
	return vmm_refuse_reason(
		port->observe, STATUS_NOT_SUPPORTED, 0, 0,
		"MemoryManagementCaps 0x%x: of virtual addressing only the GpuMmu model is built: "
		"VirtualAddressingSupported with GpuMmuSupported",
		memory.Value);
}

static NTSTATUS check(struct vmm_port *port, const DXGK_DRIVERCAPS *caps,
		      DXGK_PHYSICALADAPTERCAPS *physical)
{
	UINT nodes = caps->SchedulingCaps.MultiEngineAware
			     ? caps->GpuEngineTopology.NbAsymetricProcessingNodes
			     : 1;

	if (physical->NumExecutionNodes != nodes)
		return vmm_refuse_rule(
			port->observe, STATUS_INVALID_PARAMETER, "SCH-07", 0, 0,
			"PHYSICALADAPTERCAPS has %u execution nodes, but DRIVERCAPS has %u",
			physical->NumExecutionNodes, nodes);
	if (physical->Flags.GpuMmu && !port->caps.gpummu.supported)
		return vmm_refuse_rule(
			port->observe, STATUS_INVALID_PARAMETER, "VA-15", 0, 0,
			"PHYSICALADAPTERCAPS has GpuMmuSupported, but MemoryManagementCaps 0x%x "
			"has not",
			caps->MemoryManagementCaps.Value);
	physical->Flags.GpuMmu = 0;
	if (!physical->Flags.Value)
		return STATUS_SUCCESS;
	return vmm_refuse_reason(port->observe, STATUS_NOT_SUPPORTED, 0, 0,
				 "PHYSICALADAPTERCAPS has flags 0x%x: none of them is built",
				 physical->Flags.Value);
}

/*
 * The query is optional for a ComputeOnly adapter. Without an answer, the nodes and the paging node
 * of DRIVERCAPS remain. (SCH-09)
 */
static void report_unanswered(struct vmm_port *port, const DXGK_DRIVERCAPS *caps, NTSTATUS status)
{
	if (caps->MiscCaps.ComputeOnly)
		return;
	vmm_finding(port->observe, "SCH-09", 0, 0,
		    "DxgkDdiQueryAdapterInfo(PHYSICALADAPTERCAPS) returned 0x%08x: a %s adapter "
		    "that is not ComputeOnly names its paging node there; node %u of DRIVERCAPS "
		    "is used",
		    (unsigned)status, port->model->name, caps->MemoryManagementCaps.PagingNode);
}

/*
 * SCH-09: from WDDM 2.0 on the physical adapter reports the paging node. It replaces PagingNode of
 * DRIVERCAPS.
 */
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
	if (status == STATUS_NOT_SUPPORTED || status == STATUS_INVALID_PARAMETER) {
		report_unanswered(port, caps, status);
		return STATUS_SUCCESS;
	}
	if (status < 0)
		return vmm_refuse_reason(
			port->observe, status, 0, 0,
			"DxgkDdiQueryAdapterInfo(PHYSICALADAPTERCAPS) failed with 0x%08x: a "
			"2.x adapter names its paging node there",
			(unsigned)status);
	status = check(port, caps, &physical);
	caps->MemoryManagementCaps.PagingNode = physical.PagingNodeIndex;
	return status;
}
