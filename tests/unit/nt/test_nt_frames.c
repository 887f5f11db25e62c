/* SPDX-License-Identifier: MIT */
/* Contiguous memory, and the pages of a driver's MDLs. */
#include "nt_world.h"

static const PHYSICAL_ADDRESS zero, highest = {.QuadPart = -1};

static PHYSICAL_ADDRESS at(uint64_t address)
{
	return (PHYSICAL_ADDRESS){.QuadPart = (LONGLONG)address};
}

static void contiguous_memory_has_adjacent_frames_that_are_found(void **state)
{
	struct world *world = *state;
	char *block = MmAllocateContiguousMemory(3 * PAGE_SIZE + 5, highest);
	uint64_t first = (uint64_t)MmGetPhysicalAddress(block).QuadPart;
	char *mapped;

	assert_non_null(block);
	assert_int_equal((uintptr_t)block % PAGE_SIZE + first % PAGE_SIZE, 0);
	for (int i = 0; i < 4; i++) {
		PHYSICAL_ADDRESS page = MmGetPhysicalAddress(block + i * PAGE_SIZE);

		assert_int_equal(page.QuadPart, first + (uint64_t)i * PAGE_SIZE);
		assert_int_equal(block[i * PAGE_SIZE], 0);
	}
	assert_ptr_equal(MmGetVirtualForPhysical(at(first + 7)), block + 7);
	assert_ptr_equal(vmm_nt_phys_lookup(world->nt, first, 4 * PAGE_SIZE), block);
	mapped = MmMapIoSpace(at(first + PAGE_SIZE), PAGE_SIZE, MmNonCached);
	assert_ptr_equal(mapped, block + PAGE_SIZE);
	MmUnmapIoSpace(mapped, PAGE_SIZE);
	MmFreeContiguousMemory(block);
	assert_null(vmm_nt_phys_lookup(world->nt, first, 1));
}

static void contiguous_memory_keeps_within_its_limits(void **state)
{
	uint64_t low = 16ull << 20, high = low + 4 * PAGE_SIZE - 1;
	char *a, *b;

	(void)state;
	a = MmAllocateContiguousMemorySpecifyCache(3 * PAGE_SIZE, at(low), at(high), zero,
						   MmCached);
	assert_int_equal(MmGetPhysicalAddress(a).QuadPart, low);
	/* One page is left in the range. */
	assert_null(MmAllocateContiguousMemorySpecifyCache(2 * PAGE_SIZE, at(low), at(high), zero,
							   MmCached));
	b = MmAllocateContiguousNodeMemory(PAGE_SIZE, at(low), at(high), zero, PAGE_READWRITE, 0);
	assert_int_equal(MmGetPhysicalAddress(b).QuadPart, low + 3 * PAGE_SIZE);
	MmFreeContiguousMemorySpecifyCache(a, 3 * PAGE_SIZE, MmCached);
	/* The address is used again. */
	a = MmAllocateContiguousMemorySpecifyCacheNode(PAGE_SIZE, at(low), at(high), zero,
						       MmWriteCombined, MM_ANY_NODE_OK);
	assert_int_equal(MmGetPhysicalAddress(a).QuadPart, low);
	MmFreeContiguousMemory(a);
	MmFreeContiguousMemory(b);
	/* Above the addresses that are used first. */
	a = MmAllocateContiguousMemorySpecifyCache(PAGE_SIZE, at(1ull << 36), highest, zero,
						   MmCached);
	assert_true(MmGetPhysicalAddress(a).QuadPart >= 1ll << 36);
	MmFreeContiguousMemory(a);
}

/* High addresses that a driver asks for leave the others to the rest of the world. */
static void a_high_lowest_address_moves_no_other_address(void **state)
{
	struct world *world = *state;
	uint64_t before = vmm_nt_phys_reserve(world->nt, PAGE_SIZE), next;
	uint64_t wanted[] = {before + (4 << 20), 1ull << 50};
	char *block[2];

	assert_null(MmAllocateContiguousMemorySpecifyCache(
		PAGE_SIZE, at(UINT64_MAX - 4 * PAGE_SIZE), highest, zero, MmCached));
	assert_null(MmAllocateContiguousMemorySpecifyCache(PAGE_SIZE, at(UINT64_MAX - 8), highest,
							   zero, MmCached));
	assert_null(MmAllocateContiguousMemorySpecifyCache(PAGE_SIZE, at(1ull << 52), highest, zero,
							   MmCached));
	for (int i = 0; i < 2; i++) {
		block[i] = MmAllocateContiguousMemorySpecifyCache(PAGE_SIZE, at(wanted[i]), highest,
								  zero, MmCached);
		assert_int_equal(MmGetPhysicalAddress(block[i]).QuadPart, wanted[i]);
	}
	next = vmm_nt_phys_reserve(world->nt, 4 << 20);
	assert_true(next > wanted[0] && next < before + (64 << 20));
	assert_int_equal(vmm_nt_phys_reserve(world->nt, UINT64_MAX - 8), 0);
	assert_int_equal(vmm_nt_phys_reserve(world->nt, 3ull << 50), 0);
	for (int i = 0; i < 2; i++)
		MmFreeContiguousMemory(block[i]);
}

/* A BAR of a device model, as a driver maps it. */
static void a_placed_bar_is_found_by_its_pointer(void **state)
{
	struct world *world = *state;
	struct vmm_os_memory memory;
	uint64_t physical, offset;

	assert_int_equal(vmm_os_memory_create(world->os, "BAR", 4 * PAGE_SIZE, &memory), VMM_OK);
	for (int low = 0; low < 2; low++) {
		char *mapped;
		MDL *mdl;

		assert_int_equal(vmm_nt_phys_place(world->nt, &memory, low, &physical), VMM_OK);
		mapped = MmMapIoSpace(at(physical), 4 * PAGE_SIZE, MmNonCached);
		assert_int_equal(MmGetPhysicalAddress(mapped + PAGE_SIZE).QuadPart,
				 physical + PAGE_SIZE);
		mdl = IoAllocateMdl(mapped + PAGE_SIZE, PAGE_SIZE, FALSE, FALSE, NULL);
		MmBuildMdlForNonPagedPool(mdl);
		assert_int_equal(MmGetMdlPfnArray(mdl)[0], (physical >> PAGE_SHIFT) + 1);
		IoFreeMdl(mdl);
		MmUnmapIoSpace(mapped, 4 * PAGE_SIZE);
		assert_ptr_equal(
			vmm_nt_phys_memory(world->nt, physical + PAGE_SIZE, PAGE_SIZE, &offset),
			&memory);
		assert_int_equal(offset, PAGE_SIZE);
		vmm_nt_phys_remove(world->nt, physical);
	}
	vmm_os_memory_destroy(&memory);
}

static void contiguous_memory_crosses_no_boundary(void **state)
{
	uint64_t boundary = 16 * PAGE_SIZE;
	char *block[8];

	(void)state;
	for (int i = 0; i < 8; i++) {
		uint64_t first;

		block[i] = MmAllocateContiguousMemorySpecifyCache(11 * PAGE_SIZE,
								  i % 2 ? at(1ull << 36) : zero,
								  highest, at(boundary), MmCached);
		first = (uint64_t)MmGetPhysicalAddress(block[i]).QuadPart;
		assert_int_equal(first / boundary, (first + 11 * PAGE_SIZE - 1) / boundary);
	}
	assert_null(MmAllocateContiguousMemorySpecifyCache(17 * PAGE_SIZE, zero, highest,
							   at(boundary), MmCached));
	for (int i = 0; i < 8; i++)
		MmFreeContiguousMemory(block[i]);
}

static void nt_12_wrong_frees_of_contiguous_memory_are_found(void **state)
{
	struct world *world = *state;
	char *block = MmAllocateContiguousMemory(100, highest);

	MmFreeContiguousMemory(block + 1);
	expect_violation(world, "NT-12", "MmFreeContiguousMemory", "begins here");
	MmFreeNonCachedMemory(block, 100);
	expect_violation(world, "NT-12", "MmFreeNonCachedMemory", "begins here");
	MmFreeContiguousMemorySpecifyCache(block, 99, MmCached);
	expect_violation(world, "NT-12", "MmFreeContiguousMemorySpecifyCache", "99 bytes");
	MmFreeContiguousMemory(block);
	expect_violation(world, "NT-12", "MmFreeContiguousMemory", "freed before");
	assert_null(MmAllocateContiguousMemorySpecifyCache(8, zero, highest, at(3), MmCached));
	expect_violation(world, "NT-12", "MmAllocateContiguousMemorySpecifyCache", "boundary 0x3");
	assert_null(MmAllocateContiguousMemory(0, highest));
	expect_violation(world, "NT-12", "MmAllocateContiguousMemory", "0 bytes");
	assert_null(MmAllocateContiguousMemory(SIZE_MAX - 8, highest));
	block = MmAllocateNonCachedMemory(64);
	assert_true(MmGetPhysicalAddress(block).QuadPart != 0);
	MmFreeNonCachedMemory(block, 64);
	for (uint32_t n = 1; n <= 2; n++) {
		vmm_calloc_fail_after(n);
		assert_null(MmAllocateContiguousMemory(8, highest));
	}
	vmm_calloc_fail_after(0);
}

static void leaked_contiguous_memory_is_reported(void **state)
{
	struct world *world = *state;
	struct vmm_os_config config = {.kind = vmm_os_kind(world->os)};
	struct world *second = world_create(&config);

	assert_non_null(MmAllocateContiguousMemory(4096, highest));
	assert_int_equal(vmm_nt_destroy(second->nt), VMM_OK);
	expect_violation(second, "NT-06", "MmAllocateContiguousMemory", "4096 bytes");
	vmm_os_destroy(second->os);
	vmm_free(second);
	vmm_os_set_current(world->os);
}

static void pages_of_an_mdl_are_allocated_mapped_and_freed(void **state)
{
	struct world *world = *state;
	PMDL mdl = MmAllocatePagesForMdlEx(zero, at(UINT32_MAX), zero, 2 * PAGE_SIZE + 1, MmCached,
					   MM_ALLOCATE_FULLY_REQUIRED);
	uint64_t frame;
	char *va;

	assert_int_equal(MmGetMdlByteCount(mdl), 3 * PAGE_SIZE);
	frame = MmGetMdlPfnArray(mdl)[2];
	assert_true(frame << PAGE_SHIFT <= UINT32_MAX);
	assert_false(mdl->MdlFlags & MDL_MAPPED_TO_SYSTEM_VA);
	va = MmGetSystemAddressForMdlSafe(mdl, NormalPagePriority);
	assert_ptr_equal(va + 2 * PAGE_SIZE, MmGetVirtualForPhysical(at(frame << PAGE_SHIFT)));
	MmUnmapLockedPages(va, mdl);
	MmFreePagesFromMdl(mdl);
	assert_null(MmGetVirtualForPhysical(at(frame << PAGE_SHIFT)));
	MmFreePagesFromMdl(mdl);
	expect_violation(world, "NT-12", "MmFreePagesFromMdl", "freed before");
	ExFreePool(mdl);
	/* SkipBytes: the second window has the address. */
	mdl = MmAllocatePagesForMdl(at(0), at(PAGE_SIZE - 1), at(1 << 20), PAGE_SIZE);
	assert_int_equal(MmGetMdlPfnArray(mdl)[0], (1 << 20) >> PAGE_SHIFT);
	MmFreePagesFromMdl(mdl);
	ExFreePool(mdl);
	assert_null(MmAllocatePagesForMdl(zero, highest, zero, 0));
	expect_violation(world, "NT-12", "MmAllocatePagesForMdl", "0 bytes");
}

static void pool_has_frames_while_it_exists(void **state)
{
	struct world *world = *state;
	char *pool = ExAllocatePool2(POOL_FLAG_NON_PAGED, 2 * PAGE_SIZE + 64, TAG);
	char *small = ExAllocatePool2(POOL_FLAG_NON_PAGED, 64, TAG);
	PMDL mdl = IoAllocateMdl(pool + 100, PAGE_SIZE, FALSE, FALSE, NULL);
	PHYSICAL_ADDRESS first, other;

	MmBuildMdlForNonPagedPool(mdl);
	assert_ptr_equal(MmGetSystemAddressForMdlSafe(mdl, NormalPagePriority), pool + 100);
	first = MmGetPhysicalAddress(pool + 100);
	assert_int_equal(MmGetMdlPfnArray(mdl)[0], first.QuadPart >> PAGE_SHIFT);
	assert_int_equal(first.QuadPart % PAGE_SIZE, 100);
	assert_int_equal(MmGetMdlPfnArray(mdl)[1], (first.QuadPart >> PAGE_SHIFT) + 1);
	assert_ptr_equal(MmGetVirtualForPhysical(first), pool + 100);
	other = MmGetPhysicalAddress(small);
	assert_ptr_equal(MmGetVirtualForPhysical(other), small);
	MmBuildMdlForNonPagedPool(mdl);
	expect_violation(world, "NT-12", "MmBuildMdlForNonPagedPool", "already");
	IoFreeMdl(mdl);
	ExFreePool(small);
	assert_null(MmGetVirtualForPhysical(other));
	ExFreePool(pool);
	assert_null(MmGetVirtualForPhysical(first));
}

static void nt_12_paged_memory_has_no_nonpaged_mdl(void **state)
{
	struct world *world = *state;
	char *paged = ExAllocatePool2(POOL_FLAG_PAGED, 64, TAG);
	PMDL mdl = IoAllocateMdl(paged, 64, FALSE, FALSE, NULL);

	MmBuildMdlForNonPagedPool(mdl);
	expect_violation(world, "NT-12", "MmBuildMdlForNonPagedPool", "nonpaged");
	assert_int_equal(mdl->MdlFlags, 0);
	IoFreeMdl(mdl);
	ExFreePool(paged);
}

static void nt_12_pages_are_locked_and_unlocked_once(void **state)
{
	struct world *world = *state;
	char on_stack[300] = {0};
	PMDL mdl = IoAllocateMdl(on_stack, sizeof(on_stack), FALSE, FALSE, NULL);
	PHYSICAL_ADDRESS physical;

	MmUnlockPages(mdl);
	expect_violation(world, "NT-12", "MmUnlockPages", "not locked");
	MmProbeAndLockPages(mdl, KernelMode, IoWriteAccess);
	assert_true(mdl->MdlFlags & MDL_PAGES_LOCKED);
	physical = MmGetPhysicalAddress(on_stack + 5);
	assert_ptr_equal(MmGetVirtualForPhysical(physical), on_stack + 5);
	assert_int_equal(MmGetMdlPfnArray(mdl)[0], MmGetPhysicalAddress(on_stack).QuadPart >> 12);
	assert_ptr_equal(MmGetSystemAddressForMdlSafe(mdl, NormalPagePriority), on_stack);
	MmProbeAndLockPages(mdl, KernelMode, IoWriteAccess);
	expect_violation(world, "NT-12", "MmProbeAndLockPages", "already");
	MmUnlockPages(mdl);
	assert_int_equal(mdl->MdlFlags, 0);
	assert_null(MmGetVirtualForPhysical(physical));
	MmProbeAndLockPages(mdl, KernelMode, IoWriteAccess);
	IoFreeMdl(mdl);
	expect_violation(world, "NT-12", "IoFreeMdl", "locked");
	mdl = IoAllocateMdl((PVOID)(ULONG_PTR)0x1000, 64, FALSE, FALSE, NULL);
	MmProbeAndLockPages(mdl, UserMode, IoReadAccess);
	expect_violation(world, "NT-12", "MmProbeAndLockPages", "nothing is locked");
	IoFreeMdl(mdl);
	assert_true(MmIsAddressValid(on_stack));
	assert_false(MmIsAddressValid(NULL));
}

static void partial_mdls_share_pages_and_mapping(void **state)
{
	struct world *world = *state;
	PMDL source = MmAllocatePagesForMdl(zero, highest, zero, 4 * PAGE_SIZE);
	/* Pages without a virtual address: an MDL of them begins at 0. */
	ULONG_PTR base = (ULONG_PTR)MmGetMdlVirtualAddress(source);
	PMDL target = IoAllocateMdl((PVOID)base, 2 * PAGE_SIZE, FALSE, FALSE, NULL);
	char *va;

	IoBuildPartialMdl(source, target, (PVOID)(base + PAGE_SIZE + 16), PAGE_SIZE);
	assert_int_equal(MmGetMdlByteOffset(target), 16);
	assert_int_equal(MmGetMdlPfnArray(target)[1], MmGetMdlPfnArray(source)[2]);
	assert_false(target->MdlFlags & MDL_MAPPED_TO_SYSTEM_VA);
	va = MmGetSystemAddressForMdlSafe(target, NormalPagePriority);
	assert_true(target->MdlFlags & MDL_PARTIAL_HAS_BEEN_MAPPED);
	MmPrepareMdlForReuse(target);
	assert_false(target->MdlFlags & (MDL_PARTIAL_HAS_BEEN_MAPPED | MDL_MAPPED_TO_SYSTEM_VA));
	assert_ptr_equal(MmMapLockedPages(source, KernelMode), va - PAGE_SIZE - 16);
	IoBuildPartialMdl(source, target, (PVOID)(base + 3 * PAGE_SIZE), 0);
	assert_int_equal(MmGetMdlByteCount(target), PAGE_SIZE);
	assert_ptr_equal(MmGetSystemAddressForMdl(target), va + 2 * PAGE_SIZE - 16);
	MmPrepareMdlForReuse(target);
	assert_true(target->MdlFlags & MDL_MAPPED_TO_SYSTEM_VA);
	IoBuildPartialMdl(source, target, (PVOID)base, 4 * PAGE_SIZE);
	expect_violation(world, "NT-12", "IoBuildPartialMdl", "holds 2 pages");
	IoBuildPartialMdl(source, target, (PVOID)(base + 4 * PAGE_SIZE), 1);
	expect_violation(world, "NT-12", "IoBuildPartialMdl", "offset 0x4000");
	IoFreeMdl(target);
	MmFreePagesFromMdl(source);
	ExFreePool(source);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_SIM(contiguous_memory_has_adjacent_frames_that_are_found),
		ON_SIM(contiguous_memory_keeps_within_its_limits),
		ON_SIM(a_high_lowest_address_moves_no_other_address),
		ON_SIM(a_placed_bar_is_found_by_its_pointer),
		ON_SIM(contiguous_memory_crosses_no_boundary),
		ON_SIM(nt_12_wrong_frees_of_contiguous_memory_are_found),
		ON_SIM(leaked_contiguous_memory_is_reported),
		ON_SIM(pages_of_an_mdl_are_allocated_mapped_and_freed),
		ON_SIM(pool_has_frames_while_it_exists),
		ON_SIM(nt_12_paged_memory_has_no_nonpaged_mdl),
		BOTH(nt_12_pages_are_locked_and_unlocked_once),
		ON_SIM(partial_mdls_share_pages_and_mapping),
	};

	return cmocka_run_group_tests_name("nt_frames", tests, NULL, NULL);
}
