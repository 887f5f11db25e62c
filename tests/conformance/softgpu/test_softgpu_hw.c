/* SPDX-License-Identifier: MIT */
/* softgpu of WDDM 2.x with hardware queues: order, progress fences, waits, suspension. */
#include "gva_client.h"

#include <stdatomic.h>
#include <string.h>

#define ENGINE   SOFTGPU_HARDWARE_QUEUES_ENGINE_RELEASES
#define COMMANDS SOFTGPU_HARDWARE_QUEUES_COMMANDS_RELEASE

static void start(struct client *host, void **state, struct gva_client *c, uint32_t hw_queues)
{
	gva_start(host, state, &(struct gva_options){.hw_queues = hw_queues});
	gva_open(host, c);
}

static void stop(struct client *host, struct gva_client *c)
{
	gva_close(c);
	gva_stop(host);
}

static void signal_from_cpu(struct gva_client *c, uint64_t value)
{
	const D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU args = {.hDevice = c->device,
								.ObjectCount = 1,
								.ObjectHandleArray = &c->fence,
								.FenceValueArray = &value};

	gva_enter(c);
	assert_int_equal(D3DKMTSignalSynchronizationObjectFromCpu(&args), STATUS_SUCCESS);
	client_settle(c->host);
}

static void sub_27_mfn_37_the_engine_stores_the_progress_fence(void **state)
{
	struct client host;
	struct gva_client c;
	struct gva_hw hw;

	start(&host, state, &c, ENGINE);
	for (uint32_t node = 0; node < 2; node++) {
		struct gva_memory memory = gva_memory(&c, 64 * KIB, GVA_VRAM);

		gva_hw_open(&c, node, NULL, &hw);
		gva_fill(&c, memory.at, memory.bytes, 0x61);
		gva_hw_submit(&hw);
		gva_fill(&c, memory.at + PAGE, PAGE, 0x62);
		hw.submitted += 6; /* ids need not be consecutive */
		gva_hw_submit(&hw);
		gva_copy(&c, memory.at + PAGE, memory.at + 2 * PAGE, PAGE);
		gva_hw_run(&hw);
		assert_int_equal(hw.submitted, 9);
		gva_expect(&c, memory.handle, 0, PAGE, 0x61);
		gva_expect(&c, memory.handle, PAGE, 2 * PAGE, 0x62);
		gva_expect(&c, memory.handle, 3 * PAGE, PAGE, 0x61);
	}
	stop(&host, &c);
}

/* a node without RingBufferFenceRelease, whose commands store the fence. */
static void q_59_commands_store_the_progress_fence_at_its_address(void **state)
{
	struct client host;
	struct gva_client c;
	struct gva_hw hw;

	start(&host, state, &c, COMMANDS);
	struct gva_memory memory = gva_memory(&c, 64 * KIB, GVA_APERTURE);
	gva_hw_open(&c, 0, NULL, &hw);
	for (uint32_t i = 1; i <= 3; i++) {
		gva_fill(&c, memory.at, memory.bytes, i);
		gva_sync(&c, SOFTGPU_SIGNAL, 0, hw.fence_at, i);
		gva_hw_submit(&hw);
	}
	gva_hw_wait(&hw);
	gva_expect(&c, memory.handle, 0, memory.bytes, 3);
	stop(&host, &c);
}

/* Without the host's consent the miniport announces no such node. */
static void q_59_without_the_feature_there_are_no_hardware_queues(void **state)
{
	const struct vidmm_registry_value values[] = {{"Model", SOFTGPU_MODEL_WDDM2},
						      {"HardwareQueues", ENGINE}};
	const struct client_options options = {
		.kind = *(uint32_t *)*state, .registry = values, .registry_count = 2};
	struct client host;
	struct gva_client c;

	client_start(&host, &options);
	gva_open(&host, &c);
	D3DKMT_CREATEHWCONTEXT context = {.hDevice = c.device};
	assert_int_equal(D3DKMTCreateHwContext(&context), STATUS_NOT_SUPPORTED);
	stop(&host, &c);
}

static void queue_wait(struct gva_hw *hw, D3DKMT_HANDLE fence, uint64_t value)
{
	const D3DKMT_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE args = {.hHwQueue = hw->queue,
							       .ObjectCount = 1,
							       .ObjectHandleArray = &fence,
							       .FenceValueArray = &value};

	gva_enter(hw->c);
	assert_int_equal(D3DKMTSubmitWaitForSyncObjectsToHwQueue(&args), STATUS_SUCCESS);
	client_settle(hw->c->host);
}

static void queue_signal(struct gva_hw *hw, D3DKMT_HANDLE fence, uint64_t value)
{
	const D3DKMT_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE args = {.BroadcastHwQueueCount = 1,
							      .BroadcastHwQueueArray = &hw->queue,
							      .ObjectCount = 1,
							      .ObjectHandleArray = &fence,
							      .FenceValueArray = &value};

	gva_enter(hw->c);
	assert_int_equal(D3DKMTSubmitSignalSyncObjectsToHwQueue(&args), STATUS_SUCCESS);
	client_settle(hw->c->host);
}

static void syn_34_a_queue_waits_for_the_signal_of_another(void **state)
{
	struct client host;
	struct gva_client c;
	struct gva_hw first, second;

	start(&host, state, &c, ENGINE);
	struct gva_memory memory = gva_memory(&c, 64 * KIB, GVA_VRAM);
	gva_hw_open(&c, 0, NULL, &first);
	gva_hw_open(&c, 1, NULL, &second);
	queue_wait(&second, c.fence, 1);
	gva_copy(&c, memory.at, memory.at + PAGE, PAGE);
	gva_hw_submit(&second);
	assert_false(gva_hw_is_done(&second));
	gva_fill(&c, memory.at, PAGE, 0x61);
	gva_hw_submit(&first);
	queue_signal(&first, c.fence, 1);
	gva_hw_wait(&second);
	assert_true(gva_hw_is_done(&first));
	gva_expect(&c, memory.handle, 0, 2 * PAGE, 0x61);
	/* a queue may wait for the progress fence of another */
	queue_wait(&second, first.fence, 2);
	gva_fill(&c, memory.at + PAGE, PAGE, 0x63);
	gva_hw_submit(&second);
	gva_fill(&c, memory.at, 2 * PAGE, 0x62);
	gva_hw_submit(&first);
	gva_hw_wait(&second);
	gva_expect(&c, memory.handle, 0, PAGE, 0x62);
	gva_expect(&c, memory.handle, PAGE, PAGE, 0x63);
	stop(&host, &c);
}

/* Three commands on one node wait for values that only later commands of other queues store. */
static void sch_10_a_command_that_waits_lets_other_queues_run(void **state)
{
	struct client host;
	struct gva_client c;
	struct gva_hw hw[3];

	start(&host, state, &c, ENGINE);
	struct gva_memory memory = gva_memory(&c, PAGE, GVA_VRAM);
	gva_fill(&c, memory.at, PAGE, 0);
	gva_run(&c, 0);
	gva_hw_open(&c, 0, NULL, &hw[0]);
	gva_hw_open(&c, 0, &hw[0], &hw[1]);
	gva_hw_open(&c, 0, NULL, &hw[2]);
	for (uint32_t i = 0; i < 3; i++) {
		gva_sync(&c, SOFTGPU_WAIT, 0, memory.at + 8 * i, 1);
		gva_sync(&c, SOFTGPU_SIGNAL, 0, memory.at + 8 * (i + 2) % 24, 1);
		gva_hw_submit(&hw[i]);
	}
	assert_false(gva_hw_is_done(&hw[0]) || gva_hw_is_done(&hw[1]) || gva_hw_is_done(&hw[2]));
	/* a DMA buffer of the same node ends the wait of the last one */
	gva_sync(&c, SOFTGPU_SIGNAL, 0, memory.at + 16, 1);
	gva_submit(&c, 0);
	for (uint32_t i = 0; i < 3; i++)
		gva_hw_wait(&hw[i]);
	stop(&host, &c);
}

/* SCH-11: a running command leaves the GPU for memory, and goes on where it was. */
static void sch_11_a_suspended_command_goes_on_where_it_was(void **state)
{
	struct client host;
	struct gva_client a, b;
	struct gva_hw hw;

	gva_start(&host, state, &(struct gva_options){.hw_queues = ENGINE, .vram_bytes = 4 * MIB});
	gva_open(&host, &a);
	gva_open(&host, &b);
	gva_enter(&a);
	struct gva_memory mine = gva_memory(&a, 2 * MIB, GVA_VRAM);
	gva_hw_open(&a, 0, NULL, &hw);
	gva_fill(&a, mine.at, mine.bytes, 0x61);
	gva_sync(&a, SOFTGPU_WAIT, 0, a.fence_at, 7);
	gva_copy(&a, mine.at, mine.at + MIB, PAGE);
	gva_fill(&a, mine.at, PAGE, 0x62);
	gva_hw_submit(&hw);
	assert_false(gva_hw_is_done(&hw));
	/* The other client's memory does not fit beside it. */
	struct gva_memory theirs = gva_memory(&b, 2 * MIB, GVA_VRAM);
	gva_fill(&b, theirs.at, theirs.bytes, 0x71);
	gva_run(&b, 1);
	assert_false(gva_hw_is_done(&hw));
	gva_expect(&b, theirs.handle, 0, theirs.bytes, 0x71);
	gva_evict(&b, theirs.handle);
	signal_from_cpu(&a, 7);
	gva_hw_wait(&hw);
	gva_expect(&a, mine.handle, 0, PAGE, 0x62);
	gva_expect(&a, mine.handle, PAGE, mine.bytes - PAGE, 0x61);
	gva_close(&b);
	stop(&host, &a);
}

/* VA-12: the root table is replaced while a hardware context exists. */
static void va_12_a_hardware_context_gets_the_root_that_has_grown(void **state)
{
	struct client host;
	struct gva_client c;
	struct gva_hw hw;

	gva_start(&host, state, &(struct gva_options){.hw_queues = ENGINE, .levels = 2});
	gva_open(&host, &c);
	struct gva_memory memory = gva_memory(&c, 64 * KIB, GVA_VRAM);
	gva_hw_open(&c, 0, NULL, &hw);
	gva_fill(&c, memory.at, memory.bytes, 0x61);
	gva_hw_submit(&hw);
	uint64_t far = gva_map(&c, memory.handle, memory.bytes, (uint64_t)1 << 38);
	gva_fill(&c, far + PAGE, PAGE, 0x62);
	gva_hw_run(&hw);
	gva_expect(&c, memory.handle, 0, PAGE, 0x61);
	gva_expect(&c, memory.handle, PAGE, PAGE, 0x62);
	stop(&host, &c);
}

/* SUB-14: the watchdog reads the fence of a command that lasts long. */
static void sub_14_a_lost_interrupt_is_found(void **state)
{
	const struct softgpu_command lose = {SOFTGPU_LOSE_INTERRUPT, 0, sizeof(lose)};
	struct client host;
	struct gva_client c;
	struct gva_hw hw;

	start(&host, state, &c, ENGINE);
	gva_hw_open(&c, 0, NULL, &hw);
	gva_command(&c, &lose, sizeof(lose));
	gva_hw_run(&hw);
	assert_int_equal(gva_state(&c), D3DKMT_DEVICEEXECUTION_ACTIVE);
	stop(&host, &c);
}

/* More submissions than the node takes at a time wait in the library. */
static void sub_27_many_submissions_keep_their_order(void **state)
{
	struct client host;
	struct gva_client c;
	struct gva_hw hw, other;

	start(&host, state, &c, ENGINE);
	struct gva_memory memory = gva_memory(&c, 64 * KIB, GVA_VRAM);
	gva_hw_open(&c, 0, NULL, &hw);
	gva_hw_open(&c, 0, &hw, &other);
	for (uint32_t i = 1; i <= 100; i++) {
		gva_fill(&c, memory.at, PAGE, i);
		gva_hw_submit(&hw);
		gva_fill(&c, memory.at + PAGE, PAGE, i);
		gva_hw_submit(&other);
	}
	gva_hw_wait(&hw);
	gva_hw_wait(&other);
	gva_expect(&c, memory.handle, 0, 2 * PAGE, 100);
	const D3DKMT_DESTROYHWQUEUE end = {.hHwQueue = hw.queue};
	assert_int_equal(D3DKMTDestroyHwQueue(&end), STATUS_SUCCESS);
	gva_hw_run(&other);
	stop(&host, &c);
}

/* ---- presents ---- */

enum { WIDTH = 40, HEIGHT = 30 };

static struct gva_memory picture(struct gva_client *c)
{
	const struct softgpu_allocation spec = {.version = SOFTGPU_ALLOCATION_VERSION,
						.flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
						.size_bytes = 64 * KIB,
						.width = WIDTH,
						.height = HEIGHT};
	struct gva_memory memory = {.bytes = spec.size_bytes};

	assert_int_equal(gva_try_allocate(c, &spec, &memory.handle), STATUS_SUCCESS);
	gva_make_resident(c, memory.handle);
	memory.at = gva_map(c, memory.handle, memory.bytes, 0);
	return memory;
}

/* A blit of the left half of the source, twice as wide, to all of the destination. */
static D3DKMT_PRESENT stretched(const struct gva_memory *from, const struct gva_memory *to)
{
	D3DKMT_PRESENT args = {.hSource = from->handle,
			       .hDestination = to->handle,
			       .SrcRect = {0, 0, WIDTH / 2, HEIGHT}};

	args.Flags.Blt = args.Flags.SrcRectValid = 1;
	return args;
}

/* The source: its left half is 0x61, its right half 0x62. */
static void paint(struct gva_client *c, const struct gva_memory *memory)
{
	for (uint32_t y = 0; y < HEIGHT; y++)
		for (uint32_t half = 0; half < 2; half++)
			gva_fill(c, memory->at + (y * 2ull + half) * WIDTH / 2 * 4, WIDTH / 2 * 4,
				 0x61 + half);
	gva_run(c, 0);
}

static void prs_10_a_blit_on_a_hardware_queue(void **state)
{
	static const uint32_t kinds[] = {ENGINE, COMMANDS};

	for (uint32_t i = 0; i < 2; i++) {
		struct client host;
		struct gva_client c;
		struct gva_hw hw;

		start(&host, state, &c, kinds[i]);
		struct gva_memory from = picture(&c), to = picture(&c);
		paint(&c, &from);
		gva_hw_open(&c, 0, NULL, &hw);
		const D3DKMT_SUBMITPRESENTBLTTOHWQUEUE args = {
			.hHwQueue = hw.queue,
			.HwQueueProgressFenceId = ++hw.submitted,
			.PrivatePresentData = stretched(&from, &to)};
		assert_int_equal(D3DKMTSubmitPresentBltToHwQueue(&args), STATUS_SUCCESS);
		gva_hw_wait(&hw);
		gva_expect(&c, to.handle, 0, WIDTH * HEIGHT * 4, 0x61);
		D3DKMT_SUBMITPRESENTTOHWQUEUE next = {.hHwQueues = &hw.queue};
		next.PrivatePresentData = stretched(&from, &to);
		next.PrivatePresentData.SrcRect = (RECT){WIDTH / 2, 0, WIDTH, HEIGHT};
		assert_int_equal(D3DKMTSubmitPresentToHwQueue(&next), STATUS_SUCCESS);
		hw.submitted++;
		gva_hw_wait(&hw);
		gva_expect(&c, to.handle, 0, WIDTH * HEIGHT * 4, 0x62);
		assert_int_equal(gva_state(&c), D3DKMT_DEVICEEXECUTION_ACTIVE);
		stop(&host, &c);
	}
}

static void prs_09_a_blit_and_a_fill_on_a_virtual_context(void **state)
{
	struct client host;
	struct gva_client c;

	start(&host, state, &c, ENGINE);
	struct gva_memory from = picture(&c), to = picture(&c);
	paint(&c, &from);
	D3DKMT_PRESENT args = stretched(&from, &to);
	args.hContext = c.context[0];
	assert_int_equal(D3DKMTPresent(&args), STATUS_SUCCESS);
	gva_run(&c, 0);
	gva_expect(&c, to.handle, 0, WIDTH * HEIGHT * 4, 0x61);
	args = (D3DKMT_PRESENT){.hDestination = to.handle, .Color = 0x71};
	args.hContext = c.context[0];
	args.Flags.ColorFill = 1;
	assert_int_equal(D3DKMTPresent(&args), STATUS_SUCCESS);
	gva_run(&c, 0);
	gva_expect(&c, to.handle, 0, WIDTH * HEIGHT * 4, 0x71);
	stop(&host, &c);
}

/* What the miniport writes for a blit, here by a client: its rectangles must fit each other. */
struct client_blit {
	struct softgpu_command command;
	uint64_t source, destination;
	uint32_t from[4], to[4], clip[4]; /* x, y, width, height */
	uint32_t source_pitch, destination_pitch, color, reserved;
};

static void prs_09_a_wrong_blit_command_is_a_fault(void **state)
{
	static const uint32_t wrong[][4] = {
		{0, 0, 0, 1}, {0, 0, 1, 0}, {0, 0, 3, 2}, {1, 1, 1, 2}, {UINT32_MAX, 0, 2, 1}};

	for (size_t i = 0; i <= sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct client host;
		struct gva_client c;

		start(&host, state, &c, ENGINE);
		struct gva_memory memory = gva_memory(&c, 64 * KIB, GVA_VRAM);
		struct client_blit blit = {.command = {0x4000, 1, sizeof(blit)},
					   .destination = memory.at,
					   .to = {0, 0, 2, 2},
					   .clip = {0, 0, 2, 2},
					   .destination_pitch = 8};
		if (i)
			memcpy(blit.clip, wrong[i - 1], sizeof(blit.clip));
		gva_command(&c, &blit, sizeof(blit));
		gva_submit(&c, 0);
		(void)gva_try_wait(&c);
		client_idle(&host);
		assert_int_equal(gva_state(&c), i ? D3DKMT_DEVICEEXECUTION_ERROR_DMAPAGEFAULT
						  : D3DKMT_DEVICEEXECUTION_ACTIVE);
		stop(&host, &c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(sub_27_mfn_37_the_engine_stores_the_progress_fence),
		ON_BOTH(q_59_commands_store_the_progress_fence_at_its_address),
		ON_SIM(q_59_without_the_feature_there_are_no_hardware_queues),
		ON_BOTH(syn_34_a_queue_waits_for_the_signal_of_another),
		ON_BOTH(sch_10_a_command_that_waits_lets_other_queues_run),
		ON_SIM(sch_11_a_suspended_command_goes_on_where_it_was),
		ON_BOTH(va_12_a_hardware_context_gets_the_root_that_has_grown),
		ON_SIM(sub_14_a_lost_interrupt_is_found),
		ON_BOTH(sub_27_many_submissions_keep_their_order),
		ON_BOTH(prs_10_a_blit_on_a_hardware_queue),
		ON_BOTH(prs_09_a_blit_and_a_fill_on_a_virtual_context),
		ON_SIM(prs_09_a_wrong_blit_command_is_a_fault),
	};

	return cmocka_run_group_tests_name("softgpu_hw", tests, NULL, NULL);
}
