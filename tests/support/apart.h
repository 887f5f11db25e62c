/* SPDX-License-Identifier: MIT */
/*
 * Out-of-process clients inside the test's own process: a viewer whose address space is a second
 * set of ranges in the test's. Like a client, it maps only the descriptors that it is given, and
 * never accesses memory of the core.
 *
 * With VIDMM_APART set in the environment every process that a test opens is such a client (the
 * linker's --wrap), so that the tests for in-process clients run for out-of-process ones as well.
 */
#ifndef VMM_TESTS_SUPPORT_APART_H
#define VMM_TESTS_SUPPORT_APART_H

#include <pthread.h>
#include <stdbool.h>
#include "os/os.h"
#include "support/client.h"

struct apart_range {
	struct vmm_list link; /* in viewer->ranges */
	char *address;
	uint64_t size_bytes;
	bool frozen;
};

struct apart_viewer {
	struct vmm_os_viewer viewer;
	uint32_t id;
	bool virtual_time; /* no thread stores during a move: write protection is not needed */
	bool cannot_freeze;
	pthread_mutex_t lock;
	struct vmm_list ranges;
	int userfault_fd;  /* -1: not opened yet, -2: refused */
	struct vmm_nt *nt; /* of the host: kernel memory is not the viewer's */
	uint32_t maps, freezes, live;
	/* The last descriptor that it was given as its own, and its address. */
	int last_fd;
	uint64_t last_offset, last_length;
	bool last_writable;
	char *last_address;
};

void apart_begin(struct apart_viewer *viewer, bool virtual_time);
/* Asserts that nothing is left. */
void apart_end(struct apart_viewer *viewer);

/* client_open and client_close of an out-of-process client whose memory the viewer maps. */
void apart_open(struct client *client, struct apart_viewer *viewer, struct client_device *device);
void apart_close(struct apart_viewer *viewer, struct client_device *device);
/* Returns whether the process is out-of-process, because of the test or of the environment. */
bool apart_is(const struct vidmm_process *process);
/*
 * With `stay` true, processes are opened in-process from now on, because the caller acts for a
 * miniport, whatever the environment says.
 */
void apart_stay_in_the_host(bool stay);
/*
 * vmm_process_abandon, for tests that use the exported D3DKMT functions and so cannot include its
 * header.
 */
void apart_abandon(struct vidmm_process *process);

#endif
