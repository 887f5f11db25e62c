/* SPDX-License-Identifier: MIT */
/*
 * The flips of an adapter's sources, which flip.c queues and completes and display.c shows. State
 * lock, except atomic members.
 */
#ifndef VMM_SCHED_FLIP_H
#define VMM_SCHED_FLIP_H

#include "sched/data/submission.h"

#define VMM_FLIPS_PER_SOURCE 8u

struct vmm_source {
	struct vmm_list flips;  /* queued flips, in order */
	struct vmm_flip *shown; /* NULL: dark */
	/* D3DKMTSetVidPnSourceOwner (owner.c). NULL: unowned */
	const struct vmm_device *owner;
	uint32_t owner_type;
	uint64_t count; /* flips that have been shown */
	_Atomic uint64_t vsync_address;
	_Atomic bool vsync; /* reported by an interrupt, not applied yet */
};
struct vmm_display {
	uint32_t source_count;
	_Atomic uint32_t due; /* flips that are due and not shown */
	struct vmm_list free;
	struct vmm_source source[VMM_SOURCES_MAX];
	struct vmm_flip flip[VMM_SOURCES_MAX * VMM_FLIPS_PER_SOURCE];
};

static inline struct vmm_flip *vmm_flip_first(const struct vmm_source *source)
{
	return vmm_list_empty(&source->flips)
		       ? NULL
		       : vmm_container_of(source->flips.next, struct vmm_flip, link);
}
/* Drops a flip that is not shown. */
void vmm_flip_drop_locked(struct vmm_sched *sched, struct vmm_flip *flip)
	VMM_REQUIRES(vmm_state_lock_class);
/* The source shows the flip from now on. reason: VIDMM_DISPLAY_*. */
void vmm_flip_finish_locked(struct vmm_sched *sched, struct vmm_flip *flip, uint32_t reason)
	VMM_REQUIRES(vmm_state_lock_class);
/* The source shows nothing from now on. */
void vmm_source_darken_locked(struct vmm_sched *sched, struct vmm_source *source)
	VMM_REQUIRES(vmm_state_lock_class);

#endif
