/* SPDX-License-Identifier: MIT */
/*
 * Waiting on a word, on the linux back end. Each waiter queues in the bucket of its word and sleeps
 * on a private futex, which the waker sets. The waker thereby marks the thread as busy at the
 * moment of the wake. So a thread with work to do never appears idle (vmm_os_settle).
 */
#include "os/os_internal.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000u
/* The class of vmm_os_bucket.lock. */
VMM_STATIC_LOCK_CLASS(bucket_class);

/* wakes collected and made after the bucket's lock is released; of more, the first ones under it */
#define WAKE_BATCH 16u

long vmm_os_linux_futex(_Atomic uint32_t *word, int operation, uint32_t value,
			const struct timespec *deadline)
{
	return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, deadline, NULL,
		       FUTEX_BITSET_MATCH_ANY);
}

struct timespec vmm_os_linux_deadline(const struct vmm_os *os, uint64_t when_ns)
{
	uint64_t ns;

	if (vmm_add_overflows(os->linux_.start_ns, when_ns, &ns))
		ns = UINT64_MAX;
	return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_S),
				 .tv_nsec = (long)(ns % NS_PER_S)};
}

void vmm_os_linux_wait_init(struct vmm_os *os)
{
	for (uint32_t i = 0; i < VMM_OS_WAIT_BUCKETS; i++) {
		struct vmm_os_bucket *bucket = &os->linux_.bucket[i];

		pthread_mutex_init(&bucket->lock, NULL);
		vmm_list_init(&bucket->waiters);
	}
}

void vmm_os_linux_wait_finish(struct vmm_os *os)
{
	for (uint32_t i = 0; i < VMM_OS_WAIT_BUCKETS; i++)
		pthread_mutex_destroy(&os->linux_.bucket[i].lock);
}

VMM_LOCK_PAIR(lock_bucket, unlock_bucket, bucket_class, pthread_mutex, struct vmm_os_bucket, lock);

/* Queues the thread in the bucket. Returns false if the word already has another value. */
static bool enqueue_waiter(struct vmm_os_bucket *bucket, struct vmm_os_thread *self,
			   const _Atomic uint32_t *word, uint32_t expected)
{
	bool same;

	lock_bucket(bucket);
	same = atomic_load(word) == expected;
	if (same) {
		self->linux_.word = word;
		atomic_store_explicit(&self->linux_.woken, 0, memory_order_relaxed);
		vmm_list_push_back(&bucket->waiters, &self->linux_.waiting);
		vmm_os_linux_becomes_idle(self);
	}
	unlock_bucket(bucket);
	return same;
}

/*
 * Takes the thread out of the bucket after a timeout. Returns false if it was woken in the
 * meantime.
 */
static bool dequeue_waiter(struct vmm_os_bucket *bucket, struct vmm_os_thread *self)
{
	bool still_there;

	lock_bucket(bucket);
	still_there = !atomic_load_explicit(&self->linux_.woken, memory_order_relaxed);
	if (still_there) {
		vmm_list_remove(&self->linux_.waiting);
		vmm_os_linux_becomes_busy(self);
	}
	unlock_bucket(bucket);
	return still_there;
}

static vmm_status sleep_on(struct vmm_os_bucket *bucket, struct vmm_os_thread *self,
			   const struct timespec *deadline)
{
	while (!atomic_load_explicit(&self->linux_.woken, memory_order_acquire)) {
		if (vmm_os_linux_futex(&self->linux_.woken, FUTEX_WAIT_BITSET, 0, deadline) < 0 &&
		    errno == ETIMEDOUT && dequeue_waiter(bucket, self))
			return VMM_TIMEOUT;
	}
	return VMM_OK;
}

vmm_status vmm_os_linux_wait(struct vmm_os *os, _Atomic uint32_t *word, uint32_t expected,
			     uint64_t deadline_ns)
{
	struct vmm_os_bucket *bucket = &os->linux_.bucket[vmm_os_bucket(word)];
	struct vmm_os_thread *self = vmm_os_self(os);
	struct timespec deadline = vmm_os_linux_deadline(os, deadline_ns);
	vmm_status status = VMM_OK;

	atomic_fetch_add_explicit(&bucket->count, 1, memory_order_acq_rel);
	if (enqueue_waiter(bucket, self, word, expected))
		status = sleep_on(bucket, self, deadline_ns == VMM_OS_FOREVER ? NULL : &deadline);
	atomic_fetch_sub_explicit(&bucket->count, 1, memory_order_relaxed);
	return status;
}

/*
 * Takes a waiter out of the bucket and marks it woken; returns its futex. Caller holds the bucket's
 * lock. Until then the thread cannot end, so its record is valid.
 */
static _Atomic uint32_t *mark_woken(struct vmm_os_thread *thread) VMM_REQUIRES(bucket_class)
{
	vmm_list_remove(&thread->linux_.waiting);
	vmm_os_linux_becomes_busy(thread);
	atomic_store_explicit(&thread->linux_.woken, 1, memory_order_release);
	return &thread->linux_.woken;
}

/*
 * Called with no bucket lock held, except for full batches: otherwise a woken thread could block on
 * that lock. The thread may have ended and its record been freed, so only the address of the word
 * is used. A wake at a freed address finds no sleeper, or one that checks its word again.
 */
static void wake_all(_Atomic uint32_t *const *words, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		vmm_os_linux_futex(words[i], FUTEX_WAKE, 1, NULL);
}

void vmm_os_linux_wake(struct vmm_os *os, const _Atomic uint32_t *word, uint32_t count)
{
	struct vmm_os_bucket *bucket = &os->linux_.bucket[vmm_os_bucket(word)];
	_Atomic uint32_t *woken[WAKE_BATCH];
	struct vmm_list *next;
	uint32_t set = 0;

	/*
	 * An atomic add of 0 instead of a load: it takes its place in the counter's modification
	 * order, after the caller's change of the word. A waiter that comes later in that order
	 * sees the changed word.
	 */
	if (atomic_fetch_add_explicit(&bucket->count, 0, memory_order_acq_rel) == 0)
		return;
	lock_bucket(bucket);
	for (struct vmm_list *link = bucket->waiters.next; link != &bucket->waiters && count;
	     link = next) {
		struct vmm_os_thread *thread =
			vmm_container_of(link, struct vmm_os_thread, linux_.waiting);

		next = link->next;
		if (thread->linux_.word != word)
			continue;
		count--;
		if (vmm_unlikely(set == WAKE_BATCH)) {
			wake_all(woken, set);
			set = 0;
		}
		woken[set++] = mark_woken(thread);
	}
	unlock_bucket(bucket);
	wake_all(woken, set);
}

void vmm_os_wake_shared(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}
