/* SPDX-License-Identifier: MIT */
/*
 * Runs the conformance suite as clients of a server. With VIDMM_SERVED set in the environment,
 * every process that a test opens is a client of a server over a real socket. The test's calls for
 * that process are sent there as requests (the linker's --wrap). Worlds, miniports and clocks are
 * unchanged. The server has no threads: the thread that sends a request executes it at once, and
 * waits like any thread of the world.
 */
#ifndef VMM_TESTS_SUPPORT_SERVED_H
#define VMM_TESTS_SUPPORT_SERVED_H

#include <stdbool.h>

#include <vidmm/vidmm.h>

bool served_wanted(void);
vidmm_status served_open(struct vidmm_host *host, const char *name, struct vidmm_process **process);
/* Returns false if the object is not a client's. */
bool served_close(struct vidmm_process *process);
/*
 * Returns false if no CPU mapping has that address of a client's window, or if the address is in
 * no window.
 */
bool served_is_free(const void *address);

#endif
