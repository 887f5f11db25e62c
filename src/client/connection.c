/* SPDX-License-Identifier: MIT */
/* Coming and going; what fork() does to it. */
#include "client/client_private.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

/* How long a call waits to hear of the end of a host that cannot be connected to any more. */
enum { END_MS = 5000 };

#define CONNECTION_REFUSED    ((vmm_status)0xC0000236)
#define OBJECT_NAME_INVALID   VMM_OBJECT_NAME_INVALID
#define OBJECT_NAME_NOT_FOUND VMM_OBJECT_NAME_NOT_FOUND

_Atomic(struct vidmm_connection *) vmm_client_attached;

/* ---- all connections, for fork() ---- */

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct vmm_list all = {&all, &all};

static void before_fork(void)
{
	pthread_mutex_lock(&all_lock);
	pthread_mutex_lock(&vmm_client_adopt_lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&vmm_client_adopt_lock);
	pthread_mutex_unlock(&all_lock);
}

static void shut(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/*
 * The sockets are the parent's: a child that kept them would keep the parent's session beyond its end. Its locks may be held by
 * threads that do not exist here, so nothing else is touched.
 */
static void in_child(void)
{
	struct vmm_list *pos;

	vmm_list_for_each (pos, &all) {
		struct vidmm_connection *connection =
			vmm_container_of(pos, struct vidmm_connection, link);

		connection->forked = true;
		atomic_store(&connection->lost, true);
		shut(&connection->view_socket);
		shut(&connection->userfault);
		if (connection->first)
			shut(&connection->first->fd);
	}
	vmm_list_init(&all);
	pthread_mutex_unlock(&vmm_client_adopt_lock);
	pthread_mutex_unlock(&all_lock);
}

static void watch_forks(void)
{
	(void)pthread_atfork(before_fork, after_fork, in_child);
}

static void enlist(struct vidmm_connection *connection)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&all_lock);
	vmm_list_push_back(&all, &connection->link);
	pthread_mutex_unlock(&all_lock);
}

/* ---- the end ---- */

bool vmm_client_is_cut(const struct vidmm_connection *connection)
{
	struct pollfd end = {.fd = connection->view_socket};

	return (connection->epoch &&
		(atomic_load(&connection->epoch->keeper) & VMM_LOCK_HOST_GONE)) ||
	       (poll(&end, 1, 0) == 1 && (end.revents & POLLHUP));
}

void vmm_client_lose(struct vidmm_connection *connection)
{
	if (atomic_exchange(&connection->lost, true))
		return;
	/* Whoever waits on another channel comes out when the host ends the session. */
	if (connection->view_socket >= 0)
		shutdown(connection->view_socket, SHUT_RDWR);
	if (connection->first)
		shutdown(connection->first->fd, SHUT_RDWR);
	vmm_client_wake_fences(connection);
	vmm_client_stop_notices(connection);
}

static void destroy(struct vidmm_connection *connection)
{
	struct vmm_channel_to_host *channel;

	if (!connection->forked) {
		pthread_mutex_lock(&all_lock);
		vmm_list_remove(&connection->link);
		pthread_mutex_unlock(&all_lock);
	}
	while ((channel = connection->idle) != NULL) {
		connection->idle = channel->next;
		vmm_client_channel_destroy(channel);
	}
	shut(&connection->view_socket);
	shut(&connection->userfault);
	shut(&connection->nothing);
	vmm_packet_finish(&connection->view_packet);
	vmm_client_forget_notices(connection);
	vmm_client_window_release(connection);
	vmm_client_finish_fences(connection);
	vmm_client_forget_words(connection);
	pthread_mutex_destroy(&connection->fence_lock);
	pthread_cond_destroy(&connection->fences_left);
	pthread_mutex_destroy(&connection->pool_lock);
	pthread_mutex_destroy(&connection->view_lock);
	pthread_mutex_destroy(&connection->notice_lock);
	pthread_cond_destroy(&connection->notice_done);
	if (!connection->forked) /* there a thread waits for it that is none */
		pthread_cond_destroy(&connection->notice_come);
	vmm_free(connection);
}

void vmm_client_leave(struct vidmm_connection *connection)
{
	struct vidmm_connection *attached = connection;

	atomic_store(&connection->ending, true);
	atomic_compare_exchange_strong(&vmm_client_attached, &attached, NULL);
	vmm_client_forget_devices(connection);
}

void vidmm_disconnect(struct vidmm_connection *connection)
{
	const struct vmm_message_head farewell = {.magic = VMM_PROTOCOL_MAGIC,
						  .kind = VMM_MESSAGE_FAREWELL};

	if (!connection)
		return;
	vmm_client_leave(connection);
	/* Who is inside a call may have the first channel; its end ends the session, and that brings everybody back. */
	if (!vmm_client_lost(connection) && !vmm_client_are_inside(connection))
		(void)!vmm_ok(vmm_client_send(connection, connection->first->fd, &farewell,
					      sizeof(farewell), NULL, NULL, 0));
	vmm_client_lose(connection);
	if (!connection->forked)
		vmm_client_await_leavers(connection);
	if (connection->threaded && !connection->forked)
		pthread_join(connection->thread, NULL);
	if (connection->notice_threaded && !connection->forked)
		pthread_join(connection->notice_thread, NULL);
	destroy(connection);
}

/* ---- the beginning ---- */

/* Its own, so that the host can freeze pages of this program. -1: the kernel does not allow it. */
static int open_userfault(void)
{
	struct uffdio_api api = {.api = UFFD_API,
				 .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP |
					     UFFD_FEATURE_WP_HUGETLBFS_SHMEM};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0)
		fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	if (fd >= 0 && ioctl(fd, UFFDIO_API, &api)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static vmm_status say_hello(struct vidmm_connection *connection)
{
	struct vmm_message_hello hello = {
		.head = {.magic = VMM_PROTOCOL_MAGIC, .kind = VMM_MESSAGE_HELLO},
		.version = VMM_PROTOCOL_VERSION,
		.flags = VMM_HELLO_WORDS,
		.window_address = (uint64_t)(uintptr_t)connection->window,
		.window_bytes = connection->window_bytes,
	};
	struct vmm_message_welcome welcome;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return VMM_INSUFFICIENT_RESOURCES;
	connection->view_socket = pair[0];
	const int fds[] = {pair[1], connection->userfault};
	memcpy(hello.name, connection->name, sizeof(hello.name));
	hello.head.descriptors = connection->userfault >= 0 ? 2 : 1;
	vmm_status status = vmm_client_send(connection, connection->first->fd, &hello,
					    sizeof(hello), NULL, fds, hello.head.descriptors);
	close(pair[1]);
	if (vmm_ok(status))
		status = vmm_client_await_welcome(connection, connection->first, &welcome);
	if (!vmm_ok(status))
		return status;
	connection->process_id = welcome.process_id;
	connection->session[0] = welcome.session[0];
	connection->session[1] = welcome.session[1];
	connection->channels_max = welcome.channels_max;
	return VMM_OK;
}

static struct vidmm_connection *create(const struct vmm_client_options *options)
{
	struct vidmm_connection *connection = vmm_calloc(1, sizeof(*connection));

	if (!connection)
		return NULL;
	connection->options = *options;
	snprintf(connection->name, sizeof(connection->name), "%s",
		 options->name ? options->name : program_invocation_short_name);
	connection->view_socket = connection->userfault = -1;
	pthread_mutex_init(&connection->pool_lock, NULL);
	pthread_mutex_init(&connection->view_lock, NULL);
	pthread_mutex_init(&connection->notice_lock, NULL);
	pthread_cond_init(&connection->notice_done, NULL);
	pthread_cond_init(&connection->notice_come, NULL);
	pthread_mutex_init(&connection->fence_lock, NULL);
	pthread_cond_init(&connection->fences_left, NULL);
	vmm_list_init(&connection->notices);
	vmm_list_init(&connection->registrations);
	connection->nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
	enlist(connection);
	return connection;
}

vmm_status vmm_client_connect(const struct vmm_client_options *options,
			      struct vidmm_connection **result)
{
	struct vidmm_connection *connection = create(options);
	vmm_status status = VMM_NO_MEMORY;

	if (!connection) {
		close(options->fd);
		return status;
	}
	connection->first = vmm_client_channel_create(options->fd);
	if (!connection->first || !vmm_packet_room(&connection->view_packet) ||
	    connection->nothing < 0 || !vmm_client_window_reserve(connection))
		goto out_connection;
	connection->userfault = open_userfault();
	status = say_hello(connection);
	if (vmm_ok(status) && !options->sent && !vmm_client_thread_start(connection))
		status = VMM_INSUFFICIENT_RESOURCES;
	if (!vmm_ok(status))
		goto out_connection;
	connection->channel_count = 1;
	vmm_client_put_channel(connection, connection->first);
	*result = connection;
	return VMM_OK;
out_connection:
	if (!connection->idle)
		vmm_client_channel_destroy(connection->first);
	connection->first = NULL;
	destroy(connection);
	return status;
}

vidmm_status vidmm_connect_fd(int fd, const char *name, int (*more)(void *context), void *context,
			      struct vidmm_connection **connection)
{
	const struct vmm_client_options options = {
		.name = name, .fd = fd, .more = more, .more_context = context};

	if (fd < 0 || !connection)
		return VMM_INVALID_PARAMETER;
	return vmm_client_connect(&options, connection);
}

/* ---- by a path ---- */

static vmm_status status_of(int error)
{
	switch (error) {
	case ECONNREFUSED:
		return CONNECTION_REFUSED;
	case ENOENT:
	case ENOTDIR:
		return OBJECT_NAME_NOT_FOUND;
	case EACCES:
	case EPERM:
		return VMM_ACCESS_DENIED;
	case EPROTOTYPE: /* a socket of another kind */
		return OBJECT_NAME_INVALID;
	default:
		return VMM_INSUFFICIENT_RESOURCES;
	}
}

static vmm_status connect_to(const char *path, int *fd)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int error;

	if (strlen(path) >= sizeof(address.sun_path))
		return OBJECT_NAME_INVALID;
	memcpy(address.sun_path, path, strlen(path));
	*fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (*fd < 0)
		return VMM_INSUFFICIENT_RESOURCES;
	do
		error = connect(*fd, (const struct sockaddr *)&address, sizeof(address)) ? errno
											 : 0;
	while (error == EINTR);
	if (!error)
		return VMM_OK;
	close(*fd);
	return status_of(error);
}

/* A host that nobody can come to any more is about to end, or else somebody has taken its socket's name away. */
static int connect_again(void *context)
{
	const struct vidmm_connection *connection = context;
	struct pollfd end = {.fd = connection->view_socket};
	int fd;
	vmm_status status = connect_to(connection->path, &fd);

	if (vmm_ok(status))
		return fd;
	if (status == CONNECTION_REFUSED || status == OBJECT_NAME_NOT_FOUND)
		(void)!poll(&end, 1, END_MS);
	return -1;
}

/* Empty: nothing says where. */
static void default_path(char *path, size_t size)
{
	const char *said = secure_getenv("VIDMM_SOCKET"),
		   *runtime = secure_getenv("XDG_RUNTIME_DIR");

	path[0] = 0;
	if (said)
		snprintf(path, size, "%s", said);
	else if (runtime)
		snprintf(path, size, "%s/vidmm/socket", runtime);
}

vidmm_status vidmm_connect(const char *given, const char *name,
			   struct vidmm_connection **connection)
{
	struct vmm_client_options options = {.name = name};
	char path[256];

	if (!connection)
		return VMM_INVALID_PARAMETER;
	if (!given)
		default_path(path, sizeof(path));
	else
		snprintf(path, sizeof(path), "%s", given);
	if (!path[0])
		return OBJECT_NAME_NOT_FOUND;
	vmm_status status = connect_to(path, &options.fd);
	if (vmm_ok(status))
		status = vmm_client_connect(&options, connection);
	if (!vmm_ok(status))
		return status;
	/* No call has been made yet, so nobody has asked for another channel. */
	memcpy((*connection)->path, path, sizeof((*connection)->path));
	(*connection)->options.more = connect_again;
	(*connection)->options.more_context = *connection;
	return VMM_OK;
}

vmm_status vmm_client_attach_named(struct vidmm_connection **connection)
{
	static pthread_mutex_t first_call = PTHREAD_MUTEX_INITIALIZER;
	vmm_status status = VMM_OK;

	pthread_mutex_lock(&first_call);
	*connection = atomic_load(&vmm_client_attached);
	if (!*connection)
		status = vidmm_connect(NULL, NULL, connection);
	if (vmm_ok(status))
		atomic_store(&vmm_client_attached, *connection);
	pthread_mutex_unlock(&first_call);
	return status;
}

uint32_t vidmm_connection_process_id(const struct vidmm_connection *connection)
{
	return connection->process_id;
}
