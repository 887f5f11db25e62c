/* SPDX-License-Identifier: MIT */
/*
 * Each worker process has a clock in shared memory, on a separate cache line: the recorded time up
 * to which it has done everything. A waiter stores the earliest time that it needs in the clock's
 * `wanted_ns` and sleeps by a futex, so that the clock's owner makes the system call only if a
 * waiter needs it.
 */
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "order.h"

struct clock {
	_Alignas(64) _Atomic uint64_t now_ns;
	/* the earliest time that a waiter needs; ORDER_END: no waiter */
	_Atomic uint64_t wanted_ns;
	_Atomic uint32_t wake_count; /* futex word: counts the wake-ups */
};

struct order {
	unsigned count;
	struct clock clock[];
};

static size_t bytes_of(unsigned count)
{
	return sizeof(struct order) + count * sizeof(struct clock);
}

struct order *order_create(unsigned count)
{
	struct order *order = mmap(NULL, bytes_of(count), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned i;

	if (order == MAP_FAILED)
		return NULL;
	order->count = count;
	for (i = 0; i < count; i++)
		atomic_init(&order->clock[i].wanted_ns, ORDER_END);
	return order;
}

void order_destroy(struct order *order)
{
	if (order)
		munmap(order, bytes_of(order->count));
}

void order_reach(struct order *order, unsigned self, uint64_t when_ns)
{
	struct clock *clock = &order->clock[self];

	atomic_store(&clock->now_ns, when_ns);
	/* At ORDER_END the clock never moves again, so all waiters are woken. */
	if (when_ns < atomic_load(&clock->wanted_ns) && when_ns != ORDER_END)
		return;
	atomic_store(&clock->wanted_ns, ORDER_END);
	atomic_fetch_add(&clock->wake_count, 1);
	syscall(SYS_futex, &clock->wake_count, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static bool has_reached(struct clock *clock, uint64_t when_ns, bool self_first)
{
	uint64_t now_ns = atomic_load(&clock->now_ns);

	return now_ns > when_ns || (now_ns == when_ns && (self_first || now_ns == ORDER_END));
}

static void request_wake(struct clock *clock, uint64_t when_ns)
{
	uint64_t wanted_ns = atomic_load(&clock->wanted_ns);

	while (when_ns < wanted_ns &&
	       !atomic_compare_exchange_weak(&clock->wanted_ns, &wanted_ns, when_ns))
		;
}

void order_wait(struct order *order, unsigned self, uint64_t when_ns)
{
	unsigned i;

	for (i = 0; i < order->count; i++) {
		struct clock *clock = &order->clock[i];

		while (i != self && !has_reached(clock, when_ns, self < i)) {
			uint32_t wake_count = atomic_load(&clock->wake_count);

			request_wake(clock, when_ns);
			if (!has_reached(clock, when_ns, self < i))
				syscall(SYS_futex, &clock->wake_count, FUTEX_WAIT, wake_count, NULL,
					NULL, 0);
		}
	}
}
