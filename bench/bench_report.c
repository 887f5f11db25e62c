/* SPDX-License-Identifier: MIT */
/* The report: a table, or JSON. */
#include "bench_internal.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static bool hidden(const struct bench_case *bench)
{
	return bench->skipped && strcmp(bench->skipped, "not selected") == 0;
}

/* Converts ns per operation to the unit of the case. Bytes per ns are GB/s. */
static double shown(const struct bench_case *bench, double ns)
{
	return bench->bytes ? (double)bench->bytes / ns : ns;
}

void bench_print_table(const struct bench_result *result)
{
	static const char *const verdicts[] = {"missed", "met"};
	printf("%-28s %10s %10s %10s %-5s %8s  %s\n", "case", "median", "fastest", "slowest",
	       "unit", "ratio", "goal and peer");
	for (const struct bench_case *bench = result->first; bench; bench = bench->next) {
		if (hidden(bench))
			continue;
		if (bench->skipped) {
			printf("%-28s %10s  (%s)\n", bench->name, "-", bench->skipped);
			continue;
		}
		printf("%-28s %10.2f %10.2f %10.2f %-5s", bench->name,
		       shown(bench, bench_median(bench, result->rounds)),
		       shown(bench, bench->ns[0]), shown(bench, bench->ns[result->rounds - 1]),
		       bench->bytes ? "GB/s" : "ns");
		double ratio = bench_ratio(result, bench);
		if (ratio > 0)
			printf(" %8.2f  of %s", ratio, bench->peer);
		int verdict = bench_verdict(result, bench);
		if (verdict >= 0)
			printf(", goal %.2f %s", bench->ratio_max, verdicts[verdict]);
		printf("\n");
	}
	if (result->two_core_scaling > 0)
		printf("two CPUs: a loop takes %.2f times as long beside a second one as alone%s\n",
		       result->two_core_scaling,
		       result->two_core_scaling < 1.3
			       ? ""
			       : "; goals of two-thread cases are not judged");
}

static json_t *case_json(const struct bench_result *result, const struct bench_case *bench)
{
	json_t *object =
		json_pack("{s:s, s:s}", "name", bench->name, "unit", bench->bytes ? "GB/s" : "ns");
	if (!object || bench->skipped) {
		if (object)
			json_object_set_new(object, "skipped", json_string(bench->skipped));
		return object;
	}
	json_object_set_new(object, "median",
			    json_real(shown(bench, bench_median(bench, result->rounds))));
	json_object_set_new(object, "fastest", json_real(shown(bench, bench->ns[0])));
	json_object_set_new(object, "slowest",
			    json_real(shown(bench, bench->ns[result->rounds - 1])));
	double ratio = bench_ratio(result, bench);
	if (ratio > 0) {
		json_object_set_new(object, "peer", json_string(bench->peer));
		json_object_set_new(object, "ratio", json_real(ratio));
	}
	int verdict = bench_verdict(result, bench);
	if (verdict >= 0) {
		json_object_set_new(object, "ratio_max", json_real(bench->ratio_max));
		json_object_set_new(object, "holds", json_boolean(verdict));
	}
	return object;
}

bool bench_print_json(const struct bench_result *result)
{
	json_t *cases = json_array();
	json_t *report =
		json_pack("{s:s, s:i, s:i, s:f}", "schema", "vidmm-bench", "version", 1, "rounds",
			  (int)result->rounds, "two_core_scaling", result->two_core_scaling);
	bool good = cases && report;
	for (const struct bench_case *bench = result->first; good && bench; bench = bench->next) {
		if (!hidden(bench))
			good = json_array_append_new(cases, case_json(result, bench)) == 0;
	}
	good = good && json_object_set(report, "cases", cases) == 0 &&
	       json_dumpf(report, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) == 0;
	if (good)
		printf("\n");
	json_decref(cases);
	json_decref(report);
	return good;
}
