/* SPDX-License-Identifier: MIT */
/* What a client in another address space may be shown: private.c. Guarded by the paging lock. */
#ifndef VMM_MEMORY_PRIVATE_OBJECTS_H
#define VMM_MEMORY_PRIVATE_OBJECTS_H

#include "memory/memory_private.h"

#define VMM_LEFT_BYTES ((uint64_t)64 << 10)

/* A private object over a range of a memory segment. */
struct vmm_private {
	struct vmm_list link; /* in memory->privates */
	struct vmm_os_private *object;
	uint64_t from, to; /* of the segment's BAR */
	uint64_t sequence; /* the last paging packet that reads it, once its owner has left */
};

/*
 * The instance has got, but not used, its place at that offset of its segment: nothing private of others is there afterwards.
 * VMM_PENDING: paging still reads that, unless the caller would have it waited for.
 */
vmm_status vmm_private_enter_slowly(struct vmm_memory *memory, struct vmm_instance *instance,
				    uint64_t offset, bool wait);
static inline vmm_status vmm_private_enter(struct vmm_memory *memory, struct vmm_instance *instance,
					   uint64_t offset, bool wait)
{
	return vmm_likely(!instance->allocation->viewer && vmm_list_empty(&memory->privates))
		       ? VMM_OK
		       : vmm_private_enter_slowly(memory, instance, offset, wait);
}
/* That range of a segment is somebody's who is no instance: nothing private is there afterwards. VMM_PENDING: as above. */
vmm_status vmm_private_clear_slowly(struct vmm_memory *memory, const struct vmm_segment *segment,
				    uint64_t offset, uint64_t size_bytes);
static inline vmm_status vmm_private_clear(struct vmm_memory *memory,
					   const struct vmm_segment *segment, uint64_t offset,
					   uint64_t size_bytes)
{
	return vmm_likely(vmm_list_empty(&memory->privates))
		       ? VMM_OK
		       : vmm_private_clear_slowly(memory, segment, offset, size_bytes);
}
/*
 * The instance leaves that place; what has been written into paging buffers so far may still read it. `own`: what lies there, or
 * NULL.
 */
void vmm_private_leave(struct vmm_memory *memory, const struct vmm_instance *instance,
		       uint64_t offset, struct vmm_private *own);
/* Takes away those that nobody reads any more; `all`: those that somebody might, too. */
void vmm_private_collect_slowly(struct vmm_memory *memory, bool all);
static inline void vmm_private_collect(struct vmm_memory *memory)
{
	if (vmm_unlikely(!vmm_list_empty(&memory->privates)))
		vmm_private_collect_slowly(memory, false);
}

/* arena.c: as vmm_backing_create, for content of that allocation, which its creator may be shown. */
vmm_status vmm_backing_create_for(struct vmm_memory *memory,
				  const struct vmm_allocation *allocation, uint64_t size_bytes,
				  bool zero, struct vmm_backing *backing);
/* alternate.c: its addresses are nobody's any more; what its content is stays. */
void vmm_alternate_end(struct vmm_memory *memory, struct vmm_instance *instance);

#endif
