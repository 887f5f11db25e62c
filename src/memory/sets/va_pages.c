/* SPDX-License-Identifier: MIT */
/*
 * Maps pages that belong to no allocation at GPU virtual addresses that the system chooses. They
 * hold the values of monitored fences (MFN-04), or the DMA buffers of presents (PRS-09). The GPU
 * therefore writes the same word of a fence that the CPU reads (MFN-05). The pages have bus
 * addresses while they are mapped. Clients can neither map into such a range nor free it.
 */
#include "memory/sets/va_private.h"
#include "memory/transfer/va_entries.h"
#include "vaspace/vaspace.h"

struct vmm_va_window {
	uint64_t physical;
	struct vmm_va_range *range;
};

static vmm_status map_locked(struct vmm_va *va, const struct vmm_va_content *content, uint64_t size,
			     struct vmm_va_range **range) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_va_request request = {.size = size, .alignment = VMM_PAGE_SIZE};
	vmm_status status = vmm_vaspace_take(va->space, &request, VMM_VA_BY_SYSTEM, range);

	vmm_assert_held(&va->memory->adapter->paging_lock);
	if (status != VMM_OK)
		return status;
	status = vmm_va_create_tables(va, (*range)->base, size);
	if (status == VMM_OK) {
		vmm_vaspace_fill(va->space, *range, content);
		status =
			vmm_va_write_piece(va, vmm_vaspace_piece(va->space, (*range)->base), false);
	}
	if (status != VMM_OK)
		vmm_va_release(va, *range);
	return status;
}

/* Waits until the mapping is in effect: the caller has no fence to wait for yet. */
static vmm_status map(struct vmm_va *va, struct vmm_va_window *window, uint64_t size)
{
	struct vmm_adapter *adapter = va->memory->adapter;
	const struct vmm_va_content content = {
		.kind = VMM_VA_PAGES, .protection = VMM_VA_WRITE, .offset = window->physical};

	for (;;) {
		uint32_t seen = atomic_load(&adapter->progress);
		uint64_t sequence = 0;

		vmm_paging_lock(adapter);
		vmm_status status = map_locked(va, &content, size, &window->range);
		if (status == VMM_OK)
			sequence = vmm_memory_flush_locked(adapter);
		vmm_paging_commit(adapter);
		if (status == VMM_OK)
			return vmm_wait_timeline(adapter, adapter->paging_timeline, sequence,
						 VIDMM_WAIT_PAGING_BUFFER, NULL);
		if (status != VMM_PENDING)
			return status;
		status = vmm_wait_progress(adapter, seen, VIDMM_WAIT_SPACE);
		if (!vmm_ok(status))
			return status;
	}
}

/* Maps the pages of fences at a GPU address, so that CPU and GPU access the same words. (MFN-05) */
vmm_status vmm_va_map_pages(struct vmm_device *device, const struct vmm_os_memory *pages,
			    uint64_t size_bytes, struct vmm_va_window **result, uint64_t *address)
{
	struct vmm_nt *nt = device->adapter->world->nt;
	struct vmm_va_window *window = vmm_calloc(1, sizeof(*window));
	vmm_status status;

	if (!window)
		return VMM_NO_MEMORY;
	window->physical = vmm_nt_phys_reserve(nt, size_bytes);
	status = vmm_nt_phys_add(nt, window->physical, pages, 0, size_bytes);
	if (vmm_ok(status)) {
		status = map(device->va, window, size_bytes);
		if (!vmm_ok(status))
			vmm_nt_phys_remove(nt, window->physical);
	}
	if (!vmm_ok(status)) {
		vmm_free(window);
		return status == VMM_NO_VIDEO_MEMORY ? VMM_NO_MEMORY : status;
	}
	*address = window->range->base;
	*result = window;
	return VMM_OK;
}

void vmm_va_unmap_pages(struct vmm_device *device, struct vmm_va_window *window)
{
	struct vmm_adapter *adapter = device->adapter;

	vmm_paging_lock(adapter);
	vmm_va_release(device->va, window->range);
	uint64_t sequence = vmm_memory_flush_locked(adapter);
	vmm_paging_commit(adapter);
	/* After this wait the pages may have another owner. */
	(void)!vmm_ok(vmm_wait_timeline(adapter, adapter->paging_timeline, sequence,
					VIDMM_WAIT_DESTROY, NULL));
	vmm_nt_phys_remove(adapter->world->nt, window->physical);
	vmm_free(window);
}

vmm_status vmm_va_map_bus_locked(struct vmm_device *device, uint64_t bus_address,
				 uint64_t size_bytes, struct vmm_va_range **range)
{
	const struct vmm_va_content content = {
		.kind = VMM_VA_PAGES, .protection = VMM_VA_WRITE, .offset = bus_address};

	vmm_assert_held(&device->adapter->paging_lock);
	vmm_assert(device->va && !(bus_address % VMM_PAGE_SIZE) && !(size_bytes % VMM_PAGE_SIZE));
	vmm_status status = map_locked(device->va, &content, size_bytes, range);
	return status == VMM_NO_VIDEO_MEMORY ? VMM_NO_MEMORY : status;
}

uint64_t vmm_va_range_address(const struct vmm_va_range *range)
{
	return range->base;
}

void vmm_va_unmap_bus_locked(struct vmm_device *device, struct vmm_va_range *range)
{
	vmm_assert_held(&device->adapter->paging_lock);
	vmm_va_release(device->va, range);
}
