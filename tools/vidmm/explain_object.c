/* SPDX-License-Identifier: MIT */
/*
 * A change of placement is printed one step later: the event that names what needed the space, and
 * those of the extents, follow it.
 */
#include "explain_object.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "status_names.h"
#include "units.h"

enum { TEXT = 64, SEGMENTS = 32, PENDING_EVENTS = 64 };

struct explain_object {
	FILE *out;
	bool by_address;
	uint64_t address;
	uint32_t handle, process;
	/* Segments of the address: base and bytes; bytes 0: unknown. */
	struct {
		uint64_t base, bytes;
	} segment[SEGMENTS];
	struct logged_event pending;     /* number 0: none */
	unsigned pending_for;            /* events since then */
	bool in_extents;                 /* the pending placement has extents */
	uint32_t holder, holder_process; /* of the address; 0: none */
	uint64_t shown, locks, flushes, submissions;
};

static struct explain_object *create(FILE *out)
{
	struct explain_object *o = calloc(1, sizeof(*o));

	if (o)
		o->out = out;
	return o;
}

struct explain_object *explain_object_handle(FILE *out, uint32_t handle, uint32_t process)
{
	struct explain_object *o = create(out);

	if (!o)
		return NULL;
	o->handle = handle;
	o->process = process;
	return o;
}

struct explain_object *explain_object_address(FILE *out, uint64_t address)
{
	struct explain_object *o = create(out);

	if (!o)
		return NULL;
	o->by_address = true;
	o->address = address;
	return o;
}

static void begin_line(struct explain_object *o, const struct logged_event *event)
{
	char at[TEXT];

	o->shown++;
	fprintf(o->out, "%10s  event %" PRIu64 "  ", units_time(event->time_ns, at, sizeof(at)),
		event->number);
	if (event->process)
		fprintf(o->out, "process %" PRIu32 ": ", event->process);
}

static const char *place(uint64_t segment, char *text)
{
	if (!segment)
		return "system memory";
	snprintf(text, TEXT, "segment %" PRIu64, segment);
	return text;
}

static const char *bytes_of(const struct logged_event *event, char *text)
{
	return units_bytes(logged_value(event, "bytes"), text, TEXT);
}

/* ---- placements ---- */

static void print_placement(struct explain_object *o, const struct logged_event *event,
			    const struct logged_event *victim)
{
	uint64_t from = logged_value(event, "from"), to = logged_value(event, "to");
	char size[TEXT], old[TEXT], new[TEXT];

	begin_line(o, event);
	fprintf(o->out, "%s from %s to %s", bytes_of(event, size), place(from, old),
		place(to, new));
	if (to)
		fprintf(o->out, ", offset 0x%" PRIx64 "%s", logged_value(event, "offset"),
			o->in_extents ? " and others" : "");
	fprintf(o->out, ": %s", event->reason);
	if (victim) {
		uint32_t other = (uint32_t)logged_value(victim, "for");

		fprintf(o->out, ": %s", bytes_of(victim, size));
		if (other)
			fprintf(o->out, " were needed for 0x%08" PRIx32 " of process %" PRIu64,
				other, logged_value(victim, "of"));
		else
			fputs(" were needed for page tables or buffers", o->out);
		fprintf(o->out, "; one of %" PRIu64 " in the segment (%s)",
			logged_value(victim, "residents"), victim->reason);
	}
	fputc('\n', o->out);
}

static bool covers(const struct explain_object *o, uint64_t segment, uint64_t offset,
		   uint64_t bytes)
{
	uint64_t begin = segment < SEGMENTS ? o->segment[segment].base + offset : 0;

	return segment && segment < SEGMENTS && o->segment[segment].bytes && o->address >= begin &&
	       o->address - begin < bytes;
}

static void print_holder(struct explain_object *o, const struct logged_event *event, bool holds)
{
	char size[TEXT], old[TEXT], new[TEXT];

	if (holds) {
		begin_line(o, event);
		fprintf(o->out, "0x%08" PRIx32 " (%s) is placed here, from %s: %s\n", event->object,
			bytes_of(event, size), place(logged_value(event, "from"), old),
			event->reason);
		o->holder = event->object;
		o->holder_process = event->process;
	} else if (event->object == o->holder && event->process == o->holder_process) {
		begin_line(o, event);
		fprintf(o->out, "0x%08" PRIx32 " leaves for %s: %s\n", event->object,
			place(logged_value(event, "to"), new), event->reason);
		o->holder = 0;
	}
}

/* Prints the change of placement that waits, and what made room necessary, if VICTIM says so. */
static void flush(struct explain_object *o, const struct logged_event *victim)
{
	const struct logged_event event = o->pending;

	if (!event.number)
		return;
	o->pending.number = 0;
	if (!o->by_address)
		print_placement(o, &event, victim);
	else if (!o->in_extents)
		print_holder(o, &event,
			     covers(o, logged_value(&event, "to"), logged_value(&event, "offset"),
				    logged_value(&event, "bytes")));
}

static bool is_of_pending(const struct explain_object *o, const struct logged_event *event)
{
	return o->pending.number && event->object == o->pending.object &&
	       event->process == o->pending.process;
}

static void hold(struct explain_object *o, const struct logged_event *event)
{
	flush(o, NULL);
	o->pending = *event;
	o->pending_for = 0;
	o->in_extents = false;
}

static void add_extent(struct explain_object *o, const struct logged_event *extent)
{
	const struct logged_event event = o->pending;

	if (!o->in_extents && o->by_address) /* what it leaves */
		print_holder(o, &event, false);
	o->in_extents = true;
	if (o->by_address && covers(o, logged_value(extent, "segment"),
				    logged_value(extent, "offset"), logged_value(extent, "bytes")))
		print_holder(o, &event, true);
}

/* ---- a handle ---- */

static void print_door(struct explain_object *o, const struct logged_event *event)
{
	uint32_t status = (uint32_t)logged_value(event, "status");
	const char *name = status_name(status);

	if (status >> 30 != 3)
		return;
	begin_line(o, event);
	fprintf(o->out, "%s failed with %s\n", event->reason, name ? name : "another status");
}

static void print_rename(struct explain_object *o, const struct logged_event *event)
{
	uint32_t old = (uint32_t)logged_value(event, "old");

	begin_line(o, event);
	if (event->object == o->handle)
		fprintf(o->out, "becomes the current instance, after 0x%08" PRIx32 " (%s)\n", old,
			event->reason);
	else
		fprintf(o->out, "a lock with Discard renames it to 0x%08" PRIx32 "\n",
			event->object);
}

static void print_victim_of(struct explain_object *o, const struct logged_event *event)
{
	char size[TEXT];

	begin_line(o, event);
	fprintf(o->out, "0x%08" PRIx32 " is evicted for it, which needs %s (%s)\n", event->object,
		bytes_of(event, size), event->reason);
}

/* Events that change what the handle is; frequent ones are counted only. */
static void print_own(struct explain_object *o, const struct logged_event *event)
{
	char size[TEXT];

	if (logged_is(event, "lock", NULL)) {
		o->locks++;
	} else if (logged_is(event, "flush", NULL)) {
		o->flushes++;
	} else if (logged_is(event, "submit", NULL)) {
		o->submissions++;
	} else if (logged_is(event, "door", NULL)) {
		print_door(o, event);
	} else if (logged_is(event, "create", NULL)) {
		begin_line(o, event);
		fprintf(o->out, "created: %s, segments 0x%" PRIx64 ", flags 0x%" PRIx64 "\n",
			bytes_of(event, size), logged_value(event, "segments"),
			logged_value(event, "flags"));
	} else if (logged_is(event, "destroy", NULL) || logged_is(event, "offer", NULL) ||
		   logged_is(event, "discard", NULL) || logged_is(event, "reclaim", NULL)) {
		begin_line(o, event);
		fprintf(o->out, "%s (%s)%s\n", event->type, bytes_of(event, size),
			logged_value(event, "discarded") == 1 ? ", its content was discarded" : "");
	} else if (logged_is(event, "recovery", NULL) || logged_is(event, "range", NULL) ||
		   logged_is(event, "sync", NULL) || logged_is(event, "display", NULL)) {
		begin_line(o, event);
		fprintf(o->out, "%s: %s\n", event->type, event->reason);
	} else if (event->text) {
		begin_line(o, event);
		fprintf(o->out, "%s: %s\n", event->type, event->text);
	}
}

static void add_to_handle(struct explain_object *o, const struct logged_event *event)
{
	bool own = event->object == o->handle && (!o->process || event->process == o->process);

	if (logged_is(event, "victim", NULL)) {
		uint64_t of = logged_value(event, "of");

		if (is_of_pending(o, event))
			flush(o, event);
		if (logged_value(event, "for") == o->handle && (!o->process || of == o->process))
			print_victim_of(o, event);
	} else if (logged_is(event, "extent", NULL)) {
		if (is_of_pending(o, event))
			add_extent(o, event);
	} else if (own && logged_is(event, "residency", NULL)) {
		hold(o, event);
	} else if (logged_is(event, "rename", NULL)) {
		bool old = logged_value(event, "old") == o->handle;

		if (own || (old && (!o->process || event->process == o->process)))
			print_rename(o, event);
	} else if (own && !logged_is(event, "paging", NULL) && !logged_is(event, "unlock", NULL) &&
		   !logged_is(event, "queue", NULL) && !logged_is(event, "wait", NULL)) {
		if (!logged_is(event, "lock", NULL) && !logged_is(event, "door", NULL))
			flush(o, NULL);
		print_own(o, event);
	}
}

static void add_to_address(struct explain_object *o, const struct logged_event *event)
{
	if (logged_is(event, "segment", NULL)) {
		unsigned long number = strtoul(event->reason, NULL, 10);

		if (number < SEGMENTS) {
			o->segment[number].base = logged_value(event, "base");
			o->segment[number].bytes = logged_value(event, "bytes");
		}
	} else if (logged_is(event, "extent", NULL)) {
		if (is_of_pending(o, event))
			add_extent(o, event);
	} else if (logged_is(event, "residency", NULL)) {
		hold(o, event);
	} else {
		flush(o, NULL);
	}
}

void explain_object_add(struct explain_object *o, const struct logged_event *event)
{
	if (o->by_address)
		add_to_address(o, event);
	else
		add_to_handle(o, event);
	if (o->pending.number && ++o->pending_for > PENDING_EVENTS)
		flush(o, NULL);
}

static void print_sum(struct explain_object *o, uint64_t count, const char *what)
{
	char text[TEXT];

	if (!count)
		return;
	fprintf(o->out, "%s %s\n", units_count(count, text, sizeof(text)), what);
	o->shown++;
}

uint64_t explain_object_finish(struct explain_object *o)
{
	uint64_t shown;

	if (!o)
		return 0;
	flush(o, NULL);
	print_sum(o, o->locks, "locks");
	print_sum(o, o->flushes, "flushes of CPU caches");
	print_sum(o, o->submissions, "submissions");
	shown = o->shown;
	free(o);
	return shown;
}
