/* SPDX-License-Identifier: MIT */
/*
 * The scheduling part of context allocations (PRE-11): when a miniport may create them, and
 * when a packet needs them. paging.c switches a node off a context before its memory moves.
 */
#include "sched/data/data.h"

/* ---- creation; no lock held ---- */

void vmm_ddi_creation_begin(struct vmm_ddi_creation *creation, struct vmm_device *device,
			    const struct vmm_context *context)
{
	struct vmm_adapter *adapter = device->adapter;

	*creation = (struct vmm_ddi_creation){
		.device = device, .context = context, .thread = vmm_os_thread_self(adapter->os)};
	vmm_state_lock(adapter);
	vmm_list_push_back(&adapter->sched->ddi_creations, &creation->link);
	vmm_state_unlock(adapter);
}

void vmm_ddi_creation_end(struct vmm_ddi_creation *creation)
{
	struct vmm_adapter *adapter = creation->device->adapter;

	vmm_state_lock(adapter);
	vmm_list_remove(&creation->link);
	vmm_state_unlock(adapter);
}

/*
 * Returns the creation call in progress on this thread. Only this thread ends it, so it stays valid
 * without the lock.
 */
static const struct vmm_ddi_creation *find_creation(struct vmm_sched *sched)
{
	const struct vmm_os_thread *self = vmm_os_thread_self(sched->adapter->os);
	const struct vmm_ddi_creation *found = NULL;
	const struct vmm_list *link;

	vmm_state_lock(sched->adapter);
	vmm_list_for_each (link, &sched->ddi_creations) {
		const struct vmm_ddi_creation *creation =
			vmm_container_of(link, const struct vmm_ddi_creation, link);

		if (creation->thread == self)
			found = creation;
	}
	vmm_state_unlock(sched->adapter);
	return found;
}

/* Returns why the request is refused; NULL: it is valid. */
static const char *refusal(const struct vmm_ddi_creation *creation,
			   const DXGKARGCB_CREATECONTEXTALLOCATION *args)
{
	bool shared = args->ContextAllocationFlags.SharedAcrossContexts;

	if (!creation)
		return "must be called inside DxgkDdiCreateDevice or DxgkDdiCreateContext of a "
		       "client's device or context";
	if (args->ContextAllocationFlags.Reserved)
		return "reserved flags are set";
	if (args->hDevice != creation->device)
		return "hDevice must be the device that is being created, or the device of the "
		       "context that is";
	if (shared && args->hContext)
		return "with SharedAcrossContexts hContext must be NULL";
	if (!shared && (!args->hContext || args->hContext != creation->context))
		return "without SharedAcrossContexts hContext must be the context that is being "
		       "created";
	return NULL;
}

NTSTATUS vmm_context_memory_create(struct vmm_sched *sched, DXGKARGCB_CREATECONTEXTALLOCATION *args)
{
	const struct vmm_ddi_creation *creation = find_creation(sched);
	const char *wrong = refusal(creation, args);

	if (vmm_unlikely(!creation && sched->hw))
		return vmm_refuse_reason(
			sched->adapter->observe, STATUS_NOT_SUPPORTED, 0, 0,
			"PRE-11: DxgkCbCreateContextAllocation: memory of hardware contexts is "
			"not built");
	if (!wrong)
		return vmm_context_allocation_create(creation->device, args->hContext, args);
	return vmm_refuse_rule(
		sched->adapter->observe, STATUS_INVALID_PARAMETER, "PRE-11", 0, 0,
		"DxgkCbCreateContextAllocation: %s (ContextAllocationFlags 0x%x, hDevice %p, "
		"hContext %p, Size %llu)",
		wrong, args->ContextAllocationFlags.Value, args->hDevice, args->hContext,
		(unsigned long long)args->Size);
}

/*
 * A DDI of the scheduler class runs under the paging lock, which a wait for the GPU would keep.
 */
static NTSTATUS check_caller(const struct vmm_sched *sched, const char *rule, const char *callback,
			     HANDLE allocation)
{
	if (!vmm_os_mutex_held(&sched->adapter->paging_lock))
		return STATUS_SUCCESS;
	return vmm_refuse_rule(sched->adapter->observe, STATUS_INVALID_DEVICE_REQUEST, rule, 0, 0,
			       "%s of %p inside a DDI that pages or submits: it must be called "
			       "outside of them",
			       callback, allocation);
}

NTSTATUS vmm_context_memory_destroy(struct vmm_sched *sched, HANDLE allocation)
{
	NTSTATUS status =
		check_caller(sched, "PRE-11", "DxgkCbDestroyContextAllocation", allocation);

	return NT_SUCCESS(status) ? vmm_context_allocation_destroy(sched->adapter, allocation)
				  : status;
}

NTSTATUS vmm_context_memory_map(struct vmm_sched *sched, const DXGKARGCB_MAPCONTEXTALLOCATION *args,
				D3DGPU_VIRTUAL_ADDRESS *address)
{
	struct vmm_va_map_request request = {
		.allocation = UINT32_MAX, /* there is one; it has no handle of this kind */
		.base = args->BaseAddress,
		.minimum = args->MinimumAddress,
		.maximum = args->MaximumAddress,
		.offset_pages = args->OffsetInPages,
		.size_pages = args->SizeInPages,
		.protection = args->Protection.Value,
		.driver_protection = args->DriverProtection};
	NTSTATUS status =
		check_caller(sched, "VA-20", "DxgkCbMapContextAllocation", args->hAllocation);

	if (NT_SUCCESS(status))
		status = vmm_va_map_context_allocation(sched->adapter, args->hAllocation, &request);
	*address = NT_SUCCESS(status) ? request.address : 0;
	vmm_assert(!NT_SUCCESS(status) || *address);
	return status;
}

NTSTATUS vmm_context_memory_update(struct vmm_sched *sched,
				   const DXGKARGCB_UPDATECONTEXTALLOCATION *args)
{
	NTSTATUS status =
		check_caller(sched, "VA-21", "DxgkCbUpdateContextAllocation", args->hAllocation);

	return NT_SUCCESS(status) ? vmm_context_allocation_update(sched->adapter, args) : status;
}

/* ---- before a packet runs; paging lock held ---- */

vmm_status vmm_context_memory_gather(struct vmm_dma *dma, uint64_t preparation)
{
	const struct vmm_context *context = dma->context;
	struct vmm_list *link;

	vmm_assert_held(&dma->context->device->adapter->paging_lock);
	if (vmm_context_memory_is_none(dma))
		return VMM_OK;
	vmm_status status =
		vmm_context_allocations_make_resident(context->device, context, preparation);
	vmm_list_for_each (link, &dma->copies) { /* DMA-10 */
		context = vmm_copy_of(link)->context;
		if (status == VMM_OK)
			status = vmm_context_allocations_make_resident(context->device, context,
								       preparation);
	}
	return status;
}

bool vmm_context_memory_is_in_place(const struct vmm_dma *dma)
{
	const struct vmm_context *context = dma->context;
	struct vmm_list *link;

	vmm_assert_held(&dma->context->device->adapter->paging_lock);
	if (vmm_context_memory_is_none(dma))
		return true;
	bool all = vmm_context_allocations_are_resident(context->device, context);
	vmm_list_for_each (link, &dma->copies) {
		context = vmm_copy_of(link)->context;
		all &= vmm_context_allocations_are_resident(context->device, context);
	}
	return all;
}
