/* SPDX-License-Identifier: MIT */
/* driver: a miniport in a shared object, and its registry settings. */
#ifndef VIDMM_TOOLS_DRIVER_H
#define VIDMM_TOOLS_DRIVER_H

#include <vidmm/vidmm.h>

#include "replay.h"

/*
 * Loads the shared object at PATH (NULL: softgpu) and stores its DriverEntry in *ENTRY. A failure
 * has been reported when it returns. The object stays loaded until the process ends, because
 * threads that it started may still be returning. Its undefined symbols are resolved by this
 * program, which exports the kernel services as libvidmm.so does.
 */
enum replay_status driver_load(const char *path, vidmm_driver_entry_fn **entry);
/*
 * Stores the path of the driver that TEXT names, NULL for "softgpu". A name without a slash is a
 * file in the current directory, not one that the loader searches for. Returns false when out of
 * memory.
 */
bool driver_path(const char *text, char **path);
/* The same for a shared object that is no driver: "softgpu" is a file, too. */
bool driver_file_path(const char *text, char **path);
/*
 * Returns false if the driver would ignore the setting silently: softgpu (DRIVER is NULL) reads no
 * registry value of that name. Which ones another driver reads is unknown.
 */
bool driver_has_setting(const char *driver, const char *name);
/*
 * Parses the value of a registry setting: a number, a size such as "64M", for softgpu's Model
 * "wddm1" or "wddm2", for VidmmEvictionPolicy the name of a policy. Returns false for other texts.
 */
bool driver_setting(const char *name, const char *text, uint64_t *value);
/* What driver_setting accepts for the setting, as a message says it. */
const char *driver_setting_expected(const char *name);
/*
 * Softgpu (DRIVER is NULL) gets Model 2, unless the settings name a model, or an interface version
 * of WDDM 1.x. (VIDMM_ADAPTER has the same default: src/program/setting.c, Q-170) SETTINGS has
 * memory for one more; the name is allocated. Returns false when out of memory.
 */
bool driver_choose_model(const char *driver, struct vidmm_registry_value *settings,
			 unsigned *count);

#endif
