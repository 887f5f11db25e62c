/* SPDX-License-Identifier: MIT */
/*
 * Lock2, and pfnLockCb on adapters of WDDM 2.x: no synchronization, no renaming, but always an
 * address or an error.
 */
#include "support/served.h"
#include "wddm2_world.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void at_once(struct scripted_miniport *m)
{
	wddm2_0(m);
	m->settings.complete_at_once = true;
}

static void hidden_memory(struct scripted_miniport *m)
{
	at_once(m);
	m->settings.segment[0].flags = 0;
}

static HRESULT try_lock2(struct client_device *device, D3DKMT_HANDLE a, uint32_t flags, void **data)
{
	D3DDDICB_LOCK2 args = {.hAllocation = a, .Flags.Value = flags, .pData = device};
	HRESULT result = device->cb->pfnLock2Cb(device->handle, &args);

	assert_true((result == S_OK) == (args.pData != NULL));
	*data = args.pData;
	return result;
}

static uint32_t *lock2(struct client_device *device, D3DKMT_HANDLE a)
{
	void *data;

	assert_int_equal(try_lock2(device, a, 0, &data), S_OK);
	return data;
}

static HRESULT unlock2(struct client_device *device, D3DKMT_HANDLE a)
{
	const D3DDDICB_UNLOCK2 args = {.hAllocation = a};

	return device->cb->pfnUnlock2Cb(device->handle, &args);
}

static D3DKMT_HANDLE allocate(struct client_device *device, uint64_t bytes, uint32_t flags,
			      uint32_t set)
{
	const struct scripted_allocation spec = {
		.size_bytes = bytes, .flags = flags, .read_set = set, .write_set = set};
	D3DKMT_HANDLE handle;

	assert_int_equal(wddm2_try_allocate(device, &spec, &handle), S_OK);
	return handle;
}

static void refuse(struct world *w, D3DKMT_HANDLE a, const char *rule)
{
	void *data;

	assert_int_equal(try_lock2(&w->device, a, 0, &data), E_INVALIDARG);
	world_expect_finding(w, rule);
}

static void lock_42_lock2_with_flags_is_refused(void **state)
{
	struct world w;
	void *data;

	world_start(&w, state, at_once);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	for (uint32_t bit = 0; bit < 32; bit++) {
		assert_int_equal(try_lock2(&w.device, a, 1u << bit, &data), E_INVALIDARG);
		world_expect_finding(&w, "LOCK-42");
	}
	assert_int_equal(unlock2(&w.device, a), E_INVALIDARG); /* none of the calls locked it */
	world_expect_finding(&w, "LOCK-28");
	lock2(&w.device, a);
	assert_int_equal(unlock2(&w.device, a), S_OK);
	wddm2_stop(&w);
}

/* LKR-09, REF-13: the CPU gets access while the GPU uses it, and both access the same bytes. */
static void lock_43_lkr_09_lock2_of_a_busy_allocation_returns_at_once(void **state)
{
	struct world w;

	world_start(&w, state, wddm2_0);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	uint64_t waits = client_events(&w.client, VIDMM_EVENT_WAIT);
	world_submit_write(&w.context, a, 4, 0x44);
	uint32_t *words = lock2(&w.device, a); /* the GPU has not even begun */
	if (w.kind == VIDMM_HOST_SIM)
		assert_int_equal(client_events(&w.client, VIDMM_EVENT_WAIT), waits);
	assert_int_equal(words[1], 0);
	words[2] = 0x88;
	world_submit_write(&w.context, a, 12, 0xCC); /* it is rendered with while locked */
	world_run(&w);
	assert_int_equal(words[1], 0x44);
	assert_int_equal(words[3], 0xCC);
	assert_ptr_equal(lock2(&w.device, a), words); /* nested, the same address */
	assert_int_equal(unlock2(&w.device, a), S_OK);
	assert_int_equal(unlock2(&w.device, a), S_OK);
	words = lock2(&w.device, a);
	for (uint32_t i = 1; i < 4; i++)
		assert_int_equal(words[i], 0x44 * i);
	assert_int_equal(unlock2(&w.device, a), S_OK);
	wddm2_stop(&w);
}

/*
 * With a retained system copy (PAG-13) the CPU sees that copy; the next lock finds the GPU's newer
 * bytes there.
 */
static void lkr_09_gpu_writes_under_a_lock_are_seen_by_the_next_lock(void **state)
{
	struct world w;

	world_start(&w, state, at_once);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = allocate(&w.device, 64 * KIB, PHYSICAL | PERMANENT_SYSMEM, WORLD_MEMORY);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	uint32_t *words = lock2(&w.device, a);
	world_submit_write(&w.context, a, 4, 0x44);
	world_run(&w);
	assert_ptr_equal(lock2(&w.device, a), words);
	assert_int_equal(words[1], 0x44);
	world_submit_write(&w.context, a, 8, 0x88);
	world_run(&w);
	assert_int_equal(wddm2_evict(&w.device, a, 0), S_OK);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(unlock2(&w.device, a), S_OK);
	while (wddm2_is_in_memory(&w.device, a))
		vidmm_settle(w.client.host);
	lock2(&w.device, a);
	assert_int_equal(unlock2(&w.device, a), S_OK);
	wddm2_stop(&w);
}

/*
 * In the set {memory} there is no CPU access while it is resident; with the aperture it is moved
 * there.
 */
static void lock_44_lock2_moves_a_cached_allocation_out_of_memory(void **state)
{
	struct world w;

	world_start(&w, state, at_once);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = allocate(&w.device, 64 * KIB, PHYSICAL | CACHED, WORLD_MEMORY),
		      b = allocate(&w.device, 64 * KIB, PHYSICAL | CACHED,
				   WORLD_MEMORY | WORLD_APERTURE);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	refuse(&w, a, "LOCK-44");
	world_submit_write(&w.context, a, 0, 0xA0); /* it was not moved */
	world_run(&w);
	assert_int_equal(wddm2_evict(&w.device, a, EVICT_ONLY_IF_NECESSARY), S_OK);
	assert_int_equal(lock2(&w.device, a)[0], 0xA0);
	assert_false(wddm2_is_in_memory(&w.device, a));
	assert_int_equal(unlock2(&w.device, a), S_OK);
	wddm2_make(&w, &w.device, &queue, &b, 1);
	assert_true(wddm2_is_in_memory(&w.device, b));
	world_submit_write(&w.context, b, 0, 0xB0);
	world_run(&w);
	uint32_t *words = lock2(&w.device, b);
	assert_int_equal(words[0], 0xB0);
	assert_int_equal(client_residency(&w.device, b),
			 D3DDDI_RESIDENCYSTATUS_RESIDENTINSHAREDMEMORY);
	words[1] = 0xB1;
	world_submit_write(&w.context, b, 8, 0xB2); /* rendered with meanwhile */
	world_run(&w);
	assert_int_equal(unlock2(&w.device, b), S_OK);
	words = lock2(&w.device, b);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(words[i], 0xB0 + i);
	assert_int_equal(unlock2(&w.device, b), S_OK);
	wddm2_stop(&w);
}

static void lock_45_cpu_visible_allocations_are_locked_in_place(void **state)
{
	static const uint32_t sets[] = {WORLD_MEMORY, WORLD_APERTURE};
	struct world w;

	world_start(&w, state, at_once);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	for (uint32_t i = 0; i < 2; i++) {
		/* As large as the segment: no space to move anything. */
		D3DKMT_HANDLE a = wddm2_allocate(&w.device, i ? 15 * MIB : 16 * MIB, sets[i]);
		wddm2_make(&w, &w.device, &queue, &a, 1);
		uint32_t before = client_residency(&w.device, a);
		world_submit_write(&w.context, a, 0, 0x10 + i);
		world_run(&w);
		assert_int_equal(lock2(&w.device, a)[0], 0x10 + i);
		assert_int_equal(client_residency(&w.device, a), before);
		assert_int_equal(unlock2(&w.device, a), S_OK);
		assert_int_equal(wddm2_evict(&w.device, a, 0), S_OK);
	}
	wddm2_stop(&w);
}

/*
 * The device's memory was taken for another device (RES-08). The lock pages in content that the
 * CPU could access nowhere else.
 */
static void lock_45_a_listed_allocation_is_locked_in_its_segment(void **state)
{
	struct world w;
	struct client_device other;

	world_start(&w, state, at_once);
	client_open(&w.client, &other);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device), theirs = wddm2_queue(&other);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 12 * MIB, WORLD_MEMORY),
		      b = wddm2_allocate(&other, 12 * MIB, WORLD_MEMORY);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	world_submit_write(&w.context, a, 4, 0x44);
	world_run(&w);
	wddm2_make(&w, &other, &theirs, &b, 1);
	assert_false(wddm2_is_in_memory(&w.device, a));
	uint32_t *words = lock2(&w.device, a);
	assert_true(wddm2_is_in_memory(&w.device, a));
	assert_int_equal(words[1], 0x44);
	world_submit_write(&w.context, a, 8, 0x88);
	world_run(&w);
	assert_int_equal(words[2], 0x88);
	assert_int_equal(unlock2(&w.device, a), S_OK);
	client_close(&other);
	wddm2_stop(&w);
}

/* Without a host aperture it is placed in system memory through its aperture segment. */
static void lock_46_lock2_moves_hidden_memory_to_system_memory(void **state)
{
	struct world w;

	world_start(&w, state, hidden_memory);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY | WORLD_APERTURE);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	assert_true(wddm2_is_in_memory(&w.device, a));
	world_submit_write(&w.context, a, 4, 0x44);
	world_run(&w);
	uint32_t *words = lock2(&w.device, a);
	assert_int_equal(client_residency(&w.device, a),
			 D3DDDI_RESIDENCYSTATUS_RESIDENTINSHAREDMEMORY);
	assert_int_equal(words[1], 0x44);
	assert_int_equal(unlock2(&w.device, a), S_OK);
	wddm2_stop(&w);
}

static void lock_47_without_cpuvisible_lock2_needs_aperture_support_or_not_resident(void **state)
{
	struct world w;
	D3DKMT_HANDLE handle;
	void *data;

	world_start(&w, state, at_once);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = allocate(&w.device, 64 * KIB, ACCESSED_PHYSICALLY, WORLD_MEMORY),
		      b = allocate(&w.device, 64 * KIB, ACCESSED_PHYSICALLY,
				   WORLD_MEMORY | WORLD_APERTURE);
	const D3DKMT_HANDLE both[] = {a, b};
	wddm2_make(&w, &w.device, &queue, both, 2);
	world_submit_write(&w.context, a, 0, 0xA0);
	world_submit_write(&w.context, b, 0, 0xB0);
	world_run(&w);
	refuse(&w, a, "LOCK-47");
	assert_int_equal(lock2(&w.device, b)[0], 0xB0);
	assert_int_equal(unlock2(&w.device, b), S_OK);
	assert_int_equal(wddm2_evict(&w.device, a, 0), S_OK);
	assert_int_equal(lock2(&w.device, a)[0], 0xA0);
	assert_int_equal(unlock2(&w.device, a), S_OK);
	handle = a; /* pfnLockCb requires CPU visibility (LOCK-23, LOCK-51) */
	assert_int_equal(client_try_lock(&w.device, &handle, 0, &data), E_INVALIDARG);
	world_expect_finding(&w, "LOCK-23");
	wddm2_stop(&w);
}

/* LKR-09: locked while not resident, it is not committed before it is unlocked. */
static void lock_48_lkr_09_a_locked_allocation_is_committed_after_the_unlock(void **state)
{
	struct world w;
	D3DDDI_MAKERESIDENT args, behind;

	world_start(&w, state, wddm2_0);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY),
		      b = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY),
		      c = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY | WORLD_APERTURE);
	uint32_t *words = lock2(&w.device, a);
	lock2(&w.device, a);
	lock2(&w.device, c); /* may be placed in the aperture meanwhile */
	words[1] = 0x44;
	wddm2_make(&w, &w.device, &queue, &c, 1);
	assert_int_equal(wddm2_try_make_one(&w.device, &queue, a, &args), E_PENDING);
	assert_int_equal(wddm2_try_make_one(&w.device, &queue, b, &behind), E_PENDING);
	for (uint32_t i = 0; i < 20; i++) {
		scripted_complete_all(w.m);
		vidmm_settle(w.client.host);
	}
	assert_true(wddm2_fence(&queue) < args.PagingFenceValue);
	assert_false(wddm2_is_in_memory(&w.device, a));
	words[2] = 0x88;
	assert_int_equal(unlock2(&w.device, a), S_OK);
	for (uint32_t i = 0; i < 20; i++) {
		scripted_complete_all(w.m);
		vidmm_settle(w.client.host);
	}
	assert_true(wddm2_fence(&queue) < args.PagingFenceValue); /* locked once more */
	assert_int_equal(unlock2(&w.device, a), S_OK);
	wddm2_await(&w, &queue, behind.PagingFenceValue); /* in order (RES-04) */
	assert_true(wddm2_is_in_memory(&w.device, a));
	world_submit_write(&w.context, a, 12, 0xCC);
	world_run(&w);
	words = lock2(&w.device, a);
	for (uint32_t i = 1; i < 4; i++)
		assert_int_equal(words[i], 0x44 * i);
	assert_int_equal(unlock2(&w.device, a), S_OK);
	assert_int_equal(unlock2(&w.device, c), S_OK);
	wddm2_stop(&w);
}

/*
 * RES-11: a lock of the caller does not delay destroying the queue. Nor does it delay destroying
 * the allocation.
 */
static void lock_48_res_11_a_lock_does_not_delay_destroying_a_paging_queue(void **state)
{
	struct world w;
	D3DDDI_MAKERESIDENT args;

	world_start(&w, state, at_once);
	for (uint32_t i = 0; i < 2; i++) {
		D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
		const D3DDDI_DESTROYPAGINGQUEUE end = {.hPagingQueue = queue.hPagingQueue};
		D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);

		lock2(&w.device, a);
		assert_int_equal(wddm2_try_make_one(&w.device, &queue, a, &args), E_PENDING);
		if (i)
			assert_int_equal(client_deallocate(&w.device, a), S_OK);
		if (i)
			wddm2_await(&w, &queue, args.PagingFenceValue);
		assert_int_equal(w.device.cb->pfnDestroyPagingQueueCb(w.device.handle, &end), S_OK);
		if (!i)
			assert_int_equal(unlock2(&w.device, a), S_OK);
	}
	wddm2_stop(&w);
}

/* DMA-26: MakeResident is not complete, and the submission would have to wait for the CPU. */
static void dma_26_a_submission_is_refused_if_a_lock_blocks_residency(void **state)
{
	struct world w;
	D3DDDI_MAKERESIDENT args;

	world_start(&w, state, at_once);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	lock2(&w.device, a);
	assert_int_equal(wddm2_try_make_one(&w.device, &queue, a, &args), E_PENDING);
	world_use(&w.context, a);
	assert_int_equal(client_try_submit(&w.context), D3DDDIERR_DEVICEREMOVED);
	world_expect_finding(&w, "DMA-26");
	assert_int_equal(unlock2(&w.device, a), S_OK); /* cleaning up works on a lost device */
	wddm2_stop(&w);
}

/* RES-06: evicted while locked, it leaves memory at the unlock. */
static void res_06_an_eviction_of_a_locked_allocation_happens_at_unlock(void **state)
{
	struct world w;

	world_start(&w, state, at_once);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	uint32_t *words = lock2(&w.device, a);
	assert_int_equal(wddm2_evict(&w.device, a, 0), S_OK);
	for (uint32_t i = 0; i < 20; i++)
		vidmm_settle(w.client.host);
	assert_true(wddm2_is_in_memory(&w.device, a));
	words[1] = 0x44;
	assert_int_equal(unlock2(&w.device, a), S_OK);
	while (wddm2_is_in_memory(&w.device, a))
		vidmm_settle(w.client.host);
	assert_int_equal(lock2(&w.device, a)[1], 0x44);
	assert_int_equal(unlock2(&w.device, a), S_OK);
	wddm2_stop(&w);
}

/* REN-22, REF-13: the same handle and the same bytes, at once, whatever the flags. */
static void lock_51_ren_22_pfnlockcb_behaves_like_lock2_whatever_the_flags(void **state)
{
	static const uint32_t flags[] = {0x000, 0x004, 0x008, 0x00C, 0x010, 0x020,
					 0x080, 0x084, 0x100, 0x180, 0x400, 0x404};
	struct world w;
	void *data;

	world_start(&w, state, wddm2_0);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	uint32_t *words = lock2(&w.device, a);
	words[0] = 0x1234;
	world_submit_write(&w.context, a, 4, 0x44);
	uint64_t waits = client_events(&w.client, VIDMM_EVENT_WAIT);
	for (uint32_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		D3DKMT_HANDLE handle = a;

		assert_int_equal(client_try_lock(&w.device, &handle, flags[i], &data), S_OK);
		assert_int_equal(handle, a);
		assert_ptr_equal(data, words);
		assert_int_equal(client_unlock(&w.device, a), S_OK);
	}
	const UINT page = 1000; /* not checked */
	D3DDDICB_LOCK args = {.hAllocation = a, .NumPages = 1, .pPages = &page};
	assert_int_equal(w.device.cb->pfnLockCb(w.device.handle, &args), S_OK);
	assert_ptr_equal(args.pData, words);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	if (w.kind == VIDMM_HOST_SIM)
		assert_int_equal(client_events(&w.client, VIDMM_EVENT_WAIT), waits);
	assert_int_equal(client_events(&w.client, VIDMM_EVENT_RENAME), 0);
	assert_int_equal(unlock2(&w.device, a), S_OK);
	wddm2_stop(&w);
}

static void lock_51_swz_27_pfnlockcb_refuses_invalid_and_range_flags(void **state)
{
	static const struct {
		uint32_t flags;
		const char *rule;
	} bad[] = {{0x003, "LOCK-07"}, {0x800, "LOCK-02"}, {0x80000000, "LOCK-02"},
		   {0x040, "SWZ-27"},  {0x240, "SWZ-27"},  {0x200, "SWZ-27"}};
	struct world w;
	void *data;

	world_start(&w, state, at_once);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(client_try_lock(&w.device, &a, bad[i].flags, &data), E_INVALIDARG);
		world_expect_finding(&w, bad[i].rule);
	}
	const D3DDDICB_OFFERALLOCATIONS offer = {
		.HandleList = &a, .NumAllocations = 1, .Priority = D3DDDI_OFFER_PRIORITY_NORMAL};
	assert_int_equal(w.device.cb->pfnOfferAllocationsCb(w.device.handle, &offer), S_OK);
	refuse(&w, a, "LOCK-25");
	assert_int_equal(client_try_lock(&w.device, &a, 0, &data), E_INVALIDARG);
	world_expect_finding(&w, "LOCK-25");
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_ACQUIRE_SWIZZLING_RANGE), 0);
	wddm2_stop(&w);
}

static bool is_mapped(const void *address)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	uintptr_t first, end, at = (uintptr_t)address;
	bool found = false;
	char line[512];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		found |= sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &first, &end) == 2 && at >= first &&
			 at < end;
	assert_int_equal(fclose(maps), 0);
	return found && !served_is_free(address);
}

/* It has an address only while it is locked; a CpuVisible allocation keeps its address. */
static void alf_27_cpuvisibleondemand_keeps_no_address_after_the_unlock(void **state)
{
	struct world w;

	world_start(&w, state, at_once);
	D3DKMT_HANDLE a = allocate(&w.device, 4 * MIB, ACCESSED_PHYSICALLY | ON_DEMAND,
				   WORLD_MEMORY),
		      b = wddm2_allocate(&w.device, 4 * MIB, WORLD_MEMORY);
	uint32_t *words = lock2(&w.device, a), *kept = lock2(&w.device, b);
	words[7] = 0x77;
	assert_ptr_equal(lock2(&w.device, a), words); /* nested: the same address */
	assert_int_equal(unlock2(&w.device, a), S_OK);
	assert_int_equal(words[7], 0x77);
	assert_int_equal(unlock2(&w.device, a), S_OK);
	assert_int_equal(unlock2(&w.device, b), S_OK);
	assert_false(is_mapped(words));
	assert_true(is_mapped(kept));
	assert_int_equal(lock2(&w.device, a)[7], 0x77);
	assert_int_equal(unlock2(&w.device, a), S_OK);
	assert_ptr_equal(lock2(&w.device, b), kept);
	assert_int_equal(unlock2(&w.device, b), S_OK);
	wddm2_stop(&w);
}

/* A 1.x adapter has no such call. */
static void before_wddm_2_0_lock2_is_refused(void **state)
{
	struct world w;
	void *data;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	assert_int_equal(try_lock2(&w.device, a, 0, &data), E_NOTIMPL);
	wddm2_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(lock_42_lock2_with_flags_is_refused),
		ON_BOTH(lock_43_lkr_09_lock2_of_a_busy_allocation_returns_at_once),
		ON_BOTH(lkr_09_gpu_writes_under_a_lock_are_seen_by_the_next_lock),
		ON_BOTH(lock_44_lock2_moves_a_cached_allocation_out_of_memory),
		ON_BOTH(lock_45_cpu_visible_allocations_are_locked_in_place),
		ON_BOTH(lock_45_a_listed_allocation_is_locked_in_its_segment),
		ON_BOTH(lock_46_lock2_moves_hidden_memory_to_system_memory),
		ON_BOTH(lock_47_without_cpuvisible_lock2_needs_aperture_support_or_not_resident),
		ON_BOTH(lock_48_lkr_09_a_locked_allocation_is_committed_after_the_unlock),
		ON_BOTH(lock_48_res_11_a_lock_does_not_delay_destroying_a_paging_queue),
		ON_BOTH(dma_26_a_submission_is_refused_if_a_lock_blocks_residency),
		ON_BOTH(res_06_an_eviction_of_a_locked_allocation_happens_at_unlock),
		ON_BOTH(lock_51_ren_22_pfnlockcb_behaves_like_lock2_whatever_the_flags),
		ON_BOTH(lock_51_swz_27_pfnlockcb_refuses_invalid_and_range_flags),
		ON_BOTH(alf_27_cpuvisibleondemand_keeps_no_address_after_the_unlock),
		ON_BOTH(before_wddm_2_0_lock2_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
