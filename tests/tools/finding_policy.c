/* SPDX-License-Identifier: MIT */
/*
 * An eviction policy that breaks rule NT-02 in each call: it lowers the IRQL to a higher one. A
 * replay with this policy has findings, which no recording causes.
 */
#include <ntddk.h>
#include <vidmm/policy.h>

static const struct vidmm_policy_description description = {
	.struct_size = sizeof(description),
	.version = VIDMM_POLICY_VERSION,
	.name = "finding",
};

const struct vidmm_policy_description *vidmm_policy_describe(void)
{
	return &description;
}

void vidmm_policy_used(void *state, const struct vidmm_policy_use *use)
{
	(void)state;
	(void)use;
}

uint64_t vidmm_policy_value(void *state, const struct vidmm_policy_candidate *candidate)
{
	(void)state;
	KeLowerIrql(HIGH_LEVEL);
	return candidate->used;
}
