/* SPDX-License-Identifier: MIT */
/* `vidmm rules`: prints rules from the table that scripts/rules.py generates. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "replay.h"
#include "rules.h"
#include "rules_table.h"
#include "wrap.h"

#define LINE_WIDTH WRAP_WIDTH_DEFAULT

static void print_rule(const struct vidmm_rule *rule)
{
	printf("%s\n\n  ", rule->id);
	wrap_print(stdout, rule->text, 2, 2, LINE_WIDTH);
	printf("\n  if broken   %s\n  versions    %s\n  provenance  %s\n  source      %s\n",
	       rule->error, rule->versions, rule->provenance, rule->source);
}

static void print_line(const struct vidmm_rule *rule)
{
	int columns = LINE_WIDTH - 10, length = (int)strlen(rule->text);

	if (length <= columns) {
		printf("%-8s  %s\n", rule->id, rule->text);
		return;
	}
	/* Cut at a blank, so that no multibyte character is cut. */
	while (columns > 0 && rule->text[columns] != ' ')
		columns--;
	printf("%-8s  %.*s ...\n", rule->id, columns, rule->text);
}

/* Returns whether the rule belongs to FAMILY: LOCK-07 belongs to LOCK. */
static bool in_family(const struct vidmm_rule *rule, const char *family)
{
	size_t length = strlen(family);

	return strncasecmp(rule->id, family, length) == 0 && rule->id[length] == '-';
}

int rules_main(int argc, const char **argv)
{
	size_t i, shown = 0;

	if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
		fprintf(stderr, "usage: vidmm rules [ID|FAMILY]\n");
		return REPLAY_USAGE;
	}
	for (i = 0; i < vidmm_rules_count; i++) {
		if (argc == 2 && strcasecmp(vidmm_rules[i].id, argv[1]) == 0) {
			print_rule(&vidmm_rules[i]);
			return REPLAY_CLEAN;
		}
	}
	for (i = 0; i < vidmm_rules_count; i++) {
		if (argc == 2 && !in_family(&vidmm_rules[i], argv[1]))
			continue;
		print_line(&vidmm_rules[i]);
		shown++;
	}
	if (shown)
		return REPLAY_CLEAN;
	fprintf(stderr, "vidmm rules: there is no rule or family \"%s\"\n", argv[1]);
	return REPLAY_USAGE;
}
