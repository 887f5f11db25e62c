/* SPDX-License-Identifier: MIT */
/*
 * client: the library inside an out-of-process client (include/vidmm/client.h,
 * docs/adr/0001-real-processes.md). It sends calls, executes view instructions, and calls functions
 * that the program registered. It knows nothing about devices and memory: only the host knows what
 * a call means.
 *
 * Any thread may call. No lock of the library is held while a call is under way.
 */
#ifndef VMM_CLIENT_CLIENT_H
#define VMM_CLIENT_CLIENT_H

#include <stdatomic.h>

#include <vidmm/client.h>
#include "wire/wire.h"

struct vmm_client_options {
	/* name of the program; NULL: the name of its executable */
	const char *name;
	/* connected socket; the connection owns it, also if connecting fails */
	int fd;
	/* Returns one more connected socket, or -1. */
	int (*more)(void *context);
	void *more_context;
	/*
	 * For worlds with one thread (sim): called with the socket after every message that was
	 * sent. The host then does what it would do on its own threads. The library starts no
	 * thread either. NULL: real threads.
	 */
	void (*sent)(void *context, int fd);
	void *sent_context;
	/*
	 * For worlds in which host and client share an address space: returns whether the range
	 * belongs to the client. NULL: every range does.
	 */
	bool (*owns)(void *context, uint64_t address, uint64_t length);
};
vmm_status vmm_client_connect(const struct vmm_client_options *options,
			      struct vidmm_connection **connection) VMM_MUST_CHECK;

/*
 * Makes a call. Returns VMM_OK if the host made it; *result is then what the function returned.
 * Otherwise returns VMM_DEVICE_REMOVED (the host is gone), VMM_NO_MEMORY,
 * VMM_INSUFFICIENT_RESOURCES (too many threads are inside calls), or the status with which the host
 * refused the request. A refused request has done nothing.
 */
vmm_status vmm_client_call(struct vidmm_connection *connection, uint32_t operation, uint32_t device,
			   void *argument, int32_t *result) VMM_MUST_CHECK;
/* Makes a D3DKMT call; `operation` is its number in the table (VMM_WIRE_D3DKMT...). */
vmm_status vmm_client_d3dkmt(struct vidmm_connection *connection, uint32_t operation,
			     void *argument);
/*
 * The connection that D3DKMT functions of the program use (src/host/kmt_route.c). A connection that
 * ends removes itself.
 */
extern _Atomic(struct vidmm_connection *) vmm_client_attached;
/*
 * Attaches a connection to the host that the environment names, unless one is attached. Returns
 * what vidmm_connect returns.
 */
vmm_status vmm_client_attach_named(struct vidmm_connection **connection) VMM_MUST_CHECK;

/*
 * Executes the messages that have arrived on the view socket and calls the functions of callback
 * notifications. For clients without a thread of the library (options.sent).
 */
void vmm_client_poll(struct vidmm_connection *connection);

#endif
