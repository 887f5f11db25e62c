/* SPDX-License-Identifier: MIT */
/* Floors: the cost of elementary operations on this machine, on one thread. */
#include "bench.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void run_xadd(void *state, uint64_t steps)
{
	static atomic_uint_fast64_t word;
	(void)state;
	for (uint64_t i = 0; i < steps; i++)
		atomic_fetch_add_explicit(&word, 1, memory_order_seq_cst);
}
BENCH(.name = "floor.xadd", .run = run_xadd);

static void run_store_seq_cst(void *state, uint64_t steps)
{
	static atomic_uint_fast64_t word;
	(void)state;
	for (uint64_t i = 0; i < steps; i++)
		atomic_store_explicit(&word, i, memory_order_seq_cst);
}
BENCH(.name = "floor.store_seq_cst", .run = run_store_seq_cst);

static void run_load_acquire(void *state, uint64_t steps)
{
	static atomic_uint_fast64_t word;
	(void)state;
	for (uint64_t i = 0; i < steps; i++) {
		uint64_t value = atomic_load_explicit(&word, memory_order_acquire);
		bench_use(value);
	}
}
BENCH(.name = "floor.load_acquire", .run = run_load_acquire);

static void run_mutex(void *state, uint64_t steps)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	(void)state;
	for (uint64_t i = 0; i < steps; i++) {
		pthread_mutex_lock(&mutex);
		bench_barrier();
		pthread_mutex_unlock(&mutex);
	}
}
BENCH(.name = "floor.mutex", .run = run_mutex);

static void run_malloc(void *state, uint64_t steps)
{
	(void)state;
	for (uint64_t i = 0; i < steps; i++) {
		void *block = malloc(128);
		bench_use(block);
		free(block);
	}
}
BENCH(.name = "floor.malloc_free", .run = run_malloc);

static void run_clock(void *state, uint64_t steps)
{
	(void)state;
	for (uint64_t i = 0; i < steps; i++) {
		uint64_t now = bench_now_ns();
		bench_use(now);
	}
}
BENCH(.name = "floor.clock_gettime", .run = run_clock);

static void run_getpid(void *state, uint64_t steps)
{
	(void)state;
	for (uint64_t i = 0; i < steps; i++) {
		long pid = syscall(SYS_getpid);
		bench_use(pid);
	}
}
BENCH(.name = "floor.getpid", .run = run_getpid);

static void run_futex_wake(void *state, uint64_t steps)
{
	static atomic_uint word;
	(void)state;
	for (uint64_t i = 0; i < steps; i++) {
		long woken = syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
		bench_use(woken);
	}
}
BENCH(.name = "floor.futex_wake", .run = run_futex_wake);
