/* SPDX-License-Identifier: MIT */
/*
 * Out-of-process clients inside the test's own process. Each has a viewer whose address space is a
 * separate set of ranges in that of the test. Like a real client, it maps only the descriptors that
 * it is given, and never accesses memory of the core.
 *
 * With VIDMM_OUT_OF_PROCESS set in the environment, every process that a test opens is such a
 * client (the linker's --wrap). So the tests of in-process clients run for out-of-process clients
 * as well.
 */
#ifndef VMM_TESTS_SUPPORT_VIEWER_H
#define VMM_TESTS_SUPPORT_VIEWER_H

#include <pthread.h>
#include <stdbool.h>
#include "os/os.h"
#include "support/client.h"

struct test_viewer_range {
	struct vmm_list link; /* in viewer->ranges */
	char *address;
	uint64_t size_bytes;
	bool frozen;
};

struct test_viewer {
	struct vmm_os_viewer viewer;
	uint32_t id;
	bool virtual_time;       /* a store to a frozen range does not block: it is repeated */
	struct vmm_list watched; /* the ranges that are frozen so */
	bool cannot_freeze;
	pthread_mutex_t lock;
	struct vmm_list ranges;
	int userfault_fd;  /* -1: not opened yet, -2: refused */
	struct vmm_nt *nt; /* of the host: kernel memory is not the viewer's */
	uint32_t maps, freezes, live;
	/* The last descriptor that it mapped, with its offset, length, access and address. */
	int last_fd;
	uint64_t last_offset, last_length;
	bool last_writable;
	char *last_address;
};

void test_viewer_begin(struct test_viewer *viewer, bool virtual_time);
/* Asserts that nothing is left. */
void test_viewer_end(struct test_viewer *viewer);

/* client_open and client_close of an out-of-process client whose memory the viewer maps. */
void client_open_out_of_process(struct client *client, struct test_viewer *viewer,
				struct client_device *device);
void client_close_out_of_process(struct test_viewer *viewer, struct client_device *device);
/* Returns whether the process is out-of-process, because of the test or of the environment. */
bool is_out_of_process(const struct vidmm_process *process);
/*
 * With `stay` true, processes are opened in-process from now on, because the caller acts for a
 * miniport, whatever the environment says.
 */
void open_in_process(bool stay);
/*
 * vmm_process_abandon, for tests that use the exported D3DKMT functions and so cannot include its
 * header.
 */
void abandon_process(struct vidmm_process *process);

#endif
