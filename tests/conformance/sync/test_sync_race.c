/* SPDX-License-Identifier: MIT */
/*
 * Lost wake-ups, and the end of fences under those who signal and wait: pairs of threads pass values to and fro, so that
 * every wait races with the signal that it waits for. One that is lost is a hang (threads) or a deadlock report (sim).
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

/* Thread n waits until fence n has the round's number, then signals the next one's. */
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

static void mfn_17_syn_22_fences_end_under_their_users(void **state)
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
			/* All three may wait for what one of them has signalled on the fence before. */
			assert_int_equal(sync_signal(e->s.device, old, 64), STATUS_SUCCESS);
		}
		assert_int_equal(sync_destroy(old), STATUS_SUCCESS);
		e->fence = fresh;
	}
	atomic_store(&e->enough, 1);
	/* One may wait for what nobody has signalled on the last fence. */
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
		ON_LINUX(mfn_17_syn_22_fences_end_under_their_users),
	};

	return cmocka_run_group_tests_name("sync race", tests, NULL, NULL);
}
