/* SPDX-License-Identifier: MIT */
/* Devices, allocations, and DMA buffers. They are the same for every adapter. */
#include "adapter.h"
#include "pool.h"

static const UINT CommandsOfABuffer = 256;

class Allocation
{
      public:
	Allocation(ULONGLONG Bytes) : m_Bytes(Bytes)
	{
	}
	BOOLEAN Has(ULONGLONG Offset, ULONGLONG Length) const
	{
		return Offset < m_Bytes && Length <= m_Bytes - Offset;
	}

      private:
	ULONGLONG m_Bytes;
};

class Device
{
      public:
	Device(Adapter *Owner) : m_Owner(Owner)
	{
		m_Info.DmaBufferSize = CommandsOfABuffer * sizeof(GpuCommand);
		m_Info.DmaBufferSegmentSet = 1 << (SEGMENT_APERTURE - 1);
		m_Info.DmaBufferPrivateDataSize = sizeof(DmaPrivate);
		m_Info.AllocationListSize = 256;
		m_Info.PatchLocationListSize = 2 * CommandsOfABuffer;
	}
	Adapter *m_Owner;
	DXGK_DEVICEINFO m_Info; /* of the buffers of the device: there are no contexts */
};

static NTSTATUS CreateDevice(CONST HANDLE hAdapter, DXGKARG_CREATEDEVICE *Args)
{
	Device *Self = new Device((Adapter *)hAdapter);

	if (!Self)
		return STATUS_NO_MEMORY;
	Args->hDevice = Self;
	Args->pInfo = &Self->m_Info;
	return STATUS_SUCCESS;
}

static NTSTATUS DestroyDevice(CONST HANDLE hDevice)
{
	delete (Device *)hDevice;
	return STATUS_SUCCESS;
}

/* ---- allocations ---- */

static NTSTATUS DescribeTo(DXGK_ALLOCATIONINFO *Info)
{
	const SVR_ALLOCATION *Wish = (const SVR_ALLOCATION *)Info->pPrivateDriverData;
	UINT Segments = 1 << (SEGMENT_APERTURE - 1);

	if (Info->PrivateDriverDataSize != sizeof(*Wish) || !Wish->Size || Wish->Size >> 31 ||
	    Wish->Segment > SEGMENT_APERTURE)
		return STATUS_INVALID_PARAMETER;
	if (!(Wish->Flags & SVR_SYSTEM_ONLY))
		Segments |= 1 << (SEGMENT_VRAM - 1);
	Info->Size = (SIZE_T)Wish->Size;
	Info->Alignment = PAGE_SIZE;
	Info->PreferredSegment.SegmentId0 = Wish->Flags & SVR_SYSTEM_ONLY ? SEGMENT_APERTURE
					    : Wish->Segment               ? Wish->Segment
									  : SEGMENT_VRAM;
	Info->SupportedReadSegmentSet = Info->SupportedWriteSegmentSet = Segments;
	Info->AllocationPriority = D3DDDI_ALLOCATIONPRIORITY_NORMAL;
	Info->Flags.CpuVisible = 1;
	Info->hAllocation = new Allocation(Wish->Size);
	return Info->hAllocation ? STATUS_SUCCESS : STATUS_NO_MEMORY;
}

static NTSTATUS CreateAllocation(CONST HANDLE, DXGKARG_CREATEALLOCATION *Args)
{
	for (UINT i = 0; i < Args->NumAllocations; i++) {
		NTSTATUS Status = DescribeTo(&Args->pAllocationInfo[i]);

		if (NT_SUCCESS(Status))
			continue;
		while (i--)
			delete (Allocation *)Args->pAllocationInfo[i].hAllocation;
		return Status;
	}
	return STATUS_SUCCESS;
}

static NTSTATUS DestroyAllocation(CONST HANDLE, CONST DXGKARG_DESTROYALLOCATION *Args)
{
	for (UINT i = 0; i < Args->NumAllocations; i++)
		delete (Allocation *)Args->pAllocationList[i];
	return STATUS_SUCCESS;
}

static NTSTATUS OpenAllocation(CONST HANDLE hDevice, CONST DXGKARG_OPENALLOCATION *Args)
{
	DXGKRNL_INTERFACE *Dxgk = ((Device *)hDevice)->m_Owner->Dxgk();

	for (UINT i = 0; i < Args->NumAllocations; i++) {
		DXGKARGCB_GETHANDLEDATA Data = {};

		Data.hObject = Args->pOpenAllocation[i].hAllocation;
		Data.Type = DXGK_HANDLE_ALLOCATION;
		Args->pOpenAllocation[i].hDeviceSpecificAllocation =
			Dxgk->DxgkCbGetHandleData(&Data);
		if (!Args->pOpenAllocation[i].hDeviceSpecificAllocation)
			return STATUS_INVALID_PARAMETER;
	}
	return STATUS_SUCCESS;
}

static NTSTATUS CloseAllocation(CONST HANDLE, CONST DXGKARG_CLOSEALLOCATION *)
{
	return STATUS_SUCCESS;
}

static NTSTATUS DescribeAllocation(CONST HANDLE, DXGKARG_DESCRIBEALLOCATION *)
{
	return STATUS_NOT_SUPPORTED;
}

/* ---- DMA buffers ---- */

/* Checks an operand and makes its patch location, with the address that is known. */
static NTSTATUS PutOperand(DXGKARG_RENDER *Args, UINT Index, ULONGLONG Offset, ULONGLONG Length,
			   BOOLEAN IsWritten, UINT PatchOffset, ULONGLONG *Address)
{
	D3DDDI_PATCHLOCATIONLIST Patch = {};

	if (Index >= Args->AllocationListSize)
		return STATUS_INVALID_PARAMETER;
	const DXGK_ALLOCATIONLIST *Entry = &Args->pAllocationList[Index];
	const Allocation *Used = (const Allocation *)Entry->hDeviceSpecificAllocation;
	if (!Used || !Used->Has(Offset, Length) || (IsWritten && !Entry->WriteOperation))
		return STATUS_INVALID_PARAMETER;
	*Address = Entry->SegmentId ? Entry->PhysicalAddress.QuadPart + Offset : 0;
	Patch.AllocationIndex = Index;
	Patch.AllocationOffset = (UINT)Offset;
	Patch.PatchOffset = PatchOffset;
	*Args->pPatchLocationListOut++ = Patch;
	return STATUS_SUCCESS;
}

static NTSTATUS PutCommand(DXGKARG_RENDER *Args, const SVR_COMMAND &In, GpuCommand *Out, UINT At)
{
	NTSTATUS Status;

	if (In.Opcode != SVR_FILL && In.Opcode != SVR_COPY)
		return STATUS_ILLEGAL_INSTRUCTION;
	RtlZeroMemory(Out, sizeof(*Out));
	Out->Opcode = In.Opcode;
	Out->Pattern = In.Pattern;
	Out->Length = In.Length;
	Status = PutOperand(Args, In.To, In.ToOffset, In.Length, TRUE,
			    At + FIELD_OFFSET(GpuCommand, To), &Out->To);
	if (NT_SUCCESS(Status) && In.Opcode == SVR_COPY)
		Status = PutOperand(Args, In.From, In.FromOffset, In.Length, FALSE,
				    At + FIELD_OFFSET(GpuCommand, From), &Out->From);
	return Status;
}

static NTSTATUS Render(CONST HANDLE, DXGKARG_RENDER *Args)
{
	const PUCHAR Start = (PUCHAR)Args->pDmaBuffer;
	const D3DDDI_PATCHLOCATIONLIST *LastPatch =
		Args->pPatchLocationListOut + Args->PatchLocationListOutSize;
	DmaPrivate *Private = (DmaPrivate *)Args->pDmaBufferPrivateData;
	NTSTATUS Status = STATUS_SUCCESS;
	UINT Used = 0;

	if (Args->CommandLength % sizeof(SVR_COMMAND))
		return STATUS_INVALID_PARAMETER;
	Private->Commands = Start;
	Args->pDmaBufferPrivateData = Private + 1;
	for (; Args->MultipassOffset < Args->CommandLength; Used += sizeof(GpuCommand)) {
		SVR_COMMAND In; /* a copy: the client may change its buffer meanwhile */

		if (Args->DmaSize - Used < sizeof(GpuCommand) ||
		    LastPatch - Args->pPatchLocationListOut < 2) {
			Status = STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER;
			break;
		}
		RtlCopyMemory(&In, (PUCHAR)Args->pCommand + Args->MultipassOffset, sizeof(In));
		Status = PutCommand(Args, In, (GpuCommand *)(Start + Used), Used);
		if (!NT_SUCCESS(Status))
			return Status;
		Args->MultipassOffset += sizeof(In);
	}
	Args->pDmaBuffer = Start + Used;
	return Status;
}

static NTSTATUS PatchAddresses(CONST HANDLE, CONST DXGKARG_PATCH *Args)
{
	for (UINT i = 0; i < Args->PatchLocationListSubmissionLength; i++) {
		const D3DDDI_PATCHLOCATIONLIST *Patch =
			&Args->pPatchLocationList[Args->PatchLocationListSubmissionStart + i];
		const DXGK_ALLOCATIONLIST *Entry = &Args->pAllocationList[Patch->AllocationIndex];

		*(ULONGLONG *)((PUCHAR)Args->pDmaBuffer + Patch->PatchOffset) =
			Entry->PhysicalAddress.QuadPart + Patch->AllocationOffset;
	}
	return STATUS_SUCCESS;
}

static NTSTATUS Present(CONST HANDLE, DXGKARG_PRESENT *)
{
	return STATUS_NOT_SUPPORTED;
}

VOID FillRenderEntries(DRIVER_INITIALIZATION_DATA *Init)
{
	Init->DxgkDdiCreateDevice = CreateDevice;
	Init->DxgkDdiDestroyDevice = DestroyDevice;
	Init->DxgkDdiCreateAllocation = CreateAllocation;
	Init->DxgkDdiDestroyAllocation = DestroyAllocation;
	Init->DxgkDdiOpenAllocation = OpenAllocation;
	Init->DxgkDdiCloseAllocation = CloseAllocation;
	Init->DxgkDdiDescribeAllocation = DescribeAllocation;
	Init->DxgkDdiRender = Render;
	Init->DxgkDdiPatch = PatchAddresses;
	Init->DxgkDdiPresent = Present;
}
