/* SPDX-License-Identifier: MIT */
/*
 * What fails while memory is prepared for a command of a hardware queue: requests of the library
 * that the system refuses, and the device. The segment has 16 MiB.
 */
#include "hw_world.h"

/*
 * The command needs memory that another process has to give up, and the n-th request for that is
 * refused. Returns false if there were fewer requests.
 */
static bool command_with_refused_request(void **state, uint32_t failure, uint32_t n)
{
	struct hw_world h;

	hw_start(&h, state, NULL);
	hw_listed(&h, h.device, 12 * MIB);
	struct hw_queue q = hw_queue(&h, h.context, 0);
	hw_theirs_in_memory(&h, 8 * MIB, 0);
	(void)vidmm_fail_nth(failure, n);
	NTSTATUS status = hw_submit(&q, 1);
	bool refused = vidmm_fail_nth(failure, 0) == 0;
	if (status == STATUS_NO_MEMORY)
		status = hw_submit(&q, 1);
	assert_int_equal(status, STATUS_SUCCESS);
	hw_run(&h);
	assert_int_equal(hw_state_of(h.device), D3DKMT_DEVICEEXECUTION_ACTIVE);
	assert_int_equal(hw_value(&q), 1);
	hw_forget(&h);
	hw_stop(&h);
	return refused;
}

static void q_483_one_refused_request_does_not_cost_the_device_of_a_hardware_queue(void **state)
{
	static const uint32_t failures[] = {VIDMM_FAIL_ALLOCATION, VIDMM_FAIL_MAPPING,
					    VIDMM_FAIL_UNMAPPING, VIDMM_FAIL_DESCRIPTOR};
	uint32_t requests = 0;

	for (uint32_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
		uint32_t n = 1;

		while (command_with_refused_request(state, failures[i], n))
			n++;
		requests += n - 1;
	}
	assert_int_not_equal(requests, 0);
}

/*
 * A command is on the GPU. Then a packet of the fixture's device takes its memory, and is on the
 * GPU itself; the context is suspended.
 */
static void suspend_by(struct hw_world *h, const struct hw_queue *q, D3DKMT_HANDLE theirs)
{
	assert_int_equal(hw_submit(q, 1), STATUS_SUCCESS);
	hw_settle(h);
	hw_use_theirs(h, theirs);
	assert_int_equal(scripted_count(h->w.m, VIDMM_DDI_SUSPEND_CONTEXT), 1);
}

/*
 * A packet of the other device has taken the memory of a command on the GPU. When the memory is to
 * come back, every request is refused, and nothing runs that would free some. The threads of the
 * simulator are one thread, so the refusals reach the worker.
 */
static void q_483_a_suspended_context_without_memory_costs_its_device(void **state)
{
	struct hw_world h;

	hw_start(&h, state, NULL);
	hw_listed(&h, h.device, 12 * MIB);
	struct hw_queue q = hw_queue(&h, h.context, 0);
	suspend_by(&h, &q, wddm2_allocate(&h.w.device, 8 * MIB, WORLD_MEMORY));
	(void)client_told(&h.w.client, 0, "");
	vidmm_fail_by_seed(1u << VIDMM_FAIL_MAPPING | 1u << VIDMM_FAIL_ALLOCATION, 1, 1);
	hw_run(&h);
	vidmm_fail_by_seed(0, 0, 0);
	assert_int_equal(hw_state_of(h.device), D3DKMT_DEVICEEXECUTION_ERROR_OUTOFMEMORY);
	assert_true(client_told(&h.w.client, (uint32_t)STATUS_NO_MEMORY, "Q-483"));
	assert_int_equal(scripted_count(h.w.m, VIDMM_DDI_RESUME_CONTEXT), 0);
	hw_forget(&h);
	hw_stop(&h);
}

/*
 * The context is RESUMING, off the GPU, and only the worker brings it back. A packet for which no
 * system memory is left must not keep the worker waiting for it.
 */
static void q_483_a_packet_does_not_wait_for_a_context_that_is_off_the_gpu(void **state)
{
	struct client_device third;
	struct client_context other;
	D3DDDI_MAKERESIDENT args;
	struct hw_world h;

	if (client_is_out_of_process()) /* the requests of the context are refused there */
		return;
	hw_start(&h, state, NULL);
	client_open(&h.w.client, &third);
	client_context(&third, 0, &other);
	D3DKMT_HANDLE z = wddm2_allocate(&third, 6 * MIB, WORLD_MEMORY);
	D3DDDICB_CREATEPAGINGQUEUE queue3 = wddm2_queue(&third), queue = wddm2_queue(&h.w.device);
	wddm2_make(&h.w, &third, &queue3, &z, 1);
	world_submit_use(&other, z);
	hw_run(&h);
	hw_listed(&h, h.device, 6 * MIB);
	struct hw_queue q = hw_queue(&h, h.context, 0);
	D3DKMT_HANDLE x = wddm2_allocate(&h.w.device, 16 * MIB, WORLD_MEMORY);
	suspend_by(&h, &q, x);
	(void)scripted_complete(h.w.m, 0, 1);
	hw_settle(&h);
	assert_int_equal(wddm2_evict(&h.w.device, x, 0), S_OK);
	hw_settle(&h);
	/* takes the rest of the segment, and may be evicted */
	D3DKMT_HANDLE v = wddm2_allocate(&h.w.device, 8 * MIB, WORLD_MEMORY);
	assert_int_equal(wddm2_try_make_one(&h.w.device, &queue, v, &args), E_PENDING);
	hw_settle(&h);
	assert_int_equal(wddm2_evict(&h.w.device, v, 1), S_OK);
	hw_settle(&h);
	assert_int_equal(scripted_count(h.w.m, VIDMM_DDI_RESUME_CONTEXT), 0);
	(void)client_told(&h.w.client, 0, "");
	vidmm_fail_by_seed(1u << VIDMM_FAIL_MAPPING | 1u << VIDMM_FAIL_ALLOCATION, 1, 1);
	world_submit_use(&other, z);
	do
		hw_settle(&h);
	while (scripted_complete_all(h.w.m));
	vidmm_fail_by_seed(0, 0, 0);
	assert_true(client_told(&h.w.client, (uint32_t)STATUS_NO_MEMORY, "Q-483"));
	hw_run(&h);
	assert_int_equal(scripted_count(h.w.m, VIDMM_DDI_RESUME_CONTEXT), 1);
	assert_int_equal(hw_value(&q), 1);
	hw_forget(&h);
	client_close(&third);
	hw_stop(&h);
}

/* The device fails while the paging for its suspended context is under way. */
static void sch_11_a_context_that_was_to_resume_ends_with_its_device(void **state)
{
	struct hw_world h;

	hw_start(&h, state, NULL);
	hw_listed(&h, h.device, 12 * MIB);
	struct hw_queue q = hw_queue(&h, h.context, 0);
	suspend_by(&h, &q, wddm2_allocate(&h.w.device, 8 * MIB, WORLD_MEMORY));
	(void)scripted_complete(h.w.m, 0, 1);
	hw_settle(&h);
	assert_int_equal(scripted_count(h.w.m, VIDMM_DDI_RESUME_CONTEXT), 0);
	D3DKMT_HANDLE more = hw_allocate(h.device, 8 * MIB);
	D3DDDI_MAKERESIDENT make = {.hPagingQueue = hw_paging_queue(h.device),
				    .NumAllocations = 1,
				    .AllocationList = &more,
				    .Flags = {.CantTrimFurther = 1, .MustSucceed = 1}};
	assert_int_equal(D3DKMTMakeResident(&make), STATUS_NO_MEMORY);
	assert_int_equal(hw_state_of(h.device), D3DKMT_DEVICEEXECUTION_ERROR_OUTOFMEMORY);
	hw_run(&h);
	hw_destroy_queue(&q);
	assert_int_equal(scripted_count(h.w.m, VIDMM_DDI_RESUME_CONTEXT), 0);
	hw_run(&h);
	hw_forget(&h);
	hw_stop(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(q_483_one_refused_request_does_not_cost_the_device_of_a_hardware_queue),
		ON_SIM(q_483_a_suspended_context_without_memory_costs_its_device),
		ON_SIM(q_483_a_packet_does_not_wait_for_a_context_that_is_off_the_gpu),
		ON_BOTH(sch_11_a_context_that_was_to_resume_ends_with_its_device),
	};

	return cmocka_run_group_tests_name("wddm2_hw_refused", tests, NULL, NULL);
}
