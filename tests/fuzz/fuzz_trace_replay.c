/* SPDX-License-Identifier: MIT */
/*
 * fuzz_trace_replay [SECONDS [SEED]]: replays broken recordings in this process, on a small
 * adapter. First the hand-written recordings cut after each byte, then mutants of them. Every
 * replay ends clean, with findings or with "bad input", and without a report of a sanitizer.
 * Without arguments 4,000 mutants, as a test of one build; else until the time is over. A mutant is
 * a function of its seed: `fuzz_trace_replay 0 SEED` replays one again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "replay.h"
#include "support/seeds.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif
/*
 * These replays have one thread, so ThreadSanitizer finds nothing in them, and takes ten times as
 * long.
 */
#ifdef __SANITIZE_THREAD__
#define FIXED_ROUNDS 300u
#define CUT_STEP     50u
#else
#define FIXED_ROUNDS 1500u
#define CUT_STEP     1u
#endif
#define TEXT_ROOM 8192u

struct text {
	size_t length;
	char bytes[TEXT_ROOM];
};

static const struct trace_limits limits = {
	.line_bytes = 4096,
	.buffers = 64,
	.maps = 16,
	.contexts = 3,
	.objects = 64,
	.buffer_bytes = 4 << 20,
	.live_bytes = 8 << 20,
};

static char last_message[512];
static unsigned endings[REPLAY_ENVIRONMENT + 1]; /* by status */

static void keep_message(void *context, const char *text)
{
	(void)context;
	snprintf(last_message, sizeof(last_message), "%s", text);
}

static uint64_t next_random(uint64_t *state)
{
	uint64_t x = *state += 0x9E3779B97F4A7C15u;

	x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
	x = (x ^ x >> 27) * 0x94D049BB133111EBu;
	return x ^ x >> 31;
}

static bool load(const char *name, struct text *text)
{
	const char *root = getenv("VIDMM_SOURCE_ROOT");
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/tests/replay/data/%s", root ? root : ".", name);
	file = fopen(path, "rb");
	if (!file) {
		printf("# cannot open %s\n", path);
		return false;
	}
	text->length = fread(text->bytes, 1, sizeof(text->bytes) / 2, file);
	fclose(file);
	return true;
}

/* Returns false if the replay ended in a way that is not allowed. */
static bool replay(const struct text *texts, unsigned count, uint64_t choice)
{
	struct replay_input inputs[2];
	struct replay_options options = {
		.inputs = inputs,
		.input_count = count,
		.limits = &limits,
		.vram_bytes = 1 << 20,
		.aperture_bytes = 32 << 20,
		.verify = (enum replay_verify)(choice % 3),
		.host_kind = VIDMM_HOST_SIM,
		.seed = choice,
		.switch_per_1024 = choice & 8 ? 100 : 0,
		.gpu_time = (choice & 16) != 0,
		.recorded_pace = (choice & 48) == 16,
		.link.bytes_per_us = choice & 64 ? 1000 : 0,
		.shared_paging = (choice & 128) != 0,
		.message = keep_message,
	};
	struct replay_result result;
	enum replay_status status;
	unsigned i;

	for (i = 0; i < count; i++)
		inputs[i] = (struct replay_input){"mutant", texts[i].bytes, texts[i].length};
	last_message[0] = '\0';
	status = replay_run(&options, &result);
	replay_result_finish(&result);
	endings[status]++;
	if (status == REPLAY_CLEAN || status == REPLAY_FINDINGS || status == REPLAY_BAD_INPUT)
		return true;
	printf("# status %d: %s\n", (int)status, last_message);
	return false;
}

/* ---- mutation ---- */

static void insert(struct text *text, size_t at, const char *bytes, size_t count)
{
	if (text->length + count > TEXT_ROOM)
		return;
	memmove(text->bytes + at + count, text->bytes + at, text->length - at);
	memcpy(text->bytes + at, bytes, count);
	text->length += count;
}

static void erase(struct text *text, size_t at, size_t count)
{
	memmove(text->bytes + at, text->bytes + at + count, text->length - at - count);
	text->length -= count;
}

/* Returns the run of bytes around `at` that are not `stop` (and no newline); it may be empty. */
static size_t run_around(const struct text *text, size_t *at, char stop)
{
	size_t first = *at, end = *at;

	while (first > 0 && text->bytes[first - 1] != stop && text->bytes[first - 1] != '\n')
		first--;
	while (end < text->length && text->bytes[end] != stop && text->bytes[end] != '\n')
		end++;
	*at = first;
	return end - first;
}

static void replace_token(struct text *text, size_t at, uint64_t *random)
{
	static const char *const tokens[] = {
		"0",    "1",     "2",       "3",     "4095",       "4096",
		"8192", "65536", "1048576", "-1",    "4294967295", "18446744073709551615",
		"1w",   "@0",    "0:0",     "4:1",   "-4:1+64w",   "?1",
		"!2",   "x",     "m",       "begin", "",           "4194304"};
	const char *token = tokens[next_random(random) % (sizeof(tokens) / sizeof(tokens[0]))];
	size_t length = run_around(text, &at, ' ');

	erase(text, at, length);
	insert(text, at, token, strlen(token));
}

static void copy_line(struct text *text, size_t from, size_t to)
{
	char line[512];
	size_t length = run_around(text, &from, '\n'), ignored = run_around(text, &to, '\n');

	(void)ignored;
	if (length + 1 > sizeof(line))
		return;
	memcpy(line, text->bytes + from, length);
	line[length] = '\n';
	insert(text, to, line, length + 1);
}

/* Corrects the count of events. Without it nearly half of the mutants would end there. */
static void correct_the_end(struct text *text)
{
	char end[32];
	unsigned events = 0;
	size_t at, line = 0;

	for (at = 0; at < text->length; at++) {
		if (text->bytes[at] != '\n')
			continue;
		events += text->bytes[line] != '#';
		line = at + 1;
	}
	for (at = 0; at + 5 < text->length; at++) {
		if (memcmp(text->bytes + at, "\n#end ", 6) != 0)
			continue;
		text->length = at + 1;
		insert(text, text->length, end,
		       (size_t)snprintf(end, sizeof(end), "#end %u\n", events));
		return;
	}
}

static void mutate(struct text *text, uint64_t *random)
{
	unsigned changes = 1 + (unsigned)(next_random(random) % 4), i;

	for (i = 0; i < changes && text->length > 0; i++) {
		size_t at = next_random(random) % text->length,
		       from = next_random(random) % text->length, length;

		switch (next_random(random) % 8) {
		case 0:
			text->bytes[at] = (char)next_random(random);
			break;
		case 1:
			text->bytes[at] =
				"0123456789 \ncidmuwrsqbfytakKvx:+-@?!#"[next_random(random) % 37];
			break;
		case 2:
			length = run_around(text, &at, '\n');
			erase(text, at, length + (at + length < text->length));
			break;
		case 3:
		case 4:
			copy_line(text, from, at);
			break;
		default:
			replace_token(text, at, random);
			break;
		}
	}
	if (next_random(random) % 8 != 0)
		correct_the_end(text);
}

/* Returns the line at which the reader stops; 0: none. */
static unsigned long first_bad_line(const struct text *text)
{
	struct trace_reader *reader;
	struct trace_event event;
	unsigned long line = 0;
	enum trace_result result =
		trace_open_memory("mutant", text->bytes, text->length, &limits, &reader);

	while (result == TRACE_OK)
		result = trace_next(reader, &event);
	if (result == TRACE_BAD)
		line = strtoul(trace_error(reader) + strlen("mutant:"), NULL, 10);
	trace_close(reader);
	return line;
}

/* Removes lines that the reader refuses, so that the replay reaches the rest. */
static void repair(struct text *text)
{
	unsigned long line, tries;
	size_t at, length;

	for (tries = 0; tries < 40 && (line = first_bad_line(text)) > 9; tries++) {
		for (at = 0; at < text->length && line > 1; at++)
			line -= text->bytes[at] == '\n';
		length = run_around(text, &at, '\n');
		if (at + length >= text->length)
			return;
		erase(text, at, length + 1);
		correct_the_end(text);
	}
}

/* ---- the two parts ---- */

static bool cut_after_each_byte(const struct text *base, unsigned *cuts)
{
	struct text text = *base;

	for (text.length = 0; text.length < base->length; text.length += CUT_STEP) {
		++*cuts;
		if (!replay(&text, 1, text.length)) {
			printf("# cut after %zu bytes\n", text.length);
			return false;
		}
	}
	return true;
}

static bool mutant(const struct text bases[2], uint64_t seed)
{
	struct text texts[2];
	uint64_t random = seed;
	unsigned count = next_random(&random) % 4 == 0 ? 2 : 1;

	texts[0] = bases[0];
	texts[1] = bases[1];
	mutate(&texts[next_random(&random) % count], &random);
	if (next_random(&random) % 2 == 0) {
		repair(&texts[0]);
		repair(&texts[1]);
	}
	if (replay(texts, count, next_random(&random)))
		return true;
	printf("# failed with seed %llu\n", (unsigned long long)seed);
	return false;
}

int main(int count, char **arguments)
{
	long seconds = count > 1 ? strtol(arguments[1], NULL, 0) : 0;
	uint64_t seed = count > 2 ? strtoull(arguments[2], NULL, 0)
				  : 1 + seeds_build_number() * FIXED_ROUNDS;
	uint64_t round = 0;
	time_t end = time(NULL) + seconds;
	static struct text bases[2];
	unsigned cuts = 0;
	bool good = load("every-op.trace", &bases[0]) && load("importer.trace", &bases[1]);

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("1..2\n");
	if (good && count <= 1)
		good = cut_after_each_byte(&bases[0], &cuts);
	printf("%s 1 - a recording cut in %u places\n", good ? "ok" : "not ok", cuts);
	for (; good && (count <= 1 ? round < FIXED_ROUNDS : round == 0 || time(NULL) < end);
	     round++)
		good = mutant(bases, seed + round);
	printf("# together %u clean, %u with findings, %u bad input\n", endings[REPLAY_CLEAN],
	       endings[REPLAY_FINDINGS], endings[REPLAY_BAD_INPUT]);
	printf("%s 2 - %llu mutants from seed %llu\n", good ? "ok" : "not ok",
	       (unsigned long long)round, (unsigned long long)seed);
	return good ? 0 : 1;
}
