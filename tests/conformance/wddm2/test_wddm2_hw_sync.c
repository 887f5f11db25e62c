/* SPDX-License-Identifier: MIT */
/* Waits and signals in hardware queues, in queue order (SYN-34, SYN-35). */
#include "hw_world.h"

#include <string.h>

#define NO_BROADCAST_SIGNAL 0x2u
#define NO_BROADCAST_WAIT   0x4u

static D3DKMT_HANDLE fence_of(D3DKMT_HANDLE device, uint32_t flags, const _Atomic uint64_t **value)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 args = {.hDevice = device};

	args.Info.Type = D3DDDI_MONITORED_FENCE;
	args.Info.Flags.Value = flags;
	assert_int_equal(D3DKMTCreateSynchronizationObject2(&args), STATUS_SUCCESS);
	if (value)
		*value = args.Info.MonitoredFence.FenceValueCPUVirtualAddress;
	return args.hSyncObject;
}

static NTSTATUS wait_in(const struct hw_queue *queue, D3DKMT_HANDLE fence, UINT64 value)
{
	const D3DKMT_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE args = {.hHwQueue = queue->handle,
							       .ObjectCount = 1,
							       .ObjectHandleArray = &fence,
							       .FenceValueArray = &value};

	return D3DKMTSubmitWaitForSyncObjectsToHwQueue(&args);
}

static NTSTATUS signal_in(const D3DKMT_HANDLE *queues, uint32_t count, D3DKMT_HANDLE fence,
			  UINT64 value)
{
	const D3DKMT_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE args = {.BroadcastHwQueueCount = count,
							      .BroadcastHwQueueArray = queues,
							      .ObjectCount = 1,
							      .ObjectHandleArray = &fence,
							      .FenceValueArray = &value};

	return D3DKMTSubmitSignalSyncObjectsToHwQueue(&args);
}

static NTSTATUS signal_by_cpu(D3DKMT_HANDLE device, D3DKMT_HANDLE fence, UINT64 value)
{
	const D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU args = {.hDevice = device,
								.ObjectCount = 1,
								.ObjectHandleArray = &fence,
								.FenceValueArray = &value};

	return D3DKMTSignalSynchronizationObjectFromCpu(&args);
}

static void syn_34_a_wait_blocks_only_its_own_queue(void **state)
{
	struct hw_world h;

	hw_start(&h, state, NULL);
	struct scripted_miniport *m = h.w.m;
	struct hw_queue q = hw_queue(&h, h.context, 0), other = hw_queue(&h, h.context, 0);
	D3DKMT_HANDLE fence = fence_of(h.device, 0, NULL);
	assert_int_equal(hw_submit(&q, 1), STATUS_SUCCESS);
	assert_int_equal(wait_in(&q, fence, 5), STATUS_SUCCESS);
	assert_int_equal(hw_submit(&q, 2), STATUS_SUCCESS);
	assert_int_equal(hw_submit(&other, 1), STATUS_SUCCESS);
	hw_settle(&h);
	assert_int_equal(m->hw_queue[0].count, 1);
	assert_int_equal(m->hw_queue[1].count, 1);
	assert_int_equal(signal_by_cpu(h.device, fence, 4), STATUS_SUCCESS);
	hw_settle(&h);
	assert_int_equal(m->hw_queue[0].count, 1);
	assert_int_equal(signal_by_cpu(h.device, fence, 5), STATUS_SUCCESS);
	hw_settle(&h);
	assert_int_equal(m->hw_queue[0].count, 2);
	/* A value that is reached already does not block. */
	assert_int_equal(wait_in(&q, fence, 5), STATUS_SUCCESS);
	assert_int_equal(hw_submit(&q, 3), STATUS_SUCCESS);
	hw_settle(&h);
	assert_int_equal(m->hw_queue[0].count, 3);
	hw_run(&h);
	hw_stop(&h);
}

static void syn_34_a_signal_comes_after_the_commands_before_it(void **state)
{
	const _Atomic uint64_t *value;
	struct hw_world h;

	hw_start(&h, state, NULL);
	struct hw_queue q = hw_queue(&h, h.context, 0), other = hw_queue(&h, h.context, 0);
	D3DKMT_HANDLE fence = fence_of(h.device, 0, &value);
	assert_int_equal(hw_submit(&q, 1), STATUS_SUCCESS);
	assert_int_equal(signal_in(&q.handle, 1, fence, 9), STATUS_SUCCESS);
	assert_int_equal(wait_in(&other, fence, 9), STATUS_SUCCESS);
	assert_int_equal(hw_submit(&other, 1), STATUS_SUCCESS);
	hw_settle(&h);
	assert_int_equal(*value, 0);
	assert_int_equal(h.w.m->hw_queue[1].count, 0);
	assert_int_equal(scripted_hw_complete(h.w.m, 0, 1), 1);
	hw_settle(&h);
	assert_int_equal(*value, 9);
	assert_int_equal(h.w.m->hw_queue[1].count, 1); /* from one queue to another */
	/* Without earlier commands it signals at once. */
	assert_int_equal(signal_in(&q.handle, 1, fence, 10), STATUS_SUCCESS);
	assert_int_equal(*value, 10);
	hw_run(&h);
	hw_stop(&h);
}

static void syn_34_a_queues_progress_fence_can_be_waited_for(void **state)
{
	struct hw_world h;

	hw_start(&h, state, NULL);
	struct hw_queue q = hw_queue(&h, h.context, 0), other = hw_queue(&h, h.context, 0);
	assert_int_equal(hw_submit(&q, 3), STATUS_SUCCESS);
	assert_int_equal(wait_in(&other, q.fence, 3), STATUS_SUCCESS);
	assert_int_equal(hw_submit(&other, 1), STATUS_SUCCESS);
	assert_int_equal(signal_in(&other.handle, 1, q.fence, 4), STATUS_ACCESS_DENIED);
	world_expect_finding(&h.w, "MFN-35");
	hw_settle(&h);
	assert_int_equal(h.w.m->hw_queue[1].count, 0);
	assert_int_equal(scripted_hw_complete(h.w.m, 0, 1), 1);
	hw_settle(&h);
	assert_int_equal(h.w.m->hw_queue[1].count, 1);
	hw_run(&h);
	hw_stop(&h);
}

static void syn_34_queue_and_object_counts_out_of_range_are_refused(void **state)
{
	D3DKMT_HANDLE queues[65], fences[33];
	UINT64 values[33] = {0};
	struct hw_world h;

	hw_start(&h, state, NULL);
	struct hw_queue q = hw_queue(&h, h.context, 0);
	D3DKMT_HANDLE fence = fence_of(h.device, 0, NULL);
	for (uint32_t i = 0; i < 65; i++)
		queues[i] = q.handle;
	for (uint32_t i = 0; i < 33; i++)
		fences[i] = fence;
	const struct {
		uint32_t queues, objects;
		NTSTATUS status;
	} cases[] = {{0, 1, STATUS_INVALID_PARAMETER},  {1, 0, STATUS_INVALID_PARAMETER},
		     {65, 1, STATUS_INVALID_PARAMETER}, {1, 33, STATUS_INVALID_PARAMETER},
		     {64, 1, STATUS_SUCCESS},           {1, 32, STATUS_SUCCESS}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const D3DKMT_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE signal = {
			.BroadcastHwQueueCount = cases[i].queues,
			.BroadcastHwQueueArray = queues,
			.ObjectCount = cases[i].objects,
			.ObjectHandleArray = fences,
			.FenceValueArray = values};
		const D3DKMT_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE wait = {.hHwQueue = q.handle,
								       .ObjectCount =
									       cases[i].objects,
								       .ObjectHandleArray = fences,
								       .FenceValueArray = values};

		assert_int_equal(D3DKMTSubmitSignalSyncObjectsToHwQueue(&signal), cases[i].status);
		if (cases[i].status != STATUS_SUCCESS)
			assert_true(h.w.client.findings == 1 &&
				    strstr(h.w.client.finding[0], "SYN-34"));
		hw_forget(&h);
		if (cases[i].queues != 1)
			continue;
		assert_int_equal(D3DKMTSubmitWaitForSyncObjectsToHwQueue(&wait), cases[i].status);
		if (cases[i].status != STATUS_SUCCESS)
			world_expect_finding(&h.w, "SYN-34");
	}
	const D3DKMT_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE signal = {.BroadcastHwQueueCount = 1,
								.ObjectCount = 1,
								.ObjectHandleArray = fences,
								.FenceValueArray = values};
	assert_int_equal(D3DKMTSubmitSignalSyncObjectsToHwQueue(&signal), STATUS_INVALID_PARAMETER);
	world_expect_finding(&h.w, "SYN-34");
	hw_run(&h);
	hw_stop(&h);
}

static void syn_34_invalid_queues_and_objects_are_refused(void **state)
{
	struct hw_world h;

	hw_start(&h, state, NULL);
	struct hw_queue q = hw_queue(&h, h.context, 0);
	D3DKMT_HANDLE no_signal = fence_of(h.device, 0x10, NULL); /* NoSignal */
	D3DKMT_HANDLE no_wait = fence_of(h.device, 0x20, NULL);   /* NoWait */
	assert_int_equal(signal_in(&q.handle, 1, no_signal, 1), STATUS_ACCESS_DENIED);
	world_expect_finding(&h.w, "SFL-15");
	assert_int_equal(wait_in(&q, no_wait, 1), STATUS_ACCESS_DENIED);
	world_expect_finding(&h.w, "SFL-16");
	assert_int_equal(wait_in(&q, h.context, 1), STATUS_INVALID_PARAMETER);
	world_expect_finding(&h.w, "SYN-34");
	const struct hw_queue none = {.handle = h.device};
	assert_int_equal(wait_in(&none, no_wait, 1), STATUS_INVALID_PARAMETER);
	world_expect_finding(&h.w, "SYN-23");
	const D3DKMT_HANDLE both[] = {q.handle, h.device};
	assert_int_equal(signal_in(both, 2, no_wait, 1), STATUS_INVALID_PARAMETER);
	world_expect_finding(&h.w, "SYN-23");
	D3DKMT_HANDLE other_device = hw_device(&h);
	struct hw_queue foreign = hw_queue(&h, hw_context(other_device), 0);
	const D3DKMT_HANDLE mixed[] = {q.handle, foreign.handle};
	assert_int_equal(signal_in(mixed, 2, no_wait, 1), STATUS_INVALID_PARAMETER);
	world_expect_finding(&h.w, "SYN-23");
	hw_run(&h);
	hw_stop(&h);
}

static void syn_35_q_70_a_nobroadcastsignal_queue_is_skipped_by_broadcast_signals(void **state)
{
	const _Atomic uint64_t *value;
	struct hw_world h;

	hw_start(&h, state, NULL);
	struct hw_queue a = hw_queue(&h, h.context, 0), b = hw_queue(&h, h.context, 0),
			no_broadcast =
				hw_queue(&h, h.context, NO_BROADCAST_SIGNAL | NO_BROADCAST_WAIT);
	const D3DKMT_HANDLE all[] = {a.handle, no_broadcast.handle, b.handle};
	D3DKMT_HANDLE fence = fence_of(h.device, 0, &value);
	assert_int_equal(hw_submit(&a, 1), STATUS_SUCCESS);
	assert_int_equal(hw_submit(&b, 1), STATUS_SUCCESS);
	assert_int_equal(hw_submit(&no_broadcast, 1), STATUS_SUCCESS);
	assert_int_equal(signal_in(all, 3, fence, 1), STATUS_SUCCESS);
	assert_int_equal(scripted_hw_complete(h.w.m, 0, 1), 1);
	hw_settle(&h);
	assert_int_equal(*value, 0);
	assert_int_equal(scripted_hw_complete(h.w.m, 1, 1), 1);
	hw_settle(&h);
	assert_int_equal(*value, 1); /* the third queue still runs its command */
	/* With one queue it signals and waits like any other; a wait names one queue. */
	assert_int_equal(signal_in(&no_broadcast.handle, 1, fence, 2), STATUS_SUCCESS);
	hw_settle(&h);
	assert_int_equal(*value, 1);
	assert_int_equal(scripted_hw_complete(h.w.m, 2, 1), 1);
	hw_settle(&h);
	assert_int_equal(*value, 2);
	assert_int_equal(wait_in(&no_broadcast, fence, 3), STATUS_SUCCESS);
	assert_int_equal(hw_submit(&no_broadcast, 2), STATUS_SUCCESS);
	hw_settle(&h);
	assert_int_equal(h.w.m->hw_queue[2].count, 0);
	assert_int_equal(signal_by_cpu(h.device, fence, 3), STATUS_SUCCESS);
	hw_run(&h);
	hw_stop(&h);
}

static void q_61_destroying_a_queue_drops_commands_behind_a_wait(void **state)
{
	const _Atomic uint64_t *value;
	struct hw_world h;

	hw_start(&h, state, NULL);
	struct hw_queue q = hw_queue(&h, h.context, 0);
	D3DKMT_HANDLE fence = fence_of(h.device, 0, NULL), last = fence_of(h.device, 0, &value);
	assert_int_equal(wait_in(&q, fence, 5), STATUS_SUCCESS);
	assert_int_equal(hw_submit(&q, 1), STATUS_SUCCESS);
	assert_int_equal(signal_in(&q.handle, 1, last, 1), STATUS_SUCCESS);
	hw_settle(&h);
	hw_destroy_queue(&q);
	assert_int_equal(scripted_count(h.w.m, VIDMM_DDI_SUBMIT_COMMAND_TO_HW_QUEUE), 0);
	assert_int_equal(signal_by_cpu(h.device, fence, 5), STATUS_SUCCESS);
	hw_settle(&h);
	assert_int_equal(*value, 0);
	hw_stop(&h);
}

static void syn_34_waits_and_signals_work_through_umd_callbacks(void **state)
{
	UINT64 one = 1;
	struct hw_world h;

	hw_start(&h, state, NULL);
	const D3DDDI_DEVICECALLBACKS *cb = h.w.device.cb;
	HANDLE device = h.w.device.handle;
	D3DDDICB_CREATEHWCONTEXT context = {.NodeOrdinal = 0};
	assert_int_equal(cb->pfnCreateHwContextCb(device, &context), S_OK);
	D3DDDICB_CREATEHWQUEUE queue = {.hHwContext = context.hHwContext};
	assert_int_equal(cb->pfnCreateHwQueueCb(device, &queue), S_OK);
	D3DDDICB_CREATESYNCHRONIZATIONOBJECT2 fence = {0};
	fence.Info.Type = D3DDDI_MONITORED_FENCE;
	assert_int_equal(cb->pfnCreateSynchronizationObject2Cb(device, &fence), S_OK);
	D3DDDICB_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE wait = {.hHwQueue = queue.hHwQueue,
							   .ObjectCount = 1,
							   .ObjectHandleArray = &fence.hSyncObject,
							   .FenceValueArray = &one};
	D3DDDICB_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE signal = {.BroadcastHwQueueCount = 1,
							    .BroadcastHwQueueArray =
								    &queue.hHwQueue,
							    .ObjectCount = 1,
							    .ObjectHandleArray = &fence.hSyncObject,
							    .FenceValueArray = &one};
	assert_int_equal(cb->pfnSubmitSignalSyncObjectsToHwQueueCb(device, &signal), S_OK);
	assert_int_equal(cb->pfnSubmitWaitForSyncObjectsToHwQueueCb(device, &wait), S_OK);
	signal.BroadcastHwQueueCount = 65;
	assert_int_equal(cb->pfnSubmitSignalSyncObjectsToHwQueueCb(device, &signal), E_INVALIDARG);
	world_expect_finding(&h.w, "SYN-34");
	wait.ObjectCount = 33;
	assert_int_equal(cb->pfnSubmitWaitForSyncObjectsToHwQueueCb(device, &wait), E_INVALIDARG);
	world_expect_finding(&h.w, "SYN-34");
	hw_run(&h);
	const D3DDDICB_DESTROYHWCONTEXT end = {context.hHwContext};
	assert_int_equal(cb->pfnDestroyHwContextCb(device, &end), S_OK);
	hw_stop(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(syn_34_a_wait_blocks_only_its_own_queue),
		ON_BOTH(syn_34_a_signal_comes_after_the_commands_before_it),
		ON_SIM(syn_34_a_queues_progress_fence_can_be_waited_for),
		ON_SIM(syn_34_queue_and_object_counts_out_of_range_are_refused),
		ON_SIM(syn_34_invalid_queues_and_objects_are_refused),
		ON_BOTH(syn_35_q_70_a_nobroadcastsignal_queue_is_skipped_by_broadcast_signals),
		ON_BOTH(q_61_destroying_a_queue_drops_commands_behind_a_wait),
		ON_SIM(syn_34_waits_and_signals_work_through_umd_callbacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
