/* SPDX-License-Identifier: MIT */
/*
 * DMA buffers that are mapped into an aperture, and what needs their space: MakeResident, packets,
 * commands of hardware queues, pinned allocations. Buffers that no packet needs are unmapped. What
 * waits for the others moves nothing again meanwhile. (Q-495, PAG-19, RES-08)
 */
#include "hw_world.h"

#define OVERLAY 0x100u /* DXGK_ALLOCATIONINFOFLAGS */

/* Two DMA buffers and what the tests make resident are more than the aperture of 16 MiB. */
static void large_buffers_before_wddm_2_0(struct scripted_miniport *m)
{
	m->settings.context.DmaBufferSegmentSet = WORLD_APERTURE;
	m->settings.context.DmaBufferSize = 5 * MIB;
}

static void large_buffers_in_the_aperture(struct scripted_miniport *m)
{
	wddm2_0(m);
	large_buffers_before_wddm_2_0(m);
}

static void large_buffers_beside_hardware_queues(struct scripted_miniport *m)
{
	hw_setup(m);
	large_buffers_before_wddm_2_0(m);
}

/* Submits two packets, whose buffers are mapped then. Returns an allocation that finds no space. */
static D3DKMT_HANDLE fill_the_aperture(struct world *w, const D3DDDICB_CREATEPAGINGQUEUE *queue)
{
	D3DKMT_HANDLE used = wddm2_allocate(&w->device, 64 * KIB, WORLD_MEMORY);

	wddm2_make(w, &w->device, queue, &used, 1);
	uint32_t before = wddm2_operations(w, DXGK_OPERATION_MAP_APERTURE_SEGMENT);
	world_submit_use(&w->context, used);
	world_submit_use(&w->context, used);
	assert_int_equal(wddm2_operations(w, DXGK_OPERATION_MAP_APERTURE_SEGMENT), before + 2);
	return wddm2_allocate(&w->device, 7 * MIB, WORLD_APERTURE);
}

static void expect_use(struct world *w, D3DKMT_HANDLE a)
{
	assert_int_equal(client_residency(&w->device, a),
			 D3DDDI_RESIDENCYSTATUS_RESIDENTINSHAREDMEMORY);
	world_submit_write(&w->context, a, 4, 0x77);
	wddm2_run(w);
	w->m->settings.complete_at_once = true;
	assert_int_equal(world_word(w, a, 4), 0x77);
}

/*
 * The GPU does all paging, but no packet. What waits for a buffer must not evict and page in memory
 * at each progress until the packets end.
 */
static void expect_little_paging(struct world *w)
{
	uint32_t paging = 0;

	do
		vidmm_settle(w->client.host);
	while (scripted_complete(w->m, 1, 1) && ++paging < 100);
	assert_in_range(paging, 0, 12);
}

static void q_495_res_03_makeresident_waits_for_dma_buffers_in_the_aperture(void **state)
{
	D3DDDI_MAKERESIDENT args;
	struct world w;

	world_start(&w, state, large_buffers_in_the_aperture);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = fill_the_aperture(&w, &queue);
	assert_int_equal(wddm2_try_make_one(&w.device, &queue, a, &args), E_PENDING);
	expect_little_paging(&w);
	assert_true(wddm2_fence(&queue) < args.PagingFenceValue);
	wddm2_await(&w, &queue, args.PagingFenceValue);
	expect_use(&w, a);
	wddm2_stop(&w);
}

static void q_495_res_03_makeresident_unmaps_dma_buffers_that_no_packet_needs(void **state)
{
	D3DDDI_MAKERESIDENT args;
	struct world w;

	world_start(&w, state, large_buffers_in_the_aperture);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = fill_the_aperture(&w, &queue);
	wddm2_run(&w);
	uint32_t before = wddm2_operations(&w, DXGK_OPERATION_UNMAP_APERTURE_SEGMENT);
	assert_int_equal(wddm2_try_make_one(&w.device, &queue, a, &args), E_PENDING);
	assert_int_equal(wddm2_operations(&w, DXGK_OPERATION_UNMAP_APERTURE_SEGMENT), before + 2);
	wddm2_await(&w, &queue, args.PagingFenceValue);
	expect_use(&w, a);
	wddm2_stop(&w);
}

static void q_495_an_operation_that_waits_for_buffers_moves_nothing_again(void **state)
{
	struct client_device other;
	D3DDDI_MAKERESIDENT args;
	struct world w;

	world_start(&w, state, large_buffers_in_the_aperture);
	client_open(&w.client, &other);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device), others = wddm2_queue(&other);
	D3DKMT_HANDLE idle = wddm2_allocate(&other, 8 * MIB, WORLD_MEMORY),
		      wanted = wddm2_allocate(&other, 7 * MIB, WORLD_APERTURE);
	wddm2_make(&w, &other, &others, &idle, 1);
	(void)fill_the_aperture(&w, &queue);
	assert_int_equal(wddm2_try_make_one(&other, &others, wanted, &args), E_PENDING);
	expect_little_paging(&w);
	wddm2_await(&w, &others, args.PagingFenceValue);
	wddm2_run(&w);
	w.m->settings.complete_at_once = true;
	client_close(&other);
	wddm2_stop(&w);
}

/* ---- packets ---- */

/* Another device: half of the memory is on its list, and an allocation in the aperture. */
struct second {
	struct client_device device;
	struct client_context context;
	D3DDDICB_CREATEPAGINGQUEUE queue;
	D3DKMT_HANDLE idle, wanted;
};

static void open_second(struct second *s, struct world *w, uint64_t idle_bytes)
{
	client_open(&w->client, &s->device);
	client_context(&s->device, 0, &s->context);
	s->queue = wddm2_queue(&s->device);
	s->idle = wddm2_allocate(&s->device, idle_bytes, WORLD_MEMORY);
	s->wanted = wddm2_allocate(&s->device, 7 * MIB, WORLD_APERTURE);
}

static void close_second(struct second *s, struct world *w)
{
	wddm2_run(w);
	w->m->settings.complete_at_once = true;
	client_close(&s->device);
}

static void q_495_a_packet_that_waits_for_buffers_moves_nothing_again(void **state)
{
	struct second s;
	struct world w;

	world_start(&w, state, large_buffers_in_the_aperture);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	open_second(&s, &w, 8 * MIB);
	wddm2_make(&w, &s.device, &s.queue, (const D3DKMT_HANDLE[]){s.idle, s.wanted}, 2);
	(void)fill_the_aperture(&w, &queue);
	world_submit_use(&s.context, s.idle);
	expect_little_paging(&w);
	assert_int_equal(world_render_submits(&w), 2);
	wddm2_run(&w);
	assert_int_equal(world_render_submits(&w), 3);
	close_second(&s, &w);
	wddm2_stop(&w);
}

/* Each has half of the memory on its list, and waits for the same space in the aperture. */
static void q_495_a_packet_and_makeresident_do_not_evict_each_other_for_buffers(void **state)
{
	struct second s, third;
	D3DDDI_MAKERESIDENT args;
	struct world w;

	world_start(&w, state, large_buffers_in_the_aperture);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	open_second(&s, &w, 9 * MIB);
	open_second(&third, &w, 9 * MIB);
	wddm2_make(&w, &third.device, &third.queue, &third.idle, 1);
	wddm2_make(&w, &s.device, &s.queue, (const D3DKMT_HANDLE[]){s.idle, s.wanted}, 2);
	(void)fill_the_aperture(&w, &queue);
	D3DKMT_HANDLE both[] = {third.idle, third.wanted};
	args = (D3DDDI_MAKERESIDENT){.hPagingQueue = third.queue.hPagingQueue,
				     .NumAllocations = 2,
				     .AllocationList = both};
	assert_int_equal(wddm2_try_make(&third.device, &args), E_PENDING);
	world_submit_use(&s.context, s.idle);
	expect_little_paging(&w);
	wddm2_await(&w, &third.queue, args.PagingFenceValue);
	wddm2_run(&w);
	assert_int_equal(world_render_submits(&w), 3);
	close_second(&third, &w);
	close_second(&s, &w);
	wddm2_stop(&w);
}

static void wait_before_wddm_2_0(void **state, bool and_what_they_use)
{
	struct world w;

	world_start(&w, state, large_buffers_before_wddm_2_0);
	D3DKMT_HANDLE used = world_allocate(&w, 64 * KIB, WORLD_MEMORY),
		      idle = world_allocate(&w, 8 * MIB, WORLD_MEMORY),
		      wanted = world_allocate(&w, 7 * MIB, WORLD_APERTURE);
	world_submit_use(&w.context, used);
	world_submit_use(&w.context, used);
	world_use(&w.context, idle);
	if (and_what_they_use)
		world_use(&w.context, used);
	world_use(&w.context, wanted);
	client_submit(&w.context);
	expect_little_paging(&w);
	assert_int_equal(world_render_submits(&w), 2);
	world_run(&w);
	assert_int_equal(world_render_submits(&w), 3);
	world_stop(&w);
}

static void q_495_spl_13_a_packet_of_wddm_1_moves_nothing_again_either(void **state)
{
	wait_before_wddm_2_0(state, false);
}

/* Nor does it if a part of its list is in use: that part cannot be placed anew yet. */
static void spl_13_a_packet_evicts_nothing_of_a_list_that_is_in_use(void **state)
{
	wait_before_wddm_2_0(state, true);
}

/* ---- commands of hardware queues ---- */

/* The list of the hardware context's device, part of which the buffers of two packets displace. */
static struct hw_queue fill_beside(struct hw_world *h, void **state, D3DKMT_HANDLE *used)
{
	hw_start(h, state, large_buffers_beside_hardware_queues);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&h->w.device);
	*used = wddm2_allocate(&h->w.device, 64 * KIB, WORLD_MEMORY);
	wddm2_make(&h->w, &h->w.device, &queue, used, 1);
	hw_make_resident(h, h->device, hw_allocate(h->device, 8 * MIB));
	hw_make_resident(h, h->device, hw_allocate_in(h->device, 7 * MIB, WORLD_APERTURE));
	(void)fill_the_aperture(&h->w, &queue);
	return hw_queue(h, h->context, 0);
}

static struct hw_queue fill_beside_hardware_queue(struct hw_world *h, void **state)
{
	D3DKMT_HANDLE used;

	return fill_beside(h, state, &used);
}

static void res_08_q_495_a_command_waits_for_dma_buffers_in_the_aperture(void **state)
{
	struct hw_world h;
	struct hw_queue q = fill_beside_hardware_queue(&h, state);

	assert_int_equal(hw_submit(&q, 1), STATUS_SUCCESS);
	expect_little_paging(&h.w);
	assert_int_equal(h.w.m->hw_queue[0].count, 0);
	assert_int_equal(hw_state_of(h.device), D3DKMT_DEVICEEXECUTION_ACTIVE);
	assert_int_equal(scripted_complete(h.w.m, 0, 2), 2);
	hw_run(&h);
	assert_int_equal(hw_value(&q), 1);
	hw_stop(&h);
}

static void res_08_q_495_a_command_unmaps_dma_buffers_that_no_packet_needs(void **state)
{
	struct hw_world h;
	struct hw_queue q = fill_beside_hardware_queue(&h, state);

	wddm2_run(&h.w);
	uint32_t before = wddm2_operations(&h.w, DXGK_OPERATION_UNMAP_APERTURE_SEGMENT);
	assert_int_equal(hw_submit(&q, 1), STATUS_SUCCESS);
	hw_settle(&h);
	assert_int_equal(wddm2_operations(&h.w, DXGK_OPERATION_UNMAP_APERTURE_SEGMENT), before + 2);
	hw_run(&h);
	assert_int_equal(hw_value(&q), 1);
	hw_stop(&h);
}

static void res_08_q_495_other_hardware_contexts_go_on_meanwhile(void **state)
{
	struct hw_world h;
	struct hw_queue q = fill_beside_hardware_queue(&h, state);

	assert_int_equal(hw_submit(&q, 1), STATUS_SUCCESS);
	expect_little_paging(&h.w);
	D3DKMT_HANDLE device = hw_device(&h);
	struct hw_queue other = hw_queue(&h, hw_context(device), 0);
	(void)hw_listing(device, 64 * KIB);
	assert_int_equal(hw_submit(&other, 1), STATUS_SUCCESS);
	expect_little_paging(&h.w);
	assert_int_equal(h.w.m->hw_queue[0].count, 0);
	assert_int_equal(h.w.m->hw_queue[1].count, 1);
	hw_run(&h);
	assert_int_equal(hw_value(&q), 1);
	hw_stop(&h);
}

/*
 * The other process submits packets, one of which is always on the GPU, until the miniport has seen
 * that call. The context waits only for the buffers that were pinned when it found no space.
 */
static void submit_until(struct hw_world *h, D3DKMT_HANDLE used, enum vidmm_ddi ddi)
{
	uint32_t before = scripted_count(h->w.m, ddi), packets = 0;

	while (scripted_count(h->w.m, ddi) == before && packets++ < 300) {
		assert_int_equal(scripted_complete(h->w.m, 0, 1), 1);
		expect_little_paging(&h->w);
		world_submit_use(&h->w.context, used);
		expect_little_paging(&h->w);
	}
	assert_in_range(packets, 1, 8);
}

static void res_08_q_495_a_command_runs_beside_a_process_that_keeps_submitting(void **state)
{
	struct hw_world h;
	D3DKMT_HANDLE used;
	struct hw_queue q = fill_beside(&h, state, &used);

	assert_int_equal(hw_submit(&q, 1), STATUS_SUCCESS);
	expect_little_paging(&h.w);
	assert_int_equal(h.w.m->hw_queue[0].count, 0);
	submit_until(&h, used, VIDMM_DDI_SUBMIT_COMMAND_TO_HW_QUEUE);
	hw_run(&h);
	assert_int_equal(hw_value(&q), 1);
	hw_stop(&h);
}

/* Its command runs when the packets come, so the context is suspended for their buffers. */
static void sch_11_q_495_a_suspended_context_is_resumed_beside_such_a_process(void **state)
{
	struct hw_world h;

	hw_start(&h, state, large_buffers_beside_hardware_queues);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&h.w.device);
	D3DKMT_HANDLE used = wddm2_allocate(&h.w.device, 64 * KIB, WORLD_MEMORY);
	wddm2_make(&h.w, &h.w.device, &queue, &used, 1);
	hw_make_resident(&h, h.device, hw_allocate_in(h.device, 7 * MIB, WORLD_APERTURE));
	struct hw_queue q = hw_queue(&h, h.context, 0);
	h.w.m->settings.hw_by_hand = true;
	assert_int_equal(hw_submit(&q, 1), STATUS_SUCCESS);
	hw_settle(&h);
	assert_int_equal(h.w.m->hw_queue[0].count, 1);
	world_submit_use(&h.w.context, used);
	world_submit_use(&h.w.context, used);
	expect_little_paging(&h.w);
	assert_true(scripted_count(h.w.m, VIDMM_DDI_SUSPEND_CONTEXT) >= 1);
	assert_int_equal(world_render_submits(&h.w), 2);
	submit_until(&h, used, VIDMM_DDI_RESUME_CONTEXT);
	hw_run(&h);
	assert_int_equal(hw_value(&q), 1);
	hw_stop(&h);
}

/* The list fits beside no buffer, and the other process has one pinned at all times. */
static void res_08_q_495_a_command_waits_64_times_and_then_its_device_is_in_error(void **state)
{
	struct hw_world h;
	uint32_t packets = 0;

	hw_start(&h, state, large_buffers_beside_hardware_queues);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&h.w.device);
	D3DKMT_HANDLE used = wddm2_allocate(&h.w.device, 64 * KIB, WORLD_MEMORY);
	wddm2_make(&h.w, &h.w.device, &queue, &used, 1);
	hw_make_resident(&h, h.device, hw_allocate_in(h.device, 12 * MIB, WORLD_APERTURE));
	struct hw_queue q = hw_queue(&h, h.context, 0);
	world_submit_use(&h.w.context, used);
	world_submit_use(&h.w.context, used);
	assert_int_equal(hw_submit(&q, 1), STATUS_SUCCESS);
	expect_little_paging(&h.w);
	assert_true(client_told(&h.w.client, STATUS_PENDING, "Q-495"));
	while (hw_state_of(h.device) == D3DKMT_DEVICEEXECUTION_ACTIVE && packets++ < 300) {
		assert_int_equal(scripted_complete(h.w.m, 0, 1), 1);
		expect_little_paging(&h.w);
		world_submit_use(&h.w.context, used);
		expect_little_paging(&h.w);
	}
	assert_in_range(packets, 32, 130);
	assert_int_equal(hw_state_of(h.device), D3DKMT_DEVICEEXECUTION_ERROR_OUTOFMEMORY);
	assert_int_equal(h.w.m->hw_queue[0].count, 0);
	assert_true(client_told(&h.w.client, STATUS_NO_VIDEO_MEMORY, "after waits for them"));
	hw_stop(&h);
}

struct during {
	struct hw_world *h;
	uint32_t calls;
};

/* DxgkDdiRender: the packet on the GPU completes while this thread has a buffer pinned. */
static void complete_one(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	struct during *during = context;

	if (call->ddi != VIDMM_DDI_RENDER || during->calls++)
		return;
	(void)scripted_complete(m, 0, 1);
	hw_settle(during->h);
}

static void render_in_vain(struct hw_world *h, D3DKMT_HANDLE used)
{
	scripted_fail(h->w.m, VIDMM_DDI_RENDER, STATUS_INVALID_PARAMETER, 1);
	world_use(&h->w.context, used);
	D3DDDICB_RENDER args = world_render_args(&h->w.context);
	assert_int_not_equal(world_render(&h->w.context, &args), S_OK);
	hw_forget(h);
	expect_little_paging(&h->w);
}

/* The end of a call that fails is all that the context waits for. */
static void res_08_q_495_the_end_of_a_translation_wakes_a_command(void **state)
{
	struct hw_world h;
	D3DKMT_HANDLE used;
	struct hw_queue q = fill_beside(&h, state, &used);
	struct during during = {&h, 0};

	assert_int_equal(hw_submit(&q, 1), STATUS_SUCCESS);
	expect_little_paging(&h.w);
	/* From here on the first packet's buffer is the next to be filled, and stays mapped. */
	assert_int_equal(scripted_complete(h.w.m, 0, 1), 1);
	hw_settle(&h);
	render_in_vain(&h, used);
	assert_int_equal(h.w.m->hw_queue[0].count, 0);
	h.w.m->hook = complete_one;
	h.w.m->hook_context = &during;
	render_in_vain(&h, used);
	h.w.m->hook = NULL;
	assert_int_equal(during.calls, 1);
	assert_int_equal(h.w.m->hw_queue[0].count, 1);
	hw_run(&h);
	assert_int_equal(hw_value(&q), 1);
	hw_stop(&h);
}

/* Each has more than half of the memory on its list, and waits for the same buffers. */
static void res_08_q_495_a_command_and_makeresident_do_not_evict_each_other(void **state)
{
	struct hw_world h;
	struct hw_queue q = fill_beside_hardware_queue(&h, state);
	D3DDDI_MAKERESIDENT args;
	struct second s;

	open_second(&s, &h.w, 9 * MIB);
	args = (D3DDDI_MAKERESIDENT){.hPagingQueue = s.queue.hPagingQueue,
				     .NumAllocations = 2,
				     .AllocationList = (D3DKMT_HANDLE[]){s.idle, s.wanted}};
	assert_int_equal(hw_submit(&q, 1), STATUS_SUCCESS);
	assert_int_equal(wddm2_try_make(&s.device, &args), E_PENDING);
	expect_little_paging(&h.w);
	wddm2_await(&h.w, &s.queue, args.PagingFenceValue);
	hw_run(&h);
	assert_int_equal(hw_value(&q), 1);
	close_second(&s, &h.w);
	hw_stop(&h);
}

/* ---- pinned allocations ---- */

/* Three buffers reach into the last fifth of the aperture. */
static void pag_19_creation_unmaps_dma_buffers_that_no_packet_needs(void **state)
{
	const struct scripted_allocation overlay = {.size_bytes = 3 * MIB,
						    .flags = OVERLAY,
						    .read_set = WORLD_APERTURE,
						    .write_set = WORLD_APERTURE};
	D3DKMT_HANDLE a = 0;
	struct world w;

	world_start(&w, state, large_buffers_before_wddm_2_0);
	D3DKMT_HANDLE used = world_allocate(&w, 64 * KIB, WORLD_MEMORY);
	for (uint32_t i = 0; i < 3; i++)
		world_submit_use(&w.context, used);
	assert_int_equal(wddm2_try_allocate(&w.device, &overlay, &a), D3DERR_OUTOFVIDEOMEMORY);
	assert_int_equal(a, 0);
	world_run(&w);
	assert_int_equal(wddm2_try_allocate(&w.device, &overlay, &a), S_OK);
	world_run(&w);
	assert_int_equal(client_residency(&w.device, a),
			 D3DDDI_RESIDENCYSTATUS_RESIDENTINSHAREDMEMORY);
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(q_495_res_03_makeresident_waits_for_dma_buffers_in_the_aperture),
		ON_BOTH(q_495_res_03_makeresident_unmaps_dma_buffers_that_no_packet_needs),
		ON_BOTH(q_495_an_operation_that_waits_for_buffers_moves_nothing_again),
		ON_BOTH(q_495_a_packet_that_waits_for_buffers_moves_nothing_again),
		ON_BOTH(q_495_a_packet_and_makeresident_do_not_evict_each_other_for_buffers),
		ON_BOTH(q_495_spl_13_a_packet_of_wddm_1_moves_nothing_again_either),
		ON_BOTH(res_08_q_495_a_command_waits_for_dma_buffers_in_the_aperture),
		ON_BOTH(res_08_q_495_a_command_unmaps_dma_buffers_that_no_packet_needs),
		ON_BOTH(spl_13_a_packet_evicts_nothing_of_a_list_that_is_in_use),
		ON_BOTH(res_08_q_495_other_hardware_contexts_go_on_meanwhile),
		ON_BOTH(res_08_q_495_a_command_runs_beside_a_process_that_keeps_submitting),
		ON_BOTH(sch_11_q_495_a_suspended_context_is_resumed_beside_such_a_process),
		ON_BOTH(res_08_q_495_a_command_waits_64_times_and_then_its_device_is_in_error),
		ON_BOTH(res_08_q_495_the_end_of_a_translation_wakes_a_command),
		ON_BOTH(res_08_q_495_a_command_and_makeresident_do_not_evict_each_other),
		ON_BOTH(pag_19_creation_unmaps_dma_buffers_that_no_packet_needs),
	};

	return cmocka_run_group_tests_name("aperture buffers", tests, NULL, NULL);
}
