/* SPDX-License-Identifier: MIT */
/*
 * The miniport of examples/tinykmd.c with one wrong line of mutants.h, which the registry value
 * Mutant selects (test_mutant_drivers.py). Without the value it is the correct miniport.
 */
#define DXGKDDI_INTERFACE_VERSION 0x300E
#include <ntddk.h>
#include <d3dkmddi.h>
#include <dispmprt.h>

#include "mutants.h"

/* The example registers with the function here, which changes its table first. */
static NTSTATUS register_table(PDRIVER_OBJECT driver, PUNICODE_STRING registry_path,
			       PDRIVER_INITIALIZATION_DATA table);
#define DriverEntry    tiny_driver_entry
#define DxgkInitialize register_table
#include "../../examples/tinykmd.c"
#undef DriverEntry
#undef DxgkInitialize

DRIVER_INITIALIZE DriverEntry __attribute__((visibility("default")));

static ULONG mutant;

static bool is(ULONG number)
{
	return mutant == number;
}

static ULONG read_mutant(PUNICODE_STRING path)
{
	struct {
		ULONG title_index, type, length;
		UCHAR data[8];
	} value = {0};
	OBJECT_ATTRIBUTES attributes;
	UNICODE_STRING name;
	HANDLE key;
	ULONG length, number = NOTHING;

	RtlInitUnicodeString(&name, L"Mutant");
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

/* ---- capabilities and segments ---- */

static void change_caps(DXGK_DRIVERCAPS *caps)
{
	caps->SchedulingCaps.PreemptionAware = is(PREEMPTION_ALONE);
	caps->SchedulingCaps.NoDmaPatching = is(NO_PATCHING_ALONE);
	caps->SchedulingCaps.MultiEngineAware =
		is(NO_CONTEXT_ENTRIES) || is(NO_NODE) || is(PAGING_NODE_MISSING);
	caps->GpuEngineTopology.NbAsymetricProcessingNodes = is(NO_NODE) ? 0 : 1;
	caps->MemoryManagementCaps.PagingNode = is(PAGING_NODE_MISSING);
	caps->SupportPerEngineTDR = is(NO_ENGINE_RESET_ENTRY);
	caps->NumberOfSwizzlingRanges = is(NO_SWIZZLING_ENTRY);
}

static void change_flags(DXGK_SEGMENTDESCRIPTOR3 *s)
{
	s->Flags.Agp = is(SEGMENT_IS_AGP);
	s->Flags.LocalBudgetGroup = is(SEGMENT_FLAG_OF_2_0);
	s->Flags.PreservedDuringHibernate = is(HIBERNATE_ALONE);
	s->Flags.UseBanking = is(BANKS_ZERO) || is(BANKS_WITHOUT_TABLE) || is(BANK_OUTSIDE);
}

static void change_segment(DXGK_SEGMENTDESCRIPTOR3 *s)
{
	static SIZE_T bank_end;

	bank_end = s->Size + 4096;
	change_flags(s);
	s->NbOfBanks = is(BANKS_ZERO) ? 0 : 2;
	s->pBankRangeTable = is(BANK_OUTSIDE) ? &bank_end : NULL;
	s->Size -= is(SEGMENT_SIZE_ODD);
	s->CommitLimit = is(COMMIT_LIMIT_LOW) ? s->Size / 2 : s->Size;
	if (is(SEGMENT_WRAPS))
		s->BaseAddress.QuadPart = -4096;
	if (is(SEGMENT_OUTSIDE_BAR))
		s->CpuTranslatedAddress.QuadPart += 4096;
	if (is(SEGMENT_UNALIGNED))
		s->CpuTranslatedAddress.QuadPart += 8;
}

static void change_segments(DXGK_QUERYSEGMENTOUT3 *out)
{
	if (is(NO_SEGMENT))
		out->NbSegment = 0;
	if (is(SEGMENTS_TOO_MANY))
		out->NbSegment = 32;
	if (!out->pSegmentDescriptor)
		return;
	change_segment(out->pSegmentDescriptor);
	if (is(SEGMENT_COUNT_CHANGES))
		out->NbSegment = 2;
	if (is(SEGMENT_ARRAY_CHANGES))
		out->pSegmentDescriptor++;
	if (is(PAGING_SEGMENT_MEMORY))
		out->PagingBufferSegmentId = VRAM;
	if (is(PAGING_SEGMENT_MISSING))
		out->PagingBufferSegmentId = 5;
	if (is(PAGING_BUFFER_SIZE_ZERO))
		out->PagingBufferSize = 0;
}

static NTSTATUS APIENTRY mutant_query(IN_CONST_HANDLE handle,
				      IN_CONST_PDXGKARG_QUERYADAPTERINFO query)
{
	NTSTATUS status = query_adapter_info(handle, query);

	if (query->Type == DXGKQAITYPE_DRIVERCAPS)
		change_caps(query->pOutputData);
	if (query->Type == DXGKQAITYPE_QUERYSEGMENT3)
		change_segments(query->pOutputData);
	return status;
}

/* ---- services, start and stop ---- */

static void notify(struct adapter *a, UINT node, UINT engine)
{
	DXGKARGCB_NOTIFY_INTERRUPT_DATA data = {.InterruptType = DXGK_INTERRUPT_DMA_COMPLETED};

	data.DmaCompleted.SubmissionFenceId = a->fence;
	data.DmaCompleted.NodeOrdinal = node;
	data.DmaCompleted.EngineOrdinal = engine;
	a->dxgk.DxgkCbNotifyInterrupt(a->dxgk.DeviceHandle, &data);
}

static void call_services(struct adapter *a)
{
	static char unmapped;
	PHYSICAL_ADDRESS outside = {.QuadPart = 4096};
	BOOLEAN result;
	PVOID pointer;

	if (is(NOTIFY_AT_PASSIVE))
		notify(a, 0, 0);
	if (is(DPC_AT_PASSIVE))
		a->dxgk.DxgkCbNotifyDpc(a->dxgk.DeviceHandle);
	if (is(HANDLE_IS_ADAPTER))
		a->dxgk.DxgkCbQueueDpc((HANDLE)a);
	if (is(MAP_OUTSIDE_BAR))
		(void)!a->dxgk.DxgkCbMapMemory(a->dxgk.DeviceHandle, outside, 4096, FALSE, FALSE,
					       MmNonCached, &pointer);
	if (is(UNMAP_UNKNOWN))
		(void)!a->dxgk.DxgkCbUnmapMemory(a->dxgk.DeviceHandle, &unmapped);
	if (is(SYNCHRONIZE_MESSAGE))
		(void)!a->dxgk.DxgkCbSynchronizeExecution(a->dxgk.DeviceHandle, interrupt, a, 7,
							  &result);
}

static NTSTATUS mutant_start(IN_CONST_PVOID context, PDXGK_START_INFO info, PDXGKRNL_INTERFACE dxgk,
			     PULONG sources, PULONG children)
{
	NTSTATUS status = start_device(context, info, dxgk, sources, children);

	call_services(context);
	return status;
}

static NTSTATUS mutant_stop(IN_CONST_PVOID context)
{
	NTSTATUS status = stop_device(context);

	return is(STOP_STATUS) ? STATUS_UNSUCCESSFUL : status;
}

static NTSTATUS mutant_remove(IN_CONST_PVOID context)
{
	NTSTATUS status = remove_device(context);

	return is(REMOVE_STATUS) ? STATUS_UNSUCCESSFUL : status;
}

/* ---- devices and allocations ---- */

static NTSTATUS APIENTRY mutant_create_device(IN_CONST_HANDLE handle,
					      INOUT_PDXGKARG_CREATEDEVICE args)
{
	DXGK_DEVICEINFO *before = args->pInfo; /* with Flags in the same bytes */
	NTSTATUS status = create_device(handle, args);

	if (is(NO_DEVICE_INFO))
		args->pInfo = before;
	return is(CREATE_DEVICE_STATUS) ? STATUS_UNSUCCESSFUL : status;
}

static NTSTATUS APIENTRY mutant_destroy_device(IN_CONST_HANDLE device)
{
	NTSTATUS status = destroy_device(device);

	return is(DESTROY_DEVICE_STATUS) ? STATUS_UNSUCCESSFUL : status;
}

static void change_allocation(DXGK_ALLOCATIONINFO *info)
{
	if (is(NO_ALLOCATION_HANDLE))
		info->hAllocation = NULL;
	if (is(ALLOCATION_SIZE_ZERO))
		info->Size = 0;
	if (is(ALIGNMENT_ODD))
		info->Alignment = 4095;
	if (is(PRIORITY_ZERO))
		info->AllocationPriority = 0;
	if (is(READ_SET_EMPTY))
		info->SupportedReadSegmentSet = 0;
	if (is(WRITE_SET_UNKNOWN))
		info->SupportedWriteSegmentSet = VRAM_BIT | VRAM_BIT << 1;
	if (is(EVICTION_SET_MEMORY))
		info->EvictionSegmentSet = VRAM_BIT;
	if (is(PREFERRED_UNKNOWN))
		info->PreferredSegment.SegmentId0 = VRAM + 1;
	if (is(CACHED_ALONE) || is(PERMANENT_ALONE))
		info->Flags.CpuVisible = 0;
	info->Flags.Cached = is(CACHED_ALONE);
	info->Flags.PermanentSysMem = is(PERMANENT_ALONE) || is(PROTECTED_PERMANENT);
	info->Flags.Protected = is(PROTECTED_PERMANENT);
}

static NTSTATUS APIENTRY mutant_create(IN_CONST_HANDLE handle, INOUT_PDXGKARG_CREATEALLOCATION args)
{
	NTSTATUS status = create_allocation(handle, args);

	for (UINT i = 0; i < args->NumAllocations && NT_SUCCESS(status); i++)
		change_allocation(&args->pAllocationInfo[i]);
	return status;
}

static NTSTATUS APIENTRY mutant_destroy(IN_CONST_HANDLE handle,
					IN_CONST_PDXGKARG_DESTROYALLOCATION args)
{
	NTSTATUS status = destroy_allocation(handle, args);

	return is(DESTROY_ALLOCATION_STATUS) ? STATUS_UNSUCCESSFUL : status;
}

static NTSTATUS APIENTRY mutant_open(IN_CONST_HANDLE device, IN_CONST_PDXGKARG_OPENALLOCATION args)
{
	NTSTATUS status = open_allocation(device, args);

	return is(OPEN_STATUS) ? STATUS_UNSUCCESSFUL : status;
}

static NTSTATUS APIENTRY mutant_close(IN_CONST_HANDLE device,
				      IN_CONST_PDXGKARG_CLOSEALLOCATION args)
{
	NTSTATUS status = close_allocation(device, args);

	return is(CLOSE_STATUS) ? STATUS_UNSUCCESSFUL : status;
}

/* ---- commands and paging buffers ---- */

static NTSTATUS APIENTRY mutant_render(IN_CONST_HANDLE context, INOUT_PDXGKARG_RENDER args)
{
	D3DDDI_PATCHLOCATIONLIST *first = args->pPatchLocationListOut;
	char *commands = args->pDmaBuffer, *private_data = args->pDmaBufferPrivateData;
	NTSTATUS status;

	if (is(RENDER_NEVER_FITS))
		return STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER;
	status = render(context, args);
	if (!NT_SUCCESS(status))
		return status;
	if (is(RENDER_BACKWARDS))
		args->pDmaBuffer = commands - 8;
	if (is(RENDER_INERT)) {
		args->pDmaBuffer = commands;
		args->pPatchLocationListOut = first;
	}
	if (is(RENDER_TOO_FAR))
		args->pDmaBuffer = commands + args->DmaSize + 8;
	if (is(RENDER_PRIVATE_FAR))
		args->pDmaBufferPrivateData = private_data + args->DmaBufferPrivateDataSize + 8;
	if (is(PATCH_INDEX_OUTSIDE))
		first->AllocationIndex = args->AllocationListSize;
	if (is(PATCH_OFFSET_OUTSIDE))
		first->PatchOffset = args->DmaSize;
	if (is(SPLIT_AFTER_PATCH))
		first->SplitOffset = first->PatchOffset + 8;
	return is(RENDER_STATUS) ? STATUS_UNSUCCESSFUL : status;
}

static NTSTATUS APIENTRY mutant_patch(IN_CONST_HANDLE handle, IN_CONST_PDXGKARG_PATCH args)
{
	NTSTATUS status = patch(handle, args);

	return is(PATCH_STATUS) ? STATUS_UNSUCCESSFUL : status;
}

static NTSTATUS APIENTRY mutant_paging(IN_CONST_HANDLE handle, IN_PDXGKARG_BUILDPAGINGBUFFER args)
{
	char *commands = args->pDmaBuffer, *private_data = args->pDmaBufferPrivateData;
	NTSTATUS status = build_paging_buffer(handle, args);

	if (is(PAGING_BACKWARDS))
		args->pDmaBuffer = commands - 8;
	if (is(PAGING_INERT))
		args->pDmaBuffer = commands;
	if (is(PAGING_TOO_FAR))
		args->pDmaBuffer = commands + args->DmaSize + 8;
	if (is(PAGING_PRIVATE_FAR))
		args->pDmaBufferPrivateData = private_data + args->DmaBufferPrivateDataSize + 8;
	return is(PAGING_STATUS) ? STATUS_UNSUCCESSFUL : status;
}

/* ---- interrupts ---- */

static BOOLEAN wrong_interrupt(PVOID context)
{
	struct adapter *a = context;

	notify(a, is(NODE_UNKNOWN) ? 3 : 0, is(ENGINE_UNKNOWN) ? 3 : 0);
	return is(NO_DPC) ? FALSE : a->dxgk.DxgkCbQueueDpc(a->dxgk.DeviceHandle);
}

static NTSTATUS APIENTRY mutant_submit(IN_CONST_HANDLE handle, IN_CONST_PDXGKARG_SUBMITCOMMAND args)
{
	struct adapter *a = handle;
	NTSTATUS status = submit_command(handle, args);
	BOOLEAN result;

	if (is(NO_DPC) || is(NODE_UNKNOWN) || is(ENGINE_UNKNOWN))
		(void)!a->dxgk.DxgkCbSynchronizeExecution(a->dxgk.DeviceHandle, wrong_interrupt, a,
							  0, &result);
	if (is(NOTIFY_AT_DISPATCH))
		notify(a, 0, 0);
	return is(SUBMIT_STATUS) ? STATUS_UNSUCCESSFUL : status;
}

/* ---- recovery and power ---- */

static NTSTATUS APIENTRY mutant_fence(IN_CONST_HANDLE handle, INOUT_PDXGKARG_QUERYCURRENTFENCE args)
{
	NTSTATUS status = query_current_fence(handle, args);

	return is(FENCE_STATUS) ? STATUS_UNSUCCESSFUL : status;
}

static NTSTATUS APIENTRY mutant_reset(IN_CONST_HANDLE handle)
{
	NTSTATUS status = reset_from_timeout(handle);

	return is(RESET_STATUS) ? STATUS_UNSUCCESSFUL : status;
}

static NTSTATUS mutant_power(IN_CONST_PVOID context, ULONG uid, DEVICE_POWER_STATE state,
			     POWER_ACTION action)
{
	NTSTATUS status = set_power_state(context, uid, state, action);

	return is(POWER_STATUS) ? STATUS_UNSUCCESSFUL : status;
}

/* ---- the table ---- */

/* A preemptible engine, or one of several, has contexts. */
static NTSTATUS APIENTRY create_context(IN_CONST_HANDLE device, INOUT_PDXGKARG_CREATECONTEXT args)
{
	(void)device, (void)args;
	return STATUS_NOT_SUPPORTED;
}

static NTSTATUS APIENTRY destroy_context(IN_CONST_HANDLE context)
{
	(void)context;
	return STATUS_SUCCESS;
}

static void replace_entries(PDRIVER_INITIALIZATION_DATA table)
{
	table->DxgkDdiStartDevice = mutant_start;
	table->DxgkDdiStopDevice = mutant_stop;
	table->DxgkDdiRemoveDevice = mutant_remove;
	table->DxgkDdiSetPowerState = mutant_power;
	table->DxgkDdiQueryAdapterInfo = mutant_query;
	table->DxgkDdiCreateDevice = mutant_create_device;
	table->DxgkDdiDestroyDevice = mutant_destroy_device;
	table->DxgkDdiCreateAllocation = mutant_create;
	table->DxgkDdiDestroyAllocation = mutant_destroy;
	table->DxgkDdiOpenAllocation = mutant_open;
	table->DxgkDdiCloseAllocation = mutant_close;
	table->DxgkDdiRender = mutant_render;
	table->DxgkDdiPatch = mutant_patch;
	table->DxgkDdiBuildPagingBuffer = mutant_paging;
	table->DxgkDdiSubmitCommand = mutant_submit;
	table->DxgkDdiQueryCurrentFence = mutant_fence;
	table->DxgkDdiResetFromTimeout = mutant_reset;
	if (!is(NO_CONTEXT_ENTRIES)) {
		table->DxgkDdiCreateContext = create_context;
		table->DxgkDdiDestroyContext = destroy_context;
	}
}

static void remove_entries(PDRIVER_INITIALIZATION_DATA table)
{
	if (is(NO_ADD_DEVICE))
		table->DxgkDdiAddDevice = NULL;
	if (is(NO_INTERRUPT_ROUTINE))
		table->DxgkDdiInterruptRoutine = NULL;
	if (is(NO_CREATE_DEVICE))
		table->DxgkDdiCreateDevice = NULL;
	if (is(NO_CLOSE_ALLOCATION))
		table->DxgkDdiCloseAllocation = NULL;
	if (is(NO_BUILD_PAGING_BUFFER))
		table->DxgkDdiBuildPagingBuffer = NULL;
	if (is(NO_SUBMIT_COMMAND))
		table->DxgkDdiSubmitCommand = NULL;
	if (is(NO_CURRENT_FENCE))
		table->DxgkDdiQueryCurrentFence = NULL;
	if (is(NO_RESTART))
		table->DxgkDdiRestartFromTimeout = NULL;
}

static NTSTATUS register_table(PDRIVER_OBJECT driver, PUNICODE_STRING registry_path,
			       PDRIVER_INITIALIZATION_DATA table)
{
	NTSTATUS status;

	if (is(NOT_REGISTERED))
		return STATUS_SUCCESS;
	if (is(VERSION_UNKNOWN))
		table->Version = 0x1234;
	replace_entries(table);
	remove_entries(table);
	status = DxgkInitialize(driver, registry_path, table);
	if (is(REGISTERED_TWICE))
		(void)!DxgkInitialize(driver, registry_path, table);
	return status;
}

NTSTATUS DriverEntry(PDRIVER_OBJECT driver, PUNICODE_STRING registry_path)
{
	mutant = read_mutant(registry_path);
	return tiny_driver_entry(driver, registry_path);
}
