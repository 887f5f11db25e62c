/* SPDX-License-Identifier: MIT */
/*
 * What the core may query about the device: its ids, its location in the machine, and the private
 * data that the miniport returns to its user-mode driver.
 */
#include "port/port_internal.h"

static uint16_t config_word(const struct vmm_port *port, uint32_t offset)
{
	return (uint16_t)(port->config[offset] | port->config[offset + 1] << 8);
}

void vmm_port_identity(const struct vmm_port *port, struct vmm_port_identity *identity)
{
	/* The number that is in its registry keys: the same in every run of a world. */
	uint32_t number = (uint32_t)(port->identity_physical >> 21) & 0xFFFF;

	*identity = (struct vmm_port_identity){
		.vendor = config_word(port, 0x00),
		.device = config_word(port, 0x02),
		.subsystem_vendor = config_word(port, 0x2C),
		.subsystem = config_word(port, 0x2E),
		.revision = port->config[0x08],
		.bus_type = PCIBus,
		.bus = number >> 5, /* a bus has 32 slots */
		.slot = number & 0x1F,
	};
}

NTSTATUS vmm_port_driver_private(struct vmm_port *port, void *data, uint32_t size_bytes)
{
	DXGKARG_QUERYADAPTERINFO args = {.Type = DXGKQAITYPE_UMDRIVERPRIVATE,
					 .pOutputData = data,
					 .OutputDataSize = size_bytes};
	NTSTATUS status;

	if (vmm_port_dead(port))
		return STATUS_DEVICE_REMOVED;
	vmm_port_check_rank(&port->object_rank);
	status = vmm_port_query_adapter_info(port, &args);
	if (status < 0)
		vmm_reason(
			port->observe, status, 0, 0,
			"DxgkDdiQueryAdapterInfo(UMDRIVERPRIVATE) of %u bytes failed with 0x%08x",
			size_bytes, (unsigned)status);
	return status;
}
