/* SPDX-License-Identifier: MIT */
/* Implements policy.h. */
#include <string.h>

#include "policy.h"

/* By enum vidmm_eviction_policy, then those that only a replay has. */
static const char *const names[] = {
	[VIDMM_EVICTION_LRU] = "lru",
	[VIDMM_EVICTION_CLOCK] = "clock",
	[VIDMM_EVICTION_MRU] = "mru",
	[VIDMM_EVICTION_PREDICTED] = "predicted",
	[REPLAY_POLICY_REFERENCE - REPLAY_POLICY_FIRST] = "reference",
};

bool policy_parse(const char *text, enum replay_policy *policy)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(text, names[i]) != 0)
			continue;
		*policy = (enum replay_policy)(i + REPLAY_POLICY_FIRST);
		return true;
	}
	return false;
}

const char *policy_name(enum replay_policy policy)
{
	return names[policy == REPLAY_POLICY_DEFAULT ? (unsigned)VIDMM_EVICTION_POLICY_DEFAULT
						     : policy - REPLAY_POLICY_FIRST];
}

bool policy_setting(const char *text, uint64_t *value)
{
	enum replay_policy policy;

	if (!policy_parse(text, &policy) || policy == REPLAY_POLICY_REFERENCE)
		return false;
	*value = policy - REPLAY_POLICY_FIRST;
	return true;
}
