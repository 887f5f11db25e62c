/* SPDX-License-Identifier: MIT */
/*
 * Paging operations. DxgkDdiBuildPagingBuffer writes their commands, tightly packed (PAG-07), into
 * the current paging buffer of a lane: a small ring of buffers per physical adapter.
 * vmm_memory_flush_locked submits the pending commands of all lanes as one packet of the paging
 * timeline.
 *
 * If all buffers of a ring are in flight, the ring grows. Only at its limit does a thread wait for
 * a buffer.
 */
#include "memory/state/state.h"
#include "memory/store/store.h"
#include "memory/transfer/paging.h"

#include <string.h>

static void paging_fatal(struct vmm_memory *memory, uint32_t operation, NTSTATUS status)
{
	vmm_finding(memory->adapter->observe, "PAG-09", 0, 0,
		    "DxgkDdiBuildPagingBuffer failed operation %u with 0x%08x; a paging operation "
		    "must not fail",
		    operation, (unsigned)status);
	vmm_port_fatal(memory->adapter->port, VMM_PORT_FATAL_VIDMM, VMM_PORT_VIDMM_PAGING_STATUS,
		       operation, (uint32_t)status);
}

/*
 * SynchronousPaging: no render packet may run beside this packet, and the next operation on the
 * allocation waits for it. (PAG-21)
 */
static void note_synchronous(struct vmm_memory *memory, struct vmm_instance *operand)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_likely(!operand ||
		       !(operand->allocation->flags & VMM_ALLOCATION_SYNCHRONOUS_PAGING)))
		return;
	memory->synchronous = true;
	vmm_mark_used(&operand->active[memory->adapter->paging_timeline],
		      vmm_paging_sequence(memory));
}

/*
 * Waits until the GPU has completed all packets that were given to it and that use or page the
 * instance. Packets that wait for the present operation were not given to the GPU yet. (PAG-08)
 */
VMM_COLD static vmm_status wait_until_idle(struct vmm_memory *memory,
					   const struct vmm_instance *operand)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = memory->adapter;
	vmm_status status = VMM_OK;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (!operand || memory->resetting) /* after a reset the GPU has no packets */
		return VMM_OK;
	vmm_memory_flush_locked(adapter);
	for (uint32_t t = 0; t <= adapter->node_count && vmm_ok(status); t++) {
		uint64_t last = atomic_load_explicit(&operand->queued[t], memory_order_relaxed);

		/*
		 * Contexts complete in any order, so the newest packet that uses it need not
		 * complete last.
		 */
		if (!vmm_timeline_quiet(adapter, t, last, true))
			status = memory->engine->wait_locked(adapter, t, last, VIDMM_WAIT_SPACE);
	}
	return status;
}

/*
 * Returns the word with the AllocationIsIdle flag of the operation, and the bit; NULL: it has none.
 * (PAG-08)
 */
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

/* Adds what the miniport wrote to the pending commands. Returns the number of bytes. */
static uint32_t take_written(struct vmm_memory *memory, struct vmm_paging_lane *lane,
			     const DXGKARG_BUILDPAGINGBUFFER *args, struct vmm_instance *operand)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_paging_buffer *buffer = &lane->buffer[lane->current_buffer];
	uint32_t written =
		(uint32_t)((char *)args->pDmaBuffer - buffer->backing.address) - lane->write;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (!written)
		return 0;
	memory->pending = lane->pending = true;
	note_synchronous(memory, operand);
	lane->write += written;
	if (buffer->private_data)
		lane->private_write = (uint32_t)((char *)args->pDmaBufferPrivateData -
						 (char *)buffer->private_data);
	return written;
}

static void set_target(const struct vmm_memory *memory, const struct vmm_paging_lane *lane,
		       DXGKARG_BUILDPAGINGBUFFER *args) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_paging_buffer *buffer = &lane->buffer[lane->current_buffer];

	vmm_assert_held(&memory->adapter->paging_lock);
	args->pDmaBuffer = buffer->backing.address + lane->write;
	args->DmaSize = memory->caps->paging_buffer_bytes - lane->write;
	args->pDmaBufferPrivateData =
		buffer->private_data ? (char *)buffer->private_data + lane->private_write : NULL;
	args->DmaBufferPrivateDataSize = memory->caps->paging_private_bytes - lane->private_write;
	args->hSystemContext = memory->adapter->paging_context[lane->physical];
}

/*
 * Makes the miniport write one operation for one physical adapter (PAG-07). No prepared packet uses
 * the operand, but a packet may list it. If the miniport answers STATUS_GRAPHICS_ALLOCATION_BUSY,
 * the call is repeated once, with AllocationIsIdle, when no packet lists it any more (PAG-08).
 */
static vmm_status build_on(struct vmm_memory *memory, struct vmm_paging_lane *lane,
			   DXGKARG_BUILDPAGINGBUFFER *args, struct vmm_instance *operand)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	UINT idle_bit, *idle = idle_flag(args, &idle_bit);

	vmm_assert_held(&memory->adapter->paging_lock);
	args->MultipassOffset = 0;
	for (;;) {
		/* an operation that does not fit in a whole buffer never fits */
		bool whole = lane->write == 0;

		set_target(memory, lane, args);
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
		if (memory->resetting) { /* the commands are never executed: overwrite them */
			lane->write = lane->private_write = 0;
			continue;
		}
		/*
		 * The other adapters' part of the operation is in a later packet. No thread waits
		 * for one adapter's part alone.
		 */
		vmm_memory_flush_locked(memory->adapter);
		vmm_status next = vmm_paging_buffer_next(memory, lane);
		if (!vmm_ok(next))
			return next;
	}
}

/* Builds the operation on the lead adapter, which has everything that is not linked. */
static vmm_status build(struct vmm_memory *memory, DXGKARG_BUILDPAGINGBUFFER *args,
			struct vmm_instance *operand) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	return build_on(memory, &memory->lane[0], args, operand);
}

vmm_status vmm_paging_build(struct vmm_memory *memory, DXGKARG_BUILDPAGINGBUFFER *args)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	return build(memory, args, NULL);
}

vmm_status vmm_paging_build_for(struct vmm_memory *memory, DXGKARG_BUILDPAGINGBUFFER *args,
				struct vmm_instance *operand)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	return build(memory, args, operand);
}

vmm_status vmm_paging_execute(struct vmm_memory *memory, DXGKARG_BUILDPAGINGBUFFER *args)
{
	struct vmm_adapter *adapter = memory->adapter;

	vmm_assert_held(&memory->adapter->paging_lock);
	args->hSystemContext = adapter->paging_context[0];
	NTSTATUS status = vmm_port_build_paging_buffer(adapter->port, args);
	if (NT_SUCCESS(status) || status == VMM_DEVICE_REMOVED)
		return status;
	vmm_finding(adapter->observe, "VA-11", 0, 0,
		    "DxgkDdiBuildPagingBuffer returned 0x%08x for operation %u without a paging "
		    "buffer: the page tables of the system paging process are updated at once",
		    (unsigned)status, args->Operation);
	paging_fatal(memory, args->Operation, status);
	return VMM_DEVICE_REMOVED;
}

/* From 2.0 on, with GPU virtual addresses, content moves by virtual address. (PAG-26) */
static bool uses_virtual_addresses(const struct vmm_memory *memory)
{
	return vmm_unlikely(memory->caps->gpummu.supported);
}

/* The pages of the segment's copy. */
static struct vmm_gpu_location location_in_segment(const struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	return (struct vmm_gpu_location){.segment = instance->segment,
					 .page = instance->offset >> VMM_PAGE_SHIFT,
					 .extents = instance->extents};
}

/*
 * Builds an operation on each adapter with a copy (PAG-22, PAG-23). If one fails, the whole link is
 * removed (PAG-09).
 */
static vmm_status build_on_each(struct vmm_memory *memory, struct vmm_instance *instance,
				vmm_status (*one)(struct vmm_memory *, struct vmm_instance *,
						  uint32_t)) VMM_REQUIRES(vmm_paging_lock_class)
{
	uint32_t copies = vmm_link_copies(instance->allocation);
	vmm_status status = VMM_OK;

	vmm_assert_held(&memory->adapter->paging_lock);
	for (uint32_t i = 0; i < copies && vmm_ok(status); i++)
		status = one(memory, instance, i);
	return status;
}

static void paging_event(struct vmm_memory *memory, const struct vmm_instance *instance,
			 uint32_t operation, uint64_t bytes, const uint32_t segments[2])
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_allocation *a = instance ? instance->allocation : NULL;

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_event(memory->adapter->observe, VIDMM_EVENT_PAGING, a ? a->owner : 0,
		  instance ? instance->handle : 0, operation, bytes, segments[0], segments[1],
		  instance ? instance->offset : 0);
}

/* The same for a placement that is not the instance's own. */
static void placement_event(struct vmm_memory *memory, const struct vmm_instance *instance,
			    uint32_t operation, const uint32_t segments[2], uint64_t offset)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_allocation *a = instance->allocation;

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_event(memory->adapter->observe, VIDMM_EVENT_PAGING, a->owner, instance->handle,
		  operation, a->size_bytes, segments[0], segments[1], offset);
}

static uint64_t gpu_address(struct vmm_memory *memory, uint32_t segment, uint64_t offset)
{
	return vmm_memory_segment(memory, segment)->port->gpu_base + offset;
}

/*
 * Returns Swizzle or Unswizzle of DXGK_TRANSFERFLAGS if the two sides of a transfer differ in form
 * (SWZ-09, SWZ-20, SWZ-22). Only allocations with Swizzled ever do (ALF-18).
 */
static UINT conversion(const struct vmm_instance *instance, bool in)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	if (vmm_likely(!instance->linear))
		return 0;
	return in ? 0x1 : 0x2;
}

static void count_paged(struct vmm_memory *memory, const struct vmm_instance *instance, bool in,
			uint64_t bytes) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	if (!in) {
		memory->statistics.bytes_paged_out += bytes;
		return;
	}
	memory->statistics.bytes_paged_in += bytes;
	memory->statistics.tallies.paged_in_bytes[instance->paging_cause] += bytes; /* */
}

static vmm_status transfer_virtual(struct vmm_memory *memory, struct vmm_instance *instance,
				   bool in, const struct vmm_port_range *part)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_paging_content content = {.offset = part->offset,
					     .size_bytes = part->size_bytes};

	vmm_assert_held(&memory->adapter->paging_lock);
	content.side[in] = location_in_segment(instance);
	content.side[!in] = vmm_gpu_location_of_pages(vmm_link_mdl(instance, 0));
	vmm_status status = vmm_paging_virtual(memory, instance, &content);
	if (!vmm_ok(status))
		return status;
	count_paged(memory, instance, in, part->size_bytes);
	return VMM_OK;
}

/* Transfers a part between one adapter's copy and its store. */
static vmm_status transfer_on(struct vmm_memory *memory, struct vmm_instance *instance,
			      uint32_t physical, bool in, const struct vmm_port_range *part)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	DXGKARG_BUILDPAGINGBUFFER args = {.Operation = DXGK_OPERATION_TRANSFER};
	uint64_t address = gpu_address(memory, instance->segment, instance->offset);
	PMDL pages = vmm_link_mdl(instance, physical);
	vmm_status status;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (uses_virtual_addresses(memory))
		return transfer_virtual(memory, instance, in, part);
	args.Transfer.hAllocation = instance->allocation->kmd_allocation;
	args.Transfer.TransferSize = part->size_bytes;
	args.Transfer.TransferOffset = (UINT)part->offset; /* an MDL describes less than 4 GiB */
	args.Transfer.MdlOffset = (UINT)(part->offset >> VMM_PAGE_SHIFT);
	/*
	 * There is one sub-transfer, which is the whole (PAG-03). Segment id 0 selects the MDL side
	 * (PAG-04).
	 */
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
	count_paged(memory, instance, in, part->size_bytes);
	paging_event(memory, instance, VIDMM_PAGING_TRANSFER, part->size_bytes,
		     (uint32_t[2]){in ? 0 : instance->segment, in ? instance->segment : 0});
	return VMM_OK;
}

vmm_status vmm_paging_transfer(struct vmm_memory *memory, struct vmm_instance *instance, bool in)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	return vmm_paging_transfer_part(memory, instance, in, 0,
					vmm_store_bytes(instance->allocation));
}

/*
 * In: the one store to all copies. Out: the copy that was written last; the lead's if none was
 * written. (PAG-22)
 */
static vmm_status transfer_mirrored(struct vmm_memory *memory, struct vmm_instance *instance,
				    bool in, const struct vmm_port_range *part)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	uint32_t copies = vmm_link_copies(instance->allocation);
	vmm_status status = VMM_OK;

	vmm_assert_held(&memory->adapter->paging_lock);
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

	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_likely(copies == 1))
		return transfer_on(memory, instance, 0, in, &(struct vmm_port_range){offset, size});
	if (vmm_link_is_mirrored(instance->allocation))
		return transfer_mirrored(memory, instance, in,
					 &(struct vmm_port_range){offset, size});
	/* Each adapter's store has its part of the range. (PAG-23) */
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

	vmm_assert_held(&memory->adapter->paging_lock);
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
	count_paged(memory, instance, in, size);
	paging_event(memory, instance, VIDMM_PAGING_SPECIAL_LOCK_TRANSFER, size,
		     (uint32_t[2]){in ? 0 : instance->segment, in ? instance->segment : 0});
	return VMM_OK;
}

static vmm_status fill_virtual(struct vmm_memory *memory, struct vmm_instance *instance,
			       uint64_t size) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_paging_content content = {.size_bytes = size,
						   .kind = VMM_PAGING_VIRTUAL_FILL,
						   .side[1] = location_in_segment(instance)};

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_status status = vmm_paging_virtual(memory, instance, &content);
	if (vmm_ok(status))
		memory->statistics.bytes_filled += size;
	return status;
}

static vmm_status fill_on(struct vmm_memory *memory, struct vmm_instance *instance,
			  uint32_t physical) VMM_REQUIRES(vmm_paging_lock_class)
{
	DXGKARG_BUILDPAGINGBUFFER args = {.Operation = DXGK_OPERATION_FILL};

	vmm_assert_held(&memory->adapter->paging_lock);
	/* The allocation's footprint in the segment, not the size of its content. (SEG-10) */
	uint64_t size =
		vmm_unlikely(
			vmm_memory_segment(memory, instance->segment)->port->flags.PitchAlignment)
			? instance->allocation->pitch_bytes
			: instance->allocation->size_bytes;

	/*
	 * The first content in a memory segment is zero, so that no data of a former owner is
	 * visible. (PAG-05, Q-14)
	 */
	if (uses_virtual_addresses(memory))
		return fill_virtual(memory, instance, size);
	args.Fill.hAllocation = instance->allocation->kmd_allocation;
	args.Fill.FillSize = size;
	args.Fill.Destination.SegmentId = instance->segment;
	args.Fill.Destination.SegmentAddress.QuadPart =
		(LONGLONG)gpu_address(memory, instance->segment, instance->offset);
	vmm_status status = build_on(memory, &memory->lane[physical], &args, instance);
	if (!vmm_ok(status))
		return status;
	memory->statistics.bytes_filled += size;
	paging_event(memory, instance, VIDMM_PAGING_FILL, size,
		     (uint32_t[2]){0, instance->segment});
	return VMM_OK;
}

vmm_status vmm_paging_fill(struct vmm_memory *memory, struct vmm_instance *instance)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	return build_on_each(memory, instance, fill_on);
}

vmm_status vmm_paging_init_context(struct vmm_memory *memory, struct vmm_instance *instance,
				   void *address)
{
	DXGKARG_BUILDPAGINGBUFFER args = {.Operation = DXGK_OPERATION_INIT_CONTEXT_RESOURCE};

	vmm_assert_held(&memory->adapter->paging_lock);
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
			     uint32_t physical) VMM_REQUIRES(vmm_paging_lock_class)
{
	DXGKARG_BUILDPAGINGBUFFER args = {.Operation = DXGK_OPERATION_DISCARD_CONTENT};

	vmm_assert_held(&memory->adapter->paging_lock);
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
	vmm_assert_held(&memory->adapter->paging_lock);
	/* With GPU virtual addresses content is dropped without an operation. (PAG-26) */
	if (uses_virtual_addresses(memory))
		return VMM_OK;
	return build_on_each(memory, instance, discard_on);
}

vmm_status vmm_paging_discard_mirrors(struct vmm_memory *memory, struct vmm_instance *instance)
{
	uint32_t copies = vmm_link_copies(instance->allocation);
	vmm_status status = VMM_OK;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_likely(!vmm_link_is_mirrored(instance->allocation)))
		return VMM_OK;
	for (uint32_t i = 0; i < copies && vmm_ok(status); i++)
		if (i != instance->newest)
			status = discard_on(memory, instance, i);
	return status;
}

static vmm_status move_on(struct vmm_memory *memory, struct vmm_instance *instance,
			  uint32_t physical, uint64_t to) VMM_REQUIRES(vmm_paging_lock_class)
{
	DXGKARG_BUILDPAGINGBUFFER args = {.Operation = DXGK_OPERATION_TRANSFER};
	uint64_t size = instance->allocation->size_bytes;

	vmm_assert_held(&memory->adapter->paging_lock);
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

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_assert(!instance->extents);
	if (uses_virtual_addresses(memory))
		return vmm_paging_virtual(
			memory, instance,
			&(struct vmm_paging_content){.size_bytes = instance->allocation->size_bytes,
						     .side = {location_in_segment(instance),
							      {.segment = instance->segment,
							       .page = to >> VMM_PAGE_SHIFT}}});
	for (uint32_t i = 0; i < copies && vmm_ok(status); i++)
		status = move_on(memory, instance, i, to);
	return status;
}

vmm_status vmm_paging_notify(struct vmm_memory *memory, struct vmm_instance *instance,
			     bool resident)
{
	DXGKARG_BUILDPAGINGBUFFER args = {.Operation = DXGK_OPERATION_NOTIFY_RESIDENCY};
	vmm_status status;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_likely(!(instance->allocation->flags & VMM_ALLOCATION_NOTIFY_RESIDENCY)) ||
	    instance->announced == resident)
		return VMM_OK;
	args.NotifyResidency.hAllocation = instance->allocation->kmd_allocation;
	args.NotifyResidency.Resident = resident;
	if (resident) { /* else the address is (0, 0) */
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

	vmm_assert_held(&memory->adapter->paging_lock);
	if (uses_virtual_addresses(memory))
		return vmm_paging_virtual(
			memory, instance,
			&(struct vmm_paging_content){
				.kind = VMM_PAGING_VIRTUAL_NOTIFY,
				.offset = part->offset,
				.size_bytes = part->size_bytes,
				.side[1] = vmm_gpu_location_of_pages(instance->backing.mdl)});
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
				 uint32_t physical) VMM_REQUIRES(vmm_paging_lock_class)
{
	DXGKARG_BUILDPAGINGBUFFER args = {.Operation = DXGK_OPERATION_TRANSFER};

	vmm_assert_held(&memory->adapter->paging_lock);
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
	vmm_assert_held(&memory->adapter->paging_lock);
	/*
	 * The miniport has already destroyed it (ALF-37), or gets no Transfer for an allocation
	 * that has GPU virtual addresses (TDR-05, PAG-26).
	 */
	if (vmm_unlikely(instance->allocation->gone) || uses_virtual_addresses(memory))
		return VMM_OK;
	return build_on_each(memory, instance, report_lost_on);
}

static bool map_coherent(struct vmm_memory *memory, uint32_t segment, uint32_t flags)
{
	/* Only a Cached allocation in a cache-coherent aperture is mapped coherently. (PAG-10) */
	return (flags & 0x4) && vmm_memory_segment(memory, segment)->port->flags.CacheCoherent;
}

/*
 * Fills in a Map operation. From WDDM 2.9 on a miniport may ask for a list of addresses instead of
 * an MDL (ALF-29). instance NULL: maps a DMA buffer (DMA-05).
 */
static DXGKARG_BUILDPAGINGBUFFER map_operation(struct vmm_memory *memory,
					       const struct vmm_instance *instance, void *mdl,
					       const struct vmm_paging_part *part)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	DXGKARG_BUILDPAGINGBUFFER args = {.Operation = DXGK_OPERATION_MAP_APERTURE_SEGMENT};
	const struct vmm_allocation *a = instance ? instance->allocation : NULL;
	bool coherent = a && map_coherent(memory, part->segment, a->flags);

	vmm_assert_held(&memory->adapter->paging_lock);
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

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_status status = build_on(memory, &memory->lane[part->physical], &args, instance);
	if (!vmm_ok(status))
		return status;
	memory->statistics.tallies.bytes_mapped += part->size_bytes;
	placement_event(memory, instance, VIDMM_PAGING_MAP_APERTURE,
			(uint32_t[2]){0, part->segment}, part->at);
	return VMM_OK;
}

static struct vmm_paging_part whole_of(const struct vmm_instance *instance, uint32_t physical)
{
	return (struct vmm_paging_part){.size_bytes = instance->allocation->size_bytes,
					.physical = physical,
					.segment = instance->segment,
					.at = instance->offset};
}

static vmm_status map_on(struct vmm_memory *memory, struct vmm_instance *instance,
			 uint32_t physical) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	struct vmm_paging_part whole = whole_of(instance, physical);

	return vmm_paging_map_part(memory, instance, &whole);
}

vmm_status vmm_paging_map(struct vmm_memory *memory, struct vmm_instance *instance)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	return build_on_each(memory, instance, map_on);
}

static vmm_status unmap_range(struct vmm_memory *memory, DXGKARG_BUILDPAGINGBUFFER *args,
			      struct vmm_instance *operand, const struct vmm_paging_part *part)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
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

	vmm_assert_held(&memory->adapter->paging_lock);
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

	vmm_assert_held(&memory->adapter->paging_lock);
	args.UnmapApertureSegment.hDevice = instance->allocation->kmd_device;
	args.UnmapApertureSegment.hAllocation = instance->allocation->kmd_allocation;
	vmm_status status = unmap_range(memory, &args, instance, part);
	if (!vmm_ok(status))
		return status;
	memory->statistics.tallies.bytes_unmapped += part->size_bytes;
	placement_event(memory, instance, VIDMM_PAGING_UNMAP_APERTURE,
			(uint32_t[2]){part->segment, 0}, part->at);
	return VMM_OK;
}

static vmm_status unmap_on(struct vmm_memory *memory, struct vmm_instance *instance,
			   uint32_t physical) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	struct vmm_paging_part whole = whole_of(instance, physical);

	return vmm_paging_unmap_part(memory, instance, &whole);
}

vmm_status vmm_paging_unmap(struct vmm_memory *memory, struct vmm_instance *instance)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_unlikely(instance->allocation->gone)) /* already unmapped (ALF-37) */
		return VMM_OK;
	return build_on_each(memory, instance, unmap_on);
}

static vmm_status transfer_to_aperture(struct vmm_memory *memory, struct vmm_instance *instance,
				       const struct vmm_paging_part *to)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	DXGKARG_BUILDPAGINGBUFFER args = {.Operation = DXGK_OPERATION_TRANSFER};
	uint64_t size = instance->allocation->size_bytes;

	vmm_assert_held(&memory->adapter->paging_lock);
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
	memory->statistics.bytes_paged_out += size;
	paging_event(memory, instance, VIDMM_PAGING_TRANSFER, size,
		     (uint32_t[2]){instance->segment, to->segment});
	return VMM_OK;
}

vmm_status vmm_paging_with_part(struct vmm_memory *memory, struct vmm_instance *instance,
				const struct vmm_paging_part *part,
				vmm_status (*operation)(struct vmm_memory *, struct vmm_instance *,
							const struct vmm_paging_part *))
{
	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_status status = vmm_paging_map_part(memory, instance, part);
	if (!vmm_ok(status))
		return status;
	status = operation(memory, instance, part);
	vmm_status unmapped = vmm_paging_unmap_part(memory, instance, part);
	return vmm_ok(status) ? unmapped : status;
}

vmm_status vmm_paging_transfer_through(struct vmm_memory *memory, struct vmm_instance *instance,
				       uint32_t aperture, uint64_t offset)
{
	uint32_t copies = vmm_link_copies(instance->allocation);
	bool mirrored = vmm_link_is_mirrored(instance->allocation);
	vmm_status status = VMM_OK;

	vmm_assert_held(&memory->adapter->paging_lock);
	for (uint32_t i = 0; i < copies && vmm_ok(status); i++)
		if (!mirrored || i == instance->newest)
			status = vmm_paging_with_part(
				memory, instance,
				&(struct vmm_paging_part){.size_bytes =
								  instance->allocation->size_bytes,
							  .physical = i,
							  .segment = aperture,
							  .at = offset},
				transfer_to_aperture);
	return status;
}

vmm_status vmm_paging_map_buffer(struct vmm_memory *memory, uint32_t physical,
				 const struct vmm_backing *backing, uint32_t segment,
				 uint64_t offset)
{
	const struct vmm_paging_part part = {
		.size_bytes = backing->size_bytes, .segment = segment, .at = offset};
	DXGKARG_BUILDPAGINGBUFFER args = map_operation(memory, NULL, backing->mdl, &part);

	vmm_assert_held(&memory->adapter->paging_lock);
	return build_on(memory, &memory->lane[physical], &args, NULL);
}
