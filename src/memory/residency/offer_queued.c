/* SPDX-License-Identifier: MIT */
/*
 * Offers through an allocation list (OFR-10, DMA-24), and from WDDM 2.0 on every offer of an
 * allocation that queued packets of the device may access (OFR-01). They take effect when the DMA
 * buffer or the packets have been processed, not before. The DPC that completes the buffer runs no
 * code for them. The next query of the offer, or the next search for a victim, puts offers into
 * effect that have become due.
 */
#include "memory/residency/residency.h"
#include "memory/state/state.h"

void vmm_allocation_set_offer(struct vmm_allocation *allocation, uint32_t priority)
{
	vmm_assert_held(&allocation->adapter->paging_lock);
	allocation->offer = (uint8_t)priority;
	vmm_allocation_mark(allocation, VMM_MARK_OFFERED, priority != 0);
	vmm_allocation_reclass(allocation);
}

void vmm_offer_after_locked(struct vmm_instance *instance, uint32_t priority, uint32_t timeline,
			    uint64_t sequence)
{
	struct vmm_allocation *allocation = instance->allocation;
	struct vmm_queued_offer *offer = &allocation->queued_offer;

	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	vmm_assert(vmm_instance_is_valid_locked(instance));
	offer->after = NULL;
	if (!allocation->offer_queued)
		vmm_list_push_back(&allocation->adapter->memory->queued_offers, &offer->link);
	allocation->offer_queued = (uint8_t)priority;
	vmm_allocation_mark(allocation, VMM_MARK_OFFER_QUEUED, true);
	offer->handle = instance->handle;
	offer->timeline = timeline;
	offer->sequence = sequence;
}

void vmm_offer_after_device(const struct vmm_ref *ref, uint32_t priority)
{
	vmm_assert_held(&ref->allocation->adapter->paging_lock);
	vmm_offer_after_locked(ref->instance, priority, 0, 0);
	ref->allocation->queued_offer.after = ref;
}

static bool is_due(const struct vmm_adapter *adapter, const struct vmm_queued_offer *offer)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&adapter->paging_lock);
	return offer->after ? vmm_ref_queued_is_done(offer->after)
			    : vmm_timeline_done(adapter, offer->timeline, offer->sequence);
}

void vmm_offer_cancel(struct vmm_allocation *allocation)
{
	vmm_assert_held(&allocation->adapter->paging_lock);
	if (!allocation->offer_queued)
		return;
	allocation->offer_queued = 0;
	vmm_allocation_mark(allocation, VMM_MARK_OFFER_QUEUED, false);
	vmm_list_remove(&allocation->queued_offer.link);
}

static bool has_cpu_lock(const struct vmm_allocation *allocation)
{
	const struct vmm_list *link;

	vmm_list_for_each (link, &allocation->instances)
		if (vmm_locks(vmm_container_of(link, struct vmm_instance, sibling)))
			return true;
	return false;
}

bool vmm_offer_apply_due(struct vmm_allocation *allocation)
{
	const struct vmm_queued_offer offer = allocation->queued_offer;
	uint32_t priority = allocation->offer_queued;
	struct vmm_observe *observe = allocation->adapter->observe;

	vmm_assert_held(&allocation->adapter->paging_lock);
	vmm_assert(vmm_allocation_is_valid_locked(allocation));
	if (!priority || !is_due(allocation->adapter, &offer))
		return allocation->offer;
	vmm_offer_cancel(allocation);
	if (has_cpu_lock(allocation)) {
		vmm_finding(observe, "OFR-08", allocation->owner, offer.handle,
			    "the DMA buffer that offers 0x%08x has been processed, but the CPU "
			    "has the "
			    "allocation locked: it is not offered",
			    offer.handle);
		return allocation->offer;
	}
	vmm_allocation_set_offer(allocation, priority);
	vmm_event(observe, VIDMM_EVENT_OFFER, allocation->owner, offer.handle, 0,
		  allocation->size_bytes, priority, offer.sequence, 0);
	return true;
}

void vmm_offers_apply_due(struct vmm_memory *memory)
{
	struct vmm_list *link, *next;

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_list_for_each_safe (link, next, &memory->queued_offers)
		(void)vmm_offer_apply_due(
			vmm_container_of(link, struct vmm_allocation, queued_offer.link));
}
