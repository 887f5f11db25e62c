/* SPDX-License-Identifier: MIT */
/* The event stream with several threads; run under the thread sanitizer as well. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#include "support/test.h"

#include "observe/observe.h"

#define THREADS      4u
#define EVENTS       20000u
#define ROUNDS       50u
#define EMITTERS     2u   /* few, so that the subscribing thread gets its turn */
#define MANY_THREADS 300u /* more than there are shards */

static uint64_t ticking(void *context)
{
	return atomic_fetch_add((_Atomic uint64_t *)context, 1);
}

static void let_others_run(void *context)
{
	(void)context;
	sched_yield();
}

struct world {
	_Atomic uint64_t now;
	struct vmm_observe *observe;
	uint32_t events;
};

static void make_world(struct world *world, uint32_t events, bool hash)
{
	struct vmm_observe_config config = {.clock = ticking,
					    .clock_context = &world->now,
					    .yield = let_others_run,
					    .threads = true,
					    .hash = hash};

	world->now = 1;
	world->events = events;
	assert_int_equal(vmm_observe_create(&config, &world->observe), VMM_OK);
}

static void *emit_many(void *arg)
{
	struct world *world = arg;

	for (uint32_t i = 0; i < world->events; i++)
		vmm_event(world->observe, i & 1 ? VIDMM_EVENT_LOCK : VIDMM_EVENT_UNLOCK, 1, i, 0, i,
			  1, 0, 3);
	return NULL;
}

static void start(struct world *world, pthread_t *threads, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, emit_many, world), 0);
}

static void join(pthread_t *threads, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static void assert_counted(struct world *world, uint64_t threads)
{
	struct vmm_observe_counter lock, unlock;
	uint64_t half = world->events / 2;

	vmm_observe_counter(world->observe, VIDMM_EVENT_LOCK, &lock);
	vmm_observe_counter(world->observe, VIDMM_EVENT_UNLOCK, &unlock);
	assert_int_equal(lock.count, threads * half);
	assert_int_equal(unlock.count, threads * half);
	assert_int_equal(lock.sum[0] + unlock.sum[0],
			 threads * ((uint64_t)world->events * (world->events - 1) / 2));
	assert_int_equal(lock.sum[1], threads * half);
	assert_int_equal(lock.sum[2], 0);
	assert_int_equal(lock.sum[3], 3 * threads * half);
}

static void counters_are_exact_with_concurrent_emitters(void **state)
{
	struct world world;
	pthread_t threads[THREADS];

	(void)state;
	make_world(&world, EVENTS, false);
	start(&world, threads, THREADS);
	join(threads, THREADS);
	assert_counted(&world, THREADS);
	vmm_observe_destroy(world.observe);
}

static void counters_are_exact_with_more_threads_than_shards(void **state)
{
	struct world world;
	pthread_t threads[MANY_THREADS];

	(void)state;
	make_world(&world, 100, false);
	for (uint32_t i = 0; i < MANY_THREADS; i += THREADS) {
		start(&world, threads, THREADS);
		join(threads, THREADS);
	}
	assert_counted(&world, MANY_THREADS);
	vmm_observe_destroy(world.observe);
	/*
	 * The thread numbers of this program are used up: all of these threads share one set of
	 * counters.
	 */
	make_world(&world, EVENTS, false);
	start(&world, threads, THREADS);
	join(threads, THREADS);
	assert_counted(&world, THREADS);
	vmm_observe_destroy(world.observe);
}

struct order {
	_Atomic uint64_t count, sequence_sum;
	uint64_t *times; /* sorted by sequence number */
};

static void note_order(void *context, const struct vidmm_event *event, const char *text)
{
	struct order *order = context;

	(void)text;
	atomic_fetch_add(&order->count, 1);
	atomic_fetch_add(&order->sequence_sum, event->sequence);
	order->times[event->sequence - 1] = event->time_ns;
}

static void stamped_events_are_numbered_without_gap_and_in_time(void **state)
{
	struct world world;
	pthread_t threads[THREADS];
	uint64_t total = THREADS * (uint64_t)EVENTS;
	struct order order = {.times = vmm_calloc(total, sizeof(uint64_t))};

	(void)state;
	assert_non_null(order.times);
	for (unsigned hash = 0; hash < 2; hash++) {
		order.count = order.sequence_sum = 0;
		make_world(&world, EVENTS, hash);
		assert_true(
			vmm_observe_subscribe(world.observe, VMM_OBSERVE_ALL, note_order, &order));
		start(&world, threads, THREADS);
		join(threads, THREADS);
		assert_int_equal(order.count, total);
		assert_int_equal(order.sequence_sum, total * (total + 1) / 2);
		for (uint64_t i = 1; i < total; i++)
			assert_true(order.times[i - 1] < order.times[i]);
		assert_true((vmm_observe_hash(world.observe) != 0) == hash);
		vmm_observe_destroy(world.observe);
	}
	vmm_free(order.times);
}

struct listener {
	/* not atomic on purpose: a call after unsubscribe is a race for the sanitizer */
	bool listening;
	_Atomic uint32_t calls, inside, late;
};

static void listen_only_while_subscribed(void *context, const struct vidmm_event *event,
					 const char *text)
{
	struct listener *listener = context;

	(void)event;
	(void)text;
	atomic_fetch_add(&listener->inside, 1);
	if (!listener->listening)
		atomic_fetch_add(&listener->late, 1);
	atomic_fetch_sub(&listener->inside, 1);
	atomic_fetch_add(&listener->calls, 1);
}

struct endless {
	struct vmm_observe *observe;
	_Atomic bool stop;
	_Atomic uint64_t emitted;
};

static void *emit_until_stopped(void *arg)
{
	struct endless *endless = arg;

	while (!endless->stop) {
		vmm_event(endless->observe, VIDMM_EVENT_LOCK, 1, 2, 0, 3, 0, 0, 0);
		atomic_fetch_add(&endless->emitted, 1);
	}
	return NULL;
}

static void subscribe_for_a_call(struct vmm_observe *observe, struct listener *listener)
{
	struct vmm_observe_record records[4];
	struct vmm_observe_ring *ring;
	uint32_t id;

	listener->listening = true;
	id = vmm_observe_subscribe(observe, VMM_OBSERVE_ALL, listen_only_while_subscribed,
				   listener);
	assert_true(id);
	assert_int_equal(vmm_observe_ring_create(observe, VMM_OBSERVE_ALL, 16, &ring), VMM_OK);
	/* the emitting threads cause both */
	while (!listener->calls || !vmm_observe_ring_last(ring, 0, records, 4))
		;
	vmm_observe_ring_destroy(ring);
	vmm_observe_unsubscribe(observe, id);
	assert_int_equal(listener->inside, 0);
	listener->listening = false;
}

static void unsubscribe_returns_when_no_call_runs(void **state)
{
	static struct listener listeners[ROUNDS]; /* they remain, so that a late call is detected */
	struct vmm_observe_counter counter;
	struct endless endless = {.stop = false};
	struct world world;
	pthread_t threads[EMITTERS];

	(void)state;
	make_world(&world, 0, false);
	endless.observe = world.observe;
	for (uint32_t i = 0; i < EMITTERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, emit_until_stopped, &endless),
				 0);
	for (uint32_t i = 0; i < ROUNDS; i++)
		subscribe_for_a_call(world.observe, &listeners[i]);
	endless.stop = true;
	join(threads, EMITTERS);
	for (uint32_t i = 0; i < ROUNDS; i++)
		assert_int_equal(listeners[i].late, 0);
	vmm_observe_counter(world.observe, VIDMM_EVENT_LOCK, &counter);
	assert_int_equal(counter.count, endless.emitted);
	assert_int_equal(counter.sum[0], 3 * endless.emitted);
	vmm_observe_destroy(world.observe);
}

static void *report_many(void *arg)
{
	struct world *world = arg;

	for (uint32_t i = 0; i < world->events; i++)
		vmm_finding(world->observe, "LOCK-07", 1, i, "number %u", i);
	return NULL;
}

static void findings_from_several_threads_keep_their_texts(void **state)
{
	struct world world;
	pthread_t threads[THREADS];
	struct vmm_observe_ring *ring;
	struct vmm_observe_record records[64];
	struct vmm_observe_counter counter;
	uint32_t count;

	(void)state;
	make_world(&world, 500, true);
	assert_int_equal(vmm_observe_ring_create(world.observe, VMM_OBSERVE_ALL, 64, &ring),
			 VMM_OK);
	for (uint32_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, report_many, &world), 0);
	join(threads, THREADS);
	vmm_observe_counter(world.observe, VIDMM_EVENT_FINDING, &counter);
	assert_int_equal(counter.count, THREADS * 500);
	count = vmm_observe_ring_last(ring, 0, records, 64);
	assert_int_equal(count, 64);
	for (uint32_t i = 0; i < count; i++) {
		char expected[64];

		snprintf(expected, sizeof(expected), "LOCK-07: number %u", records[i].event.object);
		assert_string_equal(records[i].text, expected);
	}
	vmm_observe_ring_destroy(ring);
	vmm_observe_destroy(world.observe);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counters_are_exact_with_concurrent_emitters),
		cmocka_unit_test(stamped_events_are_numbered_without_gap_and_in_time),
		cmocka_unit_test(unsubscribe_returns_when_no_call_runs),
		cmocka_unit_test(findings_from_several_threads_keep_their_texts),
		/* Last test: it uses up the thread numbers of this program. */
		cmocka_unit_test(counters_are_exact_with_more_threads_than_shards),
	};

	return cmocka_run_group_tests_name("observe_threads", tests, NULL, NULL);
}
