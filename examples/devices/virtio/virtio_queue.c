/* SPDX-License-Identifier: MIT */
/*
 * Split virtqueues, as the device sees them. Everything in them is the driver's, and may be wrong:
 * each index is checked, and a chain has at most as many descriptors as the queue.
 */
#include "virtio_pci.h"

#include <string.h>

static bool dma_read(struct virtio *v, uint64_t address, void *buffer, uint32_t bytes)
{
	return v->services->dma_read(v->services->handle, address, buffer, bytes) >= 0;
}

static bool dma_write(struct virtio *v, uint64_t address, const void *buffer, uint32_t bytes)
{
	return v->services->dma_write(v->services->handle, address, buffer, bytes) >= 0;
}

/* Adds a descriptor to the request. Returns why it is not valid, or NULL. */
static const char *add(struct virtio *v, struct virtio_request *request,
		       const struct virtio_desc *desc)
{
	if (desc->flags & ~(VIRTIO_DESC_NEXT | VIRTIO_DESC_WRITE))
		return "a descriptor has flags that were not negotiated";
	if (desc->flags & VIRTIO_DESC_WRITE) {
		if (desc->length > UINT32_MAX - request->writable)
			return "a chain is longer than 2^32 bytes";
		request->part[request->parts++] = *desc;
		request->writable += desc->length;
		return NULL;
	}
	if (request->parts)
		return "a readable descriptor follows a writable one";
	if (desc->length > VIRTIO_REQUEST_BYTES - request->readable)
		return "a request is longer than the device accepts";
	if (!dma_read(v, desc->address, v->data + request->readable, desc->length))
		return "a descriptor has an address that is no memory";
	request->readable += desc->length;
	return NULL;
}

/* Collects the chain that begins at request->head. Returns why it is not valid, or NULL. */
static const char *collect(struct virtio *v, const struct virtio_queue *queue,
			   struct virtio_request *request)
{
	uint16_t index = request->head;

	for (uint32_t count = 0; count < queue->size; count++) {
		struct virtio_desc desc;
		const char *wrong;

		if (index >= queue->size)
			return "a descriptor index is not below the queue size";
		if (!dma_read(v, queue->desc + (uint64_t)index * sizeof(desc), &desc, sizeof(desc)))
			return "the descriptor table is no memory";
		wrong = add(v, request, &desc);
		if (wrong || !(desc.flags & VIRTIO_DESC_NEXT))
			return wrong;
		index = desc.next;
	}
	return "a chain of descriptors does not end";
}

static bool put_used(struct virtio *v, struct virtio_queue *queue, uint16_t head, uint32_t length)
{
	uint32_t element[2] = {head, length};
	uint64_t slot = queue->device + 4 + 8u * (queue->next_used % queue->size);

	if (!dma_write(v, slot, element, sizeof(element)))
		return false;
	queue->next_used++;
	return dma_write(v, queue->device + 2, &queue->next_used, 2);
}

/* Handles one request. Returns false if the queue is broken. */
static bool step(struct virtio *v, uint32_t number)
{
	struct virtio_queue *queue = &v->queue[number];
	struct virtio_request request = {0};
	uint64_t slot = queue->driver + 4 + 2u * (queue->next_avail % queue->size);
	const char *wrong = "the available ring is no memory";
	uint32_t written;

	if (dma_read(v, slot, &request.head, 2))
		wrong = collect(v, queue, &request);
	if (wrong) {
		virtio_break(v, wrong);
		return false;
	}
	queue->next_avail++;
	written = v->handle(v->kind, number, &request, v->data);
	if (put_used(v, queue, request.head, written))
		return true;
	virtio_break(v, "the used ring is no memory");
	return false;
}

void virtio_run_queue(struct virtio *v, uint32_t number)
{
	struct virtio_queue *queue = &v->queue[number];
	uint16_t available[2]; /* flags, index */
	bool done = false;

	while (v->status & VIRTIO_DRIVER_OK && !(v->status & VIRTIO_NEEDS_RESET) &&
	       queue->enabled) {
		if (!dma_read(v, queue->driver, available, sizeof(available))) {
			virtio_break(v, "the available ring is no memory");
			return;
		}
		if ((uint16_t)(available[1] - queue->next_avail) > queue->size) {
			virtio_break(v, "the available index is more than the queue size ahead");
			return;
		}
		if (available[1] == queue->next_avail) {
			if (done && !(available[0] & VIRTIO_NO_INTERRUPT))
				virtio_interrupt(v, VIRTIO_ISR_QUEUE, queue->vector);
			return;
		}
		if (!step(v, number))
			return;
		done = true;
	}
}

uint32_t virtio_answer(struct virtio *v, const struct virtio_request *request, const void *answer,
		       uint32_t bytes)
{
	const uint8_t *from = answer;
	uint32_t done = 0;

	for (uint32_t i = 0; i < request->parts && done < bytes; i++) {
		uint32_t length = request->part[i].length;

		length = length < bytes - done ? length : bytes - done;
		if (!dma_write(v, request->part[i].address, from + done, length))
			break;
		done += length;
	}
	return done;
}
