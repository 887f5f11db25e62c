/* SPDX-License-Identifier: MIT */
#include "kmt_world.h"

#include <string.h>

uint32_t kmt_sim = VIDMM_HOST_SIM, kmt_linux = VIDMM_HOST_LINUX;

void kmt_start(struct kmt_world *w, void **state)
{
	const struct client_options options = {.kind = *(uint32_t *)*state, .vram_bytes = 4 * MIB};

	kmt_start_with(w, &options);
}

void kmt_start_with(struct kmt_world *w, const struct client_options *options)
{
	D3DKMT_ADAPTERINFO info;
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1, .pAdapters = &info};

	memset(w, 0, sizeof(*w));
	client_start(&w->client, options);
	assert_int_equal(vidmm_process_open(w->client.host, "kmt", &w->process), 0);
	assert_int_equal(vidmm_process_open(w->client.host, "other", &w->other), 0);
	vidmm_d3dkmt_attach(w->process);
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	assert_int_equal(all.NumAdapters, 1);
	w->adapter = info.hAdapter;
	w->luid = info.AdapterLuid;
	w->device = kmt_device(w);
}

void kmt_stop(struct kmt_world *w)
{
	if (w->client.findings)
		fail_msg("%u findings, first: %s", w->client.findings, w->client.finding[0]);
	vidmm_process_close(w->process);
	vidmm_process_close(w->other);
	client_stop(&w->client);
	assert_int_equal(w->client.findings, 0);
}

void kmt_found(struct kmt_world *w, const char *rule)
{
	if (!client_found(&w->client, rule))
		fail_msg("no finding of %s, the first of %u is: %s", rule, w->client.findings,
			 w->client.finding[0]);
	client_forget(&w->client);
}

void kmt_told(struct kmt_world *w, NTSTATUS status, const char *text)
{
	if (!client_told(&w->client, (uint32_t)status, text))
		fail_msg("no reason with 0x%08x and \"%s\", the last is: %s", (unsigned)status,
			 text, w->client.reason);
}

D3DKMT_HANDLE kmt_open_adapter(struct kmt_world *w)
{
	D3DKMT_OPENADAPTERFROMLUID args = {.AdapterLuid = w->luid};

	assert_int_equal(D3DKMTOpenAdapterFromLuid(&args), STATUS_SUCCESS);
	return args.hAdapter;
}

D3DKMT_HANDLE kmt_device(struct kmt_world *w)
{
	D3DKMT_CREATEDEVICE args = {.hAdapter = w->adapter};

	assert_int_equal(D3DKMTCreateDevice(&args), STATUS_SUCCESS);
	return args.hDevice;
}

NTSTATUS kmt_try_allocate(struct kmt_world *w, uint64_t bytes, uint32_t flags,
			  D3DKMT_CREATEALLOCATION *args, D3DKMT_HANDLE *allocation)
{
	struct softgpu_allocation spec = {.version = SOFTGPU_ALLOCATION_VERSION,
					  .flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
					  .size_bytes = bytes};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec)};

	args->hDevice = w->device;
	args->NumAllocations = 1;
	args->pAllocationInfo = &info;
	memcpy(&args->Flags, &flags, sizeof(flags));
	NTSTATUS status = D3DKMTCreateAllocation(args);
	*allocation = info.hAllocation;
	return status;
}

D3DKMT_HANDLE kmt_allocate(struct kmt_world *w, uint64_t bytes)
{
	D3DKMT_CREATEALLOCATION args = {0};
	D3DKMT_HANDLE allocation;

	assert_int_equal(kmt_try_allocate(w, bytes, 0, &args, &allocation), STATUS_SUCCESS);
	assert_int_equal(args.hResource, 0);
	assert_int_equal(args.hGlobalShare, 0);
	return allocation;
}

NTSTATUS kmt_destroy(struct kmt_world *w, D3DKMT_HANDLE resource, const D3DKMT_HANDLE *list,
		     uint32_t count)
{
	D3DKMT_DESTROYALLOCATION args = {.hDevice = w->device,
					 .hResource = resource,
					 .phAllocationList = list,
					 .AllocationCount = count};

	return D3DKMTDestroyAllocation(&args);
}

NTSTATUS kmt_lock(struct kmt_world *w, D3DKMT_HANDLE *allocation, uint32_t flags, void **data)
{
	D3DKMT_LOCK args = {.hDevice = w->device, .hAllocation = *allocation};

	args.Flags.Value = flags;
	NTSTATUS status = D3DKMTLock(&args);
	*allocation = args.hAllocation;
	*data = args.pData;
	return status;
}

NTSTATUS kmt_unlock(struct kmt_world *w, D3DKMT_HANDLE allocation)
{
	const D3DKMT_UNLOCK args = {
		.hDevice = w->device, .NumAllocations = 1, .phAllocations = &allocation};

	return D3DKMTUnlock(&args);
}

void kmt_context(struct kmt_world *w, struct client_context *c)
{
	D3DKMT_CREATECONTEXT args = {.hDevice = w->device};

	assert_int_equal(D3DKMTCreateContext(&args), STATUS_SUCCESS);
	memset(c, 0, sizeof(*c));
	c->c.hContext = (HANDLE)(uintptr_t)args.hContext;
	c->c.pCommandBuffer = args.pCommandBuffer;
	c->c.CommandBufferSize = args.CommandBufferSize;
	c->c.pAllocationList = args.pAllocationList;
	c->c.AllocationListSize = args.AllocationListSize;
	c->c.pPatchLocationList = args.pPatchLocationList;
	c->c.PatchLocationListSize = args.PatchLocationListSize;
}

NTSTATUS kmt_render(struct client_context *c, D3DKMT_RENDER *args)
{
	args->hContext = (D3DKMT_HANDLE)(uintptr_t)c->c.hContext;
	args->CommandLength = c->command_bytes;
	args->AllocationCount = c->allocations;
	args->PatchLocationCount = c->patches;
	NTSTATUS status = D3DKMTRender(args);
	assert_non_null(args->pNewCommandBuffer); /* DMA-11: after a failure too */
	c->c.pCommandBuffer = args->pNewCommandBuffer;
	c->c.pAllocationList = args->pNewAllocationList;
	c->command_bytes = c->allocations = c->patches = 0;
	return status;
}
