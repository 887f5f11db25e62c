/* SPDX-License-Identifier: MIT */
/*
 * The history of one handle, or of one address of GPU memory, as the events of a stream tell it:
 * `vidmm explain --handle` and `--address`.
 */
#ifndef VIDMM_TOOLS_EXPLAIN_OBJECT_H
#define VIDMM_TOOLS_EXPLAIN_OBJECT_H

#include <stdio.h>

#include "explain_events.h"

struct explain_object;

/* PROCESS 0: of all processes. Returns NULL when out of memory. */
struct explain_object *explain_object_handle(FILE *out, uint32_t handle, uint32_t process);
struct explain_object *explain_object_address(FILE *out, uint64_t address);
/* Prints what the event says about the handle or address. */
void explain_object_add(struct explain_object *object, const struct logged_event *event);
/* Prints the sums, and frees the object. Returns the number of events about it. */
uint64_t explain_object_finish(struct explain_object *object);

#endif
