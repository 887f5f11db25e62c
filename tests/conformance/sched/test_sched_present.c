/* SPDX-License-Identifier: MIT */
/*
 * Presents that use DMA buffers: blits and fills (DMA-32, DMA-34, DMA-36, DMA-37, SUB-17, PRS-01,
 * PRS-07, PRS-08).
 */
#include "show_world.h"

#include <string.h>

static void expect_nothing_queued(struct show *s)
{
	assert_int_equal(world_render_submits(&s->w), 0);
	assert_null(world_nth_of(&s->w, VIDMM_DDI_PATCH, false, 0));
}

static void expect_refused(struct show *s, const D3DKMT_PRESENT *args, NTSTATUS status,
			   const char *rule)
{
	assert_int_equal(show_present(s, args), status);
	world_expect_finding(&s->w, rule);
	expect_nothing_queued(s);
}

static void dma_32_the_present_list_is_null_source_destination(void **state)
{
	struct show s;

	show_start(&s, state, NULL);
	D3DKMT_HANDLE from = show_allocate(&s, UINT32_MAX), to = show_allocate(&s, 0);
	D3DKMT_PRESENT args = show_blt(&s, from, to);

	assert_int_equal(show_present(&s, &args), STATUS_SUCCESS);
	world_run(&s.w);
	const struct scripted_call *call = scripted_last(s.w.m, VIDMM_DDI_PRESENT);
	assert_int_equal(call->irql, PASSIVE_LEVEL);
	assert_non_null(call->in.present.pDmaBuffer);
	assert_int_equal((uintptr_t)call->in.present.pDmaBuffer % PAGE_BYTES, 0); /* DMA-06 */
	assert_int_equal(call->in.present.Flags.Value, 0x1);
	assert_int_equal(call->in.present.MultipassOffset, 0);
	assert_null(call->allocations[0].hDeviceSpecificAllocation);
	assert_non_null(call->allocations[1].hDeviceSpecificAllocation);
	assert_non_null(call->allocations[2].hDeviceSpecificAllocation);
	assert_int_equal(call->allocations[1].WriteOperation, 0);
	assert_int_equal(call->allocations[2].WriteOperation, 1);
	const DXGKARG_SUBMITCOMMAND *submit =
		&world_nth_of(&s.w, VIDMM_DDI_SUBMIT_COMMAND, false, 0)->in.submit;
	assert_int_equal(submit->Flags.Present, 1);
	assert_int_equal(submit->Flags.Flip, 0);
	assert_int_equal(world_nth_of(&s.w, VIDMM_DDI_PATCH, false, 0)->in.patch.Flags.Present, 1);
	/* It ran: the destination has the word that the miniport writes. */
	const struct scripted_call *patch = world_nth_of(&s.w, VIDMM_DDI_PATCH, false, 0);
	uint32_t word = 0;
	assert_true(scripted_gpu_access(s.w.m, patch->allocations[2].SegmentId,
					(uint64_t)patch->allocations[2].PhysicalAddress.QuadPart,
					&word, sizeof(word), false));
	assert_int_equal(word, 0xC0105);
	/* A fill has no source. */
	args = show_blt(&s, 0, to);
	args.Flags.Value = 0;
	args.Flags.ColorFill = 1;
	assert_int_equal(show_present(&s, &args), STATUS_SUCCESS);
	call = scripted_last(s.w.m, VIDMM_DDI_PRESENT);
	assert_null(call->allocations[1].hDeviceSpecificAllocation);
	assert_int_equal(call->in.present.Color, 0xC0105);
	show_stop(&s);
}

/*
 * DMA-29: a present that does not fit continues in further buffers, in order; the caller sees one
 * success.
 */
static void dma_32_a_multipass_present_counts_as_one_present(void **state)
{
	struct show s;

	show_start(&s, state, NULL);
	s.w.m->settings.present_passes = 3;
	D3DKMT_PRESENT args =
		show_blt(&s, show_allocate(&s, UINT32_MAX), show_allocate(&s, UINT32_MAX));

	assert_int_equal(show_present(&s, &args), STATUS_SUCCESS);
	assert_int_equal(scripted_count(s.w.m, VIDMM_DDI_PRESENT), 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(
			scripted_nth(s.w.m, VIDMM_DDI_PRESENT, i)->in.present.MultipassOffset, i);
	world_run(&s.w);
	assert_int_equal(world_render_submits(&s.w), 3);
	world_assert_fences(&s.w);
	/*
	 * All three count as one present (SUB-17): with a limit of one the next is accepted at
	 * once.
	 */
	const D3DKMT_SETQUEUEDLIMIT one = {.hDevice = s.device,
					   .Type = D3DKMT_SET_QUEUEDLIMIT_PRESENT,
					   .QueuedPresentLimit = 1};
	assert_int_equal(D3DKMTSetQueuedLimit(&one), STATUS_SUCCESS);
	args.Flags.FlipDoNotWait = 1;
	assert_int_equal(show_present(&s, &args), STATUS_SUCCESS);
	assert_int_equal(show_present(&s, &args), STATUS_GRAPHICS_ALLOCATION_BUSY);
	show_stop(&s);
}

static void dma_37_each_present_status_maps_to_its_result(void **state)
{
	static const struct {
		NTSTATUS says, means;
	} answers[] = {
		{STATUS_NO_MEMORY, STATUS_NO_MEMORY},
		{STATUS_INSUFFICIENT_RESOURCES, STATUS_NO_MEMORY},
		{STATUS_GRAPHICS_CANNOTCOLORCONVERT, STATUS_GRAPHICS_CANNOTCOLORCONVERT},
		{STATUS_PRIVILEGED_INSTRUCTION, STATUS_PRIVILEGED_INSTRUCTION},
		{STATUS_ILLEGAL_INSTRUCTION, STATUS_ILLEGAL_INSTRUCTION},
		{STATUS_INVALID_HANDLE, STATUS_INVALID_HANDLE},
	};
	struct show s;

	show_start(&s, state, NULL);
	const D3DKMT_PRESENT args =
		show_blt(&s, show_allocate(&s, UINT32_MAX), show_allocate(&s, UINT32_MAX));
	for (uint32_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		scripted_fail(s.w.m, VIDMM_DDI_PRESENT, answers[i].says, 1);
		assert_int_equal(show_present(&s, &args), answers[i].means);
		assert_int_equal(s.w.client.findings, 0);
		expect_nothing_queued(&s);
	}
	/* an undocumented status */
	scripted_fail(s.w.m, VIDMM_DDI_PRESENT, STATUS_NOT_SUPPORTED, 1);
	expect_refused(&s, &args, STATUS_INVALID_PARAMETER, "DMA-37");
	/* More buffers than there are bytes to fill them. */
	scripted_fail(s.w.m, VIDMM_DDI_PRESENT, STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER, 1);
	expect_refused(&s, &args, STATUS_INVALID_PARAMETER, "DMA-29");
	/* None of these counts as queued, and the next present succeeds. */
	assert_int_equal(show_present(&s, &args), STATUS_SUCCESS);
	world_run(&s.w);
	world_assert_fences(&s.w);
	scripted_fail(s.w.m, VIDMM_DDI_PRESENT, STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE, 1);
	assert_int_equal(show_present(&s, &args), STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE);
	/* the device is in error */
	assert_int_equal(show_present(&s, &args), STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE);
	show_stop(&s);
}

static void break_bounds(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	DXGKARG_PRESENT *out = call->args;
	const DXGKARG_PRESENT *in = &call->in.present;

	(void)m;
	if (call->ddi != VIDMM_DDI_PRESENT)
		return;
	switch (*(uint32_t *)context) {
	case 0:
		/* NULL, too */
		out->pDmaBuffer = (void *)((uintptr_t)in->pDmaBuffer + in->DmaSize + 1);
		break;
	case 1:
		out->pPatchLocationListOut =
			in->pPatchLocationListOut + in->PatchLocationListOutSize + 1;
		break;
	default:
		out->pDmaBufferPrivateData =
			(char *)in->pDmaBufferPrivateData + in->DmaBufferPrivateDataSize + 8;
		break;
	}
}

static void dma_28_present_output_past_the_end_of_a_buffer_is_fatal(void **state)
{
	for (uint32_t what = 0; what < 3; what++) {
		struct show s;

		show_start(&s, state, NULL);
		const D3DKMT_PRESENT args =
			show_blt(&s, show_allocate(&s, UINT32_MAX), show_allocate(&s, UINT32_MAX));
		s.w.m->hook = break_bounds;
		s.w.m->hook_context = &what;
		assert_int_equal(show_present(&s, &args), STATUS_DEVICE_REMOVED);
		world_expect_finding(&s.w, "DMA-28");
		s.w.expected_fatals = 1;
		assert_int_equal(s.w.fatal[0], 0x10E);
		show_stop(&s);
	}
}

static void dma_28_a_miniport_that_advances_the_buffer_of_an_mmio_flip_is_reported(void **state)
{
	uint32_t what = 0;
	struct show s;

	show_start(&s, state, NULL);
	const D3DKMT_PRESENT args = show_flip(&s, 0, show_allocate(&s, 0));
	s.w.m->hook = break_bounds;
	s.w.m->hook_context = &what;
	assert_int_equal(show_present(&s, &args), STATUS_DEVICE_REMOVED);
	world_expect_finding(&s.w, "DMA-28");
	s.w.expected_fatals = 1;
	show_stop(&s);
}

/* ---- arguments ---- */

static void prs_01_flags_must_match_the_given_allocations(void **state)
{
	struct show s;

	show_start(&s, state, NULL);
	D3DKMT_HANDLE a = show_allocate(&s, UINT32_MAX), b = show_allocate(&s, 0);
	D3DKMT_PRESENT args = show_blt(&s, a, b);

	args.Flags.Flip = 1;
	expect_refused(&s, &args, STATUS_INVALID_PARAMETER, "PRS-01");
	args.Flags.Value = 0;
	expect_refused(&s, &args, STATUS_INVALID_PARAMETER, "PRS-01");
	args = show_blt(&s, a, 0);
	expect_refused(&s, &args, STATUS_INVALID_PARAMETER, "PRS-01");
	args = show_blt(&s, 0, b);
	expect_refused(&s, &args, STATUS_INVALID_PARAMETER, "PRS-01");
	args = show_flip(&s, 0, b);
	args.hDestination = a;
	expect_refused(&s, &args, STATUS_INVALID_PARAMETER, "PRS-01");
	args = show_flip(&s, 0, b);
	args.Flags.LinearToSrgb = 1;
	expect_refused(&s, &args, STATUS_INVALID_PARAMETER, "PRS-01");
	args = show_flip(&s, 0, b);
	args.FlipInterval = (D3DDDI_FLIPINTERVAL_TYPE)5;
	expect_refused(&s, &args, STATUS_INVALID_PARAMETER, "PRS-01");
	args = show_blt(&s, a, b + 0x100);
	args.Flags.SrcRectValid = args.Flags.DstRectValid = 1;
	args.SrcRect = args.DstRect = (RECT){0, 0, 8, 8};
	expect_refused(&s, &args, STATUS_INVALID_HANDLE, "DMA-16");
	/* without rectangles the allocation is described to get its size */
	args = show_blt(&s, a, b + 0x100);
	expect_refused(&s, &args, STATUS_INVALID_HANDLE, "DMA-16");
	args = show_blt(&s, a, b);
	args.Flags.Reserved = 1;
	expect_refused(&s, &args, STATUS_INVALID_PARAMETER, "HND-11");
	args = show_blt(&s, a, b);
	args.Flags.RedirectedBlt = 1; /* RedirectedBlt needs a compositor */
	assert_int_equal(show_present(&s, &args), STATUS_NOT_SUPPORTED);
	args = show_flip(&s, 0, b);
	args.FlipInterval = D3DDDI_FLIPINTERVAL_TWO;
	assert_int_equal(show_present(&s, &args), STATUS_NOT_SUPPORTED);
	assert_int_equal(scripted_count(s.w.m, VIDMM_DDI_PRESENT), 0);
	expect_nothing_queued(&s);
	show_stop(&s);
}

static void keep_sub_rects(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	(void)m;
	if (call->ddi == VIDMM_DDI_PRESENT && call->in.present.SubRectCnt == 2)
		memcpy(context, call->in.present.pDstSubRects, 2 * sizeof(RECT));
}

static void prs_07_sub_rectangles_are_scaled_to_the_destination(void **state)
{
	RECT subs[2] = {{0, 0, 8, 8}, {8, 4, 16, 16}};
	struct show s;

	show_start(&s, state, NULL);
	D3DKMT_HANDLE a = show_allocate(&s, UINT32_MAX), b = show_allocate(&s, UINT32_MAX);
	D3DKMT_PRESENT args = show_blt(&s, a, b);

	/* All of source and destination, as the miniport describes them. */
	assert_int_equal(show_present(&s, &args), STATUS_SUCCESS);
	const DXGKARG_PRESENT *in = &scripted_last(s.w.m, VIDMM_DDI_PRESENT)->in.present;
	assert_int_equal(in->SrcRect.right, SCRIPTED_WIDTH);
	assert_int_equal(in->DstRect.bottom, SCRIPTED_HEIGHT);
	assert_int_equal(in->SubRectCnt, 1);
	world_run(&s.w);
	/*
	 * Scaled by two: sub rectangles are in source coordinates, and the miniport gets them in
	 * destination coordinates.
	 */
	args.Flags.SrcRectValid = args.Flags.DstRectValid = 1;
	args.SrcRect = (RECT){0, 0, 16, 16};
	args.DstRect = (RECT){10, 20, 42, 52};
	args.SubRectCnt = 2;
	args.pSrcSubRects = subs;
	RECT seen[2] = {{0}};
	const RECT expected[2] = {{10, 20, 26, 36}, {26, 28, 42, 52}};
	s.w.m->hook_context = seen;
	s.w.m->hook = keep_sub_rects;
	assert_int_equal(show_present(&s, &args), STATUS_SUCCESS);
	in = &scripted_last(s.w.m, VIDMM_DDI_PRESENT)->in.present;
	assert_int_equal(in->SubRectCnt, 2);
	assert_memory_equal(seen, expected, sizeof(expected));
	world_run(&s.w);
	subs[1].right = 17;
	assert_int_equal(show_present(&s, &args), STATUS_INVALID_PARAMETER);
	world_expect_finding(&s.w, "PRS-07");
	args.SubRectCnt = 0;
	args.DstRect.right = 10;
	assert_int_equal(show_present(&s, &args), STATUS_INVALID_PARAMETER);
	world_expect_finding(&s.w, "PRS-01");
	show_stop(&s);
}

static void prs_08_presentcb_copies_or_flips(void **state)
{
	struct scripted_allocation spec = {.size_bytes = 64 * KIB, .flags = WORLD_CPU_VISIBLE};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec),
				      .VidPnSourceId = 1};
	D3DDDICB_ALLOCATE create = {.NumAllocations = 1, .pAllocationInfo = &info};
	struct show s;

	show_start(&s, state, NULL);
	const D3DDDI_DEVICECALLBACKS *cb = s.w.device.cb;
	D3DKMT_HANDLE a = world_allocate(&s.w, 64 * KIB, 0);
	info.Flags.Primary = 1;
	assert_int_equal(cb->pfnAllocateCb(s.w.device.handle, &create), S_OK);
	D3DDDICB_PRESENT args = {.hSrcAllocation = a,
				 .hDstAllocation = info.hAllocation,
				 .hContext = s.w.context.c.hContext};
	assert_int_equal(cb->pfnPresentCb(s.w.device.handle, &args), S_OK);
	assert_int_equal(scripted_last(s.w.m, VIDMM_DDI_PRESENT)->in.present.Flags.Value, 0x1);
	args = (D3DDDICB_PRESENT){.hSrcAllocation = info.hAllocation,
				  .hContext = s.w.context.c.hContext};
	assert_int_equal(cb->pfnPresentCb(s.w.device.handle, &args), S_OK);
	assert_int_equal(scripted_last(s.w.m, VIDMM_DDI_PRESENT)->in.present.Flags.Value, 0x4);
	world_run(&s.w);
	vidmm_settle(s.w.client.host);
	assert_int_equal(show_displayed(&s), 1);
	args.hSrcAllocation = a; /* no primary */
	assert_int_equal(cb->pfnPresentCb(s.w.device.handle, &args), E_INVALIDARG);
	world_expect_finding(&s.w, "PRS-02");
	/* DMA-10: flips alone can be broadcast. */
	args.hDstAllocation = info.hAllocation;
	args.BroadcastContextCount = 1;
	assert_int_equal(cb->pfnPresentCb(s.w.device.handle, &args), E_INVALIDARG);
	world_expect_finding(&s.w, "DMA-10");
	args = (D3DDDICB_PRESENT){.hSrcAllocation = info.hAllocation,
				  .hContext = s.w.context.c.hContext,
				  .BroadcastContextCount = D3DDDI_MAX_BROADCAST_CONTEXT + 1};
	assert_int_equal(cb->pfnPresentCb(s.w.device.handle, &args), E_INVALIDARG);
	world_expect_finding(&s.w, "DMA-10");
	args = (D3DDDICB_PRESENT){.hSrcAllocation = a, .hContext = s.w.device.handle};
	assert_int_equal(cb->pfnPresentCb(s.w.device.handle, &args), E_INVALIDARG);
	world_expect_finding(&s.w, "DMA-09");
	show_stop(&s);
}

/* ---- a primary that was replaced ---- */

static D3DKMT_HANDLE shared_primary(struct show *s, D3DKMT_HANDLE *global)
{
	struct scripted_allocation spec = {.size_bytes = 64 * KIB, .flags = WORLD_CPU_VISIBLE};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec)};
	D3DKMT_CREATEALLOCATION args = {
		.hDevice = s->device, .NumAllocations = 1, .pAllocationInfo = &info};

	info.Flags.Primary = 1;
	args.Flags.CreateResource = args.Flags.CreateShared = 1;
	assert_int_equal(D3DKMTCreateAllocation(&args), STATUS_SUCCESS);
	*global = args.hGlobalShare;
	return info.hAllocation;
}

static void dma_36_present_with_a_replaced_primary_fails_until_it_is_reopened(void **state)
{
	D3DKMT_HANDLE first_global, second_global;
	struct show s;

	show_start(&s, state, NULL);
	D3DKMT_GETSHAREDPRIMARYHANDLE get = {.hAdapter = s.adapter};
	assert_int_equal(D3DKMTGetSharedPrimaryHandle(&get), STATUS_INVALID_PARAMETER);
	world_expect_finding(&s.w, "PRS-02");
	D3DKMT_HANDLE first = shared_primary(&s, &first_global), a = show_allocate(&s, UINT32_MAX);
	D3DKMT_PRESENT args = show_blt(&s, a, first);
	assert_int_equal(show_present(&s, &args), STATUS_SUCCESS);
	assert_int_equal(D3DKMTGetSharedPrimaryHandle(&get), STATUS_SUCCESS);
	assert_int_equal(get.hSharedPrimary, first_global);
	world_run(&s.w);
	scripted_forget(s.w.m);
	D3DKMT_HANDLE second = shared_primary(&s, &second_global);
	expect_refused(&s, &args, STATUS_GRAPHICS_ALLOCATION_INVALID, "DMA-36");
	assert_int_equal(D3DKMTGetSharedPrimaryHandle(&get), STATUS_SUCCESS);
	assert_int_equal(get.hSharedPrimary, second_global);
	/* The new one is used by its creator, or by opening the current primary of the source. */
	args = show_blt(&s, a, second);
	assert_int_equal(show_present(&s, &args), STATUS_SUCCESS);
	D3DDDI_OPENALLOCATIONINFO info = {0};
	char data[256];
	D3DKMT_OPENRESOURCE open = {.hDevice = s.device,
				    .hGlobalShare = get.hSharedPrimary,
				    .NumAllocations = 1,
				    .pOpenAllocationInfo = &info,
				    .pTotalPrivateDriverDataBuffer = data,
				    .TotalPrivateDriverDataBufferSize = sizeof(data)};
	assert_int_equal(D3DKMTOpenResource(&open), STATUS_SUCCESS);
	args = show_blt(&s, a, info.hAllocation);
	assert_int_equal(show_present(&s, &args), STATUS_SUCCESS);
	show_stop(&s);
}

static void dma_36_render_with_a_replaced_primary_fails(void **state)
{
	struct scripted_allocation spec = {.size_bytes = 64 * KIB, .flags = WORLD_CPU_VISIBLE};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec)};
	D3DKMT_HANDLE global;
	struct show s;
	int key;

	show_start(&s, state, NULL);
	assert_int_equal(vidmm_resource_set_shared(s.w.device.device, &key), 0);
	D3DDDICB_ALLOCATE create = {
		.NumAllocations = 1, .pAllocationInfo = &info, .hResource = &key};
	info.Flags.Primary = 1;
	assert_int_equal(s.w.device.cb->pfnAllocateCb(s.w.device.handle, &create), S_OK);
	world_submit_use(&s.w.context, info.hAllocation); /* while it is the current primary */
	world_run(&s.w);
	scripted_forget(s.w.m);
	(void)shared_primary(&s, &global);
	world_use(&s.w.context, info.hAllocation);
	D3DDDICB_RENDER args = world_render_args(&s.w.context);
	assert_int_equal(world_render(&s.w.context, &args), (HRESULT)0xC0262106);
	world_expect_finding(&s.w, "DMA-36");
	expect_nothing_queued(&s);
	show_stop(&s);
}

/* ---- limits ---- */

static void sub_17_the_present_limit_of_a_device_can_be_set(void **state)
{
	D3DKMT_SETQUEUEDLIMIT limit = {.Type = D3DKMT_GET_QUEUEDLIMIT_PRESENT};
	struct show s;

	show_start(&s, state, NULL);
	limit.hDevice = s.device;
	assert_int_equal(D3DKMTSetQueuedLimit(&limit), STATUS_SUCCESS);
	assert_int_equal(limit.QueuedPresentLimit, 3);
	limit.Type = D3DKMT_SET_QUEUEDLIMIT_PRESENT;
	limit.QueuedPresentLimit = 5;
	assert_int_equal(D3DKMTSetQueuedLimit(&limit), STATUS_SUCCESS);
	limit.Type = D3DKMT_GET_QUEUEDLIMIT_PRESENT;
	limit.QueuedPresentLimit = 0;
	assert_int_equal(D3DKMTSetQueuedLimit(&limit), STATUS_SUCCESS);
	assert_int_equal(limit.QueuedPresentLimit, 5);
	limit.Type = D3DKMT_SET_QUEUEDLIMIT_PRESENT;
	limit.QueuedPresentLimit = 0; /* the default again */
	assert_int_equal(D3DKMTSetQueuedLimit(&limit), STATUS_SUCCESS);
	D3DKMT_PRESENT args =
		show_blt(&s, show_allocate(&s, UINT32_MAX), show_allocate(&s, UINT32_MAX));
	args.Flags.FlipDoNotWait = 1;
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(show_present(&s, &args), STATUS_SUCCESS);
	assert_int_equal(show_present(&s, &args), STATUS_GRAPHICS_ALLOCATION_BUSY);
	world_run(&s.w);
	assert_int_equal(show_present(&s, &args), STATUS_SUCCESS);
	limit.Type = (D3DKMT_QUEUEDLIMIT_TYPE)3;
	assert_int_equal(D3DKMTSetQueuedLimit(&limit), STATUS_INVALID_PARAMETER);
	world_expect_finding(&s.w, "SUB-17");
	show_stop(&s);
}

struct blocked {
	struct show *s;
	D3DKMT_PRESENT args;
	NTSTATUS status;
	_Atomic bool over;
};

static void present_in_thread(void *argument)
{
	struct blocked *b = argument;

	b->status = D3DKMTPresent(&b->args);
	atomic_store(&b->over, true);
}

static void sub_17_a_present_above_the_limit_waits_for_the_gpu(void **state)
{
	const D3DKMT_SETQUEUEDLIMIT one = {.Type = D3DKMT_SET_QUEUEDLIMIT_PRESENT,
					   .QueuedPresentLimit = 1};
	struct vidmm_thread *thread;
	struct show s;

	show_start(&s, state, NULL);
	D3DKMT_SETQUEUEDLIMIT limit = one;
	limit.hDevice = s.device;
	assert_int_equal(D3DKMTSetQueuedLimit(&limit), STATUS_SUCCESS);
	struct blocked b = {
		.s = &s,
		.args = show_blt(&s, show_allocate(&s, UINT32_MAX), show_allocate(&s, UINT32_MAX))};
	assert_int_equal(show_present(&s, &b.args), STATUS_SUCCESS);
	assert_int_equal(
		vidmm_thread_create(s.w.client.host, "presents", present_in_thread, &b, &thread),
		0);
	vidmm_settle(s.w.client.host);
	assert_false(atomic_load(&b.over));
	assert_int_equal(scripted_count(s.w.m, VIDMM_DDI_PRESENT), 1);
	world_run(&s.w);
	vidmm_thread_join(thread);
	assert_int_equal(b.status, STATUS_SUCCESS);
	assert_int_equal(scripted_count(s.w.m, VIDMM_DDI_PRESENT), 2);
	show_stop(&s);
}

/* ---- contexts of GDI ---- */

static NTSTATUS create_gdi_context(struct show *s, D3DKMT_HANDLE *context)
{
	D3DKMT_CREATECONTEXT args = {.hDevice = s->device, .ClientHint = D3DKMT_CLIENTHINT_CDD};
	NTSTATUS status = D3DKMTCreateContext(&args);

	*context = args.hContext;
	return status;
}

static void dma_34_a_gdi_context_has_256_allocations(void **state)
{
	D3DKMT_HANDLE context;
	struct show s;

	show_start(&s, state, NULL);
	uint32_t destroyed = scripted_count(s.w.m, VIDMM_DDI_DESTROY_CONTEXT);
	s.w.m->settings.context.AllocationListSize = 128;
	assert_int_equal(create_gdi_context(&s, &context), STATUS_INVALID_PARAMETER);
	world_expect_finding(&s.w, "DMA-34");
	assert_int_equal(scripted_count(s.w.m, VIDMM_DDI_DESTROY_CONTEXT), destroyed + 1);
	s.w.m->settings.context.AllocationListSize = 256;
	assert_int_equal(create_gdi_context(&s, &context), STATUS_SUCCESS);
	assert_int_equal(
		scripted_last(s.w.m, VIDMM_DDI_CREATE_CONTEXT)->in.create_context.Flags.GdiContext,
		1);
	const D3DKMT_DESTROYCONTEXT destroy = {.hContext = context};
	assert_int_equal(D3DKMTDestroyContext(&destroy), STATUS_SUCCESS);
	show_stop(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(dma_32_the_present_list_is_null_source_destination),
		ON_BOTH(dma_32_a_multipass_present_counts_as_one_present),
		ON_BOTH(dma_37_each_present_status_maps_to_its_result),
		ON_SIM(dma_28_present_output_past_the_end_of_a_buffer_is_fatal),
		ON_SIM(dma_28_a_miniport_that_advances_the_buffer_of_an_mmio_flip_is_reported),
		ON_SIM(prs_01_flags_must_match_the_given_allocations),
		ON_SIM(prs_07_sub_rectangles_are_scaled_to_the_destination),
		ON_BOTH(prs_08_presentcb_copies_or_flips),
		ON_BOTH(dma_36_present_with_a_replaced_primary_fails_until_it_is_reopened),
		ON_SIM(dma_36_render_with_a_replaced_primary_fails),
		ON_SIM(sub_17_the_present_limit_of_a_device_can_be_set),
		ON_BOTH(sub_17_a_present_above_the_limit_waits_for_the_gpu),
		ON_SIM(dma_34_a_gdi_context_has_256_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
