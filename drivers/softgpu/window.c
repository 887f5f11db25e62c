/* SPDX-License-Identifier: MIT */
/*
 * Windows; see window.h. The table is sorted by address. There are at most as many windows as
 * swizzling ranges.
 */
#include "window.h"

#include <string.h>

#include "copy.h"
#include "memory.h"
#include "tile.h"

struct softgpu_window *softgpu_window_at(const struct softgpu_memory *memory, uint64_t address)
{
	uint32_t low = 0, high = memory->window_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct softgpu_surface *surface = &memory->windows[middle].surface;

		if (surface->first + surface->bytes <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < memory->window_count ? &memory->windows[low] : NULL;
}

uint64_t softgpu_window_scratch_bytes(const struct softgpu_surface *surface)
{
	return softgpu_tile_row_bytes(surface->mode, surface->stride_bytes);
}

struct softgpu_window *softgpu_window_open(struct softgpu_memory *memory,
					   const struct softgpu_surface *surface, char *scratch)
{
	uint64_t row_bytes = softgpu_window_scratch_bytes(surface), at;
	struct softgpu_window *next = softgpu_window_at(memory, surface->first);
	uint32_t index = next ? (uint32_t)(next - memory->windows) : memory->window_count;

	memmove(&memory->windows[index + 1], &memory->windows[index],
		(memory->window_count - index) * sizeof(*memory->windows));
	memory->window_count++;
	memory->windows[index] = (struct softgpu_window){.surface = *surface, .uses = 1};
	for (at = 0; at < surface->bytes && !memory->drops_content; at += row_bytes) {
		char *row = memory->vram + surface->first + at;

		softgpu_copy(scratch, row, (size_t)row_bytes);
		softgpu_tile_unpack(surface->mode, surface->stride_bytes, row, scratch, row_bytes);
	}
	return &memory->windows[index];
}

void softgpu_window_close(struct softgpu_memory *memory, struct softgpu_window *window,
			  char *scratch)
{
	const struct softgpu_surface surface = window->surface;
	uint64_t row_bytes = softgpu_window_scratch_bytes(&surface), at;
	uint32_t index = (uint32_t)(window - memory->windows);

	for (at = 0; at < surface.bytes && !memory->drops_content; at += row_bytes) {
		char *row = memory->vram + surface.first + at;

		softgpu_copy(scratch, row, (size_t)row_bytes);
		softgpu_tile_pack(surface.mode, surface.stride_bytes, row, scratch, row_bytes);
	}
	memory->window_count--;
	memmove(window, window + 1, (memory->window_count - index) * sizeof(*window));
}

char *softgpu_window_decode(const struct softgpu_memory *memory, uint64_t address, uint64_t *bytes)
{
	const struct softgpu_window *window = softgpu_window_at(memory, address);
	const struct softgpu_surface *surface;
	uint64_t offset, run;

	if (!window)
		return memory->vram + address;
	surface = &window->surface;
	if (address < surface->first) {
		if (*bytes > surface->first - address)
			*bytes = surface->first - address;
		return memory->vram + address;
	}
	offset = address - surface->first;
	run = softgpu_tile_run(surface->mode);
	run -= offset % run;
	if (*bytes > run)
		*bytes = run;
	return memory->vram + surface->first +
	       softgpu_tile_linear_offset(surface->mode, surface->stride_bytes, offset);
}

uint64_t softgpu_window_rows(const struct softgpu_memory *memory, uint64_t address, uint64_t bytes,
			     const struct softgpu_window **window)
{
	const struct softgpu_window *at = softgpu_window_at(memory, address);
	const struct softgpu_surface *surface = at ? &at->surface : NULL;
	uint64_t row_bytes, left;

	if (!surface || address < surface->first)
		return 0;
	row_bytes = softgpu_window_scratch_bytes(surface);
	left = surface->first + surface->bytes - address;
	if ((address - surface->first) % row_bytes)
		return 0;
	*window = at;
	return (bytes < left ? bytes : left) / row_bytes * row_bytes;
}
