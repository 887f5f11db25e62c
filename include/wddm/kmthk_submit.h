/* SPDX-License-Identifier: MIT */
/*
 * Devices, contexts and submission of D3DKMT clients. Part of d3dkmthk.h.
 * Command lengths and offsets in bytes, list sizes in entries. Source: the D3DKMT_* pages of
 * d3dkmthk.h; values in tests/abi/data.
 */
#ifndef WDDM_KMTHK_SUBMIT_H
#define WDDM_KMTHK_SUBMIT_H

#include "d3dukmdt.h"
#include "d3dkmdt.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum _D3DKMT_CLIENTHINT {
	D3DKMT_CLIENTHINT_UNKNOWN = 0,
	D3DKMT_CLIENTHINT_OPENGL = 1,
	D3DKMT_CLIENTHINT_CDD = 2,
	D3DKMT_CLIENTHINT_OPENCL = 3,
	D3DKMT_CLIENTHINT_VULKAN = 4,
	D3DKMT_CLIENTHINT_CUDA = 5,
	D3DKMT_CLIENTHINT_RESERVED = 6,
	D3DKMT_CLIENTHINT_DX7 = 7,
	D3DKMT_CLIENTHINT_DX8 = 8,
	D3DKMT_CLIENTHINT_DX9 = 9,
	D3DKMT_CLIENTHINT_DX10 = 10,
	D3DKMT_CLIENTHINT_DX11 = 11,
	D3DKMT_CLIENTHINT_DX12 = 12,
	D3DKMT_CLIENTHINT_9ON12 = 13,
	D3DKMT_CLIENTHINT_11ON12 = 14,
	D3DKMT_CLIENTHINT_MFT_ENCODE = 15,
	D3DKMT_CLIENTHINT_GLON12 = 16,
	D3DKMT_CLIENTHINT_CLON12 = 17,
	D3DKMT_CLIENTHINT_DML_TENSORFLOW = 18,
	D3DKMT_CLIENTHINT_ONEAPI_LEVEL0 = 19,
	D3DKMT_CLIENTHINT_MAX = 20,
} D3DKMT_CLIENTHINT;

typedef enum _D3DKMT_QUEUEDLIMIT_TYPE {
	D3DKMT_SET_QUEUEDLIMIT_PRESENT = 1,
	D3DKMT_GET_QUEUEDLIMIT_PRESENT = 2,
} D3DKMT_QUEUEDLIMIT_TYPE;

typedef enum _D3DKMT_SCHEDULINGPRIORITYCLASS {
	D3DKMT_SCHEDULINGPRIORITYCLASS_IDLE = 0,
	D3DKMT_SCHEDULINGPRIORITYCLASS_BELOW_NORMAL = 1,
	D3DKMT_SCHEDULINGPRIORITYCLASS_NORMAL = 2,
	D3DKMT_SCHEDULINGPRIORITYCLASS_ABOVE_NORMAL = 3,
	D3DKMT_SCHEDULINGPRIORITYCLASS_HIGH = 4,
	D3DKMT_SCHEDULINGPRIORITYCLASS_REALTIME = 5,
} D3DKMT_SCHEDULINGPRIORITYCLASS;

/* ACTIVE, or how the device was lost. */
typedef enum _D3DKMT_DEVICEEXECUTION_STATE {
	D3DKMT_DEVICEEXECUTION_ACTIVE = 1,
	D3DKMT_DEVICEEXECUTION_RESET = 2,
	D3DKMT_DEVICEEXECUTION_HUNG = 3,
	D3DKMT_DEVICEEXECUTION_STOPPED = 4,
	D3DKMT_DEVICEEXECUTION_ERROR_OUTOFMEMORY = 5,
	D3DKMT_DEVICEEXECUTION_ERROR_DMAFAULT = 6,
	D3DKMT_DEVICEEXECUTION_ERROR_DMAPAGEFAULT = 7,
} D3DKMT_DEVICEEXECUTION_STATE;

typedef enum _D3DKMT_DEVICESTATE_TYPE {
	D3DKMT_DEVICESTATE_EXECUTION = 1,
	D3DKMT_DEVICESTATE_PRESENT = 2,
	D3DKMT_DEVICESTATE_RESET = 3,
	D3DKMT_DEVICESTATE_PRESENT_DWM = 4,
	D3DKMT_DEVICESTATE_PAGE_FAULT = 5,
	D3DKMT_DEVICESTATE_PRESENT_QUEUE = 6,
} D3DKMT_DEVICESTATE_TYPE;

typedef enum _D3DKMT_DEVICE_ERROR_REASON {
	D3DKMT_DEVICE_ERROR_REASON_GENERIC = (int)0x80000000,
	D3DKMT_DEVICE_ERROR_REASON_DRIVER_ERROR = (int)0x80000006,
} D3DKMT_DEVICE_ERROR_REASON;

typedef struct _D3DKMT_CREATEDEVICEFLAGS {
	UINT LegacyMode : 1;        /* 0x00000001 */
	UINT RequestVSync : 1;      /* 0x00000002 */
	UINT DisableGpuTimeout : 1; /* 0x00000004 */
	UINT Reserved : 29;         /* 0xFFFFFFF8 */
} D3DKMT_CREATEDEVICEFLAGS;

/* The union names the adapter. Out: hDevice. The buffer members stay NULL and 0 on 2.x. */
typedef struct _D3DKMT_CREATEDEVICE {
	union {
		D3DKMT_HANDLE hAdapter;
		VOID *pAdapter;
		UINT64 pAdapter_Align;
	};
	D3DKMT_CREATEDEVICEFLAGS Flags;
	D3DKMT_HANDLE hDevice;
	D3DKMT_PTR(VOID *, pCommandBuffer);
	UINT CommandBufferSize;
	D3DKMT_PTR(D3DDDI_ALLOCATIONLIST *, pAllocationList);
	UINT AllocationListSize;
	D3DKMT_PTR(D3DDDI_PATCHLOCATIONLIST *, pPatchLocationList);
	UINT PatchLocationListSize;
} D3DKMT_CREATEDEVICE;

typedef struct _D3DKMT_DESTROYDEVICE {
	D3DKMT_HANDLE hDevice;
} D3DKMT_DESTROYDEVICE;

/* A patch-mode context. Out: hContext and its first buffers; sizes in bytes and in entries. */
typedef struct _D3DKMT_CREATECONTEXT {
	D3DKMT_HANDLE hDevice;
	UINT NodeOrdinal;
	UINT EngineAffinity;
	D3DDDI_CREATECONTEXTFLAGS Flags;
	D3DKMT_PTR(VOID *, pPrivateDriverData);
	UINT PrivateDriverDataSize;
	D3DKMT_CLIENTHINT ClientHint;
	D3DKMT_HANDLE hContext;
	D3DKMT_PTR(VOID *, pCommandBuffer);
	UINT CommandBufferSize;
	D3DKMT_PTR(D3DDDI_ALLOCATIONLIST *, pAllocationList);
	UINT AllocationListSize;
	D3DKMT_PTR(D3DDDI_PATCHLOCATIONLIST *, pPatchLocationList);
	UINT PatchLocationListSize;
	D3DGPU_VIRTUAL_ADDRESS CommandBuffer;
} D3DKMT_CREATECONTEXT;

/* A context that addresses memory through GPU page tables (2.0). ClientHint informs only. */
typedef struct _D3DKMT_CREATECONTEXTVIRTUAL {
	D3DKMT_HANDLE hDevice;
	UINT NodeOrdinal;
	UINT EngineAffinity;
	D3DDDI_CREATECONTEXTFLAGS Flags;
	D3DKMT_PTR(VOID *, pPrivateDriverData);
	UINT PrivateDriverDataSize;
	D3DKMT_CLIENTHINT ClientHint;
	D3DKMT_HANDLE hContext;
} D3DKMT_CREATECONTEXTVIRTUAL;

typedef struct _D3DKMT_DESTROYCONTEXT {
	D3DKMT_HANDLE hContext;
} D3DKMT_DESTROYCONTEXT;

typedef struct _D3DKMT_CREATEHWCONTEXT {
	D3DKMT_HANDLE hDevice;
	UINT NodeOrdinal;
	UINT EngineAffinity;
	D3DDDI_CREATEHWCONTEXTFLAGS Flags;
	UINT PrivateDriverDataSize;
	D3DKMT_PTR(VOID *, pPrivateDriverData);
	D3DKMT_HANDLE hHwContext;
} D3DKMT_CREATEHWCONTEXT;

typedef struct _D3DKMT_DESTROYHWCONTEXT {
	D3DKMT_HANDLE hHwContext;
} D3DKMT_DESTROYHWCONTEXT;

typedef struct _D3DKMT_CREATEHWQUEUE {
	D3DKMT_HANDLE hHwContext;
	D3DDDI_CREATEHWQUEUEFLAGS Flags;
	UINT PrivateDriverDataSize;
	D3DKMT_PTR(VOID *, pPrivateDriverData);
	D3DKMT_HANDLE hHwQueue;
	D3DKMT_HANDLE hHwQueueProgressFence;
	D3DKMT_PTR(VOID *, HwQueueProgressFenceCPUVirtualAddress);
	D3DGPU_VIRTUAL_ADDRESS HwQueueProgressFenceGPUVirtualAddress;
} D3DKMT_CREATEHWQUEUE;

typedef struct _D3DKMT_DESTROYHWQUEUE {
	D3DKMT_HANDLE hHwQueue;
} D3DKMT_DESTROYHWQUEUE;

typedef struct _D3DKMT_RENDERFLAGS {
	UINT ResizeCommandBuffer : 1;     /* 0x00000001 */
	UINT ResizeAllocationList : 1;    /* 0x00000002 */
	UINT ResizePatchLocationList : 1; /* 0x00000004 */
	UINT NullRendering : 1;           /* 0x00000008 */
	UINT PresentRedirected : 1;       /* 0x00000010 */
	UINT RenderKm : 1;                /* 0x00000020 */
	UINT RenderKmReadback : 1;        /* 0x00000040 */
	UINT Reserved : 25;               /* 0xFFFFFF80 */
} D3DKMT_RENDERFLAGS;

/* D3DKMTRender: submits the context's command buffer with its lists. Out: the buffers to use
 * next and QueuedBufferCount. With the Resize flags the size members are in and out. 368 bytes.
 * Rules DMA-*. */
typedef struct _D3DKMT_RENDER {
	union {
		D3DKMT_HANDLE hDevice;
		D3DKMT_HANDLE hContext;
	};
	UINT CommandOffset;
	UINT CommandLength;
	UINT AllocationCount;
	UINT PatchLocationCount;
	D3DKMT_PTR(VOID *, pNewCommandBuffer);
	UINT NewCommandBufferSize;
	D3DKMT_PTR(D3DDDI_ALLOCATIONLIST *, pNewAllocationList);
	UINT NewAllocationListSize;
	D3DKMT_PTR(D3DDDI_PATCHLOCATIONLIST *, pNewPatchLocationList);
	UINT NewPatchLocationListSize;
	D3DKMT_RENDERFLAGS Flags;
	ULONGLONG PresentHistoryToken;
	ULONG BroadcastContextCount;
	D3DKMT_HANDLE BroadcastContext[64];
	ULONG QueuedBufferCount;
	D3DGPU_VIRTUAL_ADDRESS NewCommandBuffer;
	D3DKMT_PTR(VOID *, pPrivateDriverData);
	UINT PrivateDriverDataSize;
} D3DKMT_RENDER;

typedef struct _D3DKMT_SUBMITCOMMANDFLAGS {
	UINT NullRendering : 1;     /* 0x00000001 */
	UINT PresentRedirected : 1; /* 0x00000002 */
	UINT NoKmdAccess : 1;       /* 0x00000004 */
	UINT Reserved : 29;         /* 0xFFFFFFF8 */
} D3DKMT_SUBMITCOMMANDFLAGS;

/* Runs CommandLength bytes at a GPU address on every context listed; BroadcastContextCount is at
 * least 1 and counts all. The caller makes the memory resident. 384 bytes. Rules SUB-*, VA-*. */
typedef struct _D3DKMT_SUBMITCOMMAND {
	D3DGPU_VIRTUAL_ADDRESS Commands;
	UINT CommandLength;
	D3DKMT_SUBMITCOMMANDFLAGS Flags;
	ULONGLONG PresentHistoryToken;
	UINT BroadcastContextCount;
	D3DKMT_HANDLE BroadcastContext[64];
	D3DKMT_PTR(VOID *, pPrivateDriverData);
	UINT PrivateDriverDataSize;
	UINT NumPrimaries;
	D3DKMT_HANDLE WrittenPrimaries[16];
	UINT NumHistoryBuffers;
	D3DKMT_PTR(D3DKMT_HANDLE *, HistoryBufferArray);
} D3DKMT_SUBMITCOMMAND;

/* As D3DKMT_SUBMITCOMMAND for a hardware queue. HwQueueProgressFenceId must be above the one of the
 * last submission. Since 2.2. */
typedef struct _D3DKMT_SUBMITCOMMANDTOHWQUEUE {
	D3DKMT_HANDLE hHwQueue;
	UINT64 HwQueueProgressFenceId;
	D3DGPU_VIRTUAL_ADDRESS CommandBuffer;
	UINT CommandLength;
	UINT PrivateDriverDataSize;
	D3DKMT_PTR(VOID *, pPrivateDriverData);
	UINT NumPrimaries;
	D3DKMT_PTR(const D3DKMT_HANDLE *, WrittenPrimaries);
} D3DKMT_SUBMITCOMMANDTOHWQUEUE;

/* Order among the contexts of one process. */
typedef struct _D3DKMT_SETCONTEXTINPROCESSSCHEDULINGPRIORITY {
	D3DKMT_HANDLE hContext;
	INT Priority;
} D3DKMT_SETCONTEXTINPROCESSSCHEDULINGPRIORITY;

/* -7 to +7; bit 30 marks an absolute level. Rules SCH-*. */
typedef struct _D3DKMT_SETCONTEXTSCHEDULINGPRIORITY {
	D3DKMT_HANDLE hContext;
	INT Priority;
} D3DKMT_SETCONTEXTSCHEDULINGPRIORITY;

typedef struct _D3DKMT_GETCONTEXTINPROCESSSCHEDULINGPRIORITY {
	D3DKMT_HANDLE hContext;
	INT Priority;
} D3DKMT_GETCONTEXTINPROCESSSCHEDULINGPRIORITY;

typedef struct _D3DKMT_GETCONTEXTSCHEDULINGPRIORITY {
	D3DKMT_HANDLE hContext;
	INT Priority;
} D3DKMT_GETCONTEXTSCHEDULINGPRIORITY;

/* Sets or gets how many presents or flips may be queued. */
typedef struct _D3DKMT_SETQUEUEDLIMIT {
	D3DKMT_HANDLE hDevice;
	D3DKMT_QUEUEDLIMIT_TYPE Type;
	union {
		UINT QueuedPresentLimit;
		D3DDDI_VIDEO_PRESENT_SOURCE_ID VidPnSourceId;
	};
	UINT QueuedPendingFlipLimit;
} D3DKMT_SETQUEUEDLIMIT;

typedef struct _D3DKMT_WAITFORIDLE {
	D3DKMT_HANDLE hDevice;
} D3DKMT_WAITFORIDLE;

/* Puts the device into the error state, as after a GPU fault. */
typedef struct _D3DKMT_MARKDEVICEASERROR {
	D3DKMT_HANDLE hDevice;
	D3DKMT_DEVICE_ERROR_REASON Reason;
} D3DKMT_MARKDEVICEASERROR;

typedef struct _D3DKMT_DEVICEPAGEFAULT_STATE {
	UINT64 FaultedPrimitiveAPISequenceNumber;
	DXGK_RENDER_PIPELINE_STAGE FaultedPipelineStage;
	UINT FaultedBindTableEntry;
	DXGK_PAGE_FAULT_FLAGS PageFaultFlags;
	DXGK_FAULT_ERROR_CODE FaultErrorCode;
	D3DGPU_VIRTUAL_ADDRESS FaultedVirtualAddress;
} D3DKMT_DEVICEPAGEFAULT_STATE;

typedef struct _D3DKMT_DEVICEPRESENT_QUEUE_STATE {
	D3DDDI_VIDEO_PRESENT_SOURCE_ID VidPnSourceId;
	BOOLEAN bQueuedPresentLimitReached;
} D3DKMT_DEVICEPRESENT_QUEUE_STATE;

typedef struct _D3DKMT_PRESENT_STATS {
	UINT PresentCount;
	UINT PresentRefreshCount;
	UINT SyncRefreshCount;
	LARGE_INTEGER SyncQPCTime;
	LARGE_INTEGER SyncGPUTime;
} D3DKMT_PRESENT_STATS;

typedef struct _D3DKMT_DEVICEPRESENT_STATE {
	D3DDDI_VIDEO_PRESENT_SOURCE_ID VidPnSourceId;
	D3DKMT_PRESENT_STATS PresentStats;
} D3DKMT_DEVICEPRESENT_STATE;

typedef struct _D3DKMT_PRESENT_STATS_DWM {
	UINT PresentCount;
	UINT PresentRefreshCount;
	LARGE_INTEGER PresentQPCTime;
	UINT SyncRefreshCount;
	LARGE_INTEGER SyncQPCTime;
	UINT CustomPresentDuration;
} D3DKMT_PRESENT_STATS_DWM;

typedef struct _D3DKMT_DEVICEPRESENT_STATE_DWM {
	D3DDDI_VIDEO_PRESENT_SOURCE_ID VidPnSourceId;
	D3DKMT_PRESENT_STATS_DWM PresentStatsDWM;
} D3DKMT_DEVICEPRESENT_STATE_DWM;

typedef struct _D3DKMT_DEVICERESET_STATE {
	union {
		struct {
			UINT DesktopSwitched : 1; /* 0x00000001 */
			UINT Reserved : 31;       /* 0xFFFFFFFE */
		};
		UINT Value;
	};
} D3DKMT_DEVICERESET_STATE;

/* StateType selects the member that the call fills. EXECUTION and PAGE_FAULT work on a lost
 * device. */
typedef struct _D3DKMT_GETDEVICESTATE {
	D3DKMT_HANDLE hDevice;
	D3DKMT_DEVICESTATE_TYPE StateType;
	union {
		D3DKMT_DEVICEEXECUTION_STATE ExecutionState;
		D3DKMT_DEVICEPRESENT_STATE PresentState;
		D3DKMT_DEVICERESET_STATE ResetState;
		D3DKMT_DEVICEPRESENT_STATE_DWM PresentStateDWM;
		D3DKMT_DEVICEPAGEFAULT_STATE PageFaultState;
		D3DKMT_DEVICEPRESENT_QUEUE_STATE PresentQueueState;
	};
} D3DKMT_GETDEVICESTATE;

typedef struct _D3DKMT_SETSTABLEPOWERSTATE {
	D3DKMT_HANDLE hAdapter;
	BOOL Enabled;
} D3DKMT_SETSTABLEPOWERSTATE;

/* Both clocks of one node at one instant. */
#pragma pack(push, 1)
typedef struct _D3DKMT_QUERYCLOCKCALIBRATION {
	D3DKMT_HANDLE hAdapter;
	UINT32 NodeOrdinal;
	UINT32 PhysicalAdapterIndex;
	DXGK_GPUCLOCKDATA ClockData;
} D3DKMT_QUERYCLOCKCALIBRATION;
#pragma pack(pop)

#define D3DKMT_SETCONTEXTSCHEDULINGPRIORITY_ABSOLUTE 0x40000000

#ifdef __cplusplus
}
#endif

#endif
