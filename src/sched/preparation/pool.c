/* SPDX-License-Identifier: MIT */
/*
 * The pool of DMA buffers of a context. A buffer is created on demand (dma.c) and reused when the
 * hardware has completed it (retire.c). At most VMM_DMA_BUFFERS_PER_CONTEXT are in flight; the next
 * submission then waits for the oldest. While the context has a wait in its queue, only memory
 * limits their number.
 */
#include "sched/preparation/preparation.h"

/* A search for a DMA buffer. */
struct search {
	bool no_memory;   /* for another buffer: one in flight is waited for */
	bool behind_wait; /* the context had a wait in its queue at the last attempt */
	uint32_t seen;    /* the progress counter from before the last attempt */
	/* number of the oldest packet in flight that has a buffer of the context; 0: none has */
	uint64_t oldest;
};

/*
 * Takes a free buffer; NULL: there is none. *may_create in: a new buffer may be created; out: the
 * caller must create one, and its entry in the counts is taken.
 */
static struct vmm_dma *dma_take_free(struct vmm_context *context, bool *may_create,
				     struct search *search)
{
	struct vmm_adapter *adapter = context->device->adapter;
	struct vmm_dma *dma = NULL;
	struct vmm_list *link;

	vmm_state_lock(adapter);
	vmm_assert(vmm_context_is_consistent_locked(context));
	/* A wait may never end, so a submission behind one never blocks on the pool (MFN-30). */
	search->behind_wait = context->steps.holding;
	bool may_take = context->dma_taken < VMM_DMA_BUFFERS_PER_CONTEXT ||
			vmm_unlikely(search->behind_wait);
	if (may_take && !vmm_list_empty(&context->free_dma)) {
		dma = vmm_container_of(context->free_dma.next, struct vmm_dma, pool);
		vmm_list_remove(&dma->pool);
	}
	*may_create = *may_create && !dma && may_take;
	context->dma_count += *may_create;
	context->dma_taken += *may_create || dma;
	/* Stays 0 if other threads hold buffers that they have not queued yet. */
	search->oldest = 0;
	if (vmm_unlikely(!dma && !*may_create))
		vmm_list_for_each (link, &context->all_dma) {
			const struct vmm_dma *at = vmm_container_of(link, struct vmm_dma, all);

			if (!vmm_list_empty(&at->work.link) &&
			    (!search->oldest || at->work.sequence < search->oldest))
				search->oldest = at->work.sequence;
		}
	vmm_state_unlock(adapter);
	return dma;
}

/* Creates the buffer that dma_take_free has counted. */
static struct vmm_dma *add_to_pool(struct vmm_context *context)
{
	struct vmm_adapter *adapter = context->device->adapter;
	struct vmm_dma *dma = vmm_dma_create(context);

	vmm_state_lock(adapter);
	if (!dma) {
		context->dma_count--;
		context->dma_taken--;
	} else {
		vmm_list_push_back(&context->all_dma, &dma->all);
	}
	vmm_state_unlock(adapter);
	return dma;
}

/* Returns NULL if there is no buffer now. */
static struct vmm_dma *attempt(struct vmm_context *context, struct search *search)
{
	bool may_create = !search->no_memory;

	search->seen = atomic_load(&context->device->adapter->progress);
	struct vmm_dma *dma = dma_take_free(context, &may_create, search);

	if (dma || !may_create)
		return dma;
	dma = add_to_pool(context);
	if (dma)
		return dma;
	search->no_memory = true;
	return attempt(context, search);
}

/*
 * No buffer of the context is in flight, and no other context runs one. Those in flight do not
 * count while the context has a wait in its queue: the caller may be the thread that would end the
 * wait. (MFN-30)
 */
static bool has_none_in_flight(struct vmm_context *context, const struct search *search)
{
	return (search->no_memory && search->behind_wait) ||
	       (!search->oldest && !atomic_load(&context->shared_buffers));
}

static NTSTATUS report_none(const struct vmm_adapter *adapter)
{
	return atomic_load(&adapter->removed) ? VMM_DEVICE_REMOVED : STATUS_NO_MEMORY; /* LOCK-33 */
}

NTSTATUS vmm_dma_get(struct vmm_context *context, struct vmm_dma **result)
{
	struct vmm_adapter *adapter = context->device->adapter;
	struct search search = {.no_memory = false};

	while (!(*result = attempt(context, &search))) {
		if (search.no_memory && has_none_in_flight(context, &search))
			return report_none(adapter);
		struct vmm_process *before =
			vmm_calling_process_set(adapter->os, context->device->process);
		vmm_status status =
			search.oldest
				? vmm_wait_timeline(adapter, context->node, search.oldest,
						    VIDMM_WAIT_DMA_BUFFER, NULL)
				: vmm_wait_progress(adapter, search.seen, VIDMM_WAIT_DMA_BUFFER);

		vmm_calling_process_set(adapter->os, before);
		if (!vmm_ok(status))
			return status;
	}
	return STATUS_SUCCESS;
}

NTSTATUS vmm_dma_get_locked(struct vmm_context *context, struct vmm_dma **result)
{
	struct vmm_adapter *adapter = context->device->adapter;
	struct search search = {.no_memory = false};

	vmm_assert_held(&adapter->submit_lock);
	while (!(*result = attempt(context, &search))) {
		/*
		 * Threads that hold a buffer wait for the submit lock, so none can become free but
		 * those in flight.
		 */
		if (has_none_in_flight(context, &search))
			return report_none(adapter);
		/*
		 * The worker may wait for the submit lock. So this thread prepares packets and
		 * feeds the GPU in its place, at each progress: any completion may leave such work.
		 */
		vmm_prepare_pump_waiting_locked(adapter);
		vmm_sched_feed_locked(adapter);
		struct vmm_process *before =
			vmm_calling_process_set(adapter->os, context->device->process);
		vmm_status status = vmm_wait_progress(adapter, search.seen, VIDMM_WAIT_DMA_BUFFER);

		vmm_calling_process_set(adapter->os, before);
		if (!vmm_ok(status))
			return status;
	}
	return STATUS_SUCCESS;
}

/* ---- memory of presents at GPU virtual addresses (PRS-09) ---- */

NTSTATUS vmm_dma_memory_get(struct vmm_device *device, uint32_t object, uint32_t size_bytes,
			    struct vmm_dma_memory *memory)
{
	struct vmm_adapter *adapter = device->adapter;

	for (;;) {
		uint32_t seen = atomic_load(&adapter->progress);
		vmm_status status = vmm_dma_memory_add(device, object, size_bytes, memory);

		if (status != VMM_PENDING)
			return status;
		status = vmm_wait_progress(adapter, seen, VIDMM_WAIT_SPACE);
		if (!vmm_ok(status))
			return status;
	}
}

NTSTATUS vmm_dma_get_memory(struct vmm_dma *dma)
{
	const struct vmm_context *context = dma->context;

	return vmm_dma_memory_get(context->device, context->handle, context->present_bytes,
				  &dma->memory);
}

NTSTATUS vmm_dma_get_memory_locked(struct vmm_dma *dma)
{
	const struct vmm_context *context = dma->context;
	struct vmm_adapter *adapter = context->device->adapter;

	vmm_assert_held(&adapter->submit_lock);
	for (;;) {
		uint32_t seen = atomic_load(&adapter->progress);
		vmm_status status = vmm_dma_memory_add(context->device, context->handle,
						       context->present_bytes, &dma->memory);

		if (status != VMM_PENDING)
			return status;
		/* In place of the worker, as in vmm_dma_get_locked. */
		vmm_prepare_pump_waiting_locked(adapter);
		vmm_sched_feed_locked(adapter);
		status = vmm_wait_progress(adapter, seen, VIDMM_WAIT_SPACE);
		if (!vmm_ok(status))
			return status;
	}
}

/* The thread that took the buffer failed before it queued it. */
void vmm_dma_give_back(struct vmm_dma *dma)
{
	struct vmm_adapter *adapter = dma->context->device->adapter;

	vmm_state_lock(adapter);
	if (vmm_unlikely(!vmm_list_empty(&dma->copies)))
		vmm_broadcast_release_locked(dma);
	dma->context->dma_taken--;
	vmm_list_push_back(&dma->context->free_dma, &dma->pool);
	vmm_state_unlock(adapter);
	vmm_progress_signal(adapter);
}
