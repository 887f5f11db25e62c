/* SPDX-License-Identifier: MIT */
/*
 * judged_recording FILE: writes a recording with findings of three rules, one of which has a text
 * with characters that XML and JSON must escape, a bug check, a finding that names no rule, and
 * calls with statuses.
 */
#include <stdlib.h>
#include <vidmm/vidmm.h>

#include "record_write.h"

static uint64_t sequence;

static void add(struct record_writer *record, struct vidmm_event event, const char *text)
{
	event.sequence = ++sequence;
	event.time_ns = sequence * 1000;
	record_event(record, &event, text);
}

static void add_finding(struct record_writer *record, uint32_t object, const char *text)
{
	add(record,
	    (struct vidmm_event){.type = VIDMM_EVENT_FINDING, .process = 3, .object = object},
	    text);
}

static void add_ddi(struct record_writer *record, uint16_t ddi, uint64_t status)
{
	add(record,
	    (struct vidmm_event){.type = VIDMM_EVENT_DDI, .reason = ddi, .arg = {status, 1, 2, 3}},
	    NULL);
}

int main(int argc, char **argv)
{
	json_t *about = json_object();
	struct record_writer *record = argc > 1 ? record_create(argv[1], about) : NULL;
	const struct vidmm_event fatal = {.type = VIDMM_EVENT_FATAL, .arg = {0x116, 1, 2, 3}};

	json_decref(about);
	if (!record)
		return EXIT_FAILURE;
	add_finding(record, 0x40000040, "SPL-12: the first");
	add_finding(record, 0x40000080, "SPL-12: the second");
	add_finding(record, 0, "NT-06: <tag> \"A&B\" \303\274 \377");
	add_finding(record, 0, "Q-9999: no table has this rule");
	add_finding(record, 0, "no rule is named");
	add(record, fatal, NULL);
	add(record, (struct vidmm_event){.type = VIDMM_EVENT_REASON, .arg = {0xc0000001}},
	    "LOCK-07: a call failed");
	add_ddi(record, VIDMM_DDI_RENDER, 0);
	add_ddi(record, VIDMM_DDI_RENDER, 0xc0000017);
	add_ddi(record, VIDMM_DDI_RENDER, 0x12345678);
	add_ddi(record, VIDMM_DDI_PATCH, 0);
	return record_finish(record) ? EXIT_SUCCESS : EXIT_FAILURE;
}
