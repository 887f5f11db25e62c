/* SPDX-License-Identifier: MIT */
/*
 * The viewer of an out-of-process client (struct vmm_os_viewer): addresses in its window, and the
 * numbered messages on its view socket that have it map memory there. Except adopt, its functions
 * are called under locks of the core and never wait for the client; adopt is called with no lock of
 * the core and waits with a limit. None calls the core. If a client is gone or does not read, its
 * mappings are still counted and given addresses.
 */
#ifndef VMM_SERVE_VIEWS_H
#define VMM_SERVE_VIEWS_H

#include "os/os.h"
#include "wire/protocol.h"

struct vmm_range_heap;
struct vmm_view_record;
struct vmm_view_message;
struct vmm_os_share;
struct held_descriptor;
struct vmm_write_protector;

#define VMM_RANK_VIEWS     0xE000u /* after all mutexes of the core */
/* before all mutexes: its holder waits for the client and holds no other */
#define VMM_RANK_ADOPT     3u
/* how long a client may take to share its existing memory, in ms */
#define VMM_VIEWS_ADOPT_MS 60000

/* The lock classes of `lock` and `adopt_lock` (docs/locking.md). */
extern struct vmm_lock_class vmm_views_lock_class, vmm_adopt_lock_class;

struct vmm_views_config {
	struct vmm_os *os;
	/* The views own both. userfault -1: content that is locked is not moved. */
	int socket, userfault;
	struct vmm_os_share *share; /* pays for queued descriptors; NULL: not counted */
	int epoll;                  /* reports `data` when the socket can be written to again */
	uint64_t data;
	uint64_t window_address, window_bytes, unread_bytes;
	int adopt_ms;           /* VMM_VIEWS_ADOPT_MS, or the value of a test */
	int epoch;              /* descriptor of the host's epoch; -1: all locks are messages */
	_Atomic uint32_t *late; /* counter of late clients (write_protector.h) */
	/*
	 * The host is on sim. With view_sent the client is in this process, so its stores while
	 * memory moves are kept (os_stores.h). Without it the client makes none then.
	 */
	bool single_threaded;
	/*
	 * Called with the lock after an instruction was sent; it has the client execute it. NULL:
	 * the client executes it on its own.
	 */
	void (*view_sent)(void *context, struct vmm_os_viewer *viewer);
	void *view_sent_context;
};

struct vmm_views {
	struct vmm_os_viewer viewer;
	struct vmm_views_config config;
	struct vmm_os_mutex lock;
	/* number of the last ADOPT */
	uint64_t adopt_number VMM_GUARDED_BY(vmm_adopt_lock_class);
	/* one ADOPT at a time; the socket is read under this lock only */
	struct vmm_os_mutex adopt_lock;
	_Atomic uint64_t number; /* number of the last message; incremented under lock */
	/* the client has executed all up to this number; changed without the lock */
	_Atomic uint64_t executed;
	/* Guarded by lock. */
	struct vmm_range_heap *heap;            /* NULL: the client has no window */
	struct vmm_view_record *records;        /* treap by address */
	struct vmm_view_message *first, **last; /* messages for which the socket had no space */
	struct held_descriptor *held;           /* descriptors of these messages */
	uint64_t waiting_bytes VMM_GUARDED_BY(vmm_views_lock_class);
	struct vmm_write_protector *write_protector; /* NULL: nothing has been frozen */
	struct vmm_list watched;                     /* frozen on sim (os_stores.h) */
	struct vmm_lock_words *words;                /* shared with the client; NULL: not yet */
	uint64_t *words_taken;                       /* one bit for each word */
	/* it did not execute a mapping in time; this is not waited for again */
	bool late VMM_GUARDED_BY(vmm_views_lock_class);
	/* nothing is sent any more; the socket is shut down */
	bool dead VMM_GUARDED_BY(vmm_views_lock_class);
	/* why the client is cut off; NULL: it is not */
	const char *why VMM_GUARDED_BY(vmm_views_lock_class);
};

VMM_LOCK_PAIR(vmm_views_lock, vmm_views_unlock, vmm_views_lock_class, vmm_os_mutex,
	      struct vmm_views, lock);
VMM_LOCK_PAIR(vmm_adopt_lock, vmm_adopt_unlock, vmm_adopt_lock_class, vmm_os_mutex,
	      struct vmm_views, adopt_lock);

/* Takes over the descriptors of `config`; on failure they are still the caller's. */
vmm_status vmm_views_init(struct vmm_views *views,
			  const struct vmm_views_config *config) VMM_MUST_CHECK;
void vmm_views_finish(struct vmm_views *views);
/* Returns the number of the last message, which an answer made now has to name. */
uint64_t vmm_views_number(struct vmm_views *views);
/* The client is known to have executed all messages up to this number. */
void vmm_views_executed(struct vmm_views *views, uint64_t number);
/* Sends queued messages. For when the socket can be written to again. */
void vmm_views_flush(struct vmm_views *views);
/* Sends a callback notification with the next number. */
void vmm_views_notification(struct vmm_views *views,
			    const struct vmm_message_notification *notification);
/*
 * Shuts the socket down; nothing is sent any more. `why` is recorded unless a reason is already.
 * NULL: no reason.
 */
void vmm_views_end(struct vmm_views *views, const char *why);
/* Sends a message WORDS. Caller holds the lock. */
void vmm_views_send_words_locked(struct vmm_views *views, uint32_t what, uint32_t length, int fd)
	VMM_REQUIRES(vmm_views_lock_class);
/* ---- execution.c ---- */
/* Returns whether the client is known to have executed the mapping at `address`. */
bool vmm_views_is_executed_locked(const struct vmm_views *views, uint64_t address)
	VMM_REQUIRES(vmm_views_lock_class);
/*
 * Waits until the client has executed the mapping at `address`, as long as for a late client
 * (write_protector.h). Returns at once if nothing can be write-protected, or if the client was late
 * before.
 */
void vmm_views_await_execution(struct vmm_views *views, uint64_t address);
/* ---- words.c ---- */
/* Sends the epoch and the table of words, once, if the client is to have them. */
void vmm_views_share_words_locked(struct vmm_views *views) VMM_REQUIRES(vmm_views_lock_class);
/* Returns whether the client gets the epoch before any later message. */
bool vmm_views_share_words(struct vmm_views *views);
/* Reserves the word of a handle. NULL: there is no table, or another handle has the word. */
struct vmm_lock_word *vmm_views_take_word(struct vmm_os_viewer *viewer, uint32_t handle);
void vmm_views_give_word_back(struct vmm_os_viewer *viewer, struct vmm_lock_word *word);
void vmm_views_finish_words(struct vmm_views *views);
/* Returns the recorded reason for cutting the client off, or `otherwise` if there is none. */
const char *vmm_views_why(struct vmm_views *views, const char *otherwise);

#endif
