/* SPDX-License-Identifier: MIT */
/*
 * A virtio GPU with 2D commands: its protocol, and the device model. Source: the section "GPU
 * Device" of Virtual I/O Device (VIRTIO) Version 1.2. Not built: 3D (VIRTIO_GPU_F_VIRGL), EDID,
 * UUIDs, blobs and contexts, which are not offered as features.
 */
#ifndef VIRTIO_GPU_H
#define VIRTIO_GPU_H

#include "virtio_pci.h"

enum { VIRTIO_GPU_CONTROL_QUEUE = 0, VIRTIO_GPU_CURSOR_QUEUE = 1 };

enum virtio_gpu_type {
	VIRTIO_GPU_GET_DISPLAY_INFO = 0x0100,
	VIRTIO_GPU_RESOURCE_CREATE_2D = 0x0101,
	VIRTIO_GPU_RESOURCE_UNREF = 0x0102,
	VIRTIO_GPU_SET_SCANOUT = 0x0103,
	VIRTIO_GPU_RESOURCE_FLUSH = 0x0104,
	VIRTIO_GPU_TRANSFER_TO_HOST_2D = 0x0105,
	VIRTIO_GPU_RESOURCE_ATTACH_BACKING = 0x0106,
	VIRTIO_GPU_RESOURCE_DETACH_BACKING = 0x0107,
	VIRTIO_GPU_GET_CAPSET_INFO = 0x0108,
	VIRTIO_GPU_UPDATE_CURSOR = 0x0300,
	VIRTIO_GPU_MOVE_CURSOR = 0x0301,
	VIRTIO_GPU_OK_NODATA = 0x1100,
	VIRTIO_GPU_OK_DISPLAY_INFO = 0x1101,
	VIRTIO_GPU_ERR_UNSPEC = 0x1200,
	VIRTIO_GPU_ERR_OUT_OF_MEMORY = 0x1201,
	VIRTIO_GPU_ERR_INVALID_SCANOUT_ID = 0x1202,
	VIRTIO_GPU_ERR_INVALID_RESOURCE_ID = 0x1203,
	VIRTIO_GPU_ERR_INVALID_CONTEXT_ID = 0x1204,
	VIRTIO_GPU_ERR_INVALID_PARAMETER = 0x1205
};
#define VIRTIO_GPU_FLAG_FENCE 1u

struct virtio_gpu_header {
	uint32_t type, flags;
	uint64_t fence;
	uint32_t context;
	uint8_t ring, padding[3];
};
struct virtio_gpu_rect {
	uint32_t x, y, width, height;
};
#define VIRTIO_GPU_SCANOUTS_MAX 16u
struct virtio_gpu_display_info {
	struct virtio_gpu_header header;
	struct {
		struct virtio_gpu_rect rect;
		uint32_t enabled, flags;
	} mode[VIRTIO_GPU_SCANOUTS_MAX];
};
struct virtio_gpu_create {
	struct virtio_gpu_header header;
	uint32_t resource, format, width, height;
};
struct virtio_gpu_resource_id { /* UNREF, DETACH_BACKING, GET_CAPSET_INFO (the index) */
	struct virtio_gpu_header header;
	uint32_t resource, padding;
};
struct virtio_gpu_scanout {
	struct virtio_gpu_header header;
	struct virtio_gpu_rect rect;
	uint32_t scanout, resource;
};
struct virtio_gpu_flush {
	struct virtio_gpu_header header;
	struct virtio_gpu_rect rect;
	uint32_t resource, padding;
};
struct virtio_gpu_transfer {
	struct virtio_gpu_header header;
	struct virtio_gpu_rect rect;
	uint64_t offset;
	uint32_t resource, padding;
};
struct virtio_gpu_backing {
	struct virtio_gpu_header header;
	uint32_t resource, entries; /* followed by so many entries */
};
struct virtio_gpu_entry {
	uint64_t address;
	uint32_t length, padding;
};
struct virtio_gpu_cursor {
	struct virtio_gpu_header header;
	uint32_t scanout, x, y, padding;
	uint32_t resource, hot_x, hot_y, padding2;
};
enum { VIRTIO_GPU_FORMAT_B8G8R8A8 = 1, VIRTIO_GPU_FORMAT_B8G8R8X8 = 2 };

/*
 * What the device shows. Its owner reads it when no request is in progress. Pixels are those of the
 * scanout's rectangle, four bytes each in the resource's format; NULL: the scanout is disabled.
 */
struct virtio_gpu_display {
	uint32_t width, height, format;
	uint8_t *pixels;
	uint32_t flushes;
	uint32_t cursor_resource, cursor_x, cursor_y, cursor_updates;
};

struct virtio_gpu_settings {
	uint32_t messages; /* 0: an interrupt line */
	struct virtio_gpu_display *display;
};
/*
 * Fills the model of a device with these settings, which both must exist while the device does.
 * `image` has 256 bytes, and the model refers to it.
 */
void virtio_gpu_describe(struct virtio_gpu_settings *settings, uint8_t *image,
			 struct vidmm_device_model *model);

#endif
