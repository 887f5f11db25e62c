/* SPDX-License-Identifier: MIT */
/*
 * A broken miniport: softgpu, but every n-th TRANSFER is left out of the paging buffer and reported
 * as done. It shows that the verification of a replay detects a broken paging path. The program
 * must be linked with --wrap=DxgkInitialize, by which the wrapper gets softgpu's table.
 */
#ifndef VMM_TESTS_REPLAY_DROPPING_MINIPORT_H
#define VMM_TESTS_REPLAY_DROPPING_MINIPORT_H

#include <vidmm/vidmm.h>

vidmm_driver_entry_fn dropping_driver_entry;
extern unsigned dropping_every;   /* 0: no transfer is dropped */
extern unsigned dropping_dropped; /* since dropping_driver_entry */

#endif
