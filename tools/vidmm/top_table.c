/* SPDX-License-Identifier: MIT */
/* top_table: the table of processes of `vidmm top`. */
#include <stdlib.h>
#include <string.h>

#include "top_view.h"

#define NAME_WIDTH_LEAST 15u

enum form { FORM_COUNT, FORM_MIB, FORM_PERCENT, FORM_MS, FORM_NAME };

static const struct {
	const char *title;
	uint8_t width;
	enum form form;
} columns[TOP_COLUMNS] = {
	[TOP_ID] = {"ID", 5, FORM_COUNT},
	[TOP_NAME] = {"NAME", NAME_WIDTH_LEAST, FORM_NAME},
	[TOP_RESIDENT] = {"MiB", 7, FORM_MIB},
	[TOP_PEAK] = {"PEAK", 7, FORM_MIB},
	[TOP_IN] = {"IN/s", 7, FORM_MIB},
	[TOP_OUT] = {"OUT/s", 7, FORM_MIB},
	[TOP_EVICTED] = {"EVICT", 7, FORM_COUNT},
	[TOP_LOCK] = {"LOCK%", 5, FORM_PERCENT},
	[TOP_QUEUED] = {"QUEUED", 6, FORM_COUNT},
	[TOP_APERTURE] = {"APERT", 7, FORM_MIB},
	[TOP_EVICT_RATE] = {"EVICT/s", 7, FORM_COUNT},
	[TOP_IN_ALL] = {"IN", 9, FORM_MIB},
	[TOP_OUT_ALL] = {"OUT", 9, FORM_MIB},
	[TOP_SUBMITTED] = {"SUBMITS", 8, FORM_COUNT},
	[TOP_WAITED] = {"WAIT ms", 9, FORM_MS},
	[TOP_ALLOCATIONS] = {"ALLOCS", 7, FORM_COUNT},
};

struct entry {
	const struct top_process *process;
	double key;
};

const char *top_table_title(enum top_column column)
{
	return columns[column].title;
}

/* Returns the columns from the first one to END with the narrowest name, and a space for each. */
static uint32_t width_to(uint32_t end)
{
	uint32_t width = 0;

	for (uint32_t i = 0; i < end; i++)
		width += columns[i].width + 1u;
	return width;
}

bool top_table_shows(enum top_column column, uint32_t width)
{
	return width_to(column + 1u) <= width + 1;
}

/* ---- values ---- */

static double per_second(const struct top_view *view, const struct top_rate *rate)
{
	const struct top_state *s = view->state;
	bool all = top_view_all(view);
	uint64_t ns = all ? s->now_ns - s->begin_ns : top_rate_window_ns(s->begin_ns, s->now_ns);
	uint64_t amount = all ? rate->total : top_rate_sum(rate, s->now_ns);

	return ns ? (double)amount * 1e9 / (double)ns : 0;
}

static double value_of(const struct top_view *view, const struct top_process *p,
		       enum top_column column)
{
	switch (column) {
	case TOP_RESIDENT:
		return (double)p->video_bytes + (double)p->aperture_bytes;
	case TOP_PEAK:
		return (double)p->peak_bytes;
	case TOP_IN:
		return per_second(view, &p->in_bytes);
	case TOP_OUT:
		return per_second(view, &p->out_bytes);
	case TOP_EVICTED:
		return (double)p->evictions.total;
	case TOP_LOCK:
		return per_second(view, &p->lock_ns) / 1e7;
	case TOP_QUEUED:
		return (double)p->queued;
	case TOP_APERTURE:
		return (double)p->aperture_bytes;
	case TOP_EVICT_RATE:
		return per_second(view, &p->evictions);
	case TOP_IN_ALL:
		return (double)p->in_bytes.total;
	case TOP_OUT_ALL:
		return (double)p->out_bytes.total;
	case TOP_SUBMITTED:
		return (double)p->submissions;
	case TOP_WAITED:
		return (double)p->wait_ns / 1e6;
	case TOP_ALLOCATIONS:
		return (double)p->allocations;
	default:
		return (double)p->number;
	}
}

static const char *format(enum form form, double value, char *text, size_t size)
{
	if (form == FORM_MIB)
		return top_view_mib(value, text, size);
	snprintf(text, size, form == FORM_MS ? "%.1f" : "%.0f", value);
	return text;
}

/* ---- which processes, in which order ---- */

static bool is_shown(const struct top_view *view, const struct top_process *p)
{
	char text[32];
	const char *name = top_view_name(view->state, p->number, text, sizeof(text));

	if (p->closed && !view->closed)
		return false;
	/* The system has a row if memory or submissions are its. */
	if (!p->number && !p->peak_bytes && !p->submissions && !p->in_bytes.total)
		return false;
	return !view->filter[0] || strcasestr(name, view->filter);
}

uint32_t top_table_count(const struct top_view *view)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < view->state->processes; i++)
		count += is_shown(view, &view->state->process[i]);
	return count;
}

static int by_number(const struct entry *x, const struct entry *y)
{
	return (x->process->number > y->process->number) -
	       (x->process->number < y->process->number);
}

static int by_value(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->key != y->key ? (x->key < y->key) - (x->key > y->key) : by_number(x, y);
}

static int by_name(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	const char *left = x->process->name, *right = y->process->name;
	int order = strcasecmp(left ? left : "", right ? right : "");

	return order ? order : by_number(x, y);
}

static void sort(const struct top_view *view, struct entry *entries, uint32_t count)
{
	bool backwards = view->reverse != (view->sort == TOP_ID);

	qsort(entries, count, sizeof(*entries), view->sort == TOP_NAME ? by_name : by_value);
	for (uint32_t i = 0; backwards && i < count / 2; i++) {
		struct entry other = entries[i];

		entries[i] = entries[count - 1 - i];
		entries[count - 1 - i] = other;
	}
}

/* Returns the processes of the table in their order; NULL when out of memory. */
static struct entry *collect(const struct top_view *view)
{
	const struct top_state *s = view->state;
	struct entry *entries = malloc((s->processes + 1) * sizeof(*entries));
	uint32_t count = 0;

	for (uint32_t i = 0; entries && i < s->processes; i++)
		if (is_shown(view, &s->process[i]))
			entries[count++] = (struct entry){
				&s->process[i], value_of(view, &s->process[i], view->sort)};
	if (entries)
		sort(view, entries, count);
	return entries;
}

/* ---- rows ---- */

static struct top_field field_of(const struct top_grid *grid, uint32_t row, enum top_column column)
{
	uint32_t end = TOP_COLUMNS, name;

	while (end > 1 && !top_table_shows(end - 1u, grid->width))
		end--;
	name = NAME_WIDTH_LEAST;
	if (grid->width > width_to(end))
		name += grid->width - width_to(end) + 1u;
	if (name > 40) /* longer ones are rare: numbers stay near */
		name = 40;
	return (struct top_field){
		row, width_to(column) + (column > TOP_NAME ? name - NAME_WIDTH_LEAST : 0),
		column == TOP_NAME ? name : columns[column].width};
}

static void draw_heading(const struct top_view *view, struct top_grid *grid, uint32_t row)
{
	top_grid_paint(grid, row, TOP_HEADING);
	for (uint32_t i = 0; i < TOP_COLUMNS && top_table_shows(i, grid->width); i++) {
		struct top_field field = field_of(grid, row, i);
		enum top_look look = i == view->sort ? TOP_STRONG : TOP_HEADING;

		if (i == TOP_NAME)
			top_grid_text(grid, field, look, columns[i].title);
		else
			top_grid_right(grid, field, look, columns[i].title);
	}
}

static void draw_process(const struct top_view *view, struct top_grid *grid, uint32_t row,
			 const struct top_process *process)
{
	enum top_look look = process->closed ? TOP_FAINT : TOP_PLAIN;
	char text[32];

	for (uint32_t i = 0; i < TOP_COLUMNS && top_table_shows(i, grid->width); i++) {
		struct top_field field = field_of(grid, row, i);

		if (i == TOP_NAME)
			top_grid_text(
				grid, field, look,
				top_view_name(view->state, process->number, text, sizeof(text)));
		else if (i == TOP_QUEUED && process->closed)
			top_grid_right(grid, field, look, "closed");
		else
			top_grid_right(grid, field, look,
				       format(columns[i].form, value_of(view, process, i), text,
					      sizeof(text)));
	}
}

uint32_t top_table_draw(const struct top_view *view, struct top_grid *grid, uint32_t row,
			uint32_t rows)
{
	struct entry *entries = collect(view);
	uint32_t count = top_table_count(view);
	uint32_t most = rows && count > rows ? count - rows : 0;
	uint32_t from = view->scroll < most ? view->scroll : most;

	draw_heading(view, grid, row++);
	grid->failed = grid->failed || !entries;
	for (uint32_t i = from; entries && i < count && (!rows || i < from + rows); i++)
		draw_process(view, grid, row++, entries[i].process);
	free(entries);
	return most;
}
