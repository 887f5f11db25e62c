/* SPDX-License-Identifier: MIT */
/*
 * Hardware queues: commands in, and to the miniport in the order of their queue. Whoever holds the paging lock at PASSIVE_LEVEL
 * hands over, which is why SubmitCommandToHwQueue is never entered twice for a queue (SUB-27).
 */
#include <string.h>
#include "sched/hw_private.h"

/* ---- memory for commands ---- */

/* Was it somebody's hardware queue that is in the way? That one finishes; contexts are not suspended for each other. */
static vmm_status gather(struct vmm_sched *sched, struct vmm_residency_set *set, bool anew)
{
	bool before = atomic_load(&sched->adapter->hw_in_the_way);
	vmm_status status;

	set->preparation = ++sched->preparations;
	status = vmm_residency_gather(set, anew);
	atomic_store(&sched->adapter->hw_in_the_way, before);
	return status;
}

bool vmm_hw_may_gather(const struct vmm_hw_context *context)
{
	const struct vmm_sched *sched = context->device->adapter->sched;

	return !atomic_load(&sched->blocked) &&
	       (!sched->hw->starving || sched->hw->starving == context->device);
}

vmm_status vmm_hw_gather_locked(struct vmm_hw_context *context, struct vmm_residency_set *set)
{
	struct vmm_device *device = context->device;
	struct vmm_sched *sched = device->adapter->sched;

	*set = (struct vmm_residency_set){
		.device = device,
		.submission = UINT64_MAX, /* what is on the list now */
		.writes = true,
	};
	vmm_status status = gather(sched, set, false);
	if (status == VMM_NO_VIDEO_MEMORY)
		status = gather(sched, set, true);
	return status;
}

uint64_t vmm_hw_hold(struct vmm_hw_packet *packet, const struct vmm_residency_set *set)
{
	struct vmm_adapter *adapter = set->device->adapter;
	struct vmm_timeline *timeline = &adapter->timeline[vmm_hw_timeline(adapter)];

	vmm_os_mutex_lock(&adapter->state_lock);
	packet->work = (struct vmm_work){
		.sequence = atomic_load_explicit(&timeline->queued, memory_order_relaxed) + 1,
		.device = set->device,
		.prepared = true,
		.submitted = true,
	};
	packet->held = true;
	vmm_work_add_locked(timeline, &packet->work);
	vmm_os_mutex_unlock(&adapter->state_lock);
	uint64_t sequence = packet->work.sequence;
	atomic_store_explicit(&((struct vmm_device *)set->device)->queued[vmm_hw_timeline(adapter)],
			      sequence, memory_order_relaxed);
	uint64_t needed = vmm_residency_use(set, vmm_hw_timeline(adapter), sequence);
	vmm_memory_flush_locked(adapter);
	return needed;
}

/* RES-08, PRI-16: it will never fit. */
VMM_COLD static void give_up(struct vmm_hw_context *context, vmm_status status)
{
	struct vmm_device *device = context->device;

	vmm_device_fail(device, VMM_DEVICE_OUT_OF_MEMORY);
	vmm_reason(device->adapter->observe, status, device->process->id, context->handle,
		   "RES-08: the residency list of the device has no room together, in whatever "
		   "order, for a command of hardware context 0x%08x: the device is in error",
		   context->handle);
}

/* VMM_OK: its memory is its own until it completes. */
static vmm_status prepare(struct vmm_sched *sched, struct vmm_hw_packet *packet)
{
	struct vmm_hw_context *context = packet->queue->context;
	struct vmm_residency_set set;

	if (packet->held)
		return VMM_OK;
	if (!vmm_hw_may_gather(context))
		return VMM_PENDING;
	vmm_status status = vmm_hw_gather_locked(context, &set);
	if (status == VMM_NO_MEMORY && sched->hw_running)
		status = VMM_PENDING;
	sched->hw->starving = status == VMM_PENDING ? context->device : NULL;
	if (status == VMM_OK)
		packet->paging_needed = vmm_hw_hold(packet, &set);
	else if (status != VMM_PENDING && status != VMM_DEVICE_REMOVED)
		give_up(context, status);
	return status;
}

/* ---- to the miniport ---- */

/* The queue does not go on; what it has told to be true can still be. */
VMM_COLD static void refused(struct vmm_hw_queue *queue, uint64_t id, NTSTATUS status)
{
	struct vmm_device *device = queue->context->device;
	struct vmm_adapter *adapter = device->adapter;

	if (status == STATUS_DEVICE_REMOVED) /* a reset began: that settles it (TDR-05) */
		return;
	vmm_finding(adapter->observe, "SUB-27", device->process->id, queue->handle,
		    "DxgkDdiSubmitCommandToHwQueue returned 0x%08x for command %llu of queue "
		    "0x%08x: the device is in error",
		    (unsigned)status, (unsigned long long)id, queue->handle);
	vmm_device_fail(device, VMM_DEVICE_FAULT);
	vmm_os_mutex_lock(&adapter->state_lock);
	struct vmm_list *link, *next;
	vmm_list_for_each_safe (link, next, &queue->running) {
		struct vmm_hw_packet *packet = vmm_container_of(link, struct vmm_hw_packet, link);

		if (packet->id >= id)
			vmm_hw_retire_locked(packet);
	}
	vmm_os_mutex_unlock(&adapter->state_lock);
}

/* The packet may retire as soon as the miniport has it, but is not used again before the paging lock is free. */
static void hand_over(struct vmm_sched *sched, struct vmm_hw_packet *packet)
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
		.HwQueueProgressFenceCpuVa = vmm_sync_owned_word(queue->fence),
	};
	uint64_t id = packet->id;

	vmm_os_mutex_lock(&adapter->state_lock);
	vmm_list_remove(&packet->link);
	vmm_list_push_back(&queue->running, &packet->link);
	if (!queue->running_count++) {
		queue->since_ns = vmm_os_now_ns(adapter->os);
		queue->looked = false;
	}
	queue->handed_id = id;
	sched->hw_running++;
	vmm_os_mutex_unlock(&adapter->state_lock);
	atomic_fetch_sub(&sched->hw->waiting, 1);
	vmm_event(adapter->observe, VIDMM_EVENT_QUEUE, context->device->process->id, queue->handle,
		  0, id, context->node, 0, args.DmaBufferSize);
	vmm_watch_submitted(sched);
	NTSTATUS status = vmm_port_submit_to_hw_queue(adapter->port, &args);
	/* SUB-27: that memory is not the miniport's any more. */
	if (args.DmaBufferPrivateDataSize)
		memset(packet->private_data, 0xDD, args.DmaBufferPrivateDataSize);
	if (vmm_unlikely(!NT_SUCCESS(status)))
		refused(queue, id, status);
}

static bool may_run(const struct vmm_sched *sched, const struct vmm_hw_queue *queue)
{
	const struct vmm_hw_context *context = queue->context;
	struct vmm_adapter *adapter = sched->adapter;
	uint32_t limit = sched->caps->hw_in_flight[context->node];

	if (atomic_load(&adapter->removed) || atomic_load(&adapter->recovering) ||
	    atomic_load(&sched->halted) ||
	    (atomic_load(&sched->hw->resetting) >> context->node & 1)) /* TDR-21 */
		return false;
	vmm_os_mutex_lock(&adapter->state_lock);
	bool runs = context->state == VMM_HW_RUNNING && (!limit || queue->running_count < limit);
	vmm_os_mutex_unlock(&adapter->state_lock);
	return runs;
}

static bool pass_sync(struct vmm_sched *sched, struct vmm_hw_packet *packet)
{
	if (!vmm_hw_sync_passed(packet))
		return false;
	vmm_os_mutex_lock(&sched->adapter->state_lock);
	vmm_list_remove(&packet->link);
	vmm_list_push_back(&packet->queue->unused, &packet->link);
	vmm_os_mutex_unlock(&sched->adapter->state_lock);
	atomic_fetch_sub(&sched->hw->waiting, 1);
	return true;
}

/* False: the rest of it has to wait, for something that the worker hears of. */
static bool pump_first(struct vmm_sched *sched, struct vmm_hw_queue *queue)
{
	struct vmm_hw_packet *packet = vmm_hw_first(&queue->waiting);

	if (atomic_load(&queue->context->device->error) != VMM_DEVICE_OK) {
		vmm_hw_drop_waiting(queue);
		return true;
	}
	if (packet->sync)
		return pass_sync(sched, packet);
	if (!may_run(sched, queue) || prepare(sched, packet) != VMM_OK)
		return atomic_load(&queue->context->device->error) != VMM_DEVICE_OK;
	if (!vmm_timeline_done(sched->adapter, sched->adapter->paging_timeline,
			       packet->paging_needed)) {
		vmm_queue_drain_locked(sched); /* the paging may not be with the GPU yet */
		if (!vmm_timeline_done(sched->adapter, sched->adapter->paging_timeline,
				       packet->paging_needed))
			return false;
	}
	if (!NT_SUCCESS(vmm_hw_tell_properties(queue->context)))
		return false;
	hand_over(sched, packet);
	return true;
}

static void pump_context(struct vmm_sched *sched, struct vmm_hw_context *context)
{
	struct vmm_list *link;

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

	if (vmm_likely(!hw) || !atomic_load(&hw->waiting))
		return;
	/* Who was to have the next memory first; while it waits nobody else gets any. */
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

void vmm_hw_drop_waiting(struct vmm_hw_queue *queue)
{
	struct vmm_sched *sched = queue->context->device->adapter->sched;

	if (sched->hw->starving == queue->context->device)
		sched->hw->starving = NULL;
	while (!vmm_list_empty(&queue->waiting)) {
		struct vmm_hw_packet *packet = vmm_hw_first(&queue->waiting);

		if (packet->sync)
			vmm_hw_sync_drop(packet);
		vmm_os_mutex_lock(&sched->adapter->state_lock);
		vmm_list_remove(&packet->link);
		vmm_list_push_back(&queue->unused, &packet->link);
		vmm_hw_release_locked(packet);
		vmm_os_mutex_unlock(&sched->adapter->state_lock);
		atomic_fetch_sub(&sched->hw->waiting, 1);
	}
}

/* ---- commands ---- */

/* What a packet keeps as long as the queue is there, which its process pays for. */
static void *keep(const struct vmm_hw_queue *queue, uint64_t bytes)
{
	const struct vmm_process *process = queue->context->device->process;

	if (!vmm_process_charge_queued(process, queue->handle, "a packet of a hardware queue",
				       bytes))
		return NULL;
	void *memory = vmm_calloc(1, bytes);
	if (!memory)
		vmm_account_refund(process->account, bytes);
	return memory;
}

static void let_go(const struct vmm_hw_queue *queue, void *memory, uint64_t bytes)
{
	if (memory)
		vmm_account_refund(queue->context->device->process->account, bytes);
	vmm_free(memory);
}

void vmm_hw_free_packet(struct vmm_hw_packet *packet)
{
	let_go(packet->queue, packet->private_data, packet->private_room);
	let_go(packet->queue, packet, sizeof(*packet));
}

struct vmm_hw_packet *vmm_hw_take_packet(struct vmm_hw_queue *queue)
{
	struct vmm_adapter *adapter = queue->context->device->adapter;
	struct vmm_hw_packet *packet = NULL;

	vmm_os_mutex_lock(&adapter->state_lock);
	if (!vmm_list_empty(&queue->unused)) {
		packet = vmm_hw_first(&queue->unused);
		vmm_list_remove(&packet->link);
	}
	vmm_os_mutex_unlock(&adapter->state_lock);
	if (packet)
		return packet;
	packet = keep(queue, sizeof(*packet));
	if (packet) {
		packet->queue = queue;
		vmm_list_init(&packet->link);
	}
	return packet;
}

void vmm_hw_put_packet(struct vmm_hw_packet *packet)
{
	struct vmm_adapter *adapter = packet->queue->context->device->adapter;

	vmm_os_mutex_lock(&adapter->state_lock);
	vmm_list_push_back(&packet->queue->unused, &packet->link);
	vmm_os_mutex_unlock(&adapter->state_lock);
}

static bool keep_private(struct vmm_hw_packet *packet, const struct vmm_hw_command *command)
{
	packet->private_bytes = command->private_bytes;
	if (!command->private_bytes)
		return true;
	if (packet->private_room < command->private_bytes) {
		void *more = keep(packet->queue, command->private_bytes);

		if (!more)
			return false;
		let_go(packet->queue, packet->private_data, packet->private_room);
		packet->private_data = more;
		packet->private_room = command->private_bytes;
	}
	memcpy(packet->private_data, command->private_data, command->private_bytes);
	return true;
}

static NTSTATUS check(const struct vmm_hw_queue *queue, const struct vmm_hw_command *command)
{
	const struct vmm_device *device = queue->context->device;
	struct vmm_observe *observe = device->adapter->observe;

	if (command->id <= queue->last_id || command->id == UINT64_MAX) { /* MFN-38 */
		vmm_finding(
			observe, "SUB-27", device->process->id, queue->handle,
			"MFN-37: command %llu for hardware queue 0x%08x: the one before was %llu, "
			"ids rise and never reach the largest",
			(unsigned long long)command->id, queue->handle,
			(unsigned long long)queue->last_id);
		return STATUS_INVALID_PARAMETER;
	}
	if (command->private_bytes > VMM_HW_PRIVATE_BYTES_MAX) {
		vmm_finding(observe, "Q-60", device->process->id, queue->handle,
			    "a command for hardware queue 0x%08x has %u bytes of private data, at "
			    "most %u are taken",
			    queue->handle, command->private_bytes, VMM_HW_PRIVATE_BYTES_MAX);
		return STATUS_INVALID_PARAMETER;
	}
	if (!command->primaries)
		return STATUS_SUCCESS;
	vmm_reason(observe, STATUS_NOT_SUPPORTED, device->process->id, queue->handle,
		   "a command for hardware queue 0x%08x writes %u primaries: presents on hardware "
		   "queues are not built",
		   queue->handle, command->primaries);
	return STATUS_NOT_SUPPORTED;
}

static NTSTATUS validate(const struct vmm_hw_packet *packet, const struct vmm_hw_command *command)
{
	const struct vmm_hw_queue *queue = packet->queue;
	const struct vmm_device *device = queue->context->device;
	DXGKARG_VALIDATESUBMITCOMMAND args = {
		.Commands = command->address,
		.CommandLength = command->bytes,
		.Flags.HardwareQueueSubmission = 1,
		.ContextCount = 1,
		.Context = {queue->kmd_queue},
		.pPrivateDriverData = packet->private_data,
		.PrivateDriverDataSize = command->private_bytes,
		.UmdPrivateDataSize = command->private_bytes,
		.HwQueueProgressFenceId = command->id,
	};

	return command->private_bytes ? vmm_command_validate(device, queue->handle, &args)
				      : STATUS_SUCCESS;
}

static NTSTATUS enqueue(struct vmm_hw_queue *queue, const struct vmm_hw_command *command)
{
	struct vmm_sched *sched = queue->context->device->adapter->sched;
	struct vmm_hw_packet *packet = vmm_hw_take_packet(queue);

	if (!packet)
		return STATUS_NO_MEMORY;
	NTSTATUS status =
		keep_private(packet, command) ? validate(packet, command) : STATUS_NO_MEMORY;
	if (!NT_SUCCESS(status)) {
		vmm_hw_put_packet(packet);
		return status;
	}
	packet->id = command->id;
	packet->address = command->address;
	packet->bytes = command->bytes;
	queue->last_id = command->id;
	vmm_list_push_back(&queue->waiting, &packet->link);
	atomic_fetch_add(&sched->hw->waiting, 1);
	return STATUS_SUCCESS;
}

NTSTATUS vmm_hw_submit(struct vmm_device *device, const struct vmm_hw_command *command)
{
	struct vmm_adapter *adapter = device->adapter;

	vmm_paging_lock(adapter);
	struct vmm_hw_queue *queue = vmm_hw_find_queue_locked(device, command->queue);
	NTSTATUS status = queue ? check(queue, command) : STATUS_INVALID_PARAMETER;

	/* Meanwhile (TDR-07). */
	if (NT_SUCCESS(status) && atomic_load(&device->error) != VMM_DEVICE_OK)
		status = STATUS_DEVICE_REMOVED;
	if (NT_SUCCESS(status))
		status = enqueue(queue, command);
	if (NT_SUCCESS(status))
		vmm_hw_pump_locked(adapter->sched);
	bool left = NT_SUCCESS(status) && atomic_load(&adapter->sched->hw->waiting);
	vmm_paging_unlock(adapter);
	if (left) /* what it waits for may have come before it was counted */
		vmm_worker_wake(adapter->sched);
	return status;
}
