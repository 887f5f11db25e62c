/* SPDX-License-Identifier: MIT */
/*
 * Locks of a list of pages where no swizzling range can be had (LOCK-21): the instance stays in its memory segment and only
 * the pages listed are copied to system memory, unswizzled on the way. They go back at the unlock, or before the GPU uses
 * the instance where it reads it at that moment.
 *
 * In between these pages count in the system copy, all others in the segment. A lock of other pages adds to them. An
 * eviction brings the rest along, and then it is like any other that was unswizzled for the CPU (SWZ-09).
 */
#include "memory/memory_private.h"
#include "memory/private.h"

enum { READ_ONLY = 0x001, BITS = 64 };

struct vmm_partial {
	struct vmm_instance *instance;
	struct vmm_list waiting; /* in memory->partials */
	bool written;            /* a lock that may have written was given out */
	uint64_t page_count;
	uint64_t pages[]; /* a bit each */
};

static bool is_listed(const struct vmm_partial *partial, uint64_t page)
{
	return partial->pages[page / BITS] >> page % BITS & 1;
}

/* One transfer for each run of neighbours that are listed, or that are not. */
static vmm_status transfer_pages(struct vmm_memory *memory, struct vmm_instance *instance,
				 const struct vmm_partial *partial, bool listed, bool in)
{
	vmm_status status = VMM_OK;
	uint64_t end;

	for (uint64_t first = 0; first < partial->page_count && vmm_ok(status); first = end) {
		for (end = first; end < partial->page_count; end++)
			if (is_listed(partial, end) != is_listed(partial, first))
				break;
		if (is_listed(partial, first) == listed)
			status = vmm_paging_transfer_part(memory, instance, in,
							  first << VMM_PAGE_SHIFT,
							  (end - first) << VMM_PAGE_SHIFT);
	}
	return status;
}

static void hide(struct vmm_instance *instance)
{
	if (instance->view_current)
		vmm_os_view_unmap(&instance->view);
	instance->view_current = false;
}

bool vmm_partial_covers(const struct vmm_instance *instance, const struct vmm_lock_request *request)
{
	for (uint32_t i = 0; i < request->page_count; i++)
		if (!is_listed(instance->partial, request->pages[i]))
			return false;
	return request->page_count != 0;
}

static struct vmm_partial *list_of(const struct vmm_instance *instance,
				   const struct vmm_lock_request *request)
{
	uint64_t pages = instance->allocation->size_bytes >> VMM_PAGE_SHIFT;
	struct vmm_partial *partial = vmm_calloc(
		1, sizeof(*partial) + (pages + BITS - 1) / BITS * sizeof(partial->pages[0]));

	if (!partial)
		return NULL;
	partial->page_count = pages;
	vmm_list_init(&partial->waiting);
	for (uint32_t i = 0; i < request->page_count; i++)
		partial->pages[request->pages[i] / BITS] |= 1ull << request->pages[i] % BITS;
	return partial;
}

/* The first pages: from here on the instance has a system copy beside its place. */
static vmm_status begin(struct vmm_memory *memory, struct vmm_instance *instance,
			struct vmm_partial *partial)
{
	/* The CPU sees all of these pages, so nothing of a former owner is in those that are not listed. */
	vmm_status status =
		vmm_backing_create_for(memory, instance->allocation,
				       instance->allocation->size_bytes, true, &instance->backing);

	if (!vmm_ok(status))
		return status;
	vmm_swizzle_release(memory, instance); /* SWZ-12 */
	vmm_coherence_to_gpu(memory, instance, VMM_PLACE_MEMORY);
	instance->linear = vmm_instance_is_swizzled(instance); /* others without the flag */
	partial->instance = instance;
	status = transfer_pages(memory, instance, partial, true, false);
	if (!vmm_ok(status)) {
		instance->linear = false;
		vmm_backing_destroy_after(memory, &instance->backing, vmm_paging_sequence(memory));
		return status;
	}
	hide(instance);
	instance->partial = partial;
	return VMM_OK;
}

/* Those of `more` that are not here yet. */
static vmm_status add(struct vmm_memory *memory, struct vmm_instance *instance,
		      struct vmm_partial *more)
{
	struct vmm_partial *partial = instance->partial;
	uint64_t words = (partial->page_count + BITS - 1) / BITS;
	vmm_status status;

	for (uint64_t i = 0; i < words; i++)
		more->pages[i] &= ~partial->pages[i];
	status = transfer_pages(memory, instance, more, true, false);
	for (uint64_t i = 0; i < words && vmm_ok(status); i++)
		partial->pages[i] |= more->pages[i];
	return status;
}

vmm_status vmm_partial_take(struct vmm_memory *memory, struct vmm_instance *instance,
			    const struct vmm_lock_request *request)
{
	struct vmm_partial *partial = list_of(instance, request);
	vmm_status status;

	if (!partial)
		return VMM_NO_MEMORY;
	status = instance->partial ? add(memory, instance, partial)
				   : begin(memory, instance, partial);
	if (instance->partial != partial)
		vmm_free(partial);
	if (!vmm_ok(status))
		return status;
	vmm_residency_mark_paged(memory, instance, true);
	instance->handover = true; /* whatever becomes of the lock */
	return VMM_OK;
}

void vmm_partial_locked(struct vmm_instance *instance, uint32_t flags)
{
	instance->partial->written |= !(flags & READ_ONLY); /* LOCK-06 */
}

static void free_partial(struct vmm_instance *instance)
{
	vmm_list_remove(&instance->partial->waiting);
	vmm_free(instance->partial);
	instance->partial = NULL;
}

static void forget(struct vmm_memory *memory, struct vmm_instance *instance)
{
	hide(instance);
	vmm_alternate_drop(instance); /* it showed these pages */
	instance->linear = false;
	vmm_backing_destroy_after(memory, &instance->backing, vmm_paging_sequence(memory));
	free_partial(instance);
}

vmm_status vmm_partial_settle(struct vmm_memory *memory, struct vmm_instance *instance)
{
	vmm_status status = VMM_OK;

	if (instance->partial->written) {
		/* Work that was submitted before the lock may still read the old content (LOCK-15). */
		if (!vmm_instance_unused(instance))
			return VMM_PENDING;
		vmm_coherence_to_gpu(memory, instance, VMM_PLACE_SYSTEM);
		status = transfer_pages(memory, instance, instance->partial, true, true);
		/* LOCK-08: no use by the GPU; but the CPU does not see them there before they are. */
		vmm_mark_used(&instance->updated, vmm_paging_sequence(memory));
		vmm_mark_used(&instance->written[memory->adapter->paging_timeline],
			      vmm_paging_sequence(memory));
		if (!vmm_ok(status))
			return status;
	}
	forget(memory, instance);
	return VMM_OK;
}

void vmm_partial_unlocked(struct vmm_memory *memory, struct vmm_instance *instance)
{
	if (vmm_locks(instance))
		return;
	vmm_list_remove(&instance->partial->waiting);
	vmm_list_push_back(&memory->partials, &instance->partial->waiting);
}

void vmm_partial_settle_all(struct vmm_memory *memory)
{
	while (!vmm_list_empty(&memory->partials)) {
		struct vmm_partial *partial =
			vmm_container_of(memory->partials.next, struct vmm_partial, waiting);

		vmm_list_remove(&partial->waiting);
		(void)!vmm_partial_settle(memory, partial->instance); /* or before its next use */
	}
}

vmm_status vmm_partial_leave(struct vmm_memory *memory, struct vmm_instance *instance)
{
	struct vmm_adapter *adapter = memory->adapter;
	vmm_status status;

	vmm_coherence_to_gpu(memory, instance, VMM_PLACE_MEMORY);
	/* What is listed stays where it is, under the CPU's stores. */
	status = transfer_pages(memory, instance, instance->partial, false, false);
	instance->handover = true;
	if (!vmm_ok(status))
		return status;
	vmm_residency_mark_paged(memory, instance, true);
	free_partial(instance);
	if (!vmm_locks(instance))
		return VMM_OK;
	/* Beside what is locked the CPU may have looked at pages that only now get their content. */
	status = memory->engine->wait_locked(adapter, adapter->paging_timeline,
					     vmm_memory_flush_locked(adapter), VIDMM_WAIT_LOCK);
	vmm_coherence_to_cpu(memory, instance, false);
	return status;
}

void vmm_partial_drop(struct vmm_memory *memory, struct vmm_instance *instance)
{
	if (vmm_locks(instance)) /* the adapter stops: the CPU keeps what it has */
		free_partial(instance);
	else
		forget(memory, instance);
}
