/* SPDX-License-Identifier: MIT */
/*
 * Power components of a miniport: what it says about the idle states of its engines and memory.
 * Part of d3dkmddi.h. vidmm asks for none and changes no idle state, so a miniport's tables of
 * components are its own affair.
 *
 * vidmm chose the two sizes that no page has, DXGK_POWER_COMPONENT_NAME_SIZE and
 * DXGK_MAX_POWER_COMPONENT_PROVIDERS, and the values of the GUIDs. Source: the
 * DXGK_POWER_RUNTIME_COMPONENT page and the pages that it names.
 */
#ifndef WDDM_KMDDI_POWER_H
#define WDDM_KMDDI_POWER_H

#include "kmdt_core.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DXGK_MAX_F_STATES                  8
#define DXGK_POWER_COMPONENT_NAME_SIZE     40
#define DXGK_MAX_POWER_COMPONENT_PROVIDERS 16

typedef struct _DXGK_POWER_RUNTIME_STATE {
	ULONGLONG TransitionLatency;    /* to F0, 100 ns; 0 in F0 */
	ULONGLONG ResidencyRequirement; /* 100 ns; 0 in F0 */
	ULONG NominalPower;             /* microwatts */
} DXGK_POWER_RUNTIME_STATE;

typedef enum _DXGK_POWER_COMPONENT_TYPE {
	DXGK_POWER_COMPONENT_ENGINE = 0,
	DXGK_POWER_COMPONENT_MONITOR = 1,
	DXGK_POWER_COMPONENT_MONITOR_REFRESH = 2,
	DXGK_POWER_COMPONENT_MEMORY = 3,
	DXGK_POWER_COMPONENT_MEMORY_REFRESH = 4,
	DXGK_POWER_COMPONENT_OTHER = 5,
	DXGK_POWER_COMPONENT_D3_TRANSITION = 6,
	DXGK_POWER_COMPONENT_SHARED = 7,
	DXGK_POWER_COMPONENT_MAX,
} DXGK_POWER_COMPONENT_TYPE;

typedef struct _DXGK_POWER_COMPONENT_MAPPING {
	DXGK_POWER_COMPONENT_TYPE ComponentType;
	union {
		struct {
			UINT NodeIndex;
		} EngineDesc;
		struct {
			UINT VidPnSourceID;
		} MonitorRefreshDesc;
		struct {
			UINT VidPnTargetID;
		} MonitorDesc;
		struct {
			UINT SegmentID;
		} MemoryDesc;
	};
} DXGK_POWER_COMPONENT_MAPPING;

typedef struct _DXGK_POWER_COMPONENT_FLAGS {
	union {
		struct {
			UINT Reserved0 : 1;
			UINT DriverCompletesFStateTransition : 1;
			UINT TransitionTo_F0_OnDx : 1;
			UINT NoDebounce : 1;
			UINT ActiveInD3 : 1;
			UINT Reserved : 27;
		};
		UINT Value;
	};
} DXGK_POWER_COMPONENT_FLAGS;

typedef struct _DXGK_POWER_RUNTIME_COMPONENT {
	ULONG StateCount;
	DXGK_POWER_RUNTIME_STATE States[DXGK_MAX_F_STATES];
	DXGK_POWER_COMPONENT_MAPPING ComponentMapping;
	DXGK_POWER_COMPONENT_FLAGS Flags;
	GUID ComponentGuid;
	UCHAR ComponentName[DXGK_POWER_COMPONENT_NAME_SIZE];
	ULONG ProviderCount;
	ULONG Providers[DXGK_MAX_POWER_COMPONENT_PROVIDERS];
} DXGK_POWER_RUNTIME_COMPONENT, *PDXGK_POWER_RUNTIME_COMPONENT;

#ifdef __cplusplus
}
#endif

#endif
