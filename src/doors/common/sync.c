/* SPDX-License-Identifier: MIT */
/* Arrays of waits and signals: of the CPU, and in the queue of a context (SYN-25). */
#include "doors/common/sync.h"

static NTSTATUS refuse_arrays(const struct vmm_door_call *call, uint32_t count)
{
	return vmm_refuse_rule(call->observe, STATUS_INVALID_PARAMETER, "SYN-33", call->process->id,
			       0, "%u objects: an array is missing, or there are more than %u",
			       count, VMM_DOOR_HANDLES_MAX);
}

static NTSTATUS copy_handles(const struct vmm_door_call *call, struct vmm_door_arrays *arrays,
			     const void *handles, uint32_t count)
{
	NTSTATUS status = vmm_door_copy_in(handles, count, VMM_DOOR_HANDLES_MAX, sizeof(uint32_t),
					   arrays->local_handles, sizeof(arrays->local_handles),
					   &arrays->handles);

	return status == STATUS_INVALID_PARAMETER ? refuse_arrays(call, count) : status;
}

static NTSTATUS copy_values(const struct vmm_door_call *call, struct vmm_door_arrays *arrays,
			    const void *values, uint32_t count)
{
	NTSTATUS status = vmm_door_copy_in(values, count, VMM_DOOR_HANDLES_MAX, sizeof(uint64_t),
					   arrays->local_values, sizeof(arrays->local_values),
					   &arrays->values);

	return status == STATUS_INVALID_PARAMETER ? refuse_arrays(call, count) : status;
}

NTSTATUS vmm_door_copy_list(const struct vmm_door_call *call, struct vmm_door_arrays *arrays,
			    const void *handles, const void *values, struct vmm_sync_list *list)
{
	NTSTATUS status = copy_handles(call, arrays, handles, list->count);

	arrays->values = NULL;
	if (NT_SUCCESS(status))
		status = copy_values(call, arrays, values, list->count);
	list->handles = arrays->handles;
	list->values = arrays->values;
	return status;
}

void vmm_door_arrays_done(const struct vmm_door_arrays *arrays)
{
	vmm_door_copy_done(arrays->handles, arrays->local_handles);
	vmm_door_copy_done(arrays->values, arrays->local_values);
}

struct vmm_sched_sync vmm_door_sync(struct vmm_door_arrays *arrays, enum vmm_sync_form form,
				    bool signal, uint32_t count, uint64_t value)
{
	arrays->handles = arrays->values = NULL;
	arrays->local_values[0] = value;
	return (struct vmm_sched_sync){.request = {.signal = signal,
						   .form = form,
						   .count = count,
						   .scalar = true,
						   .handles = arrays->local_handles,
						   .values = arrays->local_values}};
}

NTSTATUS vmm_door_copy_handles(const struct vmm_door_call *call, struct vmm_door_arrays *arrays,
			       struct vmm_sched_sync *sync, const void *handles)
{
	NTSTATUS status = copy_handles(call, arrays, handles, sync->request.count);

	if (arrays->handles)
		sync->request.handles = arrays->handles;
	return status;
}

NTSTATUS vmm_door_copy_fixed(const struct vmm_door_call *call, struct vmm_door_arrays *arrays,
			     struct vmm_sched_sync *sync, const uint32_t *handles)
{
	return sync->request.count <= VMM_ARRAY_LENGTH(arrays->local_handles)
		       ? vmm_door_copy_handles(call, arrays, sync, handles)
		       : STATUS_SUCCESS;
}

NTSTATUS vmm_door_read_union(const struct vmm_door_call *call, struct vmm_door_arrays *arrays,
			     struct vmm_sched_sync *sync, uint64_t value)
{
	arrays->local_values[0] = value;
	if (!vmm_sync_union_is_array(call->process, &sync->request))
		return STATUS_SUCCESS;
	NTSTATUS status =
		copy_values(call, arrays, (const void *)(uintptr_t)value, sync->request.count);
	sync->request.values = arrays->values;
	sync->request.scalar = false;
	return status;
}

NTSTATUS vmm_door_submit_sync(const struct vmm_door_call *call, const uint32_t *objects,
			      const uint64_t *values, struct vmm_hw_sync_request *request)
{
	uint32_t handles[VMM_HW_OBJECTS_MAX];
	uint64_t numbers[VMM_HW_OBJECTS_MAX];

	if (request->count <= VMM_HW_OBJECTS_MAX) {
		if (request->count && (!objects || !values))
			return STATUS_INVALID_PARAMETER;
		for (uint32_t i = 0; i < request->count; i++) {
			handles[i] = objects[i];
			numbers[i] = values[i];
		}
	}
	request->objects = handles;
	request->values = numbers;
	return vmm_hw_submit_sync(call->device, request);
}
