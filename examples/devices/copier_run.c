/* SPDX-License-Identifier: MIT */
/*
 * A D3DKMT client on the copier: fills and copies six allocations of 1 MiB, of which four fit
 * into video memory, switches the adapter off and on again, and verifies every byte. Once on real
 * threads and once on a sim host.
 */
#include <d3dkmthk.h>
#include <vidmm/vidmm.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "copier.h"

#define BYTES  (1u << 20)
#define COUNT  6u
#define ROUNDS 4u

int32_t DriverEntry(struct _DRIVER_OBJECT *driver, struct _UNICODE_STRING *registry_path);
const struct vidmm_device_model *vidmm_device_model(void);

static unsigned problems;

static void check(int32_t status, const char *what)
{
	if (status >= 0)
		return;
	fprintf(stderr, "%s failed with 0x%08" PRIx32 "\n", what, (uint32_t)status);
	exit(1);
}

static void print_problem(void *context, const struct vidmm_event *event, const char *text)
{
	(void)context, (void)event;
	fprintf(stderr, "vidmm: %s\n", text);
	problems++;
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
	struct copier_allocation request = {.bytes = BYTES};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &request,
				      .PrivateDriverDataSize = sizeof(request)};
	D3DKMT_CREATEALLOCATION args = {
		.hDevice = device, .NumAllocations = 1, .pAllocationInfo = &info};

	check(D3DKMTCreateAllocation(&args), "D3DKMTCreateAllocation");
	return info.hAllocation;
}

/* Submits one command that writes to entry 0 of the list, and reads entry 1. */
static void submit(D3DKMT_CREATECONTEXT *context, struct copier_request request, D3DKMT_HANDLE to,
		   D3DKMT_HANDLE from)
{
	D3DKMT_RENDER render = {.hContext = context->hContext,
				.CommandLength = sizeof(request),
				.AllocationCount = 2};

	request.source = 1;
	request.bytes = BYTES;
	*(struct copier_request *)context->pCommandBuffer = request;
	context->pAllocationList[0] =
		(D3DDDI_ALLOCATIONLIST){.hAllocation = to, .WriteOperation = 1};
	context->pAllocationList[1] = (D3DDDI_ALLOCATIONLIST){.hAllocation = from};
	check(D3DKMTRender(&render), "D3DKMTRender");
	context->pCommandBuffer = render.pNewCommandBuffer;
	context->pAllocationList = render.pNewAllocationList;
}

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

static void cycle_power(struct vidmm_adapter *adapter)
{
	check(vidmm_adapter_set_power(adapter, VIDMM_POWER_D3, VIDMM_SLEEP_STANDBY), "power to D3");
	check(vidmm_adapter_set_power(adapter, VIDMM_POWER_D0, 0), "power to D0");
}

/* Every second allocation is filled, the next one is a copy of it. */
static unsigned work(struct vidmm_adapter *adapter)
{
	D3DKMT_HANDLE device = create_device(), allocation[COUNT];
	D3DKMT_CREATECONTEXT context = {.hDevice = device};
	D3DKMT_DESTROYDEVICE end = {.hDevice = device};
	unsigned wrong = 0;

	check(D3DKMTCreateContext(&context), "D3DKMTCreateContext");
	for (unsigned i = 0; i < COUNT; i++)
		allocation[i] = allocate(device);
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < COUNT; i += 2) {
			uint32_t value = 0x1000 * (round + 1) + i;

			submit(&context, (struct copier_request){.op = COPIER_FILL, .value = value},
			       allocation[i], allocation[i + 1]);
			submit(&context, (struct copier_request){.op = COPIER_COPY},
			       allocation[i + 1], allocation[i]);
		}
		if (round == 1)
			cycle_power(adapter);
	}
	for (unsigned i = 0; i < COUNT; i++)
		wrong += wrong_words(device, allocation[i], 0x1000 * ROUNDS + (i & ~1u));
	check(D3DKMTDestroyDevice(&end), "D3DKMTDestroyDevice");
	return wrong;
}

static int run(uint32_t kind)
{
	const struct vidmm_host_options host_options = {.struct_size = sizeof(host_options),
							.kind = kind,
							.seed = 1,
							.switch_per_1024 = 64};
	const struct vidmm_adapter_options options = {.struct_size = sizeof(options),
						      .driver_entry = DriverEntry,
						      .device_model = vidmm_device_model()};
	struct vidmm_adapter_statistics s = {.struct_size = sizeof(s)};
	struct vidmm_host *host;
	struct vidmm_adapter *adapter;
	struct vidmm_process *process;
	unsigned wrong;

	check(vidmm_host_create(&host_options, &host), "vidmm_host_create");
	vidmm_subscribe(host, 1ull << VIDMM_EVENT_FINDING | 1ull << VIDMM_EVENT_REASON,
			print_problem, NULL);
	check(vidmm_adapter_start(host, &options, &adapter), "vidmm_adapter_start");
	check(vidmm_process_open(host, "copier", &process), "vidmm_process_open");
	vidmm_d3dkmt_attach(process);
	wrong = work(adapter);
	vidmm_adapter_statistics(adapter, &s);
	printf("%s: %u words wrong; %" PRIu64 " KiB paged in, %" PRIu64 " KiB paged out, %" PRIu64
	       " evictions, %u problems\n",
	       kind == VIDMM_HOST_SIM ? "sim" : "linux", wrong, s.bytes_paged_in / 1024,
	       s.bytes_paged_out / 1024, s.evictions, problems);
	vidmm_process_close(process);
	vidmm_adapter_stop(adapter);
	vidmm_host_destroy(host);
	return wrong || problems || !s.evictions;
}

int main(void)
{
	int bad = run(VIDMM_HOST_LINUX);

	return run(VIDMM_HOST_SIM) || bad;
}
