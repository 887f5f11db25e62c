/* SPDX-License-Identifier: MIT */
#include "observe/observe_internal.h"

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

void vmm_observe_spin_while(_Atomic uint32_t *word)
{
	while (atomic_load_explicit(word, memory_order_seq_cst))
		relax();
}

void vmm_observe_spin_lock(_Atomic uint32_t *lock)
{
	while (vmm_unlikely(atomic_exchange_explicit(lock, 1, memory_order_acquire)))
		relax();
}

void vmm_observe_spin_unlock(_Atomic uint32_t *lock)
{
	atomic_store_explicit(lock, 0, memory_order_release);
}
