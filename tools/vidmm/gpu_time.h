/* SPDX-License-Identifier: MIT */
/* gpu_time: the GPU time of a submission by the model of a recording (trace_header). */
#ifndef VIDMM_TOOLS_GPU_TIME_H
#define VIDMM_TOOLS_GPU_TIME_H

#include <stdint.h>

/* A submission as long as the GPU's timeout would cause a reset. */
#define GPU_TIME_NS_MAX 1000000000u

/* Returns base time, and bytes at the model's rate (0: none), up to the maximum. */
static inline uint64_t gpu_time_ns(uint64_t base_ns, double bytes_per_ns, uint64_t bytes)
{
	double ns = (double)base_ns + (bytes_per_ns > 0 ? (double)bytes / bytes_per_ns : 0);

	return ns > GPU_TIME_NS_MAX ? GPU_TIME_NS_MAX : (uint64_t)ns;
}

#endif
