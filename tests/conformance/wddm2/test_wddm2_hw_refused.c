/* SPDX-License-Identifier: MIT */
/*
 * Requests of the library that the system refuses while memory is prepared for a command of a
 * hardware queue. The segment has 16 MiB.
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(q_483_one_refused_request_does_not_cost_the_device_of_a_hardware_queue),
	};

	return cmocka_run_group_tests_name("wddm2_hw_refused", tests, NULL, NULL);
}
