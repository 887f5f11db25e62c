/* SPDX-License-Identifier: MIT */
/*
 * Present, flip and present history of D3DKMT clients. Part of d3dkmthk.h.
 * D3DKMTPresent blits, fills and flips sources (docs/rules/present.md). vidmm has no compositor and
 * does not build the calls for one, but clients name the types.
 * Source: the D3DKMT_PRESENT* pages of d3dkmthk.h; values in tests/abi/data.
 */
#ifndef WDDM_KMTHK_PRESENT_H
#define WDDM_KMTHK_PRESENT_H

#include "kmthk_submit.h"
#include "kmthk_sync.h"

#ifdef __cplusplus
extern "C" {
#endif

#define D3DKMT_MAX_PRESENT_HISTORY_RECTS                    16
#define D3DKMT_MAX_PRESENT_HISTORY_SCATTERBLTS              12
#define D3DKMT_MAX_MULTIPLANE_OVERLAY_PLANES                8
#define D3DKMT_MAX_MULTIPLANE_OVERLAY_ALLOCATIONS_PER_PLANE 256
#define D3DKMT_GETPRESENTHISTORY_MAXTOKENS                  2048

typedef ULONGLONG D3DKMT_VISTABLTMODEL_PRESENTHISTORYTOKEN;

typedef enum _D3DKMT_PRESENT_MODEL {
	D3DKMT_PM_UNINITIALIZED = 0,
	D3DKMT_PM_REDIRECTED_GDI = 1,
	D3DKMT_PM_REDIRECTED_FLIP = 2,
	D3DKMT_PM_REDIRECTED_BLT = 3,
	D3DKMT_PM_REDIRECTED_VISTABLT = 4,
	D3DKMT_PM_SCREENCAPTUREFENCE = 5,
	D3DKMT_PM_REDIRECTED_GDI_SYSMEM = 6,
	D3DKMT_PM_REDIRECTED_COMPOSITION = 7,
	D3DKMT_PM_SURFACECOMPLETE = 8,
	D3DKMT_PM_FLIPMANAGER = 9,
} D3DKMT_PRESENT_MODEL;

typedef enum _D3DKMT_MULTIPLANE_OVERLAY_BLEND {
	D3DKMT_MULTIPLANE_OVERLAY_BLEND_OPAQUE = 0,
	D3DKMT_MULTIPLANE_OVERLAY_BLEND_ALPHABLEND = 1,
} D3DKMT_MULTIPLANE_OVERLAY_BLEND;

typedef enum _D3DKMT_MULTIPLANE_OVERLAY_VIDEO_FRAME_FORMAT {
	D3DKMT_MULIIPLANE_OVERLAY_VIDEO_FRAME_FORMAT_PROGRESSIVE = 0,
	D3DKMT_MULTIPLANE_OVERLAY_VIDEO_FRAME_FORMAT_INTERLACED_TOP_FIELD_FIRST = 1,
	D3DKMT_MULTIPLANE_OVERLAY_VIDEO_FRAME_FORMAT_INTERLACED_BOTTOM_FIELD_FIRST = 2,
} D3DKMT_MULTIPLANE_OVERLAY_VIDEO_FRAME_FORMAT;

typedef enum _D3DKMT_MULTIPLANE_OVERLAY_STEREO_FORMAT {
	DXGKMT_MULTIPLANE_OVERLAY_STEREO_FORMAT_MONO = 0,
	D3DKMT_MULTIPLANE_OVERLAY_STEREO_FORMAT_HORIZONTAL = 1,
	D3DKMT_MULTIPLANE_OVERLAY_STEREO_FORMAT_VERTICAL = 2,
	DXGKMT_MULTIPLANE_OVERLAY_STEREO_FORMAT_SEPARATE = 3,
	DXGKMT_MULTIPLANE_OVERLAY_STEREO_FORMAT_MONO_OFFSET = 4,
	DXGKMT_MULTIPLANE_OVERLAY_STEREO_FORMAT_ROW_INTERLEAVED = 5,
	DXGKMT_MULTIPLANE_OVERLAY_STEREO_FORMAT_COLUMN_INTERLEAVED = 6,
	DXGKMT_MULTIPLANE_OVERLAY_STEREO_FORMAT_CHECKERBOARD = 7,
} D3DKMT_MULTIPLANE_OVERLAY_STEREO_FORMAT;

typedef enum _DXGKMT_MULTIPLANE_OVERLAY_STEREO_FLIP_MODE {
	DXGKMT_MULTIPLANE_OVERLAY_STEREO_FLIP_NONE = 0,
	DXGKMT_MULTIPLANE_OVERLAY_STEREO_FLIP_FRAME0 = 1,
	DXGKMT_MULTIPLANE_OVERLAY_STEREO_FLIP_FRAME1 = 2,
} DXGKMT_MULTIPLANE_OVERLAY_STEREO_FLIP_MODE;

typedef enum _DXGKMT_MULTIPLANE_OVERLAY_STRETCH_QUALITY {
	DXGKMT_MULTIPLANE_OVERLAY_STRETCH_QUALITY_BILINEAR = 1,
	DXGKMT_MULTIPLANE_OVERLAY_STRETCH_QUALITY_HIGH = 2,
} DXGKMT_MULTIPLANE_OVERLAY_STRETCH_QUALITY;

typedef struct D3DKMT_MULTIPLANE_OVERLAY_ATTRIBUTES {
	UINT Flags;
	RECT SrcRect;
	RECT DstRect;
	RECT ClipRect;
	D3DDDI_ROTATION Rotation;
	D3DKMT_MULTIPLANE_OVERLAY_BLEND Blend;
	UINT DirtyRectCount;
	D3DKMT_PTR(RECT *, pDirtyRects);
	D3DKMT_MULTIPLANE_OVERLAY_VIDEO_FRAME_FORMAT VideoFrameFormat;
	UINT YCbCrFlags;
	D3DKMT_MULTIPLANE_OVERLAY_STEREO_FORMAT StereoFormat;
	BOOL StereoLeftViewFrame0;
	BOOL StereoBaseViewFrame0;
	DXGKMT_MULTIPLANE_OVERLAY_STEREO_FLIP_MODE StereoFlipMode;
	DXGKMT_MULTIPLANE_OVERLAY_STRETCH_QUALITY StretchQuality;
} D3DKMT_MULTIPLANE_OVERLAY_ATTRIBUTES;

typedef struct D3DKMT_MULTIPLANE_OVERLAY {
	UINT LayerIndex;
	BOOL Enabled;
	D3DKMT_HANDLE hAllocation;
	D3DKMT_MULTIPLANE_OVERLAY_ATTRIBUTES PlaneAttributes;
} D3DKMT_MULTIPLANE_OVERLAY;

typedef struct _D3DKMT_PRESENTFLAGS {
	union {
		struct {
			UINT Blt : 1;                        /* 0x00000001 */
			UINT ColorFill : 1;                  /* 0x00000002 */
			UINT Flip : 1;                       /* 0x00000004 */
			UINT FlipDoNotFlip : 1;              /* 0x00000008 */
			UINT FlipDoNotWait : 1;              /* 0x00000010 */
			UINT FlipRestart : 1;                /* 0x00000020 */
			UINT DstRectValid : 1;               /* 0x00000040 */
			UINT SrcRectValid : 1;               /* 0x00000080 */
			UINT RestrictVidPnSource : 1;        /* 0x00000100 */
			UINT SrcColorKey : 1;                /* 0x00000200 */
			UINT DstColorKey : 1;                /* 0x00000400 */
			UINT LinearToSrgb : 1;               /* 0x00000800 */
			UINT PresentCountValid : 1;          /* 0x00001000 */
			UINT Rotate : 1;                     /* 0x00002000 */
			UINT PresentToBitmap : 1;            /* 0x00004000 */
			UINT RedirectedFlip : 1;             /* 0x00008000 */
			UINT RedirectedBlt : 1;              /* 0x00010000 */
			UINT FlipStereo : 1;                 /* 0x00020000 */
			UINT FlipStereoTemporaryMono : 1;    /* 0x00040000 */
			UINT FlipStereoPreferRight : 1;      /* 0x00080000 */
			UINT BltStereoUseRight : 1;          /* 0x00100000 */
			UINT PresentHistoryTokenOnly : 1;    /* 0x00200000 */
			UINT PresentRegionsValid : 1;        /* 0x00400000 */
			UINT PresentDDA : 1;                 /* 0x00800000 */
			UINT ProtectedContentBlankedOut : 1; /* 0x01000000 */
			UINT RemoteSession : 1;              /* 0x02000000 */
			UINT CrossAdapter : 1;               /* 0x04000000 */
			UINT DurationValid : 1;              /* 0x08000000 */
			UINT PresentIndirect : 1;            /* 0x10000000 */
			UINT PresentHMD : 1;                 /* 0x20000000 */
			UINT Reserved : 2;                   /* 0xC0000000 */
		};
		UINT Value;
	};
} D3DKMT_PRESENTFLAGS;

typedef struct D3DKMT_PRESENT_MULTIPLANE_OVERLAY {
	union {
		D3DKMT_HANDLE hDevice;
		D3DKMT_HANDLE hContext;
	};
	ULONG BroadcastContextCount;
	D3DKMT_HANDLE BroadcastContext[64];
	D3DDDI_VIDEO_PRESENT_SOURCE_ID VidPnSourceId;
	UINT PresentCount;
	D3DDDI_FLIPINTERVAL_TYPE FlipInterval;
	D3DKMT_PRESENTFLAGS Flags;
	UINT PresentPlaneCount;
	D3DKMT_MULTIPLANE_OVERLAY *pPresentPlanes;
	UINT Duration;
} D3DKMT_PRESENT_MULTIPLANE_OVERLAY;

typedef struct _D3DKMT_DIRTYREGIONS {
	UINT NumRects;
	RECT Rects[16];
} D3DKMT_DIRTYREGIONS;

typedef struct _D3DKMT_BLTMODEL_PRESENTHISTORYTOKEN {
	ULONG64 hLogicalSurface;
	ULONG64 hPhysicalSurface;
	ULONG64 EventId;
	D3DKMT_DIRTYREGIONS DirtyRegions;
} D3DKMT_BLTMODEL_PRESENTHISTORYTOKEN;

typedef struct _D3DKMT_COMPOSITION_PRESENTHISTORYTOKEN {
	ULONG64 hPrivateData;
} D3DKMT_COMPOSITION_PRESENTHISTORYTOKEN;

typedef struct _D3DKMT_FENCE_PRESENTHISTORYTOKEN {
	UINT64 Key;
} D3DKMT_FENCE_PRESENTHISTORYTOKEN;

typedef struct _D3DKMT_FLIPMANAGER_PRESENTHISTORYTOKEN {
	ULONG64 hPrivateData;
	ULONGLONG PresentAtQpc;
	union {
		struct {
			UINT Discard : 1;               /* 0x00000001 */
			UINT PresentAt : 1;             /* 0x00000002 */
			UINT hPrivateDataIsPointer : 1; /* 0x00000004 */
			UINT Reserved : 29;             /* 0xFFFFFFF8 */
		};
		UINT Value;
	} Flags;
} D3DKMT_FLIPMANAGER_PRESENTHISTORYTOKEN;

typedef enum _D3DKMT_FLIPMODEL_INDEPENDENT_FLIP_STAGE {
	D3DKMT_FLIPMODEL_INDEPENDENT_FLIP_STAGE_FLIP_SUBMITTED = 0,
	D3DKMT_FLIPMODEL_INDEPENDENT_FLIP_STAGE_FLIP_COMPLETE = 1,
} D3DKMT_FLIPMODEL_INDEPENDENT_FLIP_STAGE;

typedef struct _D3DKMT_FLIPMODEL_PRESENTHISTORYTOKENFLAGS {
	union {
		struct {
			UINT Video : 1;                            /* 0x00000001 */
			UINT RestrictedContent : 1;                /* 0x00000002 */
			UINT ClipToView : 1;                       /* 0x00000004 */
			UINT StereoPreferRight : 1;                /* 0x00000008 */
			UINT TemporaryMono : 1;                    /* 0x00000010 */
			UINT FlipRestart : 1;                      /* 0x00000020 */
			UINT HDRMetaDataChanged : 1;               /* 0x00000040 */
			UINT AlphaMode : 2;                        /* 0x00000180 */
			UINT SignalLimitOnTokenCompletion : 1;     /* 0x00000200 */
			UINT YCbCrFlags : 3;                       /* 0x00001C00 */
			UINT IndependentFlip : 1;                  /* 0x00002000 */
			UINT IndependentFlipStage : 2;             /* 0x0000C000 */
			UINT IndependentFlipReleaseCount : 2;      /* 0x00030000 */
			UINT IndependentFlipForceNotifyDwm : 1;    /* 0x00040000 */
			UINT UseCustomDuration : 1;                /* 0x00080000 */
			UINT IndependentFlipRequestDwmConfirm : 1; /* 0x00100000 */
			UINT IndependentFlipCandidate : 1;         /* 0x00200000 */
			UINT IndependentFlipCheckNeeded : 1;       /* 0x00400000 */
			UINT IndependentFlipTrueImmediate : 1;     /* 0x00800000 */
			UINT IndependentFlipRequestDwmExit : 1;    /* 0x01000000 */
			UINT CompSurfaceNotifiedEarly : 1;         /* 0x02000000 */
			UINT IndependentFlipDoNotFlip : 1;         /* 0x04000000 */
			UINT RequirePairedToken : 1;               /* 0x08000000 */
			UINT VariableRefreshOverrideEligible : 1;  /* 0x10000000 */
			UINT Reserved : 3;                         /* 0xE0000000 */
		};
		UINT Value;
	};
} D3DKMT_FLIPMODEL_PRESENTHISTORYTOKENFLAGS;

typedef struct _D3DKMT_SCATTERBLT {
	ULONG64 hLogicalSurfaceDestination;
	LONG64 hDestinationCompSurfDWM;
	UINT64 DestinationCompositionBindingId;
	RECT SourceRect;
	POINT DestinationOffset;
} D3DKMT_SCATTERBLT;

typedef struct _D3DKMT_SCATTERBLTS {
	UINT NumBlts;
	D3DKMT_SCATTERBLT Blts[12];
} D3DKMT_SCATTERBLTS;

typedef struct _D3DKMT_FLIPMODEL_PRESENTHISTORYTOKEN {
	UINT64 FenceValue;
	ULONG64 hLogicalSurface;
	D3DKMT_UINT_PTR dxgContext;
	D3DDDI_VIDEO_PRESENT_SOURCE_ID VidPnSourceId;
	UINT SwapChainIndex;
	UINT64 PresentLimitSemaphoreId;
	D3DDDI_FLIPINTERVAL_TYPE FlipInterval;
	D3DKMT_FLIPMODEL_PRESENTHISTORYTOKENFLAGS Flags;
	LONG64 hCompSurf;
	LUID compSurfLuid;
	UINT64 confirmationCookie;
	UINT64 CompositionSyncKey;
	UINT RemainingTokens;
	RECT ScrollRect;
	POINT ScrollOffset;
	UINT PresentCount;
	FLOAT RevealColor[4];
	D3DDDI_ROTATION Rotation;
	union {
		D3DKMT_SCATTERBLTS ScatterBlts;
		struct {
			HANDLE hSyncObject;
			D3DDDI_HDR_METADATA_TYPE HDRMetaDataType;
			union {
				D3DDDI_HDR_METADATA_HDR10 HDRMetaDataHDR10;
				D3DDDI_HDR_METADATA_HDR10PLUS HDRMetaDataHDR10Plus;
			};
		};
	};
	UINT InkCookie;
	RECT SourceRect;
	UINT DestWidth;
	UINT DestHeight;
	RECT TargetRect;
	FLOAT Transform[6];
	UINT CustomDuration;
	D3DDDI_FLIPINTERVAL_TYPE CustomDurationFlipInterval;
	UINT PlaneIndex;
	D3DDDI_COLOR_SPACE_TYPE ColorSpace;
	D3DKMT_DIRTYREGIONS DirtyRegions;
} D3DKMT_FLIPMODEL_PRESENTHISTORYTOKEN;

typedef struct _D3DKMT_GDIMODEL_PRESENTHISTORYTOKEN {
	ULONG64 hLogicalSurface;
	ULONG64 hPhysicalSurface;
	RECT ScrollRect;
	POINT ScrollOffset;
	D3DKMT_DIRTYREGIONS DirtyRegions;
} D3DKMT_GDIMODEL_PRESENTHISTORYTOKEN;

typedef struct _D3DKMT_GDIMODEL_SYSMEM_PRESENTHISTORYTOKEN {
	ULONG64 hlsurf;
	DWORD dwDirtyFlags;
	UINT64 uiCookie;
} D3DKMT_GDIMODEL_SYSMEM_PRESENTHISTORYTOKEN;

typedef struct _D3DKMT_SURFACECOMPLETE_PRESENTHISTORYTOKEN {
	ULONG64 hLogicalSurface;
} D3DKMT_SURFACECOMPLETE_PRESENTHISTORYTOKEN;

typedef struct _D3DKMT_PRESENTHISTORYTOKEN {
	D3DKMT_PRESENT_MODEL Model;
	UINT TokenSize;
	UINT64 CompositionBindingId;
	union {
		D3DKMT_FLIPMODEL_PRESENTHISTORYTOKEN Flip;
		D3DKMT_BLTMODEL_PRESENTHISTORYTOKEN Blt;
		D3DKMT_VISTABLTMODEL_PRESENTHISTORYTOKEN VistaBlt;
		D3DKMT_GDIMODEL_PRESENTHISTORYTOKEN Gdi;
		D3DKMT_FENCE_PRESENTHISTORYTOKEN Fence;
		D3DKMT_GDIMODEL_SYSMEM_PRESENTHISTORYTOKEN GdiSysMem;
		D3DKMT_COMPOSITION_PRESENTHISTORYTOKEN Composition;
		D3DKMT_FLIPMANAGER_PRESENTHISTORYTOKEN FlipManager;
		D3DKMT_SURFACECOMPLETE_PRESENTHISTORYTOKEN SurfaceComplete;
	} Token;
} D3DKMT_PRESENTHISTORYTOKEN;

typedef struct _D3DKMT_MOVE_RECT {
	POINT SourcePoint;
	RECT DestRect;
} D3DKMT_MOVE_RECT;

typedef struct _D3DKMT_PRESENT_RGNS {
	UINT DirtyRectCount;
	D3DKMT_PTR(const RECT *, pDirtyRects);
	UINT MoveRectCount;
	D3DKMT_PTR(const D3DKMT_MOVE_RECT *, pMoveRects);
} D3DKMT_PRESENT_RGNS;

typedef struct _D3DKMT_PRESENT {
	union {
		D3DKMT_HANDLE hDevice;
		D3DKMT_HANDLE hContext;
	};
	D3DKMT_PTR(HWND, hWindow);
	D3DDDI_VIDEO_PRESENT_SOURCE_ID VidPnSourceId;
	D3DKMT_HANDLE hSource;
	D3DKMT_HANDLE hDestination;
	UINT Color;
	RECT DstRect;
	RECT SrcRect;
	UINT SubRectCnt;
	D3DKMT_PTR(const RECT *, pSrcSubRects);
	UINT PresentCount;
	D3DDDI_FLIPINTERVAL_TYPE FlipInterval;
	D3DKMT_PRESENTFLAGS Flags;
	ULONG BroadcastContextCount;
	D3DKMT_HANDLE BroadcastContext[64];
	HANDLE PresentLimitSemaphore;
	D3DKMT_PRESENTHISTORYTOKEN PresentHistoryToken;
	D3DKMT_PRESENT_RGNS *pPresentRegions;
	union {
		D3DKMT_HANDLE hAdapter;
		D3DKMT_HANDLE hIndirectContext;
	};
	UINT Duration;
	D3DKMT_PTR(D3DKMT_HANDLE *, BroadcastSrcAllocation);
	D3DKMT_PTR(D3DKMT_HANDLE *, BroadcastDstAllocation);
	UINT PrivateDriverDataSize;
	D3DKMT_PTR(PVOID, pPrivateDriverData);
	BOOLEAN bOptimizeForComposition;
} D3DKMT_PRESENT;

typedef struct _D3DKMT_MULTIPLANE_OVERLAY_ATTRIBUTES2 {
	UINT Flags;
	RECT SrcRect;
	RECT DstRect;
	RECT ClipRect;
	D3DDDI_ROTATION Rotation;
	D3DKMT_MULTIPLANE_OVERLAY_BLEND Blend;
	UINT DirtyRectCount;
	D3DKMT_PTR(RECT *, pDirtyRects);
	D3DKMT_MULTIPLANE_OVERLAY_VIDEO_FRAME_FORMAT VideoFrameFormat;
	D3DDDI_COLOR_SPACE_TYPE ColorSpace;
	D3DKMT_MULTIPLANE_OVERLAY_STEREO_FORMAT StereoFormat;
	BOOL StereoLeftViewFrame0;
	BOOL StereoBaseViewFrame0;
	DXGKMT_MULTIPLANE_OVERLAY_STEREO_FLIP_MODE StereoFlipMode;
	DXGKMT_MULTIPLANE_OVERLAY_STRETCH_QUALITY StretchQuality;
	UINT Reserved1;
} D3DKMT_MULTIPLANE_OVERLAY_ATTRIBUTES2;

typedef struct _D3DKMT_MULTIPLANE_OVERLAY2 {
	UINT LayerIndex;
	BOOL Enabled;
	D3DKMT_HANDLE hAllocation;
	D3DKMT_MULTIPLANE_OVERLAY_ATTRIBUTES2 PlaneAttributes;
} D3DKMT_MULTIPLANE_OVERLAY2;

typedef struct _D3DKMT_PRESENT_MULTIPLANE_OVERLAY2 {
	D3DKMT_HANDLE hAdapter;
	union {
		D3DKMT_HANDLE hDevice;
		D3DKMT_HANDLE hContext;
	};
	ULONG BroadcastContextCount;
	D3DKMT_HANDLE BroadcastContext[64];
	D3DDDI_VIDEO_PRESENT_SOURCE_ID VidPnSourceId;
	UINT PresentCount;
	D3DDDI_FLIPINTERVAL_TYPE FlipInterval;
	D3DKMT_PRESENTFLAGS Flags;
	UINT PresentPlaneCount;
	D3DKMT_PTR(D3DKMT_MULTIPLANE_OVERLAY2 *, pPresentPlanes);
	UINT Duration;
} D3DKMT_PRESENT_MULTIPLANE_OVERLAY2;

typedef struct _D3DKMT_MULTIPLANE_OVERLAY_ATTRIBUTES3 {
	UINT Flags;
	RECT SrcRect;
	RECT DstRect;
	RECT ClipRect;
	D3DDDI_ROTATION Rotation;
	D3DKMT_MULTIPLANE_OVERLAY_BLEND Blend;
	UINT DirtyRectCount;
	D3DKMT_PTR(RECT *, pDirtyRects);
	D3DDDI_COLOR_SPACE_TYPE ColorSpace;
	DXGKMT_MULTIPLANE_OVERLAY_STRETCH_QUALITY StretchQuality;
	UINT SDRWhiteLevel;
} D3DKMT_MULTIPLANE_OVERLAY_ATTRIBUTES3;

typedef struct _D3DKMT_PLANE_SPECIFIC_INPUT_FLAGS {
	union {
		struct {
			UINT Enabled : 1;   /* 0x00000001 */
			UINT Reserved : 31; /* 0xFFFFFFFE */
		};
		UINT Value;
	};
} D3DKMT_PLANE_SPECIFIC_INPUT_FLAGS;

typedef struct _D3DKMT_MULTIPLANE_OVERLAY3 {
	UINT LayerIndex;
	D3DKMT_PLANE_SPECIFIC_INPUT_FLAGS InputFlags;
	D3DDDI_FLIPINTERVAL_TYPE FlipInterval;
	UINT MaxImmediateFlipLine;
	UINT AllocationCount;
	D3DKMT_PTR(D3DKMT_HANDLE *, pAllocationList);
	UINT DriverPrivateDataSize;
	D3DKMT_PTR(VOID *, pDriverPrivateData);
	D3DKMT_PTR(const D3DKMT_MULTIPLANE_OVERLAY_ATTRIBUTES3 *, pPlaneAttributes);
	D3DKMT_HANDLE hFlipToFence;
	D3DKMT_HANDLE hFlipAwayFence;
	UINT64 FlipToFenceValue;
	UINT64 FlipAwayFenceValue;
} D3DKMT_MULTIPLANE_OVERLAY3;

typedef struct _D3DKMT_MULTIPLANE_OVERLAY_POST_COMPOSITION_FLAGS {
	union {
		struct {
			UINT VerticalFlip : 1;   /* 0x00000001 */
			UINT HorizontalFlip : 1; /* 0x00000002 */
			UINT Reserved : 30;      /* 0xFFFFFFFC */
		};
		UINT Value;
	};
} D3DKMT_MULTIPLANE_OVERLAY_POST_COMPOSITION_FLAGS;

typedef struct _D3DKMT_MULTIPLANE_OVERLAY_POST_COMPOSITION {
	D3DKMT_MULTIPLANE_OVERLAY_POST_COMPOSITION_FLAGS Flags;
	RECT SrcRect;
	RECT DstRect;
	D3DDDI_ROTATION Rotation;
} D3DKMT_MULTIPLANE_OVERLAY_POST_COMPOSITION;

typedef struct _D3DKMT_PRESENT_MULTIPLANE_OVERLAY_FLAGS {
	union {
		struct {
			UINT FlipStereo : 1;              /* 0x00000001 */
			UINT FlipStereoTemporaryMono : 1; /* 0x00000002 */
			UINT FlipStereoPreferRight : 1;   /* 0x00000004 */
			UINT FlipDoNotWait : 1;           /* 0x00000008 */
			UINT FlipDoNotFlip : 1;           /* 0x00000010 */
			UINT FlipRestart : 1;             /* 0x00000020 */
			UINT DurationValid : 1;           /* 0x00000040 */
			UINT HDRMetaDataValid : 1;        /* 0x00000080 */
			UINT HMD : 1;                     /* 0x00000100 */
			UINT TrueImmediate : 1;           /* 0x00000200 */
			UINT Reserved : 22;               /* 0xFFFFFC00 */
		};
		UINT Value;
	};
} D3DKMT_PRESENT_MULTIPLANE_OVERLAY_FLAGS;

typedef struct _D3DKMT_PRESENT_MULTIPLANE_OVERLAY3 {
	D3DKMT_HANDLE hAdapter;
	UINT ContextCount;
	D3DKMT_PTR(D3DKMT_HANDLE *, pContextList);
	D3DDDI_VIDEO_PRESENT_SOURCE_ID VidPnSourceId;
	UINT PresentCount;
	D3DKMT_PRESENT_MULTIPLANE_OVERLAY_FLAGS Flags;
	UINT PresentPlaneCount;
	D3DKMT_MULTIPLANE_OVERLAY3 **ppPresentPlanes;
	D3DKMT_PTR(D3DKMT_MULTIPLANE_OVERLAY_POST_COMPOSITION *, pPostComposition);
	UINT Duration;
	D3DDDI_HDR_METADATA_TYPE HDRMetaDataType;
	UINT HDRMetaDataSize;
	D3DKMT_PTR(const VOID *, pHDRMetaData);
	UINT BoostRefreshRateMultiplier;
} D3DKMT_PRESENT_MULTIPLANE_OVERLAY3;

typedef struct _D3DKMT_PRESENT_REDIRECTEDS_FLAGS {
	union {
		UINT Reserved : 32; /* 0xFFFFFFFF */
		UINT Value;
	};
} D3DKMT_PRESENT_REDIRECTEDS_FLAGS;

typedef struct _D3DKMT_PRESENT_REDIRECTED {
	D3DKMT_HANDLE hSyncObj;
	D3DKMT_HANDLE hDevice;
	ULONGLONG WaitedFenceValue;
	D3DKMT_PRESENTHISTORYTOKEN PresentHistoryToken;
	D3DKMT_PRESENT_REDIRECTEDS_FLAGS Flags;
	D3DKMT_HANDLE hSource;
	UINT PrivateDriverDataSize;
	D3DKMT_PTR(PVOID, pPrivateDriverData);
} D3DKMT_PRESENT_REDIRECTED;

typedef struct _D3DKMT_PRESENT_STATS_DWM2 {
	ULONG cbSize;
	UINT PresentCount;
	UINT PresentRefreshCount;
	LARGE_INTEGER PresentQPCTime;
	UINT SyncRefreshCount;
	LARGE_INTEGER SyncQPCTime;
	UINT CustomPresentDuration;
	UINT VirtualSyncRefreshCount;
	LARGE_INTEGER VirtualSyncQPCTime;
} D3DKMT_PRESENT_STATS_DWM2;

typedef enum _D3DKMT_AUXILIARYPRESENTINFO_TYPE {
	D3DKMT_AUXILIARYPRESENTINFO_TYPE_FLIPMANAGER = 0,
} D3DKMT_AUXILIARYPRESENTINFO_TYPE;

typedef struct _D3DKMT_AUXILIARYPRESENTINFO {
	UINT size;
	D3DKMT_AUXILIARYPRESENTINFO_TYPE type;
} D3DKMT_AUXILIARYPRESENTINFO;

typedef struct _D3DKMT_FLIPMANAGER_AUXILIARYPRESENTINFO {
	D3DKMT_AUXILIARYPRESENTINFO auxiliaryPresentInfo;
	UINT flipManagerTracingId;
	BOOL customDurationChanged;
	LUID FlipAdapterLuid;
	D3DDDI_VIDEO_PRESENT_SOURCE_ID VidPnSourceId;
	D3DKMT_FLIPMODEL_INDEPENDENT_FLIP_STAGE independentFlipStage;
	ULONGLONG FlipCompletedQpc;
	UINT HwPresentDurationQpc;
	BOOL WasCanceled;
} D3DKMT_FLIPMANAGER_AUXILIARYPRESENTINFO;

typedef struct _D3DKMT_FLIPOVERLAY {
	D3DKMT_HANDLE hDevice;
	D3DKMT_HANDLE hOverlay;
	D3DKMT_HANDLE hSource;
	D3DKMT_PTR(VOID *, pPrivateDriverData);
	UINT PrivateDriverDataSize;
} D3DKMT_FLIPOVERLAY;

typedef struct _D3DKMT_CANCEL_PRESENTS_FLAGS {
	union {
		struct {
			UINT NewVSyncInterruptState : 1; /* 0x00000001 */
			UINT Reserved : 31;              /* 0xFFFFFFFE */
		} ReprogramInterrupt;
		UINT Value;
	};
} D3DKMT_CANCEL_PRESENTS_FLAGS;

typedef enum _D3DKMT_CANCEL_PRESENTS_OPERATION {
	D3DKMT_CANCEL_PRESENTS_OPERATION_CANCEL_FROM = 0,
	D3DKMT_CANCEL_PRESENTS_OPERATION_REPROGRAM_INTERRUPT = 1,
} D3DKMT_CANCEL_PRESENTS_OPERATION;

typedef struct _D3DKMT_CANCEL_PRESENTS {
	UINT cbSize;
	D3DKMT_HANDLE hDevice;
	D3DKMT_CANCEL_PRESENTS_FLAGS Flags;
	D3DKMT_CANCEL_PRESENTS_OPERATION Operation;
	UINT64 CancelFromPresentId;
	LUID CompSurfaceLuid;
	UINT64 BindId;
} D3DKMT_CANCEL_PRESENTS;

typedef struct _D3DKMT_SUBMITPRESENTBLTTOHWQUEUE {
	D3DKMT_HANDLE hHwQueue;
	UINT64 HwQueueProgressFenceId;
	D3DKMT_PRESENT PrivatePresentData;
} D3DKMT_SUBMITPRESENTBLTTOHWQUEUE;

typedef struct _D3DKMT_SUBMITPRESENTTOHWQUEUE {
	D3DKMT_PTR(D3DKMT_HANDLE *, hHwQueues);
	D3DKMT_PRESENT PrivatePresentData;
} D3DKMT_SUBMITPRESENTTOHWQUEUE;

typedef struct _D3DKMT_GETPRESENTHISTORY {
	D3DKMT_HANDLE hAdapter;
	UINT ProvidedSize;
	UINT WrittenSize;
	D3DKMT_PTR(D3DKMT_PRESENTHISTORYTOKEN *, pTokens);
	UINT NumTokens;
} D3DKMT_GETPRESENTHISTORY;

#ifdef __cplusplus
}
#endif

#endif
