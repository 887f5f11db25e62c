/* SPDX-License-Identifier: MIT */
/*
 * DRIVER_INITIALIZATION_DATA: what a miniport registers. Part of dispmprt.h. Entries typed
 * PDXGKDDI_RESERVED are for displays, doorbells and logs, which vidmm does not drive; it never
 * calls them, and their argument types are not declared. Source: the DRIVER_INITIALIZATION_DATA
 * page; sizes are checked by tests/abi.
 */
#ifndef WDDM_DISPMPRT_INIT_H
#define WDDM_DISPMPRT_INIT_H

#include "dispmprt_service.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The miniport's table of entry points. Each interface version appends members. Version is
 * the one that the miniport was written for: an interface version of wddm_versions.h.
 * Sizes on x64: 496 (1.0), 568 (1.1), 664 (1.2), 712 (1.3), 832 (2.0), 880 (2.1), 1032 (2.2),
 * 1056 (2.3), 1152 (2.4), 1192 (2.5), 1224 (2.6), 1232 (2.7, 2.8), 1264 (2.9), 1296 (3.0), 1376
 * (3.1). What 3.2 appends is for displays and virtual functions and is not declared.
 */
typedef struct _DRIVER_INITIALIZATION_DATA {
	ULONG Version;
	PDXGKDDI_ADD_DEVICE DxgkDdiAddDevice;
	PDXGKDDI_START_DEVICE DxgkDdiStartDevice;
	PDXGKDDI_STOP_DEVICE DxgkDdiStopDevice;
	PDXGKDDI_REMOVE_DEVICE DxgkDdiRemoveDevice;
	PDXGKDDI_DISPATCH_IO_REQUEST DxgkDdiDispatchIoRequest;
	PDXGKDDI_INTERRUPT_ROUTINE DxgkDdiInterruptRoutine;
	PDXGKDDI_DPC_ROUTINE DxgkDdiDpcRoutine;
	PDXGKDDI_QUERY_CHILD_RELATIONS DxgkDdiQueryChildRelations;
	PDXGKDDI_QUERY_CHILD_STATUS DxgkDdiQueryChildStatus;
	PDXGKDDI_QUERY_DEVICE_DESCRIPTOR DxgkDdiQueryDeviceDescriptor;
	PDXGKDDI_SET_POWER_STATE DxgkDdiSetPowerState;
	PDXGKDDI_NOTIFY_ACPI_EVENT DxgkDdiNotifyAcpiEvent;
	PDXGKDDI_RESET_DEVICE DxgkDdiResetDevice;
	PDXGKDDI_UNLOAD DxgkDdiUnload;
	PDXGKDDI_QUERY_INTERFACE DxgkDdiQueryInterface;
	PDXGKDDI_CONTROL_ETW_LOGGING DxgkDdiControlEtwLogging;
	PDXGKDDI_QUERYADAPTERINFO DxgkDdiQueryAdapterInfo;
	PDXGKDDI_CREATEDEVICE DxgkDdiCreateDevice;
	PDXGKDDI_CREATEALLOCATION DxgkDdiCreateAllocation;
	PDXGKDDI_DESTROYALLOCATION DxgkDdiDestroyAllocation;
	PDXGKDDI_DESCRIBEALLOCATION DxgkDdiDescribeAllocation;
	PDXGKDDI_GETSTANDARDALLOCATIONDRIVERDATA DxgkDdiGetStandardAllocationDriverData;
	PDXGKDDI_ACQUIRESWIZZLINGRANGE DxgkDdiAcquireSwizzlingRange;
	PDXGKDDI_RELEASESWIZZLINGRANGE DxgkDdiReleaseSwizzlingRange;
	PDXGKDDI_PATCH DxgkDdiPatch;
	PDXGKDDI_SUBMITCOMMAND DxgkDdiSubmitCommand;
	PDXGKDDI_PREEMPTCOMMAND DxgkDdiPreemptCommand;
	PDXGKDDI_BUILDPAGINGBUFFER DxgkDdiBuildPagingBuffer;
	PDXGKDDI_SETPALETTE DxgkDdiSetPalette;
	PDXGKDDI_SETPOINTERPOSITION DxgkDdiSetPointerPosition;
	PDXGKDDI_SETPOINTERSHAPE DxgkDdiSetPointerShape;
	PDXGKDDI_RESETFROMTIMEOUT DxgkDdiResetFromTimeout;
	PDXGKDDI_RESTARTFROMTIMEOUT DxgkDdiRestartFromTimeout;
	PDXGKDDI_ESCAPE DxgkDdiEscape;
	PDXGKDDI_COLLECTDBGINFO DxgkDdiCollectDbgInfo;
	PDXGKDDI_QUERYCURRENTFENCE DxgkDdiQueryCurrentFence;
	PDXGKDDI_ISSUPPORTEDVIDPN DxgkDdiIsSupportedVidPn;
	PDXGKDDI_RECOMMENDFUNCTIONALVIDPN DxgkDdiRecommendFunctionalVidPn;
	PDXGKDDI_ENUMVIDPNCOFUNCMODALITY DxgkDdiEnumVidPnCofuncModality;
	PDXGKDDI_SETVIDPNSOURCEADDRESS DxgkDdiSetVidPnSourceAddress;
	PDXGKDDI_SETVIDPNSOURCEVISIBILITY DxgkDdiSetVidPnSourceVisibility;
	PDXGKDDI_COMMITVIDPN DxgkDdiCommitVidPn;
	PDXGKDDI_UPDATEACTIVEVIDPNPRESENTPATH DxgkDdiUpdateActiveVidPnPresentPath;
	PDXGKDDI_RECOMMENDMONITORMODES DxgkDdiRecommendMonitorModes;
	PDXGKDDI_RECOMMENDVIDPNTOPOLOGY DxgkDdiRecommendVidPnTopology;
	PDXGKDDI_GETSCANLINE DxgkDdiGetScanLine;
	PDXGKDDI_STOPCAPTURE DxgkDdiStopCapture;
	PDXGKDDI_CONTROLINTERRUPT DxgkDdiControlInterrupt;
	PDXGKDDI_CREATEOVERLAY DxgkDdiCreateOverlay;
	PDXGKDDI_DESTROYDEVICE DxgkDdiDestroyDevice;
	PDXGKDDI_OPENALLOCATIONINFO DxgkDdiOpenAllocation;
	PDXGKDDI_CLOSEALLOCATION DxgkDdiCloseAllocation;
	PDXGKDDI_RENDER DxgkDdiRender;
	PDXGKDDI_PRESENT DxgkDdiPresent;
	PDXGKDDI_UPDATEOVERLAY DxgkDdiUpdateOverlay;
	PDXGKDDI_FLIPOVERLAY DxgkDdiFlipOverlay;
	PDXGKDDI_DESTROYOVERLAY DxgkDdiDestroyOverlay;
	PDXGKDDI_CREATECONTEXT DxgkDdiCreateContext;
	PDXGKDDI_DESTROYCONTEXT DxgkDdiDestroyContext;
	PDXGKDDI_LINK_DEVICE DxgkDdiLinkDevice;
	PDXGKDDI_SETDISPLAYPRIVATEDRIVERFORMAT DxgkDdiSetDisplayPrivateDriverFormat;
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WIN7
	PDXGKDDI_RESERVED DxgkDdiDescribePageTable;
	PDXGKDDI_RESERVED DxgkDdiUpdatePageTable;
	PDXGKDDI_RESERVED DxgkDdiUpdatePageDirectory;
	PDXGKDDI_RESERVED DxgkDdiMovePageDirectory;
	PDXGKDDI_RESERVED DxgkDdiSubmitRender;
	PDXGKDDI_RESERVED DxgkDdiCreateAllocation2;
	PDXGKDDI_RENDER DxgkDdiRenderKm;
	VOID *Reserved;
	PDXGKDDI_QUERYVIDPNHWCAPABILITY DxgkDdiQueryVidPnHWCapability;
#endif
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WIN8
	PDXGKDDISETPOWERCOMPONENTFSTATE DxgkDdiSetPowerComponentFState;
	PDXGKDDI_QUERYDEPENDENTENGINEGROUP DxgkDdiQueryDependentEngineGroup;
	PDXGKDDI_QUERYENGINESTATUS DxgkDdiQueryEngineStatus;
	PDXGKDDI_RESETENGINE DxgkDdiResetEngine;
	PDXGKDDI_STOP_DEVICE_AND_RELEASE_POST_DISPLAY_OWNERSHIP
	DxgkDdiStopDeviceAndReleasePostDisplayOwnership;
	PDXGKDDI_SYSTEM_DISPLAY_ENABLE DxgkDdiSystemDisplayEnable;
	PDXGKDDI_SYSTEM_DISPLAY_WRITE DxgkDdiSystemDisplayWrite;
	PDXGKDDI_CANCELCOMMAND DxgkDdiCancelCommand;
	PDXGKDDI_GET_CHILD_CONTAINER_ID DxgkDdiGetChildContainerId;
	PDXGKDDIPOWERRUNTIMECONTROLREQUEST DxgkDdiPowerRuntimeControlRequest;
	PDXGKDDI_RESERVED DxgkDdiSetVidPnSourceAddressWithMultiPlaneOverlay;
	PDXGKDDI_NOTIFY_SURPRISE_REMOVAL DxgkDdiNotifySurpriseRemoval;
#endif
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WDDM1_3
	PDXGKDDI_GETNODEMETADATA DxgkDdiGetNodeMetadata;
	PDXGKDDISETPOWERPSTATE DxgkDdiSetPowerPState;
	PDXGKDDI_CONTROLINTERRUPT2 DxgkDdiControlInterrupt2;
	PDXGKDDI_RESERVED DxgkDdiCheckMultiPlaneOverlaySupport;
	PDXGKDDI_CALIBRATEGPUCLOCK DxgkDdiCalibrateGpuClock;
	PDXGKDDI_FORMATHISTORYBUFFER DxgkDdiFormatHistoryBuffer;
#endif
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WDDM2_0
	PDXGKDDI_RENDERGDI DxgkDdiRenderGdi;
	PDXGKDDI_SUBMITCOMMANDVIRTUAL DxgkDdiSubmitCommandVirtual;
	PDXGKDDI_SETROOTPAGETABLE DxgkDdiSetRootPageTable;
	PDXGKDDI_GETROOTPAGETABLESIZE DxgkDdiGetRootPageTableSize;
	PDXGKDDI_MAPCPUHOSTAPERTURE DxgkDdiMapCpuHostAperture;
	PDXGKDDI_UNMAPCPUHOSTAPERTURE DxgkDdiUnmapCpuHostAperture;
	PDXGKDDI_RESERVED DxgkDdiCheckMultiPlaneOverlaySupport2;
	PDXGKDDI_CREATEPROCESS DxgkDdiCreateProcess;
	PDXGKDDI_DESTROYPROCESS DxgkDdiDestroyProcess;
	PDXGKDDI_RESERVED DxgkDdiSetVidPnSourceAddressWithMultiPlaneOverlay2;
	VOID *Reserved1;
	VOID *Reserved2;
	PDXGKDDI_RESERVED DxgkDdiPowerRuntimeSetDeviceHandle;
	PDXGKDDI_RESERVED DxgkDdiSetStablePowerState;
	PDXGKDDI_RESERVED DxgkDdiSetVideoProtectedRegion;
#endif
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WDDM2_1
	PDXGKDDI_RESERVED DxgkDdiCheckMultiPlaneOverlaySupport3;
	PDXGKDDI_RESERVED DxgkDdiSetVidPnSourceAddressWithMultiPlaneOverlay3;
	PDXGKDDI_RESERVED DxgkDdiPostMultiPlaneOverlayPresent;
	PDXGKDDI_VALIDATEUPDATEALLOCPROPERTY DxgkDdiValidateUpdateAllocationProperty;
	PDXGKDDI_RESERVED DxgkDdiControlModeBehavior;
	PDXGKDDI_RESERVED DxgkDdiUpdateMonitorLinkInfo;
#endif
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WDDM2_2
	PDXGKDDI_CREATEHWCONTEXT DxgkDdiCreateHwContext;
	PDXGKDDI_DESTROYHWCONTEXT DxgkDdiDestroyHwContext;
	PDXGKDDI_CREATEHWQUEUE DxgkDdiCreateHwQueue;
	PDXGKDDI_DESTROYHWQUEUE DxgkDdiDestroyHwQueue;
	PDXGKDDI_SUBMITCOMMANDTOHWQUEUE DxgkDdiSubmitCommandToHwQueue;
	PDXGKDDI_SWITCHTOHWCONTEXTLIST DxgkDdiSwitchToHwContextList;
	PDXGKDDI_RESETHWENGINE DxgkDdiResetHwEngine;
	PDXGKDDI_CREATEPERIODICFRAMENOTIFICATION DxgkDdiCreatePeriodicFrameNotification;
	PDXGKDDI_DESTROYPERIODICFRAMENOTIFICATION DxgkDdiDestroyPeriodicFrameNotification;
	PDXGKDDI_RESERVED DxgkDdiSetTimingsFromVidPn;
	PDXGKDDI_RESERVED DxgkDdiSetTargetGamma;
	PDXGKDDI_RESERVED DxgkDdiSetTargetContentType;
	PDXGKDDI_RESERVED DxgkDdiSetTargetAnalogCopyProtection;
	PDXGKDDI_RESERVED DxgkDdiSetTargetAdjustedColorimetry;
	PDXGKDDI_RESERVED DxgkDdiDisplayDetectControl;
	PDXGKDDI_RESERVED DxgkDdiQueryConnectionChange;
	PDXGKDDI_RESERVED DxgkDdiExchangePreStartInfo;
	PDXGKDDI_RESERVED DxgkDdiGetMultiPlaneOverlayCaps;
	PDXGKDDI_RESERVED DxgkDdiGetPostCompositionCaps;
#endif
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WDDM2_3
	PDXGKDDI_RESERVED DxgkDdiUpdateHwContextState;
	PDXGKDDI_RESERVED DxgkDdiCreateProtectedSession;
	PDXGKDDI_RESERVED DxgkDdiDestroyProtectedSession;
#endif
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WDDM2_4
	PDXGKDDI_RESERVED DxgkDdiSetSchedulingLogBuffer;
	PDXGKDDI_SETUPPRIORITYBANDS DxgkDdiSetupPriorityBands;
	PDXGKDDI_RESERVED DxgkDdiNotifyFocusPresent;
	PDXGKDDI_SETCONTEXTSCHEDULINGPROPERTIES DxgkDdiSetContextSchedulingProperties;
	PDXGKDDI_SUSPENDCONTEXT DxgkDdiSuspendContext;
	PDXGKDDI_RESUMECONTEXT DxgkDdiResumeContext;
	PDXGKDDI_RESERVED DxgkDdiSetVirtualMachineData;
	PDXGKDDI_RESERVED DxgkDdiBeginExclusiveAccess;
	PDXGKDDI_RESERVED DxgkDdiEndExclusiveAccess;
	PDXGKDDI_RESERVED DxgkDdiQueryDiagnosticTypesSupport;
	PDXGKDDI_RESERVED DxgkDdiControlDiagnosticReporting;
	PDXGKDDI_RESUMEHWENGINE DxgkDdiResumeHwEngine;
#endif
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WDDM2_5
	PDXGKDDI_RESERVED DxgkDdiSignalMonitoredFence;
	PDXGKDDI_PRESENTTOHWQUEUE DxgkDdiPresentToHwQueue;
	PDXGKDDI_VALIDATESUBMITCOMMAND DxgkDdiValidateSubmitCommand;
	PDXGKDDI_RESERVED DxgkDdiSetTargetAdjustedColorimetry2;
	PDXGKDDI_RESERVED DxgkDdiSetTrackedWorkloadPowerLevel;
#endif
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WDDM2_6
	PDXGKDDI_RESERVED DxgkDdiSaveMemoryForHotUpdate;
	PDXGKDDI_RESERVED DxgkDdiRestoreMemoryForHotUpdate;
	PDXGKDDI_RESERVED DxgkDdiCollectDiagnosticInfo;
	VOID *Reserved3;
#endif
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WDDM2_7
	PDXGKDDI_RESERVED DxgkDdiControlInterrupt3;
#endif
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WDDM2_9
	PDXGKDDI_RESERVED DxgkDdiSetFlipQueueLogBuffer;
	PDXGKDDI_RESERVED DxgkDdiUpdateFlipQueueLog;
	PDXGKDDI_RESERVED DxgkDdiCancelQueuedFlips;
	PDXGKDDI_RESERVED DxgkDdiSetInterruptTargetPresentId;
#endif
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WDDM3_0
	PDXGKDDI_SETALLOCATIONBACKINGSTORE DxgkDdiSetAllocationBackingStore;
	PDXGKDDI_CREATECPUEVENT DxgkDdiCreateCpuEvent;
	PDXGKDDI_DESTROYCPUEVENT DxgkDdiDestroyCpuEvent;
	PDXGKDDI_RESERVED DxgkDdiCancelFlips;
#endif
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WDDM3_1
	PDXGKDDI_RESERVED DxgkDdiCreateNativeFence;
	PDXGKDDI_RESERVED DxgkDdiDestroyNativeFence;
	PDXGKDDI_RESERVED DxgkDdiUpdateMonitoredValues;
	PDXGKDDI_RESERVED DxgkDdiNotifyCurrentValueUpdates;
	PDXGKDDI_RESERVED DxgkDdiCreateDoorbell;
	PDXGKDDI_RESERVED DxgkDdiConnectDoorbell;
	PDXGKDDI_RESERVED DxgkDdiDisconnectDoorbell;
	PDXGKDDI_RESERVED DxgkDdiDestroyDoorbell;
	PDXGKDDI_RESERVED DxgkDdiNotifyWorkSubmission;
	PDXGKDDI_RESERVED DxgkDdiFlushHwQueue;
#endif
} DRIVER_INITIALIZATION_DATA, *PDRIVER_INITIALIZATION_DATA;

/* Registers a miniport with the port: called once, from the miniport's DriverEntry. */
NTSTATUS DxgkInitialize(PDRIVER_OBJECT DriverObject, PUNICODE_STRING RegistryPath,
			PDRIVER_INITIALIZATION_DATA DriverInitializationData);
NTSTATUS DxgkUnInitialize(PDRIVER_OBJECT DriverObject);

#ifdef __cplusplus
}
#endif

#endif
