/* SPDX-License-Identifier: MIT */
/*
 * order: the recorded order among the processes of a replay that are programs of their own. Each says how far it is; before it does something that
 * others see (a shared buffer), it waits until all others have got to that time. So everything that is shared happens in the
 * order of the merged recording, and the rest when it happens. Whoever has the earliest time waits for nobody.
 */
#ifndef VIDMM_TOOLS_ORDER_H
#define VIDMM_TOOLS_ORDER_H

#include <stdint.h>

#define ORDER_BEGIN  2u               /* the earliest event; nobody is at the number before */
#define ORDER_END    UINT64_MAX       /* no event any more */
#define ORDER_PLAYED (ORDER_END - 1u) /* all events are done; nobody is at the number before */

struct order;

/* For whatever is forked from here on. NULL when out of memory. */
struct order *order_create(unsigned count);
void order_destroy(struct order *order);
/* Process `self` has done everything before this time. From it, or after its end by whoever saw that (ORDER_END). */
void order_reach(struct order *order, unsigned self, uint64_t when_ns);
/* Until all others have reached `when_ns`; of several at one time the one with the lowest index goes first. */
void order_wait(struct order *order, unsigned self, uint64_t when_ns);

#endif
