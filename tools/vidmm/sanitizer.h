/* SPDX-License-Identifier: MIT */
/* sanitizer: drivers that are compiled with AddressSanitizer, which must be loaded before them. */
#ifndef VIDMM_TOOLS_SANITIZER_H
#define VIDMM_TOOLS_SANITIZER_H

/*
 * If the shared object names the run-time library of a sanitizer, as `vidmm-cc --sanitize` makes it
 * do, and this process was started without the library, the function executes this program again
 * with the same arguments and the library before all others (LD_PRELOAD). Then it does not return.
 * It returns if no sanitizer is named, if the library is loaded, or if the execution fails.
 */
void sanitizer_start_with_runtime(const char *path);

#endif
