/* SPDX-License-Identifier: MIT */
#include "explain_input.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vidmm/vidmm.h>

#include "record_status.h"

struct explain_input {
	const char *path;
	FILE *file; /* NULL: a recording */
	struct record_reader *record;
	char *line;
	size_t size;
};

static bool open_record(struct explain_input *input, int *status)
{
	*status = record_open_or_say(input->path, &input->record);
	if (*status != REPLAY_CLEAN)
		return false;
	input->size = 2048;
	input->line = malloc(input->size);
	*status = input->line ? REPLAY_CLEAN : REPLAY_ENVIRONMENT;
	if (!input->line)
		fprintf(stderr, "vidmm: out of memory\n");
	return input->line != NULL;
}

static bool open_text(struct explain_input *input, int *status)
{
	input->file = strcmp(input->path, "-") == 0 ? stdin : fopen(input->path, "r");
	*status = input->file ? REPLAY_CLEAN : REPLAY_ENVIRONMENT;
	if (!input->file)
		fprintf(stderr, "vidmm: %s: %s\n", input->path, strerror(errno));
	return input->file != NULL;
}

struct explain_input *explain_input_open(const char *path, int *status)
{
	struct explain_input *input = calloc(1, sizeof(*input));
	bool recorded = strcmp(path, "-") != 0 && record_is_recording(path);

	*status = REPLAY_ENVIRONMENT;
	if (!input) {
		fprintf(stderr, "vidmm: out of memory\n");
		return NULL;
	}
	input->path = path;
	if (recorded ? open_record(input, status) : open_text(input, status))
		return input;
	explain_input_close(input);
	return NULL;
}

void explain_input_close(struct explain_input *input)
{
	if (!input)
		return;
	if (input->file && input->file != stdin)
		fclose(input->file);
	record_close(input->record);
	free(input->line);
	free(input);
}

static const char *next_recorded(struct explain_input *input, int *status)
{
	struct vidmm_event event;
	const char *text;
	enum record_result result = record_next(input->record, &event, &text);

	*status = REPLAY_CLEAN;
	if (result == RECORD_EVENT) {
		vidmm_event_format(&event, text, input->line, (int)input->size);
		return input->line;
	}
	*status = record_end(input->record, result);
	return NULL;
}

/* The end of a text: returns whether it can be explained. */
static int end_of_text(const struct explain_input *input, bool cut)
{
	if (ferror(input->file)) {
		fprintf(stderr, "vidmm: %s: %s\n", input->path, strerror(errno));
		return REPLAY_ENVIRONMENT;
	}
	if (cut)
		fprintf(stderr, "vidmm: %s ends in the middle of a line\n", input->path);
	return REPLAY_CLEAN;
}

const char *explain_input_next(struct explain_input *input, int *status)
{
	if (!input->file)
		return next_recorded(input, status);
	ssize_t length = getline(&input->line, &input->size, input->file);
	bool cut = length > 0 && input->line[length - 1] != '\n';

	*status = REPLAY_CLEAN;
	if (length <= 0 || cut) {
		*status = end_of_text(input, cut);
		return NULL;
	}
	input->line[length - 1] = '\0';
	/* A line with a zero byte is none of an event stream: the caller finds that out. */
	if (strlen(input->line) + 1 < (size_t)length)
		input->line[0] = '\0';
	return input->line;
}
