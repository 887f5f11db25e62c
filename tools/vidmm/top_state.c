/* SPDX-License-Identifier: MIT */
#include "top_state.h"

#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "thrash.h"

#define SEGMENT_APERTURE 1u /* of DXGK_SEGMENTFLAGS */

/* Events of a recording may begin after what they end. */
static uint64_t less(uint64_t value, uint64_t amount)
{
	return value > amount ? value - amount : 0;
}

/* Makes space for one more row. Returns false when out of memory, or if there are too many. */
static bool grow(struct top_state *s, void **rows, uint32_t *capacity, uint32_t count, size_t size)
{
	if (count >= TOP_ROWS_MAX)
		return false;
	if (grow_array(rows, capacity, count, size))
		return true;
	s->failed = true;
	return false;
}
#define GROW(s, array, count, capacity) \
	grow((s), (void **)&(array), &(capacity), (count), sizeof(*(array)))

/* ---- processes ---- */

/* Returns the index of the first process whose number is not below NUMBER. */
static uint32_t position(const struct top_state *s, uint32_t number)
{
	uint32_t low = 0, high = s->processes;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (s->process[middle].number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct top_process *top_state_process(const struct top_state *s, uint32_t number)
{
	uint32_t at = position(s, number);

	return at < s->processes && s->process[at].number == number ? &s->process[at] : NULL;
}

/* Returns the process, which is added if its opening was not seen. NULL: out of memory. */
static struct top_process *process_of(struct top_state *s, uint32_t number)
{
	uint32_t at = position(s, number);

	if (at < s->processes && s->process[at].number == number)
		return &s->process[at];
	if (!GROW(s, s->process, s->processes, s->processes_capacity))
		return NULL;
	memmove(s->process + at + 1, s->process + at, (s->processes++ - at) * sizeof(*s->process));
	s->process[at] = (struct top_process){.number = number};
	return &s->process[at];
}

/* Keeps the processes that closed last. */
static void drop_closed(struct top_state *s)
{
	struct top_process *oldest = NULL;

	if (s->closed <= TOP_CLOSED_MAX)
		return;
	for (uint32_t i = 0; i < s->processes; i++) {
		struct top_process *process = &s->process[i];

		if (process->closed && (!oldest || process->closed_ns < oldest->closed_ns))
			oldest = process;
	}
	if (!oldest)
		return;
	free(oldest->name);
	s->closed--;
	memmove(oldest, oldest + 1,
		(size_t)(s->process + --s->processes - oldest) * sizeof(*oldest));
}

static void drop_holds(struct top_state *s, uint32_t process, uint32_t context);

static void open_process(struct top_state *s, struct top_process *process, const char *name)
{
	free(process->name);
	process->name = strdup(name ? name : "");
	s->failed = s->failed || !process->name;
	s->closed -= process->closed;
	process->closed = false;
}

static void change_process(struct top_state *s, const struct vidmm_event *event, const char *text)
{
	struct top_process *process = process_of(s, event->process);

	if (!process)
		return;
	if (event->reason != VIDMM_PROCESS_CLOSED) {
		open_process(s, process, text);
		return;
	}
	s->closed += !process->closed;
	process->closed = true;
	process->closed_ns = s->now_ns;
	drop_holds(s, event->process, 0);
	drop_closed(s);
}

/* ---- segments and paging ---- */

/* An adapter that starts again reports its segments again. */
static void add_segment(struct top_state *s, const struct vidmm_event *event)
{
	struct top_segment *segment = &s->segment[event->reason % TOP_SEGMENTS_MAX];
	uint32_t i = 0;

	if (event->reason >= TOP_SEGMENTS_MAX)
		return;
	while (i < segment->adapters && segment->luid[i] != event->arg[3])
		i++;
	if (i == TOP_ADAPTERS_MAX)
		return;
	if (i == segment->adapters)
		segment->adapters++;
	segment->bytes = less(segment->bytes, segment->luid_bytes[i]) + event->arg[0];
	segment->luid[i] = event->arg[3];
	segment->luid_bytes[i] = event->arg[0];
	segment->aperture = (event->arg[2] & SEGMENT_APERTURE) != 0;
}

static bool is_video_memory(const struct top_state *s, uint64_t segment)
{
	return segment != 0 && segment < TOP_SEGMENTS_MAX && !s->segment[segment].aperture;
}

/* Counted as the summary of a replay does (thrash.c). A copy inside a segment is compaction. */
static void count_paging(struct top_state *s, const struct vidmm_event *event)
{
	struct top_process *process;

	if (event->arg[1] == event->arg[2] || !thrash_is_copy(event->reason))
		return;
	process = process_of(s, event->process);
	if (!process)
		return;
	top_rate_add(is_video_memory(s, event->arg[2]) ? &process->in_bytes : &process->out_bytes,
		     s->now_ns, event->arg[0]);
}

static void leave_segment(struct top_state *s, struct top_process *process,
			  const struct vidmm_event *event)
{
	struct top_segment *segment = &s->segment[event->arg[1] % TOP_SEGMENTS_MAX];
	bool video = is_video_memory(s, event->arg[1]);
	uint64_t *bytes = video ? &process->video_bytes : &process->aperture_bytes;

	segment->used_bytes = less(segment->used_bytes, event->arg[0]);
	*bytes = less(*bytes, event->arg[0]);
	if (video && !event->arg[2] && thrash_is_eviction(event->reason))
		top_rate_add(&process->evictions, s->now_ns, 1);
}

static void enter_segment(struct top_state *s, struct top_process *process,
			  const struct vidmm_event *event)
{
	struct top_segment *segment = &s->segment[event->arg[2] % TOP_SEGMENTS_MAX];

	segment->used_bytes += event->arg[0];
	if (segment->used_bytes > segment->peak_bytes)
		segment->peak_bytes = segment->used_bytes;
	if (is_video_memory(s, event->arg[2]))
		process->video_bytes += event->arg[0];
	else
		process->aperture_bytes += event->arg[0];
	if (process->video_bytes + process->aperture_bytes > process->peak_bytes)
		process->peak_bytes = process->video_bytes + process->aperture_bytes;
}

static void move(struct top_state *s, const struct vidmm_event *event)
{
	struct top_process *process = process_of(s, event->process);

	if (!process || event->arg[1] == event->arg[2])
		return;
	if (event->arg[1] && event->arg[1] < TOP_SEGMENTS_MAX)
		leave_segment(s, process, event);
	if (event->arg[2] && event->arg[2] < TOP_SEGMENTS_MAX)
		enter_segment(s, process, event);
}

/* ---- nodes ---- */

static struct top_node *node_of(struct top_state *s, uint64_t number)
{
	struct top_node *node = number < TOP_NODES_MAX ? &s->node[number] : NULL;

	if (node)
		node->known = true;
	return node;
}

static void add_submission(struct top_state *s, const struct vidmm_event *event)
{
	struct top_node *node = node_of(s, event->reason);
	struct top_process *process = process_of(s, event->process);

	if (!node || !process ||
	    !GROW(s, node->submission, node->submissions, node->submissions_capacity))
		return;
	node->submission[node->submissions++] =
		(struct top_submission){event->arg[3], s->now_ns, event->process};
	process->submissions++;
	process->queued++;
}

static void complete_submissions(struct top_state *s, struct top_node *node, uint64_t number)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < node->submissions; i++) {
		struct top_submission *submission = &node->submission[i];
		struct top_process *process;

		if (submission->number > number) {
			node->submission[kept++] = *submission;
			continue;
		}
		process = top_state_process(s, submission->process);
		if (process)
			process->queued = less(process->queued, 1);
	}
	node->submissions = kept;
}

static void add_packet(struct top_state *s, const struct vidmm_event *event)
{
	struct top_node *node = node_of(s, event->arg[1]);

	if (!node || !GROW(s, node->packet, node->packets, node->packets_capacity))
		return;
	if (!node->packets)
		node->busy_since_ns = s->now_ns;
	node->packet[node->packets++] =
		(struct top_packet){event->arg[0], event->process, event->object};
}

/* Is the packet of the queue whose fence the event reports: a node's, or a hardware queue's? */
static bool same_queue(const struct top_packet *packet, const struct vidmm_event *event)
{
	return !event->object ||
	       (packet->object == event->object && packet->process == event->process);
}

static void remove_packets(struct top_state *s, struct top_node *node, uint32_t end,
			   const struct vidmm_event *event)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < node->packets; i++)
		if (i >= end || (event && !same_queue(&node->packet[i], event)))
			node->packet[kept++] = node->packet[i];
	if (node->packets && !kept)
		top_rate_add_span(&node->busy_ns, node->busy_since_ns, s->now_ns);
	top_rate_add(&node->completed, s->now_ns, node->packets - kept);
	node->packets = kept;
}

/* A fence completes its packet and all that were submitted to the queue before it. */
static void complete_packets(struct top_state *s, const struct vidmm_event *event)
{
	struct top_node *node = node_of(s, event->arg[1]);
	uint32_t end = 0;

	if (!node)
		return;
	for (uint32_t i = 0; i < node->packets; i++)
		if (same_queue(&node->packet[i], event) && node->packet[i].fence == event->arg[0])
			end = i + 1;
	remove_packets(s, node, end, event);
	complete_submissions(s, node, event->arg[3]);
}

/* A reset ends the packets of the node, or of all; those to be repeated are submitted again. */
static void recover(struct top_state *s, const struct vidmm_event *event)
{
	struct top_node *node;

	if (event->reason == VIDMM_RECOVERY_ENGINE_RESET &&
	    (node = node_of(s, event->arg[1])) != NULL)
		remove_packets(s, node, node->packets, NULL);
	for (uint32_t i = 0; event->reason == VIDMM_RECOVERY_RESET && i < TOP_NODES_MAX; i++)
		remove_packets(s, &s->node[i], s->node[i].packets, NULL);
}

uint64_t top_state_busy_ns(const struct top_state *s, const struct top_node *node, bool ever)
{
	struct top_rate busy = node->busy_ns;

	if (node->packets)
		top_rate_add_span(&busy, node->busy_since_ns, s->now_ns);
	return ever ? busy.total : top_rate_sum(&busy, s->now_ns);
}

/* ---- waits ---- */

/* Context 0: all contexts of the process. */
static void drop_holds(struct top_state *s, uint32_t process, uint32_t context)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < s->holds; i++)
		if (s->hold[i].process != process || (context && s->hold[i].context != context))
			s->hold[kept++] = s->hold[i];
	s->holds = kept;
}

/* The end of a wait has one event, for its first object. */
static void change_holds(struct top_state *s, const struct vidmm_event *event)
{
	if (event->reason == VIDMM_SYNC_RELEASED || event->reason == VIDMM_SYNC_GIVEN_UP)
		drop_holds(s, event->process, event->object);
	if (event->reason != VIDMM_SYNC_HELD || !GROW(s, s->hold, s->holds, s->holds_capacity))
		return;
	s->hold[s->holds++] = (struct top_hold){.object = event->arg[0],
						.value = event->arg[1],
						.present = event->arg[2],
						.since_ns = s->now_ns,
						.process = event->process,
						.context = event->object};
}

/* Inserts a wait among the longest ones, which are sorted, longest first. */
static void keep_wait(struct top_waits *waits, const struct top_wait *wait)
{
	uint32_t at = waits->count;

	while (at && waits->wait[at - 1].ns < wait->ns)
		at--;
	if (at == TOP_WAITS)
		return;
	waits->count += waits->count < TOP_WAITS;
	memmove(waits->wait + at + 1, waits->wait + at,
		(waits->count - 1 - at) * sizeof(*waits->wait));
	waits->wait[at] = *wait;
}

static void add_wait(struct top_state *s, const struct vidmm_event *event)
{
	uint64_t slot = s->now_ns / TOP_SLOT_NS;
	struct top_waits *recent = &s->recent[slot % TOP_SLOTS];
	struct top_process *process = process_of(s, event->process);
	struct top_wait wait = {.end_ns = s->now_ns,
				.ns = event->arg[0],
				.number = event->arg[2],
				.process = event->process,
				.reason = event->reason,
				.node = (uint16_t)event->arg[1]};

	if (!wait.ns || !process)
		return;
	process->wait_ns += wait.ns;
	if (wait.reason == VIDMM_WAIT_LOCK)
		top_rate_add_span(&process->lock_ns, less(s->now_ns, wait.ns), s->now_ns);
	if (recent->slot != slot)
		*recent = (struct top_waits){.slot = slot};
	keep_wait(recent, &wait);
	keep_wait(&s->longest, &wait);
}

uint32_t top_state_waits(const struct top_state *s, bool ever, struct top_wait *waits)
{
	struct top_waits found = ever ? s->longest : (struct top_waits){0};

	for (uint32_t i = 0; !ever && i < TOP_SLOTS; i++)
		for (uint32_t n = 0; n < s->recent[i].count; n++)
			if (s->recent[i].slot + TOP_SLOTS > s->now_ns / TOP_SLOT_NS)
				keep_wait(&found, &s->recent[i].wait[n]);
	memcpy(waits, found.wait, sizeof(found.wait));
	return found.count;
}

/* ---- the stream ---- */

static void count_allocation(struct top_state *s, const struct vidmm_event *event)
{
	struct top_process *process = process_of(s, event->process);

	if (process && event->type == VIDMM_EVENT_CREATE)
		process->allocations++;
	else if (process)
		process->allocations = less(process->allocations, 1);
}

static void add_memory(struct top_state *s, const struct vidmm_event *event)
{
	switch (event->type) {
	case VIDMM_EVENT_SEGMENT:
		add_segment(s, event);
		break;
	case VIDMM_EVENT_CREATE:
	case VIDMM_EVENT_DESTROY:
		count_allocation(s, event);
		break;
	case VIDMM_EVENT_PAGING:
		count_paging(s, event);
		break;
	case VIDMM_EVENT_RESIDENCY:
		move(s, event);
		break;
	case VIDMM_EVENT_FINDING:
	case VIDMM_EVENT_FATAL:
		s->findings++;
		break;
	case VIDMM_EVENT_REASON:
		s->failures++;
		break;
	default:
		break;
	}
}

void top_state_add(struct top_state *s, const struct vidmm_event *event, const char *text)
{
	if (!s->events++)
		s->begin_ns = s->now_ns = event->time_ns;
	if (event->time_ns > s->now_ns) /* threads may deliver their events in another order */
		s->now_ns = event->time_ns;
	switch (event->type) {
	case VIDMM_EVENT_PROCESS:
		change_process(s, event, text);
		break;
	case VIDMM_EVENT_SUBMIT:
		add_submission(s, event);
		break;
	case VIDMM_EVENT_QUEUE:
		add_packet(s, event);
		break;
	case VIDMM_EVENT_FENCE:
		complete_packets(s, event);
		break;
	case VIDMM_EVENT_RECOVERY:
		recover(s, event);
		break;
	case VIDMM_EVENT_WAIT:
		add_wait(s, event);
		break;
	case VIDMM_EVENT_SYNC:
		change_holds(s, event);
		break;
	default:
		add_memory(s, event);
		break;
	}
}

void top_state_finish(struct top_state *s)
{
	for (uint32_t i = 0; i < s->processes; i++)
		free(s->process[i].name);
	for (uint32_t i = 0; i < TOP_NODES_MAX; i++) {
		free(s->node[i].packet);
		free(s->node[i].submission);
	}
	free(s->process);
	free(s->hold);
	*s = (struct top_state){0};
}
