/* SPDX-License-Identifier: MIT */
/* Presents on hardware queues (PRS-10, Q-250, Q-251). */
#include "hw_world.h"

#include <string.h>

#define BYTES (64 * KIB)

/* The world of hardware queues with GPU virtual addresses; a source and a destination of blits. */
struct show {
	struct hw_world h;
	struct hw_queue q;
	D3DKMT_CREATEPAGINGQUEUE paging;
	D3DKMT_HANDLE from, to;
};

static void with_addresses(struct scripted_miniport *m)
{
	hw_setup(m);
	scripted_mmu(m, 3, 1);
	m->settings.complete_at_once = m->settings.hw_by_hand = true;
}

static void with_private_data(struct scripted_miniport *m)
{
	with_addresses(m);
	m->settings.context.DmaBufferPrivateDataSize = 16;
}

static void without_the_ddi(struct scripted_miniport *m)
{
	with_addresses(m);
	m->settings.table.DxgkDdiPresentToHwQueue = NULL;
}

static void one_at_a_time(struct scripted_miniport *m)
{
	with_addresses(m);
	m->settings.hw_node_flags[0] |= 1u << 16; /* MaxInFlightHwQueueBuffers */
}

static D3DKMT_HANDLE allocate(const struct show *b)
{
	struct scripted_allocation spec = {.size_bytes = BYTES,
					   .flags = WORLD_CPU_VISIBLE,
					   .read_set = WORLD_MEMORY,
					   .write_set = WORLD_MEMORY};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec)};
	D3DKMT_CREATEALLOCATION args = {
		.hDevice = b->h.device, .NumAllocations = 1, .pAllocationInfo = &info};

	assert_int_equal(D3DKMTCreateAllocation(&args), STATUS_SUCCESS);
	return info.hAllocation;
}

static void make_resident(struct show *b, const D3DKMT_HANDLE *list, uint32_t count)
{
	D3DDDI_MAKERESIDENT args = {.hPagingQueue = b->paging.hPagingQueue,
				    .NumAllocations = count,
				    .AllocationList = list};
	NTSTATUS status = D3DKMTMakeResident(&args);

	assert_true(status == STATUS_SUCCESS || status == STATUS_PENDING);
	hw_run(&b->h);
}

static void begin(struct show *b, void **state, world_setup *setup)
{
	*b = (struct show){0};
	hw_start(&b->h, state, setup ? setup : with_addresses);
	b->q = hw_queue(&b->h, b->h.context, 0);
	b->paging.hDevice = b->h.device;
	assert_int_equal(D3DKMTCreatePagingQueue(&b->paging), STATUS_SUCCESS);
	b->from = allocate(b);
	b->to = allocate(b);
	make_resident(b, (D3DKMT_HANDLE[]){b->from, b->to}, 2);
}

static D3DKMT_SUBMITPRESENTBLTTOHWQUEUE blt(const struct show *b, uint64_t id)
{
	D3DKMT_SUBMITPRESENTBLTTOHWQUEUE args = {.hHwQueue = b->q.handle,
						 .HwQueueProgressFenceId = id};

	args.PrivatePresentData.hSource = b->from;
	args.PrivatePresentData.hDestination = b->to;
	args.PrivatePresentData.Flags.Blt = 1;
	return args;
}

static NTSTATUS present(const struct show *b, uint64_t id)
{
	const D3DKMT_SUBMITPRESENTBLTTOHWQUEUE args = blt(b, id);

	return D3DKMTSubmitPresentBltToHwQueue(&args);
}

/* STATUS_GRAPHICS_ALLOCATION_BUSY instead of waiting for the limit. */
static NTSTATUS present_now(const struct show *b, uint64_t id)
{
	D3DKMT_SUBMITPRESENTBLTTOHWQUEUE args = blt(b, id);

	args.PrivatePresentData.Flags.FlipDoNotWait = 1;
	return D3DKMTSubmitPresentBltToHwQueue(&args);
}

static void never_called(const struct show *b)
{
	assert_int_equal(scripted_count(b->h.w.m, VIDMM_DDI_PRESENT_TO_HW_QUEUE), 0);
	assert_int_equal(scripted_count(b->h.w.m, VIDMM_DDI_SUBMIT_COMMAND_TO_HW_QUEUE), 0);
}

static void prs_10_a_blt_becomes_a_command_of_the_queue(void **state)
{
	struct show b;

	begin(&b, state, NULL);
	assert_int_equal(present(&b, 3), STATUS_SUCCESS);
	hw_settle(&b.h);
	const struct scripted_call *call = scripted_last(b.h.w.m, VIDMM_DDI_PRESENT_TO_HW_QUEUE);
	const DXGKARG_PRESENT *got = &call->in.present;
	assert_ptr_equal(call->handle, &b.h.w.m->hw_queue[0]);
	assert_int_equal(call->irql, PASSIVE_LEVEL);
	assert_int_equal(got->Flags.Value, 1);
	assert_int_not_equal(got->DmaBufferGpuVirtualAddress, 0);
	assert_int_equal(got->DmaSize, b.h.w.m->settings.context.DmaBufferSize);
	assert_int_equal(got->PatchLocationListOutSize, 0);
	assert_int_equal(got->NumSrcAllocations, 1);
	assert_int_equal(got->NumDstAllocations, 1);
	assert_int_equal(got->SubRectCnt, 1);
	assert_null(call->allocations[0].hDeviceSpecificAllocation);
	for (uint32_t i = 1; i < 3; i++) {
		assert_int_equal(call->allocations[i].SegmentId, 0);
		assert_int_not_equal(call->allocations[i].VirtualAddress, 0);
		assert_int_equal(call->allocations[i].WriteOperation, i == 2);
	}
	const DXGKARG_SUBMITCOMMANDTOHWQUEUE *submit =
		&scripted_last(b.h.w.m, VIDMM_DDI_SUBMIT_COMMAND_TO_HW_QUEUE)
			 ->in.submit_to_hw_queue;
	assert_int_equal(submit->HwQueueProgressFenceId, 3);
	assert_int_equal(submit->DmaBufferVirtualAddress, got->DmaBufferGpuVirtualAddress);
	assert_int_equal(submit->DmaBufferSize, 2 * sizeof(struct scripted_command));
	assert_int_equal(submit->Flags.Present, 1);
	assert_int_equal(hw_reached(b.h.device, b.q.fence, 3), STATUS_TIMEOUT);
	assert_int_equal(scripted_hw_complete(b.h.w.m, 0, 1), 1);
	assert_int_equal(hw_reached(b.h.device, b.q.fence, 3), STATUS_SUCCESS);
	hw_stop(&b.h);
}

/* Commands of the client and presents keep their order. Buffers are used again. */
static void prs_10_presents_and_commands_share_the_queue(void **state)
{
	struct show b;
	uint64_t first;

	begin(&b, state, one_at_a_time);
	assert_int_equal(hw_submit(&b.q, 1), STATUS_SUCCESS);
	assert_int_equal(present(&b, 2), STATUS_SUCCESS);
	assert_int_equal(hw_submit(&b.q, 3), STATUS_SUCCESS);
	hw_run(&b.h);
	assert_int_equal(hw_value(&b.q), 3);
	first = scripted_last(b.h.w.m, VIDMM_DDI_PRESENT_TO_HW_QUEUE)
			->in.present.DmaBufferGpuVirtualAddress;
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(scripted_nth(b.h.w.m, VIDMM_DDI_SUBMIT_COMMAND_TO_HW_QUEUE, i)
					 ->in.submit_to_hw_queue.Flags.Present,
				 i == 1);
	assert_int_equal(present(&b, 4), STATUS_SUCCESS);
	assert_int_equal(scripted_last(b.h.w.m, VIDMM_DDI_PRESENT_TO_HW_QUEUE)
				 ->in.present.DmaBufferGpuVirtualAddress,
			 first);
	hw_run(&b.h);
	assert_int_equal(hw_value(&b.q), 4);
	hw_stop(&b.h);
}

static void q_250_without_an_id_a_present_takes_the_next(void **state)
{
	struct show b;

	begin(&b, state, NULL);
	D3DKMT_SUBMITPRESENTTOHWQUEUE args = {.hHwQueues = &b.q.handle};
	args.PrivatePresentData = blt(&b, 0).PrivatePresentData;
	assert_int_equal(hw_submit(&b.q, 7), STATUS_SUCCESS);
	assert_int_equal(D3DKMTSubmitPresentToHwQueue(&args), STATUS_SUCCESS);
	hw_run(&b.h);
	assert_int_equal(hw_value(&b.q), 8);
	assert_int_equal(hw_submit(&b.q, 8), STATUS_INVALID_PARAMETER);
	world_expect_finding(&b.h.w, "SUB-27");
	args.hHwQueues = NULL;
	assert_int_equal(D3DKMTSubmitPresentToHwQueue(&args), STATUS_INVALID_PARAMETER);
	world_expect_finding(&b.h.w, "HND-11");
	assert_int_equal(scripted_count(b.h.w.m, VIDMM_DDI_PRESENT_TO_HW_QUEUE), 1);
	hw_stop(&b.h);
}

static void prs_10_only_blits_are_presented(void **state)
{
	struct show b;

	begin(&b, state, NULL);
	D3DKMT_SUBMITPRESENTBLTTOHWQUEUE args = blt(&b, 1);
	args.PrivatePresentData.Flags.Value = 0;
	args.PrivatePresentData.Flags.ColorFill = 1;
	args.PrivatePresentData.hSource = 0;
	assert_int_equal(D3DKMTSubmitPresentBltToHwQueue(&args), STATUS_INVALID_PARAMETER);
	world_expect_finding(&b.h.w, "PRS-10");
	args.PrivatePresentData.Flags.Value = 0;
	args.PrivatePresentData.Flags.Flip = 1;
	args.PrivatePresentData.hSource = b.from;
	args.PrivatePresentData.hDestination = 0;
	assert_int_equal(D3DKMTSubmitPresentBltToHwQueue(&args), STATUS_INVALID_PARAMETER);
	world_expect_finding(&b.h.w, "PRS-10");
	args = blt(&b, 1);
	args.PrivatePresentData.BroadcastContextCount = 1;
	assert_int_equal(D3DKMTSubmitPresentBltToHwQueue(&args), STATUS_INVALID_PARAMETER);
	world_expect_finding(&b.h.w, "DMA-10");
	args = blt(&b, 1);
	args.PrivatePresentData.hDestination = 0;
	assert_int_equal(D3DKMTSubmitPresentBltToHwQueue(&args), STATUS_INVALID_PARAMETER);
	world_expect_finding(&b.h.w, "PRS-01");
	never_called(&b);
	assert_int_equal(present(&b, 1), STATUS_SUCCESS);
	hw_stop(&b.h);
}

static void prs_10_sub_27_the_id_of_a_present_must_rise(void **state)
{
	struct show b;

	begin(&b, state, NULL);
	assert_int_equal(present(&b, 0), STATUS_INVALID_PARAMETER);
	world_expect_finding(&b.h.w, "SUB-27");
	assert_int_equal(present(&b, UINT64_MAX), STATUS_INVALID_PARAMETER);
	world_expect_finding(&b.h.w, "SUB-27");
	never_called(&b);
	assert_int_equal(present(&b, 4), STATUS_SUCCESS);
	assert_int_equal(present(&b, 4), STATUS_INVALID_PARAMETER);
	world_expect_finding(&b.h.w, "SUB-27");
	assert_int_equal(scripted_count(b.h.w.m, VIDMM_DDI_PRESENT_TO_HW_QUEUE), 1);
	hw_stop(&b.h);
}

static void prs_10_a_queue_or_allocation_that_is_none_is_refused(void **state)
{
	struct show b;

	begin(&b, state, NULL);
	D3DKMT_SUBMITPRESENTBLTTOHWQUEUE args = blt(&b, 1);
	args.hHwQueue = b.h.context;
	assert_int_equal(D3DKMTSubmitPresentBltToHwQueue(&args), STATUS_INVALID_PARAMETER);
	world_expect_finding(&b.h.w, "SYN-23");
	args = blt(&b, 1);
	args.PrivatePresentData.hSource = b.q.handle;
	assert_true(D3DKMTSubmitPresentBltToHwQueue(&args) != STATUS_SUCCESS);
	world_expect_finding(&b.h.w, "DMA-16");
	never_called(&b);
	assert_int_equal(present(&b, 1), STATUS_SUCCESS);
	hw_stop(&b.h);
}

static void prs_10_dma_26_source_and_destination_are_on_the_residency_list(void **state)
{
	struct show b;

	begin(&b, state, NULL);
	b.from = allocate(&b);
	assert_int_equal(present(&b, 1), STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE);
	world_expect_finding(&b.h.w, "DMA-26");
	never_called(&b);
	assert_true(present(&b, 2) != STATUS_SUCCESS); /* the device is in error */
	hw_forget(&b.h);
	hw_stop(&b.h);
}

static void prs_10_what_is_not_built_says_so(void **state)
{
	world_setup *const setups[] = {without_the_ddi, hw_setup};

	for (size_t i = 0; i < sizeof(setups) / sizeof(setups[0]); i++) {
		struct show b;

		begin(&b, state, setups[i]);
		assert_int_equal(present(&b, 1), STATUS_NOT_SUPPORTED);
		never_called(&b);
		assert_int_equal(hw_submit(&b.q, 1), STATUS_SUCCESS);
		hw_stop(&b.h);
	}
}

static void prs_10_without_a_dma_buffer_size_presents_are_refused(void **state)
{
	struct show b;

	begin(&b, state, NULL);
	b.h.w.m->settings.context.DmaBufferSize = 0;
	b.q = hw_queue(&b.h, hw_context(b.h.device), 0);
	assert_int_equal(present(&b, 1), STATUS_INVALID_PARAMETER);
	world_expect_finding(&b.h.w, "PRS-10");
	never_called(&b);
	hw_stop(&b.h);
}

static void q_251_a_present_that_needs_a_second_buffer_is_not_built(void **state)
{
	struct show b;

	begin(&b, state, NULL);
	b.h.w.m->settings.present_passes = 2;
	assert_int_equal(present(&b, 1), STATUS_NOT_SUPPORTED);
	assert_int_equal(scripted_count(b.h.w.m, VIDMM_DDI_SUBMIT_COMMAND_TO_HW_QUEUE), 0);
	b.h.w.m->settings.present_passes = 1;
	assert_int_equal(present(&b, 1), STATUS_SUCCESS); /* the id is still free */
	hw_run(&b.h);
	assert_int_equal(hw_value(&b.q), 1);
	hw_stop(&b.h);
}

static void prs_10_dma_37_failures_of_the_miniport_queue_nothing(void **state)
{
	struct show b;

	begin(&b, state, NULL);
	scripted_fail(b.h.w.m, VIDMM_DDI_PRESENT_TO_HW_QUEUE, STATUS_NO_MEMORY, 1);
	assert_int_equal(present(&b, 1), STATUS_NO_MEMORY);
	assert_int_equal(scripted_count(b.h.w.m, VIDMM_DDI_SUBMIT_COMMAND_TO_HW_QUEUE), 0);
	assert_int_equal(present(&b, 1), STATUS_SUCCESS);
	hw_run(&b.h);
	scripted_fail(b.h.w.m, VIDMM_DDI_PRESENT_TO_HW_QUEUE,
		      STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE, 1);
	assert_int_equal(present(&b, 2), STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE);
	assert_true(hw_submit(&b.q, 2) != STATUS_SUCCESS); /* the device is in error */
	hw_forget(&b.h);
	hw_stop(&b.h);
}

/* SUB-17: three presents, wherever they are; one that completes or is dropped ends to count. */
static void prs_10_sub_17_presents_count_until_they_are_complete(void **state)
{
	struct show b;

	begin(&b, state, one_at_a_time);
	for (uint64_t id = 1; id <= 3; id++)
		assert_int_equal(present_now(&b, id), STATUS_SUCCESS);
	assert_int_equal(present_now(&b, 4), STATUS_GRAPHICS_ALLOCATION_BUSY);
	assert_int_equal(hw_submit(&b.q, 4), STATUS_SUCCESS); /* commands do not count */
	assert_int_equal(scripted_hw_complete(b.h.w.m, 0, 1), 1);
	hw_settle(&b.h);
	assert_int_equal(present_now(&b, 5), STATUS_SUCCESS);
	assert_int_equal(present_now(&b, 6), STATUS_GRAPHICS_ALLOCATION_BUSY);
	hw_run(&b.h);
	assert_int_equal(hw_value(&b.q), 5);
	assert_int_equal(present_now(&b, 6), STATUS_SUCCESS);
	hw_stop(&b.h);
}

static void queue_wait(const struct show *b, D3DKMT_HANDLE fence)
{
	const uint64_t value = 1;
	const D3DKMT_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE args = {.hHwQueue = b->q.handle,
							       .ObjectCount = 1,
							       .ObjectHandleArray = &fence,
							       .FenceValueArray = &value};

	assert_int_equal(D3DKMTSubmitWaitForSyncObjectsToHwQueue(&args), STATUS_SUCCESS);
}

/* the queue ends with presents behind a wait; they are dropped and no longer count. */
static void prs_10_q_61_presents_behind_a_wait_end_with_their_queue(void **state)
{
	struct show b;
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 fence = {0};

	begin(&b, state, NULL);
	fence.hDevice = b.h.device;
	fence.Info.Type = D3DDDI_MONITORED_FENCE;
	assert_int_equal(D3DKMTCreateSynchronizationObject2(&fence), STATUS_SUCCESS);
	queue_wait(&b, fence.hSyncObject);
	for (uint64_t id = 1; id <= 3; id++)
		assert_int_equal(present_now(&b, id), STATUS_SUCCESS);
	assert_int_equal(present_now(&b, 4), STATUS_GRAPHICS_ALLOCATION_BUSY);
	assert_int_equal(scripted_count(b.h.w.m, VIDMM_DDI_SUBMIT_COMMAND_TO_HW_QUEUE), 0);
	hw_destroy_queue(&b.q);
	b.q = hw_queue(&b.h, b.h.context, 0);
	for (uint64_t id = 1; id <= 3; id++)
		assert_int_equal(present_now(&b, id), STATUS_SUCCESS);
	hw_run(&b.h);
	assert_int_equal(hw_value(&b.q), 3);
	hw_stop(&b.h);
}

/* ---- the callbacks of a user-mode driver ---- */

/* The same world, but a driver with hardware queues uses it through its callbacks. */
struct driver {
	struct hw_world h;
	const D3DDDI_DEVICECALLBACKS *cb;
	HANDLE device, context, queues[2];
	const _Atomic uint64_t *value; /* of the progress fence of queue 0 */
	D3DKMT_HANDLE from, to;
};

static void begin_driver(struct driver *d, void **state)
{
	const struct scripted_allocation spec = {.size_bytes = BYTES,
						 .flags = WORLD_CPU_VISIBLE,
						 .read_set = WORLD_MEMORY,
						 .write_set = WORLD_MEMORY};
	D3DDDICB_CREATEHWCONTEXT context = {0};
	D3DKMT_HANDLE list[2];

	*d = (struct driver){0};
	hw_start(&d->h, state, with_addresses);
	d->cb = d->h.w.device.cb;
	d->device = d->h.w.device.handle;
	assert_int_equal(d->cb->pfnCreateHwContextCb(d->device, &context), S_OK);
	d->context = context.hHwContext;
	for (uint32_t i = 0; i < 2; i++) {
		D3DDDICB_CREATEHWQUEUE queue = {.hHwContext = context.hHwContext};

		assert_int_equal(d->cb->pfnCreateHwQueueCb(d->device, &queue), S_OK);
		d->queues[i] = queue.hHwQueue;
		if (!i)
			d->value = queue.HwQueueProgressFenceCPUVirtualAddress;
		assert_int_equal(wddm2_try_allocate(&d->h.w.device, &spec, &list[i]), S_OK);
	}
	D3DDDICB_CREATEPAGINGQUEUE paging = wddm2_queue(&d->h.w.device);
	wddm2_make(&d->h.w, &d->h.w.device, &paging, list, 2);
	d->from = list[0];
	d->to = list[1];
}

static void end_driver(struct driver *d)
{
	const D3DDDICB_DESTROYHWCONTEXT end = {d->context};

	hw_run(&d->h);
	assert_int_equal(d->cb->pfnDestroyHwContextCb(d->device, &end), S_OK);
	hw_stop(&d->h);
}

static HRESULT driver_blt(const struct driver *d, D3DDDICB_SUBMITPRESENTBLTTOHWQUEUE *args)
{
	args->hHwQueue = d->queues[0];
	return d->cb->pfnSubmitPresentBltToHwQueueCb(d->device, args);
}

static void take_private_data(void *context, struct scripted_miniport *m,
			      struct scripted_call *call)
{
	const DXGKARG_PRESENT *args = call->args;
	uint32_t *got = context;

	(void)m;
	if (call->ddi != VIDMM_DDI_PRESENT_TO_HW_QUEUE)
		return;
	got[0] = args->PrivateDriverDataSize;
	memcpy(&got[1], args->pPrivateDriverData, args->PrivateDriverDataSize);
}

static void prs_10_pfnsubmitpresentblttohwqueuecb_presents_the_whole_source(void **state)
{
	uint32_t data = 0xCAFE, got[2] = {0};
	struct driver d;

	begin_driver(&d, state);
	d.h.w.m->hook = take_private_data;
	d.h.w.m->hook_context = got;
	D3DDDICB_SUBMITPRESENTBLTTOHWQUEUE args = {.hSrcAllocation = d.from,
						   .hDstAllocation = d.to,
						   .HwQueueProgressFenceId = 7,
						   .PrivateDriverDataSize = sizeof(data),
						   .pPrivateDriverData = &data};
	assert_int_equal(driver_blt(&d, &args), S_OK);
	hw_settle(&d.h);
	const struct scripted_call *call = scripted_last(d.h.w.m, VIDMM_DDI_PRESENT_TO_HW_QUEUE);
	assert_int_equal(call->in.present.Flags.Value, 1);
	assert_int_equal(call->in.present.SubRectCnt, 1);
	assert_non_null(call->allocations[1].hDeviceSpecificAllocation);
	assert_non_null(call->allocations[2].hDeviceSpecificAllocation);
	assert_int_equal(got[0], sizeof(data));
	assert_int_equal(got[1], data);
	assert_int_equal(*d.value, 0);
	hw_run(&d.h);
	assert_int_equal(*d.value, 7);
	assert_int_equal(driver_blt(&d, &args), E_INVALIDARG); /* the id is used */
	world_expect_finding(&d.h.w, "SUB-27");
	end_driver(&d);
}

static void prs_10_the_private_data_of_d3dkmt_presents_reaches_the_miniport(void **state)
{
	uint32_t data = 0xBEEF, got[2] = {0};
	struct show b;

	begin(&b, state, NULL);
	b.h.w.m->hook = take_private_data;
	b.h.w.m->hook_context = got;
	D3DKMT_SUBMITPRESENTBLTTOHWQUEUE args = blt(&b, 1);
	args.PrivatePresentData.PrivateDriverDataSize = sizeof(data);
	args.PrivatePresentData.pPrivateDriverData = &data;
	assert_int_equal(D3DKMTSubmitPresentBltToHwQueue(&args), STATUS_SUCCESS);
	assert_int_equal(got[0], sizeof(data));
	assert_int_equal(got[1], data);
	args.HwQueueProgressFenceId = 2;
	args.PrivatePresentData.pPrivateDriverData = NULL;
	assert_int_equal(D3DKMTSubmitPresentBltToHwQueue(&args), STATUS_INVALID_PARAMETER);
	assert_int_equal(scripted_count(b.h.w.m, VIDMM_DDI_PRESENT_TO_HW_QUEUE), 1);
	hw_stop(&b.h);
}

static void write_private_data(void *context, struct scripted_miniport *m,
			       struct scripted_call *call)
{
	const uint64_t *word = context;
	DXGKARG_PRESENT *args = call->args;

	(void)m;
	if (call->ddi != VIDMM_DDI_PRESENT_TO_HW_QUEUE)
		return;
	assert_int_equal(args->DmaBufferPrivateDataSize, 16);
	memcpy(args->pDmaBufferPrivateData, word, sizeof(*word));
	args->pDmaBufferPrivateData = (char *)args->pDmaBufferPrivateData + sizeof(*word);
}

/* Only the part that was written; the next present writes none. */
static void prs_10_private_data_that_a_present_writes_is_submitted_with_it(void **state)
{
	uint64_t word = 0x5EED5EED5EED5EED;
	struct show b;

	begin(&b, state, with_private_data);
	b.h.w.m->hook = write_private_data;
	b.h.w.m->hook_context = &word;
	assert_int_equal(present(&b, 1), STATUS_SUCCESS);
	hw_run(&b.h);
	b.h.w.m->hook = NULL;
	assert_int_equal(present(&b, 2), STATUS_SUCCESS);
	hw_run(&b.h);
	for (uint32_t i = 0; i < 2; i++) {
		const DXGKARG_SUBMITCOMMANDTOHWQUEUE *submit =
			&scripted_nth(b.h.w.m, VIDMM_DDI_SUBMIT_COMMAND_TO_HW_QUEUE, i)
				 ->in.submit_to_hw_queue;

		assert_int_equal(submit->DmaBufferPrivateDataSize, i ? 0 : sizeof(word));
	}
	assert_int_equal(b.h.w.m->hw_queue[0].last_private, word);
	hw_stop(&b.h);
}

static void q_342_pfnsubmitpresenttohwqueuecb_presents_with_the_next_id(void **state)
{
	struct driver d;

	begin_driver(&d, state);
	D3DDDICB_SUBMITPRESENTTOHWQUEUE args = {.BroadcastSrcAllocations = &d.from,
						.BroadcastDstAllocations = &d.to,
						.hHwQueues = d.queues,
						.BroadcastHwQueueCount = 1};
	assert_int_equal(d.cb->pfnSubmitPresentToHwQueueCb(d.device, &args), S_OK);
	hw_settle(&d.h);
	assert_int_equal(d.cb->pfnSubmitPresentToHwQueueCb(d.device, &args), S_OK);
	hw_run(&d.h);
	assert_int_equal(*d.value, 2);
	assert_int_equal(scripted_count(d.h.w.m, VIDMM_DDI_PRESENT_TO_HW_QUEUE), 2);
	end_driver(&d);
}

static void q_342_a_present_needs_one_queue(void **state)
{
	struct driver d;

	begin_driver(&d, state);
	D3DKMT_HANDLE from[2] = {d.from, d.from}, to[2] = {d.to, d.to};
	D3DDDICB_SUBMITPRESENTTOHWQUEUE args = {.BroadcastSrcAllocations = from,
						.BroadcastDstAllocations = to,
						.hHwQueues = d.queues};
	(void)client_told(&d.h.w.client, 0, "");
	assert_int_equal(d.cb->pfnSubmitPresentToHwQueueCb(d.device, &args), E_INVALIDARG);
	world_expect_finding(&d.h.w, "Q-342");
	args.BroadcastHwQueueCount = 2;
	assert_int_equal(d.cb->pfnSubmitPresentToHwQueueCb(d.device, &args), E_NOTIMPL);
	assert_true(client_told(&d.h.w.client, STATUS_NOT_SUPPORTED, "Q-342"));
	args.BroadcastHwQueueCount = 1;
	args.hHwQueues = NULL;
	assert_int_equal(d.cb->pfnSubmitPresentToHwQueueCb(d.device, &args), E_INVALIDARG);
	args.hHwQueues = d.queues;
	args.BroadcastSrcAllocations = NULL;
	assert_int_equal(d.cb->pfnSubmitPresentToHwQueueCb(d.device, &args), E_INVALIDARG);
	assert_int_equal(d.cb->pfnSubmitPresentToHwQueueCb(d.device, NULL), E_INVALIDARG);
	world_expect_finding(&d.h.w, "HND-11");
	assert_int_equal(scripted_count(d.h.w.m, VIDMM_DDI_PRESENT_TO_HW_QUEUE), 0);
	end_driver(&d);
}

/* Without a destination it would be a flip. */
static void q_343_a_present_without_a_destination_is_refused(void **state)
{
	struct driver d;

	begin_driver(&d, state);
	D3DDDICB_SUBMITPRESENTBLTTOHWQUEUE blt = {.hSrcAllocation = d.from,
						  .HwQueueProgressFenceId = 1};
	D3DDDICB_SUBMITPRESENTTOHWQUEUE args = {.BroadcastSrcAllocations = &d.from,
						.hHwQueues = d.queues,
						.BroadcastHwQueueCount = 1};
	assert_int_equal(driver_blt(&d, &blt), E_INVALIDARG);
	world_expect_finding(&d.h.w, "PRS-10");
	assert_int_equal(d.cb->pfnSubmitPresentToHwQueueCb(d.device, &args), E_INVALIDARG);
	world_expect_finding(&d.h.w, "PRS-10");
	blt.hDstAllocation = 0xDEAD0001; /* no allocation */
	assert_int_equal(driver_blt(&d, &blt), D3DDDIERR_INVALIDHANDLE);
	hw_forget(&d.h);
	assert_int_equal(scripted_count(d.h.w.m, VIDMM_DDI_PRESENT_TO_HW_QUEUE), 0);
	blt.hDstAllocation = d.to; /* the id was not used up */
	assert_int_equal(driver_blt(&d, &blt), S_OK);
	hw_run(&d.h);
	assert_int_equal(*d.value, 1);
	end_driver(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(prs_10_a_blt_becomes_a_command_of_the_queue),
		ON_BOTH(prs_10_presents_and_commands_share_the_queue),
		ON_BOTH(q_250_without_an_id_a_present_takes_the_next),
		ON_BOTH(prs_10_only_blits_are_presented),
		ON_SIM(prs_10_sub_27_the_id_of_a_present_must_rise),
		ON_SIM(prs_10_a_queue_or_allocation_that_is_none_is_refused),
		ON_SIM(prs_10_dma_26_source_and_destination_are_on_the_residency_list),
		ON_SIM(prs_10_what_is_not_built_says_so),
		ON_SIM(prs_10_without_a_dma_buffer_size_presents_are_refused),
		ON_SIM(q_251_a_present_that_needs_a_second_buffer_is_not_built),
		ON_SIM(prs_10_dma_37_failures_of_the_miniport_queue_nothing),
		ON_BOTH(prs_10_sub_17_presents_count_until_they_are_complete),
		ON_BOTH(prs_10_q_61_presents_behind_a_wait_end_with_their_queue),
		ON_BOTH(prs_10_pfnsubmitpresentblttohwqueuecb_presents_the_whole_source),
		ON_BOTH(prs_10_the_private_data_of_d3dkmt_presents_reaches_the_miniport),
		ON_BOTH(prs_10_private_data_that_a_present_writes_is_submitted_with_it),
		ON_BOTH(q_342_pfnsubmitpresenttohwqueuecb_presents_with_the_next_id),
		ON_SIM(q_342_a_present_needs_one_queue),
		ON_SIM(q_343_a_present_without_a_destination_is_refused),
	};

	return cmocka_run_group_tests_name("wddm2_hw_present", tests, NULL, NULL);
}
