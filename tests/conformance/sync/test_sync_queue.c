/* SPDX-License-Identifier: MIT */
/* Waits and signals in the order of a context's queue, and whom they hold up (SYN-25 to SYN-28, MFN-28 to MFN-34, SUB-28). */
#include "queue_world.h"

#include <sys/eventfd.h>
#include <unistd.h>

#define AT_SUBMISSION 0x1u
#define CPU_EVENT     0x2u
#define REWIND        0x4u

static void sub_28_syn_25_syn_26_mfn_29_a_wait_holds_its_context_alone(void **state)
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
	assert_int_equal(*g.value, 0); /* a later signal of that context is held, too */
	assert_int_equal(queue_cpu_signal(a, f.handle, 1), STATUS_SUCCESS);
	queue_assert_order(&p, "aa");
	assert_int_equal(*g.value, 0);
	priority_complete(&p, 1);
	assert_int_equal(*g.value, 1);
	priority_complete(&p, 1);
	priority_stop(&p);
}

static void mfn_28_sfl_14_sfl_21_a_signal_comes_after_the_buffers_before_it(void **state)
{
	struct priority_world p;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a');
	/* Top of the pipeline: a buffer that is complete has been fetched. */
	struct queue_fence f = queue_fence(a, 0, 0), top = queue_fence(a, 0x8, 0),
			   packets = queue_fence(a, 0x80, 0);
	assert_int_equal(lane_signal(a, f.handle, 1), STATUS_SUCCESS);
	assert_int_equal(*f.value, 1); /* nothing is before it */
	lane_render(a);
	assert_int_equal(lane_signal(a, f.handle, 2), STATUS_SUCCESS);
	assert_int_equal(lane_signal(a, top.handle, 2), STATUS_SUCCESS);
	lane_render(a);
	assert_int_equal(lane_signal(a, f.handle, 3), STATUS_SUCCESS);
	assert_int_equal(lane_signal(a, top.handle, 3), STATUS_SUCCESS);
	assert_int_equal(lane_signal(a, packets.handle, 7), STATUS_SUCCESS);
	assert_int_equal(*f.value, 1);
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

/* Three are queued, two with the miniport. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(sub_28_syn_25_syn_26_mfn_29_a_wait_holds_its_context_alone),
		ON_BOTH(mfn_28_sfl_14_sfl_21_a_signal_comes_after_the_buffers_before_it),
		ON_BOTH(syn_27_a_signal_at_submission_does_not_wait_for_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
