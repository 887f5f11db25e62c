/* SPDX-License-Identifier: MIT */
/* The GPU: its memory, its queue, and the execution of commands. */
#include "gpu.h"
#include "pool.h"

NTSTATUS Gpu::Start(GpuOwner *Owner, PDEVICE_OBJECT Device, SIZE_T VramBytes, SIZE_T ApertureBytes,
		    UINT QueueEntries, ULONG HangAtPacket)
{
	PHYSICAL_ADDRESS Lowest, Highest, Boundary;

	Lowest.QuadPart = Boundary.QuadPart = 0;
	Highest.QuadPart = -1;
	KeInitializeSpinLock(&m_Lock);
	KeInitializeEvent(&m_Idle, NotificationEvent, TRUE);
	KeInitializeEvent(&m_Abort, NotificationEvent, FALSE);
	m_HangAtPacket = HangAtPacket;
	m_Owner = Owner;
	m_VramBytes = VramBytes;
	m_AperturePages = ApertureBytes / PAGE_SIZE;
	m_QueueEntries = QueueEntries;
	/* Contiguous, because the segment has one CPU address (CpuTranslatedAddress). */
	m_Vram = (PUCHAR)MmAllocateContiguousMemorySpecifyCache(VramBytes, Lowest, Highest,
								Boundary, MmCached);
	m_Aperture = new PUCHAR[m_AperturePages];
	m_Queue = new Packet[QueueEntries];
	m_WorkItem = IoAllocateWorkItem(Device);
	if (m_Vram && m_Aperture && m_Queue && m_WorkItem)
		return STATUS_SUCCESS;
	Stop();
	return STATUS_NO_MEMORY;
}

VOID Gpu::Stop()
{
	if (m_WorkItem) {
		Reset();
		IoFreeWorkItem(m_WorkItem);
	}
	delete[] m_Queue;
	delete[] m_Aperture;
	if (m_Vram)
		MmFreeContiguousMemorySpecifyCache(m_Vram, m_VramBytes, MmCached);
	m_WorkItem = NULL;
	m_Queue = NULL;
	m_Aperture = NULL;
	m_Vram = NULL;
}

/* ---- the queue ---- */

/* At DISPATCH_LEVEL. */
NTSTATUS Gpu::Submit(const Packet &NewPacket)
{
	BOOLEAN Start = FALSE;
	NTSTATUS Status = STATUS_SUCCESS;
	KIRQL Irql;

	KeAcquireSpinLock(&m_Lock, &Irql);
	if (m_Tail - m_Head == m_QueueEntries) {
		Status = STATUS_INSUFFICIENT_RESOURCES;
	} else {
		m_Queue[m_Tail++ % m_QueueEntries] = NewPacket;
		if (!NewPacket.IsPreemption)
			m_SubmittedFence = NewPacket.Fence;
		Start = !m_IsQueued;
		m_IsQueued = TRUE;
		KeClearEvent(&m_Idle);
	}
	KeReleaseSpinLock(&m_Lock, Irql);
	if (Start)
		IoQueueWorkItem(m_WorkItem, WorkRoutine, DelayedWorkQueue, this);
	return Status;
}

BOOLEAN Gpu::TakePacket(Packet *Next)
{
	BOOLEAN Taken;
	KIRQL Irql;

	KeAcquireSpinLock(&m_Lock, &Irql);
	Taken = m_Head != m_Tail;
	if (Taken) {
		*Next = m_Queue[m_Head++ % m_QueueEntries];
	} else {
		m_IsQueued = FALSE;
		KeSetEvent(&m_Idle, IO_NO_INCREMENT, FALSE);
	}
	KeReleaseSpinLock(&m_Lock, Irql);
	return Taken;
}

VOID Gpu::RunPacket(const Packet &Next)
{
	NTSTATUS Status;

	if (Next.IsPreemption) {
		m_Owner->OnPreempted(Next.Fence, CompletedFence());
		return;
	}
	Status = Execute(Next);
	if (Status == STATUS_CANCELLED)
		return;
	InterlockedExchange(&m_CompletedFence, (LONG)Next.Fence);
	if (NT_SUCCESS(Status))
		m_Owner->OnCompleted(Next.Fence);
	else
		m_Owner->OnFaulted(Next.Fence, Status);
}

VOID Gpu::WorkRoutine(PDEVICE_OBJECT Device, PVOID Context)
{
	Gpu *Self = (Gpu *)Context;
	Packet Next;

	UNREFERENCED_PARAMETER(Device);
	while (Self->TakePacket(&Next))
		Self->RunPacket(Next);
}

/* What was submitted counts as completed, although it was dropped. */
VOID Gpu::Reset()
{
	KIRQL Irql;

	KeSetEvent(&m_Abort, IO_NO_INCREMENT, FALSE);
	KeAcquireSpinLock(&m_Lock, &Irql);
	m_Head = m_Tail;
	KeReleaseSpinLock(&m_Lock, Irql);
	KeWaitForSingleObject(&m_Idle, Executive, KernelMode, FALSE, NULL);
	/* The work item sets the event under the lock: wait until it has left. */
	KeAcquireSpinLock(&m_Lock, &Irql);
	KeReleaseSpinLock(&m_Lock, Irql);
	KeClearEvent(&m_Abort);
	InterlockedExchange(&m_CompletedFence, (LONG)m_SubmittedFence);
	for (SIZE_T Page = 0; Page < m_AperturePages; Page++)
		m_Aperture[Page] = NULL;
}

/* ---- execution ---- */

/* NULL: a bus fault. *Bytes is shortened to what is contiguous there. */
PUCHAR Gpu::Translate(ULONGLONG Address, ULONGLONG *Bytes) const
{
	const ULONGLONG Page = (Address - ApertureBase) >> PAGE_SHIFT;

	if (Address < m_VramBytes) {
		*Bytes = min(*Bytes, m_VramBytes - Address);
		return m_Vram + Address;
	}
	if (Address < ApertureBase || Page >= m_AperturePages || !m_Aperture[Page])
		return NULL;
	*Bytes = min(*Bytes, (ULONGLONG)PAGE_SIZE - BYTE_OFFSET(Address));
	return m_Aperture[Page] + BYTE_OFFSET(Address);
}

NTSTATUS Gpu::Fill(const GpuCommand &Command)
{
	ULONGLONG Bytes;

	for (ULONGLONG Done = 0; Done < Command.Length; Done += Bytes) {
		Bytes = Command.Length - Done;
		PUCHAR To = Translate(Command.To + Done, &Bytes);
		if (!To)
			return STATUS_ACCESS_VIOLATION;
		for (ULONGLONG i = 0; i < Bytes; i++)
			To[i] = (UCHAR)(Command.Pattern >> ((Done + i) % 4 * 8));
	}
	return STATUS_SUCCESS;
}

NTSTATUS Gpu::Move(const GpuCommand &Command)
{
	ULONGLONG Bytes;

	for (ULONGLONG Done = 0; Done < Command.Length; Done += Bytes) {
		PUCHAR To = (PUCHAR)(ULONG_PTR)(Command.To + Done);
		PUCHAR From = (PUCHAR)(ULONG_PTR)(Command.From + Done);

		Bytes = Command.Length - Done;
		if (Command.Opcode != GPU_COPY_IN)
			From = Translate(Command.From + Done, &Bytes);
		if (Command.Opcode != GPU_COPY_OUT)
			To = Translate(Command.To + Done, &Bytes);
		if (!To || !From)
			return STATUS_ACCESS_VIOLATION;
		RtlMoveMemory(To, From, (SIZE_T)Bytes);
	}
	return STATUS_SUCCESS;
}

/* BuildPagingBuffer has checked the pages of MAP and UNMAP. */
NTSTATUS Gpu::ExecuteCommand(const GpuCommand &Command)
{
	const SIZE_T Step = Command.Opcode == GPU_MAP ? PAGE_SIZE : 0;

	switch (Command.Opcode) {
	case SVR_FILL:
		return Fill(Command);
	case SVR_COPY:
	case GPU_COPY_IN:
	case GPU_COPY_OUT:
		return Move(Command);
	case GPU_MAP:
	case GPU_UNMAP: /* every page is the dummy page */
		for (SIZE_T i = 0; i < Command.Length; i++)
			m_Aperture[Command.To + i] = (PUCHAR)(ULONG_PTR)(Command.From + i * Step);
		return STATUS_SUCCESS;
	default:
		return STATUS_ILLEGAL_INSTRUCTION;
	}
}

/* HangAtPacket in the registry tests timeout recovery: that packet of a client never ends. */
BOOLEAN Gpu::Hangs(const Packet &Next)
{
	if (Next.IsPaging || !m_HangAtPacket || --m_HangAtPacket)
		return FALSE;
	KeWaitForSingleObject(&m_Abort, Executive, KernelMode, FALSE, NULL);
	return TRUE;
}

NTSTATUS Gpu::Execute(const Packet &Next)
{
	NTSTATUS Status = Hangs(Next) ? STATUS_CANCELLED : STATUS_SUCCESS;

	for (UINT At = 0; At < Next.Length && NT_SUCCESS(Status); At += sizeof(GpuCommand)) {
		GpuCommand Command;

		if (KeReadStateEvent(&m_Abort))
			return STATUS_CANCELLED;
		RtlCopyMemory(&Command, Next.Commands + At, sizeof(Command));
		Status = ExecuteCommand(Command);
	}
	return Status;
}
