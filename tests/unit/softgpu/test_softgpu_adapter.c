/* SPDX-License-Identifier: MIT */
/*
 * What softgpu reports about itself and its allocations: start, registry, caps, segments, contexts,
 * swizzling ranges.
 */
#include "fixture.h"

/* ---- start ---- */

static void start_and_stop_leave_nothing_behind(void **state)
{
	struct gpu *gpu = gpu_start(NULL, MIB);

	(void)state;
	assert_int_equal(gpu->ddi.Version, 0x4002);
	assert_false(gpu->ddi.DxgkDdiInterruptRoutine(gpu->adapter, 0));
	gpu_stop(gpu);
}

static void registration_of_newer_versions_is_refused(void **state)
{
	const struct gpu_setting vista[] = {{"InterfaceVersion", 0x1052}, {NULL, 0}};
	const struct gpu_setting wddm2[] = {{"InterfaceVersion", 0x5023}, {NULL, 0}};
	struct gpu *gpu = gpu_start(vista, MIB);

	(void)state;
	assert_int_equal(gpu->ddi.Version, 0x1052);
	gpu_stop(gpu);
	assert_int_equal(gpu_start_status(wddm2, MIB), STATUS_NOT_SUPPORTED);
}

static void an_invalid_configuration_does_not_start(void **state)
{
	const struct gpu_setting odd_aperture[] = {{"ApertureSize", 4097}, {NULL, 0}};
	const struct gpu_setting no_such_node[] = {{"PagingNode", 2}, {NULL, 0}};

	(void)state;
	assert_int_equal(gpu_start_status(odd_aperture, MIB), STATUS_DEVICE_CONFIGURATION_ERROR);
	assert_int_equal(gpu_start_status(no_such_node, MIB), STATUS_DEVICE_CONFIGURATION_ERROR);
	assert_int_equal(gpu_start_status(NULL, MIB), STATUS_SUCCESS);
}

/* A BAR of 4 GiB or more is a large memory resource. */
static void a_large_bar_is_found(void **state)
{
	const struct gpu_setting large[] = {{"LargeResource", 1}, {NULL, 0}};
	DXGK_SEGMENTDESCRIPTOR segments[2];
	DXGK_QUERYSEGMENTOUT out = {.NbSegment = 2, .pSegmentDescriptor = segments};
	DXGKARG_QUERYADAPTERINFO query = {.Type = DXGKQAITYPE_QUERYSEGMENT,
					  .pOutputData = &out,
					  .OutputDataSize = sizeof(out)};
	struct gpu *gpu = gpu_start(large, 5120 * MIB);

	(void)state;
	assert_int_equal(gpu->ddi.DxgkDdiQueryAdapterInfo(gpu->adapter, &query), STATUS_SUCCESS);
	assert_true(segments[0].Size == 5120 * MIB);
	gpu_stop(gpu);
}

static void the_clock_counts_nanoseconds_of_the_performance_counter(void **state)
{
	struct gpu *gpu = *state;
	DXGKARG_CALIBRATEGPUCLOCK clock = {0};
	const uint32_t node = 1;

	assert_int_equal(gpu->ddi.DxgkDdiCalibrateGpuClock(gpu->adapter, node, 0, &clock),
			 STATUS_SUCCESS);
	assert_true(clock.GpuFrequency == 1000000000);
	assert_int_equal(gpu->ddi.DxgkDdiCalibrateGpuClock(gpu->adapter, node, 1, &clock),
			 STATUS_INVALID_PARAMETER);
	assert_int_equal(gpu->ddi.DxgkDdiCalibrateGpuClock(gpu->adapter, 2, 0, &clock),
			 STATUS_INVALID_PARAMETER);
}

/* ---- queries ---- */

static NTSTATUS query(struct gpu *gpu, DXGK_QUERYADAPTERINFOTYPE type, void *data, uint32_t size)
{
	DXGKARG_QUERYADAPTERINFO arguments = {
		.Type = type, .pOutputData = data, .OutputDataSize = size};

	return gpu->ddi.DxgkDdiQueryAdapterInfo(gpu->adapter, &arguments);
}

static void driver_caps_fill_the_size_of_each_version(void **state)
{
	struct gpu *gpu = *state;
	DXGK_DRIVERCAPS caps;
	unsigned char *bytes = (unsigned char *)&caps;

	assert_int_equal(query(gpu, DXGKQAITYPE_DRIVERCAPS, &caps, sizeof(caps)), STATUS_SUCCESS);
	assert_true(caps.SchedulingCaps.MultiEngineAware);
	assert_false(caps.SchedulingCaps.PreemptionAware);
	assert_int_equal(caps.GpuEngineTopology.NbAsymetricProcessingNodes, 2);
	assert_int_equal(caps.MemoryManagementCaps.PagingNode, 1);
	assert_int_equal(caps.NumberOfSwizzlingRanges, 64);
	assert_int_equal(caps.WDDMVersion, DXGKDDI_WDDMv1_3);
	assert_true(caps.ApertureSegmentCommitLimit == 256 * MIB);
	assert_true(caps.SupportPerEngineTDR);
	assert_true(caps.MaxAllocationListSlotId > 2 + 1024);
	memset(&caps, 0x5A, sizeof(caps));
	assert_int_equal(query(gpu, DXGKQAITYPE_DRIVERCAPS, &caps, 336), STATUS_SUCCESS);
	assert_int_equal(caps.GpuEngineTopology.NbAsymetricProcessingNodes, 2);
	assert_int_equal(bytes[336], 0x5A);
	assert_int_equal(query(gpu, DXGKQAITYPE_DRIVERCAPS, &caps, 335), STATUS_BUFFER_TOO_SMALL);
}

static void seg_02_segments_are_counted_first_and_described_then(void **state)
{
	struct gpu *gpu = *state;
	DXGK_SEGMENTDESCRIPTOR3 segments[2];
	DXGK_QUERYSEGMENTOUT3 out = {0};

	memset(segments, 0xFF, sizeof(segments));
	assert_int_equal(query(gpu, DXGKQAITYPE_QUERYSEGMENT3, &out, sizeof(out)), STATUS_SUCCESS);
	assert_int_equal(out.NbSegment, 2);
	out.pSegmentDescriptor = segments;
	assert_int_equal(query(gpu, DXGKQAITYPE_QUERYSEGMENT3, &out, sizeof(out)), STATUS_SUCCESS);
	assert_true(segments[0].BaseAddress.QuadPart == 0);
	assert_true((uint64_t)segments[0].CpuTranslatedAddress.QuadPart == gpu->vram_physical);
	assert_true(segments[0].Size == gpu->vram_bytes);
	assert_true(segments[0].CommitLimit == gpu->vram_bytes);
	assert_int_equal(segments[0].Flags.Value, 0x4);
	assert_true((uint64_t)segments[1].BaseAddress.QuadPart == APERTURE_BASE);
	assert_true(segments[1].Size == 256 * MIB);
	assert_int_equal(segments[1].Flags.Value, 0x11);
	assert_int_equal(segments[1].NbOfBanks, 0);
	assert_int_equal(out.PagingBufferSegmentId, 2);
	assert_int_equal(out.PagingBufferSize, 65536);
	assert_true(out.PagingBufferPrivateDataSize > 0);
	out.NbSegment = 1;
	assert_int_equal(query(gpu, DXGKQAITYPE_QUERYSEGMENT3, &out, sizeof(out)),
			 STATUS_BUFFER_TOO_SMALL);
}

static void first_version_segment_queries_give_the_same_segments(void **state)
{
	const struct gpu_setting settings[] = {{"VramCpuVisible", 0},
					       {"ApertureCoherent", 0},
					       {"ApertureSize", 64 * MIB},
					       {"PagingBufferSegment", 0},
					       {NULL, 0}};
	struct gpu *gpu = gpu_start(settings, 8 * MIB);
	DXGK_SEGMENTDESCRIPTOR segments[2];
	DXGK_QUERYSEGMENTOUT out = {.NbSegment = 2, .pSegmentDescriptor = segments};

	(void)state;
	assert_int_equal(query(gpu, DXGKQAITYPE_QUERYSEGMENT, &out, sizeof(out)), STATUS_SUCCESS);
	assert_true(segments[0].Size == 8 * MIB);
	assert_int_equal(segments[0].Flags.Value, 0);
	assert_true(segments[1].Size == 64 * MIB);
	assert_true((uint64_t)segments[1].BaseAddress.QuadPart == APERTURE_BASE);
	assert_int_equal(segments[1].Flags.Value, 0x1);
	assert_int_equal(out.PagingBufferSegmentId, 0);
	gpu_stop(gpu);
}

static void umd_private_query_returns_sizes(void **state)
{
	struct gpu *gpu = *state;
	struct softgpu_adapter_info info;

	assert_int_equal(query(gpu, DXGKQAITYPE_UMDRIVERPRIVATE, &info, sizeof(info)),
			 STATUS_SUCCESS);
	assert_int_equal(info.version, SOFTGPU_ADAPTER_INFO_VERSION);
	assert_true(info.vram_bytes == gpu->vram_bytes);
	assert_int_equal(info.node_count, 2);
	assert_int_equal(query(gpu, DXGKQAITYPE_UMDRIVERPRIVATE, &info, 4),
			 STATUS_BUFFER_TOO_SMALL);
	assert_int_equal(query(gpu, DXGKQAITYPE_QUERYSEGMENT4, &info, sizeof(info)),
			 STATUS_NOT_SUPPORTED);
	assert_int_equal(query(gpu, DXGKQAITYPE_DRIVERCAPS, NULL, 0), STATUS_INVALID_PARAMETER);
}

static void sch_07_node_metadata_exists_for_exactly_the_nodes(void **state)
{
	struct gpu *gpu = *state;
	DXGKARG_GETNODEMETADATA node;

	assert_int_equal(gpu->ddi.DxgkDdiGetNodeMetadata(gpu->adapter, 0, &node), STATUS_SUCCESS);
	assert_int_equal(node.EngineType, DXGK_ENGINE_TYPE_3D);
	assert_int_equal(gpu->ddi.DxgkDdiGetNodeMetadata(gpu->adapter, 1, &node), STATUS_SUCCESS);
	assert_int_equal(node.EngineType, DXGK_ENGINE_TYPE_COPY);
	assert_int_equal(node.FriendlyName[0], 'C');
	assert_int_equal(gpu->ddi.DxgkDdiGetNodeMetadata(gpu->adapter, 2, &node),
			 STATUS_INVALID_PARAMETER);
	assert_int_equal(gpu->ddi.DxgkDdiGetNodeMetadata(gpu->adapter, 0x10000, &node),
			 STATUS_INVALID_PARAMETER);
}

static void context_info_follows_the_registry(void **state)
{
	const struct gpu_setting settings[] = {{"DmaBufferSize", 8192},
					       {"AllocationListSize", 16},
					       {"PatchLocationListSize", 32},
					       {"DmaBufferSegmentSet", 0},
					       {NULL, 0}};
	struct gpu *gpu = gpu_start(settings, MIB);
	DXGKARG_CREATECONTEXT create = {.hContext = gpu, .NodeOrdinal = 1, .EngineAffinity = 1};

	(void)state;
	assert_int_equal(gpu->ddi.DxgkDdiCreateContext(gpu->device, &create), STATUS_SUCCESS);
	assert_int_equal(create.ContextInfo.DmaBufferSize, 8192);
	assert_int_equal(create.ContextInfo.AllocationListSize, 16);
	assert_int_equal(create.ContextInfo.PatchLocationListSize, 32);
	assert_int_equal(create.ContextInfo.DmaBufferSegmentSet, 0);
	assert_true(create.ContextInfo.DmaBufferPrivateDataSize > 0);
	assert_int_equal(gpu->ddi.DxgkDdiDestroyContext(create.hContext), STATUS_SUCCESS);
	create.NodeOrdinal = 2;
	assert_int_equal(gpu->ddi.DxgkDdiCreateContext(gpu->device, &create),
			 STATUS_INVALID_PARAMETER);
	create.NodeOrdinal = 0;
	create.EngineAffinity = 2;
	assert_int_equal(gpu->ddi.DxgkDdiCreateContext(gpu->device, &create),
			 STATUS_INVALID_PARAMETER);
	gpu_stop(gpu);
}

/* ---- allocations ---- */

static void destroy(struct gpu *gpu, HANDLE allocation)
{
	DXGKARG_DESTROYALLOCATION arguments = {.NumAllocations = 1, .pAllocationList = &allocation};

	assert_int_equal(gpu->ddi.DxgkDdiDestroyAllocation(gpu->adapter, &arguments),
			 STATUS_SUCCESS);
}

static void every_output_of_an_allocation_is_filled_in(void **state)
{
	struct gpu *gpu = *state;
	struct softgpu_allocation spec = gpu_spec(5000);
	DXGK_ALLOCATIONINFO info;

	assert_int_equal(gpu_try_allocation(gpu, &spec, &info), STATUS_SUCCESS);
	assert_true(info.Size == 8192);
	assert_int_equal(info.Alignment, 4096);
	assert_true(info.PitchAlignedSize == 0);
	assert_int_equal(info.HintedBank.Value, 0);
	assert_int_equal(info.PreferredSegment.Value, 1);
	assert_int_equal(info.SupportedReadSegmentSet, 3);
	assert_int_equal(info.SupportedWriteSegmentSet, 3);
	assert_int_equal(info.EvictionSegmentSet, 0);
	assert_int_equal(info.MaximumRenamingListLength, 0);
	assert_int_equal(info.Flags.Value, 0x1);
	assert_null(info.pAllocationUsageHint);
	assert_int_equal(info.AllocationPriority, D3DDDI_ALLOCATIONPRIORITY_NORMAL);
	destroy(gpu, info.hAllocation);
}

static void without_an_aperture_allocations_use_video_memory_only(void **state)
{
	static const struct gpu_setting settings[] = {{"ApertureSize", 0},
						      {"DmaBufferSegmentSet", 0},
						      {"PagingBufferSegment", 0},
						      {NULL, 0}};
	struct gpu *gpu = gpu_start(settings, 16 * MIB);
	struct softgpu_allocation spec = gpu_spec(4096);
	DXGK_SEGMENTDESCRIPTOR3 segments[2];
	DXGK_QUERYSEGMENTOUT3 out = {.NbSegment = 1, .pSegmentDescriptor = segments};
	DXGK_ALLOCATIONINFO info;

	(void)state;
	memset(segments, 0x5A, sizeof(segments));
	assert_int_equal(query(gpu, DXGKQAITYPE_QUERYSEGMENT3, &out, sizeof(out)), STATUS_SUCCESS);
	assert_int_equal(out.NbSegment, 1);
	assert_true(segments[0].Size == 16 * MIB);
	assert_int_equal(segments[1].Flags.Value, 0x5A5A5A5A);
	assert_int_equal(gpu_try_allocation(gpu, &spec, &info), STATUS_SUCCESS);
	assert_int_equal(info.SupportedReadSegmentSet, 1);
	destroy(gpu, info.hAllocation);
	spec.segment_set = 2;
	assert_int_equal(gpu_try_allocation(gpu, &spec, &info), STATUS_INVALID_PARAMETER);
	gpu_stop(gpu);
}

static void requested_attributes_reach_the_memory_manager(void **state)
{
	struct gpu *gpu = *state;
	struct softgpu_allocation spec = {.version = SOFTGPU_ALLOCATION_VERSION,
					  .size_bytes = 1,
					  .segment_set = 2,
					  .alignment = 65536,
					  .renaming_limit = 7,
					  .priority = 0xA0000000u};
	DXGK_ALLOCATIONINFO info;

	spec.flags = SOFTGPU_ALLOCATION_CPU_VISIBLE | SOFTGPU_ALLOCATION_CACHED |
		     SOFTGPU_ALLOCATION_PERMANENT_SYSTEM | SOFTGPU_ALLOCATION_FROM_END;
	assert_int_equal(gpu_try_allocation(gpu, &spec, &info), STATUS_SUCCESS);
	assert_int_equal(info.Alignment, 65536);
	assert_int_equal(info.PreferredSegment.Value, 2);
	assert_int_equal(info.SupportedWriteSegmentSet, 2);
	assert_int_equal(info.MaximumRenamingListLength, 7);
	assert_int_equal(info.AllocationPriority, 0xA0000000u);
	assert_int_equal(info.Flags.Value, 0x1 | 0x2 | 0x4 | 0x40);
	destroy(gpu, info.hAllocation);
	spec.flags = SOFTGPU_ALLOCATION_PROTECTED | SOFTGPU_ALLOCATION_EXISTING_SYSTEM |
		     /* softgpu does not check whether they are compatible */
		     SOFTGPU_ALLOCATION_EXISTING_KERNEL;
	assert_int_equal(gpu_try_allocation(gpu, &spec, &info), STATUS_SUCCESS);
	assert_int_equal(info.Flags.Value, 0x8 | 0x10 | 0x20);
	destroy(gpu, info.hAllocation);
	spec = gpu_spec(1);
	spec.flags = SOFTGPU_ALLOCATION_TILED_Y;
	spec.stride_bytes = 256;
	spec.preferred_segment = 2;
	assert_int_equal(gpu_try_allocation(gpu, &spec, &info), STATUS_SUCCESS);
	assert_true(info.Size == 8192); /* a row of tiles */
	assert_int_equal(info.PreferredSegment.Value, 2);
	assert_int_equal(info.Flags.Value, 0x80);
	destroy(gpu, info.hAllocation);
}

static void invalid_allocation_requests_are_refused(void **state)
{
	struct gpu *gpu = *state;
	struct softgpu_allocation good = gpu_spec(PAGE), bad[16];
	DXGK_ALLOCATIONINFO info;
	size_t i;

	for (i = 0; i < 16; i++)
		bad[i] = good;
	bad[0].version = SOFTGPU_ALLOCATION_VERSION + 1;
	bad[1].flags = 0x80000000u;
	bad[2].size_bytes = 0;
	bad[3].size_bytes = UINT64_MAX;
	bad[4].segment_set = 4;
	bad[5].preferred_segment = 3;
	bad[6].preferred_segment = 2;
	bad[6].segment_set = 1;
	bad[7].alignment = 3 * PAGE;
	bad[8].alignment = 0x80000000u;
	bad[9].stride_bytes = 512;
	bad[10].flags |= SOFTGPU_ALLOCATION_TILED_X;
	bad[11].flags |= SOFTGPU_ALLOCATION_TILED_X;
	bad[11].stride_bytes = 256;
	bad[12].flags |= SOFTGPU_ALLOCATION_TILED_X | SOFTGPU_ALLOCATION_TILED_Y;
	bad[12].stride_bytes = 512;
	bad[13].flags |= SOFTGPU_ALLOCATION_TILED_Y;
	bad[13].stride_bytes = 128;
	bad[13].segment_set = 2;
	bad[14].segment_set = 0x80000000u;
	bad[15].preferred_segment = UINT32_MAX;
	for (i = 0; i < 16; i++) {
		if (gpu_try_allocation(gpu, &bad[i], &info) != STATUS_INVALID_PARAMETER)
			fail_msg("spec %zu was granted", i);
		assert_null(info.hAllocation);
	}
}

/*
 * All or nothing: one invalid allocation of several fails the call, and the valid ones are not
 * created.
 */
static void alf_33_one_bad_allocation_fails_the_call(void **state)
{
	struct gpu *gpu = *state;
	struct softgpu_allocation specs[3] = {gpu_spec(PAGE), gpu_spec(PAGE), gpu_spec(0)};
	DXGK_ALLOCATIONINFO infos[3];
	DXGKARG_CREATEALLOCATION create = {
		.NumAllocations = 3, .pAllocationInfo = infos, .Flags = {.Resource = 1}};
	DXGKARG_DESTROYALLOCATION destroy_all = {.Flags = {.DestroyResource = 1}};
	HANDLE handles[2];
	int i;

	memset(infos, 0, sizeof(infos));
	for (i = 0; i < 3; i++) {
		infos[i].pPrivateDriverData = &specs[i];
		infos[i].PrivateDriverDataSize = sizeof(specs[i]);
	}
	assert_int_equal(gpu->ddi.DxgkDdiCreateAllocation(gpu->adapter, &create),
			 STATUS_INVALID_PARAMETER);
	assert_null(infos[0].hAllocation);
	assert_null(infos[1].hAllocation);
	assert_null(create.hResource);
	infos[1].PrivateDriverDataSize--;
	create.NumAllocations = 2;
	assert_int_equal(gpu->ddi.DxgkDdiCreateAllocation(gpu->adapter, &create),
			 STATUS_INVALID_PARAMETER);
	infos[1].PrivateDriverDataSize++;
	assert_int_equal(gpu->ddi.DxgkDdiCreateAllocation(gpu->adapter, &create), STATUS_SUCCESS);
	assert_non_null(create.hResource);
	handles[0] = infos[0].hAllocation;
	handles[1] = infos[1].hAllocation;
	destroy_all.NumAllocations = 2;
	destroy_all.pAllocationList = handles;
	destroy_all.hResource = create.hResource;
	assert_int_equal(gpu->ddi.DxgkDdiDestroyAllocation(gpu->adapter, &destroy_all),
			 STATUS_SUCCESS);
}

static void opening_an_unknown_handle_is_refused(void **state)
{
	struct gpu *gpu = *state;
	struct softgpu_allocation spec = gpu_spec(PAGE);
	DXGK_OPENALLOCATIONINFO infos[2] = {{.hAllocation = 1}, {.hAllocation = 77}};
	DXGKARG_OPENALLOCATION open = {.NumAllocations = 2, .pOpenAllocation = infos};

	gpu_allocate(gpu, &spec);
	assert_int_equal(gpu->ddi.DxgkDdiOpenAllocation(gpu->device, &open),
			 STATUS_INVALID_PARAMETER);
	assert_null(infos[0].hDeviceSpecificAllocation);
}

static void allocations_are_described_as_rows_of_bytes(void **state)
{
	struct gpu *gpu = *state;
	struct softgpu_allocation spec = gpu_spec(16384);
	DXGKARG_DESCRIBEALLOCATION describe;

	spec.flags |= SOFTGPU_ALLOCATION_TILED_X;
	spec.stride_bytes = 1024;
	memset(&describe, 0xFF, sizeof(describe));
	describe.hAllocation = gpu_allocate(gpu, &spec)->info.hAllocation;
	assert_int_equal(gpu->ddi.DxgkDdiDescribeAllocation(gpu->adapter, &describe),
			 STATUS_SUCCESS);
	assert_int_equal(describe.Width, 1024);
	assert_int_equal(describe.Height, 16);
	assert_int_equal(describe.Format, D3DDDIFMT_UNKNOWN);
}

static void display_ddis_are_absent_without_a_display(void **state)
{
	struct gpu *gpu = *state;
	DXGKARG_GETSTANDARDALLOCATIONDRIVERDATA standard = {0};
	DXGK_ALLOCATIONLIST nothing[DXGK_PRESENT_MAX_INDEX] = {{0}};
	DXGKARG_PRESENT present = {.pAllocationList = nothing, .Flags.Blt = 1};

	assert_int_equal(gpu->ddi.DxgkDdiGetStandardAllocationDriverData(gpu->adapter, &standard),
			 STATUS_NOT_SUPPORTED);
	/* There is no source, and an allocation that is no picture cannot be presented. */
	assert_int_equal(gpu->ddi.DxgkDdiPresent(gpu->context[0], &present), STATUS_INVALID_HANDLE);
	const DXGKARG_SETVIDPNSOURCEVISIBILITY show = {.Visible = TRUE};
	assert_int_equal(gpu->ddi.DxgkDdiSetVidPnSourceVisibility(gpu->adapter, &show),
			 STATUS_INVALID_PARAMETER);
}

/* ---- swizzling ranges ---- */

static void swz_13_a_range_is_held_until_it_is_released(void **state)
{
	struct gpu *gpu = *state;
	struct softgpu_allocation spec = gpu_spec(PAGE);
	HANDLE allocation = gpu_allocate(gpu, &spec)->info.hAllocation;
	DXGKARG_ACQUIRESWIZZLINGRANGE acquire = {.hAllocation = allocation,
						 .PrivateDriverData = 3,
						 .RangeId = 63,
						 .SegmentId = VRAM,
						 .RangeSize = PAGE};
	DXGKARG_RELEASESWIZZLINGRANGE release = {
		.hAllocation = allocation, .PrivateDriverData = 3, .RangeId = 62};

	acquire.CPUTranslatedAddress.QuadPart = 0x1234000;
	assert_int_equal(gpu->ddi.DxgkDdiAcquireSwizzlingRange(gpu->adapter, &acquire),
			 STATUS_SUCCESS);
	assert_true(acquire.CPUTranslatedAddress.QuadPart == 0x1234000 &&
		    acquire.RangeSize == PAGE); /* SWZ-03 */
	assert_int_equal(gpu->ddi.DxgkDdiAcquireSwizzlingRange(gpu->adapter, &acquire),
			 STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNAVAILABLE);
	assert_int_equal(gpu->ddi.DxgkDdiReleaseSwizzlingRange(gpu->adapter, &release),
			 STATUS_INVALID_PARAMETER);
	release.RangeId = 63;
	release.PrivateDriverData = 4;
	assert_int_equal(gpu->ddi.DxgkDdiReleaseSwizzlingRange(gpu->adapter, &release),
			 STATUS_INVALID_PARAMETER);
	release.PrivateDriverData = 3;
	assert_int_equal(gpu->ddi.DxgkDdiReleaseSwizzlingRange(gpu->adapter, &release),
			 STATUS_SUCCESS);
	assert_int_equal(gpu->ddi.DxgkDdiReleaseSwizzlingRange(gpu->adapter, &release),
			 STATUS_INVALID_PARAMETER);
	acquire.RangeId = 64;
	assert_int_equal(gpu->ddi.DxgkDdiAcquireSwizzlingRange(gpu->adapter, &acquire),
			 STATUS_INVALID_PARAMETER);
}

static void pnp_05_the_aperture_mapping_is_lost_at_power_off(void **state)
{
	struct gpu *gpu = *state;
	struct softgpu_allocation spec = gpu_spec(PAGE);
	DXGK_ALLOCATIONLIST list = gpu_entry(gpu_allocate(gpu, &spec), APERTURE, APERTURE_BASE, 0);
	struct softgpu_reference reference = {{SOFTGPU_REFERENCE, 0, sizeof(reference)},
					      {.allocation = 0}};
	PMDL mdl = gpu_mdl(gpu, 0, PAGE);

	gpu_map(gpu, 0, 1, mdl, 0);
	assert_int_equal(gpu->ddi.DxgkDdiSetPowerState(gpu->adapter, UINT32_MAX, PowerDeviceD1,
						       PowerActionSleep),
			 STATUS_SUCCESS);
	gpu_assert_completed(gpu_run(gpu, 0, &reference, sizeof(reference), &list, 1));
	assert_int_equal(gpu->ddi.DxgkDdiSetPowerState(gpu->adapter, UINT32_MAX, PowerDeviceD3,
						       PowerActionSleep),
			 STATUS_SUCCESS);
	assert_int_equal(gpu->ddi.DxgkDdiSetPowerState(gpu->adapter, UINT32_MAX, PowerDeviceD0,
						       PowerActionNone),
			 STATUS_SUCCESS);
	gpu_assert_faulted(gpu_run(gpu, 0, &reference, sizeof(reference), &list, 1),
			   STATUS_ACCESS_VIOLATION);
	gpu_free_mdl(gpu, mdl);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, gpu_setup, gpu_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(start_and_stop_leave_nothing_behind),
		cmocka_unit_test(registration_of_newer_versions_is_refused),
		cmocka_unit_test(an_invalid_configuration_does_not_start),
		cmocka_unit_test(a_large_bar_is_found),
		TEST(the_clock_counts_nanoseconds_of_the_performance_counter),
		TEST(driver_caps_fill_the_size_of_each_version),
		TEST(seg_02_segments_are_counted_first_and_described_then),
		cmocka_unit_test(first_version_segment_queries_give_the_same_segments),
		TEST(umd_private_query_returns_sizes),
		TEST(sch_07_node_metadata_exists_for_exactly_the_nodes),
		cmocka_unit_test(context_info_follows_the_registry),
		TEST(every_output_of_an_allocation_is_filled_in),
		cmocka_unit_test(without_an_aperture_allocations_use_video_memory_only),
		TEST(requested_attributes_reach_the_memory_manager),
		TEST(invalid_allocation_requests_are_refused),
		TEST(alf_33_one_bad_allocation_fails_the_call),
		TEST(opening_an_unknown_handle_is_refused),
		TEST(allocations_are_described_as_rows_of_bytes),
		TEST(display_ddis_are_absent_without_a_display),
		TEST(swz_13_a_range_is_held_until_it_is_released),
		TEST(pnp_05_the_aperture_mapping_is_lost_at_power_off),
	};

	return cmocka_run_group_tests_name("softgpu_adapter", tests, NULL, NULL);
}
