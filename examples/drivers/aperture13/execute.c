/* SPDX-License-Identifier: MIT */
/*
 * The GPU in software: reads the commands of a packet and executes them. Every address goes through
 * the GART, page by page. Runs on the engine's thread, and only there.
 */
#include "driver.h"

/* The memory of a page frame. A real GPU would put the address on the bus. */
static PUCHAR FrameAddress(PFN_NUMBER Frame, ULONG Offset)
{
	PHYSICAL_ADDRESS Address;

	Address.QuadPart = (LONGLONG)(Frame << PAGE_SHIFT);
	return Frame ? (PUCHAR)MmGetVirtualForPhysical(Address) + Offset : NULL;
}

/* NULL: a bus fault. *Bytes becomes at most the rest of the page. */
static PUCHAR Translate(CONST ADAPTER *Adapter, ULONGLONG Address, ULONGLONG *Bytes)
{
	ULONGLONG Page = (Address - APERTURE_BASE) >> PAGE_SHIFT;
	ULONG Offset = BYTE_OFFSET(Address);

	*Bytes = min(*Bytes, PAGE_SIZE - Offset);
	if (Address < APERTURE_BASE || Page >= Adapter->GartPages)
		return NULL;
	return FrameAddress(Adapter->Gart[Page], Offset);
}

static NTSTATUS Fill(CONST ADAPTER *Adapter, CONST GPU_COMMAND *Command)
{
	ULONGLONG Done = 0, Bytes, i;

	for (; Done < Command->Length; Done += Bytes) {
		PUCHAR To;

		Bytes = Command->Length - Done;
		To = Translate(Adapter, Command->Destination + Done, &Bytes);
		if (!To)
			return STATUS_ACCESS_VIOLATION;
		for (i = 0; i < Bytes; i++)
			To[i] = (UCHAR)(Command->Pattern >> ((Done + i) % 4 * 8));
	}
	return STATUS_SUCCESS;
}

static NTSTATUS Copy(CONST ADAPTER *Adapter, CONST GPU_COMMAND *Command)
{
	ULONGLONG Done = 0, Bytes;

	for (; Done < Command->Length; Done += Bytes) {
		PUCHAR From, To;

		Bytes = Command->Length - Done;
		From = Translate(Adapter, Command->Source + Done, &Bytes);
		To = Translate(Adapter, Command->Destination + Done, &Bytes);
		if (!From || !To)
			return STATUS_ACCESS_VIOLATION;
		RtlMoveMemory(To, From, (SIZE_T)Bytes);
	}
	return STATUS_SUCCESS;
}

/* Reads from the packet, which is in the aperture or in contiguous system memory. */
static NTSTATUS Fetch(CONST ADAPTER *Adapter, CONST PACKET *Packet, UINT At, PVOID Data, UINT Size)
{
	PUCHAR Out = Data;
	ULONGLONG Bytes;

	if (At > Packet->Length || Size > Packet->Length - At)
		return STATUS_ILLEGAL_INSTRUCTION;
	for (; Size; Size -= (UINT)Bytes, At += (UINT)Bytes, Out += Bytes) {
		ULONGLONG Address = Packet->Address + At;
		PUCHAR In;

		Bytes = min(Size, PAGE_SIZE - BYTE_OFFSET(Address));
		In = Packet->IsAperture ? Translate(Adapter, Address, &Bytes)
					: FrameAddress(Address >> PAGE_SHIFT, BYTE_OFFSET(Address));
		if (!In)
			return STATUS_ACCESS_VIOLATION;
		RtlCopyMemory(Out, In, (SIZE_T)Bytes);
	}
	return STATUS_SUCCESS;
}

/* BuildPagingBuffer has checked the range of pages. */
static NTSTATUS Map(CONST ADAPTER *Adapter, CONST PACKET *Packet, CONST GPU_COMMAND *Command,
		    UINT *At)
{
	NTSTATUS Status = Fetch(Adapter, Packet, *At, &Adapter->Gart[Command->Destination],
				(UINT)(Command->Length * sizeof(PFN_NUMBER)));

	*At += (UINT)(Command->Length * sizeof(PFN_NUMBER));
	return Status;
}

static NTSTATUS Unmap(CONST ADAPTER *Adapter, CONST GPU_COMMAND *Command)
{
	ULONGLONG i;

	for (i = 0; i < Command->Length; i++)
		Adapter->Gart[Command->Destination + i] = (PFN_NUMBER)Command->Source;
	return STATUS_SUCCESS;
}

/*
 * HangAtPacket in the registry tests timeout recovery: from that packet on, the engine waits for
 * its reset.
 */
static BOOLEAN Hangs(ENGINE *Engine, CONST PACKET *Packet)
{
	if (!Packet->IsAperture || !Engine->HangAtPacket || --Engine->HangAtPacket)
		return FALSE;
	InterlockedExchange(&Engine->IsHung, TRUE);
	KeWaitForSingleObject(&Engine->Abort, Executive, KernelMode, FALSE, NULL);
	InterlockedExchange(&Engine->IsHung, FALSE);
	return TRUE;
}

/* A privileged command in a buffer that a client filled cannot be: Render does not write one. */
NTSTATUS Execute(ADAPTER *Adapter, CONST PACKET *Packet)
{
	NTSTATUS Status = STATUS_SUCCESS;
	UINT At = 0;

	if (Hangs(&Adapter->Engine, Packet))
		return STATUS_CANCELLED;
	while (At < Packet->Length && NT_SUCCESS(Status)) {
		GPU_COMMAND Command;

		if (KeReadStateEvent(&Adapter->Engine.Abort))
			return STATUS_CANCELLED;
		Status = Fetch(Adapter, Packet, At, &Command, sizeof(Command));
		if (!NT_SUCCESS(Status))
			break;
		At += sizeof(Command);
		switch (Command.Opcode) {
		case A13_FILL:
			Status = Fill(Adapter, &Command);
			break;
		case A13_COPY:
			Status = Copy(Adapter, &Command);
			break;
		case GPU_MAP:
			Status = Map(Adapter, Packet, &Command, &At);
			break;
		case GPU_UNMAP:
			Status = Unmap(Adapter, &Command);
			break;
		default:
			Status = STATUS_ILLEGAL_INSTRUCTION;
		}
	}
	return Status;
}
