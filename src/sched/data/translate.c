/* SPDX-License-Identifier: MIT */
/*
 * One call of the miniport that fills one DMA buffer: DxgkDdiRender, DxgkDdiPresent, or for
 * commands at GPU virtual addresses DxgkDdiValidateSubmitCommand.
 */
#include "sched/data/submission.h"
#include "sched/data/data.h"

#include <string.h>

/*
 * Begins a DDI call that translates into `dma`. The buffer is pinned, so its placement does not
 * change during the call.
 */
static struct vmm_process *begin_translation(const struct vmm_submission *s, struct vmm_dma *dma)
{
	vmm_dma_pin(dma);
	return vmm_calling_process_set(s->adapter->os, s->context->device->process);
}

/*
 * Unpins the buffer, and wakes the worker for the first packet to prepare, an operation of a paging
 * queue, or a hardware context, that may need the buffer's space in the aperture. These are
 * announced before the worker reads the hold, so the store here and the loads after it must not
 * change places: all are sequentially consistent. (DMA-05)
 */
static void let_move(const struct vmm_submission *s, struct vmm_dma *dma)
{
	struct vmm_sched *sched = s->adapter->sched;

	if (vmm_likely(!s->context->dma_segment_set))
		return;
	atomic_store(&dma->hold, VMM_DMA_MOVABLE);
	if (atomic_load(&sched->blocked))
		vmm_progress_signal(s->adapter);
	bool awaited = atomic_load(&sched->hw_awaits_buffers) &&
		       atomic_exchange(&sched->hw_awaits_buffers, false);
	if (awaited || atomic_load(&s->adapter->paging_work))
		vmm_worker_wake(sched);
}

static void end_translation(const struct vmm_submission *s, struct vmm_dma *dma,
			    struct vmm_process *before) VMM_REQUIRES(vmm_submit_lock_class)
{
	vmm_assert_held(&s->adapter->submit_lock);
	let_move(s, dma);
	vmm_calling_process_set(s->adapter->os, before);
}

/* The miniport's output pointers after the call. */
static void note_output(struct vmm_dma *dma, const void *commands, const void *private_data,
			const D3DDDI_PATCHLOCATIONLIST *patches)
{
	dma->used_bytes = (uint32_t)((const char *)commands - dma->memory.backing.address);
	dma->patch_count = (uint32_t)(patches - dma->patches);
	dma->private_used =
		dma->private_data
			? (uint32_t)((const char *)private_data - (const char *)dma->private_data)
			: 0;
}

/*
 * Passes the client's patch list as it is. Only the list that the miniport writes is used later.
 * (PAT-01)
 */
NTSTATUS vmm_fill_by_render(const struct vmm_submission *s, struct vmm_dma *dma,
			    uint32_t *multipass)
{
	const struct vmm_context *context = s->context;
	struct vmm_process *before = begin_translation(s, dma);
	DXGKARG_RENDER args = {
		/* Segment 0 and address 0 while the buffer is not mapped into an aperture. */
		.pCommand = (const char *)context->user.commands + s->request->command_offset,
		.CommandLength = s->request->command_length - s->request->command_offset,
		.pDmaBuffer = dma->memory.backing.address,
		.DmaSize = context->dma_bytes,
		.pDmaBufferPrivateData = dma->private_data,
		.DmaBufferPrivateDataSize = context->dma_private_bytes,
		.pAllocationList = dma->list,
		.AllocationListSize = dma->list_count,
		.pPatchLocationListIn = context->user.patches,
		.PatchLocationListInSize = s->request->patch_count,
		.pPatchLocationListOut = dma->patches,
		.PatchLocationListOutSize = context->patch_size,
		.MultipassOffset = *multipass,
		.DmaBufferSegmentId = dma->place.segment,
		.DmaBufferPhysicalAddress.QuadPart = (LONGLONG)dma->place.address,
	};
	NTSTATUS status = vmm_port_render(s->adapter->port, context->kmd_context, &args);

	vmm_assert_held(&s->adapter->submit_lock);
	end_translation(s, dma, before);
	note_output(dma, args.pDmaBuffer, args.pDmaBufferPrivateData, args.pPatchLocationListOut);
	*multipass = args.MultipassOffset;
	return status;
}

static DXGKARG_PRESENT present_of(const struct vmm_submission *s, const struct vmm_dma *dma,
				  uint32_t multipass)
{
	const struct vmm_present *p = s->present;

	return (DXGKARG_PRESENT){
		.pAllocationList = dma->list,
		.MultipassOffset = multipass,
		.Color = p->request->color,
		.DstRect = p->destination,
		.SrcRect = p->source,
		.SubRectCnt = p->sub_rect_count,
		.pDstSubRects = p->sub_rects,
		.FlipInterval = p->request->interval,
		.Flags = p->flags,
		.pPrivateDriverData = (void *)p->request->private_data,
		.PrivateDriverDataSize = p->request->private_bytes,
	};
}

/*
 * DMA-18: on a context with GPU virtual addresses the elements of the list have the address of the
 * allocation's mapping instead of a segment and an address in it.
 */
static NTSTATUS write_virtual_list(const struct vmm_submission *s, struct vmm_dma *dma)
	VMM_REQUIRES(vmm_submit_lock_class)
{
	struct vmm_device *device = s->device;

	vmm_assert_held(&s->adapter->submit_lock);
	vmm_assert(s->kind->by_address && dma->list_count == DXGK_PRESENT_MAX_INDEX);
	for (uint32_t i = 0; i < dma->list_count; i++) {
		if (!dma->instances[i])
			continue;
		uint64_t address = vmm_va_driver_address(device, s->entries[i].hAllocation);

		if (!address) /* closed and opened again since the call began */
			return vmm_refuse_reason(
				s->adapter->observe, STATUS_INVALID_HANDLE, device->process->id,
				s->object,
				"PRS-09: allocation 0x%08x was destroyed during the present",
				s->entries[i].hAllocation);
		dma->list[i].SegmentId = 0;
		dma->list[i].VirtualAddress = address;
	}
	return STATUS_SUCCESS;
}

/* The arguments for a buffer with memory at a GPU virtual address (PRS-09). */
static DXGKARG_PRESENT virtual_present_of(const struct vmm_submission *s, struct vmm_dma *dma,
					  uint32_t dma_bytes, uint32_t private_bytes,
					  uint32_t multipass)
{
	DXGKARG_PRESENT args = present_of(s, dma, multipass);

	vmm_assert(dma->memory.range != NULL);
	dma->commands = vmm_va_range_address(dma->memory.range);
	args.pDmaBuffer = dma->memory.backing.address;
	args.DmaSize = dma_bytes;
	args.DmaBufferGpuVirtualAddress = dma->commands;
	args.pDmaBufferPrivateData = dma->private_data;
	args.DmaBufferPrivateDataSize = private_bytes;
	args.NumSrcAllocations = dma->instances[DXGK_PRESENT_SOURCE_INDEX] != NULL;
	args.NumDstAllocations = dma->instances[DXGK_PRESENT_DESTINATION_INDEX] != NULL;
	return args;
}

/* PRS-10: as below, but for the hardware queue whose command the buffer becomes. */
NTSTATUS vmm_fill_by_hw_present(const struct vmm_submission *s, struct vmm_dma *dma,
				uint32_t *multipass)
{
	const struct vmm_present *p = s->present;
	NTSTATUS status = write_virtual_list(s, dma);

	vmm_assert_held(&s->adapter->submit_lock);
	if (!NT_SUCCESS(status))
		return status;
	struct vmm_process *before = vmm_calling_process_set(s->adapter->os, s->device->process);
	DXGKARG_PRESENT args =
		virtual_present_of(s, dma, p->dma_bytes, p->private_bytes, *multipass);

	status = vmm_port_present_to_hw_queue(s->adapter->port, p->kmd_queue, &args);
	vmm_calling_process_set(s->adapter->os, before);
	note_output(dma, args.pDmaBuffer, args.pDmaBufferPrivateData, dma->patches);
	*multipass = args.MultipassOffset;
	return status;
}

NTSTATUS vmm_fill_by_virtual_present(const struct vmm_submission *s, struct vmm_dma *dma,
				     uint32_t *multipass)
{
	const struct vmm_context *context = s->context;
	NTSTATUS status = write_virtual_list(s, dma);

	vmm_assert_held(&s->adapter->submit_lock);
	if (!NT_SUCCESS(status))
		return status;
	struct vmm_process *before = begin_translation(s, dma);
	DXGKARG_PRESENT args = virtual_present_of(s, dma, context->present_bytes,
						  context->dma_private_bytes, *multipass);

	status = vmm_port_present(s->adapter->port, context->kmd_context, &args);
	end_translation(s, dma, before);
	note_output(dma, args.pDmaBuffer, args.pDmaBufferPrivateData, dma->patches);
	*multipass = args.MultipassOffset;
	return status;
}

NTSTATUS vmm_fill_by_present(const struct vmm_submission *s, struct vmm_dma *dma,
			     uint32_t *multipass)
{
	const struct vmm_context *context = s->context;
	struct vmm_process *before = begin_translation(s, dma);
	DXGKARG_PRESENT args = present_of(s, dma, *multipass);

	vmm_assert_held(&s->adapter->submit_lock);
	args.pDmaBuffer = dma->memory.backing.address;
	args.DmaSize = context->dma_bytes;
	args.pDmaBufferPrivateData = dma->private_data;
	args.DmaBufferPrivateDataSize = context->dma_private_bytes;
	args.pPatchLocationListOut = dma->patches;
	args.PatchLocationListOutSize = context->patch_size;
	args.DmaBufferSegmentId = dma->place.segment;
	args.DmaBufferPhysicalAddress.QuadPart = (LONGLONG)dma->place.address;
	NTSTATUS status = vmm_port_present(s->adapter->port, context->kmd_context, &args);
	end_translation(s, dma, before);
	note_output(dma, args.pDmaBuffer, args.pDmaBufferPrivateData, args.pPatchLocationListOut);
	*multipass = args.MultipassOffset;
	return status;
}

/* Names the primary in the patch list, so that preparation makes it resident. Returns the end. */
static const D3DDDI_PATCHLOCATIONLIST *name_primary(struct vmm_dma *dma)
{
	if (dma->context->no_patching) /* no patch list; the residency list has the primary */
		return dma->patches;
	dma->patches[0] = (D3DDDI_PATCHLOCATIONLIST){.AllocationIndex = DXGK_PRESENT_SOURCE_INDEX};
	return dma->patches + 1;
}

/* DMA-32: the miniport gets no buffer to fill. The packet has no commands. */
NTSTATUS vmm_fill_for_mmio_flip(const struct vmm_submission *s, struct vmm_dma *dma,
				uint32_t *multipass)
{
	const struct vmm_context *context = s->context;
	NTSTATUS status = context->by_address ? write_virtual_list(s, dma) : STATUS_SUCCESS;

	vmm_assert_held(&s->adapter->submit_lock);
	if (!NT_SUCCESS(status))
		return status;
	struct vmm_process *before = begin_translation(s, dma);
	DXGKARG_PRESENT args = present_of(s, dma, *multipass);

	status = vmm_port_present(s->adapter->port, context->kmd_context, &args);
	end_translation(s, dma, before);
	if (status == STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER)
		return vmm_refuse_rule(
			s->adapter->observe, STATUS_INVALID_PARAMETER, "DMA-32",
			context->device->process->id, context->handle,
			"DxgkDdiPresent on context 0x%08x asks for another DMA buffer for an "
			"MMIO flip, which uses none",
			context->handle);
	if (!NT_SUCCESS(status))
		return status;
	note_output(dma, dma->memory.backing.address, dma->private_data, name_primary(dma));
	*multipass = args.MultipassOffset;
	return status;
}

/* ---- commands at GPU virtual addresses ---- */

NTSTATUS vmm_command_validate(const struct vmm_device *device, uint32_t object,
			      DXGKARG_VALIDATESUBMITCOMMAND *args)
{
	NTSTATUS status = vmm_port_validate_command(device->adapter->port, args);

	if (vmm_likely(status == STATUS_SUCCESS || status == STATUS_DEVICE_REMOVED))
		return status;
	return vmm_refuse_rule(
		device->adapter->observe, STATUS_INVALID_USER_BUFFER, "SUB-25", device->process->id,
		object,
		"DxgkDdiValidateSubmitCommand returned 0x%08x for a command for 0x%08x, %u "
		"bytes at 0x%llx with %u bytes of private data: nothing is queued%s",
		(unsigned)status, object, args->CommandLength, (unsigned long long)args->Commands,
		args->UmdPrivateDataSize,
		status == STATUS_INVALID_USER_BUFFER
			? ""
			: "; a refusal must return STATUS_INVALID_USER_BUFFER");
}

/* Returns the size of the private data that every context of the submission has. */
static uint32_t common_private_bytes(const struct vmm_submission *s)
{
	uint32_t bytes = s->context->dma_private_bytes;

	for (uint32_t i = 0; s->broadcast && i < s->broadcast->count; i++)
		if (s->broadcast->context[i]->dma_private_bytes < bytes)
			bytes = s->broadcast->context[i]->dma_private_bytes;
	vmm_assert(bytes >= s->command->private_bytes); /* SUB-24 */
	return bytes;
}

/*
 * Has the miniport validate the command, once for all contexts. Its changes to the private data
 * become part of the submission.
 */
static NTSTATUS validate(const struct vmm_submission *s, const struct vmm_dma *dma)
{
	const struct vmm_command_request *r = s->command;
	uint32_t further = s->broadcast ? s->broadcast->count : 0;
	DXGKARG_VALIDATESUBMITCOMMAND args = {
		.Commands = r->commands,
		.CommandLength = r->length,
		.ContextCount = 1 + further,
		.Context = {s->context->kmd_context},
		.pPrivateDriverData = dma->private_data,
		.PrivateDriverDataSize = common_private_bytes(s),
		.UmdPrivateDataSize = r->private_bytes,
	};

	vmm_assert(args.ContextCount <= VMM_ARRAY_LENGTH(args.Context));
	for (uint32_t i = 0; i < further; i++)
		args.Context[1 + i] = s->broadcast->context[i]->kmd_context;
	return vmm_command_validate(s->context->device, s->context->handle, &args);
}

NTSTATUS vmm_fill_for_command(const struct vmm_submission *s, struct vmm_dma *dma,
			      uint32_t *multipass)
{
	const struct vmm_command_request *r = s->command;

	vmm_assert_held(&s->adapter->submit_lock);
	/* SUB-24: copied to the start of the private data; the rest is the miniport's. */
	if (r->private_bytes)
		memcpy(dma->private_data, r->private_data, r->private_bytes);
	dma->commands = r->commands;
	dma->used_bytes = r->length;
	dma->private_used = r->private_bytes;
	dma->patch_count = 0;
	*multipass = 0;
	return r->private_bytes ? validate(s, dma) : STATUS_SUCCESS;
}

/* SUB-26: the private data includes what the miniport has changed there (SUB-25). */
void vmm_fill_further_for_command(const struct vmm_submission *s, const struct vmm_dma *from,
				  struct vmm_dma *to)
{
	vmm_assert_held(&s->adapter->submit_lock);
	vmm_assert(to->context->by_address && to->context != from->context);
	vmm_assert(to->context->dma_private_bytes >= s->command->private_bytes);
	if (s->command->private_bytes)
		memcpy(to->private_data, from->private_data, common_private_bytes(s));
	to->commands = from->commands;
	to->used_bytes = from->used_bytes;
	to->private_used = from->private_used;
	to->patch_count = 0;
}
