/* SPDX-License-Identifier: MIT */
/*
 * Effects of commands on memory, in video memory and through the aperture, and which errors stop
 * them.
 */
#include "fixture.h"

#include <stdlib.h>

#define ON(index, where)                                 \
	{                                                \
		.allocation = (index), .offset = (where) \
	}
#define HEADER(opcode, flags, type)                          \
	{                                                    \
		SOFTGPU_##opcode, flags, sizeof(struct type) \
	}

/* Entry 0 is 64 KiB of video memory at 1 MiB, entry 1 is 64 KiB of aperture from page 16 on. */
#define BYTES   (16 * PAGE)
#define AT_VRAM MIB
#define AT_PAGE 16u

struct scene {
	struct gpu *gpu;
	DXGK_ALLOCATIONLIST list[2];
	PMDL mdl[2]; /* 8 pages each */
	char *vram;
};

/*
 * The aperture's pages come from two page lists, the second one first and both cut in half. Host
 * memory is contiguous over at most four pages, so a range that ignores this reaches a page of
 * another list.
 */
static struct scene *scene_create(struct gpu *gpu)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	struct softgpu_allocation spec = gpu_spec(BYTES);

	assert_non_null(scene);
	scene->gpu = gpu;
	scene->vram = gpu->vram.base + AT_VRAM;
	scene->mdl[0] = gpu_mdl(gpu, 0, 8 * PAGE);
	scene->mdl[1] = gpu_mdl(gpu, 64 * PAGE, 8 * PAGE);
	gpu_map(gpu, AT_PAGE + 0, 4, scene->mdl[1], 4);
	gpu_map(gpu, AT_PAGE + 4, 4, scene->mdl[1], 0);
	gpu_map(gpu, AT_PAGE + 8, 4, scene->mdl[0], 4);
	gpu_map(gpu, AT_PAGE + 12, 4, scene->mdl[0], 0);
	scene->list[0] = gpu_entry(gpu_allocate(gpu, &spec), VRAM, AT_VRAM, 1);
	scene->list[1] =
		gpu_entry(gpu_allocate(gpu, &spec), APERTURE, APERTURE_BASE + AT_PAGE * PAGE, 1);
	return scene;
}

static void scene_destroy(struct scene *scene)
{
	gpu_free_mdl(scene->gpu, scene->mdl[0]);
	gpu_free_mdl(scene->gpu, scene->mdl[1]);
	free(scene);
}

/* The byte of the aperture allocation at `offset`, by the layout of scene_create. */
static unsigned char *aperture_byte(const struct scene *scene, uint64_t offset)
{
	static const uint64_t first[4] = {68, 64, 4, 0};
	uint64_t quarter = offset / (4 * PAGE);

	return (unsigned char *)scene->gpu->system.base + first[quarter] * PAGE +
	       offset % (4 * PAGE);
}

static const DXGKARGCB_NOTIFY_INTERRUPT_DATA *run(struct scene *scene, const void *commands,
						  uint32_t length)
{
	return gpu_run(scene->gpu, 0, commands, length, scene->list, 2);
}

static void fill_writes_the_pattern_and_nothing_else(void **state)
{
	struct scene *scene = scene_create(*state);
	struct softgpu_fill fill = {HEADER(FILL, 0, softgpu_fill), ON(0, 3), 10, 0x44332211, 0};
	const unsigned char expected[16] = {9,    9,    9,    0x11, 0x22, 0x33, 0x44, 0x11,
					    0x22, 0x33, 0x44, 0x11, 0x22, 9,    9,    9};

	memset(scene->vram, 9, 32);
	gpu_assert_completed(run(scene, &fill, sizeof(fill)));
	assert_memory_equal(scene->vram, expected, sizeof(expected));
	scene_destroy(scene);
}

static void fill_crosses_scattered_aperture_pages(void **state)
{
	struct scene *scene = scene_create(*state);
	struct softgpu_fill fill = {HEADER(FILL, 0, softgpu_fill), ON(1, 5), BYTES - 9, 0x04030201,
				    0};
	uint64_t i;

	gpu_assert_completed(run(scene, &fill, sizeof(fill)));
	for (i = 0; i < BYTES; i++) {
		unsigned expected = i < 5 || i >= BYTES - 4 ? 0 : (unsigned)((i - 5) & 3) + 1;

		if (*aperture_byte(scene, i) != expected)
			fail_msg("byte %u is %u", (unsigned)i, *aperture_byte(scene, i));
	}
	scene_destroy(scene);
}

static void copy_moves_between_vram_and_scattered_pages(void **state)
{
	struct scene *scene = scene_create(*state);
	struct softgpu_copy out = {HEADER(COPY, 0, softgpu_copy), ON(0, 1), ON(1, PAGE - 3),
				   9 * PAGE};
	struct softgpu_copy back = {HEADER(COPY, 0, softgpu_copy), ON(1, PAGE - 3), ON(0, 5),
				    9 * PAGE};
	char *reference = malloc(BYTES);
	uint64_t i;

	assert_non_null(reference);
	for (i = 0; i < BYTES; i++)
		scene->vram[i] = reference[i] = (char)(i * 7 + i / 251);
	gpu_assert_completed(run(scene, &out, sizeof(out)));
	for (i = 0; i < 9 * PAGE; i++)
		assert_int_equal((char)*aperture_byte(scene, PAGE - 3 + i), reference[1 + i]);
	assert_int_equal(*aperture_byte(scene, PAGE - 4), 0);
	assert_int_equal(*aperture_byte(scene, 10 * PAGE - 3), 0);
	memset(scene->vram, 0, BYTES);
	gpu_assert_completed(run(scene, &back, sizeof(back)));
	assert_memory_equal(scene->vram + 5, reference + 1, 9 * PAGE);
	assert_int_equal(scene->vram[4], 0);
	assert_int_equal(scene->vram[5 + 9 * PAGE], 0);
	free(reference);
	scene_destroy(scene);
}

/* Large enough for the stores that bypass the caches; odd addresses. */
static void a_copy_of_megabytes_is_exact(void **state)
{
	struct gpu *gpu = *state;
	struct softgpu_allocation spec = gpu_spec(4 * MIB);
	DXGK_ALLOCATIONLIST list[2] = {gpu_entry(gpu_allocate(gpu, &spec), VRAM, 0, 1),
				       gpu_entry(gpu_allocate(gpu, &spec), VRAM, 8 * MIB, 1)};
	struct softgpu_copy copy = {HEADER(COPY, 0, softgpu_copy), ON(0, 7), ON(1, 13),
				    3 * MIB + 5};
	struct softgpu_fill fill = {HEADER(FILL, 0, softgpu_fill), ON(0, 7), 3 * MIB + 5,
				    0x0C0B0A09, 0};
	uint64_t i;

	gpu_assert_completed(gpu_run(gpu, 1, &fill, sizeof(fill), list, 2));
	for (i = 0; i < 3 * MIB + 5; i++)
		if (gpu->vram.base[7 + i] != (char)(9 + (i & 3)))
			fail_msg("filled byte %u is %d", (unsigned)i, gpu->vram.base[7 + i]);
	assert_int_equal(gpu->vram.base[6], 0);
	assert_int_equal(gpu->vram.base[7 + 3 * MIB + 5], 0);
	gpu_assert_completed(gpu_run(gpu, 1, &copy, sizeof(copy), list, 2));
	assert_memory_equal(gpu->vram.base + 8 * MIB + 13, gpu->vram.base + 7, 3 * MIB + 5);
	assert_int_equal(gpu->vram.base[8 * MIB + 12], 0);
	assert_int_equal(gpu->vram.base[8 * MIB + 13 + 3 * MIB + 5], 0);
}

static void reference_reads_and_rewrites_across_pages(void **state)
{
	struct scene *scene = scene_create(*state);
	struct softgpu_reference reference = {
		HEADER(REFERENCE, SOFTGPU_FLAG_WRITE, softgpu_reference), ON(1, 4 * PAGE - 2)};

	*aperture_byte(scene, 4 * PAGE - 2) = 1;
	*aperture_byte(scene, 4 * PAGE + 1) = 4;
	gpu_assert_completed(run(scene, &reference, sizeof(reference)));
	assert_int_equal(*aperture_byte(scene, 4 * PAGE - 2), 1);
	assert_int_equal(*aperture_byte(scene, 4 * PAGE + 1), 4);
	scene_destroy(scene);
}

/* The time that a TRAFFIC of `length` bytes takes at an entry of the list. */
static uint64_t traffic_ns(struct scene *scene, uint32_t entry, uint64_t length,
			   uint64_t nanoseconds)
{
	struct softgpu_traffic traffic = {HEADER(TRAFFIC, SOFTGPU_FLAG_WRITE, softgpu_traffic),
					  ON(entry, 8), length, nanoseconds};
	uint64_t start = vmm_os_now_ns(scene->gpu->os);
	uint32_t number = scene->gpu->interrupt_count;

	gpu_assert_completed(run(scene, &traffic, sizeof(traffic)));
	return scene->gpu->interrupt_ns[number] - start;
}

static void traffic_in_the_aperture_takes_the_time_of_the_host_link(void **state)
{
	const struct gpu_setting settings[] = {{"HostLinkBytesPerUs", 10}, {NULL, 0}};
	struct gpu *gpu = gpu_start(settings, 16 * MIB);
	struct scene *scene = scene_create(gpu);

	(void)state;
	assert_in_range(traffic_ns(scene, 0, 40000, 5000), 4900, 5100);
	assert_in_range(traffic_ns(scene, 1, 40000, 5000), 3999900, 4000100);
	assert_in_range(traffic_ns(scene, 1, 40, 5000), 4900, 5100);
	scene_destroy(scene);
	gpu_stop(gpu);
}

static void traffic_in_the_aperture_uses_the_host_link_in_each_pass(void **state)
{
	const struct gpu_setting settings[] = {
		{"HostLinkBytesPerUs", 10}, {"HostLinkPasses", 3}, {NULL, 0}};
	struct gpu *gpu = gpu_start(settings, 16 * MIB);
	struct scene *scene = scene_create(gpu);

	(void)state;
	assert_in_range(traffic_ns(scene, 0, 40000, 5000), 4900, 5100);
	assert_in_range(traffic_ns(scene, 1, 40000, 5000), 11999900, 12000100);
	scene_destroy(scene);
	gpu_stop(gpu);
}

static void without_a_host_link_traffic_takes_its_own_time(void **state)
{
	struct scene *scene = scene_create(*state);

	assert_in_range(traffic_ns(scene, 0, 40000, 5000), 4900, 5100);
	assert_in_range(traffic_ns(scene, 1, 40000, 5000), 4900, 5100);
	scene_destroy(scene);
}

/* ---- bus faults ---- */

static const DXGKARGCB_NOTIFY_INTERRUPT_DATA *reference_at(struct scene *scene, uint32_t segment,
							   uint64_t address, uint16_t flags)
{
	struct softgpu_reference reference = {HEADER(REFERENCE, flags, softgpu_reference),
					      ON(0, 0)};

	scene->list[0].SegmentId = segment;
	scene->list[0].PhysicalAddress.QuadPart = (LONGLONG)address;
	return run(scene, &reference, sizeof(reference));
}

static void access_to_an_undecoded_address_is_a_bus_fault(void **state)
{
	struct scene *scene = scene_create(*state);
	uint64_t aperture_end = APERTURE_BASE + 256 * MIB;

	gpu_assert_completed(reference_at(scene, VRAM, 16 * MIB - 4, 0));
	gpu_assert_faulted(reference_at(scene, VRAM, 16 * MIB - 3, 0), STATUS_ACCESS_VIOLATION);
	gpu_assert_faulted(reference_at(scene, VRAM, 16 * MIB, 0), STATUS_ACCESS_VIOLATION);
	gpu_assert_faulted(reference_at(scene, VRAM, APERTURE_BASE - 4, 0),
			   STATUS_ACCESS_VIOLATION);
	gpu_assert_faulted(reference_at(scene, APERTURE, APERTURE_BASE, 0),
			   STATUS_ACCESS_VIOLATION);
	gpu_assert_completed(reference_at(scene, APERTURE, APERTURE_BASE + AT_PAGE * PAGE, 0));
	/* The last mapped page and one byte more. */
	gpu_assert_completed(
		reference_at(scene, APERTURE, APERTURE_BASE + (AT_PAGE + 16) * PAGE - 4, 0));
	gpu_assert_faulted(
		reference_at(scene, APERTURE, APERTURE_BASE + (AT_PAGE + 16) * PAGE - 3, 0),
		STATUS_ACCESS_VIOLATION);
	gpu_assert_faulted(reference_at(scene, APERTURE, aperture_end, 0), STATUS_ACCESS_VIOLATION);
	/* not resident */
	gpu_assert_faulted(reference_at(scene, 0, 0, 0), STATUS_ACCESS_VIOLATION);
	scene_destroy(scene);
}

static void a_fault_ends_the_packet_where_it_happens(void **state)
{
	struct scene *scene = scene_create(*state);
	struct {
		struct softgpu_fill before, faulting, after;
	} commands = {
		{HEADER(FILL, 0, softgpu_fill), ON(0, 0), 4, 0x11111111, 0},
		{HEADER(FILL, 0, softgpu_fill), ON(1, 0), 4, 0x22222222, 0},
		{HEADER(FILL, 0, softgpu_fill), ON(0, 8), 4, 0x33333333, 0},
	};
	const DXGKARGCB_NOTIFY_INTERRUPT_DATA *interrupt;

	scene->list[1].PhysicalAddress.QuadPart = (LONGLONG)(APERTURE_BASE + 1000 * PAGE);
	interrupt = run(scene, &commands, sizeof(commands));
	gpu_assert_faulted(interrupt, STATUS_ACCESS_VIOLATION);
	assert_int_equal(interrupt->DmaFaulted.FaultedFenceId, scene->gpu->next_fence);
	assert_int_equal(interrupt->DmaFaulted.NodeOrdinal, 0);
	assert_int_equal(scene->vram[0], 0x11);
	assert_int_equal(scene->vram[8], 0);
	/* The engine continues to work. */
	gpu_assert_completed(run(scene, &commands.before, sizeof(commands.before)));
	scene_destroy(scene);
}

static void pag_10_an_unmapped_range_shows_the_dummy_page_to_readers_only(void **state)
{
	struct scene *scene = scene_create(*state);
	struct softgpu_copy copy = {HEADER(COPY, 0, softgpu_copy), ON(1, 4 * PAGE + 8), ON(0, 0),
				    2 * PAGE};

	strcpy(scene->gpu->dummy.base + 8, "dummy");
	memset(aperture_byte(scene, 4 * PAGE), 'x', 4 * PAGE);
	gpu_unmap(scene->gpu, AT_PAGE + 4, 4);
	gpu_assert_completed(run(scene, &copy, sizeof(copy)));
	assert_string_equal(scene->vram, "dummy");
	assert_string_equal(scene->vram + PAGE, "dummy");
	gpu_assert_faulted(reference_at(scene, APERTURE, APERTURE_BASE + (AT_PAGE + 4) * PAGE,
					SOFTGPU_FLAG_WRITE),
			   STATUS_ACCESS_VIOLATION);
	gpu_assert_completed(reference_at(scene, APERTURE, APERTURE_BASE + (AT_PAGE + 3) * PAGE,
					  SOFTGPU_FLAG_WRITE));
	/* Mapped again, the pages are memory again. */
	gpu_map(scene->gpu, AT_PAGE + 4, 4, scene->mdl[1], 0);
	gpu_assert_completed(reference_at(scene, APERTURE, APERTURE_BASE + (AT_PAGE + 4) * PAGE,
					  SOFTGPU_FLAG_WRITE));
	scene_destroy(scene);
}

/* ---- relocations ---- */

static void checked_relocations_must_decode(void **state)
{
	struct gpu *gpu = *state;
	struct scene *scene = scene_create(gpu);
	struct {
		struct softgpu_relocations head;
		uint64_t slot[3];
	} table = {{{SOFTGPU_RELOCATIONS, SOFTGPU_FLAG_CHECK, 40}, 3, 0}, {0, 0, 0}};
	D3DDDI_PATCHLOCATIONLIST in[2] = {
		{.AllocationIndex = 0, .PatchOffset = 16},
		{.AllocationIndex = 1, .AllocationOffset = 5, .PatchOffset = 24}};
	struct gpu_dma *dma = calloc(1, sizeof(*dma));
	const uint64_t *slots;

	assert_non_null(dma);
	gpu_dma_init(gpu, dma, scene->list, 2);
	assert_int_equal(gpu_render_pass(gpu, dma, &table, sizeof(table), in, 2), STATUS_SUCCESS);
	slots = (const uint64_t *)(const void *)(dma->buffer + 16);
	gpu_patch(gpu, dma, scene->list, 0, 2);
	assert_int_equal(slots[0], AT_VRAM);
	assert_int_equal(slots[1], APERTURE_BASE + AT_PAGE * PAGE + 5);
	gpu_submit(gpu, dma, 0, 0, dma->length);
	gpu_wait_interrupts(gpu, gpu->interrupt_count + 1);
	gpu_assert_completed(&gpu->interrupts[gpu->interrupt_count - 1]);
	scene->list[1].PhysicalAddress.QuadPart += 0x100000;
	gpu_patch(gpu, dma, scene->list, 1, 1);
	gpu_submit(gpu, dma, 0, 0, dma->length);
	gpu_wait_interrupts(gpu, gpu->interrupt_count + 1);
	gpu_assert_faulted(&gpu->interrupts[gpu->interrupt_count - 1], STATUS_ACCESS_VIOLATION);
	gpu_dma_finish(dma);
	free(dma);
	scene_destroy(scene);
}

/* ---- stamps ---- */

#define BLOCK 1000u /* stamps at odd places, one of them across two scattered pages */

static struct softgpu_stamps make_stamps(uint32_t entry, uint16_t flags, uint32_t expected,
					 uint32_t written)
{
	struct softgpu_stamps stamps = {HEADER(STAMP, flags, softgpu_stamps),
					ON(entry, 4 * PAGE - 4 - 10 * BLOCK),
					100,
					20,
					BLOCK,
					7,
					expected,
					written};

	return stamps;
}

static void written_stamps_verify(void **state)
{
	struct scene *scene = scene_create(*state);
	uint32_t entry;

	for (entry = 0; entry < 2; entry++) {
		struct softgpu_stamps first =
			make_stamps(entry, SOFTGPU_FLAG_WRITE | SOFTGPU_FLAG_VERIFY, 0, 1);
		struct softgpu_stamps second =
			make_stamps(entry, SOFTGPU_FLAG_WRITE | SOFTGPU_FLAG_VERIFY, 1, 2);
		struct softgpu_stamps again = make_stamps(entry, SOFTGPU_FLAG_VERIFY, 2, 0);

		gpu_assert_completed(run(scene, &first, sizeof(first)));
		gpu_assert_completed(run(scene, &second, sizeof(second)));
		gpu_assert_completed(run(scene, &again, sizeof(again)));
		/* The version is no longer 1, and no place to report that was requested. */
		gpu_assert_faulted(run(scene, &second, sizeof(second)), STATUS_DATA_ERROR);
	}
	scene_destroy(scene);
}

static void a_stamp_has_the_documented_format(void **state)
{
	struct scene *scene = scene_create(*state);
	struct softgpu_stamps stamps = {
		HEADER(STAMP, SOFTGPU_FLAG_WRITE, softgpu_stamps), ON(0, 0), 5, 2, 64, 9, 0, 3};
	const struct softgpu_stamp *stamp = (const void *)(scene->vram + 64);

	gpu_assert_completed(run(scene, &stamps, sizeof(stamps)));
	assert_int_equal(stamp->buffer, 9);
	assert_int_equal(stamp->version, 3);
	assert_int_equal(stamp->block, 6);
	assert_int_equal(stamp->check, softgpu_stamp_check(9, 3, 6));
	assert_int_equal(scene->vram[128], 0);
	scene_destroy(scene);
}

static void stamp_mismatches_are_recorded_in_the_report(void **state)
{
	struct scene *scene = scene_create(*state);
	struct {
		struct softgpu_report_command report;
		struct softgpu_stamps stamps;
	} commands = {{HEADER(REPORT, 0, softgpu_report_command), ON(0, 8)},
		      make_stamps(1, SOFTGPU_FLAG_VERIFY | SOFTGPU_FLAG_WRITE, 0, 4)};
	struct softgpu_report *report = (struct softgpu_report *)(void *)(scene->vram + 8);
	struct softgpu_report_record *record = (struct softgpu_report_record *)(report + 1);
	struct softgpu_stamp stray = {70, 3, 11, softgpu_stamp_check(70, 3, 11)};
	uint64_t base = 4 * PAGE - 4 - 10 * BLOCK;
	unsigned char bytes[sizeof(stray)];
	size_t i;

	report->capacity = 4;
	assert_int_equal(sizeof(*report), 16);
	/* Block 110 is the one that lies across two scattered pages. */
	memcpy(bytes, &stray, sizeof(stray));
	for (i = 0; i < sizeof(stray); i++)
		*aperture_byte(scene, base + 10 * BLOCK + i) = bytes[i];
	*aperture_byte(scene, base + 3 * BLOCK + 15) = 1;
	gpu_assert_completed(run(scene, &commands, sizeof(commands)));
	assert_int_equal(report->count, 2);
	assert_int_equal(record[0].block, 103);
	assert_int_equal(record[0].found_version, 0);
	assert_int_equal(record[1].block, 110);
	assert_int_equal(record[1].buffer, 7);
	assert_int_equal(record[1].expected_version, 0);
	assert_int_equal(record[1].found_version, 3);
	assert_int_equal(record[1].found_buffer, 70);
	assert_int_equal(record[1].found_block, 11);
	assert_int_equal(record[1].fence, scene->gpu->next_fence);
	scene_destroy(scene);
}

static void a_full_report_keeps_counting_inside_its_allocation(void **state)
{
	struct scene *scene = scene_create(*state);
	struct {
		struct softgpu_report_command report;
		struct softgpu_stamps stamps;
	} commands = {{HEADER(REPORT, 0, softgpu_report_command), ON(0, BYTES - 16 - 2 * 32)},
		      make_stamps(1, SOFTGPU_FLAG_VERIFY, 5, 0)};
	struct softgpu_report *report =
		(struct softgpu_report *)(void *)(scene->vram + BYTES - 16 - 2 * 32);

	report->capacity = 1000000; /* a capacity that the client has overwritten */
	gpu_assert_completed(run(scene, &commands, sizeof(commands)));
	assert_int_equal(report->count, 20);
	assert_int_equal(((struct softgpu_report_record *)(report + 1))[1].block, 101);
	assert_int_equal(scene->vram[BYTES], 0);
	report->count = 0;
	report->capacity = 1;
	memset(report + 1, 0, 64);
	gpu_assert_completed(run(scene, &commands, sizeof(commands)));
	assert_int_equal(report->count, 20);
	assert_int_equal(((struct softgpu_report_record *)(report + 1))[0].block, 100);
	assert_int_equal(((struct softgpu_report_record *)(report + 1))[1].block, 0);
	scene_destroy(scene);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, gpu_setup, gpu_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(fill_writes_the_pattern_and_nothing_else),
		TEST(fill_crosses_scattered_aperture_pages),
		TEST(copy_moves_between_vram_and_scattered_pages),
		TEST(a_copy_of_megabytes_is_exact),
		TEST(reference_reads_and_rewrites_across_pages),
		cmocka_unit_test(traffic_in_the_aperture_takes_the_time_of_the_host_link),
		cmocka_unit_test(traffic_in_the_aperture_uses_the_host_link_in_each_pass),
		TEST(without_a_host_link_traffic_takes_its_own_time),
		TEST(access_to_an_undecoded_address_is_a_bus_fault),
		TEST(a_fault_ends_the_packet_where_it_happens),
		cmocka_unit_test_setup_teardown(
			pag_10_an_unmapped_range_shows_the_dummy_page_to_readers_only, gpu_setup,
			gpu_teardown),
		TEST(checked_relocations_must_decode),
		TEST(written_stamps_verify),
		TEST(a_stamp_has_the_documented_format),
		TEST(stamp_mismatches_are_recorded_in_the_report),
		TEST(a_full_report_keeps_counting_inside_its_allocation),
	};

	return cmocka_run_group_tests_name("softgpu_execute", tests, NULL, NULL);
}
