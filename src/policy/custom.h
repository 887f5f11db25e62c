/* SPDX-License-Identifier: MIT */
/* custom: what is required of a policy of the embedder (include/vidmm/policy.h, Q-351). */
#ifndef VMM_POLICY_CUSTOM_H
#define VMM_POLICY_CUSTOM_H

#include <vidmm/policy.h>

#include "base/base.h"

/*
 * Calls policy->describe. Returns the description, if the policy is complete and the description
 * valid. Otherwise returns NULL and writes what is wrong, with the rule id, to WHY.
 */
const struct vidmm_policy_description *vmm_policy_description(const struct vidmm_policy *policy,
							      char *why, size_t size);

#endif
