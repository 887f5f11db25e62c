/* SPDX-License-Identifier: MIT */
/*
 * waits: what the time of the render node and of the programs' threads went into. Computed from the
 * event stream. The node is in one of three states: it executes a command buffer, or it executes
 * none although one was accepted, because paging comes first, or it has nothing to do.
 */
#ifndef VIDMM_TOOLS_WAITS_H
#define VIDMM_TOOLS_WAITS_H

#include <vidmm/vidmm.h>

struct waits_summary {
	uint64_t gpu_busy_ns; /* the node executes command buffers of the process */
	/* It executes none because of paging, and the oldest one that waits is of the process. */
	uint64_t gpu_paging_ns;
	/*
	 * Waits of the CPU: for the GPU in locks; and for free DMA buffers, paging buffers, space.
	 */
	uint64_t cpu_lock_ns, cpu_queue_ns;
	uint64_t cpu_cost_ns;       /* of calls (costs.h), filled by times.c */
	uint64_t recorded_gpu_ns;   /* busy time of the GPU by the recording's model */
	uint64_t slowdown_permille; /* (busy + paging) / recorded; 0: nothing recorded */
};

struct waits;
struct waits *waits_create(struct vidmm_host *host); /* NULL: out of memory */
void waits_destroy(struct waits *waits);             /* NULL is allowed */
/* Until now. process 0: of all processes. RECORDED_GPU_NS: the one of these processes. */
void waits_summary(struct waits *waits, uint32_t process, uint64_t recorded_gpu_ns,
		   struct waits_summary *summary);

#endif
