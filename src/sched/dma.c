/* SPDX-License-Identifier: MIT */
/*
 * The pool of DMA buffers of a context. A buffer is created on demand and reused when the hardware
 * has completed it. At most VMM_DMA_BUFFERS_PER_CONTEXT are in flight; the next submission then
 * waits for the oldest. While the context has a wait in its queue, only memory limits their number.
 *
 * If the miniport wants DMA buffers in an aperture (DMA-05), preparation maps the buffer. The
 * mapping stays for the next use. It is undone when aperture space is needed and neither the
 * miniport nor the GPU has the buffer.
 */
#include "sched/sched_private.h"

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
	vmm_account_refund(dma->context->device->process->account, dma->charged_bytes);
	vmm_paging_lock(adapter);
	if (dma->place.segment) {
		vmm_list_remove(&dma->mapped);
		vmm_memory_dma_unmap_locked(adapter, &dma->place);
	}
	vmm_memory_flush_locked(adapter);
	vmm_memory_dma_destroy_locked(adapter, &dma->backing);
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
	status = vmm_memory_dma_create_locked(adapter, context->dma_bytes, &dma->backing,
					      &dma->bus_address);
	if (!context->dma_segment_set)
		dma->place.address = dma->bus_address;
	vmm_paging_commit(adapter);
	return status;
}

void vmm_dma_pin(struct vmm_dma *dma, bool pinned)
{
	struct vmm_adapter *adapter = dma->context->device->adapter;

	if (!dma->context->dma_segment_set)
		return;
	vmm_state_lock(adapter);
	dma->pinned = pinned;
	vmm_state_unlock(adapter);
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
	vmm_status status = vmm_memory_dma_map_locked(adapter, &dma->backing,
						      dma->context->dma_segment_set, &place);
	if (!vmm_ok(status) || status == VMM_PENDING)
		return status;
	set_place(dma, &place);
	vmm_list_push_back(&adapter->sched->mapped_dma, &dma->mapped);
	dma->mapped_by = vmm_memory_flush_locked(adapter);
	return VMM_OK;
}

static bool is_pinned(struct vmm_dma *dma)
{
	struct vmm_adapter *adapter = dma->context->device->adapter;

	vmm_state_lock(adapter);
	bool pinned = dma->pinned;
	vmm_state_unlock(adapter);
	return pinned;
}

bool vmm_dma_unmap_unpinned(struct vmm_adapter *adapter)
{
	struct vmm_list *at, *next;
	bool any = false;

	vmm_assert_held(&adapter->paging_lock);
	vmm_list_for_each_safe (at, next, &adapter->sched->mapped_dma) {
		struct vmm_dma *dma = vmm_container_of(at, struct vmm_dma, mapped);
		struct vmm_dma_mapping place = {0};

		vmm_state_lock(adapter);
		if (!dma->pinned) {
			place = dma->place;
			dma->place = (struct vmm_dma_mapping){0};
		}
		vmm_state_unlock(adapter);
		if (!place.segment)
			continue;
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

		if (dma != wanting && is_pinned(dma))
			return true;
	}
	return false;
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

static struct vmm_dma *dma_create(struct vmm_context *context)
{
	struct vmm_dma *dma = vmm_calloc(1, sizeof(*dma));
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
		dma->patches = vmm_calloc(context->patch_size, sizeof(*dma->patches));
	dma->work.device = context->device;
	dma->work.instances = dma->instances;
	dma->work.writes = dma->uses;
	/* DMA-07: zeroed once, then only the miniport writes it; NULL if it asked for none. */
	if (context->dma_private_bytes)
		dma->private_data = vmm_calloc(1, context->dma_private_bytes);
	if (!dma->list || !dma->instances || !dma->uses || (!dma->patches && context->patch_size) ||
	    (context->dma_private_bytes && !dma->private_data) ||
	    !vmm_ok(dma_memory(context, dma))) {
		dma_free(context->device->adapter, dma);
		return NULL;
	}
	return dma;
}

/*
 * Takes a free buffer; NULL: there is none. *may_create in: a new buffer may be created; out: the
 * caller must create one, and its entry in the counts is taken. *oldest: number of the oldest
 * packet in flight that has one; 0: none has.
 */
static struct vmm_dma *dma_take_free(struct vmm_context *context, bool *may_create,
				     uint64_t *oldest)
{
	struct vmm_adapter *adapter = context->device->adapter;
	struct vmm_dma *dma = NULL;
	struct vmm_list *link;

	vmm_state_lock(adapter);
	vmm_assert(vmm_context_is_consistent_locked(context));
	/* A wait may never end, so a submission behind one never blocks on the pool (MFN-30). */
	bool may_take = context->dma_taken < VMM_DMA_BUFFERS_PER_CONTEXT ||
			vmm_unlikely(context->steps.holding);
	if (may_take && !vmm_list_empty(&context->free_dma)) {
		dma = vmm_container_of(context->free_dma.next, struct vmm_dma, pool);
		vmm_list_remove(&dma->pool);
	}
	*may_create = *may_create && !dma && may_take;
	context->dma_count += *may_create;
	context->dma_taken += *may_create || dma;
	*oldest = 0; /* stays 0 if other threads hold buffers that they have not queued yet */
	if (vmm_unlikely(!dma && !*may_create))
		vmm_list_for_each (link, &context->all_dma) {
			const struct vmm_dma *at = vmm_container_of(link, struct vmm_dma, all);

			if (!vmm_list_empty(&at->work.link) &&
			    (!*oldest || at->work.sequence < *oldest))
				*oldest = at->work.sequence;
		}
	vmm_state_unlock(adapter);
	return dma;
}

/* Creates the buffer that dma_take_free has counted. */
static struct vmm_dma *add_to_pool(struct vmm_context *context)
{
	struct vmm_adapter *adapter = context->device->adapter;
	struct vmm_dma *dma = dma_create(context);

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

/* A search for a DMA buffer. */
struct search {
	bool no_memory;  /* for another buffer: one in flight is waited for */
	uint32_t seen;   /* the progress counter from before the last attempt */
	uint64_t oldest; /* see dma_take_free */
};

/* Returns NULL if there is no buffer now. */
static struct vmm_dma *attempt(struct vmm_context *context, struct search *search)
{
	bool may_create = !search->no_memory;

	search->seen = atomic_load(&context->device->adapter->progress);
	struct vmm_dma *dma = dma_take_free(context, &may_create, &search->oldest);

	if (dma || !may_create)
		return dma;
	dma = add_to_pool(context);
	if (dma)
		return dma;
	search->no_memory = true;
	return attempt(context, search);
}

/* No buffer of the context is in flight, and no other context runs one. */
static bool has_none_in_flight(struct vmm_context *context, const struct search *search)
{
	return !search->oldest && !atomic_load(&context->shared_buffers);
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

/*
 * A submission of a broadcast buffer is complete. Returns true if it was the last one. State lock
 * held.
 */
VMM_COLD static bool is_last_user(struct vmm_dma *dma, struct vmm_dma *buffer)
	VMM_REQUIRES(vmm_state_lock_class)
{
	vmm_assert_held(&dma->context->device->adapter->state_lock);
	if (dma != buffer) {
		vmm_list_remove(&dma->copy);
		vmm_list_push_back(&dma->context->free_copies, &dma->pool);
	}
	if (--buffer->users)
		return false;
	buffer->sum_valid = false;
	return true;
}

/* State lock held. */
void vmm_dma_put(struct vmm_dma *dma)
{
	struct vmm_dma *buffer = vmm_dma_buffer(dma);
	bool broadcast = buffer->users != 0;

	vmm_assert_held(&dma->context->device->adapter->state_lock);
	vmm_assert(vmm_context_is_consistent_locked(buffer->context) && dma->context->queued);
	dma->context->queued--;
	if (vmm_unlikely(dma->present))
		vmm_present_done_locked(dma);
	if (vmm_unlikely(broadcast) && !is_last_user(dma, buffer))
		return;
	buffer->pinned = false;
	buffer->context->dma_taken--;
	vmm_list_push_back(&buffer->context->free_dma, &buffer->pool);
	if (vmm_unlikely(broadcast)) /* last: at 0 the owner's context may be freed */
		atomic_fetch_sub(&buffer->context->shared_buffers, 1);
}

void vmm_dma_destroy_all(struct vmm_context *context)
{
	struct vmm_list *link, *next;

	vmm_list_for_each_safe (link, next, &context->all_dma)
		dma_free(context->device->adapter, vmm_container_of(link, struct vmm_dma, all));
}
