/* SPDX-License-Identifier: MIT */
/* json_text: JSON strings of texts from a client or a miniport, which may be no UTF-8. */
#ifndef VIDMM_TOOLS_JSON_TEXT_H
#define VIDMM_TOOLS_JSON_TEXT_H

#include <jansson.h>

/* In a text that is no UTF-8 each byte that is no ASCII becomes '?'. NULL: out of memory. */
json_t *json_text(const char *text);

#endif
