/* SPDX-License-Identifier: MIT */
#include "waits.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"

#define RENDER_NODE 0u

/* A command buffer, or a portion of one, or a paging packet on the render node. */
struct portion {
	uint32_t process, context; /* 0: paging */
	uint32_t fence;            /* on the GPU only */
};

struct list {
	struct portion *at;
	uint32_t capacity, count;
};

struct totals {
	uint32_t process;
	struct waits_summary sum;
};

struct waits {
	struct vidmm_host *host;
	uint32_t subscription;
	/* guards the rest: on a linux host, events come from several threads */
	pthread_mutex_t lock;
	uint64_t now_ns;       /* the time up to which the state below has been counted */
	struct list accepted;  /* not on the GPU, oldest first */
	struct list on_gpu;    /* of the render node, in the order of execution */
	bool is_paging;        /* a paging packet is on the GPU ... */
	uint32_t paging_fence; /* ... the newest one has this fence ... */
	uint32_t paging_node;  /* ... of this node */
	struct totals *totals;
	uint32_t total_count, total_capacity;
};

/* ---- lists ---- */

/* Out of memory: the portion is not counted. */
static void list_add(struct list *list, struct portion portion)
{
	if (grow_array((void **)&list->at, &list->capacity, list->count, sizeof(portion)))
		list->at[list->count++] = portion;
}

static void list_remove(struct list *list, uint32_t index)
{
	list->count--;
	memmove(&list->at[index], &list->at[index + 1],
		(list->count - index) * sizeof(list->at[0]));
}

static void remove_of_context(struct list *list, uint32_t process, uint32_t context)
{
	for (uint32_t i = 0; i < list->count; i++) {
		if (list->at[i].process == process && list->at[i].context == context) {
			list_remove(list, i);
			return;
		}
	}
}

/* ---- time ---- */

static struct waits_summary *totals_of(struct waits *waits, uint32_t process)
{
	struct totals *totals;

	for (uint32_t i = 0; i < waits->total_count; i++)
		if (waits->totals[i].process == process)
			return &waits->totals[i].sum;
	if (!grow_array((void **)&waits->totals, &waits->total_capacity, waits->total_count,
			sizeof(*totals)))
		return NULL;
	totals = &waits->totals[waits->total_count++];
	*totals = (struct totals){.process = process};
	return &totals->sum;
}

/* Returns the oldest command buffer that the node does not execute, NULL if there is none. */
static const struct portion *first_waiting(const struct waits *waits)
{
	for (uint32_t i = 0; i < waits->on_gpu.count; i++)
		if (waits->on_gpu.at[i].context != 0)
			return &waits->on_gpu.at[i];
	return waits->accepted.count ? &waits->accepted.at[0] : NULL;
}

/* Counts the time until NOW_NS for the state in which the node has been. */
static void count_time(struct waits *waits, uint64_t now_ns)
{
	uint64_t ns = now_ns > waits->now_ns ? now_ns - waits->now_ns : 0;
	const struct list *on_gpu = &waits->on_gpu;
	bool busy = on_gpu->count && on_gpu->at[0].context != 0;
	const struct portion *portion = busy ? &on_gpu->at[0] : first_waiting(waits);
	struct waits_summary *sum;

	waits->now_ns += ns;
	if (ns == 0 || !portion || !(busy || waits->is_paging))
		return;
	sum = totals_of(waits, portion->process);
	if (!sum)
		return;
	if (busy)
		sum->gpu_busy_ns += ns;
	else
		sum->gpu_paging_ns += ns;
}

/* ---- events ---- */

/* The first of two portions of a command buffer is about to be queued: the other one waits on. */
static void on_split(struct waits *waits, const struct vidmm_event *event)
{
	const struct list *list = &waits->accepted;

	for (uint32_t i = 0; i < list->count; i++) {
		if (list->at[i].process != event->process || list->at[i].context != event->object)
			continue;
		if (!grow_array((void **)&waits->accepted.at, &waits->accepted.capacity,
				list->count, sizeof(list->at[0])))
			return;
		memmove(&list->at[i + 1], &list->at[i], (list->count - i) * sizeof(list->at[0]));
		waits->accepted.count++;
		return;
	}
}

static void on_queue(struct waits *waits, const struct vidmm_event *event)
{
	uint32_t fence = (uint32_t)event->arg[0], node = (uint32_t)event->arg[1];

	if (event->reason != 0) {
		waits->is_paging = true;
		waits->paging_fence = fence;
		waits->paging_node = node;
	} else {
		remove_of_context(&waits->accepted, event->process, event->object);
	}
	if (node == RENDER_NODE)
		list_add(&waits->on_gpu, (struct portion){event->process, event->object, fence});
}

static void on_fence(struct waits *waits, const struct vidmm_event *event)
{
	uint32_t fence = (uint32_t)event->arg[0], node = (uint32_t)event->arg[1];

	if (event->object != 0)
		return;
	if (waits->is_paging && node == waits->paging_node &&
	    (int32_t)(fence - waits->paging_fence) >= 0)
		waits->is_paging = false;
	while (node == RENDER_NODE && waits->on_gpu.count &&
	       (int32_t)(fence - waits->on_gpu.at[0].fence) >= 0)
		list_remove(&waits->on_gpu, 0);
}

static void on_wait(struct waits *waits, const struct vidmm_event *event)
{
	struct waits_summary *sum;

	if (event->process == 0)
		return;
	sum = totals_of(waits, event->process);
	if (!sum)
		return;
	switch (event->reason) {
	case VIDMM_WAIT_LOCK:
	case VIDMM_WAIT_FENCE:
		sum->cpu_lock_ns += event->arg[0];
		break;
	case VIDMM_WAIT_SPACE:
	case VIDMM_WAIT_PAGING_BUFFER:
	case VIDMM_WAIT_DMA_BUFFER:
		sum->cpu_queue_ns += event->arg[0];
		break;
	default:
		break;
	}
}

static void on_event(void *opaque, const struct vidmm_event *event, const char *text)
{
	struct waits *waits = opaque;

	(void)text;
	pthread_mutex_lock(&waits->lock);
	count_time(waits, event->time_ns);
	if (event->type == VIDMM_EVENT_SUBMIT)
		list_add(&waits->accepted, (struct portion){event->process, event->object, 0});
	else if (event->type == VIDMM_EVENT_SPLIT)
		on_split(waits, event);
	else if (event->type == VIDMM_EVENT_QUEUE)
		on_queue(waits, event);
	else if (event->type == VIDMM_EVENT_FENCE)
		on_fence(waits, event);
	else if (event->type == VIDMM_EVENT_WAIT)
		on_wait(waits, event);
	pthread_mutex_unlock(&waits->lock);
}

/* ---- */

struct waits *waits_create(struct vidmm_host *host)
{
	struct waits *waits = calloc(1, sizeof(*waits));

	if (!waits)
		return NULL;
	pthread_mutex_init(&waits->lock, NULL);
	waits->host = host;
	waits->now_ns = vidmm_now_ns(host);
	waits->subscription = vidmm_subscribe(
		host,
		(uint64_t)1 << VIDMM_EVENT_SUBMIT | (uint64_t)1 << VIDMM_EVENT_SPLIT |
			(uint64_t)1 << VIDMM_EVENT_QUEUE | (uint64_t)1 << VIDMM_EVENT_FENCE |
			(uint64_t)1 << VIDMM_EVENT_WAIT,
		on_event, waits);
	if (waits->subscription == 0) {
		waits_destroy(waits);
		return NULL;
	}
	return waits;
}

void waits_destroy(struct waits *waits)
{
	if (!waits)
		return;
	if (waits->subscription != 0)
		vidmm_unsubscribe(waits->host, waits->subscription);
	pthread_mutex_destroy(&waits->lock);
	free(waits->accepted.at);
	free(waits->on_gpu.at);
	free(waits->totals);
	free(waits);
}

static uint64_t permille(uint64_t ns, uint64_t recorded_ns)
{
	return recorded_ns ? (uint64_t)((double)ns * 1000 / (double)recorded_ns + 0.5) : 0;
}

void waits_summary(struct waits *waits, uint32_t process, uint64_t recorded_gpu_ns,
		   struct waits_summary *summary)
{
	*summary = (struct waits_summary){.recorded_gpu_ns = recorded_gpu_ns};
	pthread_mutex_lock(&waits->lock);
	for (uint32_t i = 0; i < waits->total_count; i++) {
		const struct waits_summary *sum = &waits->totals[i].sum;

		if (process != 0 && waits->totals[i].process != process)
			continue;
		summary->gpu_busy_ns += sum->gpu_busy_ns;
		summary->gpu_paging_ns += sum->gpu_paging_ns;
		summary->cpu_lock_ns += sum->cpu_lock_ns;
		summary->cpu_queue_ns += sum->cpu_queue_ns;
	}
	pthread_mutex_unlock(&waits->lock);
	summary->slowdown_permille =
		permille(summary->gpu_busy_ns + summary->gpu_paging_ns, recorded_gpu_ns);
}
