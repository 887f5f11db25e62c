/* SPDX-License-Identifier: MIT */
/*
 * Residency lists, paging queues and Lock2 during resets of the adapter or an engine, power
 * changes, and preemption: RES, TDR, TDRS, PNP, PRE. On the simulator, with virtual time.
 */
#include "wddm2_world.h"

#include <string.h>

enum { STANDBY = VIDMM_SLEEP_STANDBY };

static void per_engine(struct scripted_miniport *m)
{
	wddm2_0(m);
	m->settings.caps.SupportPerEngineTDR = 1;
	m->settings.table.DxgkDdiResetEngine = scripted_reset_engine;
	m->settings.table.DxgkDdiQueryEngineStatus = scripted_query_engine_status;
	m->settings.table.DxgkDdiQueryDependentEngineGroup = scripted_query_engine_group;
}

/* With timeouts. */
static void start(struct world *w, void **state, world_setup *setup)
{
	static const struct vidmm_tdr_options tdr = VIDMM_TDR_DEFAULTS;
	const struct client_options options = {.tdr = &tdr};

	world_start_with(w, state, setup, &options);
	world_open(w);
}

static void with_budgets(struct scripted_miniport *m)
{
	DXGK_SEGMENTFLAGS local = {.LocalBudgetGroup = 1};

	wddm2_0(m);
	m->settings.segment[0].flags |= local.Value;
}

static void advance_time(struct world *w, uint64_t nanoseconds)
{
	vidmm_sleep_until_ns(w->client.host, vidmm_now_ns(w->client.host) + nanoseconds);
	vidmm_settle(w->client.host);
}

/* The GPU hangs with its present packets; the time is long enough for a reset. */
static void hang(struct world *w)
{
	w->m->settings.complete_at_once = false;
	advance_time(w, 10000000000);
	w->m->settings.complete_at_once = true;
	vidmm_adapter_check(w->client.adapter);
}

/* Another client's device, whose packet never ends. */
struct guilty {
	struct client_device device;
	struct client_context context;
};

static void start_guilty(struct world *w, struct guilty *g)
{
	client_open(&w->client, &g->device);
	client_context(&g->device, 0, &g->context);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&g->device);
	D3DKMT_HANDLE a = wddm2_allocate(&g->device, 64 * KIB, WORLD_MEMORY);

	wddm2_make(w, &g->device, &queue, &a, 1);
	world_submit_use(&g->context, a);
}

static void end_guilty(struct guilty *g)
{
	client_context_end(&g->context);
	client_close(&g->device);
}

static HRESULT try_lock2(struct client_device *device, D3DKMT_HANDLE a, uint32_t **words)
{
	D3DDDICB_LOCK2 args = {.hAllocation = a};
	HRESULT result = device->cb->pfnLock2Cb(device->handle, &args);

	*words = args.pData;
	return result;
}

static uint32_t *lock2(struct client_device *device, D3DKMT_HANDLE a)
{
	uint32_t *words;

	assert_int_equal(try_lock2(device, a, &words), S_OK);
	return words;
}

static void unlock2(struct client_device *device, D3DKMT_HANDLE a)
{
	const D3DDDICB_UNLOCK2 args = {.hAllocation = a};

	assert_int_equal(device->cb->pfnUnlock2Cb(device->handle, &args), S_OK);
}

static HRESULT destroy_queue(struct client_device *device, const D3DDDICB_CREATEPAGINGQUEUE *queue)
{
	const D3DDDI_DESTROYPAGINGQUEUE args = {.hPagingQueue = queue->hPagingQueue};

	return device->cb->pfnDestroyPagingQueueCb(device->handle, &args);
}

struct waiter {
	struct client_device device;
	D3DKMT_HANDLE fence;
	UINT64 value;
	HRESULT result;
	struct vidmm_thread *thread;
	bool done;
};

static HRESULT wait_for(struct client_device *device, const D3DKMT_HANDLE *fence,
			const UINT64 *value)
{
	const D3DDDICB_WAITFORSYNCHRONIZATIONOBJECTFROMCPU args = {
		.ObjectCount = 1, .ObjectHandleArray = fence, .FenceValueArray = value};

	return device->cb->pfnWaitForSynchronizationObjectFromCpuCb(device->handle, &args);
}

static void wait_in_thread(void *argument)
{
	struct waiter *v = argument;

	v->result = wait_for(&v->device, &v->fence, &v->value);
	v->done = true;
}

static void start_waiter(struct world *w, struct waiter *v, const struct client_device *device,
			 const D3DDDICB_CREATEPAGINGQUEUE *queue, uint64_t value)
{
	*v = (struct waiter){.device = *device, .fence = queue->hSyncObject, .value = value};
	assert_int_equal(vidmm_thread_create(w->client.host, "waits for a fence", wait_in_thread, v,
					     &v->thread),
			 0);
	vidmm_settle(w->client.host);
	assert_false(v->done);
}

/* ---- adapter reset ---- */

static void expect_lost(struct client_device *device, const D3DDDICB_CREATEPAGINGQUEUE *queue,
			D3DKMT_HANDLE a)
{
	D3DDDICB_CREATEPAGINGQUEUE other = {0};
	D3DDDI_MAKERESIDENT args;
	UINT64 zero = 0;
	uint32_t *words;

	assert_int_equal(wddm2_try_make_one(device, queue, a, &args), D3DDDIERR_DEVICEREMOVED);
	assert_int_equal(wddm2_evict(device, a, 0), D3DDDIERR_DEVICEREMOVED);
	assert_int_equal(try_lock2(device, a, &words), D3DDDIERR_DEVICEREMOVED);
	assert_int_equal(wait_for(device, &queue->hSyncObject, &zero), D3DDDIERR_DEVICEREMOVED);
	assert_int_equal(device->cb->pfnCreatePagingQueueCb(device->handle, &other),
			 D3DDDIERR_DEVICEREMOVED);
	assert_true(wddm2_fence(queue) == UINT64_MAX); /* it stays readable */
	assert_int_equal(destroy_queue(device, queue), S_OK);
}

/* One thread waits for work in progress, another for a value that would never have been reached. */
static void tdrs_14_tdr_09_a_reset_releases_paging_fence_waiters(void **state)
{
	struct waiter under_way, never;
	struct guilty g;
	D3DDDI_MAKERESIDENT args;
	struct world w;

	start(&w, state, wddm2_0);
	start_guilty(&w, &g);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);

	assert_int_equal(wddm2_try_make_one(&w.device, &queue, a, &args), E_PENDING);
	start_waiter(&w, &under_way, &w.device, &queue, args.PagingFenceValue);
	start_waiter(&w, &never, &w.device, &queue, UINT64_MAX - 1);
	hang(&w);
	vidmm_thread_join(under_way.thread);
	vidmm_thread_join(never.thread);
	assert_int_equal(under_way.result, S_OK); /* TDRS-01 */
	assert_int_equal(never.result, S_OK);
	expect_lost(&w.device, &queue, a);
	end_guilty(&g);
	wddm2_stop(&w);
}

/*
 * The list of a lost device does not count: its process has its whole budget again, and the memory
 * is free.
 */
static void tdr_07_res_10_a_lost_device_uses_no_budget(void **state)
{
	struct client_device second;
	struct client_context context;
	D3DDDI_MAKERESIDENT args;
	struct guilty g;
	struct world w;

	start(&w, state, with_budgets);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 12 * MIB, WORLD_MEMORY);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	start_guilty(&w, &g);
	assert_int_equal(vidmm_process_set_budget(w.device.process, w.client.adapter, 0, 12 * MIB),
			 0);
	hang(&w);
	second = w.device;
	assert_int_equal(vidmm_device_create(w.device.process, w.client.adapter, &second.device),
			 0);
	second.handle = vidmm_device_handle(second.device);
	client_context(&second, 0, &context);
	D3DDDICB_CREATEPAGINGQUEUE queue2 = wddm2_queue(&second);
	D3DKMT_HANDLE b = wddm2_allocate(&second, 12 * MIB, WORLD_MEMORY);
	HRESULT result = wddm2_try_make_one(&second, &queue2, b, &args);
	assert_true(result == S_OK || result == E_PENDING); /* within the budget */
	wddm2_await(&w, &queue2, args.PagingFenceValue);
	world_submit_write(&context, b, 64, 0xB0B);
	wddm2_run(&w);
	assert_int_equal(lock2(&second, b)[16], 0xB0B);
	unlock2(&second, b);
	client_context_end(&context);
	vidmm_device_destroy(second.device);
	end_guilty(&g);
	wddm2_stop(&w);
}

/*
 * A lock keeps an operation waiting; the reset ends the operation, and the unlock works as usual.
 */
static void lock_48_tdr_11_a_locked_allocation_not_committed_survives_a_reset(void **state)
{
	D3DDDI_MAKERESIDENT args;
	struct waiter v;
	struct guilty g;
	struct world w;

	start(&w, state, wddm2_0);
	start_guilty(&w, &g);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	uint32_t *words = lock2(&w.device, a);

	words[5] = 0x5AFE;
	assert_int_equal(wddm2_try_make_one(&w.device, &queue, a, &args), E_PENDING);
	start_waiter(&w, &v, &w.device, &queue, args.PagingFenceValue);
	hang(&w);
	vidmm_thread_join(v.thread);
	assert_int_equal(v.result, S_OK);
	assert_int_equal(words[5], 0x5AFE);
	words[6] = 1;
	unlock2(&w.device, a);
	expect_lost(&w.device, &queue, a);
	end_guilty(&g);
	wddm2_stop(&w);
}

/* Its backing store in system memory exists all the time (PAG-12 is 1.x), with the old content. */
static void tdr_11_a_lock_in_memory_shows_zeros_after_a_reset(void **state)
{
	struct guilty g;
	struct world w;

	start(&w, state, wddm2_0);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a[2];

	for (uint32_t i = 0; i < 2; i++) {
		a[i] = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
		lock2(&w.device, a[i])[5] = 0x01D;
		unlock2(&w.device, a[i]);
	}
	wddm2_make(&w, &w.device, &queue, a, 2);
	assert_true(wddm2_is_in_memory(&w.device, a[0]));
	uint32_t *words = lock2(&w.device, a[0]);
	assert_int_equal(words[5], 0x01D);
	words[6] = 0x2EE;
	start_guilty(&w, &g);
	hang(&w);
	for (uint32_t i = 0; i < 64 * KIB / 4; i++)
		assert_int_equal(words[i], 0);
	words[5] = 7;
	vidmm_adapter_check(w.client.adapter);
	unlock2(&w.device, a[0]);
	end_guilty(&g);
	wddm2_stop(&w);
}

/* PRI-10: the content was not written to in memory, so its backing store is equal. */
static void tdr_11_pri_10_content_not_written_to_survives_a_reset(void **state)
{
	struct guilty g;
	struct world w;

	start(&w, state, wddm2_0);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);

	lock2(&w.device, a)[5] = 0x01D;
	unlock2(&w.device, a);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	assert_int_equal(wddm2_evict(&w.device, a, NOT_WRITTEN_TO | EVICT_ONLY_IF_NECESSARY), S_OK);
	assert_true(wddm2_is_in_memory(&w.device, a));
	const uint32_t *words = lock2(&w.device, a);
	start_guilty(&w, &g);
	hang(&w);
	assert_int_equal(words[5], 0x01D);
	unlock2(&w.device, a);
	end_guilty(&g);
	wddm2_stop(&w);
}

/* A new device opens it: the content is lost, so it cannot be made resident; no count changes. */
static void tdr_11_makeresident_of_lost_content_fails(void **state)
{
	static char resource;
	struct scripted_allocation spec = {.size_bytes = 64 * KIB,
					   .flags = PHYSICAL,
					   .read_set = WORLD_MEMORY,
					   .write_set = WORLD_MEMORY};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec)};
	D3DDDICB_ALLOCATE create = {
		.hResource = &resource, .NumAllocations = 1, .pAllocationInfo = &info};
	struct client_device second;
	D3DKMT_HANDLE list[2];
	uint32_t global, km_resource, count = 1;
	struct guilty g;
	struct world w;

	start(&w, state, wddm2_0);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	assert_int_equal(vidmm_resource_set_shared(w.device.device, &resource), 0);
	assert_int_equal(w.device.cb->pfnAllocateCb(w.device.handle, &create), S_OK);
	assert_int_equal(vidmm_resource_share(w.device.device, create.hKMResource, &global), 0);
	wddm2_make(&w, &w.device, &queue, &info.hAllocation, 1);
	start_guilty(&w, &g);
	hang(&w);
	client_open(&w.client, &second);
	assert_int_equal(vidmm_resource_open(second.device, global, &km_resource, &list[1], &count),
			 0);
	list[0] = wddm2_allocate(&second, 64 * KIB, WORLD_MEMORY);
	D3DDDICB_CREATEPAGINGQUEUE queue2 = wddm2_queue(&second);
	D3DDDI_MAKERESIDENT args = {
		.hPagingQueue = queue2.hPagingQueue, .NumAllocations = 2, .AllocationList = list};
	assert_int_equal(wddm2_try_make(&second, &args), (HRESULT)0xC0262116);
	assert_int_equal(args.NumAllocations, 0);
	assert_int_equal(wddm2_evict(&second, list[0], 0), E_INVALIDARG);
	world_expect_finding(&w, "RES-06");
	wddm2_make(&w, &second, &queue2, list, 1); /* without the lost allocation */
	client_close(&second);
	end_guilty(&g);
	wddm2_stop(&w);
}

/*
 * RES-07: it was to be evicted when the packet that references it is complete. The reset evicts it
 * and completes the packet.
 */
static void res_07_tdr_09_a_reset_completes_a_pending_eviction(void **state)
{
	struct world w;

	start(&w, state, wddm2_0);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a[] = {wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY),
			     wddm2_allocate(&w.device, 64 * KIB, WORLD_APERTURE)};

	wddm2_make(&w, &w.device, &queue, a, 2);
	world_use(&w.context, a[0]);
	world_submit_use(&w.context, a[1]);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(wddm2_evict(&w.device, a[i], 0), S_OK);
	assert_true(wddm2_is_in_memory(&w.device, a[0]));
	scripted_forget(w.m);
	hang(&w);
	struct vidmm_adapter_statistics s = {.struct_size = sizeof(s)};
	vidmm_adapter_statistics(w.client.adapter, &s);
	assert_int_equal(s.segment[0].resident_bytes, 0);
	assert_int_equal(s.mapped_bytes, 0);
	assert_int_equal(destroy_queue(&w.device, &queue), S_OK);
	assert_int_equal(client_deallocate(&w.device, a[0]), S_OK);
	assert_int_equal(client_deallocate(&w.device, a[1]), S_OK);
	wddm2_stop(&w);
}

/* ---- engine resets ---- */

static void tdr_15_res_08_surviving_devices_keep_their_residency_lists(void **state)
{
	struct waiter lost;
	struct guilty g;
	D3DDDI_MAKERESIDENT args;
	struct world w;

	start(&w, state, per_engine);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 12 * MIB, WORLD_MEMORY);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	world_submit_write(&w.context, a, 64, 0xAAA);
	wddm2_run(&w);
	start_guilty(&w, &g);
	D3DDDICB_CREATEPAGINGQUEUE theirs = wddm2_queue(&g.device);
	D3DKMT_HANDLE b = wddm2_allocate(&g.device, 12 * MIB, WORLD_MEMORY);
	/* Our packet is behind theirs on the node, and our memory is what they need. */
	world_submit_write(&w.context, a, 68, 0xBBB);
	assert_int_equal(wddm2_try_make_one(&g.device, &theirs, b, &args), E_PENDING);
	start_waiter(&w, &lost, &g.device, &theirs, args.PagingFenceValue);
	scripted_forget(w.m);
	advance_time(&w, 4000000000); /* long enough for a timeout of theirs, not of ours */
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_RESET_ENGINE), 1);
	vidmm_thread_join(lost.thread);
	assert_int_equal(lost.result, S_OK);
	assert_true(wddm2_fence(&theirs) == UINT64_MAX);
	vidmm_adapter_check(w.client.adapter);
	expect_lost(&g.device, &theirs, b);
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_RESET_FROM_TIMEOUT), 0);
	w.m->settings.complete_at_once = true;
	wddm2_run(&w);
	/* Still on the list: Evict succeeds once and fails then. */
	assert_int_equal(lock2(&w.device, a)[16], 0xAAA);
	assert_int_equal(lock2(&w.device, a)[17], 0xBBB);
	unlock2(&w.device, a);
	unlock2(&w.device, a);
	assert_true(wddm2_fence(&queue) != UINT64_MAX);
	assert_int_equal(wddm2_evict(&w.device, a, 0), S_OK);
	assert_int_equal(wddm2_evict(&w.device, a, 0), E_INVALIDARG);
	world_expect_finding(&w, "RES-06");
	end_guilty(&g);
	wddm2_stop(&w);
}

/* ---- power ---- */

static void lose_content(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	(void)context;
	if (call->ddi != VIDMM_DDI_SET_POWER_STATE || call->in.power.state == PowerDeviceD0)
		return;
	memset(m->bar + m->settings.segment[0].bar_offset, 0xDD, m->settings.segment[0].size_bytes);
	memset(m->page_table[1], 0,
	       (m->settings.segment[1].size_bytes >> 12) * sizeof(*m->page_table[1]));
}

static void loses_content_without_power(struct scripted_miniport *m)
{
	wddm2_0(m);
	m->settings.complete_at_once = true;
	m->hook = lose_content;
}

static void set_power(struct world *w, uint32_t power)
{
	assert_int_equal(vidmm_adapter_set_power(w->client.adapter, power,
						 power == VIDMM_POWER_D0 ? 0 : STANDBY),
			 0);
	vidmm_adapter_check(w->client.adapter);
}

static void expect_silence(struct world *w)
{
	const struct scripted_call *call;
	uint32_t last = 0, count = 0;

	for (uint32_t i = 0; (call = scripted_at(w->m, i)) != NULL; i++) {
		count++;
		if (call->ddi == VIDMM_DDI_SET_POWER_STATE)
			last = i + 1;
	}
	assert_int_not_equal(last, 0);
	assert_int_equal(count, last);
}

static void pnp_05_res_08_the_residency_list_is_restored_at_power_on(void **state)
{
	struct world w;

	start(&w, state, loses_content_without_power);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a[] = {wddm2_allocate(&w.device, 8 * MIB, WORLD_MEMORY),
			     wddm2_allocate(&w.device, MIB, WORLD_APERTURE)};

	wddm2_make(&w, &w.device, &queue, a, 2);
	world_submit_write(&w.context, a[0], 64, 0xAAA);
	world_submit_write(&w.context, a[1], 64, 0xBBB);
	wddm2_run(&w);
	set_power(&w, VIDMM_POWER_D3);
	set_power(&w, VIDMM_POWER_D0);
	world_submit_write(&w.context, a[1], 68,
			   0xCCC); /* references only one: the whole list is resident */
	wddm2_run(&w);
	assert_true(wddm2_is_in_memory(&w.device, a[0]));
	assert_int_equal(lock2(&w.device, a[0])[16], 0xAAA);
	assert_int_equal(lock2(&w.device, a[1])[16], 0xBBB);
	assert_int_equal(lock2(&w.device, a[1])[17], 0xCCC);
	unlock2(&w.device, a[0]);
	unlock2(&w.device, a[1]);
	unlock2(&w.device, a[1]);
	assert_int_equal(wddm2_evict(&w.device, a[0], 0), S_OK);
	wddm2_stop(&w);
}

/*
 * A wait for what a lock blocks would never end if the waiting thread were not made to leave the
 * adapter first.
 */
static void pnp_05_mfn_18_a_wait_continues_after_power_on(void **state)
{
	D3DDDI_MAKERESIDENT args;
	struct waiter held, other;
	struct world w;

	start(&w, state, loses_content_without_power);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	uint32_t *words = lock2(&w.device, a);

	words[3] = 33;
	assert_int_equal(wddm2_try_make_one(&w.device, &queue, a, &args), E_PENDING);
	start_waiter(&w, &held, &w.device, &queue, args.PagingFenceValue);
	start_waiter(&w, &other, &w.device, &queue, UINT64_MAX);
	set_power(&w, VIDMM_POWER_D3);
	advance_time(&w, 1000000000);
	expect_silence(&w);
	words[4] = 44;
	set_power(&w, VIDMM_POWER_D0);
	advance_time(&w, 1000000);
	assert_false(held.done);
	assert_true(wddm2_fence(&queue) < args.PagingFenceValue);
	unlock2(&w.device, a);
	vidmm_thread_join(held.thread);
	assert_int_equal(held.result, S_OK);
	assert_true(wddm2_is_in_memory(&w.device, a));
	assert_false(other.done);
	assert_int_equal(destroy_queue(&w.device, &queue), S_OK);
	vidmm_thread_join(other.thread);
	assert_int_equal(other.result, E_FAIL); /* SFL-30 */
	assert_int_equal(lock2(&w.device, a)[3], 33);
	assert_int_equal(words[4], 44);
	unlock2(&w.device, a);
	wddm2_stop(&w);
}

/*
 * LKR-09: the GPU uses what the CPU has locked; left outside of memory, the next packet could not
 * run.
 */
static void pnp_05_lock_45_locked_content_returns_to_memory_at_power_on(void **state)
{
	struct world w;

	start(&w, state, loses_content_without_power);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, MIB, WORLD_MEMORY);

	wddm2_make(&w, &w.device, &queue, &a, 1);
	uint32_t *words = lock2(&w.device, a);
	words[1] = 11;
	set_power(&w, VIDMM_POWER_D3);
	assert_int_equal(words[1], 11);
	words[2] = 22;
	set_power(&w, VIDMM_POWER_D0);
	assert_true(wddm2_is_in_memory(&w.device, a));
	words[3] = 33;
	world_submit_write(&w.context, a, 16, 44);
	wddm2_run(&w);
	for (uint32_t i = 1; i <= 4; i++)
		assert_int_equal(words[i], 11 * i); /* one memory for both */
	unlock2(&w.device, a);
	wddm2_stop(&w);
}

/* Returns whether the n-th mapping that the return asked for was made, and so refused. */
static bool wake_with_refusal(void **state, uint32_t n)
{
	struct world w;

	start(&w, state, loses_content_without_power);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, MIB, WORLD_MEMORY);

	wddm2_make(&w, &w.device, &queue, &a, 1);
	uint32_t *words = lock2(&w.device, a);
	words[1] = 11;
	set_power(&w, VIDMM_POWER_D3);
	(void)vidmm_fail_nth(VIDMM_FAIL_MAPPING, n);
	set_power(&w, VIDMM_POWER_D0);
	bool refused = !vidmm_fail_nth(VIDMM_FAIL_MAPPING, 0);

	words[2] = 22;
	world_submit_write(&w.context, a, 12, 33);
	wddm2_run(&w);
	for (uint32_t i = 1; i <= 3; i++)
		assert_int_equal(words[i], 11 * i);
	unlock2(&w.device, a);
	wddm2_stop(&w);
	return refused;
}

static void pnp_05_q_480_a_refused_mapping_loses_nothing_of_a_locked_pointer(void **state)
{
	uint32_t n = 1;

	while (wake_with_refusal(state, n))
		n++;
	assert_true(n > 1 || client_is_out_of_process());
}

/*
 * If the system refuses each mapping, the pointer faults, and the next lock shows the content.
 */
static void pnp_05_q_480_a_pointer_that_cannot_follow_is_reported(void **state)
{
	struct world w;

	start(&w, state, loses_content_without_power);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, MIB, WORLD_MEMORY);

	wddm2_make(&w, &w.device, &queue, &a, 1);
	lock2(&w.device, a)[1] = 11;
	set_power(&w, VIDMM_POWER_D3);
	vidmm_fail_by_seed(1u << VIDMM_FAIL_MAPPING, 1, 1);
	set_power(&w, VIDMM_POWER_D0);
	vidmm_fail_by_seed(0, 0, 0);
	assert_true(client_is_out_of_process() || client_told(&w.client, (uint32_t)STATUS_NO_MEMORY,
							      "Q-480: the system refuses"));
	unlock2(&w.device, a);
	assert_int_equal(lock2(&w.device, a)[1], 11);
	unlock2(&w.device, a);
	wddm2_stop(&w);
}

/*
 * Space that is free only because everything was evicted for power off is not used: waiting
 * requests keep waiting.
 */
static void pnp_05_res_04_paging_queue_work_is_suspended_without_power(void **state)
{
	struct client_device other;
	D3DDDI_MAKERESIDENT args;
	struct world w;

	start(&w, state, loses_content_without_power);
	client_open(&w.client, &other);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device), theirs = wddm2_queue(&other);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 12 * MIB, WORLD_MEMORY),
		      b = wddm2_allocate(&other, 12 * MIB, WORLD_MEMORY);

	wddm2_make(&w, &w.device, &queue, &a, 1);
	w.m->settings.complete_at_once = false;
	world_submit_write(&w.context, a, 4, 11);
	uint32_t *words = lock2(&w.device, a);
	assert_int_equal(wddm2_try_make_one(&other, &theirs, b, &args), E_PENDING);
	w.m->settings.complete_at_once = true;
	scripted_complete_all(w.m);
	set_power(&w, VIDMM_POWER_D3);
	advance_time(&w, 1000000000);
	expect_silence(&w);
	assert_true(wddm2_fence(&theirs) < args.PagingFenceValue);
	set_power(&w, VIDMM_POWER_D0);
	assert_true(wddm2_is_in_memory(&w.device, a));
	assert_int_equal(words[1], 11);
	unlock2(&w.device, a);
	wddm2_await(&w, &theirs, args.PagingFenceValue);
	client_close(&other);
	wddm2_stop(&w);
}

/* PAG-32 would discard it. A power change must lose nothing, so it is refused. */
static void pnp_05_pag_32_unencrypted_protected_content_refuses_power_off(void **state)
{
	const struct scripted_allocation spec = {.size_bytes = 64 * KIB,
						 .flags = PHYSICAL | HARDWARE_PROTECTED,
						 .read_set = WORLD_MEMORY,
						 .write_set = WORLD_MEMORY};
	D3DKMT_HANDLE a;
	struct world w;

	start(&w, state, loses_content_without_power);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	assert_int_equal(wddm2_try_allocate(&w.device, &spec, &a), S_OK);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	world_submit_write(&w.context, a, 64, 0xAAA);
	wddm2_run(&w);
	assert_int_not_equal(vidmm_adapter_set_power(w.client.adapter, VIDMM_POWER_D3, STANDBY), 0);
	vidmm_adapter_check(w.client.adapter);
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_SET_POWER_STATE), 0);
	world_submit_use(&w.context, a);
	wddm2_run(&w);
	assert_true(wddm2_is_in_memory(&w.device, a));
	wddm2_stop(&w);
}

/* ---- preemption ---- */

static void aware(struct scripted_miniport *m)
{
	wddm2_0(m);
	m->settings.caps.SchedulingCaps.PreemptionAware = 1;
}

/*
 * Memory of a preempted packet stays resident, despite evictions and memory pressure, until the
 * packet has run.
 */
static void pre_08_res_07_memory_of_a_preempted_packet_is_not_evicted(void **state)
{
	struct client_device other;
	struct client_context context;
	struct world w;

	start(&w, state, aware);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 12 * MIB, WORLD_MEMORY);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	client_open(&w.client, &other);
	client_context(&other, 0, &context);
	D3DDDICB_CREATEPAGINGQUEUE theirs = wddm2_queue(&other);
	D3DKMT_HANDLE b = wddm2_allocate(&other, 12 * MIB, WORLD_MEMORY);
	D3DDDI_MAKERESIDENT args;
	world_submit_write(&w.context, a, 64, 0xAAA);
	world_submit_write(&w.context, a, 68, 0xBBB);
	assert_int_equal(wddm2_evict(&w.device, a, 0), S_OK);
	assert_int_equal(wddm2_try_make_one(&other, &theirs, b, &args), E_PENDING);
	scripted_forget(w.m);
	advance_time(&w, 1500000000); /* half of TdrDelay, but less than TdrDelay after that */
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_PREEMPT_COMMAND), 1);
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_RESET_FROM_TIMEOUT), 0);
	assert_true(wddm2_is_in_memory(&w.device, a));
	assert_true(wddm2_fence(&theirs) < args.PagingFenceValue);
	assert_int_equal(wddm2_transfers(&w, false), 0);
	vidmm_adapter_check(w.client.adapter);
	wddm2_await(&w, &theirs, args.PagingFenceValue);
	wddm2_run(&w);
	assert_false(wddm2_is_in_memory(&w.device, a));
	assert_true(wddm2_is_in_memory(&other, b));
	const uint32_t *words = lock2(&w.device, a);
	assert_int_equal(words[16], 0xAAA);
	assert_int_equal(words[17], 0xBBB);
	unlock2(&w.device, a);
	client_context_end(&context);
	client_close(&other);
	wddm2_stop(&w);
}

static void with_page_tables(struct scripted_miniport *m)
{
	wddm2_1(m);
	scripted_mmu(m, 3, 1);
}

/* TDR-05: the tables were in video memory. Their entries are written again. */
static void va_11_page_tables_are_written_again_after_an_adapter_reset(void **state)
{
	struct client_device later;
	struct guilty g;
	struct world w;

	start(&w, state, with_page_tables);
	start_guilty(&w, &g);
	uint32_t before = wddm2_operations(&w, DXGK_OPERATION_UPDATE_PAGE_TABLE);
	hang(&w);
	assert_true(wddm2_operations(&w, DXGK_OPERATION_UPDATE_PAGE_TABLE) > before);
	client_open(&w.client, &later);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&later);
	D3DKMT_HANDLE a = wddm2_allocate(&later, 64 * KIB, WORLD_MEMORY);
	wddm2_make(&w, &later, &queue, &a, 1);
	D3DDDI_MAPGPUVIRTUALADDRESS args = {.hPagingQueue = queue.hPagingQueue,
					    .hAllocation = a,
					    .SizeInPages = 16,
					    .Protection.Write = 1};
	HRESULT result = later.cb->pfnMapGpuVirtualAddressCb(later.handle, &args);
	assert_true(result == S_OK || result == E_PENDING);
	wddm2_await(&w, &queue, args.PagingFenceValue);
	uint32_t word = 0x600D;
	assert_true(scripted_virtual_access(scripted_process(w.m, w.m->live_processes - 1),
					    args.VirtualAddress, &word, sizeof(word), true));
	assert_int_equal(w.m->faults, 0);
	client_close(&later);
	end_guilty(&g);
	wddm2_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_SIM(tdrs_14_tdr_09_a_reset_releases_paging_fence_waiters),
		ON_SIM(tdr_07_res_10_a_lost_device_uses_no_budget),
		ON_SIM(lock_48_tdr_11_a_locked_allocation_not_committed_survives_a_reset),
		ON_SIM(tdr_11_a_lock_in_memory_shows_zeros_after_a_reset),
		ON_SIM(tdr_11_pri_10_content_not_written_to_survives_a_reset),
		ON_SIM(tdr_11_makeresident_of_lost_content_fails),
		ON_SIM(res_07_tdr_09_a_reset_completes_a_pending_eviction),
		ON_SIM(tdr_15_res_08_surviving_devices_keep_their_residency_lists),
		ON_SIM(pnp_05_res_08_the_residency_list_is_restored_at_power_on),
		ON_SIM(pnp_05_mfn_18_a_wait_continues_after_power_on),
		ON_SIM(pnp_05_q_480_a_refused_mapping_loses_nothing_of_a_locked_pointer),
		ON_SIM(pnp_05_q_480_a_pointer_that_cannot_follow_is_reported),
		ON_SIM(pnp_05_lock_45_locked_content_returns_to_memory_at_power_on),
		ON_SIM(pnp_05_res_04_paging_queue_work_is_suspended_without_power),
		ON_SIM(pnp_05_pag_32_unencrypted_protected_content_refuses_power_off),
		ON_SIM(va_11_page_tables_are_written_again_after_an_adapter_reset),
		ON_SIM(pre_08_res_07_memory_of_a_preempted_packet_is_not_evicted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
