/* SPDX-License-Identifier: MIT */
/*
 * Pool, memory descriptor lists and physical mappings. Part of ntddk.h.
 */
#ifndef WDDM_NTDDK_MEMORY_H
#define WDDM_NTDDK_MEMORY_H

#include "ntddk_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * ---- pool: [D], paged pool [A]. A page or more is page-aligned, less is aligned to 16 bytes. ----
 */

typedef ULONG64 POOL_FLAGS;
#ifndef POOL_FLAG_NON_PAGED
#define POOL_FLAG_USE_QUOTA         0x0000000000000001ull
#define POOL_FLAG_UNINITIALIZED     0x0000000000000002ull
#define POOL_FLAG_SESSION           0x0000000000000004ull
#define POOL_FLAG_CACHE_ALIGNED     0x0000000000000008ull
#define POOL_FLAG_RAISE_ON_FAILURE  0x0000000000000020ull
#define POOL_FLAG_NON_PAGED         0x0000000000000040ull
#define POOL_FLAG_NON_PAGED_EXECUTE 0x0000000000000080ull
#define POOL_FLAG_PAGED             0x0000000000000100ull
#endif

typedef enum _POOL_TYPE {
	NonPagedPool = 0,
	NonPagedPoolExecute = 0,
	PagedPool = 1,
	NonPagedPoolCacheAligned = 4,
	PagedPoolCacheAligned = 5,
	NonPagedPoolNx = 512,
	NonPagedPoolNxCacheAligned = 516,
} POOL_TYPE;

/*
 * Zeroed, unless POOL_FLAG_UNINITIALIZED. NULL for a zero tag or without one flag of the three
 * kinds of pool.
 */
PVOID ExAllocatePool2(POOL_FLAGS Flags, SIZE_T NumberOfBytes, ULONG Tag);
PVOID ExAllocatePoolWithTag(POOL_TYPE PoolType, SIZE_T NumberOfBytes, ULONG Tag);
VOID ExFreePool(PVOID P);
VOID ExFreePoolWithTag(PVOID P, ULONG Tag);

/*
 * ---- memory descriptor lists: a buffer's pages. The page frame numbers follow the structure. ----
 */

typedef struct _MDL {
	struct _MDL *Next;
	SHORT Size;
	SHORT MdlFlags;
	PVOID Process;
	PVOID MappedSystemVa;
	PVOID StartVa; /* of the first page */
	ULONG ByteCount;
	ULONG ByteOffset; /* of the first byte in the first page */
} MDL;

#define MDL_MAPPED_TO_SYSTEM_VA     0x0001
#define MDL_PAGES_LOCKED            0x0002
#define MDL_SOURCE_IS_NONPAGED_POOL 0x0004
#define MDL_ALLOCATED_FIXED_SIZE    0x0008

#define MmGetMdlPfnArray(mdl)       ((PPFN_NUMBER)((mdl) + 1))
#define MmGetMdlByteCount(mdl)      ((mdl)->ByteCount)
#define MmGetMdlByteOffset(mdl)     ((mdl)->ByteOffset)
#define MmGetMdlVirtualAddress(mdl) ((PVOID)((PCHAR)((mdl)->StartVa) + (mdl)->ByteOffset))

typedef enum _MM_PAGE_PRIORITY {
	LowPagePriority = 0,
	NormalPagePriority = 16,
	HighPagePriority = 32,
} MM_PAGE_PRIORITY;
#define MdlMappingNoWrite   0x80000000
#define MdlMappingNoExecute 0x40000000

static inline SIZE_T MmSizeOfMdl(PVOID Base, SIZE_T Length)
{
	return sizeof(MDL) + sizeof(PFN_NUMBER) * ADDRESS_AND_SIZE_TO_SPAN_PAGES(Base, Length);
}

static inline VOID MmInitializeMdl(PMDL MemoryDescriptorList, PVOID BaseVa, SIZE_T Length)
{
	MemoryDescriptorList->Next = NULL;
	MemoryDescriptorList->Size = (SHORT)MmSizeOfMdl(BaseVa, Length);
	MemoryDescriptorList->MdlFlags = 0;
	MemoryDescriptorList->Process = NULL;
	MemoryDescriptorList->MappedSystemVa = NULL;
	MemoryDescriptorList->StartVa = PAGE_ALIGN(BaseVa);
	MemoryDescriptorList->ByteCount = (ULONG)Length;
	MemoryDescriptorList->ByteOffset = BYTE_OFFSET(BaseVa);
}

/*
 * [D] Irp must be NULL. The MDL describes the buffer; the caller fills in its page frame numbers.
 */
PMDL IoAllocateMdl(PVOID VirtualAddress, ULONG Length, BOOLEAN SecondaryBuffer, BOOLEAN ChargeQuota,
		   PIRP Irp);
VOID IoFreeMdl(PMDL Mdl);

/*
 * [D] Pages keep the addresses that the platform gave them. NULL: they are not adjacent there.
 * AccessMode must be KernelMode.
 */
PVOID MmMapLockedPagesSpecifyCache(PMDL MemoryDescriptorList, KPROCESSOR_MODE AccessMode,
				   MEMORY_CACHING_TYPE CacheType, PVOID RequestedAddress,
				   ULONG BugCheckOnFailure, ULONG Priority);
VOID MmUnmapLockedPages(PVOID BaseAddress, PMDL MemoryDescriptorList);

static inline PVOID MmGetSystemAddressForMdlSafe(PMDL Mdl, ULONG Priority)
{
	if (Mdl->MdlFlags & (MDL_MAPPED_TO_SYSTEM_VA | MDL_SOURCE_IS_NONPAGED_POOL))
		return Mdl->MappedSystemVa;
	return MmMapLockedPagesSpecifyCache(Mdl, KernelMode, MmCached, NULL, FALSE, Priority);
}

/* ---- physical addresses: BARs and system pages ---- */

#ifndef PAGE_READONLY
#define PAGE_READONLY 0x02
#endif
#ifndef PAGE_READWRITE
#define PAGE_READWRITE 0x04
#endif
#ifndef PAGE_NOCACHE
#define PAGE_NOCACHE 0x200
#endif
#ifndef PAGE_WRITECOMBINE
#define PAGE_WRITECOMBINE 0x400
#endif

/* [D] NULL: the range is not inside one physical range of the platform. */
PVOID MmMapIoSpace(PHYSICAL_ADDRESS PhysicalAddress, SIZE_T NumberOfBytes,
		   MEMORY_CACHING_TYPE CacheType);
PVOID MmMapIoSpaceEx(PHYSICAL_ADDRESS PhysicalAddress, SIZE_T NumberOfBytes, ULONG Protect);
VOID MmUnmapIoSpace(PVOID BaseAddress, SIZE_T NumberOfBytes);
PVOID MmGetVirtualForPhysical(PHYSICAL_ADDRESS PhysicalAddress); /* [any] NULL: unknown */
PHYSICAL_ADDRESS MmGetPhysicalAddress(PVOID BaseAddress);        /* [any] 0: unknown */

#ifdef __cplusplus
}
#endif

#endif
