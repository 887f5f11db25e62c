/* SPDX-License-Identifier: MIT */
/* Implements bench_client.h. */
#include "bench_client.h"

#include <stdlib.h>
#include <vidmm/softgpu.h>

static bool create_context(struct bench_client *c)
{
	D3DDDICB_CREATECONTEXT create = {.EngineAffinity = 1};

	if (FAILED(c->callbacks->pfnCreateContextCb(vidmm_device_handle(c->device), &create)))
		return false;
	c->context = create.hContext;
	c->commands = create.pCommandBuffer;
	c->list = create.pAllocationList;
	return true;
}

bool bench_client_start(struct bench_client *c, uint64_t bar_bytes,
			const struct vidmm_adapter_options *options)
{
	const struct vidmm_host_options host = {.struct_size = sizeof(host),
						.kind = VIDMM_HOST_SIM};
	struct vidmm_adapter_options adapter = *options;

	adapter.struct_size = sizeof(adapter);
	adapter.driver_entry = softgpu_driver_entry;
	adapter.bar_sizes = &bar_bytes;
	adapter.bar_count = 1;
	if (vidmm_host_create(&host, &c->host) < 0 ||
	    vidmm_adapter_start(c->host, &adapter, &c->adapter) < 0 ||
	    vidmm_process_open(c->host, "bench", &c->process) < 0 ||
	    vidmm_device_create(c->process, c->adapter, &c->device) < 0)
		return false;
	c->callbacks = vidmm_device_callbacks(c->device);
	return create_context(c);
}

void bench_client_finish(struct bench_client *c)
{
	if (c->device)
		vidmm_device_destroy(c->device);
	if (c->process)
		vidmm_process_close(c->process);
	if (c->adapter)
		vidmm_adapter_stop(c->adapter);
	if (c->host)
		vidmm_host_destroy(c->host);
}

bool bench_client_allocate(struct bench_client *c, uint64_t size_bytes, D3DKMT_HANDLE *handle)
{
	struct softgpu_allocation wish = {.version = SOFTGPU_ALLOCATION_VERSION,
					  .size_bytes = size_bytes,
					  .segment_set = 0x1};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &wish,
				      .PrivateDriverDataSize = sizeof(wish)};
	D3DDDICB_ALLOCATE args = {.NumAllocations = 1, .pAllocationInfo = &info};

	if (FAILED(c->callbacks->pfnAllocateCb(vidmm_device_handle(c->device), &args)))
		return false;
	*handle = info.hAllocation;
	return true;
}

void bench_client_write(struct bench_client *c, const D3DKMT_HANDLE *allocations, uint32_t count)
{
	struct softgpu_reference *reference = (struct softgpu_reference *)(void *)c->commands;
	D3DDDICB_RENDER render = {.hContext = c->context,
				  .CommandLength = count * (uint32_t)sizeof(*reference),
				  .NumAllocations = count};

	for (uint32_t i = 0; i < count; i++) {
		reference[i] = (struct softgpu_reference){
			.command = {SOFTGPU_REFERENCE, SOFTGPU_FLAG_WRITE, sizeof(*reference)},
			.operand.allocation = i};
		c->list[i] = (D3DDDI_ALLOCATIONLIST){.hAllocation = allocations[i], .Value = 1};
	}
	if (FAILED(c->callbacks->pfnRenderCb(vidmm_device_handle(c->device), &render)))
		abort();
	c->commands = render.pNewCommandBuffer;
	c->list = render.pNewAllocationList;
}
