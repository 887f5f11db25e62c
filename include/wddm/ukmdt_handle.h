/* SPDX-License-Identifier: MIT */
/*
 * Handles, GPU addresses, identifiers and limits that every other DDI header uses.
 * Part of d3dukmdt.h. Source: the d3dukmdt.h pages; values in tests/abi/data.
 */
#ifndef WDDM_UKMDT_HANDLE_H
#define WDDM_UKMDT_HANDLE_H

#include "wddm_base.h"
#include "wddm_versions.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Names an object of the kernel side to user mode. 0 is no object. Not a pointer, not an
 * index. */
typedef UINT D3DKMT_HANDLE;

/* An address and a size in a process's GPU address space. Bytes. 0 is no address. */
typedef UINT64 D3DGPU_VIRTUAL_ADDRESS;
typedef UINT64 D3DGPU_SIZE_T;

/* Pointer-sized values of shared structures have 64 bits in 32-bit processes too. */
typedef UINT64 D3DKMT_ALIGN64;
typedef UINT64 D3DKMT_SIZE_T;
typedef UINT64 D3DKMT_UINT_PTR;
typedef UINT64 D3DKMT_ULONG_PTR;

/* Declares member `name` of pointer type `type` so that it always takes 8 aligned bytes. */
#ifndef D3DKMT_PTR
#define D3DKMT_PTR(type, name)       \
	union {                      \
		UINT64 name##_Align; \
		type name;           \
	}
#endif

typedef UINT D3DDDI_VIDEO_PRESENT_SOURCE_ID;
typedef UINT D3DDDI_VIDEO_PRESENT_TARGET_ID;

#define DXGK_MAX_PAGE_TABLE_LEVEL_COUNT                6
#define DXGK_MIN_PAGE_TABLE_LEVEL_COUNT                2
#define D3DDDI_MAX_WRITTEN_PRIMARIES                   16
#define D3DDDI_MAX_MPO_PRESENT_DIRTY_RECTS             4095
#define D3DDDI_ID_UNINITIALIZED                        (UINT)(~0)
#define D3DDDI_ID_NOTAPPLICABLE                        0
#define D3DDDI_ID_ANY                                  (UINT)(~1)
#define D3DDDI_ID_ALL                                  (UINT)(~2)
#define D3DKMDT_MAX_VIDPN_SOURCES_BITCOUNT             4
#define D3DKMDT_MAX_VIDPN_SOURCES                      16
#define D3DDDI_MAX_OBJECT_WAITED_ON                    32
#define D3DDDI_MAX_OBJECT_SIGNALED                     32
#define D3DDDI_SYNC_OBJECT_WAIT                        1
#define D3DDDI_SYNC_OBJECT_SIGNAL                      2
#define D3DDDI_MAX_BROADCAST_CONTEXT                   64
#define D3DDDI_ALLOCATIONPRIORITY_MINIMUM              0x28000000
#define D3DDDI_ALLOCATIONPRIORITY_LOW                  0x50000000
#define D3DDDI_ALLOCATIONPRIORITY_NORMAL               0x78000000
#define D3DDDI_ALLOCATIONPRIORITY_HIGH                 0xA0000000
#define D3DDDI_ALLOCATIONPRIORITY_MAXIMUM              0xC8000000
#define D3DKMT_CROSS_ADAPTER_RESOURCE_PITCH_ALIGNMENT  128
#define D3DKMT_CROSS_ADAPTER_RESOURCE_HEIGHT_ALIGNMENT 4
#define D3DGPU_NULL                                    0
/* Protection value of a GPU mapping, whose meaning the driver defines. */
#define D3DGPU_UNIQUE_DRIVER_PROTECTION                0x8000000000000000ULL

/* A location in a segment: id (0 = system memory) and offset in bytes. 16 bytes. */
typedef struct _D3DGPU_PHYSICAL_ADDRESS {
	UINT SegmentId;
	UINT Padding;
	UINT64 SegmentOffset;
} D3DGPU_PHYSICAL_ADDRESS;

#ifdef __cplusplus
}
#endif

#endif
