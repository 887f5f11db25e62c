/* SPDX-License-Identifier: MIT */
/*
 * umd: a user-mode display driver for softgpu, one per process of a replay. It turns recorded events into the
 * callbacks of D3DDDI_DEVICECALLBACKS the way a WDDM 1.x driver would, keeps what a driver keeps (handles, contexts
 * with their command buffers), and with verification the content that each buffer must have.
 *
 * Every function returns REPLAY_CLEAN to go on; anything else ends the replay and has been explained.
 */
#ifndef VIDMM_TOOLS_UMD_H
#define VIDMM_TOOLS_UMD_H

#include "world.h"

struct umd;

enum replay_status umd_create(struct world *world, unsigned index,
			      const struct trace_header *header, struct umd **umd);
void umd_destroy(struct umd *umd); /* NULL is fine */
enum replay_status umd_event(struct umd *umd, const struct trace_event *event);
/* Does the event do something with memory that other processes have, too? */
bool umd_concerns_others(const struct umd *umd, const struct trace_event *event);
/* Waits until the GPU has finished everything that this process submitted. */
enum replay_status umd_drain(struct umd *umd);
/* Counts what the GPU found wrong. Now and then, unless `now`, where that takes a lock. */
enum replay_status umd_poll_report(struct umd *umd, bool now);
/* Everything is idle: every buffer that the CPU may lock still holds what it must. */
enum replay_status umd_final_check(struct umd *umd);
/* The handle of a live buffer, 0: none. */
uint32_t umd_handle_of(const struct umd *umd, uint32_t buffer);
uint32_t umd_process_id(const struct umd *umd);
const char *umd_name(const struct umd *umd);

#endif
