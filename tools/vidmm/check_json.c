/* SPDX-License-Identifier: MIT */
/* The result of `vidmm check` as JSON (docs/schemas/check.schema.json) and as SARIF 2.1.0. */
#include <stdlib.h>
#include <string.h>
#include <vidmm/vidmm.h>

#include "check.h"
#include "json_text.h"
#include "rules.h"
#include "rules_table.h"

#define SARIF_SCHEMA \
	"https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

/* Returns a list with an element for each index, NULL when out of memory. */
static json_t *list_of(uint32_t count, const void *from,
		       json_t *(*element)(const void *from, uint32_t index))
{
	json_t *list = json_array();

	for (uint32_t i = 0; list && i < count; i++)
		if (json_array_append_new(list, element(from, i))) {
			json_decref(list);
			return NULL;
		}
	return list;
}

/* The path as a URI reference: bytes other than the unreserved characters and "/" as %XX. */
static json_t *uri_of(const char *path)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
	char *text = malloc(3 * strlen(path) + 1), *end = text;
	json_t *uri;

	if (!text)
		return NULL;
	*end = '\0';
	for (; *path; path++)
		end += sprintf(end, strchr(plain, *path) ? "%c" : "%%%02X", (unsigned char)*path);
	uri = json_string(text);
	free(text);
	return uri;
}

/* A run, with what it belongs to. */
struct in_result {
	const struct check_result *result;
	const struct check_run *run;
};

/* ---- JSON ---- */

static json_t *finding_of(const void *from, uint32_t index)
{
	const struct in_result *in = from;
	const struct check_broken *b = &in->run->broken[index];
	const struct suppression *suppression = check_suppression(in->result, b);
	const struct vidmm_rule *rule = rules_find(b->rule);

	return json_pack("{s:s, s:s, s:s?, s:I, s:o, s:o?, s:s?, s:s?, s:{s:I, s:I, s:I, s:I}}",
			 "rule", b->rule, "severity", check_severity(b->rule), "mend",
			 check_mend(b->rule), "count", (json_int_t)b->count, "text",
			 json_string(b->text), "accepted",
			 suppression ? json_text(suppression->reason) : NULL, "rule_text",
			 rule ? rule->text : NULL, "source", rule ? rule->source : NULL, "first",
			 "time_ns", (json_int_t)b->time_ns, "sequence", (json_int_t)b->sequence,
			 "process", (json_int_t)b->process, "object", (json_int_t)b->object);
}

static json_t *recording_of(const void *from, uint32_t index)
{
	const struct check_result *result = from;
	const struct in_result in = {result, &result->runs[index]};

	return json_pack("{s:o, s:I, s:b, s:o}", "path", json_text(in.run->path), "events",
			 (json_int_t)in.run->events, "cut", in.run->cut, "findings",
			 list_of(in.run->count, &in, finding_of));
}

static json_t *suppression_of(const void *from, uint32_t index)
{
	const struct suppression *s = &((const struct check_result *)from)->suppressions.all[index];

	return json_pack("{s:o, s:o?, s:o, s:I, s:I}", "rule", json_text(s->rule), "part",
			 s->part ? json_text(s->part) : NULL, "reason", json_text(s->reason),
			 "line", (json_int_t)s->line, "count", (json_int_t)s->count);
}

bool check_json(FILE *file, const struct check_result *result)
{
	return json_write(
		file, json_pack("{s:i, s:o, s:o}", "schema_version", 1, "recordings",
				list_of(result->run_count, result, recording_of), "suppressions",
				list_of(result->suppressions.count, result, suppression_of)));
}

/* ---- SARIF ---- */

static json_t *sarif_result(const void *from, uint32_t index)
{
	const struct in_result *in = from;
	const struct check_broken *b = &in->run->broken[index];
	const struct suppression *suppression = check_suppression(in->result, b);
	json_t *suppressions = suppression
				       ? json_pack("[{s:s, s:o}]", "kind", "external",
						   "justification", json_text(suppression->reason))
				       : json_array();

	return json_pack("{s:s, s:s, s:{s:o}, s:I, s:[{s:{s:{s:o}}}], s:o, s:{s:I, s:I, s:I, s:I}}",
			 "ruleId", b->rule, "level",
			 strcmp(check_severity(b->rule), "warning") == 0 ? "warning" : "error",
			 "message", "text", json_string(b->text), "occurrenceCount",
			 (json_int_t)b->count, "locations", "physicalLocation", "artifactLocation",
			 "uri", uri_of(in->run->path), "suppressions", suppressions, "properties",
			 "time_ns", (json_int_t)b->time_ns, "sequence", (json_int_t)b->sequence,
			 "process", (json_int_t)b->process, "object", (json_int_t)b->object);
}

/* Adds the rule to a list if no earlier finding has it. */
static bool add_rule(json_t *rules, json_t *seen, const char *id)
{
	const struct vidmm_rule *rule = rules_find(id);
	const char *text = rule ? rule->text : "Windows would have made a bug check.";

	if (json_object_get(seen, id))
		return true;
	return json_object_set_new(seen, id, json_true()) == 0 &&
	       json_array_append_new(rules,
				     json_pack("{s:s, s:{s:s}, s:{s:s}}", "id", id,
					       "shortDescription", "text", text, "help", "text",
					       rule ? rule->source : "docs/check.md")) == 0;
}

static json_t *sarif_rules(const struct check_result *result)
{
	json_t *rules = json_array(), *seen = json_object();
	bool good = rules && seen;

	for (uint32_t r = 0; r < result->run_count; r++)
		for (uint32_t i = 0; good && i < result->runs[r].count; i++)
			good = add_rule(rules, seen, result->runs[r].broken[i].rule);
	json_decref(seen);
	if (good)
		return rules;
	json_decref(rules);
	return NULL;
}

/* The findings of all recordings, in one list. */
static json_t *sarif_results(const struct check_result *result)
{
	json_t *all = json_array();

	for (uint32_t r = 0; r < result->run_count; r++) {
		const struct in_result in = {result, &result->runs[r]};
		json_t *of_run = list_of(in.run->count, &in, sarif_result);

		if (!of_run || json_array_extend(all, of_run)) {
			json_decref(all);
			all = NULL;
		}
		json_decref(of_run);
	}
	return all;
}

bool check_sarif(FILE *file, const struct check_result *result)
{
	return json_write(file,
			  json_pack("{s:s, s:s, s:[{s:{s:{s:s, s:s, s:o}}, s:o}]}", "$schema",
				    SARIF_SCHEMA, "version", "2.1.0", "runs", "tool", "driver",
				    "name", "vidmm", "version", vidmm_version(), "rules",
				    sarif_rules(result), "results", sarif_results(result)));
}
