/* SPDX-License-Identifier: MIT */
/* Engines: order, time, waits, hangs, preemption requests and resets. */
#include "fixture.h"

#include <stdlib.h>

#define ON(index, where)                                 \
	{                                                \
		.allocation = (index), .offset = (where) \
	}
#define HEADER(opcode, flags, type)                          \
	{                                                    \
		SOFTGPU_##opcode, flags, sizeof(struct type) \
	}

struct scene {
	struct gpu *gpu;
	DXGK_ALLOCATIONLIST list[1]; /* 64 KiB of video memory at 0 */
	struct gpu_dma dma[4];
	uint64_t *words;
};

static struct scene *scene_create(struct gpu *gpu)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	struct softgpu_allocation spec = gpu_spec(16 * PAGE);
	int i;

	assert_non_null(scene);
	scene->gpu = gpu;
	scene->list[0] = gpu_entry(gpu_allocate(gpu, &spec), VRAM, 0, 1);
	for (i = 0; i < 4; i++)
		gpu_dma_init(gpu, &scene->dma[i], scene->list, 1);
	scene->words = (uint64_t *)(void *)gpu->vram.base;
	return scene;
}

static void scene_destroy(struct scene *scene)
{
	int i;

	for (i = 0; i < 4; i++)
		gpu_dma_finish(&scene->dma[i]);
	free(scene);
}

/* Renders into one of the four buffers and submits it; returns the fence. */
static uint32_t submit(struct scene *scene, int dma, uint32_t node, const void *commands,
		       uint32_t length)
{
	assert_int_equal(gpu_render_pass(scene->gpu, &scene->dma[dma], commands, length, NULL, 0),
			 STATUS_SUCCESS);
	return gpu_submit(scene->gpu, &scene->dma[dma], node, 0, scene->dma[dma].length);
}

static void settle_for(struct gpu *gpu, uint64_t nanoseconds)
{
	vmm_os_settle(gpu->os);
	vmm_os_sleep_until(gpu->os, vmm_os_now_ns(gpu->os) + nanoseconds);
	vmm_os_settle(gpu->os);
}

static void assert_completed(const DXGKARGCB_NOTIFY_INTERRUPT_DATA *interrupt, uint32_t fence,
			     uint32_t node)
{
	gpu_assert_completed(interrupt);
	assert_int_equal(interrupt->DmaCompleted.SubmissionFenceId, fence);
	assert_int_equal(interrupt->DmaCompleted.NodeOrdinal, node);
	assert_int_equal(interrupt->DmaCompleted.EngineOrdinal, 0);
}

static uint32_t current_fence(struct gpu *gpu, uint32_t node)
{
	DXGKARG_QUERYCURRENTFENCE query = {.NodeOrdinal = node};

	assert_int_equal(gpu->ddi.DxgkDdiQueryCurrentFence(gpu->adapter, &query), STATUS_SUCCESS);
	return query.CurrentFence;
}

static void packets_of_one_node_complete_in_submission_order(void **state)
{
	struct scene *scene = scene_create(*state);
	struct softgpu_stall long_stall = {HEADER(STALL, 0, softgpu_stall), 5000000};
	struct softgpu_stall short_stall = {HEADER(STALL, 0, softgpu_stall), 1000};
	uint32_t fence[4];
	int i;

	fence[0] = submit(scene, 0, 0, &long_stall, sizeof(long_stall));
	for (i = 1; i < 4; i++)
		fence[i] = submit(scene, i, 0, &short_stall, sizeof(short_stall));
	assert_int_equal(scene->gpu->interrupt_count, 0);
	gpu_wait_interrupts(scene->gpu, 4);
	for (i = 0; i < 4; i++)
		assert_completed(&scene->gpu->interrupts[i], fence[i], 0);
	assert_int_equal(current_fence(scene->gpu, 0), fence[3]);
	scene_destroy(scene);
}

static void sch_07_nodes_run_concurrently(void **state)
{
	struct scene *scene = scene_create(*state);
	struct softgpu_stall long_stall = {HEADER(STALL, 0, softgpu_stall), 5000000};
	struct softgpu_stall short_stall = {HEADER(STALL, 0, softgpu_stall), 1000};
	uint32_t slow = submit(scene, 0, 0, &long_stall, sizeof(long_stall));
	uint32_t fast = submit(scene, 1, 1, &short_stall, sizeof(short_stall));

	gpu_wait_interrupts(scene->gpu, 2);
	assert_completed(&scene->gpu->interrupts[0], fast, 1);
	assert_completed(&scene->gpu->interrupts[1], slow, 0);
	scene_destroy(scene);
}

/*
 * The time charged is the time that passes, to a tenth of a microsecond; rounding does not
 * accumulate.
 */
static void a_stall_takes_exactly_its_time(void **state)
{
	struct scene *scene = scene_create(*state);
	struct softgpu_stall stalls[10];
	uint64_t start = vmm_os_now_ns(scene->gpu->os), took;
	int i;

	for (i = 0; i < 10; i++)
		stalls[i] = (struct softgpu_stall){HEADER(STALL, 0, softgpu_stall), 12345};
	submit(scene, 0, 0, stalls, sizeof(stalls));
	gpu_wait_interrupts(scene->gpu, 1);
	took = scene->gpu->interrupt_ns[0] - start;
	assert_in_range(took, 123450 - 100, 123450 + 100);
	scene_destroy(scene);
}

static void a_command_without_stall_takes_no_time(void **state)
{
	struct scene *scene = scene_create(*state);
	struct softgpu_fill fill = {HEADER(FILL, 0, softgpu_fill), ON(0, 0), 4096, 1, 0};
	uint64_t start = vmm_os_now_ns(scene->gpu->os);

	submit(scene, 0, 0, &fill, sizeof(fill));
	vmm_os_settle(scene->gpu->os);
	assert_int_equal(scene->gpu->interrupt_count, 1);
	assert_int_equal(scene->gpu->interrupt_ns[0], start);
	scene_destroy(scene);
}

/* A portion executes exactly the range between its offsets. */
static void spl_03_a_portion_executes_only_its_range(void **state)
{
	struct scene *scene = scene_create(*state);
	struct softgpu_fill fills[2] = {
		{HEADER(FILL, 0, softgpu_fill), ON(0, 0), 8, 0x11111111, 0},
		{HEADER(FILL, 0, softgpu_fill), ON(0, 8), 8, 0x22222222, 0}};

	assert_int_equal(gpu_render_pass(scene->gpu, &scene->dma[0], fills, sizeof(fills), NULL, 0),
			 STATUS_SUCCESS);
	gpu_submit(scene->gpu, &scene->dma[0], 0, sizeof(fills[0]), sizeof(fills));
	gpu_wait_interrupts(scene->gpu, 1);
	assert_true(scene->words[0] == 0);
	assert_true(scene->words[1] == 0x2222222222222222u);
	gpu_submit(scene->gpu, &scene->dma[0], 0, 0, sizeof(fills[0]));
	gpu_wait_interrupts(scene->gpu, 2);
	assert_true(scene->words[0] == 0x1111111111111111u);
	scene_destroy(scene);
}

static void sub_22_null_rendering_signals_without_executing(void **state)
{
	struct scene *scene = scene_create(*state);
	struct softgpu_fill fill = {HEADER(FILL, 0, softgpu_fill), ON(0, 0), 8, 1, 0};
	DXGK_SUBMITCOMMANDFLAGS flags = {.NullRendering = 1};
	uint32_t fence;

	assert_int_equal(gpu_render_pass(scene->gpu, &scene->dma[0], &fill, sizeof(fill), NULL, 0),
			 STATUS_SUCCESS);
	fence = gpu_submit_flags(scene->gpu, &scene->dma[0], 0, flags);
	gpu_wait_interrupts(scene->gpu, 1);
	assert_completed(&scene->gpu->interrupts[0], fence, 0);
	assert_true(scene->words[0] == 0);
	scene_destroy(scene);
}

static void sub_20_an_empty_packet_only_signals(void **state)
{
	struct scene *scene = scene_create(*state);
	uint32_t fence = gpu_submit(scene->gpu, &scene->dma[0], 1, 0, 0);

	gpu_wait_interrupts(scene->gpu, 1);
	assert_completed(&scene->gpu->interrupts[0], fence, 1);
	scene_destroy(scene);
}

/* ---- WAIT and SIGNAL ---- */

static void a_wait_ends_when_another_node_signals(void **state)
{
	struct scene *scene = scene_create(*state);
	struct {
		struct softgpu_sync wait;
		struct softgpu_fill fill;
	} waiting = {{HEADER(WAIT, 0, softgpu_sync), ON(0, 8), 5},
		     {HEADER(FILL, 0, softgpu_fill), ON(0, 64), 8, 7, 0}};
	struct {
		struct softgpu_stall stall;
		struct softgpu_sync signal;
	} signalling = {{HEADER(STALL, 0, softgpu_stall), 3000000},
			{HEADER(SIGNAL, 0, softgpu_sync), ON(0, 8), 5}};
	uint32_t waits = submit(scene, 0, 0, &waiting, sizeof(waiting));
	uint32_t signals = submit(scene, 1, 1, &signalling, sizeof(signalling));

	gpu_wait_interrupts(scene->gpu, 2);
	assert_completed(&scene->gpu->interrupts[0], signals, 1);
	assert_completed(&scene->gpu->interrupts[1], waits, 0);
	assert_true(scene->words[1] == 5);
	assert_true(scene->words[8] == 0x0000000700000007u);
	/* The signal wakes the other engine, which does not wait for its next poll. */
	assert_int_equal(scene->gpu->interrupt_ns[1], scene->gpu->interrupt_ns[0]);
	scene_destroy(scene);
}

static void a_wait_ends_when_the_cpu_writes_the_value(void **state)
{
	struct scene *scene = scene_create(*state);
	struct softgpu_sync wait = {HEADER(WAIT, 0, softgpu_sync), ON(0, 8), 5};

	submit(scene, 0, 0, &wait, sizeof(wait));
	settle_for(scene->gpu, 2000000);
	scene->words[1] = 4;
	settle_for(scene->gpu, 2000000);
	assert_int_equal(scene->gpu->interrupt_count, 0);
	scene->words[1] = 6; /* a value above the requested one is enough */
	gpu_wait_interrupts(scene->gpu, 1);
	scene_destroy(scene);
}

/* The value is visible when the work before it is done, not when its commands were read. */
static void a_signal_is_stored_after_the_time_of_the_work_before_it(void **state)
{
	struct scene *scene = scene_create(*state);
	struct {
		struct softgpu_traffic traffic;
		struct softgpu_sync signal;
	} commands = {{HEADER(TRAFFIC, 0, softgpu_traffic), ON(0, 64), 4, 3000000},
		      {HEADER(SIGNAL, 0, softgpu_sync), ON(0, 8), 5}};
	uint32_t fence = submit(scene, 0, 0, &commands, sizeof(commands));

	settle_for(scene->gpu, 2000000);
	assert_true(scene->words[1] == 0);
	settle_for(scene->gpu, 2000000);
	assert_true(scene->words[1] == 5);
	assert_completed(&scene->gpu->interrupts[0], fence, 0);
	scene_destroy(scene);
}

/* ---- preemption ---- */

static void preempt(struct gpu *gpu, uint32_t node)
{
	DXGKARG_PREEMPTCOMMAND command = {.PreemptionFenceId = ++gpu->next_fence,
					  .NodeOrdinal = node};
	uint32_t irql = vmm_nt_raise(gpu->nt, VMM_NT_DISPATCH);

	assert_int_equal(gpu->ddi.DxgkDdiPreemptCommand(gpu->adapter, &command), STATUS_SUCCESS);
	vmm_nt_lower(gpu->nt, irql);
}

static void assert_preempted(const DXGKARGCB_NOTIFY_INTERRUPT_DATA *interrupt, uint32_t fence,
			     uint32_t last)
{
	assert_int_equal(interrupt->InterruptType, DXGK_INTERRUPT_DMA_PREEMPTED);
	assert_int_equal(interrupt->DmaPreempted.PreemptionFenceId, fence);
	assert_int_equal(interrupt->DmaPreempted.LastCompletedFenceId, last);
}

static void pre_06_a_preemption_request_is_answered_when_the_queue_is_done(void **state)
{
	struct scene *scene = scene_create(*state);
	struct softgpu_stall stall = {HEADER(STALL, 0, softgpu_stall), 1000000};
	uint32_t fence[2] = {submit(scene, 0, 0, &stall, sizeof(stall)),
			     submit(scene, 1, 0, &stall, sizeof(stall))};

	preempt(scene->gpu, 0);
	gpu_wait_interrupts(scene->gpu, 3);
	assert_completed(&scene->gpu->interrupts[0], fence[0], 0);
	assert_completed(&scene->gpu->interrupts[1], fence[1], 0);
	assert_preempted(&scene->gpu->interrupts[2], scene->gpu->next_fence, fence[1]);
	assert_int_equal(current_fence(scene->gpu, 0), fence[1]);
	scene_destroy(scene);
}

static void pre_05_an_idle_node_answers_at_once(void **state)
{
	struct scene *scene = scene_create(*state);
	struct softgpu_stall stall = {HEADER(STALL, 0, softgpu_stall), 1};
	uint32_t fence = submit(scene, 0, 1, &stall, sizeof(stall));

	gpu_wait_interrupts(scene->gpu, 1);
	preempt(scene->gpu, 1);
	vmm_os_settle(scene->gpu->os);
	assert_int_equal(scene->gpu->interrupt_count, 2);
	assert_preempted(&scene->gpu->interrupts[1], scene->gpu->next_fence, fence);
	scene_destroy(scene);
}

static void sub_15_packets_beyond_the_agreed_depth_are_refused(void **state)
{
	struct scene *scene = scene_create(*state);
	_Alignas(8) struct softgpu_command hang = {SOFTGPU_HANG, 0, sizeof(hang)};
	DXGKARG_RESETENGINE reset = {.NodeOrdinal = 0};
	DXGKARG_SUBMITCOMMAND command = {.hContext = scene->gpu->context[0]};
	int i;

	submit(scene, 0, 0, &hang, sizeof(hang));
	vmm_os_settle(scene->gpu->os);
	for (i = 1; i < 32; i++)
		gpu_submit(scene->gpu, &scene->dma[1], 0, 0, 0);
	preempt(scene->gpu, 0);
	for (i = 0; i < 2; i++) /* the fixture agreed on 32, one of them runs */
		(void)scene->gpu->ddi.DxgkDdiSubmitCommand(scene->gpu->adapter, &command);
	assert_int_equal(scene->gpu->ddi.DxgkDdiSubmitCommand(scene->gpu->adapter, &command),
			 STATUS_INSUFFICIENT_RESOURCES);
	assert_int_equal(scene->gpu->ddi.DxgkDdiResetEngine(scene->gpu->adapter, &reset),
			 STATUS_SUCCESS);
	scene_destroy(scene);
}

/* ---- hanging and resets ---- */

static bool is_responsive(struct gpu *gpu, uint32_t node)
{
	DXGKARG_QUERYENGINESTATUS query = {.NodeOrdinal = node};

	assert_int_equal(gpu->ddi.DxgkDdiQueryEngineStatus(gpu->adapter, &query), STATUS_SUCCESS);
	return query.EngineStatus.Responsive;
}

static void tdr_15_an_engine_reset_names_the_packet_that_ran(void **state)
{
	struct scene *scene = scene_create(*state);
	struct softgpu_stall stall = {HEADER(STALL, 0, softgpu_stall), 1};
	_Alignas(8) struct softgpu_command hang = {SOFTGPU_HANG, 0, sizeof(hang)};
	struct softgpu_fill fill = {HEADER(FILL, 0, softgpu_fill), ON(0, 0), 8, 1, 0};
	DXGKARG_RESETENGINE reset = {.NodeOrdinal = 0};
	uint32_t hung, other;

	submit(scene, 0, 0, &stall, sizeof(stall));
	hung = submit(scene, 1, 0, &hang, sizeof(hang));
	submit(scene, 2, 0, &fill, sizeof(fill));
	settle_for(scene->gpu, 1000000);
	assert_int_equal(scene->gpu->interrupt_count, 1);
	assert_false(is_responsive(scene->gpu, 0));
	assert_true(is_responsive(scene->gpu, 1));
	assert_int_equal(scene->gpu->ddi.DxgkDdiResetEngine(scene->gpu->adapter, &reset),
			 STATUS_SUCCESS);
	assert_int_equal(reset.LastAbortedFenceId, hung);
	assert_int_equal(current_fence(scene->gpu, 0), hung);
	assert_true(is_responsive(scene->gpu, 0));
	/* Queued packets were dropped without a report; the engine accepts new ones. */
	settle_for(scene->gpu, 1000000);
	assert_int_equal(scene->gpu->interrupt_count, 1);
	assert_true(scene->words[0] == 0);
	other = submit(scene, 3, 0, &fill, sizeof(fill));
	gpu_wait_interrupts(scene->gpu, 2);
	assert_completed(&scene->gpu->interrupts[1], other, 0);
	scene_destroy(scene);
}

static void tdr_15_an_idle_engine_names_its_last_packet(void **state)
{
	struct scene *scene = scene_create(*state);
	struct softgpu_stall stall = {HEADER(STALL, 0, softgpu_stall), 1};
	DXGKARG_RESETENGINE reset = {.NodeOrdinal = 1};
	uint32_t fence = submit(scene, 0, 1, &stall, sizeof(stall));

	gpu_wait_interrupts(scene->gpu, 1);
	assert_int_equal(scene->gpu->ddi.DxgkDdiResetEngine(scene->gpu->adapter, &reset),
			 STATUS_SUCCESS);
	assert_int_equal(reset.LastAbortedFenceId, fence);
	scene_destroy(scene);
}

/* A reset ends any wait of an engine. */
static void a_reset_ends_stalls_and_waits(void **state)
{
	struct scene *scene = scene_create(*state);
	struct softgpu_stall stall = {HEADER(STALL, 0, softgpu_stall), 3600000000000u};
	struct softgpu_sync wait = {HEADER(WAIT, 0, softgpu_sync), ON(0, 8), 5};
	DXGKARG_RESETENGINE reset = {.NodeOrdinal = 0};
	uint32_t fence[2];

	fence[0] = submit(scene, 0, 0, &stall, sizeof(stall));
	settle_for(scene->gpu, 1000);
	assert_int_equal(scene->gpu->ddi.DxgkDdiResetEngine(scene->gpu->adapter, &reset),
			 STATUS_SUCCESS);
	assert_int_equal(reset.LastAbortedFenceId, fence[0]);
	fence[1] = submit(scene, 1, 0, &wait, sizeof(wait));
	settle_for(scene->gpu, 1000);
	assert_int_equal(scene->gpu->ddi.DxgkDdiResetEngine(scene->gpu->adapter, &reset),
			 STATUS_SUCCESS);
	assert_int_equal(reset.LastAbortedFenceId, fence[1]);
	assert_int_equal(scene->gpu->interrupt_count, 0);
	scene_destroy(scene);
}

static void tdr_05_after_an_adapter_reset_nothing_is_mapped_and_nothing_runs(void **state)
{
	struct scene *scene = scene_create(*state);
	struct gpu *gpu = scene->gpu;
	_Alignas(8) struct softgpu_command hang = {SOFTGPU_HANG, 0, sizeof(hang)};
	struct softgpu_reference reference = {HEADER(REFERENCE, 0, softgpu_reference), ON(0, 0)};
	DXGKARG_SUBMITCOMMAND command = {.hContext = gpu->context[0]};
	PMDL mdl = gpu_mdl(gpu, 0, PAGE);
	uint32_t last;

	gpu_map(gpu, 0, 1, mdl, 0);
	scene->list[0] = gpu_entry(&gpu->allocations[0], APERTURE, APERTURE_BASE, 0);
	gpu_assert_completed(gpu_run(gpu, 0, &reference, sizeof(reference), scene->list, 1));
	submit(scene, 0, 0, &hang, sizeof(hang));
	last = submit(scene, 1, 0, &hang, sizeof(hang));
	vmm_os_settle(gpu->os);
	assert_int_equal(gpu->ddi.DxgkDdiResetFromTimeout(gpu->adapter), STATUS_SUCCESS);
	assert_int_equal(current_fence(gpu, 0), last); /* TDR-09 */
	assert_int_equal(gpu->ddi.DxgkDdiSubmitCommand(gpu->adapter, &command),
			 STATUS_INVALID_DEVICE_STATE);
	assert_int_equal(gpu->ddi.DxgkDdiRestartFromTimeout(gpu->adapter), STATUS_SUCCESS);
	gpu_assert_faulted(gpu_run(gpu, 0, &reference, sizeof(reference), scene->list, 1),
			   STATUS_ACCESS_VIOLATION);
	gpu_free_mdl(gpu, mdl);
	scene_destroy(scene);
}

static void tdr_18_each_engine_depends_only_on_itself(void **state)
{
	struct gpu *gpu = *state;
	DXGKARG_QUERYDEPENDENTENGINEGROUP query = {.NodeOrdinal = 1};

	assert_int_equal(gpu->ddi.DxgkDdiQueryDependentEngineGroup(gpu->adapter, &query),
			 STATUS_SUCCESS);
	assert_true(query.DependentNodeOrdinalMask == 2);
	query.NodeOrdinal = 2;
	assert_int_equal(gpu->ddi.DxgkDdiQueryDependentEngineGroup(gpu->adapter, &query),
			 STATUS_INVALID_PARAMETER);
}

static void tdr_03_the_debug_report_fits_any_buffer_size(void **state)
{
	struct scene *scene = scene_create(*state);
	_Alignas(8) struct softgpu_command hang = {SOFTGPU_HANG, 0, sizeof(hang)};
	char buffer[256];
	DXGKARG_COLLECTDBGINFO collect = {.Reason = 0x117, .pBuffer = buffer, .BufferSize = 20};
	DXGKARG_RESETENGINE reset = {.NodeOrdinal = 0};

	submit(scene, 0, 0, &hang, sizeof(hang));
	vmm_os_settle(scene->gpu->os);
	memset(buffer, 0x77, sizeof(buffer));
	assert_int_equal(scene->gpu->ddi.DxgkDdiCollectDbgInfo(scene->gpu->adapter, &collect),
			 STATUS_SUCCESS);
	assert_string_equal(buffer, "softgpu");
	assert_int_equal(buffer[20], 0x77);
	collect.BufferSize = sizeof(buffer);
	assert_int_equal(scene->gpu->ddi.DxgkDdiCollectDbgInfo(scene->gpu->adapter, &collect),
			 STATUS_SUCCESS);
	/* the first engine's last submission */
	assert_memory_equal(buffer + 16, &scene->gpu->next_fence, 4);
	assert_int_equal(scene->gpu->ddi.DxgkDdiResetEngine(scene->gpu->adapter, &reset),
			 STATUS_SUCCESS);
	scene_destroy(scene);
}

static void pnp_08_packets_after_a_surprise_removal_are_dropped(void **state)
{
	struct scene *scene = scene_create(*state);
	struct softgpu_fill fill = {HEADER(FILL, 0, softgpu_fill), ON(0, 0), 8, 1, 0};

	assert_int_equal(scene->gpu->ddi.DxgkDdiNotifySurpriseRemoval(scene->gpu->adapter,
								      DxgkRemovalHibernation),
			 STATUS_SUCCESS);
	submit(scene, 0, 0, &fill, sizeof(fill));
	settle_for(scene->gpu, 1000000);
	assert_int_equal(scene->gpu->interrupt_count, 0);
	assert_true(scene->words[0] == 0);
	scene_destroy(scene);
}

static void stopping_the_device_ends_a_hung_engine(void **state)
{
	struct gpu *gpu = gpu_start(NULL, MIB);
	struct scene *scene = scene_create(gpu);
	_Alignas(8) struct softgpu_command hang = {SOFTGPU_HANG, 0, sizeof(hang)};

	(void)state;
	submit(scene, 0, 0, &hang, sizeof(hang));
	submit(scene, 1, 1, &hang, sizeof(hang));
	vmm_os_settle(gpu->os);
	gpu_stop(gpu);
	scene_destroy(scene);
}

static void invalid_submissions_are_refused(void **state)
{
	struct gpu *gpu = *state;
	uint64_t private_data[4] = {0};
	DXGKARG_SUBMITCOMMAND good = {.DmaBufferSize = 64,
				      .DmaBufferSubmissionEndOffset = 64,
				      .pDmaBufferPrivateData = private_data,
				      .DmaBufferPrivateDataSize = sizeof(private_data),
				      .Flags = {.Paging = 1}};
	DXGKARG_SUBMITCOMMAND bad[5] = {good, good, good, good, good};
	int i;

	bad[0].NodeOrdinal = GPU_NODES;
	bad[1].EngineOrdinal = 1;
	bad[2].DmaBufferSubmissionEndOffset = 65;
	bad[3].DmaBufferSubmissionStartOffset = 65;
	/* and the other cases: the private data names no buffer */
	bad[4].pDmaBufferPrivateData = NULL;
	for (i = 0; i < 5; i++)
		assert_int_equal(gpu->ddi.DxgkDdiSubmitCommand(gpu->adapter, &bad[i]),
				 STATUS_INVALID_PARAMETER);
	assert_int_equal(gpu->ddi.DxgkDdiSubmitCommand(gpu->adapter, &good),
			 STATUS_INVALID_PARAMETER);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, gpu_setup, gpu_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(packets_of_one_node_complete_in_submission_order),
		TEST(sch_07_nodes_run_concurrently),
		TEST(a_stall_takes_exactly_its_time),
		TEST(a_command_without_stall_takes_no_time),
		TEST(spl_03_a_portion_executes_only_its_range),
		TEST(sub_22_null_rendering_signals_without_executing),
		TEST(sub_20_an_empty_packet_only_signals),
		TEST(a_wait_ends_when_another_node_signals),
		TEST(a_wait_ends_when_the_cpu_writes_the_value),
		TEST(a_signal_is_stored_after_the_time_of_the_work_before_it),
		TEST(pre_06_a_preemption_request_is_answered_when_the_queue_is_done),
		TEST(pre_05_an_idle_node_answers_at_once),
		TEST(sub_15_packets_beyond_the_agreed_depth_are_refused),
		TEST(tdr_15_an_engine_reset_names_the_packet_that_ran),
		TEST(tdr_15_an_idle_engine_names_its_last_packet),
		TEST(a_reset_ends_stalls_and_waits),
		TEST(tdr_05_after_an_adapter_reset_nothing_is_mapped_and_nothing_runs),
		TEST(tdr_18_each_engine_depends_only_on_itself),
		TEST(tdr_03_the_debug_report_fits_any_buffer_size),
		TEST(pnp_08_packets_after_a_surprise_removal_are_dropped),
		cmocka_unit_test(stopping_the_device_ends_a_hung_engine),
		TEST(invalid_submissions_are_refused),
	};

	return cmocka_run_group_tests_name("softgpu_engine", tests, NULL, NULL);
}
