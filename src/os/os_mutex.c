/* SPDX-License-Identifier: MIT */
/*
 * The mutex of both back ends: the state, the rank check and the owner. The uncontended path is
 * here; the back ends implement waiting.
 */
#include "os/os_internal.h"

void vmm_os_mutex_init(struct vmm_os_mutex *mutex, struct vmm_os *os, uint32_t rank,
		       const char *name)
{
	atomic_init(&mutex->state, 0);
	atomic_init(&mutex->owner, NULL);
	mutex->rank = rank;
	mutex->os = os;
	mutex->sleepers = os->kind == VMM_OS_SIM
				  ? NULL
				  : &os->linux_.mutex_sleepers[vmm_os_bucket(&mutex->state)];
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

/* Returns the state before. On sim no other thread runs: no locked instruction is needed. */
static uint32_t take_on_sim(struct vmm_os_mutex *mutex)
{
	uint32_t before = atomic_load_explicit(&mutex->state, memory_order_relaxed);

	if (!before)
		atomic_store_explicit(&mutex->state, 1, memory_order_relaxed);
	return before;
}

/* Adds a mutex that the calling thread, SELF, has just taken. */
VMM_ALWAYS_INLINE void add_held(struct vmm_os_thread *self, struct vmm_os_mutex *mutex)
{
	uint32_t lowest_rank = self->lowest_rank;

	vmm_assert(self->held_count < VMM_OS_HELD_MAX);
	self->held[self->held_count++] = (struct vmm_os_held){mutex, lowest_rank};
	/* A mutex taken by trylock may have a lower rank than one that is held. */
	if (lowest_rank <= mutex->rank)
		self->lowest_rank = mutex->rank + 1;
	atomic_store_explicit(&mutex->owner, self, memory_order_relaxed);
}

VMM_ALWAYS_INLINE void check_rank(const struct vmm_os_thread *self,
				  const struct vmm_os_mutex *mutex)
{
	bool rank_is_greater_than_held = mutex->rank >= self->lowest_rank;

	vmm_assert(rank_is_greater_than_held);
}

VMM_NOINLINE static void lock_slow(struct vmm_os_mutex *mutex)
{
	struct vmm_os_thread *self = vmm_os_self(mutex->os);

	check_rank(self, mutex);
	if (!mutex->sleepers) {
		if (take_on_sim(mutex))
			vmm_os_sim_mutex_contended(mutex);
	} else if (!vmm_os_linux_mutex_try(mutex)) {
		vmm_os_linux_mutex_contended(mutex);
	}
	add_held(self, mutex);
}

/*
 * The usual path of locking and of unlocking, for a thread whose last world it is, calls no
 * function but the last one: a function that calls others in between saves registers, which took
 * longer than the rank check.
 */
void vmm_os_mutex_lock(struct vmm_os_mutex *mutex)
{
	struct vmm_os_thread *self = (struct vmm_os_thread *)vmm_os_here.own;

	if (vmm_unlikely(vmm_os_here.id != VMM_OS_FRONT(mutex->os)->id || !mutex->sleepers)) {
		lock_slow(mutex);
		return;
	}
	check_rank(self, mutex);
	if (vmm_unlikely(!vmm_os_linux_mutex_try(mutex)))
		lock_slow(mutex);
	else
		add_held(self, mutex);
}

bool vmm_os_mutex_trylock(struct vmm_os_mutex *mutex)
{
	struct vmm_os_thread *self = vmm_os_self(mutex->os);
	bool taken = mutex->sleepers ? vmm_os_linux_mutex_try(mutex) : !take_on_sim(mutex);

	if (taken)
		add_held(self, mutex);
	return taken;
}

/* Removes a mutex, and computes the ranks of those that were locked after it. */
static void remove_held(struct vmm_os_thread *self, const struct vmm_os_mutex *mutex)
{
	uint32_t i = self->held_count;

	while (self->held[--i].mutex != mutex)
		vmm_assert(i > 0);
	self->lowest_rank = self->held[i].lowest_rank;
	for (self->held_count--; i < self->held_count; i++) {
		struct vmm_os_mutex *later = self->held[i + 1].mutex;

		self->held[i] = (struct vmm_os_held){later, self->lowest_rank};
		if (self->lowest_rank <= later->rank)
			self->lowest_rank = later->rank + 1;
	}
}

static void unlock_sim(struct vmm_os *os, struct vmm_os_mutex *mutex)
{
	uint32_t before = atomic_load_explicit(&mutex->state, memory_order_relaxed);

	atomic_store_explicit(&mutex->state, 0, memory_order_relaxed);
	if (before == 2)
		vmm_os_sim_wake(&os->sim, &mutex->state, 1);
	if (os->sim.switch_per_1024)
		vmm_os_sim_maybe_switch(os);
}

/*
 * Frees the mutex and wakes a thread that sleeps for it. For the order of the two see
 * wait_for_mutex in os_linux.c; without membarrier(2) the store must be a full barrier.
 */
VMM_ALWAYS_INLINE void unlock_linux(struct vmm_os_mutex *mutex, bool has_membarrier)
{
	struct vmm_os *os = mutex->os;
	const _Atomic uint32_t *sleepers = mutex->sleepers;

	if (has_membarrier)
		atomic_store_explicit(&mutex->state, 0, memory_order_release);
	else
		atomic_exchange(&mutex->state, 0);
	/*
	 * From here on another thread may lock, unlock and free the mutex. Only the addresses of
	 * the mutex and the world are used.
	 */
	atomic_signal_fence(memory_order_seq_cst);
	if (vmm_unlikely(atomic_load_explicit(sleepers, memory_order_relaxed) != 0))
		vmm_os_linux_wake(os, &mutex->state, 1);
}

VMM_NOINLINE static void unlock_slow(struct vmm_os_mutex *mutex)
{
	struct vmm_os *os = mutex->os;
	struct vmm_os_thread *self = vmm_os_self(os);

	vmm_assert(atomic_load_explicit(&mutex->owner, memory_order_relaxed) == self);
	remove_held(self, mutex);
	atomic_store_explicit(&mutex->owner, NULL, memory_order_relaxed);
	if (mutex->sleepers)
		unlock_linux(mutex,
			     atomic_load_explicit(&vmm_os_has_membarrier, memory_order_relaxed));
	else
		unlock_sim(os, mutex);
}

void vmm_os_mutex_unlock(struct vmm_os_mutex *mutex)
{
	struct vmm_os_thread *self = (struct vmm_os_thread *)vmm_os_here.own;

	if (vmm_unlikely(vmm_os_here.id != VMM_OS_FRONT(mutex->os)->id || !mutex->sleepers ||
			 !atomic_load_explicit(&vmm_os_has_membarrier, memory_order_relaxed))) {
		unlock_slow(mutex);
		return;
	}
	vmm_assert(atomic_load_explicit(&mutex->owner, memory_order_relaxed) == self);
	const struct vmm_os_held *last = &self->held[self->held_count - 1];
	if (vmm_unlikely(last->mutex != mutex)) {
		unlock_slow(mutex);
		return;
	}
	self->lowest_rank = last->lowest_rank;
	self->held_count--;
	atomic_store_explicit(&mutex->owner, NULL, memory_order_relaxed);
	unlock_linux(mutex, true);
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
