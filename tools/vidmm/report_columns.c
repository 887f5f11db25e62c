/* SPDX-License-Identifier: MIT */
#include "report_columns.h"

/* Puts the time since the row before. Events may come slightly out of order: time stands still. */
static void put_time(struct column *column, uint64_t *before, uint64_t now)
{
	uint64_t later = now > *before ? now : *before;

	column_put(column, later - *before);
	*before = later;
}

static void put_difference(struct column *column, uint64_t *before, uint64_t now)
{
	column_put_signed(column, (int64_t)(now - *before));
	*before = now;
}

static void fill_allocations(struct report_columns *c, const struct timeline *t)
{
	uint64_t created = 0;

	for (uint32_t i = 0; i < t->allocations.count; i++) {
		const struct timeline_allocation *a = &t->allocations.row[i];
		uint64_t life =
			a->destroyed_ns > a->created_ns ? a->destroyed_ns - a->created_ns : 0;

		column_put(&c->allocation_process, a->process);
		column_put(&c->allocation_handle, a->handle);
		column_put(&c->allocation_bytes, a->bytes);
		column_put(&c->allocation_flags, a->flags);
		put_difference(&c->allocation_created, &created, a->created_ns);
		column_put(&c->allocation_life, a->destroyed ? life + 1 : 0);
		column_put(&c->allocation_in, a->in_bytes);
		column_put(&c->allocation_out, a->out_bytes);
		column_put(&c->allocation_evictions, a->evictions);
	}
}

static void fill_pieces(struct report_columns *c, const struct timeline *t,
			const struct timeline_move *move, uint64_t *end)
{
	for (uint32_t i = 0; i < move->piece_count; i++) {
		const struct timeline_piece *piece = &t->pieces.row[move->first_piece + i];

		column_put(&c->piece_bytes, piece->bytes);
		column_put_signed(&c->piece_offset, (int64_t)(piece->offset - *end));
		*end = piece->offset + piece->bytes;
	}
}

static void fill_moves(struct report_columns *c, const struct timeline *t)
{
	uint64_t time = 0, allocation = 0, end = 0;

	for (uint32_t i = 0; i < t->moves.count; i++) {
		const struct timeline_move *move = &t->moves.row[i];

		put_time(&c->move_time, &time, move->time_ns);
		put_difference(&c->move_allocation, &allocation, move->allocation);
		column_put(&c->move_reason, move->reason);
		column_put(&c->move_segment, move->segment);
		column_put_signed(&c->move_offset,
				  move->segment ? (int64_t)(move->offset - end) : 0);
		column_put(&c->move_pieces, move->piece_count);
		if (move->segment)
			end = move->offset + t->allocations.row[move->allocation].bytes;
		fill_pieces(c, t, move, &end);
	}
}

static void fill_packets(struct report_columns *c, const struct timeline *t)
{
	uint64_t time = 0;

	for (uint32_t i = 0; i < t->packets.count; i++) {
		const struct timeline_packet *p = &t->packets.row[i];

		put_time(&c->packet_time, &time, p->time_ns);
		column_put(&c->packet_ns, p->done ? p->end_ns - p->time_ns + 1 : 0);
		column_put(&c->packet_node, p->node);
		column_put(&c->packet_process, p->process);
	}
}

static void fill_waits(struct report_columns *c, const struct timeline *t)
{
	uint64_t time = 0;

	for (uint32_t i = 0; i < t->waits.count; i++) {
		const struct timeline_wait *wait = &t->waits.row[i];

		put_time(&c->wait_time, &time, wait->end_ns);
		column_put(&c->wait_ns, wait->ns);
		column_put(&c->wait_process, wait->process);
		column_put(&c->wait_reason, wait->reason);
		column_put(&c->wait_allocation, wait->allocation);
	}
}

static void fill_marks(struct report_columns *c, const struct timeline *t)
{
	uint64_t time = 0, allocation = 0;

	for (uint32_t i = 0; i < t->marks.count; i++) {
		const struct timeline_mark *mark = &t->marks.row[i];

		put_time(&c->mark_time, &time, mark->time_ns);
		column_put(&c->mark_type, mark->type);
		put_difference(&c->mark_allocation, &allocation, mark->allocation);
	}
}

void report_columns_fill(struct report_columns *columns, const struct timeline *timeline)
{
	fill_allocations(columns, timeline);
	fill_moves(columns, timeline);
	fill_packets(columns, timeline);
	fill_waits(columns, timeline);
	fill_marks(columns, timeline);
}

void report_columns_finish(struct report_columns *columns)
{
#define COLUMN(name) column_finish(&columns->name);
	REPORT_COLUMNS(COLUMN)
#undef COLUMN
}
