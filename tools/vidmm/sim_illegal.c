/* SPDX-License-Identifier: MIT */
/* Steps that break a rule. Each must get an error, and change nothing. */
#include <string.h>
#include <vidmm/softgpu.h>

#include "sim.h"

enum { READ_ONLY = 0x1, WRITE_ONLY = 0x2, RESERVED = 0x800, MUST_SUCCEED = 0x2 };

/* What one of them works on. */
struct target {
	struct sim *sim;
	const struct sim_step *step;
	struct sim_process *p;
	const struct model_allocation *a;
	D3DKMT_HANDLE handle; /* of the allocation; 0: none */
};

/* A number that no handle of the process has. (HND-04) */
static D3DKMT_HANDLE stale(const struct target *t)
{
	return 0x40000000u + 0x40u * (0x700000u + t->step->c % 0x1000);
}

/* An offer takes effect after all work that the device has queued before. (OFR-01) */
static bool is_offered(const struct target *t)
{
	for (uint32_t i = 0; i < MODEL_CONTEXTS; i++)
		if (model_is_held(&t->sim->model, t->step->process, i))
			return false;
	return t->a->offered;
}

/* ---- calls: false if the step does not apply ---- */

static bool lock_with(const struct target *t, D3DKMT_HANDLE handle, uint32_t flags, HRESULT *result)
{
	D3DDDICB_LOCK args = {.hAllocation = handle, .Flags.Value = flags};

	*result = t->p->cb->pfnLockCb(t->p->handle, &args);
	return true;
}

static bool lock_stale(const struct target *t, HRESULT *result)
{
	return lock_with(t, stale(t), 0, result);
}

static bool lock_both_ways(const struct target *t, HRESULT *result)
{
	return t->handle && lock_with(t, t->handle, READ_ONLY | WRITE_ONLY, result);
}

static bool lock_reserved(const struct target *t, HRESULT *result)
{
	return t->handle && lock_with(t, t->handle, RESERVED, result);
}

static bool lock_offered(const struct target *t, HRESULT *result)
{
	return is_offered(t) && lock_with(t, t->handle, 0, result);
}

static bool lock_foreign(const struct target *t, HRESULT *result)
{
	const struct sim_process *other =
		&t->sim->process[(t->step->process + 1) % t->sim->setup->processes];
	D3DKMT_HANDLE handle = other->allocation[t->step->a].handle;

	for (uint32_t i = 0; i < MODEL_ALLOCATIONS; i++)
		if (t->p->allocation[i].handle == handle)
			return false;
	return handle && lock_with(t, handle, 0, result);
}

static bool unlock_unlocked(const struct target *t, HRESULT *result)
{
	const D3DDDICB_UNLOCK args = {.NumAllocations = 1, .phAllocations = &t->handle};

	if (!t->handle || t->a->held)
		return false;
	*result = t->p->cb->pfnUnlockCb(t->p->handle, &args);
	return true;
}

static bool destroy_stale(const struct target *t, HRESULT *result)
{
	D3DKMT_HANDLE handle = stale(t);
	const D3DDDICB_DEALLOCATE args = {.NumAllocations = 1, .HandleList = &handle};

	*result = t->p->cb->pfnDeallocateCb(t->p->handle, &args);
	return true;
}

/* A list is refused as a whole. */
static bool destroy_one_and_stale(const struct target *t, HRESULT *result)
{
	const D3DKMT_HANDLE handles[] = {t->handle, stale(t)};
	const D3DDDICB_DEALLOCATE args = {.NumAllocations = 2, .HandleList = handles};

	if (!t->handle)
		return false;
	*result = t->p->cb->pfnDeallocateCb(t->p->handle, &args);
	return true;
}

static bool offer_with(const struct target *t, uint32_t priority, HRESULT *result)
{
	const D3DDDICB_OFFERALLOCATIONS args = {.HandleList = &t->handle,
						.NumAllocations = 1,
						.Priority = (D3DDDI_OFFER_PRIORITY)priority};

	*result = t->p->cb->pfnOfferAllocationsCb(t->p->handle, &args);
	return true;
}

static bool offer_without_priority(const struct target *t, HRESULT *result)
{
	return t->handle && offer_with(t, t->step->c % 2 ? 0 : 9, result);
}

static bool offer_locked(const struct target *t, HRESULT *result)
{
	return t->a->held && offer_with(t, 1, result);
}

static bool create_elsewhere(const struct target *t, HRESULT *result)
{
	struct softgpu_allocation spec = {
		.version = SOFTGPU_ALLOCATION_VERSION, .size_bytes = 4096, .segment_set = 0x10};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec)};
	D3DDDICB_ALLOCATE args = {.NumAllocations = 1, .pAllocationInfo = &info};

	*result = t->p->cb->pfnAllocateCb(t->p->handle, &args);
	return true;
}

/* ---- submissions ---- */

static bool render(const struct target *t, D3DKMT_HANDLE handle, bool write, D3DDDICB_RENDER args,
		   HRESULT *result)
{
	uint32_t context = t->step->c % MODEL_CONTEXTS;
	D3DDDICB_CREATECONTEXT *c = &t->p->context[context];
	const struct model_context *m = &t->sim->model.process[t->step->process].context[context];
	const struct softgpu_fill fill = {
		.command = {SOFTGPU_FILL, 0, sizeof(fill)}, .length = 4096, .pattern = t->step->d};

	if (!m->exists || m->count)
		return false;
	memcpy(c->pCommandBuffer, &fill, sizeof(fill));
	c->pAllocationList[0] =
		(D3DDDI_ALLOCATIONLIST){.hAllocation = handle, .WriteOperation = write};
	args.hContext = c->hContext;
	*result = t->p->cb->pfnRenderCb(t->p->handle, &args);
	if (args.pNewCommandBuffer) {
		c->pCommandBuffer = args.pNewCommandBuffer;
		c->pAllocationList = args.pNewAllocationList;
	}
	return true;
}

static D3DDDICB_RENDER one_fill(void)
{
	return (D3DDDICB_RENDER){.CommandLength = sizeof(struct softgpu_fill), .NumAllocations = 1};
}

static bool render_stale(const struct target *t, HRESULT *result)
{
	return render(t, stale(t), true, one_fill(), result);
}

static bool render_offered(const struct target *t, HRESULT *result)
{
	return is_offered(t) && render(t, t->handle, true, one_fill(), result);
}

static bool render_unwritten(const struct target *t, HRESULT *result)
{
	if (!t->handle || t->a->offered || t->a->held || (t->sim->wddm2 && !t->a->listed))
		return false;
	return render(t, t->handle, false, one_fill(), result);
}

static bool render_too_long(const struct target *t, HRESULT *result)
{
	D3DDDICB_RENDER args = one_fill();

	args.CommandLength = t->p->context[t->step->c % MODEL_CONTEXTS].CommandBufferSize + 8;
	return render(t, t->handle, true, args, result);
}

static bool render_too_many(const struct target *t, HRESULT *result)
{
	D3DDDICB_RENDER args = one_fill();

	args.NumAllocations = t->p->context[t->step->c % MODEL_CONTEXTS].AllocationListSize + 1;
	return render(t, t->handle, true, args, result);
}

/* ---- lists and fences ---- */

static bool evict_unlisted(const struct target *t, HRESULT *result)
{
	D3DDDICB_EVICT args = {.NumAllocations = 1, .AllocationList = &t->handle};

	if (!t->sim->wddm2 || !t->handle || t->a->listed)
		return false;
	*result = t->p->cb->pfnEvictCb(t->p->handle, &args);
	return true;
}

static bool must_succeed_alone(const struct target *t, HRESULT *result)
{
	D3DDDI_MAKERESIDENT args = {.hPagingQueue = t->p->queue.hPagingQueue,
				    .NumAllocations = 1,
				    .AllocationList = &t->handle,
				    .Flags.Value = MUST_SUCCEED};

	if (!t->sim->wddm2 || !t->handle || t->a->offered)
		return false;
	*result = t->p->cb->pfnMakeResidentCb(t->p->handle, &args);
	return true;
}

static bool destroy_no_fence(const struct target *t, HRESULT *result)
{
	const D3DDDICB_DESTROYSYNCHRONIZATIONOBJECT args = {.hSyncObject = stale(t)};

	*result = t->p->cb->pfnDestroySynchronizationObjectCb(t->p->handle, &args);
	return true;
}

static const struct {
	const char *name, *rule;
	bool (*call)(const struct target *t, HRESULT *result);
	HRESULT result;
} cases[] = {
	{"a lock of no allocation", "HND-07", lock_stale, E_INVALIDARG},
	{"a lock with ReadOnly and WriteOnly", "LOCK-07", lock_both_ways, E_INVALIDARG},
	{"a lock with a reserved flag", "LOCK-02", lock_reserved, E_INVALIDARG},
	{"a lock of what is offered", "OFR-05", lock_offered, E_INVALIDARG},
	{"a lock of another process's allocation", "HND-07", lock_foreign, E_INVALIDARG},
	{"an unlock without a lock", "LOCK-03", unlock_unlocked, E_INVALIDARG},
	{"the end of no allocation", "HND-07", destroy_stale, E_INVALIDARG},
	{"the end of one and of no allocation", "HND-07", destroy_one_and_stale, E_INVALIDARG},
	{"an offer with a wrong priority", "OFR-03", offer_without_priority, E_INVALIDARG},
	{"an offer of what is locked", "OFR-08", offer_locked, E_INVALIDARG},
	{"an allocation in no segment", "SEG-01", create_elsewhere, E_INVALIDARG},
	{"work with no allocation", "DMA-16", render_stale, D3DDDIERR_INVALIDHANDLE},
	{"work with what is offered", "OFR-05", render_offered, E_INVALIDARG},
	{"a write without WriteOperation", "DMA-14", render_unwritten, E_INVALIDARG},
	{"commands beyond the buffer", "DMA-08", render_too_long, E_INVALIDARG},
	{"allocations beyond the list", "DMA-08", render_too_many, E_INVALIDARG},
	{"an Evict of what is on no list", "RES-06", evict_unlisted, E_INVALIDARG},
	{"MustSucceed without CantTrimFurther", "RES-05", must_succeed_alone, E_INVALIDARG},
	{"the end of no fence", "SYN-12", destroy_no_fence, E_INVALIDARG},
};

/*
 * The number of calls of clients that had an effect. Offers are not counted: an earlier one may
 * take effect when its allocation is named the next time.
 */
static uint64_t effects(struct sim *sim)
{
	static const uint32_t types[] = {VIDMM_EVENT_CREATE,  VIDMM_EVENT_DESTROY,
					 VIDMM_EVENT_LOCK,    VIDMM_EVENT_UNLOCK,
					 VIDMM_EVENT_RECLAIM, VIDMM_EVENT_SUBMIT};
	uint64_t sum = 0;

	for (uint32_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct vidmm_counter counter;

		vidmm_event_counter(sim->host, types[i], &counter);
		sum += counter.count;
	}
	return sum;
}

void sim_illegal(struct sim *sim, const struct sim_step *step)
{
	uint32_t which = step->d % (sizeof(cases) / sizeof(cases[0]));
	struct sim_process *p = &sim->process[step->process];
	const struct target target = {.sim = sim,
				      .step = step,
				      .p = p,
				      .a = &sim->model.process[step->process].allocation[step->a],
				      .handle = p->allocation[step->a].handle};
	HRESULT result = S_OK;

	sim_idle(sim);
	sim->findings_expected = true;
	uint64_t before = effects(sim);
	if (!cases[which].call(&target, &result)) {
		sim_skip(sim);
		return;
	}
	if (result != cases[which].result)
		sim_wrong(sim, cases[which].rule, "%s returned 0x%08X, expected 0x%08X",
			  cases[which].name, (uint32_t)result, (uint32_t)cases[which].result);
	if (effects(sim) != before)
		sim_wrong(sim, cases[which].rule, "%s was refused, and had an effect",
			  cases[which].name);
	sim_verify(sim, step->process, step->a);
	sim_done(sim);
}
