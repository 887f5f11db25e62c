/* SPDX-License-Identifier: MIT */
/*
 * MFN-31: cycles are not detected, but events name each blocked context, its fence, and the
 * contexts that would signal it.
 */
#include "queue_world.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { EVENTS = 64 };

struct recorder {
	pthread_mutex_t lock;
	struct vidmm_event event[EVENTS];
	uint32_t count, looked;
};

static void on_event(void *context, const struct vidmm_event *event, const char *text)
{
	struct recorder *e = context;

	(void)text;
	pthread_mutex_lock(&e->lock);
	e->event[e->count++ % EVENTS] = *event;
	pthread_mutex_unlock(&e->lock);
}

static uint32_t record_events(struct priority_world *p, struct recorder *e)
{
	*e = (struct recorder){.lock = PTHREAD_MUTEX_INITIALIZER};
	uint32_t id = vidmm_subscribe(p->w.client.host, 1ull << VIDMM_EVENT_SYNC, on_event, e);

	assert_int_not_equal(id, 0);
	return id;
}

static uint32_t recorded_count(struct recorder *e)
{
	pthread_mutex_lock(&e->lock);
	uint32_t count = e->count;
	pthread_mutex_unlock(&e->lock);
	return count;
}

struct expected {
	const struct lane *lane;
	uint32_t reason;
	D3DKMT_HANDLE fence;
	uint64_t value, now;
};

/* Expects the next events in this order; returns the object number of the last one. */
static uint64_t expect(struct priority_world *p, struct recorder *e,
		       const struct expected *expected, uint32_t count)
{
	const struct vidmm_event *event = NULL;

	while (recorded_count(e) < e->looked + count)
		vidmm_settle(p->w.client.host);
	for (uint32_t i = 0; i < count; i++) {
		event = &e->event[e->looked++ % EVENTS];
		assert_int_equal(event->reason, expected[i].reason);
		assert_int_equal(event->object, expected[i].lane->context);
		assert_int_equal(event->arg[1], expected[i].value);
		assert_int_equal(event->arg[2], expected[i].now);
		assert_int_equal(event->arg[3], expected[i].fence);
		assert_int_not_equal(event->process, 0);
		assert_int_not_equal(event->arg[0], 0);
	}
	return event->arg[0];
}

static uint64_t expect_one(struct priority_world *p, struct recorder *e, struct expected expected)
{
	return expect(p, e, &expected, 1);
}

/* a waits for a signal queued by b, and b for one queued by a; c uses the same node. */
static void mfn_31_events_of_a_cycle_name_waiting_and_signaling_contexts(void **state)
{
	struct priority_world p;
	struct recorder e;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a'), *b = queue_lane(&p, 1, 'b'),
		    *c = queue_lane(&p, 0, 'c');
	struct queue_fence f = queue_fence(a, 3, 1), g = queue_fence(b, 3, 0);
	D3DKMT_HANDLE f_of_b = queue_fence_for(a, f.handle, b),
		      g_of_a = queue_fence_for(b, g.handle, a);
	uint32_t id = record_events(&p, &e);

	p.w.m->settings.complete_at_once = true;
	assert_int_equal(lane_wait(a, f.handle, 5), STATUS_SUCCESS);
	uint64_t f_held = expect_one(&p, &e, (struct expected){a, VIDMM_SYNC_HELD, f.handle, 5, 1});
	lane_render(a);
	assert_int_equal(lane_signal(a, g_of_a, 3), STATUS_SUCCESS);
	uint64_t g_queued =
		expect_one(&p, &e, (struct expected){a, VIDMM_SYNC_QUEUED, g_of_a, 3, 0});
	assert_int_equal(lane_wait(b, g.handle, 3), STATUS_SUCCESS);
	uint64_t g_held = expect_one(&p, &e, (struct expected){b, VIDMM_SYNC_HELD, g.handle, 3, 0});
	assert_int_equal(lane_signal(b, f_of_b, 5), STATUS_SUCCESS);
	uint64_t f_queued =
		expect_one(&p, &e, (struct expected){b, VIDMM_SYNC_QUEUED, f_of_b, 5, 1});
	/* Its number is that of the fence, whatever the handle. */
	assert_int_equal(f_held, f_queued);
	assert_int_equal(g_held, g_queued);
	assert_int_not_equal(f_held, g_held);
	assert_int_not_equal(e.event[0].process, e.event[2].process);
	lane_render(c);
	queue_assert_order(&p, "c");
	assert_int_equal(recorded_count(&e), e.looked);
	/* A signal from the CPU ends the cycle. */
	assert_int_equal(queue_cpu_signal(a, f.handle, 6), STATUS_SUCCESS);
	expect(&p, &e,
	       (struct expected[]){{a, VIDMM_SYNC_RELEASED, f.handle, 5, 6},
				   {a, VIDMM_SYNC_SIGNALED, g_of_a, 3, 0},
				   {b, VIDMM_SYNC_RELEASED, g.handle, 3, 3},
				   {b, VIDMM_SYNC_SIGNALED, f_of_b, 5, 6}},
	       4);
	queue_assert_order(&p, "a");
	vidmm_unsubscribe(p.w.client.host, id);
	priority_stop(&p);
}

/* The line that `vidmm explain` reads. */
static void mfn_31_each_wait_event_prints_as_one_line(void **state)
{
	struct priority_world p;
	struct recorder e;
	char line[256], wanted[256];

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a');
	struct queue_fence f = queue_fence(a, 0, 2);
	uint32_t id = record_events(&p, &e);
	assert_int_equal(lane_wait(a, f.handle, 5), STATUS_SUCCESS);
	uint64_t number = expect_one(&p, &e, (struct expected){a, VIDMM_SYNC_HELD, f.handle, 5, 2});
	const struct vidmm_event *event = &e.event[0];
	snprintf(wanted, sizeof(wanted),
		 "#%llu %lluns p%u sync/held 0x%08x object=%llu value=5 now=2 handle=0x%08x",
		 (unsigned long long)event->sequence, (unsigned long long)event->time_ns,
		 event->process, a->context, (unsigned long long)number, f.handle);
	assert_true(vidmm_event_format(event, NULL, line, sizeof(line)) > 0);
	assert_string_equal(line, wanted);
	vidmm_unsubscribe(p.w.client.host, id);
	priority_stop(&p);
}

/*
 * A wait that is satisfied when reached blocks no context; a signal behind buffers is not an event.
 */
static void mfn_31_waits_that_block_no_context_emit_no_event(void **state)
{
	struct priority_world p;
	struct recorder e;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a'), *b = queue_lane(&p, 1, 'b');
	struct queue_fence f = queue_fence(a, 3, 5);
	D3DKMT_HANDLE theirs = queue_fence_for(a, f.handle, b);
	uint32_t id = record_events(&p, &e);

	for (uint32_t i = 0; i < 10; i++) {
		assert_int_equal(lane_wait(b, theirs, 5), STATUS_SUCCESS);
		assert_int_equal(lane_signal(b, theirs, 5), STATUS_SUCCESS);
	}
	lane_render(a);
	assert_int_equal(lane_signal(a, f.handle, 6), STATUS_SUCCESS);
	queue_assert_order(&p, "a");
	priority_complete(&p, 1);
	while (*f.value != 6)
		vidmm_settle(p.w.client.host);
	assert_int_equal(recorded_count(&e), 0);
	vidmm_unsubscribe(p.w.client.host, id);
	priority_stop(&p);
}

static void mfn_31_destroying_a_blocked_context_gives_up_its_waits(void **state)
{
	struct priority_world p;
	struct recorder e;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a');
	struct queue_fence f = queue_fence(a, 0, 0), g = queue_fence(a, 0, 4);
	uint32_t id = record_events(&p, &e);
	const struct lane ended = *a;

	assert_int_equal(lane_wait(a, f.handle, 1), STATUS_SUCCESS);
	assert_int_equal(lane_wait(a, g.handle, 9), STATUS_SUCCESS); /* is never reached */
	assert_int_equal(lane_signal(a, f.handle, 1), STATUS_SUCCESS);
	lane_end(a);
	expect(&p, &e,
	       (struct expected[]){{&ended, VIDMM_SYNC_HELD, f.handle, 1, 0},
				   {&ended, VIDMM_SYNC_QUEUED, f.handle, 1, 0},
				   {&ended, VIDMM_SYNC_GIVEN_UP, f.handle, 1, 0},
				   {&ended, VIDMM_SYNC_DROPPED, f.handle, 1, 0}},
	       4);
	assert_int_equal(recorded_count(&e), e.looked);
	assert_int_equal(*f.value, 0);
	vidmm_unsubscribe(p.w.client.host, id);
	priority_stop(&p);
}

/* For a wait for several fences: those that are not satisfied; their numbers distinguish them. */
static void mfn_31_each_unsatisfied_fence_is_named(void **state)
{
	struct priority_world p;
	struct recorder e;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a');
	struct queue_fence f = queue_fence(a, 0, 0), there = queue_fence(a, 0, 2),
			   g = queue_fence(a, 0, 1);
	const D3DKMT_HANDLE handles[] = {f.handle, there.handle, g.handle};
	const UINT64 values[] = {1, 2, 3};
	const D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU wait = {.hContext = a->context,
								 .ObjectCount = 3,
								 .ObjectHandleArray = handles,
								 .MonitoredFenceValueArray =
									 values};
	uint32_t id = record_events(&p, &e);

	lane_enter(a);
	assert_int_equal(D3DKMTWaitForSynchronizationObjectFromGpu(&wait), STATUS_SUCCESS);
	expect(&p, &e,
	       (struct expected[]){{a, VIDMM_SYNC_HELD, f.handle, 1, 0},
				   {a, VIDMM_SYNC_HELD, g.handle, 3, 1}},
	       2);
	assert_int_not_equal(e.event[0].arg[0], e.event[1].arg[0]);
	assert_int_equal(queue_cpu_signal(a, f.handle, 1), STATUS_SUCCESS);
	assert_int_equal(queue_cpu_signal(a, g.handle, 3), STATUS_SUCCESS);
	expect_one(&p, &e, (struct expected){a, VIDMM_SYNC_RELEASED, f.handle, 1, 1});
	assert_int_equal(recorded_count(&e), e.looked);
	vidmm_unsubscribe(p.w.client.host, id);
	priority_stop(&p);
}

/*
 * Of a broadcast, each context behind a wait has an event; the first context may have been
 * destroyed by then.
 */
static void mfn_31_syn_28_a_broadcast_signal_is_reported_for_each_blocked_context(void **state)
{
	struct priority_world p;
	struct recorder e;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a'), *b = queue_lane(&p, 0, 'b');
	struct queue_fence f = queue_fence(a, 0, 0), g = queue_fence(a, 0, 0);
	uint32_t id = record_events(&p, &e);

	assert_int_equal(lane_wait(b, f.handle, 1), STATUS_SUCCESS);
	expect_one(&p, &e, (struct expected){b, VIDMM_SYNC_HELD, f.handle, 1, 0});
	const D3DKMT_HANDLE contexts[] = {a->context, b->context};
	const UINT64 value = 4;
	const D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2 signal = {
		.ObjectCount = 1,
		.ObjectHandleArray = &g.handle,
		.BroadcastContextCount = 2,
		.BroadcastContextArray = contexts,
		.MonitoredFenceValueArray = &value};
	lane_enter(a);
	assert_int_equal(D3DKMTSignalSynchronizationObjectFromGpu2(&signal), STATUS_SUCCESS);
	expect_one(&p, &e, (struct expected){b, VIDMM_SYNC_QUEUED, g.handle, 4, 0});
	uint32_t process = e.event[0].process;
	lane_end(a);
	assert_int_equal(queue_cpu_signal(b, f.handle, 1), STATUS_SUCCESS);
	expect(&p, &e,
	       (struct expected[]){{b, VIDMM_SYNC_RELEASED, f.handle, 1, 1},
				   {b, VIDMM_SYNC_SIGNALED, g.handle, 4, 0}},
	       2);
	for (uint32_t i = 0; i < e.looked; i++)
		assert_int_equal(e.event[i].process, process);
	while (*g.value != 4)
		vidmm_settle(p.w.client.host);
	assert_int_equal(recorded_count(&e), e.looked);
	vidmm_unsubscribe(p.w.client.host, id);
	priority_stop(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(mfn_31_events_of_a_cycle_name_waiting_and_signaling_contexts),
		ON_BOTH(mfn_31_each_wait_event_prints_as_one_line),
		ON_BOTH(mfn_31_waits_that_block_no_context_emit_no_event),
		ON_BOTH(mfn_31_destroying_a_blocked_context_gives_up_its_waits),
		ON_BOTH(mfn_31_each_unsatisfied_fence_is_named),
		ON_BOTH(mfn_31_syn_28_a_broadcast_signal_is_reported_for_each_blocked_context),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
