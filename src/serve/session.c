/* SPDX-License-Identifier: MIT */
/*
 * Clients and their channels: how they connect and how they end.
 *
 * A channel belongs to its handler, the worker that got its event. Its epoll registration fires
 * once and is armed again when the handler is done. A thread that wants to close a channel
 * therefore only shuts its socket down; the handler then sees the end and closes it. A session
 * exists as long as it has holders: its channels, and threads that use it just now.
 */
#include "os/os_descriptor.h"
#include "serve/serve_private.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/time.h>
#include <unistd.h>

struct vmm_lock_class vmm_server_lock_class, vmm_registration_lock_class;

/* ---- holders of a session ---- */

static void finish(struct vmm_session *session)
{
	struct vidmm_server *server = session->server;
	struct vidmm_process *process = session->process;

	vmm_server_lock(server);
	session->process = NULL;
	vmm_server_unlock(server);
	vidmm_process_close(process);
	vmm_texts_end(session);
	vmm_serve_forget_registrations(session);
	vmm_views_finish(&session->views);
	vmm_os_mutex_finish(&session->registration_lock);
	vmm_server_lock(server);
	if (session->listed) {
		vmm_list_remove(&session->link);
		server->session_count--;
	}
	vmm_share_end(session); /* with the lock: vmm_shares_name_largest reads the share */
	vmm_server_unlock(server);
	vmm_free(session);
	vmm_serve_report_end(server);
}

static void put(struct vmm_session *session)
{
	struct vidmm_server *server = session->server;

	vmm_server_lock(server);
	bool last = --session->holders == 0;
	vmm_server_unlock(server);
	if (last)
		finish(session);
}

static struct vmm_session *find(struct vidmm_server *server, uint64_t number)
{
	struct vmm_session *found = NULL;
	struct vmm_list *pos;

	vmm_server_lock(server);
	vmm_list_for_each (pos, &server->sessions) {
		struct vmm_session *session = vmm_container_of(pos, struct vmm_session, link);

		if (session->number != number || !session->holders)
			continue;
		session->holders++;
		found = session;
	}
	vmm_server_unlock(server);
	return found;
}

/* ---- channels ---- */

static void shutdown_channels(struct vmm_list *channels)
{
	struct vmm_list *pos;

	vmm_list_for_each (pos, channels)
		shutdown(vmm_container_of(pos, struct vmm_channel, link)->fd, SHUT_RDWR);
}

bool vmm_connection_refuse(int fd, vmm_status status, const char *why)
{
	struct vmm_message_refused message = {
		.head = {.magic = VMM_PROTOCOL_MAGIC, .kind = VMM_MESSAGE_REFUSED},
		.status = status,
	};

	snprintf(message.why, sizeof(message.why), "%s", why);
	(void)vmm_message_send(fd, &message, sizeof(message), NULL, NULL, 0);
	return false;
}

/*
 * Programs that connect and send nothing must not keep others out: beyond pending_most the oldest
 * one of them is shut down. A channel whose message has come, or that is shut down already, is
 * about to be handled and is left alone.
 */
static void shut_down_oldest_locked(struct vidmm_server *server) VMM_REQUIRES(vmm_server_lock_class)
{
	struct vmm_list *pos;

	vmm_assert_held(&server->lock);
	vmm_list_for_each (pos, &server->pending) {
		int fd = vmm_container_of(pos, struct vmm_channel, link)->fd;
		struct pollfd readable = {.fd = fd, .events = POLLIN};

		if (poll(&readable, 1, 0) == 0) {
			shutdown(fd, SHUT_RDWR);
			return;
		}
	}
}

static bool add_pending(struct vidmm_server *server, struct vmm_channel *channel)
{
	vmm_server_lock(server);
	bool taken = !atomic_load(&server->stopping);
	if (taken) {
		if (server->pending_count++ >= server->pending_most)
			shut_down_oldest_locked(server);
		vmm_list_push_back(&server->pending, &channel->link);
	}
	vmm_server_unlock(server);
	return taken;
}

vmm_status vmm_channel_open(struct vidmm_server *server, int fd)
{
	static const struct timeval moment = {.tv_usec = VMM_SERVE_NEXT_REQUEST_US};
	struct vmm_channel *channel = vmm_calloc(1, sizeof(*channel));
	socklen_t length = sizeof(channel->peer);
	vmm_status status = VMM_INSUFFICIENT_RESOURCES;

	if (!channel)
		return VMM_NO_MEMORY;
	channel->server = server;
	channel->fd = fd;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &channel->peer, &length) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &moment, sizeof(moment)))
		goto out_channel;
	status = VMM_ACCESS_DENIED;
	if (server->options.uid_only && channel->peer.uid != geteuid()) {
		vmm_serve_log(server, "refused: a program of user %u", channel->peer.uid);
		(void)vmm_connection_refuse(
			fd, status, "this host accepts only programs of the user who started it");
		goto out_channel;
	}
	status = VMM_CANCELLED;
	if (!add_pending(server, channel))
		goto out_channel;
	if (vmm_serve_watch(server->epoll, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLONESHOT,
			    (uint64_t)(uintptr_t)channel | VMM_SOURCE_CHANNEL))
		return VMM_OK;
	status = VMM_INSUFFICIENT_RESOURCES;
	vmm_server_lock(server);
	vmm_list_remove(&channel->link);
	server->pending_count--;
	vmm_server_unlock(server);
	vmm_serve_resume_accepting(server);
	vmm_serve_report_end(server);
out_channel:
	vmm_free(channel);
	return status;
}

/*
 * Closing a socket closes unread descriptors in it, which may take long. Until then the channel
 * still counts, in channel_count or in closing_count.
 */
static void close_socket(struct vmm_channel *channel)
{
	struct vidmm_server *server = channel->server;
	struct vmm_session *session = channel->session;

	close(channel->fd);
	vmm_free(channel);
	if (!session) {
		vmm_serve_uncount_closing(server, 1);
		return;
	}
	vmm_share_give(session, 1);
	vmm_server_lock(server);
	session->channel_count--;
	vmm_server_unlock(server);
}

void vmm_channel_close(struct vmm_channel *channel)
{
	struct vidmm_server *server = channel->server;
	struct vmm_session *session = channel->session;

	vmm_server_lock(server);
	vmm_list_remove(&channel->link);
	if (session) {
		session->requests += atomic_load(&channel->requests);
		if (channel->first)
			session->first = NULL;
	} else {
		server->pending_count--;
		server->closing_count++;
	}
	vmm_server_unlock(server);
	close_socket(channel);
	if (session)
		put(session);
	else
		vmm_serve_report_end(server);
}

/* Makes a pending channel a channel of the session. */
static void move_to_session_locked(struct vmm_session *session, struct vmm_channel *channel)
	VMM_REQUIRES(vmm_server_lock_class)
{
	vmm_assert_held(&session->server->lock);
	vmm_list_remove(&channel->link);
	session->server->pending_count--;
	vmm_list_push_back(&session->channels, &channel->link);
	session->channel_count++;
	session->holders++;
	channel->session = session;
}

/* ---- connecting ---- */

/* Returns 0 or an errno. */
static int send_welcome(const struct vmm_channel *channel)
{
	const struct vmm_session *session = channel->session;
	const struct vmm_message_welcome message = {
		.head = {.magic = VMM_PROTOCOL_MAGIC, .kind = VMM_MESSAGE_WELCOME},
		.version = VMM_PROTOCOL_VERSION,
		.process_id = session->process_id,
		.session = {session->token[0], session->token[1]},
		.channels_max = channel->server->options.limits.channels,
	};

	return vmm_message_send(channel->fd, &message, sizeof(message), NULL, NULL, 0);
}

/* From now on the client's hang-up is reported. */
static bool watch_hangups(const struct vmm_session *session, const struct vmm_channel *channel)
{
	int hangups = session->server->hangups;

	return vmm_serve_watch(hangups, EPOLL_CTL_ADD, channel->fd, EPOLLRDHUP | EPOLLONESHOT,
			       session->number << 1) &&
	       vmm_serve_watch(hangups, EPOLL_CTL_ADD, session->views.config.socket,
			       EPOLLRDHUP | EPOLLONESHOT, session->number << 1 | 1);
}

/* Returns NULL, or the reason to end the session. */
static const char *welcome_client(const struct vmm_session *session,
				  const struct vmm_channel *channel)
{
	if (!watch_hangups(session, channel)) {
		(void)vmm_connection_refuse(channel->fd, VMM_INSUFFICIENT_RESOURCES,
					    "the host cannot watch its sockets");
		return "is refused: the host cannot watch its sockets";
	}
	switch (send_welcome(channel)) {
	case 0:
		return NULL;
	case EPIPE:
	case ECONNRESET:
		return "disconnected before its welcome was sent";
	default:
		return "is cut off: it does not read its welcome";
	}
}

/* Returns NULL, or what is wrong with the message. */
static const char *check_hello(const struct vmm_message_hello *hello,
			       const struct vmm_packet *packet)
{
	uint64_t end;

	if (hello->version != VMM_PROTOCOL_VERSION)
		return "its protocol version differs from the host's";
	if (hello->flags & ~(VMM_HELLO_WORDS | VMM_HELLO_TEXTS))
		return "it sets unknown flags";
	if (hello->window_address % VMM_PAGE_SIZE || hello->window_bytes % VMM_PAGE_SIZE ||
	    vmm_add_overflows(hello->window_address, hello->window_bytes, &end) ||
	    end > VMM_SERVE_ADDRESS_END)
		return "its window is not a range of whole pages in user space";
	if (!memchr(hello->name, 0, sizeof(hello->name)))
		return "its name has no terminating zero";
	if (hello->head.descriptors > VMM_SERVE_HELLO_DESCRIPTORS)
		return "it sends more descriptors than a HELLO has";
	if (packet->fd_count < 1 || !vmm_packet_is_socket(packet->fds[0]))
		return "it sends no view socket";
	if (packet->fd_count == 2 && !vmm_os_is_anonymous_file(packet->fds[1], "[userfaultfd]"))
		return "the descriptor it sends as a userfaultfd is not one";
	return NULL;
}

static bool init_views(struct vmm_session *session, struct vmm_packet *packet,
		       const struct vmm_message_hello *hello)
{
	struct vidmm_server *server = session->server;
	const struct vmm_views_config config = {
		.os = vmm_serve_os(server),
		.socket = packet->fds[0],
		.userfault = packet->fd_count > 1 ? packet->fds[1] : -1,
		.share = session->share,
		.epoll = server->epoll,
		.data = session->number << VMM_SOURCE_BITS | VMM_SOURCE_VIEWS,
		.window_address = hello->window_address,
		.window_bytes = vmm_min_u64(hello->window_bytes, VMM_SERVE_WINDOW_MAX),
		.unread_bytes = server->options.limits.unread_bytes,
		.epoch = hello->flags & VMM_HELLO_WORDS ? server->epoch : -1,
		.late = &server->late,
		.single_threaded = vmm_os_kind(vmm_serve_os(server)) == VMM_OS_SIM,
		.adopt_ms = server->hooks.adopt_ms ? server->hooks.adopt_ms : VMM_VIEWS_ADOPT_MS,
		.view_sent = server->hooks.view_sent,
		.view_sent_context = server->hooks.context,
	};

	if (!vmm_ok(vmm_views_init(&session->views, &config)))
		return false;
	packet->fd_count = 0; /* the session owns the descriptors now */
	return true;
}

/* Before the process has any object. */
static bool set_limits(struct vmm_session *session)
{
	const struct vidmm_client_limits *limits = &session->server->options.limits;
	struct vmm_process *process = vidmm_core_process(session->process);

	process->handles.limit = limits->handles;
	process->account = vmm_account_create(limits->memory_bytes);
	if (process->account)
		process->account->events_limit = limits->handles;
	return process->account;
}

static vmm_status create(struct vmm_channel *channel, struct vmm_packet *packet,
			 const struct vmm_message_hello *hello, struct vmm_session **result)
{
	struct vidmm_server *server = channel->server;
	struct vmm_session *session = vmm_calloc(1, sizeof(*session));
	vmm_status status = VMM_NO_MEMORY;

	if (!session)
		return status;
	session->server = server;
	session->number = atomic_fetch_add(&server->last_session, 1) + 1;
	session->pid = (uint32_t)channel->peer.pid;
	session->uid = channel->peer.uid;
	vmm_list_init(&session->channels);
	vmm_list_init(&session->link);
	vmm_list_init(&session->registrations);
	/* the name is printed: other characters become '?' */
	for (uint32_t i = 0; i + 1 < sizeof(session->name) && hello->name[i]; i++)
		session->name[i] =
			hello->name[i] < ' ' || hello->name[i] > '~' ? '?' : hello->name[i];
	status = vmm_share_begin(session, 1 + packet->fd_count);
	if (!vmm_ok(status))
		goto out_session;
	status = VMM_NO_MEMORY;
	if (getrandom(session->token, sizeof(session->token), 0) != sizeof(session->token) ||
	    !init_views(session, packet, hello))
		goto out_share;
	if (!vmm_ok(vmm_host_process_open_client(server->host, session->name,
						 &session->views.viewer, &session->process)))
		goto out_views;
	session->process_id = vidmm_process_id(session->process);
	if (!set_limits(session) || ((hello->flags & VMM_HELLO_TEXTS) && !vmm_texts_begin(session)))
		goto out_process;
	vmm_os_mutex_init(&session->registration_lock, vmm_serve_os(server), VMM_RANK_REGISTRATIONS,
			  "registrations");
	*result = session;
	return VMM_OK;
out_process:
	vidmm_process_close(session->process);
out_views:
	vmm_views_finish(&session->views);
out_share:
	vmm_share_end(session);
out_session:
	vmm_free(session);
	return status;
}

/*
 * Adds the session to the list and makes `channel` its first. Returns false if there are too many.
 */
static bool enlist(struct vmm_session *session, struct vmm_channel *channel)
{
	struct vidmm_server *server = session->server;

	vmm_server_lock(server);
	bool room = server->session_count < server->options.clients_max &&
		    !atomic_load(&server->stopping);
	if (room) {
		session->listed = true;
		server->session_count++;
		vmm_list_push_back(&server->sessions, &session->link);
		move_to_session_locked(session, channel);
		session->first = channel;
		session->sockets--; /* the channel's is given back when it is closed */
		channel->first = true;
	}
	vmm_server_unlock(server);
	return room;
}

bool vmm_session_hello(struct vmm_channel *channel, struct vmm_packet *packet)
{
	struct vidmm_server *server = channel->server;
	struct vmm_message_hello hello;

	if (packet->bytes != sizeof(hello) || packet->u.head.bytes)
		return vmm_connection_refuse(channel->fd, VMM_INVALID_PARAMETER, "malformed HELLO");
	memcpy(&hello, &packet->u, VMM_PACKET_HEAD);
	memcpy((char *)&hello + VMM_PACKET_HEAD, packet->body.data,
	       sizeof(hello) - VMM_PACKET_HEAD);
	const char *why = check_hello(&hello, packet);
	if (why) {
		vmm_serve_log(server, "refused: pid %d: %s", channel->peer.pid, why);
		return vmm_connection_refuse(channel->fd, VMM_INVALID_PARAMETER, why);
	}
	struct vmm_session *session = NULL;
	vmm_status status = create(channel, packet, &hello, &session);
	if (status == VMM_INSUFFICIENT_RESOURCES)
		return vmm_connection_refuse(channel->fd, status,
					     "the host has no descriptors left for another client");
	if (!vmm_ok(status))
		return vmm_connection_refuse(channel->fd, VMM_NO_MEMORY, "the host has no memory");
	if (!enlist(session, channel)) {
		vmm_serve_log(server,
			      "refused: %s (pid %u): the maximum of %u clients is connected",
			      session->name, session->pid, server->options.clients_max);
		finish(session);
		return vmm_connection_refuse(channel->fd, VMM_INSUFFICIENT_RESOURCES,
					     "too many clients");
	}
	vmm_serve_resume_accepting(server);
	vmm_serve_log(server, "client %u connected: %s (pid %u, user %u)", session->process_id,
		      session->name, session->pid, session->uid);
	why = welcome_client(session, channel);
	if (why)
		vmm_session_end(session, why);
	return !why;
}

bool vmm_session_refuse(struct vmm_channel *channel)
{
	vmm_serve_log(channel->server, "refused: pid %d: the host has no descriptors left",
		      channel->peer.pid);
	vmm_shares_name_largest(channel->server);
	return vmm_connection_refuse(channel->fd, VMM_INSUFFICIENT_RESOURCES,
				     "the host has no descriptors left");
}

/* Makes a pending channel one of the session, if the session may have one more. */
static const char *join_locked(struct vmm_session *session, struct vmm_channel *channel)
	VMM_REQUIRES(vmm_server_lock_class)
{
	struct vidmm_server *server = session->server;

	vmm_assert_held(&server->lock);
	if (session->channel_count >= server->options.limits.channels)
		return "the session has reached its limit of channels";
	if (session->share && !vmm_os_share_take(session->share, 1))
		return "the session has all descriptors that it may have";
	move_to_session_locked(session, channel);
	return NULL;
}

bool vmm_session_join(struct vmm_channel *channel, struct vmm_packet *packet)
{
	const struct vmm_message_join *join = &packet->u.join;
	struct vidmm_server *server = channel->server;
	const char *why = "no such session";
	vmm_status status = VMM_ACCESS_DENIED;
	struct vmm_list *pos;

	if (packet->bytes != sizeof(*join) || join->head.bytes || packet->fd_count)
		return vmm_connection_refuse(channel->fd, VMM_INVALID_PARAMETER, "malformed JOIN");
	vmm_server_lock(server);
	vmm_list_for_each (pos, &server->sessions) {
		struct vmm_session *session = vmm_container_of(pos, struct vmm_session, link);

		if ((session->token[0] ^ join->session[0]) |
			    (session->token[1] ^ join->session[1]) ||
		    session->uid != channel->peer.uid || atomic_load(&session->ended) ||
		    !session->first)
			continue;
		why = join_locked(session, channel);
		status = why ? VMM_INSUFFICIENT_RESOURCES : VMM_OK;
		break;
	}
	vmm_server_unlock(server);
	if (!vmm_ok(status))
		return vmm_connection_refuse(channel->fd, status, why);
	vmm_serve_resume_accepting(server);
	return !send_welcome(channel);
}

/* ---- disconnecting ---- */

void vmm_session_end(struct vmm_session *session, const char *why)
{
	struct vidmm_server *server = session->server;

	if (atomic_exchange(&session->ended, true))
		return;
	/*
	 * A client that is cut off by views.c may close its ends first; the logged reason is that
	 * of the cut-off.
	 */
	vmm_serve_log(server, "client %u %s", session->process_id,
		      vmm_views_why(&session->views, why));
	vmm_server_lock(server);
	shutdown_channels(&session->channels);
	vmm_server_unlock(server);
	vmm_views_end(&session->views, NULL);
	/* the process exists while the session has holders, of which the caller is one */
	vmm_process_abandon(session->process);
}

void vmm_session_gone(struct vmm_session *session, const char *why)
{
	vmm_session_end(session, atomic_load(&session->exits) ? "exited" : why);
}

void vmm_session_cut(struct vidmm_server *server, uint64_t number, const char *why)
{
	struct vmm_session *session = find(server, number);

	if (!session)
		return;
	vmm_session_end(session, why);
	put(session);
}

/*
 * Ends all sessions before any process is abandoned: otherwise a client would see its wait canceled
 * by the end of another client.
 */
static void end_all_locked(struct vidmm_server *server) VMM_REQUIRES(vmm_server_lock_class)
{
	struct vmm_list *pos;

	vmm_assert_held(&server->lock);
	vmm_list_for_each (pos, &server->sessions) {
		struct vmm_session *session = vmm_container_of(pos, struct vmm_session, link);

		if (!session->holders || atomic_exchange(&session->ended, true))
			continue;
		session->holders++;
		session->to_abandon = true;
		shutdown_channels(&session->channels);
		vmm_views_end(&session->views, NULL);
	}
	shutdown_channels(&server->pending);
}

static struct vmm_session *next_to_abandon(struct vidmm_server *server)
{
	struct vmm_session *found = NULL;
	struct vmm_list *pos;

	vmm_server_lock(server);
	vmm_list_for_each (pos, &server->sessions) {
		struct vmm_session *session = vmm_container_of(pos, struct vmm_session, link);

		if (!found && session->to_abandon)
			found = session;
	}
	if (found)
		found->to_abandon = false;
	vmm_server_unlock(server);
	return found;
}

void vmm_session_end_all(struct vidmm_server *server, const char *why)
{
	struct vmm_session *session;

	vmm_server_lock(server);
	end_all_locked(server);
	vmm_server_unlock(server);
	while ((session = next_to_abandon(server)) != NULL) {
		vmm_serve_log(server, "client %u %s", session->process_id,
			      vmm_views_why(&session->views, why));
		vmm_process_abandon(session->process);
		put(session);
	}
}

/*
 * Handles a hang-up of a session's first channel or (view) its view socket. A channel without a
 * handler gets one now, which reads what was sent last. A channel inside a call gets none, so the
 * session is ended here: `inside` and `hung_up` are each set before the other is read, here and in
 * request.c (a Dekker pattern). If only the view socket is closed, the channel is shut down for
 * reading. Its handler then reads a DISCONNECT that was sent before.
 */
static void hung_up(struct vmm_session *session, bool view)
{
	atomic_store(&session->hung_up, true);
	vmm_server_lock(session->server);
	struct vmm_channel *first = session->first;
	bool no_handler = first ? atomic_load(&first->inside) != 0 : view;
	if (view && !no_handler)
		(void)!shutdown(first->fd, SHUT_RD);
	vmm_server_unlock(session->server);
	if (no_handler && view)
		vmm_session_gone(session, "disconnected: its view socket is closed");
	else if (no_handler)
		vmm_session_gone(session, "disconnected inside a call");
}

void vmm_session_flush(struct vidmm_server *server, uint64_t number)
{
	struct vmm_session *session = find(server, number);

	if (!session)
		return;
	vmm_views_flush(&session->views);
	put(session);
}

void vmm_session_hangups(struct vidmm_server *server)
{
	struct epoll_event events[16];
	struct vmm_session *seen[VMM_ARRAY_LENGTH(events)];
	int count = epoll_wait(server->hangups, events, VMM_ARRAY_LENGTH(events), 0);

	for (int i = 0; i < count; i++) {
		seen[i] = find(server, events[i].data.u64 >> 1);
		if (seen[i])
			hung_up(seen[i], events[i].data.u64 & 1);
	}
	/* Watches again before a process is closed here, which may wait for the GPU. */
	(void)vmm_serve_watch(server->epoll, EPOLL_CTL_MOD, server->hangups, EPOLLIN | EPOLLONESHOT,
			      VMM_SOURCE_HANGUPS);
	for (int i = 0; i < count; i++)
		if (seen[i])
			put(seen[i]);
}

/* ---- list of clients ---- */

static void describe_locked(struct vmm_session *session, struct vidmm_client_info *info)
	VMM_REQUIRES(vmm_server_lock_class)
{
	struct vmm_process *process = vidmm_core_process(session->process);
	struct vmm_list *pos;

	vmm_assert_held(&session->server->lock);
	*info = (struct vidmm_client_info){
		.process_id = session->process_id,
		.pid = session->pid,
		.uid = session->uid,
		.channels = session->channel_count,
		.requests = session->requests,
		.memory_bytes = atomic_load(&process->account->bytes),
	};
	memcpy(info->name, session->name, sizeof(info->name));
	vmm_list_for_each (pos, &session->channels) {
		struct vmm_channel *channel = vmm_container_of(pos, struct vmm_channel, link);

		info->requests += atomic_load(&channel->requests);
		info->requests_in_flight += atomic_load(&channel->inside);
	}
	vmm_process_lock(process);
	vmm_list_for_each (pos, &process->devices)
		info->devices++;
	info->handles = process->handles.used;
	vmm_process_unlock(process);
}

uint32_t vidmm_server_clients(struct vidmm_server *server, struct vidmm_client_info *clients,
			      uint32_t capacity)
{
	uint32_t count = 0;
	struct vmm_list *pos;

	if (!server)
		return 0;
	vmm_server_lock(server);
	vmm_list_for_each (pos, &server->sessions) {
		struct vmm_session *session = vmm_container_of(pos, struct vmm_session, link);

		if (!session->process || atomic_load(&session->ended))
			continue;
		if (count < capacity)
			describe_locked(session, &clients[count]);
		count++;
	}
	vmm_server_unlock(server);
	return count;
}

static bool list_fits(struct vmm_wire_bytes *list, const struct vidmm_client_info *clients,
		      uint32_t count)
{
	struct vmm_message_client *records = vmm_calloc(count ? count : 1, sizeof(*records));

	if (!records)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		records[i] = (struct vmm_message_client){
			.process_id = clients[i].process_id,
			.pid = clients[i].pid,
			.uid = clients[i].uid,
			.channels = clients[i].channels,
			.requests_in_flight = clients[i].requests_in_flight,
			.devices = clients[i].devices,
			.memory_bytes = clients[i].memory_bytes,
			.handles = clients[i].handles,
			.requests = clients[i].requests,
		};
		memcpy(records[i].name, clients[i].name, sizeof(records[i].name));
	}
	*list = (struct vmm_wire_bytes){.data = (uint8_t *)records,
					.length = (uint32_t)(count * sizeof(*records))};
	return true;
}

bool vmm_session_list(struct vmm_channel *channel)
{
	struct vidmm_server *server = channel->server;
	struct vmm_message_head head = {.magic = VMM_PROTOCOL_MAGIC, .kind = VMM_MESSAGE_LIST};
	uint32_t capacity = server->options.clients_max;
	struct vidmm_client_info *clients = vmm_calloc(capacity, sizeof(*clients));
	struct vmm_wire_bytes list = {0};
	int fd = -1;

	if (channel->peer.uid != geteuid() && channel->peer.uid != 0) {
		vmm_free(clients);
		return vmm_connection_refuse(
			channel->fd, VMM_ACCESS_DENIED,
			"only the host's own user and root may ask for the list");
	}
	if (clients && list_fits(&list, clients, vidmm_server_clients(server, clients, capacity))) {
		head.bytes = list.length;
		if (list.length > VMM_PROTOCOL_INLINE_MAX)
			fd = vmm_message_memfd(&list);
		head.descriptors = fd >= 0;
		if (list.length <= VMM_PROTOCOL_INLINE_MAX || fd >= 0)
			(void)vmm_message_send(channel->fd, &head, sizeof(head),
					       fd < 0 ? &list : NULL, &fd, fd >= 0);
		if (fd >= 0)
			close(fd);
	}
	vmm_free(list.data);
	vmm_free(clients);
	return false;
}
