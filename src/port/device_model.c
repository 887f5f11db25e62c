/* SPDX-License-Identifier: MIT */
/*
 * A device that a device model describes: its BARs, resources, configuration space and
 * interrupts, where the miniport expects them. device.c has the device without a model.
 */
#include <string.h>
#include "port/port_internal.h"

#define CONFIG_STATUS            0x06u
#define CONFIG_STATUS_CAPS       0x10u
#define CONFIG_BAR               0x10u
#define CONFIG_CAPABILITIES      0x34u
#define BAR_PORTS                0x1u
#define BAR_64BIT                0x4u
#define BAR_PREFETCHABLE         0x8u
#define INTERRUPT_VECTOR         0x50u
#define RESOURCE_LARGE_40        0x0200u
#define RESOURCE_PORT_IO         0x0001u
#define RESOURCE_INTERRUPT_LATCH 0x0001u
#define RESOURCE_INTERRUPT_MSI   0x0002u

/* ---- interrupts ---- */

/*
 * Calls DxgkDdiInterruptRoutine as the interrupt of the device would: at device IRQL, with the
 * interrupt lock held.
 */
static enum vmm_hardware_claim interrupt(void *context, uint32_t message)
{
	struct vmm_port *port = context;
	bool claimed;

	if (vmm_port_dead(port) || !atomic_load(&port->connected))
		return VMM_HARDWARE_IGNORED;
	claimed = vmm_port_interrupt_routine(port, message);
	return claimed ? VMM_HARDWARE_CLAIMED : VMM_HARDWARE_NOT_CLAIMED;
}

uint32_t vmm_port_messages(const struct vmm_port *port)
{
	uint32_t messages =
		port->hardware ? vmm_hardware_model(port->hardware)->interrupt_messages : 0;

	return messages ? messages : 1;
}

/* ---- creation ---- */

static vmm_status check(struct vmm_port *port, const struct vmm_port_options *options)
{
	if (options->bar_count || options->bar_memory)
		return vmm_refuse_reason(port->observe, VMM_INVALID_PARAMETER, 0, 0,
					 "Q-420: the options have a device_model and bar_sizes or "
					 "bar_memory: the model describes the BARs");
	if (options->physical_adapters > 1)
		return vmm_refuse_reason(port->observe, VMM_NOT_SUPPORTED, 0, 0,
					 "Q-420: device models of %u linked adapters are not built",
					 options->physical_adapters);
	return VMM_OK;
}

vmm_status vmm_port_model_init(struct vmm_port *port, const struct vmm_port_options *options)
{
	struct vmm_hardware_options device = {.os = port->os,
					      .nt = port->nt,
					      .observe = port->observe,
					      .model = options->device_model,
					      .interrupt = interrupt,
					      .context = port};
	vmm_status status = check(port, options);

	if (vmm_ok(status))
		status = vmm_hardware_create(&device, &port->hardware);
	if (!vmm_ok(status))
		return status;
	/* Segments may be in the memory BARs. */
	for (uint32_t i = 0; i < VIDMM_DEVICE_BARS; i++) {
		if (vmm_hardware_model(port->hardware)->bar[i].kind != VIDMM_BAR_MEMORY)
			continue;
		port->bar[port->bar_count++] = (struct vmm_port_bar){
			.memory = *vmm_hardware_bar_memory(port->hardware, i),
			.physical = vmm_hardware_bar_address(port->hardware, i),
		};
	}
	return VMM_OK;
}

void vmm_port_model_finish(struct vmm_port *port)
{
	port->bar_count = 0; /* the memory is the device's */
	vmm_hardware_destroy(port->hardware);
	port->hardware = NULL;
}

void vmm_port_model_connect(struct vmm_port *port)
{
	if (port->hardware)
		vmm_hardware_connect(port->hardware);
}

void vmm_port_model_stop(struct vmm_port *port)
{
	if (!port->hardware)
		return;
	vmm_hardware_disconnect(port->hardware);
	vmm_hardware_reset(port->hardware);
}

/* ---- resources ---- */

static void describe_bar(CM_PARTIAL_RESOURCE_DESCRIPTOR *to, const struct vidmm_device_bar *bar,
			 uint64_t address)
{
	bool large = bar->size_bytes > UINT32_MAX;

	to->ShareDisposition = 1; /* this device only */
	if (bar->kind == VIDMM_BAR_PORTS) {
		to->Type = CmResourceTypePort;
		to->Flags = RESOURCE_PORT_IO;
		to->u.Port.Start.QuadPart = (LONGLONG)address;
		to->u.Port.Length = (ULONG)bar->size_bytes;
		return;
	}
	to->Type = large ? CmResourceTypeMemoryLarge : CmResourceTypeMemory;
	to->Flags = CM_RESOURCE_MEMORY_READ_WRITE | (large ? RESOURCE_LARGE_40 : 0);
	if (bar->flags & VIDMM_BAR_PREFETCHABLE)
		to->Flags |= CM_RESOURCE_MEMORY_PREFETCHABLE;
	to->u.Memory.Start.QuadPart = (LONGLONG)address;
	to->u.Memory.Length = (ULONG)(large ? bar->size_bytes >> 8 : bar->size_bytes);
}

static void describe_interrupt(CM_PARTIAL_RESOURCE_DESCRIPTOR *to, bool message, uint32_t number)
{
	to->Type = CmResourceTypeInterrupt;
	to->ShareDisposition = message ? 1 : 3; /* a line is shared */
	to->Flags = message ? RESOURCE_INTERRUPT_LATCH | RESOURCE_INTERRUPT_MSI
			    : CM_RESOURCE_INTERRUPT_LEVEL_SENSITIVE;
	/* The members of a message have these offsets, too. */
	to->u.Interrupt.Level = VMM_NT_DEVICE;
	to->u.Interrupt.Vector = INTERRUPT_VECTOR + number;
	to->u.Interrupt.Affinity = 1;
}

vmm_status vmm_port_model_resources(struct vmm_port *port)
{
	const struct vidmm_device_model *model = vmm_hardware_model(port->hardware);
	CM_PARTIAL_RESOURCE_DESCRIPTOR *to;
	CM_PARTIAL_RESOURCE_LIST *list;

	port->resources = vmm_calloc(1, sizeof(CM_RESOURCE_LIST) +
						(VIDMM_DEVICE_BARS + VIDMM_DEVICE_MESSAGES_MAX) *
							sizeof(CM_PARTIAL_RESOURCE_DESCRIPTOR));
	if (!port->resources)
		return VMM_NO_MEMORY;
	port->resources->Count = 1;
	port->resources->List[0].InterfaceType = PCIBus;
	list = &port->resources->List[0].PartialResourceList;
	list->Version = list->Revision = 1;
	to = list->PartialDescriptors;
	for (uint32_t i = 0; i < VIDMM_DEVICE_BARS; i++)
		if (model->bar[i].kind != VIDMM_BAR_NONE)
			describe_bar(to++, &model->bar[i],
				     vmm_hardware_bar_address(port->hardware, i));
	for (uint32_t i = 0; i < vmm_port_messages(port); i++)
		describe_interrupt(to++, model->interrupt_messages, i);
	list->Count = (ULONG)(to - list->PartialDescriptors);
	port->resources_bytes =
		(uint32_t)(sizeof(CM_RESOURCE_LIST) + (list->Count - 1) * sizeof(*to));
	return VMM_OK;
}

/* ---- configuration space: its header ---- */

static void put_le(uint8_t *bytes, uint64_t value, size_t count)
{
	for (size_t i = 0; i < count; i++)
		bytes[i] = (uint8_t)(value >> (8 * i));
}

static void config_bar(uint8_t *to, const struct vidmm_device_bar *bar, uint64_t address)
{
	bool wide = bar->flags & VIDMM_BAR_64BIT;

	if (bar->kind == VIDMM_BAR_NONE)
		return;
	if (bar->kind == VIDMM_BAR_PORTS)
		address |= BAR_PORTS;
	else
		address |= (wide ? BAR_64BIT : 0) |
			   (bar->flags & VIDMM_BAR_PREFETCHABLE ? BAR_PREFETCHABLE : 0);
	put_le(to, address, wide ? 8 : 4);
}

void vmm_port_model_config(struct vmm_port *port, const struct vmm_port_identity *ids)
{
	const struct vidmm_device_model *m = vmm_hardware_model(port->hardware);
	uint8_t *config = port->config;

	put_le(config + 0x00, ids->vendor ? ids->vendor : m->vendor_id, 2);
	put_le(config + 0x02, ids->vendor ? ids->device : m->device_id, 2);
	put_le(config + 0x04, 0x0007, 2); /* command: ports, memory, bus master */
	if (m->config_image[CONFIG_CAPABILITIES])
		put_le(config + CONFIG_STATUS, CONFIG_STATUS_CAPS, 2);
	config[0x08] = ids->vendor ? ids->revision : m->revision_id;
	put_le(config + 0x09, m->class_code, 3);
	for (uint32_t i = 0; i < VIDMM_DEVICE_BARS; i++)
		config_bar(config + CONFIG_BAR + 4 * i, &m->bar[i],
			   vmm_hardware_bar_address(port->hardware, i));
	put_le(config + 0x2C, ids->vendor ? ids->subsystem_vendor : m->subsystem_vendor_id, 2);
	put_le(config + 0x2E, ids->vendor ? ids->subsystem : m->subsystem_id, 2);
	config[CONFIG_CAPABILITIES] = m->config_image[CONFIG_CAPABILITIES];
	config[0x3C] = INTERRUPT_VECTOR;
	config[0x3D] = 1; /* pin A */
	port->config_bytes = m->config_bytes;
}
