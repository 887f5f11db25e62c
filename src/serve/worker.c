/* SPDX-License-Identifier: MIT */
/*
 * Workers: all wait for all channels; who gets a request executes it. Before that it makes sure that another one waits, so a call
 * that blocks holds a thread and nothing else. A channel has one request in flight, so there are at most as many workers as
 * channels, and those that wait.
 */
#include "serve/serve_private.h"

#include <poll.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/os_own_thread.h"

/* Workers that wait although there is nothing to do; and for how long more than those do. */
enum { IDLE = 2, IDLE_MS = 2000 };

void vmm_channel_arm(struct vmm_channel *channel)
{
	struct epoll_event event = {
		.events = EPOLLIN | EPOLLONESHOT,
		.data = {.u64 = (uint64_t)(uintptr_t)channel | VMM_SOURCE_CHANNEL}};
	int epoll = channel->server->epoll, fd = channel->fd;

	atomic_store_explicit(&channel->armed, 1, memory_order_release);
	/*
	 * From here on it may be somebody else's, or gone. The bare system call: ThreadSanitizer does not know that whoever then
	 * closes the descriptor comes behind it.
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

		vmm_os_mutex_lock(&server->lock);
		if (!vmm_list_empty(&server->ended)) {
			worker = vmm_container_of(server->ended.next, struct vmm_worker, link);
			vmm_list_remove(&worker->link);
		}
		vmm_os_mutex_unlock(&server->lock);
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
	case VMM_SOURCE_DEATHS:
		vmm_session_deaths(server);
		break;
	default:
		break;
	}
}

/* Of a socket, or of all that have hung up: what comes of it may be the end of a session or of a connection, which takes its time. */
static void handle_away(struct vmm_worker *worker, uint64_t data)
{
	bool left = vmm_worker_leave(worker);

	handle(worker, data);
	if (left)
		vmm_worker_return(worker);
}

/* More wait than need to: this one may go. */
static bool too_many(struct vidmm_server *server)
{
	uint32_t waiting = atomic_load(&server->waiting);

	while (waiting > IDLE)
		if (atomic_compare_exchange_weak(&server->waiting, &waiting, waiting - 1))
			return true;
	return false;
}

static void *work(void *argument)
{
	struct vmm_worker *worker = argument;
	struct vidmm_server *server = worker->server;

	(void)vmm_os_set_current(vmm_serve_os(server));
	for (;;) {
		struct epoll_event event;
		int count = epoll_wait(server->epoll, &event, 1, IDLE_MS);

		if (count == 0 && too_many(server))
			break;
		if (count > 0 && event.data.u64 == VMM_SOURCE_END) {
			atomic_fetch_sub(&server->waiting, 1);
			break;
		}
		if (count > 0)
			(event.data.u64 & VMM_SOURCE_MASK) == VMM_SOURCE_CHANNEL
				? handle(worker, event.data.u64)
				: handle_away(worker, event.data.u64);
	}
	vmm_os_mutex_lock(&server->lock);
	server->worker_count--;
	vmm_list_push_back(&server->ended, &worker->link);
	vmm_os_mutex_unlock(&server->lock);
	vmm_serve_gone(server);
	return NULL;
}

/* One more, which counts as waiting from now on. */
static bool add(struct vidmm_server *server)
{
	struct vmm_worker *worker = vmm_calloc(1, sizeof(*worker));

	join_ended(server);
	if (!worker)
		return false;
	worker->server = server;
	vmm_os_mutex_lock(&server->lock);
	server->worker_count++;
	atomic_fetch_add(&server->waiting, 1);
	bool started = vmm_packet_room(&worker->packet) &&
		       vmm_os_start_own_thread(&worker->thread, work, worker, "vidmm-serve");
	if (!started) {
		server->worker_count--;
		atomic_fetch_sub(&server->waiting, 1);
	}
	vmm_os_mutex_unlock(&server->lock);
	if (!started)
		vmm_worker_destroy(worker);
	return started;
}

bool vmm_worker_leave(struct vmm_worker *worker)
{
	struct vidmm_server *server = worker->server;

	if (worker->left)
		return false;
	if (!server->hooks.stepped && atomic_fetch_sub(&server->waiting, 1) <= 1 && !add(server)) {
		atomic_fetch_add(&server->waiting, 1);
		return false;
	}
	worker->left = true;
	return true;
}

void vmm_worker_return(struct vmm_worker *worker)
{
	worker->left = false;
	if (!worker->server->hooks.stepped)
		atomic_fetch_add(&worker->server->waiting, 1);
}

vmm_status vmm_workers_start(struct vidmm_server *server)
{
	for (uint32_t i = 0; i < IDLE; i++)
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

		vmm_os_mutex_lock(&server->lock);
		uint32_t left = server->worker_count;
		vmm_os_mutex_unlock(&server->lock);
		if (!left)
			break;
		(void)!vmm_os_wait(vmm_serve_os(server), &server->gone, gone, VMM_OS_FOREVER,
				   "end of workers", left);
	}
	join_ended(server);
}

/* ---- a channel that has something ---- */

static bool serve_stranger(struct vmm_channel *channel, struct vmm_packet *packet)
{
	switch (packet->u.head.kind) {
	case VMM_MESSAGE_HELLO:
		return vmm_session_hello(channel, packet);
	case VMM_MESSAGE_JOIN:
		return vmm_session_join(channel, packet);
	case VMM_MESSAGE_CLIENTS:
		return vmm_session_list(channel);
	default:
		vmm_serve_log(channel->server, "refused: pid %d begins with a message of kind %u",
			      channel->peer.pid, packet->u.head.kind);
		return false;
	}
}

static bool serve_message(struct vmm_worker *worker, struct vmm_channel *channel)
{
	struct vmm_packet *packet = &worker->packet;

	if (!channel->session)
		return serve_stranger(channel, packet);
	if (packet->u.head.kind == VMM_MESSAGE_REQUEST)
		return vmm_serve_request(worker, channel);
	if (packet->u.head.kind == VMM_MESSAGE_FAREWELL && channel->first &&
	    packet->bytes == sizeof(packet->u.head) && !packet->u.head.bytes)
		vmm_session_end(channel->session, "has gone");
	else
		vmm_session_end(channel->session,
				"is cut off: it sent a message that has no place there");
	return false;
}

/* Of a first channel at whose end nothing was said. It may be ours (hung_up in session.c): then the other side has it open still. */
static const char *why_gone(const struct vmm_channel *channel)
{
	struct pollfd end = {.fd = channel->fd};

	return poll(&end, 1, 0) == 1 && (end.revents & POLLHUP)
		       ? "has gone without a farewell"
		       : "has gone: its view socket is closed";
}

/* False: the channel has come to its end. */
static bool receive(struct vmm_worker *worker, struct vmm_channel *channel, bool wait, bool *some)
{
	char why[128];

	*some = false;
	if (!vmm_packet_room(&worker->packet))
		return true; /* it is told again at once; memory may come back */
	switch (wait ? vmm_packet_await(channel->fd, &worker->packet)
		     : vmm_packet_receive(channel->fd, &worker->packet)) {
	case VMM_RECEIVED:
		*some = true;
		return serve_message(worker, channel);
	case VMM_RECEIVED_NOTHING:
		return true;
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
			vmm_session_end(channel->session, why_gone(channel));
		return false;
	}
}

/*
 * A program that asks again at once is waited for by the worker that answered it, for as long as SO_RCVTIMEO says, and not by
 * all for all: that spares both the way through the epoll. One that stalls has nobody after that.
 */
#define AT_ONCE_NS 1000000u

static bool asks_at_once(struct vmm_channel *channel, uint64_t now_ns)
{
	return channel->session && !channel->server->hooks.stepped &&
	       now_ns - channel->answered_ns < AT_ONCE_NS;
}

/*
 * Closing what came may take as long as whoever sent it likes: a socket that lingers, a file whose system does not answer, also one
 * inside another socket. So nobody closes it who is waited for.
 */
static void close_what_came(struct vmm_worker *worker)
{
	if (!worker->packet.fd_count)
		return;
	bool left = vmm_worker_leave(worker);

	vmm_packet_close_fds(&worker->packet);
	if (left)
		vmm_worker_return(worker);
}

/* One message, or none. False: the channel has come to its end. */
static bool serve_one(struct vmm_worker *worker, struct vmm_channel *channel, bool wait, bool *some)
{
	bool open = receive(worker, channel, wait, some);

	close_what_came(worker);
	return open && !(channel->session && atomic_load(&channel->session->ended));
}

static bool serve_all(struct vmm_worker *worker, struct vmm_channel *channel)
{
	struct vmm_os *os = vmm_serve_os(worker->server);
	bool at_once = asks_at_once(channel, vmm_os_now_ns(os)), some;
	bool open = serve_one(worker, channel, false, &some);

	if (open && at_once && vmm_worker_leave(worker)) {
		while (open && some)
			open = serve_one(worker, channel, true, &some);
		vmm_worker_return(worker);
	}
	channel->answered_ns = vmm_os_now_ns(os);
	return open;
}

void vmm_worker_serve(struct vmm_worker *worker, struct vmm_channel *channel)
{
	(void)atomic_load_explicit(&channel->armed, memory_order_acquire);
	if (serve_all(worker, channel)) {
		vmm_channel_arm(channel);
		return;
	}
	/* The end of a process may wait for the GPU. Without a worker more, others wait with it. */
	bool left = vmm_worker_leave(worker);
	/* With its first channel a client goes, also if all that was seen of it is that an answer could not be sent. */
	if (channel->session && channel->first)
		vmm_session_end(channel->session, "has gone, inside a call");
	vmm_channel_close(channel);
	if (left)
		vmm_worker_return(worker);
}
