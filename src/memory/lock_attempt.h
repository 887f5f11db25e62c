/* SPDX-License-Identifier: MIT */
/* What every lock begins with and may end in, by the rules of WDDM 1.x (lock.c) and of 2.x (lock2.c). */
#ifndef VMM_MEMORY_LOCK_ATTEMPT_H
#define VMM_MEMORY_LOCK_ATTEMPT_H

#include "memory/memory_private.h"

struct vmm_lock_attempt {
	struct vmm_device *device;
	struct vmm_memory *memory;
	struct vmm_lock_request *request;
	struct vmm_ref *ref;
	struct vmm_instance *instance;
	const char *call; /* "lock", "lock2" */
	bool lock_cb;     /* by the rules of pfnLockCb */
	bool renamed;     /* 1.x: instance was chosen by Discard */
	char *address;    /* 1.x: of its first page, if it is not that of the view */
	/* set when the answer is "wait for this, then try again" */
	bool wait, wait_for_progress;
	uint32_t timeline, progress_seen;
	uint64_t sequence;
};

/* The finding of that rule; returns the status. */
NTSTATUS vmm_lock_broke(const struct vmm_lock_attempt *a, const char *rule, NTSTATUS status,
			const char *what) VMM_COLD;
/* ALF-08 */
NTSTATUS vmm_lock_protected(const struct vmm_lock_attempt *a) VMM_COLD;
/* Its content is where a process in another address space is shown nothing of. */
NTSTATUS vmm_lock_not_shown(const struct vmm_lock_attempt *a) VMM_COLD;
/* TDR-11: says why. */
NTSTATUS vmm_lock_content_lost(const struct vmm_lock_attempt *a) VMM_COLD;
/* LOCK-32: says why. The paging lock is held. */
void vmm_lock_no_memory(const struct vmm_lock_attempt *a) VMM_COLD;
/* Until what the attempt was held up by is over; in the caller's name. VMM_PENDING: the device is paused. No core lock held. */
vmm_status vmm_lock_wait(const struct vmm_lock_attempt *a, uint64_t *waited_ns);

/* It has waited, and comes back now. Paging lock held. */
static inline void vmm_lock_count_wait(const struct vmm_lock_attempt *a, uint64_t waited_ns,
				       bool locked)
{
	a->memory->figures.lock_waits++;
	a->memory->figures.lock_wait_ns += locked ? waited_ns : 0;
}

/* From here on its gate is shut. */
static inline NTSTATUS vmm_lock_find(struct vmm_lock_attempt *a)
{
	struct vmm_process *process = a->device->process;

	a->ref = vmm_gate_find(a->device, a->request->handle);
	if (!a->ref) {
		vmm_os_mutex_lock(&process->lock);
		a->ref = vmm_ref_lookup_locked(a->device, a->request->handle);
		if (!a->ref)
			vmm_ref_report(a->device, a->request->handle, "LOCK-31", a->call);
		vmm_os_mutex_unlock(&process->lock);
		if (!a->ref)
			return STATUS_INVALID_PARAMETER;
		vmm_gate_bind(a->ref);
	}
	a->instance = a->ref->instance;
	vmm_gate_shut(a->instance);
	return STATUS_SUCCESS;
}

/* May the CPU, and this process, ever see it? */
static inline NTSTATUS vmm_lock_check_access(const struct vmm_lock_attempt *a)
{
	const struct vmm_allocation *allocation = a->ref->allocation;

	if (vmm_unlikely(allocation->reset_lost))
		return vmm_lock_content_lost(a);
	if (allocation->flags & VMM_ALLOCATION_PROTECTED) /* */
		return vmm_lock_protected(a);
	if (a->lock_cb && !(allocation->flags & VMM_ALLOCATION_VISIBLE))
		return vmm_lock_broke(a, "LOCK-23", STATUS_INVALID_PARAMETER,
				      "the allocation was not created CPU visible (ALF-03)");
	if (allocation->shared && allocation->owner != a->device->process->id)
		return vmm_lock_broke(a, "LOCK-24", STATUS_INVALID_PARAMETER,
				      "a shared allocation that another process created");
	if (vmm_unlikely(a->device->process->viewer && !allocation->viewer))
		return vmm_lock_not_shown(a);
	return STATUS_SUCCESS;
}

/* ALF-13: the address is that of the memory which its creator brought along. A section of a process apart has none. */
static inline bool vmm_lock_is_callers(const struct vmm_instance *instance)
{
	return vmm_is_existing(instance->allocation) &&
	       (!instance->allocation->viewer || instance->backing.seen_at);
}
static inline char *vmm_lock_address(const struct vmm_instance *instance)
{
	if (vmm_likely(!vmm_lock_is_callers(instance)))
		return instance->view.address;
	return instance->allocation->viewer ? instance->backing.seen_at : instance->backing.address;
}

#endif
