/* SPDX-License-Identifier: MIT */
#include "export.h"

static struct export_value number(uint64_t value)
{
	return (struct export_value){EXPORT_NUMBER, value, NULL};
}

static struct export_value text(const char *value)
{
	return (struct export_value){value ? EXPORT_TEXT : EXPORT_NONE, 0, value};
}

/* A row of a table that begins with 1; 0 is none. */
static struct export_value reference(uint32_t row)
{
	return row ? number(row) : (struct export_value){EXPORT_NONE, 0, NULL};
}

static bool segments(struct export_sink *sink, const struct export_run *run)
{
	static const char *const columns[] = {"id INTEGER PRIMARY KEY", "bytes INTEGER",
					      "base INTEGER", "flags INTEGER", NULL};
	bool good = sink->table(sink, "segments", columns);

	for (unsigned i = 0; i < TIMELINE_SEGMENTS_MAX && good; i++) {
		const struct timeline_segment *s = &run->timeline.segment[i];
		const struct export_value row[] = {number(i), number(s->bytes), number(s->base),
						   number(s->flags)};

		good = !s->known || sink->row(sink, row);
	}
	return good;
}

static bool processes(struct export_sink *sink, const struct export_run *run)
{
	static const char *const columns[] = {"id INTEGER PRIMARY KEY", "number INTEGER",
					      "name TEXT", NULL};
	bool good = sink->table(sink, "processes", columns);

	for (uint32_t i = 0; i < run->timeline.processes.count && good; i++) {
		const struct timeline_process *p = &run->timeline.processes.row[i];
		const struct export_value row[] = {number(i + 1), number(p->number), text(p->name)};

		good = sink->row(sink, row);
	}
	return good;
}

static bool allocations(struct export_sink *sink, const struct export_run *run)
{
	static const char *const columns[] = {"id INTEGER PRIMARY KEY",
					      "process INTEGER REFERENCES processes(id)",
					      "handle INTEGER",
					      "bytes INTEGER",
					      "flags INTEGER",
					      "created_ns INTEGER",
					      "destroyed_ns INTEGER",
					      "paged_in_bytes INTEGER",
					      "paged_out_bytes INTEGER",
					      "evictions INTEGER",
					      NULL};
	bool good = sink->table(sink, "allocations", columns);

	for (uint32_t i = 0; i < run->timeline.allocations.count && good; i++) {
		const struct timeline_allocation *a = &run->timeline.allocations.row[i];
		struct export_value row[] = {number(i + 1),           number(a->process + 1),
					     number(a->handle),       number(a->bytes),
					     number(a->flags),        number(a->created_ns),
					     number(a->destroyed_ns), number(a->in_bytes),
					     number(a->out_bytes),    number(a->evictions)};

		if (!a->destroyed)
			row[6] = text(NULL);
		good = sink->row(sink, row);
	}
	return good;
}

static bool moves(struct export_sink *sink, const struct export_run *run)
{
	static const char *const columns[] = {"id INTEGER PRIMARY KEY",
					      "time_ns INTEGER",
					      "allocation INTEGER REFERENCES allocations(id)",
					      "reason TEXT",
					      "from_segment INTEGER",
					      "to_segment INTEGER",
					      "offset INTEGER",
					      "pieces INTEGER",
					      NULL};
	bool good = sink->table(sink, "moves", columns);

	for (uint32_t i = 0; i < run->timeline.moves.count && good; i++) {
		const struct timeline_move *m = &run->timeline.moves.row[i];
		struct export_value row[] = {
			number(i + 1),
			number(m->time_ns),
			number(m->allocation + 1),
			text(export_reason(run, VIDMM_EVENT_RESIDENCY, m->reason)),
			number(m->from),
			number(m->segment),
			number(m->offset),
			number(m->piece_count)};

		if (!m->segment)
			row[6] = text(NULL);
		good = sink->row(sink, row);
	}
	return good;
}

static bool pieces(struct export_sink *sink, const struct export_run *run)
{
	static const char *const columns[] = {"move INTEGER REFERENCES moves(id)", "bytes INTEGER",
					      "offset INTEGER", NULL};
	const struct timeline *t = &run->timeline;
	bool good = sink->table(sink, "pieces", columns);

	for (uint32_t i = 0; i < t->moves.count && good; i++)
		for (uint32_t k = 0; k < t->moves.row[i].piece_count && good; k++) {
			const struct timeline_piece *p =
				&t->pieces.row[t->moves.row[i].first_piece + k];
			const struct export_value row[] = {number(i + 1), number(p->bytes),
							   number(p->offset)};

			good = sink->row(sink, row);
		}
	return good;
}

static bool packets(struct export_sink *sink, const struct export_run *run)
{
	static const char *const columns[] = {"id INTEGER PRIMARY KEY",
					      "submitted_ns INTEGER",
					      "begin_ns INTEGER",
					      "end_ns INTEGER",
					      "node INTEGER",
					      "process INTEGER REFERENCES processes(id)",
					      "object INTEGER",
					      "fence INTEGER",
					      NULL};
	bool good = sink->table(sink, "packets", columns);

	for (uint32_t i = 0; i < run->timeline.packets.count && good; i++) {
		const struct timeline_packet *p = &run->timeline.packets.row[i];
		struct export_value row[] = {number(i + 1),        number(p->time_ns),
					     number(p->begin_ns),  number(p->end_ns),
					     number(p->node),      reference(p->process),
					     reference(p->object), number(p->fence)};

		if (!p->done)
			row[3] = text(NULL);
		good = sink->row(sink, row);
	}
	return good;
}

static bool waits(struct export_sink *sink, const struct export_run *run)
{
	static const char *const columns[] = {"end_ns INTEGER",
					      "ns INTEGER",
					      "reason TEXT",
					      "process INTEGER REFERENCES processes(id)",
					      "allocation INTEGER REFERENCES allocations(id)",
					      "node INTEGER",
					      "submission INTEGER",
					      NULL};
	bool good = sink->table(sink, "waits", columns);

	for (uint32_t i = 0; i < run->timeline.waits.count && good; i++) {
		const struct timeline_wait *w = &run->timeline.waits.row[i];
		struct export_value row[] = {number(w->end_ns),
					     number(w->ns),
					     text(export_reason(run, VIDMM_EVENT_WAIT, w->reason)),
					     reference(w->process),
					     reference(w->allocation),
					     number(w->node),
					     number(w->number)};

		if (!w->number)
			row[5] = row[6] = text(NULL);
		good = sink->row(sink, row);
	}
	return good;
}

static bool calls(struct export_sink *sink, const struct export_run *run)
{
	static const char *const columns[] = {"end_ns INTEGER",
					      "ns INTEGER",
					      "call TEXT",
					      "process INTEGER REFERENCES processes(id)",
					      "object INTEGER",
					      "status INTEGER",
					      NULL};
	bool good = sink->table(sink, "calls", columns);

	for (uint32_t i = 0; i < run->timeline.calls.count && good; i++) {
		const struct timeline_call *c = &run->timeline.calls.row[i];
		const struct export_value row[] = {
			number(c->end_ns),
			number(c->ns),
			text(export_reason(run, VIDMM_EVENT_DOOR, c->door)),
			reference(c->process),
			reference(c->object),
			number(c->status)};

		good = sink->row(sink, row);
	}
	return good;
}

static bool marks(struct export_sink *sink, const struct export_run *run)
{
	static const char *const columns[] = {"time_ns INTEGER", "type TEXT",
					      "allocation INTEGER REFERENCES allocations(id)",
					      NULL};
	bool good = sink->table(sink, "marks", columns);

	for (uint32_t i = 0; i < run->timeline.marks.count && good; i++) {
		const struct timeline_mark *m = &run->timeline.marks.row[i];
		const struct export_value row[] = {number(m->time_ns),
						   text(export_type(run, m->type)),
						   number(m->allocation + 1)};

		good = sink->row(sink, row);
	}
	return good;
}

static bool messages(struct export_sink *sink, const struct export_run *run)
{
	static const char *const columns[] = {"first_ns INTEGER", "times INTEGER", "type TEXT",
					      "text TEXT", NULL};
	bool good = sink->table(sink, "messages", columns);

	for (uint32_t i = 0; i < run->timeline.messages.count && good; i++) {
		const struct timeline_message *m = &run->timeline.messages.row[i];
		const struct export_value row[] = {number(m->first_ns), number(m->count),
						   text(export_type(run, m->type)), text(m->text)};

		good = sink->row(sink, row);
	}
	return good;
}

bool export_tables(struct export_sink *sink, const struct export_run *run)
{
	return segments(sink, run) && processes(sink, run) && allocations(sink, run) &&
	       moves(sink, run) && pieces(sink, run) && packets(sink, run) && waits(sink, run) &&
	       calls(sink, run) && marks(sink, run) && messages(sink, run);
}

/* ---- all events ---- */

bool export_events_table(struct export_sink *sink)
{
	static const char *const columns[] = {"sequence INTEGER PRIMARY KEY",
					      "time_ns INTEGER",
					      "type TEXT",
					      "reason TEXT",
					      "process INTEGER",
					      "object INTEGER",
					      "a INTEGER",
					      "b INTEGER",
					      "c INTEGER",
					      "d INTEGER",
					      "text TEXT",
					      NULL};

	return sink->table(sink, "events", columns);
}

bool export_event(struct export_sink *sink, const struct export_run *run,
		  const struct vidmm_event *event, const char *event_text)
{
	char reason_number[16];
	const char *reason = export_reason(run, event->type, event->reason);

	if (!reason[0] && event->reason) {
		snprintf(reason_number, sizeof(reason_number), "%u", event->reason);
		reason = reason_number;
	}
	const struct export_value row[] = {number(event->sequence),
					   number(event->time_ns),
					   text(export_type(run, event->type)),
					   text(reason[0] ? reason : NULL),
					   number(event->process),
					   reference(event->object),
					   number(event->arg[0]),
					   number(event->arg[1]),
					   number(event->arg[2]),
					   number(event->arg[3]),
					   text(event_text)};

	return sink->row(sink, row);
}
