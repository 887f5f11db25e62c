/* SPDX-License-Identifier: MIT */
/* Steps in which the device, the system or a process fails, and the check of everything. */
#include <vidmm/softgpu.h>

#include "sim.h"

#define SECOND_NS 1000000000ull

/*
 * What was destroyed is gone when no work may use it. In 2.x work that waits may use all that was
 * on the residency list when it was submitted.
 */
static void check_allocations(struct sim *sim)
{
	struct vidmm_adapter_statistics now = {.struct_size = sizeof(now)};
	uint64_t expected = 0, resident = 0;

	for (uint32_t i = 0; i < sim->setup->processes; i++) {
		for (uint32_t j = 0; j < MODEL_ALLOCATIONS; j++)
			expected += sim->model.process[i].allocation[j].exists;
		for (uint32_t j = 0; j < MODEL_CONTEXTS; j++)
			if (model_is_held(&sim->model, i, j))
				return;
	}
	vidmm_adapter_statistics(sim->adapter, &now);
	for (uint32_t i = 0; i < now.segment_count; i++)
		resident += now.segment[i].resident_bytes;
	if (now.allocations != expected || (!expected && resident))
		sim_wrong(sim, "SUB-29",
			  "%llu allocations exist, expected %llu; %llu bytes are in segments",
			  (unsigned long long)now.allocations, (unsigned long long)expected,
			  (unsigned long long)resident);
}

/* Waits, and compares all of the process. */
void sim_idle_step(struct sim *sim, const struct sim_step *step)
{
	sim_idle(sim);
	check_allocations(sim);
	sim_check_fences(sim, step->process);
	for (uint32_t i = 0; i < MODEL_ALLOCATIONS; i++)
		sim_verify(sim, step->process, i);
	sim_done(sim);
}

/* ---- devices that are lost ---- */

static HRESULT probe(struct sim *sim, uint32_t process)
{
	struct sim_process *p = &sim->process[process];
	struct softgpu_allocation spec = {.version = SOFTGPU_ALLOCATION_VERSION,
					  .flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
					  .size_bytes = 4096};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec)};
	D3DDDICB_ALLOCATE args = {.NumAllocations = 1, .pAllocationInfo = &info};
	const D3DDDICB_DEALLOCATE end = {.NumAllocations = 1, .HandleList = &info.hAllocation};
	HRESULT result = p->cb->pfnAllocateCb(p->handle, &args);

	return result == S_OK ? p->cb->pfnDeallocateCb(p->handle, &end) : result;
}

/* A device may be lost where the work was, and is lost with the adapter. */
static bool is_right(const struct sim *sim, enum sim_loss loss, uint32_t process, uint32_t hung,
		     HRESULT result)
{
	bool lost = result == D3DDDIERR_DEVICEREMOVED;

	if (result != S_OK && !lost)
		return false;
	return loss == SIM_LOSS_POSSIBLE || lost == (!sim->setup->engine_reset || process == hung);
}

void sim_recover(struct sim *sim, enum sim_loss loss, uint32_t hung)
{
	for (uint32_t i = 0; i < sim->setup->processes; i++) {
		HRESULT result = probe(sim, i);

		if (!is_right(sim, loss, i, hung, result))
			sim_wrong(sim, "TDR-07", "a call of process %u returned 0x%08X", i,
				  (uint32_t)result);
		if (result != S_OK)
			sim_open_device_again(sim, i);
	}
}

/* ---- the system ---- */

void sim_power(struct sim *sim, const struct sim_step *step)
{
	uint32_t state = VIDMM_POWER_D1 + step->c % 3,
		 sleep = step->d % 2 ? VIDMM_SLEEP_STANDBY : VIDMM_SLEEP_HIBERNATE;
	vidmm_status status = vidmm_adapter_set_power(sim->adapter, state, sleep);

	if (status < 0)
		sim_wrong(sim, "PNP-05", "leaving D0 for state %u returned 0x%08X", state,
			  (uint32_t)status);
	vidmm_sleep_until_ns(sim->host, vidmm_now_ns(sim->host) + SECOND_NS);
	status = vidmm_adapter_set_power(sim->adapter, VIDMM_POWER_D0, sleep);
	if (status < 0)
		sim_wrong(sim, "PNP-05", "the return to D0 failed with 0x%08X", (uint32_t)status);
	sim_done(sim);
}

void sim_clock(struct sim *sim, const struct sim_step *step)
{
	uint64_t seconds = 1 + step->c % 100000;

	vidmm_sleep_until_ns(sim->host, vidmm_now_ns(sim->host) + seconds * SECOND_NS);
	model_idle(&sim->model);
	sim_done(sim);
}

/* A process ends with everything that it has, and another one begins. */
void sim_death(struct sim *sim, const struct sim_step *step)
{
	sim_close_process(sim, step->process);
	sim_open_process(sim, step->process);
	sim_done(sim);
}

/* ---- the adapter ---- */

/* The adapter has ended: every device is lost, and another adapter starts. */
static void begin_again(struct sim *sim, const char *rule, bool stopped)
{
	for (uint32_t i = 0; i < sim->setup->processes; i++) {
		HRESULT result = probe(sim, i);

		if (result != D3DDDIERR_DEVICEREMOVED)
			sim_wrong(sim, rule,
				  "a call of process %u returned 0x%08X, expected "
				  "D3DDDIERR_DEVICEREMOVED",
				  i, (uint32_t)result);
	}
	if (!stopped)
		sim_stop_adapter(sim);
	for (uint32_t i = 0; i < sim->setup->processes; i++)
		sim_close_process(sim, i);
	sim_start_adapter(sim);
	for (uint32_t i = 0; i < sim->setup->processes; i++)
		sim_open_process(sim, i);
	sim_done(sim);
}

void sim_restart(struct sim *sim, const struct sim_step *step)
{
	(void)step;
	sim_stop_adapter(sim);
	begin_again(sim, "PNP-03", true);
}

void sim_removal(struct sim *sim, const struct sim_step *step)
{
	vidmm_status status = vidmm_adapter_remove(sim->adapter, VIDMM_REMOVAL_PNP);

	(void)step;
	if (status < 0 && status != STATUS_NOT_SUPPORTED)
		sim_wrong(sim, "PNP-08", "vidmm_adapter_remove returned 0x%08X", (uint32_t)status);
	begin_again(sim, "PNP-08", false);
}

/* ---- memory ---- */

/*
 * Refuses one request, most often for memory. A mapping that cannot be removed stays until the
 * process ends, so a long run leaves those out.
 */
static void begin_refusal(const struct sim_step *step)
{
	static const uint32_t kinds[] = {VIDMM_FAIL_ALLOCATION, VIDMM_FAIL_ALLOCATION,
					 VIDMM_FAIL_ALLOCATION, VIDMM_FAIL_MAPPING,
					 VIDMM_FAIL_DESCRIPTOR, VIDMM_FAIL_THREAD};
	uint32_t kind = kinds[(step->d >> 8) % (sizeof(kinds) / sizeof(kinds[0]))];

	(void)vidmm_fail_nth(kind, 1 + (step->c >> 8) % 16);
}

/* Another step, during which the system refuses the library one request. */
void sim_no_memory(struct sim *sim, const struct sim_step *step)
{
	static const uint32_t ops[] = {
		SIM_CREATE,  SIM_DESTROY,  SIM_WRITE,      SIM_FILL,    SIM_COPY,     SIM_OFFER,
		SIM_RECLAIM, SIM_LIST,     SIM_UNLIST,     SIM_DISCARD, SIM_PRIORITY, SIM_QUERY,
		SIM_FENCE,   SIM_GPU_WAIT, SIM_GPU_SIGNAL, SIM_SIGNAL,  SIM_READ,     SIM_HOLD};
	struct sim_step other = *step;

	other.op = ops[step->c % (sizeof(ops) / sizeof(ops[0]))];

	sim_pick(sim, &other);
	sim->no_memory = true;
	begin_refusal(step);
	sim_acts[other.op](sim, &other);
	vidmm_fail_by_seed(0, 0, 0);
	sim->no_memory = false;
}
