/* SPDX-License-Identifier: MIT */
/*
 * Devices, contexts and processes as the miniport creates them. Part of d3dkmddi.h. Source: the
 * pages DXGKARG_CREATEDEVICE, DXGK_DEVICEINFO, DXGKARG_CREATECONTEXT, DXGK_CONTEXTINFO,
 * DXGKARG_CREATEPROCESS, DXGKARG_ESCAPE, DXGKARG_CREATECPUEVENT.
 */
#ifndef WDDM_KMDDI_DEVICE_H
#define WDDM_KMDDI_DEVICE_H

#include "d3dukmdt.h"
#include "d3dkmdt.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct _DXGK_CREATEDEVICEFLAGS {
	union {
		struct {
			UINT SystemDevice : 1; /* 0x00000001 */
			UINT GdiDevice : 1;    /* 0x00000002 since 1.1 */
			UINT Reserved : 30;    /* 0xFFFFFFFC */
		};
		UINT Value;
	};
} DXGK_CREATEDEVICEFLAGS;

typedef struct _DXGK_DEVICEINFOFLAGS {
	union {
		struct {
			UINT GuaranteedDmaBufferContract : 1; /* 0x00000001 */
			UINT Reserved : 31;                   /* 0xFFFFFFFE */
		};
		UINT Value;
	};
} DXGK_DEVICEINFOFLAGS;

/* The lists of a GDI context have at least this many entries. (vidmm chose the number) */
#define DXGK_ALLOCATION_LIST_SIZE_GDICONTEXT 256

/* The DMA buffers that a device without contexts needs. Sizes in bytes, list sizes in entries, the
 * segment set a mask with bit n - 1 = segment n (0 = contiguous system memory). */
typedef struct _DXGK_DEVICEINFO {
	UINT DmaBufferSize;
	UINT DmaBufferSegmentSet;
	UINT DmaBufferPrivateDataSize;
	UINT AllocationListSize;
	UINT PatchLocationListSize;
	DXGK_DEVICEINFOFLAGS Flags;
} DXGK_DEVICEINFO;

/* hDevice, in: the port's handle; out: the miniport's. The miniport reads Flags first. Then it
 * stores the pointer to its DXGK_DEVICEINFO, which it owns, in the same bytes. */
typedef struct _DXGKARG_CREATEDEVICE {
	HANDLE hDevice;
	union {
		DXGK_CREATEDEVICEFLAGS Flags;
		DXGK_DEVICEINFO *pInfo;
	};
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WDDM2_0
	ULONG Pasid;
	HANDLE hKmdProcess;
#endif
} DXGKARG_CREATEDEVICE;

typedef struct _DXGK_CREATECONTEXTFLAGS {
	union {
		struct {
			UINT SystemContext : 1;          /* 0x00000001 */
			UINT GdiContext : 1;             /* 0x00000002 since 1.1 */
			UINT VirtualAddressing : 1;      /* 0x00000004 since 2.0 */
			UINT SystemProtectedContext : 1; /* 0x00000008 since 2.0 */
			UINT HwQueueSupported : 1;       /* 0x00000010 since 2.2 */
			UINT Reserved : 27;              /* 0xFFFFFFE0 */
		};
		UINT Value;
	};
} DXGK_CREATECONTEXTFLAGS;

typedef struct _DXGK_CONTEXTINFO_CAPS {
	union {
		struct {
			UINT NoPatchingRequired : 1;     /* 0x00000001 */
			UINT DriverManagesResidency : 1; /* 0x00000002 */
			UINT UseIoMmu : 1;               /* 0x00000004 */
			UINT Reserved : 29;              /* 0xFFFFFFF8 */
		};
		UINT Value;
	};
} DXGK_CONTEXTINFO_CAPS;

/* DXGK_DEVICEINFO for one context. The context gets buffers of these sizes or more. */
typedef struct _DXGK_CONTEXTINFO {
	UINT DmaBufferSize;
	UINT DmaBufferSegmentSet;
	UINT DmaBufferPrivateDataSize;
	UINT AllocationListSize;
	UINT PatchLocationListSize;
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WIN7
	UINT Reserved;
#endif
#if DXGKDDI_INTERFACE_VERSION >= DXGKDDI_INTERFACE_VERSION_WDDM2_0
	DXGK_CONTEXTINFO_CAPS Caps;
	UINT PagingCompanionNodeId;
#endif
} DXGK_CONTEXTINFO;

typedef struct _DXGKARG_CREATECONTEXT {
	HANDLE hContext;
	UINT NodeOrdinal;
	UINT EngineAffinity;
	DXGK_CREATECONTEXTFLAGS Flags;
	VOID *pPrivateDriverData;
	UINT PrivateDriverDataSize;
	DXGK_CONTEXTINFO ContextInfo;
} DXGKARG_CREATECONTEXT;

/* A process with a GPU address space. Since 2.0. */
typedef struct _DXGK_CREATEPROCESSFLAGS {
	union {
		struct {
			UINT SystemProcess : 1; /* 0x00000001 */
			UINT GdiProcess : 1;    /* 0x00000002 */
			UINT Reserved : 30;     /* 0xFFFFFFFC */
		};
		UINT Value;
	};
} DXGK_CREATEPROCESSFLAGS;

typedef struct _DXGKARG_CREATEPROCESS {
	HANDLE hDxgkProcess;
	HANDLE hKmdProcess;
	DXGK_CREATEPROCESSFLAGS Flags;
	UINT NumPasid;
	ULONG *pPasid;
} DXGKARG_CREATEPROCESS;

typedef struct _DXGKARG_ESCAPE {
	HANDLE hDevice;
	D3DDDI_ESCAPEFLAGS Flags;
	VOID *pPrivateDriverData;
	UINT PrivateDriverDataSize;
	HANDLE hContext;
} DXGKARG_ESCAPE;

/* All bits are reserved. */
typedef struct _DXGK_CREATECPUEVENTFLAGS {
	union {
		struct {
			UINT Reserved : 32; /* 0xFFFFFFFF */
		};
		UINT Value;
	};
} DXGK_CREATECPUEVENTFLAGS;

/*
 * A CPU notification that the miniport signals with DxgkCbSignalEvent, naming hDxgCpuEvent.
 * hKmdCpuEvent: out. Since 3.0; members in the order of the page.
 */
typedef struct _DXGKARG_CREATECPUEVENT {
	HANDLE hKmdDevice;
	HANDLE hDxgCpuEvent;
	DXGK_CREATECPUEVENTFLAGS Flags;
	HANDLE hKmdCpuEvent;
} DXGKARG_CREATECPUEVENT;

#ifdef __cplusplus
}
#endif

#endif
