/* SPDX-License-Identifier: MIT */
/* When a GPU counts as timed out, and the options: TDR-01, TDR-02, TDR-13, SUB-14. */
#include "timeout_world.h"

/* ---- when ---- */

static void tdr_02_a_packet_of_1500_ms_is_not_reset(void **state)
{
	struct timeout_world t;

	timeout_start(&t, state, NULL, NULL);
	timeout_hang(&t);
	world_submit_use(&t.w.context, t.a);
	timeout_pass(&t, 1500 * NS_PER_MS);
	assert_int_equal(scripted_complete(t.w.m, 0, 1), 1);
	timeout_pass(&t, 10 * NS_PER_S);
	assert_int_equal(timeout_count(VIDMM_RECOVERY_TIMEOUT), 0);
	assert_int_equal(scripted_count(t.w.m, VIDMM_DDI_RESET_FROM_TIMEOUT), 0);
	assert_false(timeout_is_lost(&t.w.device, t.a));
	timeout_stop(&t);
}

static void tdr_02_a_packet_of_4000_ms_is_reset(void **state)
{
	struct timeout_world t;

	timeout_start(&t, state, NULL, NULL);
	timeout_hang(&t);
	uint64_t began = vidmm_now_ns(t.w.client.host);
	world_submit_use(&t.w.context, t.a);
	timeout_pass(&t, 4000 * NS_PER_MS);
	const struct vidmm_event asked = timeout_event(VIDMM_RECOVERY_OVERDUE, 0),
				 reset = timeout_event(VIDMM_RECOVERY_TIMEOUT, 0);
	assert_in_range(asked.time_ns - began, 900 * NS_PER_MS, 1100 * NS_PER_MS);
	assert_in_range(reset.time_ns - asked.time_ns, 2000 * NS_PER_MS, 2100 * NS_PER_MS);
	assert_int_equal(scripted_count(t.w.m, VIDMM_DDI_RESET_FROM_TIMEOUT), 1);
	timeout_stop(&t);
}

/* However many there are, and whatever their total time. */
static void tdr_02_packets_that_each_complete_in_time_never_time_out(void **state)
{
	struct timeout_world t;

	timeout_start(&t, state, NULL, NULL);
	timeout_hang(&t);
	for (uint32_t i = 0; i < 12; i++)
		world_submit_use(&t.w.context, t.a);
	for (uint32_t i = 0; i < 12; i++) {
		timeout_pass(&t, 1900 * NS_PER_MS);
		assert_int_equal(scripted_complete(t.w.m, 0, 1), 1);
	}
	assert_int_equal(timeout_count(VIDMM_RECOVERY_TIMEOUT), 0);
	timeout_stop(&t);
}

/* The other node completes packets meanwhile, which does not hide that this one hangs. */
static void tdr_02_each_node_times_out_by_itself(void **state)
{
	struct timeout_world t;
	struct client_context other;

	timeout_start(&t, state, NULL, NULL);
	client_context(&t.w.device, 1, &other);
	timeout_hang(&t);
	world_submit_use(&t.w.context, t.a);
	while (!timeout_count(VIDMM_RECOVERY_TIMEOUT)) {
		world_use(&other, t.a);
		if (client_try_submit(&other) != S_OK)
			break;
		timeout_pass(&t, 100 * NS_PER_MS);
		scripted_complete(t.w.m, 1, 1);
	}
	assert_int_equal(timeout_event(VIDMM_RECOVERY_TIMEOUT, 0).arg[1], 0);
	timeout_stop(&t);
}

/* ---- a timeout on demand ---- */

static void tdr_02_a_test_may_let_a_node_time_out_at_once(void **state)
{
	struct timeout_world t;

	timeout_start(&t, state, NULL, NULL);
	timeout_hang(&t);
	uint64_t began = vidmm_now_ns(t.w.client.host);
	world_submit_use(&t.w.context, t.a);
	assert_int_equal(vidmm_adapter_time_out(t.w.client.adapter, 0), STATUS_SUCCESS);
	timeout_await(&t, VIDMM_RECOVERY_RESET, 1);
	assert_int_equal(timeout_event(VIDMM_RECOVERY_TIMEOUT, 0).arg[1], 0);
	assert_int_equal(scripted_count(t.w.m, VIDMM_DDI_RESET_FROM_TIMEOUT), 1);
	assert_true(timeout_is_lost(&t.w.device, t.a));
	if (t.w.client.kind == VIDMM_HOST_SIM)
		assert_in_range(vidmm_now_ns(t.w.client.host) - began, 0, 100 * NS_PER_MS);
	timeout_reopen(&t);
	timeout_stop(&t);
}

static void tdr_02_a_node_without_a_packet_does_not_time_out_on_demand(void **state)
{
	struct timeout_world t;
	struct vidmm_adapter *adapter;

	timeout_start(&t, state, NULL, NULL);
	adapter = t.w.client.adapter;
	assert_int_equal(vidmm_adapter_time_out(adapter, 0), STATUS_INVALID_DEVICE_STATE);
	assert_true(client_told(&t.w.client, (uint32_t)STATUS_INVALID_DEVICE_STATE, "TDR-02"));
	timeout_hang(&t);
	world_submit_use(&t.w.context, t.a);
	assert_int_equal(vidmm_adapter_time_out(adapter, 1), STATUS_INVALID_DEVICE_STATE);
	assert_int_equal(vidmm_adapter_time_out(adapter, 2), STATUS_INVALID_PARAMETER);
	assert_true(client_found(&t.w.client, "TDR-02"));
	client_forget(&t.w.client);
	assert_int_equal(vidmm_adapter_time_out(NULL, 0), STATUS_INVALID_PARAMETER);
	/* The packet completes before the watchdog runs: the next one gets its full time. */
	world_submit_use(&t.w.context, t.a);
	assert_int_equal(vidmm_adapter_time_out(adapter, 0), STATUS_SUCCESS);
	assert_int_equal(scripted_complete(t.w.m, 0, 1), 1);
	timeout_pass(&t, 900 * NS_PER_MS);
	assert_int_equal(scripted_complete(t.w.m, 0, 1), 1);
	timeout_pass(&t, 10 * NS_PER_S);
	assert_int_equal(timeout_count(VIDMM_RECOVERY_TIMEOUT), 0);
	timeout_stop(&t);
}

static void tdr_02_level_0_has_no_timeout_on_demand(void **state)
{
	struct vidmm_tdr_options tdr = timeout_defaults(*(uint32_t *)*state);
	struct timeout_world t;

	tdr.level = 0;
	timeout_start(&t, state, NULL, &tdr);
	timeout_hang(&t);
	world_submit_use(&t.w.context, t.a);
	assert_int_equal(vidmm_adapter_time_out(t.w.client.adapter, 0),
			 STATUS_INVALID_DEVICE_STATE);
	assert_int_equal(scripted_complete(t.w.m, 0, 1), 1);
	timeout_stop(&t);
}

/* ---- a lost interrupt ---- */

static void sub_14_a_lost_interrupt_is_found_by_the_fence_query(void **state)
{
	struct timeout_world t;

	timeout_start(&t, state, NULL, NULL);
	timeout_hang(&t);
	t.w.m->settings.ignore_fences = true;
	world_submit_use(&t.w.context, t.a);
	assert_int_equal(scripted_complete(t.w.m, 0, 1), 1);
	/* Only the query finds it. */
	client_idle(&t.w.client);
	timeout_await(&t, VIDMM_RECOVERY_MISSED, 1);
	const struct scripted_call *query = scripted_nth(t.w.m, VIDMM_DDI_QUERY_CURRENT_FENCE, 0);
	assert_non_null(query);
	assert_int_equal(query->irql, PASSIVE_LEVEL);
	assert_int_equal(query->in.fence.NodeOrdinal, 0);
	assert_int_equal(scripted_count(t.w.m, VIDMM_DDI_RESET_FROM_TIMEOUT), 0);
	assert_false(timeout_is_lost(&t.w.device, t.a));
	t.w.m->settings.ignore_fences = false;
	timeout_stop(&t);
}

static void sub_14_the_fence_query_precedes_the_reset(void **state)
{
	struct timeout_world t;

	timeout_start(&t, state, NULL, NULL);
	timeout_hang(&t);
	world_submit_use(&t.w.context, t.a);
	timeout_await(&t, VIDMM_RECOVERY_RESTARTED, 1);
	assert_int_equal(scripted_count(t.w.m, VIDMM_DDI_QUERY_CURRENT_FENCE), 1);
	assert_true(timeout_event(VIDMM_RECOVERY_OVERDUE, 0).sequence <
		    timeout_event(VIDMM_RECOVERY_TIMEOUT, 0).sequence);
	timeout_stop(&t);
}

/* ---- options ---- */

static vidmm_status try_options(void **state, struct vidmm_tdr_options tdr, const char *rule)
{
	const struct client_options options = {.kind = *(uint32_t *)*state, .tdr = &tdr};
	struct client client;
	vidmm_status status = client_try_start(&client, &options);

	if (rule)
		assert_true(client_found(&client, rule));
	else
		assert_int_equal(client.findings, 0);
	client_stop(&client);
	return status;
}

static void tdr_01_invalid_options_are_refused(void **state)
{
	const struct vidmm_tdr_options good = VIDMM_TDR_DEFAULTS;
	struct vidmm_tdr_options o;

	assert_int_equal(try_options(state, good, NULL), STATUS_SUCCESS);
	assert_int_equal(try_options(state, (o = good, o.level = 0, o), NULL), STATUS_SUCCESS);
	assert_int_equal(try_options(state, (o = good, o.limit_count = 0, o), NULL),
			 STATUS_SUCCESS);
	assert_int_equal(try_options(state, (o = good, o.level = 2, o), "TDR-01"),
			 STATUS_INVALID_PARAMETER);
	assert_int_equal(try_options(state, (o = good, o.level = 4, o), "TDR-01"),
			 STATUS_INVALID_PARAMETER);
	assert_int_equal(try_options(state, (o = good, o.delay_ms = 0, o), "TDR-01"),
			 STATUS_INVALID_PARAMETER);
	assert_int_equal(try_options(state, (o = good, o.ddi_delay_ms = 0, o), "TDR-01"),
			 STATUS_INVALID_PARAMETER);
	assert_int_equal(try_options(state, (o = good, o.limit_time_ms = 0, o), "TDR-01"),
			 STATUS_INVALID_PARAMETER);
	assert_int_equal(try_options(state, (o = good, o.limit_count = VIDMM_TDR_LIMIT_MAX + 1, o),
				     "TDR-01"),
			 STATUS_INVALID_PARAMETER);
	assert_int_equal(try_options(state, (o = good, o.debug_mode = 4, o), "TDR-01"),
			 STATUS_INVALID_PARAMETER);
	assert_int_equal(try_options(state, (o = good, o.debug_mode = 0, o), NULL),
			 STATUS_NOT_SUPPORTED);
	assert_int_equal(try_options(state, (o = good, o.debug_mode = 3, o), NULL),
			 STATUS_NOT_SUPPORTED);
}

static void tdr_01_level_0_never_resets(void **state)
{
	struct timeout_world t;
	struct vidmm_tdr_options tdr = VIDMM_TDR_DEFAULTS;

	tdr.level = 0;
	timeout_start(&t, state, NULL, &tdr);
	timeout_hang(&t);
	world_submit_use(&t.w.context, t.a);
	timeout_pass(&t, 600 * NS_PER_S);
	assert_int_equal(timeout_count(VIDMM_RECOVERY_OVERDUE), 0);
	assert_int_equal(scripted_complete(t.w.m, 0, 1), 1);
	assert_false(timeout_is_lost(&t.w.device, t.a));
	timeout_stop(&t);
}

static void expect_fatal(struct timeout_world *t)
{
	assert_int_equal(t->w.fatals, 1);
	assert_int_equal(t->w.fatal[0], 0x116);
	assert_true(timeout_is_lost(&t->w.device, t->a));
	t->w.expected_fatals = 1;
}

static void tdr_01_level_1_is_fatal(void **state)
{
	struct timeout_world t;
	struct vidmm_tdr_options tdr = timeout_defaults(*(uint32_t *)*state);

	tdr.level = 1;
	timeout_start(&t, state, NULL, &tdr);
	timeout_hang(&t);
	world_submit_use(&t.w.context, t.a);
	client_idle(&t.w.client); /* waiting threads are released */
	expect_fatal(&t);
	assert_int_equal(scripted_count(t.w.m, VIDMM_DDI_RESET_FROM_TIMEOUT), 0);
	timeout_stop(&t);
}

static void tdr_01_debug_mode_1_reports_timeouts_without_reset(void **state)
{
	struct timeout_world t;
	struct vidmm_tdr_options tdr = VIDMM_TDR_DEFAULTS;

	tdr.debug_mode = 1;
	timeout_start(&t, state, NULL, &tdr);
	timeout_hang(&t);
	world_submit_use(&t.w.context, t.a);
	timeout_pass(&t, 10 * NS_PER_S);
	assert_int_equal(timeout_count(VIDMM_RECOVERY_IGNORED), 3); /* after 3, 6, 9 seconds */
	assert_int_equal(scripted_count(t.w.m, VIDMM_DDI_RESET_FROM_TIMEOUT), 0);
	assert_int_equal(scripted_complete(t.w.m, 0, 1), 1);
	assert_false(timeout_is_lost(&t.w.device, t.a));
	timeout_stop(&t);
}

static void tdr_01_the_delay_follows_the_option(void **state)
{
	struct timeout_world t;
	struct vidmm_tdr_options tdr = VIDMM_TDR_DEFAULTS;

	tdr.delay_ms = 400;
	timeout_start(&t, state, NULL, &tdr);
	timeout_hang(&t);
	uint64_t began = vidmm_now_ns(t.w.client.host);
	world_submit_use(&t.w.context, t.a);
	timeout_pass(&t, NS_PER_S);
	assert_in_range(timeout_event(VIDMM_RECOVERY_TIMEOUT, 0).time_ns - began, 600 * NS_PER_MS,
			700 * NS_PER_MS);
	timeout_stop(&t);
}

/* ---- limits ---- */

/* Hangs repeatedly, at this interval in ns. */
static void hang_repeatedly(struct timeout_world *t, uint32_t times, uint64_t interval_ns)
{
	for (uint32_t i = 0; i < times; i++) {
		uint64_t next = vidmm_now_ns(t->w.client.host) + interval_ns;

		timeout_hang(t);
		world_submit_use(&t->w.context, t->a);
		client_idle(&t->w.client);
		if (t->w.fatals)
			return;
		timeout_reopen(t);
		if (t->w.kind == VIDMM_HOST_SIM)
			vidmm_sleep_until_ns(t->w.client.host, next);
	}
}

static void tdr_13_the_sixth_reset_of_a_minute_is_fatal(void **state)
{
	struct timeout_world t;

	timeout_start(&t, state, NULL, NULL);
	hang_repeatedly(&t, 5, 10 * NS_PER_S);
	assert_int_equal(t.w.fatals, 0);
	assert_int_equal(timeout_count(VIDMM_RECOVERY_RESTARTED), 5);
	hang_repeatedly(&t, 1, 0);
	expect_fatal(&t);
	assert_int_equal(timeout_count(VIDMM_RECOVERY_RESTARTED), 5);
	timeout_stop(&t);
}

static void tdr_13_resets_outside_the_time_window_do_not_count(void **state)
{
	struct timeout_world t;

	timeout_start(&t, state, NULL, NULL);
	hang_repeatedly(&t, 20, 14 * NS_PER_S);
	assert_int_equal(t.w.fatals, 0);
	assert_int_equal(timeout_count(VIDMM_RECOVERY_RESTARTED), 20);
	timeout_stop(&t);
}

static void tdr_13_the_reset_count_is_an_option(void **state)
{
	struct timeout_world t;
	struct vidmm_tdr_options tdr = timeout_defaults(*(uint32_t *)*state);

	tdr.limit_count = 0;
	timeout_start(&t, state, NULL, &tdr);
	hang_repeatedly(&t, 1, 0);
	expect_fatal(&t);
	timeout_stop(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_SIM(tdr_01_invalid_options_are_refused),
		ON_SIM(tdr_01_level_0_never_resets),
		ON_BOTH(tdr_01_level_1_is_fatal),
		ON_SIM(tdr_01_debug_mode_1_reports_timeouts_without_reset),
		ON_SIM(tdr_01_the_delay_follows_the_option),
		ON_SIM(tdr_02_a_packet_of_1500_ms_is_not_reset),
		ON_SIM(tdr_02_a_packet_of_4000_ms_is_reset),
		ON_SIM(tdr_02_packets_that_each_complete_in_time_never_time_out),
		ON_SIM(tdr_02_each_node_times_out_by_itself),
		ON_BOTH(tdr_02_a_test_may_let_a_node_time_out_at_once),
		ON_SIM(tdr_02_a_node_without_a_packet_does_not_time_out_on_demand),
		ON_SIM(tdr_02_level_0_has_no_timeout_on_demand),
		ON_BOTH(sub_14_a_lost_interrupt_is_found_by_the_fence_query),
		ON_BOTH(sub_14_the_fence_query_precedes_the_reset),
		ON_SIM(tdr_13_the_sixth_reset_of_a_minute_is_fatal),
		ON_SIM(tdr_13_resets_outside_the_time_window_do_not_count),
		ON_BOTH(tdr_13_the_reset_count_is_an_option),
	};

	return cmocka_run_group_tests_name("sched timeout", tests, NULL, NULL);
}
