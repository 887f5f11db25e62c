/* SPDX-License-Identifier: MIT */
/*
 * A device model: a DMA engine with a ring in system memory, a doorbell and an interrupt line.
 * `vidmm caps --device copier.so --driver copier_kmd.so` shows it; copier_run.c uses it.
 */
#include <vidmm/device.h>

#include <stdlib.h>
#include <string.h>

#include "copier.h"

#define MEMORY_BYTES ((uint64_t)4 << 20)
#define PIECE_BYTES  65536u
#define ENTRY_NS     2000u /* how long an entry takes */
enum { ENGINE = 0 };       /* the timer that executes */
enum { D0 = 1 };

struct copier {
	const struct vidmm_device_services *services;
	uint32_t control, ring_size, tail, head, status, fault_fence;
	uint64_t ring, fence;
	char piece[PIECE_BYTES];
};

__attribute__((visibility("default"))) const struct vidmm_device_model *vidmm_device_model(void);

static int32_t create(void *context, const struct vidmm_device_services *services, void **device)
{
	struct copier *c = calloc(1, sizeof(*c));

	(void)context;
	if (!c)
		return (int32_t)0xC0000017; /* STATUS_NO_MEMORY */
	c->services = services;
	*device = c;
	return 0;
}

static void destroy(void *device)
{
	free(device);
}

/* Everything but the services: the library has lowered the line already. */
static void reset(void *device)
{
	struct copier *c = device;
	const struct vidmm_device_services *services = c->services;

	memset(c, 0, sizeof(*c));
	c->services = services;
}

/* Outside D0 the registers lose their values. */
static void set_power(void *device, uint32_t state)
{
	if (state != D0)
		reset(device);
}

/* ---- the engine ---- */

static int fill(struct copier *c, const struct copier_command *command)
{
	const struct vidmm_device_services *s = c->services;
	uint64_t done = 0;

	if (command->bytes % 4)
		return 0;
	for (uint32_t i = 0; i < PIECE_BYTES; i += 4)
		memcpy(c->piece + i, &command->value, 4);
	while (done < command->bytes) {
		uint64_t piece = command->bytes - done;

		piece = piece < PIECE_BYTES ? piece : PIECE_BYTES;
		if (s->dma_write(s->handle, command->destination + done, c->piece, piece) < 0)
			return 0;
		done += piece;
	}
	return 1;
}

/* The ranges may overlap: the direction is that in which no byte is written before it is read. */
static int copy(struct copier *c, const struct copier_command *command)
{
	const struct vidmm_device_services *s = c->services;
	int backward = command->destination > command->source;
	uint64_t done = 0;

	while (done < command->bytes) {
		uint64_t piece = command->bytes - done;

		piece = piece < PIECE_BYTES ? piece : PIECE_BYTES;
		uint64_t at = backward ? command->bytes - done - piece : done;

		if (s->dma_read(s->handle, command->source + at, c->piece, piece) < 0 ||
		    s->dma_write(s->handle, command->destination + at, c->piece, piece) < 0)
			return 0;
		done += piece;
	}
	return 1;
}

/* Executes the commands of one entry. 0: a command is unknown, or an address is no memory. */
static int execute(struct copier *c, const struct copier_entry *entry)
{
	const struct vidmm_device_services *s = c->services;
	struct copier_command command;

	for (uint32_t at = 0; at < entry->bytes; at += sizeof(command)) {
		if (entry->bytes - at < sizeof(command) ||
		    s->dma_read(s->handle, entry->commands + at, &command, sizeof(command)) < 0)
			return 0;
		if (command.op == COPIER_FILL   ? !fill(c, &command)
		    : command.op == COPIER_COPY ? !copy(c, &command)
						: 1)
			return 0;
	}
	return 1;
}

static void interrupt(struct copier *c, uint32_t cause)
{
	c->status |= cause;
	c->services->raise_interrupt(c->services->handle, 0);
}

/* Executes one entry, writes its fence, and raises the interrupt. A fault stops the engine. */
static void engine(void *device, uint32_t timer)
{
	struct copier *c = device;
	const struct vidmm_device_services *s = c->services;
	struct copier_entry entry;

	(void)timer;
	if (!(c->control & COPIER_ENABLE) || c->head == c->tail)
		return;
	uint64_t address = c->ring + (c->head & (c->ring_size - 1)) * sizeof(entry);

	if (s->dma_read(s->handle, address, &entry, sizeof(entry)) < 0 || !execute(c, &entry) ||
	    s->dma_write(s->handle, c->fence, &entry.fence, sizeof(entry.fence)) < 0) {
		c->fault_fence = entry.fence;
		c->control &= ~COPIER_ENABLE;
		interrupt(c, COPIER_FAULT);
		return;
	}
	c->head++;
	interrupt(c, COPIER_DONE);
	if (c->head != c->tail)
		s->schedule(s->handle, ENGINE, s->now_ns(s->handle) + ENTRY_NS);
}

/* ---- registers ---- */

static uint64_t bar_read(void *device, uint32_t bar, uint64_t offset, uint32_t width)
{
	const struct copier *c = device;

	(void)bar;
	if (width != 4)
		return UINT64_MAX;
	switch (offset) {
	case COPIER_ID:
		return COPIER_ID_VALUE;
	case COPIER_CONTROL:
		return c->control;
	case COPIER_RING_SIZE:
		return c->ring_size;
	case COPIER_TAIL:
		return c->tail;
	case COPIER_HEAD:
		return c->head;
	case COPIER_STATUS:
		return c->status;
	case COPIER_FAULT_FENCE:
		return c->fault_fence;
	default:
		return 0;
	}
}

static void set_half(uint64_t *address, int high, uint64_t value)
{
	uint64_t mask = high ? 0xFFFFFFFFu : 0xFFFFFFFF00000000u;

	*address = (*address & mask) | value << (high ? 32 : 0);
}

static void write_control(struct copier *c, uint32_t value)
{
	const struct vidmm_device_services *s = c->services;

	if (value & COPIER_RESET) {
		reset(c);
		s->lower_interrupt(s->handle, 0);
		s->schedule(s->handle, ENGINE, VIDMM_DEVICE_NEVER);
		return;
	}
	c->control = value & COPIER_ENABLE;
}

static void ring_doorbell(struct copier *c, uint32_t tail)
{
	const struct vidmm_device_services *s = c->services;

	if (!(c->control & COPIER_ENABLE) || !c->ring_size || tail - c->head > c->ring_size) {
		s->driver_error(s->handle, "doorbell of a ring that is disabled or has fewer "
					   "entries than that");
		return;
	}
	c->tail = tail;
	s->schedule(s->handle, ENGINE, s->now_ns(s->handle) + ENTRY_NS);
}

static void write_ring_size(struct copier *c, uint32_t value)
{
	if (value & (value - 1) || value > COPIER_RING_MAX)
		c->services->driver_error(c->services->handle,
					  "RING_SIZE must be a power of two up to 1024");
	else
		c->ring_size = value;
}

static void bar_write(void *device, uint32_t bar, uint64_t offset, uint32_t width, uint64_t value)
{
	struct copier *c = device;

	(void)bar;
	if (width != 4) {
		c->services->driver_error(c->services->handle, "registers have 32 bits");
		return;
	}
	switch (offset) {
	case COPIER_CONTROL:
		write_control(c, (uint32_t)value);
		break;
	case COPIER_RING_LOW:
	case COPIER_RING_HIGH:
		set_half(&c->ring, offset == COPIER_RING_HIGH, value);
		break;
	case COPIER_RING_SIZE:
		write_ring_size(c, (uint32_t)value);
		break;
	case COPIER_TAIL:
		ring_doorbell(c, (uint32_t)value);
		break;
	case COPIER_STATUS:
		c->status &= ~(uint32_t)value;
		if (!c->status)
			c->services->lower_interrupt(c->services->handle, 0);
		break;
	case COPIER_FENCE_LOW:
	case COPIER_FENCE_HIGH:
		set_half(&c->fence, offset == COPIER_FENCE_HIGH, value);
		break;
	default:
		break;
	}
}

const struct vidmm_device_model *vidmm_device_model(void)
{
	static const struct vidmm_device_model model = {
		.struct_size = sizeof(model),
		.version = VIDMM_DEVICE_VERSION,
		.name = "copier",
		.vendor_id = COPIER_VENDOR,
		.device_id = COPIER_DEVICE,
		.class_code = 0x038000, /* a display controller that is neither VGA nor 3D */
		.config_bytes = 256,
		.bar = {[COPIER_BAR_REGISTERS] = {VIDMM_BAR_REGISTERS, 0, 4096},
			[COPIER_BAR_MEMORY] = {VIDMM_BAR_MEMORY,
					       VIDMM_BAR_64BIT | VIDMM_BAR_PREFETCHABLE,
					       MEMORY_BYTES}},
		.create = create,
		.destroy = destroy,
		.reset = reset,
		.set_power = set_power,
		.bar_read = bar_read,
		.bar_write = bar_write,
		.timer = engine,
	};

	return &model;
}
