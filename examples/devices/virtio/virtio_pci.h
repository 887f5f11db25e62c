/* SPDX-License-Identifier: MIT */
/*
 * A virtio device on PCI, without its kind: configuration space, common configuration, interrupts
 * and split virtqueues. Source: the sections "Basic Facilities of a Virtio Device" and "Virtio Over
 * PCI Bus" of the OASIS specification Virtual I/O Device (VIRTIO) Version 1.2. Little-endian hosts
 * only, like the rest of vidmm.
 */
#ifndef VIRTIO_PCI_H
#define VIRTIO_PCI_H

#include <stdbool.h>
#include <stdint.h>
#include <vidmm/device.h>

/* All structures are in BAR 4, each in a page of it. */
enum {
	VIRTIO_BAR = 4,
	VIRTIO_BAR_BYTES = 0x4000,
	VIRTIO_COMMON = 0x0000,
	VIRTIO_ISR = 0x1000,
	VIRTIO_DEVICE = 0x2000,
	VIRTIO_NOTIFY = 0x3000,
	VIRTIO_NOTIFY_MULTIPLIER = 4
};

/* Offsets in the common configuration. */
enum virtio_common {
	VIRTIO_DEVICE_FEATURE_SELECT = 0x00,
	VIRTIO_DEVICE_FEATURE = 0x04,
	VIRTIO_DRIVER_FEATURE_SELECT = 0x08,
	VIRTIO_DRIVER_FEATURE = 0x0C,
	VIRTIO_CONFIG_VECTOR = 0x10,
	VIRTIO_NUM_QUEUES = 0x12,
	VIRTIO_STATUS = 0x14,
	VIRTIO_CONFIG_GENERATION = 0x15,
	VIRTIO_QUEUE_SELECT = 0x16,
	VIRTIO_QUEUE_SIZE = 0x18,
	VIRTIO_QUEUE_VECTOR = 0x1A,
	VIRTIO_QUEUE_ENABLE = 0x1C,
	VIRTIO_QUEUE_NOTIFY_OFF = 0x1E,
	VIRTIO_QUEUE_DESC = 0x20,
	VIRTIO_QUEUE_DRIVER = 0x28,
	VIRTIO_QUEUE_DEVICE = 0x30
};
enum virtio_status {
	VIRTIO_ACKNOWLEDGE = 1,
	VIRTIO_DRIVER = 2,
	VIRTIO_DRIVER_OK = 4,
	VIRTIO_FEATURES_OK = 8,
	VIRTIO_NEEDS_RESET = 64,
	VIRTIO_FAILED = 128
};
#define VIRTIO_F_VERSION_1 ((uint64_t)1 << 32)
#define VIRTIO_NO_VECTOR   0xFFFFu
enum { VIRTIO_ISR_QUEUE = 1, VIRTIO_ISR_CONFIG = 2 };

/* ---- split virtqueues ---- */
#define VIRTIO_DESC_NEXT     1u
#define VIRTIO_DESC_WRITE    2u
#define VIRTIO_NO_INTERRUPT  1u
#define VIRTIO_QUEUE_MAX     256u
#define VIRTIO_QUEUES        2u
#define VIRTIO_REQUEST_BYTES (512u * 1024)

struct virtio_desc {
	uint64_t address;
	uint32_t length;
	uint16_t flags, next;
};

struct virtio_queue {
	uint16_t size, vector, enabled;
	uint64_t desc, driver, device;
	uint16_t next_avail, next_used;
};

/* One chain of descriptors: what the driver wrote, and where the answer goes. */
struct virtio_request {
	uint16_t head;
	uint32_t readable, writable; /* bytes */
	uint32_t parts;              /* writable descriptors */
	struct virtio_desc part[VIRTIO_QUEUE_MAX];
};

struct virtio {
	const struct vidmm_device_services *services;
	uint64_t features; /* offered */
	uint32_t messages; /* of the model */
	/* The kind of device: its configuration, a request of a queue, a reset. */
	uint32_t (*config_read)(void *kind, uint32_t offset);
	void (*config_write)(void *kind, uint32_t offset, uint32_t value);
	/* `data` has request->readable bytes. Returns the bytes written by virtio_answer. */
	uint32_t (*handle)(void *kind, uint32_t queue, const struct virtio_request *request,
			   const uint8_t *data);
	void (*reset)(void *kind);
	void *kind;

	uint64_t driver_features;
	uint32_t device_feature_select, driver_feature_select;
	uint16_t config_vector, queue_select;
	uint8_t status, isr;
	struct virtio_queue queue[VIRTIO_QUEUES];
	uint8_t access[20]; /* the capability by which the BAR is accessed in configuration space */
	_Alignas(8) uint8_t data[VIRTIO_REQUEST_BYTES]; /* of a request */
};

/* Fills the capabilities in an image of 256 bytes; `config_bytes`: of the kind's configuration. */
void virtio_image(uint8_t *image, uint32_t config_bytes, uint32_t messages);
void virtio_reset(struct virtio *v);
uint64_t virtio_bar_read(struct virtio *v, uint64_t offset, uint32_t width);
void virtio_bar_write(struct virtio *v, uint64_t offset, uint32_t width, uint64_t value);
/* Configuration space; `image` is that of virtio_image. */
uint32_t virtio_config_read(struct virtio *v, const uint8_t *image, uint32_t offset,
			    uint32_t width);
void virtio_config_write(struct virtio *v, uint32_t offset, uint32_t width, uint32_t value);
/* The timer of the same number as a queue: handles what the driver made available. */
void virtio_run_queue(struct virtio *v, uint32_t queue);
/*
 * Writes the answer into the writable part of the request, as far as it fits. Returns the bytes
 * written.
 */
uint32_t virtio_answer(struct virtio *v, const struct virtio_request *request, const void *answer,
		       uint32_t bytes);
/* The device cannot go on: NEEDS_RESET, and a configuration interrupt. */
void virtio_break(struct virtio *v, const char *why);
/* Raises the interrupt of the cause, which has this vector if the device has messages. */
void virtio_interrupt(struct virtio *v, uint8_t cause, uint16_t vector);

#endif
