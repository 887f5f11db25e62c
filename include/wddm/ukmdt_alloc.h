/* SPDX-License-Identifier: MIT */
/*
 * Allocations as both sides of the user/kernel boundary see them: creation, lock flags,
 * priorities, offer and reclaim, and the lists of a command buffer. Part of
 * d3dukmdt.h. Source: the pages D3DDDICB_LOCKFLAGS, D3DDDI_ALLOCATIONINFO,
 * D3DDDI_ALLOCATIONINFO2, D3DDDI_ALLOCATIONLIST, D3DDDI_PATCHLOCATIONLIST,
 * D3DDDI_OFFER_PRIORITY.
 */
#ifndef WDDM_UKMDT_ALLOC_H
#define WDDM_UKMDT_ALLOC_H

#include "ukmdt_format.h"
#include "ukmdt_handle.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a lock may do. DonotWait fails with busy instead of waiting; Discard requests a
 * new instance; IgnoreSync has an effect with DonotWait only; AcquireAperture requests a range;
 * ReadOnly with WriteOnly is invalid. Reserved bits must be zero. Rules LOCK-01 to LOCK-20.
 * Page: D3DDDICB_LOCKFLAGS. */
typedef struct _D3DDDICB_LOCKFLAGS {
	union {
		struct {
			UINT ReadOnly : 1;            /* 0x00000001 */
			UINT WriteOnly : 1;           /* 0x00000002 */
			UINT DonotWait : 1;           /* 0x00000004 */
			UINT IgnoreSync : 1;          /* 0x00000008 */
			UINT LockEntire : 1;          /* 0x00000010 */
			UINT DonotEvict : 1;          /* 0x00000020 */
			UINT AcquireAperture : 1;     /* 0x00000040 */
			UINT Discard : 1;             /* 0x00000080 */
			UINT NoExistingReference : 1; /* 0x00000100 */
			UINT UseAlternateVA : 1;      /* 0x00000200 */
			UINT IgnoreReadSync : 1;      /* 0x00000400 */
			UINT Reserved : 21;           /* 0xFFFFF800 */
		};
		UINT Value;
	};
} D3DDDICB_LOCKFLAGS;

/* No flags are defined; all bits must be zero. */
typedef struct _D3DDDICB_LOCK2FLAGS {
	union {
		UINT Reserved : 32; /* 0xFFFFFFFF */
		UINT Value;
	};
} D3DDDICB_LOCK2FLAGS;

/* One allocation to create. Out: hAllocation. pSystemMem, if not NULL, is page-aligned memory of
 * the caller that backs the allocation. pPrivateDriverData is the driver's own description,
 * PrivateDriverDataSize bytes. VidPnSourceId is used for a primary only. Page:
 * D3DDDI_ALLOCATIONINFO. */
typedef struct _D3DDDI_ALLOCATIONINFO {
	D3DKMT_HANDLE hAllocation;
	D3DKMT_PTR(const VOID *, pSystemMem);
	D3DKMT_PTR(VOID *, pPrivateDriverData);
	UINT PrivateDriverDataSize;
	D3DDDI_VIDEO_PRESENT_SOURCE_ID VidPnSourceId;
	union {
		struct {
			UINT Primary : 1; /* 0x00000001 */
#if WDDM_SHARED_1_2
			UINT Stereo : 1;    /* 0x00000002 */
			UINT Reserved : 30; /* 0xFFFFFFFC */
#else
			UINT Reserved : 31; /* 0xFFFFFFFE */
#endif
		};
		UINT Value;
	} Flags;
} D3DDDI_ALLOCATIONINFO;

/* As D3DDDI_ALLOCATIONINFO, since 1.1. Also out: GpuVirtualAddress. Priority is used if
 * OverridePriority is set (2.2). Reserved must be zero. Page: D3DDDI_ALLOCATIONINFO2. */
typedef struct _D3DDDI_ALLOCATIONINFO2 {
	D3DKMT_HANDLE hAllocation;
	union {
		UINT64 pSystemMem_hSection_Align;
		HANDLE hSection;
		const VOID *pSystemMem;
	};
	D3DKMT_PTR(VOID *, pPrivateDriverData);
	UINT PrivateDriverDataSize;
	D3DDDI_VIDEO_PRESENT_SOURCE_ID VidPnSourceId;
	union {
		struct {
			UINT Primary : 1; /* 0x00000001 */
#if WDDM_SHARED_2_2
			UINT Stereo : 1;           /* 0x00000002 */
			UINT OverridePriority : 1; /* 0x00000004 */
			UINT Reserved : 29;        /* 0xFFFFFFF8 */
#elif WDDM_SHARED_1_2
			UINT Stereo : 1;    /* 0x00000002 */
			UINT Reserved : 30; /* 0xFFFFFFFC */
#else
			UINT Reserved : 31; /* 0xFFFFFFFE */
#endif
		};
		UINT Value;
	} Flags;
	D3DGPU_VIRTUAL_ADDRESS GpuVirtualAddress;
#if WDDM_SHARED_2_2
	union {
		UINT Priority;
		ULONG_PTR Unused;
	};
	ULONG_PTR Reserved[5];
#else
	ULONG_PTR Reserved[6];
#endif
} D3DDDI_ALLOCATIONINFO2;

/* One allocation of an opened resource: all members are filled by the open. Page:
 * D3DDDI_OPENALLOCATIONINFO. */
typedef struct _D3DDDI_OPENALLOCATIONINFO {
	D3DKMT_HANDLE hAllocation;
	D3DKMT_PTR(const VOID *, pPrivateDriverData);
	UINT PrivateDriverDataSize;
} D3DDDI_OPENALLOCATIONINFO;

/* As D3DDDI_OPENALLOCATIONINFO, with the GPU address. Page: D3DDDI_OPENALLOCATIONINFO2. */
typedef struct _D3DDDI_OPENALLOCATIONINFO2 {
	D3DKMT_HANDLE hAllocation;
	D3DKMT_PTR(const VOID *, pPrivateDriverData);
	UINT PrivateDriverDataSize;
	D3DGPU_VIRTUAL_ADDRESS GpuVirtualAddress;
	ULONG_PTR Reserved[6];
} D3DDDI_OPENALLOCATIONINFO2;

/* AssumeNotInUse: the caller promises that the GPU has finished. SynchronousDestroy: destroyed
 * when the call returns. SystemUseOnly is refused from user mode. Page:
 * D3DDDICB_DESTROYALLOCATION2FLAGS. */
typedef struct _D3DDDICB_DESTROYALLOCATION2FLAGS {
	union {
		struct {
			UINT AssumeNotInUse : 1;     /* 0x00000001 */
			UINT SynchronousDestroy : 1; /* 0x00000002 */
			UINT Reserved : 29;          /* 0x7FFFFFFC */
			UINT SystemUseOnly : 1;      /* 0x80000000 */
		};
		UINT Value;
	};
} D3DDDICB_DESTROYALLOCATION2FLAGS;

/* Up to five segment ids in order of preference; id 0 ends the list. Direction 1 places from the
 * end of the segment. Page: D3DDDI_SEGMENTPREFERENCE. */
typedef struct _D3DDDI_SEGMENTPREFERENCE {
	union {
		struct {
			UINT SegmentId0 : 5; /* 0x0000001F */
			UINT Direction0 : 1; /* 0x00000020 */
			UINT SegmentId1 : 5; /* 0x000007C0 */
			UINT Direction1 : 1; /* 0x00000800 */
			UINT SegmentId2 : 5; /* 0x0001F000 */
			UINT Direction2 : 1; /* 0x00020000 */
			UINT SegmentId3 : 5; /* 0x007C0000 */
			UINT Direction3 : 1; /* 0x00800000 */
			UINT SegmentId4 : 5; /* 0x1F000000 */
			UINT Direction4 : 1; /* 0x20000000 */
			UINT Reserved : 2;   /* 0xC0000000 */
		};
		UINT Value;
	};
} D3DDDI_SEGMENTPREFERENCE;

/* The order in which offered memory is discarded: LOW first. AUTO: the memory manager chooses;
 * NONE is not an offer. Page: D3DDDI_OFFER_PRIORITY. */
typedef enum _D3DDDI_OFFER_PRIORITY {
	D3DDDI_OFFER_PRIORITY_NONE = 0,
	D3DDDI_OFFER_PRIORITY_LOW = 1,
	D3DDDI_OFFER_PRIORITY_NORMAL = 2,
	D3DDDI_OFFER_PRIORITY_HIGH = 3,
	D3DDDI_OFFER_PRIORITY_AUTO = 4,
} D3DDDI_OFFER_PRIORITY;

/* AllowDecommit: the backing store may be freed, too. Since 2.1. */
typedef union D3DDDI_OFFER_FLAGS {
	struct {
		UINT AllowDecommit : 1; /* 0x00000001 */
		UINT Reserved : 31;     /* 0xFFFFFFFE */
	};
	UINT Value;
} D3DDDI_OFFER_FLAGS;

/* OK: the content is intact. DISCARDED: it is lost. NOT_COMMITTED: it is lost, and no memory is
 * free for the allocation. Since 2.1. */
typedef enum _D3DDDI_RECLAIM_RESULT {
	D3DDDI_RECLAIM_RESULT_OK = 0,
	D3DDDI_RECLAIM_RESULT_DISCARDED = 1,
	D3DDDI_RECLAIM_RESULT_NOT_COMMITTED = 2,
} D3DDDI_RECLAIM_RESULT;

/* One allocation that a command buffer uses; 8 bytes. WriteOperation: the GPU may write it
 * anywhere in the buffer. DoNotRetireInstance: an older instance stays usable. OfferPriority
 * other than 0 offers it when the buffer is done. Page: D3DDDI_ALLOCATIONLIST. */
typedef struct _D3DDDI_ALLOCATIONLIST {
	D3DKMT_HANDLE hAllocation;
	union {
		struct {
			UINT WriteOperation : 1;      /* 0x00000001 */
			UINT DoNotRetireInstance : 1; /* 0x00000002 */
#if WDDM_SHARED_1_2
			UINT OfferPriority : 3; /* 0x0000001C */
			UINT Reserved : 27;     /* 0xFFFFFFE0 */
#else
			UINT Reserved : 30; /* 0xFFFFFFFC */
#endif
		};
		UINT Value;
	};
} D3DDDI_ALLOCATIONLIST;

/* One location in a command or DMA buffer that holds an address; 24 bytes. AllocationIndex names
 * the entry of the allocation list; SlotId is below 2^24; AllocationOffset, PatchOffset and
 * SplitOffset are bytes from the start of the allocation and of the buffer. The buffer may be
 * split at SplitOffset. Page: D3DDDI_PATCHLOCATIONLIST; rules PAT-*, SPL-*. */
typedef struct _D3DDDI_PATCHLOCATIONLIST {
	UINT AllocationIndex;
	union {
		struct {
			UINT SlotId : 24;  /* 0x00FFFFFF */
			UINT Reserved : 8; /* 0xFF000000 */
		};
		UINT Value;
	};
	UINT DriverId;
	UINT AllocationOffset;
	UINT PatchOffset;
	UINT SplitOffset;
} D3DDDI_PATCHLOCATIONLIST;

/* NullRendering: commands are accepted and not run. SynchronizationOnly: waits and signals only
 * (2.0). Page: D3DDDI_CREATECONTEXTFLAGS. */
typedef struct _D3DDDI_CREATECONTEXTFLAGS {
	union {
		struct {
			UINT NullRendering : 1;       /* 0x00000001 */
			UINT InitialData : 1;         /* 0x00000002 */
			UINT DisableGpuTimeout : 1;   /* 0x00000004 */
			UINT SynchronizationOnly : 1; /* 0x00000008 */
			UINT HwQueueSupported : 1;    /* 0x00000010 */
			UINT NoKmdAccess : 1;         /* 0x00000020 */
			UINT Reserved : 26;           /* 0xFFFFFFC0 */
		};
		UINT Value;
	};
} D3DDDI_CREATECONTEXTFLAGS;

/* No flags are defined. */
typedef struct _D3DDDI_CREATEHWCONTEXTFLAGS {
	union {
		UINT Reserved : 32; /* 0xFFFFFFFF */
		UINT Value;
	};
} D3DDDI_CREATEHWCONTEXTFLAGS;

/* Page: D3DDDI_CREATEHWQUEUEFLAGS. Since 2.2. */
typedef struct _D3DDDI_CREATEHWQUEUEFLAGS {
	union {
		struct {
			UINT DisableGpuTimeout : 1; /* 0x00000001 */
			UINT NoBroadcastSignal : 1; /* 0x00000002 */
			UINT NoBroadcastWait : 1;   /* 0x00000004 */
			UINT NoKmdAccess : 1;       /* 0x00000008 */
			UINT Reserved : 28;         /* 0xFFFFFFF0 */
		};
		UINT Value;
	};
} D3DDDI_CREATEHWQUEUEFLAGS;

#ifdef __cplusplus
}
#endif

#endif
