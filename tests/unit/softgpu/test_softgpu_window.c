/* SPDX-License-Identifier: MIT */
/*
 * Swizzling ranges of tiled surfaces, through the DDI: what the CPU sees in the BAR, what the
 * engines see at the same address, and which ranges are refused.
 */
#include "fixture.h"

#include <stdlib.h>

#define SURFACE MIB       /* the offset of the surface in video memory */
#define PLAIN   (8 * MIB) /* and a linear allocation of the same size */

struct shape {
	uint32_t flag, stride;
	uint64_t bytes; /* the requested size; the last ones are less than whole rows of tiles */
};

static const struct shape shapes[] = {
	{SOFTGPU_ALLOCATION_TILED_X, 512, 4096},
	{SOFTGPU_ALLOCATION_TILED_X, 1536, 5 * 1536 * 8},
	{SOFTGPU_ALLOCATION_TILED_X, 8192, 24 * 8192 * 8},
	{SOFTGPU_ALLOCATION_TILED_Y, 128, 4096},
	{SOFTGPU_ALLOCATION_TILED_Y, 1152, 3 * 1152 * 32},
	{SOFTGPU_ALLOCATION_TILED_Y, 8192, 6 * 8192 * 32},
	{SOFTGPU_ALLOCATION_TILED_X, 3584, 3584 * 13 + 77},
	{SOFTGPU_ALLOCATION_TILED_Y, 896, 896 * 45 + 1},
};
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

/* The layouts, written from the documentation. */
static uint64_t tiled_offset(const struct shape *s, uint64_t linear)
{
	uint64_t x = linear % s->stride, y = linear / s->stride;

	if (s->flag == SOFTGPU_ALLOCATION_TILED_X)
		return (y / 8 * (s->stride / 512) + x / 512) * 4096 + y % 8 * 512 + x % 512;
	return (y / 32 * (s->stride / 128) + x / 128) * 4096 + x % 128 / 16 * 512 + y % 32 * 16 +
	       x % 16;
}

static char content(uint64_t at, unsigned seed)
{
	return (char)((at * 2654435761u + seed) >> 9 ^ at);
}

struct scene {
	struct gpu *gpu;
	const struct shape *shape;
	uint64_t bytes; /* whole rows of tiles */
	struct gpu_allocation *surface, *plain;
	DXGK_ALLOCATIONLIST list[2]; /* the surface, the plain one */
	char *seen, *copy;           /* where the CPU sees them */
};

static struct gpu_allocation *allocate(struct gpu *gpu, const struct shape *s)
{
	struct softgpu_allocation spec = gpu_spec(s->bytes);

	spec.flags |= s->flag;
	spec.stride_bytes = s->stride;
	return gpu_allocate(gpu, &spec);
}

static struct scene scene_of(struct gpu *gpu, const struct shape *s)
{
	struct scene scene = {.gpu = gpu, .shape = s, .surface = allocate(gpu, s)};
	struct softgpu_allocation spec;

	scene.bytes = scene.surface->info.Size;
	spec = gpu_spec(scene.bytes);
	scene.plain = gpu_allocate(gpu, &spec);
	scene.list[0] = gpu_entry(scene.surface, VRAM, SURFACE, 1);
	scene.list[1] = gpu_entry(scene.plain, VRAM, PLAIN, 1);
	scene.seen = gpu->vram.base + SURFACE;
	scene.copy = gpu->vram.base + PLAIN;
	return scene;
}

static DXGKARG_ACQUIRESWIZZLINGRANGE range_of(const struct scene *scene, uint32_t id, uint32_t data)
{
	DXGKARG_ACQUIRESWIZZLINGRANGE args = {.hAllocation = scene->surface->info.hAllocation,
					      .PrivateDriverData = data,
					      .RangeId = id,
					      .SegmentId = VRAM,
					      .RangeSize = (SIZE_T)scene->bytes};

	args.CPUTranslatedAddress.QuadPart = (LONGLONG)(scene->gpu->vram_physical + SURFACE);
	return args;
}

static void acquire(const struct scene *scene, uint32_t id, uint32_t data)
{
	DXGKARG_ACQUIRESWIZZLINGRANGE args = range_of(scene, id, data);
	const DXGKARG_ACQUIRESWIZZLINGRANGE asked = args;

	assert_int_equal(scene->gpu->ddi.DxgkDdiAcquireSwizzlingRange(scene->gpu->adapter, &args),
			 STATUS_SUCCESS);
	assert_memory_equal(&args, &asked, sizeof(args)); /* SWZ-03 */
}

static void release(const struct scene *scene, uint32_t id, uint32_t data)
{
	const DXGKARG_RELEASESWIZZLINGRANGE args = {.hAllocation = scene->surface->info.hAllocation,
						    .PrivateDriverData = data,
						    .RangeId = id};

	assert_int_equal(scene->gpu->ddi.DxgkDdiReleaseSwizzlingRange(scene->gpu->adapter, &args),
			 STATUS_SUCCESS);
}

/* The linear form holds content(at, seed), seen by the CPU linear or tiled. */
static void put(const struct scene *scene, char *memory, bool tiled, unsigned seed)
{
	for (uint64_t at = 0; at < scene->bytes; at++)
		memory[tiled ? tiled_offset(scene->shape, at) : at] = content(at, seed);
}

static void expect(const struct scene *scene, const char *memory, bool tiled, unsigned seed)
{
	for (uint64_t at = 0; at < scene->bytes; at++)
		if (memory[tiled ? tiled_offset(scene->shape, at) : at] != content(at, seed))
			fail_msg("shape %d: byte %u of the linear form is wrong",
				 (int)(scene->shape - shapes), (unsigned)at);
}

/* The GPU copies `bytes` from one to the other; 0 is the surface. */
static void copy(struct scene *scene, uint32_t from, uint64_t from_offset, uint32_t to,
		 uint64_t to_offset, uint64_t bytes)
{
	struct softgpu_copy command = {
		.command = {SOFTGPU_COPY, 0, sizeof(command)},
		.source = {.allocation = from, .offset = from_offset},
		.destination = {.allocation = to, .offset = to_offset},
		.length = bytes,
	};

	gpu_assert_completed(gpu_run(scene->gpu, 0, &command, sizeof(command), scene->list, 2));
}

/* ---- the two views ---- */

static void swz_01_a_range_shows_linear_bytes_and_memory_holds_tiles(void **state)
{
	for (uint32_t i = 0; i < SHAPES; i++) {
		struct scene scene = scene_of(*state, &shapes[i]);

		memset(scene.seen - PAGE, 0x5A, PAGE);
		memset(scene.seen + scene.bytes, 0x5A, PAGE);
		put(&scene, scene.seen, true, i);
		acquire(&scene, 3, 0);
		expect(&scene, scene.seen, false, i);
		put(&scene, scene.seen, false, i + 100);
		release(&scene, 3, 0);
		expect(&scene, scene.seen, true, i + 100);
		for (uint32_t at = 0; at < PAGE; at++)
			if ((scene.seen - PAGE)[at] != 0x5A || scene.seen[scene.bytes + at] != 0x5A)
				fail_msg("shape %u: a neighbour's byte", i);
	}
}

static void swz_21_the_gpu_sees_tiles_while_the_cpu_sees_linear_bytes(void **state)
{
	for (uint32_t i = 0; i < SHAPES; i++) {
		struct scene scene = scene_of(*state, &shapes[i]);

		acquire(&scene, 0, 0);
		put(&scene, scene.seen, false, i);
		memset(scene.copy, 0, scene.bytes);
		copy(&scene, 0, 0, 1, 0, scene.bytes);
		expect(&scene, scene.copy, true, i);
		put(&scene, scene.copy, true, i + 7);
		copy(&scene, 1, 0, 0, 0, scene.bytes);
		expect(&scene, scene.seen, false, i + 7);
		release(&scene, 0, 0);
		expect(&scene, scene.seen, true, i + 7);
	}
}

/* Parts with arbitrary start and end: within a tile, across tiles, across rows of tiles. */
static void swz_21_partial_copies_convert_correctly(void **state)
{
	uint32_t random = 1;

	for (uint32_t i = 0; i < SHAPES; i++) {
		struct scene scene = scene_of(*state, &shapes[i]);
		/* expected content of the surface as the GPU sees it */
		char *raw = malloc(scene.bytes);

		assert_non_null(raw);
		acquire(&scene, 0, 0);
		put(&scene, scene.seen, false, i);
		put(&scene, raw, true, i);
		for (uint32_t round = 0; round < 40; round++) {
			uint64_t from, to, bytes;
			bool in;

			random = random * 1664525 + 1013904223;
			from = random % scene.bytes;
			random = random * 1664525 + 1013904223;
			to = random % scene.bytes;
			random = random * 1664525 + 1013904223;
			bytes = scene.bytes - (from > to ? from : to);
			bytes = round % 4 ? random % bytes + 1 : bytes;
			in = random >> 20 & 1;
			for (uint64_t at = 0; at < scene.bytes; at++)
				scene.copy[at] = content(at, random);
			copy(&scene, in, from, !in, to, bytes);
			if (in)
				memcpy(raw + to, scene.copy + from, bytes);
			else
				assert_memory_equal(scene.copy + to, raw + from, bytes);
		}
		release(&scene, 0, 0);
		assert_memory_equal(scene.seen, raw, scene.bytes);
		free(raw);
	}
}

static void fills_and_word_writes_use_tiled_addresses(void **state)
{
	struct scene scene = scene_of(*state, &shapes[7]);
	const uint64_t word = 896 * 32 + 4096 + 1032, first = 4099, bytes = scene.bytes - 9000;
	struct softgpu_fill fill = {.command = {SOFTGPU_FILL, 0, sizeof(fill)},
				    .operand = {.allocation = 0, .offset = first},
				    .length = bytes,
				    .pattern = 0x44332211};
	struct softgpu_sync signal = {.command = {SOFTGPU_SIGNAL, 0, sizeof(signal)},
				      .operand = {.allocation = 0, .offset = word},
				      .value = 0x8877665544332211};
	struct softgpu_sync wait = signal;

	wait.command.opcode = SOFTGPU_WAIT;
	acquire(&scene, 0, 0);
	memset(scene.seen, 9, scene.bytes);
	gpu_assert_completed(gpu_run(scene.gpu, 0, &fill, sizeof(fill), scene.list, 2));
	gpu_assert_completed(gpu_run(scene.gpu, 0, &signal, sizeof(signal), scene.list, 2));
	gpu_assert_completed(gpu_run(scene.gpu, 1, &wait, sizeof(wait), scene.list, 2));
	for (uint64_t at = 0; at < scene.bytes; at++) {
		uint64_t tiled = tiled_offset(scene.shape, at);
		unsigned expected = tiled < first || tiled >= first + bytes
					    ? 9
					    : (unsigned)((tiled - first) & 3) * 0x11 + 0x11;

		if (tiled >= word && tiled < word + 8)
			expected = (unsigned)(tiled - word) * 0x11 + 0x11;
		if ((unsigned char)scene.seen[at] != expected)
			fail_msg("byte %u is 0x%x", (unsigned)at, (unsigned char)scene.seen[at]);
	}
	release(&scene, 0, 0);
}

/* ---- paging ---- */

static void page(struct gpu *gpu, DXGKARG_BUILDPAGINGBUFFER build)
{
	assert_int_equal(gpu_build(gpu, &build), STATUS_SUCCESS);
	gpu_assert_completed(gpu_page(gpu));
}

static DXGKARG_BUILDPAGINGBUFFER transfer(const struct scene *scene, PMDL mdl, bool in,
					  uint64_t offset, uint64_t bytes)
{
	DXGKARG_BUILDPAGINGBUFFER build = gpu_transfer(scene->surface->info.hAllocation, bytes);

	gpu_side_mdl(in ? &build.Transfer.Source : &build.Transfer.Destination, mdl);
	gpu_side_segment(in ? &build.Transfer.Destination : &build.Transfer.Source, VRAM, SURFACE);
	build.Transfer.TransferOffset = (UINT)offset;
	build.Transfer.MdlOffset = (UINT)(offset / PAGE);
	return build;
}

/* SWZ-19: content evicted while a range is open is unswizzled from what the GPU sees. */
static void swz_19_paging_transfers_unswizzle_the_tiles(void **state)
{
	for (uint32_t i = 0; i < SHAPES; i++) {
		struct scene scene = scene_of(*state, &shapes[i]);
		PMDL mdl = gpu_mdl(scene.gpu, 0, scene.bytes);
		DXGKARG_BUILDPAGINGBUFFER build;
		char *pages = scene.gpu->system.base;
		uint64_t half = scene.bytes / 2 / PAGE * PAGE;

		acquire(&scene, 0, 0);
		put(&scene, scene.seen, false, i);
		memset(pages, 0, scene.bytes);
		page(scene.gpu, transfer(&scene, mdl, false, 0, scene.bytes));
		expect(&scene, pages, true, i);
		build = transfer(&scene, mdl, false, half, scene.bytes - half);
		build.Transfer.Flags.Unswizzle = 1;
		memset(pages, 0, scene.bytes);
		page(scene.gpu, build);
		if (half) {
			build = transfer(&scene, mdl, false, 0, half);
			build.Transfer.Flags.Unswizzle = 1;
			page(scene.gpu, build);
		}
		expect(&scene, pages, false, i);
		put(&scene, pages, false, i + 50);
		build = transfer(&scene, mdl, true, 0, scene.bytes);
		build.Transfer.Flags.Swizzle = 1;
		page(scene.gpu, build);
		expect(&scene, scene.seen, false, i + 50);
		release(&scene, 0, 0);
		expect(&scene, scene.seen, true, i + 50);
		gpu_free_mdl(scene.gpu, mdl);
	}
}

/* ---- several ranges, and what is refused ---- */

static void swz_07_two_ranges_of_one_surface_show_the_same_bytes(void **state)
{
	struct scene scene = scene_of(*state, &shapes[4]);

	put(&scene, scene.seen, true, 1);
	acquire(&scene, 0, 0);
	acquire(&scene, 1, 1);
	acquire(&scene, 2, 2);
	expect(&scene, scene.seen, false, 1);
	release(&scene, 0, 0);
	release(&scene, 2, 2);
	expect(&scene, scene.seen, false, 1);
	release(&scene, 1, 1);
	expect(&scene, scene.seen, true, 1);
}

/*
 * Adjacent surfaces, whose ranges are acquired and released in another order than their addresses.
 */
static void ranges_of_adjacent_surfaces_do_not_interfere(void **state)
{
	enum { COUNT = 5 };
	static const uint32_t open[COUNT] = {2, 0, 4, 1, 3}, shut[COUNT] = {1, 4, 2, 0, 3};
	struct gpu *gpu = *state;
	struct scene scene = scene_of(gpu, &shapes[1]);
	HANDLE handle[COUNT];
	DXGKARG_ACQUIRESWIZZLINGRANGE args = range_of(&scene, 0, 0);

	for (uint32_t i = 0; i < COUNT; i++) {
		handle[i] = allocate(gpu, &shapes[1])->info.hAllocation;
		put(&scene, scene.seen + i * scene.bytes, true, i);
	}
	for (uint32_t i = 0; i < COUNT; i++) {
		args.hAllocation = handle[open[i]];
		args.RangeId = open[i];
		args.CPUTranslatedAddress.QuadPart =
			(LONGLONG)(gpu->vram_physical + SURFACE + open[i] * scene.bytes);
		assert_int_equal(gpu->ddi.DxgkDdiAcquireSwizzlingRange(gpu->adapter, &args),
				 STATUS_SUCCESS);
	}
	for (uint32_t i = 0; i < COUNT; i++) {
		DXGKARG_RELEASESWIZZLINGRANGE release_args = {.hAllocation = handle[shut[i]],
							      .RangeId = shut[i]};

		for (uint32_t k = i; k < COUNT; k++)
			expect(&scene, scene.seen + shut[k] * scene.bytes, false, shut[k]);
		scene.list[0] = gpu_entry(scene.surface, VRAM, SURFACE + shut[i] * scene.bytes, 1);
		copy(&scene, 0, 0, 1, 0, scene.bytes);
		expect(&scene, scene.copy, true, shut[i]);
		assert_int_equal(gpu->ddi.DxgkDdiReleaseSwizzlingRange(gpu->adapter, &release_args),
				 STATUS_SUCCESS);
		expect(&scene, scene.seen + shut[i] * scene.bytes, true, shut[i]);
	}
}

static void expect_refused(const struct scene *scene, DXGKARG_ACQUIRESWIZZLINGRANGE args,
			   NTSTATUS status)
{
	const DXGKARG_ACQUIRESWIZZLINGRANGE asked = args;

	assert_int_equal(scene->gpu->ddi.DxgkDdiAcquireSwizzlingRange(scene->gpu->adapter, &args),
			 status);
	assert_memory_equal(&args, &asked, sizeof(args));
	expect(scene, scene->seen, true, 5);
}

static void swz_02_a_range_of_a_partial_surface_is_refused(void **state)
{
	struct scene scene = scene_of(*state, &shapes[4]);
	const DXGKARG_ACQUIRESWIZZLINGRANGE good = range_of(&scene, 0, 0);
	DXGKARG_ACQUIRESWIZZLINGRANGE bad = good;

	put(&scene, scene.seen, true, 5);
	bad.RangeSize += PAGE;
	expect_refused(&scene, bad, STATUS_INVALID_PARAMETER);
	bad.RangeSize = good.RangeSize - 1;
	expect_refused(&scene, bad, STATUS_INVALID_PARAMETER);
	bad = good;
	bad.CPUTranslatedAddress.QuadPart += 64; /* no tile begins there */
	expect_refused(&scene, bad, STATUS_INVALID_PARAMETER);
	bad.CPUTranslatedAddress.QuadPart = (LONGLONG)(scene.gpu->vram_physical - PAGE);
	expect_refused(&scene, bad, STATUS_INVALID_PARAMETER);
	bad.CPUTranslatedAddress.QuadPart =
		(LONGLONG)(scene.gpu->vram_physical + scene.gpu->vram_bytes - PAGE);
	expect_refused(&scene, bad, STATUS_INVALID_PARAMETER);
	bad = good;
	bad.RangeId = 64;
	expect_refused(&scene, bad, STATUS_INVALID_PARAMETER);
	bad = good;
	bad.hAllocation = NULL;
	expect_refused(&scene, bad, STATUS_INVALID_PARAMETER);
	bad = good;
	bad.SegmentId = APERTURE;
	expect_refused(&scene, bad, STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNSUPPORTED);
	acquire(&scene, 0, 0);
	release(&scene, 0, 0);
}

/* SWZ-13: memory of a surface with a range cannot be in another range. */
static void swz_13_ranges_that_overlap_an_open_surface_are_refused(void **state)
{
	struct scene scene = scene_of(*state, &shapes[4]);
	struct gpu *gpu = scene.gpu;
	DXGKARG_ACQUIRESWIZZLINGRANGE bad = range_of(&scene, 1, 0);
	PMDL mdl = gpu_mdl(gpu, 0, scene.bytes);
	struct scene other = scene;

	acquire(&scene, 0, 0);
	bad.CPUTranslatedAddress.QuadPart += PAGE;
	assert_int_equal(gpu->ddi.DxgkDdiAcquireSwizzlingRange(gpu->adapter, &bad),
			 STATUS_INVALID_PARAMETER);
	bad.CPUTranslatedAddress.QuadPart -= 2 * PAGE;
	assert_int_equal(gpu->ddi.DxgkDdiAcquireSwizzlingRange(gpu->adapter, &bad),
			 STATUS_INVALID_PARAMETER);
	bad.CPUTranslatedAddress.QuadPart += PAGE;
	bad.hAllocation = allocate(gpu, scene.shape)->info.hAllocation;
	assert_int_equal(gpu->ddi.DxgkDdiAcquireSwizzlingRange(gpu->adapter, &bad),
			 STATUS_INVALID_PARAMETER);
	/* No transfer may write there either. */
	other.surface = scene.plain;
	DXGKARG_BUILDPAGINGBUFFER in = transfer(&other, mdl, true, 0, PAGE);
	assert_int_equal(gpu_build(gpu, &in), STATUS_INVALID_PARAMETER);
	DXGKARG_BUILDPAGINGBUFFER fill = {.Operation = DXGK_OPERATION_FILL};
	fill.Fill.hAllocation = scene.plain->info.hAllocation;
	fill.Fill.FillSize = PAGE;
	fill.Fill.Destination.SegmentId = VRAM;
	fill.Fill.Destination.SegmentAddress.QuadPart = (LONGLONG)(SURFACE + scene.bytes - PAGE);
	assert_int_equal(gpu_build(gpu, &fill), STATUS_INVALID_PARAMETER);
	release(&scene, 0, 0);
	page(gpu, in);
	page(gpu, fill);
	gpu_free_mdl(gpu, mdl);
}

/* ---- while engines work ---- */

/*
 * An engine that hangs or waits does not block a range, and finds its awaited word at its current
 * address.
 */
static void a_waiting_engine_does_not_block_range_acquisition(void **state)
{
	struct scene scene = scene_of(*state, &shapes[4]);
	struct gpu *gpu = scene.gpu;
	struct softgpu_sync wait = {.command = {SOFTGPU_WAIT, 0, sizeof(wait)},
				    .operand = {.allocation = 0, .offset = 5 * PAGE + 520},
				    .value = 1};
	struct softgpu_sync signal = wait;
	struct gpu_dma dma;

	signal.command.opcode = SOFTGPU_SIGNAL;
	memset(scene.seen, 0, scene.bytes);
	gpu_dma_init(gpu, &dma, scene.list, 2);
	assert_int_equal(gpu_render_pass(gpu, &dma, &wait, sizeof(wait), NULL, 0), STATUS_SUCCESS);
	gpu_patch(gpu, &dma, scene.list, 0, dma.patch_count);
	gpu_submit(gpu, &dma, 0, 0, dma.length);
	acquire(&scene, 0, 0);
	gpu_assert_completed(gpu_run(gpu, 1, &signal, sizeof(signal), scene.list, 2));
	gpu_wait_interrupts(gpu, 2);
	release(&scene, 0, 0);
	gpu_dma_finish(&dma);
}

enum { PACKETS = 24, COMMANDS = 60 };

/*
 * Checks every tile of its surface and writes the next version. A mismatch is a fault, because
 * there is no REPORT.
 */
static uint32_t stamp(struct gpu *gpu, struct gpu_dma *dma, uint32_t node, uint64_t bytes,
		      uint32_t version)
{
	struct softgpu_stamps commands[COMMANDS];

	for (uint32_t i = 0; i < COMMANDS; i++)
		commands[i] = (struct softgpu_stamps){
			.command = {SOFTGPU_STAMP, SOFTGPU_FLAG_VERIFY | SOFTGPU_FLAG_WRITE,
				    sizeof(commands[0])},
			.block_count = (uint32_t)(bytes / PAGE),
			.block_size = PAGE,
			.buffer = node + 1,
			.expected_version = version + i,
			.new_version = version + i + 1,
		};
	assert_int_equal(gpu_render_pass(gpu, dma, commands, sizeof(commands), NULL, 0),
			 STATUS_SUCCESS);
	gpu_patch(gpu, dma, dma->list, 0, dma->patch_count);
	gpu_submit(gpu, dma, node, 0, dma->length);
	return version + COMMANDS;
}

/* Each engine works on its own surface while ranges of both are acquired and released. */
static void swz_28_acquiring_and_releasing_ranges_does_not_affect_the_gpu(void **state)
{
	struct gpu *gpu = *state;
	struct scene scene[2];
	struct gpu_dma *dma = calloc(PACKETS, sizeof(*dma));
	uint32_t version[2] = {0, 0};

	assert_non_null(dma);
	for (uint32_t i = 0; i < 2; i++) {
		scene[i] = scene_of(gpu, &shapes[4]);
		memset(scene[i].seen, 0, 2 * scene[i].bytes);
	}
	scene[1].list[0] = gpu_entry(scene[1].surface, VRAM, SURFACE + scene[0].bytes, 1);
	for (uint32_t i = 0; i < PACKETS; i++) {
		gpu_dma_init(gpu, &dma[i], scene[i % 2].list, 2);
		version[i % 2] = stamp(gpu, &dma[i], i % 2, scene[0].bytes, version[i % 2]);
	}
	for (uint32_t i = 0; atomic_load(&gpu->interrupt_count) < PACKETS; i++) {
		struct scene *one = &scene[i % 2];
		DXGKARG_ACQUIRESWIZZLINGRANGE args = range_of(one, 0, 0);

		args.CPUTranslatedAddress.QuadPart += (LONGLONG)(i % 2 * one->bytes);
		assert_int_equal(gpu->ddi.DxgkDdiAcquireSwizzlingRange(gpu->adapter, &args),
				 STATUS_SUCCESS);
		release(one, 0, 0);
	}
	gpu_wait_interrupts(gpu, PACKETS);
	for (uint32_t i = 0; i < PACKETS; i++) {
		gpu_assert_completed(&gpu->interrupts[i]);
		gpu_dma_finish(&dma[i]);
	}
	free(dma);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, gpu_setup, gpu_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(swz_01_a_range_shows_linear_bytes_and_memory_holds_tiles),
		TEST(swz_21_the_gpu_sees_tiles_while_the_cpu_sees_linear_bytes),
		TEST(swz_21_partial_copies_convert_correctly),
		TEST(fills_and_word_writes_use_tiled_addresses),
		TEST(swz_19_paging_transfers_unswizzle_the_tiles),
		TEST(swz_07_two_ranges_of_one_surface_show_the_same_bytes),
		TEST(ranges_of_adjacent_surfaces_do_not_interfere),
		TEST(swz_02_a_range_of_a_partial_surface_is_refused),
		TEST(swz_13_ranges_that_overlap_an_open_surface_are_refused),
		TEST(a_waiting_engine_does_not_block_range_acquisition),
		cmocka_unit_test_setup_teardown(
			swz_28_acquiring_and_releasing_ranges_does_not_affect_the_gpu,
			gpu_setup_threads, gpu_teardown),
	};

	return cmocka_run_group_tests_name("softgpu_window", tests, NULL, NULL);
}
