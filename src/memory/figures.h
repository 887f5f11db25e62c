/* SPDX-License-Identifier: MIT */
/*
 * What figures.c keeps of peaks. Whoever adds bytes raises the peaks of struct vmm_segment and struct vmm_memory, which are those since anybody last looked.
 * Guarded by the paging lock.
 */
#ifndef VMM_MEMORY_FIGURES_H
#define VMM_MEMORY_FIGURES_H

#include "memory/memory.h"

/* The most that there was in segments and of backing stores. */
struct vmm_peaks {
	uint64_t segment_bytes[VMM_PORT_SEGMENTS_MAX], total_bytes, system_bytes;
};

struct vmm_looks {
	struct vmm_peaks before; /* from the adapter's start until somebody last looked */
	struct vmm_list lookers; /* processes that look, each with its own */
};

void vmm_lookers_finish(struct vmm_memory *memory);

#endif
