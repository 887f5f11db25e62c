/* SPDX-License-Identifier: MIT */
/*
 * Waits and signals in the order of a context's queue, and which contexts they block (SYN-25 to
 * SYN-28, MFN-28 to MFN-34, SUB-28).
 */
#include "queue_world.h"

#include <sys/eventfd.h>
#include <unistd.h>

#define AT_SUBMISSION 0x1u
#define CPU_EVENT     0x2u
#define REWIND        0x4u

static void sub_28_syn_25_syn_26_mfn_29_a_wait_blocks_only_its_own_context(void **state)
{
	struct priority_world p;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a'), *b = queue_lane(&p, 1, 'b');
	struct queue_fence f = queue_fence(a, 0, 0), g = queue_fence(a, 0, 0);
	assert_int_equal(lane_wait(a, f.handle, 1), STATUS_SUCCESS);
	lane_render(a);
	assert_int_equal(lane_signal(a, g.handle, 1), STATUS_SUCCESS);
	lane_render(a);
	lane_render(b);
	lane_render(b);
	queue_assert_order(&p, "bb");
	priority_complete(&p, 2);
	assert_int_equal(*g.value, 0); /* a later signal of that context is blocked too */
	assert_int_equal(queue_cpu_signal(a, f.handle, 1), STATUS_SUCCESS);
	queue_assert_order(&p, "aa");
	assert_int_equal(*g.value, 0);
	priority_complete(&p, 1);
	assert_int_equal(*g.value, 1);
	priority_complete(&p, 1);
	priority_stop(&p);
}

static void mfn_28_sfl_14_sfl_21_a_signal_follows_all_earlier_buffers(void **state)
{
	struct priority_world p;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a');
	/* TopOfPipeline: a buffer that is complete has been fetched. */
	struct queue_fence f = queue_fence(a, 0, 0), top = queue_fence(a, 0x8, 0),
			   packets = queue_fence(a, 0x80, 0);
	assert_int_equal(lane_signal(a, f.handle, 1), STATUS_SUCCESS);
	assert_int_equal(*f.value, 1); /* no packet is before it */
	lane_render(a);
	assert_int_equal(lane_signal(a, f.handle, 2), STATUS_SUCCESS);
	assert_int_equal(lane_signal(a, top.handle, 2), STATUS_SUCCESS);
	lane_render(a);
	assert_int_equal(lane_signal(a, f.handle, 3), STATUS_SUCCESS);
	assert_int_equal(lane_signal(a, top.handle, 3), STATUS_SUCCESS);
	assert_int_equal(lane_signal(a, packets.handle, 7), STATUS_SUCCESS);
	assert_int_equal(*f.value, 1);
	queue_assert_order(&p, "aa");
	/* in the miniport, which has not reported that the GPU fetched it */
	assert_int_equal(*top.value, 0);
	priority_complete(&p, 1);
	assert_int_equal(*f.value, 2);
	assert_int_equal(*top.value, 2);
	assert_int_equal(*packets.value, 0);
	priority_complete(&p, 1);
	assert_int_equal(*f.value, 3);
	assert_int_equal(*top.value, 3);
	assert_int_equal(*packets.value, 7);
	priority_stop(&p);
}

/*
 * With no packet before it, the signal happens in the call. The same call resumes waiting contexts,
 * without another thread.
 */
static void mfn_28_syn_26_a_signal_at_once_resumes_waiting_contexts(void **state)
{
	struct priority_world p;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a'), *b = queue_lane(&p, 1, 'b'),
		    *c = queue_lane(&p, 0, 'c');
	struct queue_fence f = queue_fence(a, 3, 0), g = queue_fence(a, 3, 0);
	D3DKMT_HANDLE f_of_b = queue_fence_for(a, f.handle, b),
		      g_of_b = queue_fence_for(a, g.handle, b);
	assert_int_equal(lane_wait(b, f_of_b, 1), STATUS_SUCCESS);
	assert_int_equal(lane_signal(b, g_of_b, 1), STATUS_SUCCESS);
	lane_render(b);
	assert_int_equal(lane_wait(c, g.handle, 1), STATUS_SUCCESS);
	lane_render(c);
	queue_assert_order(&p, "");
	const UINT64 value = 1;
	const D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU signal = {.hContext = a->context,
								  .ObjectCount = 1,
								  .ObjectHandleArray = &f.handle,
								  .MonitoredFenceValueArray =
									  &value};
	lane_enter(a);
	assert_int_equal(D3DKMTSignalSynchronizationObjectFromGpu(&signal), STATUS_SUCCESS);
	assert_int_equal(*g.value, 1);
	assert_string_equal(priority_order(&p), "bc");
	priority_complete(&p, 2);
	priority_stop(&p);
}

/* Three are queued, two are in the miniport. */
static void syn_27_a_signal_at_submission_does_not_wait_for_the_end(void **state)
{
	struct priority_world p;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a');
	struct queue_fence f = queue_fence(a, 0, 0);
	for (uint32_t i = 1; i <= 3; i++) {
		lane_render(a);
		assert_int_equal(lane_signal_with(a, f.handle, i, AT_SUBMISSION), STATUS_SUCCESS);
	}
	queue_assert_order(&p, "aa");
	assert_int_equal(*f.value, 2);
	priority_complete(&p, 1);
	queue_assert_order(&p, "a");
	assert_int_equal(*f.value, 3);
	priority_complete(&p, 2);
	priority_stop(&p);
}

/* The GPU has two buffers and completes one: the other is still submitted. */
static void syn_27_a_completion_does_not_recall_later_buffers(void **state)
{
	struct priority_world p;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a');
	struct queue_fence f = queue_fence(a, 0, 0);
	lane_render(a);
	lane_render(a);
	queue_assert_order(&p, "aa");
	priority_complete(&p, 1);
	assert_int_equal(lane_signal_with(a, f.handle, 1, AT_SUBMISSION), STATUS_SUCCESS);
	assert_int_equal(*f.value, 1);
	assert_int_equal(lane_signal(a, f.handle, 2), STATUS_SUCCESS);
	assert_int_equal(*f.value, 1);
	priority_complete(&p, 1);
	assert_int_equal(*f.value, 2);
	priority_stop(&p);
}

/* The caller may reuse the arrays of a call when it returns. */
static void mfn_34_values_belong_to_handles_and_are_copied(void **state)
{
	struct priority_world p;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a');
	struct queue_fence f = queue_fence(a, 0, 0), g = queue_fence(a, 0, 0);
	D3DKMT_HANDLE handles[2] = {f.handle, g.handle};
	UINT64 values[2] = {3, 4};
	const D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU wait = {.hContext = a->context,
								 .ObjectCount = 2,
								 .ObjectHandleArray = handles,
								 .MonitoredFenceValueArray =
									 values};
	const D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU signal = {.hContext = a->context,
								  .ObjectCount = 2,
								  .ObjectHandleArray = handles,
								  .MonitoredFenceValueArray =
									  values};
	lane_enter(a);
	assert_int_equal(D3DKMTWaitForSynchronizationObjectFromGpu(&wait), STATUS_SUCCESS);
	lane_render(a);
	values[0] = 30;
	values[1] = 40;
	assert_int_equal(D3DKMTSignalSynchronizationObjectFromGpu(&signal), STATUS_SUCCESS);
	handles[0] = handles[1] = 0;
	values[0] = values[1] = UINT64_MAX;
	assert_int_equal(queue_cpu_signal(a, f.handle, 4), STATUS_SUCCESS);
	queue_assert_order(&p, "");
	assert_int_equal(queue_cpu_signal(a, g.handle, 4), STATUS_SUCCESS);
	queue_assert_order(&p, "a");
	priority_complete(&p, 1);
	assert_int_equal(*f.value, 30);
	assert_int_equal(*g.value, 40);
	priority_stop(&p);
}

/*
 * The signal comes from another process; a thousand waits of each of two contexts are queued before
 * it.
 */
static void mfn_30_waits_may_be_queued_before_their_signals(void **state)
{
	enum { MANY = 1000 };
	struct priority_world p;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a'), *b = queue_lane(&p, 1, 'b');
	struct queue_fence f = queue_fence(a, 3, 0), done = queue_fence(a, 0, 0);
	D3DKMT_HANDLE theirs = queue_fence_for(a, f.handle, b);
	for (uint32_t i = 1; i <= MANY; i++) {
		assert_int_equal(lane_wait(a, f.handle, i), STATUS_SUCCESS);
		assert_int_equal(lane_signal(a, done.handle, i), STATUS_SUCCESS);
	}
	/* Submissions behind a wait never block the caller, whatever their number. */
	for (uint32_t i = 0; i < 50; i++)
		lane_render(a);
	queue_assert_order(&p, "");
	for (uint32_t i = 1; i <= MANY; i += 333) {
		assert_int_equal(lane_signal(b, theirs, i), STATUS_SUCCESS);
		while (*done.value < i)
			vidmm_settle(p.w.client.host);
		assert_int_equal(*done.value, i);
	}
	assert_int_equal(lane_signal(b, theirs, MANY), STATUS_SUCCESS);
	queue_assert_order(&p, "aa");
	priority_stop(&p);
}

static void mfn_31_tdrs_10_a_wait_cycle_blocks_only_its_contexts(void **state)
{
	struct vidmm_tdr_options tdr = timeout_defaults(VIDMM_HOST_SIM);
	struct priority_world p;

	queue_start_with(&p, state, queue_3_0, &tdr);
	struct lane *a = queue_lane(&p, 0, 'a'), *b = queue_lane(&p, 0, 'b'),
		    *c = queue_lane(&p, 1, 'c');
	struct queue_fence f = queue_fence(a, 0, 0), g = queue_fence(a, 0, 0);
	assert_int_equal(lane_wait(a, g.handle, 1), STATUS_SUCCESS);
	lane_render(a);
	assert_int_equal(lane_signal(a, f.handle, 1), STATUS_SUCCESS);
	assert_int_equal(lane_wait(b, f.handle, 1), STATUS_SUCCESS);
	lane_render(b);
	assert_int_equal(lane_signal(b, g.handle, 1), STATUS_SUCCESS);
	lane_render(c);
	priority_complete(&p, 1);
	vidmm_sleep_until_ns(p.w.client.host, vidmm_now_ns(p.w.client.host) + 60 * NS_PER_S);
	lane_render(c);
	queue_assert_order(&p, "cc");
	priority_complete(&p, 1);
	assert_int_equal(queue_cpu_signal(a, g.handle, 1), STATUS_SUCCESS);
	queue_assert_order(&p, "a");
	priority_complete(&p, 1);
	queue_assert_order(&p, "b");
	priority_complete(&p, 1);
	assert_int_equal(*f.value, 1);
	priority_stop(&p);
}

static void mfn_33_syn_22_queued_packets_keep_a_destroyed_fence_alive(void **state)
{
	struct priority_world p;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a'), *b = queue_lane(&p, 0, 'b');
	struct queue_fence f = queue_fence(a, 0, 0), g = queue_fence(a, 0, 0);
	lane_render(a);
	assert_int_equal(lane_signal(a, f.handle, 1), STATUS_SUCCESS);
	assert_int_equal(lane_wait(b, f.handle, 1), STATUS_SUCCESS);
	lane_render(b);
	assert_int_equal(lane_signal(b, g.handle, 1), STATUS_SUCCESS);
	assert_int_equal(queue_destroy(a, f.handle), STATUS_SUCCESS);
	assert_int_equal(lane_wait(b, f.handle, 1), STATUS_INVALID_PARAMETER);
	queue_found(&p, "SYN-22");
	assert_int_equal(lane_signal(b, f.handle, 1), STATUS_INVALID_PARAMETER);
	queue_found(&p, "SYN-22");
	queue_assert_order(&p, "a");
	priority_complete(&p, 1);
	queue_assert_order(&p, "b");
	priority_complete(&p, 1);
	assert_int_equal(*g.value, 1);
	priority_stop(&p);
}

static void mfn_21_mfn_23_mfn_24_queued_lower_values_are_ignored_without_rewind(void **state)
{
	struct priority_world p;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a'), *b = queue_lane(&p, 0, 'b');
	struct queue_fence f = queue_fence(a, 0, 10);
	assert_int_equal(lane_signal(a, f.handle, 5), STATUS_SUCCESS);
	assert_int_equal(*f.value, 10);
	/* it is satisfied and stays satisfied */
	assert_int_equal(lane_wait(b, f.handle, 10), STATUS_SUCCESS);
	assert_int_equal(lane_signal_with(a, f.handle, 5, REWIND), STATUS_SUCCESS);
	assert_int_equal(*f.value, 5);
	lane_render(b);
	queue_assert_order(&p, "b");
	assert_int_equal(lane_wait(b, f.handle, 7), STATUS_SUCCESS);
	lane_render(b);
	queue_assert_order(&p, "");
	assert_int_equal(lane_signal(a, f.handle, 7), STATUS_SUCCESS);
	queue_assert_order(&p, "b");
	/* From the CPU it is complete when the call returns (MFN-21). */
	assert_int_equal(queue_cpu_signal(a, f.handle, 8), STATUS_SUCCESS);
	assert_int_equal(*f.value, 8);
	assert_int_equal(lane_wait(b, f.handle, 8), STATUS_SUCCESS);
	/* There a lower value is an error. */
	assert_int_equal(queue_cpu_signal(a, f.handle, 7), STATUS_INVALID_PARAMETER);
	queue_found(&p, "MFN-23");
	assert_int_equal(*f.value, 8);
	priority_stop(&p);
}

/* ---- several contexts ---- */

static NTSTATUS signal_2(struct lane *const *lanes, uint32_t count, D3DKMT_HANDLE fence,
			 uint64_t value)
{
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2 args = {.hContext = lanes[0]->context,
						    .ObjectCount = 1,
						    .ObjectHandleArray = {fence},
						    .BroadcastContextCount = count - 1,
						    .Fence.FenceValue = value};

	for (uint32_t i = 1; i < count && i <= D3DDDI_MAX_BROADCAST_CONTEXT; i++)
		args.BroadcastContext[i - 1] = lanes[i % 3]->context;
	lane_enter(lanes[0]);
	NTSTATUS status = D3DKMTSignalSynchronizationObject2(&args);
	client_settle(&lanes[0]->world->w.client);
	return status;
}

static void syn_28_syn_29_a_broadcast_signals_once_when_the_last_context_arrives(void **state)
{
	struct priority_world p;

	queue_start(&p, state);
	struct lane *lanes[3] = {queue_lane(&p, 0, 'a'), queue_lane(&p, 0, 'b'),
				 queue_lane(&p, 0, 'c')};
	struct queue_fence f = queue_fence(lanes[0], 0, 0), hold = queue_fence(lanes[0], 0, 0);
	lane_render(lanes[0]);
	assert_int_equal(lane_wait(lanes[1], hold.handle, 1), STATUS_SUCCESS);
	assert_int_equal(signal_2(lanes, 3, f.handle, 1), STATUS_SUCCESS);
	lane_render(lanes[2]); /* it has arrived, and continues */
	queue_assert_order(&p, "ac");
	priority_complete(&p, 2);
	assert_int_equal(*f.value, 0);
	assert_int_equal(queue_cpu_signal(lanes[0], hold.handle, 1), STATUS_SUCCESS);
	while (!*f.value)
		vidmm_settle(p.w.client.host);
	assert_int_equal(*f.value, 1);
	assert_int_equal(signal_2(lanes, 65, f.handle, 2), STATUS_SUCCESS);
	assert_int_equal(*f.value, 2);
	assert_int_equal(signal_2(lanes, 66, f.handle, 3), STATUS_INVALID_PARAMETER);
	queue_found(&p, "SYN-29");
	assert_int_equal(*f.value, 2);
	priority_stop(&p);
}

static NTSTATUS enqueue_event(struct lane *const *lanes, uint32_t count, uint32_t objects,
			      D3DKMT_HANDLE fence, HANDLE event)
{
	D3DKMT_HANDLE contexts[4];
	const D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2 args = {.ObjectCount = objects,
								 .ObjectHandleArray = &fence,
								 .Flags.EnqueueCpuEvent = 1,
								 .BroadcastContextCount = count,
								 .BroadcastContextArray = contexts,
								 .CpuEventHandle = event};

	for (uint32_t i = 0; i < count; i++)
		contexts[i] = lanes[i]->context;
	lane_enter(lanes[0]);
	return D3DKMTSignalSynchronizationObjectFromGpu2(&args);
}

static uint64_t events(int event)
{
	uint64_t count = 0;

	return read(event, &count, sizeof(count)) == (ssize_t)sizeof(count) ? count : 0;
}

static uint32_t descriptors(void)
{
	uint32_t count = 0;

	for (int i = 0; i < 1024; i++)
		count += dup2(i, i) == i;
	return count;
}

static void mfn_32_an_event_is_set_when_all_contexts_have_arrived(void **state)
{
	struct priority_world p;

	queue_start(&p, state);
	struct lane *lanes[2] = {queue_lane(&p, 0, 'a'), queue_lane(&p, 0, 'b')};
	struct queue_fence f = queue_fence(lanes[0], 0, 0);
	int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	HANDLE handle = (HANDLE)(intptr_t)event;
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2 second = {.hContext = lanes[0]->context,
						      .Flags.EnqueueCpuEvent = 1,
						      .CpuEventHandle = handle};
	lane_render(lanes[0]);
	assert_int_equal(lane_wait(lanes[1], f.handle, 1), STATUS_SUCCESS);
	uint32_t before = descriptors();
	assert_int_equal(enqueue_event(lanes, 2, 0, 0, handle), STATUS_SUCCESS);
	assert_int_equal(D3DKMTSignalSynchronizationObject2(&second), STATUS_SUCCESS);
	priority_complete(&p, 1);
	assert_int_equal(events(event), 1); /* that of the first context only */
	assert_int_equal(queue_cpu_signal(lanes[0], f.handle, 1), STATUS_SUCCESS);
	uint64_t more = 0;
	while (!(more = events(event)))
		vidmm_settle(p.w.client.host);
	assert_int_equal(more, 1);
	while (descriptors() > before) /* our descriptor is closed */
		vidmm_settle(p.w.client.host);
	assert_int_equal(enqueue_event(lanes, 2, 1, f.handle, handle), STATUS_INVALID_PARAMETER);
	queue_found(&p, "MFN-32");
	assert_int_equal(enqueue_event(lanes, 1, 0, 0, NULL), STATUS_INVALID_PARAMETER);
	queue_found(&p, "MFN-32");
	int pipes[2];
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(enqueue_event(lanes, 1, 0, 0, (HANDLE)(intptr_t)pipes[0]),
			 STATUS_INVALID_PARAMETER);
	queue_found(&p, "MFN-32");
	close(pipes[0]);
	close(pipes[1]);
	assert_int_equal(descriptors(), before);
	assert_int_equal(events(event), 0);
	close(event);
	priority_stop(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(sub_28_syn_25_syn_26_mfn_29_a_wait_blocks_only_its_own_context),
		ON_BOTH(mfn_28_sfl_14_sfl_21_a_signal_follows_all_earlier_buffers),
		ON_BOTH(mfn_28_syn_26_a_signal_at_once_resumes_waiting_contexts),
		ON_BOTH(syn_27_a_signal_at_submission_does_not_wait_for_the_end),
		ON_BOTH(syn_27_a_completion_does_not_recall_later_buffers),
		ON_BOTH(mfn_34_values_belong_to_handles_and_are_copied),
		ON_BOTH(mfn_30_waits_may_be_queued_before_their_signals),
		ON_SIM(mfn_31_tdrs_10_a_wait_cycle_blocks_only_its_contexts),
		ON_BOTH(mfn_33_syn_22_queued_packets_keep_a_destroyed_fence_alive),
		ON_BOTH(mfn_21_mfn_23_mfn_24_queued_lower_values_are_ignored_without_rewind),
		ON_BOTH(syn_28_syn_29_a_broadcast_signals_once_when_the_last_context_arrives),
		ON_BOTH(mfn_32_an_event_is_set_when_all_contexts_have_arrived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
