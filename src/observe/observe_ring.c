/* SPDX-License-Identifier: MIT */
/*
 * The last events, so that a report of an error can show what led to it. An ordinary subscriber: it
 * costs one copy per event while it exists. Its spin lock is held for that copy, and while a reader
 * collects records.
 */
#include <string.h>

#include "observe/observe_internal.h"

struct vmm_observe_ring {
	/* constant after create */
	struct vmm_observe *observe;
	uint32_t subscription, capacity;
	/* guarded by lock */
	_Atomic uint32_t lock;
	uint64_t written;
	struct vmm_observe_record *records; /* event number n is at n % capacity */
};

static void record_event(void *context, const struct vidmm_event *event, const char *text)
{
	struct vmm_observe_ring *ring = context;
	struct vmm_observe_record *record;
	size_t length = 0;

	vmm_observe_spin_lock(ring->observe, &ring->lock);
	record = &ring->records[ring->written++ % ring->capacity];
	record->event = *event;
	if (text) {
		length = strlen(text);
		if (length >= sizeof(record->text))
			length = sizeof(record->text) - 1;
		memcpy(record->text, text, length);
	}
	record->text[length] = '\0';
	vmm_observe_spin_unlock(&ring->lock);
}

vmm_status vmm_observe_ring_create(struct vmm_observe *observe, uint64_t mask, uint32_t capacity,
				   struct vmm_observe_ring **ring)
{
	struct vmm_observe_ring *made;

	vmm_assert(capacity);
	made = vmm_calloc(1, sizeof(*made));
	if (!made)
		return VMM_NO_MEMORY;
	made->observe = observe;
	made->capacity = capacity;
	made->records = vmm_calloc(capacity, sizeof(*made->records));
	if (!made->records)
		goto out_ring;
	made->subscription = vmm_observe_subscribe(observe, mask, record_event, made);
	if (!made->subscription)
		goto out_records;
	*ring = made;
	return VMM_OK;

out_records:
	vmm_free(made->records);
out_ring:
	vmm_free(made);
	return VMM_NO_MEMORY;
}

void vmm_observe_ring_destroy(struct vmm_observe_ring *ring)
{
	if (!ring)
		return;
	vmm_observe_unsubscribe(ring->observe, ring->subscription);
	vmm_free(ring->records);
	vmm_free(ring);
}

/* A lock that renames, and the rename itself, contain the old and the new handle. */
static bool concerns(const struct vidmm_event *event, uint32_t object)
{
	if (!object || event->object == object)
		return true;
	return (event->type == VIDMM_EVENT_LOCK && event->arg[3] == object) ||
	       (event->type == VIDMM_EVENT_RENAME && event->arg[0] == object);
}

uint32_t vmm_observe_ring_last(struct vmm_observe_ring *ring, uint32_t object,
			       struct vmm_observe_record *records, uint32_t count)
{
	uint64_t number, oldest;
	uint32_t found = 0;

	vmm_observe_spin_lock(ring->observe, &ring->lock);
	number = ring->written;
	oldest = number > ring->capacity ? number - ring->capacity : 0;
	/* Fills the caller's array from its end, newest first. */
	while (number > oldest && found < count) {
		const struct vmm_observe_record *record = &ring->records[--number % ring->capacity];

		if (concerns(&record->event, object))
			records[count - ++found] = *record;
	}
	vmm_observe_spin_unlock(&ring->lock);
	memmove(records, records + (count - found), found * sizeof(*records));
	return found;
}
