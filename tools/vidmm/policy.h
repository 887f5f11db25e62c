/* SPDX-License-Identifier: MIT */
/*
 * policy: the orders of eviction, as the options and settings of `vidmm` take them: by name, or a
 * shared object of three functions (<vidmm/policy.h>, Q-352).
 */
#ifndef VIDMM_TOOLS_POLICY_H
#define VIDMM_TOOLS_POLICY_H

#include "replay.h"

/* The files that a process loads. Values from REPLAY_POLICY_FILE on name them. */
#define POLICY_FILES_MAX 8u

/*
 * Finds the policy of a replay by its name. A text with a slash is a file, which is loaded until
 * the process ends. Returns REPLAY_USAGE for an unknown name, and REPLAY_BAD_INPUT, after a
 * message, for a file that is no policy.
 */
enum replay_status policy_parse(const char *text, enum replay_policy *policy);
/*
 * Returns the name of a policy. That of REPLAY_POLICY_DEFAULT is the name of the library's default.
 */
const char *policy_name(enum replay_policy policy);
/* Returns the functions of a policy from a file; NULL: it is not from a file. */
const struct vidmm_policy *policy_functions(enum replay_policy policy);
/*
 * Loads a file as policy_parse does, and stores its functions. Stores nothing if that fails.
 */
enum replay_status policy_file(const char *path, const struct vidmm_policy **functions);
/* Finds the value of the setting VidmmEvictionPolicy by the name of the policy. */
bool policy_setting(const char *text, uint64_t *value);
/* All names that policy_parse accepts, for messages. */
#define POLICY_NAMES         "lru, clock, mru, predicted or reference"
/* All that it accepts. */
#define POLICY_ARGUMENTS     POLICY_NAMES ", or ./FILE.so"
/* All names that policy_setting accepts. */
#define POLICY_SETTING_NAMES "lru, clock, mru or predicted"

#endif
