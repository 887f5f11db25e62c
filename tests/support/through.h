/* SPDX-License-Identifier: MIT */
/*
 * Runs the conformance suite through a host. With VIDMM_THROUGH set in the environment every
 * process that a test opens is a client of a server, over a real socket, and the test's calls for
 * it are sent there as requests (the linker's --wrap). Worlds, miniports and clocks are unchanged.
 * The server has no threads of its own: the thread that sends a request executes it at once, and
 * waits like a program of the world.
 */
#ifndef VMM_TESTS_SUPPORT_THROUGH_H
#define VMM_TESTS_SUPPORT_THROUGH_H

#include <stdbool.h>

#include <vidmm/vidmm.h>

bool through_wanted(void);
vidmm_status through_open(struct vidmm_host *host, const char *name,
			  struct vidmm_process **process);
/* Returns false if the object is not a client's. */
bool through_close(struct vidmm_process *process);
/*
 * Returns false if no CPU mapping has that address of a client's window, or if the address is in
 * no window.
 */
bool through_is_free(const void *address);

#endif
