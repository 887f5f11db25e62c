/* SPDX-License-Identifier: MIT */
/*
 * hostile: a client that is no library but bytes on sockets (src/wire/protocol.h). A script says
 * what it does next: connect, say hello or something like it, make calls that are meant or not,
 * send descriptors that are not what it says, not read, close. Whatever comes back from the host is
 * looked through: nothing in it may be another client's, and what is mapped for it must be such
 * that it cannot hurt the host.
 *
 * A script is a sequence of steps of HOSTILE_STEP_BYTES: what it does (corpus/serve.py has the
 * names), on which connection, arguments, and what else is drawn by chance (two bytes). What is
 * behind the last whole step does not count. So a script can be cut, joined and changed at any
 * step.
 */
#ifndef VMM_TESTS_FUZZ_HOSTILE_H
#define VMM_TESTS_FUZZ_HOSTILE_H

#include <stdbool.h>
#include <stddef.h>

#include <vidmm/serve.h>

#include "draw.h"

#define HOSTILE_ARGUMENTS   6u
#define HOSTILE_STEP_BYTES  (2u + HOSTILE_ARGUMENTS + 2u)
#define HOSTILE_KINDS       17u /* of steps */
#define HOSTILE_CONNECTIONS 6u
#define HOSTILE_POOL        128u
#define HOSTILE_VIEWS       16u

/* The first bytes of every eight that the honest client has in its memory. */
#define HOSTILE_CANARY       "\xC5\x91NARY"
#define HOSTILE_CANARY_BYTES 6u

struct hostile_connection {
	int fd, view; /* -1: none */
	bool welcome, first;
	uint64_t session[2];
	uint32_t device; /* of callbacks; 0: none */
	uint64_t context;
	uint64_t asked;   /* the number of the host's last question for memory; 0: none */
	uint32_t pending; /* requests without an answer yet; some never get one */
};

struct hostile_view {
	void *memory;
	size_t bytes;
};

/* A change of the bytes of a request that was encoded well. */
enum { HOSTILE_STRAIGHT, HOSTILE_BEND_BYTE, HOSTILE_BEND_WORD, HOSTILE_BEND_LENGTH, HOSTILE_BENDS };
struct hostile_bend {
	uint32_t how, at, value;
};

struct hostile {
	struct vidmm_server *server;
	struct draw draw;
	const uint8_t *script; /* the step that it is at */
	uint32_t argument;     /* the next of its arguments */
	struct hostile_bend bend;
	struct hostile_connection connections[HOSTILE_CONNECTIONS];
	uint32_t pool[HOSTILE_POOL], pool_count; /* handles that it was given */
	int descriptors[8];
	uint32_t descriptor_count;
	struct hostile_view views[HOSTILE_VIEWS]; /* what it may write to */
	uint32_t view_count;
	void *words;                         /* its table of lock words; NULL: none yet */
	struct hostile_scribbler *scribbler; /* a thread that writes into it; NULL: none */
	uint64_t tag;
	const char *wrong; /* what the host did that it must not */
	/* Results: they show whether the script makes progress. */
	uint64_t welcomes, requests, answers, done, refusals, mapped, scribbled;
};

/* Runs a script on a server, to its end; every socket of the client is closed then. */
void hostile_run(struct hostile *h, struct vidmm_server *server, const uint8_t *script,
		 size_t bytes);

/* hostile_call.c: well-formed calls, one after the other, as a client's library would make them */
void hostile_deep(struct hostile *h, struct hostile_connection *c, uint32_t what);
/*
 * Any operation, or a certain one, with an argument drawn from the table; does not wait for the
 * answer.
 */
void hostile_draw(struct hostile *h, struct hostile_connection *c);
void hostile_draw_one(struct hostile *h, struct hostile_connection *c, uint32_t which);

/* Sends a well-formed call; does not wait for the answer. */
bool hostile_ask(struct hostile *h, struct hostile_connection *c, const char *name,
		 const void *argument);

/*
 * hostile_adopt.c: an allocation over memory of its own, of which it says this or that when the
 * host asks
 */
void hostile_adopt(struct hostile *h, struct hostile_connection *c, uint32_t way, uint32_t offset);

/*
 * hostile_words.c: its table of lock words, a mapping of its own of the size of struct
 * vmm_lock_words
 */
void hostile_words_take(struct hostile *h, void *words);
/*
 * Writes into it so often, in one way or any; or, from now until the next time, with a thread while
 * other steps are done.
 */
void hostile_words(struct hostile *h, uint32_t times, uint32_t way, bool meanwhile);
void hostile_words_stop(struct hostile *h);
void hostile_words_forget(struct hostile *h);

/*
 * hostile_mutate.c: changes a script by whole steps and within one; the new length, at most `room`.
 */
size_t hostile_mutate(struct draw *draw, uint8_t *script, size_t bytes, size_t room);
/* Begins with steps of one, goes on with those of another. */
size_t hostile_cross(struct draw *draw, const uint8_t *one, size_t one_bytes, const uint8_t *other,
		     size_t other_bytes, uint8_t *script, size_t room);
/* That opens a connection well: what most scripts begin with to get anywhere. */
size_t hostile_opening(uint8_t *script, size_t room);

/* hostile.c */
bool hostile_send(struct hostile *h, int fd, const void *head, size_t head_bytes,
		  const void *payload, size_t payload_bytes, const int *fds, uint32_t fd_count);
/*
 * Waits for one message and looks through it; false: the connection has ended. *bytes: room, then
 * what came.
 */
bool hostile_receive(struct hostile *h, struct hostile_connection *c, void *message, size_t *bytes,
		     bool wait);
/* Nothing is under way on it, or is not a moment later. */
bool hostile_is_free(struct hostile *h, struct hostile_connection *c);
void hostile_learn(struct hostile *h, uint32_t handle);
void hostile_drain(struct hostile *h, struct hostile_connection *c);
void hostile_wrong(struct hostile *h, const char *what);

#endif
