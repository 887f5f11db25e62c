/* SPDX-License-Identifier: MIT */
/*
 * serve: the server, its clients and the threads that work for them (README.md). The server's lock
 * (VMM_RANK_SERVER) guards the lists and counts below. No call of a client is made under it, and
 * nothing of the core is called except the process lock.
 */
#ifndef VMM_SERVE_PRIVATE_H
#define VMM_SERVE_PRIVATE_H

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <vidmm/serve.h>
#include "doors/kmt/kmt.h" /* the functions of this process, also if a connection is attached */
#include "host/host_private.h"
#include "os/os_share.h"
#include "packet/packet.h"
#include "serve/views.h"
#include "sync/packet.h"

#define VMM_RANK_REGISTRATIONS      4u
#define VMM_RANK_SERVER             5u
/* how long a worker waits for the next request of a quick client */
#define VMM_SERVE_NEXT_REQUEST_US   4000
/* descriptors of a HELLO: the view socket and a userfaultfd */
#define VMM_SERVE_HELLO_DESCRIPTORS 2
/* at most this part of a client's window is used */
#define VMM_SERVE_WINDOW_MAX        ((uint64_t)1 << 42)
#define VMM_SERVE_ADDRESS_END       ((uint64_t)1 << 47) /* end of user-space addresses */

/*
 * What an epoll event is about: the low bits of its data. The rest is an address, or a session
 * number.
 */
enum vmm_serve_source {
	VMM_SOURCE_CHANNEL,
	VMM_SOURCE_LISTENER,
	VMM_SOURCE_HANGUPS, /* the epoll of first channels and view sockets: a peer hung up */
	VMM_SOURCE_END,
	VMM_SOURCE_VIEWS, /* a view socket can be written to again */
	VMM_SOURCE_BITS = 3,
	VMM_SOURCE_MASK = 7
};

/* The lock classes of vidmm_server.lock and vmm_session.registration_lock (docs/locking.md). */
extern struct vmm_lock_class vmm_server_lock_class, vmm_registration_lock_class;

/* ---- session.c: a client ---- */
#define VMM_SERVE_DEVICES_MAX 1024u

/* The findings and reasons that a client has not taken yet (texts.c). */
struct vmm_texts {
	char *lines;          /* NULL: the client did not ask for any */
	_Atomic bool some;    /* there are lines */
	struct vmm_list link; /* guarded, like the following members, by server->texts_lock */
	uint32_t bytes, lost;
};

struct vmm_session;
struct vmm_channel {
	struct vidmm_server *server;
	int fd;
	bool first;
	struct ucred peer;
	/*
	 * NULL: pending, i.e. connected without HELLO or JOIN. Changed by the handler alone; there
	 * is one at a time.
	 */
	struct vmm_session *session;
	/* number of the last view instruction that its last answer named; the handler's */
	uint64_t views;
	uint64_t answered_ns; /* when the last request was answered; the handler's */
	bool descriptors_out; /* the last answer had descriptors; the handler's */
	/* orders one handler's stores before the loads of the next handler */
	_Atomic uint32_t armed;
	_Atomic uint32_t inside; /* 1: its request is being executed */
	_Atomic uint64_t requests;
	/* in session->channels or server->pending; guarded by the server's lock */
	struct vmm_list link;
};

struct vmm_session {
	struct vidmm_server *server;
	uint64_t number, token[2]; /* constant */
	uint32_t pid, uid;
	char name[64];
	uint32_t process_id;
	struct vmm_os_share *share; /* its descriptors; NULL: not counted (a stepped server) */
	uint32_t sockets;           /* charged to it, without those of its channels */
	struct vmm_views views;
	/* The client's devices, indexed by number - 1. */
	_Atomic(void *) devices[VMM_SERVE_DEVICES_MAX];
	/*
	 * Functions that the client registered to be called (notifications.c). The lock is held
	 * while the core registers or unregisters one.
	 */
	struct vmm_os_mutex registration_lock;
	struct vmm_list registrations;
	uint32_t registration_count;
	struct vmm_texts texts;
	/* in server->sessions; constant once other threads can find the session */
	bool listed;
	_Atomic bool ended; /* no call of it begins any more */
	_Atomic bool exits; /* the client has sent EXITS */
	/* its first channel was seen closed, perhaps not by its handler */
	_Atomic bool hung_up;
	/* Guarded by the server's lock. */
	struct vidmm_process *process; /* NULL: the session is being closed */
	struct vmm_channel *first;     /* NULL: closed */
	struct vmm_list link, channels;
	/* ended by vmm_session_end_all; its process is not abandoned yet */
	bool to_abandon VMM_GUARDED_BY(vmm_server_lock_class);
	uint32_t channel_count VMM_GUARDED_BY(vmm_server_lock_class);
	/* channels and threads that use the session */
	uint32_t holders VMM_GUARDED_BY(vmm_server_lock_class);
	/* of channels that are closed */
	uint64_t requests VMM_GUARDED_BY(vmm_server_lock_class);
};

/*
 * Handle the first message on a pending channel. They return false if the channel is to be closed.
 */
bool vmm_session_hello(struct vmm_channel *channel, struct vmm_packet *packet);
bool vmm_session_join(struct vmm_channel *channel, struct vmm_packet *packet);
bool vmm_session_list(struct vmm_channel *channel);
/* Answers a first message whose descriptors this process could not receive. Returns false. */
bool vmm_session_refuse(struct vmm_channel *channel);
/* Sends REFUSED to a connection that is no client's. Returns false. */
bool vmm_connection_refuse(int fd, vmm_status status, const char *why);
/*
 * Ends a session, once: no call of it begins any more, calls that wait return, and its sockets are
 * shut down. Caller holds no lock. `why` is logged. The caller of vmm_session_end is a holder;
 * vmm_session_cut finds the session by its number and does nothing if it is gone.
 */
void vmm_session_end(struct vmm_session *session, const char *why);
/* The same for a client whose sockets are closed: `why`, unless the client has sent EXITS. */
void vmm_session_gone(struct vmm_session *session, const char *why);
void vmm_session_cut(struct vidmm_server *server, uint64_t number, const char *why);
void vmm_session_end_all(struct vidmm_server *server, const char *why);
/*
 * Closes a channel. Called by its handler, or before it has one. The last channel of a session ends
 * the session's process and frees the session.
 */
void vmm_channel_close(struct vmm_channel *channel);
/* Called when the view socket of the session can be written to again. */
void vmm_session_flush(struct vidmm_server *server, uint64_t number);
/* Handles the hang-ups that server->hangups reports. */
void vmm_session_hangups(struct vidmm_server *server);
/*
 * Adds a connected SOCK_SEQPACKET socket as a pending channel. On failure the caller still owns the
 * socket. VMM_ACCESS_DENIED: the peer is of another user and the server has uid_only.
 * VMM_CANCELLED: the server ends. VMM_INSUFFICIENT_RESOURCES: an error of the system.
 */
vmm_status vmm_channel_open(struct vidmm_server *server, int fd) VMM_MUST_CHECK;

/* ---- request.c, dispatch.c ---- */
struct vmm_worker;
/* Executes a request on a channel of a session. Returns false if the channel is to be closed. */
bool vmm_serve_request(struct vmm_worker *worker, struct vmm_channel *channel);
/* Answers a request whose descriptors this process could not receive. */
bool vmm_serve_refuse_request(struct vmm_channel *channel, const struct vmm_packet *packet);

/*
 * Executes an operation on its argument for the session's process, on one of its devices (NULL:
 * none). Returns what the call itself returns.
 */
typedef int32_t vmm_serve_fn(struct vmm_session *session, void *device, void *argument);
/* *foreign: the function accepts addresses of the client. */
vmm_serve_fn *vmm_serve_function(const struct vmm_wire_operation *operation, bool *foreign);

/* ---- runtime.c ---- */
/* Returns the device with this number; NULL: the session has none. */
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
int32_t vmm_serve_sync_signaled(struct vmm_session *session,
				const struct vmm_wire_sync_signaled *args);
int32_t vmm_serve_adapter_statistics(struct vmm_session *session,
				     struct vmm_wire_adapter_statistics *args);
int32_t vmm_serve_texts(struct vmm_session *session, struct vmm_wire_texts *args);

/* ---- texts.c: findings and reasons for clients that ask for them (Q-172) ---- */
/* Begins to keep lines for the session's process. Returns false when out of memory. */
bool vmm_texts_begin(struct vmm_session *session) VMM_MUST_CHECK;
void vmm_texts_end(struct vmm_session *session);
/*
 * The calling thread executes a request of the session; NULL: no more. Events without a process
 * that it emits meanwhile concern the session. Not with a stepped server.
 */
void vmm_texts_execute(const struct vmm_session *session);
/* Ends the server's subscription. All sessions have ended. */
void vmm_texts_finish(struct vidmm_server *server);

/* ---- notifications.c ---- */
int32_t vmm_serve_register_trim(struct vmm_session *session, D3DKMT_REGISTERTRIMNOTIFICATION *args);
int32_t vmm_serve_unregister_trim(struct vmm_session *session,
				  D3DKMT_UNREGISTERTRIMNOTIFICATION *args);
int32_t vmm_serve_set_trim(struct vmm_session *session, void *device, uint64_t function,
			   uint64_t context);
/* Frees all registrations. The process of the session is closed. */
void vmm_serve_forget_registrations(struct vmm_session *session);

/* ---- shares.c: the descriptors of the host, and the share of each client (Q-486) ---- */
/* Plans with the descriptors that the process may have. Returns false when out of memory. */
bool vmm_shares_begin(struct vidmm_server *server) VMM_MUST_CHECK;
void vmm_shares_end(struct vidmm_server *server);
/*
 * Sets the share of a new client aside, and charges its sockets. If the host has none left, says so
 * in the log, with the client that has most.
 */
vmm_status vmm_share_begin(struct vmm_session *session, uint32_t sockets) VMM_MUST_CHECK;
/* All descriptors of the session itself are closed. */
void vmm_share_end(struct vmm_session *session);
/* Charges a client. `what` is named in the log if it has all that it may have. */
bool vmm_share_take(struct vmm_session *session, uint32_t count, const char *what) VMM_MUST_CHECK;
void vmm_share_give(struct vmm_session *session, uint32_t count);
/* Writes the client that has most descriptors into the log. */
void vmm_shares_name_largest(struct vidmm_server *server);

/* ---- worker.c ---- */
/* The value type for which the union of a request was read (vmm_sync_set_union_values). */
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
	int answer_file; /* for an answer that is too long for a packet; -1: none */
	struct vmm_serve_union union_values; /* value type of the current request */
	/* descriptors of the packet that are charged to the client until they are closed */
	uint32_t charged;
	bool blocking; /* executing what may block; not counted in server->waiting */
};
/*
 * Called before what may block: makes sure that another worker waits for events. Returns false if
 * this worker does not wait anyway, or if no other thread could be started. If it returned true,
 * vmm_worker_end_blocking follows.
 */
bool vmm_worker_begin_blocking(struct vmm_worker *worker);
void vmm_worker_end_blocking(struct vmm_worker *worker);
/* Starts the first workers. */
vmm_status vmm_workers_start(struct vidmm_server *server) VMM_MUST_CHECK;
/* Ends all workers and waits until they have ended. */
void vmm_workers_end(struct vidmm_server *server);
/* Waits for the next message of the channel; from here on another worker may be its handler. */
void vmm_channel_arm(struct vmm_channel *channel);

/* Handles what has arrived on a channel; the channel may be freed on return. */
void vmm_worker_serve(struct vmm_worker *worker, struct vmm_channel *channel);
void vmm_worker_destroy(struct vmm_worker *worker);

/* ---- step.c: a server without threads, for tests ---- */
/*
 * The caller sends on a channel, then calls vmm_server_step, which executes the request on the
 * caller's thread. So the call waits where an in-process call would, also on virtual time.
 * `view_sent` is called after each view instruction was sent, with locks of the core held.
 */
struct vmm_server_hooks {
	bool stepped;
	void (*view_sent)(void *context, struct vmm_os_viewer *viewer);
	/* A callback notification was sent; no lock is held. */
	void (*notification_sent)(void *context, struct vmm_os_viewer *viewer);
	void *context;
	/* how long a client may take to share its existing memory, in ms; 0: VMM_VIEWS_ADOPT_MS */
	int adopt_ms;
};
vmm_status vmm_server_create_hooked(struct vidmm_host *host,
				    const struct vidmm_server_options *options,
				    const struct vmm_server_hooks *hooks,
				    struct vidmm_server **server) VMM_MUST_CHECK;
/* Handles one message. fd: the host's end of the channel; no other thread steps it. */
void vmm_server_step(struct vidmm_server *server, int fd);
/* The client has closed its ends of all its channels: closes them here too. */
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
	/* hangups: epoll of first channels and view sockets. end: an eventfd. */
	int epoll, hangups, end;
	int epoch; /* read-only descriptor of the world's epoch; -1: clients lock by messages */
	struct vmm_os_budget *budget; /* NULL: a stepped server */
	/* a client may have that many descriptors at most; constant */
	uint32_t descriptors_limit;
	/*
	 * Beyond pending_most channels that have sent nothing, the oldest is shut down; beyond
	 * pending_max, and beyond closing_max connections that are being closed, none is accepted.
	 */
	uint32_t pending_most, pending_max, closing_max;
	int spare; /* a spare descriptor, closed to accept a connection when there are no more */
	_Atomic bool stopping;
	_Atomic uint64_t last_session;
	_Atomic uint32_t late; /* number of clients whose write protection was late */
	struct vmm_os_mutex lock;
	/* Guarded by lock. */
	struct vmm_list sessions, pending, listeners;
	uint32_t session_count VMM_GUARDED_BY(vmm_server_lock_class);
	uint32_t pending_count VMM_GUARDED_BY(vmm_server_lock_class);
	/* refused connections and pending channels that are being closed */
	uint32_t closing_count VMM_GUARDED_BY(vmm_server_lock_class);
	/* listeners are not armed, because pending_count or closing_count is at its limit */
	bool accept_paused VMM_GUARDED_BY(vmm_server_lock_class);
	uint32_t worker_count VMM_GUARDED_BY(vmm_server_lock_class);
	/* texts.c. Taken in event functions, with any lock held; nothing is called under it. */
	pthread_mutex_t texts_lock;
	struct vmm_list texts; /* sessions that asked for texts; guarded by texts_lock */
	_Atomic bool texts_wanted;
	/* begins with the first session that asks for texts; 0: none */
	_Atomic uint32_t texts_subscription;
	struct vmm_list ended; /* workers that ended and are to be joined */
	/* Workers that wait for events. Changed without the lock. */
	_Atomic uint32_t waiting;
	/*
	 * futex: counts ends of sessions, pending channels and workers; vidmm_server_destroy waits
	 * for it
	 */
	_Atomic uint32_t gone;
};

VMM_LOCK_PAIR(vmm_server_lock, vmm_server_unlock, vmm_server_lock_class, vmm_os_mutex,
	      struct vidmm_server, lock);
VMM_LOCK_PAIR(vmm_registration_lock, vmm_registration_unlock, vmm_registration_lock_class,
	      vmm_os_mutex, struct vmm_session, registration_lock);

void vmm_serve_log(struct vidmm_server *server, const char *format, ...) VMM_PRINTF(2, 3);
/* Reports an end to vidmm_server_destroy. */
void vmm_serve_report_end(struct vidmm_server *server);
/* Uncounts `count` connections that were counted in closing_count and are closed now. */
/* Listens again if that was paused and fewer connections are pending or being closed now. */
void vmm_serve_resume_accepting(struct vidmm_server *server);
void vmm_serve_uncount_closing(struct vidmm_server *server, uint32_t count);
/* epoll_ctl with `data`; returns whether it succeeded. */
bool vmm_serve_watch(int epoll, int operation, int fd, uint32_t events, uint64_t data);
/* Accepts connections that wait at the listener, and listens again. */
void vmm_listener_accept(struct vmm_listener *listener);

static inline struct vmm_os *vmm_serve_os(const struct vidmm_server *server)
{
	return server->host->world.os;
}

#endif
