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

static vmm_status paging_buffer_add(struct vmm_memory *memory)
{
	struct vmm_paging_buffer *buffer = &memory->buffer[memory->buffer_count];
	uint64_t size = vmm_align_up(memory->caps->paging_buffer_bytes, VMM_PAGE_SIZE);
	vmm_status status;

	if (memory->buffer_count == VMM_PAGING_BUFFERS_MAX)
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
	memory->buffer_count++;
	return VMM_OK;
}

/*
 * SEG-21: paging buffers are addressed through an aperture when the miniport names one. The command that maps a new
 * buffer is the only one in it that runs from its system address; it goes out alone. The buffer is current.
 */
static vmm_status paging_buffer_map(struct vmm_memory *memory)
{
	struct vmm_paging_buffer *buffer = &memory->buffer[memory->current_buffer];
	struct vmm_dma_place place;

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

static vmm_status paging_buffer_use(struct vmm_memory *memory, uint32_t index)
{
	memory->current_buffer = index;
	memory->start = memory->write = 0; /* DMA-06: a new buffer starts on a page */
	memory->private_start = memory->private_write = 0;
	return paging_buffer_map(memory);
}

/* One more buffer, current. Without room for it nothing has changed. */
static vmm_status paging_buffer_grow(struct vmm_memory *memory)
{
	uint32_t before = memory->current_buffer;
	vmm_status status = paging_buffer_add(memory);

	if (!vmm_ok(status))
		return status;
	status = paging_buffer_use(memory, memory->buffer_count - 1);
	if (status == VMM_NO_VIDEO_MEMORY || status == VMM_NO_MEMORY) {
		paging_buffer_free(memory, &memory->buffer[--memory->buffer_count]);
		memory->current_buffer = before;
	}
	return status;
}

/* Makes a buffer whose packets are complete current. Nothing may be pending. */
static vmm_status paging_buffer_next(struct vmm_memory *memory)
{
	uint32_t oldest = (memory->current_buffer + 1) % memory->buffer_count;
	vmm_status status;

	vmm_assert(!memory->pending);
	for (uint32_t i = 1; i <= memory->buffer_count; i++) {
		uint32_t candidate = (memory->current_buffer + i) % memory->buffer_count;

		if (vmm_timeline_done(memory->adapter, memory->adapter->paging_timeline,
				      memory->buffer[candidate].last_sequence))
			return paging_buffer_use(memory, candidate);
	}
	status = paging_buffer_grow(memory);
	if (status != VMM_NO_MEMORY && status != VMM_NO_VIDEO_MEMORY)
		return status;
	status = memory->engine->wait_locked(memory->adapter, memory->adapter->paging_timeline,
					     memory->buffer[oldest].last_sequence,
					     VIDMM_WAIT_PAGING_BUFFER);
	return vmm_ok(status) ? paging_buffer_use(memory, oldest) : status;
}

uint64_t vmm_memory_flush_locked(struct vmm_adapter *adapter)
{
	struct vmm_memory *memory = adapter->memory;
	struct vmm_paging_buffer *buffer = &memory->buffer[memory->current_buffer];

	if (!memory->pending || memory->resetting)
		return vmm_paging_sequence(memory);
	struct vmm_paging_portion portion = {
		.segment = buffer->segment,
		.address = buffer->address,
		.cpu = buffer->backing.address,
		.size_bytes = memory->caps->paging_buffer_bytes,
		.start = memory->start,
		.end = memory->write,
		.private_data = buffer->private_data,
		.private_bytes = memory->caps->paging_private_bytes,
		.private_start = memory->private_start,
		.private_end = memory->private_write,
		.synchronous = memory->synchronous,
	};
	buffer->last_sequence = adapter->memory->engine->submit_paging(adapter, &portion);
	memory->start = memory->write;
	memory->private_start = memory->private_write;
	memory->pending = memory->synchronous = false;
	return buffer->last_sequence;
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
 * Has the miniport write one operation (PAG-07, PAG-08). The instance, if any, is idle in the sense of the operation: the
 * callers only page what no prepared packet uses, so a BUSY answer is repeated once with AllocationIsIdle.
 */
static vmm_status paging_build(struct vmm_memory *memory, DXGKARG_BUILDPAGINGBUFFER *args,
			       UINT *idle_flag, UINT idle_bit)
{
	struct vmm_instance *operand = memory->operand;

	memory->operand = NULL;
	args->MultipassOffset = 0;
	for (;;) {
		struct vmm_paging_buffer *buffer = &memory->buffer[memory->current_buffer];
		bool whole = memory->write == 0; /* what a whole buffer has no room for, none has */

		args->pDmaBuffer = buffer->backing.address + memory->write;
		args->DmaSize = memory->caps->paging_buffer_bytes - memory->write;
		args->pDmaBufferPrivateData =
			buffer->private_data ? (char *)buffer->private_data + memory->private_write
					     : NULL;
		args->DmaBufferPrivateDataSize =
			memory->caps->paging_private_bytes - memory->private_write;
		NTSTATUS status = vmm_port_build_paging_buffer(memory->adapter->port, args);
		uint32_t written = (uint32_t)((char *)args->pDmaBuffer - buffer->backing.address) -
				   memory->write;

		if (status == VMM_DEVICE_REMOVED)
			return status;
		if (written) {
			memory->pending = true;
			note_operand(memory, operand);
			memory->write += written;
			if (buffer->private_data)
				memory->private_write =
					(uint32_t)((char *)args->pDmaBufferPrivateData -
						   (char *)buffer->private_data);
		}
		if (NT_SUCCESS(status))
			return VMM_OK;
		if (status == STATUS_GRAPHICS_ALLOCATION_BUSY && idle_flag &&
		    !(*idle_flag & idle_bit)) {
			*idle_flag |= idle_bit;
			continue;
		}
		if (status != STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER || (whole && !written)) {
			paging_fatal(memory, args->Operation, status);
			return VMM_DEVICE_REMOVED;
		}
		if (memory->resetting) { /* nobody will execute what is in it */
			memory->write = memory->private_write = 0;
			continue;
		}
		vmm_memory_flush_locked(memory->adapter);
		vmm_status next = paging_buffer_next(memory);
		if (!vmm_ok(next))
			return next;
	}
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

/* PAG-26: physical from 2.0 on, too; adapters with GPU virtual addresses do not start. */
vmm_status vmm_paging_transfer(struct vmm_memory *memory, struct vmm_instance *instance, bool in)
{
	return vmm_paging_transfer_part(memory, instance, in, 0, instance->allocation->size_bytes);
}

vmm_status vmm_paging_transfer_part(struct vmm_memory *memory, struct vmm_instance *instance,
				    bool in, uint64_t offset, uint64_t size)
{
	DXGKARG_BUILDPAGINGBUFFER args = {.Operation = DXGK_OPERATION_TRANSFER};
	uint64_t address = gpu_address(memory, instance->segment, instance->offset);
	vmm_status status;

	args.Transfer.hAllocation = instance->allocation->kmd_allocation;
	args.Transfer.TransferSize = size;
	args.Transfer.TransferOffset = (UINT)offset; /* an MDL describes less than 4 GiB */
	args.Transfer.MdlOffset = (UINT)(offset >> VMM_PAGE_SHIFT);
	/* PAG-03: one sub-transfer is the whole one. PAG-04: segment id 0 selects the MDL side. */
	args.Transfer.Flags.TransferStart = 1;
	args.Transfer.Flags.TransferEnd = 1;
	args.Transfer.Flags.Value |= conversion(instance, in);
	if (in) {
		args.Transfer.Source.pMdl = instance->backing.mdl;
		args.Transfer.Destination.SegmentId = instance->segment;
		args.Transfer.Destination.SegmentAddress.QuadPart = (LONGLONG)address;
	} else {
		args.Transfer.Source.SegmentId = instance->segment;
		args.Transfer.Source.SegmentAddress.QuadPart = (LONGLONG)address;
		args.Transfer.Destination.pMdl = instance->backing.mdl;
	}
	memory->operand = instance;
	status = paging_build(memory, &args, &args.Transfer.Flags.Value, 0x4);
	if (!vmm_ok(status))
		return status;
	if (in)
		memory->figures.paged_in_bytes += size;
	else
		memory->figures.paged_out_bytes += size;
	paging_event(memory, instance, VIDMM_PAGING_TRANSFER, size,
		     (uint32_t[2]){in ? 0 : instance->segment, in ? instance->segment : 0});
	return VMM_OK;
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
	memory->operand = instance;
	vmm_status status = paging_build(memory, &args, &args.SpecialLockTransfer.Flags.Value, 0x4);
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

vmm_status vmm_paging_fill(struct vmm_memory *memory, struct vmm_instance *instance)
{
	DXGKARG_BUILDPAGINGBUFFER args = {.Operation = DXGK_OPERATION_FILL};
	uint64_t size = instance->allocation->size_bytes;

	/* PAG-05, Q-14: the first content of a memory segment is a fill with zero, so that nothing of a former owner shows. */
	args.Fill.hAllocation = instance->allocation->kmd_allocation;
	args.Fill.FillSize = size;
	args.Fill.Destination.SegmentId = instance->segment;
	args.Fill.Destination.SegmentAddress.QuadPart =
		(LONGLONG)gpu_address(memory, instance->segment, instance->offset);
	memory->operand = instance;
	vmm_status status = paging_build(memory, &args, NULL, 0);
	if (!vmm_ok(status))
		return status;
	memory->figures.filled_bytes += size;
	paging_event(memory, instance, VIDMM_PAGING_FILL, size,
		     (uint32_t[2]){0, instance->segment});
	return VMM_OK;
}

vmm_status vmm_paging_discard(struct vmm_memory *memory, struct vmm_instance *instance)
{
	DXGKARG_BUILDPAGINGBUFFER args = {.Operation = DXGK_OPERATION_DISCARD_CONTENT};

	args.DiscardContent.hAllocation = instance->allocation->kmd_allocation;
	args.DiscardContent.SegmentId = instance->segment;
	args.DiscardContent.SegmentAddress.QuadPart =
		(LONGLONG)gpu_address(memory, instance->segment, instance->offset);
	memory->operand = instance;
	vmm_status status = paging_build(memory, &args, &args.DiscardContent.Flags.Value, 0x1);
	if (!vmm_ok(status))
		return status;
	paging_event(memory, instance, VIDMM_PAGING_DISCARD_CONTENT,
		     instance->allocation->size_bytes, (uint32_t[2]){instance->segment, 0});
	return VMM_OK;
}

vmm_status vmm_paging_move(struct vmm_memory *memory, struct vmm_instance *instance, uint64_t to)
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
	memory->operand = instance;
	vmm_status status = paging_build(memory, &args, &args.Transfer.Flags.Value, 0x4);
	if (!vmm_ok(status))
		return status;
	paging_event(memory, instance, VIDMM_PAGING_TRANSFER, size,
		     (uint32_t[2]){instance->segment, instance->segment});
	return VMM_OK;
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
	memory->operand = instance;
	status = paging_build(memory, &args, NULL, 0);
	if (!vmm_ok(status))
		return status;
	instance->announced = resident;
	paging_event(
		memory, instance, VIDMM_PAGING_NOTIFY_RESIDENCY, instance->allocation->size_bytes,
		(uint32_t[2]){resident ? 0 : instance->segment, resident ? instance->segment : 0});
	return VMM_OK;
}

vmm_status vmm_paging_report_lost(struct vmm_memory *memory, struct vmm_instance *instance)
{
	DXGKARG_BUILDPAGINGBUFFER args = {.Operation = DXGK_OPERATION_TRANSFER};

	if (vmm_unlikely(instance->allocation->gone)) /* to whom? (ALF-37) */
		return VMM_OK;
	args.Transfer.hAllocation = instance->allocation->kmd_allocation;
	args.Transfer.Flags.TransferStart = 1;
	args.Transfer.Flags.TransferEnd = 1;
	args.Transfer.Source.SegmentId = instance->segment;
	args.Transfer.Source.SegmentAddress.QuadPart =
		(LONGLONG)gpu_address(memory, instance->segment, instance->offset);
	vmm_status status = paging_build(memory, &args, &args.Transfer.Flags.Value, 0x4);
	if (vmm_ok(status))
		paging_event(memory, instance, VIDMM_PAGING_TRANSFER, 0,
			     (uint32_t[2]){instance->segment, 0});
	return status;
}

static bool map_coherent(struct vmm_memory *memory, uint32_t segment, uint32_t flags)
{
	/* PAG-10: only a Cached allocation in a cache-coherent aperture. */
	return (flags & 0x4) && vmm_memory_segment(memory, segment)->port->flags.CacheCoherent;
}

static vmm_status map(struct vmm_memory *memory, struct vmm_instance *instance, uint32_t segment,
		      uint64_t offset)
{
	DXGKARG_BUILDPAGINGBUFFER args = {.Operation = DXGK_OPERATION_MAP_APERTURE_SEGMENT};
	uint64_t size = instance->allocation->size_bytes;

	args.MapApertureSegment.hDevice = instance->allocation->kmd_device;
	args.MapApertureSegment.hAllocation = instance->allocation->kmd_allocation;
	args.MapApertureSegment.SegmentId = segment;
	args.MapApertureSegment.OffsetInPages = offset >> VMM_PAGE_SHIFT;
	args.MapApertureSegment.NumberOfPages = size >> VMM_PAGE_SHIFT;
	args.MapApertureSegment.pMdl = instance->backing.mdl;
	args.MapApertureSegment.Flags.CacheCoherent =
		map_coherent(memory, segment, instance->allocation->flags);
	memory->operand = instance;
	vmm_status status = paging_build(memory, &args, NULL, 0);
	if (vmm_ok(status))
		passage_event(memory, instance, VIDMM_PAGING_MAP_APERTURE,
			      (uint32_t[2]){0, segment}, offset);
	return status;
}

vmm_status vmm_paging_map(struct vmm_memory *memory, struct vmm_instance *instance)
{
	return map(memory, instance, instance->segment, instance->offset);
}

static vmm_status unmap_range(struct vmm_memory *memory, DXGKARG_BUILDPAGINGBUFFER *args,
			      uint32_t segment, uint64_t offset, uint64_t size_bytes)
{
	args->Operation = DXGK_OPERATION_UNMAP_APERTURE_SEGMENT;
	args->UnmapApertureSegment.SegmentId = segment;
	args->UnmapApertureSegment.OffsetInPages = offset >> VMM_PAGE_SHIFT;
	args->UnmapApertureSegment.NumberOfPages = size_bytes >> VMM_PAGE_SHIFT;
	args->UnmapApertureSegment.DummyPage.QuadPart =
		(LONGLONG)vmm_backing_bus_address(memory, &memory->dummy_page);
	return paging_build(memory, args, NULL, 0);
}

vmm_status vmm_paging_unmap_range(struct vmm_memory *memory, uint32_t segment, uint64_t offset,
				  uint64_t size_bytes)
{
	DXGKARG_BUILDPAGINGBUFFER args = {0};

	return unmap_range(memory, &args, segment, offset, size_bytes);
}

static vmm_status unmap(struct vmm_memory *memory, struct vmm_instance *instance, uint32_t segment,
			uint64_t offset)
{
	DXGKARG_BUILDPAGINGBUFFER args = {0};

	if (vmm_unlikely(instance->allocation->gone)) /* it was unmapped before (ALF-37) */
		return VMM_OK;
	args.UnmapApertureSegment.hDevice = instance->allocation->kmd_device;
	args.UnmapApertureSegment.hAllocation = instance->allocation->kmd_allocation;
	memory->operand = instance;
	vmm_status status =
		unmap_range(memory, &args, segment, offset, instance->allocation->size_bytes);
	if (vmm_ok(status))
		passage_event(memory, instance, VIDMM_PAGING_UNMAP_APERTURE,
			      (uint32_t[2]){segment, 0}, offset);
	return status;
}

vmm_status vmm_paging_unmap(struct vmm_memory *memory, struct vmm_instance *instance)
{
	return unmap(memory, instance, instance->segment, instance->offset);
}

static vmm_status transfer_to_aperture(struct vmm_memory *memory, struct vmm_instance *instance,
				       uint32_t aperture, uint64_t offset)
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
	args.Transfer.Destination.SegmentId = aperture;
	args.Transfer.Destination.SegmentAddress.QuadPart =
		(LONGLONG)gpu_address(memory, aperture, offset);
	memory->operand = instance;
	vmm_status status = paging_build(memory, &args, &args.Transfer.Flags.Value, 0x4);
	if (!vmm_ok(status))
		return status;
	memory->figures.paged_out_bytes += size;
	paging_event(memory, instance, VIDMM_PAGING_TRANSFER, size,
		     (uint32_t[2]){instance->segment, aperture});
	return VMM_OK;
}

vmm_status vmm_paging_transfer_through(struct vmm_memory *memory, struct vmm_instance *instance,
				       uint32_t aperture, uint64_t offset)
{
	vmm_status status = map(memory, instance, aperture, offset), moved;

	if (!vmm_ok(status))
		return status;
	moved = transfer_to_aperture(memory, instance, aperture, offset);
	status = unmap(memory, instance, aperture, offset);
	return vmm_ok(moved) ? status : moved;
}

vmm_status vmm_paging_map_buffer(struct vmm_memory *memory, const struct vmm_backing *backing,
				 uint32_t segment, uint64_t offset)
{
	DXGKARG_BUILDPAGINGBUFFER args = {.Operation = DXGK_OPERATION_MAP_APERTURE_SEGMENT};

	/* DMA-05: a DMA buffer is mapped with hAllocation NULL. */
	args.MapApertureSegment.SegmentId = segment;
	args.MapApertureSegment.OffsetInPages = offset >> VMM_PAGE_SHIFT;
	args.MapApertureSegment.NumberOfPages = backing->size_bytes >> VMM_PAGE_SHIFT;
	args.MapApertureSegment.pMdl = backing->mdl;
	return paging_build(memory, &args, NULL, 0);
}

/* PAG-27: what is mapped for the buffers goes like everything else. */
void vmm_paging_forget(struct vmm_memory *memory)
{
	for (uint32_t i = 0; i < memory->buffer_count; i++) {
		struct vmm_paging_buffer *buffer = &memory->buffer[i];

		if (!buffer->segment)
			continue;
		vmm_memory_dma_unmap_locked(memory->adapter, buffer->segment, buffer->range);
		buffer->segment = buffer->range = 0;
		buffer->address = buffer->bus_address;
	}
	memory->current_buffer = 0;
	memory->start = memory->write = 0;
	memory->private_start = memory->private_write = 0;
	memory->synchronous = false;
	memory->operand = NULL;
}

vmm_status vmm_paging_map_current(struct vmm_memory *memory)
{
	return paging_buffer_map(memory);
}

/* The commands that unmap the buffers run, like those that mapped them, from a buffer's system address. */
vmm_status vmm_paging_buffers_unmap(struct vmm_memory *memory)
{
	vmm_status status = VMM_OK;

	vmm_assert(!memory->pending);
	memory->powering_down = true;
	for (uint32_t i = 0; i < memory->buffer_count && vmm_ok(status); i++) {
		struct vmm_paging_buffer *buffer = &memory->buffer[i];
		uint32_t segment = buffer->segment;
		struct vmm_segment *s = segment ? vmm_memory_segment(memory, segment) : NULL;

		if (!s)
			continue;
		buffer->segment = 0;
		buffer->address = buffer->bus_address;
		status = vmm_paging_unmap_range(memory, segment,
						vmm_range_offset(s->heap, buffer->range),
						vmm_range_size(s->heap, buffer->range));
		vmm_memory_flush_locked(memory->adapter);
		vmm_segment_free(memory, s, buffer->range);
	}
	return status;
}

vmm_status vmm_paging_buffers_remap(struct vmm_memory *memory)
{
	memory->powering_down = false;
	return paging_buffer_map(memory);
}

vmm_status vmm_paging_buffers_create(struct vmm_memory *memory)
{
	vmm_status status = vmm_backing_create(memory, VMM_PAGE_SIZE, true, &memory->dummy_page);

	if (vmm_ok(status))
		status = paging_buffer_add(memory);
	return vmm_ok(status) ? paging_buffer_map(memory) : status;
}

void vmm_paging_buffers_destroy(struct vmm_memory *memory)
{
	for (uint32_t i = 0; i < memory->buffer_count; i++) {
		struct vmm_paging_buffer *buffer = &memory->buffer[i];

		/* The adapter has stopped: the mapping went with it. */
		if (buffer->segment)
			vmm_segment_free(memory, vmm_memory_segment(memory, buffer->segment),
					 buffer->range);
		paging_buffer_free(memory, buffer);
	}
	memory->buffer_count = 0;
	vmm_backing_destroy(memory, &memory->dummy_page);
}
