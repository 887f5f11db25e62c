/* SPDX-License-Identifier: MIT */
/*
 * The lower bound of a submission for each reference: handle to table entry, generation check,
 * state check, fence stamp. It has no atomic instruction and no list operation; the objects are in
 * random order. One operation is one reference.
 */
#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HANDLE_SHIFT = 6, RESIDENT = 1 };

struct object {
	uint32_t state;
	uint32_t other[13];
	uint64_t fence;
};

struct entry {
	struct object *object;
	uint32_t generation;
};

struct submission {
	uint64_t count;
	uint64_t fence;
	struct object *objects;
	struct entry *entries;
	uint32_t *handles;
};

/*
 * Allocates zeroed memory, on huge pages if it is large enough, so that TLB misses are not
 * measured.
 */
static void *big_calloc(uint64_t count, size_t size)
{
	const size_t huge = (size_t)2 << 20;
	size_t bytes = (count * size + huge - 1) / huge * huge;
	void *block = aligned_alloc(huge, bytes);
	if (!block)
		return NULL;
	madvise(block, bytes, MADV_HUGEPAGE);
	memset(block, 0, bytes);
	return block;
}

static void submission_destroy(void *state)
{
	struct submission *s = state;
	free(s->objects);
	free(s->entries);
	free(s->handles);
	free(s);
}

/* A fixed pseudo-random sequence: the same order in every run. */
static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *seed >> 33;
}

static void *submission_create(const struct bench_case *self)
{
	uint64_t seed = 1;
	struct submission *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->count = self->parameter;
	s->objects = big_calloc(s->count, sizeof(*s->objects));
	s->entries = big_calloc(s->count, sizeof(*s->entries));
	s->handles = big_calloc(s->count, sizeof(*s->handles));
	if (!s->objects || !s->entries || !s->handles) {
		submission_destroy(s);
		return NULL;
	}
	for (uint64_t i = 0; i < s->count; i++) {
		s->objects[i].state = RESIDENT;
		s->entries[i] = (struct entry){.object = &s->objects[i], .generation = 1};
		s->handles[i] = (uint32_t)(i << HANDLE_SHIFT) | UINT32_C(1) << 30;
	}
	for (uint64_t i = s->count - 1; i > 0; i--) {
		uint64_t j = next_random(&seed) % (i + 1);
		uint32_t handle = s->handles[i];
		s->handles[i] = s->handles[j];
		s->handles[j] = handle;
	}
	return s;
}

static void run_submission(void *state, uint64_t steps)
{
	struct submission *s = state;
	for (uint64_t step = 0; step < steps; step++) {
		uint64_t fence = ++s->fence;
		for (uint64_t i = 0; i < s->count; i++) {
			uint32_t handle = s->handles[i];
			const struct entry *entry =
				&s->entries[(handle >> HANDLE_SHIFT) & 0xffffff];
			if (entry->generation != handle >> 30 || entry->object->state != RESIDENT)
				abort();
			entry->object->fence = fence;
		}
		bench_barrier();
	}
}

#define SUBMISSION(text, n)                                                      \
	BENCH(.name = "floor.reference_" text, .per_run = (n), .parameter = (n), \
	      .setup = submission_create, .run = run_submission, .teardown = submission_destroy)
SUBMISSION("100", 100);
SUBMISSION("1k", 1000);
SUBMISSION("10k", 10000);
SUBMISSION("100k", 100000);
