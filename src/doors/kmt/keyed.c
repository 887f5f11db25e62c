/* SPDX-License-Identifier: MIT */
/* Keyed mutexes of a D3DKMT client. They belong to a process, not to a device. */
#include "doors/kmt/kmt_private.h"

#include <string.h>

#define NS_PER_TICK 100u

NTSTATUS vmm_kmt_check_keyed_data(const struct vmm_process *process, const char *rule,
				  const void *data, uint32_t bytes)
{
	if (!bytes || (data && bytes <= VMM_KMT_PRIVATE_BYTES_MAX))
		return STATUS_SUCCESS;
	return vmm_refuse_rule(process->world->observe, STATUS_INVALID_PARAMETER, rule, process->id,
			       0, "keyed mutex: %u bytes of private runtime data%s", bytes,
			       data ? ", more than the maximum" : " and no pointer");
}

KMT_API NTSTATUS APIENTRY D3DKMTCreateKeyedMutex(D3DKMT_CREATEKEYEDMUTEX *pData)
{
	struct vmm_kmt_call call;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTCreateKeyedMutex (SYN-01, KMX-01)",
				      "the argument pointer is NULL");
	struct vmm_keyed_request request = {.key = pData->InitialValue};
	NTSTATUS status = vmm_kmt_begin(&call, VIDMM_DOOR_KEYED_MUTEX);
	if (!NT_SUCCESS(status))
		return status;
	status = vmm_keyed_create(call.process, &request);
	if (NT_SUCCESS(status)) {
		pData->hSharedHandle = request.global_handle;
		pData->hKeyedMutex = request.handle;
	}
	return vmm_kmt_leave(&call, status, request.handle, 1, 0);
}

KMT_API NTSTATUS APIENTRY D3DKMTCreateKeyedMutex2(D3DKMT_CREATEKEYEDMUTEX2 *pData)
{
	struct vmm_kmt_call call;
	void *data = NULL;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTCreateKeyedMutex2 (SYN-01, KMX-01)",
				      "the argument pointer is NULL");
	D3DKMT_CREATEKEYEDMUTEX2 args = *pData;
	struct vmm_keyed_request request = {.key = args.InitialValue,
					    .data_bytes = args.PrivateRuntimeDataSize,
					    .nt_security = args.Flags.NtSecuritySharing};
	NTSTATUS status = vmm_kmt_begin(&call, VIDMM_DOOR_KEYED_MUTEX);
	if (!NT_SUCCESS(status))
		return status;
	if (args.Flags.Reserved)
		status = vmm_refuse_rule(call.process->world->observe, STATUS_INVALID_PARAMETER,
					 "KMX-06", call.process->id, 0,
					 "create keyed mutex: reserved flags 0x%x are set",
					 args.Flags.Value);
	if (NT_SUCCESS(status))
		status = vmm_kmt_check_keyed_data(call.process, "KMX-07", args.pPrivateRuntimeData,
						  args.PrivateRuntimeDataSize);
	if (NT_SUCCESS(status))
		status = vmm_copy_in(args.pPrivateRuntimeData, args.PrivateRuntimeDataSize,
				     VMM_KMT_PRIVATE_BYTES_MAX, 1, &data);
	request.data = data;
	if (NT_SUCCESS(status))
		status = vmm_keyed_create(call.process, &request);
	vmm_free(data);
	if (NT_SUCCESS(status)) {
		pData->hSharedHandle = request.global_handle;
		pData->hKeyedMutex = request.handle;
	}
	return vmm_kmt_leave(&call, status, request.handle, 1, args.Flags.Value);
}

static NTSTATUS open_mutex(uint32_t global, const void *data, uint32_t bytes, D3DKMT_HANDLE *result)
{
	struct vmm_kmt_call call;
	struct vmm_keyed_open open = {
		.global = global, .with_data = data != NULL, .data_bytes = bytes};
	NTSTATUS status = vmm_kmt_begin(&call, VIDMM_DOOR_KEYED_MUTEX);

	if (!NT_SUCCESS(status))
		return status;
	status = vmm_kmt_check_keyed_data(call.process, "KMX-09", data, bytes);
	if (NT_SUCCESS(status))
		status = vmm_keyed_open(call.process, &open);
	if (NT_SUCCESS(status))
		*result = open.handle;
	return vmm_kmt_leave(&call, status, open.handle, 1, 0);
}

KMT_API NTSTATUS APIENTRY D3DKMTOpenKeyedMutex(D3DKMT_OPENKEYEDMUTEX *pData)
{
	if (!pData)
		return vmm_kmt_refuse("D3DKMTOpenKeyedMutex (SYN-01)",
				      "the argument pointer is NULL");
	return open_mutex(pData->hSharedHandle, NULL, 0, &pData->hKeyedMutex);
}

KMT_API NTSTATUS APIENTRY D3DKMTOpenKeyedMutex2(D3DKMT_OPENKEYEDMUTEX2 *pData)
{
	if (!pData)
		return vmm_kmt_refuse("D3DKMTOpenKeyedMutex2 (SYN-01)",
				      "the argument pointer is NULL");
	D3DKMT_OPENKEYEDMUTEX2 args = *pData;
	return open_mutex(args.hSharedHandle, args.pPrivateRuntimeData, args.PrivateRuntimeDataSize,
			  &pData->hKeyedMutex);
}

/* Opens the keyed mutex of a bundle without its resource. (KMX-10) */
KMT_API NTSTATUS APIENTRY D3DKMTOpenKeyedMutexFromNtHandle(D3DKMT_OPENKEYEDMUTEXFROMNTHANDLE *pData)
{
	struct vmm_bundle *bundle = NULL;
	struct vmm_kmt_call call;
	uint32_t sync;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTOpenKeyedMutexFromNtHandle (SYN-01)",
				      "the argument pointer is NULL");
	D3DKMT_OPENKEYEDMUTEXFROMNTHANDLE args = *pData;
	struct vmm_keyed_open open = {.with_data = args.pPrivateRuntimeData != NULL,
				      .data_bytes = args.PrivateRuntimeDataSize};
	NTSTATUS status = vmm_kmt_begin(&call, VIDMM_DOOR_KEYED_MUTEX);
	if (!NT_SUCCESS(status))
		return status;
	status = vmm_kmt_check_keyed_data(call.process, "KMX-09", args.pPrivateRuntimeData,
					  args.PrivateRuntimeDataSize);
	if (NT_SUCCESS(status))
		status =
			vmm_bundle_find(call.process, (uint64_t)(uintptr_t)args.hNtHandle, &bundle);
	if (NT_SUCCESS(status))
		status = vmm_bundle_open(call.process, NULL, bundle, &open, &sync);
	if (bundle)
		vmm_bundle_put(bundle);
	if (NT_SUCCESS(status))
		pData->hKeyedMutex = open.handle;
	return vmm_kmt_leave(&call, status, open.handle, 1, 0);
}

KMT_API NTSTATUS APIENTRY D3DKMTDestroyKeyedMutex(const D3DKMT_DESTROYKEYEDMUTEX *pData)
{
	struct vmm_kmt_call call;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTDestroyKeyedMutex (SYN-01)",
				      "the argument pointer is NULL");
	D3DKMT_HANDLE handle = pData->hKeyedMutex;
	NTSTATUS status = vmm_kmt_begin(&call, VIDMM_DOOR_KEYED_MUTEX);
	if (!NT_SUCCESS(status))
		return status;
	status = vmm_keyed_destroy(call.process, handle);
	return vmm_kmt_leave(&call, status, handle, 1, 0);
}

/*
 * NULL: wait forever. 0 or negative: relative time; positive: absolute system time; both in units
 * of 100 ns. (KMX-14)
 */
static uint64_t deadline_of(struct vmm_os *os, const LARGE_INTEGER *timeout)
{
	uint64_t now = vmm_os_now_ns(os), ticks, ns, deadline;

	if (!timeout)
		return VMM_OS_FOREVER;
	int64_t given = timeout->QuadPart;
	if (given <= 0) {
		ticks = 0 - (uint64_t)given;
	} else {
		uint64_t day = vmm_os_system_time(os);

		ticks = (uint64_t)given > day ? (uint64_t)given - day : 0;
	}
	if (vmm_mul_overflows(ticks, NS_PER_TICK, &ns) || vmm_add_overflows(now, ns, &deadline))
		return VMM_OS_FOREVER;
	return deadline;
}

static NTSTATUS acquire(D3DKMT_HANDLE handle, const LARGE_INTEGER *timeout,
			struct vmm_keyed_access *access, void *data)
{
	struct vmm_kmt_call call;
	NTSTATUS status = vmm_kmt_begin(&call, VIDMM_DOOR_KEYED_MUTEX);

	if (!NT_SUCCESS(status))
		return status;
	access->deadline_ns = deadline_of(call.process->world->os, timeout);
	status = vmm_kmt_check_keyed_data(call.process, "KMX-20", data, access->data_bytes);
	if (NT_SUCCESS(status) && access->data_bytes) {
		access->data = vmm_calloc(1, access->data_bytes);
		status = access->data ? STATUS_SUCCESS : STATUS_NO_MEMORY;
	}
	if (NT_SUCCESS(status))
		status = vmm_keyed_acquire(call.process, handle, access);
	if (status == STATUS_SUCCESS && data && access->data)
		memcpy(data, access->data, access->data_bytes);
	vmm_free(access->data);
	return vmm_kmt_leave(&call, status, handle, 1, access->key);
}

KMT_API NTSTATUS APIENTRY D3DKMTAcquireKeyedMutex(D3DKMT_ACQUIREKEYEDMUTEX *pData)
{
	if (!pData)
		return vmm_kmt_refuse("D3DKMTAcquireKeyedMutex", "the argument pointer is NULL");
	D3DKMT_ACQUIREKEYEDMUTEX args = *pData;
	struct vmm_keyed_access access = {.key = args.Key};
	NTSTATUS status = acquire(args.hKeyedMutex, args.pTimeout, &access, NULL);
	if (status == STATUS_SUCCESS)
		pData->FenceValue = access.fence;
	return status;
}

KMT_API NTSTATUS APIENTRY D3DKMTAcquireKeyedMutex2(D3DKMT_ACQUIREKEYEDMUTEX2 *pData)
{
	if (!pData)
		return vmm_kmt_refuse("D3DKMTAcquireKeyedMutex2", "the argument pointer is NULL");
	D3DKMT_ACQUIREKEYEDMUTEX2 args = *pData;
	struct vmm_keyed_access access = {.key = args.Key,
					  .data_bytes = args.PrivateRuntimeDataSize};
	NTSTATUS status =
		acquire(args.hKeyedMutex, args.pTimeout, &access, args.pPrivateRuntimeData);
	if (status == STATUS_SUCCESS)
		pData->FenceValue = access.fence;
	return status;
}

static NTSTATUS release(D3DKMT_HANDLE handle, struct vmm_keyed_access *access, const void *data)
{
	struct vmm_kmt_call call;
	NTSTATUS status = vmm_kmt_begin(&call, VIDMM_DOOR_KEYED_MUTEX);

	if (!NT_SUCCESS(status))
		return status;
	status = vmm_kmt_check_keyed_data(call.process, "KMX-20", data, access->data_bytes);
	if (NT_SUCCESS(status))
		status = vmm_copy_in(data, access->data_bytes, VMM_KMT_PRIVATE_BYTES_MAX, 1,
				     &access->data);
	if (NT_SUCCESS(status))
		status = vmm_keyed_release(call.process, handle, access);
	vmm_free(access->data);
	return vmm_kmt_leave(&call, status, handle, 1, access->key);
}

KMT_API NTSTATUS APIENTRY D3DKMTReleaseKeyedMutex(D3DKMT_RELEASEKEYEDMUTEX *pData)
{
	if (!pData)
		return vmm_kmt_refuse("D3DKMTReleaseKeyedMutex", "the argument pointer is NULL");
	D3DKMT_RELEASEKEYEDMUTEX args = *pData;
	struct vmm_keyed_access access = {.key = args.Key, .fence = args.FenceValue};
	return release(args.hKeyedMutex, &access, NULL);
}

KMT_API NTSTATUS APIENTRY D3DKMTReleaseKeyedMutex2(D3DKMT_RELEASEKEYEDMUTEX2 *pData)
{
	if (!pData)
		return vmm_kmt_refuse("D3DKMTReleaseKeyedMutex2", "the argument pointer is NULL");
	D3DKMT_RELEASEKEYEDMUTEX2 args = *pData;
	struct vmm_keyed_access access = {.key = args.Key,
					  .fence = args.FenceValue,
					  .data_bytes = args.PrivateRuntimeDataSize};
	return release(args.hKeyedMutex, &access, args.pPrivateRuntimeData);
}
