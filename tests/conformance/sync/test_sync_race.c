/* SPDX-License-Identifier: MIT */
/*
 * Lost wake-ups, and destruction of fences during waits and signals. Pairs of threads pass values
 * to and fro, so that every wait races with its signal. A lost wake-up is a hang (threads) or a
 * deadlock report (sim).
 */
#include "sync_world.h"

#include <stdio.h>
#include <stdlib.h>

enum { THREADS_MAX = 8, HANDOVERS = 100000 };

struct ring {
	struct sync_world s;
	D3DKMT_HANDLE fence[THREADS_MAX];
	uint32_t threads, rounds;
	_Atomic uint32_t failures;
};
struct member {
	struct ring *ring;
	uint32_t index;
	struct vidmm_thread *thread;
};

/*
 * Thread n waits until fence n has the round's number, then signals the fence of the next thread.
 */
static void pass_on(void *argument)
{
	const struct member *m = argument;
	struct ring *r = m->ring;
	uint32_t next = (m->index + 1) % r->threads;

	for (uint64_t round = 1; round <= r->rounds; round++) {
		if (sync_wait(r->s.device, r->fence[m->index], round))
			atomic_fetch_add(&r->failures, 1);
		if (sync_signal(r->s.device, r->fence[next], next ? round : round + 1))
			atomic_fetch_add(&r->failures, 1);
	}
}

static void mfn_11_mfn_20_no_wake_up_is_lost(void **state)
{
	struct ring *r = calloc(1, sizeof(*r));
	struct member m[THREADS_MAX];

	assert_non_null(r);
	sync_start(&r->s, state, sync_3_0);
	for (r->threads = 1; r->threads <= THREADS_MAX; r->threads *= 2) {
		r->rounds = HANDOVERS / 4 / r->threads;
		for (uint32_t i = 0; i < r->threads; i++) {
			r->fence[i] = sync_fence(&r->s, 0, i ? 0 : 1).handle;
			m[i] = (struct member){.ring = r, .index = i};
		}
		for (uint32_t i = 0; i < r->threads; i++)
			assert_int_equal(vidmm_thread_create(r->s.w.client.host, "passes on",
							     pass_on, &m[i], &m[i].thread),
					 0);
		for (uint32_t i = 0; i < r->threads; i++)
			vidmm_thread_join(m[i].thread);
		assert_int_equal(r->failures, 0);
	}
	printf("# %u hand-overs\n", HANDOVERS);
	sync_stop(&r->s);
	free(r);
}

/*
 * How many waits race with signals of other threads. Fewer under the sanitizers, where each takes
 * longer.
 */
#define RACES 10000000u
#define LESS  1000000u
#define LEAST 100000u
#if defined(__SANITIZE_THREAD__)
#define ALL_RACES LEAST
#elif defined(__SANITIZE_ADDRESS__)
#define ALL_RACES LESS
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ALL_RACES LEAST
#elif __has_feature(address_sanitizer)
#define ALL_RACES LESS
#endif
#endif
#ifndef ALL_RACES
#define ALL_RACES RACES
#endif

/*
 * Through a server every wait and every signal is a request, which costs more than the race. The
 * code that races is the same: the test without a server runs it ALL_RACES times.
 */
static uint32_t races_wanted(void)
{
	return getenv("VIDMM_SERVED") && ALL_RACES > LESS ? LESS : ALL_RACES;
}

enum { AHEAD = 4, OTHERS = 64 }; /* rounds; one wait in this many is for all fences, one for any */

static uint64_t draw(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	return *state ^= *state << 17;
}

/* A round waits for signals that are about to be sent or were just sent. */
static NTSTATUS race_wait(const struct member *m, uint64_t value, uint64_t kind)
{
	const struct ring *r = m->ring;
	uint64_t values[THREADS_MAX];

	if (kind > 1)
		return sync_wait(r->s.device, r->fence[m->index], value);
	for (uint32_t i = 0; i < r->threads; i++)
		values[i] = kind || i == m->index ? value : UINT64_MAX;
	return sync_wait_all(r->s.device, r->fence, values, r->threads, !kind);
}

/*
 * Each thread signals its neighbor's fence with the round and waits until its own fence is nearly
 * as far. So no thread gets far ahead, and most waits overlap a signal. The slowest thread can
 * always continue.
 */
static void race_on(void *argument)
{
	const struct member *m = argument;
	struct ring *r = m->ring;
	uint64_t state = 0x9E3779B97F4A7C15u * (m->index + 1 + 8 * r->threads);

	for (uint64_t round = 1; round <= r->rounds; round++) {
		uint64_t drawn = draw(&state), behind = drawn % AHEAD;

		if (sync_signal(r->s.device, r->fence[(m->index + 1) % r->threads], round))
			atomic_fetch_add(&r->failures, 1);
		if (race_wait(m, round > behind ? round - behind : 0, (drawn >> 32) % OTHERS))
			atomic_fetch_add(&r->failures, 1);
	}
}

static uint64_t sleeps(const struct ring *r)
{
	struct vidmm_counter counter;

	vidmm_event_counter(r->s.w.client.host, VIDMM_EVENT_WAIT, &counter);
	return counter.count;
}

static void mfn_11_mfn_20_ten_million_races_lose_none(void **state)
{
	struct ring *r = calloc(1, sizeof(*r));
	struct member m[THREADS_MAX];
	uint32_t waits = 0, wanted = races_wanted();

	assert_non_null(r);
	sync_start(&r->s, state, sync_3_0);
	uint64_t before = sleeps(r);
	for (r->threads = 1; r->threads <= THREADS_MAX; r->threads++) {
		r->rounds = wanted / THREADS_MAX / r->threads + 1;
		for (uint32_t i = 0; i < r->threads; i++) {
			r->fence[i] = sync_fence(&r->s, 0, 0).handle;
			m[i] = (struct member){.ring = r, .index = i};
		}
		for (uint32_t i = 0; i < r->threads; i++)
			assert_int_equal(vidmm_thread_create(r->s.w.client.host, "races", race_on,
							     &m[i], &m[i].thread),
					 0);
		for (uint32_t i = 0; i < r->threads; i++)
			vidmm_thread_join(m[i].thread);
		assert_int_equal(r->failures, 0);
		waits += r->rounds * r->threads;
	}
	assert_true(waits >= wanted);
	printf("# %u waits raced with signals in 1 to %u threads, %llu slept, 0 were lost\n", waits,
	       THREADS_MAX, (unsigned long long)(sleeps(r) - before));
	sync_stop(&r->s);
	free(r);
}

struct ending {
	struct sync_world s;
	_Atomic uint32_t fence, enough, right, late;
};

static void note(struct ending *e, NTSTATUS status)
{
	switch (status) {
	case STATUS_SUCCESS:
		atomic_fetch_add(&e->right, 1);
		return;
	case STATUS_INVALID_PARAMETER:
	case STATUS_CANCELLED:
		atomic_fetch_add(&e->late, 1);
		return;
	default:
		fprintf(stderr, "0x%08x\n", (unsigned)status);
		abort();
	}
}

static void signal_and_wait(void *argument)
{
	struct ending *e = argument;
	int event = sync_event();

	for (uint64_t value = 1; !atomic_load(&e->enough); value++) {
		note(e, sync_signal(e->s.device, e->fence, value % 64));
		note(e, sync_wait(e->s.device, e->fence, value % 64));
		note(e, sync_wait_event(e->s.device, e->fence, value % 96, event));
	}
}

static void mfn_17_syn_22_fences_are_destroyed_during_waits_and_signals(void **state)
{
	struct ending *e = calloc(1, sizeof(*e));
	struct vidmm_thread *thread[3];

	assert_non_null(e);
	sync_start(&e->s, state, sync_3_0);
	e->fence = sync_fence(&e->s, 0, 0).handle;
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(vidmm_thread_create(e->s.w.client.host, "uses", signal_and_wait, e,
						     &thread[i]),
				 0);
	for (uint32_t round = 0; round < 300; round++) {
		D3DKMT_HANDLE old = e->fence, fresh = sync_fence(&e->s, 0, 0).handle;
		uint32_t before = e->right;

		while (e->right < before + 5) {
			vidmm_sleep_until_ns(e->s.w.client.host,
					     vidmm_now_ns(e->s.w.client.host) + 1000);
			/*
			 * All three may wait for the value that one of them has signalled on the
			 * previous fence.
			 */
			assert_int_equal(sync_signal(e->s.device, old, 64), STATUS_SUCCESS);
		}
		assert_int_equal(sync_destroy(old), STATUS_SUCCESS);
		e->fence = fresh;
	}
	atomic_store(&e->enough, 1);
	/* One may wait for a value of the last fence that no thread has signalled. */
	assert_int_equal(sync_signal(e->s.device, e->fence, 64), STATUS_SUCCESS);
	for (uint32_t i = 0; i < 3; i++)
		vidmm_thread_join(thread[i]);
	printf("# %u calls in time, %u too late\n", e->right, e->late);
	client_forget(&e->s.w.client);
	sync_stop(&e->s);
	free(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(mfn_11_mfn_20_no_wake_up_is_lost),
		ON_LINUX(mfn_11_mfn_20_ten_million_races_lose_none),
		ON_LINUX(mfn_17_syn_22_fences_are_destroyed_during_waits_and_signals),
	};

	return cmocka_run_group_tests_name("sync race", tests, NULL, NULL);
}
