/* SPDX-License-Identifier: MIT */
/* Connecting and disconnecting, and what fork() does to connections. */
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

/* How long a new channel that cannot connect waits for the end of the session. */
enum { END_MS = 5000 };

#define CONNECTION_REFUSED    ((vmm_status)0xC0000236)
#define OBJECT_NAME_INVALID   VMM_OBJECT_NAME_INVALID
#define OBJECT_NAME_NOT_FOUND VMM_OBJECT_NAME_NOT_FOUND

_Atomic(struct vidmm_connection *) vmm_client_attached;

/* ---- all connections, for fork() ---- */

struct vmm_lock_class vmm_client_pool_class, vmm_client_view_class, vmm_client_notification_class;
struct vmm_lock_class vmm_client_fence_class;
/* The class of all_lock. */
VMM_STATIC_LOCK_CLASS(all_class);

static struct vmm_client_mutex all_lock = VMM_CLIENT_MUTEX;
static struct vmm_list all VMM_GUARDED_BY(all_class) = {&all, &all};

VMM_LOCK_FUNCTIONS(lock_all, unlock_all, (void), all_class, vmm_client_mutex, &all_lock);

/*
 * Held while the first D3DKMT call connects, and by fork(). Guards `first_connection`, which
 * vmm_client_attach_named has made.
 */
static pthread_mutex_t first_call = PTHREAD_MUTEX_INITIALIZER;
static struct vidmm_connection *first_connection;

static void before_fork(void) VMM_ACQUIRES(all_class, vmm_client_adopt_class)
{
	pthread_mutex_lock(&first_call);
	lock_all();
	vmm_client_adopt_lock();
}

static void after_fork(void) VMM_RELEASES(vmm_client_adopt_class, all_class)
{
	vmm_client_adopt_unlock();
	unlock_all();
	pthread_mutex_unlock(&first_call);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/*
 * Runs in the child of fork(). The sockets belong to the parent: a child that kept them open would
 * keep the parent's session alive after the parent's end. Locks may be held by threads that do not
 * exist in the child, so only the descriptors are closed. The next D3DKMT call of a program that
 * did not connect by itself connects anew.
 */
static void in_child(void) VMM_RELEASES(vmm_client_adopt_class, all_class)
{
	struct vmm_list *pos;

	vmm_list_for_each (pos, &all) {
		struct vidmm_connection *connection =
			vmm_container_of(pos, struct vidmm_connection, link);

		connection->forked = true;
		atomic_store(&connection->lost, true);
		close_fd(&connection->view_socket);
		close_fd(&connection->userfault);
		if (connection->first)
			close_fd(&connection->first->fd);
	}
	vmm_list_init(&all);
	if (first_connection)
		atomic_compare_exchange_strong(&vmm_client_attached, &first_connection, NULL);
	first_connection = NULL;
	vmm_client_adopt_unlock();
	unlock_all();
	pthread_mutex_unlock(&first_call);
}

static void watch_forks(void)
{
	(void)pthread_atfork(before_fork, after_fork, in_child);
}

static void enlist(struct vidmm_connection *connection)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch_forks);
	lock_all();
	vmm_list_push_back(&all, &connection->link);
	unlock_all();
}

/* ---- the end of a connection ---- */

bool vmm_client_host_is_gone(const struct vidmm_connection *connection)
{
	struct pollfd end = {.fd = connection->view_socket};

	return (connection->epoch &&
		(atomic_load(&connection->epoch->watchdog) & VMM_LOCK_HOST_GONE)) ||
	       (poll(&end, 1, 0) == 1 && (end.revents & POLLHUP));
}

void vmm_client_lose(struct vidmm_connection *connection)
{
	if (atomic_exchange(&connection->lost, true))
		return;
	/* The host now ends the session. That wakes the threads that wait on other channels. */
	if (connection->view_socket >= 0)
		shutdown(connection->view_socket, SHUT_RDWR);
	if (connection->first)
		shutdown(connection->first->fd, SHUT_RDWR);
	vmm_client_wake_fences(connection);
	vmm_client_stop_notifications(connection);
}

static void destroy(struct vidmm_connection *connection)
{
	struct vmm_channel_to_host *channel;

	if (!connection->forked) {
		lock_all();
		vmm_list_remove(&connection->link);
		unlock_all();
	}
	while ((channel = connection->idle) != NULL) {
		connection->idle = channel->next;
		vmm_client_channel_destroy(channel);
	}
	close_fd(&connection->view_socket);
	close_fd(&connection->userfault);
	close_fd(&connection->null_fd);
	vmm_packet_finish(&connection->view_packet);
	vmm_client_forget_notifications(connection);
	vmm_client_window_release(connection);
	vmm_client_finish_fences(connection);
	vmm_client_unmap_words(connection);
	vmm_client_mutex_destroy(&connection->fence_lock);
	pthread_cond_destroy(&connection->fence_users_gone);
	vmm_client_mutex_destroy(&connection->pool_lock);
	vmm_client_mutex_destroy(&connection->view_lock);
	vmm_client_mutex_destroy(&connection->notification_lock);
	pthread_cond_destroy(&connection->notification_done);
	if (!connection->forked) /* the parent's notification thread counts as waiting on it */
		pthread_cond_destroy(&connection->notification_arrived);
	vmm_free(connection);
}

void vmm_client_begin_disconnect(struct vidmm_connection *connection)
{
	struct vidmm_connection *attached = connection;

	atomic_store(&connection->ending, true);
	atomic_compare_exchange_strong(&vmm_client_attached, &attached, NULL);
	vmm_client_forget_devices(connection);
}

void vidmm_disconnect(struct vidmm_connection *connection)
{
	const struct vmm_message_head disconnect = {.magic = VMM_PROTOCOL_MAGIC,
						    .kind = VMM_MESSAGE_DISCONNECT};

	if (!connection)
		return;
	vmm_client_begin_disconnect(connection);
	/*
	 * A thread inside a call may be using the first channel. Then closing the socket ends the
	 * session, which makes every thread inside return.
	 */
	if (!vmm_client_lost(connection) && !vmm_client_has_callers(connection))
		(void)!vmm_ok(vmm_client_send(connection, connection->first->fd, &disconnect,
					      sizeof(disconnect), NULL, NULL, 0));
	vmm_client_lose(connection);
	if (!connection->forked)
		vmm_client_wait_callers(connection);
	if (connection->threaded && !connection->forked)
		pthread_join(connection->thread, NULL);
	if (connection->notification_threaded && !connection->forked)
		pthread_join(connection->notification_thread, NULL);
	destroy(connection);
}

/*
 * Runs when the program exits. A host cannot tell an exit from a kill otherwise. The connections
 * stay, because functions that run later may call. Nothing is sent on one that a thread is
 * connecting or disconnecting, or on any if a thread holds all_lock. That may be this thread: a
 * signal handler can call exit().
 */
__attribute__((destructor)) static void announce_exit(void) VMM_NO_THREAD_SAFETY_ANALYSIS
{
	const struct vmm_message_head exits = {.magic = VMM_PROTOCOL_MAGIC,
					       .kind = VMM_MESSAGE_EXITS};
	struct vmm_list *pos;

	if (pthread_mutex_trylock(&all_lock.mutex) != 0)
		return;
	vmm_list_for_each (pos, &all) {
		struct vidmm_connection *connection =
			vmm_container_of(pos, struct vidmm_connection, link);

		if (atomic_load(&connection->connected) && !atomic_load(&connection->ending) &&
		    !vmm_client_lost(connection))
			(void)vmm_message_send(connection->first->fd, &exits, sizeof(exits), NULL,
					       NULL, 0);
	}
	pthread_mutex_unlock(&all_lock.mutex);
}

/* ---- connecting ---- */

/*
 * Opens a userfaultfd of this process, with which the host can write-protect its pages. Returns -1
 * if the kernel does not allow it.
 */
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
		.flags = VMM_HELLO_WORDS | (connection->debug ? VMM_HELLO_TEXTS : 0),
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
	const char *debug = secure_getenv("VIDMM_DEBUG");

	if (!connection)
		return NULL;
	connection->options = *options;
	connection->debug = debug && !strcmp(debug, "1");
	snprintf(connection->name, sizeof(connection->name), "%s",
		 options->name ? options->name : program_invocation_short_name);
	connection->view_socket = connection->userfault = -1;
	vmm_client_mutex_init(&connection->pool_lock);
	vmm_client_mutex_init(&connection->view_lock);
	vmm_client_mutex_init(&connection->notification_lock);
	pthread_cond_init(&connection->notification_done, NULL);
	pthread_cond_init(&connection->notification_arrived, NULL);
	vmm_client_mutex_init(&connection->fence_lock);
	pthread_cond_init(&connection->fence_users_gone, NULL);
	vmm_list_init(&connection->notifications);
	vmm_list_init(&connection->registrations);
	connection->null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
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
	if (connection->null_fd < 0)
		status = VMM_INSUFFICIENT_RESOURCES;
	if (!connection->first || !vmm_packet_reserve(&connection->view_packet) ||
	    connection->null_fd < 0 || !vmm_client_window_reserve(connection))
		goto out_connection;
	connection->userfault = open_userfault();
	status = say_hello(connection);
	if (vmm_ok(status) && !options->sent && !vmm_client_thread_start(connection))
		status = VMM_INSUFFICIENT_RESOURCES;
	if (!vmm_ok(status))
		goto out_connection;
	connection->channel_count = 1;
	vmm_client_put_channel(connection, connection->first);
	atomic_store(&connection->connected, true);
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

	if (!connection || !vmm_packet_is_connected(fd))
		return VMM_INVALID_PARAMETER;
	return vmm_client_connect(&options, connection);
}

/* ---- connecting by a path ---- */

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
	case EPROTOTYPE: /* a socket of another type */
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

/*
 * A host that cannot be connected to any more is about to end, or its socket has been unlinked.
 * Waits at most END_MS for the end of the session, so that the call reports that and not a missing
 * resource.
 */
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

/* Stores the default path; an empty string if the environment names none. */
static void default_path(char *path, size_t size)
{
	const char *named = secure_getenv("VIDMM_SOCKET"),
		   *runtime = secure_getenv("XDG_RUNTIME_DIR");

	path[0] = 0;
	if (named)
		snprintf(path, size, "%s", named);
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
	/* No call has been made yet, so no channel has been requested. */
	memcpy((*connection)->path, path, sizeof((*connection)->path));
	(*connection)->options.more = connect_again;
	(*connection)->options.more_context = *connection;
	return VMM_OK;
}

vmm_status vmm_client_attach_named(struct vidmm_connection **connection)
{
	vmm_status status = VMM_OK;

	pthread_mutex_lock(&first_call);
	*connection = atomic_load(&vmm_client_attached);
	if (!*connection)
		status = vidmm_connect(NULL, NULL, connection);
	if (vmm_ok(status)) {
		first_connection = *connection;
		atomic_store(&vmm_client_attached, *connection);
	}
	pthread_mutex_unlock(&first_call);
	return status;
}

uint32_t vidmm_connection_process_id(const struct vidmm_connection *connection)
{
	return connection->process_id;
}
