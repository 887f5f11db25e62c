/* SPDX-License-Identifier: MIT */
/*
 * A wait for the GPU, and the completion that ends it. ASLEEP: two threads complete each other's
 * packets, so one operation is a completion and the return of the waiting thread. LOOKING: one
 * thread spins and the other completes a packet when a word requests it; one operation is half of
 * that round trip, and the goal is halved too. The peers are the same hand-offs without the library
 * on the same CPUs: by a futex, and by two words, which is slower than by one.
 */
#include "bench.h"

#include <pthread.h>
#include <stdlib.h>

#include "object/object.h"

enum { MINE, PARTNERS, TIMELINES = 2 };
/* Large enough that waking the partner at the beginning of a run is negligible. */
enum { LOOKS_A_STEP = 16384, SLEEPS_A_STEP = 16 };
enum { THE_END = UINT32_MAX };
enum { LONG_ENOUGH_NS = 1000000000 };
enum way { ASLEEP, LOOKING, BARE };

struct hand_off {
	struct vmm_world world;
	struct vmm_adapter adapter;
	struct vmm_device device; /* on whose behalf both threads wait */
	struct vmm_process process;
	enum way way;
	pthread_t partner;
	bool has_partner;
	uint32_t packets_a_step;
	/* Written by one thread, in cache lines that the other does not read. */
	char pad_before[128];
	uint32_t next;
	char pad_next[128];
	/* total packets requested of the partner, which sleeps on this word between runs */
	_Atomic uint32_t goal;
	char pad_goal[128];
	_Atomic uint32_t asked; /* LOOKING: the packet that the partner has to complete */
	char pad_after[128];
};

static uint64_t now(void *context)
{
	return vmm_os_now_ns(context);
}

static bool await(struct hand_off *h, uint32_t timeline, uint64_t packet)
{
	const _Atomic uint64_t *completed = &h->adapter.timeline[timeline].completed;

	if (h->way == BARE) {
		while (atomic_load_explicit(completed, memory_order_acquire) < packet)
			vmm_os_pause();
		return true;
	}
	return vmm_ok(vmm_wait_for_lock(&h->device, timeline, packet, NULL));
}

static void complete(struct hand_off *h, uint32_t timeline, uint64_t packet)
{
	atomic_store_explicit(&h->adapter.timeline[timeline].completed, packet,
			      memory_order_release);
	if (h->way != BARE)
		vmm_progress_signal(&h->adapter);
}

static void set_goal(struct hand_off *h, uint32_t goal)
{
	atomic_store(&h->goal, goal);
	vmm_os_wake(h->world.os, &h->goal, 1);
}

static void give_turn(struct hand_off *h, uint32_t packet)
{
	if (h->way == ASLEEP)
		complete(h, MINE, packet);
	else
		atomic_store_explicit(&h->asked, packet, memory_order_release);
}

static void await_turn(struct hand_off *h, uint32_t packet)
{
	if (h->way == ASLEEP)
		await(h, MINE, packet);
	else
		while (atomic_load_explicit(&h->asked, memory_order_acquire) < packet)
			vmm_os_pause();
}

static void *partner_main(void *context)
{
	struct hand_off *h = context;

	bench_pin(1);
	for (uint32_t packet = 1;; packet++) {
		uint32_t goal;

		while ((goal = atomic_load(&h->goal)) < packet)
			(void)!vmm_ok(
				vmm_os_wait(h->world.os, &h->goal, goal, VMM_OS_FOREVER, NULL, 0));
		if (goal == THE_END)
			return NULL;
		await_turn(h, packet);
		complete(h, PARTNERS, packet);
	}
}

static void hand_off_destroy(void *state)
{
	struct hand_off *h = state;

	if (h->has_partner) {
		set_goal(h, THE_END);
		pthread_join(h->partner, NULL);
	}
	vmm_observe_destroy(h->world.observe);
	vmm_adapter_finish(&h->adapter);
	vmm_world_finish(&h->world);
	vmm_os_destroy(h->world.os);
	free(h);
}

static void *hand_off_create(const struct bench_case *self)
{
	struct vmm_os_config config = {.kind = VMM_OS_LINUX};
	struct vmm_observe *observe;
	struct vmm_os *os;
	struct hand_off *h = vmm_calloc_lines(sizeof(*h));

	if (!h || !vmm_ok(vmm_os_create(&config, &os))) {
		free(h);
		return NULL;
	}
	struct vmm_observe_config stream = {.clock = now, .clock_context = os, .threads = true};
	if (!vmm_ok(vmm_observe_create(&stream, &observe))) {
		vmm_os_destroy(os);
		free(h);
		return NULL;
	}
	(void)!vmm_ok(vmm_world_init(&h->world, os, NULL, observe));
	vmm_adapter_init(&h->adapter, &h->world);
	h->adapter.node_count = TIMELINES;
	h->device.adapter = &h->adapter;
	h->way = (enum way)self->parameter;
	h->adapter.spin_ns = h->way == LOOKING ? LONG_ENOUGH_NS : 0;
	h->packets_a_step = (uint32_t)self->per_run / 2;
	h->has_partner = pthread_create(&h->partner, NULL, partner_main, h) == 0;
	if (h->has_partner)
		return h;
	hand_off_destroy(h);
	return NULL;
}

static void run_hand_off(void *state, uint64_t steps)
{
	struct hand_off *h = state;

	steps *= h->packets_a_step;
	set_goal(h, h->next + (uint32_t)steps);
	for (uint64_t i = 0; i < steps; i++) {
		give_turn(h, ++h->next);
		await(h, PARTNERS, h->next);
	}
}

BENCH(.name = "lock.wake_asleep", .threads = 2, .per_run = 2 * SLEEPS_A_STEP, .parameter = ASLEEP,
      .setup = hand_off_create, .run = run_hand_off, .teardown = hand_off_destroy,
      .peer = "floor.futex_hand_off", .ratio_max = 1.1);
BENCH(.name = "lock.wake_looking", .threads = 2, .per_run = 2 * LOOKS_A_STEP, .parameter = LOOKING,
      .setup = hand_off_create, .run = run_hand_off, .teardown = hand_off_destroy,
      .peer = "floor.two_lines_hand_off", .ratio_max = 2);
BENCH(.name = "floor.two_lines_hand_off", .threads = 2, .per_run = 2 * LOOKS_A_STEP,
      .parameter = BARE, .setup = hand_off_create, .run = run_hand_off,
      .teardown = hand_off_destroy, .peer = "floor.line_hand_off");
