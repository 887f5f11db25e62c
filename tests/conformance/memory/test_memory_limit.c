/* SPDX-License-Identifier: MIT */
/* memory_limit_bytes makes each memory segment smaller than the miniport reports. */
#include "world.h"

static uint64_t segment_bytes(const struct world *w, uint32_t index)
{
	return world_statistics(w).segment[index].size_bytes;
}

static void q_405_a_memory_segment_has_the_smaller_size(void **state)
{
	const struct client_options limited = {.vram_bytes = 8 * MIB,
					       .memory_limit_bytes = 3 * MIB + 100};
	const struct client_options above = {.vram_bytes = 2 * MIB, .memory_limit_bytes = 3 * MIB};
	struct world w;

	world_start(&w, state, &limited);
	assert_int_equal(segment_bytes(&w, 0), 3 * MIB); /* whole pages */
	assert_int_equal(segment_bytes(&w, 1), 64 * MIB);
	world_stop(&w);
	world_start(&w, state, &above);
	assert_int_equal(segment_bytes(&w, 0), 2 * MIB);
	world_stop(&w);
}

static void q_405_what_does_not_fit_below_the_limit_evicts(void **state)
{
	const struct client_options limited = {.vram_bytes = 8 * MIB,
					       .memory_limit_bytes = 2 * MIB};
	D3DKMT_HANDLE a[3];
	struct world w;

	world_start(&w, state, &limited);
	for (uint32_t i = 0; i < 3; i++) {
		a[i] = allocate_in(&w.device, MIB, CPU, VRAM);
		client_write(&w.device, a[i], MIB, 0x4050 + i);
		use_now(&w, a[i], true);
	}
	assert_int_equal(client_residency(&w.device, a[0]), EVICTED);
	assert_int_equal(world_statistics(&w).evictions, 1);
	assert_int_equal(world_statistics(&w).segment[0].peak_resident_bytes, 2 * MIB);
	for (uint32_t i = 0; i < 3; i++)
		client_expect(&w.device, a[i], MIB, 0x4050 + i);
	world_stop(&w);
}

/* Four banks of 1 MiB: the third ends with the limit, and the fourth is no bank any more. */
static void q_405_banks_behind_the_limit_are_not_used(void **state)
{
	const struct vidmm_registry_value banks[] = {{"VramBanks", 4}};
	const struct client_options limited = {.vram_bytes = 4 * MIB,
					       .registry = banks,
					       .registry_count = 1,
					       .memory_limit_bytes = 2 * MIB + 512 * KIB};
	struct softgpu_allocation wish = wish_of(512 * KIB, CPU, VRAM);
	const struct probe_call *fill;
	struct world w;

	world_start(&w, state, &limited);
	wish.hinted_banks = 3;
	use_now(&w, allocate_wish(&w.device, &wish), true);
	fill = probe_find_paging(DXGK_OPERATION_FILL, probe_last_created(), 0);
	assert_non_null(fill);
	assert_int_equal(fill->paging.Fill.Destination.SegmentAddress.QuadPart, 2 * MIB);
	assert_int_equal(segment_bytes(&w, 0), 2 * MIB + 512 * KIB);
	world_stop(&w);
}

static void q_405_a_limit_below_a_page_of_64_kib_is_refused(void **state)
{
	const struct client_options options = {
		.kind = *(uint32_t *)*state, .vram_bytes = MIB, .memory_limit_bytes = 65535};
	struct client client;

	assert_int_equal(client_try_start(&client, &options), STATUS_INVALID_PARAMETER);
	assert_non_null(strstr(client.reason, "Q-405: memory_limit_bytes is 65535"));
	client_stop(&client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(q_405_a_memory_segment_has_the_smaller_size),
		BOTH(q_405_what_does_not_fit_below_the_limit_evicts),
		BOTH(q_405_banks_behind_the_limit_are_not_used),
		BOTH(q_405_a_limit_below_a_page_of_64_kib_is_refused),
	};

	return cmocka_run_group_tests_name("memory_limit", tests, NULL, NULL);
}
