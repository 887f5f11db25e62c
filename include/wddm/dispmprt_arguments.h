/* SPDX-License-Identifier: MIT */
/*
 * Argument structures of entry points that vidmm does not call. A miniport that has such an entry
 * compiles. Part of dispmprt.h; dispmprt_unused.h has the entries. Source: the pages of d3dkmddi.h
 * and dispmprt.h, members as they list them.
 */
#ifndef WDDM_DISPMPRT_ARGUMENTS_H
#define WDDM_DISPMPRT_ARGUMENTS_H

#include "dispmprt_parameters.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- start ---- */

typedef struct _DXGK_PRE_START_INFO {
	union {
		struct {
			UINT ReservedIn;
		};
		UINT Input;
	};
	union {
		struct {
			UINT SupportPreserveBootDisplay : 1;
			UINT IsUEFIFrameBufferCpuAccessibleDuringStartup : 1;
			UINT ReservedOut : 30;
		};
		UINT Output;
	};
} DXGK_PRE_START_INFO, *PDXGK_PRE_START_INFO, *IN_OUT_PDXGK_PRE_START_INFO;

/* ---- video present targets ---- */

typedef struct _DXGKARG_SETTARGETGAMMA {
	D3DDDI_VIDEO_PRESENT_TARGET_ID TargetId;
	D3DKMDT_GAMMA_RAMP GammaRamp;
} DXGKARG_SETTARGETGAMMA;

typedef struct _DXGKARG_SETTARGETCONTENTTYPE {
	D3DDDI_VIDEO_PRESENT_TARGET_ID TargetId;
	D3DKMDT_VIDPN_PRESENT_PATH_CONTENT ContentType;
} DXGKARG_SETTARGETCONTENTTYPE;

typedef struct _DXGKARG_SETTARGETANALOGCOPYPROTECTION {
	D3DDDI_VIDEO_PRESENT_TARGET_ID TargetId;
	D3DKMDT_VIDPN_PRESENT_PATH_COPYPROTECTION_TYPE CopyProtectionType;
	UINT APSTriggerBits;
	D3DKMDT_VIDPN_PRESENT_PATH_COPYPROTECTION_SUPPORT CopyProtectionSupport;
} DXGKARG_SETTARGETANALOGCOPYPROTECTION;

typedef enum _DXGK_DISPLAYDETECTCONTROLTYPE {
	DXGK_DDCT_UNINITIALIZED = 0,
	DXGK_DDCT_POLLONE = 1,
	DXGK_DDCT_POLLALL = 2,
	DXGK_DDCT_ENABLEHPD = 3,
	DXGK_DDCT_DISABLEHPD = 4,
} DXGK_DISPLAYDETECTCONTROLTYPE;

typedef struct _DXGKARG_DISPLAYDETECTCONTROL {
	D3DDDI_VIDEO_PRESENT_TARGET_ID TargetId : 24;
	DXGK_DISPLAYDETECTCONTROLTYPE Type : 4;
	UINT NonDestructiveOnly : 1;
	UINT Reserved : 3;
} DXGKARG_DISPLAYDETECTCONTROL;

typedef struct _DXGKARG_CONTROLINTERRUPT3 {
	DXGK_INTERRUPT_TYPE InterruptType;
	union {
		DXGK_INTERRUPT_STATE InterruptState;
		DXGK_CRTC_VSYNC_STATE CrtcVsyncState;
	};
	D3DDDI_VIDEO_PRESENT_SOURCE_ID VidPnSourceId;
} DXGKARG_CONTROLINTERRUPT3;

/* ---- overlays on several planes: capabilities ---- */

typedef struct _DXGK_MULTIPLANEOVERLAYCAPS {
	union {
		struct {
			UINT Rotation : 1;
			UINT RotationWithoutIndependentFlip : 1;
			UINT VerticalFlip : 1;
			UINT HorizontalFlip : 1;
			UINT StretchRGB : 1;
			UINT StretchYUV : 1;
			UINT BilinearFilter : 1;
			UINT HighFilter : 1;
			UINT Shared : 1;
			UINT Immediate : 1;
			UINT Plane0ForVirtualModeOnly : 1;
			UINT Reserved : 21;
		};
		UINT Value;
	};
} DXGK_MULTIPLANEOVERLAYCAPS;

typedef struct _DXGKARG_GETMULTIPLANEOVERLAYCAPS {
	D3DDDI_VIDEO_PRESENT_SOURCE_ID VidPnSourceId;
	UINT MaxPlanes;
	UINT MaxRGBPlanes;
	UINT MaxYUVPlanes;
	DXGK_MULTIPLANEOVERLAYCAPS OverlayCaps;
	float MaxStretchFactor;
	float MaxShrinkFactor;
} DXGKARG_GETMULTIPLANEOVERLAYCAPS;

typedef struct _DXGKARG_GETPOSTCOMPOSITIONCAPS {
	D3DDDI_VIDEO_PRESENT_SOURCE_ID VidPnSourceId;
	float MaxStretchFactor;
	float MaxShrinkFactor;
} DXGKARG_GETPOSTCOMPOSITIONCAPS;

/* ---- scheduling ---- */

typedef struct _DXGK_UPDATEHWCONTEXTSTATE_FLAGS {
	union {
		struct {
			UINT Suspended : 1;
			UINT InterruptOnSwitchCompletion : 1;
			UINT Reserved : 30;
		};
		UINT Value;
	};
} DXGK_UPDATEHWCONTEXTSTATE_FLAGS;

typedef struct _DXGKARG_UPDATEHWCONTEXTSTATE {
	HANDLE hHwContext;
	UINT64 ContextSwitchFence;
	UINT Priority;
	DXGK_UPDATEHWCONTEXTSTATE_FLAGS Flags;
} DXGKARG_UPDATEHWCONTEXTSTATE;

/* Declared, not defined: a driver that fills its log needs the members, which are not here. */
typedef struct _DXGK_SCHEDULING_LOG_BUFFER DXGK_SCHEDULING_LOG_BUFFER;

typedef struct _DXGKARG_SETSCHEDULINGLOGBUFFER {
	UINT NodeOrdinal;
	UINT EngineOrdinal;
	UINT NumberOfEntries;
	DXGK_SCHEDULING_LOG_BUFFER *LogBufferCpuVa;
	D3DGPU_VIRTUAL_ADDRESS LogBufferGpuVa;
	UINT InterruptEntry;
} DXGKARG_SETSCHEDULINGLOGBUFFER;

typedef enum _DXGK_KERNEL_SUBMISSION_TYPE {
	DXGK_KERNEL_SUBMISSION_BUILD_PAGING_BUFFER = 0,
	DXGK_KERNEL_SUBMISSION_RENDERGDI = 1,
	DXGK_KERNEL_SUBMISSION_PRESENTBLT = 2,
} DXGK_KERNEL_SUBMISSION_TYPE;

typedef struct _DXGKARG_SIGNALMONITOREDFENCE {
	DXGK_KERNEL_SUBMISSION_TYPE KernelSubmissionType;
	VOID *pDmaBuffer;
	D3DGPU_VIRTUAL_ADDRESS DmaBufferGpuVirtualAddress;
	UINT DmaSize;
	VOID *pDmaBufferPrivateData;
	UINT DmaBufferPrivateDataSize;
	UINT MultipassOffset;
	D3DGPU_VIRTUAL_ADDRESS MonitoredFenceGpuVa;
	UINT64 MonitoredFenceValue;
	VOID *MonitoredFenceCpuVa;
	HANDLE hHwQueue;
} DXGKARG_SIGNALMONITOREDFENCE;

/* ---- doorbells ---- */

typedef enum _D3DDDI_DOORBELLSTATUS {
	D3DDDI_DOORBELLSTATUS_CONNECTED = 0,
	D3DDDI_DOORBELLSTATUS_CONNECTED_NOTIFY_KMD = 1,
	D3DDDI_DOORBELLSTATUS_DISCONNECTED_RETRY = 2,
	D3DDDI_DOORBELLSTATUS_DISCONNECTED_ABORT = 3,
} D3DDDI_DOORBELLSTATUS;

typedef struct _DXGKARG_CREATEDOORBELL_FLAGS {
	union {
		struct {
			UINT ResizeRingBufferOperation : 1;
			UINT Reserved : 31;
		};
		UINT Value;
	};
} DXGKARG_CREATEDOORBELL_FLAGS;

typedef struct _DXGKARG_CREATEDOORBELL {
	HANDLE hHwQueue;
	HANDLE hDoorbell;
	UINT PrivateDriverDataSize;
	VOID *PrivateDriverData;
	HANDLE hRingBuffer;
	HANDLE hRingBufferControl;
	DXGKARG_CREATEDOORBELL_FLAGS Flags;
} DXGKARG_CREATEDOORBELL;

typedef struct _DXGKARG_CONNECTDOORBELL_FLAGS {
	union {
		struct {
			UINT RequireSecondaryAddress : 1;
			UINT Reserved : 31;
		};
		UINT Value;
	};
} DXGKARG_CONNECTDOORBELL_FLAGS;

typedef struct _DXGKARG_CONNECTDOORBELL {
	HANDLE hDoorbell;
	DXGKARG_CONNECTDOORBELL_FLAGS Flags;
	VOID *KernelCpuVirtualAddress;
	VOID *SecondaryKernelCpuVirtualAddress;
	D3DDDI_DOORBELLSTATUS Status;
} DXGKARG_CONNECTDOORBELL;

typedef struct _DXGKARG_DISCONNECTDOORBELL_FLAGS {
	union {
		struct {
			UINT Reserved : 32;
		};
		UINT Value;
	};
} DXGKARG_DISCONNECTDOORBELL_FLAGS;

typedef struct _DXGKARG_DISCONNECTDOORBELL {
	HANDLE hDoorbell;
	DXGKARG_DISCONNECTDOORBELL_FLAGS Flags;
} DXGKARG_DISCONNECTDOORBELL;

typedef struct _DXGKARG_DESTROYDOORBELL {
	HANDLE hDoorbell;
} DXGKARG_DESTROYDOORBELL;

typedef struct _DXGKARG_NOTIFYWORKSUBMISSION_FLAGS {
	union {
		struct {
			UINT Reserved : 32;
		};
		UINT Value;
	};
} DXGKARG_NOTIFYWORKSUBMISSION_FLAGS;

typedef struct _DXGKARG_NOTIFYWORKSUBMISSION {
	HANDLE hHwQueue;
	DXGKARG_NOTIFYWORKSUBMISSION_FLAGS Flags;
} DXGKARG_NOTIFYWORKSUBMISSION;

/* ---- sessions, virtual machines, updates of the driver ---- */

typedef struct _DXGKARG_CREATEPROTECTEDSESSION {
	HANDLE hProtectedSession;
	PVOID pPrivateDriverData;
	UINT PrivateDriverDataSize;
} DXGKARG_CREATEPROTECTEDSESSION;

typedef struct _DXGKARG_BEGINEXCLUSIVEACCESS {
	UINT Reserved;
} DXGKARG_BEGINEXCLUSIVEACCESS;

typedef struct _DXGKARG_ENDEXCLUSIVEACCESS {
	UINT Reserved;
} DXGKARG_ENDEXCLUSIVEACCESS;

typedef struct _DXGK_VIRTUALMACHINEDATAFLAGS {
	union {
		struct {
			UINT SecureVirtualMachine : 1;
			UINT LinuxVirtualMachine : 1;
		};
		UINT Value;
	};
} DXGK_VIRTUALMACHINEDATAFLAGS;

typedef struct _DXGKARG_SETVIRTUALMACHINEDATA {
	HANDLE hKmdVmWorkerProcess;
	GUID *pVmGuid;
	DXGK_VIRTUALMACHINEDATAFLAGS Flags;
} DXGKARG_SETVIRTUALMACHINEDATA;

typedef struct _DXGK_SAVEMEMORYFORHOTUPDATEFLAGS {
	union {
		struct {
			UINT CancelHotUpdate : 1;
			UINT Reserved : 31;
		};
		UINT Value;
	};
} DXGK_SAVEMEMORYFORHOTUPDATEFLAGS;

typedef struct _DXGKARG_SAVEMEMORYFORHOTUPDATE {
	DXGK_SAVEMEMORYFORHOTUPDATEFLAGS Flags;
} DXGKARG_SAVEMEMORYFORHOTUPDATE;

typedef struct _DXGK_RESTOREMEMORYFORHOTUPDATEFLAGS {
	union {
		struct {
			UINT RestoreComplete : 1;
			UINT Reserved : 31;
		};
		UINT Value;
	};
} DXGK_RESTOREMEMORYFORHOTUPDATEFLAGS;

typedef struct _DXGKARG_RESTOREMEMORYFORHOTUPDATE {
	DXGK_RESTOREMEMORYFORHOTUPDATEFLAGS Flags;
	PMDL pDataMdl;
	UINT MetaDataSize;
	PVOID pMetaData;
} DXGKARG_RESTOREMEMORYFORHOTUPDATE;

#ifdef __cplusplus
}
#endif

#endif
