/* SPDX-License-Identifier: MIT */
/*
 * Context allocations (PRE-11): memory that a miniport creates for one context, or for all contexts
 * of a device, from inside DxgkDdiCreateContext or DxgkDdiCreateDevice. The GPU saves a context's
 * state there. No client has a handle of it.
 *
 * A context allocation is made resident for each packet of its context (or of any context of its
 * device), and may be evicted once that packet is complete. While the context is the last one that
 * its node ran, the GPU may still write to the allocation. Before the allocation is moved or
 * evicted, the node is therefore switched away from the context (SUB-20); its paging is ordered
 * after the switch.
 */
#include "memory/calls/creation.h"
#include "memory/placement/placement.h"
#include "memory/residency/residency.h"
#include "memory/sets/va_private.h"
#include "memory/state/state.h"
#include "memory/transfer/paging.h"

#include <string.h>

enum {
	CPU_VISIBLE = 0x1, /* DXGK_ALLOCATIONINFOFLAGS */
	FROM_END_OF_SEGMENT = 0x40,
	BUILT = CPU_VISIBLE | VMM_ALLOCATION_CACHED | VMM_ALLOCATION_PROTECTED |
		FROM_END_OF_SEGMENT | VMM_ALLOCATION_ACCESSED_PHYSICALLY,
	PRIORITY_NORMAL = 0x78000000,
};

static struct vmm_context_allocation *of_link(const struct vmm_list *link)
{
	return vmm_container_of(link, struct vmm_context_allocation, link);
}

static bool is_for(const struct vmm_context_allocation *own, const void *context)
{
	return !own->context || own->context == context;
}

/* Fast path, without a lock: most devices never had any. */
static bool has_none(const struct vmm_device *device)
{
	return !atomic_load(&device->has_context_memory);
}

/* ---- Creation. ---- */

static DXGK_ALLOCATIONINFO info_of(const DXGKARGCB_CREATECONTEXTALLOCATION *args)
{
	return (DXGK_ALLOCATIONINFO){
		.Alignment = args->Alignment,
		.Size = args->Size,
		.PreferredSegment = args->PreferredSegment,
		.HintedBank = args->HintedBank,
		.SupportedReadSegmentSet = args->SupportedSegmentSet,
		.SupportedWriteSegmentSet = args->SupportedSegmentSet,
		.EvictionSegmentSet = args->EvictionSegmentSet,
		.hAllocation = args->hDriverAllocation,
		.Flags = args->Flags,
		.AllocationPriority = PRIORITY_NORMAL,
	};
}

static NTSTATUS not_built(const struct vmm_device *device, const char *what, uint32_t value)
{
	return vmm_refuse_reason(
		device->adapter->observe, STATUS_NOT_SUPPORTED, device->process->id, 0,
		"PRE-11: DxgkCbCreateContextAllocation: %s (0x%x) is not built", what, value);
}

static NTSTATUS check(struct vmm_device *device, const DXGKARGCB_CREATECONTEXTALLOCATION *args)
{
	const struct vmm_allocation_requester asker = {.device = device};
	const struct vmm_allocate_item item = {.flags = 0};
	const DXGK_ALLOCATIONINFO info = info_of(args);
	NTSTATUS status = vmm_allocation_validate(device->adapter->memory, &info, &item, &asker);

	if (!NT_SUCCESS(status))
		return status;
	if (args->ContextAllocationFlags.MapGpuVirtualAddress && !device->va) /* */
		return not_built(device,
				 "MapGpuVirtualAddress without the miniport's GpuMmuSupported",
				 args->ContextAllocationFlags.Value);
	if (args->Flags.Value & ~(uint32_t)BUILT)
		return not_built(device, "one of the allocation's flags", args->Flags.Value);
	if (device->adapter->physical_adapters > 1)
		return not_built(device, "memory of a context on a link of adapters",
				 device->adapter->physical_adapters);
	return STATUS_SUCCESS;
}

/* Caller holds the paging lock. */
static void describe(struct vmm_context_allocation *own,
		     const DXGKARGCB_CREATECONTEXTALLOCATION *args)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_memory *memory = own->device->adapter->memory;
	struct vmm_allocation *a = &own->allocation;
	const DXGK_ALLOCATIONINFO info = info_of(args);

	vmm_assert_held(&own->device->adapter->paging_lock);
	a->adapter = memory->adapter;
	a->of_context = own;
	a->size_bytes = vmm_align_up(info.Size, VMM_PAGE_SIZE); /* SEG-11 */
	a->alignment = vmm_max_u64(info.Alignment, VMM_PAGE_SIZE);
	a->flags = info.Flags.Value & ~memory->model->unstored;
	a->read_set = a->write_set = args->SupportedSegmentSet;
	a->eviction_set = memory->caps->gpummu.supported ? 0 : info.EvictionSegmentSet;
	a->preferred = info.PreferredSegment.Value;
	a->hinted_banks = vmm_placement_hinted_banks(memory, &info);
	a->priority = PRIORITY_NORMAL;
	a->kmd_allocation = args->hDriverAllocation;
	a->owner = own->device->process->id;
	a->references = 1;
	vmm_footprint_describe(memory, a, 0);
	vmm_allocation_set_serving(a);
	vmm_list_init(&a->instances);
	vmm_list_init(&a->mappings);
	vmm_list_push_back(&memory->allocations, &a->all);
	a->adapter->allocation_count++;
	vmm_list_init(&a->queued_offer.link);
	vmm_instance_init(&a->first, a);
	own->ref.allocation = a;
	own->ref.instance = &a->first;
	own->ref.device = own->device;
}

NTSTATUS vmm_context_allocation_create(struct vmm_device *device, const void *context,
				       DXGKARGCB_CREATECONTEXTALLOCATION *args)
{
	struct vmm_context_allocation *own = NULL;

	vmm_assert(vmm_device_is_valid(device));
	NTSTATUS status = check(device, args);
	if (!NT_SUCCESS(status))
		return status;
	own = vmm_calloc(1, sizeof(*own));
	if (!own)
		return STATUS_NO_MEMORY;
	own->device = device;
	own->context = context;
	/*
	 * The call comes from the miniport, so a reset may wait for it. vmm_paging_lock does not
	 * wait for such a reset. (TDR-04)
	 */
	vmm_paging_lock(device->adapter);
	if (!vmm_ok(vmm_valued_create(device->adapter->memory, &own->allocation.first))) {
		vmm_paging_commit(device->adapter);
		vmm_free(own);
		return STATUS_NO_MEMORY;
	}
	describe(own, args);
	atomic_store(&device->has_context_memory, true);
	vmm_list_push_back(&device->context_allocations, &own->link);
	vmm_list_push_back(&device->adapter->memory->context_allocations, &own->all);
	vmm_paging_commit(device->adapter);
	vmm_tally_created(device->adapter->memory, &own->allocation);
	vmm_event(device->adapter->observe, VIDMM_EVENT_CREATE, device->process->id, 0, 0,
		  own->allocation.size_bytes, own->allocation.write_set, own->allocation.flags, 0);
	args->hAllocation = own;
	return STATUS_SUCCESS;
}

/* ---- Before a packet runs. Caller holds the paging lock. ---- */

/*
 * Returns the CPU address for INIT_CONTEXT_RESOURCE, or NULL. Only a CpuVisible and Protected
 * allocation for apertures alone has one: its backing pages stay the same wherever an aperture maps
 * them.
 */
static void *address_of(const struct vmm_instance *instance)
{
	const struct vmm_allocation *a = instance->allocation;
	const uint32_t needed = CPU_VISIBLE | VMM_ALLOCATION_PROTECTED;
	bool visible = (a->flags & needed) == needed;

	for (uint32_t i = 0; i < a->adapter->memory->segment_count; i++)
		if (a->write_set & 1u << i)
			visible &= a->adapter->memory->segment[i].aperture;
	return visible ? instance->backing.address : NULL;
}

static vmm_status initialize(struct vmm_memory *memory, struct vmm_context_allocation *own)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_instance *instance = &own->allocation.first;
	vmm_status status;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_likely(own->initialized))
		return VMM_OK;
	status = vmm_paging_init_context(memory, instance, address_of(instance));
	if (!vmm_ok(status))
		return status;
	vmm_paging_mark_instance(memory, instance, true);
	own->initialized = true;
	return VMM_OK;
}

bool vmm_context_allocations_are_resident(const struct vmm_device *device, const void *context)
{
	const struct vmm_list *link;

	vmm_assert_held(&device->adapter->paging_lock);
	vmm_list_for_each (link, &device->context_allocations) {
		const struct vmm_context_allocation *own = of_link(link);
		const struct vmm_instance *i = &own->allocation.first;

		if (is_for(own, context) &&
		    (!own->initialized ||
		     (i->place != VMM_PLACEMENT_MEMORY && i->place != VMM_PLACEMENT_APERTURE)))
			return false;
	}
	return true;
}

vmm_status vmm_context_allocations_make_resident(struct vmm_device *device, const void *context,
						 uint64_t preparation)
{
	struct vmm_adapter *adapter = device->adapter;
	struct vmm_list *link;
	vmm_status status = VMM_OK;

	vmm_assert_held(&device->adapter->paging_lock);
	vmm_list_for_each (link, &device->context_allocations)
		if (is_for(of_link(link), context))
			of_link(link)->allocation.first.required_by = preparation;
	vmm_list_for_each (link, &device->context_allocations) {
		struct vmm_context_allocation *own = of_link(link);
		struct vmm_instance *instance = &own->allocation.first;

		if (!is_for(own, context))
			continue;
		status = adapter->model->make_resident(adapter->memory, instance, preparation);
		if (status == VMM_OK)
			status = initialize(adapter->memory, own);
		if (status != VMM_OK)
			break;
	}
	return status;
}

uint64_t vmm_context_allocations_use(struct vmm_device *device, const void *context,
				     uint32_t timeline, uint64_t sequence)
{
	struct vmm_list *link;
	uint64_t paged = 0;

	vmm_assert_held(&device->adapter->paging_lock);
	vmm_list_for_each (link, &device->context_allocations) {
		struct vmm_instance *instance = &of_link(link)->allocation.first;

		if (!is_for(of_link(link), context))
			continue;
		vmm_instance_activate(instance, timeline, sequence);
		paged = vmm_max_u64(paged, vmm_paging_last_of(instance));
	}
	return paged;
}

/* ---- DxgkCbUpdateContextAllocation (VA-21) ---- */

/* Returns VMM_PENDING if the caller must retry after progress of the GPU. */
static vmm_status update_locked(struct vmm_context_allocation *own, void *private_data,
				uint32_t private_bytes) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = own->device->adapter;
	struct vmm_memory *memory = adapter->memory;
	struct vmm_instance *instance = &own->allocation.first;

	vmm_assert_held(&adapter->paging_lock);
	if (!vmm_instance_unused(instance))
		return VMM_PENDING;
	vmm_status status = adapter->model->make_resident(memory, instance, VMM_NO_PREPARATION);
	if (status == VMM_OK)
		status = initialize(memory, own);
	if (status != VMM_OK)
		return status;
	/* The GPU may still save the state of the context that its node ran last. (SUB-20) */
	vmm_paging_switch_away(memory, instance);
	status = vmm_paging_update_context(memory, instance, private_data, private_bytes);
	if (!vmm_ok(status))
		return status;
	vmm_paging_mark_instance(memory, instance, true);
	return adapter->memory->engine->wait_locked(adapter, adapter->paging_timeline,
						    vmm_memory_flush_locked(adapter),
						    VIDMM_WAIT_PAGING_BUFFER);
}

/* One attempt. VMM_PENDING: retry after progress. */
static NTSTATUS try_update(struct vmm_adapter *adapter,
			   const DXGKARGCB_UPDATECONTEXTALLOCATION *args)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_context_allocation *own =
		vmm_context_allocation_find(adapter->memory, args->hAllocation);
	const bool no_data = args->PrivateDriverDataSize && !args->pPrivateDriverData;

	vmm_assert_held(&adapter->paging_lock);
	if (!own || no_data)
		return vmm_refuse_rule(
			adapter->observe, own ? STATUS_INVALID_PARAMETER : STATUS_INVALID_HANDLE,
			"VA-21", own ? own->device->process->id : 0, 0,
			"DxgkCbUpdateContextAllocation: %p is %s", args->hAllocation,
			own ? "updated with a PrivateDriverDataSize and no pPrivateDriverData"
			    : "not a context allocation of the adapter");
	if (!adapter->memory->caps->gpummu.supported)
		return vmm_refuse_reason(
			adapter->observe, STATUS_NOT_SUPPORTED, own->device->process->id, 0,
			"VA-21: DxgkCbUpdateContextAllocation: the adapter has no GPU virtual "
			"addresses (GpuMmuSupported), so no paging process");
	vmm_status status =
		update_locked(own, args->pPrivateDriverData, args->PrivateDriverDataSize);

	return status == VMM_NO_VIDEO_MEMORY ? STATUS_NO_MEMORY : status;
}

NTSTATUS vmm_context_allocation_update(struct vmm_adapter *adapter,
				       const DXGKARGCB_UPDATECONTEXTALLOCATION *args)
{
	for (;;) {
		uint32_t seen = atomic_load(&adapter->progress);

		vmm_paging_lock(adapter); /* called from the miniport: as at creation */
		NTSTATUS status = try_update(adapter, args);
		vmm_paging_commit(adapter);
		if (status != VMM_PENDING)
			return status;
		if (atomic_load(&adapter->recovering) ||
		    !vmm_ok(vmm_wait_progress(adapter, seen, VIDMM_WAIT_PAGING_BUFFER)))
			return STATUS_DEVICE_REMOVED;
	}
}

/* ---- Eviction and end. Caller of the first three functions holds the paging lock. ---- */

static void leave(struct vmm_memory *memory, struct vmm_context_allocation *own)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_instance *instance = &own->allocation.first;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (instance->place == VMM_PLACEMENT_FRESH || instance->place == VMM_PLACEMENT_LOST)
		return;
	vmm_paging_switch_away(memory, instance);
	vmm_residency_drop(memory, instance, VIDMM_RESIDENCY_DESTROYED);
}

static void finish(struct vmm_memory *memory, struct vmm_context_allocation *own)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_unlikely(!vmm_list_empty(&own->allocation.mappings))) /* VA-20 */
		vmm_va_forget_ref(&own->ref);
	leave(memory, own);
	vmm_instance_finish(memory, &own->allocation.first);
	vmm_list_remove(&own->allocation.all);
	memory->adapter->allocation_count--;
	vmm_list_remove(&own->link);
	vmm_list_remove(&own->all);
}

void vmm_context_allocations_retire(struct vmm_device *device, const void *context)
{
	struct vmm_adapter *adapter = device->adapter;
	struct vmm_list *link;

	if (vmm_likely(has_none(device)))
		return;
	vmm_paging_lock(adapter);
	vmm_list_for_each (link, &device->context_allocations)
		if (of_link(link)->context == context)
			leave(adapter->memory, of_link(link));
	vmm_paging_commit(adapter);
}

void vmm_context_allocations_end(struct vmm_device *device, const void *context)
{
	struct vmm_list *link, *next;

	if (vmm_likely(has_none(device)))
		return;
	vmm_paging_lock(device->adapter);
	vmm_list_for_each_safe (link, next, &device->context_allocations) {
		struct vmm_context_allocation *own = of_link(link);

		if (own->context != context)
			continue;
		finish(device->adapter->memory, own);
		vmm_free(own);
	}
	vmm_paging_commit(device->adapter);
}

/*
 * Returns false if the GPU still uses the allocation. Otherwise it is freed, or *status is
 * STATUS_INVALID_HANDLE.
 */
static bool try_destroy(struct vmm_adapter *adapter, const void *handle, NTSTATUS *status)
{
	struct vmm_context_allocation *own;
	bool over = true;

	vmm_paging_lock(adapter); /* called from the miniport: as at creation */
	own = vmm_context_allocation_find(adapter->memory, handle);
	*status = own ? STATUS_SUCCESS : STATUS_INVALID_HANDLE;
	if (own && !vmm_instance_unused(&own->allocation.first))
		over = false;
	else if (own)
		finish(adapter->memory, own);
	vmm_paging_commit(adapter);
	if (own && over)
		vmm_free(own);
	return over;
}

NTSTATUS vmm_context_allocation_destroy(struct vmm_adapter *adapter, const void *handle)
{
	NTSTATUS status;
	uint32_t seen = atomic_load(&adapter->progress);

	while (!try_destroy(adapter, handle, &status)) {
		if (atomic_load(&adapter->recovering) ||
		    !vmm_ok(vmm_wait_progress(adapter, seen, VIDMM_WAIT_DESTROY)))
			return STATUS_DEVICE_REMOVED;
		seen = atomic_load(&adapter->progress);
	}
	if (!NT_SUCCESS(status))
		vmm_finding(adapter->observe, "PRE-11", 0, 0,
			    "DxgkCbDestroyContextAllocation: %p is not a context allocation of the "
			    "adapter",
			    handle);
	return status;
}
