/* SPDX-License-Identifier: MIT */
/*
 * Steps with fences: those of WDDM 1.x, which contexts alone signal and wait for, and monitored
 * fences, whose values the CPU reads and signals, too.
 */
#include "sim.h"

#define HELD_MAX 4u

static uint32_t number_of(const struct sim_step *step)
{
	return step->a % MODEL_FENCES;
}

static struct model_fence *fence_of(struct sim *sim, const struct sim_step *step)
{
	return &sim->model.process[step->process].fence[number_of(step)];
}

/* ---- creation ---- */

static void create(struct sim *sim, const struct sim_step *step)
{
	struct sim_process *p = &sim->process[step->process];
	uint32_t fence = number_of(step);
	uint64_t value = step->c % 4;
	D3DDDICB_CREATESYNCHRONIZATIONOBJECT2 args = {.Info.Type = D3DDDI_FENCE,
						      .Info.Fence.FenceValue = value};

	if (sim->wddm2) {
		args.Info.Type = D3DDDI_MONITORED_FENCE;
		args.Info.MonitoredFence.InitialFenceValue = value;
	}
	if (!sim_expect(sim, "FEN-01", "pfnCreateSynchronizationObject2Cb",
			p->cb->pfnCreateSynchronizationObject2Cb(p->handle, &args), NULL)) {
		sim_refused(sim);
		return;
	}
	p->fence[fence] = args.hSyncObject;
	p->fence_word[fence] =
		sim->wddm2 ? args.Info.MonitoredFence.FenceValueCPUVirtualAddress : NULL;
	*fence_of(sim, step) =
		(struct model_fence){.exists = true, .value = value, .highest = value};
	sim_done(sim);
}

static HRESULT destroy(struct sim_process *p, D3DKMT_HANDLE fence)
{
	const D3DDDICB_DESTROYSYNCHRONIZATIONOBJECT args = {.hSyncObject = fence};

	return p->cb->pfnDestroySynchronizationObjectCb(p->handle, &args);
}

/* Creates a fence, or destroys it. */
void sim_fence(struct sim *sim, const struct sim_step *step)
{
	struct sim_process *p = &sim->process[step->process];
	struct model_fence *m = fence_of(sim, step);

	if (!m->exists) {
		create(sim, step);
		return;
	}
	if (m->pending) {
		sim_skip(sim);
		return;
	}
	sim_idle(sim);
	if (!sim_expect(sim, "SYN-11", "pfnDestroySynchronizationObjectCb",
			destroy(p, p->fence[number_of(step)]), NULL)) {
		sim_refused(sim);
		return;
	}
	p->fence[number_of(step)] = 0;
	p->fence_word[number_of(step)] = NULL;
	*m = (struct model_fence){0};
	sim_done(sim);
}

void sim_end_fences(struct sim *sim, uint32_t process, const D3DKMT_HANDLE *fences)
{
	struct sim_process *p = &sim->process[process];

	for (uint32_t i = 0; i < MODEL_FENCES; i++)
		if (fences[i])
			sim_expect(sim, "SYN-14", "pfnDestroySynchronizationObjectCb",
				   destroy(p, fences[i]), NULL);
}

/* ---- signals and waits ---- */

/*
 * Two signals that wait in different contexts have no order, so there is one such context at a
 * time; the CPU signals only what has none.
 */
static bool has_signal_elsewhere(const struct model_process *m, uint32_t context, uint32_t fence)
{
	for (uint32_t i = 0; i < MODEL_CONTEXTS; i++)
		for (uint32_t j = 0; i != context && j < m->context[i].count; j++)
			if (m->context[i].queue[j].work == MODEL_SIGNAL &&
			    m->context[i].queue[j].fence == fence)
				return true;
	return false;
}

/* The fences that a call names: some of those from the step's on that exist. */
struct named {
	uint32_t count, fence[MODEL_FENCES];
	D3DKMT_HANDLE handle[MODEL_FENCES];
	UINT64 value[MODEL_FENCES];
};

/* CONTEXT: of a signal in a queue; MODEL_CONTEXTS: of the CPU; MODEL_NONE: a wait. */
static struct named name_fences(const struct sim *sim, const struct sim_step *step,
				uint32_t context)
{
	const struct model_process *m = &sim->model.process[step->process];
	struct named named = {0};

	/* A fence of 1.x is the only object of a call. (FEN-02) */
	for (uint32_t i = 0; i <= (sim->wddm2 ? step->b % MODEL_FENCES : 0); i++) {
		uint32_t fence = (step->a + i) % MODEL_FENCES;

		if (!m->fence[fence].exists ||
		    (context != MODEL_NONE && has_signal_elsewhere(m, context, fence)))
			continue;
		named.fence[named.count] = fence;
		named.handle[named.count++] = sim->process[step->process].fence[fence];
	}
	return named;
}

/* Bit n: allocation n is named by work that waits. */
static uint32_t pending_of(const struct sim *sim, uint32_t process)
{
	uint32_t bits = 0;

	for (uint32_t i = 0; i < MODEL_ALLOCATIONS; i++)
		bits |= sim->model.process[process].allocation[i].pending ? 1u << i : 0;
	return bits;
}

/* Work that no longer waits must have run, without any further work that would start it. */
static void check_released(struct sim *sim, uint32_t process, uint32_t pending)
{
	uint32_t released = pending & ~pending_of(sim, process);

	for (uint32_t i = 0; i < MODEL_ALLOCATIONS; i++)
		if (released & 1u << i)
			sim_verify(sim, process, i);
}

void sim_signal(struct sim *sim, const struct sim_step *step)
{
	struct sim_process *p = &sim->process[step->process];
	struct named named = name_fences(sim, step, MODEL_CONTEXTS);
	const D3DDDICB_SIGNALSYNCHRONIZATIONOBJECTFROMCPU args = {.ObjectCount = named.count,
								  .ObjectHandleArray = named.handle,
								  .FenceValueArray = named.value};

	if (!sim->wddm2 || !named.count) {
		sim_skip(sim);
		return;
	}
	for (uint32_t i = 0; i < named.count; i++)
		named.value[i] = sim->model.process[step->process].fence[named.fence[i]].highest +
				 1 + step->c % 3;
	sim_idle(sim);
	if (!sim_expect(sim, "MFN-10", "pfnSignalSynchronizationObjectFromCpuCb",
			p->cb->pfnSignalSynchronizationObjectFromCpuCb(p->handle, &args), NULL)) {
		sim_refused(sim);
		return;
	}
	uint32_t pending = pending_of(sim, step->process);

	for (uint32_t i = 0; i < named.count; i++)
		model_signal(&sim->model, step->process, named.fence[i], named.value[i]);
	sim_check_fences(sim, step->process);
	check_released(sim, step->process, pending);
	sim_done(sim);
}

/* The call of the version. */
static HRESULT queue(struct sim *sim, const struct sim_step *step, uint32_t context, bool wait,
		     const struct named *named)
{
	struct sim_process *p = &sim->process[step->process];
	HANDLE handle = p->context[context].hContext;
	D3DDDICB_SIGNALSYNCHRONIZATIONOBJECT2 signal1 = {
		.hContext = handle, .ObjectCount = 1, .ObjectHandleArray = {named->handle[0]}};
	D3DDDICB_WAITFORSYNCHRONIZATIONOBJECT2 wait1 = {
		.hContext = handle, .ObjectCount = 1, .ObjectHandleArray = {named->handle[0]}};
	const D3DDDICB_SIGNALSYNCHRONIZATIONOBJECTFROMGPU signal2 = {
		.hContext = handle,
		.ObjectCount = named->count,
		.ObjectHandleArray = named->handle,
		.MonitoredFenceValueArray = named->value};
	const D3DDDICB_WAITFORSYNCHRONIZATIONOBJECTFROMGPU wait2 = {
		.hContext = handle,
		.ObjectCount = named->count,
		.ObjectHandleArray = named->handle,
		.MonitoredFenceValueArray = named->value};

	signal1.Fence.FenceValue = named->value[0];
	wait1.Fence.FenceValue = named->value[0];
	if (sim->wddm2)
		return wait ? p->cb->pfnWaitForSynchronizationObjectFromGpuCb(p->handle, &wait2)
			    : p->cb->pfnSignalSynchronizationObjectFromGpuCb(p->handle, &signal2);
	return wait ? p->cb->pfnWaitForSynchronizationObject2Cb(p->handle, &wait1)
		    : p->cb->pfnSignalSynchronizationObject2Cb(p->handle, &signal1);
}

/* A wait for a value that no signal has had holds the context. */
static void choose_values(const struct sim *sim, const struct sim_step *step, bool wait,
			  struct named *named)
{
	for (uint32_t i = 0; i < named->count; i++) {
		const struct model_fence *f =
			&sim->model.process[step->process].fence[named->fence[i]];

		named->value[i] = wait ? f->value + step->d % 3 : f->highest + 1 + step->d % 2;
	}
}

static void queue_step(struct sim *sim, const struct sim_step *step, bool wait)
{
	uint32_t context = sim_context_of(step);
	const struct model_context *c = &sim->model.process[step->process].context[context];
	struct named named = name_fences(sim, step, wait ? MODEL_NONE : context);
	uint32_t pending = pending_of(sim, step->process);

	if (!named.count || !c->exists || c->count >= HELD_MAX) {
		sim_skip(sim);
		return;
	}
	choose_values(sim, step, wait, &named);
	if (!sim_expect(sim, wait ? "FEN-03" : "SYN-25", wait ? "the wait" : "the signal",
			queue(sim, step, context, wait, &named), NULL)) {
		sim_refused(sim);
		return;
	}
	for (uint32_t i = 0; i < named.count; i++) {
		const struct model_effect effect = {.work = wait ? MODEL_WAIT : MODEL_SIGNAL,
						    .fence = named.fence[i],
						    .value = named.value[i]};

		(void)model_submit(&sim->model, step->process, context, &effect);
	}
	if (step->d % 8 == 0)
		check_released(sim, step->process, pending);
	sim_done(sim);
}

void sim_gpu_signal(struct sim *sim, const struct sim_step *step)
{
	queue_step(sim, step, false);
}

void sim_gpu_wait(struct sim *sim, const struct sim_step *step)
{
	queue_step(sim, step, true);
}

/* After the work that can run has run, each monitored fence has the value of the model. */
void sim_check_fences(struct sim *sim, uint32_t process)
{
	const struct sim_process *p = &sim->process[process];

	if (!sim->wddm2)
		return;
	sim_idle(sim);
	for (uint32_t i = 0; i < MODEL_FENCES; i++) {
		uint64_t expected = sim->model.process[process].fence[i].value;

		if (p->fence_word[i] && *p->fence_word[i] != expected)
			sim_wrong(sim, "MFN-10", "process %u: fence %u has %llu, expected %llu",
				  process, i, (unsigned long long)*p->fence_word[i],
				  (unsigned long long)expected);
	}
}
