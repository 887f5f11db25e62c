/* SPDX-License-Identifier: MIT */
/*
 * Small types and macros of kernel source: IRQL names, lists, driver and device objects, handles.
 * Part of ntddk.h.
 */
#ifndef WDDM_NTDDK_TYPES_H
#define WDDM_NTDDK_TYPES_H

#include "wddm_kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- interrupt request levels ---- */

#ifndef PASSIVE_LEVEL
#define PASSIVE_LEVEL 0
#endif
#ifndef LOW_LEVEL
#define LOW_LEVEL 0
#endif
#ifndef APC_LEVEL
#define APC_LEVEL 1
#endif
#ifndef DISPATCH_LEVEL
#define DISPATCH_LEVEL 2
#endif
#ifndef CLOCK_LEVEL
#define CLOCK_LEVEL 13
#endif
#ifndef HIGH_LEVEL
#define HIGH_LEVEL 15
#endif

/* ---- macros of kernel source ---- */

typedef LONG64 *PLONG64;
typedef ULONG64 *PULONG64;
typedef CHAR CCHAR;
typedef CCHAR KPROCESSOR_MODE;
typedef LONG KPRIORITY;
typedef ULONG ACCESS_MASK;
typedef ULONG64 PFN_NUMBER, *PPFN_NUMBER;
typedef struct _OBJECT_TYPE *POBJECT_TYPE;
typedef struct _KTHREAD *PKTHREAD, *PETHREAD;
typedef struct _IRP *PIRP;
typedef struct _EPROCESS *PEPROCESS;

typedef enum _MODE { KernelMode, UserMode, MaximumMode } MODE;

typedef struct _CLIENT_ID {
	HANDLE UniqueProcess;
	HANDLE UniqueThread;
} CLIENT_ID, *PCLIENT_ID;

#ifndef OBJ_CASE_INSENSITIVE
#define OBJ_CASE_INSENSITIVE 0x00000040
#endif
#ifndef OBJ_KERNEL_HANDLE
#define OBJ_KERNEL_HANDLE 0x00000200
#endif
#ifndef InitializeObjectAttributes
#define InitializeObjectAttributes(attributes, name, flags, root, security) \
	do {                                                                \
		(attributes)->Length = sizeof(OBJECT_ATTRIBUTES);           \
		(attributes)->RootDirectory = (root);                       \
		(attributes)->Attributes = (flags);                         \
		(attributes)->ObjectName = (name);                          \
		(attributes)->SecurityDescriptor = (security);              \
		(attributes)->SecurityQualityOfService = NULL;              \
	} while (0)
#endif

#ifndef SYNCHRONIZE
#define SYNCHRONIZE 0x00100000
#endif
#ifndef THREAD_ALL_ACCESS
#define THREAD_ALL_ACCESS 0x001FFFFF
#endif

#ifndef PAGE_SHIFT
#define PAGE_SHIFT 12
#endif
#ifndef PAGE_SIZE
#define PAGE_SIZE 0x1000
#endif
#ifndef PAGE_ALIGN
#define PAGE_ALIGN(va) ((PVOID)((ULONG_PTR)(va) & ~(ULONG_PTR)(PAGE_SIZE - 1)))
#endif
#ifndef BYTE_OFFSET
#define BYTE_OFFSET(va) ((ULONG)((ULONG_PTR)(va) & (PAGE_SIZE - 1)))
#endif
#ifndef ROUND_TO_PAGES
#define ROUND_TO_PAGES(size) (((ULONG_PTR)(size) + PAGE_SIZE - 1) & ~(ULONG_PTR)(PAGE_SIZE - 1))
#endif
#ifndef BYTES_TO_PAGES
#define BYTES_TO_PAGES(size) (((size) >> PAGE_SHIFT) + (((size) & (PAGE_SIZE - 1)) != 0))
#endif
#ifndef ADDRESS_AND_SIZE_TO_SPAN_PAGES
#define ADDRESS_AND_SIZE_TO_SPAN_PAGES(va, size) \
	((ULONG)((BYTE_OFFSET(va) + (SIZE_T)(size) + PAGE_SIZE - 1) >> PAGE_SHIFT))
#endif

#ifndef UNREFERENCED_PARAMETER
#define UNREFERENCED_PARAMETER(parameter) ((void)(parameter))
#endif

/* The limits of integers, each of which a driver may define itself. */
#ifndef MAXLONG
#define MAXUCHAR    0xff
#define MAXSHORT    0x7fff
#define MAXUSHORT   0xffff
#define MINLONG     0x80000000
#define MAXLONG     0x7fffffff
#define MAXULONG    0xffffffff
#define MAXLONGLONG 0x7fffffffffffffffll
#endif
#ifndef FIELD_OFFSET
#define FIELD_OFFSET(type, field) ((LONG)offsetof(type, field))
#endif
#ifndef CONTAINING_RECORD
#define CONTAINING_RECORD(address, type, field) ((type *)((PCHAR)(address)-offsetof(type, field)))
#endif
#ifndef ARRAYSIZE
#define ARRAYSIZE(array) (sizeof(array) / sizeof((array)[0]))
#endif

/* ---- doubly linked lists ---- */

typedef struct _LIST_ENTRY {
	struct _LIST_ENTRY *Flink;
	struct _LIST_ENTRY *Blink;
} LIST_ENTRY, *PLIST_ENTRY;

static inline VOID InitializeListHead(PLIST_ENTRY ListHead)
{
	ListHead->Flink = ListHead->Blink = ListHead;
}

static inline BOOLEAN IsListEmpty(const LIST_ENTRY *ListHead)
{
	return (BOOLEAN)(ListHead->Flink == ListHead);
}

static inline VOID InsertHeadList(PLIST_ENTRY ListHead, PLIST_ENTRY Entry)
{
	Entry->Flink = ListHead->Flink;
	Entry->Blink = ListHead;
	ListHead->Flink->Blink = Entry;
	ListHead->Flink = Entry;
}

static inline VOID InsertTailList(PLIST_ENTRY ListHead, PLIST_ENTRY Entry)
{
	Entry->Flink = ListHead;
	Entry->Blink = ListHead->Blink;
	ListHead->Blink->Flink = Entry;
	ListHead->Blink = Entry;
}

/* TRUE: the list is empty afterwards. */
static inline BOOLEAN RemoveEntryList(PLIST_ENTRY Entry)
{
	PLIST_ENTRY next = Entry->Flink, previous = Entry->Blink;

	previous->Flink = next;
	next->Blink = previous;
	return (BOOLEAN)(next == previous);
}

static inline PLIST_ENTRY RemoveHeadList(PLIST_ENTRY ListHead)
{
	PLIST_ENTRY entry = ListHead->Flink;

	RemoveEntryList(entry);
	return entry;
}

static inline PLIST_ENTRY RemoveTailList(PLIST_ENTRY ListHead)
{
	PLIST_ENTRY entry = ListHead->Blink;

	RemoveEntryList(entry);
	return entry;
}

/* ---- arguments of DriverEntry and AddDevice; the port fills in the members declared here ---- */

typedef NTSTATUS DRIVER_INITIALIZE(struct _DRIVER_OBJECT *DriverObject,
				   PUNICODE_STRING RegistryPath);
typedef DRIVER_INITIALIZE *PDRIVER_INITIALIZE;
typedef VOID DRIVER_UNLOAD(struct _DRIVER_OBJECT *DriverObject);
typedef DRIVER_UNLOAD *PDRIVER_UNLOAD;

typedef NTSTATUS DRIVER_DISPATCH(struct _DEVICE_OBJECT *DeviceObject, struct _IRP *Irp);
typedef DRIVER_DISPATCH *PDRIVER_DISPATCH;

typedef ULONG DEVICE_TYPE;

typedef struct _DEVICE_OBJECT {
	SHORT Type;
	USHORT Size;
	LONG ReferenceCount;
	struct _DRIVER_OBJECT *DriverObject;
	struct _DEVICE_OBJECT *NextDevice;
	struct _DEVICE_OBJECT *AttachedDevice;
	struct _IRP *CurrentIrp;
	ULONG Flags;
	ULONG Characteristics;
	PVOID DeviceExtension;
	DEVICE_TYPE DeviceType;
	CCHAR StackSize;
	ULONG AlignmentRequirement;
} DEVICE_OBJECT;

/* Indices of MajorFunction. */
#define IRP_MJ_CREATE                   0x00
#define IRP_MJ_CREATE_NAMED_PIPE        0x01
#define IRP_MJ_CLOSE                    0x02
#define IRP_MJ_READ                     0x03
#define IRP_MJ_WRITE                    0x04
#define IRP_MJ_QUERY_INFORMATION        0x05
#define IRP_MJ_SET_INFORMATION          0x06
#define IRP_MJ_QUERY_EA                 0x07
#define IRP_MJ_SET_EA                   0x08
#define IRP_MJ_FLUSH_BUFFERS            0x09
#define IRP_MJ_QUERY_VOLUME_INFORMATION 0x0A
#define IRP_MJ_SET_VOLUME_INFORMATION   0x0B
#define IRP_MJ_DIRECTORY_CONTROL        0x0C
#define IRP_MJ_FILE_SYSTEM_CONTROL      0x0D
#define IRP_MJ_DEVICE_CONTROL           0x0E
#define IRP_MJ_INTERNAL_DEVICE_CONTROL  0x0F
#define IRP_MJ_SHUTDOWN                 0x10
#define IRP_MJ_LOCK_CONTROL             0x11
#define IRP_MJ_CLEANUP                  0x12
#define IRP_MJ_CREATE_MAILSLOT          0x13
#define IRP_MJ_QUERY_SECURITY           0x14
#define IRP_MJ_SET_SECURITY             0x15
#define IRP_MJ_POWER                    0x16
#define IRP_MJ_SYSTEM_CONTROL           0x17
#define IRP_MJ_DEVICE_CHANGE            0x18
#define IRP_MJ_QUERY_QUOTA              0x19
#define IRP_MJ_SET_QUOTA                0x1A
#define IRP_MJ_PNP                      0x1B
#define IRP_MJ_MAXIMUM_FUNCTION         0x1B

typedef struct _DRIVER_OBJECT {
	SHORT Type;
	SHORT Size;
	PDEVICE_OBJECT DeviceObject;
	ULONG Flags;
	UNICODE_STRING DriverName;
	PUNICODE_STRING HardwareDatabase;
	PDRIVER_INITIALIZE DriverInit;
	PDRIVER_UNLOAD DriverUnload;
	/* NULL: requests end with STATUS_INVALID_DEVICE_REQUEST */
	PDRIVER_DISPATCH MajorFunction[IRP_MJ_MAXIMUM_FUNCTION + 1];
} DRIVER_OBJECT;

#ifdef __cplusplus
}
#endif

#endif
