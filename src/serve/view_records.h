/* SPDX-License-Identifier: MIT */
/* The views of a client by their addresses: a treap, so that any number is found in few steps. Pure. */
#ifndef VMM_SERVE_VIEW_RECORDS_H
#define VMM_SERVE_VIEW_RECORDS_H

#include "base/base.h"

struct vmm_view_record {
	uint64_t address, size_bytes;
	uint64_t mapped; /* the number of the last message that maps something there; 0: none */
	uint32_t node;   /* of the window's heap */
	uint32_t priority;
	struct vmm_view_record *left, *right;
};

/* False: no memory. */
bool vmm_view_records_add(struct vmm_view_record **records, uint64_t address, uint64_t size_bytes,
			  uint32_t node) VMM_MUST_CHECK;
/* The view that has the address; NULL: none. */
struct vmm_view_record *vmm_view_records_find(struct vmm_view_record *records, uint64_t address);
void vmm_view_records_remove(struct vmm_view_record **records, struct vmm_view_record *record);

#endif
