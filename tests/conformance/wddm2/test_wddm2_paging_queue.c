/* SPDX-License-Identifier: MIT */
/* Paging queues: their fences, their order, their destruction, and waiting for them. */
#include "wddm2_world.h"

#include <inttypes.h>
#include <stdio.h>

static void at_once(struct scripted_miniport *m)
{
	wddm2_0(m);
	m->settings.complete_at_once = true;
}

static HRESULT destroy(struct client_device *device, D3DKMT_HANDLE queue)
{
	const D3DDDI_DESTROYPAGINGQUEUE args = {.hPagingQueue = queue};

	return device->cb->pfnDestroyPagingQueueCb(device->handle, &args);
}

static HRESULT wait_for(struct client_device *device, const D3DKMT_HANDLE *fences,
			const UINT64 *values, uint32_t count, uint32_t flags)
{
	const D3DDDICB_WAITFORSYNCHRONIZATIONOBJECTFROMCPU args = {.ObjectCount = count,
								   .ObjectHandleArray = fences,
								   .FenceValueArray = values,
								   .Flags.Value = flags};

	return device->cb->pfnWaitForSynchronizationObjectFromCpuCb(device->handle, &args);
}

/*
 * PRI-06: what must be paged reports a value, and is usable when the fence reaches it. What is
 * resident reports none.
 */
static void res_03_pri_06_memory_is_usable_at_the_paging_fence_value(void **state)
{
	struct world w;
	D3DDDI_MAKERESIDENT args;
	uint64_t last = 0;

	world_start(&w, state, wddm2_0);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	assert_int_equal(wddm2_fence(&queue), 0);
	for (uint32_t i = 0; i < 3; i++) {
		D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);

		assert_int_equal(wddm2_try_make_one(&w.device, &queue, a, &args), E_PENDING);
		assert_int_equal(args.NumAllocations, 1);
		assert_true(args.PagingFenceValue > last);
		for (uint32_t k = 0; k < 20; k++)
			vidmm_settle(w.client.host);
		assert_int_equal(wddm2_fence(&queue), last); /* the GPU has not filled it */
		last = args.PagingFenceValue;
		wddm2_await(&w, &queue, last);
		assert_int_equal(wddm2_fence(&queue), last);
		assert_true(wddm2_is_in_memory(&w.device, a));
		assert_int_equal(wddm2_try_make_one(&w.device, &queue, a, &args), S_OK);
		assert_int_equal(args.PagingFenceValue, 0);
	}
	wddm2_stop(&w);
}

/* Makes one resident while the n-th allocation of memory fails. Returns whether one failed. */
static bool make_with_refusal(void **state, uint32_t n)
{
	struct world w;
	D3DDDI_MAKERESIDENT args;

	world_start(&w, state, wddm2_0);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	(void)vidmm_fail_nth(VIDMM_FAIL_ALLOCATION, n);
	HRESULT result = wddm2_try_make_one(&w.device, &queue, a, &args);
	bool refused = !vidmm_fail_nth(VIDMM_FAIL_ALLOCATION, 0);
	if (result != E_PENDING) {
		assert_true(refused);
		assert_int_equal(result, E_OUTOFMEMORY);
		assert_int_equal(args.NumAllocations, 0);
		assert_int_equal(args.PagingFenceValue, 0);
		assert_int_equal(wddm2_evict(&w.device, a, 0), E_INVALIDARG); /* not listed */
		world_expect_finding(&w, "RES-06");
		assert_int_equal(wddm2_try_make_one(&w.device, &queue, a, &args), E_PENDING);
	}
	/* The first value: the refused call used none up. */
	assert_int_equal(args.NumAllocations, 1);
	assert_int_equal(args.PagingFenceValue, 1);
	assert_int_equal(wddm2_fence(&queue), 0);
	wddm2_await(&w, &queue, 1);
	assert_true(wddm2_is_in_memory(&w.device, a));
	wddm2_stop(&w);
	return refused;
}

static void res_03_q_480_without_memory_makeresident_queues_nothing(void **state)
{
	uint32_t n = 1;

	while (make_with_refusal(state, n))
		n++;
	assert_true(n > 1);
}

/* A submission right after the call, before the fence: it runs when its memory is resident. */
static void res_03_a_submission_before_the_fence_waits_for_its_memory(void **state)
{
	struct world w;
	D3DDDI_MAKERESIDENT args;

	world_start(&w, state, wddm2_0);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	assert_int_equal(wddm2_try_make_one(&w.device, &queue, a, &args), E_PENDING);
	world_submit_write(&w.context, a, 4, 0x44);
	for (uint32_t i = 0; i < 20; i++)
		vidmm_settle(w.client.host);
	assert_int_equal(world_render_submits(&w), 0);
	world_run(&w);
	assert_int_equal(world_word(&w, a, 4), 0x44);
	wddm2_stop(&w);
}

static void res_04_only_three_queue_priorities_are_accepted(void **state)
{
	static const int32_t bad[] = {-2, 2, 100, INT32_MIN};
	D3DDDICB_CREATEPAGINGQUEUE queue;
	struct world w;

	world_start(&w, state, wddm2_0);
	for (int32_t p = -1; p <= 1; p++) {
		queue = (D3DDDICB_CREATEPAGINGQUEUE){.Priority = (D3DDDI_PAGINGQUEUE_PRIORITY)p};
		assert_int_equal(w.device.cb->pfnCreatePagingQueueCb(w.device.handle, &queue),
				 S_OK);
	}
	for (uint32_t i = 0; i < 4; i++) {
		queue = (D3DDDICB_CREATEPAGINGQUEUE){.Priority =
							     (D3DDDI_PAGINGQUEUE_PRIORITY)bad[i]};
		assert_int_equal(w.device.cb->pfnCreatePagingQueueCb(w.device.handle, &queue),
				 E_INVALIDARG);
		world_expect_finding(&w, "RES-04");
		assert_int_equal(queue.hPagingQueue, 0);
		assert_null(queue.FenceValueCPUVirtualAddress);
	}
	queue = (D3DDDICB_CREATEPAGINGQUEUE){.PhysicalAdapterIndex = 1};
	assert_int_equal(w.device.cb->pfnCreatePagingQueueCb(w.device.handle, &queue),
			 E_INVALIDARG);
	world_expect_finding(&w, "RES-04");
	wddm2_stop(&w);
}

/* Requested in rising order of priority while there is no space; served in falling order. */
static void res_04_higher_priorities_are_served_first(void **state)
{
	D3DDDICB_CREATEPAGINGQUEUE queue[3];
	D3DDDI_MAKERESIDENT args[3];
	D3DKMT_HANDLE a[3];
	struct client_device other;
	struct client_context others;
	struct world w;

	world_start(&w, state, wddm2_0);
	client_open(&w.client, &other);
	client_context(&other, 0, &others);
	D3DDDICB_CREATEPAGINGQUEUE second = wddm2_queue(&other);
	D3DKMT_HANDLE all = wddm2_allocate(&other, 16 * MIB, WORLD_MEMORY);
	wddm2_make(&w, &other, &second, &all, 1);
	world_submit_use(&others, all);
	for (int32_t i = 0; i < 3; i++) {
		queue[i] = (D3DDDICB_CREATEPAGINGQUEUE){
			.Priority = (D3DDDI_PAGINGQUEUE_PRIORITY)(i - 1)};
		assert_int_equal(w.device.cb->pfnCreatePagingQueueCb(w.device.handle, &queue[i]),
				 S_OK);
		a[i] = wddm2_allocate(&w.device, (uint64_t)(i + 1) * MIB, WORLD_MEMORY);
		assert_int_equal(wddm2_try_make_one(&w.device, &queue[i], a[i], &args[i]),
				 E_PENDING);
	}
	uint32_t from = scripted_count(w.m, VIDMM_DDI_BUILD_PAGING_BUFFER), seen = 0;
	for (uint32_t i = 0; i < 3; i++)
		wddm2_await(&w, &queue[i], args[i].PagingFenceValue);
	for (uint32_t i = from; i < scripted_count(w.m, VIDMM_DDI_BUILD_PAGING_BUFFER); i++) {
		const DXGKARG_BUILDPAGINGBUFFER *op =
			&scripted_nth(w.m, VIDMM_DDI_BUILD_PAGING_BUFFER, i)->in.paging;

		if (op->Operation != DXGK_OPERATION_FILL)
			continue;
		/* threads: space may become free between two checks */
		if (w.kind == VIDMM_HOST_SIM)
			assert_int_equal(op->Fill.FillSize, (3 - seen) * MIB);
		seen++;
	}
	assert_int_equal(seen, 3);
	wddm2_run(&w);
	w.m->settings.complete_at_once = true;
	client_context_end(&others);
	client_close(&other);
	wddm2_stop(&w);
}

/*
 * MakeResident is pending because the GPU uses all memory. The allocation is evicted meanwhile, so
 * the operation completes without placing it.
 */
static void res_03_res_06_an_evict_cancels_the_placement_that_is_pending(void **state)
{
	D3DDDI_MAKERESIDENT args;
	struct client_device other;
	struct client_context others;
	struct world w;

	world_start(&w, state, wddm2_0);
	client_open(&w.client, &other);
	client_context(&other, 0, &others);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device), second = wddm2_queue(&other);
	D3DKMT_HANDLE all = wddm2_allocate(&other, 16 * MIB, WORLD_MEMORY),
		      a = wddm2_allocate(&w.device, MIB, WORLD_MEMORY);
	wddm2_make(&w, &other, &second, &all, 1);
	world_submit_use(&others, all);
	assert_int_equal(wddm2_try_make_one(&w.device, &queue, a, &args), E_PENDING);
	assert_int_equal(wddm2_evict(&w.device, a, 0), S_OK);
	uint32_t fills = wddm2_operations(&w, DXGK_OPERATION_FILL);
	wddm2_await(&w, &queue, args.PagingFenceValue);
	wddm2_run(&w);
	assert_int_equal(wddm2_operations(&w, DXGK_OPERATION_FILL), fills);
	assert_false(wddm2_is_in_memory(&w.device, a));
	assert_true(wddm2_is_in_memory(&other, all));
	w.m->settings.complete_at_once = true;
	client_context_end(&others);
	client_close(&other);
	wddm2_stop(&w);
}

/* MFN-03 and RES-04: the page that the client reads is not writable. */
static void res_04_the_fence_is_read_only(void **state)
{
	uintptr_t first, end;
	char line[256], access[5];
	bool found = false;
	struct world w;

	world_start(&w, state, wddm2_0);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	uintptr_t at = (uintptr_t)queue.FenceValueCPUVirtualAddress;
	FILE *maps = fopen("/proc/self/maps", "r");
	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &first, &end, access) == 3 &&
		    at >= first && at < end) {
			found = true;
			assert_int_equal(access[0], 'r');
			assert_int_equal(access[1], '-');
		}
	assert_int_equal(fclose(maps), 0);
	assert_true(found);
	assert_int_equal(at % 8, 0);
	wddm2_stop(&w);
}

struct ender {
	struct client_device *device;
	D3DKMT_HANDLE queue;
	HRESULT result;
	_Atomic bool done;
};

static void end_queue(void *argument)
{
	struct ender *e = argument;

	e->result = destroy(e->device, e->queue);
	atomic_store(&e->done, true);
}

static void res_11_destroying_a_queue_waits_for_its_work(void **state)
{
	struct vidmm_thread *thread;
	D3DDDI_MAKERESIDENT args;
	struct world w;

	world_start(&w, state, wddm2_0);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	const UINT64 zero = 0;
	assert_int_equal(wddm2_try_make_one(&w.device, &queue, a, &args), E_PENDING);
	struct ender e = {.device = &w.device, .queue = queue.hPagingQueue};
	assert_int_equal(vidmm_thread_create(w.client.host, "ends a queue", end_queue, &e, &thread),
			 0);
	for (uint32_t i = 0; i < 20; i++)
		vidmm_settle(w.client.host);
	assert_false(atomic_load(&e.done));
	while (!atomic_load(&e.done)) {
		scripted_complete_all(w.m);
		vidmm_settle(w.client.host);
	}
	vidmm_thread_join(thread);
	assert_int_equal(e.result, S_OK);
	assert_true(wddm2_is_in_memory(&w.device, a));
	assert_int_equal(destroy(&w.device, queue.hPagingQueue), E_INVALIDARG);
	world_expect_finding(&w, "RES-11");
	assert_int_equal(wddm2_try_make_one(&w.device, &queue, a, &args), E_INVALIDARG);
	world_expect_finding(&w, "RES-02");
	assert_int_equal(wait_for(&w.device, &queue.hSyncObject, &zero, 1, 0), E_INVALIDARG);
	world_expect_finding(&w, "SYN-22");
	assert_int_equal(wddm2_evict(&w.device, a, 0), S_OK); /* it was on the list all the time */
	wddm2_stop(&w);
}

static void res_11_destroying_a_device_destroys_its_paging_queues(void **state)
{
	struct client_device other;
	D3DDDI_MAKERESIDENT args;
	struct world w;

	world_start(&w, state, at_once);
	client_open(&w.client, &other);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&other);
	D3DKMT_HANDLE a = wddm2_allocate(&other, 64 * KIB, WORLD_MEMORY),
		      all = wddm2_allocate(&w.device, 16 * MIB, WORLD_MEMORY);
	HRESULT result = wddm2_try_make_one(&other, &queue, a, &args);
	assert_true(result == S_OK || result == E_PENDING);
	client_close(&other);
	queue = wddm2_queue(&w.device);
	wddm2_make(&w, &w.device, &queue, &all, 1); /* its memory is free */
	wddm2_stop(&w);
}

static void mfn_10_mfn_14_a_wait_is_satisfied_by_all_or_by_any_object(void **state)
{
	struct world w;
	D3DKMT_HANDLE fences[2];
	D3DDDI_MAKERESIDENT args;

	world_start(&w, state, at_once);
	D3DDDICB_CREATEPAGINGQUEUE one = wddm2_queue(&w.device), two = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	HRESULT result = wddm2_try_make_one(&w.device, &one, a, &args);
	assert_true(result == S_OK || result == E_PENDING);
	UINT64 values[2] = {args.PagingFenceValue, 0};
	fences[0] = one.hSyncObject;
	fences[1] = two.hSyncObject;
	assert_int_equal(wait_for(&w.device, fences, values, 2, 0), S_OK);
	assert_true(wddm2_fence(&one) >= values[0]);
	values[1] = UINT64_MAX;
	assert_int_equal(wait_for(&w.device, fences, values, 2, 1), S_OK);
	assert_int_equal(wait_for(&w.device, fences, values, 0, 0), E_INVALIDARG);
	world_expect_finding(&w, "MFN-14");
	assert_int_equal(wait_for(&w.device, fences, values, 1, 2), E_INVALIDARG);
	world_expect_finding(&w, "MFN-14");
	assert_int_equal(wait_for(&w.device, &one.hPagingQueue, values, 1, 0), E_INVALIDARG);
	world_expect_finding(&w, "SYN-22");
	assert_int_equal(wait_for(&w.device, NULL, values, 1, 0), E_INVALIDARG);
	world_expect_finding(&w, "SYN-33");
	assert_int_equal(wait_for(&w.device, fences, NULL, 1, 0), E_INVALIDARG);
	world_expect_finding(&w, "SYN-33");
	wddm2_stop(&w);
}

struct waiter {
	struct client_device device;
	D3DKMT_HANDLE fence;
	UINT64 value;
	HRESULT result;
	_Atomic bool done;
};

static void wait_in_thread(void *argument)
{
	struct waiter *v = argument;

	v->result = wait_for(&v->device, &v->fence, &v->value, 1, 0);
	atomic_store(&v->done, true);
}

static void mfn_11_a_wait_blocks_until_the_value_is_reached(void **state)
{
	struct vidmm_thread *thread;
	D3DDDI_MAKERESIDENT args;
	struct world w;

	world_start(&w, state, wddm2_0);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	assert_int_equal(wddm2_try_make_one(&w.device, &queue, a, &args), E_PENDING);
	struct waiter v = {
		.device = w.device, .fence = queue.hSyncObject, .value = args.PagingFenceValue};
	assert_int_equal(vidmm_thread_create(w.client.host, "waits for a fence", wait_in_thread, &v,
					     &thread),
			 0);
	for (uint32_t i = 0; i < 20; i++)
		vidmm_settle(w.client.host);
	assert_false(atomic_load(&v.done));
	while (!atomic_load(&v.done)) {
		scripted_complete_all(w.m);
		vidmm_settle(w.client.host);
	}
	vidmm_thread_join(thread);
	assert_int_equal(v.result, S_OK);
	assert_true(wddm2_fence(&queue) >= v.value);
	wddm2_stop(&w);
}

/* Waiters for a value that is never reached are released by destroying the queue, or the device. */
static void mfn_17_sfl_30_destroying_a_fence_releases_its_waiters(void **state)
{
	struct world w;

	world_start(&w, state, at_once);
	for (uint32_t i = 0; i < 2; i++) {
		struct vidmm_thread *thread;
		struct waiter v = {.value = UINT64_MAX};

		client_open(&w.client, &v.device);
		D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&v.device);
		v.fence = queue.hSyncObject;
		assert_int_equal(vidmm_thread_create(w.client.host, "waits for ever",
						     wait_in_thread, &v, &thread),
				 0);
		vidmm_settle(w.client.host); /* now it waits (sim), or soon (threads) */
		assert_false(atomic_load(&v.done));
		if (!i)
			assert_int_equal(destroy(&v.device, queue.hPagingQueue), S_OK);
		else
			client_close(&v.device);
		vidmm_thread_join(thread);
		/* A thread that calls after the destruction finds no such object. */
		bool late = w.kind == VIDMM_HOST_LINUX && v.result == E_INVALIDARG;
		assert_true(v.result == E_FAIL || late);
		if (!i)
			client_close(&v.device);
		if (late)
			client_forget(&w.client);
	}
	wddm2_stop(&w);
}

/* Clients can wait for it, with CPU calls at least, and do nothing else with it. */
static void mfn_35_a_paging_queue_fence_accepts_waits_only(void **state)
{
	UINT64 value = 0;
	struct world w;

	world_start(&w, state, at_once);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	assert_int_equal(wait_for(&w.device, &queue.hSyncObject, &value, 1, 0), S_OK);
	const D3DDDICB_DESTROYSYNCHRONIZATIONOBJECT end = {.hSyncObject = queue.hSyncObject};
	assert_int_equal(w.device.cb->pfnDestroySynchronizationObjectCb(w.device.handle, &end),
			 E_INVALIDARG);
	world_expect_finding(&w, "MFN-35");
	value = 100;
	const D3DDDICB_SIGNALSYNCHRONIZATIONOBJECTFROMCPU signal = {.ObjectCount = 1,
								    .ObjectHandleArray =
									    &queue.hSyncObject,
								    .FenceValueArray = &value};
	assert_int_equal(
		w.device.cb->pfnSignalSynchronizationObjectFromCpuCb(w.device.handle, &signal),
		E_ACCESSDENIED);
	world_expect_finding(&w, "MFN-35");
	assert_int_equal(wddm2_fence(&queue), 0);
	wddm2_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(res_03_pri_06_memory_is_usable_at_the_paging_fence_value),
		ON_BOTH(res_03_q_480_without_memory_makeresident_queues_nothing),
		ON_BOTH(res_03_a_submission_before_the_fence_waits_for_its_memory),
		ON_BOTH(res_04_only_three_queue_priorities_are_accepted),
		ON_BOTH(res_04_higher_priorities_are_served_first),
		ON_BOTH(res_03_res_06_an_evict_cancels_the_placement_that_is_pending),
		ON_BOTH(res_04_the_fence_is_read_only),
		ON_BOTH(res_11_destroying_a_queue_waits_for_its_work),
		ON_BOTH(res_11_destroying_a_device_destroys_its_paging_queues),
		ON_BOTH(mfn_10_mfn_14_a_wait_is_satisfied_by_all_or_by_any_object),
		ON_BOTH(mfn_11_a_wait_blocks_until_the_value_is_reached),
		ON_BOTH(mfn_17_sfl_30_destroying_a_fence_releases_its_waiters),
		ON_BOTH(mfn_35_a_paging_queue_fence_accepts_waits_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
