/* SPDX-License-Identifier: MIT */
/*
 * umd: a user-mode display driver for softgpu, one for each process of a replay. It turns recorded
 * events into the callbacks of D3DDDI_DEVICECALLBACKS as a driver of WDDM 1.x or 2.x would. It
 * holds the state of a driver (handles, contexts with their command buffers) and, with
 * verification, the expected content of each buffer.
 *
 * Each function returns REPLAY_CLEAN to continue. Any other status ends the replay; its reason has
 * been reported.
 */
#ifndef VIDMM_TOOLS_UMD_H
#define VIDMM_TOOLS_UMD_H

#include "world.h"

struct umd;

enum replay_status umd_create(struct world *world, unsigned index,
			      const struct trace_header *header, struct umd **umd);
void umd_destroy(struct umd *umd); /* NULL is allowed */
enum replay_status umd_event(struct umd *umd, const struct trace_event *event);
/* Returns whether the event uses memory that is shared with other processes. */
bool umd_touches_shared(const struct umd *umd, const struct trace_event *event);
/* Waits until the GPU has finished everything that this process submitted. */
enum replay_status umd_drain(struct umd *umd);
/*
 * Counts the errors that the GPU reported. If reading them takes a lock, it is done every 64
 * submissions, or at once if NOW is true.
 */
enum replay_status umd_poll_report(struct umd *umd, bool now);
/* Checks the content of every buffer that the CPU may lock. The GPU is idle. */
enum replay_status umd_final_check(struct umd *umd);
/* Returns the allocation handle of a buffer; 0 if it is closed or not allocated. */
uint32_t umd_handle_of(const struct umd *umd, uint32_t buffer);
uint32_t umd_buffer_count(const struct umd *umd); /* ids are 1 to this */
uint32_t umd_process_id(const struct umd *umd);
const char *umd_name(const struct umd *umd);

#endif
