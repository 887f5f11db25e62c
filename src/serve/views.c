/* SPDX-License-Identifier: MIT */
/* CPU mappings of a client: addresses in its window, and the messages that have it map them. */
#include "serve/serve_private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/os_stores.h"
#include "range/range.h"
#include "serve/write_protector.h"
#include "serve/view_records.h"

struct vmm_view_message {
	struct vmm_view_message *next;
	union {
		struct vmm_message_head head;
		struct vmm_message_view view;
		struct vmm_message_notification notification;
		struct vmm_message_adopt adopt;
		struct vmm_message_words words;
	} u;
	uint32_t bytes;
	int fd; /* -1: none. Of a queued message: that of `held` */
	struct held_descriptor *held;
};

/*
 * A duplicate of a descriptor that queued messages have. Messages mostly name the same few memory
 * objects, and one duplicate serves all that name the same one, so a queue costs the client no more
 * descriptors than it has memory objects.
 */
struct held_descriptor {
	struct held_descriptor *next; /* in views->held */
	uint64_t device, inode;
	int mode; /* F_GETFL */
	int fd;
	uint32_t messages;
};

struct vmm_lock_class vmm_views_lock_class, vmm_adopt_lock_class;

static struct vmm_views *views_of(struct vmm_os_viewer *viewer)
{
	return vmm_container_of(viewer, struct vmm_views, viewer);
}

static uint64_t number_of(const char *address)
{
	return (uint64_t)(uintptr_t)address;
}

/* ---- sending ---- */

static void end_locked(struct vmm_views *views, const char *why) VMM_REQUIRES(vmm_views_lock_class)
{
	vmm_assert_held(&views->lock);
	views->dead = true;
	if (!views->why)
		views->why = why;
	/* the hang-up is now reported and its handler ends the session */
	shutdown(views->config.socket, SHUT_RDWR);
}

static void watch_locked(struct vmm_views *views) VMM_REQUIRES(vmm_views_lock_class)
{
	struct epoll_event event = {.events = EPOLLOUT | EPOLLONESHOT,
				    .data = {.u64 = views->config.data}};

	vmm_assert_held(&views->lock);
	if (epoll_ctl(views->config.epoll, EPOLL_CTL_MOD, views->config.socket, &event))
		end_locked(views, "is cut off: its view socket cannot be watched");
}

static int send_now(const struct vmm_views *views, const struct vmm_view_message *message)
{
	return vmm_message_send(views->config.socket, &message->u, message->bytes, NULL,
				&message->fd, message->fd >= 0);
}

static const char *reason_of(int error)
{
	return error == ETOOMANYREFS ? "is cut off: too many descriptors are in flight" : NULL;
}

static void close_held(struct vmm_views *views, struct held_descriptor *held)
{
	close(held->fd);
	if (views->config.share)
		vmm_os_share_give(views->config.share, 1);
	vmm_free(held);
}

/* Caller holds the lock, or the views are being finished. */
static void put_held(struct vmm_views *views, struct held_descriptor *held)
{
	struct held_descriptor **link = &views->held;

	if (!held || --held->messages)
		return;
	while (*link != held)
		link = &(*link)->next;
	*link = held->next;
	close_held(views, held);
}

static struct held_descriptor *find_held_locked(const struct vmm_views *views,
						const struct stat *info, int mode)
	VMM_REQUIRES(vmm_views_lock_class)
{
	struct held_descriptor *held = views->held;

	vmm_assert_held(&views->lock);
	while (held &&
	       (held->inode != info->st_ino || held->device != info->st_dev || held->mode != mode))
		held = held->next;
	return held;
}

/* The client pays for the duplicate. Returns NULL without memory or descriptors. */
static struct held_descriptor *hold_locked(struct vmm_views *views, int fd)
	VMM_REQUIRES(vmm_views_lock_class)
{
	struct stat info;
	int mode = fcntl(fd, F_GETFL);

	vmm_assert_held(&views->lock);
	if (mode < 0 || fstat(fd, &info))
		return NULL;
	struct held_descriptor *held = find_held_locked(views, &info, mode);
	if (held) {
		held->messages++;
		return held;
	}
	held = vmm_calloc(1, sizeof(*held));
	if (!held || (views->config.share && !vmm_os_share_take(views->config.share, 1))) {
		vmm_free(held);
		return NULL;
	}
	*held = (struct held_descriptor){.next = views->held,
					 .device = info.st_dev,
					 .inode = info.st_ino,
					 .mode = mode,
					 .fd = fcntl(fd, F_DUPFD_CLOEXEC, 0),
					 .messages = 1};
	if (held->fd < 0) {
		close_held(views, held);
		return NULL;
	}
	views->held = held;
	return held;
}

/* The socket's buffer is full: queues the message, unless too much is queued already. */
static void queue_locked(struct vmm_views *views, const struct vmm_view_message *message)
	VMM_REQUIRES(vmm_views_lock_class)
{
	struct vmm_view_message *queued = NULL;

	vmm_assert_held(&views->lock);
	if (views->waiting_bytes + sizeof(*queued) <= views->config.unread_bytes)
		queued = vmm_calloc(1, sizeof(*queued));
	if (!queued) {
		end_locked(views, "is cut off: it does not read its view socket");
		return;
	}
	*queued = *message;
	if (message->fd >= 0) {
		queued->held = hold_locked(views, message->fd);
		if (!queued->held) {
			vmm_free(queued);
			end_locked(views, "is cut off: it does not read its view socket, and has "
					  "all descriptors that it may have");
			return;
		}
		queued->fd = queued->held->fd;
	}
	*views->last = queued;
	views->last = &queued->next;
	views->waiting_bytes += sizeof(*queued);
	if (views->first == queued)
		watch_locked(views);
}

static void send_locked(struct vmm_views *views, const struct vmm_view_message *message)
	VMM_REQUIRES(vmm_views_lock_class)
{
	int error;

	vmm_assert_held(&views->lock);
	error = views->dead ? 0 : views->first ? EAGAIN : send_now(views, message);
	if (error == EAGAIN)
		queue_locked(views, message);
	else if (error)
		end_locked(views, reason_of(error));
}

static struct vmm_view_message *take_first_locked(struct vmm_views *views)
	VMM_REQUIRES(vmm_views_lock_class)
{
	struct vmm_view_message *message = views->first;

	vmm_assert_held(&views->lock);
	if (!message)
		return NULL;
	views->first = message->next;
	if (!views->first)
		views->last = &views->first;
	views->waiting_bytes -= sizeof(*message);
	put_held(views, message->held);
	return message;
}

void vmm_views_flush(struct vmm_views *views)
{
	vmm_views_lock(views);
	while (views->first && !views->dead) {
		int error = send_now(views, views->first);

		if (error == EAGAIN) {
			watch_locked(views);
			break;
		}
		if (error)
			end_locked(views, reason_of(error));
		else
			vmm_free(take_first_locked(views));
	}
	vmm_views_unlock(views);
}

static uint64_t instruct_locked(struct vmm_views *views, struct vmm_message_view view, int fd)
	VMM_REQUIRES(vmm_views_lock_class)
{
	struct vmm_view_message message = {.u.view = view, .bytes = sizeof(view), .fd = fd};

	vmm_assert_held(&views->lock);
	message.u.view.head = (struct vmm_message_head){
		.magic = VMM_PROTOCOL_MAGIC, .kind = VMM_MESSAGE_VIEW, .descriptors = fd >= 0};
	message.u.view.number = atomic_fetch_add(&views->number, 1) + 1;
	send_locked(views, &message);
	if (views->config.view_sent)
		views->config.view_sent(views->config.view_sent_context, &views->viewer);
	return message.u.view.number;
}

void vmm_views_send_words_locked(struct vmm_views *views, uint32_t what, uint32_t length, int fd)
{
	struct vmm_view_message message = {.u.words = {.head = {.magic = VMM_PROTOCOL_MAGIC,
								.kind = VMM_MESSAGE_WORDS,
								.descriptors = 1},
						       .what = what,
						       .length = length},
					   .bytes = sizeof(message.u.words),
					   .fd = fd};

	vmm_assert_held(&views->lock);
	message.u.words.number = atomic_fetch_add(&views->number, 1) + 1;
	send_locked(views, &message);
}

void vmm_views_notification(struct vmm_views *views,
			    const struct vmm_message_notification *notification)
{
	struct vmm_view_message message = {
		.u.notification = *notification, .bytes = sizeof(*notification), .fd = -1};

	message.u.notification.head = (struct vmm_message_head){.magic = VMM_PROTOCOL_MAGIC,
								.kind = VMM_MESSAGE_NOTIFICATION};
	vmm_views_lock(views);
	message.u.notification.number = atomic_fetch_add(&views->number, 1) + 1;
	send_locked(views, &message);
	vmm_views_unlock(views);
}

uint64_t vmm_views_number(struct vmm_views *views)
{
	return atomic_load(&views->number);
}

void vmm_views_executed(struct vmm_views *views, uint64_t number)
{
	uint64_t before = atomic_load_explicit(&views->executed, memory_order_relaxed);

	while (number > before && !atomic_compare_exchange_weak(&views->executed, &before, number))
		;
}

void vmm_views_end(struct vmm_views *views, const char *why)
{
	vmm_views_lock(views);
	end_locked(views, why);
	vmm_views_unlock(views);
}

const char *vmm_views_why(struct vmm_views *views, const char *otherwise)
{
	vmm_views_lock(views);
	const char *why = views->why ? views->why : otherwise;
	vmm_views_unlock(views);
	return why;
}

/* ---- the operations of a viewer ---- */

static vmm_status reserve(struct vmm_os_viewer *viewer, uint64_t size_bytes, char **address)
{
	struct vmm_views *views = views_of(viewer);
	const struct vmm_range_request request = {.size_bytes = size_bytes};
	vmm_range_node node;
	uint64_t offset;
	vmm_status status = VMM_NO_MEMORY;

	vmm_views_lock(views);
	if (views->heap && size_bytes <= views->config.window_bytes &&
	    vmm_ok(vmm_range_allocate(views->heap, &request, &node, &offset))) {
		uint64_t at = views->config.window_address + offset;

		if (vmm_view_records_add(&views->records, at, size_bytes, node)) {
			*address = (char *)(uintptr_t)at;
			status = VMM_OK;
		} else {
			vmm_range_free(views->heap, node);
		}
	}
	vmm_views_unlock(views);
	return status;
}

static vmm_status map(struct vmm_os_viewer *viewer, char *address, uint64_t length, int fd,
		      uint64_t offset, bool writable)
{
	struct vmm_views *views = views_of(viewer);
	const struct vmm_message_view view = {.what = VMM_VIEW_MAP,
					      .writable = writable,
					      .address = number_of(address),
					      .length = length,
					      .offset = offset};

	vmm_views_lock(views);
	/* The client stores there that it has executed the mapping (execution.c). */
	vmm_views_share_words_locked(views);
	struct vmm_view_record *record = vmm_view_records_find(views->records, number_of(address));
	vmm_assert(record);
	vmm_os_stores_take(&views->watched, address, length);
	record->mapped = instruct_locked(views, view, fd);
	vmm_os_stores_repeat(&views->watched, address, length);
	vmm_views_unlock(views);
	return VMM_OK;
}

static void unmap(struct vmm_os_viewer *viewer, char *address, uint64_t length)
{
	struct vmm_views *views = views_of(viewer);
	const struct vmm_message_view view = {
		.what = VMM_VIEW_UNMAP, .address = number_of(address), .length = length};

	vmm_views_lock(views);
	vmm_os_stores_forget(&views->watched, address);
	(void)instruct_locked(views, view, -1);
	vmm_views_unlock(views);
}

static void release(struct vmm_os_viewer *viewer, char *address, uint64_t size_bytes)
{
	struct vmm_views *views = views_of(viewer);
	const struct vmm_message_view view = {
		.what = VMM_VIEW_RELEASE, .address = number_of(address), .length = size_bytes};

	vmm_views_lock(views);
	vmm_os_stores_forget(&views->watched, address);
	struct vmm_view_record *record = vmm_view_records_find(views->records, number_of(address));
	vmm_assert(record && record->address == number_of(address) &&
		   record->size_bytes == size_bytes);
	(void)instruct_locked(views, view, -1);
	vmm_range_free(views->heap, record->node);
	vmm_view_records_remove(&views->records, record);
	vmm_views_unlock(views);
}

/* ---- write protection ---- */

static vmm_status freeze_locked(struct vmm_views *views, uint64_t address, uint64_t length)
	VMM_REQUIRES(vmm_views_lock_class)
{
	vmm_assert_held(&views->lock);
	if (views->dead)
		return VMM_OK; /* no store can come */
	if (views->config.single_threaded)
		return views->config.view_sent
			       ? vmm_os_stores_watch(&views->watched, (char *)(uintptr_t)address,
						     length)
			       : VMM_OK;
	if (views->config.userfault < 0 || !vmm_views_is_executed_locked(views, address))
		return VMM_NOT_SUPPORTED;
	if (!views->write_protector)
		views->write_protector =
			vmm_write_protector_create(views->config.userfault, views->config.late);
	return views->write_protector
		       ? vmm_write_protector_freeze(views->write_protector, address, length)
		       : VMM_NOT_SUPPORTED;
}

static vmm_status freeze(struct vmm_os_viewer *viewer, char *address, uint64_t length)
{
	struct vmm_views *views = views_of(viewer);

	vmm_views_await_execution(views, number_of(address));
	vmm_views_lock(views);
	vmm_status status = freeze_locked(views, number_of(address), length);
	vmm_views_unlock(views);
	return status;
}

/* A range that freeze_locked skipped was never protected and needs nothing. */
static void thaw(struct vmm_os_viewer *viewer, char *address, uint64_t length)
{
	struct vmm_views *views = views_of(viewer);

	vmm_views_lock(views);
	vmm_os_stores_forget(&views->watched, address);
	if (views->write_protector)
		vmm_write_protector_thaw(views->write_protector, number_of(address), length);
	vmm_views_unlock(views);
}

/* ---- existing memory of the client ---- */

static void send_adopt_locked(struct vmm_views *views, const struct vmm_message_adopt *adopt)
	VMM_REQUIRES(vmm_adopt_lock_class)
{
	struct vmm_view_message message = {.u.adopt = *adopt, .bytes = sizeof(*adopt), .fd = -1};

	vmm_assert_held(&views->adopt_lock);
	vmm_views_lock(views);
	message.u.adopt.number = atomic_fetch_add(&views->number, 1) + 1;
	send_locked(views, &message);
	views->adopt_number = message.u.adopt.number;
	if (views->config.view_sent)
		views->config.view_sent(views->config.view_sent_context, &views->viewer);
	vmm_views_unlock(views);
}

/*
 * Receives the client's answer into `packet`. Cuts the client off if the answer is malformed or
 * does not come in time.
 */
static bool receive_adopted_locked(struct vmm_views *views, struct vmm_packet *packet,
				   struct vmm_message_adopted *adopted)
	VMM_REQUIRES(vmm_adopt_lock_class)
{
	struct pollfd readable = {.fd = views->config.socket, .events = POLLIN};
	const char *why = "is cut off: it did not answer a request for its memory";

	vmm_assert_held(&views->adopt_lock);
	if (poll(&readable, 1, views->config.adopt_ms) > 0) {
		enum vmm_received received = vmm_packet_receive(views->config.socket, packet);

		if (received == VMM_RECEIVED_END) /* the handler of the hang-up logs why */
			return false;
		why = "is cut off: its answer to a request for its memory is malformed";
		/* The host could not take the descriptor: the call fails, the client goes on. */
		if (received == VMM_RECEIVED_INCOMPLETE) {
			adopted->status = VMM_NO_MEMORY;
			return true;
		}
		if (received == VMM_RECEIVED && packet->bytes == sizeof(*adopted)) {
			memcpy(adopted, &packet->u, VMM_PACKET_HEAD);
			memcpy((char *)adopted + VMM_PACKET_HEAD, packet->body.data,
			       sizeof(*adopted) - VMM_PACKET_HEAD);
			if (adopted->head.kind == VMM_MESSAGE_ADOPTED &&
			    adopted->number == views->adopt_number &&
			    packet->fd_count == vmm_ok(adopted->status))
				return true;
		}
	}
	vmm_views_end(views, why);
	return false;
}

static vmm_status adopt(struct vmm_os_viewer *viewer, char *address, uint64_t length, int *fd,
			uint64_t *offset)
{
	struct vmm_views *views = views_of(viewer);
	const struct vmm_message_adopt question = {
		.head = {.magic = VMM_PROTOCOL_MAGIC, .kind = VMM_MESSAGE_ADOPT},
		.address = number_of(address),
		.length = length};
	struct vmm_message_adopted adopted = {.status = VMM_NO_MEMORY};
	struct vmm_packet packet = {0};
	uint64_t end;

	if (!vmm_packet_reserve(&packet))
		return VMM_NO_MEMORY;
	vmm_adopt_lock(views);
	send_adopt_locked(views, &question);
	if (!receive_adopted_locked(views, &packet, &adopted))
		adopted.status = VMM_DEVICE_REMOVED;
	vmm_adopt_unlock(views);
	if (vmm_ok(adopted.status) &&
	    (adopted.offset % VMM_PAGE_SIZE || vmm_add_overflows(adopted.offset, length, &end)))
		adopted.status = VMM_NOT_SUPPORTED;
	if (vmm_ok(adopted.status)) {
		*fd = packet.fds[0];
		*offset = adopted.offset;
		packet.fd_count = 0;
	}
	vmm_packet_finish(&packet);
	/* The status comes from the client: other values become VMM_NOT_SUPPORTED. */
	return adopted.status == VMM_INVALID_PARAMETER || adopted.status == VMM_NO_MEMORY ||
			       adopted.status == VMM_DEVICE_REMOVED || vmm_ok(adopted.status)
		       ? adopted.status
		       : VMM_NOT_SUPPORTED;
}

static uint64_t instructed(struct vmm_os_viewer *viewer)
{
	return vmm_views_number(views_of(viewer));
}

static void distrust(struct vmm_os_viewer *viewer, const char *why)
{
	vmm_views_end(views_of(viewer), why);
}

/* ---- creation and destruction ---- */

vmm_status vmm_views_init(struct vmm_views *views, const struct vmm_views_config *config)
{
	static const struct vmm_os_viewer_ops ops = {
		.reserve = reserve,
		.map = map,
		.unmap = unmap,
		.release = release,
		.freeze = freeze,
		.thaw = thaw,
		.adopt = adopt,
		.take_word = vmm_views_take_word,
		.give_word_back = vmm_views_give_word_back,
		.instructed = instructed,
		.distrust = distrust,
	};
	struct epoll_event event = {.events = EPOLLONESHOT, .data = {.u64 = config->data}};

	*views = (struct vmm_views){.viewer.ops = &ops, .config = *config};
	views->last = &views->first;
	vmm_list_init(&views->watched);
	if (config->window_bytes &&
	    !vmm_ok(vmm_range_heap_create(config->window_bytes, VMM_PAGE_SIZE, &views->heap)))
		return VMM_NO_MEMORY;
	if (epoll_ctl(config->epoll, EPOLL_CTL_ADD, config->socket, &event)) {
		vmm_range_heap_destroy(views->heap);
		return VMM_NO_MEMORY;
	}
	vmm_os_mutex_init(&views->lock, config->os, VMM_RANK_VIEWS, "views");
	vmm_os_mutex_init(&views->adopt_lock, config->os, VMM_RANK_ADOPT, "adopted memory");
	return VMM_OK;
}

void vmm_views_finish(struct vmm_views *views)
{
	struct vmm_view_message *message;

	while ((message = views->first) != NULL) {
		views->first = message->next;
		put_held(views, message->held);
		vmm_free(message);
	}
	vmm_assert(!views->records);
	vmm_assert(vmm_list_empty(&views->watched));
	if (views->heap)
		vmm_range_heap_destroy(views->heap);
	vmm_views_finish_words(views);
	vmm_write_protector_destroy(views->write_protector);
	close(views->config.socket);
	if (views->config.userfault >= 0)
		close(views->config.userfault);
	vmm_os_mutex_finish(&views->adopt_lock);
	vmm_os_mutex_finish(&views->lock);
}
