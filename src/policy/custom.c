/* SPDX-License-Identifier: MIT */
/* Implements custom.h. */
#include "policy/custom.h"

#include <stdio.h>
#include <string.h>

#include "policy/order.h"

#define KNOWN_FLAGS (VIDMM_POLICY_VALUES_FALL | VIDMM_POLICY_SCATTERS)

/* A name is also an element of a list of policies and of a line of a CSV file. */
static bool name_has_form(const char *name)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-_";
	size_t length = strlen(name);

	return length && length <= VIDMM_POLICY_NAME_MAX && name[0] >= 'a' && name[0] <= 'z' &&
	       strspn(name, allowed) == length;
}

static bool name_is_taken(const char *name)
{
	for (uint32_t i = 0; i < VMM_POLICY_NAMED; i++)
		if (strcmp(name, vmm_policy_order(i)->name) == 0)
			return true;
	return strcmp(name, "reference") == 0 || strcmp(name, "all") == 0;
}

static const char *missing(const struct vidmm_policy *policy)
{
	return !policy->describe ? "describe"
	       : !policy->used   ? "used"
	       : !policy->value  ? "value"
				 : NULL;
}

/* Returns false for a description of a version or a size that this library cannot read. */
static bool is_readable(const struct vidmm_policy_description *d, char *why, size_t size)
{
	if (!d)
		snprintf(why, size, "Q-351: the policy's description is NULL");
	else if (d->version != VIDMM_POLICY_VERSION)
		snprintf(why, size, "Q-351: the policy is of version %u: expected version %u",
			 d->version, VIDMM_POLICY_VERSION);
	else if (d->struct_size != sizeof(*d))
		snprintf(why, size,
			 "Q-351: the policy's description has struct_size %u: expected %zu",
			 d->struct_size, sizeof(*d));
	else
		return true;
	return false;
}

static bool name_is_valid(const char *name, char *why, size_t size)
{
	if (!name || !name_has_form(name))
		snprintf(why, size,
			 "Q-351: the policy's name is \"%.40s\": expected 1 to %u of a-z, 0-9, - "
			 "and _, the first a letter",
			 name ? name : "(null)", VIDMM_POLICY_NAME_MAX);
	else if (name_is_taken(name))
		snprintf(why, size, "Q-351: the policy's name \"%s\" is one of vidmm's", name);
	else
		return true;
	return false;
}

const struct vidmm_policy_description *vmm_policy_description(const struct vidmm_policy *policy,
							      char *why, size_t size)
{
	const char *function = missing(policy);
	const struct vidmm_policy_description *d = function ? NULL : policy->describe();

	if (function)
		snprintf(why, size, "Q-351: the function %s of the policy is NULL", function);
	if (function || !is_readable(d, why, size) || !name_is_valid(d->name, why, size))
		return NULL;
	if (d->state_bytes > VIDMM_POLICY_STATE_MAX)
		snprintf(why, size,
			 "Q-351: the policy \"%s\" has state_bytes %u: expected up to %u", d->name,
			 d->state_bytes, VIDMM_POLICY_STATE_MAX);
	else if (d->flags & ~KNOWN_FLAGS)
		snprintf(why, size, "Q-351: the policy \"%s\" has flags 0x%x: only 0x%x are known",
			 d->name, d->flags, KNOWN_FLAGS);
	else
		return d;
	return NULL;
}
