/* SPDX-License-Identifier: MIT */
/* Steps about what is in video memory: offers, priorities, residency lists and their budget. */
#include <stdlib.h>

#include "sim.h"

/*
 * Everything on the lists of a device must be in memory at once, each allocation in one piece. What
 * fits in bytes and cannot be placed loses the device (PRI-16).
 */
static uint64_t listed_bytes_max(const struct sim *sim)
{
	return sim->setup->vram_bytes / 8 * 3;
}

static struct model_allocation *model_of(struct sim *sim, const struct sim_step *step)
{
	return &sim->model.process[step->process].allocation[step->a];
}

void sim_offer(struct sim *sim, const struct sim_step *step)
{
	struct sim_process *p = &sim->process[step->process];
	const D3DDDICB_OFFERALLOCATIONS args = {.HandleList = &p->allocation[step->a].handle,
						.NumAllocations = 1,
						.Priority =
							(D3DDDI_OFFER_PRIORITY)(1 + step->c % 4)};

	if (!sim_is_free(sim, step->process, step->a)) {
		sim_skip(sim);
		return;
	}
	if (!sim_expect(sim, "OFR-01", "pfnOfferAllocationsCb",
			p->cb->pfnOfferAllocationsCb(p->handle, &args), NULL)) {
		sim_refused(sim);
		return;
	}
	model_of(sim, step)->offered = true;
	sim_done(sim);
}

void sim_reclaim(struct sim *sim, const struct sim_step *step)
{
	static const HRESULT queued[] = {E_PENDING, S_OK};
	struct sim_process *p = &sim->process[step->process];
	struct model_allocation *a = model_of(sim, step);
	BOOL discarded = 0;
	const D3DDDICB_RECLAIMALLOCATIONS args = {.HandleList = &p->allocation[step->a].handle,
						  .NumAllocations = 1,
						  .pDiscarded = &discarded};
	D3DDDICB_RECLAIMALLOCATIONS2 args2 = {.PagingQueue = p->queue.hPagingQueue,
					      .HandleList = &p->allocation[step->a].handle,
					      .NumAllocations = 1,
					      .pDiscarded = &discarded};

	if (!a->exists || a->held) {
		sim_skip(sim);
		return;
	}
	HRESULT result = sim->wddm2 ? p->cb->pfnReclaimAllocations2Cb(p->handle, &args2)
				    : p->cb->pfnReclaimAllocationsCb(p->handle, &args);
	if (!sim_expect(sim, "OFR-06", "the reclaim", result, sim->wddm2 ? queued : NULL) &&
	    result != E_PENDING) {
		sim_refused(sim);
		return;
	}
	if (discarded && !a->offered)
		sim_wrong(sim, "OFR-07",
			  "what was not offered was discarded: process %u, allocation %u",
			  step->process, step->a);
	if (discarded) {
		sim->result->discards++;
		model_forget_content(&sim->model, step->process, step->a);
	}
	a->offered = false;
	sim_done(sim);
}

void sim_priority(struct sim *sim, const struct sim_step *step)
{
	struct sim_process *p = &sim->process[step->process];
	const UINT priority = 0x28000000u + step->c % 0xA0000001u;
	const D3DDDICB_SETPRIORITY args = {.HandleList = &p->allocation[step->a].handle,
					   .NumAllocations = 1,
					   .pPriorities = &priority};

	if (!model_of(sim, step)->exists) {
		sim_skip(sim);
		return;
	}
	if (!sim_expect(sim, "PRI-01", "pfnSetPriorityCb",
			p->cb->pfnSetPriorityCb(p->handle, &args), NULL)) {
		sim_refused(sim);
		return;
	}
	sim_done(sim);
}

/* The place must be one that the allocation supports. */
void sim_query(struct sim *sim, const struct sim_step *step)
{
	struct sim_process *p = &sim->process[step->process];
	D3DDDI_RESIDENCYSTATUS status = (D3DDDI_RESIDENCYSTATUS)0;
	const D3DDDICB_QUERYRESIDENCY args = {.HandleList = &p->allocation[step->a].handle,
					      .NumAllocations = 1,
					      .pResidencyStatus = &status};
	uint32_t set = p->allocation[step->a].segment_set;

	if (!model_of(sim, step)->exists) {
		sim_skip(sim);
		return;
	}
	if (!sim_expect(sim, "PRI-04", "pfnQueryResidencyCb",
			p->cb->pfnQueryResidencyCb(p->handle, &args), NULL)) {
		sim_refused(sim);
		return;
	}
	if (status < D3DDDI_RESIDENCYSTATUS_RESIDENTINGPUMEMORY ||
	    status > D3DDDI_RESIDENCYSTATUS_NOTRESIDENT ||
	    (set && status != D3DDDI_RESIDENCYSTATUS_NOTRESIDENT &&
	     !(set & 1u << (status - D3DDDI_RESIDENCYSTATUS_RESIDENTINGPUMEMORY))))
		sim_wrong(sim, "PRI-04", "residency %d is impossible with segment set %u",
			  (int)status, set);
	sim_done(sim);
}

/* ---- residency lists, from 2.0 on ---- */

enum { ONLY_IF_NECESSARY = 0x1, NOT_WRITTEN_TO = 0x2 }; /* D3DDDI_EVICT_FLAGS */

/*
 * The request is refused if the process would be over its budget, and else never. With
 * CantTrimFurther the budget is no limit. (RES-05, PRI-13)
 */
static void check_budget(struct sim *sim, const struct sim_step *step, bool good)
{
	const struct model_process *m = &sim->model.process[step->process];
	const struct model_allocation *a = model_of(sim, step);
	uint64_t bytes = m->local_bytes + (a->listed || !a->local ? 0 : a->size_bytes);
	bool over = bytes > m->budget_bytes && step->c % 2 == 0;

	if (good != over || (!good && sim->no_memory))
		return;
	sim_wrong(sim, "RES-05",
		  "%u bytes of allocation %u were %s: with them %llu of the budget of %llu bytes "
		  "are in use",
		  a->size_bytes, step->a, good ? "accepted" : "refused", (unsigned long long)bytes,
		  (unsigned long long)m->budget_bytes);
}

static bool make_resident(struct sim *sim, const struct sim_step *step)
{
	static const HRESULT also[] = {E_PENDING, E_OUTOFMEMORY, S_OK};
	struct sim_process *p = &sim->process[step->process];
	D3DDDI_MAKERESIDENT args = {.hPagingQueue = p->queue.hPagingQueue,
				    .NumAllocations = 1,
				    .AllocationList = &p->allocation[step->a].handle,
				    .Flags.Value = step->c % 2}; /* CantTrimFurther */
	HRESULT result = p->cb->pfnMakeResidentCb(p->handle, &args);
	bool good =
		sim_expect(sim, "RES-03", "pfnMakeResidentCb", result, also) || result == E_PENDING;

	if (args.NumAllocations != (good ? 1 : 0))
		sim_wrong(sim, "RES-02", "pfnMakeResidentCb returned %u allocations",
			  args.NumAllocations);
	check_budget(sim, step, good);
	if (good)
		model_list(&sim->model, step->process, step->a);
	return good;
}

void sim_list(struct sim *sim, const struct sim_step *step)
{
	const struct model_process *m = &sim->model.process[step->process];
	const struct model_allocation *a = model_of(sim, step);

	if (!sim->wddm2 || !a->exists || a->offered ||
	    (!a->listed && m->listed_bytes + a->size_bytes > listed_bytes_max(sim))) {
		sim_skip(sim);
		return;
	}
	if (make_resident(sim, step))
		sim_done(sim);
	else
		sim_refused(sim);
}

/*
 * Content that has not changed need not be copied. An Evict may say so when the allocation stays on
 * the list, and then the GPU may write to it. (PRI-10)
 */
static uint32_t choose_evict_flags(const struct sim *sim, const struct sim_step *step)
{
	const struct model_allocation *a = &sim->model.process[step->process].allocation[step->a];

	return step->c & (a->written ? ONLY_IF_NECESSARY : ONLY_IF_NECESSARY | NOT_WRITTEN_TO);
}

void sim_unlist(struct sim *sim, const struct sim_step *step)
{
	struct sim_process *p = &sim->process[step->process];
	const struct model_allocation *a = model_of(sim, step);
	D3DDDICB_EVICT args = {.NumAllocations = 1,
			       .AllocationList = &p->allocation[step->a].handle,
			       .Flags.Value = choose_evict_flags(sim, step)};

	if (!sim->wddm2 || !a->exists || !a->listed || a->pending) {
		sim_skip(sim);
		return;
	}
	if (args.Flags.Value & NOT_WRITTEN_TO && step->d % 2 && !a->offered &&
	    !make_resident(sim, step)) {
		sim_refused(sim);
		return;
	}
	if (!sim_expect(sim, "RES-06", "pfnEvictCb", p->cb->pfnEvictCb(p->handle, &args), NULL)) {
		sim_refused(sim);
		return;
	}
	model_unlist(&sim->model, step->process, step->a);
	sim_done(sim);
}

void sim_budget(struct sim *sim, const struct sim_step *step)
{
	uint64_t bytes = step->c % 4 ? step->c % sim->setup->vram_bytes : sim->setup->vram_bytes;
	struct sim_process *p = &sim->process[step->process];

	if (!sim->wddm2) {
		sim_skip(sim);
		return;
	}
	vidmm_status status = vidmm_process_set_budget(p->process, sim->adapter, 0, bytes);
	if (status < 0)
		sim_wrong(sim, "PRI-13", "vidmm_process_set_budget returned 0x%08X",
			  (uint32_t)status);
	sim->model.process[step->process].budget_bytes = bytes;
	sim_done(sim);
}
