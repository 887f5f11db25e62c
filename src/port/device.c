/* SPDX-License-Identifier: MIT */
/*
 * The device that a miniport finds: memory BARs in the platform's physical address space, an
 * interrupt line, PCI configuration space, a software key in the registry, and its driver and
 * device objects.
 */
#include <stdio.h>
#include <string.h>
#include "port/port_internal.h"

#define SYSTEM_MEMORY_DEFAULT         ((uint64_t)64 << 30)
/* Ids that no hardware has and no client looks for (ADP-10). */
#define CONFIG_VENDOR                 0x1D4Du
#define CONFIG_DEVICE                 0x0001u
#define CONFIG_CLASS                  0x030200u /* a 3D controller */
#define CONFIG_BAR                    0x10u
#define CONFIG_BAR_64BIT_PREFETCHABLE 0xCu
#define INTERRUPT_VECTOR              0x50u
/* Lengths of 4 GiB and more are given in units of 256 bytes (CM_RESOURCE_MEMORY_LARGE_40). */
#define RESOURCE_LARGE_40             0x0200u
#define DISPLAY_CLASS                 "{4d36e968-e325-11ce-bfc1-08002be10318}"
#define HARDWARE_KEY                  "\\Registry\\Machine\\System\\CurrentControlSet\\Enum\\PCI"

static void path_init(UNICODE_STRING *path, uint16_t *text, const char *ascii)
{
	size_t length = strlen(ascii);

	for (size_t i = 0; i <= length; i++)
		text[i] = (uint16_t)ascii[i];
	/* Kernel strings have 16-bit characters, whatever wchar_t is here. */
	path->Buffer = (PWSTR)(void *)text;
	path->Length = (USHORT)(length * sizeof(*text));
	path->MaximumLength = (USHORT)((length + 1) * sizeof(*text));
}

static void paths_init(struct vmm_port *port)
{
	/*
	 * The reserved address numbers the device. Unlike a pointer, it is the same in every run of
	 * a world.
	 */
	unsigned number = (unsigned)(port->identity_physical >> 21) & 0xFFFF;

	snprintf(port->device_key, sizeof(port->device_key),
		 "\\Registry\\Machine\\System\\CurrentControlSet\\Control\\Class\\" DISPLAY_CLASS
		 "\\%04x",
		 number);
	snprintf(port->service_key, sizeof(port->service_key),
		 "\\Registry\\Machine\\System\\CurrentControlSet\\Services\\vidmm%04x", number);
	path_init(&port->device_path, port->device_path_text, port->device_key);
	path_init(&port->service_path, port->service_path_text, port->service_key);
}

static void put_le(uint8_t *bytes, uint64_t value, size_t count)
{
	for (size_t i = 0; i < count; i++)
		bytes[i] = (uint8_t)(value >> (8 * i));
}

/*
 * Writes the PCI configuration space, by default with ids that no hardware has. Clients select
 * adapters by them. (ADP-10, DXC-26)
 */
static void config_init(struct vmm_port *port, const struct vmm_port_identity *ids)
{
	uint8_t *config = port->config;

	put_le(config + 0x00, ids->vendor ? ids->vendor : CONFIG_VENDOR, 2);
	put_le(config + 0x02, ids->vendor ? ids->device : CONFIG_DEVICE, 2);
	config[0x08] = ids->revision;
	put_le(config + 0x2C, ids->subsystem_vendor, 2);
	put_le(config + 0x2E, ids->subsystem, 2);
	put_le(config + 0x04, 0x0007, 2); /* command: memory, bus master */
	put_le(config + 0x09, CONFIG_CLASS, 3);
	for (uint32_t i = 0; i < port->bar_count && i < 3; i++)
		put_le(config + CONFIG_BAR + 8 * i,
		       port->bar[i].physical | CONFIG_BAR_64BIT_PREFETCHABLE, 8);
	config[0x3C] = INTERRUPT_VECTOR;
	config[0x3D] = 1; /* pin A */
}

static vmm_status bars_init(struct vmm_port *port, const struct vmm_port_options *options)
{
	for (uint32_t i = 0; i < options->bar_count; i++) {
		struct vmm_port_bar *bar = &port->bar[i];
		uint64_t size = options->bar_sizes[i];
		int given = options->bar_memory ? options->bar_memory[i] : -1;
		vmm_status status =
			given == -1 ? vmm_os_memory_create(port->os, "BAR", size, &bar->memory)
				    : vmm_os_memory_open(port->os, given, size, &bar->memory);

		if (!vmm_ok(status))
			return vmm_refuse_reason(
				port->observe, status, 0, 0, "BAR %u of %llu bytes: %s", i,
				(unsigned long long)size,
				given == -1 ? "no memory"
					    : "bar_memory is no descriptor of a file of that size "
					      "that can be read and written");
		bar->physical = vmm_nt_phys_reserve(port->nt, size);
		status = vmm_nt_phys_add(port->nt, bar->physical, &bar->memory, 0, size);
		if (!vmm_ok(status)) {
			vmm_os_memory_destroy(&bar->memory);
			return status;
		}
		port->bar_count = i + 1;
	}
	return VMM_OK;
}

static vmm_status resources_init(struct vmm_port *port)
{
	uint32_t count = port->bar_count + 1;
	size_t size_bytes =
		sizeof(CM_RESOURCE_LIST) + port->bar_count * sizeof(CM_PARTIAL_RESOURCE_DESCRIPTOR);
	CM_PARTIAL_RESOURCE_DESCRIPTOR *descriptor;

	port->resources = vmm_calloc(1, size_bytes);
	if (!port->resources)
		return VMM_NO_MEMORY;
	port->resources_bytes = (uint32_t)size_bytes;
	port->resources->Count = 1;
	port->resources->List[0].InterfaceType = PCIBus;
	port->resources->List[0].PartialResourceList.Version = 1;
	port->resources->List[0].PartialResourceList.Revision = 1;
	port->resources->List[0].PartialResourceList.Count = count;
	descriptor = port->resources->List[0].PartialResourceList.PartialDescriptors;
	for (uint32_t i = 0; i < port->bar_count; i++, descriptor++) {
		uint64_t length = port->bar[i].memory.size_bytes;
		bool large = length > UINT32_MAX;

		descriptor->Type = large ? CmResourceTypeMemoryLarge : CmResourceTypeMemory;
		descriptor->ShareDisposition = 1; /* this device only */
		descriptor->Flags = CM_RESOURCE_MEMORY_READ_WRITE | CM_RESOURCE_MEMORY_PREFETCHABLE;
		descriptor->Flags |= large ? RESOURCE_LARGE_40 : 0;
		descriptor->u.Memory.Start.QuadPart = (LONGLONG)port->bar[i].physical;
		descriptor->u.Memory.Length = (ULONG)(large ? length >> 8 : length);
	}
	descriptor->Type = CmResourceTypeInterrupt;
	descriptor->ShareDisposition = 3; /* shared */
	descriptor->Flags = CM_RESOURCE_INTERRUPT_LEVEL_SENSITIVE;
	descriptor->u.Interrupt.Level = VMM_NT_DEVICE;
	descriptor->u.Interrupt.Vector = INTERRUPT_VECTOR;
	descriptor->u.Interrupt.Affinity = 1;
	return VMM_OK;
}

/*
 * Makes the keys of the device and of its service, which a miniport opens even if they have no
 * value. Writes the values to both: DriverEntry gets the service's key, StartDevice the device's.
 */
static vmm_status registry_init(struct vmm_port *port, const struct vmm_port_options *options)
{
	char hardware_key[VMM_PORT_PATH_CHARS], parameters[VMM_PORT_PATH_CHARS + 16];
	vmm_status status;

	snprintf(hardware_key, sizeof(hardware_key), HARDWARE_KEY "\\%s\\Device Parameters",
		 strrchr(port->device_key, '\\') + 1);
	snprintf(parameters, sizeof(parameters), "%s\\Parameters", port->service_key);
	status = vmm_nt_device_add(port->nt, &port->device, hardware_key, port->device_key);
	if (vmm_ok(status))
		status = vmm_nt_registry_add_key(port->nt, parameters);
	for (uint32_t i = 0; i < options->registry_count && vmm_ok(status); i++) {
		const struct vmm_port_registry_value *value = &options->registry[i];

		status = vmm_nt_registry_set_number(port->nt, port->device_key, value->name,
						    value->value);
		if (vmm_ok(status))
			status = vmm_nt_registry_set_number(port->nt, port->service_key,
							    value->name, value->value);
	}
	return status;
}

/* DevicePropertyHardwareID: PCI\VEN_vvvv&DEV_dddd..., two strings and an empty one. */
static vmm_status set_hardware_id(struct vmm_port *port)
{
	const uint8_t *config = port->config;
	char text[128];
	int length;

	length = snprintf(text, sizeof(text),
			  "PCI\\VEN_%02X%02X&DEV_%02X%02X&SUBSYS_%02X%02X%02X%02X&REV_%02X%c"
			  "PCI\\VEN_%02X%02X&DEV_%02X%02X%c",
			  config[1], config[0], config[3], config[2], config[0x2F], config[0x2E],
			  config[0x2D], config[0x2C], config[8], 0, config[1], config[0], config[3],
			  config[2], 0);
	return vmm_nt_device_set_text(port->nt, &port->device, DevicePropertyHardwareID, text,
				      (size_t)length);
}

/* The properties that IoGetDeviceProperty returns. */
static vmm_status properties_init(struct vmm_port *port)
{
	const uint32_t bus_type = PCIBus, zero = 0;
	const struct {
		uint32_t property, size_bytes;
		const void *data;
	} binary[] = {
		{DevicePropertyLegacyBusType, sizeof(bus_type), &bus_type},
		{DevicePropertyBusNumber, sizeof(zero), &zero},
		{DevicePropertyAddress, sizeof(zero), &zero},
		{DevicePropertyBootConfiguration, port->resources_bytes, port->resources},
		{DevicePropertyBootConfigurationTranslated, port->resources_bytes, port->resources},
		{DevicePropertyAllocatedResources, port->resources_bytes, port->resources},
	};
	const struct {
		uint32_t property;
		const char *text;
	} texts[] = {
		{DevicePropertyClassName, "Display"},
		{DevicePropertyClassGuid, DISPLAY_CLASS},
		{DevicePropertyDriverKeyName, strstr(port->device_key, DISPLAY_CLASS)},
		{DevicePropertyEnumeratorName, "PCI"},
		{DevicePropertyLocationInformation, "PCI bus 0, device 0, function 0"},
	};
	vmm_status status = set_hardware_id(port);

	for (size_t i = 0; i < VMM_ARRAY_LENGTH(binary) && vmm_ok(status); i++)
		status = vmm_nt_device_set(port->nt, &port->device, binary[i].property,
					   binary[i].data, binary[i].size_bytes);
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(texts) && vmm_ok(status); i++)
		status = vmm_nt_device_set_text(port->nt, &port->device, texts[i].property,
						texts[i].text, strlen(texts[i].text));
	return status;
}

static vmm_status check_memory_limit(struct vmm_port *port, const struct vmm_port_options *options)
{
	if (!options->memory_limit_bytes || options->memory_limit_bytes >= VMM_LARGE_PAGE_SIZE)
		return VMM_OK;
	return vmm_refuse_reason(port->observe, VMM_INVALID_PARAMETER, 0, 0,
				 "Q-405: memory_limit_bytes is %llu: expected 0, or at least %llu",
				 (unsigned long long)options->memory_limit_bytes,
				 (unsigned long long)VMM_LARGE_PAGE_SIZE);
}

static vmm_status check_options(struct vmm_port *port, const struct vmm_port_options *options)
{
	bool valid = options->bar_count <= VMM_PORT_BARS_MAX;

	for (uint32_t i = 0; i < options->bar_count && valid; i++)
		valid = options->bar_sizes[i] && options->bar_sizes[i] % VMM_PAGE_SIZE == 0 &&
			options->bar_sizes[i] < (uint64_t)1 << 40;
	if (valid && options->bar_memory && options->physical_adapters > 1)
		return vmm_refuse_reason(port->observe, VMM_NOT_SUPPORTED, 0, 0,
					 "bar_memory is not built for %u linked adapters",
					 options->physical_adapters);
	if (valid)
		return VMM_OK;
	return vmm_refuse_reason(
		port->observe, VMM_INVALID_PARAMETER, 0, 0,
		"a device has up to %u BARs, each a multiple of 4096 bytes and below 2^40",
		VMM_PORT_BARS_MAX);
}

vmm_status vmm_port_device_init(struct vmm_port *port, const struct vmm_port_options *options)
{
	vmm_status status = check_memory_limit(port, options);

	if (vmm_ok(status) && !options->device_model)
		status = check_options(port, options);
	if (!vmm_ok(status))
		return status;
	port->config_bytes = VMM_PORT_CONFIG_BYTES;
	port->system_memory_bytes =
		options->system_memory_bytes ? options->system_memory_bytes : SYSTEM_MEMORY_DEFAULT;
	port->memory_limit_bytes = options->memory_limit_bytes;
	port->identity_physical = vmm_nt_phys_reserve(port->nt, VMM_PAGE_SIZE);
	paths_init(port);
	port->driver = (DRIVER_OBJECT){
		.Type = 4, .Size = sizeof(DRIVER_OBJECT), .DeviceObject = &port->device};
	port->device = (DEVICE_OBJECT){.Type = 3,
				       .Size = sizeof(DEVICE_OBJECT),
				       .ReferenceCount = 1,
				       .DriverObject = &port->driver,
				       .StackSize = 1};
	status = options->device_model ? vmm_port_model_init(port, options)
				       : bars_init(port, options);
	if (vmm_ok(status))
		status = port->hardware ? vmm_port_model_resources(port) : resources_init(port);
	if (vmm_ok(status))
		status = registry_init(port, options);
	if (port->hardware)
		vmm_port_model_config(port, &options->ids);
	else
		config_init(port, &options->ids);
	if (vmm_ok(status))
		status = properties_init(port);
	if (!vmm_ok(status))
		vmm_port_device_finish(port);
	return status;
}

void vmm_port_device_finish(struct vmm_port *port)
{
	vmm_nt_device_remove(port->nt, &port->device);
	vmm_nt_registry_remove_key(port->nt, port->service_key);
	vmm_free(port->resources);
	port->resources = NULL;
	if (port->hardware)
		vmm_port_model_finish(port);
	while (port->bar_count) {
		struct vmm_port_bar *bar = &port->bar[--port->bar_count];

		vmm_nt_phys_remove(port->nt, bar->physical);
		vmm_os_memory_destroy(&bar->memory);
	}
}

struct vmm_port_bar *vmm_port_find_bar(struct vmm_port *port, uint64_t physical,
				       uint64_t size_bytes)
{
	for (uint32_t i = 0; i < port->bar_count; i++) {
		struct vmm_port_bar *bar = &port->bar[i];
		uint64_t offset = physical - bar->physical;

		if (physical >= bar->physical && offset <= bar->memory.size_bytes &&
		    size_bytes <= bar->memory.size_bytes - offset)
			return bar;
	}
	return NULL;
}
