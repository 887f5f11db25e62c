/* SPDX-License-Identifier: MIT */
/*
 * Fixture of present and flip tests. Besides the world's device it has a device of a D3DKMT client
 * with a context of node 0. The scripted miniport has two sources and supports FlipOnVSyncMmIo
 * unless a setup changes that.
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
/* An allocation of 64 KiB of the D3DKMT device. `source` UINT32_MAX: not a primary. */
D3DKMT_HANDLE show_allocate(struct show *s, uint32_t source);
void show_destroy(struct show *s, D3DKMT_HANDLE allocation);
D3DKMT_PRESENT show_blt(const struct show *s, D3DKMT_HANDLE from, D3DKMT_HANDLE to);
D3DKMT_PRESENT show_flip(const struct show *s, uint32_t source, D3DKMT_HANDLE to);
NTSTATUS show_present(struct show *s, const D3DKMT_PRESENT *args);
/* The address of the last SetVidPnSourceAddress of the source; then a vsync with that address. */
uint64_t show_address(const struct show *s, uint32_t source);
void show_vsync(struct show *s, uint32_t target);
/* Flips to the primary and waits until it is shown. */
void show_now(struct show *s, uint32_t source, D3DKMT_HANDLE primary);
uint64_t show_displayed(const struct show *s); /* VIDMM_EVENT_DISPLAY events so far */

#endif
