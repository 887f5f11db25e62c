/* SPDX-License-Identifier: MIT */
/* Implements command_file.h. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command_file.h"

static enum replay_status bad_file(const char *path, const char *why)
{
	/* The loader's own messages begin with the path already. */
	bool named = strncmp(why, path, strlen(path)) == 0;

	fprintf(stderr, "vidmm: %s%s%s (Q-400)\n", named ? "" : path, named ? "" : ": ", why);
	return REPLAY_BAD_INPUT;
}

static enum replay_status load(const char *path, vidmm_commands_describe_fn **describe)
{
	void *module, *symbol;

	if (access(path, R_OK) != 0)
		return bad_file(path, strerror(errno));
	module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!module)
		return bad_file(path, dlerror());
	symbol = dlsym(module, "vidmm_commands_describe");
	if (!symbol)
		return bad_file(path, "the function vidmm_commands_describe is not exported (is "
				      "its visibility hidden?)");
	memcpy(describe, &symbol, sizeof(symbol));
	return REPLAY_CLEAN;
}

enum replay_status command_file_load(const char *path, vidmm_commands_describe_fn **describe)
{
	size_t size = strlen(path) + sizeof("./");
	char *full = malloc(size);
	enum replay_status status = REPLAY_ENVIRONMENT;

	if (full) {
		snprintf(full, size, "%s%s", strchr(path, '/') ? "" : "./", path);
		status = load(full, describe);
	}
	free(full);
	return status;
}
