/* SPDX-License-Identifier: MIT */
/* Growing arrays, for everything whose number a recording decides. */
#ifndef VIDMM_TOOLS_GROW_H
#define VIDMM_TOOLS_GROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Makes room for one more element behind `count`; false when out of memory, then nothing has changed. */
bool grow_array(void **array, uint32_t *room, uint32_t count, size_t element_size);

#endif
