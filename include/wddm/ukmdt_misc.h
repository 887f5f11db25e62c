/* SPDX-License-Identifier: MIT */
/*
 * Registry queries and escapes that kernel and user mode share. Part of d3dukmdt.h.
 * Source: the pages D3DDDI_QUERYREGISTRY_INFO and D3DDDI_ESCAPEFLAGS.
 */
#ifndef WDDM_UKMDT_MISC_H
#define WDDM_UKMDT_MISC_H

#include "ukmdt_handle.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct _D3DDDI_QUERYREGISTRY_FLAGS {
	union {
		struct {
			UINT TranslatePath : 1; /* 0x00000001 */
			UINT MutableValue : 1;  /* 0x00000002 */
			UINT Reserved : 30;     /* 0xFFFFFFFC */
		};
		UINT Value;
	};
} D3DDDI_QUERYREGISTRY_FLAGS;

typedef enum _D3DDDI_QUERYREGISTRY_TYPE {
	D3DDDI_QUERYREGISTRY_SERVICEKEY = 0,
	D3DDDI_QUERYREGISTRY_ADAPTERKEY = 1,
	D3DDDI_QUERYREGISTRY_DRIVERSTOREPATH = 2,
	D3DDDI_QUERYREGISTRY_DRIVERIMAGEPATH = 3,
	D3DDDI_QUERYREGISTRY_MAX = 4,
} D3DDDI_QUERYREGISTRY_TYPE;

typedef enum _D3DDDI_QUERYREGISTRY_STATUS {
	D3DDDI_QUERYREGISTRY_STATUS_SUCCESS = 0,
	D3DDDI_QUERYREGISTRY_STATUS_BUFFER_OVERFLOW = 1,
	D3DDDI_QUERYREGISTRY_STATUS_FAIL = 2,
	D3DDDI_QUERYREGISTRY_STATUS_MAX = 3,
} D3DDDI_QUERYREGISTRY_STATUS;

/* Input and output of KMTQAITYPE_QUERYREGISTRY in one buffer. ValueName is at most MAX_PATH
 * characters. Out: Status, OutputValueSize in bytes, and the value after the fixed part of the
 * structure. */
typedef struct _D3DDDI_QUERYREGISTRY_INFO {
	D3DDDI_QUERYREGISTRY_TYPE QueryType;
	D3DDDI_QUERYREGISTRY_FLAGS QueryFlags;
	WCHAR ValueName[260];
	ULONG ValueType;
	ULONG PhysicalAdapterIndex;
	ULONG OutputValueSize;
	D3DDDI_QUERYREGISTRY_STATUS Status;
	union {
		DWORD OutputDword;
		UINT64 OutputQword;
		WCHAR OutputString[1];
		BYTE OutputBinary[1];
	};
} D3DDDI_QUERYREGISTRY_INFO;

typedef enum _D3DDDI_DRIVERESCAPETYPE {
	D3DDDI_DRIVERESCAPETYPE_TRANSLATEALLOCATIONHANDLE = 0,
	D3DDDI_DRIVERESCAPETYPE_TRANSLATERESOURCEHANDLE = 1,
	D3DDDI_DRIVERESCAPETYPE_CPUEVENTUSAGE = 2,
	D3DDDI_DRIVERESCAPETYPE_MAX = 3,
} D3DDDI_DRIVERESCAPETYPE;

typedef struct _D3DDDI_DRIVERESCAPE_CPUEVENTUSAGE {
	D3DDDI_DRIVERESCAPETYPE EscapeType;
	D3DKMT_HANDLE hSyncObject;
	UINT64 hKmdCpuEvent;
	UINT Usage[8];
} D3DDDI_DRIVERESCAPE_CPUEVENTUSAGE;

typedef struct _D3DDDI_DRIVERESCAPE_TRANSLATEALLOCATIONEHANDLE {
	D3DDDI_DRIVERESCAPETYPE EscapeType;
	D3DKMT_HANDLE hAllocation;
} D3DDDI_DRIVERESCAPE_TRANSLATEALLOCATIONEHANDLE;

typedef struct _D3DDDI_DRIVERESCAPE_TRANSLATERESOURCEHANDLE {
	D3DDDI_DRIVERESCAPETYPE EscapeType;
	D3DKMT_HANDLE hResource;
} D3DDDI_DRIVERESCAPE_TRANSLATERESOURCEHANDLE;

typedef struct _D3DDDI_ESCAPEFLAGS {
	union {
		struct {
			UINT HardwareAccess : 1;           /* 0x00000001 */
			UINT DeviceStatusQuery : 1;        /* 0x00000002 */
			UINT ChangeFrameLatency : 1;       /* 0x00000004 */
			UINT NoAdapterSynchronization : 1; /* 0x00000008 */
			UINT Reserved : 1;                 /* 0x00000010 */
			UINT VirtualMachineData : 1;       /* 0x00000020 */
			UINT DriverKnownEscape : 1;        /* 0x00000040 */
			UINT DriverCommonEscape : 1;       /* 0x00000080 */
			UINT Reserved2 : 24;               /* 0xFFFFFF00 */
		};
		UINT Value;
	};
} D3DDDI_ESCAPEFLAGS;

typedef struct _D3DDDI_GETRESOURCEPRESENTPRIVATEDRIVERDATA {
	D3DKMT_HANDLE hResource;
	UINT PrivateDriverDataSize;
	D3DKMT_PTR(PVOID, pPrivateDriverData);
} D3DDDI_GETRESOURCEPRESENTPRIVATEDRIVERDATA;

#ifdef __cplusplus
}
#endif

#endif
