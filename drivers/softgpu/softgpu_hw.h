/* SPDX-License-Identifier: MIT */
/*
 * The command language between this miniport and its engines. Users never see it.
 *
 * A DMA buffer holds what DxgkDdiRender made of a user's commands: the same records with patched
 * addresses. Only STAMP is longer, by the address of the report, so that every portion of a split
 * buffer has all its state. A paging buffer holds the privileged commands below, which are refused
 * in a user's buffer.
 */
#ifndef SOFTGPU_HW_H
#define SOFTGPU_HW_H

#include <stddef.h>
#include <stdint.h>

#include <vidmm/softgpu.h>

#define SOFTGPU_NODES     2u
#define SOFTGPU_NODE_3D   0u
#define SOFTGPU_NODE_COPY 1u

#define SOFTGPU_PAGE_SHIFT 12u
#define SOFTGPU_PAGE       ((uint64_t)1 << SOFTGPU_PAGE_SHIFT)

/*
 * GPU physical address space. Video memory begins at 0; there is nothing else below the aperture.
 */
#define SOFTGPU_SEGMENT_VRAM     1u
#define SOFTGPU_SEGMENT_APERTURE 2u
#define SOFTGPU_APERTURE_BASE    ((uint64_t)1 << 40)
/* On each adapter of a link, the addresses from here on are those of the lead from 0 on. */
#define SOFTGPU_LEAD_BASE        ((uint64_t)1 << 46)
/*
 * Decodes to no memory. Patched in for an allocation that is not resident, so that an access
 * faults.
 */
#define SOFTGPU_NOWHERE          UINT64_MAX

/*
 * Page tables (Model wddm2). Tables are in video memory. An entry has 64 bits: the flags below, and
 * in bits 12 to 51 the page that it refers to. An entry of level 0 refers to memory, one of a
 * higher level to a table of the level below, which is in video memory. An index has 9 bits, but
 * that of the root has as many as the root has entries.
 */
#define SOFTGPU_TABLE_BITS    9u
#define SOFTGPU_TABLE_ENTRIES ((uint32_t)1 << SOFTGPU_TABLE_BITS)
#define SOFTGPU_PTE_VALID     0x1u
#define SOFTGPU_PTE_READ_ONLY 0x2u
#define SOFTGPU_PTE_ZERO      0x4u /* reads give zero, writes change nothing */
#define SOFTGPU_PTE_SYSTEM    0x8u /* the address is one of the bus, not an offset in segment 1 */
#define SOFTGPU_PTE_ADDRESS   0x000FFFFFFFFFF000u
/*
 * The device keeps 16 entries of level 0 as one translation of 64 KiB if they are aligned, refer to
 * consecutive pages of video memory and have the same flags.
 */
#define SOFTGPU_LARGE_SHIFT   16u
#define SOFTGPU_LARGE_PAGE    ((uint64_t)1 << SOFTGPU_LARGE_SHIFT)

/*
 * Slots of the resource table: operands 0 and 1 of a command, then one for each entry of the
 * allocation list (PAT-06).
 */
#define SOFTGPU_SLOT_OF_ALLOCATION 2u
#define SOFTGPU_SLOTS              (SOFTGPU_SLOT_OF_ALLOCATION + 4096u)

/*
 * REPORT and RELOCATIONS keep their allocations bound for the rest of the buffer, other operands
 * for one command.
 */

struct softgpu_hw_stamps {
	struct softgpu_stamps user;
	uint64_t report_address;
	uint64_t report_bytes; /* 0: no REPORT before it in this buffer */
};

/* ---- commands that only DxgkDdiPresent writes ---- */
enum softgpu_present_opcode { SOFTGPU_HW_BLIT = 0x4000, SOFTGPU_HW_FLIP = 0x4001 };
#define SOFTGPU_HW_BLIT_FILL 0x1u

struct softgpu_rect {
	uint32_t x, y, width, height;
};

/*
 * Each pixel in both `to` and `clip` gets the pixel of `from` at the same relative position, or
 * with FILL `color`.
 */
struct softgpu_hw_blit {
	struct softgpu_command command;
	uint64_t source, destination;
	struct softgpu_rect from, to, clip;
	uint32_t source_pitch, destination_pitch;
	uint32_t color, reserved;
};

struct softgpu_hw_flip {
	struct softgpu_command command;
	uint64_t address;
	uint32_t width, height, pitch_bytes, reserved;
};

/* ---- paging commands ---- */
enum softgpu_paging_opcode {
	SOFTGPU_PAGING_NOP = 0x8000,
	SOFTGPU_PAGING_COPY = 0x8001,
	SOFTGPU_PAGING_FILL = 0x8002,
	SOFTGPU_PAGING_MAP = 0x8003,
	SOFTGPU_PAGING_UNMAP = 0x8004,
	SOFTGPU_PAGING_TABLE = 0x8005,
	SOFTGPU_PAGING_FLUSH = 0x8006,
	SOFTGPU_PAGING_VIRTUAL_COPY = 0x8007,
	SOFTGPU_PAGING_VIRTUAL_FILL = 0x8008
};
#define SOFTGPU_OPCODE_PRIVILEGED 0x8000u

/* One side of a paging copy: a GPU address, or a mapped MDL. */
struct softgpu_side {
	uint64_t address;
	uint32_t is_host; /* 1: address is the kernel address of an MDL's pages */
	uint32_t reserved;
};

enum softgpu_tile_mode { SOFTGPU_LINEAR = 0, SOFTGPU_TILE_X = 1, SOFTGPU_TILE_Y = 2 };

struct softgpu_paging_copy {
	struct softgpu_command command;
	struct softgpu_side source, destination;
	uint64_t length;
	/*
	 * One side may be tiled. Its address is that of the whole surface; surface_offset is the
	 * offset in the linear form from which `length` bytes are moved. The linear side's address
	 * is that of the first of these bytes.
	 */
	uint64_t surface_offset;
	uint32_t stride_bytes;
	uint16_t tile_mode;
	uint16_t destination_tiled;
};

struct softgpu_paging_fill {
	struct softgpu_command command;
	uint64_t address, length;
	uint32_t pattern, reserved;
};

/*
 * host: kernel address of the first page. For UNMAP: kernel address of the dummy page, to which
 * every page refers from then on.
 */
struct softgpu_paging_map {
	struct softgpu_command command;
	uint64_t first_page, page_count;
	uint64_t host;
};

/*
 * Writes `count` entries of a page table from `first` on, an offset in video memory. The entries
 * follow; with `is_repeated` one follows, and each gets its value.
 */
struct softgpu_paging_table {
	struct softgpu_command command;
	uint64_t first;
	uint32_t count, is_repeated;
};

/*
 * Removes translations of the addresses from `start` to before `end` from the TLBs of all engines;
 * both 0: all addresses. root: offset of the root table in video memory. When the command is
 * complete, no engine accesses memory by one of these translations any more.
 */
struct softgpu_paging_flush {
	struct softgpu_command command;
	uint64_t root, start, end;
};

/*
 * Copies or fills `length` bytes at virtual addresses. space: the host address of the address space
 * of the system's context, a struct softgpu_space. source and pattern: of a copy, of a fill.
 */
struct softgpu_paging_virtual {
	struct softgpu_command command;
	uint64_t space;
	uint64_t source, destination, length;
	uint32_t pattern, reserved;
};

/*
 * ---- private data of a DMA buffer ----
 *
 * SubmitCommand gets no kernel address of the buffer, so Render, BuildPagingBuffer and Patch store
 * it here.
 */
struct softgpu_dma_private {
	uint64_t kernel_address;
	/* paging: address of the next operation if it is appended to the same buffer */
	uint64_t next;
};

#endif
