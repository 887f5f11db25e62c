/* SPDX-License-Identifier: MIT */
/* policy: the orders of eviction by name, as the options and settings of `vidmm` take them. */
#ifndef VIDMM_TOOLS_POLICY_H
#define VIDMM_TOOLS_POLICY_H

#include "replay.h"

/* Finds the policy of a replay by its name. Returns false for an unknown one. */
bool policy_parse(const char *text, enum replay_policy *policy);
/*
 * Returns the name of a policy. That of REPLAY_POLICY_DEFAULT is the name of the library's default.
 */
const char *policy_name(enum replay_policy policy);
/* Finds the value of the setting VidmmEvictionPolicy by the name of the policy. */
bool policy_setting(const char *text, uint64_t *value);
/* All names that policy_parse accepts, for messages. */
#define POLICY_NAMES         "lru, clock, mru, predicted or reference"
/* All names that policy_setting accepts. */
#define POLICY_SETTING_NAMES "lru, clock, mru or predicted"

#endif
