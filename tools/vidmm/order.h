/* SPDX-License-Identifier: MIT */
/*
 * order: conservative synchronization of the worker processes of a replay in recorded time. Each
 * worker publishes how far it is. Before an event that touches a shared buffer, it waits until all
 * others have reached the time of that event. Shared memory therefore changes in the order of the
 * merged recording; all other events run independently. There is no deadlock: the worker with the
 * earliest time waits for no other.
 */
#ifndef VIDMM_TOOLS_ORDER_H
#define VIDMM_TOOLS_ORDER_H

#include <stdint.h>

/* the earliest event; no clock ever has the value before it */
#define ORDER_BEGIN  2u
#define ORDER_END    UINT64_MAX /* after the last event */
/* all events are done; no clock ever has the value before it */
#define ORDER_PLAYED (ORDER_END - 1u)

struct order;

/* Creates COUNT clocks, shared with processes forked later. Returns NULL when out of memory. */
struct order *order_create(unsigned count);
void order_destroy(struct order *order);
/*
 * Sets the clock of worker SELF: it has done everything before WHEN_NS. Called by that worker, or
 * with ORDER_END by the parent after the worker has ended.
 */
void order_reach(struct order *order, unsigned self, uint64_t when_ns);
/*
 * Waits until all other workers have passed WHEN_NS. Of several workers at the same time, the one
 * with the lowest index runs first.
 */
void order_wait(struct order *order, unsigned self, uint64_t when_ns);

#endif
