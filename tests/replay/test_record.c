/* SPDX-License-Identifier: MIT */
/* Recordings of events: what is written is read, also from files that are cut or damaged. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <support/temporary.h>
#include <support/test.h>

#include "record_format.h"
#include "record_read.h"
#include "record_write.h"

static struct vidmm_event event_of(uint64_t i)
{
	return (struct vidmm_event){.time_ns = i * i * 1000,
				    .sequence = i + 1,
				    .type = (uint16_t)(i % VIDMM_EVENT_TYPE_COUNT),
				    .reason = (uint16_t)(i % 7),
				    .process = (uint32_t)(i % 5),
				    .object = (uint32_t)(i * 2654435761u),
				    .arg = {i, ~i, i << 40, i % 3 ? 0 : UINT64_MAX}};
}

/* Every tenth event has a text, of 0 to 1200 characters. */
static const char *text_of(uint64_t i, char *text, size_t size)
{
	if (i % 10)
		return NULL;
	snprintf(text, size, "%0*llu", (int)(i * 37 % 1200), (unsigned long long)i);
	return i % 30 ? text : "";
}

/* Asserts that an event is the one written with that number, with the first part of its text. */
static void check_event(uint64_t number, const struct vidmm_event *event, const char *text)
{
	const struct vidmm_event wanted = event_of(number);
	char expected[2048];
	const char *wanted_text = text_of(number, expected, sizeof(expected));

	assert_memory_equal(event, &wanted, sizeof(*event));
	assert_int_equal(text != NULL, wanted_text != NULL);
	if (text) {
		expected[RECORD_TEXT_MAX] = '\0';
		assert_string_equal(text, wanted_text);
	}
}

static void write_recording(const char *path, uint64_t events)
{
	json_t *about = json_pack("{s:s,s:s}", "command", "test", "format", "not this");
	struct record_writer *writer = record_create(path, about);
	char text[2048];

	assert_non_null(writer);
	for (uint64_t i = 0; i < events; i++) {
		struct vidmm_event event = event_of(i);

		record_event(writer, &event, text_of(i, text, sizeof(text)));
	}
	assert_true(record_finish(writer));
	json_decref(about);
}

/* Reads events, which must be the first ones written. Returns the result that ends them. */
static enum record_result read_recording(const char *path, uint64_t *events)
{
	struct record_reader *reader;
	enum record_result result = record_open(path, &reader);
	struct vidmm_event event;
	const char *text;

	*events = 0;
	while (result == RECORD_EVENT &&
	       (result = record_next(reader, &event, &text)) == RECORD_EVENT)
		check_event((*events)++, &event, text);
	assert_int_equal(strlen(record_error(reader)) != 0, result != RECORD_END);
	record_close(reader);
	return result;
}

static void what_is_written_is_read(void **state)
{
	static const uint64_t counts[] = {0, 1, RECORD_EVENTS_MAX, RECORD_EVENTS_MAX + 1, 30000};
	char *path = temporary_file();
	uint64_t events;

	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		write_recording(path, counts[i]);
		assert_int_equal(read_recording(path, &events), RECORD_END);
		assert_int_equal(events, counts[i]);
		assert_true(record_is_recording(path));
	}
	remove(path);
	free(path);
}

static void a_recording_describes_itself(void **state)
{
	char *path = temporary_file();
	struct record_reader *reader;
	char number[16];

	(void)state;
	write_recording(path, 5);
	assert_int_equal(record_open(path, &reader), RECORD_EVENT);
	const json_t *about = record_about(reader);
	assert_string_equal(json_string_value(json_object_get(about, "format")), "vidmm record");
	assert_string_equal(json_string_value(json_object_get(about, "command")), "test");
	const json_t *type =
		json_array_get(json_object_get(about, "events"), VIDMM_EVENT_RESIDENCY);
	assert_string_equal(json_string_value(json_object_get(type, "name")), "residency");
	const json_t *arguments = json_object_get(type, "arguments");
	assert_string_equal(json_string_value(json_array_get(arguments, 1)), "from");
	const json_t *reasons = json_object_get(type, "reasons");
	assert_string_equal(json_string_value(json_object_get(reasons, "2")), "pressure");
	assert_null(json_object_get(reasons, "100"));
	/* the longest name of all */
	type = json_array_get(json_object_get(about, "events"), VIDMM_EVENT_DDI);
	snprintf(number, sizeof(number), "%d",
		 VIDMM_DDI_STOP_DEVICE_AND_RELEASE_POST_DISPLAY_OWNERSHIP);
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(type, "reasons"), number)),
		"stop_device_and_release_post_display_ownership");
	record_close(reader);
	remove(path);
	free(path);
}

static char *contents(const char *path, size_t *size)
{
	FILE *file = fopen(path, "rb");
	char *bytes = malloc(1 << 20);

	assert_non_null(file);
	*size = fread(bytes, 1, 1 << 20, file);
	fclose(file);
	return bytes;
}

static void a_cut_file_is_read_up_to_the_cut(void **state)
{
	char *path = temporary_file();
	uint64_t events, most = 0, partly = 0;
	size_t size;

	(void)state;
	write_recording(path, 2 * RECORD_EVENTS_MAX);
	char *bytes = contents(path, &size);
	for (size_t left = 0; left < size; left += left < 64 ? 1 : size / 50) {
		write_file(path, bytes, left);
		enum record_result result = read_recording(path, &events);
		assert_true(result == RECORD_CUT || result == RECORD_END ||
			    (result == RECORD_BAD && events == 0));
		assert_true(events >= most);
		most = events;
		partly += events > 0 && events < (uint64_t)2 * RECORD_EVENTS_MAX;
	}
	assert_true(partly > 0);
	free(bytes);
	remove(path);
	free(path);
}

static void a_damaged_file_is_refused_where_it_is_damaged(void **state)
{
	char *path = temporary_file();
	uint64_t events, unused = 0, damaged = 0;
	size_t size;

	(void)state;
	write_recording(path, 100);
	char *bytes = contents(path, &size);
	for (size_t at = 0; at < size; at += at < 64 ? 1 : 7, damaged++) {
		bytes[at] ^= 0x10;
		write_file(path, bytes, size);
		enum record_result result = read_recording(path, &events);
		assert_true(result == RECORD_BAD || result == RECORD_CUT || events == 100);
		unused += result == RECORD_END;
		bytes[at] ^= 0x10;
	}

	assert_true(unused < damaged / 10); /* bits without a meaning */
	free(bytes);
	remove(path);
	free(path);
}

static void other_files_are_no_recordings(void **state)
{
	char *path = temporary_file();
	uint64_t events;

	(void)state;
	assert_int_equal(read_recording(path, &events), RECORD_BAD); /* empty */
	write_file(path, "#1 0ns p0 ddi/add_device status=0x00000000\n", 43);
	assert_int_equal(read_recording(path, &events), RECORD_BAD);
	assert_false(record_is_recording(path));
	remove(path);
	assert_int_equal(read_recording(path, &events), RECORD_IO);
	assert_int_equal(read_recording("/", &events), RECORD_IO);
	free(path);
}

static void a_full_disk_is_reported(void **state)
{
	json_t *about = json_object();
	struct record_writer *writer = record_create("/dev/full", about);

	(void)state;
	assert_null(writer); /* the description is written at once */
	assert_null(record_create("/nonexistent/file", about));
	json_decref(about);
}

/* ---- threads ---- */

enum { THREADS = 4, EACH = 20000 };

struct sender {
	pthread_t thread;
	struct record_writer *writer;
	_Atomic uint64_t *sequence;
};

static void *send_events(void *context)
{
	const struct sender *s = context;

	for (uint32_t i = 0; i < EACH; i++) {
		uint64_t number = atomic_fetch_add(s->sequence, 1);
		struct vidmm_event event = event_of(number);
		char text[2048];

		record_event(s->writer, &event, text_of(number, text, sizeof(text)));
	}
	return NULL;
}

/* Every event is there once, with its values and its text, and sorted in its chunk. */
static void threads_record_at_the_same_time(void **state)
{
	static bool seen[THREADS * EACH];
	char *path = temporary_file();
	json_t *about = json_object();
	struct record_writer *writer = record_create(path, about);
	struct sender senders[THREADS];
	_Atomic uint64_t sequence = 0;
	struct record_reader *reader;
	struct vidmm_event event;
	const char *text;

	(void)state;
	for (uint32_t i = 0; i < THREADS; i++) {
		senders[i] = (struct sender){.writer = writer, .sequence = &sequence};
		assert_int_equal(pthread_create(&senders[i].thread, NULL, send_events, &senders[i]),
				 0);
	}
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(senders[i].thread, NULL);
	assert_true(record_finish(writer));
	assert_int_equal(record_open(path, &reader), RECORD_EVENT);
	for (uint32_t i = 0; i < THREADS * EACH; i++) {
		assert_int_equal(record_next(reader, &event, &text), RECORD_EVENT);
		uint64_t number = event.sequence - 1;

		assert_true(number < THREADS * EACH && !seen[number]);
		seen[number] = true;
		check_event(number, &event, text);
	}
	assert_int_equal(record_next(reader, &event, &text), RECORD_END);
	record_close(reader);
	json_decref(about);
	remove(path);
	free(path);
}

/*
 * Events of one buffer in any order are sorted. The writer may end a chunk between two events that
 * belong together, but not between most of them.
 */
static void a_chunk_is_sorted(void **state)
{
	char *path = temporary_file();
	json_t *about = json_object();
	struct record_writer *writer = record_create(path, about);
	struct record_reader *reader;
	struct vidmm_event event;
	const char *text;
	uint64_t before = 0;
	unsigned events = 0, unsorted = 0;
	char words[2048];

	(void)state;
	for (uint64_t i = 0; i < 200; i++) {
		uint64_t number = i % 2 ? i - 1 : i + 1;

		event = event_of(number);
		record_event(writer, &event, text_of(number, words, sizeof(words)));
	}
	assert_true(record_finish(writer));
	assert_int_equal(record_open(path, &reader), RECORD_EVENT);
	for (; record_next(reader, &event, &text) == RECORD_EVENT; events++) {
		const char *wanted = text_of(event.sequence - 1, words, sizeof(words));

		unsorted += event.sequence < before;
		before = event.sequence;
		assert_int_equal(text != NULL, wanted != NULL);
	}
	assert_int_equal(events, 200);
	assert_true(unsorted < 20);
	record_close(reader);
	json_decref(about);
	remove(path);
	free(path);
}

/* The disk is full in the middle of a run: the end says so, and what was written is readable. */
static void an_error_of_the_thread_is_reported(void **state)
{
	struct rlimit before, limit;
	char *path = temporary_file();
	json_t *about = json_object();
	struct record_writer *writer = record_create(path, about);
	uint64_t events;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = 200000;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	for (uint64_t i = 0; i < 100000; i++) {
		char text[2048];
		struct vidmm_event event = event_of(i);

		record_event(writer, &event, text_of(i, text, sizeof(text)));
	}
	assert_false(record_finish(writer));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(read_recording(path, &events), RECORD_CUT);
	assert_true(events > 0 && events < 100000);
	json_decref(about);
	remove(path);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(a_recording_describes_itself),
		cmocka_unit_test(a_cut_file_is_read_up_to_the_cut),
		cmocka_unit_test(a_damaged_file_is_refused_where_it_is_damaged),
		cmocka_unit_test(other_files_are_no_recordings),
		cmocka_unit_test(a_full_disk_is_reported),
		cmocka_unit_test(threads_record_at_the_same_time),
		cmocka_unit_test(a_chunk_is_sorted),
		cmocka_unit_test(an_error_of_the_thread_is_reported),
	};

	return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
