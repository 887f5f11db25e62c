/* SPDX-License-Identifier: MIT */
/*
 * gpummu2 inside: a compute-only adapter of WDDM 2.6. Every address of the GPU is virtual, and the
 * memory manager owns the page tables, in video memory (BAR 0). Nothing is AccessedPhysically, so
 * there are no allocation lists, no patching and no mapped aperture.
 */
#ifndef GPUMMU2_DRIVER_H
#define GPUMMU2_DRIVER_H

#define DXGKDDI_INTERFACE_VERSION 0xB004 /* WDDM 2.6, the first with ComputeOnly */
#include <ntddk.h>
#include <dispmprt.h>

#include "gpummu2.h"

#define G2_TAG 'UM2G'

enum { SEGMENT_VRAM = 1, SEGMENT_SYSTEM = 2 };

/* The page tables of the GPU: three levels of 512 entries with 8 bytes, pages of 4 KiB. */
#define TABLE_LEVELS  3u
#define TABLE_BITS    9u
#define TABLE_ENTRIES (1u << TABLE_BITS)
#define PTE_VALID     0x1ull
#define PTE_READ_ONLY 0x2ull
#define PTE_SYSTEM    0x4ull /* an address of system memory; else an offset in video memory */
#define PTE_ADDRESS   0x000FFFFFFFFFF000ull

/* The privileged commands, which only BuildPagingBuffer writes. */
enum { GPU_FILL = 1, GPU_COPY, GPU_WRITE_TABLE };
typedef struct _GPU_COMMAND {
	ULONG Opcode;
	ULONG Pattern;
	ULONGLONG To,
		From;     /* virtual addresses; GPU_WRITE_TABLE: To is an offset in video memory */
	ULONGLONG Length; /* bytes; GPU_WRITE_TABLE: entries, which follow the command */
	struct _CONTEXT *Context; /* whose addresses */
} GPU_COMMAND;

/* Private data of a paging buffer, for each operation: where the CPU sees its commands. */
typedef struct _DMA_PRIVATE {
	PUCHAR Commands;
} DMA_PRIVATE;

typedef struct _ADAPTER {
	DXGKRNL_INTERFACE Dxgk;
	PHYSICAL_ADDRESS VramAddress;
	PUCHAR Vram;
	SIZE_T VramBytes;
	volatile LONG CompletedFence;
} ADAPTER;

typedef struct _CONTEXT {
	ADAPTER *Adapter;
	ULONGLONG Root; /* offset in video memory */
	BOOLEAN HasRoot;
} CONTEXT;

typedef struct _FAULT {
	ULONGLONG Address;
	UINT Level;
	BOOLEAN IsWrite, IsInstruction;
} FAULT;

/* mmu.c: NULL is a page fault, which *Fault describes. *Bytes becomes at most those of the page. */
PUCHAR Translate(CONST CONTEXT *Context, ULONGLONG Address, ULONGLONG *Bytes, BOOLEAN IsWrite,
		 FAULT *Fault);
BOOLEAN EncodePte(CONST ADAPTER *Adapter, CONST DXGK_PTE *Pte, UINT Level, ULONGLONG *Entry);

/* objects.c */
VOID FillObjectEntries(DRIVER_INITIALIZATION_DATA *Init);
/* paging.c */
DXGKDDI_BUILDPAGINGBUFFER G2BuildPagingBuffer;
/* engine.c */
VOID FillEngineEntries(DRIVER_INITIALIZATION_DATA *Init);

#endif
