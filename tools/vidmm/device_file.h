/* SPDX-License-Identifier: MIT */
/* device_file: a device model in a shared object (vidmm/device.h, docs/devices.md). */
#ifndef VIDMM_TOOLS_DEVICE_FILE_H
#define VIDMM_TOOLS_DEVICE_FILE_H

#include <vidmm/vidmm.h>

#include "replay.h"

/*
 * Loads the shared object at PATH (NULL: none) and stores its model in *MODEL, NULL for none. A
 * failure has been reported when it returns. The object stays loaded until the process
 * ends. Whether the model is possible is checked by the start of the adapter.
 */
enum replay_status device_file_load(const char *path, const struct vidmm_device_model **model);

#endif
