/* SPDX-License-Identifier: MIT */
/* Opening shared resources, by a global handle or by an NT handle. */
#include "kmt_calls.h"

#include <string.h>

static NTSTATUS refuse_open(const struct vmm_kmt_opening *o, const char *rule, const char *what,
			    uint32_t given, uint32_t wanted)
{
	return vmm_refuse_rule(o->call->observe, STATUS_INVALID_PARAMETER, rule,
			       o->call->process->id, o->call->device->handle,
			       "open resource: %s is %u, must be %u", what, given, wanted);
}

static NTSTATUS check_open(const struct vmm_kmt_opening *o, const D3DKMT_OPENRESOURCE *args)
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
	if (!args->TotalPrivateDriverDataBufferSize)
		return STATUS_SUCCESS; /* ROP-03 */
	if (s->total_item_bytes && !args->pTotalPrivateDriverDataBuffer)
		return refuse_open(o, "ROP-02", "the total buffer", 0, s->total_item_bytes);
	if (args->TotalPrivateDriverDataBufferSize < s->total_item_bytes) {
		(void)refuse_open(o, "ROP-02", "TotalPrivateDriverDataBufferSize",
				  args->TotalPrivateDriverDataBufferSize, s->total_item_bytes);
		return STATUS_NO_MEMORY;
	}
	return STATUS_SUCCESS;
}

static void close_resource(struct vmm_kmt_opening *o)
{
	void *key;

	if (NT_SUCCESS(vmm_kmt_resource_key(o->call, o->resource, &key)))
		(void)!vmm_memory_deallocate(o->call->device, key, NULL, 0, 0);
}

static NTSTATUS open_resource(struct vmm_kmt_opening *o, const D3DKMT_OPENRESOURCE *args)
{
	uint32_t count = o->sizes.count;
	const struct vmm_share_data data = {.runtime_data = args->pPrivateRuntimeData,
					    .private_data = args->pResourcePrivateDriverData,
					    .items = args->TotalPrivateDriverDataBufferSize
							     ? args->pTotalPrivateDriverDataBuffer
							     : NULL};

	o->handles = vmm_calloc(count, sizeof(*o->handles));
	o->item_bytes = vmm_calloc(count, sizeof(*o->item_bytes));
	if (!o->handles || !o->item_bytes)
		return STATUS_NO_MEMORY;
	NTSTATUS status =
		vmm_resource_open(o->call->device, &o->key, &o->resource, o->handles, &count);
	if (!NT_SUCCESS(status))
		return status;
	struct vmm_share_data into = data;
	into.item_bytes = o->item_bytes;
	status = vmm_share_read(o->call->device, &o->key, &o->sizes, &into);
	if (!NT_SUCCESS(status)) /* the resource was destroyed, or shared anew, meanwhile */
		close_resource(o);
	if (!into.items)
		o->sizes.total_item_bytes = 0; /* bytes that the call has written */
	return status;
}

/* Writes the handles, and lets each pPrivateDriverData point into the total buffer. (ROP-04) */
static void copy_out(const struct vmm_kmt_opening *o, const D3DKMT_OPENRESOURCE *args, size_t step)
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

static NTSTATUS open_key(struct vmm_kmt_opening *o, const D3DKMT_OPENRESOURCE *args)
{
	NTSTATUS status = vmm_share_sizes(o->call->device, &o->key, &o->sizes);

	if (NT_SUCCESS(status))
		status = check_open(o, args);
	return NT_SUCCESS(status) ? open_resource(o, args) : status;
}

_Static_assert(offsetof(D3DDDI_OPENALLOCATIONINFO, pPrivateDriverData) ==
			       offsetof(D3DDDI_OPENALLOCATIONINFO2, pPrivateDriverData) &&
		       offsetof(D3DDDI_OPENALLOCATIONINFO, PrivateDriverDataSize) ==
			       offsetof(D3DDDI_OPENALLOCATIONINFO2, PrivateDriverDataSize),
	       "the older form is the beginning of the newer one");

NTSTATUS vmm_kmt_open_resource(struct vmm_kmt_opening *o, const D3DKMT_OPENRESOURCE *args,
			       size_t step)
{
	o->key.global = args->hGlobalShare;
	NTSTATUS status = open_key(o, args);
	if (NT_SUCCESS(status))
		copy_out(o, args, step);
	return status;
}

void vmm_kmt_opening_done(const struct vmm_kmt_opening *o)
{
	vmm_free(o->handles);
	vmm_free(o->item_bytes);
}

/* ---- NT handles ---- */

/* Opens the resource, then the other objects of the bundle: all of them or none. (SHR-28) */
static NTSTATUS open_bundle(struct vmm_kmt_opening *o, const D3DKMT_OPENRESOURCE *args)
{
	NTSTATUS status = vmm_kmt_check_keyed_data(
		o->call->process, "KMX-09", o->keyed.with_data ? o : NULL, o->keyed.data_bytes);

	if (NT_SUCCESS(status))
		status = open_key(o, args);
	if (!NT_SUCCESS(status))
		return status;
	status = vmm_bundle_open(o->call->device, o->key.bundle, &o->keyed, &o->sync);
	if (!NT_SUCCESS(status))
		close_resource(o);
	return status;
}

NTSTATUS vmm_kmt_open_bundle(struct vmm_kmt_opening *o,
			     const D3DKMT_OPENRESOURCEFROMNTHANDLE *given)
{
	const D3DKMT_OPENRESOURCE args = {
		.NumAllocations = given->NumAllocations,
		.pOpenAllocationInfo2 = given->pOpenAllocationInfo2,
		.pPrivateRuntimeData = given->pPrivateRuntimeData,
		.PrivateRuntimeDataSize = given->PrivateRuntimeDataSize,
		.pResourcePrivateDriverData = given->pResourcePrivateDriverData,
		.ResourcePrivateDriverDataSize = given->ResourcePrivateDriverDataSize,
		.pTotalPrivateDriverDataBuffer = given->pTotalPrivateDriverDataBuffer,
		.TotalPrivateDriverDataBufferSize = given->TotalPrivateDriverDataBufferSize};
	NTSTATUS status = vmm_bundle_find(o->call->process, (uint64_t)(uintptr_t)given->hNtHandle,
					  &o->key.bundle);

	o->keyed.with_data = given->pKeyedMutexPrivateRuntimeData != NULL;
	o->keyed.data_bytes = given->KeyedMutexPrivateRuntimeDataSize;
	if (NT_SUCCESS(status))
		status = open_bundle(o, &args);
	if (o->key.bundle)
		vmm_bundle_put(o->key.bundle);
	if (NT_SUCCESS(status))
		copy_out(o, &args, sizeof(D3DDDI_OPENALLOCATIONINFO2));
	return status;
}
