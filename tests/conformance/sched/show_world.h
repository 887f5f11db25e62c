/* SPDX-License-Identifier: MIT */
/*
 * For tests of presents and flips: besides world's device one of a D3DKMT client, with a context of node 0, on a scripted
 * miniport that has two sources and flips past the DMA buffer unless told otherwise.
 */
#ifndef VMM_TESTS_SHOW_WORLD_H
#define VMM_TESTS_SHOW_WORLD_H

#include "sched_world.h"

#include <d3dkmthk.h>

struct show {
	struct world w;
	D3DKMT_HANDLE adapter, device, context;
};

void show_mmio(struct scripted_miniport *m); /* the usual world_setup */
void show_dma(struct scripted_miniport *m);  /* flips go through DMA buffers */
void show_start(struct show *s, void **state, world_setup *setup);
void show_start_with(struct show *s, void **state, world_setup *setup,
		     const struct client_options *options);
void show_stop(struct show *s);
/* 64 KiB of the D3DKMT device's. `source` UINT32_MAX: no primary. */
D3DKMT_HANDLE show_allocate(struct show *s, uint32_t source);
void show_destroy(struct show *s, D3DKMT_HANDLE allocation);
D3DKMT_PRESENT show_blt(const struct show *s, D3DKMT_HANDLE from, D3DKMT_HANDLE to);
D3DKMT_PRESENT show_flip(const struct show *s, uint32_t source, D3DKMT_HANDLE to);
NTSTATUS show_present(struct show *s, const D3DKMT_PRESENT *args);
/* Where the last SetVidPnSourceAddress of the source said; then the display has it on the screen. */
uint64_t show_address(const struct show *s, uint32_t source);
void show_vsync(struct show *s, uint32_t target);
/* Flips to it and waits until it is on the screen. */
void show_now(struct show *s, uint32_t source, D3DKMT_HANDLE primary);
uint64_t show_displayed(const struct show *s); /* VIDMM_EVENT_DISPLAY so far */

#endif
