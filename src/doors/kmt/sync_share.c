/* SPDX-License-Identifier: MIT */
/* NT handles of synchronization objects: sharing, names, opening. On Linux such a handle is a file descriptor. */
#include "doors/kmt/kmt_private.h"

static NTSTATUS begin(struct vmm_kmt_call *call, uint32_t door)
{
	*call = (struct vmm_kmt_call){.process = vmm_kmt_process(), .door = door};
	if (!call->process)
		return STATUS_UNSUCCESSFUL;
	call->began = vmm_observe_begin(call->process->world->observe, VIDMM_EVENT_DOOR);
	return STATUS_SUCCESS;
}

/* A copy of the name, to be freed with vmm_free(*text); no attributes, or none in them: length 0 (SHR-11). */
static NTSTATUS copy_name(const struct vmm_process *process, const OBJECT_ATTRIBUTES *attributes,
			  struct vmm_sync_name *name, void **text)
{
	struct vmm_observe *observe = process->world->observe;

	*text = NULL;
	*name = (struct vmm_sync_name){0};
	if (!attributes)
		return STATUS_SUCCESS;
	OBJECT_ATTRIBUTES args = *attributes;
	if (args.Length != sizeof(args)) {
		vmm_finding(observe, "SHR-26", process->id, 0,
			    "object attributes of length %u, not %zu", (unsigned)args.Length,
			    sizeof(args));
		return STATUS_INVALID_PARAMETER;
	}
	if (!args.ObjectName)
		return STATUS_SUCCESS;
	if (args.RootDirectory) {
		vmm_reason(observe, STATUS_NOT_SUPPORTED, process->id, 0,
			   "object attributes: a RootDirectory is not built, names are whole ones");
		return STATUS_NOT_SUPPORTED;
	}
	UNICODE_STRING string = *args.ObjectName;
	if (!string.Length || string.Length % sizeof(uint16_t) || !string.Buffer) {
		vmm_finding(observe, "SHR-26", process->id, 0,
			    "a name of %u bytes: it has 1 to %u units of two bytes", string.Length,
			    VMM_SYNC_NAME_MAX);
		return STATUS_OBJECT_NAME_INVALID;
	}
	name->length = string.Length / (uint32_t)sizeof(uint16_t);
	NTSTATUS status =
		vmm_copy_in(string.Buffer, name->length, VMM_SYNC_NAME_MAX, sizeof(uint16_t), text);
	name->text = *text;
	return status;
}

static bool is_a(struct vmm_process *process, D3DKMT_HANDLE handle, enum vmm_handle_type type)
{
	vmm_os_mutex_lock(&process->lock);
	bool found = vmm_handle_lookup(&process->handles, handle, type);
	vmm_os_mutex_unlock(&process->lock);
	return found;
}

/* SHR-07: what can be named together; one synchronization object is what is built. */
static NTSTATUS check_objects(struct vmm_process *process, UINT count, const D3DKMT_HANDLE *handles)
{
	struct vmm_observe *observe = process->world->observe;

	if (count == 1 && handles && !is_a(process, handles[0], VMM_HANDLE_RESOURCE))
		return STATUS_SUCCESS;
	if (handles && (count == 1 || count == D3DKMT_MAX_OBJECTS_PER_HANDLE) &&
	    is_a(process, handles[0], VMM_HANDLE_RESOURCE)) {
		vmm_reason(
			observe, STATUS_NOT_SUPPORTED, process->id, handles[0],
			"share objects: NT handles of resources, alone or with a keyed mutex and "
			"a synchronization object, are not built");
		return STATUS_NOT_SUPPORTED;
	}
	vmm_finding(observe, "SHR-07", process->id, 0,
		    "share objects: %u objects%s: a resource, a synchronization object, or a "
		    "resource, a keyed mutex and a synchronization object are shared by one handle",
		    count, handles ? "" : ", and no array");
	return STATUS_INVALID_PARAMETER;
}

static NTSTATUS share(struct vmm_process *process, UINT count, const D3DKMT_HANDLE *handles,
		      const OBJECT_ATTRIBUTES *attributes, HANDLE *result)
{
	struct vmm_sync_name name;
	uint64_t handle = 0;
	void *text = NULL;
	NTSTATUS status = check_objects(process, count, handles);

	if (NT_SUCCESS(status))
		status = copy_name(process, attributes, &name, &text);
	if (NT_SUCCESS(status))
		status = vmm_sync_share(process, handles[0], &name, &handle);
	vmm_free(text);
	if (NT_SUCCESS(status))
		*result = (HANDLE)(uintptr_t)handle;
	return status;
}

/* SHR-09: whatever access is asked for; SHR-10: what it says is not enforced. */
KMT_API NTSTATUS APIENTRY D3DKMTShareObjects(UINT cObjects, const D3DKMT_HANDLE *hObjects,
					     OBJECT_ATTRIBUTES *pObjectAttributes,
					     DWORD dwDesiredAccess, HANDLE *phSharedNtHandle)
{
	struct vmm_kmt_call call;

	if (!phSharedNtHandle)
		return vmm_kmt_refuse("D3DKMTShareObjects", "no place for the handle");
	NTSTATUS status = begin(&call, VIDMM_DOOR_SHARE_OBJECTS);
	if (!NT_SUCCESS(status))
		return status;
	D3DKMT_HANDLE first = cObjects && hObjects ? hObjects[0] : 0;
	status = share(call.process, cObjects, cObjects == 1 && hObjects ? &first : hObjects,
		       pObjectAttributes, phSharedNtHandle);
	return vmm_kmt_leave(&call, status, first, cObjects, dwDesiredAccess);
}

KMT_API NTSTATUS APIENTRY
D3DKMTOpenSyncObjectNtHandleFromName(D3DKMT_OPENSYNCOBJECTNTHANDLEFROMNAME *pData)
{
	struct vmm_kmt_call call;
	struct vmm_sync_name name;
	uint64_t handle = 0;
	void *text = NULL;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTOpenSyncObjectNtHandleFromName", "no argument");
	D3DKMT_OPENSYNCOBJECTNTHANDLEFROMNAME args = *pData;
	if (!args.pObjAttrib)
		return vmm_kmt_refuse("D3DKMTOpenSyncObjectNtHandleFromName (SHR-21)", "no name");
	NTSTATUS status = begin(&call, VIDMM_DOOR_OPEN_SYNC);
	if (!NT_SUCCESS(status))
		return status;
	status = copy_name(call.process, args.pObjAttrib, &name, &text);
	if (NT_SUCCESS(status))
		status =
			vmm_sync_handle_of_name(call.process, &name, args.dwDesiredAccess, &handle);
	vmm_free(text);
	if (NT_SUCCESS(status))
		pData->hNtHandle = (HANDLE)(uintptr_t)handle;
	return vmm_kmt_leave(&call, status, 0, 1, args.dwDesiredAccess);
}

KMT_API NTSTATUS APIENTRY D3DKMTOpenSyncObjectFromNtHandle(D3DKMT_OPENSYNCOBJECTFROMNTHANDLE *pData)
{
	struct vmm_kmt_call call;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTOpenSyncObjectFromNtHandle (SYN-01)", "no argument");
	struct vmm_sync_open open = {.nt_handle = (uint64_t)(uintptr_t)pData->hNtHandle};
	NTSTATUS status = begin(&call, VIDMM_DOOR_OPEN_SYNC);
	if (!NT_SUCCESS(status))
		return status;
	status = vmm_sync_open_shared(call.process, &open);
	if (NT_SUCCESS(status))
		pData->hSyncObject = open.handle;
	return vmm_kmt_leave(&call, status, open.handle, 1, 0);
}

/* SHR-14: the device first. */
KMT_API NTSTATUS APIENTRY
D3DKMTOpenSyncObjectFromNtHandle2(D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2 *pData)
{
	struct vmm_kmt_call call;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTOpenSyncObjectFromNtHandle2 (SYN-01)", "no argument");
	D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2 args = *pData;
	struct vmm_sync_open open = {.nt_handle = (uint64_t)(uintptr_t)args.hNtHandle,
				     .flags = args.Flags.Value,
				     .affinity = args.MonitoredFence.EngineAffinity};
	NTSTATUS status = vmm_kmt_enter_device(&call, args.hDevice, VIDMM_DOOR_OPEN_SYNC, false);
	open.device = call.device;
	if (NT_SUCCESS(status))
		status = vmm_sync_open_shared(call.process, &open);
	if (NT_SUCCESS(status)) {
		pData->hSyncObject = open.handle;
		if (open.cpu_address) {
			pData->MonitoredFence.FenceValueCPUVirtualAddress = open.cpu_address;
			pData->MonitoredFence.FenceValueGPUVirtualAddress = 0;
		}
	}
	return vmm_kmt_leave(&call, status, open.handle, 1, args.Flags.Value);
}
