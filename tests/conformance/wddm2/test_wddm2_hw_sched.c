/* SPDX-License-Identifier: MIT */
/*
 * How a miniport with hardware scheduling gets priorities (SCH-10), and how its contexts are
 * suspended for memory that moves (SCH-11).
 */
#include "hw_world.h"

/* ---- SCH-10: support ---- */

static void two_6(struct scripted_miniport *m)
{
	wddm2_0(m);
	scripted_set_version(m, DXGKDDI_INTERFACE_VERSION_WDDM2_6);
	scripted_hw(m);
}

static void two_4(struct scripted_miniport *m)
{
	wddm2_0(m);
	scripted_set_version(m, DXGKDDI_INTERFACE_VERSION_WDDM2_4);
	scripted_hw(m);
	m->settings.hw_ask = false; /* there is no callback to query it */
}

static void without_feature_query(struct scripted_miniport *m)
{
	hw_setup(m);
	m->settings.hw_ask = false;
}

static void no_suspend_context(struct scripted_miniport *m)
{
	hw_setup(m);
	m->settings.table.DxgkDdiSuspendContext = NULL;
}

static void fences_by_commands(struct scripted_miniport *m)
{
	hw_setup(m);
	m->settings.hw_node_flags[0] = 0x1; /* without RingBufferFenceRelease */
}

static void no_bands(struct scripted_miniport *m)
{
	hw_setup(m);
	scripted_fail(m, VIDMM_DDI_SETUP_PRIORITY_BANDS, STATUS_UNSUCCESSFUL, 1);
}

static NTSTATUS try_context(struct world *w)
{
	D3DDDICB_CREATEHWCONTEXT args = {0};
	HRESULT result = w->device.cb->pfnCreateHwContextCb(w->device.handle, &args);

	return result == S_OK ? STATUS_SUCCESS
			      : (result == E_NOTIMPL ? STATUS_NOT_SUPPORTED : STATUS_UNSUCCESSFUL);
}

static void sch_10_hardware_scheduling_needs_host_caps_and_progress_fences(void **state)
{
	static const struct {
		world_setup *setup;
		uint32_t features;
		NTSTATUS status;
		const char *finding;
	} cases[] = {
		{hw_setup, VIDMM_FEATURE_HWSCH, STATUS_SUCCESS, NULL},
		{two_6, VIDMM_FEATURE_HWSCH, STATUS_SUCCESS, NULL},
		{two_4, VIDMM_FEATURE_HWSCH, STATUS_SUCCESS, NULL},
		{hw_setup, 0, STATUS_NOT_SUPPORTED, NULL},
		{without_feature_query, VIDMM_FEATURE_HWSCH, STATUS_NOT_SUPPORTED, NULL},
		{fences_by_commands, VIDMM_FEATURE_HWSCH, STATUS_NOT_SUPPORTED, "SCH-10"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct client_options options = {.features = cases[i].features};
		struct world w;

		world_start_with(&w, state, cases[i].setup, &options);
		if (cases[i].finding)
			world_expect_finding(&w, cases[i].finding);
		world_open(&w);
		assert_int_equal(try_context(&w), cases[i].status);
		assert_int_equal(scripted_count(w.m, VIDMM_DDI_CREATE_HW_CONTEXT),
				 cases[i].status == STATUS_SUCCESS);
		wddm2_stop(&w);
	}
}

static void refused(void **state, world_setup *setup)
{
	struct client_options options = {.kind = *(uint32_t *)*state,
					 .features = VIDMM_FEATURE_HWSCH,
					 .driver_entry = scripted_driver_entry};
	struct scripted_miniport *m = scripted_create();
	struct client client;

	setup(m);
	scripted_arm(m);
	assert_int_equal(client_try_start(&client, &options),
			 (vidmm_status)STATUS_INVALID_PARAMETER);
	assert_true(client_found(&client, "SCH-10"));
	client_stop(&client);
	scripted_destroy(m);
}

static void sch_10_a_miniport_missing_a_required_ddi_is_refused(void **state)
{
	refused(state, no_suspend_context);
}

static void sch_10_a_failed_setupprioritybands_fails_the_start(void **state)
{
	refused(state, no_bands);
}

static void sch_10_wddm_2_7_caps_report_hardware_scheduling(void **state)
{
	for (uint32_t enabled = 0; enabled < 2; enabled++) {
		struct hw_world h;
		D3DKMT_WDDM_2_7_CAPS caps = {.Value = 0x55};
		D3DKMT_ADAPTERINFO info;
		D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1, .pAdapters = &info};
		const struct client_options options = {.features =
							       enabled ? VIDMM_FEATURE_HWSCH : 0};
		D3DKMT_QUERYADAPTERINFO query = {.Type = KMTQAITYPE_WDDM_2_7_CAPS,
						 .pPrivateDriverData = &caps,
						 .PrivateDriverDataSize = sizeof(caps)};

		world_start_with(&h.w, state, hw_setup, &options);
		assert_int_equal(vidmm_process_open(h.w.client.host, "asks", &h.process), 0);
		vidmm_d3dkmt_attach(h.process);
		assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
		query.hAdapter = info.hAdapter;
		assert_int_equal(D3DKMTQueryAdapterInfo(&query), STATUS_SUCCESS);
		assert_int_equal(caps.HwSchSupported, enabled);
		assert_int_equal(caps.HwSchEnabled, enabled);
		assert_int_equal(caps.HwSchEnabledByDefault, 0);
		vidmm_process_close(h.process);
		world_stop_adapter(&h.w);
	}
}

/* ---- SCH-10: bands and properties ---- */

static uint32_t position_of(const struct hw_world *h, const struct scripted_call *call)
{
	for (uint32_t i = 0; scripted_at(h->w.m, i); i++)
		if (scripted_at(h->w.m, i) == call)
			return i;
	fail();
	return 0;
}

static void sch_10_bands_before_all_work_properties_before_the_first_command(void **state)
{
	struct hw_world h;

	hw_start(&h, state, NULL);
	const struct scripted_call *bands = scripted_nth(h.w.m, VIDMM_DDI_SETUP_PRIORITY_BANDS, 0);
	assert_int_equal(scripted_count(h.w.m, VIDMM_DDI_SETUP_PRIORITY_BANDS), 1);
	assert_true(position_of(&h, bands) <
		    position_of(&h, scripted_nth(h.w.m, VIDMM_DDI_CREATE_CONTEXT, 0)));
	assert_true(bands->in.bands.targetNormalBandPercentage <= 50);
	for (uint32_t band = 0; band < 4; band++) /* 10 ms in units of 100 ns */
		assert_int_equal(bands->in.bands.processQuantumForBand[band], 100000);
	assert_int_equal(scripted_count(h.w.m, VIDMM_DDI_SET_CONTEXT_SCHEDULING_PROPERTIES), 0);
	struct hw_queue q = hw_queue(&h, h.context, 0);
	assert_int_equal(hw_submit(&q, 1), STATUS_SUCCESS);
	assert_int_equal(hw_submit(&q, 2), STATUS_SUCCESS);
	const struct scripted_call *set_properties =
		scripted_nth(h.w.m, VIDMM_DDI_SET_CONTEXT_SCHEDULING_PROPERTIES, 0);
	assert_int_equal(scripted_count(h.w.m, VIDMM_DDI_SET_CONTEXT_SCHEDULING_PROPERTIES), 1);
	assert_true(position_of(&h, set_properties) <
		    position_of(&h, scripted_nth(h.w.m, VIDMM_DDI_SUBMIT_COMMAND_TO_HW_QUEUE, 0)));
	assert_int_equal(set_properties->in.properties.priorityBand, 1);
	assert_int_equal(set_properties->in.properties.inProcessPriority, 0);
	assert_int_equal(set_properties->in.properties.quantum, 100000);
	hw_stop(&h);
}

static const DXGKARG_SETCONTEXTSCHEDULINGPROPERTIES *properties(const struct hw_world *h)
{
	return &scripted_last(h->w.m, VIDMM_DDI_SET_CONTEXT_SCHEDULING_PROPERTIES)->in.properties;
}

static NTSTATUS set_priority(const struct hw_world *h, INT priority)
{
	const D3DKMT_SETCONTEXTSCHEDULINGPRIORITY args = {h->context, priority};

	return D3DKMTSetContextSchedulingPriority(&args);
}

static NTSTATUS set_in_process(const struct hw_world *h, INT priority)
{
	const D3DKMT_SETCONTEXTINPROCESSSCHEDULINGPRIORITY args = {h->context, priority};

	return D3DKMTSetContextInProcessSchedulingPriority(&args);
}

static void sch_10_priority_changes_reach_the_miniport_at_once(void **state)
{
	HANDLE own = (HANDLE)(intptr_t)-1;
	D3DKMT_GETCONTEXTINPROCESSSCHEDULINGPRIORITY get = {.Priority = 99};
	struct hw_world h;

	hw_start(&h, state, NULL);
	struct hw_queue q = hw_queue(&h, h.context, 0);
	assert_int_equal(hw_submit(&q, 1), STATUS_SUCCESS);
	assert_int_equal(set_in_process(&h, -7), STATUS_SUCCESS);
	assert_int_equal(properties(&h)->inProcessPriority, -7);
	assert_int_equal(set_in_process(&h, 7), STATUS_SUCCESS);
	assert_int_equal(properties(&h)->inProcessPriority, 7);
	get.hContext = h.context;
	assert_int_equal(D3DKMTGetContextInProcessSchedulingPriority(&get), STATUS_SUCCESS);
	assert_int_equal(get.Priority, 7);
	assert_int_equal(
		D3DKMTSetProcessSchedulingPriorityClass(own, D3DKMT_SCHEDULINGPRIORITYCLASS_IDLE),
		STATUS_SUCCESS);
	hw_settle(&h);
	assert_int_equal(properties(&h)->priorityBand, 0);
	/*
	 * Without the privilege the priority class of a process does not raise it above the normal
	 * band.
	 */
	assert_int_equal(
		D3DKMTSetProcessSchedulingPriorityClass(own, D3DKMT_SCHEDULINGPRIORITYCLASS_HIGH),
		STATUS_SUCCESS);
	hw_settle(&h);
	assert_int_equal(properties(&h)->priorityBand, 1);
	hw_stop(&h);
}

static void sch_10_out_of_range_or_unprivileged_priorities_are_refused(void **state)
{
	static const INT bad[] = {-8, 8, 0x40000000 | 2, 0x40000000 | 31, 0x40000000 | 0x100};
	struct hw_world h;

	hw_start(&h, state, NULL);
	struct hw_queue q = hw_queue(&h, h.context, 0);
	assert_int_equal(hw_submit(&q, 1), STATUS_SUCCESS);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(set_priority(&h, bad[i]), STATUS_INVALID_PARAMETER);
		world_expect_finding(&h.w, "SCH-10");
	}
	assert_int_equal(set_in_process(&h, -8), STATUS_INVALID_PARAMETER);
	world_expect_finding(&h.w, "SCH-10");
	assert_int_equal(set_in_process(&h, 8), STATUS_INVALID_PARAMETER);
	world_expect_finding(&h.w, "SCH-10");
	assert_int_equal(set_priority(&h, 0x40000000 | 16), STATUS_ACCESS_DENIED);
	world_expect_finding(&h.w, "SCH-10");
	assert_int_equal(scripted_count(h.w.m, VIDMM_DDI_SET_CONTEXT_SCHEDULING_PROPERTIES), 1);
	assert_int_equal(set_priority(&h, -7), STATUS_SUCCESS);
	assert_int_equal(properties(&h)->priorityBand, 0);
	vidmm_process_set_may_raise_priority(h.process, true);
	assert_int_equal(set_priority(&h, 0x40000000 | 16), STATUS_SUCCESS);
	assert_int_equal(properties(&h)->priorityBand, 3);
	assert_int_equal(properties(&h)->realtimeBandPriorityLevel, 16);
	hw_stop(&h);
}

/* ---- SCH-11: memory ---- */

#define ALL (12 * MIB) /* two of these do not fit */

struct pressure {
	struct hw_world h;
	struct hw_queue q;
	D3DKMT_HANDLE mine, other; /* of the hardware context's device; of the fixture's device */
	D3DDDICB_CREATEPAGINGQUEUE queue;
};

/* A command runs; its device has most of the memory. Another client needs as much. */
static void start_pressure(struct pressure *p, void **state, bool withhold)
{
	hw_start(&p->h, state, NULL);
	struct scripted_miniport *m = p->h.w.m;
	p->mine = hw_listing(p->h.device, ALL);
	p->q = hw_queue(&p->h, p->h.context, 0);
	hw_run(&p->h);
	assert_int_equal(hw_submit(&p->q, 1), STATUS_SUCCESS);
	hw_settle(&p->h);
	assert_int_equal(m->hw_queue[0].count, 1);
	m->settings.hw_withhold_suspension = withhold;
	p->queue = wddm2_queue(&p->h.w.device);
	p->other = wddm2_allocate(&p->h.w.device, ALL, WORLD_MEMORY);
	D3DDDI_MAKERESIDENT make = {.hPagingQueue = p->queue.hPagingQueue,
				    .NumAllocations = 1,
				    .AllocationList = &p->other};
	assert_int_equal(wddm2_try_make(&p->h.w.device, &make), E_PENDING);
	hw_settle(&p->h);
}

static void sch_11_memory_moves_only_after_the_context_is_suspended(void **state)
{
	struct pressure p;

	start_pressure(&p, state, true);
	struct scripted_miniport *m = p.h.w.m;
	assert_int_equal(scripted_count(m, VIDMM_DDI_SUSPEND_CONTEXT), 1);
	assert_int_equal(wddm2_transfers(&p.h.w, false), 0);
	assert_int_equal(scripted_count(m, VIDMM_DDI_RESUME_CONTEXT), 0);
	/* Commands submitted now are queued. */
	assert_int_equal(hw_submit(&p.q, 2), STATUS_SUCCESS);
	hw_settle(&p.h);
	assert_int_equal(m->hw_queue[0].count, 1);
	scripted_hw_suspended(m, 0, m->hw_context[0].suspend_fence);
	hw_settle(&p.h);
	assert_true(wddm2_transfers(&p.h.w, false) >= 1);
	/*
	 * The other client has its memory. It runs nothing, so the context gets its memory back
	 * and continues.
	 */
	hw_run(&p.h);
	assert_int_equal(wddm2_fence(&p.queue), 1);
	assert_int_equal(scripted_count(m, VIDMM_DDI_RESUME_CONTEXT), 1);
	assert_int_equal(hw_value(&p.q), 2);
	hw_stop(&p.h);
}

static void sch_11_memory_moves_at_once_if_suspendcontext_succeeds(void **state)
{
	struct pressure p;

	start_pressure(&p, state, false);
	hw_run(&p.h);
	assert_int_equal(wddm2_fence(&p.queue), 1);
	assert_true(scripted_count(p.h.w.m, VIDMM_DDI_SUSPEND_CONTEXT) >= 1);
	assert_int_equal(scripted_count(p.h.w.m, VIDMM_DDI_RESUME_CONTEXT),
			 scripted_count(p.h.w.m, VIDMM_DDI_SUSPEND_CONTEXT));
	assert_int_equal(hw_value(&p.q), 1);
	hw_stop(&p.h);
}

static void sch_11_older_suspend_fences_are_ignored_newer_ones_reported(void **state)
{
	struct pressure p;

	start_pressure(&p, state, true);
	struct scripted_miniport *m = p.h.w.m;
	uint64_t asked = m->hw_context[0].suspend_fence;
	assert_int_equal(asked, 1);
	scripted_hw_suspended(m, 0, asked - 1); /* late, of a suspension that was canceled */
	hw_settle(&p.h);
	assert_int_equal(wddm2_transfers(&p.h.w, false), 0);
	scripted_hw_suspended(m, 0, asked + 1);
	world_expect_finding(&p.h.w, "SCH-11");
	hw_settle(&p.h);
	assert_int_equal(wddm2_transfers(&p.h.w, false), 0);
	scripted_hw_suspended(m, 0, asked);
	hw_run(&p.h);
	assert_true(wddm2_transfers(&p.h.w, false) > 0);
	hw_stop(&p.h);
}

static void sch_11_idle_contexts_are_not_suspended(void **state)
{
	struct pressure p;

	hw_start(&p.h, state, NULL);
	p.mine = hw_listing(p.h.device, ALL);
	p.q = hw_queue(&p.h, p.h.context, 0);
	hw_run(&p.h);
	assert_int_equal(hw_submit(&p.q, 1), STATUS_SUCCESS);
	hw_run(&p.h); /* complete */
	p.queue = wddm2_queue(&p.h.w.device);
	p.other = wddm2_allocate(&p.h.w.device, ALL, WORLD_MEMORY);
	wddm2_make(&p.h.w, &p.h.w.device, &p.queue, &p.other, 1);
	assert_int_equal(scripted_count(p.h.w.m, VIDMM_DDI_SUSPEND_CONTEXT), 0);
	/* A command pages its list in before it runs (RES-08). */
	assert_int_equal(hw_submit(&p.q, 2), STATUS_SUCCESS);
	hw_settle(&p.h);
	assert_int_equal(p.h.w.m->hw_queue[0].count, 0);
	hw_run(&p.h);
	assert_int_equal(hw_value(&p.q), 2);
	hw_stop(&p.h);
}

static void sch_11_pnp_05_contexts_are_suspended_before_power_off(void **state)
{
	struct hw_world h;

	hw_start(&h, state, NULL);
	struct hw_queue q = hw_queue(&h, h.context, 0);
	assert_int_equal(hw_submit(&q, 1), STATUS_SUCCESS);
	h.w.m->settings.complete_at_once = true; /* paging */
	assert_int_equal(
		vidmm_adapter_set_power(h.w.client.adapter, VIDMM_POWER_D3, VIDMM_SLEEP_STANDBY),
		0);
	assert_int_equal(scripted_count(h.w.m, VIDMM_DDI_SUSPEND_CONTEXT), 1);
	assert_true(position_of(&h, scripted_nth(h.w.m, VIDMM_DDI_SUSPEND_CONTEXT, 0)) <
		    position_of(&h, scripted_nth(h.w.m, VIDMM_DDI_SET_POWER_STATE, 0)));
	assert_int_equal(hw_value(&q), 0);
	assert_int_equal(vidmm_adapter_set_power(h.w.client.adapter, VIDMM_POWER_D0, 0), 0);
	hw_settle(&h);
	assert_int_equal(scripted_count(h.w.m, VIDMM_DDI_RESUME_CONTEXT), 1);
	hw_run(&h);
	assert_int_equal(hw_value(&q), 1);
	hw_stop(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_SIM(sch_10_hardware_scheduling_needs_host_caps_and_progress_fences),
		ON_SIM(sch_10_wddm_2_7_caps_report_hardware_scheduling),
		ON_SIM(sch_10_a_miniport_missing_a_required_ddi_is_refused),
		ON_SIM(sch_10_a_failed_setupprioritybands_fails_the_start),
		ON_BOTH(sch_10_bands_before_all_work_properties_before_the_first_command),
		ON_BOTH(sch_10_priority_changes_reach_the_miniport_at_once),
		ON_BOTH(sch_10_out_of_range_or_unprivileged_priorities_are_refused),
		ON_BOTH(sch_11_memory_moves_only_after_the_context_is_suspended),
		ON_BOTH(sch_11_memory_moves_at_once_if_suspendcontext_succeeds),
		ON_SIM(sch_11_older_suspend_fences_are_ignored_newer_ones_reported),
		ON_SIM(sch_11_idle_contexts_are_not_suspended),
		ON_BOTH(sch_11_pnp_05_contexts_are_suspended_before_power_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
