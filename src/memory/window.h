/* SPDX-License-Identifier: MIT */
/* Windows of swizzling ranges that are no allocation's place: window.c. Guarded by the paging lock. */
#ifndef VMM_MEMORY_WINDOW_H
#define VMM_MEMORY_WINDOW_H

#include "memory/memory_private.h"

/*
 * From now on the range's window holds what is its owner's alone, who is apart, and may be shown to him. VMM_PENDING: what
 * writes to the owner is to be waited for; STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNSUPPORTED: it cannot be, and an event says why.
 */
vmm_status vmm_window_lay(struct vmm_memory *memory, struct vmm_swizzling_range *range);
/* The miniport has released the range; its owner is still known. Nothing that was in the window stays there. */
void vmm_window_leave(struct vmm_memory *memory, struct vmm_swizzling_range *range);

#endif
