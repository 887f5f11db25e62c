/* SPDX-License-Identifier: MIT */
/*
 * The kernel types that dispmprt.h uses: devices, resources, power, interfaces.
 * ntddk.h includes this header and adds the services; nothing here is defined twice.
 * Source: the wdm.h pages of CM_PARTIAL_RESOURCE_DESCRIPTOR, INTERFACE, QUERY_INTERFACE,
 * MEMORY_CACHING_TYPE, DEVICE_POWER_STATE, POWER_ACTION.
 */
#ifndef WDDM_WDDM_KERNEL_H
#define WDDM_WDDM_KERNEL_H

#include "wddm_object.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef ULONG_PTR KAFFINITY;
typedef UCHAR KIRQL;
typedef KIRQL *PKIRQL;

typedef struct _DEVICE_OBJECT *PDEVICE_OBJECT;
typedef struct _DRIVER_OBJECT *PDRIVER_OBJECT;

typedef struct _VIDEO_REQUEST_PACKET *PVIDEO_REQUEST_PACKET;
typedef struct _ACPI_EVAL_INPUT_BUFFER_COMPLEX *PACPI_EVAL_INPUT_BUFFER_COMPLEX;
typedef struct _ACPI_EVAL_OUTPUT_BUFFER *PACPI_EVAL_OUTPUT_BUFFER;
typedef struct _PCI_DEVICE_PRESENCE_PARAMETERS *PPCI_DEVICE_PRESENCE_PARAMETERS;

typedef enum _MEMORY_CACHING_TYPE {
	MmNonCached = 0,
	MmCached = 1,
	MmWriteCombined = 2,
	MmHardwareCoherentCached = 3,
	MmNonCachedUnordered = 4,
	MmUSWCCached = 5,
	MmMaximumCacheType = 6,
	MmNotMapped = -1,
} MEMORY_CACHING_TYPE;

typedef enum _DEVICE_POWER_STATE {
	PowerDeviceUnspecified = 0,
	PowerDeviceD0 = 1,
	PowerDeviceD1 = 2,
	PowerDeviceD2 = 3,
	PowerDeviceD3 = 4,
	PowerDeviceMaximum = 5,
} DEVICE_POWER_STATE;

typedef enum _POWER_ACTION {
	PowerActionNone = 0,
	PowerActionReserved = 1,
	PowerActionSleep = 2,
	PowerActionHibernate = 3,
	PowerActionShutdown = 4,
	PowerActionShutdownReset = 5,
	PowerActionShutdownOff = 6,
	PowerActionWarmEject = 7,
	PowerActionDisplayOff = 8,
} POWER_ACTION;

typedef enum _INTERFACE_TYPE {
	InterfaceTypeUndefined = -1,
	Internal = 0,
	Isa = 1,
	Eisa = 2,
	MicroChannel = 3,
	TurboChannel = 4,
	PCIBus = 5,
} INTERFACE_TYPE;

/* Runs at device IRQL with the interrupt locked out. */
typedef BOOLEAN KSYNCHRONIZE_ROUTINE(PVOID SynchronizeContext);
typedef KSYNCHRONIZE_ROUTINE *PKSYNCHRONIZE_ROUTINE;

typedef VOID INTERFACE_REFERENCE(PVOID Context);
typedef INTERFACE_REFERENCE *PINTERFACE_REFERENCE;
typedef VOID INTERFACE_DEREFERENCE(PVOID Context);
typedef INTERFACE_DEREFERENCE *PINTERFACE_DEREFERENCE;

typedef struct _INTERFACE {
	USHORT Size;
	USHORT Version;
	PVOID Context;
	PINTERFACE_REFERENCE InterfaceReference;
	PINTERFACE_DEREFERENCE InterfaceDereference;
} INTERFACE, *PINTERFACE;

typedef struct _QUERY_INTERFACE {
	const GUID *InterfaceType;
	USHORT Size;
	USHORT Version;
	PINTERFACE Interface;
	PVOID InterfaceSpecificData;
} QUERY_INTERFACE, *PQUERY_INTERFACE;

/* What kind of resource a descriptor is. */
#define CmResourceTypeNull           0
#define CmResourceTypePort           1
#define CmResourceTypeInterrupt      2
#define CmResourceTypeMemory         3
#define CmResourceTypeDma            4
#define CmResourceTypeDeviceSpecific 5
#define CmResourceTypeBusNumber      6
#define CmResourceTypeMemoryLarge    7
#define CmResourceTypeDevicePrivate  129
#define CmResourceTypeConnection     132

/* A connection to a serial bus, which the resource hub names by a 64-bit id. */
#define CM_RESOURCE_CONNECTION_CLASS_GPIO      0x01
#define CM_RESOURCE_CONNECTION_CLASS_SERIAL    0x02
#define CM_RESOURCE_CONNECTION_TYPE_SERIAL_I2C 0x01
#define CM_RESOURCE_CONNECTION_TYPE_SERIAL_SPI 0x02

#define CM_RESOURCE_MEMORY_READ_WRITE         0x0000
#define CM_RESOURCE_MEMORY_READ_ONLY          0x0001
#define CM_RESOURCE_MEMORY_PREFETCHABLE       0x0004
#define CM_RESOURCE_INTERRUPT_LEVEL_SENSITIVE 0x0000
#define CM_RESOURCE_INTERRUPT_LATCHED         0x0001
#define CM_RESOURCE_INTERRUPT_MESSAGE         0x0002

/* One resource of a device: 20 bytes, packed to 4 as the lists are stored. */
#pragma pack(push, 4)
typedef struct _CM_PARTIAL_RESOURCE_DESCRIPTOR {
	UCHAR Type;
	UCHAR ShareDisposition;
	USHORT Flags;
	union {
		struct {
			PHYSICAL_ADDRESS Start;
			ULONG Length;
		} Generic;
		struct {
			PHYSICAL_ADDRESS Start;
			ULONG Length;
		} Port;
		struct {
			PHYSICAL_ADDRESS Start;
			ULONG Length;
		} Memory;
		struct {
			ULONG Level;
			ULONG Vector;
			KAFFINITY Affinity;
		} Interrupt;
		struct {
			union {
				struct {
					USHORT Group;
					USHORT MessageCount;
					ULONG Vector;
					KAFFINITY Affinity;
				} Raw;
				struct {
					ULONG Level;
					ULONG Vector;
					KAFFINITY Affinity;
				} Translated;
			};
		} MessageInterrupt;
		struct {
			ULONG Channel;
			ULONG Port;
			ULONG Reserved1;
		} Dma;
		struct {
			ULONG Data[3];
		} DevicePrivate;
		struct {
			ULONG Start;
			ULONG Length;
			ULONG Reserved;
		} BusNumber;
		struct {
			UCHAR Class;
			UCHAR Type;
			UCHAR Reserved1;
			UCHAR Reserved2;
			ULONG IdLowPart;
			ULONG IdHighPart;
		} Connection;
		struct {
			ULONG DataSize;
			ULONG Reserved1;
			ULONG Reserved2;
		} DeviceSpecificData;
	} u;
} CM_PARTIAL_RESOURCE_DESCRIPTOR, *PCM_PARTIAL_RESOURCE_DESCRIPTOR;

typedef struct _CM_PARTIAL_RESOURCE_LIST {
	USHORT Version;
	USHORT Revision;
	ULONG Count;
	CM_PARTIAL_RESOURCE_DESCRIPTOR PartialDescriptors[1];
} CM_PARTIAL_RESOURCE_LIST, *PCM_PARTIAL_RESOURCE_LIST;

typedef struct _CM_FULL_RESOURCE_DESCRIPTOR {
	INTERFACE_TYPE InterfaceType;
	ULONG BusNumber;
	CM_PARTIAL_RESOURCE_LIST PartialResourceList;
} CM_FULL_RESOURCE_DESCRIPTOR, *PCM_FULL_RESOURCE_DESCRIPTOR;

typedef struct _CM_RESOURCE_LIST {
	ULONG Count;
	CM_FULL_RESOURCE_DESCRIPTOR List[1];
} CM_RESOURCE_LIST, *PCM_RESOURCE_LIST;
#pragma pack(pop)

#ifdef __cplusplus
}
#endif

#endif
