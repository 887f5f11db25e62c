/* SPDX-License-Identifier: MIT */
/*
 * SEG-05: the reported amounts of graphics memory, and the commit limit of all apertures together.
 */
#include "sched_world.h"

#include <string.h>

enum { SECOND_APERTURE = 0x4, IN_MEMORY = 1, IN_APERTURE = 2, NOWHERE = 3 };

static uint64_t limit_bytes;

static struct vidmm_adapter_statistics figures_of(const struct client *client)
{
	struct vidmm_adapter_statistics s = {.struct_size = sizeof(s)};

	vidmm_adapter_statistics(client->adapter, &s);
	return s;
}

/* Segment 3: a further aperture like the first. */
static void two_apertures(struct scripted_miniport *m)
{
	m->settings.segment_count = 3;
	m->settings.segment[2] = m->settings.segment[1];
	m->settings.segment[2].base = (uint64_t)2 << 30;
	m->settings.caps.ApertureSegmentCommitLimit = (SIZE_T)limit_bytes;
	m->settings.complete_at_once = true;
}

static void with_system_segment(struct scripted_miniport *m)
{
	DXGK_SEGMENTFLAGS flags = {.PopulatedFromSystemMemory = 1};

	two_apertures(m);
	m->settings.segment_count = 4;
	m->settings.segment[3] = (struct scripted_segment){.flags = flags.Value,
							   .base = (uint64_t)3 << 30,
							   .size_bytes = 60 * MIB,
							   .commit_limit_bytes = 60 * MIB};
}

static void expect_totals(void **state, world_setup *setup, uint64_t system_bytes, uint64_t system,
			  uint64_t shared)
{
	const struct client_options options = {.system_memory_bytes = system_bytes};
	struct world w;

	world_start_with(&w, state, setup, &options);
	struct vidmm_adapter_statistics s = figures_of(&w.client);
	assert_true(s.dedicated_video_bytes == 16 * MIB);
	assert_true(s.dedicated_system_bytes == system);
	assert_true(s.shared_system_bytes == shared);
	world_stop_adapter(&w);
}

static void seg_05_the_totals_are_sums_and_minima(void **state)
{
	limit_bytes = 4 * MIB;
	expect_totals(state, two_apertures, 0, 0, 4 * MIB);
	limit_bytes = (uint64_t)1 << 40;
	expect_totals(state, two_apertures, 0, 0, 32 * MIB); /* what the apertures can map */
	limit_bytes = 0;                                     /* not lowered */
	expect_totals(state, two_apertures, 0, 0, 32 * MIB);
	/* Half of the system memory, at least 64 MiB, less what is dedicated: 4 MiB and 20 MiB. */
	expect_totals(state, with_system_segment, 40 * MIB, 60 * MIB, 4 * MIB);
	expect_totals(state, with_system_segment, 160 * MIB, 60 * MIB, 20 * MIB);
	expect_totals(state, with_system_segment, 0, 60 * MIB, 32 * MIB);
}

/* Asserts that the start fails with that text in a finding. */
static void expect_no_start(void **state, world_setup *setup, const char *text)
{
	struct client client = {0};
	const struct client_options options = {.kind = *(uint32_t *)*state,
					       .system_memory_bytes = 40 * MIB,
					       .driver_entry = scripted_driver_entry};
	struct scripted_miniport *m = scripted_create();

	setup(m);
	assert_int_not_equal(client_try_start(&client, &options), 0);
	assert_true(client_found(&client, "SEG-05") && client.findings == 1);
	assert_non_null(strstr(client.finding[0], text));
	client_stop(&client);
	scripted_destroy(m);
}

static void too_much_dedicated(struct scripted_miniport *m)
{
	with_system_segment(m);
	m->settings.segment[3].size_bytes = m->settings.segment[3].commit_limit_bytes = 65 * MIB;
}

static void seg_05_a_limit_that_permits_no_mapping_fails_the_start(void **state)
{
	limit_bytes = PAGE_BYTES - 1;
	expect_no_start(state, two_apertures, "ApertureSegmentCommitLimit is 4095");
	limit_bytes = 0;
	expect_no_start(state, too_much_dedicated, "memory segments take 68157440 bytes");
}

static void expect_mapped_at_most(struct world *w, uint64_t bytes)
{
	struct vidmm_adapter_statistics s = figures_of(&w->client);

	assert_true(s.mapped_bytes <= bytes);
	assert_true(s.segment[1].resident_bytes + s.segment[2].resident_bytes <= s.mapped_bytes);
}

static void seg_05_mappings_of_all_apertures_stay_below_the_global_limit(void **state)
{
	struct world w;
	D3DKMT_HANDLE a[4];

	limit_bytes = 4 * MIB;
	world_start(&w, state, two_apertures);
	for (uint32_t i = 0; i < 4; i++) {
		a[i] = world_allocate(&w, (i + 1) * MIB, i % 2 ? SECOND_APERTURE : WORLD_APERTURE);
		client_write(&w.device, a[i], (i + 1) * MIB, i << 24);
	}
	for (uint32_t round = 0; round < 12; round++) {
		uint32_t i = round * 7 % 4;

		world_submit_use(&w.context, a[i]);
		world_run(&w);
		assert_int_equal(client_residency(&w.device, a[i]), IN_APERTURE);
		expect_mapped_at_most(&w, limit_bytes);
	}
	/* The first and second allocation fit together, in two apertures. */
	world_submit_use(&w.context, a[0]);
	world_submit_use(&w.context, a[1]);
	world_run(&w);
	assert_int_equal(client_residency(&w.device, a[0]), IN_APERTURE);
	assert_int_equal(client_residency(&w.device, a[1]), IN_APERTURE);
	for (uint32_t i = 0; i < 4; i++)
		client_expect(&w.device, a[i], (i + 1) * MIB, i << 24);
	world_stop(&w);
}

static void use_both(struct world *w, D3DKMT_HANDLE a, D3DKMT_HANDLE b)
{
	D3DDDICB_RENDER args;

	world_use(&w->context, a);
	world_use(&w->context, b);
	args = world_render_args(&w->context);
	assert_int_equal(world_render(&w->context, &args), S_OK);
	world_run(w);
}

static void seg_05_allocations_beyond_the_limit_are_placed_in_memory_segments(void **state)
{
	struct world w;
	struct scripted_allocation spec = {.size_bytes = 3 * MIB,
					   .flags = WORLD_CPU_VISIBLE,
					   .read_set = WORLD_MEMORY | SECOND_APERTURE,
					   .write_set = WORLD_MEMORY | SECOND_APERTURE,
					   .preferred = 3};

	limit_bytes = 4 * MIB;
	world_start(&w, state, two_apertures);
	D3DKMT_HANDLE first = world_allocate(&w, 3 * MIB, WORLD_APERTURE);
	D3DKMT_HANDLE second = world_allocate_as(&w.device, &spec);

	use_both(&w, first, second);
	assert_int_equal(client_residency(&w.device, first), IN_APERTURE);
	assert_int_equal(client_residency(&w.device, second), IN_MEMORY);
	expect_mapped_at_most(&w, limit_bytes);
	/* Alone it is placed in its preferred segment. */
	D3DKMT_HANDLE third = world_allocate_as(&w.device, &spec);
	world_submit_use(&w.context, third);
	world_run(&w);
	assert_int_equal(client_residency(&w.device, third), IN_APERTURE);
	assert_int_equal(client_residency(&w.device, first), NOWHERE);
	world_stop(&w);
}

static void two_apertures_by_hand(struct scripted_miniport *m)
{
	two_apertures(m);
	m->settings.complete_at_once = false;
}

static void seg_05_at_the_limit_busy_mappings_of_another_aperture_are_waited_for(void **state)
{
	struct world w;

	limit_bytes = 4 * MIB;
	world_start(&w, state, two_apertures_by_hand);
	D3DKMT_HANDLE first = world_allocate(&w, 3 * MIB, WORLD_APERTURE);
	D3DKMT_HANDLE second = world_allocate(&w, 3 * MIB, SECOND_APERTURE);

	world_submit_use(&w.context, first);
	world_submit_use(&w.context, second);
	for (uint32_t i = 0; i < 50; i++)
		vidmm_settle(w.client.host);
	assert_int_equal(client_residency(&w.device, first), IN_APERTURE);
	assert_int_equal(client_residency(&w.device, second), NOWHERE);
	world_run(&w);
	assert_int_equal(client_residency(&w.device, first), NOWHERE);
	assert_int_equal(client_residency(&w.device, second), IN_APERTURE);
	expect_mapped_at_most(&w, limit_bytes);
	world_stop(&w);
}

/* The zone of pinned allocations is free, but mappings elsewhere have reached the limit. */
static void seg_05_mappings_are_evicted_at_the_limit_for_an_overlay(void **state)
{
	struct world w;
	struct scripted_allocation overlay = {.size_bytes = 512 * KIB,
					      .flags = WORLD_CPU_VISIBLE | 0x100,
					      .read_set = WORLD_APERTURE,
					      .write_set = WORLD_APERTURE};

	limit_bytes = 4 * MIB;
	world_start(&w, state, two_apertures);
	D3DKMT_HANDLE low = world_allocate(&w, 3 * MIB, WORLD_APERTURE);
	D3DKMT_HANDLE other = world_allocate(&w, 960 * KIB, SECOND_APERTURE);

	client_write(&w.device, low, 3 * MIB, 0x0500);
	use_both(&w, low, other);
	assert_int_equal(client_residency(&w.device, low), IN_APERTURE);
	assert_int_equal(client_residency(&w.device, other), IN_APERTURE);
	D3DKMT_HANDLE pinned = world_allocate_as(&w.device, &overlay);
	assert_int_equal(client_residency(&w.device, pinned), IN_APERTURE);
	assert_int_equal(client_residency(&w.device, low), NOWHERE);
	expect_mapped_at_most(&w, limit_bytes);
	client_expect(&w.device, low, 3 * MIB, 0x0500);
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(seg_05_the_totals_are_sums_and_minima),
		ON_BOTH(seg_05_a_limit_that_permits_no_mapping_fails_the_start),
		ON_BOTH(seg_05_mappings_of_all_apertures_stay_below_the_global_limit),
		ON_BOTH(seg_05_at_the_limit_busy_mappings_of_another_aperture_are_waited_for),
		ON_BOTH(seg_05_mappings_are_evicted_at_the_limit_for_an_overlay),
		ON_BOTH(seg_05_allocations_beyond_the_limit_are_placed_in_memory_segments),
	};

	return cmocka_run_group_tests_name("commit limit", tests, NULL, NULL);
}
