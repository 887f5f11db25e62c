/* SPDX-License-Identifier: MIT */
/* LOCK: page lists, permission, nesting, unlocking, and what ends a lock. */
#include "world.h"

static void lock_17_lockentire_with_a_page_list_is_refused(void **state)
{
	const UINT page = 0;
	struct world w;
	void *data;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = client_allocate(&w.device, 4 * PAGE, CPU), handle = a;

	assert_int_equal(lock_pages(&w.device, &handle, LOCK_ENTIRE, &page, 1, &data),
			 E_INVALIDARG);
	assert_true(client_found(&w.client, "LOCK-17"));
	client_forget(&w.client);
	assert_int_equal(lock_pages(&w.device, &handle, LOCK_ENTIRE, &page, 0, &data),
			 E_INVALIDARG);
	assert_true(client_found(&w.client, "LOCK-17"));
	client_forget(&w.client);
	assert_int_equal(lock_pages(&w.device, &handle, LOCK_ENTIRE, NULL, 1, &data), E_INVALIDARG);
	assert_true(client_found(&w.client, "LOCK-17"));
	client_forget(&w.client);
	assert_int_equal(client_unlock(&w.device, a), E_INVALIDARG);
	client_forget(&w.client);
	assert_int_equal(lock_pages(&w.device, &handle, LOCK_ENTIRE, NULL, 0, &data), S_OK);
	assert_int_equal(handle, a);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

static void lock_18_the_pointer_is_that_of_the_first_listed_page(void **state)
{
	static const UINT two[] = {2}, several[] = {3, 0, 1}, last[] = {7};
	struct world w;
	void *data;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = client_allocate(&w.device, 8 * PAGE, CPU);
	char *whole = client_lock(&w.device, a, 0);

	for (uint32_t page = 0; page < 8; page++)
		whole[page * PAGE] = (char)('a' + page);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_int_equal(lock_pages(&w.device, &a, 0, two, 1, &data), S_OK);
	assert_ptr_equal(data, whole + 2 * PAGE);
	assert_int_equal(*(char *)data, 'c');
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_int_equal(lock_pages(&w.device, &a, 0, several, 3, &data), S_OK);
	assert_ptr_equal(data, whole + 3 * PAGE);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_int_equal(lock_pages(&w.device, &a, 0, last, 1, &data), S_OK);
	assert_ptr_equal(data, whole + 7 * PAGE);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

static void lock_18_a_page_past_the_end_is_refused(void **state)
{
	static const UINT bad[][3] = {{8, 0, 0}, {0, 1, 8}, {0, UINT32_MAX, 1}};
	struct world w;
	void *data;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = client_allocate(&w.device, 8 * PAGE, CPU), handle = a;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(lock_pages(&w.device, &handle, 0, bad[i], 3, &data), E_INVALIDARG);
		assert_true(client_found(&w.client, "LOCK-18"));
		assert_null(data);
		assert_int_equal(handle, a);
		client_forget(&w.client);
	}
	assert_int_equal(lock_pages(&w.device, &handle, 0, NULL, 3, &data), E_INVALIDARG);
	assert_true(client_found(&w.client, "LOCK-18"));
	client_forget(&w.client);
	/* none of the calls locked it */
	assert_int_equal(client_unlock(&w.device, a), E_INVALIDARG);
	client_forget(&w.client);
	world_stop(&w);
}

static void lock_18_long_page_lists_are_accepted(void **state)
{
	enum { PAGES = 1000 };
	struct world w;
	UINT pages[PAGES];
	void *data;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = client_allocate(&w.device, PAGES * PAGE, CPU);

	for (UINT i = 0; i < PAGES; i++)
		pages[i] = PAGES - 1 - i;
	char *whole = client_lock(&w.device, a, 0);
	assert_int_equal(lock_pages(&w.device, &a, 0, pages, PAGES, &data), S_OK);
	assert_ptr_equal(data, whole + (size_t)(PAGES - 1) * PAGE);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	/* More pages than an allocation can have; the list is not read. */
	assert_int_equal(lock_pages(&w.device, &a, 0, pages, UINT32_MAX, &data), E_INVALIDARG);
	assert_null(data);
	world_stop(&w);
}

static void lock_20_without_lockentire_and_pages_the_whole_allocation_is_locked(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = client_allocate(&w.device, 4 * PAGE, CPU);
	D3DDDICB_LOCK args = {.hAllocation = a};

	assert_int_equal(w.device.cb->pfnLockCb(w.device.handle, &args), S_OK);
	memset(args.pData, 0x5A, 4 * PAGE);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

static void lock_23_alf_03_an_allocation_not_created_cpu_visible_cannot_be_locked(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE hidden = client_allocate(&w.device, PAGE, 0),
		      visible = client_allocate(&w.device, PAGE, CPU);

	expect_lock_refused(&w, hidden, 0, E_INVALIDARG, "LOCK-23");
	expect_lock_refused(&w, hidden, DISCARD, E_INVALIDARG, "LOCK-23");
	use_now(&w, hidden, true); /* the GPU can use it all the same */
	client_lock(&w.device, visible, 0);
	assert_int_equal(client_unlock(&w.device, visible), S_OK);
	world_stop(&w);
}

static void lock_27_locks_nest_and_each_needs_its_unlock(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = client_allocate(&w.device, PAGE, CPU);
	uint32_t *first = client_lock(&w.device, a, 0);

	assert_ptr_equal(client_lock(&w.device, a, READ_ONLY), first);
	assert_ptr_equal(client_lock(&w.device, a, 0), first);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	*first = 1; /* still locked once */
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_int_equal(client_unlock(&w.device, a), E_INVALIDARG);
	assert_true(client_found(&w.client, "LOCK-28"));
	client_forget(&w.client);
	world_stop(&w);
}

static void lock_28_unlocking_an_unlocked_allocation_is_refused(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = client_allocate(&w.device, PAGE, CPU);

	assert_int_equal(client_unlock(&w.device, a), E_INVALIDARG);
	assert_true(client_found(&w.client, "LOCK-28"));
	client_forget(&w.client);
	client_lock(&w.device, a, 0);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_int_equal(client_unlock(&w.device, a), E_INVALIDARG);
	client_forget(&w.client);
	world_stop(&w);
}

static void lock_29_an_unlock_with_one_bad_handle_releases_nothing(void **state)
{
	struct world w;
	D3DKMT_HANDLE a[3];

	world_start(&w, state, NULL);
	for (int i = 0; i < 3; i++) {
		a[i] = client_allocate(&w.device, PAGE, CPU);
		client_lock(&w.device, a[i], 0);
	}
	const D3DKMT_HANDLE with_unknown[] = {a[0], a[1], 0xDEAD0000, a[2]},
			    twice[] = {a[0], a[1], a[0]}, with_null[] = {a[0], 0};

	assert_int_equal(unlock_many(&w.device, with_unknown, 4), E_INVALIDARG);
	assert_true(client_found(&w.client, "LOCK-29"));
	client_forget(&w.client);
	assert_int_equal(unlock_many(&w.device, twice, 3),
			 E_INVALIDARG); /* locked once, listed twice */
	assert_true(client_found(&w.client, "LOCK-28"));
	client_forget(&w.client);
	assert_int_equal(unlock_many(&w.device, with_null, 2), E_INVALIDARG);
	client_forget(&w.client);
	assert_int_equal(unlock_many(&w.device, a, 3), S_OK); /* so all three were still locked */
	client_lock(&w.device, a[0], 0);
	client_lock(&w.device, a[0], 0);
	client_lock(&w.device, a[1], 0);
	assert_int_equal(unlock_many(&w.device, twice, 3), S_OK);
	assert_int_equal(unlock_many(&w.device, twice, 1), E_INVALIDARG);
	client_forget(&w.client);
	world_stop(&w);
}

static void lock_29_an_unlock_may_list_many_handles(void **state)
{
	enum { COUNT = 300 };
	struct world w;
	D3DKMT_HANDLE a[COUNT];

	world_start(&w, state, NULL);
	for (int i = 0; i < COUNT; i++) {
		a[i] = client_allocate(&w.device, PAGE, CPU);
		client_lock(&w.device, a[i], 0);
	}
	assert_int_equal(unlock_many(&w.device, a, COUNT), S_OK);
	assert_int_equal(unlock_many(&w.device, a, 1), E_INVALIDARG);
	client_forget(&w.client);
	world_stop(&w);
}

static void lock_29_lock_31_a_handle_of_another_process_s_device_is_refused(void **state)
{
	struct world w;
	struct client_device other;

	world_start(&w, state, NULL);
	client_open(&w.client, &other);
	D3DKMT_HANDLE ours = client_allocate(&w.device, PAGE, CPU),
		      theirs = client_allocate(&other, PAGE, CPU);
	const D3DKMT_HANDLE mixed[] = {ours, 0};

	client_lock(&w.device, ours, 0);
	client_lock(&other, theirs, 0);
	/* Handles are per process: the number may exist here, but never stands for theirs. */
	if (theirs != ours)
		expect_lock_refused(&w, theirs, 0, E_INVALIDARG, "LOCK-31");
	assert_int_equal(unlock_many(&w.device, mixed, 2), E_INVALIDARG);
	client_forget(&w.client);
	assert_int_equal(client_unlock(&other, theirs), S_OK);
	assert_int_equal(client_unlock(&w.device, ours), S_OK);
	client_close(&other);
	world_stop(&w);
}

static void lock_31_a_handle_of_another_device_of_the_process_is_refused(void **state)
{
	struct world w;
	struct client_device second;

	world_start(&w, state, NULL);
	second = w.device;
	assert_int_equal(vidmm_device_create(w.device.process, w.client.adapter, &second.device),
			 0);
	second.handle = vidmm_device_handle(second.device);
	D3DKMT_HANDLE a = client_allocate(&second, PAGE, CPU);

	expect_lock_refused(&w, a, 0, E_INVALIDARG, "LOCK-31");
	client_lock(&second, a, 0);
	assert_int_equal(client_unlock(&w.device, a), E_INVALIDARG);
	assert_true(client_found(&w.client, "LOCK-29"));
	client_forget(&w.client);
	assert_int_equal(client_unlock(&second, a), S_OK);
	vidmm_device_destroy(second.device);
	world_stop(&w);
}

static void lock_31_a_destroyed_or_unknown_handle_is_refused(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = client_allocate(&w.device, PAGE, CPU);

	assert_int_equal(client_deallocate(&w.device, a), S_OK);
	expect_lock_refused(&w, a, 0, E_INVALIDARG, "LOCK-31");
	expect_lock_refused(&w, 0, 0, E_INVALIDARG, "LOCK-31");
	expect_lock_refused(&w, UINT32_MAX, 0, E_INVALIDARG, "LOCK-31");
	/* The old handle does not reach the slot's next owner. */
	D3DKMT_HANDLE b = client_allocate(&w.device, PAGE, CPU);
	assert_int_not_equal(a, b);
	expect_lock_refused(&w, a, 0, E_INVALIDARG, "LOCK-31");
	world_stop(&w);
}

static void lock_30_destroying_a_locked_allocation_drops_the_lock(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	for (uint32_t place = 0; place < 3; place++) {
		D3DKMT_HANDLE a = allocate_in(&w.device, PAGE, CPU, place == 2 ? APERTURE : 0);

		if (place)
			use_now(&w, a, true);
		client_lock(&w.device, a, 0);
		client_lock(&w.device, a, 0);
		assert_int_equal(client_deallocate(&w.device, a), S_OK);
		assert_int_equal(client_unlock(&w.device, a), E_INVALIDARG);
		client_forget(&w.client);
	}
	world_stop(&w);
}

static void lock_30_destroying_a_device_drops_its_locks(void **state)
{
	struct world w;
	struct client_device other;

	world_start(&w, state, NULL);
	client_open(&w.client, &other);
	D3DKMT_HANDLE a = client_allocate(&other, 64 * KIB, CPU);

	client_lock(&other, a, 0);
	client_close(&other);
	assert_int_equal(world_statistics(&w).allocations, 1); /* the gate */
	world_stop(&w);
}

static void lock_39_gpuvirtualaddress_is_not_written(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = client_allocate(&w.device, PAGE, CPU);
	D3DDDICB_LOCK args = {.hAllocation = a, .GpuVirtualAddress = 0x1234567890ull};

	assert_int_equal(w.device.cb->pfnLockCb(w.device.handle, &args), S_OK);
	assert_true(args.GpuVirtualAddress == 0x1234567890ull);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(lock_17_lockentire_with_a_page_list_is_refused),
		BOTH(lock_18_the_pointer_is_that_of_the_first_listed_page),
		BOTH(lock_18_a_page_past_the_end_is_refused),
		BOTH(lock_18_long_page_lists_are_accepted),
		BOTH(lock_20_without_lockentire_and_pages_the_whole_allocation_is_locked),
		BOTH(lock_23_alf_03_an_allocation_not_created_cpu_visible_cannot_be_locked),
		BOTH(lock_27_locks_nest_and_each_needs_its_unlock),
		BOTH(lock_28_unlocking_an_unlocked_allocation_is_refused),
		BOTH(lock_29_an_unlock_with_one_bad_handle_releases_nothing),
		BOTH(lock_29_an_unlock_may_list_many_handles),
		BOTH(lock_29_lock_31_a_handle_of_another_process_s_device_is_refused),
		BOTH(lock_31_a_handle_of_another_device_of_the_process_is_refused),
		BOTH(lock_31_a_destroyed_or_unknown_handle_is_refused),
		BOTH(lock_30_destroying_a_locked_allocation_drops_the_lock),
		BOTH(lock_30_destroying_a_device_drops_its_locks),
		BOTH(lock_39_gpuvirtualaddress_is_not_written),
	};

	return cmocka_run_group_tests_name("lock state", tests, NULL, NULL);
}
