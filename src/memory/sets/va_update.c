/* SPDX-License-Identifier: MIT */
/*
 * D3DKMTUpdateGpuVirtualAddress (VA-10): validates the operations when the call is made and
 * executes them in order when sched says so. If the range was released in between, even if another
 * range now has its addresses, the operation is skipped (VA-09).
 */
#include "memory/sets/va_private.h"
#include "memory/transfer/va_entries.h"
#include "vaspace/vaspace.h"

enum { OPERATION_MAP, OPERATION_UNMAP, OPERATION_COPY, OPERATION_MAP_PROTECT, OPERATION_LIMIT };

#define OPERATIONS_MAX 65536u /* operations of one update */

static struct vmm_va_operation operation_of(const D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION *o)
{
	struct vmm_va_operation result = {.type = (uint32_t)o->OperationType};

	switch (o->OperationType) {
	case D3DDDI_UPDATEGPUVIRTUALADDRESS_UNMAP:
		result.base = o->Unmap.BaseAddress;
		result.size = o->Unmap.SizeInBytes;
		result.protection = o->Unmap.Protection.Value;
		break;
	case D3DDDI_UPDATEGPUVIRTUALADDRESS_COPY:
		result.source = o->Copy.SourceAddress;
		result.size = o->Copy.SizeInBytes;
		result.base = o->Copy.DestAddress;
		break;
	default: /* both map operations begin with the same members */
		if (o->OperationType == D3DDDI_UPDATEGPUVIRTUALADDRESS_MAP_PROTECT) {
			result.protection = o->MapProtect.Protection.Value;
			result.driver_protection = o->MapProtect.DriverProtection;
		}
		result.base = o->Map.BaseAddress;
		result.size = o->Map.SizeInBytes;
		result.allocation = o->Map.hAllocation;
		result.offset = o->Map.AllocationOffsetInBytes;
		result.piece_size = o->Map.AllocationSizeInBytes;
	}
	return result;
}

NTSTATUS vmm_va_operations_copy(const D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION *operations,
				uint32_t count, struct vmm_va_operation **result)
{
	void *copy = NULL;
	NTSTATUS status =
		vmm_copy_in(operations, count, OPERATIONS_MAX, sizeof(*operations), &copy);
	const D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION *from = copy;

	*result = NT_SUCCESS(status) ? vmm_calloc(count + 1u, sizeof(**result)) : NULL;
	if (NT_SUCCESS(status) && !*result)
		status = STATUS_NO_MEMORY;
	for (uint32_t i = 0; NT_SUCCESS(status) && i < count; i++)
		(*result)[i] = operation_of(&from[i]);
	vmm_free(copy);
	return status;
}

static bool is_map(const struct vmm_va_operation *o)
{
	return o->type == OPERATION_MAP || o->type == OPERATION_MAP_PROTECT;
}

static NTSTATUS violation(const struct vmm_device *device, uint32_t index,
			  const struct vmm_va_operation *o, const char *rule, const char *what)
{
	return vmm_refuse_rule(
		device->adapter->observe, STATUS_INVALID_PARAMETER, rule, device->process->id,
		device->handle,
		"update GPU virtual address: operation %u of type %u, 0x%llx bytes at 0x%llx, "
		"allocation 0x%08x, 0x%llx bytes of it from 0x%llx on, source 0x%llx, protection "
		"0x%llx: %s",
		index, o->type, (unsigned long long)o->size, (unsigned long long)o->base,
		o->allocation, (unsigned long long)o->piece_size, (unsigned long long)o->offset,
		(unsigned long long)o->source, (unsigned long long)o->protection, what);
}

/* Checks that need nothing but the operation. */
static NTSTATUS check_form(const struct vmm_device *device, uint32_t i,
			   const struct vmm_va_operation *o)
{
	uint64_t pages = o->base | o->size | o->offset | o->piece_size | o->source, end;
	uint64_t none = o->protection & (VMM_VA_ZERO_PAGES | VMM_VA_NO_ACCESS);

	if (o->type >= OPERATION_LIMIT)
		return violation(device, i, o, "VA-10", "the operation type does not exist");
	if ((pages & (VMM_PAGE_SIZE - 1)) || !o->size ||
	    vmm_add_overflows(o->base, o->size, &end) ||
	    vmm_add_overflows(o->source, o->size, &end))
		return violation(device, i, o, "VA-04",
				 "sizes and addresses must be whole pages, and the size must "
				 "not be 0");
	if (is_map(o) && o->piece_size && o->size % o->piece_size)
		return violation(device, i, o, "VA-10",
				 "the size must be a multiple of AllocationSizeInBytes");
	if (o->protection & ~(uint64_t)VMM_VA_PROTECTION)
		return violation(device, i, o, "VA-06",
				 "reserved protection bits or SystemUseOnly are set");
	if (is_map(o) && none)
		return violation(device, i, o, "VA-10",
				 "Zero and NoAccess are valid for Unmap only");
	if (o->type == OPERATION_UNMAP &&
	    (none != o->protection || none == (VMM_VA_ZERO_PAGES | VMM_VA_NO_ACCESS) || !none))
		return violation(device, i, o, "VA-10",
				 "Unmap needs exactly one of Zero and NoAccess, and no other "
				 "protection");
	return STATUS_SUCCESS;
}

static struct vmm_ref *find_ref(struct vmm_device *device, uint32_t handle)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&device->adapter->paging_lock);
	vmm_process_lock(device->process);
	struct vmm_ref *ref = vmm_ref_lookup_locked(device, handle);
	vmm_process_unlock(device->process);
	return ref;
}

static uint64_t piece_bytes(const struct vmm_va_operation *o)
{
	return o->piece_size ? o->piece_size : o->size;
}

/* Returns the number of the reservation that contains the whole range; 0: none does. */
static uint64_t reservation(const struct vmm_va *va, uint64_t base, uint64_t size)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_va_range *range = vmm_vaspace_range(va->space, base, size);

	vmm_assert_held(&va->memory->adapter->paging_lock);
	return range && range->origin == VMM_VA_BY_RESERVE ? range->number : 0;
}

static bool is_same_reservation(uint64_t *all, uint64_t number)
{
	if (!*all)
		*all = number;
	return number && *all == number;
}

static NTSTATUS check_locked(struct vmm_device *device, struct vmm_va_update *u, uint32_t i)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_va_operation *o = &u->operations[i];
	const struct vmm_ref *ref = is_map(o) ? find_ref(device, o->allocation) : NULL;

	vmm_assert_held(&device->adapter->paging_lock);
	if (!is_same_reservation(&u->target, reservation(device->va, o->base, o->size)))
		return violation(device, i, o, "VA-10",
				 "all targets must lie in one reserved range");
	if (o->type == OPERATION_COPY &&
	    !is_same_reservation(&u->source, reservation(device->va, o->source, o->size)))
		return violation(device, i, o, "VA-10",
				 "all sources must lie in one reserved range");
	if (o->type == OPERATION_UNMAP && (o->protection & VMM_VA_ZERO_PAGES) &&
	    !vmm_va_mmu(device->va)->caps.ZeroInPteSupported)
		return vmm_refuse_reason(
			device->adapter->observe, STATUS_NOT_SUPPORTED, device->process->id, 0,
			"Q-76: pages that read as zero: the miniport has no ZeroInPteSupported");
	if (!is_map(o))
		return STATUS_SUCCESS;
	if (!ref)
		return violation(device, i, o, "VA-10",
				 "the handle is not a live allocation of the device");
	if (piece_bytes(o) > ref->allocation->size_bytes ||
	    o->offset > ref->allocation->size_bytes - piece_bytes(o))
		return violation(device, i, o, "VA-04", "offset and size exceed the allocation");
	return STATUS_SUCCESS;
}

/* Creates the tables now, because execution cannot wait for their memory. */
static vmm_status prepare_locked(struct vmm_device *device, struct vmm_va_update *u)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	NTSTATUS status = STATUS_SUCCESS;

	vmm_assert_held(&device->adapter->paging_lock);
	u->target = u->source = 0;
	for (uint32_t i = 0; i < u->count && NT_SUCCESS(status); i++)
		status = check_locked(device, u, i);
	if (!NT_SUCCESS(status))
		return status;
	for (uint32_t i = 0; i < u->count && status == VMM_OK; i++)
		status = vmm_va_create_tables(device->va, u->operations[i].base,
					      u->operations[i].size);
	return status;
}

NTSTATUS vmm_va_update_prepare(struct vmm_device *device, struct vmm_va_update *update)
{
	struct vmm_adapter *adapter = device->adapter;
	NTSTATUS status = STATUS_SUCCESS;

	if (!device->va)
		return vmm_refuse_reason(
			adapter->observe, STATUS_NOT_SUPPORTED, device->process->id, 0,
			"update GPU virtual address: the adapter has no GPU virtual addresses "
			"(GpuMmuSupported)");
	for (uint32_t i = 0; i < update->count && NT_SUCCESS(status); i++)
		status = check_form(device, i, &update->operations[i]);
	while (NT_SUCCESS(status)) {
		uint32_t seen = atomic_load(&adapter->progress);

		vmm_paging_lock(adapter);
		vmm_status prepared = prepare_locked(device, update);
		vmm_paging_commit(adapter);
		if (prepared != VMM_PENDING)
			return prepared == VMM_NO_VIDEO_MEMORY ? STATUS_NO_MEMORY : prepared;
		status = vmm_wait_progress(adapter, seen, VIDMM_WAIT_SPACE);
	}
	return status;
}

/* ---- execution ---- */

static vmm_status map_allocation(struct vmm_device *device, const struct vmm_va_operation *o)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_ref *ref = find_ref(device, o->allocation);
	uint64_t part = piece_bytes(o);
	vmm_status status = VMM_OK;
	struct vmm_va_content content = {.kind = VMM_VA_NOTHING};

	vmm_assert_held(&device->adapter->paging_lock);
	if (ref)
		/* Otherwise the reference has ended, and its mappings with it. */
		content = (struct vmm_va_content){
			.kind = VMM_VA_MAPPED,
			.protection = o->type == OPERATION_MAP ? VMM_VA_WRITE : o->protection,
			.driver_protection = o->driver_protection,
			.object = ref,
			.offset = o->offset,
			.list = &ref->allocation->mappings};
	for (uint64_t at = 0; at < o->size && status == VMM_OK; at += part)
		status = vmm_va_set_content(device->va, o->base + at, part, &content);
	return status;
}

/* Records the content of every source page before any destination page changes. */
static vmm_status copy_mappings(struct vmm_device *device, const struct vmm_va_operation *o)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_vaspace *space = device->va->space;
	uint64_t end = o->source + o->size, at = o->source;
	uint32_t count = 0;
	vmm_status status = VMM_OK;

	vmm_assert_held(&device->adapter->paging_lock);
	struct part {
		uint64_t base, size;
		struct vmm_va_content content;
	} * parts;

	for (; at < end; count++) {
		const struct vmm_va_piece *piece = vmm_vaspace_piece(space, at);

		at = piece->base + piece->size;
	}
	parts = vmm_calloc(count, sizeof(*parts));
	if (!parts)
		return VMM_NO_MEMORY;
	at = o->source;
	for (uint32_t i = 0; i < count; i++) {
		const struct vmm_va_piece *piece = vmm_vaspace_piece(space, at);
		uint64_t to = vmm_min_u64(end, piece->base + piece->size);

		parts[i].base = o->base + (at - o->source);
		parts[i].size = to - at;
		parts[i].content = piece->content;
		parts[i].content.offset += at - piece->base;
		at = to;
	}
	for (uint32_t i = 0; i < count && status == VMM_OK; i++)
		status = vmm_va_set_content(device->va, parts[i].base, parts[i].size,
					    &parts[i].content);
	vmm_free(parts);
	return status;
}

static vmm_status execute(struct vmm_device *device, const struct vmm_va_update *u,
			  const struct vmm_va_operation *o) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_va_content rest = {
		.kind = o->protection & VMM_VA_ZERO_PAGES ? VMM_VA_ZERO : VMM_VA_NOTHING};

	vmm_assert_held(&device->adapter->paging_lock);
	if (reservation(device->va, o->base, o->size) != u->target)
		return VMM_OK;
	/* VA-09 */
	switch (o->type) {
	case OPERATION_UNMAP:
		return vmm_va_set_content(device->va, o->base, o->size, &rest);
	case OPERATION_COPY:
		return reservation(device->va, o->source, o->size) == u->source
			       ? copy_mappings(device, o)
			       : VMM_OK;
	default:
		return map_allocation(device, o);
	}
}

vmm_status vmm_va_update_locked(struct vmm_device *device, const struct vmm_va_update *update,
				uint64_t *sequence)
{
	vmm_status status = VMM_OK;

	vmm_assert_held(&device->adapter->paging_lock);
	for (uint32_t i = 0; i < update->count && status == VMM_OK; i++)
		status = execute(device, update, &update->operations[i]);
	*sequence = vmm_memory_flush_locked(device->adapter);
	return status;
}
