/* SPDX-License-Identifier: MIT */
/*
 * Synchronization objects and keyed mutexes of D3DKMT clients. Part of d3dkmthk.h. Source: the
 * D3DKMT_* pages of d3dkmthk.h; rules SYN, MFN, MTX, SEM, FEN, CPN, PMF, KMX in docs/rules.
 */
#ifndef WDDM_KMTHK_SYNC_H
#define WDDM_KMTHK_SYNC_H

#include "d3dukmdt.h"
#include "wddm_object.h"

#ifdef __cplusplus
extern "C" {
#endif

#define D3DKMT_MAX_OBJECTS_PER_HANDLE        3
#define D3DKMT_MAX_BUNDLE_OBJECTS_PER_HANDLE 16
#define D3DKMT_GDI_STYLE_HANDLE_DECORATION   2

/* First form (1.0). Out: hSyncObject. */
typedef struct _D3DKMT_CREATESYNCHRONIZATIONOBJECT {
	D3DKMT_HANDLE hDevice;
	D3DDDI_SYNCHRONIZATIONOBJECTINFO Info;
	D3DKMT_HANDLE hSyncObject;
} D3DKMT_CREATESYNCHRONIZATIONOBJECT;

/* Any type. Info is in and out. Out: hSyncObject. Statuses: STATUS_INVALID_PARAMETER,
 * STATUS_NO_MEMORY, STATUS_DEVICE_REMOVED. */
typedef struct _D3DKMT_CREATESYNCHRONIZATIONOBJECT2 {
	D3DKMT_HANDLE hDevice;
	D3DDDI_SYNCHRONIZATIONOBJECTINFO2 Info;
	D3DKMT_HANDLE hSyncObject;
} D3DKMT_CREATESYNCHRONIZATIONOBJECT2;

typedef struct _D3DKMT_DESTROYSYNCHRONIZATIONOBJECT {
	D3DKMT_HANDLE hSyncObject;
} D3DKMT_DESTROYSYNCHRONIZATIONOBJECT;

typedef struct _D3DKMT_OPENSYNCHRONIZATIONOBJECT {
	D3DKMT_HANDLE hSharedHandle;
	D3DKMT_HANDLE hSyncObject;
	UINT64 Reserved[8];
} D3DKMT_OPENSYNCHRONIZATIONOBJECT;

/* Signals when the context reaches the signal. 1 to 32 objects. */
typedef struct _D3DKMT_SIGNALSYNCHRONIZATIONOBJECT {
	D3DKMT_HANDLE hContext;
	UINT ObjectCount;
	D3DKMT_HANDLE ObjectHandleArray[32];
	D3DDDICB_SIGNALFLAGS Flags;
} D3DKMT_SIGNALSYNCHRONIZATIONOBJECT;

/* Signals when hContext and every context of BroadcastContext have reached the signal. */
typedef struct _D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2 {
	D3DKMT_HANDLE hContext;
	UINT ObjectCount;
	D3DKMT_HANDLE ObjectHandleArray[32];
	D3DDDICB_SIGNALFLAGS Flags;
	ULONG BroadcastContextCount;
	D3DKMT_HANDLE BroadcastContext[64];
	union {
		struct {
			UINT64 FenceValue;
		} Fence;
		HANDLE CpuEventHandle;
		UINT64 Reserved[8];
	};
} D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2;

/* Monitored fences: sets the values at once. */
typedef struct _D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU {
	D3DKMT_HANDLE hDevice;
	UINT ObjectCount;
	D3DKMT_PTR(const D3DKMT_HANDLE *, ObjectHandleArray);
	D3DKMT_PTR(const UINT64 *, FenceValueArray);
	D3DDDICB_SIGNALFLAGS Flags;
} D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU;

typedef struct _D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU {
	D3DKMT_HANDLE hContext;
	UINT ObjectCount;
	D3DKMT_PTR(const D3DKMT_HANDLE *, ObjectHandleArray);
	union {
		const UINT64 *MonitoredFenceValueArray;
		UINT64 Reserved[8];
	};
} D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU;

typedef struct _D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2 {
	UINT ObjectCount;
	D3DKMT_PTR(const D3DKMT_HANDLE *, ObjectHandleArray);
	D3DDDICB_SIGNALFLAGS Flags;
	ULONG BroadcastContextCount;
	D3DKMT_PTR(const D3DKMT_HANDLE *, BroadcastContextArray);
	union {
		UINT64 FenceValue;
		HANDLE CpuEventHandle;
		const UINT64 *MonitoredFenceValueArray;
		UINT64 Reserved[8];
	};
} D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2;

/* The context waits until all objects are signaled; the caller does not. 1 to 32 objects. */
typedef struct _D3DKMT_WAITFORSYNCHRONIZATIONOBJECT {
	D3DKMT_HANDLE hContext;
	UINT ObjectCount;
	D3DKMT_HANDLE ObjectHandleArray[32];
} D3DKMT_WAITFORSYNCHRONIZATIONOBJECT;

/* As the first form; Fence.FenceValue for a fence. */
typedef struct _D3DKMT_WAITFORSYNCHRONIZATIONOBJECT2 {
	D3DKMT_HANDLE hContext;
	UINT ObjectCount;
	D3DKMT_HANDLE ObjectHandleArray[32];
	union {
		struct {
			UINT64 FenceValue;
		} Fence;
		UINT64 Reserved[8];
	};
} D3DKMT_WAITFORSYNCHRONIZATIONOBJECT2;

/* Monitored fences: waits until each reaches its value. hAsyncEvent 0: the call itself waits;
 * else it returns and the event is signaled later. */
typedef struct _D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU {
	D3DKMT_HANDLE hDevice;
	UINT ObjectCount;
	D3DKMT_PTR(const D3DKMT_HANDLE *, ObjectHandleArray);
	D3DKMT_PTR(const UINT64 *, FenceValueArray);
	D3DKMT_PTR(HANDLE, hAsyncEvent);
	D3DDDI_WAITFORSYNCHRONIZATIONOBJECTFROMCPU_FLAGS Flags;
} D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU;

typedef struct _D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU {
	D3DKMT_HANDLE hContext;
	UINT ObjectCount;
	D3DKMT_PTR(const D3DKMT_HANDLE *, ObjectHandleArray);
	union {
		const UINT64 *MonitoredFenceValueArray;
		UINT64 FenceValue;
		UINT64 Reserved[8];
	};
} D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU;

typedef struct _D3DKMT_OPENSYNCOBJECTFROMNTHANDLE {
	D3DKMT_PTR(HANDLE, hNtHandle);
	D3DKMT_HANDLE hSyncObject;
} D3DKMT_OPENSYNCOBJECTFROMNTHANDLE;

typedef struct _D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2 {
	D3DKMT_PTR(HANDLE, hNtHandle);
	D3DKMT_HANDLE hDevice;
	D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS Flags;
	D3DKMT_HANDLE hSyncObject;
	union {
		struct {
			D3DKMT_PTR(VOID *, FenceValueCPUVirtualAddress);
			D3DGPU_VIRTUAL_ADDRESS FenceValueGPUVirtualAddress;
			UINT EngineAffinity;
		} MonitoredFence;
		UINT64 Reserved[8];
	};
} D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2;

typedef struct _D3DKMT_OPENSYNCOBJECTNTHANDLEFROMNAME {
	DWORD dwDesiredAccess;
	D3DKMT_PTR(OBJECT_ATTRIBUTES *, pObjAttrib);
	D3DKMT_PTR(HANDLE, hNtHandle);
} D3DKMT_OPENSYNCOBJECTNTHANDLEFROMNAME;

typedef struct _D3DKMT_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE {
	D3DDDICB_SIGNALFLAGS Flags;
	ULONG BroadcastHwQueueCount;
	D3DKMT_PTR(const D3DKMT_HANDLE *, BroadcastHwQueueArray);
	UINT ObjectCount;
	D3DKMT_PTR(const D3DKMT_HANDLE *, ObjectHandleArray);
	D3DKMT_PTR(const UINT64 *, FenceValueArray);
} D3DKMT_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE;

typedef struct _D3DKMT_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE {
	D3DKMT_HANDLE hHwQueue;
	UINT ObjectCount;
	D3DKMT_PTR(const D3DKMT_HANDLE *, ObjectHandleArray);
	D3DKMT_PTR(const UINT64 *, FenceValueArray);
} D3DKMT_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE;

/* A file descriptor that becomes ready when the fence reaches FenceValue. Linux only. */
typedef struct _D3DKMT_CREATESYNCFILE {
	D3DKMT_HANDLE hDevice;
	D3DKMT_HANDLE hMonitoredFence;
	UINT64 FenceValue;
	UINT64 hSyncFile;
} D3DKMT_CREATESYNCFILE;

/* Waits until Key is released. *pTimeout is in units of 100 ns, negative = relative; NULL
 * waits without limit. Out: FenceValue. Status: STATUS_TIMEOUT, STATUS_ABANDONED. */
typedef struct _D3DKMT_ACQUIREKEYEDMUTEX {
	D3DKMT_HANDLE hKeyedMutex;
	UINT64 Key;
	D3DKMT_PTR(PLARGE_INTEGER, pTimeout);
	UINT64 FenceValue;
} D3DKMT_ACQUIREKEYEDMUTEX;

typedef struct _D3DKMT_ACQUIREKEYEDMUTEX2 {
	D3DKMT_HANDLE hKeyedMutex;
	UINT64 Key;
	D3DKMT_PTR(PLARGE_INTEGER, pTimeout);
	UINT64 FenceValue;
	D3DKMT_PTR(VOID *, pPrivateRuntimeData);
	UINT PrivateRuntimeDataSize;
} D3DKMT_ACQUIREKEYEDMUTEX2;

/* Out: both handles. InitialValue is the first key. */
typedef struct _D3DKMT_CREATEKEYEDMUTEX {
	UINT64 InitialValue;
	D3DKMT_HANDLE hSharedHandle;
	D3DKMT_HANDLE hKeyedMutex;
} D3DKMT_CREATEKEYEDMUTEX;

typedef struct _D3DKMT_CREATEKEYEDMUTEX2_FLAGS {
	union {
		struct {
			UINT NtSecuritySharing : 1; /* 0x00000001 */
			UINT Reserved : 31;         /* 0xFFFFFFFE */
		};
		UINT Value;
	};
} D3DKMT_CREATEKEYEDMUTEX2_FLAGS;

typedef struct _D3DKMT_CREATEKEYEDMUTEX2 {
	UINT64 InitialValue;
	D3DKMT_HANDLE hSharedHandle;
	D3DKMT_HANDLE hKeyedMutex;
	D3DKMT_PTR(VOID *, pPrivateRuntimeData);
	UINT PrivateRuntimeDataSize;
	D3DKMT_CREATEKEYEDMUTEX2_FLAGS Flags;
} D3DKMT_CREATEKEYEDMUTEX2;

typedef struct _D3DKMT_DESTROYKEYEDMUTEX {
	D3DKMT_HANDLE hKeyedMutex;
} D3DKMT_DESTROYKEYEDMUTEX;

typedef struct _D3DKMT_OPENKEYEDMUTEX {
	D3DKMT_HANDLE hSharedHandle;
	D3DKMT_HANDLE hKeyedMutex;
} D3DKMT_OPENKEYEDMUTEX;

typedef struct _D3DKMT_OPENKEYEDMUTEX2 {
	D3DKMT_HANDLE hSharedHandle;
	D3DKMT_HANDLE hKeyedMutex;
	D3DKMT_PTR(VOID *, pPrivateRuntimeData);
	UINT PrivateRuntimeDataSize;
} D3DKMT_OPENKEYEDMUTEX2;

typedef struct _D3DKMT_OPENKEYEDMUTEXFROMNTHANDLE {
	D3DKMT_PTR(HANDLE, hNtHandle);
	D3DKMT_HANDLE hKeyedMutex;
	D3DKMT_PTR(VOID *, pPrivateRuntimeData);
	UINT PrivateRuntimeDataSize;
} D3DKMT_OPENKEYEDMUTEXFROMNTHANDLE;

typedef union _D3DKMT_OUTPUTDUPL_KEYEDMUTEX {
	UINT64 hSharedSurfaceNt_Align;
	HANDLE hSharedSurfaceNt;
} D3DKMT_OUTPUTDUPL_KEYEDMUTEX;

/* Releases with a key. STATUS_INVALID_PARAMETER: the caller is not the owner. */
typedef struct _D3DKMT_RELEASEKEYEDMUTEX {
	D3DKMT_HANDLE hKeyedMutex;
	UINT64 Key;
	UINT64 FenceValue;
} D3DKMT_RELEASEKEYEDMUTEX;

typedef struct _D3DKMT_RELEASEKEYEDMUTEX2 {
	D3DKMT_HANDLE hKeyedMutex;
	UINT64 Key;
	UINT64 FenceValue;
	D3DKMT_PTR(VOID *, pPrivateRuntimeData);
	UINT PrivateRuntimeDataSize;
} D3DKMT_RELEASEKEYEDMUTEX2;

#ifdef __cplusplus
}
#endif

#endif
