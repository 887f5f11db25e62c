/* SPDX-License-Identifier: MIT */
/*
 * The miniport of the copier: WDDM 1.2, one segment of video memory, one engine. It writes entries
 * into a ring in system memory and rings a doorbell; the device raises an interrupt, whose routine
 * reads the fence and queues the DPC. What does not concern the hardware is as in tinykmd.c.
 */
#define DXGKDDI_INTERFACE_VERSION 0x300E /* 1.2 */
#include <ntddk.h>
#include <d3dkmddi.h>
#include <dispmprt.h>

#include <stdbool.h>
#include <string.h>

#include "copier.h"

__attribute__((visibility("default"))) NTSTATUS DriverEntry(PDRIVER_OBJECT driver,
							    PUNICODE_STRING registry_path);

#define POOL_TAG     0x59504F43u
#define RING_ENTRIES 64u
#define PAGE         4096u
enum { VRAM = 1, VRAM_BIT = 1u << (VRAM - 1) };

/* One page of system memory that the device reads and writes. */
struct shared {
	struct copier_entry ring[RING_ENTRIES];
	volatile LONG fence; /* the device writes it at any time */
};

struct adapter {
	DXGKRNL_INTERFACE dxgk;
	PHYSICAL_ADDRESS vram; /* address of BAR 2 */
	uint64_t vram_bytes;
	PUCHAR registers;
	ULONG registers_bytes;
	struct shared *shared;
	uint32_t tail; /* entries submitted since the reset */
};

/* ---- the hardware ---- */

static uint32_t read_register(const struct adapter *a, enum copier_register offset)
{
	return READ_REGISTER_ULONG((volatile ULONG *)(a->registers + offset));
}

static void write_register(const struct adapter *a, enum copier_register offset, uint32_t value)
{
	WRITE_REGISTER_ULONG((volatile ULONG *)(a->registers + offset), value);
}

static uint32_t read_fence(const struct adapter *a)
{
	return (uint32_t)InterlockedCompareExchange(&a->shared->fence, 0, 0);
}

/* Resets the device and gives it the ring. Also after D3, when its registers are lost. */
static void program(struct adapter *a)
{
	uint64_t ring = (uint64_t)MmGetPhysicalAddress(a->shared->ring).QuadPart;
	uint64_t fence =
		(uint64_t)MmGetPhysicalAddress((PVOID)(ULONG_PTR)&a->shared->fence).QuadPart;

	write_register(a, COPIER_CONTROL, COPIER_RESET);
	a->tail = 0;
	write_register(a, COPIER_RING_LOW, (uint32_t)ring);
	write_register(a, COPIER_RING_HIGH, (uint32_t)(ring >> 32));
	write_register(a, COPIER_RING_SIZE, RING_ENTRIES);
	write_register(a, COPIER_FENCE_LOW, (uint32_t)fence);
	write_register(a, COPIER_FENCE_HIGH, (uint32_t)(fence >> 32));
	write_register(a, COPIER_CONTROL, COPIER_ENABLE);
}

/* Runs at DISPATCH_LEVEL, one call at a time. The engine reads the commands itself. */
static NTSTATUS APIENTRY submit_command(IN_CONST_HANDLE handle,
					IN_CONST_PDXGKARG_SUBMITCOMMAND args)
{
	struct adapter *a = handle;

	a->shared->ring[a->tail % RING_ENTRIES] = (struct copier_entry){
		.commands = (uint64_t)args->DmaBufferPhysicalAddress.QuadPart +
			    args->DmaBufferSubmissionStartOffset,
		.bytes = args->DmaBufferSubmissionEndOffset - args->DmaBufferSubmissionStartOffset,
		.fence = args->SubmissionFenceId,
	};
	write_register(a, COPIER_TAIL, ++a->tail);
	return STATUS_SUCCESS;
}

/*
 * The line is shared: FALSE if the device has no cause. The cause is cleared before the fence is
 * read, so an entry that completes between the two raises the interrupt again.
 */
static BOOLEAN interrupt_routine(IN_CONST_PVOID context, IN_ULONG message)
{
	const struct adapter *a = context;
	DXGKARGCB_NOTIFY_INTERRUPT_DATA data = {.InterruptType = DXGK_INTERRUPT_DMA_COMPLETED};
	uint32_t status = read_register(a, COPIER_STATUS);

	(void)message;
	/* A device that has been removed reads as all ones: it has no cause. */
	if (!status || status == UINT32_MAX)
		return FALSE;
	write_register(a, COPIER_STATUS, status);
	if (status & COPIER_DONE) {
		data.DmaCompleted.SubmissionFenceId = read_fence(a);
		a->dxgk.DxgkCbNotifyInterrupt(a->dxgk.DeviceHandle, &data);
	}
	if (status & COPIER_FAULT) {
		data = (DXGKARGCB_NOTIFY_INTERRUPT_DATA){
			.InterruptType = DXGK_INTERRUPT_DMA_FAULTED,
			.DmaFaulted.FaultedFenceId = read_register(a, COPIER_FAULT_FENCE)};
		a->dxgk.DxgkCbNotifyInterrupt(a->dxgk.DeviceHandle, &data);
	}
	a->dxgk.DxgkCbQueueDpc(a->dxgk.DeviceHandle);
	return TRUE;
}

static VOID dpc_routine(IN_CONST_PVOID context)
{
	const struct adapter *a = context;

	a->dxgk.DxgkCbNotifyDpc(a->dxgk.DeviceHandle);
}

static NTSTATUS APIENTRY query_current_fence(IN_CONST_HANDLE handle,
					     INOUT_PDXGKARG_QUERYCURRENTFENCE args)
{
	args->CurrentFence = read_fence(handle);
	return STATUS_SUCCESS;
}

static NTSTATUS APIENTRY reset_from_timeout(IN_CONST_HANDLE handle)
{
	program(handle);
	return STATUS_SUCCESS;
}

static NTSTATUS APIENTRY restart_from_timeout(IN_CONST_HANDLE handle)
{
	(void)handle;
	return STATUS_SUCCESS;
}

static NTSTATUS set_power_state(IN_CONST_PVOID context, ULONG uid, DEVICE_POWER_STATE state,
				POWER_ACTION action)
{
	(void)uid, (void)action;
	if (state == PowerDeviceD0)
		program((struct adapter *)(ULONG_PTR)context);
	return STATUS_SUCCESS;
}

/* ---- start and stop ---- */

static NTSTATUS add_device(const PDEVICE_OBJECT device, PVOID *context)
{
	(void)device;
	*context = ExAllocatePool2(POOL_FLAG_NON_PAGED, sizeof(struct adapter), POOL_TAG);
	return *context ? STATUS_SUCCESS : STATUS_NO_MEMORY;
}

/* BAR 0 is the first memory resource, BAR 2 the second one. */
static NTSTATUS find_resources(struct adapter *a, PHYSICAL_ADDRESS *registers)
{
	const CM_PARTIAL_RESOURCE_LIST *list;
	DXGK_DEVICE_INFO device;
	unsigned found = 0;
	NTSTATUS status;

	memset(&device, 0, sizeof(device));
	status = a->dxgk.DxgkCbGetDeviceInformation(a->dxgk.DeviceHandle, &device);
	if (!NT_SUCCESS(status))
		return status;
	list = &device.TranslatedResourceList->List[0].PartialResourceList;
	for (ULONG i = 0; i < list->Count; i++) {
		const CM_PARTIAL_RESOURCE_DESCRIPTOR *r = &list->PartialDescriptors[i];

		if (r->Type != CmResourceTypeMemory)
			continue;
		if (found++ == 0) {
			*registers = r->u.Memory.Start;
			a->registers_bytes = r->u.Memory.Length;
		} else {
			a->vram = r->u.Memory.Start;
			a->vram_bytes = r->u.Memory.Length;
		}
	}
	return found == 2 ? STATUS_SUCCESS : STATUS_DEVICE_CONFIGURATION_ERROR;
}

static void release(struct adapter *a)
{
	if (a->shared)
		MmFreeContiguousMemory(a->shared);
	if (a->registers)
		a->dxgk.DxgkCbUnmapMemory(a->dxgk.DeviceHandle, a->registers);
	a->shared = NULL;
	a->registers = NULL;
}

static NTSTATUS start_device(IN_CONST_PVOID context, PDXGK_START_INFO info, PDXGKRNL_INTERFACE dxgk,
			     PULONG sources, PULONG children)
{
	struct adapter *a = (struct adapter *)(ULONG_PTR)context;
	PHYSICAL_ADDRESS registers, highest = {.QuadPart = -1};
	NTSTATUS status;

	(void)info;
	a->dxgk = *dxgk;
	*sources = *children = 0; /* an adapter without displays */
	status = find_resources(a, &registers);
	if (!NT_SUCCESS(status))
		return status;
	status = a->dxgk.DxgkCbMapMemory(a->dxgk.DeviceHandle, registers, a->registers_bytes, FALSE,
					 FALSE, MmNonCached, (PVOID *)&a->registers);
	if (!NT_SUCCESS(status))
		return status;
	a->shared = MmAllocateContiguousMemory(PAGE, highest);
	status = !a->shared ? STATUS_NO_MEMORY
		 : read_register(a, COPIER_ID) != COPIER_ID_VALUE
			 ? STATUS_DEVICE_CONFIGURATION_ERROR
			 : STATUS_SUCCESS;
	if (!NT_SUCCESS(status)) {
		release(a);
		return status;
	}
	memset(a->shared, 0, sizeof(*a->shared));
	program(a);
	return STATUS_SUCCESS;
}

static NTSTATUS stop_device(IN_CONST_PVOID context)
{
	struct adapter *a = (struct adapter *)(ULONG_PTR)context;

	write_register(a, COPIER_CONTROL, COPIER_RESET);
	release(a);
	return STATUS_SUCCESS;
}

static NTSTATUS remove_device(IN_CONST_PVOID context)
{
	ExFreePoolWithTag((PVOID)(ULONG_PTR)context, POOL_TAG);
	return STATUS_SUCCESS;
}

static VOID unload(VOID)
{
}

/* ---- description of the adapter ---- */

/* Addresses of the segment are physical addresses, because the device has no others. */
static void fill_segments(const struct adapter *a, DXGK_QUERYSEGMENTOUT3 *out)
{
	DXGK_SEGMENTDESCRIPTOR3 *s = out->pSegmentDescriptor;

	out->NbSegment = 1;
	if (!s)
		return;
	memset(s, 0, sizeof(*s));
	s->Flags.CpuVisible = 1;
	s->BaseAddress = s->CpuTranslatedAddress = a->vram;
	s->Size = s->CommitLimit = (SIZE_T)a->vram_bytes;
	out->PagingBufferSegmentId = 0;
	out->PagingBufferSize = PAGE;
	out->PagingBufferPrivateDataSize = 0;
}

static NTSTATUS APIENTRY query_adapter_info(IN_CONST_HANDLE handle,
					    IN_CONST_PDXGKARG_QUERYADAPTERINFO query)
{
	if (query->Type == DXGKQAITYPE_QUERYSEGMENT3) {
		fill_segments(handle, query->pOutputData);
		return STATUS_SUCCESS;
	}
	if (query->Type == DXGKQAITYPE_DRIVERCAPS) {
		DXGK_DRIVERCAPS *caps = query->pOutputData;

		memset(caps, 0, query->OutputDataSize);
		caps->HighestAcceptableAddress.QuadPart = -1;
		caps->WDDMVersion = DXGKDDI_WDDMv1_2;
		return STATUS_SUCCESS;
	}
	return STATUS_NOT_SUPPORTED;
}

/* ---- devices and allocations: no state ---- */

static NTSTATUS APIENTRY create_device(IN_CONST_HANDLE handle, INOUT_PDXGKARG_CREATEDEVICE args)
{
	static DXGK_DEVICEINFO info = {
		.DmaBufferSize = PAGE, .AllocationListSize = 16, .PatchLocationListSize = 64};

	args->hDevice = (HANDLE)(ULONG_PTR)handle;
	args->pInfo = &info;
	return STATUS_SUCCESS;
}

static NTSTATUS APIENTRY destroy_device(IN_CONST_HANDLE device)
{
	(void)device;
	return STATUS_SUCCESS;
}

static NTSTATUS APIENTRY create_allocation(IN_CONST_HANDLE handle,
					   INOUT_PDXGKARG_CREATEALLOCATION args)
{
	for (UINT i = 0; i < args->NumAllocations; i++) {
		DXGK_ALLOCATIONINFO *info = &args->pAllocationInfo[i];
		const struct copier_allocation *request = info->pPrivateDriverData;

		if (info->PrivateDriverDataSize != sizeof(*request) || !request->bytes)
			return STATUS_INVALID_PARAMETER;
		info->Size = (SIZE_T)request->bytes;
		info->Alignment = PAGE;
		info->SupportedReadSegmentSet = info->SupportedWriteSegmentSet = VRAM_BIT;
		info->PreferredSegment.SegmentId0 = VRAM;
		info->AllocationPriority = D3DDDI_ALLOCATIONPRIORITY_NORMAL;
		info->Flags.CpuVisible = 1;
		info->hAllocation = (HANDLE)(ULONG_PTR)handle;
	}
	return STATUS_SUCCESS;
}

static NTSTATUS APIENTRY destroy_allocation(IN_CONST_HANDLE handle,
					    IN_CONST_PDXGKARG_DESTROYALLOCATION args)
{
	(void)handle, (void)args;
	return STATUS_SUCCESS;
}

static NTSTATUS APIENTRY open_allocation(IN_CONST_HANDLE device,
					 IN_CONST_PDXGKARG_OPENALLOCATION args)
{
	for (UINT i = 0; i < args->NumAllocations; i++)
		args->pOpenAllocation[i].hDeviceSpecificAllocation = (HANDLE)(ULONG_PTR)device;
	return STATUS_SUCCESS;
}

static NTSTATUS APIENTRY close_allocation(IN_CONST_HANDLE device,
					  IN_CONST_PDXGKARG_CLOSEALLOCATION args)
{
	(void)device, (void)args;
	return STATUS_SUCCESS;
}

static NTSTATUS APIENTRY describe_allocation(IN_CONST_HANDLE handle,
					     INOUT_PDXGKARG_DESCRIBEALLOCATION args)
{
	(void)handle, (void)args;
	return STATUS_NOT_SUPPORTED;
}

/* ---- commands ---- */

/* Adds a patch location: the 64 bits at `field` become an address in the allocation. */
static void add_patch(DXGKARG_RENDER *args, const void *start, const uint64_t *field, UINT index,
		      UINT offset)
{
	*args->pPatchLocationListOut++ = (D3DDDI_PATCHLOCATIONLIST){
		.AllocationIndex = index,
		.AllocationOffset = offset,
		.PatchOffset = (UINT)((const char *)field - (const char *)start)};
}

static bool is_valid(const DXGKARG_RENDER *args, const struct copier_request *r)
{
	if (r->destination >= args->AllocationListSize ||
	    !args->pAllocationList[r->destination].WriteOperation)
		return false;
	return r->op == COPIER_FILL ? r->bytes % 4 == 0
				    : r->op == COPIER_COPY && r->source < args->AllocationListSize;
}

static NTSTATUS APIENTRY render(IN_CONST_HANDLE context, INOUT_PDXGKARG_RENDER args)
{
	struct copier_command *start = args->pDmaBuffer, *out = start;
	const struct copier_request *in = args->pCommand;
	UINT count = args->CommandLength / sizeof(*in);

	(void)context;
	if (args->CommandLength % sizeof(*in))
		return STATUS_INVALID_PARAMETER;
	if (count * sizeof(*out) > args->DmaSize || 2 * count > args->PatchLocationListOutSize)
		return STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER;
	for (UINT i = 0; i < count; i++, out++) {
		struct copier_request r = in[i]; /* read once: client memory may change */

		if (!is_valid(args, &r))
			return STATUS_INVALID_PARAMETER;
		*out = (struct copier_command){.op = r.op, .value = r.value, .bytes = r.bytes};
		add_patch(args, start, &out->destination, r.destination, r.destination_offset);
		if (r.op == COPIER_COPY)
			add_patch(args, start, &out->source, r.source, r.source_offset);
	}
	args->pDmaBuffer = out;
	return STATUS_SUCCESS;
}

static NTSTATUS APIENTRY patch(IN_CONST_HANDLE handle, IN_CONST_PDXGKARG_PATCH args)
{
	(void)handle;
	for (UINT i = 0; i < args->PatchLocationListSubmissionLength; i++) {
		const D3DDDI_PATCHLOCATIONLIST *p =
			&args->pPatchLocationList[args->PatchLocationListSubmissionStart + i];
		uint64_t address = (uint64_t)args->pAllocationList[p->AllocationIndex]
					   .PhysicalAddress.QuadPart +
				   p->AllocationOffset;

		memcpy((char *)args->pDmaBuffer + p->PatchOffset, &address, sizeof(address));
	}
	return STATUS_SUCCESS;
}

/* ---- paging ---- */

struct paging {
	struct copier_command *out, *end;
};

static bool emit(struct paging *p, struct copier_command command)
{
	if (p->out == p->end)
		return false;
	*p->out++ = command;
	return true;
}

/* A move inside the segment. The two places may overlap, which the engine permits. */
static NTSTATUS move(struct paging *p, const DXGKARG_BUILDPAGINGBUFFER *args)
{
	const struct copier_command command = {
		.op = COPIER_COPY,
		.destination = (uint64_t)args->Transfer.Destination.SegmentAddress.QuadPart +
			       args->Transfer.TransferOffset,
		.source = (uint64_t)args->Transfer.Source.SegmentAddress.QuadPart +
			  args->Transfer.TransferOffset,
		.bytes = args->Transfer.TransferSize};

	return emit(p, command) ? STATUS_SUCCESS : STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER;
}

/*
 * A copy between the segment and pages of system memory: one command for each run of adjacent
 * pages. MultipassOffset counts the bytes that earlier buffers have. (PAG-07)
 */
static NTSTATUS transfer(struct paging *p, DXGKARG_BUILDPAGINGBUFFER *args)
{
	bool in = args->Transfer.Source.SegmentId == 0;
	PMDL mdl = in ? args->Transfer.Source.pMdl : args->Transfer.Destination.pMdl;
	/* After a reset content may be lost: then there is nothing to copy, and no MDL. (PAG-27) */
	const PFN_NUMBER *frames = mdl ? MmGetMdlPfnArray(mdl) + args->Transfer.MdlOffset : NULL;
	uint64_t segment = (uint64_t)(in ? args->Transfer.Destination.SegmentAddress.QuadPart
					 : args->Transfer.Source.SegmentAddress.QuadPart) +
			   args->Transfer.TransferOffset;

	while (args->MultipassOffset < args->Transfer.TransferSize) {
		uint64_t done = args->MultipassOffset, page = done / PAGE;
		uint64_t left = args->Transfer.TransferSize - done, bytes = PAGE;
		uint64_t system = frames[page] * PAGE;

		while (bytes < left && frames[page + bytes / PAGE] * PAGE == system + bytes)
			bytes += PAGE;
		bytes = bytes < left ? bytes : left;
		if (!emit(p, (struct copier_command){.op = COPIER_COPY,
						     .destination = in ? segment + done : system,
						     .source = in ? system : segment + done,
						     .bytes = bytes}))
			return STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER;
		args->MultipassOffset += (UINT)bytes;
	}
	return STATUS_SUCCESS;
}

static NTSTATUS APIENTRY build_paging_buffer(IN_CONST_HANDLE handle,
					     IN_PDXGKARG_BUILDPAGINGBUFFER args)
{
	struct copier_command *start = args->pDmaBuffer;
	struct paging p = {start, start + args->DmaSize / sizeof(*start)};
	NTSTATUS status = STATUS_SUCCESS;

	(void)handle;
	if (args->Operation == DXGK_OPERATION_TRANSFER) {
		status = args->Transfer.Source.SegmentId && args->Transfer.Destination.SegmentId
				 ? move(&p, args)
				 : transfer(&p, args);
	} else if (args->Operation == DXGK_OPERATION_FILL) {
		if (!emit(&p,
			  (struct copier_command){
				  .op = COPIER_FILL,
				  .value = args->Fill.FillPattern,
				  .destination =
					  (uint64_t)args->Fill.Destination.SegmentAddress.QuadPart,
				  .bytes = args->Fill.FillSize}))
			status = STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER;
	}
	args->pDmaBuffer = p.out;
	return status;
}

/* ---- entries that every render adapter must have, but this one does not use ---- */

static NTSTATUS APIENTRY preempt_command(IN_CONST_HANDLE handle,
					 IN_CONST_PDXGKARG_PREEMPTCOMMAND args)
{
	(void)handle, (void)args;
	return STATUS_NOT_SUPPORTED;
}

static NTSTATUS APIENTRY present(IN_CONST_HANDLE context, INOUT_PDXGKARG_PRESENT args)
{
	(void)context, (void)args;
	return STATUS_NOT_SUPPORTED;
}

static NTSTATUS APIENTRY collect_dbg_info(IN_CONST_HANDLE handle,
					  IN_CONST_PDXGKARG_COLLECTDBGINFO args)
{
	(void)handle, (void)args;
	return STATUS_NOT_SUPPORTED;
}

NTSTATUS DriverEntry(PDRIVER_OBJECT driver, PUNICODE_STRING registry_path)
{
	DRIVER_INITIALIZATION_DATA table = {
		.Version = DXGKDDI_INTERFACE_VERSION,
		.DxgkDdiAddDevice = add_device,
		.DxgkDdiStartDevice = start_device,
		.DxgkDdiStopDevice = stop_device,
		.DxgkDdiRemoveDevice = remove_device,
		.DxgkDdiUnload = unload,
		.DxgkDdiInterruptRoutine = interrupt_routine,
		.DxgkDdiDpcRoutine = dpc_routine,
		.DxgkDdiSetPowerState = set_power_state,
		.DxgkDdiQueryAdapterInfo = query_adapter_info,
		.DxgkDdiCreateDevice = create_device,
		.DxgkDdiDestroyDevice = destroy_device,
		.DxgkDdiCreateAllocation = create_allocation,
		.DxgkDdiDestroyAllocation = destroy_allocation,
		.DxgkDdiOpenAllocation = open_allocation,
		.DxgkDdiCloseAllocation = close_allocation,
		.DxgkDdiDescribeAllocation = describe_allocation,
		.DxgkDdiRender = render,
		.DxgkDdiPatch = patch,
		.DxgkDdiBuildPagingBuffer = build_paging_buffer,
		.DxgkDdiSubmitCommand = submit_command,
		.DxgkDdiPreemptCommand = preempt_command,
		.DxgkDdiPresent = present,
		.DxgkDdiQueryCurrentFence = query_current_fence,
		.DxgkDdiResetFromTimeout = reset_from_timeout,
		.DxgkDdiRestartFromTimeout = restart_from_timeout,
		.DxgkDdiCollectDbgInfo = collect_dbg_info,
	};

	return DxgkInitialize(driver, registry_path, &table);
}
