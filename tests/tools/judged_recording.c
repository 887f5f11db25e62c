/* SPDX-License-Identifier: MIT */
/*
 * judged_recording FILE [broken|kept]: writes a recording with findings of three rules, one of
 * which has a text with characters that XML and JSON must escape, a bug check, a finding that
 * names no rule, and calls with statuses. broken, kept: events without findings, in which a
 * process breaks each rule that `vidmm check` finds in the stream of events, or keeps them all.
 */
#include <stdlib.h>
#include <string.h>
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

#define PROCESS 3u
#define FIRST   0x40000040u /* the allocations */
#define SECOND  0x40000080u

static void add_event(struct record_writer *record, uint8_t type, uint16_t reason, uint32_t object,
		      uint64_t status, uint64_t elements)
{
	add(record,
	    (struct vidmm_event){.type = type,
				 .reason = reason,
				 .process = PROCESS,
				 .object = object,
				 .arg = {status, elements}},
	    NULL);
}

static void add_door(struct record_writer *record, uint16_t door, uint64_t status,
		     uint64_t elements)
{
	add_event(record, VIDMM_EVENT_DOOR, door, 0, status, elements);
}

static void add_written(struct record_writer *record, uint16_t ddi, uint64_t input, uint64_t bytes,
			uint64_t multipass)
{
	add(record,
	    (struct vidmm_event){
		    .type = VIDMM_EVENT_DDI, .reason = ddi, .arg = {0, input, bytes, multipass}},
	    NULL);
}

/* Operations that succeed: WRITTEN bytes of commands, and what may be empty. */
static void add_operations(struct record_writer *record, uint64_t written)
{
	add_written(record, VIDMM_DDI_RENDER, 100, written, 0);
	add_written(record, VIDMM_DDI_BUILD_PAGING_BUFFER, VIDMM_PAGING_TRANSFER, written, 0);
	add_written(record, VIDMM_DDI_BUILD_PAGING_BUFFER, VIDMM_PAGING_VIRTUAL_FILL, written, 0);
	/* no commands, the last pass of an operation, and operations that the CPU may execute */
	add_written(record, VIDMM_DDI_RENDER, 0, 0, 0);
	add_written(record, VIDMM_DDI_BUILD_PAGING_BUFFER, VIDMM_PAGING_TRANSFER, 0, 5);
	add_written(record, VIDMM_DDI_BUILD_PAGING_BUFFER, VIDMM_PAGING_MAP_APERTURE, 0, 0);
	add_written(record, VIDMM_DDI_BUILD_PAGING_BUFFER, VIDMM_PAGING_FLUSH_TLB, 0, 0);
}

/* One or two unlocks for two locks, and one or two evictions for three MakeResident. */
static void add_pairs(struct record_writer *record, unsigned undone)
{
	add_event(record, VIDMM_EVENT_CREATE, 0, FIRST, 4096, 0);
	add_event(record, VIDMM_EVENT_CREATE, 0, SECOND, 4096, 0);
	add_event(record, VIDMM_EVENT_LOCK, 0, FIRST, 0, 0);
	add_event(record, VIDMM_EVENT_LOCK, 0, FIRST, 0, 0);
	add_door(record, VIDMM_DOOR_MAKE_RESIDENT, 0x103, 2);
	add_door(record, VIDMM_DOOR_MAKE_RESIDENT, 0, 2);
	add_door(record, VIDMM_DOOR_MAKE_RESIDENT, 0xc0000017, 9);
	add_door(record, VIDMM_DOOR_EVICT, 0, undone);
	for (unsigned i = 0; i < undone; i++)
		add_event(record, VIDMM_EVENT_UNLOCK, 0, FIRST, 0, 0);
	add_event(record, VIDMM_EVENT_DESTROY, 0, FIRST, 4096, 0);
	add_door(record, VIDMM_DOOR_DEALLOCATE, 0, 1);
	/* What the end of a process undoes is no mistake. */
	add_event(record, VIDMM_EVENT_LOCK, 0, SECOND, 0, 0);
	add_event(record, VIDMM_EVENT_DESTROY, 0, SECOND, 4096, 0);
	add_event(record, VIDMM_EVENT_PROCESS, VIDMM_PROCESS_CLOSED, 0, 0, 0);
}

static bool write_stream(struct record_writer *record, bool broken)
{
	add_operations(record, broken ? 0 : 64);
	add_pairs(record, broken ? 1 : 2);
	if (broken)
		add(record,
		    (struct vidmm_event){
			    .type = VIDMM_EVENT_REASON, .process = PROCESS, .arg = {0xc01e0200}},
		    "TDR-19: page fault at 0x1000 on fence 0x00000001");
	return record_finish(record);
}

int main(int argc, char **argv)
{
	json_t *about = json_object();
	struct record_writer *record = argc > 1 ? record_create(argv[1], about) : NULL;
	const struct vidmm_event fatal = {.type = VIDMM_EVENT_FATAL, .arg = {0x116, 1, 2, 3}};

	json_decref(about);
	if (!record)
		return EXIT_FAILURE;
	if (argc > 2)
		return write_stream(record, strcmp(argv[2], "broken") == 0) ? EXIT_SUCCESS
									    : EXIT_FAILURE;
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
