/* SPDX-License-Identifier: MIT */
/*
 * NT handles: file descriptors that stand for a shared object, with or without a name. They keep
 * the object alive while a copy of the descriptor is open in any process. Each handle grants the
 * access that was requested for it.
 *
 * This file does not know the kinds of objects: it holds a reference for each handle, and returns
 * the object of a descriptor.
 *
 * The system does not report when the last copy of a descriptor is closed. So that is checked where
 * it matters: at a look-up by name, when an object is shared, when a handle of a shared object
 * ends, and when a process begins or ends (vmm_nt_collect, Q-260).
 */
#ifndef VMM_OBJECT_NT_HANDLE_H
#define VMM_OBJECT_NT_HANDLE_H

#include "object/object.h"

enum vmm_nt_kind {
	VMM_NT_SYNC,
	VMM_NT_RESOURCE,
	VMM_NT_KIND_COUNT,
	/* of a keyed mutex alone: none can be shared (KMX-11) */
	VMM_NT_KEYED_MUTEX = VMM_NT_KIND_COUNT,
};

struct vmm_nt_target {
	enum vmm_nt_kind kind;
	void *object;
	void (*get)(void *object); /* adds a reference; shared lock held */
	void (*put)(void *object); /* removes a reference; no lock held */
};

/* A copy of the name, in UTF-16 units. length 0: no name. */
struct vmm_nt_name {
	const uint16_t *text;
	uint32_t length;
};
#define VMM_NT_NAME_MAX 32767u

/*
 * Creates a handle for the target, which the caller closes, and which holds a reference. Returns
 * VMM_OBJECT_NAME_COLLISION with a finding if the name is in use by an object of any kind (SHR-24),
 * or VMM_NO_MEMORY.
 */
vmm_status vmm_nt_share(struct vmm_process *process, const struct vmm_nt_target *target,
			const struct vmm_nt_name *name, uint32_t access,
			uint64_t *handle) VMM_MUST_CHECK;
/*
 * Creates another handle for the object with that name (SHR-21). Returns, with a finding each:
 * VMM_OBJECT_NAME_NOT_FOUND; VMM_OBJECT_TYPE_MISMATCH: the object is of another kind;
 * VMM_ACCESS_DENIED: `access` is 0.
 */
vmm_status vmm_nt_handle_of_name(struct vmm_process *process, enum vmm_nt_kind kind,
				 const struct vmm_nt_name *name, uint32_t access,
				 uint64_t *handle) VMM_MUST_CHECK;
/*
 * Returns the object of the handle, with a reference, and the access that the handle grants.
 * Returns, with a finding each: VMM_INVALID_HANDLE: not an NT handle of this library (SHR-13);
 * VMM_OBJECT_TYPE_MISMATCH: the object is of another kind (SHR-15), as every object is for
 * VMM_NT_KEYED_MUTEX (KMX-10).
 */
vmm_status vmm_nt_find(struct vmm_process *process, uint64_t handle, enum vmm_nt_kind kind,
		       void **object, uint32_t *access) VMM_MUST_CHECK;
/*
 * Copies the name as it was given. *length: in, the capacity of text in units; out, the length of
 * the name, 0 if it has none. Returns VMM_INVALID_HANDLE if it is not an NT handle of this library,
 * or VMM_BUFFER_TOO_SMALL without copying. (SHR-25)
 */
vmm_status vmm_nt_name_of(struct vmm_world *world, uint64_t handle, uint16_t *text,
			  uint32_t *length) VMM_MUST_CHECK;

/* Releases the objects of handles of which every descriptor is closed. No lock held. */
void vmm_nt_collect(struct vmm_world *world);
/*
 * Releases the objects of all handles, at the end of the world. No process is left; descriptors
 * that are still open name nothing from then on.
 */
void vmm_nt_end_world(struct vmm_world *world);

#endif
