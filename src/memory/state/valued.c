/* SPDX-License-Identifier: MIT */
/*
 * A policy of the embedder (include/vidmm/policy.h, Q-350): its functions are called here alone. An
 * instance has the policy's state in a block that is allocated with the instance, and, if the order
 * of values is kept, a position in the queue of its class and segment (policy/queue.h).
 *
 * The policy's `used` is called when the journal of uses is read (lru.c), so nothing here runs when
 * a submission records a use. A position is computed anew only after a use, a change of the class,
 * or when the policy spares the instance. Whatever values the policy returns, the queue is in
 * order: it holds a copy of each.
 */
#include "memory/state/state.h"

vmm_status vmm_valued_create(struct vmm_memory *memory, struct vmm_instance *instance)
{
	const struct vmm_adapter_eviction *eviction = &memory->adapter->eviction;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_likely(!eviction->value))
		return VMM_OK;
	instance->valued =
		vmm_calloc(1, sizeof(*instance->valued) + vmm_align_up(eviction->state_bytes, 8));
	if (!instance->valued)
		return VMM_NO_MEMORY;
	instance->valued->instance = instance;
	return VMM_OK;
}

void vmm_valued_free(struct vmm_instance *instance)
{
	vmm_free(instance->valued);
	instance->valued = NULL;
}

static void *state_of(const struct vmm_memory *memory, struct vmm_instance *instance)
{
	return memory->adapter->eviction.state_bytes ? instance->valued->state : NULL;
}

static void insert(struct vmm_memory *memory, struct vmm_instance *instance, uint64_t value)
{
	struct vmm_valued *valued = instance->valued;
	struct vmm_segment *segment = vmm_memory_segment(memory, instance->segment);

	valued->node.value = value;
	valued->node.order = instance->last_use;
	valued->queue = &segment->queue[instance->class_index];
	vmm_policy_insert(valued->queue, &valued->node);
}

static void take_out(struct vmm_valued *valued)
{
	if (valued->queue)
		vmm_policy_remove(valued->queue, &valued->node);
	valued->queue = NULL;
}

/* The arrival is a use in the journal: until that is read, the position does not matter. */
void vmm_valued_enter(struct vmm_memory *memory, struct vmm_instance *instance)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	instance->valued->arrived = true;
	instance->valued->node.order = 0;
}

void vmm_valued_leave(struct vmm_instance *instance)
{
	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	take_out(instance->valued);
}

void vmm_valued_use(struct vmm_memory *memory, struct vmm_instance *instance, uint64_t submission,
		    uint32_t flags)
{
	struct vmm_valued *valued = instance->valued;
	const struct vidmm_policy_use use = {
		.submission = submission,
		.flags = flags | (valued->arrived ? VIDMM_POLICY_ARRIVED : 0),
		.process = instance->allocation->owner,
		.allocation = instance->handle,
		.size_bytes = instance->allocation->size_bytes,
	};

	vmm_assert_held(&memory->adapter->paging_lock);
	if (submission <= instance->uses.last && !valued->arrived)
		return;
	valued->arrived = false;
	memory->adapter->eviction.used(state_of(memory, instance), &use);
}

uint64_t vmm_valued_ask(struct vmm_memory *memory, struct vmm_instance *instance, bool leaving)
{
	const struct vidmm_policy_candidate candidate = {
		.process = instance->allocation->owner,
		.allocation = instance->handle,
		.size_bytes = instance->allocation->size_bytes,
		.used = instance->last_use,
		.arrived = instance->uses.arrival,
		.now = memory->use_counter + 1,
		.submission = vmm_lru_submission(memory),
		.last_submission = instance->uses.last,
		.intervals = instance->uses.interval,
		.interval_count = instance->uses.count,
		.leaving = leaving,
	};

	vmm_assert_held(&memory->adapter->paging_lock);
	return memory->adapter->eviction.value(state_of(memory, instance), &candidate);
}

void vmm_valued_update(struct vmm_memory *memory, struct vmm_instance *instance)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	if (memory->order->walk != VMM_POLICY_LEAST_VALUE)
		return;
	take_out(instance->valued);
	insert(memory, instance, vmm_valued_ask(memory, instance, false));
}

bool vmm_valued_spare(struct vmm_memory *memory, struct vmm_instance *instance)
{
	uint64_t value = vmm_valued_ask(memory, instance, true);

	vmm_assert_held(&memory->adapter->paging_lock);
	if (value <= instance->valued->node.value)
		return false;
	memory->use_counter++; /* `now` of the question, which the policy may have stored */
	take_out(instance->valued);
	insert(memory, instance, value);
	return true;
}
