/* SPDX-License-Identifier: MIT */
/*
 * The spin lock of the event stream. A contender spins for about the length of the longest section
 * and then yields, because the holder may be preempted. Sections are a few dozen instructions and
 * call nothing.
 */
#include "observe/observe_internal.h"

/* About as long as the longest section takes if its holder runs. */
#define SPINS 128u

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static void pause_once(struct vmm_observe *observe, uint32_t *spins)
{
	if (++*spins < SPINS || !observe->config.yield)
		relax();
	else
		observe->config.yield(observe->config.clock_context);
}

void vmm_observe_spin_while(struct vmm_observe *observe, _Atomic uint32_t *word)
{
	uint32_t spins = 0;

	while (atomic_load_explicit(word, memory_order_seq_cst))
		pause_once(observe, &spins);
}

void vmm_observe_spin_lock(struct vmm_observe *observe, _Atomic uint32_t *lock)
{
	uint32_t spins = 0;

	while (vmm_unlikely(atomic_exchange_explicit(lock, 1, memory_order_acquire)))
		while (atomic_load_explicit(lock, memory_order_relaxed))
			pause_once(observe, &spins);
}

void vmm_observe_spin_unlock(_Atomic uint32_t *lock)
{
	atomic_store_explicit(lock, 0, memory_order_release);
}
