/* SPDX-License-Identifier: MIT */
/*
 * The paging timeline: submits the pending paging commands as one packet, numbers the packets, and
 * records which packet accesses an instance last. paging.c writes the commands.
 */
#include "memory/state/state.h"

uint64_t vmm_paging_sequence(const struct vmm_memory *memory)
{
	const struct vmm_adapter *adapter = memory->adapter;

	vmm_assert_held(&memory->adapter->paging_lock);
	return atomic_load_explicit(&adapter->timeline[adapter->paging_timeline].queued,
				    memory_order_relaxed) +
	       memory->pending;
}

static struct vmm_paging_portion portion_of(const struct vmm_memory *memory,
					    const struct vmm_paging_lane *lane)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_paging_buffer *buffer = &lane->buffer[lane->current_buffer];

	vmm_assert_held(&memory->adapter->paging_lock);
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

	vmm_assert_held(&adapter->paging_lock);
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

/*
 * Records the last paging packet that accesses the instance. If the packet moves the content, the
 * CPU waits for it as for a GPU write. Mapping and unmapping leave the bytes where the CPU sees
 * them.
 */
void vmm_paging_mark_instance(struct vmm_memory *memory, struct vmm_instance *instance,
			      bool moves_content)
{
	uint32_t t = memory->adapter->paging_timeline;
	uint64_t sequence = vmm_paging_sequence(memory);

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_fast_lock_disable(instance);
	vmm_mark_used(&instance->queued[t], sequence);
	if (moves_content)
		vmm_mark_used(&instance->written[t], sequence);
}

uint64_t vmm_paging_last_of(const struct vmm_instance *instance)
{
	uint32_t t = instance->allocation->adapter->paging_timeline;
	uint64_t queued = atomic_load_explicit(&instance->queued[t], memory_order_relaxed);
	uint64_t updated = atomic_load_explicit(&instance->updated, memory_order_relaxed);

	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	return vmm_max_u64(queued, updated);
}

void vmm_paging_switch_away(struct vmm_memory *memory, const struct vmm_instance *instance)
{
	const struct vmm_context_allocation *own = instance->allocation->of_context;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_likely(!own) || memory->resetting)
		return;
	/*
	 * Commands collected so far have their sequence numbers already, so they are submitted
	 * first. The switch gets the next number; `after` orders all later commands behind it
	 * (SUB-20).
	 */
	vmm_memory_flush_locked(memory->adapter);
	memory->after = vmm_max_u64(
		memory->after,
		memory->engine->switch_context(memory->adapter, own->device, own->context));
}
