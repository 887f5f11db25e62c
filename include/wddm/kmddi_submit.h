/* SPDX-License-Identifier: MIT */
/*
 * Submission: render, patch, submit, preempt, cancel, engine reset. Part of d3dkmddi.h. A fence
 * id has 32 bits, increases and wraps; 0 means none. NodeOrdinal and EngineOrdinal
 * count from 0. Source: the pages DXGKARG_RENDER, DXGKARG_PATCH, DXGKARG_SUBMITCOMMAND(VIRTUAL),
 * DXGKARG_PREEMPTCOMMAND, DXGKARG_CANCELCOMMAND, DXGKARG_RESETENGINE, DXGK_ALLOCATIONLIST.
 */
#ifndef WDDM_KMDDI_SUBMIT_H
#define WDDM_KMDDI_SUBMIT_H

#include "d3dukmdt.h"
#include "d3dkmdt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One allocation that a DMA buffer uses. SegmentId 0: no pre-patch information, patch later. */
typedef struct _DXGK_ALLOCATIONLIST {
	HANDLE hDeviceSpecificAllocation;
	struct {
		UINT WriteOperation : 1; /* 0x00000001 */
		UINT SegmentId : 5;      /* 0x0000003E */
		UINT Reserved : 26;      /* 0xFFFFFFC0 */
	};
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WDDM2_0
	union {
		PHYSICAL_ADDRESS PhysicalAddress;
		D3DGPU_VIRTUAL_ADDRESS VirtualAddress;
	};
#else
	PHYSICAL_ADDRESS PhysicalAddress;
#endif
} DXGK_ALLOCATIONLIST;

/* Sizes in bytes, list sizes in entries. The miniport advances pDmaBuffer, pDmaBufferPrivateData
 * and pPatchLocationListOut past what it used. STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER requests
 * another pass from MultipassOffset. */
typedef struct _DXGKARG_RENDER {
	const VOID *pCommand;
	UINT CommandLength;
	VOID *pDmaBuffer;
	UINT DmaSize;
	VOID *pDmaBufferPrivateData;
	UINT DmaBufferPrivateDataSize;
	DXGK_ALLOCATIONLIST *pAllocationList;
	UINT AllocationListSize;
	D3DDDI_PATCHLOCATIONLIST *pPatchLocationListIn;
	UINT PatchLocationListInSize;
	D3DDDI_PATCHLOCATIONLIST *pPatchLocationListOut;
	UINT PatchLocationListOutSize;
	UINT MultipassOffset;
	UINT DmaBufferSegmentId;
	PHYSICAL_ADDRESS DmaBufferPhysicalAddress;
} DXGKARG_RENDER;

typedef struct _DXGKARG_RENDERGDI {
	const VOID *pCommand;
	UINT CommandLength;
	VOID *pDmaBuffer;
	D3DGPU_VIRTUAL_ADDRESS DmaBufferGpuVirtualAddress;
	UINT DmaSize;
	VOID *pDmaBufferPrivateData;
	UINT DmaBufferPrivateDataSize;
	DXGK_ALLOCATIONLIST *pAllocationList;
	UINT AllocationListSize;
	UINT MultipassOffset;
} DXGKARG_RENDERGDI;

typedef struct _DXGK_PATCHFLAGS {
	union {
		struct {
			UINT Paging : 1;            /* 0x00000001 */
			UINT Present : 1;           /* 0x00000002 */
			UINT RedirectedPresent : 1; /* 0x00000004 */
			UINT NullRendering : 1;     /* 0x00000008 */
			UINT Reserved : 28;         /* 0xFFFFFFF0 */
		};
		UINT Value;
	};
} DXGK_PATCHFLAGS;

/* The submission runs the bytes between the start and end offsets in the buffer. */
typedef struct _DXGKARG_PATCH {
	union {
		HANDLE hDevice;
		HANDLE hContext;
	};
	UINT DmaBufferSegmentId;
	PHYSICAL_ADDRESS DmaBufferPhysicalAddress;
	VOID *pDmaBuffer;
	UINT DmaBufferSize;
	UINT DmaBufferSubmissionStartOffset;
	UINT DmaBufferSubmissionEndOffset;
	VOID *pDmaBufferPrivateData;
	UINT DmaBufferPrivateDataSize;
	UINT DmaBufferPrivateDataSubmissionStartOffset;
	UINT DmaBufferPrivateDataSubmissionEndOffset;
	const DXGK_ALLOCATIONLIST *pAllocationList;
	UINT AllocationListSize;
	const D3DDDI_PATCHLOCATIONLIST *pPatchLocationList;
	UINT PatchLocationListSize;
	UINT PatchLocationListSubmissionStart;
	UINT PatchLocationListSubmissionLength;
	UINT SubmissionFenceId;
	DXGK_PATCHFLAGS Flags;
	UINT EngineOrdinal;
} DXGKARG_PATCH;

typedef struct _DXGK_SUBMITCOMMANDFLAGS {
	union {
		struct {
			UINT Paging : 1;             /* 0x00000001 */
			UINT Present : 1;            /* 0x00000002 */
			UINT RedirectedPresent : 1;  /* 0x00000004 */
			UINT NullRendering : 1;      /* 0x00000008 */
			UINT Flip : 1;               /* 0x00000010 */
			UINT FlipWithNoWait : 1;     /* 0x00000020 */
			UINT ContextSwitch : 1;      /* 0x00000040 since 1.2 */
			UINT Resubmission : 1;       /* 0x00000080 since 2.0 */
			UINT VirtualMachineData : 1; /* 0x00000100 since 2.x */
			UINT Reserved : 23;          /* 0xFFFFFE00 */
		};
		UINT Value;
	};
} DXGK_SUBMITCOMMANDFLAGS;

/* Sizes on x64: 80 (1.0), 88 (1.1), 96 (1.2). No CPU pointer to the DMA buffer. */
typedef struct _DXGKARG_SUBMITCOMMAND {
	union {
		HANDLE hDevice;
		HANDLE hContext;
	};
	UINT DmaBufferSegmentId;
	PHYSICAL_ADDRESS DmaBufferPhysicalAddress;
	UINT DmaBufferSize;
	UINT DmaBufferSubmissionStartOffset;
	UINT DmaBufferSubmissionEndOffset;
	VOID *pDmaBufferPrivateData;
	UINT DmaBufferPrivateDataSize;
	UINT DmaBufferPrivateDataSubmissionStartOffset;
	UINT DmaBufferPrivateDataSubmissionEndOffset;
	UINT SubmissionFenceId;
	D3DDDI_VIDEO_PRESENT_SOURCE_ID VidPnSourceId;
	D3DDDI_FLIPINTERVAL_TYPE FlipInterval;
	DXGK_SUBMITCOMMANDFLAGS Flags;
	UINT EngineOrdinal;
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WIN7
	D3DGPU_VIRTUAL_ADDRESS DmaBufferVirtualAddress;
#endif
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WIN8
	UINT NodeOrdinal;
#endif
} DXGKARG_SUBMITCOMMAND;

/* Since 2.0. */
typedef struct _DXGKARG_SUBMITCOMMANDVIRTUAL {
	HANDLE hContext;
	D3DGPU_VIRTUAL_ADDRESS DmaBufferVirtualAddress;
	UINT DmaBufferSize;
	VOID *pDmaBufferPrivateData;
	UINT DmaBufferPrivateDataSize;
	UINT DmaBufferUmdPrivateDataSize;
	UINT SubmissionFenceId;
	D3DDDI_VIDEO_PRESENT_SOURCE_ID VidPnSourceId;
	D3DDDI_FLIPINTERVAL_TYPE FlipInterval;
	DXGK_SUBMITCOMMANDFLAGS Flags;
	UINT EngineOrdinal;
	UINT NodeOrdinal;
} DXGKARG_SUBMITCOMMANDVIRTUAL;

typedef struct _DXGK_PREEMPTCOMMANDFLAGS {
	union {
		struct {
			UINT Reserved : 32; /* 0xFFFFFFFF */
		};
		UINT Value;
	};
} DXGK_PREEMPTCOMMANDFLAGS;

typedef struct _DXGKARG_PREEMPTCOMMAND {
	UINT PreemptionFenceId;
	UINT NodeOrdinal;
	UINT EngineOrdinal;
	DXGK_PREEMPTCOMMANDFLAGS Flags;
} DXGKARG_PREEMPTCOMMAND;

/* Since 1.2; the DMA buffer was patched and will never be submitted. */
typedef struct _DXGKARG_CANCELCOMMAND {
	HANDLE hContext;
	VOID *pDmaBuffer;
	UINT DmaBufferSize;
	UINT DmaBufferSubmissionStartOffset;
	UINT DmaBufferSubmissionEndOffset;
	VOID *pDmaBufferPrivateData;
	UINT DmaBufferPrivateDataSize;
	UINT DmaBufferPrivateDataSubmissionStartOffset;
	UINT DmaBufferPrivateDataSubmissionEndOffset;
	const DXGK_ALLOCATIONLIST *pAllocationList;
	UINT AllocationListSize;
	const D3DDDI_PATCHLOCATIONLIST *pPatchLocationList;
	UINT PatchLocationListSize;
	UINT PatchLocationListSubmissionStart;
	UINT PatchLocationListSubmissionLength;
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WDDM2_0
	D3DGPU_VIRTUAL_ADDRESS DmaBufferVirtualAddress;
	UINT DmaBufferUmdPrivateDataSize;
#endif
} DXGKARG_CANCELCOMMAND;

typedef struct _DXGKARG_QUERYCURRENTFENCE {
	UINT CurrentFence;
	UINT NodeOrdinal;
	UINT EngineOrdinal;
} DXGKARG_QUERYCURRENTFENCE;

typedef struct _DXGKARG_RESETENGINE {
	UINT NodeOrdinal;
	UINT EngineOrdinal;
	UINT LastAbortedFenceId;
} DXGKARG_RESETENGINE;

typedef struct _DXGKARG_RESETHWENGINE {
	UINT NodeOrdinal;
	UINT EngineOrdinal;
} DXGKARG_RESETHWENGINE;

typedef struct _DXGK_ENGINESTATUS {
	union {
		struct {
			UINT Responsive : 1; /* 0x00000001 */
			UINT Reserved : 31;  /* 0xFFFFFFFE */
		};
		UINT Value;
	};
} DXGK_ENGINESTATUS;

typedef struct _DXGKARG_QUERYENGINESTATUS {
	UINT NodeOrdinal;
	UINT EngineOrdinal;
	DXGK_ENGINESTATUS EngineStatus;
} DXGKARG_QUERYENGINESTATUS;

typedef struct _DXGKARG_QUERYDEPENDENTENGINEGROUP {
	UINT NodeOrdinal;
	UINT EngineOrdinal;
	ULONGLONG DependentNodeOrdinalMask;
} DXGKARG_QUERYDEPENDENTENGINEGROUP;

typedef struct _DXGKARG_COLLECTDBGINFO_EXT {
	UINT BucketingKey;
	UINT CurrentDmaBufferOffset;
	UINT Reserved2;
	UINT Reserved3;
	UINT Reserved4;
	UINT Reserved5;
	UINT Reserved6;
	UINT Reserved7;
} DXGKARG_COLLECTDBGINFO_EXT;

/* Reason is a fatal code such as 0x117 (engine timeout). */
typedef struct _DXGKARG_COLLECTDBGINFO {
	UINT Reason;
	VOID *pBuffer;
	SIZE_T BufferSize;
	DXGKARG_COLLECTDBGINFO_EXT *pExtension;
} DXGKARG_COLLECTDBGINFO;

/* Hardware queues, since 2.2. */
typedef struct _DXGKARG_SUBMITCOMMANDTOHWQUEUE {
	HANDLE hHwQueue;
	UINT64 HwQueueProgressFenceId;
	D3DGPU_VIRTUAL_ADDRESS DmaBufferVirtualAddress;
	UINT DmaBufferSize;
	UINT DmaBufferPrivateDataSize;
	VOID *pDmaBufferPrivateData;
	DXGK_SUBMITCOMMANDFLAGS Flags;
	D3DGPU_VIRTUAL_ADDRESS HwQueueProgressFenceGpuVa;
	VOID *HwQueueProgressFenceCpuVa;
} DXGKARG_SUBMITCOMMANDTOHWQUEUE;

/*
 * Called before a command with private data is queued (SUB-25). Context: the miniport's handles of
 * contexts, or of hardware queues with HardwareQueueSubmission. The first UmdPrivateDataSize of the
 * PrivateDriverDataSize bytes come from the client. The miniport may change all of them, and the
 * submission uses the result. Since 2.5.
 */
typedef struct _DXGK_VALIDATESUBMITCOMMANDFLAGS {
	union {
		struct {
			UINT HardwareQueueSubmission : 1; /* 0x00000001 */
			UINT Reserved : 31;               /* 0xFFFFFFFE */
		};
		UINT Value;
	};
} DXGK_VALIDATESUBMITCOMMANDFLAGS;

typedef struct _DXGKARG_VALIDATESUBMITCOMMAND {
	D3DGPU_VIRTUAL_ADDRESS Commands;
	UINT CommandLength; /* bytes */
	DXGK_VALIDATESUBMITCOMMANDFLAGS Flags;
	UINT ContextCount;
	HANDLE Context[D3DDDI_MAX_BROADCAST_CONTEXT];
	VOID *pPrivateDriverData;
	UINT PrivateDriverDataSize;
	UINT UmdPrivateDataSize;
	UINT64 HwQueueProgressFenceId; /* 0 without HardwareQueueSubmission */
} DXGKARG_VALIDATESUBMITCOMMAND;

typedef struct _DXGKARG_SWITCHTOHWCONTEXTLIST {
	HANDLE hHwContextFirst;
	HANDLE hHwContextSecond;
	UINT NodeOrdinal;
	UINT EngineOrdinal;
	UINT ContextSwitchFence;
} DXGKARG_SWITCHTOHWCONTEXTLIST;

typedef struct _DXGKARG_HISTORYBUFFERPRECISION {
	UINT32 PrecisionBits;
} DXGKARG_HISTORYBUFFERPRECISION;

typedef DXGK_GPUCLOCKDATA DXGKARG_CALIBRATEGPUCLOCK;

typedef DXGK_NODEMETADATA DXGKARG_GETNODEMETADATA;

#ifdef __cplusplus
}
#endif

#endif
