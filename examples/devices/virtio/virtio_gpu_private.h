/* SPDX-License-Identifier: MIT */
/* The device's state, shared by its files. */
#ifndef VIRTIO_GPU_PRIVATE_H
#define VIRTIO_GPU_PRIVATE_H

#include "virtio_gpu.h"

#define RESOURCES_MAX  256u
#define ENTRIES_MAX    16384u
#define MEMORY_MAX     ((uint64_t)256 << 20) /* of all resources */
#define DISPLAY_WIDTH  1024u
#define DISPLAY_HEIGHT 768u
#define PIXEL_BYTES    4u

struct resource {
	uint32_t id; /* 0: free */
	uint32_t format, width, height;
	uint8_t *pixels;
	struct virtio_gpu_entry *entries; /* the backing; NULL: none */
	uint32_t entry_count;
};

struct gpu {
	struct virtio virtio;
	uint8_t image[256];
	struct virtio_gpu_display *display, unseen;
	struct resource resource[RESOURCES_MAX];
	uint64_t memory; /* bytes of all resources */
	uint32_t shown;  /* the resource of the scanout; 0: disabled */
	struct virtio_gpu_rect scanout;
};

/* virtio_gpu_2d.c: each executes a command and returns the type of the response. */
struct resource *gpu_find(struct gpu *gpu, uint32_t id);
uint32_t gpu_create(struct gpu *gpu, const struct virtio_gpu_create *c);
uint32_t gpu_unref(struct gpu *gpu, uint32_t id);
uint32_t gpu_attach(struct gpu *gpu, const struct virtio_gpu_backing *c, uint32_t bytes);
uint32_t gpu_detach(struct gpu *gpu, uint32_t id);
uint32_t gpu_transfer(struct gpu *gpu, const struct virtio_gpu_transfer *c);
uint32_t gpu_set_scanout(struct gpu *gpu, const struct virtio_gpu_scanout *c);
uint32_t gpu_flush(struct gpu *gpu, const struct virtio_gpu_flush *c);
uint32_t gpu_cursor(struct gpu *gpu, const struct virtio_gpu_cursor *c);
/* Destroys all resources and disables the scanout. */
void gpu_forget(struct gpu *gpu);

#endif
