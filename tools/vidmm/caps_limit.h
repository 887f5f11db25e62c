/* SPDX-License-Identifier: MIT */
/* caps_limit: a start whose time is limited, and where it is when the time is over. */
#ifndef VIDMM_TOOLS_CAPS_LIMIT_H
#define VIDMM_TOOLS_CAPS_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <vidmm/vidmm.h>

/*
 * Calls RUN on another thread, and waits until it returns. Returns false if it has not after
 * LIMIT_S seconds (0: no limit): the thread goes on, and TEXT says in which routine of the driver
 * it is, in which kernel service it waits, and in which function, with the rule. ENTRY: the
 * DriverEntry.
 */
bool caps_run_limited(unsigned limit_s, void (*run)(void *context), void *context,
		      vidmm_driver_entry_fn *entry, char *text, size_t size);

#endif
