/* SPDX-License-Identifier: MIT */
/*
 * A hash table with linear probing from (process, handle) to a ring of events. Handles are reused;
 * a CREATE event restarts the history of its handle. The table only grows, by one ring for each
 * distinct handle.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "history.h"

struct ring {
	uint32_t process, handle; /* handle 0: unused slot */
	/* events since CREATE; the newest is at (next - 1) % HISTORY_EVENTS */
	uint32_t next;
	struct vidmm_event events[HISTORY_EVENTS];
};

struct history {
	struct vidmm_host *host;
	uint32_t subscription;
	/* guards the rest: on a linux host, events come from several threads */
	pthread_mutex_t lock;
	struct ring *rings;
	uint32_t capacity, used; /* capacity: a power of two */
};

static uint32_t slot_of(uint32_t process, uint32_t handle, uint32_t capacity)
{
	uint64_t x = ((uint64_t)process << 32 | handle) * 0x9E3779B97F4A7C15u;

	return (uint32_t)(x >> 32) & (capacity - 1);
}

/* Returns the ring of that allocation, or the unused slot where it belongs. */
static struct ring *find(struct ring *rings, uint32_t capacity, uint32_t process, uint32_t handle)
{
	uint32_t slot = slot_of(process, handle, capacity);

	while (rings[slot].handle != 0 &&
	       (rings[slot].handle != handle || rings[slot].process != process))
		slot = (slot + 1) & (capacity - 1);
	return &rings[slot];
}

static void grow(struct history *history)
{
	uint32_t capacity = history->capacity * 2, i;
	struct ring *rings = calloc(capacity, sizeof(*rings));

	if (!rings)
		return;
	for (i = 0; i < history->capacity; i++) {
		struct ring *old = &history->rings[i];

		if (old->handle != 0)
			*find(rings, capacity, old->process, old->handle) = *old;
	}
	free(history->rings);
	history->rings = rings;
	history->capacity = capacity;
}

static void record(struct history *history, const struct vidmm_event *event)
{
	struct ring *ring = find(history->rings, history->capacity, event->process, event->object);

	if (ring->handle == 0) {
		/* The table is full and could not grow: the existing histories are kept. */
		if (history->used + 1 >= history->capacity)
			return;
		history->used++;
		ring->process = event->process;
		ring->handle = event->object;
	}
	if (event->type == VIDMM_EVENT_CREATE)
		ring->next = 0;
	if (event->type == VIDMM_EVENT_RENAME && event->reason == 0 &&
	    event->arg[0] != event->object) {
		const struct ring *old = find(history->rings, history->capacity, event->process,
					      (uint32_t)event->arg[0]);

		ring->next = old->next;
		memcpy(ring->events, old->events, sizeof(ring->events));
	}
	ring->events[ring->next++ % HISTORY_EVENTS] = *event;
}

static void on_event(void *context, const struct vidmm_event *event, const char *text)
{
	struct history *history = context;

	(void)text;
	if (event->object == 0)
		return;
	pthread_mutex_lock(&history->lock);
	if (history->used * 2 >= history->capacity)
		grow(history);
	record(history, event);
	pthread_mutex_unlock(&history->lock);
}

struct history *history_create(struct vidmm_host *host)
{
	static const uint16_t types[] = {
		VIDMM_EVENT_CREATE,  VIDMM_EVENT_PAGING,  VIDMM_EVENT_RESIDENCY,
		VIDMM_EVENT_LOCK,    VIDMM_EVENT_RENAME,  VIDMM_EVENT_OFFER,
		VIDMM_EVENT_RECLAIM, VIDMM_EVENT_DISCARD, VIDMM_EVENT_DESTROY};
	struct history *history = calloc(1, sizeof(*history));
	uint64_t mask = 0;
	size_t i;

	if (!history)
		return NULL;
	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		mask |= (uint64_t)1 << types[i];
	pthread_mutex_init(&history->lock, NULL);
	history->host = host;
	history->capacity = 64;
	history->rings = calloc(history->capacity, sizeof(*history->rings));
	if (history->rings)
		history->subscription = vidmm_subscribe(host, mask, on_event, history);
	if (history->subscription == 0) {
		history_destroy(history);
		return NULL;
	}
	return history;
}

void history_destroy(struct history *history)
{
	if (!history)
		return;
	if (history->subscription != 0)
		vidmm_unsubscribe(history->host, history->subscription);
	pthread_mutex_destroy(&history->lock);
	free(history->rings);
	free(history);
}

unsigned history_of(struct history *history, uint32_t process, uint32_t handle,
		    struct vidmm_event events[HISTORY_EVENTS])
{
	unsigned count = 0;

	pthread_mutex_lock(&history->lock);
	const struct ring *ring = find(history->rings, history->capacity, process, handle);
	if (ring->handle != 0) {
		uint32_t kept = ring->next < HISTORY_EVENTS ? ring->next : HISTORY_EVENTS;

		for (; count < kept; count++)
			events[count] = ring->events[(ring->next - kept + count) % HISTORY_EVENTS];
	}
	pthread_mutex_unlock(&history->lock);
	return count;
}
