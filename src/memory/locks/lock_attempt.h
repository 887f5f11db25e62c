/* SPDX-License-Identifier: MIT */
/*
 * What the locks of WDDM 1.x (lock.c) and of 2.x (lock2.c) have in common: lookup, access checks,
 * waiting, refusals.
 */
#ifndef VMM_MEMORY_LOCK_ATTEMPT_H
#define VMM_MEMORY_LOCK_ATTEMPT_H

#include "memory/state/state.h"

/*
 * The steps of an attempt return this if the lock must wait and then try again (vmm_lock_wait). It
 * is the status of no DDI; no lock call returns it.
 */
#define VMM_LOCK_RETRY ((NTSTATUS)0xE0000001)

/* One try of a lock. */
struct vmm_lock_attempt {
	struct vmm_device *device;
	struct vmm_memory *memory;
	struct vmm_lock_request *request;
	struct vmm_ref *ref;
	struct vmm_instance *instance;
	const char *call; /* "lock", "lock2" */
	bool lock_cb;     /* the rules of pfnLockCb apply */
	bool renamed;     /* 1.x: instance was chosen by Discard */
	char *address;    /* 1.x: of the first page, if it is not in the view; else NULL */
	/* With VMM_LOCK_RETRY: what to wait for, progress or `sequence` of `timeline`. */
	bool wait_for_progress;
	uint32_t timeline, progress_seen;
	uint64_t sequence;
	/* Until the next try: what this lock waits for stays where it is */
	struct vmm_arrival arrival;
};

/* Reports that the request breaks the rule; returns `status`. */
NTSTATUS vmm_lock_refuse(const struct vmm_lock_attempt *a, const char *rule, NTSTATUS status,
			 const char *what) VMM_COLD VMM_REQUIRES(vmm_paging_lock_class);
/* Refuses the flags that no version of pfnLockCb allows. (LOCK-02, LOCK-07) */
NTSTATUS vmm_lock_check_flags(const struct vmm_lock_attempt *a) VMM_REQUIRES(vmm_paging_lock_class)
VMM_MUST_CHECK;
/* Refuses the lock of a Protected allocation. (ALF-08) */
NTSTATUS vmm_lock_refuse_protected(const struct vmm_lock_attempt *a) VMM_COLD
	VMM_REQUIRES(vmm_paging_lock_class);
/* Refuses the lock of content that is never mapped into an out-of-process client. */
NTSTATUS vmm_lock_refuse_unmappable(const struct vmm_lock_attempt *a) VMM_COLD;
/* Refuses the lock of content that a reset has lost, and reports the reason. (TDR-11) */
NTSTATUS vmm_lock_refuse_content_lost(const struct vmm_lock_attempt *a) VMM_COLD;
/*
 * Refuses the lock for one of the obstacles, if a rule says so. An offer that has not taken effect
 * and a previous instance may be locked. (OFR-05, OFR-14, LOCK-25, LOCK-26, REN-19)
 */
NTSTATUS vmm_lock_refuse_obstacle(const struct vmm_lock_attempt *a, uint32_t obstacles) VMM_COLD
	VMM_REQUIRES(vmm_paging_lock_class);
static inline NTSTATUS vmm_lock_check_obstacles(const struct vmm_lock_attempt *a)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	uint32_t obstacles = vmm_lock_obstacles(a->instance);

	vmm_assert_held(&a->device->adapter->paging_lock);
	return vmm_likely(!obstacles) ? STATUS_SUCCESS : vmm_lock_refuse_obstacle(a, obstacles);
}
/* Reports why the lock answers STATUS_NO_MEMORY. The caller holds the paging lock. (LOCK-32) */
void vmm_lock_report_no_memory(const struct vmm_lock_attempt *a) VMM_COLD
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * The content that the lock waits for, in a segment, stays there until the lock is tried again.
 * from_all: also if packets and paging operations need the space.
 */
void vmm_lock_keep_arrival(struct vmm_lock_attempt *a, bool from_all)
	VMM_REQUIRES(vmm_paging_lock_class);
/* The lock is tried again. Does nothing if it kept nothing. */
void vmm_lock_end_arrival(struct vmm_lock_attempt *a) VMM_REQUIRES(vmm_paging_lock_class);
/* The wait has failed: the lock is not tried again. Takes the paging lock. */
void vmm_lock_give_up_arrival(struct vmm_lock_attempt *a) VMM_COLD;
/*
 * Waits for what the attempt must wait for, on behalf of the calling process. Adds the time to
 * *waited_ns. Returns VMM_PENDING if the device is paused. No lock of vidmm is held.
 */
vmm_status vmm_lock_wait(const struct vmm_lock_attempt *a, uint64_t *waited_ns);

/* Counts a lock that has waited and returns now. The caller holds the paging lock. */
static inline void vmm_lock_count_wait(const struct vmm_lock_attempt *a, uint64_t waited_ns,
				       bool locked)
{
	a->memory->statistics.lock_waits++;
	a->memory->statistics.lock_wait_ns += locked ? waited_ns : 0;
}

/* Looks up the handle of the request, and disables the fast path of its instance. (LOCK-31) */
static inline NTSTATUS vmm_lock_find(struct vmm_lock_attempt *a) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_process *process = a->device->process;

	vmm_assert_held(&a->device->adapter->paging_lock);
	a->ref = vmm_fast_lock_find(a->device, a->request->handle);
	if (!a->ref) {
		vmm_process_lock(process);
		a->ref = vmm_ref_lookup_locked(a->device, a->request->handle);
		if (!a->ref)
			vmm_ref_report(a->device, a->request->handle, "LOCK-31", a->call);
		vmm_process_unlock(process);
		if (!a->ref)
			return STATUS_INVALID_PARAMETER;
		vmm_fast_lock_bind(a->ref);
	}
	a->instance = a->ref->instance;
	vmm_fast_lock_disable(a->instance);
	return STATUS_SUCCESS;
}

/*
 * Is the paging packet that moves the content incomplete? Then a lock waits for it, whatever its
 * flags are: the view would show other bytes.
 */
static inline bool vmm_lock_paging_in_flight(struct vmm_lock_attempt *a)
{
	const struct vmm_adapter *adapter = a->memory->adapter;
	uint32_t t = adapter->paging_timeline;
	uint64_t last = atomic_load_explicit(&a->instance->written[t], memory_order_relaxed);

	if (vmm_timeline_done(adapter, t, last))
		return false;
	a->timeline = t;
	a->sequence = last;
	return true;
}

/*
 * May the CPU access the allocation at all, and may this process? (ALF-03, ALF-08, LOCK-23,
 * LOCK-24, Q-93)
 */
static inline NTSTATUS vmm_lock_check_access(const struct vmm_lock_attempt *a)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_allocation *allocation = a->ref->allocation;

	vmm_assert_held(&a->device->adapter->paging_lock);
	if (vmm_unlikely(allocation->reset_lost))
		return vmm_lock_refuse_content_lost(a);
	if (allocation->flags & VMM_ALLOCATION_PROTECTED) /* */
		return vmm_lock_refuse_protected(a);
	if (a->lock_cb && !(allocation->flags & VMM_ALLOCATION_VISIBLE))
		return vmm_lock_refuse(a, "LOCK-23", STATUS_INVALID_PARAMETER,
				       "the allocation was not created CPU visible (ALF-03)");
	if (allocation->shared && allocation->owner != a->device->process->id)
		return vmm_lock_refuse(
			a, "LOCK-24", STATUS_INVALID_PARAMETER,
			"only the process that created a shared allocation may lock it");
	if (vmm_unlikely(a->device->process->viewer && !allocation->viewer))
		return vmm_lock_refuse_unmappable(a);
	return STATUS_SUCCESS;
}

/*
 * Is the lock's address that of the memory which the creator supplied (ALF-13)? A section that an
 * out-of-process client named has no such address.
 */
static inline bool vmm_lock_uses_callers_memory(const struct vmm_instance *instance)
{
	return vmm_is_existing(instance->allocation) &&
	       (!instance->allocation->viewer || instance->backing.client_address);
}
static inline char *vmm_lock_address(const struct vmm_instance *instance)
{
	if (vmm_likely(!vmm_lock_uses_callers_memory(instance)))
		return instance->view.address;
	return instance->allocation->viewer ? instance->backing.client_address
					    : instance->backing.address;
}

#endif
