/* SPDX-License-Identifier: MIT */
/* Pictures of X8R8G8B8 pixels as PNG files: 8 bits a channel, no alpha. */
#ifndef VIDMM_TOOLS_PNG_H
#define VIDMM_TOOLS_PNG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* false: errno says why. Width and height 1 to 65535, rows of pitch_bytes. */
bool png_write(FILE *file, const void *pixels, uint32_t width, uint32_t height,
	       uint32_t pitch_bytes);

#endif
