/* SPDX-License-Identifier: MIT */
/*
 * The cost of handing a word to another thread: by a shared cache line while both threads spin, and
 * by a futex while the other sleeps. The partner thread runs on the second CPU. One operation is
 * half a round trip.
 */
#include "bench_internal.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Large enough that waking the partner at the beginning of a run is negligible. */
enum { LOOKS_A_STEP = 16384, SLEEPS_A_STEP = 16 };
enum turn { TURN_IDLE, TURN_PING, TURN_PONG, TURN_STOP };

struct pair {
	_Alignas(128) atomic_uint word;
	_Alignas(128) bool sleeps;
	uint32_t rounds_a_step;
	pthread_t partner;
};

static void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#else
	bench_barrier();
#endif
}

/* Waits until the word differs from OLD and returns the new value. */
static unsigned await_change(struct pair *pair, unsigned old)
{
	unsigned now;
	while ((now = atomic_load_explicit(&pair->word, memory_order_acquire)) == old) {
		if (pair->sleeps)
			syscall(SYS_futex, &pair->word, FUTEX_WAIT_PRIVATE, old, NULL, NULL, 0);
		else
			relax();
	}
	return now;
}

static void hand_over(struct pair *pair, unsigned turn)
{
	atomic_store_explicit(&pair->word, turn, memory_order_release);
	if (pair->sleeps)
		syscall(SYS_futex, &pair->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Between runs the partner sleeps, so that it does not disturb other cases. */
static void *partner_main(void *context)
{
	struct pair *pair = context;
	bench_pin(1);
	for (;;) {
		unsigned now = atomic_load_explicit(&pair->word, memory_order_acquire);
		if (now == TURN_STOP)
			return NULL;
		if (now == TURN_PING)
			hand_over(pair, TURN_PONG);
		else if (now == TURN_IDLE)
			syscall(SYS_futex, &pair->word, FUTEX_WAIT_PRIVATE, TURN_IDLE, NULL, NULL,
				0);
		else
			await_change(pair, TURN_PONG);
	}
}

static void *pair_create(const struct bench_case *self)
{
	struct pair *pair = aligned_alloc(128, sizeof(*pair));
	if (!pair)
		return NULL;
	*pair = (struct pair){.sleeps = self->parameter != 0,
			      .rounds_a_step = (uint32_t)self->per_run / 2};
	if (pthread_create(&pair->partner, NULL, partner_main, pair) != 0) {
		free(pair);
		return NULL;
	}
	return pair;
}

static void change_and_wake(struct pair *pair, unsigned turn)
{
	atomic_store_explicit(&pair->word, turn, memory_order_release);
	syscall(SYS_futex, &pair->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void pair_destroy(void *state)
{
	struct pair *pair = state;
	change_and_wake(pair, TURN_STOP);
	pthread_join(pair->partner, NULL);
	free(pair);
}

static void run_hand_off(void *state, uint64_t steps)
{
	struct pair *pair = state;
	change_and_wake(pair, TURN_PING);
	await_change(pair, TURN_PING);
	for (uint64_t i = 0; i < steps * pair->rounds_a_step; i++) {
		hand_over(pair, TURN_PING);
		await_change(pair, TURN_PING);
	}
	change_and_wake(pair, TURN_IDLE);
}
BENCH(.name = "floor.line_hand_off", .threads = 2, .per_run = 2 * LOOKS_A_STEP,
      .setup = pair_create, .run = run_hand_off, .teardown = pair_destroy);
BENCH(.name = "floor.futex_hand_off", .threads = 2, .per_run = 2 * SLEEPS_A_STEP, .parameter = 1,
      .setup = pair_create, .run = run_hand_off, .teardown = pair_destroy);

static void *arithmetic(void *unused)
{
	(void)unused;
	uint64_t value = 1;
	for (unsigned i = 0; i < 4000000; i++) {
		value = value * 3 + 1;
		bench_use(value);
	}
	return NULL;
}

static void *arithmetic_on_second(void *go)
{
	bench_pin(1);
	atomic_fetch_add((atomic_uint *)go, 1);
	while (atomic_load((atomic_uint *)go) < 2)
		relax();
	/* Longer than the timed loop on the other CPU. */
	arithmetic(NULL);
	return arithmetic(NULL);
}

static uint64_t time_alone(void)
{
	uint64_t start = bench_now_ns();
	arithmetic(NULL);
	return bench_now_ns() - start;
}

/*
 * Returns the time of a loop beside the same loop on the other CPU; 0 if the second thread cannot
 * be created.
 */
static uint64_t time_beside(void)
{
	atomic_uint go = 0;
	pthread_t other;
	if (pthread_create(&other, NULL, arithmetic_on_second, &go) != 0)
		return 0;
	while (atomic_load(&go) < 1)
		relax();
	atomic_fetch_add(&go, 1);
	uint64_t ns = time_alone();
	pthread_join(other, NULL);
	return ns;
}

/*
 * Returns the time beside a second loop divided by the time alone. Near 1: two cores. Near 2: two
 * hardware threads of one core. 0: one CPU only. It takes the fastest of several tries, because
 * other load disturbs single ones.
 */
double bench_two_core_scaling(void)
{
	uint64_t alone = UINT64_MAX, beside = UINT64_MAX;
	if (!bench_pin(1) || !bench_pin(0))
		return 0;
	for (unsigned try = 0; try < 5; try++) {
		uint64_t one = time_alone(), two = time_beside();
		if (two == 0)
			return 0;
		alone = one < alone ? one : alone;
		beside = two < beside ? two : beside;
	}
	return (double)beside / (double)alone;
}
