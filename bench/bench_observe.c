/* SPDX-License-Identifier: MIT */
/* The cost of an event: without a subscriber, with one, with sim's event hash, with threads. */
#include "bench.h"

#include "observe/observe.h"

static uint64_t still_clock(void *context)
{
	return *(uint64_t *)context;
}

enum { WITH_THREADS = 1, WITH_HASH = 2, WITH_SUBSCRIBER = 4 };

static void listen(void *context, const struct vidmm_event *event, const char *text)
{
	(void)context;
	(void)text;
	bench_use(event);
}

static void *stream_create(const struct bench_case *self)
{
	static uint64_t now = 1;
	struct vmm_observe_config config = {
		.virtual_ns = &now,
		.clock = still_clock,
		.clock_context = &now,
		.threads = self->parameter & WITH_THREADS,
		.hash = self->parameter & WITH_HASH,
	};
	struct vmm_observe *observe;

	if (vmm_observe_create(&config, &observe) != VMM_OK)
		return NULL;
	if (self->parameter & WITH_SUBSCRIBER)
		vmm_observe_subscribe(observe, VMM_OBSERVE_ALL, listen, NULL);
	return observe;
}

static void stream_destroy(void *state)
{
	vmm_observe_destroy(state);
}

static void run_emit(void *state, uint64_t steps)
{
	for (uint64_t i = 0; i < steps; i++)
		vmm_event(state, VIDMM_EVENT_LOCK, 1, (uint32_t)i, 0, 0x80, 0, 4096, i);
}

#define EMIT(text, flags, most)                                                           \
	BENCH(.name = "observe.emit_" text, .parameter = (flags), .setup = stream_create, \
	      .run = run_emit, .teardown = stream_destroy, .peer = "floor.xadd",          \
	      .ratio_max = (most))
/* Real threads, no subscriber: this path is part of each lock and unlock. */
EMIT("threads", WITH_THREADS, 1.5);
EMIT("threads_heard", WITH_THREADS | WITH_SUBSCRIBER, 0);
EMIT("sim", WITH_HASH, 3.0);
EMIT("sim_heard", WITH_HASH | WITH_SUBSCRIBER, 0);
EMIT("plain", 0, 2.0);
