/* SPDX-License-Identifier: MIT */
/* Devices, contexts, and DMA buffers: Render checks and translates, Patch writes addresses. */
#include "driver.h"

#define COMMANDS_OF_A_BUFFER 512u

/* Where an operand is: in the DMA buffer's command, patched later. */
typedef struct _OPERAND {
	UINT Index;
	ULONGLONG Offset, Length;
	BOOLEAN IsWritten;
	UINT PatchOffset;
} OPERAND;

NTSTATUS A13CreateDevice(CONST HANDLE hAdapter, DXGKARG_CREATEDEVICE *Args)
{
	DEVICE *Device = ExAllocatePool2(POOL_FLAG_NON_PAGED, sizeof(*Device), A13_TAG);

	if (!Device)
		return STATUS_NO_MEMORY;
	Device->Adapter = hAdapter;
	Args->hDevice = Device;
	return STATUS_SUCCESS;
}

NTSTATUS A13DestroyDevice(CONST HANDLE hDevice)
{
	ExFreePoolWithTag(hDevice, A13_TAG);
	return STATUS_SUCCESS;
}

/* The engine keeps no state between packets, so a context is its device. */
NTSTATUS A13CreateContext(CONST HANDLE hDevice, DXGKARG_CREATECONTEXT *Args)
{
	if (Args->NodeOrdinal)
		return STATUS_INVALID_PARAMETER;
	Args->hContext = hDevice;
	Args->ContextInfo.DmaBufferSize = COMMANDS_OF_A_BUFFER * sizeof(GPU_COMMAND);
	Args->ContextInfo.DmaBufferSegmentSet = 1 << (APERTURE_SEGMENT - 1);
	Args->ContextInfo.DmaBufferPrivateDataSize = 0;
	Args->ContextInfo.AllocationListSize = 256;
	Args->ContextInfo.PatchLocationListSize = 2 * COMMANDS_OF_A_BUFFER;
	return STATUS_SUCCESS;
}

NTSTATUS A13DestroyContext(CONST HANDLE hContext)
{
	UNREFERENCED_PARAMETER(hContext);
	return STATUS_SUCCESS;
}

/*
 * Checks an operand and makes its patch location. An allocation that is in the aperture gets its
 * address now, because Patch is called only if that changes.
 */
static NTSTATUS PutOperand(DXGKARG_RENDER *Args, CONST OPERAND *Operand, ULONGLONG *Address)
{
	CONST DXGK_ALLOCATIONLIST *Entry;
	CONST ALLOCATION *Allocation;
	D3DDDI_PATCHLOCATIONLIST *Patch = Args->pPatchLocationListOut;

	if (Operand->Index >= Args->AllocationListSize)
		return STATUS_INVALID_PARAMETER;
	Entry = &Args->pAllocationList[Operand->Index];
	Allocation = Entry->hDeviceSpecificAllocation;
	if (!Allocation || Operand->Offset >= Allocation->Size ||
	    Operand->Length > Allocation->Size - Operand->Offset ||
	    (Operand->IsWritten && !Entry->WriteOperation))
		return STATUS_INVALID_PARAMETER;
	if (Entry->SegmentId)
		*Address = Entry->PhysicalAddress.QuadPart + Operand->Offset;
	RtlZeroMemory(Patch, sizeof(*Patch));
	Patch->AllocationIndex = Operand->Index;
	Patch->AllocationOffset = (UINT)Operand->Offset;
	Patch->PatchOffset = Operand->PatchOffset;
	Args->pPatchLocationListOut++;
	return STATUS_SUCCESS;
}

static NTSTATUS PutCommand(DXGKARG_RENDER *Args, CONST A13_COMMAND *In, GPU_COMMAND *Out, UINT At)
{
	OPERAND To = {In->Destination, In->DestinationOffset, In->Length, TRUE,
		      At + FIELD_OFFSET(GPU_COMMAND, Destination)};
	OPERAND From = {In->Source, In->SourceOffset, In->Length, FALSE,
			At + FIELD_OFFSET(GPU_COMMAND, Source)};
	NTSTATUS Status;

	if (In->Opcode != A13_FILL && In->Opcode != A13_COPY)
		return STATUS_ILLEGAL_INSTRUCTION;
	RtlZeroMemory(Out, sizeof(*Out));
	Out->Opcode = In->Opcode;
	Out->Pattern = In->Pattern;
	Out->Length = In->Length;
	Status = PutOperand(Args, &To, &Out->Destination);
	if (NT_SUCCESS(Status) && In->Opcode == A13_COPY)
		Status = PutOperand(Args, &From, &Out->Source);
	return Status;
}

/* Called again with another buffer while commands are left; MultipassOffset is where to go on. */
NTSTATUS A13Render(CONST HANDLE hContext, DXGKARG_RENDER *Args)
{
	PUCHAR Start = Args->pDmaBuffer;
	D3DDDI_PATCHLOCATIONLIST *LastPatch =
		Args->pPatchLocationListOut + Args->PatchLocationListOutSize;
	GPU_COMMAND *Out = Args->pDmaBuffer;
	A13_COMMAND In;
	NTSTATUS Status = STATUS_SUCCESS;

	UNREFERENCED_PARAMETER(hContext);
	if (Args->CommandLength % sizeof(In))
		return STATUS_INVALID_PARAMETER;
	for (; Args->MultipassOffset < Args->CommandLength; Out++) {
		UINT Used = (UINT)((PUCHAR)Out - Start);

		if (Args->DmaSize - Used < sizeof(*Out) ||
		    LastPatch - Args->pPatchLocationListOut < 2) {
			Status = STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER;
			break;
		}
		/* One copy, because the client may change its buffer meanwhile. */
		__try {
			RtlCopyMemory(&In, (PUCHAR)Args->pCommand + Args->MultipassOffset,
				      sizeof(In));
		} __except (EXCEPTION_EXECUTE_HANDLER) {
			Status = STATUS_INVALID_USER_BUFFER;
		}
		if (NT_SUCCESS(Status))
			Status = PutCommand(Args, &In, Out, Used);
		if (!NT_SUCCESS(Status))
			return Status;
		Args->MultipassOffset += sizeof(In);
	}
	Args->pDmaBuffer = Out;
	return Status;
}

NTSTATUS A13Patch(CONST HANDLE hAdapter, CONST DXGKARG_PATCH *Args)
{
	UINT i;

	UNREFERENCED_PARAMETER(hAdapter);
	for (i = 0; i < Args->PatchLocationListSubmissionLength; i++) {
		CONST D3DDDI_PATCHLOCATIONLIST *Patch =
			&Args->pPatchLocationList[Args->PatchLocationListSubmissionStart + i];
		CONST DXGK_ALLOCATIONLIST *Entry = &Args->pAllocationList[Patch->AllocationIndex];

		*(ULONGLONG *)((PUCHAR)Args->pDmaBuffer + Patch->PatchOffset) =
			Entry->PhysicalAddress.QuadPart + Patch->AllocationOffset;
	}
	return STATUS_SUCCESS;
}

NTSTATUS A13Present(CONST HANDLE hContext, DXGKARG_PRESENT *Args)
{
	UNREFERENCED_PARAMETER(hContext);
	UNREFERENCED_PARAMETER(Args);
	return STATUS_NOT_SUPPORTED; /* a render-only adapter */
}
