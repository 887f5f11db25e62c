/* SPDX-License-Identifier: MIT */
/*
 * Segments of GPU memory, and the preferences of an allocation. Part of d3dkmddi.h. Segment ids
 * are 1 to 31; 0 is none, or system memory. Source: the pages DXGK_SEGMENTDESCRIPTOR(3, 4),
 * DXGK_SEGMENTFLAGS, DXGK_QUERYSEGMENTOUT(4), DXGK_SEGMENTBANKPREFERENCE,
 * D3DDDI_SEGMENTPREFERENCE.
 */
#ifndef WDDM_KMDDI_SEGMENT_H
#define WDDM_KMDDI_SEGMENT_H

#include "d3dukmdt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Preferred segments of an allocation: up to five, best first. Id 0 ends the list; Direction
 * 1 fills the segment from its end. Same layout as D3DDDI_SEGMENTPREFERENCE. */
typedef D3DDDI_SEGMENTPREFERENCE DXGK_SEGMENTPREFERENCE;

/* Which banks of a banked segment to prefer, best first: bank number, direction 1 = from the
 * end. */
typedef struct _DXGK_SEGMENTBANKPREFERENCE {
	union {
		struct {
			UINT Bank0 : 7;      /* 0x0000007F */
			UINT Direction0 : 1; /* 0x00000080 */
			UINT Bank1 : 7;      /* 0x00007F00 */
			UINT Direction1 : 1; /* 0x00008000 */
			UINT Bank2 : 7;      /* 0x007F0000 */
			UINT Direction2 : 1; /* 0x00800000 */
			UINT Bank3 : 7;      /* 0x7F000000 */
			UINT Direction3 : 1; /* 0x80000000 */
		};
		UINT Value;
	};
} DXGK_SEGMENTBANKPREFERENCE;

typedef struct _DXGK_SEGMENTFLAGS {
	union {
		struct {
			UINT Aperture : 1;                          /* 0x00000001 */
			UINT Agp : 1;                               /* 0x00000002 */
			UINT CpuVisible : 1;                        /* 0x00000004 */
			UINT UseBanking : 1;                        /* 0x00000008 */
			UINT CacheCoherent : 1;                     /* 0x00000010 */
			UINT PitchAlignment : 1;                    /* 0x00000020 */
			UINT PopulatedFromSystemMemory : 1;         /* 0x00000040 */
			UINT PreservedDuringStandby : 1;            /* 0x00000080 since 1.2 */
			UINT PreservedDuringHibernate : 1;          /* 0x00000100 since 1.2 */
			UINT PartiallyPreservedDuringHibernate : 1; /* 0x00000200 since 1.2 */
			UINT DirectFlip : 1;                        /* 0x00000400 since 1.2 */
			UINT Use64KBPages : 1;                      /* 0x00000800 since 2.0 */
			UINT ReservedSysMem : 1;                    /* 0x00001000 since 2.0 */
			UINT SupportsCpuHostAperture : 1;           /* 0x00002000 since 2.0 */
			UINT SupportsCachedCpuHostAperture : 1;     /* 0x00004000 since 2.0 */
			UINT ApplicationTarget : 1;         /* 0x00008000 since 2.0, superseded */
			UINT VprSupported : 1;              /* 0x00010000 since 2.0 */
			UINT VprPreservedDuringStandby : 1; /* 0x00020000 since 2.0 */
			UINT EncryptedPagingSupported : 1;  /* 0x00040000 since 2.0 */
			UINT LocalBudgetGroup : 1;          /* 0x00080000 since 2.0 */
			UINT NonLocalBudgetGroup : 1;       /* 0x00100000 since 2.0 */
			UINT PopulatedByReservedDDRByFirmware : 1; /* 0x00200000 since 2.9 */
			UINT Reserved : 10;                        /* 0xFFC00000 */
		};
		UINT Value;
	};
} DXGK_SEGMENTFLAGS;

/* Segment i + 1 of the adapter, 1.0 form. Addresses and sizes in bytes. BaseAddress is the GPU's
 * address of the first byte; CpuTranslatedAddress the CPU's, for CpuVisible segments.
 * CommitLimit limits the bytes that may be resident at once. pBankRangeTable holds NbOfBanks - 1
 * end offsets. */
typedef struct _DXGK_SEGMENTDESCRIPTOR {
	PHYSICAL_ADDRESS BaseAddress;
	PHYSICAL_ADDRESS CpuTranslatedAddress;
	SIZE_T Size;
	UINT NbOfBanks;
	SIZE_T *pBankRangeTable;
	SIZE_T CommitLimit;
	DXGK_SEGMENTFLAGS Flags;
} DXGK_SEGMENTDESCRIPTOR;

/* Since 1.2. SystemMemoryEndAddress is set for PopulatedFromSystemMemory segments only. */
typedef struct _DXGK_SEGMENTDESCRIPTOR3 {
	DXGK_SEGMENTFLAGS Flags;
	PHYSICAL_ADDRESS BaseAddress;
	PHYSICAL_ADDRESS CpuTranslatedAddress;
	SIZE_T Size;
	UINT NbOfBanks;
	SIZE_T *pBankRangeTable;
	SIZE_T CommitLimit;
	SIZE_T SystemMemoryEndAddress;
	SIZE_T Reserved;
} DXGK_SEGMENTDESCRIPTOR3;

typedef struct _DXGK_CPUHOSTAPERTURE {
	PHYSICAL_ADDRESS PhysicalAddress;
	UINT SizeInPages;
} DXGK_CPUHOSTAPERTURE;

/* Since 2.0. Drivers may extend it: DXGK_QUERYSEGMENTOUT4 has the distance of two descriptors in
 * bytes. */
typedef struct _DXGK_SEGMENTDESCRIPTOR4 {
	DXGK_SEGMENTFLAGS Flags;
	PHYSICAL_ADDRESS BaseAddress;
	SIZE_T Size;
	SIZE_T CommitLimit;
	SIZE_T SystemMemoryEndAddress;
	union {
		PHYSICAL_ADDRESS CpuTranslatedAddress;
		DXGK_CPUHOSTAPERTURE CpuHostAperture;
	};
	UINT NumInvalidMemoryRanges;
	SIZE_T VprRangeStartOffset;
	SIZE_T VprRangeSize;
	UINT VprAlignment;
	UINT NumVprSupported;
	UINT VprReserveSize;
	UINT NumUEFIFrameBufferRanges;
} DXGK_SEGMENTDESCRIPTOR4;

typedef struct _DXGK_QUERYSEGMENTIN {
	PHYSICAL_ADDRESS AgpApertureBase;
	LARGE_INTEGER AgpApertureSize;
	DXGK_SEGMENTFLAGS AgpFlags;
} DXGK_QUERYSEGMENTIN;

typedef struct _DXGK_QUERYSEGMENTIN4 {
	UINT PhysicalAdapterIndex;
} DXGK_QUERYSEGMENTIN4;

/* Called twice: with a NULL pSegmentDescriptor for NbSegment, then with the array. The paging
 * buffer is in PagingBufferSegmentId (0 = system memory) and has PagingBufferSize bytes. */
typedef struct _DXGK_QUERYSEGMENTOUT {
	UINT NbSegment;
	DXGK_SEGMENTDESCRIPTOR *pSegmentDescriptor;
	UINT PagingBufferSegmentId;
	UINT PagingBufferSize;
	UINT PagingBufferPrivateDataSize;
} DXGK_QUERYSEGMENTOUT;

typedef struct _DXGK_QUERYSEGMENTOUT3 {
	UINT NbSegment;
	DXGK_SEGMENTDESCRIPTOR3 *pSegmentDescriptor;
	UINT PagingBufferSegmentId;
	UINT PagingBufferSize;
	UINT PagingBufferPrivateDataSize;
} DXGK_QUERYSEGMENTOUT3;

typedef struct _DXGK_QUERYSEGMENTOUT4 {
	UINT NbSegment;
	BYTE *pSegmentDescriptor;
	UINT PagingBufferSegmentId;
	UINT PagingBufferSize;
	UINT PagingBufferPrivateDataSize;
	SIZE_T SegmentDescriptorStride;
} DXGK_QUERYSEGMENTOUT4;

typedef struct _DXGK_MEMORYRANGE {
	UINT64 SegmentOffset;
	UINT64 SizeInBytes;
} DXGK_MEMORYRANGE;

/* Ranges of a segment that must not be used. DriverSegmentId counts from 1. */
typedef struct _DXGK_SEGMENTMEMORYSTATE {
	WORD DriverSegmentId;
	WORD PhysicalAdapterIndex;
	union {
		UINT NumInvalidMemoryRanges;
		UINT NumUEFIFrameBufferRanges;
	};
	DXGK_MEMORYRANGE *pMemoryRanges;
} DXGK_SEGMENTMEMORYSTATE;

#ifdef __cplusplus
}
#endif

#endif
