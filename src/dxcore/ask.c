/* SPDX-License-Identifier: MIT */
/* What D3DKMT functions know of the adapters of the calling process's host. */
#include "dxcore/dxcore_private.h"

#include <string.h>

#include "host/kmt_route.h"

#define FACILITY_NT_BIT 0x10000000u

HRESULT vmm_dxcore_result(NTSTATUS status)
{
	if (NT_SUCCESS(status))
		return S_OK;
	if (status == STATUS_NO_MEMORY)
		return E_OUTOFMEMORY;
	if (status == STATUS_DEVICE_REMOVED)
		return DXGI_ERROR_DEVICE_REMOVED;
	return (HRESULT)((uint32_t)status | FACILITY_NT_BIT);
}

HRESULT vmm_dxcore_open(struct vmm_dxcore_adapters *adapters)
{
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = VMM_DXCORE_ADAPTERS_MAX,
				    .pAdapters = adapters->info};
	NTSTATUS status = D3DKMTEnumAdapters2(&all);

	adapters->count = NT_SUCCESS(status) ? all.NumAdapters : 0;
	/* Afterwards: the call may have connected the program to its host. */
	adapters->system = vmm_kmt_route_system();
	return vmm_dxcore_result(status);
}

void vmm_dxcore_close(const struct vmm_dxcore_adapters *adapters)
{
	for (uint32_t i = 0; i < adapters->count; i++) {
		const D3DKMT_CLOSEADAPTER close = {.hAdapter = adapters->info[i].hAdapter};

		(void)D3DKMTCloseAdapter(&close);
	}
}

D3DKMT_HANDLE vmm_dxcore_find(const struct vmm_dxcore_adapters *adapters, LUID luid)
{
	for (uint32_t i = 0; i < adapters->count; i++)
		if (vmm_dxcore_same_luid(adapters->info[i].AdapterLuid, luid))
			return adapters->info[i].hAdapter;
	return 0;
}

NTSTATUS vmm_dxcore_query(D3DKMT_HANDLE adapter, uint32_t type, void *data, size_t size)
{
	const D3DKMT_QUERYADAPTERINFO args = {.hAdapter = adapter,
					      .Type = (KMTQUERYADAPTERINFOTYPE)type,
					      .pPrivateDriverData = data,
					      .PrivateDriverDataSize = (UINT)size};

	return D3DKMTQueryAdapterInfo(&args);
}

/* A number of the adapter's registry key. */
static NTSTATUS read_number(D3DKMT_HANDLE adapter, const WCHAR *name, uint64_t *number)
{
	D3DDDI_QUERYREGISTRY_INFO info = {.QueryType = D3DDDI_QUERYREGISTRY_ADAPTERKEY};

	for (size_t i = 0; name[i]; i++)
		info.ValueName[i] = name[i];
	NTSTATUS status = vmm_dxcore_query(adapter, KMTQAITYPE_QUERYREGISTRY, &info, sizeof(info));

	if (NT_SUCCESS(status) && info.Status != D3DDDI_QUERYREGISTRY_STATUS_SUCCESS)
		return STATUS_UNSUCCESSFUL;
	if (NT_SUCCESS(status))
		*number = info.OutputValueSize == sizeof(uint64_t) ? info.OutputQword
								   : info.OutputDword;
	return status;
}

/* The host gives both values a default (DXC-26), so they exist. */
static NTSTATUS read_attributes(D3DKMT_HANDLE adapter, uint32_t *attributes)
{
	uint64_t runtimes = 0, hardware = 0;
	NTSTATUS status = read_number(adapter, L"VidmmAttributes", &runtimes);

	if (NT_SUCCESS(status))
		status = read_number(adapter, L"VidmmHardwareType", &hardware);
	*attributes = ((uint32_t)runtimes & VMM_DXCORE_RUNTIMES) |
		      ((uint32_t)hardware << VMM_DXCORE_HARDWARE_SHIFT & VMM_DXCORE_HARDWARE);
	return status;
}

/* Appends a character of the description as UTF-8; the D3DKMT text is ASCII (QAI-06). */
static NTSTATUS read_description(D3DKMT_HANDLE adapter, struct vmm_dxcore_facts *facts)
{
	D3DKMT_DRIVER_DESCRIPTION *wide = vmm_calloc(1, sizeof(*wide));
	NTSTATUS status = STATUS_NO_MEMORY;
	size_t length = 0;

	if (wide)
		status = vmm_dxcore_query(adapter, KMTQAITYPE_DRIVER_DESCRIPTION, wide,
					  sizeof(*wide));
	while (NT_SUCCESS(status) && length < sizeof(facts->description) - 1 &&
	       wide->DriverDescription[length]) {
		uint32_t c = (uint32_t)wide->DriverDescription[length];

		facts->description[length++] = (char)(c < 0x80 ? c : '?');
	}
	vmm_free(wide);
	return status;
}

/* DXC-14: only miniports of WDDM 1.2 and later report granularities. */
static NTSTATUS read_preemption(D3DKMT_HANDLE adapter, struct vmm_dxcore_facts *facts)
{
	D3DKMT_WDDM_1_2_CAPS caps;

	if (facts->kmd_model < KMT_DRIVERVERSION_WDDM_1_2)
		return STATUS_SUCCESS;
	NTSTATUS status = vmm_dxcore_query(adapter, KMTQAITYPE_WDDM_1_2_CAPS, &caps, sizeof(caps));

	if (!NT_SUCCESS(status))
		return status;
	facts->has_preemption = true;
	facts->graphics_preemption = (uint16_t)caps.PreemptionCaps.GraphicsPreemptionGranularity;
	facts->compute_preemption = (uint16_t)caps.PreemptionCaps.ComputePreemptionGranularity;
	return STATUS_SUCCESS;
}

HRESULT vmm_dxcore_read(const D3DKMT_ADAPTERINFO *adapter, struct vmm_dxcore_facts *facts)
{
	D3DKMT_HANDLE handle = adapter->hAdapter;
	D3DKMT_UMD_DRIVER_VERSION version = {.DriverVersion.QuadPart = 0};
	D3DKMT_QUERY_DEVICE_IDS ids = {.PhysicalAdapterIndex = 0};
	struct {
		uint32_t type;
		void *data;
		size_t size;
	} queries[] = {
		{KMTQAITYPE_ADAPTERTYPE, &facts->type, sizeof(facts->type)},
		{KMTQAITYPE_UMD_DRIVER_VERSION, &version, sizeof(version)},
		{KMTQAITYPE_DRIVERVERSION, &facts->kmd_model, sizeof(facts->kmd_model)},
		{KMTQAITYPE_PHYSICALADAPTERDEVICEIDS, &ids, sizeof(ids)},
		{KMTQAITYPE_GETSEGMENTSIZE, &facts->memory, sizeof(facts->memory)},
		{KMTQAITYPE_PHYSICALADAPTERCOUNT, &facts->physical_adapters,
		 sizeof(facts->physical_adapters)},
	};
	NTSTATUS status = STATUS_SUCCESS;

	memset(facts, 0, sizeof(*facts));
	facts->luid = adapter->AdapterLuid;
	for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]) && NT_SUCCESS(status); i++)
		status =
			vmm_dxcore_query(handle, queries[i].type, queries[i].data, queries[i].size);
	facts->driver_version = (uint64_t)version.DriverVersion.QuadPart;
	facts->ids = ids.DeviceIds;
	if (NT_SUCCESS(status))
		status = read_attributes(handle, &facts->attributes);
	if (NT_SUCCESS(status))
		status = read_description(handle, facts);
	if (NT_SUCCESS(status))
		status = read_preemption(handle, facts);
	/* The handle is live, so its adapter has ended. */
	return status == STATUS_INVALID_PARAMETER ? S_FALSE : vmm_dxcore_result(status);
}
