/* SPDX-License-Identifier: MIT */
/*
 * PAG-17 and SEG-20: the eviction path of content from a memory segment, through an aperture or
 * direct.
 */
#include "world.h"

/* Only allocations are in the aperture. */
static const struct vidmm_registry_value bare[] = {{"DmaBufferSegmentSet", 0},
						   {"PagingBufferSegment", 0}};
static const struct client_options small = {
	.vram_bytes = 4 * MIB, .aperture_bytes = 2 * MIB, .registry = bare, .registry_count = 2};

static struct softgpu_allocation wish_through(uint64_t bytes, uint32_t flags)
{
	struct softgpu_allocation wish = wish_of(bytes, flags, VRAM);

	wish.eviction_set = APERTURE;
	return wish;
}

static D3DKMT_HANDLE allocate_through(struct world *w, uint64_t bytes)
{
	struct softgpu_allocation wish = wish_through(bytes, CPU);

	return allocate_wish(&w->device, &wish);
}

static void expect_straight(HANDLE kmd)
{
	assert_int_equal(probe_paging_count(-1, kmd), 1);
	const struct probe_call *out = probe_find_paging(DXGK_OPERATION_TRANSFER, kmd, 0);
	assert_non_null(out);
	assert_int_equal(out->paging.Transfer.Destination.SegmentId, 0);
	assert_non_null(out->paging.Transfer.Destination.pMdl);
}

/* Map, Transfer, Unmap, in this order and for the same pages. */
static void expect_through(HANDLE kmd, uint64_t bytes)
{
	assert_int_equal(probe_paging_count(-1, kmd), 3);
	const struct probe_call *map =
		probe_find_paging(DXGK_OPERATION_MAP_APERTURE_SEGMENT, kmd, 0);
	const struct probe_call *copy = probe_find_paging(DXGK_OPERATION_TRANSFER, kmd, 0);
	const struct probe_call *unmap =
		probe_find_paging(DXGK_OPERATION_UNMAP_APERTURE_SEGMENT, kmd, 0);
	assert_true(map && copy && unmap && map < copy && copy < unmap);
	uint64_t page = map->paging.MapApertureSegment.OffsetInPages;
	assert_int_equal(map->paging.MapApertureSegment.SegmentId, 2);
	assert_true(map->paging.MapApertureSegment.NumberOfPages == bytes / PAGE);
	assert_non_null(map->paging.MapApertureSegment.pMdl);
	assert_non_null(map->paging.MapApertureSegment.hDevice);
	assert_int_equal(copy->paging.Transfer.Source.SegmentId, 1);
	assert_int_equal(copy->paging.Transfer.Destination.SegmentId, 2);
	assert_true(copy->paging.Transfer.Destination.SegmentAddress.QuadPart ==
		    (LONGLONG)(((uint64_t)1 << 40) + page * PAGE));
	assert_true(copy->paging.Transfer.TransferSize == bytes);
	assert_int_equal(copy->paging.Transfer.TransferOffset, 0);
	assert_true(copy->paging.Transfer.Flags.TransferStart &&
		    copy->paging.Transfer.Flags.TransferEnd);
	assert_int_equal(unmap->paging.UnmapApertureSegment.SegmentId, 2);
	assert_true(unmap->paging.UnmapApertureSegment.OffsetInPages == page);
	assert_true(unmap->paging.UnmapApertureSegment.NumberOfPages == bytes / PAGE);
}

static void pag_17_memory_is_evicted_through_an_aperture_of_its_eviction_set(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_through(&w, MIB);
	HANDLE kmd = probe_last_created();

	for (uint32_t round = 0; round < 3; round++) {
		uint64_t before;

		client_write(&w.device, a, MIB, round << 24);
		probe_forget();
		use_now(&w, a, true);
		/*
		 * Page-in transfers directly from the backing pages: EvictionSegmentSet applies to
		 * eviction only.
		 */
		assert_int_equal(probe_paging_count(-1, kmd), 1);
		assert_int_equal(probe_find_paging(DXGK_OPERATION_TRANSFER, kmd, 0)
					 ->paging.Transfer.Source.SegmentId,
				 0);
		probe_forget();
		before = world_statistics(&w).segment[1].resident_bytes;
		evict_by_pressure(&w, a);
		expect_through(kmd, MIB);
		assert_true(world_statistics(&w).segment[1].resident_bytes == before);
		client_expect(&w.device, a, MIB, round << 24);
	}
	world_stop(&w);
}

/* A retained system copy is updated on the same path, and not at all if the GPU wrote nothing. */
static void pag_13_pag_17_a_retained_copy_is_updated_through_the_aperture_if_dirty(void **state)
{
	struct softgpu_allocation wish =
		wish_through(MIB, CPU | SOFTGPU_ALLOCATION_PERMANENT_SYSTEM);
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_wish(&w.device, &wish);
	HANDLE kmd = probe_last_created();

	client_write(&w.device, a, MIB, 0x31000000);
	use_now(&w, a, false);
	probe_forget();
	evict_by_pressure(&w, a);
	assert_int_equal(probe_paging_count(-1, kmd), 1);
	assert_non_null(probe_find_paging(DXGK_OPERATION_DISCARD_CONTENT, kmd, 0));
	client_fill(&w.context, a, MIB, 0x51515151);
	client_submit(&w.context);
	client_idle(&w.client);
	probe_forget();
	evict_by_pressure(&w, a);
	expect_through(kmd, MIB);
	const uint32_t *words = client_lock(&w.device, a, READ_ONLY);
	for (uint32_t i = 0; i < MIB / 4; i++)
		assert_int_equal(words[i], 0x51515151);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

static void seg_20_without_a_large_enough_aperture_eviction_is_direct(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE fits = allocate_through(&w, 2 * MIB);
	HANDLE fits_kmd = probe_last_created();
	D3DKMT_HANDLE larger = allocate_through(&w, 2 * MIB + PAGE);
	HANDLE larger_kmd = probe_last_created();

	client_write(&w.device, fits, 2 * MIB, 0x2000);
	use_now(&w, fits, true);
	probe_forget();
	evict_by_pressure(&w, fits);
	expect_through(fits_kmd, 2 * MIB);
	client_write(&w.device, larger, 2 * MIB + PAGE, 0x20000000);
	use_now(&w, larger, true);
	probe_forget();
	evict_by_pressure(&w, larger);
	expect_straight(larger_kmd);
	client_expect(&w.device, fits, 2 * MIB, 0x2000);
	client_expect(&w.device, larger, 2 * MIB + PAGE, 0x20000000);
	world_stop(&w);
}

static void pag_17_an_idle_user_of_the_aperture_is_evicted_for_it(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_through(&w, 2 * MIB);
	HANDLE kmd = probe_last_created();
	D3DKMT_HANDLE user = allocate_in(&w.device, MIB, CPU, APERTURE);
	HANDLE user_kmd = probe_last_created();

	client_write(&w.device, a, 2 * MIB, 0x1700);
	client_write(&w.device, user, MIB, 0x17000000);
	use_now(&w, user, true);
	use_now(&w, a, true);
	probe_forget();
	evict_by_pressure(&w, a);
	expect_through(kmd, 2 * MIB);
	assert_int_equal(client_residency(&w.device, user), EVICTED);
	assert_true(probe_find_paging(DXGK_OPERATION_UNMAP_APERTURE_SEGMENT, user_kmd, 0) <
		    probe_find_paging(DXGK_OPERATION_MAP_APERTURE_SEGMENT, kmd, 0));
	client_expect(&w.device, a, 2 * MIB, 0x1700);
	client_expect(&w.device, user, MIB, 0x17000000);
	world_stop(&w);
}

/* The user of the aperture is busy behind the closed gate, which is itself mapped there. */
static void make_aperture_busy(struct world *w, D3DKMT_HANDLE user)
{
	gate_close(w);
	client_reference(&w->context, user, true);
	client_submit(&w->context);
	for (int i = 0; i < 20; i++)
		vidmm_settle(w->client.host);
}

static void pag_17_eviction_waits_for_a_busy_user_of_the_aperture(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_through(&w, 2 * MIB);
	HANDLE kmd = probe_last_created();
	D3DKMT_HANDLE user = allocate_in(&w.device, MIB, CPU, APERTURE);
	D3DKMT_HANDLE all = allocate_in(&w.device, 4 * MIB, CPU, VRAM);

	client_write(&w.device, a, 2 * MIB, 0x1701);
	use_now(&w, a, true);
	make_aperture_busy(&w, user);
	probe_forget();
	client_reference(&w.context, all, true);
	client_submit(&w.context);
	for (int i = 0; i < 50; i++)
		vidmm_settle(w.client.host);
	assert_int_equal(client_residency(&w.device, a), IN_VRAM);
	assert_int_equal(probe_paging_count(-1, kmd), 0);
	gate_open(&w);
	client_idle(&w.client);
	assert_int_equal(client_residency(&w.device, a), EVICTED);
	assert_int_equal(client_residency(&w.device, all), IN_VRAM);
	expect_through(kmd, 2 * MIB);
	client_expect(&w.device, a, 2 * MIB, 0x1701);
	world_stop(&w);
}

static void pag_17_eviction_succeeds_if_the_same_buffer_uses_the_aperture(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_through(&w, 2 * MIB);
	HANDLE kmd = probe_last_created();
	D3DKMT_HANDLE beside = allocate_in(&w.device, MIB, CPU, APERTURE);
	D3DKMT_HANDLE all = allocate_in(&w.device, 4 * MIB, CPU, VRAM);

	client_write(&w.device, a, 2 * MIB, 0x1702);
	client_write(&w.device, beside, MIB, 0x17020000);
	use_now(&w, a, true);
	probe_forget();
	client_reference(&w.context, beside, true);
	client_reference(&w.context, all, true);
	client_submit(&w.context);
	client_idle(&w.client);
	expect_straight(kmd);
	assert_int_equal(client_residency(&w.device, beside), IN_APERTURE);
	client_expect(&w.device, a, 2 * MIB, 0x1702);
	client_expect(&w.device, beside, MIB, 0x17020000);
	world_stop(&w);
}

static void pag_17_locked_memory_is_evicted_through_the_aperture(void **state)
{
	struct world w;
	struct softgpu_allocation wish = wish_of(MIB, CPU, VRAM | APERTURE);

	world_start(&w, state, &small);
	wish.eviction_set = APERTURE;
	D3DKMT_HANDLE a = allocate_wish(&w.device, &wish);
	HANDLE kmd = probe_last_created();

	client_write(&w.device, a, MIB, 0x1703);
	use_now(&w, a, true);
	assert_int_equal(client_residency(&w.device, a), IN_VRAM);
	probe_forget();
	uint32_t *bytes = client_lock(&w.device, a, 0);
	D3DKMT_HANDLE all = allocate_in(&w.device, 4 * MIB, CPU, VRAM);
	use_now(&w, all, true);
	assert_int_equal(client_residency(&w.device, a), EVICTED);
	expect_through(kmd, MIB);
	for (uint32_t i = 0; i < MIB / 4; i++)
		assert_int_equal(bytes[i], 0x1703 + i);
	bytes[7] = 0xCAFE;
	use_now(&w, a, true);
	assert_int_equal(client_residency(&w.device, a), IN_APERTURE);
	assert_int_equal(bytes[7], 0xCAFE);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

static const struct vidmm_registry_value hidden[] = {
	{"DmaBufferSegmentSet", 0}, {"PagingBufferSegment", 0}, {"VramCpuVisible", 0}};
static const struct client_options small_hidden = {
	.vram_bytes = 4 * MIB, .aperture_bytes = 2 * MIB, .registry = hidden, .registry_count = 3};

static void pag_17_a_lock_waits_for_eviction_from_a_hidden_segment(void **state)
{
	struct world w;
	struct helper helper;

	world_start(&w, state, &small_hidden);
	D3DKMT_HANDLE a = allocate_through(&w, 2 * MIB);
	HANDLE kmd = probe_last_created();
	D3DKMT_HANDLE user = allocate_in(&w.device, MIB, CPU, APERTURE);

	client_fill(&w.context, a, 2 * MIB, 0x17041704);
	client_submit(&w.context);
	client_idle(&w.client);
	make_aperture_busy(&w, user);
	probe_forget();
	expect_lock_declined(&w, a, 0);
	assert_int_equal(client_residency(&w.device, a), IN_VRAM);
	lock_on_thread(&helper, &w, a, 0);
	assert_int_equal(atomic_load(&helper.state), 1);
	gate_open(&w);
	helper_join(&helper);
	assert_int_equal(helper.result, S_OK);
	assert_true(helper.gate_was_open);
	expect_through(kmd, 2 * MIB);
	for (uint32_t i = 0; i < 2 * MIB / 4; i++)
		assert_int_equal(((const uint32_t *)helper.data)[i], 0x17041704);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	client_idle(&w.client);
	world_stop(&w);
}

static void pag_17_content_survives_repeated_eviction(void **state)
{
	enum { COUNT = 12 };
	struct world w;
	D3DKMT_HANDLE a[COUNT];
	uint64_t bytes[COUNT];

	world_start(&w, state, &small);
	for (uint32_t i = 0; i < COUNT; i++) {
		bytes[i] = i % 3 ? MIB : 512 * KIB;
		struct softgpu_allocation wish = wish_of(bytes[i], CPU, i % 3 ? VRAM : APERTURE);
		wish.eviction_set = APERTURE;
		a[i] = allocate_wish(&w.device, &wish);
		client_write(&w.device, a[i], bytes[i], i << 20);
	}
	for (uint32_t round = 0; round < 40; round++) {
		client_reference(&w.context, a[round * 7 % COUNT], true);
		client_reference(&w.context, a[round * 5 % COUNT], true);
		client_submit(&w.context);
		if (round % 5 == 0)
			client_expect(&w.device, a[round % COUNT], bytes[round % COUNT],
				      (round % COUNT) << 20);
	}
	for (uint32_t i = 0; i < COUNT; i++)
		client_expect(&w.device, a[i], bytes[i], i << 20);
	world_stop(&w);
}

/* ---- fair shares (SEG-27) ---- */

enum { PIECES = 8 };

static void submit_use(struct client_context *context, D3DKMT_HANDLE a)
{
	client_reference(context, a, true);
	client_submit(context);
	client_idle(context->device->client);
}

static uint32_t residents(struct client_device *device, const D3DKMT_HANDLE *list, uint32_t count)
{
	uint32_t there = 0;

	for (uint32_t i = 0; i < count; i++)
		there += client_residency(device, list[i]) == IN_VRAM;
	return there;
}

/*
 * A process below its share keeps its allocation although it is the oldest. Two equal processes
 * are evicted in turn.
 */
static void seg_27_each_process_has_its_share_of_a_segment(void **state)
{
	struct client_device other;
	struct client_context context;
	D3DKMT_HANDLE mine[PIECES], theirs[2 * PIECES];
	struct world w;

	world_start(&w, state, &small);
	client_open(&w.client, &other);
	client_context(&other, 0, &context);
	for (uint32_t i = 0; i < PIECES; i++)
		mine[i] = allocate_in(&w.device, 512 * KIB, CPU, VRAM);
	for (uint32_t i = 0; i < 2 * PIECES; i++)
		theirs[i] = allocate_in(&other, 512 * KIB, CPU, VRAM);
	use_now(&w, mine[0], true); /* the oldest of all */
	for (uint32_t i = 0; i < 2 * PIECES; i++)
		submit_use(&context, theirs[i]);
	assert_int_equal(client_residency(&w.device, mine[0]), IN_VRAM);
	/*
	 * It grows to half of the segment at the other's cost, and from then on is evicted as
	 * often.
	 */
	for (uint32_t i = 1; i < PIECES; i++) {
		uint32_t before = residents(&other, theirs, 2 * PIECES), kept;

		use_now(&w, mine[i], true);
		kept = residents(&other, theirs, 2 * PIECES);
		assert_true(kept == before || kept == before - 1);
	}
	uint32_t half = residents(&w.device, mine, PIECES);
	assert_true(half >= 3 && half <= 4);
	for (uint32_t i = 0; i < PIECES; i++) {
		submit_use(&context, theirs[i]);
		use_now(&w, mine[i], true);
		assert_true(residents(&w.device, mine, PIECES) >= 3);
		assert_true(residents(&other, theirs, 2 * PIECES) >= 3);
	}
	client_context_end(&context);
	client_close(&other);
	world_stop(&w);
}

/* The first of three processes leaves the segment. Only what the other two have now counts. */
static void seg_27_a_process_that_leaves_does_not_change_the_shares_of_others(void **state)
{
	enum { MOST = PIECES - 2 };
	struct client_device growing, large;
	struct client_context growings, larges;
	D3DKMT_HANDLE theirs[PIECES], most[MOST];
	struct world w;

	world_start(&w, state, &small);
	client_open(&w.client, &growing);
	client_context(&growing, 0, &growings);
	client_open(&w.client, &large);
	client_context(&large, 0, &larges);
	D3DKMT_HANDLE first = allocate_in(&w.device, 512 * KIB, CPU, VRAM);

	for (uint32_t i = 0; i < PIECES; i++)
		theirs[i] = allocate_in(&growing, 512 * KIB, CPU, VRAM);
	for (uint32_t i = 0; i < MOST; i++)
		most[i] = allocate_in(&large, 512 * KIB, CPU, VRAM);
	use_now(&w, first, true);
	submit_use(&growings, theirs[0]);
	for (uint32_t i = 0; i < MOST; i++)
		submit_use(&larges, most[i]);
	assert_int_equal(residents(&large, most, MOST), MOST);
	assert_int_equal(client_deallocate(&w.device, first), S_OK);
	/* The growing process evicts the large one's content up to about half, then its own. */
	for (uint32_t i = 1; i < PIECES; i++)
		submit_use(&growings, theirs[i]);
	assert_int_equal(residents(&large, most, MOST), PIECES / 2 - 1);
	assert_int_equal(residents(&growing, theirs, PIECES), PIECES / 2 + 1);
	client_context_end(&growings);
	client_close(&growing);
	client_context_end(&larges);
	client_close(&large);
	world_stop(&w);
}

/* An allocation of higher priority is not evicted, however much its process has. */
static void seg_27_priority_takes_precedence_over_fair_shares(void **state)
{
	UINT high[4] = {0xA0000000, 0xA0000000, 0xA0000000, 0xA0000000};
	struct client_device other;
	struct client_context context;
	D3DKMT_HANDLE mine[4], theirs[4];
	struct world w;

	world_start(&w, state, &small);
	client_open(&w.client, &other);
	client_context(&other, 0, &context);
	for (uint32_t i = 0; i < 4; i++) {
		mine[i] = allocate_in(&w.device, 768 * KIB, CPU, VRAM);
		theirs[i] = allocate_in(&other, 512 * KIB, CPU, VRAM);
	}
	D3DDDICB_SETPRIORITY args = {.NumAllocations = 4, .HandleList = mine, .pPriorities = high};
	assert_int_equal(w.device.cb->pfnSetPriorityCb(w.device.handle, &args), S_OK);
	for (uint32_t i = 0; i < 4; i++)
		use_now(&w, mine[i], true);
	for (uint32_t i = 0; i < 4; i++)
		submit_use(&context, theirs[i]);
	assert_int_equal(residents(&w.device, mine, 4), 4);
	assert_true(residents(&other, theirs, 4) <= 2);
	client_context_end(&context);
	client_close(&other);
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(pag_17_memory_is_evicted_through_an_aperture_of_its_eviction_set),
		BOTH(pag_13_pag_17_a_retained_copy_is_updated_through_the_aperture_if_dirty),
		BOTH(pag_17_an_idle_user_of_the_aperture_is_evicted_for_it),
		BOTH(pag_17_eviction_waits_for_a_busy_user_of_the_aperture),
		BOTH(pag_17_eviction_succeeds_if_the_same_buffer_uses_the_aperture),
		BOTH(pag_17_locked_memory_is_evicted_through_the_aperture),
		BOTH(pag_17_a_lock_waits_for_eviction_from_a_hidden_segment),
		BOTH(pag_17_content_survives_repeated_eviction),
		BOTH(seg_20_without_a_large_enough_aperture_eviction_is_direct),
		BOTH(seg_27_each_process_has_its_share_of_a_segment),
		BOTH(seg_27_a_process_that_leaves_does_not_change_the_shares_of_others),
		BOTH(seg_27_priority_takes_precedence_over_fair_shares),
	};

	return cmocka_run_group_tests_name("eviction", tests, NULL, NULL);
}
