/* SPDX-License-Identifier: MIT */
/*
 * View instructions: messages of the host that say what to map where in the reserved window. A
 * thread that received an answer executes the instructions sent before it. The library's own thread
 * executes those that come without a call; it thereby ends the sleep of stores to a write-protected
 * page.
 */
#include "client/client_private.h"

#include <errno.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* The largest window that can be reserved is used: address space costs nothing until mapped. */
#define WINDOW_MAX         ((uint64_t)1 << 40)
#define WINDOW_MIN         ((uint64_t)1 << 28)
/* Mapping a page together with its neighbors costs a tenth of a fault on its first access. */
#define POPULATE_BYTES_MAX ((uint64_t)1 << 20)

#define RESERVED (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)

bool vmm_client_window_reserve(struct vidmm_connection *connection)
{
	for (uint64_t bytes = WINDOW_MAX; bytes >= WINDOW_MIN; bytes /= 2) {
		char *window = mmap(NULL, bytes, PROT_NONE, RESERVED, -1, 0);

		if (window == MAP_FAILED)
			continue;
		connection->window = window;
		connection->window_bytes = bytes;
		return true;
	}
	return false;
}

void vmm_client_window_release(struct vidmm_connection *connection)
{
	if (connection->window)
		munmap(connection->window, connection->window_bytes);
	connection->window = NULL;
}

static bool is_in_window(const struct vidmm_connection *connection,
			 const struct vmm_message_view *view)
{
	uint64_t window = (uint64_t)(uintptr_t)connection->window;

	return view->length && (view->address | view->length | view->offset) % VMM_PAGE_SIZE == 0 &&
	       view->address >= window && view->length <= connection->window_bytes &&
	       view->address - window <= connection->window_bytes - view->length;
}

static bool map(const struct vmm_message_view *view, int fd)
{
	int flags = 0, protection = PROT_NONE;
	void *address = (void *)(uintptr_t)view->address;

	if (view->what == VMM_VIEW_MAP) {
		protection = view->writable ? PROT_READ | PROT_WRITE : PROT_READ;
		flags |= MAP_SHARED | (view->length <= POPULATE_BYTES_MAX ? MAP_POPULATE : 0);
	} else {
		flags |= RESERVED;
		fd = -1;
	}
	return vmm_client_map_over(address, view->length, protection, flags, fd,
				   view->what == VMM_VIEW_MAP ? view->offset : 0);
}

/*
 * Wakes stores that sleep on write-protected pages. They start again and go to what is now mapped.
 */
static void wake(const struct vidmm_connection *connection, const struct vmm_message_view *view)
{
	struct uffdio_range range = {.start = view->address, .len = view->length};

	if (connection->userfault >= 0)
		(void)ioctl(connection->userfault, UFFDIO_WAKE, &range);
}

static bool execute_view(const struct vidmm_connection *connection, const struct vmm_packet *packet)
{
	struct vmm_message_view view;

	if (packet->bytes != sizeof(view))
		return false;
	memcpy(&view, &packet->u, VMM_PACKET_HEAD);
	memcpy((char *)&view + VMM_PACKET_HEAD, packet->body.data, sizeof(view) - VMM_PACKET_HEAD);
	if (!is_in_window(connection, &view) || view.what < VMM_VIEW_MAP ||
	    view.what > VMM_VIEW_RELEASE ||
	    packet->fd_count != (view.what == VMM_VIEW_MAP ? 1u : 0u))
		return false;
	if (!map(&view, packet->fd_count ? packet->fds[0] : -1))
		return false;
	wake(connection, &view);
	return true;
}

static bool execute_notification(struct vidmm_connection *connection,
				 const struct vmm_packet *packet)
	VMM_REQUIRES(vmm_client_view_class)
{
	struct vmm_message_notification notification;

	if (packet->bytes != sizeof(notification))
		return false;
	memcpy(&notification, &packet->u, VMM_PACKET_HEAD);
	memcpy((char *)&notification + VMM_PACKET_HEAD, packet->body.data,
	       sizeof(notification) - VMM_PACKET_HEAD);
	vmm_client_take_notification(connection, &notification);
	return true;
}

static bool execute_words(struct vidmm_connection *connection, const struct vmm_packet *packet)
	VMM_REQUIRES(vmm_client_view_class)
{
	struct vmm_message_words words;

	if (packet->bytes != sizeof(words) || packet->fd_count != 1)
		return false;
	memcpy(&words, &packet->u, sizeof(words));
	return vmm_client_map_words(connection, &words, packet->fds[0]);
}

/* Always answers, with the status, because the host waits for the answer. */
static bool execute_adopt(struct vidmm_connection *connection, const struct vmm_packet *packet)
	VMM_REQUIRES(vmm_client_view_class)
{
	struct vmm_message_adopt adopt;
	struct vmm_message_adopted adopted = {
		.head = {.magic = VMM_PROTOCOL_MAGIC, .kind = VMM_MESSAGE_ADOPTED}};
	const struct vmm_client_options *options = &connection->options;
	uint64_t window = (uint64_t)(uintptr_t)connection->window, end;
	int fd = -1;

	if (packet->bytes != sizeof(adopt) || packet->fd_count)
		return false;
	memcpy(&adopt, &packet->u, VMM_PACKET_HEAD);
	memcpy((char *)&adopt + VMM_PACKET_HEAD, packet->body.data,
	       sizeof(adopt) - VMM_PACKET_HEAD);
	adopted.number = adopt.number;
	adopted.status = VMM_INVALID_PARAMETER;
	if (!vmm_add_overflows(adopt.address, adopt.length, &end) &&
	    (end <= window || adopt.address >= window + connection->window_bytes) &&
	    (!options->owns || options->owns(options->sent_context, adopt.address, adopt.length)))
		adopted.status = vmm_client_adopt(
			connection->userfault,
			(connection->threaded ? 2 : 1) + vmm_client_notifications_idle(connection),
			adopt.address, adopt.length, &fd, &adopted.offset);
	adopted.head.descriptors = vmm_ok(adopted.status);
	bool sent = !vmm_message_send(connection->view_socket, &adopted, sizeof(adopted), NULL, &fd,
				      adopted.head.descriptors);
	if (vmm_ok(adopted.status))
		close(fd);
	return sent;
}

static bool execute_by_kind(struct vidmm_connection *connection, const struct vmm_packet *packet)
	VMM_REQUIRES(vmm_client_view_class)
{
	switch (packet->u.head.kind) {
	case VMM_MESSAGE_VIEW:
		return execute_view(connection, packet);
	case VMM_MESSAGE_NOTIFICATION:
		return execute_notification(connection, packet);
	case VMM_MESSAGE_ADOPT:
		return execute_adopt(connection, packet);
	case VMM_MESSAGE_WORDS:
		return execute_words(connection, packet);
	default:
		return false;
	}
}

/* Executes the message in view_packet. */
static bool execute_locked(struct vidmm_connection *connection) VMM_REQUIRES(vmm_client_view_class)
{
	struct vmm_packet *packet = &connection->view_packet;
	uint64_t number = packet->u.words[2];
	bool good = number == atomic_load(&connection->views) + 1;

	vmm_assert_owned(&connection->view_lock.owner);
	if (good)
		good = execute_by_kind(connection, packet);
	vmm_packet_close_fds(packet);
	if (good) {
		atomic_store_explicit(&connection->views, number, memory_order_release);
		vmm_client_publish_executed(connection, number);
	}
	return good;
}

vmm_status vmm_client_catch_up(struct vidmm_connection *connection, uint64_t number)
{
	bool good = true;

	if (atomic_load_explicit(&connection->views, memory_order_acquire) >= number)
		return VMM_OK;
	vmm_client_view_lock(connection);
	while (good && atomic_load(&connection->views) < number)
		good = vmm_packet_await(connection->view_socket, &connection->view_packet) ==
			       VMM_RECEIVED &&
		       execute_locked(connection);
	vmm_client_view_unlock(connection);
	if (good)
		return VMM_OK;
	vmm_client_lose(connection);
	return VMM_DEVICE_REMOVED;
}

bool vmm_client_execute_views(struct vidmm_connection *connection)
{
	enum vmm_received received;

	vmm_client_view_lock(connection);
	do
		received = vmm_packet_receive(connection->view_socket, &connection->view_packet);
	while (received == VMM_RECEIVED && execute_locked(connection));
	vmm_client_view_unlock(connection);
	return received == VMM_RECEIVED_NOTHING;
}

void vmm_client_poll(struct vidmm_connection *connection)
{
	if (vmm_client_lost(connection))
		return;
	if (!vmm_client_execute_views(connection))
		vmm_client_lose(connection);
	if (!connection->threaded)
		vmm_client_call_notifications(connection);
}

static void *view_thread(void *argument)
{
	struct vidmm_connection *connection = argument;
	struct pollfd come = {.fd = connection->view_socket, .events = POLLIN};

	while (!vmm_client_lost(connection)) {
		if (poll(&come, 1, -1) < 0 && errno != EINTR)
			break;
		vmm_client_poll(connection);
	}
	return NULL;
}

/* Signals are handled by the program's own threads; faults stay deliverable. */
bool vmm_client_start_thread(pthread_t *thread, void *(*run)(void *connection),
			     struct vidmm_connection *connection, const char *name)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGPROF};
	sigset_t blocked, before;

	sigfillset(&blocked);
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(faults); i++)
		sigdelset(&blocked, faults[i]);
	pthread_sigmask(SIG_BLOCK, &blocked, &before);
	bool started = !pthread_create(thread, NULL, run, connection);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (started)
		pthread_setname_np(*thread, name);
	return started;
}

bool vmm_client_thread_start(struct vidmm_connection *connection)
{
	connection->threaded = true; /* before any thread can read it */
	if (vmm_client_start_thread(&connection->thread, view_thread, connection, "vidmm-client"))
		return true;
	connection->threaded = false;
	return false;
}
