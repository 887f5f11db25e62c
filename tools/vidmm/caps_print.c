/* SPDX-License-Identifier: MIT */
/*
 * The report as text: everything that the miniport reported, then its findings, then whether the
 * adapter starts.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "caps.h"
#include "caps_names.h"
#include "status_names.h"
#include "units.h"
#include "wrap.h"

#define LABEL_WIDTH     30
/* With fewer columns left than this, the flags of a segment are printed on the next line. */
#define FLAGS_WIDTH_MIN 26

struct page {
	FILE *file;
	int width;
	const char *bold, *good, *bad, *dim, *off;
};

/* Writes a size in the largest unit that divides it: 256 MiB, 16,388 KiB, 4,097 B. */
static const char *exact_bytes(uint64_t bytes, char *text, size_t size)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	char count[32];
	unsigned unit = 0;

	while (unit < 4 && bytes && bytes % 1024 == 0) {
		bytes /= 1024;
		unit++;
	}
	snprintf(text, size, "%s %s", units_count(bytes, count, sizeof(count)), units[unit]);
	return text;
}

static void heading(const struct page *page, const char *text)
{
	fprintf(page->file, "\n%s%s%s\n", page->bold, text, page->off);
}

static void row(const struct page *page, const char *label, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void row(const struct page *page, const char *label, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(page->file, "  %-*s ", LABEL_WIDTH, label);
	wrap_print(page->file, text, LABEL_WIDTH + 3, LABEL_WIDTH + 3, page->width);
}

/* ---- the device and its segments ---- */

static void print_device(const struct page *page, const struct vidmm_adapter_report *report)
{
	char label[16], size[32];
	uint32_t i;

	if (report->interface_version)
		row(page, "interface version", "0x%" PRIx32 " (WDDM %s)", report->interface_version,
		    interface_name(report->interface_version));
	else
		row(page, "interface version", "none: no table was registered");
	for (i = 0; i < report->bar_count; i++) {
		snprintf(label, sizeof(label), "BAR %" PRIu32, i);
		row(page, label, "%s at 0x%" PRIx64,
		    exact_bytes(report->bar[i].size_bytes, size, sizeof(size)),
		    report->bar[i].physical_address);
	}
}

enum { COLUMN_ID, COLUMN_KIND, COLUMN_SIZE, COLUMN_LIMIT, COLUMN_GPU, COLUMN_CPU, COLUMN_COUNT };

struct segment_line {
	char cell[COLUMN_COUNT][40];
	char flags[1024];
};

static const struct segment_line segment_title = {
	{"id", "kind", "Size", "CommitLimit", "GPU address", "CPU address"}, "flags"};

static void cpu_cell(const struct vidmm_adapter_report *report,
		     const struct vidmm_segment_report *segment, char *text, size_t size)
{
	uint64_t address = segment->cpu_translated_address;
	uint32_t i;

	snprintf(text, size, "-");
	if (!(segment->flags & 0x4) || segment->flags & 0x1)
		return;
	snprintf(text, size, "0x%" PRIx64, address);
	for (i = 0; i < report->bar_count; i++) {
		uint64_t offset = address - report->bar[i].physical_address;

		if (offset < report->bar[i].size_bytes)
			snprintf(text, size, "BAR %" PRIu32 " + 0x%" PRIx64, i, offset);
	}
}

/* Writes the names of the effective flags, then those that are ignored for the kind of segment. */
static void flags_cell(const struct vidmm_segment_report *segment, char *text, size_t size)
{
	uint32_t ignored = segment->effective_flags || segment->flags == 0
				   ? segment->flags & ~segment->effective_flags
				   : 0;
	char names[512];
	size_t used;

	flags_text(&segment_flags, segment->flags & ~ignored, names, sizeof(names));
	used = (size_t)snprintf(text, size, "%s", names);
	if (ignored && used < size)
		snprintf(text + used, size - used, " (ignored: %s)",
			 flags_text(&segment_flags, ignored, names, sizeof(names)));
}

static void fill_line(const struct vidmm_adapter_report *report, uint32_t index,
		      struct segment_line *line)
{
	const struct vidmm_segment_report *segment = &report->segment[index];
	char size[32];

	memset(line, 0, sizeof(*line));
	snprintf(line->cell[COLUMN_ID], sizeof(line->cell[0]), "%" PRIu32, index + 1);
	snprintf(line->cell[COLUMN_KIND], sizeof(line->cell[0]), "%s",
		 segment->flags & 0x1   ? "aperture"
		 : segment->flags & 0x2 ? "AGP"
					: "memory");
	snprintf(line->cell[COLUMN_SIZE], sizeof(line->cell[0]), "%s",
		 exact_bytes(segment->size_bytes, size, sizeof(size)));
	snprintf(line->cell[COLUMN_LIMIT], sizeof(line->cell[0]), "%s",
		 exact_bytes(segment->commit_limit_bytes, size, sizeof(size)));
	snprintf(line->cell[COLUMN_GPU], sizeof(line->cell[0]), "0x%" PRIx64,
		 segment->base_address);
	cpu_cell(report, segment, line->cell[COLUMN_CPU], sizeof(line->cell[0]));
	flags_cell(segment, line->flags, sizeof(line->flags));
}

/* The flags are the last column or, on a narrow terminal, the next line. */
static void print_line(const struct page *page, const struct segment_line *line, const int *widths)
{
	int column = 2, i;

	for (i = 0; i < COLUMN_COUNT; i++)
		column += widths[i] + 2;
	bool behind = page->width - column >= FLAGS_WIDTH_MIN;

	for (i = 0; i < COLUMN_COUNT; i++) {
		int width = i == COLUMN_SIZE || i == COLUMN_LIMIT ? widths[i] : -widths[i];

		if (i == COLUMN_COUNT - 1 && !behind)
			width = 0; /* no trailing blanks */
		fprintf(page->file, "  %*s", width, line->cell[i]);
	}
	if (behind) {
		fputs("  ", page->file);
		wrap_print(page->file, line->flags, column, column, page->width);
	} else if (line == &segment_title) {
		fputc('\n', page->file);
	} else {
		fprintf(page->file, "\n%*s", widths[0] + 4, "");
		wrap_print(page->file, line->flags, widths[0] + 4, widths[0] + 4, page->width);
	}
}

static void print_banks(const struct page *page, const struct vidmm_segment_report *segment,
			int indent)
{
	char text[VIDMM_REPORT_BANKS_MAX * 24 + 64], size[32];
	size_t used;
	uint32_t i;

	if (!(segment->flags & 0x8))
		return;
	used = (size_t)snprintf(text, sizeof(text), "NbOfBanks %" PRIu32 "%s", segment->bank_count,
				segment->bank_end_count ? ", ends:" : "");
	for (i = 0; i < segment->bank_end_count; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, " 0x%" PRIx64,
					 segment->bank_end[i]);
	if (segment->bank_end_count)
		snprintf(text + used, sizeof(text) - used, " and %s",
			 exact_bytes(segment->size_bytes, size, sizeof(size)));
	fprintf(page->file, "%*s", indent, "");
	wrap_print(page->file, text, indent, indent, page->width);
}

static void print_segments(const struct page *page, const struct vidmm_adapter_report *report)
{
	struct segment_line line;
	int widths[COLUMN_COUNT], i;
	uint32_t k;

	if (report->described_count == 0) {
		if (report->step >= VIDMM_START_SEGMENTS)
			row(page, "NbSegment", "%" PRIu32 ", none described",
			    report->segment_count);
		return;
	}
	for (i = 0; i < COLUMN_COUNT; i++)
		widths[i] = (int)strlen(segment_title.cell[i]);
	for (k = 0; k < report->described_count; k++) {
		fill_line(report, k, &line);
		for (i = 0; i < COLUMN_COUNT; i++) {
			int length = (int)strlen(line.cell[i]);

			widths[i] = length > widths[i] ? length : widths[i];
		}
	}
	heading(page, "Segments");
	fputs(page->dim, page->file);
	print_line(page, &segment_title, widths);
	fputs(page->off, page->file);
	for (k = 0; k < report->described_count; k++) {
		fill_line(report, k, &line);
		print_line(page, &line, widths);
		print_banks(page, &report->segment[k], widths[0] + 4);
	}
}

static void print_paging_buffer(const struct page *page, const struct vidmm_adapter_report *report)
{
	char size[32];

	if (report->described_count == 0)
		return;
	fputc('\n', page->file);
	row(page, "PagingBufferSegmentId", "%" PRIu32 "%s", report->paging_buffer_segment_id,
	    report->paging_buffer_segment_id ? "" : " (system memory)");
	row(page, "PagingBufferSize", "%s",
	    exact_bytes(report->paging_buffer_size, size, sizeof(size)));
	row(page, "PagingBufferPrivateDataSize", "%s",
	    exact_bytes(report->paging_buffer_private_data_size, size, sizeof(size)));
}

/* ---- capabilities ---- */

static void print_flags(const struct page *page, const struct cap *cap, uint64_t value,
			const struct flag_names *flags)
{
	char names[512];

	row(page, cap->name, value ? "0x%" PRIx64 " %s" : "0x0", value,
	    flags_text(flags, (uint32_t)value, names, sizeof(names)));
}

static void print_cap(const struct page *page, const struct cap *cap, uint64_t value)
{
	char text[32];

	switch (cap->kind) {
	case CAP_COUNT:
		row(page, cap->name, "%s", units_count(value, text, sizeof(text)));
		break;
	case CAP_BYTES:
		row(page, cap->name, "%s", exact_bytes(value, text, sizeof(text)));
		break;
	case CAP_ADDRESS:
		row(page, cap->name, "0x%" PRIx64, value);
		break;
	case CAP_SCHEDULING:
		print_flags(page, cap, value, &scheduling_flags);
		break;
	case CAP_MEMORY:
		print_flags(page, cap, value, &memory_flags);
		break;
	case CAP_WDDM:
		row(page, cap->name, "0x%" PRIx64 " (%s)", value,
		    wddm_version_name((uint32_t)value));
		break;
	case CAP_GRAPHICS_PREEMPTION:
	case CAP_COMPUTE_PREEMPTION:
		row(page, cap->name, "%" PRIu64 " (%s)", value,
		    preemption_name((uint32_t)value, cap->kind == CAP_COMPUTE_PREEMPTION));
		break;
	case CAP_BOOLEAN:
		row(page, cap->name, "%s", value ? "TRUE" : "FALSE");
		break;
	}
}

static void print_caps(const struct page *page, const struct vidmm_adapter_report *report)
{
	unsigned i;

	if (!report->driver_caps_bytes)
		return;
	heading(page, "DXGK_DRIVERCAPS");
	for (i = 0; i < caps_count; i++) {
		if (caps_table[i].since_bytes <= report->driver_caps_bytes)
			print_cap(page, &caps_table[i], cap_value(&caps_table[i], report));
	}
}

static void print_nodes(const struct page *page, const struct vidmm_adapter_report *report)
{
	char label[16];
	uint32_t i;

	if (!report->node_count)
		return;
	heading(page, "Nodes");
	for (i = 0; i < report->node_count; i++) {
		bool paging = i == (report->node_count > 1 ? report->paging_node : 0);

		snprintf(label, sizeof(label), "node %" PRIu32, i);
		row(page, label, "up to %" PRIu32 " packets outstanding%s", report->node_depth,
		    paging ? ", paging" : "");
	}
}

/* ---- the verdict ---- */

static void print_complaint(const struct page *page, const struct caps_complaint *complaint)
{
	bool broken = complaint->type != VIDMM_EVENT_REASON;
	const char *label = complaint->rule[0] ? complaint->rule : broken ? "fatal" : "reason";
	char text[600];

	snprintf(text, sizeof(text), complaint->count > 1 ? "%s (%" PRIu64 " times)" : "%s",
		 complaint->text, complaint->count);
	fprintf(page->file, "  %s%-8s%s ", broken ? page->bad : page->bold, label, page->off);
	wrap_print(page->file, text, 11, 11, page->width);
}

static void print_complaints(const struct page *page, const struct caps_result *result)
{
	const char *rule = NULL;
	unsigned i;

	if (!result->complaint_count)
		return;
	heading(page, result->violation_count ? "Findings" : "Notes");
	for (i = 0; i < result->complaint_count; i++) {
		print_complaint(page, &result->complaints[i]);
		if (!rule && result->complaints[i].rule[0])
			rule = result->complaints[i].rule;
	}
	if (rule)
		fprintf(page->file, "  %s`vidmm rules %s` explains this rule%s\n", page->dim, rule,
			page->off);
}

static void print_verdict(const struct page *page, const struct caps_result *result)
{
	const char *name = status_name((uint32_t)result->status);
	char text[256];

	fputc('\n', page->file);
	if (result->hung) {
		fprintf(page->file, "%sthe driver hangs%s\n", page->bad, page->off);
		return;
	}
	if (result->status < 0) {
		snprintf(text, sizeof(text),
			 name ? "with %s (0x%08" PRIx32 ") in %s" : "with %s0x%08" PRIx32 " in %s",
			 name ? name : "", (uint32_t)result->status,
			 step_name(result->report.step));
		fprintf(page->file, "%srefused%s ", page->bad, page->off);
		wrap_print(page->file, text, 8, 2, page->width);
		return;
	}
	if (result->violation_count)
		fprintf(page->file, "%sthe adapter starts, but it breaks rules%s\n", page->bad,
			page->off);
	else
		fprintf(page->file, "%sthe adapter starts%s\n", page->good, page->off);
}

void caps_print(FILE *file, const struct caps_options *options, const struct caps_result *result,
		bool color, int width)
{
	const struct page plain = {file, width, "", "", "", "", ""},
			  painted = {file,       width,     "\033[1m", "\033[32m",
				     "\033[31m", "\033[2m", "\033[0m"};
	const struct page *page = color ? &painted : &plain;
	const struct vidmm_adapter_report *report = &result->report;

	fprintf(file, "%s%s%s\n", page->bold, options->driver ? options->driver : "softgpu",
		page->off);
	if (!options->quiet) {
		print_device(page, report);
		print_caps(page, report);
		print_nodes(page, report);
		print_segments(page, report);
		print_paging_buffer(page, report);
	}
	print_complaints(page, result);
	print_verdict(page, result);
}
