/* SPDX-License-Identifier: MIT */
/*
 * Packets that the I/O manager fills in. How a buffer reaches the driver is decided by the control
 * code or by the flags of the device: through a copy, an MDL, or as the caller's pointer.
 */
#include "nt/nt_irp.h"

#include <string.h>

/* Gives the packet a copy of the buffer with space for `size_bytes`. */
static bool add_copy(struct nt_irp *self, const void *buffer, ULONG length, ULONG size_bytes)
{
	void *copy;

	if (!size_bytes)
		return true;
	copy = ExAllocatePool2(POOL_FLAG_NON_PAGED, size_bytes, IRP_TAG);
	if (!copy)
		return false;
	if (length)
		memcpy(copy, buffer, length);
	self->irp.AssociatedIrp.SystemBuffer = copy;
	self->irp.Flags |= IRP_BUFFERED_IO | IRP_DEALLOCATE_BUFFER;
	return true;
}

static bool add_mdl(struct nt_irp *self, void *buffer, ULONG length, LOCK_OPERATION operation)
{
	PMDL mdl;

	if (!length)
		return true;
	mdl = IoAllocateMdl(buffer, length, FALSE, FALSE, &self->irp);
	if (!mdl)
		return false;
	MmProbeAndLockPages(mdl, KernelMode, operation);
	return (mdl->MdlFlags & MDL_PAGES_LOCKED) != 0;
}

/* The caller's output of a copy is written when the packet ends. */
static void set_output(struct nt_irp *self, void *buffer, ULONG length)
{
	self->irp.UserBuffer = buffer;
	self->output_bytes = length;
	if (length)
		self->irp.Flags |= IRP_INPUT_OPERATION;
}

static struct nt_irp *begin(struct vmm_nt *nt, const char *service, enum nt_irp_kind kind,
			    const DEVICE_OBJECT *device)
{
	struct nt_irp *self = NULL;
	struct nt_object *object;

	if (nt_device_get(nt, device, &object) == NT_DEVICE_NONE)
		nt_violation(nt, "NT-19", service, "the device does not exist; NULL");
	else
		self = nt_irp_create(nt, kind, device->StackSize);
	nt_device_put(nt, object);
	return self;
}

static bool add_control_buffers(struct nt_irp *self, ULONG code, void *input, ULONG input_length,
				void *output, ULONG output_length)
{
	IO_STACK_LOCATION *next = IoGetNextIrpStackLocation(&self->irp);
	ULONG method = METHOD_FROM_CTL_CODE(code);

	switch (method) {
	case METHOD_BUFFERED:
		set_output(self, output, output_length);
		return add_copy(self, input, input_length,
				input_length > output_length ? input_length : output_length);
	case METHOD_NEITHER:
		self->irp.UserBuffer = output;
		next->Parameters.DeviceIoControl.Type3InputBuffer = input;
		return true;
	default:
		return add_copy(self, input, input_length, input_length) &&
		       add_mdl(self, output, output_length,
			       method == METHOD_IN_DIRECT ? IoReadAccess : IoWriteAccess);
	}
}

PIRP IoBuildDeviceIoControlRequest(ULONG IoControlCode, PDEVICE_OBJECT DeviceObject,
				   PVOID InputBuffer, ULONG InputBufferLength, PVOID OutputBuffer,
				   ULONG OutputBufferLength, BOOLEAN InternalDeviceIoControl,
				   PKEVENT Event, PIO_STATUS_BLOCK IoStatusBlock)
{
	struct vmm_nt *nt = vmm_nt_current();
	IO_STACK_LOCATION *next;
	struct nt_irp *self;

	nt_limit(nt, "IoBuildDeviceIoControlRequest", PASSIVE_LEVEL);
	self = begin(nt, "IoBuildDeviceIoControlRequest", NT_IRP_THREADED, DeviceObject);
	if (!self)
		return NULL;
	next = IoGetNextIrpStackLocation(&self->irp);
	next->MajorFunction =
		InternalDeviceIoControl ? IRP_MJ_INTERNAL_DEVICE_CONTROL : IRP_MJ_DEVICE_CONTROL;
	next->Parameters.DeviceIoControl.OutputBufferLength = OutputBufferLength;
	next->Parameters.DeviceIoControl.InputBufferLength = InputBufferLength;
	next->Parameters.DeviceIoControl.IoControlCode = IoControlCode;
	self->irp.UserEvent = Event;
	self->irp.UserIosb = IoStatusBlock;
	if (!add_control_buffers(self, IoControlCode, InputBuffer, InputBufferLength, OutputBuffer,
				 OutputBufferLength)) {
		nt_irp_discard(nt, self);
		return NULL;
	}
	return &self->irp;
}

static bool add_transfer_buffer(struct nt_irp *self, const DEVICE_OBJECT *device, bool write,
				void *buffer, ULONG length)
{
	self->irp.Flags |= write ? IRP_WRITE_OPERATION : IRP_READ_OPERATION;
	if (device->Flags & DO_DIRECT_IO)
		return add_mdl(self, buffer, length, write ? IoReadAccess : IoWriteAccess);
	self->irp.UserBuffer = buffer;
	if (!(device->Flags & DO_BUFFERED_IO))
		return true;
	if (!write)
		set_output(self, buffer, length);
	return add_copy(self, buffer, write ? length : 0, length);
}

static struct nt_irp *build(const char *service, enum nt_irp_kind kind, ULONG major,
			    const DEVICE_OBJECT *device, void *buffer, ULONG length,
			    const LARGE_INTEGER *offset)
{
	struct vmm_nt *nt = vmm_nt_current();
	bool transfers = major == IRP_MJ_READ || major == IRP_MJ_WRITE;
	IO_STACK_LOCATION *next;
	struct nt_irp *self;

	if (!transfers && major != IRP_MJ_FLUSH_BUFFERS && major != IRP_MJ_SHUTDOWN &&
	    major != IRP_MJ_PNP) {
		nt_violation(nt, "NT-18", service, "MajorFunction 0x%x is not one of a request",
			     major);
		return NULL;
	}
	self = begin(nt, service, kind, device);
	if (!self)
		return NULL;
	next = IoGetNextIrpStackLocation(&self->irp);
	next->MajorFunction = (UCHAR)major;
	if (!transfers)
		return self;
	/* Parameters.Write has the same members. */
	next->Parameters.Read.Length = length;
	if (offset)
		next->Parameters.Read.ByteOffset = *offset;
	if (add_transfer_buffer(self, device, major == IRP_MJ_WRITE, buffer, length))
		return self;
	nt_irp_discard(nt, self);
	return NULL;
}

PIRP IoBuildSynchronousFsdRequest(ULONG MajorFunction, PDEVICE_OBJECT DeviceObject, PVOID Buffer,
				  ULONG Length, PLARGE_INTEGER StartingOffset, PKEVENT Event,
				  PIO_STATUS_BLOCK IoStatusBlock)
{
	struct nt_irp *self;

	nt_limit(vmm_nt_current(), "IoBuildSynchronousFsdRequest", PASSIVE_LEVEL);
	self = build("IoBuildSynchronousFsdRequest", NT_IRP_THREADED, MajorFunction, DeviceObject,
		     Buffer, Length, StartingOffset);
	if (!self)
		return NULL;
	self->irp.Flags |= IRP_SYNCHRONOUS_API;
	self->irp.UserEvent = Event;
	self->irp.UserIosb = IoStatusBlock;
	return &self->irp;
}

PIRP IoBuildAsynchronousFsdRequest(ULONG MajorFunction, PDEVICE_OBJECT DeviceObject, PVOID Buffer,
				   ULONG Length, PLARGE_INTEGER StartingOffset,
				   PIO_STATUS_BLOCK IoStatusBlock)
{
	struct nt_irp *self;

	nt_limit(vmm_nt_current(), "IoBuildAsynchronousFsdRequest", APC_LEVEL);
	self = build("IoBuildAsynchronousFsdRequest", NT_IRP_ASYNCHRONOUS, MajorFunction,
		     DeviceObject, Buffer, Length, StartingOffset);
	if (!self)
		return NULL;
	self->irp.UserIosb = IoStatusBlock;
	return &self->irp;
}
