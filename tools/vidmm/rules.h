/* SPDX-License-Identifier: MIT */
/* `vidmm rules`: prints rules of the catalog (docs/rules). */
#ifndef VIDMM_TOOLS_RULES_H
#define VIDMM_TOOLS_RULES_H

struct vidmm_rule; /* rules_table.h */

/* Returns the rule with that id, in any case of letters; NULL: there is none. */
const struct vidmm_rule *rules_find(const char *id);
/* argv[1] is an id (LOCK-07), a family (LOCK), or absent for all rules. Returns the exit code. */
int rules_main(int argc, const char **argv);

#endif
