/* SPDX-License-Identifier: MIT */
/* What a run of `vidmm what-if` was asked for, as a line of a file of cells. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "whatif_store.h"

static json_t *recording_json(const char *path, const struct whatif_reading *reading)
{
	const struct replay_measure *measure = &reading->measure;

	return json_pack("{s:s, s:s, s:i, s:o, s:I, s:I, s:I}", "path", path, "content",
			 reading->content, "exit_code", reading->status, "message",
			 whatif_json_text(reading->message), "peak_live_bytes",
			 (json_int_t)measure->peak_live_bytes, "largest_buffer_bytes",
			 (json_int_t)measure->largest_buffer_bytes, "largest_submission_bytes",
			 (json_int_t)measure->largest_submission_bytes);
}

json_t *whatif_sweep_json(const struct whatif_options *options,
			  const struct whatif_reading *readings)
{
	const struct whatif_lists *lists = &options->lists;
	json_t *recordings = json_array();

	for (unsigned i = 0; i < options->recording_count; i++)
		if (json_array_append_new(recordings, recording_json(options->recordings[i],
								     &readings[i])) != 0) {
			json_decref(recordings);
			return NULL;
		}
	return json_pack("{s:{s:s, s:s, s:s, s:s, s:o}}", "sweep", "vram", lists->vram, "policy",
			 lists->policy, "link", lists->link, "model", lists->model, "recordings",
			 recordings);
}

static bool parse_recording(json_t *object, char **path, struct whatif_reading *reading,
			    json_error_t *error)
{
	const char *name, *content, *text;
	json_int_t peak, buffer, submission;
	json_t *message;
	int status;

	if (json_unpack_ex(object, error, 0, "{s:s, s:s, s:i, s:o, s:I, s:I, s:I !}", "path", &name,
			   "content", &content, "exit_code", &status, "message", &message,
			   "peak_live_bytes", &peak, "largest_buffer_bytes", &buffer,
			   "largest_submission_bytes", &submission) != 0)
		return false;
	snprintf(error->text, sizeof(error->text), "\"%s\" has exit code %d", name, status);
	if (status < REPLAY_CLEAN || status > REPLAY_ENVIRONMENT)
		return false;
	text = json_string_value(message);
	*reading = (struct whatif_reading){
		.measure = {.peak_live_bytes = (uint64_t)peak,
			    .largest_buffer_bytes = (uint64_t)buffer,
			    .largest_submission_bytes = (uint64_t)submission},
		.status = (enum replay_status)status};
	snprintf(reading->message, sizeof(reading->message), "%s", text ? text : "");
	snprintf(reading->content, sizeof(reading->content), "%s", content);
	*path = strdup(name);
	return *path != NULL;
}

static bool parse_recordings(const json_t *array, struct whatif_options *options,
			     struct whatif_reading *readings, json_error_t *error)
{
	size_t count = json_array_size(array);

	for (size_t i = 0; i < count; i++) {
		if (!parse_recording(json_array_get(array, i), &options->recordings[i],
				     &readings[i], error))
			return false;
		options->recording_count++;
	}
	return true;
}

/* Copies the lists. Returns false when out of memory. */
static bool parse_lists(json_t *sweep, struct whatif_lists *lists, json_t **recordings,
			json_error_t *error)
{
	const char *vram, *policy, *link, *model;

	if (json_unpack_ex(sweep, error, 0, "{s:{s:s, s:s, s:s, s:s, s:o !} !}", "sweep", "vram",
			   &vram, "policy", &policy, "link", &link, "model", &model, "recordings",
			   recordings) != 0)
		return false;
	*lists = (struct whatif_lists){strdup(vram), strdup(policy), strdup(link), strdup(model)};
	snprintf(error->text, sizeof(error->text), "no recordings");
	return lists->vram && lists->policy && lists->link && lists->model &&
	       json_array_size(*recordings) > 0;
}

struct whatif_reading *whatif_sweep_parse(const json_t *sweep, struct whatif_options *options,
					  char error[static 160])
{
	struct whatif_reading *readings = NULL;
	struct whatif_list_error wrong;
	json_error_t json_error;
	json_t *recordings, *copy = json_deep_copy(sweep);
	size_t count;
	bool good;

	snprintf(json_error.text, sizeof(json_error.text), "out of memory");
	good = copy && parse_lists(copy, &options->lists, &recordings, &json_error);
	/* No code is loaded because a file of cells names it. */
	if (good && strchr(options->lists.policy, '/')) {
		snprintf(json_error.text, sizeof(json_error.text), "a policy is a file");
		good = false;
	}
	if (good) {
		count = json_array_size(recordings);
		options->recordings = calloc(count, sizeof(*options->recordings));
		readings = calloc(count, sizeof(*readings));
		good = options->recordings && readings &&
		       parse_recordings(recordings, options, readings, &json_error);
	}
	snprintf(error, 160, "%.159s", json_error.text);
	if (good && !whatif_lists_parse(options, &wrong)) {
		snprintf(error, 160, "%s \"%.100s\" is not valid", wrong.option, wrong.value);
		good = false;
	}
	json_decref(copy);
	if (good)
		return readings;
	free(readings);
	return NULL;
}
