/* SPDX-License-Identifier: MIT */
/*
 * The linux back end's time, waiting and contended mutex: CLOCK_MONOTONIC and raw futexes. No state
 * but the world's start time and its counters of sleepers.
 */
#include "os/os_internal.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000u

static long futex(_Atomic uint32_t *word, int operation, uint32_t value,
		  const struct timespec *deadline)
{
	return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, deadline, NULL,
		       FUTEX_BITSET_MATCH_ANY);
}

static uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static struct timespec absolute(const struct vmm_os *os, uint64_t when_ns)
{
	uint64_t ns;

	if (vmm_add_overflows(os->linux_.start_ns, when_ns, &ns))
		ns = UINT64_MAX;
	return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_S),
				 .tv_nsec = (long)(ns % NS_PER_S)};
}

vmm_status vmm_os_linux_init(struct vmm_os *os)
{
	os->linux_.start_ns = monotonic_ns();
	vmm_list_init(&os->linux_.settlers);
	return VMM_OK;
}

uint64_t vmm_os_linux_now(struct vmm_os *os)
{
	return monotonic_ns() - os->linux_.start_ns;
}

void vmm_os_linux_sleep_until(struct vmm_os *os, uint64_t when_ns)
{
	struct timespec when = absolute(os, when_ns);

	vmm_os_linux_becomes_idle(os);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) == EINTR)
		;
	vmm_os_linux_becomes_busy(os);
}

vmm_status vmm_os_linux_wait(struct vmm_os *os, _Atomic uint32_t *word, uint32_t expected,
			     uint64_t deadline_ns)
{
	_Atomic uint32_t *sleepers = &os->linux_.sleepers[vmm_os_bucket(word)].count;
	struct timespec deadline = absolute(os, deadline_ns);
	int error = 0;

	atomic_fetch_add_explicit(sleepers, 1, memory_order_acq_rel);
	vmm_os_linux_becomes_idle(os);
	if (futex(word, FUTEX_WAIT_BITSET, expected,
		  deadline_ns == VMM_OS_FOREVER ? NULL : &deadline) < 0)
		error = errno;
	vmm_os_linux_becomes_busy(os);
	if (!error)
		atomic_fetch_add(&os->linux_.wakes_received, 1);
	atomic_fetch_sub_explicit(sleepers, 1, memory_order_relaxed);
	return error == ETIMEDOUT ? VMM_TIMEOUT : VMM_OK;
}

void vmm_os_linux_wake(struct vmm_os *os, _Atomic uint32_t *word, uint32_t count)
{
	_Atomic uint32_t *sleepers = &os->linux_.sleepers[vmm_os_bucket(word)].count;
	long woken;

	/*
	 * An add of nothing instead of a load: it takes its place in the counter's modification
	 * order, after the caller's change of the word. A waiter that comes later in that order
	 * sees the changed word.
	 */
	if (atomic_fetch_add_explicit(sleepers, 0, memory_order_acq_rel) == 0)
		return;
	woken = futex(word, FUTEX_WAKE, count > INT_MAX ? INT_MAX : count, NULL);
	if (woken > 0)
		atomic_fetch_add(&os->linux_.wakes_sent, (uint64_t)woken);
}

static void pause_briefly(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb");
#endif
}

void vmm_os_linux_mutex_contended(struct vmm_os_mutex *mutex)
{
	for (int spin = 0; spin < VMM_OS_MUTEX_SPINS; spin++) {
		uint32_t free = 0;

		if (atomic_load_explicit(&mutex->state, memory_order_relaxed) == 0 &&
		    atomic_compare_exchange_strong_explicit(
			    &mutex->state, &free, 1, memory_order_acquire, memory_order_relaxed))
			return;
		pause_briefly();
	}
	/*
	 * State 2 from now on even if this was the only waiter: nobody knows, and a wake too many
	 * is harmless.
	 */
	while (atomic_exchange_explicit(&mutex->state, 2, memory_order_acquire) != 0)
		futex(&mutex->state, FUTEX_WAIT_BITSET, 2, NULL);
}

void vmm_os_linux_mutex_wake(_Atomic uint32_t *state)
{
	futex(state, FUTEX_WAKE, 1, NULL);
}
