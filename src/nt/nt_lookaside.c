/* SPDX-License-Identifier: MIT */
/*
 * Look-aside lists: one structure for the three kinds. The kept blocks are linked through their
 * first word. Guarded by the memory lock, which is not held while a routine of the driver runs.
 */
#include "nt/nt_internal.h"

#define INITIALIZED   0x4B4F4F4Cu
#define DEPTH_DEFAULT 16u

static void initialize(PGENERAL_LOOKASIDE list, POOL_TYPE type, SIZE_T size, ULONG tag)
{
	*list = (GENERAL_LOOKASIDE){.Initialized = INITIALIZED,
				    .Depth = DEPTH_DEFAULT,
				    .Tag = tag,
				    .Type = type,
				    .Size = (ULONG)size};
	if (list->Size < sizeof(PVOID))
		list->Size = sizeof(PVOID);
}

static bool is_valid(struct vmm_nt *nt, const char *service, const GENERAL_LOOKASIDE *list)
{
	nt_limit(nt, service, list->Type & PagedPool ? APC_LEVEL : DISPATCH_LEVEL);
	if (vmm_likely(list->Initialized == INITIALIZED))
		return true;
	nt_violation(nt, "NT-07", service, "the look-aside list is not initialized");
	return false;
}

static PVOID pop(struct vmm_nt *nt, PGENERAL_LOOKASIDE list)
{
	PVOID block;

	nt_memory_lock(nt);
	block = list->First;
	if (block) {
		list->First = *(PVOID *)block;
		list->Kept--;
	}
	nt_memory_unlock(nt);
	return block;
}

static PVOID make(PGENERAL_LOOKASIDE list)
{
	if (list->AllocateEx)
		return list->AllocateEx(list->Type, list->Size, list->Tag, (PVOID)list);
	if (list->Allocate)
		return list->Allocate(list->Type, list->Size, list->Tag);
	return ExAllocatePoolWithTag(list->Type, list->Size, list->Tag);
}

static void destroy(PGENERAL_LOOKASIDE list, PVOID block)
{
	if (list->FreeEx)
		list->FreeEx(block, (PVOID)list);
	else if (list->Free)
		list->Free(block);
	else
		ExFreePoolWithTag(block, list->Tag);
}

static PVOID allocate(const char *service, PGENERAL_LOOKASIDE list)
{
	struct vmm_nt *nt = vmm_nt_current();
	PVOID block;
	bool kept;

	if (!is_valid(nt, service, list))
		return NULL;
	block = pop(nt, list);
	kept = block;
	if (!kept)
		block = make(list);
	nt_memory_lock(nt);
	list->TotalAllocates++;
	list->AllocateMisses += !kept;
	list->Outstanding += block != NULL;
	nt_memory_unlock(nt);
	return block;
}

static void release(const char *service, PGENERAL_LOOKASIDE list, PVOID block)
{
	struct vmm_nt *nt = vmm_nt_current();
	bool keep, out;

	if (!is_valid(nt, service, list))
		return;
	nt_memory_lock(nt);
	out = list->Outstanding;
	keep = out && list->Kept < list->Depth;
	list->Outstanding -= out;
	list->TotalFrees += out;
	list->FreeMisses += out && !keep;
	if (keep) {
		*(PVOID *)block = list->First;
		list->First = block;
		list->Kept++;
	}
	nt_memory_unlock(nt);
	if (!out)
		nt_violation(nt, "NT-15", service, "no block of this look-aside list is in use");
	else if (!keep)
		destroy(list, block);
}

static void flush(struct vmm_nt *nt, PGENERAL_LOOKASIDE list)
{
	PVOID block;

	while ((block = pop(nt, list)))
		destroy(list, block);
}

static void finish(const char *service, PGENERAL_LOOKASIDE list)
{
	struct vmm_nt *nt = vmm_nt_current();

	if (!is_valid(nt, service, list))
		return;
	flush(nt, list);
	if (list->Outstanding)
		nt_violation(nt, "NT-15", service, "%u blocks of %u bytes are still in use",
			     list->Outstanding, list->Size);
	list->Initialized = 0;
}

/* ---- services ---- */

static void initialize_with(PGENERAL_LOOKASIDE list, POOL_TYPE type, SIZE_T size, ULONG tag,
			    PALLOCATE_FUNCTION allocator, PFREE_FUNCTION releaser)
{
	initialize(list, type, size, tag);
	list->Allocate = allocator;
	list->Free = releaser;
}

VOID ExInitializeNPagedLookasideList(PNPAGED_LOOKASIDE_LIST Lookaside, PALLOCATE_FUNCTION Allocate,
				     PFREE_FUNCTION Free, ULONG Flags, SIZE_T Size, ULONG Tag,
				     USHORT Depth)
{
	(void)Flags, (void)Depth;
	nt_limit(vmm_nt_current(), "ExInitializeNPagedLookasideList", DISPATCH_LEVEL);
	initialize_with(&Lookaside->L, NonPagedPoolNx, Size, Tag, Allocate, Free);
}

VOID ExInitializePagedLookasideList(PPAGED_LOOKASIDE_LIST Lookaside, PALLOCATE_FUNCTION Allocate,
				    PFREE_FUNCTION Free, ULONG Flags, SIZE_T Size, ULONG Tag,
				    USHORT Depth)
{
	(void)Flags, (void)Depth;
	nt_limit(vmm_nt_current(), "ExInitializePagedLookasideList", APC_LEVEL);
	initialize_with(&Lookaside->L, PagedPool, Size, Tag, Allocate, Free);
}

NTSTATUS ExInitializeLookasideListEx(PLOOKASIDE_LIST_EX Lookaside, PALLOCATE_FUNCTION_EX Allocate,
				     PFREE_FUNCTION_EX Free, POOL_TYPE PoolType, ULONG Flags,
				     SIZE_T Size, ULONG Tag, USHORT Depth)
{
	const ULONG known =
		EX_LOOKASIDE_LIST_EX_FLAGS_RAISE_ON_FAIL | EX_LOOKASIDE_LIST_EX_FLAGS_FAIL_NO_RAISE;
	struct vmm_nt *nt = vmm_nt_current();

	(void)Depth;
	nt_limit(nt, "ExInitializeLookasideListEx", DISPATCH_LEVEL);
	if (Flags & ~known)
		return STATUS_INVALID_PARAMETER;
	if (Flags & EX_LOOKASIDE_LIST_EX_FLAGS_RAISE_ON_FAIL)
		return nt_not_supported(nt, "ExInitializeLookasideListEx",
					"exceptions of a failed allocation");
	initialize(&Lookaside->L, PoolType, Size, Tag);
	Lookaside->L.AllocateEx = Allocate;
	Lookaside->L.FreeEx = Free;
	return STATUS_SUCCESS;
}

VOID ExDeleteNPagedLookasideList(PNPAGED_LOOKASIDE_LIST Lookaside)
{
	finish("ExDeleteNPagedLookasideList", &Lookaside->L);
}

VOID ExDeletePagedLookasideList(PPAGED_LOOKASIDE_LIST Lookaside)
{
	finish("ExDeletePagedLookasideList", &Lookaside->L);
}

VOID ExDeleteLookasideListEx(PLOOKASIDE_LIST_EX Lookaside)
{
	finish("ExDeleteLookasideListEx", &Lookaside->L);
}

VOID ExFlushLookasideListEx(PLOOKASIDE_LIST_EX Lookaside)
{
	struct vmm_nt *nt = vmm_nt_current();

	if (is_valid(nt, "ExFlushLookasideListEx", &Lookaside->L))
		flush(nt, &Lookaside->L);
}

PVOID ExAllocateFromNPagedLookasideList(PNPAGED_LOOKASIDE_LIST Lookaside)
{
	return allocate("ExAllocateFromNPagedLookasideList", &Lookaside->L);
}

PVOID ExAllocateFromPagedLookasideList(PPAGED_LOOKASIDE_LIST Lookaside)
{
	return allocate("ExAllocateFromPagedLookasideList", &Lookaside->L);
}

PVOID ExAllocateFromLookasideListEx(PLOOKASIDE_LIST_EX Lookaside)
{
	return allocate("ExAllocateFromLookasideListEx", &Lookaside->L);
}

VOID ExFreeToNPagedLookasideList(PNPAGED_LOOKASIDE_LIST Lookaside, PVOID Entry)
{
	release("ExFreeToNPagedLookasideList", &Lookaside->L, Entry);
}

VOID ExFreeToPagedLookasideList(PPAGED_LOOKASIDE_LIST Lookaside, PVOID Entry)
{
	release("ExFreeToPagedLookasideList", &Lookaside->L, Entry);
}

VOID ExFreeToLookasideListEx(PLOOKASIDE_LIST_EX Lookaside, PVOID Entry)
{
	release("ExFreeToLookasideListEx", &Lookaside->L, Entry);
}
