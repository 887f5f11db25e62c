/* SPDX-License-Identifier: MIT */
/*
 * Wake-ups of the two threads of an adapter: its worker (worker.c) and its watchdog (watch.c). Any
 * thread calls them, with any lock held.
 */
#include "sched/state/state.h"

void vmm_worker_wake(struct vmm_sched *sched)
{
	atomic_fetch_add(&sched->work, 1);
	vmm_os_wake(sched->adapter->os, &sched->work, 1);
}

void vmm_watch_wake(struct vmm_sched *sched)
{
	atomic_fetch_add(&sched->watch, 1);
	vmm_os_wake(sched->adapter->os, &sched->watch, 1);
}
