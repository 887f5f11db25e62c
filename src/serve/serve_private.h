/* SPDX-License-Identifier: MIT */
/*
 * serve: who is connected, and who works for them (README.md). Locks: the server's (VMM_RANK_SERVER) guards the lists and counts
 * below; no call of a client and nothing of the core is done under it.
 */
#ifndef VMM_SERVE_PRIVATE_H
#define VMM_SERVE_PRIVATE_H

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <vidmm/serve.h>
#include "doors/kmt/kmt.h" /* the functions of this process, whoever is connected to */
#include "host/host_private.h"
#include "packet/packet.h"
#include "serve/views.h"
#include "sync/packet.h"

#define VMM_RANK_REGISTRATIONS 4u
#define VMM_RANK_SERVER        5u
#define VMM_SERVE_MOMENT_US    4000 /* how long a worker waits for a client that asks at once */
#define VMM_SERVE_WINDOW_MAX   ((uint64_t)1 << 42) /* more of a window is not used */
#define VMM_SERVE_ADDRESS_END  ((uint64_t)1 << 47) /* of a program's addresses */

/* What an epoll event is about: the low bits of its data; the rest is an address, or the number of a session. */
enum vmm_serve_source {
	VMM_SOURCE_CHANNEL,
	VMM_SOURCE_LISTENER,
	VMM_SOURCE_DEATHS, /* the epoll of first channels and view sockets: who hangs up inside a call */
	VMM_SOURCE_END,
	VMM_SOURCE_VIEWS, /* a view socket has room again */
	VMM_SOURCE_BITS = 3,
	VMM_SOURCE_MASK = 7
};

/* ---- session.c: a client ---- */
#define VMM_SERVE_DEVICES_MAX 1024u

struct vmm_session;
struct vmm_channel {
	struct vidmm_server *server;
	int fd;
	bool first;
	struct ucred peer;
	struct vmm_session *
		session; /* NULL: a stranger. Only its handler, of which there is one at a time, changes it */
	uint64_t views;          /* what its last answer said; the handler's */
	uint64_t answered_ns;    /* when a request was through; the handler's */
	bool descriptors_out;    /* the last answer has some; the handler's */
	_Atomic uint32_t armed;  /* what one handler has written, the next one sees */
	_Atomic uint32_t inside; /* 1: its request is being executed */
	_Atomic uint64_t requests;
	struct vmm_list
		link; /* in session->channels or server->strangers; guarded by the server's lock */
};

struct vmm_session {
	struct vidmm_server *server;
	uint64_t number, token[2]; /* constant */
	uint32_t pid, uid;
	char name[64];
	uint32_t process_id;
	struct vmm_views views;
	/* What device_create gave, by its number less one. */
	_Atomic(void *) devices[VMM_SERVE_DEVICES_MAX];
	/* Functions of the client's that are to be called (notices.c); held while the core is told. */
	struct vmm_os_mutex registration_lock;
	struct vmm_list registrations;
	uint32_t registration_count;
	bool listed;        /* in server->sessions; constant once others may see it */
	_Atomic bool ended; /* nothing of it is begun any more */
	_Atomic bool
		hung_up; /* its first channel was seen closed, maybe from outside its handler */
	/* Guarded by the server's lock. */
	struct vidmm_process *process; /* NULL: it is being closed */
	struct vmm_channel *first;     /* NULL: closed */
	struct vmm_list link, channels;
	bool cut;                        /* with all others; it has not been abandoned yet */
	uint32_t channel_count, holders; /* channels, and who looks at it just now */
	uint64_t requests;               /* of channels that have gone */
};

/* What came first on a stranger's channel. False: the channel is to be closed. */
bool vmm_session_hello(struct vmm_channel *channel, struct vmm_packet *packet);
bool vmm_session_join(struct vmm_channel *channel, struct vmm_packet *packet);
bool vmm_session_list(struct vmm_channel *channel);
/*
 * Nothing of it is begun any more, calls that wait come back, all its channels hear of it. Once; holding no lock. The caller is
 * one of its holders; vmm_session_cut is for who is none, and does nothing if it has gone meanwhile.
 */
void vmm_session_end(struct vmm_session *session, const char *why);
void vmm_session_cut(struct vidmm_server *server, uint64_t number, const char *why);
void vmm_session_end_all(struct vidmm_server *server, const char *why);
/* By its handler, or before it has one. The last channel of a session takes everything with it. */
void vmm_channel_close(struct vmm_channel *channel);
/* The view socket of the session with that number has room again. */
void vmm_session_flush(struct vidmm_server *server, uint64_t number);
/* Somebody hung up. */
void vmm_session_deaths(struct vidmm_server *server);
/* Takes a connected socket in. */
vmm_status vmm_channel_open(struct vidmm_server *server, int fd) VMM_MUST_CHECK;

/* ---- request.c, dispatch.c ---- */
struct vmm_worker;
/* A request on a channel that has a session. False: the channel is to be closed. */
bool vmm_serve_request(struct vmm_worker *worker, struct vmm_channel *channel);

/* An operation on its argument, for the session's process, on a device of its (NULL: none). What the call itself returns. */
typedef int32_t vmm_serve_fn(struct vmm_session *session, void *device, void *argument);
/* *foreign: the function knows what to do with addresses of the client's. */
vmm_serve_fn *vmm_serve_function(const struct vmm_wire_operation *operation, bool *foreign);

/* ---- runtime.c ---- */
void *vmm_serve_device(struct vmm_session *session, uint32_t number);
int32_t vmm_serve_device_create(struct vmm_session *session, struct vmm_wire_device_create *args);
int32_t vmm_serve_device_destroy(struct vmm_session *session, const struct vmm_wire_device *args);
int32_t vmm_serve_device_set_trim(struct vmm_session *session,
				  const struct vmm_wire_device_set_trim *args);
int32_t vmm_serve_resource_set_shared(struct vmm_session *session,
				      const struct vmm_wire_resource_set_shared *args);
int32_t vmm_serve_resource_share(struct vmm_session *session, struct vmm_wire_resource_share *args);
int32_t vmm_serve_resource_open(struct vmm_session *session, struct vmm_wire_resource_open *args);
int32_t vmm_serve_nt_handle_name(struct vmm_session *session, struct vmm_wire_nt_handle_name *args);
int32_t vmm_serve_sync_values(struct vmm_session *session, struct vmm_wire_sync_values *args);
int32_t vmm_serve_sync_words(struct vmm_session *session, struct vmm_wire_sync_words *args);
int32_t vmm_serve_sync_told(struct vmm_session *session, const struct vmm_wire_sync_told *args);
int32_t vmm_serve_adapter_statistics(struct vmm_session *session,
				     struct vmm_wire_adapter_statistics *args);

/* ---- notices.c ---- */
int32_t vmm_serve_register_trim(struct vmm_session *session, D3DKMT_REGISTERTRIMNOTIFICATION *args);
int32_t vmm_serve_unregister_trim(struct vmm_session *session,
				  D3DKMT_UNREGISTERTRIMNOTIFICATION *args);
int32_t vmm_serve_set_trim(struct vmm_session *session, void *device, uint64_t function,
			   uint64_t context);
/* Its process is closed. */
void vmm_serve_forget_registrations(struct vmm_session *session);

/* ---- worker.c ---- */
/* What the union of a request was taken for (vmm_sync_union_taken). */
struct vmm_serve_union {
	struct vmm_process *process;
	bool asked;
	enum vmm_sync_values values;
};
struct vmm_worker {
	struct vidmm_server *server;
	pthread_t thread;
	struct vmm_list link; /* in server->ended */
	struct vmm_packet packet;
	struct vmm_wire_call call;
	struct vmm_wire_bytes answer;
	struct vmm_serve_union taken; /* of the request at hand */
	bool left;                    /* it does not count as waiting */
};
/* A request may block: another worker waits when this returns. False: there is none, and none can be made. */
bool vmm_worker_leave(struct vmm_worker *worker);
void vmm_worker_return(struct vmm_worker *worker);
/* The first ones. */
vmm_status vmm_workers_start(struct vidmm_server *server) VMM_MUST_CHECK;
/* All end; comes back when they have. */
void vmm_workers_end(struct vidmm_server *server);
void vmm_channel_arm(struct vmm_channel *channel);

/* What a channel has that is ready; it may be gone afterwards. */
void vmm_worker_serve(struct vmm_worker *worker, struct vmm_channel *channel);
void vmm_worker_destroy(struct vmm_worker *worker);

/* ---- step.c: a server without threads, for the suite ---- */
/*
 * Whoever sends it something on a channel calls vmm_server_step, which does it, and so waits where a program within the process
 * would: on virtual time, too. `shown` hears of each view instruction when it has been sent, under locks of the core.
 */
struct vmm_server_hooks {
	bool stepped;
	void (*shown)(void *context, struct vmm_os_viewer *viewer);
	/* A notice has been sent; no lock is held. */
	void (*noticed)(void *context, struct vmm_os_viewer *viewer);
	void *context;
	int adopt_ms; /* how long a client may take to bring memory of its own along; 0: VMM_VIEWS_ADOPT_MS */
};
vmm_status vmm_server_create_hooked(struct vidmm_host *host,
				    const struct vidmm_server_options *options,
				    const struct vmm_server_hooks *hooks,
				    struct vidmm_server **server) VMM_MUST_CHECK;
/* `fd`: the host's end of the channel, which nobody else steps. */
void vmm_server_step(struct vidmm_server *server, int fd);
/* The client has closed its ends of all its channels. */
void vmm_server_step_end(struct vidmm_server *server, uint32_t process_id);
void vmm_server_steps_finish(struct vidmm_server *server);

/* ---- server.c ---- */
struct vmm_listener {
	struct vidmm_server *server;
	int fd;
	struct vmm_list link;
};

struct vidmm_server {
	struct vidmm_host *host;
	struct vidmm_server_options options;
	struct vmm_server_hooks hooks;
	struct vmm_list spare_steps; /* workers without a thread; guarded by lock */
	int epoll, deaths, end;      /* end: an eventfd */
	int epoch; /* a descriptor of the world's, to be read alone; -1: clients lock by messages */
	int spare; /* a descriptor that can be done without, so that a client can be turned away */
	_Atomic bool stopping;
	_Atomic uint64_t last_session;
	_Atomic uint32_t late; /* clients that could not be frozen in time */
	struct vmm_os_mutex lock;
	/* Guarded by lock. */
	struct vmm_list sessions, strangers, listeners;
	uint32_t session_count, stranger_count;
	uint32_t closing_count; /* strangers' connections that are being closed */
	bool accepts_none;      /* there are too many of those */
	uint32_t worker_count;
	struct vmm_list ended; /* workers to be joined */
	/* Workers that wait for something to do; those who leave look at it without the lock. */
	_Atomic uint32_t waiting;
	_Atomic uint32_t
		gone; /* counts ends of sessions, strangers and workers: vidmm_server_destroy waits on it */
};

void vmm_serve_log(struct vidmm_server *server, const char *format, ...) VMM_PRINTF(2, 3);
/* Something has gone that vidmm_server_destroy may wait for. */
void vmm_serve_gone(struct vidmm_server *server);
/* So many connections of strangers, which count as closing, have been closed. */
void vmm_serve_closed(struct vidmm_server *server, uint32_t count);
bool vmm_serve_watch(int epoll, int operation, int fd, uint32_t events, uint64_t data);
void vmm_listener_accept(struct vmm_listener *listener);

static inline struct vmm_os *vmm_serve_os(const struct vidmm_server *server)
{
	return server->host->world.os;
}

#endif
