/* SPDX-License-Identifier: MIT */
/* A cell as a line of a file of cells. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy.h"
#include "whatif_store.h"

/* The figures by name, and where an outcome has them. */
static const struct {
	const char *name;
	size_t offset;
} figures[] = {
	{"bytes_paged_in", offsetof(struct whatif_outcome, bytes_paged_in)},
	{"frames", offsetof(struct whatif_outcome, frames)},
	{"late_frames", offsetof(struct whatif_outcome, late_frames)},
	{"latency_p99_ns", offsetof(struct whatif_outcome, p99_ns)},
	{"longest_stall_ns", offsetof(struct whatif_outcome, stall_ns)},
	{"slowdown_permille", offsetof(struct whatif_outcome, slowdown_permille)},
};

#define FIGURES (sizeof(figures) / sizeof(figures[0]))

static uint64_t *figure_of(struct whatif_outcome *outcome, size_t index)
{
	return (uint64_t *)((char *)outcome + figures[index].offset);
}

json_t *whatif_json_text(const char *text)
{
	size_t length = strlen(text);
	json_t *string = length > 0 ? json_stringn(text, length) : NULL;

	/* A character has up to 4 bytes. */
	for (size_t cut = 1; cut < 4 && cut < length && !string; cut++)
		string = json_stringn(text, length - cut);
	return string ? string : json_null();
}

static json_t *figures_json(const struct whatif_cell *cell)
{
	json_t *object = cell->end == REPLAY_CLEAN ? json_object() : json_null();

	for (size_t i = 0; i < FIGURES && cell->end == REPLAY_CLEAN; i++)
		json_object_set_new(object, figures[i].name,
				    json_integer((json_int_t)*figure_of(cell->outcome, i)));
	return object;
}

json_t *whatif_cell_json(const struct whatif_cell *cell, bool with_outcome)
{
	json_t *key = json_pack("{s:s, s:s, s:I, s:s, s:s, s:s}", "recording", cell->recording,
				"content", cell->reading->content, "vram_bytes",
				(json_int_t)cell->vram_bytes, "policy", policy_name(cell->policy),
				"link", cell->link->name, "model", whatif_model_name(cell));

	if (!with_outcome)
		return json_pack("{s:o}", "cell", key);
	return json_pack("{s:o, s:s, s:i, s:o, s:o}", "cell", key, "status", cell->status_text,
			 "exit_code", cell->end, "message",
			 whatif_json_text(cell->outcome->message), "figures", figures_json(cell));
}

char *whatif_cell_key(const json_t *line)
{
	json_t *key = json_object_get(line, "cell");

	return key ? json_dumps(key, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
}

static bool figures_valid(json_t *object, json_error_t *error)
{
	json_int_t value;

	for (size_t i = 0; i < FIGURES; i++) {
		if (json_unpack_ex(object, error, 0, "{s:I}", figures[i].name, &value) != 0)
			return false;
		snprintf(error->text, sizeof(error->text), "%s is negative", figures[i].name);
		if (value < 0)
			return false;
	}
	return true;
}

bool whatif_cell_valid(json_t *line, json_error_t *error)
{
	const char *text, *status;
	json_int_t bytes;
	json_t *message, *object;
	int code;

	if (json_unpack_ex(line, error, 0,
			   "{s:{s:s, s:s, s:I, s:s, s:s, s:s !}, s:s, s:i, s:o, s:o !}", "cell",
			   "recording", &text, "content", &text, "vram_bytes", &bytes, "policy",
			   &text, "link", &text, "model", &text, "status", &status, "exit_code",
			   &code, "message", &message, "figures", &object) != 0)
		return false;
	snprintf(error->text, sizeof(error->text), "status \"%s\" and exit code %d do not fit",
		 status, code);
	if ((code == REPLAY_CLEAN) != (strcmp(status, "clean") == 0) || code < REPLAY_CLEAN ||
	    code > REPLAY_ENVIRONMENT || (!json_is_null(message) && !json_is_string(message)))
		return false;
	return code != REPLAY_CLEAN || figures_valid(object, error);
}

void whatif_cell_take(const json_t *line, struct whatif_cell *cell)
{
	const char *message = json_string_value(json_object_get(line, "message"));
	const json_t *object = json_object_get(line, "figures");
	json_int_t code = json_integer_value(json_object_get(line, "exit_code"));

	snprintf(cell->outcome->message, sizeof(cell->outcome->message), "%s",
		 message ? message : "");
	cell->outcome->status = (enum replay_status)code;
	for (size_t i = 0; i < FIGURES && code == REPLAY_CLEAN; i++)
		*figure_of(cell->outcome, i) =
			(uint64_t)json_integer_value(json_object_get(object, figures[i].name));
	cell->finished = true;
	whatif_cell_end(cell, (enum replay_status)code,
			json_string_value(json_object_get(line, "status")));
}
