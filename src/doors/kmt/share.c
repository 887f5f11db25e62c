/* SPDX-License-Identifier: MIT */
/* Opening shared resources, by a global handle or by an NT handle. */
#include "doors/kmt/kmt_private.h"

#include <string.h>

KMT_API NTSTATUS APIENTRY
D3DKMTGetSharedResourceAdapterLuid(D3DKMT_GETSHAREDRESOURCEADAPTERLUID *pData)
{
	struct vmm_process *process = vmm_kmt_process();
	NTSTATUS status = STATUS_SUCCESS;
	uint32_t luid;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTGetSharedResourceAdapterLuid",
				      "the argument pointer is NULL");
	if (!process)
		return STATUS_UNSUCCESSFUL;
	D3DKMT_GETSHAREDRESOURCEADAPTERLUID args = *pData;
	struct vmm_share_key key = {.global = args.hGlobalShare};
	if (args.hNtHandle)
		status = vmm_bundle_find(process, (uint64_t)(uintptr_t)args.hNtHandle, &key.bundle);
	if (NT_SUCCESS(status))
		status = vmm_share_luid(process, &key, &luid);
	if (key.bundle)
		vmm_bundle_put(key.bundle);
	if (NT_SUCCESS(status))
		pData->AdapterLuid = (LUID){.LowPart = luid};
	return status;
}

/* One open call in progress. */
struct opening {
	struct vmm_door_call call;
	struct vmm_share_key key;
	struct vmm_share_sizes sizes;
	uint32_t *handles, *item_bytes;
	uint32_t resource;
};

static NTSTATUS refuse_open(const struct opening *o, const char *rule, const char *what,
			    uint32_t given, uint32_t wanted)
{
	return vmm_refuse_rule(o->call.observe, STATUS_INVALID_PARAMETER, rule, o->call.process->id,
			       o->call.device->handle, "open resource: %s is %u, must be %u", what,
			       given, wanted);
}

static NTSTATUS check_open(const struct opening *o, const D3DKMT_OPENRESOURCE *args)
{
	const struct vmm_share_sizes *s = &o->sizes;

	if (args->NumAllocations != s->count || !args->pOpenAllocationInfo)
		return refuse_open(o, "ROP-01", "NumAllocations", args->NumAllocations, s->count);
	if (args->PrivateRuntimeDataSize != s->runtime_bytes ||
	    (s->runtime_bytes && !args->pPrivateRuntimeData))
		return refuse_open(o, "ROP-01", "PrivateRuntimeDataSize",
				   args->PrivateRuntimeDataSize, s->runtime_bytes);
	if (args->ResourcePrivateDriverDataSize != s->private_bytes ||
	    (s->private_bytes && !args->pResourcePrivateDriverData))
		return refuse_open(o, "ROP-01", "ResourcePrivateDriverDataSize",
				   args->ResourcePrivateDriverDataSize, s->private_bytes);
	if (s->total_item_bytes && !args->pTotalPrivateDriverDataBuffer)
		return refuse_open(o, "ROP-02", "the total buffer", 0, s->total_item_bytes);
	if (args->TotalPrivateDriverDataBufferSize < s->total_item_bytes) {
		(void)refuse_open(o, "ROP-02", "TotalPrivateDriverDataBufferSize",
				  args->TotalPrivateDriverDataBufferSize, s->total_item_bytes);
		return STATUS_NO_MEMORY;
	}
	return STATUS_SUCCESS;
}

static void close_resource(struct opening *o)
{
	void *key;

	if (NT_SUCCESS(vmm_kmt_resource_key(&o->call, o->resource, &key)))
		(void)!vmm_memory_deallocate(o->call.device, key, NULL, 0, 0);
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
	NTSTATUS status =
		vmm_resource_open(o->call.device, &o->key, &o->resource, o->handles, &count);
	if (!NT_SUCCESS(status))
		return status;
	struct vmm_share_data into = data;
	into.item_bytes = o->item_bytes;
	status = vmm_share_read(o->call.device, &o->key, &o->sizes, &into);
	if (!NT_SUCCESS(status)) /* the resource was destroyed, or shared anew, meanwhile */
		close_resource(o);
	return status;
}

/* Writes the handles, and lets each pPrivateDriverData point into the total buffer. (ROP-04) */
static void copy_out(const struct opening *o, const D3DKMT_OPENRESOURCE *args, size_t step)
{
	char *data = args->pTotalPrivateDriverDataBuffer;

	for (uint32_t i = 0; i < o->sizes.count; i++) {
		D3DDDI_OPENALLOCATIONINFO info = {
			.hAllocation = o->handles[i],
			.pPrivateDriverData = o->item_bytes[i] ? data : NULL,
			.PrivateDriverDataSize = o->item_bytes[i],
		};

		memcpy((char *)args->pOpenAllocationInfo + i * step, &info, sizeof(info));
		if (o->item_bytes[i]) /* without private data there is no buffer */
			data += o->item_bytes[i];
	}
}

static NTSTATUS open_key(struct opening *o, const D3DKMT_OPENRESOURCE *args)
{
	NTSTATUS status = vmm_share_sizes(o->call.device, &o->key, &o->sizes);

	if (NT_SUCCESS(status))
		status = check_open(o, args);
	return NT_SUCCESS(status) ? open_resource(o, args) : status;
}

static NTSTATUS open_with(D3DKMT_OPENRESOURCE *pData, const char *function, size_t step)
{
	struct opening o = {0};

	if (!pData)
		return vmm_kmt_refuse(function, "the argument pointer is NULL");
	D3DKMT_OPENRESOURCE args = *pData;
	o.key.global = args.hGlobalShare;
	NTSTATUS status =
		vmm_kmt_enter_device(&o.call, args.hDevice, VIDMM_DOOR_OPEN_RESOURCE, false);
	if (NT_SUCCESS(status))
		status = open_key(&o, &args);
	if (NT_SUCCESS(status)) {
		copy_out(&o, &args, step);
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

/* ---- NT handles ---- */

/* Opens the resource, then the other objects of the bundle: all of them or none. (SHR-28) */
static NTSTATUS open_bundle(struct opening *o, const D3DKMT_OPENRESOURCE *args,
			    struct vmm_keyed_open *keyed, uint32_t *sync)
{
	NTSTATUS status = vmm_kmt_check_keyed_data(
		o->call.process, "KMX-09", keyed->with_data ? keyed : NULL, keyed->data_bytes);

	if (NT_SUCCESS(status))
		status = open_key(o, args);
	if (!NT_SUCCESS(status))
		return status;
	status = vmm_bundle_open(o->call.process, o->call.device, o->key.bundle, keyed, sync);
	if (!NT_SUCCESS(status))
		close_resource(o);
	return status;
}

KMT_API NTSTATUS APIENTRY D3DKMTOpenResourceFromNtHandle(D3DKMT_OPENRESOURCEFROMNTHANDLE *pData)
{
	struct opening o = {0};
	uint32_t sync = 0;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTOpenResourceFromNtHandle",
				      "the argument pointer is NULL");
	D3DKMT_OPENRESOURCEFROMNTHANDLE given = *pData;
	const D3DKMT_OPENRESOURCE args = {
		.NumAllocations = given.NumAllocations,
		.pOpenAllocationInfo2 = given.pOpenAllocationInfo2,
		.pPrivateRuntimeData = given.pPrivateRuntimeData,
		.PrivateRuntimeDataSize = given.PrivateRuntimeDataSize,
		.pResourcePrivateDriverData = given.pResourcePrivateDriverData,
		.ResourcePrivateDriverDataSize = given.ResourcePrivateDriverDataSize,
		.pTotalPrivateDriverDataBuffer = given.pTotalPrivateDriverDataBuffer,
		.TotalPrivateDriverDataBufferSize = given.TotalPrivateDriverDataBufferSize};
	struct vmm_keyed_open keyed = {.with_data = given.pKeyedMutexPrivateRuntimeData != NULL,
				       .data_bytes = given.KeyedMutexPrivateRuntimeDataSize};
	NTSTATUS status =
		vmm_kmt_enter_device(&o.call, given.hDevice, VIDMM_DOOR_OPEN_RESOURCE, false);
	if (NT_SUCCESS(status))
		status = vmm_bundle_find(o.call.process, (uint64_t)(uintptr_t)given.hNtHandle,
					 &o.key.bundle);
	if (NT_SUCCESS(status))
		status = open_bundle(&o, &args, &keyed, &sync);
	if (o.key.bundle)
		vmm_bundle_put(o.key.bundle);
	if (NT_SUCCESS(status)) {
		copy_out(&o, &args, sizeof(D3DDDI_OPENALLOCATIONINFO2));
		pData->TotalPrivateDriverDataBufferSize = o.sizes.total_item_bytes;
		pData->hResource = o.resource;
		pData->hKeyedMutex = keyed.handle;
		pData->hSyncObject = sync;
		if (!keyed.handle)
			pData->KeyedMutexPrivateRuntimeDataSize = 0;
	}
	vmm_free(o.handles);
	vmm_free(o.item_bytes);
	return vmm_kmt_leave(&o.call, status, o.resource, o.sizes.count, 0);
}
