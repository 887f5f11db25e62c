/* SPDX-License-Identifier: MIT */
/*
 * Steps of calls on allocations: CPU locks, priorities, residency, offers, creation. A step is a
 * function that the functions made from calls.tsv call (src/doors/README.md).
 */
#ifndef VMM_DOORS_COMMON_ALLOCATIONS_H
#define VMM_DOORS_COMMON_ALLOCATIONS_H

#include "base/lock_flags.h"
#include "doors/common/call.h"
#include "memory/memory.h"

/* Locks with the caller's page list, which is copied. */
NTSTATUS vmm_door_lock_pages(struct vmm_door_call *call, const uint32_t *pages,
			     struct vmm_lock_request *request) VMM_COLD;
/* Unlocks none or several; *first is the first handle, 0 if there is none. */
NTSTATUS vmm_door_unlock_list(const struct vmm_door_call *call, const uint32_t *handles,
			      uint32_t count, uint32_t *first);

/* The usual unlock names one allocation. */
VMM_ALWAYS_INLINE NTSTATUS vmm_door_unlock(const struct vmm_door_call *call,
					   const uint32_t *handles, uint32_t count, uint32_t *first)
{
	if (vmm_unlikely(count != 1 || !handles))
		return vmm_door_unlock_list(call, handles, count, first);
	*first = handles[0];
	return vmm_memory_unlock(call->device, first, 1);
}

typedef NTSTATUS vmm_door_query_fn(struct vmm_device *device, const struct vmm_shape *shape,
				   uint32_t *values);

/* Queries a value of a resource or of each listed allocation, and copies the values out. */
NTSTATUS vmm_door_query(const struct vmm_door_call *call, const struct vmm_shape *shape,
			uint32_t *answers, vmm_door_query_fn *query);
/*
 * Reclaims, and copies a result for each entry to `answers`, if given: as a BOOL if `boolean`,
 * otherwise as a D3DDDI_RECLAIM_RESULT. Both have 32 bits. (OFR-14)
 */
NTSTATUS vmm_door_reclaim(const struct vmm_door_call *call, struct vmm_reclaim_request *request,
			  void *answers, bool boolean);

/*
 * A caller's array of D3DDDI_ALLOCATIONINFO or D3DDDI_ALLOCATIONINFO2. Common members have the same
 * offsets; the newer form has a larger step.
 */
struct vmm_door_infos {
	char *first;
	size_t step;
	uint32_t count;
};

/* Storage on the stack for the usual request: one allocation with little private data. */
struct vmm_door_item {
	struct vmm_allocate_item item;
	_Alignas(16) unsigned char private_data[128];
};

/*
 * Copies the array, each element of which is read once, and the private data of the request, whose
 * size is set. Afterwards vmm_door_free_request ends it, also if an earlier step failed.
 */
NTSTATUS vmm_door_copy_infos(const struct vmm_door_call *call, const struct vmm_door_infos *infos,
			     const void *private_data, struct vmm_allocate_request *request,
			     struct vmm_door_item *one);
/* Copies out the handles, and the private data, which the miniport may have changed (ALF-34). */
void vmm_door_return_infos(const struct vmm_door_infos *infos,
			   const struct vmm_allocate_request *request);
void vmm_door_free_request(const struct vmm_allocate_request *request,
			   const struct vmm_door_item *one);

#endif
