/* SPDX-License-Identifier: MIT */
/*
 * aperture13 inside: the adapter, its GART and its engine. An integrated GPU without video memory:
 * every address of the GPU is an address in the aperture, and the GART has the page behind it.
 */
#ifndef APERTURE13_DRIVER_H
#define APERTURE13_DRIVER_H

#define DXGKDDI_INTERFACE_VERSION 0x4002 /* WDDM 1.3 */
#include <ntddk.h>
#include <dispmprt.h>

#include "aperture13.h"

#define A13_TAG           '31PA'
#define APERTURE_SEGMENT  1u
#define APERTURE_BASE     0x10000000ull /* the GPU's address of the first page */
#define DEFAULT_MEGABYTES 256u

/* What the engine reads. Addresses are the GPU's; in MAP and UNMAP, numbers of aperture pages. */
typedef struct _GPU_COMMAND {
	ULONG Opcode;
	ULONG Pattern;
	ULONGLONG Destination;
	ULONGLONG Source; /* GPU_UNMAP: the frame of the dummy page */
	ULONGLONG Length; /* bytes, or pages */
} GPU_COMMAND;
/* The privileged commands follow those of the user. Behind GPU_MAP are its page frames. */
enum { GPU_MAP = 0x100, GPU_UNMAP = 0x101 };

/* A submission. Paging buffers are in system memory, DMA buffers in the aperture. */
typedef struct _PACKET {
	UINT Fence;
	BOOLEAN IsAperture;
	ULONGLONG Address;
	UINT Length;
} PACKET;

typedef struct _ADAPTER ADAPTER;

typedef struct _ENGINE {
	KSPIN_LOCK Lock;
	KEVENT Work;  /* there is a packet, or the thread must end */
	KEVENT Idle;  /* no packet is running */
	KEVENT Abort; /* drop the running packet */
	PKTHREAD Thread;
	PACKET *Packets; /* a ring of Capacity packets, from number Head on to Tail */
	UINT Capacity, Head, Tail;
	UINT RunningFence, SubmittedFence, PreemptionFence;
	BOOLEAN IsRunning, IsPreempting, MustStop;
	ULONG HangAtPacket; /* counts down to the packet that hangs; 0: none does */
	volatile LONG IsHung;
	volatile LONG CompletedFence; /* the last one that was reported */
} ENGINE;

struct _ADAPTER {
	DXGKRNL_INTERFACE Dxgk;
	PFN_NUMBER *Gart; /* 0: no page */
	SIZE_T GartPages;
	ENGINE Engine;
};

typedef struct _ALLOCATION {
	ULONGLONG Size;
} ALLOCATION;

typedef struct _DEVICE {
	ADAPTER *Adapter;
} DEVICE;

/* engine.c */
NTSTATUS EngineStart(ADAPTER *Adapter, ULONG Capacity, ULONG HangAtPacket);
VOID EngineStop(ADAPTER *Adapter);
UINT EngineReset(ADAPTER *Adapter);
DXGKDDI_SUBMITCOMMAND A13SubmitCommand;
DXGKDDI_PREEMPTCOMMAND A13PreemptCommand;
DXGKDDI_QUERYCURRENTFENCE A13QueryCurrentFence;
DXGKDDI_INTERRUPT_ROUTINE A13InterruptRoutine;
DXGKDDI_DPC_ROUTINE A13DpcRoutine;

/* execute.c */
NTSTATUS Execute(ADAPTER *Adapter, const PACKET *Packet);

/* memory.c */
DXGKDDI_CREATEALLOCATION A13CreateAllocation;
DXGKDDI_DESTROYALLOCATION A13DestroyAllocation;
DXGKDDI_OPENALLOCATIONINFO A13OpenAllocation;
DXGKDDI_CLOSEALLOCATION A13CloseAllocation;
DXGKDDI_DESCRIBEALLOCATION A13DescribeAllocation;
DXGKDDI_BUILDPAGINGBUFFER A13BuildPagingBuffer;

/* render.c */
DXGKDDI_CREATEDEVICE A13CreateDevice;
DXGKDDI_DESTROYDEVICE A13DestroyDevice;
DXGKDDI_CREATECONTEXT A13CreateContext;
DXGKDDI_DESTROYCONTEXT A13DestroyContext;
DXGKDDI_RENDER A13Render;
DXGKDDI_PATCH A13Patch;
DXGKDDI_PRESENT A13Present;

/* reset.c */
DXGKDDI_RESETFROMTIMEOUT A13ResetFromTimeout;
DXGKDDI_RESTARTFROMTIMEOUT A13RestartFromTimeout;
DXGKDDI_RESETENGINE A13ResetEngine;
DXGKDDI_QUERYENGINESTATUS A13QueryEngineStatus;
DXGKDDI_QUERYDEPENDENTENGINEGROUP A13QueryDependentEngineGroup;
DXGKDDI_COLLECTDBGINFO A13CollectDbgInfo;

#endif
