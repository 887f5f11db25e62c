/* SPDX-License-Identifier: MIT */
/*
 * Follows each command buffer of a context through three events: submit, queue (a portion is on the
 * GPU, with a fence of its node), and fence. Buffers of a context are submitted and complete in
 * order, so two rings per context suffice. A split event comes before the queue event of each
 * portion that is not the last of its buffer.
 */
#include "latency.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"

/* The latencies of a process. */
struct process {
	uint32_t id;
	struct histogram histogram;
};

struct buffer {
	uint64_t submitted_ns;
	uint32_t fence, node; /* of its last portion that is on the GPU */
	bool has_rest;        /* portions follow that one */
	struct frame_label label;
};

/* first in, first out */
struct ring {
	struct buffer *at;
	uint32_t capacity; /* a power of two */
	uint32_t first, count;
};

struct context {
	uint32_t process, handle;
	struct ring submitted, on_gpu;
	uint32_t splits; /* portions that are about to be queued and are not the last of a buffer */
	/* The buffer whose newest portion is complete and not the last one. */
	struct buffer rest;
};

struct latency {
	struct vidmm_host *host;
	uint32_t subscription;
	/* guards the rest: on a linux host, events come from several threads */
	pthread_mutex_t lock;
	struct context *contexts;
	uint32_t context_count, context_capacity;
	struct process *processes;
	uint32_t process_count, process_capacity;
	struct frames *frames;
	uint64_t start_ns;        /* time 0 of the frames */
	struct frame_label label; /* of the submission that is being made */
};

static struct histogram *histogram_of(struct latency *latency, uint32_t process)
{
	struct process *new;

	for (uint32_t i = 0; i < latency->process_count; i++)
		if (latency->processes[i].id == process)
			return &latency->processes[i].histogram;
	if (!grow_array((void **)&latency->processes, &latency->process_capacity,
			latency->process_count, sizeof(*new)))
		return NULL;
	new = &latency->processes[latency->process_count++];
	memset(new, 0, sizeof(*new));
	new->id = process;
	return &new->histogram;
}

/* ---- contexts ---- */

static struct context *context_of(struct latency *latency, uint32_t process, uint32_t handle)
{
	struct context *new;

	for (uint32_t i = 0; i < latency->context_count; i++)
		if (latency->contexts[i].process == process &&
		    latency->contexts[i].handle == handle)
			return &latency->contexts[i];
	if (!grow_array((void **)&latency->contexts, &latency->context_capacity,
			latency->context_count, sizeof(*new)))
		return NULL;
	new = &latency->contexts[latency->context_count++];
	memset(new, 0, sizeof(*new));
	new->process = process;
	new->handle = handle;
	return new;
}

static struct buffer *ring_at(const struct ring *ring, uint32_t index)
{
	return &ring->at[(ring->first + index) & (ring->capacity - 1)];
}

static bool ring_double(struct ring *ring)
{
	uint32_t capacity = ring->capacity ? ring->capacity * 2 : 16;
	struct buffer *at = calloc(capacity, sizeof(*at));

	if (!at)
		return false;
	for (uint32_t i = 0; i < ring->count; i++)
		at[i] = *ring_at(ring, i);
	free(ring->at);
	*ring = (struct ring){.at = at, .capacity = capacity, .count = ring->count};
	return true;
}

/* Out of memory: the buffer is not counted. */
static void ring_push(struct ring *ring, struct buffer buffer)
{
	if (ring->count == ring->capacity && !ring_double(ring))
		return;
	*ring_at(ring, ring->count++) = buffer;
}

static struct buffer ring_pop(struct ring *ring)
{
	struct buffer buffer = *ring_at(ring, 0);

	ring->first = (ring->first + 1) & (ring->capacity - 1);
	ring->count--;
	return buffer;
}

/* ---- events ---- */

static void on_submit(struct latency *latency, const struct vidmm_event *event)
{
	struct context *context = context_of(latency, event->process, event->object);

	if (!context)
		return;
	ring_push(&context->submitted,
		  (struct buffer){.submitted_ns = event->time_ns, .label = latency->label});
	frames_accepted(latency->frames, latency->label);
}

/* The call ended after its submission; it may have waited before. */
static void on_door(struct latency *latency, const struct vidmm_event *event)
{
	struct context *context = context_of(latency, event->process, event->object);
	struct ring *ring;

	if (!context || (int32_t)event->arg[0] < 0)
		return;
	ring = context->submitted.count ? &context->submitted : &context->on_gpu;
	if (ring->count)
		ring_at(ring, ring->count - 1)->submitted_ns -= event->arg[2];
}

/* A portion of a buffer is about to be queued, and more will follow. */
static void on_split(struct latency *latency, const struct vidmm_event *event)
{
	struct context *context = context_of(latency, event->process, event->object);

	if (context)
		context->splits++;
}

/* A portion that begins at offset 0 is the first one of the next buffer. */
static void on_queue(struct latency *latency, const struct vidmm_event *event)
{
	struct context *context = context_of(latency, event->process, event->object);
	struct buffer buffer;

	if (!context || event->reason != 0)
		return;
	if (event->arg[2] == 0) {
		if (!context->submitted.count)
			return;
		buffer = ring_pop(&context->submitted);
	} else if (context->on_gpu.count) {
		buffer = *ring_at(&context->on_gpu, --context->on_gpu.count);
	} else if (context->rest.has_rest) {
		buffer = context->rest;
		context->rest.has_rest = false;
	} else {
		return;
	}
	buffer.fence = (uint32_t)event->arg[0];
	buffer.node = (uint32_t)event->arg[1];
	buffer.has_rest = context->splits > 0;
	context->splits -= buffer.has_rest;
	ring_push(&context->on_gpu, buffer);
}

static void complete(struct latency *latency, struct context *context, uint64_t now_ns)
{
	struct histogram *histogram = histogram_of(latency, context->process);
	struct buffer buffer = ring_pop(&context->on_gpu);

	if (buffer.has_rest) {
		context->rest = buffer;
		return;
	}
	if (histogram)
		histogram_add(histogram, now_ns - buffer.submitted_ns);
	frames_completed(latency->frames, buffer.label, now_ns - latency->start_ns);
}

static void on_fence(struct latency *latency, const struct vidmm_event *event)
{
	uint32_t fence = (uint32_t)event->arg[0], node = (uint32_t)event->arg[1];

	for (uint32_t i = 0; i < latency->context_count; i++) {
		struct context *context = &latency->contexts[i];

		while (context->on_gpu.count && ring_at(&context->on_gpu, 0)->node == node &&
		       (int32_t)(fence - ring_at(&context->on_gpu, 0)->fence) >= 0)
			complete(latency, context, event->time_ns);
	}
}

static void on_event(void *opaque, const struct vidmm_event *event, const char *text)
{
	struct latency *latency = opaque;

	(void)text;
	if (event->type == VIDMM_EVENT_DOOR && event->reason != VIDMM_DOOR_RENDER)
		return;
	pthread_mutex_lock(&latency->lock);
	if (event->type == VIDMM_EVENT_SUBMIT)
		on_submit(latency, event);
	else if (event->type == VIDMM_EVENT_DOOR)
		on_door(latency, event);
	else if (event->type == VIDMM_EVENT_SPLIT)
		on_split(latency, event);
	else if (event->type == VIDMM_EVENT_QUEUE)
		on_queue(latency, event);
	else if (event->type == VIDMM_EVENT_FENCE)
		on_fence(latency, event);
	pthread_mutex_unlock(&latency->lock);
}

/* ---- */

struct latency *latency_create(struct vidmm_host *host, struct frames *frames)
{
	struct latency *latency = calloc(1, sizeof(*latency));

	if (!latency)
		return NULL;
	pthread_mutex_init(&latency->lock, NULL);
	latency->host = host;
	latency->frames = frames;
	latency->start_ns = vidmm_now_ns(host);
	latency->label.process = FRAMES_NONE;
	latency->subscription = vidmm_subscribe(
		host,
		(uint64_t)1 << VIDMM_EVENT_SUBMIT | (uint64_t)1 << VIDMM_EVENT_DOOR |
			(uint64_t)1 << VIDMM_EVENT_SPLIT | (uint64_t)1 << VIDMM_EVENT_QUEUE |
			(uint64_t)1 << VIDMM_EVENT_FENCE,
		on_event, latency);
	if (latency->subscription == 0) {
		latency_destroy(latency);
		return NULL;
	}
	return latency;
}

void latency_destroy(struct latency *latency)
{
	if (!latency)
		return;
	if (latency->subscription != 0)
		vidmm_unsubscribe(latency->host, latency->subscription);
	pthread_mutex_destroy(&latency->lock);
	for (uint32_t i = 0; i < latency->context_count; i++) {
		free(latency->contexts[i].submitted.at);
		free(latency->contexts[i].on_gpu.at);
	}
	free(latency->contexts);
	free(latency->processes);
	free(latency);
}

void latency_label(struct latency *latency, struct frame_label label)
{
	pthread_mutex_lock(&latency->lock);
	latency->label = label;
	pthread_mutex_unlock(&latency->lock);
}

void latency_summary(struct latency *latency, uint32_t process, struct histogram_summary *summary)
{
	struct histogram sum = {0};

	pthread_mutex_lock(&latency->lock);
	for (uint32_t i = 0; i < latency->process_count; i++)
		if (process == 0 || latency->processes[i].id == process)
			histogram_merge(&sum, &latency->processes[i].histogram);
	pthread_mutex_unlock(&latency->lock);
	*summary = histogram_summary(&sum);
}
