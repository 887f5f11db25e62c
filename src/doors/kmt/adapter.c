/* SPDX-License-Identifier: MIT */
/*
 * Enumerating and opening adapters. A handle names an adapter's LUID, not the adapter object. It
 * may outlive the adapter, and a device made from it outlives the handle (HND-10).
 */
#include "doors/kmt/kmt_private.h"

#include <string.h>

/*
 * The count that D3DKMTEnumAdapters2 returns without an array, and the array size of
 * D3DKMTEnumAdapters. (ADP-01, ADP-08)
 */
#define ENUM2_CAPACITY 34u
#define ENUM1_CAPACITY 16u

static LUID luid_of(const struct vmm_adapter *adapter)
{
	return (LUID){.LowPart = adapter->luid};
}

/*
 * The end of the process frees its adapter handles, so the object of such a handle is a number with
 * nothing to free.
 */
static D3DKMT_HANDLE new_handle(struct vmm_process *process, const struct vmm_adapter *adapter)
{
	vmm_process_lock(process);
	D3DKMT_HANDLE handle = vmm_handle_create(&process->handles, VMM_HANDLE_ADAPTER,
						 (void *)(uintptr_t)adapter->luid);
	vmm_process_unlock(process);
	return handle;
}

static void drop_handle(struct vmm_process *process, D3DKMT_HANDLE handle)
{
	vmm_process_lock(process);
	vmm_handle_destroy(&process->handles, handle);
	vmm_process_unlock(process);
}

struct vmm_adapter *vmm_kmt_adapter(struct vmm_process *process, D3DKMT_HANDLE handle)
{
	vmm_process_lock(process);
	uint32_t luid = (uint32_t)(uintptr_t)vmm_handle_lookup(&process->handles, handle,
							       VMM_HANDLE_ADAPTER);
	if (!luid)
		vmm_finding(process->world->observe, "HND-07", process->id, handle,
			    "0x%08x is not a live adapter handle of process %u (%s)", handle,
			    process->id,
			    vmm_handle_explain(&process->handles, handle, VMM_HANDLE_ADAPTER));
	vmm_process_unlock(process);
	return luid ? vmm_adapter_get(process->world, luid) : NULL;
}

/*
 * Fills at most `capacity` entries. Returns in *count the number of adapters; 0 is valid (ADP-09).
 * Each entry gets a new handle (HND-09); on failure none is left. Each adapter renders and has no
 * source, so every filter includes it (ADP-03, ADP-04).
 */
static NTSTATUS enumerate(struct vmm_process *process, D3DKMT_ADAPTERINFO *info, uint32_t capacity,
			  uint32_t *count)
{
	uint32_t made = 0;
	NTSTATUS status = STATUS_SUCCESS;

	*count = vmm_adapter_count(process->world);
	if (*count > capacity)
		return STATUS_BUFFER_TOO_SMALL;
	for (uint32_t i = 0; i < *count && NT_SUCCESS(status); i++) {
		struct vmm_adapter *adapter = vmm_adapter_nth(process->world, i);

		if (!adapter)
			break; /* an adapter has stopped meanwhile */
		info[made] = (D3DKMT_ADAPTERINFO){.hAdapter = new_handle(process, adapter),
						  .AdapterLuid = luid_of(adapter)};
		vmm_adapter_put(adapter);
		if (info[made].hAdapter)
			made++;
		else
			status = STATUS_NO_MEMORY;
	}
	while (!NT_SUCCESS(status) && made)
		drop_handle(process, info[--made].hAdapter);
	*count = made;
	return status;
}

static NTSTATUS enumerate_into(const char *function, D3DKMT_ADAPTERINFO *adapters,
			       uint32_t capacity, ULONG *count)
{
	struct vmm_process *process = vmm_kmt_process();
	D3DKMT_ADAPTERINFO local[ENUM2_CAPACITY];
	uint32_t found;

	if (!process)
		return STATUS_UNSUCCESSFUL;
	NTSTATUS status = enumerate(process, local, vmm_min_u32(capacity, ENUM2_CAPACITY), &found);
	if (status == STATUS_BUFFER_TOO_SMALL)
		vmm_finding(process->world->observe, "ADP-01", process->id, 0,
			    "%s: there are %u adapters, NumAdapters is %u", function, found,
			    capacity);
	if (!NT_SUCCESS(status))
		return status;
	for (uint32_t i = 0; i < found; i++)
		adapters[i] = local[i];
	*count = found;
	return STATUS_SUCCESS;
}

/* Fills at most the 16 entries of the fixed array. (ADP-08) */
KMT_API NTSTATUS APIENTRY D3DKMTEnumAdapters(const D3DKMT_ENUMADAPTERS *pData)
{
	D3DKMT_ENUMADAPTERS *data = (D3DKMT_ENUMADAPTERS *)(uintptr_t)pData;

	if (!data)
		return vmm_kmt_refuse("D3DKMTEnumAdapters", "the argument pointer is NULL");
	return enumerate_into("D3DKMTEnumAdapters", data->Adapters, ENUM1_CAPACITY,
			      &data->NumAdapters);
}

KMT_API NTSTATUS APIENTRY D3DKMTEnumAdapters2(const D3DKMT_ENUMADAPTERS2 *pData)
{
	/* The argument is an output, although the header declares it const. */
	D3DKMT_ENUMADAPTERS2 *data = (D3DKMT_ENUMADAPTERS2 *)(uintptr_t)pData;

	if (!data)
		return vmm_kmt_refuse("D3DKMTEnumAdapters2", "the argument pointer is NULL");
	if (!vmm_kmt_process())
		return STATUS_UNSUCCESSFUL;
	if (!data->pAdapters) { /* the capacity to allocate, not the number (ADP-01) */
		data->NumAdapters = ENUM2_CAPACITY;
		return STATUS_SUCCESS;
	}
	return enumerate_into("D3DKMTEnumAdapters2", data->pAdapters, data->NumAdapters,
			      &data->NumAdapters);
}

KMT_API NTSTATUS APIENTRY D3DKMTEnumAdapters3(D3DKMT_ENUMADAPTERS3 *pData)
{
	struct vmm_process *process = vmm_kmt_process();

	if (!pData)
		return vmm_kmt_refuse("D3DKMTEnumAdapters3", "the argument pointer is NULL");
	if (!process)
		return STATUS_UNSUCCESSFUL;
	if (pData->Filter.Reserved)
		return vmm_refuse_rule(process->world->observe, STATUS_INVALID_PARAMETER, "ADP-02",
				       process->id, 0,
				       "D3DKMTEnumAdapters3: Filter 0x%llx has reserved bits",
				       (unsigned long long)pData->Filter.Value);
	if (!pData->pAdapters) { /* here it is the number (ADP-02) */
		pData->NumAdapters = vmm_adapter_count(process->world);
		return STATUS_SUCCESS;
	}
	return enumerate_into("D3DKMTEnumAdapters3", pData->pAdapters, pData->NumAdapters,
			      &pData->NumAdapters);
}

KMT_API NTSTATUS APIENTRY D3DKMTOpenAdapterFromLuid(const D3DKMT_OPENADAPTERFROMLUID *pData)
{
	D3DKMT_OPENADAPTERFROMLUID *data = (D3DKMT_OPENADAPTERFROMLUID *)(uintptr_t)pData;
	struct vmm_process *process = vmm_kmt_process();

	if (!data)
		return vmm_kmt_refuse("D3DKMTOpenAdapterFromLuid", "the argument pointer is NULL");
	if (!process)
		return STATUS_UNSUCCESSFUL;
	LUID luid = data->AdapterLuid;
	struct vmm_adapter *adapter =
		luid.HighPart ? NULL : vmm_adapter_get(process->world, luid.LowPart);
	if (!adapter)
		return vmm_refuse_rule(
			process->world->observe, STATUS_INVALID_PARAMETER, "ADP-06", process->id, 0,
			"D3DKMTOpenAdapterFromLuid: no adapter has the LUID 0x%x:0x%x",
			(unsigned)luid.HighPart, luid.LowPart);
	D3DKMT_HANDLE handle = new_handle(process, adapter);
	vmm_adapter_put(adapter);
	if (!handle)
		return STATUS_NO_MEMORY;
	data->hAdapter = handle;
	return STATUS_SUCCESS;
}

/* Ends the handle only: devices made from it stay usable. (HND-10) */
KMT_API NTSTATUS APIENTRY D3DKMTCloseAdapter(const D3DKMT_CLOSEADAPTER *pData)
{
	struct vmm_process *process = vmm_kmt_process();

	if (!pData)
		return vmm_kmt_refuse("D3DKMTCloseAdapter", "the argument pointer is NULL");
	if (!process)
		return STATUS_UNSUCCESSFUL;
	D3DKMT_HANDLE handle = pData->hAdapter;
	vmm_process_lock(process);
	bool is_live = vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_ADAPTER);
	if (is_live)
		vmm_handle_destroy(&process->handles, handle);
	else
		vmm_finding(process->world->observe, "ADP-07", process->id, handle,
			    "D3DKMTCloseAdapter: 0x%08x is not a live adapter handle (%s)", handle,
			    vmm_handle_explain(&process->handles, handle, VMM_HANDLE_ADAPTER));
	vmm_process_unlock(process);
	return is_live ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER;
}
