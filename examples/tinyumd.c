/* SPDX-License-Identifier: MIT */
/*
 * The smallest program that uses vidmm. It starts tinykmd.c on an adapter with 1 MiB of video
 * memory. As a D3DKMT client it has the GPU fill four allocations of 512 KiB. Two of them fit at a
 * time; vidmm moves the others out and in again. Then the program verifies every byte and prints
 * how much was moved.
 */
#include <d3dkmthk.h>
#include <vidmm/vidmm.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tiny.h"

#define BYTES  (512u * 1024)
#define COUNT  4u
#define ROUNDS 3u

int32_t DriverEntry(struct _DRIVER_OBJECT *driver, struct _UNICODE_STRING *registry_path);

static void check(int32_t status, const char *what)
{
	if (status >= 0)
		return;
	fprintf(stderr, "%s failed with 0x%08" PRIx32 "\n", what, (uint32_t)status);
	exit(1);
}

/* Each broken rule and each failed call is reported with the cause. */
static void print_problem(void *context, const struct vidmm_event *event, const char *text)
{
	(void)context, (void)event;
	fprintf(stderr, "vidmm: %s\n", text);
}

static D3DKMT_HANDLE create_device(void)
{
	D3DKMT_ADAPTERINFO adapter;
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1, .pAdapters = &adapter};
	D3DKMT_CREATEDEVICE device = {0};

	check(D3DKMTEnumAdapters2(&all), "D3DKMTEnumAdapters2");
	device.hAdapter = adapter.hAdapter;
	check(D3DKMTCreateDevice(&device), "D3DKMTCreateDevice");
	return device.hDevice;
}

static D3DKMT_HANDLE allocate(D3DKMT_HANDLE device)
{
	struct tiny_allocation request = {.bytes = BYTES};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &request,
				      .PrivateDriverDataSize = sizeof(request)};
	D3DKMT_CREATEALLOCATION args = {
		.hDevice = device, .NumAllocations = 1, .pAllocationInfo = &info};

	check(D3DKMTCreateAllocation(&args), "D3DKMTCreateAllocation");
	return info.hAllocation;
}

/*
 * Writes one command into the context's command buffer and its allocation into the list, and
 * submits both.
 */
static void fill(D3DKMT_CREATECONTEXT *context, D3DKMT_HANDLE allocation, uint32_t value)
{
	struct tiny_fill *command = context->pCommandBuffer;
	D3DKMT_RENDER render = {.hContext = context->hContext,
				.CommandLength = sizeof(*command),
				.AllocationCount = 1};

	*command = (struct tiny_fill){.value = value, .bytes = BYTES};
	context->pAllocationList[0] =
		(D3DDDI_ALLOCATIONLIST){.hAllocation = allocation, .WriteOperation = 1};
	check(D3DKMTRender(&render), "D3DKMTRender");
	context->pCommandBuffer = render.pNewCommandBuffer;
	context->pAllocationList = render.pNewAllocationList;
}

/* The lock waits for the GPU and works wherever the allocation is. */
static unsigned wrong_words(D3DKMT_HANDLE device, D3DKMT_HANDLE allocation, uint32_t value)
{
	D3DKMT_LOCK lock = {.hDevice = device, .hAllocation = allocation, .Flags.ReadOnly = 1};
	D3DKMT_UNLOCK unlock = {
		.hDevice = device, .NumAllocations = 1, .phAllocations = &allocation};
	unsigned wrong = 0;

	check(D3DKMTLock(&lock), "D3DKMTLock");
	for (uint32_t i = 0; i < BYTES / 4; i++)
		wrong += ((const uint32_t *)lock.pData)[i] != value;
	check(D3DKMTUnlock(&unlock), "D3DKMTUnlock");
	return wrong;
}

static unsigned run(void)
{
	D3DKMT_HANDLE device = create_device(), allocation[COUNT];
	D3DKMT_CREATECONTEXT context = {.hDevice = device};
	D3DKMT_DESTROYDEVICE end = {.hDevice = device};
	unsigned wrong = 0;

	check(D3DKMTCreateContext(&context), "D3DKMTCreateContext");
	for (unsigned i = 0; i < COUNT; i++)
		allocation[i] = allocate(device);
	for (unsigned i = 0; i < COUNT * ROUNDS; i++)
		fill(&context, allocation[i % COUNT], 0x1000 + i);
	for (unsigned i = 0; i < COUNT; i++)
		wrong += wrong_words(device, allocation[i], 0x1000 + COUNT * (ROUNDS - 1) + i);
	/* the context and the allocations end with it */
	check(D3DKMTDestroyDevice(&end), "D3DKMTDestroyDevice");
	return wrong;
}

int main(void)
{
	const uint64_t vram_bytes = 1024 * 1024;
	const struct vidmm_host_options host_options = {.struct_size = sizeof(host_options),
							.kind = VIDMM_HOST_LINUX};
	const struct vidmm_adapter_options options = {.struct_size = sizeof(options),
						      .driver_entry = DriverEntry,
						      .bar_sizes = &vram_bytes,
						      .bar_count = 1};
	struct vidmm_adapter_statistics s = {.struct_size = sizeof(s)};
	struct vidmm_host *host;
	struct vidmm_adapter *adapter;
	struct vidmm_process *process;
	unsigned wrong;

	check(vidmm_host_create(&host_options, &host), "vidmm_host_create");
	vidmm_subscribe(host, 1ull << VIDMM_EVENT_FINDING | 1ull << VIDMM_EVENT_REASON,
			print_problem, NULL);
	check(vidmm_adapter_start(host, &options, &adapter), "vidmm_adapter_start");
	check(vidmm_process_open(host, "tinyumd", &process), "vidmm_process_open");
	vidmm_d3dkmt_attach(process);
	wrong = run();
	vidmm_adapter_statistics(adapter, &s);
	printf("%u words wrong; %" PRIu64 " KiB paged in, %" PRIu64 " KiB paged out, %" PRIu64
	       " evictions\n",
	       wrong, s.bytes_paged_in / 1024, s.bytes_paged_out / 1024, s.evictions);
	vidmm_process_close(process);
	vidmm_adapter_stop(adapter);
	vidmm_host_destroy(host);
	return wrong ? 1 : 0;
}
