/* SPDX-License-Identifier: MIT */
#include "explain_paging.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "handle_map.h"
#include "units.h"

enum { TEXT = 32, NAMED = 3, EVICTIONS = 64, EVICTIONS_SHOWN = 5 };

enum direction { PAGED_IN, PAGED_OUT, DIRECTIONS };

/* An allocation, and what was copied from system memory to segments (in) and back (out). */
struct paged {
	uint32_t process, handle;
	uint64_t bytes[DIRECTIONS];
};

/* Allocations of one process that were evicted from one segment for one allocation. */
struct eviction {
	uint32_t process, cause, cause_process; /* cause 0: page tables or buffers */
	uint64_t segment, needed, count, bytes;
	uint32_t named[NAMED]; /* the first ones */
	char reason[LOGGED_REASON_CHARS];
};

struct explain_paging {
	uint32_t process;
	struct paged *paged;
	uint32_t paged_count, paged_capacity;
	struct handle_map row_of;
	/* The last change of placement: VIDMM_EVENT_VICTIM follows the one of its allocation. */
	struct logged_event moved;
	struct eviction evictions[EVICTIONS];
	unsigned eviction_count;
	uint64_t left_out; /* evictions that are in no row */
};

struct explain_paging *explain_paging_create(uint32_t process)
{
	struct explain_paging *p = calloc(1, sizeof(*p));

	if (p)
		p->process = process;
	return p;
}

void explain_paging_destroy(struct explain_paging *p)
{
	if (!p)
		return;
	handle_map_finish(&p->row_of);
	free(p->paged);
	free(p);
}

/* ---- events ---- */

static struct paged *paged_of(struct explain_paging *p, const struct logged_event *event)
{
	uint32_t row;

	if (handle_map_find(&p->row_of, event->process, event->object, &row))
		return &p->paged[row];
	if (!grow_array((void **)&p->paged, &p->paged_capacity, p->paged_count,
			sizeof(*p->paged)) ||
	    !handle_map_set(&p->row_of, event->process, event->object, p->paged_count))
		return NULL;
	p->paged[p->paged_count] =
		(struct paged){.process = event->process, .handle = event->object};
	return &p->paged[p->paged_count++];
}

static bool is_copy(const struct logged_event *event)
{
	return logged_is(event, "paging", "transfer") ||
	       logged_is(event, "paging", "virtual_transfer") ||
	       logged_is(event, "paging", "special_lock_transfer");
}

/* A copy from one segment to another is neither. */
static bool add_copy(struct explain_paging *p, const struct logged_event *event)
{
	uint64_t from = logged_value(event, "from"), to = logged_value(event, "to");

	if (!event->object || (from == 0) == (to == 0))
		return true;
	struct paged *paged = paged_of(p, event);

	if (!paged)
		return false;
	paged->bytes[to ? PAGED_IN : PAGED_OUT] += logged_value(event, "bytes");
	return true;
}

static struct eviction *eviction_of(struct explain_paging *p, const struct eviction *like)
{
	for (unsigned i = 0; i < p->eviction_count; i++) {
		struct eviction *e = &p->evictions[i];

		if (e->process == like->process && e->cause == like->cause &&
		    e->cause_process == like->cause_process && e->segment == like->segment &&
		    strcmp(e->reason, like->reason) == 0)
			return e;
	}
	if (p->eviction_count == EVICTIONS)
		return NULL;
	p->evictions[p->eviction_count] = *like;
	return &p->evictions[p->eviction_count++];
}

static void add_victim(struct explain_paging *p, const struct logged_event *event)
{
	struct eviction like = {.process = event->process,
				.cause = (uint32_t)logged_value(event, "for"),
				.cause_process = (uint32_t)logged_value(event, "of"),
				.needed = logged_value(event, "bytes")};
	bool placed = p->moved.object == event->object && p->moved.process == event->process;

	if (p->process != like.process && p->process != like.cause_process)
		return;
	snprintf(like.reason, sizeof(like.reason), "%s", event->reason);
	like.segment = placed ? logged_value(&p->moved, "from") : 0;
	struct eviction *e = eviction_of(p, &like);

	if (!e) {
		p->left_out++;
		return;
	}
	if (e->count < NAMED)
		e->named[e->count] = event->object;
	e->count++;
	e->bytes += placed ? logged_value(&p->moved, "bytes") : 0;
	if (like.needed > e->needed)
		e->needed = like.needed;
}

bool explain_paging_add(struct explain_paging *p, const struct logged_event *event)
{
	if (is_copy(event))
		return add_copy(p, event);
	if (logged_is(event, "residency", NULL))
		p->moved = *event;
	else if (logged_is(event, "victim", NULL))
		add_victim(p, event);
	return true;
}

/* ---- output ---- */

static int by_bytes_in(const void *a, const void *b)
{
	const struct paged *x = a, *y = b;
	uint64_t left = x->bytes[PAGED_IN], right = y->bytes[PAGED_IN];

	return left != right ? (left < right) - (left > right)
			     : (x->handle > y->handle) - (x->handle < y->handle);
}

static int by_bytes_out(const void *a, const void *b)
{
	const struct paged *x = a, *y = b;
	uint64_t left = x->bytes[PAGED_OUT], right = y->bytes[PAGED_OUT];

	return left != right ? (left < right) - (left > right)
			     : (x->handle > y->handle) - (x->handle < y->handle);
}

/* The allocations of the call's process, or those of all others; the largest are named. */
static void print_paged(struct explain_paging *p, struct sentences *s, enum direction direction,
			bool own)
{
	uint64_t count = 0, bytes = 0, named = 0;
	char size[TEXT];

	for (uint32_t i = 0; i < p->paged_count; i++)
		if (p->paged[i].bytes[direction] && (p->paged[i].process == p->process) == own) {
			count++;
			bytes += p->paged[i].bytes[direction];
		}
	if (!count)
		return;
	FILE *out = sentence_begin(s);

	fprintf(out, "%" PRIu64 " allocation%s of %s %s paged %s (%s): ", count,
		count == 1 ? "" : "s", own ? "the process" : "other processes",
		count == 1 ? "was" : "were", direction == PAGED_IN ? "in" : "out",
		units_bytes(bytes, size, sizeof(size)));
	for (uint32_t i = 0; i < p->paged_count && named < NAMED; i++) {
		const struct paged *paged = &p->paged[i];

		if (!paged->bytes[direction] || (paged->process == p->process) != own)
			continue;
		fprintf(out, "%s0x%08" PRIx32, named++ ? ", " : "", paged->handle);
		if (!own)
			fprintf(out, " of process %" PRIu32, paged->process);
		fprintf(out, " (%s)", units_bytes(paged->bytes[direction], size, sizeof(size)));
	}
	if (count > named)
		fprintf(out, " and %" PRIu64 " more", count - named);
	fputc('\n', out);
}

static int by_bytes_evicted(const void *a, const void *b)
{
	const struct eviction *x = a, *y = b;

	return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

static void print_victims(FILE *out, const struct eviction *e)
{
	char size[TEXT];

	for (uint64_t i = 0; i < e->count && i < NAMED; i++)
		fprintf(out, "%s0x%08" PRIx32, i ? ", " : "", e->named[i]);
	if (e->count > NAMED)
		fprintf(out, " and %" PRIu64 " more", e->count - NAMED);
	fprintf(out, " of process %" PRIu32, e->process);
	if (e->bytes)
		fprintf(out, " (%s)", units_bytes(e->bytes, size, sizeof(size)));
	fputs(e->count == 1 ? " was evicted" : " were evicted", out);
	if (e->segment)
		fprintf(out, " from segment %" PRIu64, e->segment);
}

static void print_eviction(struct sentences *s, const struct eviction *e)
{
	FILE *out = sentence_begin(s);
	char size[TEXT];

	print_victims(out, e);
	fputs(" because ", out);
	if (e->cause)
		fprintf(out, "0x%08" PRIx32 " of process %" PRIu32, e->cause, e->cause_process);
	else
		fputs("page tables or buffers of the memory manager", out);
	fprintf(out, " needed %s: %s\n", units_bytes(e->needed, size, sizeof(size)),
		strcmp(e->reason, "fragmentation") == 0
			? "enough bytes were free, but not in one range (fragmentation)"
			: "too few bytes were free (capacity)");
}

void explain_paging_print(struct explain_paging *p, struct sentences *s)
{
	unsigned shown = p->eviction_count < EVICTIONS_SHOWN ? p->eviction_count : EVICTIONS_SHOWN;
	uint64_t rest = p->left_out;

	if (p->paged_count)
		qsort(p->paged, p->paged_count, sizeof(*p->paged), by_bytes_in);
	print_paged(p, s, PAGED_IN, true);
	print_paged(p, s, PAGED_IN, false);
	if (p->paged_count)
		qsort(p->paged, p->paged_count, sizeof(*p->paged), by_bytes_out);
	print_paged(p, s, PAGED_OUT, true);
	print_paged(p, s, PAGED_OUT, false);
	qsort(p->evictions, p->eviction_count, sizeof(*p->evictions), by_bytes_evicted);
	for (unsigned i = 0; i < shown; i++)
		print_eviction(s, &p->evictions[i]);
	for (unsigned i = shown; i < p->eviction_count; i++)
		rest += p->evictions[i].count;
	if (rest)
		fprintf(sentence_begin(s),
			"%" PRIu64 " more evictions freed space for other allocations\n", rest);
}
