/* SPDX-License-Identifier: MIT */
/* What a client in another address space may be shown: private.c. Guarded by the paging lock. */
#ifndef VMM_MEMORY_PRIVATE_OBJECTS_H
#define VMM_MEMORY_PRIVATE_OBJECTS_H

#include "memory/memory_private.h"

#define VMM_LEFT_BYTES ((uint64_t)64 << 10)

/*
 * The instance has got, but not used, its place at that offset of its segment: nothing private of others is there afterwards.
 * VMM_PENDING: paging still reads that, unless the caller would have it waited for, or has been turned away often enough.
 */
vmm_status vmm_private_enter(struct vmm_memory *memory, struct vmm_instance *instance,
			     uint64_t offset, bool wait);
/* That range of a segment is somebody's who is no instance: nothing private is there afterwards. VMM_PENDING: as above. */
vmm_status vmm_private_clear(struct vmm_memory *memory, const struct vmm_segment *segment,
			     uint64_t offset, uint64_t size_bytes);
/* The instance leaves that place; what has been written into paging buffers so far may still read it. `own`: as in the instance. */
void vmm_private_leave(struct vmm_memory *memory, const struct vmm_instance *instance,
		       uint64_t offset, bool own);

/* arena.c: as vmm_backing_create, for content of that allocation, which its creator may be shown. */
vmm_status vmm_backing_create_for(struct vmm_memory *memory,
				  const struct vmm_allocation *allocation, uint64_t size_bytes,
				  bool zero, struct vmm_backing *backing);
/* alternate.c: its addresses are nobody's any more; what its content is stays. */
void vmm_alternate_end(struct vmm_memory *memory, struct vmm_instance *instance);

#endif
