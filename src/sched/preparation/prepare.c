/* SPDX-License-Identifier: MIT */
/*
 * Preparation of a packet:
 *
 * 1. Its allocations are made resident (gather.c).
 * 2. The allocation list gets the final addresses.
 * 3. The packet gets its fence id, and the miniport patches it (PAT-11).
 * 4. It joins the ready queue of its node. From then on nothing that it references moves (SUB-02).
 *
 * Packets are prepared strictly in call order (SUB-04): the first one that must wait for the GPU
 * holds up the rest.
 */
#include "sched/preparation/preparation.h"

#include <stdio.h>

/*
 * Writes the addresses into the allocation list and marks the memory as used by this packet until
 * it completes (PAT-12). Returns the number of the newest paging packet to wait for: `needed`, or a
 * later one.
 */
static uint64_t write_addresses(struct vmm_adapter *adapter, struct vmm_dma *dma,
				uint64_t preparation, uint64_t needed)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&adapter->paging_lock);
	for (uint32_t i = 0; i < dma->list_count; i++) {
		struct vmm_instance *instance = dma->instances[i];
		uint32_t segment;
		uint64_t address, paged;

		if (!instance)
			continue;
		vmm_memory_location(instance, &segment, &address);
		dma->list[i].SegmentId = segment;
		dma->list[i].PhysicalAddress.QuadPart = (LONGLONG)address;
		/*
		 * An entry that no patch location names matters only for SynchronousPaging
		 * allocations (PAG-21).
		 */
		if (instance->prepared != preparation &&
		    !(instance->allocation->flags & VMM_ALLOCATION_SYNCHRONOUS_PAGING))
			continue;
		bool writes = vmm_dma_writes(dma, i);

		instance->gpu_wrote |= writes; /* PAG-31 */
		if (writes)                    /* PAG-22 */
			instance->newest = (uint8_t)dma->context->engine;
		instance->not_written &= !writes;
		/*
		 * An allocation that is bound across a split point is marked with this number
		 * itself (SPL-05).
		 */
		if (vmm_unlikely((dma->split || dma->end != dma->used_bytes) && !dma->owner))
			atomic_store_explicit(&instance->active[dma->packet.timeline],
					      dma->packet.sequence, memory_order_relaxed);
		else
			vmm_instance_activate(instance, dma->packet.timeline, dma->packet.sequence);
		paged = atomic_load_explicit(&instance->queued[adapter->paging_timeline],
					     memory_order_relaxed);
		needed = needed > paged ? needed : paged;
		paged = atomic_load_explicit(&instance->updated, memory_order_relaxed);
		needed = needed > paged ? needed : paged;
	}
	return needed;
}

/*
 * Does the same for a list whose allocations are all resident at their placements: the addresses in
 * it are final already.
 */
static uint64_t use_in_place(struct vmm_adapter *adapter, struct vmm_dma *dma, uint64_t preparation,
			     uint64_t needed) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_use_in_place use = {
		.instances = dma->instances,
		.instance_count = dma->list_count,
		.patches = dma->patches,
		.first = dma->patch_start,
		.end = dma->patch_end,
		.timeline = dma->packet.timeline,
		.sequence = dma->packet.sequence,
		.preparation = preparation,
	};

	vmm_assert_held(&adapter->paging_lock);
	needed = vmm_max_u64(needed, vmm_memory_use_in_place(adapter, &use));
	for (uint32_t i = 0; dma->writing && i < dma->list_count; i++) {
		struct vmm_instance *instance = dma->instances[i];

		if (!vmm_dma_writes(dma, i) || !instance || instance->prepared != preparation)
			continue;
		instance->gpu_wrote = true;                       /* PAG-31 */
		instance->newest = (uint8_t)dma->context->engine; /* PAG-22 */
		instance->not_written = false;
	}
	return needed;
}

/* Writes the final addresses, and marks what the packet uses until it completes. (SUB-02) */
static uint64_t bind_memory(struct vmm_adapter *adapter, struct vmm_dma *dma, uint64_t preparation,
			    uint64_t needed) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&adapter->paging_lock);
	/*
	 * An allocation that the buffer has just used counts as handled. That does not hold for a
	 * copy of the buffer, which takes the long way.
	 */
	needed = !dma->owner && vmm_gather_is_needless(dma)
			 ? use_in_place(adapter, dma, preparation, needed)
			 : write_addresses(adapter, dma, preparation, needed);
	if (!vmm_context_memory_is_none(dma)) /* PRE-11 */
		needed = vmm_max_u64(needed, vmm_context_allocations_use(
						     dma->context->device, dma->context,
						     dma->packet.timeline, dma->packet.sequence));
	return adapter->sched->working_set->mark
		       ? adapter->sched->working_set->mark(adapter->sched, dma, needed)
		       : needed;
}

void vmm_prepare_cancelled(struct vmm_sched *sched, struct vmm_dma *dma)
{
	struct vmm_list *link;

	vmm_assert_held(&sched->adapter->paging_lock);
	vmm_list_for_each (link, &dma->copies) {
		struct vmm_packet *packet = &vmm_copy_of(link)->packet;

		packet->cancelled = true;
		packet->paging_needed = 0;
		packet->fence = 0;
	}
	dma->attempts = 0;
	dma->awaits_buffers = false;
	dma->packet.cancelled = true;
	dma->packet.paging_needed = 0;
	dma->packet.fence = 0;
	vmm_queue_prepared(sched, dma);
}

/*
 * DMA-32: an MMIO flip has no packet for the hardware. It completes once all earlier packets of its
 * context have completed; then the flip is due (display.c).
 */
static void flip_in_turn(struct vmm_sched *sched, struct vmm_dma *dma)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&sched->adapter->paging_lock);
	dma->packet.cancelled = true;
	dma->packet.fence = 0;
	vmm_queue_prepared(sched, dma);
}

/*
 * DMA-10: launches the copies of a broadcast buffer. With the last portion the memory is marked as
 * used by each copy until it completes (PAT-12).
 */
VMM_COLD static NTSTATUS launch_copies(struct vmm_sched *sched, struct vmm_dma *dma,
				       uint64_t needed) VMM_REQUIRES(vmm_paging_lock_class)
{
	NTSTATUS status = STATUS_SUCCESS;
	struct vmm_list *link;

	vmm_assert_held(&sched->adapter->paging_lock);
	vmm_broadcast_copy_portion(dma);
	vmm_list_for_each (link, &dma->copies) {
		struct vmm_dma *copy = vmm_copy_of(link);

		if (dma->end == dma->used_bytes)
			needed = bind_memory(sched->adapter, copy, sched->preparations, needed);
		if (NT_SUCCESS(status))
			status = vmm_portion_launch(sched, copy, needed);
	}
	return status;
}

/*
 * Returns true if a packet with a later number has been prepared before this buffer, which must be
 * split. The allocations of a portion are marked with the number of the whole buffer, and no
 * prepared packet may have a later one. A buffer that waited behind a wait may have such packets
 * before it; they complete first.
 */
VMM_COLD static bool is_overtaken(struct vmm_sched *sched, struct vmm_dma *dma)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&sched->adapter->paging_lock);
	if (!vmm_timeline_is_overtaken(sched->adapter, dma->packet.timeline, dma->packet.sequence))
		return false;
	vmm_split_end_at(dma, dma->patch_count);
	vmm_dma_unpin(dma);
	return true;
}

static vmm_status prepare_one(struct vmm_sched *sched, struct vmm_dma *dma)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = sched->adapter;
	vmm_status status = vmm_unlikely(dma->split) ? vmm_split_resume(sched, dma) : VMM_OK;

	vmm_assert_held(&sched->adapter->paging_lock);
	if (status == VMM_OK)
		status = vmm_gather(sched, dma);
	if (status != VMM_OK)
		return status;
	if (vmm_unlikely(dma->end != dma->used_bytes && !dma->split) && is_overtaken(sched, dma))
		return VMM_PENDING;
	uint64_t needed = bind_memory(adapter, dma, sched->preparations, dma->memory.mapped_by);
	vmm_memory_end_submission(adapter);
	/* The paging work is queued on its node before the packet that depends on it. */
	vmm_memory_flush_locked(adapter);
	if (vmm_unlikely(dma->kind->in_turn)) {
		dma->packet.paging_needed = needed;
		flip_in_turn(sched, dma);
		return VMM_OK;
	}
	dma->sum_valid = false;
	status = vmm_portion_launch(sched, dma, needed);
	if (NT_SUCCESS(status) && vmm_unlikely(dma->users))
		status = launch_copies(sched, dma, needed);
	if (!NT_SUCCESS(status))
		return status;
	if (vmm_unlikely(adapter->placement_retries))
		adapter->placement_retries = 0;
	if (vmm_likely(dma->end == dma->used_bytes))
		vmm_queue_prepared(sched, dma);
	else
		vmm_split_send(sched, dma);
	return VMM_OK;
}

/* Returns the oldest submission that is not prepared; NULL: there is none. (SUB-04) */
static struct vmm_dma *first_waiting(struct vmm_sched *sched) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&sched->adapter->paging_lock);
	/*
	 * A submission is inserted first and counted afterwards. It is removed only under the
	 * paging lock, which is held here. So with a count above 0 the first entry stays the first.
	 */
	return atomic_load(&sched->prepare_count)
		       ? vmm_container_of(sched->prepare.next, struct vmm_dma, packet.link)
		       : NULL;
}

/* Writes which listed allocation is larger than each segment that it may use, or "". */
VMM_COLD static void describe_too_large(const struct vmm_dma *dma, char *text, size_t size)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = dma->context->device->adapter;

	vmm_assert_held(&adapter->paging_lock);
	text[0] = '\0';
	for (uint32_t i = 0; i < dma->list_count && !text[0]; i++) {
		const struct vmm_instance *instance = dma->instances[i];

		if (!instance)
			continue;
		const struct vmm_allocation *a = instance->allocation;
		uint64_t largest = vmm_memory_largest_segment(adapter, a->read_set | a->write_set);

		if (a->size_bytes > largest)
			snprintf(text, size,
				 "; allocation 0x%08x has %llu bytes, the largest of its segments "
				 "%llu",
				 instance->handle, (unsigned long long)a->size_bytes,
				 (unsigned long long)largest);
	}
}

VMM_COLD static void report_reason(struct vmm_sched *sched, const struct vmm_dma *dma,
				   vmm_status status) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_context *context = dma->context;
	char too_large[128];

	vmm_assert_held(&sched->adapter->paging_lock);
	describe_too_large(dma, too_large, sizeof(too_large));
	vmm_reason(
		sched->adapter->observe, status, context->device->process->id, context->handle,
		"%s (%u allocations, %u patch locations%s): the device is in error, state "
		"ERROR_OUTOFMEMORY (PRI-16)",
		status == STATUS_GRAPHICS_ALLOCATION_CONTENT_LOST
			? "PAG-20: an allocation of a submission lost its content while it waited"
		: status == VMM_NO_MEMORY
			? "PAG-02: no system memory to make the working set of a submission "
			  "resident, twice (Q-483), and no running packet will free some"
			: sched->working_set->too_large,
		dma->list_count, dma->patch_count, too_large);
}

/*
 * SPL-12: the working set cannot be made resident although the GPU holds nothing. The device is in
 * error. The packet completes in its turn without being executed: it is queued as a canceled
 * packet, so the timeline stays in order.
 */
static void give_up(struct vmm_sched *sched, struct vmm_dma *dma, vmm_status status)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&sched->adapter->paging_lock);
	/* SPL-14, PRI-11: the code that found the leak has reported it. */
	bool leaked = status == STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE;

	vmm_device_fail(dma->context->device, leaked ? VMM_DEVICE_FAULT : VMM_DEVICE_OUT_OF_MEMORY);
	if (!leaked)
		report_reason(sched, dma, status);
	vmm_memory_flush_locked(sched->adapter);
	/*
	 * Every earlier packet of the timeline has been prepared; once these are complete, so is
	 * this one.
	 */
	vmm_prepare_cancelled(sched, dma);
}

/*
 * Without power the work waits (PNP-05). The power change sets `halted` first and then looks at the
 * GPU under the paging lock.
 */
static void paging_work_locked(struct vmm_sched *sched) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&sched->adapter->paging_lock);
	if (vmm_unlikely(atomic_load(&sched->halted)))
		return;
	vmm_paging_work_locked(sched->adapter);
	if (vmm_unlikely(sched->hw != NULL) && vmm_hw_suspend_for_memory_locked(sched))
		vmm_paging_work_locked(sched->adapter);
}

/*
 * Completes a packet of a lost device that has not been prepared, unexecuted (TDR-12).
 */
VMM_COLD static void cancel_waiting(struct vmm_sched *sched, struct vmm_dma *dma)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_list *link;

	vmm_assert_held(&sched->adapter->paging_lock);
	vmm_broadcast_copy_portion(dma);
	vmm_cancel_packet(sched, &dma->packet);
	vmm_list_for_each (link, &dma->copies)
		vmm_cancel_packet(sched, &vmm_copy_of(link)->packet);
	vmm_prepare_cancelled(sched, dma);
}

/* Prepares a packet, and notes whether it waits for memory, or DMA buffers, that the GPU uses. */
static vmm_status attempt(struct vmm_sched *sched, struct vmm_dma *dma)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	uint64_t blocked = vmm_paging_blocked_searches(sched->adapter);

	vmm_assert_held(&sched->adapter->paging_lock);
	if (vmm_port_dead(sched->adapter->port))
		return VMM_DEVICE_REMOVED;
	vmm_status status = prepare_one(sched, dma);
	bool waits = status == VMM_PENDING &&
		     (vmm_paging_blocked_searches(sched->adapter) > blocked || dma->awaits_buffers);

	sched->awaits_memory = waits ? dma : NULL;
	return status;
}

/* Prepares packets. Returns as pump_locked. */
static vmm_status prepare_queued(struct vmm_sched *sched) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_dma *starved = NULL;
	struct vmm_dma *dma;

	vmm_assert_held(&sched->adapter->paging_lock);
	while ((dma = first_waiting(sched)) != NULL && !vmm_power_holds_back(sched, dma)) {
		if (atomic_load(&sched->adapter->recovering))
			return VMM_DEVICE_REMOVED;
		if (vmm_device_lost(dma->context->device) ||
		    vmm_unlikely(atomic_load(&dma->context->steps.given_up))) {
			cancel_waiting(sched, dma);
			vmm_queue_drain_locked(sched);
			continue;
		}
		if (vmm_unlikely(atomic_load(&sched->adapter->paging_work)) &&
		    vmm_paging_holds_back(sched->adapter, dma->submission))
			return VMM_PENDING;
		vmm_status status = attempt(sched, dma);

		if (status == VMM_NO_MEMORY && vmm_shortage_ends_with_packets(sched))
			status = VMM_PENDING;
		/* One refused request does not cost the device: a second one does. */
		if (status == VMM_NO_MEMORY && starved != dma) {
			starved = dma;
			continue;
		}
		if (status == VMM_PENDING || status == VMM_DEVICE_REMOVED ||
		    atomic_load(&sched->adapter->removed))
			return status;
		if (status != VMM_OK)
			give_up(sched, dma, status);
		vmm_queue_drain_locked(sched);
	}
	sched->awaits_memory = NULL;
	return VMM_OK;
}

/* Does the first packet wait for memory, and not for an operation that holds it back? */
static bool first_awaits_memory(struct vmm_sched *sched) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_dma *dma = sched->awaits_memory;

	vmm_assert_held(&sched->adapter->paging_lock);
	return vmm_unlikely(dma != NULL) && dma == first_waiting(sched) &&
	       !vmm_paging_holds_back(sched->adapter, dma->submission);
}

/*
 * Prepares packets until the queue is empty. Returns VMM_PENDING if the first packet must wait for
 * the GPU. Paging lock held.
 */
static vmm_status pump_locked(struct vmm_sched *sched) VMM_REQUIRES(vmm_paging_lock_class)
{
	bool waited = first_awaits_memory(sched);

	vmm_assert_held(&sched->adapter->paging_lock);
	vmm_paging_packet_waits(sched->adapter, waited);
	paging_work_locked(sched);
	vmm_status status = prepare_queued(sched);
	bool waits = first_awaits_memory(sched);

	vmm_paging_packet_waits(sched->adapter, waits);
	if (vmm_unlikely(waited && !waits)) /* the turn of the operations */
		paging_work_locked(sched);
	return status;
}

/*
 * Prepares packets. Returns true once the queue is empty, false if its first packet must wait for
 * the GPU. `seen` gets the progress counter from before the attempt.
 */
static bool pump_once(struct vmm_sched *sched, uint32_t *seen)
{
	*seen = atomic_load(&sched->adapter->progress);
	vmm_paging_lock(sched->adapter);
	vmm_status status = pump_locked(sched);
	if (status == VMM_PENDING && vmm_unlikely(sched->hw != NULL))
		(void)vmm_hw_suspend_for_memory_locked(sched);
	vmm_paging_commit(sched->adapter);
	return status != VMM_PENDING;
}

void vmm_prepare_pump(struct vmm_adapter *adapter)
{
	struct vmm_sched *sched = adapter->sched;
	uint32_t seen;

	/*
	 * While the worker waits for the GPU for the first packet, another attempt before the GPU
	 * has made progress would be in vain.
	 */
	if (!atomic_load(&sched->prepare_count) || atomic_load(&sched->blocked) ||
	    pump_once(sched, &seen))
		return;
	atomic_store(&sched->blocked, true);
	vmm_worker_wake(sched);
}

void vmm_prepare_paging_work(struct vmm_adapter *adapter)
{
	if (!atomic_load(&adapter->paging_work))
		return;
	vmm_paging_lock(adapter);
	paging_work_locked(adapter->sched);
	vmm_paging_commit(adapter);
}

/* ---- closing what clients destroyed ---- */

static bool has_zombies(const struct vmm_adapter *adapter)
{
	return atomic_load(&adapter->zombies) && !atomic_load(&adapter->removed);
}

void vmm_reap_locked(struct vmm_adapter *adapter)
{
	vmm_assert_held(&adapter->submit_lock);
	if (has_zombies(adapter) && vmm_likely(!atomic_load(&adapter->sched->halted)))
		vmm_memory_reap(adapter);
}

void vmm_reap(struct vmm_adapter *adapter)
{
	if (vmm_likely(!has_zombies(adapter)))
		return;
	/*
	 * The submit lock is taken as in a deallocation. The end of a device or an adapter takes it
	 * too and then knows that no thread is still closing objects of it.
	 */
	vmm_submit_lock(adapter);
	vmm_reap_locked(adapter);
	vmm_submit_unlock(adapter);
}

/* ---- the worker ---- */

static void pump_waiting(struct vmm_adapter *adapter, void (*reap)(struct vmm_adapter *adapter))
{
	struct vmm_sched *sched = adapter->sched;
	bool alive = true;
	uint32_t seen;

	/*
	 * `blocked` with an empty queue: another thread prepared everything before the client set
	 * the flag.
	 */
	if (!atomic_load(&sched->prepare_count) && !atomic_load(&sched->blocked))
		return;
	do {
		vmm_await_recovery(adapter);
		atomic_store(&sched->blocked, true);
		while (alive && !pump_once(sched, &seen)) {
			(void)vmm_steps_advance(sched);
			/* Reaped allocations may free the memory that the packet needs. */
			reap(adapter);
			vmm_hw_feed(adapter);
			alive = vmm_ok(vmm_wait_progress(adapter, seen, VIDMM_WAIT_SPACE));
		}
		atomic_store(&sched->blocked, false);
		/*
		 * A client that sees `blocked` leaves its packet to the worker, so the queue is
		 * read again after the flag is cleared.
		 */
	} while (alive && atomic_load(&sched->prepare_count) && !atomic_load(&sched->halted) &&
		 !atomic_load(&adapter->removed));
}

void vmm_prepare_pump_waiting(struct vmm_adapter *adapter)
{
	pump_waiting(adapter, vmm_reap);
}

void vmm_prepare_pump_waiting_locked(struct vmm_adapter *adapter)
{
	vmm_assert_held(&adapter->submit_lock);
	pump_waiting(adapter, vmm_reap_locked);
}
