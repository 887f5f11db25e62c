/* SPDX-License-Identifier: MIT */
/*
 * client: a program that is not the host (include/vidmm/client.h, docs/adr/0001-real-processes.md). Sends calls, executes view
 * instructions, calls functions for notices. Knows nothing of devices and memory: what a call means says the host.
 *
 * Any thread. No lock of the library's is held while a call is under way.
 */
#ifndef VMM_CLIENT_CLIENT_H
#define VMM_CLIENT_CLIENT_H

#include <stdatomic.h>

#include <vidmm/client.h>
#include "wire/wire.h"

struct vmm_client_options {
	const char *name; /* of the program; NULL: its own */
	int fd;           /* connected; the connection's, whatever comes back */
	/* A further connected socket, or -1. */
	int (*more)(void *context);
	void *more_context;
	/*
	 * For worlds with one thread (sim): called after every message that was sent, with the socket; the host then does what
	 * it would do on threads of its own. The library makes no thread either. NULL: real threads.
	 */
	void (*sent)(void *context, int fd);
	void *sent_context;
	/* For worlds in which host and client share an address space: is the range none of the host's? NULL: yes. */
	bool (*owns)(void *context, uint64_t address, uint64_t length);
};
vmm_status vmm_client_connect(const struct vmm_client_options *options,
			      struct vidmm_connection **connection) VMM_MUST_CHECK;

/*
 * A call: *result is what the function gave. Otherwise VMM_DEVICE_REMOVED (there is no host any more), VMM_NO_MEMORY,
 * VMM_INSUFFICIENT_RESOURCES (too many threads are inside calls), or what the host refused it with; nothing was done then.
 */
vmm_status vmm_client_call(struct vidmm_connection *connection, uint32_t operation, uint32_t device,
			   void *argument, int32_t *result) VMM_MUST_CHECK;
/* A D3DKMT function, by its number in the table. */
vmm_status vmm_client_d3dkmt(struct vidmm_connection *connection, uint32_t operation,
			     void *argument);
/* That of the program's D3DKMT functions (src/host/elsewhere.c); one that ends is it no more. */
extern _Atomic(struct vidmm_connection *) vmm_client_attached;
/* Attaches one to the host that the environment names, unless there is one. What vidmm_connect says. */
vmm_status vmm_client_attach_named(struct vidmm_connection **connection) VMM_MUST_CHECK;

/* Executes what came on the view socket, and calls for notices: for who has no thread that does (options.sent). */
void vmm_client_look(struct vidmm_connection *connection);

#endif
