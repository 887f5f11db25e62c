/* SPDX-License-Identifier: MIT */
/*
 * Residency, budgets and GPU virtual addresses of D3DKMT clients (2.0 and later). Part of
 * d3dkmthk.h. Sizes and budgets in bytes. Source: the D3DKMT_* pages of d3dkmthk.h; values in
 * tests/abi/data.
 */
#ifndef WDDM_KMTHK_RESIDENCY_H
#define WDDM_KMTHK_RESIDENCY_H

#include "kmthk_alloc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* LOCAL is the GPU's own memory, NON_LOCAL system memory. */
typedef enum _D3DKMT_MEMORY_SEGMENT_GROUP {
	D3DKMT_MEMORY_SEGMENT_GROUP_LOCAL = 0,
	D3DKMT_MEMORY_SEGMENT_GROUP_NON_LOCAL = 1,
} D3DKMT_MEMORY_SEGMENT_GROUP;

/* Removes one residency reference per entry. Out: NumBytesToTrim, the bytes by which the process
 * is above its budget. */
typedef struct _D3DKMT_EVICT {
	D3DKMT_HANDLE hDevice;
	UINT NumAllocations;
	D3DKMT_PTR(const D3DKMT_HANDLE *, AllocationList);
	D3DDDI_EVICT_FLAGS Flags;
	UINT64 NumBytesToTrim;
} D3DKMT_EVICT;

/* Out: the queue, its monitored fence, and the address at which the fence value can be read. */
typedef struct _D3DKMT_CREATEPAGINGQUEUE {
	D3DKMT_HANDLE hDevice;
	D3DDDI_PAGINGQUEUE_PRIORITY Priority;
	D3DKMT_HANDLE hPagingQueue;
	D3DKMT_HANDLE hSyncObject;
	D3DKMT_PTR(VOID *, FenceValueCPUVirtualAddress);
	UINT PhysicalAdapterIndex;
} D3DKMT_CREATEPAGINGQUEUE;

/* A whole mapping or reservation; bytes. */
typedef struct _D3DKMT_FREEGPUVIRTUALADDRESS {
	D3DKMT_HANDLE hAdapter;
	D3DGPU_VIRTUAL_ADDRESS BaseAddress;
	D3DGPU_SIZE_T Size;
} D3DKMT_FREEGPUVIRTUALADDRESS;

/* Queued on the context after earlier work; waits for hFenceObject to reach FenceValue unless
 * DoNotWait, then signals FenceValue + 1. */
typedef struct _D3DKMT_UPDATEGPUVIRTUALADDRESS {
	D3DKMT_HANDLE hDevice;
	D3DKMT_HANDLE hContext;
	D3DKMT_HANDLE hFenceObject;
	UINT NumOperations;
	D3DKMT_PTR(D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION *, Operations);
	D3DKMT_SIZE_T Reserved0;
	UINT64 Reserved1;
	UINT64 FenceValue;
	union {
		struct {
			UINT DoNotWait : 1; /* 0x00000001 */
			UINT Reserved : 31; /* 0xFFFFFFFE */
		};
		UINT Value;
	} Flags;
} D3DKMT_UPDATEGPUVIRTUALADDRESS;

/* hProcess 0 is the caller. Out: four sizes in bytes. CurrentUsage above Budget: the
 * process should evict. */
typedef struct _D3DKMT_QUERYVIDEOMEMORYINFO {
	D3DKMT_PTR(HANDLE, hProcess);
	D3DKMT_HANDLE hAdapter;
	D3DKMT_MEMORY_SEGMENT_GROUP MemorySegmentGroup;
	UINT64 Budget;
	UINT64 CurrentUsage;
	UINT64 CurrentReservation;
	UINT64 AvailableForReservation;
	UINT PhysicalAdapterIndex;
} D3DKMT_QUERYVIDEOMEMORYINFO;

/* Bytes that the process reserves, at most the AvailableForReservation of
 * D3DKMT_QUERYVIDEOMEMORYINFO. */
typedef struct _D3DKMT_CHANGEVIDEOMMEMORYRESERVATION {
	D3DKMT_PTR(HANDLE, hProcess);
	D3DKMT_HANDLE hAdapter;
	D3DKMT_MEMORY_SEGMENT_GROUP MemorySegmentGroup;
	UINT64 Reservation;
	UINT PhysicalAdapterIndex;
} D3DKMT_CHANGEVIDEOMMEMORYRESERVATION;

typedef struct _D3DKMT_FLUSHHEAPTRANSITIONS {
	D3DKMT_HANDLE hAdapter;
} D3DKMT_FLUSHHEAPTRANSITIONS;

typedef union _D3DKMT_TRIMPROCESSCOMMITMENT_FLAGS {
	struct {
		UINT Lazy : 1;           /* 0x00000001 */
		UINT OnlyRepurposed : 1; /* 0x00000002 */
		UINT Reserved : 30;      /* 0xFFFFFFFC */
	};
	UINT Value;
} D3DKMT_TRIMPROCESSCOMMITMENT_FLAGS;

typedef struct _D3DKMT_TRIMPROCESSCOMMITMENT {
	ULONG cbSize;
	D3DKMT_PTR(HANDLE, hProcess);
	D3DKMT_TRIMPROCESSCOMMITMENT_FLAGS Flags;
	UINT64 DecommitRequested;
	UINT64 NumBytesDecommitted;
} D3DKMT_TRIMPROCESSCOMMITMENT;

typedef struct _D3DKMT_QUERYPROCESSOFFERINFO {
	ULONG cbSize;
	D3DKMT_PTR(HANDLE, hProcess);
	UINT64 DecommitUniqueness;
	UINT64 DecommittableBytes;
} D3DKMT_QUERYPROCESSOFFERINFO;

/* The reference spells the structure with a doubled M. */
typedef D3DKMT_CHANGEVIDEOMMEMORYRESERVATION D3DKMT_CHANGEVIDEOMEMORYRESERVATION;

typedef struct _D3DKMT_TRIMNOTIFICATION {
	D3DKMT_PTR(VOID *, Context);
	D3DDDI_TRIMRESIDENCYSET_FLAGS Flags;
	UINT64 NumBytesToTrim;
} D3DKMT_TRIMNOTIFICATION;

/* Called on a thread of the library when the process should evict. */
typedef VOID(APIENTRY *PFND3DKMT_TRIMNOTIFICATIONCALLBACK)(D3DKMT_TRIMNOTIFICATION *pData);

typedef struct _D3DKMT_BUDGETCHANGENOTIFICATION {
	D3DKMT_PTR(VOID *, Context);
	UINT64 Budget;
} D3DKMT_BUDGETCHANGENOTIFICATION;

typedef VOID(APIENTRY *PFND3DKMT_BUDGETCHANGENOTIFICATIONCALLBACK)(
	D3DKMT_BUDGETCHANGENOTIFICATION *pData);

typedef struct _D3DKMT_REGISTERTRIMNOTIFICATION {
	LUID AdapterLuid;
	D3DKMT_HANDLE hDevice;
	PFND3DKMT_TRIMNOTIFICATIONCALLBACK Callback;
	D3DKMT_PTR(VOID *, Context);
	D3DKMT_PTR(VOID *, Handle);
} D3DKMT_REGISTERTRIMNOTIFICATION;

typedef struct _D3DKMT_UNREGISTERTRIMNOTIFICATION {
	D3DKMT_PTR(VOID *, Handle);
	D3DKMT_PTR(PFND3DKMT_TRIMNOTIFICATIONCALLBACK, Callback);
} D3DKMT_UNREGISTERTRIMNOTIFICATION;

typedef struct _D3DKMT_REGISTERBUDGETCHANGENOTIFICATION {
	D3DKMT_HANDLE hDevice;
	D3DKMT_PTR(PFND3DKMT_BUDGETCHANGENOTIFICATIONCALLBACK, Callback);
	D3DKMT_PTR(VOID *, Context);
	D3DKMT_PTR(VOID *, Handle);
} D3DKMT_REGISTERBUDGETCHANGENOTIFICATION;

typedef union _D3DKMT_UNREGISTERBUDGETCHANGENOTIFICATION {
	UINT64 Handle_Align;
	VOID *Handle;
} D3DKMT_UNREGISTERBUDGETCHANGENOTIFICATION;

#ifdef __cplusplus
}
#endif

#endif
