/* SPDX-License-Identifier: MIT */
/*
 * SEG and PAG-01: placement of an allocation, the order in which segments are tried, and its
 * victims.
 */
#include "world.h"

static const struct client_options small = {.vram_bytes = 4 * MIB, .aperture_bytes = 8 * MIB};

struct sets {
	UINT read, write, preferred;
	SIZE_T size;
};

static void set_sets(void *context, DXGK_ALLOCATIONINFO *info, uint32_t index)
{
	const struct sets *s = context;

	(void)index;
	info->SupportedReadSegmentSet = s->read;
	info->SupportedWriteSegmentSet = s->write;
	info->PreferredSegment.Value = s->preferred;
	if (s->size)
		info->Size = s->size;
}

static D3DKMT_HANDLE allocate_sets(struct world *w, uint64_t bytes, struct sets s)
{
	probe.edit_allocation = set_sets;
	probe.context = &s;
	D3DKMT_HANDLE a = allocate_in(&w->device, bytes, CPU, 0);
	probe.edit_allocation = NULL;
	return a;
}

static void seg_01_bit_n_minus_1_means_segment_n(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	for (uint32_t id = 1; id <= 2; id++) {
		D3DKMT_HANDLE a = allocate_in(&w.device, PAGE, CPU, 1u << (id - 1));
		use_now(&w, a, true);
		assert_int_equal(client_residency(&w.device, a), id);
	}
	world_stop(&w);
}

static void limit_commit(void *context, DXGK_QUERYSEGMENTOUT3 *out)
{
	if (out->pSegmentDescriptor)
		out->pSegmentDescriptor[1].CommitLimit = *(const SIZE_T *)context;
}

static void seg_04_an_aperture_never_maps_more_than_its_commit_limit(void **state)
{
	SIZE_T limit = 2 * MIB;
	struct world w;
	D3DKMT_HANDLE a[4];

	probe.edit_segments = limit_commit;
	probe.context = &limit;
	world_start(&w, state, &small);
	for (int i = 0; i < 4; i++) {
		a[i] = allocate_in(&w.device, 768 * KIB, CPU, APERTURE);
		client_write(&w.device, a[i], 768 * KIB, (uint32_t)i << 20);
	}
	for (int i = 0; i < 8; i++) {
		use_now(&w, a[i % 4], true);
		assert_true(world_statistics(&w).segment[1].resident_bytes <= limit);
	}
	assert_int_equal(client_residency(&w.device, a[0]), EVICTED);
	for (int i = 0; i < 4; i++)
		client_expect(&w.device, a[i], 768 * KIB, (uint32_t)i << 20);
	world_stop(&w);
}

static void seg_04_an_allocation_above_the_commit_limit_evicts_nothing(void **state)
{
	SIZE_T limit = 2 * MIB;
	struct world w;

	probe.edit_segments = limit_commit;
	probe.context = &limit;
	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_in(&w.device, MIB, CPU, APERTURE),
		      big = allocate_in(&w.device, 3 * MIB, CPU, 0);
	struct softgpu_allocation wish = wish_of(3 * MIB, CPU, VRAM | APERTURE);

	use_now(&w, a, true);
	use_now(&w, big, true);
	assert_int_equal(client_residency(&w.device, big), IN_VRAM);
	wish.preferred_segment = 2; /* a segment in which it cannot fit */
	D3DKMT_HANDLE misplaced = allocate_wish(&w.device, &wish);
	use_now(&w, misplaced, true);
	assert_int_equal(client_residency(&w.device, misplaced), IN_VRAM);
	assert_int_equal(client_residency(&w.device, a), IN_APERTURE); /* was not evicted in vain */
	evict_by_pressure(&w, misplaced);
	world_stop(&w);
}

static void limit_all_apertures(void *context, DXGK_DRIVERCAPS *caps)
{
	caps->ApertureSegmentCommitLimit = *(const SIZE_T *)context;
}

static void seg_05_aperturesegmentcommitlimit_bounds_a_single_aperture(void **state)
{
	SIZE_T limit = 2 * MIB;
	struct world w;
	D3DKMT_HANDLE a[4];

	probe.edit_caps = limit_all_apertures;
	probe.context = &limit;
	world_start(&w, state, &small);
	assert_true(world_statistics(&w).shared_system_bytes == limit);
	for (int i = 0; i < 4; i++) {
		a[i] = allocate_in(&w.device, 768 * KIB, CPU, APERTURE);
		client_write(&w.device, a[i], 768 * KIB, (uint32_t)i << 20);
	}
	for (int i = 0; i < 8; i++) {
		use_now(&w, a[i % 4], true);
		assert_int_equal(client_residency(&w.device, a[i % 4]), IN_APERTURE);
		/* DMA and paging buffers are counted as well. */
		assert_true(world_statistics(&w).mapped_bytes <= limit);
		assert_true(world_statistics(&w).segment[1].resident_bytes <
			    world_statistics(&w).mapped_bytes);
	}
	for (int i = 0; i < 4; i++)
		client_expect(&w.device, a[i], 768 * KIB, (uint32_t)i << 20);
	world_stop(&w);
}

static void seg_17_preference_direction_one_places_at_the_high_end(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE low = allocate_sets(&w, PAGE, (struct sets){VRAM, VRAM, 1, 0});
	D3DKMT_HANDLE high = allocate_sets(&w, PAGE, (struct sets){VRAM, VRAM, 1 | 0x20, 0});

	use_now(&w, low, false);
	use_now(&w, high, false);
	const struct probe_call *first = probe_find_paging(DXGK_OPERATION_FILL, NULL, 0);
	const struct probe_call *second = probe_find_paging(DXGK_OPERATION_FILL, NULL, 1);
	assert_true(first->paging.Fill.Destination.SegmentAddress.QuadPart == 0);
	assert_true(second->paging.Fill.Destination.SegmentAddress.QuadPart ==
		    (LONGLONG)(4 * MIB - PAGE));
	world_stop(&w);
}

/* A preference without a direction leaves the choice to FromEndOfSegment (ALF-17). */
static void seg_17_without_a_direction_fromendofsegment_applies(void **state)
{
	static const uint32_t preferred[] = {0, 1};
	struct world w;

	world_start(&w, state, &small);
	for (uint32_t i = 0; i < 2; i++) {
		struct softgpu_allocation wish =
			wish_of(PAGE, CPU | SOFTGPU_ALLOCATION_FROM_END, VRAM);

		wish.preferred_segment = preferred[i];
		use_now(&w, allocate_wish(&w.device, &wish), false);
		const struct probe_call *fill = probe_find_paging(DXGK_OPERATION_FILL, NULL, i);
		assert_true(fill->paging.Fill.Destination.SegmentAddress.QuadPart ==
			    (LONGLONG)(4 * MIB - (i + 1) * PAGE));
	}
	world_stop(&w);
}

static void seg_18_preferred_segments_come_first_then_the_rest(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE aperture_first = allocate_sets(&w, PAGE, (struct sets){3, 3, 2, 0});
	D3DKMT_HANDLE aperture_then_vram =
		allocate_sets(&w, PAGE, (struct sets){3, 3, 2 | 1 << 6, 0});
	D3DKMT_HANDLE no_preference = allocate_sets(&w, PAGE, (struct sets){3, 3, 0, 0});
	D3DKMT_HANDLE too_big_for_vram = allocate_sets(&w, 5 * MIB, (struct sets){3, 3, 1, 0});

	use_now(&w, aperture_first, false);
	use_now(&w, aperture_then_vram, false);
	use_now(&w, no_preference, false);
	use_now(&w, too_big_for_vram, false);
	assert_int_equal(client_residency(&w.device, aperture_first), IN_APERTURE);
	assert_int_equal(client_residency(&w.device, aperture_then_vram), IN_APERTURE);
	assert_int_equal(client_residency(&w.device, no_preference), IN_VRAM);
	assert_int_equal(client_residency(&w.device, too_big_for_vram), IN_APERTURE);
	world_stop(&w);
}

static void seg_18_a_working_set_larger_than_a_segment_uses_the_next_one(void **state)
{
	struct world w;
	D3DKMT_HANDLE a[6];

	world_start(&w, state, &small);
	for (int i = 0; i < 6; i++) {
		a[i] = allocate_in(&w.device, MIB, CPU, 0);
		client_write(&w.device, a[i], MIB, (uint32_t)i);
		client_reference(&w.context, a[i], true);
	}
	client_submit(&w.context);
	client_idle(&w.client);
	for (int i = 0; i < 6; i++)
		assert_int_equal(client_residency(&w.device, a[i]), i < 4 ? IN_VRAM : IN_APERTURE);
	for (int i = 0; i < 6; i++)
		client_expect(&w.device, a[i], MIB, (uint32_t)i);
	world_stop(&w);
}

static void seg_18_a_failed_placement_in_one_segment_has_no_effect(void **state)
{
	struct client_options options = {.vram_bytes = 4 * MIB, .aperture_bytes = 2 * MIB};
	struct softgpu_allocation wish = wish_of(MIB, CPU, VRAM | APERTURE);
	struct world w;
	D3DKMT_HANDLE a[2];

	world_start(&w, state, &options);
	wish.preferred_segment = 2;
	for (int i = 0; i < 2; i++) {
		a[i] = allocate_wish(&w.device, &wish);
		client_reference(&w.context, a[i], true);
	}
	/*
	 * The first is placed in the aperture. The second, which has no content yet, is tried
	 * there and placed in memory.
	 */
	client_submit(&w.context);
	client_idle(&w.client);
	assert_int_equal(client_residency(&w.device, a[0]), IN_APERTURE);
	assert_int_equal(client_residency(&w.device, a[1]), IN_VRAM);
	evict_by_pressure(&w, a[1]);
	client_write(&w.device, a[1], MIB, 5);
	use_now(&w, a[1], true);
	client_expect(&w.device, a[1], MIB, 5);
	world_stop(&w);
}

static void seg_18_placement_waits_for_the_gpu_to_free_the_preferred_segment(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE busy = allocate_in(&w.device, 3 * MIB, 0, VRAM);
	D3DKMT_HANDLE next = allocate_in(&w.device, 2 * MIB, 0, VRAM | APERTURE);

	use_now(&w, busy, false);
	gate_close(&w);
	client_reference(&w.context, busy, false);
	client_submit(&w.context);
	client_reference(&w.context, next, false);
	client_submit(&w.context);
	for (int i = 0; i < 20; i++)
		vidmm_settle(w.client.host);
	assert_int_equal(client_residency(&w.device, next), EVICTED); /* not in the aperture */
	gate_open(&w);
	client_idle(&w.client);
	assert_int_equal(client_residency(&w.device, next), IN_VRAM);
	world_stop(&w);
}

static void seg_19_reads_and_writes_use_their_own_segment_sets(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_sets(&w, PAGE, (struct sets){APERTURE, VRAM, 0, 0});

	client_write(&w.device, a, PAGE, 0x19);
	for (int i = 0; i < 2; i++) {
		use_now(&w, a, false);
		assert_int_equal(client_residency(&w.device, a), IN_APERTURE);
		client_expect(&w.device, a, PAGE, 0x19);
		use_now(&w, a, true);
		assert_int_equal(client_residency(&w.device, a), IN_VRAM);
		client_expect(&w.device, a, PAGE, 0x19);
	}
	world_stop(&w);
}

static void seg_20_eviction_set_zero_transfers_directly_to_system_pages(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_in(&w.device, PAGE, CPU, 0);
	HANDLE kmd = probe_last_created();

	use_now(&w, a, true);
	probe_forget();
	evict_by_pressure(&w, a);
	assert_int_equal(probe_paging_count(-1, kmd), 1);
	assert_int_equal(probe_find_paging(DXGK_OPERATION_TRANSFER, kmd, 0)
				 ->paging.Transfer.Destination.SegmentId,
			 0);
	world_stop(&w);
}

static void seg_21_paging_buffers_come_from_system_memory_or_from_an_aperture(void **state)
{
	for (uint64_t segment = 0; segment <= 2; segment += 2) {
		const struct vidmm_registry_value values[] = {{"PagingBufferSegment", segment},
							      {"DmaBufferSegmentSet", segment}};
		const struct client_options options = {
			.vram_bytes = 4 * MIB, .registry = values, .registry_count = 2};
		struct world w;

		world_start(&w, state, &options);
		D3DKMT_HANDLE a = allocate_in(&w.device, 64 * KIB, CPU, VRAM);
		client_write(&w.device, a, 64 * KIB, 0x2100);
		use_now(&w, a, true);
		evict_by_pressure(&w, a);
		client_expect(&w.device, a, 64 * KIB, 0x2100);
		const struct probe_call *paging = probe_find(PROBE_PAGING, 0);
		assert_int_equal(paging->paging.DmaBufferPrivateDataSize != 0,
				 paging->paging.pDmaBufferPrivateData != NULL);
		world_stop(&w);
	}
}

static void pag_01_idle_allocations_in_an_aperture_are_evicted_for_a_dma_buffer(void **state)
{
	struct client_options options = {.vram_bytes = 4 * MIB, .aperture_bytes = 4 * MIB};
	struct client_context second;
	struct world w;
	D3DKMT_HANDLE a[64];

	world_start(&w, state, &options);
	for (int i = 0; i < 64; i++) {
		a[i] = allocate_in(&w.device, 64 * KIB, CPU, APERTURE);
		client_write(&w.device, a[i], 64 * KIB, (uint32_t)i << 16);
		use_now(&w, a[i], true);
	}
	client_context(&w.device, 0, &second);
	client_reference(&second, a[0], true);
	assert_int_equal(client_try_submit(&second), S_OK);
	client_idle(&w.client);
	for (int i = 0; i < 64; i++)
		client_expect(&w.device, a[i], 64 * KIB, (uint32_t)i << 16);
	client_context_end(&second);
	world_stop(&w);
}

static void seg_21_a_paging_buffer_of_one_command_suffices(void **state)
{
	for (uint64_t segment = 0; segment <= 2; segment += 2) {
		const struct vidmm_registry_value values[] = {{"PagingBufferSize", 80},
							      {"PagingBufferSegment", segment}};
		const struct client_options options = {
			.vram_bytes = MIB, .registry = values, .registry_count = 2};
		struct world w;
		D3DKMT_HANDLE a[20];

		world_start(&w, state, &options);
		for (uint32_t i = 0; i < 20; i++) {
			a[i] = allocate_in(&w.device, 256 * KIB, CPU, VRAM);
			client_write(&w.device, a[i], 256 * KIB, i << 20);
		}
		for (uint32_t i = 0; i < 20; i += 4) {
			for (uint32_t k = 0; k < 4; k++)
				client_reference(&w.context, a[i + k], true);
			client_submit(&w.context);
		}
		for (uint32_t i = 0; i < 20; i++)
			client_expect(&w.device, a[i], 256 * KIB, i << 20);
		world_stop(&w);
	}
}

static void seg_21_paging_works_if_no_second_paging_buffer_fits_the_aperture(void **state)
{
	static const struct vidmm_registry_value values[] = {{"PagingBufferSize", 4096},
							     {"DmaBufferSegmentSet", 0}};
	struct client_options options = {.vram_bytes = 4 * MIB,
					 .aperture_bytes = MIB,
					 .registry = values,
					 .registry_count = 2};
	enum {
		PAGES = 254,
		BURST = 300
	}; /* the gate and the first paging buffer have a page each */
	struct world w;
	D3DKMT_HANDLE filler, a[BURST];

	world_start(&w, state, &options);
	filler = allocate_in(&w.device, PAGES * PAGE, CPU, APERTURE);
	use_now(&w, filler, true);
	assert_true(world_statistics(&w).segment[1].resident_bytes == 255 * PAGE);
	for (uint32_t i = 0; i < BURST; i++) {
		a[i] = allocate_in(&w.device, PAGE, CPU, VRAM);
		client_write(&w.device, a[i], PAGE, i << 12);
		client_reference(&w.context, a[i], true);
	}
	client_submit(&w.context); /* more than one paging buffer holds */
	client_idle(&w.client);
	assert_int_equal(client_residency(&w.device, filler), IN_APERTURE);
	for (uint32_t i = 0; i < BURST; i++)
		client_expect(&w.device, a[i], PAGE, i << 12);
	world_stop(&w);
}

static void pag_01_creation_needs_no_free_segment_space(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	for (int i = 0; i < 64; i++)
		allocate_in(&w.device, 4 * MIB, CPU, VRAM);
	assert_true(world_statistics(&w).segment[0].resident_bytes == 0);
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(seg_01_bit_n_minus_1_means_segment_n),
		BOTH(seg_04_an_aperture_never_maps_more_than_its_commit_limit),
		BOTH(seg_04_an_allocation_above_the_commit_limit_evicts_nothing),
		BOTH(seg_05_aperturesegmentcommitlimit_bounds_a_single_aperture),
		BOTH(seg_17_preference_direction_one_places_at_the_high_end),
		BOTH(seg_17_without_a_direction_fromendofsegment_applies),
		BOTH(seg_18_preferred_segments_come_first_then_the_rest),
		BOTH(seg_18_a_working_set_larger_than_a_segment_uses_the_next_one),
		BOTH(seg_18_a_failed_placement_in_one_segment_has_no_effect),
		BOTH(seg_18_placement_waits_for_the_gpu_to_free_the_preferred_segment),
		BOTH(seg_19_reads_and_writes_use_their_own_segment_sets),
		BOTH(seg_20_eviction_set_zero_transfers_directly_to_system_pages),
		BOTH(seg_21_paging_buffers_come_from_system_memory_or_from_an_aperture),
		BOTH(seg_21_a_paging_buffer_of_one_command_suffices),
		BOTH(seg_21_paging_works_if_no_second_paging_buffer_fits_the_aperture),
		BOTH(pag_01_idle_allocations_in_an_aperture_are_evicted_for_a_dma_buffer),
		BOTH(pag_01_creation_needs_no_free_segment_space),
	};

	return cmocka_run_group_tests_name("placement", tests, NULL, NULL);
}
