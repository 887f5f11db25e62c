/* SPDX-License-Identifier: MIT */
#ifndef VIDMM_TOOLS_STATUS_NAMES_H
#define VIDMM_TOOLS_STATUS_NAMES_H

#include <stdint.h>

/*
 * Returns a name such as "STATUS_INVALID_PARAMETER", NULL for a status that the DDI does not use.
 */
const char *status_name(uint32_t status);

#endif
