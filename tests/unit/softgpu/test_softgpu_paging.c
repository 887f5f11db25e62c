/* SPDX-License-Identifier: MIT */
/* DxgkDdiBuildPagingBuffer and the effects of its commands when the engine executes them. */
#include "fixture.h"

#include <stdlib.h>

#include "../../../drivers/softgpu/tile.h"

static void scribble(char *bytes, uint64_t length, unsigned seed)
{
	uint64_t i;

	for (i = 0; i < length; i++)
		bytes[i] = (char)(i * 37 + i / 253 + seed);
}

static NTSTATUS build_and_drop(struct gpu *gpu, DXGKARG_BUILDPAGINGBUFFER build)
{
	NTSTATUS status = gpu_build(gpu, &build);

	if (!NT_SUCCESS(status))
		assert_int_equal(gpu->paging_length, 0);
	gpu->paging_length = 0;
	return status;
}

static void page(struct gpu *gpu, DXGKARG_BUILDPAGINGBUFFER build)
{
	assert_int_equal(gpu_build(gpu, &build), STATUS_SUCCESS);
	gpu_assert_completed(gpu_page(gpu));
}

/*
 * MdlOffset counts pages of the MDL, TransferOffset bytes of the allocation, and only on the
 * segment's side.
 */
static void pag_04_mdloffset_counts_pages_and_transferoffset_bytes(void **state)
{
	struct gpu *gpu = *state;
	PMDL mdl = gpu_mdl(gpu, 8 * PAGE, 16 * PAGE);
	DXGKARG_BUILDPAGINGBUFFER in = gpu_transfer(NULL, 5 * PAGE),
				  out = gpu_transfer(NULL, 3 * PAGE);

	scribble(gpu->system.base + 8 * PAGE, 16 * PAGE, 1);
	gpu_side_mdl(&in.Transfer.Source, mdl);
	gpu_side_segment(&in.Transfer.Destination, VRAM, MIB);
	in.Transfer.MdlOffset = 2;
	in.Transfer.TransferOffset = 4 * PAGE;
	page(gpu, in);
	assert_memory_equal(gpu->vram.base + MIB + 4 * PAGE, gpu->system.base + 10 * PAGE,
			    5 * PAGE);
	assert_int_equal(gpu->vram.base[MIB + 4 * PAGE - 1], 0);
	assert_int_equal(gpu->vram.base[MIB + 9 * PAGE], 0);
	memset(gpu->system.base + 8 * PAGE, 0, 16 * PAGE);
	gpu_side_segment(&out.Transfer.Source, VRAM, MIB);
	gpu_side_mdl(&out.Transfer.Destination, mdl);
	out.Transfer.MdlOffset = 13;
	out.Transfer.TransferOffset = 6 * PAGE;
	page(gpu, out);
	assert_memory_equal(gpu->system.base + 21 * PAGE, gpu->vram.base + MIB + 6 * PAGE,
			    3 * PAGE);
	assert_int_equal(gpu->system.base[21 * PAGE - 1], 0);
	gpu_free_mdl(gpu, mdl);
}

static void transfers_between_segments_are_executed(void **state)
{
	struct gpu *gpu = *state;
	PMDL mdl = gpu_mdl(gpu, 0, 4 * PAGE);
	DXGKARG_BUILDPAGINGBUFFER build = gpu_transfer(NULL, 4 * PAGE);

	gpu_map(gpu, 100, 2, mdl, 2);
	gpu_map(gpu, 102, 2, mdl, 0);
	scribble(gpu->vram.base, 4 * PAGE, 5);
	gpu_side_segment(&build.Transfer.Source, VRAM, 0);
	gpu_side_segment(&build.Transfer.Destination, APERTURE, APERTURE_BASE + 100 * PAGE);
	page(gpu, build);
	assert_memory_equal(gpu->system.base + 2 * PAGE, gpu->vram.base, 2 * PAGE);
	assert_memory_equal(gpu->system.base, gpu->vram.base + 2 * PAGE, 2 * PAGE);
	gpu_free_mdl(gpu, mdl);
}

static void tdr_05_a_transfer_of_size_zero_produces_no_command(void **state)
{
	struct gpu *gpu = *state;
	DXGKARG_BUILDPAGINGBUFFER build = gpu_transfer(NULL, 0);

	assert_int_equal(gpu_build(gpu, &build), STATUS_SUCCESS);
	assert_int_equal(gpu->paging_length, 0);
}

static void pag_05_a_fill_sets_video_memory(void **state)
{
	struct gpu *gpu = *state;
	DXGKARG_BUILDPAGINGBUFFER build = {.Operation = DXGK_OPERATION_FILL};

	build.Fill.FillSize = 3 * PAGE;
	build.Fill.FillPattern = 0x01020304;
	build.Fill.Destination.SegmentId = VRAM;
	build.Fill.Destination.SegmentAddress.QuadPart = 5 * PAGE;
	page(gpu, build);
	assert_int_equal(gpu->vram.base[5 * PAGE - 1], 0);
	assert_int_equal(gpu->vram.base[5 * PAGE], 4);
	assert_int_equal(gpu->vram.base[8 * PAGE - 1], 1);
	assert_int_equal(gpu->vram.base[8 * PAGE], 0);
}

/*
 * Building does not touch the hardware: the page table changes when the engine executes the
 * command.
 */
static void pag_10_mapping_happens_when_the_command_is_executed(void **state)
{
	struct gpu *gpu = *state;
	PMDL mdl = gpu_mdl(gpu, 0, 4 * PAGE);
	struct softgpu_allocation spec = gpu_spec(PAGE);
	DXGK_ALLOCATIONLIST list =
		gpu_entry(gpu_allocate(gpu, &spec), APERTURE, APERTURE_BASE + 7 * PAGE, 0);
	struct softgpu_reference reference = {{SOFTGPU_REFERENCE, 0, sizeof(reference)},
					      {.allocation = 0}};
	DXGKARG_BUILDPAGINGBUFFER build = {.Operation = DXGK_OPERATION_MAP_APERTURE_SEGMENT};

	build.MapApertureSegment.SegmentId = APERTURE;
	build.MapApertureSegment.OffsetInPages = 7;
	build.MapApertureSegment.NumberOfPages = 1;
	build.MapApertureSegment.pMdl = mdl;
	build.MapApertureSegment.MdlOffset = 3;
	assert_int_equal(gpu_build(gpu, &build), STATUS_SUCCESS);
	gpu_assert_faulted(gpu_run(gpu, 0, &reference, sizeof(reference), &list, 1),
			   STATUS_ACCESS_VIOLATION);
	gpu_assert_completed(gpu_page(gpu));
	gpu_assert_completed(gpu_run(gpu, 0, &reference, sizeof(reference), &list, 1));
	gpu_free_mdl(gpu, mdl);
}

static void sub_19_several_operations_share_a_paging_buffer(void **state)
{
	struct gpu *gpu = *state;
	DXGKARG_BUILDPAGINGBUFFER fill = {.Operation = DXGK_OPERATION_FILL},
				  discard = {.Operation = DXGK_OPERATION_DISCARD_CONTENT};
	uint32_t i;

	for (i = 0; i < 3; i++) {
		fill.Fill.FillSize = PAGE;
		fill.Fill.FillPattern = i + 1;
		fill.Fill.Destination.SegmentId = VRAM;
		fill.Fill.Destination.SegmentAddress.QuadPart = i * PAGE;
		fill.DmaSize = discard.DmaSize = 0;
		assert_int_equal(gpu_build(gpu, &fill), STATUS_SUCCESS);
		assert_int_equal(gpu_build(gpu, &discard), STATUS_SUCCESS);
	}
	gpu_assert_completed(gpu_page(gpu));
	assert_int_equal(gpu->vram.base[0], 1);
	assert_int_equal(gpu->vram.base[PAGE], 2);
	assert_int_equal(gpu->vram.base[2 * PAGE], 3);
	assert_int_equal(gpu->vram.base[3 * PAGE], 0);
}

static void pag_07_insufficient_space_asks_for_another_buffer(void **state)
{
	struct gpu *gpu = *state;
	DXGKARG_BUILDPAGINGBUFFER build = {.Operation = DXGK_OPERATION_FILL, .DmaSize = 8};

	build.Fill.FillSize = PAGE;
	build.Fill.Destination.SegmentId = VRAM;
	assert_int_equal(gpu_build(gpu, &build), STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER);
	assert_int_equal(gpu->paging_length, 0);
	assert_int_equal(build.MultipassOffset, 0);
	build.DmaSize = 0;
	assert_int_equal(gpu_build(gpu, &build), STATUS_SUCCESS);
	gpu_assert_completed(gpu_page(gpu));
}

static void pag_11_physical_accesses_change_nothing(void **state)
{
	struct gpu *gpu = *state;
	DXGKARG_BUILDPAGINGBUFFER build = {.Operation = DXGK_OPERATION_WRITE_PHYSICAL};

	scribble(gpu->vram.base, PAGE, 3);
	build.WritePhysical.SegmentId = VRAM;
	build.WritePhysical.PhysicalAddress.QuadPart = 16;
	page(gpu, build);
	build.Operation = DXGK_OPERATION_READ_PHYSICAL;
	build.DmaSize = 0;
	page(gpu, build);
	assert_int_equal(gpu->vram.base[16], (char)(16 * 37 + 3));
	build.WritePhysical.PhysicalAddress.QuadPart = (LONGLONG)gpu->vram_bytes;
	build.DmaSize = 0;
	assert_int_equal(build_and_drop(gpu, build), STATUS_INVALID_PARAMETER);
}

static void services_that_are_not_supported_report_it(void **state)
{
	const DXGK_BUILDPAGINGBUFFER_OPERATION operations[] = {
		DXGK_OPERATION_UPDATE_PAGE_TABLE, DXGK_OPERATION_VIRTUAL_FILL,
		DXGK_OPERATION_INIT_CONTEXT_RESOURCE};
	struct gpu *gpu = *state;
	int i;

	for (i = 0; i < 3; i++) {
		DXGKARG_BUILDPAGINGBUFFER build = {.Operation = operations[i]};

		assert_int_equal(build_and_drop(gpu, build), STATUS_NOT_SUPPORTED);
	}
}

static void swz_25_a_special_lock_transfer_copies_the_linear_image(void **state)
{
	struct gpu *gpu = *state;
	struct softgpu_allocation spec = gpu_spec(2 * PAGE);
	HANDLE allocation = gpu_allocate(gpu, &spec)->info.hAllocation;
	PMDL mdl = gpu_mdl(gpu, 0, 4 * PAGE); /* an image may be larger */
	DXGKARG_BUILDPAGINGBUFFER build = {.Operation = DXGK_OPERATION_SPECIAL_LOCK_TRANSFER};

	build.SpecialLockTransfer.hAllocation = allocation;
	build.SpecialLockTransfer.TransferSize = 2 * PAGE;
	build.SpecialLockTransfer.Flags.Value = 0x18 | 0x2;
	build.SpecialLockTransfer.SwizzlingRangeId = 63;
	build.SpecialLockTransfer.SwizzlingRangeData = 3;
	gpu_side_segment(&build.SpecialLockTransfer.Source, VRAM, MIB);
	build.SpecialLockTransfer.Destination.pMdl = mdl;
	scribble(gpu->vram.base + MIB, 2 * PAGE, 25);
	memset(gpu->system.base, 0, 4 * PAGE);
	page(gpu, build);
	assert_memory_equal(gpu->system.base, gpu->vram.base + MIB, 2 * PAGE);
	assert_int_equal(gpu->system.base[2 * PAGE], 0);
	build.SpecialLockTransfer.SwizzlingRangeId = 64;
	assert_int_equal(build_and_drop(gpu, build), STATUS_INVALID_PARAMETER);
	gpu_free_mdl(gpu, mdl);
}

static void ranges_outside_their_segment_are_refused(void **state)
{
	struct gpu *gpu = *state;
	PMDL mdl = gpu_mdl(gpu, 0, 4 * PAGE);
	DXGKARG_BUILDPAGINGBUFFER good = gpu_transfer(NULL, PAGE), bad;
	DXGKARG_BUILDPAGINGBUFFER map = {.Operation = DXGK_OPERATION_MAP_APERTURE_SEGMENT};

	gpu_side_mdl(&good.Transfer.Source, mdl);
	gpu_side_segment(&good.Transfer.Destination, VRAM, gpu->vram_bytes - PAGE);
	assert_int_equal(build_and_drop(gpu, good), STATUS_SUCCESS);
	bad = good;
	bad.Transfer.TransferOffset = 1;
	assert_int_equal(build_and_drop(gpu, bad), STATUS_INVALID_PARAMETER);
	bad = good;
	bad.Transfer.MdlOffset = 4;
	assert_int_equal(build_and_drop(gpu, bad), STATUS_INVALID_PARAMETER);
	bad = good;
	bad.Transfer.Source.pMdl = NULL;
	assert_int_equal(build_and_drop(gpu, bad), STATUS_INVALID_PARAMETER);
	bad = good;
	bad.Transfer.Destination.SegmentId = 3;
	assert_int_equal(build_and_drop(gpu, bad), STATUS_INVALID_PARAMETER);
	bad = good;
	gpu_side_segment(&bad.Transfer.Destination, APERTURE, APERTURE_BASE - PAGE);
	assert_int_equal(build_and_drop(gpu, bad), STATUS_INVALID_PARAMETER);
	map.MapApertureSegment.SegmentId = APERTURE;
	map.MapApertureSegment.OffsetInPages = 256 * MIB / PAGE - 2;
	map.MapApertureSegment.NumberOfPages = 2;
	map.MapApertureSegment.pMdl = mdl;
	assert_int_equal(build_and_drop(gpu, map), STATUS_SUCCESS);
	bad = map;
	bad.MapApertureSegment.OffsetInPages++;
	assert_int_equal(build_and_drop(gpu, bad), STATUS_INVALID_PARAMETER);
	bad = map;
	bad.MapApertureSegment.MdlOffset = 3;
	assert_int_equal(build_and_drop(gpu, bad), STATUS_INVALID_PARAMETER);
	bad = map;
	bad.MapApertureSegment.SegmentId = VRAM;
	assert_int_equal(build_and_drop(gpu, bad), STATUS_INVALID_PARAMETER);
	gpu_free_mdl(gpu, mdl);
}

/* ---- tiles ---- */

static struct gpu_allocation *tiled(struct gpu *gpu, uint32_t flag, uint32_t stride, uint64_t bytes)
{
	struct softgpu_allocation spec = gpu_spec(bytes);

	spec.flags |= flag;
	spec.stride_bytes = stride;
	return gpu_allocate(gpu, &spec);
}

/*
 * One transfer of [offset, +bytes) of the surface at video memory offset 1 MiB; the page list holds
 * its linear form.
 */
static DXGKARG_BUILDPAGINGBUFFER tile_transfer(HANDLE allocation, PMDL mdl, uint32_t offset,
					       uint64_t bytes, bool in)
{
	DXGKARG_BUILDPAGINGBUFFER build = gpu_transfer(allocation, bytes);
	DXGK_TRANSFER_END *segment = in ? &build.Transfer.Destination : &build.Transfer.Source;

	gpu_side_mdl(in ? &build.Transfer.Source : &build.Transfer.Destination, mdl);
	gpu_side_segment(segment, VRAM, MIB);
	build.Transfer.TransferOffset = offset;
	build.Transfer.MdlOffset = offset / PAGE;
	build.Transfer.Flags.Swizzle = in;
	build.Transfer.Flags.Unswizzle = !in;
	return build;
}

static void swizzle_both_ways(struct gpu *gpu, uint32_t flag, enum softgpu_tile_mode mode,
			      uint32_t stride, uint32_t step)
{
	uint64_t bytes = 4 * softgpu_tile_row_bytes(mode, stride), at;
	struct gpu_allocation *surface = tiled(gpu, flag, stride, bytes);
	PMDL mdl = gpu_mdl(gpu, 0, bytes);
	char *vram = gpu->vram.base + MIB, *copy = malloc(bytes);

	assert_non_null(copy);
	assert_int_equal(surface->info.Size, bytes);
	assert_true(surface->info.Flags.Swizzled);
	scribble(gpu->system.base, bytes, mode);
	memcpy(copy, gpu->system.base, bytes);
	for (at = 0; at < bytes; at += step)
		page(gpu, tile_transfer(surface->info.hAllocation, mdl, (uint32_t)at,
					bytes - at < step ? bytes - at : step, true));
	for (at = 0; at < bytes; at++)
		if (vram[at] != copy[softgpu_tile_linear_offset(mode, stride, at)])
			fail_msg("tiled byte %u is wrong", (unsigned)at);
	memset(gpu->system.base, 0, bytes);
	for (at = 0; at < bytes; at += step)
		page(gpu, tile_transfer(surface->info.hAllocation, mdl, (uint32_t)at,
					bytes - at < step ? bytes - at : step, false));
	assert_memory_equal(gpu->system.base, copy, bytes);
	free(copy);
	gpu_free_mdl(gpu, mdl);
}

static void swz_09_swz_20_transfers_swizzle_and_unswizzle_surfaces(void **state)
{
	swizzle_both_ways(*state, SOFTGPU_ALLOCATION_TILED_X, SOFTGPU_TILE_X, 2048, UINT32_MAX);
	swizzle_both_ways(*state, SOFTGPU_ALLOCATION_TILED_Y, SOFTGPU_TILE_Y, 1152, UINT32_MAX);
}

/* PAG-03: several sub-transfers, cut at arbitrary offsets within rows of tiles. */
static void pag_03_surfaces_may_be_converted_in_pieces(void **state)
{
	swizzle_both_ways(*state, SOFTGPU_ALLOCATION_TILED_X, SOFTGPU_TILE_X, 2048, 3 * PAGE);
	swizzle_both_ways(*state, SOFTGPU_ALLOCATION_TILED_Y, SOFTGPU_TILE_Y, 1152, 5 * PAGE);
}

static void lock_21_a_partial_transfer_covers_the_given_linear_range(void **state)
{
	const uint32_t stride = 1152;
	const uint64_t bytes = 2 * stride * 32;
	struct gpu *gpu = *state;
	struct gpu_allocation *surface = tiled(gpu, SOFTGPU_ALLOCATION_TILED_Y, stride, bytes);
	PMDL mdl = gpu_mdl(gpu, 0, bytes);
	char *vram = gpu->vram.base + MIB;

	scribble(vram, bytes, 21);
	memset(gpu->system.base, 0x5A, bytes);
	page(gpu, tile_transfer(surface->info.hAllocation, mdl, 9 * PAGE, PAGE, false));
	for (uint64_t at = 0; at < bytes; at++) {
		uint64_t linear = softgpu_tile_linear_offset(SOFTGPU_TILE_Y, stride, at);
		bool named = linear / PAGE == 9;

		if (gpu->system.base[linear] != (named ? vram[at] : 0x5A))
			fail_msg("linear byte %u is wrong", (unsigned)linear);
	}
	/* And the reverse: only that range is written. */
	memset(gpu->system.base, 0x33, bytes);
	char *before = malloc(bytes);
	assert_non_null(before);
	memcpy(before, vram, bytes);
	page(gpu, tile_transfer(surface->info.hAllocation, mdl, 9 * PAGE, PAGE, true));
	for (uint64_t at = 0; at < bytes; at++) {
		bool named = softgpu_tile_linear_offset(SOFTGPU_TILE_Y, stride, at) / PAGE == 9;

		if (vram[at] != (named ? 0x33 : before[at]))
			fail_msg("tiled byte %u is wrong", (unsigned)at);
	}
	free(before);
	gpu_free_mdl(gpu, mdl);
}

static void a_surface_that_reaches_past_its_segment_is_refused(void **state)
{
	struct gpu *gpu = *state;
	struct gpu_allocation *surface =
		tiled(gpu, SOFTGPU_ALLOCATION_TILED_Y, 1152, 2 * 1152 * 32);
	PMDL mdl = gpu_mdl(gpu, 0, 2 * PAGE);
	DXGKARG_BUILDPAGINGBUFFER build =
		tile_transfer(surface->info.hAllocation, mdl, PAGE, PAGE, true);

	/* The page is in the segment; the row of tiles that contains it is not. */
	build.Transfer.Destination.SegmentAddress.QuadPart = 16 * MIB - 2 * PAGE;
	assert_int_equal(build_and_drop(gpu, build), STATUS_INVALID_PARAMETER);
	build.Transfer.Destination.SegmentAddress.QuadPart = MIB;
	build.Transfer.Flags.Unswizzle = 1;
	assert_int_equal(build_and_drop(gpu, build), STATUS_INVALID_PARAMETER);
	gpu_free_mdl(gpu, mdl);
}

static void swz_22_without_flags_a_surface_is_copied_unconverted(void **state)
{
	struct gpu *gpu = *state;
	struct gpu_allocation *surface = tiled(gpu, SOFTGPU_ALLOCATION_TILED_X, 512, 2 * PAGE);
	PMDL mdl = gpu_mdl(gpu, 0, 2 * PAGE);
	DXGKARG_BUILDPAGINGBUFFER build =
		tile_transfer(surface->info.hAllocation, mdl, 0, 2 * PAGE, true);

	build.Transfer.Flags.Value = 0x18;
	scribble(gpu->system.base, 2 * PAGE, 9);
	page(gpu, build);
	assert_memory_equal(gpu->vram.base + MIB, gpu->system.base, 2 * PAGE);
	gpu_free_mdl(gpu, mdl);
}

/* ---- time ---- */

static uint64_t paging_ns(uint64_t bytes_per_us, uint64_t bytes)
{
	const struct gpu_setting settings[] = {{"EngineBytesPerUs", bytes_per_us}, {NULL, 0}};
	struct gpu *gpu = gpu_start(settings, 16 * MIB);
	DXGKARG_BUILDPAGINGBUFFER build = {.Operation = DXGK_OPERATION_FILL};
	uint64_t start = vmm_os_now_ns(gpu->os), took;

	build.Fill.FillSize = bytes;
	build.Fill.Destination.SegmentId = VRAM;
	page(gpu, build);
	took = gpu->interrupt_ns[0] - start;
	gpu_stop(gpu);
	return took;
}

static void paging_time_is_proportional_to_bytes(void **state)
{
	(void)state;
	assert_in_range(paging_ns(20000, 4 * MIB), 209715 - 100, 209715 + 100);
	assert_in_range(paging_ns(1000, 4 * MIB), 4194304 - 100, 4194304 + 100);
	assert_int_equal(paging_ns(0, 4 * MIB), 0);
}

static const struct gpu_setting link_settings[] = {{"EngineBytesPerUs", 20000},
						   {"HostLinkBytesPerUs", 10000},
						   {"HostLinkLatencyNs", 3000},
						   {NULL, 0}};

static void assert_paging_ns(struct gpu *gpu, DXGKARG_BUILDPAGINGBUFFER build, uint64_t expected)
{
	uint64_t start = vmm_os_now_ns(gpu->os);
	uint32_t number = gpu->interrupt_count;

	page(gpu, build);
	assert_in_range(gpu->interrupt_ns[number] - start, expected - 100, expected + 100);
}

static void copies_over_the_host_link_take_its_time_and_latency(void **state)
{
	struct gpu *gpu = gpu_start(link_settings, 16 * MIB);
	PMDL mdl = gpu_mdl(gpu, 0, MIB);
	DXGKARG_BUILDPAGINGBUFFER build = gpu_transfer(NULL, MIB);

	(void)state;
	gpu_map(gpu, 0, 256, mdl, 0);
	build.Transfer.Source.SegmentId = VRAM;
	build.Transfer.Source.SegmentAddress.QuadPart = 4 * MIB;
	build.Transfer.Destination.SegmentId = VRAM;
	assert_paging_ns(gpu, build, 3000 + MIB / 20);
	build.Transfer.Destination.SegmentId = APERTURE;
	build.Transfer.Destination.SegmentAddress.QuadPart = APERTURE_BASE;
	assert_paging_ns(gpu, build, 3000 + MIB / 10);
	gpu_side_mdl(&build.Transfer.Destination, mdl);
	assert_paging_ns(gpu, build, 3000 + MIB / 10);
	build.Transfer.Destination = build.Transfer.Source;
	gpu_side_mdl(&build.Transfer.Source, mdl);
	assert_paging_ns(gpu, build, 3000 + MIB / 10);
	gpu_free_mdl(gpu, mdl);
	gpu_stop(gpu);
}

static void fills_outside_of_video_memory_and_mappings_use_the_host_link(void **state)
{
	struct gpu *gpu = gpu_start(link_settings, 16 * MIB);
	PMDL mdl = gpu_mdl(gpu, 0, MIB);
	DXGKARG_BUILDPAGINGBUFFER build = {.Operation = DXGK_OPERATION_FILL};
	uint64_t start = vmm_os_now_ns(gpu->os);

	(void)state;
	gpu_map(gpu, 0, 256, mdl, 0);
	assert_in_range(vmm_os_now_ns(gpu->os) - start, 2900, 3100);
	build.Fill.FillSize = MIB;
	build.Fill.Destination.SegmentId = VRAM;
	assert_paging_ns(gpu, build, 3000 + MIB / 20);
	build.Fill.Destination.SegmentId = APERTURE;
	build.Fill.Destination.SegmentAddress.QuadPart = APERTURE_BASE;
	assert_paging_ns(gpu, build, 3000 + MIB / 10);
	gpu_free_mdl(gpu, mdl);
	gpu_stop(gpu);
}

static void without_content_copies_and_fills_take_their_time_and_move_nothing(void **state)
{
	const struct gpu_setting settings[] = {
		{"EngineBytesPerUs", 1000}, {"MoveContent", 0}, {NULL, 0}};
	struct gpu *gpu = gpu_start(settings, 16 * MIB);
	DXGKARG_BUILDPAGINGBUFFER copy = gpu_transfer(NULL, MIB),
				  fill = {.Operation = DXGK_OPERATION_FILL};
	uint64_t i;

	(void)state;
	scribble(gpu->vram.base + 4 * MIB, MIB, 5);
	gpu_side_segment(&copy.Transfer.Source, VRAM, 4 * MIB);
	gpu_side_segment(&copy.Transfer.Destination, VRAM, 0);
	assert_paging_ns(gpu, copy, MIB);
	fill.Fill.FillSize = MIB;
	fill.Fill.FillPattern = 0x55555555;
	fill.Fill.Destination.SegmentId = VRAM;
	assert_paging_ns(gpu, fill, MIB);
	for (i = 0; i < MIB; i++)
		assert_int_equal(gpu->vram.base[i], 0);
	gpu_stop(gpu);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, gpu_setup, gpu_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pag_04_mdloffset_counts_pages_and_transferoffset_bytes),
		TEST(transfers_between_segments_are_executed),
		TEST(tdr_05_a_transfer_of_size_zero_produces_no_command),
		TEST(pag_05_a_fill_sets_video_memory),
		TEST(pag_10_mapping_happens_when_the_command_is_executed),
		TEST(sub_19_several_operations_share_a_paging_buffer),
		TEST(pag_07_insufficient_space_asks_for_another_buffer),
		TEST(pag_11_physical_accesses_change_nothing),
		TEST(services_that_are_not_supported_report_it),
		TEST(swz_25_a_special_lock_transfer_copies_the_linear_image),
		TEST(ranges_outside_their_segment_are_refused),
		TEST(swz_09_swz_20_transfers_swizzle_and_unswizzle_surfaces),
		TEST(pag_03_surfaces_may_be_converted_in_pieces),
		TEST(lock_21_a_partial_transfer_covers_the_given_linear_range),
		TEST(a_surface_that_reaches_past_its_segment_is_refused),
		TEST(swz_22_without_flags_a_surface_is_copied_unconverted),
		cmocka_unit_test(paging_time_is_proportional_to_bytes),
		cmocka_unit_test(without_content_copies_and_fills_take_their_time_and_move_nothing),
		cmocka_unit_test(copies_over_the_host_link_take_its_time_and_latency),
		cmocka_unit_test(fills_outside_of_video_memory_and_mappings_use_the_host_link),
	};

	return cmocka_run_group_tests_name("softgpu_paging", tests, NULL, NULL);
}
