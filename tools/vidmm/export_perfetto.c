/* SPDX-License-Identifier: MIT */
/*
 * A trace of Perfetto (https://perfetto.dev): track events in the order of the tables; readers sort
 * them by time. Slices on one track must not overlap, so what may overlap is spread over lanes. The
 * field numbers are those of Perfetto's published schema (protos/perfetto/trace).
 */
#include <stdlib.h>
#include <string.h>

#include "export.h"
#include "grow.h"
#include "proto.h"

enum trace { TRACE_PACKET = 1 };
enum trace_packet {
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE_ID = 10,
	PACKET_TRACK_EVENT = 11,
	PACKET_TRACK_DESCRIPTOR = 60
};
enum track_descriptor {
	DESCRIPTOR_UUID = 1,
	DESCRIPTOR_NAME = 2,
	DESCRIPTOR_PROCESS = 3,
	DESCRIPTOR_PARENT = 5,
	DESCRIPTOR_COUNTER = 8
};
enum process_descriptor { PROCESS_PID = 1, PROCESS_NAME = 6 };
enum counter_descriptor { COUNTER_UNIT = 3 };
enum counter_unit { UNIT_COUNT = 2, UNIT_BYTES = 3 };
enum track_event {
	EVENT_ANNOTATION = 4,
	EVENT_TYPE = 9,
	EVENT_TRACK = 11,
	EVENT_CATEGORY = 22,
	EVENT_NAME = 23,
	EVENT_COUNTER_VALUE = 30,
	EVENT_FLOW = 47,
	EVENT_LAST_FLOW = 48
};
enum track_event_type { SLICE_BEGIN = 1, SLICE_END = 2, INSTANT = 3, COUNTER = 4 };
enum debug_annotation { ANNOTATION_UINT = 3, ANNOTATION_NAME = 10 };

#define SEQUENCE 1u

/* A track's uuid: what it shows, and a number. */
enum track_kind {
	TRACK_GPU = 1,
	TRACK_NODE,
	TRACK_PROCESS,
	TRACK_WAITS,
	TRACK_CALLS,
	TRACK_ALLOCATIONS,
	TRACK_ALLOCATION,
	TRACK_RESIDENT,
	TRACK_PAGED,
	TRACK_DEPTH
};
#define UUID(kind, number) ((uint64_t)(kind) << 56 | (uint64_t)(number))

struct writer {
	FILE *file;
	const struct export_run *run;
	const struct timeline *t;
	struct proto trace, packet, event, part, inner;
	bool failed;
};

/* ---- packets ---- */

static void end_packet(struct writer *w)
{
	proto_number(&w->packet, PACKET_SEQUENCE_ID, SEQUENCE);
	proto_message(&w->trace, TRACE_PACKET, &w->packet);
	w->failed = w->failed || w->trace.failed || w->event.failed || w->part.failed ||
		    w->inner.failed;
	fwrite(w->trace.bytes, 1, w->trace.count, w->file);
	proto_clear(&w->trace);
}

/* Describes a track. The caller has put the kind of the track into w->part. */
static void end_track(struct writer *w, uint64_t uuid, uint64_t parent, const char *name)
{
	proto_number(&w->part, DESCRIPTOR_UUID, uuid);
	if (parent)
		proto_number(&w->part, DESCRIPTOR_PARENT, parent);
	if (name)
		proto_text(&w->part, DESCRIPTOR_NAME, name);
	proto_message(&w->packet, PACKET_TRACK_DESCRIPTOR, &w->part);
	end_packet(w);
}

static void counter_track(struct writer *w, uint64_t uuid, const char *name, enum counter_unit unit)
{
	proto_number(&w->inner, COUNTER_UNIT, unit);
	proto_message(&w->part, DESCRIPTOR_COUNTER, &w->inner);
	end_track(w, uuid, UUID(TRACK_GPU, 0), name);
}

static void begin_event(struct writer *w, enum track_event_type type, uint64_t track)
{
	proto_number(&w->event, EVENT_TYPE, type);
	proto_number(&w->event, EVENT_TRACK, track);
}

static void annotate(struct writer *w, const char *name, uint64_t value)
{
	proto_text(&w->inner, ANNOTATION_NAME, name);
	proto_number(&w->inner, ANNOTATION_UINT, value);
	proto_message(&w->event, EVENT_ANNOTATION, &w->inner);
}

static void end_event(struct writer *w, uint64_t time_ns)
{
	proto_number(&w->packet, PACKET_TIMESTAMP, time_ns);
	proto_message(&w->packet, PACKET_TRACK_EVENT, &w->event);
	end_packet(w);
}

static void begin_slice(struct writer *w, uint64_t track, const char *category, const char *name)
{
	begin_event(w, SLICE_BEGIN, track);
	proto_text(&w->event, EVENT_CATEGORY, category);
	proto_text(&w->event, EVENT_NAME, name);
}

static void end_slice(struct writer *w, uint64_t track, uint64_t time_ns)
{
	begin_event(w, SLICE_END, track);
	end_event(w, time_ns);
}

static void count(struct writer *w, uint64_t track, uint64_t time_ns, uint64_t value)
{
	begin_event(w, COUNTER, track);
	proto_number(&w->event, EVENT_COUNTER_VALUE, value);
	end_event(w, time_ns);
}

/* ---- engines ---- */

static const char *packet_name(const struct writer *w, const struct timeline_packet *packet,
			       char *text, size_t size)
{
	return packet->process ? timeline_process_name(w->t, packet->process, text, size)
			       : "paging";
}

/* The flow's number is the row of the packet that it begins at, + 1. */
static void write_packets(struct writer *w, const bool *has_flow)
{
	bool known[UINT8_MAX + 1] = {false};
	char name[64];

	for (uint32_t i = 0; i < w->t->packets.count; i++) {
		const struct timeline_packet *packet = &w->t->packets.row[i];
		uint64_t track = UUID(TRACK_NODE, packet->node);

		if (packet->node <= UINT8_MAX && !known[packet->node]) {
			known[packet->node] = true;
			snprintf(name, sizeof(name), "node %u", packet->node);
			end_track(w, track, UUID(TRACK_GPU, 0), name);
		}
		begin_slice(w, track, "gpu", packet_name(w, packet, name, sizeof(name)));
		annotate(w, "fence", packet->fence);
		annotate(w, "submitted_ns", packet->time_ns);
		if (has_flow[i])
			proto_fixed64(&w->event, EVENT_FLOW, i + 1);
		end_event(w, packet->begin_ns);
		end_slice(w, track, packet->end_ns);
	}
}

/* Returns the number of fences until a time. They are in the order of time. */
static uint32_t fences_until(const struct timeline *t, uint64_t time_ns)
{
	uint32_t low = 0, high = t->fences.count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (t->fences.row[middle].time_ns <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Returns the first fence of the node that says that the submission is complete; NULL: none. */
static const struct timeline_fence *fence_of_wait(const struct timeline *t,
						  const struct timeline_wait *wait)
{
	const struct timeline_fence *first = NULL;

	for (uint32_t i = fences_until(t, wait->end_ns); i-- > 0;) {
		const struct timeline_fence *fence = &t->fences.row[i];

		if (fence->node != wait->node)
			continue;
		if (fence->number < wait->number)
			break;
		first = fence;
	}
	return first;
}

/* Returns the packet whose fence ended a wait. UINT32_MAX: none. */
static uint32_t packet_of_wait(const struct timeline *t, const struct timeline_wait *wait)
{
	const struct timeline_fence *fence =
		wait->number && wait->ns ? fence_of_wait(t, wait) : NULL;
	uint32_t low = 0, high = t->packets.count;

	/* The packets that were submitted until then; its own is among the last. */
	while (fence && low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (t->packets.row[middle].time_ns <= fence->time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	while (fence && low-- > 0)
		if (t->packets.row[low].node == fence->node &&
		    t->packets.row[low].fence == fence->fence)
			return low;
	return UINT32_MAX;
}

/* ---- lanes ---- */

/* Slices that may overlap: each goes to the first lane that is free when it begins. */
struct lane_slice {
	uint64_t begin_ns, end_ns;
	uint32_t row, process;
};

static int by_process_and_begin(const void *a, const void *b)
{
	const struct lane_slice *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	return (x->row > y->row) - (x->row < y->row);
}

struct lanes {
	uint64_t *free_ns; /* when each lane of the process is free */
	uint32_t count, capacity, process;
};

/* Returns the track of the slice, which is described when it is new. */
static uint64_t lane_of(struct writer *w, struct lanes *lanes, const struct lane_slice *slice,
			enum track_kind kind, const char *title)
{
	uint64_t parent = UUID(TRACK_PROCESS, slice->process), base;
	uint32_t lane = 0;

	if (lanes->process != slice->process)
		lanes->count = 0;
	lanes->process = slice->process;
	base = UUID(kind, (uint64_t)slice->process << 20);
	while (lane < lanes->count && lanes->free_ns[lane] > slice->begin_ns)
		lane++;
	if (lane == lanes->count) {
		if (!grow_array((void **)&lanes->free_ns, &lanes->capacity, lanes->count,
				sizeof(uint64_t))) {
			w->failed = true;
			return base;
		}
		lanes->count++;
		end_track(w, base | lane, parent, title);
	}
	lanes->free_ns[lane] = slice->end_ns;
	return base | lane;
}

static struct lane_slice *slices_of_waits(const struct timeline *t, uint32_t *number)
{
	struct lane_slice *slices = malloc((t->waits.count + 1) * sizeof(*slices));

	*number = 0;
	for (uint32_t i = 0; slices && i < t->waits.count; i++) {
		const struct timeline_wait *wait = &t->waits.row[i];

		if (wait->ns)
			slices[(*number)++] = (struct lane_slice){
				wait->end_ns - (wait->ns < wait->end_ns ? wait->ns : wait->end_ns),
				wait->end_ns, i, wait->process};
	}
	return slices;
}

static struct lane_slice *slices_of_calls(const struct timeline *t, uint32_t *number)
{
	struct lane_slice *slices = malloc((t->calls.count + 1) * sizeof(*slices));

	*number = t->calls.count;
	for (uint32_t i = 0; slices && i < t->calls.count; i++) {
		const struct timeline_call *call = &t->calls.row[i];

		slices[i] = (struct lane_slice){
			call->end_ns - (call->ns < call->end_ns ? call->ns : call->end_ns),
			call->end_ns, i, call->process};
	}
	return slices;
}

static void write_waits(struct writer *w, const uint32_t *packet_of)
{
	uint32_t number;
	struct lane_slice *slices = slices_of_waits(w->t, &number);
	struct lanes lanes = {.process = UINT32_MAX};

	w->failed = w->failed || !slices;
	if (slices)
		qsort(slices, number, sizeof(*slices), by_process_and_begin);
	for (uint32_t i = 0; slices && i < number; i++) {
		const struct timeline_wait *wait = &w->t->waits.row[slices[i].row];
		uint64_t track = lane_of(w, &lanes, &slices[i], TRACK_WAITS, "waits");

		begin_slice(w, track, "wait",
			    export_reason(w->run, VIDMM_EVENT_WAIT, wait->reason));
		if (wait->allocation)
			annotate(w, "allocation",
				 w->t->allocations.row[wait->allocation - 1].handle);
		if (packet_of[slices[i].row] != UINT32_MAX)
			proto_fixed64(&w->event, EVENT_LAST_FLOW,
				      (uint64_t)packet_of[slices[i].row] + 1);
		end_event(w, slices[i].begin_ns);
		end_slice(w, track, slices[i].end_ns);
	}
	free(slices);
	free(lanes.free_ns);
}

static void write_calls(struct writer *w)
{
	uint32_t number;
	struct lane_slice *slices = slices_of_calls(w->t, &number);
	struct lanes lanes = {.process = UINT32_MAX};

	w->failed = w->failed || !slices;
	if (slices)
		qsort(slices, number, sizeof(*slices), by_process_and_begin);
	for (uint32_t i = 0; slices && i < number; i++) {
		const struct timeline_call *call = &w->t->calls.row[slices[i].row];
		uint64_t track = lane_of(w, &lanes, &slices[i], TRACK_CALLS, "calls");

		begin_slice(w, track, "call", export_reason(w->run, VIDMM_EVENT_DOOR, call->door));
		annotate(w, "object", call->object);
		annotate(w, "status", call->status);
		end_event(w, slices[i].begin_ns);
		end_slice(w, track, slices[i].end_ns);
	}
	free(slices);
	free(lanes.free_ns);
}

/* ---- allocations ---- */

static void allocation_track(struct writer *w, uint32_t row)
{
	const struct timeline_allocation *a = &w->t->allocations.row[row];
	char name[64];

	snprintf(name, sizeof(name), "0x%08x, %llu bytes", (unsigned)a->handle,
		 (unsigned long long)a->bytes);
	end_track(w, UUID(TRACK_ALLOCATION, row), UUID(TRACK_ALLOCATIONS, a->process), name);
}

/* A slice for each placement in a segment, with the reason of the move that began it. */
static void write_moves(struct writer *w)
{
	uint16_t *in = calloc(w->t->allocations.count + 1, sizeof(*in));
	bool *described = calloc(w->t->allocations.count + 1, sizeof(*described));

	w->failed = w->failed || !in || !described;
	for (uint32_t i = 0; in && described && i < w->t->moves.count; i++) {
		const struct timeline_move *move = &w->t->moves.row[i];
		uint64_t track = UUID(TRACK_ALLOCATION, move->allocation);
		char name[32];

		if (!described[move->allocation])
			allocation_track(w, move->allocation);
		described[move->allocation] = true;
		if (in[move->allocation])
			end_slice(w, track, move->time_ns);
		in[move->allocation] = move->segment;
		if (!move->segment)
			continue;
		snprintf(name, sizeof(name), "segment %u", move->segment);
		begin_slice(w, track, export_reason(w->run, VIDMM_EVENT_RESIDENCY, move->reason),
			    name);
		annotate(w, "offset", move->offset);
		end_event(w, move->time_ns);
	}
	for (uint32_t a = 0; in && a < w->t->allocations.count; a++)
		if (in[a])
			end_slice(w, UUID(TRACK_ALLOCATION, a), w->t->end_ns);
	free(in);
	free(described);
}

/* ---- counters ---- */

static void write_residency(struct writer *w)
{
	uint64_t resident[TIMELINE_SEGMENTS_MAX] = {0};
	char name[64];

	for (unsigned i = 1; i < TIMELINE_SEGMENTS_MAX; i++)
		if (w->t->segment[i].known) {
			snprintf(name, sizeof(name), "resident in segment %u", i);
			counter_track(w, UUID(TRACK_RESIDENT, i), name, UNIT_BYTES);
			count(w, UUID(TRACK_RESIDENT, i), w->t->begin_ns, 0);
		}
	for (uint32_t i = 0; i < w->t->moves.count; i++) {
		const struct timeline_move *move = &w->t->moves.row[i];
		uint64_t bytes = w->t->allocations.row[move->allocation].bytes;

		if (move->from == move->segment || move->from >= TIMELINE_SEGMENTS_MAX ||
		    move->segment >= TIMELINE_SEGMENTS_MAX)
			continue;
		if (move->from) {
			resident[move->from] -= bytes;
			count(w, UUID(TRACK_RESIDENT, move->from), move->time_ns,
			      resident[move->from]);
		}
		if (move->segment) {
			resident[move->segment] += bytes;
			count(w, UUID(TRACK_RESIDENT, move->segment), move->time_ns,
			      resident[move->segment]);
		}
	}
}

struct step {
	uint64_t time_ns;
	int change;
};

static int by_time(const void *a, const void *b)
{
	const struct step *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->change - y->change;
}

static void write_depth(struct writer *w)
{
	uint32_t number = 2 * w->t->packets.count;
	struct step *steps = malloc((number + 1) * sizeof(*steps));
	int depth = 0;

	w->failed = w->failed || !steps;
	if (!steps)
		return;
	for (uint32_t i = 0; i < w->t->packets.count; i++) {
		steps[2 * i] = (struct step){w->t->packets.row[i].time_ns, 1};
		steps[2 * i + 1] = (struct step){w->t->packets.row[i].end_ns, -1};
	}
	qsort(steps, number, sizeof(*steps), by_time);
	counter_track(w, UUID(TRACK_DEPTH, 0), "packets in flight", UNIT_COUNT);
	for (uint32_t i = 0; i < number; i++) {
		depth += steps[i].change;
		count(w, UUID(TRACK_DEPTH, 0), steps[i].time_ns, (uint64_t)(depth > 0 ? depth : 0));
	}
	free(steps);
}

/* ---- the trace ---- */

static void write_processes(struct writer *w)
{
	char text[64];

	end_track(w, UUID(TRACK_GPU, 0), 0, "GPU");
	end_track(w, UUID(TRACK_PROCESS, 0), 0, "the system");
	for (uint32_t i = 0; i < w->t->processes.count; i++) {
		proto_number(&w->inner, PROCESS_PID, w->t->processes.row[i].number);
		proto_text(&w->inner, PROCESS_NAME,
			   timeline_process_name(w->t, i + 1, text, sizeof(text)));
		proto_message(&w->part, DESCRIPTOR_PROCESS, &w->inner);
		end_track(w, UUID(TRACK_PROCESS, i + 1), 0, NULL);
		end_track(w, UUID(TRACK_ALLOCATIONS, i), UUID(TRACK_PROCESS, i + 1), "allocations");
	}
}

bool export_perfetto(FILE *file, const struct export_run *run)
{
	struct writer w = {.file = file, .run = run, .t = &run->timeline};
	uint32_t *packet_of = malloc((w.t->waits.count + 1) * sizeof(*packet_of));
	bool *has_flow = calloc(w.t->packets.count + 1, sizeof(*has_flow));

	w.failed = !packet_of || !has_flow;
	for (uint32_t i = 0; !w.failed && i < w.t->waits.count; i++) {
		packet_of[i] = packet_of_wait(w.t, &w.t->waits.row[i]);
		if (packet_of[i] != UINT32_MAX)
			has_flow[packet_of[i]] = true;
	}
	if (!w.failed) {
		write_processes(&w);
		write_packets(&w, has_flow);
		write_waits(&w, packet_of);
		write_calls(&w);
		write_moves(&w);
		write_residency(&w);
		write_depth(&w);
	}
	free(packet_of);
	free(has_flow);
	proto_finish(&w.trace);
	proto_finish(&w.packet);
	proto_finish(&w.event);
	proto_finish(&w.part);
	proto_finish(&w.inner);
	return !w.failed;
}
