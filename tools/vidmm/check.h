/* SPDX-License-Identifier: MIT */
/*
 * `vidmm check`: which rules recorded events broke, as text, JSON, SARIF 2.1.0 or JUnit
 * (docs/check.md).
 */
#ifndef VIDMM_TOOLS_CHECK_H
#define VIDMM_TOOLS_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The rule that a bug check stands under. */
#define CHECK_BUG_CHECK "BUGCHECK"
#define CHECK_RULE_MAX  16u

/* A line of the file of --suppress. */
struct suppression {
	char *rule, *part, *reason; /* part: of a finding's text; NULL: any finding of the rule */
	unsigned line;
	uint64_t count; /* findings that it has suppressed */
};
struct suppressions {
	struct suppression *all;
	uint32_t count, capacity;
};

/* The findings of a rule that no line suppresses, or that the same line does. */
struct check_broken {
	char rule[CHECK_RULE_MAX];
	uint64_t count;
	/* of the first finding */
	uint64_t time_ns, sequence;
	uint32_t process, object;
	char *text;           /* UTF-8 (json_text.h) */
	uint32_t suppression; /* index + 1 in suppressions; 0: none */
};

struct check_run {
	const char *path; /* of the recording */
	struct check_broken *broken;
	uint32_t count, capacity;
	uint64_t events;
	bool cut; /* the recording ends in the middle of a chunk */
};

struct check_result {
	struct check_run *runs;
	uint32_t run_count;
	struct suppressions suppressions;
};

/* Returns the line that suppresses it, NULL if there is none. */
const struct suppression *check_suppression(const struct check_result *result,
					    const struct check_broken *broken);
/* Returns how many findings of the run are suppressed, or are not. */
uint64_t check_findings(const struct check_run *run, bool suppressed);

/* ---- check_mend.c ---- */
/* Returns what to change so that the rule is kept; NULL: the text of the rule says it. */
const char *check_mend(const char *rule);
/* Returns "fatal", "error" or "warning". */
const char *check_severity(const char *rule);

/* ---- suppressions.c ---- */
/* Reads a file of suppressions. Returns false after a message; *STATUS is the exit code. */
bool suppressions_read(const char *path, struct suppressions *all, int *status);
/* Returns the index + 1 of the first line that covers the finding; 0: none. */
uint32_t suppressions_find(const struct suppressions *all, const char *rule, const char *text);
void suppressions_finish(struct suppressions *all);

/* ---- check_text.c and check_json.c; each returns false when out of memory ---- */
bool check_text(FILE *file, const struct check_result *result);
bool check_junit(FILE *file, const struct check_result *result);
bool check_json(FILE *file, const struct check_result *result);
bool check_sarif(FILE *file, const struct check_result *result);

int check_main(int argc, const char **argv);

#endif
