/* SPDX-License-Identifier: MIT */
/*
 * Address spaces: one for each process on each adapter (VA-01), from its first device or
 * reservation there until the process or the adapter ends. Also: the ranges that the
 * miniport reserves during DxgkDdiCreateProcess (VA-15), and the contexts that use a space.
 */
#include "memory/sets/va_private.h"
#include "memory/store/store.h"
#include "memory/transfer/va_entries.h"
#include "vaspace/vaspace.h"

struct vmm_va *vmm_va_find(struct vmm_memory *memory, const struct vmm_process *process)
{
	struct vmm_list *link;

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_list_for_each (link, &memory->vas) {
		struct vmm_va *va = vmm_container_of(link, struct vmm_va, link);

		if (va->process == process)
			return va;
	}
	return NULL;
}

/* ---- ranges reserved by the miniport ---- */

static const char *range_fault(const struct vmm_va *va,
			       const DXGKARGCB_RESERVEGPUVIRTUALADDRESSRANGE *args)
{
	uint64_t leaf = (uint64_t)1 << vmm_va_shift(vmm_va_mmu(va), 1);

	if (!args->SizeInBytes || args->SizeInBytes % leaf)
		return "the size must be a nonzero multiple of what a leaf table covers";
	if (args->BaseAddress % leaf)
		return "the base must be a multiple of what a leaf table covers";
	if (args->Alignment & (args->Alignment - 1))
		return "the alignment must be a power of two";
	return NULL;
}

static NTSTATUS reserve_for_driver(const struct vmm_port_process *process,
				   DXGKARGCB_RESERVEGPUVIRTUALADDRESSRANGE *args)
{
	const struct vmm_va *va = vmm_container_of(process, struct vmm_va, port);
	const struct vmm_va_request request = {
		.base = args->BaseAddress,
		.size = args->SizeInBytes,
		.alignment = vmm_max_u64(args->Alignment,
					 (uint64_t)1 << vmm_va_shift(vmm_va_mmu(va), 1))};
	const char *wrong = range_fault(va, args);
	struct vmm_va_range *range;
	vmm_status status = VMM_INVALID_PARAMETER;

	if (!wrong) {
		/* No other thread can reach the space yet. */
		status = vmm_vaspace_take(
			va->space, &request,
			args->AllowUserModeMapping ? VMM_VA_BY_RESERVE : VMM_VA_BY_DRIVER, &range);
		wrong = "the range is not free, or it is in entry 0 of the table, which stays "
			"invalid";
	}
	if (vmm_ok(status)) {
		args->StartVirtualAddress = range->base;
		return STATUS_SUCCESS;
	}
	return vmm_refuse_rule(
		va->memory->adapter->observe, status, "VA-15", vmm_va_owner(va), 0,
		"DxgkCbReserveGpuVirtualAddressRange: base 0x%llx, 0x%llx bytes, alignment 0x%x: "
		"%s",
		(unsigned long long)args->BaseAddress, (unsigned long long)args->SizeInBytes,
		args->Alignment, wrong);
}

/* ---- creation and destruction of a space ---- */

void vmm_va_space_free(struct vmm_va *va)
{
	vmm_vaspace_destroy(va->space);
	vmm_free(va);
}

NTSTATUS vmm_va_space_create(struct vmm_adapter *adapter, const struct vmm_process *process,
			     struct vmm_va **result)
{
	struct vmm_va *va = vmm_calloc(1, sizeof(*va));
	NTSTATUS status;

	if (!va)
		return STATUS_NO_MEMORY;
	va->memory = adapter->memory;
	va->process = process;
	va->port.handle = va;
	va->port.system = !process;
	va->port.reserve = reserve_for_driver;
	vmm_list_init(&va->link);
	vmm_list_init(&va->contexts);
	/* Entry 0 of the lowest level that refers to tables stays invalid. */
	status = vmm_vaspace_create((uint64_t)1 << vmm_va_shift(vmm_va_mmu(va), 1),
				    (uint64_t)1 << vmm_va_mmu(va)->caps.VirtualAddressBitCount,
				    &va->space);
	if (NT_SUCCESS(status))
		status = vmm_port_create_process(adapter->port, &va->port, &va->kmd_process);
	if (!NT_SUCCESS(status)) {
		vmm_va_space_free(va);
		return status;
	}
	*result = va;
	return STATUS_SUCCESS;
}

static NTSTATUS create_root(struct vmm_va *va)
{
	struct vmm_adapter *adapter = va->memory->adapter;

	for (;;) {
		uint32_t seen = atomic_load(&adapter->progress);

		vmm_paging_lock(adapter);
		vmm_status status = vmm_va_root_create(va);
		if (status == VMM_OK)
			vmm_list_push_back(&va->memory->vas, &va->link);
		vmm_paging_commit(adapter);
		if (status != VMM_PENDING)
			return status == VMM_NO_VIDEO_MEMORY ? STATUS_NO_MEMORY : status;
		status = vmm_wait_progress(adapter, seen, VIDMM_WAIT_SPACE);
		if (!vmm_ok(status))
			return status;
	}
}

NTSTATUS vmm_va_get(struct vmm_adapter *adapter, struct vmm_process *process,
		    struct vmm_va **result)
{
	NTSTATUS status = STATUS_SUCCESS;

	/* The submit lock serializes creation. */
	vmm_submit_lock(adapter);
	vmm_paging_lock(adapter);
	struct vmm_va *va = vmm_va_find(adapter->memory, process);
	vmm_paging_commit(adapter);
	if (!va) {
		status = vmm_va_space_create(adapter, process, &va);
		if (NT_SUCCESS(status)) {
			status = create_root(va);
			if (!NT_SUCCESS(status)) {
				vmm_port_destroy_process(adapter->port, va->kmd_process);
				vmm_va_space_free(va);
			}
		}
		atomic_store(&process->addresses, true);
	}
	vmm_submit_unlock(adapter);
	if (NT_SUCCESS(status))
		*result = va;
	return status;
}

NTSTATUS vmm_va_begin_device(struct vmm_device *device, void **kmd_process)
{
	if (vmm_likely(!device->adapter->memory->caps->gpummu.supported))
		return STATUS_SUCCESS;
	NTSTATUS status = vmm_va_get(device->adapter, device->process, &device->va);

	if (NT_SUCCESS(status))
		*kmd_process = device->va->kmd_process;
	return status;
}

static void destroy_space(struct vmm_va *va)
{
	struct vmm_memory *memory = va->memory;
	struct vmm_adapter *adapter = memory->adapter;
	struct vmm_va_range *range;

	vmm_submit_lock(adapter);
	vmm_paging_lock(adapter);
	vmm_list_remove(&va->link);
	vmm_assert(vmm_list_empty(&va->contexts));
	while ((range = vmm_vaspace_next_range(va->space, 0)) != NULL)
		vmm_va_release(va, range);
	/* The miniport has finished with the tables before it is notified of the end. */
	uint64_t last = vmm_memory_flush_locked(adapter);
	(void)!memory->engine->wait_locked(adapter, adapter->paging_timeline, last,
					   VIDMM_WAIT_DESTROY);
	vmm_va_tables_free(va);
	vmm_backing_collect(memory);
	vmm_paging_commit(adapter);
	vmm_port_destroy_process(adapter->port, va->kmd_process);
	vmm_submit_unlock(adapter);
	vmm_va_space_free(va);
}

void vmm_va_end_process(struct vmm_adapter *adapter, const struct vmm_process *process)
{
	if (!adapter->memory->caps->gpummu.supported)
		return;
	vmm_paging_lock(adapter);
	struct vmm_va *va = vmm_va_find(adapter->memory, process);
	vmm_paging_commit(adapter);
	if (va)
		destroy_space(va);
}

void vmm_va_end_all(struct vmm_adapter *adapter)
{
	while (!vmm_list_empty(&adapter->memory->vas))
		destroy_space(vmm_container_of(adapter->memory->vas.next, struct vmm_va, link));
}

void vmm_va_rewrite(struct vmm_memory *memory)
{
	struct vmm_list *link;

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_va_rewrite_system(memory);
	vmm_list_for_each (link, &memory->vas)
		vmm_va_rewrite_one(vmm_container_of(link, struct vmm_va, link));
}

/* ---- contexts ---- */

void vmm_va_attach(struct vmm_va_context *context)
{
	struct vmm_adapter *adapter = context->device->adapter;
	struct vmm_va *va = context->device->va;

	vmm_paging_lock(adapter);
	vmm_list_push_back(&va->contexts, &context->link);
	vmm_va_send_root(va, context);
	vmm_paging_commit(adapter);
}

void vmm_va_detach(struct vmm_va_context *context)
{
	vmm_paging_lock(context->device->adapter);
	vmm_list_remove(&context->link);
	vmm_paging_commit(context->device->adapter);
}

/* ---- release of ranges ---- */

static void erase_piece(struct vmm_va *va, struct vmm_va_piece *piece)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&va->memory->adapter->paging_lock);
	if (piece->live)
		(void)!vmm_ok(vmm_va_erase(va, piece->base, piece->size,
					   piece->content.driver_protection));
	piece->live = false;
}

void vmm_va_release(struct vmm_va *va, struct vmm_va_range *range)
{
	uint64_t base = range->base, size = range->size;

	vmm_assert_held(&va->memory->adapter->paging_lock);
	for (uint64_t at = base; at < base + size;) {
		struct vmm_va_piece *piece = vmm_vaspace_piece(va->space, at);

		erase_piece(va, piece);
		at = piece->base + piece->size;
	}
	vmm_vaspace_release(va->space, range);
	vmm_va_prune(va, base, size);
}

/*
 * A range created by Map, or by the system for the miniport (PRS-09, VA-20), is released with its
 * last mapping. In a reservation the pages become invalid (VA-09).
 */
void vmm_va_forget_ref(struct vmm_ref *ref)
{
	struct vmm_allocation *a = ref->allocation;
	struct vmm_list *link, *next;

	vmm_assert_held(&ref->allocation->adapter->paging_lock);
	vmm_list_for_each_safe (link, next, &a->mappings) {
		struct vmm_va_piece *piece = vmm_container_of(link, struct vmm_va_piece, link);
		struct vmm_va_range *range = piece->range;

		if (piece->content.object != ref)
			continue;
		erase_piece(ref->device->va, piece);
		vmm_vaspace_unmap_piece(ref->device->va->space, piece);
		if ((range->origin == VMM_VA_BY_MAP || range->origin == VMM_VA_BY_SYSTEM) &&
		    !range->mapped)
			vmm_va_release(ref->device->va, range);
	}
	if (vmm_list_empty(&a->mappings))
		a->mapped_at = 0;
}
