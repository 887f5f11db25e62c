/* SPDX-License-Identifier: MIT */
/*
 * Map, Reserve and Free of GPU virtual addresses (VA-02 to VA-09). The caller owns the address when
 * the call returns. The page table entries follow in the paging stream, and the queue's fence is
 * signaled after them. A call waits only if the GPU still uses the memory that a page table needs.
 */
#include "memory/sets/sets.h"
#include "memory/sets/va_private.h"
#include "memory/transfer/va_entries.h"
#include "vaspace/vaspace.h"

#define PAGE_MASK    (VMM_PAGE_SIZE - 1)
#define RESERVE_MASK (VMM_LARGE_PAGE_SIZE - 1)

static NTSTATUS no_gpu_addresses(struct vmm_adapter *adapter, const struct vmm_process *process,
				 const char *what)
{
	return vmm_refuse_reason(adapter->observe, STATUS_NOT_SUPPORTED, process->id, 0,
				 "%s: the adapter has no GPU virtual addresses (GpuMmuSupported)",
				 what);
}

/* ---- requests ---- */

struct map_operation {
	struct vmm_va *va;
	/* NULL: a reservation without a queue. A mapping by the system has a device, no queue. */
	struct vmm_device *device;
	struct vmm_va_request request;
	enum vmm_va_origin origin;
	struct vmm_va_content content;
	/* handle */
	uint32_t queue;
	/* handle; 0: none */
	uint32_t allocation;
	struct vmm_paging_operation *operation;
	/* out */
	uint64_t address, fence_value;
	/* out: retry after progress */
	bool wait;
};

static NTSTATUS violation(const struct map_operation *o, const char *rule, const char *what)
{
	return vmm_refuse_rule(
		o->va->memory->adapter->observe, STATUS_INVALID_PARAMETER, rule, o->va->process->id,
		o->allocation,
		"%s: base 0x%llx, window 0x%llx to 0x%llx, 0x%llx bytes, protection 0x%llx, "
		"allocation 0x%08x from 0x%llx on, paging queue 0x%08x",
		what, (unsigned long long)o->request.base, (unsigned long long)o->request.minimum,
		(unsigned long long)o->request.maximum, (unsigned long long)o->request.size,
		(unsigned long long)o->content.protection, o->allocation,
		(unsigned long long)o->content.offset, o->queue);
}

/*
 * Rounds an unaligned MaximumAddress down, with a finding: clients pass the address of the last
 * byte. An end within the first page admits no range, so it is kept: 0 would mean no limit.
 * (VA-04)
 */
static void align_maximum(struct map_operation *o, uint64_t mask, const char *what)
{
	if (o->request.base || !(o->request.maximum & mask))
		return;
	vmm_finding(o->va->memory->adapter->observe, "VA-04", o->va->process->id, o->allocation,
		    "%s: MaximumAddress 0x%llx is rounded down to a multiple of 0x%llx", what,
		    (unsigned long long)o->request.maximum, (unsigned long long)mask + 1);
	if (o->request.maximum > mask)
		o->request.maximum &= ~mask;
}

/* Finds the paging queue and the allocation that the request names. */
static NTSTATUS find_objects(struct map_operation *o, struct vmm_paging_queue **queue)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_ref *ref = NULL;
	bool queued = o->device && o->origin != VMM_VA_BY_SYSTEM;
	bool maps = o->content.kind == VMM_VA_MAPPED;

	vmm_assert_held(&o->va->memory->adapter->paging_lock);
	if (!o->device)
		return STATUS_SUCCESS;
	vmm_process_lock(o->device->process);
	if (queued)
		*queue = vmm_paging_queue_find_locked(o->device, o->queue);
	if (maps)
		ref = vmm_ref_lookup_locked(o->device, o->allocation);
	vmm_process_unlock(o->device->process);
	if (queued && !*queue)
		return violation(o, "VA-08",
				 "hPagingQueue is not a live paging queue of the device");
	if (!maps)
		return STATUS_SUCCESS;
	if (!ref)
		return violation(o, "VA-03",
				 "map: the handle is not a live allocation of the device");
	if (o->request.size > ref->allocation->size_bytes ||
	    o->content.offset > ref->allocation->size_bytes - o->request.size)
		return violation(o, "VA-04", "map: offset and size exceed the allocation");
	o->content.object = ref;
	o->content.list = &ref->allocation->mappings;
	return STATUS_SUCCESS;
}

/*
 * With 64 KiB pages the address and the allocation offset must have the same offset within a page
 * (VA-05).
 */
static void choose_alignment(struct map_operation *o)
{
	const struct vmm_memory *memory = o->va->memory;
	const struct vmm_ref *ref = o->content.object;
	uint32_t set;

	o->request.alignment = o->origin == VMM_VA_BY_RESERVE ? VMM_LARGE_PAGE_SIZE : VMM_PAGE_SIZE;
	if (!ref)
		return;
	set = ref->allocation->read_set | ref->allocation->write_set;
	for (uint32_t i = 0; i < memory->segment_count; i++)
		if ((set & 1u << i) && memory->segment[i].port->page_bytes == VMM_LARGE_PAGE_SIZE) {
			o->request.alignment = VMM_LARGE_PAGE_SIZE;
			o->request.phase = o->content.offset & (VMM_LARGE_PAGE_SIZE - 1);
		}
}

/* Are any entries in the range valid? They must be invalidated or overwritten. */
static bool is_live(const struct vmm_va *va, uint64_t base, uint64_t size)
{
	const struct vmm_va_piece *piece = vmm_vaspace_piece(va->space, base);

	for (; piece && piece->base < base + size; piece = vmm_vaspace_next(va->space, piece))
		if (piece->live)
			return true;
	return false;
}

/*
 * Writes the entries for pages whose content the space has recorded. `changed`: the range had valid
 * entries.
 */
static vmm_status write_tables(struct vmm_va *va, uint64_t base, uint64_t size,
			       const struct vmm_va_content *content, bool changed)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_ref *ref = content->object;
	struct vmm_va_piece *piece = vmm_vaspace_piece(va->space, base);
	vmm_status status = VMM_OK;

	vmm_assert_held(&va->memory->adapter->paging_lock);
	if (content->kind == VMM_VA_MAPPED) {
		/*
		 * Refreshes all mappings of the allocation; writes this one if the others were
		 * current.
		 */
		vmm_va_write_entries(va->memory, ref->instance);
		if (!piece->live && ref->allocation->mapped_at)
			status = vmm_va_write_piece(va, piece, changed);
		else if (piece->live && changed && vmm_va_mmu(va)->caps.InvalidTlbEntriesNotCached)
			/* The refresh did not know that the entries were valid before. (VA-13) */
			status = vmm_va_flush(va, base, base + size);
	} else if (content->kind == VMM_VA_ZERO) {
		status = vmm_va_write_piece(va, piece, changed);
	}
	if (status == VMM_OK && changed && !piece->live)
		status = vmm_va_erase(va, base, size, content->driver_protection);
	return status;
}

vmm_status vmm_va_set_content(struct vmm_va *va, uint64_t base, uint64_t size,
			      const struct vmm_va_content *content)
{
	bool changed = is_live(va, base, size);
	vmm_status status = vmm_vaspace_set(va->space, base, size, content);

	vmm_assert_held(&va->memory->adapter->paging_lock);
	return status == VMM_OK ? write_tables(va, base, size, content, changed) : status;
}

/* Maps into a range that the caller owns already. */
static NTSTATUS map_into_range(struct map_operation *o, const struct vmm_va_range *range)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	uint64_t base = o->request.base, size = o->request.size;

	if (range->origin == VMM_VA_BY_SYSTEM || range->origin == VMM_VA_BY_DRIVER)
		return violation(o, "VA-03",
				 "map into a range of the system, or one that the miniport "
				 "reserved");
	if (o->content.kind != VMM_VA_MAPPED && range->origin == VMM_VA_BY_MAP)
		return violation(o, "VA-03",
				 "map: Zero or NoAccess in a range that Map created; only a "
				 "reservation allows them");
	vmm_status status = VMM_OK;
	if (o->content.kind != VMM_VA_NOTHING)
		status = vmm_va_create_tables(o->va, base, size);
	if (status == VMM_OK)
		status = vmm_va_set_content(o->va, base, size, &o->content);
	o->address = base;
	return status;
}

static NTSTATUS map_new_range(struct map_operation *o) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_va_range *range;
	vmm_status status = vmm_vaspace_take(o->va->space, &o->request, o->origin, &range);

	if (status == VMM_INVALID_PARAMETER)
		return violation(o, o->origin == VMM_VA_BY_RESERVE ? "VA-07" : "VA-03",
				 "the range is neither free nor inside one range of the process");
	if (status != VMM_OK)
		return vmm_refuse_reason(
			o->va->memory->adapter->observe, status, o->va->process->id, 0,
			"VA-02: no free range of 0x%llx bytes of GPU virtual addresses "
			"between 0x%llx and 0x%llx",
			(unsigned long long)o->request.size, (unsigned long long)o->request.minimum,
			(unsigned long long)o->request.maximum);
	if (o->content.kind != VMM_VA_NOTHING)
		status = vmm_va_create_tables(o->va, range->base, range->size);
	if (status == VMM_OK) {
		vmm_vaspace_fill(o->va->space, range, &o->content);
		status = write_tables(o->va, range->base, range->size, &o->content, false);
	}
	if (status != VMM_OK)
		vmm_va_release(o->va, range);
	else
		o->address = range->base;
	return status;
}

/* Takes the addresses and writes the entries. The queue's operation is complete with them. */
static NTSTATUS place_locked(struct map_operation *o, struct vmm_paging_queue *queue)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = o->va->memory->adapter;

	vmm_assert_held(&adapter->paging_lock);
	choose_alignment(o);
	const struct vmm_va_range *range =
		o->request.base && o->origin == VMM_VA_BY_MAP
			? vmm_vaspace_range(o->va->space, o->request.base, o->request.size)
			: NULL;
	vmm_status status = range ? map_into_range(o, range) : map_new_range(o);
	o->wait = status == VMM_PENDING;
	if (status != VMM_OK)
		return status == VMM_NO_VIDEO_MEMORY ? STATUS_NO_MEMORY : status;
	uint64_t sequence = vmm_memory_flush_locked(adapter);
	o->fence_value = 0;
	if (vmm_timeline_done(adapter, adapter->paging_timeline, sequence))
		return STATUS_SUCCESS;
	if (!queue)
		return adapter->memory->engine->wait_locked(adapter, adapter->paging_timeline,
							    sequence, VIDMM_WAIT_PAGING_BUFFER);
	o->fence_value = vmm_paging_operation_add_paged(queue, o->operation, sequence);
	o->operation = NULL;
	return STATUS_PENDING;
}

static NTSTATUS execute_locked(struct map_operation *o) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_paging_queue *queue = NULL;

	vmm_assert_held(&o->va->memory->adapter->paging_lock);
	if (o->device && vmm_device_lost(o->device))
		/* The device was lost while the call waited for the lock (TDR-07). */
		return STATUS_DEVICE_REMOVED;
	NTSTATUS status = find_objects(o, &queue);
	if (!NT_SUCCESS(status) || !queue)
		return NT_SUCCESS(status) ? place_locked(o, NULL) : status;
	o->operation = vmm_paging_operation_take(queue);
	if (!o->operation)
		return STATUS_NO_MEMORY;
	status = place_locked(o, queue);
	if (o->operation)
		vmm_paging_operation_give_back(queue, o->operation);
	return status;
}

static NTSTATUS execute(struct map_operation *o)
{
	struct vmm_adapter *adapter = o->va->memory->adapter;
	NTSTATUS status;

	do {
		uint32_t seen = atomic_load(&adapter->progress);

		o->wait = false;
		vmm_paging_lock(adapter);
		status = execute_locked(o);
		vmm_paging_commit(adapter);
		if (o->wait)
			status = vmm_wait_progress(adapter, seen, VIDMM_WAIT_SPACE);
	} while (o->wait && NT_SUCCESS(status));
	if (status == STATUS_PENDING)
		adapter->memory->engine->wake(adapter);
	return status;
}

/* Without ZeroInPteSupported the GPU has no entries that read as zero. */
static NTSTATUS check_zero(const struct map_operation *o)
{
	if (o->content.kind != VMM_VA_ZERO || vmm_va_mmu(o->va)->caps.ZeroInPteSupported)
		return STATUS_SUCCESS;
	return vmm_refuse_reason(
		o->va->memory->adapter->observe, STATUS_NOT_SUPPORTED, o->va->process->id, 0,
		"Q-76: pages that read as zero: the miniport has no ZeroInPteSupported");
}

/* ---- Map ---- */

static NTSTATUS check_map(const struct map_operation *o, const struct vmm_va_map_request *r)
{
	uint64_t none = r->protection & (VMM_VA_ZERO_PAGES | VMM_VA_NO_ACCESS), end;

	if ((r->protection & ~(uint64_t)VMM_VA_PROTECTION) || r->reserved)
		return violation(o, "VA-06",
				 "map: reserved protection bits or SystemUseOnly are set");
	if (none == (VMM_VA_ZERO_PAGES | VMM_VA_NO_ACCESS) || !none != (r->allocation != 0))
		return violation(o, "VA-03",
				 "map: Zero and NoAccess exclude each other and an allocation; "
				 "other protections need one");
	if (((r->base ? r->base : r->minimum) & PAGE_MASK) || !r->size_pages)
		return violation(o, "VA-04",
				 "map: the base or the minimum must be a multiple of 4096, and "
				 "the size must not be 0");
	if (r->size_pages >> (64 - VMM_PAGE_SHIFT) || r->offset_pages >> (64 - VMM_PAGE_SHIFT) ||
	    vmm_add_overflows(r->size_pages << VMM_PAGE_SHIFT, r->base, &end))
		return violation(o, "VA-04", "map: the offset or the end address exceeds 64 bits");
	return check_zero(o);
}

struct vmm_va_map_request vmm_va_map_request_of(const D3DDDI_MAPGPUVIRTUALADDRESS *args)
{
	return (struct vmm_va_map_request){.queue = args->hPagingQueue,
					   .allocation = args->hAllocation,
					   .base = args->BaseAddress,
					   .minimum = args->MinimumAddress,
					   .maximum = args->MaximumAddress,
					   .offset_pages = args->OffsetInPages,
					   .size_pages = args->SizeInPages,
					   .protection = args->Protection.Value,
					   .driver_protection = args->DriverProtection,
					   .reserved = args->Reserved0 | args->Reserved1};
}

NTSTATUS vmm_va_map(struct vmm_device *device, struct vmm_va_map_request *r)
{
	struct map_operation o = {.va = device->va,
				  .device = device,
				  .request = {.base = r->base,
					      .minimum = r->minimum,
					      .maximum = r->maximum,
					      .size = r->size_pages << VMM_PAGE_SHIFT},
				  .origin = VMM_VA_BY_MAP,
				  .content = {.kind = VMM_VA_MAPPED,
					      .protection = r->protection,
					      .driver_protection = r->driver_protection,
					      .offset = r->offset_pages << VMM_PAGE_SHIFT},
				  .queue = r->queue,
				  .allocation = r->allocation};

	if (!device->va)
		return no_gpu_addresses(device->adapter, device->process,
					"map GPU virtual address");
	if (r->protection & VMM_VA_ZERO_PAGES)
		o.content.kind = VMM_VA_ZERO;
	else if (r->protection & VMM_VA_NO_ACCESS)
		o.content.kind = VMM_VA_NOTHING;
	NTSTATUS status = check_map(&o, r);
	if (NT_SUCCESS(status)) {
		align_maximum(&o, PAGE_MASK, "map");
		status = execute(&o);
	}
	if (NT_SUCCESS(status)) {
		r->address = o.address;
		r->fence_value = o.fence_value;
	}
	return status;
}

/* ---- mappings for commands of the miniport (PRS-09) ---- */

uint64_t vmm_va_driver_address(struct vmm_device *device, uint32_t allocation)
{
	const struct vmm_list *link;
	uint64_t address = 0;

	vmm_assert(device->va);
	vmm_paging_lock(device->adapter);
	vmm_process_lock(device->process);
	const struct vmm_ref *ref = vmm_ref_lookup_locked(device, allocation);
	vmm_process_unlock(device->process);
	if (ref)
		vmm_list_for_each (link, &ref->allocation->mappings) {
			const struct vmm_va_piece *piece =
				vmm_container_of(link, struct vmm_va_piece, link);

			if (piece->content.object == ref &&
			    piece->range->origin == VMM_VA_BY_SYSTEM)
				address = piece->base;
		}
	vmm_paging_commit(device->adapter);
	return address;
}

/* Returns the size of the allocation; 0: it is none of the device. */
static uint64_t size_of(const struct vmm_device *device, uint32_t allocation)
{
	vmm_process_lock(device->process);
	const struct vmm_ref *ref = vmm_ref_lookup_locked(device, allocation);
	uint64_t size = ref ? ref->allocation->size_bytes : 0;
	vmm_process_unlock(device->process);
	return size;
}

NTSTATUS vmm_va_map_for_driver(struct vmm_device *device, uint32_t allocation)
{
	struct map_operation o = {.va = device->va,
				  .device = device,
				  .origin = VMM_VA_BY_SYSTEM,
				  .content = {.kind = VMM_VA_MAPPED, .protection = VMM_VA_WRITE},
				  .allocation = allocation};

	vmm_assert(device->va);
	o.request.size = size_of(device, allocation);
	/* The submission that follows reports a handle that is not one. */
	if (!o.request.size || vmm_va_driver_address(device, allocation))
		return STATUS_SUCCESS;
	vmm_assert(!(o.request.size & PAGE_MASK));
	return execute(&o);
}

/* ---- mappings of context allocations by the miniport (VA-20) ---- */

struct vmm_context_allocation *vmm_context_allocation_find(const struct vmm_memory *memory,
							   const void *handle)
{
	const struct vmm_list *link;

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_list_for_each (link, &memory->context_allocations) {
		struct vmm_context_allocation *own =
			vmm_container_of(link, struct vmm_context_allocation, all);

		if (own == handle)
			return own;
	}
	return NULL;
}

/* Are all pages of the range free? Others may be the fences' or those of another allocation. */
static bool is_unmapped(const struct vmm_va *va, uint64_t base, uint64_t size)
{
	const struct vmm_va_piece *piece = vmm_vaspace_piece(va->space, base);

	for (; piece && piece->base < base + size; piece = vmm_vaspace_next(va->space, piece))
		if (piece->content.kind != VMM_VA_NOTHING)
			return false;
	return true;
}

/* The range is one that the miniport reserved, for itself or for the process as well. */
static NTSTATUS map_into_reservation(struct map_operation *o, const struct vmm_va_range *range)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	uint64_t base = o->request.base, size = o->request.size;

	vmm_assert_held(&o->va->memory->adapter->paging_lock);
	if ((range->origin != VMM_VA_BY_DRIVER && range->origin != VMM_VA_BY_RESERVE) ||
	    !is_unmapped(o->va, base, size))
		return violation(o, "VA-20",
				 "map a context allocation: the range is neither free nor a free "
				 "part of a reservation");
	vmm_status status = vmm_va_create_tables(o->va, base, size);
	if (status == VMM_OK)
		status = vmm_va_set_content(o->va, base, size, &o->content);
	o->address = base;
	return status;
}

static NTSTATUS map_context_allocation_locked(struct map_operation *o,
					      struct vmm_context_allocation *own)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = o->va->memory->adapter;

	vmm_assert_held(&adapter->paging_lock);
	vmm_assert(own->ref.allocation == &own->allocation && own->ref.device == own->device);
	if (o->request.size > own->allocation.size_bytes ||
	    o->content.offset > own->allocation.size_bytes - o->request.size)
		return violation(o, "VA-04", "map: offset and size exceed the context allocation");
	o->content.object = &own->ref;
	o->content.list = &own->allocation.mappings;
	choose_alignment(o);
	const struct vmm_va_range *range =
		o->request.base ? vmm_vaspace_range(o->va->space, o->request.base, o->request.size)
				: NULL;
	NTSTATUS status = range ? map_into_reservation(o, range) : map_new_range(o);
	if (status != VMM_OK)
		return status == VMM_NO_VIDEO_MEMORY ? STATUS_NO_MEMORY : status;
	uint64_t sequence = vmm_memory_flush_locked(adapter);

	return adapter->memory->engine->wait_locked(adapter, adapter->paging_timeline, sequence,
						    VIDMM_WAIT_PAGING_BUFFER);
}

/* One attempt. VMM_PENDING: retry after progress. */
static NTSTATUS try_map_context_allocation(struct vmm_adapter *adapter, const void *handle,
					   struct vmm_va_map_request *r)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_context_allocation *own = vmm_context_allocation_find(adapter->memory, handle);

	vmm_assert_held(&adapter->paging_lock);
	if (!own)
		return vmm_refuse_rule(adapter->observe, STATUS_INVALID_HANDLE, "VA-20", 0, 0,
				       "DxgkCbMapContextAllocation: %p is not a context "
				       "allocation of the adapter",
				       handle);
	if (!own->device->va)
		return no_gpu_addresses(adapter, own->device->process,
					"DxgkCbMapContextAllocation");
	struct map_operation o = {.va = own->device->va,
				  .device = own->device,
				  .request = {.base = r->base,
					      .minimum = r->minimum,
					      .maximum = r->maximum,
					      .size = r->size_pages << VMM_PAGE_SHIFT},
				  .origin = VMM_VA_BY_SYSTEM,
				  .content = {.kind = VMM_VA_MAPPED,
					      .protection = r->protection,
					      .driver_protection = r->driver_protection,
					      .offset = r->offset_pages << VMM_PAGE_SHIFT}};
	NTSTATUS status = check_map(&o, r);

	if (NT_SUCCESS(status)) {
		align_maximum(&o, PAGE_MASK, "map a context allocation");
		status = map_context_allocation_locked(&o, own);
	}
	r->address = o.address;
	return status;
}

NTSTATUS vmm_va_map_context_allocation(struct vmm_adapter *adapter, const void *handle,
				       struct vmm_va_map_request *request)
{
	for (;;) {
		uint32_t seen = atomic_load(&adapter->progress);

		/* Called from the miniport: see vmm_context_allocation_create. */
		vmm_paging_lock(adapter);
		NTSTATUS status = try_map_context_allocation(adapter, handle, request);
		vmm_paging_commit(adapter);
		if (status != VMM_PENDING)
			return status;
		if (atomic_load(&adapter->recovering) ||
		    !vmm_ok(vmm_wait_progress(adapter, seen, VIDMM_WAIT_SPACE)))
			return STATUS_DEVICE_REMOVED;
	}
}

/* ---- Reserve ---- */

enum { RESERVE_NO_ACCESS, RESERVE_ZERO };

static NTSTATUS reserve(struct vmm_va *va, struct vmm_device *device,
			struct vmm_va_reserve_request *r)
{
	struct map_operation o = {
		.va = va,
		.device = device,
		.request = {.base = r->base,
			    .minimum = r->minimum,
			    .maximum = r->maximum,
			    .size = r->size},
		.origin = VMM_VA_BY_RESERVE,
		.content = {.kind = r->type == RESERVE_ZERO ? VMM_VA_ZERO : VMM_VA_NOTHING,
			    .driver_protection = r->driver_protection},
		.queue = r->queue};
	NTSTATUS status;

	if (((r->base ? r->base : r->minimum) & RESERVE_MASK) || !r->size ||
	    (r->size & RESERVE_MASK))
		return violation(&o, "VA-04",
				 "reserve: the base or the minimum, and the size, must be "
				 "multiples of 64 KiB, and the size must not be 0");
	if (r->type > RESERVE_ZERO)
		/* Type 2 is reserved for the system. */
		return violation(&o, "VA-07", "reserve: the type must be NO_ACCESS or ZERO");
	status = check_zero(&o);
	if (NT_SUCCESS(status)) {
		align_maximum(&o, RESERVE_MASK, "reserve");
		status = execute(&o);
	}
	if (NT_SUCCESS(status)) {
		r->address = o.address;
		r->fence_value = o.fence_value;
	}
	return status;
}

struct vmm_va_reserve_request vmm_va_reserve_request_of(const D3DDDI_RESERVEGPUVIRTUALADDRESS *args)
{
	return (struct vmm_va_reserve_request){.queue = args->hPagingQueue,
					       .base = args->BaseAddress,
					       .minimum = args->MinimumAddress,
					       .maximum = args->MaximumAddress,
					       .size = args->Size,
					       .type = (uint32_t)args->ReservationType,
					       .driver_protection = args->DriverProtection};
}

NTSTATUS vmm_va_reserve(struct vmm_device *device, struct vmm_va_reserve_request *request)
{
	return device->va ? reserve(device->va, device, request)
			  : no_gpu_addresses(device->adapter, device->process,
					     "reserve GPU virtual address");
}

NTSTATUS vmm_va_reserve_on(struct vmm_adapter *adapter, struct vmm_process *process,
			   struct vmm_va_reserve_request *request)
{
	struct vmm_va *va;

	if (!adapter->memory->caps->gpummu.supported)
		return no_gpu_addresses(adapter, process, "reserve GPU virtual address");
	NTSTATUS status = vmm_va_get(adapter, process, &va);
	return NT_SUCCESS(status) ? reserve(va, NULL, request) : status;
}

/* ---- Free ---- */

NTSTATUS vmm_va_free(struct vmm_adapter *adapter, struct vmm_process *process, uint64_t base,
		     uint64_t size)
{
	struct vmm_memory *memory = adapter->memory;
	struct vmm_va_range *range = NULL;

	if (!memory->caps->gpummu.supported)
		return no_gpu_addresses(adapter, process, "free GPU virtual address");
	vmm_paging_lock(adapter);
	struct vmm_va *va = vmm_va_find(memory, process);
	if (va && size)
		range = vmm_vaspace_range(va->space, base, size);
	bool whole = range && range->base == base && range->size == size &&
		     (range->origin == VMM_VA_BY_MAP || range->origin == VMM_VA_BY_RESERVE);
	if (whole)
		vmm_va_release(va, range);
	vmm_paging_commit(adapter);
	if (whole)
		return STATUS_SUCCESS;
	return vmm_refuse_rule(adapter->observe, STATUS_INVALID_PARAMETER, "VA-09", process->id, 0,
			       "free GPU virtual address: 0x%llx, 0x%llx bytes, is %s",
			       (unsigned long long)base, (unsigned long long)size,
			       range ? "a part of a range; only a whole range can be freed"
				     : "not a range that was mapped or reserved");
}
