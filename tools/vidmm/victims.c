/* SPDX-License-Identifier: MIT */
/* The instances by (process, handle), and an array of those in video memory. */
#include "victims.h"

#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "handle_map.h"
#include "next_uses.h"
#include "thrash.h"
#include "umd.h"

/* The first segment is the video memory of the replay's adapter (host_local.c). */
#define VIDEO_MEMORY 1u
#define RENDER_NODE  0u
#define NOT_RESIDENT UINT32_MAX

struct instance {
	uint32_t process, handle;
	uint32_t resident_at;     /* index in `residents`, or NOT_RESIDENT */
	bool spared_by_reference; /* at its last eviction */
	uint64_t size_bytes;
};

struct victims {
	struct world *world;
	uint32_t subscription;
	struct handle_map numbers; /* of instances */
	struct instance *instances;
	uint32_t count, capacity;
	uint32_t *residents; /* indexes in `instances` */
	uint32_t resident_count, resident_capacity;
	/* Submissions that have not completed, by number in the recordings, oldest first. */
	uint32_t *in_flight;
	uint32_t in_flight_count, in_flight_capacity;
	uint64_t evictions, bytes;
};

/* NULL when out of memory: the instance is not counted. */
static struct instance *instance_of(struct victims *victims, const struct vidmm_event *event)
{
	uint32_t number;

	if (handle_map_find(&victims->numbers, event->process, event->object, &number))
		return &victims->instances[number];
	number = victims->count;
	if (!grow_array((void **)&victims->instances, &victims->capacity, number,
			sizeof(*victims->instances)) ||
	    !handle_map_set(&victims->numbers, event->process, event->object, number))
		return NULL;
	victims->instances[victims->count++] = (struct instance){
		.process = event->process, .handle = event->object, .resident_at = NOT_RESIDENT};
	return &victims->instances[number];
}

/* ---- submissions ---- */

/* Out of memory: the submission counts as completed. */
static void add_in_flight(struct victims *victims, uint32_t submission)
{
	if (grow_array((void **)&victims->in_flight, &victims->in_flight_capacity,
		       victims->in_flight_count, sizeof(uint32_t)))
		victims->in_flight[victims->in_flight_count++] = submission;
}

static void on_completed(struct victims *victims, uint64_t packets)
{
	if (packets > victims->in_flight_count)
		packets = victims->in_flight_count;
	victims->in_flight_count -= (uint32_t)packets;
	memmove(victims->in_flight, victims->in_flight + packets,
		victims->in_flight_count * sizeof(uint32_t));
}

static uint32_t oldest_in_flight(const struct victims *victims)
{
	return victims->in_flight_count ? victims->in_flight[0]
					: next_uses_current(victims->world->next_uses);
}

/* ---- evictions ---- */

/*
 * Submissions until the next use of the instance. 0: a submission that has not completed uses it,
 * so it cannot be evicted. UINT64_MAX: no use follows; also for a retired instance of a rename.
 */
static uint64_t distance_of(struct victims *victims, const struct instance *instance)
{
	struct world *world = victims->world;
	uint32_t recording, buffer;

	if (!thrash_buffer_of(world->thrash, instance->process, instance->handle, &recording,
			      &buffer))
		return 0; /* the driver's own memory: always in use */
	if (umd_handle_of(world->processes[recording], buffer) != instance->handle)
		return UINT64_MAX;
	return next_uses_idle_distance(world->next_uses, recording, buffer,
				       oldest_in_flight(victims));
}

/*
 * Would the reference have kept the victim? Then instances in video memory that are used later
 * than the victim have at least its bytes.
 */
static bool is_spared(struct victims *victims, const struct instance *victim)
{
	uint64_t distance = distance_of(victims, victim), bytes = 0;

	for (uint32_t i = 0; i < victims->resident_count && distance != UINT64_MAX; i++) {
		const struct instance *other = &victims->instances[victims->residents[i]];

		if (other != victim && distance_of(victims, other) > distance)
			bytes += other->size_bytes;
		if (bytes >= victim->size_bytes)
			return true;
	}
	return false;
}

static void enter(struct victims *victims, struct instance *instance, uint64_t size_bytes)
{
	instance->spared_by_reference = false;
	instance->size_bytes = size_bytes;
	if (instance->resident_at != NOT_RESIDENT ||
	    !grow_array((void **)&victims->residents, &victims->resident_capacity,
			victims->resident_count, sizeof(uint32_t)))
		return;
	instance->resident_at = victims->resident_count;
	victims->residents[victims->resident_count++] = (uint32_t)(instance - victims->instances);
}

static void leave(struct victims *victims, struct instance *instance)
{
	uint32_t at = instance->resident_at, last;

	if (at == NOT_RESIDENT)
		return;
	last = victims->residents[--victims->resident_count];
	victims->residents[at] = last;
	victims->instances[last].resident_at = at;
	instance->resident_at = NOT_RESIDENT;
}

static void on_residency(struct victims *victims, const struct vidmm_event *event,
			 struct instance *instance)
{
	if (event->arg[2] == VIDEO_MEMORY) {
		enter(victims, instance, event->arg[0]);
	} else if (event->arg[1] == VIDEO_MEMORY) {
		instance->spared_by_reference =
			event->reason == VIDMM_RESIDENCY_PRESSURE && is_spared(victims, instance);
		victims->evictions += instance->spared_by_reference;
		leave(victims, instance);
	}
}

static void on_event(void *opaque, const struct vidmm_event *event, const char *text)
{
	struct victims *victims = opaque;
	struct instance *instance;

	(void)text;
	if (event->type == VIDMM_EVENT_SUBMIT)
		add_in_flight(victims, next_uses_current(victims->world->next_uses));
	else if (event->type == VIDMM_EVENT_FENCE && event->object == 0 &&
		 event->arg[1] == RENDER_NODE)
		on_completed(victims, event->arg[2]);
	if (event->object == 0 ||
	    (event->type != VIDMM_EVENT_RESIDENCY && event->type != VIDMM_EVENT_PAGING))
		return;
	instance = instance_of(victims, event);
	if (!instance)
		return;
	if (event->type == VIDMM_EVENT_RESIDENCY)
		on_residency(victims, event, instance);
	else if (event->arg[1] == 0 && event->arg[2] == VIDEO_MEMORY &&
		 thrash_is_copy(event->reason) && instance->spared_by_reference)
		victims->bytes += event->arg[0];
}

struct victims *victims_create(struct world *world)
{
	struct victims *victims = calloc(1, sizeof(*victims));

	if (!victims)
		return NULL;
	victims->world = world;
	victims->subscription = vidmm_subscribe(
		world->host,
		(uint64_t)1 << VIDMM_EVENT_PAGING | (uint64_t)1 << VIDMM_EVENT_RESIDENCY |
			(uint64_t)1 << VIDMM_EVENT_SUBMIT | (uint64_t)1 << VIDMM_EVENT_FENCE,
		on_event, victims);
	if (victims->subscription == 0) {
		victims_destroy(victims);
		return NULL;
	}
	return victims;
}

void victims_destroy(struct victims *victims)
{
	if (!victims)
		return;
	if (victims->subscription != 0)
		vidmm_unsubscribe(victims->world->host, victims->subscription);
	handle_map_finish(&victims->numbers);
	free(victims->instances);
	free(victims->residents);
	free(victims->in_flight);
	free(victims);
}

void victims_summary(const struct victims *victims, uint64_t *evictions, uint64_t *bytes)
{
	*evictions = victims->evictions;
	*bytes = victims->bytes;
}
