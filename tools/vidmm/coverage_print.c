/* SPDX-License-Identifier: MIT */
/* What `vidmm coverage` prints. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "coverage.h"
#include "json_text.h"
#include "status_names.h"
#include "wrap.h"

#define NAME_WIDTH 40

/* ---- text ---- */

static void print_status(FILE *file, const struct covered_status *s, const char *between)
{
	const char *name = status_name(s->status);

	if (name)
		fprintf(file, "%s%s %" PRIu64, between, name, s->count);
	else
		fprintf(file, "%s0x%08" PRIx32 " %" PRIu64, between, s->status, s->count);
}

static void print_reason(FILE *file, const struct coverage *coverage, unsigned type,
			 unsigned reason)
{
	const struct covered *covered = &coverage->type[type].reason[reason];
	const char *between = "  ";

	fprintf(file, "  %-*s %10" PRIu64, NAME_WIDTH, coverage_reason(coverage, type, reason),
		covered->count);
	for (uint32_t i = 0; i < coverage->status_count; i++) {
		const struct covered_status *s = &coverage->statuses[i];

		if (s->type != type || s->reason != reason)
			continue;
		print_status(file, s, between);
		between = ", ";
	}
	if (covered->flags)
		fprintf(file, "  flags 0x%" PRIx64, covered->flags);
	fputc('\n', file);
}

/* The names without events, wrapped. */
static void print_missing(FILE *file, const struct coverage *coverage, unsigned type)
{
	static const char start[] = "  not seen:";
	int column = fprintf(file, "%s", start), width = wrap_width(STDOUT_FILENO);

	for (unsigned reason = 0; reason < COVERAGE_REASONS_MAX; reason++) {
		const char *name = coverage_reason(coverage, type, reason);

		if (!name || coverage->type[type].reason[reason].count)
			continue;
		if (column + 1 + (int)strlen(name) > width)
			column = fprintf(file, "\n%*s", (int)strlen(start), "") - 1;
		column += fprintf(file, " %s", name);
	}
	fputc('\n', file);
}

static void print_type(FILE *file, const struct coverage *coverage, unsigned type)
{
	unsigned seen, names = coverage_names(coverage, type, &seen);

	if (!names)
		return;
	fprintf(file, "\n%s: %u of %u\n", coverage_type(coverage, type), seen, names);
	for (unsigned reason = 0; reason < COVERAGE_REASONS_MAX; reason++)
		if (coverage->type[type].reason[reason].count &&
		    coverage_reason(coverage, type, reason))
			print_reason(file, coverage, type, reason);
	if (seen < names)
		print_missing(file, coverage, type);
}

void coverage_text(FILE *file, const struct coverage *coverage)
{
	fprintf(file, "%" PRIu64 " events\n\ntypes of events\n", coverage->events);
	for (unsigned type = 1; type < VIDMM_EVENT_TYPE_COUNT; type++)
		if (coverage_type(coverage, type))
			fprintf(file, "  %-*s %10" PRIu64 "\n", NAME_WIDTH,
				coverage_type(coverage, type), coverage->type[type].count);
	for (unsigned type = 1; type < VIDMM_EVENT_TYPE_COUNT; type++)
		print_type(file, coverage, type);
}

/* ---- JSON ---- */

static json_t *statuses_of(const struct coverage *coverage, unsigned type, unsigned reason)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < coverage->status_count; i++) {
		const struct covered_status *s = &coverage->statuses[i];

		if (s->type == type && s->reason == reason)
			json_array_append_new(list, json_pack("{s:I, s:s?, s:I}", "status",
							      (json_int_t)s->status, "name",
							      status_name(s->status), "count",
							      (json_int_t)s->count));
	}
	return list;
}

static json_t *reasons_of(const struct coverage *coverage, unsigned type)
{
	json_t *list = json_array();

	for (unsigned reason = 0; reason < COVERAGE_REASONS_MAX; reason++) {
		const struct covered *covered = &coverage->type[type].reason[reason];
		const char *name = coverage_reason(coverage, type, reason);

		if (name)
			json_array_append_new(list, json_pack("{s:s, s:I, s:I, s:o}", "name", name,
							      "count", (json_int_t)covered->count,
							      "flags", (json_int_t)covered->flags,
							      "statuses",
							      statuses_of(coverage, type, reason)));
	}
	return list;
}

static json_t *types_of(const struct coverage *coverage)
{
	json_t *list = json_array();

	for (unsigned type = 1; type < VIDMM_EVENT_TYPE_COUNT; type++)
		if (coverage_type(coverage, type))
			json_array_append_new(list,
					      json_pack("{s:s, s:I, s:o}", "name",
							coverage_type(coverage, type), "count",
							(json_int_t)coverage->type[type].count,
							"reasons", reasons_of(coverage, type)));
	return list;
}

bool coverage_json(FILE *file, const struct coverage *coverage)
{
	return json_write(file,
			  json_pack("{s:i, s:I, s:o}", "schema_version", 1, "events",
				    (json_int_t)coverage->events, "types", types_of(coverage)));
}
