/* SPDX-License-Identifier: MIT */
/* The CPU mappings of a client by address: a treap, so that a search takes O(log n) steps. Pure. */
#ifndef VMM_SERVE_VIEW_RECORDS_H
#define VMM_SERVE_VIEW_RECORDS_H

#include "base/base.h"

struct vmm_view_record {
	uint64_t address, size_bytes;
	uint64_t mapped; /* number of the last message that maps something there; 0: none */
	uint32_t node;   /* node in the heap of the window */
	uint32_t priority;
	struct vmm_view_record *left, *right;
};

/* Returns false if there is no memory. */
bool vmm_view_records_add(struct vmm_view_record **records, uint64_t address, uint64_t size_bytes,
			  uint32_t node) VMM_MUST_CHECK;
/* Returns the mapping that contains the address; NULL: none. */
struct vmm_view_record *vmm_view_records_find(struct vmm_view_record *records, uint64_t address);
void vmm_view_records_remove(struct vmm_view_record **records, struct vmm_view_record *record);

#endif
