/* SPDX-License-Identifier: MIT */
/*
 * Preemption of a node whose packet runs long: PRE-01 to PRE-08, PRE-10, PRE-12, PAT-14, SUB-21,
 * SPL-10, TDR-02.
 *
 * The watchdog requests it half of TdrDelay after a packet became the first one in the miniport.
 */
#include "timeout_world.h"

static void aware(struct scripted_miniport *m)
{
	m->settings.caps.SchedulingCaps.PreemptionAware = 1;
	m->settings.withhold_preemption = true; /* scripted_preempted answers */
}

static void aware_and_prompt(struct scripted_miniport *m)
{
	m->settings.caps.SchedulingCaps.PreemptionAware = 1;
}

static void aware_with_cancel(struct scripted_miniport *m)
{
	aware(m);
	m->settings.caps.SchedulingCaps.CancelCommandAware = 1;
	m->settings.table.DxgkDdiCancelCommand = scripted_cancel_command;
}

static void aware_on_one_node(struct scripted_miniport *m)
{
	aware(m);
	m->settings.caps.MemoryManagementCaps.PagingNode = 0;
}

/* On real threads an answer counts as late only after a delay of the test machine. */
static void start(struct timeout_world *t, void **state, world_setup *setup)
{
	struct vidmm_tdr_options tdr = VIDMM_TDR_DEFAULTS;

	if (*(uint32_t *)*state == VIDMM_HOST_LINUX)
		tdr.delay_ms = 3000;
	timeout_start(t, state, setup, &tdr);
}

/*
 * Queues `packets` on node 0, of which the miniport gets two (SUB-16), and waits for the preemption
 * request.
 */
static void start_overdue(struct timeout_world *t, void **state, world_setup *setup,
			  uint32_t packets)
{
	start(t, state, setup);
	timeout_hang(t);
	for (uint32_t i = 0; i < packets; i++)
		world_submit_use(&t->w.context, t->a);
	timeout_await_preemption(t);
}

static uint32_t submitted(const struct timeout_world *t, uint32_t n)
{
	const struct scripted_call *call = scripted_nth(t->w.m, VIDMM_DDI_SUBMIT_COMMAND, n);

	assert_non_null(call);
	return call->in.submit.SubmissionFenceId;
}

static uint32_t requested(const struct timeout_world *t)
{
	return scripted_nth(t->w.m, VIDMM_DDI_PREEMPT_COMMAND, 0)->in.preempt.PreemptionFenceId;
}

static bool newer(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) > 0;
}

/* The GPU completes packets from now on; everything that was ever queued completes. */
static void finish(struct timeout_world *t)
{
	t->w.m->settings.withhold_preemption = false;
	world_run(&t->w);
	assert_false(timeout_is_lost(&t->w.device, t->a));
	assert_int_equal(timeout_count(VIDMM_RECOVERY_TIMEOUT), 0);
	timeout_stop(t);
}

/* ---- the request ---- */

static void pre_01_pre_03_a_preemption_request_has_its_node_and_a_fresh_id(void **state)
{
	struct timeout_world t;

	start_overdue(&t, state, aware, 3);
	const struct scripted_call *call = scripted_nth(t.w.m, VIDMM_DDI_PREEMPT_COMMAND, 0);
	assert_int_equal(call->irql, DISPATCH_LEVEL);
	assert_int_equal(call->in.preempt.NodeOrdinal, 0);
	assert_int_equal(call->in.preempt.EngineOrdinal, 0);
	assert_int_equal(call->in.preempt.Flags.Value, 0);
	for (uint32_t i = 0; i < scripted_count(t.w.m, VIDMM_DDI_PATCH); i++)
		assert_true(
			newer(requested(&t),
			      scripted_nth(t.w.m, VIDMM_DDI_PATCH, i)->in.patch.SubmissionFenceId));
	assert_int_equal(timeout_event(VIDMM_RECOVERY_PREEMPT, 0).arg[2], requested(&t));
	scripted_preempted(t.w.m, 0, requested(&t), submitted(&t, 0) - 1);
	finish(&t);
}

static void pre_01_a_failed_preemption_request_is_fatal(void **state)
{
	struct timeout_world t;

	start(&t, state, aware);
	timeout_hang(&t);
	scripted_fail(t.w.m, VIDMM_DDI_PREEMPT_COMMAND, STATUS_UNSUCCESSFUL, 1);
	world_submit_use(&t.w.context, t.a);
	client_idle(&t.w.client);
	world_expect_finding(&t.w, "PRE-01");
	assert_int_equal(t.w.fatals, 1);
	assert_int_equal(t.w.fatal[0], 0x119);
	assert_int_equal(t.w.fatal[1], 0x2);
	assert_int_equal(t.w.fatal[2], (uint32_t)STATUS_UNSUCCESSFUL);
	t.w.expected_fatals = 1;
	timeout_stop(&t);
}

/* Not even when the long packet has completed and the hardware could take another one. */
static void pre_02_nothing_is_submitted_until_the_preemption_answer(void **state)
{
	struct timeout_world t;

	start_overdue(&t, state, aware, 5);
	assert_int_equal(scripted_count(t.w.m, VIDMM_DDI_SUBMIT_COMMAND), 2);
	uint32_t first = submitted(&t, 0);
	assert_int_equal(scripted_complete(t.w.m, 0, 1), 1);
	timeout_pass(&t, 1500 * NS_PER_MS);
	assert_int_equal(scripted_count(t.w.m, VIDMM_DDI_SUBMIT_COMMAND), 2);
	assert_int_equal(scripted_count(t.w.m, VIDMM_DDI_PREEMPT_COMMAND), 1);
	scripted_preempted(t.w.m, 0, requested(&t), first);
	timeout_pass(&t, NS_PER_MS);
	assert_int_equal(scripted_count(t.w.m, VIDMM_DDI_SUBMIT_COMMAND), 4);
	finish(&t);
}

static void pre_10_without_the_capability_no_preemption_is_requested(void **state)
{
	struct timeout_world t;

	start(&t, state, NULL);
	timeout_hang(&t);
	world_submit_use(&t.w.context, t.a);
	timeout_await(&t, VIDMM_RECOVERY_RESTARTED, 1);
	assert_int_equal(scripted_count(t.w.m, VIDMM_DDI_PREEMPT_COMMAND), 0);
	timeout_stop(&t);
}

static void tdr_02_pre_10_a_preemption_request_precedes_the_reset(void **state)
{
	struct timeout_world t;

	start_overdue(&t, state, aware, 1);
	timeout_await(&t, VIDMM_RECOVERY_RESTARTED, 1);
	const struct vidmm_event asked = timeout_event(VIDMM_RECOVERY_PREEMPT, 0),
				 late = timeout_event(VIDMM_RECOVERY_TIMEOUT, 0);
	if (t.w.kind == VIDMM_HOST_SIM)
		assert_in_range(late.time_ns - asked.time_ns, 2000 * NS_PER_MS, 2100 * NS_PER_MS);
	assert_true(asked.sequence < late.sequence);
	assert_int_equal(scripted_count(t.w.m, VIDMM_DDI_PREEMPT_COMMAND), 1);
	assert_int_equal(scripted_count(t.w.m, VIDMM_DDI_RESET_FROM_TIMEOUT), 1);
	assert_true(timeout_is_lost(&t.w.device, t.a));
	/* TDR-09: the answer comes late. */
	scripted_preempted(t.w.m, 0, requested(&t), requested(&t) - 1);
	assert_int_equal(t.w.fatals, 0);
	timeout_reopen(&t);
	assert_false(timeout_is_lost(&t.w.device, t.a));
	timeout_stop(&t);
}

/* However long the packet runs. */
static void tdr_02_a_node_that_answers_the_preemption_request_is_not_reset(void **state)
{
	struct timeout_world t;

	start(&t, state, aware_and_prompt);
	timeout_hang(&t);
	world_submit_use(&t.w.context, t.a);
	timeout_pass(&t, 20 * NS_PER_S);
	assert_true(timeout_count(VIDMM_RECOVERY_PREEMPTED) > 10);
	assert_int_equal(timeout_count(VIDMM_RECOVERY_PREEMPTED) + 1,
			 scripted_count(t.w.m, VIDMM_DDI_SUBMIT_COMMAND));
	finish(&t);
}

/* All packets complete, but the answer does not come: the node does not respond. */
static void tdr_02_an_empty_node_that_does_not_answer_is_reset(void **state)
{
	struct timeout_world t;

	start_overdue(&t, state, aware, 2);
	assert_int_equal(scripted_complete(t.w.m, 0, 2), 2);
	timeout_pass(&t, 3 * NS_PER_S);
	assert_int_equal(timeout_count(VIDMM_RECOVERY_RESTARTED), 1);
	assert_true(timeout_is_lost(&t.w.device, t.a));
	timeout_stop(&t);
}

/* ---- the answer ---- */

static void same_buffer(const DXGKARG_SUBMITCOMMAND *a, const DXGKARG_SUBMITCOMMAND *b)
{
	DXGKARG_SUBMITCOMMAND other = *b;

	other.SubmissionFenceId = a->SubmissionFenceId;
	assert_memory_equal(a, &other, sizeof(other));
}

static void pre_04_pre_07_pre_08_pat_14_sub_21_preempted_packets_are_resubmitted(void **state)
{
	struct timeout_world t;
	void *data;

	start_overdue(&t, state, aware, 3);
	scripted_preempted(t.w.m, 0, requested(&t), submitted(&t, 0));
	/* The first has run. The second was resubmitted, and the third was submitted. */
	world_await(&t.w, VIDMM_DDI_SUBMIT_COMMAND, 4);
	assert_int_equal(timeout_event(VIDMM_RECOVERY_PREEMPTED, 0).arg[3], 1);
	assert_int_equal(client_try_lock(&t.w.device, &t.a, 0x4, &data), D3DERR_WASSTILLDRAWING);
	const struct scripted_call *second = scripted_nth(t.w.m, VIDMM_DDI_SUBMIT_COMMAND, 1),
				   *again = scripted_nth(t.w.m, VIDMM_DDI_SUBMIT_COMMAND, 2);
	same_buffer(&second->in.submit, &again->in.submit);
	assert_int_equal(second->in.submit.Flags.Value, 0);
	assert_int_equal(again->in.submit.Flags.Value, 0); /* an adapter of 1.x */
	assert_true(newer(submitted(&t, 2), requested(&t)));
	assert_true(newer(submitted(&t, 3), submitted(&t, 2)));
	/* Patched again, the third as well, since ids rise along the queue. */
	if (t.w.kind == VIDMM_HOST_SIM)
		assert_int_equal(scripted_count(t.w.m, VIDMM_DDI_PATCH), 5);
	const DXGKARG_PATCH *before = &scripted_nth(t.w.m, VIDMM_DDI_PATCH, 1)->in.patch,
			    *after = &scripted_nth(t.w.m, VIDMM_DDI_PATCH, 3)->in.patch;
	assert_int_equal(after->SubmissionFenceId, submitted(&t, 2));
	assert_ptr_equal(after->pDmaBuffer, before->pDmaBuffer);
	assert_int_equal(after->PatchLocationListSubmissionStart,
			 before->PatchLocationListSubmissionStart);
	assert_int_equal(after->PatchLocationListSubmissionLength,
			 before->PatchLocationListSubmissionLength);
	assert_int_equal(
		scripted_nth(t.w.m, VIDMM_DDI_PATCH, 3)->allocations[0].PhysicalAddress.QuadPart,
		scripted_nth(t.w.m, VIDMM_DDI_PATCH, 1)->allocations[0].PhysicalAddress.QuadPart);
	finish(&t);
}

static void pre_05_an_answer_during_preemptcommand_is_accepted(void **state)
{
	struct timeout_world t;

	start_overdue(&t, state, aware_and_prompt, 2);
	timeout_await(&t, VIDMM_RECOVERY_PREEMPTED, 1);
	assert_int_equal(timeout_event(VIDMM_RECOVERY_PREEMPTED, 0).arg[3], 2);
	world_await(&t.w, VIDMM_DDI_SUBMIT_COMMAND, 4);
	finish(&t);
}

static void pre_06_packets_may_complete_before_the_answer(void **state)
{
	struct timeout_world t;

	start_overdue(&t, state, aware, 2);
	uint32_t last = submitted(&t, 1);
	assert_int_equal(scripted_complete(t.w.m, 0, 2), 2);
	scripted_preempted(t.w.m, 0, requested(&t), last);
	timeout_await(&t, VIDMM_RECOVERY_PREEMPTED, 1);
	assert_int_equal(timeout_event(VIDMM_RECOVERY_PREEMPTED, 0).arg[3], 0);
	assert_int_equal(scripted_count(t.w.m, VIDMM_DDI_SUBMIT_COMMAND), 2);
	assert_int_equal(t.w.fatals, 0);
	finish(&t);
}

static void pre_07_preempted_paging_is_resubmitted_first_with_its_id(void **state)
{
	struct timeout_world t;

	start(&t, state, aware_on_one_node);
	D3DKMT_HANDLE fresh = world_allocate(&t.w, 64 * KIB, WORLD_MEMORY);
	timeout_hang(&t);
	world_submit_use(&t.w.context, t.a);
	world_submit_use(&t.w.context, fresh);
	timeout_await_preemption(&t);
	uint32_t render = submitted(&t, 0), paging = submitted(&t, 1);
	assert_true(scripted_nth(t.w.m, VIDMM_DDI_SUBMIT_COMMAND, 1)->in.submit.Flags.Paging);
	scripted_preempted(t.w.m, 0, requested(&t), render - 1);
	world_await(&t.w, VIDMM_DDI_SUBMIT_COMMAND, 4);
	assert_int_equal(submitted(&t, 2), paging);
	assert_true(newer(submitted(&t, 3), requested(&t)));
	same_buffer(&scripted_nth(t.w.m, VIDMM_DDI_SUBMIT_COMMAND, 0)->in.submit,
		    &scripted_nth(t.w.m, VIDMM_DDI_SUBMIT_COMMAND, 3)->in.submit);
	finish(&t);
}

struct renderer {
	struct timeout_world *t;
	_Atomic uint32_t result;
	_Atomic bool done;
};

static void render_locked(void *argument)
{
	struct renderer *r = argument;

	world_use(&r->t->w.context, r->t->a);
	atomic_store(&r->result, (uint32_t)client_try_submit(&r->t->w.context));
	atomic_store(&r->done, true);
}

/* On threads it may be the worker that prepares the packet and waits instead of the renderer. */
static void assert_still_inside(const struct renderer *r)
{
	if (r->t->w.kind == VIDMM_HOST_SIM)
		assert_false(atomic_load(&r->done));
}

/*
 * A thread waits for paging with the paging lock held (LKR-01), so that thread requests the
 * preemption and resubmits.
 */
static void pre_07_a_thread_waiting_with_the_paging_lock_resubmits(void **state)
{
	struct timeout_world t;
	struct vidmm_thread *thread;

	start(&t, state, aware);
	struct renderer renderer = {.t = &t};
	uint32_t *words = client_lock(&t.w.device, t.a, 0);
	words[0] = 0x600D;
	timeout_hang(&t);
	assert_int_equal(
		vidmm_thread_create(t.w.client.host, "renders", render_locked, &renderer, &thread),
		0);
	timeout_await_preemption(&t);
	assert_still_inside(&renderer);
	assert_int_equal(timeout_event(VIDMM_RECOVERY_PREEMPT, 0).arg[1], 1);
	uint32_t paging = submitted(&t, 0);
	scripted_preempted(t.w.m, 1, requested(&t), paging - 1);
	world_await(&t.w, VIDMM_DDI_SUBMIT_COMMAND, 2);
	assert_int_equal(submitted(&t, 1), paging);
	assert_still_inside(&renderer);
	while (!atomic_load(&renderer.done)) {
		scripted_complete_all(t.w.m);
		vidmm_settle(t.w.client.host);
	}
	vidmm_thread_join(thread);
	world_run(&t.w);
	assert_int_equal(atomic_load(&renderer.result), S_OK);
	assert_int_equal(words[0], 0x600D);
	assert_int_equal(client_unlock(&t.w.device, t.a), S_OK);
	finish(&t);
}

#define TEXTURES 4u

/* Memory for two textures of 64 KiB; each uses the slot of the previous one. */
static void aware_with_little_memory(struct scripted_miniport *m)
{
	aware(m);
	m->settings.segment[0].size_bytes = m->settings.segment[0].commit_limit_bytes = 128 * KIB;
	m->settings.caps.MaxAllocationListSlotId = 1;
}

static void draw_textures(struct timeout_world *t, D3DKMT_HANDLE *texture)
{
	for (uint32_t i = 0; i < TEXTURES; i++) {
		const struct scripted_command command = {
			.op = SCRIPTED_WRITE,
			.size_bytes = sizeof(command),
			.allocation = client_use(&t->w.context, texture[i], true),
			.value = 0x7E00 + i,
			.split = 1,
		};

		world_command(&t->w.context, &command);
	}
	client_submit(&t->w.context);
}

/* SPL-10: the first portion is preempted and resubmitted unchanged; the others follow it. */
static void spl_10_pre_08_pat_14_a_portion_is_preempted_like_a_submission(void **state)
{
	struct timeout_world t;
	D3DKMT_HANDLE texture[TEXTURES];

	start(&t, state, aware_with_little_memory);
	for (uint32_t i = 0; i < TEXTURES; i++)
		texture[i] = world_allocate(&t.w, 64 * KIB, WORLD_MEMORY);
	timeout_hang(&t);
	draw_textures(&t, texture);
	while (!world_render_submits(&t.w)) { /* paging has its own node */
		scripted_complete(t.w.m, 1, UINT32_MAX);
		vidmm_settle(t.w.client.host);
	}
	timeout_await_preemption(&t);
	const DXGKARG_SUBMITCOMMAND *portion =
		&world_nth_of(&t.w, VIDMM_DDI_SUBMIT_COMMAND, false, 0)->in.submit;
	assert_int_equal(portion->DmaBufferSubmissionStartOffset, 0);
	assert_int_equal(portion->DmaBufferSubmissionEndOffset,
			 2 * sizeof(struct scripted_command));
	scripted_preempted(t.w.m, 0, requested(&t), portion->SubmissionFenceId - 1);
	while (world_render_submits(&t.w) < 2)
		vidmm_settle(t.w.client.host);
	const DXGKARG_SUBMITCOMMAND *again =
		&world_nth_of(&t.w, VIDMM_DDI_SUBMIT_COMMAND, false, 1)->in.submit;
	const DXGKARG_PATCH *patch = &world_nth_of(&t.w, VIDMM_DDI_PATCH, false, 1)->in.patch;
	same_buffer(portion, again);
	assert_true(newer(again->SubmissionFenceId, requested(&t)));
	assert_int_equal(patch->SubmissionFenceId, again->SubmissionFenceId);
	assert_int_equal(patch->PatchLocationListSubmissionStart, 0);
	assert_int_equal(patch->PatchLocationListSubmissionLength, 2);
	t.w.m->settings.withhold_preemption = false;
	world_run(&t.w);
	/* on a slow machine there may be one more preemption request */
	if (t.w.kind == VIDMM_HOST_SIM)
		assert_int_equal(world_render_submits(&t.w), 3);
	for (uint32_t i = 0; i < TEXTURES; i++)
		assert_int_equal(world_word(&t.w, texture[i], 0), 0x7E00 + i);
	finish(&t);
}

/* ---- invalid answers ---- */

static void answer_badly(void **state, uint32_t fence_off, int32_t last_off)
{
	struct timeout_world t;

	start_overdue(&t, state, aware, 2);
	scripted_preempted(t.w.m, 0, requested(&t) + fence_off,
			   submitted(&t, 0) + (uint32_t)last_off);
	client_idle(&t.w.client);
	world_expect_finding(&t.w, "PRE-12");
	assert_int_equal(t.w.fatals, 1);
	assert_int_equal(t.w.fatal[0], 0x119);
	assert_int_equal(t.w.fatal[1], 0x1);
	t.w.expected_fatals = 1;
	timeout_stop(&t);
}

static void pre_12_an_answer_with_an_unknown_id_is_a_driver_error(void **state)
{
	answer_badly(state, 1, 0);
}

static void pre_12_last_completed_newer_than_submitted_is_a_driver_error(void **state)
{
	answer_badly(state, 0, 100);
}

static void pre_12_last_completed_older_than_reported_is_a_driver_error(void **state)
{
	answer_badly(state, 0, -100);
}

static void pre_12_an_answer_without_a_request_is_a_driver_error(void **state)
{
	struct timeout_world t;

	start(&t, state, aware);
	timeout_hang(&t);
	world_submit_use(&t.w.context, t.a);
	scripted_preempted(t.w.m, 0, submitted(&t, 0) + 1, submitted(&t, 0));
	client_idle(&t.w.client);
	world_expect_finding(&t.w, "PRE-12");
	assert_int_equal(t.w.fatals, 1);
	t.w.expected_fatals = 1;
	timeout_stop(&t);
}

/* ---- followed by a reset ---- */

/*
 * One packet is resubmitted and hangs. Each packet that did not run, or did not finish, is
 * cancelled exactly once.
 */
static void tdr_12_preempted_packets_are_cancelled_once_after_a_reset(void **state)
{
	struct timeout_world t;

	start_overdue(&t, state, aware_with_cancel, 4);
	scripted_preempted(t.w.m, 0, requested(&t), submitted(&t, 0));
	timeout_await(&t, VIDMM_RECOVERY_RESTARTED, 1);
	client_idle(&t.w.client);
	assert_int_equal(scripted_count(t.w.m, VIDMM_DDI_PREEMPT_COMMAND), 2);
	assert_int_equal(scripted_count(t.w.m, VIDMM_DDI_SUBMIT_COMMAND), 4);
	assert_int_equal(scripted_count(t.w.m, VIDMM_DDI_CANCEL_COMMAND), 1);
	timeout_stop(&t);
}

/* ---- a packet that is never complete ---- */

/* The GPU gives the packet back at each request, and executes nothing. */
static void q_411_a_packet_that_never_gets_to_run_is_found_once(void **state)
{
	struct timeout_world t;

	start(&t, state, aware_and_prompt);
	timeout_hang(&t);
	world_submit_write(&t.w.context, t.a, 4, 0x411);
	timeout_await(&t, VIDMM_RECOVERY_PREEMPTED, 63);
	assert_int_equal(t.w.client.findings, 0);
	timeout_await(&t, VIDMM_RECOVERY_PREEMPTED, 64);
	world_expect_finding(&t.w, "Q-411");
	timeout_await(&t, VIDMM_RECOVERY_PREEMPTED, 130);
	assert_int_equal(t.w.client.findings, 0);
	assert_int_equal(timeout_count(VIDMM_RECOVERY_TIMEOUT), 0);
	timeout_work(&t);
	finish(&t);
}

/* Packets that complete between their preemptions are no reason for a finding. */
static void q_411_each_packet_is_counted_for_itself(void **state)
{
	struct timeout_world t;

	start(&t, state, aware_and_prompt);
	for (uint32_t i = 1; i <= 3; i++) {
		timeout_hang(&t);
		world_submit_use(&t.w.context, t.a);
		timeout_await(&t, VIDMM_RECOVERY_PREEMPTED, 40 * i);
		timeout_work(&t);
		world_run(&t.w);
	}
	assert_int_equal(t.w.client.findings, 0);
	finish(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(pre_01_pre_03_a_preemption_request_has_its_node_and_a_fresh_id),
		ON_SIM(pre_01_a_failed_preemption_request_is_fatal),
		ON_SIM(pre_02_nothing_is_submitted_until_the_preemption_answer),
		ON_SIM(pre_10_without_the_capability_no_preemption_is_requested),
		ON_BOTH(tdr_02_pre_10_a_preemption_request_precedes_the_reset),
		ON_SIM(tdr_02_a_node_that_answers_the_preemption_request_is_not_reset),
		ON_SIM(tdr_02_an_empty_node_that_does_not_answer_is_reset),
		ON_BOTH(pre_04_pre_07_pre_08_pat_14_sub_21_preempted_packets_are_resubmitted),
		ON_SIM(pre_05_an_answer_during_preemptcommand_is_accepted),
		ON_SIM(pre_06_packets_may_complete_before_the_answer),
		ON_BOTH(pre_07_preempted_paging_is_resubmitted_first_with_its_id),
		ON_BOTH(pre_07_a_thread_waiting_with_the_paging_lock_resubmits),
		ON_BOTH(spl_10_pre_08_pat_14_a_portion_is_preempted_like_a_submission),
		ON_SIM(pre_12_an_answer_with_an_unknown_id_is_a_driver_error),
		ON_SIM(pre_12_last_completed_newer_than_submitted_is_a_driver_error),
		ON_SIM(pre_12_last_completed_older_than_reported_is_a_driver_error),
		ON_SIM(pre_12_an_answer_without_a_request_is_a_driver_error),
		ON_SIM(tdr_12_preempted_packets_are_cancelled_once_after_a_reset),
		ON_SIM(q_411_a_packet_that_never_gets_to_run_is_found_once),
		ON_SIM(q_411_each_packet_is_counted_for_itself),
	};

	return cmocka_run_group_tests_name("sched preempt", tests, NULL, NULL);
}
