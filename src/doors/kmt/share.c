/* SPDX-License-Identifier: MIT */
/* Opening resources that somebody shared by a global handle. */
#include "doors/kmt/kmt_private.h"

#include <string.h>

KMT_API NTSTATUS APIENTRY D3DKMTQueryResourceInfo(D3DKMT_QUERYRESOURCEINFO *pData)
{
	struct vmm_kmt_call call;
	struct vmm_share_sizes sizes;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTQueryResourceInfo", "no argument");
	D3DKMT_QUERYRESOURCEINFO args = *pData;
	NTSTATUS status = vmm_kmt_enter_device(&call, args.hDevice, VIDMM_DOOR_OTHER, false);
	if (NT_SUCCESS(status))
		status = vmm_share_sizes(call.device, args.hGlobalShare, &sizes);
	if (NT_SUCCESS(status)) {
		pData->PrivateRuntimeDataSize = sizes.runtime_bytes;
		pData->ResourcePrivateDriverDataSize = sizes.private_bytes;
		pData->TotalPrivateDriverDataSize = sizes.total_item_bytes;
		pData->NumAllocations = sizes.count;
	}
	return vmm_kmt_leave(&call, status, args.hGlobalShare, 1, 0);
}

KMT_API NTSTATUS APIENTRY
D3DKMTGetSharedResourceAdapterLuid(D3DKMT_GETSHAREDRESOURCEADAPTERLUID *pData)
{
	struct vmm_process *process = vmm_kmt_process();
	uint32_t luid;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTGetSharedResourceAdapterLuid", "no argument");
	if (!process)
		return STATUS_UNSUCCESSFUL;
	D3DKMT_GETSHAREDRESOURCEADAPTERLUID args = *pData;
	if (args.hNtHandle) {
		vmm_reason(
			process->world->observe, STATUS_NOT_SUPPORTED, process->id, 0,
			"D3DKMTGetSharedResourceAdapterLuid: sharing by NT handles is not built");
		return STATUS_NOT_SUPPORTED;
	}
	NTSTATUS status = vmm_share_luid(process, args.hGlobalShare, &luid);
	if (NT_SUCCESS(status))
		pData->AdapterLuid = (LUID){.LowPart = luid};
	return status;
}

/* One open in the making. */
struct opening {
	struct vmm_kmt_call call;
	struct vmm_share_sizes sizes;
	uint32_t *handles, *item_bytes;
	uint32_t resource;
};

static NTSTATUS refuse(const struct opening *o, const char *rule, const char *what, uint32_t given,
		       uint32_t wanted)
{
	vmm_finding(o->call.device->adapter->observe, rule, o->call.process->id,
		    o->call.device->handle, "open resource: %s is %u, not %u", what, given, wanted);
	return STATUS_INVALID_PARAMETER;
}

static NTSTATUS check_open(const struct opening *o, const D3DKMT_OPENRESOURCE *args)
{
	const struct vmm_share_sizes *s = &o->sizes;

	if (args->NumAllocations != s->count || !args->pOpenAllocationInfo)
		return refuse(o, "ROP-01", "NumAllocations", args->NumAllocations, s->count);
	if (args->PrivateRuntimeDataSize != s->runtime_bytes ||
	    (s->runtime_bytes && !args->pPrivateRuntimeData))
		return refuse(o, "ROP-01", "PrivateRuntimeDataSize", args->PrivateRuntimeDataSize,
			      s->runtime_bytes);
	if (args->ResourcePrivateDriverDataSize != s->private_bytes ||
	    (s->private_bytes && !args->pResourcePrivateDriverData))
		return refuse(o, "ROP-01", "ResourcePrivateDriverDataSize",
			      args->ResourcePrivateDriverDataSize, s->private_bytes);
	if (s->total_item_bytes && !args->pTotalPrivateDriverDataBuffer)
		return refuse(o, "ROP-02", "the total buffer", 0, s->total_item_bytes);
	if (args->TotalPrivateDriverDataBufferSize < s->total_item_bytes) {
		(void)refuse(o, "ROP-02", "TotalPrivateDriverDataBufferSize",
			     args->TotalPrivateDriverDataBufferSize, s->total_item_bytes);
		return STATUS_NO_MEMORY;
	}
	return STATUS_SUCCESS;
}

static NTSTATUS open_resource(struct opening *o, const D3DKMT_OPENRESOURCE *args)
{
	uint32_t count = o->sizes.count;
	const struct vmm_share_data data = {.runtime_data = args->pPrivateRuntimeData,
					    .private_data = args->pResourcePrivateDriverData,
					    .items = args->pTotalPrivateDriverDataBuffer};

	o->handles = vmm_calloc(count, sizeof(*o->handles));
	o->item_bytes = vmm_calloc(count, sizeof(*o->item_bytes));
	if (!o->handles || !o->item_bytes)
		return STATUS_NO_MEMORY;
	NTSTATUS status = vmm_resource_open(o->call.device, args->hGlobalShare, &o->resource,
					    o->handles, &count);
	if (!NT_SUCCESS(status))
		return status;
	struct vmm_share_data into = data;
	into.item_bytes = o->item_bytes;
	status = vmm_share_read(o->call.device, args->hGlobalShare, &o->sizes, &into);
	if (!NT_SUCCESS(status)) { /* somebody destroyed and shared meanwhile */
		void *key;

		if (NT_SUCCESS(vmm_kmt_resource_key(&o->call, o->resource, &key)))
			(void)!vmm_memory_deallocate(o->call.device, key, NULL, 0, 0);
	}
	return status;
}

/* The caller's own private data pointers come to point into the total buffer (ROP-04). */
static void give_out(const struct opening *o, const D3DKMT_OPENRESOURCE *args, size_t step)
{
	char *data = args->pTotalPrivateDriverDataBuffer;

	for (uint32_t i = 0; i < o->sizes.count; i++) {
		D3DDDI_OPENALLOCATIONINFO info = {
			.hAllocation = o->handles[i],
			.pPrivateDriverData = o->item_bytes[i] ? data : NULL,
			.PrivateDriverDataSize = o->item_bytes[i],
		};

		memcpy((char *)args->pOpenAllocationInfo + i * step, &info, sizeof(info));
		if (o->item_bytes[i]) /* without any there is no buffer */
			data += o->item_bytes[i];
	}
}

static NTSTATUS open_with(D3DKMT_OPENRESOURCE *pData, const char *function, size_t step)
{
	struct opening o = {0};

	if (!pData)
		return vmm_kmt_refuse(function, "no argument");
	D3DKMT_OPENRESOURCE args = *pData;
	NTSTATUS status =
		vmm_kmt_enter_device(&o.call, args.hDevice, VIDMM_DOOR_OPEN_RESOURCE, false);
	if (NT_SUCCESS(status))
		status = vmm_share_sizes(o.call.device, args.hGlobalShare, &o.sizes);
	if (NT_SUCCESS(status))
		status = check_open(&o, &args);
	if (NT_SUCCESS(status))
		status = open_resource(&o, &args);
	if (NT_SUCCESS(status)) {
		give_out(&o, &args, step);
		pData->hResource = o.resource;
		pData->TotalPrivateDriverDataBufferSize = o.sizes.total_item_bytes;
	}
	vmm_free(o.handles);
	vmm_free(o.item_bytes);
	return vmm_kmt_leave(&o.call, status, o.resource, o.sizes.count, 0);
}

_Static_assert(offsetof(D3DDDI_OPENALLOCATIONINFO, pPrivateDriverData) ==
			       offsetof(D3DDDI_OPENALLOCATIONINFO2, pPrivateDriverData) &&
		       offsetof(D3DDDI_OPENALLOCATIONINFO, PrivateDriverDataSize) ==
			       offsetof(D3DDDI_OPENALLOCATIONINFO2, PrivateDriverDataSize),
	       "the older form is the beginning of the newer one");

KMT_API NTSTATUS APIENTRY D3DKMTOpenResource(D3DKMT_OPENRESOURCE *pData)
{
	return open_with(pData, "D3DKMTOpenResource", sizeof(D3DDDI_OPENALLOCATIONINFO));
}

KMT_API NTSTATUS APIENTRY D3DKMTOpenResource2(D3DKMT_OPENRESOURCE *pData)
{
	return open_with(pData, "D3DKMTOpenResource2", sizeof(D3DDDI_OPENALLOCATIONINFO2));
}
