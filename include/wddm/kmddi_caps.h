/* SPDX-License-Identifier: MIT */
/*
 * What a miniport reports: DxgkDdiQueryAdapterInfo, its capabilities,
 * DXGK_DRIVERCAPS. Part of d3dkmddi.h. Members marked "since" exist from that version on;
 * capability bits are named in every version, because they never change the size of their word.
 * Source: the pages DXGKARG_QUERYADAPTERINFO, DXGK_DRIVERCAPS, DXGK_VIDSCHCAPS, DXGK_VIDMMCAPS.
 */
#ifndef WDDM_KMDDI_CAPS_H
#define WDDM_KMDDI_CAPS_H

#include "d3dukmdt.h"
#include "d3dkmdt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Limit of the node arrays; node 0 is the 3D node. */
#define DXGK_MAX_ASYMETRICAL_PROCESSING_NODES 64

typedef struct _DXGK_POINTERFLAGS {
	union {
		struct {
			UINT Monochrome : 1;  /* 0x00000001 */
			UINT Color : 1;       /* 0x00000002 */
			UINT MaskedColor : 1; /* 0x00000004 */
			UINT Reserved : 29;   /* 0xFFFFFFF8 */
		};
		UINT Value;
	};
} DXGK_POINTERFLAGS;

typedef struct _DXGK_GAMMARAMPCAPS {
	union {
		struct {
			UINT Gamma_Rgb256x3x16 : 1; /* 0x00000001 */
			UINT Reserved : 31;         /* 0xFFFFFFFE */
		};
		UINT Value;
	};
} DXGK_GAMMARAMPCAPS;

typedef struct _DXGK_COLORTRANSFORMCAPS {
	union {
		struct {
			UINT Gamma_Rgb256x3x16 : 1;             /* 0x00000001 */
			UINT Gamma_Dxgi1 : 1;                   /* 0x00000002 */
			UINT Transform_3x4Matrix : 1;           /* 0x00000004 */
			UINT Transform_3x4Matrix_WideColor : 1; /* 0x00000008 */
			UINT Transform_3x4Matrix_HighColor : 1; /* 0x00000010 */
			UINT Reserved : 27;                     /* 0xFFFFFFE0 */
		};
		UINT Value;
	};
} DXGK_COLORTRANSFORMCAPS;

typedef struct _DXGK_PRESENTATIONCAPS {
	union {
		struct {
			UINT NoScreenToScreenBlt : 1;              /* 0x00000001 */
			UINT NoOverlapScreenBlt : 1;               /* 0x00000002 */
			UINT SupportKernelModeCommandBuffer : 1;   /* 0x00000004 */
			UINT NoSameBitmapAlphaBlend : 1;           /* 0x00000008 */
			UINT NoSameBitmapStretchBlt : 1;           /* 0x00000010 */
			UINT NoSameBitmapTransparentBlt : 1;       /* 0x00000020 */
			UINT NoSameBitmapOverlappedAlphaBlend : 1; /* 0x00000040 */
			UINT NoSameBitmapOverlappedStretchBlt : 1; /* 0x00000080 */
			UINT DriverSupportsCddDwmInterop : 1;      /* 0x00000100 */
			UINT Reserved0 : 1;                        /* 0x00000200 */
			UINT AlignmentShift : 4;                   /* 0x00003C00 */
			UINT MaxTextureWidthShift : 3;             /* 0x0001C000 */
			UINT MaxTextureHeightShift : 3;            /* 0x000E0000 */
			UINT SupportAllBltRops : 1;                /* 0x00100000 */
			UINT SupportMirrorStretchBlt : 1;          /* 0x00200000 */
			UINT SupportMonoStretchBltModes : 1;       /* 0x00400000 */
			UINT StagingRectStartPitchAligned : 1;     /* 0x00800000 */
			UINT NoSameBitmapBitBlt : 1;               /* 0x01000000 */
			UINT NoSameBitmapOverlappedBitBlt : 1;     /* 0x02000000 */
			UINT Reserved1 : 1;                        /* 0x04000000 */
			UINT NoTempSurfaceForClearTypeBlend : 1;   /* 0x08000000 */
			UINT SupportSoftwareDeviceBitmaps : 1;     /* 0x10000000 */
			UINT NoCacheCoherentApertureMemory : 1;    /* 0x20000000 */
			UINT SupportLinearHeap : 1;                /* 0x40000000 */
			UINT Reserved : 1;                         /* 0x80000000 */
		};
		UINT Value;
	};
} DXGK_PRESENTATIONCAPS;

typedef struct _DXGK_FLIPCAPS {
	union {
		struct {
			UINT FlipOnVSyncWithNoWait : 1; /* 0x00000001 */
			UINT FlipOnVSyncMmIo : 1;       /* 0x00000002 */
			UINT FlipInterval : 1;          /* 0x00000004 */
			UINT FlipImmediateMmIo : 1;     /* 0x00000008 */
			UINT FlipIndependent : 1;       /* 0x00000010 */
			UINT Reserved : 27;             /* 0xFFFFFFE0 */
		};
		UINT Value;
	};
} DXGK_FLIPCAPS;

/* How the scheduler may use this miniport. The two most important bits: MultiEngineAware
 * (contexts exist) and PreemptionAware (a preemption request precedes every timeout). */
typedef struct _DXGK_VIDSCHCAPS {
	union {
		struct {
			UINT MultiEngineAware : 1;      /* 0x00000001 */
			UINT VSyncPowerSaveAware : 1;   /* 0x00000002 */
			UINT PreemptionAware : 1;       /* 0x00000004 since 1.2 */
			UINT NoDmaPatching : 1;         /* 0x00000008 since 1.2 */
			UINT CancelCommandAware : 1;    /* 0x00000010 since 1.2 */
			UINT No64BitAtomics : 1;        /* 0x00000020 since 2.0 */
			UINT LowIrqlPreemptCommand : 1; /* 0x00000040 since 2.x */
			UINT HwQueuePacketCap : 4;      /* 0x00000780 packets per node, since 2.x */
			UINT Reserved : 21;             /* 0xFFFFF800 */
		};
		UINT Value;
	};
} DXGK_VIDSCHCAPS;

/* What the memory manager may do with this miniport's allocations. PagingNode is the node of the
 * paging buffers on 1.x; from 2.0 it is in DXGK_PHYSICALADAPTERCAPS. */
typedef struct _DXGK_VIDMMCAPS {
	union {
		struct {
			UINT OutOfOrderLock : 1;              /* 0x00000001 */
			UINT DedicatedPagingEngine : 1;       /* 0x00000002 reserved, 0 */
			UINT PagingEngineCanSwizzle : 1;      /* 0x00000004 reserved, 0 */
			UINT SectionBackedPrimary : 1;        /* 0x00000008 since 1.2 */
			UINT CrossAdapterResource : 1;        /* 0x00000010 since 1.3 */
			UINT VirtualAddressingSupported : 1;  /* 0x00000020 since 2.0 */
			UINT GpuMmuSupported : 1;             /* 0x00000040 since 2.0 */
			UINT IoMmuSupported : 1;              /* 0x00000080 since 2.0 */
			UINT ReplicateGdiContent : 1;         /* 0x00000100 since 2.0 */
			UINT NonCpuVisiblePrimary : 1;        /* 0x00000200 since 2.0 */
			UINT ParavirtualizationSupported : 1; /* 0x00000400 since 2.2 */
			UINT IoMmuSecureModeSupported : 1;    /* 0x00000800 since 2.4 */
			UINT DisableSelfRefreshVRAMInS3 : 1;  /* 0x00001000 since 2.4 */
			UINT IoMmuSecureModeRequired : 1;     /* 0x00002000 since 2.7 */
			UINT MapAperture2Supported : 1;       /* 0x00004000 since 2.9 */
			UINT CrossAdapterResourceTexture : 1; /* 0x00008000 since 2.9 */
			UINT CrossAdapterResourceScanout : 1; /* 0x00010000 since 2.9 */
			UINT Reserved : 15;                   /* 0xFFFE0000 */
		};
		UINT Value;
	};
	UINT PagingNode;
} DXGK_VIDMMCAPS;

typedef struct _DXGK_GPUENGINETOPOLOGY {
	UINT NbAsymetricProcessingNodes;
	UINT Reserved[DXGK_MAX_ASYMETRICAL_PROCESSING_NODES];
} DXGK_GPUENGINETOPOLOGY;

/* The driver model that a miniport implements. 0: it does not report one. */
typedef enum _DXGK_WDDMVERSION {
	DXGKDDI_WDDMv1 = 0x1000,
	DXGKDDI_WDDMv1_2 = 0x1200,
	DXGKDDI_WDDMv1_3 = 0x1300,
	DXGKDDI_WDDMv2 = 0x2000,
	DXGKDDI_WDDMv2_1 = 0x2100,
	DXGKDDI_WDDMv2_2 = 0x2200,
	DXGKDDI_WDDMv2_3 = 0x2300,
	DXGKDDI_WDDMv2_4 = 0x2400,
	DXGKDDI_WDDMv2_5 = 0x2500,
	DXGKDDI_WDDMv2_6 = 0x2600,
	DXGKDDI_WDDMv2_7 = 0x2700,
	DXGKDDI_WDDMv2_8 = 0x2800,
	DXGKDDI_WDDMv2_9 = 0x2900,
	DXGKDDI_WDDMv3 = 0x3000,
	DXGKDDI_WDDMv3_1 = 0x3100,
	DXGKDDI_WDDMv3_2 = 0x3200,
} DXGK_WDDMVERSION;

/* Both are reserved: a miniport leaves them zero. Only their common size (188 bytes with the hole
 * before PreemptionCaps) is known, from the published size of DXGK_DRIVERCAPS for 1.3. */
typedef struct _DXGK_VIRTUALADDRESSCAPS {
	UINT Reserved[24];
} DXGK_VIRTUALADDRESSCAPS;

typedef struct _DXGK_DMABUFFERCAPS {
	UINT Reserved[23];
} DXGK_DMABUFFERCAPS;

typedef struct _DXGK_HWQUEUEDFLIP_CAPS {
	union {
		struct {
			UINT Reserved : 32; /* 0xFFFFFFFF */
		};
		UINT Value;
	};
} DXGK_HWQUEUEDFLIP_CAPS;

/*
 * DXGKQAITYPE_DRIVERCAPS. Filled by the miniport once, before the adapter starts.
 *
 * HighestAcceptableAddress is the last byte of system memory that the GPU reaches.
 * MaxAllocationListSlotId is the largest slot id in a patch list, at most 2^24 - 1.
 * ApertureSegmentCommitLimit is in bytes. NumberOfSwizzlingRanges may be 0.
 * InterruptMessageNumber is the MSI message of the notifications, 0 for a line interrupt.
 * Sizes on x64: 336 (1.0), 528 (1.1), 544 (1.2), 552 (1.3). Source: DXGK_DRIVERCAPS page.
 */
typedef struct _DXGK_DRIVERCAPS {
	PHYSICAL_ADDRESS HighestAcceptableAddress;
	UINT MaxAllocationListSlotId;
	SIZE_T ApertureSegmentCommitLimit;
	UINT MaxPointerWidth;
	UINT MaxPointerHeight;
	DXGK_POINTERFLAGS PointerCaps;
	UINT InterruptMessageNumber;
	UINT NumberOfSwizzlingRanges;
	UINT MaxOverlays;
	union {
		DXGK_GAMMARAMPCAPS GammaRampCaps;
		DXGK_COLORTRANSFORMCAPS ColorTransformCaps;
	};
	DXGK_PRESENTATIONCAPS PresentationCaps;
	UINT MaxQueuedFlipOnVSync;
	DXGK_FLIPCAPS FlipCaps;
	DXGK_VIDSCHCAPS SchedulingCaps;
	DXGK_VIDMMCAPS MemoryManagementCaps;
	DXGK_GPUENGINETOPOLOGY GpuEngineTopology;
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WIN7
	DXGK_WDDMVERSION WDDMVersion;
	DXGK_VIRTUALADDRESSCAPS VirtualAddressCaps;
	DXGK_DMABUFFERCAPS DmaBufferCaps;
#endif
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WIN8
	D3DKMDT_PREEMPTION_CAPS PreemptionCaps;
	BOOLEAN SupportNonVGA;
	BOOLEAN SupportSmoothRotation;
	BOOLEAN SupportPerEngineTDR;
	BOOLEAN SupportDirectFlip;
	BOOLEAN SupportMultiPlaneOverlay;
	BOOLEAN SupportRuntimePowerManagement;
	BOOLEAN SupportSurpriseRemovalInHibernation;
#endif
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WDDM1_3
	BOOLEAN HybridDiscrete;
	UINT MaxOverlayPlanes;
#endif
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WDDM2_0
	BOOLEAN HybridIntegrated;
	D3DGPU_VIRTUAL_ADDRESS InternalGpuVirtualAddressRangeStart;
	D3DGPU_VIRTUAL_ADDRESS InternalGpuVirtualAddressRangeEnd;
	BOOLEAN SupportSurpriseRemoval;
#endif
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WDDM2_1
	BOOLEAN SupportMultiPlaneOverlayImmediateFlip;
	BOOLEAN CursorScaledWithMultiPlaneOverlayPlane0;
#endif
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WDDM2_2
	BOOLEAN HybridAcpiChainingRequired;
	UINT MaxQueuedMultiPlaneOverlayFlipVSync;
#endif
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WDDM2_4
	union {
		struct {
			UINT SupportContextlessPresent : 1;       /* 0x00000001 */
			UINT Detachable : 1;                      /* 0x00000002 */
			UINT VirtualGpuOnly : 1;                  /* 0x00000004 since 2.5 */
			UINT ComputeOnly : 1;                     /* 0x00000008 since 2.6 */
			UINT IndependentVidPnVSyncControl : 1;    /* 0x00000010 since 2.7 */
			UINT NoHybridDiscreteDListDllSupport : 1; /* 0x00000020 since 2.8 */
			UINT DisplayableSupport : 1;              /* 0x00000040 since 3.0 */
			UINT Reserved : 25;                       /* 0xFFFFFF80 */
		};
		UINT Value;
	} MiscCaps;
#endif
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WDDM2_9
	UINT MaxHwQueuedFlips;
	DXGK_HWQUEUEDFLIP_CAPS HwQueuedFlipCaps;
#endif
} DXGK_DRIVERCAPS;

/* The queries of DxgkDdiQueryAdapterInfo. Source: the page of the enumeration. */
typedef enum _DXGK_QUERYADAPTERINFOTYPE {
	DXGKQAITYPE_UMDRIVERPRIVATE = 0,
	DXGKQAITYPE_DRIVERCAPS = 1,
	DXGKQAITYPE_QUERYSEGMENT = 2,
	DXGKQAITYPE_ALLOCATIONGROUP = 3,
	DXGKQAITYPE_QUERYSEGMENT2 = 4,
	DXGKQAITYPE_QUERYSEGMENT3 = 5,
	DXGKQAITYPE_NUMPOWERCOMPONENTS = 6,
	DXGKQAITYPE_POWERCOMPONENTINFO = 7,
	DXGKQAITYPE_PREFERREDGPUNODE = 8,
	DXGKQAITYPE_POWERCOMPONENTPSTATEINFO = 9,
	DXGKQAITYPE_HISTORYBUFFERPRECISION = 10,
	DXGKQAITYPE_QUERYSEGMENT4 = 11,
	DXGKQAITYPE_SEGMENTMEMORYSTATE = 12,
	DXGKQAITYPE_GPUMMUCAPS = 13,
	DXGKQAITYPE_PAGETABLELEVELDESC = 14,
	DXGKQAITYPE_PHYSICALADAPTERCAPS = 15,
	DXGKQAITYPE_DISPLAY_DRIVERCAPS_EXTENSION = 16,
	DXGKQAITYPE_INTEGRATED_DISPLAY_DESCRIPTOR = 17,
	DXGKQAITYPE_UEFIFRAMEBUFFERRANGES = 18,
	DXGKQAITYPE_QUERYCOLORIMETRYOVERRIDES = 19,
} DXGK_QUERYADAPTERINFOTYPE;

typedef struct _DXGKARG_QUERYADAPTERINFO {
	DXGK_QUERYADAPTERINFOTYPE Type;
	VOID *pInputData;
	UINT InputDataSize; /* bytes */
	VOID *pOutputData;
	UINT OutputDataSize; /* bytes */
} DXGKARG_QUERYADAPTERINFO;

/* One physical adapter of a linked set. Input of the type: its index, a UINT. Since 2.0. */
typedef struct _DXGK_PHYSICALADAPTERFLAGS {
	union {
		struct {
			UINT IoMmu : 1;                    /* 0x00000001 */
			UINT GpuMmu : 1;                   /* 0x00000002 */
			UINT MovingPaging : 1;             /* 0x00000004 */
			UINT VPRPagingContextRequired : 1; /* 0x00000008 */
			UINT Reserved : 28;                /* 0xFFFFFFF0 */
		};
		UINT Value;
	};
} DXGK_PHYSICALADAPTERFLAGS;

typedef struct _DXGK_PHYSICALADAPTERCAPS {
	WORD NumExecutionNodes;
	WORD PagingNodeIndex;
	HANDLE DxgkPhysicalAdapterHandle;
	DXGK_PHYSICALADAPTERFLAGS Flags;
	UINT VPRPagingNode;
} DXGK_PHYSICALADAPTERCAPS;

#ifdef __cplusplus
}
#endif

#endif
