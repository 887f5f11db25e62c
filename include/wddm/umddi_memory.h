/* SPDX-License-Identifier: MIT */
/*
 * The arguments of the memory callbacks: allocate, lock, offer, residency, GPU addresses.
 * Part of d3dumddi.h. Handles named hAllocation are D3DKMT_HANDLE; hResource is the runtime's.
 * Source: the D3DDDICB_* pages of d3dumddi.h and their pfn...Cb pages.
 */
#ifndef WDDM_UMDDI_MEMORY_H
#define WDDM_UMDDI_MEMORY_H

#include "d3dukmdt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The runtime creates allocations, and with hResource a resource, through the miniport. hResource
 * is the runtime's handle of the resource, opaque here. */
typedef struct _D3DDDICB_ALLOCATE {
	const VOID *pPrivateDriverData;
	UINT PrivateDriverDataSize;
	HANDLE hResource;
	D3DKMT_HANDLE hKMResource;
	UINT NumAllocations;
	union {
		D3DDDI_ALLOCATIONINFO *pAllocationInfo;
		D3DDDI_ALLOCATIONINFO2 *pAllocationInfo2;
	};
} D3DDDICB_ALLOCATE;

/* Either hResource, or a list. */
typedef struct _D3DDDICB_DEALLOCATE {
	HANDLE hResource;
	UINT NumAllocations;
	const D3DKMT_HANDLE *HandleList;
} D3DDDICB_DEALLOCATE;

typedef struct _D3DDDICB_DEALLOCATE2 {
	HANDLE hResource;
	UINT NumAllocations;
	const D3DKMT_HANDLE *HandleList;
	D3DDDICB_DESTROYALLOCATION2FLAGS Flags;
} D3DDDICB_DEALLOCATE2;

/*
 * hAllocation is in and out: Discard may give a new instance a new handle. pPages lists NumPages
 * page indices from the allocation's start. pData is the address of the first byte, or of the
 * first listed page; it stays valid until the unlock. Rules LOCK-*, REN-*, SWZ-*.
 * Errors: E_INVALIDARG, E_OUTOFMEMORY, D3DERR_WASSTILLDRAWING, D3DERR_NOTAVAILABLE,
 * D3DDDIERR_CANTEVICTPINNEDALLOCATION, D3DDDIERR_DEVICEREMOVED.
 */
typedef struct _D3DDDICB_LOCK {
	D3DKMT_HANDLE hAllocation;
	UINT PrivateDriverData;
	UINT NumPages;
	const UINT *pPages;
	VOID *pData;
	D3DDDICB_LOCKFLAGS Flags;
#if WDDM_SHARED_1_1
	D3DGPU_VIRTUAL_ADDRESS GpuVirtualAddress;
#endif
} D3DDDICB_LOCK;

typedef struct _D3DDDICB_UNLOCK {
	UINT NumAllocations;
	const D3DKMT_HANDLE *phAllocations;
} D3DDDICB_UNLOCK;

/* 2.0: no waiting, no renaming; the driver synchronizes. */
typedef struct _D3DDDICB_LOCK2 {
	D3DKMT_HANDLE hAllocation;
	D3DDDICB_LOCK2FLAGS Flags;
	PVOID pData;
} D3DDDICB_LOCK2;

typedef struct _D3DDDICB_UNLOCK2 {
	D3DKMT_HANDLE hAllocation;
} D3DDDICB_UNLOCK2;

/* Priorities are D3DDDI_ALLOCATIONPRIORITY_* or between; one per handle, or one for a
 * resource. */
typedef struct _D3DDDICB_SETPRIORITY {
	HANDLE hResource;
	UINT NumAllocations;
	const D3DKMT_HANDLE *HandleList;
	const UINT *pPriorities;
} D3DDDICB_SETPRIORITY;

typedef enum _D3DDDI_RESIDENCYSTATUS {
	D3DDDI_RESIDENCYSTATUS_RESIDENTINGPUMEMORY = 1,
	D3DDDI_RESIDENCYSTATUS_RESIDENTINSHAREDMEMORY = 2,
	D3DDDI_RESIDENCYSTATUS_NOTRESIDENT = 3,
} D3DDDI_RESIDENCYSTATUS;

typedef struct _D3DDDICB_QUERYRESIDENCY {
	HANDLE hResource;
	UINT NumAllocations;
	const D3DKMT_HANDLE *HandleList;
	D3DDDI_RESIDENCYSTATUS *pResidencyStatus;
} D3DDDICB_QUERYRESIDENCY;

/* Exactly one of pResources and HandleList. NumAllocations counts the entries of that one. */
typedef struct _D3DDDICB_OFFERALLOCATIONS {
	const HANDLE *pResources;
	const D3DKMT_HANDLE *HandleList;
	UINT NumAllocations;
	D3DDDI_OFFER_PRIORITY Priority;
} D3DDDICB_OFFERALLOCATIONS;

typedef struct _D3DDDICB_OFFERALLOCATIONS2 {
	const HANDLE *pResources;
	const D3DKMT_HANDLE *HandleList;
	UINT NumAllocations;
	D3DDDI_OFFER_PRIORITY Priority;
	D3DDDI_OFFER_FLAGS Flags;
} D3DDDICB_OFFERALLOCATIONS2;

/* pDiscarded may be NULL; else one BOOL per entry. */
typedef struct _D3DDDICB_RECLAIMALLOCATIONS {
	const HANDLE *pResources;
	const D3DKMT_HANDLE *HandleList;
	BOOL *pDiscarded;
	UINT NumAllocations;
} D3DDDICB_RECLAIMALLOCATIONS;

/* 2.0. Usable once the paging queue's fence reaches PagingFenceValue. */
typedef struct _D3DDDICB_RECLAIMALLOCATIONS2 {
	D3DKMT_HANDLE PagingQueue;
	UINT NumAllocations;
	const HANDLE *pResources;
	const D3DKMT_HANDLE *HandleList;
	BOOL *pDiscarded;
	UINT64 PagingFenceValue;
} D3DDDICB_RECLAIMALLOCATIONS2;

typedef struct _D3DDDICB_RECLAIMALLOCATIONS3 {
	D3DKMT_HANDLE PagingQueue;
	UINT NumAllocations;
	const HANDLE *pResources;
	const D3DKMT_HANDLE *HandleList;
	D3DDDI_RECLAIM_RESULT *pResults;
	UINT64 PagingFenceValue;
} D3DDDICB_RECLAIMALLOCATIONS3;

/* 2.0. NumBytesToTrim: bytes by which the process is above its budget afterwards. */
typedef struct D3DDDICB_EVICT {
	UINT NumAllocations;
	const D3DKMT_HANDLE *AllocationList;
	D3DDDI_EVICT_FLAGS Flags;
	UINT64 NumBytesToTrim;
} D3DDDICB_EVICT;

typedef struct D3DDDICB_CREATEPAGINGQUEUE {
	D3DDDI_PAGINGQUEUE_PRIORITY Priority;
	D3DKMT_HANDLE hPagingQueue;
	D3DKMT_HANDLE hSyncObject;
	VOID *FenceValueCPUVirtualAddress;
	UINT PhysicalAdapterIndex;
} D3DDDICB_CREATEPAGINGQUEUE;

/* Bytes. */
typedef struct _D3DDDICB_INVALIDATECACHE {
	D3DKMT_HANDLE hAllocation;
	SIZE_T Offset;
	SIZE_T Length;
} D3DDDICB_INVALIDATECACHE;

typedef struct _D3DDDICB_FREEGPUVIRTUALADDRESS {
	D3DGPU_VIRTUAL_ADDRESS BaseAddress;
	D3DGPU_SIZE_T Size;
} D3DDDICB_FREEGPUVIRTUALADDRESS;

typedef struct _D3DDDICB_UPDATEGPUVIRTUALADDRESS {
	HANDLE hContext;
	D3DKMT_HANDLE hFenceObject;
	UINT NumOperations;
	D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION *Operations;
	UINT Reserved0;
	UINT64 Reserved1;
	UINT64 FenceValue;
	union {
		struct {
			UINT DoNotWait : 1; /* 0x00000001 */
			UINT Reserved : 31; /* 0xFFFFFFFE */
		};
		UINT Value;
	} Flags;
} D3DDDICB_UPDATEGPUVIRTUALADDRESS;

#ifdef __cplusplus
}
#endif

#endif
