/* SPDX-License-Identifier: MIT */
/* command_file: a command adapter in a shared object. */
#ifndef VIDMM_TOOLS_COMMAND_FILE_H
#define VIDMM_TOOLS_COMMAND_FILE_H

#include <vidmm/commands.h>

#include "replay.h"

/*
 * Loads the shared object at PATH (a name without a slash is a file in the current directory) and
 * stores its function. It stays loaded until the process ends. Returns REPLAY_BAD_INPUT, after a
 * message, for a file that is no command adapter.
 */
enum replay_status command_file_load(const char *path, vidmm_commands_describe_fn **describe);

#endif
