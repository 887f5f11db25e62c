/* SPDX-License-Identifier: MIT */
/*
 * Shared objects that are no policies, or answer nonsense. Macros replace a
 * member of the description or leave out a function.
 */
#include <stddef.h>
#include <vidmm/policy.h>

#ifndef VERSION
#define VERSION VIDMM_POLICY_VERSION
#endif
#ifndef SIZE
#define SIZE sizeof(struct vidmm_policy_description)
#endif
#ifndef NAME
#define NAME "garbage"
#endif
#ifndef BYTES
#define BYTES 24
#endif
#ifndef FLAGS
#define FLAGS 0
#endif

#ifdef NO_DESCRIPTION
#define RESULT NULL
#else
#define RESULT &description
#endif

static const struct vidmm_policy_description description = {
	.struct_size = SIZE,
	.version = VERSION,
	.name = NAME,
	.state_bytes = BYTES,
	.flags = FLAGS,
};

const struct vidmm_policy_description *vidmm_policy_describe(void)
{
	return description.version ? RESULT : NULL;
}

#ifndef NO_USED
void vidmm_policy_used(void *state, const struct vidmm_policy_use *use)
{
	uint64_t *words = state;

	words[use->submission % (BYTES / 8)] += use->allocation;
}
#endif

/* Pseudo-random numbers, different for each call and with any magnitude. */
#ifndef NO_VALUE
uint64_t vidmm_policy_value(void *state, const struct vidmm_policy_candidate *candidate)
{
	uint64_t *seed = (uint64_t *)state + candidate->used % (BYTES / 8);

	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *seed >> (*seed >> 58);
}
#endif
