/* SPDX-License-Identifier: MIT */
/* What DriverEntry needs of an adapter, and the adapter of this driver. */
#pragma once

#include "gpu.h"

/* The entries that depend on the hardware. A driver of several devices has a class for each. */
class Adapter
{
      public:
	virtual ~Adapter()
	{
	}
	virtual NTSTATUS Start(DXGK_START_INFO *StartInfo, DXGKRNL_INTERFACE *Dxgk) = NULL;
	virtual VOID Stop() = NULL;
	virtual NTSTATUS QueryAdapterInfo(const DXGKARG_QUERYADAPTERINFO *Args) = NULL;
	virtual NTSTATUS BuildPagingBuffer(DXGKARG_BUILDPAGINGBUFFER *Args) = NULL;
	virtual NTSTATUS SubmitCommand(const DXGKARG_SUBMITCOMMAND *Args) = NULL;
	virtual NTSTATUS PreemptCommand(const DXGKARG_PREEMPTCOMMAND *Args) = NULL;
	virtual UINT CurrentFence() = NULL;
	virtual VOID Reset() = NULL;

	DXGKRNL_INTERFACE *Dxgk()
	{
		return &m_Dxgk;
	}

      protected:
	DXGKRNL_INTERFACE m_Dxgk;
};

class SoftAdapter : public Adapter, private GpuOwner
{
      public:
	SoftAdapter(PDEVICE_OBJECT PhysicalDevice) : m_PhysicalDevice(PhysicalDevice)
	{
	}
	virtual NTSTATUS Start(DXGK_START_INFO *StartInfo, DXGKRNL_INTERFACE *Dxgk);
	virtual VOID Stop();
	virtual NTSTATUS QueryAdapterInfo(const DXGKARG_QUERYADAPTERINFO *Args);
	virtual NTSTATUS BuildPagingBuffer(DXGKARG_BUILDPAGINGBUFFER *Args);
	virtual NTSTATUS SubmitCommand(const DXGKARG_SUBMITCOMMAND *Args);
	virtual NTSTATUS PreemptCommand(const DXGKARG_PREEMPTCOMMAND *Args);
	virtual UINT CurrentFence();
	virtual VOID Reset();

      private:
	virtual VOID OnCompleted(UINT Fence);
	virtual VOID OnFaulted(UINT Fence, NTSTATUS Status);
	virtual VOID OnPreempted(UINT Fence, UINT LastCompleted);
	ULONG ReadHangAtPacket() const;
	VOID Raise(DXGKARGCB_NOTIFY_INTERRUPT_DATA *Data);
	NTSTATUS QueryCaps(DXGK_DRIVERCAPS *Caps) const;
	NTSTATUS QuerySegments(DXGK_QUERYSEGMENTOUT3 *Out) const;
	NTSTATUS MapDummyPage(PHYSICAL_ADDRESS Address);
	BOOLEAN IsInAperture(UINT Segment, SIZE_T First, SIZE_T Count) const;
	NTSTATUS Transfer(const DXGKARG_BUILDPAGINGBUFFER *Args, GpuCommand *Command) const;
	NTSTATUS Map(const DXGKARG_BUILDPAGINGBUFFER *Args, GpuCommand *Command) const;
	NTSTATUS Unmap(const DXGKARG_BUILDPAGINGBUFFER *Args, GpuCommand *Command);

	PDEVICE_OBJECT m_PhysicalDevice;
	Gpu m_Gpu;
	PVOID m_DummyPage;
};

/* render.cpp: the entries that are the same for every adapter */
VOID FillRenderEntries(DRIVER_INITIALIZATION_DATA *Init);
