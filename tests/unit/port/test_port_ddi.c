/* SPDX-License-Identifier: MIT */
/*
 * The DDI wrappers: IRQLs, statuses, bounds, fatal results; and that a dead adapter's miniport is
 * not called.
 */
#include "port_fixture.h"

#include <string.h>

#include "unit/aborts.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, port_fixture_setup, port_fixture_teardown)

/* Creates a device and a context of it, to be closed by close_objects. */
struct objects {
	HANDLE device, context;
	DXGKARG_CREATECONTEXT created;
};

static struct objects open_objects(struct port_fixture *f)
{
	struct objects o = {.device = (HANDLE)(uintptr_t)0x1234};
	DXGK_DEVICEINFO info;

	assert_int_equal(vmm_port_create_device(f->port, &o.device, false, &info), STATUS_SUCCESS);
	assert_int_equal(vmm_port_create_context(f->port, o.device, &o.created), STATUS_SUCCESS);
	o.context = o.created.hContext;
	return o;
}

static void close_objects(struct port_fixture *f, const struct objects *o)
{
	assert_int_equal(vmm_port_destroy_context(f->port, o->context), STATUS_SUCCESS);
	assert_int_equal(vmm_port_destroy_device(f->port, o->device), STATUS_SUCCESS);
	assert_int_equal(f->m->live_devices, 0);
	assert_int_equal(f->m->live_contexts, 0);
}

/* ---- devices and contexts ---- */

static void create_device_returns_the_handle_and_sizes(void **state)
{
	struct port_fixture *f = *state;
	HANDLE device = (HANDLE)(uintptr_t)0x77;
	DXGK_DEVICEINFO info;
	const struct scripted_call *call;

	port_fixture_run(f);
	assert_int_equal(vmm_port_create_device(f->port, &device, true, &info), STATUS_SUCCESS);
	call = scripted_last(f->m, VIDMM_DDI_CREATE_DEVICE);
	assert_int_equal((uintptr_t)call->in.create_device.hDevice, 0x77);
	/* Flags: SystemDevice, no higher bits */
	assert_int_equal((uintptr_t)call->in.create_device.pInfo, 1);
	assert_int_equal(call->irql, PASSIVE_LEVEL);
	assert_ptr_not_equal(device, (HANDLE)(uintptr_t)0x77);
	assert_int_equal(info.AllocationListSize, 128);
	assert_int_equal(vmm_port_destroy_device(f->port, device), STATUS_SUCCESS);
}

static void create_device_without_device_info_has_no_sizes(void **state)
{
	struct port_fixture *f = *state;
	HANDLE device = NULL;
	DXGK_DEVICEINFO info;

	f->m->settings.leave_device_info = true;
	port_fixture_run(f);
	for (int system = 0; system < 2; system++) {
		memset(&info, 0xFF, sizeof(info));
		assert_int_equal(vmm_port_create_device(f->port, &device, system, &info),
				 STATUS_SUCCESS);
		assert_int_equal(info.DmaBufferSize, 0);
		assert_int_equal(vmm_port_destroy_device(f->port, device), STATUS_SUCCESS);
	}
}

static void a_failed_create_device_leaves_nothing(void **state)
{
	struct port_fixture *f = *state;
	HANDLE device = (HANDLE)(uintptr_t)0x77;
	DXGK_DEVICEINFO info;

	port_fixture_run(f);
	scripted_fail(f->m, VIDMM_DDI_CREATE_DEVICE, STATUS_NO_MEMORY, 1);
	assert_int_equal(vmm_port_create_device(f->port, &device, false, &info), STATUS_NO_MEMORY);
	assert_int_equal((uintptr_t)device, 0x77);
	assert_nothing_found(f);
}

static void create_device_with_an_undocumented_status_fails(void **state)
{
	struct port_fixture *f = *state;
	HANDLE device = NULL;
	DXGK_DEVICEINFO info;

	port_fixture_run(f);
	scripted_fail(f->m, VIDMM_DDI_CREATE_DEVICE, STATUS_DATA_ERROR, 1);
	assert_int_equal(vmm_port_create_device(f->port, &device, false, &info),
			 STATUS_INVALID_PARAMETER);
	assert_finding(f, "DMA-01", "create_device returned 0xc000003e");
}

static void sch_08_affinity_is_engine_0(void **state)
{
	struct port_fixture *f = *state;
	struct objects o;
	DXGKARG_CREATECONTEXT args = {.NodeOrdinal = 1, .EngineAffinity = 1};

	port_fixture_run(f);
	o = open_objects(f); /* affinity 0 */
	assert_int_equal(
		scripted_last(f->m, VIDMM_DDI_CREATE_CONTEXT)->in.create_context.EngineAffinity, 1);
	assert_int_equal(o.created.ContextInfo.DmaBufferSize, 64 << 10);
	assert_int_equal(vmm_port_create_context(f->port, o.device, &args), STATUS_SUCCESS);
	assert_int_equal(vmm_port_destroy_context(f->port, args.hContext), STATUS_SUCCESS);
	args = (DXGKARG_CREATECONTEXT){.EngineAffinity = 3};
	assert_int_equal(vmm_port_create_context(f->port, o.device, &args),
			 STATUS_INVALID_PARAMETER);
	assert_finding(f, "SCH-08", "0x3");
	close_objects(f, &o);
}

static void sch_07_a_missing_node_is_refused(void **state)
{
	struct port_fixture *f = *state;
	struct objects o;
	DXGKARG_CREATECONTEXT args = {.NodeOrdinal = 2};

	port_fixture_run(f);
	o = open_objects(f);
	assert_int_equal(vmm_port_create_context(f->port, o.device, &args),
			 STATUS_INVALID_PARAMETER);
	assert_finding(f, "SCH-07", "NodeOrdinal is 2");
	assert_int_equal(scripted_count(f->m, VIDMM_DDI_CREATE_CONTEXT), 1);
	close_objects(f, &o);
}

static void a_failed_create_context_leaves_nothing(void **state)
{
	struct port_fixture *f = *state;
	struct objects o;
	DXGKARG_CREATECONTEXT args = {.hContext = (HANDLE)(uintptr_t)0x99};

	port_fixture_run(f);
	o = open_objects(f);
	scripted_fail(f->m, VIDMM_DDI_CREATE_CONTEXT, STATUS_NO_MEMORY, 1);
	assert_int_equal(vmm_port_create_context(f->port, o.device, &args), STATUS_NO_MEMORY);
	assert_int_equal((uintptr_t)args.hContext, 0x99);
	assert_int_equal(args.EngineAffinity, 0);
	close_objects(f, &o);
}

static void dma_33_the_device_handle_replaces_the_context_handle(void **state)
{
	struct port_fixture *f = *state;
	struct objects o;

	f->m->settings.caps.SchedulingCaps.MultiEngineAware = 0;
	f->m->settings.device.DmaBufferSize = 4096;
	f->m->settings.device.DmaBufferSegmentSet = 2;
	port_fixture_run(f);
	o = open_objects(f);
	assert_ptr_equal(o.context, o.device);
	assert_int_equal(o.created.ContextInfo.DmaBufferSize, 4096);
	assert_int_equal(o.created.ContextInfo.DmaBufferSegmentSet, 2);
	assert_int_equal(o.created.ContextInfo.PatchLocationListSize, 256);
	assert_int_equal(vmm_port_destroy_context(f->port, o.context), STATUS_SUCCESS);
	assert_int_equal(vmm_port_destroy_device(f->port, o.device), STATUS_SUCCESS);
	assert_int_equal(scripted_count(f->m, VIDMM_DDI_CREATE_CONTEXT), 0);
	assert_int_equal(scripted_count(f->m, VIDMM_DDI_DESTROY_CONTEXT), 0);
}

static void dma_33_a_device_without_sizes_is_refused(void **state)
{
	struct port_fixture *f = *state;
	HANDLE device = NULL;
	DXGK_DEVICEINFO info;
	DXGKARG_CREATECONTEXT args = {0};

	f->m->settings.caps.SchedulingCaps.MultiEngineAware = 0;
	f->m->settings.leave_device_info = true;
	port_fixture_run(f);
	assert_int_equal(vmm_port_create_device(f->port, &device, false, &info), STATUS_SUCCESS);
	assert_int_equal(vmm_port_create_context(f->port, device, &args), STATUS_INVALID_PARAMETER);
	assert_finding(f, "DMA-33", "must return a DXGK_DEVICEINFO");
	assert_int_equal(vmm_port_destroy_device(f->port, device), STATUS_SUCCESS);
}

/* ---- allocations ---- */

static void alf_33_alf_34_allocations_are_created_opened_closed_and_destroyed(void **state)
{
	struct port_fixture *f = *state;
	struct scripted_allocation private_data = {
		.size_bytes = 8192, .flags = 1, .renaming_limit = 4};
	DXGK_ALLOCATIONINFO info = {.pPrivateDriverData = &private_data,
				    .PrivateDriverDataSize = sizeof(private_data)};
	DXGKARG_CREATEALLOCATION create = {
		.NumAllocations = 1, .pAllocationInfo = &info, .Flags.Resource = 1};
	DXGK_OPENALLOCATIONINFO open_info = {.hAllocation = 5};
	DXGKARG_OPENALLOCATION open = {
		.NumAllocations = 1, .pOpenAllocation = &open_info, .Flags.Create = 1};
	struct objects o;

	port_fixture_run(f);
	o = open_objects(f);
	assert_int_equal(vmm_port_create_allocation(f->port, &create), STATUS_SUCCESS);
	assert_int_equal(info.Size, 8192);
	assert_int_equal(info.MaximumRenamingListLength, 4);
	assert_int_equal(vmm_port_open_allocation(f->port, o.device, &open), STATUS_SUCCESS);
	assert_int_equal(f->m->live_opens, 1);
	assert_int_equal(vmm_port_close_allocation(f->port, o.device,
						   &open_info.hDeviceSpecificAllocation, 1),
			 STATUS_SUCCESS);
	assert_int_equal(
		vmm_port_destroy_allocation(f->port, create.hResource, &info.hAllocation, 1, true),
		STATUS_SUCCESS);
	assert_true(scripted_last(f->m, VIDMM_DDI_DESTROY_ALLOCATION)
			    ->in.destroy_allocation.Flags.DestroyResource);
	assert_int_equal(f->m->live_opens + f->m->live_allocations + f->m->live_resources, 0);
	close_objects(f, &o);
	assert_nothing_found(f);
}

static void alf_33_each_status_of_create_allocation_is_mapped(void **state)
{
	static const NTSTATUS documented[] = {STATUS_INVALID_PARAMETER, STATUS_NO_MEMORY,
					      STATUS_GRAPHICS_DRIVER_MISMATCH};
	struct port_fixture *f = *state;
	DXGKARG_CREATEALLOCATION args = {.hResource = (HANDLE)(uintptr_t)0x55};

	port_fixture_run(f);
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(documented); i++) {
		scripted_fail(f->m, VIDMM_DDI_CREATE_ALLOCATION, documented[i], 1);
		assert_int_equal(vmm_port_create_allocation(f->port, &args), documented[i]);
	}
	assert_nothing_found(f);
	scripted_fail(f->m, VIDMM_DDI_CREATE_ALLOCATION, STATUS_NO_VIDEO_MEMORY, 1);
	assert_int_equal(vmm_port_create_allocation(f->port, &args), STATUS_INVALID_PARAMETER);
	assert_finding(f, "ALF-33", "create_allocation returned 0xc01e0100");
	assert_int_equal((uintptr_t)args.hResource, 0x55);
}

static void fail_destroy(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	(void)context, (void)m;
	if (call->ddi == VIDMM_DDI_DESTROY_DEVICE)
		call->status = STATUS_UNSUCCESSFUL;
}

static void a_failed_destroy_is_reported_and_ignored(void **state)
{
	struct port_fixture *f = *state;
	HANDLE device = NULL;
	DXGK_DEVICEINFO info;

	port_fixture_run(f);
	f->m->hook = fail_destroy;
	assert_int_equal(vmm_port_create_device(f->port, &device, false, &info), STATUS_SUCCESS);
	assert_int_equal(vmm_port_destroy_device(f->port, device), STATUS_UNSUCCESSFUL);
	assert_finding(f, "PNP-03", "destroy_device returned 0xc0000001");
	assert_false(vmm_port_dead(f->port));
}

/* ---- Render ---- */

struct render {
	char command[256], dma[256], private_data[64];
	DXGK_ALLOCATIONLIST allocations[4];
	D3DDDI_PATCHLOCATIONLIST patches[4];
	DXGKARG_RENDER args;
};

static void prepare_render(struct render *r)
{
	struct scripted_command command = {
		.op = SCRIPTED_USE, .size_bytes = sizeof(command), .allocation = 1};

	memset(r, 0, sizeof(*r));
	memcpy(r->command, &command, sizeof(command));
	r->args = (DXGKARG_RENDER){
		.pCommand = r->command,
		.CommandLength = sizeof(command),
		.pDmaBuffer = r->dma,
		.DmaSize = sizeof(r->dma),
		.pDmaBufferPrivateData = r->private_data,
		.DmaBufferPrivateDataSize = sizeof(r->private_data),
		.pAllocationList = r->allocations,
		.AllocationListSize = 4,
		.pPatchLocationListOut = r->patches,
		.PatchLocationListOutSize = 4,
	};
}

static void render_is_called_at_passive_and_counted(void **state)
{
	struct port_fixture *f = *state;
	struct objects o;
	struct render r;

	port_fixture_run(f);
	o = open_objects(f);
	prepare_render(&r);
	assert_int_equal(vmm_port_render(f->port, o.context, &r.args), STATUS_SUCCESS);
	assert_ptr_equal(r.args.pDmaBuffer, r.dma + sizeof(struct scripted_command));
	assert_ptr_equal(r.args.pPatchLocationListOut, r.patches + 1);
	assert_int_equal(r.patches[0].AllocationIndex, 1);
	assert_int_equal(scripted_last(f->m, VIDMM_DDI_RENDER)->irql, PASSIVE_LEVEL);
	assert_ptr_equal(scripted_last(f->m, VIDMM_DDI_RENDER)->handle, o.context);
	close_objects(f, &o);
	assert_nothing_found(f);
}

static void dma_29_dma_31_each_status_of_render_is_mapped(void **state)
{
	static const NTSTATUS documented[] = {
		STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER,
		STATUS_NO_MEMORY,
		STATUS_PRIVILEGED_INSTRUCTION,
		STATUS_ILLEGAL_INSTRUCTION,
		STATUS_INVALID_PARAMETER,
		STATUS_INVALID_USER_BUFFER,
		STATUS_INVALID_HANDLE,
		STATUS_GRAPHICS_DRIVER_MISMATCH,
		STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE,
	};
	struct port_fixture *f = *state;
	struct objects o;
	struct render r;

	port_fixture_run(f);
	o = open_objects(f);
	prepare_render(&r);
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(documented); i++) {
		scripted_fail(f->m, VIDMM_DDI_RENDER, documented[i], 1);
		assert_int_equal(vmm_port_render(f->port, o.context, &r.args), documented[i]);
	}
	assert_nothing_found(f);
	scripted_fail(f->m, VIDMM_DDI_RENDER, STATUS_PENDING, 1);
	assert_int_equal(vmm_port_render(f->port, o.context, &r.args), STATUS_INVALID_PARAMETER);
	assert_finding(f, "DMA-31", "render returned 0x00000103");
	assert_false(vmm_port_dead(f->port));
	close_objects(f, &o);
}

/* Asserts that the last call gave exactly one reason, and that this is its text. */
static void assert_one_reason(struct port_fixture *f, const char *text)
{
	assert_int_equal(f->reasons, 1);
	assert_string_equal(f->reason, text);
	f->reasons = 0;
}

static void q_160_a_documented_failure_gives_a_reason_with_ddi_and_status(void **state)
{
	struct port_fixture *f = *state;
	struct objects o;
	struct render r;
	HANDLE device = NULL;
	DXGK_DEVICEINFO info;
	DXGKARG_CREATECONTEXT context = {0};
	DXGKARG_CREATEALLOCATION create = {0};
	DXGKARG_OPENALLOCATION open = {0};

	port_fixture_run(f);
	o = open_objects(f);
	f->reasons = 0;
	scripted_fail(f->m, VIDMM_DDI_CREATE_DEVICE, STATUS_NO_MEMORY, 1);
	(void)vmm_port_create_device(f->port, &device, false, &info);
	assert_one_reason(f, "DMA-01: the miniport failed DxgkDdiCreateDevice with 0xc0000017");
	scripted_fail(f->m, VIDMM_DDI_CREATE_CONTEXT, STATUS_GRAPHICS_DRIVER_MISMATCH, 1);
	assert_int_equal(vmm_port_create_context(f->port, o.device, &context),
			 STATUS_GRAPHICS_DRIVER_MISMATCH);
	assert_one_reason(f, "DMA-01: the miniport failed DxgkDdiCreateContext with 0xc01e0009");
	scripted_fail(f->m, VIDMM_DDI_CREATE_ALLOCATION, STATUS_INVALID_PARAMETER, 1);
	(void)vmm_port_create_allocation(f->port, &create);
	assert_one_reason(f, "ALF-33: the miniport failed DxgkDdiCreateAllocation with 0xc000000d");
	scripted_fail(f->m, VIDMM_DDI_OPEN_ALLOCATION, STATUS_NO_MEMORY, 1);
	(void)vmm_port_open_allocation(f->port, o.device, &open);
	assert_one_reason(f, "ALF-34: the miniport failed DxgkDdiOpenAllocation with 0xc0000017");
	prepare_render(&r);
	scripted_fail(f->m, VIDMM_DDI_RENDER, STATUS_ILLEGAL_INSTRUCTION, 1);
	(void)vmm_port_render(f->port, o.context, &r.args);
	assert_one_reason(f, "DMA-31: the miniport failed DxgkDdiRender with 0xc000001d");
	close_objects(f, &o);
	assert_nothing_found(f);
}

static void q_160_no_reason_without_a_failure_and_with_a_finding(void **state)
{
	struct port_fixture *f = *state;
	struct objects o;
	struct render r;
	HANDLE device = NULL;
	DXGK_DEVICEINFO info;

	port_fixture_run(f);
	f->reasons = 0;
	o = open_objects(f);
	prepare_render(&r);
	assert_int_equal(vmm_port_render(f->port, o.context, &r.args), STATUS_SUCCESS);
	prepare_render(&r);
	/* DMA-29: not a failure; the caller has to continue with another buffer */
	scripted_fail(f->m, VIDMM_DDI_RENDER, STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER, 1);
	assert_int_equal(vmm_port_render(f->port, o.context, &r.args),
			 STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER);
	assert_nothing_found(f);
	/* an undocumented status gives a finding instead */
	scripted_fail(f->m, VIDMM_DDI_CREATE_DEVICE, STATUS_DATA_ERROR, 1);
	(void)vmm_port_create_device(f->port, &device, false, &info);
	assert_finding(f, "DMA-01", "create_device returned 0xc000003e");
	assert_int_equal(f->reasons, 0);
	close_objects(f, &o);
}

struct shift {
	int64_t dma, private_data, patch_bytes;
	NTSTATUS status;
};

static void shift_render(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	const struct shift *s = context;
	DXGKARG_RENDER *args = call->args;

	(void)m;
	if (call->ddi != VIDMM_DDI_RENDER)
		return;
	args->pDmaBuffer = (char *)call->in.render.pDmaBuffer + s->dma;
	args->pDmaBufferPrivateData =
		(char *)call->in.render.pDmaBufferPrivateData + s->private_data;
	args->pPatchLocationListOut =
		(void *)((char *)call->in.render.pPatchLocationListOut + s->patch_bytes);
	call->status = s->status;
}

static NTSTATUS render_shifted(struct port_fixture *f, const struct shift *s)
{
	struct objects o = open_objects(f);
	struct render r;
	NTSTATUS status;

	prepare_render(&r);
	f->m->hook = shift_render;
	f->m->hook_context = (void *)(uintptr_t)s;
	status = vmm_port_render(f->port, o.context, &r.args);
	f->m->hook = NULL;
	if (!vmm_port_dead(f->port))
		close_objects(f, &o);
	return status;
}

static void dma_28_exactly_full_buffers_are_in_bounds(void **state)
{
	static const struct shift full = {256, 64, 4 * sizeof(D3DDDI_PATCHLOCATIONLIST),
					  STATUS_SUCCESS},
				  none = {0};
	struct port_fixture *f = *state;

	port_fixture_run(f);
	assert_int_equal(render_shifted(f, &full), STATUS_SUCCESS);
	assert_int_equal(render_shifted(f, &none), STATUS_SUCCESS);
	assert_nothing_found(f);
}

/* The output of a failed call is ignored. */
static void dma_28_bounds_are_not_checked_after_a_failure(void **state)
{
	static const struct shift s = {9999, 9999, 1, STATUS_INVALID_PARAMETER};
	struct port_fixture *f = *state;

	port_fixture_run(f);
	assert_int_equal(render_shifted(f, &s), STATUS_INVALID_PARAMETER);
	assert_nothing_found(f);
}

static void check_dma_28(struct port_fixture *f, struct shift s, const char *text)
{
	port_fixture_run(f);
	assert_int_equal(render_shifted(f, &s), STATUS_DEVICE_REMOVED);
	assert_finding(f, "DMA-28", text);
	assert_fatal(f, 0x10E, s.dma ? 0x12 : s.private_data ? 0x13 : 0x1000 + VIDMM_DDI_RENDER);
}

static void dma_28_commands_past_the_end_are_fatal(void **state)
{
	check_dma_28(*state, (struct shift){.dma = 257}, "pDmaBuffer by 257 of 256 bytes");
}

static void dma_28_a_command_pointer_before_the_start_is_fatal(void **state)
{
	check_dma_28(*state, (struct shift){.dma = -8}, "pDmaBuffer by -8 of");
}

static void dma_28_private_data_past_the_end_is_fatal(void **state)
{
	check_dma_28(*state, (struct shift){.private_data = 65}, "private data by 65 of 64");
}

static void dma_28_patch_locations_past_the_end_are_fatal(void **state)
{
	check_dma_28(*state, (struct shift){.patch_bytes = 5 * sizeof(D3DDDI_PATCHLOCATIONLIST)},
		     "pPatchLocationListOut by 120 of 96");
}

static void dma_28_half_a_patch_location_is_fatal(void **state)
{
	check_dma_28(*state, (struct shift){.patch_bytes = 4}, "pPatchLocationListOut by 4 of 96");
}

static void dma_28_bounds_are_checked_for_each_pass(void **state)
{
	check_dma_28(*state,
		     (struct shift){.dma = 300, .status = STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER},
		     "300");
}

/* ---- Patch and SubmitCommand ---- */

static void pat_17_paging_patch_has_no_lists(void **state)
{
	struct port_fixture *f = *state;
	DXGKARG_PATCH args = {.DmaBufferSize = 64,
			      .DmaBufferSubmissionEndOffset = 64,
			      .SubmissionFenceId = 9,
			      .Flags.Paging = 1};

	port_fixture_run(f);
	assert_int_equal(vmm_port_patch(f->port, &args), STATUS_SUCCESS);
	assert_int_equal(scripted_last(f->m, VIDMM_DDI_PATCH)->irql, PASSIVE_LEVEL);
	assert_nothing_found(f);
}

static void patch_with_lists(void *arg)
{
	static D3DDDI_PATCHLOCATIONLIST list;
	DXGKARG_PATCH args = {
		.Flags.Paging = 1, .pPatchLocationList = &list, .PatchLocationListSize = 1};

	(void)!vmm_port_patch(((struct port_fixture *)arg)->port, &args);
}

static void pat_17_lists_in_a_paging_patch_assert(void **state)
{
	struct port_fixture *f = *state;

	port_fixture_run(f);
	assert_true(aborts(patch_with_lists, f));
}

static void pat_18_failing_patch_is_fatal(void **state)
{
	struct port_fixture *f = *state;
	DXGKARG_PATCH args = {.SubmissionFenceId = 77};

	port_fixture_run(f);
	scripted_fail(f->m, VIDMM_DDI_PATCH, STATUS_UNSUCCESSFUL, 1);
	assert_int_equal(vmm_port_patch(f->port, &args), STATUS_DEVICE_REMOVED);
	assert_finding(f, "PAT-18", "patch returned 0xc0000001");
	assert_fatal(f, 0x119, 0x3);
	assert_int_equal(f->fatal[2], (uint32_t)STATUS_UNSUCCESSFUL);
}

static DXGKARG_SUBMITCOMMAND packet(uint32_t fence)
{
	return (DXGKARG_SUBMITCOMMAND){
		.SubmissionFenceId = fence, .Flags.Paging = 1, .Flags.NullRendering = 1};
}

static void submit_runs_at_dispatch(void **state)
{
	struct port_fixture *f = *state;
	DXGKARG_SUBMITCOMMAND args = packet(5);

	f->m->settings.complete_at_once = false;
	port_fixture_run(f);
	assert_int_equal(vmm_port_submit(f->port, &args), STATUS_SUCCESS);
	assert_int_equal(scripted_last(f->m, VIDMM_DDI_SUBMIT_COMMAND)->irql, DISPATCH_LEVEL);
	assert_int_equal(vmm_nt_irql(f->nt), PASSIVE_LEVEL);
	assert_int_equal(f->interrupts, 0);
	assert_int_equal(scripted_complete(f->m, 1, 1), 1);
	assert_int_equal(f->interrupts, 1);
	assert_int_equal(f->dpcs, 1);
	assert_nothing_found(f);
}

/*
 * Like PRE-05, for a completion: the report may come before the call returns; its DPC waits for the
 * IRQL to drop.
 */
static void a_completion_during_the_submit_call_is_accepted(void **state)
{
	struct port_fixture *f = *state;
	DXGKARG_SUBMITCOMMAND args = packet(0xFFFFFFFF);

	port_fixture_run(f);
	assert_int_equal(vmm_port_submit(f->port, &args), STATUS_SUCCESS);
	assert_int_equal(f->interrupts, 1);
	assert_int_equal(f->interrupt[0].DmaCompleted.SubmissionFenceId, 0xFFFFFFFF);
	assert_int_equal(f->dpcs, 1);
	assert_int_equal(f->dpc_irql, DISPATCH_LEVEL);
	assert_nothing_found(f);
}

static void sub_05_failing_submit_is_fatal(void **state)
{
	struct port_fixture *f = *state;
	DXGKARG_SUBMITCOMMAND args = packet(5);

	port_fixture_run(f);
	scripted_fail(f->m, VIDMM_DDI_SUBMIT_COMMAND, STATUS_NO_MEMORY, 1);
	assert_int_equal(vmm_port_submit(f->port, &args), STATUS_DEVICE_REMOVED);
	assert_finding(f, "SUB-05", "submit_command returned 0xc0000017");
	assert_fatal(f, 0x119, 0x2);
	assert_int_equal(f->fatal[2], (uint32_t)STATUS_NO_MEMORY);
	assert_int_equal(vmm_nt_irql(f->nt), PASSIVE_LEVEL);
}

static void submit_in_submit(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	struct port_fixture *f = context;
	DXGKARG_SUBMITCOMMAND args = packet(6);

	(void)m;
	if (call->ddi == VIDMM_DDI_PATCH)
		(void)!vmm_port_submit(f->port, &args);
}

static void patch_that_submits(void *arg)
{
	struct port_fixture *f = arg;
	DXGKARG_PATCH args = {.SubmissionFenceId = 1};

	f->m->hook = submit_in_submit;
	f->m->hook_context = f;
	(void)!vmm_port_patch(f->port, &args);
}

static void overlapping_calls_of_the_scheduler_class_assert(void **state)
{
	struct port_fixture *f = *state;

	port_fixture_run(f);
	assert_true(aborts(patch_that_submits, f));
}

static void sub_14_query_current_fence_runs_at_passive_level(void **state)
{
	struct port_fixture *f = *state;
	DXGKARG_SUBMITCOMMAND args = packet(41);
	UINT fence = 0;

	f->m->settings.ignore_fences = true;
	port_fixture_run(f);
	assert_int_equal(vmm_port_submit(f->port, &args), STATUS_SUCCESS);
	assert_int_equal(f->interrupts, 0);
	assert_int_equal(vmm_port_query_current_fence(f->port, 1, &fence), STATUS_SUCCESS);
	assert_int_equal(fence, 41);
	assert_int_equal(f->interrupts, 1); /* the lost interrupt came during the query */
	scripted_fail(f->m, VIDMM_DDI_QUERY_CURRENT_FENCE, STATUS_UNSUCCESSFUL, 1);
	fence = 7;
	assert_int_equal(vmm_port_query_current_fence(f->port, 1, &fence), STATUS_UNSUCCESSFUL);
	assert_int_equal(fence, 7);
	assert_finding(f, "SUB-14", "0xc0000001");
}

/* ---- levels ---- */

static void raise_in(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	(void)m;
	if (call->ddi == *(enum vidmm_ddi *)context)
		KfRaiseIrql(DISPATCH_LEVEL);
}

static void lower_in_submit(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	(void)context, (void)m;
	if (call->ddi == VIDMM_DDI_SUBMIT_COMMAND)
		KeLowerIrql(PASSIVE_LEVEL);
}

static void nt_02_a_passive_ddi_that_returns_at_dispatch_is_reported(void **state)
{
	static enum vidmm_ddi where = VIDMM_DDI_PATCH;
	struct port_fixture *f = *state;
	DXGKARG_PATCH args = {.SubmissionFenceId = 1};

	port_fixture_run(f);
	f->m->hook = raise_in;
	f->m->hook_context = &where;
	assert_int_equal(vmm_port_patch(f->port, &args), STATUS_SUCCESS);
	assert_finding(f, "NT-02", "patch was entered at IRQL 0 and returned at 2");
	assert_int_equal(vmm_nt_irql(f->nt), PASSIVE_LEVEL);
}

static void nt_02_a_submit_that_returns_at_passive_is_reported(void **state)
{
	struct port_fixture *f = *state;
	DXGKARG_SUBMITCOMMAND args = packet(5);

	port_fixture_run(f);
	f->m->hook = lower_in_submit;
	assert_int_equal(vmm_port_submit(f->port, &args), STATUS_SUCCESS);
	assert_finding(f, "NT-02", "submit_command was entered at IRQL 2 and returned at 0");
	assert_int_equal(vmm_nt_irql(f->nt), PASSIVE_LEVEL);
}

/* ---- paging ---- */

static void pag_09_each_status_of_build_paging_buffer_is_mapped(void **state)
{
	struct port_fixture *f = *state;
	char buffer[4096];
	DXGKARG_BUILDPAGINGBUFFER args = {.pDmaBuffer = buffer,
					  .DmaSize = sizeof(buffer),
					  .Operation = DXGK_OPERATION_DISCARD_CONTENT};

	port_fixture_run(f);
	assert_int_equal(vmm_port_build_paging_buffer(f->port, &args), STATUS_SUCCESS);
	scripted_fail(f->m, VIDMM_DDI_BUILD_PAGING_BUFFER, STATUS_GRAPHICS_ALLOCATION_BUSY, 1);
	assert_int_equal(vmm_port_build_paging_buffer(f->port, &args),
			 STATUS_GRAPHICS_ALLOCATION_BUSY);
	scripted_fail(f->m, VIDMM_DDI_BUILD_PAGING_BUFFER, STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER,
		      1);
	assert_int_equal(vmm_port_build_paging_buffer(f->port, &args),
			 STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER);
	assert_nothing_found(f);
	scripted_fail(f->m, VIDMM_DDI_BUILD_PAGING_BUFFER, STATUS_NO_MEMORY, 1);
	assert_int_equal(vmm_port_build_paging_buffer(f->port, &args), STATUS_DEVICE_REMOVED);
	assert_finding(f, "PAG-09", "build_paging_buffer returned 0xc0000017");
	assert_fatal(f, 0x10E, 0xB);
}

static void shift_paging(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	const struct shift *s = context;
	DXGKARG_BUILDPAGINGBUFFER *args = call->args;

	(void)m;
	if (call->ddi != VIDMM_DDI_BUILD_PAGING_BUFFER)
		return;
	args->pDmaBuffer = (char *)args->pDmaBuffer + s->dma;
	if (s->private_data)
		args->pDmaBufferPrivateData = (char *)args->pDmaBufferPrivateData + s->private_data;
}

static NTSTATUS build_shifted(struct port_fixture *f, struct shift s)
{
	char buffer[4096], private_data[16];
	DXGKARG_BUILDPAGINGBUFFER args = {.pDmaBuffer = buffer,
					  .DmaSize = sizeof(buffer),
					  .pDmaBufferPrivateData = private_data,
					  .DmaBufferPrivateDataSize = sizeof(private_data),
					  .Operation = DXGK_OPERATION_DISCARD_CONTENT};

	f->m->hook = shift_paging;
	f->m->hook_context = &s;
	return vmm_port_build_paging_buffer(f->port, &args);
}

static void dma_28_an_exactly_full_paging_buffer_is_in_bounds(void **state)
{
	struct port_fixture *f = *state;

	port_fixture_run(f);
	assert_int_equal(build_shifted(f, (struct shift){.dma = 4096, .private_data = 16}),
			 STATUS_SUCCESS);
	assert_nothing_found(f);
}

static void dma_28_paging_commands_past_the_end_are_fatal(void **state)
{
	struct port_fixture *f = *state;

	port_fixture_run(f);
	assert_int_equal(build_shifted(f, (struct shift){.dma = 4104}), STATUS_DEVICE_REMOVED);
	assert_finding(f, "DMA-28", "pDmaBuffer by 4104 of 4096 bytes");
	assert_fatal(f, 0x10E, 0x12);
}

static void dma_28_paging_private_data_past_the_end_is_fatal(void **state)
{
	struct port_fixture *f = *state;

	port_fixture_run(f);
	assert_int_equal(build_shifted(f, (struct shift){.private_data = 17}),
			 STATUS_DEVICE_REMOVED);
	assert_finding(f, "DMA-28", "private data by 17 of 16");
}

/* ---- swizzling ranges ---- */

static DXGKARG_ACQUIRESWIZZLINGRANGE range(struct port_fixture *f)
{
	DXGKARG_ACQUIRESWIZZLINGRANGE args = {
		.PrivateDriverData = 3, .RangeId = 1, .SegmentId = 1, .RangeSize = 65536};

	args.CPUTranslatedAddress.QuadPart = (LONGLONG)f->m->bar_physical;
	return args;
}

static void change_range(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	(void)context, (void)m;
	if (call->ddi == VIDMM_DDI_ACQUIRE_SWIZZLING_RANGE)
		((DXGKARG_ACQUIRESWIZZLINGRANGE *)call->args)->RangeSize *= 2;
}

static void swz_02_a_range_is_acquired_and_released(void **state)
{
	struct port_fixture *f = *state;
	DXGKARG_ACQUIRESWIZZLINGRANGE args;
	DXGKARG_RELEASESWIZZLINGRANGE release = {.PrivateDriverData = 3, .RangeId = 1};

	f->m->settings.caps.NumberOfSwizzlingRanges = 2;
	port_fixture_run(f);
	args = range(f);
	assert_int_equal(vmm_port_acquire_swizzling_range(f->port, &args, false), STATUS_SUCCESS);
	assert_int_equal(vmm_port_release_swizzling_range(f->port, &release), STATUS_SUCCESS);
	assert_int_equal(scripted_last(f->m, VIDMM_DDI_RELEASE_SWIZZLING_RANGE)->in.release.RangeId,
			 1);
	assert_nothing_found(f);
}

static void swz_03_an_acquired_range_with_changed_values_counts_as_refused(void **state)
{
	struct port_fixture *f = *state;
	DXGKARG_ACQUIRESWIZZLINGRANGE args;

	f->m->settings.caps.NumberOfSwizzlingRanges = 2;
	port_fixture_run(f);
	f->m->hook = change_range;
	args = range(f);
	assert_int_equal(vmm_port_acquire_swizzling_range(f->port, &args, false),
			 STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNSUPPORTED);
	assert_finding(f, "SWZ-03", "RangeSize from 65536 to 131072");
	assert_int_equal(args.RangeSize, 65536);
	assert_int_equal(scripted_count(f->m, VIDMM_DDI_RELEASE_SWIZZLING_RANGE), 1);
}

static void swz_08_each_status_of_acquire_is_mapped(void **state)
{
	static const NTSTATUS documented[] = {STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNAVAILABLE,
					      STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNSUPPORTED};
	struct port_fixture *f = *state;
	DXGKARG_ACQUIRESWIZZLINGRANGE args;

	f->m->settings.caps.NumberOfSwizzlingRanges = 2;
	port_fixture_run(f);
	args = range(f);
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(documented); i++) {
		scripted_fail(f->m, VIDMM_DDI_ACQUIRE_SWIZZLING_RANGE, documented[i], 1);
		assert_int_equal(vmm_port_acquire_swizzling_range(f->port, &args, false),
				 documented[i]);
	}
	assert_nothing_found(f);
	scripted_fail(f->m, VIDMM_DDI_ACQUIRE_SWIZZLING_RANGE, STATUS_NO_MEMORY, 1);
	assert_int_equal(vmm_port_acquire_swizzling_range(f->port, &args, false),
			 STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNSUPPORTED);
	assert_finding(f, "SWZ-08", "acquire_swizzling_range returned 0xc0000017");
}

/* ---- a dead adapter ---- */

static void a_fatal_violation_is_reported_once(void **state)
{
	struct port_fixture *f = *state;

	port_fixture_run(f);
	assert_false(vmm_port_dead(f->port));
	vmm_port_fatal(f->port, 0x119, 1, 2, 3);
	vmm_port_fatal(f->port, 0x10E, 4, 5, 6);
	assert_fatal(f, 0x119, 1);
	assert_int_equal(f->fatal[2], 2);
	assert_int_equal(f->fatal[3], 3);
}

static void a_dead_port_no_longer_calls_the_miniport(void **state)
{
	struct port_fixture *f = *state;
	DXGKARG_CREATECONTEXT context = {0};
	DXGKARG_CREATEALLOCATION create = {0};
	DXGKARG_OPENALLOCATION open = {0};
	DXGKARG_RENDER render = {0};
	DXGKARG_PATCH patch = {0};
	DXGKARG_SUBMITCOMMAND submit = packet(1);
	DXGKARG_BUILDPAGINGBUFFER paging = {0};
	DXGKARG_ACQUIRESWIZZLINGRANGE acquire = {0};
	DXGKARG_RELEASESWIZZLINGRANGE release = {0};
	HANDLE handle = NULL;
	DXGK_DEVICEINFO info;
	UINT fence;
	uint32_t calls;

	port_fixture_run(f);
	calls = f->m->call_count;
	vmm_port_fatal(f->port, 0x10E, 0, 0, 0);
	assert_int_equal(vmm_port_create_device(f->port, &handle, false, &info),
			 STATUS_DEVICE_REMOVED);
	assert_int_equal(vmm_port_destroy_device(f->port, handle), STATUS_DEVICE_REMOVED);
	assert_int_equal(vmm_port_create_context(f->port, handle, &context), STATUS_DEVICE_REMOVED);
	assert_int_equal(vmm_port_destroy_context(f->port, handle), STATUS_DEVICE_REMOVED);
	assert_int_equal(vmm_port_create_allocation(f->port, &create), STATUS_DEVICE_REMOVED);
	assert_int_equal(vmm_port_destroy_allocation(f->port, NULL, NULL, 0, false),
			 STATUS_DEVICE_REMOVED);
	assert_int_equal(vmm_port_open_allocation(f->port, handle, &open), STATUS_DEVICE_REMOVED);
	assert_int_equal(vmm_port_close_allocation(f->port, handle, NULL, 0),
			 STATUS_DEVICE_REMOVED);
	assert_int_equal(vmm_port_render(f->port, handle, &render), STATUS_DEVICE_REMOVED);
	assert_int_equal(vmm_port_patch(f->port, &patch), STATUS_DEVICE_REMOVED);
	assert_int_equal(vmm_port_submit(f->port, &submit), STATUS_DEVICE_REMOVED);
	assert_int_equal(vmm_port_build_paging_buffer(f->port, &paging), STATUS_DEVICE_REMOVED);
	assert_int_equal(vmm_port_acquire_swizzling_range(f->port, &acquire, false),
			 STATUS_DEVICE_REMOVED);
	assert_int_equal(vmm_port_release_swizzling_range(f->port, &release),
			 STATUS_DEVICE_REMOVED);
	assert_int_equal(vmm_port_query_current_fence(f->port, 0, &fence), STATUS_DEVICE_REMOVED);
	assert_int_equal(f->m->call_count, calls);
	/* Later reports of its GPU are ignored. */
	scripted_report(f->m, 0, 1);
	assert_int_equal(f->interrupts + f->dpcs, 0);
	/* It is destroyed like any other. */
	port_fixture_stop(f);
	assert_string_equal(scripted_order(f->m),
			    "add_device start_device query_adapter_info query_adapter_info "
			    "query_adapter_info stop_device remove_device unload");
}

static void take_and_call(void *arg)
{
	struct port_fixture *f = arg;
	struct vmm_os_mutex state_lock;
	HANDLE device = NULL;
	DXGK_DEVICEINFO info;

	vmm_os_mutex_init(&state_lock, f->os, VMM_PORT_RANK_OBJECT, "paging");
	vmm_os_mutex_lock(&state_lock);
	(void)!vmm_port_create_device(f->port, &device, false, &info);
}

static void an_object_ddi_under_a_core_lock_asserts(void **state)
{
	struct port_fixture *f = *state;

	port_fixture_run(f);
	assert_true(aborts(take_and_call, f));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(create_device_returns_the_handle_and_sizes),
		TEST(create_device_without_device_info_has_no_sizes),
		TEST(a_failed_create_device_leaves_nothing),
		TEST(create_device_with_an_undocumented_status_fails),
		TEST(sch_08_affinity_is_engine_0),
		TEST(sch_07_a_missing_node_is_refused),
		TEST(a_failed_create_context_leaves_nothing),
		TEST(dma_33_the_device_handle_replaces_the_context_handle),
		TEST(dma_33_a_device_without_sizes_is_refused),
		TEST(alf_33_alf_34_allocations_are_created_opened_closed_and_destroyed),
		TEST(alf_33_each_status_of_create_allocation_is_mapped),
		TEST(a_failed_destroy_is_reported_and_ignored),
		TEST(render_is_called_at_passive_and_counted),
		TEST(dma_29_dma_31_each_status_of_render_is_mapped),
		TEST(q_160_a_documented_failure_gives_a_reason_with_ddi_and_status),
		TEST(q_160_no_reason_without_a_failure_and_with_a_finding),
		TEST(dma_28_exactly_full_buffers_are_in_bounds),
		TEST(dma_28_bounds_are_not_checked_after_a_failure),
		TEST(dma_28_commands_past_the_end_are_fatal),
		TEST(dma_28_a_command_pointer_before_the_start_is_fatal),
		TEST(dma_28_private_data_past_the_end_is_fatal),
		TEST(dma_28_patch_locations_past_the_end_are_fatal),
		TEST(dma_28_half_a_patch_location_is_fatal),
		TEST(dma_28_bounds_are_checked_for_each_pass),
		TEST(pat_17_paging_patch_has_no_lists),
		TEST(pat_17_lists_in_a_paging_patch_assert),
		TEST(pat_18_failing_patch_is_fatal),
		TEST(submit_runs_at_dispatch),
		TEST(a_completion_during_the_submit_call_is_accepted),
		TEST(sub_05_failing_submit_is_fatal),
		TEST(overlapping_calls_of_the_scheduler_class_assert),
		TEST(sub_14_query_current_fence_runs_at_passive_level),
		TEST(nt_02_a_passive_ddi_that_returns_at_dispatch_is_reported),
		TEST(nt_02_a_submit_that_returns_at_passive_is_reported),
		TEST(pag_09_each_status_of_build_paging_buffer_is_mapped),
		TEST(dma_28_an_exactly_full_paging_buffer_is_in_bounds),
		TEST(dma_28_paging_commands_past_the_end_are_fatal),
		TEST(dma_28_paging_private_data_past_the_end_is_fatal),
		TEST(swz_02_a_range_is_acquired_and_released),
		TEST(swz_03_an_acquired_range_with_changed_values_counts_as_refused),
		TEST(swz_08_each_status_of_acquire_is_mapped),
		TEST(a_fatal_violation_is_reported_once),
		TEST(a_dead_port_no_longer_calls_the_miniport),
		TEST(an_object_ddi_under_a_core_lock_asserts),
	};

	return cmocka_run_group_tests_name("port_ddi", tests, NULL, NULL);
}
