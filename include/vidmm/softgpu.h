/* SPDX-License-Identifier: MIT */
/*
 * softgpu's private formats: what its user-mode driver and its miniport say to each other through the DDI's opaque
 * parameters. Nothing of vidmm interprets any of this. Little-endian, 8-byte aligned.
 */
#ifndef VIDMM_SOFTGPU_H
#define VIDMM_SOFTGPU_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct _DRIVER_OBJECT;
struct _UNICODE_STRING;
int32_t softgpu_driver_entry(struct _DRIVER_OBJECT *driver, struct _UNICODE_STRING *registry_path);

/*
 * Registry values (device software key), all optional. BAR 0 is video memory: its size is the size of segment 1.
 *   ApertureSize         bytes of aperture segment 2 (default 256 MiB; 0: there is no such segment)
 *   ApertureCoherent     1: aperture has CacheCoherent (default 1)
 *   VramCpuVisible       1: segment 1 has CpuVisible (default 1)
 *   VramBanks            banks of equal size that segment 1 is divided into (default 0: none; at most 127)
 *   SwizzlingRanges      number of tile-swizzling ranges (default 64)
 *   DmaBufferSize        bytes of a DMA buffer (default 262144); AllocationListSize (default 1024); PatchLocationListSize (8192)
 *   DmaBufferSegmentSet  segments for DMA buffers (default 2 = aperture; 0 = contiguous system memory)
 *   PagingBufferSize     bytes (default 65536); PagingBufferSegment (default 2; 0: system memory)
 *   PagingNode           0: the 3D node, 1: the copy node (default)
 *   EngineBytesPerUs     execution time charged per byte of paging copies/fills on virtual time (default 20000; 0: none)
 *   PrePatch             1: DxgkDdiRender writes the addresses that the allocation list has (default 1)
 *   PerEngineTdr         1: reports SupportPerEngineTDR (default 1)
 *   PreemptionAware      1: reports PreemptionAware; a request drops what waits behind the running packet (default 0)
 *   VideoPresentSources  displays (default 0, at most 4); what they show is in BAR 1, if there is one (struct softgpu_monitor)
 *   RefreshRate          frames a second (default 60)
 *   FlipMmio             1: flips go past DMA buffers (default 1)
 *   LinkedAdapters       2: the two physical adapters that there are are a link (default 1). A context runs on the one that its
 *                        EngineAffinity names; there, too, allocations without a link flag are those of the adapter that leads
 *   InterfaceVersion     DXGKDDI_INTERFACE_VERSION_* to register with (default 0x4002, WDDM 1.3; at most that)
 */

/* ---- what DXGKQAITYPE_UMDRIVERPRIVATE answers ---- */
#define SOFTGPU_ADAPTER_INFO_VERSION 1u
struct softgpu_adapter_info {
	uint32_t version; /* SOFTGPU_ADAPTER_INFO_VERSION */
	uint32_t node_count;
	uint64_t vram_bytes, aperture_bytes;
	uint32_t paging_node, swizzling_ranges;
};

/* ---- pPrivateDriverData of one allocation (D3DDDI_ALLOCATIONINFO) ---- */
#define SOFTGPU_ALLOCATION_VERSION 3u
enum softgpu_allocation_flags {
	SOFTGPU_ALLOCATION_CPU_VISIBLE = 0x1,
	SOFTGPU_ALLOCATION_CACHED = 0x2,
	SOFTGPU_ALLOCATION_TILED_X = 0x4, /* creates a Swizzled allocation */
	SOFTGPU_ALLOCATION_TILED_Y = 0x8,
	SOFTGPU_ALLOCATION_PERMANENT_SYSTEM = 0x10,
	SOFTGPU_ALLOCATION_FROM_END = 0x20,
	SOFTGPU_ALLOCATION_PROTECTED = 0x40,
	SOFTGPU_ALLOCATION_EXISTING_SYSTEM =
		0x80, /* pSystemMem: the program's own until it deallocates */
	SOFTGPU_ALLOCATION_EXISTING_KERNEL = 0x100, /* the same, pool of a miniport's */
	SOFTGPU_ALLOCATION_OVERLAY = 0x200,
	SOFTGPU_ALLOCATION_CAPTURE = 0x400,
	SOFTGPU_ALLOCATION_SYNCHRONOUS_PAGING = 0x800,
	SOFTGPU_ALLOCATION_LINK_MIRRORED =
		0x1000, /* on every adapter of a link, with one backing store */
	SOFTGPU_ALLOCATION_LINK_INSTANCED = 0x2000 /* the same, with one each */
};
/*
 * A tiled surface has rows of stride_bytes and is stored in tiles of 4096 bytes, row of tiles after row of tiles. An X tile has 8
 * rows of 512 bytes, one after the other; a Y tile 32 rows of 128 bytes, in 8 columns of 16 bytes, a column's rows one after the
 * other. Its size is rounded up to whole rows of tiles. Commands and plain locks see the tiles; a lock with AcquireAperture sees rows
 * one behind the other, whatever its PrivateDriverData: all of a surface is one picture.
 */
struct softgpu_allocation {
	uint32_t version; /* SOFTGPU_ALLOCATION_VERSION */
	uint32_t flags;
	uint64_t size_bytes;
	uint32_t stride_bytes;      /* of tiled surfaces: whole tiles, X 512, Y 128; 0 otherwise */
	uint32_t segment_set;       /* bit n-1: segment n; 0: all there are */
	uint32_t preferred_segment; /* 0: segment 1 when in the set */
	uint32_t alignment;         /* 0: 4096 */
	uint32_t renaming_limit;    /* MaximumRenamingListLength, 0: none */
	uint32_t priority;          /* AllocationPriority, 0: normal */
	uint32_t hinted_banks;      /* HintedBank: banks of the preferred segment, 0: none */
	uint32_t eviction_set;      /* EvictionSegmentSet, 0: straight to system memory */
	/* A picture of X8R8G8B8 pixels, rows without a gap, to be presented; 0 and 0: bytes. */
	uint32_t width, height;
};

#define SOFTGPU_PIXEL_BYTES 4u

/*
 * BAR 1 is divided among the displays in equal parts of whole pages. Each begins with this, of the last picture that was read
 * completely; all zero while the display is dark. The pixels follow at SOFTGPU_MONITOR_PIXELS. Whoever reads must see to it that
 * no frame begins meanwhile: on the simulator by not waiting.
 */
#define SOFTGPU_MONITOR_PIXELS 4096u
struct softgpu_monitor {
	uint32_t width, height, pitch_bytes;
	uint32_t frame; /* how many frames have been shown */
};

/* pPrivateDriverData of a context: none. Node 0 is the 3D node, node 1 the copy node; both take every command. */

/* ---- commands ----
 * A command buffer is a sequence of commands. Operands name an entry of the allocation list and a byte offset in
 * it; the miniport checks them in DxgkDdiRender (outside the allocation: refused with STATUS_INVALID_PARAMETER; a
 * write to an entry without WriteOperation: STATUS_INVALID_PARAMETER; unknown opcode: STATUS_ILLEGAL_INSTRUCTION; a
 * privileged (paging) opcode: STATUS_PRIVILEGED_INSTRUCTION), emits a patch location for each operand's `address`, and
 * sets it when patched. In a user's command buffer `address` must be 0.
 *
 * An allocation ends where its size, rounded up to whole pages (tiled: rows of tiles), ends; offsets are below 4 GiB.
 * Offsets of WAIT, SIGNAL and REPORT are multiples of 8. RELOCATIONS and REPORT reach the first 4096 entries of the
 * list and keep them in place for the rest of the buffer, the other operands for their command only. Ranges of a COPY
 * must not overlap. Unknown flags, sizes other than the structure's and non-zero reserved members are
 * STATUS_INVALID_PARAMETER. Addresses begin to matter when the command is executed: one that decodes to nothing is a
 * DMA_FAULTED interrupt (STATUS_ACCESS_VIOLATION).
 */
enum softgpu_opcode {
	SOFTGPU_NOP = 0,
	SOFTGPU_REFERENCE =
		1, /* reads (flag WRITE: and rewrites) the 32-bit word at the operand: the cheapest use */
	SOFTGPU_FILL = 2,
	SOFTGPU_COPY = 3,
	SOFTGPU_STAMP = 4,
	SOFTGPU_RELOCATIONS = 5,
	SOFTGPU_REPORT = 6, /* where this buffer's stamp errors are written */
	SOFTGPU_WAIT = 7,   /* until the 64-bit word at the operand is >= value */
	SOFTGPU_SIGNAL = 8, /* writes value to the 64-bit word at the operand */
	SOFTGPU_STALL = 9,  /* the engine is busy for `nanoseconds` */
	SOFTGPU_HANG = 10,  /* the engine never finishes this buffer */
	/* Faults of the device and of its driver, on command. */
	SOFTGPU_LOSE_INTERRUPT =
		11, /* of this buffer's end: it is told when somebody asks for the fence */
	SOFTGPU_REPEAT_INTERRUPT = 12, /* of this buffer's end: it comes twice */
	SOFTGPU_ANSWER = 13            /* DxgkDdiRender returns `status`, whatever comes behind */
};

struct softgpu_command {
	uint16_t opcode;
	uint16_t flags;
	uint32_t size_bytes; /* of the whole command, multiple of 8 */
};

struct softgpu_operand {
	uint32_t allocation; /* index in the allocation list */
	uint32_t reserved;   /* 0 */
	uint64_t offset;     /* byte offset in the allocation */
	uint64_t address;    /* 0; patched by the miniport */
};

#define SOFTGPU_FLAG_WRITE \
	0x1u /* REFERENCE, STAMP: the operand is written (needs WriteOperation) */
#define SOFTGPU_FLAG_VERIFY 0x2u /* STAMP: check what is there first */
#define SOFTGPU_FLAG_CHECK  0x4u /* RELOCATIONS: every patched address must decode to memory */

struct softgpu_reference {
	struct softgpu_command command;
	struct softgpu_operand operand;
};
struct softgpu_fill {
	struct softgpu_command command;
	struct softgpu_operand operand;
	uint64_t length;
	uint32_t pattern, reserved;
};
struct softgpu_copy {
	struct softgpu_command command;
	struct softgpu_operand source, destination;
	uint64_t length;
};
struct softgpu_sync {
	struct softgpu_command command;
	struct softgpu_operand operand;
	uint64_t value;
}; /* WAIT, SIGNAL */
struct softgpu_stall {
	struct softgpu_command command;
	uint64_t nanoseconds;
};

struct softgpu_answer {
	struct softgpu_command command;
	int32_t status;
	uint32_t reserved;
};

/*
 * Stamps: the first 16 bytes of each block of a buffer say which buffer, block and version it is.
 * Verify: blocks [first_block, +block_count) at operand.offset + i * block_size must carry (buffer, expected_version).
 * Write: then they get new_version. A block never written is all zero and has version 0.
 */
struct softgpu_stamp {
	uint32_t buffer;  /* the client's number of the buffer */
	uint32_t version; /* 1, 2, 3 ... */
	uint32_t block;   /* index in the buffer, from its start */
	uint32_t check;   /* softgpu_stamp_check of the other three */
};
static inline uint32_t softgpu_stamp_check(uint32_t buffer, uint32_t version, uint32_t block)
{
	uint64_t x = ((uint64_t)buffer << 32 | version) * 0x9E3779B97F4A7C15u + block;

	x ^= x >> 29;
	x *= 0xBF58476D1CE4E5B9u;
	return (uint32_t)(x >> 32) | 1u;
}
struct softgpu_stamps {
	struct softgpu_command command;
	struct softgpu_operand operand; /* offset of first_block's start */
	uint32_t first_block, block_count;
	uint32_t block_size; /* bytes */
	uint32_t buffer;
	uint32_t expected_version, new_version;
};

/*
 * count slots follow; the client's patch locations point into them (PatchOffset = the slot's offset from the first
 * command), in the order of the tables; the other members of a patch location it fills in are AllocationIndex and
 * AllocationOffset. The slot then holds that allocation's address plus that offset. What the client puts into the slots
 * is not taken over; a slot without a patch location is 0.
 */
struct softgpu_relocations {
	struct softgpu_command command;
	uint32_t count, reserved; /* uint64_t slot[count] */
};

/*
 * Nothing outlives a command. Where the last element of the allocation list is NULL, DxgkDdiRender therefore unbinds the
 * slots of each command behind it, and a DMA buffer that does not fit may be split between any two commands; without
 * that, what a RELOCATIONS command named stays bound.
 *
 * REPORT concerns the STAMP commands behind it. The allocation a REPORT command names holds this, then `capacity` records;
 * `count` goes on beyond capacity. A mismatch without a REPORT is a DMA_FAULTED interrupt (STATUS_DATA_ERROR).
 */
struct softgpu_report_record {
	uint32_t buffer, block, expected_version, found_version, found_buffer, found_block, fence,
		reserved;
};
struct softgpu_report {
	uint64_t count;
	uint32_t capacity, reserved; /* struct softgpu_report_record record[] */
};
struct softgpu_report_command {
	struct softgpu_command command;
	struct softgpu_operand operand;
};

#ifdef __cplusplus
}
#endif
#endif
