/* SPDX-License-Identifier: MIT */
/*
 * The viewer of a client (struct vmm_os_viewer): where in its window views are, and the numbered messages on its view socket that
 * have it map them. Called under locks of the core: nothing here waits for the client, and nothing of the core is called. A client
 * that is gone, or does not read, has its views all the same, as numbers that nobody looks at.
 */
#ifndef VMM_SERVE_VIEWS_H
#define VMM_SERVE_VIEWS_H

#include "os/os.h"
#include "wire/protocol.h"

struct vmm_range_heap;
struct vmm_view_record;
struct vmm_view_message;
struct vmm_freezer;

#define VMM_RANK_VIEWS 0xE000u /* after everything of the core's */
#define VMM_RANK_ADOPT 3u      /* before everything: who waits for a client holds nothing else */
#define VMM_VIEWS_ADOPT_MS \
	60000 /* how long a client may take to copy what it brings along (Q-95) */

struct vmm_views_config {
	struct vmm_os *os;
	int socket,
		userfault; /* become the views'; userfault -1: content that is locked stays where it is */
	int epoll;         /* tells `data` when the socket can be written to again */
	uint64_t data;
	uint64_t window_address, window_bytes, unread_bytes;
	int adopt_ms; /* VMM_VIEWS_ADOPT_MS, or what a test says */
	int epoch;    /* a descriptor of the host's epoch; -1: all locks come by messages */
	_Atomic uint32_t *late; /* freezer.h */
	bool alone;             /* nobody stores while something moves: freezing needs nothing */
	/* Has each instruction executed that has been sent, with the lock; NULL: the client does. */
	void (*shown)(void *context, struct vmm_os_viewer *viewer);
	void *shown_context;
};

struct vmm_views {
	struct vmm_os_viewer viewer;
	struct vmm_views_config config;
	struct vmm_os_mutex lock;
	uint64_t asked; /* the number of the last question; under adopt_lock */
	struct vmm_os_mutex
		adopt_lock;        /* one question at a time; the socket is read under it alone */
	_Atomic uint64_t number;   /* of the last message; grows under lock */
	_Atomic uint64_t executed; /* the client has, up to here; without the lock */
	/* Guarded by lock. */
	struct vmm_range_heap *heap;            /* NULL: the client has no window */
	struct vmm_view_record *records;        /* by address */
	struct vmm_view_message *first, **last; /* that the socket had no room for */
	uint64_t waiting_bytes;
	struct vmm_freezer *freezer;  /* NULL: nothing has been frozen */
	struct vmm_lock_words *words; /* shared with the client; NULL: not yet */
	uint64_t *words_taken;        /* a bit for each */
	bool dead;                    /* nothing is sent any more; the socket is shut down */
	const char *why;              /* the client is to be cut off for; NULL: for nothing */
};

/* On failure the descriptors are the caller's still. */
vmm_status vmm_views_init(struct vmm_views *views,
			  const struct vmm_views_config *config) VMM_MUST_CHECK;
void vmm_views_finish(struct vmm_views *views);
/* The number of the last message: what an answer that is made now names. */
uint64_t vmm_views_number(struct vmm_views *views);
void vmm_views_executed(struct vmm_views *views, uint64_t number);
/* The socket can be written to again. */
void vmm_views_flush(struct vmm_views *views);
void vmm_views_notice(struct vmm_views *views, const struct vmm_message_notice *notice);
/* Nothing is sent any more; why, unless something has been said already. */
void vmm_views_end(struct vmm_views *views, const char *why);
/* A message WORDS, with the lock. */
void vmm_views_send_words_locked(struct vmm_views *views, uint32_t what, uint32_t length, int fd);
/* ---- words.c: operations of a viewer ---- */
/* Has the client the epoch in view, or will it before it hears of anything else? */
bool vmm_views_share_words(struct vmm_views *views);
struct vmm_lock_word *vmm_views_take_word(struct vmm_os_viewer *viewer, uint32_t handle);
void vmm_views_give_word_back(struct vmm_os_viewer *viewer, struct vmm_lock_word *word);
void vmm_views_finish_words(struct vmm_views *views);
/* What is to be said of a client that ends: what it was cut off for, if it was. */
const char *vmm_views_why(struct vmm_views *views, const char *otherwise);

#endif
