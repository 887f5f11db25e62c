/* SPDX-License-Identifier: MIT */
/* Growing arrays, for everything whose number depends on a recording. */
#ifndef VIDMM_TOOLS_GROW_H
#define VIDMM_TOOLS_GROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Doubles *CAPACITY if COUNT has reached it, so that one more element fits. Returns false when out
 * of memory; then nothing has changed.
 */
bool grow_array(void **array, uint32_t *capacity, uint32_t count, size_t element_size);

#endif
