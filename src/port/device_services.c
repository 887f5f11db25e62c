/* SPDX-License-Identifier: MIT */
/*
 * Callbacks about the device itself: its description, its BARs in the address space, its
 * configuration space. All of them require PASSIVE_LEVEL.
 */
#include <string.h>
#include "port/port_internal.h"

/* Public layout of PCI_DEVICE_PRESENCE_PARAMETERS, and the bits of its Flags. */
struct presence_parameters {
	ULONG Size, Flags;
	USHORT VendorID, DeviceID;
	UCHAR RevisionID;
	USHORT SubVendorID, SubSystemID;
	UCHAR BaseClass, SubClass, ProgIf;
};
#define PRESENCE_SUBSYSTEM_IDS  0x01u
#define PRESENCE_REVISION       0x02u
#define PRESENCE_VENDOR_DEVICE  0x04u
#define PRESENCE_CLASS_SUBCLASS 0x08u
#define PRESENCE_PROGIF         0x10u

#define CONFIG_READ_ONLY_BYTES 0x40u /* the header; the bytes after it belong to the device */

/* Returns the port of a callback, or NULL after a finding if the IRQL is above PASSIVE_LEVEL. */
static struct vmm_port *begin(HANDLE handle, const char *callback)
{
	struct vmm_port *port = vmm_port_from_handle(handle, callback);

	return port && vmm_port_below(port, VMM_NT_PASSIVE, callback) ? port : NULL;
}

static NTSTATUS end(struct vmm_port *port, enum vidmm_ddi_callback callback, NTSTATUS status)
{
	vmm_port_callback_event(port, callback, status);
	return status;
}

NTSTATUS vmm_port_cb_get_device_information(HANDLE handle, PDXGK_DEVICE_INFO info)
{
	struct vmm_port *port = begin(handle, "DxgkCbGetDeviceInformation");

	if (!port || !info)
		return STATUS_INVALID_PARAMETER;
	*info = (DXGK_DEVICE_INFO){
		.MiniportDeviceContext = port->adapter,
		.PhysicalDeviceObject = &port->device,
		.DeviceRegistryPath = port->device_path,
		.TranslatedResourceList = port->resources,
		.SystemMemorySize.QuadPart = (LONGLONG)port->system_memory_bytes,
		.HighestPhysicalAddress.QuadPart = INT64_MAX,
		.DockingState = DockStateUnsupported,
	};
	return end(port, VIDMM_CB_GET_DEVICE_INFORMATION, STATUS_SUCCESS);
}

/* Returns the pointer for drivers to [address, +length) of a BAR; of ports, the number itself. */
static void *find_range(struct vmm_port *port, uint64_t address, uint64_t length, bool io_space)
{
	const struct vmm_port_bar *bar;

	if (io_space)
		return vmm_hardware_has_ports(port->hardware, address, length)
			       ? (void *)(uintptr_t)address
			       : NULL;
	bar = vmm_port_find_bar(port, address, length);
	if (bar)
		return bar->memory.base + (address - bar->physical);
	return port->hardware ? vmm_hardware_registers_at(port->hardware, address, length) : NULL;
}

NTSTATUS vmm_port_cb_map_memory(HANDLE handle, PHYSICAL_ADDRESS address, ULONG length,
				BOOLEAN io_space, BOOLEAN user, MEMORY_CACHING_TYPE cache,
				PVOID *pointer)
{
	struct vmm_port *port = begin(handle, "DxgkCbMapMemory");
	struct vmm_port_mapping *mapping;
	void *found;

	(void)cache; /* the host's memory is coherent: every caching type sees the same bytes */
	if (!port || !pointer)
		return STATUS_INVALID_PARAMETER;
	if (user || (io_space && !port->hardware))
		return end(port, VIDMM_CB_OTHER, STATUS_NOT_SUPPORTED);
	found = find_range(port, (uint64_t)address.QuadPart, length, io_space);
	if (!found || !length) {
		vmm_finding(
			port->observe, "NT-08", 0, 0,
			"DxgkCbMapMemory of %u bytes at 0x%llx: the range is not inside a BAR of "
			"this device",
			length, (unsigned long long)address.QuadPart);
		return end(port, VIDMM_CB_OTHER, STATUS_INVALID_PARAMETER);
	}
	mapping = vmm_calloc(1, sizeof(*mapping));
	if (!mapping)
		return end(port, VIDMM_CB_OTHER, STATUS_INSUFFICIENT_RESOURCES);
	mapping->address = found;
	mapping->size_bytes = length;
	*pointer = mapping->address;
	vmm_port_lock(port);
	vmm_list_push_back(&port->mappings, &mapping->link);
	vmm_port_unlock(port);
	return end(port, VIDMM_CB_OTHER, STATUS_SUCCESS);
}

NTSTATUS vmm_port_cb_unmap_memory(HANDLE handle, PVOID pointer)
{
	struct vmm_port *port = begin(handle, "DxgkCbUnmapMemory");
	struct vmm_port_mapping *found = NULL;
	struct vmm_list *pos;

	if (!port)
		return STATUS_INVALID_PARAMETER;
	vmm_port_lock(port);
	vmm_list_for_each (pos, &port->mappings) {
		struct vmm_port_mapping *mapping =
			vmm_container_of(pos, struct vmm_port_mapping, link);

		if (mapping->address == pointer) {
			found = mapping;
			vmm_list_remove(&mapping->link);
			break;
		}
	}
	vmm_port_unlock(port);
	if (!found) {
		vmm_finding(port->observe, "NT-08", 0, 0,
			    "DxgkCbUnmapMemory of an address that DxgkCbMapMemory did not return");
		return end(port, VIDMM_CB_OTHER, STATUS_INVALID_PARAMETER);
	}
	vmm_free(found);
	return end(port, VIDMM_CB_OTHER, STATUS_SUCCESS);
}

/* Returns how many bytes of [offset, +length) the configuration space has. */
static ULONG clip(const struct vmm_port *port, ULONG offset, ULONG length)
{
	if (offset >= port->config_bytes)
		return 0;
	return length < port->config_bytes - offset ? length : port->config_bytes - offset;
}

/* Returns how many bytes of [offset, +length) are kept by port: with a model only the header. */
static ULONG own_bytes(const struct vmm_port *port, ULONG offset, ULONG length)
{
	ULONG own = port->hardware ? CONFIG_READ_ONLY_BYTES : VMM_PORT_CONFIG_BYTES;

	if (offset >= own)
		return 0;
	return length < own - offset ? length : own - offset;
}

NTSTATUS vmm_port_cb_read_device_space(HANDLE handle, ULONG type, PVOID buffer, ULONG offset,
				       ULONG length, PULONG done)
{
	struct vmm_port *port = begin(handle, "DxgkCbReadDeviceSpace");
	ULONG own;

	if (!port || !buffer || !done)
		return STATUS_INVALID_PARAMETER;
	if (type != DXGK_WHICHSPACE_CONFIG)
		return end(port, VIDMM_CB_OTHER, STATUS_NOT_SUPPORTED);
	*done = clip(port, offset, length);
	if (port->hardware && vmm_hardware_removed(port->hardware)) {
		memset(buffer, 0xFF, *done); /* no device answers */
		return end(port, VIDMM_CB_OTHER, STATUS_SUCCESS);
	}
	own = own_bytes(port, offset, *done);
	vmm_port_lock(port);
	if (own)
		memcpy(buffer, port->config + offset, own);
	vmm_port_unlock(port);
	if (*done > own)
		vmm_hardware_config_read(port->hardware, offset + own, *done - own,
					 (uint8_t *)buffer + own);
	return end(port, VIDMM_CB_OTHER, STATUS_SUCCESS);
}

NTSTATUS vmm_port_cb_write_device_space(HANDLE handle, ULONG type, PVOID buffer, ULONG offset,
					ULONG length, PULONG done)
{
	struct vmm_port *port = begin(handle, "DxgkCbWriteDeviceSpace");
	ULONG own;

	if (!port || !buffer || !done)
		return STATUS_INVALID_PARAMETER;
	if (type != DXGK_WHICHSPACE_CONFIG)
		return end(port, VIDMM_CB_OTHER, STATUS_NOT_SUPPORTED);
	*done = clip(port, offset, length);
	own = own_bytes(port, offset, *done);
	vmm_port_lock(port);
	/* As in hardware: a write to a read-only register is taken and has no effect. */
	for (ULONG i = 0; i < own; i++) {
		if (offset + i >= CONFIG_READ_ONLY_BYTES)
			port->config[offset + i] = ((const uint8_t *)buffer)[i];
	}
	vmm_port_unlock(port);
	if (*done > own)
		vmm_hardware_config_write(port->hardware, offset + own, *done - own,
					  (const uint8_t *)buffer + own);
	return end(port, VIDMM_CB_OTHER, STATUS_SUCCESS);
}

static uint16_t config_u16(const struct vmm_port *port, size_t offset)
{
	return (uint16_t)(port->config[offset] | port->config[offset + 1] << 8);
}

/* The platform's only PCI device is the one of the calling miniport. */
NTSTATUS vmm_port_cb_is_device_present(HANDLE handle, PPCI_DEVICE_PRESENCE_PARAMETERS parameters,
				       PBOOLEAN present)
{
	struct vmm_port *port = begin(handle, "DxgkCbIsDevicePresent");
	const struct presence_parameters *p = (const void *)parameters;
	bool match = true;

	if (!port || !p || !present || p->Size < sizeof(*p))
		return STATUS_INVALID_PARAMETER;
	if (p->Flags & PRESENCE_VENDOR_DEVICE)
		match = match && p->VendorID == config_u16(port, 0x00) &&
			p->DeviceID == config_u16(port, 0x02);
	if (p->Flags & PRESENCE_SUBSYSTEM_IDS)
		match = match && p->SubVendorID == config_u16(port, 0x2C) &&
			p->SubSystemID == config_u16(port, 0x2E);
	if (p->Flags & PRESENCE_REVISION)
		match = match && p->RevisionID == port->config[0x08];
	if (p->Flags & PRESENCE_CLASS_SUBCLASS)
		match = match && p->BaseClass == port->config[0x0B] &&
			p->SubClass == port->config[0x0A];
	if (p->Flags & PRESENCE_PROGIF)
		match = match && p->ProgIf == port->config[0x09];
	*present = match;
	return end(port, VIDMM_CB_OTHER, STATUS_SUCCESS);
}
