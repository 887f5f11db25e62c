/* SPDX-License-Identifier: MIT */
/*
 * A command adapter: what the tools need to know of a miniport's private formats. Its author writes
 * one shared object, which `vidmm replay --driver FILE.so --commands ADAPTER.so` and `vidmm
 * conform` load (docs/replay.md, docs/conform.md). It describes allocations to the miniport and
 * writes the few commands by which a tool fills, copies and reads memory. The tool does the rest:
 * it creates allocations and contexts, lists operands, submits, waits and compares. (Q-400 to
 *
 *
 * Two ways of submission. With VIDMM_COMMANDS_RENDER the buffer is a command buffer of pfnRenderCb:
 * an operand names an entry of the allocation list, and the adapter appends a patch location
 * wherever the miniport needs the client's. With VIDMM_COMMANDS_VIRTUAL (WDDM 2.x with GPU virtual
 * addresses) the buffer is memory at a GPU virtual address for pfnSubmitCommandCb, an operand has a
 * GPU virtual address, and there are no patch locations.
 *
 * Units. Sizes, offsets and lengths are bytes.
 *
 * Threads. The tool makes one call at a time, on any of its threads, and none while the adapter is
 * in another one. The functions must not block and must not call vidmm.
 *
 * Errors. A function that returns another value than OK must leave the buffer as it was. A result
 * that is no enum vidmm_commands_result, a write outside the arrays of a buffer, or counts that
 * exceed the capacity or fall end the run with a finding.
 */
#ifndef VIDMM_COMMANDS_H
#define VIDMM_COMMANDS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes when an adapter that was compiled for an earlier one can no longer be used. */
#define VIDMM_COMMANDS_VERSION       1u
/* The longest private driver data, and the longest name without its terminator. */
#define VIDMM_COMMANDS_PRIVATE_MAX   4096u
#define VIDMM_COMMANDS_NAME_MAX      31u
/* The largest alignment. */
#define VIDMM_COMMANDS_ALIGNMENT_MAX 4096u

enum vidmm_commands_result {
	VIDMM_COMMANDS_OK = 0,
	/*
	 * The command does not fit: the tool submits the buffer and calls again with an empty one.
	 */
	VIDMM_COMMANDS_FULL = 1,
	/* The miniport has no such command: the tool uses another way, or the CPU. */
	VIDMM_COMMANDS_NOT_SUPPORTED = 2
};

enum vidmm_commands_submission { VIDMM_COMMANDS_RENDER = 1, VIDMM_COMMANDS_VIRTUAL = 2 };

/* What the miniport reported when its adapter started (caps.h has the meaning of each word). */
struct vidmm_commands_driver {
	uint32_t struct_size;            /* sizeof(struct vidmm_commands_driver) */
	uint32_t interface_version;      /* DXGKDDI_INTERFACE_VERSION_* */
	uint32_t wddm_version;           /* DXGK_WDDMVERSION; 0: a miniport of 1.0 */
	uint32_t memory_management_caps; /* DXGK_VIDMMCAPS */
	uint32_t segment_count, node_count;
};

/* ---- allocations ---- */

/* ---- flags of an allocation ---- */
#define VIDMM_COMMANDS_CPU_VISIBLE 0x1u /* the CPU can lock it */
#define VIDMM_COMMANDS_SHARED      0x2u /* other processes will open it */
/* Small and often read or written by the CPU: in system memory, if the miniport has a choice. */
#define VIDMM_COMMANDS_STAGING     0x4u
/* Holds command buffers of VIDMM_COMMANDS_VIRTUAL; CPU_VISIBLE and STAGING are set, too. */
#define VIDMM_COMMANDS_BUFFERS     0x8u

struct vidmm_commands_allocation {
	uint64_t size_bytes; /* in: a multiple of 4096 */
	/*
	 * in: what the tool wants. The function clears CPU_VISIBLE if the CPU cannot lock this
	 * allocation; then the tool reaches it by copies. It must stay set with STAGING.
	 */
	uint32_t flags;
	uint32_t segment; /* in: 1 to segment_count, where it should be placed; 0: anywhere */
	/*
	 * out: pPrivateDriverData of the allocation and of the resource, up to
	 * VIDMM_COMMANDS_PRIVATE_MAX bytes each, all 0 and with length 0 at first.
	 */
	uint8_t *private_data, *resource_data;
	uint32_t private_bytes, resource_bytes;
};

/* ---- commands ---- */

/* A range of an allocation that a command uses. */
struct vidmm_commands_operand {
	uint32_t index; /* RENDER: entry of the allocation list, with WriteOperation if written */
	uint32_t reserved;
	uint64_t offset;      /* in the allocation */
	uint64_t gpu_address; /* VIRTUAL: of the byte at the offset; RENDER: 0 */
	uint64_t size_bytes;  /* of the allocation */
};

/* The members of D3DDDI_PATCHLOCATIONLIST. */
struct vidmm_commands_patch {
	uint32_t allocation_index; /* of the operand */
	uint32_t slot_id;          /* below 2^24 */
	uint32_t driver_id;
	uint32_t allocation_offset; /* in the allocation */
	uint32_t patch_offset;      /* in the command buffer, below its `used` */
	uint32_t split_offset;
};

/* A command buffer. The functions write at `commands + used` and raise the counts. */
struct vidmm_commands_buffer {
	uint8_t *commands;       /* aligned to 8 bytes */
	uint32_t capacity, used; /* used is 0 in a new buffer: the place for a header */
	struct vidmm_commands_patch *patches; /* of RENDER */
	uint32_t patch_capacity, patch_count;
	/* pPrivateDriverData of pfnRenderCb or pfnSubmitCommandCb. */
	uint8_t *private_data;
	uint32_t private_capacity, private_bytes; /* private_bytes 0: none */
	/*
	 * VIRTUAL: where the commands will be when they are submitted. `commands` is a copy: for
	 * formats that contain their address. RENDER: 0.
	 */
	uint64_t gpu_address, cpu_address;
};

/* ---- flags of a barrier ---- */
/* The buffer ends here; the next call begins another one. end_bytes are reserved for this. */
#define VIDMM_COMMANDS_END 0x1u

/*
 * What an adapter is. struct_size and version come first in every version. `context` is the first
 * argument of every function. allocation, copy, fill, read_back and barrier are not NULL.
 */
struct vidmm_commands {
	uint32_t struct_size; /* sizeof(struct vidmm_commands) */
	uint32_t version;     /* VIDMM_COMMANDS_VERSION */
	/* 1 to VIDMM_COMMANDS_NAME_MAX printable ASCII characters */
	const char *name;
	uint32_t submission; /* enum vidmm_commands_submission */
	uint32_t node;       /* NodeOrdinal of contexts, below node_count */
	/*
	 * Offsets and lengths are multiples of these: a power of 2, up to
	 * VIDMM_COMMANDS_ALIGNMENT_MAX. A fill with fill_alignment above 4 is not used.
	 */
	uint32_t copy_alignment, fill_alignment;
	uint32_t end_bytes;    /* space that a barrier with VIDMM_COMMANDS_END may need */
	uint64_t longest_copy; /* a longer copy is divided; 0: any length */
	/* pPrivateDriverData of each context, up to VIDMM_COMMANDS_PRIVATE_MAX; NULL: none */
	const void *context_data;
	uint32_t context_data_bytes, reserved;
	void *context;

	/*
	 * Describes an allocation to the miniport. NOT_SUPPORTED: there can be no such allocation;
	 * FULL is not a result of this function.
	 */
	enum vidmm_commands_result (*allocation)(void *context,
						 struct vidmm_commands_allocation *allocation);
	/* Copies `length` bytes. The operands are ranges of different allocations. */
	enum vidmm_commands_result (*copy)(void *context, struct vidmm_commands_buffer *buffer,
					   const struct vidmm_commands_operand *to,
					   const struct vidmm_commands_operand *from,
					   uint64_t length);
	/* Sets each 32-bit word of `length` bytes to `pattern`. */
	enum vidmm_commands_result (*fill)(void *context, struct vidmm_commands_buffer *buffer,
					   const struct vidmm_commands_operand *to, uint64_t length,
					   uint32_t pattern);
	/*
	 * Makes what earlier commands of the context wrote to the range readable for a CPU that
	 * locks the allocation after the end of the buffer. OK without a command if it is readable
	 * anyway.
	 */
	enum vidmm_commands_result (*read_back)(void *context, struct vidmm_commands_buffer *buffer,
						const struct vidmm_commands_operand *range,
						uint64_t length);
	/*
	 * Orders the commands before it and those after it, if the engine does not do so anyway.
	 * flags: VIDMM_COMMANDS_END or 0.
	 */
	enum vidmm_commands_result (*barrier)(void *context, struct vidmm_commands_buffer *buffer,
					      uint32_t flags);
};

/*
 * Returns the description for the miniport that has just started, or NULL if the adapter does not
 * know it. It stays valid until the next call of this function. Called once for each start.
 */
typedef const struct vidmm_commands *vidmm_commands_describe_fn(
	const struct vidmm_commands_driver *driver);

/* What a shared object exports. */
#define VIDMM_COMMANDS_EXPORT __attribute__((visibility("default")))
VIDMM_COMMANDS_EXPORT vidmm_commands_describe_fn vidmm_commands_describe;

#ifdef __cplusplus
}
#endif

#endif
