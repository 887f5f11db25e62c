/* SPDX-License-Identifier: MIT */
/*
 * Settling on the linux back end: yields until every thread that the world created waits, sleeps or
 * has ended. Adopted threads are not counted, because their next action is unknown. A wake counts
 * the woken thread as busy at once, while the waking thread is busy itself. Several threads that
 * settle proceed one after another in order of arrival, as on sim: each one only when the previous
 * one waits, or settles, again.
 */
#include "os/os_internal.h"

#include <sched.h>
#include <time.h>

#define YIELDS       64u
#define PAUSE_NS     20000u
/*
 * Limit for threads that keep running, in processor time. Real time would not do: on a loaded
 * machine a thread with little to do may not be scheduled for long.
 */
#define LIMIT_CPU_NS 1000000000u
#define LIMIT_NS     10000000000u /* for threads that wait by other means than vmm_os_wait */

void vmm_os_linux_becomes_idle(const struct vmm_os_thread *thread)
{
	if (!thread->adopted)
		atomic_fetch_sub(&thread->os->linux_.busy, 1);
}

void vmm_os_linux_becomes_busy(const struct vmm_os_thread *thread)
{
	if (!thread->adopted)
		atomic_fetch_add(&thread->os->linux_.busy, 1);
}

/* A thread that settles. On the stack of that thread; queued in order of arrival. */
struct settler {
	struct vmm_list link;
};

static bool is_first(struct vmm_os *os, const struct settler *settler)
{
	vmm_os_registry_lock(os);
	bool first = os->linux_.settlers.next == &settler->link;
	vmm_os_registry_unlock(os);
	return first;
}

/*
 * The queue is checked before the busy count: the previous settler became busy before it left the
 * queue.
 */
static bool settled(struct vmm_os *os, const struct settler *settler)
{
	return is_first(os, settler) && atomic_load(&os->linux_.busy) == 0;
}

static void enqueue_settler(struct vmm_os *os, struct settler *settler)
{
	vmm_os_registry_lock(os);
	vmm_list_push_back(&os->linux_.settlers, &settler->link);
	vmm_os_registry_unlock(os);
	vmm_os_linux_becomes_idle(vmm_os_self(os));
}

/* The thread becomes busy before the next settler checks. */
static void dequeue_settler(struct vmm_os *os, struct settler *settler)
{
	vmm_os_linux_becomes_busy(vmm_os_self(os));
	vmm_os_registry_lock(os);
	vmm_list_remove(&settler->link);
	vmm_os_registry_unlock(os);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Processor time used by the other threads of the process. */
static uint64_t time_of_others(void)
{
	uint64_t mine = clock_ns(CLOCK_THREAD_CPUTIME_ID), all = clock_ns(CLOCK_PROCESS_CPUTIME_ID);

	return all > mine ? all - mine : 0;
}

struct settle_limit {
	uint64_t cpu_ns, until_ns;
};

static bool is_within(struct vmm_os *os, const struct settle_limit *limit)
{
	return vmm_os_linux_now(os) < limit->until_ns && time_of_others() < limit->cpu_ns;
}

void vmm_os_linux_settle(struct vmm_os *os)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	struct settle_limit limit = {.cpu_ns = time_of_others() + LIMIT_CPU_NS,
				     .until_ns = vmm_os_linux_now(os) + LIMIT_NS};
	struct settler self;

	enqueue_settler(os, &self);
	sched_yield();
	for (uint32_t i = 0; !settled(os, &self) && is_within(os, &limit); i++) {
		if (i < YIELDS)
			sched_yield();
		else
			clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	}
	dequeue_settler(os, &self);
}
