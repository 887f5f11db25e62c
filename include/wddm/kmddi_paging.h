/* SPDX-License-Identifier: MIT */
/*
 * Paging: operations that move, fill, map and unmap memory, and the GPU's page tables. Part of
 * d3dkmddi.h. Source: the pages DXGKARG_BUILDPAGINGBUFFER and its members, DXGK_GPUMMUCAPS,
 * DXGK_PAGE_TABLE_LEVEL_DESC; rules PAG-*, VA-*.
 */
#ifndef WDDM_KMDDI_PAGING_H
#define WDDM_KMDDI_PAGING_H

#include "d3dukmdt.h"
#include "d3dkmdt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Operations of a paging buffer. Source: the page of the enumeration. */
typedef enum _DXGK_BUILDPAGINGBUFFER_OPERATION {
	DXGK_OPERATION_TRANSFER = 0,
	DXGK_OPERATION_FILL = 1,
	DXGK_OPERATION_DISCARD_CONTENT = 2,
	DXGK_OPERATION_READ_PHYSICAL = 3,
	DXGK_OPERATION_WRITE_PHYSICAL = 4,
	DXGK_OPERATION_MAP_APERTURE_SEGMENT = 5,
	DXGK_OPERATION_UNMAP_APERTURE_SEGMENT = 6,
	DXGK_OPERATION_SPECIAL_LOCK_TRANSFER = 7,
	DXGK_OPERATION_VIRTUAL_TRANSFER = 8,
	DXGK_OPERATION_VIRTUAL_FILL = 9,
	DXGK_OPERATION_INIT_CONTEXT_RESOURCE = 10,
	DXGK_OPERATION_UPDATE_PAGE_TABLE = 11,
	DXGK_OPERATION_FLUSH_TLB = 12,
	DXGK_OPERATION_UPDATE_CONTEXT_ALLOCATION = 13,
	DXGK_OPERATION_COPY_PAGE_TABLE_ENTRIES = 14,
	DXGK_OPERATION_NOTIFY_RESIDENCY = 15,
	DXGK_OPERATION_SIGNAL_MONITORED_FENCE = 16,
	DXGK_OPERATION_MAP_APERTURE_SEGMENT2 = 17,
	DXGK_OPERATION_NOTIFY_FENCE_RESIDENCY = 18,
	DXGK_OPERATION_MAP_MMU = 19,
	DXGK_OPERATION_UNMAP_MMU = 20,
	DXGK_OPERATION_NOTIFY_RESIDENCY2 = 21,
	DXGK_OPERATION_NOTIFY_ALLOC = 22, /* since 3.2 */
} DXGK_BUILDPAGINGBUFFER_OPERATION;

typedef struct _DXGK_TRANSFERFLAGS {
	union {
		struct {
			UINT Swizzle : 1;          /* 0x00000001 */
			UINT Unswizzle : 1;        /* 0x00000002 */
			UINT AllocationIsIdle : 1; /* 0x00000004 */
			UINT TransferStart : 1;    /* 0x00000008 */
			UINT TransferEnd : 1;      /* 0x00000010 */
			UINT Reserved : 27;        /* 0xFFFFFFE0 */
		};
		UINT Value;
	};
} DXGK_TRANSFERFLAGS;

typedef struct _DXGK_DISCARDCONTENTFLAGS {
	union {
		struct {
			UINT AllocationIsIdle : 1; /* 0x00000001 */
			UINT Reserved : 31;        /* 0xFFFFFFFE */
		};
		UINT Value;
	};
} DXGK_DISCARDCONTENTFLAGS;

typedef struct _DXGK_MAPAPERTUREFLAGS {
	union {
		struct {
			UINT CacheCoherent : 1; /* 0x00000001 */
			UINT Reserved : 31;     /* 0xFFFFFFFE */
		};
		UINT Value;
	};
} DXGK_MAPAPERTUREFLAGS;

typedef enum _DXGK_MEMORY_TRANSFER_DIRECTION {
	DXGK_MEMORY_TRANSFER_LOCAL_TO_SYSTEM = 0,
	DXGK_MEMORY_TRANSFER_SYSTEM_TO_LOCAL = 1,
	DXGK_MEMORY_TRANSFER_LOCAL_TO_LOCAL = 2,
} DXGK_MEMORY_TRANSFER_DIRECTION;

typedef struct _DXGK_TRANSFERVIRTUALFLAGS {
	union {
		struct {
			UINT Src64KBPages : 1; /* 0x00000001 */
			UINT Dst64KBPages : 1; /* 0x00000002 */
			UINT Reserved : 30;    /* 0xFFFFFFFC */
		};
		UINT Flags;
	};
} DXGK_TRANSFERVIRTUALFLAGS;

/* One end of a physical transfer. SegmentId 0: the pages of pMdl, starting at MdlOffset pages. */
typedef struct _DXGK_TRANSFER_END {
	UINT SegmentId;
	union {
		LARGE_INTEGER SegmentAddress;
		struct _MDL *pMdl;
	};
} DXGK_TRANSFER_END;

/* Byte ranges of an allocation, addressed through the GPU's page tables. Since 2.0. */
typedef struct _DXGK_BUILDPAGINGBUFFER_TRANSFERVIRTUAL {
	HANDLE hAllocation;
	UINT64 AllocationOffsetInBytes;
	UINT64 TransferSizeInBytes;
	D3DGPU_VIRTUAL_ADDRESS SourceVirtualAddress;
	D3DGPU_VIRTUAL_ADDRESS DestinationVirtualAddress;
	D3DGPU_VIRTUAL_ADDRESS SourcePageTable;
	DXGK_MEMORY_TRANSFER_DIRECTION TransferDirection;
	DXGK_TRANSFERVIRTUALFLAGS Flags;
	D3DGPU_VIRTUAL_ADDRESS DestinationPageTable;
} DXGK_BUILDPAGINGBUFFER_TRANSFERVIRTUAL;

typedef struct _DXGK_BUILDPAGINGBUFFER_FILLVIRTUAL {
	HANDLE hAllocation;
	UINT64 AllocationOffsetInBytes;
	UINT64 FillSizeInBytes;
	UINT FillPattern;
	D3DGPU_VIRTUAL_ADDRESS DestinationVirtualAddress;
} DXGK_BUILDPAGINGBUFFER_FILLVIRTUAL;

typedef enum _DXGK_PAGETABLEUPDATEMODE {
	DXGK_PAGETABLEUPDATE_CPU_VIRTUAL = 0,
	DXGK_PAGETABLEUPDATE_GPU_VIRTUAL = 1,
	DXGK_PAGETABLEUPDATE_GPU_PHYSICAL = 2,
} DXGK_PAGETABLEUPDATEMODE;

/* The update mode of DXGK_GPUMMUCAPS selects the member. */
typedef union _DXGK_PAGETABLEUPDATEADDRESS {
	PVOID CpuVirtual;
	D3DGPU_PHYSICAL_ADDRESS GpuPhysical;
	D3DGPU_VIRTUAL_ADDRESS GpuVirtual;
} DXGK_PAGETABLEUPDATEADDRESS;

typedef struct _DXGK_UPDATEPAGETABLEFLAGS {
	UINT Repeat : 1;         /* 0x00000001 */
	UINT InitialUpdate : 1;  /* 0x00000002 */
	UINT NotifyEviction : 1; /* 0x00000004 */
	UINT Use64KBPages : 1;   /* 0x00000008 */
	UINT Reserved : 28;      /* 0xFFFFFFF0 */
} DXGK_UPDATEPAGETABLEFLAGS;

/* Entries StartIndex .. StartIndex + NumPageTableEntries - 1 of one table of one level. */
typedef struct _DXGK_BUILDPAGINGBUFFER_UPDATEPAGETABLE {
	UINT PageTableLevel;
	HANDLE hAllocation;
	DXGK_PAGETABLEUPDATEADDRESS PageTableAddress;
	DXGK_PTE *pPageTableEntries;
	UINT StartIndex;
	UINT NumPageTableEntries;
	UINT Reserved0;
	DXGK_UPDATEPAGETABLEFLAGS Flags;
	UINT64 DriverProtection;
	UINT64 AllocationOffsetInBytes;
	HANDLE hProcess;
	DXGK_PAGETABLEUPDATEMODE UpdateMode;
	DXGK_PTE *pPageTableEntries64KB;
	D3DGPU_VIRTUAL_ADDRESS FirstPteVirtualAddress;
} DXGK_BUILDPAGINGBUFFER_UPDATEPAGETABLE;

/* Both addresses 0: the whole address space. */
typedef struct _DXGK_BUILDPAGINGBUFFER_FLUSHTLB {
	D3DGPU_PHYSICAL_ADDRESS RootPageTableAddress;
	HANDLE hProcess;
	D3DGPU_VIRTUAL_ADDRESS StartVirtualAddress;
	D3DGPU_VIRTUAL_ADDRESS EndVirtualAddress;
} DXGK_BUILDPAGINGBUFFER_FLUSHTLB;

typedef struct _DXGK_BUILDPAGINGBUFFER_COPY_RANGE {
	UINT NumPageTableEntries;
	D3DGPU_VIRTUAL_ADDRESS SrcPageTableAddress;
	D3DGPU_VIRTUAL_ADDRESS DstPageTableAddress;
	UINT SrcStartPteIndex;
	UINT DstStartPteIndex;
} DXGK_BUILDPAGINGBUFFER_COPY_RANGE;

typedef struct _DXGK_BUILDPAGINGBUFFER_COPYPAGETABLEENTRIES {
	UINT NumRanges;
	const DXGK_BUILDPAGINGBUFFER_COPY_RANGE *pRanges;
} DXGK_BUILDPAGINGBUFFER_COPYPAGETABLEENTRIES;

typedef struct _DXGK_BUILDPAGINGBUFFER_UPDATECONTEXTALLOCATION {
	D3DGPU_VIRTUAL_ADDRESS ContextAllocation;
	UINT64 ContextAllocationSize;
	PVOID pDriverPrivateData;
	UINT DriverPrivateDataSize;
} DXGK_BUILDPAGINGBUFFER_UPDATECONTEXTALLOCATION;

/* Resident 1: committed at PhysicalAddress; 0: about to be evicted. */
typedef struct _DXGK_BUILDPAGINGBUFFER_NOTIFYRESIDENCY {
	HANDLE hAllocation;
	D3DGPU_PHYSICAL_ADDRESS PhysicalAddress;
	union {
		struct {
			UINT Resident : 1;  /* 0x00000001 */
			UINT Reserved : 31; /* 0xFFFFFFFE */
		};
		UINT Value;
	};
} DXGK_BUILDPAGINGBUFFER_NOTIFYRESIDENCY;

/* The reason of a DXGK_OPERATION_NOTIFY_ALLOC: one of the two. Since 3.2. */
typedef struct _DXGK_NOTIFYALLOCFLAGS {
	union {
		struct {
			UINT Eviction : 1;   /* 0x00000001 */
			UINT IoMmuUnmap : 1; /* 0x00000002 */
			UINT Reserved : 30;  /* 0xFFFFFFFC */
		};
		UINT Value;
	};
} DXGK_NOTIFYALLOCFLAGS;

/* SizeInBytes bytes of the allocation from OffsetInBytes on. hKmdProcessHandle is NULL with
 * Eviction. If the GPU has no virtual addresses, GpuVirtualAddressAtOffset is 0 and the bytes are
 * accessed in the aperture segment that they are mapped in (PAG-29). Since 3.2. */
typedef struct _DXGK_BUILDPAGINGBUFFER_NOTIFYALLOC {
	HANDLE hAllocation;
	HANDLE hKmdProcessHandle;
	DXGK_NOTIFYALLOCFLAGS Flags;
	UINT64 OffsetInBytes;
	UINT64 SizeInBytes;
	UINT64 GpuVirtualAddressAtOffset;
} DXGK_BUILDPAGINGBUFFER_NOTIFYALLOC;

/* Since 2.2. The GPU writes the fence value at the address when it reaches this command. */
typedef struct _DXGK_BUILDPAGINGBUFFER_SIGNALMONITOREDFENCE {
	D3DGPU_VIRTUAL_ADDRESS MonitoredFenceGpuVa;
	UINT64 MonitoredFenceValue;
} DXGK_BUILDPAGINGBUFFER_SIGNALMONITOREDFENCE;

/* Pages as a list of device-visible frame numbers, or one contiguous range. Since 2.9. */
typedef struct _DXGK_ADL_FLAGS {
	union {
		struct {
			UINT Contiguous : 1; /* 0x00000001 */
			UINT Reserved : 31;  /* 0xFFFFFFFE */
		};
		UINT Value;
	};
} DXGK_ADL_FLAGS;

typedef ULONG_PTR DXGK_PAGE_NUMBER;

typedef struct _DXGK_ADL {
	UINT PageCount;
	DXGK_ADL_FLAGS Flags;
	union {
		DXGK_PAGE_NUMBER BasePageNumber;
		DXGK_PAGE_NUMBER *Pages;
	};
} DXGK_ADL;

/*
 * DxgkDdiBuildPagingBuffer writes GPU commands for one operation into pDmaBuffer and advances the
 * pointer past them. STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER requests another buffer; the miniport
 * continues from MultipassOffset, which only the miniport interprets. Offsets and sizes are bytes
 * unless a name says pages; TransferOffset and MdlOffset as on the page of the structure. Sizes on
 * x64: 304 (1.x), 320 (2.0).
 */
typedef struct _DXGKARG_BUILDPAGINGBUFFER {
	VOID *pDmaBuffer;
	UINT DmaSize;
	VOID *pDmaBufferPrivateData;
	UINT DmaBufferPrivateDataSize;
	DXGK_BUILDPAGINGBUFFER_OPERATION Operation;
	UINT MultipassOffset;
	union {
		struct {
			HANDLE hAllocation;
			UINT TransferOffset;
			SIZE_T TransferSize;
			DXGK_TRANSFER_END Source;
			DXGK_TRANSFER_END Destination;
			DXGK_TRANSFERFLAGS Flags;
			UINT MdlOffset;
		} Transfer;
		struct {
			HANDLE hAllocation;
			SIZE_T FillSize;
			UINT FillPattern;
			struct {
				UINT SegmentId;
				LARGE_INTEGER SegmentAddress;
			} Destination;
		} Fill;
		struct {
			HANDLE hAllocation;
			DXGK_DISCARDCONTENTFLAGS Flags;
			UINT SegmentId;
			PHYSICAL_ADDRESS SegmentAddress;
		} DiscardContent;
		struct {
			UINT SegmentId;
			PHYSICAL_ADDRESS PhysicalAddress;
		} ReadPhysical;
		struct {
			UINT SegmentId;
			PHYSICAL_ADDRESS PhysicalAddress;
		} WritePhysical;
		struct {
			HANDLE hDevice;
			HANDLE hAllocation;
			UINT SegmentId;
			SIZE_T OffsetInPages;
			SIZE_T NumberOfPages;
			PMDL pMdl;
			DXGK_MAPAPERTUREFLAGS Flags;
			ULONG MdlOffset;
		} MapApertureSegment;
		struct {
			HANDLE hDevice;
			HANDLE hAllocation;
			UINT SegmentId;
			SIZE_T OffsetInPages;
			SIZE_T NumberOfPages;
			PHYSICAL_ADDRESS DummyPage;
		} UnmapApertureSegment;
		struct {
			HANDLE hAllocation;
			UINT TransferOffset;
			SIZE_T TransferSize;
			DXGK_TRANSFER_END Source;
			DXGK_TRANSFER_END Destination;
			DXGK_TRANSFERFLAGS Flags;
			UINT SwizzlingRangeId;
			UINT SwizzlingRangeData;
		} SpecialLockTransfer;
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WIN8
		struct {
			HANDLE hAllocation;
			struct {
				UINT SegmentId;
				union {
					LARGE_INTEGER SegmentAddress;
					struct _MDL *pMdl;
				};
				PVOID VirtualAddress;
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WDDM2_0
				D3DGPU_VIRTUAL_ADDRESS GpuVirtualAddress;
#endif
			} Destination;
		} InitContextResource;
#endif
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WDDM2_0
		DXGK_BUILDPAGINGBUFFER_TRANSFERVIRTUAL TransferVirtual;
		DXGK_BUILDPAGINGBUFFER_FILLVIRTUAL FillVirtual;
		DXGK_BUILDPAGINGBUFFER_UPDATEPAGETABLE UpdatePageTable;
		DXGK_BUILDPAGINGBUFFER_FLUSHTLB FlushTlb;
		DXGK_BUILDPAGINGBUFFER_COPYPAGETABLEENTRIES CopyPageTableEntries;
		DXGK_BUILDPAGINGBUFFER_UPDATECONTEXTALLOCATION UpdateContextAllocation;
		DXGK_BUILDPAGINGBUFFER_NOTIFYRESIDENCY NotifyResidency;
#endif
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WDDM2_2
		DXGK_BUILDPAGINGBUFFER_SIGNALMONITOREDFENCE SignalMonitoredFence;
#endif
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WDDM2_9
		struct {
			HANDLE hDevice;
			HANDLE hAllocation;
			UINT SegmentId;
			SIZE_T OffsetInPages;
			SIZE_T NumberOfPages;
			DXGK_ADL Adl;
			DXGK_MAPAPERTUREFLAGS Flags;
			ULONG AdlOffset;
			PVOID CpuVisibleAddress;
		} MapApertureSegment2;
#endif
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WDDM3_2
		DXGK_BUILDPAGINGBUFFER_NOTIFYALLOC NotifyAlloc;
#endif
		struct {
			UINT Reserved[64];
		} Reserved;
	};
	HANDLE hSystemContext;
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WDDM2_0
	D3DGPU_VIRTUAL_ADDRESS DmaBufferGpuVirtualAddress;
	UINT DmaBufferWriteOffset;
#endif
} DXGKARG_BUILDPAGINGBUFFER;

/* The GPU's page tables, since 2.0. */
typedef struct _DXGK_GPUMMUCAPS {
	union {
		struct {
			UINT ReadOnlyMemorySupported : 1;                /* 0x00000001 */
			UINT NoExecuteMemorySupported : 1;               /* 0x00000002 */
			UINT ZeroInPteSupported : 1;                     /* 0x00000004 */
			UINT ExplicitPageTableInvalidation : 1;          /* 0x00000008 */
			UINT CacheCoherentMemorySupported : 1;           /* 0x00000010 */
			UINT PageTableUpdateRequireAddressSpaceIdle : 1; /* 0x00000020 */
			UINT LargePageSupported : 1;                     /* 0x00000040 */
			UINT DualPteSupported : 1;                       /* 0x00000080 */
			UINT AllowNonAlignedLargePageAddress : 1;        /* 0x00000100 since 2.1 */
			UINT SysMem64KBPageSupported : 1;                /* 0x00000200 since 2.1 */
			UINT InvalidTlbEntriesNotCached : 1;             /* 0x00000400 since 2.6 */
			UINT SysMemLargePageSupported : 1;               /* 0x00000800 since 2.9 */
			UINT CachedPageTables : 1;                       /* 0x00001000 since 3.1 */
			UINT Reserved : 19;                              /* 0xFFFFE000 */
		};
		UINT Value;
	};
	DXGK_PAGETABLEUPDATEMODE PageTableUpdateMode;
	UINT VirtualAddressBitCount;
	UINT LeafPageTableSizeFor64KPagesInBytes;
	UINT PageTableLevelCount;
	struct {
		UINT SourcePageTableVaInTransfer : 1;
		UINT Reserved : 31;
	} LegacyBehaviors;
} DXGK_GPUMMUCAPS;

/* Input of DXGKQAITYPE_PAGETABLELEVELDESC: level 0 is the leaf. */
typedef struct _DXGK_QUERYPAGETABLELEVELDESCIN {
	WORD LevelIndex;
	WORD PhysicalAdapterIndex;
} DXGK_QUERYPAGETABLELEVELDESCIN;

/*
 * One level of the page tables. Segment ids count from 1; 0 is system memory, where a table has at
 * most 4096 bytes. Alignment: 0 or a power of two. Rule VA-11, choice Q-76.
 */
typedef struct _DXGK_PAGE_TABLE_LEVEL_DESC {
	UINT PageTableIndexBitCount;
	UINT PageTableSegmentId;
	UINT PagingProcessPageTableSegmentId;
	UINT PageTableSizeInBytes;
	UINT PageTableAlignmentInBytes;
} DXGK_PAGE_TABLE_LEVEL_DESC;

typedef struct _DXGKARG_SETROOTPAGETABLE {
	HANDLE hContext;
	D3DGPU_PHYSICAL_ADDRESS Address;
	UINT NumEntries;
} DXGKARG_SETROOTPAGETABLE;

/* NumberOfPte is rounded up by the miniport; the function returns bytes. */
typedef struct _DXGKARG_GETROOTPAGETABLESIZE {
	UINT NumberOfPte;
	UINT PhysicalAdapterIndex;
} DXGKARG_GETROOTPAGETABLESIZE;

#ifdef __cplusplus
}
#endif

#endif
