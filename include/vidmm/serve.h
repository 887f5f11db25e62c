/* SPDX-License-Identifier: MIT */
/*
 * Serves a host to out-of-process clients, as `vidmm serve` does (docs/serve.md). A server accepts
 * clients (client.h) on sockets, opens one process for each, and executes their calls. A client may
 * crash, send wrong data, stall or be killed at any moment (SECURITY.md). Only a linux host can be
 * served.
 *
 * Threading: any thread may call, but only one at a time for one server. Errors and units: as in
 * vidmm.h.
 */
#ifndef VIDMM_SERVE_H
#define VIDMM_SERVE_H

#include <vidmm/vidmm.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vidmm_server;

/*
 * Limits of one client; 0: the default. A call beyond a limit returns
 * STATUS_INSUFFICIENT_RESOURCES; a socket beyond `channels` is refused.
 */
struct vidmm_client_limits {
	uint32_t channels; /* calls in progress at a time, one per thread; default 64 */
	uint32_t handles;  /* D3DKMT handles; default 1,000,000 */
	/* bytes of system memory of its allocations, buffers and queued waits; default: no limit */
	uint64_t memory_bytes;
	/* bytes sent to the client that it has not read; one more: it is cut off; default 1 MiB */
	uint64_t unread_bytes;
	/*
	 * Descriptors of the host that are set aside for it when it connects; default 16, or more
	 * if the process may have many. It borrows more from those that are set aside for no
	 * client, but not their last quarter.
	 */
	uint32_t descriptors;
};

struct vidmm_server_options {
	uint32_t struct_size; /* sizeof(struct vidmm_server_options) */
	struct vidmm_client_limits limits;
	uint32_t clients_max; /* most clients at a time; 0: 1024 */
	uint32_t uid_only;    /* 1: refuses programs of other users (SO_PEERCRED) */
	/*
	 * Receives one line of text when a client connects, disconnects, is refused or is cut off,
	 * with the reason. Called on any thread of the server. NULL: no log.
	 */
	void (*log)(void *context, const char *line);
	void *log_context;
};

/* Creates a server with its threads. STATUS_NOT_SUPPORTED: the host is not a linux host. */
VIDMM_API VIDMM_MUST_CHECK vidmm_status
vidmm_server_create(struct vidmm_host *host, const struct vidmm_server_options *options,
		    struct vidmm_server **server);
/*
 * Accepts clients from a listening SOCK_SEQPACKET socket of the domain AF_UNIX from now on, on the
 * server's threads. On success the server owns fd; after a failure the caller still does. A server
 * may have any number of such sockets. Does not block. STATUS_INVALID_PARAMETER: fd is no such
 * socket. STATUS_INSUFFICIENT_RESOURCES: an error of the system.
 */
VIDMM_API VIDMM_MUST_CHECK vidmm_status vidmm_server_listen(struct vidmm_server *server, int fd);
/*
 * Accepts one client on a connected SOCK_SEQPACKET socket of the domain AF_UNIX, for example of a
 * socketpair. Does not block.
 *
 * STATUS_INVALID_PARAMETER: fd is no such socket; the caller still owns fd. With every other status
 * the server owns fd: a failure closes it. STATUS_ACCESS_DENIED: the peer is of another user and
 * the server has uid_only. STATUS_CANCELLED: the server is being destroyed.
 * STATUS_INSUFFICIENT_RESOURCES: an error of the system. A client for which the host has no
 * descriptors left is refused later, in the answer to its first message.
 */
VIDMM_API VIDMM_MUST_CHECK vidmm_status vidmm_server_connect(struct vidmm_server *server, int fd);
/*
 * Cuts off all clients, waits for their calls, ends the server's threads and closes its sockets.
 * NULL: does nothing. The host and its adapters remain; the caller stops and destroys them.
 */
VIDMM_API void vidmm_server_destroy(struct vidmm_server *server);

struct vidmm_client_info {
	uint32_t process_id, pid, uid; /* process_id: number of its process, as in events */
	uint32_t channels, requests_in_flight, devices;
	/* requests: number of calls so far */
	uint64_t memory_bytes, handles, requests;
	char name[64]; /* as given to vidmm_connect */
};
/*
 * Describes the present clients. `capacity` is that of `clients`, in entries. Returns the number of
 * clients, which may exceed the capacity. server NULL: returns 0.
 */
VIDMM_API uint32_t vidmm_server_clients(struct vidmm_server *server,
					struct vidmm_client_info *clients, uint32_t capacity);

#ifdef __cplusplus
}
#endif

#endif
