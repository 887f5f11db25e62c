/* SPDX-License-Identifier: MIT */
/*
 * The memory bus: a shared/exclusive lock of the device's memory. Engines and displays enter
 * (shared) before they access it, and leave when they wait or are done. A thread that changes what
 * addresses mean holds the bus (exclusive); no thread is inside then. All adapters of a link share
 * one bus.
 *
 * Entering and leaving a bus that is not held takes two interlocked operations each. Threads that
 * waited for a holder enter before the bus is held again. All functions run at PASSIVE.
 */
#ifndef SOFTGPU_BUS_H
#define SOFTGPU_BUS_H

#include <ntddk.h>

#include "atomic.h"

struct softgpu_bus {
	LONG volatile inside, held, waiting;
	volatile uint64_t hold_wanted; /* the same as held, in a word that is cheap to read often */
	/* the last thread inside has left while the bus is held; auto-reset */
	KEVENT drained;
	KEVENT released;     /* the bus is not held */
	KEVENT none_waiting; /* no thread waits to enter any more; auto-reset */
};

void softgpu_bus_init(struct softgpu_bus *bus);
void softgpu_bus_enter(struct softgpu_bus *bus);
void softgpu_bus_leave(struct softgpu_bus *bus);
/* Called by one thread at a time. */
void softgpu_bus_hold(struct softgpu_bus *bus);
void softgpu_bus_release(struct softgpu_bus *bus);

/* Called by a thread inside: lets a holder that waits go first. */
static inline void softgpu_bus_yield(struct softgpu_bus *bus)
{
	if (softgpu_load(&bus->hold_wanted)) {
		softgpu_bus_leave(bus);
		softgpu_bus_enter(bus);
	}
}

#endif
