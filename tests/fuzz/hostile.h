/* SPDX-License-Identifier: MIT */
/*
 * hostile: a client without the client library, which sends bytes on sockets (src/wire/protocol.h).
 * A script lists its steps: connect, send a valid or invalid hello, make valid or invalid calls,
 * send descriptors of the wrong kind, do not read, close. Everything that the host sends is
 * checked: it contains nothing of another client, and mapped memory cannot be used to harm the
 * host. A script is a sequence of steps of HOSTILE_STEP_BYTES: kind (corpus/serve.py has the
 * names), connection, arguments, and a seed of two bytes. Bytes behind the last whole step are
 * ignored. So a script can be cut, joined and changed at any step.
 */
#ifndef VMM_TESTS_FUZZ_HOSTILE_H
#define VMM_TESTS_FUZZ_HOSTILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <d3dkmthk.h>
#include <vidmm/serve.h>

#include "draw.h"

#define HOSTILE_ARGUMENTS   6u
#define HOSTILE_STEP_BYTES  (2u + HOSTILE_ARGUMENTS + 2u)
#define HOSTILE_KINDS       19u /* of steps */
#define HOSTILE_CONNECTIONS 6u
#define HOSTILE_POOL        128u
#define HOSTILE_VIEWS       16u
#define HOSTILE_BUFFERS     6u

/* The first bytes of every eight bytes in the memory of the honest clients. */
#define HOSTILE_CANARY       "\xC5\x91NARY"
#define HOSTILE_CANARY_BYTES 6u

struct hostile_connection {
	int fd, view; /* -1: none */
	bool welcome, first;
	uint64_t session[2];
	uint32_t device; /* of callbacks; 0: none */
	uint64_t context;
	uint64_t asked;   /* number of the host's last question about client memory */
	uint32_t pending; /* requests without an answer yet; some never get one */
};

struct hostile_view {
	void *memory;
	size_t bytes;
};

/* What the client has on the adapter of WDDM 2.x; 0: not created. */
struct hostile_buffer {
	D3DKMT_HANDLE allocation;
	uint64_t address;
};
struct hostile_gpu {
	LUID luid;
	D3DKMT_HANDLE adapter, device, queue, context, hw_context, hw_queue, fence, keyed_mutex;
	uint64_t fence_address, value, progress;
	uint64_t reserved, reserved_bytes; /* the last range that was reserved */
	struct hostile_buffer buffers[HOSTILE_BUFFERS];
};

/* A change of the bytes of a validly encoded request. */
enum { HOSTILE_STRAIGHT, HOSTILE_BEND_BYTE, HOSTILE_BEND_WORD, HOSTILE_BEND_LENGTH, HOSTILE_BENDS };
struct hostile_bend {
	uint32_t how, at, value;
};

struct hostile {
	struct vidmm_server *server;
	struct draw draw;
	const uint8_t *script; /* the present step */
	uint32_t argument;     /* its next argument */
	struct hostile_bend bend;
	struct hostile_gpu gpu;
	struct hostile_connection connections[HOSTILE_CONNECTIONS];
	uint32_t pool[HOSTILE_POOL], pool_count; /* handles that the host returned */
	int descriptors[8];
	uint32_t descriptor_count;
	struct hostile_view views[HOSTILE_VIEWS]; /* writable memory that it got */
	uint32_t view_count;
	void *words;                         /* its table of lock words; NULL: none yet */
	struct hostile_scribbler *scribbler; /* a thread that writes into it; NULL: none */
	uint64_t tag;
	const char *wrong; /* a violation by the host; NULL: none */
	/* Results: they show whether the script makes progress. */
	uint64_t welcomes, requests, answers, done, refusals, mapped, scribbled;
};

/* Runs a script on a server to its end, and closes every socket of the client. */
void hostile_run(struct hostile *h, struct vidmm_server *server, const uint8_t *script,
		 size_t bytes);

/* hostile_call.c: valid calls in a typical order, as the client library would make them */
void hostile_deep(struct hostile *h, struct hostile_connection *c, uint32_t what);
/*
 * Sends any operation, or a given one, with an argument drawn by the table. Does not wait for the
 * answer.
 */
void hostile_draw(struct hostile *h, struct hostile_connection *c);
void hostile_draw_one(struct hostile *h, struct hostile_connection *c, uint32_t which);

/* hostile_virtual.c: valid calls of a client of WDDM 2.x */
void hostile_virtual(struct hostile *h, struct hostile_connection *c, uint32_t what);
/* Creates the paging queue, the fence and the contexts of the device. */
void hostile_create_objects(struct hostile *h, struct hostile_connection *c);
/* Returns an allocation of the client, or rarely a handle of something else. */
D3DKMT_HANDLE hostile_allocation(struct hostile *h);

/* hostile_objects.c: the same, about objects that exist */
void hostile_objects(struct hostile *h, struct hostile_connection *c, uint32_t what);

/* hostile_adapter.c: the same, about adapters, and calls that WDDM 1.x has as well */
void hostile_adapter(struct hostile *h, struct hostile_connection *c, uint32_t what);

/* Prints how often the calls of hostile_call succeeded, by function, over all scripts. */
void hostile_print_counts(FILE *out);
/* Sends a valid call and takes its answer. Returns whether it succeeded. */
bool hostile_call(struct hostile *h, struct hostile_connection *c, const char *name,
		  void *argument);
/* Sends a valid call. Does not wait for the answer. */
bool hostile_ask(struct hostile *h, struct hostile_connection *c, const char *name,
		 const void *argument);

/*
 * hostile_adopt.c: an allocation over memory of the client, with true or false answers to the
 * host's questions
 */
void hostile_adopt(struct hostile *h, struct hostile_connection *c, uint32_t way, uint32_t offset);

/* hostile_words.c: the client's table of lock words, of the size of struct vmm_lock_words */
void hostile_words_take(struct hostile *h, void *words);
/*
 * Writes into the table `count` times; or with a thread while later steps run, until the next call.
 */
void hostile_words(struct hostile *h, uint32_t times, uint32_t way, bool meanwhile);
void hostile_words_stop(struct hostile *h);
void hostile_words_forget(struct hostile *h);

/*
 * hostile_mutate.c: mutates a script by whole steps and within one. Returns the new length, at most
 * `room`.
 */
size_t hostile_mutate(struct draw *draw, uint8_t *script, size_t bytes, size_t room);
/* Joins the first steps of one script with steps of another. */
size_t hostile_cross(struct draw *draw, const uint8_t *one, size_t one_bytes, const uint8_t *other,
		     size_t other_bytes, uint8_t *script, size_t room);
/* Returns the steps with which most scripts begin: they open a connection. */
size_t hostile_opening(uint8_t *script, size_t room);

/* hostile.c */
bool hostile_send(struct hostile *h, int fd, const void *head, size_t head_bytes,
		  const void *payload, size_t payload_bytes, const int *fds, uint32_t fd_count);
/*
 * Waits for one message and checks it. Returns false if the connection has ended. *bytes: room,
 * then the length.
 */
bool hostile_receive(struct hostile *h, struct hostile_connection *c, void *message, size_t *bytes,
		     bool wait);
/* Waits until no message is in flight on the connection. */
bool hostile_is_free(struct hostile *h, struct hostile_connection *c);
void hostile_learn(struct hostile *h, uint32_t handle);
void hostile_drain(struct hostile *h, struct hostile_connection *c);
void hostile_wrong(struct hostile *h, const char *what);

#endif
