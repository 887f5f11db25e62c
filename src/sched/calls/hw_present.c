/* SPDX-License-Identifier: MIT */
/*
 * Presents on hardware queues (PRS-10): D3DKMTSubmitPresentBltToHwQueue,
 * D3DKMTSubmitPresentToHwQueue and their callbacks. The miniport writes the commands of a blit into
 * memory of the library. They become a command of the queue, which waits, is submitted and
 * completes like those of clients (hw_queue.c).
 */
#include <string.h>
#include "sched/data/submission.h"
#include "sched/resets/hw_private.h"
#include "sched/calls/calls.h"

static NTSTATUS check_built(const struct vmm_present *p)
{
	const struct vmm_adapter *adapter = p->device->adapter;

	if (!p->device->va)
		return vmm_present_not_built(p, "PRS-10",
					     "a present without GPU virtual addresses");
	if (!vmm_port_presents_to_hw_queues(adapter->port))
		return vmm_present_not_built(p, "PRS-10",
					     "a present by a miniport that has no "
					     "DxgkDdiPresentToHwQueue");
	return STATUS_SUCCESS;
}

/*
 * Finds the queue, checks the id before the miniport is called, and takes a packet. The queue does
 * not end before end_present.
 */
static NTSTATUS begin_locked(struct vmm_present *p, const struct vmm_hw_present_request *request,
			     struct vmm_hw_packet **packet) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&p->device->adapter->paging_lock);
	struct vmm_hw_queue *queue = vmm_hw_find_queue_locked(p->device, request->queue);
	NTSTATUS status = queue ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER;

	if (NT_SUCCESS(status) && !request->next)
		status = vmm_hw_check_id(queue, request->id);
	if (NT_SUCCESS(status) && !queue->context->present_bytes)
		status = vmm_present_refuse(p, "PRS-10",
					    "the miniport asked for a DmaBufferSize of 0", 0);
	if (!NT_SUCCESS(status))
		return status;
	*packet = vmm_hw_take_present(queue);
	if (!*packet)
		return STATUS_NO_MEMORY;
	queue->presenting++;
	p->kmd_queue = queue->kmd_queue;
	p->dma_bytes = queue->context->present_bytes;
	p->private_bytes = queue->context->present_private_bytes;
	return STATUS_SUCCESS;
}

static void end_present(struct vmm_hw_queue *queue)
{
	struct vmm_adapter *adapter = queue->context->device->adapter;

	vmm_paging_lock(adapter);
	vmm_assert(queue->presenting > 0);
	queue->presenting--;
	vmm_paging_commit(adapter);
	vmm_progress_signal(adapter); /* a thread may wait to end the queue */
}

/*
 * a second buffer would need a further id, which the client did not give, so the whole
 * present must fit into one.
 */
VMM_COLD static NTSTATUS refuse_second_buffer(const struct vmm_present *p)
{
	return vmm_refuse_reason(
		p->device->adapter->observe, STATUS_NOT_SUPPORTED, p->device->process->id,
		p->object,
		"Q-251: present on hardware queue 0x%08x: DxgkDdiPresentToHwQueue needs more than "
		"one DMA buffer of %u bytes for %u rectangles",
		p->object, p->dma_bytes, p->sub_rect_count);
}

/* Has the miniport write the commands. No allocation of the list is destroyed meanwhile. */
static NTSTATUS fill(struct vmm_present *p, struct vmm_hw_packet *packet)
{
	struct vmm_adapter *adapter = p->device->adapter;
	D3DDDI_ALLOCATIONLIST entries[DXGK_PRESENT_MAX_INDEX];
	DXGK_ALLOCATIONLIST list[DXGK_PRESENT_MAX_INDEX];
	struct vmm_instance *instances[DXGK_PRESENT_MAX_INDEX];
	uint8_t uses[DXGK_PRESENT_MAX_INDEX];
	struct vmm_dma dma = {.memory = packet->memory,
			      .private_data = packet->private_data,
			      .list = list,
			      .instances = instances,
			      .uses = uses};
	struct vmm_submission s = {.kind = &vmm_hw_present_kind,
				   .device = p->device,
				   .object = p->object,
				   .adapter = adapter,
				   .present = p,
				   .entries = entries,
				   .entry_count = DXGK_PRESENT_MAX_INDEX};
	uint32_t multipass = 0;

	vmm_present_list(p, entries);
	if (p->private_bytes)
		memset(packet->private_data, 0, p->private_bytes); /* DMA-07 */
	vmm_submit_lock(adapter);
	NTSTATUS status = vmm_submission_capture(&s, &dma);
	if (NT_SUCCESS(status)) {
		status = s.kind->fill(&s, &dma, &multipass);
		if (status == STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE)
			vmm_submission_fail_device(&s);
	}
	vmm_submit_unlock(adapter);
	if (status == STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER)
		return refuse_second_buffer(p);
	packet->address = dma.commands;
	packet->bytes = dma.used_bytes;
	packet->private_bytes = dma.private_used;
	vmm_assert(!NT_SUCCESS(status) ||
		   (packet->bytes <= p->dma_bytes && packet->private_bytes <= p->private_bytes));
	return status;
}

/* The packet counts against the limit until it is complete or dropped. */
static NTSTATUS enqueue(struct vmm_hw_packet *packet, const struct vmm_hw_present_request *request)
{
	struct vmm_hw_queue *queue = packet->queue;
	const struct vmm_device *device = queue->context->device;
	struct vmm_adapter *adapter = device->adapter;

	vmm_assert(queue->presenting > 0 && !packet->present);
	vmm_paging_lock(adapter);
	packet->id = request->next ? queue->last_id + 1 : request->id;
	NTSTATUS status = atomic_load(&device->error) == VMM_DEVICE_OK
				  ? vmm_hw_check_id(queue, packet->id)
				  : STATUS_DEVICE_REMOVED; /* lost meanwhile (TDR-07) */
	if (NT_SUCCESS(status)) {
		packet->present = true;
		vmm_hw_enqueue(packet);
	}
	vmm_paging_commit(adapter);
	if (NT_SUCCESS(status))
		vmm_hw_enqueued(adapter);
	return status;
}

static NTSTATUS run(struct vmm_present *p, const struct vmm_hw_present_request *request)
{
	struct vmm_hw_packet *packet = NULL;

	vmm_paging_lock(p->device->adapter);
	NTSTATUS status = begin_locked(p, request, &packet);
	vmm_paging_commit(p->device->adapter);
	if (!NT_SUCCESS(status))
		return status;
	struct vmm_hw_queue *queue = packet->queue;

	status = vmm_dma_memory_get(p->device, p->object, p->dma_bytes, &packet->memory);
	if (NT_SUCCESS(status))
		status = fill(p, packet);
	if (NT_SUCCESS(status))
		status = enqueue(packet, request);
	if (!NT_SUCCESS(status))
		vmm_hw_put_packet(packet);
	end_present(queue);
	return status;
}

NTSTATUS vmm_hw_present(struct vmm_device *device, const struct vmm_hw_present_request *request)
{
	struct vmm_present p = {
		.device = device, .object = request->queue, .words = vmm_hw_present_kind.words};
	NTSTATUS status = check_built(&p);

	if (!NT_SUCCESS(status))
		return status;
	const DXGK_PRESENTFLAGS flags = {.Value = request->present->flags};
	if (flags.Flip || flags.ColorFill)
		return vmm_present_refuse(&p, "PRS-10", "it is not a Blt", flags.Value);
	status = vmm_present_begin(&p, request->present);
	if (NT_SUCCESS(status))
		status = vmm_present_map(&p);
	if (NT_SUCCESS(status))
		status = vmm_present_reserve(&p);
	if (NT_SUCCESS(status)) {
		status = run(&p, request);
		if (!NT_SUCCESS(status))
			vmm_present_unreserve(&p);
	}
	vmm_present_end(&p);
	return status;
}

/* ---- presents of user-mode drivers ---- */

static NTSTATUS check_queue_count(const struct vmm_device *device, uint32_t count)
{
	struct vmm_observe *observe = device->adapter->observe;
	const uint32_t process = device->process->id;

	if (!count)
		return vmm_refuse_rule(observe, STATUS_INVALID_PARAMETER, "Q-342", process, 0,
				       "pfnSubmitPresentToHwQueueCb: BroadcastHwQueueCount is 0, "
				       "but it counts every queue");
	return count == 1 ? STATUS_SUCCESS
			  : vmm_refuse_reason(observe, STATUS_NOT_SUPPORTED, process, 0,
					      "Q-342: pfnSubmitPresentToHwQueueCb: a present on %u "
					      "hardware queues is not built",
					      count);
}

NTSTATUS vmm_hw_present_blt(struct vmm_device *device, const struct vmm_hw_blt *blt)
{
	DXGK_PRESENTFLAGS flags = {0};
	NTSTATUS status = check_queue_count(device, blt->queue_count);

	if (!NT_SUCCESS(status))
		return status;
	flags.Blt = blt->destination != 0;
	flags.Flip = !flags.Blt;
	const struct vmm_present_request present = {.source = blt->source,
						    .destination = blt->destination,
						    .flags = flags.Value,
						    .interval = D3DDDI_FLIPINTERVAL_ONE,
						    .private_data = blt->private_data,
						    .private_bytes = blt->private_bytes};
	const struct vmm_hw_present_request request = {
		.queue = blt->queue, .id = blt->id, .next = blt->next, .present = &present};

	return vmm_hw_present(device, &request);
}
