/* SPDX-License-Identifier: MIT */
/*
 * A miniport that lies: softgpu, but every n-th TRANSFER is left out of the paging buffer and
 * reported as done. It exists to show that a replay's verification notices a broken paging path.
 *
 * The program that links it must be linked with --wrap=DxgkInitialize: that is how it gets hold of
 * softgpu's table.
 */
#ifndef VMM_TESTS_REPLAY_DROPPING_MINIPORT_H
#define VMM_TESTS_REPLAY_DROPPING_MINIPORT_H

#include <vidmm/vidmm.h>

vidmm_driver_entry_fn dropping_driver_entry;
extern unsigned dropping_every;   /* 0: drop nothing */
extern unsigned dropping_dropped; /* since dropping_driver_entry */

#endif
