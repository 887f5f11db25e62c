/* SPDX-License-Identifier: MIT */
/* Hardware queues of softgpu: page faults, hangs, and wrong progress fences. */
#include "gva_client.h"

#include <stdatomic.h>
#include <string.h>

struct pair {
	struct client host;
	struct gva_client bad, good;
	struct gva_hw bad_hw, good_hw;
	struct gva_memory memory; /* of the good client */
};

/* The good client must notice nothing. */
static void runs(struct pair *p, uint32_t word)
{
	gva_enter(&p->good);
	gva_fill(&p->good, p->memory.at, p->memory.bytes, word);
	gva_hw_run(&p->good_hw);
	gva_expect(&p->good, p->memory.handle, 0, p->memory.bytes, word);
	p->good.start = p->good.used = 0;
}

static void begin(struct pair *p, void **state)
{
	gva_start(&p->host, state,
		  &(struct gva_options){.hw_queues = SOFTGPU_HARDWARE_QUEUES_ENGINE_RELEASES});
	gva_open(&p->host, &p->good);
	p->memory = gva_memory(&p->good, 64 * KIB, GVA_VRAM);
	gva_hw_open(&p->good, 0, NULL, &p->good_hw);
	gva_open(&p->host, &p->bad);
	gva_hw_open(&p->bad, 0, NULL, &p->bad_hw);
	runs(p, 0x600D0000);
}

/* The device is lost, and what it queued is not executed. */
static void expect_lost(struct pair *p)
{
	gva_fill(&p->bad, p->bad.commands_at, 4, 0);
	assert_int_not_equal(gva_hw_try_submit(&p->bad_hw, p->bad_hw.submitted + 1),
			     STATUS_SUCCESS);
	assert_int_not_equal(gva_state(&p->bad), D3DKMT_DEVICEEXECUTION_ACTIVE);
}

static void finish(struct pair *p)
{
	runs(p, 0x600E0000);
	gva_close(&p->bad);
	runs(p, 0x600F0000);
	assert_int_equal(gva_state(&p->good), D3DKMT_DEVICEEXECUTION_ACTIVE);
	gva_close(&p->good);
	gva_stop(&p->host);
}

/* MFN-38: the wait ends, because the fence has the largest value. */
static void await_loss(struct pair *p)
{
	const uint64_t value = p->bad_hw.submitted;
	const D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU args = {.hDevice = p->bad.device,
								 .ObjectCount = 1,
								 .ObjectHandleArray =
									 &p->bad_hw.fence,
								 .FenceValueArray = &value};

	gva_enter(&p->bad);
	(void)D3DKMTWaitForSynchronizationObjectFromCpu(&args);
	client_idle(&p->host);
	assert_true(atomic_load(p->bad_hw.fence_word) == UINT64_MAX);
}

static void tdr_21_a_hang_loses_its_device_only(void **state)
{
	const struct softgpu_command hang = {SOFTGPU_HANG, 0, sizeof(hang)};
	struct pair p;

	begin(&p, state);
	gva_command(&p.bad, &hang, sizeof(hang));
	gva_hw_submit(&p.bad_hw);
	await_loss(&p);
	expect_lost(&p);
	finish(&p);
}

/* What waits behind the fault in another queue is executed after the reset. */
static void tdr_21_a_page_fault_loses_its_device_only(void **state)
{
	struct pair p;

	begin(&p, state);
	gva_stall(&p.bad, 1000000);
	gva_fill(&p.bad, 600 * MIB, 8, 0xBAD);
	gva_hw_submit(&p.bad_hw);
	gva_fill(&p.good, p.memory.at, p.memory.bytes, 0x61);
	gva_hw_submit(&p.good_hw);
	await_loss(&p);
	gva_hw_wait(&p.good_hw);
	gva_expect(&p.good, p.memory.handle, 0, p.memory.bytes, 0x61);
	expect_lost(&p);
	finish(&p);
}

static void tdr_21_a_wrong_command_loses_its_device_only(void **state)
{
	const struct softgpu_command unknown = {77, 0, sizeof(unknown)};
	struct pair p;

	begin(&p, state);
	gva_command(&p.bad, &unknown, sizeof(unknown));
	gva_hw_submit(&p.bad_hw);
	await_loss(&p);
	expect_lost(&p);
	finish(&p);
}

/* The device is lost, not the adapter. The command stays on the GPU until it is suspended. */
static void store_wrong(void **state, uint64_t first, uint64_t second)
{
	struct pair p;

	begin(&p, state);
	p.bad_hw.submitted = 9;
	gva_sync(&p.bad, SOFTGPU_SIGNAL, SOFTGPU_FLAG_NOTIFY, p.bad_hw.fence_at, first);
	gva_sync(&p.bad, SOFTGPU_SIGNAL, SOFTGPU_FLAG_NOTIFY, p.bad_hw.fence_at, second);
	gva_sync(&p.bad, SOFTGPU_WAIT, 0, p.bad.fence_at, 1);
	gva_hw_submit(&p.bad_hw);
	client_idle(&p.host);
	gva_found(&p.host, "Q-210");
	expect_lost(&p);
	finish(&p);
}

static void q_210_a_wrong_progress_fence_loses_its_device_only(void **state)
{
	store_wrong(state, 11, 11);
	store_wrong(state, UINT64_MAX, UINT64_MAX);
}

static void q_210_a_progress_fence_that_falls_loses_its_device_only(void **state)
{
	store_wrong(state, 5, 4);
}

/* Values between the last one and that of the newest submission are what progress looks like. */
static void q_210_a_progress_fence_in_its_range_is_believed(void **state)
{
	struct pair p;

	begin(&p, state);
	p.good_hw.submitted = 8;
	gva_sync(&p.good, SOFTGPU_SIGNAL, SOFTGPU_FLAG_NOTIFY, p.good_hw.fence_at, 5);
	gva_sync(&p.good, SOFTGPU_SIGNAL, SOFTGPU_FLAG_NOTIFY, p.good_hw.fence_at, 9);
	gva_hw_run(&p.good_hw);
	finish(&p);
}

/* TDR-07: a reset of the adapter ends hardware contexts, too. */
static void tdr_07_an_adapter_reset_loses_hardware_contexts(void **state)
{
	const struct softgpu_command hang = {SOFTGPU_HANG, 0, sizeof(hang)};
	struct gva_client later;
	struct client host;
	struct gva_client c;
	struct gva_hw hw;

	gva_start(&host, state,
		  &(struct gva_options){.hw_queues = SOFTGPU_HARDWARE_QUEUES_ENGINE_RELEASES,
					.adapter_reset = true});
	gva_open(&host, &c);
	gva_hw_open(&c, 0, NULL, &hw);
	gva_sync(&c, SOFTGPU_WAIT, 0, c.fence_at, UINT64_MAX - 1);
	gva_hw_submit(&hw);
	gva_command(&c, &hang, sizeof(hang));
	gva_submit(&c, 1);
	(void)gva_try_wait(&c);
	client_idle(&host);
	assert_true(atomic_load(hw.fence_word) == UINT64_MAX);
	gva_open(&host, &later);
	gva_hw_open(&later, 0, NULL, &hw);
	gva_hw_run(&hw);
	gva_close(&c);
	gva_hw_run(&hw);
	gva_close(&later);
	gva_stop(&host);
}

/* PNP-05: commands leave the GPU before the power does, and continue when it is back. */
static void pnp_05_commands_continue_after_a_change_of_power(void **state)
{
	struct client host;
	struct gva_client c;
	struct gva_hw hw;

	gva_start(&host, state,
		  &(struct gva_options){.hw_queues = SOFTGPU_HARDWARE_QUEUES_ENGINE_RELEASES});
	gva_open(&host, &c);
	struct gva_memory memory = gva_memory(&c, 64 * KIB, GVA_VRAM);
	gva_hw_open(&c, 0, NULL, &hw);
	gva_fill(&c, memory.at, memory.bytes, 0x61);
	gva_sync(&c, SOFTGPU_WAIT, 0, c.fence_at, 1);
	gva_copy(&c, memory.at, memory.at + PAGE, PAGE);
	gva_fill(&c, memory.at, PAGE, 0x62);
	gva_hw_submit(&hw);
	assert_int_equal(vidmm_adapter_set_power(host.adapter, VIDMM_POWER_D3, VIDMM_SLEEP_STANDBY),
			 0);
	assert_false(gva_hw_is_done(&hw));
	assert_int_equal(vidmm_adapter_set_power(host.adapter, VIDMM_POWER_D0, 0), 0);
	const uint64_t value = 1;
	const D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU signal = {.hDevice = c.device,
								  .ObjectCount = 1,
								  .ObjectHandleArray = &c.fence,
								  .FenceValueArray = &value};
	gva_enter(&c);
	assert_int_equal(D3DKMTSignalSynchronizationObjectFromCpu(&signal), STATUS_SUCCESS);
	gva_hw_wait(&hw);
	gva_expect(&c, memory.handle, 0, PAGE, 0x62);
	gva_expect(&c, memory.handle, PAGE, memory.bytes - PAGE, 0x61);
	gva_close(&c);
	gva_stop(&host);
}

/* PNP-08: a command is on the GPU when the device goes, and its objects end afterwards. */
static void pnp_08_hardware_queues_end_after_a_removal(void **state)
{
	struct client host;
	struct gva_client c;
	struct gva_hw hw, other;

	gva_start(&host, state,
		  &(struct gva_options){.hw_queues = SOFTGPU_HARDWARE_QUEUES_ENGINE_RELEASES});
	gva_open(&host, &c);
	gva_hw_open(&c, 0, NULL, &hw);
	gva_hw_open(&c, 0, &hw, &other);
	gva_sync(&c, SOFTGPU_WAIT, 0, c.fence_at, 1);
	gva_hw_submit(&hw);
	gva_sync(&c, SOFTGPU_WAIT, 0, c.fence_at, 2);
	gva_hw_submit(&other);
	assert_int_equal(vidmm_adapter_remove(host.adapter, VIDMM_REMOVAL_PNP), 0);
	assert_int_not_equal(gva_hw_try_submit(&hw, 9), STATUS_SUCCESS);
	assert_true(atomic_load(hw.fence_word) == UINT64_MAX);
	gva_close(&c);
	gva_stop(&host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_SIM(tdr_21_a_hang_loses_its_device_only),
		ON_BOTH(tdr_21_a_page_fault_loses_its_device_only),
		ON_SIM(tdr_21_a_wrong_command_loses_its_device_only),
		ON_BOTH(q_210_a_wrong_progress_fence_loses_its_device_only),
		ON_SIM(q_210_a_progress_fence_that_falls_loses_its_device_only),
		ON_BOTH(q_210_a_progress_fence_in_its_range_is_believed),
		ON_SIM(tdr_07_an_adapter_reset_loses_hardware_contexts),
		ON_BOTH(pnp_05_commands_continue_after_a_change_of_power),
		ON_BOTH(pnp_08_hardware_queues_end_after_a_removal),
	};

	return cmocka_run_group_tests_name("softgpu_hw_loss", tests, NULL, NULL);
}
