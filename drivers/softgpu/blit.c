/* SPDX-License-Identifier: MIT */
/*
 * Presents on an engine: pixels of four bytes, nearest neighbor if the rectangles differ in size.
 */
#include "softgpu_private.h"

#define PIXEL_BYTES 4u

static uint64_t at(uint64_t address, uint32_t pitch, uint32_t x, uint32_t y)
{
	return address + (uint64_t)y * pitch + (uint64_t)x * PIXEL_BYTES;
}

static uint32_t nearest(uint32_t position, uint32_t to_length, uint32_t from, uint32_t from_length)
{
	return from + (uint32_t)((uint64_t)position * from_length / to_length);
}

static int scaled_row(const struct softgpu_memory *memory, const struct softgpu_hw_blit *b,
		      uint32_t y, uint32_t from_y)
{
	uint32_t x, pixel;

	for (x = b->clip.x; x < b->clip.x + b->clip.width; x++) {
		uint32_t from_x = nearest(x - b->to.x, b->to.width, b->from.x, b->from.width);

		if (!softgpu_read(memory, at(b->source, b->source_pitch, from_x, from_y), &pixel,
				  sizeof(pixel)) ||
		    !softgpu_write(memory, at(b->destination, b->destination_pitch, x, y), &pixel,
				   sizeof(pixel)))
			return 0;
	}
	return 1;
}

static int row(const struct softgpu_memory *memory, const struct softgpu_hw_blit *b, uint32_t y)
{
	struct softgpu_side to = {.address =
					  at(b->destination, b->destination_pitch, b->clip.x, y)},
			    from = {0};
	uint64_t bytes = (uint64_t)b->clip.width * PIXEL_BYTES;
	uint32_t from_y;

	if (b->command.flags & SOFTGPU_HW_BLIT_FILL)
		return softgpu_memory_fill(memory, to.address, bytes, b->color);
	from_y = nearest(y - b->to.y, b->to.height, b->from.y, b->from.height);
	if (b->from.width != b->to.width)
		return scaled_row(memory, b, y, from_y);
	from.address = at(b->source, b->source_pitch, b->from.x + (b->clip.x - b->to.x), from_y);
	return softgpu_memory_copy(memory, to, from, bytes);
}

NTSTATUS softgpu_execute_blit(struct softgpu_engine *engine, const struct softgpu_hw_blit *b)
{
	uint32_t y;

	for (y = b->clip.y; y < b->clip.y + b->clip.height; y++)
		if (!row(&engine->adapter->memory, b, y))
			return STATUS_ACCESS_VIOLATION;
	softgpu_display_kick(&engine->adapter->display);
	return STATUS_SUCCESS;
}
