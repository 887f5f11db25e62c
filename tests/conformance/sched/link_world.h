/* SPDX-License-Identifier: MIT */
/*
 * A world whose adapter is a link of two, each with a GPU and with memory of its own: what is LinkMirrored or
 * LinkInstanced is in both (PAG-22, PAG-23). Packets complete at once unless a test says otherwise.
 */
#ifndef VMM_TESTS_LINK_WORLD_H
#define VMM_TESTS_LINK_WORLD_H

#include "timeout_world.h"

#define LINK_ADAPTERS  2u
/* DXGK_ALLOCATIONINFOFLAGS */
#define LINK_MIRRORED  0x1000u
#define LINK_INSTANCED 0x2000u

/* The other adapter of the link that was made last. */
extern struct scripted_miniport *link_second;
/* For world_start, or first in a test's own setup. */
void link_setup(struct scripted_miniport *m);
/* Ends the world, and the other adapter. */
void link_stop(struct world *w);

/* A context on that node of that adapter of the link. */
void link_context(struct client_device *device, uint32_t node, uint32_t engine,
		  struct client_context *context);
/* 64 KiB, CPU visible. */
D3DKMT_HANDLE link_allocate(struct world *w, uint32_t flags, uint32_t segments);
/* Everything else leaves segment 1 for something as large as it. */
void link_push_out(struct world *w);
/* Where the first allocation of the last patched render packet is on that adapter, and the word there. */
struct scripted_place link_place(struct world *w, uint32_t engine);
uint32_t link_word(struct world *w, uint32_t engine, uint64_t offset);

/* Paging operations that were recorded: of that kind, for that adapter, and the n-th of them. */
uint32_t link_count(struct world *w, uint32_t operation, uint32_t engine);
const DXGKARG_BUILDPAGINGBUFFER *link_nth(struct world *w, uint32_t operation, uint32_t engine,
					  uint32_t n);
/* Transfers from system memory, or to it. */
uint32_t link_moves(struct world *w, uint32_t engine, bool in);

#endif
