/* SPDX-License-Identifier: MIT */
/* The result of `vidmm check` for people, and as JUnit for programs that collect test results. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "markup.h"
#include "rules.h"
#include "rules_table.h"
#include "wrap.h"

#define INDENT 6

/* ---- text ---- */

static void print_paragraph(FILE *file, const char *name, const char *text)
{
	int column = fprintf(file, "%*s%s", INDENT, "", name);

	wrap_print(file, text, column, INDENT, wrap_width(STDOUT_FILENO));
}

static void print_place(FILE *file, const struct check_broken *broken)
{
	fprintf(file, "  %s  %s, %" PRIu64 "%s, first at %.9f s",
		broken->rule[0] ? broken->rule : "-", check_severity(broken->rule), broken->count,
		broken->count == 1 ? " time" : " times", (double)broken->time_ns / 1e9);
	if (broken->process)
		fprintf(file, ", process %" PRIu32, broken->process);
	if (broken->object)
		fprintf(file, ", object 0x%08" PRIx32, broken->object);
	fputc('\n', file);
}

static void print_broken(FILE *file, const struct check_result *result,
			 const struct check_broken *broken)
{
	const struct suppression *suppression = check_suppression(result, broken);
	const struct vidmm_rule *rule = rules_find(broken->rule);

	print_place(file, broken);
	print_paragraph(file, "seen: ", broken->text);
	if (suppression) {
		print_paragraph(file, "accepted: ", suppression->reason);
		return;
	}
	if (!rule)
		return;
	print_paragraph(file, "rule: ", rule->text);
	if (strcmp(rule->error, "-") != 0)
		print_paragraph(file, "if broken: ", rule->error);
	if (check_mend(broken->rule))
		print_paragraph(file, "mend: ", check_mend(broken->rule));
	print_paragraph(file, "source: ", rule->source);
}

static void print_run(FILE *file, const struct check_result *result, const struct check_run *run)
{
	uint64_t found = check_findings(run, false), accepted = check_findings(run, true);

	fprintf(file, "%s: %" PRIu64 " finding%s in %" PRIu64 " events", run->path, found,
		found == 1 ? "" : "s", run->events);
	if (accepted)
		fprintf(file, ", %" PRIu64 " accepted", accepted);
	fputs(run->cut ? "; the recording is cut\n" : "\n", file);
	for (uint32_t i = 0; i < run->count; i++)
		print_broken(file, result, &run->broken[i]);
}

bool check_text(FILE *file, const struct check_result *result)
{
	for (uint32_t i = 0; i < result->run_count; i++)
		print_run(file, result, &result->runs[i]);
	for (uint32_t i = 0; i < result->suppressions.count; i++) {
		const struct suppression *s = &result->suppressions.all[i];

		if (!s->count)
			fprintf(file, "suppression in line %u (%s) matched no finding\n", s->line,
				s->rule);
	}
	return true;
}

/* ---- JUnit ---- */

static void junit_case(FILE *file, const struct check_run *run, const char *name)
{
	fputs("    <testcase classname=\"", file);
	markup_text(file, run->path);
	fputs("\" name=\"", file);
	markup_text(file, name);
	fputs("\"", file);
}

static void junit_broken(FILE *file, const struct check_result *result, const struct check_run *run,
			 const struct check_broken *broken)
{
	const struct suppression *suppression = check_suppression(result, broken);
	const struct vidmm_rule *rule = rules_find(broken->rule);

	junit_case(file, run, broken->rule);
	fputs(suppression ? ">\n      <skipped message=\"" : ">\n      <failure message=\"", file);
	markup_text(file, suppression ? suppression->reason : broken->text);
	if (suppression) {
		fputs("\"/>\n    </testcase>\n", file);
		return;
	}
	fprintf(file, "\" type=\"finding\">%" PRIu64 " times, first at %.9f s. ", broken->count,
		(double)broken->time_ns / 1e9);
	if (rule) {
		fputs("The rule: ", file);
		markup_text(file, rule->text);
	}
	fputs("</failure>\n    </testcase>\n", file);
}

static uint32_t count_rules(const struct check_run *run, bool suppressed)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < run->count; i++)
		count += (run->broken[i].suppression != 0) == suppressed;
	return count;
}

static void junit_run(FILE *file, const struct check_result *result, const struct check_run *run)
{
	fputs("  <testsuite name=\"", file);
	markup_text(file, run->path);
	fprintf(file,
		"\" tests=\"%" PRIu32 "\" failures=\"%" PRIu32 "\" errors=\"0\" skipped=\"%" PRIu32
		"\">\n",
		run->count ? run->count : 1, count_rules(run, false), count_rules(run, true));
	for (uint32_t i = 0; i < run->count; i++)
		junit_broken(file, result, run, &run->broken[i]);
	if (!run->count) {
		junit_case(file, run, "no rule is broken");
		fputs("/>\n", file);
	}
	fputs("  </testsuite>\n", file);
}

bool check_junit(FILE *file, const struct check_result *result)
{
	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"vidmm check\">\n",
	      file);
	for (uint32_t i = 0; i < result->run_count; i++)
		junit_run(file, result, &result->runs[i]);
	fputs("</testsuites>\n", file);
	return true;
}
