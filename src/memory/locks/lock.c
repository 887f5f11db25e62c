/* SPDX-License-Identifier: MIT */
/*
 * CPU locks of WDDM 1.x (pfnLockCb, pfnUnlockCb), except the fast path (fast_lock.c).
 *
 * A lock makes its checks in the order of Q-02: handle and device, flag combinations, permission,
 * lock state, GPU synchronization or renaming, residency. Then it maps the content. The first check
 * that fails determines the status, and nothing has been changed then.
 *
 * A lock call waits with no mutex of vidmm held. After the wait everything is looked up and checked
 * again.
 */
#include "base/lock_flags.h"
#include "memory/image/image.h"
#include "memory/locks/lock_attempt.h"
#include "memory/locks/locks.h"
#include "memory/residency/residency.h"
#include "memory/state/state.h"
#include "memory/store/store.h"

static NTSTATUS check_flags(const struct vmm_lock_attempt *a) VMM_REQUIRES(vmm_paging_lock_class)
{
	uint32_t f = a->request->flags;

	vmm_assert_held(&a->device->adapter->paging_lock);
	NTSTATUS status = vmm_lock_check_flags(a);
	if (!NT_SUCCESS(status))
		return status;
	if ((f & VMM_LOCK_IGNORE_SYNC) && (f & VMM_LOCK_ACQUIRE_APERTURE))
		return vmm_lock_refuse(a, "LOCK-14", STATUS_INVALID_PARAMETER,
				       "IgnoreSync with AcquireAperture");
	if ((f & VMM_LOCK_USE_ALTERNATE_VA) && !(f & VMM_LOCK_ACQUIRE_APERTURE))
		return vmm_lock_refuse(a, "SWZ-23", STATUS_INVALID_PARAMETER,
				       "UseAlternateVA without AcquireAperture");
	if ((f & VMM_LOCK_ENTIRE) && (a->request->page_count || a->request->page_list_given))
		return vmm_lock_refuse(a, "LOCK-17", STATUS_INVALID_PARAMETER,
				       "LockEntire with a page list");
	if (a->request->page_count && !a->request->page_list_given)
		return vmm_lock_refuse(a, "LOCK-18", STATUS_INVALID_PARAMETER,
				       "NumPages without a page list");
	return STATUS_SUCCESS;
}

static NTSTATUS check_pages(const struct vmm_lock_attempt *a) VMM_REQUIRES(vmm_paging_lock_class)
{
	uint64_t pages = vmm_store_bytes(a->ref->allocation) >> VMM_PAGE_SHIFT; /* SWZ-30 */

	vmm_assert_held(&a->device->adapter->paging_lock);
	for (uint32_t i = 0; i < a->request->page_count; i++) {
		if (a->request->pages[i] < pages)
			continue;
		return vmm_refuse_rule(
			a->memory->adapter->observe, STATUS_INVALID_PARAMETER, "LOCK-18",
			a->device->process->id, a->request->handle,
			"lock of 0x%08x: page %u (entry %u) is beyond the allocation's %llu pages",
			a->request->handle, a->request->pages[i], i, (unsigned long long)pages);
	}
	return STATUS_SUCCESS;
}

static bool any_coherent_aperture(const struct vmm_memory *memory)
{
	for (uint32_t i = 0; i < memory->segment_count; i++)
		if (memory->segment[i].port->flags.CacheCoherent)
			return true;
	return false;
}

/*
 * Checks whether the CPU may access the allocation while the GPU uses it (LOCK-13). A lock with
 * Discard that renames gets an idle instance: no check is needed, and DonotWait, IgnoreSync and
 * IgnoreReadSync have no effect (LOCK-09, LOCK-12, LOCK-16).
 */
static NTSTATUS check_unsynchronized(const struct vmm_lock_attempt *a)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_allocation *allocation = a->ref->allocation;

	vmm_assert_held(&a->device->adapter->paging_lock);
	if (!(a->request->flags & (VMM_LOCK_IGNORE_SYNC | VMM_LOCK_IGNORE_READ_SYNC)))
		return STATUS_SUCCESS;
	if ((a->request->flags & VMM_LOCK_DISCARD) && !vmm_allocation_is_never_renamed(allocation))
		return STATUS_SUCCESS;
	if (!vmm_allocation_reaches_aperture(allocation))
		return vmm_lock_refuse(
			a, "LOCK-13", STATUS_INVALID_PARAMETER,
			"IgnoreSync or IgnoreReadSync, but no aperture segment is in both its "
			"sets");
	if (allocation->flags & VMM_ALLOCATION_SWIZZLED)
		return vmm_lock_refuse(a, "LOCK-13", STATUS_INVALID_PARAMETER,
				       "IgnoreSync or IgnoreReadSync on a swizzled allocation");
	if ((allocation->flags & VMM_ALLOCATION_CACHED) && !any_coherent_aperture(a->memory))
		return vmm_lock_refuse(
			a, "LOCK-13", STATUS_INVALID_PARAMETER,
			"IgnoreSync or IgnoreReadSync on a cached allocation without a coherent "
			"aperture");
	return STATUS_SUCCESS;
}

static NTSTATUS check_permission(const struct vmm_lock_attempt *a)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_allocation *allocation = a->ref->allocation;
	NTSTATUS status = vmm_lock_check_access(a); /* LOCK-23, ALF-03, LOCK-24 */

	if (!NT_SUCCESS(status))
		return status;

	vmm_assert_held(&a->device->adapter->paging_lock);
	if ((allocation->flags & VMM_ALLOCATION_ALTERNATE) &&
	    !(a->request->flags & VMM_LOCK_USE_ALTERNATE_VA))
		return vmm_lock_refuse(
			a, "SWZ-26", STATUS_INVALID_PARAMETER,
			"a primary created with UseAlternateVA must be locked with UseAlternateVA");
	return vmm_lock_check_obstacles(a);
}

static NTSTATUS refuse_not_built(const struct vmm_lock_attempt *a, const char *what)
{
	return vmm_refuse_reason(a->memory->adapter->observe, STATUS_NOT_SUPPORTED,
				 a->device->process->id, a->request->handle,
				 "lock with AcquireAperture: %s", what);
}

/*
 * The CPU never has the linear image and the swizzled bytes mapped at the same time. (SWZ-14,
 * SWZ-15)
 */
static NTSTATUS check_aperture(const struct vmm_lock_attempt *a) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_allocation *allocation = a->ref->allocation;
	uint32_t flags = a->request->flags;

	vmm_assert_held(&a->device->adapter->paging_lock);
	if ((flags & VMM_LOCK_USE_ALTERNATE_VA) && allocation->shared)
		return vmm_lock_refuse(a, "SWZ-23", STATUS_INVALID_PARAMETER,
				       "UseAlternateVA on a shared allocation");
	if ((flags & VMM_LOCK_USE_ALTERNATE_VA) && allocation->primary &&
	    !(allocation->flags & VMM_ALLOCATION_ALTERNATE))
		return vmm_lock_refuse(
			a, "SWZ-26", STATUS_INVALID_PARAMETER,
			"UseAlternateVA on a primary created without UseAlternateVA");
	/*
	 * If the adapter has swizzling ranges, an alternate address may point into an aperture
	 * segment.
	 */
	if ((flags & VMM_LOCK_ACQUIRE_APERTURE) &&
	    !((flags & VMM_LOCK_USE_ALTERNATE_VA) && a->memory->caps->swizzling_range_count) &&
	    !vmm_allocation_memory_set(allocation))
		return vmm_lock_refuse(a, "SWZ-16", STATUS_INVALID_PARAMETER,
				       "AcquireAperture, but its sets name only aperture segments");
	if (vmm_memory_has_aperture_lock(a->instance))
		return vmm_lock_refuse(a, "SWZ-15", STATUS_INVALID_PARAMETER,
				       "it is already locked with AcquireAperture");
	if (a->instance->lock_count)
		return vmm_lock_refuse(
			a, "SWZ-14", STATUS_INVALID_PARAMETER,
			"AcquireAperture, but it is already locked without AcquireAperture");
	if (vmm_unlikely((flags & VMM_LOCK_USE_ALTERNATE_VA) && vmm_link_copies(allocation) > 1))
		return refuse_not_built(
			a, "UseAlternateVA on content on several adapters of a link is not "
			   "implemented");
	if (vmm_unlikely(vmm_is_existing(allocation) && (flags & VMM_LOCK_USE_ALTERNATE_VA)))
		return refuse_not_built(
			a, "UseAlternateVA on memory of the caller (ExistingSysMem) is not "
			   "implemented");
	if (vmm_unlikely(a->instance->retained && vmm_instance_is_swizzled(a->instance)))
		return refuse_not_built(a, "unswizzling a retained system copy (PermanentSysMem, "
					   "ExistingSysMem) is not implemented");
	return STATUS_SUCCESS;
}

static NTSTATUS check_all(const struct vmm_lock_attempt *a) VMM_REQUIRES(vmm_paging_lock_class)
{
	NTSTATUS status = check_flags(a);

	vmm_assert_held(&a->device->adapter->paging_lock);
	if (NT_SUCCESS(status))
		status = check_pages(a);
	if (NT_SUCCESS(status))
		status = check_unsynchronized(a);
	if (NT_SUCCESS(status))
		status = check_permission(a);
	if (!NT_SUCCESS(status))
		return status;
	uint32_t held = a->instance->lock_count ? a->instance->lock_flags : 0;
	if (vmm_unlikely((a->request->flags | held) & VMM_LOCK_ACQUIRE_APERTURE))
		return check_aperture(a);
	return STATUS_SUCCESS;
}

/* With DonotWait the lock fails instead of waiting, and an event records for what. (LOCK-08) */
static NTSTATUS decline(const struct vmm_lock_attempt *a) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&a->device->adapter->paging_lock);
	vmm_event(a->device->adapter->observe, VIDMM_EVENT_WAIT, a->device->process->id,
		  a->request->handle, VIDMM_WAIT_DECLINED, 0, a->timeline, a->sequence, 0);
	return STATUS_GRAPHICS_ALLOCATION_BUSY;
}

static NTSTATUS wait_or_decline(struct vmm_lock_attempt *a) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&a->device->adapter->paging_lock);
	return a->request->flags & VMM_LOCK_DONOT_WAIT ? decline(a) : VMM_LOCK_RETRY;
}

/*
 * Decides which GPU use must be complete before the lock may succeed: every use (LOCK-05); writes
 * with IgnoreReadSync (LOCK-15); none with IgnoreSync and DonotWait together (LOCK-10, LOCK-11).
 * IgnoreSync with IgnoreReadSync: see LOCK-50. If such a use is queued, the lock waits, or fails
 * with DonotWait (LOCK-08, LOCK-16, REN-21). All of this holds for content in system memory, too
 * (LOCK-34).
 */
static NTSTATUS synchronize(struct vmm_lock_attempt *a) VMM_REQUIRES(vmm_paging_lock_class)
{
	uint32_t f = a->request->flags;
	enum vmm_use use = VMM_USE_ANY;

	vmm_assert_held(&a->device->adapter->paging_lock);
	if ((f & VMM_LOCK_IGNORE_SYNC) && (f & VMM_LOCK_DONOT_WAIT))
		return STATUS_SUCCESS;
	if (f & VMM_LOCK_IGNORE_READ_SYNC)
		use = VMM_USE_WRITE;
	if (!vmm_instance_busy(a->instance, use, &a->timeline, &a->sequence))
		return STATUS_SUCCESS;
	if ((f & VMM_LOCK_DONOT_WAIT) && use == VMM_USE_ANY)
		vmm_fast_lock_note_busy(a->ref, a->timeline, a->sequence);
	return wait_or_decline(a);
}

static bool cpu_can_see(const struct vmm_memory *memory, const struct vmm_instance *instance)
{
	return instance->place != VMM_PLACEMENT_MEMORY || instance->retained || instance->partial ||
	       (memory->segment[instance->segment - 1].cpu_memory &&
		vmm_link_copies(instance->allocation) == 1);
}

/*
 * Evicts the instance from a segment that is not CPU-visible (LOCK-49), or from the segments of
 * several linked adapters (PAG-22, PAG-23).
 */
static NTSTATUS evict_from_hidden_segment(struct vmm_lock_attempt *a)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_memory *memory = a->memory;
	vmm_status status;

	vmm_assert_held(&a->device->adapter->paging_lock);
	if (a->renamed) {
		/*
		 * The old content is discarded (REN-15). No content is evicted, so DonotEvict does
		 * not apply.
		 */
		status = vmm_residency_ensure_backing(memory, a->instance);
		if (vmm_ok(status))
			vmm_residency_drop(memory, a->instance, VIDMM_RESIDENCY_DISCARDED);
		return status;
	}
	if (a->request->flags & VMM_LOCK_DONOT_EVICT) /* LOCK-40 */
		return vmm_lock_refuse(
			a, "LOCK-49", STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNAVAILABLE,
			"it is in a segment that is not CPU-visible, and DonotEvict forbids to "
			"evict it (LOCK-40)");
	if (a->instance->allocation->pinned)
		return vmm_lock_refuse(
			a, "LOCK-49", STATUS_GRAPHICS_CANT_EVICT_PINNED_ALLOCATION,
			"it is pinned in a segment that is not CPU-visible"); /* PAG-18 */
	if (vmm_instance_busy(a->instance, VMM_USE_ACTIVE, &a->timeline, &a->sequence)) {
		/*
		 * IgnoreSync allows CPU access beside the GPU, but memory that the GPU uses cannot
		 * be evicted. (LOCK-08)
		 */
		return wait_or_decline(a);
	}
	if (vmm_eviction_loses_content(memory, a->instance))
		return vmm_lock_refuse(
			a, "PAG-20", STATUS_GRAPHICS_CANT_EVICT_PINNED_ALLOCATION,
			"it is in a segment that is not CPU-visible, and pinned allocations in "
			"the apertures of its EvictionSegmentSet leave too little space to "
			"evict it");
	status = vmm_residency_evict(memory, a->instance, VIDMM_RESIDENCY_LOCK);
	if (status == VMM_PENDING) { /* the GPU uses the eviction apertures (PAG-17) */
		vmm_eviction_blocker(memory, a->instance, &a->timeline, &a->sequence);
		return wait_or_decline(a);
	}
	if (vmm_ok(status))
		vmm_memory_flush_locked(memory->adapter);
	return status;
}

/*
 * Copies the GPU's newer content to the retained system copy (PAG-15). Not called for a renamed
 * instance, whose old content is discarded (REN-15).
 */
static NTSTATUS restore_system_copy(struct vmm_lock_attempt *a) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&a->device->adapter->paging_lock);
	if (vmm_instance_busy(a->instance, VMM_USE_ACTIVE, &a->timeline, &a->sequence)) {
		/*
		 * IgnoreSync allows CPU access beside the GPU, but the system copy is not current
		 * yet.
		 */
		return wait_or_decline(a);
	}
	vmm_status status = vmm_retained_restore(a->memory, a->instance);
	if (vmm_ok(status))
		vmm_memory_flush_locked(a->memory->adapter);
	return status;
}

/*
 * With AcquireAperture: makes the linear image reachable. Without: converts content back that is in
 * a form which only the miniport knows.
 */
static NTSTATUS acquire_aperture(struct vmm_lock_attempt *a) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_aperture_lock lock = {
		.instance = a->instance,
		.request = a->request,
		.may_wait = a->renamed, /* LOCK-09 */
	};
	NTSTATUS status = a->request->flags & VMM_LOCK_ACQUIRE_APERTURE
				  ? vmm_swizzle_lock(a->memory, &lock)
				  : vmm_swizzle_restore(a->memory, &lock);

	vmm_assert_held(&a->device->adapter->paging_lock);
	if (lock.rule)
		return vmm_lock_refuse(a, lock.rule, status, lock.why);
	a->wait_for_progress = lock.wait_for_progress;
	a->progress_seen = lock.progress_seen;
	a->timeline = lock.timeline;
	a->sequence = lock.sequence;
	if (NT_SUCCESS(status) && lock.wait)
		return VMM_LOCK_RETRY;
	return status == STATUS_GRAPHICS_ALLOCATION_BUSY ? decline(a) : status;
}

static NTSTATUS make_accessible(struct vmm_lock_attempt *a) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_instance *instance = a->instance;
	NTSTATUS status = STATUS_SUCCESS;

	vmm_assert_held(&a->device->adapter->paging_lock);
	if (vmm_unlikely((a->request->flags & VMM_LOCK_ACQUIRE_APERTURE) || instance->alternate ||
			 instance->partial))
		status = acquire_aperture(a);
	if (!NT_SUCCESS(status))
		return status;
	/*
	 * Without AcquireAperture the CPU sees the bytes as they are (SWZ-17). A swizzling range
	 * that shows the same memory in linear form is released before.
	 */
	if (vmm_unlikely(instance->range_count && !(a->request->flags & VMM_LOCK_ACQUIRE_APERTURE)))
		vmm_swizzle_release_in_place(a->memory, instance);
	if (!(a->request->flags & VMM_LOCK_USE_ALTERNATE_VA) && !cpu_can_see(a->memory, instance))
		status = evict_from_hidden_segment(a);
	else if (instance->retained && instance->gpu_wrote &&
		 instance->place == VMM_PLACEMENT_MEMORY && !a->renamed)
		status = restore_system_copy(a);
	if (!NT_SUCCESS(status))
		return status;
	if (instance->place == VMM_PLACEMENT_FRESH || instance->place == VMM_PLACEMENT_LOST) {
		status = vmm_residency_ensure_backing(a->memory, instance);
		if (!vmm_ok(status))
			return status;
		instance->place = VMM_PLACEMENT_SYSTEM;
	}
	if (vmm_lock_paging_in_flight(a)) {
		if (a->request->flags & VMM_LOCK_ACQUIRE_APERTURE) /* */
			vmm_lock_keep_arrival(a, false);
		return VMM_LOCK_RETRY;
	}
	if (vmm_unlikely(a->request->flags & VMM_LOCK_USE_ALTERNATE_VA))
		return vmm_alternate_map(
			a->memory, instance,
			vmm_swizzle_find(a->memory, instance, a->request->private_data),
			a->request->private_data, &a->address);
	if (vmm_lock_uses_callers_memory(
		    instance)) /* the address of the caller's memory (ALF-13) */
		return STATUS_SUCCESS;
	return vmm_likely(instance->view_current) ? STATUS_SUCCESS
						  : vmm_view_map(a->memory, instance);
}

/*
 * Grants the lock; cannot fail. From here to the unlock the caller has a valid address. (LOCK-03,
 * LOCK-04)
 */
static void grant(struct vmm_lock_attempt *a) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_instance *instance = a->instance;
	struct vmm_lock_request *request = a->request;

	vmm_assert_held(&a->device->adapter->paging_lock);
	/*
	 * Without a list all pages are locked (LOCK-20). The pointer is that of the first listed
	 * page.
	 */
	uint64_t first = request->page_count ? request->pages[0] : 0;

	if (a->renamed)
		vmm_rename_commit(a->device, a->ref, request->handle);
	if (vmm_unlikely(instance->allocation->flags &
			 (VMM_ALLOCATION_CACHED | VMM_ALLOCATION_RETAINED))) {
		vmm_coherence_to_cpu(a->memory, instance, request->flags & VMM_LOCK_READ_ONLY);
		vmm_retained_note_lock(instance, request, !a->renamed);
	}
	if (vmm_unlikely(instance->partial != NULL))
		vmm_partial_note_lock(instance, request->flags);
	a->ref->lock_count++; /* LOCK-27: locks nest */
	if (!instance->lock_count++) {
		instance->lock_flags = request->flags;
		instance->lock_data = request->private_data;
		a->memory->adapter->placements++;
	}
	request->handle = a->ref->handle;
	if (!a->address)
		a->address = vmm_lock_address(instance);
	request->data = a->address + (first << VMM_PAGE_SHIFT);
}

static NTSTATUS choose_instance(struct vmm_lock_attempt *a) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_allocation *allocation = a->ref->allocation;
	struct vmm_instance *busy = NULL;
	NTSTATUS status;

	vmm_assert_held(&a->device->adapter->paging_lock);
	/*
	 * An allocation that is not renamed ignores Discard; its other flags apply (REN-14,
	 * REF-11). Without Discard, NoExistingReference has no meaning (REN-13). With Discard, the
	 * instance is an idle one, so IgnoreSync has no effect (LOCK-12).
	 */
	if (!(a->request->flags & VMM_LOCK_DISCARD) || vmm_allocation_is_never_renamed(allocation))
		return synchronize(a);
	struct vmm_ref *named = a->ref;

	do {
		status = vmm_rename_select(a->device, named, a->request->flags, &a->ref, &busy);
		if (!NT_SUCCESS(status))
			return status;
		if (busy && vmm_instance_busy(busy, VMM_USE_ANY, &a->timeline, &a->sequence))
			return VMM_LOCK_RETRY;
	} while (busy); /* the GPU has just completed it: pick again */
	a->instance = a->ref->instance;
	a->renamed = true;
	return STATUS_SUCCESS;
}

/* One try. The caller holds the paging lock. */
static NTSTATUS attempt(struct vmm_lock_attempt *a) VMM_REQUIRES(vmm_paging_lock_class)
{
	NTSTATUS status;

	vmm_assert_held(&a->device->adapter->paging_lock);
	a->wait_for_progress = a->renamed = false;
	a->address = NULL;
	status = vmm_lock_find(a);
	if (NT_SUCCESS(status))
		status = check_all(a);
	if (NT_SUCCESS(status))
		status = choose_instance(a);
	if (!NT_SUCCESS(status))
		return status;
	status = make_accessible(a);
	if (vmm_unlikely(status == STATUS_NO_MEMORY))
		vmm_lock_report_no_memory(a);
	if (!NT_SUCCESS(status) && status != VMM_LOCK_RETRY && a->renamed &&
	    vmm_rename_is_growth(a->ref))
		vmm_rename_undo_growth(a->device, a->ref); /* LOCK-32: nothing has changed */
	if (!NT_SUCCESS(status))
		return status;
	grant(a);
	vmm_fast_lock_enable(a->ref);
	return STATUS_SUCCESS;
}

/*
 * Fast path of a lock with Discard. The fast lock of the allocation is enabled, so no check can
 * refuse a lock, and an idle instance is mapped: does what attempt() would do. Returns the
 * allocation's size in bytes. Returns 0, and has done nothing, if the fast path does not apply, for
 * example to an allocation that is never renamed (REN-14). The caller holds the paging lock.
 */
VMM_FLATTEN static uint64_t try_discard_fast(struct vmm_device *device,
					     struct vmm_lock_request *request)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_fast_lock *fast_lock = vmm_fast_lock_of(device, request->handle);

	vmm_assert_held(&device->adapter->paging_lock);
	if (vmm_unlikely(!fast_lock || !fast_lock->enabled ||
			 fast_lock->ref->handle != request->handle ||
			 vmm_allocation_is_never_renamed(fast_lock->ref->allocation) ||
			 vmm_device_lost(device) || !vmm_fast_lock_may_enable(device->adapter)))
		return 0;
	struct vmm_instance *current, *instance;
	instance = vmm_rename_ready(fast_lock->ref->allocation, request->flags, &current);
	if (vmm_unlikely(!instance || instance->lock_count))
		return 0;
	struct vmm_ref *ref = instance->fast_lock->ref;
	vmm_rename_commit_from(device, ref, current, request->handle);
	ref->lock_count = instance->lock_count = 1;
	instance->lock_flags = request->flags;
	instance->lock_data = request->private_data;
	request->handle = ref->handle;
	request->data = instance->view.address;
	vmm_fast_lock_enable_checked(ref);
	return ref->allocation->size_bytes;
}

/* Returns true if the fast path may serve the flags and the page list. Takes no mutex. */
static inline bool is_plain(const struct vmm_adapter *adapter, uint32_t flags,
			    const struct vmm_lock_request *request)
{
	return vmm_lock_flags_are_plain(adapter->client_synchronizes, flags,
					request->page_count | request->page_list_given);
}

static bool discard_fast(struct vmm_device *device, struct vmm_lock_request *request)
{
	struct vmm_adapter *adapter = device->adapter;
	uint32_t old_handle = request->handle;
	uint32_t rest = request->flags & ~(VMM_LOCK_DISCARD | VMM_LOCK_NO_EXISTING_REFERENCE);

	if (!is_plain(adapter, rest, request))
		return false;
	vmm_paging_lock(adapter);
	uint64_t bytes = try_discard_fast(device, request);
	vmm_paging_commit(adapter);
	if (vmm_unlikely(!bytes))
		return false;
	vmm_event_inline(adapter->observe, VIDMM_EVENT_LOCK, device->process->id, request->handle,
			 0, request->flags, 0, bytes, old_handle);
	return true;
}

/* Not inlined: the callers' fast paths then need no large stack frame. */
__attribute__((noinline)) static NTSTATUS lock_in_full(struct vmm_device *device,
						       struct vmm_lock_request *request)
{
	struct vmm_adapter *adapter = device->adapter;
	struct vmm_lock_attempt a = {.device = device,
				     .memory = adapter->memory,
				     .request = request,
				     .call = "lock",
				     .lock_cb = true};
	uint32_t old_handle = request->handle;
	uint64_t waited_ns = request->waited_ns;
	NTSTATUS status;

	for (;;) {
		vmm_paging_lock(adapter);
		vmm_lock_end_arrival(&a);
		/* The adapter may have been reset while the lock waited. (LOCK-33) */
		status = vmm_device_lost(device) ? STATUS_DEVICE_REMOVED : attempt(&a);
		uint64_t locked_bytes = 0;
		if (NT_SUCCESS(status))
			locked_bytes = request->page_count
					       ? (uint64_t)request->page_count << VMM_PAGE_SHIFT
					       : vmm_store_bytes(a.ref->allocation);
		if (waited_ns && status != VMM_LOCK_RETRY)
			vmm_lock_count_wait(&a, waited_ns, NT_SUCCESS(status));
		vmm_paging_commit(adapter);
		if (status == VMM_LOCK_RETRY) {
			status = vmm_lock_wait(&a, &waited_ns);
			if (status == VMM_OK)
				continue;
			vmm_lock_give_up_arrival(&a);
			request->waited_ns = waited_ns;
		} else if (NT_SUCCESS(status)) {
			vmm_event_inline(adapter->observe, VIDMM_EVENT_LOCK, device->process->id,
					 request->handle, 0, request->flags, waited_ns,
					 locked_bytes, old_handle);
		}
		return status;
	}
}

/* Locks that the inline fast path (vmm_lock_fast) did not serve. */
NTSTATUS vmm_lock_synchronized(struct vmm_device *device, struct vmm_lock_request *request)
{
	const struct vmm_adapter *adapter = device->adapter;
	uint32_t timeline;
	uint64_t sequence;

	if ((request->flags & VMM_LOCK_DISCARD) && discard_fast(device, request))
		return STATUS_SUCCESS;
	/* LOCK-08 */
	if ((request->flags & VMM_LOCK_DONOT_WAIT) && !(request->flags & VMM_LOCK_DISCARD) &&
	    is_plain(adapter, request->flags, request) &&
	    vmm_fast_lock_is_busy(device, request->handle, &timeline, &sequence)) {
		vmm_event_inline(adapter->observe, VIDMM_EVENT_WAIT, device->process->id,
				 request->handle, VIDMM_WAIT_DECLINED, 0, timeline, sequence, 0);
		return STATUS_GRAPHICS_ALLOCATION_BUSY;
	}
	return lock_in_full(device, request);
}

static struct vmm_ref *find_locked_ref(const struct vmm_device *device, uint32_t handle)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_ref *ref = vmm_fast_lock_find(device, handle);

	vmm_assert_held(&device->adapter->paging_lock);
	if (vmm_likely(ref != NULL))
		return ref;
	vmm_process_lock(device->process);
	ref = vmm_ref_lookup_locked(device, handle);
	if (!ref)
		vmm_ref_report(device, handle, "LOCK-29", "unlock");
	vmm_process_unlock(device->process);
	return ref;
}

/*
 * One lock for each entry that names the handle. The ref counts the entries that passed. (LOCK-28)
 */
static NTSTATUS check_unlock(struct vmm_device *device, uint32_t handle)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_ref *ref = find_locked_ref(device, handle);

	vmm_assert_held(&device->adapter->paging_lock);
	if (!ref)
		return STATUS_INVALID_PARAMETER;
	vmm_fast_lock_disable(ref->instance);
	if (ref->lock_count > ref->times_listed) {
		ref->times_listed++;
		return STATUS_SUCCESS;
	}
	return vmm_refuse_rule(
		device->adapter->observe, STATUS_INVALID_PARAMETER, "LOCK-28", device->process->id,
		handle, "unlock of 0x%08x: it is locked %u times, but occurs %u times in the list",
		handle, ref->lock_count, ref->times_listed + 1);
}

static void unlock_one(struct vmm_device *device, uint32_t handle)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = device->adapter;
	struct vmm_ref *ref = find_locked_ref(device, handle);

	vmm_assert_held(&device->adapter->paging_lock);
	ref->times_listed = 0;
	ref->lock_count--;
	ref->instance->lock_count--;
	if (vmm_unlikely(ref->instance->retained != NULL))
		vmm_retained_upload_soon(adapter->memory, ref->instance);
	adapter->model->unlocked(ref->instance);
	if (vmm_unlikely(ref->instance->partial != NULL))
		vmm_partial_unlocked(adapter->memory, ref->instance);
	vmm_event(adapter->observe, VIDMM_EVENT_UNLOCK, device->process->id, handle, 0, 0, 0, 0, 0);
}

NTSTATUS vmm_memory_unlock_in_full(struct vmm_device *device, const uint32_t *handles,
				   uint32_t count)
{
	struct vmm_adapter *adapter = device->adapter;
	NTSTATUS status = STATUS_SUCCESS;
	uint32_t passed = 0;

	vmm_assert_debug(vmm_device_is_valid(device));
	vmm_paging_lock(adapter);
	/* All handles are checked before any is unlocked. (LOCK-29) */
	while (passed < count && NT_SUCCESS(status)) {
		status = check_unlock(device, handles[passed]);
		passed += NT_SUCCESS(status);
	}
	for (uint32_t i = 0; i < count && NT_SUCCESS(status); i++)
		unlock_one(device, handles[i]);
	for (uint32_t i = 0; i < passed && !NT_SUCCESS(status); i++)
		find_locked_ref(device, handles[i])->times_listed = 0;
	vmm_retained_upload_all(adapter->memory);
	vmm_partial_write_back_all(adapter->memory);
	vmm_host_unmap_unwanted(adapter->memory);
	vmm_paging_commit(adapter);
	return status;
}
