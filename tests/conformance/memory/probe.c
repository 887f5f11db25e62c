/* SPDX-License-Identifier: MIT */
#include "probe.h"
#include "support/softgpu_table.h"

#include <stdatomic.h>
#include <string.h>

struct probe probe;

static DRIVER_INITIALIZATION_DATA softgpu;
static HANDLE softgpu_adapter;
static atomic_flag busy = ATOMIC_FLAG_INIT; /* guards the log; never held across a call */

NTSTATUS __real_DxgkInitialize(PDRIVER_OBJECT, PUNICODE_STRING, PDRIVER_INITIALIZATION_DATA);
NTSTATUS __wrap_DxgkInitialize(PDRIVER_OBJECT, PUNICODE_STRING, PDRIVER_INITIALIZATION_DATA);

static void guard(void)
{
	while (atomic_flag_test_and_set_explicit(&busy, memory_order_acquire))
		;
}

static void unguard(void)
{
	atomic_flag_clear_explicit(&busy, memory_order_release);
}

static void record(const struct probe_call *call)
{
	guard();
	if (probe.calls < PROBE_CALLS)
		probe.call[probe.calls++] = *call;
	unguard();
}

/* The number of calls in the log. Entries below it do not change until probe_forget. */
static uint32_t call_count(void)
{
	guard();
	uint32_t calls = probe.calls;
	unguard();
	return calls;
}

void probe_reset(void)
{
	memset(&probe, 0, sizeof(probe));
}

void probe_forget(void)
{
	guard();
	probe.calls = 0;
	unguard();
}

static bool paging_matches(const struct probe_call *call, int operation, HANDLE allocation)
{
	const DXGKARG_BUILDPAGINGBUFFER *p = &call->paging;
	HANDLE of = p->Operation == DXGK_OPERATION_MAP_APERTURE_SEGMENT
			    ? p->MapApertureSegment.hAllocation
		    : p->Operation == DXGK_OPERATION_UNMAP_APERTURE_SEGMENT
			    ? p->UnmapApertureSegment.hAllocation
			    : p->Transfer.hAllocation;

	return call->ddi == PROBE_PAGING && (operation < 0 || (int)p->Operation == operation) &&
	       (!allocation || of == allocation);
}

const struct probe_call *probe_find(uint32_t ddi, uint32_t index)
{
	for (uint32_t i = 0, calls = call_count(); i < calls; i++)
		if (probe.call[i].ddi == ddi && index-- == 0)
			return &probe.call[i];
	return NULL;
}

const struct probe_call *probe_find_paging(int operation, HANDLE allocation, uint32_t index)
{
	for (uint32_t i = 0, calls = call_count(); i < calls; i++)
		if (paging_matches(&probe.call[i], operation, allocation) && index-- == 0)
			return &probe.call[i];
	return NULL;
}

uint32_t probe_count(uint32_t ddi)
{
	uint32_t n = 0;

	while (probe_find(ddi, n))
		n++;
	return n;
}

uint32_t probe_paging_count(int operation, HANDLE allocation)
{
	uint32_t n = 0;

	while (probe_find_paging(operation, allocation, n))
		n++;
	return n;
}

uint32_t probe_position(const struct probe_call *call)
{
	assert_non_null(call);
	return (uint32_t)(call - probe.call);
}

NTSTATUS probe_softgpu_paging(DXGKARG_BUILDPAGINGBUFFER *args)
{
	return softgpu.DxgkDdiBuildPagingBuffer(softgpu_adapter, args);
}

HANDLE probe_last_created(void)
{
	HANDLE last = NULL;

	for (uint32_t i = 0, calls = call_count(); i < calls; i++)
		if (probe.call[i].ddi == PROBE_CREATE && probe.call[i].object)
			last = probe.call[i].object;
	assert_non_null(last);
	return last;
}

static NTSTATUS APIENTRY query_adapter_info(IN_CONST_HANDLE hAdapter,
					    IN_CONST_PDXGKARG_QUERYADAPTERINFO pArgs)
{
	NTSTATUS status = softgpu.DxgkDdiQueryAdapterInfo(hAdapter, pArgs);

	if (NT_SUCCESS(status) && pArgs->Type == DXGKQAITYPE_DRIVERCAPS && probe.edit_caps)
		probe.edit_caps(probe.context, pArgs->pOutputData);
	if (NT_SUCCESS(status) && pArgs->Type == DXGKQAITYPE_QUERYSEGMENT3 && probe.edit_segments)
		probe.edit_segments(probe.context, pArgs->pOutputData);
	return status;
}

static void edit_allocation(HANDLE adapter, DXGK_ALLOCATIONINFO *info, UINT index)
{
	HANDLE made = info->hAllocation;
	DXGKARG_DESTROYALLOCATION undo = {.NumAllocations = 1, .pAllocationList = &made};

	probe.edit_allocation(probe.context, info, index);
	if (!info->hAllocation)
		softgpu.DxgkDdiDestroyAllocation(adapter, &undo);
}

static NTSTATUS APIENTRY create_allocation(IN_CONST_HANDLE hAdapter,
					   INOUT_PDXGKARG_CREATEALLOCATION pArgs)
{
	bool had_resource = pArgs->hResource != NULL;
	NTSTATUS status = softgpu.DxgkDdiCreateAllocation(hAdapter, pArgs);
	struct probe_call call = {
		.ddi = PROBE_CREATE, .flags = pArgs->Flags.Value, .count = pArgs->NumAllocations};

	if (NT_SUCCESS(status) && probe.create_status) {
		for (UINT i = 0; i < pArgs->NumAllocations; i++) {
			DXGKARG_DESTROYALLOCATION undo = {
				.NumAllocations = 1,
				.pAllocationList = &pArgs->pAllocationInfo[i].hAllocation,
				.hResource = pArgs->hResource};

			undo.Flags.DestroyResource =
				i == 0 && pArgs->Flags.Resource && !had_resource;
			softgpu.DxgkDdiDestroyAllocation(hAdapter, &undo);
		}
		status = probe.create_status;
		probe.create_status = STATUS_SUCCESS;
	}
	for (UINT i = 0; i < pArgs->NumAllocations; i++) {
		call.status = status;
		call.object = NT_SUCCESS(status) ? pArgs->pAllocationInfo[i].hAllocation : NULL;
		record(&call);
		if (NT_SUCCESS(status) && probe.edit_allocation)
			edit_allocation(hAdapter, &pArgs->pAllocationInfo[i], i);
	}
	if (!pArgs->NumAllocations)
		record(&call);
	return status;
}

static NTSTATUS APIENTRY destroy_allocation(IN_CONST_HANDLE hAdapter,
					    IN_CONST_PDXGKARG_DESTROYALLOCATION pArgs)
{
	struct probe_call call = {
		.ddi = PROBE_DESTROY, .flags = pArgs->Flags.Value, .count = pArgs->NumAllocations};

	for (UINT i = 0; i < pArgs->NumAllocations; i++) {
		call.object = pArgs->pAllocationList[i];
		record(&call);
	}
	call.object = NULL;
	if (!pArgs->NumAllocations)
		record(&call);
	return softgpu.DxgkDdiDestroyAllocation(hAdapter, pArgs);
}

static NTSTATUS APIENTRY open_allocation(IN_CONST_HANDLE hDevice,
					 IN_CONST_PDXGKARG_OPENALLOCATION pArgs)
{
	NTSTATUS status = softgpu.DxgkDdiOpenAllocation(hDevice, pArgs);
	bool spoil_all = NT_SUCCESS(status) && probe.open_status;

	for (UINT i = 0; NT_SUCCESS(status) && i < pArgs->NumAllocations; i++) {
		HANDLE *open = &pArgs->pOpenAllocation[i].hDeviceSpecificAllocation;
		struct probe_call call = {.ddi = PROBE_OPEN,
					  .object = *open,
					  .device = hDevice,
					  .flags = pArgs->Flags.Value,
					  .count = pArgs->NumAllocations};
		DXGKARG_CLOSEALLOCATION undo = {.NumAllocations = 1, .pOpenHandleList = open};

		record(&call);
		if (spoil_all || probe.open_null == i + 1)
			softgpu.DxgkDdiCloseAllocation(hDevice, &undo);
		if (probe.open_null == i + 1)
			*open = NULL;
	}
	if (probe.open_null)
		probe.open_null = 0;
	if (spoil_all) {
		status = probe.open_status;
		probe.open_status = STATUS_SUCCESS;
	}
	return status;
}

static NTSTATUS APIENTRY close_allocation(IN_CONST_HANDLE hDevice,
					  IN_CONST_PDXGKARG_CLOSEALLOCATION pArgs)
{
	for (UINT i = 0; i < pArgs->NumAllocations; i++) {
		struct probe_call call = {
			.ddi = PROBE_CLOSE, .object = pArgs->pOpenHandleList[i], .device = hDevice};

		record(&call);
	}
	return softgpu.DxgkDdiCloseAllocation(hDevice, pArgs);
}

static void keep_list(struct probe_call *call, const DXGK_ALLOCATIONLIST *list, UINT count)
{
	for (UINT i = 0; i < count && i < sizeof(call->list) / sizeof(call->list[0]); i++)
		call->list[i] = list[i];
	call->count = count;
}

static NTSTATUS APIENTRY render(IN_CONST_HANDLE hContext, INOUT_PDXGKARG_RENDER pArgs)
{
	struct probe_call call = {.ddi = PROBE_RENDER, .object = hContext};

	keep_list(&call, pArgs->pAllocationList, pArgs->AllocationListSize);
	call.status = softgpu.DxgkDdiRender(hContext, pArgs);
	record(&call);
	return call.status;
}

static NTSTATUS APIENTRY patch(IN_CONST_HANDLE hAdapter, IN_CONST_PDXGKARG_PATCH pArgs)
{
	struct probe_call call = {.ddi = PROBE_PATCH,
				  .object = pArgs->hContext,
				  .flags = pArgs->Flags.Value,
				  .fence = pArgs->SubmissionFenceId};

	keep_list(&call, pArgs->pAllocationList, pArgs->AllocationListSize);
	record(&call);
	return softgpu.DxgkDdiPatch(hAdapter, pArgs);
}

static NTSTATUS APIENTRY submit(IN_CONST_HANDLE hAdapter, IN_CONST_PDXGKARG_SUBMITCOMMAND pArgs)
{
	struct probe_call call = {.ddi = PROBE_SUBMIT,
				  .object = pArgs->hContext,
				  .flags = pArgs->Flags.Value,
				  .fence = pArgs->SubmissionFenceId};

	record(&call);
	return softgpu.DxgkDdiSubmitCommand(hAdapter, pArgs);
}

static NTSTATUS APIENTRY build_paging_buffer(IN_CONST_HANDLE hAdapter,
					     IN_PDXGKARG_BUILDPAGINGBUFFER pArgs)
{
	struct probe_call call = {.ddi = PROBE_PAGING, .paging = *pArgs};
	char *start = pArgs->pDmaBuffer;

	softgpu_adapter = hAdapter;

	if (!probe.answer_paging || !probe.answer_paging(probe.context, pArgs, &call.status))
		call.status = softgpu.DxgkDdiBuildPagingBuffer(hAdapter, pArgs);
	call.written_bytes = (uint64_t)((char *)pArgs->pDmaBuffer - start);
	record(&call);
	return call.status;
}

static NTSTATUS APIENTRY acquire_range(IN_CONST_HANDLE hAdapter,
				       INOUT_PDXGKARG_ACQUIRESWIZZLINGRANGE pArgs)
{
	struct probe_call call = {
		.ddi = PROBE_ACQUIRE, .object = pArgs->hAllocation, .range = *pArgs};

	if (!probe.answer_acquire || !probe.answer_acquire(probe.context, pArgs, &call.status))
		call.status = softgpu.DxgkDdiAcquireSwizzlingRange(hAdapter, pArgs);
	record(&call);
	return call.status;
}

static NTSTATUS APIENTRY release_range(IN_CONST_HANDLE hAdapter,
				       IN_CONST_PDXGKARG_RELEASESWIZZLINGRANGE pArgs)
{
	struct probe_call call = {.ddi = PROBE_RELEASE,
				  .object = pArgs->hAllocation,
				  .range = {.hAllocation = pArgs->hAllocation,
					    .PrivateDriverData = pArgs->PrivateDriverData,
					    .RangeId = pArgs->RangeId}};

	call.status = softgpu.DxgkDdiReleaseSwizzlingRange(hAdapter, pArgs);
	record(&call);
	return call.status;
}

static NTSTATUS stop_device(IN_CONST_PVOID MiniportDeviceContext)
{
	struct probe_call call = {.ddi = PROBE_STOP};

	record(&call);
	return softgpu.DxgkDdiStopDevice(MiniportDeviceContext);
}

NTSTATUS __wrap_DxgkInitialize(PDRIVER_OBJECT driver, PUNICODE_STRING path,
			       PDRIVER_INITIALIZATION_DATA data)
{
	DRIVER_INITIALIZATION_DATA ours = softgpu_table(data);

	softgpu = ours;
	ours.DxgkDdiQueryAdapterInfo = query_adapter_info;
	ours.DxgkDdiCreateAllocation = create_allocation;
	ours.DxgkDdiDestroyAllocation = destroy_allocation;
	ours.DxgkDdiOpenAllocation = open_allocation;
	ours.DxgkDdiCloseAllocation = close_allocation;
	ours.DxgkDdiRender = render;
	ours.DxgkDdiPatch = patch;
	ours.DxgkDdiSubmitCommand = submit;
	ours.DxgkDdiBuildPagingBuffer = build_paging_buffer;
	ours.DxgkDdiAcquireSwizzlingRange = acquire_range;
	ours.DxgkDdiReleaseSwizzlingRange = release_range;
	ours.DxgkDdiStopDevice = stop_device;
	return __real_DxgkInitialize(driver, path, &ours);
}
