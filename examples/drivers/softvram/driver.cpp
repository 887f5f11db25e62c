/* SPDX-License-Identifier: MIT */
/*
 * DriverEntry, and the functions between the table of C and the class of the adapter.
 *
 * The table is that of WDDM 2.0, the default of the kit that shipped with it, and the capabilities
 * say WDDM 1.3: so a driver for physical addresses is built with a newer kit. Only the sizes of
 * structures follow the table; the queries and the memory model follow the capabilities.
 */
#include "adapter.h"
#include "pool.h"

void *operator new(size_t Bytes) noexcept
{
	return ExAllocatePool2(POOL_FLAG_NON_PAGED, Bytes, PoolTag);
}

void *operator new[](size_t Bytes) noexcept
{
	return operator new(Bytes);
}

void operator delete(void *Memory) noexcept
{
	if (Memory)
		ExFreePoolWithTag(Memory, PoolTag);
}

void operator delete(void *Memory, size_t) noexcept
{
	operator delete(Memory);
}

void operator delete[](void *Memory) noexcept
{
	operator delete(Memory);
}

void operator delete[](void *Memory, size_t) noexcept
{
	operator delete(Memory);
}

static Adapter *From(CONST VOID *Context)
{
	return (Adapter *)Context;
}

static NTSTATUS AddDevice(CONST PDEVICE_OBJECT PhysicalDeviceObject, PVOID *Context)
{
	Adapter *Self = new SoftAdapter(PhysicalDeviceObject);

	*Context = Self;
	return Self ? STATUS_SUCCESS : STATUS_NO_MEMORY;
}

static NTSTATUS StartDevice(CONST PVOID Context, PDXGK_START_INFO StartInfo,
			    PDXGKRNL_INTERFACE Dxgk, PULONG Sources, PULONG Children)
{
	*Sources = *Children = 0;
	return From(Context)->Start(StartInfo, Dxgk);
}

static NTSTATUS StopDevice(CONST PVOID Context)
{
	From(Context)->Stop();
	return STATUS_SUCCESS;
}

static NTSTATUS RemoveDevice(CONST PVOID Context)
{
	delete From(Context);
	return STATUS_SUCCESS;
}

static VOID Unload()
{
}

/* System memory keeps its content in D3. */
static NTSTATUS SetPowerState(CONST PVOID, ULONG, DEVICE_POWER_STATE, POWER_ACTION)
{
	return STATUS_SUCCESS;
}

static BOOLEAN InterruptRoutine(CONST PVOID, ULONG)
{
	return FALSE;
}

static VOID DpcRoutine(CONST PVOID Context)
{
	DXGKRNL_INTERFACE *Dxgk = From(Context)->Dxgk();

	Dxgk->DxgkCbNotifyDpc(Dxgk->DeviceHandle);
}

static NTSTATUS QueryAdapterInfo(CONST HANDLE hAdapter, CONST DXGKARG_QUERYADAPTERINFO *Args)
{
	return From(hAdapter)->QueryAdapterInfo(Args);
}

static NTSTATUS BuildPagingBuffer(CONST HANDLE hAdapter, DXGKARG_BUILDPAGINGBUFFER *Args)
{
	return From(hAdapter)->BuildPagingBuffer(Args);
}

static NTSTATUS SubmitCommand(CONST HANDLE hAdapter, CONST DXGKARG_SUBMITCOMMAND *Args)
{
	return From(hAdapter)->SubmitCommand(Args);
}

static NTSTATUS PreemptCommand(CONST HANDLE hAdapter, CONST DXGKARG_PREEMPTCOMMAND *Args)
{
	return From(hAdapter)->PreemptCommand(Args);
}

static NTSTATUS QueryCurrentFence(CONST HANDLE hAdapter, DXGKARG_QUERYCURRENTFENCE *Args)
{
	Args->CurrentFence = From(hAdapter)->CurrentFence();
	return STATUS_SUCCESS;
}

/* On return the GPU accesses no memory. */
static NTSTATUS ResetFromTimeout(CONST HANDLE hAdapter)
{
	From(hAdapter)->Reset();
	return STATUS_SUCCESS;
}

static NTSTATUS RestartFromTimeout(CONST HANDLE)
{
	return STATUS_SUCCESS;
}

static NTSTATUS CollectDbgInfo(CONST HANDLE hAdapter, CONST DXGKARG_COLLECTDBGINFO *Args)
{
	const UINT Fence = From(hAdapter)->CurrentFence();

	if (!Args->pBuffer || Args->BufferSize < sizeof(Fence))
		return STATUS_BUFFER_TOO_SMALL;
	RtlCopyMemory(Args->pBuffer, &Fence, sizeof(Fence));
	return STATUS_SUCCESS;
}

extern "C" NTSTATUS DriverEntry(PDRIVER_OBJECT DriverObject, PUNICODE_STRING RegistryPath)
{
	DRIVER_INITIALIZATION_DATA Init = {};

	Init.Version = DXGKDDI_INTERFACE_VERSION;
	Init.DxgkDdiAddDevice = AddDevice;
	Init.DxgkDdiStartDevice = StartDevice;
	Init.DxgkDdiStopDevice = StopDevice;
	Init.DxgkDdiRemoveDevice = RemoveDevice;
	Init.DxgkDdiUnload = Unload;
	Init.DxgkDdiInterruptRoutine = InterruptRoutine;
	Init.DxgkDdiDpcRoutine = DpcRoutine;
	Init.DxgkDdiSetPowerState = SetPowerState;
	Init.DxgkDdiQueryAdapterInfo = QueryAdapterInfo;
	Init.DxgkDdiBuildPagingBuffer = BuildPagingBuffer;
	Init.DxgkDdiSubmitCommand = SubmitCommand;
	Init.DxgkDdiPreemptCommand = PreemptCommand;
	Init.DxgkDdiQueryCurrentFence = QueryCurrentFence;
	Init.DxgkDdiResetFromTimeout = ResetFromTimeout;
	Init.DxgkDdiRestartFromTimeout = RestartFromTimeout;
	Init.DxgkDdiCollectDbgInfo = CollectDbgInfo;
	FillRenderEntries(&Init);
	return DxgkInitialize(DriverObject, RegistryPath, &Init);
}
