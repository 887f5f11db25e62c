/* SPDX-License-Identifier: MIT */
/*
 * Processes in another address space, without another process: a viewer whose address space is a second set of ranges in our
 * own. It maps nothing but the descriptors that it is given, as a client would, and never looks into what is the core's.
 *
 * With VIDMM_APART set in the environment every process that a test opens is one (the linker's --wrap), so that what holds for
 * clients in our address space is tested of others as well.
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
	bool virtual_time; /* nobody stores while something moves: freezing needs nothing */
	bool cannot_freeze;
	pthread_mutex_t lock;
	struct vmm_list ranges;
	int userfault_fd;  /* -1: not opened yet, -2: refused */
	struct vmm_nt *nt; /* of the host: what is the kernel's is not the viewer's */
	uint32_t maps, freezes, live;
	/* The last descriptor that it was given, of its own, and where. */
	int last_fd;
	uint64_t last_offset, last_length;
	bool last_writable;
	char *last_address;
};

void apart_begin(struct apart_viewer *viewer, bool virtual_time);
/* Asserts that nothing is left. */
void apart_end(struct apart_viewer *viewer);

/* client_open and client_close of a process that looks through the viewer. */
void apart_open(struct client *client, struct apart_viewer *viewer, struct client_device *device);
void apart_close(struct apart_viewer *viewer, struct client_device *device);
/* Is it in another address space, whether a test asked for that or the environment did? */
bool apart_is(const struct vidmm_process *process);
/* Until it is called again: who opens a process is in the kernel, where the host is, whatever the environment asks for. */
void apart_stay_in_the_host(bool stay);
/* vmm_process_abandon, for who uses the exported D3DKMT functions and so cannot include what declares it. */
void apart_abandon(struct vidmm_process *process);

#endif
