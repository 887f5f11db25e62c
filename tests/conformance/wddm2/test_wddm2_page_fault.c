/* SPDX-License-Identifier: MIT */
/*
 * Devices that are lost alone: by a page fault (TDR-19), by an engine reset, or marked by their
 * client (TDRS-15); and their fences (TDR-10, TDRS-05, TDRS-07, TDRS-08). Two D3DKMT processes
 * have a device and a context of node 0 each.
 */
#include "wddm2_world.h"

#include <sync_world.h>
#include <unistd.h>

#define SHARED 3u /* Shared and NtSecuritySharing */

enum {
	WRITE = DXGK_PAGE_FAULT_WRITE,
	FENCE_INVALID = DXGK_PAGE_FAULT_FENCE_INVALID,
	ADAPTER_RESET = DXGK_PAGE_FAULT_ADAPTER_RESET_REQUIRED,
	ENGINE_RESET = DXGK_PAGE_FAULT_ENGINE_RESET_REQUIRED,
	FATAL_HARDWARE = DXGK_PAGE_FAULT_FATAL_HARDWARE_ERROR,
	ACTIVE = D3DKMT_DEVICEEXECUTION_ACTIVE,
	RESET = D3DKMT_DEVICEEXECUTION_RESET,
	PAGE_FAULT = D3DKMT_DEVICEEXECUTION_ERROR_DMAPAGEFAULT,
};

struct fault_world {
	struct sync_world s;
	struct sync_fence fence;
	D3DKMT_HANDLE context, others;
};

static void alone(struct scripted_miniport *m)
{
	sync_3_0(m);
	m->settings.caps.SupportPerEngineTDR = 1;
	m->settings.table.DxgkDdiResetEngine = scripted_reset_engine;
	m->settings.table.DxgkDdiQueryEngineStatus = scripted_query_engine_status;
	m->settings.table.DxgkDdiQueryDependentEngineGroup = scripted_query_engine_group;
}

static void with_cancel(struct scripted_miniport *m)
{
	alone(m);
	m->settings.caps.SchedulingCaps.CancelCommandAware = 1;
	m->settings.table.DxgkDdiCancelCommand = scripted_cancel_command;
}

static D3DKMT_HANDLE context_of(D3DKMT_HANDLE device)
{
	D3DKMT_CREATECONTEXT args = {.hDevice = device};

	assert_int_equal(D3DKMTCreateContext(&args), STATUS_SUCCESS);
	return args.hContext;
}

static void start_with(struct fault_world *f, void **state, world_setup *setup, uint32_t level)
{
	struct vidmm_tdr_options tdr = VIDMM_TDR_DEFAULTS;
	const struct client_options options = {.tdr = &tdr};

	tdr.level = level;
	sync_start_with(&f->s, state, setup, &options);
	f->fence = sync_fence(&f->s, SHARED, 3);
	f->context = context_of(f->s.device);
	vidmm_d3dkmt_enter(f->s.other);
	f->others = context_of(f->s.other_device);
	vidmm_d3dkmt_enter(NULL);
	f->s.w.m->settings.complete_at_once = false;
	scripted_forget(f->s.w.m);
}

static void start(struct fault_world *f, void **state, world_setup *setup)
{
	start_with(f, state, setup, 3);
}

static void stop(struct fault_world *f)
{
	f->s.w.m->settings.complete_at_once = true;
	world_run(&f->s.w);
	sync_stop(&f->s);
}

/* Of the first process, or of the other one. */
static NTSTATUS render(struct fault_world *f, bool other)
{
	D3DKMT_RENDER args = {.hContext = other ? f->others : f->context};

	vidmm_d3dkmt_enter(other ? f->s.other : NULL);
	NTSTATUS status = D3DKMTRender(&args);
	vidmm_d3dkmt_enter(NULL);
	vidmm_settle(f->s.w.client.host);
	return status;
}

static uint32_t state_of(struct fault_world *f, bool other)
{
	D3DKMT_GETDEVICESTATE args = {.hDevice = other ? f->s.other_device : f->s.device,
				      .StateType = D3DKMT_DEVICESTATE_EXECUTION};

	vidmm_d3dkmt_enter(other ? f->s.other : NULL);
	assert_int_equal(D3DKMTGetDeviceState(&args), STATUS_SUCCESS);
	vidmm_d3dkmt_enter(NULL);
	return args.ExecutionState;
}

static D3DKMT_DEVICEPAGEFAULT_STATE record_of(D3DKMT_HANDLE device)
{
	D3DKMT_GETDEVICESTATE args = {.hDevice = device,
				      .StateType = D3DKMT_DEVICESTATE_PAGE_FAULT};

	assert_int_equal(D3DKMTGetDeviceState(&args), STATUS_SUCCESS);
	return args.PageFaultState;
}

static uint32_t submitted(const struct fault_world *f, uint32_t n)
{
	const struct scripted_call *call =
		world_nth_of(&f->s.w, VIDMM_DDI_SUBMIT_COMMAND, false, n);

	assert_non_null(call);
	return call->in.submit.SubmissionFenceId;
}

/*
 * Two packets of the first device and one of the other. The miniport has two; the oldest of them
 * faults.
 */
static void fault(struct fault_world *f, uint32_t flags)
{
	assert_int_equal(render(f, false), STATUS_SUCCESS);
	assert_int_equal(render(f, true), STATUS_SUCCESS);
	assert_int_equal(render(f, false), STATUS_SUCCESS);
	assert_int_equal(world_render_submits(&f->s.w), 2);
	scripted_page_fault(f->s.w.m, 0, flags & FENCE_INVALID ? 0 : submitted(f, 0), flags);
	vidmm_settle(f->s.w.client.host);
}

static void expect_lost(struct fault_world *f, NTSTATUS answer)
{
	assert_int_equal(state_of(f, false), PAGE_FAULT);
	assert_int_equal(render(f, false), answer);
	assert_true(*f->fence.value == UINT64_MAX); /* TDR-10 */
}

/* The other device continues, with a packet that was queued behind, and with new ones. */
static void expect_survivor(struct fault_world *f)
{
	f->s.w.m->settings.complete_at_once = true;
	world_run(&f->s.w);
	assert_int_equal(state_of(f, true), ACTIVE);
	uint32_t before = world_render_submits(&f->s.w);
	assert_int_equal(render(f, true), STATUS_SUCCESS);
	assert_int_equal(world_render_submits(&f->s.w), before + 1);
}

static uint32_t resets(const struct fault_world *f)
{
	return scripted_count(f->s.w.m, VIDMM_DDI_RESET_FROM_TIMEOUT);
}

static uint32_t engine_resets(const struct fault_world *f)
{
	return scripted_count(f->s.w.m, VIDMM_DDI_RESET_ENGINE);
}

/* ---- TDR-19 ---- */

static void tdr_19_tdr_10_a_page_fault_loses_the_faulting_device_only(void **state)
{
	struct fault_world f;

	start(&f, state, with_cancel);
	fault(&f, WRITE);
	expect_lost(&f, STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE);
	const D3DKMT_DEVICEPAGEFAULT_STATE r = record_of(f.s.device);
	assert_true(r.FaultedPrimitiveAPISequenceNumber == 0x1122334455667788);
	assert_int_equal(r.FaultedPipelineStage, DXGK_RENDER_PIPELINE_STAGE_PIXEL_SHADER);
	assert_int_equal(r.FaultedBindTableEntry, 17);
	assert_int_equal(r.PageFaultFlags, WRITE);
	assert_int_equal(r.FaultErrorCode.IsDeviceSpecificCode, 1);
	assert_int_equal(r.FaultErrorCode.GeneralErrorCode, 99);
	assert_true(r.FaultedVirtualAddress == 0xABCDE000);
	/* Packets that it had queued are canceled (TDR-12). */
	assert_int_equal(scripted_count(f.s.w.m, VIDMM_DDI_CANCEL_COMMAND), 1);
	expect_survivor(&f);
	assert_int_equal(resets(&f) + engine_resets(&f), 0);
	stop(&f);
}

static void tdr_19_without_a_page_fault_there_is_no_record(void **state)
{
	struct fault_world f;

	start(&f, state, alone);
	assert_true(record_of(f.s.device).FaultedVirtualAddress == 0);
	assert_int_equal(record_of(f.s.device).PageFaultFlags, 0);
	stop(&f);
}

static void tdr_19_a_page_fault_that_requests_it_resets_the_engine(void **state)
{
	struct fault_world f;

	start(&f, state, alone);
	fault(&f, ENGINE_RESET);
	assert_int_equal(engine_resets(&f), 1);
	expect_lost(&f, STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE);
	expect_survivor(&f);
	assert_int_equal(resets(&f), 0);
	stop(&f);
}

/* The packet is unknown: the running one is taken for it, and the engine is reset. */
static void tdr_19_a_page_fault_without_a_fence_id_resets_the_engine(void **state)
{
	struct fault_world f;

	start(&f, state, alone);
	fault(&f, FENCE_INVALID);
	assert_int_equal(engine_resets(&f), 1);
	expect_lost(&f, STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE);
	expect_survivor(&f);
	stop(&f);
}

/* As those by a timeout: the fifth within a minute denies the process the GPU. */
static void tdr_20_tdr_19_engine_resets_by_page_faults_count_for_the_process(void **state)
{
	struct fault_world f;

	start(&f, state, alone);
	const D3DKMT_HANDLE adapter = f.s.adapter;
	for (uint32_t i = 1; i <= 5; i++) {
		D3DKMT_CREATEDEVICE device = {.hAdapter = adapter};

		assert_int_equal(D3DKMTCreateDevice(&device), STATUS_SUCCESS);
		f.context = context_of(device.hDevice);
		assert_int_equal(render(&f, false), STATUS_SUCCESS);
		scripted_page_fault(f.s.w.m, 0, submitted(&f, world_render_submits(&f.s.w) - 1),
				    WRITE | ENGINE_RESET);
		vidmm_settle(f.s.w.client.host);
		assert_int_equal(engine_resets(&f), i);
	}
	D3DKMT_CREATEDEVICE denied = {.hAdapter = adapter};
	assert_int_equal(D3DKMTCreateDevice(&denied), STATUS_DEVICE_REMOVED);
	assert_int_equal(resets(&f), 0);
	expect_survivor(&f);
	stop(&f);
}

static void expect_adapter_reset(struct fault_world *f)
{
	while (!scripted_count(f->s.w.m, VIDMM_DDI_RESTART_FROM_TIMEOUT))
		vidmm_settle(f->s.w.client.host);
	vidmm_settle(f->s.w.client.host);
	assert_int_equal(resets(f), 1);
	expect_lost(f, STATUS_DEVICE_REMOVED);
	assert_int_equal(state_of(f, true), RESET);
	assert_int_equal(render(f, true), STATUS_DEVICE_REMOVED);
	/* A new device works (TDR-07). */
	f->s.w.m->settings.complete_at_once = true;
	D3DKMT_HANDLE second = sync_open_device(&f->s), context = context_of(second);
	D3DKMT_RENDER args = {.hContext = context};
	assert_int_equal(D3DKMTRender(&args), STATUS_SUCCESS);
	world_run(&f->s.w);
}

static void tdr_19_a_page_fault_that_requests_it_resets_the_adapter(void **state)
{
	struct fault_world f;

	start(&f, state, alone);
	fault(&f, ADAPTER_RESET | ENGINE_RESET);
	expect_adapter_reset(&f);
	assert_int_equal(engine_resets(&f), 0);
	stop(&f);
}

static void tdr_19_without_resetengine_the_adapter_is_reset(void **state)
{
	struct fault_world f;

	start(&f, state, sync_3_0);
	fault(&f, ENGINE_RESET);
	expect_adapter_reset(&f);
	stop(&f);
}

static void tdr_19_tdr_17_a_failed_engine_reset_becomes_an_adapter_reset(void **state)
{
	struct fault_world f;

	start(&f, state, alone);
	scripted_fail(f.s.w.m, VIDMM_DDI_RESET_ENGINE, STATUS_UNSUCCESSFUL, 1);
	fault(&f, ENGINE_RESET);
	expect_adapter_reset(&f);
	assert_int_equal(engine_resets(&f), 1);
	stop(&f);
}

/* The watchdog starts the reset of a fault, and without timeouts there is no watchdog. */
static void tdr_19_tdr_01_level_zero_resets_nothing(void **state)
{
	struct fault_world f;

	start_with(&f, state, alone, 0);
	fault(&f, ENGINE_RESET);
	assert_int_equal(state_of(&f, false), PAGE_FAULT);
	assert_int_equal(resets(&f) + engine_resets(&f), 0);
	stop(&f);
}

static void expect_stop(struct fault_world *f, uint64_t code, uint64_t p1, uint64_t p2, uint64_t p3)
{
	const uint64_t expected[4] = {code, p1, p2, p3};

	vidmm_settle(f->s.w.client.host);
	for (uint32_t i = 0; i < 4; i++)
		assert_true(f->s.w.fatal[i] == expected[i]);
	f->s.w.expected_fatals = 1;
	assert_int_equal(render(f, true), STATUS_DEVICE_REMOVED);
	stop(f);
}

static void tdr_19_stop_116_a_fatal_hardware_error(void **state)
{
	struct fault_world f;

	start(&f, state, alone);
	fault(&f, FATAL_HARDWARE | WRITE);
	expect_stop(&f, 0x116, 0, submitted(&f, 0), FATAL_HARDWARE | WRITE);
}

static void tdr_19_sub_12_a_faulted_fence_id_never_submitted_is_reported(void **state)
{
	struct fault_world f;

	start(&f, state, alone);
	assert_int_equal(render(&f, false), STATUS_SUCCESS);
	const uint32_t last = submitted(&f, 0);
	scripted_page_fault(f.s.w.m, 0, last + 7, WRITE);
	vidmm_settle(f.s.w.client.host);
	sync_found(&f.s, "SUB-12");
	expect_stop(&f, 0x119, 0x1, last + 7, last);
}

/*
 * FENCE_INVALID requires id 0, and id 0 alone means the same: it is reported and treated like
 * that.
 */
static void tdr_19_fence_invalid_with_a_nonzero_id_is_reported(void **state)
{
	for (uint32_t i = 0; i < 2; i++) {
		struct fault_world f;

		start(&f, state, alone);
		assert_int_equal(render(&f, false), STATUS_SUCCESS);
		scripted_page_fault(f.s.w.m, 0, i ? submitted(&f, 0) : 0,
				    i ? FENCE_INVALID : WRITE);
		vidmm_settle(f.s.w.client.host);
		sync_found(&f.s, "TDR-19");
		assert_int_equal(engine_resets(&f), 1);
		expect_lost(&f, STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE);
		stop(&f);
	}
}

/* The packet is complete: no device is lost; a requested reset is done. */
static void tdr_19_a_page_fault_of_a_completed_packet_loses_no_device(void **state)
{
	struct fault_world f;

	start(&f, state, alone);
	assert_int_equal(render(&f, false), STATUS_SUCCESS);
	assert_int_equal(scripted_complete(f.s.w.m, 0, 1), 1);
	vidmm_settle(f.s.w.client.host);
	scripted_page_fault(f.s.w.m, 0, submitted(&f, 0), WRITE);
	vidmm_settle(f.s.w.client.host);
	assert_int_equal(state_of(&f, false), ACTIVE);
	assert_int_equal(engine_resets(&f), 0);
	stop(&f);
}

static void before_2_0(struct scripted_miniport *m)
{
	m->settings.complete_at_once = true;
}

static void tdr_19_before_wddm_2_0_a_page_fault_interrupt_is_ignored(void **state)
{
	struct world w;

	world_start(&w, state, before_2_0);
	w.m->settings.complete_at_once = false;
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	world_submit_use(&w.context, a);
	scripted_page_fault(w.m, 0, 0, FENCE_INVALID);
	world_run(&w);
	world_submit_use(&w.context, a);
	world_stop(&w);
}

/* ---- engine resets and fences ---- */

static void advance_time(struct fault_world *f, uint64_t seconds)
{
	vidmm_sleep_until_ns(f->s.w.client.host,
			     vidmm_now_ns(f->s.w.client.host) + seconds * 1000000000);
	vidmm_settle(f->s.w.client.host);
}

/*
 * An engine reset leaves innocent devices and their fences unchanged; an adapter reset loses all
 * devices.
 */
static void tdrs_07_tdr_10_innocent_devices_go_on(void **state, world_setup *setup, bool engine)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 args = {.Info.Type = D3DDDI_MONITORED_FENCE};
	struct fault_world f;

	start(&f, state, setup);
	vidmm_d3dkmt_enter(f.s.other);
	args.hDevice = f.s.other_device;
	assert_int_equal(D3DKMTCreateSynchronizationObject2(&args), STATUS_SUCCESS);
	vidmm_d3dkmt_enter(NULL);
	const _Atomic uint64_t *innocent = args.Info.MonitoredFence.FenceValueCPUVirtualAddress;
	assert_int_equal(render(&f, false), STATUS_SUCCESS);
	assert_int_equal(render(&f, true), STATUS_SUCCESS);
	advance_time(&f, 1);
	assert_int_equal(engine_resets(&f) + resets(&f), 0);
	advance_time(&f, 2);
	assert_int_equal(engine_resets(&f), engine);
	assert_int_equal(resets(&f), !engine);
	assert_true(*f.fence.value == UINT64_MAX);
	assert_true(*innocent == (engine ? 0 : UINT64_MAX));
	assert_int_equal(render(&f, true), engine ? STATUS_SUCCESS : STATUS_DEVICE_REMOVED);
	stop(&f);
}

static void tdrs_07_an_engine_reset_spares_devices_on_other_engines(void **state)
{
	tdrs_07_tdr_10_innocent_devices_go_on(state, alone, true);
}

static void tdrs_07_an_adapter_reset_affects_all_devices(void **state)
{
	tdrs_07_tdr_10_innocent_devices_go_on(state, sync_3_0, false);
}

/*
 * TDRS-05: a device that is not lost reads the maximum, too, of a fence that a lost one could have
 * signaled.
 */
static void tdrs_05_a_surviving_process_reads_the_maximum_of_a_shared_fence(void **state)
{
	struct fault_world f;
	HANDLE handle = NULL;

	start(&f, state, alone);
	assert_int_equal(D3DKMTShareObjects(1, &f.fence.handle, NULL, 0x20000, &handle),
			 STATUS_SUCCESS);
	D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2 args = {.hNtHandle = handle,
						   .hDevice = f.s.other_device};
	vidmm_d3dkmt_enter(f.s.other);
	assert_int_equal(D3DKMTOpenSyncObjectFromNtHandle2(&args), STATUS_SUCCESS);
	const _Atomic uint64_t *value = args.MonitoredFence.FenceValueCPUVirtualAddress;
	vidmm_d3dkmt_enter(NULL);
	assert_int_equal(*value, 3);
	fault(&f, ENGINE_RESET);
	assert_true(*value == UINT64_MAX);
	vidmm_d3dkmt_enter(f.s.other);
	assert_int_equal(sync_wait(f.s.other_device, args.hSyncObject, 1000), STATUS_SUCCESS);
	vidmm_d3dkmt_enter(NULL);
	expect_survivor(&f);
	close((int)(intptr_t)handle);
	stop(&f);
}

/*
 * Each hang lasts until the watchdog notices, plus TdrDelay: five resets are survived, the sixth
 * is fatal.
 */
static void tdrs_08_five_resets_within_a_minute(void **state)
{
	struct fault_world f;

	start(&f, state, sync_3_0);
	for (uint32_t i = 0; i < 6; i++) {
		D3DKMT_HANDLE device = sync_open_device(&f.s), context = context_of(device);
		D3DKMT_RENDER args = {.hContext = context};

		assert_int_equal(D3DKMTRender(&args), STATUS_SUCCESS);
		advance_time(&f, 2);
		assert_int_equal(resets(&f), i);
		advance_time(&f, 2);
		assert_int_equal(resets(&f), i < 5 ? i + 1 : 5);
	}
	assert_int_equal(f.s.w.fatal[0], 0x116);
	f.s.w.expected_fatals = 1;
	stop(&f);
}

/* ---- TDRS-15 ---- */

static void tdrs_15_a_client_marks_its_device(void **state)
{
	D3DKMT_MARKDEVICEASERROR args;
	struct sync_waiter v = {0};
	struct fault_world f;

	start(&f, state, with_cancel);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(render(&f, false), STATUS_SUCCESS); /* the miniport has two */
	v.process = f.s.process;
	sync_waiter_start(&f.s, &v, f.fence.handle, 1000);
	args = (D3DKMT_MARKDEVICEASERROR){f.s.device, D3DKMT_DEVICE_ERROR_REASON_DRIVER_ERROR};
	assert_int_equal(D3DKMTMarkDeviceAsError(&args), STATUS_SUCCESS);
	assert_int_equal(sync_waiter_join(&v), STATUS_SUCCESS);
	assert_true(*f.fence.value == UINT64_MAX);
	assert_int_equal(state_of(&f, false), RESET);
	assert_int_equal(render(&f, false), STATUS_DEVICE_REMOVED);
	/* the state does not change */
	assert_int_equal(D3DKMTMarkDeviceAsError(&args), STATUS_SUCCESS);
	assert_int_equal(resets(&f) + engine_resets(&f), 0);
	assert_int_equal(scripted_count(f.s.w.m, VIDMM_DDI_CANCEL_COMMAND), 2);
	expect_survivor(&f);
	stop(&f);
}

static void tdrs_15_invalid_requests_are_refused(void **state)
{
	struct fault_world f;

	start(&f, state, alone);
	D3DKMT_MARKDEVICEASERROR args = {f.s.device, (D3DKMT_DEVICE_ERROR_REASON)5};
	assert_int_equal(D3DKMTMarkDeviceAsError(&args), STATUS_INVALID_PARAMETER);
	sync_found(&f.s, "TDRS-15");
	assert_int_equal(D3DKMTMarkDeviceAsError(NULL), STATUS_INVALID_PARAMETER);
	sync_found(&f.s, "HND-11");
	args = (D3DKMT_MARKDEVICEASERROR){0xDEAD0040, D3DKMT_DEVICE_ERROR_REASON_GENERIC};
	assert_int_equal(D3DKMTMarkDeviceAsError(&args), STATUS_INVALID_PARAMETER);
	sync_found(&f.s, "HND-07");
	assert_int_equal(state_of(&f, false), ACTIVE);
	stop(&f);
}

/* ---- broadcast and waits ---- */

/*
 * DMA-10, SUB-28: a broadcast to a context with a pending wait is not built, and refused as such.
 */
static void dma_10_sub_28_a_broadcast_is_refused_while_a_context_waits(void **state)
{
	struct fault_world f;

	start(&f, state, sync_3_0);
	f.s.w.m->settings.complete_at_once = true;
	const D3DKMT_HANDLE second = context_of(f.s.device);
	const UINT64 value = 10;
	const D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU wait = {
		.hContext = second,
		.ObjectCount = 1,
		.ObjectHandleArray = &f.fence.handle,
		.MonitoredFenceValueArray = &value,
	};
	D3DKMT_RENDER args = {.hContext = second};
	assert_int_equal(D3DKMTWaitForSynchronizationObjectFromGpu(&wait), STATUS_SUCCESS);
	assert_int_equal(D3DKMTRender(&args), STATUS_SUCCESS); /* held */
	args = (D3DKMT_RENDER){
		.hContext = f.context, .BroadcastContextCount = 1, .BroadcastContext = {second}};
	assert_int_equal(D3DKMTRender(&args), STATUS_NOT_SUPPORTED);
	assert_int_equal(world_render_submits(&f.s.w), 0);
	assert_int_equal(sync_signal(f.s.device, f.fence.handle, 10), STATUS_SUCCESS);
	vidmm_settle(f.s.w.client.host);
	assert_int_equal(world_render_submits(&f.s.w), 1);
	assert_int_equal(D3DKMTRender(&args), STATUS_SUCCESS);
	world_run(&f.s.w);
	assert_int_equal(world_render_submits(&f.s.w), 3);
	stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_SIM(tdr_19_tdr_10_a_page_fault_loses_the_faulting_device_only),
		ON_SIM(tdr_19_without_a_page_fault_there_is_no_record),
		ON_SIM(tdr_19_a_page_fault_that_requests_it_resets_the_engine),
		ON_SIM(tdr_19_a_page_fault_without_a_fence_id_resets_the_engine),
		ON_SIM(tdr_20_tdr_19_engine_resets_by_page_faults_count_for_the_process),
		ON_SIM(tdr_19_a_page_fault_that_requests_it_resets_the_adapter),
		ON_SIM(tdr_19_without_resetengine_the_adapter_is_reset),
		ON_SIM(tdr_19_tdr_17_a_failed_engine_reset_becomes_an_adapter_reset),
		ON_SIM(tdr_19_tdr_01_level_zero_resets_nothing),
		ON_SIM(tdr_19_stop_116_a_fatal_hardware_error),
		ON_SIM(tdr_19_sub_12_a_faulted_fence_id_never_submitted_is_reported),
		ON_SIM(tdr_19_fence_invalid_with_a_nonzero_id_is_reported),
		ON_SIM(tdr_19_a_page_fault_of_a_completed_packet_loses_no_device),
		ON_SIM(tdr_19_before_wddm_2_0_a_page_fault_interrupt_is_ignored),
		ON_SIM(tdrs_07_an_engine_reset_spares_devices_on_other_engines),
		ON_SIM(tdrs_07_an_adapter_reset_affects_all_devices),
		ON_SIM(tdrs_05_a_surviving_process_reads_the_maximum_of_a_shared_fence),
		ON_SIM(tdrs_08_five_resets_within_a_minute),
		ON_SIM(tdrs_15_a_client_marks_its_device),
		ON_SIM(tdrs_15_invalid_requests_are_refused),
		ON_SIM(dma_10_sub_28_a_broadcast_is_refused_while_a_context_waits),
	};

	return cmocka_run_group_tests_name("page fault", tests, NULL, NULL);
}
