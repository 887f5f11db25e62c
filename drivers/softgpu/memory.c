/* SPDX-License-Identifier: MIT */
/* Address translation, and memory access through it. See memory.h. */
#include "memory.h"

#include <string.h>

#include "copy.h"
#include "tile.h"
#include "window.h"

static char *decode_aperture(const struct softgpu_memory *memory, uint64_t offset, uint64_t *bytes,
			     enum softgpu_access access)
{
	uint64_t page = offset >> SOFTGPU_PAGE_SHIFT;
	uint64_t in_page = offset & (SOFTGPU_PAGE - 1);
	uintptr_t entry, next;
	uint64_t run = SOFTGPU_PAGE - in_page;

	if (page >= memory->aperture_pages)
		return NULL;
	entry = memory->aperture[page];
	if (!entry || (access == SOFTGPU_WRITE && (entry & SOFTGPU_PAGE_READ_ONLY)))
		return NULL;
	/*
	 * Pages that are contiguous in host memory too are one run. The read-only flag is part of
	 * the comparison.
	 */
	next = entry;
	while (run < *bytes && ++page < memory->aperture_pages) {
		next += SOFTGPU_PAGE;
		if (memory->aperture[page] != next)
			break;
		run += SOFTGPU_PAGE;
	}
	if (run < *bytes)
		*bytes = run;
	return (char *)(entry & ~SOFTGPU_PAGE_READ_ONLY) + in_page;
}

static char *decode_own(const struct softgpu_memory *memory, uint64_t address, uint64_t *bytes,
			enum softgpu_access access)
{
	if (address < memory->vram_bytes) {
		if (*bytes > memory->vram_bytes - address)
			*bytes = memory->vram_bytes - address;
		return memory->window_count ? softgpu_window_decode(memory, address, bytes)
					    : memory->vram + address;
	}
	if (address < SOFTGPU_APERTURE_BASE)
		return NULL;
	return decode_aperture(memory, address - SOFTGPU_APERTURE_BASE, bytes, access);
}

/* Finds the memory that an address belongs to, and the address in it. */
static const struct softgpu_memory *find_own(const struct softgpu_memory *memory, uint64_t *address)
{
	if (!memory->lead || *address < SOFTGPU_LEAD_BASE)
		return memory;
	*address -= SOFTGPU_LEAD_BASE;
	return memory->lead;
}

char *softgpu_decode(const struct softgpu_memory *memory, uint64_t address, uint64_t *bytes,
		     enum softgpu_access access)
{
	const struct softgpu_memory *own = find_own(memory, &address);

	return decode_own(own, address, bytes, access);
}

/*
 * Returns how many bytes from this address on are whole rows of tiles of one window, in linear
 * form; 0: none.
 */
static uint64_t linear_rows(const struct softgpu_memory *memory, uint64_t address, uint64_t bytes,
			    char **linear, const struct softgpu_surface **surface)
{
	const struct softgpu_memory *own = find_own(memory, &address);
	const struct softgpu_window *window;
	uint64_t rows;

	if (!own->window_count || address >= own->vram_bytes)
		return 0;
	rows = softgpu_window_rows(own, address, bytes, &window);
	if (!rows)
		return 0;
	*linear = own->vram + address;
	*surface = &window->surface;
	return rows;
}

int softgpu_read(const struct softgpu_memory *memory, uint64_t address, void *data, uint64_t length)
{
	char *out = data;

	while (length) {
		uint64_t run = length;
		const char *in = softgpu_decode(memory, address, &run, SOFTGPU_READ);

		if (!in)
			return 0;
		memcpy(out, in, (size_t)run);
		out += run;
		address += run;
		length -= run;
	}
	return 1;
}

int softgpu_write(const struct softgpu_memory *memory, uint64_t address, const void *data,
		  uint64_t length)
{
	const char *in = data;

	while (length) {
		uint64_t run = length;
		char *out = softgpu_decode(memory, address, &run, SOFTGPU_WRITE);

		if (!out)
			return 0;
		memcpy(out, in, (size_t)run);
		in += run;
		address += run;
		length -= run;
	}
	return 1;
}

int softgpu_memory_fill(const struct softgpu_memory *memory, uint64_t address, uint64_t length,
			uint32_t pattern)
{
	uint64_t done = 0;

	while (done < length) {
		const struct softgpu_surface *surface = NULL;
		uint64_t run = length - done, rows;
		char *out = NULL;

		/*
		 * A run that both forms keep together is a multiple of the pattern's size, so whole
		 * rows are filled in the same way in both.
		 */
		rows = linear_rows(memory, address + done, run, &out, &surface);
		if (rows)
			run = rows;
		else
			out = softgpu_decode(memory, address + done, &run, SOFTGPU_WRITE);
		if (!out)
			return 0;
		if (!memory->drops_content)
			softgpu_fill(out, pattern, (size_t)run, (size_t)(done & 3));
		done += run;
	}
	return 1;
}

/*
 * As softgpu_decode for one side of a copy. The pages of an MDL are contiguous in kernel addresses.
 */
static char *side_run(const struct softgpu_memory *memory, struct softgpu_side side,
		      uint64_t offset, uint64_t *bytes, enum softgpu_access access)
{
	if (side.is_host)
		return (char *)(uintptr_t)(side.address + offset);
	return softgpu_decode(memory, side.address + offset, bytes, access);
}

/*
 * Copies whole rows of tiles between a window and memory that has none, from `done` on. Returns the
 * bytes copied; 0: the next bytes are not such rows.
 */
static uint64_t copy_rows(const struct softgpu_memory *memory, struct softgpu_side destination,
			  struct softgpu_side source, uint64_t done, uint64_t length)
{
	const struct softgpu_surface *surface = NULL;
	uint64_t rows = 0, run, row_bytes;
	char *linear = NULL, *other;
	int is_read = 0;

	if (!source.is_host)
		rows = linear_rows(memory, source.address + done, length - done, &linear, &surface);
	is_read = rows != 0;
	if (!rows && !destination.is_host)
		rows = linear_rows(memory, destination.address + done, length - done, &linear,
				   &surface);
	if (!rows)
		return 0;
	run = rows;
	other = side_run(memory, is_read ? destination : source, done, &run,
			 is_read ? SOFTGPU_WRITE : SOFTGPU_READ);
	row_bytes = softgpu_tile_row_bytes(surface->mode, surface->stride_bytes);
	run = run / row_bytes * row_bytes;
	if (!other || !run)
		return 0;
	if (is_read)
		softgpu_tile_pack(surface->mode, surface->stride_bytes, other, linear, run);
	else
		softgpu_tile_unpack(surface->mode, surface->stride_bytes, linear, other, run);
	return run;
}

int softgpu_memory_copy(const struct softgpu_memory *memory, struct softgpu_side destination,
			struct softgpu_side source, uint64_t length)
{
	uint64_t done = 0;

	while (done < length) {
		uint64_t run = memory->drops_content
				       ? 0
				       : copy_rows(memory, destination, source, done, length);
		const char *in;
		char *out;

		if (run) {
			done += run;
			continue;
		}
		run = length - done;
		in = side_run(memory, source, done, &run, SOFTGPU_READ);
		out = in ? side_run(memory, destination, done, &run, SOFTGPU_WRITE) : NULL;

		if (!out)
			return 0;
		if (!memory->drops_content)
			softgpu_copy(out, in, (size_t)run);
		done += run;
	}
	return 1;
}

/*
 * Converts whole rows of tiles between contiguous memory. Returns 0 if the copy is not of that
 * form.
 */
static int copy_tile_rows(const struct softgpu_memory *memory,
			  const struct softgpu_paging_copy *copy, struct softgpu_side tiled,
			  struct softgpu_side linear)
{
	enum softgpu_tile_mode mode = (enum softgpu_tile_mode)copy->tile_mode;
	uint64_t row_bytes = softgpu_tile_row_bytes(mode, copy->stride_bytes);
	uint64_t tiled_run = copy->length, linear_run = copy->length;
	char *t, *l;

	if (copy->surface_offset % row_bytes || copy->length % row_bytes)
		return 0;
	t = side_run(memory, tiled, copy->surface_offset, &tiled_run,
		     copy->destination_tiled ? SOFTGPU_WRITE : SOFTGPU_READ);
	l = side_run(memory, linear, 0, &linear_run,
		     copy->destination_tiled ? SOFTGPU_READ : SOFTGPU_WRITE);
	if (!t || !l || tiled_run < copy->length || linear_run < copy->length ||
	    (uintptr_t)t % SOFTGPU_PAGE)
		return 0;
	if (copy->destination_tiled)
		softgpu_tile_pack(mode, copy->stride_bytes, t, l, copy->length);
	else
		softgpu_tile_unpack(mode, copy->stride_bytes, l, t, copy->length);
	return 1;
}

/*
 * If the surface has a window, its memory is linear already: sets *tiled to that. Returns 0 if it
 * has none.
 */
static int tiled_is_linear(const struct softgpu_memory *memory,
			   const struct softgpu_paging_copy *copy, struct softgpu_side *tiled)
{
	const struct softgpu_surface *surface = NULL;
	char *linear = NULL;

	if (tiled->is_host ||
	    linear_rows(memory, tiled->address, UINT64_MAX, &linear, &surface) <
		    copy->surface_offset + copy->length ||
	    (uint32_t)surface->mode != copy->tile_mode ||
	    surface->stride_bytes != copy->stride_bytes)
		return 0;
	*tiled = (struct softgpu_side){.address = (uintptr_t)(linear + copy->surface_offset),
				       .is_host = 1};
	return 1;
}

int softgpu_memory_copy_tiled(const struct softgpu_memory *memory,
			      const struct softgpu_paging_copy *copy)
{
	enum softgpu_tile_mode mode = (enum softgpu_tile_mode)copy->tile_mode;
	struct softgpu_side tiled = copy->destination_tiled ? copy->destination : copy->source;
	struct softgpu_side linear = copy->destination_tiled ? copy->source : copy->destination;
	uint32_t unit = softgpu_tile_run(mode);
	uint64_t done = 0;

	if (tiled_is_linear(memory, copy, &tiled))
		return softgpu_memory_copy(memory, copy->destination_tiled ? tiled : linear,
					   copy->destination_tiled ? linear : tiled, copy->length);
	if (memory->drops_content || copy_tile_rows(memory, copy, tiled, linear))
		return 1;
	/* Any other part of a surface: run by run, each at its place in the tiled form. */
	while (done < copy->length) {
		uint64_t surface = copy->surface_offset + done;
		struct softgpu_side t = tiled, l = linear;
		uint64_t run = unit - surface % unit;

		if (run > copy->length - done)
			run = copy->length - done;
		t.address += softgpu_tile_tiled_offset(mode, copy->stride_bytes, surface);
		l.address += done;
		if (!softgpu_memory_copy(memory, copy->destination_tiled ? t : l,
					 copy->destination_tiled ? l : t, run))
			return 0;
		done += run;
	}
	return 1;
}

int softgpu_aperture_map(struct softgpu_memory *memory, uint64_t first_page, uint64_t page_count,
			 uintptr_t host)
{
	uint64_t i;

	if (first_page > memory->aperture_pages || page_count > memory->aperture_pages - first_page)
		return 0;
	for (i = 0; i < page_count; i++)
		memory->aperture[first_page + i] = host + i * SOFTGPU_PAGE;
	return 1;
}

int softgpu_aperture_unmap(struct softgpu_memory *memory, uint64_t first_page, uint64_t page_count,
			   uintptr_t dummy)
{
	uint64_t i;

	if (first_page > memory->aperture_pages || page_count > memory->aperture_pages - first_page)
		return 0;
	/*
	 * The range stays readable (PAG-10). A write is a bus fault, because unmapped pages belong
	 * to no allocation.
	 */
	for (i = 0; i < page_count; i++)
		memory->aperture[first_page + i] = dummy | SOFTGPU_PAGE_READ_ONLY;
	return 1;
}

void softgpu_aperture_clear(struct softgpu_memory *memory)
{
	memset(memory->aperture, 0, (size_t)memory->aperture_pages * sizeof(*memory->aperture));
}
