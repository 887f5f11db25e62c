/* SPDX-License-Identifier: MIT */
/* `vidmm explain EVENTS`: why the last calls of each program that failed, or that took long, did so. */
#ifndef VIDMM_TOOLS_EXPLAIN_H
#define VIDMM_TOOLS_EXPLAIN_H

int explain_main(int argc, const char **argv);

#endif
