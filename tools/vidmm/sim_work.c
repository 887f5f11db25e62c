/* SPDX-License-Identifier: MIT */
/* Steps that submit work, also work that the device or its driver handles wrongly. */
#include <string.h>
#include <vidmm/softgpu.h>

#include "sim.h"

#define USES_MAX     2u
#define COMMANDS_MAX 2u
/* Packets that may wait in a context; each has a DMA buffer. */
#define HELD_MAX     4u

enum { MEMORY = 1 }; /* segment set */

struct use {
	uint32_t allocation;
	bool write;
};

struct work {
	uint32_t context, use_count, bytes;
	struct use use[USES_MAX];
	uint64_t command[COMMANDS_MAX * sizeof(struct softgpu_copy) / sizeof(uint64_t)];
	struct model_effect effect;
	bool has_effect;
};

static void put(struct work *work, const void *command, uint32_t bytes)
{
	memcpy((char *)work->command + work->bytes, command, bytes);
	work->bytes += bytes;
}

/* ---- what may be submitted ---- */

bool sim_may_use(const struct sim *sim, uint32_t process, uint32_t context, uint32_t allocation)
{
	const struct model_allocation *a = &sim->model.process[process].allocation[allocation];

	if (!a->exists || a->offered || (sim->wddm2 && !a->listed))
		return false;
	if (a->held && sim->process[process].allocation[allocation].segment_set == MEMORY)
		return false;
	/* Work of another context that waits would come later. */
	return !a->pending || a->user == context + 1;
}

static bool may_submit(struct sim *sim, uint32_t process, const struct work *work)
{
	const struct model_context *c = &sim->model.process[process].context[work->context];

	for (uint32_t i = 0; i < work->use_count; i++)
		if (!sim_may_use(sim, process, work->context, work->use[i].allocation))
			return false;
	return c->exists && c->count < HELD_MAX;
}

/* No order is promised between contexts, so the client waits. (SUB-04) */
static void order(struct sim *sim, uint32_t process, const struct work *work)
{
	struct model_process *m = &sim->model.process[process];

	for (uint32_t i = 0; i < work->use_count; i++) {
		uint32_t user = m->allocation[work->use[i].allocation].user;

		if (user && user != work->context + 1)
			sim_idle(sim);
	}
	for (uint32_t i = 0; i < work->use_count; i++)
		m->allocation[work->use[i].allocation].user = work->context + 1;
}

/* ---- submission ---- */

static HRESULT render(struct sim *sim, uint32_t process, const struct work *work)
{
	struct sim_process *p = &sim->process[process];
	D3DDDICB_CREATECONTEXT *c = &p->context[work->context];
	D3DDDICB_RENDER args = {.hContext = c->hContext,
				.CommandLength = work->bytes,
				.NumAllocations = work->use_count};

	memcpy(c->pCommandBuffer, work->command, work->bytes);
	for (uint32_t i = 0; i < work->use_count; i++)
		c->pAllocationList[i] = (D3DDDI_ALLOCATIONLIST){
			.hAllocation = p->allocation[work->use[i].allocation].handle,
			.WriteOperation = work->use[i].write};
	HRESULT result = p->cb->pfnRenderCb(p->handle, &args);
	if (args.pNewCommandBuffer) {
		c->pCommandBuffer = args.pNewCommandBuffer;
		c->CommandBufferSize = args.NewCommandBufferSize;
		c->pAllocationList = args.pNewAllocationList;
		c->AllocationListSize = args.NewAllocationListSize;
		c->pPatchLocationList = args.pNewPatchLocationList;
		c->PatchLocationListSize = args.NewPatchLocationListSize;
	}
	return result;
}

/* Returns whether it was submitted, and counts the step if not. */
static bool submit(struct sim *sim, const struct sim_step *step, const struct work *work)
{
	if (!may_submit(sim, step->process, work)) {
		sim_skip(sim);
		return false;
	}
	order(sim, step->process, work);
	if (!sim_expect(sim, "SUB-04", "pfnRenderCb", render(sim, step->process, work), NULL)) {
		sim_refused(sim);
		return false;
	}
	for (uint32_t i = 0; i < work->use_count; i++)
		if (work->use[i].write)
			model_note_write(&sim->model, step->process, work->use[i].allocation);
	if (work->has_effect)
		(void)model_submit(&sim->model, step->process, work->context, &work->effect);
	sim_done(sim);
	return true;
}

/* ---- fills and copies ---- */

uint32_t sim_context_of(const struct sim_step *step)
{
	return (step->c >> 28) % MODEL_CONTEXTS;
}

static void put_fill(struct work *work, const struct sim *sim, const struct sim_step *step)
{
	const struct model_allocation *a = &sim->model.process[step->process].allocation[step->a];
	uint32_t words = a->size_bytes / 4, from = step->b % 3 && words ? step->c % words : 0,
		 count = step->b % 3 ? 1 + (step->c >> 12) % (words - from ? words - from : 1)
				     : words;
	const struct softgpu_fill fill = {.command = {SOFTGPU_FILL, 0, sizeof(fill)},
					  .operand = {.offset = from * 4},
					  .length = (uint64_t)count * 4,
					  .pattern = step->d};

	work->context = sim_context_of(step);
	work->use_count = 1;
	work->use[0] = (struct use){step->a, true};
	work->effect = (struct model_effect){.work = MODEL_FILL,
					     .to = step->a,
					     .to_offset = from * 4,
					     .length = count * 4,
					     .pattern = step->d};
	work->has_effect = true;
	put(work, &fill, sizeof(fill));
}

void sim_fill(struct sim *sim, const struct sim_step *step)
{
	struct work work = {0};

	put_fill(&work, sim, step);
	submit(sim, step, &work);
}

void sim_copy(struct sim *sim, const struct sim_step *step)
{
	const struct model_process *m = &sim->model.process[step->process];
	uint32_t to = m->allocation[step->a].size_bytes, from = m->allocation[step->b].size_bytes,
		 limit = to < from ? to : from;

	if (step->a == step->b || !limit) {
		sim_skip(sim);
		return;
	}
	uint32_t length = step->d % 4 ? 1 + (step->d >> 2) % limit : limit,
		 at = step->c % (to - length + 1), source = (step->c >> 8) % (from - length + 1);
	const struct softgpu_copy copy = {.command = {SOFTGPU_COPY, 0, sizeof(copy)},
					  .source = {.allocation = 1, .offset = source},
					  .destination = {.allocation = 0, .offset = at},
					  .length = length};
	struct work work = {.context = sim_context_of(step),
			    .use_count = 2,
			    .use = {{step->a, true}, {step->b, false}},
			    .effect = {.work = MODEL_COPY,
				       .to = step->a,
				       .to_offset = at,
				       .from = step->b,
				       .from_offset = source,
				       .length = length},
			    .has_effect = true};

	put(&work, &copy, sizeof(copy));
	submit(sim, step, &work);
}

/* ---- contexts and devices ---- */

/* Ends a context, or makes it again. Work that waits there is given up. */
void sim_context(struct sim *sim, const struct sim_step *step)
{
	uint32_t context = step->c % MODEL_CONTEXTS;
	struct sim_process *p = &sim->process[step->process];
	struct model_context *m = &sim->model.process[step->process].context[context];
	const D3DDDICB_DESTROYCONTEXT args = {.hContext = p->context[context].hContext};

	if (m->exists) {
		sim_idle(sim);
		if (!sim_expect(sim, "SUB-29", "pfnDestroyContextCb",
				p->cb->pfnDestroyContextCb(p->handle, &args), NULL)) {
			sim_refused(sim);
			return;
		}
		model_drop(&sim->model, step->process, context);
		model_idle(&sim->model);
		m->exists = false;
	} else {
		sim_open_context(sim, step->process, context);
	}
	sim_done(sim);
}

void sim_device(struct sim *sim, const struct sim_step *step)
{
	sim_open_device_again(sim, step->process);
	sim_done(sim);
}

/* ---- faults ---- */

void sim_stall(struct sim *sim, const struct sim_step *step)
{
	const struct softgpu_stall stall = {.command = {SOFTGPU_STALL, 0, sizeof(stall)},
					    .nanoseconds = step->c % 50000000};
	struct work work = {.context = sim_context_of(step)};

	put(&work, &stall, sizeof(stall));
	submit(sim, step, &work);
}

/* A fill whose completion is not reported, or twice. */
static void fill_with(struct sim *sim, const struct sim_step *step, uint16_t opcode)
{
	const struct softgpu_command command = {opcode, 0, sizeof(command)};
	struct work work = {0};

	put_fill(&work, sim, step);
	put(&work, &command, sizeof(command));
	submit(sim, step, &work);
}

void sim_repeat(struct sim *sim, const struct sim_step *step)
{
	fill_with(sim, step, SOFTGPU_REPEAT_INTERRUPT);
}

void sim_lose(struct sim *sim, const struct sim_step *step)
{
	fill_with(sim, step, SOFTGPU_LOSE_INTERRUPT);
}

/* For a millisecond the device loses the interrupts of all completions. */
void sim_lose_all(struct sim *sim, const struct sim_step *step)
{
	struct work work = {0};

	put_fill(&work, sim, step);
	sim->findings_expected = true;
	sim_idle(sim); /* what the submission would wait for is not lost */
	vidmm_adapter_lose_completions(sim->adapter, true);
	if (submit(sim, step, &work))
		vidmm_sleep_until_ns(sim->host, vidmm_now_ns(sim->host) + 1000000);
	vidmm_adapter_lose_completions(sim->adapter, false);
	sim_idle(sim);
	sim_recover(sim, SIM_LOSS_POSSIBLE, step->process);
}

/* The miniport refuses the buffer, and nothing of it happens. */
void sim_answer(struct sim *sim, const struct sim_step *step)
{
	static const struct {
		NTSTATUS status;
		HRESULT result;
	} answers[] = {
		{STATUS_INVALID_PARAMETER, E_INVALIDARG},
		{STATUS_ILLEGAL_INSTRUCTION, D3DDDIERR_ILLEGALINSTRUCTION},
		{STATUS_PRIVILEGED_INSTRUCTION, D3DDDIERR_PRIVILEGEDINSTRUCTION},
		{STATUS_NO_MEMORY, E_OUTOFMEMORY},
	};
	uint32_t which = step->d % 4;
	const HRESULT also[] = {answers[which].result, S_OK};
	const struct softgpu_answer answer = {.command = {SOFTGPU_ANSWER, 0, sizeof(answer)},
					      .status = answers[which].status};
	struct work work = {0};

	put_fill(&work, sim, step);
	put(&work, &answer, sizeof(answer));
	if (!may_submit(sim, step->process, &work)) {
		sim_skip(sim);
		return;
	}
	order(sim, step->process, &work);
	sim->findings_expected = true;
	if (sim_expect(sim, "DMA-10", "pfnRenderCb", render(sim, step->process, &work), also))
		sim_wrong(sim, "DMA-10", "pfnRenderCb hides that the miniport returned 0x%08X",
			  (uint32_t)answer.status);
	sim_done(sim);
}

/* The engine, or the adapter, is reset. (TDR-02) */
void sim_hang(struct sim *sim, const struct sim_step *step)
{
	const struct softgpu_command hang = {SOFTGPU_HANG, 0, sizeof(hang)};
	struct work work = {.context = sim_context_of(step)};

	put(&work, &hang, sizeof(hang));
	if (sim->model.process[step->process].context[work.context].count) {
		sim_skip(sim);
		return;
	}
	sim->findings_expected = true;
	if (!submit(sim, step, &work))
		return;
	sim_idle(sim);
	sim_recover(sim, SIM_LOSS_CERTAIN, step->process);
}
