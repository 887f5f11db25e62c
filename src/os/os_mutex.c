/* SPDX-License-Identifier: MIT */
/*
 * The mutex of both back ends: three states (free, held, held with waiters), the rank check and the
 * owner. The uncontended path is here; the back ends implement waiting.
 */
#include "os/os_internal.h"

void vmm_os_mutex_init(struct vmm_os_mutex *mutex, struct vmm_os *os, uint32_t rank,
		       const char *name)
{
	atomic_init(&mutex->state, 0);
	atomic_init(&mutex->owner, NULL);
	mutex->rank = rank;
	mutex->os = os;
	mutex->name = name;
}

void vmm_os_mutex_finish(struct vmm_os_mutex *mutex)
{
	/* A thread that a deadlock stopped for good never releases what it holds. */
	vmm_assert(vmm_os_dead(mutex->os) ||
		   atomic_load_explicit(&mutex->state, memory_order_relaxed) == 0);
}

void vmm_os_mutex_check_rank(const struct vmm_os_mutex *mutex)
{
	bool rank_is_greater_than_held = mutex->rank >= vmm_os_self(mutex->os)->lowest_rank;

	vmm_assert(rank_is_greater_than_held);
	if (mutex->os->kind == VMM_OS_SIM)
		vmm_os_sim_maybe_switch(mutex->os);
}

/*
 * Takes the mutex for the calling thread, SELF. Returns false if another thread holds it and the
 * caller does not wait.
 */
static bool acquire(struct vmm_os_thread *self, struct vmm_os_mutex *mutex, bool waits)
{
	bool sim = mutex->os->kind == VMM_OS_SIM;
	uint32_t before = 0;

	if (!sim) {
		atomic_compare_exchange_strong_explicit(&mutex->state, &before, 1,
							memory_order_acquire, memory_order_relaxed);
	} else {
		/* No other thread runs: no locked instruction is needed. */
		before = atomic_load_explicit(&mutex->state, memory_order_relaxed);
		if (!before)
			atomic_store_explicit(&mutex->state, 1, memory_order_relaxed);
	}
	if (vmm_unlikely(before)) {
		if (!waits)
			return false;
		if (sim)
			vmm_os_sim_mutex_contended(mutex);
		else
			vmm_os_linux_mutex_contended(mutex);
	}
	vmm_assert(self->held_count < VMM_OS_HELD_MAX);
	self->held[self->held_count++] = (struct vmm_os_held){mutex, self->lowest_rank};
	/* A mutex taken by trylock may have a lower rank than one that is held. */
	if (self->lowest_rank <= mutex->rank)
		self->lowest_rank = mutex->rank + 1;
	atomic_store_explicit(&mutex->owner, self, memory_order_relaxed);
	return true;
}

void vmm_os_mutex_lock(struct vmm_os_mutex *mutex)
{
	struct vmm_os_thread *self = vmm_os_self(mutex->os);
	bool rank_is_greater_than_held = mutex->rank >= self->lowest_rank;

	vmm_assert(rank_is_greater_than_held);
	(void)acquire(self, mutex, true);
}

bool vmm_os_mutex_trylock(struct vmm_os_mutex *mutex)
{
	return acquire(vmm_os_self(mutex->os), mutex, false);
}

void vmm_os_mutex_unlock(struct vmm_os_mutex *mutex)
{
	struct vmm_os *os = mutex->os;
	struct vmm_os_thread *self = vmm_os_self(os);
	uint32_t before, i = self->held_count;

	vmm_assert(atomic_load_explicit(&mutex->owner, memory_order_relaxed) == self);
	/* Nearly always the last one locked. */
	while (self->held[--i].mutex != mutex)
		vmm_assert(i > 0);
	self->lowest_rank = self->held[i].lowest_rank;
	for (self->held_count--; i < self->held_count; i++) {
		struct vmm_os_mutex *later = self->held[i + 1].mutex;

		self->held[i] = (struct vmm_os_held){later, self->lowest_rank};
		if (self->lowest_rank <= later->rank)
			self->lowest_rank = later->rank + 1;
	}
	atomic_store_explicit(&mutex->owner, NULL, memory_order_relaxed);
	if (os->kind == VMM_OS_SIM) {
		before = atomic_load_explicit(&mutex->state, memory_order_relaxed);
		atomic_store_explicit(&mutex->state, 0, memory_order_relaxed);
		if (before == 2)
			vmm_os_sim_wake(&os->sim, &mutex->state, 1);
		if (os->sim.switch_per_1024)
			vmm_os_sim_maybe_switch(os);
		return;
	}
	before = atomic_exchange_explicit(&mutex->state, 0, memory_order_release);
	/*
	 * From here on another thread may lock, unlock and free the mutex. Only the addresses of
	 * the mutex and the world are used.
	 */
	if (vmm_unlikely(before == 2))
		vmm_os_linux_wake(os, &mutex->state, 1);
}

void vmm_os_mutex_unlock_and_wake(struct vmm_os_mutex *mutex, _Atomic uint32_t *word)
{
	struct vmm_os *os = mutex->os;
	bool first = word && os->kind == VMM_OS_SIM;

	if (first)
		vmm_os_wake(os, word, 1);
	vmm_os_mutex_unlock(mutex);
	if (word && !first)
		vmm_os_wake(os, word, 1);
}

bool vmm_os_mutex_held(const struct vmm_os_mutex *mutex)
{
	return atomic_load_explicit(&mutex->owner, memory_order_relaxed) == vmm_os_self(mutex->os);
}
