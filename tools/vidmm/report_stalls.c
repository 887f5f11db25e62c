/* SPDX-License-Identifier: MIT */
#include "report_stalls.h"

#include <stdlib.h>
#include <string.h>

#include "explain_call.h"
#include "explain_history.h"
#include "json_text.h"

enum { LINE = 2048 };

/* Does an explanation use events of that type? The others would only displace them. */
static bool is_explaining(uint16_t type)
{
	switch (type) {
	case VIDMM_EVENT_DOOR:
	case VIDMM_EVENT_PAGING:
	case VIDMM_EVENT_RESIDENCY:
	case VIDMM_EVENT_WAIT:
	case VIDMM_EVENT_SUBMIT:
	case VIDMM_EVENT_QUEUE:
	case VIDMM_EVENT_FENCE:
	case VIDMM_EVENT_RENAME:
	case VIDMM_EVENT_FINDING:
	case VIDMM_EVENT_REASON:
	case VIDMM_EVENT_RECOVERY:
	case VIDMM_EVENT_RANGE:
	case VIDMM_EVENT_SYNC:
	case VIDMM_EVENT_VICTIM:
		return true;
	default:
		return false;
	}
}

/* Inserts the call if it is one of the longest. Of equal ones the earlier comes first. */
static void add_call(struct report_stalls *stalls, const struct timeline *t,
		     const struct logged_event *door, uint64_t ns)
{
	unsigned at = stalls->count;
	char *text;

	while (at > 0 && stalls->row[at - 1].ns < ns)
		at--;
	if (at == REPORT_STALLS_MAX || !t->calls.count)
		return;
	text = explain_call_time(stalls->history, door);
	if (!text) {
		stalls->failed = true;
		return;
	}
	if (stalls->count == REPORT_STALLS_MAX)
		free(stalls->row[--stalls->count].text);
	memmove(&stalls->row[at + 1], &stalls->row[at],
		(stalls->count - at) * sizeof(stalls->row[0]));
	stalls->row[at] = (struct report_stall){.ns = ns, .call = t->calls.count - 1, .text = text};
	stalls->count++;
}

void report_stalls_add(struct report_stalls *stalls, const struct timeline *t,
		       const struct vidmm_event *event, const char *text)
{
	struct logged_event logged;
	char line[LINE];

	/* The first event shows whether the recording begins with the first one of the host. */
	if (stalls->failed || (stalls->history && !is_explaining(event->type)))
		return;
	if (!stalls->history)
		stalls->history = explain_history_create();
	if (!stalls->history) {
		stalls->failed = true;
		return;
	}
	vidmm_event_format(event, text, line, sizeof(line));
	if (!logged_event_parse(line, &logged))
		return;
	if (event->type == VIDMM_EVENT_DOOR && event->arg[2])
		add_call(stalls, t, &logged, event->arg[2]);
	stalls->failed = !explain_history_add(stalls->history, &logged) || stalls->failed;
}

bool report_stalls_end(struct report_stalls *stalls)
{
	explain_history_destroy(stalls->history);
	stalls->history = NULL;
	return !stalls->failed;
}

/* ---- the page ---- */

static json_t *sentences_of(const char *text)
{
	json_t *sentences = json_array();

	while (*text) {
		size_t length = strcspn(text, "\n");
		char *sentence = strndup(text, length);

		if (sentence)
			json_array_append_new(sentences, json_text(sentence));
		free(sentence);
		text += length + (text[length] == '\n');
	}
	return sentences;
}

json_t *report_stalls_json(const struct report_stalls *stalls, const struct timeline *t)
{
	json_t *calls = json_array();

	for (unsigned i = 0; i < stalls->count; i++) {
		const struct timeline_call *call = &t->calls.row[stalls->row[i].call];

		json_array_append_new(
			calls,
			json_pack("{s:I,s:I,s:I,s:I,s:i,s:I,s:o}", "end", (json_int_t)call->end_ns,
				  "ns", (json_int_t)call->ns, "process", (json_int_t)call->process,
				  "object", (json_int_t)call->object, "door", (int)call->door,
				  "status", (json_int_t)call->status, "why",
				  sentences_of(stalls->row[i].text)));
	}
	return calls;
}

void report_stalls_finish(struct report_stalls *stalls)
{
	for (unsigned i = 0; i < stalls->count; i++)
		free(stalls->row[i].text);
	explain_history_destroy(stalls->history);
	*stalls = (struct report_stalls){0};
}
