/* SPDX-License-Identifier: MIT */
/* Windows of swizzling ranges outside segments (window.c). */
#ifndef VMM_MEMORY_WINDOW_H
#define VMM_MEMORY_WINDOW_H

#include "memory/image/image.h"

/*
 * Overlays the window with a client object, so that it can be mapped into the owner, an
 * out-of-process client. Returns VMM_PENDING if a writer of the owner must complete first. Returns
 * STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNSUPPORTED, with a reason event, if it cannot be overlaid.
 */
vmm_status vmm_window_overlay(struct vmm_memory *memory, struct vmm_swizzling_range *range)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Removes the overlay and empties the window after the miniport has released the range. The range's
 * owner is still set.
 */
void vmm_window_release(struct vmm_memory *memory, struct vmm_swizzling_range *range)
	VMM_REQUIRES(vmm_paging_lock_class);

#endif
