/* SPDX-License-Identifier: MIT */
/*
 * The miniport of examples/tinykmd.c with the fault that the registry value Fault selects
 * (test_planted.py). Without the value it is the correct miniport.
 */
#define DXGKDDI_INTERFACE_VERSION 0x300E
#include <ntddk.h>
#include <d3dkmddi.h>
#include <dispmprt.h>

/* The example registers with the function here, which changes its table first. */
static NTSTATUS register_table(PDRIVER_OBJECT driver, PUNICODE_STRING registry_path,
			       PDRIVER_INITIALIZATION_DATA table);
#define DriverEntry    tiny_driver_entry
#define DxgkInitialize register_table
#include "../../examples/tinykmd.c"
#undef DriverEntry
#undef DxgkInitialize

DRIVER_INITIALIZE DriverEntry __attribute__((visibility("default")));

enum {
	NOTHING,
	/* in DxgkDdiStartDevice */
	POOL_OVERFLOW, /* writes one byte behind a block */
	POOL_FAR,      /* and far enough to leave the last page of a block */
	POOL_FREED,    /* reads a block that it has freed */
	POOL_TAG_WRONG,
	POOL_TWICE, /* frees a block twice */
	POOL_LEAK,
	SERVICE_LEVEL, /* a service of PASSIVE_LEVEL at DISPATCH_LEVEL */
	PAGED_LEVEL,   /* PAGED_CODE at DISPATCH_LEVEL */
	PAGED_POOL_LEVEL,
	MDL_LEAK,
	MAPPING_LEAK,
	THREAD_LEAK,
	DEEP_STACK,
	LOCK_ORDER,
	/* in other routines of the start */
	NULL_ENTRY,
	HANG_DRIVER_ENTRY,
	HANG_ADD_DEVICE,
	HANG_START_DEVICE,
	HANG_DRIVER_CAPS,
	HANG_SEGMENTS,
	CAPS_OVERFLOW, /* writes behind the answer of DRIVERCAPS */
	SEGMENT_OVERFLOW,
	BUG_CHECK,      /* in DxgkDdiStartDevice */
	FENCE_AT_START, /* DxgkDdiCreateDevice reports a fence that was never submitted */
	/* with a client */
	STATUS_UNDOCUMENTED = 40, /* DxgkDdiCreateAllocation fails with another status */
	FENCE_TWICE,
	FENCE_BACK,
	FENCE_NEVER,
	FENCE_UNKNOWN,
	PREEMPTED_FOR_EVER,
	MDL_FREED,        /* frees the MDL of a transfer */
	PRIVATE_OVERFLOW, /* DxgkDdiRender writes behind its private data */
	PATCH_OVERFLOW,   /* and behind the patch location list */
	ALLOCATION_LEAK,  /* DxgkDdiCreateAllocation forgets a block */
	HANG_CREATE_ALLOCATION,
	HANG_RENDER,
	BUG_CHECK_RENDER,
	MDL_KEPT,     /* DxgkDdiStopDevice reads the MDL of a transfer */
	MDL_BEHIND,   /* DxgkDdiBuildPagingBuffer reads a page frame number behind the last one */
	DMA_OVERFLOW, /* DxgkDdiRender writes behind the DMA buffer */
	DMA_EXACT,    /* and fills the buffer to its end, which is correct */
	PATCH_DMA_OVERFLOW, /* DxgkDdiPatch writes behind the DMA buffer */
	PATCH_PRIVATE_OVERFLOW,
	PAGING_OVERFLOW,         /* DxgkDdiBuildPagingBuffer writes behind the paging buffer */
	PAGING_PRIVATE_OVERFLOW, /* and behind its private data */
	DEVICE_NO_MEMORY,        /* DxgkDdiCreateDevice refuses a device for lack of memory */
	DEVICE_REFUSED,          /* the same with a status that it does not document */
};
#define TAG         0x746E6C50u /* "Plnt" */
#define PREEMPTIONS 70u         /* before the packet is executed: Q-411 counts to 64 */
#define DEEP_BYTES  30000

static ULONG fault;
static PVOID volatile kept; /* what is never freed */
static const MDL *kept_mdl;
static PDXGKDDI_START_DEVICE tiny_start;
static PDXGKDDI_SUBMITCOMMAND tiny_submit;

static ULONG read_fault(PUNICODE_STRING path)
{
	struct {
		ULONG title_index, type, length;
		UCHAR data[8];
	} value = {0};
	OBJECT_ATTRIBUTES attributes;
	UNICODE_STRING name;
	HANDLE key;
	ULONG length, number = NOTHING;

	RtlInitUnicodeString(&name, L"Fault");
	InitializeObjectAttributes(&attributes, path, OBJ_CASE_INSENSITIVE | OBJ_KERNEL_HANDLE,
				   NULL, NULL);
	if (!NT_SUCCESS(ZwOpenKey(&key, KEY_READ, &attributes)))
		return NOTHING;
	if (NT_SUCCESS(ZwQueryValueKey(key, &name, KeyValuePartialInformation, &value,
				       sizeof(value), &length)))
		memcpy(&number, value.data, sizeof(number));
	ZwClose(key);
	return number;
}

static void wait_for_ever(void)
{
	KEVENT never;

	KeInitializeEvent(&never, NotificationEvent, FALSE);
	(void)!KeWaitForSingleObject(&never, Executive, KernelMode, FALSE, NULL);
}

/* ---- pool ---- */

static void overflow_pool(size_t bytes)
{
	volatile char *block = ExAllocatePool2(POOL_FLAG_NON_PAGED, 40, TAG);

	if (!block)
		return;
	for (size_t i = 0; i < bytes; i++)
		block[40 + i] = 1;
	ExFreePoolWithTag((PVOID)(ULONG_PTR)block, TAG);
}

static void read_freed_pool(void)
{
	static volatile char result;
	volatile char *block = ExAllocatePool2(POOL_FLAG_NON_PAGED, 64, TAG);
	ULONG_PTR address = (ULONG_PTR)block; /* the compiler must not see the use after free */

	if (!block)
		return;
	ExFreePoolWithTag((PVOID)address, TAG);
	result = *(volatile char *)address;
	(void)result;
}

static void free_pool(ULONG tag, int times)
{
	PVOID block = ExAllocatePool2(POOL_FLAG_NON_PAGED, 64, TAG);

	for (int i = 0; i < times; i++)
		ExFreePoolWithTag(block, tag);
}

__attribute__((noinline)) static void leak_pool(void)
{
	kept = ExAllocatePool2(POOL_FLAG_NON_PAGED, 96, TAG);
}

/* ---- levels ---- */

static void pageable(void)
{
	PAGED_CODE();
}

static void at_dispatch(void (*routine)(void))
{
	KIRQL before = KfRaiseIrql(DISPATCH_LEVEL);

	routine();
	KeLowerIrql(before);
}

static void call_passive_service(void)
{
	HANDLE key;
	OBJECT_ATTRIBUTES attributes;
	UNICODE_STRING name;

	RtlInitUnicodeString(&name, L"\\Registry\\Machine");
	InitializeObjectAttributes(&attributes, &name, OBJ_KERNEL_HANDLE, NULL, NULL);
	if (NT_SUCCESS(ZwOpenKey(&key, KEY_READ, &attributes)))
		ZwClose(key);
}

static void allocate_paged_pool(void)
{
	PVOID block = ExAllocatePool2(POOL_FLAG_PAGED, 64, TAG);

	if (block)
		ExFreePoolWithTag(block, TAG);
}

/* ---- things left behind ---- */

static void leak_mdl(void)
{
	static char page[4096];

	kept = IoAllocateMdl(page, sizeof(page), FALSE, FALSE, NULL);
}

static KEVENT thread_event;

static VOID thread_routine(PVOID context)
{
	(void)context;
	(void)!KeWaitForSingleObject(&thread_event, Executive, KernelMode, FALSE, NULL);
	PsTerminateSystemThread(STATUS_SUCCESS);
}

static void leak_thread(void)
{
	HANDLE handle;

	KeInitializeEvent(&thread_event, NotificationEvent, FALSE);
	if (NT_SUCCESS(PsCreateSystemThread(&handle, THREAD_ALL_ACCESS, NULL, NULL, NULL,
					    thread_routine, NULL)))
		ZwClose(handle);
}

/* ---- stack and locks ---- */

__attribute__((noinline)) static void use_stack(void)
{
	volatile char bytes[DEEP_BYTES];

	for (size_t i = 0; i < sizeof(bytes); i += 64)
		bytes[i] = 1;
	(void)bytes[0];
}

static void take_both(PKSPIN_LOCK first, PKSPIN_LOCK second)
{
	KIRQL before, inner;

	KeAcquireSpinLock(first, &before);
	KeAcquireSpinLock(second, &inner);
	KeReleaseSpinLock(second, inner);
	KeReleaseSpinLock(first, before);
}

static void take_in_both_orders(void)
{
	KSPIN_LOCK a, b;

	KeInitializeSpinLock(&a);
	KeInitializeSpinLock(&b);
	take_both(&a, &b);
	take_both(&b, &a);
}

static void check_bug(void)
{
	KeBugCheckEx(0xBADC0DE, 1, 2, 3, 4);
}

/* ---- the faults of DxgkDdiStartDevice ---- */

static void plant(void)
{
	switch (fault) {
	case POOL_OVERFLOW:
		overflow_pool(1);
		break;
	case POOL_FAR:
		overflow_pool(16);
		break;
	case POOL_FREED:
		read_freed_pool();
		break;
	case POOL_TAG_WRONG:
		free_pool(TAG + 1, 1);
		break;
	case POOL_TWICE:
		free_pool(TAG, 2);
		break;
	case POOL_LEAK:
		leak_pool();
		break;
	case SERVICE_LEVEL:
		at_dispatch(call_passive_service);
		break;
	case PAGED_LEVEL:
		at_dispatch(pageable);
		break;
	case PAGED_POOL_LEVEL:
		at_dispatch(allocate_paged_pool);
		break;
	case MDL_LEAK:
		leak_mdl();
		break;
	case THREAD_LEAK:
		leak_thread();
		break;
	case DEEP_STACK:
		use_stack();
		break;
	case LOCK_ORDER:
		take_in_both_orders();
		break;
	case BUG_CHECK:
		check_bug();
		break;
	case HANG_START_DEVICE:
		wait_for_ever();
		break;
	default:
		break;
	}
}

static NTSTATUS planted_add(const PDEVICE_OBJECT device, PVOID *context)
{
	if (fault == HANG_ADD_DEVICE)
		wait_for_ever();
	return add_device(device, context);
}

static NTSTATUS planted_start(IN_CONST_PVOID context, PDXGK_START_INFO info,
			      PDXGKRNL_INTERFACE dxgk, PULONG sources, PULONG children)
{
	plant();
	return tiny_start(context, info, dxgk, sources, children);
}

static NTSTATUS planted_stop(IN_CONST_PVOID context)
{
	if (kept_mdl)
		(void)*(volatile const ULONG *)&kept_mdl->ByteCount;
	return fault == MAPPING_LEAK ? STATUS_SUCCESS : stop_device(context);
}

static NTSTATUS APIENTRY planted_query(IN_CONST_HANDLE handle,
				       IN_CONST_PDXGKARG_QUERYADAPTERINFO query)
{
	NTSTATUS status;

	if (fault == HANG_DRIVER_CAPS && query->Type == DXGKQAITYPE_DRIVERCAPS)
		wait_for_ever();
	if (fault == HANG_SEGMENTS && query->Type == DXGKQAITYPE_QUERYSEGMENT3)
		wait_for_ever();
	status = query_adapter_info(handle, query);
	if (fault == PREEMPTED_FOR_EVER && query->Type == DXGKQAITYPE_DRIVERCAPS) {
		DXGK_DRIVERCAPS *caps = query->pOutputData;

		caps->SchedulingCaps.MultiEngineAware = caps->SchedulingCaps.PreemptionAware = 1;
		caps->GpuEngineTopology.NbAsymetricProcessingNodes = 1;
	}
	if ((fault == CAPS_OVERFLOW && query->Type == DXGKQAITYPE_DRIVERCAPS) ||
	    (fault == SEGMENT_OVERFLOW && query->Type == DXGKQAITYPE_QUERYSEGMENT3))
		((char *)query->pOutputData)[query->OutputDataSize] = 1;
	return status;
}

/* ---- faults of calls for a client ---- */

static NTSTATUS APIENTRY planted_create(IN_CONST_HANDLE handle,
					INOUT_PDXGKARG_CREATEALLOCATION args)
{
	if (fault == STATUS_UNDOCUMENTED)
		return STATUS_UNSUCCESSFUL;
	if (fault == HANG_CREATE_ALLOCATION)
		wait_for_ever();
	if (fault == ALLOCATION_LEAK)
		leak_pool();
	return create_allocation(handle, args);
}

/* A preemptible engine has contexts. */
static NTSTATUS APIENTRY create_context(IN_CONST_HANDLE device, INOUT_PDXGKARG_CREATECONTEXT args)
{
	args->hContext = (HANDLE)(ULONG_PTR)device;
	args->ContextInfo.DmaBufferSize = 4096;
	args->ContextInfo.DmaBufferPrivateDataSize = sizeof(struct dma_private);
	args->ContextInfo.AllocationListSize = args->ContextInfo.PatchLocationListSize = 16;
	return STATUS_SUCCESS;
}

static NTSTATUS APIENTRY destroy_context(IN_CONST_HANDLE context)
{
	(void)context;
	return STATUS_SUCCESS;
}

static NTSTATUS APIENTRY planted_render(IN_CONST_HANDLE context, INOUT_PDXGKARG_RENDER args)
{
	char *private_end = (char *)args->pDmaBufferPrivateData + args->DmaBufferPrivateDataSize;
	char *dma_end = (char *)args->pDmaBuffer + args->DmaSize;
	char *patches_end = (char *)(args->pPatchLocationListOut + args->PatchLocationListOutSize);
	NTSTATUS status = render(context, args);

	if (fault == HANG_RENDER)
		wait_for_ever();
	if (fault == BUG_CHECK_RENDER)
		check_bug();
	if (fault == PRIVATE_OVERFLOW)
		*private_end = 1;
	if (fault == PATCH_OVERFLOW)
		*patches_end = 1;
	if (fault == DMA_OVERFLOW)
		memset(dma_end, 1, 3);
	if (fault == DMA_EXACT)
		memset(args->pDmaBuffer, 1, (size_t)(dma_end - (char *)args->pDmaBuffer));
	return status;
}

static void misuse_mdl(const DXGKARG_BUILDPAGINGBUFFER *args)
{
	const MDL *mdl = args->Transfer.Source.SegmentId ? args->Transfer.Destination.pMdl
							 : args->Transfer.Source.pMdl;
	ULONG_PTR pages = (mdl->ByteOffset + mdl->ByteCount + PAGE_SIZE - 1) / PAGE_SIZE;

	if (fault == MDL_KEPT)
		kept_mdl = mdl;
	if (fault == MDL_BEHIND)
		(void)((volatile const PFN_NUMBER *)(mdl + 1))[pages];
}

static NTSTATUS APIENTRY planted_paging(IN_CONST_HANDLE handle, IN_PDXGKARG_BUILDPAGINGBUFFER args)
{
	char *dma_end = (char *)args->pDmaBuffer + args->DmaSize;
	char *private_end = (char *)args->pDmaBufferPrivateData + args->DmaBufferPrivateDataSize;
	NTSTATUS status = build_paging_buffer(handle, args);

	if (args->Operation == DXGK_OPERATION_TRANSFER && args->Transfer.TransferSize &&
	    (!args->Transfer.Source.SegmentId || !args->Transfer.Destination.SegmentId))
		misuse_mdl(args);
	if (fault == PAGING_OVERFLOW)
		*dma_end = 1;
	if (fault == PAGING_PRIVATE_OVERFLOW)
		memset(private_end, 1, 8);
	if (fault == MDL_FREED && args->Operation == DXGK_OPERATION_TRANSFER &&
	    args->Transfer.TransferSize)
		IoFreeMdl(args->Transfer.Source.SegmentId ? args->Transfer.Destination.pMdl
							  : args->Transfer.Source.pMdl);
	return status;
}

static NTSTATUS APIENTRY planted_patch(IN_CONST_HANDLE handle, IN_CONST_PDXGKARG_PATCH args)
{
	if (fault == PATCH_DMA_OVERFLOW)
		((char *)args->pDmaBuffer)[args->DmaBufferSize] = 1;
	if (fault == PATCH_PRIVATE_OVERFLOW)
		((char *)args->pDmaBufferPrivateData)[args->DmaBufferPrivateDataSize] = 1;
	return patch(handle, args);
}

static void report_fence(struct adapter *a, UINT fence)
{
	struct report r = {.adapter = a};
	BOOLEAN result;

	r.data.InterruptType = DXGK_INTERRUPT_DMA_COMPLETED;
	r.data.DmaCompleted.SubmissionFenceId = fence;
	(void)!a->dxgk.DxgkCbSynchronizeExecution(a->dxgk.DeviceHandle, interrupt, &r, 0, &result);
}

static NTSTATUS APIENTRY planted_device(IN_CONST_HANDLE handle, INOUT_PDXGKARG_CREATEDEVICE args)
{
	static UINT devices;

	if (fault == FENCE_AT_START)
		report_fence(handle, 7);
	/* The first device is the system's. */
	if (++devices == 2 && fault == DEVICE_NO_MEMORY)
		return STATUS_NO_MEMORY;
	if (devices == 2 && fault == DEVICE_REFUSED)
		return STATUS_UNSUCCESSFUL;
	return create_device(handle, args);
}

static UINT preemptions;

static NTSTATUS APIENTRY planted_submit(IN_CONST_HANDLE handle,
					IN_CONST_PDXGKARG_SUBMITCOMMAND args)
{
	struct adapter *a = handle;
	NTSTATUS status;

	if (fault == FENCE_NEVER && !args->Flags.Paging)
		return STATUS_SUCCESS;
	if (fault == PREEMPTED_FOR_EVER && !args->Flags.Paging && preemptions < PREEMPTIONS)
		return STATUS_SUCCESS;
	if (fault == FENCE_UNKNOWN)
		report_fence(a, args->SubmissionFenceId + 7);
	status = tiny_submit(handle, args);
	if (fault == FENCE_TWICE)
		report_fence(a, args->SubmissionFenceId);
	if (fault == FENCE_BACK)
		report_fence(a, args->SubmissionFenceId - 1);
	return status;
}

static NTSTATUS APIENTRY planted_preempt(IN_CONST_HANDLE handle,
					 IN_CONST_PDXGKARG_PREEMPTCOMMAND args)
{
	struct adapter *a = handle;
	struct report r = {.adapter = a};
	BOOLEAN result;

	if (fault != PREEMPTED_FOR_EVER)
		return preempt_command(handle, args);
	preemptions++;
	r.data.InterruptType = DXGK_INTERRUPT_DMA_PREEMPTED;
	r.data.DmaPreempted.PreemptionFenceId = args->PreemptionFenceId;
	r.data.DmaPreempted.LastCompletedFenceId = a->fence;
	return a->dxgk.DxgkCbSynchronizeExecution(a->dxgk.DeviceHandle, interrupt, &r, 0, &result);
}

static NTSTATUS register_table(PDRIVER_OBJECT driver, PUNICODE_STRING registry_path,
			       PDRIVER_INITIALIZATION_DATA table)
{
	tiny_start = table->DxgkDdiStartDevice;
	tiny_submit = table->DxgkDdiSubmitCommand;
	table->DxgkDdiAddDevice = planted_add;
	table->DxgkDdiStartDevice = planted_start;
	table->DxgkDdiStopDevice = planted_stop;
	table->DxgkDdiQueryAdapterInfo = planted_query;
	table->DxgkDdiCreateDevice = planted_device;
	table->DxgkDdiCreateAllocation = planted_create;
	table->DxgkDdiRender = planted_render;
	table->DxgkDdiPatch = planted_patch;
	table->DxgkDdiBuildPagingBuffer = planted_paging;
	table->DxgkDdiSubmitCommand = planted_submit;
	table->DxgkDdiPreemptCommand = planted_preempt;
	if (fault == PREEMPTED_FOR_EVER) {
		table->DxgkDdiCreateContext = create_context;
		table->DxgkDdiDestroyContext = destroy_context;
	}
	if (fault == NULL_ENTRY)
		table->DxgkDdiPatch = NULL;
	return DxgkInitialize(driver, registry_path, table);
}

NTSTATUS DriverEntry(PDRIVER_OBJECT driver, PUNICODE_STRING registry_path)
{
	fault = read_fault(registry_path);
	if (fault == HANG_DRIVER_ENTRY)
		wait_for_ever();
	return tiny_driver_entry(driver, registry_path);
}
