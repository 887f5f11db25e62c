/* SPDX-License-Identifier: MIT */
/* The report of `vidmm conform`, as text and as JSON. */
#include <inttypes.h>
#include <jansson.h>

#include "conform.h"
#include "json_text.h"

#define SCHEMA_VERSION 1

static void count(const struct conform_outcome *outcomes, unsigned counts[CONFORM_BAD_ADAPTER])
{
	for (unsigned i = 0; i < conform_situation_count; i++)
		counts[outcomes[i].state]++;
}

static void print_one(FILE *file, const struct conform_situation *situation,
		      const struct conform_outcome *outcome, bool color)
{
	const char *paint = outcome->state == CONFORM_BROKE ? "\033[31m"
			    : outcome->state == CONFORM_OK  ? "\033[32m"
							    : "";

	fprintf(file, "  %-15s %s%-13s%s  %s\n", situation->name, color ? paint : "",
		conform_states[outcome->state], color && paint[0] ? "\033[0m" : "",
		outcome->detail);
	for (uint32_t i = 0; i < outcome->finding_count; i++) {
		const struct conform_finding *finding = &outcome->findings[i];

		fprintf(file, "                  %s: %s", finding->rule, finding->text);
		if (finding->count > 1)
			fprintf(file, " (%" PRIu64 " times)", finding->count);
		fputc('\n', file);
	}
}

void conform_print(FILE *file, const struct conform_options *options,
		   const struct conform_outcome *outcomes, bool color)
{
	unsigned counts[CONFORM_BAD_ADAPTER] = {0};

	fprintf(file, "%s\n\n", options->adapter.driver ? options->adapter.driver : "softgpu");
	for (unsigned i = 0; i < conform_situation_count; i++)
		print_one(file, &conform_situations[i], &outcomes[i], color);
	count(outcomes, counts);
	fprintf(file, "\n%u ok, %u broke, %u not exercised\n", counts[CONFORM_OK],
		counts[CONFORM_BROKE], counts[CONFORM_NOT_EXERCISED]);
}

static json_t *findings_of(const struct conform_outcome *outcome)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < outcome->finding_count; i++) {
		const struct conform_finding *finding = &outcome->findings[i];

		json_array_append_new(list,
				      json_pack("{s:o,s:o,s:I}", "rule", json_text(finding->rule),
						"text", json_text(finding->text), "count",
						(json_int_t)finding->count));
	}
	return list;
}

static json_t *situations_of(const struct conform_outcome *outcomes)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < conform_situation_count; i++) {
		const struct conform_outcome *o = &outcomes[i];

		json_array_append_new(list, json_pack("{s:s,s:s,s:s,s:o,s:I,s:I,s:o}", "name",
						      conform_situations[i].name, "summary",
						      conform_situations[i].summary, "outcome",
						      conform_states[o->state], "detail",
						      json_text(o->detail), "blocks_compared",
						      (json_int_t)o->blocks_compared,
						      "blocks_wrong", (json_int_t)o->blocks_wrong,
						      "findings", findings_of(o)));
	}
	return list;
}

bool conform_json(FILE *file, const struct conform_options *options,
		  const struct conform_outcome *outcomes, int exit_code)
{
	unsigned counts[CONFORM_BAD_ADAPTER] = {0};
	json_t *object;

	count(outcomes, counts);
	object = json_pack(
		"{s:i,s:s,s:o,s:o,s:s,s:o,s:i,s:i,s:i,s:i}", "schema_version", SCHEMA_VERSION,
		"vidmm_version", vidmm_version(), "driver",
		json_text(options->adapter.driver ? options->adapter.driver : "softgpu"),
		"commands", options->commands ? json_text(options->commands) : json_null(),
		"backend", options->adapter.host_kind == VIDMM_HOST_SIM ? "sim" : "linux",
		"situations", situations_of(outcomes), "ok", (int)counts[CONFORM_OK], "broke",
		(int)counts[CONFORM_BROKE], "not_exercised", (int)counts[CONFORM_NOT_EXERCISED],
		"exit_code", exit_code);
	return json_write(file, object);
}
