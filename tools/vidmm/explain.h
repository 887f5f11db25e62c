/* SPDX-License-Identifier: MIT */
/*
 * `vidmm explain EVENTS`: why the last failed call of each process failed, and what its slowest
 * call waited for.
 */
#ifndef VIDMM_TOOLS_EXPLAIN_H
#define VIDMM_TOOLS_EXPLAIN_H

int explain_main(int argc, const char **argv);

#endif
