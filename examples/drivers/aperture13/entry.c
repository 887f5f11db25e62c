/* SPDX-License-Identifier: MIT */
/* DriverEntry, start and stop, and the description of the adapter. */
#include "driver.h"

DRIVER_INITIALIZE DriverEntry;

static NTSTATUS A13AddDevice(CONST PDEVICE_OBJECT PhysicalDeviceObject, PVOID *Context)
{
	UNREFERENCED_PARAMETER(PhysicalDeviceObject);
	*Context = ExAllocatePool2(POOL_FLAG_NON_PAGED, sizeof(ADAPTER), A13_TAG);
	return *Context ? STATUS_SUCCESS : STATUS_NO_MEMORY;
}

/* A DWORD of the software key of the device. */
static ULONG ReadValue(PCUNICODE_STRING Path, PWSTR Name, ULONG Default)
{
	ULONG Value = Default;
	RTL_QUERY_REGISTRY_TABLE Query[2] = {{0}};

	Query[0].Flags = RTL_QUERY_REGISTRY_DIRECT | RTL_QUERY_REGISTRY_TYPECHECK;
	Query[0].Name = Name;
	Query[0].EntryContext = &Value;
	Query[0].DefaultType = (REG_DWORD << RTL_QUERY_REGISTRY_TYPECHECK_SHIFT) | REG_DWORD;
	Query[0].DefaultData = &Default;
	Query[0].DefaultLength = sizeof(Default);
	if (!NT_SUCCESS(
		    RtlQueryRegistryValues(RTL_REGISTRY_ABSOLUTE, Path->Buffer, Query, NULL, NULL)))
		return Default;
	return Value;
}

static NTSTATUS A13StartDevice(CONST PVOID Context, PDXGK_START_INFO StartInfo,
			       PDXGKRNL_INTERFACE Dxgk, PULONG Sources, PULONG Children)
{
	ADAPTER *Adapter = Context;
	DXGK_DEVICE_INFO Info = {0};
	ULONG Megabytes;
	NTSTATUS Status;

	Adapter->Dxgk = *Dxgk;
	*Sources = *Children = 0; /* a render-only adapter */
	Status = Dxgk->DxgkCbGetDeviceInformation(Dxgk->DeviceHandle, &Info);
	if (!NT_SUCCESS(Status))
		return Status;
	Megabytes = ReadValue(&Info.DeviceRegistryPath, L"ApertureMegabytes", DEFAULT_MEGABYTES);
	Adapter->GartPages = ((SIZE_T)min(max(Megabytes, 1), 16384) << 20) / PAGE_SIZE;
	Adapter->Gart = ExAllocatePool2(POOL_FLAG_NON_PAGED,
					Adapter->GartPages * sizeof(PFN_NUMBER), A13_TAG);
	if (!Adapter->Gart)
		return STATUS_NO_MEMORY;
	Status = EngineStart(Adapter, StartInfo->RequiredDmaQueueEntry,
			     ReadValue(&Info.DeviceRegistryPath, L"HangAtPacket", 0));
	if (!NT_SUCCESS(Status))
		ExFreePoolWithTag(Adapter->Gart, A13_TAG);
	return Status;
}

static NTSTATUS A13StopDevice(CONST PVOID Context)
{
	ADAPTER *Adapter = Context;

	EngineStop(Adapter);
	ExFreePoolWithTag(Adapter->Gart, A13_TAG);
	return STATUS_SUCCESS;
}

static NTSTATUS A13RemoveDevice(CONST PVOID Context)
{
	ExFreePoolWithTag(Context, A13_TAG);
	return STATUS_SUCCESS;
}

static VOID A13Unload(VOID)
{
}

/* Everything was unmapped before D3. The GART is in memory that keeps its power. */
static NTSTATUS A13SetPowerState(CONST PVOID Context, ULONG DeviceUid, DEVICE_POWER_STATE State,
				 POWER_ACTION Action)
{
	UNREFERENCED_PARAMETER(Context);
	UNREFERENCED_PARAMETER(DeviceUid);
	UNREFERENCED_PARAMETER(State);
	UNREFERENCED_PARAMETER(Action);
	return STATUS_SUCCESS;
}

static NTSTATUS QueryCaps(CONST ADAPTER *Adapter, DXGK_DRIVERCAPS *Caps)
{
	RtlZeroMemory(Caps, sizeof(*Caps));
	Caps->HighestAcceptableAddress.QuadPart = -1;
	Caps->ApertureSegmentCommitLimit = Adapter->GartPages * PAGE_SIZE;
	Caps->SchedulingCaps.MultiEngineAware = 1;
	Caps->SchedulingCaps.PreemptionAware = 1;
	Caps->GpuEngineTopology.NbAsymetricProcessingNodes = 1;
	Caps->WDDMVersion = DXGKDDI_WDDMv1_3;
	Caps->PreemptionCaps.GraphicsPreemptionGranularity =
		D3DKMDT_GRAPHICS_PREEMPTION_DMA_BUFFER_BOUNDARY;
	Caps->PreemptionCaps.ComputePreemptionGranularity =
		D3DKMDT_COMPUTE_PREEMPTION_DMA_BUFFER_BOUNDARY;
	Caps->SupportPerEngineTDR = TRUE;
	return STATUS_SUCCESS;
}

/* Asked twice: for the number of segments, then for their descriptions. */
static NTSTATUS QuerySegments(CONST ADAPTER *Adapter, DXGK_QUERYSEGMENTOUT3 *Out)
{
	DXGK_SEGMENTDESCRIPTOR3 *Segment = Out->pSegmentDescriptor;

	Out->NbSegment = 1;
	if (!Segment)
		return STATUS_SUCCESS;
	RtlZeroMemory(Segment, sizeof(*Segment));
	Segment->Flags.Aperture = 1;
	Segment->Flags.CacheCoherent = 1;
	Segment->BaseAddress.QuadPart = APERTURE_BASE;
	Segment->Size = Segment->CommitLimit = Adapter->GartPages * PAGE_SIZE;
	/* Contiguous system memory: the engine needs a paging buffer to map anything at all. */
	Out->PagingBufferSegmentId = 0;
	Out->PagingBufferSize = 4 * PAGE_SIZE;
	Out->PagingBufferPrivateDataSize = 0;
	return STATUS_SUCCESS;
}

static NTSTATUS A13QueryAdapterInfo(CONST HANDLE hAdapter, CONST DXGKARG_QUERYADAPTERINFO *Query)
{
	switch (Query->Type) {
	case DXGKQAITYPE_DRIVERCAPS:
		if (Query->OutputDataSize < sizeof(DXGK_DRIVERCAPS))
			return STATUS_BUFFER_TOO_SMALL;
		return QueryCaps(hAdapter, Query->pOutputData);
	case DXGKQAITYPE_QUERYSEGMENT3:
		if (Query->OutputDataSize < sizeof(DXGK_QUERYSEGMENTOUT3))
			return STATUS_BUFFER_TOO_SMALL;
		return QuerySegments(hAdapter, Query->pOutputData);
	default:
		return STATUS_NOT_SUPPORTED;
	}
}

NTSTATUS DriverEntry(PDRIVER_OBJECT DriverObject, PUNICODE_STRING RegistryPath)
{
	DRIVER_INITIALIZATION_DATA Init = {0};

	Init.Version = DXGKDDI_INTERFACE_VERSION;
	Init.DxgkDdiAddDevice = A13AddDevice;
	Init.DxgkDdiStartDevice = A13StartDevice;
	Init.DxgkDdiStopDevice = A13StopDevice;
	Init.DxgkDdiRemoveDevice = A13RemoveDevice;
	Init.DxgkDdiUnload = A13Unload;
	Init.DxgkDdiInterruptRoutine = A13InterruptRoutine;
	Init.DxgkDdiDpcRoutine = A13DpcRoutine;
	Init.DxgkDdiSetPowerState = A13SetPowerState;
	Init.DxgkDdiQueryAdapterInfo = A13QueryAdapterInfo;
	Init.DxgkDdiCreateDevice = A13CreateDevice;
	Init.DxgkDdiDestroyDevice = A13DestroyDevice;
	Init.DxgkDdiCreateContext = A13CreateContext;
	Init.DxgkDdiDestroyContext = A13DestroyContext;
	Init.DxgkDdiCreateAllocation = A13CreateAllocation;
	Init.DxgkDdiDestroyAllocation = A13DestroyAllocation;
	Init.DxgkDdiOpenAllocation = A13OpenAllocation;
	Init.DxgkDdiCloseAllocation = A13CloseAllocation;
	Init.DxgkDdiDescribeAllocation = A13DescribeAllocation;
	Init.DxgkDdiBuildPagingBuffer = A13BuildPagingBuffer;
	Init.DxgkDdiRender = A13Render;
	Init.DxgkDdiPatch = A13Patch;
	Init.DxgkDdiPresent = A13Present;
	Init.DxgkDdiSubmitCommand = A13SubmitCommand;
	Init.DxgkDdiPreemptCommand = A13PreemptCommand;
	Init.DxgkDdiQueryCurrentFence = A13QueryCurrentFence;
	Init.DxgkDdiResetFromTimeout = A13ResetFromTimeout;
	Init.DxgkDdiRestartFromTimeout = A13RestartFromTimeout;
	Init.DxgkDdiResetEngine = A13ResetEngine;
	Init.DxgkDdiQueryEngineStatus = A13QueryEngineStatus;
	Init.DxgkDdiQueryDependentEngineGroup = A13QueryDependentEngineGroup;
	Init.DxgkDdiCollectDbgInfo = A13CollectDbgInfo;
	return DxgkInitialize(DriverObject, RegistryPath, &Init);
}
