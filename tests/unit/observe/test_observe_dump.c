/* SPDX-License-Identifier: MIT */
/* Names, lines and the ring of last events. */
#include <string.h>

#include "support/test.h"

#include "observe/observe.h"

static struct vmm_observe *make_stream(void)
{
	static const uint64_t still = 500;
	struct vmm_observe_config config = {.virtual_ns = &still};
	struct vmm_observe *observe;

	assert_int_equal(vmm_observe_create(&config, &observe), VMM_OK);
	return observe;
}

static void every_type_has_a_unique_name(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < VIDMM_EVENT_TYPE_COUNT; i++) {
		assert_string_not_equal(vmm_observe_type_name(i), "unknown");
		for (uint32_t j = 0; j < i; j++)
			assert_string_not_equal(vmm_observe_type_name(i), vmm_observe_type_name(j));
	}
	assert_string_equal(vmm_observe_type_name(VIDMM_EVENT_TYPE_COUNT), "unknown");
	assert_string_equal(vmm_observe_type_name(UINT32_MAX), "unknown");
}

static void every_reason_of_the_schema_has_a_name(void **state)
{
	static const struct {
		uint32_t type, first, last;
	} ranges[] = {
		{VIDMM_EVENT_DOOR, VIDMM_DOOR_ALLOCATE, VIDMM_DOOR_UNLOCK2},
		{VIDMM_EVENT_DDI, VIDMM_DDI_ADD_DEVICE, VIDMM_DDI_LAST},
		{VIDMM_EVENT_CALLBACK, VIDMM_CB_NOTIFY_INTERRUPT, VIDMM_CB_OTHER},
		{VIDMM_EVENT_PAGING, VIDMM_PAGING_TRANSFER, VIDMM_PAGING_DISCARD_CONTENT},
		{VIDMM_EVENT_PAGING, VIDMM_PAGING_MAP_APERTURE, VIDMM_PAGING_SPECIAL_LOCK_TRANSFER},
		{VIDMM_EVENT_RESIDENCY, VIDMM_RESIDENCY_REFERENCED, VIDMM_RESIDENCY_MOVED},
		{VIDMM_EVENT_WAIT, VIDMM_WAIT_LOCK, VIDMM_WAIT_POWER},
		{VIDMM_EVENT_QUEUE, 0, 1},
		{VIDMM_EVENT_RENAME, 0, 1},
	};

	(void)state;
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(ranges); i++) {
		for (uint32_t reason = ranges[i].first; reason <= ranges[i].last; reason++)
			assert_string_not_equal(vmm_observe_reason_name(ranges[i].type, reason),
						"");
		assert_string_equal(vmm_observe_reason_name(ranges[i].type, 1000), "");
	}
	assert_string_equal(vmm_observe_reason_name(VIDMM_EVENT_PAGING, 3), "");
	assert_string_equal(vmm_observe_reason_name(VIDMM_EVENT_LOCK, 0), "");
	assert_string_equal(vmm_observe_reason_name(UINT32_MAX, 0), "");
}

static const struct {
	struct vidmm_event event;
	const char *text, *line;
} cases[] = {
	{{.sequence = 12,
	  .time_ns = 1000345,
	  .process = 1,
	  .type = VIDMM_EVENT_RESIDENCY,
	  .reason = VIDMM_RESIDENCY_PRESSURE,
	  .object = 0x04500001,
	  .arg = {65536, 1, 0, 0x20000}},
	 NULL,
	 "#12 1000345ns p1 residency/pressure 0x04500001 bytes=65536 from=1 to=0 "
	 "offset=0x20000"},
	{{.sequence = 1,
	  .type = VIDMM_EVENT_DOOR,
	  .reason = VIDMM_DOOR_LOCK,
	  .arg = {0xC01E0102, 1, 2000, 0x80}},
	 NULL,
	 "#1 0ns p0 door/lock status=0xc01e0102 elements=1 ns=2000 flags=0x80"},
	/*
	 * An unknown reason keeps its number; an argument without a meaning is shown if it
	 * is not 0.
	 */
	{{.sequence = 2, .type = VIDMM_EVENT_DDI, .reason = 999, .arg = {0, 7, 0, 0x30}},
	 NULL,
	 "#2 0ns p0 ddi/999 status=0x00000000 arg1=0x7 arg3=0x30"},
	{{.sequence = 2,
	  .type = VIDMM_EVENT_DDI,
	  .reason = VIDMM_DDI_SUBMIT_COMMAND,
	  .arg = {0, 7, 0, 0x30}},
	 NULL,
	 "#2 0ns p0 ddi/submit_command status=0x00000000 fence=7 start=0 end=48"},
	{{.sequence = 3,
	  .type = VIDMM_EVENT_VICTIM,
	  .process = 2,
	  .object = 9,
	  .reason = VIDMM_VICTIM_CAPACITY,
	  .arg = {8, 1, 4096, 5}},
	 NULL,
	 "#3 0ns p2 victim/capacity 0x00000009 for=0x00000008 of=1 bytes=4096 "
	 "residents=5"},
	{{.sequence = 3,
	  .type = VIDMM_EVENT_LOCK,
	  .process = 2,
	  .object = 9,
	  .arg = {8, 0, 4096, 5}},
	 NULL,
	 "#3 0ns p2 lock 0x00000009 flags=0x8 waited_ns=0 bytes=4096 old=0x00000005"},
	/* Text of a client cannot fake another line. */
	{{.sequence = 4, .type = VIDMM_EVENT_FINDING, .process = 1},
	 "LOCK-07: name \"a\n#5 0ns\tb\"",
	 "#4 0ns p1 finding : LOCK-07: name \"a?#5 0ns?b\""},
	{{.sequence = 5, .type = 63, .arg = {1}}, "", "#5 0ns p0 unknown arg0=0x1"},
	{{.sequence = 6,
	  .type = VIDMM_EVENT_RENAME,
	  .reason = 1,
	  .object = 2,
	  .arg = {1, 3, 64, 1}},
	 NULL,
	 "#6 0ns p0 rename/reused 0x00000002 old=0x00000001 instances=3 bytes=64 busy=1"},
};

static void lines_have_a_stable_form(void **state)
{
	char line[VMM_OBSERVE_LINE_BYTES];

	(void)state;
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(cases); i++) {
		size_t length =
			vmm_observe_format(&cases[i].event, cases[i].text, line, sizeof(line));

		assert_string_equal(line, cases[i].line);
		assert_int_equal(length, strlen(line));
	}
}

static void a_line_is_cut_at_the_end_of_its_buffer(void **state)
{
	struct vidmm_event event = {.type = VIDMM_EVENT_REASON,
				    .sequence = UINT64_MAX,
				    .time_ns = UINT64_MAX,
				    .process = UINT32_MAX,
				    .reason = UINT16_MAX,
				    .object = UINT32_MAX,
				    .arg = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}};
	char text[VMM_OBSERVE_TEXT_BYTES], whole[VMM_OBSERVE_LINE_BYTES],
		line[VMM_OBSERVE_LINE_BYTES];
	size_t length;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	length = vmm_observe_format(&event, text, whole, sizeof(whole));
	assert_true(length < sizeof(whole) - 1); /* LINE_BYTES is enough for any event */
	assert_int_equal(vmm_observe_format(&event, text, line, 0), 0);
	for (size_t size = 1; size < sizeof(line); size++) {
		memset(line, 0x5A, sizeof(line));
		length = vmm_observe_format(&event, text, line, size);
		assert_int_equal(length, strlen(line));
		assert_true(length < size);
		assert_memory_equal(line, whole, length);
		for (size_t i = size; i < sizeof(line); i++)
			assert_int_equal(line[i], 0x5A);
	}
}

static void the_ring_holds_the_last_events_oldest_first(void **state)
{
	struct vmm_observe *observe = make_stream();
	struct vmm_observe_ring *ring;
	struct vmm_observe_record records[8];

	(void)state;
	assert_int_equal(vmm_observe_ring_create(observe, VMM_OBSERVE_ALL, 4, &ring), VMM_OK);
	assert_int_equal(vmm_observe_ring_last(ring, 0, records, 8), 0);
	for (uint32_t i = 1; i <= 3; i++)
		vmm_event(observe, VIDMM_EVENT_SPLIT, 0, i, 0, 0, 0, 0, 0);
	assert_int_equal(vmm_observe_ring_last(ring, 0, records, 8), 3);
	for (uint32_t i = 4; i <= 11; i++)
		vmm_event(observe, VIDMM_EVENT_SPLIT, 0, i, 0, 0, 0, 0, 0);
	assert_int_equal(vmm_observe_ring_last(ring, 0, records, 8), 4);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(records[i].event.sequence, 8 + i);
		assert_int_equal(records[i].event.object, 8 + i);
		assert_string_equal(records[i].text, "");
	}
	assert_int_equal(vmm_observe_ring_last(ring, 0, records, 2), 2);
	assert_int_equal(records[0].event.sequence, 10);
	assert_int_equal(records[1].event.sequence, 11);
	vmm_observe_ring_destroy(ring);
	vmm_event(observe, VIDMM_EVENT_SPLIT, 0, 1, 0, 0, 0, 0, 0);
	vmm_observe_ring_destroy(NULL);
	vmm_observe_destroy(observe);
}

static void the_ring_finds_events_of_one_object(void **state)
{
	struct vmm_observe *observe = make_stream();
	struct vmm_observe_ring *ring;
	struct vmm_observe_record records[8];

	(void)state;
	assert_int_equal(vmm_observe_ring_create(observe, VMM_OBSERVE_ALL, 64, &ring), VMM_OK);
	vmm_event(observe, VIDMM_EVENT_CREATE, 1, 5, 0, 4096, 0, 0, 0);
	vmm_event(observe, VIDMM_EVENT_CREATE, 1, 7, 0, 5, 5, 5, 5);
	vmm_event(observe, VIDMM_EVENT_RENAME, 1, 6, 0, 5, 2, 4096, 0);
	vmm_event(observe, VIDMM_EVENT_LOCK, 1, 6, 0, 0x80, 0, 4096, 5);
	vmm_event(observe, VIDMM_EVENT_FENCE, 0, 0, 0, 5, 0, 5, 0);
	vmm_finding(observe, "REF-07", 1, 5, "late");
	assert_int_equal(vmm_observe_ring_last(ring, 5, records, 8), 4);
	assert_int_equal(records[0].event.type, VIDMM_EVENT_CREATE);
	assert_int_equal(records[1].event.type, VIDMM_EVENT_RENAME);
	assert_int_equal(records[2].event.type, VIDMM_EVENT_LOCK);
	assert_string_equal(records[3].text, "REF-07: late");
	assert_int_equal(vmm_observe_ring_last(ring, 5, records, 1), 1);
	assert_string_equal(records[0].text, "REF-07: late");
	assert_int_equal(vmm_observe_ring_last(ring, 99, records, 8), 0);
	vmm_observe_ring_destroy(ring);
	vmm_observe_destroy(observe);
}

static void the_ring_keeps_only_types_in_its_mask_and_cuts_texts(void **state)
{
	struct vmm_observe *observe = make_stream();
	struct vmm_observe_ring *ring;
	struct vmm_observe_record records[4];
	char text[2 * VMM_OBSERVE_RECORD_TEXT_BYTES];

	(void)state;
	memset(text, 't', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(
		vmm_observe_ring_create(observe, vmm_observe_bit(VIDMM_EVENT_REASON), 4, &ring),
		VMM_OK);
	vmm_event(observe, VIDMM_EVENT_WAIT, 0, 0, 0, 0, 0, 0, 0);
	vmm_reason(observe, VMM_NO_MEMORY, 0, 0, "%s", text);
	vmm_reason(observe, VMM_NO_MEMORY, 0, 0, "short");
	assert_int_equal(vmm_observe_ring_last(ring, 0, records, 4), 2);
	assert_int_equal(strlen(records[0].text), VMM_OBSERVE_RECORD_TEXT_BYTES - 1);
	assert_string_equal(records[1].text, "short");
	vmm_observe_ring_destroy(ring);
	vmm_observe_destroy(observe);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_type_has_a_unique_name),
		cmocka_unit_test(every_reason_of_the_schema_has_a_name),
		cmocka_unit_test(lines_have_a_stable_form),
		cmocka_unit_test(a_line_is_cut_at_the_end_of_its_buffer),
		cmocka_unit_test(the_ring_holds_the_last_events_oldest_first),
		cmocka_unit_test(the_ring_finds_events_of_one_object),
		cmocka_unit_test(the_ring_keeps_only_types_in_its_mask_and_cuts_texts),
	};

	return cmocka_run_group_tests_name("observe_dump", tests, NULL, NULL);
}
