/* SPDX-License-Identifier: MIT */
/* Linux back end: time (CLOCK_MONOTONIC) and the slow path of mutexes. */
#include "os/os_internal.h"

#include <errno.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000u

static uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static bool has_several_processors(void)
{
	cpu_set_t mine;

	return sched_getaffinity(0, sizeof(mine), &mine) == 0 ? CPU_COUNT(&mine) > 1
							      : sysconf(_SC_NPROCESSORS_ONLN) > 1;
}

vmm_status vmm_os_linux_init(struct vmm_os *os)
{
	os->linux_.parallel = has_several_processors();
	os->linux_.start_ns = monotonic_ns();
	vmm_list_init(&os->linux_.settlers);
	vmm_os_linux_wait_init(os);
	return VMM_OK;
}

uint64_t vmm_os_linux_now(struct vmm_os *os)
{
	return monotonic_ns() - os->linux_.start_ns;
}

void vmm_os_linux_sleep_until(struct vmm_os *os, uint64_t when_ns)
{
	struct timespec when = vmm_os_linux_deadline(os, when_ns);

	vmm_os_linux_becomes_idle(vmm_os_self(os));
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) == EINTR)
		;
	vmm_os_linux_becomes_busy(vmm_os_self(os));
}

/*
 * Sleeps until the mutex is free, and takes it. An unlocking thread stores the state and then reads
 * the number of sleepers; this one changes the number and then reads the state (Dekker pattern).
 * Sleeping is rare and takes long, so it pays for both barriers, by an asymmetric one.
 *
 * The wait is an ordinary one, so this thread counts as idle while the holder waits
 * (vmm_os_settle).
 */
static void wait_for_mutex(struct vmm_os_mutex *mutex)
{
	atomic_fetch_add(mutex->sleepers, 1);
	vmm_os_fence_others();
	while (!vmm_os_linux_mutex_try(mutex))
		(void)!vmm_os_linux_wait(mutex->os, &mutex->state, 1, VMM_OS_FOREVER);
	atomic_fetch_sub(mutex->sleepers, 1);
}

void vmm_os_linux_mutex_contended(struct vmm_os_mutex *mutex)
{
	int pauses = 1;

	for (int paused = 0; paused < VMM_OS_MUTEX_PAUSES; paused += pauses) {
		if (atomic_load_explicit(&mutex->state, memory_order_relaxed) == 0 &&
		    vmm_os_linux_mutex_try(mutex))
			return;
		if (pauses < VMM_OS_MUTEX_PAUSES_ONCE)
			pauses *= 2;
		for (int i = 0; i < pauses; i++)
			vmm_os_pause();
	}
	wait_for_mutex(mutex);
}
