/* SPDX-License-Identifier: MIT */
/* Sentences about a call, one in each line. */
#ifndef VIDMM_TOOLS_EXPLAIN_SENTENCES_H
#define VIDMM_TOOLS_EXPLAIN_SENTENCES_H

#include <stdio.h>

struct sentences {
	FILE *out;
	const char *prefix; /* of each line */
	unsigned count;
};

/* Begins a sentence, which its caller ends with a newline. Returns the stream. */
static inline FILE *sentence_begin(struct sentences *sentences)
{
	sentences->count++;
	fputs(sentences->prefix, sentences->out);
	return sentences->out;
}

#endif
