/* SPDX-License-Identifier: MIT */
/*
 * Use of instances by incomplete packets (use.h). An instance stores for each timeline only the
 * newest packet of each kind of use. If that packet completed out of order (SCH-05), the list of
 * incomplete packets is searched for older ones, under the state lock.
 */
#include "memory/use.h"

static bool references(const struct vmm_work *work, const struct vmm_instance *instance,
		       enum vmm_use use) VMM_REQUIRES(vmm_state_lock_class)
{
	vmm_assert_held(&instance->allocation->adapter->state_lock);
	if (use == VMM_USE_ACTIVE && !work->prepared)
		return false;
	/* The packet needs all memory that its device keeps resident. (RES-08) */
	if (use == VMM_USE_ACTIVE && instance->allocation->adapter->residency_lists)
		return true;
	for (uint32_t i = 0; i < work->count; i++)
		if (work->instances[i] == instance && (use != VMM_USE_WRITE || work->writes[i] & 1))
			return true;
	return false;
}

/*
 * Packet `newest`, the last with that use of the instance, is complete, but an earlier one of
 * another context may not be. Returns the newest incomplete one, or 0.
 */
VMM_COLD static uint64_t newest_incomplete_use(const struct vmm_instance *instance, uint32_t t,
					       uint64_t newest, enum vmm_use use)
{
	struct vmm_adapter *adapter = instance->allocation->adapter;
	const struct vmm_list *link;
	uint64_t found = 0;

	vmm_state_lock(adapter);
	vmm_list_for_each (link, &adapter->timeline[t].work) {
		const struct vmm_work *work = vmm_container_of(link, struct vmm_work, link);

		if (work->sequence >= newest)
			break;
		if (references(work, instance, use))
			found = work->sequence;
	}
	vmm_state_unlock(adapter);
	return found;
}

bool vmm_instance_busy(const struct vmm_instance *instance, enum vmm_use use, uint32_t *timeline,
		       uint64_t *sequence)
{
	const struct vmm_adapter *adapter = instance->allocation->adapter;
	const struct vmm_timeline *at = adapter->timeline;
	const _Atomic uint64_t *last = use == VMM_USE_WRITE    ? instance->written
				       : use == VMM_USE_ACTIVE ? instance->active
							       : instance->queued;

	for (uint32_t t = 0; t < vmm_timeline_count(adapter); t++, at++, last++) {
		uint64_t s = atomic_load_explicit(last, memory_order_relaxed);

		if (s <= atomic_load_explicit(&at->completed, memory_order_acquire))
			continue;
		if (vmm_unlikely(atomic_load_explicit(&at->ahead, memory_order_relaxed)) &&
		    vmm_timeline_is_ahead(adapter, t, s)) {
			s = newest_incomplete_use(instance, t, s, use);
			if (!s)
				continue;
		}
		if (timeline)
			*timeline = t;
		if (sequence)
			*sequence = s;
		if (vmm_unlikely(t > adapter->paging_timeline)) /* SCH-11 */
			atomic_store(&((struct vmm_adapter *)adapter)->hw_blocks_eviction, true);
		return true;
	}
	return false;
}

bool vmm_instance_is_referenced(const struct vmm_instance *instance, bool *submitted)
{
	struct vmm_adapter *adapter = instance->allocation->adapter;
	bool referenced = false;

	*submitted = true;
	vmm_state_lock(adapter);
	for (uint32_t t = 0; t < adapter->node_count; t++) {
		const struct vmm_list *link;

		vmm_list_for_each (link, &adapter->timeline[t].work) {
			const struct vmm_work *work = vmm_container_of(link, struct vmm_work, link);

			if (!references(work, instance, VMM_USE_ANY))
				continue;
			referenced = true;
			*submitted &= work->submitted;
		}
	}
	vmm_state_unlock(adapter);
	return referenced;
}

bool vmm_instance_unwritten_locked(const struct vmm_instance *instance, uint32_t timeline,
				   uint64_t sequence)
{
	const struct vmm_adapter *adapter = instance->allocation->adapter;
	const struct vmm_list *link;

	vmm_assert_held(&instance->allocation->adapter->state_lock);
	if (vmm_timeline_passed(adapter, timeline, sequence))
		return false;
	if (timeline == adapter->paging_timeline)
		return true;
	vmm_list_for_each (link, &adapter->timeline[timeline].work) {
		const struct vmm_work *work = vmm_container_of(link, struct vmm_work, link);

		if (work->sequence > sequence)
			break;
		if (references(work, instance, VMM_USE_WRITE))
			return true;
	}
	return false;
}
