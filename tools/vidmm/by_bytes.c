/* SPDX-License-Identifier: MIT */
/* Implements by_bytes.h. An eviction compares all resident buffers. */
#include <stdlib.h>

#include "by_bytes.h"
#include "grow.h"
#include "policy/order.h"

#define PAGE          ((uint64_t)4096)
#define NAMED(policy) (REPLAY_POLICY_FIRST + (unsigned)VIDMM_EVICTION_##policy)

struct buffer {
	uint64_t size_bytes;
	uint64_t position; /* of the last use: the n-th reference of all */
	struct vmm_policy_uses uses;
	uint32_t required; /* by this submission */
	uint32_t place;    /* in `resident`, plus 1; 0: not in video memory */
	bool evicted;      /* and its content is still wanted */
};

struct buffers {
	struct buffer *buffer; /* index: id - 1 */
	uint32_t count, capacity;
};

struct name {
	unsigned process;
	uint32_t id;
};

struct by_bytes {
	enum replay_policy policy;
	uint64_t memory_bytes, used_bytes, again_bytes, references;
	uint32_t now;                /* submission, from 1 */
	struct next_uses *next_uses; /* of the policy `reference`, else NULL */
	struct buffers *processes;
	unsigned process_count;
	struct name *resident;
	uint32_t resident_count, resident_capacity;
};

bool by_bytes_knows(enum replay_policy policy)
{
	return policy != NAMED(CLOCK) && policy < REPLAY_POLICY_FILE;
}

struct by_bytes *by_bytes_create(unsigned process_count, enum replay_policy policy,
				 struct next_uses *next_uses, uint64_t memory_bytes)
{
	struct by_bytes *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->policy = policy != REPLAY_POLICY_DEFAULT ? policy : NAMED(POLICY_DEFAULT);
	b->next_uses = next_uses;
	b->memory_bytes = memory_bytes;
	b->process_count = process_count;
	b->processes = calloc(process_count, sizeof(*b->processes));
	if (b->processes)
		return b;
	free(b);
	return NULL;
}

void by_bytes_destroy(struct by_bytes *b)
{
	if (!b)
		return;
	for (unsigned p = 0; p < b->process_count; p++)
		free(b->processes[p].buffer);
	free(b->processes);
	free(b->resident);
	free(b);
}

/* Returns NULL when out of memory. */
static struct buffer *buffer_of(struct by_bytes *b, unsigned process, uint32_t id)
{
	struct buffers *of = &b->processes[process];

	while (of->count < id) {
		if (!grow_array((void **)&of->buffer, &of->capacity, of->count,
				sizeof(*of->buffer)))
			return NULL;
		of->buffer[of->count++] = (struct buffer){0};
	}
	return &of->buffer[id - 1];
}

static struct buffer *resident(struct by_bytes *b, uint32_t place)
{
	return buffer_of(b, b->resident[place].process, b->resident[place].id);
}

static void leave(struct by_bytes *b, struct buffer *buffer)
{
	uint32_t place = buffer->place - 1, last = --b->resident_count;

	b->used_bytes -= buffer->size_bytes;
	buffer->place = 0;
	if (place == last)
		return;
	b->resident[place] = b->resident[last];
	resident(b, place)->place = place + 1;
}

/* The content is not wanted any more. */
static void drop(struct by_bytes *b, struct buffer *buffer)
{
	buffer->evicted = false;
	if (buffer->place)
		leave(b, buffer);
}

static uint64_t distance_of(struct by_bytes *b, uint32_t place, struct buffer *buffer)
{
	switch ((unsigned)b->policy) {
	case NAMED(PREDICTED):
		return vmm_policy_distance(&buffer->uses, b->now);
	case REPLAY_POLICY_REFERENCE:
		return next_uses_buffer_distance(b->next_uses, b->resident[place].process,
						 b->resident[place].id);
	case NAMED(MRU):
		return buffer->position;
	default:
		return b->references - buffer->position;
	}
}

/* Evicts the buffer with the greatest distance; of equal ones the least recently used. */
static bool evict_one(struct by_bytes *b)
{
	struct buffer *victim = NULL;
	uint64_t farthest = 0;

	for (uint32_t i = 0; i < b->resident_count; i++) {
		struct buffer *buffer = resident(b, i);
		uint64_t distance;

		if (buffer->required == b->now)
			continue;
		distance = distance_of(b, i, buffer);
		if (victim && (distance < farthest ||
			       (distance == farthest && buffer->position > victim->position)))
			continue;
		victim = buffer;
		farthest = distance;
	}
	if (!victim)
		return false;
	victim->evicted = true;
	leave(b, victim);
	return true;
}

static bool enter(struct by_bytes *b, unsigned process, uint32_t id, struct buffer *buffer)
{
	if (!grow_array((void **)&b->resident, &b->resident_capacity, b->resident_count,
			sizeof(*b->resident)))
		return false;
	while (b->used_bytes + buffer->size_bytes > b->memory_bytes)
		if (!evict_one(b))
			break; /* the submission alone is larger than the memory */
	b->used_bytes += buffer->size_bytes;
	b->again_bytes += buffer->evicted ? buffer->size_bytes : 0;
	buffer->evicted = false;
	b->resident[b->resident_count++] = (struct name){process, id};
	buffer->place = b->resident_count;
	return true;
}

static bool submit(struct by_bytes *b, unsigned process, const struct trace_submission *s)
{
	b->now++;
	for (uint32_t i = 0; i < s->object_count; i++)
		buffer_of(b, process, s->objects[i].id)->required = b->now;
	for (uint32_t i = 0; i < s->object_count; i++) {
		struct buffer *buffer = buffer_of(b, process, s->objects[i].id);

		if (!buffer->place && !enter(b, process, s->objects[i].id, buffer))
			return false;
	}
	for (uint32_t i = 0; i < s->object_count; i++) {
		struct buffer *buffer = buffer_of(b, process, s->objects[i].id);

		buffer->position = ++b->references;
		vmm_policy_use(&buffer->uses, b->now);
	}
	if (b->next_uses)
		next_uses_advance(b->next_uses);
	return true;
}

bool by_bytes_count(struct by_bytes *b, unsigned process, const struct trace_event *event)
{
	struct buffer *buffer;

	switch (event->op) {
	case TRACE_CREATE:
	case TRACE_IMPORT:
		buffer = buffer_of(b, process, event->id);
		if (!buffer)
			return false;
		buffer->size_bytes = (event->u.create.size_bytes + PAGE - 1) & ~(PAGE - 1);
		return true;
	case TRACE_CLOSE:
		drop(b, buffer_of(b, process, event->id));
		return true;
	case TRACE_ADVISE:
		if (!event->u.needed)
			drop(b, buffer_of(b, process, event->id));
		return true;
	case TRACE_SUBMIT:
		return submit(b, process, event->u.submission);
	default:
		return true;
	}
}

uint64_t by_bytes_again(const struct by_bytes *b)
{
	return b->again_bytes;
}
