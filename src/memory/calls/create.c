/* SPDX-License-Identifier: MIT */
/*
 * Creation of allocations. The steps are DxgkDdiCreateAllocation, validation of its answer, objects
 * and handles, and DxgkDdiOpenAllocation (ALF-34). A call creates all of its allocations or none:
 * if a step fails, the miniport is called to undo its part, and the caller gets no handle. Only
 * allocations that are pinned need segment space now (PAG-01).
 */
#include "memory/calls/creation.h"
#include "memory/image/image.h"
#include "memory/locks/locks.h"
#include "memory/placement/client_object.h"
#include "memory/placement/placement.h"
#include "memory/residency/residency.h"
#include "memory/state/state.h"
#include "memory/store/arena.h"
#include "memory/store/store.h"

#include <string.h>

enum {
	CPU_VISIBLE = 0x1, /* DXGK_ALLOCATIONINFOFLAGS */
	EXISTING_SYSMEM = 0x10,
	PRIMARY = 0x1, /* D3DDDI_ALLOCATIONINFO */
};

enum { FEW = 2 }; /* for this many items the arrays are on the stack */

/* What a call of up to FEW allocations needs for each of them; not initialized. */
struct creation_few {
	DXGK_ALLOCATIONINFO infos[FEW];
	DXGK_OPENALLOCATIONINFO opens[FEW];
	struct vmm_ref *refs[FEW];
	struct vmm_allocation *allocations[FEW];
	HANDLE kmd_handles[FEW];
	struct vmm_backing stores[FEW];
};

struct creation {
	struct vmm_device *device;
	struct vmm_memory *memory;
	struct vmm_allocate_request *request;
	struct vmm_resource *resource;
	bool new_resource;
	DXGK_ALLOCATIONINFO *infos;
	DXGK_OPENALLOCATIONINFO *opens;
	struct vmm_ref **refs;
	struct vmm_allocation **allocations;
	/* Allocated in advance, because undoing must not fail: kmd_handles, stores. */
	HANDLE *kmd_handles;
	struct vmm_backing *stores;
	void *kmd_resource;
	bool new_kmd_resource;
	struct creation_few *few;
};

static void creation_free(struct creation *c)
{
	if (vmm_unlikely(c->device->process->viewer != NULL))
		for (uint32_t i = 0; i < c->request->count; i++)
			vmm_section_put(c->request->items[i].adopted);
	if (c->infos == c->few->infos)
		return;
	vmm_free(c->infos);
	vmm_free(c->opens);
	vmm_free(c->refs);
	vmm_free(c->allocations);
	vmm_free(c->kmd_handles);
	vmm_free(c->stores);
}

static void zero_few(struct creation_few *few, uint32_t index)
{
	few->infos[index] = (DXGK_ALLOCATIONINFO){0};
	few->opens[index] = (DXGK_OPENALLOCATIONINFO){0};
	few->refs[index] = NULL;
	few->allocations[index] = NULL;
	few->kmd_handles[index] = NULL;
	few->stores[index] = (struct vmm_backing){0};
}

/*
 * Zeroes the elements in use only: to zero all of them costs more than a DDI call. Each call has a
 * constant index, for which the compiler makes stores; of a loop it makes string instructions,
 * which were an eighth of a creation.
 */
static void use_few(struct creation *c, uint32_t count)
{
	struct creation_few *few = c->few;

	_Static_assert(FEW == 2, "one call for each element");
	if (count > 0)
		zero_few(few, 0);
	if (count > 1)
		zero_few(few, 1);
	c->infos = few->infos;
	c->opens = few->opens;
	c->refs = few->refs;
	c->allocations = few->allocations;
	c->kmd_handles = few->kmd_handles;
	c->stores = few->stores;
}

static bool creation_arrays(struct creation *c, uint32_t count)
{
	if (vmm_likely(count <= FEW)) {
		use_few(c, count);
		return true;
	}
	c->infos = vmm_calloc(count, sizeof(*c->infos));
	c->opens = vmm_calloc(count, sizeof(*c->opens));
	c->refs = vmm_calloc(count, sizeof(*c->refs));
	c->allocations = vmm_calloc(count, sizeof(*c->allocations));
	c->kmd_handles = vmm_calloc(count, sizeof(*c->kmd_handles));
	c->stores = vmm_calloc(count, sizeof(*c->stores));
	return c->infos && c->opens && c->refs && c->allocations && c->kmd_handles && c->stores;
}

static NTSTATUS creation_init(struct creation *c)
{
	if (!creation_arrays(c, c->request->count))
		return STATUS_NO_MEMORY;
	for (uint32_t i = 0; i < c->request->count; i++) {
		c->infos[i].pPrivateDriverData = c->request->items[i].private_data;
		c->infos[i].PrivateDriverDataSize = c->request->items[i].private_bytes;
	}
	return STATUS_SUCCESS;
}

static NTSTATUS ask_miniport(struct creation *c)
{
	DXGKARG_CREATEALLOCATION args = {
		.pPrivateDriverData = c->request->private_data,
		.PrivateDriverDataSize = c->request->private_bytes,
		.NumAllocations = c->request->count,
		.pAllocationInfo = c->infos,
	};

	args.Flags.Resource = c->resource != NULL;
	if (c->resource && c->resource->kmd)
		args.hResource = c->resource->kmd->handle;
	struct vmm_process *before =
		vmm_calling_process_set(c->device->adapter->os, c->device->process);
	NTSTATUS status = vmm_port_create_allocation(c->device->adapter->port, &args);
	vmm_calling_process_set(c->device->adapter->os, before);
	if (!NT_SUCCESS(status))
		return status;
	c->new_kmd_resource = c->resource && !c->resource->kmd;
	c->kmd_resource = args.hResource;
	return STATUS_SUCCESS;
}

/*
 * Asks an out-of-process client for existing memory that it passed by address (ALF-13). This comes
 * after all checks of the request and of the miniport's answer.
 */
static NTSTATUS adopt_memory(struct creation *c)
{
	struct vmm_allocate_request *request = c->request;
	NTSTATUS status = STATUS_SUCCESS;

	if (vmm_likely(!c->device->process->viewer) || request->section)
		return status;
	for (uint32_t i = 0; i < request->count && NT_SUCCESS(status); i++)
		if (c->infos[i].Flags.Value & VMM_ALLOCATION_EXISTING)
			status = vmm_existing_adopt(c->device, &request->items[i], &c->infos[i]);
	return status;
}

static NTSTATUS check_answer(struct creation *c)
{
	struct vmm_allocate_request *request = c->request;
	const struct vmm_allocation_requester asker = {.device = c->device,
						       .shared = c->resource && c->resource->shared,
						       .has_section = request->section != NULL};
	NTSTATUS status = STATUS_SUCCESS;

	if (request->heap_bytes)
		status = vmm_standard_check(c->device, request, &c->infos[0]);
	/* The miniport did not set the read set. (SEG-19) */
	for (uint32_t i = 0; i < request->count && c->memory->model->one_segment_set; i++)
		c->infos[i].SupportedReadSegmentSet = c->infos[i].SupportedWriteSegmentSet;
	for (uint32_t i = 0; i < request->count && NT_SUCCESS(status); i++)
		status = vmm_allocation_validate(c->memory, &c->infos[i], &request->items[i],
						 &asker);
	if (NT_SUCCESS(status) && request->cross_adapter)
		status = vmm_cross_adapter_check(c->device, request, &c->infos[0]);
	return NT_SUCCESS(status) ? adopt_memory(c) : status;
}

static void tell_miniport_destroyed(struct creation *c)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < c->request->count; i++)
		if (c->infos[i].hAllocation)
			c->kmd_handles[count++] = c->infos[i].hAllocation;
	if (count || c->new_kmd_resource)
		vmm_port_destroy_allocation(c->device->adapter->port, c->kmd_resource,
					    c->kmd_handles, count, c->new_kmd_resource);
}

/*
 * A primary is always CPU-visible. Its write set applies to reads, too, so that the display can
 * scan it (ALF-31). No device owns it (PAG-10).
 */
static void describe_primary(struct vmm_allocation *a, uint32_t source_id)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&a->adapter->paging_lock);
	a->primary = true;
	a->source_id = source_id;
	a->flags |= CPU_VISIBLE;
	a->read_set = a->write_set;
	a->kmd_device = NULL;
}

/*
 * Its memory, a section, may be older than the allocation and may outlive it, as existing memory
 * does (ALF-39).
 */
static void describe_cross_adapter(struct vmm_allocation *a, const struct vmm_section *section)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&a->adapter->paging_lock);
	a->flags |= EXISTING_SYSMEM;
	a->shared = true;
	a->owner = section->picture.owner;
}

/*
 * Returns true if the creator may lock the allocation, so that its content may have to be mapped
 * into that client.
 */
static bool creator_may_lock(const struct creation *c, const struct vmm_allocation *a)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&c->device->adapter->paging_lock);
	/* LOCK-47 */
	return ((a->flags & VMM_ALLOCATION_VISIBLE) || c->memory->model->locks_invisible) &&
	       !(a->flags & (VMM_ALLOCATION_PROTECTED | VMM_ALLOCATION_HARDWARE_PROTECTED)) &&
	       a->owner == c->device->process->id;
}

static void describe(struct vmm_allocation *a, const struct creation *c, uint32_t index)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const DXGK_ALLOCATIONINFO *info = &c->infos[index];

	vmm_assert_held(&c->device->adapter->paging_lock);
	a->adapter = c->device->adapter;
	a->size_bytes = vmm_align_up(info->Size, VMM_PAGE_SIZE); /* whole pages (SEG-11) */
	a->alignment = vmm_max_u64(info->Alignment, VMM_PAGE_SIZE);
	a->flags = info->Flags.Value & ~c->memory->model->unstored;
	a->flags2 = vmm_flags2_of(c->memory, info);
	a->read_set = info->SupportedReadSegmentSet;
	a->write_set = info->SupportedWriteSegmentSet;
	/* GPU virtual addresses reach all pages without an aperture (PAG-26). */
	a->eviction_set = c->memory->caps->gpummu.supported ? 0 : info->EvictionSegmentSet;
	a->preferred = info->PreferredSegment.Value;
	a->hinted_banks = vmm_placement_hinted_banks(c->memory, info);
	if (c->memory->model->renames) /* else the member is PhysicalAdapterIndex (C-10) */
		a->renaming_limit = info->MaximumRenamingListLength;
	/* The miniport's priority, unless the caller overrides it (PRI-02). */
	a->priority = c->request->items[index].flags & VMM_ALLOCATE_OVERRIDE_PRIORITY
			      ? c->request->items[index].priority
			      : info->AllocationPriority;
	a->kmd_allocation = info->hAllocation;
	a->kmd_device = c->device->kmd_device;
	a->owner = c->device->process->id;
	a->account = vmm_account_get(c->device->process->account);
	a->shared = c->resource && c->resource->shared;
	if (c->request->cross_adapter)
		describe_cross_adapter(a, c->request->section);
	a->pinned = info->Flags.Overlay || info->Flags.Capture;
	vmm_footprint_describe(c->memory, a, info->PitchAlignedSize);
	if (info->Flags.Value & c->memory->model->in_vpr)
		vmm_protected_describe(c->memory, a);
	if (c->request->items[index].flags & PRIMARY)
		describe_primary(a, c->request->items[index].source_id);
	if (vmm_unlikely(c->device->process->viewer != NULL) && creator_may_lock(c, a))
		a->viewer = c->device->process->viewer;
	vmm_allocation_set_serving(a);
	a->references = 1;
	a->open_handles = 1;
	vmm_list_init(&a->instances);
	vmm_list_init(&a->mappings);
	vmm_list_push_back(&c->memory->allocations, &a->all);
	a->adapter->allocation_count++;
	vmm_list_init(&a->queued_offer.link);
	vmm_instance_init(&a->first, a);
}

/*
 * Makes what the content of an out-of-process client may need descriptors for. Later, when a packet
 * or an eviction moves the content, none is needed.
 */
static vmm_status prepare_client(struct vmm_memory *memory, const struct vmm_allocation *allocation)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_likely(!allocation->viewer))
		return VMM_OK;
	uint64_t owner = vmm_os_viewer_owner(allocation->viewer);
	vmm_status status = vmm_client_objects_prepare(memory, owner);

	if (vmm_ok(status))
		status = vmm_host_prepare_viewer(memory, owner);
	if (vmm_ok(status))
		status = vmm_arenas_prepare(memory, owner);
	if (!vmm_ok(status))
		vmm_reason(memory->adapter->observe, status, allocation->owner, 0,
			   "Q-455: create refused: the host has no memory or no descriptors left "
			   "for the memory objects of process %u",
			   allocation->owner);
	return status;
}

/* Creates objects and handles. The client learns the handles only when the call returns. */
static NTSTATUS create_objects(struct creation *c)
{
	struct vmm_process *process = c->device->process;
	NTSTATUS status = STATUS_SUCCESS;

	vmm_paging_lock(c->device->adapter);
	for (uint32_t i = 0; i < c->request->count; i++) {
		struct vmm_allocation *a = c->allocations[i] = vmm_pool_take(c->memory);

		if (!a) {
			status = STATUS_NO_MEMORY;
			break;
		}
		struct vmm_ref *ref = c->refs[i] = &a->own;

		describe(a, c, i);
		const struct vmm_allocate_item *item = &c->request->items[i];
		status = prepare_client(c->memory, a);
		if (vmm_ok(status))
			status = vmm_valued_create(c->memory, &a->first);
		if (vmm_ok(status))
			status = vmm_retained_create(c->memory, &a->first, item->system_memory,
						     item->adopted ? item->adopted
								   : c->request->section);
		if (!vmm_ok(status))
			break;
		ref->allocation = a;
		ref->instance = &a->first;
		ref->resource = c->resource;
		ref->creator = true;
		vmm_list_init(&ref->device_link);
		vmm_list_init(&ref->resource_link);
		vmm_list_init(&ref->zombie_link);
		vmm_list_init(&ref->residency_link);
		vmm_list_init(&ref->leaving_link);
		vmm_list_init(&ref->departure_link);
		vmm_process_lock(process);
		ref->handle = vmm_handle_create(&process->handles, VMM_HANDLE_ALLOCATION, ref);
		vmm_process_unlock(process);
		a->first.handle = ref->handle;
		if (!ref->handle) {
			status = STATUS_NO_MEMORY;
			break;
		}
	}
	vmm_paging_commit(c->device->adapter);
	return status;
}

/*
 * Reports why an allocation could not be pinned. If it is larger than the part for pinned
 * allocations (the last fifth) of every segment of its sets, it can never be placed: that is a
 * finding against the miniport.
 */
static void report_not_pinned(const struct creation *c, const struct vmm_allocation *a)
{
	struct vmm_observe *observe = c->device->adapter->observe;
	uint64_t largest = 0;

	for (uint32_t i = 0; i < c->memory->segment_count; i++) {
		const struct vmm_segment *segment = &c->memory->segment[i];

		const struct vmm_placement_part part = vmm_placement_pinned_part(segment, a);

		if (a->read_set & a->write_set & 1u << i)
			largest = vmm_max_u64(largest, part.high - part.low);
	}
	if (a->size_bytes > largest)
		vmm_finding(observe, "PAG-19", a->owner, 0,
			    "create refused: %llu bytes are to be pinned, but the last fifth of a "
			    "segment of its sets (read 0x%x, write 0x%x) has at most %llu bytes "
			    "(ALF-19, ALF-20)",
			    (unsigned long long)a->size_bytes, a->read_set, a->write_set,
			    (unsigned long long)largest);
	else
		vmm_reason(observe, STATUS_NO_VIDEO_MEMORY, a->owner, 0,
			   "PAG-19: create refused: no free space for %llu bytes that are to be "
			   "pinned in the last fifth of a segment (ALF-19, ALF-20)",
			   (unsigned long long)a->size_bytes);
}

/*
 * Repeats TRY, under the paging lock, until it does not return VMM_PENDING. In between it waits for
 * progress of the GPU, which uses what must be evicted, with no lock held. No other thread knows
 * the allocation yet.
 */
static NTSTATUS retry_until_placed(struct creation *c, struct vmm_instance *instance,
				   vmm_status (*try)(struct vmm_memory *, struct vmm_instance *))
{
	struct vmm_adapter *adapter = c->device->adapter;
	vmm_status status;

	do {
		uint32_t seen = atomic_load(&adapter->progress);

		vmm_paging_lock(adapter);
		status = try(c->memory, instance);
		vmm_paging_commit(adapter);
		if (status != VMM_PENDING)
			return status;
		if (atomic_load(&c->device->process->abandoned))
			return STATUS_DEVICE_REMOVED;
		status = vmm_wait_progress(adapter, seen, VIDMM_WAIT_SPACE);
	} while (vmm_ok(status));
	return status;
}

/*
 * DMA buffers that are mapped into an aperture are not evicted for the allocation. Those that no
 * packet needs now are unmapped. The call does not wait for the others: a busy process always has
 * some.
 */
static vmm_status pin(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_allocation *a = instance->allocation;
	vmm_status status = vmm_residency_pin(memory, instance);
	bool left;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (status == VMM_NO_VIDEO_MEMORY &&
	    (a->read_set & a->write_set & vmm_segment_apertures(memory)) &&
	    memory->engine->unmap_buffers(memory->adapter, &left))
		status = vmm_residency_pin(memory, instance);
	return status;
}

/*
 * Gives allocations that are pinned their placements; without one, creation fails (PAG-01, ALF-19,
 * ALF-20).
 */
static NTSTATUS pin_all(struct creation *c)
{
	NTSTATUS status = STATUS_SUCCESS;

	uint32_t i;

	for (i = 0; i < c->request->count && NT_SUCCESS(status); i++)
		if (c->allocations[i]->pinned)
			status = retry_until_placed(c, &c->allocations[i]->first, pin);
	if (status == VMM_NO_VIDEO_MEMORY)
		report_not_pinned(c, c->allocations[i - 1]);
	return status;
}

/* Gives primaries with UseAlternateVA a placement and a swizzling range (ALF-22). */
static NTSTATUS take_ranges(struct creation *c)
{
	NTSTATUS status = STATUS_SUCCESS;

	for (uint32_t i = 0; i < c->request->count && NT_SUCCESS(status); i++) {
		struct vmm_allocation *a = c->allocations[i];

		if (vmm_likely(!(a->flags & VMM_ALLOCATION_ALTERNATE)))
			continue;
		status = retry_until_placed(c, &a->first, vmm_swizzle_create);
		if (status == VMM_NO_VIDEO_MEMORY)
			vmm_reason(
				c->device->adapter->observe, STATUS_NO_VIDEO_MEMORY, a->owner, 0,
				"ALF-22: create refused: no free space in the write set 0x%x, or "
				"no swizzling range, for %llu bytes of a primary with "
				"UseAlternateVA",
				a->write_set, (unsigned long long)a->size_bytes);
	}
	return status;
}

static void undo_objects(struct creation *c)
{
	struct vmm_process *process = c->device->process;

	vmm_paging_lock(c->device->adapter);
	for (uint32_t i = 0; i < c->request->count; i++) {
		if (c->refs[i] && c->refs[i]->handle) {
			vmm_process_lock(process);
			vmm_handle_destroy(&process->handles, c->refs[i]->handle);
			vmm_process_unlock(process);
		}
		if (c->allocations[i] && c->allocations[i]->adapter) {
			c->stores[i] = vmm_backing_share_take(c->allocations[i]);
			vmm_instance_finish(c->memory, &c->allocations[i]->first);
			vmm_list_remove(&c->allocations[i]->all);
			c->device->adapter->allocation_count--;
			vmm_account_put(c->allocations[i]->account);
		}
		vmm_pool_give(c->memory, c->allocations[i]);
	}
	vmm_paging_commit(c->device->adapter);
}

/*
 * Frees shared backing stores after DxgkDdiDestroyAllocation: until then the miniport may access
 * them (ALF-30).
 */
static void undo_stores(struct creation *c)
{
	for (uint32_t i = 0; i < c->request->count; i++)
		vmm_backing_share_free(c->memory, &c->stores[i]);
}

static NTSTATUS share_stores(struct creation *c)
{
	NTSTATUS status = STATUS_SUCCESS;

	for (uint32_t i = 0; i < c->request->count && NT_SUCCESS(status); i++)
		status = vmm_backing_share_announce(c->memory, c->allocations[i]);
	return status;
}

static NTSTATUS open_in_miniport(struct creation *c)
{
	DXGKARG_OPENALLOCATION args = {
		.NumAllocations = c->request->count,
		.pOpenAllocation = c->opens,
		.pPrivateDriverData = c->request->private_data,
		.PrivateDriverSize = c->request->private_bytes,
	};

	args.Flags.Create = 1;
	for (uint32_t i = 0; i < c->request->count; i++) {
		c->opens[i].hAllocation = c->refs[i]->handle;
		c->opens[i].pPrivateDriverData = c->request->items[i].private_data;
		c->opens[i].PrivateDriverDataSize = c->request->items[i].private_bytes;
	}
	struct vmm_process *before =
		vmm_calling_process_set(c->device->adapter->os, c->device->process);
	NTSTATUS status =
		vmm_port_open_allocation(c->device->adapter->port, c->device->kmd_device, &args);
	vmm_calling_process_set(c->device->adapter->os, before);
	if (!NT_SUCCESS(status))
		return status;
	for (uint32_t i = 0; i < c->request->count; i++) {
		c->refs[i]->kmd_open = c->opens[i].hDeviceSpecificAllocation;
		if (!c->refs[i]->kmd_open)
			status = vmm_refuse_rule(c->device->adapter->observe,
						 STATUS_INVALID_PARAMETER, "ALF-34",
						 c->device->process->id, c->refs[i]->handle,
						 "DxgkDdiOpenAllocation succeeded and left "
						 "hDeviceSpecificAllocation NULL");
	}
	if (!NT_SUCCESS(status))
		for (uint32_t i = 0; i < c->request->count; i++)
			if (c->refs[i]->kmd_open)
				vmm_port_close_allocation(c->device->adapter->port,
							  c->device->kmd_device,
							  &c->refs[i]->kmd_open, 1);
	return status;
}

static NTSTATUS adopt_kmd_resource(struct creation *c)
{
	if (!c->new_kmd_resource)
		return STATUS_SUCCESS;
	struct vmm_kmd_resource *kmd = vmm_calloc(1, sizeof(*kmd));

	if (!kmd)
		return STATUS_NO_MEMORY;
	kmd->handle = c->kmd_resource;
	kmd->references = 1;
	c->resource->kmd = kmd;
	return STATUS_SUCCESS;
}

/*
 * Each allocation has a reference to the miniport's resource, which lives as long as the last of
 * them.
 */
static void hold_kmd_resource(const struct creation *c)
{
	if (vmm_likely(!c->resource || !c->resource->kmd))
		return;
	vmm_paging_lock(c->device->adapter);
	c->resource->kmd->references += c->request->count;
	vmm_paging_commit(c->device->adapter);
}

static void publish(struct creation *c)
{
	struct vmm_process *process = c->device->process;
	struct vmm_adapter *adapter = c->device->adapter;

	hold_kmd_resource(c);
	vmm_process_lock(process);
	for (uint32_t i = 0; i < c->request->count; i++) {
		struct vmm_ref *ref = c->refs[i];

		ref->device = c->device;
		ref->allocation->kmd_resource = c->resource ? c->resource->kmd : NULL;
		vmm_list_push_back(&c->device->refs, &ref->device_link);
		if (c->resource)
			vmm_list_push_back(&c->resource->refs, &ref->resource_link);
		c->request->items[i].handle = ref->handle;
	}
	c->request->resource_handle = c->resource ? c->resource->handle : 0;
	if (c->resource)
		c->resource->busy = false;
	/*
	 * Events before the unlock: after it, a client that guesses the handles may end the
	 * allocations.
	 */
	for (uint32_t i = 0; i < c->request->count; i++) {
		vmm_tally_created(adapter->memory, c->allocations[i]);
		vmm_event(adapter->observe, VIDMM_EVENT_CREATE, process->id, c->refs[i]->handle, 0,
			  c->allocations[i]->size_bytes, c->allocations[i]->write_set,
			  c->allocations[i]->flags, 0);
	}
	vmm_process_unlock(process);
}

static NTSTATUS prepare(struct creation *c)
{
	struct vmm_allocate_request *request = c->request;
	NTSTATUS status = request->heap_bytes      ? vmm_standard_describe(c->device, request)
			  : request->cross_adapter ? vmm_cross_adapter_describe(c->device, request)
						   : STATUS_SUCCESS;

	if (NT_SUCCESS(status))
		status = creation_init(c);
	if (NT_SUCCESS(status) && request->runtime_resource)
		status = vmm_resource_prepare(c->device, request->runtime_resource, request->count,
					      &c->resource, &c->new_resource);
	return status;
}

NTSTATUS vmm_memory_allocate(struct vmm_device *device, struct vmm_allocate_request *request)
{
	struct creation_few few;
	struct creation c = {.device = device,
			     .memory = device->adapter->memory,
			     .request = request,
			     .few = &few};
	NTSTATUS status;

	vmm_assert(vmm_device_is_valid(device));
	if (!request->count && !request->runtime_resource)
		return vmm_refuse_rule(device->adapter->observe, STATUS_INVALID_PARAMETER, "ALF-35",
				       device->process->id, 0,
				       "create refused: 0 allocations and no resource");
	status = prepare(&c);
	if (!NT_SUCCESS(status))
		goto out_free;
	status = ask_miniport(&c);
	if (!NT_SUCCESS(status))
		goto out_resource; /* a failed call leaves nothing to undo (ALF-33) */
	status = check_answer(&c);
	if (!NT_SUCCESS(status))
		goto out_miniport;
	status = create_objects(&c);
	if (NT_SUCCESS(status))
		status = pin_all(&c);
	if (NT_SUCCESS(status))
		status = take_ranges(&c);
	if (NT_SUCCESS(status))
		status = share_stores(&c);
	if (!NT_SUCCESS(status))
		goto out_objects;
	status = adopt_kmd_resource(&c);
	if (!NT_SUCCESS(status))
		goto out_objects;
	status = open_in_miniport(&c);
	if (!NT_SUCCESS(status))
		goto out_adopted;
	if (c.resource && c.resource->shared && request->count) {
		status = vmm_share_create(c.resource, request, c.allocations);
		if (!NT_SUCCESS(status))
			goto out_opened;
	}
	publish(&c);
	creation_free(&c);
	return STATUS_SUCCESS;
out_opened:
	for (uint32_t i = 0; i < request->count; i++)
		vmm_port_close_allocation(device->adapter->port, device->kmd_device,
					  &c.refs[i]->kmd_open, 1);
out_adopted:
	if (c.new_kmd_resource) {
		vmm_free(c.resource->kmd);
		c.resource->kmd = NULL;
	}
out_objects:
	undo_objects(&c);
out_miniport:
	tell_miniport_destroyed(&c);
	undo_stores(&c);
out_resource:
	vmm_resource_unprepare(c.resource, c.new_resource);
out_free:
	creation_free(&c);
	return status;
}
