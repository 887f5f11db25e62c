/* SPDX-License-Identifier: MIT */
/*
 * A packet of a context with GPU virtual addresses, in execution. Used by the engine's thread
 * inside the bus.
 */
#ifndef SOFTGPU_EXECUTE_VIRTUAL_H
#define SOFTGPU_EXECUTE_VIRTUAL_H

#include "softgpu_private.h"

struct softgpu_run {
	struct softgpu_engine *engine;
	const struct softgpu_space *space;
	/* bytes since the last breath; those of them that are not in video memory */
	uint64_t work, remote;
	uint32_t fence;
	uint64_t report; /* the address that the last REPORT of the packet named; 0: none */
};

/* Copy from or to the address space. SOFTGPU_PAGE_FAULT: engine->mmu.fault has the address. */
NTSTATUS softgpu_run_read(struct softgpu_run *run, uint64_t address, void *data, uint64_t length);
NTSTATUS softgpu_run_write(struct softgpu_run *run, uint64_t address, const void *data,
			   uint64_t length);

/* Accounts for `bytes` of work in video memory. Returns 0 if a reset or stop came. */
int softgpu_run_worked(struct softgpu_run *run, uint64_t bytes);

/* FILL, COPY: every page is translated when it is accessed. */
NTSTATUS softgpu_run_fill(struct softgpu_run *run, const struct softgpu_fill *command);
NTSTATUS softgpu_run_copy(struct softgpu_run *run, const struct softgpu_copy *command);

/* blit.c. A client may have written the command, so its rectangles are checked first. */
int softgpu_blit_is_valid(const struct softgpu_hw_blit *blit);
NTSTATUS softgpu_run_blit(struct softgpu_run *run, const struct softgpu_hw_blit *blit);

/* stamp_virtual.c: STAMP with run->report, which VERIFY needs; RELOCATIONS at `address` */
NTSTATUS softgpu_run_stamps(struct softgpu_run *run, const struct softgpu_stamps *stamps);
NTSTATUS softgpu_run_relocations(struct softgpu_run *run, uint64_t address,
				 const struct softgpu_relocations *command);

#endif
