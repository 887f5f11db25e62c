/* SPDX-License-Identifier: MIT */
/*
 * SWZ with real tiles: what the CPU writes through a swizzling range arrives as tiles for the GPU,
 * and the reverse. That holds when ranges are lost, taken over, or not available. The GPU reads
 * raw bytes by copying them into a linear allocation.
 */
#include "world.h"

enum { RANGE = ACQUIRE_APERTURE, ENTIRE = ACQUIRE_APERTURE | LOCK_ENTIRE };

struct shape {
	uint32_t flag, stride, rows; /* rows: as requested; not always whole tiles */
};

static const struct shape shapes[] = {
	{SOFTGPU_ALLOCATION_TILED_X, 512, 8},    {SOFTGPU_ALLOCATION_TILED_Y, 128, 32},
	{SOFTGPU_ALLOCATION_TILED_X, 1536, 61},  {SOFTGPU_ALLOCATION_TILED_Y, 896, 45},
	{SOFTGPU_ALLOCATION_TILED_X, 7680, 200}, {SOFTGPU_ALLOCATION_TILED_Y, 7680, 200},
};
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

/* The layouts from the words of the documentation, not from the code. */
static uint64_t in_tiles(const struct shape *s, uint64_t linear)
{
	uint64_t x = linear % s->stride, y = linear / s->stride;

	if (s->flag == SOFTGPU_ALLOCATION_TILED_X)
		return (y / 8 * (s->stride / 512) + x / 512) * 4096 + y % 8 * 512 + x % 512;
	return (y / 32 * (s->stride / 128) + x / 128) * 4096 + x % 128 / 16 * 512 + y % 32 * 16 +
	       x % 16;
}

struct surface {
	const struct shape *shape;
	uint32_t words; /* of all its rows of tiles */
	D3DKMT_HANDLE handle, copy;
	HANDLE kmd;
};

static struct surface surface_of(struct world *w, const struct shape *shape, uint32_t segment_set)
{
	uint32_t tile_rows = shape->flag == SOFTGPU_ALLOCATION_TILED_X ? 8 : 32;
	uint32_t rows = (shape->rows + tile_rows - 1) / tile_rows * tile_rows;
	struct softgpu_allocation wish =
		wish_of((uint64_t)shape->stride * shape->rows, CPU | shape->flag, segment_set);
	struct surface s = {.shape = shape, .words = rows * shape->stride / 4};

	wish.stride_bytes = shape->stride;
	s.handle = allocate_wish(&w->device, &wish);
	s.kmd = probe_last_created();
	s.copy = allocate_in(&w->device, s.words * 4ull, CPU, 0);
	return s;
}

static void *lock_level(struct world *w, D3DKMT_HANDLE a, uint32_t flags, UINT level)
{
	D3DDDICB_LOCK args = {.hAllocation = a, .PrivateDriverData = level, .Flags.Value = flags};

	assert_int_equal(w->device.cb->pfnLockCb(w->device.handle, &args), S_OK);
	assert_int_equal(args.hAllocation, a);
	return args.pData;
}

static void unlock(struct world *w, D3DKMT_HANDLE a)
{
	assert_int_equal(client_unlock(&w->device, a), S_OK);
}

static void write_words(const struct surface *s, uint32_t *words, bool tiled, uint32_t pattern)
{
	for (uint32_t i = 0; i < s->words; i++)
		words[tiled ? in_tiles(s->shape, i * 4ull) / 4 : i] = pattern + i;
}

static void compare_words(const struct surface *s, const uint32_t *words, bool tiled,
			  uint32_t pattern)
{
	for (uint32_t i = 0; i < s->words; i++) {
		uint32_t found = words[tiled ? in_tiles(s->shape, i * 4ull) / 4 : i];

		if (found != pattern + i)
			fail_msg("shape %d, word %u of the picture: 0x%x, not 0x%x",
				 (int)(s->shape - shapes), i, found, pattern + i);
	}
}

static void draw(struct world *w, const struct surface *s, uint32_t flags, uint32_t pattern)
{
	write_words(s, client_lock(&w->device, s->handle, flags), false, pattern);
	unlock(w, s->handle);
}

static void expect_drawn(struct world *w, const struct surface *s, uint32_t flags, uint32_t pattern)
{
	compare_words(s, client_lock(&w->device, s->handle, flags | READ_ONLY), false, pattern);
	unlock(w, s->handle);
}

/* By the GPU, which does not use ranges. */
static void expect_tiles(struct world *w, const struct surface *s, uint32_t pattern)
{
	client_copy(&w->context, s->handle, s->copy, s->words * 4ull);
	client_submit(&w->context);
	compare_words(s, client_lock(&w->device, s->copy, READ_ONLY), true, pattern);
	unlock(w, s->copy);
}

static void render_tiles(struct world *w, const struct surface *s, uint32_t pattern)
{
	write_words(s, client_lock(&w->device, s->copy, 0), true, pattern);
	unlock(w, s->copy);
	client_copy(&w->context, s->copy, s->handle, s->words * 4ull);
	client_submit(&w->context);
}

static uint32_t converted(const struct surface *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < probe_paging_count(DXGK_OPERATION_TRANSFER, s->kmd); i++) {
		const DXGK_TRANSFERFLAGS flags =
			probe_find_paging(DXGK_OPERATION_TRANSFER, s->kmd, i)
				->paging.Transfer.Flags;

		n += flags.Swizzle || flags.Unswizzle;
	}
	return n;
}

static void start(struct world *w, void **state, uint32_t range_count)
{
	struct vidmm_registry_value value = {"SwizzlingRanges", range_count};
	struct client_options options = {.registry = &value, .registry_count = 1};

	world_start(w, state, &options);
}

static void swz_01_linear_cpu_writes_arrive_as_tiles(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	for (uint32_t i = 0; i < SHAPES; i++) {
		struct surface s = surface_of(&w, &shapes[i], VRAM);

		probe_forget();
		draw(&w, &s, RANGE, 0x1000 * i);
		expect_tiles(&w, &s, 0x1000 * i);
		render_tiles(&w, &s, 0x1000 * i + 77);
		expect_drawn(&w, &s, RANGE, 0x1000 * i + 77);
		/* SWZ-21: one range sufficed, and nothing was paged. */
		assert_int_equal(probe_count(PROBE_ACQUIRE), 1);
		assert_int_equal(probe_count(PROBE_RELEASE), 0);
		assert_int_equal(converted(&s), 0);
	}
	world_stop(&w);
}

static void swz_17_q_35_a_plain_lock_sees_tiles_and_releases_the_range(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	for (uint32_t i = 0; i < SHAPES; i++) {
		struct surface s = surface_of(&w, &shapes[i], VRAM);

		probe_forget();
		draw(&w, &s, RANGE, 0x2000);
		compare_words(&s, client_lock(&w.device, s.handle, READ_ONLY), true, 0x2000);
		unlock(&w, s.handle);
		assert_int_equal(probe_count(PROBE_RELEASE), 1);
		write_words(&s, client_lock(&w.device, s.handle, WRITE_ONLY), true, 0x2100);
		unlock(&w, s.handle);
		expect_drawn(&w, &s, RANGE, 0x2100);
		assert_int_equal(probe_count(PROBE_ACQUIRE), 2);
		assert_int_equal(probe_count(PROBE_RELEASE), 1);
		expect_tiles(&w, &s, 0x2100);
	}
	world_stop(&w);
}

/*
 * SWZ-15: while it is locked through a range, the range is retained, whatever other locks are
 * tried.
 */
static void q_35_a_refused_lock_releases_no_range(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	struct surface s = surface_of(&w, &shapes[3], VRAM);
	uint32_t *words = client_lock(&w.device, s.handle, RANGE);

	probe_forget();
	write_words(&s, words, false, 0x2500);
	expect_lock_refused(&w, s.handle, 0, E_INVALIDARG, "SWZ-15");
	assert_int_equal(probe_count(PROBE_RELEASE), 0);
	compare_words(&s, words, false, 0x2500);
	unlock(&w, s.handle);
	expect_tiles(&w, &s, 0x2500);
	world_stop(&w);
}

static void swz_07_one_surface_may_have_several_ranges(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	struct surface s = surface_of(&w, &shapes[2], VRAM);

	for (UINT level = 0; level < 4; level++) {
		write_words(&s, lock_level(&w, s.handle, RANGE, level), false, 0x3000 + level);
		unlock(&w, s.handle);
		expect_tiles(&w, &s, 0x3000 + level);
		compare_words(&s, lock_level(&w, s.handle, RANGE, level / 2), false,
			      0x3000 + level);
		unlock(&w, s.handle);
	}
	assert_int_equal(probe_count(PROBE_ACQUIRE), 4);
	evict_by_pressure(&w, s.handle);
	assert_int_equal(probe_count(PROBE_RELEASE), 4);
	expect_tiles(&w, &s, 0x3003);
	world_stop(&w);
}

/* SWZ-12: one range too many, and the image is in system memory. */
static void swz_12_one_range_too_many_keeps_every_byte(void **state)
{
	struct world w;

	start(&w, state, 2);
	struct surface s = surface_of(&w, &shapes[3], VRAM);

	for (UINT level = 0; level < 2; level++) {
		write_words(&s, lock_level(&w, s.handle, RANGE, level), false, 0x3500 + level);
		unlock(&w, s.handle);
	}
	compare_words(&s, lock_level(&w, s.handle, ENTIRE, 2), false, 0x3501);
	unlock(&w, s.handle);
	assert_int_equal(client_residency(&w.device, s.handle), EVICTED);
	assert_int_equal(converted(&s), 1);
	expect_tiles(&w, &s, 0x3501);
	expect_drawn(&w, &s, RANGE, 0x3501);
	world_stop(&w);
}

/* SWZ-08: the only range passes from one surface to the next while the GPU uses them all. */
static void swz_08_a_released_range_leaves_tiled_content(void **state)
{
	struct surface s[3];
	struct world w;

	start(&w, state, 1);
	for (uint32_t i = 0; i < 3; i++)
		s[i] = surface_of(&w, &shapes[3 + i], VRAM);
	probe_forget();
	for (uint32_t round = 0; round < 3; round++)
		for (uint32_t i = 0; i < 3; i++) {
			/* What the previous one rendered. */
			if (i || round)
				expect_drawn(&w, &s[i], RANGE,
					     0x4000 + round * 16 + (i ? 16 + i : 0));
			draw(&w, &s[i], RANGE, 0x4010 + round * 16 + i);
			render_tiles(&w, &s[(i + 1) % 3], 0x4010 + round * 16 + (i + 1) % 3);
			expect_tiles(&w, &s[i], 0x4010 + round * 16 + i);
		}
	assert_int_equal(probe_count(PROBE_ACQUIRE), 9);
	assert_int_equal(probe_count(PROBE_RELEASE), 8);
	world_stop(&w);
}

/*
 * SWZ-13, SWZ-22: content evicted with a range is evicted tiled, and a new range shows it at its
 * new placement.
 */
static void swz_13_content_evicted_with_a_range_returns_as_tiles(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	for (uint32_t i = 0; i < SHAPES; i++) {
		struct surface s = surface_of(&w, &shapes[i], VRAM);

		draw(&w, &s, RANGE, 0x5000 + i);
		evict_by_pressure(&w, s.handle);
		compare_words(&s, client_lock(&w.device, s.handle, READ_ONLY), true, 0x5000 + i);
		unlock(&w, s.handle);
		expect_drawn(&w, &s, RANGE, 0x5000 + i);
		expect_tiles(&w, &s, 0x5000 + i);
		assert_int_equal(converted(&s), 0);
	}
	world_stop(&w);
}

/*
 * SWZ-09, SWZ-20: the only range is locked, so the other surface is unswizzled into system memory
 * and swizzled at page-in.
 */
static void swz_09_the_image_is_equal_with_and_without_a_range(void **state)
{
	struct world w;

	start(&w, state, 1);
	struct surface held = surface_of(&w, &shapes[2], VRAM);

	for (uint32_t i = 0; i < SHAPES; i++) {
		struct surface s = surface_of(&w, &shapes[i], VRAM);
		uint32_t *words;

		draw(&w, &s, RANGE, 0x6000 + i);
		words = client_lock(&w.device, held.handle, RANGE);
		write_words(&held, words, false, 0x6100 + i);
		expect_drawn(&w, &s, ENTIRE, 0x6000 + i);
		assert_int_equal(client_residency(&w.device, s.handle), EVICTED);
		draw(&w, &s, ENTIRE, 0x6200 + i);
		expect_tiles(&w, &s, 0x6200 + i);
		compare_words(&held, words, false, 0x6100 + i);
		unlock(&w, held.handle);
		expect_tiles(&w, &held, 0x6100 + i);
		expect_drawn(&w, &s, RANGE, 0x6200 + i);
	}
	world_stop(&w);
}

/*
 * Eviction under a lock (SWZ-19), and page-in. A kernel may have no write protection
 * (userfaultfd), so only on the simulator.
 */
static void swz_19_the_image_is_unchanged_by_eviction_under_the_lock(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	for (uint32_t i = 0; i < SHAPES && w.kind == VIDMM_HOST_SIM; i++) {
		struct surface s = surface_of(&w, &shapes[i], VRAM);
		uint32_t *words = client_lock(&w.device, s.handle, RANGE);

		write_words(&s, words, false, 0x7000 + i);
		evict_by_pressure(&w, s.handle);
		assert_int_equal(converted(&s), 1);
		compare_words(&s, words, false, 0x7000 + i);
		write_words(&s, words, false, 0x7100 + i);
		unlock(&w, s.handle);
		expect_tiles(&w, &s, 0x7100 + i);
		expect_drawn(&w, &s, RANGE, 0x7100 + i);
	}
	world_stop(&w);
}

/*
 * SWZ-24: if video memory is not CPU-visible, a range at an alternate address gives access to it.
 */
static void swz_24_a_range_at_its_own_address_shows_hidden_memory(void **state)
{
	struct vidmm_registry_value hidden = {"VramCpuVisible", 0};
	struct client_options options = {.registry = &hidden, .registry_count = 1};

	for (uint32_t visible = 0; visible < 2; visible++) {
		struct world w;

		hidden.value = visible;
		world_start(&w, state, &options);
		for (uint32_t i = 0; i < SHAPES; i++) {
			struct surface s = surface_of(&w, &shapes[i], VRAM);

			draw(&w, &s, RANGE | USE_ALTERNATE_VA, 0x8000 + i);
			assert_int_equal(client_residency(&w.device, s.handle), IN_VRAM);
			expect_tiles(&w, &s, 0x8000 + i);
			render_tiles(&w, &s, 0x8100 + i);
			expect_drawn(&w, &s, RANGE | USE_ALTERNATE_VA, 0x8100 + i);
			compare_words(&s, client_lock(&w.device, s.handle, READ_ONLY), true,
				      0x8100 + i);
			unlock(&w, s.handle);
			expect_drawn(&w, &s, RANGE | USE_ALTERNATE_VA, 0x8100 + i);
		}
		world_stop(&w);
	}
}

/* REN-01: the GPU reads the old image while the new one is written. */
static void ren_01_a_new_instance_is_drawn_while_the_gpu_reads_the_old_one(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	struct surface s = surface_of(&w, &shapes[3], VRAM), next = s;
	void *data;

	draw(&w, &s, RANGE, 0x9000);
	gate_close(&w);
	client_copy(&w.context, s.handle, s.copy, s.words * 4ull);
	client_submit(&w.context);
	assert_int_equal(client_try_lock(&w.device, &next.handle, RANGE | DISCARD, &data), S_OK);
	assert_int_not_equal(next.handle, s.handle);
	write_words(&next, data, false, 0x9100);
	unlock(&w, next.handle);
	gate_open(&w);
	compare_words(&s, client_lock(&w.device, s.copy, READ_ONLY), true, 0x9000);
	unlock(&w, s.copy);
	expect_tiles(&w, &next, 0x9100);
	expect_drawn(&w, &next, RANGE, 0x9100);
	world_stop(&w);
}

/* Random operations on a few surfaces that share two ranges and too little video memory. */
enum { CROWD = 6, STEPS = 250 };

static void step(struct world *w, struct surface *s, uint32_t action, UINT level, uint32_t *pattern)
{
	uint32_t next = *pattern + 0x10000;
	bool linear = client_residency(&w->device, s->handle) == EVICTED;
	uint32_t *words;

	switch (action) {
	case 0: /* written and read through a range, or without one if none is left */
	case 1:
		words = lock_level(w, s->handle, ENTIRE, level);
		compare_words(s, words, false, *pattern);
		write_words(s, words, false, *pattern = next);
		unlock(w, s->handle);
		break;
	case 2:
		compare_words(s, lock_level(w, s->handle, ENTIRE | READ_ONLY, level), false,
			      *pattern);
		unlock(w, s->handle);
		break;
	case 3:
		expect_tiles(w, s, *pattern);
		break;
	case 4:
		render_tiles(w, s, *pattern = next);
		break;
	case 5: /* raw; unswizzled content has no raw form */
		if (linear)
			break;
		words = client_lock(&w->device, s->handle, 0);
		compare_words(s, words, true, *pattern);
		write_words(s, words, true, *pattern = next);
		unlock(w, s->handle);
		break;
	default:
		client_fill(&w->context, s->handle, s->words * 4ull, 0);
		client_submit(&w->context);
		render_tiles(w, s, *pattern = next);
		break;
	}
}

static void swz_08_swz_13_no_byte_is_lost_in_random_range_operations(void **state)
{
	static const struct shape crowd[CROWD] = {
		{SOFTGPU_ALLOCATION_TILED_X, 512, 256},  {SOFTGPU_ALLOCATION_TILED_Y, 1024, 150},
		{SOFTGPU_ALLOCATION_TILED_X, 1536, 100}, {SOFTGPU_ALLOCATION_TILED_Y, 896, 200},
		{SOFTGPU_ALLOCATION_TILED_X, 2048, 70},  {SOFTGPU_ALLOCATION_TILED_Y, 128, 1000},
	};
	struct vidmm_registry_value two = {"SwizzlingRanges", 2};
	struct client_options options = {.registry = &two,
					 .registry_count = 1,
					 .vram_bytes = 512 * KIB,
					 .aperture_bytes = 16 * MIB};
	uint32_t pattern[CROWD] = {0}, random = 7;
	struct surface s[CROWD];
	struct world w;

	world_start(&w, state, &options);
	for (uint32_t i = 0; i < CROWD; i++) {
		s[i] = surface_of(&w, &crowd[i], VRAM);
		s[i].shape = &crowd[i];
		draw(&w, &s[i], ENTIRE, 0);
	}
	for (uint32_t i = 0; i < STEPS; i++) {
		random = random * 1664525 + 1013904223;
		uint32_t which = (random >> 8) % CROWD;

		step(&w, &s[which], (random >> 16) % 7, (random >> 24) % 3, &pattern[which]);
	}
	for (uint32_t i = 0; i < CROWD; i++)
		expect_tiles(&w, &s[i], pattern[i]);
	/* Ranges were contended. */
	assert_true(client_events(&w.client, VIDMM_EVENT_RANGE) > STEPS / 2);
	assert_true(world_statistics(&w).evictions > STEPS / 8);
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(swz_01_linear_cpu_writes_arrive_as_tiles),
		BOTH(swz_17_q_35_a_plain_lock_sees_tiles_and_releases_the_range),
		BOTH(q_35_a_refused_lock_releases_no_range),
		BOTH(swz_07_one_surface_may_have_several_ranges),
		BOTH(swz_12_one_range_too_many_keeps_every_byte),
		BOTH(swz_08_a_released_range_leaves_tiled_content),
		BOTH(swz_13_content_evicted_with_a_range_returns_as_tiles),
		BOTH(swz_09_the_image_is_equal_with_and_without_a_range),
		BOTH(swz_19_the_image_is_unchanged_by_eviction_under_the_lock),
		BOTH(swz_24_a_range_at_its_own_address_shows_hidden_memory),
		BOTH(swz_08_swz_13_no_byte_is_lost_in_random_range_operations),
		BOTH(ren_01_a_new_instance_is_drawn_while_the_gpu_reads_the_old_one),
	};

	return cmocka_run_group_tests_name("tiles", tests, NULL, NULL);
}
