/* SPDX-License-Identifier: MIT */
/*
 * How a miniport announces hardware scheduling (SCH-10). The host enables the feature and the
 * miniport asks whether it is enabled. The miniport then reports for each node whether it takes
 * contexts (ContextSchedulingSupported). A miniport that reports such a node must have all DDIs of
 * hardware scheduling.
 */
#include <string.h>
#include "port/port_internal.h"

/* Versions 2.4 and 2.5 have no callback to ask whether the feature is enabled. */
static bool is_enabled(const struct vmm_port *port)
{
	if (!(port->features & 1u << DXGK_FEATURE_HWSCH) ||
	    port->model->number < DXGKDDI_INTERFACE_VERSION_WDDM2_4)
		return false;
	return port->model->number < DXGKDDI_INTERFACE_VERSION_WDDM2_6 ||
	       vmm_port_feature_is_enabled(port, DXGK_FEATURE_HWSCH);
}

static NTSTATUS query_node(struct vmm_port *port, uint32_t node, DXGK_NODEMETADATA *metadata)
{
	struct vmm_port_call call;
	NTSTATUS status;

	memset(metadata, 0, sizeof(*metadata));
	call = vmm_port_enter(port, VIDMM_DDI_GET_NODE_METADATA);
	status = port->ddi.DxgkDdiGetNodeMetadata(port->adapter, node, metadata);
	vmm_port_leave(port, &call, VIDMM_DDI_GET_NODE_METADATA);
	vmm_port_ddi_event(port, VIDMM_DDI_GET_NODE_METADATA, status, node, metadata->Flags.Value,
			   0);
	if (status == STATUS_SUCCESS)
		return status;
	vmm_port_wrong_status(port, "SCH-10", VIDMM_DDI_GET_NODE_METADATA, status);
	return STATUS_INVALID_PARAMETER;
}

/*
 * Accepts a node for hardware queues if progress fences can be stored: by the miniport or its GPU
 * (RingBufferFenceRelease), or by command buffers at a GPU virtual address. A refusal is a finding,
 * because clients of the miniport will look for such queues in vain.
 */
static void store_node(struct vmm_port *port, uint32_t node, DXGK_NODEMETADATA_FLAGS flags)
{
	if (!flags.ContextSchedulingSupported)
		return;
	if (!flags.RingBufferFenceRelease && !port->caps.gpummu.supported) {
		vmm_finding(port->observe, "SCH-10", 0, 0,
			    "node %u: ContextSchedulingSupported without RingBufferFenceRelease "
			    "(flags 0x%x): command buffers have to store the progress fence at a "
			    "GPU virtual address, and the adapter has none (GpuMmuSupported); the "
			    "node gets no hardware queues",
			    node, flags.Value);
		return;
	}
	port->caps.hw_nodes |= 1u << node;
	port->caps.hw_in_flight[node] = flags.MaxInFlightHwQueueBuffers;
}

NTSTATUS vmm_port_query_hw_scheduling(struct vmm_port *port)
{
	DXGK_NODEMETADATA metadata;
	NTSTATUS status = STATUS_SUCCESS;
	bool any = false;

	if (!is_enabled(port) || !port->ddi.DxgkDdiGetNodeMetadata)
		return STATUS_SUCCESS;
	for (uint32_t node = 0; node < port->caps.node_count && status == STATUS_SUCCESS; node++) {
		status = query_node(port, node, &metadata);
		if (status != STATUS_SUCCESS)
			return status;
		any |= metadata.Flags.ContextSchedulingSupported;
		store_node(port, node, metadata.Flags);
	}
	if (any)
		status = vmm_port_table_check_hw(port);
	return status;
}
