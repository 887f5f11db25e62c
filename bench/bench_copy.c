/* SPDX-License-Identifier: MIT */
/*
 * The cost of a paging copy in memory bandwidth: 64 MiB pieces that rotate through pools several
 * times as large as the last-level cache, with ordinary and with non-temporal stores. Setup touches
 * the pools once, so page faults are not measured.
 */
#include "bench.h"

#include <string.h>
#include <sys/mman.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { PIECES = 3 };
#define PIECE_BYTES (UINT64_C(64) << 20)
#define POOL_BYTES  (PIECES * PIECE_BYTES)

/* One pair of pools for all cases. A case continues the rotation where the previous one stopped. */
static struct pools {
	unsigned char *from;
	unsigned char *to;
	unsigned next;
	unsigned users;
} shared_pools;

static unsigned char *pool_create(int fill)
{
	void *pool =
		mmap(NULL, POOL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pool == MAP_FAILED)
		return NULL;
	madvise(pool, POOL_BYTES, MADV_HUGEPAGE);
	memset(pool, fill, POOL_BYTES);
	return pool;
}

static void pools_put(void *state)
{
	struct pools *pools = state;
	if (--pools->users > 0)
		return;
	if (pools->from)
		munmap(pools->from, POOL_BYTES);
	if (pools->to)
		munmap(pools->to, POOL_BYTES);
	*pools = (struct pools){0};
}

static void *pools_get(const struct bench_case *self)
{
	struct pools *pools = &shared_pools;
	(void)self;
	if (pools->users++ > 0)
		return pools;
	pools->from = pool_create(1);
	pools->to = pool_create(2);
	if (pools->from && pools->to)
		return pools;
	pools_put(pools);
	return NULL;
}

static uint64_t next_piece(struct pools *pools)
{
	pools->next = (pools->next + 1) % PIECES;
	return pools->next * PIECE_BYTES;
}

static void run_memcpy(void *state, uint64_t steps)
{
	struct pools *pools = state;
	for (uint64_t i = 0; i < steps; i++) {
		uint64_t at = next_piece(pools);
		memcpy(pools->to + at, pools->from + at, PIECE_BYTES);
		bench_barrier();
	}
}
BENCH(.name = "floor.memcpy_64m", .bytes = PIECE_BYTES, .setup = pools_get, .run = run_memcpy,
      .teardown = pools_put);

static void run_memset(void *state, uint64_t steps)
{
	struct pools *pools = state;
	for (uint64_t i = 0; i < steps; i++) {
		memset(pools->to + next_piece(pools), (int)i, PIECE_BYTES);
		bench_barrier();
	}
}
BENCH(.name = "floor.memset_64m", .bytes = PIECE_BYTES, .setup = pools_get, .run = run_memset,
      .teardown = pools_put);

#if defined(__x86_64__)
static void run_stream(void *state, uint64_t steps)
{
	struct pools *pools = state;
	for (uint64_t i = 0; i < steps; i++) {
		uint64_t at = next_piece(pools);
		const __m128i *from = (const __m128i *)(const void *)(pools->from + at);
		__m128i *to = (__m128i *)(void *)(pools->to + at);
		for (uint64_t line = 0; line < PIECE_BYTES / 64; line++, from += 4, to += 4) {
			__m128i a = _mm_load_si128(from), b = _mm_load_si128(from + 1);
			__m128i c = _mm_load_si128(from + 2), d = _mm_load_si128(from + 3);
			_mm_stream_si128(to, a);
			_mm_stream_si128(to + 1, b);
			_mm_stream_si128(to + 2, c);
			_mm_stream_si128(to + 3, d);
		}
		_mm_sfence();
	}
}
BENCH(.name = "floor.stream_copy_64m", .bytes = PIECE_BYTES, .peer = "floor.memcpy_64m",
      .setup = pools_get, .run = run_stream, .teardown = pools_put);
#endif
