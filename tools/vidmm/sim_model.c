/* SPDX-License-Identifier: MIT */
#include "sim_model.h"

#include <stdlib.h>
#include <string.h>

/* ---- allocations ---- */

bool model_create(struct model *model, uint32_t process, uint32_t allocation, uint32_t size_bytes,
		  bool local)
{
	struct model_allocation *a = &model->process[process].allocation[allocation];
	uint8_t *bytes = model->contents ? calloc(1, size_bytes) : NULL;

	if (model->contents && !bytes)
		return false;
	*a = (struct model_allocation){.exists = true,
				       .known = true,
				       .size_bytes = size_bytes,
				       .bytes = bytes,
				       .local = local};
	return true;
}

void model_destroy(struct model *model, uint32_t process, uint32_t allocation)
{
	struct model_allocation *a = &model->process[process].allocation[allocation];

	while (a->listed)
		model_unlist(model, process, allocation);
	free(a->bytes);
	memset(a, 0, sizeof(*a));
}

void model_write(struct model *model, uint32_t process, uint32_t allocation, uint32_t offset,
		 uint32_t length, uint32_t value)
{
	struct model_allocation *a = &model->process[process].allocation[allocation];

	a->written = true;
	if (length == a->size_bytes)
		a->known = true;
	for (uint32_t i = 0; a->bytes && i < length; i += 4) {
		uint32_t word = value + i / 4;

		memcpy(a->bytes + offset + i, &word, 4);
	}
}

void model_forget_content(struct model *model, uint32_t process, uint32_t allocation)
{
	model->process[process].allocation[allocation].known = false;
}

uint32_t model_compare(const struct model *model, uint32_t process, uint32_t allocation,
		       const uint8_t *bytes, uint32_t offset, uint32_t length)
{
	const struct model_allocation *a = &model->process[process].allocation[allocation];

	if (!a->bytes || !a->known || !memcmp(bytes, a->bytes + offset, length))
		return MODEL_NONE;
	for (uint32_t i = 0; i < length; i++)
		if (bytes[i] != a->bytes[offset + i])
			return offset + i;
	return MODEL_NONE;
}

/* ---- residency lists ---- */

void model_note_write(struct model *model, uint32_t process, uint32_t allocation)
{
	model->process[process].allocation[allocation].written = true;
}

void model_list(struct model *model, uint32_t process, uint32_t allocation)
{
	struct model_process *p = &model->process[process];
	struct model_allocation *a = &p->allocation[allocation];

	if (a->listed++)
		return;
	a->written = a->held || a->user || a->pending;
	p->listed_bytes += a->size_bytes;
	p->local_bytes += a->local ? a->size_bytes : 0;
}

void model_unlist(struct model *model, uint32_t process, uint32_t allocation)
{
	struct model_process *p = &model->process[process];
	struct model_allocation *a = &p->allocation[allocation];

	if (--a->listed)
		return;
	p->listed_bytes -= a->size_bytes;
	p->local_bytes -= a->local ? a->size_bytes : 0;
}

/* ---- work of the GPU ---- */

static void fill(struct model_allocation *to, const struct model_effect *e)
{
	if (e->length == to->size_bytes)
		to->known = true;
	for (uint32_t i = 0; to->bytes && i < e->length; i += 4)
		memcpy(to->bytes + e->to_offset + i, &e->pattern, 4);
}

static void copy(struct model_allocation *to, const struct model_allocation *from,
		 const struct model_effect *e)
{
	if (!from->known)
		to->known = false;
	else if (e->length == to->size_bytes)
		to->known = true;
	if (to->bytes && to != from)
		memcpy(to->bytes + e->to_offset, from->bytes + e->from_offset, e->length);
}

/* Returns false for a wait that is not satisfied. */
static bool take_effect(struct model_process *p, const struct model_effect *e)
{
	struct model_fence *fence = &p->fence[e->fence];

	switch (e->work) {
	case MODEL_FILL:
		fill(&p->allocation[e->to], e);
		return true;
	case MODEL_COPY:
		copy(&p->allocation[e->to], &p->allocation[e->from], e);
		return true;
	case MODEL_SIGNAL:
		if (e->value > fence->value)
			fence->value = e->value;
		return true;
	case MODEL_WAIT:
	default:
		return fence->value >= e->value;
	}
}

static void count_pending(struct model_process *p, const struct model_effect *e, uint32_t change)
{
	if (e->work == MODEL_WAIT || e->work == MODEL_SIGNAL) {
		p->fence[e->fence].pending += change;
		return;
	}
	p->allocation[e->to].pending += change;
	if (e->work == MODEL_COPY)
		p->allocation[e->from].pending += change;
}

static bool run_first(struct model_process *p, struct model_context *c)
{
	struct model_effect first = c->queue[0];

	if (!c->count || !take_effect(p, &first))
		return false;
	count_pending(p, &first, (uint32_t)-1);
	c->count--;
	memmove(c->queue, c->queue + 1, c->count * sizeof(c->queue[0]));
	return true;
}

/* A signal of one context may release another one. */
static void run(struct model_process *p)
{
	bool more = true;

	while (more) {
		more = false;
		for (uint32_t i = 0; i < MODEL_CONTEXTS; i++)
			while (run_first(p, &p->context[i]))
				more = true;
	}
}

bool model_submit(struct model *model, uint32_t process, uint32_t context,
		  const struct model_effect *effect)
{
	struct model_process *p = &model->process[process];
	struct model_context *c = &p->context[context];

	if (c->count == MODEL_QUEUE)
		return false;
	if (effect->work == MODEL_SIGNAL && effect->value > p->fence[effect->fence].highest)
		p->fence[effect->fence].highest = effect->value;
	c->queue[c->count++] = *effect;
	count_pending(p, effect, 1);
	run(p);
	return true;
}

bool model_is_held(const struct model *model, uint32_t process, uint32_t context)
{
	return model->process[process].context[context].count != 0;
}

void model_signal(struct model *model, uint32_t process, uint32_t fence, uint64_t value)
{
	struct model_process *p = &model->process[process];
	struct model_fence *f = &p->fence[fence];

	f->value = value > f->value ? value : f->value;
	f->highest = value > f->highest ? value : f->highest;
	run(p);
}

void model_drop(struct model *model, uint32_t process, uint32_t context)
{
	struct model_process *p = &model->process[process];
	struct model_context *c = &p->context[context];

	while (c->count)
		count_pending(p, &c->queue[--c->count], (uint32_t)-1);
}

void model_idle(struct model *model)
{
	for (uint32_t i = 0; i < MODEL_PROCESSES; i++)
		for (uint32_t j = 0; j < MODEL_ALLOCATIONS; j++)
			if (!model->process[i].allocation[j].pending)
				model->process[i].allocation[j].user = 0;
}

void model_end_process(struct model *model, uint32_t process)
{
	struct model_process *p = &model->process[process];

	for (uint32_t i = 0; i < MODEL_ALLOCATIONS; i++)
		free(p->allocation[i].bytes);
	memset(p, 0, sizeof(*p));
}
