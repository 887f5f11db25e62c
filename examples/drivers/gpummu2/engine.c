/* SPDX-License-Identifier: MIT */
/*
 * The engine. It executes a packet within its submission, which keeps the driver small: at
 * DISPATCH_LEVEL a driver of a real GPU only rings a doorbell. So a packet is over when the next
 * one comes, a preemption request is answered at once, and nothing can hang.
 */
#include "driver.h"

static NTSTATUS Fill(CONST CONTEXT *Context, CONST G2_COMMAND *Command, FAULT *Fault)
{
	ULONGLONG Done, Bytes, i;

	for (Done = 0; Done < Command->Length; Done += Bytes) {
		PUCHAR To;

		Bytes = Command->Length - Done;
		To = Translate(Context, Command->To + Done, &Bytes, TRUE, Fault);
		if (!To)
			return STATUS_ACCESS_VIOLATION;
		for (i = 0; i < Bytes; i++)
			To[i] = (UCHAR)(Command->Pattern >> ((Done + i) % 4 * 8));
	}
	return STATUS_SUCCESS;
}

static NTSTATUS Copy(CONST CONTEXT *Context, CONST G2_COMMAND *Command, FAULT *Fault)
{
	ULONGLONG Done, Bytes;

	for (Done = 0; Done < Command->Length; Done += Bytes) {
		PUCHAR To, From;

		Bytes = Command->Length - Done;
		From = Translate(Context, Command->From + Done, &Bytes, FALSE, Fault);
		To = From ? Translate(Context, Command->To + Done, &Bytes, TRUE, Fault) : NULL;
		if (!To)
			return STATUS_ACCESS_VIOLATION;
		RtlMoveMemory(To, From, (SIZE_T)Bytes);
	}
	return STATUS_SUCCESS;
}

/*
 * ---- commands of clients: the buffer is memory of the client, which may change at any time ----
 */

static NTSTATUS Fetch(CONST CONTEXT *Context, ULONGLONG Address, G2_COMMAND *Command, FAULT *Fault)
{
	ULONGLONG Done, Bytes;

	for (Done = 0; Done < sizeof(*Command); Done += Bytes) {
		PUCHAR From;

		Bytes = sizeof(*Command) - Done;
		From = Translate(Context, Address + Done, &Bytes, FALSE, Fault);
		if (!From)
			return STATUS_ACCESS_VIOLATION;
		RtlCopyMemory((PUCHAR)Command + Done, From, (SIZE_T)Bytes);
	}
	return STATUS_SUCCESS;
}

static NTSTATUS ExecuteVirtual(CONST CONTEXT *Context, ULONGLONG Address, UINT Length, FAULT *Fault)
{
	NTSTATUS Status = STATUS_SUCCESS;
	UINT At;

	for (At = 0; At < Length && NT_SUCCESS(Status); At += sizeof(G2_COMMAND)) {
		G2_COMMAND Command;

		Status = Fetch(Context, Address + At, &Command, Fault);
		if (!NT_SUCCESS(Status))
			break;
		if (Command.Opcode == G2_FILL) {
			Status = Fill(Context, &Command, Fault);
		} else if (Command.Opcode == G2_COPY) {
			Status = Copy(Context, &Command, Fault);
		} else {
			Fault->Address = Address + At;
			Fault->IsInstruction = TRUE;
			Status = STATUS_ILLEGAL_INSTRUCTION;
		}
	}
	return Status;
}

/* ---- paging buffers ---- */

static NTSTATUS ExecutePaging(ADAPTER *Adapter, PUCHAR At, CONST UCHAR *End, FAULT *Fault)
{
	NTSTATUS Status = STATUS_SUCCESS;

	while (At < End && NT_SUCCESS(Status)) {
		CONST GPU_COMMAND *Command = (CONST GPU_COMMAND *)At;
		G2_COMMAND Move = {0};

		At += sizeof(*Command);
		Move.Pattern = Command->Pattern;
		Move.To = Command->To;
		Move.From = Command->From;
		Move.Length = Command->Length;
		if (Command->Opcode == GPU_FILL) {
			Status = Fill(Command->Context, &Move, Fault);
		} else if (Command->Opcode == GPU_COPY) {
			Status = Copy(Command->Context, &Move, Fault);
		} else { /* BuildPagingBuffer has checked the table */
			RtlCopyMemory(Adapter->Vram + Command->To, At,
				      (SIZE_T)Command->Length * sizeof(ULONGLONG));
			At += Command->Length * sizeof(ULONGLONG);
		}
	}
	return Status;
}

/* ---- interrupts ---- */

typedef struct _REPORT {
	ADAPTER *Adapter;
	DXGKARGCB_NOTIFY_INTERRUPT_DATA Data;
} REPORT;

static BOOLEAN NotifyAtDeviceIrql(PVOID Context)
{
	REPORT *Report = Context;
	DXGKRNL_INTERFACE *Dxgk = &Report->Adapter->Dxgk;

	Dxgk->DxgkCbNotifyInterrupt(Dxgk->DeviceHandle, &Report->Data);
	return Dxgk->DxgkCbQueueDpc(Dxgk->DeviceHandle);
}

static NTSTATUS Raise(REPORT *Report)
{
	DXGKRNL_INTERFACE *Dxgk = &Report->Adapter->Dxgk;
	BOOLEAN Result;

	return Dxgk->DxgkCbSynchronizeExecution(Dxgk->DeviceHandle, NotifyAtDeviceIrql, Report, 0,
						&Result);
}

static VOID DescribeFault(REPORT *Report, UINT Fence, CONST FAULT *Fault)
{
	DXGKARGCB_NOTIFY_INTERRUPT_DATA *Data = &Report->Data;

	Data->InterruptType = DXGK_INTERRUPT_DMA_PAGE_FAULTED;
	Data->DmaPageFaulted.FaultedFenceId = Fence;
	Data->DmaPageFaulted.FaultedPipelineStage = DXGK_RENDER_PIPELINE_STAGE_UNKNOWN;
	Data->DmaPageFaulted.PageFaultFlags =
		(DXGK_PAGE_FAULT_FLAGS)(Fault->IsWrite ? DXGK_PAGE_FAULT_WRITE : 0);
	Data->DmaPageFaulted.FaultedVirtualAddress = Fault->Address;
	Data->DmaPageFaulted.PageTableLevel = Fault->Level;
	Data->DmaPageFaulted.FaultErrorCode.GeneralErrorCode =
		Fault->IsInstruction ? DXGK_GENERAL_ERROR_INVALID_INSTRUCTION
				     : DXGK_GENERAL_ERROR_PAGE_FAULT;
}

/* The engine goes on after a fault: no flag asks for its reset. */
static NTSTATUS Finish(ADAPTER *Adapter, UINT Fence, NTSTATUS Status, CONST FAULT *Fault)
{
	REPORT Report = {.Adapter = Adapter};

	Report.Data.InterruptType = DXGK_INTERRUPT_DMA_COMPLETED;
	Report.Data.DmaCompleted.SubmissionFenceId = Fence;
	if (!NT_SUCCESS(Status))
		DescribeFault(&Report, Fence, Fault);
	InterlockedExchange(&Adapter->CompletedFence, (LONG)Fence);
	return Raise(&Report);
}

/* ---- submission, at DISPATCH_LEVEL ---- */

static NTSTATUS G2SubmitCommandVirtual(CONST HANDLE hAdapter,
				       CONST DXGKARG_SUBMITCOMMANDVIRTUAL *Args)
{
	FAULT Fault = {0};
	NTSTATUS Status = STATUS_SUCCESS;

	if (!Args->Flags.NullRendering)
		Status = ExecuteVirtual(Args->hContext, Args->DmaBufferVirtualAddress,
					Args->DmaBufferSize, &Fault);
	return Finish(hAdapter, Args->SubmissionFenceId, Status, &Fault);
}

/* Only paging buffers come here. */
static NTSTATUS G2SubmitCommand(CONST HANDLE hAdapter, CONST DXGKARG_SUBMITCOMMAND *Args)
{
	CONST DMA_PRIVATE *Private =
		(CONST DMA_PRIVATE *)((CONST UCHAR *)Args->pDmaBufferPrivateData +
				      Args->DmaBufferPrivateDataSubmissionStartOffset);
	UINT Length = Args->DmaBufferSubmissionEndOffset - Args->DmaBufferSubmissionStartOffset;
	FAULT Fault = {0};
	NTSTATUS Status = STATUS_SUCCESS;

	if (Length)
		Status = ExecutePaging(hAdapter, Private->Commands, Private->Commands + Length,
				       &Fault);
	return Finish(hAdapter, Args->SubmissionFenceId, Status, &Fault);
}

static NTSTATUS G2PreemptCommand(CONST HANDLE hAdapter, CONST DXGKARG_PREEMPTCOMMAND *Args)
{
	ADAPTER *Adapter = hAdapter;
	REPORT Report = {.Adapter = Adapter};

	Report.Data.InterruptType = DXGK_INTERRUPT_DMA_PREEMPTED;
	Report.Data.DmaPreempted.PreemptionFenceId = Args->PreemptionFenceId;
	Report.Data.DmaPreempted.LastCompletedFenceId = (UINT)Adapter->CompletedFence;
	return Raise(&Report);
}

static BOOLEAN G2InterruptRoutine(CONST PVOID Context, ULONG MessageNumber)
{
	UNREFERENCED_PARAMETER(Context);
	UNREFERENCED_PARAMETER(MessageNumber);
	return FALSE;
}

static VOID G2DpcRoutine(CONST PVOID Context)
{
	CONST ADAPTER *Adapter = Context;

	Adapter->Dxgk.DxgkCbNotifyDpc(Adapter->Dxgk.DeviceHandle);
}

/* No packet is ever under way between two calls. */
static NTSTATUS G2ResetFromTimeout(CONST HANDLE hAdapter)
{
	UNREFERENCED_PARAMETER(hAdapter);
	return STATUS_SUCCESS;
}

static NTSTATUS G2CollectDbgInfo(CONST HANDLE hAdapter, CONST DXGKARG_COLLECTDBGINFO *Args)
{
	CONST LONG Fence = ((CONST ADAPTER *)hAdapter)->CompletedFence;

	if (!Args->pBuffer || Args->BufferSize < sizeof(Fence))
		return STATUS_BUFFER_TOO_SMALL;
	RtlCopyMemory(Args->pBuffer, &Fence, sizeof(Fence));
	return STATUS_SUCCESS;
}

VOID FillEngineEntries(DRIVER_INITIALIZATION_DATA *Init)
{
	Init->DxgkDdiSubmitCommandVirtual = G2SubmitCommandVirtual;
	Init->DxgkDdiSubmitCommand = G2SubmitCommand;
	Init->DxgkDdiPreemptCommand = G2PreemptCommand;
	Init->DxgkDdiInterruptRoutine = G2InterruptRoutine;
	Init->DxgkDdiDpcRoutine = G2DpcRoutine;
	Init->DxgkDdiResetFromTimeout = G2ResetFromTimeout;
	Init->DxgkDdiRestartFromTimeout = G2ResetFromTimeout;
	Init->DxgkDdiCollectDbgInfo = G2CollectDbgInfo;
}
