/* SPDX-License-Identifier: MIT */
/*
 * Hardware engines that do not respond (TDR-21), and queues without a timeout (TDRS-09). Virtual
 * time.
 */
#include "hw_world.h"

#include <stdio.h>
#include <string.h>

#define SECOND_NS        1000000000ull
#define NO_GPU_TIMEOUT   0x1u
#define PAGE_FAULT_RESET 8 /* DXGK_PAGE_FAULT_ENGINE_RESET_REQUIRED */

static void start(struct hw_world *h, void **state, world_setup *setup)
{
	static const struct vidmm_tdr_options tdr = VIDMM_TDR_DEFAULTS;
	const struct client_options options = {.tdr = &tdr};

	hw_start_with(h, state, setup, &options);
}

static void let_pass(struct hw_world *h, uint64_t ns)
{
	vidmm_sleep_until_ns(h->w.client.host, vidmm_now_ns(h->w.client.host) + ns);
	hw_settle(h);
}

static void tdr_21_only_the_hung_context_is_lost(void **state)
{
	struct hw_world h;

	start(&h, state, NULL);
	struct scripted_miniport *m = h.w.m;
	D3DKMT_HANDLE good = hw_device(&h);
	struct hw_queue q = hw_queue(&h, h.context, 0), other = hw_queue(&h, hw_context(good), 0);
	assert_int_equal(hw_submit(&q, 1), STATUS_SUCCESS);
	let_pass(&h, SECOND_NS / 2);
	assert_int_equal(hw_submit(&other, 1), STATUS_SUCCESS);
	let_pass(&h, SECOND_NS);
	assert_int_equal(scripted_count(m, VIDMM_DDI_RESET_HW_ENGINE), 0);
	let_pass(&h, 6 * SECOND_NS / 10);
	assert_int_equal(scripted_count(m, VIDMM_DDI_RESET_HW_ENGINE), 1);
	assert_int_equal(scripted_count(m, VIDMM_DDI_COLLECT_DBG_INFO), 1);
	assert_int_equal(scripted_count(m, VIDMM_DDI_RESUME_HW_ENGINE), 1);
	assert_int_equal(scripted_count(m, VIDMM_DDI_RESET_FROM_TIMEOUT), 0);
	assert_int_equal(hw_submit(&q, 2), STATUS_DEVICE_REMOVED);
	assert_true(hw_value(&q) == UINT64_MAX); /* TDRS-14 */
	assert_int_equal(hw_state_of(h.device), D3DKMT_DEVICEEXECUTION_HUNG);
	assert_int_equal(hw_state_of(good), D3DKMT_DEVICEEXECUTION_ACTIVE);
	assert_int_equal(m->hw_queue[1].count, 1); /* it was not invalidated */
	assert_int_equal(hw_submit(&other, 2), STATUS_SUCCESS);
	hw_run(&h);
	assert_int_equal(hw_value(&other), 2);
	hw_stop(&h);
}

static void tdr_21_every_invalidated_context_loses_its_device(void **state)
{
	struct hw_world h;

	start(&h, state, NULL);
	h.w.m->settings.hw_collateral = true;
	D3DKMT_HANDLE good = hw_device(&h);
	struct hw_queue q = hw_queue(&h, h.context, 0), other = hw_queue(&h, hw_context(good), 0);
	assert_int_equal(hw_submit(&q, 1), STATUS_SUCCESS);
	let_pass(&h, SECOND_NS);
	assert_int_equal(hw_submit(&other, 1), STATUS_SUCCESS);
	let_pass(&h, 3 * SECOND_NS / 2);
	assert_int_equal(hw_state_of(h.device), D3DKMT_DEVICEEXECUTION_HUNG);
	assert_int_equal(hw_state_of(good), D3DKMT_DEVICEEXECUTION_RESET);
	assert_int_equal(hw_submit(&other, 2), STATUS_DEVICE_REMOVED);
	hw_stop(&h);
}

static void in_the_reset(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	DXGKARGCB_INVALIDATEHWCONTEXT args = {.hAdapter = m->services.DeviceHandle,
					      .hHwContext = m};
	bool *done = context;

	if (call->ddi != VIDMM_DDI_RESET_HW_ENGINE || *done)
		return;
	*done = true;
	assert_int_equal(m->services.DxgkCbInvalidateHwContext(&args), STATUS_INVALID_PARAMETER);
}

static void out_of_it(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	DXGKARGCB_INVALIDATEHWCONTEXT args = {.hAdapter = m->services.DeviceHandle,
					      .hHwContext = m->hw_context[0].port};
	bool *done = context;

	if (call->ddi != VIDMM_DDI_SUBMIT_COMMAND_TO_HW_QUEUE || *done)
		return;
	*done = true;
	assert_int_equal(m->services.DxgkCbInvalidateHwContext(&args), STATUS_INVALID_DEVICE_STATE);
}

static void tdr_21_invalidatehwcontext_is_valid_during_resethwengine_only(void **state)
{
	bool done = false;
	struct hw_world h;

	start(&h, state, NULL);
	struct hw_queue q = hw_queue(&h, h.context, 0);
	h.w.m->hook_context = &done;
	h.w.m->hook = out_of_it;
	assert_int_equal(hw_submit(&q, 1), STATUS_SUCCESS);
	assert_true(done);
	world_expect_finding(&h.w, "TDR-21");
	done = false;
	h.w.m->hook = in_the_reset;
	let_pass(&h, 5 * SECOND_NS / 2);
	assert_true(done);
	world_expect_finding(&h.w, "TDR-21");
	h.w.m->hook = NULL;
	hw_stop(&h);
}

/* Each of these ends with an adapter reset, which loses all devices. */
static void promoted(void **state, world_setup *setup, enum vidmm_ddi failing)
{
	struct hw_world h;

	start(&h, state, setup);
	struct hw_queue q = hw_queue(&h, h.context, 0);
	if (failing)
		scripted_fail(h.w.m, failing, STATUS_UNSUCCESSFUL, 1);
	assert_int_equal(hw_submit(&q, 1), STATUS_SUCCESS);
	let_pass(&h, 6 * SECOND_NS);
	assert_int_equal(scripted_count(h.w.m, VIDMM_DDI_RESET_HW_ENGINE), 1);
	assert_int_equal(scripted_count(h.w.m, VIDMM_DDI_RESET_FROM_TIMEOUT), 1);
	assert_int_equal(scripted_count(h.w.m, VIDMM_DDI_RESTART_FROM_TIMEOUT), 1);
	assert_int_equal(hw_submit(&q, 2), STATUS_DEVICE_REMOVED);
	assert_true(hw_value(&q) == UINT64_MAX);
	hw_forget(&h);
	/* A new device works afterwards. */
	h.w.m->hw_resetting = 0;
	h.w.m->settings.hw_spare_all = false;
	h.w.m->hw_queue[0].count = 0;
	struct hw_queue next = hw_queue(&h, hw_context(hw_device(&h)), 0);
	assert_int_equal(hw_submit(&next, 1), STATUS_SUCCESS);
	assert_int_equal(scripted_hw_complete(h.w.m, 1, 1), 1);
	assert_int_equal(hw_value(&next), 1);
	hw_stop(&h);
}

static void spares_all(struct scripted_miniport *m)
{
	hw_setup(m);
	m->settings.hw_spare_all = true;
}

static void tdr_21_a_failed_engine_reset_becomes_an_adapter_reset(void **state)
{
	promoted(state, NULL, VIDMM_DDI_RESET_HW_ENGINE);
}

static void tdr_21_an_engine_reset_without_invalidation_becomes_an_adapter_reset(void **state)
{
	promoted(state, spares_all, 0);
}

static void tdr_21_a_failed_resumehwengine_becomes_an_adapter_reset(void **state)
{
	promoted(state, hw_setup, VIDMM_DDI_RESUME_HW_ENGINE);
}

static void sub_14_a_lost_completion_interrupt_is_detected(void **state)
{
	struct hw_world h;

	start(&h, state, NULL);
	struct hw_queue q = hw_queue(&h, h.context, 0);
	assert_int_equal(hw_submit(&q, 1), STATUS_SUCCESS);
	scripted_hw_store(h.w.m, 0, 1, false);
	h.w.m->hw_queue[0].count = 0;
	let_pass(&h, 3 * SECOND_NS);
	assert_int_equal(scripted_count(h.w.m, VIDMM_DDI_RESET_HW_ENGINE), 0);
	assert_int_equal(hw_reached(h.device, q.fence, 1), STATUS_SUCCESS);
	hw_stop(&h);
}

static void tdrs_09_a_disablegputimeout_queue_is_not_reset(void **state)
{
	struct hw_world h;

	start(&h, state, NULL);
	struct hw_queue q = hw_queue(&h, h.context, NO_GPU_TIMEOUT);
	assert_int_equal(hw_submit(&q, 1), STATUS_SUCCESS);
	let_pass(&h, 10 * SECOND_NS);
	assert_int_equal(scripted_count(h.w.m, VIDMM_DDI_RESET_HW_ENGINE), 0);
	assert_int_equal(scripted_count(h.w.m, VIDMM_DDI_RESET_FROM_TIMEOUT), 0);
	assert_int_equal(scripted_hw_complete(h.w.m, 0, 1), 1);
	assert_int_equal(hw_value(&q), 1);
	hw_stop(&h);
}

static const struct vidmm_tdr_options ignoring = {.level = 3,
						  .delay_ms = 2000,
						  .ddi_delay_ms = 5000,
						  .limit_time_ms = 60000,
						  .limit_count = 5,
						  .debug_mode = 1};

static void tdr_01_tdr_21_no_engine_reset_if_timeouts_are_ignored(void **state)
{
	const struct client_options options = {.tdr = &ignoring};
	struct hw_world h;

	hw_start_with(&h, state, NULL, &options);
	struct hw_queue q = hw_queue(&h, h.context, 0);
	assert_int_equal(hw_submit(&q, 1), STATUS_SUCCESS);
	let_pass(&h, 10 * SECOND_NS);
	assert_int_equal(scripted_count(h.w.m, VIDMM_DDI_RESET_HW_ENGINE), 0);
	assert_true(client_events(&h.w.client, VIDMM_EVENT_RECOVERY) >= 3);
	assert_int_equal(scripted_hw_complete(h.w.m, 0, 1), 1);
	assert_int_equal(hw_value(&q), 1);
	hw_stop(&h);
}

/* A packet of one queue runs, and its context is asked to leave the GPU for other memory. */
static struct hw_queue suspend_without_answer(struct hw_world *h, D3DDDICB_CREATEPAGINGQUEUE *queue)
{
	struct scripted_miniport *m = h->w.m;
	/* that does not concern this */
	struct hw_queue q = hw_queue(h, h->context, NO_GPU_TIMEOUT);

	m->settings.complete_at_once = true;
	hw_listing(h->device, 12 * MIB);
	hw_settle(h);
	m->settings.complete_at_once = false;
	assert_int_equal(hw_submit(&q, 1), STATUS_SUCCESS);
	m->settings.hw_withhold_suspension = true;
	*queue = wddm2_queue(&h->w.device);
	D3DKMT_HANDLE other = wddm2_allocate(&h->w.device, 12 * MIB, WORLD_MEMORY);
	D3DDDI_MAKERESIDENT wanted = {
		.hPagingQueue = queue->hPagingQueue, .NumAllocations = 1, .AllocationList = &other};
	assert_int_equal(wddm2_try_make(&h->w.device, &wanted), E_PENDING);
	hw_settle(h);
	assert_int_equal(scripted_count(m, VIDMM_DDI_SUSPEND_CONTEXT), 1);
	return q;
}

static void sch_11_an_unanswered_suspendcontext_resets_the_engine(void **state)
{
	D3DDDICB_CREATEPAGINGQUEUE queue;
	struct hw_world h;

	start(&h, state, NULL);
	(void)suspend_without_answer(&h, &queue);
	let_pass(&h, 3 * SECOND_NS);
	assert_int_equal(scripted_count(h.w.m, VIDMM_DDI_RESET_HW_ENGINE), 1);
	assert_int_equal(hw_state_of(h.device), D3DKMT_DEVICEEXECUTION_HUNG);
	h.w.m->settings.hw_withhold_suspension = false;
	hw_run(&h);
	assert_int_equal(wddm2_fence(&queue), 1); /* that freed the memory */
	hw_stop(&h);
}

/* Each period of TdrDelay has one timeout, which is ignored, until the answer comes. */
static void tdr_01_sch_11_an_unanswered_suspendcontext_is_ignored(void **state)
{
	const struct client_options options = {.tdr = &ignoring};
	D3DDDICB_CREATEPAGINGQUEUE queue;
	struct hw_world h;

	hw_start_with(&h, state, NULL, &options);
	struct scripted_miniport *m = h.w.m;
	struct hw_queue q = suspend_without_answer(&h, &queue);
	uint64_t before = client_events(&h.w.client, VIDMM_EVENT_RECOVERY);
	let_pass(&h, 9 * SECOND_NS);
	assert_int_equal(client_events(&h.w.client, VIDMM_EVENT_RECOVERY) - before, 2 * 4);
	assert_int_equal(scripted_count(m, VIDMM_DDI_RESET_HW_ENGINE), 0);
	m->settings.hw_withhold_suspension = false;
	scripted_hw_suspended(m, 0, m->hw_context[0].suspend_fence);
	hw_run(&h);
	assert_int_equal(wddm2_fence(&queue), 1);
	assert_int_equal(hw_value(&q), 1);
	hw_stop(&h);
}

/* Command 1 of the first queue has a page fault that asks for the reset of its engine. */
static void fault_and_reset(struct hw_world *h)
{
	DXGKARGCB_NOTIFY_INTERRUPT_DATA data = {.InterruptType =
							DXGK_INTERRUPT_HWQUEUE_PAGE_FAULTED};

	data.HwQueuePageFaulted.FaultedFenceId = 1;
	data.HwQueuePageFaulted.FaultedVirtualAddress = 0xBAD000;
	data.HwQueuePageFaulted.FaultedHwQueue = &h->w.m->hw_queue[0];
	data.HwQueuePageFaulted.PageFaultFlags = (DXGK_PAGE_FAULT_FLAGS)PAGE_FAULT_RESET;
	scripted_raise(h->w.m, &data);
	hw_settle(h);
}

static void tdr_21_a_page_fault_can_request_an_engine_reset(void **state)
{
	struct hw_world h;

	start(&h, state, NULL);
	struct hw_queue q = hw_queue(&h, h.context, 0);
	assert_int_equal(hw_submit(&q, 1), STATUS_SUCCESS);
	fault_and_reset(&h);
	assert_int_equal(scripted_count(h.w.m, VIDMM_DDI_RESET_HW_ENGINE), 1);
	assert_int_equal(hw_submit(&q, 2), STATUS_DEVICE_REMOVED);
	hw_stop(&h);
}

/* The report of a fault is applied after the queue has ended. There is nothing to invalidate. */
static void tdr_21_a_page_fault_of_a_queue_that_has_ended_resets_no_adapter(void **state)
{
	struct hw_world h;

	start(&h, state, spares_all);
	struct hw_queue ended = hw_queue(&h, h.context, 0);
	hw_destroy_queue(&ended);
	fault_and_reset(&h);
	assert_int_equal(scripted_count(h.w.m, VIDMM_DDI_RESET_HW_ENGINE), 1);
	assert_int_equal(scripted_count(h.w.m, VIDMM_DDI_RESUME_HW_ENGINE), 1);
	let_pass(&h, 10 * SECOND_NS);
	assert_int_equal(scripted_count(h.w.m, VIDMM_DDI_RESET_FROM_TIMEOUT), 0);
	struct hw_queue q = hw_queue(&h, h.context, 0);
	assert_int_equal(hw_submit(&q, 1), STATUS_SUCCESS);
	hw_run(&h);
	assert_int_equal(hw_value(&q), 1);
	hw_stop(&h);
}

struct faulting_end {
	bool done;
	uint32_t object; /* of the reason for the fault */
};

static void fault_in_the_end(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	DXGKARGCB_NOTIFY_INTERRUPT_DATA data = {.InterruptType =
							DXGK_INTERRUPT_HWQUEUE_PAGE_FAULTED};
	struct faulting_end *end = context;

	if (call->ddi != VIDMM_DDI_DESTROY_HW_QUEUE || end->done)
		return;
	end->done = true;
	data.HwQueuePageFaulted.FaultedHwQueue = &m->hw_queue[0];
	scripted_raise(m, &data);
}

static void keep_object(void *context, const struct vidmm_event *event, const char *text)
{
	struct faulting_end *end = context;

	if (strstr(text, "HWQUEUE_PAGE_FAULTED"))
		end->object = event->object;
}

/* The handle of the context is no longer valid, but it still names the context. */
static void tdr_21_a_page_fault_names_the_context_that_a_client_is_ending(void **state)
{
	struct faulting_end end = {0};
	struct hw_world h;

	start(&h, state, NULL);
	hw_queue(&h, h.context, 0);
	assert_int_not_equal(
		vidmm_subscribe(h.w.client.host, 1ull << VIDMM_EVENT_REASON, keep_object, &end), 0);
	h.w.m->hook_context = &end;
	h.w.m->hook = fault_in_the_end;
	const D3DKMT_DESTROYHWCONTEXT args = {.hHwContext = h.context};
	assert_int_equal(D3DKMTDestroyHwContext(&args), STATUS_SUCCESS);
	hw_settle(&h);
	assert_true(end.done);
	assert_int_equal(end.object, h.context);
	hw_stop(&h);
}

struct burst {
	struct scripted_miniport *m;
	uint32_t count;
	char dropped[160]; /* the text of the reason, or empty */
};

/* Reports that many faults of unknown queues before the DPC runs. */
static BOOLEAN report_burst(PVOID context)
{
	DXGKARGCB_NOTIFY_INTERRUPT_DATA data = {.InterruptType =
							DXGK_INTERRUPT_HWQUEUE_PAGE_FAULTED};
	const struct burst *burst = context;
	DXGKRNL_INTERFACE *dxgk = &burst->m->services;

	for (uint32_t i = 0; i < burst->count; i++)
		dxgk->DxgkCbNotifyInterrupt(dxgk->DeviceHandle, &data);
	return dxgk->DxgkCbQueueDpc(dxgk->DeviceHandle);
}

static void keep_dropped(void *context, const struct vidmm_event *event, const char *text)
{
	struct burst *burst = context;

	(void)event;
	if (strstr(text, "dropped"))
		snprintf(burst->dropped, sizeof(burst->dropped), "%s", text);
}

static void raise_burst(struct hw_world *h, struct burst *burst, uint32_t count)
{
	DXGKRNL_INTERFACE *dxgk = &h->w.m->services;
	BOOLEAN result;

	burst->count = count;
	dxgk->DxgkCbSynchronizeExecution(dxgk->DeviceHandle, report_burst, burst, 0, &result);
	hw_settle(h);
}

/* 64 reports can be pending. The ring is empty again after each DPC. */
static void sub_27_page_faults_that_do_not_fit_in_the_ring_are_reported(void **state)
{
	struct hw_world h;

	start(&h, state, NULL);
	struct burst burst = {.m = h.w.m};
	assert_int_not_equal(
		vidmm_subscribe(h.w.client.host, 1ull << VIDMM_EVENT_REASON, keep_dropped, &burst),
		0);
	raise_burst(&h, &burst, 64);
	assert_string_equal(burst.dropped, "");
	raise_burst(&h, &burst, 67);
	assert_non_null(strstr(burst.dropped, "3 reports are dropped"));
	burst.dropped[0] = '\0';
	raise_burst(&h, &burst, 64);
	assert_string_equal(burst.dropped, "");
	hw_stop(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_SIM(tdr_21_only_the_hung_context_is_lost),
		ON_SIM(tdr_21_every_invalidated_context_loses_its_device),
		ON_SIM(tdr_21_invalidatehwcontext_is_valid_during_resethwengine_only),
		ON_SIM(tdr_21_a_failed_engine_reset_becomes_an_adapter_reset),
		ON_SIM(tdr_21_an_engine_reset_without_invalidation_becomes_an_adapter_reset),
		ON_SIM(tdr_21_a_failed_resumehwengine_becomes_an_adapter_reset),
		ON_SIM(sub_14_a_lost_completion_interrupt_is_detected),
		ON_SIM(tdr_01_tdr_21_no_engine_reset_if_timeouts_are_ignored),
		ON_SIM(tdrs_09_a_disablegputimeout_queue_is_not_reset),
		ON_SIM(sch_11_an_unanswered_suspendcontext_resets_the_engine),
		ON_SIM(tdr_01_sch_11_an_unanswered_suspendcontext_is_ignored),
		ON_SIM(tdr_21_a_page_fault_can_request_an_engine_reset),
		ON_SIM(tdr_21_a_page_fault_of_a_queue_that_has_ended_resets_no_adapter),
		ON_SIM(tdr_21_a_page_fault_names_the_context_that_a_client_is_ending),
		ON_SIM(sub_27_page_faults_that_do_not_fit_in_the_ring_are_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
