/* SPDX-License-Identifier: MIT */
/*
 * What pfnDeallocate2Cb may ask for (ALF-37). By default, from 2.0 on, an allocation ends when everything is complete that
 * its device had queued by then, whether a list named it or not. AssumeNotInUse: only work that names it counts, and what
 * of that has been handed to the GPU counts for its place alone: the miniport hears of its end at once, and nobody else
 * gets the memory before. SynchronousDestroy: the caller comes back when the memory is free.
 */
#include "memory/memory_private.h"

enum { ASSUME_NOT_IN_USE = 0x1, SYNCHRONOUS_DESTROY = 0x2 };

NTSTATUS vmm_deallocation_check(struct vmm_device *device, uint32_t flags)
{
	struct vmm_observe *observe = device->adapter->observe;

	if (!flags)
		return STATUS_SUCCESS;
	if (flags & ~(uint32_t)(ASSUME_NOT_IN_USE | SYNCHRONOUS_DESTROY)) {
		vmm_finding(observe, "ALF-37", device->process->id, 0,
			    "deallocate with flags 0x%x: of them only AssumeNotInUse (0x1) and "
			    "SynchronousDestroy (0x2) are a client's",
			    flags);
		return STATUS_INVALID_PARAMETER;
	}
	if (device->adapter->wddm2)
		return STATUS_SUCCESS;
	vmm_reason(observe, STATUS_NOT_SUPPORTED, device->process->id, 0,
		   "deallocate with flags 0x%x: the adapter's miniport is of WDDM 1.x, where the "
		   "lists of allocations say what is in use",
		   flags);
	return STATUS_NOT_SUPPORTED;
}

void vmm_deallocation_note(struct vmm_deallocation *d, struct vmm_ref *ref)
{
	const struct vmm_device *device = ref->device;
	const struct vmm_adapter *adapter = device->adapter;

	if (!adapter->wddm2)
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

/* The miniport may still have to write what moves it. */
static bool is_being_paged(const struct vmm_instance *instance)
{
	const struct vmm_adapter *adapter = instance->allocation->adapter;

	return !vmm_timeline_done(adapter, adapter->paging_timeline, vmm_resident_paged(instance));
}

static bool is_alone(const struct vmm_allocation *a)
{
	return a->closing && a->references == 1 && a->instance_count == 1;
}

/*
 * A client that is wrong about it. A packet that is still to be patched, or may be again, needs the allocation in the miniport, so its end
 * waits as if nothing had been assumed.
 */
static bool is_to_be_told(const struct vmm_memory *memory, const struct vmm_ref *ref)
{
	const struct vmm_allocation *a = ref->allocation;
	bool prepared;

	if (!ref->not_in_use || a->gone || !vmm_instance_named(&a->first, &prepared))
		return false;
	prepared &= is_alone(a) && !is_being_paged(&a->first);
	vmm_finding(memory->adapter->observe, "ALF-37", ref->device->process->id, ref->handle,
		    "deallocate with AssumeNotInUse: the GPU has work that names 0x%08x; %s",
		    ref->handle,
		    prepared ? "the miniport destroys it now, and nobody gets its memory before "
			       "that is done"
			     : "it ends when that is done");
	return prepared;
}

/* Its last commands; from here on the miniport is not asked about it any more. */
static void take_out(struct vmm_memory *memory, struct vmm_allocation *a)
{
	(void)!vmm_paging_notify(memory, &a->first, false);
	if (a->first.place == VMM_PLACE_APERTURE)
		(void)!vmm_paging_unmap(memory, &a->first);
	a->gone = true;
}

void vmm_deallocation_tell(struct vmm_memory *memory, const struct vmm_deallocation *d)
{
	struct vmm_adapter *adapter = memory->adapter;
	struct vmm_list told, *link, *next;

	if (!(d->flags & ASSUME_NOT_IN_USE))
		return;
	vmm_list_init(&told);
	vmm_paging_lock(adapter);
	vmm_list_for_each_safe (link, next, &memory->closed) {
		struct vmm_ref *ref = vmm_container_of(link, struct vmm_ref, zombie_link);

		bool tell = is_to_be_told(memory, ref);
		ref->not_in_use = false; /* said once */
		if (!tell)
			continue;
		take_out(memory, ref->allocation);
		vmm_list_remove(link);
		vmm_list_push_back(&told, link);
	}
	vmm_paging_unlock(adapter);
	vmm_list_for_each (link, &told) {
		struct vmm_ref *ref = vmm_container_of(link, struct vmm_ref, zombie_link);

		vmm_port_close_allocation(adapter->port, ref->device->kmd_device, &ref->kmd_open,
					  1);
		vmm_port_destroy_allocation(adapter->port, NULL, &ref->allocation->kmd_allocation,
					    1, false);
	}
	vmm_paging_lock(adapter); /* not reaped meanwhile: that takes the submit lock */
	vmm_list_for_each_safe (link, next, &told) {
		vmm_list_remove(link);
		vmm_list_push_back(&memory->closed, link);
	}
	vmm_paging_unlock(adapter);
}

/* ---- SynchronousDestroy ---- */

void vmm_deallocation_closed(struct vmm_memory *memory, struct vmm_deallocation *deallocation)
{
	if (!deallocation)
		return;
	vmm_paging_lock(memory->adapter);
	deallocation->open--;
	vmm_paging_unlock(memory->adapter);
}

/* The adapter ends, or nobody hears of it: what waits to be closed goes on without this call. */
static void wait_no_more(struct vmm_memory *memory, struct vmm_deallocation *d)
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
			wait_no_more(memory, d);
		bool open = d->open != 0;
		paged = vmm_memory_flush_locked(adapter);
		vmm_paging_unlock(adapter);
		if (!open)
			break;
		(void)!vmm_wait_progress(adapter, seen, VIDMM_WAIT_DESTROY);
	}
	/* Pages of system memory come free with the paging that still reads them. */
	(void)!vmm_wait_timeline(adapter, adapter->paging_timeline, paged, VIDMM_WAIT_DESTROY,
				 NULL);
	vmm_paging_lock(adapter);
	vmm_backing_collect(memory);
	vmm_paging_unlock(adapter);
}
