/* SPDX-License-Identifier: MIT */
/*
 * NT handles: descriptors that stand for an object of ours, with or without a name, and keep it as long as one of them is open
 * anywhere. What they may be used for is the access that each was asked for with. This file knows neither synchronization
 * objects nor resources: it keeps a reference for each handle, and says what a descriptor names.
 *
 * Nobody tells us when the last descriptor is closed, so it is asked whenever that could matter: at a look-up by name, when
 * something is shared, and when a handle of a shared object ends (vmm_nt_collect).
 */
#ifndef VMM_OBJECT_NT_HANDLE_H
#define VMM_OBJECT_NT_HANDLE_H

#include "object/object.h"

enum vmm_nt_kind { VMM_NT_SYNC, VMM_NT_RESOURCE, VMM_NT_KIND_COUNT };

struct vmm_nt_target {
	enum vmm_nt_kind kind;
	void *object;
	void (*get)(void *object); /* another reference; the shared lock is held */
	void (*put)(void *object); /* no lock is held */
};

/* Of whole units, ours; length 0: none. */
struct vmm_nt_name {
	const uint16_t *text;
	uint32_t length;
};
#define VMM_NT_NAME_MAX 32767u

/*
 * A new handle, the caller's to close, with a reference of its own. VMM_OBJECT_NAME_COLLISION and a finding: the name is in
 * use (SHR-24), by whatever kind; VMM_NO_MEMORY.
 */
vmm_status vmm_nt_share(struct vmm_process *process, const struct vmm_nt_target *target,
			const struct vmm_nt_name *name, uint32_t access,
			uint64_t *handle) VMM_MUST_CHECK;
/*
 * Another handle for what has the name (SHR-21). With a finding each: VMM_OBJECT_NAME_NOT_FOUND; VMM_OBJECT_TYPE_MISMATCH: it
 * is of another kind; VMM_ACCESS_DENIED: no access was asked for.
 */
vmm_status vmm_nt_handle_of_name(struct vmm_process *process, enum vmm_nt_kind kind,
				 const struct vmm_nt_name *name, uint32_t access,
				 uint64_t *handle) VMM_MUST_CHECK;
/*
 * What the handle names, with a reference, and the access it was made with. VMM_INVALID_HANDLE and a finding: nothing of ours
 * (SHR-13); VMM_OBJECT_TYPE_MISMATCH and a finding: of another kind (SHR-15).
 */
vmm_status vmm_nt_find(struct vmm_process *process, uint64_t handle, enum vmm_nt_kind kind,
		       void **object, uint32_t *access) VMM_MUST_CHECK;
/*
 * SHR-25: the name as it was given, as much of it as *length units have room for; *length: all of it, 0: it has none.
 * VMM_INVALID_HANDLE: nothing of ours; VMM_BUFFER_TOO_SMALL.
 */
vmm_status vmm_nt_name_of(struct vmm_world *world, uint64_t handle, uint16_t *text,
			  uint32_t *length) VMM_MUST_CHECK;

/* Lets go of what only handles kept of which none is left. No lock held. */
void vmm_nt_collect(struct vmm_world *world);
/* No process is left: whatever handles are still open name nothing any more. */
void vmm_nt_end_world(struct vmm_world *world);

#endif
