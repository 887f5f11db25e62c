/* SPDX-License-Identifier: MIT */
/*
 * NT handles: sharing, names, and opening synchronization objects. On Linux an NT handle is a file
 * descriptor.
 */
#include "kmt_calls.h"

#include <string.h>

/*
 * Copies the name of the attributes; the caller frees *text with vmm_free. Length 0: no attributes,
 * or none with a name. (SHR-11)
 */
static NTSTATUS copy_name(const struct vmm_process *process, const OBJECT_ATTRIBUTES *attributes,
			  struct vmm_nt_name *name, void **text)
{
	struct vmm_observe *observe = process->world->observe;

	*text = NULL;
	*name = (struct vmm_nt_name){0};
	if (!attributes)
		return STATUS_SUCCESS;
	OBJECT_ATTRIBUTES args = *attributes;
	if (args.Length != sizeof(args))
		return vmm_refuse_rule(observe, STATUS_INVALID_PARAMETER, "SHR-26", process->id, 0,
				       "object attributes: Length is %u, must be %zu",
				       (unsigned)args.Length, sizeof(args));
	if (!args.ObjectName)
		return STATUS_SUCCESS;
	if (args.RootDirectory)
		return vmm_refuse_reason(
			observe, STATUS_NOT_SUPPORTED, process->id, 0,
			"object attributes: RootDirectory is not built; names must be complete");
	UNICODE_STRING string = *args.ObjectName;
	if (!string.Length || string.Length % sizeof(uint16_t) || !string.Buffer)
		return vmm_refuse_rule(observe, STATUS_OBJECT_NAME_INVALID, "SHR-26", process->id,
				       0, "name of %u bytes: must have 1 to %u units of two bytes",
				       string.Length, VMM_NT_NAME_MAX);
	name->length = string.Length / (uint32_t)sizeof(uint16_t);
	NTSTATUS status =
		vmm_copy_in(string.Buffer, name->length, VMM_NT_NAME_MAX, sizeof(uint16_t), text);
	name->text = *text;
	return status;
}

/* Returns the device of a resource; 0 if the handle is not a resource. */
static D3DKMT_HANDLE device_of(struct vmm_process *process, D3DKMT_HANDLE handle)
{
	vmm_process_lock(process);
	const struct vmm_resource *resource =
		vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_RESOURCE);
	D3DKMT_HANDLE device = resource ? resource->device->handle : 0;
	vmm_process_unlock(process);
	return device;
}

/*
 * Finds the objects that the new NT handle is to name, with a reference. The call may have entered
 * a device afterwards. (SHR-07)
 */
static NTSTATUS find_target(struct vmm_door_call *call, UINT count, const D3DKMT_HANDLE *given,
			    struct vmm_nt_target *target)
{
	uint32_t handles[VMM_BUNDLE_MAX];

	if ((count != 1 && count != VMM_BUNDLE_MAX) || !given)
		return vmm_refuse_rule(
			call->observe, STATUS_INVALID_PARAMETER, "SHR-07", call->process->id, 0,
			"share objects: %u objects%s; one handle can share a resource, a "
			"synchronization object, or a resource with a keyed mutex and a "
			"synchronization object",
			count, given ? "" : ", and no array");
	memcpy(handles, given, count * sizeof(handles[0]));
	D3DKMT_HANDLE device = device_of(call->process, handles[0]);
	if (!device && count == 1)
		return vmm_sync_target(call->process, handles[0], target);
	if (!device)
		return vmm_refuse_rule(
			call->observe, STATUS_INVALID_PARAMETER, "SHR-07", call->process->id,
			handles[0],
			"share objects: the first of three, 0x%08x, is not a live resource",
			handles[0]);
	uint64_t began = call->began;
	NTSTATUS status = vmm_kmt_enter_device(call, device, call->door, false);
	call->began = began;
	return NT_SUCCESS(status) ? vmm_bundle_target(call->device, handles, count, target)
				  : status;
}

/* The objects are checked before the name. (SHR-37) */
static NTSTATUS share(struct vmm_door_call *call, UINT count, const D3DKMT_HANDLE *handles,
		      const OBJECT_ATTRIBUTES *attributes, uint32_t access, HANDLE *result)
{
	struct vmm_nt_target target;
	struct vmm_nt_name name;
	uint64_t handle = 0;
	void *text = NULL;
	NTSTATUS status = find_target(call, count, handles, &target);

	if (!NT_SUCCESS(status))
		return status;
	status = copy_name(call->process, attributes, &name, &text);
	if (NT_SUCCESS(status))
		status = vmm_nt_share(call->process, &target, &name, access, &handle);
	vmm_free(text);
	target.put(target.object);
	if (NT_SUCCESS(status))
		*result = (HANDLE)(uintptr_t)handle;
	return status;
}

/*
 * Any access mask is accepted (SHR-09). It has an effect where the host enforces access rights
 * (SHR-10).
 */
KMT_API NTSTATUS APIENTRY D3DKMTShareObjects(UINT cObjects, const D3DKMT_HANDLE *hObjects,
					     OBJECT_ATTRIBUTES *pObjectAttributes,
					     DWORD dwDesiredAccess, HANDLE *phSharedNtHandle)
{
	struct vmm_door_call call;

	if (!phSharedNtHandle)
		return vmm_kmt_refuse(VIDMM_DOOR_SHARE_OBJECTS, "D3DKMTShareObjects",
				      "phSharedNtHandle is NULL");
	NTSTATUS status = vmm_kmt_begin(&call, VIDMM_DOOR_SHARE_OBJECTS);
	if (!NT_SUCCESS(status))
		return status;
	D3DKMT_HANDLE first = cObjects && hObjects ? hObjects[0] : 0;
	status = share(&call, cObjects, hObjects, pObjectAttributes, dwDesiredAccess,
		       phSharedNtHandle);
	return vmm_kmt_leave(&call, status, first, cObjects, dwDesiredAccess);
}

NTSTATUS vmm_kmt_open_name(const struct vmm_door_call *call, enum vmm_nt_kind kind,
			   const OBJECT_ATTRIBUTES *attributes, uint32_t access, uint64_t *handle)
{
	struct vmm_nt_name name;
	void *text = NULL;
	NTSTATUS status = copy_name(call->process, attributes, &name, &text);

	if (NT_SUCCESS(status) && !name.length)
		status = vmm_refuse_rule(
			call->observe, STATUS_OBJECT_NAME_INVALID, "SHR-21", call->process->id, 0,
			"open NT handle from name: the attributes contain no name");
	if (NT_SUCCESS(status))
		status = vmm_nt_handle_of_name(call->process, kind, &name, access, handle);
	vmm_free(text);
	return status;
}

/* No process here is a guest of a hypervisor. (SHR-36) */
NTSTATUS vmm_kmt_share_with_host(struct vmm_door_call *call, const D3DKMT_SHAREOBJECTWITHHOST *args)
{
	return vmm_refuse_reason(
		call->observe, STATUS_NOT_SUPPORTED, call->process->id, args->hObject,
		"SHR-36: share object with host: this process is not a guest of a hypervisor");
}
