/* SPDX-License-Identifier: MIT */
/*
 * GPU virtual addresses for a D3DKMT client: the same calls under their other names, with an
 * adapter's handle where others take a queue's.
 */
#include "va_world.h"

#include <string.h>

#include <d3dkmthk.h>

struct kmt {
	struct va_world v;
	struct vidmm_process *process;
	struct scripted_process *gpu;
	D3DKMT_HANDLE adapter, device;
	D3DKMT_CREATEPAGINGQUEUE queue;
};

static void begin(struct kmt *k, void **state)
{
	D3DKMT_ADAPTERINFO info;
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1, .pAdapters = &info};

	va_begin(&k->v, state, va_memory);
	assert_int_equal(vidmm_process_open(k->v.w.client.host, "kmt", &k->process), 0);
	vidmm_d3dkmt_attach(k->process);
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	k->adapter = info.hAdapter;
	k->gpu = scripted_process(k->v.w.m, 1);
}

static void open_device(struct kmt *k)
{
	D3DKMT_CREATEDEVICE device = {.hAdapter = k->adapter};

	assert_int_equal(D3DKMTCreateDevice(&device), STATUS_SUCCESS);
	k->device = device.hDevice;
	k->queue = (D3DKMT_CREATEPAGINGQUEUE){.hDevice = k->device};
	assert_int_equal(D3DKMTCreatePagingQueue(&k->queue), STATUS_SUCCESS);
}

static void finish(struct kmt *k)
{
	vidmm_process_close(k->process);
	assert_false(k->gpu->live);
	va_finish(&k->v);
}

static void await(struct kmt *k, uint64_t value)
{
	const _Atomic uint64_t *fence = k->queue.FenceValueCPUVirtualAddress;

	while (atomic_load(fence) < value)
		vidmm_settle(k->v.w.client.host);
}

static D3DKMT_HANDLE allocate(struct kmt *k, uint32_t set)
{
	struct scripted_allocation spec = {.size_bytes = 64 * KIB,
					   .flags = WORLD_CPU_VISIBLE,
					   .read_set = set,
					   .write_set = set};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec)};
	D3DKMT_CREATEALLOCATION args = {
		.hDevice = k->device, .NumAllocations = 1, .pAllocationInfo = &info};

	assert_int_equal(D3DKMTCreateAllocation(&args), STATUS_SUCCESS);
	D3DDDI_MAKERESIDENT make = {.hPagingQueue = k->queue.hPagingQueue,
				    .NumAllocations = 1,
				    .AllocationList = &info.hAllocation};
	NTSTATUS status = D3DKMTMakeResident(&make);
	assert_true(status == STATUS_SUCCESS || status == STATUS_PENDING);
	await(k, make.PagingFenceValue);
	return info.hAllocation;
}

static uint64_t map(struct kmt *k, D3DKMT_HANDLE allocation, uint64_t base)
{
	D3DDDI_MAPGPUVIRTUALADDRESS args = {.hPagingQueue = k->queue.hPagingQueue,
					    .BaseAddress = base,
					    .hAllocation = allocation,
					    .SizeInPages = 16,
					    .Protection.Write = 1};
	NTSTATUS status = D3DKMTMapGpuVirtualAddress(&args);

	assert_true(status == STATUS_SUCCESS || status == STATUS_PENDING);
	await(k, args.PagingFenceValue);
	return args.VirtualAddress;
}

static uint32_t word_at(struct kmt *k, uint64_t address)
{
	uint32_t word = 0xDEAD;

	assert_true(scripted_virtual_access(k->gpu, address, &word, sizeof(word), false));
	return word;
}

static void va_01_va_07_addresses_are_reserved_without_a_device(void **state)
{
	struct kmt k;

	begin(&k, state);
	D3DDDI_RESERVEGPUVIRTUALADDRESS reserve = {
		.hAdapter = k.adapter, .BaseAddress = 32 * MIB, .Size = 64 * KIB};
	assert_int_equal(D3DKMTReserveGpuVirtualAddress(&reserve), STATUS_SUCCESS);
	assert_int_equal(reserve.VirtualAddress, 32 * MIB);
	assert_int_equal(reserve.PagingFenceValue, 0);
	assert_int_equal(D3DKMTReserveGpuVirtualAddress(&reserve), STATUS_INVALID_PARAMETER);
	world_expect_finding(&k.v.w, "VA-07");
	open_device(&k);
	/* these two, and the system paging process */
	assert_int_equal(scripted_count(k.v.w.m, VIDMM_DDI_CREATE_PROCESS), 3);
	D3DKMT_HANDLE a = allocate(&k, WORLD_MEMORY);
	assert_int_equal(map(&k, a, 32 * MIB), 32 * MIB);
	uint32_t word = 0x1234;
	assert_true(scripted_virtual_access(k.gpu, 32 * MIB, &word, sizeof(word), true));
	assert_int_equal(word_at(&k, map(&k, a, 0)), 0x1234);
	reserve.hPagingQueue = k.queue.hPagingQueue;
	reserve.BaseAddress = 0;
	reserve.ReservationType = D3DDDIGPUVIRTUALADDRESS_RESERVE_ZERO;
	NTSTATUS status = D3DKMTReserveGpuVirtualAddress(&reserve);
	assert_true(status == STATUS_SUCCESS || status == STATUS_PENDING);
	await(&k, reserve.PagingFenceValue);
	assert_int_equal(word_at(&k, reserve.VirtualAddress), 0);
	D3DKMT_FREEGPUVIRTUALADDRESS free = {k.adapter, reserve.VirtualAddress, 4096};
	assert_int_equal(D3DKMTFreeGpuVirtualAddress(&free), STATUS_INVALID_PARAMETER);
	world_expect_finding(&k.v.w, "VA-09");
	free.Size = 64 * KIB;
	assert_int_equal(D3DKMTFreeGpuVirtualAddress(&free), STATUS_SUCCESS);
	assert_int_equal(D3DKMTFreeGpuVirtualAddress(&free), STATUS_INVALID_PARAMETER);
	world_expect_finding(&k.v.w, "VA-09");
	finish(&k);
}

static void sub_23_va_10_d3dkmtsubmitcommand_and_update(void **state)
{
	struct kmt k;

	begin(&k, state);
	open_device(&k);
	D3DKMT_CREATECONTEXTVIRTUAL context = {.hDevice = k.device};
	assert_int_equal(D3DKMTCreateContextVirtual(&context), STATUS_SUCCESS);
	D3DKMT_HANDLE commands = allocate(&k, WORLD_APERTURE), target = allocate(&k, WORLD_MEMORY);
	uint64_t at = map(&k, commands, 0), to = map(&k, target, 0);
	const struct scripted_command write = {.op = SCRIPTED_WRITE,
					       .size_bytes = sizeof(write),
					       .value = 0x600D,
					       .destination.address = to + 8};
	assert_true(
		scripted_virtual_access(k.gpu, at, (void *)(uintptr_t)&write, sizeof(write), true));
	D3DKMT_SUBMITCOMMAND submit = {.Commands = at,
				       .CommandLength = sizeof(write),
				       .BroadcastContextCount = 1,
				       .BroadcastContext = {context.hContext}};
	assert_int_equal(D3DKMTSubmitCommand(&submit), STATUS_SUCCESS);
	wddm2_run(&k.v.w);
	assert_int_equal(word_at(&k, to + 8), 0x600D);
	D3DKMT_CREATECONTEXTVIRTUAL second = {.hDevice = k.device, .NodeOrdinal = 1};
	assert_int_equal(D3DKMTCreateContextVirtual(&second), STATUS_SUCCESS);
	submit.BroadcastContextCount = 2;
	submit.BroadcastContext[1] = context.hContext; /* named twice */
	assert_int_equal(D3DKMTSubmitCommand(&submit), STATUS_INVALID_PARAMETER);
	world_expect_finding(&k.v.w, "SUB-26");
	submit.BroadcastContext[1] = second.hContext;
	uint32_t before = scripted_count(k.v.w.m, VIDMM_DDI_SUBMIT_COMMAND_VIRTUAL);
	assert_int_equal(D3DKMTSubmitCommand(&submit), STATUS_SUCCESS);
	wddm2_run(&k.v.w);
	assert_int_equal(scripted_count(k.v.w.m, VIDMM_DDI_SUBMIT_COMMAND_VIRTUAL), before + 2);
	submit.BroadcastContextCount = 0;
	assert_int_equal(D3DKMTSubmitCommand(&submit), STATUS_INVALID_PARAMETER);
	world_expect_finding(&k.v.w, "SUB-26");

	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 fence = {.hDevice = k.device};
	fence.Info.Type = D3DDDI_MONITORED_FENCE;
	assert_int_equal(D3DKMTCreateSynchronizationObject2(&fence), STATUS_SUCCESS);
	assert_int_not_equal(fence.Info.MonitoredFence.FenceValueGPUVirtualAddress, 0); /* MFN-04 */
	D3DDDI_RESERVEGPUVIRTUALADDRESS reserve = {.hAdapter = k.adapter, .Size = 64 * KIB};
	assert_int_equal(D3DKMTReserveGpuVirtualAddress(&reserve), STATUS_SUCCESS);
	D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION o = {.OperationType =
							      D3DDDI_UPDATEGPUVIRTUALADDRESS_MAP,
						      .Map = {.BaseAddress = reserve.VirtualAddress,
							      .SizeInBytes = 64 * KIB,
							      .hAllocation = target}};
	D3DKMT_UPDATEGPUVIRTUALADDRESS update = {.hDevice = k.device,
						 .hContext = context.hContext,
						 .hFenceObject = fence.hSyncObject,
						 .NumOperations = 1,
						 .Operations = &o,
						 .FenceValue = 8,
						 .Flags.DoNotWait = 1};
	assert_int_equal(D3DKMTUpdateGpuVirtualAddress(&update), STATUS_SUCCESS);
	wddm2_run(&k.v.w);
	assert_int_equal(*(const uint64_t *)fence.Info.MonitoredFence.FenceValueCPUVirtualAddress,
			 9);
	assert_int_equal(word_at(&k, reserve.VirtualAddress + 8), 0x600D);
	update.hDevice = k.adapter;
	assert_int_equal(D3DKMTUpdateGpuVirtualAddress(&update), STATUS_INVALID_PARAMETER);
	world_expect_finding(&k.v.w, "VA-10");
	finish(&k);
}

static void null_arguments_are_refused(void **state)
{
	struct kmt k;

	begin(&k, state);
	assert_int_equal(D3DKMTMapGpuVirtualAddress(NULL), STATUS_INVALID_PARAMETER);
	assert_int_equal(D3DKMTReserveGpuVirtualAddress(NULL), STATUS_INVALID_PARAMETER);
	assert_int_equal(D3DKMTFreeGpuVirtualAddress(NULL), STATUS_INVALID_PARAMETER);
	assert_int_equal(D3DKMTUpdateGpuVirtualAddress(NULL), STATUS_INVALID_PARAMETER);
	assert_int_equal(D3DKMTCreateContextVirtual(NULL), STATUS_INVALID_PARAMETER);
	assert_int_equal(D3DKMTSubmitCommand(NULL), STATUS_INVALID_PARAMETER);
	client_forget(&k.v.w.client);
	open_device(&k);
	finish(&k);
}

static void take_private_data(void *context, struct scripted_miniport *m,
			      struct scripted_call *call)
{
	const DXGKARG_PRESENT *args = call->args;
	uint32_t *got = context;

	(void)m;
	if (call->ddi != VIDMM_DDI_PRESENT)
		return;
	got[0] = args->PrivateDriverDataSize;
	memcpy(&got[1], args->pPrivateDriverData, args->PrivateDriverDataSize);
}

static void q_342_the_private_data_of_d3dkmtpresent_reaches_the_miniport(void **state)
{
	uint32_t data = 0xF00D, got[2] = {0};
	struct kmt k;

	begin(&k, state);
	open_device(&k);
	D3DKMT_CREATECONTEXTVIRTUAL context = {.hDevice = k.device};
	assert_int_equal(D3DKMTCreateContextVirtual(&context), STATUS_SUCCESS);
	D3DKMT_HANDLE target = allocate(&k, WORLD_MEMORY);
	(void)map(&k, target, 0);
	D3DKMT_PRESENT args = {.hContext = context.hContext,
			       .hDestination = target,
			       .Flags.ColorFill = 1,
			       .PrivateDriverDataSize = sizeof(data),
			       .pPrivateDriverData = &data};
	k.v.w.m->hook = take_private_data;
	k.v.w.m->hook_context = got;
	assert_int_equal(D3DKMTPresent(&args), STATUS_SUCCESS);
	wddm2_run(&k.v.w);
	assert_int_equal(got[0], sizeof(data));
	assert_int_equal(got[1], data);
	args.pPrivateDriverData = NULL;
	assert_int_equal(D3DKMTPresent(&args), STATUS_INVALID_PARAMETER);
	assert_int_equal(scripted_count(k.v.w.m, VIDMM_DDI_PRESENT), 1);
	finish(&k);
}

/* A fill has no source; its DMA buffer writes the color at the destination's virtual address. */
static void prs_09_d3dkmtpresent_fills_at_a_virtual_address(void **state)
{
	struct kmt k;

	begin(&k, state);
	open_device(&k);
	D3DKMT_CREATECONTEXTVIRTUAL context = {.hDevice = k.device};
	assert_int_equal(D3DKMTCreateContextVirtual(&context), STATUS_SUCCESS);
	D3DKMT_HANDLE target = allocate(&k, WORLD_MEMORY);
	uint64_t at = map(&k, target, 0);
	D3DKMT_PRESENT args = {.hContext = context.hContext,
			       .hDestination = target,
			       .Color = 0xC0105,
			       .Flags.ColorFill = 1};
	assert_int_equal(D3DKMTPresent(&args), STATUS_SUCCESS);
	wddm2_run(&k.v.w);
	assert_int_equal(word_at(&k, at), 0xC0105);
	const struct scripted_call *call = scripted_last(k.v.w.m, VIDMM_DDI_PRESENT);
	assert_int_equal(call->in.present.NumSrcAllocations, 0);
	assert_int_equal(call->in.present.NumDstAllocations, 1);
	assert_null(call->allocations[1].hDeviceSpecificAllocation);
	assert_int_equal(call->allocations[1].VirtualAddress, 0);
	args.hDestination = 0x1234;
	assert_int_equal(D3DKMTPresent(&args), STATUS_INVALID_HANDLE);
	world_expect_finding(&k.v.w, "DMA-16");
	finish(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(va_01_va_07_addresses_are_reserved_without_a_device),
		ON_SIM(sub_23_va_10_d3dkmtsubmitcommand_and_update),
		ON_BOTH(prs_09_d3dkmtpresent_fills_at_a_virtual_address),
		ON_BOTH(q_342_the_private_data_of_d3dkmtpresent_reaches_the_miniport),
		ON_SIM(null_arguments_are_refused),
	};

	return cmocka_run_group_tests_name("wddm2_va_kmt", tests, NULL, NULL);
}
