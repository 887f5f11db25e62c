/* SPDX-License-Identifier: MIT */
/* What vmm_nt_verify_drivers adds: guarded pool, the routine of a leak, the order of spin locks. */
#include "nt_world.h"

static int setup(void **state)
{
	int result = nt_setup(state);

	if (result == 0)
		vmm_nt_verify_drivers(((struct world *)*state)->nt);
	return result;
}

#define VERIFIED(test)                                                                \
	{#test "_linux", test, setup, nt_teardown, (void *)(uintptr_t)&nt_on_linux},  \
	{                                                                             \
#test "_sim", test, setup, nt_teardown, (void *)(uintptr_t)&nt_on_sim \
	}

static void nt_25_an_mdl_ends_at_a_guard_page_and_is_found_when_it_is_destroyed(void **state)
{
	struct world *world = *state;
	static char pages[3 * PAGE_SIZE];
	const struct vmm_os_memory memory = {.base = pages};
	struct vmm_nt_block found;
	struct _MDL *mdl;

	assert_true(vmm_ok(vmm_nt_mdl_create(world->nt, &memory, 0, sizeof(pages), 0, &mdl)));
	char *end = (char *)mdl + vmm_nt_mdl_bytes(sizeof(pages));
	assert_int_equal((uintptr_t)end % PAGE_SIZE, 0);
	assert_true(vmm_nt_guarded_block(end, &found));
	assert_true(found.is_mdl && !found.freed);
	assert_int_equal(found.offset, vmm_nt_mdl_bytes(sizeof(pages)));
	vmm_nt_mdl_destroy(world->nt, mdl);
	assert_true(vmm_nt_guarded_block(mdl, &found));
	assert_true(found.is_mdl && found.freed);
}

static void nt_05_a_block_ends_at_a_guard_page(void **state)
{
	static const SIZE_T sizes[] = {1, 16, 40, 4095, 4096, 4097, 100000};
	struct vmm_nt_block found;

	(void)state;
	for (size_t i = 0; i < ARRAYSIZE(sizes); i++) {
		char *block = ExAllocatePool2(POOL_FLAG_NON_PAGED, sizes[i], TAG);
		uintptr_t end = (uintptr_t)block + sizes[i];
		char *guard = block + sizes[i] + (vmm_align_up(end, PAGE_SIZE) - end);

		assert_int_equal((uintptr_t)block % (sizes[i] >= PAGE_SIZE ? PAGE_SIZE : 16), 0);
		if (sizes[i] < PAGE_SIZE)
			assert_true((size_t)(guard - block) - sizes[i] < 16);
		memset(block, 0xFF, sizes[i]);
		assert_true(vmm_nt_guarded_block(guard, &found));
		assert_false(found.freed);
		assert_int_equal(found.tag, TAG);
		assert_int_equal(found.size_bytes, sizes[i]);
		assert_int_equal(found.offset, guard - block);
		assert_non_null(found.caller);
		ExFreePoolWithTag(block, TAG);
		assert_true(vmm_nt_guarded_block(block, &found));
		assert_true(found.freed);
	}
	assert_false(vmm_nt_guarded_block(state, &found));
}

static void nt_05_the_bytes_up_to_the_guard_page_are_checked_when_the_block_is_freed(void **state)
{
	struct world *world = *state;
	volatile char *block = ExAllocatePool2(POOL_FLAG_NON_PAGED, 4097, TAG);

	block[8191] = 1;
	ExFreePoolWithTag((PVOID)(ULONG_PTR)block, TAG);
	expect_violation(world, "NT-05", "ExFreePoolWithTag", "4097 bytes, was written out of");
	block = ExAllocatePool2(POOL_FLAG_NON_PAGED, 32, TAG);
	block[-1] = 1;
	ExFreePoolWithTag((PVOID)(ULONG_PTR)block, TAG);
	expect_violation(world, "NT-05", "ExFreePoolWithTag", "32 bytes, was written out of");
}

static void nt_05_the_256_blocks_freed_last_stay_inaccessible(void **state)
{
	char *first = ExAllocatePool2(POOL_FLAG_NON_PAGED, 64, TAG), *block = NULL;
	struct vmm_nt_block found;

	(void)state;
	ExFreePoolWithTag(first, TAG);
	for (int i = 0; i < 255; i++) {
		block = ExAllocatePool2(POOL_FLAG_NON_PAGED, 128, TAG);
		ExFreePoolWithTag(block, TAG);
	}
	assert_true(vmm_nt_guarded_block(first, &found));
	assert_int_equal(found.size_bytes, 64);
	for (int i = 0; i < 256; i++)
		ExFreePoolWithTag(ExAllocatePool2(POOL_FLAG_NON_PAGED, 256, TAG), TAG);
	if (vmm_nt_guarded_block(block, &found)) /* its address may be in use again */
		assert_int_equal(found.size_bytes, 256);
}

static void nt_05_beyond_8192_blocks_are_ordinary(void **state)
{
	static char *blocks[8200];
	struct vmm_nt_block found;

	(void)state;
	for (size_t i = 0; i < ARRAYSIZE(blocks); i++)
		blocks[i] = ExAllocatePool2(POOL_FLAG_NON_PAGED, 32, TAG);
	assert_true(vmm_nt_guarded_block(blocks[8191], &found));
	assert_false(vmm_nt_guarded_block(blocks[8192], &found));
	for (size_t i = 0; i < ARRAYSIZE(blocks); i++) {
		assert_non_null(blocks[i]);
		ExFreePoolWithTag(blocks[i], TAG);
	}
}

static void take(PKSPIN_LOCK first, PKSPIN_LOCK second)
{
	KIRQL before;

	KeAcquireSpinLock(first, &before);
	KeAcquireSpinLockAtDpcLevel(second);
	KeReleaseSpinLockFromDpcLevel(second);
	KeReleaseSpinLock(first, before);
}

static void nt_22_two_spin_locks_in_both_orders_are_found_once(void **state)
{
	struct world *world = *state;
	KSPIN_LOCK lock[3];

	for (int i = 0; i < 3; i++)
		KeInitializeSpinLock(&lock[i]);
	take(&lock[0], &lock[1]);
	take(&lock[0], &lock[1]);
	take(&lock[1], &lock[2]);
	assert_int_equal(atomic_load(&world->violations), 0);
	take(&lock[1], &lock[0]);
	expect_violation(world, "NT-22", "KeAcquireSpinLock", "two threads can deadlock");
	take(&lock[1], &lock[0]);
	take(&lock[0], &lock[1]);
}

static void nt_22_a_try_cannot_deadlock_but_holds_the_lock(void **state)
{
	struct world *world = *state;
	KSPIN_LOCK a, b;
	KIRQL before;

	KeInitializeSpinLock(&a);
	KeInitializeSpinLock(&b);
	take(&a, &b);
	KeAcquireSpinLock(&b, &before);
	assert_true(KeTryToAcquireSpinLockAtDpcLevel(&a));
	KeReleaseSpinLockFromDpcLevel(&a);
	KeReleaseSpinLock(&b, before);
	assert_int_equal(atomic_load(&world->violations), 0);
	before = KfRaiseIrql(DISPATCH_LEVEL);
	assert_true(KeTryToAcquireSpinLockAtDpcLevel(&b));
	KeAcquireSpinLockAtDpcLevel(&a);
	KeReleaseSpinLockFromDpcLevel(&a);
	KeReleaseSpinLockFromDpcLevel(&b);
	KeLowerIrql(before);
	expect_violation(world, "NT-22", "KeAcquireSpinLock", "two threads can deadlock");
}

static void nt_22_locks_in_freed_pool_are_forgotten(void **state)
{
	struct world *world = *state;
	KSPIN_LOCK other, *lock = ExAllocatePool2(POOL_FLAG_NON_PAGED, sizeof(*lock), TAG);

	KeInitializeSpinLock(&other);
	take(lock, &other);
	ExFreePoolWithTag(lock, TAG);
	for (int i = 0; i < 600; i++) { /* addresses come back */
		lock = ExAllocatePool2(POOL_FLAG_NON_PAGED, sizeof(*lock), TAG);
		take(&other, lock);
		ExFreePoolWithTag(lock, TAG);
	}
	assert_int_equal(atomic_load(&world->violations), 0);
}

static void nt_12_an_mdl_that_the_driver_did_not_allocate_is_not_freed(void **state)
{
	struct world *world = *state;
	MDL mdl = {.ByteCount = 1};

	IoFreeMdl(&mdl);
	expect_violation(world, "NT-12", "IoFreeMdl", "not allocated by the driver");
	assert_int_equal(mdl.ByteCount, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		VERIFIED(nt_25_an_mdl_ends_at_a_guard_page_and_is_found_when_it_is_destroyed),
		VERIFIED(nt_05_a_block_ends_at_a_guard_page),
		VERIFIED(nt_05_the_bytes_up_to_the_guard_page_are_checked_when_the_block_is_freed),
		VERIFIED(nt_05_the_256_blocks_freed_last_stay_inaccessible),
		VERIFIED(nt_05_beyond_8192_blocks_are_ordinary),
		VERIFIED(nt_22_two_spin_locks_in_both_orders_are_found_once),
		VERIFIED(nt_22_a_try_cannot_deadlock_but_holds_the_lock),
		VERIFIED(nt_22_locks_in_freed_pool_are_forgotten),
		BOTH(nt_12_an_mdl_that_the_driver_did_not_allocate_is_not_freed),
	};

	return cmocka_run_group_tests_name("nt_verify", tests, NULL, NULL);
}
