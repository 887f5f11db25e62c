/* SPDX-License-Identifier: MIT */
/*
 * The spellings of a WDM display miniport, compiled as such source is: version first, includes inside
 * extern "C", entry points declared by their function types, annotations, services copied by value.
 * Only compiled: what it shows is that a driver's text needs no change.
 */
#define DXGKDDI_INTERFACE_VERSION 0x5023
#define DXGKDDI_INTERFACE_VERSION_WDDM2_0 0x5023

extern "C" {
#include <ntddk.h>
#include <dispmprt.h>
#include <d3dkmthk.h>
}

static_assert(sizeof(LONG) == 4 && sizeof(BOOL) == 4, "Windows widths");

struct Adapter {
	PDEVICE_OBJECT physical;
	DXGKRNL_INTERFACE services;
	DXGK_START_INFO start;
	DXGK_DEVICE_INFO device;
	ULONG fence;
};

extern "C" {
DXGKDDI_ADD_DEVICE TestAddDevice;
DXGKDDI_START_DEVICE TestStartDevice;
DXGKDDI_INTERRUPT_ROUTINE TestInterruptRoutine;
DXGKDDI_DPC_ROUTINE TestDpcRoutine;
DXGKDDI_QUERYADAPTERINFO TestQueryAdapterInfo;
DXGKDDI_CREATEALLOCATION TestCreateAllocation;
DXGKDDI_BUILDPAGINGBUFFER TestBuildPagingBuffer;
DXGKDDI_SUBMITCOMMAND TestSubmitCommand;
DXGKDDI_UNLOAD TestUnload;
}

_Use_decl_annotations_ NTSTATUS TestAddDevice(const PDEVICE_OBJECT PhysicalDeviceObject,
					      PVOID *MiniportDeviceContext)
{
	static Adapter adapter;

	adapter.physical = PhysicalDeviceObject;
	*MiniportDeviceContext = &adapter;
	return STATUS_SUCCESS;
}

NTSTATUS TestStartDevice(IN_CONST_PVOID MiniportDeviceContext, PDXGK_START_INFO DxgkStartInfo,
			 PDXGKRNL_INTERFACE DxgkInterface, PULONG NumberOfVideoPresentSources,
			 PULONG NumberOfChildren)
{
	Adapter *adapter = static_cast<Adapter *>(MiniportDeviceContext);

	adapter->services = *DxgkInterface;
	adapter->start = *DxgkStartInfo;
	adapter->start.AdapterLuid.LowPart = 0;
	*NumberOfVideoPresentSources = 0;
	*NumberOfChildren = 0;
	return adapter->services.DxgkCbGetDeviceInformation(adapter->services.DeviceHandle,
							    &adapter->device);
}

BOOLEAN TestInterruptRoutine(IN_CONST_PVOID MiniportDeviceContext, IN_ULONG MessageNumber)
{
	Adapter *adapter = static_cast<Adapter *>(MiniportDeviceContext);
	DXGKARGCB_NOTIFY_INTERRUPT_DATA notify = {};

	(void)MessageNumber;
	notify.InterruptType = DXGK_INTERRUPT_DMA_COMPLETED;
	notify.DmaCompleted.SubmissionFenceId = adapter->fence;
	adapter->services.DxgkCbNotifyInterrupt(adapter->services.DeviceHandle, &notify);
	adapter->services.DxgkCbQueueDpc(adapter->services.DeviceHandle);
	return TRUE;
}

VOID TestDpcRoutine(IN_CONST_PVOID MiniportDeviceContext)
{
	Adapter *adapter = static_cast<Adapter *>(MiniportDeviceContext);

	adapter->services.DxgkCbNotifyDpc(adapter->services.DeviceHandle);
}

NTSTATUS APIENTRY TestQueryAdapterInfo(IN_CONST_HANDLE hAdapter,
				       IN_CONST_PDXGKARG_QUERYADAPTERINFO pQueryAdapterInfo)
{
	UNREFERENCED_PARAMETER(hAdapter);
	if (pQueryAdapterInfo->Type != DXGKQAITYPE_DRIVERCAPS)
		return STATUS_NOT_SUPPORTED;
	if (pQueryAdapterInfo->OutputDataSize < sizeof(DXGK_DRIVERCAPS))
		return STATUS_BUFFER_TOO_SMALL;
	DXGK_DRIVERCAPS *caps = static_cast<DXGK_DRIVERCAPS *>(pQueryAdapterInfo->pOutputData);
	caps->HighestAcceptableAddress.QuadPart = -1;
	caps->SchedulingCaps.MultiEngineAware = 1;
	caps->GpuEngineTopology.NbAsymetricProcessingNodes = 1;
	caps->WDDMVersion = DXGKDDI_WDDMv2;
	return STATUS_SUCCESS;
}

NTSTATUS APIENTRY TestCreateAllocation(IN_CONST_HANDLE hAdapter,
				       INOUT_PDXGKARG_CREATEALLOCATION pCreateAllocation)
{
	UNREFERENCED_PARAMETER(hAdapter);
	for (UINT i = 0; i < pCreateAllocation->NumAllocations; i++) {
		DXGK_ALLOCATIONINFO &info = pCreateAllocation->pAllocationInfo[i];
		info.Size = 4096;
		info.PreferredSegment.SegmentId0 = 1;
		info.Flags.CpuVisible = 1;
		info.FlagsWddm2.AccessedPhysically = 1;
	}
	return STATUS_SUCCESS;
}

NTSTATUS APIENTRY TestBuildPagingBuffer(IN_CONST_HANDLE hAdapter,
					IN_PDXGKARG_BUILDPAGINGBUFFER pBuildPagingBuffer)
{
	UNREFERENCED_PARAMETER(hAdapter);
	switch (pBuildPagingBuffer->Operation) {
	case DXGK_OPERATION_MAP_APERTURE_SEGMENT:
		return pBuildPagingBuffer->MapApertureSegment.pMdl ? STATUS_SUCCESS :
								     STATUS_INVALID_PARAMETER;
	case DXGK_OPERATION_TRANSFER:
		return pBuildPagingBuffer->Transfer.Source.SegmentId == 0 ?
			       STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER :
			       STATUS_SUCCESS;
	default:
		return STATUS_NOT_SUPPORTED;
	}
}

NTSTATUS APIENTRY TestSubmitCommand(IN_CONST_HANDLE hAdapter,
				    IN_CONST_PDXGKARG_SUBMITCOMMAND pSubmitCommand)
{
	static_cast<Adapter *>(hAdapter)->fence = pSubmitCommand->SubmissionFenceId;
	return pSubmitCommand->Flags.Paging ? STATUS_SUCCESS : STATUS_DEVICE_NOT_READY;
}

VOID TestUnload(VOID)
{
}

extern "C" NTSTATUS TestRegister(PDRIVER_OBJECT DriverObject, PUNICODE_STRING RegistryPath)
{
	DRIVER_INITIALIZATION_DATA table = {};

	table.Version = DXGKDDI_INTERFACE_VERSION;
	table.DxgkDdiAddDevice = TestAddDevice;
	table.DxgkDdiStartDevice = TestStartDevice;
	table.DxgkDdiInterruptRoutine = TestInterruptRoutine;
	table.DxgkDdiDpcRoutine = TestDpcRoutine;
	table.DxgkDdiQueryAdapterInfo = TestQueryAdapterInfo;
	table.DxgkDdiCreateAllocation = TestCreateAllocation;
	table.DxgkDdiBuildPagingBuffer = TestBuildPagingBuffer;
	table.DxgkDdiSubmitCommand = TestSubmitCommand;
	table.DxgkDdiUnload = TestUnload;
	return DxgkInitialize(DriverObject, RegistryPath, &table);
}
