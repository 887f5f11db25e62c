/* SPDX-License-Identifier: MIT */
/*
 * The pool of DMA buffers of a context: made when first needed, reused when the hardware is done with them, at most
 * VMM_DMA_BUFFERS_PER_CONTEXT in flight; the next submission then waits for the oldest.
 */
#include "sched/sched_private.h"

static void dma_free(struct vmm_adapter *adapter, struct vmm_dma *dma)
{
	vmm_paging_lock(adapter);
	if (dma->segment)
		vmm_memory_dma_unmap_locked(adapter, dma->segment, dma->range);
	vmm_memory_flush_locked(adapter);
	vmm_memory_dma_destroy_locked(adapter, &dma->backing);
	vmm_paging_unlock(adapter);
	vmm_free(dma->private_data);
	vmm_free(dma->list);
	vmm_free(dma->instances);
	vmm_free(dma->patches);
	vmm_free(dma);
}

static vmm_status dma_memory(struct vmm_context *context, struct vmm_dma *dma)
{
	struct vmm_adapter *adapter = context->device->adapter;
	vmm_status status;

	vmm_paging_lock(adapter);
	status = vmm_memory_dma_create_locked(adapter, context->dma_bytes, &dma->backing,
					      &dma->bus_address);
	dma->address = dma->bus_address;
	if (vmm_ok(status) && context->dma_segment_set) { /* DMA-05 */
		status = vmm_memory_dma_map_locked(adapter, &dma->backing, context->dma_segment_set,
						   &dma->segment, &dma->address, &dma->range);
		if (vmm_ok(status))
			dma->mapped_by = vmm_memory_flush_locked(adapter);
	}
	vmm_paging_unlock(adapter);
	return status;
}

static struct vmm_dma *dma_create(struct vmm_context *context)
{
	struct vmm_dma *dma = vmm_calloc(1, sizeof(*dma));

	if (!dma)
		return NULL;
	dma->context = context;
	vmm_list_init(&dma->pool);
	vmm_list_init(&dma->packet.link);
	dma->list = vmm_calloc(context->list_size, sizeof(*dma->list));
	dma->instances = vmm_calloc(context->list_size, sizeof(struct vmm_instance *));
	dma->patches = vmm_calloc(context->patch_size, sizeof(*dma->patches));
	/* DMA-07: zeroed once, then the miniport's; NULL when it asked for none. */
	if (context->dma_private_bytes)
		dma->private_data = vmm_calloc(1, context->dma_private_bytes);
	if (!dma->list || !dma->instances || !dma->patches ||
	    (context->dma_private_bytes && !dma->private_data) ||
	    !vmm_ok(dma_memory(context, dma))) {
		dma_free(context->device->adapter, dma);
		return NULL;
	}
	return dma;
}

/* *may_create in: would a new one do? out: there is a place in the pool for it, taken. *oldest: packet of those in flight. */
static struct vmm_dma *dma_take_free(struct vmm_context *context, bool *may_create,
				     uint64_t *oldest)
{
	struct vmm_adapter *adapter = context->device->adapter;
	struct vmm_dma *dma = NULL;

	vmm_os_mutex_lock(&adapter->state_lock);
	if (!vmm_list_empty(&context->free_dma)) {
		dma = vmm_container_of(context->free_dma.next, struct vmm_dma, pool);
		vmm_list_remove(&dma->pool);
	}
	*may_create = *may_create && !dma && context->dma_count < VMM_DMA_BUFFERS_PER_CONTEXT;
	context->dma_count += *may_create;
	*oldest = 0; /* another thread may hold one that it has not queued yet */
	for (uint32_t i = 0; i < VMM_DMA_BUFFERS_PER_CONTEXT; i++) {
		uint64_t sequence = context->all[i] ? context->all[i]->packet.sequence : 0;

		if (sequence && !vmm_timeline_done(adapter, context->node, sequence) &&
		    (!*oldest || sequence < *oldest))
			*oldest = sequence;
	}
	vmm_os_mutex_unlock(&adapter->state_lock);
	return dma;
}

/* Into the place that dma_take_free gave. */
static struct vmm_dma *dma_add(struct vmm_context *context)
{
	struct vmm_adapter *adapter = context->device->adapter;
	struct vmm_dma *dma = dma_create(context);

	vmm_os_mutex_lock(&adapter->state_lock);
	if (!dma)
		context->dma_count--;
	for (uint32_t i = 0; dma && i < VMM_DMA_BUFFERS_PER_CONTEXT; i++)
		if (!context->all[i]) {
			context->all[i] = dma;
			break;
		}
	vmm_os_mutex_unlock(&adapter->state_lock);
	return dma;
}

NTSTATUS vmm_dma_get(struct vmm_context *context, struct vmm_dma **result)
{
	struct vmm_adapter *adapter = context->device->adapter;
	bool no_memory = false;

	for (;;) {
		uint32_t seen = atomic_load(&adapter->progress);
		bool may_create = !no_memory;
		uint64_t oldest;
		struct vmm_dma *dma = dma_take_free(context, &may_create, &oldest);

		if (!dma && may_create) {
			dma = dma_add(context);
			no_memory = !dma;
		}
		if (dma) {
			*result = dma;
			return STATUS_SUCCESS;
		}
		/*
		 * Where there is no room for one more, those in flight do. With none in flight, and under the submit lock, which
		 * those who hold one are waiting for, nothing will come free.
		 */
		if (!oldest && (no_memory || vmm_os_mutex_held(&adapter->submit_lock)))
			return STATUS_NO_MEMORY;
		vmm_status status =
			oldest ? vmm_wait_timeline(adapter, context->node, oldest,
						   VIDMM_WAIT_DMA_BUFFER, NULL)
			       : vmm_wait_progress(adapter, seen, VIDMM_WAIT_DMA_BUFFER);
		if (!vmm_ok(status))
			return status;
	}
}

/* One that was not queued: its taker failed. */
void vmm_dma_give_back(struct vmm_dma *dma)
{
	struct vmm_adapter *adapter = dma->context->device->adapter;

	vmm_os_mutex_lock(&adapter->state_lock);
	vmm_list_push_back(&dma->context->free_dma, &dma->pool);
	vmm_os_mutex_unlock(&adapter->state_lock);
	vmm_progress_signal(adapter);
}

/* State lock held. */
void vmm_dma_put(struct vmm_dma *dma)
{
	dma->context->queued--;
	vmm_list_push_back(&dma->context->free_dma, &dma->pool);
}

void vmm_dma_destroy_all(struct vmm_context *context)
{
	for (uint32_t i = 0; i < VMM_DMA_BUFFERS_PER_CONTEXT; i++)
		if (context->all[i])
			dma_free(context->device->adapter, context->all[i]);
}
