/* SPDX-License-Identifier: MIT */
/*
 * The SEG rules that the start checks: for each, a miniport that violates it and one that must be
 * accepted.
 */
#include "port_fixture.h"

#include <string.h>

#define TEST(name) cmocka_unit_test_setup_teardown(name, port_fixture_setup, port_fixture_teardown)
#define MIB        ((uint64_t)1 << 20)

enum {
	APERTURE = 0x1,
	AGP = 0x2,
	CPU_VISIBLE = 0x4,
	USE_BANKING = 0x8,
	CACHE_COHERENT = 0x10,
	PITCH_ALIGNMENT = 0x20,
	FROM_SYSTEM_MEMORY = 0x40,
	STANDBY = 0x80,
	HIBERNATE = 0x100,
	PARTIAL_HIBERNATE = 0x200,
	DIRECT_FLIP = 0x400,
	USE_64KB_PAGES = 0x800,
};

static struct scripted_segment *segment(struct port_fixture *f, uint32_t id)
{
	return &f->m->settings.segment[id - 1];
}

static void resize(struct port_fixture *f, uint32_t id, uint64_t size_bytes)
{
	segment(f, id)->size_bytes = size_bytes;
	segment(f, id)->commit_limit_bytes = size_bytes;
}

static void seg_01_ids_start_at_1(void **state)
{
	struct port_fixture *f = *state;
	const struct vmm_port_caps *caps;

	port_fixture_run(f);
	caps = vmm_port_caps(f->port);
	assert_int_equal(caps->segment_count, 2);
	assert_int_equal(caps->segment[0].id, 1);
	assert_int_equal(caps->segment[1].id, 2);
	assert_int_equal(caps->segment[0].gpu_base, SCRIPTED_MEMORY_BASE);
	assert_int_equal(caps->segment[0].size_bytes, SCRIPTED_BAR_BYTES);
	assert_int_equal(caps->segment[0].commit_limit_bytes, SCRIPTED_BAR_BYTES);
	assert_int_equal(caps->segment[0].bank_count, 0);
	assert_true(caps->segment[1].flags.Aperture);
}

static void seg_02_segments_are_queried_in_two_passes(void **state)
{
	struct port_fixture *f = *state;

	port_fixture_run(f);
	assert_int_equal(scripted_count(f->m, VIDMM_DDI_QUERY_ADAPTER_INFO), 3);
	assert_int_equal(
		scripted_nth(f->m, VIDMM_DDI_QUERY_ADAPTER_INFO, 1)->in.query.InputDataSize,
		sizeof(DXGK_QUERYSEGMENTIN));
	assert_int_equal(
		scripted_nth(f->m, VIDMM_DDI_QUERY_ADAPTER_INFO, 2)->in.query.OutputDataSize,
		sizeof(DXGK_QUERYSEGMENTOUT3));
}

static void seg_02_a_changed_count_is_refused(void **state)
{
	struct port_fixture *f = *state;

	f->m->settings.second_segment_count = 1;
	assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-02",
		       "first 2 segments were reported, then 1");
}

static void put_one_more(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	DXGK_QUERYSEGMENTOUT3 *out = call->args;

	(void)context, (void)m;
	if (call->ddi == VIDMM_DDI_QUERY_ADAPTER_INFO &&
	    call->in.query.Type == DXGKQAITYPE_QUERYSEGMENT3 && out->pSegmentDescriptor)
		out->pSegmentDescriptor[2].Size = 1;
}

static void seg_02_more_segments_than_counted_are_refused(void **state)
{
	struct port_fixture *f = *state;

	f->m->hook = put_one_more;
	assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-02", "more than 144 bytes");
}

static void seg_02_an_adapter_without_segments_is_refused(void **state)
{
	struct port_fixture *f = *state;

	f->m->settings.segment_count = 0;
	assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-02", "no segment");
}

static void many_segments(struct port_fixture *f, uint32_t count)
{
	f->m->settings.segment_count = count;
	for (uint32_t i = 2; i < count; i++)
		f->m->settings.segment[i] = (struct scripted_segment){.flags = APERTURE,
								      .base = (4096 + i) * MIB,
								      .size_bytes = MIB,
								      .commit_limit_bytes = MIB};
}

static void dma_20_an_adapter_with_32_segments_is_refused(void **state)
{
	struct port_fixture *f = *state;

	many_segments(f, 32);
	assert_refused(f, STATUS_INVALID_PARAMETER, "DMA-20", "32 segments");
}

static void dma_20_an_adapter_with_31_segments_starts(void **state)
{
	struct port_fixture *f = *state;

	many_segments(f, 31);
	port_fixture_run(f);
	assert_int_equal(vmm_port_caps(f->port)->segment[30].id, 31);
	assert_int_equal(vmm_port_caps(f->port)->segment[30].gpu_base, (4096 + 30) * MIB);
}

static void seg_03_a_size_of_partial_pages_is_refused(void **state)
{
	struct port_fixture *f = *state;

	resize(f, 2, 4097);
	assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-03", "segment 2 has Size 4097");
	resize(f, 2, 0);
	assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-03", "Size 0");
	resize(f, 2, 4096);
	port_fixture_run(f);
}

static void seg_03_the_first_segment_descriptor_is_checked_too(void **state)
{
	struct port_fixture *f = *state;

	scripted_set_version(f->m, DXGKDDI_INTERFACE_VERSION_WIN7);
	resize(f, 1, 4097);
	assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-03", "segment 1 has Size 4097");
}

/* Before 2.0 the limit must be the size. A driver that leaves it 0 starts, after a finding. */
static void seg_04_the_size_of_a_memory_segment_counts(void **state)
{
	struct port_fixture *f = *state;

	for (uint64_t limit = 0; limit <= 8 * MIB; limit += 8 * MIB) {
		segment(f, 1)->commit_limit_bytes = limit;
		assert_int_equal(port_fixture_start(f), STATUS_SUCCESS);
		assert_finding(f, "SEG-04", "memory segment 1 of 16777216 bytes has CommitLimit");
		assert_int_equal(vmm_port_caps(f->port)->segment[0].commit_limit_bytes,
				 SCRIPTED_BAR_BYTES);
		port_fixture_stop(f);
		f->findings = 0;
	}
	scripted_set_version(f->m, DXGKDDI_INTERFACE_VERSION_WDDM2_0);
	port_fixture_run(f); /* from 2.0 on the member has no meaning there */
	assert_int_equal(vmm_port_caps(f->port)->segment[0].commit_limit_bytes, SCRIPTED_BAR_BYTES);
}

static void seg_04_an_aperture_commit_limit_above_its_size_is_refused(void **state)
{
	struct port_fixture *f = *state;

	segment(f, 2)->commit_limit_bytes = SCRIPTED_APERTURE_BYTES + 4096;
	assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-04", "aperture segment 2");
}

static void seg_04_aperture_may_commit_less(void **state)
{
	struct port_fixture *f = *state;

	segment(f, 2)->commit_limit_bytes = 4 * MIB;
	port_fixture_run(f);
	assert_int_equal(vmm_port_caps(f->port)->segment[1].commit_limit_bytes, 4 * MIB);
}

static void seg_04_an_aperture_commit_limit_of_zero_means_its_size(void **state)
{
	struct port_fixture *f = *state;

	segment(f, 2)->commit_limit_bytes = 0;
	port_fixture_run(f);
	assert_int_equal(vmm_port_caps(f->port)->segment[1].commit_limit_bytes,
			 SCRIPTED_APERTURE_BYTES);
}

static void seg_06_an_agp_segment_is_refused_without_agp(void **state)
{
	struct port_fixture *f = *state;

	segment(f, 2)->flags = AGP;
	assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-06", "AgpApertureSize 0");
	segment(f, 2)->flags = AGP | CPU_VISIBLE;
	assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-06", "flags 0x6");
}

static void seg_08_cpu_address_is_in_the_bar(void **state)
{
	struct port_fixture *f = *state;
	uint64_t offset = 1;

	port_fixture_run(f);
	assert_int_equal(vmm_port_caps(f->port)->segment[0].cpu_base.value, f->m->bar_physical);
	assert_ptr_equal(vmm_port_segment_memory(f->port, 1, &offset)->base, f->m->bar);
	assert_int_equal(offset, 0);
}

static void seg_08_a_segment_at_an_offset_in_the_bar_is_accepted(void **state)
{
	struct port_fixture *f = *state;
	uint64_t offset = 0;

	resize(f, 1, 4 * MIB);
	segment(f, 1)->bar_offset = (int64_t)(12 * MIB);
	port_fixture_run(f);
	assert_non_null(vmm_port_segment_memory(f->port, 1, &offset));
	assert_int_equal(offset, 12 * MIB);
}

static void seg_08_a_segment_past_the_end_of_the_bar_is_refused(void **state)
{
	struct port_fixture *f = *state;

	segment(f, 1)->bar_offset = 4096;
	assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-08", "segment 1 is CpuVisible at 0x");
	segment(f, 1)->bar_offset = -4096;
	assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-08", "inside one BAR");
}

static void seg_08_an_unaligned_cpu_address_is_refused(void **state)
{
	struct port_fixture *f = *state;

	resize(f, 1, MIB);
	segment(f, 1)->bar_offset = 512;
	assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-08", "whole pages");
}

/* System memory that the platform knows by its physical address, as a miniport allocates it. */
static void seg_08_contiguous_system_memory_is_accepted(void **state)
{
	struct port_fixture *f = *state;
	uint64_t physical = vmm_nt_phys_reserve(f->nt, 4 * MIB), offset;
	struct vmm_os_memory memory;

	assert_int_equal(vmm_os_memory_create(f->os, "contiguous", 4 * MIB, &memory), VMM_OK);
	assert_int_equal(vmm_nt_phys_add(f->nt, physical, &memory, MIB, 3 * MIB), VMM_OK);
	segment(f, 1)->cpu_address = physical + MIB;
	resize(f, 1, 2 * MIB);
	port_fixture_run(f);
	assert_ptr_equal(vmm_port_segment_memory(f->port, 1, &offset)->base, memory.base);
	assert_int_equal(offset, 2 * MIB);
	port_fixture_stop(f);
	resize(f, 1, 3 * MIB); /* ends behind the range */
	assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-08", "range of system memory");
	segment(f, 1)->cpu_address = physical - MIB;
	assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-08", "segment 1 is CpuVisible at 0x");
	vmm_nt_phys_remove(f->nt, physical);
	vmm_os_memory_destroy(&memory);
}

/* A miniport that frees its segment loses it only when the adapter stops. */
static void nt_12_seg_08_a_segment_in_freed_memory_stays_until_the_stop(void **state)
{
	const PHYSICAL_ADDRESS anywhere = {.QuadPart = -1};
	struct port_fixture *f = *state;
	char *block = MmAllocateContiguousMemory(2 * MIB, anywhere);
	uint64_t physical = (uint64_t)MmGetPhysicalAddress(block).QuadPart, offset;

	segment(f, 1)->cpu_address = physical;
	resize(f, 1, MIB);
	port_fixture_run(f);
	MmFreeContiguousMemory(block);
	assert_int_equal(f->violations, 1);
	assert_non_null(strstr(f->violation, "NT-12: 2097152 bytes"));
	assert_ptr_equal(vmm_port_segment_memory(f->port, 1, &offset)->base, block);
	block[0] = 1;
	MmFreeContiguousMemory(block);
	assert_int_equal(f->violations, 2);
	assert_non_null(strstr(f->violation, "freed before"));
	f->violations = 0;
	port_fixture_stop(f);
	assert_null(vmm_nt_phys_lookup(f->nt, physical, 1));
	/* A stopped adapter keeps nothing. */
	block = MmAllocateContiguousMemory(2 * MIB, anywhere);
	segment(f, 1)->cpu_address = (uint64_t)MmGetPhysicalAddress(block).QuadPart;
	port_fixture_run(f);
	port_fixture_stop(f);
	MmFreeContiguousMemory(block);
	assert_int_equal(f->violations, 0);
}

/* One start reports what is wrong with a segment completely. */
static void seg_03_seg_08_all_faults_of_a_segment_are_found_at_once(void **state)
{
	struct port_fixture *f = *state;

	resize(f, 1, 4097);
	segment(f, 1)->bar_offset = 512;
	assert_int_equal(port_fixture_start(f), STATUS_INVALID_PARAMETER);
	assert_int_equal(f->findings, 2);
	assert_finding(f, "SEG-08", "segment 1 is CpuVisible");
}

static void seg_08_invisible_memory_needs_no_address(void **state)
{
	struct port_fixture *f = *state;
	uint64_t offset;

	segment(f, 1)->flags = 0;
	segment(f, 1)->bar_offset = -12345;
	port_fixture_run(f);
	assert_null(vmm_port_segment_memory(f->port, 1, &offset));
}

/* memory that is not CPU-visible, but that a swizzling range may show. */
static void swz_24_the_bar_address_of_invisible_memory_is_recorded(void **state)
{
	struct port_fixture *f = *state;
	uint64_t offset = 0;

	resize(f, 1, 4 * MIB);
	segment(f, 1)->flags = 0;
	segment(f, 1)->bar_offset = (int64_t)(8 * MIB);
	segment(f, 2)->bar_offset = (int64_t)(8 * MIB); /* an aperture is in no BAR */
	port_fixture_run(f);
	assert_null(vmm_port_segment_memory(f->port, 1, &offset));
	assert_ptr_equal(vmm_port_hidden_memory(f->port, 1, &offset)->base, f->m->bar);
	assert_int_equal(offset, 8 * MIB);
	assert_null(vmm_port_hidden_memory(f->port, 2, &offset));
	uint64_t bar = f->m->bar_physical;
	assert_false(vmm_port_is_segment_memory(f->port, bar, 8 * MIB));
	assert_true(vmm_port_is_segment_memory(f->port, bar, 8 * MIB + 1));
	assert_true(vmm_port_is_segment_memory(f->port, bar + 9 * MIB, 4096));
	assert_true(vmm_port_is_segment_memory(f->port, bar + 12 * MIB - 1, 4096));
	assert_false(vmm_port_is_segment_memory(f->port, bar + 12 * MIB, 4096));
}

/* An address outside the BAR, or not wholly inside, counts as none. */
static void swz_24_invisible_memory_may_have_no_bar_address(void **state)
{
	static const int64_t nowhere[] = {-12345, 512, (int64_t)(15 * MIB)};
	struct port_fixture *f = *state;
	uint64_t offset;

	resize(f, 1, 4 * MIB);
	segment(f, 1)->flags = 0;
	for (uint32_t i = 0; i < 3; i++) {
		segment(f, 1)->bar_offset = nowhere[i];
		port_fixture_run(f);
		assert_null(vmm_port_hidden_memory(f->port, 1, &offset));
		port_fixture_stop(f);
	}
}

static void seg_08_cpu_visible_is_ignored_on_an_aperture(void **state)
{
	struct port_fixture *f = *state;
	uint64_t offset;

	segment(f, 2)->flags |= CPU_VISIBLE;
	segment(f, 2)->bar_offset = -12345;
	port_fixture_run(f);
	assert_false(vmm_port_caps(f->port)->segment[1].flags.CpuVisible);
	assert_null(vmm_port_segment_memory(f->port, 2, &offset));
}

static void seg_09_cache_coherent_is_ignored_on_a_memory_segment(void **state)
{
	struct port_fixture *f = *state;

	segment(f, 1)->flags |= CACHE_COHERENT;
	port_fixture_run(f);
	assert_false(vmm_port_caps(f->port)->segment[0].flags.CacheCoherent);
	assert_true(vmm_port_caps(f->port)->segment[1].flags.CacheCoherent);
}

static void seg_10_pitch_alignment_is_recorded(void **state)
{
	struct port_fixture *f = *state;

	segment(f, 1)->flags |= PITCH_ALIGNMENT | FROM_SYSTEM_MEMORY | DIRECT_FLIP;
	port_fixture_run(f);
	assert_true(vmm_port_caps(f->port)->segment[0].flags.PitchAlignment);
	assert_false(vmm_port_caps(f->port)->segment[0].flags.CpuVisible); /* */
}

static void seg_10_an_aperture_with_pitch_alignment_is_used_without_it(void **state)
{
	struct port_fixture *f = *state;

	segment(f, 2)->flags |= PITCH_ALIGNMENT;
	port_fixture_run(f);
	assert_non_null(strstr(f->reason, "PitchAlignment of an aperture is not built"));
	assert_false(vmm_port_caps(f->port)->segment[1].flags.PitchAlignment);
	assert_true(vmm_port_caps(f->port)->segment[1].unpitched);
}

/* ---- banks ---- */

static void bank(struct port_fixture *f, uint32_t count, SIZE_T *table)
{
	segment(f, 1)->flags |= USE_BANKING;
	segment(f, 1)->bank_count = count;
	segment(f, 1)->bank_table = table;
}

static void seg_12_banks_are_recorded_and_the_last_end_is_added(void **state)
{
	static SIZE_T table[] = {4 << 20, 6 << 20};
	struct port_fixture *f = *state;
	const struct vmm_port_segment *s;

	bank(f, 3, table);
	port_fixture_run(f);
	s = &vmm_port_caps(f->port)->segment[0];
	assert_int_equal(s->bank_count, 3);
	assert_int_equal(s->bank_end[0], 4 * MIB);
	assert_int_equal(s->bank_end[1], 6 * MIB);
	assert_int_equal(s->bank_end[2], 16 * MIB);
}

static void seg_12_one_bank_needs_no_table(void **state)
{
	struct port_fixture *f = *state;

	bank(f, 1, NULL);
	port_fixture_run(f);
	assert_int_equal(vmm_port_caps(f->port)->segment[0].bank_end[0], 16 * MIB);
}

static void seg_12_bank_ends_that_do_not_rise_are_refused(void **state)
{
	static SIZE_T falling[] = {6 << 20, 4 << 20}, first[] = {0};
	struct port_fixture *f = *state;

	bank(f, 3, falling);
	assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-12",
		       "bank 2 ends at 4194304, must be inside the segment and after "
		       "the end of the previous one at 6291456");
	bank(f, 2, first);
	assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-12", "bank 1 ends at 0");
}

static void seg_12_a_bank_end_past_the_segment_is_refused(void **state)
{
	static SIZE_T table[] = {17 << 20};
	struct port_fixture *f = *state;

	bank(f, 2, table);
	assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-12", "bank 1 ends at 17825792");
}

static void seg_12_zero_or_too_many_banks_or_no_table_is_refused(void **state)
{
	static SIZE_T table[] = {1};
	struct port_fixture *f = *state;

	bank(f, 0, table);
	assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-12", "0 banks");
	bank(f, 2, NULL);
	assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-12", "no table");
	bank(f, 129, table);
	assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-12", "129 banks");
}

static void seg_12_table_is_not_read_without_the_flag(void **state)
{
	struct port_fixture *f = *state;

	segment(f, 1)->bank_count = 50;
	segment(f, 1)->bank_table = (SIZE_T *)(uintptr_t)0x10;
	port_fixture_run(f);
	assert_int_equal(vmm_port_caps(f->port)->segment[0].bank_count, 0);
}

/* ---- the paging buffer ---- */

static void seg_21_a_paging_buffer_in_an_aperture_is_accepted(void **state)
{
	struct port_fixture *f = *state;

	f->m->settings.paging_segment = 2;
	port_fixture_run(f);
	assert_int_equal(vmm_port_caps(f->port)->paging_buffer_segment, 2);
}

static void seg_21_a_paging_buffer_in_a_memory_segment_is_refused(void **state)
{
	struct port_fixture *f = *state;

	f->m->settings.paging_segment = 1;
	assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-21",
		       "PagingBufferSegmentId is 1, which is a memory segment");
}

static void seg_21_a_paging_buffer_in_a_missing_segment_is_refused(void **state)
{
	struct port_fixture *f = *state;

	f->m->settings.paging_segment = 3;
	assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-21", "no segment");
}

static void seg_21_a_paging_buffer_of_size_zero_is_refused(void **state)
{
	struct port_fixture *f = *state;

	f->m->settings.paging_bytes = 0;
	assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-21", "PagingBufferSize is 0");
}

/* ---- preservation: all eight combinations ---- */

static void seg_22_pnp_06_all_combinations_of_preservation_flags_are_checked(void **state)
{
	static const struct {
		uint32_t flags;
		bool legal;
	} combination[] = {
		{0, true},
		{STANDBY, true},
		{STANDBY | HIBERNATE, true},
		{STANDBY | PARTIAL_HIBERNATE, true},
		{HIBERNATE, false},
		{PARTIAL_HIBERNATE, false},
		{HIBERNATE | PARTIAL_HIBERNATE, false},
		{STANDBY | HIBERNATE | PARTIAL_HIBERNATE, false},
	};
	struct port_fixture *f = *state;

	for (size_t i = 0; i < VMM_ARRAY_LENGTH(combination); i++) {
		segment(f, 1)->flags = CPU_VISIBLE | combination[i].flags;
		if (!combination[i].legal) {
			assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-22", "PNP-06");
			continue;
		}
		assert_int_equal(port_fixture_start(f), STATUS_SUCCESS);
		assert_int_equal(vmm_port_caps(f->port)->segment[0].flags.Value,
				 segment(f, 1)->flags);
		port_fixture_stop(f);
	}
}

static void seg_24_flags_of_later_versions_are_refused(void **state)
{
	struct port_fixture *f = *state;

	segment(f, 1)->flags = CPU_VISIBLE | USE_64KB_PAGES;
	assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-24", "0x804");
	scripted_set_version(f->m, DXGKDDI_INTERFACE_VERSION_WIN7);
	segment(f, 1)->flags = CPU_VISIBLE | STANDBY;
	assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-24", "a 1.1 miniport");
}

/* ---- overlap ---- */

static void seg_27_overlapping_gpu_ranges_are_refused(void **state)
{
	struct port_fixture *f = *state;

	segment(f, 2)->base = SCRIPTED_MEMORY_BASE + 15 * MIB;
	assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-27",
		       "segments 1 and 2 share GPU addresses");
	segment(f, 2)->base = SCRIPTED_MEMORY_BASE - 15 * MIB;
	assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-27",
		       "segments 1 and 2 share GPU addresses");
}

static void seg_27_adjacent_segments_are_accepted(void **state)
{
	struct port_fixture *f = *state;

	segment(f, 2)->base = SCRIPTED_MEMORY_BASE + 16 * MIB;
	port_fixture_run(f);
}

static void seg_27_overlapping_cpu_ranges_are_refused(void **state)
{
	struct port_fixture *f = *state;

	f->m->settings.segment_count = 3;
	f->m->settings.segment[2] = (struct scripted_segment){.flags = CPU_VISIBLE,
							      .base = 8192 * MIB,
							      .size_bytes = MIB,
							      .commit_limit_bytes = MIB,
							      .bar_offset = (int64_t)(8 * MIB)};
	assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-27",
		       "segments 1 and 3 share CPU addresses");
	resize(f, 1, 8 * MIB);
	port_fixture_run(f);
}

static void seg_27_a_range_past_the_last_address_is_refused(void **state)
{
	struct port_fixture *f = *state;

	segment(f, 2)->base = UINT64_MAX - 4095;
	assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-27", "exceeds the last 64-bit address");
	segment(f, 2)->base = UINT64_MAX - SCRIPTED_APERTURE_BYTES + 1;
	port_fixture_run(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(seg_01_ids_start_at_1),
		TEST(seg_02_segments_are_queried_in_two_passes),
		TEST(seg_02_a_changed_count_is_refused),
		TEST(seg_02_more_segments_than_counted_are_refused),
		TEST(seg_02_an_adapter_without_segments_is_refused),
		TEST(dma_20_an_adapter_with_32_segments_is_refused),
		TEST(dma_20_an_adapter_with_31_segments_starts),
		TEST(seg_03_a_size_of_partial_pages_is_refused),
		TEST(seg_03_the_first_segment_descriptor_is_checked_too),
		TEST(seg_04_the_size_of_a_memory_segment_counts),
		TEST(seg_04_an_aperture_commit_limit_above_its_size_is_refused),
		TEST(seg_04_aperture_may_commit_less),
		TEST(seg_04_an_aperture_commit_limit_of_zero_means_its_size),
		TEST(seg_06_an_agp_segment_is_refused_without_agp),
		TEST(seg_08_cpu_address_is_in_the_bar),
		TEST(seg_08_a_segment_at_an_offset_in_the_bar_is_accepted),
		TEST(seg_08_a_segment_past_the_end_of_the_bar_is_refused),
		TEST(seg_08_an_unaligned_cpu_address_is_refused),
		TEST(seg_08_contiguous_system_memory_is_accepted),
		TEST(nt_12_seg_08_a_segment_in_freed_memory_stays_until_the_stop),
		TEST(seg_03_seg_08_all_faults_of_a_segment_are_found_at_once),
		TEST(seg_08_invisible_memory_needs_no_address),
		TEST(seg_08_cpu_visible_is_ignored_on_an_aperture),
		TEST(swz_24_the_bar_address_of_invisible_memory_is_recorded),
		TEST(swz_24_invisible_memory_may_have_no_bar_address),
		TEST(seg_09_cache_coherent_is_ignored_on_a_memory_segment),
		TEST(seg_10_pitch_alignment_is_recorded),
		TEST(seg_10_an_aperture_with_pitch_alignment_is_used_without_it),
		TEST(seg_12_banks_are_recorded_and_the_last_end_is_added),
		TEST(seg_12_one_bank_needs_no_table),
		TEST(seg_12_bank_ends_that_do_not_rise_are_refused),
		TEST(seg_12_a_bank_end_past_the_segment_is_refused),
		TEST(seg_12_zero_or_too_many_banks_or_no_table_is_refused),
		TEST(seg_12_table_is_not_read_without_the_flag),
		TEST(seg_21_a_paging_buffer_in_an_aperture_is_accepted),
		TEST(seg_21_a_paging_buffer_in_a_memory_segment_is_refused),
		TEST(seg_21_a_paging_buffer_in_a_missing_segment_is_refused),
		TEST(seg_21_a_paging_buffer_of_size_zero_is_refused),
		TEST(seg_22_pnp_06_all_combinations_of_preservation_flags_are_checked),
		TEST(seg_24_flags_of_later_versions_are_refused),
		TEST(seg_27_overlapping_gpu_ranges_are_refused),
		TEST(seg_27_adjacent_segments_are_accepted),
		TEST(seg_27_overlapping_cpu_ranges_are_refused),
		TEST(seg_27_a_range_past_the_last_address_is_refused),
	};

	return cmocka_run_group_tests_name("port_segments", tests, NULL, NULL);
}
