/* SPDX-License-Identifier: MIT */
/* Tier 8, CPU locks: renaming, the lock of WDDM 2.x, the linear image of swizzled content. */
#ifndef VMM_MEMORY_LOCKS_H
#define VMM_MEMORY_LOCKS_H

#include "memory/state/state.h"

/* ---- lock.c ---- */
/*
 * pfnLockCb on an adapter of WDDM 1.x, for locks that vmm_lock_fast did not serve: waits for the
 * GPU. Takes the locks itself. (LOCK-05)
 */
NTSTATUS vmm_lock_synchronized(struct vmm_device *device, struct vmm_lock_request *request);

/* ---- rename.c ---- */
/*
 * Picks or creates the instance for a lock with Discard. *wait_for: a busy instance to wait for
 * instead. (REN)
 */
NTSTATUS vmm_rename_select(struct vmm_device *device, struct vmm_ref *ref, uint32_t flags,
			   struct vmm_ref **chosen, struct vmm_instance **wait_for)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Fast path: returns the instance that vmm_rename_select would pick if it is idle and mapped, else
 * NULL. *current gets the current instance, or NULL.
 */
struct vmm_instance *vmm_rename_ready(struct vmm_allocation *allocation, uint32_t flags,
				      struct vmm_instance **current)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Makes the chosen instance the current one. */
void vmm_rename_commit(struct vmm_device *device, struct vmm_ref *ref, uint32_t old_handle)
	VMM_REQUIRES(vmm_paging_lock_class);
/* The same for a caller that knows the current instance; NULL: there is none. */
void vmm_rename_commit_from(struct vmm_device *device, struct vmm_ref *ref,
			    struct vmm_instance *current, uint32_t old_handle)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Was the instance created by vmm_rename_select for this lock? */
bool vmm_rename_is_growth(const struct vmm_ref *ref);
/* Destroys such an instance after the lock has failed. */
void vmm_rename_undo_growth(struct vmm_device *device, struct vmm_ref *ref)
	VMM_REQUIRES(vmm_paging_lock_class);

/* ---- lock2.c ---- */
/* pfnLockCb on an adapter of WDDM 2.x. Takes the locks itself. (LOCK-51) */
NTSTATUS vmm_lock_wddm2(struct vmm_device *device, struct vmm_lock_request *request);
/* Lock2, without renaming. Takes the locks itself. (LOCK-42, REF-13) */
NTSTATUS vmm_lock2_wddm2(struct vmm_device *device, struct vmm_lock_request *request);
/* Must be called after any unlock of the instance on an adapter of WDDM 2.x. */
void vmm_lock_wddm2_released(struct vmm_instance *instance) VMM_REQUIRES(vmm_paging_lock_class);

/* ---- swizzle.c: locks with AcquireAperture (SWZ) ---- */
struct vmm_aperture_lock {
	struct vmm_instance *instance;
	const struct vmm_lock_request *request;
	bool may_wait; /* waiting is allowed whatever DonotWait says */
	/* out: the lock must wait and try again */
	bool wait, wait_for_progress;
	uint32_t timeline, progress_seen;
	uint64_t sequence;
	const char *rule, *why; /* out: of a refusal that is the caller's fault */
};
/*
 * Makes the linear image of the instance reachable for a lock with AcquireAperture. The GPU has
 * completed the uses that the lock flags wait for.
 */
NTSTATUS vmm_swizzle_lock(struct vmm_memory *memory, struct vmm_aperture_lock *lock)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Gives a new primary a placement and a swizzling range (ALF-22). VMM_NO_VIDEO_MEMORY: no free
 * space or no free range. VMM_INVALID_PARAMETER: the miniport has no range for it.
 */
vmm_status vmm_swizzle_create(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * For a lock without AcquireAperture. Content that was evicted under a lock may be in a form that
 * only the miniport knows: converts it back. Does nothing for all other content.
 */
NTSTATUS vmm_swizzle_restore(struct vmm_memory *memory, struct vmm_aperture_lock *lock)
	VMM_REQUIRES(vmm_paging_lock_class);

#endif
