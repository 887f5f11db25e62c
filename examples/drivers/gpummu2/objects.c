/* SPDX-License-Identifier: MIT */
/*
 * Processes, devices, contexts and allocations. Only a context has state: the root of its page
 * tables. The others are named by the adapter's address, which is as good as any value but NULL.
 */
#include "driver.h"

static NTSTATUS G2CreateProcess(CONST HANDLE hAdapter, DXGKARG_CREATEPROCESS *Args)
{
	Args->hKmdProcess = hAdapter;
	return STATUS_SUCCESS;
}

static NTSTATUS G2DestroyProcess(CONST HANDLE hAdapter, CONST HANDLE hKmdProcess)
{
	UNREFERENCED_PARAMETER(hAdapter);
	UNREFERENCED_PARAMETER(hKmdProcess);
	return STATUS_SUCCESS;
}

static NTSTATUS G2CreateDevice(CONST HANDLE hAdapter, DXGKARG_CREATEDEVICE *Args)
{
	Args->hDevice = hAdapter;
	return STATUS_SUCCESS;
}

static NTSTATUS G2DestroyDevice(CONST HANDLE hDevice)
{
	UNREFERENCED_PARAMETER(hDevice);
	return STATUS_SUCCESS;
}

/* The command buffer is the client's memory: the miniport asks for no buffers and no lists. */
static NTSTATUS G2CreateContext(CONST HANDLE hDevice, DXGKARG_CREATECONTEXT *Args)
{
	CONTEXT *Context;

	if (Args->NodeOrdinal || (!Args->Flags.VirtualAddressing && !Args->Flags.SystemContext))
		return STATUS_NOT_SUPPORTED;
	Context = ExAllocatePool2(POOL_FLAG_NON_PAGED, sizeof(*Context), G2_TAG);
	if (!Context)
		return STATUS_NO_MEMORY;
	Context->Adapter = hDevice;
	RtlZeroMemory(&Args->ContextInfo, sizeof(Args->ContextInfo));
	Args->ContextInfo.Caps.NoPatchingRequired = Args->Flags.VirtualAddressing;
	Args->hContext = Context;
	return STATUS_SUCCESS;
}

static NTSTATUS G2DestroyContext(CONST HANDLE hContext)
{
	ExFreePoolWithTag(hContext, G2_TAG);
	return STATUS_SUCCESS;
}

/* The context is not on the GPU meanwhile. */
static VOID G2SetRootPageTable(CONST HANDLE hAdapter, CONST DXGKARG_SETROOTPAGETABLE *Args)
{
	CONST ADAPTER *Adapter = hAdapter;
	CONTEXT *Context = Args->hContext;

	Context->Root = Args->Address.SegmentOffset;
	Context->HasRoot = Args->Address.SegmentId == SEGMENT_VRAM &&
			   Context->Root <= Adapter->VramBytes - PAGE_SIZE;
}

static NTSTATUS Describe(CONST HANDLE hAdapter, DXGK_ALLOCATIONINFO *Info)
{
	CONST G2_ALLOCATION *Wish = Info->pPrivateDriverData;
	UINT Segments = 1 << (SEGMENT_SYSTEM - 1);

	if (Info->PrivateDriverDataSize != sizeof(*Wish) || !Wish->Size ||
	    Wish->Segment > SEGMENT_SYSTEM)
		return STATUS_INVALID_PARAMETER;
	if (!(Wish->Flags & G2_SYSTEM_ONLY))
		Segments |= 1 << (SEGMENT_VRAM - 1);
	Info->Size = (SIZE_T)Wish->Size;
	Info->Alignment = PAGE_SIZE;
	Info->PreferredSegment.SegmentId0 = Wish->Segment ? Wish->Segment : SEGMENT_VRAM;
	if (Wish->Flags & G2_SYSTEM_ONLY)
		Info->PreferredSegment.SegmentId0 = SEGMENT_SYSTEM;
	Info->SupportedWriteSegmentSet = Segments;
	Info->AllocationPriority = D3DDDI_ALLOCATIONPRIORITY_NORMAL;
	Info->FlagsWddm2.CpuVisible = 1;
	Info->hAllocation = hAdapter;
	return STATUS_SUCCESS;
}

static NTSTATUS G2CreateAllocation(CONST HANDLE hAdapter, DXGKARG_CREATEALLOCATION *Args)
{
	NTSTATUS Status = STATUS_SUCCESS;
	UINT i;

	for (i = 0; i < Args->NumAllocations && NT_SUCCESS(Status); i++)
		Status = Describe(hAdapter, &Args->pAllocationInfo[i]);
	return Status;
}

static NTSTATUS G2DestroyAllocation(CONST HANDLE hAdapter, CONST DXGKARG_DESTROYALLOCATION *Args)
{
	UNREFERENCED_PARAMETER(hAdapter);
	UNREFERENCED_PARAMETER(Args);
	return STATUS_SUCCESS;
}

static NTSTATUS G2OpenAllocation(CONST HANDLE hDevice, CONST DXGKARG_OPENALLOCATION *Args)
{
	UINT i;

	for (i = 0; i < Args->NumAllocations; i++)
		Args->pOpenAllocation[i].hDeviceSpecificAllocation = hDevice;
	return STATUS_SUCCESS;
}

static NTSTATUS G2CloseAllocation(CONST HANDLE hDevice, CONST DXGKARG_CLOSEALLOCATION *Args)
{
	UNREFERENCED_PARAMETER(hDevice);
	UNREFERENCED_PARAMETER(Args);
	return STATUS_SUCCESS;
}

static NTSTATUS G2DescribeAllocation(CONST HANDLE hAdapter, DXGKARG_DESCRIBEALLOCATION *Args)
{
	UNREFERENCED_PARAMETER(hAdapter);
	UNREFERENCED_PARAMETER(Args);
	return STATUS_NOT_SUPPORTED; /* there are no primaries */
}

VOID FillObjectEntries(DRIVER_INITIALIZATION_DATA *Init)
{
	Init->DxgkDdiCreateProcess = G2CreateProcess;
	Init->DxgkDdiDestroyProcess = G2DestroyProcess;
	Init->DxgkDdiCreateDevice = G2CreateDevice;
	Init->DxgkDdiDestroyDevice = G2DestroyDevice;
	Init->DxgkDdiCreateContext = G2CreateContext;
	Init->DxgkDdiDestroyContext = G2DestroyContext;
	Init->DxgkDdiSetRootPageTable = G2SetRootPageTable;
	Init->DxgkDdiCreateAllocation = G2CreateAllocation;
	Init->DxgkDdiDestroyAllocation = G2DestroyAllocation;
	Init->DxgkDdiOpenAllocation = G2OpenAllocation;
	Init->DxgkDdiCloseAllocation = G2CloseAllocation;
	Init->DxgkDdiDescribeAllocation = G2DescribeAllocation;
}
