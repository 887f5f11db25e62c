/* SPDX-License-Identifier: MIT */
/*
 * Clients that always have work, beside one that needs their memory: its MakeResident, or its
 * packet, is done after a bounded number of packets. The segment has 16 MiB.
 */
#include "hw_world.h"

/* Packets that a busy client has queued before another needs its memory. */
#define AHEAD      2u
/* Submissions that overtake an operation that waits for the GPU. */
#define OVERTAKING 64u
/* More packets than any bound here: without a bound the tests would not end. */
#define MANY       1000u

struct fairness {
	struct world w;
	struct client_device busy; /* a second process; w.device is that of the first */
	struct client_context busys;
	D3DDDICB_CREATEPAGINGQUEUE queue, busy_queue;
};

static void start(struct fairness *f, void **state)
{
	world_start(&f->w, state, wddm2_0);
	client_open(&f->w.client, &f->busy);
	client_context(&f->busy, 0, &f->busys);
	f->queue = wddm2_queue(&f->w.device);
	f->busy_queue = wddm2_queue(&f->busy);
}

static void stop(struct fairness *f)
{
	wddm2_run(&f->w);
	f->w.m->settings.complete_at_once = true;
	client_context_end(&f->busys);
	client_close(&f->busy);
	wddm2_stop(&f->w);
}

static D3DKMT_HANDLE busy_list(struct fairness *f, uint64_t bytes)
{
	D3DKMT_HANDLE a = wddm2_allocate(&f->busy, bytes, WORLD_MEMORY);

	wddm2_make(&f->w, &f->busy, &f->busy_queue, &a, 1);
	return a;
}

/* The busy client submits one packet more, and the GPU completes its oldest and all paging. */
static void go_on(struct fairness *f, D3DKMT_HANDLE a)
{
	world_submit_use(&f->busys, a);
	(void)scripted_complete(f->w.m, 0, 1);
	vidmm_settle(f->w.client.host);
	while (scripted_complete(f->w.m, 1, 1))
		vidmm_settle(f->w.client.host);
}

/* Returns how many packets the busy client submits until the fence has the value. */
static uint32_t packets_until(struct fairness *f, D3DKMT_HANDLE a, uint64_t value)
{
	uint32_t packets = 0;

	while (wddm2_fence(&f->queue) < value && packets < MANY) {
		go_on(f, a);
		packets++;
	}
	return packets;
}

static void q_495_makeresident_is_done_beside_a_process_that_keeps_submitting(void **state)
{
	D3DDDI_MAKERESIDENT args;
	struct fairness f;

	start(&f, state);
	D3DKMT_HANDLE all = busy_list(&f, 12 * MIB),
		      mine = wddm2_allocate(&f.w.device, 8 * MIB, WORLD_MEMORY);
	for (uint32_t i = 0; i < AHEAD; i++)
		world_submit_use(&f.busys, all);
	(void)client_told(&f.w.client, 0, "");
	assert_int_equal(wddm2_try_make_one(&f.w.device, &f.queue, mine, &args), E_PENDING);
	assert_in_range(packets_until(&f, all, args.PagingFenceValue), 1, OVERTAKING + AHEAD + 2);
	assert_true(client_told(&f.w.client, STATUS_PENDING, "Q-495"));
	/* Both clients' packets run, although their memory does not fit together. */
	world_submit_write(&f.w.context, mine, 4, 0x77);
	for (uint32_t i = 0; i < MANY; i++)
		go_on(&f, all);
	wddm2_run(&f.w);
	f.w.m->settings.complete_at_once = true; /* the lock may wait for paging */
	assert_int_equal(world_word(&f.w, mine, 4), 0x77);
	stop(&f);
}

/* The other way round: a packet needs memory that a client moves in and out without a pause. */
static void q_495_a_packet_runs_beside_a_process_that_keeps_making_resident(void **state)
{
	D3DDDI_MAKERESIDENT args;
	D3DKMT_HANDLE moved[2];
	struct fairness f;
	uint32_t calls = 0;

	start(&f, state);
	D3DKMT_HANDLE all = busy_list(&f, 12 * MIB);
	for (uint32_t i = 0; i < 2; i++) {
		moved[i] = wddm2_allocate(&f.w.device, 6 * MIB, WORLD_MEMORY);
		assert_int_equal(wddm2_try_make_one(&f.w.device, &f.queue, moved[i], &args),
				 E_PENDING);
	}
	world_submit_use(&f.busys, all);
	while (!world_render_submits(&f.w) && calls < MANY) {
		D3DKMT_HANDLE a = moved[calls++ % 2];

		assert_int_equal(wddm2_evict(&f.w.device, a, 0), S_OK);
		HRESULT result = wddm2_try_make_one(&f.w.device, &f.queue, a, &args);
		assert_true(result == S_OK || result == E_PENDING);
		(void)scripted_complete(f.w.m, 1, 1);
		vidmm_settle(f.w.client.host);
	}
	assert_in_range(calls, 1, 8);
	stop(&f);
}

static void set_class(const struct client_device *device, D3DKMT_SCHEDULINGPRIORITYCLASS class)
{
	vidmm_d3dkmt_attach(device->process);
	vidmm_d3dkmt_enter(device->process);
	assert_int_equal(D3DKMTSetProcessSchedulingPriorityClass((HANDLE)(intptr_t)-1, class),
			 STATUS_SUCCESS);
	vidmm_d3dkmt_enter(NULL);
}

/*
 * A packet of the idle class uses the memory, and packets of the highest class, which use none of
 * it, never leave the node idle: the waiting client must not wait for both.
 */
static void q_495_makeresident_is_done_behind_a_packet_of_the_idle_class(void **state)
{
	D3DDDI_MAKERESIDENT args;
	struct client_device idle;
	struct client_context idles;
	struct fairness f;

	start(&f, state);
	client_open(&f.w.client, &idle);
	client_context(&idle, 0, &idles);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&idle);
	D3DKMT_HANDLE little = busy_list(&f, 64 * KIB),
		      most = wddm2_allocate(&idle, 12 * MIB, WORLD_MEMORY),
		      mine = wddm2_allocate(&f.w.device, 8 * MIB, WORLD_MEMORY);
	wddm2_make(&f.w, &idle, &queue, &most, 1);
	set_class(&f.busy, D3DKMT_SCHEDULINGPRIORITYCLASS_REALTIME);
	set_class(&idle, D3DKMT_SCHEDULINGPRIORITYCLASS_IDLE);
	for (uint32_t i = 0; i < AHEAD; i++)
		world_submit_use(&f.busys, little);
	world_submit_use(&idles, most);
	assert_int_equal(wddm2_try_make_one(&f.w.device, &f.queue, mine, &args), E_PENDING);
	assert_in_range(packets_until(&f, little, args.PagingFenceValue), 1,
			OVERTAKING + AHEAD + 4);
	wddm2_run(&f.w);
	f.w.m->settings.complete_at_once = true;
	client_context_end(&idles);
	client_close(&idle);
	stop(&f);
}

/* Queues of a higher priority are served first (RES-04), but do not keep others from their turn. */
static void q_495_res_04_a_queue_of_low_priority_is_served_beside_a_busy_one(void **state)
{
	D3DDDICB_CREATEPAGINGQUEUE low = {.Priority = D3DDDI_PAGINGQUEUE_PRIORITY_BELOW_NORMAL},
				   high = {.Priority = D3DDDI_PAGINGQUEUE_PRIORITY_ABOVE_NORMAL};
	D3DDDI_MAKERESIDENT args, more;
	struct fairness f;
	uint32_t calls = 0;

	start(&f, state);
	assert_int_equal(f.w.device.cb->pfnCreatePagingQueueCb(f.w.device.handle, &low), S_OK);
	assert_int_equal(f.busy.cb->pfnCreatePagingQueueCb(f.busy.handle, &high), S_OK);
	D3DKMT_HANDLE a[2] = {wddm2_allocate(&f.busy, 6 * MIB, WORLD_MEMORY),
			      wddm2_allocate(&f.busy, 6 * MIB, WORLD_MEMORY)},
		      mine = wddm2_allocate(&f.w.device, 8 * MIB, WORLD_MEMORY);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(wddm2_try_make_one(&f.busy, &high, a[i], &more), E_PENDING);
	world_submit_use(&f.busys, a[0]);
	assert_int_equal(wddm2_try_make_one(&f.w.device, &low, mine, &args), E_PENDING);
	while (wddm2_fence(&low) < args.PagingFenceValue && calls < MANY) {
		D3DKMT_HANDLE one = a[calls++ % 2];

		assert_int_equal(wddm2_evict(&f.busy, one, 0), S_OK);
		HRESULT result = wddm2_try_make_one(&f.busy, &high, one, &more);
		assert_true(result == S_OK || result == E_PENDING);
		go_on(&f, one);
	}
	assert_in_range(calls, 1, OVERTAKING + AHEAD + 4);
	stop(&f);
}

/* The packets that an operation holds back go on when its device ends instead. */
static void q_495_packets_go_on_after_the_device_that_waited(void **state)
{
	D3DDDI_MAKERESIDENT args;
	struct client_device other;
	struct fairness f;

	start(&f, state);
	client_open(&f.w.client, &other);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&other);
	D3DKMT_HANDLE all = busy_list(&f, 12 * MIB),
		      theirs = wddm2_allocate(&other, 8 * MIB, WORLD_MEMORY);
	world_submit_use(&f.busys, all);
	assert_int_equal(wddm2_try_make_one(&other, &queue, theirs, &args), E_PENDING);
	/* The GPU completes nothing of the first packet while the others are queued. */
	for (uint32_t i = 0; i < OVERTAKING / 2; i++)
		go_on(&f, all);
	client_close(&other);
	uint32_t before = world_render_submits(&f.w);
	for (uint32_t i = 0; i < OVERTAKING; i++)
		go_on(&f, all);
	assert_true(world_render_submits(&f.w) >= before + OVERTAKING - AHEAD);
	stop(&f);
}

/* ---- two that wait for the same memory ---- */

/*
 * Completes all paging, and the paging that follows from it. Returns how many packets that were:
 * the GPU goes on with its render packet meanwhile.
 */
static uint32_t finish_paging(struct fairness *f)
{
	uint32_t packets = 0;

	vidmm_settle(f->w.client.host);
	while (packets < MANY && scripted_complete(f->w.m, 1, 1)) {
		packets++;
		vidmm_settle(f->w.client.host);
	}
	return packets;
}

static void make_pending(struct client_device *device, const D3DDDICB_CREATEPAGINGQUEUE *queue,
			 D3DKMT_HANDLE *list, D3DDDI_MAKERESIDENT *args)
{
	*args = (D3DDDI_MAKERESIDENT){
		.hPagingQueue = queue->hPagingQueue, .NumAllocations = 2, .AllocationList = list};
	assert_int_equal(wddm2_try_make(device, args), E_PENDING);
}

/*
 * The packet has paged in a part of its list, and waits. An operation that waits, too, does not
 * evict that part again and again.
 */
static void q_495_a_packet_and_an_operation_that_wait_do_not_evict_each_other(void **state)
{
	D3DDDI_MAKERESIDENT args;
	struct client_device third;
	struct fairness f;

	start(&f, state);
	client_open(&f.w.client, &third);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&third);
	D3DKMT_HANDLE list[2] = {wddm2_allocate(&f.w.device, 4 * MIB, WORLD_MEMORY),
				 wddm2_allocate(&f.w.device, 8 * MIB, WORLD_MEMORY)},
		      wanted = wddm2_allocate(&third, 10 * MIB, WORLD_MEMORY);
	wddm2_make(&f.w, &f.w.device, &f.queue, list, 2);
	D3DKMT_HANDLE used = busy_list(&f, 8 * MIB);
	world_submit_use(&f.busys, used); /* the GPU has it until the end of the test */
	world_submit_write(&f.w.context, list[0], 4, 0x77);
	assert_int_equal(wddm2_try_make_one(&third, &queue, wanted, &args), E_PENDING);
	assert_in_range(finish_paging(&f), 0, 16);
	assert_true(wddm2_fence(&queue) < args.PagingFenceValue);
	/* Once the GPU is done both are done: first the packet, then the operation. */
	assert_int_equal(scripted_complete(f.w.m, 0, 1), 1);
	assert_in_range(finish_paging(&f), 1, 16);
	assert_int_equal(world_render_submits(&f.w), 2);
	wddm2_run(&f.w);
	assert_true(wddm2_fence(&queue) >= args.PagingFenceValue);
	f.w.m->settings.complete_at_once = true;
	assert_int_equal(world_word(&f.w, list[0], 4), 0x77);
	client_close(&third);
	stop(&f);
}

/* The same for operations of two queues: the older one is done first. */
static void q_495_two_operations_that_wait_do_not_evict_each_other(void **state)
{
	D3DDDI_MAKERESIDENT args, later;
	struct client_device third;
	struct fairness f;

	start(&f, state);
	client_open(&f.w.client, &third);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&third);
	D3DKMT_HANDLE list[2] = {wddm2_allocate(&f.w.device, 4 * MIB, WORLD_MEMORY),
				 wddm2_allocate(&f.w.device, 8 * MIB, WORLD_MEMORY)},
		      other[2] = {wddm2_allocate(&third, 6 * MIB, WORLD_MEMORY),
				  wddm2_allocate(&third, 8 * MIB, WORLD_MEMORY)},
		      used = busy_list(&f, 8 * MIB);
	world_submit_use(&f.busys, used);
	make_pending(&f.w.device, &f.queue, list, &args);
	make_pending(&third, &queue, other, &later);
	assert_in_range(finish_paging(&f), 0, 16);
	assert_true(wddm2_fence(&f.queue) < args.PagingFenceValue);
	assert_true(wddm2_fence(&queue) < later.PagingFenceValue);
	assert_int_equal(scripted_complete(f.w.m, 0, 1), 1);
	assert_in_range(finish_paging(&f), 1, 32);
	assert_true(wddm2_fence(&f.queue) >= args.PagingFenceValue);
	assert_true(wddm2_fence(&queue) >= later.PagingFenceValue);
	client_close(&third);
	stop(&f);
}

/* An operation that finds out that it waits for an unlock leaves the next one its turn. */
static void q_495_q_340_the_turn_passes_an_operation_that_waits_for_an_unlock(void **state)
{
	struct client_device third, fourth;
	D3DDDI_MAKERESIDENT args, later;
	struct fairness f;

	start(&f, state);
	client_open(&f.w.client, &third);
	client_open(&f.w.client, &fourth);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&third), last = wddm2_queue(&fourth);
	D3DKMT_HANDLE locked = wddm2_allocate(&third, 6 * MIB, WORLD_MEMORY),
		      mine = wddm2_allocate(&f.w.device, 12 * MIB, WORLD_MEMORY),
		      small = wddm2_allocate(&fourth, 4 * MIB, WORLD_MEMORY);
	wddm2_make(&f.w, &third, &queue, &locked, 1);
	assert_non_null(client_lock(&third, locked, 0));
	D3DKMT_HANDLE used = busy_list(&f, 8 * MIB);
	world_submit_use(&f.busys, used);
	assert_int_equal(wddm2_try_make_one(&f.w.device, &f.queue, mine, &args), E_PENDING);
	assert_int_equal(wddm2_try_make_one(&fourth, &last, small, &later), E_PENDING);
	(void)finish_paging(&f);
	/* With the end of the packet this memory is free: no paging follows from it. */
	assert_int_equal(client_deallocate(&f.busy, used), S_OK);
	assert_int_equal(scripted_complete(f.w.m, 0, 1), 1);
	(void)finish_paging(&f);
	assert_true(wddm2_fence(&last) >= later.PagingFenceValue);
	assert_true(wddm2_fence(&f.queue) < args.PagingFenceValue);
	assert_int_equal(client_unlock(&third, locked), S_OK);
	(void)finish_paging(&f);
	assert_true(wddm2_fence(&f.queue) >= args.PagingFenceValue);
	client_close(&fourth);
	client_close(&third);
	stop(&f);
}

/* ---- hardware scheduling ---- */

/* Two queues whose commands overlap: the memory of their device is in use at all times. */
static void q_495_makeresident_is_done_beside_busy_hardware_queues(void **state)
{
	D3DDDI_MAKERESIDENT args;
	uint32_t commands = 0;
	struct hw_world h;

	hw_start(&h, state, NULL);
	hw_listed(&h, h.device, 12 * MIB);
	struct hw_queue q[2] = {hw_queue(&h, h.context, 0), hw_queue(&h, h.context, 0)};
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&h.w.device);
	D3DKMT_HANDLE mine = wddm2_allocate(&h.w.device, 8 * MIB, WORLD_MEMORY);
	/* Paging at once: a client of a host gets pages after the old content has left. */
	h.w.m->settings.hw_by_hand = true;
	h.w.m->settings.complete_at_once = true;
	assert_int_equal(hw_submit(&q[0], 1), STATUS_SUCCESS);
	hw_settle(&h);
	assert_int_equal(wddm2_try_make_one(&h.w.device, &queue, mine, &args), E_PENDING);
	while (wddm2_fence(&queue) < args.PagingFenceValue && commands < MANY) {
		uint32_t i = ++commands % 2;

		assert_int_equal(hw_submit(&q[i], (commands + 2) / 2), STATUS_SUCCESS);
		hw_settle(&h);
		if (!h.w.m->hw_queue[0].context->suspended)
			(void)scripted_hw_complete(h.w.m, 1 - i, 1);
		hw_settle(&h);
	}
	assert_in_range(commands, 1, 8);
	hw_run(&h); /* the commands that were queued meanwhile are executed */
	assert_int_equal(hw_value(&q[commands % 2]), (commands + 2) / 2);
	hw_stop(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(q_495_makeresident_is_done_beside_a_process_that_keeps_submitting),
		ON_BOTH(q_495_a_packet_runs_beside_a_process_that_keeps_making_resident),
		ON_BOTH(q_495_makeresident_is_done_behind_a_packet_of_the_idle_class),
		ON_BOTH(q_495_res_04_a_queue_of_low_priority_is_served_beside_a_busy_one),
		ON_BOTH(q_495_packets_go_on_after_the_device_that_waited),
		ON_BOTH(q_495_a_packet_and_an_operation_that_wait_do_not_evict_each_other),
		ON_BOTH(q_495_two_operations_that_wait_do_not_evict_each_other),
		ON_BOTH(q_495_q_340_the_turn_passes_an_operation_that_waits_for_an_unlock),
		ON_BOTH(q_495_makeresident_is_done_beside_busy_hardware_queues),
	};

	return cmocka_run_group_tests_name("fairness", tests, NULL, NULL);
}
