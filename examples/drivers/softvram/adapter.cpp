/* SPDX-License-Identifier: MIT */
/* The adapter: its capabilities and segments, its interrupts, submission and reset. */
#include "adapter.h"

static const SIZE_T VramBytes = 64 << 20, ApertureBytes = 256 << 20;

/* HangAtPacket, a DWORD of the software key of the device; 0: no such value. */
ULONG SoftAdapter::ReadHangAtPacket() const
{
	union {
		KEY_VALUE_PARTIAL_INFORMATION Info;
		UCHAR Bytes[FIELD_OFFSET(KEY_VALUE_PARTIAL_INFORMATION, Data) + sizeof(ULONG)];
	} Value;
	UNICODE_STRING Name;
	ULONG Length, Number = 0;
	HANDLE Key;

	RtlInitUnicodeString(&Name, L"HangAtPacket");
	if (!NT_SUCCESS(IoOpenDeviceRegistryKey(m_PhysicalDevice, PLUGPLAY_REGKEY_DRIVER,
						KEY_QUERY_VALUE, &Key)))
		return 0;
	if (NT_SUCCESS(ZwQueryValueKey(Key, &Name, KeyValuePartialInformation, &Value,
				       sizeof(Value), &Length)) &&
	    Value.Info.Type == REG_DWORD)
		RtlCopyMemory(&Number, Value.Info.Data, sizeof(Number));
	ZwClose(Key);
	return Number;
}

NTSTATUS SoftAdapter::Start(DXGK_START_INFO *StartInfo, DXGKRNL_INTERFACE *Dxgk)
{
	m_Dxgk = *Dxgk;
	/* One more, for a preemption request. */
	return m_Gpu.Start(this, m_PhysicalDevice, VramBytes, ApertureBytes,
			   StartInfo->RequiredDmaQueueEntry + 1, ReadHangAtPacket());
}

VOID SoftAdapter::Stop()
{
	m_Gpu.Stop();
	if (m_DummyPage)
		MmUnmapIoSpace(m_DummyPage, PAGE_SIZE);
	m_DummyPage = NULL;
}

NTSTATUS SoftAdapter::QueryCaps(DXGK_DRIVERCAPS *Caps) const
{
	RtlZeroMemory(Caps, sizeof(*Caps));
	Caps->HighestAcceptableAddress.QuadPart = -1;
	Caps->ApertureSegmentCommitLimit = ApertureBytes;
	/* Physical addresses, although the table is that of a newer kit. */
	Caps->WDDMVersion = DXGKDDI_WDDMv1_3;
	return STATUS_SUCCESS;
}

NTSTATUS SoftAdapter::QuerySegments(DXGK_QUERYSEGMENTOUT3 *Out) const
{
	DXGK_SEGMENTDESCRIPTOR3 *Segment = Out->pSegmentDescriptor;

	Out->NbSegment = 2;
	if (!Segment)
		return STATUS_SUCCESS;
	RtlZeroMemory(Segment, 2 * sizeof(*Segment));
	Segment[0].Flags.CpuVisible = 1;
	Segment[0].CpuTranslatedAddress = m_Gpu.VramAddress();
	Segment[0].Size = Segment[0].CommitLimit = VramBytes;
	Segment[1].Flags.Aperture = 1;
	Segment[1].Flags.CacheCoherent = 1;
	Segment[1].BaseAddress.QuadPart = ApertureBase;
	Segment[1].Size = Segment[1].CommitLimit = ApertureBytes;
	Out->PagingBufferSegmentId = 0;
	Out->PagingBufferSize = 64 * sizeof(GpuCommand);
	Out->PagingBufferPrivateDataSize = 64 * sizeof(DmaPrivate);
	return STATUS_SUCCESS;
}

NTSTATUS SoftAdapter::QueryAdapterInfo(const DXGKARG_QUERYADAPTERINFO *Args)
{
	switch (Args->Type) {
	case DXGKQAITYPE_DRIVERCAPS:
		if (Args->OutputDataSize < sizeof(DXGK_DRIVERCAPS))
			return STATUS_BUFFER_TOO_SMALL;
		return QueryCaps((DXGK_DRIVERCAPS *)Args->pOutputData);
	case DXGKQAITYPE_QUERYSEGMENT3:
		if (Args->OutputDataSize < sizeof(DXGK_QUERYSEGMENTOUT3))
			return STATUS_BUFFER_TOO_SMALL;
		return QuerySegments((DXGK_QUERYSEGMENTOUT3 *)Args->pOutputData);
	default:
		return STATUS_NOT_SUPPORTED;
	}
}

/* ---- interrupts ---- */

struct Report {
	DXGKRNL_INTERFACE *Dxgk;
	DXGKARGCB_NOTIFY_INTERRUPT_DATA *Data;
};

static BOOLEAN NotifyAtDeviceIrql(PVOID Context)
{
	Report *Self = (Report *)Context;

	Self->Dxgk->DxgkCbNotifyInterrupt(Self->Dxgk->DeviceHandle, Self->Data);
	return Self->Dxgk->DxgkCbQueueDpc(Self->Dxgk->DeviceHandle);
}

VOID SoftAdapter::Raise(DXGKARGCB_NOTIFY_INTERRUPT_DATA *Data)
{
	Report Self = {&m_Dxgk, Data};
	BOOLEAN Result;

	(VOID) m_Dxgk.DxgkCbSynchronizeExecution(m_Dxgk.DeviceHandle, NotifyAtDeviceIrql, &Self, 0,
						 &Result);
}

VOID SoftAdapter::OnCompleted(UINT Fence)
{
	DXGKARGCB_NOTIFY_INTERRUPT_DATA Data = {};

	Data.InterruptType = DXGK_INTERRUPT_DMA_COMPLETED;
	Data.DmaCompleted.SubmissionFenceId = Fence;
	Raise(&Data);
}

VOID SoftAdapter::OnFaulted(UINT Fence, NTSTATUS Status)
{
	DXGKARGCB_NOTIFY_INTERRUPT_DATA Data = {};

	Data.InterruptType = DXGK_INTERRUPT_DMA_FAULTED;
	Data.DmaFaulted.FaultedFenceId = Fence;
	Data.DmaFaulted.Status = Status;
	Raise(&Data);
}

VOID SoftAdapter::OnPreempted(UINT Fence, UINT LastCompleted)
{
	DXGKARGCB_NOTIFY_INTERRUPT_DATA Data = {};

	Data.InterruptType = DXGK_INTERRUPT_DMA_PREEMPTED;
	Data.DmaPreempted.PreemptionFenceId = Fence;
	Data.DmaPreempted.LastCompletedFenceId = LastCompleted;
	Raise(&Data);
}

/* ---- submission and reset ---- */

/* A DMA buffer begins where its private data says, an operation of a paging buffer, too. */
NTSTATUS SoftAdapter::SubmitCommand(const DXGKARG_SUBMITCOMMAND *Args)
{
	const UINT Start = Args->DmaBufferSubmissionStartOffset;
	const DmaPrivate *Private =
		(const DmaPrivate *)((const UCHAR *)Args->pDmaBufferPrivateData +
				     Args->DmaBufferPrivateDataSubmissionStartOffset);
	Packet NewPacket = {};

	NewPacket.Fence = Args->SubmissionFenceId;
	NewPacket.IsPaging = Args->Flags.Paging;
	if (!Args->Flags.NullRendering)
		NewPacket.Length = Args->DmaBufferSubmissionEndOffset - Start;
	if (NewPacket.Length)
		NewPacket.Commands = Private->Commands + (Args->Flags.Paging ? 0 : Start);
	return m_Gpu.Submit(NewPacket);
}

/* The answer comes when the packets before it are done: nothing is taken back. */
NTSTATUS SoftAdapter::PreemptCommand(const DXGKARG_PREEMPTCOMMAND *Args)
{
	Packet Request = {};

	Request.Fence = Args->PreemptionFenceId;
	Request.IsPreemption = TRUE;
	return m_Gpu.Submit(Request);
}

UINT SoftAdapter::CurrentFence()
{
	return m_Gpu.CompletedFence();
}

VOID SoftAdapter::Reset()
{
	m_Gpu.Reset();
}
