/* SPDX-License-Identifier: MIT */
/* `vidmm rules`: prints rules from the table that scripts/rules.py generates. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "replay.h"
#include "rules.h"
#include "rules_table.h"
#include "verb_help.h"
#include "wrap.h"

#define TEXT_COLUMN 10
#define MORE        " ..."

static void print_rule(const struct vidmm_rule *rule)
{
	printf("%s\n\n  ", rule->id);
	wrap_print(stdout, rule->text, 2, 2, wrap_width(STDOUT_FILENO));
	printf("\n  if broken   %s\n  versions    %s\n  provenance  %s\n  source      %s\n",
	       rule->error, rule->versions, rule->provenance, rule->source);
}

static void print_line(const struct vidmm_rule *rule)
{
	int columns = wrap_width(STDOUT_FILENO) - TEXT_COLUMN, length = (int)strlen(rule->text);

	if (length <= columns || !isatty(STDOUT_FILENO)) {
		printf("%-8s  %s\n", rule->id, rule->text);
		return;
	}
	columns -= (int)strlen(MORE);
	/* Cut at a blank, so that no multibyte character is cut. */
	while (columns > 0 && rule->text[columns] != ' ')
		columns--;
	printf("%-8s  %.*s" MORE "\n", rule->id, columns, rule->text);
}

/* Returns whether the rule belongs to FAMILY: LOCK-07 belongs to LOCK. */
static bool in_family(const struct vidmm_rule *rule, const char *family)
{
	size_t length = strlen(family);

	return strncasecmp(rule->id, family, length) == 0 && rule->id[length] == '-';
}

const struct vidmm_rule *rules_find(const char *id)
{
	for (size_t i = 0; i < vidmm_rules_count; i++)
		if (strcasecmp(vidmm_rules[i].id, id) == 0)
			return &vidmm_rules[i];
	return NULL;
}

/* Prints a line for each rule of the family, or for each rule if FAMILY is NULL. */
static size_t print_family(const char *family)
{
	size_t shown = 0;

	for (size_t i = 0; i < vidmm_rules_count; i++) {
		if (family && !in_family(&vidmm_rules[i], family))
			continue;
		print_line(&vidmm_rules[i]);
		shown++;
	}
	return shown;
}

static const char usage[] =
	"usage: vidmm rules [ID|FAMILY]...\n"
	"Explains the rules with these ids (LOCK-07). Lists those of a family (LOCK), or all, a\n"
	"line each: on a terminal the beginning of the text, else all of it.\n";

int rules_main(int argc, const char **argv)
{
	int result = REPLAY_CLEAN;

	if (verb_help(argc, argv, 0, INT_MAX, usage, &result))
		return result;
	if (argc == 1)
		(void)print_family(NULL);
	for (int i = 1; i < argc; i++) {
		const struct vidmm_rule *rule = rules_find(argv[i]);

		if (i > 1)
			printf("\n");
		if (rule)
			print_rule(rule);
		else if (!print_family(argv[i])) {
			fprintf(stderr, "vidmm rules: there is no rule or family \"%s\"\n",
				argv[i]);
			result = REPLAY_USAGE;
		}
	}
	return result;
}
