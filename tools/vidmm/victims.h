/* SPDX-License-Identifier: MIT */
/*
 * victims: compares each eviction for free space with what the policy `reference` would choose. The
 * reference keeps a victim if others that are used later have as many bytes. Computed from the
 * event stream and the next uses of the recordings; on sim only, where events come on one thread.
 */
#ifndef VIDMM_TOOLS_VICTIMS_H
#define VIDMM_TOOLS_VICTIMS_H

#include "world.h"

struct victims;
/* The world has its next uses and its list of buffers (thrash). NULL: out of memory */
struct victims *victims_create(struct world *world);
void victims_destroy(struct victims *victims); /* NULL is allowed */
/* Evictions that the reference would not have made, and the bytes paged in again after them. */
void victims_summary(const struct victims *victims, uint64_t *evictions, uint64_t *bytes);

#endif
