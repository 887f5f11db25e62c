/* SPDX-License-Identifier: MIT */
/* merge: `vidmm merge` makes one result from the files of `vidmm what-if --state`. */
#ifndef VIDMM_TOOLS_MERGE_H
#define VIDMM_TOOLS_MERGE_H

int merge_main(int argc, const char **argv);

#endif
