/* SPDX-License-Identifier: MIT */
/* Device objects, their stacks, and I/O request packets through them. */
#include "nt_world.h"

#define CODE CTL_CODE(FILE_DEVICE_UNKNOWN, 0x800, METHOD_BUFFERED, FILE_ANY_ACCESS)

static PIRP pended;
static int routine_calls;
static PDEVICE_OBJECT routine_device;

/* Adds 1 to the number in the buffer. */
static NTSTATUS answer(PDEVICE_OBJECT device, PIRP irp)
{
	PIO_STACK_LOCATION here = IoGetCurrentIrpStackLocation(irp);

	assert_ptr_equal(here->DeviceObject, device);
	assert_int_equal(here->Parameters.DeviceIoControl.IoControlCode, CODE);
	++*(uint32_t *)irp->AssociatedIrp.SystemBuffer;
	irp->IoStatus.Status = STATUS_SUCCESS;
	irp->IoStatus.Information = sizeof(uint32_t);
	IoCompleteRequest(irp, IO_NO_INCREMENT);
	return STATUS_SUCCESS;
}

static NTSTATUS pend(PDEVICE_OBJECT device, PIRP irp)
{
	(void)device;
	IoMarkIrpPending(irp);
	pended = irp;
	return STATUS_PENDING;
}

static NTSTATUS count(PDEVICE_OBJECT device, PIRP irp, PVOID context)
{
	routine_calls++;
	routine_device = device;
	if (irp->PendingReturned && device)
		IoMarkIrpPending(irp);
	return context ? STATUS_MORE_PROCESSING_REQUIRED : STATUS_SUCCESS;
}

/* Passes the request on to the device in the extension. */
static NTSTATUS forward(PDEVICE_OBJECT device, PIRP irp)
{
	PDEVICE_OBJECT below = *(PDEVICE_OBJECT *)device->DeviceExtension;

	IoCopyCurrentIrpStackLocationToNext(irp);
	IoSetCompletionRoutine(irp, count, NULL, TRUE, TRUE, TRUE);
	return IoCallDriver(below, irp);
}

static PDEVICE_OBJECT device_of(DRIVER_OBJECT *driver, ULONG extension)
{
	PDEVICE_OBJECT device = NULL;

	assert_int_equal(
		IoCreateDevice(driver, extension, NULL, FILE_DEVICE_UNKNOWN, 0, FALSE, &device),
		STATUS_SUCCESS);
	return device;
}

static PIRP control(PDEVICE_OBJECT device, uint32_t *number, KEVENT *event, IO_STATUS_BLOCK *block)
{
	KeInitializeEvent(event, NotificationEvent, FALSE);
	*block = (IO_STATUS_BLOCK){.Status = STATUS_NOT_SUPPORTED};
	return IoBuildDeviceIoControlRequest(CODE, device, number, sizeof(*number), number,
					     sizeof(*number), FALSE, event, block);
}

static void a_control_request_returns_its_output_and_frees_itself(void **state)
{
	DRIVER_OBJECT driver = {.MajorFunction[IRP_MJ_DEVICE_CONTROL] = answer};
	PDEVICE_OBJECT device = device_of(&driver, 0);
	IO_STATUS_BLOCK block;
	uint32_t number = 41;
	KEVENT event;
	PIRP irp = control(device, &number, &event, &block);

	assert_int_equal(IoCallDriver(device, irp), STATUS_SUCCESS);
	assert_int_equal(number, 42);
	assert_int_equal(block.Information, 4);
	assert_int_not_equal(KeReadStateEvent(&event), 0);
	IoFreeIrp(irp);
	expect_violation((struct world *)*state, "NT-17", "IoFreeIrp", "freed");
	IoCompleteRequest(irp, 0);
	expect_violation((struct world *)*state, "NT-17", "IoCompleteRequest", "unknown");
	/* A function that the driver does not have. */
	irp = IoBuildSynchronousFsdRequest(IRP_MJ_FLUSH_BUFFERS, device, NULL, 0, NULL, &event,
					   &block);
	assert_int_equal(IoCallDriver(device, irp), STATUS_INVALID_DEVICE_REQUEST);
	assert_int_equal(block.Status, STATUS_INVALID_DEVICE_REQUEST);
	IoDeleteDevice(device);
	assert_null(driver.DeviceObject);
}

static void a_pended_request_goes_up_a_stack_of_two(void **state)
{
	DRIVER_OBJECT low = {.MajorFunction[IRP_MJ_DEVICE_CONTROL] = pend};
	DRIVER_OBJECT high = {.MajorFunction[IRP_MJ_DEVICE_CONTROL] = forward};
	PDEVICE_OBJECT bottom = device_of(&low, 0), top = device_of(&high, sizeof(PVOID));
	IO_STATUS_BLOCK block;
	uint32_t number = 1;
	KEVENT event;
	PIRP irp;

	*(PDEVICE_OBJECT *)top->DeviceExtension = IoAttachDeviceToDeviceStack(top, bottom);
	assert_int_equal(top->StackSize, 2);
	assert_ptr_equal(IoGetAttachedDevice(bottom), top);
	IoAttachDeviceToDeviceStack(top, bottom);
	expect_violation((struct world *)*state, "NT-19", "IoAttachDeviceToDeviceStack", "already");
	irp = control(top, &number, &event, &block);
	routine_calls = 0;
	assert_int_equal(IoCallDriver(top, irp), STATUS_PENDING);
	assert_int_equal(KeReadStateEvent(&event), 0);
	IoFreeIrp(irp);
	expect_violation((struct world *)*state, "NT-18", "IoFreeIrp", "while a driver has it");
	pended->IoStatus.Status = STATUS_CANCELLED;
	IoCompleteRequest(pended, 0);
	assert_int_equal(routine_calls, 1);
	assert_ptr_equal(routine_device, top);
	assert_int_equal(block.Status, STATUS_CANCELLED);
	assert_int_equal(number, 1);
	IoDeleteDevice(bottom);
	expect_violation((struct world *)*state, "NT-19", "IoDeleteDevice", "attached");
	IoDetachDevice(bottom);
	IoDeleteDevice(top);
	IoDeleteDevice(bottom);
	IoDeleteDevice(bottom);
	expect_violation((struct world *)*state, "NT-19", "IoDeleteDevice", "deleted already");
}

static void an_allocated_packet_comes_back_to_its_driver(void **state)
{
	DRIVER_OBJECT driver = {.MajorFunction[IRP_MJ_WRITE] = pend};
	PDEVICE_OBJECT device = device_of(&driver, 0);
	struct world *world = *state;
	PIRP irp = IoAllocateIrp(1, FALSE);

	IoCompleteRequest(irp, 0);
	expect_violation(world, "NT-17", "IoCompleteRequest", "never sent");
	IoGetNextIrpStackLocation(irp)->MajorFunction = IRP_MJ_WRITE;
	IoSetCompletionRoutine(irp, count, irp, TRUE, TRUE, TRUE);
	routine_calls = 0;
	assert_int_equal(IoCallDriver(device, irp), STATUS_PENDING);
	assert_int_equal(IoCallDriver(device, irp), STATUS_INVALID_PARAMETER);
	expect_violation(world, "NT-18", "IoCallDriver", "no stack location left");
	irp->IoStatus.Status = STATUS_SUCCESS;
	IoCompleteRequest(irp, 0);
	assert_int_equal(routine_calls, 1);
	assert_null(routine_device);
	IoCompleteRequest(irp, 0);
	expect_violation(world, "NT-17", "IoCompleteRequest", "completed already");
	IoReuseIrp(irp, STATUS_NOT_SUPPORTED);
	assert_int_equal(irp->IoStatus.Status, STATUS_NOT_SUPPORTED);
	assert_int_equal(irp->CurrentLocation, 2);
	/* Without a routine nothing ends it. */
	IoGetNextIrpStackLocation(irp)->MajorFunction = IRP_MJ_READ;
	assert_int_equal(IoCallDriver(device, irp), STATUS_INVALID_DEVICE_REQUEST);
	expect_violation(world, "NT-18", "IoCompleteRequest", "MORE_PROCESSING");
	IoFreeIrp(irp);
	IoFreeIrp(irp);
	expect_violation(world, "NT-17", "IoFreeIrp", "freed");
	IoDeleteDevice(device);
}

static void requests_to_no_device_are_not_supported(void **state)
{
	UNICODE_STRING name = {0};
	struct world *world = *state;
	PFILE_OBJECT file;
	DEVICE_OBJECT none = {.StackSize = 1};
	PDEVICE_OBJECT device;
	PIRP irp = IoAllocateIrp(1, FALSE);

	assert_int_equal(IoGetDeviceObjectPointer(&name, FILE_ALL_ACCESS, &file, &device),
			 STATUS_OBJECT_NAME_NOT_FOUND);
	assert_null(
		IoBuildDeviceIoControlRequest(CODE, &none, NULL, 0, NULL, 0, FALSE, NULL, NULL));
	expect_violation(world, "NT-19", "IoBuildDeviceIoControlRequest", "does not exist");
	IoSetCompletionRoutine(irp, count, irp, TRUE, TRUE, TRUE);
	assert_int_equal(IoCallDriver(&none, irp), STATUS_NOT_SUPPORTED);
	expect_violation(world, "NT-11", "IoCallDriver", "does not exist");
	assert_int_equal(irp->IoStatus.Status, STATUS_NOT_SUPPORTED);
	IoFreeIrp(irp);
}

/* A device whose transfers are described by an MDL, and one whose transfers are copied. */
static void transfers_reach_the_driver_as_the_device_asks(void **state)
{
	DRIVER_OBJECT driver = {.MajorFunction[IRP_MJ_WRITE] = pend,
				.MajorFunction[IRP_MJ_READ] = pend};
	PDEVICE_OBJECT device = device_of(&driver, 0);
	char *buffer = ExAllocatePool2(POOL_FLAG_NON_PAGED, 64, TAG);
	LARGE_INTEGER offset = {.QuadPart = 512};
	IO_STATUS_BLOCK block;
	KEVENT event;
	PIRP irp;

	(void)state;
	strcpy(buffer, "text");
	KeInitializeEvent(&event, NotificationEvent, FALSE);
	device->Flags |= DO_DIRECT_IO;
	irp = IoBuildSynchronousFsdRequest(IRP_MJ_WRITE, device, buffer, 64, &offset, &event,
					   &block);
	assert_int_equal(IoCallDriver(device, irp), STATUS_PENDING);
	assert_string_equal(MmGetSystemAddressForMdl(pended->MdlAddress), "text");
	assert_int_equal(IoGetCurrentIrpStackLocation(pended)->Parameters.Write.ByteOffset.QuadPart,
			 512);
	pended->IoStatus.Information = 64;
	IoCompleteRequest(pended, 0);
	assert_int_equal(block.Information, 64);
	device->Flags = DO_BUFFERED_IO;
	irp = IoBuildSynchronousFsdRequest(IRP_MJ_READ, device, buffer, 8, NULL, &event, &block);
	assert_int_equal(IoCallDriver(device, irp), STATUS_PENDING);
	strcpy(pended->AssociatedIrp.SystemBuffer, "read");
	pended->IoStatus.Information = 9;
	IoCompleteRequest(pended, 0);
	expect_violation((struct world *)*state, "NT-18", "IoCompleteRequest", "has 8 bytes");
	assert_string_equal(buffer, "read");
	ExFreePoolWithTag(buffer, TAG);
	IoDeleteDevice(device);
}

static void a_kept_packet_and_device_are_reported_at_the_end(void **state)
{
	struct vmm_os_config os_config = {.kind = VMM_OS_SIM, .seed = 1};
	struct world *world = world_create(&os_config);
	DRIVER_OBJECT driver = {0};

	(void)state;
	assert_non_null(IoAllocateIrp(2, FALSE));
	assert_int_equal(vmm_nt_destroy(world->nt), VMM_OK);
	expect_violation(world, "NT-06", "IoFreeIrp", "2 stack locations was never freed");
	vmm_os_destroy(world->os);
	vmm_free(world);
	world = world_create(&os_config);
	device_of(&driver, 8);
	assert_int_equal(vmm_nt_destroy(world->nt), VMM_OK);
	expect_violation(world, "NT-06", "IoDeleteDevice", "never deleted");
	vmm_os_destroy(world->os);
	vmm_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(a_control_request_returns_its_output_and_frees_itself),
		BOTH(a_pended_request_goes_up_a_stack_of_two),
		BOTH(an_allocated_packet_comes_back_to_its_driver),
		BOTH(requests_to_no_device_are_not_supported),
		BOTH(transfers_reach_the_driver_as_the_device_asks),
		cmocka_unit_test(a_kept_packet_and_device_are_reported_at_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
