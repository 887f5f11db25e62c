/* SPDX-License-Identifier: MIT */
/*
 * Offer and reclaim from WDDM 2.0 on: paging fences, backing stores that are valid at once, and
 * AllowDecommit.
 */
#include "wddm2_world.h"

#include <d3dkmthk.h>

#define LOW            D3DDDI_OFFER_PRIORITY_LOW
#define HIGH           D3DDDI_OFFER_PRIORITY_HIGH
#define ALLOW_DECOMMIT 0x1u

static void at_once(struct scripted_miniport *m)
{
	wddm2_1(m);
	m->settings.complete_at_once = true;
}

static HRESULT offer(struct client_device *device, D3DKMT_HANDLE a, D3DDDI_OFFER_PRIORITY priority,
		     uint32_t flags)
{
	const D3DDDICB_OFFERALLOCATIONS2 args = {
		.HandleList = &a, .NumAllocations = 1, .Priority = priority, .Flags.Value = flags};

	return device->cb->pfnOfferAllocations2Cb(device->handle, &args);
}

struct reclaimed {
	HRESULT status;
	uint32_t result;
	uint64_t fence;
};

static struct reclaimed reclaim3(struct client_device *device, D3DKMT_HANDLE queue, D3DKMT_HANDLE a)
{
	D3DDDI_RECLAIM_RESULT result = 77;
	D3DDDICB_RECLAIMALLOCATIONS3 args = {.PagingQueue = queue,
					     .NumAllocations = 1,
					     .HandleList = &a,
					     .pResults = &result,
					     .PagingFenceValue = 77};
	HRESULT status = device->cb->pfnReclaimAllocations3Cb(device->handle, &args);

	return (struct reclaimed){status, (uint32_t)result, args.PagingFenceValue};
}

static struct reclaimed reclaim2(struct client_device *device, D3DKMT_HANDLE queue, D3DKMT_HANDLE a)
{
	BOOL discarded = 77;
	D3DDDICB_RECLAIMALLOCATIONS2 args = {.PagingQueue = queue,
					     .NumAllocations = 1,
					     .HandleList = &a,
					     .pDiscarded = &discarded,
					     .PagingFenceValue = 77};
	HRESULT status = device->cb->pfnReclaimAllocations2Cb(device->handle, &args);

	return (struct reclaimed){status, (uint32_t)discarded, args.PagingFenceValue};
}

static HRESULT lock2(struct client_device *device, D3DKMT_HANDLE a, uint32_t **words)
{
	D3DDDICB_LOCK2 args = {.hAllocation = a};
	HRESULT result = device->cb->pfnLock2Cb(device->handle, &args);

	*words = args.pData;
	return result;
}

static void unlock2(struct client_device *device, D3DKMT_HANDLE a)
{
	const D3DDDICB_UNLOCK2 args = {.hAllocation = a};

	assert_int_equal(device->cb->pfnUnlock2Cb(device->handle, &args), S_OK);
}

static void expect_word(struct client_device *device, D3DKMT_HANDLE a, uint32_t value)
{
	uint32_t *words;

	assert_int_equal(lock2(device, a, &words), S_OK);
	assert_int_equal(words[1], value);
	unlock2(device, a);
}

static void put_word(struct client_device *device, D3DKMT_HANDLE a, uint32_t value)
{
	uint32_t *words;

	assert_int_equal(lock2(device, a, &words), S_OK);
	words[1] = value;
	unlock2(device, a);
}

/*
 * On the device's residency list, and offered. Another device has evicted it from memory, and has
 * been destroyed.
 */
static D3DKMT_HANDLE offered_and_taken(struct world *w, const D3DDDICB_CREATEPAGINGQUEUE *queue,
				       uint32_t flags)
{
	struct client_device other;
	D3DKMT_HANDLE a = wddm2_allocate(&w->device, 8 * MIB, WORLD_MEMORY), b;

	put_word(&w->device, a, 0xA);
	wddm2_make(w, &w->device, queue, &a, 1);
	assert_int_equal(offer(&w->device, a, LOW, flags), S_OK);
	client_open(&w->client, &other);
	D3DDDICB_CREATEPAGINGQUEUE theirs = wddm2_queue(&other);
	b = wddm2_allocate(&other, 12 * MIB, WORLD_MEMORY);
	wddm2_make(w, &other, &theirs, &b, 1);
	client_close(&other);
	assert_false(wddm2_is_in_memory(&w->device, a));
	return a;
}

static void ofr_12_reclaim_of_a_listed_allocation_returns_a_paging_fence(void **state)
{
	struct world w;

	world_start(&w, state, wddm2_1);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = offered_and_taken(&w, &queue, 0);
	uint64_t before = wddm2_fence(&queue);
	struct reclaimed r = reclaim2(&w.device, queue.hPagingQueue, a);
	assert_int_equal(r.status, E_PENDING);
	assert_int_equal(r.result, TRUE);
	assert_true(r.fence > before);
	if (w.kind == VIDMM_HOST_SIM)
		assert_true(wddm2_fence(&queue) < r.fence);
	wddm2_await(&w, &queue, r.fence);
	assert_true(wddm2_is_in_memory(&w.device, a));
	world_submit_write(&w.context, a, 4, 0x5A);
	wddm2_run(&w);
	expect_word(&w.device, a, 0x5A);
	wddm2_stop(&w);
}

/* It was never evicted, or it is on no list: there is nothing to wait for. */
static void ofr_12_a_reclaim_with_nothing_to_page_in_returns_fence_0(void **state)
{
	struct world w;

	world_start(&w, state, at_once);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY),
		      b = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	put_word(&w.device, a, 0xA);
	put_word(&w.device, b, 0xB);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	for (uint32_t i = 0; i < 2; i++) {
		D3DKMT_HANDLE each = i ? b : a;

		assert_int_equal(offer(&w.device, each, LOW, 0), S_OK);
		struct reclaimed r = i ? reclaim3(&w.device, queue.hPagingQueue, each)
				       : reclaim2(&w.device, queue.hPagingQueue, each);
		assert_int_equal(r.status, S_OK);
		assert_int_equal(r.result, 0);
		assert_int_equal(r.fence, 0);
		expect_word(&w.device, each, i ? 0xB : 0xA);
	}
	assert_true(wddm2_is_in_memory(&w.device, a));
	wddm2_stop(&w);
}

/* One fence covers several allocations of a call, and each has its result. */
static void ofr_12_one_fence_covers_all_allocations_of_a_reclaim(void **state)
{
	struct world w;
	D3DDDI_RECLAIM_RESULT results[3] = {77, 77, 77};

	world_start(&w, state, wddm2_1);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE all[3] = {offered_and_taken(&w, &queue, 0), 0, 0};
	all[1] = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY); /* not offered: OFR-07 */
	all[2] = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	assert_int_equal(offer(&w.device, all[2], LOW, 0), S_OK);
	D3DDDICB_RECLAIMALLOCATIONS3 args = {.PagingQueue = queue.hPagingQueue,
					     .NumAllocations = 3,
					     .HandleList = all,
					     .pResults = results};
	assert_int_equal(w.device.cb->pfnReclaimAllocations3Cb(w.device.handle, &args), E_PENDING);
	assert_int_equal(results[0], D3DDDI_RECLAIM_RESULT_DISCARDED);
	assert_int_equal(results[1], D3DDDI_RECLAIM_RESULT_OK);
	assert_int_equal(results[2], D3DDDI_RECLAIM_RESULT_OK);
	wddm2_await(&w, &queue, args.PagingFenceValue);
	assert_true(wddm2_is_in_memory(&w.device, all[0]));
	assert_false(wddm2_is_in_memory(&w.device, all[1]));
	wddm2_stop(&w);
}

static void ofr_12_a_paging_queue_of_another_device_is_refused(void **state)
{
	struct world w;
	struct client_device other;

	world_start(&w, state, at_once);
	client_open(&w.client, &other);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device), theirs = wddm2_queue(&other);
	const D3DKMT_HANDLE bad[] = {0, theirs.hPagingQueue, queue.hSyncObject, 0x4242};
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	uint32_t *words;
	assert_int_equal(offer(&w.device, a, LOW, 0), S_OK);
	for (uint32_t i = 0; i < 4; i++) {
		struct reclaimed r =
			i % 2 ? reclaim2(&w.device, bad[i], a) : reclaim3(&w.device, bad[i], a);

		if (i == 1 && theirs.hPagingQueue == queue.hPagingQueue)
			continue; /* handles of two processes may be equal: it was this device's */
		assert_int_equal(r.status, E_INVALIDARG);
		assert_int_equal(r.result, 77);
		assert_int_equal(r.fence, 77);
		world_expect_finding(&w, "OFR-12");
		assert_int_equal(lock2(&w.device, a, &words), E_INVALIDARG); /* still offered */
		world_expect_finding(&w, "LOCK-25");
	}
	client_close(&other);
	wddm2_stop(&w);
}

/*
 * Offered memory is discarded even while its list is in use, and before anything that is not
 * offered.
 */
static void ofr_04_offered_memory_is_discarded_first_even_if_listed(void **state)
{
	struct world w;

	world_start(&w, state, at_once);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE unlisted = wddm2_allocate(&w.device, 4 * MIB, WORLD_MEMORY),
		      a = wddm2_allocate(&w.device, 8 * MIB, WORLD_MEMORY),
		      b = wddm2_allocate(&w.device, 8 * MIB, WORLD_MEMORY);
	wddm2_make(&w, &w.device, &queue, &unlisted, 1);
	assert_int_equal(wddm2_evict(&w.device, unlisted, EVICT_ONLY_IF_NECESSARY), S_OK);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	assert_int_equal(offer(&w.device, a, HIGH, 0), S_OK);
	wddm2_make(&w, &w.device, &queue, &b, 1);
	assert_true(wddm2_is_in_memory(&w.device, unlisted));
	assert_false(wddm2_is_in_memory(&w.device, a));
	struct reclaimed r = reclaim3(&w.device, queue.hPagingQueue, a);
	assert_int_equal(r.result, D3DDDI_RECLAIM_RESULT_DISCARDED);
	wddm2_await(&w, &queue, r.fence);
	wddm2_stop(&w);
}

/*
 * The test does not wait for the fence: the CPU can access the bytes, and they are unchanged when
 * the GPU has the allocation.
 */
static void ofr_13_lock2_after_reclaim_need_not_wait_for_the_fence(void **state)
{
	struct world w;
	uint32_t *words;

	world_start(&w, state, at_once);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = offered_and_taken(&w, &queue, 0);
	struct reclaimed r = reclaim2(&w.device, queue.hPagingQueue, a);
	assert_true(r.status == S_OK || r.status == E_PENDING);
	assert_int_equal(r.result, TRUE);
	assert_int_equal(lock2(&w.device, a, &words), S_OK);
	assert_int_equal(words[1], 0); /* neither another allocation's content nor the old one */
	words[1] = 0xA1;
	unlock2(&w.device, a);
	wddm2_await(&w, &queue, r.fence);
	expect_word(&w.device, a, 0xA1);
	wddm2_stop(&w);
}

/* Enough system memory for the paging buffers and one large allocation. */
#define LARGE (24 * MIB)
static void start_scarce(struct world *w, void **state)
{
	const struct client_options scarce = {.system_memory_bytes = 40 * MIB};

	world_start_with(w, state, at_once, &scarce);
	world_open(w);
}

static HRESULT lock_for_memory(struct world *w, D3DKMT_HANDLE a)
{
	uint32_t *words;
	HRESULT result = lock2(&w->device, a, &words);

	if (result == S_OK)
		unlock2(&w->device, a);
	return result;
}

/*
 * Without AllowDecommit the allocation retains its memory and its content. A reclaim that finds no
 * memory changes nothing.
 */
static void ofr_13_without_allowdecommit_the_backing_store_is_retained(void **state)
{
	struct world w;

	start_scarce(&w, state);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, LARGE, WORLD_APERTURE),
		      b = wddm2_allocate(&w.device, LARGE, WORLD_APERTURE);
	put_word(&w.device, a, 0xA);
	assert_int_equal(offer(&w.device, a, LOW, 0), S_OK);
	assert_int_equal(lock_for_memory(&w, b), E_OUTOFMEMORY);
	struct reclaimed r = reclaim3(&w.device, queue.hPagingQueue, a);
	assert_int_equal(r.status, S_OK);
	assert_int_equal(r.result, D3DDDI_RECLAIM_RESULT_OK);
	expect_word(&w.device, a, 0xA);
	wddm2_stop(&w);
}

static void ofr_13_a_reclaim_without_memory_changes_nothing(void **state)
{
	struct world w;

	start_scarce(&w, state);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, LARGE, WORLD_APERTURE),
		      b = wddm2_allocate(&w.device, LARGE, WORLD_APERTURE);
	uint32_t *words;
	assert_int_equal(offer(&w.device, a, LOW, 0), S_OK); /* has no content and no memory yet */
	assert_int_equal(lock_for_memory(&w, b), S_OK);
	struct reclaimed r = reclaim3(&w.device, queue.hPagingQueue, a);
	assert_int_equal(r.status, E_OUTOFMEMORY);
	assert_int_equal(r.result, 77);
	assert_int_equal(lock2(&w.device, a, &words), E_INVALIDARG);
	world_expect_finding(&w, "LOCK-25");
	assert_int_equal(client_deallocate(&w.device, b), S_OK);
	wddm2_run(&w);
	r = reclaim3(&w.device, queue.hPagingQueue, a);
	assert_int_equal(r.status, S_OK);
	assert_int_equal(r.result, D3DDDI_RECLAIM_RESULT_OK);
	expect_word(&w.device, a, 0);
	wddm2_stop(&w);
}

static void ofr_14_a_failed_recommit_reports_not_committed(void **state)
{
	struct world w;
	uint32_t *words;

	start_scarce(&w, state);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, LARGE, WORLD_APERTURE),
		      b = wddm2_allocate(&w.device, LARGE, WORLD_APERTURE);
	put_word(&w.device, a, 0xA);
	assert_int_equal(offer(&w.device, a, LOW, ALLOW_DECOMMIT), S_OK);
	assert_int_equal(lock_for_memory(&w, b), S_OK); /* decommits the memory of a */
	assert_int_equal(lock2(&w.device, a, &words), E_INVALIDARG);
	world_expect_finding(&w, "LOCK-25");
	for (uint32_t i = 0; i < 2; i++) {
		struct reclaimed r = reclaim3(&w.device, queue.hPagingQueue, a);

		assert_int_equal(r.status, S_OK);
		assert_int_equal(r.result, D3DDDI_RECLAIM_RESULT_NOT_COMMITTED);
		assert_int_equal(r.fence, 0);
		assert_int_equal(lock2(&w.device, a, &words), E_OUTOFMEMORY);
	}
	assert_int_equal(offer(&w.device, a, LOW, ALLOW_DECOMMIT), S_OK);
	/* like any offered allocation */
	assert_int_equal(lock2(&w.device, a, &words), E_INVALIDARG);
	world_expect_finding(&w, "LOCK-25");
	assert_int_equal(client_deallocate(&w.device, b), S_OK);
	wddm2_run(&w);
	struct reclaimed r = reclaim3(&w.device, queue.hPagingQueue, a);
	assert_int_equal(r.result, D3DDDI_RECLAIM_RESULT_DISCARDED);
	expect_word(&w.device, a, 0);
	wddm2_stop(&w);
}

/* A BOOL has no third value: missing memory is reported as discarded. */
static void ofr_14_reclaim2_reports_not_committed_as_discarded(void **state)
{
	struct world w;

	start_scarce(&w, state);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, LARGE, WORLD_APERTURE),
		      b = wddm2_allocate(&w.device, LARGE, WORLD_APERTURE);
	put_word(&w.device, a, 0xA);
	assert_int_equal(offer(&w.device, a, LOW, ALLOW_DECOMMIT), S_OK);
	assert_int_equal(lock_for_memory(&w, b), S_OK);
	struct reclaimed r = reclaim2(&w.device, queue.hPagingQueue, a);
	assert_int_equal(r.status, S_OK);
	assert_int_equal(r.result, TRUE);
	wddm2_stop(&w);
}

/* The lowest priority is decommitted first, and no more than needed. */
static void ofr_14_low_priority_is_decommitted_before_high(void **state)
{
	struct world w;

	start_scarce(&w, state);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE high = wddm2_allocate(&w.device, LARGE / 2, WORLD_APERTURE),
		      low = wddm2_allocate(&w.device, LARGE / 2, WORLD_APERTURE),
		      need = wddm2_allocate(&w.device, LARGE / 2, WORLD_APERTURE),
		      more = wddm2_allocate(&w.device, LARGE / 4, WORLD_APERTURE);
	put_word(&w.device, high, 0xA);
	put_word(&w.device, low, 0xB);
	put_word(&w.device, more, 0xC);
	assert_int_equal(offer(&w.device, high, HIGH, ALLOW_DECOMMIT), S_OK);
	assert_int_equal(offer(&w.device, low, LOW, ALLOW_DECOMMIT), S_OK);
	assert_int_equal(lock_for_memory(&w, need), S_OK);
	struct reclaimed r = reclaim3(&w.device, queue.hPagingQueue, high);
	assert_int_equal(r.result, D3DDDI_RECLAIM_RESULT_OK);
	expect_word(&w.device, high, 0xA);
	assert_int_equal(client_deallocate(&w.device, need), S_OK);
	wddm2_run(&w);
	r = reclaim3(&w.device, queue.hPagingQueue, low);
	assert_int_equal(r.result, D3DDDI_RECLAIM_RESULT_DISCARDED);
	wddm2_stop(&w);
}

static void ofr_14_invalid_flags_and_missing_results_are_refused(void **state)
{
	struct world w;

	world_start(&w, state, at_once);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	D3DDDICB_RECLAIMALLOCATIONS3 args = {
		.PagingQueue = queue.hPagingQueue, .NumAllocations = 1, .HandleList = &a};
	assert_int_equal(offer(&w.device, a, LOW, 0x2), E_INVALIDARG);
	world_expect_finding(&w, "OFR-14");
	put_word(&w.device, a, 1); /* it is not offered */
	assert_int_equal(offer(&w.device, a, 0, 0), E_INVALIDARG);
	world_expect_finding(&w, "OFR-03"); /* flags 0: like pfnOfferAllocationsCb */
	assert_int_equal(offer(&w.device, a, LOW, ALLOW_DECOMMIT), S_OK);
	assert_int_equal(w.device.cb->pfnReclaimAllocations3Cb(w.device.handle, &args),
			 E_INVALIDARG);
	world_expect_finding(&w, "OFR-14");
	struct reclaimed r = reclaim3(&w.device, queue.hPagingQueue, a);
	assert_int_equal(r.status, S_OK);
	assert_int_equal(r.result, D3DDDI_RECLAIM_RESULT_OK);
	expect_word(&w.device, a, 1);
	wddm2_stop(&w);
}

static void ofr_12_before_wddm_2_0_decommit_and_reclaim2_are_refused(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, WORLD_MEMORY);
	assert_int_equal(offer(&w.device, a, LOW, ALLOW_DECOMMIT), E_NOTIMPL);
	assert_int_equal(offer(&w.device, a, LOW, 0), S_OK);
	assert_int_equal(reclaim2(&w.device, 0x40, a).status, E_NOTIMPL);
	assert_int_equal(reclaim3(&w.device, 0x40, a).status, E_NOTIMPL);
	assert_int_equal(offer(&w.device, a, HIGH, 0), S_OK);
	wddm2_stop(&w);
}

static NTSTATUS offer_immediately(D3DKMT_HANDLE device, D3DKMT_HANDLE a)
{
	const D3DKMT_OFFERALLOCATIONS args = {.hDevice = device,
					      .HandleList = &a,
					      .NumAllocations = 1,
					      .Priority = D3DKMT_OFFER_PRIORITY_LOW,
					      .Flags.OfferImmediately = 1};

	return D3DKMTOfferAllocations(&args);
}

/*
 * An allocation that queued work still uses is not offered at all. Without the flag it is offered
 * at the end of that work (OFR-01).
 */
static void ofr_16_offerimmediately_of_a_busy_allocation_fails(void **state)
{
	D3DKMT_ADAPTERINFO info;
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1, .pAdapters = &info};
	struct scripted_allocation spec = {.size_bytes = 64 * KIB,
					   .flags = PHYSICAL,
					   .read_set = WORLD_MEMORY,
					   .write_set = WORLD_MEMORY};
	struct vidmm_process *process;
	D3DKMT_CREATEDEVICE device = {0};
	struct world w;

	world_start(&w, state, wddm2_1); /* its GPU completes packets on request */
	assert_int_equal(vidmm_process_open(w.client.host, "kmt", &process), 0);
	vidmm_d3dkmt_attach(process);
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	device.hAdapter = info.hAdapter;
	assert_int_equal(D3DKMTCreateDevice(&device), STATUS_SUCCESS);
	D3DDDI_ALLOCATIONINFO one = {.pPrivateDriverData = &spec,
				     .PrivateDriverDataSize = sizeof(spec)};
	D3DKMT_CREATEALLOCATION create = {
		.hDevice = device.hDevice, .NumAllocations = 1, .pAllocationInfo = &one};
	assert_int_equal(D3DKMTCreateAllocation(&create), STATUS_SUCCESS);
	D3DKMT_CREATEPAGINGQUEUE queue = {.hDevice = device.hDevice};
	assert_int_equal(D3DKMTCreatePagingQueue(&queue), STATUS_SUCCESS);
	D3DDDI_MAKERESIDENT make = {.hPagingQueue = queue.hPagingQueue,
				    .NumAllocations = 1,
				    .AllocationList = &one.hAllocation};
	assert_true(NT_SUCCESS(D3DKMTMakeResident(&make)));
	/* The fill that pages it in is not complete. */
	assert_int_equal(offer_immediately(device.hDevice, one.hAllocation),
			 STATUS_GRAPHICS_ALLOCATION_BUSY);
	D3DKMT_LOCK2 lock = {.hDevice = device.hDevice, .hAllocation = one.hAllocation};
	wddm2_run(&w);
	assert_int_equal(D3DKMTLock2(&lock), STATUS_SUCCESS); /* it is not offered */
	assert_int_equal(offer_immediately(device.hDevice, one.hAllocation),
			 STATUS_INVALID_PARAMETER);
	world_expect_finding(&w, "OFR-08");
	const D3DKMT_UNLOCK2 unlock = {device.hDevice, one.hAllocation};
	assert_int_equal(D3DKMTUnlock2(&unlock), STATUS_SUCCESS);
	assert_int_equal(offer_immediately(device.hDevice, one.hAllocation), STATUS_SUCCESS);
	assert_int_equal(D3DKMTLock2(&lock), STATUS_INVALID_PARAMETER);
	world_expect_finding(&w, "LOCK-25");
	/* Nothing has taken its memory. (OFR-12) */
	D3DDDI_RECLAIM_RESULT result = D3DDDI_RECLAIM_RESULT_DISCARDED;
	D3DKMT_RECLAIMALLOCATIONS2 reclaim = {.hPagingQueue = queue.hPagingQueue,
					      .NumAllocations = 1,
					      .HandleList = &one.hAllocation,
					      .pResults = &result,
					      .PagingFenceValue = 77};
	assert_int_equal(D3DKMTReclaimAllocations2(&reclaim), STATUS_SUCCESS);
	assert_int_equal(result, D3DDDI_RECLAIM_RESULT_OK);
	assert_int_equal(reclaim.PagingFenceValue, 0);
	assert_int_equal(D3DKMTLock2(&lock), STATUS_SUCCESS);
	vidmm_process_close(process);
	wddm2_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(ofr_16_offerimmediately_of_a_busy_allocation_fails),
		ON_BOTH(ofr_12_reclaim_of_a_listed_allocation_returns_a_paging_fence),
		ON_BOTH(ofr_12_a_reclaim_with_nothing_to_page_in_returns_fence_0),
		ON_BOTH(ofr_12_one_fence_covers_all_allocations_of_a_reclaim),
		ON_BOTH(ofr_12_a_paging_queue_of_another_device_is_refused),
		ON_BOTH(ofr_04_offered_memory_is_discarded_first_even_if_listed),
		ON_BOTH(ofr_13_lock2_after_reclaim_need_not_wait_for_the_fence),
		ON_BOTH(ofr_13_without_allowdecommit_the_backing_store_is_retained),
		ON_BOTH(ofr_13_a_reclaim_without_memory_changes_nothing),
		ON_BOTH(ofr_14_a_failed_recommit_reports_not_committed),
		ON_BOTH(ofr_14_reclaim2_reports_not_committed_as_discarded),
		ON_BOTH(ofr_14_low_priority_is_decommitted_before_high),
		ON_BOTH(ofr_14_invalid_flags_and_missing_results_are_refused),
		ON_BOTH(ofr_12_before_wddm_2_0_decommit_and_reclaim2_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
