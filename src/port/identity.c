/* SPDX-License-Identifier: MIT */
/* What others may ask about the device: its ids and where in the machine it is. */
#include "port/port_internal.h"

static uint16_t config_word(const struct vmm_port *port, uint32_t offset)
{
	return (uint16_t)(port->config[offset] | port->config[offset + 1] << 8);
}

void vmm_port_identity(const struct vmm_port *port, struct vmm_port_identity *identity)
{
	/* As the number in its registry keys: the same in every run of a world. */
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
