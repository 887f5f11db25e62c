/* SPDX-License-Identifier: MIT */
#include "wddm2_world.h"

static void version(struct scripted_miniport *m, ULONG interface_version)
{
	scripted_set_version(m, interface_version);
	m->settings.caps.WDDMVersion = DXGKDDI_WDDMv2;
}

void wddm2_0(struct scripted_miniport *m)
{
	version(m, DXGKDDI_INTERFACE_VERSION_WDDM2_0);
}

void wddm2_1(struct scripted_miniport *m)
{
	version(m, DXGKDDI_INTERFACE_VERSION_WDDM2_1);
}

void wddm2_run(struct world *w)
{
	do {
		world_run(w);
		vidmm_settle(w->client.host);
	} while (scripted_outstanding(w->m, 0) || scripted_outstanding(w->m, 1));
}

void wddm2_stop(struct world *w)
{
	wddm2_run(w);
	world_stop(w);
}

HRESULT wddm2_try_allocate(struct client_device *device, const struct scripted_allocation *spec,
			   D3DKMT_HANDLE *handle)
{
	struct scripted_allocation private_data = *spec;
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &private_data,
				      .PrivateDriverDataSize = sizeof(private_data)};
	D3DDDICB_ALLOCATE args = {.NumAllocations = 1, .pAllocationInfo = &info};
	HRESULT result = device->cb->pfnAllocateCb(device->handle, &args);

	*handle = info.hAllocation;
	return result;
}

D3DKMT_HANDLE wddm2_allocate(struct client_device *device, uint64_t bytes, uint32_t segment_set)
{
	const struct scripted_allocation spec = {.size_bytes = bytes,
						 .flags = PHYSICAL,
						 .read_set = segment_set,
						 .write_set = segment_set};
	D3DKMT_HANDLE handle;

	assert_int_equal(wddm2_try_allocate(device, &spec, &handle), S_OK);
	return handle;
}

D3DDDICB_CREATEPAGINGQUEUE wddm2_queue(struct client_device *device)
{
	D3DDDICB_CREATEPAGINGQUEUE queue = {0};

	assert_int_equal(device->cb->pfnCreatePagingQueueCb(device->handle, &queue), S_OK);
	assert_int_not_equal(queue.hPagingQueue, 0);
	assert_int_not_equal(queue.hSyncObject, 0);
	assert_non_null(queue.FenceValueCPUVirtualAddress);
	return queue;
}

uint64_t wddm2_fence(const D3DDDICB_CREATEPAGINGQUEUE *queue)
{
	return atomic_load((_Atomic uint64_t *)queue->FenceValueCPUVirtualAddress);
}

void wddm2_await(struct world *w, const D3DDDICB_CREATEPAGINGQUEUE *queue, uint64_t value)
{
	while (wddm2_fence(queue) < value) {
		if (!w->m->settings.complete_at_once)
			scripted_complete_all(w->m);
		vidmm_settle(w->client.host);
	}
}

HRESULT wddm2_try_make(struct client_device *device, D3DDDI_MAKERESIDENT *args)
{
	args->PagingFenceValue = args->NumBytesToTrim = UINT64_MAX;
	return device->cb->pfnMakeResidentCb(device->handle, args);
}

HRESULT wddm2_try_make_one(struct client_device *device, const D3DDDICB_CREATEPAGINGQUEUE *queue,
			   D3DKMT_HANDLE allocation, D3DDDI_MAKERESIDENT *args)
{
	*args = (D3DDDI_MAKERESIDENT){.hPagingQueue = queue->hPagingQueue,
				      .NumAllocations = 1,
				      .AllocationList = &allocation};
	HRESULT result = wddm2_try_make(device, args);

	args->AllocationList = NULL;
	return result;
}

void wddm2_make(struct world *w, struct client_device *device,
		const D3DDDICB_CREATEPAGINGQUEUE *queue, const D3DKMT_HANDLE *list, uint32_t count)
{
	D3DDDI_MAKERESIDENT args = {.hPagingQueue = queue->hPagingQueue,
				    .NumAllocations = count,
				    .AllocationList = list};
	HRESULT result = wddm2_try_make(device, &args);

	assert_true(result == S_OK || result == E_PENDING);
	assert_int_equal(args.NumAllocations, count);
	wddm2_await(w, queue, args.PagingFenceValue);
}

HRESULT wddm2_evict(struct client_device *device, D3DKMT_HANDLE allocation, uint32_t flags)
{
	D3DDDICB_EVICT args = {
		.NumAllocations = 1, .AllocationList = &allocation, .Flags.Value = flags};

	return device->cb->pfnEvictCb(device->handle, &args);
}

uint32_t wddm2_operations(const struct world *w, DXGK_BUILDPAGINGBUFFER_OPERATION operation)
{
	const struct scripted_call *call;
	uint32_t count = 0;

	for (uint32_t i = 0; (call = scripted_at(w->m, i)) != NULL; i++)
		count += call->ddi == VIDMM_DDI_BUILD_PAGING_BUFFER &&
			 call->in.paging.Operation == operation;
	return count;
}

uint32_t wddm2_transfers(const struct world *w, bool in)
{
	const struct scripted_call *call;
	uint32_t count = 0;

	for (uint32_t i = 0; (call = scripted_at(w->m, i)) != NULL; i++) {
		if (call->ddi != VIDMM_DDI_BUILD_PAGING_BUFFER ||
		    call->in.paging.Operation != DXGK_OPERATION_TRANSFER)
			continue;
		count += (in ? call->in.paging.Transfer.Destination.SegmentId
			     : call->in.paging.Transfer.Source.SegmentId) != 0;
	}
	return count;
}

bool wddm2_is_in_memory(struct client_device *device, D3DKMT_HANDLE allocation)
{
	return client_residency(device, allocation) == D3DDDI_RESIDENCYSTATUS_RESIDENTINGPUMEMORY;
}
