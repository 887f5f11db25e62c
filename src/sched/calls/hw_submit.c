/* SPDX-License-Identifier: MIT */
/*
 * The calls that queue commands, waits and signals in hardware queues (SUB-27, SYN-34).
 */
#include "sched/resets/hw_private.h"
#include "sched/calls/calls.h"

NTSTATUS vmm_hw_check_id(const struct vmm_hw_queue *queue, uint64_t id)
{
	const struct vmm_device *device = queue->context->device;

	vmm_assert_held(&device->adapter->paging_lock);
	if (id > queue->last_id && id != UINT64_MAX) /* MFN-38 */
		return STATUS_SUCCESS;
	return vmm_refuse_rule(
		device->adapter->observe, STATUS_INVALID_PARAMETER, "SUB-27", device->process->id,
		queue->handle,
		"MFN-37: command %llu for hardware queue 0x%08x: the id must be larger "
		"than %llu, that of the command before, and less than the largest",
		(unsigned long long)id, queue->handle, (unsigned long long)queue->last_id);
}

static NTSTATUS check(const struct vmm_hw_queue *queue, const struct vmm_hw_command *command)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_device *device = queue->context->device;
	struct vmm_observe *observe = device->adapter->observe;
	NTSTATUS status = vmm_hw_check_id(queue, command->id);

	vmm_assert_held(&device->adapter->paging_lock);
	if (!NT_SUCCESS(status))
		return status;
	if (command->private_bytes > VMM_HW_PRIVATE_BYTES_MAX)
		return vmm_refuse_rule(
			observe, STATUS_INVALID_PARAMETER, "Q-60", device->process->id,
			queue->handle,
			"a command for hardware queue 0x%08x has %u bytes of private data, at "
			"most %u are allowed",
			queue->handle, command->private_bytes, VMM_HW_PRIVATE_BYTES_MAX);
	if (!command->primaries)
		return STATUS_SUCCESS;
	return vmm_refuse_reason(
		observe, STATUS_NOT_SUPPORTED, device->process->id, queue->handle,
		"a command for hardware queue 0x%08x writes %u primaries: commands that write to "
		"what a source shows are not built",
		queue->handle, command->primaries);
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
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_hw_packet *packet = vmm_hw_take_packet(queue);

	vmm_assert_held(&queue->context->device->adapter->paging_lock);
	if (!packet)
		return STATUS_NO_MEMORY;
	NTSTATUS status =
		vmm_hw_copy_private(packet, command) ? validate(packet, command) : STATUS_NO_MEMORY;
	if (!NT_SUCCESS(status)) {
		vmm_hw_put_packet(packet);
		return status;
	}
	packet->id = command->id;
	packet->address = command->address;
	packet->bytes = command->bytes;
	vmm_hw_enqueue(packet);
	return STATUS_SUCCESS;
}

void vmm_hw_enqueue(struct vmm_hw_packet *packet)
{
	struct vmm_hw_queue *queue = packet->queue;
	struct vmm_adapter *adapter = queue->context->device->adapter;

	vmm_assert_held(&adapter->paging_lock);
	vmm_assert(packet->id > queue->last_id);
	queue->last_id = packet->id;
	vmm_list_push_back(&queue->waiting, &packet->link);
	atomic_fetch_add(&adapter->sched->hw->waiting, 1);
	vmm_hw_pump_locked(adapter->sched);
}

void vmm_hw_enqueued(struct vmm_adapter *adapter)
{
	/* The event that it waits for may have come before `waiting` counted it. */
	if (atomic_load(&adapter->sched->hw->waiting))
		vmm_worker_wake(adapter->sched);
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
	vmm_paging_commit(adapter);
	if (NT_SUCCESS(status))
		vmm_hw_enqueued(adapter);
	return status;
}

NTSTATUS vmm_hw_submit_sync(struct vmm_device *device, const struct vmm_hw_sync_request *request)
{
	struct vmm_adapter *adapter = device->adapter;
	struct vmm_hw_sync *sync = NULL;
	bool queued;
	NTSTATUS status = vmm_hw_sync_create(device, request, &sync);

	if (!NT_SUCCESS(status))
		return status;
	vmm_paging_lock(adapter);
	status = vmm_hw_sync_enqueue_locked(device, request, sync, &queued);
	if (queued)
		vmm_hw_pump_locked(adapter->sched);
	bool left = NT_SUCCESS(status) && atomic_load(&adapter->sched->hw->waiting);
	vmm_paging_commit(adapter);
	if (left)
		vmm_worker_wake(adapter->sched);
	return status;
}
