/* SPDX-License-Identifier: MIT */
/*
 * Allocations as the miniport describes them, opens them and sees them destroyed; swizzling
 * ranges and the CPU host aperture. Part of d3dkmddi.h. Source: the pages DXGK_ALLOCATIONINFO,
 * DXGK_ALLOCATIONINFOFLAGS(_WDDM2_0, 2), DXGKARG_CREATEALLOCATION, DXGKARG_OPENALLOCATION,
 * DXGKARG_ACQUIRESWIZZLINGRANGE.
 */
#ifndef WDDM_KMDDI_ALLOC_H
#define WDDM_KMDDI_ALLOC_H

#include "kmddi_segment.h"
#include "d3dkmdt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How the content of an allocation is used: a hint for detiling and debugging. */
typedef struct _DXGK_ALLOCATIONUSAGEINFO1 {
	union {
		struct {
			UINT PrivateFormat : 1; /* 0x00000001 */
			UINT Swizzled : 1;      /* 0x00000002 */
			UINT MipMap : 1;        /* 0x00000004 */
			UINT Cube : 1;          /* 0x00000008 */
			UINT Volume : 1;        /* 0x00000010 */
			UINT Vertex : 1;        /* 0x00000020 */
			UINT Index : 1;         /* 0x00000040 */
			UINT Reserved : 25;     /* 0xFFFFFF80 */
		};
		UINT Value;
	} Flags;
	union {
		D3DDDIFORMAT Format;
		UINT PrivateFormat;
	};
	UINT SwizzledFormat;
	UINT ByteOffset;
	UINT Width;
	UINT Height;
	UINT Pitch;
	UINT Depth;
	UINT SlicePitch;
} DXGK_ALLOCATIONUSAGEINFO1;

typedef struct _DXGK_ALLOCATIONUSAGEHINT {
	UINT Version;
	DXGK_ALLOCATIONUSAGEINFO1 v1;
} DXGK_ALLOCATIONUSAGEHINT;

/* Properties of an allocation, as 1.x miniports report them. Bits 15 to 18 are reserved below
 * 2.0. Source: DXGK_ALLOCATIONINFOFLAGS page; rules ALF-*. */
typedef struct _DXGK_ALLOCATIONINFOFLAGS {
	union {
		struct {
			UINT CpuVisible : 1;           /* 0x00000001 */
			UINT PermanentSysMem : 1;      /* 0x00000002 */
			UINT Cached : 1;               /* 0x00000004 */
			UINT Protected : 1;            /* 0x00000008 */
			UINT ExistingSysMem : 1;       /* 0x00000010 */
			UINT ExistingKernelSysMem : 1; /* 0x00000020 */
			UINT FromEndOfSegment : 1;     /* 0x00000040 */
			UINT Swizzled : 1;             /* 0x00000080 */
			UINT Overlay : 1;              /* 0x00000100 */
			UINT Capture : 1;              /* 0x00000200 */
			UINT UseAlternateVA : 1;       /* 0x00000400 */
			UINT SynchronousPaging : 1;    /* 0x00000800 */
			UINT LinkMirrored : 1;         /* 0x00001000 */
			UINT LinkInstanced : 1;        /* 0x00002000 */
			UINT HistoryBuffer : 1;        /* 0x00004000 */
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WDDM2_0
			UINT AccessedPhysically : 1;            /* 0x00008000 */
			UINT ExplicitResidencyNotification : 1; /* 0x00010000 */
			UINT HardwareProtected : 1;             /* 0x00020000 */
			UINT CpuVisibleOnDemand : 1;            /* 0x00040000 */
#else
			UINT Reserved : 4;   /* 0x00078000 */
#endif
			UINT DXGK_ALLOC_RESERVED16 : 1; /* 0x00080000 */
			UINT DXGK_ALLOC_RESERVED15 : 1; /* 0x00100000 */
			UINT DXGK_ALLOC_RESERVED14 : 1; /* 0x00200000 */
			UINT DXGK_ALLOC_RESERVED13 : 1; /* 0x00400000 */
			UINT DXGK_ALLOC_RESERVED12 : 1; /* 0x00800000 */
			UINT DXGK_ALLOC_RESERVED11 : 1; /* 0x01000000 */
			UINT DXGK_ALLOC_RESERVED10 : 1; /* 0x02000000 */
			UINT DXGK_ALLOC_RESERVED9 : 1;  /* 0x04000000 */
			UINT DXGK_ALLOC_RESERVED4 : 1;  /* 0x08000000 */
			UINT DXGK_ALLOC_RESERVED3 : 1;  /* 0x10000000 */
			UINT DXGK_ALLOC_RESERVED2 : 1;  /* 0x20000000 */
			UINT DXGK_ALLOC_RESERVED1 : 1;  /* 0x40000000 */
			UINT DXGK_ALLOC_RESERVED0 : 1;  /* 0x80000000 */
		};
		UINT Value;
	};
} DXGK_ALLOCATIONINFOFLAGS;

/* The same for 2.x miniports; the bits of renaming and swizzling ranges have other meanings. */
typedef struct _DXGK_ALLOCATIONINFOFLAGS_WDDM2_0 {
	union {
		struct {
			UINT CpuVisible : 1;              /* 0x00000001 */
			UINT PermanentSysMem : 1;         /* 0x00000002 */
			UINT Cached : 1;                  /* 0x00000004 */
			UINT Protected : 1;               /* 0x00000008 */
			UINT ExistingSysMem : 1;          /* 0x00000010 */
			UINT ExistingKernelSysMem : 1;    /* 0x00000020 */
			UINT FromEndOfSegment : 1;        /* 0x00000040 */
			UINT DisableLargePageMapping : 1; /* 0x00000080 */
			UINT Overlay : 1;                 /* 0x00000100 */
			UINT Capture : 1;                 /* 0x00000200 */
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WDDM2_1
			UINT CreateInVpr : 1; /* 0x00000400 */
#else
			UINT Reserved00 : 1; /* 0x00000400 */
#endif
			UINT DXGK_ALLOC_RESERVED17 : 1; /* 0x00000800 */
			UINT Reserved02 : 1;            /* 0x00001000 */
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WDDM2_9
			UINT MapApertureCpuVisible : 1; /* 0x00002000 */
#else
			UINT Reserved03 : 1; /* 0x00002000 */
#endif
			UINT HistoryBuffer : 1;                 /* 0x00004000 */
			UINT AccessedPhysically : 1;            /* 0x00008000 */
			UINT ExplicitResidencyNotification : 1; /* 0x00010000 */
			UINT HardwareProtected : 1;             /* 0x00020000 */
			UINT CpuVisibleOnDemand : 1;            /* 0x00040000 */
			UINT DXGK_ALLOC_RESERVED16 : 1;         /* 0x00080000 */
			UINT DXGK_ALLOC_RESERVED15 : 1;         /* 0x00100000 */
			UINT DXGK_ALLOC_RESERVED14 : 1;         /* 0x00200000 */
			UINT DXGK_ALLOC_RESERVED13 : 1;         /* 0x00400000 */
			UINT DXGK_ALLOC_RESERVED12 : 1;         /* 0x00800000 */
			UINT DXGK_ALLOC_RESERVED11 : 1;         /* 0x01000000 */
			UINT DXGK_ALLOC_RESERVED10 : 1;         /* 0x02000000 */
			UINT DXGK_ALLOC_RESERVED9 : 1;          /* 0x04000000 */
			UINT DXGK_ALLOC_RESERVED4 : 1;          /* 0x08000000 */
			UINT DXGK_ALLOC_RESERVED3 : 1;          /* 0x10000000 */
			UINT DXGK_ALLOC_RESERVED2 : 1;          /* 0x20000000 */
			UINT DXGK_ALLOC_RESERVED1 : 1;          /* 0x40000000 */
			UINT DXGK_ALLOC_RESERVED0 : 1;          /* 0x80000000 */
		};
		UINT Value;
	};
} DXGK_ALLOCATIONINFOFLAGS_WDDM2_0;

typedef struct _DXGK_ALLOCATIONINFOFLAGS2 {
	union {
		struct {
			UINT ShareBackingStoreWithKmd : 1;  /* 0x00000001 */
			UINT NoImplicitSynchronization : 1; /* 0x00000002 since 3.2 */
			UINT DisablePartialResidency : 1;   /* 0x00000004 since 3.2 */
			UINT RestrictedToSingleSegment : 1; /* 0x00000008 since 3.2 */
			UINT NotifyEviction : 1;            /* 0x00000010 since 3.2 */
			UINT NotifyIoMmuUnmap : 1;          /* 0x00000020 since 3.2 */
			UINT Reserved : 26;                 /* 0xFFFFFFC0 */
		};
		UINT Value;
	};
} DXGK_ALLOCATIONINFOFLAGS2;

/*
 * One allocation of a DxgkDdiCreateAllocation call. In: the private data and, from 2.0,
 * PhysicalAdapterIndex. Out: the rest. Size and Alignment are in bytes (Alignment 0 = a page);
 * segment sets are masks, bit n - 1 = segment n; PitchAlignedSize replaces Size in segments
 * flagged PitchAlignment; MaximumRenamingListLength counts instances including the current one,
 * and 0 sets no limit (REN-07, REN-08). hAllocation is the miniport's handle, which every later
 * call passes.
 */
typedef struct _DXGK_ALLOCATIONINFO {
	VOID *pPrivateDriverData;
	UINT PrivateDriverDataSize;
	UINT Alignment;
	SIZE_T Size;
	SIZE_T PitchAlignedSize;
	DXGK_SEGMENTBANKPREFERENCE HintedBank;
	DXGK_SEGMENTPREFERENCE PreferredSegment;
	UINT SupportedReadSegmentSet;
	UINT SupportedWriteSegmentSet;
	UINT EvictionSegmentSet;
	union {
		UINT MaximumRenamingListLength;
		UINT PhysicalAdapterIndex;
	};
	HANDLE hAllocation;
	union {
		DXGK_ALLOCATIONINFOFLAGS Flags;
		DXGK_ALLOCATIONINFOFLAGS_WDDM2_0 FlagsWddm2;
	};
	DXGK_ALLOCATIONUSAGEHINT *pAllocationUsageHint;
	UINT AllocationPriority;
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WDDM3_0
	DXGK_ALLOCATIONINFOFLAGS2 Flags2;
#endif
} DXGK_ALLOCATIONINFO;

typedef struct _DXGK_CREATEALLOCATIONFLAGS {
	union {
		struct {
			UINT Resource : 1;  /* 0x00000001 */
			UINT Reserved : 31; /* 0xFFFFFFFE */
		};
		UINT Value;
	};
} DXGK_CREATEALLOCATIONFLAGS;

/* hResource, in: the miniport's handle of a resource that exists; out: its handle of a new one,
 * if Flags.Resource. */
typedef struct _DXGKARG_CREATEALLOCATION {
	const VOID *pPrivateDriverData;
	UINT PrivateDriverDataSize;
	UINT NumAllocations;
	DXGK_ALLOCATIONINFO *pAllocationInfo;
	HANDLE hResource;
	DXGK_CREATEALLOCATIONFLAGS Flags;
} DXGKARG_CREATEALLOCATION;

typedef struct _DXGK_DESTROYALLOCATIONFLAGS {
	union {
		struct {
			UINT DestroyResource : 1; /* 0x00000001 */
			UINT Reserved : 31;       /* 0xFFFFFFFE */
		};
		UINT Value;
	};
} DXGK_DESTROYALLOCATIONFLAGS;

typedef struct _DXGKARG_DESTROYALLOCATION {
	UINT NumAllocations;
	const HANDLE *pAllocationList;
	HANDLE hResource;
	DXGK_DESTROYALLOCATIONFLAGS Flags;
} DXGKARG_DESTROYALLOCATION;

typedef struct _DXGK_DESCRIBEALLOCATIONFLAGS {
	union {
		struct {
			UINT CheckDisplayMode : 1; /* 0x00000001 */
			UINT Reserved : 31;        /* 0xFFFFFFFE */
		};
		UINT Value;
	};
} DXGK_DESCRIBEALLOCATIONFLAGS;

typedef struct _DXGKARG_DESCRIBEALLOCATION {
	HANDLE hAllocation;
	UINT Width;
	UINT Height;
	D3DDDIFORMAT Format;
	D3DDDI_MULTISAMPLINGMETHOD MultisampleMethod;
	D3DDDI_RATIONAL RefreshRate;
	UINT PrivateDriverFormatAttribute;
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WIN8
	DXGK_DESCRIBEALLOCATIONFLAGS Flags;
	D3DDDI_ROTATION Rotation;
#endif
} DXGKARG_DESCRIBEALLOCATION;

/* hAllocation is the port's handle, valid for DxgkCbGetHandleData. The miniport returns its handle
 * of the allocation for this device in hDeviceSpecificAllocation. */
typedef struct _DXGK_OPENALLOCATIONINFO {
	D3DKMT_HANDLE hAllocation;
	const VOID *pPrivateDriverData;
	UINT PrivateDriverDataSize;
	HANDLE hDeviceSpecificAllocation;
} DXGK_OPENALLOCATIONINFO;

typedef struct _DXGK_OPENALLOCATIONFLAGS {
	union {
		struct {
			UINT Create : 1;    /* 0x00000001 */
			UINT ReadOnly : 1;  /* 0x00000002 */
			UINT Reserved : 30; /* 0xFFFFFFFC */
		};
		UINT Value;
	};
} DXGK_OPENALLOCATIONFLAGS;

typedef struct _DXGKARG_OPENALLOCATION {
	UINT NumAllocations;
	DXGK_OPENALLOCATIONINFO *pOpenAllocation;
	const VOID *pPrivateDriverData;
	UINT PrivateDriverSize;
	DXGK_OPENALLOCATIONFLAGS Flags;
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WIN8
	UINT SubresourceIndex;
	SIZE_T SubresourceOffset;
	UINT Pitch;
#endif
} DXGKARG_OPENALLOCATION;

typedef struct _DXGKARG_CLOSEALLOCATION {
	UINT NumAllocations;
	const HANDLE *pOpenHandleList;
} DXGKARG_CLOSEALLOCATION;

/* Called twice: with NULL buffers for the two sizes, then with the buffers. */
typedef struct _DXGKARG_GETSTANDARDALLOCATIONDRIVERDATA {
	D3DKMDT_STANDARDALLOCATION_TYPE StandardAllocationType;
	union {
		D3DKMDT_SHAREDPRIMARYSURFACEDATA *pCreateSharedPrimarySurfaceData;
		D3DKMDT_SHADOWSURFACEDATA *pCreateShadowSurfaceData;
		D3DKMDT_STAGINGSURFACEDATA *pCreateStagingSurfaceData;
		D3DKMDT_GDISURFACEDATA *pCreateGdiSurfaceData;
		D3DKMDT_VIRTUALGPUSURFACEDATA *pCreateVirtualGpuSurfaceData;
	};
	VOID *pAllocationPrivateDriverData;
	UINT AllocationPrivateDriverDataSize;
	VOID *pResourcePrivateDriverData;
	UINT ResourcePrivateDriverDataSize;
} DXGKARG_GETSTANDARDALLOCATIONDRIVERDATA;

/* RangeId counts from 0 to NumberOfSwizzlingRanges - 1. RangeSize in bytes. */
typedef struct _DXGKARG_ACQUIRESWIZZLINGRANGE {
	HANDLE hAllocation;
	UINT PrivateDriverData;
	UINT RangeId;
	UINT SegmentId;
	SIZE_T RangeSize;
	PHYSICAL_ADDRESS CPUTranslatedAddress;
} DXGKARG_ACQUIRESWIZZLINGRANGE;

typedef struct _DXGKARG_RELEASESWIZZLINGRANGE {
	HANDLE hAllocation;
	UINT PrivateDriverData;
	UINT RangeId;
} DXGKARG_RELEASESWIZZLINGRANGE;

/* CPU host aperture, since 2.0. Both page lists have NumberOfPages entries, in pages. */
typedef struct _DXGKARG_MAPCPUHOSTAPERTURE {
	HANDLE hAllocation;
	WORD SegmentId;
	WORD PhysicalAdapterIndex;
	UINT64 NumberOfPages;
	UINT32 *pCpuHostAperturePages;
	UINT64 *pMemorySegmentPages;
} DXGKARG_MAPCPUHOSTAPERTURE;

typedef struct _DXGKARG_UNMAPCPUHOSTAPERTURE {
	UINT64 NumberOfPages;
	UINT32 *pCpuHostAperturePages;
	WORD SegmentId;
	WORD PhysicalAdapterIndex;
} DXGKARG_UNMAPCPUHOSTAPERTURE;

/* Asks the miniport whether it agrees with a D3DDDI_UPDATEALLOCPROPERTY. Since 2.1. */
typedef struct _DXGKARG_VALIDATEUPDATEALLOCPROPERTY {
	HANDLE hAllocation;
	UINT SupportedSegmentSet;
	DXGK_SEGMENTPREFERENCE PreferredSegment;
	D3DDDI_UPDATEALLOCPROPERTY_FLAGS Flags;
	union {
		struct {
			UINT SetAccessedPhysically : 1;
			UINT SetSupportedSegmentSet : 1;
			UINT SetPreferredSegment : 1;
			UINT SetUnmoveable : 1;
			UINT Reserved : 28;
		};
		UINT PropertyMaskValue;
	};
} DXGKARG_VALIDATEUPDATEALLOCPROPERTY;

/* The system address of the content of an allocation with ShareBackingStoreWithKmd, valid until
 * DxgkDdiDestroyAllocation. Since 3.0. */
typedef struct _DXGKARG_SETALLOCATIONBACKINGSTORE {
	HANDLE hDriverAllocation;
	VOID *pBackingStore;
} DXGKARG_SETALLOCATIONBACKINGSTORE;

#ifdef __cplusplus
}
#endif

#endif
