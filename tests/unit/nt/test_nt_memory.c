/* SPDX-License-Identifier: MIT */
/* Pool, physical address space, MDLs. */
#include "nt_world.h"

/* ---- pool ---- */

static bool all_bytes_are(const unsigned char *bytes, size_t length, unsigned char value)
{
	for (size_t i = 0; i < length; i++) {
		if (bytes[i] != value)
			return false;
	}
	return true;
}

static void pool_is_zeroed_and_aligned_as_documented(void **state)
{
	static const SIZE_T sizes[] = {1, 15, 16, 100, 4095, 4096, 4097, 100000};

	(void)state;
	for (size_t i = 0; i < ARRAYSIZE(sizes); i++) {
		unsigned char *zeroed = ExAllocatePool2(POOL_FLAG_NON_PAGED, sizes[i], TAG);
		unsigned char *raw = ExAllocatePoolWithTag(NonPagedPoolNx, sizes[i], TAG);

		assert_true(all_bytes_are(zeroed, sizes[i], 0));
		/* The fill is not zero, so that a driver that relies on zero is noticed. */
		assert_false(all_bytes_are(raw, sizes[i], 0));
		assert_int_equal((uintptr_t)zeroed % (sizes[i] >= PAGE_SIZE ? PAGE_SIZE : 16), 0);
		assert_int_equal((uintptr_t)raw % (sizes[i] >= PAGE_SIZE ? PAGE_SIZE : 16), 0);
		memset(zeroed, 0xFF, sizes[i]);
		memset(raw, 0xFF, sizes[i]);
		ExFreePool(raw);
		ExFreePoolWithTag(zeroed, TAG);
	}
}

static void invalid_pool_requests_get_null(void **state)
{
	struct world *world = *state;

	assert_null(ExAllocatePool2(POOL_FLAG_NON_PAGED, 8, 0));
	expect_violation(world, "NT-05", "ExAllocatePool2", "tag 0x0");
	assert_null(ExAllocatePool2(POOL_FLAG_UNINITIALIZED, 8, TAG));
	expect_violation(world, "NT-05", "ExAllocatePool2", "flags 0x2");
	assert_null(ExAllocatePool2(POOL_FLAG_NON_PAGED | POOL_FLAG_PAGED, 8, TAG));
	expect_violation(world, "NT-05", "ExAllocatePool2", "flags 0x140");
	assert_null(ExAllocatePool2(POOL_FLAG_NON_PAGED, SIZE_MAX, TAG));
	assert_null(ExAllocatePool2(POOL_FLAG_NON_PAGED, SIZE_MAX - 8192, TAG));
	for (uint32_t n = 1; n <= 2; n++) {
		vmm_calloc_fail_after(n);
		assert_null(ExAllocatePool2(POOL_FLAG_NON_PAGED, 8, TAG));
	}
	vmm_calloc_fail_after(0);
}

static void bad_frees_are_found_and_harmless(void **state)
{
	struct world *world = *state;
	char *block = ExAllocatePool2(POOL_FLAG_NON_PAGED, 24, TAG);
	int on_stack;

	ExFreePool(&on_stack);
	expect_violation(world, "NT-05", "ExFreePool", "not a pool block");
	ExFreePool(block + 8);
	expect_violation(world, "NT-05", "ExFreePool", "not a pool block");
	ExFreePool((PVOID)(ULONG_PTR)0x10);
	expect_violation(world, "NT-05", "ExFreePool", "not a pool block");
	ExFreePoolWithTag(block, 0x64657246);
	expect_violation(world, "NT-05", "ExFreePoolWithTag", "tag \"Test\" is freed as \"Fred\"");
	ExFreePool(block);
	expect_violation(world, "NT-05", "ExFreePool", "freed before");
}

static void writes_out_of_bounds_are_found(void **state)
{
	struct world *world = *state;
	volatile char *block = ExAllocatePool2(POOL_FLAG_NON_PAGED, 24, TAG);

	block[24] = 1;
	ExFreePool((PVOID)(uintptr_t)block);
	expect_violation(world, "NT-05", "ExFreePool",
			 "tag \"Test\", 24 bytes, was written out of bounds");
	block = ExAllocatePool2(POOL_FLAG_NON_PAGED, 5000, TAG);
	block[-1] = 1;
	ExFreePool((PVOID)(uintptr_t)block);
	expect_violation(world, "NT-05", "ExFreePool", "5000 bytes, was written out of bounds");
}

/* The table of blocks has grown several times, and one growth failed. */
static void all_of_many_blocks_can_be_freed(void **state)
{
	enum { BLOCKS = 20000 };
	static char *blocks[BLOCKS];
	struct world *world = *state;

	for (uint32_t i = 0; i < BLOCKS; i++) {
		/*
		 * The third allocation of a call, after the record and the block, is a larger
		 * table.
		 */
		vmm_calloc_fail_after(i < 600 ? 3 : 0);
		blocks[i] = ExAllocatePool2(POOL_FLAG_NON_PAGED, 8 + i % 64, TAG);
		assert_non_null(blocks[i]);
		blocks[i][0] = (char)i;
	}
	vmm_calloc_fail_after(0);
	for (uint32_t i = 0; i < BLOCKS; i++) {
		uint32_t n = (uint32_t)((uint64_t)i * 7919 % BLOCKS); /* each once */

		assert_int_equal(blocks[n][0], (char)n);
		ExFreePoolWithTag(blocks[n], TAG);
		if (i % 5000 == 0) {
			ExFreePool(blocks[n]);
			expect_violation(world, "NT-05", "ExFreePool", "freed before");
		}
	}
}

struct leaks {
	uint32_t count;
	char text[8][256];
};

static void take_leak(void *context, const struct vmm_nt_violation *violation)
{
	struct leaks *leaks = context;

	if (!strcmp(violation->rule, "NT-06") && leaks->count < 8)
		strcpy(leaks->text[leaks->count++], violation->text);
}

static void leaks_are_reported_by_tag(void **state)
{
	struct world *world = *state;
	struct leaks leaks = {0};

	assert_non_null(ExAllocatePool2(POOL_FLAG_NON_PAGED, 100, 0x42424242));
	assert_non_null(ExAllocatePool2(POOL_FLAG_NON_PAGED, 50, 0x41414141));
	assert_non_null(ExAllocatePool2(POOL_FLAG_PAGED, 11, 0x42424242));
	assert_non_null(IoAllocateMdl(NULL, 8192, FALSE, FALSE, NULL));
	vmm_nt_set_violation_hook(world->nt, take_leak, &leaks);
	assert_int_equal(vmm_nt_destroy(world->nt), VMM_OK);
	assert_int_equal(leaks.count, 3);
	assert_string_equal(leaks.text[0], "tag \"Mdl \": 1 blocks, 64 bytes never freed");
	assert_string_equal(leaks.text[1], "tag \"AAAA\": 1 blocks, 50 bytes never freed");
	assert_string_equal(leaks.text[2], "tag \"BBBB\": 2 blocks, 111 bytes never freed");
	assert_int_equal(vmm_nt_create(world->os, NULL, &world->nt), VMM_OK);
}

static void many_leaks_are_all_counted(void **state)
{
	struct world *world = *state;
	struct leaks leaks = {0};

	for (uint32_t i = 0; i < 3000; i++)
		assert_non_null(ExAllocatePool2(POOL_FLAG_NON_PAGED, 10, TAG));
	vmm_nt_set_violation_hook(world->nt, take_leak, &leaks);
	assert_int_equal(vmm_nt_destroy(world->nt), VMM_OK);
	assert_int_equal(leaks.count, 1);
	assert_string_equal(leaks.text[0], "tag \"Test\": 3000 blocks, 30000 bytes never freed");
	assert_int_equal(vmm_nt_create(world->os, NULL, &world->nt), VMM_OK);
}

/* ---- physical addresses ---- */

static struct vmm_os_memory make_memory(struct world *world, uint64_t pages)
{
	struct vmm_os_memory memory;

	assert_int_equal(vmm_os_memory_create(world->os, "memory", pages * PAGE_SIZE, &memory),
			 VMM_OK);
	return memory;
}

static void reserved_ranges_are_deterministic_and_disjoint(void **state)
{
	struct world *world = *state;
	uint64_t first = vmm_nt_phys_reserve(world->nt, 1),
		 second = vmm_nt_phys_reserve(world->nt, 3 << 20);
	uint64_t third = vmm_nt_phys_reserve(world->nt, PAGE_SIZE);

	assert_int_equal(first, 4ull << 30);
	assert_int_equal(second, first + (4 << 20));
	assert_int_equal(third, second + (4 << 20) + (2 << 20));
}

static void lookups_translate_in_both_directions(void **state)
{
	struct world *world = *state;
	struct vmm_os_memory memory = make_memory(world, 64);
	uint64_t bases[16], physical;

	for (uint64_t i = 0; i < 16; i++) {
		/* Added in an order that is neither rising nor falling. */
		uint64_t at = i * 7 % 16;

		bases[at] = 0x100000000 + at * 0x10000000;
		assert_int_equal(vmm_nt_phys_add(world->nt, bases[at], &memory, at * 4 * PAGE_SIZE,
						 4 * PAGE_SIZE),
				 VMM_OK);
	}
	for (uint64_t i = 0; i < 16; i++) {
		char *base = memory.base + i * 4 * PAGE_SIZE;

		assert_ptr_equal(vmm_nt_phys_lookup(world->nt, bases[i], 4 * PAGE_SIZE), base);
		assert_ptr_equal(vmm_nt_phys_lookup(world->nt, bases[i] + 5000, 100), base + 5000);
		assert_ptr_equal(vmm_nt_phys_lookup(world->nt, bases[i] + 4 * PAGE_SIZE - 1, 1),
				 base + 4 * PAGE_SIZE - 1);
		assert_null(vmm_nt_phys_lookup(world->nt, bases[i] + 1, 4 * PAGE_SIZE));
		assert_null(vmm_nt_phys_lookup(world->nt, bases[i] + 4 * PAGE_SIZE, 1));
		assert_null(vmm_nt_phys_lookup(world->nt, bases[i] - 1, 1));
		assert_true(vmm_nt_phys_of(world->nt, base + 77, &physical));
		assert_int_equal(physical, bases[i] + 77);
	}
	assert_false(vmm_nt_phys_of(world->nt, &physical, &physical));
	for (uint64_t i = 0; i < 16; i++) {
		vmm_nt_phys_remove(world->nt, bases[i * 3 % 16]);
		assert_null(vmm_nt_phys_lookup(world->nt, bases[i * 3 % 16], 1));
	}
	vmm_os_memory_destroy(&memory);
}

static void overlapping_ranges_are_refused(void **state)
{
	struct world *world = *state;
	struct vmm_os_memory memory = make_memory(world, 8);
	uint64_t base = vmm_nt_phys_reserve(world->nt, 8 * PAGE_SIZE);

	assert_int_equal(vmm_nt_phys_add(world->nt, base + PAGE_SIZE, &memory, 0, 2 * PAGE_SIZE),
			 VMM_OK);
	assert_int_equal(vmm_nt_phys_add(world->nt, base, &memory, 0, 2 * PAGE_SIZE),
			 VMM_INVALID_PARAMETER);
	assert_int_equal(vmm_nt_phys_add(world->nt, base, &memory, 0, 8 * PAGE_SIZE),
			 VMM_INVALID_PARAMETER);
	assert_int_equal(vmm_nt_phys_add(world->nt, base + 2 * PAGE_SIZE, &memory, 0, PAGE_SIZE),
			 VMM_INVALID_PARAMETER);
	assert_int_equal(vmm_nt_phys_add(world->nt, base + 3 * PAGE_SIZE, &memory, 0, PAGE_SIZE),
			 VMM_OK);
	assert_int_equal(vmm_nt_phys_add(world->nt, base, &memory, 0, PAGE_SIZE), VMM_OK);
	assert_int_equal(
		vmm_nt_phys_add(world->nt, base + 64 * PAGE_SIZE, &memory, 0, 9 * PAGE_SIZE),
		VMM_INVALID_PARAMETER);
	assert_int_equal(vmm_nt_phys_add(world->nt, base + 64 * PAGE_SIZE, &memory, 1, PAGE_SIZE),
			 VMM_INVALID_PARAMETER);
	assert_int_equal(
		vmm_nt_phys_add(world->nt, UINT64_MAX - PAGE_SIZE + 1, &memory, 0, PAGE_SIZE),
		VMM_OK);
	assert_non_null(vmm_nt_phys_lookup(world->nt, UINT64_MAX, 1));
	vmm_nt_phys_remove(world->nt, UINT64_MAX - PAGE_SIZE + 1);
	vmm_nt_phys_remove(world->nt, base);
	vmm_nt_phys_remove(world->nt, base + PAGE_SIZE);
	vmm_nt_phys_remove(world->nt, base + 3 * PAGE_SIZE);
	vmm_calloc_fail_after(1);
	for (uint64_t i = 0; i < 17; i++) {
		vmm_status status =
			vmm_nt_phys_add(world->nt, base + i * PAGE_SIZE, &memory, 0, PAGE_SIZE);

		assert_int_equal(status, i < 16 ? VMM_OK : VMM_NO_MEMORY);
	}
	for (uint64_t i = 0; i < 16; i++)
		vmm_nt_phys_remove(world->nt, base + i * PAGE_SIZE);
	vmm_os_memory_destroy(&memory);
}

static void drivers_map_physical_ranges(void **state)
{
	struct world *world = *state;
	struct vmm_os_memory bar = make_memory(world, 16);
	uint64_t base = vmm_nt_phys_reserve(world->nt, bar.size_bytes);
	PHYSICAL_ADDRESS address = {.QuadPart = (LONGLONG)base};
	char *first, *second;

	assert_int_equal(vmm_nt_phys_add(world->nt, base, &bar, 0, bar.size_bytes), VMM_OK);
	first = MmMapIoSpace(address, bar.size_bytes, MmWriteCombined);
	assert_ptr_equal(first, bar.base);
	address.QuadPart += 0x2345;
	second = MmMapIoSpaceEx(address, 16, PAGE_READWRITE | PAGE_NOCACHE);
	assert_ptr_equal(second, bar.base + 0x2345);
	assert_ptr_equal(MmGetVirtualForPhysical(address), second);
	assert_int_equal(MmGetPhysicalAddress(second).QuadPart, address.QuadPart);
	assert_int_equal(MmGetPhysicalAddress(&address).QuadPart, 0);
	assert_null(MmMapIoSpace(address, bar.size_bytes, MmNonCached));
	expect_violation(world, "NT-08", "MmMapIoSpace", "not inside one range of the platform");
	MmUnmapIoSpace(second, 17);
	expect_violation(world, "NT-08", "MmUnmapIoSpace", "no mapping of 17 bytes begins here");
	MmUnmapIoSpace(second, 16);
	MmUnmapIoSpace(first, bar.size_bytes);
	MmUnmapIoSpace(first, bar.size_bytes);
	expect_violation(world, "NT-08", "MmUnmapIoSpace", "no mapping");
	vmm_nt_phys_remove(world->nt, base);
	vmm_os_memory_destroy(&bar);
}

static void a_leaked_mapping_is_reported(void **state)
{
	struct world *world = *state;
	struct vmm_os_memory bar = make_memory(world, 1);
	PHYSICAL_ADDRESS address = {.QuadPart = 0x40000000};

	assert_int_equal(vmm_nt_phys_add(world->nt, 0x40000000, &bar, 0, PAGE_SIZE), VMM_OK);
	assert_non_null(MmMapIoSpace(address, 64, MmNonCached));
	vmm_nt_phys_remove(world->nt, 0x40000000);
	assert_int_equal(vmm_nt_destroy(world->nt), VMM_OK);
	expect_violation(world, "NT-06", "MmMapIoSpace",
			 "a mapping of 64 bytes was never unmapped");
	assert_int_equal(vmm_nt_create(world->os, NULL, &world->nt), VMM_OK);
	vmm_os_memory_destroy(&bar);
}

/* ---- MDLs ---- */

static void an_mdl_of_a_backing_store_is_locked_and_mapped(void **state)
{
	struct world *world = *state;
	struct vmm_os_memory memory = make_memory(world, 32);
	uint64_t base = vmm_nt_phys_reserve(world->nt, memory.size_bytes);
	PPFN_NUMBER frames;
	PMDL mdl;

	assert_int_equal(vmm_nt_mdl_create(world->nt, &memory, 8 * PAGE_SIZE, 5 * PAGE_SIZE - 100,
					   base + 8 * PAGE_SIZE, &mdl),
			 VMM_OK);
	frames = MmGetMdlPfnArray(mdl);
	assert_int_equal(MmGetMdlByteCount(mdl), 5 * PAGE_SIZE - 100);
	assert_int_equal(MmGetMdlByteOffset(mdl), 0);
	assert_ptr_equal(MmGetMdlVirtualAddress(mdl), memory.base + 8 * PAGE_SIZE);
	assert_ptr_equal(MmGetSystemAddressForMdlSafe(mdl, NormalPagePriority),
			 memory.base + 8 * PAGE_SIZE);
	assert_true(mdl->MdlFlags & MDL_PAGES_LOCKED);
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(frames[i], (base >> PAGE_SHIFT) + 8 + i);
	vmm_nt_mdl_destroy(world->nt, mdl);
	vmm_nt_mdl_destroy(world->nt, NULL);
	assert_int_equal(vmm_nt_mdl_create(world->nt, &memory, 0, 1ull << 32, base, &mdl),
			 VMM_INVALID_PARAMETER);
	assert_int_equal(vmm_nt_mdl_create(world->nt, &memory, 0, 0, base, &mdl),
			 VMM_INVALID_PARAMETER);
	assert_int_equal(vmm_nt_mdl_create(world->nt, &memory, 0, PAGE_SIZE, base + 1, &mdl),
			 VMM_INVALID_PARAMETER);
	vmm_calloc_fail_after(1);
	assert_int_equal(vmm_nt_mdl_create(world->nt, &memory, 0, PAGE_SIZE, base, &mdl),
			 VMM_NO_MEMORY);
	vmm_os_memory_destroy(&memory);
}

static void an_mdl_can_live_in_its_owners_storage(void **state)
{
	struct world *world = *state;
	struct vmm_os_memory memory = make_memory(world, 4);
	uint64_t storage[64];

	assert_int_equal(vmm_nt_mdl_bytes(1), sizeof(MDL) + sizeof(PFN_NUMBER));
	assert_int_equal(vmm_nt_mdl_bytes(4 * PAGE_SIZE), sizeof(MDL) + 4 * sizeof(PFN_NUMBER));
	assert_true(vmm_nt_mdl_bytes(4 * PAGE_SIZE) <= sizeof(storage));
	vmm_nt_mdl_init(storage, &memory, 0, 4 * PAGE_SIZE, 0x80000000);
	assert_ptr_equal(MmGetSystemAddressForMdlSafe((PMDL)storage, HighPagePriority),
			 memory.base);
	assert_int_equal(MmGetMdlPfnArray((PMDL)storage)[3], 0x80003);
	vmm_os_memory_destroy(&memory);
}

static void a_driver_mdl_maps_only_contiguous_pages(void **state)
{
	struct world *world = *state;
	struct vmm_os_memory memory = make_memory(world, 8);
	uint64_t base = vmm_nt_phys_reserve(world->nt, memory.size_bytes);
	PPFN_NUMBER frames;
	PMDL mdl;

	assert_int_equal(vmm_nt_phys_add(world->nt, base, &memory, 0, memory.size_bytes), VMM_OK);
	mdl = IoAllocateMdl((PVOID)(ULONG_PTR)0x10000200, 2 * PAGE_SIZE, FALSE, FALSE, NULL);
	assert_int_equal(MmGetMdlByteOffset(mdl), 0x200);
	assert_int_equal(mdl->Size, (int)(sizeof(MDL) + 3 * sizeof(PFN_NUMBER)));
	frames = MmGetMdlPfnArray(mdl);
	for (uint64_t i = 0; i < 3; i++)
		frames[i] = (base >> PAGE_SHIFT) + 4 + i;
	assert_ptr_equal(MmGetSystemAddressForMdlSafe(mdl, NormalPagePriority),
			 memory.base + 4 * PAGE_SIZE + 0x200);
	assert_true(mdl->MdlFlags & MDL_MAPPED_TO_SYSTEM_VA);
	MmUnmapLockedPages(memory.base, mdl);
	expect_violation(world, "NT-08", "MmUnmapLockedPages", "not mapped at this address");
	MmUnmapLockedPages(mdl->MappedSystemVa, mdl);
	frames[1]++;
	assert_null(MmGetSystemAddressForMdlSafe(mdl, NormalPagePriority));
	expect_violation(world, "NT-08", "MmMapLockedPagesSpecifyCache", "not contiguous");
	IoFreeMdl(mdl);
	assert_null(IoAllocateMdl(NULL, 1, FALSE, FALSE, (PIRP)mdl));
	expect_violation(world, "NT-17", "IoAllocateMdl", "IRP");
	vmm_nt_phys_remove(world->nt, base);
	vmm_os_memory_destroy(&memory);
}

static void caller_pages_are_locked_into_an_mdl(void **state)
{
	struct world *world = *state;
	char *pool = ExAllocatePool2(POOL_FLAG_NON_PAGED, 3 * PAGE_SIZE, TAG);
	struct _MDL *mdl = NULL;
	uint64_t physical = 0;

	assert_int_equal(vmm_nt_pages_lock(world->nt, pool + 16, PAGE_SIZE, &mdl),
			 VMM_INVALID_PARAMETER);
	assert_int_equal(vmm_nt_pages_lock(world->nt, pool, 100, &mdl), VMM_INVALID_PARAMETER);
	for (uint32_t n = 1; n <= 2; n++) {
		vmm_calloc_fail_after(n);
		(void)!vmm_nt_pages_lock(world->nt, pool, 3 * PAGE_SIZE, &mdl);
		vmm_calloc_fail_after(0);
		if (mdl) /* with n = 2 the table had space, so no second allocation failed */
			vmm_nt_pages_unlock(world->nt, mdl);
		mdl = NULL;
	}
	assert_int_equal(vmm_nt_pages_lock(world->nt, pool, 3 * PAGE_SIZE, &mdl), VMM_OK);
	assert_ptr_equal(MmGetSystemAddressForMdlSafe(mdl, NormalPagePriority), pool);
	assert_true(vmm_nt_phys_of(world->nt, pool + PAGE_SIZE, &physical));
	assert_true(physical == ((uint64_t)MmGetMdlPfnArray(mdl)[1] << PAGE_SHIFT));
	assert_ptr_equal(vmm_nt_phys_lookup(world->nt, physical, 2 * PAGE_SIZE), pool + PAGE_SIZE);
	vmm_nt_pages_unlock(world->nt, mdl);
	assert_null(vmm_nt_phys_lookup(world->nt, physical, 1));
	ExFreePool(pool);
}

static void kernel_memory_is_distinguished_from_client_memory(void **state)
{
	static char other[3 * PAGE_SIZE] __attribute__((aligned(4096)));
	struct world *world = *state;
	char *pool = ExAllocatePool2(POOL_FLAG_NON_PAGED, 2 * PAGE_SIZE, TAG);
	struct vmm_os_memory memory;
	struct _MDL *mdl;

	assert_true(vmm_nt_is_kernel_range(world->nt, pool, 2 * PAGE_SIZE));
	assert_true(vmm_nt_is_kernel_range(world->nt, pool + PAGE_SIZE, PAGE_SIZE));
	assert_false(vmm_nt_is_kernel_range(world->nt, pool + PAGE_SIZE, PAGE_SIZE + 1));
	assert_false(vmm_nt_is_kernel_range(world->nt, pool - 1, PAGE_SIZE));
	assert_false(vmm_nt_is_kernel_range(world->nt, pool, UINT64_MAX));
	assert_true(vmm_nt_overlaps_kernel(world->nt, pool - 1, 2));
	assert_false(vmm_nt_overlaps_kernel(world->nt, pool - 1, 1));
	assert_true(vmm_nt_overlaps_kernel(world->nt, pool + 2 * PAGE_SIZE - 1, PAGE_SIZE));
	assert_false(vmm_nt_overlaps_kernel(world->nt, pool + 2 * PAGE_SIZE, 1));
	ExFreePool(pool);
	assert_false(vmm_nt_is_kernel_range(world->nt, pool, 1));

	assert_int_equal(vmm_os_memory_create(world->os, "bar", PAGE_SIZE, &memory), VMM_OK);
	uint64_t base = vmm_nt_phys_reserve(world->nt, PAGE_SIZE);
	assert_int_equal(vmm_nt_phys_add(world->nt, base, &memory, 0, PAGE_SIZE), VMM_OK);
	assert_true(vmm_nt_is_kernel_range(world->nt, memory.base, PAGE_SIZE));
	vmm_nt_phys_remove(world->nt, base);
	vmm_os_memory_destroy(&memory);

	/* Locked or not, memory of a client stays client memory. */
	assert_int_equal(vmm_nt_pages_lock(world->nt, other, sizeof(other), &mdl), VMM_OK);
	assert_false(vmm_nt_overlaps_kernel(world->nt, other, sizeof(other)));
	assert_false(vmm_nt_is_kernel_range(world->nt, other, PAGE_SIZE));
	vmm_nt_pages_unlock(world->nt, mdl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(pool_is_zeroed_and_aligned_as_documented),
		BOTH(invalid_pool_requests_get_null),
		BOTH(bad_frees_are_found_and_harmless),
		BOTH(writes_out_of_bounds_are_found),
		BOTH(leaks_are_reported_by_tag),
		ON_SIM(all_of_many_blocks_can_be_freed),
		ON_SIM(many_leaks_are_all_counted),
		ON_SIM(reserved_ranges_are_deterministic_and_disjoint),
		ON_SIM(lookups_translate_in_both_directions),
		ON_SIM(overlapping_ranges_are_refused),
		BOTH(drivers_map_physical_ranges),
		ON_SIM(a_leaked_mapping_is_reported),
		ON_SIM(an_mdl_of_a_backing_store_is_locked_and_mapped),
		ON_SIM(an_mdl_can_live_in_its_owners_storage),
		ON_SIM(a_driver_mdl_maps_only_contiguous_pages),
		ON_SIM(caller_pages_are_locked_into_an_mdl),
		ON_SIM(kernel_memory_is_distinguished_from_client_memory),
	};

	return cmocka_run_group_tests_name("nt_memory", tests, NULL, NULL);
}
