/* SPDX-License-Identifier: MIT */
/*
 * The lock word. Bit 31: held exclusively, and bits 0 to 29 are the owner. Else bits 0 to 29 are
 * the number of threads that share it. Bit 30: threads sleep on the word; then no more threads may
 * share it, so that exclusive ones are not starved. The last release wakes all, and they compete.
 */
#include "nt/nt_lock.h"

#define EXCLUSIVE 0x80000000u
#define WAITERS   0x40000000u
#define NUMBER    0x3FFFFFFFu

bool nt_lock_try_exclusive(nt_lock_word *word, uint32_t self)
{
	uint32_t before = atomic_load_explicit(word, memory_order_relaxed);

	return !(before & ~WAITERS) && atomic_compare_exchange_strong_explicit(
					       word, &before, before | EXCLUSIVE | (self & NUMBER),
					       memory_order_acquire, memory_order_relaxed);
}

bool nt_lock_try_shared(nt_lock_word *word)
{
	uint32_t before = atomic_load_explicit(word, memory_order_relaxed);

	while (!(before & (EXCLUSIVE | WAITERS))) {
		if (atomic_compare_exchange_weak_explicit(
			    word, &before, before + 1, memory_order_acquire, memory_order_relaxed))
			return true;
	}
	return false;
}

/* Returns false in a dead world, where the holder never runs again. */
static bool sleep_on(struct vmm_nt *nt, const char *service, nt_lock_word *word)
{
	uint32_t before = atomic_load_explicit(word, memory_order_relaxed);
	uint64_t *slots = VMM_OS_OWN(nt->os)->slot;
	vmm_status status;

	if (!(before & ~WAITERS))
		return true;
	if (!(before & WAITERS) &&
	    !atomic_compare_exchange_strong_explicit(word, &before, before | WAITERS,
						     memory_order_relaxed, memory_order_relaxed))
		return true;
	slots[VMM_NT_SLOT_WAIT] = (uintptr_t)service;
	status =
		vmm_os_wait(nt->os, word, before | WAITERS, VMM_OS_FOREVER,
			    "kernel lock held by thread", before & EXCLUSIVE ? before & NUMBER : 0);
	slots[VMM_NT_SLOT_WAIT] = 0;
	return status != VMM_UNSUCCESSFUL;
}

void nt_lock_exclusive(struct vmm_nt *nt, const char *service, nt_lock_word *word, uint32_t self)
{
	while (!nt_lock_try_exclusive(word, self) && sleep_on(nt, service, word))
		;
}

void nt_lock_shared(struct vmm_nt *nt, const char *service, nt_lock_word *word)
{
	while (!nt_lock_try_shared(word) && sleep_on(nt, service, word))
		;
}

bool nt_unlock_exclusive(struct vmm_nt *nt, nt_lock_word *word, uint32_t self)
{
	uint32_t before = atomic_load_explicit(word, memory_order_relaxed);

	if ((before & ~WAITERS) != (EXCLUSIVE | (self & NUMBER)))
		return false;
	if (atomic_exchange_explicit(word, 0, memory_order_release) & WAITERS)
		vmm_os_wake(nt->os, word, UINT32_MAX);
	return true;
}

bool nt_unlock_shared(struct vmm_nt *nt, nt_lock_word *word)
{
	uint32_t before = atomic_load_explicit(word, memory_order_relaxed), after;

	do {
		if ((before & EXCLUSIVE) || !(before & NUMBER))
			return false;
		after = (before & NUMBER) == 1 ? 0 : before - 1;
	} while (!atomic_compare_exchange_weak_explicit(word, &before, after, memory_order_release,
							memory_order_relaxed));
	if (!after && (before & WAITERS))
		vmm_os_wake(nt->os, word, UINT32_MAX);
	return true;
}

bool nt_lock_upgrade(nt_lock_word *word, uint32_t self)
{
	uint32_t before = atomic_load_explicit(word, memory_order_relaxed);

	return (before & ~WAITERS) == 1 &&
	       atomic_compare_exchange_strong_explicit(
		       word, &before, (before & WAITERS) | EXCLUSIVE | (self & NUMBER),
		       memory_order_acquire, memory_order_relaxed);
}

uint32_t nt_lock_owner(const nt_lock_word *word)
{
	uint32_t now = atomic_load_explicit(word, memory_order_relaxed);

	return now & EXCLUSIVE ? now & NUMBER : 0;
}
