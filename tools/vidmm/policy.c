/* SPDX-License-Identifier: MIT */
/* Implements policy.h. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "policy.h"
#include "policy/custom.h"

/* By enum vidmm_eviction_policy, then those that only a replay has. */
static const char *const names[] = {
	[VIDMM_EVICTION_LRU] = "lru",
	[VIDMM_EVICTION_CLOCK] = "clock",
	[VIDMM_EVICTION_MRU] = "mru",
	[VIDMM_EVICTION_PREDICTED] = "predicted",
	[REPLAY_POLICY_REFERENCE - REPLAY_POLICY_FIRST] = "reference",
};

/* The policies from files. They stay loaded, because an adapter calls them until it stops. */
static struct file {
	struct vidmm_policy functions;
	char name[VIDMM_POLICY_NAME_MAX + 1];
} files[POLICY_FILES_MAX];
static unsigned file_count;

static bool bad_file(const char *path, const char *why)
{
	/* The loader's own messages begin with the path already. */
	bool named = strncmp(why, path, strlen(path)) == 0;

	fprintf(stderr, "vidmm: %s%s%s%s\n", named ? "" : path, named ? "" : ": ", why,
		strncmp(why, "Q-", 2) == 0 ? "" : " (Q-352)");
	return false;
}

/* FUNCTION: a pointer to a function. */
static bool find(void *module, const char *path, const char *symbol, void *function)
{
	void *found = dlsym(module, symbol);
	char why[160];

	if (!found) {
		snprintf(why, sizeof(why),
			 "Q-352: the function %s is not exported, which a policy of version %u "
			 "has (is its visibility hidden?)",
			 symbol, VIDMM_POLICY_VERSION);
		return bad_file(path, why);
	}
	memcpy(function, &found, sizeof(found));
	return true;
}

static bool load(const char *path, struct file *file)
{
	const struct vidmm_policy_description *description;
	struct vidmm_policy *f = &file->functions;
	char why[160];
	void *module;

	if (access(path, R_OK) != 0)
		return bad_file(path, strerror(errno));
	module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!module)
		return bad_file(path, dlerror());
	if (!find(module, path, "vidmm_policy_describe", &f->describe) ||
	    !find(module, path, "vidmm_policy_used", &f->used) ||
	    !find(module, path, "vidmm_policy_value", &f->value))
		return false;
	description = vmm_policy_description(f, why, sizeof(why));
	if (!description)
		return bad_file(path, why);
	snprintf(file->name, sizeof(file->name), "%s", description->name);
	return true;
}

static enum replay_status parse_file(const char *path, enum replay_policy *policy)
{
	struct file file;

	if (!load(path, &file))
		return REPLAY_BAD_INPUT;
	for (unsigned i = 0; i < file_count; i++) {
		*policy = (enum replay_policy)(REPLAY_POLICY_FILE + i);
		if (memcmp(&files[i].functions, &file.functions, sizeof(file.functions)) == 0)
			return REPLAY_CLEAN;
		if (strcmp(files[i].name, file.name) != 0)
			continue;
		bad_file(path, "Q-352: another file has a policy of the same name");
		return REPLAY_BAD_INPUT;
	}
	if (file_count == POLICY_FILES_MAX) {
		bad_file(path, "Q-352: at most 8 policies can be files");
		return REPLAY_BAD_INPUT;
	}
	*policy = (enum replay_policy)(REPLAY_POLICY_FILE + file_count);
	files[file_count++] = file;
	return REPLAY_CLEAN;
}

enum replay_status policy_parse(const char *text, enum replay_policy *policy)
{
	if (strchr(text, '/'))
		return parse_file(text, policy);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(text, names[i]) != 0)
			continue;
		*policy = (enum replay_policy)(i + REPLAY_POLICY_FIRST);
		return REPLAY_CLEAN;
	}
	return REPLAY_USAGE;
}

const char *policy_name(enum replay_policy policy)
{
	if (policy >= REPLAY_POLICY_FILE)
		return files[policy - REPLAY_POLICY_FILE].name;
	return names[policy == REPLAY_POLICY_DEFAULT ? (unsigned)VIDMM_EVICTION_POLICY_DEFAULT
						     : policy - REPLAY_POLICY_FIRST];
}

const struct vidmm_policy *policy_functions(enum replay_policy policy)
{
	return policy < REPLAY_POLICY_FILE ? NULL : &files[policy - REPLAY_POLICY_FILE].functions;
}

enum replay_status policy_file(const char *path, const struct vidmm_policy **functions)
{
	enum replay_policy policy;
	enum replay_status status = parse_file(path, &policy);

	if (status == REPLAY_CLEAN)
		*functions = policy_functions(policy);
	return status;
}

bool policy_setting(const char *text, uint64_t *value)
{
	enum replay_policy policy;

	if (strchr(text, '/') || policy_parse(text, &policy) != REPLAY_CLEAN ||
	    policy == REPLAY_POLICY_REFERENCE)
		return false;
	*value = policy - REPLAY_POLICY_FIRST;
	return true;
}
