/* SPDX-License-Identifier: MIT */
/* `vidmm rules`: the rule catalogue on the terminal. */
#ifndef VIDMM_TOOLS_RULES_H
#define VIDMM_TOOLS_RULES_H

/* argv[1]: an id (LOCK-07), a family (LOCK), or nothing for all. Returns the exit code. */
int rules_main(int argc, const char **argv);

#endif
