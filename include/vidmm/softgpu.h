/* SPDX-License-Identifier: MIT */
/*
 * The private formats of softgpu, the software GPU: what its user-mode driver and its miniport
 * exchange in the opaque parameters of the DDI. vidmm interprets none of it. Everything is
 * little-endian and aligned to 8 bytes. Sizes and offsets are bytes.
 */
#ifndef VIDMM_SOFTGPU_H
#define VIDMM_SOFTGPU_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct _DRIVER_OBJECT;
struct _UNICODE_STRING;
/* The DriverEntry of the miniport, for vidmm_adapter_options.driver_entry. Returns an NTSTATUS. */
int32_t softgpu_driver_entry(struct _DRIVER_OBJECT *driver, struct _UNICODE_STRING *registry_path);

/*
 * Registry values (device software key), all optional. BAR 0 is video memory, segment 1.
 *   ApertureSize           bytes of aperture segment 2 (default 256 MiB; 0: no such segment)
 *   ApertureCoherent       1: segment 2 has CacheCoherent (default 1)
 *   VramCpuVisible         1: segment 1 has CpuVisible (default 1)
 *   VramBanks              number of equal banks of segment 1 (default 0: none; at most 127)
 *   SwizzlingRanges        number of tile-swizzling ranges (default 64)
 *   DmaBufferSize          bytes of a DMA buffer (default 262144)
 *   AllocationListSize     entries (default 1024)
 *   PatchLocationListSize  entries (default 8192)
 *   DmaBufferSegmentSet    segments for DMA buffers (default 2: the aperture; 0: contiguous
 *                          system memory)
 *   PagingBufferSize       bytes of a paging buffer (default 65536)
 *   PagingBufferSegment    its segment (default 2; 0: system memory)
 *   PagingNode             0: the 3D node, 1: the copy node (default 1)
 *   EngineBytesPerUs       bytes of paging copies and fills that take 1 us of engine time
 *                          (default 20000; 0: they take no time)
 *   HostLinkBytesPerUs     bytes that the link to system memory moves in 1 us, in each direction.
 *                          Paging copies and fills outside of video memory, and TRAFFIC there,
 *                          then take this time (default 0: there is no such limit)
 *   HostLinkLatencyNs      ns that each paging operation takes besides (default 0)
 *   HostLinkPasses         how often a TRAFFIC outside of video memory moves each byte over the
 *                          link (default 1)
 *   MoveContent            model 1: 0: paging and commands that copy or fill take their time and
 *                          move no bytes, so content is arbitrary (default 1)
 *   PrePatch               1: DxgkDdiRender writes the addresses that the allocation list gives
 *                          into the DMA buffer (default 1)
 *   PerEngineTdr           1: reports SupportPerEngineTDR (default 1)
 *   PreemptionAware        1: reports PreemptionAware; a preemption gives back the packets that
 *                          wait behind the running one (default 0: it waits for them, too)
 *   VideoPresentSources    number of displays (default 0, at most 4); BAR 1, if it exists, holds
 *                          what they show (struct softgpu_monitor)
 *   RefreshRate            frames per second (default 60)
 *   FlipMmio               1: flips do not use DMA buffers (default 1)
 *   LinkedAdapters         2: the two physical adapters form a link (default 1). A context runs on
 *                          the adapter that its EngineAffinity names. Allocations without a link
 *                          flag are on the lead adapter
 *   Model                  enum softgpu_model: 1 is WDDM 1.x (default), 2 is WDDM 2.x (default of
 *                          `vidmm run` and `vidmm serve`)
 *   InterfaceVersion       DXGKDDI_INTERFACE_VERSION_* to register. Model 1: default 0x4002, WDDM
 *                          1.3, and none later. Model 2: default 0xB004, WDDM 2.6, from 2.0 to
 *                          2.7. softgpu refuses to load with another one
 *   PageTableLevels        model 2: levels of page tables. 4 (default): addresses of 48 bits. 2:
 *                          addresses of 40 bits, with a root table that grows
 *   VramPageSize           model 2: bytes of a page of segment 1, 4096 (default) or 65536
 *   HardwareQueues         model 2 from 2.4 on: enum softgpu_hardware_queues (default 0). The host
 *                          must enable VIDMM_FEATURE_HWSCH, too; `vidmm serve` and `run` do
 *
 * Model 2 has GPU virtual addresses (GpuMmu). It needs an aperture, and has neither banks, links
 * nor swizzling ranges: SwizzlingRanges has no effect.
 */
enum softgpu_model { SOFTGPU_MODEL_WDDM1 = 1, SOFTGPU_MODEL_WDDM2 = 2 };

/*
 * Hardware queues: both nodes take them, besides DMA buffers. Commands are those of virtual
 * contexts. The engine takes queues by the priority of their contexts, and in turn. A command that
 * waits for a value (WAIT) lets other queues run. Suspension takes effect between two commands, or
 * inside WAIT and STALL, but not inside HANG.
 */
enum softgpu_hardware_queues {
	SOFTGPU_HARDWARE_QUEUES_NONE = 0,
	/* The engine stores the progress fence at the end of each submission. */
	SOFTGPU_HARDWARE_QUEUES_ENGINE_RELEASES = 1,
	/*
	 * Without RingBufferFenceRelease: the last command of each submission is a SIGNAL of the
	 * progress fence.
	 */
	SOFTGPU_HARDWARE_QUEUES_COMMANDS_RELEASE = 2
};

/* ---- output of DXGKQAITYPE_UMDRIVERPRIVATE ---- */
#define SOFTGPU_ADAPTER_INFO_VERSION 1u
struct softgpu_adapter_info {
	uint32_t version; /* SOFTGPU_ADAPTER_INFO_VERSION */
	uint32_t node_count;
	uint64_t vram_bytes, aperture_bytes;
	uint32_t paging_node, swizzling_ranges;
};

/*
 * ---- pPrivateDriverData of an escape (D3DKMTEscape, type DRIVERPRIVATE, 32 bytes) ----
 *
 * The caller sets the first two members, softgpu the others. It refuses another size, version or
 * command with STATUS_INVALID_PARAMETER.
 */
#define SOFTGPU_ESCAPE_VERSION 1u
enum softgpu_escape_command { SOFTGPU_ESCAPE_QUERY = 1 };
struct softgpu_escape {
	uint32_t version;           /* SOFTGPU_ESCAPE_VERSION */
	uint32_t command;           /* enum softgpu_escape_command */
	uint32_t interface_version; /* DXGKDDI_INTERFACE_VERSION_* that softgpu registered */
	uint32_t node_count;
	uint64_t vram_bytes, aperture_bytes;
};

/* ---- pPrivateDriverData of one allocation (D3DDDI_ALLOCATIONINFO) ---- */
#define SOFTGPU_ALLOCATION_VERSION 3u
enum softgpu_allocation_flags {
	SOFTGPU_ALLOCATION_CPU_VISIBLE = 0x1,
	SOFTGPU_ALLOCATION_CACHED = 0x2,
	SOFTGPU_ALLOCATION_TILED_X = 0x4, /* X or Y: a Swizzled allocation */
	SOFTGPU_ALLOCATION_TILED_Y = 0x8,
	SOFTGPU_ALLOCATION_PERMANENT_SYSTEM = 0x10,
	SOFTGPU_ALLOCATION_FROM_END = 0x20,
	SOFTGPU_ALLOCATION_PROTECTED = 0x40,
	/* over the program's memory (pSystemMem), which remains the program's */
	SOFTGPU_ALLOCATION_EXISTING_SYSTEM = 0x80,
	SOFTGPU_ALLOCATION_EXISTING_KERNEL = 0x100, /* over pool of a miniport */
	SOFTGPU_ALLOCATION_OVERLAY = 0x200,
	SOFTGPU_ALLOCATION_CAPTURE = 0x400,
	SOFTGPU_ALLOCATION_SYNCHRONOUS_PAGING = 0x800,
	/* on every adapter of a link, with one backing store for all */
	SOFTGPU_ALLOCATION_LINK_MIRRORED = 0x1000,
	/* on every adapter of a link, with one backing store for each */
	SOFTGPU_ALLOCATION_LINK_INSTANCED = 0x2000,
	/*
	 * Model 2: used by contexts with patching. Pictures always are. Without it the allocation
	 * is reached by GPU virtual addresses only.
	 */
	SOFTGPU_ALLOCATION_ACCESSED_PHYSICALLY = 0x4000
};
/*
 * Model 2 refuses TILED_X, TILED_Y, SYNCHRONOUS_PAGING, LINK_MIRRORED, LINK_INSTANCED, a renaming
 * limit and hinted banks, which WDDM 2.x does not have.
 *
 * A tiled surface has rows of stride_bytes and is stored as tiles of 4096 bytes, one row of tiles
 * after the other. An X tile has 8 rows of 512 bytes in sequence. A Y tile has 32 rows of 128
 * bytes, stored as 8 columns of 16 bytes, the rows of a column in sequence. The size is rounded up
 * to whole rows of tiles. Commands and plain locks access the tiled form. A lock with
 * AcquireAperture accesses the linear form of the whole surface, whatever its PrivateDriverData.
 */
struct softgpu_allocation {
	uint32_t version; /* SOFTGPU_ALLOCATION_VERSION */
	uint32_t flags;
	uint64_t size_bytes;
	uint32_t stride_bytes;      /* tiled: a multiple of 512 (X) or 128 (Y); else 0 */
	uint32_t segment_set;       /* bit n-1: segment n; 0: all segments */
	uint32_t preferred_segment; /* 0: segment 1 if it is in the set */
	uint32_t alignment;         /* 0: 4096 */
	uint32_t renaming_limit;    /* MaximumRenamingListLength, 0: none */
	uint32_t priority;          /* AllocationPriority, 0: normal */
	uint32_t hinted_banks;      /* HintedBank: banks of the preferred segment, 0: none */
	uint32_t eviction_set;      /* EvictionSegmentSet, 0: directly to system memory */
	/* An image of X8R8G8B8 pixels without gaps between rows, for presents; 0: none. */
	uint32_t width, height;
};

#define SOFTGPU_PIXEL_BYTES 4u

/*
 * BAR 1 is divided among the displays in equal parts of whole pages. Each part begins with this
 * structure, which describes the last frame that was scanned out completely; all zero: the display
 * is dark. The pixels follow at offset SOFTGPU_MONITOR_PIXELS. A new frame overwrites them: a
 * program that reads them must make sure that none begins meanwhile. On a sim host no frame begins
 * until the reading thread waits.
 */
#define SOFTGPU_MONITOR_PIXELS 4096u
struct softgpu_monitor {
	uint32_t width, height, pitch_bytes;
	uint32_t frame; /* number of frames shown */
};

/*
 * A context has no pPrivateDriverData. Node 0 is the 3D node, node 1 the copy node; both execute
 * every command.
 */

/* ---- commands ----
 * A command buffer is a sequence of commands. An operand names an entry of the allocation list and
 * an offset in that allocation. DxgkDdiRender checks the commands, emits one patch location for the
 * `address` of each operand, and DxgkDdiPatch writes the address. In a user's command buffer
 * `address` must be 0.
 *
 * DxgkDdiRender returns
 *   STATUS_INVALID_PARAMETER       an operand outside its allocation, a write to an entry without
 *                                  WriteOperation, an unknown flag, a size other than the
 *                                  structure's, or a reserved member that is not 0
 *   STATUS_ILLEGAL_INSTRUCTION     an unknown opcode
 *   STATUS_PRIVILEGED_INSTRUCTION  an opcode of paging buffers
 *
 * The size of an allocation is rounded up to whole pages, of a tiled one to whole rows of tiles.
 * Offsets are below 4 GiB; those of WAIT, SIGNAL and REPORT are multiples of 8. The ranges of a
 * COPY must not overlap. RELOCATIONS and REPORT can reference the first 4096 entries of the list.
 * What they reference stays resident to the end of the buffer. What another operand references
 * stays resident to the end of its command.
 *
 * Addresses are used when the command executes. An address that decodes to no memory causes a
 * DMA_FAULTED interrupt (STATUS_ACCESS_VIOLATION).
 *
 * Virtual contexts (model 2). The client writes commands to memory of its choice and submits their
 * GPU virtual address. `address` of an operand is a GPU virtual address; the other members of the
 * operand are 0. Such contexts execute every command but ANSWER, with exactly the size of the
 * command's structure, RELOCATIONS with its slots. SIGNAL to the GPU virtual address of a monitored
 * fence signals the fence when the packet ends, or at once with NOTIFY. Lengths may exceed 4 GiB.
 * The client writes GPU virtual addresses into the slots of RELOCATIONS; with CHECK each must have
 * memory. A STAMP with VERIFY needs a REPORT before it in the packet; the capacity of the report
 * is as the client wrote it.
 *
 * The engine reads and checks a command when it executes it. It raises DMA_PAGE_FAULTED with
 *   GeneralErrorCode PAGE_FAULT           and the address: an address without memory, or a write
 *                                         to a read-only one. The command may have had an effect
 *   GeneralErrorCode INVALID_INSTRUCTION  and the command's address: an unknown opcode, size or
 *                                         flag, one of paging buffers, a member that is not 0, an
 *                                         address of WAIT, SIGNAL or REPORT that is no multiple of
 *                                         8, or a STAMP with VERIFY without a REPORT
 * Then the packet ends, and the engine executes the next one.
 */
enum softgpu_opcode {
	SOFTGPU_NOP = 0,
	/* the cheapest reference: reads the 32-bit word at the operand; flag WRITE: rewrites it */
	SOFTGPU_REFERENCE = 1,
	SOFTGPU_FILL = 2,
	SOFTGPU_COPY = 3,
	SOFTGPU_STAMP = 4,
	SOFTGPU_RELOCATIONS = 5,
	SOFTGPU_REPORT = 6, /* names the allocation that receives stamp errors */
	SOFTGPU_WAIT = 7,   /* waits until the 64-bit word at the operand is >= value */
	SOFTGPU_SIGNAL = 8, /* writes value to the 64-bit word at the operand */
	SOFTGPU_STALL = 9,  /* keeps the engine busy for `nanoseconds` */
	SOFTGPU_HANG = 10,  /* the engine never completes this buffer */
	/* Faults of the device and of its driver, for tests. */
	/* no completion interrupt of this buffer; DxgkDdiQueryCurrentFence reports it complete */
	SOFTGPU_LOSE_INTERRUPT = 11,
	SOFTGPU_REPEAT_INTERRUPT = 12, /* the completion interrupt of this buffer comes twice */
	SOFTGPU_ANSWER = 13,           /* DxgkDdiRender returns `status` and ignores the rest */
	/* a REFERENCE that takes the time of an access to `length` bytes */
	SOFTGPU_TRAFFIC = 14
};

struct softgpu_command {
	uint16_t opcode;
	uint16_t flags;
	uint32_t size_bytes; /* of the whole command, a multiple of 8 */
};

struct softgpu_operand {
	uint32_t allocation; /* index in the allocation list */
	uint32_t reserved;   /* 0 */
	uint64_t offset;     /* byte offset in the allocation */
	uint64_t address;    /* 0; the miniport patches it */
};

/* REFERENCE, TRAFFIC, STAMP: writes the operand (needs WriteOperation) */
#define SOFTGPU_FLAG_WRITE  0x1u
#define SOFTGPU_FLAG_VERIFY 0x2u /* STAMP: compares the present stamps first */
#define SOFTGPU_FLAG_CHECK  0x4u /* RELOCATIONS: every patched address must decode to memory */
/* SIGNAL of a virtual context: raises MONITORED_FENCE_SIGNALED at once */
#define SOFTGPU_FLAG_NOTIFY 0x8u

struct softgpu_reference {
	struct softgpu_command command;
	struct softgpu_operand operand;
};
/*
 * The engine is busy for `nanoseconds` if the operand is in video memory. Elsewhere it is busy for
 * the time that the host link takes for HostLinkPasses times `length` bytes, if that is longer. All
 * bytes count as being where the first one is, and only the first four are accessed. A `length`
 * below 4 is invalid.
 */
struct softgpu_traffic {
	struct softgpu_command command;
	struct softgpu_operand operand;
	uint64_t length;
	uint64_t nanoseconds;
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
 * Stamps: the first 16 bytes of each block of a buffer name its buffer, block and version. A STAMP
 * command works on block_count blocks from first_block on; block first_block + i is at
 * operand.offset + i * block_size. VERIFY: each must have (buffer, expected_version). WRITE: then
 * each gets new_version. A block that was never written is all zero and has version 0.
 */
struct softgpu_stamp {
	uint32_t buffer;  /* number that the client gave the buffer */
	uint32_t version; /* 1, 2, 3 ... */
	uint32_t block;   /* index in the buffer */
	uint32_t check;   /* softgpu_stamp_check of the other members */
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
	struct softgpu_operand operand; /* offset: the start of first_block */
	uint32_t first_block, block_count;
	uint32_t block_size; /* bytes */
	uint32_t buffer;
	uint32_t expected_version, new_version;
};

/*
 * `count` slots of 8 bytes follow. The client's patch locations name them: PatchOffset is the
 * offset of a slot from the first command. The locations are in the order of the RELOCATIONS
 * commands. The client also sets AllocationIndex and AllocationOffset; the slot receives the
 * address of that allocation plus that offset. What the client wrote into the slots is ignored; a
 * slot without a patch location is 0.
 */
struct softgpu_relocations {
	struct softgpu_command command;
	uint32_t count, reserved; /* uint64_t slot[count] */
};

/*
 * Splitting: no command depends on state of an earlier one, so a DMA buffer that does not fit may
 * be split before any command that references memory. Most commands bind their operands to slots
 * (SlotId) that the next command binds anew. An allocation that a RELOCATIONS or REPORT command
 * references has a separate slot. It stays bound, and therefore resident, to the end of the buffer.
 * A client ends this retention with an allocation list whose last handle is 0. DxgkDdiRender then
 * emits, before each command but the first, patch locations that unbind the slots of the command
 * before it.
 *
 * A REPORT command applies to the STAMP commands after it. The allocation that it names holds this
 * structure and then `capacity` records; `count` also counts errors beyond capacity. A mismatch
 * without a REPORT causes a DMA_FAULTED interrupt (STATUS_DATA_ERROR).
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
