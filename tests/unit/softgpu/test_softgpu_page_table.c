/* SPDX-License-Identifier: MIT */
/*
 * Page tables of softgpu (Model 2): the paging operations on them, wrong ones too, and what the
 * engine finds when it walks the tables that they wrote.
 */
#include "fixture.h"

#define ROOT 0x100000u /* offsets of the tables in video memory */
#define DATA 0x200000u
#define AT   0x12345678000u /* the page that is mapped */
enum { LEVELS = 4 };

static struct gpu *start(void)
{
	static const struct gpu_setting settings[] = {{"Model", SOFTGPU_MODEL_WDDM2}, {NULL, 0}};

	return gpu_start(settings, 16 * MIB);
}

static DXGK_PTE pte(uint32_t segment, uint64_t address)
{
	DXGK_PTE entry = {{{0}}, {0}};

	entry.Valid = 1;
	entry.Segment = segment & 0x1F;
	entry.PageAddress = address / PAGE;
	return entry;
}

static DXGKARG_BUILDPAGINGBUFFER update(uint32_t level, uint64_t table, uint32_t index,
					DXGK_PTE *entries, uint32_t count)
{
	DXGKARG_BUILDPAGINGBUFFER build = {.Operation = DXGK_OPERATION_UPDATE_PAGE_TABLE};

	build.UpdatePageTable.PageTableLevel = level;
	build.UpdatePageTable.UpdateMode = DXGK_PAGETABLEUPDATE_GPU_PHYSICAL;
	build.UpdatePageTable.PageTableAddress.GpuPhysical.SegmentId = VRAM;
	build.UpdatePageTable.PageTableAddress.GpuPhysical.SegmentOffset = table;
	build.UpdatePageTable.StartIndex = index;
	build.UpdatePageTable.NumPageTableEntries = count;
	build.UpdatePageTable.pPageTableEntries = entries;
	return build;
}

static void write_entries(struct gpu *gpu, DXGKARG_BUILDPAGINGBUFFER build)
{
	assert_int_equal(gpu_build(gpu, &build), STATUS_SUCCESS);
	gpu_assert_completed(gpu_page(gpu));
}

static uint32_t index_of(uint32_t level)
{
	return (uint32_t)(AT >> (12 + 9 * level)) & 511;
}

static uint64_t table_of(uint32_t level)
{
	return ROOT + (LEVELS - 1 - level) * PAGE;
}

/* Tables in which the page of AT leads to `entry`, for the context of node 0. */
static void map(struct gpu *gpu, DXGK_PTE entry)
{
	const DXGKARG_SETROOTPAGETABLE root = {
		.hContext = gpu->context[0],
		.Address = {.SegmentId = VRAM, .SegmentOffset = ROOT},
		.NumEntries = 512};
	DXGK_PTE invalid = {{{0}}, {0}};

	for (uint32_t level = LEVELS; level-- > 0;) {
		DXGKARG_BUILDPAGINGBUFFER clear = update(level, table_of(level), 0, &invalid, 512);

		clear.UpdatePageTable.Flags.Repeat = clear.UpdatePageTable.Flags.InitialUpdate = 1;
		write_entries(gpu, clear);
	}
	for (uint32_t level = LEVELS; level-- > 1;) {
		DXGK_PTE next = pte(VRAM, table_of(level - 1));

		write_entries(gpu, update(level, table_of(level), index_of(level), &next, 1));
	}
	write_entries(gpu, update(0, table_of(0), index_of(0), &entry, 1));
	gpu->ddi.DxgkDdiSetRootPageTable(gpu->adapter, &root);
}

static void flush(struct gpu *gpu)
{
	DXGKARG_BUILDPAGINGBUFFER build = {.Operation = DXGK_OPERATION_FLUSH_TLB};

	build.FlushTlb.RootPageTableAddress.SegmentId = VRAM;
	build.FlushTlb.RootPageTableAddress.SegmentOffset = ROOT;
	write_entries(gpu, build);
}

static const DXGKARGCB_NOTIFY_INTERRUPT_DATA *run(struct gpu *gpu, uint64_t at, uint32_t bytes)
{
	uint32_t index = gpu->interrupt_count, irql = vmm_nt_raise(gpu->nt, VMM_NT_DISPATCH);
	const DXGKARG_SUBMITCOMMANDVIRTUAL submit = {.hContext = gpu->context[0],
						     .DmaBufferVirtualAddress = at,
						     .DmaBufferSize = bytes,
						     .SubmissionFenceId = 7 + index};

	assert_int_equal(gpu->ddi.DxgkDdiSubmitCommandVirtual(gpu->adapter, &submit),
			 STATUS_SUCCESS);
	vmm_nt_lower(gpu->nt, irql);
	gpu_wait_interrupts(gpu, index + 1);
	return &gpu->interrupts[index];
}

static void expect_fault(const DXGKARGCB_NOTIFY_INTERRUPT_DATA *data, uint64_t at, uint32_t level,
			 DXGK_GENERAL_ERROR_CODE code)
{
	assert_int_equal(data->InterruptType, DXGK_INTERRUPT_DMA_PAGE_FAULTED);
	assert_int_equal(data->DmaPageFaulted.FaultedVirtualAddress, at);
	assert_int_equal(data->DmaPageFaulted.PageTableLevel, level);
	assert_int_equal(data->DmaPageFaulted.FaultErrorCode.GeneralErrorCode, code);
	assert_int_equal(data->DmaPageFaulted.FaultErrorCode.IsDeviceSpecificCode, 0);
}

static void commands_are_found_through_all_levels(void **state)
{
	struct gpu *gpu = start();
	struct softgpu_stall stall = {{SOFTGPU_STALL, 0, sizeof(stall)}, 1000};

	(void)state;
	map(gpu, pte(VRAM, DATA));
	memcpy(gpu->vram.base + DATA + 8, &stall, sizeof(stall));
	gpu_assert_completed(run(gpu, AT + 8, sizeof(stall)));
	gpu_assert_completed(run(gpu, AT + 8, 0));
	expect_fault(run(gpu, AT + 8, 8), AT + 8, 0, DXGK_GENERAL_ERROR_INVALID_INSTRUCTION);
	expect_fault(run(gpu, AT + PAGE, 8), AT + PAGE, 0, DXGK_GENERAL_ERROR_PAGE_FAULT);
	gpu_stop(gpu);
}

static void system_pages_are_reached_by_their_bus_address(void **state)
{
	struct gpu *gpu = start();
	struct softgpu_stall stall = {{SOFTGPU_STALL, 0, sizeof(stall)}, 1000};

	(void)state;
	map(gpu, pte(0, gpu->system_physical + 3 * PAGE));
	memcpy(gpu->system.base + 3 * PAGE, &stall, sizeof(stall));
	gpu_assert_completed(run(gpu, AT, sizeof(stall)));
	DXGK_PTE nowhere = pte(0, (uint64_t)1 << 50);
	write_entries(gpu, update(0, table_of(0), index_of(0), &nowhere, 1));
	flush(gpu);
	expect_fault(run(gpu, AT, sizeof(stall)), AT, 0, DXGK_GENERAL_ERROR_PAGE_FAULT);
	gpu_stop(gpu);
}

static void a_fault_has_the_level_of_the_invalid_entry(void **state)
{
	struct gpu *gpu = start();
	DXGK_PTE invalid = {{{0}}, {0}};

	(void)state;
	for (uint32_t level = 0; level < LEVELS; level++) {
		map(gpu, pte(VRAM, DATA));
		write_entries(gpu, update(level, table_of(level), index_of(level), &invalid, 1));
		flush(gpu);
		expect_fault(run(gpu, AT, 8), AT, level, DXGK_GENERAL_ERROR_PAGE_FAULT);
	}
	/* a root that is not there, and addresses beyond 48 bits */
	const DXGKARG_SETROOTPAGETABLE none = {.hContext = gpu->context[0]};
	map(gpu, pte(VRAM, DATA));
	expect_fault(run(gpu, AT | (uint64_t)1 << 48, 8), AT | (uint64_t)1 << 48, LEVELS - 1,
		     DXGK_GENERAL_ERROR_PAGE_FAULT);
	gpu->ddi.DxgkDdiSetRootPageTable(gpu->adapter, &none);
	flush(gpu);
	expect_fault(run(gpu, AT, 8), AT, LEVELS - 1, DXGK_GENERAL_ERROR_PAGE_FAULT);
	gpu_stop(gpu);
}

/* VA-13: the old page until the flush, the new one after it. */
static void a_translation_is_kept_until_it_is_flushed(void **state)
{
	struct gpu *gpu = start();
	struct softgpu_command nop = {SOFTGPU_NOP, 0, sizeof(nop)}, wrong = {99, 0, sizeof(wrong)};
	DXGK_PTE other = pte(VRAM, DATA + PAGE);

	(void)state;
	map(gpu, pte(VRAM, DATA));
	memcpy(gpu->vram.base + DATA, &nop, sizeof(nop));
	memcpy(gpu->vram.base + DATA + PAGE, &wrong, sizeof(wrong));
	gpu_assert_completed(run(gpu, AT, sizeof(nop)));
	write_entries(gpu, update(0, table_of(0), index_of(0), &other, 1));
	gpu_assert_completed(run(gpu, AT, sizeof(nop)));
	flush(gpu);
	expect_fault(run(gpu, AT, sizeof(nop)), AT, 0, DXGK_GENERAL_ERROR_INVALID_INSTRUCTION);
	gpu_stop(gpu);
}

/* PAG-07: each call writes what fits. */
static void an_update_continues_where_the_buffer_ended(void **state)
{
	struct gpu *gpu = start();
	DXGK_PTE entries[300];
	DXGKARG_BUILDPAGINGBUFFER build = update(0, ROOT, 100, entries, 300);

	(void)state;
	for (uint32_t i = 0; i < 300; i++)
		entries[i] = pte(VRAM, i * PAGE);
	build.DmaSize = 16;
	assert_int_equal(gpu_build(gpu, &build), STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER);
	assert_int_equal(build.MultipassOffset, 0);
	build.DmaSize = 24 + 8 * 120;
	assert_int_equal(gpu_build(gpu, &build), STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER);
	assert_int_equal(build.MultipassOffset, 120);
	gpu_assert_completed(gpu_page(gpu));
	build.DmaSize = 0;
	write_entries(gpu, build);
	for (uint32_t i = 0; i < 300; i++) {
		const uint64_t *entry = (const uint64_t *)(const void *)(gpu->vram.base + ROOT);

		assert_int_equal(entry[100 + i], i * PAGE | 1);
	}
	gpu_stop(gpu);
}

static void refuse(struct gpu *gpu, DXGKARG_BUILDPAGINGBUFFER build)
{
	assert_int_equal(gpu_build(gpu, &build), STATUS_INVALID_PARAMETER);
	assert_int_equal(gpu->paging_length, 0);
}

static void wrong_updates_are_refused(void **state)
{
	struct gpu *gpu = start();
	DXGK_PTE entry = pte(VRAM, DATA);
	DXGKARG_BUILDPAGINGBUFFER build;

	(void)state;
	build = update(LEVELS, ROOT, 0, &entry, 1);
	refuse(gpu, build);
	build = update(0, ROOT + 8, 0, &entry, 1);
	refuse(gpu, build);
	build = update(0, ROOT, 0, &entry, 0);
	refuse(gpu, build);
	build = update(0, 16 * MIB - PAGE, 512, &entry, 1);
	refuse(gpu, build);
	build = update(0, ROOT, 0, &entry, 1);
	build.UpdatePageTable.UpdateMode = DXGK_PAGETABLEUPDATE_GPU_VIRTUAL;
	refuse(gpu, build);
	build = update(0, ROOT, 0, &entry, 1);
	build.UpdatePageTable.PageTableAddress.GpuPhysical.SegmentId = APERTURE;
	refuse(gpu, build);
	build = update(0, ROOT, 0, &entry, 1);
	build.UpdatePageTable.Flags.Use64KBPages = 1;
	refuse(gpu, build);
	const DXGK_PTE wrong[] = {pte(APERTURE, DATA), pte(VRAM, 16 * MIB), pte(0, UINT64_MAX)};
	for (uint32_t i = 0; i < 3; i++) {
		entry = wrong[i];
		refuse(gpu, update(0, ROOT, 0, &entry, 1));
	}
	entry = pte(VRAM, DATA);
	entry.LargePage = 1;
	refuse(gpu, update(0, ROOT, 0, &entry, 1));
	entry = pte(0, gpu->system_physical); /* tables are in video memory */
	refuse(gpu, update(1, ROOT, 0, &entry, 1));
	entry = pte(VRAM, DATA);
	entry.Zero = 1;
	refuse(gpu, update(1, ROOT, 0, &entry, 1));
	build = (DXGKARG_BUILDPAGINGBUFFER){.Operation = DXGK_OPERATION_FLUSH_TLB};
	refuse(gpu, build);
	build.FlushTlb.RootPageTableAddress.SegmentId = VRAM;
	build.FlushTlb.StartVirtualAddress = 2 * PAGE;
	build.FlushTlb.EndVirtualAddress = PAGE;
	refuse(gpu, build);
	gpu_stop(gpu);
}

static void model_1_has_no_page_tables(void **state)
{
	struct gpu *gpu = gpu_start(NULL, 16 * MIB);
	DXGK_PTE entry = pte(VRAM, DATA);
	DXGKARG_BUILDPAGINGBUFFER build = update(0, ROOT, 0, &entry, 1);

	(void)state;
	assert_int_equal(gpu_build(gpu, &build), STATUS_NOT_SUPPORTED);
	build = (DXGKARG_BUILDPAGINGBUFFER){.Operation = DXGK_OPERATION_FLUSH_TLB};
	assert_int_equal(gpu_build(gpu, &build), STATUS_NOT_SUPPORTED);
	assert_int_equal(gpu->ddi.Version, 0x4002);
	assert_null(gpu->ddi.DxgkDdiSubmitCommandVirtual);
	gpu_stop(gpu);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commands_are_found_through_all_levels),
		cmocka_unit_test(system_pages_are_reached_by_their_bus_address),
		cmocka_unit_test(a_fault_has_the_level_of_the_invalid_entry),
		cmocka_unit_test(a_translation_is_kept_until_it_is_flushed),
		cmocka_unit_test(an_update_continues_where_the_buffer_ended),
		cmocka_unit_test(wrong_updates_are_refused),
		cmocka_unit_test(model_1_has_no_page_tables),
	};

	return cmocka_run_group_tests_name("softgpu_page_table", tests, NULL, NULL);
}
