/* SPDX-License-Identifier: MIT */
/*
 * The smallest miniport that vidmm runs, as an introduction and a starting point: WDDM 1.2, one
 * segment of CPU-visible video memory, one engine with a single command (fill), no aperture, no
 * thread, no interrupt line. The "GPU" executes inside DxgkDdiSubmitCommand. It is also built as a
 * shared object: `vidmm caps --driver tinykmd.so` describes it. If its table lacks an entry or its
 * segment breaks a rule, vidmm reports which. tinyumd.c is the program that uses it.
 */
#define DXGKDDI_INTERFACE_VERSION 0x300E /* 1.2: structures have the members of this version */
#include <ntddk.h>
#include <d3dkmddi.h>
#include <dispmprt.h>

#include <stdbool.h>
#include <string.h>

#include "tiny.h"

/* The only name that a loader looks for. */
__attribute__((visibility("default"))) NTSTATUS DriverEntry(PDRIVER_OBJECT driver,
							    PUNICODE_STRING registry_path);

#define POOL_TAG 0x594E4954u /* "TINY" */
enum { VRAM = 1, VRAM_BIT = 1u << (VRAM - 1) };

struct adapter {
	DXGKRNL_INTERFACE dxgk;
	PHYSICAL_ADDRESS address; /* address of BAR 0 */
	char *vram;
	uint64_t bytes;
	UINT fence; /* fence id of the last packet that completed */
};

/*
 * The private data of a DMA buffer. Render writes it, Patch and SubmitCommand get it; only the
 * miniport reads it.
 */
struct dma_private {
	char *commands;
};

/* What the engine executes. Patch replaces `offset` by a GPU address. */
struct packet {
	uint64_t offset, bytes;
	uint32_t kind, value;
	/* COPY_IN and COPY_OUT: kernel address of system memory pages; MOVE: a GPU address */
	uint64_t source;
};
enum { FILL = 1, COPY_IN, COPY_OUT, MOVE };

/* ---- start and stop ---- */

static NTSTATUS add_device(const PDEVICE_OBJECT device, PVOID *context)
{
	(void)device;
	*context = ExAllocatePool2(POOL_FLAG_NON_PAGED, sizeof(struct adapter), POOL_TAG);
	return *context ? STATUS_SUCCESS : STATUS_NO_MEMORY;
}

/* BAR 0 is the video memory. */
static NTSTATUS start_device(IN_CONST_PVOID context, PDXGK_START_INFO info, PDXGKRNL_INTERFACE dxgk,
			     PULONG sources, PULONG children)
{
	struct adapter *a = context;
	DXGK_DEVICE_INFO device;
	const CM_PARTIAL_RESOURCE_DESCRIPTOR *bar;
	NTSTATUS status;

	(void)info;
	a->dxgk = *dxgk;
	memset(&device, 0, sizeof(device));
	status = a->dxgk.DxgkCbGetDeviceInformation(a->dxgk.DeviceHandle, &device);
	if (!NT_SUCCESS(status))
		return status;
	bar = &device.TranslatedResourceList->List[0].PartialResourceList.PartialDescriptors[0];
	if (bar->Type != CmResourceTypeMemory)
		return STATUS_DEVICE_CONFIGURATION_ERROR;
	a->address = bar->u.Memory.Start;
	a->bytes = bar->u.Memory.Length;
	a->vram = MmMapIoSpace(a->address, (SIZE_T)a->bytes, MmWriteCombined);
	*sources = *children = 0; /* an adapter without displays */
	return a->vram ? STATUS_SUCCESS : STATUS_NO_MEMORY;
}

static NTSTATUS stop_device(IN_CONST_PVOID context)
{
	struct adapter *a = context;

	MmUnmapIoSpace(a->vram, (SIZE_T)a->bytes);
	return STATUS_SUCCESS;
}

static NTSTATUS remove_device(IN_CONST_PVOID context)
{
	ExFreePoolWithTag(context, POOL_TAG);
	return STATUS_SUCCESS;
}

static VOID unload(VOID)
{
}

static NTSTATUS set_power_state(IN_CONST_PVOID context, ULONG uid, DEVICE_POWER_STATE state,
				POWER_ACTION action)
{
	(void)context, (void)uid, (void)state, (void)action;
	return STATUS_SUCCESS;
}

/* ---- description of the adapter ---- */

static void fill_segments(const struct adapter *a, DXGK_QUERYSEGMENTOUT3 *out)
{
	DXGK_SEGMENTDESCRIPTOR3 *s = out->pSegmentDescriptor;

	out->NbSegment = 1;
	if (!s) /* the first of two calls asks for the number of segments (SEG-02) */
		return;
	memset(s, 0, sizeof(*s));
	s->Flags.CpuVisible = 1;
	s->CpuTranslatedAddress = a->address;
	s->Size = s->CommitLimit = (SIZE_T)a->bytes;
	/* system memory, because there is no aperture segment to hold it (SEG-21) */
	out->PagingBufferSegmentId = 0;
	out->PagingBufferSize = 4096;
	/* one element for each operation */
	out->PagingBufferPrivateDataSize = 64 * sizeof(struct dma_private);
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

/* ---- devices and allocations ---- */

/*
 * A miniport's handles may be any value but NULL. Objects without state get the adapter's address.
 */
static NTSTATUS APIENTRY create_device(IN_CONST_HANDLE handle, INOUT_PDXGKARG_CREATEDEVICE args)
{
	static DXGK_DEVICEINFO info = {.DmaBufferSize = 4096,
				       .DmaBufferPrivateDataSize = sizeof(struct dma_private),
				       .AllocationListSize = 16,
				       .PatchLocationListSize = 16};

	args->hDevice = (HANDLE)(ULONG_PTR)handle;
	/* sizes of the buffers of every context, because MultiEngineAware is not set */
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
		const struct tiny_allocation *request = info->pPrivateDriverData;

		if (info->PrivateDriverDataSize != sizeof(*request) || !request->bytes)
			return STATUS_INVALID_PARAMETER;
		info->Size = (SIZE_T)request->bytes;
		info->Alignment = 4096;
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

/* ---- commands: Render checks and translates, Patch writes addresses ---- */

static NTSTATUS APIENTRY render(IN_CONST_HANDLE context, INOUT_PDXGKARG_RENDER args)
{
	struct packet *out = args->pDmaBuffer;
	const struct tiny_fill *in = args->pCommand;
	struct dma_private *private_data = args->pDmaBufferPrivateData;
	UINT count = args->CommandLength / sizeof(*in);

	(void)context;
	private_data->commands = args->pDmaBuffer;
	if (args->CommandLength % sizeof(*in))
		return STATUS_INVALID_PARAMETER;
	if (count * sizeof(*out) > args->DmaSize || count > args->PatchLocationListOutSize)
		return STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER;
	for (UINT i = 0; i < count; i++, out++) {
		struct tiny_fill fill = in[i]; /* read once: client memory may change at any time */

		if (fill.allocation >= args->AllocationListSize ||
		    !args->pAllocationList[fill.allocation].WriteOperation)
			return STATUS_INVALID_PARAMETER;
		*out = (struct packet){.kind = FILL,
				       .offset = fill.offset,
				       .bytes = fill.bytes,
				       .value = fill.value};
		*args->pPatchLocationListOut++ = (D3DDDI_PATCHLOCATIONLIST){
			.AllocationIndex = fill.allocation,
			.AllocationOffset = (UINT)fill.offset,
			.PatchOffset = (UINT)((char *)&out->offset - (char *)args->pDmaBuffer),
		};
	}
	args->pDmaBuffer = out; /* end of the output */
	args->pDmaBufferPrivateData = private_data + 1;
	return STATUS_SUCCESS;
}

static NTSTATUS APIENTRY patch(IN_CONST_HANDLE handle, IN_CONST_PDXGKARG_PATCH args)
{
	char *commands = args->pDmaBuffer;

	(void)handle;
	for (UINT i = 0; i < args->PatchLocationListSubmissionLength; i++) {
		const D3DDDI_PATCHLOCATIONLIST *p =
			&args->pPatchLocationList[args->PatchLocationListSubmissionStart + i];
		uint64_t address = (uint64_t)args->pAllocationList[p->AllocationIndex]
					   .PhysicalAddress.QuadPart +
				   p->AllocationOffset;

		memcpy(commands + p->PatchOffset, &address, sizeof(address));
	}
	return STATUS_SUCCESS;
}

/* ---- paging: the engine moves allocations in and out ---- */

/* Content moves in, out, or to another place in the segment. */
static struct packet transfer(const DXGKARG_BUILDPAGINGBUFFER *args)
{
	bool from_segment = args->Transfer.Source.SegmentId != 0;
	bool to_segment = args->Transfer.Destination.SegmentId != 0;
	uint64_t from = (uint64_t)args->Transfer.Source.SegmentAddress.QuadPart +
			args->Transfer.TransferOffset;
	uint64_t to = (uint64_t)args->Transfer.Destination.SegmentAddress.QuadPart +
		      args->Transfer.TransferOffset;
	struct packet packet = {.kind = MOVE, .offset = to, .source = from};
	PMDL mdl = from_segment ? args->Transfer.Destination.pMdl : args->Transfer.Source.pMdl;

	packet.bytes = args->Transfer.TransferSize;
	if (from_segment && to_segment)
		return packet;
	packet.kind = from_segment ? COPY_OUT : COPY_IN;
	packet.offset = from_segment ? from : to;
	packet.source = (uint64_t)(ULONG_PTR)MmGetSystemAddressForMdlSafe(mdl, NormalPagePriority) +
			(uint64_t)args->Transfer.MdlOffset * 4096;
	return packet;
}

static NTSTATUS APIENTRY build_paging_buffer(IN_CONST_HANDLE handle,
					     IN_PDXGKARG_BUILDPAGINGBUFFER args)
{
	struct dma_private *private_data = args->pDmaBufferPrivateData;
	struct packet packet = {0};

	(void)handle;
	if (args->Operation == DXGK_OPERATION_FILL) {
		packet.kind = FILL;
		packet.offset = (uint64_t)args->Fill.Destination.SegmentAddress.QuadPart;
		packet.bytes = args->Fill.FillSize;
		packet.value = args->Fill.FillPattern;
	} else if (args->Operation == DXGK_OPERATION_TRANSFER && args->Transfer.TransferSize) {
		packet = transfer(args);
	} else {
		/*
		 * Nothing to do for DiscardContent and the others, nor for the end of a transfer
		 * whose content a reset has lost: it has size 0 and no MDL (PAG-27).
		 */
		return STATUS_SUCCESS;
	}
	/* called again with the next buffer (PAG-07) */
	if (args->DmaSize < sizeof(packet) ||
	    args->DmaBufferPrivateDataSize < sizeof(*private_data))
		return STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER;
	private_data->commands = (char *)args->pDmaBuffer;
	memcpy(args->pDmaBuffer, &packet, sizeof(packet));
	args->pDmaBuffer = (char *)args->pDmaBuffer + sizeof(packet);
	args->pDmaBufferPrivateData = private_data + 1;
	return STATUS_SUCCESS;
}

/* ---- the engine ---- */

static int execute(struct adapter *a, const struct packet *p)
{
	char *vram = a->vram + p->offset;
	char *pages = (char *)(ULONG_PTR)p->source;

	if (p->offset > a->bytes || p->bytes > a->bytes - p->offset)
		return 0;
	if (p->kind == MOVE && (p->source > a->bytes || p->bytes > a->bytes - p->source))
		return 0;
	for (uint64_t i = 0; p->kind == FILL && i + 4 <= p->bytes; i += 4)
		memcpy(vram + i, &p->value, 4);
	if (p->kind == COPY_IN)
		memcpy(vram, pages, (size_t)p->bytes);
	if (p->kind == COPY_OUT)
		memcpy(pages, vram, (size_t)p->bytes);
	if (p->kind == MOVE) /* the two places may overlap */
		memmove(vram, a->vram + p->source, (size_t)p->bytes);
	return 1;
}

struct report {
	struct adapter *adapter;
	DXGKARGCB_NOTIFY_INTERRUPT_DATA data;
};

/* Runs in the place of the interrupt routine: at its IRQL and never concurrently with it. */
static BOOLEAN interrupt(PVOID context)
{
	struct report *r = context;

	r->adapter->dxgk.DxgkCbNotifyInterrupt(r->adapter->dxgk.DeviceHandle, &r->data);
	return r->adapter->dxgk.DxgkCbQueueDpc(r->adapter->dxgk.DeviceHandle);
}

static NTSTATUS APIENTRY submit_command(IN_CONST_HANDLE handle,
					IN_CONST_PDXGKARG_SUBMITCOMMAND args)
{
	struct adapter *a = handle;
	struct report r = {.adapter = a};
	const struct dma_private *private_data =
		(const struct dma_private *)((const char *)args->pDmaBufferPrivateData +
					     args->DmaBufferPrivateDataSubmissionStartOffset);
	UINT start = args->DmaBufferSubmissionStartOffset, end = args->DmaBufferSubmissionEndOffset;
	int good = 1;

	/*
	 * The private data of a paging buffer points to the first command of the portion, that of
	 * Render to the beginning of the buffer.
	 */
	for (UINT at = start; at < end && good; at += sizeof(struct packet)) {
		struct packet packet;

		memcpy(&packet, private_data->commands + (args->Flags.Paging ? at - start : at),
		       sizeof(packet));
		good = execute(a, &packet);
	}
	a->fence = args->SubmissionFenceId;
	r.data.InterruptType = good ? DXGK_INTERRUPT_DMA_COMPLETED : DXGK_INTERRUPT_DMA_FAULTED;
	if (good)
		r.data.DmaCompleted.SubmissionFenceId = a->fence;
	else
		r.data.DmaFaulted.FaultedFenceId = a->fence;
	BOOLEAN result;
	return a->dxgk.DxgkCbSynchronizeExecution(a->dxgk.DeviceHandle, interrupt, &r, 0, &result);
}

static BOOLEAN interrupt_routine(IN_CONST_PVOID context, IN_ULONG message)
{
	(void)context, (void)message;
	return FALSE;
}

static VOID dpc_routine(IN_CONST_PVOID context)
{
	const struct adapter *a = context;

	a->dxgk.DxgkCbNotifyDpc(a->dxgk.DeviceHandle);
}

static NTSTATUS APIENTRY query_current_fence(IN_CONST_HANDLE handle,
					     INOUT_PDXGKARG_QUERYCURRENTFENCE args)
{
	args->CurrentFence = ((const struct adapter *)handle)->fence;
	return STATUS_SUCCESS;
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

static NTSTATUS APIENTRY reset_from_timeout(IN_CONST_HANDLE handle)
{
	(void)handle;
	return STATUS_SUCCESS;
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
		.DxgkDdiRestartFromTimeout = reset_from_timeout,
		.DxgkDdiCollectDbgInfo = collect_dbg_info,
	};

	return DxgkInitialize(driver, registry_path, &table);
}
