/* SPDX-License-Identifier: MIT */
/* A miniport in a file. */
#ifndef VIDMM_TOOLS_DRIVER_H
#define VIDMM_TOOLS_DRIVER_H

#include <vidmm/vidmm.h>

#include "replay.h"

/*
 * The DriverEntry of a shared object (NULL: softgpu's). It stays loaded until the program ends: threads that it started may
 * still be on their way out. What is wrong with it has been said. What it calls is found in this program, which exports the kernel
 * services as libvidmm.so does.
 */
enum replay_status driver_load(const char *path, vidmm_driver_entry_fn **entry);
/* "softgpu" is none: *path is NULL. A name without a slash is a file here, not one for the loader to search. False: no memory. */
bool driver_path(const char *text, char **path);

#endif
