/* SPDX-License-Identifier: MIT */
/*
 * Who is at the device's memory. Engines and displays enter before they touch it and leave when they wait or are done;
 * who changes what addresses mean holds the bus, which is then empty. One for all adapters of a link.
 *
 * Entering and leaving a bus that is not held takes two interlocked operations each. Who was turned away gets in before the
 * next one holds it. Everything at PASSIVE.
 */
#ifndef SOFTGPU_BUS_H
#define SOFTGPU_BUS_H

#include <ntddk.h>

#include "atomic.h"

struct softgpu_bus {
	LONG volatile inside, held, turned_away;
	volatile uint64_t wanted; /* the same as held, to be looked at often */
	KEVENT left;              /* nobody is inside, and somebody holds it. Auto-reset. */
	KEVENT open;              /* not held */
	KEVENT let_in;            /* nobody is turned away any more. Auto-reset. */
};

void softgpu_bus_init(struct softgpu_bus *bus);
void softgpu_bus_enter(struct softgpu_bus *bus);
void softgpu_bus_leave(struct softgpu_bus *bus);
/* By one thread at a time. */
void softgpu_bus_hold(struct softgpu_bus *bus);
void softgpu_bus_release(struct softgpu_bus *bus);

/* For who is inside: a place to let a holder go first. */
static inline void softgpu_bus_yield(struct softgpu_bus *bus)
{
	if (softgpu_load(&bus->wanted)) {
		softgpu_bus_leave(bus);
		softgpu_bus_enter(bus);
	}
}

#endif
