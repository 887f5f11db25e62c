/* SPDX-License-Identifier: MIT */
/*
 * The memory of a DMA buffer with its lists, charged to the process of its context.
 *
 * If the miniport wants DMA buffers in an aperture (DMA-05), preparation maps the buffer. The
 * mapping stays for the next use. It is undone when aperture space is needed and neither the
 * miniport nor the GPU has the buffer.
 */
#include "sched/data/data.h"

static uint32_t list_size(const struct vmm_context *context)
{
	return context->list_size > DXGK_PRESENT_MAX_INDEX ? context->list_size
							   : DXGK_PRESENT_MAX_INDEX; /* DMA-32 */
}

/* Charges the process for a buffer and its copies of the lists. */
static bool charge(const struct vmm_context *context, struct vmm_dma *dma)
{
	const struct vmm_process *process = context->device->process;
	uint64_t list = sizeof(*dma->list) + sizeof(*dma->instances) + sizeof(*dma->uses);
	uint64_t bytes = sizeof(*dma) + vmm_align_up(context->dma_bytes, VMM_PAGE_SIZE) +
			 context->dma_private_bytes + list_size(context) * list +
			 (uint64_t)context->patch_size * sizeof(*dma->patches);

	if (vmm_likely(vmm_account_charge(process->account, bytes))) {
		dma->charged_bytes = bytes;
		return true;
	}
	vmm_reason(process->world->observe, VMM_NO_MEMORY, process->id, context->handle,
		   "a DMA buffer of %llu bytes with its lists: process %u has reached its limit of "
		   "system memory",
		   (unsigned long long)bytes, process->id);
	return false;
}

static void dma_free(struct vmm_adapter *adapter, struct vmm_dma *dma)
{
	vmm_account_refund(dma->context->device->process->account,
			   dma->charged_bytes + dma->memory.charged_bytes);
	if (vmm_unlikely(dma->memory.range != NULL))
		vmm_dma_memory_unmap(dma->context->device, &dma->memory);
	vmm_paging_lock(adapter);
	if (dma->place.segment) {
		vmm_list_remove(&dma->mapped);
		vmm_memory_dma_unmap_locked(adapter, &dma->place);
	}
	vmm_memory_flush_locked(adapter);
	vmm_memory_dma_destroy_locked(adapter, &dma->memory.backing);
	vmm_paging_commit(adapter);
	vmm_free(dma->private_data);
	vmm_free(dma->list);
	vmm_free(dma->instances);
	vmm_free(dma->uses);
	vmm_free(dma->patches);
	vmm_free(dma);
}

/* Without a segment set the buffer has the bus address of its system memory. (DMA-04) */
static vmm_status dma_memory(struct vmm_context *context, struct vmm_dma *dma)
{
	struct vmm_adapter *adapter = context->device->adapter;
	vmm_status status;

	if (context->by_address)
		return VMM_OK;
	vmm_paging_lock(adapter);
	status = vmm_memory_dma_create_locked(adapter, context->dma_bytes, &dma->memory.backing,
					      &dma->memory.bus_address);
	if (!context->dma_segment_set)
		dma->place.address = dma->memory.bus_address;
	vmm_paging_commit(adapter);
	return status;
}

void vmm_dma_pin(struct vmm_dma *dma)
{
	struct vmm_adapter *adapter = dma->context->device->adapter;

	enum vmm_dma_hold movable = VMM_DMA_MOVABLE;

	if (!dma->context->dma_segment_set ||
	    vmm_likely(atomic_compare_exchange_strong(&dma->hold, &movable, VMM_DMA_PINNED)))
		return;
	/* The state lock waits for the end of the unmapping. */
	vmm_state_lock(adapter);
	atomic_store(&dma->hold, VMM_DMA_PINNED);
	vmm_state_unlock(adapter);
}

void vmm_dma_pin_locked(struct vmm_dma *dma)
{
	vmm_assert_held(&dma->context->device->adapter->paging_lock);
	atomic_store_explicit(&dma->hold, VMM_DMA_PINNED, memory_order_relaxed);
}

void vmm_dma_unpin(struct vmm_dma *dma)
{
	/* A thread that then unmaps the buffer has seen its use end. */
	atomic_store_explicit(&dma->hold, VMM_DMA_MOVABLE, memory_order_release);
}

static void set_place(struct vmm_dma *dma, const struct vmm_dma_mapping *place)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = dma->context->device->adapter;

	vmm_assert_held(&dma->context->device->adapter->paging_lock);
	vmm_state_lock(adapter);
	dma->place = *place;
	vmm_state_unlock(adapter);
}

vmm_status vmm_dma_map(struct vmm_dma *dma)
{
	struct vmm_adapter *adapter = dma->context->device->adapter;

	vmm_assert_held(&dma->context->device->adapter->paging_lock);
	/* The adapter of the link on which the context runs; its aperture maps the buffer. */
	struct vmm_dma_mapping place = {.physical = dma->context->engine};

	if (dma->place.segment || !dma->context->dma_segment_set)
		return VMM_OK;
	vmm_status status = vmm_memory_dma_map_locked(adapter, &dma->memory.backing,
						      dma->context->dma_segment_set, &place);
	if (!vmm_ok(status) || status == VMM_PENDING)
		return status;
	set_place(dma, &place);
	vmm_list_push_back(&adapter->sched->mapped_dma, &dma->mapped);
	dma->memory.mapped_by = vmm_memory_flush_locked(adapter);
	return VMM_OK;
}

bool vmm_dma_unmap_unpinned(struct vmm_adapter *adapter, bool *left)
{
	struct vmm_list *at, *next;
	bool any = false;

	vmm_assert_held(&adapter->paging_lock);
	*left = false;
	vmm_list_for_each_safe (at, next, &adapter->sched->mapped_dma) {
		struct vmm_dma *dma = vmm_container_of(at, struct vmm_dma, mapped);
		enum vmm_dma_hold movable = VMM_DMA_MOVABLE;
		struct vmm_dma_mapping place = {0};

		vmm_state_lock(adapter);
		if (atomic_compare_exchange_strong(&dma->hold, &movable, VMM_DMA_UNMAPPING)) {
			place = dma->place;
			dma->place = (struct vmm_dma_mapping){0};
			atomic_store(&dma->hold, VMM_DMA_MOVABLE);
		}
		vmm_state_unlock(adapter);
		if (!place.segment) {
			*left = true;
			continue;
		}
		vmm_list_remove(&dma->mapped);
		vmm_memory_dma_unmap_locked(adapter, &place);
		any = true;
	}
	return any;
}

void vmm_dma_unmap_all(struct vmm_adapter *adapter)
{
	struct vmm_list *at, *next;

	vmm_assert_held(&adapter->paging_lock);
	vmm_list_for_each_safe (at, next, &adapter->sched->mapped_dma) {
		struct vmm_dma *dma = vmm_container_of(at, struct vmm_dma, mapped);
		const struct vmm_dma_mapping place = dma->place;

		set_place(dma, &(struct vmm_dma_mapping){0});
		vmm_list_remove(&dma->mapped);
		vmm_memory_dma_unmap_locked(adapter, &place);
	}
}

bool vmm_dma_another_is_pinned(struct vmm_adapter *adapter, const struct vmm_dma *wanting)
{
	struct vmm_list *at;

	vmm_assert_held(&adapter->paging_lock);
	vmm_list_for_each (at, &adapter->sched->mapped_dma) {
		struct vmm_dma *dma = vmm_container_of(at, struct vmm_dma, mapped);

		if (dma != wanting && atomic_load(&dma->hold) == VMM_DMA_PINNED)
			return true;
	}
	return false;
}

bool vmm_dma_pinned_at(struct vmm_adapter *adapter, uint64_t submission)
{
	struct vmm_list *at;
	bool found = false;

	vmm_assert_held(&adapter->paging_lock);
	vmm_state_lock(adapter);
	vmm_list_for_each (at, &adapter->sched->mapped_dma) {
		struct vmm_dma *dma = vmm_container_of(at, struct vmm_dma, mapped);

		if (atomic_load(&dma->hold) == VMM_DMA_PINNED && dma->submission <= submission)
			found = true;
	}
	vmm_state_unlock(adapter);
	return found;
}

void vmm_dma_init_links(struct vmm_dma *dma)
{
	vmm_list_init(&dma->pool);
	vmm_list_init(&dma->all);
	vmm_list_init(&dma->mapped);
	vmm_list_init(&dma->packet.link);
	vmm_list_init(&dma->part.link);
	vmm_list_init(&dma->work.link);
	vmm_list_init(&dma->copies);
	vmm_list_init(&dma->copy);
}

struct vmm_dma *vmm_dma_create(struct vmm_context *context)
{
	struct vmm_dma *dma = vmm_calloc(1, sizeof(*dma));
	const bool verify = context->device->adapter->verify_driver;
	uint32_t list = list_size(context);

	if (!dma || !charge(context, dma)) {
		vmm_free(dma);
		return NULL;
	}
	dma->context = context;
	vmm_dma_init_links(dma);
	dma->list = vmm_calloc(list, sizeof(*dma->list));
	dma->instances = vmm_calloc(list, sizeof(struct vmm_instance *));
	dma->uses = vmm_calloc(list, sizeof(*dma->uses));
	if (context->patch_size)
		dma->patches =
			vmm_port_output_memory(context->patch_size * sizeof(*dma->patches), verify);
	dma->work.device = context->device;
	dma->work.instances = dma->instances;
	dma->work.writes = dma->uses;
	/* DMA-07: zeroed once, then only the miniport writes it; NULL if it asked for none. */
	if (context->dma_private_bytes)
		dma->private_data = vmm_port_output_memory(context->dma_private_bytes, verify);
	if (!dma->list || !dma->instances || !dma->uses || (!dma->patches && context->patch_size) ||
	    (context->dma_private_bytes && !dma->private_data) ||
	    !vmm_ok(dma_memory(context, dma))) {
		dma_free(context->device->adapter, dma);
		return NULL;
	}
	return dma;
}

void vmm_dma_destroy_all(struct vmm_context *context)
{
	struct vmm_list *link, *next;

	vmm_list_for_each_safe (link, next, &context->all_dma)
		dma_free(context->device->adapter, vmm_container_of(link, struct vmm_dma, all));
}
