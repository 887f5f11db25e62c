/* SPDX-License-Identifier: MIT */
/* Mutates scripts by steps: a step is inserted, removed, repeated, or changed in one byte. */
#include <string.h>

#include "hostile.h"

#define STEP HOSTILE_STEP_BYTES

static uint32_t below(struct draw *draw, size_t count)
{
	return draw_below(draw, (uint32_t)count);
}

/* Kinds and connections are small numbers. Other bytes get any value, or one near the present. */
static void change(struct draw *draw, uint8_t *step)
{
	uint32_t at = below(draw, STEP);

	if (at == 0)
		step[at] = (uint8_t)below(draw, HOSTILE_KINDS);
	else if (at == 1)
		step[at] = (uint8_t)below(draw, below(draw, 2) ? 2 : HOSTILE_CONNECTIONS);
	else if (below(draw, 3))
		step[at] = (uint8_t)below(draw, 256);
	else
		step[at] ^= (uint8_t)(1u << below(draw, 8));
}

static void invent(struct draw *draw, uint8_t *step)
{
	for (uint32_t i = 0; i < STEP; i++)
		step[i] = (uint8_t)below(draw, 256);
	step[0] = (uint8_t)below(draw, HOSTILE_KINDS);
	step[1] = (uint8_t)below(draw, below(draw, 4) ? 1 : HOSTILE_CONNECTIONS);
}

/* Inserts a step, new or copied, before the step `at`. */
static size_t put(struct draw *draw, uint8_t *script, size_t steps, size_t at)
{
	uint8_t step[STEP];

	if (steps > 0 && below(draw, 2))
		memcpy(step, script + below(draw, steps) * STEP, STEP);
	else
		invent(draw, step);
	memmove(script + (at + 1) * STEP, script + at * STEP, (steps - at) * STEP);
	memcpy(script + at * STEP, step, STEP);
	return steps + 1;
}

size_t hostile_mutate(struct draw *draw, uint8_t *script, size_t bytes, size_t room)
{
	size_t steps = bytes / STEP, most = room / STEP;

	for (uint32_t i = 1 + below(draw, 4); i > 0; i--) {
		size_t at = steps ? below(draw, steps) : 0;

		switch (below(draw, 8)) {
		case 0:
		case 1:
			if (steps < most)
				steps = put(draw, script, steps,
					    steps ? below(draw, steps + 1) : 0);
			break;
		case 2:
			if (steps > 1) {
				steps--;
				memmove(script + at * STEP, script + (at + 1) * STEP,
					(steps - at) * STEP);
			}
			break;
		default:
			if (steps > 0)
				change(draw, script + at * STEP);
			break;
		}
	}
	if (steps == 0 && most > 0)
		steps = put(draw, script, 0, 0);
	return steps * STEP;
}

size_t hostile_cross(struct draw *draw, const uint8_t *one, size_t one_bytes, const uint8_t *other,
		     size_t other_bytes, uint8_t *script, size_t room)
{
	size_t head = below(draw, one_bytes / STEP + 1), from = below(draw, other_bytes / STEP + 1);
	size_t tail = other_bytes / STEP - from, most = room / STEP;

	head = head < most ? head : most;
	tail = tail < most - head ? tail : most - head;
	memcpy(script, one, head * STEP);
	memcpy(script + head * STEP, other + from * STEP, tail * STEP);
	return (head + tail) * STEP;
}

size_t hostile_opening(uint8_t *script, size_t room)
{
	/* hello; a device; another one of D3DKMT's; a context */
	static const uint8_t opening[3][3] = {{1, 0, 15}, {4, 0, 0}, {4, 0, 0}};

	if (room < 3 * STEP)
		return 0;
	memset(script, 0, 3 * STEP);
	for (uint32_t i = 0; i < 3; i++)
		memcpy(script + i * STEP, opening[i], 3);
	return 3 * STEP;
}
