/* SPDX-License-Identifier: MIT */
/*
 * The linux back end's settling: yields until every thread that the world made waits, sleeps or has
 * ended. Foreign threads are not counted: nobody knows what they are about to do. Whoever wakes a thread
 * counts it as busy from then on, and is busy itself. Several that settle go on one after the other, in the order in which
 * they came, as on the simulator: the next one only when the last is waiting, or settling, again.
 */
#include "os/os_internal.h"

#include <sched.h>
#include <time.h>

#define YIELDS          64u
#define PAUSE_NS        20000u
/*
 * Threads that run and run are known by the processor time that they take, not by the hour: on a loaded
 * machine a thread with little to do may not get to it for long.
 */
#define PATIENCE_CPU_NS 1000000000u
#define PATIENCE_NS     10000000000u /* for threads that wait by other means */

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

/* One who settles, in the order in which they came. On the stack of that thread. */
struct settler {
	struct vmm_list link;
};

static bool is_first(struct vmm_os *os, const struct settler *settler)
{
	pthread_mutex_lock(&os->registry_lock);
	bool first = os->linux_.settlers.next == &settler->link;
	pthread_mutex_unlock(&os->registry_lock);
	return first;
}

/* Whoever went on before is busy since before it left the line; so the line is looked at first. */
static bool settled(struct vmm_os *os, const struct settler *settler)
{
	return is_first(os, settler) && atomic_load(&os->linux_.busy) == 0;
}

static void line_up(struct vmm_os *os, struct settler *settler)
{
	pthread_mutex_lock(&os->registry_lock);
	vmm_list_push_back(&os->linux_.settlers, &settler->link);
	pthread_mutex_unlock(&os->registry_lock);
	vmm_os_linux_becomes_idle(vmm_os_self(os));
}

/* Busy before the next one looks. */
static void go_on(struct vmm_os *os, struct settler *settler)
{
	vmm_os_linux_becomes_busy(vmm_os_self(os));
	pthread_mutex_lock(&os->registry_lock);
	vmm_list_remove(&settler->link);
	pthread_mutex_unlock(&os->registry_lock);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Processor time of the program's other threads. */
static uint64_t time_of_others(void)
{
	uint64_t mine = clock_ns(CLOCK_THREAD_CPUTIME_ID), all = clock_ns(CLOCK_PROCESS_CPUTIME_ID);

	return all > mine ? all - mine : 0;
}

struct patience {
	uint64_t cpu_ns, until_ns;
};

static bool lasts(struct vmm_os *os, const struct patience *patience)
{
	return vmm_os_linux_now(os) < patience->until_ns && time_of_others() < patience->cpu_ns;
}

void vmm_os_linux_settle(struct vmm_os *os)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	struct patience patience = {.cpu_ns = time_of_others() + PATIENCE_CPU_NS,
				    .until_ns = vmm_os_linux_now(os) + PATIENCE_NS};
	struct settler self;

	line_up(os, &self);
	sched_yield();
	for (uint32_t i = 0; !settled(os, &self) && lasts(os, &patience); i++) {
		if (i < YIELDS)
			sched_yield();
		else
			clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	}
	go_on(os, &self);
}
