/* SPDX-License-Identifier: MIT */
/*
 * Serving a host to other programs: what `vidmm serve` does. A server accepts clients (include/vidmm/client.h) on sockets, gives
 * each a process of its own, and executes their calls. A client may crash, lie, stall or be killed at any moment (SECURITY.md).
 * Linux hosts only. Any thread may call, but one at a time for one server.
 */
#ifndef VIDMM_SERVE_H
#define VIDMM_SERVE_H

#include <vidmm/vidmm.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vidmm_server;

/* What one client may have; 0: the default. Beyond it calls are refused with STATUS_INSUFFICIENT_RESOURCES, connections are closed. */
struct vidmm_client_limits {
	uint32_t channels; /* threads inside calls at once; 64 */
	uint32_t handles;  /* 1,000,000 */
	uint64_t
		memory_bytes; /* system memory of its allocations, buffers and queued waits, in bytes; no limit */
	uint64_t
		unread_bytes; /* of what was sent to it and not read: beyond, it is cut off; 1 MiB */
};

struct vidmm_server_options {
	uint32_t struct_size; /* sizeof(struct vidmm_server_options) */
	struct vidmm_client_limits limits;
	uint32_t clients_max; /* 0: 1024 */
	uint32_t uid_only;    /* 1: programs of other users are refused (SO_PEERCRED) */
	/* One line of text about a client that came, went, or was cut off and why; NULL: none. From any thread of the server's. */
	void (*log)(void *context, const char *line);
	void *log_context;
};

VIDMM_API VIDMM_MUST_CHECK vidmm_status
vidmm_server_create(struct vidmm_host *host, const struct vidmm_server_options *options,
		    struct vidmm_server **server);
/*
 * Takes clients from a listening SOCK_SEQPACKET socket, which becomes the server's; any number of them. Comes back at once: the server's own threads do it.
 */
VIDMM_API VIDMM_MUST_CHECK vidmm_status vidmm_server_listen(struct vidmm_server *server, int fd);
/* One client on a connected socket (of a socketpair), which becomes the server's. */
VIDMM_API VIDMM_MUST_CHECK vidmm_status vidmm_server_connect(struct vidmm_server *server, int fd);
/* The adapters that clients may open are those of the host. Cuts off all clients, waits for their calls, ends the threads. */
VIDMM_API void vidmm_server_destroy(struct vidmm_server *server);

struct vidmm_client_info {
	uint32_t process_id, pid, uid;
	uint32_t channels, requests_in_flight, devices;
	uint64_t memory_bytes, handles, requests;
	char name[64];
};
/* The clients of the moment: fills at most `room`, returns how many there are. */
VIDMM_API uint32_t vidmm_server_clients(struct vidmm_server *server,
					struct vidmm_client_info *clients, uint32_t room);

#ifdef __cplusplus
}
#endif

#endif
