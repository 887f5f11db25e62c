/* SPDX-License-Identifier: MIT */
/*
 * The pool of DMA buffers of a context: made when first needed, reused when the hardware is done with them, at most
 * VMM_DMA_BUFFERS_PER_CONTEXT in flight; the next submission then waits for the oldest. Behind a wait of the context there is no
 * limit but memory.
 *
 * Where the miniport wants them in an aperture (DMA-05) a buffer gets its place when it is prepared and keeps it, so that
 * the next use finds it there; but nobody waits for the place of a buffer that neither the miniport nor the GPU has.
 */
#include "sched/sched_private.h"

static uint32_t list_size(const struct vmm_context *context)
{
	return context->list_size > DXGK_PRESENT_MAX_INDEX ? context->list_size
							   : DXGK_PRESENT_MAX_INDEX; /* DMA-32 */
}

/* What one costs its process: the buffer itself, and what is kept of its lists. */
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
	vmm_reason(
		process->world->observe, VMM_NO_MEMORY, process->id, context->handle,
		"a DMA buffer of %llu bytes with its lists: process %u has as much system memory as it may",
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
	vmm_paging_unlock(adapter);
	vmm_free(dma->private_data);
	vmm_free(dma->list);
	vmm_free(dma->instances);
	vmm_free(dma->uses);
	vmm_free(dma->patches);
	vmm_free(dma);
}

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
	vmm_paging_unlock(adapter);
	return status;
}

void vmm_dma_pin(struct vmm_dma *dma, bool pinned)
{
	struct vmm_adapter *adapter = dma->context->device->adapter;

	if (!dma->context->dma_segment_set)
		return;
	vmm_os_mutex_lock(&adapter->state_lock);
	dma->pinned = pinned;
	vmm_os_mutex_unlock(&adapter->state_lock);
}

static void move(struct vmm_dma *dma, const struct vmm_dma_place *place)
{
	struct vmm_adapter *adapter = dma->context->device->adapter;

	vmm_os_mutex_lock(&adapter->state_lock);
	dma->place = *place;
	vmm_os_mutex_unlock(&adapter->state_lock);
}

vmm_status vmm_dma_place(struct vmm_dma *dma)
{
	struct vmm_adapter *adapter = dma->context->device->adapter;
	/* It runs on that adapter of a link, and finds it in that one's aperture. */
	struct vmm_dma_place place = {.physical = dma->context->engine};

	if (dma->place.segment || !dma->context->dma_segment_set)
		return VMM_OK;
	vmm_status status = vmm_memory_dma_map_locked(adapter, &dma->backing,
						      dma->context->dma_segment_set, &place);
	if (!vmm_ok(status) || status == VMM_PENDING)
		return status;
	move(dma, &place);
	vmm_list_push_back(&adapter->sched->mapped_dma, &dma->mapped);
	dma->mapped_by = vmm_memory_flush_locked(adapter);
	return VMM_OK;
}

static bool is_pinned(struct vmm_dma *dma)
{
	struct vmm_adapter *adapter = dma->context->device->adapter;

	vmm_os_mutex_lock(&adapter->state_lock);
	bool pinned = dma->pinned;
	vmm_os_mutex_unlock(&adapter->state_lock);
	return pinned;
}

bool vmm_dma_give_up_places(struct vmm_adapter *adapter)
{
	struct vmm_list *at, *next;
	bool any = false;

	vmm_list_for_each_safe (at, next, &adapter->sched->mapped_dma) {
		struct vmm_dma *dma = vmm_container_of(at, struct vmm_dma, mapped);
		struct vmm_dma_place place = {0};

		vmm_os_mutex_lock(&adapter->state_lock);
		if (!dma->pinned) {
			place = dma->place;
			dma->place = (struct vmm_dma_place){0};
		}
		vmm_os_mutex_unlock(&adapter->state_lock);
		if (!place.segment)
			continue;
		vmm_list_remove(&dma->mapped);
		vmm_memory_dma_unmap_locked(adapter, &place);
		any = true;
	}
	return any;
}

void vmm_dma_forget_places(struct vmm_adapter *adapter)
{
	struct vmm_list *at, *next;

	vmm_list_for_each_safe (at, next, &adapter->sched->mapped_dma) {
		struct vmm_dma *dma = vmm_container_of(at, struct vmm_dma, mapped);
		const struct vmm_dma_place place = dma->place;

		move(dma, &(struct vmm_dma_place){0});
		vmm_list_remove(&dma->mapped);
		vmm_memory_dma_unmap_locked(adapter, &place);
	}
}

bool vmm_dma_will_give_up(struct vmm_adapter *adapter, const struct vmm_dma *wanting)
{
	struct vmm_list *at;

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
	/* DMA-07: zeroed once, then the miniport's; NULL when it asked for none. */
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

/* *may_create in: would a new one do? out: there is a place in the pool for it, taken. *oldest: packet of those in flight. */
static struct vmm_dma *dma_take_free(struct vmm_context *context, bool *may_create,
				     uint64_t *oldest)
{
	struct vmm_adapter *adapter = context->device->adapter;
	struct vmm_dma *dma = NULL;
	struct vmm_list *link;

	vmm_os_mutex_lock(&adapter->state_lock);
	/* Behind a wait, which nobody knows when it ends, a submission waits for nothing (MFN-30). */
	bool may_take = context->dma_taken < VMM_DMA_BUFFERS_PER_CONTEXT ||
			vmm_unlikely(context->steps.holding);
	if (may_take && !vmm_list_empty(&context->free_dma)) {
		dma = vmm_container_of(context->free_dma.next, struct vmm_dma, pool);
		vmm_list_remove(&dma->pool);
	}
	*may_create = *may_create && !dma && may_take;
	context->dma_count += *may_create;
	context->dma_taken += *may_create || dma;
	*oldest = 0; /* another thread may hold one that it has not queued yet */
	if (vmm_unlikely(!dma && !*may_create))
		vmm_list_for_each (link, &context->all_dma) {
			const struct vmm_dma *at = vmm_container_of(link, struct vmm_dma, all);

			if (!vmm_list_empty(&at->work.link) &&
			    (!*oldest || at->work.sequence < *oldest))
				*oldest = at->work.sequence;
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
	if (!dma) {
		context->dma_count--;
		context->dma_taken--;
	} else {
		vmm_list_push_back(&context->all_dma, &dma->all);
	}
	vmm_os_mutex_unlock(&adapter->state_lock);
	return dma;
}

static vmm_status wait_for_one(struct vmm_context *context, uint64_t oldest, uint32_t seen)
{
	struct vmm_adapter *adapter = context->device->adapter;
	struct vmm_process *before = vmm_calling_process_set(adapter->os, context->device->process);
	vmm_status status = oldest ? vmm_wait_timeline(adapter, context->node, oldest,
						       VIDMM_WAIT_DMA_BUFFER, NULL)
				   : vmm_wait_progress(adapter, seen, VIDMM_WAIT_DMA_BUFFER);

	vmm_calling_process_set(adapter->os, before);
	return status;
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
		 * those who hold one are waiting for, nothing will come free, but for those that other contexts still run.
		 */
		if (!oldest && !atomic_load(&context->lent) &&
		    (no_memory || vmm_os_mutex_held(&adapter->submit_lock)))
			return atomic_load(&adapter->removed) ? VMM_DEVICE_REMOVED /* LOCK-33 */
							      : STATUS_NO_MEMORY;
		/* Under that lock it may be that the worker waits for us, and with it what would come free. */
		if (vmm_os_mutex_held(&adapter->submit_lock))
			vmm_prepare_pump_waiting(adapter);
		vmm_status status = wait_for_one(context, oldest, seen);
		if (!vmm_ok(status))
			return status;
	}
}

/* One that was not queued: its taker failed. */
void vmm_dma_give_back(struct vmm_dma *dma)
{
	struct vmm_adapter *adapter = dma->context->device->adapter;

	vmm_os_mutex_lock(&adapter->state_lock);
	if (vmm_unlikely(!vmm_list_empty(&dma->copies)))
		vmm_broadcast_release_locked(dma);
	dma->context->dma_taken--;
	vmm_list_push_back(&dma->context->free_dma, &dma->pool);
	vmm_os_mutex_unlock(&adapter->state_lock);
	vmm_progress_signal(adapter);
}

/* A submission of a buffer that is broadcast is complete. False: it is not the last of them. State lock held. */
VMM_COLD static bool is_returned(struct vmm_dma *dma, struct vmm_dma *buffer)
{
	if (dma != buffer) {
		vmm_list_remove(&dma->copy);
		vmm_list_push_back(&dma->context->free_copies, &dma->pool);
	}
	if (--buffer->users)
		return false;
	buffer->summed = false;
	return true;
}

/* State lock held. */
void vmm_dma_put(struct vmm_dma *dma)
{
	struct vmm_dma *buffer = vmm_dma_buffer(dma);
	bool broadcast = buffer->users != 0;

	dma->context->queued--;
	if (vmm_unlikely(dma->present))
		vmm_present_done_locked(dma);
	if (vmm_unlikely(broadcast) && !is_returned(dma, buffer))
		return;
	buffer->pinned = false;
	buffer->context->dma_taken--;
	vmm_list_push_back(&buffer->context->free_dma, &buffer->pool);
	if (vmm_unlikely(broadcast)) /* last: the owner may end once it has none any more */
		atomic_fetch_sub(&buffer->context->lent, 1);
}

void vmm_dma_destroy_all(struct vmm_context *context)
{
	struct vmm_list *link, *next;

	vmm_list_for_each_safe (link, next, &context->all_dma)
		dma_free(context->device->adapter, vmm_container_of(link, struct vmm_dma, all));
}
