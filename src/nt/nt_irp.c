/* SPDX-License-Identifier: MIT */
/*
 * I/O request packets: their life, the way down a stack of devices, and completion on the way up. A
 * driver's pointer is compared with those of all packets before it is used, so a packet that was
 * freed is recognized. The objects lock guards the list and who has a packet; it is not held while
 * a routine runs.
 */
#include "nt/nt_irp.h"
#include "nt/nt_file.h"

#include <string.h>

void nt_irp_init(struct vmm_nt *nt)
{
	vmm_list_init(&nt->irps);
}

void nt_irp_finish(struct vmm_nt *nt)
{
	while (!vmm_list_empty(&nt->irps)) {
		struct nt_irp *self = vmm_container_of(nt->irps.next, struct nt_irp, link);

		nt_violation(nt, "NT-06", "IoFreeIrp", "an IRP of %d stack locations was never %s",
			     self->irp.StackCount,
			     self->kind == NT_IRP_THREADED ? "completed" : "freed");
		if (self->kind == NT_IRP_THREADED) {
			nt_irp_discard(nt, self);
			continue;
		}
		vmm_list_remove(&self->link);
		vmm_free(self);
	}
}

static void reset(struct nt_irp *self)
{
	uint32_t count = self->location_count - 1;

	memset(self->locations, 0, self->location_count * sizeof(self->locations[0]));
	self->irp = (IRP){.Type = 6,
			  .Size = (USHORT)(sizeof(IRP) + count * sizeof(IO_STACK_LOCATION)),
			  .StackCount = (CHAR)count,
			  .CurrentLocation = (CHAR)(count + 1)};
	InitializeListHead(&self->irp.ThreadListEntry);
	self->irp.Tail.Overlay.CurrentStackLocation = &self->locations[count];
	self->irp.Tail.Overlay.Thread = (PETHREAD)KeGetCurrentThread();
}

struct nt_irp *nt_irp_create(struct vmm_nt *nt, enum nt_irp_kind kind, int stack_size)
{
	struct nt_irp *self;

	if (stack_size < 1 || stack_size > 126)
		return NULL;
	self = vmm_calloc(1, sizeof(*self) + ((size_t)stack_size + 1) * sizeof(IO_STACK_LOCATION));
	if (!self)
		return NULL;
	self->kind = kind;
	self->location_count = (uint32_t)stack_size + 1;
	reset(self);
	nt_objects_lock(nt);
	vmm_list_push_back(&nt->irps, &self->link);
	nt_objects_unlock(nt);
	return self;
}

static struct nt_irp *find_locked(struct vmm_nt *nt, const IRP *irp) VMM_REQUIRES(nt_objects_class)
{
	struct vmm_list *pos;

	vmm_assert_held(&nt->objects);
	vmm_list_for_each (pos, &nt->irps) {
		struct nt_irp *self = vmm_container_of(pos, struct nt_irp, link);

		if (&self->irp == irp)
			return self;
	}
	return NULL;
}

/* Reports NT-17 if there is no such packet. */
static struct nt_irp *find(struct vmm_nt *nt, const char *service, const IRP *irp, bool *sent)
{
	struct nt_irp *self;

	nt_objects_lock(nt);
	self = find_locked(nt, irp);
	*sent = self && self->sent;
	nt_objects_unlock(nt);
	if (!self)
		nt_violation(nt, "NT-17", service,
			     "the IRP is unknown: it was freed, completed and freed, or never "
			     "allocated");
	return self;
}

bool nt_irp_exists(struct vmm_nt *nt, const char *service, const IRP *irp)
{
	bool sent;

	return find(nt, service, irp, &sent) != NULL;
}

static void set_sent(struct vmm_nt *nt, struct nt_irp *self, bool sent)
{
	nt_objects_lock(nt);
	self->sent = sent;
	nt_objects_unlock(nt);
}

static void remove_irp(struct vmm_nt *nt, struct nt_irp *self)
{
	nt_objects_lock(nt);
	vmm_list_remove(&self->link);
	nt_objects_unlock(nt);
	vmm_free(self);
}

void nt_irp_discard(struct vmm_nt *nt, struct nt_irp *self)
{
	PMDL next;

	for (PMDL mdl = self->irp.MdlAddress; mdl; mdl = next) {
		next = mdl->Next;
		if (mdl->MdlFlags & MDL_PAGES_LOCKED)
			MmUnlockPages(mdl);
		IoFreeMdl(mdl);
	}
	if (self->irp.Flags & IRP_DEALLOCATE_BUFFER)
		ExFreePoolWithTag(self->irp.AssociatedIrp.SystemBuffer, IRP_TAG);
	remove_irp(nt, self);
}

PIRP IoAllocateIrp(CCHAR StackSize, BOOLEAN ChargeQuota)
{
	struct vmm_nt *nt = vmm_nt_current();
	struct nt_irp *self;

	(void)ChargeQuota;
	nt_limit(nt, "IoAllocateIrp", DISPATCH_LEVEL);
	self = nt_irp_create(nt, NT_IRP_ALLOCATED, StackSize);
	return self ? &self->irp : NULL;
}

VOID IoFreeIrp(PIRP Irp)
{
	struct vmm_nt *nt = vmm_nt_current();
	struct nt_irp *self;
	bool sent;

	nt_limit(nt, "IoFreeIrp", DISPATCH_LEVEL);
	self = find(nt, "IoFreeIrp", Irp, &sent);
	if (!self)
		return;
	if (sent)
		nt_violation(nt, "NT-18", "IoFreeIrp",
			     "the IRP is freed while a driver has it, and stays");
	else if (self->kind == NT_IRP_THREADED)
		nt_irp_discard(nt, self);
	else
		remove_irp(nt, self);
}

VOID IoReuseIrp(PIRP Irp, NTSTATUS Iostatus)
{
	struct vmm_nt *nt = vmm_nt_current();
	struct nt_irp *self;
	bool sent;

	nt_limit(nt, "IoReuseIrp", DISPATCH_LEVEL);
	self = find(nt, "IoReuseIrp", Irp, &sent);
	if (!self)
		return;
	if (sent || self->kind != NT_IRP_ALLOCATED) {
		nt_violation(nt, "NT-18", "IoReuseIrp",
			     sent ? "the IRP is reused while a driver has it"
				  : "the IRP was not made by IoAllocateIrp");
		return;
	}
	reset(self);
	self->irp.IoStatus.Status = Iostatus;
}

/* ---- down ---- */

static NTSTATUS complete_with(IRP *irp, NTSTATUS status, ULONG_PTR information)
{
	irp->IoStatus = (IO_STATUS_BLOCK){.Status = status, .Information = information};
	IoCompleteRequest(irp, IO_NO_INCREMENT);
	return status;
}

/* The driver of open files: reads and writes. */
static NTSTATUS dispatch_volume(struct vmm_nt *nt, IRP *irp)
{
	const IO_STACK_LOCATION *here = IoGetCurrentIrpStackLocation(irp);
	struct nt_file *file = (struct nt_file *)nt_object_get(nt, here->FileObject, OBJECT_FILE);
	struct nt_file_transfer transfer = {.write = here->MajorFunction == IRP_MJ_WRITE,
					    .buffer = irp->UserBuffer,
					    .length = here->Parameters.Read.Length,
					    .offset = &here->Parameters.Read.ByteOffset};
	IO_STATUS_BLOCK result = {.Status = STATUS_NOT_SUPPORTED};

	if (!file)
		result.Status = STATUS_INVALID_PARAMETER;
	else if (here->MajorFunction == IRP_MJ_READ || transfer.write)
		nt_file_transfer(nt, file, &transfer, &result);
	else
		nt_violation(nt, "NT-11", "IoCallDriver",
			     "request 0x%x of a file is not built; STATUS_NOT_SUPPORTED",
			     here->MajorFunction);
	if (file)
		nt_object_put(nt, &file->object);
	return complete_with(irp, result.Status, result.Information);
}

static NTSTATUS dispatch(struct vmm_nt *nt, DEVICE_OBJECT *device, enum nt_device_kind kind,
			 IRP *irp)
{
	UCHAR major = IoGetCurrentIrpStackLocation(irp)->MajorFunction;
	PDRIVER_DISPATCH function;

	if (kind == NT_DEVICE_VOLUME)
		return dispatch_volume(nt, irp);
	if (kind != NT_DEVICE_OWN) {
		nt_violation(nt, "NT-11", "IoCallDriver",
			     "request 0x%x goes to %s; STATUS_NOT_SUPPORTED", major,
			     kind == NT_DEVICE_NONE ? "a device that does not exist"
						    : "the physical device object, which has no "
						      "driver of its bus");
		return complete_with(irp, STATUS_NOT_SUPPORTED, 0);
	}
	function = major <= IRP_MJ_MAXIMUM_FUNCTION ? device->DriverObject->MajorFunction[major]
						    : NULL;
	return function ? function(device, irp)
			: complete_with(irp, STATUS_INVALID_DEVICE_REQUEST, 0);
}

NTSTATUS IofCallDriver(PDEVICE_OBJECT DeviceObject, PIRP Irp)
{
	struct vmm_nt *nt = vmm_nt_current();
	struct nt_object *object;
	enum nt_device_kind kind;
	struct nt_irp *self;
	NTSTATUS status;
	bool sent;

	nt_limit(nt, "IoCallDriver", DISPATCH_LEVEL);
	self = find(nt, "IoCallDriver", Irp, &sent);
	if (!self)
		return STATUS_INVALID_PARAMETER;
	if (Irp->CurrentLocation <= 1 || Irp->CurrentLocation > Irp->StackCount + 1) {
		nt_violation(nt, "NT-18", "IoCallDriver",
			     "the IRP has no stack location left: the current one is %d of %d",
			     Irp->CurrentLocation, Irp->StackCount);
		return STATUS_INVALID_PARAMETER;
	}
	set_sent(nt, self, true);
	IoSetNextIrpStackLocation(Irp);
	IoGetCurrentIrpStackLocation(Irp)->DeviceObject = DeviceObject;
	/* The device must stay while its function runs, which may delete it. */
	kind = nt_device_get(nt, DeviceObject, &object);
	status = dispatch(nt, DeviceObject, kind, Irp);
	nt_device_put(nt, object);
	return status;
}

/* ---- up ---- */

static void copy_output(struct vmm_nt *nt, const struct nt_irp *self)
{
	const IRP *irp = &self->irp;
	ULONG_PTR length = irp->IoStatus.Information;

	if (!(irp->Flags & IRP_INPUT_OPERATION) || !(irp->Flags & IRP_BUFFERED_IO) ||
	    (ULONG)irp->IoStatus.Status >= 0xC0000000u)
		return;
	if (length > self->output_bytes) {
		nt_violation(nt, "NT-18", "IoCompleteRequest",
			     "IoStatus.Information is %llu, but the output buffer has %u bytes",
			     (unsigned long long)length, self->output_bytes);
		length = self->output_bytes;
	}
	if (length)
		memcpy(irp->UserBuffer, irp->AssociatedIrp.SystemBuffer, length);
}

/* The packet has passed all drivers. */
static void end(struct vmm_nt *nt, struct nt_irp *self)
{
	PKEVENT event = self->irp.UserEvent;

	set_sent(nt, self, false);
	if (self->kind != NT_IRP_THREADED) {
		nt_violation(nt, "NT-18", "IoCompleteRequest",
			     "no completion routine took the IRP back with "
			     "STATUS_MORE_PROCESSING_REQUIRED");
		return;
	}
	copy_output(nt, self);
	if (self->irp.UserIosb)
		*self->irp.UserIosb = self->irp.IoStatus;
	nt_irp_discard(nt, self);
	if (event)
		KeSetEvent(event, IO_NO_INCREMENT, FALSE);
}

static bool invokes(const IRP *irp, const IO_STACK_LOCATION *location)
{
	UCHAR control =
		NT_SUCCESS(irp->IoStatus.Status) ? SL_INVOKE_ON_SUCCESS : SL_INVOKE_ON_ERROR;

	if (irp->Cancel)
		control |= SL_INVOKE_ON_CANCEL;
	return location->CompletionRoutine && (location->Control & control);
}

/* Goes up one location. Returns false if a routine stopped there; the packet may be freed then. */
static bool go_up(struct vmm_nt *nt, struct nt_irp *self)
{
	IRP *irp = &self->irp;
	const IO_STACK_LOCATION location = *IoGetCurrentIrpStackLocation(irp);
	bool top = irp->CurrentLocation >= irp->StackCount;

	irp->PendingReturned = (location.Control & SL_PENDING_RETURNED) != 0;
	IoSkipCurrentIrpStackLocation(irp);
	if (!invokes(irp, &location)) {
		if (irp->PendingReturned && !top)
			IoMarkIrpPending(irp);
		return true;
	}
	/* Above the highest location is the driver that made the packet. */
	if (top)
		set_sent(nt, self, false);
	return location.CompletionRoutine(top ? NULL
					      : IoGetCurrentIrpStackLocation(irp)->DeviceObject,
					  irp, location.Context) != STATUS_MORE_PROCESSING_REQUIRED;
}

VOID IofCompleteRequest(PIRP Irp, CCHAR PriorityBoost)
{
	struct vmm_nt *nt = vmm_nt_current();
	struct nt_irp *self;
	bool sent;

	(void)PriorityBoost;
	nt_limit(nt, "IoCompleteRequest", DISPATCH_LEVEL);
	self = find(nt, "IoCompleteRequest", Irp, &sent);
	if (!self)
		return;
	if (!sent || Irp->CurrentLocation > Irp->StackCount) {
		nt_violation(nt, "NT-17", "IoCompleteRequest",
			     "the IRP is completed already, or was never sent to a driver");
		return;
	}
	if (Irp->IoStatus.Status == STATUS_PENDING)
		nt_violation(nt, "NT-18", "IoCompleteRequest",
			     "the IRP is completed with STATUS_PENDING");
	while (Irp->CurrentLocation <= Irp->StackCount) {
		if (!go_up(nt, self))
			return;
	}
	end(nt, self);
}
