/* SPDX-License-Identifier: MIT */
/*
 * Starting a miniport of WDDM 2.x: structure sizes by version, physical adapter, one aperture,
 * invalid memory ranges.
 */
#include "port_fixture.h"

#include <string.h>

#define TEST(name) cmocka_unit_test_setup_teardown(name, port_fixture_setup, port_fixture_teardown)

#define PAGE 4096u

static void version_2(struct port_fixture *f)
{
	scripted_set_version(f->m, DXGKDDI_INTERFACE_VERSION_WDDM2_0);
	f->m->settings.caps.WDDMVersion = DXGKDDI_WDDMv2;
}

static const struct scripted_call *query_of(const struct port_fixture *f,
					    DXGK_QUERYADAPTERINFOTYPE type)
{
	const struct scripted_call *call;

	for (uint32_t i = 0; (call = scripted_nth(f->m, VIDMM_DDI_QUERY_ADAPTER_INFO, i)) != NULL;
	     i++)
		if (call->in.query.Type == type)
			return call;
	return NULL;
}

/* Published sizes of the structures of each version; nothing past their end is read or written. */
static void versions_2_0_to_3_2_start(void **state)
{
	static const struct {
		ULONG version;
		uint32_t caps_bytes, services_bytes;
	} cases[] = {
		{DXGKDDI_INTERFACE_VERSION_WDDM2_0, 576, 312},
		{DXGKDDI_INTERFACE_VERSION_WDDM2_1, 576, 328},
		{DXGKDDI_INTERFACE_VERSION_WDDM2_2, 576, 360},
		{DXGKDDI_INTERFACE_VERSION_WDDM2_3, 576, 368},
		{DXGKDDI_INTERFACE_VERSION_WDDM2_4, 584, 456},
		{DXGKDDI_INTERFACE_VERSION_WDDM2_7, 584, 480},
		{DXGKDDI_INTERFACE_VERSION_WDDM3_0, 592, 568},
		{DXGKDDI_INTERFACE_VERSION_WDDM3_1, 592, 568},
		{DXGKDDI_INTERFACE_VERSION_WDDM3_2, 592, 568},
		{DXGKDDI_INTERFACE_VERSION_WDDM3_2 + 0x7, 592, 568}, /* C-40: a revision of 3.2 */
	};
	struct port_fixture *f = *state;

	for (size_t i = 0; i < VMM_ARRAY_LENGTH(cases); i++) {
		const unsigned char *services = (const unsigned char *)&f->m->services;

		scripted_forget(f->m);
		scripted_set_version(f->m, cases[i].version);
		port_fixture_run(f);
		assert_int_equal(query_of(f, DXGKQAITYPE_DRIVERCAPS)->in.query.OutputDataSize,
				 cases[i].caps_bytes);
		assert_int_equal(f->m->services.Size, cases[i].services_bytes);
		for (size_t b = cases[i].services_bytes; b < sizeof(f->m->services); b++)
			assert_int_equal(services[b], 0);
		assert_non_null(f->m->services.DxgkCbAcquireHandleData);
		assert_int_equal(query_of(f, DXGKQAITYPE_QUERYSEGMENT4)->in.query.OutputDataSize,
				 sizeof(DXGK_QUERYSEGMENTOUT4));
		assert_true(vmm_port_caps(f->port)->wddm2);
		assert_int_equal(vmm_port_caps(f->port)->segment_count, 2);
		assert_int_equal(vmm_port_caps(f->port)->segment[0].gpu_base, SCRIPTED_MEMORY_BASE);
		assert_int_equal(vmm_port_caps(f->port)->segment[1].size_bytes,
				 SCRIPTED_APERTURE_BYTES);
		assert_nothing_found(f);
		port_fixture_stop(f);
	}
}

/*
 * A driver built with the headers of 2.0 that is one of WDDM 1.x: the structures of the table's
 * version, the model and the queries of WDDMVersion.
 */
static void q_164_the_driver_model_is_that_of_wddmversion(void **state)
{
	static const struct {
		uint32_t reported, interface;
	} older[] = {{DXGKDDI_WDDMv1_3, DXGKDDI_INTERFACE_VERSION_WDDM1_3},
		     {DXGKDDI_WDDMv1_2, DXGKDDI_INTERFACE_VERSION_WIN8},
		     {0x1105, DXGKDDI_INTERFACE_VERSION_WIN7},
		     {DXGKDDI_WDDMv1, DXGKDDI_INTERFACE_VERSION_VISTA_SP1}};
	struct port_fixture *f = *state;

	for (size_t i = 0; i < VMM_ARRAY_LENGTH(older); i++) {
		scripted_forget(f->m);
		version_2(f);
		f->m->settings.caps.WDDMVersion = (DXGK_WDDMVERSION)older[i].reported;
		port_fixture_run(f);
		assert_non_null(strstr(f->reason, "Q-164: WDDMVersion of DXGK_DRIVERCAPS is 0x1"));
		assert_false(vmm_port_caps(f->port)->wddm2);
		assert_int_equal(vmm_port_caps(f->port)->interface_version, older[i].interface);
		assert_int_equal(query_of(f, DXGKQAITYPE_DRIVERCAPS)->in.query.OutputDataSize, 576);
		assert_null(query_of(f, DXGKQAITYPE_PHYSICALADAPTERCAPS));
		assert_null(query_of(f, DXGKQAITYPE_QUERYSEGMENT4));
		assert_int_equal(f->m->services.Size, 312);
		port_fixture_stop(f);
	}
	assert_non_null(query_of(f, DXGKQAITYPE_QUERYSEGMENT)); /* of WDDM 1.0 and 1.1 */
}

static void q_164_other_values_of_wddmversion_change_nothing(void **state)
{
	static const DXGK_WDDMVERSION fine[] = {0, DXGKDDI_WDDMv2, DXGKDDI_WDDMv3_2};
	struct port_fixture *f = *state;

	version_2(f);
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(fine); i++) {
		f->m->settings.caps.WDDMVersion = fine[i];
		port_fixture_run(f);
		assert_true(vmm_port_caps(f->port)->wddm2);
		assert_int_equal(f->reasons, 0);
		port_fixture_stop(f);
	}
	scripted_set_version(f->m, DXGKDDI_INTERFACE_VERSION_WDDM1_3);
	f->m->settings.caps.WDDMVersion = DXGKDDI_WDDMv1_3;
	port_fixture_run(f);
	assert_int_equal(f->reasons, 0);
}

/* ---- references to handle data ---- */

/* Acquires two references and releases as many as the context says. */
static void hold_handle_data(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	DXGKARGCB_GETHANDLEDATA data = {.hObject = 0x40000123, .Type = DXGK_HANDLE_ALLOCATION};
	DXGKARGCB_RELEASEHANDLEDATA release = {0};
	const uint32_t *times = context;

	if (call->ddi != VIDMM_DDI_PATCH)
		return;
	for (int i = 0; i < 2; i++)
		assert_non_null(m->services.DxgkCbAcquireHandleData(&data, &release.ReleaseHandle));
	for (uint32_t i = 0; i < *times; i++)
		m->services.DxgkCbReleaseHandleData(release);
}

static void nt_24_references_to_handle_data_are_released_once(void **state)
{
	static const uint32_t cases[] = {2, 1, 3, 1};
	static const char *const texts[] = {NULL, "1 references of", "has no reference", NULL};
	DXGKARG_PATCH args = {.SubmissionFenceId = 1};
	struct port_fixture *f = *state;

	for (size_t i = 0; i < VMM_ARRAY_LENGTH(cases); i++) {
		uint32_t times = cases[i];

		f->options.verify = i != 3; /* the last case: without the option */
		scripted_forget(f->m);
		version_2(f);
		f->m->hook = hold_handle_data;
		f->m->hook_context = &times;
		port_fixture_run(f);
		assert_int_equal(vmm_port_patch(f->port, &args), STATUS_SUCCESS);
		port_fixture_stop(f);
		if (texts[i])
			assert_finding(f, "NT-24", texts[i]);
		else
			assert_nothing_found(f);
		f->findings = 0;
	}
}

/* ---- the kinds of miniports ---- */

static void compute_only(struct port_fixture *f)
{
	scripted_set_version(f->m, DXGKDDI_INTERFACE_VERSION_WDDM2_6);
	f->m->settings.caps.MiscCaps.ComputeOnly = 1;
	f->m->settings.table.DxgkDdiPresent = NULL;
	f->m->settings.table.DxgkDdiQueryCurrentFence = NULL;
}

static void pnp_01_a_compute_only_miniport_needs_no_present(void **state)
{
	struct port_fixture *f = *state;
	DXGKARG_PRESENT present = {0};
	UINT fence;

	compute_only(f);
	port_fixture_run(f);
	assert_int_equal(vmm_port_present(f->port, NULL, &present), STATUS_NOT_SUPPORTED);
	assert_non_null(strstr(f->reason, "PNP-01: the call needs DxgkDdiPresent"));
	assert_int_equal(vmm_port_query_current_fence(f->port, 0, &fence), STATUS_NOT_SUPPORTED);
	port_fixture_stop(f);
	f->m->settings.caps.MiscCaps.ComputeOnly = 0;
	assert_int_equal(port_fixture_start(f), STATUS_INVALID_PARAMETER);
	assert_int_equal(f->findings, 2);
	assert_finding(f, "PNP-01", "no DxgkDdiQueryCurrentFence: an adapter that is not");
}

static void pnp_01_gpu_virtual_addresses_replace_render_and_patch(void **state)
{
	struct port_fixture *f = *state;
	DXGKARG_PATCH patch = {.Flags.Paging = 1};
	DXGKARG_RENDER render = {0};

	version_2(f);
	f->m->settings.table.DxgkDdiRender = NULL;
	f->m->settings.table.DxgkDdiPatch = NULL;
	assert_refused(f, STATUS_INVALID_PARAMETER, "PNP-01",
		       "no DxgkDdiPatch: an adapter without GpuMmuSupported");
	scripted_mmu(f->m, 3, 1);
	port_fixture_run(f);
	assert_int_equal(vmm_port_render(f->port, NULL, &render), STATUS_NOT_SUPPORTED);
	assert_non_null(strstr(f->reason, "PNP-01: the call needs DxgkDdiRender"));
	assert_int_equal(vmm_port_patch(f->port, &patch), STATUS_SUCCESS); /* PAT-17 */
	port_fixture_stop(f);
	f->m->settings.table.DxgkDdiSubmitCommand = NULL;
	assert_int_equal(port_fixture_start(f), STATUS_NOT_SUPPORTED);
	assert_non_null(strstr(f->reason, "PNP-01: the table has no DxgkDdiSubmitCommand"));
	assert_nothing_found(f);
}

static void refuse_physical(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	const NTSTATUS *status = context;

	(void)m;
	if (call->ddi == VIDMM_DDI_QUERY_ADAPTER_INFO &&
	    call->in.query.Type == DXGKQAITYPE_PHYSICALADAPTERCAPS)
		call->status = *status;
}

/* The nodes and the paging node of DRIVERCAPS remain. */
static void sch_09_the_physical_adapter_may_stay_unanswered(void **state)
{
	NTSTATUS status = STATUS_NOT_SUPPORTED;
	struct port_fixture *f = *state;

	version_2(f);
	f->m->hook = refuse_physical;
	f->m->hook_context = &status;
	assert_int_equal(port_fixture_start(f), STATUS_SUCCESS);
	assert_finding(f, "SCH-09", "PHYSICALADAPTERCAPS) returned 0xc00000bb");
	assert_int_equal(vmm_port_caps(f->port)->node_count, 2);
	assert_int_equal(vmm_port_caps(f->port)->paging_node, 1);
	port_fixture_stop(f);
	f->findings = 0;
	compute_only(f); /* for which the query is optional */
	status = STATUS_INVALID_PARAMETER;
	port_fixture_run(f);
	port_fixture_stop(f);
	status = STATUS_UNSUCCESSFUL;
	assert_int_equal(port_fixture_start(f), STATUS_UNSUCCESSFUL);
}

/* All update modes start; a miniport that shares the CPU's page tables does not. */
static void va_11_every_update_mode_starts_with_gpummu_only(void **state)
{
	struct port_fixture *f = *state;
	DXGK_VIDMMCAPS *caps = &f->m->settings.caps.MemoryManagementCaps;

	version_2(f);
	scripted_mmu(f->m, 3, 1);
	f->m->settings.mmu.caps.PageTableUpdateMode = DXGK_PAGETABLEUPDATE_GPU_VIRTUAL;
	f->m->settings.mmu.caps.LegacyBehaviors.SourcePageTableVaInTransfer = 1;
	port_fixture_run(f);
	assert_nothing_found(f);
	port_fixture_stop(f);
	caps->GpuMmuSupported = 0;
	caps->IoMmuSupported = 1;
	assert_int_equal(port_fixture_start(f), STATUS_NOT_SUPPORTED);
	assert_int_equal(f->findings, 0);
	assert_non_null(strstr(f->reason, "GpuMmu model"));
	caps->VirtualAddressingSupported = caps->IoMmuSupported = 0;
	port_fixture_run(f);
}

static void va_11_page_tables_have_two_to_six_levels(void **state)
{
	struct port_fixture *f = *state;

	version_2(f);
	for (uint32_t levels = 1; levels <= 7; levels++) {
		if (levels == 6)
			continue;
		scripted_mmu(f->m, levels, 1);
		if (levels == 1 || levels == 7) {
			assert_refused(f, STATUS_INVALID_PARAMETER, "VA-11", "must be 2 to 6");
			continue;
		}
		assert_int_equal(port_fixture_start(f), STATUS_SUCCESS);
		assert_int_equal(vmm_port_caps(f->port)->gpummu.caps.PageTableLevelCount, levels);
		assert_nothing_found(f);
		port_fixture_stop(f);
	}
}

/* The CPU sets up the tables of the paging process, so it must see them. */
static void check_paging_segments(struct port_fixture *f)
{
	DXGK_PAGE_TABLE_LEVEL_DESC *level = f->m->settings.mmu.level;
	const uint32_t flags = f->m->settings.segment[0].flags;

	scripted_mmu(f->m, 3, 1);
	level[0].PagingProcessPageTableSegmentId = 3;
	assert_refused(f, STATUS_INVALID_PARAMETER, "VA-11", "does not exist");
	level[0].PagingProcessPageTableSegmentId = 2;
	assert_refused(f, STATUS_INVALID_PARAMETER, "VA-11", "CPU-visible memory segment");
	level[0].PagingProcessPageTableSegmentId = 1;
	f->m->settings.segment[0].flags &= ~0x4u; /* CpuVisible */
	assert_refused(f, STATUS_INVALID_PARAMETER, "VA-11", "CPU-visible memory segment");
	f->m->settings.segment[0].flags = flags;
	level[0].PagingProcessPageTableSegmentId = 0;
	level[0].PageTableSizeInBytes = 8192;
	assert_refused(f, STATUS_INVALID_PARAMETER, "VA-11", "paging process in system memory");
	level[0].PagingProcessPageTableSegmentId = 1;
	port_fixture_run(f);
	assert_nothing_found(f);
	port_fixture_stop(f);
}

static void va_11_page_table_level_descriptions_are_checked(void **state)
{
	struct port_fixture *f = *state;
	struct scripted_mmu_settings *mmu = &f->m->settings.mmu;
	const struct {
		uint32_t segment, bits, bytes, alignment;
		const char *what;
	} bad[] = {{1, 0, 4096, 0, "1 to 24 bits"},
		   {1, 25, 4096, 0, "1 to 24 bits"},
		   {1, 8, 0, 0, "must report its size"},
		   {1, 8, 6000, 0, "multiple of 4096"},
		   {3, 8, 4096, 0, "does not exist"},
		   {2, 8, 4096, 0, "a memory segment"},
		   {0, 8, 8192, 0, "not exceed 4 KB"},
		   {1, 9, 4096, 0, "VirtualAddressBitCount"},
		   {1, 8, 4096, 12288, "PageTableAlignmentInBytes 12288: the alignment must be 0"},
		   {1, 8, 4096, 0xFFFFFFFF, "a power of two"},
		   {0, 8, 4096, 8192, "must not exceed 4096"}};

	version_2(f);
	for (uint32_t i = 0; i < VMM_ARRAY_LENGTH(bad); i++) {
		scripted_mmu(f->m, 3, 1);
		mmu->level[1].PageTableSegmentId = bad[i].segment;
		mmu->level[1].PageTableIndexBitCount = bad[i].bits;
		mmu->level[1].PageTableSizeInBytes = bad[i].bytes;
		mmu->level[1].PageTableAlignmentInBytes = bad[i].alignment;
		assert_refused(f, STATUS_INVALID_PARAMETER, "VA-11", bad[i].what);
	}
	for (uint32_t i = 0; i < 2; i++) { /* valid: less than a page, more than a page */
		scripted_mmu(f->m, 3, 1);
		mmu->level[1].PageTableAlignmentInBytes = i ? 1u << 20 : 16;
		port_fixture_run(f);
		assert_nothing_found(f);
		port_fixture_stop(f);
	}
	scripted_mmu(f->m, 3, 1);
	mmu->caps.PageTableUpdateMode = DXGK_PAGETABLEUPDATE_CPU_VIRTUAL;
	assert_refused(f, STATUS_INVALID_PARAMETER, "VA-11", "CPU_VIRTUAL");
	check_paging_segments(f);
	scripted_mmu(f->m, 2, 1);
	f->m->settings.table.DxgkDdiGetRootPageTableSize = NULL;
	assert_refused(f, STATUS_INVALID_PARAMETER, "VA-11", "GetRootPageTableSize");
	scripted_mmu(f->m, 3, 1); /* an MMU whose root page table has a fixed size */
	f->m->settings.table.DxgkDdiGetRootPageTableSize = NULL;
	port_fixture_run(f);
	assert_nothing_found(f);
}

static void va_15_virtual_addressing_needs_one_mmu(void **state)
{
	struct port_fixture *f = *state;
	DXGK_VIDMMCAPS *caps = &f->m->settings.caps.MemoryManagementCaps;

	version_2(f);
	caps->VirtualAddressingSupported = 1;
	assert_refused(f, STATUS_INVALID_PARAMETER, "VA-15", "0x20");
	caps->GpuMmuSupported = caps->IoMmuSupported = 1;
	assert_refused(f, STATUS_INVALID_PARAMETER, "VA-15", "0xe0");
	caps->VirtualAddressingSupported = caps->GpuMmuSupported = caps->IoMmuSupported = 0;
	port_fixture_run(f);
}

/* Below 2.0 these bits are ignored. */
static void va_15_virtual_addressing_caps_are_ignored_before_2_0(void **state)
{
	struct port_fixture *f = *state;

	f->m->settings.caps.MemoryManagementCaps.VirtualAddressingSupported = 1;
	port_fixture_run(f);
	assert_nothing_found(f);
}

static void sch_09_the_physical_adapter_names_the_paging_node(void **state)
{
	struct port_fixture *f = *state;

	version_2(f);
	f->m->settings.caps.MemoryManagementCaps.PagingNode = 7; /* 1.x's word */
	f->m->settings.physical.NumExecutionNodes = 2;
	f->m->settings.physical.PagingNodeIndex = 0;
	port_fixture_run(f);
	assert_int_equal(vmm_port_caps(f->port)->paging_node, 0);
	assert_int_equal(vmm_port_caps(f->port)->node_count, 2);
	port_fixture_stop(f);
	f->m->settings.physical.PagingNodeIndex = 2;
	assert_refused(f, STATUS_INVALID_PARAMETER, "SCH-09", "PagingNode is 2");
	f->m->settings.physical.PagingNodeIndex = 1;
	f->m->settings.physical.NumExecutionNodes = 3;
	assert_refused(f, STATUS_INVALID_PARAMETER, "SCH-07",
		       "3 execution nodes, but DRIVERCAPS has 2");
}

static void sub_16_the_packet_cap_is_the_depth_of_a_node(void **state)
{
	struct port_fixture *f = *state;

	version_2(f);
	port_fixture_run(f);
	assert_int_equal(vmm_port_caps(f->port)->node_depth, 2);
	port_fixture_stop(f);
	f->m->settings.caps.SchedulingCaps.HwQueuePacketCap = 5;
	port_fixture_run(f);
	assert_int_equal(vmm_port_caps(f->port)->node_depth, 5);
	port_fixture_stop(f);
	scripted_set_version(f->m, DXGKDDI_INTERFACE_VERSION_WDDM1_3); /* no such bits there */
	port_fixture_run(f);
	assert_int_equal(vmm_port_caps(f->port)->node_depth, 2);
}

/* ---- segments ---- */

static void seg_25_there_is_exactly_one_aperture(void **state)
{
	struct port_fixture *f = *state;
	struct scripted_settings *s = &f->m->settings;

	version_2(f);
	s->segment_count = 1;
	assert_int_equal(port_fixture_start(f), STATUS_SUCCESS);
	assert_finding(f, "SEG-25", "0 aperture segments");
	port_fixture_stop(f);
	f->findings = 0;
	s->segment_count = 3;
	s->segment[2] = s->segment[1];
	s->segment[2].base += SCRIPTED_APERTURE_BYTES;
	assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-25", "2 aperture segments");
	scripted_set_version(f->m, DXGKDDI_INTERFACE_VERSION_WDDM1_3);
	port_fixture_run(f); /* 1.x may have two */
	assert_nothing_found(f);
}

static void seg_24_flags_of_host_apertures_and_the_system(void **state)
{
	static const struct {
		uint32_t flags;
		const char *text;
	} wrong[] = {{0x1004, "ReservedSysMem"},
		     {0x2004, "excludes CpuVisible"},
		     {0x4000, "needs SupportsCpuHostAperture"}};
	struct port_fixture *f = *state;

	version_2(f);
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(wrong); i++) {
		f->m->settings.segment[0].flags = wrong[i].flags;
		assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-24", wrong[i].text);
	}
	f->m->settings.segment[0].flags = 0x8004; /* ApplicationTarget */
	port_fixture_run(f);
	assert_nothing_found(f);
}

/* The location of the window, and its page size. */
static void swz_29_seg_24_host_apertures_are_checked_and_recorded(void **state)
{
	struct port_fixture *f = *state;
	struct scripted_segment *s = &f->m->settings.segment[0];
	const struct vmm_port_segment *kept;

	version_2(f);
	s->flags = 0x2000;
	assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-24", "0 pages of 4096 bytes");
	s->host_pages = (uint32_t)(SCRIPTED_BAR_BYTES / PAGE) + 1;
	assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-24", "must be whole pages inside one BAR");
	s->host_pages = 16;
	s->host_offset = PAGE / 2;
	assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-24", "must be whole pages inside one BAR");
	s->host_offset = 3 * PAGE;
	f->m->settings.table.DxgkDdiMapCpuHostAperture = NULL;
	assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-24", "no DxgkDdiMapCpuHostAperture");
	f->m->settings.table.DxgkDdiMapCpuHostAperture = scripted_map_host;
	port_fixture_run(f);
	kept = &vmm_port_caps(f->port)->segment[0];
	assert_int_equal(kept->host.pages, 16);
	assert_int_equal(kept->host.physical, f->m->bar_physical + 3 * PAGE);
	assert_int_equal(kept->page_bytes, PAGE);
	assert_int_equal(vmm_port_caps(f->port)->segment[1].host.pages, 0);
	port_fixture_stop(f);
	s->flags = 0x6800; /* cached, and pages of 64 KiB */
	s->host_pages = (uint32_t)(SCRIPTED_BAR_BYTES / 65536);
	assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-24", "pages of 65536 bytes");
	s->host_offset = 0;
	port_fixture_run(f);
	assert_int_equal(vmm_port_caps(f->port)->segment[0].page_bytes, 65536);
	port_fixture_stop(f);
	s->flags = 0x4;
	f->m->settings.segment[1].flags |= 0x2000;
	assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-24", "an aperture segment cannot have");
	f->m->settings.segment[1].flags &= ~0x2000u;
	port_fixture_run(f);
	assert_nothing_found(f);
}

static void seg_26_invalid_ranges_are_queried_and_recorded(void **state)
{
	static const DXGK_MEMORYRANGE ranges[] = {
		{8 * PAGE, 2 * PAGE}, {PAGE, PAGE}, {9 * PAGE, 3 * PAGE}, {20 * PAGE, PAGE}};
	struct port_fixture *f = *state;

	version_2(f);
	f->m->settings.invalid[0] = ranges;
	f->m->settings.invalid_counts[0] = 4;
	port_fixture_run(f);
	const struct vmm_port_segment *s = &vmm_port_caps(f->port)->segment[0];

	/* In order, and overlapping ones are merged. */
	assert_int_equal(s->invalid_count, 3);
	assert_int_equal(s->invalid[0].offset, PAGE);
	assert_int_equal(s->invalid[1].offset, 8 * PAGE);
	assert_int_equal(s->invalid[1].size_bytes, 4 * PAGE);
	assert_int_equal(s->invalid[2].offset, 20 * PAGE);
	port_fixture_stop(f);
	f->m->settings.invalid_counts[0] = 0;
	scripted_forget(f->m);
	port_fixture_run(f);
	assert_null(query_of(f, DXGKQAITYPE_SEGMENTMEMORYSTATE)); /* only if there are some */
}

static void seg_26_ranges_must_be_whole_pages_of_the_segment(void **state)
{
	static const DXGK_MEMORYRANGE wrong[] = {{PAGE + 1, PAGE},
						 {PAGE, PAGE / 2},
						 {PAGE, 0},
						 {SCRIPTED_BAR_BYTES - PAGE, 2 * PAGE}};
	struct port_fixture *f = *state;

	version_2(f);
	f->m->settings.invalid_counts[0] = 1;
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(wrong); i++) {
		f->m->settings.invalid[0] = &wrong[i];
		assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-26", "in whole pages");
	}
}

/* Ranges of a segment with 64 KiB pages are multiples of those (SEG-11). */
static void seg_26_seg_11_ranges_of_a_64k_segment_are_whole_64k_pages(void **state)
{
	static const DXGK_MEMORYRANGE wrong = {PAGE, 16 * PAGE}, right = {16 * PAGE, 32 * PAGE};
	struct port_fixture *f = *state;

	version_2(f);
	f->m->settings.segment[0].flags |= 0x800;
	f->m->settings.invalid_counts[0] = 1;
	f->m->settings.invalid[0] = &wrong;
	assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-26", "in whole pages of 65536 bytes");
	f->m->settings.invalid[0] = &right;
	port_fixture_run(f);
	port_fixture_stop(f);
	f->m->settings.invalid_counts[0] = 0;
	f->m->settings.segment[0].flags &= ~0x800u;
	f->m->settings.segment[1].flags |= 0x800;
	assert_int_equal(port_fixture_start(f), STATUS_NOT_SUPPORTED);
	assert_non_null(strstr(f->reason, "aperture of 64 KiB pages is not built"));
}

static void alf_26_a_protected_range_is_checked_and_recorded(void **state)
{
	static const struct {
		uint64_t offset, bytes;
		uint32_t alignment, reserve;
		const char *text;
	} wrong[] = {
		{PAGE, 4 * PAGE, 3 * PAGE, 0, "not a power of two"},
		{PAGE, 4 * PAGE, 512, 0, "not a power of two"},
		{PAGE, 4 * PAGE, 2 * PAGE, 0, "off VprAlignment"},
		{2 * PAGE, 3 * PAGE, 2 * PAGE, 0, "off VprAlignment"},
		{2 * PAGE, 0, 0, 0, "empty"},
		{SCRIPTED_BAR_BYTES - PAGE, 2 * PAGE, 0, 0, "passes the end"},
		{SCRIPTED_BAR_BYTES, 2 * PAGE, 0, 0, "passes the end"},
		{PAGE, 4 * PAGE, 0, PAGE / 2, "VprReserveSize"},
		{PAGE, 4 * PAGE, 0, 4 * PAGE, "VprReserveSize"},
	};
	static const DXGK_MEMORYRANGE invalid[] = {{16 * PAGE, PAGE}, {64 * PAGE, PAGE}};
	const DXGK_SEGMENTFLAGS vpr = {.VprSupported = 1};
	struct port_fixture *f = *state;
	struct scripted_segment *s = &f->m->settings.segment[0];

	version_2(f);
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(wrong); i++) {
		s->flags |= vpr.Value;
		s->vpr_offset = wrong[i].offset;
		s->vpr_bytes = wrong[i].bytes;
		s->vpr_alignment = wrong[i].alignment;
		s->vpr_reserve_bytes = wrong[i].reserve;
		assert_refused(f, STATUS_INVALID_PARAMETER, "ALF-26", wrong[i].text);
		s->flags &= ~vpr.Value; /* then it is not checked */
		port_fixture_run(f);
		assert_int_equal(vmm_port_caps(f->port)->segment[0].vpr.size_bytes, 0);
		port_fixture_stop(f);
	}
	s[1].flags |= vpr.Value;
	s[1].vpr_bytes = 4 * PAGE;
	assert_refused(f, STATUS_INVALID_PARAMETER, "ALF-26", "aperture");
	s[1].flags &= ~vpr.Value;
	s->flags |= vpr.Value;
	s->vpr_offset = 16 * PAGE;
	s->vpr_bytes = 32 * PAGE;
	s->vpr_alignment = 0;
	s->vpr_reserve_bytes = 4 * PAGE;
	s->vpr_regions = 2;
	f->m->settings.invalid[0] = invalid;
	f->m->settings.invalid_counts[0] = 2;
	port_fixture_run(f);
	const struct vmm_port_segment *kept = &vmm_port_caps(f->port)->segment[0];
	assert_int_equal(kept->vpr.alignment, PAGE);
	assert_int_equal(kept->vpr.regions, 2);
	/*
	 * The miniport's protected part is removed together with the invalid ranges, which cover it
	 * here.
	 */
	assert_int_equal(kept->invalid_count, 2);
	assert_int_equal(kept->invalid[0].offset, 16 * PAGE);
	assert_int_equal(kept->invalid[0].size_bytes, 4 * PAGE);
	assert_nothing_found(f);
}

/* SWZ-27: they do not exist from 2.0 on, so their entries are not required. */
static void swz_27_swizzling_range_caps_are_ignored_from_2_0_on(void **state)
{
	struct port_fixture *f = *state;

	version_2(f);
	f->m->settings.caps.NumberOfSwizzlingRanges = 4;
	f->m->settings.table.DxgkDdiAcquireSwizzlingRange = NULL;
	f->m->settings.table.DxgkDdiReleaseSwizzlingRange = NULL;
	port_fixture_run(f);
	assert_int_equal(vmm_port_caps(f->port)->swizzling_range_count, 0);
	assert_nothing_found(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(versions_2_0_to_3_2_start),
		TEST(nt_24_references_to_handle_data_are_released_once),
		TEST(q_164_the_driver_model_is_that_of_wddmversion),
		TEST(q_164_other_values_of_wddmversion_change_nothing),
		TEST(pnp_01_a_compute_only_miniport_needs_no_present),
		TEST(pnp_01_gpu_virtual_addresses_replace_render_and_patch),
		TEST(sch_09_the_physical_adapter_may_stay_unanswered),
		TEST(va_11_page_tables_have_two_to_six_levels),
		TEST(va_11_every_update_mode_starts_with_gpummu_only),
		TEST(va_11_page_table_level_descriptions_are_checked),
		TEST(va_15_virtual_addressing_needs_one_mmu),
		TEST(va_15_virtual_addressing_caps_are_ignored_before_2_0),
		TEST(sch_09_the_physical_adapter_names_the_paging_node),
		TEST(sub_16_the_packet_cap_is_the_depth_of_a_node),
		TEST(seg_25_there_is_exactly_one_aperture),
		TEST(seg_24_flags_of_host_apertures_and_the_system),
		TEST(swz_29_seg_24_host_apertures_are_checked_and_recorded),
		TEST(seg_26_invalid_ranges_are_queried_and_recorded),
		TEST(seg_26_ranges_must_be_whole_pages_of_the_segment),
		TEST(seg_26_seg_11_ranges_of_a_64k_segment_are_whole_64k_pages),
		TEST(alf_26_a_protected_range_is_checked_and_recorded),
		TEST(swz_27_swizzling_range_caps_are_ignored_from_2_0_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
