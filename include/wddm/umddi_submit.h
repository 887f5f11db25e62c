/* SPDX-License-Identifier: MIT */
/*
 * The arguments of the submission callbacks: contexts, render, submit, present, escape.
 * Part of d3dumddi.h. Source: the D3DDDICB_* pages of d3dumddi.h and their pfn...Cb pages.
 */
#ifndef WDDM_UMDDI_SUBMIT_H
#define WDDM_UMDDI_SUBMIT_H

#include "d3dukmdt.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct _D3DDDICB_RENDERFLAGS {
	union {
		struct {
			UINT ResizeCommandBuffer : 1;     /* 0x00000001 */
			UINT ResizeAllocationList : 1;    /* 0x00000002 */
			UINT ResizePatchLocationList : 1; /* 0x00000004 */
			UINT NullRendering : 1;           /* 0x00000008 */
			UINT Reserved : 28;               /* 0xFFFFFFF0 */
		};
		UINT Value;
	};
} D3DDDICB_RENDERFLAGS;

/*
 * Submits the first CommandLength bytes of the current command buffer from CommandOffset, with
 * NumAllocations entries of the current allocation list and NumPatchLocations of the patch list.
 * Out: the buffers to use next, and with the Resize flags their requested sizes as in values.
 * QueuedBufferCount: how many DMA buffers of the context still wait. 624 bytes (600 before 1.1).
 * Errors: E_INVALIDARG, E_OUTOFMEMORY, D3DERR_WASSTILLDRAWING, D3DDDIERR_DEVICEREMOVED,
 * D3DDDIERR_CANTRENDERLOCKEDALLOCATION, the miniport's own (rules DMA-*, PAT-*).
 */
typedef struct _D3DDDICB_RENDER {
	UINT CommandLength;
	UINT CommandOffset;
	UINT NumAllocations;
	UINT NumPatchLocations;
	VOID *pNewCommandBuffer;
	UINT NewCommandBufferSize;
	D3DDDI_ALLOCATIONLIST *pNewAllocationList;
	UINT NewAllocationListSize;
	D3DDDI_PATCHLOCATIONLIST *pNewPatchLocationList;
	UINT NewPatchLocationListSize;
	D3DDDICB_RENDERFLAGS Flags;
	HANDLE hContext;
	UINT BroadcastContextCount;
	HANDLE BroadcastContext[D3DDDI_MAX_BROADCAST_CONTEXT];
	ULONG QueuedBufferCount;
#if WDDM_SHARED_1_1
	D3DGPU_VIRTUAL_ADDRESS NewCommandBuffer;
	VOID *pPrivateDriverData;
	UINT PrivateDriverDataSize;
#endif
} D3DDDICB_RENDER;

/* Out: hContext and the first buffers. Sizes in bytes and in entries. */
typedef struct _D3DDDICB_CREATECONTEXT {
	UINT NodeOrdinal;
	UINT EngineAffinity;
	D3DDDI_CREATECONTEXTFLAGS Flags;
	VOID *pPrivateDriverData;
	UINT PrivateDriverDataSize;
	HANDLE hContext;
	VOID *pCommandBuffer;
	UINT CommandBufferSize;
	D3DDDI_ALLOCATIONLIST *pAllocationList;
	UINT AllocationListSize;
	D3DDDI_PATCHLOCATIONLIST *pPatchLocationList;
	UINT PatchLocationListSize;
#if WDDM_SHARED_1_1
	D3DGPU_VIRTUAL_ADDRESS CommandBuffer;
#endif
} D3DDDICB_CREATECONTEXT;

typedef struct _D3DDDICB_CREATECONTEXTVIRTUAL {
	UINT NodeOrdinal;
	UINT EngineAffinity;
	D3DDDI_CREATECONTEXTFLAGS Flags;
	VOID *pPrivateDriverData;
	UINT PrivateDriverDataSize;
	HANDLE hContext;
} D3DDDICB_CREATECONTEXTVIRTUAL;

typedef struct _D3DDDICB_DESTROYCONTEXT {
	HANDLE hContext;
} D3DDDICB_DESTROYCONTEXT;

typedef struct _D3DDDICB_SUBMITCOMMANDFLAGS {
	union {
		struct {
			UINT NullRendering : 1; /* 0x00000001 */
			UINT Reserved : 31;     /* 0xFFFFFFFE */
		};
		UINT Value;
	};
} D3DDDICB_SUBMITCOMMANDFLAGS;

/* 2.0. BroadcastContextCount counts every context, at least 1. Newer members for markers of the
 * tracing runtime are left out. */
typedef struct _D3DDDICB_SUBMITCOMMAND {
	D3DGPU_VIRTUAL_ADDRESS Commands;
	UINT CommandLength;
	D3DDDICB_SUBMITCOMMANDFLAGS Flags;
	UINT BroadcastContextCount;
	HANDLE BroadcastContext[D3DDDI_MAX_BROADCAST_CONTEXT];
	VOID *pPrivateDriverData;
	UINT PrivateDriverDataSize;
	UINT NumPrimaries;
	D3DKMT_HANDLE WrittenPrimaries[D3DDDI_MAX_WRITTEN_PRIMARIES];
	UINT NumHistoryBuffers;
	D3DKMT_HANDLE *HistoryBufferArray;
} D3DDDICB_SUBMITCOMMAND;

typedef struct _D3DDDICB_PRESENT {
	D3DKMT_HANDLE hSrcAllocation;
	D3DKMT_HANDLE hDstAllocation;
	HANDLE hContext;
	UINT BroadcastContextCount;
	HANDLE BroadcastContext[D3DDDI_MAX_BROADCAST_CONTEXT];
} D3DDDICB_PRESENT;

typedef struct _D3DDDICB_SETDISPLAYMODE {
	D3DKMT_HANDLE hPrimaryAllocation;
	UINT PrivateDriverFormatAttribute;
} D3DDDICB_SETDISPLAYMODE;

typedef struct _D3DDDICB_SETDISPLAYPRIVATEDRIVERFORMAT {
	D3DDDI_VIDEO_PRESENT_SOURCE_ID VidPnSourceId;
	UINT PrivateDriverFormatAttribute;
} D3DDDICB_SETDISPLAYPRIVATEDRIVERFORMAT;

typedef struct _D3DDDICB_ESCAPE {
	HANDLE hDevice;
	D3DDDI_ESCAPEFLAGS Flags;
	VOID *pPrivateDriverData;
	UINT PrivateDriverDataSize;
	HANDLE hContext;
} D3DDDICB_ESCAPE;

typedef struct _D3DDDICB_CREATEOVERLAY {
	D3DDDI_VIDEO_PRESENT_SOURCE_ID VidPnSourceId;
	D3DDDI_KERNELOVERLAYINFO OverlayInfo;
	D3DKMT_HANDLE hKernelOverlay;
} D3DDDICB_CREATEOVERLAY;

typedef struct _D3DDDICB_UPDATEOVERLAY {
	D3DKMT_HANDLE hKernelOverlay;
	D3DDDI_KERNELOVERLAYINFO OverlayInfo;
} D3DDDICB_UPDATEOVERLAY;

typedef struct _D3DDDICB_FLIPOVERLAY {
	D3DKMT_HANDLE hKernelOverlay;
	D3DKMT_HANDLE hSource;
	VOID *pPrivateDriverData;
	UINT PrivateDriverDataSize;
} D3DDDICB_FLIPOVERLAY;

typedef struct _D3DDDICB_DESTROYOVERLAY {
	D3DKMT_HANDLE hKernelOverlay;
} D3DDDICB_DESTROYOVERLAY;

/* Hardware contexts and queues, 2.2. */
typedef struct _D3DDDICB_CREATEHWCONTEXT {
	UINT NodeOrdinal;
	UINT EngineAffinity;
	D3DDDI_CREATEHWCONTEXTFLAGS Flags;
	UINT PrivateDriverDataSize;
	VOID *pPrivateDriverData;
	HANDLE hHwContext;
} D3DDDICB_CREATEHWCONTEXT;

typedef struct _D3DDDICB_DESTROYHWCONTEXT {
	HANDLE hHwContext;
} D3DDDICB_DESTROYHWCONTEXT;

typedef struct _D3DDDICB_CREATEHWQUEUE {
	HANDLE hHwContext;
	D3DDDI_CREATEHWQUEUEFLAGS Flags;
	UINT PrivateDriverDataSize;
	VOID *pPrivateDriverData;
	HANDLE hHwQueue;
	D3DKMT_HANDLE hHwQueueProgressFence;
	VOID *HwQueueProgressFenceCPUVirtualAddress;
	D3DGPU_VIRTUAL_ADDRESS HwQueueProgressFenceGPUVirtualAddress;
} D3DDDICB_CREATEHWQUEUE;

typedef struct _D3DDDICB_DESTROYHWQUEUE {
	HANDLE hHwQueue;
} D3DDDICB_DESTROYHWQUEUE;

#ifdef __cplusplus
}
#endif

#endif
