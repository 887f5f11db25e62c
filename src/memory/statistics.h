/* SPDX-License-Identifier: MIT */
/*
 * Peaks of memory use for statistics.c. Code that adds bytes raises the peaks in struct vmm_segment
 * and struct vmm_memory. Those cover the time since the last read by any process. Guarded by the
 * paging lock.
 */
#ifndef VMM_MEMORY_STATISTICS_H
#define VMM_MEMORY_STATISTICS_H

#include "memory/memory.h"

/* Highest number of bytes resident in each segment, in all segments, and in backing stores. */
struct vmm_peaks {
	uint64_t segment_bytes[VMM_PORT_SEGMENTS_MAX], total_bytes, system_bytes;
};

struct vmm_peak_readers {
	/* from the adapter's start until the last read by any process */
	struct vmm_peaks since_start;
	/* one entry for each process that reads statistics repeatedly */
	struct vmm_list readers;
};

void vmm_peak_readers_finish(struct vmm_memory *memory);

#endif
