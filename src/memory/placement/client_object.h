/* SPDX-License-Identifier: MIT */
/*
 * Client objects: memory objects that one out-of-process client alone may map (client_object.c).
 * src/os/os.h has the functions that put them over a range of a BAR and remove them.
 */
#ifndef VMM_MEMORY_PRIVATE_OBJECTS_H
#define VMM_MEMORY_PRIVATE_OBJECTS_H

#include "memory/state/types.h"

/*
 * Makes all client objects over segments that an owner can need, so that no placement needs a
 * descriptor. VMM_NO_MEMORY: no memory, or no descriptor.
 */
vmm_status vmm_client_objects_prepare(struct vmm_memory *memory, uint64_t owner)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Prepares the placement of an instance at OFFSET bytes of its segment, which it has been given and
 * does not use yet. Afterwards no client object of another client covers it. If an out-of-process
 * client may map the allocation, its own client object is put there and `has_client_object` is set.
 * Returns VMM_PENDING if paging packets still read the range and WAIT is false; the caller then
 * frees the placement and retries. After many such retries the function waits even so.
 */
vmm_status vmm_client_object_enter(struct vmm_memory *memory, struct vmm_instance *instance,
				   uint64_t offset, bool wait) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Removes all client objects from a range of a segment that gets an owner other than an instance.
 * VMM_PENDING: as above.
 */
vmm_status vmm_client_object_clear(struct vmm_memory *memory, const struct vmm_segment *segment,
				   uint64_t offset, uint64_t size_bytes)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * The instance leaves its placement at OFFSET. Records the last paging packet that may still read
 * the range. HAD_CLIENT_OBJECT: a client object covers it, as in instance->has_client_object at
 * that time.
 */
void vmm_client_object_leave(struct vmm_memory *memory, const struct vmm_instance *instance,
			     uint64_t offset, bool had_client_object)
	VMM_REQUIRES(vmm_paging_lock_class);

/*
 * The client of that owner number has ended: waits for the paging packets that may still read its
 * client objects over segments, and ends these objects.
 */
void vmm_client_objects_end_owner(struct vmm_memory *memory, uint64_t owner)
	VMM_REQUIRES(vmm_paging_lock_class);

#endif
