/* SPDX-License-Identifier: MIT */
/* The operations, and how a seed decides steps and the adapter. */
#include <vidmm/softgpu.h>

#include "sim.h"

const char *const sim_op_names[SIM_OPS] = {
	[SIM_CREATE] = "create",     [SIM_DESTROY] = "destroy", [SIM_READ] = "read",
	[SIM_WRITE] = "write",       [SIM_HOLD] = "hold",       [SIM_RELEASE] = "release",
	[SIM_DISCARD] = "discard",   [SIM_FILL] = "fill",       [SIM_COPY] = "copy",
	[SIM_OFFER] = "offer",       [SIM_RECLAIM] = "reclaim", [SIM_PRIORITY] = "priority",
	[SIM_QUERY] = "query",       [SIM_LIST] = "list",       [SIM_UNLIST] = "unlist",
	[SIM_BUDGET] = "budget",     [SIM_CONTEXT] = "context", [SIM_DEVICE] = "device",
	[SIM_FENCE] = "fence",       [SIM_SIGNAL] = "signal",   [SIM_GPU_SIGNAL] = "gpu-signal",
	[SIM_GPU_WAIT] = "gpu-wait", [SIM_IDLE] = "idle",       [SIM_ILLEGAL] = "illegal",
	[SIM_STALL] = "stall",       [SIM_REPEAT] = "repeat",   [SIM_LOSE] = "lose",
	[SIM_LOSE_ALL] = "lose-all", [SIM_ANSWER] = "answer",   [SIM_HANG] = "hang",
	[SIM_POWER] = "power",       [SIM_DEATH] = "death",     [SIM_RESTART] = "restart",
	[SIM_REMOVAL] = "removal",   [SIM_CLOCK] = "clock",     [SIM_NO_MEMORY] = "no-memory",
};

const uint32_t sim_weights[SIM_OPS] = {
	[SIM_CREATE] = 500,     [SIM_DESTROY] = 200, [SIM_READ] = 600,    [SIM_WRITE] = 500,
	[SIM_HOLD] = 125,       [SIM_RELEASE] = 125, [SIM_DISCARD] = 150, [SIM_FILL] = 600,
	[SIM_COPY] = 750,       [SIM_OFFER] = 150,   [SIM_RECLAIM] = 200, [SIM_PRIORITY] = 50,
	[SIM_QUERY] = 75,       [SIM_LIST] = 300,    [SIM_UNLIST] = 200,  [SIM_BUDGET] = 25,
	[SIM_CONTEXT] = 30,     [SIM_DEVICE] = 2,    [SIM_FENCE] = 75,    [SIM_SIGNAL] = 100,
	[SIM_GPU_SIGNAL] = 125, [SIM_GPU_WAIT] = 60, [SIM_IDLE] = 75,     [SIM_ILLEGAL] = 200,
	[SIM_STALL] = 30,       [SIM_REPEAT] = 10,   [SIM_LOSE] = 10,     [SIM_LOSE_ALL] = 1,
	[SIM_ANSWER] = 30,      [SIM_HANG] = 1,      [SIM_POWER] = 2,     [SIM_DEATH] = 2,
	[SIM_RESTART] = 1,      [SIM_REMOVAL] = 1,   [SIM_CLOCK] = 2,     [SIM_NO_MEMORY] = 40,
};

const char *const sim_fault_names[SIM_FAULTS_OF_SETUP] = {
	[SIM_FAULT_MEMORY] = "memory",
	[SIM_FAULT_APERTURE] = "aperture",
	[SIM_FAULT_BUFFERS] = "buffers",
	[SIM_FAULT_WRAP] = "wrap",
};

/* SplitMix64: the n-th number of a stream can be drawn without those before it. */
static uint32_t number(uint64_t seed, uint64_t index)
{
	uint64_t x = seed * 0xD1342543DE82EF95u + index * 0x9E3779B97F4A7C15u;

	x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
	x = (x ^ x >> 27) * 0x94D049BB133111EBu;
	return (uint32_t)((x ^ x >> 31) >> 32);
}

#define NUMBERS_PER_STEP 6u

struct sim_step sim_draw(uint64_t seed, uint64_t index, uint32_t processes,
			 const uint32_t weights[SIM_OPS])
{
	uint64_t at = (index + 1) * NUMBERS_PER_STEP, sum = 0;
	struct sim_step step = {.process = number(seed, at + 1) % processes,
				.a = number(seed, at + 2) % MODEL_ALLOCATIONS,
				.b = number(seed, at + 3) % MODEL_ALLOCATIONS,
				.c = number(seed, at + 4),
				.d = number(seed, at + 5)};

	for (uint32_t i = 0; i < SIM_OPS; i++)
		sum += weights[i];
	uint64_t chosen = sum ? number(seed, at) % sum : 0;
	while (step.op + 1 < SIM_OPS && chosen >= weights[step.op])
		chosen -= weights[step.op++];
	return step;
}

void sim_draw_setup(struct sim_setup *setup, uint32_t faults)
{
	static const uint32_t switches[] = {0, 0, 20, 200};
	/* All but one of so many seeds have the fault. */
	static const uint32_t in[SIM_FAULTS_OF_SETUP] = {
		[SIM_FAULT_MEMORY] = 4,
		[SIM_FAULT_APERTURE] = 2,
		[SIM_FAULT_BUFFERS] = 2,
		[SIM_FAULT_WRAP] = 4,
	};
	/* The stream is another one than that of the steps. */
	uint64_t seed = ~setup->seed;

	if (!setup->model)
		setup->model = setup->seed % 2 ? SOFTGPU_MODEL_WDDM2 : SOFTGPU_MODEL_WDDM1;
	setup->faults = 0;
	setup->vram_bytes = 4u << 20;
	setup->aperture_bytes = 4u << 20;
	/* Some of both must fit into the aperture together. */
	setup->dma_bytes = 16384;
	setup->paging_bytes = 16384;
	setup->first_fence = 1;
	for (uint32_t i = 0; i < SIM_FAULTS_OF_SETUP; i++)
		if (faults & 1u << i && number(seed, i) % in[i])
			setup->faults |= 1u << i;
	if (setup->faults & 1u << SIM_FAULT_MEMORY)
		setup->vram_bytes = 262144;
	if (setup->faults & 1u << SIM_FAULT_APERTURE)
		/* The DMA buffers of three processes leave enough of it for allocations. */
		setup->aperture_bytes = 524288ull * ((setup->processes + 2) / 3);
	if (setup->faults & 1u << SIM_FAULT_BUFFERS) {
		setup->dma_bytes = 4096;
		setup->paging_bytes = 4096;
	}
	if (setup->faults & 1u << SIM_FAULT_WRAP)
		setup->first_fence = UINT32_MAX - number(seed, 4) % 512;
	setup->engine_reset = number(seed, 5) % 2;
	setup->preempts = number(seed, 6) % 2;
	setup->switch_per_1024 = switches[number(seed, 7) % 4];
}
