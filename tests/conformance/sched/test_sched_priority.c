/* SPDX-License-Identifier: MIT */
/*
 * Which packet is submitted next (SCH-03 to SCH-05), what must not be overtaken, and what is
 * complete meanwhile.
 */
#include "priority_world.h"

#include <string.h>

static void aware(struct scripted_miniport *m)
{
	m->settings.caps.SchedulingCaps.PreemptionAware = 1;
	m->settings.withhold_preemption = true; /* scripted_preempted answers */
}

static void aware_2(struct scripted_miniport *m)
{
	aware(m);
	scripted_set_version(m, DXGKDDI_INTERFACE_VERSION_WDDM2_0);
	m->settings.caps.WDDMVersion = DXGKDDI_WDDMv2;
}

static void assert_order(struct priority_world *p, const char *expected)
{
	assert_string_equal(priority_order(p), expected);
}

/* ---- the order ---- */

/* The miniport has two packets (SUB-16) when the one of higher priority is queued. */
static void sch_05_the_packet_with_highest_priority_is_submitted_next(void **state)
{
	struct priority_world p;

	priority_start(&p, state, NULL, NULL, NULL);
	struct lane *low = priority_lane(&p, 0, 'l'), *high = priority_lane(&p, 1, 'h'),
		    *middle = priority_lane(&p, 1, 'm');
	lane_priority(high, 3);
	lane_priority(middle, 1);
	lane_submit(low, 4);
	lane_submit(middle, 2);
	lane_submit(high, 3);
	assert_order(&p, "ll");
	priority_complete_all(&p);
	assert_order(&p, "llhhhmmll");
	priority_assert_rising(&p);
	priority_stop(&p);
}

static void sch_05_without_the_capability_no_preemption_is_requested(void **state)
{
	struct priority_world p;

	priority_start(&p, state, NULL, NULL, NULL);
	struct lane *low = priority_lane(&p, 0, 'l'), *high = priority_lane(&p, 1, 'h');
	lane_priority(high, 7);
	lane_submit(low, 1);
	lane_submit(high, 1);
	assert_order(&p, "lh");
	priority_complete_all(&p);
	assert_int_equal(scripted_count(p.w.m, VIDMM_DDI_PREEMPT_COMMAND), 0);
	priority_stop(&p);
}

/* It takes effect with the next packet, also for packets that are queued already. */
static void sch_01_sch_05_a_priority_change_affects_queued_packets(void **state)
{
	struct priority_world p;

	priority_start(&p, state, NULL, NULL, NULL);
	struct lane *a = priority_lane(&p, 0, 'a'), *b = priority_lane(&p, 1, 'b');
	lane_submit(a, 5);
	lane_submit(b, 2);
	lane_priority(b, 1);
	priority_complete(&p, 1);
	assert_order(&p, "aab");
	lane_priority(b, -1);
	priority_complete_all(&p);
	assert_order(&p, "aabaaab");
	priority_stop(&p);
}

static void sub_04_a_context_keeps_its_order(void **state)
{
	struct priority_world p;

	priority_start(&p, state, NULL, NULL, NULL);
	struct lane *low = priority_lane(&p, 0, 'l'), *high = priority_lane(&p, 1, 'h');
	D3DKMT_HANDLE a = lane_allocate(low, 4 * KIB, WORLD_MEMORY);
	lane_priority(high, 1);
	lane_submit_use(low, a);
	priority_complete_all(&p);
	for (uint32_t i = 1; i <= 6; i++) {
		lane_submit_write(low, a, i);
		lane_submit(high, 1);
	}
	for (uint32_t i = 1; i <= 12; i++)
		priority_complete(&p, 1);
	assert_int_equal(lane_word(low, a), 6);
	assert_order(&p, "llhhhhhhlllll");
	priority_assert_rising(&p);
	priority_stop(&p);
}

/*
 * Two processes, four contexts: the preferred one overtakes the other context of the same process,
 * and no context of the other process.
 */
static void sch_03_in_process_priority_does_not_overtake_other_processes(void **state)
{
	const struct vidmm_scheduling_options one_by_one = {1, 1000000};
	struct priority_world p;

	priority_start(&p, state, NULL, NULL, &one_by_one);
	struct lane *a = priority_lane(&p, 0, 'a'), *b = priority_lane(&p, 0, 'b'),
		    *c = priority_lane(&p, 1, 'c'), *d = priority_lane(&p, 1, 'd');
	struct lane *blocker = priority_lane(&p, 1, '-');
	lane_priority(blocker, 7);
	lane_in_process(b, 1);
	lane_submit(blocker, 2);
	lane_submit(a, 4);
	lane_submit(b, 4);
	lane_submit(c, 4);
	lane_submit(d, 4);
	priority_complete_all(&p);
	const char *order = priority_order(&p) + 2;
	assert_true(strchr(order, 'a') > strrchr(order, 'b'));
	/* The other process had as many turns in the first half as without it. */
	uint32_t first = 0, others = 0;
	for (uint32_t i = 0; i < 8; i++) {
		first += order[i] == 'a' || order[i] == 'b';
		others += order[i] == 'c' || order[i] == 'd';
	}
	assert_in_range(first, 3, 5);
	assert_in_range(others, 3, 5);
	assert_true(strchr(order, 'c') < strrchr(order, 'b'));
	assert_true(strchr(order, 'd') < strrchr(order, 'b'));
	priority_stop(&p);
}

static void sch_04_classes_order_processes_before_contexts(void **state)
{
	struct priority_world p;

	priority_start(&p, state, NULL, NULL, NULL);
	struct lane *low = priority_lane(&p, 0, 'l'), *high = priority_lane(&p, 1, 'h');
	lane_priority(low, 7);
	lane_priority(high, -6);
	process_class(&p, 1, D3DKMT_SCHEDULINGPRIORITYCLASS_ABOVE_NORMAL);
	lane_submit(low, 4);
	lane_submit(high, 3);
	priority_complete_all(&p);
	assert_order(&p, "llhhhll");
	priority_forget(&p);
	/* But a context of idle priority is idle in any process. */
	lane_priority(high, -7);
	lane_submit(low, 3);
	lane_submit(high, 2);
	lane_submit(low, 2);
	priority_complete_all(&p);
	assert_order(&p, "lllllhh");
	priority_forget(&p);
	/* It takes effect for queued packets, like a context's priority. */
	lane_priority(high, 0);
	process_class(&p, 1, D3DKMT_SCHEDULINGPRIORITYCLASS_BELOW_NORMAL);
	lane_submit(low, 4);
	lane_submit(high, 2);
	process_class(&p, 1, D3DKMT_SCHEDULINGPRIORITYCLASS_HIGH);
	priority_complete_all(&p);
	assert_order(&p, "llhhll");
	priority_stop(&p);
}

/* The highest priority of a class is below the lowest of the next one that is not idle. */
static void sch_04_each_class_is_above_the_one_before_it(void **state)
{
	static const int32_t lower[] = {7, 0, -6};
	struct priority_world p;

	priority_start(&p, state, NULL, NULL, NULL);
	struct lane *low = priority_lane(&p, 0, 'l'), *high = priority_lane(&p, 1, 'h');
	lane_priority(high, -6);
	for (uint32_t class = D3DKMT_SCHEDULINGPRIORITYCLASS_IDLE;
	     class < D3DKMT_SCHEDULINGPRIORITYCLASS_HIGH; class ++) {
		process_class(&p, 0, class);
		process_class(&p, 1, class + 1);
		for (uint32_t i = 0; i < 3; i++) {
			lane_priority(low, lower[i]);
			lane_submit(low, 4);
			lane_submit(high, 3);
			priority_complete_all(&p);
			assert_order(&p, "llhhhll");
			priority_forget(&p);
		}
	}
	priority_stop(&p);
}

/*
 * All wait for the same paging and have used no time yet: the oldest packet is next. A new context
 * may have the address of the one whose slice it was; that must not matter.
 */
static void sch_06_the_slice_of_an_ended_context_is_not_inherited(void **state)
{
	struct priority_world p;
	struct lane *lane[4];

	priority_start(&p, state, NULL, NULL, NULL);
	struct lane *ended = priority_lane(&p, 0, '-');
	lane_end(ended);
	for (uint32_t i = 0; i < 4; i++)
		lane[i] = priority_open(&p, 0, (char)('a' + i));
	D3DKMT_HANDLE fresh = lane_allocate(ended, 4 * KIB, WORLD_MEMORY);
	for (uint32_t i = 4; i--;)
		lane_submit_use(lane[i], fresh);
	assert_order(&p, "");
	priority_complete_all(&p);
	assert_order(&p, "dcba");
	priority_stop(&p);
}

/* ---- preemption ---- */

static uint32_t last_fence(const struct priority_world *p)
{
	return scripted_last(p->w.m, VIDMM_DDI_SUBMIT_COMMAND)->in.submit.SubmissionFenceId;
}

static void await_requests(struct priority_world *p, uint32_t count)
{
	world_await(&p->w, VIDMM_DDI_PREEMPT_COMMAND, count);
	assert_int_equal(scripted_count(p->w.m, VIDMM_DDI_PREEMPT_COMMAND), count);
}

static uint32_t asked(const struct priority_world *p)
{
	return scripted_last(p->w.m, VIDMM_DDI_PREEMPT_COMMAND)->in.preempt.PreemptionFenceId;
}

static void answer(struct priority_world *p, uint32_t last_completed)
{
	scripted_preempted(p->w.m, 0, asked(p), last_completed);
	client_settle(&p->w.client);
	vidmm_settle(p->w.client.host);
}

static void finish_preempted(struct priority_world *p)
{
	p->w.m->settings.withhold_preemption = false;
	priority_stop(p);
}

static void sch_05_a_higher_packet_preempts_at_once(void **state)
{
	struct priority_world p;

	priority_start(&p, state, aware, NULL, NULL);
	struct lane *low = priority_lane(&p, 0, 'l'), *high = priority_lane(&p, 1, 'h');
	D3DKMT_HANDLE a = lane_allocate(low, 4 * KIB, WORLD_MEMORY);
	lane_submit_use(low, a);
	priority_complete_all(&p);
	priority_forget(&p);
	lane_priority(high, 1);
	uint32_t before = last_fence(&p);
	uint64_t began = vidmm_now_ns(p.w.client.host);
	lane_submit_write(low, a, 0x10);
	lane_submit(low, 2);
	lane_submit(high, 1);
	await_requests(&p, 1);
	if (p.w.kind == VIDMM_HOST_SIM) /* without waiting for a completion */
		assert_int_equal(vidmm_now_ns(p.w.client.host), began);
	assert_order(&p, "ll");
	answer(&p, before);
	assert_order(&p, "llhl");
	priority_complete(&p, 4);
	assert_order(&p, "llhlll");
	assert_int_equal(lane_word(low, a), 0x10);
	priority_assert_rising(&p);
	assert_int_equal(scripted_count(p.w.m, VIDMM_DDI_PREEMPT_COMMAND), 1);
	finish_preempted(&p);
}

static void sch_05_equal_priority_does_not_preempt(void **state)
{
	struct priority_world p;

	priority_start(&p, state, aware, NULL, NULL);
	struct lane *a = priority_lane(&p, 0, 'a'), *b = priority_lane(&p, 1, 'b'),
		    *c = priority_lane(&p, 1, 'c');
	lane_priority(c, -1);
	lane_in_process(b, 1);
	lane_submit(a, 3);
	lane_submit(b, 1);
	lane_submit(c, 1);
	vidmm_settle(p.w.client.host);
	assert_int_equal(scripted_count(p.w.m, VIDMM_DDI_PREEMPT_COMMAND), 0);
	priority_complete_all(&p);
	assert_int_equal(scripted_count(p.w.m, VIDMM_DDI_PREEMPT_COMMAND), 0);
	finish_preempted(&p);
}

static void sch_05_a_context_raised_above_the_running_one_preempts(void **state)
{
	struct priority_world p;

	priority_start(&p, state, aware, NULL, NULL);
	struct lane *a = priority_lane(&p, 0, 'a'), *b = priority_lane(&p, 1, 'b');
	uint32_t before = last_fence(&p);
	lane_submit(a, 3);
	lane_submit(b, 1);
	vidmm_settle(p.w.client.host);
	assert_int_equal(scripted_count(p.w.m, VIDMM_DDI_PREEMPT_COMMAND), 0);
	lane_priority(b, 1);
	await_requests(&p, 1);
	answer(&p, before);
	assert_order(&p, "aaba");
	priority_complete(&p, 4);
	/* And by the class of its process. */
	lane_priority(b, 0);
	priority_forget(&p);
	before = last_fence(&p);
	lane_submit(a, 3);
	lane_submit(b, 1);
	process_class(&p, 1, D3DKMT_SCHEDULINGPRIORITYCLASS_HIGH);
	await_requests(&p, 2);
	answer(&p, before);
	assert_order(&p, "aaba");
	finish_preempted(&p);
}

/* SCH-06: it is preempted four times, and then may finish. */
static void sch_05_sch_06_preemptions_of_one_packet_are_bounded(void **state)
{
	struct priority_world p;

	priority_start(&p, state, aware, NULL, NULL);
	struct lane *low = priority_lane(&p, 0, 'l'), *high = priority_lane(&p, 1, 'h');
	lane_priority(high, 1);
	uint32_t before = last_fence(&p);
	lane_submit(low, 1);
	for (uint32_t i = 1; i <= 4; i++) {
		lane_submit(high, 1);
		await_requests(&p, i);
		answer(&p, before);
		before = scripted_nth(p.w.m, VIDMM_DDI_SUBMIT_COMMAND,
				      scripted_count(p.w.m, VIDMM_DDI_SUBMIT_COMMAND) - 2)
				 ->in.submit.SubmissionFenceId;
		priority_complete(&p, 1);
	}
	assert_order(&p, "lhlhlhlhl");
	lane_submit(high, 1);
	vidmm_settle(p.w.client.host);
	assert_int_equal(scripted_count(p.w.m, VIDMM_DDI_PREEMPT_COMMAND), 4);
	assert_order(&p, "lhlhlhlhlh");
	finish_preempted(&p);
}

/* SCH-02: level 30 is never preempted, not even by another level 30. */
static void sch_02_sub_21_hard_real_time_always_preempts(void **state)
{
	struct priority_world p;

	priority_start(&p, state, aware_2, NULL, NULL);
	struct lane *lane[2] = {priority_open(&p, 0, 'l'), priority_open(&p, 1, 'h')};
	vidmm_process_set_may_raise_priority(p.process[1], true);
	lane_priority(lane[1], ABSOLUTE | 30);
	uint32_t before = 0;
	lane_render(lane[0]);
	for (uint32_t i = 1; i <= 6; i++) {
		if (i == 1)
			before = last_fence(&p) - 1;
		lane_render(lane[1]);
		await_requests(&p, i);
		answer(&p, before);
		before = scripted_nth(p.w.m, VIDMM_DDI_SUBMIT_COMMAND,
				      scripted_count(p.w.m, VIDMM_DDI_SUBMIT_COMMAND) - 2)
				 ->in.submit.SubmissionFenceId;
		priority_complete(&p, 1);
	}
	assert_order(&p, "lhlhlhlhlhlhl");
	/*
	 * SUB-21: from 2.0 on Resubmission is 1 for packets that the miniport had before; every
	 * second one is the low one again.
	 */
	uint32_t first = scripted_count(p.w.m, VIDMM_DDI_SUBMIT_COMMAND) - 13;

	for (uint32_t i = 0; i < 13; i++)
		assert_int_equal(scripted_nth(p.w.m, VIDMM_DDI_SUBMIT_COMMAND, first + i)
					 ->in.submit.Flags.Resubmission,
				 i && i % 2 == 0);
	finish_preempted(&p);
}

/* ---- what must not be overtaken ---- */

/*
 * SCH-05: a packet that waits for another context's write lends it its priority; no packet of a
 * priority in between runs before.
 */
static void sch_05_writes_to_a_shared_allocation_are_not_overtaken(void **state)
{
	struct priority_world p;

	priority_start(&p, state, NULL, NULL, NULL);
	struct lane *low = priority_lane(&p, 0, 'l'), *high = priority_lane(&p, 0, 'h'),
		    *middle = priority_lane(&p, 1, 'm'), *blocker = priority_lane(&p, 1, '-');
	D3DKMT_HANDLE a = lane_allocate(low, 4 * KIB, WORLD_MEMORY);
	lane_submit_use(low, a);
	priority_complete_all(&p);
	priority_forget(&p);
	lane_priority(high, 2);
	lane_priority(middle, 1);
	lane_priority(low, -1);
	lane_submit(blocker, 2);
	lane_submit_write(low, a, 0x10);
	lane_submit(low, 1);
	lane_submit(middle, 2);
	lane_submit_write(high, a, 0x20);
	lane_submit(high, 1);
	priority_complete_all(&p);
	assert_order(&p, "--lhhmml");
	assert_int_equal(lane_word(low, a), 0x20);
	priority_assert_rising(&p);
	priority_stop(&p);
}

static void sch_05_readers_of_a_shared_allocation_may_overtake_readers(void **state)
{
	struct priority_world p;

	priority_start(&p, state, NULL, NULL, NULL);
	struct lane *low = priority_lane(&p, 0, 'l'), *high = priority_lane(&p, 0, 'h'),
		    *blocker = priority_lane(&p, 1, '-');
	D3DKMT_HANDLE a = lane_allocate(low, 4 * KIB, WORLD_MEMORY);
	lane_submit_use(low, a);
	priority_complete_all(&p);
	priority_forget(&p);
	lane_priority(high, 2);
	lane_submit(blocker, 2);
	lane_submit_use(low, a);
	lane_submit_use(low, a);
	lane_submit_use(high, a);
	lane_submit_use(high, a);
	/* A write follows all of them, also the reads of the same context. */
	lane_submit_write(high, a, 0x30);
	priority_complete_all(&p);
	assert_order(&p, "--hhllh");
	priority_stop(&p);
}

/* ---- completion out of order ---- */

static void sch_05_completion_of_an_overtaking_packet_is_seen_at_once(void **state)
{
	struct priority_world p;

	priority_start(&p, state, NULL, NULL, NULL);
	struct lane *low = priority_lane(&p, 0, 'l'), *high = priority_lane(&p, 1, 'h'),
		    *blocker = priority_lane(&p, 1, '-');
	D3DKMT_HANDLE shared = lane_allocate(low, 4 * KIB, WORLD_MEMORY | WORLD_APERTURE);
	D3DKMT_HANDLE gone = lane_allocate(high, 4 * KIB, WORLD_MEMORY);
	lane_submit_use(low, shared);
	lane_submit_use(high, gone);
	priority_complete_all(&p);
	priority_forget(&p);
	lane_priority(high, 2);
	lane_submit(blocker, 2);
	lane_submit_use(low, shared);
	lane_submit_use(high, gone);
	lane_submit(high, 1);
	assert_int_equal(lane_try_lock(high, high->own, 0), STATUS_GRAPHICS_ALLOCATION_BUSY);
	priority_complete(&p, 4);
	assert_order(&p, "--hhl");
	/* The low packet is not complete, and its allocation is busy; the others are not. */
	assert_int_equal(lane_try_lock(low, shared, 0), STATUS_GRAPHICS_ALLOCATION_BUSY);
	assert_int_equal(lane_try_lock(low, shared, 0x400), STATUS_SUCCESS); /* IgnoreReadSync */
	assert_int_equal(lane_try_lock(low, low->own, 0), STATUS_SUCCESS);
	assert_int_equal(lane_try_lock(high, high->own, 0), STATUS_SUCCESS);
	uint32_t live = p.w.m->live_allocations;
	assert_int_equal(lane_destroy(high, gone), STATUS_SUCCESS);
	vidmm_settle(p.w.client.host);
	assert_int_equal(p.w.m->live_allocations, live - 1);
	lane_end(high);
	priority_stop(&p);
}

/* Two contexts use one allocation; the newer use is complete, the older is not. */
static void sch_05_an_allocation_is_busy_until_its_older_use_completes(void **state)
{
	struct priority_world p;

	priority_start(&p, state, NULL, NULL, NULL);
	struct lane *low = priority_lane(&p, 0, 'l'), *high = priority_lane(&p, 0, 'h'),
		    *blocker = priority_lane(&p, 1, '-');
	D3DKMT_HANDLE a = lane_allocate(low, 4 * KIB, WORLD_MEMORY);
	lane_submit_use(low, a);
	priority_complete_all(&p);
	priority_forget(&p);
	lane_priority(high, 2);
	lane_submit(blocker, 2);
	lane_submit_use(low, a);
	lane_submit_use(high, a);
	priority_complete(&p, 3);
	assert_order(&p, "--hl");
	assert_int_equal(lane_try_lock(low, a, 0), STATUS_GRAPHICS_ALLOCATION_BUSY);
	uint32_t live = p.w.m->live_allocations;
	assert_int_equal(lane_destroy(low, a), STATUS_SUCCESS);
	vidmm_settle(p.w.client.host);
	assert_int_equal(p.w.m->live_allocations, live);
	priority_complete(&p, 1);
	assert_int_equal(p.w.m->live_allocations, live - 1);
	priority_stop(&p);
}

/* SCH-01: an idle packet waits as long as there is other work; other packets are not affected. */
static void sch_01_sch_05_an_idle_packet_may_be_overtaken_by_any_number(void **state)
{
	struct priority_world p;

	priority_start(&p, state, NULL, NULL, NULL);
	struct lane *idle = priority_lane(&p, 0, 'i'), *high = priority_lane(&p, 1, 'h');
	D3DKMT_HANDLE shared = lane_allocate(idle, 4 * KIB, WORLD_MEMORY);
	lane_submit_use(idle, shared);
	priority_complete_all(&p);
	priority_forget(&p);
	lane_priority(idle, -7);
	lane_submit(high, 3);
	lane_submit_use(idle, shared);
	for (uint32_t i = 0; i < 1500; i++) {
		lane_submit(high, 1);
		priority_complete(&p, 1);
	}
	assert_null(strchr(priority_order(&p), 'i'));
	assert_int_equal(lane_try_lock(high, high->own, 0), STATUS_GRAPHICS_ALLOCATION_BUSY);
	priority_complete(&p, 3);
	assert_string_equal(priority_order(&p) + 1503, "i");
	assert_int_equal(lane_try_lock(high, high->own, 0), STATUS_SUCCESS);
	assert_int_equal(lane_try_lock(idle, shared, 0), STATUS_GRAPHICS_ALLOCATION_BUSY);
	lane_end(high);
	priority_complete(&p, 1);
	assert_int_equal(lane_try_lock(idle, shared, 0), STATUS_SUCCESS);
	priority_assert_rising(&p);
	priority_stop(&p);
}

/* ---- resets ---- */

static void with_cancel(struct scripted_miniport *m)
{
	m->settings.caps.SchedulingCaps.CancelCommandAware = 1;
	m->settings.table.DxgkDdiCancelCommand = scripted_cancel_command;
}

static NTSTATUS try_render(struct lane *lane)
{
	D3DKMT_RENDER args = {.hContext = lane->context};

	lane_enter(lane);
	return D3DKMTRender(&args);
}

/*
 * TDR-09, TDR-12: of every context, packets in the miniport count as completed and queued ones are
 * cancelled.
 */
static void tdr_09_tdr_12_a_reset_completes_or_cancels_packets_of_all_contexts(void **state)
{
	const struct vidmm_tdr_options tdr = timeout_defaults(*(uint32_t *)*state);
	struct priority_world p;

	priority_start(&p, state, with_cancel, &tdr, NULL);
	struct lane *low = priority_lane(&p, 0, 'l'), *high = priority_lane(&p, 1, 'h');
	lane_priority(high, 3);
	lane_submit(low, 4);
	lane_submit(high, 3);
	priority_complete(&p, 2); /* so that it is ahead of the other */
	assert_order(&p, "llhh");
	scripted_forget(p.w.m);
	while (try_render(low) == STATUS_SUCCESS) /* no command: an empty packet */
		vidmm_sleep_until_ns(p.w.client.host,
				     vidmm_now_ns(p.w.client.host) + 300 * NS_PER_MS);
	vidmm_settle(p.w.client.host);
	assert_int_equal(scripted_count(p.w.m, VIDMM_DDI_RESET_FROM_TIMEOUT), 1);
	assert_int_equal(try_render(high), STATUS_DEVICE_REMOVED);
	/* One packet of the high context, two of the low one, and those rendered meanwhile. */
	assert_true(scripted_count(p.w.m, VIDMM_DDI_CANCEL_COMMAND) >= 3);
	assert_int_equal(scripted_outstanding(p.w.m, 0), 0);
	lane_end(low);
	lane_end(high);
	client_idle(&p.w.client);
	priority_stop(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(sch_05_the_packet_with_highest_priority_is_submitted_next),
		ON_BOTH(sch_05_without_the_capability_no_preemption_is_requested),
		ON_BOTH(sch_01_sch_05_a_priority_change_affects_queued_packets),
		ON_BOTH(sub_04_a_context_keeps_its_order),
		ON_SIM(sch_03_in_process_priority_does_not_overtake_other_processes),
		ON_BOTH(sch_04_classes_order_processes_before_contexts),
		ON_BOTH(sch_04_each_class_is_above_the_one_before_it),
		ON_BOTH(sch_06_the_slice_of_an_ended_context_is_not_inherited),
		ON_BOTH(sch_05_a_higher_packet_preempts_at_once),
		ON_BOTH(sch_05_equal_priority_does_not_preempt),
		ON_BOTH(sch_05_a_context_raised_above_the_running_one_preempts),
		ON_BOTH(sch_05_sch_06_preemptions_of_one_packet_are_bounded),
		ON_BOTH(sch_02_sub_21_hard_real_time_always_preempts),
		ON_BOTH(sch_05_writes_to_a_shared_allocation_are_not_overtaken),
		ON_BOTH(sch_05_readers_of_a_shared_allocation_may_overtake_readers),
		ON_BOTH(sch_05_completion_of_an_overtaking_packet_is_seen_at_once),
		ON_BOTH(sch_05_an_allocation_is_busy_until_its_older_use_completes),
		ON_SIM(sch_01_sch_05_an_idle_packet_may_be_overtaken_by_any_number),
		ON_BOTH(tdr_09_tdr_12_a_reset_completes_or_cancels_packets_of_all_contexts),
	};

	return cmocka_run_group_tests_name("priority", tests, NULL, NULL);
}
