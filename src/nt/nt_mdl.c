/* SPDX-License-Identifier: MIT */
/*
 * Memory descriptor lists. Those that the library builds over backing stores are locked and mapped
 * from the start; they are counted. Those that a driver allocates are pool blocks of tag "Mdl ".
 */
#include "nt/nt_internal.h"
#include "nt/nt_verify.h"

#define MDL_TAG 0x206C644Du

/* Drivers rely on this size: the page frame numbers follow it. */
_Static_assert(sizeof(MDL) == 48, "an MDL has 48 bytes before its page frame numbers");

/* ---- MDLs of the library ---- */

size_t vmm_nt_mdl_bytes(uint64_t length)
{
	return sizeof(MDL) +
	       (size_t)(vmm_align_up(length, PAGE_SIZE) >> PAGE_SHIFT) * sizeof(PFN_NUMBER);
}

void vmm_nt_mdl_init(void *storage, const struct vmm_os_memory *memory, uint64_t offset,
		     uint64_t length, uint64_t physical)
{
	uint64_t pages = vmm_align_up(length, PAGE_SIZE) >> PAGE_SHIFT;
	char *base = memory->base + offset;
	MDL *mdl = storage;
	PFN_NUMBER *frames = MmGetMdlPfnArray(mdl);

	vmm_assert((offset | physical) % PAGE_SIZE == 0 && length && length <= UINT32_MAX);
	MmInitializeMdl(mdl, base, length);
	mdl->MdlFlags = MDL_MAPPED_TO_SYSTEM_VA | MDL_PAGES_LOCKED;
	mdl->MappedSystemVa = base;
	for (uint64_t i = 0; i < pages; i++)
		frames[i] = (physical >> PAGE_SHIFT) + i;
}

vmm_status vmm_nt_mdl_create(struct vmm_nt *nt, const struct vmm_os_memory *memory, uint64_t offset,
			     uint64_t length, uint64_t physical, struct _MDL **mdl)
{
	MDL *storage;

	if (!length || length > UINT32_MAX || (offset | physical) % PAGE_SIZE)
		return VMM_INVALID_PARAMETER;
	storage = vmm_unlikely(nt->guarded != NULL)
			  ? nt_guarded_mdl_create(nt, vmm_nt_mdl_bytes(length))
			  : NULL;
	if (!storage)
		storage = vmm_calloc(1, vmm_nt_mdl_bytes(length));
	if (!storage)
		return VMM_NO_MEMORY;
	vmm_nt_mdl_init(storage, memory, offset, length, physical);
	atomic_fetch_add_explicit(&nt->mdl_count, 1, memory_order_relaxed);
	*mdl = storage;
	return VMM_OK;
}

void vmm_nt_mdl_destroy(struct vmm_nt *nt, struct _MDL *mdl)
{
	if (!mdl)
		return;
	atomic_fetch_sub_explicit(&nt->mdl_count, 1, memory_order_relaxed);
	if (vmm_likely(!nt->guarded) || !nt_guarded_mdl_destroy(nt, mdl))
		vmm_free(mdl);
}

/* ---- services ---- */

MDL *nt_mdl_allocate(void *va, ULONG length)
{
	MDL *mdl = ExAllocatePool2(POOL_FLAG_NON_PAGED, MmSizeOfMdl(va, length), MDL_TAG);

	if (mdl)
		MmInitializeMdl(mdl, va, length);
	return mdl;
}

PMDL IoAllocateMdl(PVOID VirtualAddress, ULONG Length, BOOLEAN SecondaryBuffer, BOOLEAN ChargeQuota,
		   PIRP Irp)
{
	struct vmm_nt *nt = vmm_nt_current();

	PMDL mdl, *link;

	(void)ChargeQuota;
	nt_limit(nt, "IoAllocateMdl", DISPATCH_LEVEL);
	if (Irp && !nt_irp_exists(nt, "IoAllocateMdl", Irp))
		return NULL;
	mdl = nt_mdl_allocate(VirtualAddress, Length);
	if (!mdl || !Irp)
		return mdl;
	/* A secondary buffer comes behind the MDLs that the packet has. */
	link = &Irp->MdlAddress;
	while (SecondaryBuffer && *link)
		link = &(*link)->Next;
	*link = mdl;
	return mdl;
}

VOID IoFreeMdl(PMDL Mdl)
{
	struct vmm_nt *nt = vmm_nt_current();

	nt_limit(nt, "IoFreeMdl", DISPATCH_LEVEL);
	if (!nt_pool_is_block(nt, Mdl)) {
		nt_violation(nt, "NT-12", "IoFreeMdl",
			     "the MDL was not allocated by the driver, or was freed before: an MDL "
			     "that a DDI got belongs to its caller");
		return;
	}
	MmPrepareMdlForReuse(Mdl);
	if ((Mdl->MdlFlags & MDL_PAGES_LOCKED) &&
	    nt_phys_remove_owned(nt, MmGetMdlPfnArray(Mdl)[0] << PAGE_SHIFT, Mdl))
		nt_violation(nt, "NT-12", "IoFreeMdl",
			     "an MDL of %u bytes is freed, but its pages are locked",
			     Mdl->ByteCount);
	ExFreePoolWithTag(Mdl, MDL_TAG);
}

/* Returns the kernel address of all pages of the MDL if they are contiguous there, else NULL. */
static char *pages_of(struct vmm_nt *nt, const MDL *mdl)
{
	const PFN_NUMBER *frames = MmGetMdlPfnArray(mdl);
	uint64_t pages =
		vmm_align_up((uint64_t)mdl->ByteOffset + mdl->ByteCount, PAGE_SIZE) >> PAGE_SHIFT;
	char *first = pages ? vmm_nt_phys_lookup(nt, frames[0] << PAGE_SHIFT, PAGE_SIZE) : NULL;

	for (uint64_t i = 1; first && i < pages; i++) {
		if (vmm_nt_phys_lookup(nt, frames[i] << PAGE_SHIFT, PAGE_SIZE) !=
		    first + i * PAGE_SIZE)
			return NULL;
	}
	return first;
}

PVOID MmMapLockedPagesSpecifyCache(PMDL MemoryDescriptorList, KPROCESSOR_MODE AccessMode,
				   MEMORY_CACHING_TYPE CacheType, PVOID RequestedAddress,
				   ULONG BugCheckOnFailure, ULONG Priority)
{
	struct vmm_nt *nt = vmm_nt_current();
	char *pages = pages_of(nt, MemoryDescriptorList);

	(void)CacheType, (void)BugCheckOnFailure, (void)Priority;
	nt_limit(nt, "MmMapLockedPagesSpecifyCache", DISPATCH_LEVEL);
	if (!pages || AccessMode != KernelMode || RequestedAddress) {
		nt_violation(nt, "NT-08", "MmMapLockedPagesSpecifyCache",
			     "an MDL of %u bytes cannot be mapped: %s",
			     MemoryDescriptorList->ByteCount,
			     pages ? "only KernelMode without RequestedAddress is supported"
				   : "its pages are not contiguous in one range of the platform");
		return NULL;
	}
	MemoryDescriptorList->MappedSystemVa = pages + MemoryDescriptorList->ByteOffset;
	MemoryDescriptorList->MdlFlags |= MDL_MAPPED_TO_SYSTEM_VA;
	if (MemoryDescriptorList->MdlFlags & MDL_PARTIAL)
		MemoryDescriptorList->MdlFlags |= MDL_PARTIAL_HAS_BEEN_MAPPED;
	return MemoryDescriptorList->MappedSystemVa;
}

VOID MmUnmapLockedPages(PVOID BaseAddress, PMDL MemoryDescriptorList)
{
	struct vmm_nt *nt = vmm_nt_current();

	nt_limit(nt, "MmUnmapLockedPages", DISPATCH_LEVEL);
	if (!(MemoryDescriptorList->MdlFlags & MDL_MAPPED_TO_SYSTEM_VA) ||
	    MemoryDescriptorList->MappedSystemVa != BaseAddress) {
		nt_violation(nt, "NT-08", "MmUnmapLockedPages",
			     "the MDL is not mapped at this address");
		return;
	}
	MemoryDescriptorList->MdlFlags &=
		(SHORT) ~(MDL_MAPPED_TO_SYSTEM_VA | MDL_PARTIAL_HAS_BEEN_MAPPED);
	MemoryDescriptorList->MappedSystemVa = NULL;
}
