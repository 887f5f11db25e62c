/* SPDX-License-Identifier: MIT */
#ifndef VIDMM_TOOLS_STATUS_NAMES_H
#define VIDMM_TOOLS_STATUS_NAMES_H

#include <stdint.h>

/* "STATUS_INVALID_PARAMETER"; NULL: not one that the DDI uses. */
const char *status_name(uint32_t status);

#endif
