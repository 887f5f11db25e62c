/* SPDX-License-Identifier: MIT */
/*
 * Memory at a GPU virtual address, into which the miniport writes commands: DMA buffers of presents
 * on contexts with such addresses (PRS-09), and on hardware queues (PRS-10). It is system memory
 * that the process is charged for, mapped from the first use to the end.
 */
#include "sched/data/data.h"

/* Charges the process for the memory and creates it. */
static vmm_status create(struct vmm_device *device, uint32_t object, uint32_t size_bytes,
			 struct vmm_dma_memory *memory) VMM_REQUIRES(vmm_paging_lock_class)
{
	const uint64_t bytes = vmm_align_up(size_bytes, VMM_PAGE_SIZE);
	const struct vmm_process *process = device->process;
	struct vmm_adapter *adapter = device->adapter;

	vmm_assert_held(&adapter->paging_lock);
	if (!vmm_account_charge(process->account, bytes))
		return vmm_refuse_reason(
			adapter->observe, VMM_NO_MEMORY, process->id, object,
			"PRS-09: a DMA buffer of %llu bytes for presents: process %u has reached "
			"its limit of system memory",
			(unsigned long long)bytes, process->id);
	vmm_status status = vmm_memory_dma_create_locked(adapter, size_bytes, &memory->backing,
							 &memory->bus_address);
	if (status == VMM_OK)
		memory->charged_bytes = bytes;
	else
		vmm_account_refund(process->account, bytes);
	return status;
}

vmm_status vmm_dma_memory_add(struct vmm_device *device, uint32_t object, uint32_t size_bytes,
			      struct vmm_dma_memory *memory)
{
	struct vmm_adapter *adapter = device->adapter;
	uint64_t bytes = vmm_align_up(size_bytes, VMM_PAGE_SIZE);
	vmm_status status = VMM_OK;

	vmm_assert(device->va && bytes);
	if (vmm_likely(memory->range != NULL))
		return VMM_OK;
	vmm_paging_lock(adapter);
	if (!memory->backing.address)
		status = create(device, object, size_bytes, memory);
	if (status == VMM_OK)
		status = vmm_va_map_bus_locked(device, memory->bus_address, bytes, &memory->range);
	if (status == VMM_OK)
		memory->mapped_by = vmm_memory_flush_locked(adapter);
	else
		memory->range = NULL;
	vmm_paging_commit(adapter);
	vmm_assert(status != VMM_OK || (memory->range && memory->backing.address));
	return status;
}

/* VA-13: the pages have no other owner before the page tables have lost them. */
void vmm_dma_memory_unmap(struct vmm_device *device, struct vmm_dma_memory *memory)
{
	struct vmm_adapter *adapter = device->adapter;

	vmm_assert(memory->range);
	vmm_paging_lock(adapter);
	vmm_va_unmap_bus_locked(device, memory->range);
	memory->range = NULL;
	uint64_t sequence = vmm_memory_flush_locked(adapter);
	vmm_paging_commit(adapter);
	(void)!vmm_ok(vmm_wait_timeline(adapter, adapter->paging_timeline, sequence,
					VIDMM_WAIT_DESTROY, NULL));
}

void vmm_dma_memory_destroy(struct vmm_device *device, struct vmm_dma_memory *memory)
{
	struct vmm_adapter *adapter = device->adapter;

	if (memory->range)
		vmm_dma_memory_unmap(device, memory);
	if (!memory->backing.address)
		return;
	vmm_paging_lock(adapter);
	vmm_memory_dma_destroy_locked(adapter, &memory->backing);
	vmm_paging_commit(adapter);
	vmm_account_refund(device->process->account, memory->charged_bytes);
	*memory = (struct vmm_dma_memory){0};
}
