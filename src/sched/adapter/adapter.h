/* SPDX-License-Identifier: MIT */
/*
 * The threads of an adapter.
 * A tier of sched (README.md): its files, and those of higher tiers, include this header.
 */
#ifndef VMM_SCHED_ADAPTER_H
#define VMM_SCHED_ADAPTER_H

#include "sched/calls/calls.h"

/* ---- worker.c, watch.c ---- */
void vmm_worker_main(void *adapter); /* worker.c */
void vmm_watch_stop(struct vmm_sched *sched);

#endif
