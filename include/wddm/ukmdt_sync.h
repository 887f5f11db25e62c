/* SPDX-License-Identifier: MIT */
/*
 * Synchronization objects: their types, creation flags and initial state. Part of d3dukmdt.h.
 * The flag bits grow with the interface version and bit 31 stays reserved throughout.
 * Source: the pages D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS, D3DDDI_SYNCHRONIZATIONOBJECTINFO(2),
 * D3DDDICB_SIGNALFLAGS.
 */
#ifndef WDDM_UKMDT_SYNC_H
#define WDDM_UKMDT_SYNC_H

#include "ukmdt_handle.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Types of synchronization objects. Rules SYN-*. */
typedef enum _D3DDDI_SYNCHRONIZATIONOBJECT_TYPE {
	D3DDDI_SYNCHRONIZATION_MUTEX = 1,
	D3DDDI_SEMAPHORE = 2,
	D3DDDI_FENCE = 3,
	D3DDDI_CPU_NOTIFICATION = 4,
	D3DDDI_MONITORED_FENCE = 5,
	D3DDDI_PERIODIC_MONITORED_FENCE = 6,
	D3DDDI_SYNCHRONIZATION_TYPE_LIMIT = 7,
} D3DDDI_SYNCHRONIZATIONOBJECT_TYPE;

/* What to create, first form (1.0): mutex or semaphore. 68 bytes. */
typedef struct _D3DDDI_SYNCHRONIZATIONOBJECTINFO {
	D3DDDI_SYNCHRONIZATIONOBJECT_TYPE Type;
	union {
		struct {
			BOOL InitialState;
		} SynchronizationMutex;
		struct {
			UINT MaxCount;
			UINT InitialCount;
		} Semaphore;
		struct {
			UINT Reserved[16];
		} Reserved;
	};
} D3DDDI_SYNCHRONIZATIONOBJECTINFO;

/*
 * Flags of a synchronization object. Rules SFL-* say which are valid for which type. Unused and all
 * reserved bits must be zero. Which bits have a name depends on the interface version, as on the
 * page D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS. Reserved0 is a second name of the highest bit, which
 * some published headers have.
 */
typedef struct _D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS {
	union {
		struct {
			UINT Shared : 1;            /* 0x00000001 */
			UINT NtSecuritySharing : 1; /* 0x00000002 */
#if WDDM_SHARED_2_0
			UINT CrossAdapter : 1;          /* 0x00000004 */
			UINT TopOfPipeline : 1;         /* 0x00000008 */
			UINT NoSignal : 1;              /* 0x00000010 */
			UINT NoWait : 1;                /* 0x00000020 */
			UINT NoSignalMaxValueOnTdr : 1; /* 0x00000040 */
			UINT NoGPUAccess : 1;           /* 0x00000080 */
#if WDDM_SHARED_3_0
			UINT SignalByKmd : 1; /* 0x00000100 */
#if WDDM_SHARED_3_2
			UINT Unused : 1;                        /* 0x00000200 */
			UINT UnwaitCpuWaitersOnlyOnDestroy : 1; /* 0x00000400 */
			UINT Reserved : 20;                     /* 0x7FFFF800 */
#elif WDDM_SHARED_3_1
			UINT Unused : 1;    /* 0x00000200 */
			UINT Reserved : 21; /* 0x7FFFFC00 */
#else
			UINT Reserved : 22; /* 0x7FFFFE00 */
#endif
#else
			UINT Reserved : 23; /* 0x7FFFFF00 */
#endif
#elif WDDM_SHARED_1_3
			UINT CrossAdapter : 1; /* 0x00000004 */
			UINT Reserved : 28;    /* 0x7FFFFFF8 */
#else
			UINT Reserved : 29; /* 0x7FFFFFFC */
#endif
			UINT D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_RESERVED0 : 1; /* 0x80000000 */
		};
		struct {
			UINT : 31;
			UINT Reserved0 : 1; /* 0x80000000 */
		};
		UINT Value;
	};
} D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS;

/* What to create, second form (1.1): any type. Out: SharedHandle, and for the monitored fences
 * the two addresses at which the value can be read. EngineAffinity is a mask of physical
 * adapters. 80 bytes. Page: D3DDDI_SYNCHRONIZATIONOBJECTINFO2. */
typedef struct _D3DDDI_SYNCHRONIZATIONOBJECTINFO2 {
	D3DDDI_SYNCHRONIZATIONOBJECT_TYPE Type;
	D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS Flags;
	union {
		struct {
			BOOL InitialState;
		} SynchronizationMutex;
		struct {
			UINT MaxCount;
			UINT InitialCount;
		} Semaphore;
		struct {
			UINT64 FenceValue;
		} Fence;
		union {
			UINT64 Event_Align;
			HANDLE Event;
		} CPUNotification;
		struct {
			UINT64 InitialFenceValue;
			D3DKMT_PTR(VOID *, FenceValueCPUVirtualAddress);
			D3DGPU_VIRTUAL_ADDRESS FenceValueGPUVirtualAddress;
			UINT EngineAffinity;
			UINT Padding;
		} MonitoredFence;
		struct {
			D3DKMT_HANDLE hAdapter;
			D3DDDI_VIDEO_PRESENT_TARGET_ID VidPnTargetId;
			UINT64 Time;
			D3DKMT_PTR(VOID *, FenceValueCPUVirtualAddress);
			D3DGPU_VIRTUAL_ADDRESS FenceValueGPUVirtualAddress;
			UINT EngineAffinity;
			UINT Padding;
		} PeriodicMonitoredFence;
		struct {
			UINT64 Reserved[8];
		} Reserved;
	};
	D3DKMT_HANDLE SharedHandle;
} D3DDDI_SYNCHRONIZATIONOBJECTINFO2;

/* SignalAtSubmission: when the GPU has the buffers before it. EnqueueCpuEvent: CpuEventHandle is
 * signaled and no object is listed. AllowFenceRewind: the value may decrease. */
typedef struct _D3DDDICB_SIGNALFLAGS {
	union {
		struct {
			UINT SignalAtSubmission : 1;         /* 0x00000001 */
			UINT EnqueueCpuEvent : 1;            /* 0x00000002 */
			UINT AllowFenceRewind : 1;           /* 0x00000004 */
			UINT Reserved : 28;                  /* 0x7FFFFFF8 */
			UINT DXGK_SIGNAL_FLAG_INTERNAL0 : 1; /* 0x80000000 */
		};
		UINT Value;
	};
} D3DDDICB_SIGNALFLAGS;

/* WaitAny: one object is enough. */
typedef struct _D3DDDI_WAITFORSYNCHRONIZATIONOBJECTFROMCPU_FLAGS {
	union {
		struct {
			UINT WaitAny : 1;   /* 0x00000001 */
			UINT Reserved : 31; /* 0xFFFFFFFE */
		};
		UINT Value;
	};
} D3DDDI_WAITFORSYNCHRONIZATIONOBJECTFROMCPU_FLAGS;

/* Access rights of a shared synchronization object. */
#define D3DDDI_SYNC_OBJECT_ALL_ACCESS 0x1F0003

#ifdef __cplusplus
}
#endif

#endif
