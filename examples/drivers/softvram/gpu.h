/* SPDX-License-Identifier: MIT */
/*
 * The GPU of softvram in software: video memory from the system, an aperture, and a queue of
 * packets that a work item executes at PASSIVE_LEVEL. Neither SubmitCommand (at DISPATCH_LEVEL,
 * with the scheduler waiting) nor a DPC has the time for copies of many megabytes.
 */
#pragma once

#define DXGKDDI_INTERFACE_VERSION 0x5023 /* WDDM 2.0; see driver.cpp */
extern "C" {
#include <ntddk.h>
#include <dispmprt.h>
}
#include "softvram.h"

enum { SEGMENT_VRAM = 1, SEGMENT_APERTURE = 2 };
const ULONGLONG ApertureBase = 0x100000000ull; /* video memory is below */

/* What the GPU executes. The addresses of the system are kernel addresses. */
struct GpuCommand {
	ULONG Opcode;
	ULONG Pattern;
	ULONGLONG To, From;
	ULONGLONG Length; /* MAP and UNMAP: number of pages from page number To on */
};
enum { GPU_COPY_IN = 0x100, GPU_COPY_OUT, GPU_MAP, GPU_UNMAP };

/* Private data of each DMA buffer: where the CPU sees its first command. */
struct DmaPrivate {
	PUCHAR Commands;
};

struct Packet {
	UINT Fence;
	BOOLEAN IsPreemption; /* a request, which is answered after the packets before it */
	PUCHAR Commands;
	UINT Length;
	BOOLEAN IsPaging;
};

/* The interrupts of the GPU go to its owner. */
class GpuOwner
{
      public:
	virtual VOID OnCompleted(UINT Fence) = NULL;
	virtual VOID OnFaulted(UINT Fence, NTSTATUS Status) = NULL;
	virtual VOID OnPreempted(UINT Fence, UINT LastCompleted) = NULL;

      protected:
	~GpuOwner()
	{
	}
};

class Gpu
{
      public:
	NTSTATUS Start(GpuOwner *Owner, PDEVICE_OBJECT Device, SIZE_T VramBytes,
		       SIZE_T ApertureBytes, UINT QueueEntries, ULONG HangAtPacket);
	VOID Stop();
	NTSTATUS Submit(const Packet &NewPacket);
	VOID Reset(); /* nothing runs, nothing waits and nothing is mapped afterwards */

	PHYSICAL_ADDRESS VramAddress() const
	{
		return MmGetPhysicalAddress(m_Vram);
	}
	SIZE_T VramBytes() const
	{
		return m_VramBytes;
	}
	SIZE_T AperturePages() const
	{
		return m_AperturePages;
	}
	UINT CompletedFence() const
	{
		return (UINT)m_CompletedFence;
	}

      private:
	static VOID WorkRoutine(PDEVICE_OBJECT Device, PVOID Context);
	BOOLEAN TakePacket(Packet *Next);
	VOID RunPacket(const Packet &Next);
	BOOLEAN Hangs(const Packet &Next);
	NTSTATUS Execute(const Packet &Next);
	NTSTATUS ExecuteCommand(const GpuCommand &Command);
	PUCHAR Translate(ULONGLONG Address, ULONGLONG *Bytes) const;
	NTSTATUS Fill(const GpuCommand &Command);
	NTSTATUS Move(const GpuCommand &Command);

	GpuOwner *m_Owner;
	PIO_WORKITEM m_WorkItem;
	PUCHAR m_Vram;
	SIZE_T m_VramBytes;
	PUCHAR *m_Aperture; /* the page behind each page of the aperture, or NULL */
	SIZE_T m_AperturePages;
	Packet *m_Queue; /* a ring, from number m_Head on to m_Tail */
	UINT m_QueueEntries, m_Head, m_Tail;
	UINT m_SubmittedFence;
	KSPIN_LOCK m_Lock;
	KEVENT m_Idle;  /* the work item is neither queued nor running */
	KEVENT m_Abort; /* drop the running packet */
	BOOLEAN m_IsQueued;
	ULONG m_HangAtPacket; /* counts down to the packet that hangs; 0: none does */
	volatile LONG m_CompletedFence;
};
