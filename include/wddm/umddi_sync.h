/* SPDX-License-Identifier: MIT */
/*
 * The arguments of the synchronization callbacks. Part of d3dumddi.h. At most
 * D3DDDI_MAX_OBJECT_WAITED_ON objects in one wait, D3DDDI_MAX_OBJECT_SIGNALED in one signal.
 * Source: the D3DDDICB_* pages of d3dumddi.h and their pfn...Cb pages; rules SYN-*, MFN-*.
 */
#ifndef WDDM_UMDDI_SYNC_H
#define WDDM_UMDDI_SYNC_H

#include "d3dukmdt.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct _D3DDDICB_CREATESYNCHRONIZATIONOBJECT {
	D3DDDI_SYNCHRONIZATIONOBJECTINFO Info;
	D3DKMT_HANDLE hSyncObject;
} D3DDDICB_CREATESYNCHRONIZATIONOBJECT;

typedef struct _D3DDDICB_CREATESYNCHRONIZATIONOBJECT2 {
	D3DDDI_SYNCHRONIZATIONOBJECTINFO2 Info;
	D3DKMT_HANDLE hSyncObject;
} D3DDDICB_CREATESYNCHRONIZATIONOBJECT2;

typedef struct _D3DDDICB_DESTROYSYNCHRONIZATIONOBJECT {
	D3DKMT_HANDLE hSyncObject;
} D3DDDICB_DESTROYSYNCHRONIZATIONOBJECT;

typedef struct _D3DDDICB_WAITFORSYNCHRONIZATIONOBJECT {
	HANDLE hContext;
	UINT ObjectCount;
	D3DKMT_HANDLE ObjectHandleArray[D3DDDI_MAX_OBJECT_WAITED_ON];
} D3DDDICB_WAITFORSYNCHRONIZATIONOBJECT;

/* The fence value has both names that driver source uses. */
typedef struct _D3DDDICB_WAITFORSYNCHRONIZATIONOBJECT2 {
	HANDLE hContext;
	UINT ObjectCount;
	D3DKMT_HANDLE ObjectHandleArray[D3DDDI_MAX_OBJECT_WAITED_ON];
	union {
		UINT64 FenceValue;
		struct {
			UINT64 FenceValue;
		} Fence;
		UINT64 Reserved[8];
	};
} D3DDDICB_WAITFORSYNCHRONIZATIONOBJECT2;

typedef struct _D3DDDICB_SIGNALSYNCHRONIZATIONOBJECT {
	HANDLE hContext;
	UINT ObjectCount;
	D3DKMT_HANDLE ObjectHandleArray[D3DDDI_MAX_OBJECT_SIGNALED];
	D3DDDICB_SIGNALFLAGS Flags;
} D3DDDICB_SIGNALSYNCHRONIZATIONOBJECT;

/* The page declares BroadcastContext as D3DKMT_HANDLE, but contexts of this interface are HANDLE
 * everywhere else. Here it holds HANDLEs (inferred). */
typedef struct _D3DDDICB_SIGNALSYNCHRONIZATIONOBJECT2 {
	HANDLE hContext;
	UINT ObjectCount;
	D3DKMT_HANDLE ObjectHandleArray[D3DDDI_MAX_OBJECT_SIGNALED];
	D3DDDICB_SIGNALFLAGS Flags;
	ULONG BroadcastContextCount;
	HANDLE BroadcastContext[D3DDDI_MAX_BROADCAST_CONTEXT];
	union {
		UINT64 FenceValue;
		struct {
			UINT64 FenceValue;
		} Fence;
		HANDLE CpuEventHandle;
		UINT64 Reserved[8];
	};
} D3DDDICB_SIGNALSYNCHRONIZATIONOBJECT2;

/* 2.0. hAsyncEvent NULL: the call itself waits. */
typedef struct D3DDDICB_WAITFORSYNCHRONIZATIONOBJECTFROMCPU {
	UINT ObjectCount;
	const D3DKMT_HANDLE *ObjectHandleArray;
	const UINT64 *FenceValueArray;
	HANDLE hAsyncEvent;
	D3DDDI_WAITFORSYNCHRONIZATIONOBJECTFROMCPU_FLAGS Flags;
} D3DDDICB_WAITFORSYNCHRONIZATIONOBJECTFROMCPU;

typedef struct D3DDDICB_SIGNALSYNCHRONIZATIONOBJECTFROMCPU {
	UINT ObjectCount;
	const D3DKMT_HANDLE *ObjectHandleArray;
	const UINT64 *FenceValueArray;
} D3DDDICB_SIGNALSYNCHRONIZATIONOBJECTFROMCPU;

typedef struct D3DDDICB_WAITFORSYNCHRONIZATIONOBJECTFROMGPU {
	HANDLE hContext;
	UINT ObjectCount;
	const D3DKMT_HANDLE *ObjectHandleArray;
	union {
		const UINT64 *MonitoredFenceValueArray;
		UINT64 FenceValue;
		UINT64 Reserved[8];
	};
} D3DDDICB_WAITFORSYNCHRONIZATIONOBJECTFROMGPU;

typedef struct D3DDDICB_SIGNALSYNCHRONIZATIONOBJECTFROMGPU {
	HANDLE hContext;
	UINT ObjectCount;
	const D3DKMT_HANDLE *ObjectHandleArray;
	union {
		const UINT64 *MonitoredFenceValueArray;
		UINT64 Reserved[8];
	};
} D3DDDICB_SIGNALSYNCHRONIZATIONOBJECTFROMGPU;

typedef struct D3DDDICB_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2 {
	UINT ObjectCount;
	const D3DKMT_HANDLE *ObjectHandleArray;
	D3DDDICB_SIGNALFLAGS Flags;
	ULONG BroadcastContextCount;
	const HANDLE *BroadcastContextArray;
	union {
		UINT64 FenceValue;
		HANDLE CpuEventHandle;
		const UINT64 *MonitoredFenceValueArray;
		UINT64 Reserved[8];
	};
} D3DDDICB_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2;

/* Hardware queues, 2.2. */
typedef struct _D3DDDICB_SUBMITCOMMANDTOHWQUEUE {
	HANDLE hHwQueue;
	UINT64 HwQueueProgressFenceId;
	D3DGPU_VIRTUAL_ADDRESS Commands;
	UINT CommandLength;
	UINT Flags;
	UINT PrivateDriverDataSize;
	VOID *pPrivateDriverData;
	UINT NumPrimaries;
	const D3DKMT_HANDLE *WrittenPrimaries;
} D3DDDICB_SUBMITCOMMANDTOHWQUEUE;

/* Presents on hardware queues, members in the order of the pages. */
typedef struct _D3DDDICB_SUBMITPRESENTBLTTOHWQUEUE {
	D3DKMT_HANDLE hSrcAllocation;
	D3DKMT_HANDLE hDstAllocation;
	HANDLE hHwQueue;
	UINT64 HwQueueProgressFenceId;
	UINT PrivateDriverDataSize;
	PVOID pPrivateDriverData;
} D3DDDICB_SUBMITPRESENTBLTTOHWQUEUE;

typedef struct _D3DDDICB_SUBMITPRESENTTOHWQUEUE {
	D3DKMT_HANDLE *BroadcastSrcAllocations;
	D3DKMT_HANDLE *BroadcastDstAllocations;
	HANDLE *hHwQueues;
	UINT BroadcastHwQueueCount;
	UINT PrivateDriverDataSize;
	PVOID pPrivateDriverData;
	BOOLEAN bOptimizeForComposition;
	BOOL SyncIntervalOverrideValid;
	D3DDDI_FLIPINTERVAL_TYPE SyncIntervalOverride;
} D3DDDICB_SUBMITPRESENTTOHWQUEUE;

typedef struct _D3DDDICB_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE {
	HANDLE hHwQueue;
	UINT ObjectCount;
	const D3DKMT_HANDLE *ObjectHandleArray;
	const UINT64 *FenceValueArray;
} D3DDDICB_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE;

typedef struct _D3DDDICB_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE {
	D3DDDICB_SIGNALFLAGS Flags;
	ULONG BroadcastHwQueueCount;
	const HANDLE *BroadcastHwQueueArray;
	UINT ObjectCount;
	const D3DKMT_HANDLE *ObjectHandleArray;
	const UINT64 *FenceValueArray;
} D3DDDICB_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE;

#ifdef __cplusplus
}
#endif

#endif
