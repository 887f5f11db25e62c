/* SPDX-License-Identifier: MIT */
/*
 * The arguments of a miniport's callbacks: interrupts, handle data, context allocations.
 * Part of d3dkmddi.h. Source: the pages DXGKARGCB_NOTIFY_INTERRUPT_DATA, DXGKARGCB_GETHANDLEDATA,
 * DXGKARGCB_CREATECONTEXTALLOCATION and the related pages.
 */
#ifndef WDDM_KMDDI_CALLBACK_H
#define WDDM_KMDDI_CALLBACK_H

#include "kmddi_alloc.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum _DXGK_INTERRUPT_TYPE {
	DXGK_INTERRUPT_DMA_COMPLETED = 1,
	DXGK_INTERRUPT_DMA_PREEMPTED = 2,
	DXGK_INTERRUPT_CRTC_VSYNC = 3,
	DXGK_INTERRUPT_DMA_FAULTED = 4,
	DXGK_INTERRUPT_DISPLAYONLY_VSYNC = 5,
	DXGK_INTERRUPT_DISPLAYONLY_PRESENT_PROGRESS = 6,
	DXGK_INTERRUPT_CRTC_VSYNC_WITH_MULTIPLANE_OVERLAY = 7,
	DXGK_INTERRUPT_MICACAST_CHUNK_PROCESSING_COMPLETE = 8,
	DXGK_INTERRUPT_DMA_PAGE_FAULTED = 9,
	DXGK_INTERRUPT_CRTC_VSYNC_WITH_MULTIPLANE_OVERLAY2 = 10,
	DXGK_INTERRUPT_MONITORED_FENCE_SIGNALED = 11,
	DXGK_INTERRUPT_HWQUEUE_PAGE_FAULTED = 12,
	DXGK_INTERRUPT_HWCONTEXTLIST_SWITCH_COMPLETED = 13,
	DXGK_INTERRUPT_PERIODIC_MONITORED_FENCE_SIGNALED = 14,
	DXGK_INTERRUPT_SCHEDULING_LOG_INTERRUPT = 15,
	DXGK_INTERRUPT_GPU_ENGINE_TIMEOUT = 16,
	DXGK_INTERRUPT_SUSPEND_CONTEXT_COMPLETED = 17,
	DXGK_INTERRUPT_CRTC_VSYNC_WITH_MULTIPLANE_OVERLAY3 = 18,
	DXGK_INTERRUPT_NATIVE_FENCE_SIGNALED = 19,
	DXGK_INTERRUPT_GPU_ENGINE_STATE_CHANGE = 20,
} DXGK_INTERRUPT_TYPE;

typedef struct _DXGKCB_NOTIFY_INTERRUPT_DATA_FLAGS {
	union {
		struct {
			UINT ValidPhysicalAdapterMask : 1; /* 0x00000001 */
			UINT HsyncFlipCompletion : 1;      /* 0x00000002 */
			UINT Reserved : 30;                /* 0xFFFFFFFC */
		};
		UINT Value;
	};
} DXGKCB_NOTIFY_INTERRUPT_DATA_FLAGS;

struct _DXGK_MULTIPLANE_OVERLAY_VSYNC_INFO;

/*
 * DxgkCbNotifyInterrupt's argument: 80 bytes, the payload at 8, Flags at 72. Valid only at device
 * IRQL. Source: the page of the structure; rules SUB-*, PRE-*, TDR-*.
 */
typedef struct _DXGKARGCB_NOTIFY_INTERRUPT_DATA {
	DXGK_INTERRUPT_TYPE InterruptType;
	union {
		struct {
			UINT SubmissionFenceId;
			UINT NodeOrdinal;
			UINT EngineOrdinal;
		} DmaCompleted;
		struct {
			UINT PreemptionFenceId;
			UINT LastCompletedFenceId;
			UINT NodeOrdinal;
			UINT EngineOrdinal;
		} DmaPreempted;
		struct {
			UINT FaultedFenceId;
			NTSTATUS Status;
			UINT NodeOrdinal;
			UINT EngineOrdinal;
		} DmaFaulted;
		struct {
			D3DDDI_VIDEO_PRESENT_TARGET_ID VidPnTargetId;
			PHYSICAL_ADDRESS PhysicalAddress;
			UINT PhysicalAdapterMask;
		} CrtcVsync;
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WIN8
		struct {
			D3DDDI_VIDEO_PRESENT_TARGET_ID VidPnTargetId;
		} DisplayOnlyVsync;
		struct {
			D3DDDI_VIDEO_PRESENT_TARGET_ID VidPnTargetId;
			UINT PhysicalAdapterMask;
			UINT MultiPlaneOverlayVsyncInfoCount;
			struct _DXGK_MULTIPLANE_OVERLAY_VSYNC_INFO *pMultiPlaneOverlayVsyncInfo;
		} CrtcVsyncWithMultiPlaneOverlay;
#endif
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WDDM2_0
		struct {
			UINT FaultedFenceId;
			UINT64 FaultedPrimitiveAPISequenceNumber;
			DXGK_RENDER_PIPELINE_STAGE FaultedPipelineStage;
			UINT FaultedBindTableEntry;
			DXGK_PAGE_FAULT_FLAGS PageFaultFlags;
			D3DGPU_VIRTUAL_ADDRESS FaultedVirtualAddress;
			UINT NodeOrdinal;
			UINT EngineOrdinal;
			UINT PageTableLevel;
			DXGK_FAULT_ERROR_CODE FaultErrorCode;
			HANDLE FaultedProcessHandle;
		} DmaPageFaulted;
#endif
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WDDM2_2
		struct {
			UINT NodeOrdinal;
			UINT EngineOrdinal;
		} MonitoredFenceSignaled;
		struct {
			UINT64 FaultedFenceId;
			D3DGPU_VIRTUAL_ADDRESS FaultedVirtualAddress;
			UINT64 FaultedPrimitiveAPISequenceNumber;
			union {
				HANDLE FaultedHwQueue;
				HANDLE FaultedHwContext;
				HANDLE FaultedProcessHandle;
			};
			UINT NodeOrdinal;
			UINT EngineOrdinal;
			DXGK_RENDER_PIPELINE_STAGE FaultedPipelineStage;
			UINT FaultedBindTableEntry;
			DXGK_PAGE_FAULT_FLAGS PageFaultFlags;
			UINT PageTableLevel;
			DXGK_FAULT_ERROR_CODE FaultErrorCode;
		} HwQueuePageFaulted;
		struct {
			UINT NodeOrdinal;
			UINT EngineOrdinal;
			UINT ContextSwitchFence;
		} HwContextListSwitchCompleted;
		struct {
			D3DDDI_VIDEO_PRESENT_TARGET_ID VidPnTargetId;
			UINT NotificationID;
		} PeriodicMonitoredFenceSignaled;
#endif
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WDDM2_4
		struct {
			UINT NodeOrdinal;
			UINT EngineOrdinal;
		} SchedulingLogInterrupt;
		struct {
			UINT NodeOrdinal;
			UINT EngineOrdinal;
		} GpuEngineTimeout;
		struct {
			HANDLE hContext;
			UINT64 ContextSuspendFence;
		} SuspendContextCompleted;
#endif
		struct {
			UINT Reserved[16];
		} Reserved;
	};
	DXGKCB_NOTIFY_INTERRUPT_DATA_FLAGS Flags;
} DXGKARGCB_NOTIFY_INTERRUPT_DATA;

typedef enum _DXGK_HANDLE_TYPE {
	DXGK_HANDLE_ALLOCATION = 1,
	DXGK_HANDLE_RESOURCE = 2,
} DXGK_HANDLE_TYPE;

typedef struct _DXGKCB_GETHANDLEDATAFLAGS {
	union {
		struct {
			UINT DeviceSpecific : 1; /* 0x00000001 */
			UINT Reserved : 31;      /* 0xFFFFFFFE */
		};
		UINT Value;
	};
} DXGKCB_GETHANDLEDATAFLAGS;

/* Translates the port's handle to the miniport's handle, or with DeviceSpecific to the
 * one it returned from DxgkDdiOpenAllocation. */
typedef struct _DXGKARGCB_GETHANDLEDATA {
	D3DKMT_HANDLE hObject;
	DXGK_HANDLE_TYPE Type;
	DXGKCB_GETHANDLEDATAFLAGS Flags;
} DXGKARGCB_GETHANDLEDATA;

/* Index counts from 0. */
typedef struct _DXGKARGCB_ENUMHANDLECHILDREN {
	D3DKMT_HANDLE hObject;
	UINT Index;
} DXGKARGCB_ENUMHANDLECHILDREN;

typedef struct _DXGKARGCB_GETCAPTUREADDRESS {
	D3DKMT_HANDLE hAllocation;
	UINT SegmentId;
	PHYSICAL_ADDRESS PhysicalAddress;
} DXGKARGCB_GETCAPTUREADDRESS;

typedef struct _DXGK_CREATECONTEXTALLOCATIONFLAGS {
	union {
		struct {
			UINT SharedAcrossContexts : 1; /* 0x00000001 */
			UINT MapGpuVirtualAddress : 1; /* 0x00000002 */
			UINT Reserved : 30;            /* 0xFFFFFFFC */
		};
		UINT Value;
	};
} DXGK_CREATECONTEXTALLOCATIONFLAGS;

typedef struct _DXGKARGCB_CREATECONTEXTALLOCATION {
	DXGK_CREATECONTEXTALLOCATIONFLAGS ContextAllocationFlags;
	HANDLE hAdapter;
	HANDLE hDevice;
	HANDLE hContext;
	HANDLE hDriverAllocation;
	SIZE_T Size;
	UINT Alignment;
	UINT SupportedSegmentSet;
	UINT EvictionSegmentSet;
	DXGK_SEGMENTPREFERENCE PreferredSegment;
	DXGK_SEGMENTBANKPREFERENCE HintedBank;
	DXGK_ALLOCATIONINFOFLAGS Flags;
	HANDLE hAllocation;
} DXGKARGCB_CREATECONTEXTALLOCATION;

typedef struct _DXGKARGCB_MAPCONTEXTALLOCATION {
	D3DGPU_VIRTUAL_ADDRESS BaseAddress;
	D3DGPU_VIRTUAL_ADDRESS MinimumAddress;
	D3DGPU_VIRTUAL_ADDRESS MaximumAddress;
	HANDLE hAllocation;
	D3DGPU_SIZE_T OffsetInPages;
	D3DGPU_SIZE_T SizeInPages;
	D3DDDIGPUVIRTUALADDRESS_PROTECTION_TYPE Protection;
	UINT64 DriverProtection;
} DXGKARGCB_MAPCONTEXTALLOCATION;

typedef struct _DXGKARGCB_UPDATECONTEXTALLOCATION {
	HANDLE hAllocation;
	PVOID pPrivateDriverData;
	UINT PrivateDriverDataSize;
} DXGKARGCB_UPDATECONTEXTALLOCATION;

typedef struct _DXGKARGCB_RESERVEGPUVIRTUALADDRESSRANGE {
	HANDLE hDxgkProcess;
	UINT64 SizeInBytes;
	UINT Alignment;
	UINT64 StartVirtualAddress;
	UINT64 BaseAddress;
	union {
		struct {
			UINT AllowUserModeMapping : 1;
			UINT Reserved : 31;
		};
		UINT Flags;
	};
} DXGKARGCB_RESERVEGPUVIRTUALADDRESSRANGE;

/* Features that the system may let a miniport enable. Source: the page of the enumeration. */
typedef enum _DXGK_FEATURE_ID {
	DXGK_FEATURE_HWSCH = 0,
	DXGK_FEATURE_HWFLIPQUEUE = 1,
	DXGK_FEATURE_LDA_GPUPV = 2,
	DXGK_FEATURE_KMD_SIGNAL_CPU_EVENT = 3,
	DXGK_FEATURE_USER_MODE_SUBMISSION = 4,
	DXGK_FEATURE_SHARE_BACKING_STORE_WITH_KMD = 5,
} DXGK_FEATURE_ID;

/* Enabled: out. Since 2.6. */
typedef struct _DXGKARGCB_ISFEATUREENABLED {
	HANDLE DeviceHandle;
	DXGK_FEATURE_ID FeatureId;
	BOOLEAN Enabled;
} DXGKARGCB_ISFEATUREENABLED;

/* DriverSupportState: DXGK_FEATURE_SUPPORT_*. Enabled: out. Since 2.9. */
typedef struct _DXGKARGCB_QUERYFEATURESUPPORT {
	HANDLE DeviceHandle;
	DXGK_FEATURE_ID FeatureId;
	UINT DriverSupportState;
	BOOLEAN Enabled;
} DXGKARGCB_QUERYFEATURESUPPORT;

/*
 * With CpuEventObject (since 3.0), hDxgkProcess is 0 and hEvent is the handle that
 * DxgkDdiCreateCpuEvent got. Otherwise the event belongs to a process of a virtual machine. Any
 * IRQL up to DISPATCH_LEVEL. Since 2.5; members in the order of the page.
 */
typedef struct _DXGKARGCB_SIGNALEVENT {
	HANDLE hDxgkProcess;
	HANDLE hEvent;
	union {
		struct {
			UINT CpuEventObject : 1; /* 0x00000001 */
			UINT Reserved : 31;      /* 0xFFFFFFFE */
		};
		UINT Flags;
	};
} DXGKARGCB_SIGNALEVENT;

typedef HANDLE DXGKARG_RELEASE_HANDLE, *PDXGKARG_RELEASE_HANDLE;
typedef struct _DXGKARGCB_RELEASEHANDLEDATA {
	HANDLE ReleaseHandle;
	DXGK_HANDLE_TYPE Type;
} DXGKARGCB_RELEASEHANDLEDATA;

#ifdef __cplusplus
}
#endif

#endif
