/* SPDX-License-Identifier: MIT */
/*
 * The user-mode driver of a foreign miniport, which does not know the commands of softgpu. It does
 * what the driver of its version of WDDM does (umd_wddm1.c, umd_wddm2.c), but a command adapter
 * (vidmm/commands.h) describes allocations and writes the commands.
 *
 * Content is the same as with softgpu: stamps at the beginning of blocks. The GPU writes a stamp by
 * four fills, or by a copy from a staging allocation into which the CPU has written it. The GPU
 * reads a stamp by a copy into a reading allocation, in which the CPU compares it later. A
 * miniport that can only fill reads nothing: a read becomes a fill beside the stamp, and the CPU
 * compares stamps when it locks a buffer.
 */
#ifndef VIDMM_TOOLS_UMD_FOREIGN_H
#define VIDMM_TOOLS_UMD_FOREIGN_H

#include "command_adapter.h"
#include "umd_wddm2.h"

#define FOREIGN_STAGINGS      4u
#define FOREIGN_STAGING_BYTES 65536u
#define FOREIGN_READINGS      2u
#define FOREIGN_OPS_MAX       256u
#define FOREIGN_STAMP_BYTES   16u /* sizeof(struct softgpu_stamp) */
/* Blocks that one submission writes of a buffer; the next one writes the blocks after them. */
#define FOREIGN_BLOCKS_MAX    16u

enum foreign_kind {
	FOREIGN_WRITE_COPY, /* the stamp, by a copy from the staging allocation */
	FOREIGN_WRITE_FILL, /* the stamp, by four fills */
	FOREIGN_READ,       /* the stamp, by a copy to the reading allocation */
	FOREIGN_TOUCH_READ, /* the same, of unknown content */
	FOREIGN_TOUCH_FILL, /* a word beside the stamp */
	FOREIGN_COPY        /* `length` bytes from slot 0 to slot 1 at the same offset */
};

/* One operation on the allocation of a slot. */
struct foreign_op {
	enum foreign_kind kind;
	uint32_t slot;
	uint64_t offset, length;
	struct softgpu_stamp stamp; /* to be written, or expected */
};

/* An allocation for stamps that the GPU has read, and what each must be. */
struct foreign_reading {
	struct umd_buffer buffer;
	struct softgpu_stamp expected[FOREIGN_OPS_MAX];
	bool compared[FOREIGN_OPS_MAX]; /* false: the content is unknown */
	uint32_t count;
};

struct umd_foreign {
	const struct vidmm_commands *commands;
	struct command_writer *writer;
	const struct umd_model *base; /* of its version of WDDM */
	struct umd_model model;
	bool can_copy, can_fill;
	uint32_t stride; /* bytes that are copied for a stamp */
	struct umd_buffer staging[FOREIGN_STAGINGS];
	struct foreign_reading reading[FOREIGN_READINGS];
	unsigned staging_turn, reading_turn;
	struct umd_buffer *staged; /* with content of the caller, for the next run; or NULL */
	uint64_t block_turn;
	/* The work that is being planned: its allocations, then staging and reading. */
	struct umd_slot slots[FOREIGN_OPS_MAX + 2];
	uint32_t slot_count;
	struct foreign_op ops[FOREIGN_OPS_MAX];
	uint32_t op_count;
};

static inline bool foreign_is_virtual(const struct umd_foreign *foreign)
{
	return foreign->commands->submission == VIDMM_COMMANDS_VIRTUAL;
}

/* umd_foreign.c */
/* Reports what the adapter broke. Returns the status with which the replay ends. */
enum replay_status foreign_broken(struct umd *umd);

/* umd_foreign_memory.c */
enum replay_status foreign_memory_create(struct umd *umd);
void foreign_memory_free(struct umd *umd);
/* Locks the next staging allocation for writing. */
enum replay_status foreign_staging_lock(struct umd *umd, struct umd_buffer **staging, char **data);
enum replay_status foreign_unlock(struct umd *umd, struct umd_buffer *buffer);
/* Makes sure that COUNT stamps can be read into the current reading allocation. */
enum replay_status foreign_reading_reserve(struct umd *umd, uint32_t count);

/* umd_foreign_work.c: begin, add slots and operations, then run. */
void foreign_begin(struct umd *umd);
struct umd_slot *foreign_add_slot(struct umd *umd, const struct umd_slot *slot);
void foreign_add(struct umd *umd, struct foreign_op op);
enum replay_status foreign_run(struct umd *umd, struct umd_context *context);

#endif
