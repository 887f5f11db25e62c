/* SPDX-License-Identifier: MIT */
/* `vidmm picture`: writes what a monitor on softgpu shows as a PNG file. */
#ifndef VIDMM_TOOLS_PICTURE_H
#define VIDMM_TOOLS_PICTURE_H

/*
 * argv[1] is the file ("-": standard output), argv[2] the number of the frame (from 1, default 1).
 * Returns the exit code.
 */
int picture_main(int argc, const char **argv);

#endif
