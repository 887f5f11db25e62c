/* SPDX-License-Identifier: MIT */
/*
 * ALF-19, ALF-20, PAG-18 to PAG-20: overlay and capture allocations, and how pinning affects other
 * allocations.
 */
#include "world.h"

enum { PAGES = 100, FIFTH = 20, CONTENT_LOST = (int)0xC0262116 };

static const uint32_t kinds[] = {SOFTGPU_ALLOCATION_OVERLAY, SOFTGPU_ALLOCATION_CAPTURE};

/* Segments of 100 pages that contain allocations only. */
static const struct vidmm_registry_value bare[] = {{"DmaBufferSegmentSet", 0},
						   {"PagingBufferSegment", 0}};
static const struct client_options hundred = {.vram_bytes = PAGES * PAGE,
					      .aperture_bytes = PAGES * PAGE,
					      .registry = bare,
					      .registry_count = 2};

static HRESULT try_pinned(struct world *w, uint32_t pages, uint32_t kind, uint32_t set,
			  D3DKMT_HANDLE *a)
{
	struct softgpu_allocation wish = wish_of(pages * PAGE, CPU | kind, set);

	return client_try_allocate(&w->device, &wish, NULL, a, NULL);
}

static D3DKMT_HANDLE allocate_pinned(struct world *w, uint32_t pages, uint32_t kind, uint32_t set)
{
	D3DKMT_HANDLE a;

	assert_int_equal(try_pinned(w, pages, kind, set, &a), S_OK);
	return a;
}

/* The first page in video memory, from the fill of a fresh allocation. */
static uint64_t page_of(HANDLE kmd)
{
	const struct probe_call *fill = probe_find_paging(DXGK_OPERATION_FILL, kmd, 0);

	assert_non_null(fill);
	return (uint64_t)fill->paging.Fill.Destination.SegmentAddress.QuadPart / PAGE;
}

static void expect_no_room(struct world *w, uint32_t pages, uint32_t kind, uint32_t set,
			   bool too_large)
{
	uint64_t before = world_statistics(w).allocations;
	uint64_t resident = world_statistics(w).segment[0].resident_bytes;
	D3DKMT_HANDLE a = 0;

	client_forget(&w->client);
	probe_forget();
	w->client.reasons = 0;
	assert_int_equal(try_pinned(w, pages, kind, set, &a), D3DERR_OUTOFVIDEOMEMORY);
	assert_int_equal(a, 0);
	assert_int_equal(client_told(&w->client, STATUS_NO_VIDEO_MEMORY, "PAG-19: create refused"),
			 !too_large);
	/*
	 * An allocation that can never be placed is a violation of the miniport. A full zone is
	 * not.
	 */
	assert_int_equal(w->client.findings, too_large);
	assert_int_equal(client_found(&w->client, "PAG-19"), too_large);
	assert_true(world_statistics(w).allocations == before);
	assert_true(world_statistics(w).segment[0].resident_bytes == resident);
	assert_int_equal(probe_count(PROBE_DESTROY), 1);
	assert_int_equal(probe_count(PROBE_OPEN), 0);
	client_forget(&w->client);
}

static void alf_19_alf_20_pag_19_pinned_allocations_use_the_last_fifth_only(void **state)
{
	for (uint32_t k = 0; k < 2; k++) {
		struct world w;

		world_start(&w, state, &hundred);
		D3DKMT_HANDLE a = allocate_pinned(&w, FIFTH, kinds[k], VRAM);
		assert_int_equal(page_of(probe_last_created()), PAGES - FIFTH);
		assert_int_equal(client_residency(&w.device, a), IN_VRAM);
		expect_no_room(&w, 1, kinds[k], VRAM, false);
		expect_no_room(&w, FIFTH + 1, kinds[k], VRAM, true);
		assert_int_equal(client_deallocate(&w.device, a), S_OK);
		expect_no_room(&w, FIFTH + 1, kinds[k], VRAM, true);
		/* the limit is for all of them together, from the end. */
		probe_forget();
		allocate_pinned(&w, 12, SOFTGPU_ALLOCATION_OVERLAY, VRAM);
		assert_int_equal(page_of(probe_last_created()), PAGES - 12);
		expect_no_room(&w, 9, kinds[k], VRAM, false);
		probe_forget();
		allocate_pinned(&w, 8, SOFTGPU_ALLOCATION_CAPTURE, VRAM);
		assert_int_equal(page_of(probe_last_created()), PAGES - FIFTH);
		expect_no_room(&w, 1, kinds[k], VRAM, false);
		world_stop(&w);
	}
}

static void pag_19_a_fifth_is_whole_pages_and_never_more(void **state)
{
	struct client_options options = hundred;
	struct world w;

	options.vram_bytes = (PAGES + 4) * PAGE; /* a fifth is 20.8 pages */
	world_start(&w, state, &options);
	expect_no_room(&w, FIFTH + 1, kinds[0], VRAM, true);
	allocate_pinned(&w, FIFTH, kinds[0], VRAM);
	world_stop(&w);
}

static void pag_19_the_next_segment_of_the_set_is_tried(void **state)
{
	struct world w;

	world_start(&w, state, &hundred);
	D3DKMT_HANDLE first = allocate_pinned(&w, FIFTH, kinds[0], VRAM | APERTURE);
	D3DKMT_HANDLE second = allocate_pinned(&w, FIFTH, kinds[1], VRAM | APERTURE);
	const struct probe_call *map =
		probe_find_paging(DXGK_OPERATION_MAP_APERTURE_SEGMENT, probe_last_created(), 0);

	assert_int_equal(client_residency(&w.device, first), IN_VRAM);
	assert_int_equal(client_residency(&w.device, second), IN_APERTURE);
	assert_true(map->paging.MapApertureSegment.OffsetInPages == PAGES - FIFTH);
	expect_no_room(&w, 1, kinds[0], VRAM | APERTURE, false);
	world_stop(&w);
}

static void pag_19_hints_and_directions_do_not_place_outside_the_last_fifth(void **state)
{
	static const struct vidmm_registry_value values[] = {{"VramBanks", 4}};
	struct client_options options = hundred;
	struct softgpu_allocation wish = wish_of(PAGE, CPU | SOFTGPU_ALLOCATION_OVERLAY, VRAM);
	struct world w;

	options.registry = values;
	options.registry_count = 1;
	options.aperture_bytes = 0;
	world_start(&w, state, &options);
	wish.hinted_banks = 1;
	allocate_wish(&w.device, &wish);
	assert_int_equal(page_of(probe_last_created()), PAGES - 1);
	world_stop(&w);
}

static void pag_19_only_allocations_in_the_last_fifth_are_evicted_for_an_overlay(void **state)
{
	struct world w;

	world_start(&w, state, &hundred);
	D3DKMT_HANDLE below = allocate_in(&w.device, 40 * PAGE, CPU, VRAM);
	D3DKMT_HANDLE across = allocate_in(&w.device, 60 * PAGE, CPU, VRAM);

	client_write(&w.device, below, 40 * PAGE, 0x1900);
	client_write(&w.device, across, 60 * PAGE, 0x190000);
	use_now(&w, below, true);
	use_now(&w, across, true);
	use_now(&w, across, true);
	allocate_pinned(&w, 1, kinds[0], VRAM);
	assert_int_equal(client_residency(&w.device, below), IN_VRAM);
	assert_int_equal(client_residency(&w.device, across), EVICTED);
	client_expect(&w.device, below, 40 * PAGE, 0x1900);
	client_expect(&w.device, across, 60 * PAGE, 0x190000);
	world_stop(&w);
}

struct creator {
	struct world *world;
	D3DKMT_HANDLE made;
	HRESULT result;
	_Atomic uint32_t state; /* 1: about to call, 2: returned */
};

static void creator_main(void *argument)
{
	struct creator *c = argument;

	atomic_store(&c->state, 1);
	c->result = try_pinned(c->world, 5, kinds[1], VRAM, &c->made);
	atomic_store(&c->state, 2);
}

static void pag_19_creation_waits_for_the_gpu_to_free_the_last_fifth(void **state)
{
	struct creator creator = {0};
	struct vidmm_thread *thread;
	struct world w;

	world_start(&w, state, &hundred);
	D3DKMT_HANDLE busy = allocate_in(&w.device, PAGES * PAGE, CPU, VRAM);

	gate_close(&w);
	client_reference(&w.context, busy, true);
	client_submit(&w.context);
	for (int i = 0; i < 50; i++)
		vidmm_settle(w.client.host);
	assert_int_equal(client_residency(&w.device, busy), IN_VRAM);
	creator.world = &w;
	assert_int_equal(
		vidmm_thread_create(w.client.host, "creator", creator_main, &creator, &thread), 0);
	while (!atomic_load(&creator.state))
		vidmm_settle(w.client.host);
	for (int i = 0; i < 100; i++)
		vidmm_settle(w.client.host);
	assert_int_equal(atomic_load(&creator.state), 1);
	assert_int_equal(client_residency(&w.device, busy), IN_VRAM);
	gate_open(&w);
	vidmm_thread_join(thread);
	assert_int_equal(creator.result, S_OK);
	assert_int_equal(client_residency(&w.device, creator.made), IN_VRAM);
	assert_int_equal(client_residency(&w.device, busy), EVICTED);
	client_idle(&w.client);
	world_stop(&w);
}

static void pag_18_memory_pressure_never_moves_pinned_allocations(void **state)
{
	for (uint32_t k = 0; k < 2; k++) {
		struct world w;

		world_start(&w, state, &hundred);
		D3DKMT_HANDLE pinned = allocate_pinned(&w, 7, kinds[k], VRAM);
		HANDLE kmd = probe_last_created();
		D3DKMT_HANDLE mapped = allocate_pinned(&w, 5, kinds[k], APERTURE);
		D3DKMT_HANDLE a[4];

		client_write(&w.device, pinned, 7 * PAGE, 0x1800);
		client_write(&w.device, mapped, 5 * PAGE, 0x1801);
		for (uint32_t i = 0; i < 4; i++) {
			a[i] = allocate_in(&w.device, (93 - i) * PAGE, CPU,
					   i % 2 ? APERTURE : VRAM);
			client_write(&w.device, a[i], (93 - i) * PAGE, i << 20);
		}
		for (uint32_t i = 0; i < 16; i++) {
			use_now(&w, a[i % 4], true);
			assert_int_equal(client_residency(&w.device, pinned), IN_VRAM);
			assert_int_equal(client_residency(&w.device, mapped), IN_APERTURE);
			if (i % 3 == 0) {
				use_now(&w, pinned, true);
				use_now(&w, mapped, true);
			}
		}
		assert_int_equal(probe_paging_count(-1, kmd), 1); /* the fill, and nothing later */
		client_expect(&w.device, pinned, 7 * PAGE, 0x1800);
		client_expect(&w.device, mapped, 5 * PAGE, 0x1801);
		for (uint32_t i = 0; i < 4; i++)
			client_expect(&w.device, a[i], (93 - i) * PAGE, i << 20);
		world_stop(&w);
	}
}

static void pag_18_minimum_priority_does_not_make_pinned_evictable(void **state)
{
	struct world w;
	UINT minimum = D3DDDI_ALLOCATIONPRIORITY_MINIMUM;

	world_start(&w, state, &hundred);
	D3DKMT_HANDLE pinned = allocate_pinned(&w, FIFTH, kinds[0], VRAM);
	D3DDDICB_SETPRIORITY args = {
		.NumAllocations = 1, .HandleList = &pinned, .pPriorities = &minimum};

	assert_int_equal(w.device.cb->pfnSetPriorityCb(w.device.handle, &args), S_OK);
	D3DKMT_HANDLE rest = allocate_in(&w.device, (PAGES - FIFTH) * PAGE, CPU, VRAM);
	use_now(&w, rest, true);
	assert_int_equal(client_residency(&w.device, rest), IN_VRAM);
	assert_int_equal(client_residency(&w.device, pinned), IN_VRAM);
	world_stop(&w);
}

static void pag_18_a_call_that_fails_leaves_nothing_pinned(void **state)
{
	struct softgpu_allocation wishes[2] = {
		wish_of(FIFTH * PAGE, CPU | SOFTGPU_ALLOCATION_OVERLAY, VRAM),
		wish_of(PAGE, CPU | SOFTGPU_ALLOCATION_CAPTURE, VRAM)};
	D3DDDI_ALLOCATIONINFO infos[2] = {
		{.pPrivateDriverData = &wishes[0], .PrivateDriverDataSize = sizeof(wishes[0])},
		{.pPrivateDriverData = &wishes[1], .PrivateDriverDataSize = sizeof(wishes[1])}};
	D3DDDICB_ALLOCATE args = {.NumAllocations = 2, .pAllocationInfo = infos};
	struct world w;

	world_start(&w, state, &hundred);
	assert_int_equal(w.device.cb->pfnAllocateCb(w.device.handle, &args),
			 D3DERR_OUTOFVIDEOMEMORY);
	assert_int_equal(infos[0].hAllocation, 0);
	assert_int_equal(world_statistics(&w).segment[0].resident_bytes, 0);
	assert_int_equal(probe_count(PROBE_DESTROY), 2);
	allocate_pinned(&w, FIFTH, kinds[0], VRAM); /* the whole zone */
	world_stop(&w);
}

static void lock_36_lkr_02_rendering_with_a_locked_pinned_allocation_fails(void **state)
{
	struct world w;

	world_start(&w, state, &hundred);
	D3DKMT_HANDLE pinned = allocate_pinned(&w, 2, kinds[0], VRAM | APERTURE);
	D3DKMT_HANDLE mapped = allocate_pinned(&w, 2, kinds[0], APERTURE);

	uint32_t *bytes = client_lock(&w.device, pinned, 0);
	client_lock(&w.device, mapped, 0);
	client_reference(&w.context, pinned, true);
	assert_int_equal(client_try_submit(&w.context), D3DDDIERR_CANTRENDERLOCKEDALLOCATION);
	assert_true(client_found(&w.client, "LKR-02"));
	client_forget(&w.client);
	use_now(&w, mapped, true); /* LKR-05 */
	bytes[1] = 0x4C4B52;
	assert_int_equal(client_unlock(&w.device, pinned), S_OK);
	use_now(&w, pinned, true);
	bytes = client_lock(&w.device, pinned, READ_ONLY);
	assert_int_equal(bytes[1], 0x4C4B52);
	assert_int_equal(client_unlock(&w.device, pinned), S_OK);
	assert_int_equal(client_unlock(&w.device, mapped), S_OK);
	world_stop(&w);
}

static void lkr_02_a_lock_after_an_accepted_submission_moves_nothing(void **state)
{
	struct world w;
	void *data;

	world_start(&w, state, &hundred);
	D3DKMT_HANDLE pinned = allocate_pinned(&w, 2, kinds[0], VRAM | APERTURE);
	D3DKMT_HANDLE busy = allocate_in(&w.device, 60 * PAGE, CPU, VRAM);
	D3DKMT_HANDLE next = allocate_in(&w.device, 60 * PAGE, CPU, VRAM);

	client_write(&w.device, pinned, 2 * PAGE, 0x0200);
	gate_close(&w);
	client_reference(&w.context, busy, true);
	client_submit(&w.context);
	client_reference(&w.context, next, true);
	client_submit(&w.context); /* waits for the memory of `busy` */
	client_reference(&w.context, pinned, false);
	client_submit(&w.context); /* waits behind it */
	D3DKMT_HANDLE handle = pinned;
	assert_int_equal(client_try_lock(&w.device, &handle, IGNORE_SYNC | DONOT_WAIT, &data),
			 S_OK);
	gate_open(&w);
	client_idle(&w.client);
	assert_int_equal(client_residency(&w.device, pinned), IN_VRAM);
	assert_int_equal(((uint32_t *)data)[3], 0x0200 + 3);
	assert_int_equal(client_unlock(&w.device, pinned), S_OK);
	use_now(&w, pinned, true);
	world_stop(&w);
}

static void lock_49_a_pinned_allocation_in_a_hidden_segment_cannot_be_locked(void **state)
{
	static const struct vidmm_registry_value hidden[] = {{"VramCpuVisible", 0}};
	const struct client_options options = {
		.vram_bytes = PAGES * PAGE, .registry = hidden, .registry_count = 1};
	struct world w;

	world_start(&w, state, &options);
	D3DKMT_HANDLE pinned = allocate_pinned(&w, 2, kinds[1], VRAM);
	expect_lock_refused(&w, pinned, 0, D3DDDIERR_CANTEVICTPINNEDALLOCATION, "LOCK-49");
	expect_lock_refused(&w, pinned, DONOT_EVICT, D3DERR_NOTAVAILABLE, "LOCK-49");
	assert_int_equal(client_residency(&w.device, pinned), IN_VRAM);
	D3DKMT_HANDLE mapped = allocate_pinned(&w, 2, kinds[1], APERTURE);
	client_write(&w.device, mapped, 2 * PAGE, 0x49);
	client_expect(&w.device, mapped, 2 * PAGE, 0x49);
	world_stop(&w);
}

static void ren_14_ref_11_a_pinned_allocation_is_not_renamed(void **state)
{
	struct world w;
	void *data;

	world_start(&w, state, &hundred);
	D3DKMT_HANDLE pinned = allocate_pinned(&w, 2, kinds[0], VRAM);
	client_write(&w.device, pinned, 2 * PAGE, 0x1414);
	gate_close(&w);
	client_reference(&w.context, pinned, false);
	client_submit(&w.context);
	D3DKMT_HANDLE handle = pinned;
	assert_int_equal(client_try_lock(&w.device, &handle, DISCARD | DONOT_WAIT, &data),
			 D3DERR_WASSTILLDRAWING);
	gate_open(&w);
	client_idle(&w.client);
	assert_int_equal(client_try_lock(&w.device, &handle, DISCARD, &data), S_OK);
	assert_int_equal(handle, pinned);
	assert_int_equal(((uint32_t *)data)[3], 0x1414 + 3);
	assert_int_equal(client_unlock(&w.device, handle), S_OK);
	assert_int_equal(world_statistics(&w).renames, 0);
	world_stop(&w);
}

static void ofr_08_a_pinned_allocation_cannot_be_offered(void **state)
{
	struct world w;

	world_start(&w, state, &hundred);
	D3DKMT_HANDLE both[2] = {allocate_in(&w.device, PAGE, CPU, VRAM),
				 allocate_pinned(&w, 2, kinds[0], VRAM)};
	D3DDDICB_OFFERALLOCATIONS args = {
		.HandleList = both, .NumAllocations = 2, .Priority = D3DDDI_OFFER_PRIORITY_LOW};

	assert_int_equal(w.device.cb->pfnOfferAllocationsCb(w.device.handle, &args), E_INVALIDARG);
	assert_true(client_found(&w.client, "OFR-08"));
	client_forget(&w.client);
	client_write(&w.device, both[0], PAGE, 8); /* nothing was offered */
	args.NumAllocations = 1;
	assert_int_equal(w.device.cb->pfnOfferAllocationsCb(w.device.handle, &args), S_OK);
	world_stop(&w);
}

static D3DKMT_HANDLE allocate_through(struct world *w, uint32_t pages)
{
	struct softgpu_allocation wish = wish_of(pages * PAGE, CPU, VRAM);

	wish.eviction_set = APERTURE;
	D3DKMT_HANDLE a = allocate_wish(&w->device, &wish);
	client_write(&w->device, a, pages * PAGE, pages << 20);
	use_now(w, a, true);
	return a;
}

static void pag_20_pnp_09_content_too_large_to_pass_an_overlay_is_lost(void **state)
{
	for (uint32_t k = 0; k < 2; k++) {
		struct world w;

		world_start(&w, state, &hundred);
		allocate_pinned(&w, FIFTH, kinds[k], APERTURE);
		D3DKMT_HANDLE fits = allocate_through(&w, PAGES - FIFTH);
		evict_by_pressure(&w, fits); /* 80 percent: it passes */
		client_expect(&w.device, fits, (PAGES - FIFTH) * PAGE, (PAGES - FIFTH) << 20);
		assert_int_equal(w.client.findings, 0);

		D3DKMT_HANDLE lost = allocate_through(&w, PAGES - FIFTH + 1);
		HANDLE kmd = probe_last_created();
		probe_forget();
		evict_by_pressure(&w, lost);
		assert_int_equal(probe_paging_count(-1, kmd), 0); /* 4.1: no operation at all */
		assert_true(client_found(&w.client, "PAG-20") && w.client.findings == 1);
		assert_non_null(strstr(w.client.finding[0], "331776 bytes"));
		assert_non_null(strstr(w.client.finding[0], "at most 327680 contiguous bytes"));
		client_forget(&w.client);
		for (int twice = 0; twice < 2; twice++) {
			client_reference(&w.context, lost, false);
			assert_int_equal((int)client_try_submit(&w.context), CONTENT_LOST);
			assert_true(client_found(&w.client, "PAG-20"));
			client_forget(&w.client);
		}
		const uint32_t *bytes = client_lock(&w.device, lost, READ_ONLY);
		for (uint32_t i = 0; i < (PAGES - FIFTH + 1) * PAGE / 4; i++)
			assert_int_equal(bytes[i], 0); /* and no content of another allocation */
		assert_int_equal(client_unlock(&w.device, lost), S_OK);
		use_now(&w, fits, true); /* other allocations still work, also on this device */
		client_expect(&w.device, fits, (PAGES - FIFTH) * PAGE, (PAGES - FIFTH) << 20);
		world_stop(&w);
	}
}

static void pag_20_an_overlay_that_leaves_enough_space_loses_no_content(void **state)
{
	struct world w;

	world_start(&w, state, &hundred);
	D3DKMT_HANDLE overlay = allocate_pinned(&w, 5, kinds[0], APERTURE);
	D3DKMT_HANDLE a = allocate_through(&w, PAGES - 5);
	evict_by_pressure(&w, a);
	client_expect(&w.device, a, (PAGES - 5) * PAGE, (PAGES - 5) << 20);
	/* 95 pages are free of overlays then, but 5 of them are behind an overlay. */
	D3DKMT_HANDLE second = allocate_pinned(&w, 5, kinds[0], APERTURE);
	assert_int_equal(client_deallocate(&w.device, overlay), S_OK);
	D3DKMT_HANDLE b = allocate_through(&w, PAGES - 10);
	evict_by_pressure(&w, b);
	client_expect(&w.device, b, (PAGES - 10) * PAGE, (PAGES - 10) << 20);
	use_now(&w, a, true);
	assert_int_equal(w.client.findings, 0);
	assert_int_equal(client_deallocate(&w.device, b), S_OK);
	evict_by_pressure(&w, a);
	assert_true(client_found(&w.client, "PAG-20"));
	client_forget(&w.client);
	assert_int_equal(client_deallocate(&w.device, second), S_OK);
	world_stop(&w);
}

static void pag_20_victims_without_loss_are_chosen_before_lossy_ones(void **state)
{
	struct world w;

	world_start(&w, state, &hundred);
	allocate_pinned(&w, FIFTH, kinds[0], APERTURE);
	D3DKMT_HANDLE fragile = allocate_through(&w, 81);
	D3DKMT_HANDLE other = allocate_in(&w.device, 19 * PAGE, CPU, VRAM);
	D3DKMT_HANDLE next = allocate_in(&w.device, 19 * PAGE, CPU, VRAM);

	client_write(&w.device, other, 19 * PAGE, 0x2002);
	use_now(&w, other, true);
	use_now(&w, next, true); /* `fragile` is less recently used */
	assert_int_equal(client_residency(&w.device, fragile), IN_VRAM);
	assert_int_equal(client_residency(&w.device, other), EVICTED);
	client_expect(&w.device, fragile, 81 * PAGE, 81 << 20);
	client_expect(&w.device, other, 19 * PAGE, 0x2002);
	world_stop(&w);
}

/* ---- contiguous space: allocations that cannot be evicted are moved ---- */

static const struct client_options four_hundred = {.vram_bytes = 4 * PAGES * PAGE,
						   .aperture_bytes = PAGES * PAGE,
						   .registry = bare,
						   .registry_count = 2};

/* 100 pages free, 81 that cannot be evicted, 219 free. */
static D3DKMT_HANDLE start_scattered(struct world *w, void **state)
{
	world_start(w, state, &four_hundred);
	allocate_pinned(w, FIFTH, kinds[0], APERTURE);
	D3DKMT_HANDLE first = allocate_in(&w->device, PAGES * PAGE, CPU, VRAM);
	use_now(w, first, false);
	D3DKMT_HANDLE fragile = allocate_through(w, 81);
	assert_int_equal(client_deallocate(&w->device, first), S_OK);
	client_idle(&w->client);
	return fragile;
}

static void pag_20_compaction_moves_allocations_that_cannot_be_evicted(void **state)
{
	struct world w;
	D3DKMT_HANDLE fragile = start_scattered(&w, state);
	HANDLE kmd = probe_last_created();
	D3DKMT_HANDLE large = allocate_in(&w.device, 250 * PAGE, CPU, VRAM);

	probe_forget();
	use_now(&w, large, true);
	assert_int_equal(client_residency(&w.device, large), IN_VRAM);
	assert_int_equal(client_residency(&w.device, fragile), IN_VRAM);
	assert_true(world_statistics(&w).bytes_moved == 81 * PAGE);
	assert_int_equal(probe_paging_count(DXGK_OPERATION_TRANSFER, kmd), 1);
	const DXGKARG_BUILDPAGINGBUFFER *move =
		&probe_find_paging(DXGK_OPERATION_TRANSFER, kmd, 0)->paging;
	uint64_t from = (uint64_t)move->Transfer.Source.SegmentAddress.QuadPart;
	uint64_t to = (uint64_t)move->Transfer.Destination.SegmentAddress.QuadPart;
	assert_int_equal(move->Transfer.Source.SegmentId, 1);
	assert_int_equal(move->Transfer.Destination.SegmentId, 1);
	assert_int_equal(move->Transfer.TransferSize, 81 * PAGE);
	assert_true(from >= to + 81 * PAGE || to >= from + 81 * PAGE);
	assert_int_equal(w.client.findings, 0);
	client_expect(&w.device, fragile, 81 * PAGE, 81 << 20);
	client_write(&w.device, fragile, 81 * PAGE, 0x5151);
	use_now(&w, fragile, true);
	client_expect(&w.device, fragile, 81 * PAGE, 0x5151);
	vidmm_adapter_check(w.client.adapter);
	world_stop(&w);
}

/* Allocations that can be evicted without loss are evicted; nothing is moved for that. */
static void pag_20_no_compaction_while_an_eviction_without_loss_is_possible(void **state)
{
	struct world w;
	D3DKMT_HANDLE fragile = start_scattered(&w, state);
	D3DKMT_HANDLE other = allocate_in(&w.device, 90 * PAGE, CPU, VRAM);
	D3DKMT_HANDLE large = allocate_in(&w.device, 219 * PAGE, CPU, VRAM);

	use_now(&w, other, true);
	use_now(&w, large, true);
	D3DKMT_HANDLE next = allocate_in(&w.device, 100 * PAGE, CPU, VRAM);
	use_now(&w, next, true);
	assert_int_equal(client_residency(&w.device, other), EVICTED);
	assert_int_equal(client_residency(&w.device, fragile), IN_VRAM);
	assert_true(world_statistics(&w).bytes_moved == 0);
	world_stop(&w);
}

/* It is not moved, and the device that needs the space is in error (SPL-12). */
static void pag_20_compaction_does_not_move_locked_allocations(void **state)
{
	struct world w;
	D3DKMT_HANDLE fragile = start_scattered(&w, state);
	D3DKMT_HANDLE large = allocate_in(&w.device, 250 * PAGE, CPU, VRAM);
	const uint32_t *words = client_lock(&w.device, fragile, READ_ONLY);

	client_reference(&w.context, large, true);
	(void)client_try_submit(&w.context);
	client_idle(&w.client);
	assert_true(world_statistics(&w).bytes_moved == 0);
	for (uint32_t i = 0; i < 81 * PAGE / 4; i++)
		assert_int_equal(words[i], (81 << 20) + i);
	client_forget(&w.client);
	world_stop(&w);
}

static bool fail_moves(void *context, DXGKARG_BUILDPAGINGBUFFER *args, NTSTATUS *status)
{
	(void)context;
	*status = STATUS_UNSUCCESSFUL;
	return args->Operation == DXGK_OPERATION_TRANSFER &&
	       args->Transfer.Source.SegmentId == args->Transfer.Destination.SegmentId;
}

static void pag_09_a_failed_compaction_move_removes_the_adapter(void **state)
{
	struct world w;

	start_scattered(&w, state);
	D3DKMT_HANDLE large = allocate_in(&w.device, 250 * PAGE, CPU, VRAM);
	probe.answer_paging = fail_moves;
	client_reference(&w.context, large, true);
	(void)client_try_submit(&w.context);
	client_idle(&w.client);
	probe.answer_paging = NULL;
	assert_int_equal(w.client.fatals, 1);
	w.expect_fatal = true;
	client_forget(&w.client);
	world_stop(&w);
}

static void ofr_04_offered_memory_goes_first_even_if_it_cannot_pass_an_overlay(void **state)
{
	struct world w;
	BOOL discarded = 0;

	world_start(&w, state, &hundred);
	allocate_pinned(&w, FIFTH, kinds[0], APERTURE);
	D3DKMT_HANDLE other = allocate_in(&w.device, 19 * PAGE, CPU, VRAM);
	client_write(&w.device, other, 19 * PAGE, 0x0404);
	use_now(&w, other, true);
	D3DKMT_HANDLE offered = allocate_through(&w, 81);
	D3DKMT_HANDLE next = allocate_in(&w.device, 19 * PAGE, CPU, VRAM);
	D3DDDICB_OFFERALLOCATIONS offer = {
		.HandleList = &offered, .NumAllocations = 1, .Priority = D3DDDI_OFFER_PRIORITY_LOW};
	D3DDDICB_RECLAIMALLOCATIONS reclaim = {
		.HandleList = &offered, .NumAllocations = 1, .pDiscarded = &discarded};

	assert_int_equal(w.device.cb->pfnOfferAllocationsCb(w.device.handle, &offer), S_OK);
	use_now(&w, next, true);
	assert_int_equal(client_residency(&w.device, other), IN_VRAM);
	assert_int_equal(w.device.cb->pfnReclaimAllocationsCb(w.device.handle, &reclaim), S_OK);
	assert_int_equal(discarded, 1);
	assert_int_equal(w.client.findings, 0); /* no content is lost except offered content */
	use_now(&w, offered, true);
	client_expect(&w.device, other, 19 * PAGE, 0x0404);
	world_stop(&w);
}

/* The submission was accepted while the content existed. Only its device is in error. */
static void pag_20_a_queued_submission_that_needs_lost_content_is_not_executed(void **state)
{
	struct client_device other;
	struct client_context context;
	struct world w;

	world_start(&w, state, &hundred);
	client_open(&w.client, &other);
	client_context(&other, 0, &context);
	struct softgpu_allocation wish = wish_of(81 * PAGE, CPU, VRAM);
	wish.eviction_set = APERTURE;
	D3DKMT_HANDLE lost;
	assert_int_equal(client_try_allocate(&other, &wish, NULL, &lost, NULL), S_OK);
	client_write(&other, lost, 81 * PAGE, 0x20000000);
	client_reference(&context, lost, true);
	client_submit(&context);
	client_idle(&w.client);
	allocate_pinned(&w, FIFTH, kinds[0], APERTURE);
	D3DKMT_HANDLE busy = allocate_in(&w.device, 19 * PAGE, CPU, VRAM);
	D3DKMT_HANDLE all = allocate_in(&w.device, PAGES * PAGE, CPU, VRAM);

	gate_close(&w);
	client_reference(&w.context, busy, true);
	client_submit(&w.context);
	client_reference(&w.context, all, true);
	client_submit(&w.context); /* waits for `busy`, then evicts `lost` */
	client_reference(&context, lost, true);
	client_submit(&context);
	gate_open(&w);
	client_idle(&w.client);
	assert_true(client_found(&w.client, "PAG-20"));
	client_forget(&w.client);
	client_reference(&context, lost, true);
	assert_int_equal(client_try_submit(&context), D3DDDIERR_DEVICEREMOVED);
	use_now(&w, all, true);
	client_close(&other);
	world_stop(&w);
}

static void pag_20_content_of_a_locked_allocation_is_not_lost(void **state)
{
	struct world w;

	world_start(&w, state, &hundred);
	allocate_pinned(&w, FIFTH, kinds[0], APERTURE);
	D3DKMT_HANDLE a = allocate_through(&w, 81);
	uint32_t *bytes = client_lock(&w.device, a, 0);
	D3DKMT_HANDLE next = allocate_in(&w.device, 20 * PAGE, CPU, VRAM | APERTURE);

	use_now(&w, next, true);
	assert_int_equal(client_residency(&w.device, a), IN_VRAM);
	assert_int_equal(client_residency(&w.device, next), IN_APERTURE);
	assert_int_equal(bytes[5], (81 << 20) + 5);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

static void pag_20_a_lock_that_needs_a_lossy_eviction_is_refused(void **state)
{
	static const struct vidmm_registry_value hidden[] = {
		{"DmaBufferSegmentSet", 0}, {"PagingBufferSegment", 0}, {"VramCpuVisible", 0}};
	const struct client_options options = {.vram_bytes = PAGES * PAGE,
					       .aperture_bytes = PAGES * PAGE,
					       .registry = hidden,
					       .registry_count = 3};
	struct world w;

	world_start(&w, state, &options);
	D3DKMT_HANDLE overlay = allocate_pinned(&w, FIFTH, kinds[0], APERTURE);
	D3DKMT_HANDLE a = allocate_through(&w, 81);

	expect_lock_refused(&w, a, 0, D3DDDIERR_CANTEVICTPINNEDALLOCATION, "PAG-20");
	assert_int_equal(client_residency(&w.device, a), IN_VRAM);
	assert_int_equal(client_deallocate(&w.device, overlay), S_OK);
	client_expect(&w.device, a, 81 * PAGE, 81 << 20);
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(alf_19_alf_20_pag_19_pinned_allocations_use_the_last_fifth_only),
		BOTH(pag_19_a_fifth_is_whole_pages_and_never_more),
		BOTH(pag_19_the_next_segment_of_the_set_is_tried),
		BOTH(pag_19_hints_and_directions_do_not_place_outside_the_last_fifth),
		BOTH(pag_19_only_allocations_in_the_last_fifth_are_evicted_for_an_overlay),
		BOTH(pag_19_creation_waits_for_the_gpu_to_free_the_last_fifth),
		BOTH(pag_18_memory_pressure_never_moves_pinned_allocations),
		BOTH(pag_18_minimum_priority_does_not_make_pinned_evictable),
		BOTH(pag_18_a_call_that_fails_leaves_nothing_pinned),
		BOTH(lock_36_lkr_02_rendering_with_a_locked_pinned_allocation_fails),
		BOTH(lkr_02_a_lock_after_an_accepted_submission_moves_nothing),
		BOTH(lock_49_a_pinned_allocation_in_a_hidden_segment_cannot_be_locked),
		BOTH(ren_14_ref_11_a_pinned_allocation_is_not_renamed),
		BOTH(ofr_08_a_pinned_allocation_cannot_be_offered),
		BOTH(pag_20_pnp_09_content_too_large_to_pass_an_overlay_is_lost),
		BOTH(pag_20_an_overlay_that_leaves_enough_space_loses_no_content),
		BOTH(pag_20_victims_without_loss_are_chosen_before_lossy_ones),
		BOTH(pag_20_compaction_moves_allocations_that_cannot_be_evicted),
		BOTH(pag_20_no_compaction_while_an_eviction_without_loss_is_possible),
		BOTH(pag_20_compaction_does_not_move_locked_allocations),
		BOTH(pag_09_a_failed_compaction_move_removes_the_adapter),
		BOTH(ofr_04_offered_memory_goes_first_even_if_it_cannot_pass_an_overlay),
		BOTH(pag_20_a_queued_submission_that_needs_lost_content_is_not_executed),
		BOTH(pag_20_content_of_a_locked_allocation_is_not_lost),
		BOTH(pag_20_a_lock_that_needs_a_lossy_eviction_is_refused),
	};

	return cmocka_run_group_tests_name("pinned", tests, NULL, NULL);
}
