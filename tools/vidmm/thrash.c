/* SPDX-License-Identifier: MIT */
/*
 * A map from (process, handle) to the number of a buffer's entry. Handles are reused, so the
 * number of a handle is replaced when the driver allocates it anew.
 */
#include "thrash.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "handle_map.h"

/* The entries of a recording's buffers, by id - 1: number + 1; 0: none */
struct recording {
	uint32_t *entry_of;
	uint32_t count, capacity;
};

struct thrash {
	struct vidmm_host *host;
	uint32_t subscription;
	uint32_t video_memory; /* bit N: segment N is a memory segment */
	uint64_t start_ns;
	/* guards the rest: on a linux host, events come from several threads */
	pthread_mutex_t lock;
	struct handle_map numbers; /* of entries */
	struct thrash_entry *entries;
	uint32_t entry_count, entry_capacity;
	unsigned recording_count;
	struct recording recordings[];
};

/* Returns NULL for memory that is no buffer's: the driver's own, or the system's. */
static struct thrash_entry *entry_of(struct thrash *thrash, uint32_t process, uint32_t handle)
{
	uint32_t number;

	return handle != 0 && handle_map_find(&thrash->numbers, process, handle, &number)
		       ? &thrash->entries[number]
		       : NULL;
}

/* ---- buffers ---- */

/* Returns where the entry number of a buffer is stored; NULL when out of memory. */
static uint32_t *slot_of_buffer(struct recording *recording, uint32_t buffer)
{
	while (recording->count < buffer) {
		if (!grow_array((void **)&recording->entry_of, &recording->capacity,
				recording->count, sizeof(uint32_t)))
			return NULL;
		recording->entry_of[recording->count++] = 0;
	}
	return &recording->entry_of[buffer - 1];
}

void thrash_allocated(struct thrash *thrash, uint32_t process, uint32_t handle,
		      const struct thrash_entry *buffer)
{
	uint32_t *slot;

	pthread_mutex_lock(&thrash->lock);
	slot = slot_of_buffer(&thrash->recordings[buffer->recording], buffer->buffer);
	if (slot && *slot == 0 &&
	    grow_array((void **)&thrash->entries, &thrash->entry_capacity, thrash->entry_count,
		       sizeof(*buffer))) {
		thrash->entries[thrash->entry_count] = *buffer;
		*slot = ++thrash->entry_count;
	}
	if (slot && *slot != 0)
		(void)handle_map_set(&thrash->numbers, process, handle, *slot - 1);
	pthread_mutex_unlock(&thrash->lock);
}

bool thrash_buffer_of(struct thrash *thrash, uint32_t process, uint32_t handle, uint32_t *recording,
		      uint32_t *buffer)
{
	const struct thrash_entry *entry;

	pthread_mutex_lock(&thrash->lock);
	entry = entry_of(thrash, process, handle);
	if (entry) {
		*recording = entry->recording;
		*buffer = entry->buffer;
	}
	pthread_mutex_unlock(&thrash->lock);
	return entry != NULL;
}

/* ---- events ---- */

bool thrash_is_copy(uint16_t operation)
{
	return operation == VIDMM_PAGING_TRANSFER || operation == VIDMM_PAGING_VIRTUAL_TRANSFER ||
	       operation == VIDMM_PAGING_SPECIAL_LOCK_TRANSFER;
}

bool thrash_is_eviction(uint16_t reason)
{
	return reason != VIDMM_RESIDENCY_DESTROYED && reason != VIDMM_RESIDENCY_DISCARDED &&
	       reason != VIDMM_RESIDENCY_RESET;
}

static bool is_video_memory(const struct thrash *thrash, uint64_t segment)
{
	return segment < 32 && (thrash->video_memory >> segment & 1);
}

static void note_time(const struct thrash *thrash, struct thrash_entry *entry,
		      const struct vidmm_event *event)
{
	entry->last_ns = event->time_ns - thrash->start_ns;
	if (!entry->bytes_paged_in && !entry->bytes_paged_out && !entry->evictions)
		entry->first_ns = entry->last_ns;
}

/* A copy inside a segment is compaction. */
static void on_paging(struct thrash *thrash, const struct vidmm_event *event)
{
	struct thrash_entry *entry = entry_of(thrash, event->process, event->object);
	uint64_t from = event->arg[1], to = event->arg[2];

	if (!entry || from == to || !thrash_is_copy(event->reason))
		return;
	note_time(thrash, entry, event);
	if (is_video_memory(thrash, to))
		entry->bytes_paged_in += event->arg[0];
	else
		entry->bytes_paged_out += event->arg[0];
}

static void on_residency(struct thrash *thrash, const struct vidmm_event *event)
{
	struct thrash_entry *entry = entry_of(thrash, event->process, event->object);

	if (!entry || !is_video_memory(thrash, event->arg[1]) || event->arg[2] != 0)
		return;
	if (!thrash_is_eviction(event->reason))
		return;
	note_time(thrash, entry, event);
	entry->evictions++;
}

static void on_event(void *opaque, const struct vidmm_event *event, const char *text)
{
	struct thrash *thrash = opaque;

	(void)text;
	pthread_mutex_lock(&thrash->lock);
	if (event->type == VIDMM_EVENT_PAGING) {
		on_paging(thrash, event);
	} else if (event->type == VIDMM_EVENT_RESIDENCY) {
		on_residency(thrash, event);
	} else { /* a rename: the new instance is of the same buffer */
		const struct thrash_entry *entry =
			entry_of(thrash, event->process, (uint32_t)event->arg[0]);

		if (entry)
			(void)handle_map_set(&thrash->numbers, event->process, event->object,
					     (uint32_t)(entry - thrash->entries));
	}
	pthread_mutex_unlock(&thrash->lock);
}

/* ---- */

static uint32_t memory_segments(struct vidmm_adapter *adapter)
{
	struct vidmm_adapter_statistics statistics = {.struct_size = sizeof(statistics)};
	uint32_t set = 0;

	vidmm_adapter_statistics(adapter, &statistics);
	for (uint32_t i = 0; i < statistics.segment_count; i++)
		if (!statistics.segment[i].aperture)
			set |= (uint32_t)2 << i;
	return set;
}

struct thrash *thrash_create(struct vidmm_host *host, struct vidmm_adapter *adapter,
			     unsigned recording_count)
{
	struct thrash *thrash =
		calloc(1, sizeof(*thrash) + recording_count * sizeof(thrash->recordings[0]));

	if (!thrash)
		return NULL;
	pthread_mutex_init(&thrash->lock, NULL);
	thrash->host = host;
	thrash->recording_count = recording_count;
	thrash->video_memory = memory_segments(adapter);
	thrash->start_ns = vidmm_now_ns(host);
	thrash->subscription = vidmm_subscribe(host,
					       (uint64_t)1 << VIDMM_EVENT_PAGING |
						       (uint64_t)1 << VIDMM_EVENT_RESIDENCY |
						       (uint64_t)1 << VIDMM_EVENT_RENAME,
					       on_event, thrash);
	if (thrash->subscription == 0) {
		thrash_destroy(thrash);
		return NULL;
	}
	return thrash;
}

void thrash_destroy(struct thrash *thrash)
{
	if (!thrash)
		return;
	if (thrash->subscription != 0)
		vidmm_unsubscribe(thrash->host, thrash->subscription);
	pthread_mutex_destroy(&thrash->lock);
	for (unsigned i = 0; i < thrash->recording_count; i++)
		free(thrash->recordings[i].entry_of);
	free(thrash->entries);
	handle_map_finish(&thrash->numbers);
	free(thrash);
}

static uint64_t bytes_of(const struct thrash_entry *entry)
{
	return entry->bytes_paged_in + entry->bytes_paged_out;
}

/* Of equal bytes, the buffer that was allocated first is first. */
static void insert(struct thrash_entry *entries, unsigned *count, unsigned most,
		   const struct thrash_entry *entry)
{
	unsigned at = *count;

	while (at > 0 && bytes_of(&entries[at - 1]) < bytes_of(entry))
		at--;
	if (at == most)
		return;
	if (*count < most)
		(*count)++;
	memmove(&entries[at + 1], &entries[at], (*count - at - 1) * sizeof(entries[0]));
	entries[at] = *entry;
}

unsigned thrash_top(struct thrash *thrash, struct thrash_entry *entries, unsigned count)
{
	unsigned found = 0;

	pthread_mutex_lock(&thrash->lock);
	for (uint32_t i = 0; i < thrash->entry_count; i++)
		if (thrash->entries[i].evictions || thrash->entries[i].bytes_paged_out)
			insert(entries, &found, count, &thrash->entries[i]);
	pthread_mutex_unlock(&thrash->lock);
	return found;
}
