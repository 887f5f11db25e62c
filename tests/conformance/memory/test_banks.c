/* SPDX-License-Identifier: MIT */
/* SEG-13 to SEG-15: the banks of a segment and HintedBank. */
#include "world.h"

enum { BANKS = 4, BANK = MIB, DOWN = 0x80 };

static const struct vidmm_registry_value four_banks[] = {{"VramBanks", BANKS}};
static const struct client_options banked = {
	.vram_bytes = BANKS * BANK, .registry = four_banks, .registry_count = 1};

/* HintedBank with these ids in falling priority, each plus DOWN or not. */
static uint32_t hints(uint32_t first, uint32_t second, uint32_t third, uint32_t fourth)
{
	return first | second << 8 | third << 16 | fourth << 24;
}

static uint64_t address_of(HANDLE kmd)
{
	const struct probe_call *fill = probe_find_paging(DXGK_OPERATION_FILL, kmd, 0);

	assert_non_null(fill);
	return (uint64_t)fill->paging.Fill.Destination.SegmentAddress.QuadPart;
}

/* The placement of a new allocation with these hints. */
static uint64_t place(struct world *w, uint64_t bytes, uint32_t banks)
{
	struct softgpu_allocation wish = wish_of(bytes, CPU, VRAM);

	wish.hinted_banks = banks;
	probe_forget(); /* the miniport reuses handles */
	use_now(w, allocate_wish(&w->device, &wish), true);
	return address_of(probe_last_created());
}

static void seg_14_banks_are_tried_in_falling_priority_then_anywhere(void **state)
{
	struct world w;

	world_start(&w, state, &banked);
	assert_true(place(&w, 768 * KIB, hints(2, 1, 0, 0)) == BANK);
	assert_true(place(&w, 768 * KIB, hints(2, 1, 0, 0)) == 0);
	assert_true(place(&w, 768 * KIB, hints(2, 1, 0, 0)) == BANK + 768 * KIB); /* anywhere */
	assert_true(place(&w, 128 * KIB, hints(2, 1, 0, 0)) == 768 * KIB);
	assert_true(place(&w, 128 * KIB, hints(4, 3, 2, 1)) == 3 * BANK);
	assert_true(place(&w, 512 * KIB, hints(1, 2, 3, 4)) == 2 * BANK + 512 * KIB);
	assert_true(place(&w, 512 * KIB, hints(1, 2, 3, 4)) == 3 * BANK + 128 * KIB);
	assert_int_equal(world_statistics(&w).evictions, 0);
	world_stop(&w);
}

static void seg_14_a_full_segment_evicts_for_a_hinted_allocation(void **state)
{
	struct world w;

	world_start(&w, state, &banked);
	D3DKMT_HANDLE all = allocate_in(&w.device, BANKS * BANK, CPU, VRAM);
	client_write(&w.device, all, BANKS * BANK, 0x1400);
	use_now(&w, all, true);
	assert_int_equal(client_residency(&w.device, all), IN_VRAM);
	place(&w, PAGE, hints(3, 0, 0, 0));
	assert_int_equal(client_residency(&w.device, all), EVICTED);
	client_expect(&w.device, all, BANKS * BANK, 0x1400);
	world_stop(&w);
}

static void seg_13_an_allocation_may_cross_the_border_of_a_bank(void **state)
{
	struct world w;

	world_start(&w, state, &banked);
	struct softgpu_allocation wish = wish_of(BANK + PAGE, CPU, VRAM);
	wish.hinted_banks = hints(2, 0, 0, 0);
	D3DKMT_HANDLE a = allocate_wish(&w.device, &wish);
	HANDLE kmd = probe_last_created();

	client_fill(&w.context, a, BANK + PAGE, 0x13131313);
	client_submit(&w.context);
	client_idle(&w.client);
	uint64_t first = address_of(kmd) / BANK, last = (address_of(kmd) + BANK + PAGE - 1) / BANK;
	assert_true(last > first && last < BANKS); /* wholly inside the segment, across two banks */
	const uint32_t *bytes = client_lock(&w.device, a, READ_ONLY);
	for (uint32_t i = 0; i < (BANK + PAGE) / 4; i++)
		assert_int_equal(bytes[i], 0x13131313);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

static void seg_15_each_bank_hint_has_its_own_direction(void **state)
{
	struct world w;

	world_start(&w, state, &banked);
	assert_true(place(&w, PAGE, hints(2, 0, 0, 0)) == BANK);
	assert_true(place(&w, PAGE, hints(2 | DOWN, 0, 0, 0)) == 2 * BANK - PAGE);
	assert_true(place(&w, PAGE, hints(2, 0, 0, 0)) == BANK + PAGE);
	assert_true(place(&w, PAGE, hints(2 | DOWN, 0, 0, 0)) == 2 * BANK - 2 * PAGE);
	/* The second hint has its own direction. */
	assert_true(place(&w, BANK, hints(4, 0, 0, 0)) == 3 * BANK);
	assert_true(place(&w, PAGE, hints(4, 3 | DOWN, 0, 0)) == 3 * BANK - PAGE);
	world_stop(&w);
}

static void seg_15_the_only_bank_is_searched_from_the_right_end_too(void **state)
{
	static const struct vidmm_registry_value one_bank[] = {{"VramBanks", 1}};
	const struct client_options options = {
		.vram_bytes = BANKS * BANK, .registry = one_bank, .registry_count = 1};
	struct world w;
	D3DKMT_HANDLE holes[2];

	world_start(&w, state, &options);
	/* The second hole fits exactly; the first is the lowest address. */
	for (uint32_t i = 0; i < 2; i++) {
		holes[i] = allocate_in(&w.device, (i ? 8 : 40) * PAGE, CPU, VRAM);
		use_now(&w, holes[i], true);
		use_now(&w, allocate_in(&w.device, PAGE, CPU, VRAM), true);
	}
	assert_int_equal(client_deallocate(&w.device, holes[0]), S_OK);
	assert_int_equal(client_deallocate(&w.device, holes[1]), S_OK);
	assert_true(place(&w, 8 * PAGE, hints(1, 0, 0, 0)) == 0);
	assert_true(place(&w, 8 * PAGE, hints(1 | DOWN, 0, 0, 0)) == BANKS * BANK - 8 * PAGE);
	world_stop(&w);
}

static void alf_17_a_bank_hint_takes_precedence_over_fromendofsegment(void **state)
{
	struct world w;
	struct softgpu_allocation wish = wish_of(PAGE, CPU | SOFTGPU_ALLOCATION_FROM_END, VRAM);

	world_start(&w, state, &banked);
	wish.hinted_banks = hints(1, 0, 0, 0);
	use_now(&w, allocate_wish(&w.device, &wish), true);
	assert_true(address_of(probe_last_created()) == 0);
	wish.hinted_banks = 0;
	use_now(&w, allocate_wish(&w.device, &wish), true);
	assert_true(address_of(probe_last_created()) == BANKS * BANK - PAGE);
	world_stop(&w);
}

static HRESULT try_hints(struct world *w, uint32_t preferred, uint32_t banks)
{
	struct softgpu_allocation wish = wish_of(PAGE, CPU, 0);
	D3DKMT_HANDLE a;

	wish.preferred_segment = preferred;
	wish.hinted_banks = banks;
	HRESULT result = client_try_allocate(&w->device, &wish, NULL, &a, NULL);
	if (result == S_OK)
		use_now(w, a, true);
	return result;
}

static void seg_14_a_bank_that_does_not_exist_is_refused(void **state)
{
	struct world w;

	world_start(&w, state, &banked);
	assert_int_equal(try_hints(&w, 1, hints(BANKS, 3 | DOWN, 2, 1)), S_OK);
	for (uint32_t i = 0; i < 4; i++) {
		uint32_t banks = hints(1, 2, 3, 4) & ~(0x7Fu << (8 * i));

		client_forget(&w.client);
		assert_int_equal(try_hints(&w, 1, banks | (BANKS + 1) << (8 * i)), E_INVALIDARG);
		assert_true(client_found(&w.client, "SEG-14"));
		assert_non_null(
			strstr(w.client.finding[0], "names bank 5 of segment 1, which has 4"));
	}
	client_forget(&w.client);
	assert_int_equal(try_hints(&w, 1, hints(127 | DOWN, 0, 0, 0)), E_INVALIDARG);
	client_forget(&w.client);
	/* The list ends at the first 0; a direction without a bank has no effect. */
	assert_int_equal(try_hints(&w, 1, hints(1, 0, 127, 127)), S_OK);
	assert_int_equal(try_hints(&w, 1, hints(DOWN, DOWN, DOWN, DOWN)), S_OK);
	assert_int_equal(w.client.findings, 0);
	world_stop(&w);
}

static void no_preference(void *context, DXGK_ALLOCATIONINFO *info, uint32_t index)
{
	(void)context;
	(void)index;
	info->PreferredSegment.Value = 0;
}

static void seg_14_hints_are_ignored_without_banks_or_a_preferred_segment(void **state)
{
	struct world w;

	world_start(&w, state, &banked);
	assert_int_equal(try_hints(&w, 2, hints(127, 126, 125, 124)), S_OK); /* unbanked */
	probe.edit_allocation = no_preference;
	assert_int_equal(try_hints(&w, 1, hints(127, 126, 125, 124)), S_OK);
	probe.edit_allocation = NULL;
	world_stop(&w);
	world_start(&w, state, NULL);
	assert_int_equal(try_hints(&w, 1, hints(127, 126, 125, 124)), S_OK);
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(seg_13_an_allocation_may_cross_the_border_of_a_bank),
		BOTH(seg_14_banks_are_tried_in_falling_priority_then_anywhere),
		BOTH(seg_14_a_full_segment_evicts_for_a_hinted_allocation),
		BOTH(seg_14_a_bank_that_does_not_exist_is_refused),
		BOTH(seg_14_hints_are_ignored_without_banks_or_a_preferred_segment),
		BOTH(seg_15_each_bank_hint_has_its_own_direction),
		BOTH(seg_15_the_only_bank_is_searched_from_the_right_end_too),
		BOTH(alf_17_a_bank_hint_takes_precedence_over_fromendofsegment),
	};

	return cmocka_run_group_tests_name("banks", tests, NULL, NULL);
}
