/* SPDX-License-Identifier: MIT */
/*
 * Present and the display entry points whose arguments a render adapter's table names. Part of
 * d3dkmddi.h. Pixel units unless said otherwise. Source: the pages DXGKARG_PRESENT,
 * DXGK_PRESENTFLAGS, DXGKARG_SETPOINTERPOSITION and related pages.
 */
#ifndef WDDM_KMDDI_DISPLAY_H
#define WDDM_KMDDI_DISPLAY_H

#include "kmddi_caps.h"
#include "kmddi_submit.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct _DXGK_PRESENTFLAGS {
	union {
		struct {
			UINT Blt : 1;                       /* 0x00000001 */
			UINT ColorFill : 1;                 /* 0x00000002 */
			UINT Flip : 1;                      /* 0x00000004 */
			UINT FlipWithNoWait : 1;            /* 0x00000008 */
			UINT SrcColorKey : 1;               /* 0x00000010 */
			UINT DstColorKey : 1;               /* 0x00000020 */
			UINT LinearToSrgb : 1;              /* 0x00000040 */
			UINT Rotate : 1;                    /* 0x00000080 */
			UINT FlipStereo : 1;                /* 0x00000100 since 1.2 */
			UINT FlipStereoTemporaryMono : 1;   /* 0x00000200 since 1.2 */
			UINT FlipStereoPreferRight : 1;     /* 0x00000400 since 1.2 */
			UINT BltStereoUseRight : 1;         /* 0x00000800 since 1.2 */
			UINT FlipWithMultiPlaneOverlay : 1; /* 0x00001000 since 1.2 */
			UINT Reserved : 19;                 /* 0xFFFFE000 */
		};
		UINT Value;
	};
} DXGK_PRESENTFLAGS;

/* Entries of DXGKARG_PRESENT's allocation list. */
#define DXGK_PRESENT_SOURCE_INDEX      1
#define DXGK_PRESENT_DESTINATION_INDEX 2
#define DXGK_PRESENT_MAX_INDEX         3

/* One allocation of a 2.x present: the miniport's handle and where it is. */
typedef struct _DXGK_PRESENTALLOCATIONINFO {
	HANDLE hDeviceSpecificAllocation;
	union {
		D3DGPU_VIRTUAL_ADDRESS AllocationVirtualAddress;
		PHYSICAL_ADDRESS PhysicalAddress;
	};
	WORD SegmentId;
	WORD PhysicalAdapterIndex;
} DXGK_PRESENTALLOCATIONINFO;

struct _DXGK_PRESENTMULTIPLANEOVERLAYINFO;

/* As DXGKARG_RENDER, for the blit or flip that the runtime requests. */
typedef struct _DXGKARG_PRESENT {
	VOID *pDmaBuffer;
	UINT DmaSize;
	VOID *pDmaBufferPrivateData;
	UINT DmaBufferPrivateDataSize;
	union {
		DXGK_ALLOCATIONLIST *pAllocationList;
		DXGK_PRESENTALLOCATIONINFO *pAllocationInfo;
		struct _DXGK_PRESENTMULTIPLANEOVERLAYINFO *pPresentMultiPlaneOverlayInfo;
	};
	D3DDDI_PATCHLOCATIONLIST *pPatchLocationListOut;
	UINT PatchLocationListOutSize;
	UINT MultipassOffset;
	UINT Color;
	RECT DstRect;
	RECT SrcRect;
	UINT SubRectCnt;
	const RECT *pDstSubRects;
	D3DDDI_FLIPINTERVAL_TYPE FlipInterval;
	DXGK_PRESENTFLAGS Flags;
	UINT DmaBufferSegmentId;
	PHYSICAL_ADDRESS DmaBufferPhysicalAddress;
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WDDM1_3
	UINT Reserved;
#endif
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WDDM2_0
	D3DGPU_VIRTUAL_ADDRESS DmaBufferGpuVirtualAddress;
	UINT NumSrcAllocations;
	UINT NumDstAllocations;
	UINT PrivateDriverDataSize;
	PVOID pPrivateDriverData;
#endif
} DXGKARG_PRESENT;

/*
 * Interrupt 14 is raised with NotificationID, Time units of 100 ns before each vertical sync of the
 * target. hNotification: out. Since 2.2; members in the order of the page.
 */
typedef struct _DXGKARG_CREATEPERIODICFRAMENOTIFICATION {
	HANDLE hAdapter;
	D3DDDI_VIDEO_PRESENT_TARGET_ID VidPnTargetId;
	UINT64 Time;
	UINT NotificationID;
	HANDLE hNotification;
} DXGKARG_CREATEPERIODICFRAMENOTIFICATION;

typedef struct _DXGKARG_DESTROYPERIODICFRAMENOTIFICATION {
	HANDLE hNotification;
	HANDLE hAdapter;
} DXGKARG_DESTROYPERIODICFRAMENOTIFICATION;

typedef struct _DXGK_SETPOINTERPOSITIONFLAGS {
	union {
		struct {
			UINT Visible : 1;    /* 0x00000001 */
			UINT Procedural : 1; /* 0x00000002 */
			UINT Reserved : 30;  /* 0xFFFFFFFC */
		};
		UINT Value;
	};
} DXGK_SETPOINTERPOSITIONFLAGS;

typedef struct _DXGKARG_SETPOINTERPOSITION {
	D3DDDI_VIDEO_PRESENT_SOURCE_ID VidPnSourceId;
	INT X;
	INT Y;
	DXGK_SETPOINTERPOSITIONFLAGS Flags;
} DXGKARG_SETPOINTERPOSITION;

typedef struct _DXGKARG_SETPOINTERSHAPE {
	DXGK_POINTERFLAGS Flags;
	UINT Width;
	UINT Height;
	UINT Pitch;
	D3DDDI_VIDEO_PRESENT_SOURCE_ID VidPnSourceId;
	const VOID *pPixels;
	UINT XHot;
	UINT YHot;
} DXGKARG_SETPOINTERSHAPE;

typedef struct _DXGK_SETVIDPNSOURCEADDRESS_FLAGS {
	union {
		struct {
			UINT ModeChange : 1;               /* 0x00000001 */
			UINT FlipImmediate : 1;            /* 0x00000002 */
			UINT FlipOnNextVSync : 1;          /* 0x00000004 */
			UINT FlipStereo : 1;               /* 0x00000008 since 1.2 */
			UINT FlipStereoTemporaryMono : 1;  /* 0x00000010 since 1.2 */
			UINT FlipStereoPreferRight : 1;    /* 0x00000020 since 1.2 */
			UINT SharedPrimaryTransition : 1;  /* 0x00000040 since 1.2 */
			UINT IndependentFlipExclusive : 1; /* 0x00000080 since 1.3 */
			UINT Reserved : 24;                /* 0xFFFFFF00 */
		};
		UINT Value;
	};
} DXGK_SETVIDPNSOURCEADDRESS_FLAGS;

typedef struct _DXGKARG_SETVIDPNSOURCEADDRESS {
	D3DDDI_VIDEO_PRESENT_SOURCE_ID VidPnSourceId;
	UINT PrimarySegment;
	PHYSICAL_ADDRESS PrimaryAddress;
	HANDLE hAllocation;
	UINT ContextCount;
	HANDLE Context[1 + D3DDDI_MAX_BROADCAST_CONTEXT];
	DXGK_SETVIDPNSOURCEADDRESS_FLAGS Flags;
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WDDM1_3
	UINT Duration;
#endif
} DXGKARG_SETVIDPNSOURCEADDRESS;

typedef struct _DXGKARG_SETVIDPNSOURCEVISIBILITY {
	D3DDDI_VIDEO_PRESENT_SOURCE_ID VidPnSourceId;
	BOOLEAN Visible;
} DXGKARG_SETVIDPNSOURCEVISIBILITY;

typedef struct _DXGKARG_GETSCANLINE {
	D3DDDI_VIDEO_PRESENT_TARGET_ID VidPnTargetId;
	BOOLEAN InVerticalBlank;
	UINT ScanLine;
} DXGKARG_GETSCANLINE;

typedef struct _DXGKARG_STOPCAPTURE {
	HANDLE hAllocation;
} DXGKARG_STOPCAPTURE;

typedef struct _DXGKARG_SETDISPLAYPRIVATEDRIVERFORMAT {
	D3DDDI_VIDEO_PRESENT_SOURCE_ID VidPnSourceId;
	UINT PrivateDriverFormatAttribute;
} DXGKARG_SETDISPLAYPRIVATEDRIVERFORMAT;

#ifdef __cplusplus
}
#endif

#endif
