/* SPDX-License-Identifier: MIT */
/*
 * The page at the end of `vidmm run`: what was not supported first, then findings and reasons,
 * calls by function and status, and memory.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <wddm_kernel.h>

#include "run.h"
#include "status_names.h"
#include "units.h"
#include "wire/wire.h"

struct call_row {
	uint64_t key, count;
};

static uint32_t status_of(uint64_t key)
{
	return (uint32_t)key;
}

static const char *function_of(uint64_t key)
{
	const struct vmm_wire_operation *operation =
		vmm_wire_operation((uint32_t)(key >> 32) & 0x7FFFFFFFu);

	return operation ? operation->name : "unknown";
}

static bool is_unsupported(uint32_t status)
{
	return status == (uint32_t)STATUS_NOT_SUPPORTED ||
	       status == (uint32_t)STATUS_NOT_IMPLEMENTED;
}

static const char *status_text(uint32_t status, char *text, size_t size)
{
	const char *name = status_name(status);

	if (name && (int32_t)status < 0)
		snprintf(text, size, "%s (0x%08" PRIx32 ")", name, status);
	else
		snprintf(text, size, name ? "%s" : "%s0x%08" PRIx32, name ? name : "", status);
	return text;
}

static const char *times(uint64_t count, char *text, size_t size)
{
	char number[32];

	if (count == 1)
		snprintf(text, size, "once");
	else
		snprintf(text, size, "%s times", units_count(count, number, sizeof(number)));
	return text;
}

/* ---- calls ---- */

static int by_key(const void *a, const void *b)
{
	const struct call_row *x = a, *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

/* Returns the calls in the order of functions and statuses, ended by a row with key 0. */
static struct call_row *sorted_calls(const struct vmm_report *report)
{
	struct call_row *rows = calloc(VMM_REPORT_CALLS + 1, sizeof(*rows));
	size_t count = 0;

	for (size_t i = 0; rows && i < VMM_REPORT_CALLS; i++) {
		uint64_t key = atomic_load(&report->calls[i].key);

		if (key)
			rows[count++] =
				(struct call_row){key, atomic_load(&report->calls[i].count)};
	}
	if (rows)
		qsort(rows, count, sizeof(*rows), by_key);
	return rows;
}

static void print_calls(FILE *file, const struct vmm_report *report, const struct call_row *rows)
{
	char number[32], status[80];
	uint64_t lost = atomic_load(&report->calls_lost);

	if (!rows->key) {
		fprintf(file, "\nCalls\n  none: the program %s\n",
			atomic_load(&report->loaded)
				? "loaded the library and called no D3DKMT function"
				: "did not load libdxcore.so");
		return;
	}
	fprintf(file, "\nCalls\n");
	for (const struct call_row *row = rows; row->key; row++) {
		bool same = row > rows && row[-1].key >> 32 == row->key >> 32;

		fprintf(file, "  %-44s %12s  %s\n", same ? "" : function_of(row->key),
			units_count(row->count, number, sizeof(number)),
			status_text(status_of(row->key), status, sizeof(status)));
	}
	if (lost)
		fprintf(file, "  and %s more calls, for which the report had no row\n",
			units_count(lost, number, sizeof(number)));
}

/* ---- findings and reasons ---- */

enum part { PART_UNSUPPORTED, PART_FINDINGS, PART_REASONS };

static bool belongs(const struct vmm_report_text *row, enum part part)
{
	if (!atomic_load(&row->written))
		return false;
	if (row->type != VIDMM_EVENT_REASON)
		return part == PART_FINDINGS;
	return part == (is_unsupported(row->status) ? PART_UNSUPPORTED : PART_REASONS);
}

static bool print_title(FILE *file, const char *title, bool printed)
{
	if (!printed)
		fprintf(file, "\n%s\n", title);
	return true;
}

static bool print_texts(FILE *file, const struct vmm_report *report, enum part part,
			const char *title, bool printed)
{
	char count[48], status[80];

	for (size_t i = 0; i < VMM_REPORT_TEXTS; i++) {
		const struct vmm_report_text *row = &report->texts[i];

		if (!belongs(row, part))
			continue;
		printed = print_title(file, title, printed);
		fprintf(file, "  %s", row->text);
		if (part == PART_REASONS)
			fprintf(file, "  %s", status_text(row->status, status, sizeof(status)));
		if (atomic_load(&row->count) > 1)
			fprintf(file, "  (%s)",
				times(atomic_load(&row->count), count, sizeof(count)));
		fputc('\n', file);
	}
	return printed;
}

static void print_unsupported(FILE *file, const struct vmm_report *report,
			      const struct call_row *rows)
{
	static const char title[] = "Not supported";
	bool printed = false;
	char count[48];

	for (; rows->key; rows++) {
		if (!is_unsupported(status_of(rows->key)))
			continue;
		printed = print_title(file, title, printed);
		fprintf(file, "  %s, %s\n", function_of(rows->key),
			times(rows->count, count, sizeof(count)));
	}
	(void)print_texts(file, report, PART_UNSUPPORTED, title, printed);
}

static void print_findings(FILE *file, const struct vmm_report *report)
{
	uint64_t lost = atomic_load(&report->texts_lost);

	if (print_texts(file, report, PART_FINDINGS, "Findings", false))
		fprintf(file, "  `vidmm rules ID` explains a rule\n");
	(void)print_texts(file, report, PART_REASONS, "Reasons of failed calls", false);
	if (lost)
		fprintf(file, "  and %" PRIu64 " more texts, for which the report had no row\n",
			lost);
}

/* ---- memory ---- */

static void print_segments(FILE *file, const struct vidmm_adapter_statistics *s)
{
	char bytes[32], size[32];

	for (uint32_t i = 0; i < s->segment_count && i < VIDMM_SEGMENTS_MAX; i++)
		fprintf(file, "  segment %-3u %-10s %12s of %s\n", i + 1,
			s->segment[i].aperture ? "aperture" : "memory",
			units_bytes(s->segment[i].peak_resident_bytes, bytes, sizeof(bytes)),
			units_bytes(s->segment[i].size_bytes, size, sizeof(size)));
	fprintf(file, "  backing stores         %12s of system memory\n",
		units_bytes(s->peak_system_bytes, bytes, sizeof(bytes)));
}

static void print_traffic(FILE *file, const struct vidmm_adapter_statistics *s)
{
	char in[32], out[32];

	fprintf(file,
		"  paged in %s, paged out %s; evictions %" PRIu64 ", splits %" PRIu64
		", renames %" PRIu64 ", locks that waited %" PRIu64 "\n",
		units_bytes(s->bytes_paged_in, in, sizeof(in)),
		units_bytes(s->bytes_paged_out, out, sizeof(out)), s->evictions, s->splits,
		s->renames, s->lock_waits);
}

static void print_adapters(FILE *file, const struct vmm_report *report)
{
	for (size_t i = 0; i < VMM_REPORT_ADAPTERS; i++) {
		const struct vmm_report_adapter *row = &report->adapters[i];
		uint32_t owner = atomic_load(&row->owner), latest = atomic_load(&row->latest);

		if (!owner || !latest || latest > 2)
			continue;
		if (owner == 1)
			fprintf(file, "\nMemory of the adapter, at its peak\n");
		else
			fprintf(file, "\nMemory of the adapter in process %u, at its peak\n",
				owner - 1);
		print_segments(file, &row->samples[latest - 1]);
		print_traffic(file, &row->samples[latest - 1]);
	}
}

static void print_lost(FILE *file, const struct vmm_report *report)
{
	uint64_t adapters = atomic_load(&report->adapters_lost),
		 processes = atomic_load(&report->processes_lost);

	if (adapters)
		fprintf(file, "\n%" PRIu64 " more adapters, for which the report had no row\n",
			adapters);
	/* Counted with each allocation and each name, so it is no number of processes. */
	if (processes)
		fprintf(file, "\nmore processes than rows of the report: some are missing here\n");
}

static void print_processes(FILE *file, const struct vmm_report *report)
{
	bool printed = false;
	char peak[32], end[32];

	for (size_t i = 0; i < VMM_REPORT_PROCESSES; i++) {
		const struct vmm_report_process *row = &report->processes[i];

		if (!atomic_load(&row->key) || !atomic_load(&row->pid))
			continue;
		printed = print_title(file, "Allocations of each process, at their peak", printed);
		fprintf(file, "  %-22.*s %12s, and %s at the end (pid %u)\n",
			VMM_REPORT_NAME_BYTES - 1, row->name,
			units_bytes(atomic_load(&row->peak_bytes), peak, sizeof(peak)),
			units_bytes(atomic_load(&row->bytes), end, sizeof(end)),
			atomic_load(&row->pid));
	}
}

/* ---- the page ---- */

static void print_end(FILE *file, const struct run_options *options, const struct run_end *end)
{
	fprintf(file, "vidmm run: %s ", options->program[0]);
	if (!end)
		fprintf(file, "was not started: the host has no adapter\n");
	else if (WIFSIGNALED(end->status))
		fprintf(file, "was ended by signal %d (%s)\n", WTERMSIG(end->status),
			strsignal(WTERMSIG(end->status)));
	else
		fprintf(file, "exited with %d\n", WEXITSTATUS(end->status));
	fprintf(file, "  adapter on %s, %s\n",
		options->adapter.driver ? options->adapter.driver : "softgpu",
		options->serve ? "in a host beside the program" : "in the program's process");
	if (end && WIFSIGNALED(end->host_status))
		fprintf(file,
			"  the host was ended by signal %d before the program or while it "
			"stopped\n",
			WTERMSIG(end->host_status));
}

static void print_namespace(FILE *file, const struct vmm_report *report)
{
	uint32_t step = atomic_load(&report->namespace_step);

	if (step)
		fprintf(file,
			"\n" RUN_WSL_PATH " was not the library: %s (%s).\n"
			"  A program that opens this path did not find it.\n",
			run_namespace_step(step),
			strerror((int)atomic_load(&report->namespace_error)));
}

void run_page_print(FILE *file, const struct run_options *options, const struct vmm_report *report,
		    const struct run_end *end)
{
	struct call_row *rows = sorted_calls(report);

	print_end(file, options, end);
	if (!rows) {
		fprintf(file, "  out of memory\n");
		return;
	}
	print_unsupported(file, report, rows);
	print_findings(file, report);
	print_calls(file, report, rows);
	print_adapters(file, report);
	print_processes(file, report);
	print_lost(file, report);
	print_namespace(file, report);
	free(rows);
}
