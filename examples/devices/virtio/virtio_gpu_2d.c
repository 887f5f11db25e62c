/* SPDX-License-Identifier: MIT */
/* Resources, their backing, and the scanout. Every number here is the driver's. */
#include "virtio_gpu_private.h"

#include <stdlib.h>
#include <string.h>

struct resource *gpu_find(struct gpu *gpu, uint32_t id)
{
	for (uint32_t i = 0; id && i < RESOURCES_MAX; i++)
		if (gpu->resource[i].id == id)
			return &gpu->resource[i];
	return NULL;
}

static bool is_format(uint32_t format)
{
	static const uint32_t formats[] = {1, 2, 3, 4, 67, 68, 121, 134}; /* all of 32 bits */

	for (uint32_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (formats[i] == format)
			return true;
	return false;
}

static bool is_inside(const struct virtio_gpu_rect *rect, const struct resource *r)
{
	return rect->width && rect->height && (uint64_t)rect->x + rect->width <= r->width &&
	       (uint64_t)rect->y + rect->height <= r->height;
}

static uint64_t bytes_of(const struct resource *r)
{
	return (uint64_t)r->width * r->height * PIXEL_BYTES;
}

uint32_t gpu_create(struct gpu *gpu, const struct virtio_gpu_create *c)
{
	struct resource *r = NULL, new = {.id = c->resource,
					  .format = c->format,
					  .width = c->width,
					  .height = c->height};

	if (!c->resource || gpu_find(gpu, c->resource))
		return VIRTIO_GPU_ERR_INVALID_RESOURCE_ID;
	if (!is_format(c->format) || !c->width || !c->height)
		return VIRTIO_GPU_ERR_INVALID_PARAMETER;
	for (uint32_t i = 0; i < RESOURCES_MAX && !r; i++)
		r = gpu->resource[i].id ? NULL : &gpu->resource[i];
	/* Each side alone is checked, so that the product cannot overflow. */
	if (!r || c->width > MEMORY_MAX || c->height > MEMORY_MAX ||
	    bytes_of(&new) > MEMORY_MAX - gpu->memory)
		return VIRTIO_GPU_ERR_OUT_OF_MEMORY;
	new.pixels = calloc(1, (size_t)bytes_of(&new));
	if (!new.pixels)
		return VIRTIO_GPU_ERR_OUT_OF_MEMORY;
	gpu->memory += bytes_of(&new);
	*r = new;
	return VIRTIO_GPU_OK_NODATA;
}

static void disable(struct gpu *gpu)
{
	gpu->shown = 0;
	free(gpu->display->pixels);
	gpu->display->pixels = NULL;
	gpu->display->width = gpu->display->height = gpu->display->format = 0;
}

uint32_t gpu_unref(struct gpu *gpu, uint32_t id)
{
	struct resource *r = gpu_find(gpu, id);

	if (!r)
		return VIRTIO_GPU_ERR_INVALID_RESOURCE_ID;
	if (gpu->shown == id)
		disable(gpu);
	gpu->memory -= bytes_of(r);
	free(r->pixels);
	free(r->entries);
	memset(r, 0, sizeof(*r));
	return VIRTIO_GPU_OK_NODATA;
}

void gpu_forget(struct gpu *gpu)
{
	for (uint32_t i = 0; i < RESOURCES_MAX; i++)
		if (gpu->resource[i].id)
			gpu_unref(gpu, gpu->resource[i].id);
	disable(gpu);
}

uint32_t gpu_attach(struct gpu *gpu, const struct virtio_gpu_backing *c, uint32_t bytes)
{
	struct resource *r = gpu_find(gpu, c->resource);

	if (!r)
		return VIRTIO_GPU_ERR_INVALID_RESOURCE_ID;
	if (r->entries)
		return VIRTIO_GPU_ERR_UNSPEC;
	if (!c->entries || c->entries > ENTRIES_MAX ||
	    (bytes - sizeof(*c)) / sizeof(*r->entries) < c->entries)
		return VIRTIO_GPU_ERR_INVALID_PARAMETER;
	r->entries = calloc(c->entries, sizeof(*r->entries));
	if (!r->entries)
		return VIRTIO_GPU_ERR_OUT_OF_MEMORY;
	memcpy(r->entries, c + 1, c->entries * sizeof(*r->entries));
	r->entry_count = c->entries;
	return VIRTIO_GPU_OK_NODATA;
}

uint32_t gpu_detach(struct gpu *gpu, uint32_t id)
{
	struct resource *r = gpu_find(gpu, id);

	if (!r)
		return VIRTIO_GPU_ERR_INVALID_RESOURCE_ID;
	if (!r->entries)
		return VIRTIO_GPU_ERR_UNSPEC;
	free(r->entries);
	r->entries = NULL;
	r->entry_count = 0;
	return VIRTIO_GPU_OK_NODATA;
}

/* Reads bytes of the backing. Returns false if it ends before, or an entry is no memory. */
static bool read_backing(struct gpu *gpu, const struct resource *r, uint64_t offset, uint8_t *to,
			 uint64_t bytes)
{
	const struct vidmm_device_services *s = gpu->virtio.services;

	for (uint32_t i = 0; i < r->entry_count && bytes; i++) {
		const struct virtio_gpu_entry *entry = &r->entries[i];

		if (offset >= entry->length) {
			offset -= entry->length;
			continue;
		}
		uint64_t piece = entry->length - offset;

		piece = piece < bytes ? piece : bytes;
		if (entry->address > UINT64_MAX - offset ||
		    s->dma_read(s->handle, entry->address + offset, to, piece) < 0)
			return false;
		to += piece;
		bytes -= piece;
		offset = 0;
	}
	return !bytes;
}

/* The rows of the rectangle are as far apart in the backing as those of the resource. */
uint32_t gpu_transfer(struct gpu *gpu, const struct virtio_gpu_transfer *c)
{
	struct resource *r = gpu_find(gpu, c->resource);
	uint64_t stride;

	if (!r)
		return VIRTIO_GPU_ERR_INVALID_RESOURCE_ID;
	if (!is_inside(&c->rect, r) || c->offset > UINT32_MAX * (uint64_t)ENTRIES_MAX)
		return VIRTIO_GPU_ERR_INVALID_PARAMETER;
	if (!r->entries)
		return VIRTIO_GPU_ERR_UNSPEC;
	stride = (uint64_t)r->width * PIXEL_BYTES;
	for (uint32_t row = 0; row < c->rect.height; row++) {
		uint8_t *to =
			r->pixels + (c->rect.y + row) * stride + (uint64_t)c->rect.x * PIXEL_BYTES;

		if (!read_backing(gpu, r, c->offset + row * stride, to,
				  (uint64_t)c->rect.width * PIXEL_BYTES))
			return VIRTIO_GPU_ERR_INVALID_PARAMETER;
	}
	return VIRTIO_GPU_OK_NODATA;
}

uint32_t gpu_set_scanout(struct gpu *gpu, const struct virtio_gpu_scanout *c)
{
	struct resource *r = gpu_find(gpu, c->resource);
	uint8_t *pixels;

	if (c->scanout)
		return VIRTIO_GPU_ERR_INVALID_SCANOUT_ID; /* the device has one */
	if (!c->resource) {
		disable(gpu);
		return VIRTIO_GPU_OK_NODATA;
	}
	if (!r)
		return VIRTIO_GPU_ERR_INVALID_RESOURCE_ID;
	if (!is_inside(&c->rect, r))
		return VIRTIO_GPU_ERR_INVALID_PARAMETER;
	pixels = calloc((size_t)c->rect.width * c->rect.height, PIXEL_BYTES);
	if (!pixels)
		return VIRTIO_GPU_ERR_OUT_OF_MEMORY;
	disable(gpu);
	gpu->shown = c->resource;
	gpu->scanout = c->rect;
	gpu->display->width = c->rect.width;
	gpu->display->height = c->rect.height;
	gpu->display->format = r->format;
	gpu->display->pixels = pixels;
	return VIRTIO_GPU_OK_NODATA;
}

/* The part of the rectangle that the scanout shows becomes visible. */
uint32_t gpu_flush(struct gpu *gpu, const struct virtio_gpu_flush *c)
{
	const struct resource *r = gpu_find(gpu, c->resource);
	const struct virtio_gpu_rect *s = &gpu->scanout;
	uint32_t left, right;

	if (!r)
		return VIRTIO_GPU_ERR_INVALID_RESOURCE_ID;
	if (!is_inside(&c->rect, r))
		return VIRTIO_GPU_ERR_INVALID_PARAMETER;
	if (gpu->shown != c->resource)
		return VIRTIO_GPU_OK_NODATA;
	left = c->rect.x > s->x ? c->rect.x : s->x;
	right = c->rect.x + c->rect.width;
	right = right < s->x + s->width ? right : s->x + s->width;
	for (uint32_t y = c->rect.y; y < c->rect.y + c->rect.height && left < right; y++) {
		if (y < s->y || y >= s->y + s->height)
			continue;
		memcpy(gpu->display->pixels +
			       ((size_t)(y - s->y) * s->width + (left - s->x)) * PIXEL_BYTES,
		       r->pixels + ((size_t)y * r->width + left) * PIXEL_BYTES,
		       (size_t)(right - left) * PIXEL_BYTES);
	}
	gpu->display->flushes++;
	return VIRTIO_GPU_OK_NODATA;
}

uint32_t gpu_cursor(struct gpu *gpu, const struct virtio_gpu_cursor *c)
{
	struct virtio_gpu_display *display = gpu->display;

	if (c->scanout)
		return VIRTIO_GPU_ERR_INVALID_SCANOUT_ID;
	if (c->header.type == VIRTIO_GPU_UPDATE_CURSOR) {
		if (c->resource && !gpu_find(gpu, c->resource))
			return VIRTIO_GPU_ERR_INVALID_RESOURCE_ID;
		display->cursor_resource = c->resource; /* 0 hides the cursor */
		display->cursor_updates++;
	}
	display->cursor_x = c->x;
	display->cursor_y = c->y;
	return VIRTIO_GPU_OK_NODATA;
}
