/* SPDX-License-Identifier: MIT */
/*
 * Commands of hardware queues: submission to the miniport in queue order. A thread
 * submits with the paging lock held at PASSIVE_LEVEL, so DxgkDdiSubmitCommandToHwQueue is never
 * entered twice for a queue (SUB-27).
 */
#include <string.h>
#include "sched/resets/hw_private.h"
#include "sched/preparation/preparation.h"

/* ---- memory for commands ---- */

/*
 * Makes a set resident. Restores hw_blocks_eviction, because hardware contexts are not suspended
 * for each other: this one waits until the other's commands complete.
 */
static vmm_status gather(struct vmm_sched *sched, struct vmm_residency_set *set,
			 enum vmm_residency_round round) VMM_REQUIRES(vmm_paging_lock_class)
{
	bool before = atomic_load(&sched->adapter->hw_blocks_eviction);
	vmm_status status;

	vmm_assert_held(&sched->adapter->paging_lock);
	set->preparation = ++sched->preparations;
	status = vmm_residency_gather(set, round);
	atomic_store(&sched->adapter->hw_blocks_eviction, before);
	return status;
}

/*
 * Is a buffer still pinned for which the context waits? The flag is set before the look. A thread
 * that ends a translation reads the flag after it has unpinned its buffer: either the look finds
 * the buffer unpinned, or that thread sees the flag and wakes the worker.
 */
static bool awaits_buffers(const struct vmm_hw_context *context) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = context->device->adapter;

	vmm_assert_held(&context->device->adapter->paging_lock);
	atomic_store(&adapter->sched->hw_awaits_buffers, true);
	return vmm_dma_pinned_at(adapter, context->awaits_buffers_of);
}

/*
 * Returns true if the context may take memory now. It may not while the worker waits for memory on
 * behalf of a packet, since the context would take back what it was suspended for. It may not while
 * another device is starving, nor while it waits for an unlock or for DMA buffers.
 */
static bool may_gather(const struct vmm_hw_context *context) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_sched *sched = context->device->adapter->sched;

	vmm_assert_held(&context->device->adapter->paging_lock);
	if (vmm_unlikely(context->awaits_buffers_of) && awaits_buffers(context))
		return false;
	return !atomic_load(&sched->blocked) &&
	       (!sched->hw->starving || sched->hw->starving == context->device) &&
	       !vmm_unlock_is_awaited(context->device->adapter, context->unlock_ticket);
}

/*
 * Another process has locked what would have to be evicted. The device is not starving meanwhile:
 * the thread that will unlock may need others to get memory first.
 */
VMM_COLD static void await_unlock(struct vmm_hw_context *context, bool waited)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_device *device = context->device;

	vmm_assert_held(&context->device->adapter->paging_lock);
	context->unlock_ticket = vmm_unlock_await(device->adapter);
	if (!waited)
		vmm_reason(
			device->adapter->observe, VMM_PENDING, device->process->id, context->handle,
			"RES-08: the residency list of the device does not fit beside what other "
			"processes have locked (LOCK-48): hardware context 0x%08x waits until they "
			"unlock (Q-340)",
			context->handle);
}

/*
 * After an attempt to get memory, with its status: is the device starving? While it is, no other
 * device gets memory.
 */
static void note_starving(const struct vmm_hw_context *context, vmm_status status)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_hw *hw = context->device->adapter->sched->hw;

	vmm_assert_held(&context->device->adapter->paging_lock);
	hw->starving =
		status == VMM_PENDING && !context->unlock_ticket && !context->awaits_buffers_of
			? context->device
			: NULL;
}

static vmm_status gather_in_rounds(struct vmm_device *device, struct vmm_residency_set *set)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_status status = VMM_NO_VIDEO_MEMORY;

	vmm_assert_held(&device->adapter->paging_lock);
	*set = (struct vmm_residency_set){
		.device = device,
		.submission = UINT64_MAX, /* everything that is on the list now */
		.writes = true,
		.awaits_unlocks = true,
	};
	for (uint32_t round = 0; round < VMM_ROUND_COUNT && status == VMM_NO_VIDEO_MEMORY; round++)
		status = gather(device->adapter->sched, set, (enum vmm_residency_round)round);
	return status;
}

/* One refused request does not cost the device: a second one does. */
static vmm_status gather_twice(struct vmm_device *device, struct vmm_residency_set *set)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_status status = gather_in_rounds(device, set);

	vmm_assert_held(&device->adapter->paging_lock);
	return status == VMM_NO_MEMORY ? gather_in_rounds(device, set) : status;
}

/*
 * A context waits so many times in a row for DMA buffers. A process that keeps submitting may have
 * others in the way each time, and the list may not fit without them, either.
 */
#define BUFFER_WAITS_MAX 64u

VMM_COLD static void report_wait(const struct vmm_hw_context *context)
{
	const struct vmm_device *device = context->device;

	vmm_reason(
		device->adapter->observe, VMM_PENDING, device->process->id, context->handle,
		"Q-495: the residency list of the device does not fit beside the DMA buffers of "
		"packets that are mapped into an aperture: hardware context 0x%08x waits for them",
		context->handle);
}

/*
 * DMA buffers of packet contexts may take the space of an aperture. Those that no packet needs now
 * are unmapped; the context waits for the others, and moves nothing meanwhile. It does not wait for
 * the buffers of later packets: a process that keeps submitting always has some. Nor does its
 * device starve: other devices get memory.
 */
VMM_COLD static vmm_status gather_without_buffers(struct vmm_hw_context *context,
						  struct vmm_residency_set *set)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = context->device->adapter;
	vmm_status status = VMM_NO_VIDEO_MEMORY;
	bool left;

	vmm_assert_held(&context->device->adapter->paging_lock);
	atomic_store(&adapter->sched->hw_awaits_buffers, true);
	if (vmm_dma_unmap_unpinned(adapter, &left))
		status = gather_twice(context->device, set);
	if (status != VMM_NO_VIDEO_MEMORY || !left || context->buffer_waits == BUFFER_WAITS_MAX)
		return status;
	if (!context->buffer_waits++)
		report_wait(context);
	context->awaits_buffers_of = atomic_load(&adapter->submissions);
	return VMM_PENDING;
}

/* Returns VMM_PENDING while the memory is in use, locked, or taken by DMA buffers. */
static vmm_status try_gather(struct vmm_hw_context *context, struct vmm_residency_set *set)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_device *device = context->device;

	vmm_assert_held(&context->device->adapter->paging_lock);
	bool waited = context->unlock_ticket != 0;
	context->unlock_ticket = 0;
	context->awaits_buffers_of = 0;
	vmm_status status = gather_twice(device, set);
	if (status == VMM_NO_VIDEO_MEMORY)
		status = gather_without_buffers(context, set);
	if (status == VMM_NO_VIDEO_MEMORY && vmm_unlock_would_help(device->adapter)) {
		await_unlock(context, waited);
		status = VMM_PENDING;
	}
	if (status == VMM_OK)
		context->buffer_waits = 0;
	return status;
}

/*
 * The residency list cannot be made resident, and waiting would not help: it does not fit, or there
 * is no system memory for it. (PAG-02, PRI-16, RES-08)
 */
VMM_COLD static void fail_device(struct vmm_hw_context *context, vmm_status status)
{
	struct vmm_device *device = context->device;

	vmm_device_fail(device, VMM_DEVICE_OUT_OF_MEMORY);
	vmm_reason(
		device->adapter->observe, status, device->process->id, context->handle,
		"%s, for hardware context 0x%08x: the device is in error",
		status == VMM_NO_MEMORY
			? "PAG-02: no system memory to make the residency list of the device "
			  "resident, twice (Q-483)"
		: status == STATUS_GRAPHICS_ALLOCATION_CONTENT_LOST
			? "PAG-20: an allocation on the residency list of the device lost its "
			  "content"
		: context->buffer_waits
			? "RES-08: the residency list of the device does not fit into its "
			  "segments beside the DMA buffers of packets, after waits for them (Q-495)"
			: "RES-08: the residency list of the device does not fit into its "
			  "segments together, in any order",
		context->handle);
}

vmm_status vmm_hw_gather_locked(struct vmm_hw_context *context, struct vmm_residency_set *set)
{
	vmm_assert_held(&context->device->adapter->paging_lock);
	if (!may_gather(context))
		return VMM_PENDING;
	vmm_status status = try_gather(context, set);
	if (status == VMM_NO_MEMORY && vmm_shortage_ends_with_work(context->device->adapter->sched))
		status = VMM_PENDING;
	note_starving(context, status);
	if (status != VMM_OK && status != VMM_PENDING && status != VMM_DEVICE_REMOVED)
		fail_device(context, status);
	return status;
}

uint64_t vmm_hw_hold(struct vmm_hw_packet *packet, const struct vmm_residency_set *set)
{
	struct vmm_adapter *adapter = set->device->adapter;
	struct vmm_timeline *timeline = &adapter->timeline[vmm_hw_timeline(adapter)];

	vmm_state_lock(adapter);
	packet->work = (struct vmm_work){
		.sequence = atomic_load_explicit(&timeline->queued, memory_order_relaxed) + 1,
		.device = set->device,
		.prepared = true,
		.submitted = true,
	};
	packet->held = true;
	vmm_work_add_locked(adapter, vmm_hw_timeline(adapter), &packet->work);
	vmm_state_unlock(adapter);
	uint64_t sequence = packet->work.sequence;
	atomic_store_explicit(&((struct vmm_device *)set->device)->queued[vmm_hw_timeline(adapter)],
			      sequence, memory_order_relaxed);
	uint64_t needed = vmm_residency_use(set, vmm_hw_timeline(adapter), sequence);
	vmm_memory_end_submission(adapter);
	vmm_memory_flush_locked(adapter);
	return needed;
}

/* Reserves the packet's memory. VMM_OK: it is in use until the packet completes. */
static vmm_status prepare(struct vmm_sched *sched, struct vmm_hw_packet *packet)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_hw_context *context = packet->queue->context;
	struct vmm_residency_set set;

	vmm_assert_held(&sched->adapter->paging_lock);
	if (packet->held)
		return VMM_OK;
	vmm_status status = vmm_hw_gather_locked(context, &set);
	if (status == VMM_OK)
		packet->paging_needed =
			vmm_max_u64(vmm_hw_hold(packet, &set), packet->memory.mapped_by);
	return status;
}

/* ---- to the miniport ---- */

/*
 * The miniport refused a command: the device is in error, and that command and later ones are
 * retired. Older commands can still complete.
 */
VMM_COLD static void submission_failed(struct vmm_hw_queue *queue, uint64_t id, NTSTATUS status)
{
	struct vmm_device *device = queue->context->device;
	struct vmm_adapter *adapter = device->adapter;

	/* A reset began, which retires the commands (TDR-05). */
	if (status == STATUS_DEVICE_REMOVED)
		return;
	vmm_finding(adapter->observe, "SUB-27", device->process->id, queue->handle,
		    "DxgkDdiSubmitCommandToHwQueue returned 0x%08x for command %llu of queue "
		    "0x%08x: the device is in error",
		    (unsigned)status, (unsigned long long)id, queue->handle);
	vmm_device_fail(device, VMM_DEVICE_FAULT);
	vmm_state_lock(adapter);
	struct vmm_list *link, *next;
	vmm_list_for_each_safe (link, next, &queue->running) {
		struct vmm_hw_packet *packet = vmm_container_of(link, struct vmm_hw_packet, link);

		if (packet->id >= id)
			vmm_hw_retire_locked(packet);
	}
	vmm_state_unlock(adapter);
}

/*
 * The packet may retire as soon as the miniport has it. It is not reused before the paging lock is
 * released.
 */
static void submit_command(struct vmm_sched *sched, struct vmm_hw_packet *packet)
{
	struct vmm_hw_queue *queue = packet->queue;
	const struct vmm_hw_context *context = queue->context;
	struct vmm_adapter *adapter = sched->adapter;
	DXGKARG_SUBMITCOMMANDTOHWQUEUE args = {
		.hHwQueue = queue->kmd_queue,
		.HwQueueProgressFenceId = packet->id,
		.DmaBufferVirtualAddress = packet->address,
		.DmaBufferSize = packet->bytes,
		.DmaBufferPrivateDataSize = packet->private_bytes,
		.pDmaBufferPrivateData = packet->private_bytes ? packet->private_data : NULL,
		.Flags.Present = packet->memory.range != NULL,
		.HwQueueProgressFenceGpuVa = vmm_sync_gpu_address(queue->fence),
		.HwQueueProgressFenceCpuVa = vmm_sync_owned_word(queue->fence),
	};
	uint64_t id = packet->id;

	vmm_state_lock(adapter);
	vmm_list_remove(&packet->link);
	vmm_list_push_back(&queue->running, &packet->link);
	if (!queue->running_count++) {
		queue->since_ns = vmm_os_now_ns(adapter->os);
		queue->fence_read = false;
	}
	queue->submitted_id = id;
	sched->hw_running++;
	vmm_state_unlock(adapter);
	atomic_fetch_sub(&sched->hw->waiting, 1);
	vmm_event(adapter->observe, VIDMM_EVENT_QUEUE, context->device->process->id, queue->handle,
		  0, id, context->node, 0, args.DmaBufferSize);
	vmm_watch_submitted(sched);
	NTSTATUS status = vmm_port_submit_to_hw_queue(adapter->port, &args);
	/* SUB-27: the miniport may not read that memory after the call, so it is overwritten. */
	if (args.DmaBufferPrivateDataSize)
		memset(packet->private_data, 0xDD, args.DmaBufferPrivateDataSize);
	if (vmm_unlikely(!NT_SUCCESS(status)))
		submission_failed(queue, id, status);
}

static bool may_run(const struct vmm_sched *sched, const struct vmm_hw_queue *queue)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_hw_context *context = queue->context;
	struct vmm_adapter *adapter = sched->adapter;
	uint32_t limit = sched->caps->hw_in_flight[context->node];

	vmm_assert_held(&sched->adapter->paging_lock);
	if (atomic_load(&adapter->removed) || atomic_load(&adapter->recovering) ||
	    atomic_load(&sched->halted) ||
	    (atomic_load(&sched->hw->resetting) >> context->node & 1)) /* TDR-21 */
		return false;
	vmm_state_lock(adapter);
	bool runs = context->state == VMM_HW_RUNNING && (!limit || queue->running_count < limit);
	vmm_state_unlock(adapter);
	return runs;
}

static bool complete_sync(struct vmm_sched *sched, struct vmm_hw_packet *packet)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&sched->adapter->paging_lock);
	if (!vmm_hw_sync_passed(packet))
		return false;
	vmm_state_lock(sched->adapter);
	vmm_list_remove(&packet->link);
	vmm_hw_put_packet_locked(packet);
	vmm_state_unlock(sched->adapter);
	atomic_fetch_sub(&sched->hw->waiting, 1);
	return true;
}

/*
 * Does or submits the first packet of the queue. Returns false if it must wait for an event that
 * wakes the worker.
 */
static bool pump_first(struct vmm_sched *sched, struct vmm_hw_queue *queue)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_hw_packet *packet = vmm_hw_first(&queue->waiting);

	vmm_assert_held(&sched->adapter->paging_lock);
	if (atomic_load(&queue->context->device->error) != VMM_DEVICE_OK) {
		vmm_hw_drop_waiting(queue);
		return true;
	}
	if (packet->sync)
		return complete_sync(sched, packet);
	if (!may_run(sched, queue) || prepare(sched, packet) != VMM_OK)
		return atomic_load(&queue->context->device->error) != VMM_DEVICE_OK;
	if (!vmm_timeline_done(sched->adapter, sched->adapter->paging_timeline,
			       packet->paging_needed)) {
		vmm_queue_drain_locked(sched); /* the paging may not be submitted yet */
		if (!vmm_timeline_done(sched->adapter, sched->adapter->paging_timeline,
				       packet->paging_needed))
			return false;
	}
	if (!NT_SUCCESS(vmm_hw_send_properties(queue->context)))
		return false;
	submit_command(sched, packet);
	return true;
}

static void pump_context(struct vmm_sched *sched, struct vmm_hw_context *context)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_list *link;

	vmm_assert_held(&sched->adapter->paging_lock);
	vmm_list_for_each (link, &context->queues) {
		struct vmm_hw_queue *queue = vmm_container_of(link, struct vmm_hw_queue, link);

		while (!vmm_list_empty(&queue->waiting) && pump_first(sched, queue))
			;
	}
}

void vmm_hw_pump_locked(struct vmm_sched *sched)
{
	struct vmm_hw *hw = sched->hw;
	struct vmm_list *link;

	vmm_assert_held(&sched->adapter->paging_lock);
	if (vmm_likely(!hw) || !atomic_load(&hw->waiting))
		return;
	/* The starving device first: while it waits no other device gets memory. */
	if (hw->starving)
		vmm_list_for_each (link, &hw->contexts) {
			struct vmm_hw_context *context =
				vmm_container_of(link, struct vmm_hw_context, link);

			if (context->device == hw->starving)
				pump_context(sched, context);
		}
	vmm_list_for_each (link, &hw->contexts)
		pump_context(sched, vmm_container_of(link, struct vmm_hw_context, link));
}
