/* SPDX-License-Identifier: MIT */
/*
 * Every rule of the trace format, broken once: the reader names the line and the fault, and stops
 * there.
 */
#include <stdio.h>
#include <string.h>

#include "support/test.h"
#include "trace.h"

#define HEADER                                                             \
	"#gemtrace 1\n#program p\n#note n\n#driver d\n#chipset 0x0416 c\n" \
	"#date 2026-01-01\n#t0 7\n"                                        \
	"#model base_ns=1 bytes_per_ns=2\n#wtrack 1\n"
#define FIRST "0 c 1 8192\n0 c 2 4096\n0 m 1 0 4096 wb\n0 k 1\n"

/* Line 10 is the first event; FIRST ends at line 13, so a broken event after it is line 14. */
struct broken {
	const char *text;
	unsigned line;
	const char *what;
};

static void expect_bad(const char *text, size_t size, unsigned line, const char *what)
{
	struct trace_reader *reader;
	struct trace_event event;
	char place[32];
	enum trace_result result = trace_open_memory("t", text, size, NULL, &reader);

	while (result == TRACE_OK)
		result = trace_next(reader, &event);
	snprintf(place, sizeof(place), "t:%u: ", line);
	if (result != TRACE_BAD || strncmp(trace_error(reader), place, strlen(place)) != 0 ||
	    !strstr(trace_error(reader), what))
		fail_msg("\"%s\": result %d, \"%s\", expected \"%s\" at line %u", text, (int)result,
			 trace_error(reader), what, line);
	/* Further reads return the same error. */
	assert_int_equal(trace_next(reader, &event), TRACE_BAD);
	trace_close(reader);
}

static void expect_all_bad(const struct broken *cases, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		expect_bad(cases[i].text, strlen(cases[i].text), cases[i].line, cases[i].what);
}

#define EXPECT_ALL_BAD(cases) expect_all_bad(cases, sizeof(cases) / sizeof((cases)[0]))

static void header_lines_come_in_order(void **state)
{
	static const struct broken cases[] = {
		{"", 1, "no #end"},
		{"#end 0\n", 1, "\"#gemtrace\" expected"},
		{"#gemtrace 2\n", 1, "version"},
		{"#gemtrace 1", 1, "cut short"},
		{"#gemtrace 1\n#note n\n", 2, "\"#program\" expected"},
		{"#gemtrace 1\n#programs p\n", 2, "\"#program\" expected"},
		{"#gemtrace 1\n0 c 1 4096\n", 2, "\"#program\" expected"},
		{"#gemtrace 1\n#program p\n#note n\n#driver d\n#chipset c\n#date d\n#t0 x\n", 7,
		 "#t0"},
		{"#gemtrace 1\n#program p\n#note n\n#driver d\n#chipset c\n#date d\n#t0 5 \n", 7,
		 "#t0"},
		{"#gemtrace 1\n#program p\n#note n\n#driver d\n#chipset c\n#date d\n"
		 "#t0 18446744073709551615\n",
		 7, "#t0"},
		{"#gemtrace 1\n#program p\n#note n\n#driver d\n#chipset c\n#date d\n"
		 "#t0 5\n#model m\n#wtrack 2\n",
		 9, "#wtrack"},
		{HEADER "#note again\n", 10, "unexpected # line"},
		{HEADER FIRST "#t0 9\n", 14, "unexpected # line"},
	};

	(void)state;
	EXPECT_ALL_BAD(cases);
}

static void the_end_counts_the_events_and_is_the_end(void **state)
{
	static const struct broken cases[] = {
		{HEADER FIRST, 14, "no #end"},
		{HEADER FIRST "#end 3\n", 14, "a count of 3, but the recording has 4 events"},
		{HEADER FIRST "#end\n", 14, "unexpected # line"},
		{HEADER FIRST "#end four\n", 14, "number of events"},
		{HEADER FIRST "#end 4", 14, "cut short"},
		{HEADER FIRST "#end 4\n0 d 1\n", 15, "after #end"},
		{HEADER FIRST "#end 4\n#end 4\n", 15, "after #end"},
		{HEADER FIRST "#end 4\n\n", 15, "after #end"},
		{HEADER FIRST "#end 4\nx", 15, "after #end"},
	};

	(void)state;
	EXPECT_ALL_BAD(cases);
}

static void events_begin_with_a_time_that_does_not_decrease(void **state)
{
	static const struct broken cases[] = {
		{HEADER "5 c 1 4096\n4 d 1\n", 11, "before that of the previous"},
		{HEADER "c 1 4096\n", 10, "expected a time in ns"},
		{HEADER " 0 c 1 4096\n", 10, "expected a time in ns"},
		{HEADER "-1 c 1 4096\n", 10, "expected a time in ns"},
		{HEADER "9223372036854775807 c 1 4096\n", 10, "too large"},
		{HEADER "99999999999999999999999 c 1 4096\n", 10, "expected a time in ns"},
		{HEADER "0\n", 10, "expected a time in ns"},
		{HEADER "\n", 10, "expected a time in ns"},
		{HEADER "0 \n", 10, "unknown event"},
		{HEADER "0 z 1\n", 10, "unknown event"},
		{HEADER "0 cc 1\n", 10, "unknown event"},
		{HEADER "0 5 1\n", 10, "unknown event"},
		{HEADER "0  c 1 4096\n", 10, "unknown event"},
		{HEADER "0 c 1 4096\r\n", 10, "event c: expected"},
		{HEADER FIRST "1 d 1 ", 14, "cut short"},
	};

	(void)state;
	EXPECT_ALL_BAD(cases);
}

static void buffers_count_up_and_have_pages(void **state)
{
	static const struct broken cases[] = {
		{HEADER "0 c 2 4096\n", 10, "out of order"},
		{HEADER "0 c 0 4096\n", 10, "out of order"},
		{HEADER FIRST "0 c 2 4096\n", 14, "out of order"},
		{HEADER FIRST "0 c 4 4096\n", 14, "out of order"},
		{HEADER "0 c 1 0\n", 10, "number of pages"},
		{HEADER "0 c 1 4097\n", 10, "number of pages"},
		{HEADER "0 i 1 100 7\n", 10, "number of pages"},
		{HEADER "0 c 1 2199023255552\n", 10, "larger than"},
		{HEADER "0 c 1\n", 10, "event c: expected"},
		{HEADER "0 c 1 4096 x\n", 10, "event c: expected"},
		{HEADER "0 c 1 4096 u 3\n", 10, "event c: expected"},
		{HEADER "0 c 1 4096 uu\n", 10, "event c: expected"},
		{HEADER "0 c 1 4096 \n", 10, "event c: expected"},
		{HEADER "0 c 1 -4096\n", 10, "event c: expected"},
		{HEADER "0 i 1 4096\n", 10, "event i: expected"},
		{HEADER "0 i 1 4096 7 8\n", 10, "event i: expected"},
		{HEADER FIRST "0 e 3 7\n", 14, "undefined buffer 3"},
		{HEADER FIRST "0 e 1 key\n", 14, "event e: expected"},
		{HEADER FIRST "0 d 1\n1 d 1\n", 15, "undefined buffer 1"},
		{HEADER FIRST "0 d 0\n", 14, "undefined buffer 0"},
		{HEADER FIRST "0 d 1 2\n", 14, "event d: expected"},
		{HEADER FIRST "0 d x\n", 14, "event d: expected"},
	};

	(void)state;
	EXPECT_ALL_BAD(cases);
}

static void ranges_lie_in_their_buffer(void **state)
{
	static const struct broken cases[] = {
		{HEADER FIRST "0 m 1 4096 8192 wb\n", 14, "outside the buffer"},
		{HEADER FIRST "0 m 1 0 0 wb\n", 14, "outside the buffer"},
		{HEADER FIRST "0 w 1 18446744073709551614 4096 p\n", 14, "outside the buffer"},
		{HEADER FIRST "0 r 1 8192 1\n", 14, "outside the buffer"},
		{HEADER FIRST "0 r 1 0 8193\n", 14, "outside the buffer"},
		{HEADER FIRST "0 r 3 0 1\n", 14, "undefined buffer 3"},
		{HEADER FIRST "0 r 1 0\n", 14, "event r: expected"},
		{HEADER FIRST "0 r 1 0 1 x\n", 14, "event r: expected"},
		{HEADER FIRST "0 m 1 0 4096 wx\n", 14, "map type"},
		{HEADER FIRST "0 m 1 0 4096 wbx\n", 14, "map type"},
		{HEADER FIRST "0 m 1 0 4096\n", 14, "event m: expected"},
		{HEADER FIRST "0 u 1 0 8192\n", 14, "not mapped"},
		{HEADER FIRST "0 u 1 0 4096\n0 u 1 0 4096\n", 15, "not mapped"},
		{HEADER FIRST "0 w 2 0 4096 m\n", 14, "is not mapped"},
		{HEADER FIRST "0 u 1 0 4096\n0 w 1 0 4096 m\n", 15, "is not mapped"},
		{HEADER FIRST "0 w 1 0 4096 x\n", 14, "write kind"},
		{HEADER FIRST "0 w 1 0 4096\n", 14, "event w: expected"},
	};

	(void)state;
	EXPECT_ALL_BAD(cases);
}

static void other_events_have_their_fields(void **state)
{
	static const struct broken cases[] = {
		{HEADER FIRST "0 k 1\n", 14, "already exists"},
		{HEADER FIRST "0 k 0\n", 14, "already exists"},
		{HEADER FIRST "0 k -1\n", 14, "event k: expected"},
		{HEADER FIRST "0 K 2\n", 14, "unknown context"},
		{HEADER FIRST "0 K 0\n", 14, "always exists"},
		{HEADER FIRST "0 K 1\n0 K 1\n", 15, "unknown context"},
		{HEADER FIRST "0 s 1 1\n", 14, "event s: expected"},
		{HEADER FIRST "0 s 1 1 g\n", 14, "event s: expected"},
		{HEADER FIRST "0 s 1 100000000 0\n", 14, "event s: expected"},
		{HEADER FIRST "0 q 1 -1\n", 14, "event q: expected"},
		{HEADER FIRST "0 q 1 - 0\n", 14, "event q: expected"},
		{HEADER FIRST "0 q 1 5-1 0\n", 14, "event q: expected"},
		{HEADER FIRST "0 b 1 2\n", 14, "event b: expected"},
		{HEADER FIRST "0 b 1\n", 14, "event b: expected"},
		{HEADER FIRST "0 a 1 2\n", 14, "event a: expected"},
		{HEADER FIRST "0 a 9 1\n", 14, "undefined buffer 9"},
		{HEADER FIRST "0 f 1\n", 14, "event f: expected"},
		{HEADER FIRST "0 f 1 x\n", 14, "event f: expected"},
		{HEADER FIRST "0 y 1 rr begin\n", 14, "event y: expected"},
		{HEADER FIRST "0 y 1 wr begin\n", 14, "event y: expected"},
		{HEADER FIRST "0 y 1 rw middle\n", 14, "event y: expected"},
		{HEADER FIRST "0 y 1 begin\n", 14, "event y: expected"},
		{HEADER FIRST "0 t 1 3 512\n", 14, "event t: expected"},
		{HEADER FIRST "0 t 1 1\n", 14, "event t: expected"},
		{HEADER FIRST "0 t 1 1 4294967296\n", 14, "event t: expected"},
		{HEADER FIRST "0 v 1 xyz\n", 14, "event v: expected"},
		{HEADER FIRST "0 v 1 0123456789abcdef0\n", 14, "event v: expected"},
		{HEADER FIRST "0 v 1\n", 14, "event v: expected"},
	};

	(void)state;
	EXPECT_ALL_BAD(cases);
}

static void submissions_list_known_buffers_once(void **state)
{
	static const struct broken cases[] = {
		{HEADER FIRST "0 x 2 1 1 0 0 0 1 0 1\n", 14,
		 "submission number 2 is out of order: expected 1"},
		{HEADER FIRST "0 x 1 1 1 0 0 0 1 0 1\n0 x 1 1 1 0 0 0 1 0 1\n", 15,
		 "out of order: expected 2"},
		{HEADER FIRST "0 x 1 2 1 0 0 0 1 0 1\n", 14, "unknown context 2"},
		{HEADER FIRST "0 K 1\n0 x 1 1 1 0 0 0 1 0 1\n", 15, "unknown context 1"},
		{HEADER FIRST "0 x 1 1 1 1 0 0 1 0 1\n", 14, "batch index"},
		{HEADER FIRST "0 x 1 1 1 0 0 0 0 0\n", 14, "batch index"},
		{HEADER FIRST "0 x 1 1 1 0 0 0 70000 0 1\n", 14, "more than 65535 objects"},
		{HEADER FIRST "0 x 1 1 1 0 0 0 2 0 1\n", 14, "2 objects announced, 1 listed"},
		{HEADER FIRST "0 x 1 1 1 0 0 0 1 0 1 2\n", 14, "relocation before the @"},
		{HEADER FIRST "0 x 1 1 1 0 0 0 1 0 3\n", 14, "undefined buffer 3"},
		{HEADER FIRST "0 d 2\n0 x 1 1 1 0 0 0 1 0 2\n", 15, "undefined buffer 2"},
		{HEADER FIRST "0 x 1 1 1 0 0 0 2 0 1 1\n", 14, "listed twice"},
		{HEADER FIRST "0 x 1 1 1 0 0 0 1 0 1cw\n", 14, "object 0 is not"},
		{HEADER FIRST "0 x 1 1 1 0 0 0 1 0 1ww\n", 14, "object 0 is not"},
		{HEADER FIRST "0 x 1 1 1 0 0 0 1 0 1z\n", 14, "object 0 is not"},
		{HEADER FIRST "0 x 1 1 1 0 0 0 1 0 1w2\n", 14, "object 0 is not"},
		{HEADER FIRST "0 x 1 1 1 0 0 0 1 0 w\n", 14, "object 0 is not"},
		{HEADER FIRST "0 x 1 1 1 0 8192 1 1 0 1\n", 14, "batch outside"},
		{HEADER FIRST "0 x 1 1 1 0 18446744073709551614 4 1 0 1\n", 14, "batch outside"},
		{HEADER FIRST "0 x 1 1 1 0 0 0 1\n", 14, "event x: expected"},
		{HEADER FIRST "0 x 1 1 1 0 0 -1 1 0 1\n", 14, "event x: expected"},
		{HEADER FIRST "0 x 1 1 1 0 0 0 1 0 1 \n", 14, "relocation before the @"},
	};

	(void)state;
	EXPECT_ALL_BAD(cases);
}

#define X "0 x 1 1 1 0 0 0 2 "

static void relocations_are_announced_and_lie_in_their_buffer(void **state)
{
	static const struct broken cases[] = {
		{HEADER FIRST X "1 1 2\n", 14, "0 relocations, but the line announces 1"},
		{HEADER FIRST X "0 1 2 @0 4:1\n", 14, "1 relocations, but the line announces 0"},
		{HEADER FIRST X "1 1 2 4:1\n", 14, "relocation before the @"},
		{HEADER FIRST X "1 1 2 @2 4:1\n", 14, "source is not in the object list"},
		{HEADER FIRST X "1 1 2 @ 4:1\n", 14, "source is not in the object list"},
		{HEADER FIRST X "1 1 2 @0 4:2\n", 14, "relocation 4:2 is not"},
		{HEADER FIRST X "1 1 2 @0 8189:1\n", 14, "relocation 8189:1 is not"},
		{HEADER FIRST X "1 1 2 @1 4093:1\n", 14, "relocation 4093:1 is not"},
		{HEADER FIRST X "2 1 2 @0 4:1 -5:1\n", 14, "relocation -5:1 is not"},
		{HEADER FIRST X "2 1 2 @0 4:1 -9223372036854775807:1\n", 14, "relocation -9223"},
		{HEADER FIRST X "2 1 2 @0 4:1 18446744073709551612:1\n", 14, "relocation 1844"},
		{HEADER FIRST X "1 1 2 @0 4:1+4294967296\n", 14,
		 "relocation 4:1+4294967296 is not"},
		{HEADER FIRST X "1 1 2 @0 4:1+\n", 14, "relocation 4:1+ is not"},
		{HEADER FIRST X "1 1 2 @0 4:1+2ww\n", 14, "relocation 4:1+2ww is not"},
		{HEADER FIRST X "1 1 2 @0 4:\n", 14, "relocation 4: is not"},
		{HEADER FIRST X "1 1 2 @0 :1\n", 14, "relocation :1 is not"},
		{HEADER FIRST X "1 1 2 @0 4\n", 14, "relocation 4 is not"},
		{HEADER FIRST X "1 1 2 @0 4:1x\n", 14, "unexpected text"},
		{HEADER FIRST X "1 1 2 @0  4:1\n", 14, "relocation  is not"},
		{HEADER FIRST X "1 1 2 @0 4:1 \n", 14, "relocation  is not"},
		{HEADER FIRST X "1 1 2 @0x 4:1\n", 14, "unexpected text"},
		{HEADER FIRST X "0 1 2 ?\n", 14, "fence token"},
		{HEADER FIRST X "0 1 2 !x\n", 14, "fence token"},
		{HEADER FIRST X "1 1 2 @0 4:1 !5\n", 14, "relocation !5 is not"},
		{HEADER FIRST X "0 1 2 !5x\n", 14, "unexpected text"},
	};

	(void)state;
	EXPECT_ALL_BAD(cases);
}

static void bytes_that_are_no_text_are_refused(void **state)
{
	static const char zero[] = HEADER "0 c 1\0004096\n";
	static const char zstd[] = "\x28\xB5\x2F\xFD garbage that is no frame";
	static const char cut[] = "\x28\xB5\x2F\xFD";

	(void)state;
	expect_bad(zero, sizeof(zero) - 1, 10, "event c: expected");
	expect_bad(zstd, sizeof(zstd) - 1, 1, "zstd");
	expect_bad(cut, sizeof(cut) - 1, 1, "cut short");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(header_lines_come_in_order),
		cmocka_unit_test(the_end_counts_the_events_and_is_the_end),
		cmocka_unit_test(events_begin_with_a_time_that_does_not_decrease),
		cmocka_unit_test(buffers_count_up_and_have_pages),
		cmocka_unit_test(ranges_lie_in_their_buffer),
		cmocka_unit_test(other_events_have_their_fields),
		cmocka_unit_test(submissions_list_known_buffers_once),
		cmocka_unit_test(relocations_are_announced_and_lie_in_their_buffer),
		cmocka_unit_test(bytes_that_are_no_text_are_refused),
	};

	return cmocka_run_group_tests_name("trace_rules", tests, NULL, NULL);
}
