/* SPDX-License-Identifier: MIT */
/*
 * The pages of a driver's MDLs: allocated for it, locked, of nonpaged pool, or of a part of another
 * MDL. A page that has no physical address gets one for as long as it is locked. The MDL itself
 * says what it holds, by its flags.
 */
#include "nt/nt_internal.h"

static uint64_t page_count(const MDL *mdl)
{
	return ADDRESS_AND_SIZE_TO_SPAN_PAGES((ULONG_PTR)mdl->ByteOffset, mdl->ByteCount);
}

static void set_frames(MDL *mdl, uint64_t physical)
{
	PFN_NUMBER *frames = MmGetMdlPfnArray(mdl);
	uint64_t pages = page_count(mdl);

	for (uint64_t i = 0; i < pages; i++)
		frames[i] = (physical >> PAGE_SHIFT) + i;
}

/* ---- pages allocated for an MDL ---- */

PMDL MmAllocatePagesForMdlEx(PHYSICAL_ADDRESS LowAddress, PHYSICAL_ADDRESS HighAddress,
			     PHYSICAL_ADDRESS SkipBytes, SIZE_T TotalBytes,
			     MEMORY_CACHING_TYPE CacheType, ULONG Flags)
{
	struct nt_frames_limits limits = {.lowest = (uint64_t)LowAddress.QuadPart,
					  .highest = (uint64_t)HighAddress.QuadPart};
	SIZE_T size_bytes = ROUND_TO_PAGES(TotalBytes);
	struct vmm_nt *nt = vmm_nt_current();
	uint64_t physical;
	char *pages;
	MDL *mdl;

	(void)CacheType, (void)Flags;
	nt_limit(nt, "MmAllocatePagesForMdl", DISPATCH_LEVEL);
	if (!size_bytes || size_bytes > UINT32_MAX || limits.lowest > limits.highest) {
		nt_violation(nt, "NT-12", "MmAllocatePagesForMdl",
			     "%zu bytes between 0x%llx and 0x%llx", TotalBytes,
			     (unsigned long long)limits.lowest, (unsigned long long)limits.highest);
		return NULL;
	}
	pages = nt_frames_allocate(nt, NT_FRAMES_OF_MDL, size_bytes, &limits, &physical);
	/* Each further range of the same length begins SkipBytes later. */
	for (int skips = 0; !pages && SkipBytes.QuadPart > 0 && skips < 256; skips++) {
		if (vmm_add_overflows(limits.highest, (uint64_t)SkipBytes.QuadPart,
				      &limits.highest))
			break;
		limits.lowest += (uint64_t)SkipBytes.QuadPart;
		pages = nt_frames_allocate(nt, NT_FRAMES_OF_MDL, size_bytes, &limits, &physical);
	}
	if (!pages)
		return NULL;
	/* The driver frees the MDL with ExFreePool. */
	mdl = nt_mdl_allocate(NULL, (ULONG)size_bytes);
	if (!mdl) {
		nt_frames_free(nt, "MmAllocatePagesForMdl", NT_FRAMES_OF_MDL, pages, &physical);
		return NULL;
	}
	mdl->MdlFlags |= MDL_PAGES_LOCKED;
	set_frames(mdl, physical);
	return mdl;
}

PMDL MmAllocatePagesForMdl(PHYSICAL_ADDRESS LowAddress, PHYSICAL_ADDRESS HighAddress,
			   PHYSICAL_ADDRESS SkipBytes, SIZE_T TotalBytes)
{
	return MmAllocatePagesForMdlEx(LowAddress, HighAddress, SkipBytes, TotalBytes, MmCached, 0);
}

VOID MmFreePagesFromMdl(PMDL MemoryDescriptorList)
{
	MDL *mdl = MemoryDescriptorList;
	struct vmm_nt *nt = vmm_nt_current();
	uint64_t size_bytes;
	const char *pages;

	nt_limit(nt, "MmFreePagesFromMdl", DISPATCH_LEVEL);
	pages = vmm_nt_phys_lookup(nt, MmGetMdlPfnArray(mdl)[0] << PAGE_SHIFT, PAGE_SIZE);
	if (!(mdl->MdlFlags & MDL_PAGES_LOCKED) || !pages ||
	    !nt_frames_free(nt, "MmFreePagesFromMdl", NT_FRAMES_OF_MDL, pages, &size_bytes)) {
		nt_violation(nt, "NT-12", "MmFreePagesFromMdl",
			     "an MDL of %u bytes has no pages of MmAllocatePagesForMdl, or they "
			     "were freed before",
			     mdl->ByteCount);
		return;
	}
	mdl->MdlFlags &= (SHORT) ~(MDL_PAGES_LOCKED | MDL_MAPPED_TO_SYSTEM_VA);
	mdl->MappedSystemVa = NULL;
}

/* ---- pages of memory that exists ---- */

VOID MmBuildMdlForNonPagedPool(PMDL MemoryDescriptorList)
{
	MDL *mdl = MemoryDescriptorList;
	char *va = MmGetMdlVirtualAddress(mdl);
	struct vmm_nt *nt = vmm_nt_current();
	uint64_t physical;

	nt_limit(nt, "MmBuildMdlForNonPagedPool", DISPATCH_LEVEL);
	if (mdl->MdlFlags & (MDL_PAGES_LOCKED | MDL_SOURCE_IS_NONPAGED_POOL)) {
		nt_violation(nt, "NT-12", "MmBuildMdlForNonPagedPool",
			     "the MDL describes locked pages already (flags 0x%x)",
			     (unsigned)mdl->MdlFlags);
		return;
	}
	if (!vmm_nt_is_kernel_range(nt, va, mdl->ByteCount) || nt_pool_is_paged(nt, va) ||
	    !vmm_nt_phys_of(nt, va, &physical)) {
		nt_violation(nt, "NT-12", "MmBuildMdlForNonPagedPool",
			     "%u bytes are not in one block of nonpaged memory", mdl->ByteCount);
		return;
	}
	set_frames(mdl, physical);
	mdl->MdlFlags |= MDL_SOURCE_IS_NONPAGED_POOL;
	mdl->MappedSystemVa = va;
}

/* Without a block that takes the exception, the driver goes on with the MDL not locked. */
static void raise_if_taken(NTSTATUS status)
{
	if (nt_try_is_active())
		ExRaiseStatus(status);
}

VOID MmProbeAndLockPages(PMDL MemoryDescriptorList, KPROCESSOR_MODE AccessMode,
			 LOCK_OPERATION Operation)
{
	MDL *mdl = MemoryDescriptorList;
	const struct nt_frames_limits anywhere = {.highest = UINT64_MAX};
	struct nt_phys_range range = {.locked = true, .owner = mdl};
	struct vmm_nt *nt = vmm_nt_current();

	(void)AccessMode, (void)Operation;
	nt_limit(nt, "MmProbeAndLockPages", DISPATCH_LEVEL);
	if (mdl->MdlFlags & (MDL_PAGES_LOCKED | MDL_SOURCE_IS_NONPAGED_POOL)) {
		nt_violation(nt, "NT-12", "MmProbeAndLockPages",
			     "the MDL describes locked pages already (flags 0x%x)",
			     (unsigned)mdl->MdlFlags);
		return;
	}
	range.pointer = mdl->StartVa;
	range.size_bytes = page_count(mdl) << PAGE_SHIFT;
	range.exact = MmGetMdlVirtualAddress(mdl);
	range.exact_bytes = mdl->ByteCount;
	if (!mdl->ByteCount || !vmm_os_probe_writable(range.pointer, range.size_bytes)) {
		nt_violation(nt, "NT-12", "MmProbeAndLockPages",
			     "%u bytes are not in memory that can be read and written; nothing is "
			     "locked",
			     mdl->ByteCount);
		raise_if_taken(STATUS_ACCESS_VIOLATION);
		return;
	}
	if (!vmm_ok(nt_frames_add_range(nt, &anywhere, &range))) {
		nt_violation(nt, "NT-12", "MmProbeAndLockPages",
			     "no memory or no addresses for %u bytes; nothing is locked",
			     mdl->ByteCount);
		raise_if_taken(STATUS_INSUFFICIENT_RESOURCES);
		return;
	}
	set_frames(mdl, range.physical);
	mdl->MdlFlags |= MDL_PAGES_LOCKED | MDL_WRITE_OPERATION;
}

VOID MmUnlockPages(PMDL MemoryDescriptorList)
{
	MDL *mdl = MemoryDescriptorList;
	struct vmm_nt *nt = vmm_nt_current();

	nt_limit(nt, "MmUnlockPages", DISPATCH_LEVEL);
	if (!(mdl->MdlFlags & MDL_PAGES_LOCKED) ||
	    !nt_phys_remove_owned(nt, MmGetMdlPfnArray(mdl)[0] << PAGE_SHIFT, mdl)) {
		nt_violation(nt, "NT-12", "MmUnlockPages",
			     "an MDL of %u bytes is not locked by MmProbeAndLockPages (flags 0x%x)",
			     mdl->ByteCount, (unsigned)mdl->MdlFlags);
		return;
	}
	mdl->MdlFlags &=
		(SHORT) ~(MDL_PAGES_LOCKED | MDL_MAPPED_TO_SYSTEM_VA | MDL_WRITE_OPERATION);
	mdl->MappedSystemVa = NULL;
}

/* The pages that an MDL has space for. Size overflows for a large one; ByteCount is what it has. */
static uint64_t capacity(const MDL *mdl)
{
	uint64_t by_size = ((uint64_t)(USHORT)mdl->Size - sizeof(MDL)) / sizeof(PFN_NUMBER);
	uint64_t by_count = page_count(mdl);

	return by_size > by_count ? by_size : by_count;
}

VOID IoBuildPartialMdl(PMDL SourceMdl, PMDL TargetMdl, PVOID VirtualAddress, ULONG Length)
{
	uintptr_t source = (uintptr_t)MmGetMdlVirtualAddress(SourceMdl);
	uintptr_t offset = (uintptr_t)VirtualAddress - source;
	struct vmm_nt *nt = vmm_nt_current();
	uint64_t first, pages, space;

	nt_limit(nt, "IoBuildPartialMdl", DISPATCH_LEVEL);
	if (offset < SourceMdl->ByteCount && !Length)
		Length = SourceMdl->ByteCount - (ULONG)offset; /* the rest */
	pages = ADDRESS_AND_SIZE_TO_SPAN_PAGES(VirtualAddress, Length);
	space = capacity(TargetMdl);
	if (offset >= SourceMdl->ByteCount || Length > SourceMdl->ByteCount - offset ||
	    pages > space || !(SourceMdl->MdlFlags & MDL_ANY_PAGES)) {
		nt_violation(nt, "NT-12", "IoBuildPartialMdl",
			     "%u bytes at offset 0x%llx of an MDL of %u bytes%s; the target holds "
			     "%llu pages",
			     Length, (unsigned long long)offset, SourceMdl->ByteCount,
			     SourceMdl->MdlFlags & MDL_ANY_PAGES ? "" : " without pages",
			     (unsigned long long)space);
		return;
	}
	first = (SourceMdl->ByteOffset + offset) >> PAGE_SHIFT;
	TargetMdl->StartVa = PAGE_ALIGN(VirtualAddress);
	TargetMdl->ByteOffset = BYTE_OFFSET(VirtualAddress);
	TargetMdl->ByteCount = Length;
	TargetMdl->Process = SourceMdl->Process;
	TargetMdl->MappedSystemVa = NULL;
	TargetMdl->MdlFlags = MDL_PARTIAL | (SourceMdl->MdlFlags & MDL_SHARED_BY_PART);
	if (TargetMdl->MdlFlags & (MDL_MAPPED_TO_SYSTEM_VA | MDL_SOURCE_IS_NONPAGED_POOL))
		TargetMdl->MappedSystemVa = (char *)SourceMdl->MappedSystemVa + offset;
	for (uint64_t i = 0; i < pages; i++)
		MmGetMdlPfnArray(TargetMdl)[i] = MmGetMdlPfnArray(SourceMdl)[first + i];
}

BOOLEAN MmIsAddressValid(PVOID VirtualAddress)
{
	struct vmm_nt *nt = vmm_nt_current();

	nt_limit(nt, "MmIsAddressValid", DISPATCH_LEVEL);
	return (BOOLEAN)vmm_os_probe_writable(PAGE_ALIGN(VirtualAddress), PAGE_SIZE);
}
