/* SPDX-License-Identifier: MIT */
/*
 * Invalid calls that no driver should make: no structure, no device, no list, more entries than
 * exist. Each is answered with E_INVALIDARG, and later calls work.
 */
#include "world.h"

static void a_null_argument_structure_is_refused(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	const D3DDDI_DEVICECALLBACKS *cb = w.device.cb;
	HANDLE d = w.device.handle;

	assert_int_equal(cb->pfnAllocateCb(d, NULL), E_INVALIDARG);
	assert_int_equal(cb->pfnDeallocateCb(d, NULL), E_INVALIDARG);
	assert_int_equal(cb->pfnLockCb(d, NULL), E_INVALIDARG);
	assert_int_equal(cb->pfnUnlockCb(d, NULL), E_INVALIDARG);
	assert_int_equal(cb->pfnRenderCb(d, NULL), E_INVALIDARG);
	assert_int_equal(cb->pfnCreateContextCb(d, NULL), E_INVALIDARG);
	assert_int_equal(cb->pfnDestroyContextCb(d, NULL), E_INVALIDARG);
	assert_int_equal(cb->pfnOfferAllocationsCb(d, NULL), E_INVALIDARG);
	assert_int_equal(cb->pfnReclaimAllocationsCb(d, NULL), E_INVALIDARG);
	assert_int_equal(cb->pfnSetPriorityCb(d, NULL), E_INVALIDARG);
	assert_int_equal(cb->pfnQueryResidencyCb(d, NULL), E_INVALIDARG);
	client_forget(&w.client);
	use_now(&w, client_allocate(&w.device, PAGE, CPU), true);
	world_stop(&w);
}

static void a_null_device_is_refused(void **state)
{
	static uint64_t nonsense[512];
	struct world w;

	world_start(&w, state, NULL);
	const D3DDDI_DEVICECALLBACKS *cb = w.device.cb;
	D3DKMT_HANDLE a = client_allocate(&w.device, PAGE, CPU);

	for (int i = 0; i < 2; i++) {
		HANDLE d = i ? (HANDLE)nonsense : NULL;
		D3DDDICB_ALLOCATE allocate = {.NumAllocations = 1};
		D3DDDICB_DEALLOCATE deallocate = {.NumAllocations = 1, .HandleList = &a};
		D3DDDICB_LOCK lock = {.hAllocation = a, .pData = &w};
		D3DDDICB_UNLOCK unlock = {.NumAllocations = 1, .phAllocations = &a};
		D3DDDICB_CREATECONTEXT context = {0};
		D3DDDICB_DESTROYCONTEXT end = {.hContext = w.context.c.hContext};
		D3DDDICB_RENDER render = {.hContext = w.context.c.hContext};
		D3DDDICB_OFFERALLOCATIONS offer = {
			.HandleList = &a, .NumAllocations = 1, .Priority = 1};
		D3DDDICB_RECLAIMALLOCATIONS reclaim = {.HandleList = &a, .NumAllocations = 1};
		D3DDDICB_SETPRIORITY set = {
			.HandleList = &a, .NumAllocations = 1, .pPriorities = &a};
		D3DDDI_RESIDENCYSTATUS status = 8;
		D3DDDICB_QUERYRESIDENCY query = {
			.HandleList = &a, .NumAllocations = 1, .pResidencyStatus = &status};

		assert_int_equal(cb->pfnAllocateCb(d, &allocate), E_INVALIDARG);
		assert_int_equal(cb->pfnDeallocateCb(d, &deallocate), E_INVALIDARG);
		assert_int_equal(cb->pfnLockCb(d, &lock), E_INVALIDARG);
		assert_null(lock.pData);
		assert_int_equal(cb->pfnUnlockCb(d, &unlock), E_INVALIDARG);
		assert_int_equal(cb->pfnCreateContextCb(d, &context), E_INVALIDARG);
		assert_int_equal(cb->pfnDestroyContextCb(d, &end), E_INVALIDARG);
		assert_int_equal(cb->pfnRenderCb(d, &render), E_INVALIDARG);
		assert_int_equal(cb->pfnOfferAllocationsCb(d, &offer), E_INVALIDARG);
		assert_int_equal(cb->pfnReclaimAllocationsCb(d, &reclaim), E_INVALIDARG);
		assert_int_equal(cb->pfnSetPriorityCb(d, &set), E_INVALIDARG);
		assert_int_equal(cb->pfnQueryResidencyCb(d, &query), E_INVALIDARG);
		assert_int_equal(status, 8);
	}
	client_write(&w.device, a, PAGE, 1);
	world_stop(&w);
}

static void a_null_list_is_refused(void **state)
{
	struct world w;
	void *data;

	world_start(&w, state, NULL);
	const D3DDDI_DEVICECALLBACKS *cb = w.device.cb;
	HANDLE d = w.device.handle;
	D3DKMT_HANDLE a = client_allocate(&w.device, PAGE, CPU);

	for (UINT count = 1; count; count = count == 1 ? UINT32_MAX : 0) {
		D3DDDICB_ALLOCATE allocate = {.NumAllocations = count};
		D3DDDICB_DEALLOCATE deallocate = {.NumAllocations = count};
		D3DDDICB_UNLOCK unlock = {.NumAllocations = count};
		D3DDDICB_OFFERALLOCATIONS offer = {.NumAllocations = count, .Priority = 1};
		BOOL discarded = 6;
		D3DDDICB_RECLAIMALLOCATIONS reclaim = {.NumAllocations = count,
						       .pDiscarded = &discarded};

		assert_int_equal(cb->pfnAllocateCb(d, &allocate), E_INVALIDARG);
		assert_int_equal(cb->pfnDeallocateCb(d, &deallocate), E_INVALIDARG);
		assert_int_equal(cb->pfnUnlockCb(d, &unlock), E_INVALIDARG);
		assert_int_equal(cb->pfnOfferAllocationsCb(d, &offer), E_INVALIDARG);
		assert_int_equal(cb->pfnReclaimAllocationsCb(d, &reclaim), E_INVALIDARG);
		assert_int_equal(discarded, 6);
		assert_int_equal(lock_pages(&w.device, &a, 0, NULL, count, &data), E_INVALIDARG);
	}
	client_forget(&w.client);
	client_write(&w.device, a, PAGE, 1);
	world_stop(&w);
}

/* Empty lists are valid and do nothing. */
static void empty_lists_succeed_and_do_nothing(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	const D3DDDI_DEVICECALLBACKS *cb = w.device.cb;
	HANDLE d = w.device.handle;
	D3DKMT_HANDLE a = client_allocate(&w.device, PAGE, CPU);
	D3DDDICB_UNLOCK unlock = {.NumAllocations = 0, .phAllocations = &a};
	D3DDDICB_DEALLOCATE deallocate = {.NumAllocations = 0, .HandleList = &a};
	D3DDDICB_OFFERALLOCATIONS offer = {.HandleList = &a, .NumAllocations = 0, .Priority = 1};
	D3DDDICB_RECLAIMALLOCATIONS reclaim = {.HandleList = &a, .NumAllocations = 0};

	assert_int_equal(cb->pfnUnlockCb(d, &unlock), S_OK);
	assert_int_equal(cb->pfnDeallocateCb(d, &deallocate), S_OK);
	assert_int_equal(cb->pfnOfferAllocationsCb(d, &offer), S_OK);
	assert_int_equal(cb->pfnReclaimAllocationsCb(d, &reclaim), S_OK);
	client_write(&w.device, a, PAGE, 1);
	client_reference(&w.context, 0, false); /* a NULL element references no allocation */
	(void)client_try_submit(&w.context);
	client_forget(&w.client);
	use_now(&w, a, false);
	world_stop(&w);
}

/*
 * A page list that changes while it is read must not get past the check (decision 3 of the
 * architecture).
 */
struct racer {
	struct world *world;
	volatile UINT *pages;
	_Atomic bool stop;
};

/* The data race is intended. */
__attribute__((no_sanitize("thread"))) static void flip(void *argument)
{
	struct racer *r = argument;

	while (!atomic_load_explicit(&r->stop, memory_order_relaxed))
		for (int i = 0; i < 1000; i++)
			r->pages[0] = i & 1 ? 0x40000000 : 3;
}

static void lock_18_a_page_list_changed_by_another_thread_is_read_once(void **state)
{
	UINT pages[1] = {3};
	struct racer r = {.pages = pages};
	struct vidmm_thread *thread;
	struct world w;
	uint32_t good = 0, bad = 0;

	world_start(&w, state, NULL);
	r.world = &w;
	D3DKMT_HANDLE a = client_allocate(&w.device, 8 * PAGE, CPU);
	char *whole = client_lock(&w.device, a, 0);
	assert_int_equal(vidmm_thread_create(w.client.host, "flipper", flip, &r, &thread), 0);
	for (uint32_t i = 0; i < 5000 || !good || !bad; i++) {
		void *data;
		HRESULT result = lock_pages(&w.device, &a, 0, pages, 1, &data);

		if (result == S_OK) {
			assert_ptr_equal(data, whole + 3 * PAGE);
			assert_int_equal(client_unlock(&w.device, a), S_OK);
			good++;
		} else {
			assert_int_equal(result, E_INVALIDARG);
			bad++;
		}
	}
	atomic_store(&r.stop, true);
	vidmm_thread_join(thread);
	client_forget(&w.client);
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(a_null_argument_structure_is_refused),
		BOTH(a_null_device_is_refused),
		BOTH(a_null_list_is_refused),
		BOTH(empty_lists_succeed_and_do_nothing),
		ON_LINUX(lock_18_a_page_list_changed_by_another_thread_is_read_once),
	};

	return cmocka_run_group_tests_name("garbage", tests, NULL, NULL);
}
