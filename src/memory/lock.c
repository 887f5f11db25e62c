/* SPDX-License-Identifier: MIT */
/*
 * CPU access, WDDM 1.x: the checks in the order of the rule catalogue (handle and device, flag combinations,
 * permission, lock state, GPU synchronisation or renaming, residency), then the view. The first failure wins and
 * changes nothing. Waiting happens with no lock held; afterwards everything is looked up and checked again.
 */
#include "memory/lock_attempt.h"

enum { /* LOCK-01: the bits of D3DDDICB_LOCKFLAGS.Value */
       READ_ONLY = 0x001,
       WRITE_ONLY = 0x002,
       DONOT_WAIT = 0x004,
       IGNORE_SYNC = 0x008,
       LOCK_ENTIRE = 0x010,
       DONOT_EVICT = 0x020,
       ACQUIRE_APERTURE = 0x040,
       DISCARD = 0x080,
       NO_EXISTING_REFERENCE = 0x100,
       USE_ALTERNATE_VA = 0x200,
       IGNORE_READ_SYNC = 0x400,
       RESERVED = (int)0xFFFFF800,
};

static NTSTATUS check_flags(const struct vmm_lock_attempt *a)
{
	uint32_t f = a->request->flags;

	if (f & (uint32_t)RESERVED)
		return vmm_lock_broke(a, "LOCK-02", STATUS_INVALID_PARAMETER,
				      "reserved bits are set");
	if ((f & READ_ONLY) && (f & WRITE_ONLY))
		return vmm_lock_broke(a, "LOCK-07", STATUS_INVALID_PARAMETER,
				      "ReadOnly with WriteOnly");
	if ((f & IGNORE_SYNC) && (f & ACQUIRE_APERTURE))
		return vmm_lock_broke(a, "LOCK-14", STATUS_INVALID_PARAMETER,
				      "IgnoreSync with AcquireAperture");
	if ((f & USE_ALTERNATE_VA) && !(f & ACQUIRE_APERTURE))
		return vmm_lock_broke(a, "SWZ-23", STATUS_INVALID_PARAMETER,
				      "UseAlternateVA without AcquireAperture");
	if ((f & LOCK_ENTIRE) && (a->request->page_count || a->request->page_list_given))
		return vmm_lock_broke(a, "LOCK-17", STATUS_INVALID_PARAMETER,
				      "LockEntire with a page list");
	if (a->request->page_count && !a->request->page_list_given)
		return vmm_lock_broke(a, "LOCK-18", STATUS_INVALID_PARAMETER,
				      "NumPages without a page list");
	return STATUS_SUCCESS;
}

static NTSTATUS check_pages(const struct vmm_lock_attempt *a)
{
	uint64_t pages = vmm_store_bytes(a->ref->allocation) >> VMM_PAGE_SHIFT; /* SWZ-30 */

	for (uint32_t i = 0; i < a->request->page_count; i++) {
		if (a->request->pages[i] < pages)
			continue;
		vmm_finding(
			a->memory->adapter->observe, "LOCK-18", a->device->process->id,
			a->request->handle,
			"lock of 0x%08x: page %u (entry %u) lies past the allocation's %llu pages",
			a->request->handle, a->request->pages[i], i, (unsigned long long)pages);
		return STATUS_INVALID_PARAMETER;
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
 * LOCK-13: where the CPU may go while the GPU is at work. Discard, honoured, makes the question void, as it does what
 * DonotWait and IgnoreReadSync ask (LOCK-09, LOCK-12, LOCK-16).
 */
static NTSTATUS check_no_sync(const struct vmm_lock_attempt *a)
{
	const struct vmm_allocation *allocation = a->ref->allocation;

	if (!(a->request->flags & (IGNORE_SYNC | IGNORE_READ_SYNC)))
		return STATUS_SUCCESS;
	if ((a->request->flags & DISCARD) && !vmm_allocation_keeps_its_name(allocation))
		return STATUS_SUCCESS;
	if (!vmm_allocation_reaches_aperture(allocation))
		return vmm_lock_broke(a, "LOCK-13", STATUS_INVALID_PARAMETER,
				      "no synchronization, but no aperture segment in its set");
	if (allocation->flags & VMM_ALLOCATION_SWIZZLED)
		return vmm_lock_broke(a, "LOCK-13", STATUS_INVALID_PARAMETER,
				      "no synchronization on a swizzled allocation");
	if ((allocation->flags & VMM_ALLOCATION_CACHED) && !any_coherent_aperture(a->memory))
		return vmm_lock_broke(
			a, "LOCK-13", STATUS_INVALID_PARAMETER,
			"no synchronization on a cached allocation without a coherent aperture");
	return STATUS_SUCCESS;
}

static NTSTATUS check_permission(const struct vmm_lock_attempt *a)
{
	struct vmm_allocation *allocation = a->ref->allocation;
	NTSTATUS status = vmm_lock_check_access(a); /* LOCK-23, ALF-03, LOCK-24 */

	if (!NT_SUCCESS(status))
		return status;
	if ((allocation->flags & VMM_ALLOCATION_ALTERNATE) &&
	    !(a->request->flags & USE_ALTERNATE_VA))
		return vmm_lock_broke(
			a, "SWZ-26", STATUS_INVALID_PARAMETER,
			"a primary that was created with UseAlternateVA, locked without");
	if (vmm_is_offered_locked(allocation))
		return vmm_lock_broke(a, "LOCK-25", STATUS_INVALID_PARAMETER,
				      "it is offered and not reclaimed");
	if (a->instance->state == VMM_INSTANCE_RETIRED)
		return vmm_lock_broke(a, "LOCK-26", STATUS_INVALID_PARAMETER,
				      "it is a retired instance");
	if (a->instance->state == VMM_INSTANCE_PREVIOUS && !a->memory->caps->out_of_order_lock)
		return vmm_lock_broke(a, "REN-19", STATUS_INVALID_PARAMETER,
				      "it is not the newest instance (REF-12)");
	return STATUS_SUCCESS;
}

static NTSTATUS not_built(const struct vmm_lock_attempt *a, const char *what)
{
	vmm_reason(a->memory->adapter->observe, STATUS_NOT_SUPPORTED, a->device->process->id,
		   a->request->handle, "lock with AcquireAperture: %s", what);
	return STATUS_NOT_SUPPORTED;
}

/* The linear image and the swizzled bytes are never seen at the same time (SWZ-14, SWZ-15). */
static NTSTATUS check_aperture(const struct vmm_lock_attempt *a)
{
	const struct vmm_allocation *allocation = a->ref->allocation;
	uint32_t flags = a->request->flags;

	if ((flags & USE_ALTERNATE_VA) && allocation->shared)
		return vmm_lock_broke(a, "SWZ-23", STATUS_INVALID_PARAMETER,
				      "UseAlternateVA on a shared allocation");
	if ((flags & USE_ALTERNATE_VA) && allocation->primary &&
	    !(allocation->flags & VMM_ALLOCATION_ALTERNATE))
		return vmm_lock_broke(
			a, "SWZ-26", STATUS_INVALID_PARAMETER,
			"UseAlternateVA on a primary that was created without that flag");
	/* where there are ranges, an alternate address may be one into an aperture. */
	if ((flags & ACQUIRE_APERTURE) &&
	    !((flags & USE_ALTERNATE_VA) && a->memory->caps->swizzling_range_count) &&
	    !vmm_swizzle_memory_set(allocation))
		return vmm_lock_broke(a, "SWZ-16", STATUS_INVALID_PARAMETER,
				      "AcquireAperture, but its sets name aperture segments alone");
	if (vmm_memory_is_aperture_locked(a->instance))
		return vmm_lock_broke(a, "SWZ-15", STATUS_INVALID_PARAMETER,
				      "it is locked with AcquireAperture");
	if (a->instance->lock_count)
		return vmm_lock_broke(a, "SWZ-14", STATUS_INVALID_PARAMETER,
				      "AcquireAperture, but it is locked without");
	if (vmm_unlikely((flags & USE_ALTERNATE_VA) && vmm_link_copies(allocation) > 1))
		return not_built(a, "a second address of content on several adapters of a link");
	if (vmm_unlikely(vmm_is_existing(allocation) && (flags & USE_ALTERNATE_VA)))
		return not_built(a, "a second address of the caller's own memory (ExistingSysMem)");
	if (vmm_unlikely(a->instance->kept && vmm_instance_is_swizzled(a->instance)))
		return not_built(a, "a swizzled system copy that stays (PermanentSysMem, "
				    "ExistingSysMem) is not unswizzled");
	return STATUS_SUCCESS;
}

static NTSTATUS check_all(const struct vmm_lock_attempt *a)
{
	NTSTATUS status = check_flags(a);

	if (NT_SUCCESS(status))
		status = check_pages(a);
	if (NT_SUCCESS(status))
		status = check_no_sync(a);
	if (NT_SUCCESS(status))
		status = check_permission(a);
	if (!NT_SUCCESS(status))
		return status;
	uint32_t held = a->instance->lock_count ? a->instance->lock_flags : 0;
	if (vmm_unlikely((a->request->flags | held) & ACQUIRE_APERTURE))
		return check_aperture(a);
	return STATUS_SUCCESS;
}

/*
 * Which GPU use must be over before the CPU may go in: all of it (LOCK-05), writes (LOCK-15), or none where IgnoreSync
 * comes with DonotWait (LOCK-10, LOCK-11); both flags together: LOCK-50. DonotWait fails instead (LOCK-08, LOCK-16,
 * REN-21). What is in system memory is no exception (LOCK-34).
 */
static NTSTATUS synchronize(struct vmm_lock_attempt *a)
{
	uint32_t f = a->request->flags;
	enum vmm_use use = VMM_USE_ANY;

	if ((f & IGNORE_SYNC) && (f & DONOT_WAIT))
		return STATUS_SUCCESS;
	if (f & IGNORE_READ_SYNC)
		use = VMM_USE_WRITE;
	if (!vmm_instance_busy(a->instance, use, &a->timeline, &a->sequence))
		return STATUS_SUCCESS;
	if (f & DONOT_WAIT) {
		vmm_event(a->device->adapter->observe, VIDMM_EVENT_WAIT, a->device->process->id,
			  a->request->handle, VIDMM_WAIT_DECLINED, 0, a->timeline, a->sequence, 0);
		if (use == VMM_USE_ANY)
			vmm_gate_turned_away(a->ref, a->timeline, a->sequence);
		return STATUS_GRAPHICS_ALLOCATION_BUSY;
	}
	a->wait = true;
	return STATUS_SUCCESS;
}

/* Content that is being moved is waited for whatever the flags say: its bytes are not yet where the view would show. */
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

static bool cpu_can_see(const struct vmm_memory *memory, const struct vmm_instance *instance)
{
	return instance->place != VMM_PLACE_MEMORY || instance->kept || instance->partial ||
	       (memory->segment[instance->segment - 1].cpu_memory &&
		vmm_link_copies(instance->allocation) == 1);
}

/* LOCK-49: a segment that the CPU cannot see is left for the lock; so are those of several adapters (PAG-22, PAG-23). */
static NTSTATUS leave_hidden_segment(struct vmm_lock_attempt *a)
{
	struct vmm_memory *memory = a->memory;
	vmm_status status;

	if (a->renamed) {
		/* Nobody wants the old content (REN-15), so nothing is evicted and DonotEvict has nothing to forbid. */
		status = vmm_residency_give_backing(memory, a->instance);
		if (vmm_ok(status))
			vmm_residency_drop(memory, a->instance, VIDMM_RESIDENCY_DISCARDED);
		return status;
	}
	if (a->request->flags & DONOT_EVICT) /* LOCK-40 */
		return vmm_lock_broke(
			a, "LOCK-49", STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNAVAILABLE,
			"it is in a segment that the CPU cannot see and DonotEvict is set (LOCK-40)");
	if (a->instance->allocation->pinned)
		return vmm_lock_broke(
			a, "LOCK-49", STATUS_GRAPHICS_CANT_EVICT_PINNED_ALLOCATION,
			"it is pinned in a segment that the CPU cannot see"); /* PAG-18 */
	if (vmm_instance_busy(a->instance, VMM_USE_ACTIVE, &a->timeline, &a->sequence)) {
		/* LOCK-08: IgnoreSync lets the CPU in beside the GPU, but memory that the GPU uses cannot move. */
		a->wait = !(a->request->flags & DONOT_WAIT);
		return a->wait ? STATUS_SUCCESS : STATUS_GRAPHICS_ALLOCATION_BUSY;
	}
	if (vmm_eviction_loses_content(memory, a->instance))
		return vmm_lock_broke(
			a, "PAG-20", STATUS_GRAPHICS_CANT_EVICT_PINNED_ALLOCATION,
			"it is in a segment that the CPU cannot see, and what is pinned in its eviction apertures "
			"leaves no way out");
	status = vmm_residency_evict(memory, a->instance, VIDMM_RESIDENCY_LOCK);
	if (status == VMM_PENDING) { /* PAG-17: its way out is in use */
		vmm_eviction_blocker(memory, a->instance, &a->timeline, &a->sequence);
		a->wait = !(a->request->flags & DONOT_WAIT);
		return a->wait ? STATUS_SUCCESS : STATUS_GRAPHICS_ALLOCATION_BUSY;
	}
	if (vmm_ok(status))
		vmm_memory_flush_locked(memory->adapter);
	return status;
}

/* PAG-15: the GPU's copy is the newer one. Of a renamed instance nobody wants it (REN-15). */
static NTSTATUS bring_back(struct vmm_lock_attempt *a)
{
	if (vmm_instance_busy(a->instance, VMM_USE_ACTIVE, &a->timeline, &a->sequence)) {
		/* IgnoreSync lets the CPU in beside the GPU, but there is no copy yet that it could go into. */
		a->wait = !(a->request->flags & DONOT_WAIT);
		return a->wait ? STATUS_SUCCESS : STATUS_GRAPHICS_ALLOCATION_BUSY;
	}
	vmm_status status = vmm_kept_bring_back(a->memory, a->instance);
	if (vmm_ok(status))
		vmm_memory_flush_locked(a->memory->adapter);
	return status;
}

/* The linear image; or, for a lock without AcquireAperture, anything but a form of the miniport's own. */
static NTSTATUS acquire_aperture(struct vmm_lock_attempt *a)
{
	struct vmm_aperture_lock lock = {
		.instance = a->instance,
		.request = a->request,
		.may_wait = a->renamed, /* LOCK-09 */
	};
	NTSTATUS status = a->request->flags & ACQUIRE_APERTURE
				  ? vmm_swizzle_lock(a->memory, &lock)
				  : vmm_swizzle_restore(a->memory, &lock);

	if (lock.rule)
		return vmm_lock_broke(a, lock.rule, status, lock.why);
	a->wait = lock.wait;
	a->wait_for_progress = lock.wait_for_progress;
	a->progress_seen = lock.progress_seen;
	a->timeline = lock.timeline;
	a->sequence = lock.sequence;
	return status;
}

static NTSTATUS make_accessible(struct vmm_lock_attempt *a)
{
	struct vmm_instance *instance = a->instance;
	NTSTATUS status = STATUS_SUCCESS;

	if (vmm_unlikely((a->request->flags & ACQUIRE_APERTURE) || instance->alternate ||
			 instance->partial))
		status = acquire_aperture(a);
	if (!NT_SUCCESS(status) || a->wait)
		return status;
	/*
	 * SWZ-17: without AcquireAperture the bytes are seen as they are. Q-35: a range that shows them where they are as
	 * something else goes first.
	 */
	if (vmm_unlikely(instance->range_count && !(a->request->flags & ACQUIRE_APERTURE)))
		vmm_swizzle_release_in_place(a->memory, instance);
	if (!(a->request->flags & USE_ALTERNATE_VA) && !cpu_can_see(a->memory, instance))
		status = leave_hidden_segment(a);
	else if (instance->kept && instance->gpu_wrote && instance->place == VMM_PLACE_MEMORY &&
		 !a->renamed)
		status = bring_back(a);
	if (!NT_SUCCESS(status) || a->wait)
		return status;
	if (instance->place == VMM_PLACE_FRESH || instance->place == VMM_PLACE_LOST) {
		status = vmm_residency_give_backing(a->memory, instance);
		if (!vmm_ok(status))
			return status;
		instance->place = VMM_PLACE_SYSTEM;
	}
	if (paging_in_flight(a))
		return STATUS_SUCCESS;
	if (vmm_unlikely(a->request->flags & USE_ALTERNATE_VA))
		return vmm_alternate_show(a->memory, instance, a->request->private_data,
					  &a->address);
	if (vmm_lock_is_callers(instance)) /* ALF-13: the caller's own address */
		return STATUS_SUCCESS;
	return vmm_likely(instance->view_current) ? STATUS_SUCCESS
						  : vmm_view_show(a->memory, instance);
}

/* Nothing can fail any more. From here to the unlock the caller has an address (LOCK-03, LOCK-04). */
static void let_in(struct vmm_lock_attempt *a)
{
	struct vmm_instance *instance = a->instance;
	struct vmm_lock_request *request = a->request;
	/* LOCK-20: no list is the whole. Q-03: the pointer is that of the first listed page. */
	uint64_t first = request->page_count ? request->pages[0] : 0;

	if (a->renamed)
		vmm_rename_commit(a->device, a->ref, request->handle);
	if (vmm_unlikely(instance->allocation->flags &
			 (VMM_ALLOCATION_CACHED | VMM_ALLOCATION_KEPT))) {
		vmm_coherence_to_cpu(a->memory, instance, request->flags & READ_ONLY);
		vmm_kept_locked(instance, request, !a->renamed);
	}
	if (vmm_unlikely(instance->partial != NULL))
		vmm_partial_locked(instance, request->flags);
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

static NTSTATUS choose_instance(struct vmm_lock_attempt *a)
{
	const struct vmm_allocation *allocation = a->ref->allocation;
	struct vmm_instance *busy = NULL;
	NTSTATUS status;

	/* Not renamed (REN-14, REF-11), the other flags apply as usual. NoExistingReference means nothing without Discard (REN-13). */
	if (!(a->request->flags & DISCARD) || vmm_allocation_keeps_its_name(allocation))
		return synchronize(a);
	struct vmm_ref *named = a->ref;

	do {
		status = vmm_rename_select(a->device, named, a->request->flags, &a->ref, &busy);
		if (!NT_SUCCESS(status))
			return status;
		a->wait = busy && vmm_instance_busy(busy, VMM_USE_ANY, &a->timeline, &a->sequence);
		if (a->wait)
			return STATUS_SUCCESS;
	} while (busy); /* the GPU has just done with it: it can be had now */
	a->instance = a->ref->instance;
	a->renamed = true;
	return STATUS_SUCCESS;
}

/* One try under the paging lock. a->wait: nothing was given out, wait and try again. */
static NTSTATUS attempt(struct vmm_lock_attempt *a)
{
	NTSTATUS status;

	a->wait = a->wait_for_progress = a->renamed = false;
	a->address = NULL;
	status = vmm_lock_find(a);
	if (NT_SUCCESS(status))
		status = check_all(a);
	if (NT_SUCCESS(status))
		status = choose_instance(a);
	if (!NT_SUCCESS(status) || a->wait)
		return status;
	status = make_accessible(a);
	if (vmm_unlikely(status == STATUS_NO_MEMORY))
		vmm_lock_no_memory(a);
	if (!NT_SUCCESS(status) && a->renamed && vmm_rename_is_growth(a->ref))
		vmm_rename_undo_growth(a->device, a->ref); /* LOCK-32: nothing has changed */
	if (!NT_SUCCESS(status) || a->wait)
		return status;
	let_in(a);
	vmm_gate_open(a->ref);
	return STATUS_SUCCESS;
}

/*
 * A discard lock of one whose gate is open, so that nothing speaks against a lock, and of which an instance is idle and in view:
 * what attempt() would do. Returns its size; 0: it is not as simple as that, and nothing has happened.
 */
static uint64_t discard_in_short(struct vmm_device *device, struct vmm_lock_request *request)
{
	struct vmm_ref *ref = vmm_gate_find(device, request->handle);

	if (vmm_unlikely(!ref || !ref->instance->gate->open ||
			 vmm_allocation_keeps_its_name(ref->allocation) ||
			 vmm_device_lost(device) || !vmm_gate_may_open(device->adapter)))
		return 0;
	struct vmm_instance *current, *instance;
	instance = vmm_rename_ready(ref->allocation, request->flags, &current);
	if (vmm_unlikely(!instance || instance->lock_count))
		return 0;
	ref = instance->gate->ref;
	vmm_rename_commit_from(device, ref, current, request->handle);
	ref->lock_count = instance->lock_count = 1;
	instance->lock_flags = request->flags;
	instance->lock_data = request->private_data;
	request->handle = ref->handle;
	request->data = instance->view.address;
	vmm_gate_open_now(ref);
	return ref->allocation->size_bytes;
}

static bool discard_at_gate(struct vmm_device *device, struct vmm_lock_request *request)
{
	struct vmm_adapter *adapter = device->adapter;
	uint32_t old_handle = request->handle;
	uint32_t rest = request->flags & ~(uint32_t)(DISCARD | NO_EXISTING_REFERENCE);

	if (!vmm_lock_is_plain(adapter, rest, request))
		return false;
	vmm_paging_lock(adapter);
	uint64_t bytes = discard_in_short(device, request);
	vmm_paging_unlock(adapter);
	if (vmm_unlikely(!bytes))
		return false;
	vmm_event_often(adapter->observe, VIDMM_EVENT_LOCK, device->process->id, request->handle, 0,
			request->flags, 0, bytes, old_handle);
	return true;
}

/* Not in line: its frame is no business of what gets by without it. */
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
		/* LOCK-33: while it waited the adapter may have been reset. */
		a.wait = false;
		status = vmm_device_lost(device) ? STATUS_DEVICE_REMOVED : attempt(&a);
		uint64_t locked_bytes = 0;
		if (NT_SUCCESS(status) && !a.wait)
			locked_bytes = request->page_count
					       ? (uint64_t)request->page_count << VMM_PAGE_SHIFT
					       : vmm_store_bytes(a.ref->allocation);
		if (waited_ns && !a.wait)
			vmm_lock_count_wait(&a, waited_ns, NT_SUCCESS(status));
		vmm_paging_unlock(adapter);
		if (NT_SUCCESS(status) && a.wait) {
			status = vmm_lock_wait(&a, &waited_ns);
			if (status == VMM_OK)
				continue;
			request->waited_ns = waited_ns;
		} else if (NT_SUCCESS(status)) {
			vmm_event_often(adapter->observe, VIDMM_EVENT_LOCK, device->process->id,
					request->handle, 0, request->flags, waited_ns, locked_bytes,
					old_handle);
		}
		return status;
	}
}

/* Whose gate is not open. */
NTSTATUS vmm_memory_lock_in_full(struct vmm_device *device, struct vmm_lock_request *request)
{
	const struct vmm_adapter *adapter = device->adapter;
	uint32_t timeline;
	uint64_t sequence;

	if (vmm_unlikely(adapter->wddm2))
		return vmm_lock_wddm2(device, request);
	/* LOCK-08 */
	if ((request->flags & DONOT_WAIT) && vmm_lock_is_plain(adapter, request->flags, request) &&
	    vmm_gate_is_busy(device, request->handle, &timeline, &sequence)) {
		vmm_event_often(adapter->observe, VIDMM_EVENT_WAIT, device->process->id,
				request->handle, VIDMM_WAIT_DECLINED, 0, timeline, sequence, 0);
		return STATUS_GRAPHICS_ALLOCATION_BUSY;
	}
	if ((request->flags & DISCARD) && discard_at_gate(device, request))
		return STATUS_SUCCESS;
	return lock_in_full(device, request);
}

static struct vmm_ref *find_locked(const struct vmm_device *device, uint32_t handle)
{
	struct vmm_ref *ref = vmm_gate_find(device, handle);

	if (vmm_likely(ref != NULL))
		return ref;
	vmm_os_mutex_lock(&device->process->lock);
	ref = vmm_ref_lookup_locked(device, handle);
	if (!ref)
		vmm_ref_report(device, handle, "LOCK-29", "unlock");
	vmm_os_mutex_unlock(&device->process->lock);
	return ref;
}

static NTSTATUS check_unlock_locked(struct vmm_device *device, const uint32_t *handles,
				    uint32_t index)
{
	struct vmm_ref *ref = find_locked(device, handles[index]);
	uint32_t uses = 1;

	if (!ref)
		return STATUS_INVALID_PARAMETER;
	vmm_gate_shut(ref->instance);
	for (uint32_t i = 0; i < index; i++)
		uses += handles[i] == handles[index];
	if (ref->lock_count >= uses)
		return STATUS_SUCCESS;
	vmm_finding(device->adapter->observe, "LOCK-28", device->process->id, handles[index],
		    "unlock of 0x%08x, which is locked %u times and named %u times", handles[index],
		    ref->lock_count, uses);
	return STATUS_INVALID_PARAMETER;
}

static void unlock_one(struct vmm_device *device, uint32_t handle)
{
	struct vmm_adapter *adapter = device->adapter;
	struct vmm_ref *ref = find_locked(device, handle);

	ref->lock_count--;
	ref->instance->lock_count--;
	if (vmm_unlikely(ref->instance->kept != NULL))
		vmm_kept_upload_soon(adapter->memory, ref->instance);
	if (vmm_unlikely(adapter->wddm2))
		vmm_lock_wddm2_released(ref->instance);
	if (vmm_unlikely(ref->instance->partial != NULL))
		vmm_partial_unlocked(adapter->memory, ref->instance);
	vmm_event(adapter->observe, VIDMM_EVENT_UNLOCK, device->process->id, handle, 0, 0, 0, 0, 0);
}

NTSTATUS vmm_memory_unlock_in_full(struct vmm_device *device, const uint32_t *handles,
				   uint32_t count)
{
	struct vmm_adapter *adapter = device->adapter;
	NTSTATUS status = STATUS_SUCCESS;

	vmm_os_mutex_lock(&adapter->paging_lock);
	for (uint32_t i = 0; i < count && NT_SUCCESS(status);
	     i++) /* LOCK-29: all are checked before any is released */
		status = check_unlock_locked(device, handles, i);
	for (uint32_t i = 0; i < count && NT_SUCCESS(status); i++)
		unlock_one(device, handles[i]);
	vmm_kept_upload_all(adapter->memory);
	vmm_partial_settle_all(adapter->memory);
	vmm_host_unmap_unwanted(adapter->memory);
	vmm_paging_unlock(adapter);
	return status;
}
