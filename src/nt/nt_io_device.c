/* SPDX-License-Identifier: MIT */
/*
 * Device objects that a driver makes, and their stacks. The physical device object is that of the
 * port (nt_device.c); open files have one volume. Attachments are guarded by the objects lock.
 */
#include <stddef.h>
#include "nt/nt_irp.h"

struct own_device {
	struct nt_object object; /* its body is `body` */
	DEVICE_OBJECT body;
	DEVICE_OBJECT *below VMM_GUARDED_BY(nt_objects_class); /* what it is attached to */
	bool deleted VMM_GUARDED_BY(nt_objects_class);
	_Alignas(16) char extension[];
};

static struct own_device *own_of(struct nt_object *object)
{
	/* The device object of the port is elsewhere. */
	if (object && object->body == (char *)object + offsetof(struct own_device, body))
		return (struct own_device *)object;
	return NULL;
}

enum nt_device_kind nt_device_get(struct vmm_nt *nt, const DEVICE_OBJECT *device,
				  struct nt_object **object)
{
	*object = NULL;
	if (device == &nt->volume)
		return NT_DEVICE_VOLUME;
	*object = nt_object_get(nt, device, OBJECT_DEVICE);
	if (!*object)
		return NT_DEVICE_NONE;
	return own_of(*object) ? NT_DEVICE_OWN : NT_DEVICE_PHYSICAL;
}

void nt_device_put(struct vmm_nt *nt, struct nt_object *object)
{
	if (object)
		nt_object_put(nt, object);
}

NTSTATUS IoCreateDevice(PDRIVER_OBJECT DriverObject, ULONG DeviceExtensionSize,
			PUNICODE_STRING DeviceName, DEVICE_TYPE DeviceType,
			ULONG DeviceCharacteristics, BOOLEAN Exclusive,
			PDEVICE_OBJECT *DeviceObject)
{
	struct vmm_nt *nt = vmm_nt_current();
	struct own_device *device;

	nt_limit(nt, "IoCreateDevice", APC_LEVEL);
	if (!DriverObject || !DeviceObject || DeviceExtensionSize > UINT16_MAX)
		return STATUS_INVALID_PARAMETER;
	if (DeviceName && DeviceName->Length)
		return nt_not_supported(nt, "IoCreateDevice", "names of devices");
	device = vmm_calloc(1, sizeof(*device) + DeviceExtensionSize);
	if (!device)
		return STATUS_INSUFFICIENT_RESOURCES;
	nt_object_prepare(&device->object, OBJECT_DEVICE, &device->body);
	device->object.references = 1;
	device->body =
		(DEVICE_OBJECT){.Type = 3,
				.Size = (USHORT)(sizeof(DEVICE_OBJECT) + DeviceExtensionSize),
				.DriverObject = DriverObject,
				.Flags = DO_DEVICE_INITIALIZING | (Exclusive ? DO_EXCLUSIVE : 0),
				.Characteristics = DeviceCharacteristics,
				.DeviceExtension = DeviceExtensionSize ? device->extension : NULL,
				.DeviceType = DeviceType,
				.StackSize = 1};
	nt_objects_lock(nt);
	device->body.NextDevice = DriverObject->DeviceObject;
	DriverObject->DeviceObject = &device->body;
	nt_objects_unlock(nt);
	nt_object_add(nt, &device->object);
	*DeviceObject = &device->body;
	return STATUS_SUCCESS;
}

static void unchain_locked(struct vmm_nt *nt, DEVICE_OBJECT *device) VMM_REQUIRES(nt_objects_class)
{
	DEVICE_OBJECT **link = &device->DriverObject->DeviceObject;

	vmm_assert_held(&nt->objects);
	while (*link && *link != device)
		link = &(*link)->NextDevice;
	if (*link)
		*link = device->NextDevice;
}

VOID IoDeleteDevice(PDEVICE_OBJECT DeviceObject)
{
	struct vmm_nt *nt = vmm_nt_current();
	struct nt_object *object = nt_object_get(nt, DeviceObject, OBJECT_DEVICE);
	struct own_device *device = own_of(object);
	const char *problem = NULL;

	nt_limit(nt, "IoDeleteDevice", APC_LEVEL);
	nt_objects_lock(nt);
	if (!device || device->deleted)
		problem = "the device was not made by IoCreateDevice, or is deleted already";
	else if (device->body.AttachedDevice)
		problem = "another device is attached to the device, which stays";
	else if (device->below)
		problem = "the device is still attached to another one, and stays";
	if (!problem) {
		unchain_locked(nt, &device->body);
		device->deleted = true;
	}
	nt_objects_unlock(nt);
	if (problem)
		nt_violation(nt, "NT-19", "IoDeleteDevice", "%s", problem);
	else
		nt_object_put(nt, object);
	nt_device_put(nt, object);
}

static DEVICE_OBJECT *highest_locked(struct vmm_nt *nt, DEVICE_OBJECT *device)
	VMM_REQUIRES(nt_objects_class)
{
	vmm_assert_held(&nt->objects);
	while (device->AttachedDevice)
		device = device->AttachedDevice;
	return device;
}

PDEVICE_OBJECT IoAttachDeviceToDeviceStack(PDEVICE_OBJECT SourceDevice, PDEVICE_OBJECT TargetDevice)
{
	struct vmm_nt *nt = vmm_nt_current();
	struct nt_object *source = nt_object_get(nt, SourceDevice, OBJECT_DEVICE);
	struct nt_object *target = nt_object_get(nt, TargetDevice, OBJECT_DEVICE);
	struct own_device *device = own_of(source);
	DEVICE_OBJECT *top = NULL;

	nt_limit(nt, "IoAttachDeviceToDeviceStack", DISPATCH_LEVEL);
	nt_objects_lock(nt);
	if (device && target && source != target && !device->deleted && !device->below &&
	    !device->body.AttachedDevice) {
		top = highest_locked(nt, TargetDevice);
		top->AttachedDevice = &device->body;
		device->below = top;
		device->body.StackSize = (CCHAR)(top->StackSize + 1);
	}
	nt_objects_unlock(nt);
	if (!top)
		nt_violation(nt, "NT-19", "IoAttachDeviceToDeviceStack",
			     !target   ? "the target is no device"
			     : !device ? "the source was not made by IoCreateDevice"
				       : "the source is in a device stack already, or deleted");
	nt_device_put(nt, source);
	nt_device_put(nt, target);
	return top;
}

VOID IoDetachDevice(PDEVICE_OBJECT TargetDevice)
{
	struct vmm_nt *nt = vmm_nt_current();
	struct nt_object *target = nt_object_get(nt, TargetDevice, OBJECT_DEVICE), *object = NULL;
	struct own_device *device;

	nt_limit(nt, "IoDetachDevice", PASSIVE_LEVEL);
	if (target)
		object = nt_object_get(nt, TargetDevice->AttachedDevice, OBJECT_DEVICE);
	device = own_of(object);
	nt_objects_lock(nt);
	if (device) {
		TargetDevice->AttachedDevice = NULL;
		device->below = NULL;
	}
	nt_objects_unlock(nt);
	if (!device)
		nt_violation(nt, "NT-19", "IoDetachDevice",
			     "the target is no device to which another one is attached");
	nt_device_put(nt, object);
	nt_device_put(nt, target);
}

PDEVICE_OBJECT IoGetAttachedDevice(PDEVICE_OBJECT DeviceObject)
{
	struct vmm_nt *nt = vmm_nt_current();
	DEVICE_OBJECT *top = NULL;
	struct nt_object *object;

	nt_limit(nt, "IoGetAttachedDevice", DISPATCH_LEVEL);
	if (nt_device_get(nt, DeviceObject, &object) == NT_DEVICE_NONE) {
		nt_violation(nt, "NT-19", "IoGetAttachedDevice", "the pointer is no device");
		return NULL;
	}
	nt_objects_lock(nt);
	top = highest_locked(nt, DeviceObject);
	nt_objects_unlock(nt);
	nt_device_put(nt, object);
	return top;
}

PDEVICE_OBJECT IoGetAttachedDeviceReference(PDEVICE_OBJECT DeviceObject)
{
	PDEVICE_OBJECT top = IoGetAttachedDevice(DeviceObject);

	if (top && top != &vmm_nt_current()->volume)
		ObReferenceObject(top);
	return top;
}

PDEVICE_OBJECT IoGetRelatedDeviceObject(PFILE_OBJECT FileObject)
{
	struct vmm_nt *nt = vmm_nt_current();
	struct nt_object *file = nt_object_get(nt, FileObject, OBJECT_FILE);

	nt_limit(nt, "IoGetRelatedDeviceObject", DISPATCH_LEVEL);
	if (!file) {
		nt_violation(nt, "NT-07", "IoGetRelatedDeviceObject",
			     "the pointer is no file object");
		return NULL;
	}
	nt_object_put(nt, file);
	return &nt->volume;
}

NTSTATUS IoGetDeviceObjectPointer(PUNICODE_STRING ObjectName, ACCESS_MASK DesiredAccess,
				  PFILE_OBJECT *FileObject, PDEVICE_OBJECT *DeviceObject)
{
	(void)DesiredAccess;
	nt_limit(vmm_nt_current(), "IoGetDeviceObjectPointer", PASSIVE_LEVEL);
	if (!ObjectName || !FileObject || !DeviceObject)
		return STATUS_INVALID_PARAMETER;
	return STATUS_OBJECT_NAME_NOT_FOUND; /* devices have no names (IoCreateDevice) */
}

PVOID MmGetSystemRoutineAddress(PUNICODE_STRING SystemRoutineName)
{
	/* What else the program and its libraries export is no kernel service. */
	static const char *const prefixes[] = {"Dbg", "Ex", "Io", "Kd",  "Ke",   "Kf",
					       "Mm",  "Ob", "Ps", "Rtl", "vDbg", "Zw"};
	const UNICODE_STRING *wide = SystemRoutineName;
	size_t length = wide->Length / sizeof(WCHAR);
	char name[128];

	nt_limit(vmm_nt_current(), "MmGetSystemRoutineAddress", PASSIVE_LEVEL);
	if (length >= sizeof(name))
		return NULL;
	for (size_t i = 0; i < length; i++)
		name[i] = wide->Buffer[i] < 0x7F ? (char)wide->Buffer[i] : '?';
	name[length] = 0;
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(prefixes); i++) {
		size_t at = 0;

		while (prefixes[i][at] && prefixes[i][at] == name[at])
			at++;
		if (!prefixes[i][at] && name[at] >= 'A' && name[at] <= 'Z')
			return vmm_os_symbol((const void *)PsThreadType, name);
	}
	return NULL;
}
