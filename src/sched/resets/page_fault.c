/* SPDX-License-Identifier: MIT */
/*
 * DXGK_INTERRUPT_DMA_PAGE_FAULTED (TDR-19, from WDDM 2.0 on): a packet accessed a GPU virtual
 * address that has no memory.
 *
 * 1. The interrupt records the fault in a ring of the node.
 * 2. The DPC marks the device of the faulted packet as lost. Its client can read a record of the
 *    fault. What follows depends on the flags of the fault:
 *      no flag                          the packet counts as complete, as after other faults
 *      ENGINE_RESET_REQUIRED, or the    the engine is reset if the miniport can do that,
 *        faulted packet is unknown      otherwise the adapter (engine.c)
 *      ADAPTER_RESET_REQUIRED, or the   the watchdog resets the adapter (recover.c)
 *        packet was a paging packet
 *      FATAL_HARDWARE_ERROR             the adapter is stopped for good
 * 3. The next thread that holds the paging lock at PASSIVE_LEVEL cancels the other queued packets
 *    of the device and releases the waiters of its fences.
 */
#include "sched/resets/resets.h"

enum {
	FENCE_INVALID = DXGK_PAGE_FAULT_FENCE_INVALID,
	ADAPTER_RESET = DXGK_PAGE_FAULT_ADAPTER_RESET_REQUIRED,
	ENGINE_RESET = DXGK_PAGE_FAULT_ENGINE_RESET_REQUIRED,
	FATAL_HARDWARE = DXGK_PAGE_FAULT_FATAL_HARDWARE_ERROR,
	ERROR_DMAPAGEFAULT = 7, /* D3DKMT_DEVICEEXECUTION_STATE */
};

bool vmm_page_fault_record(struct vmm_node *node, const DXGKARGCB_NOTIFY_INTERRUPT_DATA *data)
{
	uint32_t head = atomic_load(&node->page_fault_head);
	uint32_t flags = (uint32_t)data->DmaPageFaulted.PageFaultFlags;

	if (!data->DmaPageFaulted.FaultedFenceId)
		flags |= FENCE_INVALID;
	if (head - atomic_load(&node->page_fault_tail) == VMM_PAGE_FAULTS_MAX)
		return false;
	node->page_fault[head % VMM_PAGE_FAULTS_MAX] = (struct vmm_page_fault){
		.fence = data->DmaPageFaulted.FaultedFenceId,
		.flags = flags,
		.record = {.sequence_number =
				   data->DmaPageFaulted.FaultedPrimitiveAPISequenceNumber,
			   .virtual_address = data->DmaPageFaulted.FaultedVirtualAddress,
			   .stage = (uint32_t)data->DmaPageFaulted.FaultedPipelineStage,
			   .bind_table_entry = data->DmaPageFaulted.FaultedBindTableEntry,
			   .flags = (uint32_t)data->DmaPageFaulted.PageFaultFlags,
			   .device_specific =
				   data->DmaPageFaulted.FaultErrorCode.IsDeviceSpecificCode,
			   .code = data->DmaPageFaulted.FaultErrorCode.GeneralErrorCode},
	};
	atomic_store(&node->page_fault_head, head + 1);
	return true;
}

/*
 * Returns the packet that faulted, or NULL if the fence id is not with the hardware. Without an
 * id the running packet is taken (inferred). State lock held.
 */
static struct vmm_packet *faulted_packet(const struct vmm_node *node,
					 const struct vmm_page_fault *fault)
{
	const struct vmm_list *link;

	vmm_list_for_each (link, &node->hardware) {
		struct vmm_packet *packet = vmm_container_of(link, struct vmm_packet, link);

		if (fault->flags & FENCE_INVALID || packet->fence == fault->fence)
			return packet;
	}
	return NULL;
}

static void lose(struct vmm_sched *sched, uint32_t index, struct vmm_packet *packet,
		 const struct vmm_page_fault *fault) VMM_REQUIRES(vmm_state_lock_class)
{
	struct vmm_context *context = vmm_dma_of(packet)->context;
	struct vmm_device *device = context->device;

	vmm_assert_held(&sched->adapter->state_lock);
	if (vmm_device_lost(device))
		return;
	device->page_fault = fault->record;
	atomic_store(&device->error, VMM_DEVICE_PAGE_FAULT);
	vmm_world_next_epoch(sched->adapter->world);
	vmm_reason(sched->adapter->observe, STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE,
		   device->process->id, device->handle,
		   "TDR-19: page fault at 0x%llx on fence 0x%08x of context 0x%08x (node %u, "
		   "flags 0x%x): device 0x%08x is lost",
		   (unsigned long long)fault->record.virtual_address, packet->fence,
		   context->handle, index, fault->flags, device->handle);
	vmm_event(sched->adapter->observe, VIDMM_EVENT_RECOVERY, device->process->id,
		  device->handle, VIDMM_RECOVERY_DEVICE_LOST, ERROR_DMAPAGEFAULT, index,
		  packet->fence, 0);
}

static void want_reset(struct vmm_sched *sched, uint32_t index, const struct vmm_packet *packet,
		       bool adapter) VMM_REQUIRES(vmm_state_lock_class)
{
	const struct vmm_node *node = &sched->node[index];
	const struct vmm_timeout timeout = {
		.node = index,
		.fence = packet ? packet->fence : node->last_completed,
		.fault = true,
		.running_ns = vmm_os_now_ns(sched->adapter->os) - node->since_ns,
	};

	vmm_assert_held(&sched->adapter->state_lock);
	if (!sched->watchdog) {
		vmm_reason(sched->adapter->observe, VMM_UNSUCCESSFUL, 0, 0,
			   "TDR-19: node %u needs a reset after a page fault, but TdrLevel 0 "
			   "disables resets (TDR-01)",
			   index);
		return;
	}
	vmm_engine_fault_locked(sched, &timeout, adapter);
}

/* Handles a fault of a packet that is complete, or of an id that was never submitted. */
static uint32_t not_with_hardware(struct vmm_sched *sched, uint32_t index,
				  const struct vmm_page_fault *fault)
	VMM_REQUIRES(vmm_state_lock_class)
{
	struct vmm_node *node = &sched->node[index];

	vmm_assert_held(&sched->adapter->state_lock);
	if (!(fault->flags & FENCE_INVALID) &&
	    !vmm_fence_reached(node->last_completed, fault->fence))
		vmm_queue_refuse_report(sched, index, fault->fence);
	else if (fault->flags & (ADAPTER_RESET | ENGINE_RESET))
		want_reset(sched, index, NULL, fault->flags & ADAPTER_RESET);
	return 0;
}

static uint32_t handle_fault(struct vmm_sched *sched, uint32_t index,
			     const struct vmm_page_fault *fault) VMM_REQUIRES(vmm_state_lock_class)
{
	struct vmm_node *node = &sched->node[index];
	struct vmm_packet *packet = faulted_packet(node, fault);

	vmm_assert_held(&sched->adapter->state_lock);
	if (fault->flags & FATAL_HARDWARE) {
		vmm_reason(sched->adapter->observe, VMM_DEVICE_REMOVED, 0, 0,
			   "TDR-19: node %u reports a page fault that is a fatal hardware error",
			   index);
		vmm_port_fatal(sched->adapter->port, VMM_PORT_FATAL_TDR, index, fault->fence,
			       fault->flags);
		return 0;
	}
	if (!packet)
		return not_with_hardware(sched, index, fault);
	if (!packet->paging) {
		lose(sched, index, packet, fault);
		vmm_engine_cancel_locked(sched, node);
	}
	/* After a fault of a paging packet the content that it moved is undefined (TDR-17). */
	if (packet->paging || fault->flags & (ADAPTER_RESET | ENGINE_RESET | FENCE_INVALID)) {
		want_reset(sched, index, packet, packet->paging || fault->flags & ADAPTER_RESET);
		return 0;
	}
	return vmm_queue_retire_locked(sched, node, packet->fence);
}

uint32_t vmm_page_faults_locked(struct vmm_sched *sched, uint32_t index)
{
	struct vmm_node *node = &sched->node[index];
	uint32_t tail = atomic_load(&node->page_fault_tail), retired = 0;

	vmm_assert_held(&sched->adapter->state_lock);
	while (tail != atomic_load(&node->page_fault_head)) {
		struct vmm_page_fault fault = node->page_fault[tail % VMM_PAGE_FAULTS_MAX];

		atomic_store(&node->page_fault_tail, ++tail);
		retired += handle_fault(sched, index, &fault);
	}
	return retired;
}

void vmm_page_faults_forget(struct vmm_node *node)
{
	atomic_store(&node->page_fault_tail, atomic_load(&node->page_fault_head));
}

void vmm_sched_page_fault(const struct vmm_device *device, struct vmm_page_fault_record *record)
{
	vmm_assert(vmm_device_is_valid(device));
	vmm_state_lock(device->adapter);
	*record = device->page_fault;
	vmm_state_unlock(device->adapter);
}
