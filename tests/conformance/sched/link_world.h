/* SPDX-License-Identifier: MIT */
/*
 * A world whose adapter is a link of two physical adapters, each with a GPU and memory.
 * LinkMirrored and LinkInstanced allocations have a copy on both (PAG-22, PAG-23). Packets complete
 * at once unless a test changes that.
 */
#ifndef VMM_TESTS_LINK_WORLD_H
#define VMM_TESTS_LINK_WORLD_H

#include "timeout_world.h"

#define LINK_ADAPTERS  2u
/* DXGK_ALLOCATIONINFOFLAGS */
#define LINK_MIRRORED  0x1000u
#define LINK_INSTANCED 0x2000u

/* The second adapter of the link that was created last. */
extern struct scripted_miniport *link_second;
/* A setup for world_start. A test with its own setup calls it first. */
void link_setup(struct scripted_miniport *m);
/* Ends the world and the second adapter. */
void link_stop(struct world *w);

/* Creates a context on `node` of physical adapter `adapter`. */
void link_context(struct client_device *device, uint32_t node, uint32_t engine,
		  struct client_context *context);
/* 64 KiB, CPU visible. */
D3DKMT_HANDLE link_allocate(struct world *w, uint32_t flags, uint32_t segments);
/* Evicts everything from segment 1 by using an allocation as large as the segment. */
void link_push_out(struct world *w);
/*
 * Where the last patched render packet says that its first allocation is on that adapter, and the
 * word there.
 */
struct scripted_place link_place(struct world *w, uint32_t engine);
uint32_t link_word(struct world *w, uint32_t engine, uint64_t offset);

/* Recorded paging operations of one kind for one adapter: their number, and the n-th. */
uint32_t link_count(struct world *w, uint32_t operation, uint32_t engine);
const DXGKARG_BUILDPAGINGBUFFER *link_nth(struct world *w, uint32_t operation, uint32_t engine,
					  uint32_t n);
/* Transfers from system memory, or to it. */
uint32_t link_moves(struct world *w, uint32_t engine, bool in);

#endif
