/* SPDX-License-Identifier: MIT */
/* DriverEntry, start and stop, and the description of the adapter. */
#include "driver.h"

DRIVER_INITIALIZE DriverEntry;

static NTSTATUS G2AddDevice(CONST PDEVICE_OBJECT PhysicalDeviceObject, PVOID *Context)
{
	UNREFERENCED_PARAMETER(PhysicalDeviceObject);
	*Context = ExAllocatePool2(POOL_FLAG_NON_PAGED, sizeof(ADAPTER), G2_TAG);
	return *Context ? STATUS_SUCCESS : STATUS_NO_MEMORY;
}

/* The first memory resource is video memory. */
static NTSTATUS MapVram(ADAPTER *Adapter, CONST CM_PARTIAL_RESOURCE_LIST *Resources)
{
	ULONG i;

	for (i = 0; i < Resources->Count; i++) {
		CONST CM_PARTIAL_RESOURCE_DESCRIPTOR *Bar = &Resources->PartialDescriptors[i];

		if (Bar->Type != CmResourceTypeMemory)
			continue;
		Adapter->VramAddress = Bar->u.Memory.Start;
		Adapter->VramBytes = Bar->u.Memory.Length;
		Adapter->Vram =
			MmMapIoSpace(Bar->u.Memory.Start, Bar->u.Memory.Length, MmWriteCombined);
		return Adapter->Vram ? STATUS_SUCCESS : STATUS_INSUFFICIENT_RESOURCES;
	}
	return STATUS_DEVICE_CONFIGURATION_ERROR;
}

static NTSTATUS G2StartDevice(CONST PVOID Context, PDXGK_START_INFO StartInfo,
			      PDXGKRNL_INTERFACE Dxgk, PULONG Sources, PULONG Children)
{
	ADAPTER *Adapter = Context;
	DXGK_DEVICE_INFO Info = {0};
	NTSTATUS Status;

	UNREFERENCED_PARAMETER(StartInfo);
	Adapter->Dxgk = *Dxgk;
	*Sources = *Children = 0;
	Status = Dxgk->DxgkCbGetDeviceInformation(Dxgk->DeviceHandle, &Info);
	if (!NT_SUCCESS(Status))
		return Status;
	return MapVram(Adapter, &Info.TranslatedResourceList->List[0].PartialResourceList);
}

static NTSTATUS G2StopDevice(CONST PVOID Context)
{
	ADAPTER *Adapter = Context;

	MmUnmapIoSpace(Adapter->Vram, Adapter->VramBytes);
	return STATUS_SUCCESS;
}

static NTSTATUS G2RemoveDevice(CONST PVOID Context)
{
	ExFreePoolWithTag(Context, G2_TAG);
	return STATUS_SUCCESS;
}

static VOID G2Unload(VOID)
{
}

static NTSTATUS G2SetPowerState(CONST PVOID Context, ULONG DeviceUid, DEVICE_POWER_STATE State,
				POWER_ACTION Action)
{
	UNREFERENCED_PARAMETER(Context);
	UNREFERENCED_PARAMETER(DeviceUid);
	UNREFERENCED_PARAMETER(State);
	UNREFERENCED_PARAMETER(Action);
	return STATUS_SUCCESS;
}

/* ---- queries ---- */

static VOID QueryCaps(DXGK_DRIVERCAPS *Caps)
{
	Caps->HighestAcceptableAddress.QuadPart = -1;
	Caps->SchedulingCaps.MultiEngineAware = 1;
	Caps->MemoryManagementCaps.VirtualAddressingSupported = 1;
	Caps->MemoryManagementCaps.GpuMmuSupported = 1;
	Caps->GpuEngineTopology.NbAsymetricProcessingNodes = 1;
	Caps->WDDMVersion = DXGKDDI_WDDMv2_6;
	Caps->MiscCaps.ComputeOnly = 1; /* no Present, no QueryCurrentFence */
}

/* NbSegment is 0 in the first of two calls, and the caller says how far apart descriptors are. */
static NTSTATUS QuerySegments(CONST ADAPTER *Adapter, DXGK_QUERYSEGMENTOUT4 *Out)
{
	DXGK_SEGMENTDESCRIPTOR4 *Vram, *System;

	Out->NbSegment = 2;
	if (!Out->pSegmentDescriptor)
		return STATUS_SUCCESS;
	if (Out->SegmentDescriptorStride < sizeof(*Vram))
		return STATUS_BUFFER_TOO_SMALL;
	Vram = (PVOID)Out->pSegmentDescriptor;
	System = (PVOID)(Out->pSegmentDescriptor + Out->SegmentDescriptorStride);
	RtlZeroMemory(Vram, sizeof(*Vram));
	Vram->Flags.CpuVisible = 1;
	Vram->Flags.LocalBudgetGroup = 1;
	Vram->CpuTranslatedAddress = Adapter->VramAddress;
	Vram->Size = Vram->CommitLimit = Adapter->VramBytes;
	/* System memory. The GPU reaches it by page tables, so nothing is mapped there. */
	RtlZeroMemory(System, sizeof(*System));
	System->Flags.Aperture = 1;
	System->Flags.CacheCoherent = 1;
	System->Flags.NonLocalBudgetGroup = 1;
	System->BaseAddress.QuadPart = (LONGLONG)Adapter->VramBytes;
	System->Size = System->CommitLimit = (SIZE_T)1 << 30;
	Out->PagingBufferSegmentId = 0;
	Out->PagingBufferSize = 4 * PAGE_SIZE;
	Out->PagingBufferPrivateDataSize = 256 * sizeof(DMA_PRIVATE);
	return STATUS_SUCCESS;
}

static VOID QueryMmu(DXGK_GPUMMUCAPS *Caps)
{
	Caps->ReadOnlyMemorySupported = 1;
	Caps->CacheCoherentMemorySupported = 1;
	Caps->InvalidTlbEntriesNotCached = 1;
	Caps->PageTableUpdateMode = DXGK_PAGETABLEUPDATE_GPU_PHYSICAL;
	Caps->VirtualAddressBitCount = PAGE_SHIFT + TABLE_LEVELS * TABLE_BITS;
	Caps->LeafPageTableSizeFor64KPagesInBytes = PAGE_SIZE;
	Caps->PageTableLevelCount = TABLE_LEVELS;
}

/* All levels are the same. */
static VOID QueryLevel(DXGK_PAGE_TABLE_LEVEL_DESC *Level)
{
	Level->PageTableIndexBitCount = TABLE_BITS;
	Level->PageTableSegmentId = SEGMENT_VRAM;
	Level->PagingProcessPageTableSegmentId = SEGMENT_VRAM;
	Level->PageTableSizeInBytes = TABLE_ENTRIES * sizeof(ULONGLONG);
	Level->PageTableAlignmentInBytes = PAGE_SIZE;
}

static VOID QueryPhysicalAdapter(DXGK_PHYSICALADAPTERCAPS *Caps)
{
	Caps->NumExecutionNodes = 1;
	Caps->PagingNodeIndex = 0;
	Caps->Flags.GpuMmu = 1;
}

static NTSTATUS G2QueryAdapterInfo(CONST HANDLE hAdapter, CONST DXGKARG_QUERYADAPTERINFO *Query)
{
	if (Query->Type == DXGKQAITYPE_QUERYSEGMENT4)
		return QuerySegments(hAdapter, Query->pOutputData);
	/* The port gives the size of each of these structures in the version of the table. */
	if (Query->Type != DXGKQAITYPE_PHYSICALADAPTERCAPS)
		RtlZeroMemory(Query->pOutputData, Query->OutputDataSize);
	switch (Query->Type) {
	case DXGKQAITYPE_DRIVERCAPS:
		QueryCaps(Query->pOutputData);
		return STATUS_SUCCESS;
	case DXGKQAITYPE_GPUMMUCAPS:
		QueryMmu(Query->pOutputData);
		return STATUS_SUCCESS;
	case DXGKQAITYPE_PAGETABLELEVELDESC:
		QueryLevel(Query->pOutputData);
		return STATUS_SUCCESS;
	case DXGKQAITYPE_PHYSICALADAPTERCAPS:
		QueryPhysicalAdapter(Query->pOutputData);
		return STATUS_SUCCESS;
	default:
		return STATUS_NOT_SUPPORTED;
	}
}

NTSTATUS DriverEntry(PDRIVER_OBJECT DriverObject, PUNICODE_STRING RegistryPath)
{
	DRIVER_INITIALIZATION_DATA Init = {0};

	Init.Version = DXGKDDI_INTERFACE_VERSION;
	Init.DxgkDdiAddDevice = G2AddDevice;
	Init.DxgkDdiStartDevice = G2StartDevice;
	Init.DxgkDdiStopDevice = G2StopDevice;
	Init.DxgkDdiRemoveDevice = G2RemoveDevice;
	Init.DxgkDdiUnload = G2Unload;
	Init.DxgkDdiSetPowerState = G2SetPowerState;
	Init.DxgkDdiQueryAdapterInfo = G2QueryAdapterInfo;
	Init.DxgkDdiBuildPagingBuffer = G2BuildPagingBuffer;
	FillObjectEntries(&Init);
	FillEngineEntries(&Init);
	return DxgkInitialize(DriverObject, RegistryPath, &Init);
}
