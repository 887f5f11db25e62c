/* SPDX-License-Identifier: MIT */
/*
 * Handle lookup as in a submission (handle to object, state check, fence stamp), relative to the
 * floor of bench_submit_floor.c with the same objects; and creating and destroying a handle.
 */
#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "handle/handle.h"

enum { RESIDENT = 1 };

struct object {
	uint32_t state;
	uint32_t other[13];
	uint64_t fence;
};

struct references {
	uint64_t count, fence;
	struct vmm_handle_table table;
	struct object *objects;
	uint32_t *handles;
};

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *seed >> 33;
}

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

static void references_destroy(void *state)
{
	struct references *r = state;

	if (r->handles)
		for (uint64_t i = 0; i < r->count && r->handles[i]; i++)
			vmm_handle_destroy(&r->table, r->handles[i]);
	vmm_handle_table_finish(&r->table);
	free(r->objects);
	free(r->handles);
	free(r);
}

static void *references_create(const struct bench_case *self)
{
	uint64_t seed = 1;
	struct references *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->count = self->parameter;
	vmm_handle_table_init(&r->table, VMM_HANDLE_LOCAL);
	r->objects = big_calloc(r->count, sizeof(*r->objects));
	r->handles = big_calloc(r->count, sizeof(*r->handles));
	if (!r->objects || !r->handles)
		goto failed;
	for (uint64_t i = 0; i < r->count; i++) {
		r->objects[i].state = RESIDENT;
		r->handles[i] = vmm_handle_create(&r->table, VMM_HANDLE_ALLOCATION, &r->objects[i]);
		if (!r->handles[i])
			goto failed;
	}
	for (uint64_t i = r->count - 1; i > 0; i--) {
		uint64_t j = next_random(&seed) % (i + 1);
		uint32_t handle = r->handles[i];

		r->handles[i] = r->handles[j];
		r->handles[j] = handle;
	}
	return r;

failed:
	references_destroy(r);
	return NULL;
}

static void run_references(void *state, uint64_t steps)
{
	struct references *r = state;

	for (uint64_t step = 0; step < steps; step++) {
		uint64_t fence = ++r->fence;

		for (uint64_t i = 0; i < r->count; i++) {
			struct object *object =
				vmm_handle_lookup(&r->table, r->handles[i], VMM_HANDLE_ALLOCATION);

			if (!object || object->state != RESIDENT)
				abort();
			object->fence = fence;
		}
		bench_barrier();
	}
}

#define REFERENCES(text, n)                                                                      \
	BENCH(.name = "handle.reference_" text, .per_run = (n), .parameter = (n),                \
	      .setup = references_create, .run = run_references, .teardown = references_destroy, \
	      .peer = "floor.reference_" text, .ratio_max = 1.5)
REFERENCES("100", 100);
REFERENCES("1k", 1000);
REFERENCES("10k", 10000);
REFERENCES("100k", 100000);

static void run_create_destroy(void *state, uint64_t steps)
{
	struct references *r = state;

	for (uint64_t i = 0; i < steps; i++) {
		uint32_t handle = vmm_handle_create(&r->table, VMM_HANDLE_CONTEXT, r);

		bench_use(handle);
		vmm_handle_destroy(&r->table, handle);
	}
}
BENCH(.name = "handle.create_destroy", .parameter = 1000, .setup = references_create,
      .run = run_create_destroy, .teardown = references_destroy, .peer = "floor.malloc_free",
      .ratio_max = 2.0);
