/* SPDX-License-Identifier: MIT */
/*
 * The conformance suite through a host: with VIDMM_THROUGH set in the environment every process that a test opens is a client of a
 * server, over a real socket, and what the test calls for it goes there as a request (the linker's --wrap). Worlds, miniports and
 * clocks stay where they are. The server has no threads of its own: whoever sends something does it at once, and waits as a program of
 * the world does.
 */
#ifndef VMM_TESTS_SUPPORT_THROUGH_H
#define VMM_TESTS_SUPPORT_THROUGH_H

#include <stdbool.h>

#include <vidmm/vidmm.h>

bool through_wanted(void);
vidmm_status through_open(struct vidmm_host *host, const char *name,
			  struct vidmm_process **process);
/* False: it is none of a client's. */
bool through_close(struct vidmm_process *process);
/* No view has that address of a client's window; false also for an address of no window. */
bool through_is_free(const void *address);

#endif
