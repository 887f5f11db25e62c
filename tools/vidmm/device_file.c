/* SPDX-License-Identifier: MIT */
/* Implements device_file.h. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "device_file.h"

#define SYMBOL "vidmm_device_model"

static enum replay_status bad_file(const char *path, const char *why)
{
	/* The loader's own messages begin with the path already. */
	bool named = strncmp(why, path, strlen(path)) == 0;

	fprintf(stderr, "vidmm: %s%s%s (Q-421)\n", named ? "" : path, named ? "" : ": ", why);
	return REPLAY_BAD_INPUT;
}

enum replay_status device_file_load(const char *path, const struct vidmm_device_model **model)
{
	vidmm_device_model_fn *describe;
	void *module, *symbol;

	*model = NULL;
	if (!path)
		return REPLAY_CLEAN;
	if (access(path, R_OK) != 0)
		return bad_file(path, strerror(errno));
	module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!module)
		return bad_file(path, dlerror());
	symbol = dlsym(module, SYMBOL);
	if (!symbol)
		return bad_file(path, "the function " SYMBOL " is not exported (is its visibility "
				      "hidden?)");
	memcpy(&describe, &symbol, sizeof(describe));
	*model = describe();
	return *model ? REPLAY_CLEAN : bad_file(path, SYMBOL " returned NULL");
}
