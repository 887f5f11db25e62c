/* SPDX-License-Identifier: MIT */
/*
 * Device objects that a driver makes and I/O request packets. Part of ntddk.h. Source: the wdm.h
 * pages. There are no devices but those of the driver, its physical device object, and the volume
 * of open files: a request to the physical device object gets STATUS_NOT_SUPPORTED.
 */
#ifndef WDDM_NTDDK_IRP_H
#define WDDM_NTDDK_IRP_H

#include "ntddk_file.h"
#include "ntddk_memory.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- control codes ---- */

#ifndef METHOD_BUFFERED
#define METHOD_BUFFERED   0
#define METHOD_IN_DIRECT  1
#define METHOD_OUT_DIRECT 2
#define METHOD_NEITHER    3
#endif
#ifndef FILE_ANY_ACCESS
#define FILE_ANY_ACCESS     0
#define FILE_SPECIAL_ACCESS FILE_ANY_ACCESS
#define FILE_READ_ACCESS    0x0001
#define FILE_WRITE_ACCESS   0x0002
#endif
#ifndef CTL_CODE
#define CTL_CODE(type, function, method, access) \
	(((type) << 16) | ((access) << 14) | ((function) << 2) | (method))
#endif
#ifndef METHOD_FROM_CTL_CODE
#define METHOD_FROM_CTL_CODE(code)      ((ULONG)((code)&3))
#define DEVICE_TYPE_FROM_CTL_CODE(code) (((ULONG)((code)&0xFFFF0000)) >> 16)
#endif
#ifndef FILE_DEVICE_UNKNOWN
#define FILE_DEVICE_DISK    0x00000007
#define FILE_DEVICE_UNKNOWN 0x00000022
#define FILE_DEVICE_VIDEO   0x00000023
#endif

/* ---- devices ---- */

#define DO_BUFFERED_IO         0x00000004
#define DO_EXCLUSIVE           0x00000008
#define DO_DIRECT_IO           0x00000010
#define DO_DEVICE_INITIALIZING 0x00000080
#define DO_POWER_PAGABLE       0x00002000

#define FILE_DEVICE_SECURE_OPEN 0x00000100

/* [A] DeviceName must be NULL: there is no namespace of devices. */
NTSTATUS IoCreateDevice(PDRIVER_OBJECT DriverObject, ULONG DeviceExtensionSize,
			PUNICODE_STRING DeviceName, DEVICE_TYPE DeviceType,
			ULONG DeviceCharacteristics, BOOLEAN Exclusive,
			PDEVICE_OBJECT *DeviceObject);
VOID IoDeleteDevice(PDEVICE_OBJECT DeviceObject); /* [A] */
/* [D] The device that was the highest; NULL: one of the two is no device, or is attached. */
PDEVICE_OBJECT IoAttachDeviceToDeviceStack(PDEVICE_OBJECT SourceDevice,
					   PDEVICE_OBJECT TargetDevice);
VOID IoDetachDevice(PDEVICE_OBJECT TargetDevice);                         /* [P] */
PDEVICE_OBJECT IoGetAttachedDevice(PDEVICE_OBJECT DeviceObject);          /* [D] */
PDEVICE_OBJECT IoGetAttachedDeviceReference(PDEVICE_OBJECT DeviceObject); /* [D] */
PDEVICE_OBJECT IoGetRelatedDeviceObject(PFILE_OBJECT FileObject);         /* [D] */
/* [P] STATUS_OBJECT_NAME_NOT_FOUND: no device has a name. */
NTSTATUS IoGetDeviceObjectPointer(PUNICODE_STRING ObjectName, ACCESS_MASK DesiredAccess,
				  PFILE_OBJECT *FileObject, PDEVICE_OBJECT *DeviceObject);

/* ---- packets ---- */

#define SL_PENDING_RETURNED  0x01
#define SL_INVOKE_ON_CANCEL  0x20
#define SL_INVOKE_ON_SUCCESS 0x40
#define SL_INVOKE_ON_ERROR   0x80

#define IRP_SYNCHRONOUS_API   0x00000004
#define IRP_BUFFERED_IO       0x00000010
#define IRP_DEALLOCATE_BUFFER 0x00000020
#define IRP_INPUT_OPERATION   0x00000040
#define IRP_READ_OPERATION    0x00000100
#define IRP_WRITE_OPERATION   0x00000200

typedef NTSTATUS IO_COMPLETION_ROUTINE(PDEVICE_OBJECT DeviceObject, struct _IRP *Irp,
				       PVOID Context);
typedef IO_COMPLETION_ROUTINE *PIO_COMPLETION_ROUTINE;
typedef VOID DRIVER_CANCEL(PDEVICE_OBJECT DeviceObject, struct _IRP *Irp);
typedef DRIVER_CANCEL *PDRIVER_CANCEL;

typedef struct _IO_STACK_LOCATION {
	UCHAR MajorFunction;
	UCHAR MinorFunction;
	UCHAR Flags;
	UCHAR Control;
	union {
		struct {
			ULONG Length;
			ULONG Key;
			LARGE_INTEGER ByteOffset;
		} Read;
		struct {
			ULONG Length;
			ULONG Key;
			LARGE_INTEGER ByteOffset;
		} Write;
		struct {
			ULONG Length;
			FILE_INFORMATION_CLASS FileInformationClass;
		} QueryFile;
		struct {
			ULONG OutputBufferLength;
			ULONG InputBufferLength;
			ULONG IoControlCode;
			PVOID Type3InputBuffer;
		} DeviceIoControl;
		struct {
			PVOID Argument1;
			PVOID Argument2;
			PVOID Argument3;
			PVOID Argument4;
		} Others;
	} Parameters;
	PDEVICE_OBJECT DeviceObject;
	PFILE_OBJECT FileObject;
	PIO_COMPLETION_ROUTINE CompletionRoutine;
	PVOID Context;
} IO_STACK_LOCATION, *PIO_STACK_LOCATION;

typedef struct _IRP {
	SHORT Type;
	USHORT Size;
	PMDL MdlAddress;
	ULONG Flags;
	union {
		struct _IRP *MasterIrp;
		LONG IrpCount;
		PVOID SystemBuffer;
	} AssociatedIrp;
	LIST_ENTRY ThreadListEntry;
	IO_STATUS_BLOCK IoStatus;
	KPROCESSOR_MODE RequestorMode;
	BOOLEAN PendingReturned;
	CHAR StackCount;
	CHAR CurrentLocation;
	BOOLEAN Cancel;
	KIRQL CancelIrql;
	PIO_STATUS_BLOCK UserIosb;
	PKEVENT UserEvent;
	PDRIVER_CANCEL CancelRoutine;
	PVOID UserBuffer;
	union {
		struct {
			PVOID DriverContext[4];
			PETHREAD Thread;
			PCHAR AuxiliaryBuffer;
			LIST_ENTRY ListEntry;
			PIO_STACK_LOCATION CurrentStackLocation;
			PFILE_OBJECT OriginalFileObject;
		} Overlay;
	} Tail;
} IRP;

PIRP IoAllocateIrp(CCHAR StackSize, BOOLEAN ChargeQuota); /* [D] */
VOID IoFreeIrp(PIRP Irp);                                 /* [D] */
VOID IoReuseIrp(PIRP Irp, NTSTATUS Iostatus);             /* [D] */
/* [P] The three requests of the I/O manager. The first two end with the packet freed. */
PIRP IoBuildDeviceIoControlRequest(ULONG IoControlCode, PDEVICE_OBJECT DeviceObject,
				   PVOID InputBuffer, ULONG InputBufferLength, PVOID OutputBuffer,
				   ULONG OutputBufferLength, BOOLEAN InternalDeviceIoControl,
				   PKEVENT Event, PIO_STATUS_BLOCK IoStatusBlock);
PIRP IoBuildSynchronousFsdRequest(ULONG MajorFunction, PDEVICE_OBJECT DeviceObject, PVOID Buffer,
				  ULONG Length, PLARGE_INTEGER StartingOffset, PKEVENT Event,
				  PIO_STATUS_BLOCK IoStatusBlock);
/* A completion routine must free the packet and return STATUS_MORE_PROCESSING_REQUIRED. */
PIRP IoBuildAsynchronousFsdRequest(ULONG MajorFunction, PDEVICE_OBJECT DeviceObject, PVOID Buffer,
				   ULONG Length, PLARGE_INTEGER StartingOffset,
				   PIO_STATUS_BLOCK IoStatusBlock); /* [A] */

NTSTATUS IofCallDriver(PDEVICE_OBJECT DeviceObject, PIRP Irp); /* [D] */
VOID IofCompleteRequest(PIRP Irp, CCHAR PriorityBoost);        /* [D] */
#ifndef IoCallDriver
#define IoCallDriver(device, irp)        IofCallDriver(device, irp)
#define IoCompleteRequest(irp, increase) IofCompleteRequest(irp, increase)
#endif

static inline PIO_STACK_LOCATION IoGetCurrentIrpStackLocation(PIRP Irp)
{
	return Irp->Tail.Overlay.CurrentStackLocation;
}

static inline PIO_STACK_LOCATION IoGetNextIrpStackLocation(PIRP Irp)
{
	return Irp->Tail.Overlay.CurrentStackLocation - 1;
}

static inline VOID IoSetNextIrpStackLocation(PIRP Irp)
{
	Irp->CurrentLocation--;
	Irp->Tail.Overlay.CurrentStackLocation--;
}

static inline VOID IoSkipCurrentIrpStackLocation(PIRP Irp)
{
	Irp->CurrentLocation++;
	Irp->Tail.Overlay.CurrentStackLocation++;
}

/* Everything but the completion routine. */
static inline VOID IoCopyCurrentIrpStackLocationToNext(PIRP Irp)
{
	PIO_STACK_LOCATION next = IoGetNextIrpStackLocation(Irp);

	*next = *IoGetCurrentIrpStackLocation(Irp);
	next->CompletionRoutine = NULL;
	next->Context = NULL;
	next->Control = 0;
}

static inline VOID IoMarkIrpPending(PIRP Irp)
{
	IoGetCurrentIrpStackLocation(Irp)->Control |= SL_PENDING_RETURNED;
}

static inline VOID IoSetCompletionRoutine(PIRP Irp, PIO_COMPLETION_ROUTINE CompletionRoutine,
					  PVOID Context, BOOLEAN InvokeOnSuccess,
					  BOOLEAN InvokeOnError, BOOLEAN InvokeOnCancel)
{
	PIO_STACK_LOCATION next = IoGetNextIrpStackLocation(Irp);

	next->CompletionRoutine = CompletionRoutine;
	next->Context = Context;
	next->Control = (UCHAR)((InvokeOnSuccess ? SL_INVOKE_ON_SUCCESS : 0) |
				(InvokeOnError ? SL_INVOKE_ON_ERROR : 0) |
				(InvokeOnCancel ? SL_INVOKE_ON_CANCEL : 0));
}

/* Drivers stay loaded while a packet exists, so this is the same. */
static inline NTSTATUS IoSetCompletionRoutineEx(PDEVICE_OBJECT DeviceObject, PIRP Irp,
						PIO_COMPLETION_ROUTINE CompletionRoutine,
						PVOID Context, BOOLEAN InvokeOnSuccess,
						BOOLEAN InvokeOnError, BOOLEAN InvokeOnCancel)
{
	(void)DeviceObject;
	IoSetCompletionRoutine(Irp, CompletionRoutine, Context, InvokeOnSuccess, InvokeOnError,
			       InvokeOnCancel);
	return STATUS_SUCCESS;
}

#ifdef __cplusplus
}
#endif

#endif
