/* SPDX-License-Identifier: MIT */
/*
 * D3DKMT functions over a connection. Most are plain calls. Locks and fences are tried without a
 * message first; trim callbacks are registered on this side too.
 */
#include "client/client_private.h"

#include <d3dkmthk.h>

static NTSTATUS call(struct vidmm_connection *connection, uint32_t operation, void *argument)
{
	int32_t result;
	vmm_status status = vmm_client_call(connection, operation, 0, argument, &result);

	return vmm_ok(status) ? result : status;
}

/*
 * The host gets the number of the registration as its context. The program's function is found by
 * that number.
 */
static NTSTATUS register_trim(struct vidmm_connection *connection, uint32_t operation,
			      D3DKMT_REGISTERTRIMNOTIFICATION *given)
{
	if (!given)
		return call(connection, operation, NULL);
	D3DKMT_REGISTERTRIMNOTIFICATION args = *given;
	uint64_t number =
		vmm_client_register(connection, VMM_NOTIFICATION_TRIM, args.hDevice,
				    (void *)(uintptr_t)args.Callback, (void *)args.Context);
	if (!number)
		return STATUS_NO_MEMORY;
	args.Context = (void *)(uintptr_t)number;
	NTSTATUS status = call(connection, operation, &args);
	if (NT_SUCCESS(status)) {
		vmm_client_registered(connection, number, args.Handle);
		given->Handle = args.Handle;
	} else {
		vmm_client_unregister(connection, number);
	}
	return status;
}

static NTSTATUS unregister_trim(struct vidmm_connection *connection, uint32_t operation,
				D3DKMT_UNREGISTERTRIMNOTIFICATION *args)
{
	void *handle = args ? args->Handle : NULL;
	uint64_t number =
		handle ? vmm_client_find(connection, VMM_NOTIFICATION_TRIM, 0, handle) : 0;
	NTSTATUS status = call(connection, operation, args);

	if (NT_SUCCESS(status) && number)
		vmm_client_unregister(connection, number);
	return status;
}

/* The trim registrations of a device end with it. */
static NTSTATUS destroy_device(struct vidmm_connection *connection, uint32_t operation,
			       D3DKMT_DESTROYDEVICE *args)
{
	uint32_t device = args ? args->hDevice : 0;
	NTSTATUS status = call(connection, operation, args);
	uint64_t number;

	while (NT_SUCCESS(status) &&
	       (number = vmm_client_find(connection, VMM_NOTIFICATION_TRIM, device, NULL)) != 0)
		vmm_client_unregister(connection, number);
	return status;
}

/* ---- locks: without a message where possible ---- */

static NTSTATUS lock_or_call(struct vidmm_connection *connection, uint32_t operation, void *args,
			     const struct vmm_client_lock *request, void **data)
{
	void *address = vmm_client_lock(connection, request);

	if (!address)
		return call(connection, operation, args);
	*data = address;
	return STATUS_SUCCESS;
}

static NTSTATUS lock(struct vidmm_connection *connection, D3DKMT_LOCK *args)
{
	if (!args)
		return call(connection, VMM_WIRE_D3DKMTLock, args);
	const struct vmm_client_lock request = {.device = args->hDevice,
						.handle = args->hAllocation,
						.flags = args->Flags.Value,
						.pages = args->pPages,
						.page_count = args->NumPages};
	return lock_or_call(connection, VMM_WIRE_D3DKMTLock, args, &request, &args->pData);
}

static NTSTATUS lock2(struct vidmm_connection *connection, D3DKMT_LOCK2 *args)
{
	if (!args)
		return call(connection, VMM_WIRE_D3DKMTLock2, args);
	const struct vmm_client_lock request = {.device = args->hDevice,
						.handle = args->hAllocation,
						.flags = args->Flags.Value,
						.lock2 = true};
	return lock_or_call(connection, VMM_WIRE_D3DKMTLock2, args, &request, &args->pData);
}

static NTSTATUS unlock(struct vidmm_connection *connection, D3DKMT_UNLOCK *args)
{
	if (args && args->NumAllocations == 1 && args->phAllocations &&
	    vmm_client_unlock(connection, args->hDevice, args->phAllocations[0]))
		return STATUS_SUCCESS;
	return call(connection, VMM_WIRE_D3DKMTUnlock, args);
}

static NTSTATUS unlock2(struct vidmm_connection *connection, D3DKMT_UNLOCK2 *args)
{
	if (args && vmm_client_unlock(connection, args->hDevice, args->hAllocation))
		return STATUS_SUCCESS;
	return call(connection, VMM_WIRE_D3DKMTUnlock2, args);
}

/* ---- fences: without a message where possible ---- */

static NTSTATUS signal_fence(struct vidmm_connection *connection,
			     D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU *args)
{
	int32_t result;

	if (args && args->ObjectCount == 1 && !args->Flags.Value && args->ObjectHandleArray &&
	    args->FenceValueArray &&
	    vmm_client_signal(connection, args->hDevice, *args->ObjectHandleArray,
			      *args->FenceValueArray, &result))
		return result;
	return call(connection, VMM_WIRE_D3DKMTSignalSynchronizationObjectFromCpu, args);
}

static NTSTATUS wait_for_fence(struct vidmm_connection *connection,
			       D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU *args)
{
	int32_t result;

	if (args && args->ObjectCount == 1 && !args->Flags.Value && !args->hAsyncEvent &&
	    args->ObjectHandleArray && args->FenceValueArray &&
	    vmm_client_wait(connection, args->hDevice, *args->ObjectHandleArray,
			    *args->FenceValueArray, &result))
		return result;
	return call(connection, VMM_WIRE_D3DKMTWaitForSynchronizationObjectFromCpu, args);
}

vmm_status vmm_client_d3dkmt(struct vidmm_connection *connection, uint32_t operation,
			     void *argument)
{
	switch (operation) {
	case VMM_WIRE_D3DKMTLock:
		return lock(connection, argument);
	case VMM_WIRE_D3DKMTUnlock:
		return unlock(connection, argument);
	case VMM_WIRE_D3DKMTLock2:
		return lock2(connection, argument);
	case VMM_WIRE_D3DKMTUnlock2:
		return unlock2(connection, argument);
	case VMM_WIRE_D3DKMTSignalSynchronizationObjectFromCpu:
		return signal_fence(connection, argument);
	case VMM_WIRE_D3DKMTWaitForSynchronizationObjectFromCpu:
		return wait_for_fence(connection, argument);
	case VMM_WIRE_D3DKMTRegisterTrimNotification:
		return register_trim(connection, operation, argument);
	case VMM_WIRE_D3DKMTUnregisterTrimNotification:
		return unregister_trim(connection, operation, argument);
	case VMM_WIRE_D3DKMTDestroyDevice:
		return destroy_device(connection, operation, argument);
	default:
		return call(connection, operation, argument);
	}
}
