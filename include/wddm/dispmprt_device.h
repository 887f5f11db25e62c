/* SPDX-License-Identifier: MIT */
/*
 * The device as dispmprt.h sees it: children, start information, resources, docking, exclusion.
 * Part of dispmprt.h. Source: the pages DXGK_START_INFO, DXGK_DEVICE_INFO, DXGK_CHILD_DESCRIPTOR,
 * DXGK_CHILD_STATUS, DXGKCB_EXCLUDE_ADAPTER_ACCESS.
 */
#ifndef WDDM_DISPMPRT_DEVICE_H
#define WDDM_DISPMPRT_DEVICE_H

#include "wddm_kernel.h"
#include "d3dkmddi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The DeviceUid of the adapter itself; children have others. */
#define DISPLAY_ADAPTER_HW_ID 0xFFFFFFFFu

typedef enum _DXGK_CHILD_DEVICE_TYPE {
	TypeUninitialized = 0,
	TypeVideoOutput = 1,
	TypeOther = 2,
	TypeIntegratedDisplay = 3,
} DXGK_CHILD_DEVICE_TYPE;

typedef struct _DXGK_VIDEO_OUTPUT_CAPABILITIES {
	D3DKMDT_VIDEO_OUTPUT_TECHNOLOGY InterfaceTechnology;
	D3DKMDT_MONITOR_ORIENTATION_AWARENESS MonitorOrientationAwareness;
	BOOLEAN SupportsSdtvModes;
} DXGK_VIDEO_OUTPUT_CAPABILITIES, *PDXGK_VIDEO_OUTPUT_CAPABILITIES;

typedef struct _DXGK_INTEGRATED_DISPLAY_CHILD {
	D3DKMDT_VIDEO_OUTPUT_TECHNOLOGY InterfaceTechnology;
	USHORT DescriptorLength;
} DXGK_INTEGRATED_DISPLAY_CHILD, *PDXGK_INTEGRATED_DISPLAY_CHILD;

typedef struct _DXGK_CHILD_CAPABILITIES {
	union {
		DXGK_VIDEO_OUTPUT_CAPABILITIES VideoOutput;
		struct {
			UINT MustBeZero;
		} Other;
		DXGK_INTEGRATED_DISPLAY_CHILD IntegratedDisplayChild;
	} Type;
	DXGK_CHILD_DEVICE_HPD_AWARENESS HpdAwareness;
} DXGK_CHILD_CAPABILITIES, *PDXGK_CHILD_CAPABILITIES;

/* 28 bytes. ChildUid is a number that the miniport gave the child. */
typedef struct _DXGK_CHILD_DESCRIPTOR {
	DXGK_CHILD_DEVICE_TYPE ChildDeviceType;
	DXGK_CHILD_CAPABILITIES ChildCapabilities;
	ULONG AcpiUid;
	ULONG ChildUid;
} DXGK_CHILD_DESCRIPTOR, *PDXGK_CHILD_DESCRIPTOR;

typedef enum _DXGK_CHILD_STATUS_TYPE {
	StatusUninitialized = 0,
	StatusConnection = 1,
	StatusRotation = 2,
	StatusMiracastConnection = 3,
} DXGK_CHILD_STATUS_TYPE;

typedef struct _DXGK_CHILD_STATUS {
	DXGK_CHILD_STATUS_TYPE Type;
	ULONG ChildUid;
	union {
		struct {
			BOOLEAN Connected;
		} HotPlug;
		struct {
			UCHAR Angle;
		} Rotation;
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WDDM1_3
		struct {
			BOOLEAN Connected;
			D3DKMDT_VIDEO_OUTPUT_TECHNOLOGY MiracastMonitorType;
		} Miracast;
#endif
	};
} DXGK_CHILD_STATUS, *PDXGK_CHILD_STATUS;

typedef struct _DXGK_DEVICE_DESCRIPTOR {
	ULONG DescriptorOffset;
	ULONG DescriptorLength;
	PVOID DescriptorBuffer;
} DXGK_DEVICE_DESCRIPTOR, *PDXGK_DEVICE_DESCRIPTOR;

typedef struct _DXGK_CHILD_CONTAINER_ID {
	GUID ContainerId;
	struct {
		ULONG64 PortId;
		USHORT ManufacturerName;
		USHORT ProductCode;
	} EldInfo;
} DXGK_CHILD_CONTAINER_ID, *PDXGK_CHILD_CONTAINER_ID;

typedef enum _DXGK_EVENT_TYPE {
	DxgkUndefinedEvent = 0,
	DxgkAcpiEvent = 1,
	DxgkPowerStateEvent = 2,
	DxgkDockingEvent = 3,
} DXGK_EVENT_TYPE;

typedef enum _DXGK_SURPRISE_REMOVAL_TYPE {
	DxgkRemovalHibernation = 0,
	DxgkRemovalPnPNotify = 1,
} DXGK_SURPRISE_REMOVAL_TYPE;

typedef enum _DOCKING_STATE {
	DockStateUnsupported = 0,
	DockStateUnDocked = 1,
	DockStateDocked = 2,
	DockStateUnknown = 3,
} DOCKING_STATE;

typedef struct _LINKED_DEVICE {
	ULONG ChainUid;
	ULONG NumberOfLinksInChain;
	BOOLEAN LeadLink;
} LINKED_DEVICE, *PLINKED_DEVICE;

/* RequiredDmaQueueEntry: how many submissions the miniport must be able to hold at once.
 * 20 bytes, 28 from 1.2. */
typedef struct _DXGK_START_INFO {
	ULONG RequiredDmaQueueEntry;
	GUID AdapterGuid;
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WIN8
	LUID AdapterLuid;
#endif
} DXGK_START_INFO, *PDXGK_START_INFO;

/* Output of DxgkCbGetDeviceInformation. TranslatedResourceList stays valid until the device
 * stops; sizes in bytes. */
typedef struct _DXGK_DEVICE_INFO {
	PVOID MiniportDeviceContext;
	PDEVICE_OBJECT PhysicalDeviceObject;
	UNICODE_STRING DeviceRegistryPath;
	PCM_RESOURCE_LIST TranslatedResourceList;
	LARGE_INTEGER SystemMemorySize;
	PHYSICAL_ADDRESS HighestPhysicalAddress;
	PHYSICAL_ADDRESS AgpApertureBase;
	SIZE_T AgpApertureSize;
	DOCKING_STATE DockingState;
} DXGK_DEVICE_INFO, *PDXGK_DEVICE_INFO;

typedef enum _DXGK_SERVICES {
	DxgkServicesAgp = 0,
	DxgkServicesDebugReport = 1,
	DxgkServicesTimedOperation = 2,
	DxgkServicesSPB = 3,
	DxgkServicesBDD = 4,
	DxgkServicesFirmwareTable = 5,
} DXGK_SERVICES;

typedef DXGK_DISPLAY_INFORMATION *PDXGK_DISPLAY_INFORMATION;
typedef struct _DXGKARG_SYSTEM_DISPLAY_ENABLE_FLAGS {
	union {
		struct {
			UINT Reserved : 32; /* 0xFFFFFFFF */
		};
		UINT Value;
	};
} DXGKARG_SYSTEM_DISPLAY_ENABLE_FLAGS, *PDXGKARG_SYSTEM_DISPLAY_ENABLE_FLAGS;

/* DataType of the device space calls. */
#define DXGK_WHICHSPACE_CONFIG 0x00000000
#define DXGK_WHICHSPACE_ROM    0x52696350
#define DXGK_WHICHSPACE_MCH    0x80000000
#define DXGK_WHICHSPACE_BRIDGE 0x80000001

/* Attributes of DxgkCbExcludeAdapterAccess; the first two exclude each other. */
#define DXGK_EXCLUDE_EVICT_ALL        0x00000001
#define DXGK_EXCLUDE_CALL_SYNCHRONOUS 0x00000002
#define DXGK_EXCLUDE_BRIDGE_ACCESS    0x00000004

#ifdef __cplusplus
}
#endif

#endif
