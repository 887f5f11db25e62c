/* SPDX-License-Identifier: MIT */
/*
 * Whole replays in this process: the calls that the driver makes of recordings, and the faults that
 * it detects.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dropping_miniport.h"
#include "recording.h"
#include "replay.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

/* The messages of a replay, concatenated. */
struct messages {
	char text[16384];
	size_t used;
};

static void keep_message(void *context, const char *text)
{
	struct messages *messages = context;
	int added = snprintf(messages->text + messages->used,
			     sizeof(messages->text) - messages->used, "%s\n", text);

	if (added > 0 && messages->used + (size_t)added < sizeof(messages->text))
		messages->used += (size_t)added;
}

static struct replay_options options_for(const struct replay_input *inputs, unsigned count,
					 uint64_t vram_bytes, struct messages *messages)
{
	*messages = (struct messages){.used = 0};
	return (struct replay_options){
		.inputs = inputs,
		.input_count = count,
		.vram_bytes = vram_bytes,
		.aperture_bytes = 64 * MIB,
		.verify = REPLAY_VERIFY_STAMPS,
		.host_kind = VIDMM_HOST_SIM,
		.hash_events = true,
		.gpu_time = true,
		.recorded_pace = true,
		.message = keep_message,
		.message_context = messages,
	};
}

static struct replay_input input_of(const struct recording *recording)
{
	return (struct replay_input){
		.path = "recording", .data = recording->bytes, .size = recording->length};
}

static struct recording shipped(const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/tests/replay/data/%s", getenv("VIDMM_SOURCE_ROOT"), name);
	return recording_read(path);
}

/* More buffers than fit, used in turn: every round pages every buffer in and out. */
static struct recording cycle(unsigned buffers, unsigned rounds)
{
	struct recording recording;
	unsigned i, round, number = 0;

	recording_begin(&recording, "cycle", 0);
	for (i = 1; i <= buffers; i++)
		recording_event(&recording, "0 c %u 262144", i);
	for (i = 1; i <= buffers; i++)
		recording_event(&recording, "0 w %u 0 262144 p", i);
	for (round = 0; round < rounds; round++) {
		for (i = 1; i <= buffers; i++) {
			number++;
			recording_event(&recording,
					"%u x %u 0 1 0 0 0 2 2 %uw %u @0 0:0+64 8:1+128",
					number * 1000000, number, i, i % buffers + 1);
		}
	}
	recording_end(&recording);
	return recording;
}

static void expect(const struct replay_options *options, enum replay_status expected,
		   struct replay_result *result)
{
	const struct messages *messages = options->message_context;

	replay_run(options, result);
	if (result->status != expected)
		fail_msg("status %d, expected %d: %s", (int)result->status, (int)expected,
			 messages->text);
	if (expected == REPLAY_CLEAN)
		assert_string_equal(messages->text, "");
}

static void every_event_replays_clean(void **state)
{
	struct recording recording = shipped("every-op.trace");
	struct replay_input input = input_of(&recording);
	struct replay_result result;
	struct messages messages;
	unsigned verify, backend;

	(void)state;
	for (verify = REPLAY_VERIFY_NONE; verify <= REPLAY_VERIFY_FULL; verify++) {
		for (backend = VIDMM_HOST_LINUX; backend <= VIDMM_HOST_SIM; backend++) {
			struct replay_options options = options_for(&input, 1, MIB, &messages);

			options.verify = (enum replay_verify)verify;
			options.host_kind = backend;
			expect(&options, REPLAY_CLEAN, &result);
			assert_int_equal(result.events, 45);
			assert_int_equal(result.submissions, 5);
			assert_int_equal(result.references, 12);
			assert_int_equal(result.relocations, 6);
			assert_int_equal(result.clamped_deltas, 1); /* 70000 into 65536 bytes */
			assert_int_equal(result.unmatched_imports, 1);
			assert_int_equal(result.offers, 2);
			assert_int_equal(result.reclaims, 1);
			assert_int_equal(result.verify_errors, 0);
			assert_true(verify == REPLAY_VERIFY_NONE || result.blocks_checked > 0);
			replay_result_finish(&result);
		}
	}
	recording_free(&recording);
}

/* The driver waits for the GPU itself and reports addresses; it has no patch locations. */
static void every_event_replays_clean_with_wddm2(void **state)
{
	struct recording recording = shipped("every-op.trace");
	struct replay_input input = input_of(&recording);
	struct replay_result result;
	struct messages messages;
	unsigned verify, backend;

	(void)state;
	for (verify = REPLAY_VERIFY_NONE; verify <= REPLAY_VERIFY_FULL; verify++) {
		for (backend = VIDMM_HOST_LINUX; backend <= VIDMM_HOST_SIM; backend++) {
			struct replay_options options = options_for(&input, 1, 4 * MIB, &messages);

			options.wddm2 = true;
			options.verify = (enum replay_verify)verify;
			options.host_kind = backend;
			expect(&options, REPLAY_CLEAN, &result);
			assert_int_equal(result.events, 45);
			assert_int_equal(result.submissions, 5);
			assert_int_equal(result.patches, 0);
			assert_int_equal(result.clamped_deltas, 1);
			assert_int_equal(result.offers, 2);
			assert_int_equal(result.reclaims, 1);
			assert_int_equal(result.ignored_tilings, 0);
			assert_int_equal(result.driver.over_budget, 0);
			assert_true(verify == REPLAY_VERIFY_NONE || result.blocks_checked > 0);
			replay_result_finish(&result);
		}
	}
	recording_free(&recording);
}

/* More than fits: the driver trims its list, and offers and destroys what is still queued. */
static void the_driver_of_wddm2_trims_to_its_budget(void **state)
{
	struct recording recordings[2] = {cycle(12, 4), shipped("every-op.trace")};
	struct replay_result result;
	struct messages messages;
	unsigned i;

	(void)state;
	for (i = 0; i < 2; i++) {
		struct replay_input input = input_of(&recordings[i]);
		struct replay_options options = options_for(&input, 1, 2 * MIB, &messages);

		options.wddm2 = true;
		options.verify = REPLAY_VERIFY_FULL;
		expect(&options, REPLAY_CLEAN, &result);
		assert_int_equal(result.verify_errors, 0);
		assert_true(i == 1 || result.driver.trimmed > 12);
		assert_true(i == 1 || result.bytes_paged_in > 2 * MIB);
		replay_result_finish(&result);
		recording_free(&recordings[i]);
	}
}

/* A whole write of a busy buffer gets other memory, a part of it waits (LOCK-43). */
static void the_driver_of_wddm2_renames_and_waits(void **state)
{
	struct recording recording;
	struct replay_input input;
	struct replay_result result;
	struct messages messages;
	unsigned i;

	(void)state;
	recording_begin(&recording, "discards", 0);
	recording_event(&recording, "0 c 1 131072");
	for (i = 1; i <= 4; i++) {
		recording_event(&recording, "%u w 1 0 131072 p", i * 10);
		recording_event(&recording, "%u x %u 0 1 0 0 0 1 1 1w @0 0:0", i * 10 + 1, i);
	}
	recording_event(&recording, "50 b 1 1");
	recording_event(&recording, "51 w 1 0 4096 p");
	recording_event(&recording, "900000000 w 1 0 131072 p");
	recording_end(&recording);
	input = input_of(&recording);
	struct replay_options options = options_for(&input, 1, 4 * MIB, &messages);
	options.wddm2 = true;
	expect(&options, REPLAY_CLEAN, &result);
	assert_int_equal(result.renames, 3);
	assert_int_equal(result.lock_waits, 1);
	assert_true(result.lock_wait_ns > 0);
	replay_result_finish(&result);
	recording_free(&recording);
}

/* No list tells the memory manager what two contexts share: fences order them. */
static void contexts_of_wddm2_wait_for_each_other(void **state)
{
	struct recording recording;
	struct replay_input input;
	struct replay_result result;
	struct messages messages;
	unsigned i;

	(void)state;
	recording_begin(&recording, "contexts", 0);
	recording_event(&recording, "0 c 1 1048576");
	recording_event(&recording, "0 c 2 65536");
	recording_event(&recording, "0 k 1");
	recording_event(&recording, "0 k 2");
	for (i = 0; i < 24; i++)
		recording_event(&recording, "%u x %u %u 1 0 0 0 2 0 1w 2%s", i + 1, i + 1, i % 3,
				i % 2 ? "w" : "");
	recording_event(&recording, "30 K 1");
	recording_event(&recording, "31 x 25 2 1 0 0 0 2 0 1w 2");
	recording_end(&recording);
	input = input_of(&recording);
	for (i = 0; i < 4; i++) {
		struct replay_options options = options_for(&input, 1, 4 * MIB, &messages);

		options.wddm2 = true;
		options.seed = i;
		options.switch_per_1024 = 300;
		options.verify = REPLAY_VERIFY_FULL;
		expect(&options, REPLAY_CLEAN, &result);
		assert_int_equal(result.verify_errors, 0);
		replay_result_finish(&result);
	}
	recording_free(&recording);
}

static void the_same_seed_gives_the_same_events(void **state)
{
	struct recording recording = cycle(12, 3);
	struct replay_input input = input_of(&recording);
	uint64_t hash[3], virtual_ns[3];
	struct messages messages;
	struct replay_result result;
	unsigned i;

	(void)state;
	for (i = 0; i < 3; i++) {
		struct replay_options options = options_for(&input, 1, MIB, &messages);

		options.seed = i < 2 ? 17 : 18;
		options.switch_per_1024 = 200;
		expect(&options, REPLAY_CLEAN, &result);
		hash[i] = result.event_hash;
		virtual_ns[i] = result.virtual_ns;
		replay_result_finish(&result);
	}
	assert_int_equal(hash[0], hash[1]);
	assert_int_equal(virtual_ns[0], virtual_ns[1]);
	assert_int_not_equal(hash[0], hash[2]);
	recording_free(&recording);
}

static void processes_share_what_they_export(void **state)
{
	struct recording recordings[2] = {shipped("every-op.trace"), shipped("importer.trace")};
	struct replay_input inputs[2] = {input_of(&recordings[0]), input_of(&recordings[1])};
	struct messages messages;
	struct replay_options options = options_for(inputs, 2, MIB, &messages);
	struct replay_result result;

	(void)state;
	expect(&options, REPLAY_CLEAN, &result);
	/* One import of a key that is never exported, one before its export. */
	assert_int_equal(result.unmatched_imports, 2);
	assert_int_equal(result.foreign_accesses, 1); /* `b` of an imported buffer */
	assert_int_equal(result.submissions, 7);
	replay_result_finish(&result);
	/* Replayed alone, every import is of memory that was never exported. */
	options.inputs = &inputs[1];
	options.input_count = 1;
	expect(&options, REPLAY_CLEAN, &result);
	assert_int_equal(result.unmatched_imports, 3);
	replay_result_finish(&result);
	recording_free(&recordings[0]);
	recording_free(&recordings[1]);
}

static void processes_of_wddm2_share_what_they_export(void **state)
{
	struct recording recordings[2] = {shipped("every-op.trace"), shipped("importer.trace")};
	struct replay_input inputs[2] = {input_of(&recordings[0]), input_of(&recordings[1])};
	struct messages messages;
	struct replay_options options = options_for(inputs, 2, 8 * MIB, &messages);
	struct replay_result result;

	(void)state;
	options.wddm2 = true;
	options.verify = REPLAY_VERIFY_FULL;
	expect(&options, REPLAY_CLEAN, &result);
	assert_int_equal(result.unmatched_imports, 2);
	assert_int_equal(result.foreign_accesses, 1);
	assert_int_equal(result.submissions, 7);
	replay_result_finish(&result);
	recording_free(&recordings[0]);
	recording_free(&recordings[1]);
}

static void an_import_outlives_its_exporter(void **state)
{
	struct recording recordings[3];
	struct replay_input inputs[3];
	struct messages messages;
	struct replay_options options;
	struct replay_result result;
	unsigned i;

	(void)state;
	recording_begin(&recordings[0], "exporter", 0);
	recording_event(&recordings[0], "0 c 1 131072");
	recording_event(&recordings[0], "10 x 1 0 1 0 0 0 1 0 1w");
	recording_event(&recordings[0], "1000000 e 1 7");
	recording_event(&recordings[0], "3000000 d 1");
	recording_end(&recordings[0]);
	recording_begin(&recordings[1], "first", 0);
	recording_event(&recordings[1], "2000000 i 1 131072 7");
	recording_event(&recordings[1], "6000000 x 1 0 1 0 0 0 1 0 1w");
	recording_event(&recordings[1], "7000000 d 1");
	recording_end(&recordings[1]);
	recording_begin(&recordings[2], "second", 0);
	recording_event(&recordings[2], "4000000 i 1 131072 7"); /* the exporter has closed it */
	recording_event(&recordings[2], "5000000 x 1 0 1 0 0 0 1 0 1w");
	recording_event(&recordings[2],
			"8000000 x 2 0 1 0 0 0 1 0 1"); /* reads what the first program wrote */
	recording_event(&recordings[2], "9000000 d 1");
	recording_event(&recordings[2], "9500000 i 2 131072 7"); /* now no program holds it */
	recording_end(&recordings[2]);
	for (i = 0; i < 3; i++)
		inputs[i] = input_of(&recordings[i]);
	options = options_for(inputs, 3, MIB, &messages);
	expect(&options, REPLAY_CLEAN, &result);
	assert_int_equal(result.unmatched_imports, 1);
	replay_result_finish(&result);
	for (i = 0; i < 3; i++)
		recording_free(&recordings[i]);
}

static void memory_pressure_moves_content_and_loses_none(void **state)
{
	struct recording recording = cycle(64, 4);
	struct replay_input input = input_of(&recording);
	struct messages messages;
	struct replay_options options = options_for(&input, 1, MIB, &messages);
	struct replay_result result;
	unsigned i;

	(void)state;
	options.aperture_bytes = 8 * MIB;
	for (i = 0; i < 2; i++) {
		options.gpu_time = options.recorded_pace = i == 0;
		expect(&options, REPLAY_CLEAN, &result);
		assert_true(result.evictions > 64);
		assert_true(result.bytes_paged_out > 16 * MIB && result.bytes_paged_in > 16 * MIB);
		assert_true(result.peak_resident_bytes <= 9 * MIB);
		assert_int_equal(result.peak_live_bytes, 16 * MIB);
		replay_result_finish(&result);
	}
	recording_free(&recording);
}

/* One buffer of 1 MiB, of user memory or not, and 40 submissions of it, a millisecond apart. */
static struct recording steady(bool user_memory)
{
	struct recording recording;
	unsigned i;

	recording_begin(&recording, "steady", 0);
	recording_event(&recording, user_memory ? "0 c 1 1048576 u" : "0 c 1 1048576");
	for (i = 1; i <= 40; i++)
		recording_event(&recording, "%u x %u 0 1 0 0 0 1 0 1w", i * 1000000, i);
	recording_end(&recording);
	return recording;
}

static struct histogram_summary steady_latency(bool user_memory, bool wddm2, uint64_t link_rate)
{
	struct recording recording = steady(user_memory);
	struct replay_input input = input_of(&recording);
	struct messages messages;
	struct replay_options options = options_for(&input, 1, 4 * MIB, &messages);
	struct replay_result result;
	struct histogram_summary latency;

	options.wddm2 = wddm2;
	options.link = (struct link_model){.bytes_per_us = link_rate, .passes = 1};
	expect(&options, REPLAY_CLEAN, &result);
	assert_int_equal(result.times.latency.count, 40);
	assert_memory_equal(&result.times, &result.process_times[0], sizeof(result.times));
	latency = result.times.latency;
	replay_result_finish(&result);
	recording_free(&recording);
	return latency;
}

/* The model of these recordings: 150 us, and 20 bytes per ns. */
static void latency_is_the_models_where_nothing_waits(void **state)
{
	const uint64_t local_ns = 150000 + MIB / 20, link_ns = 150000 + MIB / 4;

	(void)state;
	for (unsigned wddm2 = 0; wddm2 < 2; wddm2++) {
		struct histogram_summary none = steady_latency(true, wddm2, 0),
					 local = steady_latency(false, wddm2, 4000),
					 remote = steady_latency(true, wddm2, 4000);

		assert_in_range(none.p50_ns, local_ns * 97 / 100, local_ns * 105 / 100);
		assert_in_range(local.p50_ns, local_ns * 97 / 100, local_ns * 105 / 100);
		assert_in_range(remote.p50_ns, link_ns * 97 / 100, link_ns * 105 / 100);
		assert_in_range(remote.p99_ns, link_ns * 97 / 100, link_ns * 2);
		assert_true(remote.p50_ns <= remote.p95_ns && remote.p95_ns <= remote.p99_ns &&
			    remote.p99_ns <= remote.max_ns);
	}
}

struct cost {
	uint64_t p50_ns, virtual_ns;
};

static struct cost cost_of(uint64_t vram_bytes, uint64_t link_rate, bool shared, bool recorded)
{
	struct recording recording = cycle(16, 8);
	struct replay_input input = input_of(&recording);
	struct messages messages;
	struct replay_options options = options_for(&input, 1, vram_bytes, &messages);
	struct replay_result result;
	struct cost cost;

	options.link = (struct link_model){.bytes_per_us = link_rate, .passes = 1};
	options.shared_paging = shared;
	options.recorded_pace = recorded;
	options.aperture_bytes = 2 * MIB;
	expect(&options, REPLAY_CLEAN, &result);
	cost = (struct cost){result.times.latency.p50_ns, result.virtual_ns};
	replay_result_finish(&result);
	recording_free(&recording);
	return cost;
}

static void paging_takes_the_time_of_the_link(void **state)
{
	const uint64_t fits = 8 * MIB, pages = MIB;

	(void)state;
	assert_true(cost_of(pages, 1000, false, true).p50_ns >
		    2 * cost_of(fits, 1000, false, true).p50_ns);
	assert_true(cost_of(pages, 1000, false, true).p50_ns >
		    cost_of(pages, 8000, false, true).p50_ns);
	assert_true(cost_of(pages, 1000, true, false).virtual_ns >
		    cost_of(pages, 1000, false, false).virtual_ns);
}

static void flat_out_takes_as_long_as_the_gpu(void **state)
{
	struct cost recorded = cost_of(8 * MIB, 8000, false, true),
		    flat_out = cost_of(8 * MIB, 8000, false, false);
	/* 128 submissions of 512 KiB */
	const uint64_t gpu_ns = 128 * (150000 + 512 * KIB / 20);

	(void)state;
	assert_in_range(recorded.virtual_ns, 128 * 1000000, 129 * 1000000);
	assert_in_range(flat_out.virtual_ns, gpu_ns, gpu_ns * 6 / 5);
}

static void every_hundredth_transfer_dropped_is_caught_and_named(void **state)
{
	struct recording recording = cycle(64, 12);
	struct replay_input input = input_of(&recording);
	struct messages messages;
	struct replay_options options = options_for(&input, 1, MIB, &messages);
	struct replay_result result;

	(void)state;
	options.aperture_bytes = 8 * MIB;
	options.driver_entry = dropping_driver_entry;
	dropping_every = 100;
	expect(&options, REPLAY_FINDINGS, &result);
	assert_true(dropping_dropped > 1);
	assert_true(result.verify_errors > 0);
	assert_non_null(strstr(messages.text, "of cycle block "));
	assert_non_null(strstr(messages.text, "expected"));
	assert_non_null(strstr(messages.text, "\n    "));
	replay_result_finish(&result);
	/* Without verification the loss is not detected. */
	options = options_for(&input, 1, MIB, &messages);
	options.aperture_bytes = 8 * MIB;
	options.driver_entry = dropping_driver_entry;
	options.verify = REPLAY_VERIFY_NONE;
	expect(&options, REPLAY_CLEAN, &result);
	replay_result_finish(&result);
	/* The same wrapper drops nothing: the replay is clean. */
	options = options_for(&input, 1, MIB, &messages);
	options.aperture_bytes = 8 * MIB;
	options.driver_entry = dropping_driver_entry;
	dropping_every = 0;
	expect(&options, REPLAY_CLEAN, &result);
	replay_result_finish(&result);
	recording_free(&recording);
}

static void a_submission_larger_than_a_command_buffer_is_divided(void **state)
{
	struct recording recording;
	struct replay_input input;
	struct messages messages;
	struct replay_options options;
	struct replay_result result;
	unsigned i;

	(void)state;
	recording_begin(&recording, "big", 0);
	for (i = 1; i <= 2500; i++)
		recording_event(&recording, "0 c %u 4096", i);
	for (i = 1; i <= 2; i++) {
		unsigned k;

		recording_part(&recording, "%u x %u 0 1 0 0 0 2500 40000", i * 1000, i);
		for (k = 1; k <= 2500; k++)
			recording_part(&recording, k % 3 ? " %u" : " %uw", k);
		recording_part(&recording, " @0 0:2499 @7");
		for (k = 1; k < 40000; k++)
			recording_part(&recording, " 0:%u+%u", k * 7919 % 2500, k % 4096);
		recording_line(&recording);
	}
	recording_end(&recording);
	input = input_of(&recording);
	options = options_for(&input, 1, 16 * MIB, &messages);
	expect(&options, REPLAY_CLEAN, &result);
	assert_int_equal(result.submissions, 2);
	assert_int_equal(result.relocations, 80000);
	assert_true(result.extra_renders >= 2 * 4);
	assert_int_equal(result.renders, 2 + result.extra_renders);
	assert_true(result.patches >= 80000 + 5000);
	replay_result_finish(&result);
	recording_free(&recording);
}

/* Every submission names twice the available memory, and its relocations are in no order. */
static void spl_02_without_an_aperture_submissions_are_split(void **state)
{
	enum { BUFFERS = 32, BUFFER_BYTES = 256 * 1024, SUBMISSIONS = 20 };
	struct recording recording;
	struct replay_input input;
	struct messages messages;
	struct replay_options options;
	struct replay_result result;
	unsigned i, k;

	(void)state;
	recording_begin(&recording, "twice", 0);
	for (i = 1; i <= BUFFERS; i++)
		recording_event(&recording, "0 c %u %u", i, BUFFER_BYTES);
	for (i = 1; i <= SUBMISSIONS; i++) {
		recording_part(&recording, "%u x %u 0 1 0 0 0 %u 100", i * 1000, i, BUFFERS);
		for (k = 1; k <= BUFFERS; k++)
			recording_part(&recording, (k + i) % 3 ? " %u" : " %uw", k);
		recording_part(&recording, " @0 0:1");
		for (k = 1; k < 100; k++)
			recording_part(&recording, " 4:%u+%u", k * 7919 % BUFFERS, k);
		recording_line(&recording);
	}
	recording_end(&recording);
	input = input_of(&recording);
	options = options_for(&input, 1, 4 * MIB, &messages);
	options.aperture_bytes = 0;
	expect(&options, REPLAY_CLEAN, &result);
	assert_int_equal(result.verify_errors, 0);
	assert_int_equal(result.segment_count, 1);
	assert_true(result.splits >= SUBMISSIONS); /* each at least once */
	assert_true(result.peak_resident_bytes <= 4 * MIB);
	replay_result_finish(&result);
	/* Everything fits: nothing is split. */
	options = options_for(&input, 1, 16 * MIB, &messages);
	options.aperture_bytes = 0;
	expect(&options, REPLAY_CLEAN, &result);
	assert_int_equal(result.splits, 0);
	replay_result_finish(&result);
	recording_free(&recording);
}

static void a_submission_larger_than_all_memory_is_a_finding(void **state)
{
	struct recording recording;
	struct replay_input input;
	struct messages messages;
	struct replay_options options;
	struct replay_result result;

	(void)state;
	recording_begin(&recording, "huge", 0);
	recording_event(&recording, "0 c 1 8388608");
	recording_event(&recording, "0 x 1 0 1 0 0 0 1 0 1w");
	recording_event(&recording, "1000000 b 1 0");
	recording_event(&recording, "2000000 x 2 0 1 0 0 0 1 0 1w");
	recording_end(&recording);
	input = input_of(&recording);
	options = options_for(&input, 1, MIB, &messages);
	options.aperture_bytes = 2 * MIB;
	expect(&options, REPLAY_FINDINGS, &result);
	assert_true(messages.used > 0);
	replay_result_finish(&result);
	recording_free(&recording);
}

/*
 * Submissions with 4 MiB of buffers each. Without relocations every command is a split point, so
 * memory for a few buffers is enough. A relocation table is one command, which needs all its
 * buffers at once.
 */
static struct recording large_submissions(bool relocations)
{
	struct recording recording;
	unsigned i, number;

	recording_begin(&recording, "large", 0);
	for (i = 1; i <= 16; i++)
		recording_event(&recording, "0 c %u 262144", i);
	for (i = 1; i <= 16; i++)
		recording_event(&recording, "0 w %u 0 262144 p", i);
	for (number = 1; number <= 3; number++) {
		recording_part(&recording, "%u x %u 0 1 0 0 0 16 %u", number * 1000000, number,
			       relocations ? 16 : 0);
		for (i = 1; i <= 16; i++)
			recording_part(&recording, " %u%s", i, i % 2 ? "w" : "");
		for (i = 0; relocations && i < 16; i++)
			recording_part(&recording, "%s%u:%u+64", i ? " " : " @0 ", i ? 8 : 0, i);
		recording_line(&recording);
	}
	recording_end(&recording);
	return recording;
}

static void spl_02_a_submission_larger_than_the_memory_runs_in_portions(void **state)
{
	struct recording recording = large_submissions(false);
	struct replay_input input = input_of(&recording);
	struct messages messages;
	struct replay_result result;
	unsigned backend;

	(void)state;
	for (backend = VIDMM_HOST_LINUX; backend <= VIDMM_HOST_SIM; backend++) {
		struct replay_options options = options_for(&input, 1, MIB, &messages);

		options.aperture_bytes = MIB;
		options.verify = REPLAY_VERIFY_FULL;
		options.host_kind = backend;
		expect(&options, REPLAY_CLEAN, &result);
		assert_int_equal(result.submissions, 3);
		assert_int_equal(result.verify_errors, 0);
		assert_true(result.splits >= 3);
		replay_result_finish(&result);
		options.vram_bytes = 8 * MIB; /* they fit */
		expect(&options, REPLAY_CLEAN, &result);
		assert_int_equal(result.splits, 0);
		replay_result_finish(&result);
	}
	recording_free(&recording);
}

static void spl_12_a_table_that_names_more_than_fits_is_reported(void **state)
{
	struct recording recording = large_submissions(true);
	struct replay_input input = input_of(&recording);
	struct messages messages;
	struct replay_options options = options_for(&input, 1, MIB, &messages);
	struct replay_result result;

	(void)state;
	options.aperture_bytes = MIB;
	expect(&options, REPLAY_FINDINGS, &result);
	assert_non_null(strstr(messages.text, "SPL-12"));
	replay_result_finish(&result);
	recording_free(&recording);
}

static void bad_recordings_and_missing_files_end_with_their_status(void **state)
{
	static const char broken[] = "#gemtrace 1\n#program p\nno header\n";
	struct replay_input input = {.path = "broken", .data = broken, .size = sizeof(broken) - 1};
	struct messages messages;
	struct replay_options options = options_for(&input, 1, MIB, &messages);
	struct replay_result result;
	struct replay_measure measure = {0};

	(void)state;
	expect(&options, REPLAY_BAD_INPUT, &result);
	assert_non_null(strstr(messages.text, "broken:3: header line \"#note\" expected"));
	assert_int_equal(replay_measure(&options, false, &measure), REPLAY_BAD_INPUT);
	replay_result_finish(&result);
	input = (struct replay_input){.path = "/nonexistent/recording"};
	expect(&options, REPLAY_ENVIRONMENT, &result);
	replay_result_finish(&result);
}

static void a_break_in_the_middle_ends_the_replay_there(void **state)
{
	struct recording recording = cycle(8, 1);
	struct replay_input input;
	struct messages messages;
	struct replay_options options;
	struct replay_result result;

	(void)state;
	recording.length -= 30; /* cuts into the last submission */
	input = input_of(&recording);
	options = options_for(&input, 1, MIB, &messages);
	expect(&options, REPLAY_BAD_INPUT, &result);
	assert_non_null(strstr(messages.text, "recording:"));
	assert_true(result.submissions > 0 && result.submissions < 8);
	replay_result_finish(&result);
	recording_free(&recording);
}

static void peak_live_bytes_are_measured_over_all_processes(void **state)
{
	struct recording recordings[2];
	struct replay_input inputs[2];
	struct messages messages;
	struct replay_options options;
	struct replay_measure measure = {0};

	(void)state;
	recording_begin(&recordings[0], "first", 1000);
	recording_event(&recordings[0], "0 c 1 8192");
	recording_event(&recordings[0], "100 d 1");
	recording_event(&recordings[0], "100 c 2 4096");
	recording_end(&recordings[0]);
	recording_begin(&recordings[1], "second", 1050);
	recording_event(&recordings[1],
			"0 c 1 16384"); /* in addition to the 8192 bytes of the first */
	recording_event(&recordings[1], "60 i 2 4096 7");
	recording_event(&recordings[1], "70 d 1");
	recording_end(&recordings[1]);
	inputs[0] = input_of(&recordings[0]);
	inputs[1] = input_of(&recordings[1]);
	options = options_for(inputs, 2, MIB, &messages);
	assert_int_equal(replay_measure(&options, false, &measure), REPLAY_CLEAN);
	assert_int_equal(measure.peak_live_bytes, 8192 + 16384);
	recording_free(&recordings[0]);
	recording_free(&recordings[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_event_replays_clean),
		cmocka_unit_test(every_event_replays_clean_with_wddm2),
		cmocka_unit_test(the_driver_of_wddm2_renames_and_waits),
		cmocka_unit_test(the_driver_of_wddm2_trims_to_its_budget),
		cmocka_unit_test(contexts_of_wddm2_wait_for_each_other),
		cmocka_unit_test(the_same_seed_gives_the_same_events),
		cmocka_unit_test(processes_share_what_they_export),
		cmocka_unit_test(processes_of_wddm2_share_what_they_export),
		cmocka_unit_test(an_import_outlives_its_exporter),
		cmocka_unit_test(latency_is_the_models_where_nothing_waits),
		cmocka_unit_test(paging_takes_the_time_of_the_link),
		cmocka_unit_test(flat_out_takes_as_long_as_the_gpu),
		cmocka_unit_test(memory_pressure_moves_content_and_loses_none),
		cmocka_unit_test(every_hundredth_transfer_dropped_is_caught_and_named),
		cmocka_unit_test(a_submission_larger_than_a_command_buffer_is_divided),
		cmocka_unit_test(spl_02_without_an_aperture_submissions_are_split),
		cmocka_unit_test(a_submission_larger_than_all_memory_is_a_finding),
		cmocka_unit_test(spl_02_a_submission_larger_than_the_memory_runs_in_portions),
		cmocka_unit_test(spl_12_a_table_that_names_more_than_fits_is_reported),
		cmocka_unit_test(bad_recordings_and_missing_files_end_with_their_status),
		cmocka_unit_test(a_break_in_the_middle_ends_the_replay_there),
		cmocka_unit_test(peak_live_bytes_are_measured_over_all_processes),
	};

	return cmocka_run_group_tests_name("replay", tests, NULL, NULL);
}
