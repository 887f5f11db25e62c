/* SPDX-License-Identifier: MIT */
/* The PCI transport: capabilities, common configuration, interrupts. */
#include "virtio_pci.h"

#include <string.h>

enum { CAP_COMMON = 1, CAP_NOTIFY, CAP_ISR, CAP_DEVICE, CAP_PCI };
enum {
	AT_COMMON = 0x40,
	AT_NOTIFY = 0x50,
	AT_ISR = 0x64,
	AT_DEVICE = 0x74,
	AT_PCI = 0x84,
	AT_PCI_DATA = AT_PCI + 16,
	AT_MSIX = 0x98
};

/* ---- configuration space ---- */

static void put_cap(uint8_t *cap, uint8_t next, uint8_t length, uint8_t type, uint32_t offset,
		    uint32_t bytes)
{
	const uint8_t head[8] = {0x09, next, length, type, VIRTIO_BAR};

	memcpy(cap, head, sizeof(head));
	memcpy(cap + 8, &offset, 4);
	memcpy(cap + 12, &bytes, 4);
}

void virtio_image(uint8_t *image, uint32_t config_bytes, uint32_t messages)
{
	const uint32_t multiplier = VIRTIO_NOTIFY_MULTIPLIER;
	/* The table and the pending bits are the system's. They are in the last page of the BAR. */
	const uint32_t table = (VIRTIO_NOTIFY + 0x800) | VIRTIO_BAR;
	const uint32_t pending = (VIRTIO_NOTIFY + 0xC00) | VIRTIO_BAR;

	image[0x34] = AT_COMMON;
	put_cap(image + AT_COMMON, AT_NOTIFY, 16, CAP_COMMON, VIRTIO_COMMON, 0x38);
	put_cap(image + AT_NOTIFY, AT_ISR, 20, CAP_NOTIFY, VIRTIO_NOTIFY,
		VIRTIO_QUEUES * VIRTIO_NOTIFY_MULTIPLIER);
	memcpy(image + AT_NOTIFY + 16, &multiplier, 4);
	put_cap(image + AT_ISR, AT_DEVICE, 16, CAP_ISR, VIRTIO_ISR, 1);
	put_cap(image + AT_DEVICE, AT_PCI, 16, CAP_DEVICE, VIRTIO_DEVICE, config_bytes);
	put_cap(image + AT_PCI, messages ? AT_MSIX : 0, 20, CAP_PCI, 0, 0);
	if (!messages)
		return;
	image[AT_MSIX] = 0x11;
	image[AT_MSIX + 2] = (uint8_t)(messages - 1); /* the size of the table, less one */
	image[AT_MSIX + 3] = 0x80;                    /* enabled */
	memcpy(image + AT_MSIX + 4, &table, 4);
	memcpy(image + AT_MSIX + 8, &pending, 4);
}

/* The window into the BAR: its offset and length, if the driver has chosen valid ones. */
static bool window(const struct virtio *v, uint32_t *offset, uint32_t *length)
{
	memcpy(offset, v->access + 8, 4);
	memcpy(length, v->access + 12, 4);
	return v->access[4] == VIRTIO_BAR && (*length == 1 || *length == 2 || *length == 4) &&
	       *offset % *length == 0 && *offset < VIRTIO_BAR_BYTES;
}

uint32_t virtio_config_read(struct virtio *v, const uint8_t *image, uint32_t offset, uint32_t width)
{
	uint32_t value = 0, at, length;

	if (offset == AT_PCI_DATA && window(v, &at, &length))
		return (uint32_t)virtio_bar_read(v, at, length);
	if (offset >= AT_PCI + 4 && offset + width <= AT_PCI_DATA)
		memcpy(&value, v->access + (offset - AT_PCI), width);
	else
		memcpy(&value, image + offset, width);
	return value;
}

/* Of the capabilities only bar, offset, length and data of the window can be written. */
void virtio_config_write(struct virtio *v, uint32_t offset, uint32_t width, uint32_t value)
{
	uint32_t at, length;

	if (offset == AT_PCI_DATA && window(v, &at, &length))
		virtio_bar_write(v, at, length, value);
	else if (offset >= AT_PCI + 4 && offset + width <= AT_PCI_DATA)
		memcpy(v->access + (offset - AT_PCI), &value, width);
}

/* ---- interrupts ---- */

void virtio_interrupt(struct virtio *v, uint8_t cause, uint16_t vector)
{
	if (v->messages) {
		if (vector < v->messages)
			v->services->raise_interrupt(v->services->handle, vector);
		return;
	}
	v->isr |= cause;
	v->services->raise_interrupt(v->services->handle, 0);
}

void virtio_break(struct virtio *v, const char *why)
{
	v->services->driver_error(v->services->handle, why);
	v->status |= VIRTIO_NEEDS_RESET;
	if (v->status & VIRTIO_DRIVER_OK)
		virtio_interrupt(v, VIRTIO_ISR_CONFIG, v->config_vector);
}

static uint8_t take_isr(struct virtio *v)
{
	uint8_t isr = v->isr;

	v->isr = 0;
	v->services->lower_interrupt(v->services->handle, 0);
	return isr;
}

void virtio_reset(struct virtio *v)
{
	v->driver_features = 0;
	v->device_feature_select = v->driver_feature_select = 0;
	v->config_vector = VIRTIO_NO_VECTOR;
	v->queue_select = 0;
	v->status = v->isr = 0;
	memset(v->queue, 0, sizeof(v->queue));
	memset(v->access, 0, sizeof(v->access));
	for (uint32_t i = 0; i < VIRTIO_QUEUES; i++) {
		v->queue[i].size = VIRTIO_QUEUE_MAX;
		v->queue[i].vector = VIRTIO_NO_VECTOR;
	}
}

/* ---- common configuration ---- */

static void write_status(struct virtio *v, uint8_t value)
{
	if (!value) {
		v->services->lower_interrupt(v->services->handle, 0);
		for (uint32_t i = 0; i < VIRTIO_QUEUES; i++)
			v->services->schedule(v->services->handle, i, VIDMM_DEVICE_NEVER);
		virtio_reset(v);
		v->reset(v->kind);
		return;
	}
	/* The driver reads the bit back: it stays 0 if the features are not acceptable. */
	if (value & VIRTIO_FEATURES_OK && !(v->status & VIRTIO_FEATURES_OK) &&
	    (v->driver_features & ~v->features || !(v->driver_features & VIRTIO_F_VERSION_1)))
		value &= (uint8_t)~VIRTIO_FEATURES_OK;
	v->status = value | (v->status & VIRTIO_NEEDS_RESET);
}

static uint32_t half(uint64_t value, uint32_t select)
{
	return select < 2 ? (uint32_t)(value >> (32 * select)) : 0;
}

static void set_half(uint64_t *value, uint32_t select, uint64_t to)
{
	if (select < 2)
		*value = (*value & ~((uint64_t)UINT32_MAX << (32 * select))) | to << (32 * select);
}

static uint64_t *address_of(struct virtio_queue *queue, uint32_t offset)
{
	return offset < VIRTIO_QUEUE_DRIVER   ? &queue->desc
	       : offset < VIRTIO_QUEUE_DEVICE ? &queue->driver
					      : &queue->device;
}

/* Of the selected queue; a queue that does not exist has size 0. */
static uint32_t queue_read(struct virtio *v, uint32_t offset)
{
	struct virtio_queue none = {0}, *queue = &none;

	if (v->queue_select < VIRTIO_QUEUES)
		queue = &v->queue[v->queue_select];
	switch (offset) {
	case VIRTIO_QUEUE_SIZE:
		return queue->size;
	case VIRTIO_QUEUE_VECTOR:
		return queue->vector;
	case VIRTIO_QUEUE_ENABLE:
		return queue->enabled;
	case VIRTIO_QUEUE_NOTIFY_OFF:
		return v->queue_select;
	default:
		if (offset < VIRTIO_QUEUE_DESC || offset >= 0x38 || offset % 4)
			return 0;
		return half(*address_of(queue, offset), offset / 4 % 2);
	}
}

static void queue_write(struct virtio *v, uint32_t offset, uint32_t value)
{
	struct virtio_queue *queue = &v->queue[v->queue_select % VIRTIO_QUEUES];

	if (v->queue_select >= VIRTIO_QUEUES)
		return;
	if (offset == VIRTIO_QUEUE_VECTOR) {
		queue->vector = value < v->messages ? (uint16_t)value : VIRTIO_NO_VECTOR;
		return;
	}
	if (queue->enabled) {
		v->services->driver_error(v->services->handle, "an enabled queue was changed");
		return;
	}
	if (offset == VIRTIO_QUEUE_SIZE) {
		if (value && value <= VIRTIO_QUEUE_MAX && !(value & (value - 1)))
			queue->size = (uint16_t)value;
		else
			v->services->driver_error(v->services->handle,
						  "a queue size must be a power of two up to 256");
	} else if (offset == VIRTIO_QUEUE_ENABLE) {
		queue->enabled = value == 1;
	} else if (offset >= VIRTIO_QUEUE_DESC && offset < 0x38 && offset % 4 == 0) {
		set_half(address_of(queue, offset), offset / 4 % 2, value);
	}
}

static uint32_t common_read(struct virtio *v, uint32_t offset)
{
	switch (offset) {
	case VIRTIO_DEVICE_FEATURE_SELECT:
		return v->device_feature_select;
	case VIRTIO_DEVICE_FEATURE:
		return half(v->features, v->device_feature_select);
	case VIRTIO_DRIVER_FEATURE_SELECT:
		return v->driver_feature_select;
	case VIRTIO_DRIVER_FEATURE:
		return half(v->driver_features, v->driver_feature_select);
	case VIRTIO_CONFIG_VECTOR:
		return v->config_vector;
	case VIRTIO_NUM_QUEUES:
		return VIRTIO_QUEUES;
	case VIRTIO_STATUS:
		return v->status;
	case VIRTIO_QUEUE_SELECT:
		return v->queue_select;
	default:
		return queue_read(v, offset);
	}
}

static void common_write(struct virtio *v, uint32_t offset, uint32_t value)
{
	switch (offset) {
	case VIRTIO_DEVICE_FEATURE_SELECT:
		v->device_feature_select = value;
		break;
	case VIRTIO_DRIVER_FEATURE_SELECT:
		v->driver_feature_select = value;
		break;
	case VIRTIO_DRIVER_FEATURE:
		if (!(v->status & VIRTIO_FEATURES_OK)) /* no changes once they are accepted */
			set_half(&v->driver_features, v->driver_feature_select, value);
		break;
	case VIRTIO_CONFIG_VECTOR:
		v->config_vector = value < v->messages ? (uint16_t)value : VIRTIO_NO_VECTOR;
		break;
	case VIRTIO_STATUS:
		write_status(v, (uint8_t)value);
		break;
	case VIRTIO_QUEUE_SELECT:
		v->queue_select = (uint16_t)value;
		break;
	default:
		queue_write(v, offset, value);
		break;
	}
}

/* ---- the BAR ---- */

uint64_t virtio_bar_read(struct virtio *v, uint64_t offset, uint32_t width)
{
	if (width > 4)
		return 0; /* 64-bit fields are read in halves */
	if (offset < VIRTIO_ISR)
		return common_read(v, (uint32_t)offset);
	if (offset < VIRTIO_DEVICE)
		return offset == VIRTIO_ISR ? take_isr(v) : 0;
	if (offset >= VIRTIO_NOTIFY)
		return 0;
	uint32_t at = (uint32_t)offset - VIRTIO_DEVICE;

	return v->config_read(v->kind, at & ~3u) >> (8 * (at % 4));
}

void virtio_bar_write(struct virtio *v, uint64_t offset, uint32_t width, uint64_t value)
{
	const struct vidmm_device_services *s = v->services;
	uint64_t queue = (offset - VIRTIO_NOTIFY) / VIRTIO_NOTIFY_MULTIPLIER;

	if (width > 4)
		s->driver_error(s->handle, "64-bit fields must be written in halves");
	else if (offset < VIRTIO_ISR)
		common_write(v, (uint32_t)offset, (uint32_t)value);
	else if (offset >= VIRTIO_DEVICE && offset < VIRTIO_NOTIFY && width == 4)
		v->config_write(v->kind, (uint32_t)offset - VIRTIO_DEVICE, (uint32_t)value);
	else if (offset >= VIRTIO_NOTIFY && queue < VIRTIO_QUEUES)
		s->schedule(s->handle, (uint32_t)queue, s->now_ns(s->handle));
}
