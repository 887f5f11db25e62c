/* SPDX-License-Identifier: MIT */
/*
 * DxgkDdiQueryAdapterInfo, and the capabilities that the miniport reports in DXGK_DRIVERCAPS.
 * Members that the miniport's version does not have count as zero, whatever they contain.
 */
#include <string.h>
#include "port/port_internal.h"

#define NODE_DEPTH 2u /* SUB-16: HwQueuePacketCap exists from 2.0 on */

NTSTATUS vmm_port_query_adapter_info(struct vmm_port *port, DXGKARG_QUERYADAPTERINFO *args)
{
	struct vmm_port_call call =
		vmm_port_enter(port, VMM_PORT_PLACE_QUERY + (uint32_t)args->Type);
	/* DRIVERCAPS has spare bytes behind it already. */
	NTSTATUS status = port->verify && args->Type != DXGKQAITYPE_DRIVERCAPS
				  ? vmm_port_verify_query(port, args)
				  : port->ddi.DxgkDdiQueryAdapterInfo(port->adapter, args);

	vmm_port_leave(port, &call, VIDMM_DDI_QUERY_ADAPTER_INFO);
	vmm_port_ddi_event(port, VIDMM_DDI_QUERY_ADAPTER_INFO, status, args->Type,
			   args->OutputDataSize, 0);
	return status;
}

/*
 * A buffer with spare bytes behind it. They reveal a miniport that fills in a newer structure than
 * it registered for.
 */
struct caps_buffer {
	DXGK_DRIVERCAPS caps;
	uint8_t behind[128];
};

static NTSTATUS query_driver_caps(struct vmm_port *port, struct caps_buffer *buffer)
{
	DXGKARG_QUERYADAPTERINFO args = {
		.Type = DXGKQAITYPE_DRIVERCAPS,
		.pOutputData = &buffer->caps,
		.OutputDataSize = port->version->caps_bytes,
	};
	const uint8_t *bytes = (const uint8_t *)buffer;
	NTSTATUS status = vmm_port_query_adapter_info(port, &args);

	if (status < 0)
		return vmm_refuse_reason(port->observe, status, 0, 0,
					 "DxgkDdiQueryAdapterInfo(DRIVERCAPS) failed with 0x%08x",
					 (unsigned)status);
	vmm_port_report_caps(port, &buffer->caps);
	for (size_t i = port->version->caps_bytes; i < sizeof(*buffer); i++) {
		if (!bytes[i])
			continue;
		return vmm_refuse_rule(
			port->observe, STATUS_INVALID_PARAMETER, "PNP-01", 0, 0,
			"DRIVERCAPS: byte %zu was written, but the structure of a %s miniport has "
			"%u bytes",
			i, port->version->name, port->version->caps_bytes);
	}
	return STATUS_SUCCESS;
}

static NTSTATUS check_scheduling(struct vmm_port *port, const DXGK_VIDSCHCAPS *caps)
{
	NTSTATUS status = STATUS_SUCCESS;

	if (!caps->MultiEngineAware && (caps->PreemptionAware || caps->CancelCommandAware))
		status = vmm_refuse_rule(
			port->observe, STATUS_INVALID_PARAMETER, "PRE-09", 0, 0,
			"SchedulingCaps 0x%x: PreemptionAware and CancelCommandAware need "
			"MultiEngineAware",
			caps->Value);
	if (caps->NoDmaPatching && !(caps->PreemptionAware && caps->MultiEngineAware))
		status = vmm_refuse_rule(
			port->observe, STATUS_INVALID_PARAMETER, "SPL-15", 0, 0,
			"SchedulingCaps 0x%x: NoDmaPatching needs PreemptionAware and "
			"MultiEngineAware",
			caps->Value);
	return status;
}

static NTSTATUS check_nodes(struct vmm_port *port, const DXGK_DRIVERCAPS *caps)
{
	UINT nodes = caps->GpuEngineTopology.NbAsymetricProcessingNodes;

	/* SCH-07: without MultiEngineAware the node counts are not read. */
	port->caps.node_count = 1;
	port->caps.paging_node = 0;
	if (!caps->SchedulingCaps.MultiEngineAware)
		return STATUS_SUCCESS;
	if (nodes == 0 || nodes > DXGK_MAX_ASYMETRICAL_PROCESSING_NODES)
		return vmm_refuse_rule(port->observe, STATUS_INVALID_PARAMETER, "SCH-07", 0, 0,
				       "NbAsymetricProcessingNodes is %u, must be 1 to %u", nodes,
				       DXGK_MAX_ASYMETRICAL_PROCESSING_NODES);
	if (nodes > VMM_PORT_NODES_MAX)
		return vmm_refuse_reason(port->observe, STATUS_NOT_SUPPORTED, 0, 0,
					 "the adapter has %u nodes, VidSch schedules at most %u",
					 nodes, VMM_PORT_NODES_MAX);
	if (caps->MemoryManagementCaps.PagingNode >= nodes)
		return vmm_refuse_rule(port->observe, STATUS_INVALID_PARAMETER, "SCH-09", 0, 0,
				       "PagingNode is %u, must be 0 to %u",
				       caps->MemoryManagementCaps.PagingNode, nodes - 1);
	port->caps.node_count = nodes;
	port->caps.paging_node = caps->MemoryManagementCaps.PagingNode;
	return STATUS_SUCCESS;
}

static NTSTATUS check_addresses(struct vmm_port *port, const DXGK_DRIVERCAPS *caps)
{
	uint64_t highest = (uint64_t)caps->HighestAcceptableAddress.QuadPart;

	/*
	 * Zero counts as not reported. Every page of the platform has an address above the first
	 * one that was handed out.
	 */
	if (!highest || highest >= port->identity_physical)
		return STATUS_SUCCESS;
	return vmm_refuse_reason(
		port->observe, STATUS_NOT_SUPPORTED, 0, 0,
		"HighestAcceptableAddress is 0x%llx, but the platform's memory begins at 0x%llx",
		(unsigned long long)highest, (unsigned long long)port->identity_physical);
}

/* Stores the capabilities that begin or end with WDDM 2.0. */
static void store_caps_of_version(struct vmm_port *port, const DXGK_DRIVERCAPS *caps)
{
	struct vmm_port_caps *stored = &port->caps;

	if (!vmm_port_is_wddm2(port)) {
		stored->swizzling_range_count = caps->NumberOfSwizzlingRanges; /* SWZ-27 */
		return;
	}
	stored->wddm2 = stored->resubmission = stored->absolute_priorities = true;
	stored->map_aperture2 = caps->MemoryManagementCaps.MapAperture2Supported;
	stored->non_cpu_visible_primary = caps->MemoryManagementCaps.NonCpuVisiblePrimary;
	stored->surprise_removal = caps->SupportSurpriseRemoval;
	stored->no_64bit_atomics = caps->SchedulingCaps.No64BitAtomics;
}

static void store_caps(struct vmm_port *port, const DXGK_DRIVERCAPS *caps)
{
	struct vmm_port_caps *stored = &port->caps;
	DXGK_VIDSCHCAPS scheduling = caps->SchedulingCaps;

	stored->interface_version = port->model->number;
	store_caps_of_version(port, caps);
	stored->validate_property = port->ddi.DxgkDdiValidateUpdateAllocationProperty != NULL;
	stored->set_backing_store = port->ddi.DxgkDdiSetAllocationBackingStore != NULL;
	stored->multi_engine_aware = scheduling.MultiEngineAware;
	stored->preemption_aware = scheduling.PreemptionAware;
	stored->no_dma_patching = scheduling.NoDmaPatching;
	stored->cancel_command_aware = scheduling.CancelCommandAware;
	stored->per_engine_tdr = port->model->engine_reset && caps->SupportPerEngineTDR;
	if (port->model->number >= DXGKDDI_INTERFACE_VERSION_WIN8) {
		stored->preemption = caps->PreemptionCaps;
		stored->non_vga = caps->SupportNonVGA;
		stored->smooth_rotation = caps->SupportSmoothRotation;
		stored->surprise_removal_hibernation = caps->SupportSurpriseRemovalInHibernation;
	}
	stored->out_of_order_lock = caps->MemoryManagementCaps.OutOfOrderLock;
	stored->cross_adapter_resource = port->model->number >= DXGKDDI_INTERFACE_VERSION_WDDM1_3 &&
					 caps->MemoryManagementCaps.CrossAdapterResource;
	stored->flip = caps->FlipCaps;
	stored->slot_count = caps->MaxAllocationListSlotId;
	stored->aperture_commit_limit_bytes = caps->ApertureSegmentCommitLimit;
	stored->node_depth = scheduling.HwQueuePacketCap ? scheduling.HwQueuePacketCap : NODE_DEPTH;
	vmm_port_report_nodes(port);
}

NTSTATUS vmm_port_query_caps(struct vmm_port *port)
{
	struct caps_buffer buffer;
	NTSTATUS status;

	memset(&buffer, 0, sizeof(buffer));
	status = query_driver_caps(port, &buffer);
	if (status < 0)
		return status;
	vmm_port_choose_model(port, &buffer.caps);
	buffer.caps.SchedulingCaps.Value &= port->model->scheduling_mask;
	/* All checks run, so that one start reports every error. */
	status = check_scheduling(port, &buffer.caps.SchedulingCaps);
	if (vmm_port_is_wddm2(port)) {
		status = vmm_port_first_failure(status,
						vmm_port_check_addressing(port, &buffer.caps));
		status = vmm_port_first_failure(
			status, vmm_port_query_physical_adapter(port, &buffer.caps));
	}
	status = vmm_port_first_failure(status, check_nodes(port, &buffer.caps));
	status = vmm_port_first_failure(status, check_addresses(port, &buffer.caps));
	status = vmm_port_first_failure(status, vmm_port_table_check_caps(port, &buffer.caps));
	if (status == STATUS_SUCCESS)
		store_caps(port, &buffer.caps);
	return status;
}
