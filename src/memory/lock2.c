/* SPDX-License-Identifier: MIT */
/*
 * CPU access from WDDM 2.0 on: Lock2, and pfnLockCb, which does the same (LOCK-51). Nobody synchronizes with the GPU but
 * the client itself (LOCK-43, REF-13); the lock only sees to it that the bytes are where the CPU can reach them. What must
 * move for that, or is being moved, is waited for: there is no address to give out before.
 *
 * What is in no segment, and could be seen by the CPU in none that its set names, stays out until it is unlocked
 * (LOCK-48): `held`.
 */
#include "memory/lock_attempt.h"

enum { /* D3DDDICB_LOCKFLAGS: the few that still mean something */
       READ_ONLY = 0x001,
       WRITE_ONLY = 0x002,
       ACQUIRE_APERTURE = 0x040,
       USE_ALTERNATE_VA = 0x200,
       RESERVED = (int)0xFFFFF800,
};

/* Of D3DDDICB_LOCKFLAGS the others, and a list of pages, are accepted and say nothing (LOCK-51, REN-22). */
static NTSTATUS check_flags(const struct vmm_lock_attempt *a)
{
	uint32_t f = a->request->flags;

	if (!a->lock_cb && f)
		return vmm_lock_broke(a, "LOCK-42", STATUS_INVALID_PARAMETER, "it has no flags");
	if (f & (uint32_t)RESERVED)
		return vmm_lock_broke(a, "LOCK-02", STATUS_INVALID_PARAMETER,
				      "reserved bits are set");
	if ((f & READ_ONLY) && (f & WRITE_ONLY))
		return vmm_lock_broke(a, "LOCK-07", STATUS_INVALID_PARAMETER,
				      "ReadOnly with WriteOnly");
	if (f & (ACQUIRE_APERTURE | USE_ALTERNATE_VA))
		return vmm_lock_broke(a, "SWZ-27", STATUS_INVALID_PARAMETER,
				      "from WDDM 2.0 on there are no swizzling ranges");
	return STATUS_SUCCESS;
}

static bool is_visible(const struct vmm_allocation *allocation)
{
	return allocation->flags & VMM_ALLOCATION_VISIBLE;
}

static NTSTATUS check_permission(const struct vmm_lock_attempt *a)
{
	struct vmm_allocation *allocation = a->ref->allocation;
	NTSTATUS status = vmm_lock_check_access(a);

	if (!NT_SUCCESS(status))
		return status;
	if (vmm_unlikely(allocation->uncommitted)) {
		vmm_reason(a->memory->adapter->observe, STATUS_NO_MEMORY, a->device->process->id,
			   a->request->handle,
			   "OFR-14: %s of 0x%08x, for which the last reclaim found no system "
			   "memory: it is to be reclaimed again",
			   a->call, a->request->handle);
		return STATUS_NO_MEMORY;
	}
	if (vmm_is_offered_locked(allocation))
		return vmm_lock_broke(a, "LOCK-25", STATUS_INVALID_PARAMETER,
				      "it is offered and not reclaimed");
	return STATUS_SUCCESS;
}

/* ---- where the CPU can reach it ---- */

/* In the GPU's memory the CPU does not go to it, whichever segment that is. */
static const char *why_not_in_memory(const struct vmm_allocation *allocation)
{
	if (!is_visible(allocation))
		return "LOCK-47";
	return allocation->flags & VMM_ALLOCATION_CACHED ? "LOCK-44" : NULL;
}

/* While it is on a list it must be somewhere, and there is nowhere that the CPU can go as well. */
static NTSTATUS check_place(const struct vmm_lock_attempt *a)
{
	const struct vmm_allocation *allocation = a->ref->allocation;
	const char *rule = why_not_in_memory(allocation);

	if (!rule || a->instance->held || a->instance->kept || !allocation->listed ||
	    vmm_resident_reaches_aperture(allocation))
		return STATUS_SUCCESS;
	return vmm_lock_broke(
		a, rule, STATUS_INVALID_PARAMETER,
		is_visible(allocation)
			? "it is Cached, resident, and its set names no aperture segment"
			: "it is not CPU visible, resident, and its set names no aperture segment");
}

static bool must_leave(const struct vmm_lock_attempt *a)
{
	const struct vmm_instance *instance = a->instance;

	if (instance->place != VMM_PLACE_MEMORY)
		return false;
	if (instance->kept) /* PAG-15: the CPU has the system copy, of which the GPU's may be newer */
		return instance->gpu_wrote;
	if (why_not_in_memory(instance->allocation))
		return true;
	/* LOCK-46: through the host aperture, or in system memory. */
	return !a->memory->segment[instance->segment - 1].cpu_memory &&
	       !vmm_ok(vmm_host_map(a->memory, a->instance));
}

static NTSTATUS wait_for(struct vmm_lock_attempt *a)
{
	a->wait = true;
	return STATUS_SUCCESS;
}

/* Memory that the GPU uses cannot move. */
static NTSTATUS leave(struct vmm_lock_attempt *a)
{
	struct vmm_instance *instance = a->instance;
	vmm_status status;

	if (instance->allocation->pinned)
		return vmm_lock_broke(a, "LOCK-46", STATUS_GRAPHICS_CANT_EVICT_PINNED_ALLOCATION,
				      "it is pinned where the CPU cannot go"); /* PAG-18 */
	if (vmm_instance_busy(instance, VMM_USE_ACTIVE, &a->timeline, &a->sequence))
		return wait_for(a);
	if (vmm_eviction_loses_content(a->memory, instance))
		return vmm_lock_broke(a, "PAG-20", STATUS_GRAPHICS_CANT_EVICT_PINNED_ALLOCATION,
				      "what is pinned in its eviction apertures leaves no way out");
	status = instance->kept ? vmm_kept_bring_back(a->memory, instance)
				: vmm_residency_evict(a->memory, instance, VIDMM_RESIDENCY_LOCK);
	if (status == VMM_PENDING) { /* PAG-17: its way out is in use */
		vmm_eviction_blocker(a->memory, instance, &a->timeline, &a->sequence);
		return wait_for(a);
	}
	if (vmm_ok(status) && instance->allocation->listed && !instance->kept)
		vmm_resident_into_aperture(a->memory, instance);
	if (vmm_ok(status))
		vmm_memory_flush_locked(a->memory->adapter);
	return status;
}

/*
 * On a list, and out of memory at the moment, because another device has its turn (RES-08); or off it, and named by work
 * of before (RES-07). Were it held out now, work that its client rightly queued could not run (LOCK-45, LKR-09).
 */
static NTSTATUS come_in(struct vmm_lock_attempt *a)
{
	uint64_t round = vmm_resident_round(a->memory);
	vmm_status status;

	a->progress_seen = atomic_load(&a->memory->adapter->progress);
	vmm_resident_want(a->device, round);
	status = vmm_resident_place(a->memory, a->instance, round);
	vmm_memory_flush_locked(a->memory->adapter);
	if (status == VMM_PENDING) {
		a->wait_for_progress = true;
		return wait_for(a);
	}
	return status == VMM_NO_VIDEO_MEMORY ? STATUS_NO_MEMORY : status;
}

static bool is_out(const struct vmm_instance *instance)
{
	return instance->place != VMM_PLACE_MEMORY && instance->place != VMM_PLACE_APERTURE;
}

static bool is_named_by_queued_work(struct vmm_lock_attempt *a)
{
	return vmm_instance_busy(a->instance, VMM_USE_ANY, &a->timeline, &a->sequence) &&
	       a->timeline != a->memory->adapter->paging_timeline;
}

static NTSTATUS settle_outside(struct vmm_lock_attempt *a)
{
	const struct vmm_instance *instance = a->instance;
	bool named;

	if (instance->held || instance->lock_count ||
	    vmm_resident_reaches_aperture(instance->allocation))
		return STATUS_SUCCESS;
	named = is_named_by_queued_work(a);
	if (!named && !instance->allocation->listed)
		return STATUS_SUCCESS;
	/* What cannot be locked in there either is locked when that work is done. */
	return named && why_not_in_memory(instance->allocation) ? wait_for(a) : come_in(a);
}

/* Content that is being moved: its bytes are not yet where the view would show. */
static bool paging_in_flight(struct vmm_lock_attempt *a)
{
	uint32_t t = a->memory->adapter->paging_timeline;
	uint64_t last = atomic_load_explicit(&a->instance->written[t], memory_order_relaxed);

	if (vmm_timeline_done(a->memory->adapter, t, last))
		return false;
	a->wait = true;
	a->timeline = t;
	a->sequence = last;
	return true;
}

static NTSTATUS make_accessible(struct vmm_lock_attempt *a)
{
	struct vmm_instance *instance = a->instance;
	NTSTATUS status = STATUS_SUCCESS;

	if (must_leave(a))
		status = leave(a);
	else if (is_out(instance))
		status = settle_outside(a);
	if (!NT_SUCCESS(status) || a->wait)
		return status;
	if (instance->place == VMM_PLACE_FRESH || instance->place == VMM_PLACE_LOST) {
		status = vmm_residency_give_backing(a->memory, instance);
		if (!vmm_ok(status))
			return status;
		instance->place = VMM_PLACE_SYSTEM;
	}
	if (paging_in_flight(a) || vmm_lock_is_callers(instance)) /* ALF-13 */
		return STATUS_SUCCESS;
	return vmm_view_show(a->memory, instance);
}

/* Nothing can fail any more. */
static void let_in(struct vmm_lock_attempt *a)
{
	struct vmm_instance *instance = a->instance;
	struct vmm_allocation *allocation = instance->allocation;
	const struct vmm_lock_request whole = {.flags = a->request->flags & READ_ONLY};

	if (allocation->flags & (VMM_ALLOCATION_CACHED | VMM_ALLOCATION_KEPT)) {
		vmm_coherence_to_cpu(a->memory, instance, whole.flags);
		vmm_kept_locked(instance, &whole, true);
	}
	a->ref->lock_count++; /* LOCK-27: locks nest */
	if (!instance->lock_count++)
		instance->lock_flags = 0;
	if (is_out(instance) && !instance->held && !vmm_resident_reaches_aperture(allocation)) {
		instance->held = true;
		if (atomic_load(&a->memory->adapter->paging_work)) /* who waits for a queue looks */
			vmm_progress_signal(a->memory->adapter);
	}
	a->request->data = vmm_lock_address(instance);
}

/* One try under the paging lock. a->wait: nothing was given out, wait and try again. */
static NTSTATUS attempt(struct vmm_lock_attempt *a)
{
	NTSTATUS status;

	a->wait = a->wait_for_progress = false;
	if (vmm_device_lost(a->device)) /* LOCK-33: the adapter may have been reset meanwhile */
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
			vmm_lock_no_memory(a);
	}
	if (!NT_SUCCESS(status) || a->wait)
		return status;
	let_in(a);
	vmm_gate_open(a->ref);
	return STATUS_SUCCESS;
}

static NTSTATUS lock(struct vmm_lock_attempt *a)
{
	struct vmm_adapter *adapter = a->device->adapter;
	uint64_t waited_ns = a->request->waited_ns;
	NTSTATUS status;

	do {
		vmm_paging_lock(adapter);
		status = attempt(a);
		uint64_t bytes =
			NT_SUCCESS(status) && !a->wait ? a->ref->allocation->size_bytes : 0;
		if (waited_ns && !a->wait)
			vmm_lock_count_wait(a, waited_ns, NT_SUCCESS(status));
		vmm_paging_unlock(adapter);
		if (NT_SUCCESS(status) && !a->wait)
			vmm_event(adapter->observe, VIDMM_EVENT_LOCK, a->device->process->id,
				  a->request->handle, 0, a->request->flags, waited_ns, bytes,
				  a->request->handle);
		/* Refused because the adapter is about to be reset; afterwards it is clear whether the device is lost. */
		if (status == STATUS_DEVICE_REMOVED && atomic_load(&adapter->recovering)) {
			status = STATUS_SUCCESS;
			continue;
		}
		if (!NT_SUCCESS(status) || !a->wait)
			return status;
		status = vmm_lock_wait(a, &waited_ns);
	} while (status == STATUS_SUCCESS);
	a->request->waited_ns = waited_ns;
	return status;
}

NTSTATUS vmm_lock_wddm2(struct vmm_device *device, struct vmm_lock_request *request)
{
	struct vmm_lock_attempt a = {.device = device,
				     .memory = device->adapter->memory,
				     .request = request,
				     .call = "lock",
				     .lock_cb = true};

	return lock(&a);
}

NTSTATUS vmm_memory_lock2(struct vmm_device *device, struct vmm_lock_request *request)
{
	struct vmm_lock_attempt a = {.device = device,
				     .memory = device->adapter->memory,
				     .request = request,
				     .call = "lock2"};

	if (device->adapter->wddm2)
		return !request->flags && vmm_lock_at_gate(device, request) ? STATUS_SUCCESS
									    : lock(&a);
	vmm_reason(device->adapter->observe, STATUS_NOT_SUPPORTED, device->process->id,
		   request->handle,
		   "lock2: the adapter's miniport is of WDDM 1.x, where locks synchronize");
	return STATUS_NOT_SUPPORTED;
}

void vmm_lock_wddm2_released(struct vmm_instance *instance)
{
	struct vmm_adapter *adapter = instance->allocation->adapter;

	if (instance->lock_count)
		return;
	instance->not_written =
		false; /* PRI-10: what an Evict has said of it was before this lock */
	instance->held = false;
	if (instance->allocation->flags & VMM_ALLOCATION_CPU_VISIBLE_ON_DEMAND) {
		vmm_os_view_release(&instance->view); /* ALF-27: the address is not kept */
		instance->view_current = false;
		vmm_host_unmap_soon(adapter->memory, instance);
	}
	if (atomic_load(&adapter->paging_work)) /* what was held out, or could not leave */
		adapter->memory->engine->wake(adapter);
}
