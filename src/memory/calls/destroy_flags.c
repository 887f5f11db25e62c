/* SPDX-License-Identifier: MIT */
/*
 * The flags of pfnDeallocate2Cb (ALF-37).
 *
 * Without flags, from WDDM 2.0 on, an allocation ends when all work is complete that its device had
 * queued by then, whether that work references the allocation or not.
 *
 * AssumeNotInUse: only work that references the allocation defers its end. If the GPU has all of
 * that work already, the miniport closes and destroys the allocation at once. Its memory is not
 * reused before that work is complete.
 *
 * SynchronousDestroy: the call returns when the memory is free.
 */
#include "memory/calls/creation.h"
#include "memory/state/state.h"
#include "memory/store/store.h"
#include "memory/transfer/paging.h"

enum { ASSUME_NOT_IN_USE = 0x1, SYNCHRONOUS_DESTROY = 0x2 };

NTSTATUS vmm_deallocation_check(struct vmm_device *device, uint32_t flags)
{
	struct vmm_observe *observe = device->adapter->observe;

	if (!flags)
		return STATUS_SUCCESS;
	if (flags & ~(uint32_t)(ASSUME_NOT_IN_USE | SYNCHRONOUS_DESTROY))
		return vmm_refuse_rule(
			observe, STATUS_INVALID_PARAMETER, "ALF-37", device->process->id, 0,
			"deallocate with flags 0x%x: a client may set only AssumeNotInUse (0x1) "
			"and SynchronousDestroy (0x2)",
			flags);
	return vmm_model_check_call(device->adapter, device->process, 0,
				    flags & ASSUME_NOT_IN_USE
					    ? "deallocate with AssumeNotInUse"
					    : "deallocate with SynchronousDestroy",
				    ", where allocation lists tell which allocations are in use");
}

void vmm_deallocation_note(struct vmm_deallocation *d, struct vmm_ref *ref)
{
	const struct vmm_device *device = ref->device;
	const struct vmm_adapter *adapter = device->adapter;

	vmm_assert_held(&ref->allocation->adapter->paging_lock);
	if (!adapter->residency_lists)
		return;
	for (uint32_t t = 0; t < vmm_timeline_count(adapter); t++)
		ref->departs_after[t] =
			d->flags & ASSUME_NOT_IN_USE
				? 0
				: atomic_load_explicit(&device->queued[t], memory_order_relaxed);
	ref->not_in_use = d->flags & ASSUME_NOT_IN_USE;
	if (!(d->flags & SYNCHRONOUS_DESTROY))
		return;
	ref->ended_by = d;
	d->open++;
}

/* ---- AssumeNotInUse ---- */

/*
 * Returns true if paging of the instance is incomplete: the miniport may still have to write
 * commands for it.
 */
static bool is_being_paged(const struct vmm_instance *instance) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_adapter *adapter = instance->allocation->adapter;

	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	return !vmm_timeline_done(adapter, adapter->paging_timeline, vmm_paging_last_of(instance));
}

/* Returns true if no other handle, device or instance keeps the allocation alive. */
static bool is_last_ref(const struct vmm_allocation *a)
{
	return a->closing && a->references == 1 && a->instance_count == 1;
}

/*
 * Returns true if the miniport has to destroy the allocation of REF now, while the GPU still uses
 * it: the client's assumption was wrong. A packet that may still be patched needs the allocation in
 * the miniport; then the end is deferred as usual. Both cases are a finding against the client.
 */
static bool must_destroy_early(const struct vmm_memory *memory, const struct vmm_ref *ref)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_allocation *a = ref->allocation;
	bool submitted;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (!ref->not_in_use || a->gone || !vmm_instance_is_referenced(&a->first, &submitted))
		return false;
	submitted &= is_last_ref(a) && !is_being_paged(&a->first);
	vmm_finding(memory->adapter->observe, "ALF-37", ref->device->process->id, ref->handle,
		    "deallocate with AssumeNotInUse: incomplete work references 0x%08x; %s",
		    ref->handle,
		    submitted ? "the miniport destroys it now, and its memory is reused when "
				"that work is complete"
			      : "it is destroyed when that work is complete");
	return submitted;
}

/*
 * Writes the last paging commands of the allocation. After this the miniport is not called for it
 * any more.
 */
static void detach_from_miniport(struct vmm_memory *memory, struct vmm_allocation *a)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	(void)!vmm_paging_notify(memory, &a->first, false);
	if (a->first.place == VMM_PLACEMENT_APERTURE)
		(void)!vmm_paging_unmap(memory, &a->first);
	a->gone = true;
}

void vmm_deallocation_destroy_early(struct vmm_memory *memory, const struct vmm_deallocation *d)
{
	struct vmm_adapter *adapter = memory->adapter;
	struct vmm_list early, *link, *next;

	if (!(d->flags & ASSUME_NOT_IN_USE))
		return;
	vmm_list_init(&early);
	vmm_paging_lock(adapter);
	vmm_list_for_each_safe (link, next, &memory->closed) {
		struct vmm_ref *ref = vmm_container_of(link, struct vmm_ref, zombie_link);

		bool destroy = must_destroy_early(memory, ref);
		ref->not_in_use = false; /* one finding is enough */
		if (!destroy)
			continue;
		detach_from_miniport(memory, ref->allocation);
		vmm_list_remove(link);
		vmm_list_push_back(&early, link);
	}
	vmm_paging_commit(adapter);
	vmm_list_for_each (link, &early) {
		struct vmm_ref *ref = vmm_container_of(link, struct vmm_ref, zombie_link);

		vmm_port_close_allocation(adapter->port, ref->device->kmd_device, &ref->kmd_open,
					  1);
		vmm_port_destroy_allocation(adapter->port, NULL, &ref->allocation->kmd_allocation,
					    1, false);
	}
	vmm_paging_lock(
		adapter); /* the reaper takes the submit lock, so it did not run meanwhile */
	vmm_list_for_each_safe (link, next, &early) {
		vmm_list_remove(link);
		vmm_list_push_back(&memory->closed, link);
	}
	vmm_paging_commit(adapter);
}

/* ---- SynchronousDestroy ---- */

void vmm_deallocation_closed(struct vmm_memory *memory, struct vmm_deallocation *deallocation)
{
	if (!deallocation)
		return;
	vmm_paging_lock(memory->adapter);
	deallocation->open--;
	vmm_paging_commit(memory->adapter);
}

/*
 * Detaches the refs on memory->closed from a call that stops waiting, because the adapter ends or
 * the caller's process is abandoned. Their deferred destruction goes on. Caller holds the paging
 * lock.
 */
static void stop_waiting(struct vmm_memory *memory, struct vmm_deallocation *d)
{
	struct vmm_list *link;

	vmm_list_for_each (link, &memory->closed) {
		struct vmm_ref *ref = vmm_container_of(link, struct vmm_ref, zombie_link);

		if (ref->ended_by != d)
			continue;
		ref->ended_by = NULL;
		d->open--;
	}
}

void vmm_deallocation_wait(const struct vmm_device *device, struct vmm_deallocation *d)
{
	struct vmm_adapter *adapter = device->adapter;
	struct vmm_memory *memory = adapter->memory;
	uint64_t paged;

	if (!(d->flags & SYNCHRONOUS_DESTROY))
		return;
	for (;;) {
		uint32_t seen = atomic_load(&adapter->progress);

		vmm_paging_lock(adapter);
		if (atomic_load(&adapter->closed) || atomic_load(&adapter->removed) ||
		    atomic_load(&device->process->abandoned))
			stop_waiting(memory, d);
		bool open = d->open != 0;
		paged = vmm_memory_flush_locked(adapter);
		vmm_paging_commit(adapter);
		if (!open)
			break;
		(void)!vmm_wait_progress(adapter, seen, VIDMM_WAIT_DESTROY);
	}
	/* System memory is freed when the paging packets that read it are complete. */
	(void)!vmm_wait_timeline(adapter, adapter->paging_timeline, paged, VIDMM_WAIT_DESTROY,
				 NULL);
	vmm_paging_lock(adapter);
	vmm_backing_collect(memory);
	vmm_paging_commit(adapter);
}
