/* SPDX-License-Identifier: MIT */
/*
 * Hardware scheduling: hardware queues, priority bands, suspended contexts. Part of d3dkmddi.h; what is submitted to a queue
 * is in kmddi_submit.h. Times are in units of 100 ns. Source: the pages DXGKARG_SETUPPRIORITYBANDS,
 * DXGKARG_SETCONTEXTSCHEDULINGPROPERTIES, DXGKARG_SUSPENDCONTEXT, DXGKARG_RESUMECONTEXT, DXGKARG_RESUMEHWENGINE,
 * DXGKARGCB_INVALIDATEHWCONTEXT. The table's page gives DxgkDdiCreateHwContext and DxgkDdiDestroyHwContext the contract of
 * DxgkDdiCreateContext and DxgkDdiDestroyContext.
 *
 * Inferred, because no page says it: DXGKARG_CREATEHWQUEUE (made like the client's structure), the types of the bands' members,
 * and how the four bands are numbered. A miniport that was built with other headers may lay them out differently.
 */
#ifndef WDDM_KMDDI_HWSCHED_H
#define WDDM_KMDDI_HWSCHED_H

#include "d3dukmdt.h"
#include "d3dkmdt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* hHwQueue: in the port's, out the miniport's, which all later calls name. Since 2.2; inferred. */
typedef struct _DXGKARG_CREATEHWQUEUE {
	HANDLE hHwQueue;
	D3DDDI_CREATEHWQUEUEFLAGS Flags;
	UINT PrivateDriverDataSize;
	VOID *pPrivateDriverData;
} DXGKARG_CREATEHWQUEUE;

/* The bands, from the least: idle, normal, focus, real time. */
#define DXGK_PRIORITY_BANDS 4u

/* targetNormalBandPercentage: 0 to 50, of the GPU where the focus band starves the normal one. Since 2.4. */
typedef struct _DXGKARG_SETUPPRIORITYBANDS {
	UINT64 gracePeriodForBand[DXGK_PRIORITY_BANDS];
	UINT64 processQuantumForBand[DXGK_PRIORITY_BANDS];
	UINT64 processGracePeriodForBand[DXGK_PRIORITY_BANDS];
	UINT targetNormalBandPercentage;
} DXGKARG_SETUPPRIORITYBANDS;

/* realtimeBandPriorityLevel: 0 to 31, read for the real time band alone; inProcessPriority: -7 to 7. Since 2.4. */
typedef struct _DXGKARG_SETCONTEXTSCHEDULINGPROPERTIES {
	HANDLE hContext;
	UINT priorityBand;
	UINT realtimeBandPriorityLevel;
	INT inProcessPriority;
	UINT64 quantum;
	UINT64 gracePeriodSamePriority;
	UINT64 gracePeriodLowerPriority;
} DXGKARG_SETCONTEXTSCHEDULINGPROPERTIES;

/* contextSuspendFence rises with every call for a context. Since 2.4. */
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

/* CollateralDamage 0: the context is the one that hung the engine. */
typedef struct _DXGK_INVALIDATEHWCONTEXTFLAGS {
	union {
		struct {
			UINT CollateralDamage : 1; /* 0x00000001 */
			UINT Reserved : 31;        /* 0xFFFFFFFE */
		};
		UINT Value;
	};
} DXGK_INVALIDATEHWCONTEXTFLAGS;

/* hHwContext: the port's handle, as DxgkDdiCreateHwContext was given it. Since 2.2. */
typedef struct _DXGKARGCB_INVALIDATEHWCONTEXT {
	HANDLE hAdapter;
	HANDLE hHwContext;
	DXGK_INVALIDATEHWCONTEXTFLAGS Flags;
} DXGKARGCB_INVALIDATEHWCONTEXT;

#ifdef __cplusplus
}
#endif

#endif
