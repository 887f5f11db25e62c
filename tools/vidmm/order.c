/* SPDX-License-Identifier: MIT */
/*
 * A clock for each process, on a cache line of its own. Whoever waits for one says what it wants from it (`wanted`), so that its
 * owner makes the system call only then.
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
	_Atomic uint64_t wanted_ns; /* the least that somebody waits for; ORDER_END: nobody */
	_Atomic uint32_t woken;     /* counts; what waiters sleep on */
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
	/* ORDER_END is as far as it goes, so all are woken then. */
	if (when_ns < atomic_load(&clock->wanted_ns) && when_ns != ORDER_END)
		return;
	atomic_store(&clock->wanted_ns, ORDER_END);
	atomic_fetch_add(&clock->woken, 1);
	syscall(SYS_futex, &clock->woken, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static bool is_there(struct clock *clock, uint64_t when_ns, bool mine_first)
{
	uint64_t now_ns = atomic_load(&clock->now_ns);

	return now_ns > when_ns || (now_ns == when_ns && (mine_first || now_ns == ORDER_END));
}

static void want(struct clock *clock, uint64_t when_ns)
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

		while (i != self && !is_there(clock, when_ns, self < i)) {
			uint32_t woken = atomic_load(&clock->woken);

			want(clock, when_ns);
			if (!is_there(clock, when_ns, self < i))
				syscall(SYS_futex, &clock->woken, FUTEX_WAIT, woken, NULL, NULL, 0);
		}
	}
}
