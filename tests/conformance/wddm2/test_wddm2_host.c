/* SPDX-License-Identifier: MIT */
/*
 * CPU host apertures (SWZ-29, LOCK-46): locks of content in a memory segment that no BAR shows.
 * While a page is mapped, the miniport has its bytes in the BAR, and the GPU finds them there.
 * Mapping a page twice, or an invalid page, counts as a fault.
 */
#define _DEFAULT_SOURCE /* pread, pwrite */
#include "wddm2_world.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "support/viewer.h"

#define HOST_APERTURE 0x2000u
#define PAGES_64K     0x800u
#define BOTH_SEGMENTS (WORLD_MEMORY | WORLD_APERTURE)
#define HOST_PAGES    64u

static void hosted(struct scripted_miniport *m)
{
	wddm2_0(m);
	m->settings.complete_at_once = true;
	m->settings.segment[0].flags = HOST_APERTURE;
	m->settings.segment[0].host_offset = 1 * MIB;
	m->settings.segment[0].host_pages = HOST_PAGES;
}

static void hosted_64k(struct scripted_miniport *m)
{
	hosted(m);
	m->settings.segment[0].flags |= PAGES_64K;
	m->settings.segment[0].host_pages = 4;
}

struct host {
	struct world w;
	D3DDDICB_CREATEPAGINGQUEUE queue;
};

static void start(struct host *h, void **state, world_setup *setup)
{
	world_start(&h->w, state, setup);
	h->queue = wddm2_queue(&h->w.device);
}

/* Asserts that nothing is mapped, and nothing was mapped wrongly. */
static void stop(struct host *h)
{
	wddm2_run(&h->w);
	client_close(&h->w.device);
	wddm2_run(&h->w);
	assert_int_equal(h->w.m->shown, 0);
	assert_int_equal(h->w.m->faults, 0);
	world_stop_adapter(&h->w);
}

/* In the hidden segment, and on the residency list. */
static D3DKMT_HANDLE resident(struct host *h, uint64_t bytes)
{
	D3DKMT_HANDLE a = wddm2_allocate(&h->w.device, bytes, BOTH_SEGMENTS);

	wddm2_make(&h->w, &h->w.device, &h->queue, &a, 1);
	assert_true(wddm2_is_in_memory(&h->w.device, a));
	return a;
}

static uint32_t *lock2(struct host *h, D3DKMT_HANDLE a)
{
	D3DDDICB_LOCK2 args = {.hAllocation = a};

	assert_int_equal(h->w.device.cb->pfnLock2Cb(h->w.device.handle, &args), S_OK);
	return args.pData;
}

static void unlock2(struct host *h, D3DKMT_HANDLE a)
{
	const D3DDDICB_UNLOCK2 args = {.hAllocation = a};

	assert_int_equal(h->w.device.cb->pfnUnlock2Cb(h->w.device.handle, &args), S_OK);
}

static uint32_t maps(const struct host *h)
{
	return scripted_count(h->w.m, VIDMM_DDI_MAP_CPU_HOST_APERTURE);
}

static uint32_t unmaps(const struct host *h)
{
	return scripted_count(h->w.m, VIDMM_DDI_UNMAP_CPU_HOST_APERTURE);
}

static const struct scripted_call *last_map(const struct host *h)
{
	return scripted_last(h->w.m, VIDMM_DDI_MAP_CPU_HOST_APERTURE);
}

static void evict(struct host *h, D3DKMT_HANDLE a)
{
	assert_int_equal(wddm2_evict(&h->w.device, a, 0), S_OK);
	wddm2_run(&h->w);
}

/* CPU and GPU access the same bytes, and every Map is undone by an Unmap of the same pages. */
static void swz_29_lock_46_a_lock_maps_pages_and_each_map_is_undone(void **state)
{
	struct host h;

	start(&h, state, hosted);
	(void)resident(&h, 32 * KIB);
	D3DKMT_HANDLE a = resident(&h, 64 * KIB);
	world_submit_write(&h.w.context, a, 4, 0x44);
	wddm2_run(&h.w);
	uint32_t *words = lock2(&h, a);
	assert_true(wddm2_is_in_memory(&h.w.device, a));
	assert_int_equal(maps(&h), 1);
	const struct scripted_call *map = last_map(&h);
	assert_non_null(map->in.host_map.hAllocation);
	assert_int_equal(map->in.host_map.SegmentId, 1);
	assert_int_equal(map->in.host_map.PhysicalAdapterIndex, 0);
	assert_int_equal(map->in.host_map.NumberOfPages, 16);
	for (uint32_t i = 0; i < 16; i++) {
		assert_int_equal(map->host_pages[i], i);
		/* the other allocation is in front of it */
		assert_int_equal(map->segment_pages[i], 8 + i);
	}
	assert_int_equal(words[1], 0x44);
	words[2] = 0x55;
	world_submit_write(&h.w.context, a, 60 * KIB, 0x66);
	wddm2_run(&h.w);
	assert_int_equal(words[15 * KIB], 0x66); /* while it is locked */
	unlock2(&h, a);
	/* The mapping is reused by the next lock. */
	assert_ptr_equal(lock2(&h, a), words);
	unlock2(&h, a);
	assert_int_equal(maps(&h), 1);
	assert_int_equal(unmaps(&h), 0);
	assert_int_equal(h.w.m->shown, 16);
	evict(&h, a);
	assert_int_equal(unmaps(&h), 1);
	assert_int_equal(h.w.m->shown, 0);
	const struct scripted_call *unmap = scripted_last(h.w.m, VIDMM_DDI_UNMAP_CPU_HOST_APERTURE);
	assert_int_equal(unmap->in.host_unmap.SegmentId, 1);
	assert_int_equal(unmap->in.host_unmap.NumberOfPages, 16);
	assert_memory_equal(unmap->host_pages, map->host_pages, 16 * sizeof(UINT32));
	words = lock2(&h, a); /* in system memory */
	assert_int_equal(words[1], 0x44);
	assert_int_equal(words[2], 0x55);
	unlock2(&h, a);
	stop(&h);
}

/* The pages used in the aperture need not be contiguous. */
static void swz_29_scattered_pages_of_the_aperture_are_used(void **state)
{
	D3DKMT_HANDLE a[4], e;
	struct host h;

	start(&h, state, hosted);
	for (uint32_t i = 0; i < 4; i++) {
		a[i] = resident(&h, 64 * KIB);
		(void)lock2(&h, a[i]);
	}
	assert_int_equal(h.w.m->shown, HOST_PAGES);
	e = resident(&h, 128 * KIB);
	unlock2(&h, a[1]);
	unlock2(&h, a[3]);
	evict(&h, a[1]);
	evict(&h, a[3]);
	assert_int_equal(h.w.m->shown, 32);
	uint32_t *words = lock2(&h, e);
	const struct scripted_call *map = last_map(&h);
	for (uint32_t i = 0; i < 32; i++)
		assert_int_equal(map->host_pages[i], i < 16 ? 16 + i : 32 + i);
	for (uint32_t i = 0; i < 32 * KIB; i++)
		words[i] = i;
	for (uint32_t page = 0; page < 32; page++) {
		uint32_t seen[2];

		assert_true(scripted_gpu_access(
			h.w.m, 1, SCRIPTED_MEMORY_BASE + (map->segment_pages[page] << 12), seen,
			sizeof(seen), false));
		assert_int_equal(seen[0], page * 1024);
		assert_int_equal(seen[1], page * 1024 + 1);
	}
	unlock2(&h, e);
	unlock2(&h, a[0]);
	unlock2(&h, a[2]);
	stop(&h);
}

/*
 * Mappings of unlocked allocations are removed first, least recently locked first; then system
 * memory is used.
 */
static void lock_46_swz_29_a_full_aperture_unmaps_lru_then_uses_system_memory(void **state)
{
	D3DKMT_HANDLE a[4], b, c;
	struct host h;

	start(&h, state, hosted);
	for (uint32_t i = 0; i < 4; i++)
		a[i] = resident(&h, 64 * KIB);
	for (uint32_t i = 0; i < 4; i++)
		*lock2(&h, a[i]) = 0x10 + i;
	for (uint32_t i = 0; i < 3; i++)
		unlock2(&h, a[i]); /* not the last unlock */
	(void)lock2(&h, a[0]);
	unlock2(&h, a[0]);
	b = resident(&h, 64 * KIB);
	*lock2(&h, b) = 0x20;
	/* It was a[1]: a[0] was locked later. */
	assert_int_equal(last_map(&h)->host_pages[0], 16);
	assert_int_equal(unmaps(&h), 1);
	assert_int_equal(h.w.m->shown, HOST_PAGES);
	for (uint32_t i = 0; i < 3; i += 2)
		(void)lock2(&h, a[i]);
	assert_int_equal(maps(&h), 5); /* still mapped */
	c = resident(&h, 64 * KIB);
	*lock2(&h, c) = 0x30; /* all of the aperture is locked */
	assert_int_equal(maps(&h), 5);
	assert_int_equal(client_residency(&h.w.device, c),
			 D3DDDI_RESIDENCYSTATUS_RESIDENTINSHAREDMEMORY);
	unlock2(&h, c);
	unlock2(&h, b);
	assert_int_equal(*lock2(&h, a[1]), 0x11); /* and b is unmapped for it */
	assert_int_equal(maps(&h), 6);
	assert_int_equal(unmaps(&h), 2);
	for (uint32_t i = 0; i < 4; i++)
		unlock2(&h, a[i]);
	assert_int_equal(*lock2(&h, b), 0x20);
	unlock2(&h, b);
	stop(&h);
}

/*
 * An allocation that can never fit, or that the miniport refuses to map, is locked in system
 * memory. No partial mapping remains.
 */
static void lock_46_without_a_mapping_the_lock_uses_system_memory(void **state)
{
	struct host h;

	start(&h, state, hosted);
	D3DKMT_HANDLE small = resident(&h, 64 * KIB);
	*lock2(&h, small) = 0x11;
	unlock2(&h, small);
	D3DKMT_HANDLE large = resident(&h, 512 * KIB);
	world_submit_write(&h.w.context, large, 500 * KIB, 0x22);
	wddm2_run(&h.w);
	assert_int_equal(lock2(&h, large)[125 * KIB], 0x22);
	assert_false(wddm2_is_in_memory(&h.w.device, large));
	unlock2(&h, large);
	assert_int_equal(unmaps(&h), 0); /* nothing was unmapped in vain */
	D3DKMT_HANDLE other = resident(&h, 64 * KIB);
	scripted_fail(h.w.m, VIDMM_DDI_MAP_CPU_HOST_APERTURE, STATUS_UNSUCCESSFUL, 1);
	*lock2(&h, other) = 0x33;
	assert_false(wddm2_is_in_memory(&h.w.device, other));
	assert_int_equal(h.w.m->shown, 16);
	unlock2(&h, other);
	stop(&h);
}

/* A failed Unmap is a violation of the miniport, and counts as done. */
static void swz_29_a_failed_unmap_is_reported_and_counts_as_done(void **state)
{
	struct host h;

	start(&h, state, hosted);
	D3DKMT_HANDLE a = resident(&h, 64 * KIB);
	(void)lock2(&h, a);
	unlock2(&h, a);
	scripted_fail(h.w.m, VIDMM_DDI_UNMAP_CPU_HOST_APERTURE, STATUS_UNSUCCESSFUL, 1);
	evict(&h, a);
	world_expect_finding(&h.w, "SWZ-29");
	h.w.m->shown = 0; /* pages it still has mapped */
	wddm2_run(&h.w);
	client_close(&h.w.device);
	world_stop_adapter(&h.w);
}

/*
 * Pages of 64 KiB: each belongs to one allocation, however small. A smaller alignment is refused.
 */
static void swz_29_seg_11_with_64_kib_pages_each_page_has_one_allocation(void **state)
{
	struct scripted_allocation spec = {.size_bytes = 4 * KIB,
					   .flags = PHYSICAL,
					   .read_set = BOTH_SEGMENTS,
					   .write_set = BOTH_SEGMENTS,
					   .alignment = 4 * KIB};
	D3DKMT_HANDLE a, b, c;
	struct host h;

	start(&h, state, hosted_64k);
	assert_int_equal(wddm2_try_allocate(&h.w.device, &spec, &a), E_INVALIDARG);
	world_expect_finding(&h.w, "SEG-11");
	a = resident(&h, 4 * KIB);
	b = resident(&h, 100 * KIB);
	c = resident(&h, 8 * KIB);
	*lock2(&h, a) = 1;
	assert_int_equal(last_map(&h)->in.host_map.NumberOfPages, 1);
	assert_int_equal(last_map(&h)->segment_pages[0], 0);
	uint32_t *words = lock2(&h, b);
	words[24 * KIB] = 2;
	assert_int_equal(last_map(&h)->in.host_map.NumberOfPages, 2);
	assert_int_equal(last_map(&h)->segment_pages[0], 1);
	assert_int_equal(last_map(&h)->segment_pages[1], 2);
	*lock2(&h, c) = 3;
	assert_int_equal(last_map(&h)->segment_pages[0], 3);
	assert_int_equal(h.w.m->shown, 4);
	world_submit_write(&h.w.context, b, 96 * KIB + 4, 4);
	wddm2_run(&h.w);
	assert_int_equal(words[24 * KIB], 2);
	assert_int_equal(words[24 * KIB + 1], 4);
	unlock2(&h, a);
	unlock2(&h, b);
	unlock2(&h, c);
	stop(&h);
}

/* ALF-27: the address and the pages are released with the last lock. */
static void alf_27_swz_29_cpuvisibleondemand_unmaps_with_the_last_lock(void **state)
{
	const struct scripted_allocation spec = {.size_bytes = 64 * KIB,
						 .flags = ACCESSED_PHYSICALLY | ON_DEMAND,
						 .read_set = BOTH_SEGMENTS,
						 .write_set = BOTH_SEGMENTS};
	struct host h;
	D3DKMT_HANDLE a;

	start(&h, state, hosted);
	assert_int_equal(wddm2_try_allocate(&h.w.device, &spec, &a), S_OK);
	wddm2_make(&h.w, &h.w.device, &h.queue, &a, 1);
	*lock2(&h, a) = 0x77;
	(void)lock2(&h, a);
	unlock2(&h, a);
	assert_int_equal(h.w.m->shown, 16);
	unlock2(&h, a);
	assert_int_equal(h.w.m->shown, 0);
	assert_int_equal(*lock2(&h, a), 0x77);
	assert_int_equal(maps(&h), 2);
	unlock2(&h, a);
	stop(&h);
}

/*
 * Under pressure a locked allocation moves and its pointer stays valid; its pages in the aperture
 * are unmapped.
 */
static void lock_46_swz_29_a_locked_allocation_moves_and_its_pages_are_unmapped(void **state)
{
	struct client_device second;
	struct host h;

	start(&h, state, hosted);
	D3DKMT_HANDLE a = resident(&h, 64 * KIB), big;
	uint32_t *words = lock2(&h, a);
	words[9] = 0x99;
	client_open(&h.w.client, &second);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&second);
	big = wddm2_allocate(&second, h.w.m->settings.segment[0].size_bytes, BOTH_SEGMENTS);
	wddm2_make(&h.w, &second, &queue, &big, 1);
	assert_true(wddm2_is_in_memory(&second, big));
	assert_false(wddm2_is_in_memory(&h.w.device, a));
	assert_int_equal(h.w.m->shown, 0);
	assert_int_equal(words[9], 0x99);
	words[10] = 0xAA;
	unlock2(&h, a);
	client_close(&second);
	wddm2_run(&h.w);
	assert_int_equal(lock2(&h, a)[10], 0xAA);
	unlock2(&h, a);
	stop(&h);
}

/* Power off, and destruction of a mapped allocation. */
static void swz_29_power_off_and_destruction_unmap_pages(void **state)
{
	struct host h;

	start(&h, state, hosted);
	D3DKMT_HANDLE a = resident(&h, 64 * KIB), b = resident(&h, 64 * KIB);
	*lock2(&h, a) = 0x11;
	unlock2(&h, a);
	uint32_t *words = lock2(&h, b);
	*words = 0x22;
	assert_int_equal(
		vidmm_adapter_set_power(h.w.client.adapter, VIDMM_POWER_D3, VIDMM_SLEEP_STANDBY),
		0);
	assert_int_equal(h.w.m->shown, 0);
	*words = 0x23; /* in system memory */
	assert_int_equal(vidmm_adapter_set_power(h.w.client.adapter, VIDMM_POWER_D0, 0), 0);
	wddm2_run(&h.w);
	assert_int_equal(*lock2(&h, a), 0x11);
	unlock2(&h, a);
	assert_int_equal(*words, 0x23);
	unlock2(&h, b);
	assert_int_equal(client_deallocate(&h.w.device, a), S_OK);
	wddm2_run(&h.w);
	stop(&h);
}

/* An out-of-process client, and the descriptor that it was given. */
struct other {
	struct test_viewer viewer;
	struct client_device device;
	D3DDDICB_CREATEPAGINGQUEUE queue;
	D3DKMT_HANDLE allocation;
	int retained_fd;
};

static uint32_t *lock_other(struct other *o)
{
	D3DDDICB_LOCK2 lock = {.hAllocation = o->allocation};

	assert_int_equal(o->device.cb->pfnLock2Cb(o->device.handle, &lock), S_OK);
	return lock.pData;
}

static void unlock_other(struct other *o)
{
	const D3DDDICB_UNLOCK2 unlock = {.hAllocation = o->allocation};

	assert_int_equal(o->device.cb->pfnUnlock2Cb(o->device.handle, &unlock), S_OK);
}

/* 4 KiB of a page of 64 KiB; the rest is never mapped. */
static uint32_t *show_other(struct host *h, struct other *o, uint32_t pattern)
{
	o->allocation = wddm2_allocate(&o->device, 4 * KIB, BOTH_SEGMENTS);
	wddm2_make(&h->w, &o->device, &o->queue, &o->allocation, 1);
	uint32_t *words = lock_other(o);
	assert_ptr_equal(o->viewer.last_address, words);
	/* The rest of a page of the aperture has no memory in it. */
	struct stat info;
	assert_int_equal(fstat(o->viewer.last_fd, &info), 0);
	assert_true((uint64_t)info.st_blocks * 512 < 64 * KIB);
	if (o->retained_fd >= 0)
		close(o->retained_fd);
	o->retained_fd = dup(o->viewer.last_fd);
	for (uint32_t i = 0; i < KIB; i++)
		words[i] = pattern + i;
	return words;
}

/*
 * The page is used by one client after the other. Retained descriptors reach no other client's
 * content.
 */
static void swz_29_q_93_an_aperture_page_shows_only_its_current_users_content(void **state)
{
	struct other *o = calloc(2, sizeof(*o));
	struct host h;
	uint32_t seen;

	assert_non_null(o);
	start(&h, state, hosted_64k);
	for (uint32_t i = 0; i < 2; i++) {
		client_open_out_of_process(&h.w.client, &o[i].viewer, &o[i].device);
		o[i].queue = wddm2_queue(&o[i].device);
		o[i].retained_fd = -1;
	}
	for (uint32_t round = 0; round < 6; round++) {
		struct other *me = &o[round % 2], *former = &o[!(round % 2)];
		uint32_t *words = show_other(&h, me, 0x1000 * round);

		assert_int_equal(last_map(&h)->host_pages[0], 0);
		assert_memory_equal(h.w.m->bar + MIB, words, 4 * KIB); /* as the miniport sees it */
		if (round) {
			const uint32_t evil = 0xE711;

			for (uint32_t at = 0; at < 4 * KIB; at += 4) {
				assert_int_equal(pread(former->retained_fd, &seen, 4, at), 4);
				assert_int_not_equal(seen & 0xFFFFF000, 0x1000 * round);
			}
			assert_int_equal(pwrite(former->retained_fd, &evil, 4, 16), 4);
			assert_int_equal(words[4], 0x1000 * round + 4);
		}
		unlock_other(me);
		/* Its content is moved from the aperture to system memory. */
		assert_int_equal(wddm2_evict(&me->device, me->allocation, 0), S_OK);
		wddm2_run(&h.w);
		assert_int_equal(h.w.m->shown, 0);
		words = lock_other(me);
		assert_int_equal(words[KIB - 1], 0x1000 * round + KIB - 1);
		unlock_other(me);
		assert_int_equal(client_deallocate(&me->device, me->allocation), S_OK);
		wddm2_run(&h.w);
	}
	/* An in-process client uses the same page. */
	D3DKMT_HANDLE own = resident(&h, 4 * KIB);
	uint32_t *words = lock2(&h, own);
	words[4] = 0x77;
	assert_int_equal(last_map(&h)->host_pages[0], 0);
	assert_int_equal(((const uint32_t *)(const void *)(h.w.m->bar + MIB))[4], 0x77);
	unlock2(&h, own);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(pread(o[i].retained_fd, &seen, 4, 16), 4);
		assert_int_not_equal(seen, 0x77);
		close(o[i].retained_fd);
		client_close_out_of_process(&o[i].viewer, &o[i].device);
	}
	free(o);
	stop(&h);
}

static void visible(struct scripted_miniport *m)
{
	wddm2_0(m);
	m->settings.complete_at_once = true;
}

/* Locks and moves of the content need no descriptor that the creation has not made. */
static void expect_prepared(void **state, world_setup *setup)
{
	const struct scripted_allocation spec = {.size_bytes = 4 * KIB,
						 .flags = PHYSICAL,
						 .read_set = BOTH_SEGMENTS,
						 .write_set = BOTH_SEGMENTS};
	struct other o = {.retained_fd = -1};
	struct host h;
	uint32_t n = 0;
	bool refused;

	start(&h, state, setup);
	client_open_out_of_process(&h.w.client, &o.viewer, &o.device);
	o.queue = wddm2_queue(&o.device);
	do {
		(void)vidmm_fail_nth(VIDMM_FAIL_DESCRIPTOR, ++n);
		HRESULT result = wddm2_try_allocate(&o.device, &spec, &o.allocation);
		refused = !vidmm_fail_nth(VIDMM_FAIL_DESCRIPTOR, 0);
		assert_int_equal(result, refused ? E_OUTOFMEMORY : S_OK);
	} while (refused);
	assert_true(n > 1);
	(void)vidmm_fail_nth(VIDMM_FAIL_DESCRIPTOR, 1);
	wddm2_make(&h.w, &o.device, &o.queue, &o.allocation, 1);
	*lock_other(&o) = 0x455;
	unlock_other(&o);
	assert_int_equal(wddm2_evict(&o.device, o.allocation, 0), S_OK);
	wddm2_run(&h.w);
	assert_int_equal(*lock_other(&o), 0x455);
	unlock_other(&o);
	assert_int_equal(vidmm_fail_nth(VIDMM_FAIL_DESCRIPTOR, 0), 1);
	client_close_out_of_process(&o.viewer, &o.device);
	stop(&h);
}

static void q_455_a_creation_makes_all_memory_objects_of_its_client(void **state)
{
	expect_prepared(state, visible);
	expect_prepared(state, hosted_64k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(swz_29_lock_46_a_lock_maps_pages_and_each_map_is_undone),
		ON_BOTH(swz_29_scattered_pages_of_the_aperture_are_used),
		ON_BOTH(lock_46_swz_29_a_full_aperture_unmaps_lru_then_uses_system_memory),
		ON_BOTH(lock_46_without_a_mapping_the_lock_uses_system_memory),
		ON_BOTH(swz_29_a_failed_unmap_is_reported_and_counts_as_done),
		ON_BOTH(swz_29_seg_11_with_64_kib_pages_each_page_has_one_allocation),
		ON_BOTH(alf_27_swz_29_cpuvisibleondemand_unmaps_with_the_last_lock),
		ON_BOTH(lock_46_swz_29_a_locked_allocation_moves_and_its_pages_are_unmapped),
		ON_BOTH(swz_29_power_off_and_destruction_unmap_pages),
		ON_BOTH(swz_29_q_93_an_aperture_page_shows_only_its_current_users_content),
		ON_SIM(q_455_a_creation_makes_all_memory_objects_of_its_client),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
