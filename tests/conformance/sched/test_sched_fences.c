/* SPDX-License-Identifier: MIT */
/*
 * What the miniport reports about its packets, and when it takes effect: SUB-05 to SUB-12, faults.
 */
#include "sched_world.h"

#define DONOT_WAIT 0x4u

/* An interrupt that reports several things at once. */
struct interrupt {
	struct scripted_miniport *m;
	DXGKARGCB_NOTIFY_INTERRUPT_DATA data[4];
	uint32_t count;
};

static BOOLEAN notify(PVOID context)
{
	struct interrupt *i = context;

	for (uint32_t n = 0; n < i->count; n++)
		i->m->services.DxgkCbNotifyInterrupt(i->m->services.DeviceHandle, &i->data[n]);
	return i->m->services.DxgkCbQueueDpc(i->m->services.DeviceHandle);
}

static void completed(struct interrupt *i, uint32_t node, uint32_t fence)
{
	DXGKARGCB_NOTIFY_INTERRUPT_DATA *d = &i->data[i->count++];

	d->InterruptType = DXGK_INTERRUPT_DMA_COMPLETED;
	d->DmaCompleted.SubmissionFenceId = fence;
	d->DmaCompleted.NodeOrdinal = node;
}

static void faulted(struct interrupt *i, uint32_t node, uint32_t fence)
{
	DXGKARGCB_NOTIFY_INTERRUPT_DATA *d = &i->data[i->count++];

	d->InterruptType = DXGK_INTERRUPT_DMA_FAULTED;
	d->DmaFaulted.FaultedFenceId = fence;
	d->DmaFaulted.Status = STATUS_ACCESS_VIOLATION;
	d->DmaFaulted.NodeOrdinal = node;
}

static void raise_interrupt(struct interrupt *i)
{
	BOOLEAN result;

	assert_int_equal(i->m->services.DxgkCbSynchronizeExecution(i->m->services.DeviceHandle,
								   notify, i, 0, &result),
			 STATUS_SUCCESS);
}

/*
 * A world whose allocation is resident, so that every further submission is one packet on node 0.
 */
static D3DKMT_HANDLE start_warm(struct world *w, void **state, world_setup *setup)
{
	world_start(w, state, setup);
	D3DKMT_HANDLE a = world_allocate(w, 64 * KIB, 0);
	world_submit_use(&w->context, a);
	world_run(w);
	w->m->settings.ignore_fences = true; /* from here on the test reports */
	return a;
}

static uint32_t fence_of(const struct world *w, uint32_t nth)
{
	return world_nth_of(w, VIDMM_DDI_SUBMIT_COMMAND, false, nth)->in.submit.SubmissionFenceId;
}

static uint32_t queued(struct world *w, D3DKMT_HANDLE a)
{
	world_use(&w->context, a);
	D3DDDICB_RENDER args = world_render_args(&w->context);
	assert_int_equal(world_render(&w->context, &args), S_OK);
	return args.QueuedBufferCount;
}

static void finish(struct world *w)
{
	w->m->settings.ignore_fences = false;
	world_stop(w);
}

/* ---- completion ---- */

static void sub_06_a_completion_report_retires_all_earlier_fences(void **state)
{
	struct world w;
	D3DKMT_HANDLE a = start_warm(&w, state, NULL);

	for (uint32_t i = 1; i <= 4; i++)
		assert_int_equal(queued(&w, a), i);
	/* one packet before, and two in the hardware (SUB-16) */
	assert_int_equal(world_render_submits(&w), 3);
	assert_int_equal(scripted_complete(w.m, 0, 2), 2);
	/* the second packet; the first is never reported */
	scripted_report(w.m, 0, fence_of(&w, 2));
	assert_int_equal(world_render_submits(&w), 5);
	assert_int_equal(queued(&w, a), 3);
	assert_int_equal(scripted_complete(w.m, 0, 2), 2);
	scripted_report(w.m, 0, fence_of(&w, 4));
	assert_int_equal(queued(&w, a), 2);
	finish(&w);
}

static void sub_12_repeated_completion_reports_are_ignored(void **state)
{
	struct world w;
	D3DKMT_HANDLE a = start_warm(&w, state, NULL);
	struct interrupt both = {.m = w.m};

	queued(&w, a);
	assert_int_equal(queued(&w, a), 2);
	scripted_complete(w.m, 0, 2);
	completed(&both, 0, fence_of(&w, 1));
	completed(&both, 0, fence_of(&w, 0)); /* reported earlier */
	raise_interrupt(&both);
	raise_interrupt(&both);
	assert_int_equal(queued(&w, a), 2);
	both.count = 0;
	completed(&both, 0, fence_of(&w, 2));
	completed(&both, 0, fence_of(&w, 1)); /* an older fence reported later changes nothing */
	raise_interrupt(&both);
	assert_int_equal(queued(&w, a), 2);
	assert_int_equal(w.client.findings, 0);
	finish(&w);
}

static bool hold_dpc;
static struct scripted_miniport *held_miniport;

static VOID reluctant_dpc(IN_CONST_PVOID adapter)
{
	(void)adapter;
	if (!hold_dpc)
		held_miniport->services.DxgkCbNotifyDpc(held_miniport->services.DeviceHandle);
}

static void with_reluctant_dpc(struct scripted_miniport *m)
{
	hold_dpc = false;
	held_miniport = m;
	m->settings.table.DxgkDdiDpcRoutine = reluctant_dpc;
}

static void sub_07_effects_wait_for_notify_dpc(void **state)
{
	struct world w;
	D3DKMT_HANDLE a = start_warm(&w, state, with_reluctant_dpc);

	hold_dpc = true;
	for (uint32_t i = 1; i <= 4; i++)
		assert_int_equal(queued(&w, a), i);
	scripted_complete(w.m, 0, 2);
	scripted_report(w.m, 0, fence_of(&w, 2));
	assert_int_equal(world_render_submits(&w), 3); /* nothing more is submitted */
	assert_int_equal(client_try_lock(&w.device, &a, DONOT_WAIT, NULL), D3DERR_WASSTILLDRAWING);
	assert_int_equal(queued(&w, a), 5);
	hold_dpc = false;
	w.m->services.DxgkCbQueueDpc(w.m->services.DeviceHandle);
	assert_int_equal(world_render_submits(&w), 5);
	assert_int_equal(queued(&w, a), 4);
	finish(&w);
}

/* ---- wrong reports ---- */

static void refused_report(struct world *w, struct interrupt *i, uint32_t fence, uint32_t last)
{
	D3DKMT_HANDLE b = world_allocate(w, 64 * KIB, 0);

	raise_interrupt(i);
	world_expect_finding(w, "SUB-12");
	assert_int_equal(w->fatals, 1);
	assert_int_equal(w->fatal[0], 0x119);
	assert_int_equal(w->fatal[1], 0x1);
	assert_int_equal(w->fatal[2], fence);
	assert_int_equal(w->fatal[3], last);
	world_use(&w->context, b);
	assert_int_equal(client_try_submit(&w->context), D3DDDIERR_DEVICEREMOVED);
	w->expected_fatals = 1;
	finish(w);
}

static void sub_12_a_report_of_an_unsubmitted_fence_stops_the_adapter(void **state)
{
	struct world w;
	D3DKMT_HANDLE a = start_warm(&w, state, NULL);
	struct interrupt i = {.m = w.m};
	uint32_t last;

	queued(&w, a);
	last = fence_of(&w, 1);
	completed(&i, 0, last + 1);
	refused_report(&w, &i, last + 1, last);
}

static void sub_12_a_report_of_another_nodes_fence_stops_the_adapter(void **state)
{
	struct world w;
	D3DKMT_HANDLE a = start_warm(&w, state, NULL);
	struct interrupt i = {.m = w.m};
	struct client_context copy;

	client_context(&w.device, 1, &copy);
	queued(&w, a);
	world_submit_use(&copy, a); /* node 1 has the number between two of node 0 */
	queued(&w, a);
	completed(&i, 0, fence_of(&w, 2));
	refused_report(&w, &i, fence_of(&w, 2), fence_of(&w, 3));
}

static void sub_12_the_fence_of_a_fault_report_is_checked(void **state)
{
	struct world w;
	D3DKMT_HANDLE a = start_warm(&w, state, NULL);
	struct interrupt i = {.m = w.m};

	queued(&w, a);
	faulted(&i, 0, fence_of(&w, 1) + 5);
	refused_report(&w, &i, fence_of(&w, 1) + 5, fence_of(&w, 1));
}

/* ---- submission fails ---- */

static void fail_submit(void **state, bool paging)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	if (!paging) {
		world_submit_use(&w.context, a);
		world_run(&w);
	}
	scripted_fail(w.m, VIDMM_DDI_SUBMIT_COMMAND, STATUS_INVALID_PARAMETER, 1);
	world_submit_use(&w.context, a);
	const DXGKARG_SUBMITCOMMAND *failed =
		&scripted_last(w.m, VIDMM_DDI_SUBMIT_COMMAND)->in.submit;
	assert_int_equal(failed->Flags.Paging, paging);
	world_expect_finding(&w, "SUB-05");
	assert_int_equal(w.fatals, 1);
	assert_int_equal(w.fatal[0], 0x119);
	assert_int_equal(w.fatal[1], 0x2);
	assert_int_equal(w.fatal[2], (uint32_t)STATUS_INVALID_PARAMETER);
	assert_int_equal(w.fatal[3], failed->SubmissionFenceId);
	world_use(&w.context, a);
	assert_int_equal(client_try_submit(&w.context), D3DDDIERR_DEVICEREMOVED);
	assert_int_equal(client_try_lock(&w.device, &a, 0, NULL), D3DDDIERR_DEVICEREMOVED);
	client_idle(&w.client);
	w.expected_fatals = 1;
	world_stop(&w);
}

static void sub_05_a_failed_submit_stops_the_adapter(void **state)
{
	fail_submit(state, false);
}

static void sub_05_a_failed_submit_of_paging_stops_the_adapter(void **state)
{
	fail_submit(state, true);
}

/* ---- faults ---- */

struct two_devices {
	struct world w;
	struct client_device other;
	struct client_context others;
	D3DKMT_HANDLE a, b;
};

static void start_two(struct two_devices *t, void **state)
{
	const struct scripted_allocation spec = {.size_bytes = 64 * KIB,
						 .flags = WORLD_CPU_VISIBLE};

	world_start(&t->w, state, NULL);
	client_open(&t->w.client, &t->other);
	client_context(&t->other, 0, &t->others);
	t->a = world_allocate(&t->w, 64 * KIB, 0);
	t->b = world_allocate_as(&t->other, &spec);
	world_submit_use(&t->w.context, t->a);
	world_submit_use(&t->others, t->b);
	world_run(&t->w);
	t->w.m->settings.ignore_fences = true;
}

static void end_two(struct two_devices *t)
{
	t->w.m->settings.ignore_fences = false;
	t->w.m->settings.complete_at_once = true;
	scripted_complete_all(t->w.m);
	client_context_end(&t->others);
	client_close(&t->other);
	world_stop(&t->w);
}

static bool is_lost(struct client_device *device, D3DKMT_HANDLE allocation)
{
	HRESULT result = client_try_lock(device, &allocation, DONOT_WAIT, NULL);

	if (result == S_OK)
		assert_int_equal(client_unlock(device, allocation), S_OK);
	return result == D3DDDIERR_DEVICEREMOVED;
}

static void a_fault_loses_only_the_device_of_the_packet(void **state)
{
	struct two_devices t;

	start_two(&t, state);
	world_submit_use(&t.w.context, t.a);
	world_submit_use(&t.others, t.b);
	struct interrupt i = {.m = t.w.m};
	scripted_complete(t.w.m, 0, 2);
	faulted(&i, 0, fence_of(&t.w, 2));
	raise_interrupt(&i);
	assert_true(is_lost(&t.w.device, t.a));
	assert_false(is_lost(&t.other, t.b));
	i.count = 0;
	completed(&i, 0, fence_of(&t.w, 3));
	raise_interrupt(&i);
	world_submit_use(&t.others, t.b);
	world_use(&t.w.context, t.a);
	assert_int_equal(client_try_submit(&t.w.context), D3DDDIERR_DEVICEREMOVED);
	end_two(&t);
}

/* One DPC for a batch of reports: completed, faulted, completed. */
static void sub_06_a_fault_between_completions_is_not_lost(void **state)
{
	struct two_devices t;

	start_two(&t, state);
	world_submit_use(&t.others, t.b);
	world_submit_use(&t.w.context, t.a);
	struct interrupt i = {.m = t.w.m};
	scripted_complete(t.w.m, 0, 2);
	completed(&i, 0, fence_of(&t.w, 2));
	faulted(&i, 0, fence_of(&t.w, 3));
	completed(&i, 0, fence_of(&t.w, 3));
	raise_interrupt(&i);
	assert_true(is_lost(&t.w.device, t.a));
	assert_false(is_lost(&t.other, t.b));
	end_two(&t);
}

static void sub_06_two_faults_of_one_batch_lose_both_devices(void **state)
{
	struct two_devices t;

	start_two(&t, state);
	world_submit_use(&t.others, t.b);
	world_submit_use(&t.w.context, t.a);
	struct interrupt i = {.m = t.w.m};
	scripted_complete(t.w.m, 0, 2);
	faulted(&i, 0, fence_of(&t.w, 2));
	faulted(&i, 0, fence_of(&t.w, 3));
	raise_interrupt(&i);
	assert_true(is_lost(&t.w.device, t.a));
	assert_true(is_lost(&t.other, t.b));
	end_two(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(sub_05_a_failed_submit_stops_the_adapter),
		ON_BOTH(sub_05_a_failed_submit_of_paging_stops_the_adapter),
		ON_BOTH(sub_06_a_completion_report_retires_all_earlier_fences),
		ON_BOTH(sub_06_a_fault_between_completions_is_not_lost),
		ON_BOTH(sub_06_two_faults_of_one_batch_lose_both_devices),
		ON_BOTH(sub_07_effects_wait_for_notify_dpc),
		ON_BOTH(sub_12_repeated_completion_reports_are_ignored),
		ON_BOTH(sub_12_a_report_of_an_unsubmitted_fence_stops_the_adapter),
		ON_BOTH(sub_12_a_report_of_another_nodes_fence_stops_the_adapter),
		ON_BOTH(sub_12_the_fence_of_a_fault_report_is_checked),
		ON_BOTH(a_fault_loses_only_the_device_of_the_packet),
	};

	return cmocka_run_group_tests_name("sched fences", tests, NULL, NULL);
}
