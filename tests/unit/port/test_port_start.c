/* SPDX-License-Identifier: MIT */
/* From DriverEntry to a checked adapter: life cycle, versions, required entries, capabilities. */
#include <vidmm/vidmm.h>
#include "port_fixture.h"

#include <stdlib.h>
#include <string.h>

#define TEST(name) cmocka_unit_test_setup_teardown(name, port_fixture_setup, port_fixture_teardown)
#define QUERIES    "query_adapter_info query_adapter_info query_adapter_info"
#define START      "add_device start_device " QUERIES

/* ---- life cycle ---- */

static void pnp_01_start_and_stop_in_order(void **state)
{
	struct port_fixture *f = *state;

	port_fixture_run(f);
	assert_string_equal(scripted_order(f->m), START);
	port_fixture_stop(f);
	assert_string_equal(scripted_order(f->m), START " stop_device remove_device unload");
	for (uint32_t i = 0; i < f->m->call_count; i++)
		assert_int_equal(f->m->calls[i]->irql, PASSIVE_LEVEL);
	assert_int_equal(f->ddi_events, f->m->call_count);
	assert_nothing_found(f);
}

static void pnp_01_failed_add_device_is_only_unloaded(void **state)
{
	struct port_fixture *f = *state;

	scripted_fail(f->m, VIDMM_DDI_ADD_DEVICE, STATUS_NO_MEMORY, 1);
	assert_int_equal(port_fixture_start(f), STATUS_NO_MEMORY);
	assert_string_equal(scripted_order(f->m), "add_device unload");
	assert_non_null(strstr(f->reason, "AddDevice"));
}

static void pnp_01_failed_start_device_is_not_stopped(void **state)
{
	struct port_fixture *f = *state;

	scripted_fail(f->m, VIDMM_DDI_START_DEVICE, STATUS_UNSUCCESSFUL, 1);
	assert_int_equal(port_fixture_start(f), STATUS_UNSUCCESSFUL);
	assert_string_equal(scripted_order(f->m), "add_device start_device remove_device unload");
	assert_non_null(strstr(f->reason, "StartDevice failed with 0xc0000001"));
}

static void pnp_01_refused_capabilities_undo_everything(void **state)
{
	struct port_fixture *f = *state;

	scripted_fail(f->m, VIDMM_DDI_QUERY_ADAPTER_INFO, STATUS_NO_MEMORY, 1);
	assert_int_equal(port_fixture_start(f), STATUS_NO_MEMORY);
	assert_string_equal(
		scripted_order(f->m),
		"add_device start_device query_adapter_info stop_device remove_device unload");
	assert_non_null(strstr(f->reason, "DRIVERCAPS"));
	/* No state of the refused start affects the next one. */
	scripted_forget(f->m);
	port_fixture_run(f);
}

static void pnp_04_stopdevice_is_not_called_if_display_release_succeeds(void **state)
{
	struct port_fixture *f = *state;

	f->m->settings.table.DxgkDdiStopDeviceAndReleasePostDisplayOwnership =
		scripted_stop_and_release;
	port_fixture_run(f);
	scripted_forget(f->m);
	port_fixture_stop(f);
	assert_string_equal(scripted_order(f->m), "stop_and_release remove_device unload");
	assert_nothing_found(f);
}

static void pnp_04_stopdevice_is_called_if_display_release_fails(void **state)
{
	struct port_fixture *f = *state;

	f->m->settings.table.DxgkDdiStopDeviceAndReleasePostDisplayOwnership =
		scripted_stop_and_release;
	port_fixture_run(f);
	scripted_forget(f->m);
	scripted_fail(f->m, VIDMM_DDI_STOP_DEVICE_AND_RELEASE_POST_DISPLAY_OWNERSHIP,
		      STATUS_NOT_SUPPORTED, 1);
	port_fixture_stop(f);
	assert_string_equal(scripted_order(f->m),
			    "stop_and_release stop_device remove_device unload");
	assert_nothing_found(f);
}

/* The entry exists from 1.2 on; an older table ends before it. */
static void pnp_04_miniports_before_1_2_get_stopdevice_only(void **state)
{
	struct port_fixture *f = *state;

	scripted_set_version(f->m, DXGKDDI_INTERFACE_VERSION_WIN7);
	port_fixture_run(f);
	scripted_forget(f->m);
	port_fixture_stop(f);
	assert_string_equal(scripted_order(f->m), "stop_device remove_device unload");
}

static void start_info_holds_queue_depth_and_limits(void **state)
{
	struct port_fixture *f = *state;
	const struct scripted_call *start;

	port_fixture_run(f);
	start = scripted_last(f->m, VIDMM_DDI_START_DEVICE);
	assert_int_equal(start->in.start.RequiredDmaQueueEntry, 64);
	assert_int_equal(vmm_port_caps(f->port)->dma_queue_entries, 64); /* SUB-15 */
	assert_int_equal(vmm_port_caps(f->port)->node_depth, 2);         /* SUB-16 */
}

static void unsupported_display_outputs_are_reported(void **state)
{
	struct port_fixture *f = *state;

	f->m->settings.source_count = 2;
	f->m->settings.child_count = 1;
	assert_int_equal(port_fixture_start(f), STATUS_SUCCESS);
	assert_int_equal(f->reasons, 1);
	assert_non_null(strstr(f->reason, "2 video present sources and 1 children"));
}

/* ---- DriverEntry ---- */

static NTSTATUS entry_that_forgets(struct _DRIVER_OBJECT *driver, struct _UNICODE_STRING *path)
{
	(void)driver, (void)path;
	return STATUS_SUCCESS;
}

static NTSTATUS entry_that_fails(struct _DRIVER_OBJECT *driver, struct _UNICODE_STRING *path)
{
	assert_int_equal(scripted_driver_entry(driver, path), STATUS_SUCCESS);
	return STATUS_INSUFFICIENT_RESOURCES;
}

static NTSTATUS entry_that_registers_twice(struct _DRIVER_OBJECT *driver,
					   struct _UNICODE_STRING *path)
{
	NTSTATUS status = scripted_driver_entry(driver, path);

	assert_int_equal(scripted_driver_entry(driver, path), STATUS_INVALID_PARAMETER);
	return status;
}

static NTSTATUS entry_with_another_object(struct _DRIVER_OBJECT *driver,
					  struct _UNICODE_STRING *path)
{
	DRIVER_OBJECT mine = *driver;

	return scripted_driver_entry(&mine, path);
}

static NTSTATUS entry_that_raises(struct _DRIVER_OBJECT *driver, struct _UNICODE_STRING *path)
{
	NTSTATUS status = scripted_driver_entry(driver, path);

	KfRaiseIrql(APC_LEVEL);
	return status;
}

static void use_entry(struct port_fixture *f,
		      NTSTATUS (*entry)(struct _DRIVER_OBJECT *, struct _UNICODE_STRING *))
{
	f->options.initialization_data = NULL;
	f->options.driver_entry = entry;
}

static void driver_entry_registers_its_table(void **state)
{
	struct port_fixture *f = *state;

	use_entry(f, scripted_driver_entry);
	port_fixture_run(f);
	port_fixture_stop(f);
	assert_string_equal(scripted_order(f->m), START " stop_device remove_device unload");
}

static void driver_entry_must_initialize(void **state)
{
	struct port_fixture *f = *state;

	use_entry(f, entry_that_forgets);
	assert_refused(f, STATUS_INVALID_PARAMETER, "PNP-01",
		       "without a successful call of DxgkInitialize");
	assert_int_equal(f->m->call_count, 0);
}

static void driver_entry_may_fail(void **state)
{
	struct port_fixture *f = *state;

	use_entry(f, entry_that_fails);
	assert_int_equal(port_fixture_start(f), STATUS_INSUFFICIENT_RESOURCES);
	assert_non_null(strstr(f->reason, "DriverEntry failed with 0xc000009a"));
	assert_int_equal(f->m->call_count, 0);
}

static void second_dxgkinitialize_is_refused(void **state)
{
	struct port_fixture *f = *state;

	use_entry(f, entry_that_registers_twice);
	assert_int_equal(port_fixture_start(f), STATUS_SUCCESS);
	assert_finding(f, "PNP-01", "for the second time");
}

static void dxgkinitialize_with_another_driver_object_is_refused(void **state)
{
	struct port_fixture *f = *state;

	use_entry(f, entry_with_another_object);
	assert_int_equal(port_fixture_start(f), STATUS_INVALID_PARAMETER);
	assert_finding(f, "PNP-01", "another driver object");
}

static void dxgkinitialize_outside_driver_entry_is_refused(void **state)
{
	struct port_fixture *f = *state;
	DRIVER_OBJECT driver;
	UNICODE_STRING path;

	assert_int_equal(DxgkInitialize(&driver, &path, &f->m->settings.table),
			 STATUS_INVALID_DEVICE_STATE);
	assert_int_equal(DxgkUnInitialize(&driver), STATUS_INVALID_PARAMETER);
}

static void driver_entry_that_returns_at_another_irql_is_reported(void **state)
{
	struct port_fixture *f = *state;

	use_entry(f, entry_that_raises);
	assert_int_equal(port_fixture_start(f), STATUS_SUCCESS);
	assert_finding(f, "NT-02", "DriverEntry was entered at IRQL 0 and returned at 1");
	assert_int_equal(vmm_nt_irql(f->nt), PASSIVE_LEVEL);
}

/* ---- versions: nothing past the end of a version's structures is read or written ---- */

static void check_version(struct port_fixture *f, ULONG version, ULONG services_bytes,
			  DXGK_QUERYADAPTERINFOTYPE query, ULONG caps_bytes)
{
	const struct scripted_call *call;
	const unsigned char *services = (const unsigned char *)&f->m->services;

	scripted_set_version(f->m, version);
	port_fixture_run(f);
	assert_int_equal(f->m->services.Size, services_bytes);
	assert_int_equal(f->m->services.Version, version);
	for (size_t i = services_bytes; i < sizeof(f->m->services); i++)
		assert_int_equal(services[i], 0);
	call = scripted_nth(f->m, VIDMM_DDI_QUERY_ADAPTER_INFO, 0);
	assert_int_equal(call->in.query.Type, DXGKQAITYPE_DRIVERCAPS);
	assert_int_equal(call->in.query.OutputDataSize, caps_bytes);
	call = scripted_nth(f->m, VIDMM_DDI_QUERY_ADAPTER_INFO, 1);
	assert_int_equal(call->in.query.Type, query);
	assert_int_equal(vmm_port_caps(f->port)->interface_version, version);
	assert_int_equal(vmm_port_caps(f->port)->segment_count, 2);
	assert_int_equal(vmm_port_caps(f->port)->segment[1].gpu_base, SCRIPTED_APERTURE_BASE);
}

static void version_1_0_starts(void **state)
{
	check_version(*state, DXGKDDI_INTERFACE_VERSION_VISTA, 184, DXGKQAITYPE_QUERYSEGMENT, 336);
}

static void version_1_0_sp1_starts(void **state)
{
	check_version(*state, DXGKDDI_INTERFACE_VERSION_VISTA_SP1, 184, DXGKQAITYPE_QUERYSEGMENT,
		      336);
}

static void version_1_1_starts(void **state)
{
	check_version(*state, DXGKDDI_INTERFACE_VERSION_WIN7, 184, DXGKQAITYPE_QUERYSEGMENT, 528);
}

static void version_1_2_starts(void **state)
{
	check_version(*state, DXGKDDI_INTERFACE_VERSION_WIN8, 256, DXGKQAITYPE_QUERYSEGMENT3, 544);
}

static void version_1_3_starts(void **state)
{
	check_version(*state, DXGKDDI_INTERFACE_VERSION_WDDM1_3, 264, DXGKQAITYPE_QUERYSEGMENT3,
		      552);
}

static void version_1_3_rotation_starts(void **state)
{
	check_version(*state, DXGKDDI_INTERFACE_VERSION_WDDM1_3_PATH_INDEPENDENT_ROTATION, 264,
		      DXGKQAITYPE_QUERYSEGMENT3, 552);
}

/* A table exactly as long as its version's: reading one byte more would leave its memory. */
static void table_is_read_up_to_its_version_only(void **state)
{
	struct port_fixture *f = *state;
	ULONG version = DXGKDDI_INTERFACE_VERSION_VISTA;
	char *table = malloc(496);

	memcpy(table, &f->m->settings.table, 496);
	memcpy(table, &version, sizeof(version));
	f->options.initialization_data = (const void *)table;
	port_fixture_run(f);
	free(table);
}

static void version_after_3_2_is_not_supported(void **state)
{
	struct port_fixture *f = *state;

	f->m->settings.table.Version = 0x12000;
	assert_int_equal(port_fixture_start(f), STATUS_NOT_SUPPORTED);
	assert_int_equal(f->findings, 0);
	assert_non_null(strstr(f->reason, "0x12000"));
	assert_int_equal(f->m->call_count, 0);
}

static void version_unknown_is_refused(void **state)
{
	struct port_fixture *f = *state;

	f->m->settings.table.Version = 0x3001;
	assert_refused(f, STATUS_INVALID_PARAMETER, "PNP-01", "0x3001");
}

/* ---- entries ---- */

static void entry_required_missing_is_named(void **state)
{
	struct port_fixture *f = *state;

	f->m->settings.table.DxgkDdiBuildPagingBuffer = NULL;
	assert_refused(f, STATUS_INVALID_PARAMETER, "PNP-01", "no DxgkDdiBuildPagingBuffer");
	assert_int_equal(f->m->call_count, 0);
}

static void display_entries_may_be_missing(void **state)
{
	struct port_fixture *f = *state;

	assert_null(f->m->settings.table.DxgkDdiCommitVidPn);
	port_fixture_run(f);
}

static void dma_33_with_multi_engine_aware_context_entries_are_required(void **state)
{
	struct port_fixture *f = *state;

	f->m->settings.table.DxgkDdiDestroyContext = NULL;
	assert_refused(f, STATUS_INVALID_PARAMETER, "DMA-33", "no DxgkDdiDestroyContext");
}

static void dma_33_without_multi_engine_aware_context_entries_are_optional(void **state)
{
	struct port_fixture *f = *state;

	f->m->settings.table.DxgkDdiCreateContext = NULL;
	f->m->settings.table.DxgkDdiDestroyContext = NULL;
	f->m->settings.caps.SchedulingCaps.MultiEngineAware = 0;
	port_fixture_run(f);
	assert_int_equal(vmm_port_caps(f->port)->node_count, 1);  /* SCH-07 */
	assert_int_equal(vmm_port_caps(f->port)->paging_node, 0); /* SCH-09 */
}

static void tdr_14_engine_reset_needs_its_entries(void **state)
{
	struct port_fixture *f = *state;

	f->m->settings.caps.SupportPerEngineTDR = TRUE;
	assert_int_equal(port_fixture_start(f), STATUS_INVALID_PARAMETER);
	/* Each missing entry has a finding; the last one is checked. */
	assert_int_equal(f->findings, 3);
	assert_finding(f, "TDR-14", "no DxgkDdiResetEngine");
}

static NTSTATUS engine_group(IN_CONST_HANDLE adapter, INOUT_PDXGKARG_QUERYDEPENDENTENGINEGROUP args)
{
	(void)adapter, (void)args;
	return STATUS_NOT_SUPPORTED;
}

static NTSTATUS engine_status(IN_CONST_HANDLE adapter, INOUT_PDXGKARG_QUERYENGINESTATUS args)
{
	(void)adapter, (void)args;
	return STATUS_NOT_SUPPORTED;
}

static NTSTATUS reset_engine(IN_CONST_HANDLE adapter, INOUT_PDXGKARG_RESETENGINE args)
{
	(void)adapter, (void)args;
	return STATUS_NOT_SUPPORTED;
}

static void tdr_14_engine_reset_with_its_entries_starts(void **state)
{
	struct port_fixture *f = *state;

	f->m->settings.caps.SupportPerEngineTDR = TRUE;
	f->m->settings.table.DxgkDdiQueryDependentEngineGroup = engine_group;
	f->m->settings.table.DxgkDdiQueryEngineStatus = engine_status;
	f->m->settings.table.DxgkDdiResetEngine = reset_engine;
	port_fixture_run(f);
	assert_true(vmm_port_caps(f->port)->per_engine_tdr);
}

static void tdr_12_cancel_needs_its_entry(void **state)
{
	struct port_fixture *f = *state;

	f->m->settings.caps.SchedulingCaps.CancelCommandAware = 1;
	assert_refused(f, STATUS_INVALID_PARAMETER, "TDR-12", "no DxgkDdiCancelCommand");
}

static void swz_01_swizzling_ranges_need_their_entries(void **state)
{
	struct port_fixture *f = *state;

	f->m->settings.caps.NumberOfSwizzlingRanges = 1;
	f->m->settings.table.DxgkDdiAcquireSwizzlingRange = NULL;
	assert_refused(f, STATUS_INVALID_PARAMETER, "SWZ-01", "no DxgkDdiAcquireSwizzlingRange");
}

/* ---- capabilities ---- */

static NTSTATUS cancel_command(IN_CONST_HANDLE adapter, IN_CONST_PDXGKARG_CANCELCOMMAND cancel_args)
{
	(void)adapter, (void)cancel_args;
	return STATUS_SUCCESS;
}

static void pre_09_preemption_needs_multi_engine(void **state)
{
	struct port_fixture *f = *state;

	f->m->settings.caps.SchedulingCaps.Value = 0x4;
	assert_refused(f, STATUS_INVALID_PARAMETER, "PRE-09", "0x4");
	f->m->settings.caps.SchedulingCaps.Value = 0x10;
	f->m->settings.table.DxgkDdiCancelCommand = cancel_command;
	assert_refused(f, STATUS_INVALID_PARAMETER, "PRE-09", "0x10");
}

static void pre_09_preemption_with_multi_engine_starts(void **state)
{
	struct port_fixture *f = *state;

	f->m->settings.caps.SchedulingCaps.PreemptionAware = 1;
	port_fixture_run(f);
	assert_true(vmm_port_caps(f->port)->preemption_aware);
	assert_false(vmm_port_caps(f->port)->no_dma_patching);
}

/* Before 1.2 the bits do not exist, whatever the memory contains. */
static void pre_09_preemption_bits_are_ignored_before_1_2(void **state)
{
	struct port_fixture *f = *state;

	scripted_set_version(f->m, DXGKDDI_INTERFACE_VERSION_WIN7);
	f->m->settings.caps.SchedulingCaps.Value = 0x1C;
	f->m->settings.caps.SupportPerEngineTDR = TRUE;
	port_fixture_run(f);
	assert_false(vmm_port_caps(f->port)->preemption_aware);
	assert_false(vmm_port_caps(f->port)->per_engine_tdr);
}

static void spl_15_no_dma_patching_needs_preemption_and_multi_engine(void **state)
{
	struct port_fixture *f = *state;

	f->m->settings.caps.SchedulingCaps.NoDmaPatching = 1;
	assert_refused(f, STATUS_INVALID_PARAMETER, "SPL-15", "0x9");
}

static void spl_15_no_dma_patching_with_preemption_and_multi_engine_starts(void **state)
{
	struct port_fixture *f = *state;

	f->m->settings.caps.SchedulingCaps.NoDmaPatching = 1;
	f->m->settings.caps.SchedulingCaps.PreemptionAware = 1;
	port_fixture_run(f);
	assert_true(vmm_port_caps(f->port)->no_dma_patching);
}

static void sch_07_zero_nodes_are_refused(void **state)
{
	struct port_fixture *f = *state;

	f->m->settings.caps.GpuEngineTopology.NbAsymetricProcessingNodes = 0;
	assert_refused(f, STATUS_INVALID_PARAMETER, "SCH-07", "is 0");
	f->m->settings.caps.GpuEngineTopology.NbAsymetricProcessingNodes = 65;
	assert_refused(f, STATUS_INVALID_PARAMETER, "SCH-07", "is 65");
}

static void sch_07_more_nodes_than_are_scheduled_are_refused(void **state)
{
	struct port_fixture *f = *state;

	f->m->settings.caps.GpuEngineTopology.NbAsymetricProcessingNodes = 5;
	assert_int_equal(port_fixture_start(f), STATUS_NOT_SUPPORTED);
	assert_non_null(strstr(f->reason, "5 nodes"));
	f->m->settings.caps.GpuEngineTopology.NbAsymetricProcessingNodes = 4;
	port_fixture_run(f);
	assert_int_equal(vmm_port_caps(f->port)->node_count, 4);
}

static void sch_09_a_paging_node_out_of_range_is_refused(void **state)
{
	struct port_fixture *f = *state;

	f->m->settings.caps.MemoryManagementCaps.PagingNode = 2;
	assert_refused(f, STATUS_INVALID_PARAMETER, "SCH-09", "PagingNode is 2");
	f->m->settings.caps.MemoryManagementCaps.PagingNode = 1;
	port_fixture_run(f);
	assert_int_equal(vmm_port_caps(f->port)->paging_node, 1);
}

static void caps_are_recorded(void **state)
{
	struct port_fixture *f = *state;
	const struct vmm_port_caps *caps;

	f->m->settings.caps.MaxAllocationListSlotId = 12;
	f->m->settings.caps.NumberOfSwizzlingRanges = 3;
	f->m->settings.caps.MemoryManagementCaps.OutOfOrderLock = 1;
	f->m->settings.paging_private_bytes = 40;
	port_fixture_run(f);
	caps = vmm_port_caps(f->port);
	assert_int_equal(caps->slot_count, 12);
	assert_int_equal(caps->swizzling_range_count, 3);
	assert_int_equal(caps->aperture_commit_limit_bytes, SCRIPTED_APERTURE_BYTES);
	assert_true(caps->out_of_order_lock);
	assert_true(caps->multi_engine_aware);
	assert_false(caps->cancel_command_aware);
	assert_int_equal(caps->paging_buffer_segment, 0);
	assert_int_equal(caps->paging_buffer_bytes, 64 << 10);
	assert_int_equal(caps->paging_private_bytes, 40);
}

static void gpu_without_system_memory_access_is_not_supported(void **state)
{
	struct port_fixture *f = *state;

	f->m->settings.caps.HighestAcceptableAddress.QuadPart = 0xFFFFFFFF;
	assert_int_equal(port_fixture_start(f), STATUS_NOT_SUPPORTED);
	assert_non_null(strstr(f->reason, "HighestAcceptableAddress is 0xffffffff"));
}

static void write_behind_the_caps(void *context, struct scripted_miniport *m,
				  struct scripted_call *call)
{
	(void)context, (void)m;
	if (call->ddi == VIDMM_DDI_QUERY_ADAPTER_INFO &&
	    call->in.query.Type == DXGKQAITYPE_DRIVERCAPS)
		((unsigned char *)call->args)[call->in.query.OutputDataSize + 3] = 1;
}

static void caps_written_past_their_end_are_reported(void **state)
{
	struct port_fixture *f = *state;

	scripted_set_version(f->m, DXGKDDI_INTERFACE_VERSION_WIN7);
	f->m->hook = write_behind_the_caps;
	assert_refused(f, STATUS_INVALID_PARAMETER, "PNP-01", "byte 531 was written");
}

/* ---- the device ---- */

static void invalid_bars_are_refused(void **state)
{
	static const uint64_t odd[] = {4097};
	struct port_fixture *f = *state;

	f->options.bar_sizes = odd;
	assert_int_equal(port_fixture_start(f), STATUS_INVALID_PARAMETER);
	assert_int_equal(f->reasons, 1);
	f->options.bar_count = 7;
	assert_int_equal(port_fixture_start(f), STATUS_INVALID_PARAMETER);
}

/* Each memory allocation of the start fails once: every path frees what it has. */
static void out_of_memory_leaves_nothing(void **state)
{
	struct port_fixture *f = *state;
	uint32_t n = 0;
	NTSTATUS status;

	do {
		vmm_calloc_fail_after(++n);
		status = port_fixture_start(f);
		vmm_calloc_fail_after(0);
		if (status != STATUS_SUCCESS)
			assert_true(status == STATUS_NO_MEMORY ||
				    status == STATUS_INSUFFICIENT_RESOURCES);
		assert_true(n < 64);
	} while (status != STATUS_SUCCESS);
	assert_true(n > 4);
}

/* ---- where a thread is in the miniport ---- */

struct places {
	struct vidmm_driver_place start, caps, unload;
};

static void note_place(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	struct places *places = context;
	struct vidmm_driver_place place;

	(void)m;
	assert_true(vidmm_driver_place(&place));
	assert_null(place.waits_in);
	if (call->ddi == VIDMM_DDI_START_DEVICE)
		places->start = place;
	else if (call->ddi == VIDMM_DDI_UNLOAD)
		places->unload = place;
	else if (call->ddi == VIDMM_DDI_QUERY_ADAPTER_INFO &&
		 call->in.query.Type == DXGKQAITYPE_DRIVERCAPS)
		places->caps = place;
}

static struct vidmm_driver_place of_entry;

static NTSTATUS placed_entry(PDRIVER_OBJECT driver, PUNICODE_STRING path)
{
	assert_true(vidmm_driver_place(&of_entry));
	return scripted_driver_entry(driver, path);
}

static void place_names_the_routine_that_the_thread_is_in(void **state)
{
	struct port_fixture *f = *state;
	struct vidmm_driver_place place;
	struct places places;

	f->m->hook = note_place;
	f->m->hook_context = &places;
	f->options.driver_entry = placed_entry;
	f->options.initialization_data = NULL;
	port_fixture_run(f);
	assert_false(vidmm_driver_place(&place));
	port_fixture_stop(f);
	assert_string_equal(of_entry.routine, "DriverEntry");
	assert_string_equal(places.start.routine, "DxgkDdiStartDevice");
	assert_int_equal(places.start.query_type, -1);
	assert_string_equal(places.caps.routine, "DxgkDdiQueryAdapterInfo");
	assert_int_equal(places.caps.query_type, DXGKQAITYPE_DRIVERCAPS);
	assert_string_equal(places.unload.routine, "DxgkDdiUnload");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pnp_01_start_and_stop_in_order),
		TEST(pnp_01_failed_add_device_is_only_unloaded),
		TEST(pnp_01_failed_start_device_is_not_stopped),
		TEST(pnp_01_refused_capabilities_undo_everything),
		TEST(pnp_04_stopdevice_is_not_called_if_display_release_succeeds),
		TEST(pnp_04_stopdevice_is_called_if_display_release_fails),
		TEST(pnp_04_miniports_before_1_2_get_stopdevice_only),
		TEST(start_info_holds_queue_depth_and_limits),
		TEST(unsupported_display_outputs_are_reported),
		TEST(driver_entry_registers_its_table),
		TEST(driver_entry_must_initialize),
		TEST(driver_entry_may_fail),
		TEST(second_dxgkinitialize_is_refused),
		TEST(dxgkinitialize_with_another_driver_object_is_refused),
		TEST(dxgkinitialize_outside_driver_entry_is_refused),
		TEST(driver_entry_that_returns_at_another_irql_is_reported),
		TEST(version_1_0_starts),
		TEST(version_1_0_sp1_starts),
		TEST(version_1_1_starts),
		TEST(version_1_2_starts),
		TEST(version_1_3_starts),
		TEST(version_1_3_rotation_starts),
		TEST(table_is_read_up_to_its_version_only),
		TEST(version_after_3_2_is_not_supported),
		TEST(version_unknown_is_refused),
		TEST(entry_required_missing_is_named),
		TEST(display_entries_may_be_missing),
		TEST(dma_33_with_multi_engine_aware_context_entries_are_required),
		TEST(dma_33_without_multi_engine_aware_context_entries_are_optional),
		TEST(tdr_14_engine_reset_needs_its_entries),
		TEST(tdr_14_engine_reset_with_its_entries_starts),
		TEST(tdr_12_cancel_needs_its_entry),
		TEST(swz_01_swizzling_ranges_need_their_entries),
		TEST(pre_09_preemption_needs_multi_engine),
		TEST(pre_09_preemption_with_multi_engine_starts),
		TEST(pre_09_preemption_bits_are_ignored_before_1_2),
		TEST(spl_15_no_dma_patching_needs_preemption_and_multi_engine),
		TEST(spl_15_no_dma_patching_with_preemption_and_multi_engine_starts),
		TEST(sch_07_zero_nodes_are_refused),
		TEST(sch_07_more_nodes_than_are_scheduled_are_refused),
		TEST(sch_09_a_paging_node_out_of_range_is_refused),
		TEST(caps_are_recorded),
		TEST(gpu_without_system_memory_access_is_not_supported),
		TEST(caps_written_past_their_end_are_reported),
		TEST(invalid_bars_are_refused),
		TEST(out_of_memory_leaves_nothing),
		TEST(place_names_the_routine_that_the_thread_is_in),
	};

	return cmocka_run_group_tests_name("port_start", tests, NULL, NULL);
}
