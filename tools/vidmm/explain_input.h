/* SPDX-License-Identifier: MIT */
/*
 * explain_input: the lines of an event stream, from text (`vidmm replay --events`) or from a
 * recording of events (`--record`).
 */
#ifndef VIDMM_TOOLS_EXPLAIN_INPUT_H
#define VIDMM_TOOLS_EXPLAIN_INPUT_H

#include <stdbool.h>

struct explain_input;

/* PATH "-": text on the standard input. Returns NULL after a message; *STATUS is the exit code. */
struct explain_input *explain_input_open(const char *path, int *status);
void explain_input_close(struct explain_input *input);
/*
 * Returns the next line, without its newline and valid until the next call. NULL: the end, or a
 * failure after a message; *STATUS is REPLAY_CLEAN at the end. An input that ends in the middle of
 * a line or chunk, as after a crash, ends before it, with a message.
 */
const char *explain_input_next(struct explain_input *input, int *status);

#endif
