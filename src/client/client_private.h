/* SPDX-License-Identifier: MIT */
#ifndef VMM_CLIENT_PRIVATE_H
#define VMM_CLIENT_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/lock_word.h"
#include "client/client.h"
#include "packet/packet.h"
#include "wire_table.h"

/* A connected socket, of one thread for the time of a call. */
struct vmm_channel_to_host {
	int fd;
	struct vmm_packet packet;
	struct vmm_wire_call call;
	bool looked; /* the request depends on what is known of an object */
	struct vmm_channel_to_host *next;
};

/* A function of the program's that the host may have called; known to the host by its number. */
struct vmm_registration {
	struct vmm_list link;
	uint64_t number;
	uint32_t what, device; /* enum vmm_notice_what; as the call named it */
	void *function, *context, *handle;
};
struct vmm_notice {
	struct vmm_list link;
	struct vmm_message_notice message;
};

#define VMM_CLIENT_VALUES 1024u
#define VMM_CLIENT_FENCES 256u

struct vidmm_connection {
	/* Constant. */
	struct vmm_client_options options;
	char name[64];
	char path[108]; /* of the host's socket, when options.more is the library's own */
	uint32_t process_id, channels_max;
	uint64_t session[2];
	char *window; /* of views */
	uint64_t window_bytes;
	int view_socket, userfault,
		nothing; /* -1: none. nothing: stands for what is no descriptor */
	pthread_t thread;
	bool threaded; /* set before there is that thread */

	/* Set once: the host is gone, or this is a child of fork(). */
	_Atomic bool lost;
	_Atomic bool ending; /* the program is disconnecting: its handles are dead */
	bool forked;
	struct vmm_list link; /* of all connections; guarded by the lock of connection.c */

	pthread_mutex_t pool_lock; /* guards the next three */
	struct vmm_channel_to_host *idle;
	struct vmm_channel_to_host *first; /* closing it ends the session */
	uint32_t channel_count;

	pthread_mutex_t view_lock; /* who executes instructions; guards view_packet */
	struct vmm_packet view_packet;
	_Atomic uint64_t views; /* executed: all up to this number */

	pthread_mutex_t notice_lock; /* guards the rest but `values` */
	pthread_cond_t notice_done, notice_come;
	pthread_t notice_thread;
	bool notice_threaded; /* from the first registration on */
	struct vmm_list notices, registrations;
	uint64_t last_registration;
	uint64_t calling; /* the registration whose function is being called; 0: none */
	pthread_t caller;

	/* Locks without a message; NULL: the host has given no such memory. The epoch is there before them. */
	_Atomic(struct vmm_lock_words *) words;
	const struct vmm_lock_epoch *epoch;

	/* Fences in the program's own hands (fences.c). The lock guards what follows. */
	pthread_mutex_t fence_lock;
	pthread_cond_t fences_left;
	struct vmm_client_fence *fences[VMM_CLIENT_FENCES];
	uint32_t fence_users;   /* threads that look at one, or sleep */
	uint64_t fences_forgot; /* counts */
	_Atomic bool no_fences; /* the host gives none */

	/* What objects take, as far as it was asked: the handle, and 1 more than enum vmm_wire_values. */
	_Atomic uint64_t values[VMM_CLIENT_VALUES];
};

static inline bool vmm_client_lost(const struct vidmm_connection *connection)
{
	return atomic_load_explicit(&connection->lost, memory_order_acquire);
}
void vmm_client_lose(struct vidmm_connection *connection);
/* The host is gone, or has ended the session: looked for where somebody may have heard of what follows from that, and not of that itself. */
bool vmm_client_is_cut(const struct vidmm_connection *connection);
/* The first half of vidmm_disconnect: its devices are no devices any more. */
void vmm_client_leave(struct vidmm_connection *connection);

/* ---- channel.c ---- */
/* One message there and one back, which is in channel->packet. VMM_DEVICE_REMOVED: the host is gone. */
vmm_status vmm_client_send(struct vidmm_connection *connection, int fd, const void *head,
			   size_t head_bytes, const struct vmm_wire_bytes *body, const int *fds,
			   uint32_t fd_count) VMM_MUST_CHECK;
vmm_status vmm_client_receive(struct vidmm_connection *connection,
			      struct vmm_channel_to_host *channel) VMM_MUST_CHECK;
struct vmm_channel_to_host *vmm_client_channel_create(int fd);
void vmm_client_channel_destroy(struct vmm_channel_to_host *channel);
vmm_status vmm_client_take_channel(struct vidmm_connection *connection,
				   struct vmm_channel_to_host **channel) VMM_MUST_CHECK;
void vmm_client_put_channel(struct vidmm_connection *connection,
			    struct vmm_channel_to_host *channel);
/* The first answer on a channel: VMM_OK for a welcome, which is in its packet. */
vmm_status vmm_client_await_welcome(struct vidmm_connection *connection,
				    struct vmm_channel_to_host *channel,
				    struct vmm_message_welcome *welcome) VMM_MUST_CHECK;

/* ---- views.c ---- */
bool vmm_client_window_reserve(struct vidmm_connection *connection);
void vmm_client_window_release(struct vidmm_connection *connection);
/* Executes the instructions up to that number. */
vmm_status vmm_client_catch_up(struct vidmm_connection *connection, uint64_t number) VMM_MUST_CHECK;
/* All that came. False: the socket is closed. */
bool vmm_client_execute_views(struct vidmm_connection *connection);
bool vmm_client_thread_start(struct vidmm_connection *connection);
/* One of the library's own; the program's signals are not its business. */
bool vmm_client_start_thread(pthread_t *thread, void *(*run)(void *connection),
			     struct vidmm_connection *connection, const char *name);

/*
 * mmap, of what other threads of the program go on using. The bare system call: ThreadSanitizer takes mmap for a store to the
 * whole range.
 */
static inline bool vmm_client_map_over(void *address, uint64_t length, int protection, int flags,
				       int fd, uint64_t offset)
{
	return syscall(SYS_mmap, address, length, protection, flags | MAP_FIXED, fd,
		       (off_t)offset) == (long)(uintptr_t)address;
}

/* ---- adopt.c ---- */
/*
 * Makes the program's memory at the range part of a memfd; *fd is the caller's own. `threads`: how many of the program's are inside the
 * library. VMM_INVALID_PARAMETER: it is not all memory to read and write; VMM_NOT_SUPPORTED: it is shared with others
 * already, wholly or in part, or stores cannot be held up; VMM_NO_MEMORY.
 */
vmm_status vmm_client_adopt(int userfault, uint32_t threads, uint64_t address, uint64_t length,
			    int *fd, uint64_t *offset) VMM_MUST_CHECK;
/* Held while it does; fork() waits for it. */
extern pthread_mutex_t vmm_client_adopt_lock;

/* ---- words.c ---- */
struct vmm_client_lock {
	uint32_t device, handle, flags; /* the device's handle */
	bool pages, lock2; /* it has a list of pages; it is one of 2.x that has no flags */
};
/* Where it is, locked once more; NULL: the host is to be asked, and nothing has happened. */
void *vmm_client_lock(struct vidmm_connection *connection, const struct vmm_client_lock *lock);
/* False: likewise. */
bool vmm_client_unlock(struct vidmm_connection *connection, uint32_t device, uint32_t handle);
/* With the view lock. False: the host speaks another language. */
bool vmm_client_take_words(struct vidmm_connection *connection,
			   const struct vmm_message_words *message, int fd);
void vmm_client_say_executed(struct vidmm_connection *connection, uint64_t number);
void vmm_client_forget_words(struct vidmm_connection *connection);

/* An opening says something in its own epoch, and as long as there is a host. */
static inline bool vmm_client_is_epoch(const struct vidmm_connection *connection, uint64_t epoch)
{
	const struct vmm_lock_epoch *host = connection->epoch;

	return epoch == atomic_load_explicit(&host->epoch, memory_order_acquire) &&
	       !(atomic_load_explicit(&host->keeper, memory_order_relaxed) & VMM_LOCK_HOST_GONE);
}

/* ---- fences.c ---- */
/* False: the host is to be asked, and nothing has happened that it would not do. */
bool vmm_client_signal(struct vidmm_connection *connection, uint32_t device, uint32_t handle,
		       uint64_t value, int32_t *result);
bool vmm_client_wait(struct vidmm_connection *connection, uint32_t device, uint32_t handle,
		     uint64_t value, int32_t *result);
/* Behind a call: what it has ended is asked for again. */
void vmm_client_forget_ended(struct vidmm_connection *connection, uint32_t operation,
			     const void *argument);
/* The connection is lost, or ends: whoever sleeps comes out. */
void vmm_client_wake_fences(struct vidmm_connection *connection);
/* Then: nobody is there any more when it returns. */
void vmm_client_finish_fences(struct vidmm_connection *connection);

/* ---- notice.c ---- */
void vmm_client_take_notice(struct vidmm_connection *connection,
			    const struct vmm_message_notice *message);
/* Calls the functions of the notices that came; for a connection without threads. */
void vmm_client_call_notices(struct vidmm_connection *connection);
/* The connection is lost: the thread that calls them ends. */
void vmm_client_stop_notices(struct vidmm_connection *connection);
/* Is there a thread for them, in none of the program's functions? With the view lock: nor will it be. */
bool vmm_client_notices_rest(struct vidmm_connection *connection);
/* 0: no memory. */
uint64_t vmm_client_register(struct vidmm_connection *connection, uint32_t what, uint32_t device,
			     void *function, void *context);
void vmm_client_registered(struct vidmm_connection *connection, uint64_t number, void *handle);
/* No call is under way when it returns, but the one from inside which it is called. */
void vmm_client_unregister(struct vidmm_connection *connection, uint64_t number);
/* What `handle` (not NULL), or else the device, is registered as; 0: nothing. */
uint64_t vmm_client_find(struct vidmm_connection *connection, uint32_t what, uint32_t device,
			 const void *handle);
void vmm_client_forget_notices(struct vidmm_connection *connection);

/* ---- device.c ---- */
/* No call of a device of the connection's begins any more. */
void vmm_client_forget_devices(const struct vidmm_connection *connection);
/* After that: those that had begun. */
bool vmm_client_are_inside(const struct vidmm_connection *connection);
void vmm_client_await_leavers(const struct vidmm_connection *connection);

#endif
