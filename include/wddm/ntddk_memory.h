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
#define MDL_PARTIAL                 0x0010
#define MDL_PARTIAL_HAS_BEEN_MAPPED 0x0020
#define MDL_IO_PAGE_READ            0x0040
#define MDL_WRITE_OPERATION         0x0080
#define MDL_PARENT_MAPPED_SYSTEM_VA 0x0100
#define MDL_FREE_EXTRA_PTES         0x0200
#define MDL_IO_SPACE                0x0800
#define MDL_NETWORK_HEADER          0x1000
#define MDL_MAPPING_CAN_FAIL        0x2000

#define MmGetMdlPfnArray(mdl)       ((PPFN_NUMBER)((mdl) + 1))
#define MmGetMdlByteCount(mdl)      ((mdl)->ByteCount)
#define MmGetMdlByteOffset(mdl)     ((mdl)->ByteOffset)
#define MmGetMdlVirtualAddress(mdl) ((PVOID)((ULONG_PTR)((mdl)->StartVa) + (mdl)->ByteOffset))

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
 * [D] The MDL describes the buffer and has no pages: the driver gets them by one of the services
 * below or fills in page frame numbers. The MDL becomes that of Irp, or is added to its chain.
 */
PMDL IoAllocateMdl(PVOID VirtualAddress, ULONG Length, BOOLEAN SecondaryBuffer, BOOLEAN ChargeQuota,
		   PIRP Irp);
VOID IoFreeMdl(PMDL Mdl);

typedef enum _LOCK_OPERATION { IoReadAccess, IoWriteAccess, IoModifyAccess } LOCK_OPERATION;

/* [D] Of a buffer in nonpaged pool or contiguous memory, which has a mapping. */
VOID MmBuildMdlForNonPagedPool(PMDL MemoryDescriptorList);
/*
 * [D] Windows raises an exception for memory that cannot be accessed; here that is a finding and
 * nothing is locked (MDL_PAGES_LOCKED stays clear).
 */
VOID MmProbeAndLockPages(PMDL MemoryDescriptorList, KPROCESSOR_MODE AccessMode,
			 LOCK_OPERATION Operation);
VOID MmUnlockPages(PMDL MemoryDescriptorList);
/* [D] Length 0: to the end of the source. A mapping of the source is shared. */
VOID IoBuildPartialMdl(PMDL SourceMdl, PMDL TargetMdl, PVOID VirtualAddress, ULONG Length);

#define MM_DONT_ZERO_ALLOCATION               0x00000001
#define MM_ALLOCATE_FROM_LOCAL_NODE_ONLY      0x00000002
#define MM_ALLOCATE_FULLY_REQUIRED            0x00000004
#define MM_ALLOCATE_NO_WAIT                   0x00000008
#define MM_ALLOCATE_PREFER_CONTIGUOUS         0x00000010
#define MM_ALLOCATE_REQUIRE_CONTIGUOUS_CHUNKS 0x00000020
#define MM_ALLOCATE_FAST_LARGE_PAGES          0x00000040
#define MM_ALLOCATE_AND_HOT_REMOVE            0x00000100

/*
 * [D] All of the pages or NULL. They are zeroed and, which Windows does not promise, adjacent. Free
 * the pages with MmFreePagesFromMdl, then the MDL with ExFreePool.
 */
PMDL MmAllocatePagesForMdl(PHYSICAL_ADDRESS LowAddress, PHYSICAL_ADDRESS HighAddress,
			   PHYSICAL_ADDRESS SkipBytes, SIZE_T TotalBytes);
PMDL MmAllocatePagesForMdlEx(PHYSICAL_ADDRESS LowAddress, PHYSICAL_ADDRESS HighAddress,
			     PHYSICAL_ADDRESS SkipBytes, SIZE_T TotalBytes,
			     MEMORY_CACHING_TYPE CacheType, ULONG Flags);
VOID MmFreePagesFromMdl(PMDL MemoryDescriptorList);

/*
 * [D] Pages keep the addresses that the platform gave them. NULL: they are not adjacent there.
 * AccessMode must be KernelMode.
 */
PVOID MmMapLockedPagesSpecifyCache(PMDL MemoryDescriptorList, KPROCESSOR_MODE AccessMode,
				   MEMORY_CACHING_TYPE CacheType, PVOID RequestedAddress,
				   ULONG BugCheckOnFailure, ULONG Priority);
VOID MmUnmapLockedPages(PVOID BaseAddress, PMDL MemoryDescriptorList);

static inline PVOID MmMapLockedPages(PMDL MemoryDescriptorList, KPROCESSOR_MODE AccessMode)
{
	return MmMapLockedPagesSpecifyCache(MemoryDescriptorList, AccessMode, MmCached, NULL, TRUE,
					    HighPagePriority);
}

static inline PVOID MmGetSystemAddressForMdlSafe(PMDL Mdl, ULONG Priority)
{
	if (Mdl->MdlFlags & (MDL_MAPPED_TO_SYSTEM_VA | MDL_SOURCE_IS_NONPAGED_POOL))
		return Mdl->MappedSystemVa;
	return MmMapLockedPagesSpecifyCache(Mdl, KernelMode, MmCached, NULL, FALSE, Priority);
}

static inline PVOID MmGetSystemAddressForMdl(PMDL Mdl)
{
	return MmGetSystemAddressForMdlSafe(Mdl, HighPagePriority);
}

/* Ends the mapping that a partial MDL does not share with its source. */
static inline VOID MmPrepareMdlForReuse(PMDL Mdl)
{
	if (Mdl->MdlFlags & MDL_PARTIAL_HAS_BEEN_MAPPED)
		MmUnmapLockedPages(Mdl->MappedSystemVa, Mdl);
}

/* All memory is coherent. */
#ifndef KeFlushIoBuffers
#define KeFlushIoBuffers(mdl, read, dma) ((void)(mdl), (void)(read), (void)(dma))
#endif

BOOLEAN KeInvalidateAllCaches(VOID); /* [any] */

/*
 * ---- contiguous memory [D]: one block with adjacent page frames, page-aligned and zeroed ----
 *
 * The block lies between the lowest and the highest acceptable physical address and crosses no
 * multiple of the boundary (a power of 2; 0: none). NULL: there is no such address. Cache types and
 * nodes make no difference.
 */

typedef ULONG NODE_REQUIREMENT;
#define MM_ANY_NODE_OK 0x80000000

PVOID MmAllocateContiguousMemory(SIZE_T NumberOfBytes, PHYSICAL_ADDRESS HighestAcceptableAddress);
PVOID MmAllocateContiguousMemorySpecifyCache(SIZE_T NumberOfBytes,
					     PHYSICAL_ADDRESS LowestAcceptableAddress,
					     PHYSICAL_ADDRESS HighestAcceptableAddress,
					     PHYSICAL_ADDRESS BoundaryAddressMultiple,
					     MEMORY_CACHING_TYPE CacheType);
PVOID MmAllocateContiguousMemorySpecifyCacheNode(SIZE_T NumberOfBytes,
						 PHYSICAL_ADDRESS LowestAcceptableAddress,
						 PHYSICAL_ADDRESS HighestAcceptableAddress,
						 PHYSICAL_ADDRESS BoundaryAddressMultiple,
						 MEMORY_CACHING_TYPE CacheType,
						 NODE_REQUIREMENT PreferredNode);
PVOID MmAllocateContiguousNodeMemory(SIZE_T NumberOfBytes, PHYSICAL_ADDRESS LowestAcceptableAddress,
				     PHYSICAL_ADDRESS HighestAcceptableAddress,
				     PHYSICAL_ADDRESS BoundaryAddressMultiple, ULONG Protect,
				     NODE_REQUIREMENT PreferredNode);
VOID MmFreeContiguousMemory(PVOID BaseAddress);
VOID MmFreeContiguousMemorySpecifyCache(PVOID BaseAddress, SIZE_T NumberOfBytes,
					MEMORY_CACHING_TYPE CacheType);
PVOID MmAllocateNonCachedMemory(SIZE_T NumberOfBytes);               /* [A] */
VOID MmFreeNonCachedMemory(PVOID BaseAddress, SIZE_T NumberOfBytes); /* [A] */

/* [D] Whether the page can be read and written; also FALSE for a page that can only be read. */
BOOLEAN MmIsAddressValid(PVOID VirtualAddress);

/* ---- physical addresses: BARs and system pages ---- */

#ifndef PAGE_NOACCESS
#define PAGE_NOACCESS 0x01
#endif
#ifndef PAGE_EXECUTE_READWRITE
#define PAGE_EXECUTE_READWRITE 0x40
#endif
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
