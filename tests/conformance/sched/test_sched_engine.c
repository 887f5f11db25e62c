/* SPDX-License-Identifier: MIT */
/* The reset of one engine: TDR-14 to TDR-18, TDR-20, TDR-03, TDR-12. */
#include "timeout_world.h"

#include <string.h>

static void per_engine(struct scripted_miniport *m)
{
	m->settings.caps.SupportPerEngineTDR = 1;
	m->settings.table.DxgkDdiResetEngine = scripted_reset_engine;
	m->settings.table.DxgkDdiQueryEngineStatus = scripted_query_engine_status;
	m->settings.table.DxgkDdiQueryDependentEngineGroup = scripted_query_engine_group;
}

static void per_engine_with_cancel(struct scripted_miniport *m)
{
	per_engine(m);
	m->settings.caps.SchedulingCaps.CancelCommandAware = 1;
	m->settings.table.DxgkDdiCancelCommand = scripted_cancel_command;
}

static void per_engine_on_one_node(struct scripted_miniport *m)
{
	per_engine(m);
	m->settings.caps.MemoryManagementCaps.PagingNode = 0;
}

/* Two devices of two processes, each with a context of node 0 and a resident allocation. */
struct engine_world {
	struct timeout_world t;
	struct client_device other;
	struct client_context others;
	D3DKMT_HANDLE b;
};

static D3DKMT_HANDLE allocate(struct client_device *device)
{
	const struct scripted_allocation spec = {.size_bytes = 64 * KIB,
						 .flags = WORLD_CPU_VISIBLE};

	return world_allocate_as(device, &spec);
}

static void start(struct engine_world *e, void **state, world_setup *setup)
{
	timeout_start(&e->t, state, setup, NULL);
	client_open(&e->t.w.client, &e->other);
	client_context(&e->other, 0, &e->others);
	e->b = allocate(&e->other);
	world_submit_use(&e->others, e->b);
	timeout_hang(&e->t);
}

static void stop(struct engine_world *e)
{
	e->t.w.m->settings.complete_at_once = true;
	world_run(&e->t.w);
	client_close(&e->other);
	timeout_stop(&e->t);
}

static uint32_t submitted(const struct engine_world *e, uint32_t n)
{
	const struct scripted_call *call = scripted_nth(e->t.w.m, VIDMM_DDI_SUBMIT_COMMAND, n);

	assert_non_null(call);
	return call->in.submit.SubmissionFenceId;
}

static bool newer(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) > 0;
}

static void expect_next(struct engine_world *e, uint32_t *at, enum vidmm_ddi ddi)
{
	const struct scripted_call *call;

	do {
		call = scripted_at(e->t.w.m, (*at)++);
		assert_non_null(call);
	} while (call->ddi == VIDMM_DDI_RENDER || call->ddi == VIDMM_DDI_PATCH ||
		 call->ddi == VIDMM_DDI_SUBMIT_COMMAND);
	if (call->ddi != ddi)
		fail_msg("call %u of: %s", *at - 1, scripted_order(e->t.w.m));
	assert_int_equal(call->irql, PASSIVE_LEVEL);
}

/* ---- which device is lost, and which continues ---- */

static void tdr_14_tdr_15_tdr_16_only_the_guilty_device_is_lost(void **state)
{
	struct engine_world e;
	uint32_t at = 0;

	start(&e, state, per_engine);
	world_submit_use(&e.t.w.context, e.t.a);
	world_submit_write(&e.others, e.b, 16, 0xB0B);
	world_submit_write(&e.others, e.b, 20, 0xB0B2);
	timeout_await(&e.t, VIDMM_RECOVERY_ENGINE_RESET, 1);
	assert_non_null(strstr(e.t.w.client.reason, "TDR-15: the engine of node 0 is reset"));
	assert_non_null(strstr(e.t.w.client.reason, "is lost, whose packet hung"));
	world_await(&e.t.w, VIDMM_DDI_SUBMIT_COMMAND, 4);
	expect_next(&e, &at, VIDMM_DDI_QUERY_CURRENT_FENCE);
	expect_next(&e, &at, VIDMM_DDI_QUERY_DEPENDENT_ENGINE_GROUP);
	expect_next(&e, &at, VIDMM_DDI_COLLECT_DBG_INFO);
	assert_int_equal(scripted_at(e.t.w.m, at - 1)->in.debug.Reason, 0x141); /* TDR-03 */
	expect_next(&e, &at, VIDMM_DDI_RESET_ENGINE);
	assert_int_equal(scripted_at(e.t.w.m, at - 1)->in.reset_engine.NodeOrdinal, 0);
	assert_int_equal(scripted_count(e.t.w.m, VIDMM_DDI_RESET_FROM_TIMEOUT), 0);
	const struct vidmm_event reset = timeout_event(VIDMM_RECOVERY_ENGINE_RESET, 0);
	assert_int_equal(reset.arg[2], submitted(&e, 0));
	assert_int_equal(reset.arg[3], 1);
	assert_int_equal(timeout_count(VIDMM_RECOVERY_DEVICE_LOST), 1);
	const struct vidmm_event lost = timeout_event(VIDMM_RECOVERY_DEVICE_LOST, 0);
	assert_int_equal(lost.process, vidmm_process_id(e.t.w.device.process));
	assert_int_equal(lost.arg[0], 3); /* HUNG */
	/* Packets behind it are resubmitted with new ids, and waiting ones are submitted. */
	assert_true(newer(submitted(&e, 2), submitted(&e, 1)));
	assert_true(newer(submitted(&e, 3), submitted(&e, 2)));
	world_run(&e.t.w);
	assert_true(timeout_is_lost(&e.t.w.device, e.t.a));
	const uint32_t *words = client_lock(&e.other, e.b, 0);
	assert_int_equal(words[4], 0xB0B);
	assert_int_equal(words[5], 0xB0B2);
	assert_int_equal(client_unlock(&e.other, e.b), S_OK);
	stop(&e);
}

static void tdr_16_after_engine_reset_paging_is_resubmitted_first_with_its_id(void **state)
{
	struct engine_world e;

	timeout_start(&e.t, state, per_engine_on_one_node, NULL);
	client_open(&e.t.w.client, &e.other);
	client_context(&e.other, 0, &e.others);
	e.b = allocate(&e.other);
	timeout_hang(&e.t);
	world_submit_use(&e.t.w.context, e.t.a);
	world_submit_use(&e.others, e.b);
	timeout_await(&e.t, VIDMM_RECOVERY_ENGINE_RESET, 1);
	world_await(&e.t.w, VIDMM_DDI_SUBMIT_COMMAND, 4);
	assert_true(scripted_nth(e.t.w.m, VIDMM_DDI_SUBMIT_COMMAND, 1)->in.submit.Flags.Paging);
	assert_int_equal(submitted(&e, 2), submitted(&e, 1));
	assert_true(newer(submitted(&e, 3), submitted(&e, 2)));
	world_run(&e.t.w);
	assert_false(timeout_is_lost(&e.other, e.b));
	stop(&e);
}

static void tdr_12_queued_packets_of_the_lost_device_are_cancelled(void **state)
{
	struct engine_world e;

	start(&e, state, per_engine_with_cancel);
	for (uint32_t i = 0; i < 4; i++) /* two with the miniport */
		world_submit_use(&e.t.w.context, e.t.a);
	world_submit_use(&e.others, e.b);
	timeout_await(&e.t, VIDMM_RECOVERY_ENGINE_RESET, 1);
	world_await(&e.t.w, VIDMM_DDI_SUBMIT_COMMAND, 3);
	world_run(&e.t.w);
	assert_int_equal(scripted_count(e.t.w.m, VIDMM_DDI_CANCEL_COMMAND), 3);
	assert_int_equal(scripted_count(e.t.w.m, VIDMM_DDI_SUBMIT_COMMAND), 3);
	assert_false(timeout_is_lost(&e.other, e.b));
	stop(&e);
}

/* ---- completed before the reset ---- */

struct holder {
	struct engine_world *e;
	struct client_context context; /* of node 1 */
	_Atomic bool inside, leave;
};

/*
 * Patch is called with the paging lock held: a thread that begins an engine reset must wait for
 * that lock.
 */
static void hold_in_patch(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	struct holder *h = context;
	LARGE_INTEGER a_moment = {.QuadPart = -100000};

	(void)m;
	if (call->ddi != VIDMM_DDI_PATCH || atomic_load(&h->leave))
		return;
	atomic_store(&h->inside, true);
	while (!atomic_load(&h->leave))
		KeDelayExecutionThread(KernelMode, FALSE, &a_moment);
}

static void render_and_hold(void *argument)
{
	struct holder *h = argument;

	world_submit_use(&h->context, h->e->b);
}

static void tdr_14_a_packet_that_completes_in_time_is_not_reset(void **state)
{
	struct engine_world e;
	struct vidmm_thread *thread;

	start(&e, state, per_engine);
	struct holder holder = {.e = &e};
	client_context(&e.other, 1, &holder.context);
	world_submit_use(&e.t.w.context, e.t.a);
	e.t.w.m->hook_context = &holder;
	e.t.w.m->hook = hold_in_patch;
	assert_int_equal(
		vidmm_thread_create(e.t.w.client.host, "holds", render_and_hold, &holder, &thread),
		0);
	while (!atomic_load(&holder.inside))
		vidmm_settle(e.t.w.client.host);
	timeout_await(&e.t, VIDMM_RECOVERY_TIMEOUT, 1);
	assert_int_equal(scripted_complete(e.t.w.m, 0, 1), 1);
	atomic_store(&holder.leave, true);
	vidmm_thread_join(thread);
	timeout_await(&e.t, VIDMM_RECOVERY_MISSED, 1);
	assert_int_equal(scripted_count(e.t.w.m, VIDMM_DDI_RESET_ENGINE), 0);
	world_run(&e.t.w);
	assert_false(timeout_is_lost(&e.t.w.device, e.t.a));
	e.t.w.m->hook = NULL;
	stop(&e);
}

/* ---- LastAbortedFenceId ---- */

static void report_aborted(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	(void)m;
	if (call->ddi == VIDMM_DDI_RESET_ENGINE)
		((DXGKARG_RESETENGINE *)call->args)->LastAbortedFenceId =
			*(const uint32_t *)context;
}

/* A's packet is complete and B's hangs; the miniport reports this id as aborted. */
static void abort_as(struct engine_world *e, void **state, int32_t off, uint32_t *fence)
{
	start(e, state, per_engine);
	world_submit_use(&e->t.w.context, e->t.a);
	world_submit_use(&e->others, e->b);
	assert_int_equal(scripted_complete(e->t.w.m, 0, 1), 1);
	*fence = submitted(e, 0) + (uint32_t)off;
	e->t.w.m->hook_context = fence;
	e->t.w.m->hook = report_aborted;
}

static void abort_badly(void **state, int32_t off)
{
	struct engine_world e;
	uint32_t fence;

	abort_as(&e, state, off, &fence);
	client_idle(&e.t.w.client);
	world_expect_finding(&e.t.w, "TDR-15");
	assert_int_equal(e.t.w.fatals, 1);
	assert_int_equal(e.t.w.fatal[0], 0x119);
	assert_int_equal(e.t.w.fatal[1], 0xA);
	assert_int_equal(e.t.w.fatal[2], fence);
	assert_int_equal(e.t.w.fatal[3], fence - (uint32_t)off);
	e.t.w.expected_fatals = 1;
	e.t.w.m->hook = NULL;
	stop(&e);
}

static void tdr_15_an_aborted_id_older_than_the_last_completed_is_an_error(void **state)
{
	abort_badly(state, -1);
}

static void tdr_15_an_aborted_id_newer_than_the_last_submitted_is_an_error(void **state)
{
	abort_badly(state, 2);
}

static void tdr_15_an_aborted_packet_that_just_finished_still_loses_its_device(void **state)
{
	struct engine_world e;
	uint32_t fence;

	abort_as(&e, state, 0, &fence);
	timeout_await(&e.t, VIDMM_RECOVERY_ENGINE_RESET, 1);
	world_await(&e.t.w, VIDMM_DDI_SUBMIT_COMMAND, 3);
	e.t.w.m->hook = NULL;
	world_run(&e.t.w);
	assert_true(timeout_is_lost(&e.t.w.device, e.t.a));
	assert_false(timeout_is_lost(&e.other, e.b));
	stop(&e);
}

/* ---- promotion to an adapter reset ---- */

static void expect_adapter_reset(struct engine_world *e)
{
	timeout_await(&e->t, VIDMM_RECOVERY_RESTARTED, 1);
	assert_int_equal(scripted_count(e->t.w.m, VIDMM_DDI_RESET_FROM_TIMEOUT), 1);
	assert_true(timeout_is_lost(&e->t.w.device, e->t.a));
	assert_true(timeout_is_lost(&e->other, e->b));
	assert_int_equal(e->t.w.fatals, 0);
	timeout_reopen(&e->t);
	assert_false(timeout_is_lost(&e->t.w.device, e->t.a));
	stop(e);
}

static void tdr_17_a_failed_engine_reset_becomes_an_adapter_reset(void **state)
{
	struct engine_world e;

	start(&e, state, per_engine);
	scripted_fail(e.t.w.m, VIDMM_DDI_RESET_ENGINE, STATUS_UNSUCCESSFUL, 1);
	world_submit_use(&e.t.w.context, e.t.a);
	expect_adapter_reset(&e);
}

static void tdr_17_an_engine_reset_of_a_paging_packet_becomes_an_adapter_reset(void **state)
{
	struct engine_world e;

	start(&e, state, per_engine);
	world_submit_use(&e.t.w.context, allocate(&e.t.w.device));
	timeout_await(&e.t, VIDMM_RECOVERY_RESTARTED, 1);
	assert_int_equal(
		scripted_nth(e.t.w.m, VIDMM_DDI_RESET_ENGINE, 0)->in.reset_engine.NodeOrdinal, 1);
	expect_adapter_reset(&e);
}

static void render_locked(void *argument)
{
	struct engine_world *e = argument;

	world_use(&e->t.w.context, e->t.a);
	(void)client_try_submit(&e->t.w.context);
}

/*
 * The thread that waits for that paging holds the paging lock (LKR-01). It resets the engine itself
 * and then returns.
 */
static void tdr_17_engine_reset_by_a_thread_that_holds_the_paging_lock(void **state)
{
	struct engine_world e;
	struct vidmm_thread *thread;

	start(&e, state, per_engine);
	uint32_t *words = client_lock(&e.t.w.device, e.t.a, 0);
	assert_int_equal(
		vidmm_thread_create(e.t.w.client.host, "renders", render_locked, &e, &thread), 0);
	timeout_await(&e.t, VIDMM_RECOVERY_RESTARTED, 1);
	vidmm_thread_join(thread);
	assert_int_equal(scripted_count(e.t.w.m, VIDMM_DDI_RESET_ENGINE), 1);
	words[0] = 1;
	assert_int_equal(client_unlock(&e.t.w.device, e.t.a), S_OK);
	expect_adapter_reset(&e);
}

static void answer_group(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	(void)m;
	if (call->ddi == VIDMM_DDI_QUERY_DEPENDENT_ENGINE_GROUP)
		((DXGKARG_QUERYDEPENDENTENGINEGROUP *)call->args)->DependentNodeOrdinalMask =
			*(const uint64_t *)context;
}

static void tdr_18_an_engine_group_without_the_node_itself_is_an_error(void **state)
{
	struct engine_world e;
	uint64_t group = 0x2;

	start(&e, state, per_engine);
	e.t.w.m->hook_context = &group;
	e.t.w.m->hook = answer_group;
	world_submit_use(&e.t.w.context, e.t.a);
	client_idle(&e.t.w.client);
	world_expect_finding(&e.t.w, "TDR-18");
	assert_int_equal(e.t.w.fatals, 1);
	assert_int_equal(e.t.w.fatal[0], 0x10E);
	assert_int_equal(e.t.w.fatal[1], 0x1000 + VIDMM_DDI_QUERY_DEPENDENT_ENGINE_GROUP);
	assert_int_equal(e.t.w.fatal[2], group);
	e.t.w.expected_fatals = 1;
	e.t.w.m->hook = NULL;
	stop(&e);
}

/* Not supported: dependent engines are reset with the adapter. */
static void tdr_18_dependent_engines_cause_an_adapter_reset(void **state)
{
	struct engine_world e;
	uint64_t group = 0x3;

	start(&e, state, per_engine);
	e.t.w.m->hook_context = &group;
	e.t.w.m->hook = answer_group;
	world_submit_use(&e.t.w.context, e.t.a);
	timeout_await(&e.t, VIDMM_RECOVERY_RESTARTED, 1);
	assert_int_equal(scripted_count(e.t.w.m, VIDMM_DDI_RESET_ENGINE), 0);
	e.t.w.m->hook = NULL;
	expect_adapter_reset(&e);
}

/* ---- limits ---- */

/* One packet of the world's own process that never ends; the process then opens a new device. */
static vidmm_status hang_once(struct engine_world *e, uint32_t n)
{
	struct timeout_world *t = &e->t;

	t->w.m->settings.complete_at_once = false;
	world_submit_use(&t->w.context, t->a);
	timeout_await(t, VIDMM_RECOVERY_ENGINE_RESET, n);
	t->w.m->settings.complete_at_once = true;
	client_idle(&t->w.client);
	vidmm_device_destroy(t->w.device.device);
	vidmm_status status =
		vidmm_device_create(t->w.device.process, t->w.client.adapter, &t->w.device.device);
	if (status != 0)
		return status;
	t->w.device.handle = vidmm_device_handle(t->w.device.device);
	client_context(&t->w.device, 0, &t->w.context);
	t->a = allocate(&t->w.device);
	world_submit_use(&t->w.context, t->a);
	client_idle(&t->w.client);
	return status;
}

static void tdr_20_the_fifth_engine_reset_of_a_process_denies_it_the_gpu(void **state)
{
	struct engine_world e;

	start(&e, state, per_engine);
	for (uint32_t n = 1; n <= 4; n++)
		assert_int_equal(hang_once(&e, n), STATUS_SUCCESS);
	assert_int_equal(timeout_count(VIDMM_RECOVERY_DENIED), 0);
	assert_int_equal(hang_once(&e, 5), STATUS_DEVICE_REMOVED);
	const struct vidmm_event denied = timeout_event(VIDMM_RECOVERY_DENIED, 0);
	assert_int_equal(denied.arg[0], 0x142);
	assert_int_equal(denied.process, vidmm_process_id(e.t.w.device.process));
	/* Other processes are not affected, and the adapter has not been reset. */
	assert_false(timeout_is_lost(&e.other, e.b));
	assert_int_equal(timeout_count(VIDMM_RECOVERY_RESTARTED), 0);
	assert_int_equal(e.t.w.fatals, 0);
	vidmm_process_close(e.t.w.device.process);
	world_open(&e.t.w); /* another process */
	stop(&e);
}

static void tdr_20_tdr_13_engine_resets_outside_the_time_window_do_not_count(void **state)
{
	struct engine_world e;

	start(&e, state, per_engine);
	for (uint32_t n = 1; n <= 12; n++) {
		assert_int_equal(hang_once(&e, n), STATUS_SUCCESS);
		timeout_pass(&e.t, 20 * NS_PER_S);
	}
	assert_int_equal(timeout_count(VIDMM_RECOVERY_DENIED), 0);
	stop(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(tdr_14_tdr_15_tdr_16_only_the_guilty_device_is_lost),
		ON_BOTH(tdr_16_after_engine_reset_paging_is_resubmitted_first_with_its_id),
		ON_BOTH(tdr_12_queued_packets_of_the_lost_device_are_cancelled),
		ON_SIM(tdr_14_a_packet_that_completes_in_time_is_not_reset),
		ON_SIM(tdr_15_an_aborted_id_older_than_the_last_completed_is_an_error),
		ON_SIM(tdr_15_an_aborted_id_newer_than_the_last_submitted_is_an_error),
		ON_SIM(tdr_15_an_aborted_packet_that_just_finished_still_loses_its_device),
		ON_SIM(tdr_17_a_failed_engine_reset_becomes_an_adapter_reset),
		ON_BOTH(tdr_17_an_engine_reset_of_a_paging_packet_becomes_an_adapter_reset),
		ON_BOTH(tdr_17_engine_reset_by_a_thread_that_holds_the_paging_lock),
		ON_SIM(tdr_18_an_engine_group_without_the_node_itself_is_an_error),
		ON_SIM(tdr_18_dependent_engines_cause_an_adapter_reset),
		ON_SIM(tdr_20_the_fifth_engine_reset_of_a_process_denies_it_the_gpu),
		ON_SIM(tdr_20_tdr_13_engine_resets_outside_the_time_window_do_not_count),
	};

	return cmocka_run_group_tests_name("sched engine", tests, NULL, NULL);
}
