/* SPDX-License-Identifier: MIT */
#include "top_view.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "units.h"

enum { TEXT = 32, HALVES_FROM = 120, LABEL = 11, FIGURES = 41, BAR_MOST = 60 };

static const char *const help_lines[] = {
	"",
	" q, Ctrl-C        quit",
	" h, ?             this text; any key: back",
	" s, F6   S        sort processes by the next, the previous column",
	" r                reverse the order",
	" /                filter processes by a part of their name; Esc: all",
	" c                show or hide closed processes",
	" up, down, page up, page down, home, end: scroll processes",
	"",
	" MiB      resident in all segments, PEAK its maximum, APERT in apertures only",
	" IN OUT   MiB paged into and out of video memory; /s: for each second",
	" EVICT    evictions from video memory",
	" LOCK%    part of the time that locks waited for the GPU",
	" QUEUED   submissions that are not complete",
	"",
	" Times are recorded times: of virtual time in a replay on the simulator.",
	" Rates are those of the last second; if the recording has ended, of all of it.",
	" In a bar, # is used and | was the maximum.",
};

bool top_view_all(const struct top_view *view)
{
	return view->status != TOP_LIVE && view->status != TOP_WAITING;
}

const char *top_view_name(const struct top_state *state, uint32_t number, char *text, size_t size)
{
	const struct top_process *process = top_state_process(state, number);

	if (!number)
		return "(system)";
	if (process && process->name && process->name[0])
		return process->name;
	snprintf(text, size, "process %u", (unsigned)number);
	return text;
}

const char *top_view_mib(double bytes, char *text, size_t size)
{
	double mib = bytes / (1 << 20);

	snprintf(text, size, "%.*f", mib < 99999.95 ? 1 : 0, mib);
	return text;
}

/* ---- the head ---- */

static const char *status_text(const struct top_view *view, char *text, size_t size)
{
	static const char *const texts[] = {
		[TOP_LIVE] = "live",       [TOP_ENDED] = "ended",   [TOP_CUT] = "ended, cut short",
		[TOP_DAMAGED] = "damaged", [TOP_FAILED] = "failed", [TOP_WAITING] = "starts again"};

	if (view->reading)
		snprintf(text, size, "reading");
	else if (view->status == TOP_LIVE && view->quiet_s)
		snprintf(text, size, "live, no events for %" PRIu64 " s", view->quiet_s);
	else
		snprintf(text, size, "%s", texts[view->status]);
	return text;
}

/* The file's name is cut if the line is too short: the figures are not. */
static void draw_head(const struct top_view *view, struct top_grid *grid)
{
	const struct top_state *s = view->state;
	char status[64], time[TEXT], events[TEXT], figures[160];
	const char *base = strrchr(view->path, '/'), *path = view->path;
	uint32_t used, space, name = (uint32_t)strlen(base ? base + 1 : path);

	snprintf(figures, sizeof(figures), "%s   %s recorded   %s events",
		 status_text(view, status, sizeof(status)),
		 units_time(s->now_ns - s->begin_ns, time, sizeof(time)),
		 units_count(s->events, events, sizeof(events)));
	used = (uint32_t)strlen(figures) + 14; /* "vidmm top: ", and spaces */
	if (used + (name < 16 ? name : 16) > grid->width) {
		snprintf(figures, sizeof(figures), "%s  %s  %s", status, time, events);
		used = (uint32_t)strlen(figures) + 13;
	}
	space = grid->width > used ? grid->width - used : 1;
	if (base && strlen(path) > space)
		path = base + 1;
	top_grid_text(grid, (struct top_field){0, 0, 0}, TOP_PLAIN, "vidmm top:");
	top_grid_text(grid, (struct top_field){0, 11, space}, TOP_PLAIN, path);
	top_grid_right(grid, (struct top_field){0, 11 + space, 0}, TOP_PLAIN, figures);
	top_grid_paint(grid, 0,
		       view->status == TOP_DAMAGED || view->status == TOP_FAILED ? TOP_ALARM
										 : TOP_STRONG);
}

/* Appends to a text that is cut if it is too long. */
static void append(char *text, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void append(char *text, size_t size, const char *format, ...)
{
	size_t used = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + used, size - used, format, args);
	va_end(args);
}

static void draw_second_line(const struct top_view *view, struct top_grid *grid)
{
	const struct top_state *s = view->state;
	char text[512] = "", time[TEXT];
	uint64_t whole = s->now_ns - s->begin_ns;
	uint64_t window = top_rate_window_ns(s->begin_ns, s->now_ns);
	uint32_t system = top_state_process(s, 0) != NULL;
	bool all = top_view_all(view);

	append(text, sizeof(text), "rates: %s %s   sort: %s%s   %u of %u processes",
	       all ? "all" : "last", units_time(all ? whole : window, time, sizeof(time)),
	       top_table_title(view->sort), view->reverse ? ", reversed" : "",
	       (unsigned)top_table_count(view), (unsigned)(s->processes - system));
	if (view->filter[0])
		append(text, sizeof(text), "   filter: %s", view->filter);
	if (s->findings)
		append(text, sizeof(text), "   %" PRIu64 " findings", s->findings);
	if (s->failures)
		append(text, sizeof(text), "   %" PRIu64 " failed calls", s->failures);
	top_grid_text(grid, (struct top_field){1, 0, 0}, TOP_PLAIN, text);
}

/* ---- segments and nodes ---- */

/* A label, a bar of parts of WHOLE, and figures; MARK: a second part. WHOLE 0: no bar. */
struct gauge {
	char label[24], figures[160];
	double part, mark, whole;
};

static uint32_t cells_of(double part, double whole, uint32_t width)
{
	double cells = part * width / whole;

	if (cells > width)
		return width;
	return part > 0 && cells < 1 ? 1 : (uint32_t)(cells + 0.5); /* a little is not nothing */
}

static void draw_gauge(struct top_grid *grid, struct top_field field, const struct gauge *gauge)
{
	uint32_t space =
		field.width > LABEL + FIGURES + 4u ? field.width - LABEL - FIGURES - 4u : 0;
	uint32_t width = space < BAR_MOST ? space : BAR_MOST, filled, mark;
	char bar[BAR_MOST + 3];

	top_grid_text(grid, (struct top_field){field.row, field.column, LABEL}, TOP_PLAIN,
		      gauge->label);
	field.column += LABEL;
	field.width = field.width > LABEL ? field.width - LABEL : 1;
	if (width && gauge->whole > 0) {
		filled = cells_of(gauge->part, gauge->whole, width);
		mark = cells_of(gauge->mark, gauge->whole, width);
		for (uint32_t i = 0; i < width; i++)
			bar[i + 1] = i < filled ? '#' : mark && i + 1 == mark ? '|' : '.';
		bar[0] = '[';
		bar[width + 1] = ']';
		bar[width + 2] = '\0';
		top_grid_text(grid, field, TOP_BAR, bar);
	}
	field.column += width ? width + 3 : 0;
	field.width -= width ? width + 3 : 0;
	top_grid_text(grid, field, TOP_PLAIN, gauge->figures);
}

static struct gauge segment_gauge(const struct top_segment *segment, unsigned number)
{
	char used[TEXT], all[TEXT], peak[TEXT];
	struct gauge gauge = {.part = (double)segment->used_bytes,
			      .mark = (double)segment->peak_bytes,
			      .whole = (double)segment->bytes};
	double percent = segment->bytes ? gauge.part * 100 / gauge.whole : 0;
	unsigned shown = percent < 999 ? (unsigned)(percent + 0.5) : 999;

	snprintf(gauge.label, sizeof(gauge.label), "%s %u",
		 segment->aperture ? "aperture" : "memory", number);
	snprintf(gauge.figures, sizeof(gauge.figures), "%7s of %s MiB %3u %%  peak %s",
		 top_view_mib(gauge.part, used, sizeof(used)),
		 top_view_mib(gauge.whole, all, sizeof(all)), shown,
		 top_view_mib(gauge.mark, peak, sizeof(peak)));
	return gauge;
}

static struct gauge node_gauge(const struct top_view *view, unsigned number)
{
	const struct top_state *s = view->state;
	const struct top_node *node = &s->node[number];
	bool all = top_view_all(view);
	uint64_t whole = all ? s->now_ns - s->begin_ns : top_rate_window_ns(s->begin_ns, s->now_ns);
	struct gauge gauge = {.part = (double)top_state_busy_ns(s, node, all),
			      .whole = whole ? (double)whole : 1};

	snprintf(gauge.label, sizeof(gauge.label), "node %u", number);
	snprintf(gauge.figures, sizeof(gauge.figures), "%3.0f %% busy  %u queued, %u on the node",
		 gauge.part * 100 / gauge.whole, (unsigned)node->submissions,
		 (unsigned)node->packets);
	return gauge;
}

/* Draws up to MOST gauges; the last one may be replaced by how many there are more. */
static uint32_t draw_gauges(const struct top_view *view, struct top_grid *grid,
			    struct top_field field, bool nodes, uint32_t most)
{
	const struct top_state *s = view->state;
	uint32_t count = 0, drawn = 0;

	for (uint32_t i = 0; i < TOP_SEGMENTS_MAX; i++)
		count += nodes ? s->node[i].known : s->segment[i].adapters != 0;
	for (uint32_t i = 0; i < TOP_SEGMENTS_MAX && drawn < most; i++) {
		struct gauge gauge;

		if (nodes ? !s->node[i].known : !s->segment[i].adapters)
			continue;
		gauge = nodes ? node_gauge(view, i) : segment_gauge(&s->segment[i], i);
		if (drawn + 1 == most && count > most) {
			gauge = (struct gauge){.whole = 0};
			snprintf(gauge.label, sizeof(gauge.label), "%u more", count - drawn);
		}
		draw_gauge(grid, field, &gauge);
		field.row++;
		drawn++;
	}
	return drawn;
}

_Static_assert(TOP_NODES_MAX == TOP_SEGMENTS_MAX, "draw_gauges counts both");

/* Segments and nodes, beside each other in a wide grid. Returns the row behind them. */
static uint32_t draw_devices(const struct top_view *view, struct top_grid *grid, uint32_t row)
{
	uint32_t most = grid->height_most ? grid->height_most / 6 + 1 : TOP_SEGMENTS_MAX;
	uint32_t half = grid->width >= HALVES_FROM ? grid->width / 2 - 1 : grid->width;
	uint32_t segments, nodes;
	struct top_field field = {row, 0, half};

	segments = draw_gauges(view, grid, field, false, most);
	if (half < grid->width)
		field.column = half + 2;
	else
		field.row += segments;
	nodes = draw_gauges(view, grid, field, true, most);
	if (half == grid->width)
		return row + segments + nodes;
	return row + (segments > nodes ? segments : nodes);
}

/* ---- waits ---- */

struct line {
	uint64_t ns, since_ns;
	uint32_t process;
	bool ended;
	char what[96];
};

static void describe_wait(const struct top_view *view, const struct top_wait *wait, char *text,
			  size_t size)
{
	static const char *const reasons[] = {[VIDMM_WAIT_LOCK] = "lock",
					      [VIDMM_WAIT_SPACE] = "free space",
					      [VIDMM_WAIT_PAGING_BUFFER] = "free paging buffer",
					      [VIDMM_WAIT_DMA_BUFFER] = "free DMA buffer",
					      [VIDMM_WAIT_DESTROY] = "destruction",
					      [VIDMM_WAIT_STOP] = "adapter stop",
					      [VIDMM_WAIT_POWER] = "power transition",
					      [VIDMM_WAIT_FENCE] = "fence (a thread)",
					      [VIDMM_WAIT_PRESENT] = "present",
					      [VIDMM_WAIT_HEAP] = "moves in the heap"};
	bool known = wait->reason < sizeof(reasons) / sizeof(reasons[0]) && reasons[wait->reason];
	const char *reason = known ? reasons[wait->reason] : "unknown reason";
	bool paging = wait->node >= TOP_NODES_MAX || !view->state->node[wait->node].known;

	if (!wait->number)
		snprintf(text, size, "%s", reason);
	else if (paging)
		snprintf(text, size, "%s: paging %" PRIu64, reason, wait->number);
	else
		snprintf(text, size, "%s: node %u, submission %" PRIu64, reason,
			 (unsigned)wait->node, wait->number);
}

static uint32_t hold_lines(const struct top_view *view, struct line *lines, uint32_t most)
{
	const struct top_state *s = view->state;
	uint32_t count = 0;

	for (; count < s->holds && count < most; count++) {
		const struct top_hold *hold = &s->hold[count];
		struct line *line = &lines[count];

		*line = (struct line){.ns = s->now_ns - hold->since_ns,
				      .since_ns = hold->since_ns,
				      .process = hold->process};
		if (hold->value)
			snprintf(line->what, sizeof(line->what),
				 "object %" PRIu64 ": value %" PRIu64 ", had %" PRIu64,
				 hold->object, hold->value, hold->present);
		else
			snprintf(line->what, sizeof(line->what), "object %" PRIu64 ": a free unit",
				 hold->object);
	}
	return count;
}

/* The oldest submission of each node waits for its completion. */
static uint32_t submission_lines(const struct top_view *view, struct line *lines, uint32_t most)
{
	const struct top_state *s = view->state;
	uint32_t count = 0;

	for (uint32_t i = 0; i < TOP_NODES_MAX && count < most; i++) {
		const struct top_submission *oldest = s->node[i].submission;

		if (!s->node[i].submissions)
			continue;
		lines[count] = (struct line){.ns = s->now_ns - oldest->since_ns,
					     .since_ns = oldest->since_ns,
					     .process = oldest->process};
		snprintf(lines[count].what, sizeof(lines[count].what),
			 "node %u, submission %" PRIu64, (unsigned)i, oldest->number);
		count++;
	}
	return count;
}

static uint32_t ended_lines(const struct top_view *view, struct line *lines)
{
	struct top_wait waits[TOP_WAITS];
	uint32_t count = top_state_waits(view->state, top_view_all(view), waits);

	for (uint32_t i = 0; i < count; i++) {
		lines[i] = (struct line){.ns = waits[i].ns,
					 .since_ns = waits[i].end_ns > waits[i].ns
							     ? waits[i].end_ns - waits[i].ns
							     : 0,
					 .process = waits[i].process,
					 .ended = true};
		describe_wait(view, &waits[i], lines[i].what, sizeof(lines[i].what));
	}
	return count;
}

static void draw_wait(const struct top_view *view, struct top_grid *grid, uint32_t row,
		      const struct line *line)
{
	uint64_t begin = view->state->begin_ns;
	uint64_t since = line->since_ns > begin ? line->since_ns - begin : 0;
	char text[TEXT];

	top_grid_right(grid, (struct top_field){row, 0, 9}, TOP_PLAIN,
		       units_time(line->ns, text, sizeof(text)));
	snprintf(text, sizeof(text), "%" PRIu64 ".%03u s", since / 1000000000u,
		 (unsigned)(since / 1000000u % 1000u));
	top_grid_right(grid, (struct top_field){row, 10, 10}, TOP_PLAIN, text);
	top_grid_text(grid, (struct top_field){row, 21, 5}, line->ended ? TOP_PLAIN : TOP_STRONG,
		      line->ended ? "ended" : "now");
	top_grid_text(grid, (struct top_field){row, 27, 15}, TOP_PLAIN,
		      top_view_name(view->state, line->process, text, sizeof(text)));
	top_grid_text(grid, (struct top_field){row, 43, 0}, TOP_PLAIN, line->what);
}

/* Waits that last, oldest first, then the longest that ended. ROWS 0: all. */
static void draw_waits(const struct top_view *view, struct top_grid *grid, uint32_t row,
		       uint32_t rows)
{
	struct line lines[4 * TOP_WAITS];
	uint32_t count = hold_lines(view, lines, 2 * TOP_WAITS);

	count += submission_lines(view, lines + count, TOP_WAITS);
	count += ended_lines(view, lines + count);
	top_grid_text(grid, (struct top_field){row, 0, 0}, TOP_PLAIN,
		      "   WAITED      SINCE STATE PROCESS         WAITS FOR");
	top_grid_paint(grid, row++, TOP_HEADING);
	for (uint32_t i = 0; i < count && (!rows || i < rows); i++)
		draw_wait(view, grid, row++, &lines[i]);
}

/* ---- the grid ---- */

static void draw_help(struct top_grid *grid, uint32_t row)
{
	for (size_t i = 0; i < sizeof(help_lines) / sizeof(help_lines[0]); i++)
		top_grid_text(grid, (struct top_field){row++, 0, 0}, TOP_PLAIN, help_lines[i]);
}

static uint32_t draw_tables(const struct top_view *view, struct top_grid *grid, uint32_t row)
{
	uint32_t height = grid->height_most, all = top_table_count(view), space, processes, most;

	if (!height) {
		top_table_draw(view, grid, row, 0);
		draw_waits(view, grid, row + all + 1, 0);
		return 0;
	}
	/* Two headings, a footer, and waits: a third of the rest, or what processes leave. */
	space = height > row + 6 ? height - row - 3 : 3;
	processes = all < space - space / 3 ? all : space - space / 3;
	processes = processes ? processes : 1;
	most = top_table_draw(view, grid, row, processes);
	draw_waits(view, grid, row + processes + 1, space - processes);
	return most;
}

static void draw_footer(const struct top_view *view, struct top_grid *grid)
{
	uint32_t row = grid->height_most - 1;

	/* Of a low terminal, the line may have been used. */
	top_grid_text(grid, (struct top_field){row, 0, 0}, TOP_PLAIN, "");
	grid->height = row;
	top_grid_text(grid, (struct top_field){row, 0, 0}, TOP_PLAIN, view->footer);
	top_grid_paint(grid, row, TOP_HEADING);
}

uint32_t top_view_draw(const struct top_view *view, struct top_grid *grid)
{
	uint32_t most = 0;

	draw_head(view, grid);
	draw_second_line(view, grid);
	if (view->help)
		draw_help(grid, 2);
	else
		most = draw_tables(view, grid, draw_devices(view, grid, 2));
	if (view->footer && grid->height_most)
		draw_footer(view, grid);
	return most;
}
