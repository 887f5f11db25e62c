/* SPDX-License-Identifier: MIT */
/* Loads a miniport from a shared object. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vidmm/softgpu.h>

#include "driver.h"
#include "policy.h"
#include "sanitizer.h"
#include "units.h"

#define EVICTION_POLICY "VidmmEvictionPolicy"
#define FIRST_OF_WDDM2  0x5000u /* the first interface version of 2.0 */

/*
 * Registry values that softgpu reads (vidmm/softgpu.h; a test compares the lists). Another name is
 * refused, because softgpu would ignore it silently.
 */
static const char *const softgpu_settings[] = {
	"ApertureSize",
	"ApertureCoherent",
	"VramCpuVisible",
	"VramBanks",
	"SwizzlingRanges",
	"DmaBufferSize",
	"AllocationListSize",
	"PatchLocationListSize",
	"DmaBufferSegmentSet",
	"PagingBufferSize",
	"PagingBufferSegment",
	"PagingNode",
	"EngineBytesPerUs",
	"HostLinkBytesPerUs",
	"HostLinkLatencyNs",
	"HostLinkPasses",
	"MoveContent",
	"PrePatch",
	"PerEngineTdr",
	"PreemptionAware",
	"VideoPresentSources",
	"RefreshRate",
	"FlipMmio",
	"LinkedAdapters",
	"InterfaceVersion",
	"Model",
	"PageTableLevels",
	"VramPageSize",
	"HardwareQueues",
};

static enum replay_status bad_driver(const char *path, const char *why)
{
	/* The loader's own messages begin with the path already. */
	if (strncmp(why, path, strlen(path)) == 0)
		fprintf(stderr, "vidmm: %s\n", why);
	else
		fprintf(stderr, "vidmm: %s: %s\n", path, why);
	return REPLAY_BAD_INPUT;
}

enum replay_status driver_load(const char *path, vidmm_driver_entry_fn **entry)
{
	void *module, *symbol;

	if (!path) {
		*entry = softgpu_driver_entry;
		return REPLAY_CLEAN;
	}
	if (access(path, R_OK) != 0)
		return bad_driver(path, strerror(errno));
	sanitizer_start_with_runtime(path);
	module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!module)
		return bad_driver(path, dlerror());
	symbol = dlsym(module, "DriverEntry");
	if (!symbol)
		return bad_driver(path, "no DriverEntry is exported (is its visibility hidden?)");
	memcpy(entry, &symbol, sizeof(symbol));
	return REPLAY_CLEAN;
}

bool driver_path(const char *text, char **path)
{
	*path = NULL;
	return strcmp(text, "softgpu") == 0 || driver_file_path(text, path);
}

bool driver_file_path(const char *text, char **path)
{
	size_t size = strlen(text) + sizeof("./");

	*path = malloc(size);
	if (*path)
		snprintf(*path, size, "%s%s", strchr(text, '/') ? "" : "./", text);
	return *path != NULL;
}

bool driver_has_setting(const char *driver, const char *name)
{
	for (size_t i = 0; i < sizeof(softgpu_settings) / sizeof(softgpu_settings[0]); i++)
		if (strcmp(softgpu_settings[i], name) == 0)
			return true;
	/* The library checks its own settings (DXC-26). */
	return driver || strncmp(name, "Vidmm", strlen("Vidmm")) == 0;
}

bool driver_setting(const char *name, const char *text, uint64_t *value)
{
	static const struct {
		const char *text;
		uint64_t value;
	} models[] = {{"wddm1", SOFTGPU_MODEL_WDDM1}, {"wddm2", SOFTGPU_MODEL_WDDM2}};

	for (size_t i = 0; strcmp(name, "Model") == 0 && i < 2; i++) {
		if (strcmp(text, models[i].text) != 0)
			continue;
		*value = models[i].value;
		return true;
	}
	if (strcmp(name, EVICTION_POLICY) == 0 && policy_setting(text, value))
		return true;
	return units_parse_u64(text, value) || units_parse_size(text, value);
}

const char *driver_setting_expected(const char *name)
{
	return strcmp(name, EVICTION_POLICY) == 0 ? POLICY_SETTING_NAMES ", or its number"
						  : "a number or a size";
}

bool driver_choose_model(const char *driver, struct vidmm_registry_value *settings, unsigned *count)
{
	if (driver)
		return true;
	for (unsigned i = 0; i < *count; i++) {
		const struct vidmm_registry_value *s = &settings[i];

		if (strcmp(s->name, "Model") == 0 || (strcmp(s->name, "InterfaceVersion") == 0 &&
						      s->value && s->value < FIRST_OF_WDDM2))
			return true;
	}
	settings[*count].name = strdup("Model");
	settings[*count].value = SOFTGPU_MODEL_WDDM2;
	return settings[(*count)++].name != NULL;
}
