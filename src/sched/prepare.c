/* SPDX-License-Identifier: MIT */
/*
 * Preparation: what the emitted patch list names is made resident in list order (PAT-03, DMA-35), the allocation
 * list gets the final addresses, the packet its fence, the miniport patches (PAT-11), and the packet joins its node.
 * Packets are prepared strictly in call order; the first one that must wait for the GPU holds up the rest.
 */
#include "sched/sched_private.h"

/* DMA-23: an allocation that is listed more than once is written if one of its entries says so. */
static bool is_written(const struct vmm_dma *dma, uint32_t index)
{
	const struct vmm_allocation *allocation = dma->instances[index]->allocation;

	if (dma->list[index].WriteOperation || allocation->read_set == allocation->write_set)
		return dma->list[index].WriteOperation;
	for (uint32_t i = 0; i < dma->list_count; i++)
		if (dma->instances[i] == dma->instances[index] && dma->list[i].WriteOperation)
			return true;
	return false;
}

/* SPL-05: what the resource table holds where the buffer is split stays where it is, whoever wants its place. */
static vmm_status keep_bound(struct vmm_adapter *adapter, struct vmm_dma *dma, uint64_t preparation)
{
	for (uint32_t i = 0; i < dma->list_count; i++) {
		struct vmm_instance *instance = dma->instances[i];
		vmm_status status = VMM_OK;

		if (!instance || !vmm_split_is_bound(dma, instance))
			continue;
		instance->wanted = preparation;
		if (instance->lock_count && instance->place == VMM_PLACE_MEMORY)
			instance->prepared = preparation; /* not even LKR-01 moves it now */
		else
			status = vmm_memory_make_resident_locked(adapter, instance,
								 is_written(dma, i), preparation);
		if (status != VMM_OK)
			return status;
	}
	return VMM_OK;
}

/* The portion's patch locations in list order (PAT-03). */
static vmm_status walk(struct vmm_adapter *adapter, struct vmm_dma *dma, uint64_t preparation)
{
	for (uint32_t p = dma->patch_start; p < dma->patch_end; p++) {
		uint32_t index = dma->patches[p].AllocationIndex;
		struct vmm_instance *instance = dma->instances[index];

		if (!instance || instance->prepared == preparation)
			continue; /* PAT-09: a NULL element unbinds; nothing to bring in */
		instance->wanted = preparation;
		vmm_status status = vmm_memory_make_resident_locked(
			adapter, instance, is_written(dma, index), preparation);
		if (status != VMM_OK) {
			dma->short_of = p;
			return status;
		}
	}
	return VMM_OK;
}

/* What comes after a split point wants what its own patch locations name, and what is bound there. */
static vmm_status want_rest(struct vmm_adapter *adapter, struct vmm_dma *dma, uint64_t preparation)
{
	for (uint32_t p = dma->patch_start; p < dma->patch_end; p++) {
		struct vmm_instance *instance = dma->instances[dma->patches[p].AllocationIndex];

		if (instance)
			instance->wanted = preparation;
	}
	return keep_bound(adapter, dma, preparation);
}

static vmm_status make_resident(struct vmm_adapter *adapter, struct vmm_dma *dma,
				uint64_t preparation)
{
	struct vmm_instance **instances = dma->instances;

	if (vmm_unlikely(dma->split)) {
		vmm_status status = want_rest(adapter, dma, preparation);
		return status == VMM_OK ? walk(adapter, dma, preparation) : status;
	}
	for (uint32_t i = 0; i < dma->list_count; i++)
		if (instances[i])
			instances[i]->wanted = preparation;
	return walk(adapter, dma, preparation);
}

/* The largest that the patch list names and that has no place yet; list_count: none. */
static uint32_t largest_missing(const struct vmm_dma *dma, uint64_t preparation)
{
	uint32_t largest = dma->list_count;

	for (uint32_t p = dma->patch_start; p < dma->patch_end; p++) {
		uint32_t index = dma->patches[p].AllocationIndex;
		const struct vmm_instance *instance = dma->instances[index];

		if (instance && instance->prepared != preparation &&
		    (largest == dma->list_count ||
		     instance->allocation->size_bytes >
			     dma->instances[largest]->allocation->size_bytes))
			largest = index;
	}
	return largest;
}

/*
 * SPL-13: the set may already be in memory in a way that leaves no room in one piece for the rest. Again, the largest
 * first; what has no place of this round yet may be pushed out for it.
 */
static vmm_status make_resident_anew(struct vmm_adapter *adapter, struct vmm_dma *dma,
				     uint64_t preparation)
{
	uint32_t index;
	vmm_status kept = keep_bound(adapter, dma, preparation);

	if (kept != VMM_OK)
		return kept;
	while ((index = largest_missing(dma, preparation)) < dma->list_count) {
		dma->instances[index]->wanted = preparation;
		vmm_status status = vmm_memory_make_resident_locked(
			adapter, dma->instances[index], is_written(dma, index), preparation);
		if (status != VMM_OK)
			return status;
	}
	return VMM_OK;
}

/* Addresses into the list, and the memory is this packet's until it completes (PAT-12). Returns the paging packet to wait for. */
static uint64_t settle_addresses(struct vmm_adapter *adapter, struct vmm_dma *dma,
				 uint64_t preparation)
{
	uint64_t needed = dma->mapped_by;

	for (uint32_t i = 0; i < dma->list_count; i++) {
		struct vmm_instance *instance = dma->instances[i];
		uint32_t segment;
		uint64_t address, paged;

		if (!instance)
			continue;
		vmm_memory_location(instance, &segment, &address);
		dma->list[i].SegmentId = segment;
		dma->list[i].PhysicalAddress.QuadPart = (LONGLONG)address;
		/* What buffers merely list matters to SynchronousPaging allocations alone (PAG-21). */
		if (instance->prepared != preparation &&
		    !(instance->allocation->flags & VMM_ALLOCATION_SYNCHRONOUS_PAGING))
			continue;
		instance->gpu_wrote |= dma->list[i].WriteOperation; /* PAG-31 */
		atomic_store_explicit(&instance->active[dma->packet.timeline], dma->packet.sequence,
				      memory_order_relaxed);
		paged = atomic_load_explicit(&instance->queued[adapter->paging_timeline],
					     memory_order_relaxed);
		needed = needed > paged ? needed : paged;
		paged = atomic_load_explicit(&instance->updated, memory_order_relaxed);
		needed = needed > paged ? needed : paged;
	}
	return needed;
}

/* What Submit will say of the portion; the fence is in it already. */
static void fill_submit(const struct vmm_dma *dma, struct vmm_packet *packet)
{
	DXGKARG_SUBMITCOMMAND *s = &packet->submit;

	*s = (DXGKARG_SUBMITCOMMAND){
		.hContext = dma->context->kmd_context,
		.DmaBufferSegmentId = dma->segment,
		.DmaBufferPhysicalAddress.QuadPart = (LONGLONG)dma->address,
		.DmaBufferSize = dma->context->dma_bytes,
		.DmaBufferSubmissionStartOffset = dma->start,
		.DmaBufferSubmissionEndOffset = dma->end,
		.pDmaBufferPrivateData = dma->private_data,
		.DmaBufferPrivateDataSize = dma->context->dma_private_bytes,
		.DmaBufferPrivateDataSubmissionEndOffset = dma->private_used, /* from 0: SUB-19 */
		.SubmissionFenceId = packet->fence,
		.EngineOrdinal = dma->context->engine,
		.NodeOrdinal = dma->context->node,
	};
	s->Flags.NullRendering = dma->null_rendering;
}

static NTSTATUS patch(struct vmm_adapter *adapter, const struct vmm_dma *dma,
		      const struct vmm_packet *packet)
{
	DXGKARG_PATCH args = vmm_patch_of(&packet->submit, dma->backing.address);

	args.pAllocationList = dma->list;
	args.AllocationListSize = dma->list_count;
	args.pPatchLocationList = dma->patches;
	args.PatchLocationListSize = dma->patch_count;
	args.PatchLocationListSubmissionStart = dma->patch_start; /* PAT-16 */
	args.PatchLocationListSubmissionLength = dma->patch_end - dma->patch_start;
	return vmm_port_patch(adapter->port, &args);
}

static void unqueue(struct vmm_sched *sched, struct vmm_dma *dma)
{
	vmm_os_mutex_lock(&sched->adapter->state_lock);
	vmm_list_remove(&dma->packet.link);
	atomic_fetch_sub(&sched->prepare_count, 1);
	vmm_os_mutex_unlock(&sched->adapter->state_lock);
}

static uint32_t segment_set(const struct vmm_dma *dma, uint32_t index)
{
	const struct vmm_allocation *allocation = dma->instances[index]->allocation;

	return is_written(dma, index) ? allocation->write_set : allocation->read_set;
}

/* Is what can only go where there was no room more than fits there? No order of bringing it in will help then. */
static bool exceeds_segments(struct vmm_sched *sched, struct vmm_dma *dma)
{
	uint32_t set = segment_set(dma, dma->patches[dma->short_of].AllocationIndex);
	uint64_t counted = ++sched->preparations, bytes = 0;

	for (uint32_t p = dma->patch_start; p < dma->patch_end; p++) {
		uint32_t index = dma->patches[p].AllocationIndex;
		struct vmm_instance *instance = dma->instances[index];

		if (!instance || instance->wanted == counted)
			continue;
		instance->wanted = counted;
		if (!(segment_set(dma, index) & ~set))
			bytes += instance->allocation->size_bytes;
	}
	return bytes > vmm_memory_capacity(sched->adapter, set);
}

/* The buffer and what the portion uses, all in memory together. */
static vmm_status gather(struct vmm_sched *sched, struct vmm_dma *dma)
{
	vmm_status status = vmm_dma_place(dma);

	if (status != VMM_OK)
		return status;
	status = make_resident(sched->adapter, dma, ++sched->preparations);
	if (status == VMM_NO_VIDEO_MEMORY && !exceeds_segments(sched, dma))
		status = make_resident_anew(sched->adapter, dma, ++sched->preparations);
	return status;
}

/* SPL-12: the least that can be submitted is what comes before the next split point. */
static vmm_status gather_least(struct vmm_sched *sched, struct vmm_dma *dma)
{
	uint32_t end = vmm_split_group_end(dma, dma->patch_start);

	/* What only unbinds at the very end (PAT-09) has nothing to run. */
	if (end == dma->patch_count || dma->patches[end].SplitOffset >= dma->used_bytes)
		return VMM_NO_VIDEO_MEMORY;
	vmm_split_end_at(dma, end);
	return make_resident_anew(sched->adapter, dma, ++sched->preparations);
}

static vmm_status gather_in_order(struct vmm_sched *sched, struct vmm_dma *dma)
{
	uint64_t preparation = ++sched->preparations;
	vmm_status status =
		vmm_dma_place(dma); /* what wanted room may have been the buffer itself */

	if (status == VMM_OK)
		status = keep_bound(sched->adapter, dma, preparation);
	return status == VMM_OK ? walk(sched->adapter, dma, preparation) : status;
}

/* SPL-02: from the start of the rest, as far as there is room. Whatever comes later makes room. */
VMM_COLD static vmm_status gather_portion(struct vmm_sched *sched, struct vmm_dma *dma)
{
	dma->short_of = dma->patch_count;
	vmm_status status = gather_in_order(sched, dma);

	if (status == VMM_NO_VIDEO_MEMORY && dma->short_of < dma->patch_count) {
		uint32_t end = vmm_split_group(dma, dma->short_of);

		if (end == dma->patch_start) {
			status = gather_least(sched, dma);
		} else {
			vmm_split_end_at(dma, end);
			/* All is there; once more, so that what the portion does not name is not taken for its own. */
			status = gather_in_order(sched, dma);
		}
	}
	if (status != VMM_OK)
		vmm_split_end_at(dma, dma->patch_count);
	return status;
}

static vmm_status gather_pinned(struct vmm_sched *sched, struct vmm_dma *dma)
{
	vmm_dma_pin(dma, true);
	vmm_status status = gather(sched, dma);
	if (status == VMM_NO_VIDEO_MEMORY) {
		vmm_dma_pin(dma, false); /* its own place may be what leaves no room in one piece */
		bool moved = vmm_dma_give_up_places(sched->adapter);
		vmm_dma_pin(dma, true);
		if (moved)
			status = gather(sched, dma);
	}
	if (status == VMM_NO_VIDEO_MEMORY && vmm_dma_will_give_up(sched->adapter, dma))
		status = VMM_PENDING;
	if (status == VMM_NO_VIDEO_MEMORY && dma->patch_start < dma->patch_count)
		status = gather_portion(sched, dma);
	if (status != VMM_OK)
		vmm_dma_pin(dma, false);
	return status;
}

static vmm_status prepare_one(struct vmm_sched *sched, struct vmm_dma *dma)
{
	struct vmm_adapter *adapter = sched->adapter;
	vmm_status status = vmm_unlikely(dma->split) ? vmm_split_resume(sched, dma) : VMM_OK;

	if (status == VMM_OK)
		status = gather_pinned(sched, dma);
	if (status != VMM_OK)
		return status;
	bool last = vmm_likely(dma->end == dma->used_bytes);
	struct vmm_packet *packet = last ? &dma->packet : &dma->part;
	packet->paging_needed = settle_addresses(adapter, dma, sched->preparations);
	/* The paging work goes to its node before the packet that depends on it. */
	vmm_memory_flush_locked(adapter);
	if (dma->context->node == adapter->paging_node)
		packet->paging_needed = 0; /* same node: order is enough (SUB-03) */
	packet->fence = vmm_fence_next(sched);
	fill_submit(dma, packet);
	status = patch(adapter, dma, packet);
	if (!NT_SUCCESS(status))
		return status;
	if (!last) {
		vmm_split_send(sched, dma);
		return VMM_OK;
	}
	unqueue(sched, dma);
	vmm_queue_ready(sched, packet);
	return VMM_OK;
}

static struct vmm_dma *first_waiting(struct vmm_sched *sched)
{
	struct vmm_dma *dma = NULL;

	vmm_os_mutex_lock(&sched->adapter->state_lock);
	if (!vmm_list_empty(&sched->prepare))
		dma = vmm_container_of(sched->prepare.next, struct vmm_dma, packet.link);
	vmm_os_mutex_unlock(&sched->adapter->state_lock);
	return dma;
}

/*
 * System memory ran out. What the GPU is at, and what has been deallocated and not closed yet, will give some back; only
 * without either would it be in vain to wait.
 */
static bool may_get_memory(struct vmm_sched *sched)
{
	struct vmm_adapter *adapter = sched->adapter;

	vmm_memory_flush_locked(adapter);
	vmm_os_mutex_lock(&adapter->state_lock);
	bool running = sched->hardware_total || atomic_load(&sched->ready_count);
	vmm_os_mutex_unlock(&adapter->state_lock);
	return running || vmm_memory_can_reap_locked(adapter);
}

VMM_COLD static void say_why(struct vmm_sched *sched, const struct vmm_dma *dma, vmm_status status)
{
	const struct vmm_context *context = dma->context;

	vmm_reason(
		sched->adapter->observe, status, context->device->process->id, context->handle,
		"%s (%u allocations, %u patch locations): the device is in error, state ERROR_OUTOFMEMORY",
		status == STATUS_GRAPHICS_ALLOCATION_CONTENT_LOST
			? "PAG-20: an allocation of a submission lost its content while it waited"
		: status == VMM_NO_MEMORY
			? "PAG-02: no system memory to make the working set of a submission resident, "
			  "and nothing is running that would give some back"
			: "SPL-12: the working set of a submission cannot be made resident together",
		dma->list_count, dma->patch_count);
}

/*
 * SPL-12: its working set cannot be resident although the GPU holds nothing. The device is in error; the packet
 * completes unexecuted, in its turn: an empty packet takes its place so that the timeline stays in order.
 */
static void give_up(struct vmm_sched *sched, struct vmm_dma *dma, vmm_status status)
{
	bool leaked = status == STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE; /* SPL-14 has said so */

	atomic_store(&dma->context->device->error,
		     leaked ? VMM_DEVICE_FAULT : VMM_DEVICE_OUT_OF_MEMORY);
	if (!leaked)
		say_why(sched, dma, status);
	unqueue(sched, dma);
	vmm_memory_flush_locked(sched->adapter);
	/* Everything before it on the timeline has been prepared; once that is complete, so is this. */
	dma->packet.cancelled = true;
	dma->packet.paging_needed = 0;
	dma->packet.fence = 0;
	vmm_queue_ready(sched, &dma->packet);
}

/* Paging lock held. VMM_PENDING: the first packet must wait for the GPU. */
static vmm_status pump_locked(struct vmm_sched *sched)
{
	struct vmm_dma *dma;

	while ((dma = first_waiting(sched)) != NULL) {
		vmm_status status = vmm_port_dead(sched->adapter->port) ? VMM_DEVICE_REMOVED
									: prepare_one(sched, dma);

		if (status == VMM_NO_MEMORY && may_get_memory(sched))
			status = VMM_PENDING;
		if (status == VMM_PENDING || status == VMM_DEVICE_REMOVED ||
		    atomic_load(&sched->adapter->removed))
			return status;
		if (status != VMM_OK)
			give_up(sched, dma, status);
		vmm_queue_drain_locked(sched);
	}
	return VMM_OK;
}

/* Until the queue is empty (true) or its head must wait for the GPU (false). `seen`: progress before the try. */
static bool pump_once(struct vmm_sched *sched, uint32_t *seen)
{
	*seen = atomic_load(&sched->adapter->progress);
	vmm_paging_lock(sched->adapter);
	vmm_status status = pump_locked(sched);
	vmm_paging_unlock(sched->adapter);
	return status != VMM_PENDING;
}

void vmm_prepare_pump(struct vmm_adapter *adapter)
{
	struct vmm_sched *sched = adapter->sched;
	uint32_t seen;

	/* While the worker waits on behalf of the head, asking again before the GPU moved would be in vain. */
	if (!atomic_load(&sched->prepare_count) || atomic_load(&sched->blocked) ||
	    pump_once(sched, &seen))
		return;
	atomic_store(&sched->blocked, true);
	vmm_worker_wake(sched);
}

void vmm_prepare_pump_waiting(struct vmm_adapter *adapter)
{
	struct vmm_sched *sched = adapter->sched;
	bool alive = true;
	uint32_t seen;

	/* `blocked` with an empty queue: somebody else had prepared everything before the client set it. */
	if (!atomic_load(&sched->prepare_count) && !atomic_load(&sched->blocked))
		return;
	do {
		atomic_store(&sched->blocked, true);
		while (alive && !pump_once(sched, &seen)) {
			vmm_worker_reap(adapter); /* its memory may be what is wanted */
			alive = vmm_ok(vmm_wait_progress(adapter, seen, VIDMM_WAIT_SPACE));
		}
		atomic_store(&sched->blocked, false);
		/* A client that sees `blocked` leaves its packet to us, so look again after clearing it. */
	} while (alive && atomic_load(&sched->prepare_count) && !atomic_load(&adapter->removed));
}
