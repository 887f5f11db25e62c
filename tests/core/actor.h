/* SPDX-License-Identifier: MIT */
/*
 * The actors of the random workload, for the files that implement them: workload.c, and wide.c for
 * wide runs.
 */
#ifndef VMM_TESTS_CORE_ACTOR_H
#define VMM_TESTS_CORE_ACTOR_H

#include "workload.h"

#include <support/client.h>

#include <d3dkmthk.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define KIB         1024u
#define BUFFERS     10u
#define CONTEXTS    2u
#define PROCESSES   2u
#define BLOCK_BYTES 512u

enum {
	READ_ONLY = 0x1,
	WRITE_ONLY = 0x2,
	DONOT_WAIT = 0x4,
	IGNORE_SYNC = 0x8,
	LOCK_ENTIRE = 0x10,
	DONOT_EVICT = 0x20,
	DISCARD = 0x80,
	NO_EXISTING_REFERENCE = 0x100,
	IGNORE_READ_SYNC = 0x400
};

struct buffer {
	D3DKMT_HANDLE handle; /* 0: none */
	uint32_t bytes, number;
	/* the context whose packets use it, because two contexts have no order between them */
	uint32_t home;
	bool stamped; /* written by STAMP only, which checks the old content first */
	bool offered;
	/*
	 * an overlay; like all placement choices it follows from the number, not from random
	 * numbers
	 */
	bool pinned;
	uint32_t version;
	unsigned char *shadow;
	/* Permanent backing stores: follows from the number, not from random numbers. */
	bool permanent;
	unsigned char *own; /* memory of the client that is the backing store, or NULL */
	uint32_t visits;
	/*
	 * In a wide run: never locked (Protected, or not CpuVisible); compared through a copy made
	 * by the GPU.
	 */
	bool hidden;
	bool held; /* locked during other actions of the actor */
	struct softgpu_allocation spec;
};

struct actor {
	struct run *run;
	uint32_t index;
	uint64_t random;
	struct client_device device;
	struct client_context context[CONTEXTS];
	struct buffer buffer[BUFFERS];
	uint32_t numbers, discards;
	uint32_t operation;
	uint64_t reached[WORKLOAD_KINDS];
	struct vidmm_thread *thread;
	char failure[256];
};

struct run {
	const struct workload *workload;
	struct client client; /* host and adapter */
	struct vidmm_process *process[PROCESSES];
	struct actor *actor;
	bool vram_visible, aperture_coherent;
	uint32_t largest_bytes;
	LUID luid;
};

static inline uint32_t draw(struct actor *a, uint32_t below)
{
	uint64_t x = a->random += 0x9E3779B97F4A7C15u;

	x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
	x = (x ^ x >> 27) * 0x94D049BB133111EBu;
	return (uint32_t)((x ^ x >> 31) >> 32) % below;
}

static inline bool differs(struct actor *a, const char *what, uint64_t got)
{
	if (!a->failure[0])
		snprintf(a->failure, sizeof(a->failure),
			 "operation %u of actor %u: %s (0x%" PRIx64 ")", a->operation, a->index,
			 what, got);
	return false;
}

static inline bool is_ok(struct actor *a, HRESULT result, const char *what)
{
	return result == S_OK ? true : differs(a, what, (uint32_t)result);
}

static inline bool compare(struct actor *a, const struct buffer *b, const unsigned char *bytes)
{
	if (!memcmp(bytes, b->shadow, b->bytes))
		return true;
	for (uint32_t i = 0; i < b->bytes; i++)
		if (bytes[i] != b->shadow[i])
			return differs(a, "content differs from the shadow, buffer << 32 | offset",
				       (uint64_t)b->number << 32 | i);
	return differs(a, "content changes while it is compared, buffer", b->number);
}

static inline bool unlock(struct actor *a, const struct buffer *b)
{
	return is_ok(a, client_unlock(&a->device, b->handle), "unlock");
}

/* workload.c */
void actor_scribble(struct actor *a, struct buffer *b, unsigned char *bytes, uint32_t from,
		    uint32_t count);
bool actor_render(struct actor *a);
void actor_put_fill(struct actor *a, struct client_context *c, struct buffer *b);

/* wide.c */
bool wide_act(struct actor *a, bool *acted); /* false in *acted: workload.c chooses the action */
void wide_spec(struct buffer *b, struct softgpu_allocation *spec);
bool wide_compare(struct actor *a, struct buffer *b);
bool wide_refill(struct actor *a, struct buffer *b);
bool wide_share(struct actor *a);

#endif
