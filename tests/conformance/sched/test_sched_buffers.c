/* SPDX-License-Identifier: MIT */
/* The buffers of a context and the arguments of a render call: DMA-01 to DMA-13, DMA-33. */
#include "sched_world.h"
#include <support/viewer.h>

#include <string.h>

/* ---- context creation ---- */

static void small_context(struct scripted_miniport *m)
{
	m->settings.context.DmaBufferSize = 4 * KIB;
	m->settings.context.AllocationListSize = 8;
	m->settings.context.PatchLocationListSize = 16;
}

static HRESULT try_context(struct world *w, uint32_t node, D3DDDICB_CREATECONTEXT *c)
{
	*c = (D3DDDICB_CREATECONTEXT){.NodeOrdinal = node};
	return w->device.cb->pfnCreateContextCb(w->device.handle, c);
}

static void end_context(struct world *w, D3DDDICB_CREATECONTEXT *c)
{
	D3DDDICB_DESTROYCONTEXT args = {.hContext = c->hContext};

	assert_int_equal(w->device.cb->pfnDestroyContextCb(w->device.handle, &args), S_OK);
}

static void dma_01_first_buffers_are_as_large_as_the_miniport_asked(void **state)
{
	struct world w;

	world_start(&w, state, small_context);
	assert_true(w.context.c.CommandBufferSize >= 4 * KIB);
	assert_true(w.context.c.AllocationListSize >= 8);
	assert_true(w.context.c.PatchLocationListSize >= 16);
	assert_non_null(w.context.c.pCommandBuffer);
	memset(w.context.c.pCommandBuffer, 0x5A, w.context.c.CommandBufferSize);
	memset(w.context.c.pAllocationList, 0x5A,
	       w.context.c.AllocationListSize * sizeof(*w.context.c.pAllocationList));
	memset(w.context.c.pPatchLocationList, 0x5A,
	       w.context.c.PatchLocationListSize * sizeof(*w.context.c.pPatchLocationList));
	world_stop(&w);
}

static void dma_01_a_context_without_buffers_is_refused(void **state)
{
	struct world w;
	D3DDDICB_CREATECONTEXT c;

	world_start(&w, state, NULL);
	for (uint32_t missing = 0; missing < 3; missing++) {
		DXGK_CONTEXTINFO info = w.m->settings.context;
		uint32_t live = w.m->live_contexts;

		*(missing == 0   ? &w.m->settings.context.DmaBufferSize
		  : missing == 1 ? &w.m->settings.context.AllocationListSize
				 : &w.m->settings.context.PatchLocationListSize) = 0;
		assert_int_equal(try_context(&w, 0, &c), E_INVALIDARG);
		assert_null(c.hContext);
		world_expect_finding(&w, "DMA-01");
		assert_int_equal(w.m->live_contexts, live);
		w.m->settings.context = info;
	}
	assert_int_equal(try_context(&w, 0, &c), S_OK);
	end_context(&w, &c);
	world_stop(&w);
}

/* DMA-01: the miniport's failure status is returned to the caller. */
static void dma_01_a_miniport_without_memory_fails_the_creation(void **state)
{
	struct world w;
	D3DDDICB_CREATECONTEXT c;

	world_start(&w, state, NULL);
	scripted_fail(w.m, VIDMM_DDI_CREATE_CONTEXT, STATUS_NO_MEMORY, 1);
	assert_int_equal(try_context(&w, 0, &c), E_OUTOFMEMORY);
	scripted_fail(w.m, VIDMM_DDI_CREATE_CONTEXT, STATUS_UNSUCCESSFUL, 1);
	assert_int_equal(try_context(&w, 0, &c), E_INVALIDARG);
	world_expect_finding(&w, "DMA-01");
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_DESTROY_CONTEXT), 0);
	world_stop(&w);
}

static void dma_02_dma_12_sizes_never_drop_below_starting_values(void **state)
{
	struct world w;
	uint32_t random = 12345;

	world_start(&w, state, small_context);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	for (uint32_t i = 0; i < 1000; i++) {
		world_use(&w.context, a);
		D3DDDICB_RENDER args = world_render_args(&w.context);
		random = random * 1103515245 + 12345;
		args.Flags.Value = random >> 28 & 0x7; /* the three resize flags */
		args.NewCommandBufferSize = args.NewAllocationListSize =
			args.NewPatchLocationListSize = random >> 8;
		assert_int_equal(world_render(&w.context, &args), S_OK);
		assert_true(args.NewCommandBufferSize >= 4 * KIB);
		assert_true(args.NewAllocationListSize >= 8);
		assert_true(args.NewPatchLocationListSize >= 16);
		if (!(args.Flags.Value & 0x1)) /* without the flag the arbitrary value is ignored */
			assert_int_equal(args.NewCommandBufferSize, w.context.c.CommandBufferSize);
		world_run(&w);
		scripted_forget(w.m);
	}
	world_stop(&w);
}

static void buffers_in_an_aperture(struct scripted_miniport *m)
{
	m->settings.context.DmaBufferSegmentSet = WORLD_APERTURE;
}

static void dma_03_a_dma_buffer_segment_set_with_a_memory_segment_is_refused(void **state)
{
	struct world w;
	D3DDDICB_CREATECONTEXT c;

	world_start(&w, state, NULL);
	uint32_t destroyed = scripted_count(w.m, VIDMM_DDI_DESTROY_CONTEXT);
	w.m->settings.context.DmaBufferSegmentSet = WORLD_APERTURE | WORLD_MEMORY;
	assert_int_equal(try_context(&w, 0, &c), E_INVALIDARG);
	world_expect_finding(&w, "DMA-03");
	w.m->settings.context.DmaBufferSegmentSet = 1u << 7; /* a segment that does not exist */
	assert_int_equal(try_context(&w, 0, &c), E_INVALIDARG);
	world_expect_finding(&w, "DMA-03");
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_DESTROY_CONTEXT), destroyed + 2);
	w.m->settings.context.DmaBufferSegmentSet = WORLD_APERTURE;
	assert_int_equal(try_context(&w, 0, &c), S_OK);
	end_context(&w, &c);
	world_stop(&w);
}

/* ---- where the buffer is ---- */

static void dma_04_without_a_segment_the_buffer_is_in_system_memory(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	world_write(&w.context, a, 8, 0xCAFE);
	client_submit(&w.context);
	world_run(&w);
	const struct scripted_call *render = scripted_nth(w.m, VIDMM_DDI_RENDER, 0);
	const struct scripted_call *patch = world_nth_of(&w, VIDMM_DDI_PATCH, false, 0);
	const struct scripted_call *submit = world_nth_of(&w, VIDMM_DDI_SUBMIT_COMMAND, false, 0);
	assert_int_equal(render->in.render.DmaBufferSegmentId, 0);
	assert_int_equal(patch->in.patch.DmaBufferSegmentId, 0);
	assert_int_equal(submit->in.submit.DmaBufferSegmentId, 0);
	assert_int_not_equal(submit->in.submit.DmaBufferPhysicalAddress.QuadPart, 0);
	assert_int_equal(render->in.render.DmaBufferPhysicalAddress.QuadPart,
			 submit->in.submit.DmaBufferPhysicalAddress.QuadPart);
	assert_int_equal(patch->in.patch.DmaBufferPhysicalAddress.QuadPart,
			 submit->in.submit.DmaBufferPhysicalAddress.QuadPart);
	/* The GPU read its commands from that address and executed them. */
	assert_int_equal(((uint32_t *)client_lock(&w.device, a, 0))[2], 0xCAFE);
	world_stop(&w);
}

static uint32_t first_call(const struct world *w, const struct scripted_call *wanted)
{
	for (uint32_t i = 0; scripted_at(w->m, i); i++)
		if (scripted_at(w->m, i) == wanted)
			return i;
	fail_msg("no such call");
	return 0;
}

static const struct scripted_call *find_buffer_map(const struct world *w)
{
	for (uint32_t i = 0;; i++) {
		const struct scripted_call *call =
			scripted_nth(w->m, VIDMM_DDI_BUILD_PAGING_BUFFER, i);

		assert_non_null(call);
		if (call->in.paging.Operation == DXGK_OPERATION_MAP_APERTURE_SEGMENT &&
		    !call->in.paging.MapApertureSegment.hAllocation)
			return call;
	}
}

static void dma_05_a_buffer_in_an_aperture_is_mapped_before_its_first_use(void **state)
{
	struct world w;

	world_start(&w, state, buffers_in_an_aperture);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	world_write(&w.context, a, 0, 0xF00D);
	client_submit(&w.context);
	world_run(&w);
	const struct scripted_call *map = find_buffer_map(&w);
	const struct scripted_call *render = scripted_nth(w.m, VIDMM_DDI_RENDER, 0);
	const struct scripted_call *patch = world_nth_of(&w, VIDMM_DDI_PATCH, false, 0);
	const struct scripted_call *submit = world_nth_of(&w, VIDMM_DDI_SUBMIT_COMMAND, false, 0);
	uint64_t address = (uint64_t)submit->in.submit.DmaBufferPhysicalAddress.QuadPart;

	assert_true(first_call(&w, map) < first_call(&w, submit));
	assert_int_equal(map->in.paging.MapApertureSegment.SegmentId, 2);
	assert_int_equal(SCRIPTED_APERTURE_BASE +
				 map->in.paging.MapApertureSegment.OffsetInPages * PAGE_BYTES,
			 address);
	assert_int_equal(map->in.paging.MapApertureSegment.NumberOfPages * PAGE_BYTES,
			 submit->in.submit.DmaBufferSize);
	assert_in_range(address, SCRIPTED_APERTURE_BASE,
			SCRIPTED_APERTURE_BASE + SCRIPTED_APERTURE_BYTES - 64 * KIB);
	assert_int_equal(submit->in.submit.DmaBufferSegmentId, 2);
	assert_int_equal(patch->in.patch.DmaBufferSegmentId, 2);
	assert_int_equal(patch->in.patch.DmaBufferPhysicalAddress.QuadPart, address);
	if (render->in.render.DmaBufferSegmentId) /* not mapped yet: both are 0 */
		assert_int_equal(render->in.render.DmaBufferPhysicalAddress.QuadPart, address);
	else
		assert_int_equal(render->in.render.DmaBufferPhysicalAddress.QuadPart, 0);
	/* Fetched through the aperture's page table. */
	assert_int_equal(*(uint32_t *)client_lock(&w.device, a, 0), 0xF00D);
	world_stop(&w);
}

/* Idle content there is evicted for a DMA buffer. */
static void dma_05_idle_content_is_evicted_from_a_full_aperture_for_a_buffer(void **state)
{
	struct world w;
	struct client_context late;
	D3DKMT_HANDLE a[16];

	world_start(&w, state, buffers_in_an_aperture);
	w.m->settings.complete_at_once = true;
	for (uint32_t i = 0; i < 16; i++) {
		a[i] = world_allocate(&w, 1 * MIB, WORLD_APERTURE);
		world_submit_write(&w.context, a[i], 0, 0x20 + i);
	}
	client_context(&w.device, 0, &late);
	world_submit_write(&late, a[3], 4, 0x99);
	client_idle(&w.client);
	for (uint32_t i = 0; i < 16; i++)
		assert_int_equal(world_word(&w, a[i], 0), 0x20 + i);
	assert_int_equal(world_word(&w, a[3], 4), 0x99);
	world_stop(&w);
}

struct full_aperture {
	struct world w;
	D3DKMT_HANDLE most;
};

static void submit_with_full_aperture(void *argument)
{
	struct full_aperture *c = argument;

	for (uint32_t i = 0; i < 5; i++)
		world_submit_write(&c->w.context, c->most, 4 * i, 0x30 + i);
}

/*
 * If the free space holds only one of the buffers and the rest is in use, the next submission waits
 * instead of failing.
 */
static void dma_05_submissions_take_turns_if_one_buffer_fits_the_aperture(void **state)
{
	struct full_aperture c;
	struct vidmm_thread *thread;
	uint32_t done = 0;

	world_start(&c.w, state, buffers_in_an_aperture);
	c.most = world_allocate(&c.w, 16 * MIB - 64 * KIB, WORLD_APERTURE);
	assert_int_equal(vidmm_thread_create(c.w.client.host, "client", submit_with_full_aperture,
					     &c, &thread),
			 0);
	while (done < 5) {
		(void)scripted_complete(c.w.m, 1, UINT32_MAX);
		done += scripted_complete(c.w.m, 0, 1);
		vidmm_settle(c.w.client.host);
	}
	vidmm_thread_join(thread);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(world_word(&c.w, c.most, 4 * i), 0x30 + i);
	assert_int_equal(world_render_submits(&c.w), 5);
	world_stop(&c.w);
}

/*
 * Idle buffers are unmapped if a submission needs the space. They are mapped again for their next
 * use.
 */
static void dma_05_idle_buffers_are_unmapped_for_a_working_set(void **state)
{
	struct world w;
	struct client_context other;

	world_start(&w, state, buffers_in_an_aperture);
	w.m->settings.complete_at_once = true;
	D3DKMT_HANDLE most = world_allocate(&w, 16 * MIB - 64 * KIB, WORLD_APERTURE);
	D3DKMT_HANDLE small = world_allocate(&w, 4 * KIB, 0);
	client_context(&w.device, 0, &other);
	world_submit_write(&other, small, 0, 0x51);
	world_run(&w);
	for (uint32_t i = 0; i < 3;
	     i++) { /* the two buffers and the working set never fit together */
		world_submit_write(&w.context, most, 4 * i, 0x60 + i);
		world_run(&w);
		world_submit_write(&other, most, 64 + 4 * i, 0x70 + i);
		world_run(&w);
	}
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(world_word(&w, most, 4 * i), 0x60 + i);
		assert_int_equal(world_word(&w, most, 64 + 4 * i), 0x70 + i);
	}
	world_stop(&w);
}

/*
 * The first buffer of a context waits in the queue for content of the aperture that the GPU uses.
 */
static void dma_05_the_first_buffer_waits_while_the_aperture_is_in_use(void **state)
{
	struct world w;
	struct client_context late;
	D3DKMT_HANDLE a[16];

	world_start(&w, state, buffers_in_an_aperture);
	D3DKMT_HANDLE target = world_allocate(&w, 4 * KIB, 0);
	client_context(&w.device, 0, &late);
	for (uint32_t i = 0; i < 16; i++) {
		a[i] = world_allocate(&w, i ? 1 * MIB : 1 * MIB - 64 * KIB, WORLD_APERTURE);
		world_write(&w.context, a[i], 0, 0x20 + i);
	}
	client_submit(&w.context);
	world_submit_write(&late, target, 0, 0x77);
	for (uint32_t i = 0; i < 4; i++) {
		(void)scripted_complete(w.m, 1, UINT32_MAX);
		vidmm_settle(w.client.host);
		assert_int_equal(world_render_submits(&w), 1);
	}
	world_run(&w);
	assert_int_equal(world_render_submits(&w), 2);
	assert_int_equal(world_word(&w, target, 0), 0x77);
	for (uint32_t i = 0; i < 16; i++)
		assert_int_equal(world_word(&w, a[i], 0), 0x20 + i);
	world_stop(&w);
}

static void dma_06_buffers_start_at_page_boundaries(void **state)
{
	struct world w;
	D3DKMT_HANDLE a[40];

	world_start(&w, state, NULL);
	w.m->settings.complete_at_once = true;
	for (uint32_t i = 0; i < 40;
	     /* several DMA buffers, and more paging operations than one paging buffer holds */
	     i++) {
		a[i] = world_allocate(&w, 4 * MIB, 0);
		world_submit_use(&w.context, a[i]);
	}
	world_run(&w);
	for (uint32_t i = 0; i < scripted_count(w.m, VIDMM_DDI_RENDER); i++) {
		const DXGKARG_RENDER *render = &scripted_nth(w.m, VIDMM_DDI_RENDER, i)->in.render;

		assert_int_equal((uintptr_t)render->pDmaBuffer % PAGE_BYTES, 0);
		assert_int_equal(render->DmaBufferPhysicalAddress.QuadPart % PAGE_BYTES, 0);
	}
	for (uint32_t i = 0; i < scripted_count(w.m, VIDMM_DDI_BUILD_PAGING_BUFFER); i++) {
		const DXGKARG_BUILDPAGINGBUFFER *p =
			&scripted_nth(w.m, VIDMM_DDI_BUILD_PAGING_BUFFER, i)->in.paging;

		if (p->DmaSize == w.m->settings.paging_bytes) /* a new one */
			assert_int_equal((uintptr_t)p->pDmaBuffer % PAGE_BYTES, 0);
	}
	world_stop(&w);
}

/* ---- private data ---- */

struct private_watch {
	uint64_t token; /* 0: not rendered yet */
	void *block;
	uint32_t renders, patches, submits;
	bool wrong;
};

/* Only the miniport writes here: zero at first, then what it left. */
static void watch_private(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	struct private_watch *watch = context;

	(void)m;
	if (call->ddi == VIDMM_DDI_RENDER) {
		const uint64_t *words = call->in.render.pDmaBufferPrivateData;

		watch->block = call->in.render.pDmaBufferPrivateData;
		watch->wrong |= call->in.render.DmaBufferPrivateDataSize != 64;
		for (uint32_t i = 0; i < 8; i++)
			watch->wrong |= words[i] != (watch->token ? watch->token + i : 0);
		watch->token = 0x1234567800000000u + ++watch->renders * 0x100u;
		for (uint32_t i = 0; i < 8; i++)
			((uint64_t *)watch->block)[i] = watch->token + i;
	} else if (call->ddi == VIDMM_DDI_PATCH && !call->in.patch.Flags.Paging) {
		watch->patches++;
		watch->wrong |= call->in.patch.pDmaBufferPrivateData != watch->block ||
				call->in.patch.DmaBufferPrivateDataSize != 64 ||
				*(uint64_t *)watch->block != watch->token;
	} else if (call->ddi == VIDMM_DDI_SUBMIT_COMMAND && !call->in.submit.Flags.Paging) {
		watch->submits++;
		watch->wrong |= call->in.submit.pDmaBufferPrivateData != watch->block ||
				call->in.submit.DmaBufferPrivateDataSize != 64 ||
				((uint64_t *)watch->block)[7] != watch->token + 7;
	}
}

static void dma_07_private_data_is_zeroed_once_and_written_by_the_miniport_only(void **state)
{
	struct world w;
	struct private_watch watch = {0};

	world_start(&w, state, NULL);
	w.m->hook = watch_private;
	w.m->hook_context = &watch;
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	/* one after the other, so it is the same buffer each time */
	for (uint32_t i = 0; i < 5; i++) {
		world_submit_use(&w.context, a);
		world_run(&w);
	}
	assert_int_equal(watch.renders, 5);
	assert_int_equal(watch.patches, 5);
	assert_int_equal(watch.submits, 5);
	assert_false(watch.wrong);
	world_stop(&w);
}

static void no_private_data(struct scripted_miniport *m)
{
	m->settings.context.DmaBufferPrivateDataSize = 0;
}

static void dma_07_private_data_of_size_zero_is_a_null_pointer(void **state)
{
	struct world w;

	world_start(&w, state, no_private_data);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	world_submit_use(&w.context, a);
	world_run(&w);
	assert_null(scripted_nth(w.m, VIDMM_DDI_RENDER, 0)->in.render.pDmaBufferPrivateData);
	assert_null(world_nth_of(&w, VIDMM_DDI_PATCH, false, 0)->in.patch.pDmaBufferPrivateData);
	assert_null(world_nth_of(&w, VIDMM_DDI_SUBMIT_COMMAND, false, 0)
			    ->in.submit.pDmaBufferPrivateData);
	world_stop(&w);
}

/* ---- the render call's arguments ---- */

enum { ALLOCATIONS, PATCHES, OFFSET, LENGTH, FLAGS, WRONG_ARGUMENTS };

static void make_wrong(D3DDDICB_RENDER *args, const struct client_context *context, uint32_t which)
{
	switch (which) {
	case ALLOCATIONS:
		args->NumAllocations = context->c.AllocationListSize + 1;
		break;
	case PATCHES:
		args->NumPatchLocations = context->c.PatchLocationListSize + 1;
		break;
	case OFFSET:
		args->CommandOffset = args->CommandLength + 1;
		break;
	case LENGTH:
		args->CommandLength = context->c.CommandBufferSize + 1;
		break;
	default:
		args->Flags.Value = 0x10;
		break;
	}
}

static void dma_08_sizes_above_those_of_the_buffers_are_refused(void **state)
{
	struct world w;
	D3DDDICB_RENDER args;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	world_submit_use(&w.context, a);
	for (uint32_t which = 0; which < WRONG_ARGUMENTS; which++) {
		uint32_t renders = scripted_count(w.m, VIDMM_DDI_RENDER);

		world_use(&w.context, a);
		args = world_render_args(&w.context);
		make_wrong(&args, &w.context, which);
		assert_int_equal(world_render(&w.context, &args), E_INVALIDARG);
		world_expect_finding(&w, "DMA-08");
		assert_int_equal(args.QueuedBufferCount, UINT32_MAX);
		assert_int_equal(scripted_count(w.m, VIDMM_DDI_RENDER), renders);
	}
	world_use(&w.context, a);
	args = world_render_args(&w.context);
	assert_int_equal(world_render(&w.context, &args), S_OK);
	assert_int_equal(args.QueuedBufferCount, 2);
	world_run(&w);
	world_assert_fences(&w);
	world_stop(&w);
}

static void keep_first_command(void *context, struct scripted_miniport *m,
			       struct scripted_call *call)
{
	(void)m;
	if (call->ddi == VIDMM_DDI_RENDER)
		memcpy(context, call->in.render.pCommand, sizeof(struct scripted_command));
}

static void dma_08_exactly_full_buffers_are_accepted(void **state)
{
	struct scripted_command first;
	struct world w;

	world_start(&w, state, small_context);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	world_use(&w.context, a);
	D3DDDICB_RENDER args = world_render_args(&w.context);
	for (uint32_t i = 1; i < w.context.c.AllocationListSize; i++)
		w.context.c.pAllocationList[i] = (D3DDDI_ALLOCATIONLIST){.hAllocation = a};
	args.NumAllocations = w.context.c.AllocationListSize;
	args.NumPatchLocations = w.context.c.PatchLocationListSize;
	memset(w.context.c.pPatchLocationList, 0,
	       args.NumPatchLocations * sizeof(*w.context.c.pPatchLocationList));
	assert_int_equal(world_render(&w.context, &args), S_OK);
	assert_int_equal(scripted_last(w.m, VIDMM_DDI_RENDER)->in.render.PatchLocationListInSize,
			 args.NewPatchLocationListSize);
	/*
	 * CommandLength counts from the start of the buffer; the miniport gets the bytes from
	 * CommandOffset on.
	 */
	w.m->hook = keep_first_command;
	w.m->hook_context = &first;
	world_use(&w.context, a);
	world_write(&w.context, a, 4, 0x0FF5E7);
	args = world_render_args(&w.context);
	args.CommandOffset = sizeof(struct scripted_command);
	assert_int_equal(world_render(&w.context, &args), S_OK);
	const DXGKARG_RENDER *render = &scripted_last(w.m, VIDMM_DDI_RENDER)->in.render;
	assert_int_equal(render->CommandLength, sizeof(struct scripted_command));
	assert_int_equal(first.op, SCRIPTED_WRITE);
	assert_int_equal(first.value, 0x0FF5E7);
	/* An out-of-process client has its buffer copied (DMA-14). */
	if (!is_out_of_process(w.device.process))
		assert_ptr_equal(render->pCommand, (char *)w.context.c.pCommandBuffer +
							   sizeof(struct scripted_command));
	w.m->hook = NULL;
	world_stop(&w);
}

static void dma_09_only_live_contexts_of_the_device_render(void **state)
{
	struct world w;
	struct client_device other;
	struct client_context foreign, ended;
	D3DDDICB_RENDER args;

	world_start(&w, state, NULL);
	client_open(&w.client, &other);
	client_context(&other, 0, &foreign);
	client_context(&w.device, 0, &ended);
	HANDLE dead = ended.c.hContext;
	client_context_end(&ended);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	HANDLE wrong[] = {foreign.c.hContext, dead, &w, w.device.handle};
	for (uint32_t i = 0; i < 4; i++) {
		world_use(&w.context, a);
		args = world_render_args(&w.context);
		args.hContext = wrong[i];
		assert_int_equal(world_render(&w.context, &args), E_INVALIDARG);
		world_expect_finding(&w, "DMA-09");
		assert_int_equal(args.QueuedBufferCount, UINT32_MAX);
	}
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_RENDER), 0);
	D3DDDICB_DESTROYCONTEXT destroy = {.hContext = foreign.c.hContext};
	assert_int_equal(w.device.cb->pfnDestroyContextCb(w.device.handle, &destroy), E_INVALIDARG);
	world_expect_finding(&w, "DMA-09");
	world_submit_use(&w.context, a);
	world_run(&w);
	client_context_end(&foreign);
	client_close(&other);
	world_stop(&w);
}

static void dma_09_q_23_a_null_context_means_the_devices_first_context(void **state)
{
	struct world w;
	struct client_device other;
	struct client_context second;

	world_start(&w, state, NULL);
	client_context(&w.device, 0, &second);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	world_submit_use(&w.context, a);
	HANDLE first = scripted_last(w.m, VIDMM_DDI_RENDER)->handle;
	world_use(&w.context, a);
	D3DDDICB_RENDER args = world_render_args(&w.context);
	args.hContext = NULL;
	assert_int_equal(world_render(&w.context, &args), S_OK);
	assert_ptr_equal(args.pNewCommandBuffer, w.context.c.pCommandBuffer);
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_RENDER), 2);
	assert_ptr_equal(scripted_last(w.m, VIDMM_DDI_RENDER)->handle, first);
	world_run(&w);
	/*
	 * A device without contexts; then this device after its first context was destroyed: the
	 * second context is not the default.
	 */
	client_open(&w.client, &other);
	args = (D3DDDICB_RENDER){.CommandLength = 8};
	assert_int_equal(other.cb->pfnRenderCb(other.handle, &args), E_INVALIDARG);
	world_expect_finding(&w, "DMA-09");
	client_close(&other);
	client_context_end(&w.context);
	assert_int_equal(w.device.cb->pfnRenderCb(w.device.handle, &args), E_INVALIDARG);
	world_expect_finding(&w, "DMA-09");
	D3DDDICB_DESTROYCONTEXT destroy = {0};
	assert_int_equal(w.device.cb->pfnDestroyContextCb(w.device.handle, &destroy), E_INVALIDARG);
	world_expect_finding(&w, "DMA-09");
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_RENDER), 2);
	client_context_end(&second);
	world_stop(&w);
}

/*
 * Flags that are not supported are refused, so that a client does not rely on them; reserved bits
 * are refused too.
 */
static void q_22_unsupported_and_reserved_creation_flags_are_refused(void **state)
{
	static const struct {
		uint32_t flags;
		HRESULT result;
	} cases[] = {
		{0x0, S_OK},          {0x1, S_OK}, /* NullRendering */
		{0x2, E_NOTIMPL},     {0x4, E_NOTIMPL},
		{0x8, E_NOTIMPL},     {0x10, E_NOTIMPL},
		{0x20, E_NOTIMPL},    {0x3, E_NOTIMPL},
		{0x40, E_INVALIDARG}, {0x80000000, E_INVALIDARG},
		{0x41, E_INVALIDARG},
	};
	struct world w;

	world_start(&w, state, NULL);
	uint32_t made = scripted_count(w.m, VIDMM_DDI_CREATE_CONTEXT);
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		D3DDDICB_CREATECONTEXT args = {.hContext = &w};

		args.Flags.Value = cases[i].flags;
		assert_int_equal(w.device.cb->pfnCreateContextCb(w.device.handle, &args),
				 cases[i].result);
		if (cases[i].result == S_OK) {
			const D3DDDICB_DESTROYCONTEXT destroy = {.hContext = args.hContext};

			assert_int_equal(
				w.device.cb->pfnDestroyContextCb(w.device.handle, &destroy), S_OK);
			made++;
		} else {
			assert_ptr_equal(args.hContext, &w);
		}
		if (cases[i].result == E_INVALIDARG)
			world_expect_finding(&w, "Q-22");
		assert_int_equal(w.client.findings, 0);
	}
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_CREATE_CONTEXT), made);
	world_stop(&w);
}

static void dma_11_the_buffers_are_usable_after_a_failure(void **state)
{
	struct world w;
	D3DDDICB_RENDER args;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	scripted_fail(w.m, VIDMM_DDI_RENDER, STATUS_INVALID_PARAMETER, 1);
	world_use(&w.context, a);
	args = world_render_args(&w.context);
	assert_int_equal(world_render(&w.context, &args), E_INVALIDARG);
	assert_ptr_equal(args.pNewCommandBuffer, w.context.c.pCommandBuffer);
	assert_ptr_equal(args.pNewAllocationList, w.context.c.pAllocationList);
	assert_ptr_equal(args.pNewPatchLocationList, w.context.c.pPatchLocationList);
	assert_int_equal(args.NewCommandBufferSize, w.context.c.CommandBufferSize);
	world_write(&w.context, a, 0, 0xABCD);
	client_submit(&w.context);
	world_run(&w);
	assert_int_equal(*(uint32_t *)client_lock(&w.device, a, 0), 0xABCD);
	world_stop(&w);
}

static void dma_13_the_queued_count_includes_this_submission(void **state)
{
	struct world w;
	struct client_context second;
	D3DDDICB_RENDER args;

	world_start(&w, state, NULL);
	client_context(&w.device, 1, &second);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	for (uint32_t i = 1; i <= 5; i++) {
		world_use(&w.context, a);
		args = world_render_args(&w.context);
		assert_int_equal(world_render(&w.context, &args), S_OK);
		assert_int_equal(args.QueuedBufferCount, i);
	}
	world_use(&second, a); /* counted by context */
	args = world_render_args(&second);
	assert_int_equal(world_render(&second, &args), S_OK);
	assert_int_equal(args.QueuedBufferCount, 1);
	world_run(&w);
	world_use(&w.context, a);
	args = world_render_args(&w.context);
	assert_int_equal(world_render(&w.context, &args), S_OK);
	assert_int_equal(args.QueuedBufferCount, 1);
	world_stop(&w);
}

/* ---- a miniport without contexts ---- */

static void without_contexts(struct scripted_miniport *m)
{
	m->settings.caps.SchedulingCaps.MultiEngineAware = 0;
	m->settings.caps.MemoryManagementCaps.PagingNode = 0;
	m->settings.table.DxgkDdiCreateContext = NULL;
	m->settings.table.DxgkDdiDestroyContext = NULL;
}

static void keep_device(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	(void)m;
	if (call->ddi == VIDMM_DDI_CREATE_DEVICE && !call->in.create_device.Flags.SystemDevice)
		*(HANDLE *)context = ((DXGKARG_CREATEDEVICE *)call->args)->hDevice;
}

static void dma_33_without_multi_engine_the_device_handle_replaces_the_context(void **state)
{
	struct world w;
	HANDLE device = NULL;

	world_start_adapter(&w, state, without_contexts);
	w.m->hook = keep_device;
	w.m->hook_context = &device;
	client_open(&w.client, &w.device);
	client_context(&w.device, 0, &w.context);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	world_write(&w.context, a, 0, 0xBEEF);
	client_submit(&w.context);
	world_run(&w);
	assert_non_null(device);
	assert_ptr_equal(scripted_nth(w.m, VIDMM_DDI_RENDER, 0)->handle, device);
	assert_ptr_equal(world_nth_of(&w, VIDMM_DDI_PATCH, false, 0)->in.patch.hDevice, device);
	assert_ptr_equal(world_nth_of(&w, VIDMM_DDI_SUBMIT_COMMAND, false, 0)->in.submit.hDevice,
			 device);
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_CREATE_CONTEXT), 0);
	assert_int_equal(*(uint32_t *)client_lock(&w.device, a, 0), 0xBEEF);
	world_stop(&w);
}

static void dma_33_without_multi_engine_device_info_must_give_buffer_sizes(void **state)
{
	struct world w;
	D3DDDICB_CREATECONTEXT c = {0};

	world_start_adapter(&w, state, without_contexts);
	w.m->settings.leave_device_info = true;
	client_open(&w.client, &w.device);
	assert_int_equal(w.device.cb->pfnCreateContextCb(w.device.handle, &c), E_INVALIDARG);
	world_expect_finding(&w, "DMA-33");
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(dma_01_first_buffers_are_as_large_as_the_miniport_asked),
		ON_BOTH(dma_01_a_context_without_buffers_is_refused),
		ON_SIM(dma_01_a_miniport_without_memory_fails_the_creation),
		ON_SIM(dma_02_dma_12_sizes_never_drop_below_starting_values),
		ON_BOTH(dma_03_a_dma_buffer_segment_set_with_a_memory_segment_is_refused),
		ON_BOTH(dma_04_without_a_segment_the_buffer_is_in_system_memory),
		ON_BOTH(dma_05_a_buffer_in_an_aperture_is_mapped_before_its_first_use),
		ON_BOTH(dma_05_idle_content_is_evicted_from_a_full_aperture_for_a_buffer),
		ON_BOTH(dma_05_submissions_take_turns_if_one_buffer_fits_the_aperture),
		ON_BOTH(dma_05_idle_buffers_are_unmapped_for_a_working_set),
		ON_SIM(dma_05_the_first_buffer_waits_while_the_aperture_is_in_use),
		ON_BOTH(dma_06_buffers_start_at_page_boundaries),
		ON_BOTH(dma_07_private_data_is_zeroed_once_and_written_by_the_miniport_only),
		ON_BOTH(dma_07_private_data_of_size_zero_is_a_null_pointer),
		ON_BOTH(dma_08_sizes_above_those_of_the_buffers_are_refused),
		ON_SIM(dma_08_exactly_full_buffers_are_accepted),
		ON_BOTH(dma_09_only_live_contexts_of_the_device_render),
		ON_BOTH(dma_09_q_23_a_null_context_means_the_devices_first_context),
		ON_BOTH(q_22_unsupported_and_reserved_creation_flags_are_refused),
		ON_BOTH(dma_11_the_buffers_are_usable_after_a_failure),
		ON_BOTH(dma_13_the_queued_count_includes_this_submission),
		ON_BOTH(dma_33_without_multi_engine_the_device_handle_replaces_the_context),
		ON_SIM(dma_33_without_multi_engine_device_info_must_give_buffer_sizes),
	};

	return cmocka_run_group_tests_name("sched buffers", tests, NULL, NULL);
}
