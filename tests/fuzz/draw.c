/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "draw.h"

#define ELEMENTS_MAX 5u

uint32_t draw_below(struct draw *d, uint32_t below)
{
	d->seed = d->seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(d->seed >> 33) % below;
}

/* Returns a small number (flags, counts, types) or a word of the pool. */
static uint32_t meaningful(struct draw *d)
{
	return draw_below(d, 2) ? draw_below(d, 9) : d->pool[draw_below(d, d->pool_count)];
}

static uint32_t descriptor(struct draw *d)
{
	if (d->descriptor_count)
		return (uint32_t)d->descriptors[draw_below(d, d->descriptor_count)];
	return draw_below(d, 1000);
}

uint8_t *draw_block(struct draw *d, uint64_t bytes)
{
	uint8_t *memory = malloc(bytes ? bytes : 1);

	if (!memory || d->count == DRAW_BLOCKS)
		abort();
	for (uint64_t i = 0; i < bytes; i++)
		memory[i] = (uint8_t)draw_below(d, 256);
	for (uint64_t i = 0; d->pool_count && i + 4 <= bytes; i += 4)
		if (draw_below(d, 4))
			draw_set(memory, (uint32_t)i, meaningful(d), 4);
	d->blocks[d->count++] = memory;
	return memory;
}

void draw_forget(struct draw *d)
{
	while (d->count)
		free(d->blocks[--d->count]);
}

void draw_set(uint8_t *record, uint32_t at, uint64_t value, uint32_t bytes)
{
	memcpy(record + at, &value, bytes);
}

uint64_t draw_get(const uint8_t *record, uint32_t at, uint32_t bytes)
{
	uint64_t value = 0;

	memcpy(&value, record + at, bytes);
	return value;
}

/* Returns the type of the object with that handle. */
enum vmm_wire_values draw_values_of(void *context, uint32_t handle)
{
	(void)context;
	return (enum vmm_wire_values)(handle % 3);
}

bool draw_applies(const struct vmm_wire_member *member, const uint8_t *record)
{
	if (member->when_mask &&
	    (draw_get(record, member->when_at, 4) & member->when_mask) != member->when_value)
		return false;
	if (member->given &&
	    (member->given == VMM_WIRE_IF_SET) != (draw_get(record, member->given_at, 8) != 0))
		return false;
	if (!member->when_values)
		return true;
	const uint8_t *objects =
		(const uint8_t *)(uintptr_t)draw_get(record, member->when_objects, 8);
	/* An address that must never be read stands for an array that is too long. */
	if (!objects || objects == (const uint8_t *)0x1000 ||
	    !draw_get(record, member->count_at, 4))
		return false;
	return (uint32_t)draw_values_of(NULL, (uint32_t)draw_get(objects, 0, 4)) >=
	       member->when_values;
}

uint64_t draw_elements(const struct vmm_wire_member *member, const uint8_t *record)
{
	uint64_t count =
		member->counted ? draw_get(record, member->count_at, member->count_bytes) : 0;

	return count ? count : member->least;
}

/* ---- arguments of a call ---- */

static void draw_member(struct draw *d, const struct vmm_wire_member *member, uint8_t *record)
{
	bool array = member->kind == VMM_WIRE_ARRAY;
	uint64_t count = array ? draw_elements(member, record) : 0;

	if (member->kind == VMM_WIRE_DESCRIPTOR)
		draw_set(record, member->at, draw_below(d, 3) ? descriptor(d) : 0, 8);
	else if (!array)
		draw_set(record, member->at, draw_below(d, 2) ? draw_below(d, UINT32_MAX) : 0, 8);
	else if (!draw_below(d, 4))
		draw_set(record, member->at, 0, 8);
	else if (count > member->limit)
		draw_set(record, member->at, 0x1000, 8); /* this address is never read */
	else {
		uint8_t *memory = draw_block(d, count * member->unit);

		draw_set(record, member->at, (uint64_t)(uintptr_t)memory, 8);
		for (uint64_t i = 0; member->record && i < count; i++)
			draw_record(d, member->record, memory + i * member->unit);
	}
}

/* Counts and conditions are drawn first, because pointers depend on them. */
void draw_record(struct draw *d, const struct vmm_wire_record *record, uint8_t *memory)
{
	for (uint32_t i = 0; i < record->count; i++) {
		const struct vmm_wire_member *member = &record->members[i];
		uint32_t count = draw_below(d, 40) ? draw_below(d, ELEMENTS_MAX + 1) : UINT32_MAX;

		if (member->when_mask && draw_below(d, 2))
			draw_set(memory, member->when_at, member->when_value, 4);
		if (member->kind == VMM_WIRE_ARRAY && member->counted)
			draw_set(memory, member->count_at,
				 count <= member->limit || member->limit < 65535 ? count
										 : (uint64_t)count,
				 member->count_bytes);
	}
	for (uint32_t i = 0; i < record->count; i++)
		if (draw_applies(&record->members[i], memory))
			draw_member(d, &record->members[i], memory);
}
