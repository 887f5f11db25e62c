/* SPDX-License-Identifier: MIT */
/* The server: creation, listening sockets, end. */
#include "serve/serve_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { CHANNELS = 64, HANDLES = 1000000, UNREAD_BYTES = 1 << 20, CLIENTS = 1024 };
/* Connections accepted at once. */
enum { ACCEPTS = 16 };

void vmm_serve_log(struct vidmm_server *server, const char *format, ...)
{
	char line[256];
	va_list args;

	if (!server->options.log)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	server->options.log(server->options.log_context, line);
}

void vmm_serve_report_end(struct vidmm_server *server)
{
	/* The lock keeps vidmm_server_destroy from freeing the server before the wake. */
	vmm_server_lock(server);
	atomic_fetch_add(&server->gone, 1);
	vmm_os_wake(vmm_serve_os(server), &server->gone, UINT32_MAX);
	vmm_server_unlock(server);
}

bool vmm_serve_watch(int epoll, int operation, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event event = {.events = events, .data = {.u64 = data}};

	return !epoll_ctl(epoll, operation, fd, &event);
}

static void set_limits(struct vidmm_server *server, const struct vidmm_server_options *options)
{
	struct vidmm_client_limits *limits = &server->options.limits;

	server->options = *options;
	if (!limits->channels)
		limits->channels = CHANNELS;
	if (!limits->handles)
		limits->handles = HANDLES;
	if (!limits->unread_bytes)
		limits->unread_bytes = UNREAD_BYTES;
	if (!server->options.clients_max)
		server->options.clients_max = CLIENTS;
}

static void close_all(struct vidmm_server *server)
{
	const int fds[] = {server->epoll, server->hangups, server->end, server->spare,
			   server->epoch};

	for (size_t i = 0; i < VMM_ARRAY_LENGTH(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static bool open_all(struct vidmm_server *server)
{
	server->epoll = epoll_create1(EPOLL_CLOEXEC);
	server->hangups = epoll_create1(EPOLL_CLOEXEC);
	server->end = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	server->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return server->epoll >= 0 && server->hangups >= 0 && server->end >= 0 &&
	       server->spare >= 0 &&
	       vmm_serve_watch(server->epoll, EPOLL_CTL_ADD, server->hangups,
			       EPOLLIN | EPOLLONESHOT, VMM_SOURCE_HANGUPS) &&
	       vmm_serve_watch(server->epoll, EPOLL_CTL_ADD, server->end, EPOLLIN, VMM_SOURCE_END);
}

vmm_status vmm_server_create_hooked(struct vidmm_host *host,
				    const struct vidmm_server_options *options,
				    const struct vmm_server_hooks *hooks,
				    struct vidmm_server **result)
{
	struct vidmm_server *server = vmm_calloc(1, sizeof(*server));
	vmm_status status = VMM_NO_MEMORY;

	if (!server)
		return status;
	server->host = host;
	server->hooks = *hooks;
	server->epoch = -1;
	vmm_list_init(&server->spare_steps);
	set_limits(server, options);
	vmm_list_init(&server->sessions);
	vmm_list_init(&server->pending);
	vmm_list_init(&server->listeners);
	vmm_list_init(&server->ended);
	vmm_list_init(&server->texts);
	pthread_mutex_init(&server->texts_lock, NULL);
	vmm_os_mutex_init(&server->lock, host->world.os, VMM_RANK_SERVER, "server");
	/*
	 * Without the epoch every lock is a message, which is slower. On virtual time every lock is
	 * to be a message.
	 */
	if (vmm_os_kind(host->world.os) == VMM_OS_LINUX &&
	    !vmm_ok(vmm_world_share_epoch(&host->world, &server->epoch)))
		server->epoch = -1;
	if (open_all(server) && vmm_shares_begin(server))
		status = hooks->stepped ? VMM_OK : vmm_workers_start(server);
	if (vmm_ok(status)) {
		*result = server;
		return VMM_OK;
	}
	close_all(server);
	vmm_shares_end(server);
	vmm_texts_finish(server);
	vmm_os_mutex_finish(&server->lock);
	vmm_free(server);
	return status;
}

vidmm_status vidmm_server_create(struct vidmm_host *host,
				 const struct vidmm_server_options *options,
				 struct vidmm_server **result)
{
	const struct vmm_server_hooks none = {0};

	if (!host || !options || !result || options->struct_size != sizeof(*options))
		return VMM_INVALID_PARAMETER;
	if (vmm_os_kind(host->world.os) != VMM_OS_LINUX)
		return VMM_NOT_SUPPORTED;
	return vmm_server_create_hooked(host, options, &none, result);
}

static bool all_ended(struct vidmm_server *server)
{
	vmm_server_lock(server);
	bool ended = !server->session_count && !server->pending_count && !server->closing_count;
	vmm_server_unlock(server);
	return ended;
}

void vidmm_server_destroy(struct vidmm_server *server)
{
	if (!server)
		return;
	struct vmm_os *os = vmm_serve_os(server);

	atomic_store(&server->stopping, true);
	for (;;) {
		uint32_t gone = atomic_load(&server->gone);

		vmm_session_end_all(server, "is cut off: the host ends");
		if (all_ended(server))
			break;
		vmm_assert(!server->hooks.stepped);
		(void)!vmm_os_wait(os, &server->gone, gone, VMM_OS_FOREVER, "end of clients", 0);
	}
	vmm_workers_end(server);
	vmm_server_steps_finish(server);
	while (!vmm_list_empty(&server->listeners)) {
		struct vmm_listener *listener =
			vmm_container_of(server->listeners.next, struct vmm_listener, link);

		vmm_list_remove(&listener->link);
		close(listener->fd);
		vmm_free(listener);
	}
	close_all(server);
	vmm_shares_end(server);
	vmm_texts_finish(server);
	vmm_os_mutex_finish(&server->lock);
	vmm_free(server);
}

/* ---- sockets ---- */

vidmm_status vidmm_server_connect(struct vidmm_server *server, int fd)
{
	if (!server || !vmm_packet_is_connected(fd))
		return VMM_INVALID_PARAMETER;
	vmm_status status = vmm_channel_open(server, fd);

	if (!vmm_ok(status))
		close(fd);
	return status;
}

vidmm_status vidmm_server_listen(struct vidmm_server *server, int fd)
{
	int listens = 0;
	socklen_t length = sizeof(listens);

	if (!server || !vmm_packet_is_socket(fd) ||
	    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) || !listens)
		return VMM_INVALID_PARAMETER;
	struct vmm_listener *listener = vmm_calloc(1, sizeof(*listener));
	if (!listener)
		return VMM_NO_MEMORY;
	*listener = (struct vmm_listener){.server = server, .fd = fd};
	int flags = fcntl(fd, F_GETFL);
	(void)fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	vmm_server_lock(server);
	vmm_list_push_back(&server->listeners, &listener->link);
	vmm_server_unlock(server);
	if (vmm_serve_watch(server->epoll, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLONESHOT,
			    (uint64_t)(uintptr_t)listener | VMM_SOURCE_LISTENER))
		return VMM_OK;
	vmm_server_lock(server);
	vmm_list_remove(&listener->link);
	vmm_server_unlock(server);
	vmm_free(listener);
	return VMM_INSUFFICIENT_RESOURCES;
}

static bool has_space_locked(const struct vidmm_server *server) VMM_REQUIRES(vmm_server_lock_class)
{
	vmm_assert_held(&server->lock);
	return server->closing_count < server->closing_max &&
	       server->pending_count < server->pending_max;
}

static bool may_accept(struct vidmm_server *server)
{
	vmm_server_lock(server);
	bool may = has_space_locked(server);
	server->accept_paused |= !may;
	vmm_server_unlock(server);
	return may && !atomic_load(&server->stopping);
}

/*
 * No descriptors are left: accepts a connection with the spare descriptor, so that the caller can
 * close it. A connection that stays in the queue would be reported again and again. A HELLO that
 * has come already is read, without its descriptors: otherwise the client would see a broken
 * connection instead of the refusal.
 */
static int accept_with_spare(struct vmm_listener *listener)
{
	struct vidmm_server *server = listener->server;
	char byte;

	vmm_server_lock(server);
	if (server->spare >= 0)
		close(server->spare);
	server->spare = -1;
	int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC);
	vmm_server_unlock(server);
	vmm_serve_log(server, "refused: the host has no descriptors left");
	vmm_shares_name_largest(server);
	if (fd >= 0) {
		(void)!recv(fd, &byte, sizeof(byte), MSG_DONTWAIT);
		(void)vmm_connection_refuse(fd, VMM_INSUFFICIENT_RESOURCES,
					    "the host has no descriptors left");
	}
	return fd;
}

static void reopen_spare(struct vidmm_server *server)
{
	vmm_server_lock(server);
	if (server->spare < 0)
		server->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	vmm_server_unlock(server);
}

/*
 * Accepts up to ACCEPTS connections. Stores the descriptors of those that are refused; they may
 * have data in them already.
 */
static uint32_t accept_some(struct vmm_listener *listener, int refused[ACCEPTS])
{
	struct vidmm_server *server = listener->server;
	uint32_t count = 0;

	for (uint32_t i = 0; i < ACCEPTS && may_accept(server); i++) {
		int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC);

		if (fd >= 0) {
			if (!vmm_ok(vmm_channel_open(server, fd)))
				refused[count++] = fd;
		} else if (errno == EMFILE || errno == ENFILE) {
			fd = accept_with_spare(listener);
			if (fd >= 0)
				refused[count++] = fd;
			break;
		} else if (errno != EINTR && errno != ECONNABORTED) {
			break;
		}
	}
	return count;
}

static void arm(struct vmm_listener *listener)
{
	(void)vmm_serve_watch(listener->server->epoll, EPOLL_CTL_MOD, listener->fd,
			      EPOLLIN | EPOLLONESHOT,
			      (uint64_t)(uintptr_t)listener | VMM_SOURCE_LISTENER);
}

static void resume_accepting_locked(struct vidmm_server *server) VMM_REQUIRES(vmm_server_lock_class)
{
	struct vmm_list *pos;

	vmm_assert_held(&server->lock);
	if (!server->accept_paused || !has_space_locked(server))
		return;
	server->accept_paused = false;
	vmm_list_for_each (pos, &server->listeners)
		arm(vmm_container_of(pos, struct vmm_listener, link));
}

void vmm_serve_resume_accepting(struct vidmm_server *server)
{
	vmm_server_lock(server);
	resume_accepting_locked(server);
	vmm_server_unlock(server);
}

void vmm_serve_uncount_closing(struct vidmm_server *server, uint32_t count)
{
	vmm_server_lock(server);
	server->closing_count -= count;
	resume_accepting_locked(server);
	vmm_server_unlock(server);
}

/* Listens again before it closes the refused connections, because that may take long. */
void vmm_listener_accept(struct vmm_listener *listener)
{
	struct vidmm_server *server = listener->server;
	int refused[ACCEPTS];

	uint32_t count = accept_some(listener, refused);
	vmm_server_lock(server);
	server->closing_count += count;
	bool paused = server->accept_paused;
	if (!paused)
		arm(listener);
	vmm_server_unlock(server);
	if (paused)
		vmm_serve_log(server,
			      "no connection is accepted: %u connections have sent nothing, or "
			      "refused connections are still being closed",
			      server->pending_max);
	if (!count)
		return;
	for (uint32_t i = 0; i < count; i++)
		close(refused[i]);
	reopen_spare(server);
	vmm_serve_uncount_closing(server, count);
	vmm_serve_report_end(server);
}
