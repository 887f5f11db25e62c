/* SPDX-License-Identifier: MIT */
/*
 * Residency and GPU virtual addresses (2.0 and later): paging queues, MakeResident, Evict,
 * mapping. Part of d3dukmdt.h. Calls that page complete on a fence: PagingFenceValue is the
 * value of the paging queue's monitored fence at which the operation is done. Source: the pages
 * D3DDDI_MAKERESIDENT, D3DDDI_MAPGPUVIRTUALADDRESS, D3DDDI_RESERVEGPUVIRTUALADDRESS,
 * D3DDDI_UPDATEALLOCPROPERTY, DXGK_PTE.
 */
#ifndef WDDM_UKMDT_RESIDENCY_H
#define WDDM_UKMDT_RESIDENCY_H

#include "ukmdt_alloc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Order among the paging queues of an adapter. */
typedef enum _D3DDDI_PAGINGQUEUE_PRIORITY {
	D3DDDI_PAGINGQUEUE_PRIORITY_BELOW_NORMAL = -1,
	D3DDDI_PAGINGQUEUE_PRIORITY_NORMAL = 0,
	D3DDDI_PAGINGQUEUE_PRIORITY_ABOVE_NORMAL = 1,
} D3DDDI_PAGINGQUEUE_PRIORITY;

typedef struct D3DDDI_DESTROYPAGINGQUEUE {
	D3DKMT_HANDLE hPagingQueue;
} D3DDDI_DESTROYPAGINGQUEUE;

/* CantTrimFurther lets the request exceed the budget, up to the maximum. MustSucceed needs it,
 * and puts the device into the error state if the request still fails. */
typedef struct D3DDDI_MAKERESIDENT_FLAGS {
	union {
		struct {
			UINT CantTrimFurther : 1; /* 0x00000001 */
			UINT MustSucceed : 1;     /* 0x00000002 */
			UINT Reserved : 30;       /* 0xFFFFFFFC */
		};
		UINT Value;
	};
} D3DDDI_MAKERESIDENT_FLAGS;

/* Adds one residency reference per entry. In and out: NumAllocations (out: how many are done).
 * Out: PagingFenceValue, 0 if nothing is pending, and NumBytesToTrim if the budget is
 * exceeded. PriorityList is ignored and may be NULL. Status: success, pending, no memory. Page:
 * D3DDDI_MAKERESIDENT; rules RES-*. */
typedef struct D3DDDI_MAKERESIDENT {
	D3DKMT_HANDLE hPagingQueue;
	UINT NumAllocations;
	D3DKMT_PTR(const D3DKMT_HANDLE *, AllocationList);
	D3DKMT_PTR(const UINT *, PriorityList);
	D3DDDI_MAKERESIDENT_FLAGS Flags;
	UINT64 PagingFenceValue;
	UINT64 NumBytesToTrim;
} D3DDDI_MAKERESIDENT;

/* EvictOnlyIfNecessary: evict only when the segment needs the space. NotWrittenTo: the copy in
 * the backing store is current. */
typedef struct D3DDDI_EVICT_FLAGS {
	union {
		struct {
			UINT EvictOnlyIfNecessary : 1; /* 0x00000001 */
			UINT NotWrittenTo : 1;         /* 0x00000002 */
			UINT Reserved : 30;            /* 0xFFFFFFFC */
		};
		UINT Value;
	};
} D3DDDI_EVICT_FLAGS;

/* Why a trim callback is called. */
typedef struct D3DDDI_TRIMRESIDENCYSET_FLAGS {
	union {
		struct {
			UINT PeriodicTrim : 1;        /* 0x00000001 */
			UINT RestartPeriodicTrim : 1; /* 0x00000002 */
			UINT TrimToBudget : 1;        /* 0x00000004 */
			UINT Reserved : 29;           /* 0xFFFFFFF8 */
		};
		UINT Value;
	};
} D3DDDI_TRIMRESIDENCYSET_FLAGS;

typedef struct D3DDDI_UPDATEALLOCPROPERTY_FLAGS {
	union {
		struct {
			UINT AccessedPhysically : 1; /* 0x00000001 */
			UINT Unmoveable : 1;         /* 0x00000002 */
			UINT Reserved : 30;          /* 0xFFFFFFFC */
		};
		UINT Value;
	};
} D3DDDI_UPDATEALLOCPROPERTY_FLAGS;

/* Changes where an allocation may live; only the members whose Set bit is 1 count. Out:
 * PagingFenceValue. Since 2.1. Page: D3DDDI_UPDATEALLOCPROPERTY. */
typedef struct D3DDDI_UPDATEALLOCPROPERTY {
	D3DKMT_HANDLE hPagingQueue;
	D3DKMT_HANDLE hAllocation;
	UINT SupportedSegmentSet;
	D3DDDI_SEGMENTPREFERENCE PreferredSegment;
	D3DDDI_UPDATEALLOCPROPERTY_FLAGS Flags;
	UINT64 PagingFenceValue;
	union {
		struct {
			UINT SetAccessedPhysically : 1;  /* 0x00000001 */
			UINT SetSupportedSegmentSet : 1; /* 0x00000002 */
			UINT SetPreferredSegment : 1;    /* 0x00000004 */
			UINT SetUnmoveable : 1;          /* 0x00000008 */
			UINT Reserved : 28;              /* 0xFFFFFFF0 */
		};
		UINT PropertyMaskValue;
	};
} D3DDDI_UPDATEALLOCPROPERTY;

/* What the GPU accesses in a reserved range without a mapping. */
typedef enum _D3DDDIGPUVIRTUALADDRESS_RESERVATION_TYPE {
	D3DDDIGPUVIRTUALADDRESS_RESERVE_NO_ACCESS = 0,
	D3DDDIGPUVIRTUALADDRESS_RESERVE_ZERO = 1,
	D3DDDIGPUVIRTUALADDRESS_RESERVE_NO_COMMIT = 2,
} D3DDDIGPUVIRTUALADDRESS_RESERVATION_TYPE;

/* What the GPU may do with a mapping. Zero and NoAccess exclude an allocation. SystemUseOnly is
 * refused from user mode. */
typedef struct _D3DDDIGPUVIRTUALADDRESS_PROTECTION_TYPE {
	union {
		struct {
			UINT64 Write : 1;         /* 0x0000000000000001 */
			UINT64 Execute : 1;       /* 0x0000000000000002 */
			UINT64 Zero : 1;          /* 0x0000000000000004 */
			UINT64 NoAccess : 1;      /* 0x0000000000000008 */
			UINT64 SystemUseOnly : 1; /* 0x0000000000000010 */
			UINT64 Reserved : 59;     /* 0xFFFFFFFFFFFFFFE0 */
		};
		UINT64 Value;
	};
} D3DDDIGPUVIRTUALADDRESS_PROTECTION_TYPE;

/* Maps pages of an allocation, or with Zero or NoAccess none. BaseAddress is the requested
 * address, or 0 for any within [MinimumAddress, MaximumAddress). Offsets and sizes in 4 KB
 * pages. Out: VirtualAddress, PagingFenceValue. Page: D3DDDI_MAPGPUVIRTUALADDRESS; rules VA-*. */
typedef struct D3DDDI_MAPGPUVIRTUALADDRESS {
	D3DKMT_HANDLE hPagingQueue;
	D3DGPU_VIRTUAL_ADDRESS BaseAddress;
	D3DGPU_VIRTUAL_ADDRESS MinimumAddress;
	D3DGPU_VIRTUAL_ADDRESS MaximumAddress;
	D3DKMT_HANDLE hAllocation;
	D3DGPU_SIZE_T OffsetInPages;
	D3DGPU_SIZE_T SizeInPages;
	D3DDDIGPUVIRTUALADDRESS_PROTECTION_TYPE Protection;
	UINT64 DriverProtection;
	UINT Reserved0;
	UINT64 Reserved1;
	D3DGPU_VIRTUAL_ADDRESS VirtualAddress;
	UINT64 PagingFenceValue;
} D3DDDI_MAPGPUVIRTUALADDRESS;

/* Reserves Size bytes, a multiple of 64 KB. BaseAddress and the window as in the mapping call.
 * Out: VirtualAddress, PagingFenceValue. hAdapter is the older name of the first member. Page:
 * D3DDDI_RESERVEGPUVIRTUALADDRESS. */
typedef struct D3DDDI_RESERVEGPUVIRTUALADDRESS {
	union {
		D3DKMT_HANDLE hPagingQueue;
		D3DKMT_HANDLE hAdapter;
	};
	D3DGPU_VIRTUAL_ADDRESS BaseAddress;
	D3DGPU_VIRTUAL_ADDRESS MinimumAddress;
	D3DGPU_VIRTUAL_ADDRESS MaximumAddress;
	D3DGPU_SIZE_T Size;
	union {
		D3DDDIGPUVIRTUALADDRESS_RESERVATION_TYPE ReservationType;
		UINT Reserved0;
	};
	union {
		UINT64 DriverProtection;
		UINT64 Reserved1;
	};
	D3DGPU_VIRTUAL_ADDRESS VirtualAddress;
	union {
		UINT64 PagingFenceValue;
		UINT64 Reserved2;
	};
} D3DDDI_RESERVEGPUVIRTUALADDRESS;

typedef enum _D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION_TYPE {
	D3DDDI_UPDATEGPUVIRTUALADDRESS_MAP = 0,
	D3DDDI_UPDATEGPUVIRTUALADDRESS_UNMAP = 1,
	D3DDDI_UPDATEGPUVIRTUALADDRESS_COPY = 2,
	D3DDDI_UPDATEGPUVIRTUALADDRESS_MAP_PROTECT = 3,
} D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION_TYPE;

/* One step of D3DKMTUpdateGpuVirtualAddress. Addresses and sizes in bytes, multiples of a page.
 * Page: D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION. */
typedef struct _D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION {
	D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION_TYPE OperationType;
	union {
		struct {
			D3DGPU_VIRTUAL_ADDRESS BaseAddress;
			D3DGPU_SIZE_T SizeInBytes;
			D3DKMT_HANDLE hAllocation;
			D3DGPU_SIZE_T AllocationOffsetInBytes;
			D3DGPU_SIZE_T AllocationSizeInBytes;
		} Map;
		struct {
			D3DGPU_VIRTUAL_ADDRESS BaseAddress;
			D3DGPU_SIZE_T SizeInBytes;
			D3DKMT_HANDLE hAllocation;
			D3DGPU_SIZE_T AllocationOffsetInBytes;
			D3DGPU_SIZE_T AllocationSizeInBytes;
			D3DDDIGPUVIRTUALADDRESS_PROTECTION_TYPE Protection;
			UINT64 DriverProtection;
		} MapProtect;
		struct {
			D3DGPU_VIRTUAL_ADDRESS BaseAddress;
			D3DGPU_SIZE_T SizeInBytes;
			D3DDDIGPUVIRTUALADDRESS_PROTECTION_TYPE Protection;
		} Unmap;
		struct {
			D3DGPU_VIRTUAL_ADDRESS SourceAddress;
			D3DGPU_SIZE_T SizeInBytes;
			D3DGPU_VIRTUAL_ADDRESS DestAddress;
		} Copy;
	};
} D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION;

/* Granularity of the page table that an upper-level entry points to. */
typedef enum _DXGK_PTE_PAGE_SIZE {
	DXGK_PTE_PAGE_TABLE_PAGE_4KB = 0,
	DXGK_PTE_PAGE_TABLE_PAGE_64KB = 1,
} DXGK_PTE_PAGE_SIZE;

/* One page table entry as the miniport gets it. Segment 0 is system memory. PageAddress is
 * the physical address shifted right by 12, in 4 KB units whatever the page size. Page:
 * DXGK_PTE; rules VA-*. */
typedef struct _DXGK_PTE {
	union {
		struct {
			ULONGLONG Valid : 1;                /* 0x0000000000000001 */
			ULONGLONG Zero : 1;                 /* 0x0000000000000002 */
			ULONGLONG CacheCoherent : 1;        /* 0x0000000000000004 */
			ULONGLONG ReadOnly : 1;             /* 0x0000000000000008 */
			ULONGLONG NoExecute : 1;            /* 0x0000000000000010 */
			ULONGLONG Segment : 5;              /* 0x00000000000003E0 */
			ULONGLONG LargePage : 1;            /* 0x0000000000000400 */
			ULONGLONG PhysicalAdapterIndex : 6; /* 0x000000000001F800 */
			ULONGLONG PageTablePageSize : 2;    /* 0x0000000000060000 */
			ULONGLONG SystemReserved0 : 1;      /* 0x0000000000080000 */
			ULONGLONG Reserved : 44;            /* 0xFFFFFFFFFFF00000 */
		};
		ULONGLONG Flags;
	};
	union {
		ULONGLONG PageAddress;
		ULONGLONG PageTableAddress;
	};
} DXGK_PTE;

#ifdef __cplusplus
}
#endif

#endif
