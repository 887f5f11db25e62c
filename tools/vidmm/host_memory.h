/* SPDX-License-Identifier: MIT */
/* host_memory: how much memory of this machine a program may still take. */
#ifndef VIDMM_TOOLS_HOST_MEMORY_H
#define VIDMM_TOOLS_HOST_MEMORY_H

#include <stdint.h>

/*
 * Returns MemAvailable, or what the limits of the process's control groups (version 2) leave if
 * that is less; pages of files in a group count as free. UINT64_MAX if /proc says neither. ROOT is
 * a folder in place of the root folder, for tests; "": the real one.
 */
uint64_t host_memory_available(const char *root);

#endif
