/* SPDX-License-Identifier: MIT */
/* pfnLockCb, pfnUnlockCb, pfnSetPriorityCb, pfnQueryResidencyCb. */
#include "umd_calls.h"

HRESULT APIENTRY vmm_umd_lock(HANDLE device, D3DDDICB_LOCK *data)
{
	struct vmm_umd_call call;
	uint32_t local[64];
	void *pages = NULL;
	NTSTATUS status = vmm_umd_enter_inline(&call, device, VIDMM_DOOR_LOCK, false);

	if (!data)
		return vmm_umd_leave_inline(&call, STATUS_INVALID_PARAMETER, 0, 0, 0);
	D3DDDICB_LOCK args = *data;
	struct vmm_lock_request request = {
		.handle = args.hAllocation,
		.flags = args.Flags.Value,
		.private_data = args.PrivateDriverData,
		.page_count = args.NumPages,
		.page_list_given = args.pPages != NULL,
	};
	if (NT_SUCCESS(status) && args.pPages)
		status = vmm_umd_copy_in(args.pPages, args.NumPages, VMM_UMD_PAGES_MAX,
					 sizeof(uint32_t), local, sizeof(local), &pages);
	request.pages = pages;
	if (NT_SUCCESS(status))
		status = vmm_memory_lock(call.device, &request);
	if (vmm_unlikely(status == STATUS_PENDING))
		status = vmm_memory_lock_outside(&call.device, &call.guard, &request,
						 vmm_memory_lock_in_full);
	if (vmm_unlikely(pages != NULL))
		vmm_umd_copy_done(pages, local);
	data->pData = NT_SUCCESS(status) ? request.data : NULL;
	/* GpuVirtualAddress is not written (LOCK-39). */
	if (NT_SUCCESS(status))
		data->hAllocation = request.handle;
	return vmm_umd_leave_inline(&call, status, args.hAllocation, args.NumPages,
				    args.Flags.Value);
}

HRESULT APIENTRY vmm_umd_unlock(HANDLE device, const D3DDDICB_UNLOCK *data)
{
	struct vmm_umd_call call;
	uint32_t local[64];
	void *handles = NULL;
	NTSTATUS status = vmm_umd_enter_inline(&call, device, VIDMM_DOOR_UNLOCK, true);

	if (NT_SUCCESS(status) && !data)
		status = STATUS_INVALID_PARAMETER;
	if (!NT_SUCCESS(status))
		return vmm_umd_leave_inline(&call, status, 0, 0, 0);
	D3DDDICB_UNLOCK args = *data;
	if (vmm_likely(args.NumAllocations == 1 && args.phAllocations)) {
		local[0] = args.phAllocations[0];
		handles = local;
	} else {
		status = vmm_umd_copy_in(args.phAllocations, args.NumAllocations,
					 VMM_UMD_HANDLES_MAX, sizeof(uint32_t), local,
					 sizeof(local), &handles);
	}
	if (NT_SUCCESS(status))
		status = vmm_memory_unlock(call.device, handles, args.NumAllocations);
	uint32_t first = handles ? ((const uint32_t *)handles)[0] : 0;
	if (vmm_unlikely(handles != local))
		vmm_umd_copy_done(handles, local);
	return vmm_umd_leave_inline(&call, status, first, args.NumAllocations, 0);
}

/* An empty list is still a list, and excludes a resource (PRI-03, PRI-04). */
static struct vmm_shape shape_of(void *resource, const D3DKMT_HANDLE *given, const uint32_t *copy,
				 uint32_t count)
{
	return (struct vmm_shape){
		.resource = resource, .handles = copy ? copy : given, .count = count};
}

NTSTATUS vmm_umd_set_priority(struct vmm_umd_call *call, const D3DDDICB_SETPRIORITY *args)
{
	uint32_t local_handles[64], local_values[64];
	void *handles = NULL, *values = NULL;
	NTSTATUS status = STATUS_SUCCESS;

	if (args->HandleList)
		status = vmm_umd_copy_in(args->HandleList, args->NumAllocations,
					 VMM_UMD_HANDLES_MAX, sizeof(uint32_t), local_handles,
					 sizeof(local_handles), &handles);
	if (NT_SUCCESS(status) && args->pPriorities)
		status = vmm_umd_copy_in(args->pPriorities,
					 args->hResource ? 1 : args->NumAllocations,
					 VMM_UMD_HANDLES_MAX, sizeof(uint32_t), local_values,
					 sizeof(local_values), &values);
	struct vmm_shape shape =
		shape_of(args->hResource, args->HandleList, handles, args->NumAllocations);
	if (NT_SUCCESS(status))
		status = vmm_memory_set_priority(call->device, &shape, values);
	vmm_umd_copy_done(handles, local_handles);
	vmm_umd_copy_done(values, local_values);
	return status;
}

NTSTATUS vmm_umd_query_residency(struct vmm_umd_call *call, const D3DDDICB_QUERYRESIDENCY *args)
{
	uint32_t local_handles[64], local_values[64] = {0};
	uint32_t *values = local_values;
	uint32_t count = args->hResource ? 1 : args->NumAllocations;
	void *handles = NULL;
	NTSTATUS status = STATUS_SUCCESS;

	if (args->HandleList)
		status = vmm_umd_copy_in(args->HandleList, args->NumAllocations,
					 VMM_UMD_HANDLES_MAX, sizeof(uint32_t), local_handles,
					 sizeof(local_handles), &handles);
	if (NT_SUCCESS(status) && handles && count > VMM_ARRAY_LENGTH(local_values)) {
		values = vmm_calloc(count, sizeof(*values));
		status = values ? STATUS_SUCCESS : STATUS_NO_MEMORY;
	}
	struct vmm_shape shape =
		shape_of(args->hResource, args->HandleList, handles, args->NumAllocations);
	if (NT_SUCCESS(status))
		status = vmm_memory_query_residency(call->device, &shape,
						    args->pResidencyStatus ? values : NULL);
	for (uint32_t i = 0; NT_SUCCESS(status) && i < count; i++)
		args->pResidencyStatus[i] = (D3DDDI_RESIDENCYSTATUS)values[i];
	vmm_umd_copy_done(handles, local_handles);
	vmm_umd_copy_done(values, local_values);
	return status;
}
