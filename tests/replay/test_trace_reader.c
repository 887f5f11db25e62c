/* SPDX-License-Identifier: MIT */
/*
 * How the reader reads valid recordings, however they are stored and divided; its limits; merging.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include <support/temporary.h>
#include "recording.h"
#include "trace.h"

#define HEADER                                                                               \
	"#gemtrace 1\n#program p\n#note n\n#driver d\n#chipset 0x0416 c\n#date 2026-01-01\n" \
	"#t0 7\n#model base_ns=150000 bytes_per_ns=20\n#wtrack 1\n"

static struct trace_reader *open_text(const char *text, enum trace_result expected)
{
	struct trace_reader *reader;

	assert_int_equal(trace_open_memory("t", text, strlen(text), NULL, &reader), expected);
	return reader;
}

static void expect_end(struct trace_reader *reader)
{
	struct trace_event event;
	enum trace_result result;

	do {
		result = trace_next(reader, &event);
	} while (result == TRACE_OK);
	assert_string_equal(trace_error(reader), "");
	assert_int_equal(result, TRACE_END);
	trace_close(reader);
}

static void header_texts_are_kept_without_control_characters(void **state)
{
	struct trace_reader *reader =
		open_text("#gemtrace 1\n#program a\033[31m\xFF\xC3\xA9\n#note\n#driver d\n"
			  "#chipset 0x0416 c\n#date 2026-01-01\n#t0 12345678901\n"
			  "#model base_ns=150000 bytes_per_ns=20\n#wtrack 0\n#end 0\n",
			  TRACE_OK);
	const struct trace_header *header = trace_header(reader);

	(void)state;
	assert_string_equal(header->program, "a?[31m?\xC3\xA9");
	assert_string_equal(header->note, "");
	assert_string_equal(header->chipset, "0x0416 c");
	assert_int_equal(header->t0_ns, 12345678901);
	assert_int_equal(header->base_ns, 150000);
	assert_true(header->bytes_per_ns == 20);
	assert_false(header->write_tracking);
	expect_end(reader);
}

static void events_carry_their_fields(void **state)
{
	struct trace_reader *reader = open_text(
		HEADER
		"5 c 1 8192 u\n6 i 2 4096 77\n6 i 3 4096 a-key\n6 m 1 4096 4096 fix\n"
		"7 w 1 4096 4096 m\n8 w 1 1 2 p\n9 q 1 -1 33\n10 s 1 41 0x80\n11 y 1 rw end\n"
		"12 t 1 2 512\n13 v 1 7fff0000\n14 a 1 0\n15 f 9 250\n16 d 1\n#end 14\n",
		TRACE_OK);
	struct trace_event event[14];
	unsigned i;

	(void)state;
	for (i = 0; i < 14; i++)
		assert_int_equal(trace_next(reader, &event[i]), TRACE_OK);
	assert_int_equal(event[0].time_ns, 5);
	assert_int_equal(event[0].line, 10);
	assert_true(event[0].u.create.user_memory && event[0].u.create.size_bytes == 8192);
	assert_true(event[1].u.create.keyed && event[1].u.create.key == 77);
	assert_false(event[2].u.create.keyed);
	assert_true(event[3].u.range.offset == 4096 && event[3].u.range.length == 4096);
	assert_false(event[4].u.range.exact);
	assert_true(event[5].u.range.exact);
	assert_true(event[6].u.wait.timeout_ns == -1 && event[6].u.wait.waited_ns == 33);
	assert_true(event[7].u.domain.read == 0x41 && event[7].u.domain.write == 0x80);
	assert_true(event[8].u.sync.read && event[8].u.sync.write && !event[8].u.sync.begin);
	assert_true(event[9].u.tiling.mode == 2 && event[9].u.tiling.stride_bytes == 512);
	assert_int_equal(event[10].u.address, 0x7fff0000);
	assert_false(event[11].u.needed);
	assert_int_equal(event[12].u.wait.waited_ns, 250);
	assert_true(event[13].id == 1 && event[13].u.create.size_bytes == 8192);
	expect_end(reader);
}

static void submissions_carry_their_lists(void **state)
{
	struct trace_reader *reader =
		open_text(HEADER "0 c 1 16384\n0 c 2 1048576\n0 c 3 65536\n0 k 1\n"
				 "9 x 1 1 3 0 64 256 3 5 1c 2wfgac 3 ?4 !5 @0 64:1 8:2+128 "
				 "@2 0:0+4294967295w 12345:1 -12345:0\n#end 5\n",
			  TRACE_OK);
	const struct trace_submission *s;
	struct trace_event event;
	unsigned i;

	(void)state;
	for (i = 0; i < 5; i++)
		assert_int_equal(trace_next(reader, &event), TRACE_OK);
	s = event.u.submission;
	assert_true(s->number == 1 && s->context == 1 && s->ring == 3 && s->batch == 0);
	assert_true(s->start == 64 && s->length == 256);
	assert_int_equal(s->referenced_bytes, 16384 + 1048576 + 65536);
	assert_int_equal(s->object_count, 3);
	assert_int_equal(s->objects[0].flags, TRACE_OBJECT_CAPTURE);
	assert_int_equal(s->objects[1].flags, 31);
	assert_int_equal(s->objects[2].flags, 0);
	assert_int_equal(s->fence_count, 2);
	assert_true(s->fences[0].number == 4 && !s->fences[0].signal);
	assert_true(s->fences[1].number == 5 && s->fences[1].signal);
	assert_int_equal(s->group_count, 2);
	assert_true(s->groups[0].source == 0 && s->groups[0].first == 0);
	assert_true(s->groups[1].source == 2 && s->groups[1].first == 2);
	assert_int_equal(s->relocation_count, 5);
	assert_true(s->relocations[0].offset == 64 && s->relocations[0].target == 1);
	assert_true(s->relocations[1].offset == 72 && s->relocations[1].delta == 128);
	assert_true(s->relocations[2].offset == 0 && s->relocations[2].delta == UINT32_MAX &&
		    s->relocations[2].write);
	assert_true(s->relocations[3].offset == 12345 && s->relocations[4].offset == 0);
	expect_end(reader);
}

/*
 * A recording that is read in many parts: larger than any buffer of the reader, with lines of very
 * different length.
 */
static struct recording long_recording(void)
{
	struct recording recording;
	unsigned i, k;

	recording_begin(&recording, "long", 0);
	recording_event(&recording, "0 c 1 1048576");
	recording_event(&recording, "0 c 2 4096");
	recording_event(&recording, "0 k 1");
	for (i = 1; i <= 400; i++) {
		recording_part(&recording, "%u x %u 1 1 0 0 0 2 %u 1w 2 @0", i * 1000, i,
			       i * 7 % 1500);
		for (k = 0; k < i * 7 % 1500; k++)
			recording_part(&recording, " %u:%u+%u", k % 13, k % 2, k * k);
		recording_line(&recording);
		recording_event(&recording, "%u b 1 0", i * 1000 + 1);
	}
	recording_end(&recording);
	return recording;
}

/* Returns a hash of everything read. */
static uint64_t sum_of_events(struct trace_reader *reader, enum trace_result result)
{
	struct trace_event event;
	uint64_t sum = 0;
	uint32_t i;

	while (result == TRACE_OK && (result = trace_next(reader, &event)) == TRACE_OK) {
		sum = sum * 31 + event.time_ns + event.line + (uint64_t)event.op;
		if (event.op != TRACE_SUBMIT)
			continue;
		for (i = 0; i < event.u.submission->relocation_count; i++)
			sum = sum * 31 + event.u.submission->relocations[i].offset +
			      event.u.submission->relocations[i].delta +
			      event.u.submission->relocations[i].target;
	}
	assert_string_equal(trace_error(reader), "");
	assert_int_equal(result, TRACE_END);
	trace_close(reader);
	return sum;
}

static uint64_t sum_of_memory(const void *bytes, size_t size)
{
	struct trace_reader *reader;
	enum trace_result result = trace_open_memory("t", bytes, size, NULL, &reader);

	return sum_of_events(reader, result);
}

static uint64_t sum_of_file(const char *path, unsigned flags)
{
	struct trace_reader *reader;
	enum trace_result result = trace_open_file(path, NULL, flags, &reader);

	return sum_of_events(reader, result);
}

static void compression_makes_no_difference(void **state)
{
	struct recording text = long_recording();
	size_t room = ZSTD_compressBound(text.length) * 2;
	char *packed = malloc(room), *path = temporary_file();
	size_t half = text.length / 2, size;
	struct trace_reader *reader;
	uint64_t sum;

	(void)state;
	sum = sum_of_memory(text.bytes, text.length);
	write_file(path, text.bytes, text.length);
	assert_int_equal(sum, sum_of_file(path, 0));
	assert_int_equal(sum, sum_of_file(path, TRACE_READ_AHEAD));
	/* Two frames, cut in the middle of a line. */
	size = ZSTD_compress(packed, room, text.bytes, half, 3);
	size += ZSTD_compress(packed + size, room - size, text.bytes + half, text.length - half, 3);
	assert_int_equal(sum, sum_of_memory(packed, size));
	write_file(path, packed, size);
	assert_int_equal(sum, sum_of_file(path, 0));
	assert_int_equal(sum, sum_of_file(path, TRACE_READ_AHEAD));
	/* A truncated frame is bad data, whether it is read ahead or not. */
	write_file(path, packed, size - 7);
	assert_int_equal(trace_open_file(path, NULL, TRACE_READ_AHEAD, &reader), TRACE_OK);
	{
		struct trace_event event;
		enum trace_result result;

		while ((result = trace_next(reader, &event)) == TRACE_OK)
			;
		assert_int_equal(result, TRACE_BAD);
		assert_non_null(strstr(trace_error(reader), "zstd stream: cut short"));
	}
	trace_close(reader);
	remove(path);
	free(path);
	free(packed);
	recording_free(&text);
}

/* The progress after each event is the share of the text before it, up to that error. */
static void expect_progress(struct trace_reader *reader, const struct recording *text, double error)
{
	const char *line = text->bytes;
	uint64_t number = 1, done, size, before = 0;
	struct trace_event event;

	while (trace_next(reader, &event) == TRACE_OK) {
		for (; number < event.line; number++)
			line = strchr(line, '\n') + 1;
		trace_progress(reader, &done, &size);
		double share = (double)(line - text->bytes) / (double)text->length;
		assert_true(done >= before && done <= size);
		assert_true((double)done / (double)size >= share - error);
		assert_true((double)done / (double)size <= share + error);
		before = done;
	}
	trace_progress(reader, &done, &size);
	assert_int_equal(done, size);
	trace_close(reader);
}

static void progress_follows_the_events_and_not_what_is_read_ahead(void **state)
{
	struct recording text = long_recording();
	size_t room = ZSTD_compressBound(text.length);
	char *packed = malloc(room), *path = temporary_file();
	size_t size = ZSTD_compress(packed, room, text.bytes, text.length, 3);
	struct trace_reader *reader;

	(void)state;
	for (unsigned ahead = 0; ahead < 2; ahead++) {
		write_file(path, text.bytes, text.length);
		assert_int_equal(trace_open_file(path, NULL, ahead ? TRACE_READ_AHEAD : 0, &reader),
				 TRACE_OK);
		expect_progress(reader, &text, 0.02);
		write_file(path, packed, size);
		assert_int_equal(trace_open_file(path, NULL, ahead ? TRACE_READ_AHEAD : 0, &reader),
				 TRACE_OK);
		/* The beginning of this text compresses less than its end. */
		expect_progress(reader, &text, 0.4);
	}
	remove(path);
	free(path);
	free(packed);
	recording_free(&text);
}

static void a_reader_may_be_closed_at_any_time(void **state)
{
	struct recording text = long_recording();
	char *path = temporary_file();
	struct trace_reader *reader;
	struct trace_event event;

	(void)state;
	write_file(path, text.bytes, text.length);
	assert_int_equal(trace_open_file(path, NULL, TRACE_READ_AHEAD, &reader), TRACE_OK);
	trace_close(reader);
	assert_int_equal(trace_open_file(path, NULL, TRACE_READ_AHEAD, &reader), TRACE_OK);
	assert_int_equal(trace_next(reader, &event), TRACE_OK);
	trace_close(reader);
	remove(path);
	free(path);
	recording_free(&text);
}

static void a_missing_file_is_reported_as_missing(void **state)
{
	struct trace_reader *reader;

	(void)state;
	assert_int_equal(trace_open_file("/nonexistent/trace", NULL, 0, &reader), TRACE_IO);
	assert_non_null(strstr(trace_error(reader), "cannot be opened"));
	trace_close(reader);
	assert_int_equal(trace_open_file("/nonexistent/trace", NULL, TRACE_READ_AHEAD, &reader),
			 TRACE_IO);
	trace_close(reader);
	assert_int_equal(trace_open_file("/", NULL, 0, &reader), TRACE_IO);
	assert_non_null(strstr(trace_error(reader), "cannot be read"));
	trace_close(reader);
}

static void skimming_checks_all_but_the_contents_of_submissions(void **state)
{
	static const char text[] = HEADER "0 c 1 4096\n1 x anything at all\n2 d 1\n#end 3\n";
	char *path = temporary_file();
	struct trace_reader *reader;

	(void)state;
	write_file(path, text, sizeof(text) - 1);
	assert_int_equal(trace_open_file(path, NULL, TRACE_SKIM, &reader), TRACE_OK);
	expect_end(reader);
	remove(path);
	free(path);
}

static void expect_limit(const char *text, const struct trace_limits *limits, const char *what)
{
	struct trace_reader *reader;
	struct trace_event event;
	enum trace_result result = trace_open_memory("t", text, strlen(text), limits, &reader);

	while (result == TRACE_OK)
		result = trace_next(reader, &event);
	assert_int_equal(result, TRACE_BAD);
	assert_non_null(strstr(trace_error(reader), what));
	trace_close(reader);
}

static void limits_bound_the_memory_of_a_recording(void **state)
{
	struct trace_limits limits = {.line_bytes = 100,
				      .buffers = 3,
				      .maps = 2,
				      .contexts = 1,
				      .objects = 1,
				      .buffer_bytes = 8192,
				      .live_bytes = 12288};

	(void)state;
	expect_limit(HEADER "0 c 1 12288\n#end 1\n", &limits, "larger than 8192");
	expect_limit(HEADER "0 c 1 8192\n0 c 2 8192\n#end 2\n", &limits, "or 12288 together");
	expect_limit(HEADER "0 c 1 4096\n0 d 1\n0 c 2 4096\n0 d 2\n0 c 3 4096\n0 d 3\n0 c 4 4096\n",
		     &limits, "more than 3 buffers");
	expect_limit(HEADER "0 c 1 4096\n0 m 1 0 1 wb\n0 m 1 0 1 wb\n0 m 1 0 1 wb\n", &limits,
		     "more than 2 mappings");
	expect_limit(HEADER "0 k 1\n0 k 2\n", &limits, "more than 1 contexts");
	expect_limit(HEADER "0 c 1 4096\n0 c 2 4096\n0 x 1 0 1 0 0 0 2 0 1 2\n", &limits,
		     "more than 1 objects");
	expect_limit("#gemtrace 1\n#program 01234567890123456789012345678901234567890123456789"
		     "01234567890123456789"
		     "0123456789012345678901234567890123456789\n",
		     &limits, "line longer than 100 bytes");
}

#define HEADER_AT(t0)                                                               \
	"#gemtrace 1\n#program p\n#note n\n#driver d\n#chipset c\n#date d\n#t0 " t0 \
	"\n#model m\n#wtrack 1\n"

static void processes_merge_by_their_own_clocks(void **state)
{
	static const char *const texts[3] = {
		HEADER_AT("1000") "0 c 1 4096\n100 c 2 4096\n200 c 3 4096\n#end 3\n",
		HEADER_AT("900") "200 c 1 4096\n250 c 2 4096\n#end 2\n",
		HEADER_AT("5000") "#end 0\n",
	};
	/*
	 * On the clock that begins first: 100/200/300 of the first, 200/250 of the second. Events
	 * at the same time are in the order of the inputs.
	 */
	static const struct {
		unsigned process, id;
		uint64_t when_ns;
	} expected[] = {{0, 1, 100}, {0, 2, 200}, {1, 1, 200}, {1, 2, 250}, {0, 3, 300}};
	struct trace_reader *readers[3];
	const struct trace_event *event;
	struct trace_merge *merge;
	uint64_t when_ns;
	unsigned i, process;

	(void)state;
	for (i = 0; i < 3; i++)
		readers[i] = open_text(texts[i], TRACE_OK);
	merge = trace_merge_create(readers, 3);
	for (i = 0; i < 5; i++) {
		assert_int_equal(trace_merge_next(merge, &process, &when_ns, &event), TRACE_OK);
		assert_int_equal(process, expected[i].process);
		assert_int_equal(event->id, expected[i].id);
		assert_int_equal(when_ns, expected[i].when_ns);
	}
	assert_int_equal(trace_merge_next(merge, &process, &when_ns, &event), TRACE_END);
	assert_int_equal(trace_merge_next(merge, &process, &when_ns, &event), TRACE_END);
	trace_merge_destroy(merge);
	for (i = 0; i < 3; i++)
		trace_close(readers[i]);
}

static void a_bad_process_is_named_by_the_merge(void **state)
{
	struct trace_reader *readers[2] = {
		open_text(HEADER "0 c 1 4096\n9 d 1\n#end 2\n", TRACE_OK),
		open_text(HEADER "5 c 7 4096\n#end 1\n", TRACE_OK)};
	const struct trace_event *event;
	struct trace_merge *merge = trace_merge_create(readers, 2);
	uint64_t when_ns;
	unsigned process;

	(void)state;
	assert_int_equal(trace_merge_next(merge, &process, &when_ns, &event), TRACE_BAD);
	assert_int_equal(process, 1);
	trace_merge_destroy(merge);
	trace_close(readers[0]);
	trace_close(readers[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(header_texts_are_kept_without_control_characters),
		cmocka_unit_test(events_carry_their_fields),
		cmocka_unit_test(submissions_carry_their_lists),
		cmocka_unit_test(compression_makes_no_difference),
		cmocka_unit_test(progress_follows_the_events_and_not_what_is_read_ahead),
		cmocka_unit_test(a_reader_may_be_closed_at_any_time),
		cmocka_unit_test(a_missing_file_is_reported_as_missing),
		cmocka_unit_test(skimming_checks_all_but_the_contents_of_submissions),
		cmocka_unit_test(limits_bound_the_memory_of_a_recording),
		cmocka_unit_test(processes_merge_by_their_own_clocks),
		cmocka_unit_test(a_bad_process_is_named_by_the_merge),
	};

	return cmocka_run_group_tests_name("trace_reader", tests, NULL, NULL);
}
