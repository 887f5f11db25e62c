/* SPDX-License-Identifier: MIT */
/*
 * The summary as text. One table of rows is used for a single run and for compared runs, so that
 * both show the same values in the same order.
 */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "summary.h"
#include "units.h"

enum row_kind { ROW_COUNT, ROW_BYTES, ROW_TIME, ROW_FACTOR, ROW_GAP };

/* When a row is shown. */
enum {
	ROW_WDDM2 = 1,    /* for WDDM 2.x only */
	ROW_TIMED = 2,    /* only if the GPU takes time */
	ROW_PACED = 4,    /* only if events happen at their recorded times */
	ROW_PART = 8,     /* of the row above; only in a comparison, and if not 0 */
	ROW_JUDGED = 16,  /* only if evictions are compared with those of the reference */
	ROW_BY_BYTES = 32 /* only if that was counted */
};

struct row {
	const char *label;
	enum row_kind kind;
	size_t offset; /* of a uint64_t in struct replay_result */
	unsigned when;
};

#define ROW_WHEN(when, label, kind, member)                               \
	{                                                                 \
		label, kind, offsetof(struct replay_result, member), when \
	}
#define ROW(label, kind, member)   ROW_WHEN(0, label, kind, member)
#define TIMED(label, kind, member) ROW_WHEN(ROW_TIMED, label, kind, times.member)
#define PACED(label, kind, member) ROW_WHEN(ROW_TIMED | ROW_PACED, label, kind, times.member)
#define PART(label, kind, member)  ROW_WHEN(ROW_PART, label, kind, member)
#define GAP                       \
	{                         \
		"", ROW_GAP, 0, 0 \
	}
#define GAP_TIMED                         \
	{                                 \
		"", ROW_GAP, 0, ROW_TIMED \
	}

static const struct row rows[] = {
	ROW("submissions", ROW_COUNT, submissions),
	ROW("references", ROW_COUNT, references),
	ROW("relocations", ROW_COUNT, relocations),
	ROW("addresses patched", ROW_COUNT, patches),
	ROW("splits", ROW_COUNT, splits),
	GAP,
	ROW("paged in", ROW_BYTES, bytes_paged_in),
	ROW("  first uses", ROW_BYTES, paged_in.first),
	ROW("  again", ROW_BYTES, paged_in.again),
	PART("    capacity", ROW_BYTES, paged_in.capacity),
	PART("    fragmentation", ROW_BYTES, paged_in.fragmentation),
	PART("    CPU locks", ROW_BYTES, paged_in.lock),
	PART("    residency lists", ROW_BYTES, paged_in.trim),
	PART("    other causes", ROW_BYTES, paged_in.other),
	ROW_WHEN(ROW_JUDGED, "    by policy", ROW_BYTES, paged_in.policy),
	ROW_WHEN(ROW_BY_BYTES, "  again by bytes alone", ROW_BYTES, by_bytes_again),
	ROW("paged out", ROW_BYTES, bytes_paged_out),
	ROW("moved by compaction", ROW_BYTES, bytes_moved),
	ROW("evictions", ROW_COUNT, evicted.video),
	PART("  capacity", ROW_COUNT, evicted.capacity),
	PART("  fragmentation", ROW_COUNT, evicted.fragmentation),
	PART("  CPU locks", ROW_COUNT, evicted.lock),
	PART("  residency lists", ROW_COUNT, evicted.trim),
	PART("  other causes", ROW_COUNT, evicted.other),
	ROW_WHEN(ROW_JUDGED, "  by policy", ROW_COUNT, evicted.policy),
	ROW("aperture evictions", ROW_COUNT, evicted.aperture),
	ROW_WHEN(ROW_WDDM2, "trimmed by driver", ROW_COUNT, driver.trimmed),
	ROW_WHEN(ROW_WDDM2, "over budget", ROW_COUNT, driver.over_budget),
	ROW("offers", ROW_COUNT, offers),
	ROW("reclaims", ROW_COUNT, reclaims),
	ROW("discarded", ROW_COUNT, discarded),
	GAP,
	ROW("written by the CPU", ROW_BYTES, bytes_written),
	ROW("renames", ROW_COUNT, renames),
	ROW("waits avoided", ROW_COUNT, waits_avoided),
	ROW("lock waits", ROW_COUNT, lock_waits),
	ROW("time in lock waits", ROW_TIME, lock_wait_ns),
	ROW("ranges acquired", ROW_COUNT, ranges_acquired),
	ROW("range fallbacks", ROW_COUNT, range_fallbacks),
	GAP_TIMED,
	TIMED("latency p50", ROW_TIME, latency.p50_ns),
	TIMED("latency p95", ROW_TIME, latency.p95_ns),
	TIMED("latency p99", ROW_TIME, latency.p99_ns),
	TIMED("latency max", ROW_TIME, latency.max_ns),
	TIMED("frames", ROW_COUNT, frames.count),
	TIMED("frame time p50", ROW_TIME, frames.times.p50_ns),
	TIMED("frame time p95", ROW_TIME, frames.times.p95_ns),
	TIMED("frame time p99", ROW_TIME, frames.times.p99_ns),
	TIMED("frame time max", ROW_TIME, frames.times.max_ns),
	PACED("late frames", ROW_COUNT, frames.late),
	PACED("longest stall", ROW_TIME, frames.stall_ns),
	TIMED("GPU waits for paging", ROW_TIME, waits.gpu_paging_ns),
	TIMED("CPU waits in locks", ROW_TIME, waits.cpu_lock_ns),
	TIMED("CPU waits in queues", ROW_TIME, waits.cpu_queue_ns),
	TIMED("CPU cost of calls", ROW_TIME, waits.cpu_cost_ns),
	TIMED("slow-down", ROW_FACTOR, waits.slowdown_permille),
};

#define LABEL_WIDTH 20
#define VALUE_WIDTH 12

struct paint {
	const char *bold, *good, *bad, *dim, *off;
};

static struct paint paint_of(bool color)
{
	if (color)
		return (struct paint){"\033[1m", "\033[32m", "\033[31m", "\033[2m", "\033[0m"};
	return (struct paint){"", "", "", "", ""};
}

/*
 * Is the row one of a single run? A host in another process may have died before it reported the
 * value.
 */
static bool row_has_value(const struct row *row, const struct options *options,
			  const struct replay_result *result)
{
	const struct replay_options *replay = &options->replay;

	if ((row->when & ROW_PART) || ((row->when & ROW_WDDM2) && !replay->wddm2) ||
	    ((row->when & ROW_TIMED) && !replay->gpu_time) ||
	    ((row->when & ROW_PACED) && !replay->recorded_pace) ||
	    ((row->when & ROW_JUDGED) && !replay->against_reference) ||
	    ((row->when & ROW_BY_BYTES) && !replay->by_bytes))
		return false;
	return row->kind == ROW_GAP || replay_has_value(&options->replay, result, row->offset);
}

static uint64_t number_of(const struct row *row, const struct replay_result *result)
{
	uint64_t value;

	memcpy(&value, (const char *)result + row->offset, sizeof(value));
	return value;
}

static const char *value_of(const struct row *row, const struct replay_result *result, char *text,
			    size_t size)
{
	uint64_t value = number_of(row, result);

	switch (row->kind) {
	case ROW_COUNT:
		return units_count(value, text, size);
	case ROW_BYTES:
		return units_bytes(value, text, size);
	case ROW_FACTOR:
		snprintf(text, size, "%.2f", (double)value / 1000);
		return text;
	default:
		return units_time(value, text, size);
	}
}

static void print_programs(FILE *file, const struct replay_result *result,
			   const struct paint *paint)
{
	unsigned i;

	for (i = 0; i < result->process_count; i++) {
		const struct trace_header *header = &result->headers[i];

		fprintf(file, "%s%s%s  %s\n", paint->bold, header->program, paint->off,
			header->note);
		fprintf(file, "%s%s, %s, recorded %s%s\n", paint->dim, header->driver,
			header->chipset, header->date, paint->off);
	}
	fputc('\n', file);
}

static const char *memory_of(const struct run *run, char *text, size_t size)
{
	char bytes[32];

	units_bytes(run->vram_bytes, bytes, sizeof(bytes));
	if (run->memory.bytes)
		snprintf(text, size, "%s", bytes);
	else
		snprintf(text, size, "%g %%%s", run->memory.percent,
			 run->memory.largest ? " largest" : "");
	return text;
}

static bool row_shows(const struct row *row, size_t offset)
{
	return row->kind != ROW_GAP && row->offset == offset;
}

/* Prints a note behind the rows of renames and swizzling ranges. */
static void print_lock_note(FILE *file, const struct row *row, const struct replay_result *result)
{
	char text[32];

	if (row_shows(row, offsetof(struct replay_result, waits_avoided)) && result->waits_avoided)
		fprintf(file, "   renamed while the GPU used the previous instance");
	if (row_shows(row, offsetof(struct replay_result, ranges_acquired)) &&
	    result->ranges_reclaimed)
		fprintf(file, "   %s of them taken from other allocations",
			units_count(result->ranges_reclaimed, text, sizeof(text)));
	if (row_shows(row, offsetof(struct replay_result, range_fallbacks)) &&
	    result->range_fallbacks)
		fprintf(file, "   unswizzled into system memory instead");
}

/* Prints the parts that follow the row and are not 0, as "capacity 3, CPU locks 1". */
static void print_parts(FILE *file, const struct row *row, const struct replay_result *result)
{
	const char *before = "   ";
	char text[32];

	for (row++; row < rows + sizeof(rows) / sizeof(rows[0]) && (row->when & ROW_PART); row++) {
		if (!number_of(row, result))
			continue;
		fprintf(file, "%s%s %s", before, row->label + strspn(row->label, " "),
			value_of(row, result, text, sizeof(text)));
		before = ", ";
	}
}

static void print_note(FILE *file, const struct row *row, const struct replay_result *result)
{
	char text[32];

	if (row->offset == offsetof(struct replay_result, submissions) && result->extra_renders)
		fprintf(file, "   in %s additional command buffers",
			units_count(result->extra_renders, text, sizeof(text)));
	if (row->offset == offsetof(struct replay_result, relocations) && result->clamped_deltas)
		fprintf(file, "   %s beyond their buffer, clamped",
			units_count(result->clamped_deltas, text, sizeof(text)));
	if ((row->when & ROW_JUDGED) && number_of(row, result))
		fprintf(file, "   of both: the policy reference would evict others");
	if (row_shows(row, offsetof(struct replay_result, evicted.aperture)) &&
	    result->evicted.aperture)
		fprintf(file, "   unmapped, nothing copied");
}

static const char *peak_label(const struct vidmm_segment_statistics *segment)
{
	return segment->aperture ? "peak aperture" : "peak video memory";
}

static void print_segments(FILE *file, const struct replay_result *result)
{
	char peak[32], size[32];
	unsigned i;

	if (result->segment_count)
		fputc('\n', file);

	for (i = 0; i < result->segment_count; i++) {
		const struct vidmm_segment_statistics *segment = &result->segment[i];

		fprintf(file, "  %-*s%*s   of %s\n", LABEL_WIDTH, peak_label(segment), VALUE_WIDTH,
			units_bytes(segment->peak_resident_bytes, peak, sizeof(peak)),
			units_bytes(segment->size_bytes, size, sizeof(size)));
	}
}

/* The most paged buffers. */
static void print_thrash(FILE *file, const struct options *options,
			 const struct replay_result *result, const struct paint *paint)
{
	char in[32], out[32], size[32], evictions[32], first[32], last[32];
	unsigned i;

	if (options->replay.connect) {
		fprintf(file, "\n  most paged buffers: unknown, the host has the paging events\n");
		return;
	}
	if (!result->thrash_count)
		return;
	fprintf(file, "\n  %s%-*s%*s  %9s  %9s  %9s  %9s  %9s%s\n", paint->dim, LABEL_WIDTH,
		"most paged buffers", VALUE_WIDTH, "size", "in", "out", "evictions", "first at",
		"last at", paint->off);
	for (i = 0; i < result->thrash_count; i++) {
		const struct thrash_entry *entry = &result->thrash[i];
		char name[32];

		snprintf(name, sizeof(name), "buffer %u", entry->buffer);
		fprintf(file, "  %-*s%*s  %9s  %9s  %9s  %9s  %9s%s%s\n", LABEL_WIDTH, name,
			VALUE_WIDTH, units_bytes(entry->size_bytes, size, sizeof(size)),
			units_bytes(entry->bytes_paged_in, in, sizeof(in)),
			units_bytes(entry->bytes_paged_out, out, sizeof(out)),
			units_count(entry->evictions, evictions, sizeof(evictions)),
			units_time(entry->first_ns, first, sizeof(first)),
			units_time(entry->last_ns, last, sizeof(last)),
			result->process_count > 1 ? "  " : "",
			result->process_count > 1 ? result->headers[entry->recording].program : "");
	}
}

static void print_time(FILE *file, const struct options *options,
		       const struct replay_result *result)
{
	char virtual_time[32], wall[32];
	bool sim = !options->replay.connect && options->replay.host_kind == VIDMM_HOST_SIM;

	fprintf(file, "  %-*s%*s   of this machine\n", LABEL_WIDTH, "time", VALUE_WIDTH,
		units_time(result->wall_ns, wall, sizeof(wall)));
	if (sim && options->replay.gpu_time)
		fprintf(file, "  %-*s%*s   of the simulation\n", LABEL_WIDTH, "", VALUE_WIDTH,
			units_time(result->virtual_ns, virtual_time, sizeof(virtual_time)));
}

/* Prints what the driver could not do as recorded. */
static void print_lost(FILE *file, const struct replay_result *result)
{
	const struct {
		uint64_t count;
		const char *what;
	} lost[] = {
		{result->unmatched_imports, "imports without an export: ordinary buffers"},
		{result->foreign_accesses, "CPU accesses to another process's buffer: omitted"},
		{result->refused_tilings, "tilings that the GPU does not support: linear"},
		{result->ignored_tilings, "tiling changes of shared buffers: omitted"},
		{result->ignored_exports,
		 "exports of buffers already shared or bracketed: omitted"},
	};
	char text[32];
	size_t i;

	for (i = 0; i < sizeof(lost) / sizeof(lost[0]); i++) {
		if (lost[i].count)
			fprintf(file, "  %-*s%*s   %s\n", LABEL_WIDTH, "not as recorded",
				VALUE_WIDTH, units_count(lost[i].count, text, sizeof(text)),
				lost[i].what);
	}
}

static void verdict(char *text, size_t size, const struct options *options,
		    const struct replay_result *result)
{
	char errors[32];

	if (options->replay.verify == REPLAY_VERIFY_NONE)
		snprintf(text, size, "not verified");
	else if (result->verify_errors)
		snprintf(text, size, "%s wrong",
			 units_count(result->verify_errors, errors, sizeof(errors)));
	else
		snprintf(text, size, "correct");
}

static void print_verdict(FILE *file, const struct options *options,
			  const struct replay_result *result, const struct paint *paint)
{
	char text[48], count[32];

	verdict(text, sizeof(text), options, result);
	fprintf(file, "  %-*s%s%*s%s", LABEL_WIDTH, "contents",
		options->replay.verify == REPLAY_VERIFY_NONE ? ""
		: result->verify_errors                      ? paint->bad
							     : paint->good,
		VALUE_WIDTH, text, paint->off);
	if (options->replay.verify != REPLAY_VERIFY_NONE)
		fprintf(file, "   %s, %s blocks checked by the CPU%s",
			options->replay.verify == REPLAY_VERIFY_FULL ? "each page" : "each 64 KiB",
			units_count(result->blocks_checked, count, sizeof(count)),
			options->replay.commands ? "" : ", every use by the GPU");
	fputc('\n', file);
	if (!options->replay.connect)
		fprintf(file, "  %-*s%s%*s%s\n", LABEL_WIDTH, "rules broken",
			result->finding_count ? paint->bad : "", VALUE_WIDTH,
			result->finding_count
				? units_count(result->finding_count, count, sizeof(count))
				: "none",
			paint->off);
	if (result->status != REPLAY_CLEAN && !result->finding_count && !result->verify_errors)
		fprintf(file, "  %s%s%s\n", paint->bad,
			"the replay ended early; see the messages above", paint->off);
}

/* Prints the memory of a host in another process. */
static void print_host(FILE *file, const struct replay_result *result)
{
	char text[64];

	if (!result->statistics_known)
		return;
	fprintf(file,
		"  %-*s%*s   of the host; statistics cover all its clients during the replay\n",
		LABEL_WIDTH, "video memory", VALUE_WIDTH,
		units_bytes(result->vram_bytes, text, sizeof(text)));
	fprintf(file, "  %-*s%*s\n\n", LABEL_WIDTH, "aperture", VALUE_WIDTH,
		units_bytes(result->aperture_bytes, text, sizeof(text)));
}

static void print_memory(FILE *file, const struct options *options, const struct run *run)
{
	char text[64], peak[32];

	fprintf(file, "  %-*s%*s", LABEL_WIDTH, "video memory", VALUE_WIDTH,
		units_bytes(run->vram_bytes, text, sizeof(text)));
	if (run->memory.largest)
		fprintf(file, "   %g %% of the buffers of the largest submission",
			run->memory.percent);
	else if (run->memory.bytes == 0)
		fprintf(file, "   %g %% of the %s peak of live buffers", run->memory.percent,
			units_bytes(run->result.peak_live_bytes, peak, sizeof(peak)));
	fprintf(file, "\n  %-*s%*s\n", LABEL_WIDTH, "aperture", VALUE_WIDTH,
		units_bytes(run->result.aperture_bytes, text, sizeof(text)));
	fprintf(file, "  %-*s%*s\n", LABEL_WIDTH, "driver model", VALUE_WIDTH,
		run->result.wddm2 ? "WDDM 2.x" : "WDDM 1.x");
	if (options->replay.commands)
		fprintf(file, "  %-*s%*s\n", LABEL_WIDTH, "command adapter", VALUE_WIDTH,
			run->result.commands);
	fputc('\n', file);
}

void summary_print(FILE *file, const struct options *options, const struct run *run, bool color)
{
	const struct replay_result *result = &run->result;
	struct paint paint = paint_of(color);
	char text[64];
	size_t i;

	print_programs(file, result, &paint);
	if (options->replay.connect)
		print_host(file, result);
	else
		print_memory(file, options, run);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!row_has_value(&rows[i], options, result))
			continue;
		if (rows[i].kind != ROW_GAP) {
			fprintf(file, "  %-*s%*s", LABEL_WIDTH, rows[i].label, VALUE_WIDTH,
				value_of(&rows[i], result, text, sizeof(text)));
			print_note(file, &rows[i], result);
			print_parts(file, &rows[i], result);
			print_lock_note(file, &rows[i], result);
		}
		fputc('\n', file);
	}
	print_segments(file, result);
	print_thrash(file, options, result, &paint);
	fputc('\n', file);
	print_lost(file, result);
	print_time(file, options, result);
	print_verdict(file, options, result, &paint);
}

static void compare_line(FILE *file, const char *label, const struct run *runs, unsigned count,
			 const char *(*cell)(const struct run *run, char *text, size_t size))
{
	char text[64];
	unsigned i;

	fprintf(file, "  %-*s", LABEL_WIDTH, label);
	for (i = 0; i < count; i++)
		fprintf(file, "  %*s", VALUE_WIDTH, cell(&runs[i], text, sizeof(text)));
	fputc('\n', file);
}

static const char *vram_cell(const struct run *run, char *text, size_t size)
{
	return units_bytes(run->vram_bytes, text, size);
}

static const char *wall_cell(const struct run *run, char *text, size_t size)
{
	return units_time(run->result.wall_ns, text, size);
}

static const char *virtual_cell(const struct run *run, char *text, size_t size)
{
	return units_time(run->result.virtual_ns, text, size);
}

static const char *errors_cell(const struct run *run, char *text, size_t size)
{
	return units_count(run->result.verify_errors, text, size);
}

static const char *findings_cell(const struct run *run, char *text, size_t size)
{
	return units_count(run->result.finding_count, text, size);
}

/* A part is shown if it is not 0 in every run. */
static bool is_compared(const struct row *row, const struct options *options,
			const struct run *runs, unsigned count)
{
	unsigned k;

	if (!(row->when & ROW_PART))
		return row_has_value(row, options, &runs[0].result);
	for (k = 0; k < count; k++)
		if (number_of(row, &runs[k].result))
			return true;
	return false;
}

static void compare_segments(FILE *file, const struct run *runs, unsigned count)
{
	char text[32];
	unsigned i, k;

	fputc('\n', file);
	for (i = 0; i < runs[0].result.segment_count; i++) {
		fprintf(file, "  %-*s", LABEL_WIDTH, peak_label(&runs[0].result.segment[i]));
		for (k = 0; k < count; k++)
			fprintf(file, "  %*s", VALUE_WIDTH,
				units_bytes(runs[k].result.segment[i].peak_resident_bytes, text,
					    sizeof(text)));
		fputc('\n', file);
	}
}

void summary_compare(FILE *file, const struct options *options, const struct run *runs,
		     unsigned count, bool color)
{
	struct paint paint = paint_of(color);
	char text[64];
	size_t i;
	unsigned k;

	print_programs(file, &runs[0].result, &paint);
	fputs(paint.bold, file);
	compare_line(file, "", runs, count, memory_of);
	fputs(paint.off, file);
	compare_line(file, "video memory", runs, count, vram_cell);
	fputc('\n', file);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!is_compared(&rows[i], options, runs, count))
			continue;
		if (rows[i].kind != ROW_GAP) {
			fprintf(file, "  %-*s", LABEL_WIDTH, rows[i].label);
			for (k = 0; k < count; k++)
				fprintf(file, "  %*s", VALUE_WIDTH,
					value_of(&rows[i], &runs[k].result, text, sizeof(text)));
		}
		fputc('\n', file);
	}
	compare_segments(file, runs, count);
	compare_line(file, "time", runs, count, wall_cell);
	if (options->replay.host_kind == VIDMM_HOST_SIM && options->replay.gpu_time)
		compare_line(file, "simulated time", runs, count, virtual_cell);
	if (options->replay.verify != REPLAY_VERIFY_NONE)
		compare_line(file, "verify errors", runs, count, errors_cell);
	compare_line(file, "rules broken", runs, count, findings_cell);
}
