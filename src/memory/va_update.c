/* SPDX-License-Identifier: MIT */
/*
 * What D3DKMTUpdateGpuVirtualAddress asks for, as far as memory is concerned (VA-10): are the operations such as may be, and carrying
 * them out, in order, once it is their time (sched's). Between the two the range may have gone, and another one come: then nothing
 * is done (VA-09).
 */
#include "memory/va_private.h"

enum { OPERATION_MAP, OPERATION_UNMAP, OPERATION_COPY, OPERATION_MAP_PROTECT, OPERATION_LIMIT };

#define OPERATIONS_MAX 65536u /* of one update */

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
	default: /* the two that map begin alike */
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

static bool maps(const struct vmm_va_operation *o)
{
	return o->type == OPERATION_MAP || o->type == OPERATION_MAP_PROTECT;
}

static NTSTATUS broke(const struct vmm_device *device, uint32_t index,
		      const struct vmm_va_operation *o, const char *rule, const char *what)
{
	vmm_finding(
		device->adapter->observe, rule, device->process->id, device->handle,
		"update GPU virtual address: operation %u of type %u, 0x%llx bytes at 0x%llx, "
		"allocation 0x%08x, 0x%llx bytes of it from 0x%llx on, source 0x%llx, protection "
		"0x%llx: %s",
		index, o->type, (unsigned long long)o->size, (unsigned long long)o->base,
		o->allocation, (unsigned long long)o->piece_size, (unsigned long long)o->offset,
		(unsigned long long)o->source, (unsigned long long)o->protection, what);
	return STATUS_INVALID_PARAMETER;
}

/* What can be said without a look at anything else. */
static NTSTATUS check_form(const struct vmm_device *device, uint32_t i,
			   const struct vmm_va_operation *o)
{
	uint64_t pages = o->base | o->size | o->offset | o->piece_size | o->source, end;
	uint64_t none = o->protection & (VMM_VA_ZERO_PAGES | VMM_VA_NO_ACCESS);

	if (o->type >= OPERATION_LIMIT)
		return broke(device, i, o, "VA-10", "there is no such operation");
	if ((pages & (VMM_PAGE_SIZE - 1)) || !o->size ||
	    vmm_add_overflows(o->base, o->size, &end) ||
	    vmm_add_overflows(o->source, o->size, &end))
		return broke(device, i, o, "VA-04", "sizes and addresses are whole pages");
	if (maps(o) && o->piece_size && o->size % o->piece_size)
		return broke(device, i, o, "VA-10",
			     "the size is a multiple of the allocation's part");
	if (o->protection & ~(uint64_t)VMM_VA_PROTECTION)
		return broke(device, i, o, "VA-06", "reserved bits, or SystemUseOnly");
	if (maps(o) && none)
		return broke(device, i, o, "VA-10", "Zero and NoAccess are for Unmap");
	if (o->type == OPERATION_UNMAP &&
	    (none != o->protection || none == (VMM_VA_ZERO_PAGES | VMM_VA_NO_ACCESS) || !none))
		return broke(device, i, o, "VA-10", "Unmap leaves either Zero or NoAccess");
	return STATUS_SUCCESS;
}

static struct vmm_ref *find_ref(struct vmm_device *device, uint32_t handle)
{
	vmm_os_mutex_lock(&device->process->lock);
	struct vmm_ref *ref = vmm_ref_lookup_locked(device, handle);
	vmm_os_mutex_unlock(&device->process->lock);
	return ref;
}

static uint64_t part_of(const struct vmm_va_operation *o)
{
	return o->piece_size ? o->piece_size : o->size;
}

/* The number of the one reservation that has it; 0: none has. */
static uint64_t reservation(const struct vmm_va *va, uint64_t base, uint64_t size)
{
	const struct vmm_va_range *range = vmm_vaspace_range(va->space, base, size);

	return range && range->origin == VMM_VA_BY_RESERVE ? range->number : 0;
}

static bool is_one(uint64_t *all, uint64_t number)
{
	if (!*all)
		*all = number;
	return number && *all == number;
}

static NTSTATUS check_locked(struct vmm_device *device, struct vmm_va_update *u, uint32_t i)
{
	const struct vmm_va_operation *o = &u->operations[i];
	const struct vmm_ref *ref = maps(o) ? find_ref(device, o->allocation) : NULL;

	if (!is_one(&u->target, reservation(device->va, o->base, o->size)))
		return broke(device, i, o, "VA-10", "all targets lie in one range from Reserve");
	if (o->type == OPERATION_COPY &&
	    !is_one(&u->source, reservation(device->va, o->source, o->size)))
		return broke(device, i, o, "VA-10", "all sources lie in one range from Reserve");
	if (o->type == OPERATION_UNMAP && (o->protection & VMM_VA_ZERO_PAGES) &&
	    !vmm_va_mmu(device->va)->caps.ZeroInPteSupported) {
		vmm_reason(device->adapter->observe, STATUS_NOT_SUPPORTED, device->process->id, 0,
			   "Q-76: pages that read as zero: the miniport has no ZeroInPteSupported");
		return STATUS_NOT_SUPPORTED;
	}
	if (!maps(o))
		return STATUS_SUCCESS;
	if (!ref)
		return broke(device, i, o, "VA-10", "not a live allocation of the device");
	if (part_of(o) > ref->allocation->size_bytes ||
	    o->offset > ref->allocation->size_bytes - part_of(o))
		return broke(device, i, o, "VA-04", "pages that the allocation does not have");
	return STATUS_SUCCESS;
}

/* Tables are made now: later there is nobody who could wait for their memory. */
static vmm_status prepare_locked(struct vmm_device *device, struct vmm_va_update *u)
{
	NTSTATUS status = STATUS_SUCCESS;

	u->target = u->source = 0;
	for (uint32_t i = 0; i < u->count && NT_SUCCESS(status); i++)
		status = check_locked(device, u, i);
	if (!NT_SUCCESS(status))
		return status;
	for (uint32_t i = 0; i < u->count && status == VMM_OK; i++)
		status = vmm_va_tables(device->va, u->operations[i].base, u->operations[i].size);
	return status;
}

NTSTATUS vmm_va_update_prepare(struct vmm_device *device, struct vmm_va_update *update)
{
	struct vmm_adapter *adapter = device->adapter;
	NTSTATUS status = STATUS_SUCCESS;

	if (!device->va) {
		vmm_reason(adapter->observe, STATUS_NOT_SUPPORTED, device->process->id, 0,
			   "update GPU virtual address: the adapter has none (GpuMmuSupported)");
		return STATUS_NOT_SUPPORTED;
	}
	for (uint32_t i = 0; i < update->count && NT_SUCCESS(status); i++)
		status = check_form(device, i, &update->operations[i]);
	while (NT_SUCCESS(status)) {
		uint32_t seen = atomic_load(&adapter->progress);

		vmm_paging_lock(adapter);
		vmm_status prepared = prepare_locked(device, update);
		vmm_paging_unlock(adapter);
		if (prepared != VMM_PENDING)
			return prepared == VMM_NO_VIDEO_MEMORY ? STATUS_NO_MEMORY : prepared;
		status = vmm_wait_progress(adapter, seen, VIDMM_WAIT_SPACE);
	}
	return status;
}

/* ---- carrying out ---- */

static vmm_status map(struct vmm_device *device, const struct vmm_va_operation *o)
{
	struct vmm_ref *ref = find_ref(device, o->allocation);
	uint64_t part = part_of(o);
	vmm_status status = VMM_OK;
	struct vmm_va_content content = {.kind = VMM_VA_NOTHING};

	if (ref) /* else it has ended, and with it what was mapped */
		content = (struct vmm_va_content){
			.kind = VMM_VA_MAPPED,
			.protection = o->type == OPERATION_MAP ? VMM_VA_WRITE : o->protection,
			.driver_protection = o->driver_protection,
			.object = ref,
			.offset = o->offset,
			.list = &ref->allocation->mappings};
	for (uint64_t at = 0; at < o->size && status == VMM_OK; at += part)
		status = vmm_va_put(device->va, o->base + at, part, &content);
	return status;
}

/* What each page of the source is, before any of the destination is changed. */
static vmm_status copy(struct vmm_device *device, const struct vmm_va_operation *o)
{
	struct vmm_vaspace *space = device->va->space;
	uint64_t end = o->source + o->size, at = o->source;
	uint32_t count = 0;
	vmm_status status = VMM_OK;
	struct part {
		uint64_t base, size;
		struct vmm_va_content content;
	} * parts;

	for (; at < end; count++) {
		const struct vmm_va_piece *piece = vmm_vaspace_piece(space, at);

		at = piece->node.base + piece->node.size;
	}
	parts = vmm_calloc(count, sizeof(*parts));
	if (!parts)
		return VMM_NO_MEMORY;
	at = o->source;
	for (uint32_t i = 0; i < count; i++) {
		const struct vmm_va_piece *piece = vmm_vaspace_piece(space, at);
		uint64_t to = vmm_min_u64(end, piece->node.base + piece->node.size);

		parts[i].base = o->base + (at - o->source);
		parts[i].size = to - at;
		parts[i].content = piece->content;
		parts[i].content.offset += at - piece->node.base;
		at = to;
	}
	for (uint32_t i = 0; i < count && status == VMM_OK; i++)
		status = vmm_va_put(device->va, parts[i].base, parts[i].size, &parts[i].content);
	vmm_free(parts);
	return status;
}

static vmm_status carry_out(struct vmm_device *device, const struct vmm_va_update *u,
			    const struct vmm_va_operation *o)
{
	const struct vmm_va_content rest = {
		.kind = o->protection & VMM_VA_ZERO_PAGES ? VMM_VA_ZERO : VMM_VA_NOTHING};

	if (reservation(device->va, o->base, o->size) != u->target)
		return VMM_OK; /* VA-09 */
	switch (o->type) {
	case OPERATION_UNMAP:
		return vmm_va_put(device->va, o->base, o->size, &rest);
	case OPERATION_COPY:
		return reservation(device->va, o->source, o->size) == u->source ? copy(device, o)
										: VMM_OK;
	default:
		return map(device, o);
	}
}

vmm_status vmm_va_update_locked(struct vmm_device *device, const struct vmm_va_update *update,
				uint64_t *sequence)
{
	vmm_status status = VMM_OK;

	for (uint32_t i = 0; i < update->count && status == VMM_OK; i++)
		status = carry_out(device, update, &update->operations[i]);
	*sequence = vmm_memory_flush_locked(device->adapter);
	return status;
}
