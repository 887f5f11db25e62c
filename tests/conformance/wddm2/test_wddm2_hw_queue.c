/* SPDX-License-Identifier: MIT */
/*
 * Hardware contexts and queues: valid requests, the order of commands, the progress fence (SUB-27,
 * MFN-37).
 */
#include "hw_world.h"

static void sub_27_commands_complete_in_order_and_set_the_progress_fence(void **state)
{
	struct hw_world h;

	hw_start(&h, state, NULL);
	struct hw_queue q = hw_queue(&h, h.context, 0);
	assert_int_equal(hw_value(&q), 0);
	assert_int_equal(hw_submit(&q, 1), STATUS_SUCCESS);
	assert_int_equal(hw_submit(&q, 2), STATUS_SUCCESS);
	assert_int_equal(hw_submit(&q, 7), STATUS_SUCCESS);
	for (uint32_t i = 0; i < 3; i++) {
		const struct scripted_call *call =
			scripted_nth(h.w.m, VIDMM_DDI_SUBMIT_COMMAND_TO_HW_QUEUE, i);

		assert_int_equal(call->in.submit_to_hw_queue.HwQueueProgressFenceId,
				 i == 2 ? 7 : i + 1);
		assert_int_equal(call->in.submit_to_hw_queue.DmaBufferVirtualAddress,
				 HW_ADDRESS + call->in.submit_to_hw_queue.HwQueueProgressFenceId);
		assert_int_equal(call->in.submit_to_hw_queue.DmaBufferSize, HW_BYTES);
		assert_int_equal(call->in.submit_to_hw_queue.Flags.Value, 0);
		assert_int_equal(call->irql, PASSIVE_LEVEL);
	}
	assert_int_equal(hw_reached(h.device, q.fence, 1), STATUS_TIMEOUT);
	assert_int_equal(scripted_hw_complete(h.w.m, 0, 2), 2);
	assert_int_equal(hw_value(&q), 2);
	assert_int_equal(hw_reached(h.device, q.fence, 2), STATUS_SUCCESS);
	assert_int_equal(hw_reached(h.device, q.fence, 3), STATUS_TIMEOUT);
	assert_int_equal(scripted_hw_complete(h.w.m, 0, 1), 1);
	assert_int_equal(hw_value(&q), 7);
	hw_stop(&h);
}

static void sub_27_mfn_37_an_id_that_does_not_rise_is_refused(void **state)
{
	static const uint64_t bad[] = {0, 3, 5, UINT64_MAX};
	struct hw_world h;

	hw_start(&h, state, NULL);
	struct hw_queue q = hw_queue(&h, h.context, 0), other = hw_queue(&h, h.context, 0);
	assert_int_equal(hw_submit(&q, 5), STATUS_SUCCESS);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(hw_submit(&q, bad[i]), STATUS_INVALID_PARAMETER);
		world_expect_finding(&h.w, "SUB-27");
	}
	assert_int_equal(scripted_count(h.w.m, VIDMM_DDI_SUBMIT_COMMAND_TO_HW_QUEUE), 1);
	/* ids of each queue are independent */
	assert_int_equal(hw_submit(&other, 1), STATUS_SUCCESS);
	assert_int_equal(hw_submit(&q, UINT64_MAX - 1), STATUS_SUCCESS);
	hw_run(&h);
	assert_true(hw_value(&q) == UINT64_MAX - 1);
	hw_stop(&h);
}

static void sub_27_private_data_is_freed_when_the_ddi_returns(void **state)
{
	uint64_t data = 0x1122334455667788u;
	struct hw_world h;

	hw_start(&h, state, NULL);
	struct hw_queue q = hw_queue(&h, h.context, 0);
	assert_int_equal(hw_submit_with(&q, 1, &data, sizeof(data)), STATUS_SUCCESS);
	assert_true(h.w.m->hw_queue[0].last_private == data);
	assert_true(*h.w.m->hw_queue[0].kept_private != data); /* until the memory is reused */
	assert_int_equal(hw_submit_with(&q, 2, &data, VMM_PRIVATE_LIMIT + 1),
			 STATUS_INVALID_PARAMETER);
	hw_forget(&h);
	hw_run(&h);
	hw_stop(&h);
}

static void sub_27_a_fence_value_that_was_never_submitted_is_fatal(void **state)
{
	struct hw_world h;

	hw_start(&h, state, NULL);
	struct hw_queue q = hw_queue(&h, h.context, 0);
	assert_int_equal(hw_submit(&q, 3), STATUS_SUCCESS);
	scripted_hw_store(h.w.m, 0, 4, true);
	world_expect_finding(&h.w, "SUB-27");
	assert_int_equal(h.w.fatals, 1);
	assert_int_equal(h.w.fatal[0], 0x119);
	assert_int_equal(h.w.fatal[2], 4);
	h.w.expected_fatals = 1;
	hw_stop(&h);
}

static void sub_27_a_refused_command_puts_the_device_in_error(void **state)
{
	struct hw_world h;

	hw_start(&h, state, NULL);
	struct hw_queue q = hw_queue(&h, h.context, 0);
	scripted_fail(h.w.m, VIDMM_DDI_SUBMIT_COMMAND_TO_HW_QUEUE, STATUS_INVALID_PARAMETER, 1);
	assert_int_equal(hw_submit(&q, 1), STATUS_SUCCESS); /* it was queued */
	world_expect_finding(&h.w, "SUB-27");
	assert_int_equal(hw_submit(&q, 2), STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE);
	hw_stop(&h);
}

static void with_validation(struct scripted_miniport *m)
{
	hw_setup(m);
	scripted_validate_commands(m);
}

static void sub_25_hardware_queue_commands_are_validated(void **state)
{
	struct hw_world h;
	uint32_t data = 0x11223344;

	hw_start(&h, state, with_validation);
	struct hw_queue q = hw_queue(&h, h.context, 0);
	assert_int_equal(hw_submit(&q, 1), STATUS_SUCCESS);
	assert_int_equal(scripted_count(h.w.m, VIDMM_DDI_VALIDATE_SUBMIT_COMMAND), 0);
	scripted_fail(h.w.m, VIDMM_DDI_VALIDATE_SUBMIT_COMMAND, STATUS_INVALID_USER_BUFFER, 1);
	assert_int_equal(hw_submit_with(&q, 2, &data, sizeof(data)), STATUS_INVALID_USER_BUFFER);
	world_expect_finding(&h.w, "SUB-25");
	assert_int_equal(hw_submit_with(&q, 2, &data, sizeof(data)), STATUS_SUCCESS);
	const DXGKARG_VALIDATESUBMITCOMMAND *asked =
		&scripted_last(h.w.m, VIDMM_DDI_VALIDATE_SUBMIT_COMMAND)->in.validate_command;
	const DXGKARG_SUBMITCOMMANDTOHWQUEUE *got =
		&scripted_last(h.w.m, VIDMM_DDI_SUBMIT_COMMAND_TO_HW_QUEUE)->in.submit_to_hw_queue;
	assert_int_equal(asked->Flags.HardwareQueueSubmission, 1);
	assert_int_equal(asked->ContextCount, 1);
	assert_ptr_equal(asked->Context[0], got->hHwQueue);
	assert_int_equal(asked->HwQueueProgressFenceId, 2);
	assert_int_equal(asked->Commands, HW_ADDRESS + 2);
	assert_int_equal(asked->CommandLength, HW_BYTES);
	assert_int_equal(asked->UmdPrivateDataSize, sizeof(data));
	assert_int_equal(asked->PrivateDriverDataSize, sizeof(data));
	assert_int_equal(scripted_hw_complete(h.w.m, 0, 2), 2);
	hw_stop(&h);
}

static void mfn_37_clients_cannot_signal_or_destroy_the_progress_fence(void **state)
{
	struct hw_world h;

	hw_start(&h, state, NULL);
	struct hw_queue q = hw_queue(&h, h.context, 0);
	const D3DKMT_DESTROYSYNCHRONIZATIONOBJECT end = {.hSyncObject = q.fence};
	const uint64_t value = 9;
	const D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU signal = {.hDevice = h.device,
								  .ObjectCount = 1,
								  .ObjectHandleArray = &q.fence,
								  .FenceValueArray = &value};
	assert_int_equal(D3DKMTSignalSynchronizationObjectFromCpu(&signal), STATUS_ACCESS_DENIED);
	world_expect_finding(&h.w, "MFN-35");
	assert_int_equal(D3DKMTDestroySynchronizationObject(&end), STATUS_INVALID_PARAMETER);
	world_expect_finding(&h.w, "MFN-35");
	assert_int_equal(hw_value(&q), 0);
	hw_destroy_queue(&q);
	assert_int_equal(hw_reached(h.device, q.fence, 1), STATUS_INVALID_PARAMETER);
	hw_forget(&h);
	hw_stop(&h);
}

static void sub_27_commands_in_flight_never_exceed_the_nodes_limit(void **state)
{
	struct hw_world h;

	hw_start(&h, state, hw_two_in_flight);
	struct hw_queue q = hw_queue(&h, h.context, 0), other = hw_queue(&h, h.context, 0);
	for (uint64_t id = 1; id <= 5; id++)
		assert_int_equal(hw_submit(&q, id), STATUS_SUCCESS);
	assert_int_equal(h.w.m->hw_queue[0].count, 2);
	assert_int_equal(hw_submit(&other, 1), STATUS_SUCCESS);
	assert_int_equal(h.w.m->hw_queue[1].count, 1);
	assert_int_equal(scripted_hw_complete(h.w.m, 0, 1), 1);
	hw_settle(&h);
	assert_int_equal(h.w.m->hw_queue[0].count, 2);
	hw_run(&h);
	assert_int_equal(hw_value(&q), 5);
	hw_stop(&h);
}

static void hw_creation_with_invalid_arguments_is_refused(void **state)
{
	struct hw_world h;

	hw_start(&h, state, NULL);
	D3DKMT_CREATEHWCONTEXT context = {.hDevice = h.device, .NodeOrdinal = 2};
	assert_int_equal(D3DKMTCreateHwContext(&context), STATUS_INVALID_PARAMETER);
	world_expect_finding(&h.w, "SCH-07");
	context = (D3DKMT_CREATEHWCONTEXT){.hDevice = h.device, .NodeOrdinal = 1};
	/* the node takes no hardware contexts */
	assert_int_equal(D3DKMTCreateHwContext(&context), STATUS_NOT_SUPPORTED);
	context = (D3DKMT_CREATEHWCONTEXT){.hDevice = h.device, .Flags.Value = 1};
	assert_int_equal(D3DKMTCreateHwContext(&context), STATUS_INVALID_PARAMETER);
	world_expect_finding(&h.w, "Q-60");
	assert_int_equal(context.hHwContext, 0);
	D3DKMT_CREATEHWQUEUE queue = {.hHwContext = h.context, .Flags.Value = 0x10};
	assert_int_equal(D3DKMTCreateHwQueue(&queue), STATUS_INVALID_PARAMETER);
	world_expect_finding(&h.w, "Q-60");
	queue = (D3DKMT_CREATEHWQUEUE){.hHwContext = h.device};
	assert_int_equal(D3DKMTCreateHwQueue(&queue), STATUS_INVALID_PARAMETER);
	world_expect_finding(&h.w, "SYN-23");
	assert_int_equal(scripted_count(h.w.m, VIDMM_DDI_CREATE_HW_QUEUE), 0);
	queue = (D3DKMT_CREATEHWQUEUE){.hHwContext = h.context, .Flags.Value = 0xF};
	assert_int_equal(D3DKMTCreateHwQueue(&queue), STATUS_SUCCESS);
	assert_int_equal(
		scripted_last(h.w.m, VIDMM_DDI_CREATE_HW_QUEUE)->in.create_hw_queue.Flags.Value,
		0xF);
	assert_non_null(queue.HwQueueProgressFenceCPUVirtualAddress);
	assert_int_equal(queue.HwQueueProgressFenceGPUVirtualAddress, 0);
	assert_int_equal(D3DKMTCreateHwQueue(NULL), STATUS_INVALID_PARAMETER);
	hw_forget(&h);
	hw_stop(&h);
}

static void hw_creation_refused_by_the_miniport_leaves_nothing(void **state)
{
	struct hw_world h;

	hw_start(&h, state, NULL);
	D3DKMT_CREATEHWCONTEXT context = {.hDevice = h.device, .hHwContext = 0x55};
	scripted_fail(h.w.m, VIDMM_DDI_CREATE_HW_CONTEXT, STATUS_NO_MEMORY, 1);
	assert_int_equal(D3DKMTCreateHwContext(&context), STATUS_NO_MEMORY);
	assert_int_equal(context.hHwContext, 0x55);
	D3DKMT_CREATEHWQUEUE queue = {.hHwContext = h.context, .hHwQueue = 0x55};
	scripted_fail(h.w.m, VIDMM_DDI_CREATE_HW_QUEUE, STATUS_UNSUCCESSFUL, 1);
	assert_int_equal(D3DKMTCreateHwQueue(&queue), STATUS_INVALID_PARAMETER);
	world_expect_finding(&h.w, "SCH-10");
	assert_int_equal(queue.hHwQueue, 0x55);
	hw_stop(&h);
}

/* The private data of a queue, before and after its creation. */
static NTSTATUS create_with_data(struct hw_world *h, UCHAR data[4])
{
	D3DKMT_CREATEHWQUEUE args = {
		.hHwContext = h->context, .pPrivateDriverData = data, .PrivateDriverDataSize = 4};

	return D3DKMTCreateHwQueue(&args);
}

static void q_211_a_queue_returns_private_data(void **state)
{
	struct hw_world h;
	UCHAR data[4] = {1, 2, 3, 4};

	hw_start(&h, state, NULL);
	h.w.m->settings.hw_answers = true;
	assert_int_equal(create_with_data(&h, data), STATUS_SUCCESS);
	assert_memory_equal(data, ((UCHAR[]){2, 3, 4, 5}), 4);
	D3DDDICB_CREATEHWCONTEXT context = {.NodeOrdinal = 0};
	const D3DDDI_DEVICECALLBACKS *cb = h.w.device.cb;
	assert_int_equal(cb->pfnCreateHwContextCb(h.w.device.handle, &context), S_OK);
	D3DDDICB_CREATEHWQUEUE queue = {.hHwContext = context.hHwContext,
					.pPrivateDriverData = data,
					.PrivateDriverDataSize = 3};
	assert_int_equal(cb->pfnCreateHwQueueCb(h.w.device.handle, &queue), S_OK);
	assert_memory_equal(data, ((UCHAR[]){3, 4, 5, 5}), 4);
	const D3DDDICB_DESTROYHWCONTEXT end = {context.hHwContext};
	assert_int_equal(cb->pfnDestroyHwContextCb(h.w.device.handle, &end), S_OK);
	hw_stop(&h);
}

static void q_211_a_refused_queue_returns_no_private_data(void **state)
{
	struct hw_world h;
	UCHAR data[4] = {1, 2, 3, 4};

	hw_start(&h, state, NULL);
	h.w.m->settings.hw_answers = true;
	scripted_fail(h.w.m, VIDMM_DDI_CREATE_HW_QUEUE, STATUS_NO_MEMORY, 1);
	assert_int_equal(create_with_data(&h, data), STATUS_NO_MEMORY);
	assert_memory_equal(data, ((UCHAR[]){1, 2, 3, 4}), 4);
	hw_stop(&h);
}

static void sub_29_destroying_a_queue_waits_for_its_commands(void **state)
{
	struct hw_world h;

	hw_start(&h, state, NULL);
	struct hw_queue q = hw_queue(&h, h.context, 0);
	assert_int_equal(hw_submit(&q, 1), STATUS_SUCCESS);
	hw_destroy_and_complete(&h, &q, 0);
	assert_int_equal(scripted_count(h.w.m, VIDMM_DDI_DESTROY_HW_QUEUE), 1);
	const D3DKMT_DESTROYHWQUEUE again = {.hHwQueue = q.handle};
	assert_int_equal(D3DKMTDestroyHwQueue(&again), STATUS_INVALID_PARAMETER);
	world_expect_finding(&h.w, "SYN-23");
	const D3DKMT_DESTROYHWCONTEXT end = {.hHwContext = h.context};
	(void)hw_queue(&h, h.context, 0);
	/* together with its queue */
	assert_int_equal(D3DKMTDestroyHwContext(&end), STATUS_SUCCESS);
	assert_int_equal(scripted_count(h.w.m, VIDMM_DDI_DESTROY_HW_QUEUE), 2);
	assert_int_equal(scripted_count(h.w.m, VIDMM_DDI_DESTROY_HW_CONTEXT), 1);
	assert_int_equal(D3DKMTDestroyHwContext(&end), STATUS_INVALID_PARAMETER);
	world_expect_finding(&h.w, "SYN-23");
	hw_stop(&h);
}

static void hw_queues_work_through_umd_callbacks(void **state)
{
	struct hw_world h;

	hw_start(&h, state, NULL);
	const D3DDDI_DEVICECALLBACKS *cb = h.w.device.cb;
	D3DDDICB_CREATEHWCONTEXT context = {.NodeOrdinal = 0};
	assert_int_equal(cb->pfnCreateHwContextCb(h.w.device.handle, &context), S_OK);
	D3DDDICB_CREATEHWQUEUE queue = {.hHwContext = context.hHwContext};
	assert_int_equal(cb->pfnCreateHwQueueCb(h.w.device.handle, &queue), S_OK);
	D3DDDICB_SUBMITCOMMANDTOHWQUEUE submit = {.hHwQueue = queue.hHwQueue,
						  .HwQueueProgressFenceId = 4,
						  .Commands = HW_ADDRESS,
						  .CommandLength = HW_BYTES};
	assert_int_equal(cb->pfnSubmitCommandToHwQueueCb(h.w.device.handle, &submit), S_OK);
	assert_int_equal(cb->pfnSubmitCommandToHwQueueCb(h.w.device.handle, &submit), E_INVALIDARG);
	world_expect_finding(&h.w, "SUB-27");
	assert_int_equal(scripted_hw_complete(h.w.m, 0, 1), 1);
	assert_true(*(const volatile UINT64 *)queue.HwQueueProgressFenceCPUVirtualAddress == 4);
	const D3DDDICB_DESTROYHWQUEUE end = {queue.hHwQueue};
	assert_int_equal(cb->pfnDestroyHwQueueCb(h.w.device.handle, &end), S_OK);
	const D3DDDICB_DESTROYHWCONTEXT end_context = {context.hHwContext};
	assert_int_equal(cb->pfnDestroyHwContextCb(h.w.device.handle, &end_context), S_OK);
	assert_int_equal(cb->pfnDestroyHwContextCb(h.w.device.handle, &end_context), E_INVALIDARG);
	world_expect_finding(&h.w, "SYN-23");
	hw_stop(&h);
}

/* Each event of a fence counts the packets of its queue, also if one DPC reads several fences. */
static void sub_27_fence_events_count_the_packets_of_one_queue(void **state)
{
	struct vidmm_counter before, after;
	struct hw_world h;

	hw_start(&h, state, NULL);
	struct hw_queue first = hw_queue(&h, h.context, 0), second = hw_queue(&h, h.context, 0);
	assert_int_equal(hw_submit(&first, 1), STATUS_SUCCESS);
	assert_int_equal(hw_submit(&first, 2), STATUS_SUCCESS);
	assert_int_equal(hw_submit(&second, 1), STATUS_SUCCESS);
	hw_settle(&h);
	vidmm_event_counter(h.w.client.host, VIDMM_EVENT_FENCE, &before);
	h.w.m->settings.hw_ignore_fences = true; /* no interrupt for the first queue */
	assert_int_equal(scripted_hw_complete(h.w.m, 0, 2), 2);
	h.w.m->settings.hw_ignore_fences = false;
	assert_int_equal(scripted_hw_complete(h.w.m, 1, 1), 1);
	hw_settle(&h);
	vidmm_event_counter(h.w.client.host, VIDMM_EVENT_FENCE, &after);
	assert_int_equal(after.count - before.count, 2);
	assert_int_equal(after.sum[2] - before.sum[2], 3);
	hw_stop(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(sub_27_commands_complete_in_order_and_set_the_progress_fence),
		ON_BOTH(sub_27_mfn_37_an_id_that_does_not_rise_is_refused),
		ON_BOTH(sub_27_private_data_is_freed_when_the_ddi_returns),
		ON_SIM(sub_27_a_fence_value_that_was_never_submitted_is_fatal),
		ON_SIM(sub_27_a_refused_command_puts_the_device_in_error),
		ON_SIM(sub_25_hardware_queue_commands_are_validated),
		ON_BOTH(mfn_37_clients_cannot_signal_or_destroy_the_progress_fence),
		ON_SIM(sub_27_commands_in_flight_never_exceed_the_nodes_limit),
		ON_BOTH(hw_creation_with_invalid_arguments_is_refused),
		ON_SIM(hw_creation_refused_by_the_miniport_leaves_nothing),
		ON_BOTH(q_211_a_queue_returns_private_data),
		ON_SIM(q_211_a_refused_queue_returns_no_private_data),
		ON_SIM(sub_29_destroying_a_queue_waits_for_its_commands),
		ON_BOTH(hw_queues_work_through_umd_callbacks),
		ON_SIM(sub_27_fence_events_count_the_packets_of_one_queue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
