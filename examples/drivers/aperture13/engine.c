/* SPDX-License-Identifier: MIT */
/*
 * The engine: a ring of packets and a system thread that executes them in order. It reports by the
 * documented way of a device without an interrupt line: DxgkCbSynchronizeExecution runs the report
 * at device IRQL, DxgkCbNotifyInterrupt records it, and a DPC makes it known.
 */
#include "driver.h"

typedef struct _REPORT {
	ADAPTER *Adapter;
	DXGKARGCB_NOTIFY_INTERRUPT_DATA Data;
} REPORT;

static BOOLEAN ReportAtDeviceIrql(PVOID Context)
{
	REPORT *Report = Context;
	ADAPTER *Adapter = Report->Adapter;

	/*
	 * A packet that faulted is over, too. Both fences are the first member of their structures.
	 */
	if (Report->Data.InterruptType != DXGK_INTERRUPT_DMA_PREEMPTED)
		InterlockedExchange(&Adapter->Engine.CompletedFence,
				    (LONG)Report->Data.DmaCompleted.SubmissionFenceId);
	Adapter->Dxgk.DxgkCbNotifyInterrupt(Adapter->Dxgk.DeviceHandle, &Report->Data);
	return Adapter->Dxgk.DxgkCbQueueDpc(Adapter->Dxgk.DeviceHandle);
}

static VOID Raise(REPORT *Report)
{
	DXGKRNL_INTERFACE *Dxgk = &Report->Adapter->Dxgk;
	BOOLEAN Result;

	(VOID) Dxgk->DxgkCbSynchronizeExecution(Dxgk->DeviceHandle, ReportAtDeviceIrql, Report, 0,
						&Result);
}

static VOID RaisePreempted(ADAPTER *Adapter, UINT Fence)
{
	REPORT Report = {.Adapter = Adapter};

	Report.Data.InterruptType = DXGK_INTERRUPT_DMA_PREEMPTED;
	Report.Data.DmaPreempted.PreemptionFenceId = Fence;
	Report.Data.DmaPreempted.LastCompletedFenceId = (UINT)Adapter->Engine.CompletedFence;
	Raise(&Report);
}

/* A packet that was aborted is not reported: the reset says which one it was. */
static VOID RaiseEnd(ADAPTER *Adapter, UINT Fence, NTSTATUS Status)
{
	REPORT Report = {.Adapter = Adapter};

	if (Status == STATUS_CANCELLED)
		return;
	if (NT_SUCCESS(Status)) {
		Report.Data.InterruptType = DXGK_INTERRUPT_DMA_COMPLETED;
		Report.Data.DmaCompleted.SubmissionFenceId = Fence;
	} else {
		Report.Data.InterruptType = DXGK_INTERRUPT_DMA_FAULTED;
		Report.Data.DmaFaulted.FaultedFenceId = Fence;
		Report.Data.DmaFaulted.Status = Status;
	}
	Raise(&Report);
}

/* ---- the thread ---- */

static BOOLEAN TakePacket(ENGINE *Engine, PACKET *Packet)
{
	BOOLEAN Taken;
	KIRQL Irql;

	KeAcquireSpinLock(&Engine->Lock, &Irql);
	Taken = Engine->Head != Engine->Tail;
	if (Taken) {
		*Packet = Engine->Packets[Engine->Head++ % Engine->Capacity];
		Engine->RunningFence = Packet->Fence;
		Engine->IsRunning = TRUE;
		KeClearEvent(&Engine->Idle);
	}
	KeReleaseSpinLock(&Engine->Lock, Irql);
	return Taken;
}

/* After the report of the packet, a preemption request that came meanwhile is answered. */
static VOID FinishPacket(ADAPTER *Adapter)
{
	ENGINE *Engine = &Adapter->Engine;
	BOOLEAN Answer;
	UINT Fence;
	KIRQL Irql;

	KeAcquireSpinLock(&Engine->Lock, &Irql);
	Engine->IsRunning = FALSE;
	Answer = Engine->IsPreempting;
	Fence = Engine->PreemptionFence;
	Engine->IsPreempting = FALSE;
	KeReleaseSpinLock(&Engine->Lock, Irql);
	if (Answer)
		RaisePreempted(Adapter, Fence);
	KeSetEvent(&Engine->Idle, IO_NO_INCREMENT, FALSE);
}

static VOID EngineThread(PVOID Context)
{
	ADAPTER *Adapter = Context;
	ENGINE *Engine = &Adapter->Engine;
	PACKET Packet;

	while (!Engine->MustStop) {
		KeWaitForSingleObject(&Engine->Work, Executive, KernelMode, FALSE, NULL);
		while (TakePacket(Engine, &Packet)) {
			RaiseEnd(Adapter, Packet.Fence, Execute(Adapter, &Packet));
			FinishPacket(Adapter);
		}
	}
	PsTerminateSystemThread(STATUS_SUCCESS);
}

NTSTATUS EngineStart(ADAPTER *Adapter, ULONG Capacity, ULONG HangAtPacket)
{
	ENGINE *Engine = &Adapter->Engine;
	HANDLE Thread;
	NTSTATUS Status;

	RtlZeroMemory(Engine, sizeof(*Engine));
	KeInitializeSpinLock(&Engine->Lock);
	KeInitializeEvent(&Engine->Work, SynchronizationEvent, FALSE);
	KeInitializeEvent(&Engine->Idle, NotificationEvent, TRUE);
	KeInitializeEvent(&Engine->Abort, NotificationEvent, FALSE);
	Engine->HangAtPacket = HangAtPacket;
	Engine->Capacity = Capacity;
	Engine->Packets = ExAllocatePool2(POOL_FLAG_NON_PAGED, Capacity * sizeof(PACKET), A13_TAG);
	if (!Engine->Packets)
		return STATUS_NO_MEMORY;
	Status = PsCreateSystemThread(&Thread, THREAD_ALL_ACCESS, NULL, NULL, NULL, EngineThread,
				      Adapter);
	if (!NT_SUCCESS(Status)) {
		ExFreePoolWithTag(Engine->Packets, A13_TAG);
		return Status;
	}
	Status = ObReferenceObjectByHandle(Thread, THREAD_ALL_ACCESS, *PsThreadType, KernelMode,
					   (PVOID *)&Engine->Thread, NULL);
	ZwClose(Thread);
	return Status;
}

VOID EngineStop(ADAPTER *Adapter)
{
	ENGINE *Engine = &Adapter->Engine;

	EngineReset(Adapter);
	Engine->MustStop = TRUE;
	KeSetEvent(&Engine->Work, IO_NO_INCREMENT, FALSE);
	KeWaitForSingleObject(Engine->Thread, Executive, KernelMode, FALSE, NULL);
	ObDereferenceObject(Engine->Thread);
	ExFreePoolWithTag(Engine->Packets, A13_TAG);
}

/* ---- submission, at DISPATCH_LEVEL ---- */

NTSTATUS A13SubmitCommand(CONST HANDLE hAdapter, CONST DXGKARG_SUBMITCOMMAND *Args)
{
	ENGINE *Engine = &((ADAPTER *)hAdapter)->Engine;
	PACKET Packet = {0};
	NTSTATUS Status = STATUS_SUCCESS;
	KIRQL Irql;

	Packet.Fence = Args->SubmissionFenceId;
	Packet.IsAperture = Args->DmaBufferSegmentId == APERTURE_SEGMENT;
	Packet.Address =
		Args->DmaBufferPhysicalAddress.QuadPart + Args->DmaBufferSubmissionStartOffset;
	if (!Args->Flags.NullRendering)
		Packet.Length =
			Args->DmaBufferSubmissionEndOffset - Args->DmaBufferSubmissionStartOffset;
	KeAcquireSpinLock(&Engine->Lock, &Irql);
	if (Engine->Tail - Engine->Head < Engine->Capacity) {
		Engine->Packets[Engine->Tail++ % Engine->Capacity] = Packet;
		Engine->SubmittedFence = Packet.Fence;
	} else {
		Status = STATUS_INSUFFICIENT_RESOURCES; /* more than RequiredDmaQueueEntry */
	}
	KeReleaseSpinLock(&Engine->Lock, Irql);
	KeSetEvent(&Engine->Work, IO_NO_INCREMENT, FALSE);
	return Status;
}

/* The packets that wait are given back; the running one cannot be interrupted. */
NTSTATUS A13PreemptCommand(CONST HANDLE hAdapter, CONST DXGKARG_PREEMPTCOMMAND *Args)
{
	ADAPTER *Adapter = hAdapter;
	ENGINE *Engine = &Adapter->Engine;
	BOOLEAN IsIdle;
	KIRQL Irql;

	KeAcquireSpinLock(&Engine->Lock, &Irql);
	Engine->Head = Engine->Tail;
	IsIdle = !Engine->IsRunning;
	if (!IsIdle) {
		Engine->IsPreempting = TRUE;
		Engine->PreemptionFence = Args->PreemptionFenceId;
	}
	KeReleaseSpinLock(&Engine->Lock, Irql);
	if (IsIdle)
		RaisePreempted(Adapter, Args->PreemptionFenceId);
	return STATUS_SUCCESS;
}

NTSTATUS A13QueryCurrentFence(CONST HANDLE hAdapter, DXGKARG_QUERYCURRENTFENCE *Args)
{
	Args->CurrentFence = (UINT)((ADAPTER *)hAdapter)->Engine.CompletedFence;
	return STATUS_SUCCESS;
}

/* No packet is running and none waits when it returns. Returns the fence of the aborted one. */
UINT EngineReset(ADAPTER *Adapter)
{
	ENGINE *Engine = &Adapter->Engine;
	KIRQL Irql;

	KeAcquireSpinLock(&Engine->Lock, &Irql);
	Engine->Head = Engine->Tail;
	Engine->IsPreempting = FALSE;
	KeSetEvent(&Engine->Abort, IO_NO_INCREMENT, FALSE);
	if (Engine->IsRunning)
		InterlockedExchange(&Engine->CompletedFence, (LONG)Engine->RunningFence);
	KeReleaseSpinLock(&Engine->Lock, Irql);
	KeWaitForSingleObject(&Engine->Idle, Executive, KernelMode, FALSE, NULL);
	KeClearEvent(&Engine->Abort);
	return (UINT)Engine->CompletedFence;
}

/* There is no interrupt line. */
BOOLEAN A13InterruptRoutine(CONST PVOID Context, ULONG MessageNumber)
{
	UNREFERENCED_PARAMETER(Context);
	UNREFERENCED_PARAMETER(MessageNumber);
	return FALSE;
}

VOID A13DpcRoutine(CONST PVOID Context)
{
	CONST ADAPTER *Adapter = Context;

	Adapter->Dxgk.DxgkCbNotifyDpc(Adapter->Dxgk.DeviceHandle);
}
