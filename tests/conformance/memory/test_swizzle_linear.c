/* SPDX-License-Identifier: MIT */
/*
 * SWZ: the form of content. Without ranges, a tiled surface that the CPU accesses is unswizzled
 * when it is evicted to system memory, and swizzled when it is paged in.
 */
#include "world.h"

enum { STRIDE = 512, ROWS = 64, BYTES = STRIDE * ROWS, WORDS = BYTES / 4, ENTIRE = 0x50 };

static void start(struct world *w, void **state)
{
	struct vidmm_registry_value none = {"SwizzlingRanges", 0};
	struct client_options options = {.registry = &none, .registry_count = 1};

	world_start(w, state, &options);
}

static D3DKMT_HANDLE tiled(struct world *w, uint32_t segment_set)
{
	struct softgpu_allocation wish =
		wish_of(BYTES, CPU | SOFTGPU_ALLOCATION_TILED_Y, segment_set);

	wish.stride_bytes = STRIDE;
	return allocate_wish(&w->device, &wish);
}

/* Through the linear image: the test sees rows of pixels, whatever the layout elsewhere. */
static void draw(struct world *w, D3DKMT_HANDLE a, uint32_t pattern)
{
	uint32_t *words = client_lock(&w->device, a, ENTIRE);

	for (uint32_t i = 0; i < WORDS; i++)
		words[i] = pattern + i;
	assert_int_equal(client_unlock(&w->device, a), S_OK);
}

static void expect_drawn(struct world *w, D3DKMT_HANDLE a, uint32_t pattern)
{
	const uint32_t *words = client_lock(&w->device, a, ENTIRE);

	for (uint32_t i = 0; i < WORDS; i++)
		if (words[i] != pattern + i)
			fail_msg("word %u is 0x%x, not 0x%x", i, words[i], pattern + i);
	assert_int_equal(client_unlock(&w->device, a), S_OK);
}

/*
 * Offset in the raw bytes of a word of the linear image; the content is the same in another order.
 */
static uint32_t find_raw(const uint32_t *raw, uint32_t word)
{
	for (uint32_t i = 0; i < WORDS; i++)
		if (raw[i] == word)
			return i;
	fail_msg("0x%x is nowhere", word);
	return WORDS;
}

static const DXGKARG_BUILDPAGINGBUFFER *transfer(HANDLE kmd, uint32_t index)
{
	const struct probe_call *call = probe_find_paging(DXGK_OPERATION_TRANSFER, kmd, index);

	assert_non_null(call);
	return &call->paging;
}

static uint32_t transfers(HANDLE kmd)
{
	return probe_paging_count(DXGK_OPERATION_TRANSFER, kmd);
}

static void swz_09_without_a_range_content_is_unswizzled_into_system_memory(void **state)
{
	struct world w;

	start(&w, state);
	D3DKMT_HANDLE a = tiled(&w, VRAM);
	HANDLE kmd = probe_last_created();

	draw(&w, a, 0x1000);
	use_now(&w, a, false);
	probe_forget();
	expect_drawn(&w, a, 0x1000);
	assert_int_equal(transfers(kmd), 1);
	assert_int_equal(transfer(kmd, 0)->Transfer.Flags.Value, 0x18 | 0x2);
	assert_int_equal(transfer(kmd, 0)->Transfer.Source.SegmentId, IN_VRAM);
	assert_int_equal(transfer(kmd, 0)->Transfer.Destination.SegmentId, 0);
	assert_int_equal(client_residency(&w.device, a), EVICTED);
	world_stop(&w);
}

static void swz_05_content_evicted_linear_is_locked_without_a_ddi_call(void **state)
{
	struct world w;

	start(&w, state);
	D3DKMT_HANDLE a = tiled(&w, VRAM);

	void *first = client_lock(&w.device, a, ENTIRE);

	assert_int_equal(client_unlock(&w.device, a), S_OK);
	probe_forget();
	/* No copy is needed, so neither LockEntire nor DonotEvict matters. */
	assert_ptr_equal(client_lock(&w.device, a, ACQUIRE_APERTURE | DONOT_EVICT), first);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_int_equal(probe_count(PROBE_ACQUIRE), 0);
	assert_int_equal(probe_paging_count(-1, NULL), 0);
	world_stop(&w);
}

static void swz_10_lock_19_the_copy_fallback_needs_permission_and_a_region(void **state)
{
	struct world w;
	static const UINT page = 1;
	void *data;

	start(&w, state);
	D3DKMT_HANDLE a = tiled(&w, VRAM);

	draw(&w, a, 0x2000);
	use_now(&w, a, false);
	expect_lock_refused(&w, a, ACQUIRE_APERTURE, D3DERR_NOTAVAILABLE, "LOCK-19");
	expect_lock_refused(&w, a, ENTIRE | DONOT_EVICT, D3DERR_NOTAVAILABLE, "SWZ-10");
	assert_int_equal(client_residency(&w.device, a), IN_VRAM);
	evict_by_pressure(&w, a);
	expect_lock_refused(&w, a, ACQUIRE_APERTURE, D3DERR_NOTAVAILABLE, "LOCK-19");
	assert_int_equal(client_residency(&w.device, a), EVICTED);
	/* LOCK-21: a list suffices. */
	assert_int_equal(lock_pages(&w.device, &a, ACQUIRE_APERTURE, &page, 1, &data), S_OK);
	assert_int_equal(*(uint32_t *)data, 0x2000 + PAGE / 4);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	expect_drawn(&w, a, 0x2000);
	world_stop(&w);
}

static void lock_21_pages_not_listed_keep_their_content(void **state)
{
	struct world w;
	static const UINT page = 1;
	void *data;

	start(&w, state);
	D3DKMT_HANDLE a = tiled(&w, VRAM);

	draw(&w, a, 0x3000);
	use_now(&w, a, false);
	assert_int_equal(lock_pages(&w.device, &a, ACQUIRE_APERTURE, &page, 1, &data), S_OK);
	for (uint32_t i = 0; i < PAGE / 4; i++)
		assert_int_equal(((uint32_t *)data)[i], 0x3000 + PAGE / 4 + i);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	use_now(&w, a, false);
	expect_drawn(&w, a, 0x3000);
	world_stop(&w);
}

static void pin(void *context, DXGK_ALLOCATIONINFO *info, uint32_t index)
{
	(void)context;
	(void)index;
	info->Flags.Overlay = 1;
}

static void swz_11_a_pinned_allocation_has_no_copy_fallback(void **state)
{
	struct world w;

	start(&w, state);
	probe.edit_allocation = pin;
	D3DKMT_HANDLE a = tiled(&w, VRAM);
	probe.edit_allocation = NULL;

	expect_lock_refused(&w, a, ENTIRE | DONOT_EVICT, D3DERR_NOTAVAILABLE, "SWZ-10");
	expect_lock_refused(&w, a, ACQUIRE_APERTURE, D3DERR_NOTAVAILABLE, "LOCK-19");
	expect_lock_refused(&w, a, ENTIRE, D3DDDIERR_CANTEVICTPINNEDALLOCATION, "SWZ-11");
	assert_int_equal(client_residency(&w.device, a), IN_VRAM);
	world_stop(&w);
}

static void swz_17_a_plain_lock_shows_raw_swizzled_bytes(void **state)
{
	struct world w;

	start(&w, state);
	D3DKMT_HANDLE a = tiled(&w, VRAM);

	draw(&w, a, 0x4000);
	use_now(&w, a, false);
	const uint32_t *raw = client_lock(&w.device, a, READ_ONLY);
	/*
	 * In a Y tile a column of 16 bytes is 512 bytes long: the second row's first word is the
	 * fifth.
	 */
	assert_int_equal(find_raw(raw, 0x4000), 0);
	assert_int_equal(find_raw(raw, 0x4000 + STRIDE / 4), 4);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	expect_drawn(&w, a, 0x4000);
	world_stop(&w);
}

static void q_12_a_plain_lock_of_linear_content_shows_linear_bytes(void **state)
{
	struct world w;

	start(&w, state);
	D3DKMT_HANDLE a = tiled(&w, VRAM);
	HANDLE kmd = probe_last_created();

	draw(&w, a, 0x5000);
	probe_forget();
	const uint32_t *raw = client_lock(&w.device, a, READ_ONLY);

	assert_int_equal(raw[STRIDE / 4], 0x5000 + STRIDE / 4);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_int_equal(transfers(kmd), 0);
	world_stop(&w);
}

static void swz_20_linear_content_is_swizzled_before_gpu_use(void **state)
{
	struct world w;

	start(&w, state);
	D3DKMT_HANDLE a = tiled(&w, 0);
	HANDLE kmd = probe_last_created();

	draw(&w, a, 0x6000);
	probe_forget();
	use_now(&w, a, true);
	assert_int_equal(transfers(kmd), 1);
	assert_int_equal(transfer(kmd, 0)->Transfer.Flags.Value, 0x18 | 0x1);
	assert_int_equal(transfer(kmd, 0)->Transfer.Destination.SegmentId, IN_VRAM);
	assert_int_equal(probe_paging_count(DXGK_OPERATION_MAP_APERTURE_SEGMENT, kmd), 0);
	/* SWZ-22: from here on it is swizzled again, and is moved in that form. */
	evict_by_pressure(&w, a);
	assert_int_equal(transfer(kmd, 1)->Transfer.Flags.Value, 0x18);
	use_now(&w, a, true);
	assert_int_equal(transfer(kmd, 2)->Transfer.Flags.Value, 0x18);
	expect_drawn(&w, a, 0x6000);
	world_stop(&w);
}

static void prefer_aperture(void *context, DXGK_ALLOCATIONINFO *info, uint32_t index)
{
	(void)context;
	(void)index;
	info->PreferredSegment.Value = IN_APERTURE;
}

static void swz_20_linear_content_is_not_placed_in_a_preferred_aperture(void **state)
{
	struct world w;

	start(&w, state);
	probe.edit_allocation = prefer_aperture;
	D3DKMT_HANDLE a = tiled(&w, 0);
	HANDLE kmd = probe_last_created();

	probe.edit_allocation = NULL;
	client_write(&w.device, a, BYTES, 0x6800); /* raw */
	use_now(&w, a, false);
	assert_int_equal(client_residency(&w.device, a), IN_APERTURE);
	draw(&w, a, 0x6900);
	probe_forget();
	use_now(&w, a, true);
	assert_int_equal(probe_paging_count(DXGK_OPERATION_MAP_APERTURE_SEGMENT, kmd), 0);
	assert_int_equal(transfer(kmd, 0)->Transfer.Flags.Value, 0x18 | 0x1);
	assert_int_equal(client_residency(&w.device, a), IN_VRAM);
	expect_drawn(&w, a, 0x6900);
	world_stop(&w);
}

static void write_in_aperture(void *context, DXGK_ALLOCATIONINFO *info, uint32_t index)
{
	(void)context;
	(void)index;
	info->SupportedReadSegmentSet = VRAM | APERTURE;
	info->SupportedWriteSegmentSet = APERTURE;
}

static void swz_20_linear_content_is_never_mapped_into_an_aperture(void **state)
{
	struct world w;

	start(&w, state);
	probe.edit_allocation = write_in_aperture;
	D3DKMT_HANDLE a = tiled(&w, 0);
	HANDLE kmd = probe_last_created();

	probe.edit_allocation = NULL;
	draw(&w, a, 0x7000);
	probe_forget();
	use_now(&w, a, true); /* a write, for which only the aperture is permitted */
	assert_int_equal(client_residency(&w.device, a), IN_APERTURE);
	assert_int_equal(transfers(kmd), 2);
	assert_int_equal(transfer(kmd, 0)->Transfer.Flags.Value, 0x18 | 0x1);
	assert_int_equal(transfer(kmd, 1)->Transfer.Flags.Value, 0x18);
	assert_true(probe_position(probe_find_paging(DXGK_OPERATION_TRANSFER, kmd, 1)) <
		    probe_position(probe_find_paging(DXGK_OPERATION_MAP_APERTURE_SEGMENT, kmd, 0)));
	expect_drawn(&w, a, 0x7000);
	world_stop(&w);
}

static void swz_20_rendering_from_a_linear_surface_under_a_plain_lock_fails(void **state)
{
	struct world w;

	start(&w, state);
	D3DKMT_HANDLE a = tiled(&w, 0);

	draw(&w, a, 0x8000);
	client_lock(&w.device, a, 0);
	client_reference(&w.context, a, false);
	assert_int_equal(client_try_submit(&w.context), D3DDDIERR_CANTRENDERLOCKEDALLOCATION);
	client_forget(&w.client);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	use_now(&w, a, true);
	client_lock(&w.device, a, 0); /* swizzled, it may be mapped while it is locked */
	use_now(&w, a, false);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	expect_drawn(&w, a, 0x8000);
	world_stop(&w);
}

static void through_the_aperture(void *context, DXGK_ALLOCATIONINFO *info, uint32_t index)
{
	(void)context;
	(void)index;
	info->EvictionSegmentSet = APERTURE;
}

static void swz_09_pag_17_eviction_through_an_aperture_unswizzles(void **state)
{
	struct world w;

	start(&w, state);
	probe.edit_allocation = through_the_aperture;
	D3DKMT_HANDLE a = tiled(&w, VRAM);
	HANDLE kmd = probe_last_created();

	probe.edit_allocation = NULL;
	draw(&w, a, 0x9000);
	use_now(&w, a, false);
	probe_forget();
	expect_drawn(&w, a, 0x9000);
	assert_int_equal(transfer(kmd, 0)->Transfer.Flags.Value, 0x18 | 0x2);
	assert_int_equal(transfer(kmd, 0)->Transfer.Destination.SegmentId, IN_APERTURE);
	use_now(&w, a, true);
	expect_drawn(&w, a, 0x9000);
	world_stop(&w);
}

static void swz_09_an_allocation_not_swizzled_is_moved_without_the_flag(void **state)
{
	struct world w;

	start(&w, state);
	D3DKMT_HANDLE a = allocate_in(&w.device, BYTES, CPU, VRAM);
	HANDLE kmd = probe_last_created();

	client_write(&w.device, a, BYTES, 0xA000);
	use_now(&w, a, false);
	probe_forget();
	expect_drawn(&w, a, 0xA000);
	assert_int_equal(transfer(kmd, 0)->Transfer.Flags.Value, 0x18); /* */
	probe_forget();
	expect_drawn(&w, a, 0xA000); /* SWZ-05 */
	assert_int_equal(transfers(kmd), 0);
	use_now(&w, a, false);
	assert_int_equal(transfer(kmd, 0)->Transfer.Flags.Value, 0x18);
	world_stop(&w);
}

static void flag_nothing(void *context, DXGK_ALLOCATIONINFO *info, uint32_t index)
{
	(void)context;
	(void)index;
	info->Flags.Swizzled = 0;
}

/*
 * The same surface with and without the Swizzled flag. The flag decides whether a lock may skip
 * synchronization, which transfers convert, and whether linear content may be placed where it
 * cannot be converted.
 */
static void alf_18_the_swizzled_flag_selects_the_swizzling_rules(void **state)
{
	for (uint32_t flagged = 0; flagged < 2; flagged++) {
		struct world w;
		void *data;

		start(&w, state);
		probe.edit_allocation = flagged ? NULL : flag_nothing;
		D3DKMT_HANDLE a = tiled(&w, 0);
		HANDLE kmd = probe_last_created();

		probe.edit_allocation = NULL;
		client_write(&w.device, a, BYTES, 0x1800);
		use_now(&w, a, false);
		probe_forget();
		(void)client_lock(&w.device, a, ENTIRE);
		assert_int_equal(client_unlock(&w.device, a), S_OK);
		assert_int_equal(transfer(kmd, 0)->Transfer.Flags.Value,
				 0x18 | (flagged ? 0x2 : 0));
		use_now(&w, a, true);
		assert_int_equal(transfer(kmd, 1)->Transfer.Flags.Value,
				 0x18 | (flagged ? 0x1 : 0));
		/*
		 * LOCK-13: content that is converted during transfers cannot be shared with the
		 * GPU.
		 */
		HRESULT unsynchronized = client_try_lock(&w.device, &a, 0x8 | 0x4, &data);
		assert_int_equal(unsynchronized, flagged ? E_INVALIDARG : S_OK);
		assert_int_equal(client_found(&w.client, "LOCK-13"), flagged);
		if (unsynchronized == S_OK)
			assert_int_equal(client_unlock(&w.device, a), S_OK);
		client_forget(&w.client);
		world_stop(&w);
	}
}

static void swz_09_the_copy_fallback_waits_and_donotwait_returns_at_once(void **state)
{
	struct world w;
	struct helper h;

	start(&w, state);
	D3DKMT_HANDLE a = tiled(&w, VRAM);

	draw(&w, a, 0xB000);
	use_now(&w, a, false);
	gate_close(&w);
	client_reference(&w.context, a, false);
	client_submit(&w.context);
	expect_lock_declined(&w, a, ENTIRE);
	lock_on_thread(&h, &w, a, ENTIRE);
	gate_open(&w);
	helper_join(&h);
	assert_true(h.gate_was_open);
	assert_int_equal(h.result, S_OK);
	assert_int_equal(((uint32_t *)h.data)[WORDS - 1], 0xB000 + WORDS - 1);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

static void page_synchronously(void *context, DXGK_ALLOCATIONINFO *info, uint32_t index)
{
	(void)context;
	(void)index;
	info->Flags.SynchronousPaging = 1;
}

static void pag_21_synchronous_paging_ends_before_the_next_begins(void **state)
{
	struct world w;

	start(&w, state);
	probe.edit_allocation = page_synchronously;
	D3DKMT_HANDLE a = tiled(&w, VRAM);
	HANDLE kmd = probe_last_created();

	probe.edit_allocation = NULL;
	draw(&w, a, 0xF000);
	use_now(&w, a, true);
	evict_by_pressure(&w, a);
	probe_forget();
	/* Paged in, and evicted unswizzled; DonotWait concerns use by the GPU only. */
	const uint32_t *words = client_lock(&w.device, a, ENTIRE | DONOT_WAIT);

	assert_int_equal(words[WORDS - 1], 0xF000 + WORDS - 1);
	assert_int_equal(transfers(kmd), 2);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

static void swz_04_a_lock_waits_for_free_space_in_a_memory_segment(void **state)
{
	struct world w;

	start(&w, state);
	uint64_t vram = world_statistics(&w).segment[0].size_bytes;
	D3DKMT_HANDLE a = tiled(&w, VRAM);

	draw(&w, a, 0xC000);
	use_now(&w, a, false);
	evict_by_pressure(&w, a);
	/* All of it is in use by the GPU: space is free when the GPU is done. */
	D3DKMT_HANDLE all = allocate_in(&w.device, vram, 0, VRAM);
	struct helper h;

	gate_close(&w);
	client_reference(&w.context, all, false);
	client_submit(&w.context);
	while (client_residency(&w.device, all) != IN_VRAM)
		vidmm_settle(w.client.host);
	expect_lock_declined(&w, a, ENTIRE);
	assert_int_equal(client_residency(&w.device, a), EVICTED);
	lock_on_thread(&h, &w, a, ENTIRE);
	gate_open(&w);
	helper_join(&h);
	assert_true(h.gate_was_open);
	assert_int_equal(h.result, S_OK);
	assert_int_equal(((uint32_t *)h.data)[WORDS - 1], 0xC000 + WORDS - 1);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

static void ren_01_discard_gets_the_linear_image_of_another_instance(void **state)
{
	struct world w;

	start(&w, state);
	D3DKMT_HANDLE a = tiled(&w, VRAM), other = a;
	void *data;

	draw(&w, a, 0xD000);
	use_now(&w, a, false);
	assert_int_equal(client_try_lock(&w.device, &other, ENTIRE | DISCARD, &data), S_OK);
	assert_int_not_equal(other, a);
	for (uint32_t i = 0; i < WORDS; i++)
		((uint32_t *)data)[i] = 0xE000 + i;
	assert_int_equal(client_unlock(&w.device, other), S_OK);
	use_now(&w, other, false);
	expect_drawn(&w, other, 0xE000);
	/* A refused discard creates no instance. */
	uint64_t instances = world_statistics(&w).instances;

	expect_lock_refused(&w, other, ACQUIRE_APERTURE | DISCARD | DONOT_EVICT,
			    D3DERR_NOTAVAILABLE, "SWZ-10");
	assert_int_equal(world_statistics(&w).instances, instances);
	expect_drawn(&w, other, 0xE000);
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(swz_04_a_lock_waits_for_free_space_in_a_memory_segment),
		BOTH(pag_21_synchronous_paging_ends_before_the_next_begins),
		BOTH(swz_05_content_evicted_linear_is_locked_without_a_ddi_call),
		BOTH(swz_09_without_a_range_content_is_unswizzled_into_system_memory),
		BOTH(swz_09_pag_17_eviction_through_an_aperture_unswizzles),
		BOTH(swz_09_an_allocation_not_swizzled_is_moved_without_the_flag),
		BOTH(alf_18_the_swizzled_flag_selects_the_swizzling_rules),
		BOTH(swz_09_the_copy_fallback_waits_and_donotwait_returns_at_once),
		BOTH(swz_10_lock_19_the_copy_fallback_needs_permission_and_a_region),
		BOTH(lock_21_pages_not_listed_keep_their_content),
		BOTH(swz_11_a_pinned_allocation_has_no_copy_fallback),
		BOTH(swz_17_a_plain_lock_shows_raw_swizzled_bytes),
		BOTH(q_12_a_plain_lock_of_linear_content_shows_linear_bytes),
		BOTH(swz_20_linear_content_is_swizzled_before_gpu_use),
		BOTH(swz_20_linear_content_is_not_placed_in_a_preferred_aperture),
		BOTH(swz_20_linear_content_is_never_mapped_into_an_aperture),
		BOTH(swz_20_rendering_from_a_linear_surface_under_a_plain_lock_fails),
		BOTH(ren_01_discard_gets_the_linear_image_of_another_instance),
	};

	return cmocka_run_group_tests_name("linear and swizzled content", tests, NULL, NULL);
}
