/* SPDX-License-Identifier: MIT */
/*
 * Packets of hardware queues: their memory, which lives as long as the queue, and their end.
 */
#include <string.h>

#include "sched/resets/hw_private.h"
#include "sched/resets/resets.h"

/* Allocates memory that lives as long as the queue, charged to its process. */
static void *alloc_charged(const struct vmm_hw_queue *queue, uint64_t bytes)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_process *process = queue->context->device->process;

	vmm_assert_held(&queue->context->device->adapter->paging_lock);
	if (!vmm_process_charge_queued(process, queue->handle, "a packet of a hardware queue",
				       bytes))
		return NULL;
	void *memory = vmm_calloc(1, bytes);
	if (!memory)
		vmm_account_refund(process->account, bytes);
	return memory;
}

static void free_charged(const struct vmm_hw_queue *queue, void *memory, uint64_t bytes)
{
	if (memory)
		vmm_account_refund(queue->context->device->process->account, bytes);
	vmm_free(memory);
}

void vmm_hw_free_packet(struct vmm_hw_packet *packet)
{
	vmm_dma_memory_destroy(packet->queue->context->device, &packet->memory);
	free_charged(packet->queue, packet->private_data, packet->private_capacity);
	free_charged(packet->queue, packet, sizeof(*packet));
}

/* Takes a packet from one of the two lists of unused ones, or allocates one. */
static struct vmm_hw_packet *take(struct vmm_hw_queue *queue, const struct vmm_list *unused)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = queue->context->device->adapter;
	struct vmm_hw_packet *packet = NULL;

	vmm_assert_held(&queue->context->device->adapter->paging_lock);
	vmm_state_lock(adapter);
	if (!vmm_list_empty(unused)) {
		packet = vmm_hw_first(unused);
		vmm_list_remove(&packet->link);
	}
	vmm_state_unlock(adapter);
	if (packet)
		return packet;
	packet = alloc_charged(queue, sizeof(*packet));
	if (packet) {
		packet->queue = queue;
		vmm_list_init(&packet->link);
	}
	return packet;
}

void vmm_hw_put_packet_locked(struct vmm_hw_packet *packet)
{
	struct vmm_hw_queue *queue = packet->queue;

	vmm_assert_held(&queue->context->device->adapter->state_lock);
	queue->context->device->presents -= packet->present;
	packet->present = false;
	vmm_list_push_back(packet->memory.range ? &queue->unused_presents : &queue->unused,
			   &packet->link);
}

void vmm_hw_put_packet(struct vmm_hw_packet *packet)
{
	struct vmm_adapter *adapter = packet->queue->context->device->adapter;

	vmm_state_lock(adapter);
	vmm_hw_put_packet_locked(packet);
	vmm_state_unlock(adapter);
}

static bool reserve_private(struct vmm_hw_packet *packet, uint32_t bytes)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&packet->queue->context->device->adapter->paging_lock);
	if (packet->private_capacity >= bytes)
		return true;
	void *larger = alloc_charged(packet->queue, bytes);

	if (!larger)
		return false;
	free_charged(packet->queue, packet->private_data, packet->private_capacity);
	packet->private_data = larger;
	packet->private_capacity = bytes;
	return true;
}

struct vmm_hw_packet *vmm_hw_take_packet(struct vmm_hw_queue *queue)
{
	vmm_assert_held(&queue->context->device->adapter->paging_lock);
	return take(queue, &queue->unused);
}

struct vmm_hw_packet *vmm_hw_take_present(struct vmm_hw_queue *queue)
{
	vmm_assert_held(&queue->context->device->adapter->paging_lock);
	struct vmm_hw_packet *packet = take(queue, &queue->unused_presents);

	if (!packet || reserve_private(packet, queue->context->present_private_bytes))
		return packet;
	vmm_hw_put_packet(packet);
	return NULL;
}

bool vmm_hw_copy_private(struct vmm_hw_packet *packet, const struct vmm_hw_command *command)
{
	packet->private_bytes = command->private_bytes;
	if (!command->private_bytes)
		return true;
	if (!reserve_private(packet, command->private_bytes))
		return false;
	memcpy(packet->private_data, command->private_data, command->private_bytes);
	return true;
}

void vmm_hw_release_locked(struct vmm_hw_packet *packet)
{
	struct vmm_adapter *adapter = packet->queue->context->device->adapter;

	vmm_assert_held(&adapter->state_lock);
	if (!packet->held)
		return;
	packet->held = false;
	vmm_work_done_locked(adapter, vmm_hw_timeline(adapter), &packet->work);
}

void vmm_hw_retire_locked(struct vmm_hw_packet *packet)
{
	struct vmm_hw_queue *queue = packet->queue;
	struct vmm_sched *sched = queue->context->device->adapter->sched;

	vmm_assert_held(&sched->adapter->state_lock);
	vmm_list_remove(&packet->link);
	vmm_hw_put_packet_locked(packet);
	queue->running_count--;
	queue->since_ns = vmm_os_now_ns(sched->adapter->os);
	queue->fence_read = false;
	sched->hw_running--;
	vmm_hw_release_locked(packet);
}
