/* SPDX-License-Identifier: MIT */
/* Steps that create, destroy, lock and unlock allocations. */
#include <stdio.h>
#include <string.h>
#include <vidmm/softgpu.h>

#include "sim.h"

#define PAGE_BYTES 4096u
#define PAGES_MAX  8u

enum { MEMORY = 1, APERTURE = 2 };                          /* segment sets of softgpu */
enum { READ_ONLY = 0x1, DONOT_WAIT = 0x4, DISCARD = 0x80 }; /* D3DDDICB_LOCKFLAGS */

static struct model_allocation *model_of(struct sim *sim, uint32_t process, uint32_t allocation)
{
	return &sim->model.process[process].allocation[allocation];
}

bool sim_is_free(const struct sim *sim, uint32_t process, uint32_t allocation)
{
	const struct model_allocation *a = &sim->model.process[process].allocation[allocation];

	return a->exists && !a->offered && !a->held && !a->pending;
}

/* ---- creation ---- */

static struct softgpu_allocation describe(const struct sim *sim, const struct sim_step *step)
{
	struct softgpu_allocation spec = {
		.version = SOFTGPU_ALLOCATION_VERSION,
		.flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
		.size_bytes = (uint64_t)(1 + step->d % PAGES_MAX) * PAGE_BYTES,
		.segment_set = (step->c >> 4) % 4, /* 0: all */
	};

	if (step->c & 1 && (!sim->wddm2 || spec.segment_set != MEMORY)) /* LOCK-44 */
		spec.flags |= SOFTGPU_ALLOCATION_CACHED;
	if (step->c & 2)
		spec.flags |= SOFTGPU_ALLOCATION_FROM_END;
	if (step->c % 16 >= 12)
		spec.flags |= SOFTGPU_ALLOCATION_PERMANENT_SYSTEM;
	if (sim->wddm2)
		spec.flags |= SOFTGPU_ALLOCATION_ACCESSED_PHYSICALLY;
	else
		spec.renaming_limit = (step->c >> 8) % 4;
	if ((step->c >> 12) % 3 == 1)
		spec.eviction_set = APERTURE;
	return spec;
}

void sim_create(struct sim *sim, const struct sim_step *step)
{
	struct sim_process *p = &sim->process[step->process];
	struct softgpu_allocation spec = describe(sim, step);
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec)};
	D3DDDICB_ALLOCATE args = {.NumAllocations = 1, .pAllocationInfo = &info};

	if (model_of(sim, step->process, step->a)->exists) {
		sim_skip(sim);
		return;
	}
	if (!sim_expect(sim, "PAG-01", "pfnAllocateCb", p->cb->pfnAllocateCb(p->handle, &args),
			NULL)) {
		sim_refused(sim);
		return;
	}
	p->allocation[step->a] = (struct sim_allocation){
		.handle = info.hAllocation,
		.segment_set = spec.segment_set,
		.permanent = spec.flags & SOFTGPU_ALLOCATION_PERMANENT_SYSTEM};
	if (!model_create(&sim->model, step->process, step->a, (uint32_t)spec.size_bytes,
			  spec.segment_set != APERTURE))
		sim_wrong(sim, "MEMORY", "out of memory");
	sim_done(sim);
}

/* Work that uses the allocation still runs, also work that waits. (SUB-29) */
void sim_destroy(struct sim *sim, const struct sim_step *step)
{
	struct sim_process *p = &sim->process[step->process];
	const struct model_allocation *a = model_of(sim, step->process, step->a);
	const D3DDDICB_DEALLOCATE args = {.NumAllocations = 1,
					  .HandleList = &p->allocation[step->a].handle};

	if (!a->exists || a->pending) {
		sim_skip(sim);
		return;
	}
	if (!sim_expect(sim, "SUB-29", "pfnDeallocateCb", p->cb->pfnDeallocateCb(p->handle, &args),
			NULL)) {
		sim_refused(sim);
		return;
	}
	p->allocation[step->a] = (struct sim_allocation){0};
	model_destroy(&sim->model, step->process, step->a);
	sim_done(sim);
}

/* ---- locks ---- */

/* From 2.0 on a lock does not wait for the GPU. */
static bool lock(struct sim *sim, uint32_t process, uint32_t allocation, uint32_t flags,
		 uint8_t **data)
{
	static const HRESULT busy[] = {D3DERR_WASSTILLDRAWING, S_OK};
	struct sim_process *p = &sim->process[process];
	struct sim_allocation *a = &p->allocation[allocation];

	if (sim->wddm2) {
		D3DDDICB_LOCK2 args = {.hAllocation = a->handle};

		if (model_of(sim, process, allocation)->user)
			sim_idle(sim);
		if (!sim_expect(sim, "LOCK-45", "pfnLock2Cb", p->cb->pfnLock2Cb(p->handle, &args),
				NULL))
			return false;
		*data = args.pData;
		return true;
	}
	D3DDDICB_LOCK args = {.hAllocation = a->handle, .Flags.Value = flags};
	if (!sim_expect(sim, "LOCK-05", "pfnLockCb", p->cb->pfnLockCb(p->handle, &args),
			flags & (DONOT_WAIT | DISCARD) ? busy : NULL))
		return false;
	if (args.hAllocation != a->handle && !(flags & DISCARD))
		sim_wrong(sim, "REN-01", "a lock without Discard renamed the allocation");
	a->handle = args.hAllocation;
	*data = args.pData;
	return true;
}

static void unlock(struct sim *sim, uint32_t process, uint32_t allocation)
{
	struct sim_process *p = &sim->process[process];
	const D3DDDICB_UNLOCK2 args2 = {.hAllocation = p->allocation[allocation].handle};
	const D3DDDICB_UNLOCK args = {.NumAllocations = 1,
				      .phAllocations = &p->allocation[allocation].handle};

	sim_expect(sim, "LOCK-03", "the unlock",
		   sim->wddm2 ? p->cb->pfnUnlock2Cb(p->handle, &args2)
			      : p->cb->pfnUnlockCb(p->handle, &args),
		   NULL);
}

/* From 1.x on the lock has waited; from 2.0 on the caller has. */
static void compare(struct sim *sim, uint32_t process, uint32_t allocation, const uint8_t *data)
{
	const struct model_allocation *a = model_of(sim, process, allocation);

	if (!a->bytes)
		return;
	uint32_t at = model_compare(&sim->model, process, allocation, data, 0, a->size_bytes);
	sim->result->compared_bytes += a->size_bytes;
	if (at != MODEL_NONE)
		sim_wrong(
			sim, "PAG-16",
			"process %u, allocation %u (%u bytes): byte %u is 0x%02X, expected 0x%02X",
			process, allocation, a->size_bytes, at, data[at], a->bytes[at]);
}

void sim_verify(struct sim *sim, uint32_t process, uint32_t allocation)
{
	uint8_t *data;

	if (!sim_is_free(sim, process, allocation) ||
	    !lock(sim, process, allocation, READ_ONLY, &data))
		return;
	compare(sim, process, allocation, data);
	unlock(sim, process, allocation);
}

static void write_words(struct sim *sim, const struct sim_step *step, uint8_t *data,
			uint32_t offset, uint32_t length)
{
	if (!sim->model.contents)
		return;
	for (uint32_t i = 0; i < length; i += 4) {
		uint32_t word = step->d + i / 4;

		memcpy(data + offset + i, &word, 4);
	}
	model_write(&sim->model, step->process, step->a, offset, length, step->d);
}

void sim_read(struct sim *sim, const struct sim_step *step)
{
	uint32_t flags = READ_ONLY | (step->d % 8 ? 0 : DONOT_WAIT);
	uint8_t *data;

	if (!sim_is_free(sim, step->process, step->a)) {
		sim_skip(sim);
		return;
	}
	if (!lock(sim, step->process, step->a, flags, &data)) {
		sim_refused(sim);
		return;
	}
	compare(sim, step->process, step->a, data);
	unlock(sim, step->process, step->a);
	sim_done(sim);
}

void sim_write(struct sim *sim, const struct sim_step *step)
{
	const struct model_allocation *a = model_of(sim, step->process, step->a);
	uint8_t *data;

	if (!sim_is_free(sim, step->process, step->a)) {
		sim_skip(sim);
		return;
	}
	if (!lock(sim, step->process, step->a, 0, &data)) {
		sim_refused(sim);
		return;
	}
	uint32_t offset = step->b % 4 ? step->c % (a->size_bytes / 4) * 4 : 0;
	uint32_t length = step->b % 4 ? 4 + (step->c >> 16) % (a->size_bytes - offset) / 4 * 4
				      : a->size_bytes;
	if (length > a->size_bytes - offset)
		length = a->size_bytes - offset;
	compare(sim, step->process, step->a, data);
	write_words(sim, step, data, offset, length);
	unlock(sim, step->process, step->a);
	sim_done(sim);
}

/* Every byte is new: the former content is lost. */
void sim_discard(struct sim *sim, const struct sim_step *step)
{
	const struct model_allocation *a = model_of(sim, step->process, step->a);
	uint8_t *data;

	if (sim->wddm2 || !sim_is_free(sim, step->process, step->a)) {
		sim_skip(sim);
		return;
	}
	if (!lock(sim, step->process, step->a, DISCARD, &data)) {
		sim_refused(sim);
		return;
	}
	write_words(sim, step, data, 0, a->size_bytes);
	unlock(sim, step->process, step->a);
	sim_done(sim);
}

/* ---- locks over several steps ---- */

/*
 * Work may use the allocation meanwhile, so an aperture is needed: from there the GPU and the CPU
 * both use it. (LKR-02, LOCK-48) A lock of what is permanently in system memory shows nothing of
 * what the GPU writes meanwhile. (PAG-14)
 */
bool sim_may_hold(const struct sim *sim, uint32_t process, uint32_t allocation)
{
	const struct sim_allocation *a = &sim->process[process].allocation[allocation];

	return sim_is_free(sim, process, allocation) && a->segment_set != MEMORY && !a->permanent;
}

void sim_hold(struct sim *sim, const struct sim_step *step)
{
	struct sim_allocation *held = &sim->process[step->process].allocation[step->a];
	uint8_t *data;

	if (!sim_may_hold(sim, step->process, step->a)) {
		sim_skip(sim);
		return;
	}
	if (!lock(sim, step->process, step->a, 0, &data)) {
		sim_refused(sim);
		return;
	}
	compare(sim, step->process, step->a, data);
	held->data = data;
	model_of(sim, step->process, step->a)->held = true;
	model_note_write(&sim->model, step->process, step->a);
	sim_done(sim);
}

void sim_release(struct sim *sim, const struct sim_step *step)
{
	struct sim_allocation *held = &sim->process[step->process].allocation[step->a];
	struct model_allocation *a = model_of(sim, step->process, step->a);

	if (!a->held || a->pending) {
		sim_skip(sim);
		return;
	}
	if (a->user)
		sim_idle(sim);
	compare(sim, step->process, step->a, held->data);
	write_words(sim, step, held->data, 0, 4 * (1 + step->b));
	unlock(sim, step->process, step->a);
	a->held = false;
	held->data = NULL;
	sim_done(sim);
}
