/* SPDX-License-Identifier: MIT */
/*
 * Paging operations: DxgkDdiBuildPagingBuffer writes them, tightly packed (PAG-07), into a small ring of paging
 * buffers; vmm_memory_flush_locked hands what was collected to the GPU as one packet of the paging timeline. The ring
 * grows while its buffers are in flight instead of waiting.
 */
#include "memory/memory_private.h"

#include <string.h>

uint64_t vmm_paging_sequence(const struct vmm_memory *memory)
{
	const struct vmm_adapter *adapter = memory->adapter;

	return atomic_load_explicit(&adapter->timeline[adapter->paging_timeline].queued,
				    memory_order_relaxed) +
	       memory->pending;
}

static vmm_status paging_buffer_add(struct vmm_memory *memory, struct vmm_paging_lane *lane)
{
	struct vmm_paging_buffer *buffer = &lane->buffer[lane->buffer_count];
	uint64_t size = vmm_align_up(memory->caps->paging_buffer_bytes, VMM_PAGE_SIZE);
	vmm_status status;

	if (lane->buffer_count == VMM_PAGING_BUFFERS_MAX)
		return VMM_NO_MEMORY;
	status = vmm_memory_dma_create_locked(memory->adapter, size, &buffer->backing,
					      &buffer->bus_address);
	if (!vmm_ok(status))
		return status;
	buffer->address = buffer->bus_address;
	if (memory->caps->paging_private_bytes) {
		/* SEG-21: zeroed, non-paged, never touched by us; NULL when the miniport asked for none. */
		buffer->private_data = vmm_calloc(1, memory->caps->paging_private_bytes);
		if (!buffer->private_data) {
			vmm_memory_dma_destroy_locked(memory->adapter, &buffer->backing);
			return VMM_NO_MEMORY;
		}
	}
	lane->buffer_count++;
	return VMM_OK;
}

/*
 * SEG-21: paging buffers are addressed through an aperture when the miniport names one. The command that maps a new
 * buffer is the only one in it that runs from its system address; it goes out alone. The buffer is current.
 */
static vmm_status paging_buffer_map(struct vmm_memory *memory, struct vmm_paging_lane *lane)
{
	struct vmm_paging_buffer *buffer = &lane->buffer[lane->current_buffer];
	struct vmm_dma_place place = {.physical = lane->physical};

	if (!memory->caps->paging_buffer_segment || buffer->segment || memory->powering_down)
		return VMM_OK;
	vmm_status status = vmm_dma_map_in_free_space(
		memory, &buffer->backing, 1u << (memory->caps->paging_buffer_segment - 1), &place);
	if (!vmm_ok(status))
		return status;
	vmm_memory_flush_locked(memory->adapter);
	buffer->segment = place.segment;
	buffer->range = place.range;
	buffer->address = place.address;
	return VMM_OK;
}

static void paging_buffer_free(struct vmm_memory *memory, struct vmm_paging_buffer *buffer)
{
	vmm_memory_dma_destroy_locked(memory->adapter, &buffer->backing);
	vmm_free(buffer->private_data);
	memset(buffer, 0, sizeof(*buffer));
}

static vmm_status paging_buffer_use(struct vmm_memory *memory, struct vmm_paging_lane *lane,
				    uint32_t index)
{
	lane->current_buffer = index;
	lane->start = lane->write = 0; /* DMA-06: a new buffer starts on a page */
	lane->private_start = lane->private_write = 0;
	return paging_buffer_map(memory, lane);
}

/* One more buffer, current. Without room for it nothing has changed. */
static vmm_status paging_buffer_grow(struct vmm_memory *memory, struct vmm_paging_lane *lane)
{
	uint32_t before = lane->current_buffer;
	vmm_status status = paging_buffer_add(memory, lane);

	if (!vmm_ok(status))
		return status;
	status = paging_buffer_use(memory, lane, lane->buffer_count - 1);
	if (status == VMM_NO_VIDEO_MEMORY || status == VMM_NO_MEMORY) {
		paging_buffer_free(memory, &lane->buffer[--lane->buffer_count]);
		lane->current_buffer = before;
	}
	return status;
}

/* Makes a buffer whose packets are complete current. Nothing may be pending. */
static vmm_status paging_buffer_next(struct vmm_memory *memory, struct vmm_paging_lane *lane)
{
	uint32_t oldest = (lane->current_buffer + 1) % lane->buffer_count;
	vmm_status status;

	vmm_assert(!memory->pending);
	for (uint32_t i = 1; i <= lane->buffer_count; i++) {
		uint32_t candidate = (lane->current_buffer + i) % lane->buffer_count;

		if (vmm_timeline_done(memory->adapter, memory->adapter->paging_timeline,
				      lane->buffer[candidate].last_sequence))
			return paging_buffer_use(memory, lane, candidate);
	}
	status = paging_buffer_grow(memory, lane);
	if (status != VMM_NO_MEMORY && status != VMM_NO_VIDEO_MEMORY)
		return status;
	status = memory->engine->wait_locked(memory->adapter, memory->adapter->paging_timeline,
					     lane->buffer[oldest].last_sequence,
					     VIDMM_WAIT_PAGING_BUFFER);
	return vmm_ok(status) ? paging_buffer_use(memory, lane, oldest) : status;
}

static struct vmm_paging_portion portion_of(const struct vmm_memory *memory,
					    const struct vmm_paging_lane *lane)
{
	const struct vmm_paging_buffer *buffer = &lane->buffer[lane->current_buffer];

	return (struct vmm_paging_portion){
		.segment = buffer->segment,
		.address = buffer->address,
		.cpu = buffer->backing.address,
		.size_bytes = memory->caps->paging_buffer_bytes,
		.start = lane->start,
		.end = lane->write,
		.private_data = buffer->private_data,
		.private_bytes = memory->caps->paging_private_bytes,
		.private_start = lane->private_start,
		.private_end = lane->private_write,
		.synchronous = memory->synchronous,
		.physical = lane->physical,
		.after = memory->after,
	};
}

uint64_t vmm_memory_flush_locked(struct vmm_adapter *adapter)
{
	struct vmm_memory *memory = adapter->memory;
	struct vmm_paging_portion portions[VMM_LINKS_MAX];
	uint32_t count = 0;

	if (!memory->pending || memory->resetting)
		return vmm_paging_sequence(memory);
	for (uint32_t i = 0; i < memory->lane_count; i++)
		if (memory->lane[i].pending)
			portions[count++] = portion_of(memory, &memory->lane[i]);
	uint64_t sequence = memory->engine->submit_paging(adapter, portions, count);
	for (uint32_t i = 0; i < memory->lane_count; i++) {
		struct vmm_paging_lane *lane = &memory->lane[i];

		if (!lane->pending)
			continue;
		lane->buffer[lane->current_buffer].last_sequence = sequence;
		lane->start = lane->write;
		lane->private_start = lane->private_write;
		lane->pending = false;
	}
	memory->pending = memory->synchronous = false;
	return sequence;
}

static void paging_fatal(struct vmm_memory *memory, uint32_t operation, NTSTATUS status)
{
	vmm_finding(
		memory->adapter->observe, "PAG-09", 0, 0,
		"DxgkDdiBuildPagingBuffer answered operation %u with 0x%08x, which leaves it undone",
		operation, (unsigned)status);
	vmm_port_fatal(memory->adapter->port, VMM_PORT_FATAL_VIDMM, VMM_PORT_VIDMM_PAGING_STATUS,
		       operation, (uint32_t)status);
}

/* PAG-21: the packet runs beside no render packet, and the next operation on the allocation waits for this one, too. */
static void note_operand(struct vmm_memory *memory, struct vmm_instance *operand)
{
	if (vmm_likely(!operand ||
		       !(operand->allocation->flags & VMM_ALLOCATION_SYNCHRONOUS_PAGING)))
		return;
	memory->synchronous = true;
	vmm_mark_used(&operand->active[memory->adapter->paging_timeline],
		      vmm_paging_sequence(memory));
}

/*
 * PAG-08: until the GPU is done with all it has been given that names the instance, or pages it. Whatever waits for this
 * operation itself is not among that.
 */
VMM_COLD static vmm_status wait_until_idle(struct vmm_memory *memory,
					   const struct vmm_instance *operand)
{
	struct vmm_adapter *adapter = memory->adapter;
	vmm_status status = VMM_OK;

	if (!operand || memory->resetting) /* after a reset nothing is with the GPU */
		return VMM_OK;
	vmm_memory_flush_locked(adapter);
	for (uint32_t t = 0; t <= adapter->node_count && vmm_ok(status); t++) {
		uint64_t last = atomic_load_explicit(&operand->queued[t], memory_order_relaxed);

		/* Contexts complete out of turn: the newest that uses it need not be the last. */
		if (!vmm_timeline_quiet(adapter, t, last, true))
			status = memory->engine->wait_locked(adapter, t, last, VIDMM_WAIT_SPACE);
	}
	return status;
}

/* PAG-08: AllocationIsIdle, where the operation has it. */
static UINT *idle_flag(DXGKARG_BUILDPAGINGBUFFER *args, UINT *bit)
{
	*bit = 0x4;
	switch (args->Operation) {
	case DXGK_OPERATION_TRANSFER:
		return &args->Transfer.Flags.Value;
	case DXGK_OPERATION_SPECIAL_LOCK_TRANSFER:
		return &args->SpecialLockTransfer.Flags.Value;
	case DXGK_OPERATION_DISCARD_CONTENT:
		*bit = 0x1;
		return &args->DiscardContent.Flags.Value;
	default:
		return NULL;
	}
}

/* What the miniport wrote is part of the buffer. How many bytes that was. */
static uint32_t take_written(struct vmm_memory *memory, struct vmm_paging_lane *lane,
			     const DXGKARG_BUILDPAGINGBUFFER *args, struct vmm_instance *operand)
{
	const struct vmm_paging_buffer *buffer = &lane->buffer[lane->current_buffer];
	uint32_t written =
		(uint32_t)((char *)args->pDmaBuffer - buffer->backing.address) - lane->write;

	if (!written)
		return 0;
	memory->pending = lane->pending = true;
	note_operand(memory, operand);
	lane->write += written;
	if (buffer->private_data)
		lane->private_write = (uint32_t)((char *)args->pDmaBufferPrivateData -
						 (char *)buffer->private_data);
	return written;
}

static void aim_at_buffer(const struct vmm_memory *memory, const struct vmm_paging_lane *lane,
			  DXGKARG_BUILDPAGINGBUFFER *args)
{
	const struct vmm_paging_buffer *buffer = &lane->buffer[lane->current_buffer];

	args->pDmaBuffer = buffer->backing.address + lane->write;
	args->DmaSize = memory->caps->paging_buffer_bytes - lane->write;
	args->pDmaBufferPrivateData =
		buffer->private_data ? (char *)buffer->private_data + lane->private_write : NULL;
	args->DmaBufferPrivateDataSize = memory->caps->paging_private_bytes - lane->private_write;
	args->hSystemContext = memory->adapter->paging_context[lane->physical];
}

/*
 * Has the miniport write one operation for one adapter (PAG-07, PAG-08). No prepared packet uses the instance, if any, but one may
 * list it; so a BUSY answer is repeated once, with AllocationIsIdle, when none does.
 */
static vmm_status build_on(struct vmm_memory *memory, struct vmm_paging_lane *lane,
			   DXGKARG_BUILDPAGINGBUFFER *args, struct vmm_instance *operand)
{
	UINT idle_bit, *idle = idle_flag(args, &idle_bit);

	args->MultipassOffset = 0;
	for (;;) {
		bool whole = lane->write == 0; /* what a whole buffer has no room for, none has */

		aim_at_buffer(memory, lane, args);
		NTSTATUS status = vmm_port_build_paging_buffer(memory->adapter->port, args);

		if (status == VMM_DEVICE_REMOVED)
			return status;
		uint32_t written = take_written(memory, lane, args, operand);
		if (NT_SUCCESS(status))
			return VMM_OK;
		if (status == STATUS_GRAPHICS_ALLOCATION_BUSY && idle && !(*idle & idle_bit)) {
			vmm_status waited = wait_until_idle(memory, operand);

			if (!vmm_ok(waited))
				return waited;
			*idle |= idle_bit;
			continue;
		}
		if (status != STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER || (whole && !written)) {
			paging_fatal(memory, args->Operation, status);
			return VMM_DEVICE_REMOVED;
		}
		if (memory->resetting) { /* nobody will execute what is in it */
			lane->write = lane->private_write = 0;
			continue;
		}
		/* The other adapters' part of the operation follows in a later packet: nobody waits for one of them alone. */
		vmm_memory_flush_locked(memory->adapter);
		vmm_status next = paging_buffer_next(memory, lane);
		if (!vmm_ok(next))
			return next;
	}
}

/* On the lead, where all is that is not of a link. */
static vmm_status build(struct vmm_memory *memory, DXGKARG_BUILDPAGINGBUFFER *args,
			struct vmm_instance *operand)
{
	return build_on(memory, &memory->lane[0], args, operand);
}

vmm_status vmm_paging_build(struct vmm_memory *memory, DXGKARG_BUILDPAGINGBUFFER *args)
{
	return build(memory, args, NULL);
}

/* PAG-22, PAG-23: on each adapter that has it. One that fails is the end of the whole link (PAG-09). */
static vmm_status on_each(struct vmm_memory *memory, struct vmm_instance *instance,
			  vmm_status (*one)(struct vmm_memory *, struct vmm_instance *, uint32_t))
{
	uint32_t copies = vmm_link_copies(instance->allocation);
	vmm_status status = VMM_OK;

	for (uint32_t i = 0; i < copies && vmm_ok(status); i++)
		status = one(memory, instance, i);
	return status;
}

static void paging_event(struct vmm_memory *memory, const struct vmm_instance *instance,
			 uint32_t operation, uint64_t bytes, const uint32_t segments[2])
{
	const struct vmm_allocation *a = instance ? instance->allocation : NULL;

	vmm_event(memory->adapter->observe, VIDMM_EVENT_PAGING, a ? a->owner : 0,
		  instance ? instance->handle : 0, operation, bytes, segments[0], segments[1],
		  instance ? instance->offset : 0);
}

/* The same of a place that is not the instance's own. */
static void passage_event(struct vmm_memory *memory, const struct vmm_instance *instance,
			  uint32_t operation, const uint32_t segments[2], uint64_t offset)
{
	const struct vmm_allocation *a = instance->allocation;

	vmm_event(memory->adapter->observe, VIDMM_EVENT_PAGING, a->owner, instance->handle,
		  operation, a->size_bytes, segments[0], segments[1], offset);
}

static uint64_t gpu_address(struct vmm_memory *memory, uint32_t segment, uint64_t offset)
{
	return vmm_memory_segment(memory, segment)->port->gpu_base + offset;
}

/*
 * SWZ-09, SWZ-20, SWZ-22: Swizzle or Unswizzle in DXGK_TRANSFERFLAGS, where the two sides differ in form; that they ever do
 * is for what is flagged Swizzled alone (ALF-18).
 */
static UINT conversion(const struct vmm_instance *instance, bool in)
{
	if (vmm_likely(!instance->linear))
		return 0;
	return in ? 0x1 : 0x2;
}

/* A part of one adapter's copy and store. */
static vmm_status transfer_on(struct vmm_memory *memory, struct vmm_instance *instance,
			      uint32_t physical, bool in, const struct vmm_port_range *part)
{
	DXGKARG_BUILDPAGINGBUFFER args = {.Operation = DXGK_OPERATION_TRANSFER};
	uint64_t address = gpu_address(memory, instance->segment, instance->offset);
	PMDL pages = vmm_link_mdl(instance, physical);
	vmm_status status;

	args.Transfer.hAllocation = instance->allocation->kmd_allocation;
	args.Transfer.TransferSize = part->size_bytes;
	args.Transfer.TransferOffset = (UINT)part->offset; /* an MDL describes less than 4 GiB */
	args.Transfer.MdlOffset = (UINT)(part->offset >> VMM_PAGE_SHIFT);
	/* PAG-03: one sub-transfer is the whole one. PAG-04: segment id 0 selects the MDL side. */
	args.Transfer.Flags.TransferStart = 1;
	args.Transfer.Flags.TransferEnd = 1;
	args.Transfer.Flags.Value |= conversion(instance, in);
	if (in) {
		args.Transfer.Source.pMdl = pages;
		args.Transfer.Destination.SegmentId = instance->segment;
		args.Transfer.Destination.SegmentAddress.QuadPart = (LONGLONG)address;
	} else {
		args.Transfer.Source.SegmentId = instance->segment;
		args.Transfer.Source.SegmentAddress.QuadPart = (LONGLONG)address;
		args.Transfer.Destination.pMdl = pages;
	}
	status = build_on(memory, &memory->lane[physical], &args, instance);
	if (!vmm_ok(status))
		return status;
	if (in)
		memory->figures.paged_in_bytes += part->size_bytes;
	else
		memory->figures.paged_out_bytes += part->size_bytes;
	paging_event(memory, instance, VIDMM_PAGING_TRANSFER, part->size_bytes,
		     (uint32_t[2]){in ? 0 : instance->segment, in ? instance->segment : 0});
	return VMM_OK;
}

/* PAG-26: physical from 2.0 on, too; adapters with GPU virtual addresses do not start. */
vmm_status vmm_paging_transfer(struct vmm_memory *memory, struct vmm_instance *instance, bool in)
{
	return vmm_paging_transfer_part(memory, instance, in, 0,
					vmm_store_bytes(instance->allocation));
}

/* PAG-22: the one store into all copies; out of them the copy that was written last, which is the lead's if none was. */
static vmm_status transfer_mirrored(struct vmm_memory *memory, struct vmm_instance *instance,
				    bool in, const struct vmm_port_range *part)
{
	uint32_t copies = vmm_link_copies(instance->allocation);
	vmm_status status = VMM_OK;

	if (!in)
		return transfer_on(memory, instance, instance->newest, false, part);
	vmm_link_order(memory, instance);
	for (uint32_t i = 0; i < copies && vmm_ok(status); i++)
		status = transfer_on(memory, instance, i, true, part);
	return status;
}

vmm_status vmm_paging_transfer_part(struct vmm_memory *memory, struct vmm_instance *instance,
				    bool in, uint64_t offset, uint64_t size)
{
	uint32_t copies = vmm_link_copies(instance->allocation);
	uint64_t each = instance->allocation->size_bytes, end = offset + size;
	vmm_status status = VMM_OK;

	if (vmm_likely(copies == 1))
		return transfer_on(memory, instance, 0, in, &(struct vmm_port_range){offset, size});
	if (vmm_link_is_mirrored(instance->allocation))
		return transfer_mirrored(memory, instance, in,
					 &(struct vmm_port_range){offset, size});
	/* PAG-23: what of it is in each adapter's store. */
	for (uint32_t i = 0; i < copies && vmm_ok(status); i++) {
		uint64_t from = vmm_max_u64(offset, i * each);
		uint64_t to = vmm_min_u64(end, (i + 1) * each);

		if (from < to)
			status = transfer_on(memory, instance, i, in,
					     &(struct vmm_port_range){from - i * each, to - from});
	}
	return status;
}

vmm_status vmm_paging_special(struct vmm_memory *memory, struct vmm_instance *instance,
			      const struct vmm_alternate *alternate,
			      const struct vmm_backing *pages, bool in)
{
	DXGKARG_BUILDPAGINGBUFFER args = {.Operation = DXGK_OPERATION_SPECIAL_LOCK_TRANSFER};
	uint64_t size = instance->allocation->size_bytes;
	DXGK_TRANSFER_END *system, *place;

	system = in ? &args.SpecialLockTransfer.Source : &args.SpecialLockTransfer.Destination;
	place = in ? &args.SpecialLockTransfer.Destination : &args.SpecialLockTransfer.Source;
	system->pMdl = pages->mdl;
	place->SegmentId = instance->segment;
	place->SegmentAddress.QuadPart =
		(LONGLONG)gpu_address(memory, instance->segment, instance->offset);
	args.SpecialLockTransfer.hAllocation = instance->allocation->kmd_allocation;
	args.SpecialLockTransfer.TransferSize = size;
	args.SpecialLockTransfer.Flags.TransferStart = 1;
	args.SpecialLockTransfer.Flags.TransferEnd = 1;
	args.SpecialLockTransfer.Flags.Value |= conversion(instance, in);
	args.SpecialLockTransfer.SwizzlingRangeId = alternate->range;
	args.SpecialLockTransfer.SwizzlingRangeData = alternate->private_data;
	vmm_status status = build(memory, &args, instance);
	if (!vmm_ok(status))
		return status;
	if (in)
		memory->figures.paged_in_bytes += size;
	else
		memory->figures.paged_out_bytes += size;
	paging_event(memory, instance, VIDMM_PAGING_SPECIAL_LOCK_TRANSFER, size,
		     (uint32_t[2]){in ? 0 : instance->segment, in ? instance->segment : 0});
	return VMM_OK;
}

static vmm_status fill_on(struct vmm_memory *memory, struct vmm_instance *instance,
			  uint32_t physical)
{
	DXGKARG_BUILDPAGINGBUFFER args = {.Operation = DXGK_OPERATION_FILL};
	/* SEG-10: all that it takes there, not what its content has. */
	uint64_t size =
		vmm_unlikely(
			vmm_memory_segment(memory, instance->segment)->port->flags.PitchAlignment)
			? instance->allocation->pitch_bytes
			: instance->allocation->size_bytes;

	/* PAG-05, Q-14: the first content of a memory segment is a fill with zero, so that nothing of a former owner shows. */
	args.Fill.hAllocation = instance->allocation->kmd_allocation;
	args.Fill.FillSize = size;
	args.Fill.Destination.SegmentId = instance->segment;
	args.Fill.Destination.SegmentAddress.QuadPart =
		(LONGLONG)gpu_address(memory, instance->segment, instance->offset);
	vmm_status status = build_on(memory, &memory->lane[physical], &args, instance);
	if (!vmm_ok(status))
		return status;
	memory->figures.filled_bytes += size;
	paging_event(memory, instance, VIDMM_PAGING_FILL, size,
		     (uint32_t[2]){0, instance->segment});
	return VMM_OK;
}

vmm_status vmm_paging_fill(struct vmm_memory *memory, struct vmm_instance *instance)
{
	return on_each(memory, instance, fill_on);
}

vmm_status vmm_paging_init_context(struct vmm_memory *memory, struct vmm_instance *instance,
				   void *address)
{
	DXGKARG_BUILDPAGINGBUFFER args = {.Operation = DXGK_OPERATION_INIT_CONTEXT_RESOURCE};

	args.InitContextResource.hAllocation = instance->allocation->kmd_allocation;
	args.InitContextResource.Destination.SegmentId = instance->segment;
	if (instance->segment)
		args.InitContextResource.Destination.SegmentAddress.QuadPart =
			(LONGLONG)gpu_address(memory, instance->segment, instance->offset);
	else
		args.InitContextResource.Destination.pMdl = instance->backing.mdl;
	args.InitContextResource.Destination.VirtualAddress = address;
	vmm_status status = build(memory, &args, instance);
	if (vmm_ok(status))
		paging_event(memory, instance, VIDMM_PAGING_INIT_CONTEXT_RESOURCE,
			     instance->allocation->size_bytes, (uint32_t[2]){0, instance->segment});
	return status;
}

static vmm_status discard_on(struct vmm_memory *memory, struct vmm_instance *instance,
			     uint32_t physical)
{
	DXGKARG_BUILDPAGINGBUFFER args = {.Operation = DXGK_OPERATION_DISCARD_CONTENT};

	args.DiscardContent.hAllocation = instance->allocation->kmd_allocation;
	args.DiscardContent.SegmentId = instance->segment;
	args.DiscardContent.SegmentAddress.QuadPart =
		(LONGLONG)gpu_address(memory, instance->segment, instance->offset);
	vmm_status status = build_on(memory, &memory->lane[physical], &args, instance);
	if (!vmm_ok(status))
		return status;
	paging_event(memory, instance, VIDMM_PAGING_DISCARD_CONTENT,
		     instance->allocation->size_bytes, (uint32_t[2]){instance->segment, 0});
	return VMM_OK;
}

vmm_status vmm_paging_discard(struct vmm_memory *memory, struct vmm_instance *instance)
{
	return on_each(memory, instance, discard_on);
}

vmm_status vmm_paging_leave_mirrors(struct vmm_memory *memory, struct vmm_instance *instance)
{
	uint32_t copies = vmm_link_copies(instance->allocation);
	vmm_status status = VMM_OK;

	if (vmm_likely(!vmm_link_is_mirrored(instance->allocation)))
		return VMM_OK;
	for (uint32_t i = 0; i < copies && vmm_ok(status); i++)
		if (i != instance->newest)
			status = discard_on(memory, instance, i);
	return status;
}

static vmm_status move_on(struct vmm_memory *memory, struct vmm_instance *instance,
			  uint32_t physical, uint64_t to)
{
	DXGKARG_BUILDPAGINGBUFFER args = {.Operation = DXGK_OPERATION_TRANSFER};
	uint64_t size = instance->allocation->size_bytes;

	args.Transfer.hAllocation = instance->allocation->kmd_allocation;
	args.Transfer.TransferSize = size;
	args.Transfer.Flags.TransferStart = 1;
	args.Transfer.Flags.TransferEnd = 1;
	args.Transfer.Source.SegmentId = args.Transfer.Destination.SegmentId = instance->segment;
	args.Transfer.Source.SegmentAddress.QuadPart =
		(LONGLONG)gpu_address(memory, instance->segment, instance->offset);
	args.Transfer.Destination.SegmentAddress.QuadPart =
		(LONGLONG)gpu_address(memory, instance->segment, to);
	vmm_status status = build_on(memory, &memory->lane[physical], &args, instance);
	if (!vmm_ok(status))
		return status;
	paging_event(memory, instance, VIDMM_PAGING_TRANSFER, size,
		     (uint32_t[2]){instance->segment, instance->segment});
	return VMM_OK;
}

vmm_status vmm_paging_move(struct vmm_memory *memory, struct vmm_instance *instance, uint64_t to)
{
	uint32_t copies = vmm_link_copies(instance->allocation);
	vmm_status status = VMM_OK;

	for (uint32_t i = 0; i < copies && vmm_ok(status); i++)
		status = move_on(memory, instance, i, to);
	return status;
}

vmm_status vmm_paging_notify(struct vmm_memory *memory, struct vmm_instance *instance,
			     bool resident)
{
	DXGKARG_BUILDPAGINGBUFFER args = {.Operation = DXGK_OPERATION_NOTIFY_RESIDENCY};
	vmm_status status;

	if (vmm_likely(!memory->caps->wddm2) ||
	    !(instance->allocation->flags & VMM_ALLOCATION_NOTIFY_RESIDENCY) ||
	    instance->announced == resident)
		return VMM_OK;
	args.NotifyResidency.hAllocation = instance->allocation->kmd_allocation;
	args.NotifyResidency.Resident = resident;
	if (resident) { /* out of it: (0, 0) */
		args.NotifyResidency.PhysicalAddress.SegmentId = instance->segment;
		args.NotifyResidency.PhysicalAddress.SegmentOffset = instance->offset;
	}
	status = build(memory, &args, instance);
	if (!vmm_ok(status))
		return status;
	instance->announced = resident;
	paging_event(
		memory, instance, VIDMM_PAGING_NOTIFY_RESIDENCY, instance->allocation->size_bytes,
		(uint32_t[2]){resident ? 0 : instance->segment, resident ? instance->segment : 0});
	return VMM_OK;
}

vmm_status vmm_paging_notify_alloc(struct vmm_memory *memory, struct vmm_instance *instance,
				   const struct vmm_paging_part *part)
{
	DXGKARG_BUILDPAGINGBUFFER args = {.Operation = DXGK_OPERATION_NOTIFY_ALLOC};

	args.NotifyAlloc.hAllocation = instance->allocation->kmd_allocation;
	args.NotifyAlloc.Flags.Eviction = 1;
	args.NotifyAlloc.OffsetInBytes = part->offset;
	args.NotifyAlloc.SizeInBytes = part->size_bytes;
	vmm_status status = build(memory, &args, instance);
	if (vmm_ok(status))
		paging_event(memory, instance, VIDMM_PAGING_NOTIFY_ALLOC, part->size_bytes,
			     (uint32_t[2]){part->segment, 0});
	return status;
}

static vmm_status report_lost_on(struct vmm_memory *memory, struct vmm_instance *instance,
				 uint32_t physical)
{
	DXGKARG_BUILDPAGINGBUFFER args = {.Operation = DXGK_OPERATION_TRANSFER};

	args.Transfer.hAllocation = instance->allocation->kmd_allocation;
	args.Transfer.Flags.TransferStart = 1;
	args.Transfer.Flags.TransferEnd = 1;
	args.Transfer.Source.SegmentId = instance->segment;
	args.Transfer.Source.SegmentAddress.QuadPart =
		(LONGLONG)gpu_address(memory, instance->segment, instance->offset);
	vmm_status status = build_on(memory, &memory->lane[physical], &args, instance);
	if (vmm_ok(status))
		paging_event(memory, instance, VIDMM_PAGING_TRANSFER, 0,
			     (uint32_t[2]){instance->segment, 0});
	return status;
}

vmm_status vmm_paging_report_lost(struct vmm_memory *memory, struct vmm_instance *instance)
{
	if (vmm_unlikely(instance->allocation->gone)) /* to whom? (ALF-37) */
		return VMM_OK;
	return on_each(memory, instance, report_lost_on);
}

static bool map_coherent(struct vmm_memory *memory, uint32_t segment, uint32_t flags)
{
	/* PAG-10: only a Cached allocation in a cache-coherent aperture. */
	return (flags & 0x4) && vmm_memory_segment(memory, segment)->port->flags.CacheCoherent;
}

/* From 2.9 on a miniport may ask for a list of addresses instead of an MDL (ALF-29). NULL instance: a DMA buffer (DMA-05). */
static DXGKARG_BUILDPAGINGBUFFER map_operation(struct vmm_memory *memory,
					       const struct vmm_instance *instance, void *mdl,
					       const struct vmm_paging_part *part)
{
	DXGKARG_BUILDPAGINGBUFFER args = {.Operation = DXGK_OPERATION_MAP_APERTURE_SEGMENT};
	const struct vmm_allocation *a = instance ? instance->allocation : NULL;
	bool coherent = a && map_coherent(memory, part->segment, a->flags);

	if (vmm_unlikely(memory->caps->map_aperture2)) {
		args.Operation = DXGK_OPERATION_MAP_APERTURE_SEGMENT2;
		args.MapApertureSegment2.hDevice = a ? a->kmd_device : NULL;
		args.MapApertureSegment2.hAllocation = a ? a->kmd_allocation : NULL;
		args.MapApertureSegment2.SegmentId = part->segment;
		args.MapApertureSegment2.OffsetInPages = part->at >> VMM_PAGE_SHIFT;
		args.MapApertureSegment2.NumberOfPages = part->size_bytes >> VMM_PAGE_SHIFT;
		vmm_port_describe_pages(mdl, &args.MapApertureSegment2.Adl);
		args.MapApertureSegment2.AdlOffset = (ULONG)(part->offset >> VMM_PAGE_SHIFT);
		args.MapApertureSegment2.Flags.CacheCoherent = coherent;
		if (a && (a->flags & VMM_ALLOCATION_MAP_CPU_VISIBLE))
			args.MapApertureSegment2.CpuVisibleAddress =
				instance->backing.address + part->offset;
		return args;
	}
	args.MapApertureSegment.hDevice = a ? a->kmd_device : NULL;
	args.MapApertureSegment.hAllocation = a ? a->kmd_allocation : NULL;
	args.MapApertureSegment.SegmentId = part->segment;
	args.MapApertureSegment.OffsetInPages = part->at >> VMM_PAGE_SHIFT;
	args.MapApertureSegment.NumberOfPages = part->size_bytes >> VMM_PAGE_SHIFT;
	args.MapApertureSegment.pMdl = mdl;
	args.MapApertureSegment.MdlOffset = (ULONG)(part->offset >> VMM_PAGE_SHIFT);
	args.MapApertureSegment.Flags.CacheCoherent = coherent;
	return args;
}

vmm_status vmm_paging_map_part(struct vmm_memory *memory, struct vmm_instance *instance,
			       const struct vmm_paging_part *part)
{
	DXGKARG_BUILDPAGINGBUFFER args =
		map_operation(memory, instance, vmm_link_mdl(instance, part->physical), part);

	vmm_status status = build_on(memory, &memory->lane[part->physical], &args, instance);
	if (vmm_ok(status))
		passage_event(memory, instance, VIDMM_PAGING_MAP_APERTURE,
			      (uint32_t[2]){0, part->segment}, part->at);
	return status;
}

static vmm_status map_on(struct vmm_memory *memory, struct vmm_instance *instance,
			 uint32_t physical)
{
	return vmm_paging_map_part(
		memory, instance,
		&(struct vmm_paging_part){.size_bytes = instance->allocation->size_bytes,
					  .physical = physical,
					  .segment = instance->segment,
					  .at = instance->offset});
}

vmm_status vmm_paging_map(struct vmm_memory *memory, struct vmm_instance *instance)
{
	return on_each(memory, instance, map_on);
}

static vmm_status unmap_range(struct vmm_memory *memory, DXGKARG_BUILDPAGINGBUFFER *args,
			      struct vmm_instance *operand, const struct vmm_paging_part *part)
{
	args->Operation = DXGK_OPERATION_UNMAP_APERTURE_SEGMENT;
	args->UnmapApertureSegment.SegmentId = part->segment;
	args->UnmapApertureSegment.OffsetInPages = part->at >> VMM_PAGE_SHIFT;
	args->UnmapApertureSegment.NumberOfPages = part->size_bytes >> VMM_PAGE_SHIFT;
	args->UnmapApertureSegment.DummyPage.QuadPart =
		(LONGLONG)vmm_backing_bus_address(memory, &memory->dummy_page);
	return build_on(memory, &memory->lane[part->physical], args, operand);
}

vmm_status vmm_paging_unmap_range(struct vmm_memory *memory, uint32_t physical, uint32_t segment,
				  uint64_t offset, uint64_t size_bytes)
{
	DXGKARG_BUILDPAGINGBUFFER args = {0};

	return unmap_range(memory, &args, NULL,
			   &(struct vmm_paging_part){.size_bytes = size_bytes,
						     .physical = physical,
						     .segment = segment,
						     .at = offset});
}

vmm_status vmm_paging_unmap_part(struct vmm_memory *memory, struct vmm_instance *instance,
				 const struct vmm_paging_part *part)
{
	DXGKARG_BUILDPAGINGBUFFER args = {0};

	args.UnmapApertureSegment.hDevice = instance->allocation->kmd_device;
	args.UnmapApertureSegment.hAllocation = instance->allocation->kmd_allocation;
	vmm_status status = unmap_range(memory, &args, instance, part);
	if (vmm_ok(status))
		passage_event(memory, instance, VIDMM_PAGING_UNMAP_APERTURE,
			      (uint32_t[2]){part->segment, 0}, part->at);
	return status;
}

static vmm_status unmap_on(struct vmm_memory *memory, struct vmm_instance *instance,
			   uint32_t physical)
{
	return vmm_paging_unmap_part(
		memory, instance,
		&(struct vmm_paging_part){.size_bytes = instance->allocation->size_bytes,
					  .physical = physical,
					  .segment = instance->segment,
					  .at = instance->offset});
}

vmm_status vmm_paging_unmap(struct vmm_memory *memory, struct vmm_instance *instance)
{
	if (vmm_unlikely(instance->allocation->gone)) /* it was unmapped before (ALF-37) */
		return VMM_OK;
	return on_each(memory, instance, unmap_on);
}

static vmm_status transfer_to_aperture(struct vmm_memory *memory, struct vmm_instance *instance,
				       const struct vmm_paging_part *to)
{
	DXGKARG_BUILDPAGINGBUFFER args = {.Operation = DXGK_OPERATION_TRANSFER};
	uint64_t size = instance->allocation->size_bytes;

	args.Transfer.hAllocation = instance->allocation->kmd_allocation;
	args.Transfer.TransferSize = size;
	args.Transfer.Flags.TransferStart = 1;
	args.Transfer.Flags.TransferEnd = 1;
	args.Transfer.Flags.Value |= conversion(instance, false);
	args.Transfer.Source.SegmentId = instance->segment;
	args.Transfer.Source.SegmentAddress.QuadPart =
		(LONGLONG)gpu_address(memory, instance->segment, instance->offset);
	args.Transfer.Destination.SegmentId = to->segment;
	args.Transfer.Destination.SegmentAddress.QuadPart =
		(LONGLONG)gpu_address(memory, to->segment, to->at);
	vmm_status status = build_on(memory, &memory->lane[to->physical], &args, instance);
	if (!vmm_ok(status))
		return status;
	memory->figures.paged_out_bytes += size;
	paging_event(memory, instance, VIDMM_PAGING_TRANSFER, size,
		     (uint32_t[2]){instance->segment, to->segment});
	return VMM_OK;
}

static vmm_status pass(struct vmm_memory *memory, struct vmm_instance *instance,
		       const struct vmm_paging_part *by)
{
	vmm_status status = vmm_paging_map_part(memory, instance, by), moved;

	if (!vmm_ok(status))
		return status;
	moved = transfer_to_aperture(memory, instance, by);
	status = vmm_paging_unmap_part(memory, instance, by);
	return vmm_ok(moved) ? status : moved;
}

vmm_status vmm_paging_transfer_through(struct vmm_memory *memory, struct vmm_instance *instance,
				       uint32_t aperture, uint64_t offset)
{
	uint32_t copies = vmm_link_copies(instance->allocation);
	bool mirrored = vmm_link_is_mirrored(instance->allocation);
	vmm_status status = VMM_OK;

	for (uint32_t i = 0; i < copies && vmm_ok(status); i++)
		if (!mirrored || i == instance->newest)
			status = pass(memory, instance,
				      &(struct vmm_paging_part){
					      .size_bytes = instance->allocation->size_bytes,
					      .physical = i,
					      .segment = aperture,
					      .at = offset});
	return status;
}

vmm_status vmm_paging_map_buffer(struct vmm_memory *memory, uint32_t physical,
				 const struct vmm_backing *backing, uint32_t segment,
				 uint64_t offset)
{
	const struct vmm_paging_part part = {
		.size_bytes = backing->size_bytes, .segment = segment, .at = offset};
	DXGKARG_BUILDPAGINGBUFFER args = map_operation(memory, NULL, backing->mdl, &part);

	return build_on(memory, &memory->lane[physical], &args, NULL);
}

static void forget_lane(struct vmm_memory *memory, struct vmm_paging_lane *lane)
{
	for (uint32_t i = 0; i < lane->buffer_count; i++) {
		struct vmm_paging_buffer *buffer = &lane->buffer[i];
		const struct vmm_dma_place place = {.physical = lane->physical,
						    .segment = buffer->segment,
						    .range = buffer->range};

		if (!buffer->segment)
			continue;
		vmm_memory_dma_unmap_locked(memory->adapter, &place);
		buffer->segment = buffer->range = 0;
		buffer->address = buffer->bus_address;
	}
	lane->current_buffer = 0;
	lane->start = lane->write = 0;
	lane->private_start = lane->private_write = 0;
	lane->pending = false;
}

/* PAG-27: what is mapped for the buffers goes like everything else. */
void vmm_paging_forget(struct vmm_memory *memory)
{
	for (uint32_t i = 0; i < memory->lane_count; i++)
		forget_lane(memory, &memory->lane[i]);
	memory->synchronous = false;
	memory->after = 0;
}

vmm_status vmm_paging_map_current(struct vmm_memory *memory)
{
	vmm_status status = VMM_OK;

	for (uint32_t i = 0; i < memory->lane_count; i++) {
		vmm_status mapped = paging_buffer_map(memory, &memory->lane[i]);

		if (!vmm_ok(mapped))
			status = mapped;
	}
	return status;
}

static vmm_status unmap_buffer(struct vmm_memory *memory, uint32_t physical,
			       struct vmm_paging_buffer *buffer)
{
	struct vmm_segment *s = vmm_memory_segment(memory, buffer->segment);
	uint32_t segment = buffer->segment;

	buffer->segment = 0;
	buffer->address = buffer->bus_address;
	vmm_status status = vmm_paging_unmap_range(memory, physical, segment,
						   vmm_range_offset(s->heap, buffer->range),
						   vmm_range_size(s->heap, buffer->range));
	vmm_memory_flush_locked(memory->adapter);
	vmm_segment_free(memory, s, buffer->range);
	return status;
}

/* The commands that unmap the buffers run, like those that mapped them, from a buffer's system address. */
vmm_status vmm_paging_buffers_unmap(struct vmm_memory *memory)
{
	vmm_status status = VMM_OK;

	vmm_assert(!memory->pending);
	memory->powering_down = true;
	for (uint32_t l = 0; l < memory->lane_count; l++) {
		struct vmm_paging_lane *lane = &memory->lane[l];

		for (uint32_t i = 0; i < lane->buffer_count && vmm_ok(status); i++)
			if (lane->buffer[i].segment)
				status = unmap_buffer(memory, l, &lane->buffer[i]);
	}
	return status;
}

vmm_status vmm_paging_buffers_remap(struct vmm_memory *memory)
{
	memory->powering_down = false;
	return vmm_paging_map_current(memory);
}

vmm_status vmm_paging_buffers_create(struct vmm_memory *memory)
{
	vmm_status status = vmm_backing_create(memory, VMM_PAGE_SIZE, true, &memory->dummy_page);

	while (vmm_ok(status) && memory->lane_count < memory->adapter->physical_adapters) {
		struct vmm_paging_lane *lane = &memory->lane[memory->lane_count];

		lane->physical = memory->lane_count++;
		status = paging_buffer_add(memory, lane);
		if (vmm_ok(status))
			status = paging_buffer_map(memory, lane);
	}
	return status;
}

static void destroy_lane(struct vmm_memory *memory, struct vmm_paging_lane *lane)
{
	for (uint32_t i = 0; i < lane->buffer_count; i++) {
		struct vmm_paging_buffer *buffer = &lane->buffer[i];

		/* The adapter has stopped: the mapping went with it. */
		if (buffer->segment)
			vmm_segment_free(memory, vmm_memory_segment(memory, buffer->segment),
					 buffer->range);
		paging_buffer_free(memory, buffer);
	}
	lane->buffer_count = 0;
}

void vmm_paging_buffers_destroy(struct vmm_memory *memory)
{
	for (uint32_t i = 0; i < memory->lane_count; i++)
		destroy_lane(memory, &memory->lane[i]);
	vmm_backing_destroy(memory, &memory->dummy_page);
}
