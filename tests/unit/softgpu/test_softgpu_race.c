/* SPDX-License-Identifier: MIT */
/*
 * On real threads: a client that changes its command buffer and patch list while the miniport reads
 * them; and engines that run, wait for each other and are reset while packets arrive.
 */
#include "fixture.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "../../../drivers/softgpu/softgpu_hw.h"

#define ROUNDS           200000
#define ALLOCATION_BYTES (16 * PAGE)
#define BASE(index)      ((uint64_t)(index)*0x100000u)

struct buffer {
	struct softgpu_reference reference[4];
	struct softgpu_report_command report;
	struct softgpu_stamps stamps;
	struct softgpu_relocations table;
	uint64_t slot[4];
};

struct race {
	struct buffer commands;
	D3DDDI_PATCHLOCATIONLIST relocations[4];
	atomic_bool stop;
	atomic_uint flips;
};

static void store32(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELAXED);
}

static void store64(uint64_t *word, uint64_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELAXED);
}

/* Each word alternates between a legal value and one that must be refused. */
static void flip(void *argument)
{
	struct race *race = argument;
	uint64_t *header = (uint64_t *)(void *)&race->commands.reference[1].command;
	uint64_t good_header = *header, bad_header;
	struct softgpu_command bad = {SOFTGPU_REFERENCE, SOFTGPU_FLAG_WRITE, 0xFFFFFFF8u};

	memcpy(&bad_header, &bad, sizeof(bad));
	while (!atomic_load_explicit(&race->stop, memory_order_relaxed)) {
		unsigned i = atomic_fetch_add_explicit(&race->flips, 1, memory_order_relaxed);

		store64((uint64_t *)(void *)&race->commands.reference[0].operand, i & 1 ? 1 : 77);
		store64(header, i & 2 ? good_header : bad_header);
		store64(&race->commands.reference[2].operand.offset, i & 1 ? 8 : UINT64_MAX - 2);
		store64(&race->commands.reference[3].operand.address, i & 4 ? 0 : 0xDEAD000);
		store64(&race->commands.report.operand.offset, i & 2 ? 64 : ALLOCATION_BYTES);
		store64(&race->commands.stamps.operand.offset, i & 8 ? 0 : ALLOCATION_BYTES - 8);
		store32(&race->relocations[1].PatchOffset,
			(uint32_t)offsetof(struct buffer, slot) + (i & 1 ? 8 : 0x7FFFFFF0));
		store32(&race->relocations[2].AllocationIndex, i & 2 ? 1 : 0x10000000);
	}
}

static void fill_in(struct race *race)
{
	struct buffer *commands = &race->commands;
	uint32_t i;

	for (i = 0; i < 4; i++) {
		commands->reference[i].command = (struct softgpu_command){SOFTGPU_REFERENCE, 0, 32};
		commands->reference[i].operand.allocation = 1;
		commands->reference[i].operand.offset = 16 * i;
		race->relocations[i].AllocationIndex = 1 + i % 2;
		race->relocations[i].AllocationOffset = i;
		race->relocations[i].PatchOffset = (uint32_t)offsetof(struct buffer, slot) + 8 * i;
	}
	commands->report.command = (struct softgpu_command){SOFTGPU_REPORT, 0, 32};
	commands->report.operand.allocation = 2;
	commands->stamps.command = (struct softgpu_command){SOFTGPU_STAMP, SOFTGPU_FLAG_VERIFY, 56};
	commands->stamps.operand.allocation = 1;
	commands->stamps.block_size = 64;
	commands->stamps.block_count = 1;
	commands->table.command = (struct softgpu_command){SOFTGPU_RELOCATIONS, 0, 16 + 32};
	commands->table.count = 4;
}

static bool is_sound(const struct softgpu_operand *operand, const D3DDDI_PATCHLOCATIONLIST *patch,
		     uint64_t length)
{
	return (operand->allocation == 1 || operand->allocation == 2) &&
	       operand->offset <= ALLOCATION_BYTES - length &&
	       operand->address == BASE(operand->allocation) + operand->offset &&
	       patch->AllocationIndex == operand->allocation &&
	       patch->AllocationOffset == operand->offset;
}

/* Every address in an accepted buffer is inside the allocations that it references. */
static bool is_consistent(const struct gpu_dma *dma)
{
	const struct softgpu_reference *reference = (const void *)dma->buffer;
	const struct softgpu_report_command *report = (const void *)(reference + 4);
	const struct softgpu_hw_stamps *stamps = (const void *)(report + 1);
	const struct softgpu_relocations *table = (const void *)(stamps + 1);
	const uint64_t *slot = (const void *)(table + 1);
	uint32_t i;

	for (i = 0; i < 4; i++)
		if (reference[i].command.size_bytes != sizeof(*reference) ||
		    reference[i].command.flags ||
		    !is_sound(&reference[i].operand, &dma->patch[i], 4) ||
		    slot[i] != BASE(1 + i % 2) + i)
			return false;
	return is_sound(&report->operand, &dma->patch[4], sizeof(struct softgpu_report)) &&
	       is_sound(&stamps->user.operand, &dma->patch[5], sizeof(struct softgpu_stamp)) &&
	       stamps->report_address == report->operand.address &&
	       stamps->report_bytes == ALLOCATION_BYTES - report->operand.offset;
}

struct outcome {
	uint32_t accepted, refused, wrong;
};

static void one_round(struct gpu *gpu, struct race *race, struct gpu_dma *dma,
		      struct outcome *outcome)
{
	NTSTATUS status = gpu_render_pass(gpu, dma, &race->commands, sizeof(race->commands),
					  race->relocations, 4);

	if (status == STATUS_SUCCESS) {
		outcome->accepted++;
		outcome->wrong += !is_consistent(dma);
	} else {
		outcome->refused++;
		outcome->wrong += status != STATUS_INVALID_PARAMETER || dma->length != 0;
	}
}

static void user_changes_during_render_do_not_reach_the_gpu(void **state)
{
	struct gpu *gpu = *state;
	struct race *race = calloc(1, sizeof(*race));
	struct gpu_dma *dma = calloc(1, sizeof(*dma));
	struct softgpu_allocation spec = gpu_spec(ALLOCATION_BYTES);
	DXGK_ALLOCATIONLIST list[3] = {gpu_entry(NULL, 0, 0, 0),
				       gpu_entry(gpu_allocate(gpu, &spec), VRAM, BASE(1), 0),
				       gpu_entry(gpu_allocate(gpu, &spec), VRAM, BASE(2), 1)};
	struct vmm_os_thread *thread;
	struct outcome outcome = {0, 0, 0};
	uint32_t round;

	assert_non_null(race);
	assert_non_null(dma);
	fill_in(race);
	gpu_dma_init(gpu, dma, list, 3);
	assert_int_equal(vmm_os_thread_create(gpu->os, "user", flip, race, &thread), VMM_OK);
	/*
	 * On one processor the two threads take turns, so that at least one of each result must
	 * occur.
	 */
	for (round = 0; round < ROUNDS || !outcome.accepted || !outcome.refused; round++) {
		one_round(gpu, race, dma, &outcome);
		if (round % 4096 == 0)
			vmm_os_yield(gpu->os);
	}
	atomic_store(&race->stop, true);
	vmm_os_thread_join(thread);
	assert_int_equal(outcome.wrong, 0);
	gpu_dma_finish(dma);
	free(dma);
	free(race);
}

/* ---- engines ---- */

struct engines {
	struct gpu *gpu;
	DXGK_ALLOCATIONLIST list[1]; /* 64 KiB of video memory at 0 */
	struct gpu_dma *dma[GPU_NODES];
};

static void engines_create(struct engines *engines, struct gpu *gpu)
{
	struct softgpu_allocation spec = gpu_spec(ALLOCATION_BYTES);
	int node;

	engines->gpu = gpu;
	engines->list[0] = gpu_entry(gpu_allocate(gpu, &spec), VRAM, 0, 1);
	for (node = 0; node < GPU_NODES; node++) {
		engines->dma[node] = calloc(1, sizeof(*engines->dma[node]));
		assert_non_null(engines->dma[node]);
		gpu_dma_init(gpu, engines->dma[node], engines->list, 1);
	}
}

static void engines_destroy(struct engines *engines)
{
	int node;

	for (node = 0; node < GPU_NODES; node++) {
		gpu_dma_finish(engines->dma[node]);
		free(engines->dma[node]);
	}
}

static uint32_t submit(struct engines *engines, uint32_t node, const void *commands,
		       uint32_t length)
{
	struct gpu_dma *dma = engines->dma[node];

	assert_int_equal(gpu_render_pass(engines->gpu, dma, commands, length, NULL, 0),
			 STATUS_SUCCESS);
	return gpu_submit(engines->gpu, dma, node, 0, dma->length);
}

static struct softgpu_sync make_sync(uint16_t opcode, uint64_t value)
{
	struct softgpu_sync sync = {
		.command = {opcode, 0, sizeof(sync)}, .operand = {.offset = 8}, .value = value};

	return sync;
}

static void engines_wait_for_each_others_values(void **state)
{
	struct engines engines;
	uint64_t value;

	engines_create(&engines, *state);
	for (value = 1; value <= 200; value++) {
		struct softgpu_sync wait = make_sync(SOFTGPU_WAIT, value);
		struct softgpu_sync signal = make_sync(SOFTGPU_SIGNAL, value);
		uint32_t waiter = value % 2;

		submit(&engines, waiter, &wait, sizeof(wait));
		submit(&engines, !waiter, &signal, sizeof(signal));
		gpu_wait_interrupts(engines.gpu, 2 * (uint32_t)value);
	}
	engines_destroy(&engines);
}

static void full_queues_drain_in_order(void **state)
{
	const uint32_t batches = 50, depth = 16;
	struct gpu *gpu = *state;
	struct engines engines;
	uint32_t last[GPU_NODES] = {0, 0}, batch, i;

	engines_create(&engines, gpu);
	gpu->next_fence = 0; /* so that the order is certain */
	for (batch = 0; batch < batches; batch++) {
		for (i = 0; i < 2 * depth; i++)
			gpu_submit(gpu, engines.dma[i % 2], i % 2, 0, 0);
		gpu_wait_interrupts(gpu, (batch + 1) * 2 * depth);
	}
	for (i = 0; i < batches * 2 * depth; i++) {
		const DXGKARGCB_NOTIFY_INTERRUPT_DATA *interrupt = &gpu->interrupts[i];
		uint32_t node = interrupt->DmaCompleted.NodeOrdinal;

		gpu_assert_completed(interrupt);
		assert_true(interrupt->DmaCompleted.SubmissionFenceId > last[node]);
		last[node] = interrupt->DmaCompleted.SubmissionFenceId;
	}
	engines_destroy(&engines);
}

static void a_hanging_engine_is_reset_while_the_other_works(void **state)
{
	_Alignas(8) struct softgpu_command hang = {SOFTGPU_HANG, 0, sizeof(hang)};
	struct gpu *gpu = *state;
	struct engines engines;
	uint32_t round;

	engines_create(&engines, gpu);
	for (round = 0; round < 100; round++) {
		struct softgpu_sync signal = make_sync(SOFTGPU_SIGNAL, round);
		DXGKARG_RESETENGINE reset = {.NodeOrdinal = round % 2};
		uint32_t fence = submit(&engines, round % 2, &hang, sizeof(hang));

		submit(&engines, !(round % 2), &signal, sizeof(signal));
		gpu_wait_interrupts(gpu, round + 1);
		assert_int_equal(gpu->ddi.DxgkDdiResetEngine(gpu->adapter, &reset), STATUS_SUCCESS);
		/* Aborted if it had begun; dropped from the queue if it had not. */
		assert_true(reset.LastAbortedFenceId == fence ||
			    (int32_t)(reset.LastAbortedFenceId - fence) < 0);
	}
	engines_destroy(&engines);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, gpu_setup_threads, gpu_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(user_changes_during_render_do_not_reach_the_gpu),
		TEST(engines_wait_for_each_others_values),
		TEST(full_queues_drain_in_order),
		TEST(a_hanging_engine_is_reset_while_the_other_works),
	};

	return cmocka_run_group_tests_name("softgpu_race", tests, NULL, NULL);
}
