/* SPDX-License-Identifier: MIT */
/*
 * CPU locks from WDDM 2.0 on: Lock2, and pfnLockCb, which does the same (LOCK-51).
 *
 * The client synchronizes with the GPU itself: the lock does not wait until the GPU has finished
 * with the content (LOCK-43, REF-13). The lock returns an address at which the CPU can access the
 * content. If the content has to move for that, or is moving, the lock waits for the end of the
 * move.
 *
 * An instance that is locked while it is in no segment, and that the CPU could access in no segment
 * of its set, is held out: it stays in system memory until it is unlocked (`held`, LOCK-48).
 */
#include "base/lock_flags.h"
#include "memory/image/image.h"
#include "memory/locks/lock_attempt.h"
#include "memory/locks/locks.h"
#include "memory/residency/residency.h"
#include "memory/sets/sets.h"
#include "memory/state/state.h"
#include "memory/store/store.h"

/*
 * The other bits of D3DDDICB_LOCKFLAGS and a page list are accepted and ignored. (LOCK-51, REN-22)
 */
static NTSTATUS check_flags(const struct vmm_lock_attempt *a) VMM_REQUIRES(vmm_paging_lock_class)
{
	uint32_t f = a->request->flags;

	vmm_assert_held(&a->device->adapter->paging_lock);
	if (!a->lock_cb && f)
		return vmm_lock_refuse(a, "LOCK-42", STATUS_INVALID_PARAMETER,
				       "lock2 has no flags, so they must be 0");
	NTSTATUS status = vmm_lock_check_flags(a);
	if (!NT_SUCCESS(status))
		return status;
	if (f & (VMM_LOCK_ACQUIRE_APERTURE | VMM_LOCK_USE_ALTERNATE_VA))
		return vmm_lock_refuse(
			a, "SWZ-27", STATUS_INVALID_PARAMETER,
			"AcquireAperture and UseAlternateVA need swizzling ranges, which WDDM "
			"2.0 removed");
	return STATUS_SUCCESS;
}

static bool is_visible(const struct vmm_allocation *allocation)
{
	return allocation->flags & VMM_ALLOCATION_VISIBLE;
}

static NTSTATUS check_permission(const struct vmm_lock_attempt *a)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	NTSTATUS status = vmm_lock_check_access(a);

	vmm_assert_held(&a->device->adapter->paging_lock);
	return NT_SUCCESS(status) ? vmm_lock_check_obstacles(a) : status;
}

/* ---- making the content reachable ---- */

/* Returns the rule that forbids CPU access to the allocation in any memory segment, or NULL. */
static const char *rule_against_memory(const struct vmm_allocation *allocation)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&allocation->adapter->paging_lock);
	if (!is_visible(allocation))
		return "LOCK-47";
	return allocation->flags & VMM_ALLOCATION_CACHED ? "LOCK-44" : NULL;
}

/*
 * Refuses to lock an allocation that is on a residency list and that the CPU can access in no
 * segment of its set: it must be resident, and would have to leave for the lock. (LOCK-44, LOCK-47)
 */
static NTSTATUS check_place(const struct vmm_lock_attempt *a) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_allocation *allocation = a->ref->allocation;
	const char *rule = rule_against_memory(allocation);

	vmm_assert_held(&a->device->adapter->paging_lock);
	if (!rule || a->instance->held || a->instance->retained || !allocation->listed ||
	    vmm_allocation_resident_set_has_aperture(allocation))
		return STATUS_SUCCESS;
	return vmm_lock_refuse(
		a, rule, STATUS_INVALID_PARAMETER,
		is_visible(allocation)
			? "it is Cached and resident, and its set names no aperture segment"
			: "it is not CPU visible, it is resident, and its set names no aperture "
			  "segment");
}

static bool must_leave(const struct vmm_lock_attempt *a) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_instance *instance = a->instance;

	vmm_assert_held(&a->device->adapter->paging_lock);
	if (instance->place != VMM_PLACEMENT_MEMORY)
		return false;
	if (instance->retained) /* the CPU uses the system copy; the GPU's may be newer (PAG-15) */
		return instance->gpu_wrote;
	if (rule_against_memory(instance->allocation))
		return true;
	/* The CPU reaches it through the host aperture, or else in system memory. (LOCK-46) */
	return !a->memory->segment[instance->segment - 1].cpu_memory &&
	       !vmm_ok(vmm_host_map(a->memory, a->instance));
}

/* Evicts the instance, or updates its retained system copy. Waits while the GPU uses it. */
static NTSTATUS move_out(struct vmm_lock_attempt *a) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_instance *instance = a->instance;
	vmm_status status;

	vmm_assert_held(&a->device->adapter->paging_lock);
	a->progress_seen = atomic_load(&a->memory->adapter->progress);
	if (instance->allocation->pinned)
		return vmm_lock_refuse(
			a, "LOCK-46", STATUS_GRAPHICS_CANT_EVICT_PINNED_ALLOCATION,
			"it is pinned in a segment that the CPU cannot access"); /* PAG-18 */
	if (vmm_instance_busy(instance, VMM_USE_ACTIVE, &a->timeline, &a->sequence))
		return VMM_LOCK_RETRY;
	if (vmm_eviction_loses_content(a->memory, instance))
		return vmm_lock_refuse(
			a, "PAG-20", STATUS_GRAPHICS_CANT_EVICT_PINNED_ALLOCATION,
			"pinned allocations in the apertures of its EvictionSegmentSet leave "
			"too little space to evict it");
	status = instance->retained
			 ? vmm_retained_restore(a->memory, instance)
			 : vmm_residency_evict(a->memory, instance, VIDMM_RESIDENCY_LOCK);
	if (status == VMM_PENDING) { /* the GPU uses the eviction apertures (PAG-17) */
		vmm_eviction_blocker(a->memory, instance, &a->timeline, &a->sequence);
		a->wait_for_progress = !a->sequence; /* what another lock keeps */
		return VMM_LOCK_RETRY;
	}
	if (vmm_ok(status) && instance->allocation->listed && !instance->retained)
		vmm_residency_list_into_aperture(a->memory, instance);
	if (vmm_ok(status))
		vmm_memory_flush_locked(a->memory->adapter);
	return status;
}

/*
 * Makes an instance resident that must not be held out. It is on a list and was evicted because
 * another device's packets run (RES-08); or it is off the list and queued work still references it
 * (RES-07). If it were held out, work that its client has validly queued could not run (LOCK-45,
 * LKR-09).
 */
static NTSTATUS page_in(struct vmm_lock_attempt *a) VMM_REQUIRES(vmm_paging_lock_class)
{
	uint64_t round = vmm_residency_list_round(a->memory);
	vmm_status status;

	vmm_assert_held(&a->device->adapter->paging_lock);
	a->progress_seen = atomic_load(&a->memory->adapter->progress);
	vmm_residency_list_want(a->device, round);
	status = vmm_residency_list_place(a->memory, a->instance, round);
	vmm_memory_flush_locked(a->memory->adapter);
	if (status == VMM_PENDING) {
		a->wait_for_progress = true;
		return VMM_LOCK_RETRY;
	}
	return status == VMM_NO_VIDEO_MEMORY ? STATUS_NO_MEMORY : status;
}

static bool is_out(const struct vmm_instance *instance)
{
	return instance->place != VMM_PLACEMENT_MEMORY && instance->place != VMM_PLACEMENT_APERTURE;
}

static bool is_referenced_by_queued_work(struct vmm_lock_attempt *a)
{
	return vmm_instance_busy(a->instance, VMM_USE_ANY, &a->timeline, &a->sequence) &&
	       a->timeline != a->memory->adapter->paging_timeline;
}

static NTSTATUS choose_outside(struct vmm_lock_attempt *a) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_instance *instance = a->instance;
	bool named;

	vmm_assert_held(&a->device->adapter->paging_lock);
	if (instance->held || instance->lock_count ||
	    vmm_allocation_resident_set_has_aperture(instance->allocation))
		return STATUS_SUCCESS;
	named = is_referenced_by_queued_work(a);
	if (!named && !instance->allocation->listed)
		return STATUS_SUCCESS;
	/*
	 * An instance that the CPU cannot access in a segment either is locked when that work is
	 * complete.
	 */
	return named && rule_against_memory(instance->allocation) ? VMM_LOCK_RETRY : page_in(a);
}

static NTSTATUS make_accessible(struct vmm_lock_attempt *a) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_instance *instance = a->instance;
	NTSTATUS status = STATUS_SUCCESS;

	vmm_assert_held(&a->device->adapter->paging_lock);
	if (must_leave(a))
		status = move_out(a);
	else if (is_out(instance))
		status = choose_outside(a);
	if (!NT_SUCCESS(status))
		return status;
	if (instance->place == VMM_PLACEMENT_FRESH || instance->place == VMM_PLACEMENT_LOST) {
		status = vmm_residency_ensure_backing(a->memory, instance);
		if (!vmm_ok(status))
			return status;
		instance->place = VMM_PLACEMENT_SYSTEM;
	}
	if (vmm_lock_paging_in_flight(a)) {
		if (!is_out(instance)) /* */
			vmm_lock_keep_arrival(a, true);
		return VMM_LOCK_RETRY;
	}
	if (vmm_lock_uses_callers_memory(instance)) /* ALF-13 */
		return STATUS_SUCCESS;
	return vmm_view_map(a->memory, instance);
}

/* Grants the lock; cannot fail. */
static void grant(struct vmm_lock_attempt *a) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_instance *instance = a->instance;
	struct vmm_allocation *allocation = instance->allocation;
	const struct vmm_lock_request whole = {.flags = a->request->flags & VMM_LOCK_READ_ONLY};

	vmm_assert_held(&a->device->adapter->paging_lock);
	if (allocation->flags & (VMM_ALLOCATION_CACHED | VMM_ALLOCATION_RETAINED)) {
		vmm_coherence_to_cpu(a->memory, instance, whole.flags);
		vmm_retained_note_lock(instance, &whole, true);
	}
	instance->store_stale = true; /* the CPU may write to the segment's copy */
	a->ref->lock_count++;         /* LOCK-27: locks nest */
	if (!instance->lock_count++) {
		instance->lock_flags = 0;
		instance->locked_by = a->device->process->id;
	} else if (instance->locked_by != a->device->process->id) {
		instance->locked_by = 0;
	}
	if (is_out(instance) && !instance->held &&
	    !vmm_allocation_resident_set_has_aperture(allocation)) {
		instance->held = true;
		/*
		 * Threads that destroy a paging queue wait for it to be idle or held up: they check
		 * again.
		 */
		if (atomic_load(&a->memory->adapter->paging_work))
			vmm_progress_signal(a->memory->adapter);
	}
	a->request->data = vmm_lock_address(instance);
}

/* One try. The caller holds the paging lock. */
static NTSTATUS attempt(struct vmm_lock_attempt *a) VMM_REQUIRES(vmm_paging_lock_class)
{
	NTSTATUS status;

	vmm_assert_held(&a->device->adapter->paging_lock);
	a->wait_for_progress = false;
	/* The adapter may have been reset during a wait. (LOCK-33) */
	if (vmm_device_lost(a->device))
		return STATUS_DEVICE_REMOVED;
	status = vmm_lock_find(a);
	if (NT_SUCCESS(status))
		status = check_flags(a);
	if (NT_SUCCESS(status))
		status = check_permission(a);
	if (NT_SUCCESS(status))
		status = check_place(a);
	if (NT_SUCCESS(status)) {
		status = make_accessible(a);
		if (vmm_unlikely(status == STATUS_NO_MEMORY))
			vmm_lock_report_no_memory(a);
	}
	if (!NT_SUCCESS(status))
		return status;
	grant(a);
	vmm_fast_lock_enable(a->ref);
	return STATUS_SUCCESS;
}

static NTSTATUS lock(struct vmm_lock_attempt *a)
{
	struct vmm_adapter *adapter = a->device->adapter;
	uint64_t waited_ns = a->request->waited_ns;
	NTSTATUS status;

	do {
		vmm_paging_lock(adapter);
		vmm_lock_end_arrival(a);
		status = attempt(a);
		uint64_t bytes = NT_SUCCESS(status) ? a->ref->allocation->size_bytes : 0;
		if (waited_ns && status != VMM_LOCK_RETRY)
			vmm_lock_count_wait(a, waited_ns, NT_SUCCESS(status));
		vmm_paging_commit(adapter);
		if (NT_SUCCESS(status))
			vmm_event(adapter->observe, VIDMM_EVENT_LOCK, a->device->process->id,
				  a->request->handle, 0, a->request->flags, waited_ns, bytes,
				  a->request->handle);
		/*
		 * The adapter is about to be reset. The next try waits for the end of the reset and
		 * sees whether the device is lost.
		 */
		if (status == STATUS_DEVICE_REMOVED && atomic_load(&adapter->recovering)) {
			status = STATUS_SUCCESS;
			continue;
		}
		if (status != VMM_LOCK_RETRY)
			return status;
		status = vmm_lock_wait(a, &waited_ns);
	} while (status == STATUS_SUCCESS);
	vmm_lock_give_up_arrival(a);
	a->request->waited_ns = waited_ns;
	return status;
}

/* LOCK-51 */
NTSTATUS vmm_lock_wddm2(struct vmm_device *device, struct vmm_lock_request *request)
{
	struct vmm_lock_attempt a = {.device = device,
				     .memory = device->adapter->memory,
				     .request = request,
				     .call = "lock",
				     .lock_cb = true};

	return lock(&a);
}

/* Locks without renaming. (REF-13) */
NTSTATUS vmm_lock2_wddm2(struct vmm_device *device, struct vmm_lock_request *request)
{
	struct vmm_lock_attempt a = {.device = device,
				     .memory = device->adapter->memory,
				     .request = request,
				     .call = "lock2"};

	return !request->flags && vmm_lock_fast(device, request) ? STATUS_SUCCESS : lock(&a);
}

void vmm_lock_wddm2_released(struct vmm_instance *instance)
{
	struct vmm_adapter *adapter = instance->allocation->adapter;

	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	if (instance->lock_count)
		return;
	instance->not_written = false; /* an Evict said so before this lock (PRI-10) */
	instance->held = false;
	if (instance->allocation->flags & VMM_ALLOCATION_CPU_VISIBLE_ON_DEMAND) {
		/* The address is valid only while locked. (ALF-27) */
		vmm_os_view_release(&instance->view);
		instance->view_current = false;
		vmm_host_unmap_soon(adapter->memory, instance);
	}
	/* Paging operations or evictions may have waited for the unlock. */
	if (atomic_load(&adapter->paging_work))
		adapter->memory->engine->wake(adapter);
	vmm_unlock_released(adapter->memory);
}
