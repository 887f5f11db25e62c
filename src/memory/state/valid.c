/* SPDX-License-Identifier: MIT */
/* Predicates of instances and allocations, which the modules assert where they are entered. */
#include "memory/allocation.h"

bool vmm_instance_is_valid_locked(const struct vmm_instance *instance)
{
	bool resident = instance->place == VMM_PLACEMENT_MEMORY ||
			instance->place == VMM_PLACEMENT_APERTURE;

	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	return instance->place <= VMM_PLACEMENT_LOST && (instance->segment != 0) == resident &&
	       (resident || !instance->address) && instance->state <= VMM_INSTANCE_RETIRED &&
	       instance->cache <= VMM_CACHE_GPU &&
	       (instance->fast_lock || !instance->has_fast_lock);
}

bool vmm_allocation_is_valid_locked(const struct vmm_allocation *allocation)
{
	const uint32_t marks = atomic_load_explicit(&allocation->marks, memory_order_relaxed);

	vmm_assert_held(&allocation->adapter->paging_lock);
	return allocation->size_bytes && allocation->size_bytes % VMM_PAGE_SIZE == 0 &&
	       allocation->instance_count && !vmm_list_empty(&allocation->instances) &&
	       allocation->serving == (allocation->read_set & allocation->write_set) << 1 &&
	       !(marks & VMM_MARK_RENAMED) == (allocation->instance_count == 1) &&
	       !(marks & VMM_MARK_OFFERED) == !allocation->offer &&
	       !(marks & VMM_MARK_OFFER_QUEUED) == !allocation->offer_queued;
}
