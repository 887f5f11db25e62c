/* SPDX-License-Identifier: MIT */
/* Writes X8R8G8B8 pixels as a PNG file with 8 bits per channel and no alpha. */
#ifndef VIDMM_TOOLS_PNG_H
#define VIDMM_TOOLS_PNG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/*
 * WIDTH and HEIGHT are 1 to 65535 pixels, PITCH_BYTES is the distance of two rows. Returns false on
 * failure; errno gives the reason.
 */
bool png_write(FILE *file, const void *pixels, uint32_t width, uint32_t height,
	       uint32_t pitch_bytes);

#endif
