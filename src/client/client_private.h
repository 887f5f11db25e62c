/* SPDX-License-Identifier: MIT */
/*
 * The types that the files of client share, and the functions that they call in each other. A
 * connection has one view socket, a pool of channels for calls, the window of CPU mappings,
 * callback registrations, and the memory for locks and fences without a message.
 *
 * A comment names the mutex that guards a member. No mutex is held while a request is under
 * way, except `first_call` while the first D3DKMT call connects.
 */
#ifndef VMM_CLIENT_PRIVATE_H
#define VMM_CLIENT_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/lock_word.h"
#include "base/owner.h"
#include "client/client.h"
#include "packet/packet.h"
#include "wire_table.h"

/*
 * A pthread mutex that knows its owner, so that a function that needs it can assert that the caller
 * holds it (vmm_assert_owned).
 */
struct vmm_client_mutex {
	pthread_mutex_t mutex;
	struct vmm_owner owner;
};
#define VMM_CLIENT_MUTEX                           \
	{                                          \
		.mutex = PTHREAD_MUTEX_INITIALIZER \
	}
static inline void vmm_client_mutex_init(struct vmm_client_mutex *mutex)
{
	pthread_mutex_init(&mutex->mutex, NULL);
	vmm_owner_clear(&mutex->owner);
}
static inline void vmm_client_mutex_destroy(struct vmm_client_mutex *mutex)
{
	pthread_mutex_destroy(&mutex->mutex);
}
static inline void vmm_client_mutex_lock(struct vmm_client_mutex *mutex)
{
	pthread_mutex_lock(&mutex->mutex);
	vmm_owner_set(&mutex->owner);
}
static inline void vmm_client_mutex_unlock(struct vmm_client_mutex *mutex)
{
	vmm_owner_clear(&mutex->owner);
	pthread_mutex_unlock(&mutex->mutex);
}
/* Waits for the condition; the mutex is free meanwhile. */
static inline void vmm_client_mutex_wait(struct vmm_client_mutex *mutex, pthread_cond_t *condition)
{
	vmm_assert_owned(&mutex->owner);
	vmm_owner_clear(&mutex->owner);
	pthread_cond_wait(condition, &mutex->mutex);
	vmm_owner_set(&mutex->owner);
}

/* The lock classes of the mutexes of a connection, and of adopt.c (docs/locking.md). */
extern struct vmm_lock_class vmm_client_pool_class, vmm_client_view_class;
extern struct vmm_lock_class vmm_client_notification_class, vmm_client_fence_class;
extern struct vmm_lock_class vmm_client_adopt_class;

/* A connected socket, used by one thread during a call. */
struct vmm_channel_to_host {
	int fd;
	struct vmm_packet packet;
	struct vmm_wire_call call;
	/* the request depends on the cached value type of an object */
	bool used_values;
	bool texts; /* an answer said that the host has texts for this client */
	struct vmm_channel_to_host *next;
};

/* A function of the program that the host may have called. The host knows it by its number. */
struct vmm_registration {
	struct vmm_list link;
	uint64_t number;
	/* enum vmm_notification_what; device number of the call that registered it */
	uint32_t what, device;
	void *function, *context, *handle;
};
struct vmm_notification {
	struct vmm_list link;
	struct vmm_message_notification message;
};

#define VMM_CLIENT_VALUES 1024u
#define VMM_CLIENT_FENCES 256u

struct vidmm_connection {
	/* Constant after connecting. */
	struct vmm_client_options options;
	char name[64];
	/* path of the host's socket, if options.more is this library's own */
	char path[108];
	uint32_t process_id, channels_max;
	uint64_t session[2];
	char *window; /* address range for view instructions */
	uint64_t window_bytes;
	/* -1: none. null_fd: sent in the place of a descriptor that is not open. */
	int view_socket, userfault, null_fd;
	pthread_t thread;
	bool threaded; /* set before the thread starts */
	/* constant: prints the findings and reasons that the host has for this client */
	bool debug;

	/* Set once: the host is gone, or this process is a child of fork(). */
	_Atomic bool lost;
	_Atomic bool
		connected; /* set once: `first` exists, and the host has accepted the session */
	/* the program is disconnecting: its handles are dead */
	_Atomic bool ending;
	bool forked;
	/* in the list of all connections; guarded by all_lock of connection.c */
	struct vmm_list link;

	struct vmm_client_mutex pool_lock; /* guards the next three members */
	struct vmm_channel_to_host *idle;
	struct vmm_channel_to_host *first; /* closing it ends the session */
	uint32_t channel_count;

	/* held while instructions are executed; guards view_packet */
	struct vmm_client_mutex view_lock;
	struct vmm_packet view_packet;
	/* number of the last instruction executed; all before it are executed too */
	_Atomic uint64_t views;

	struct vmm_client_mutex notification_lock; /* guards the following members up to `caller` */
	pthread_cond_t notification_done, notification_arrived;
	pthread_t notification_thread;
	/* the thread exists; it starts with the first registration */
	bool notification_threaded;
	struct vmm_list notifications, registrations;
	uint64_t last_registration VMM_GUARDED_BY(vmm_client_notification_class);
	/* number of the registration whose function is being called; 0: none */
	uint64_t calling VMM_GUARDED_BY(vmm_client_notification_class);
	pthread_t caller VMM_GUARDED_BY(vmm_client_notification_class);

	/*
	 * Locks without a message. NULL: the host has given no such memory. The epoch is set first.
	 */
	_Atomic(struct vmm_lock_words *) words;
	const struct vmm_lock_epoch *epoch;

	/* Fence pages (fences.c). The lock guards the members that follow, up to fence_forgets. */
	struct vmm_client_mutex fence_lock;
	pthread_cond_t fence_users_gone;
	struct vmm_client_fence *fences[VMM_CLIENT_FENCES];
	/* threads that use a page, or sleep in one */
	uint32_t fence_users VMM_GUARDED_BY(vmm_client_fence_class);
	/* how many times fences were forgotten */
	uint64_t fence_forgets VMM_GUARDED_BY(vmm_client_fence_class);
	_Atomic bool fence_pages_refused; /* the host gives no fence pages */

	/*
	 * Cache of the value types of synchronization objects: handle in the high half, 1 + enum
	 * vmm_wire_values in the low half; 0: empty.
	 */
	_Atomic uint64_t values[VMM_CLIENT_VALUES];
};

VMM_LOCK_PAIR(vmm_client_pool_lock, vmm_client_pool_unlock, vmm_client_pool_class, vmm_client_mutex,
	      struct vidmm_connection, pool_lock);
VMM_LOCK_PAIR(vmm_client_view_lock, vmm_client_view_unlock, vmm_client_view_class, vmm_client_mutex,
	      struct vidmm_connection, view_lock);
VMM_LOCK_PAIR(vmm_client_notification_lock, vmm_client_notification_unlock,
	      vmm_client_notification_class, vmm_client_mutex, struct vidmm_connection,
	      notification_lock);
VMM_LOCK_PAIR(vmm_client_fence_lock, vmm_client_fence_unlock, vmm_client_fence_class,
	      vmm_client_mutex, struct vidmm_connection, fence_lock);

static inline bool vmm_client_lost(const struct vidmm_connection *connection)
{
	return atomic_load_explicit(&connection->lost, memory_order_acquire);
}
/* Marks the connection as lost and makes all threads inside it return. Any thread; repeatable. */
void vmm_client_lose(struct vidmm_connection *connection);
/*
 * Returns whether the host is gone or has ended the session. Used where the calling thread may have
 * seen a consequence of that before the connection was marked as lost.
 */
bool vmm_client_host_is_gone(const struct vidmm_connection *connection);
/* First half of vidmm_disconnect: makes the handles of its devices invalid. */
void vmm_client_begin_disconnect(struct vidmm_connection *connection);

/* ---- channel.c ---- */
/*
 * Send one message; receive one message into channel->packet. They return VMM_DEVICE_REMOVED if the
 * host is gone.
 */
vmm_status vmm_client_send(struct vidmm_connection *connection, int fd, const void *head,
			   size_t head_bytes, const struct vmm_wire_bytes *body, const int *fds,
			   uint32_t fd_count) VMM_MUST_CHECK;
vmm_status vmm_client_receive(struct vidmm_connection *connection,
			      struct vmm_channel_to_host *channel) VMM_MUST_CHECK;
/* Makes a channel that owns the socket. NULL: no memory; the socket is closed then. */
struct vmm_channel_to_host *vmm_client_channel_create(int fd);
void vmm_client_channel_destroy(struct vmm_channel_to_host *channel);
/*
 * Takes an idle channel, or connects another one; vmm_client_put_channel gives it back. Returns
 * VMM_DEVICE_REMOVED if the connection is lost, VMM_INSUFFICIENT_RESOURCES if no more channels are
 * allowed or can be connected, or VMM_NO_MEMORY.
 */
vmm_status vmm_client_take_channel(struct vidmm_connection *connection,
				   struct vmm_channel_to_host **channel) VMM_MUST_CHECK;
void vmm_client_put_channel(struct vidmm_connection *connection,
			    struct vmm_channel_to_host *channel);
/* Receives the first answer on a channel. VMM_OK: it is a welcome, copied to *welcome. */
vmm_status vmm_client_await_welcome(struct vidmm_connection *connection,
				    struct vmm_channel_to_host *channel,
				    struct vmm_message_welcome *welcome) VMM_MUST_CHECK;

/* ---- views.c ---- */
/* Reserves the address range for CPU mappings. False: there is no free range. */
bool vmm_client_window_reserve(struct vidmm_connection *connection);
void vmm_client_window_release(struct vidmm_connection *connection);
/* Executes view instructions until number `number` is executed. */
vmm_status vmm_client_catch_up(struct vidmm_connection *connection, uint64_t number) VMM_MUST_CHECK;
/*
 * Executes all messages that have arrived. Returns false if the socket is closed or a message was
 * invalid.
 */
bool vmm_client_execute_views(struct vidmm_connection *connection);
/* Starts the thread that executes messages which come without a call. */
bool vmm_client_thread_start(struct vidmm_connection *connection);
/* Starts a thread of the library. It blocks all signals but those of faults. */
bool vmm_client_start_thread(pthread_t *thread, void *(*run)(void *connection),
			     struct vidmm_connection *connection, const char *name);

/*
 * mmap with MAP_FIXED of memory that other threads of the program are using. The system call is
 * made directly because ThreadSanitizer treats mmap() as a store to the whole range.
 */
static inline bool vmm_client_map_over(void *address, uint64_t length, int protection, int flags,
				       int fd, uint64_t offset)
{
	return syscall(SYS_mmap, address, length, protection, flags | MAP_FIXED, fd,
		       (off_t)offset) == (long)(uintptr_t)address;
}

/* ---- adopt.c ---- */
/*
 * Makes the program's memory in the range a part of a memfd. *fd is the caller's to close; *offset
 * is where the range is in it. threads: how many threads of the program are inside the library.
 * Returns VMM_INVALID_PARAMETER if not all of the range can be read and written. Returns
 * VMM_NOT_SUPPORTED if some part is already shared with others, or if stores of other threads
 * cannot be blocked. Otherwise VMM_OK or VMM_NO_MEMORY.
 */
vmm_status vmm_client_adopt(int userfault, uint32_t threads, uint64_t address, uint64_t length,
			    int *fd, uint64_t *offset) VMM_MUST_CHECK;
/* The mutex that is held during vmm_client_adopt. fork() waits for it. */
void vmm_client_adopt_lock(void) VMM_ACQUIRES(vmm_client_adopt_class);
void vmm_client_adopt_unlock(void) VMM_RELEASES(vmm_client_adopt_class);

/* ---- words.c ---- */
struct vmm_client_lock {
	uint32_t device, handle, flags; /* D3DKMT handle of the device */
	const uint32_t *pages;          /* the list of pages, or NULL */
	uint32_t page_count;
	bool lock2; /* it is a Lock2, which is plain only without flags */
};
/*
 * Locks without a message. Returns the address, or NULL: nothing has been done, and the host has to
 * be called.
 */
void *vmm_client_lock(struct vidmm_connection *connection, const struct vmm_client_lock *lock);
/* Unlocks without a message. False: nothing has been done, and the host has to be called. */
bool vmm_client_unlock(struct vidmm_connection *connection, uint32_t device, uint32_t handle);
/*
 * Maps the memory of the message. Caller holds the view lock. False: the message is invalid, or
 * mapping failed.
 */
bool vmm_client_map_words(struct vidmm_connection *connection,
			  const struct vmm_message_words *message, int fd)
	VMM_REQUIRES(vmm_client_view_class);
/* Stores in shared memory that all instructions up to this one are executed. */
void vmm_client_publish_executed(struct vidmm_connection *connection, uint64_t number);
void vmm_client_unmap_words(struct vidmm_connection *connection);

/*
 * Returns whether memory that the host gave out in `epoch` is still valid: the epoch is unchanged
 * and the host is alive.
 */
static inline bool vmm_client_is_epoch(const struct vidmm_connection *connection, uint64_t epoch)
{
	const struct vmm_lock_epoch *host = connection->epoch;

	return epoch == atomic_load_explicit(&host->epoch, memory_order_acquire) &&
	       !(atomic_load_explicit(&host->watchdog, memory_order_relaxed) & VMM_LOCK_HOST_GONE);
}

/* ---- fences.c ---- */
/*
 * Signal and wait without a message. They return false if nothing has been done and the host has to
 * be called; otherwise *result is the status.
 */
bool vmm_client_signal(struct vidmm_connection *connection, uint32_t device, uint32_t handle,
		       uint64_t value, int32_t *result);
bool vmm_client_wait(struct vidmm_connection *connection, uint32_t device, uint32_t handle,
		     uint64_t value, int32_t *result);
/*
 * Called after each call: forgets the fences that the operation has ended, so that they are
 * requested again.
 */
void vmm_client_forget_ended(struct vidmm_connection *connection, uint32_t operation,
			     const void *argument);
/* Wakes all threads that sleep in fence pages. For a connection that is lost or ends. */
void vmm_client_wake_fences(struct vidmm_connection *connection);
/* After that: waits until no thread uses a fence page and unmaps them all. */
void vmm_client_finish_fences(struct vidmm_connection *connection);

/* ---- notification.c ---- */
/* Queues a callback notification. Caller holds the view lock. */
void vmm_client_take_notification(struct vidmm_connection *connection,
				  const struct vmm_message_notification *message)
	VMM_REQUIRES(vmm_client_view_class);
/* Calls the functions of notifications that have arrived. For connections without threads. */
void vmm_client_call_notifications(struct vidmm_connection *connection);
/* Wakes the thread that calls them, so that it ends. Caller has marked the connection as lost. */
void vmm_client_stop_notifications(struct vidmm_connection *connection);
/*
 * Returns whether a notification thread exists and is in none of the program's functions. Caller
 * holds the view lock, so that no new notification arrives.
 */
bool vmm_client_notifications_idle(struct vidmm_connection *connection)
	VMM_REQUIRES(vmm_client_view_class);
/* Registers a function and returns its number; 0: no memory, or no thread could be started. */
uint64_t vmm_client_register(struct vidmm_connection *connection, uint32_t what, uint32_t device,
			     void *function, void *context);
/* Stores the handle that the host gave the registration. */
void vmm_client_registered(struct vidmm_connection *connection, uint64_t number, void *handle);
/* Ends a registration. Waits for a call of its function under way, unless called from inside it. */
void vmm_client_unregister(struct vidmm_connection *connection, uint64_t number);
/* Returns the number that `handle`, or if that is NULL the device, is registered as; 0: none. */
uint64_t vmm_client_find(struct vidmm_connection *connection, uint32_t what, uint32_t device,
			 const void *handle);
/* Frees all notifications and registrations. No other thread uses the connection. */
void vmm_client_forget_notifications(struct vidmm_connection *connection);

/* ---- device.c ---- */
/* Makes all handles of the connection's devices invalid. No new call of them begins after that. */
void vmm_client_forget_devices(const struct vidmm_connection *connection);
/* After that: whether calls that had begun are still inside; wait until none is. */
bool vmm_client_has_callers(const struct vidmm_connection *connection);
void vmm_client_wait_callers(const struct vidmm_connection *connection);

#endif
