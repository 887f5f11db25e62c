/* SPDX-License-Identifier: MIT */
/*
 * Allocations and resources of D3DKMT clients: create, open, share, lock, offer, priority. Part
 * of d3dkmthk.h. In every argument structure hDevice is the caller's device; the page of
 * each call names the members that it fills. A failed call writes nothing. Source:
 * the D3DKMT_* pages of d3dkmthk.h; values in tests/abi/data.
 */
#ifndef WDDM_KMTHK_ALLOC_H
#define WDDM_KMTHK_ALLOC_H

#include "d3dukmdt.h"
#include "wddm_object.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where an allocation is: in GPU memory, in memory shared with the CPU, in neither. */
typedef enum _D3DKMT_ALLOCATIONRESIDENCYSTATUS {
	D3DKMT_ALLOCATIONRESIDENCYSTATUS_RESIDENTINGPUMEMORY = 1,
	D3DKMT_ALLOCATIONRESIDENCYSTATUS_RESIDENTINSHAREDMEMORY = 2,
	D3DKMT_ALLOCATIONRESIDENCYSTATUS_NOTRESIDENT = 3,
} D3DKMT_ALLOCATIONRESIDENCYSTATUS;

/* CreateShared needs CreateResource; NtSecuritySharing needs CreateShared; StandardAllocation
 * and ExistingSysMem together make a heap. The call writes Zeroed. Page:
 * D3DKMT_CREATEALLOCATIONFLAGS; rules ALC-*. */
typedef struct _D3DKMT_CREATEALLOCATIONFLAGS {
	UINT CreateResource : 1;        /* 0x00000001 */
	UINT CreateShared : 1;          /* 0x00000002 */
	UINT NonSecure : 1;             /* 0x00000004 */
	UINT CreateProtected : 1;       /* 0x00000008 */
	UINT RestrictSharedAccess : 1;  /* 0x00000010 */
	UINT ExistingSysMem : 1;        /* 0x00000020 */
	UINT NtSecuritySharing : 1;     /* 0x00000040 */
	UINT ReadOnly : 1;              /* 0x00000080 */
	UINT CreateWriteCombined : 1;   /* 0x00000100 */
	UINT CreateCached : 1;          /* 0x00000200 */
	UINT SwapChainBackBuffer : 1;   /* 0x00000400 */
	UINT CrossAdapter : 1;          /* 0x00000800 */
	UINT OpenCrossAdapter : 1;      /* 0x00001000 */
	UINT PartialSharedCreation : 1; /* 0x00002000 */
	UINT Zeroed : 1;                /* 0x00004000 */
	UINT WriteWatch : 1;            /* 0x00008000 */
	UINT StandardAllocation : 1;    /* 0x00010000 */
	UINT ExistingSection : 1;       /* 0x00020000 */
	UINT AllowNotZeroed : 1;        /* 0x00040000 */
	UINT PhysicallyContiguous : 1;  /* 0x00080000 */
	UINT NoKmdAccess : 1;           /* 0x00100000 */
	UINT SharedDisplayable : 1;     /* 0x00200000 */
	UINT Reserved : 10;             /* 0xFFC00000 */
} D3DKMT_CREATEALLOCATIONFLAGS;

typedef struct _D3DKMT_CREATESTANDARDALLOCATIONFLAGS {
	union {
		UINT Reserved : 32; /* 0xFFFFFFFF */
		UINT Value;
	};
} D3DKMT_CREATESTANDARDALLOCATIONFLAGS;

typedef struct _D3DKMT_STANDARDALLOCATION_EXISTINGHEAP {
	D3DKMT_SIZE_T Size;
} D3DKMT_STANDARDALLOCATION_EXISTINGHEAP;

typedef enum _D3DKMT_STANDARDALLOCATIONTYPE {
	D3DKMT_STANDARDALLOCATIONTYPE_EXISTINGHEAP = 1,
	D3DKMT_STANDARDALLOCATIONTYPE_INTERNALBACKINGSTORE = 2,
	D3DKMT_STANDARDALLOCATIONTYPE_MAX = 3,
} D3DKMT_STANDARDALLOCATIONTYPE;

/* An allocation that the system describes instead of the driver. ExistingHeapData.Size in bytes,
 * a multiple of a page. */
typedef struct _D3DKMT_CREATESTANDARDALLOCATION {
	D3DKMT_STANDARDALLOCATIONTYPE Type;
	D3DKMT_STANDARDALLOCATION_EXISTINGHEAP ExistingHeapData;
	D3DKMT_CREATESTANDARDALLOCATIONFLAGS Flags;
} D3DKMT_CREATESTANDARDALLOCATION;

/* Creates NumAllocations allocations and, with CreateResource, a resource around them. hResource
 * must be 0 on input. Out: the handles, hGlobalShare for legacy sharing. Sizes in bytes. Status:
 * STATUS_SUCCESS, STATUS_INVALID_PARAMETER, STATUS_INVALID_HANDLE, STATUS_NO_MEMORY,
 * STATUS_GRAPHICS_NO_VIDEO_MEMORY, STATUS_DEVICE_REMOVED. Page: D3DKMT_CREATEALLOCATION. */
typedef struct _D3DKMT_CREATEALLOCATION {
	D3DKMT_HANDLE hDevice;
	D3DKMT_HANDLE hResource;
	D3DKMT_HANDLE hGlobalShare;
	D3DKMT_PTR(const VOID *, pPrivateRuntimeData);
	UINT PrivateRuntimeDataSize;
	union {
		D3DKMT_CREATESTANDARDALLOCATION *pStandardAllocation;
		const VOID *pPrivateDriverData;
		UINT64 AlignUnionTo64_1;
	};
	UINT PrivateDriverDataSize;
	UINT NumAllocations;
	union {
		D3DDDI_ALLOCATIONINFO *pAllocationInfo;
		D3DDDI_ALLOCATIONINFO2 *pAllocationInfo2;
		UINT64 AlignUnionTo64_2;
	};
	D3DKMT_CREATEALLOCATIONFLAGS Flags;
	D3DKMT_PTR(HANDLE, hPrivateRuntimeResourceHandle);
} D3DKMT_CREATEALLOCATION;

/* Either hResource with all its allocations, or a list of AllocationCount handles. */
typedef struct _D3DKMT_DESTROYALLOCATION {
	D3DKMT_HANDLE hDevice;
	D3DKMT_HANDLE hResource;
	D3DKMT_PTR(const D3DKMT_HANDLE *, phAllocationList);
	UINT AllocationCount;
} D3DKMT_DESTROYALLOCATION;

/* As D3DKMT_DESTROYALLOCATION. By default the destruction waits for the GPU without blocking the
 * caller. */
typedef struct _D3DKMT_DESTROYALLOCATION2 {
	D3DKMT_HANDLE hDevice;
	D3DKMT_HANDLE hResource;
	D3DKMT_PTR(const D3DKMT_HANDLE *, phAllocationList);
	UINT AllocationCount;
	D3DDDICB_DESTROYALLOCATION2FLAGS Flags;
} D3DKMT_DESTROYALLOCATION2;

/* Opens a resource by its global handle. Sizes must equal what D3DKMT_QUERYRESOURCEINFO
 * reported; the total buffer may be larger. Out: hResource and the handles. Rules ROP-*. */
typedef struct _D3DKMT_OPENRESOURCE {
	D3DKMT_HANDLE hDevice;
	D3DKMT_HANDLE hGlobalShare;
	UINT NumAllocations;
	union {
		D3DDDI_OPENALLOCATIONINFO *pOpenAllocationInfo;
		D3DDDI_OPENALLOCATIONINFO2 *pOpenAllocationInfo2;
		UINT64 AlignUnionTo64;
	};
	D3DKMT_PTR(VOID *, pPrivateRuntimeData);
	UINT PrivateRuntimeDataSize;
	D3DKMT_PTR(VOID *, pResourcePrivateDriverData);
	UINT ResourcePrivateDriverDataSize;
	D3DKMT_PTR(VOID *, pTotalPrivateDriverDataBuffer);
	UINT TotalPrivateDriverDataBufferSize;
	D3DKMT_HANDLE hResource;
} D3DKMT_OPENRESOURCE;

/* As D3DKMT_OPENRESOURCE for a shared handle, with the keyed mutex and sync object of the
 * bundle. */
typedef struct _D3DKMT_OPENRESOURCEFROMNTHANDLE {
	D3DKMT_HANDLE hDevice;
	D3DKMT_PTR(HANDLE, hNtHandle);
	UINT NumAllocations;
	D3DKMT_PTR(D3DDDI_OPENALLOCATIONINFO2 *, pOpenAllocationInfo2);
	UINT PrivateRuntimeDataSize;
	D3DKMT_PTR(VOID *, pPrivateRuntimeData);
	UINT ResourcePrivateDriverDataSize;
	D3DKMT_PTR(VOID *, pResourcePrivateDriverData);
	UINT TotalPrivateDriverDataBufferSize;
	D3DKMT_PTR(VOID *, pTotalPrivateDriverDataBuffer);
	D3DKMT_HANDLE hResource;
	D3DKMT_HANDLE hKeyedMutex;
	D3DKMT_PTR(VOID *, pKeyedMutexPrivateRuntimeData);
	UINT KeyedMutexPrivateRuntimeDataSize;
	D3DKMT_HANDLE hSyncObject;
} D3DKMT_OPENRESOURCEFROMNTHANDLE;

typedef struct _D3DKMT_OPENNTHANDLEFROMNAME {
	DWORD dwDesiredAccess;
	D3DKMT_PTR(OBJECT_ATTRIBUTES *, pObjAttrib);
	D3DKMT_PTR(HANDLE, hNtHandle);
} D3DKMT_OPENNTHANDLEFROMNAME;

/* The sizes of the buffers that an open needs, in bytes, and the number of allocations. */
typedef struct _D3DKMT_QUERYRESOURCEINFO {
	D3DKMT_HANDLE hDevice;
	D3DKMT_HANDLE hGlobalShare;
	D3DKMT_PTR(VOID *, pPrivateRuntimeData);
	UINT PrivateRuntimeDataSize;
	UINT TotalPrivateDriverDataSize;
	UINT ResourcePrivateDriverDataSize;
	UINT NumAllocations;
} D3DKMT_QUERYRESOURCEINFO;

typedef struct _D3DKMT_QUERYRESOURCEINFOFROMNTHANDLE {
	D3DKMT_HANDLE hDevice;
	D3DKMT_PTR(HANDLE, hNtHandle);
	D3DKMT_PTR(VOID *, pPrivateRuntimeData);
	UINT PrivateRuntimeDataSize;
	UINT TotalPrivateDriverDataSize;
	UINT ResourcePrivateDriverDataSize;
	UINT NumAllocations;
} D3DKMT_QUERYRESOURCEINFOFROMNTHANDLE;

typedef struct _D3DKMT_CHECKSHAREDRESOURCEACCESS {
	D3DKMT_HANDLE hResource;
	UINT ClientPid;
} D3DKMT_CHECKSHAREDRESOURCEACCESS;

typedef struct _D3DKMT_GETSHAREDRESOURCEADAPTERLUID {
	D3DKMT_HANDLE hGlobalShare;
	D3DKMT_PTR(HANDLE, hNtHandle);
	LUID AdapterLuid;
} D3DKMT_GETSHAREDRESOURCEADAPTERLUID;

typedef struct _D3DKMT_CONFIGURESHAREDRESOURCE {
	D3DKMT_HANDLE hDevice;
	D3DKMT_HANDLE hResource;
	BOOLEAN IsDwm;
	D3DKMT_PTR(HANDLE, hProcess);
	BOOLEAN AllowAccess;
} D3DKMT_CONFIGURESHAREDRESOURCE;

/* The five arguments of D3DKMTShareObjects in one record, as the Linux library passes them. */
typedef struct _D3DKMT_SHAREOBJECTS {
	UINT ObjectCount;
	D3DKMT_PTR(const D3DKMT_HANDLE *, ObjectHandleArray);
	D3DKMT_PTR(PVOID, pObjectAttributes);
	DWORD DesiredAccess;
	D3DKMT_PTR(HANDLE *, pSharedNtHandle);
} D3DKMT_SHAREOBJECTS;

typedef struct _D3DKMT_SHAREOBJECTWITHHOST {
	D3DKMT_HANDLE hDevice;
	D3DKMT_HANDLE hObject;
	UINT64 Reserved;
	UINT64 hVailProcessNtHandle;
} D3DKMT_SHAREOBJECTWITHHOST;

/*
 * D3DKMTLock. hAllocation is in and out: Discard may give a new instance a new handle. pPages
 * lists NumPages page indices. Out: pData. The rules are those of pfnLockCb. Statuses:
 * STATUS_GRAPHICS_ALLOCATION_BUSY with DonotWait,
 * STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNAVAILABLE,
 * STATUS_GRAPHICS_CANT_EVICT_PINNED_ALLOCATION, STATUS_INVALID_PARAMETER, STATUS_NO_MEMORY,
 * STATUS_DEVICE_REMOVED. Page: D3DKMT_LOCK.
 */
typedef struct _D3DKMT_LOCK {
	D3DKMT_HANDLE hDevice;
	D3DKMT_HANDLE hAllocation;
	UINT PrivateDriverData;
	UINT NumPages;
	D3DKMT_PTR(const UINT *, pPages);
	D3DKMT_PTR(VOID *, pData);
	D3DDDICB_LOCKFLAGS Flags;
	D3DGPU_VIRTUAL_ADDRESS GpuVirtualAddress;
} D3DKMT_LOCK;

/* D3DKMTLock2, 2.0: nests, never waits for the GPU. Out: pData, the same address each time. */
typedef struct _D3DKMT_LOCK2 {
	D3DKMT_HANDLE hDevice;
	D3DKMT_HANDLE hAllocation;
	D3DDDICB_LOCK2FLAGS Flags;
	D3DKMT_PTR(PVOID, pData);
} D3DKMT_LOCK2;

/* Releases one lock of each listed allocation, all or none. */
typedef struct _D3DKMT_UNLOCK {
	D3DKMT_HANDLE hDevice;
	UINT NumAllocations;
	D3DKMT_PTR(const D3DKMT_HANDLE *, phAllocations);
} D3DKMT_UNLOCK;

/* Releases one level. */
typedef struct _D3DKMT_UNLOCK2 {
	D3DKMT_HANDLE hDevice;
	D3DKMT_HANDLE hAllocation;
} D3DKMT_UNLOCK2;

/* One priority per listed allocation, or one for the resource: D3DDDI_ALLOCATIONPRIORITY_* or
 * between. */
typedef struct _D3DKMT_SETALLOCATIONPRIORITY {
	D3DKMT_HANDLE hDevice;
	D3DKMT_HANDLE hResource;
	D3DKMT_PTR(const D3DKMT_HANDLE *, phAllocationList);
	UINT AllocationCount;
	D3DKMT_PTR(const UINT *, pPriorities);
} D3DKMT_SETALLOCATIONPRIORITY;

typedef struct _D3DKMT_GETALLOCATIONPRIORITY {
	D3DKMT_HANDLE hDevice;
	D3DKMT_HANDLE hResource;
	D3DKMT_PTR(const D3DKMT_HANDLE *, phAllocationList);
	UINT AllocationCount;
	D3DKMT_PTR(UINT *, pPriorities);
} D3DKMT_GETALLOCATIONPRIORITY;

/* Out: one status per listed allocation, or one for the resource. */
typedef struct _D3DKMT_QUERYALLOCATIONRESIDENCY {
	D3DKMT_HANDLE hDevice;
	D3DKMT_HANDLE hResource;
	D3DKMT_PTR(const D3DKMT_HANDLE *, phAllocationList);
	UINT AllocationCount;
	D3DKMT_PTR(D3DKMT_ALLOCATIONRESIDENCYSTATUS *, pResidencyStatus);
} D3DKMT_QUERYALLOCATIONRESIDENCY;

/* As D3DDDI_OFFER_PRIORITY, without NONE. */
typedef enum _D3DKMT_OFFER_PRIORITY {
	D3DKMT_OFFER_PRIORITY_LOW = 1,
	D3DKMT_OFFER_PRIORITY_NORMAL = 2,
	D3DKMT_OFFER_PRIORITY_HIGH = 3,
	D3DKMT_OFFER_PRIORITY_AUTO = 4,
} D3DKMT_OFFER_PRIORITY;

typedef struct _D3DKMT_OFFER_FLAGS {
	union {
		struct {
			UINT OfferImmediately : 1; /* 0x00000001 */
			UINT AllowDecommit : 1;    /* 0x00000002 */
			UINT Reserved : 30;        /* 0xFFFFFFFC */
		};
		UINT Value;
	};
} D3DKMT_OFFER_FLAGS;

/* The listed content may be discarded until it is reclaimed. Exactly one of pResources and
 * HandleList. Rules OFR-*. */
typedef struct _D3DKMT_OFFERALLOCATIONS {
	D3DKMT_HANDLE hDevice;
	D3DKMT_PTR(D3DKMT_HANDLE *, pResources);
	D3DKMT_PTR(const D3DKMT_HANDLE *, HandleList);
	UINT NumAllocations;
	D3DKMT_OFFER_PRIORITY Priority;
	D3DKMT_OFFER_FLAGS Flags;
} D3DKMT_OFFERALLOCATIONS;

/* Out: one BOOL per entry, TRUE if the content is lost. pDiscarded may be NULL. */
typedef struct _D3DKMT_RECLAIMALLOCATIONS {
	D3DKMT_HANDLE hDevice;
	D3DKMT_PTR(D3DKMT_HANDLE *, pResources);
	D3DKMT_PTR(const D3DKMT_HANDLE *, HandleList);
	D3DKMT_PTR(BOOL *, pDiscarded);
	UINT NumAllocations;
} D3DKMT_RECLAIMALLOCATIONS;

/* Out: a result per entry, and the fence value of the paging queue at which the allocations are
 * usable. */
typedef struct _D3DKMT_RECLAIMALLOCATIONS2 {
	D3DKMT_HANDLE hPagingQueue;
	UINT NumAllocations;
	D3DKMT_PTR(D3DKMT_HANDLE *, pResources);
	D3DKMT_PTR(const D3DKMT_HANDLE *, HandleList);
	union {
		BOOL *pDiscarded;
		D3DDDI_RECLAIM_RESULT *pResults;
		UINT64 AlignUnionTo64;
	};
	UINT64 PagingFenceValue;
} D3DKMT_RECLAIMALLOCATIONS2;

/* A range of a cached allocation, in bytes, that the CPU is about to read. */
typedef struct _D3DKMT_INVALIDATECACHE {
	D3DKMT_HANDLE hDevice;
	D3DKMT_HANDLE hAllocation;
	D3DKMT_SIZE_T Offset;
	D3DKMT_SIZE_T Length;
} D3DKMT_INVALIDATECACHE;

typedef struct _D3DKMT_GETRUNTIMEDATA {
	D3DKMT_HANDLE hAdapter;
	D3DKMT_HANDLE hGlobalShare;
	D3DKMT_PTR(VOID *, pRuntimeData);
	UINT RuntimeDataSize;
} D3DKMT_GETRUNTIMEDATA;

typedef union _D3DKMT_PINRESOURCEFLAGS {
	struct {
		UINT DirectFlipResources : 1; /* 0x00000001 */
		UINT Reserved : 31;           /* 0xFFFFFFFE */
	};
	UINT Value;
} D3DKMT_PINRESOURCEFLAGS;

typedef struct _D3DKMT_PINRESOURCES {
	D3DKMT_HANDLE hDevice;
	UINT ResourceCount;
	D3DKMT_PTR(D3DKMT_HANDLE *, pResourceList);
	D3DKMT_PINRESOURCEFLAGS Flags;
	D3DKMT_HANDLE hPagingQueue;
	UINT64 PagingFence;
} D3DKMT_PINRESOURCES;

typedef struct _D3DKMT_UNPINRESOURCES {
	D3DKMT_HANDLE hDevice;
	UINT ResourceCount;
	D3DKMT_PTR(D3DKMT_HANDLE *, pResourceList);
	UINT Reserved;
} D3DKMT_UNPINRESOURCES;

typedef struct _D3DKMT_PINDIRECTFLIPRESOURCES {
	D3DKMT_HANDLE hDevice;
	UINT ResourceCount;
	D3DKMT_PTR(D3DKMT_HANDLE *, pResourceList);
} D3DKMT_PINDIRECTFLIPRESOURCES;

typedef struct _D3DKMT_UNPINDIRECTFLIPRESOURCES {
	D3DKMT_HANDLE hDevice;
	UINT ResourceCount;
	D3DKMT_PTR(D3DKMT_HANDLE *, pResourceList);
} D3DKMT_UNPINDIRECTFLIPRESOURCES;

#ifdef __cplusplus
}
#endif

#endif
