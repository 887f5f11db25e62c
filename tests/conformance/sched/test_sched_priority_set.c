/* SPDX-License-Identifier: MIT */
/* Priorities that clients may set and read back: SCH-01 to SCH-04, and the options of SCH-06. */
#include "priority_world.h"

#define OWN_PROCESS ((HANDLE)(intptr_t)-1)

static void wddm2(struct scripted_miniport *m)
{
	scripted_set_version(m, DXGKDDI_INTERFACE_VERSION_WDDM2_0);
	m->settings.caps.WDDMVersion = DXGKDDI_WDDMv2;
}

/* In 2.x nothing is resident by itself, so the lane has no allocation. */
static struct lane *bare_lane(struct priority_world *p, uint32_t process)
{
	struct lane *lane = &p->lane[p->lanes++];
	D3DKMT_CREATECONTEXT args = {.hDevice = p->device[process]};

	*lane = (struct lane){
		.world = p, .process = p->process[process], .device = p->device[process]};
	lane_enter(lane);
	assert_int_equal(D3DKMTCreateContext(&args), STATUS_SUCCESS);
	lane->context = args.hContext;
	return lane;
}

static void refused(struct lane *lane, INT priority, NTSTATUS status, const char *rule)
{
	INT before = lane_priority_of(lane);

	assert_int_equal(lane_try_priority(lane, priority), status);
	world_expect_finding(&lane->world->w, rule);
	assert_int_equal(lane_priority_of(lane), before);
}

static void sch_01_priorities_minus_seven_to_seven_are_set_and_read_back(void **state)
{
	struct priority_world p;

	priority_start(&p, state, NULL, NULL, NULL);
	struct lane *lane = priority_lane(&p, 0, 'a');
	assert_int_equal(lane_priority_of(lane), 0);
	for (INT priority = -7; priority <= 7; priority++) {
		lane_priority(lane, priority);
		assert_int_equal(lane_priority_of(lane), priority);
	}
	refused(lane, 8, STATUS_INVALID_PARAMETER, "SCH-01");
	refused(lane, -8, STATUS_INVALID_PARAMETER, "SCH-01");
	refused(lane, INT32_MAX - ABSOLUTE, STATUS_INVALID_PARAMETER, "SCH-01");
	refused(lane, INT32_MIN, STATUS_INVALID_PARAMETER, "SCH-01");
	refused(lane, -1 - ABSOLUTE, STATUS_INVALID_PARAMETER, "SCH-01");
	priority_stop(&p);
}

static void sch_01_sch_03_invalid_context_handles_are_refused(void **state)
{
	struct priority_world p;

	priority_start(&p, state, NULL, NULL, NULL);
	struct lane *lane = priority_lane(&p, 0, 'a');
	D3DKMT_SETCONTEXTSCHEDULINGPRIORITY set = {.hContext = lane->context + 1};
	D3DKMT_GETCONTEXTSCHEDULINGPRIORITY get = {.hContext = lane->device, .Priority = 99};
	D3DKMT_SETCONTEXTINPROCESSSCHEDULINGPRIORITY set_in = {0};
	D3DKMT_GETCONTEXTINPROCESSSCHEDULINGPRIORITY get_in = {.Priority = 99};

	assert_int_equal(D3DKMTSetContextSchedulingPriority(&set), STATUS_INVALID_PARAMETER);
	world_expect_finding(&p.w, "HND-07");
	assert_int_equal(D3DKMTGetContextSchedulingPriority(&get), STATUS_INVALID_PARAMETER);
	world_expect_finding(&p.w, "HND-07");
	assert_int_equal(get.Priority, 99);
	assert_int_equal(D3DKMTSetContextInProcessSchedulingPriority(&set_in),
			 STATUS_INVALID_PARAMETER);
	world_expect_finding(&p.w, "HND-07");
	assert_int_equal(D3DKMTGetContextInProcessSchedulingPriority(&get_in),
			 STATUS_INVALID_PARAMETER);
	world_expect_finding(&p.w, "HND-07");
	assert_int_equal(get_in.Priority, 99);
	assert_int_equal(D3DKMTSetContextSchedulingPriority(NULL), STATUS_INVALID_PARAMETER);
	assert_int_equal(D3DKMTGetContextSchedulingPriority(NULL), STATUS_INVALID_PARAMETER);
	assert_int_equal(D3DKMTSetContextInProcessSchedulingPriority(NULL),
			 STATUS_INVALID_PARAMETER);
	assert_int_equal(D3DKMTGetContextInProcessSchedulingPriority(NULL),
			 STATUS_INVALID_PARAMETER);
	assert_int_equal(D3DKMTGetProcessSchedulingPriorityClass(OWN_PROCESS, NULL),
			 STATUS_INVALID_PARAMETER);
	client_forget(&p.w.client);
	/* A handle of another process is invalid here. */
	lane->process = p.process[1];
	assert_int_equal(lane_try_priority(lane, 1), STATUS_INVALID_PARAMETER);
	client_forget(&p.w.client);
	priority_stop(&p);
}

static void sch_02_absolute_levels_are_checked_by_band(void **state)
{
	static const INT free_ones[] = {0, 1}, reserved[] = {2, 9, 15, 31};
	struct priority_world p;

	priority_start(&p, state, wddm2, NULL, NULL);
	struct lane *lane = bare_lane(&p, 0);
	for (uint32_t i = 0; i < 2; i++) {
		lane_priority(lane, ABSOLUTE | free_ones[i]);
		assert_int_equal(lane_priority_of(lane), ABSOLUTE | free_ones[i]);
	}
	for (uint32_t i = 0; i < 4; i++)
		refused(lane, ABSOLUTE | reserved[i], STATUS_INVALID_PARAMETER, "SCH-02");
	refused(lane, ABSOLUTE | 0x20, STATUS_INVALID_PARAMETER, "SCH-02");
	refused(lane, ABSOLUTE | 16, STATUS_ACCESS_DENIED, "SCH-02");
	refused(lane, ABSOLUTE | 30, STATUS_ACCESS_DENIED, "SCH-02");
	vidmm_process_set_may_raise_priority(p.process[0], true);
	for (INT level = 16; level <= 30; level++) {
		lane_priority(lane, ABSOLUTE | level);
		assert_int_equal(lane_priority_of(lane), ABSOLUTE | level);
	}
	refused(lane, ABSOLUTE | 15, STATUS_INVALID_PARAMETER, "SCH-02");
	/* Only raising needs the privilege. */
	lane_priority(lane, ABSOLUTE | 20);
	vidmm_process_set_may_raise_priority(p.process[0], false);
	refused(lane, ABSOLUTE | 21, STATUS_ACCESS_DENIED, "SCH-02");
	lane_priority(lane, ABSOLUTE | 20);
	lane_priority(lane, ABSOLUTE | 16);
	lane_priority(lane, 0);
	refused(lane, ABSOLUTE | 16, STATUS_ACCESS_DENIED, "SCH-02");
	/* The privilege belongs to the process. */
	vidmm_process_set_may_raise_priority(p.process[1], true);
	refused(lane, ABSOLUTE | 16, STATUS_ACCESS_DENIED, "SCH-02");
	lane_priority(bare_lane(&p, 1), ABSOLUTE | 16);
	priority_stop(&p);
}

static void sch_02_absolute_levels_are_refused_before_wddm_2(void **state)
{
	struct priority_world p;

	priority_start(&p, state, NULL, NULL, NULL);
	struct lane *lane = priority_lane(&p, 0, 'a');
	vidmm_process_set_may_raise_priority(p.process[0], true);
	refused(lane, ABSOLUTE | 1, STATUS_INVALID_PARAMETER, "SCH-02");
	refused(lane, ABSOLUTE | 30, STATUS_INVALID_PARAMETER, "SCH-02");
	priority_stop(&p);
}

static INT in_process_of(struct lane *lane)
{
	D3DKMT_GETCONTEXTINPROCESSSCHEDULINGPRIORITY args = {.hContext = lane->context,
							     .Priority = 99};

	lane_enter(lane);
	assert_int_equal(D3DKMTGetContextInProcessSchedulingPriority(&args), STATUS_SUCCESS);
	return args.Priority;
}

static void sch_03_in_process_priority_zero_or_one_is_set_and_read_back(void **state)
{
	static const INT others[] = {-7, -1, 2, 7, INT32_MIN};
	struct priority_world p;

	priority_start(&p, state, NULL, NULL, NULL);
	struct lane *lane = priority_lane(&p, 0, 'a');
	assert_int_equal(in_process_of(lane), 0);
	lane_in_process(lane, 1);
	for (uint32_t i = 0; i < 5; i++) {
		const D3DKMT_SETCONTEXTINPROCESSSCHEDULINGPRIORITY args = {lane->context,
									   others[i]};

		assert_int_equal(D3DKMTSetContextInProcessSchedulingPriority(&args),
				 STATUS_INVALID_PARAMETER);
		world_expect_finding(&p.w, "SCH-03");
		assert_int_equal(in_process_of(lane), 1);
	}
	lane_in_process(lane, 0);
	assert_int_equal(in_process_of(lane), 0);
	assert_int_equal(lane_priority_of(lane), 0);
	priority_stop(&p);
}

static uint32_t class_of(struct priority_world *p, uint32_t process)
{
	D3DKMT_SCHEDULINGPRIORITYCLASS class = (D3DKMT_SCHEDULINGPRIORITYCLASS)99;

	vidmm_d3dkmt_enter(p->process[process]);
	assert_int_equal(D3DKMTGetProcessSchedulingPriorityClass(OWN_PROCESS, &class),
			 STATUS_SUCCESS);
	return (uint32_t) class;
}

static NTSTATUS try_class(HANDLE process, INT class)
{
	return D3DKMTSetProcessSchedulingPriorityClass(process,
						       (D3DKMT_SCHEDULINGPRIORITYCLASS) class);
}

static void sch_04_a_process_sets_one_of_six_classes_for_itself(void **state)
{
	struct priority_world p;
	D3DKMT_SCHEDULINGPRIORITYCLASS class = (D3DKMT_SCHEDULINGPRIORITYCLASS)99;

	priority_start(&p, state, NULL, NULL, NULL);
	assert_int_equal(class_of(&p, 0), D3DKMT_SCHEDULINGPRIORITYCLASS_NORMAL);
	for (uint32_t c = D3DKMT_SCHEDULINGPRIORITYCLASS_IDLE;
	     c <= D3DKMT_SCHEDULINGPRIORITYCLASS_REALTIME; c++) {
		process_class(&p, 0, c);
		assert_int_equal(class_of(&p, 0), c);
	}
	assert_int_equal(class_of(&p, 1), D3DKMT_SCHEDULINGPRIORITYCLASS_NORMAL);
	vidmm_d3dkmt_enter(p.process[0]);
	assert_int_equal(try_class(OWN_PROCESS, 6), STATUS_INVALID_PARAMETER);
	world_expect_finding(&p.w, "SCH-04");
	assert_int_equal(try_class(OWN_PROCESS, -1), STATUS_INVALID_PARAMETER);
	world_expect_finding(&p.w, "SCH-04");
	assert_int_equal(class_of(&p, 0), D3DKMT_SCHEDULINGPRIORITYCLASS_REALTIME);
	assert_int_equal(try_class(NULL, 1), STATUS_INVALID_PARAMETER);
	world_expect_finding(&p.w, "HND-07");
	assert_int_equal(D3DKMTGetProcessSchedulingPriorityClass(NULL, &class),
			 STATUS_INVALID_PARAMETER);
	world_expect_finding(&p.w, "HND-07");
	assert_int_equal(class, 99);
	priority_stop(&p);
}

static void start_is_refused(void **state, uint32_t slice_us, uint32_t patience_us)
{
	const struct vidmm_scheduling_options scheduling = {slice_us, patience_us};
	const struct client_options options = {.kind = *(uint32_t *)*state,
					       .scheduling = &scheduling};
	struct client client;

	assert_int_equal(client_try_start(&client, &options), STATUS_INVALID_PARAMETER);
	assert_true(client_found(&client, "SCH-06"));
	client_stop(&client);
}

static void sch_06_invalid_slice_options_are_refused(void **state)
{
	const struct vidmm_scheduling_options least = {1, 1};
	struct priority_world p;

	start_is_refused(state, 0, 100000);
	start_is_refused(state, 10000, 9999);
	start_is_refused(state, 10000, 0);
	priority_start(&p, state, NULL, NULL, &least);
	priority_stop(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(sch_01_priorities_minus_seven_to_seven_are_set_and_read_back),
		ON_BOTH(sch_01_sch_03_invalid_context_handles_are_refused),
		ON_BOTH(sch_02_absolute_levels_are_checked_by_band),
		ON_BOTH(sch_02_absolute_levels_are_refused_before_wddm_2),
		ON_BOTH(sch_03_in_process_priority_zero_or_one_is_set_and_read_back),
		ON_BOTH(sch_04_a_process_sets_one_of_six_classes_for_itself),
		ON_BOTH(sch_06_invalid_slice_options_are_refused),
	};

	return cmocka_run_group_tests_name("priorities set", tests, NULL, NULL);
}
