/* SPDX-License-Identifier: MIT */
/*
 * What the kernel knows of the port's physical device objects: their registry keys and their
 * properties. The port adds each device. Guarded by the registry lock; properties are copied out.
 */
#include "nt/nt_registry.h"

#include <string.h>

struct nt_property {
	struct vmm_list link;
	uint32_t property, size_bytes;
	_Alignas(8) unsigned char data[];
};

struct nt_device {
	struct nt_object base; /* what drivers reference; its body is `object` */
	struct vmm_list link;
	const DEVICE_OBJECT *object;
	struct vmm_list properties;
	char hardware_key[NT_KEY_BYTES], software_key[NT_KEY_BYTES];
};

static struct nt_device *find_locked(struct vmm_nt *nt, const DEVICE_OBJECT *object)
	VMM_REQUIRES(nt_registry_class)
{
	struct vmm_list *pos;

	vmm_assert_held(&nt->registry);
	vmm_list_for_each (pos, &nt->devices) {
		struct nt_device *device = vmm_container_of(pos, struct nt_device, link);

		if (device->object == object)
			return device;
	}
	return NULL;
}

/* ---- for the modules above ---- */

vmm_status vmm_nt_device_add(struct vmm_nt *nt, const struct _DEVICE_OBJECT *object,
			     const char *hardware_key, const char *software_key)
{
	struct nt_device *device;
	vmm_status status;

	if (strlen(hardware_key) >= NT_KEY_BYTES || strlen(software_key) >= NT_KEY_BYTES)
		return VMM_INVALID_PARAMETER;
	device = vmm_calloc(1, sizeof(*device));
	if (!device)
		return VMM_NO_MEMORY;
	device->object = object;
	nt_object_prepare(&device->base, OBJECT_DEVICE, (void *)(uintptr_t)object);
	device->base.references = 1;
	vmm_list_init(&device->properties);
	strcpy(device->hardware_key, hardware_key);
	strcpy(device->software_key, software_key);
	status = vmm_nt_registry_add_key(nt, hardware_key);
	if (vmm_ok(status))
		status = vmm_nt_registry_add_key(nt, software_key);
	if (!vmm_ok(status)) {
		vmm_free(device);
		return status;
	}
	nt_registry_lock(nt);
	vmm_list_push_back(&nt->devices, &device->link);
	nt_registry_unlock(nt);
	nt_object_add(nt, &device->base);
	return VMM_OK;
}

void vmm_nt_device_remove(struct vmm_nt *nt, const struct _DEVICE_OBJECT *object)
{
	struct nt_device *device;

	nt_registry_lock(nt);
	device = find_locked(nt, object);
	if (device)
		vmm_list_remove(&device->link);
	nt_registry_unlock(nt);
	if (!device)
		return;
	vmm_nt_registry_remove_key(nt, device->hardware_key);
	vmm_nt_registry_remove_key(nt, device->software_key);
	while (!vmm_list_empty(&device->properties)) {
		struct nt_property *property =
			vmm_container_of(device->properties.next, struct nt_property, link);

		vmm_list_remove(&property->link);
		vmm_free(property);
	}
	nt_object_put(nt, &device->base);
}

vmm_status vmm_nt_device_set(struct vmm_nt *nt, const struct _DEVICE_OBJECT *object,
			     uint32_t property, const void *data, uint32_t size_bytes)
{
	struct nt_property *added = vmm_calloc(1, sizeof(*added) + size_bytes);
	struct nt_device *device;

	if (!added)
		return VMM_NO_MEMORY;
	added->property = property;
	added->size_bytes = size_bytes;
	memcpy(added->data, data, size_bytes);
	nt_registry_lock(nt);
	device = find_locked(nt, object);
	if (device)
		vmm_list_push_back(&device->properties, &added->link);
	nt_registry_unlock(nt);
	if (!device)
		vmm_free(added);
	return device ? VMM_OK : VMM_INVALID_PARAMETER;
}

vmm_status vmm_nt_device_set_text(struct vmm_nt *nt, const struct _DEVICE_OBJECT *object,
				  uint32_t property, const char *text, size_t length)
{
	WCHAR *wide = vmm_calloc(length + 1, sizeof(*wide));
	vmm_status status;

	if (!wide)
		return VMM_NO_MEMORY;
	for (size_t i = 0; i < length; i++)
		wide[i] = (WCHAR)(unsigned char)text[i];
	status = vmm_nt_device_set(nt, object, property, wide,
				   (uint32_t)((length + 1) * sizeof(*wide)));
	vmm_free(wide);
	return status;
}

/* ---- services ---- */

NTSTATUS IoOpenDeviceRegistryKey(PDEVICE_OBJECT DeviceObject, ULONG DevInstKeyType,
				 ACCESS_MASK DesiredAccess, PHANDLE DeviceRegKey)
{
	ULONG type = DevInstKeyType & ~(ULONG)PLUGPLAY_REGKEY_CURRENT_HWPROFILE;
	struct vmm_nt *nt = vmm_nt_current();
	const struct nt_device *device;
	char path[NT_KEY_BYTES] = "";

	nt_limit(nt, "IoOpenDeviceRegistryKey", PASSIVE_LEVEL);
	if ((type != PLUGPLAY_REGKEY_DEVICE && type != PLUGPLAY_REGKEY_DRIVER) || !DeviceRegKey)
		return STATUS_INVALID_PARAMETER;
	nt_registry_lock(nt);
	device = find_locked(nt, DeviceObject);
	if (device)
		strcpy(path, type == PLUGPLAY_REGKEY_DEVICE ? device->hardware_key
							    : device->software_key);
	nt_registry_unlock(nt);
	if (!device)
		return STATUS_INVALID_PARAMETER;
	if (!vmm_ok(vmm_nt_registry_add_key(nt, path)))
		return STATUS_INSUFFICIENT_RESOURCES;
	return nt_key_open(nt, path, DesiredAccess, DeviceRegKey);
}

static NTSTATUS copy_property_locked(struct vmm_nt *nt, const struct nt_device *device,
				     uint32_t wanted, uint32_t length, void *buffer,
				     uint32_t *result_length) VMM_REQUIRES(nt_registry_class)
{
	struct vmm_list *pos;

	vmm_assert_held(&nt->registry);
	vmm_list_for_each (pos, &device->properties) {
		const struct nt_property *property =
			vmm_container_of(pos, struct nt_property, link);

		if (property->property != wanted)
			continue;
		*result_length = property->size_bytes;
		if (length < property->size_bytes || !buffer)
			return STATUS_BUFFER_TOO_SMALL;
		memcpy(buffer, property->data, property->size_bytes);
		return STATUS_SUCCESS;
	}
	*result_length = 0;
	return STATUS_OBJECT_NAME_NOT_FOUND;
}

NTSTATUS IoGetDeviceProperty(PDEVICE_OBJECT DeviceObject, DEVICE_REGISTRY_PROPERTY DeviceProperty,
			     ULONG BufferLength, PVOID PropertyBuffer, PULONG ResultLength)
{
	NTSTATUS status = STATUS_INVALID_DEVICE_REQUEST;
	struct vmm_nt *nt = vmm_nt_current();
	const struct nt_device *device;

	nt_limit(nt, "IoGetDeviceProperty", PASSIVE_LEVEL);
	if ((ULONG)DeviceProperty > DevicePropertyContainerID)
		return STATUS_INVALID_PARAMETER_2;
	if (!ResultLength)
		return STATUS_INVALID_PARAMETER;
	nt_registry_lock(nt);
	device = find_locked(nt, DeviceObject);
	if (device)
		status = copy_property_locked(nt, device, DeviceProperty, BufferLength,
					      PropertyBuffer, ResultLength);
	nt_registry_unlock(nt);
	return status;
}
