/* SPDX-License-Identifier: MIT */
/*
 * Workers: threads that all wait for events of one epoll. The worker that gets an event handles it.
 * Before what may block, it makes sure that another worker waits, so a call that blocks holds only
 * its own thread. A channel has one request in flight, so there are at most as many workers as
 * channels, plus those that wait.
 */
#include "serve/serve_private.h"

#include <poll.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/os_own_thread.h"

/*
 * Workers that wait although there is nothing to do; how long others wait before they end, in ms.
 */
enum { IDLE_WORKERS = 2, IDLE_MS = 2000 };

void vmm_channel_arm(struct vmm_channel *channel)
{
	struct epoll_event event = {
		.events = EPOLLIN | EPOLLONESHOT,
		.data = {.u64 = (uint64_t)(uintptr_t)channel | VMM_SOURCE_CHANNEL}};
	int epoll = channel->server->epoll, fd = channel->fd;

	atomic_store_explicit(&channel->armed, 1, memory_order_release);
	/*
	 * From here on another handler may have the channel, or have freed it. The system call is
	 * made directly because ThreadSanitizer does not know that a later close() of the
	 * descriptor is ordered after it.
	 */
	vmm_assert(syscall(SYS_epoll_ctl, epoll, EPOLL_CTL_MOD, fd, &event) == 0);
}

/* ---- threads ---- */

void vmm_worker_destroy(struct vmm_worker *worker)
{
	vmm_packet_finish(&worker->packet);
	vmm_wire_finish(&worker->call);
	vmm_free(worker->answer.data);
	vmm_free(worker);
}

static void join_ended(struct vidmm_server *server)
{
	for (;;) {
		struct vmm_worker *worker = NULL;

		vmm_server_lock(server);
		if (!vmm_list_empty(&server->ended)) {
			worker = vmm_container_of(server->ended.next, struct vmm_worker, link);
			vmm_list_remove(&worker->link);
		}
		vmm_server_unlock(server);
		if (!worker)
			return;
		pthread_join(worker->thread, NULL);
		vmm_worker_destroy(worker);
	}
}

static void handle(struct vmm_worker *worker, uint64_t data)
{
	struct vidmm_server *server = worker->server;
	void *what = (void *)(uintptr_t)(data & ~(uint64_t)VMM_SOURCE_MASK);

	switch (data & VMM_SOURCE_MASK) {
	case VMM_SOURCE_CHANNEL:
		vmm_worker_serve(worker, what);
		break;
	case VMM_SOURCE_LISTENER:
		vmm_listener_accept(what);
		break;
	case VMM_SOURCE_VIEWS:
		vmm_session_flush(server, data >> VMM_SOURCE_BITS);
		break;
	case VMM_SOURCE_HANGUPS:
		vmm_session_hangups(server);
		break;
	default:
		break;
	}
}

/*
 * Handles an event that is not of a channel. It may end a session or close a connection, both of
 * which may take long.
 */
static void handle_blocking(struct vmm_worker *worker, uint64_t data)
{
	bool blocking = vmm_worker_begin_blocking(worker);

	handle(worker, data);
	if (blocking)
		vmm_worker_end_blocking(worker);
}

/* Returns whether this worker is to end because more than IDLE_WORKERS wait. */
static bool should_end(struct vidmm_server *server)
{
	uint32_t waiting = atomic_load(&server->waiting);

	while (waiting > IDLE_WORKERS)
		if (atomic_compare_exchange_weak(&server->waiting, &waiting, waiting - 1))
			return true;
	return false;
}

static void *worker_thread(void *argument)
{
	struct vmm_worker *worker = argument;
	struct vidmm_server *server = worker->server;

	(void)vmm_os_set_current(vmm_serve_os(server));
	for (;;) {
		struct epoll_event event;
		int count = epoll_wait(server->epoll, &event, 1, IDLE_MS);

		if (count == 0 && should_end(server))
			break;
		if (count > 0 && event.data.u64 == VMM_SOURCE_END) {
			atomic_fetch_sub(&server->waiting, 1);
			break;
		}
		if (count > 0)
			(event.data.u64 & VMM_SOURCE_MASK) == VMM_SOURCE_CHANNEL
				? handle(worker, event.data.u64)
				: handle_blocking(worker, event.data.u64);
	}
	vmm_server_lock(server);
	server->worker_count--;
	vmm_list_push_back(&server->ended, &worker->link);
	vmm_server_unlock(server);
	vmm_serve_report_end(server);
	return NULL;
}

/* Starts one more worker, which counts as waiting from now on. */
static bool add(struct vidmm_server *server)
{
	struct vmm_worker *worker = vmm_calloc(1, sizeof(*worker));

	join_ended(server);
	if (!worker)
		return false;
	worker->server = server;
	vmm_server_lock(server);
	server->worker_count++;
	atomic_fetch_add(&server->waiting, 1);
	bool started =
		vmm_packet_reserve(&worker->packet) &&
		vmm_os_start_own_thread(&worker->thread, worker_thread, worker, "vidmm-serve");
	if (!started) {
		server->worker_count--;
		atomic_fetch_sub(&server->waiting, 1);
	}
	vmm_server_unlock(server);
	if (!started)
		vmm_worker_destroy(worker);
	return started;
}

bool vmm_worker_begin_blocking(struct vmm_worker *worker)
{
	struct vidmm_server *server = worker->server;

	if (worker->blocking)
		return false;
	if (!server->hooks.stepped && atomic_fetch_sub(&server->waiting, 1) <= 1 && !add(server)) {
		atomic_fetch_add(&server->waiting, 1);
		return false;
	}
	worker->blocking = true;
	return true;
}

void vmm_worker_end_blocking(struct vmm_worker *worker)
{
	worker->blocking = false;
	if (!worker->server->hooks.stepped)
		atomic_fetch_add(&worker->server->waiting, 1);
}

vmm_status vmm_workers_start(struct vidmm_server *server)
{
	for (uint32_t i = 0; i < IDLE_WORKERS; i++)
		if (!add(server)) {
			vmm_workers_end(server);
			return VMM_NO_MEMORY;
		}
	return VMM_OK;
}

void vmm_workers_end(struct vidmm_server *server)
{
	const uint64_t one = 1;

	(void)!write(server->end, &one, sizeof(one));
	for (;;) {
		uint32_t gone = atomic_load(&server->gone);

		vmm_server_lock(server);
		uint32_t left = server->worker_count;
		vmm_server_unlock(server);
		if (!left)
			break;
		(void)!vmm_os_wait(vmm_serve_os(server), &server->gone, gone, VMM_OS_FOREVER,
				   "end of workers", left);
	}
	join_ended(server);
}

/* ---- handling a channel ---- */

static bool serve_pending(struct vmm_channel *channel, struct vmm_packet *packet)
{
	switch (packet->u.head.kind) {
	case VMM_MESSAGE_HELLO:
		return vmm_session_hello(channel, packet);
	case VMM_MESSAGE_JOIN:
		return vmm_session_join(channel, packet);
	case VMM_MESSAGE_CLIENTS:
		return vmm_session_list(channel);
	default:
		vmm_serve_log(channel->server, "refused: pid %d sent a first message of kind %u",
			      channel->peer.pid, packet->u.head.kind);
		return false;
	}
}

static bool serve_message(struct vmm_worker *worker, struct vmm_channel *channel)
{
	struct vmm_packet *packet = &worker->packet;

	if (!channel->session)
		return serve_pending(channel, packet);
	if (packet->u.head.kind == VMM_MESSAGE_REQUEST)
		return vmm_serve_request(worker, channel);
	bool bare =
		channel->first && packet->bytes == sizeof(packet->u.head) && !packet->u.head.bytes;
	if (bare && packet->u.head.kind == VMM_MESSAGE_EXITS) {
		atomic_store(&channel->session->exits, true);
		return true;
	}
	if (bare && packet->u.head.kind == VMM_MESSAGE_DISCONNECT)
		vmm_session_end(channel->session, "disconnected");
	else
		vmm_session_end(channel->session,
				"is cut off: it sent a message of a kind not allowed here");
	return false;
}

/*
 * Why a first channel was closed without DISCONNECT or EXITS. If the peer has it still open, the
 * host shut it down itself (hung_up in session.c).
 */
static const char *why_gone(const struct vmm_channel *channel)
{
	struct pollfd end = {.fd = channel->fd};

	if (poll(&end, 1, 0) == 1 && (end.revents & POLLHUP))
		return "disconnected: it was killed, crashed, or called _exit or exec";
	return "disconnected: its view socket is closed";
}

/* Handles a message whose descriptors this process could not receive. */
static bool serve_incomplete(struct vmm_worker *worker, struct vmm_channel *channel)
{
	if (!channel->session)
		return vmm_session_refuse(channel);
	if (worker->packet.u.head.kind == VMM_MESSAGE_REQUEST)
		return vmm_serve_refuse_request(channel, &worker->packet);
	vmm_session_end(channel->session,
			"is cut off: it sent a message of a kind not allowed here");
	return false;
}

/*
 * Receives and handles one message, if there is one. Returns false if the channel is to be closed.
 */
static bool receive(struct vmm_worker *worker, struct vmm_channel *channel, bool wait, bool *some)
{
	char why[128];

	*some = false;
	if (!vmm_packet_reserve(&worker->packet))
		return true; /* reported again at once; memory may be free then */
	worker->packet.fd_max = channel->session ? 0 : VMM_SERVE_HELLO_DESCRIPTORS;
	switch (wait ? vmm_packet_await(channel->fd, &worker->packet)
		     : vmm_packet_receive(channel->fd, &worker->packet)) {
	case VMM_RECEIVED:
		*some = true;
		return serve_message(worker, channel);
	case VMM_RECEIVED_NOTHING:
		return true;
	case VMM_RECEIVED_INCOMPLETE:
		*some = true;
		return serve_incomplete(worker, channel);
	case VMM_RECEIVED_MALFORMED:
		snprintf(why, sizeof(why), "is cut off: it sent %s", worker->packet.why);
		if (channel->session)
			vmm_session_end(channel->session, why);
		else
			vmm_serve_log(channel->server, "refused: pid %d sent %s", channel->peer.pid,
				      worker->packet.why);
		return false;
	default:
		if (channel->session && channel->first)
			vmm_session_gone(channel->session, why_gone(channel));
		return false;
	}
}

/*
 * A quick client sends its next request within a millisecond of the last answer. The worker that
 * answered it waits for it on the socket, at most the time of SO_RCVTIMEO, which saves both the way
 * through the epoll. Later requests come through the epoll again.
 */
#define QUICK_CLIENT_NS 1000000u

static bool is_quick(struct vmm_channel *channel, uint64_t now_ns)
{
	return channel->session && !channel->server->hooks.stepped &&
	       now_ns - channel->answered_ns < QUICK_CLIENT_NS;
}

/*
 * Closing a received descriptor may take as long as the client likes: a socket that lingers, a file
 * whose file system does not answer, also one inside another socket. So another worker waits for
 * events meanwhile.
 */
static void close_received(struct vmm_worker *worker, struct vmm_channel *channel)
{
	if (!worker->packet.fd_count)
		return;
	bool blocking = vmm_worker_begin_blocking(worker);

	vmm_packet_close_fds(&worker->packet);
	if (worker->charged)
		vmm_share_give(channel->session, worker->charged);
	worker->charged = 0;
	if (blocking)
		vmm_worker_end_blocking(worker);
}

/* Handles one message, if there is one. Returns false if the channel is to be closed. */
static bool serve_one(struct vmm_worker *worker, struct vmm_channel *channel, bool wait, bool *some)
{
	bool open = receive(worker, channel, wait, some);

	close_received(worker, channel);
	return open && !(channel->session && atomic_load(&channel->session->ended));
}

static bool serve_channel(struct vmm_worker *worker, struct vmm_channel *channel)
{
	struct vmm_os *os = vmm_serve_os(worker->server);
	bool quick = is_quick(channel, vmm_os_now_ns(os)), some;
	bool open = serve_one(worker, channel, false, &some);

	if (open && quick && vmm_worker_begin_blocking(worker)) {
		while (open && some)
			open = serve_one(worker, channel, true, &some);
		vmm_worker_end_blocking(worker);
	}
	channel->answered_ns = vmm_os_now_ns(os);
	return open;
}

void vmm_worker_serve(struct vmm_worker *worker, struct vmm_channel *channel)
{
	(void)atomic_load_explicit(&channel->armed, memory_order_acquire);
	if (serve_channel(worker, channel)) {
		vmm_channel_arm(channel);
		return;
	}
	/*
	 * The end of a process may wait for the GPU. If no other worker could be started, events
	 * wait with it.
	 */
	bool blocking = vmm_worker_begin_blocking(worker);
	/* A client ends with its first channel, also if only sending an answer failed. */
	if (channel->session && channel->first)
		vmm_session_end(channel->session, "disconnected inside a call");
	vmm_channel_close(channel);
	if (blocking)
		vmm_worker_end_blocking(worker);
}
