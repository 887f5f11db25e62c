/* SPDX-License-Identifier: MIT */
/*
 * Hardware scheduling: hardware queues, priority bands, suspended contexts. Part of d3dkmddi.h;
 * submissions to a hardware queue are in kmddi_submit.h. Times are in units of 100 ns.
 *
 * Source: the pages DXGKARG_SETUPPRIORITYBANDS, DXGKARG_SETCONTEXTSCHEDULINGPROPERTIES,
 * DXGKARG_CREATEHWQUEUE,
 * DXGKARG_SUSPENDCONTEXT, DXGKARG_RESUMECONTEXT, DXGKARG_RESUMEHWENGINE,
 * DXGKARGCB_INVALIDATEHWCONTEXT. The page of DRIVER_INITIALIZATION_DATA gives
 * DxgkDdiCreateHwContext and DxgkDdiDestroyHwContext the contract of DxgkDdiCreateContext and
 * DxgkDdiDestroyContext.
 *
 * Inferred, because no page describes them: the types of the bands' members, and the numbers of the
 * four bands. A miniport that was built with other headers may have another layout.
 */
#ifndef WDDM_KMDDI_HWSCHED_H
#define WDDM_KMDDI_HWSCHED_H

#include "d3dukmdt.h"
#include "d3dkmdt.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * hHwQueue, in: the port's handle; out: the miniport's, for later calls. The progress fence: its
 * handle in the process, where the miniport reads it, and where the GPU does. Since 2.2.
 */
typedef struct _DXGKARG_CREATEHWQUEUE {
	HANDLE hHwQueue;
	D3DDDI_CREATEHWQUEUEFLAGS Flags;
	UINT PrivateDriverDataSize;
	VOID *pPrivateDriverData;
	D3DKMT_HANDLE hHwQueueProgressFence;
	VOID *HwQueueProgressFenceCPUVirtualAddress;
	D3DGPU_VIRTUAL_ADDRESS HwQueueProgressFenceGPUVirtualAddress;
} DXGKARG_CREATEHWQUEUE;

/* The bands, lowest priority first: idle, normal, focus, real time. */
#define DXGK_PRIORITY_BANDS 4u

/* targetNormalBandPercentage: the share of the GPU, 0 to 50 %, that the normal band keeps while the
 * focus band is busy. Since 2.4. */
typedef struct _DXGKARG_SETUPPRIORITYBANDS {
	UINT64 gracePeriodForBand[DXGK_PRIORITY_BANDS];
	UINT64 processQuantumForBand[DXGK_PRIORITY_BANDS];
	UINT64 processGracePeriodForBand[DXGK_PRIORITY_BANDS];
	UINT targetNormalBandPercentage;
} DXGKARG_SETUPPRIORITYBANDS;

/* realtimeBandPriorityLevel: 0 to 31, for the real time band only. inProcessPriority: -7 to 7.
 * Since 2.4. */
typedef struct _DXGKARG_SETCONTEXTSCHEDULINGPROPERTIES {
	HANDLE hContext;
	UINT priorityBand;
	UINT realtimeBandPriorityLevel;
	INT inProcessPriority;
	UINT64 quantum;
	UINT64 gracePeriodSamePriority;
	UINT64 gracePeriodLowerPriority;
} DXGKARG_SETCONTEXTSCHEDULINGPROPERTIES;

/* contextSuspendFence is larger in every call for a context than before. Since 2.4. */
typedef struct _DXGKARG_SUSPENDCONTEXT {
	HANDLE hContext;
	UINT64 contextSuspendFence;
} DXGKARG_SUSPENDCONTEXT;

typedef struct _DXGKARG_RESUMECONTEXT {
	HANDLE hContext;
} DXGKARG_RESUMECONTEXT;

typedef struct _DXGKARG_RESUMEHWENGINE {
	UINT NodeOrdinal;
	UINT EngineOrdinal;
} DXGKARG_RESUMEHWENGINE;

/* CollateralDamage 0: this context hung the engine. */
typedef struct _DXGK_INVALIDATEHWCONTEXTFLAGS {
	union {
		struct {
			UINT CollateralDamage : 1; /* 0x00000001 */
			UINT Reserved : 31;        /* 0xFFFFFFFE */
		};
		UINT Value;
	};
} DXGK_INVALIDATEHWCONTEXTFLAGS;

/* hHwContext: the port's handle, as passed to DxgkDdiCreateHwContext. Since 2.2. */
typedef struct _DXGKARGCB_INVALIDATEHWCONTEXT {
	HANDLE hAdapter;
	HANDLE hHwContext;
	DXGK_INVALIDATEHWCONTEXTFLAGS Flags;
} DXGKARGCB_INVALIDATEHWCONTEXT;

#ifdef __cplusplus
}
#endif

#endif
