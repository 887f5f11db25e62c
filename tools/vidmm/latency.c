/* SPDX-License-Identifier: MIT */
/*
 * Follows each command buffer of a context through three events: submit, queue (a portion is on the
 * GPU, with a fence of its node), and fence. Buffers of a context are submitted and complete in
 * order, so two rings per context suffice. Times are counted in a logarithmic histogram.
 */
#include "latency.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"

/* A power of two is divided into 128 classes. */
#define CLASS_BITS 7u
#define CLASSES    ((64u - CLASS_BITS + 1u) << CLASS_BITS)

struct histogram {
	uint32_t process;
	uint64_t count, max_ns;
	uint64_t of_class[CLASSES];
};

struct buffer {
	uint64_t submitted_ns;
	uint32_t fence, node; /* of its last portion that is on the GPU */
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
	/* The buffer that completed last. A further portion of it shows that it has not. */
	struct buffer last;
	uint64_t last_ns;
};

struct latency {
	struct vidmm_host *host;
	uint32_t subscription;
	/* guards the rest: on a linux host, events come from several threads */
	pthread_mutex_t lock;
	struct context *contexts;
	uint32_t context_count, context_capacity;
	struct histogram *histograms;
	uint32_t histogram_count, histogram_capacity;
};

/* ---- histogram ---- */

static uint32_t class_of(uint64_t ns)
{
	uint32_t bits = 64u - (uint32_t)__builtin_clzll(ns | 1);
	uint32_t shift = bits > CLASS_BITS + 1 ? bits - CLASS_BITS - 1 : 0;

	return (shift << CLASS_BITS) + (uint32_t)(ns >> shift);
}

/* The middle of the class. */
static uint64_t value_of(uint32_t class)
{
	uint32_t shift = class >> CLASS_BITS;

	if (shift == 0)
		return class;
	shift--;
	return ((uint64_t)(class - (shift << CLASS_BITS)) << shift) + ((uint64_t)1 << shift) / 2;
}

static void add(struct histogram *to, uint64_t ns, uint64_t change)
{
	to->count += change;
	to->of_class[class_of(ns)] += change;
	if (ns > to->max_ns)
		to->max_ns = ns;
}

static uint64_t percentile(const struct histogram *of, uint64_t percent)
{
	uint64_t wanted = (of->count * percent + 99) / 100, seen = 0;

	for (uint32_t i = 0; i < CLASSES; i++) {
		seen += of->of_class[i];
		if (seen >= wanted && seen > 0)
			return value_of(i) < of->max_ns ? value_of(i) : of->max_ns;
	}
	return 0;
}

static struct histogram *histogram_of(struct latency *latency, uint32_t process)
{
	struct histogram *new;

	for (uint32_t i = 0; i < latency->histogram_count; i++)
		if (latency->histograms[i].process == process)
			return &latency->histograms[i];
	if (!grow_array((void **)&latency->histograms, &latency->histogram_capacity,
			latency->histogram_count, sizeof(*new)))
		return NULL;
	new = &latency->histograms[latency->histogram_count++];
	memset(new, 0, sizeof(*new));
	new->process = process;
	return new;
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

	if (context)
		ring_push(&context->submitted, (struct buffer){.submitted_ns = event->time_ns});
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
	} else {
		struct histogram *histogram = histogram_of(latency, context->process);

		if (!histogram || !context->last.submitted_ns)
			return;
		buffer = context->last;
		add(histogram, context->last_ns - buffer.submitted_ns, (uint64_t)-1);
	}
	buffer.fence = (uint32_t)event->arg[0];
	buffer.node = (uint32_t)event->arg[1];
	ring_push(&context->on_gpu, buffer);
}

static void complete(struct latency *latency, struct context *context, uint64_t now_ns)
{
	struct histogram *histogram = histogram_of(latency, context->process);

	context->last = ring_pop(&context->on_gpu);
	context->last_ns = now_ns;
	if (histogram)
		add(histogram, now_ns - context->last.submitted_ns, 1);
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
	else if (event->type == VIDMM_EVENT_QUEUE)
		on_queue(latency, event);
	else if (event->type == VIDMM_EVENT_FENCE)
		on_fence(latency, event);
	pthread_mutex_unlock(&latency->lock);
}

/* ---- */

struct latency *latency_create(struct vidmm_host *host)
{
	struct latency *latency = calloc(1, sizeof(*latency));

	if (!latency)
		return NULL;
	pthread_mutex_init(&latency->lock, NULL);
	latency->host = host;
	latency->subscription = vidmm_subscribe(
		host,
		(uint64_t)1 << VIDMM_EVENT_SUBMIT | (uint64_t)1 << VIDMM_EVENT_DOOR |
			(uint64_t)1 << VIDMM_EVENT_QUEUE | (uint64_t)1 << VIDMM_EVENT_FENCE,
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
	free(latency->histograms);
	free(latency);
}

static void accumulate(struct histogram *sum, const struct histogram *part)
{
	sum->count += part->count;
	if (part->max_ns > sum->max_ns)
		sum->max_ns = part->max_ns;
	for (uint32_t i = 0; i < CLASSES; i++)
		sum->of_class[i] += part->of_class[i];
}

void latency_summary(struct latency *latency, uint32_t process, struct latency_summary *summary)
{
	struct histogram sum = {0};

	pthread_mutex_lock(&latency->lock);
	for (uint32_t i = 0; i < latency->histogram_count; i++)
		if (process == 0 || latency->histograms[i].process == process)
			accumulate(&sum, &latency->histograms[i]);
	pthread_mutex_unlock(&latency->lock);
	*summary = (struct latency_summary){
		.count = sum.count,
		.p50_ns = percentile(&sum, 50),
		.p95_ns = percentile(&sum, 95),
		.p99_ns = percentile(&sum, 99),
		.max_ns = sum.count ? sum.max_ns : 0,
	};
}
