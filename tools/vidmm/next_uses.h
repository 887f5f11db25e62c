/* SPDX-License-Identifier: MIT */
/*
 * next_uses: the submissions that use each buffer of a replay, by a pass over the recordings before
 * it begins. With them the policy `reference` evicts the buffer whose next use is farthest.
 */
#ifndef VIDMM_TOOLS_NEXT_USES_H
#define VIDMM_TOOLS_NEXT_USES_H

#include "trace.h"
#include "umd.h"

struct next_uses;

/* Returns NULL when out of memory. next_uses_destroy: NULL is allowed. */
struct next_uses *next_uses_create(unsigned process_count);
void next_uses_destroy(struct next_uses *uses);
/* Adds an event of the process, in merged order. Returns false when out of memory. */
bool next_uses_add(struct next_uses *uses, unsigned process, const struct trace_event *event);
/* A submission of the replay has ended: next uses are those of the later ones. */
void next_uses_advance(struct next_uses *uses);
/* The next submission is the first one again. */
void next_uses_rewind(struct next_uses *uses);
/*
 * Returns the number of submissions until the next one that uses the allocation; UINT64_MAX: none
 * does, or no buffer of the process has it now.
 */
uint64_t next_uses_distance(struct next_uses *uses, unsigned process, const struct umd *umd,
			    uint32_t handle);
uint32_t next_uses_current(const struct next_uses *uses); /* the submission the replay is at */
/* As next_uses_distance, for a buffer by its id. */
uint64_t next_uses_buffer_distance(struct next_uses *uses, unsigned process, uint32_t buffer);
/*
 * The same. 0: that submission or a later one, up to the present one, uses it.
 */
uint64_t next_uses_idle_distance(struct next_uses *uses, unsigned process, uint32_t buffer,
				 uint32_t since);

#endif
