/* SPDX-License-Identifier: MIT */
/*
 * Presents on an engine: pixels of four bytes, nearest neighbor if the rectangles differ in size.
 * Their addresses are those of the GPU, or virtual ones for packets of an address space.
 */
#include "execute_virtual.h"

#define PIXEL_BYTES 4u

/* How a blit accesses memory. The functions return a failure of the access. */
struct access {
	void *context;
	NTSTATUS (*fill)(void *context, uint64_t to, uint64_t bytes, uint32_t color);
	NTSTATUS (*copy)(void *context, uint64_t to, uint64_t from, uint64_t bytes);
	NTSTATUS (*copy_pixel)(void *context, uint64_t to, uint64_t from);
};

static uint64_t at(uint64_t address, uint32_t pitch, uint32_t x, uint32_t y)
{
	return address + (uint64_t)y * pitch + (uint64_t)x * PIXEL_BYTES;
}

static uint32_t nearest(uint32_t position, uint32_t to_length, uint32_t from, uint32_t from_length)
{
	return from + (uint32_t)((uint64_t)position * from_length / to_length);
}

static NTSTATUS scaled_row(const struct access *access, const struct softgpu_hw_blit *b, uint32_t y,
			   uint32_t from_y)
{
	NTSTATUS status = STATUS_SUCCESS;
	uint32_t x;

	for (x = b->clip.x; x < b->clip.x + b->clip.width && NT_SUCCESS(status); x++) {
		uint32_t from_x = nearest(x - b->to.x, b->to.width, b->from.x, b->from.width);

		status = access->copy_pixel(access->context,
					    at(b->destination, b->destination_pitch, x, y),
					    at(b->source, b->source_pitch, from_x, from_y));
	}
	return status;
}

static NTSTATUS row(const struct access *access, const struct softgpu_hw_blit *b, uint32_t y)
{
	uint64_t to = at(b->destination, b->destination_pitch, b->clip.x, y);
	uint64_t bytes = (uint64_t)b->clip.width * PIXEL_BYTES;
	uint32_t from_y;

	if (b->command.flags & SOFTGPU_HW_BLIT_FILL)
		return access->fill(access->context, to, bytes, b->color);
	from_y = nearest(y - b->to.y, b->to.height, b->from.y, b->from.height);
	if (b->from.width != b->to.width)
		return scaled_row(access, b, y, from_y);
	return access->copy(
		access->context, to,
		at(b->source, b->source_pitch, b->from.x + (b->clip.x - b->to.x), from_y), bytes);
}

static NTSTATUS blit(struct softgpu_engine *engine, const struct access *access,
		     const struct softgpu_hw_blit *b)
{
	NTSTATUS status = STATUS_SUCCESS;
	uint32_t y;

	for (y = b->clip.y; y < b->clip.y + b->clip.height && NT_SUCCESS(status); y++)
		status = row(access, b, y);
	if (NT_SUCCESS(status))
		softgpu_display_kick(&engine->adapter->display);
	return status;
}

/* ---- at addresses of the GPU ---- */

static NTSTATUS of(int ok)
{
	return ok ? STATUS_SUCCESS : STATUS_ACCESS_VIOLATION;
}

static NTSTATUS fill_memory(void *context, uint64_t to, uint64_t bytes, uint32_t color)
{
	return of(softgpu_memory_fill(context, to, bytes, color));
}

static NTSTATUS copy_memory(void *context, uint64_t to, uint64_t from, uint64_t bytes)
{
	return of(softgpu_memory_copy(context, (struct softgpu_side){.address = to},
				      (struct softgpu_side){.address = from}, bytes));
}

static NTSTATUS copy_pixel_of_memory(void *context, uint64_t to, uint64_t from)
{
	uint32_t pixel;

	return of(softgpu_read(context, from, &pixel, sizeof(pixel)) &&
		  softgpu_write(context, to, &pixel, sizeof(pixel)));
}

NTSTATUS softgpu_execute_blit(struct softgpu_engine *engine, const struct softgpu_hw_blit *b)
{
	const struct access access = {&engine->adapter->memory, fill_memory, copy_memory,
				      copy_pixel_of_memory};

	return blit(engine, &access, b);
}

/* ---- at virtual addresses ---- */

static NTSTATUS fill_run(void *context, uint64_t to, uint64_t bytes, uint32_t color)
{
	const struct softgpu_fill command = {
		.operand = {.address = to}, .length = bytes, .pattern = color};

	return softgpu_run_fill(context, &command);
}

static NTSTATUS copy_run(void *context, uint64_t to, uint64_t from, uint64_t bytes)
{
	const struct softgpu_copy command = {
		.source = {.address = from}, .destination = {.address = to}, .length = bytes};

	return softgpu_run_copy(context, &command);
}

static NTSTATUS copy_pixel_of_run(void *context, uint64_t to, uint64_t from)
{
	uint32_t pixel;
	NTSTATUS status = softgpu_run_read(context, from, &pixel, sizeof(pixel));

	if (NT_SUCCESS(status))
		status = softgpu_run_write(context, to, &pixel, sizeof(pixel));
	if (NT_SUCCESS(status) && !softgpu_run_worked(context, sizeof(pixel)))
		return SOFTGPU_ABORTED;
	return status;
}

NTSTATUS softgpu_run_blit(struct softgpu_run *run, const struct softgpu_hw_blit *b)
{
	const struct access access = {run, fill_run, copy_run, copy_pixel_of_run};

	return blit(run->engine, &access, b);
}

static int is_picture(const struct softgpu_rect *r)
{
	return r->width && r->height && (uint64_t)r->x + r->width <= UINT32_MAX &&
	       (uint64_t)r->y + r->height <= UINT32_MAX;
}

int softgpu_blit_is_valid(const struct softgpu_hw_blit *b)
{
	return !b->reserved && is_picture(&b->to) && is_picture(&b->clip) &&
	       (b->command.flags & SOFTGPU_HW_BLIT_FILL || is_picture(&b->from)) &&
	       b->clip.x >= b->to.x && b->clip.x + b->clip.width <= b->to.x + b->to.width &&
	       b->clip.y >= b->to.y && b->clip.y + b->clip.height <= b->to.y + b->to.height;
}
