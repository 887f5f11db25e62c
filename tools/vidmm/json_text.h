/* SPDX-License-Identifier: MIT */
/*
 * json_text: JSON strings of texts from a client or a miniport, which may be no UTF-8; documents as
 * text.
 */
#ifndef VIDMM_TOOLS_JSON_TEXT_H
#define VIDMM_TOOLS_JSON_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* In a text that is no UTF-8 each byte that is no ASCII becomes '?'. NULL: out of memory. */
json_t *json_text(const char *text);
/*
 * Writes the document, indented and with a newline behind it, and frees it. Returns false if it
 * could not be written, or is NULL: out of memory.
 */
bool json_write(FILE *file, json_t *document);

#endif
