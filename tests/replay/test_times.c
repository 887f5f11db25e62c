/* SPDX-License-Identifier: MIT */
/*
 * Frames, waits and the slow-down of replays, with recordings whose times can be worked out by
 * hand. Their model: a submission takes 150 us, and its buffers take 20 bytes per ns. Times of the
 * GPU pass in units of 100 ns, so a submission may end that much late.
 */
#include <string.h>

#include "recording.h"
#include "replay.h"

#define MIB   ((uint64_t)1 << 20)
#define MS    ((uint64_t)1000000)
#define BASE  150000u
#define LOCAL ((uint64_t)(MIB / 20)) /* 1 MiB in video memory */
/* The link of these runs, 1000 bytes per us: 1 MiB takes 1.048 ms. */
#define LINK  MIB

#define EACH(i, count) for (unsigned i = 1; i <= (count); i++)

static void assert_near(uint64_t value, uint64_t expected)
{
	assert_in_range(value, expected - expected / 100, expected + expected / 100 + 1000);
}

static struct replay_options options_for(struct replay_input *input,
					 const struct recording *recording)
{
	*input = (struct replay_input){
		.path = "recording", .data = recording->bytes, .size = recording->length};
	return (struct replay_options){
		.inputs = input,
		.input_count = 1,
		.vram_bytes = 16 * MIB,
		.aperture_bytes = 64 * MIB,
		.host_kind = VIDMM_HOST_SIM,
		.gpu_time = true,
		.recorded_pace = true,
		.link = {.bytes_per_us = 1000, .passes = 1},
	};
}

/* Ends the recording, and plays it with the options that CHANGE has changed. */
static struct process_times play(struct recording *recording,
				 void (*change)(struct replay_options *options))
{
	struct replay_input input;
	struct replay_options options;
	struct replay_result result;
	struct process_times times;

	recording_end(recording);
	options = options_for(&input, recording);
	if (change)
		change(&options);
	assert_int_equal(replay_run(&options, &result), REPLAY_CLEAN);
	assert_memory_equal(&result.times, &result.process_times[0], sizeof(times));
	times = result.times;
	replay_result_finish(&result);
	recording_free(recording);
	return times;
}

static void flat_out(struct replay_options *options)
{
	options->recorded_pace = false;
}

static void wddm2(struct replay_options *options)
{
	options->wddm2 = true;
}

static void two_passes(struct replay_options *options)
{
	options->link.passes = 2;
}

/* With lru each turn moves one buffer out and one in. */
static void little_memory(struct replay_options *options)
{
	options->policy = REPLAY_POLICY_FIRST + VIDMM_EVICTION_LRU;
	options->vram_bytes = 4 * MIB;
	options->aperture_bytes = 0;
}

static void little_memory_shared(struct replay_options *options)
{
	little_memory(options);
	options->shared_paging = true;
}

/* ---- frames ---- */

/* Two images of 1 MiB, exported; buffer 3 is no image, 4 has 8 MiB of user memory. */
static void begin_images(struct recording *recording)
{
	recording_begin(recording, "frames", 0);
	recording_event(recording, "0 c 1 1048576");
	recording_event(recording, "0 c 2 1048576");
	recording_event(recording, "0 c 3 1048576");
	recording_event(recording, "0 c 4 8388608 u");
	recording_event(recording, "0 e 1 7");
	recording_event(recording, "0 e 2 8");
}

/* Frames each 10 ms; the one with number SLOW also reads the user memory. */
static void add_swaps(struct recording *recording, unsigned count, unsigned slow)
{
	unsigned number = 0;

	EACH(i, count)
	{
		/* Two draws to the image, and between them one to another buffer. */
		recording_event(recording, "%u000000 x %u 0 1 0 0 0 1 0 %uw", i * 10 - 3, ++number,
				i % 2 + 1);
		recording_event(recording, "%u000000 x %u 0 1 0 0 0 1 0 3w", i * 10 - 1, ++number);
		recording_event(recording, "%u000000 x %u 0 1 0 0 0 %u 0 %uw%s", i * 10, ++number,
				i == slow ? 2 : 1, i % 2 + 1, i == slow ? " 4" : "");
	}
}

static void a_frame_ends_where_the_program_writes_another_image(void **state)
{
	void (*const changes[])(struct replay_options *) = {NULL, wddm2};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct recording recording;
		struct frames_summary frames;

		begin_images(&recording);
		add_swaps(&recording, 20, 0);
		frames = play(&recording, changes[i]).frames;
		assert_true(frames.swaps);
		assert_int_equal(frames.count, 20);
		assert_int_equal(frames.times.count, 19);
		assert_near(frames.times.p50_ns, 10 * MS);
		assert_near(frames.times.max_ns, 10 * MS);
		assert_int_equal(frames.late, 0);
		assert_in_range(frames.stall_ns, 0, 1000);
	}
}

static void a_slow_frame_is_late_and_the_longest_stall(void **state)
{
	/* Frame 5 reads 8 MiB over the link, in 8.4 ms: its successor is not waiting yet. */
	const uint64_t once = 8 * LINK - 8 * LOCAL;
	struct recording recording;
	struct frames_summary frames;

	(void)state;
	begin_images(&recording);
	add_swaps(&recording, 20, 5);
	frames = play(&recording, NULL).frames;
	assert_int_equal(frames.count, 20);
	assert_int_equal(frames.late, 0);
	assert_near(frames.stall_ns, once);
	assert_near(frames.times.max_ns, 10 * MS + 8 * LINK);
	/* In 16.8 ms: the program has submitted the end of frame 6. */
	begin_images(&recording);
	add_swaps(&recording, 20, 5);
	frames = play(&recording, two_passes).frames;
	assert_int_equal(frames.late, 1);
	assert_near(frames.stall_ns, once + 8 * LINK);
	assert_near(frames.times.max_ns, 10 * MS + 16 * LINK);
	assert_near(frames.times.p50_ns, 10 * MS);
}

/* Bursts of three submissions, 1 ms apart, each 20 ms. */
static void add_bursts(struct recording *recording, unsigned count)
{
	unsigned number = 0;

	EACH(i, count)
	{
		for (unsigned k = 0; k < 3; k++)
			recording_event(recording, "%u000000 x %u 0 1 0 0 0 1 0 1w", i * 20 + k,
					++number);
	}
}

static void without_two_images_a_pause_ends_a_frame(void **state)
{
	struct recording recording;
	struct frames_summary frames;

	(void)state;
	for (unsigned exported = 0; exported < 2; exported++) {
		recording_begin(&recording, "frames", 0);
		recording_event(&recording, "0 c 1 1048576");
		if (exported)
			recording_event(&recording, "0 e 1 7");
		add_bursts(&recording, 10);
		frames = play(&recording, NULL).frames;
		assert_false(frames.swaps);
		assert_int_equal(frames.count, 10);
		assert_int_equal(frames.times.count, 9);
		assert_near(frames.times.p50_ns, 20 * MS);
		assert_int_equal(frames.late, 0);
	}
}

static void flat_out_a_frame_takes_the_time_of_its_submissions(void **state)
{
	struct recording recording;
	struct frames_summary frames;

	(void)state;
	begin_images(&recording);
	add_swaps(&recording, 20, 0);
	frames = play(&recording, flat_out).frames;
	assert_int_equal(frames.count, 20);
	assert_near(frames.times.p50_ns, 3 * (BASE + LOCAL));
}

static void a_recording_without_submissions_has_no_frames(void **state)
{
	struct recording recording;
	struct process_times times;

	(void)state;
	begin_images(&recording);
	times = play(&recording, NULL);
	assert_int_equal(times.frames.count, 0);
	assert_int_equal(times.frames.times.max_ns, 0);
	assert_int_equal(times.waits.slowdown_permille, 0);
}

/* ---- waits ---- */

/* 8 buffers of 1 MiB that the CPU wrote, used in turn, each 10 ms. */
static struct recording turns(unsigned count)
{
	struct recording recording;

	recording_begin(&recording, "turns", 0);
	EACH(i, 8)
	recording_event(&recording, "0 c %u 1048576", i);
	EACH(i, 8)
	recording_event(&recording, "0 w %u 0 1048576 p", i);
	EACH(i, count)
	recording_event(&recording, "%u000000 x %u 0 1 0 0 0 1 0 %uw", i * 10, i, (i - 1) % 8 + 1);
	return recording;
}

static void a_run_that_fits_is_as_fast_as_the_recording(void **state)
{
	struct recording recording = turns(40);
	struct process_times times = play(&recording, NULL);

	(void)state;
	assert_near(times.waits.recorded_gpu_ns, 40 * (BASE + LOCAL));
	assert_near(times.waits.gpu_busy_ns, 40 * (BASE + LOCAL));
	/* The first use of each buffer pages it in. */
	assert_near(times.waits.gpu_paging_ns, 8 * LINK);
	assert_int_equal(times.waits.cpu_lock_ns, 0);
	assert_int_equal(times.waits.cpu_queue_ns, 0);
}

static void the_gpu_is_idle_while_paging_comes_first(void **state)
{
	void (*const changes[])(struct replay_options *) = {little_memory, little_memory_shared};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct recording recording = turns(40);
		struct waits_summary waits = play(&recording, changes[i]).waits;
		/* Four fit. Then each use moves one buffer out and one in. */
		const uint64_t idle = 4 * LINK + 36 * 2 * LINK, busy = 40 * (BASE + LOCAL);

		assert_near(waits.gpu_busy_ns, busy);
		assert_near(waits.gpu_paging_ns, idle);
		assert_near(waits.slowdown_permille, (busy + idle) * 1000 / busy);
	}
}

static void work_in_the_aperture_keeps_the_gpu_busy(void **state)
{
	void (*const changes[])(struct replay_options *) = {NULL, two_passes};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct recording recording;
		struct waits_summary waits;

		recording_begin(&recording, "aperture", 0);
		recording_event(&recording, "0 c 1 1048576 u");
		EACH(k, 20)
		recording_event(&recording, "%u000000 x %u 0 1 0 0 0 1 0 1w", k * 10, k);
		waits = play(&recording, changes[i]).waits;
		assert_near(waits.gpu_busy_ns, 20 * (BASE + (i + 1) * LINK));
		assert_near(waits.recorded_gpu_ns, 20 * (BASE + LOCAL));
		assert_near(waits.slowdown_permille,
			    (BASE + (i + 1) * LINK) * 1000 / (BASE + LOCAL));
	}
}

static void the_cpu_waits_in_locks_for_the_gpu(void **state)
{
	void (*const changes[])(struct replay_options *) = {NULL, wddm2};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct recording recording;

		recording_begin(&recording, "locks", 0);
		recording_event(&recording, "0 c 1 1048576");
		EACH(k, 20)
		{
			recording_event(&recording, "%u000000 x %u 0 1 0 0 0 1 0 1w", k * 10, k);
			recording_event(&recording, "%u050000 s 1 1 0", k * 10);
		}
		/* Each lock comes 50 us after the submission; the first one is also filled. */
		assert_near(play(&recording, changes[i]).waits.cpu_lock_ns,
			    20 * (BASE + LOCAL - 50000) + LOCAL);
	}
}

static void the_cpu_waits_for_free_dma_buffers(void **state)
{
	struct recording recording = turns(200);
	struct waits_summary waits = play(&recording, flat_out).waits;

	(void)state;
	/* All but the last few submissions wait until an earlier one has completed. */
	assert_in_range(waits.cpu_queue_ns, 180 * (BASE + LOCAL), 200 * (BASE + LOCAL) + 8 * LINK);
	assert_int_equal(waits.cpu_lock_ns, 0);
}

/* The second program waits for one fill of its buffer with zeros. */
static void each_process_has_its_waits(void **state)
{
	struct recording recordings[2] = {turns(40), {0}};
	struct replay_input inputs[2];
	struct replay_options options;
	struct replay_result result;

	(void)state;
	recording_end(&recordings[0]);
	recording_begin(&recordings[1], "still", 0);
	recording_event(&recordings[1], "0 c 1 1048576");
	EACH(k, 10)
	recording_event(&recordings[1], "%u000000 x %u 0 1 0 0 0 1 0 1w", k * 10 + 5, k);
	recording_end(&recordings[1]);
	options = options_for(&inputs[0], &recordings[0]);
	(void)options_for(&inputs[1], &recordings[1]);
	options.inputs = inputs;
	options.input_count = 2;
	assert_int_equal(replay_run(&options, &result), REPLAY_CLEAN);
	assert_near(result.process_times[0].waits.gpu_busy_ns, 40 * (BASE + LOCAL));
	assert_near(result.process_times[1].waits.gpu_busy_ns, 10 * (BASE + LOCAL));
	assert_near(result.process_times[0].waits.gpu_paging_ns, 8 * LINK);
	assert_near(result.process_times[1].waits.gpu_paging_ns, LOCAL);
	assert_int_equal(result.times.waits.gpu_busy_ns,
			 result.process_times[0].waits.gpu_busy_ns +
				 result.process_times[1].waits.gpu_busy_ns);
	assert_int_equal(result.process_times[0].frames.count, 40);
	assert_int_equal(result.process_times[1].frames.count, 10);
	assert_int_equal(result.times.frames.count, 50);
	replay_result_finish(&result);
	recording_free(&recordings[0]);
	recording_free(&recordings[1]);
}

/* ---- costs of the CPU ---- */

static void costly(struct replay_options *options)
{
	options->recorded_pace = false;
	options->costs.ns[COST_SUBMIT] = MS;
	options->costs.ns[COST_MAP] = 3 * MS;
}

static void costly_paging(struct replay_options *options)
{
	little_memory(options);
	options->costs.ns[COST_TRANSFER] = MS;
}

/* 20 submissions of one buffer, at once. */
static struct process_times cost_of(const char *create)
{
	struct recording recording;

	recording_begin(&recording, "costs", 0);
	recording_event(&recording, "0 %s", create);
	EACH(k, 20)
	recording_event(&recording, "0 x %u 0 1 0 0 0 1 0 1w", k);
	return play(&recording, costly);
}

static void the_cpu_pays_for_submissions_and_mappings(void **state)
{
	struct process_times times = cost_of("c 1 1048576 u");

	(void)state;
	/* Mapped into the aperture once. */
	assert_int_equal(times.waits.cpu_cost_ns, 20 * MS + 3 * MS);
	/* In video memory. The GPU is faster than the CPU, so no submission waits. */
	times = cost_of("c 1 1048576");
	assert_int_equal(times.waits.cpu_cost_ns, 20 * MS);
	assert_near(times.waits.gpu_busy_ns, 20 * (BASE + LOCAL));
	assert_near(times.latency.p50_ns, BASE + LOCAL);
	assert_int_equal(times.frames.count, 1);
}

static void the_cpu_pays_for_transfers(void **state)
{
	struct recording recording = turns(40);
	struct process_times times = play(&recording, costly_paging);

	(void)state;
	/* 40 buffers move in, 36 out (see above). */
	assert_int_equal(times.waits.cpu_cost_ns, 76 * MS);
}

static void costly_tables(struct replay_options *options)
{
	wddm2(options);
	options->costs.ns[COST_TABLE] = MS;
}

/* The buffer has 8 MiB: its tables are updated in more than one operation. */
static void the_cpu_pays_once_for_updates_of_tables_in_a_row(void **state)
{
	struct recording recording;
	uint64_t cost_ns;

	(void)state;
	recording_begin(&recording, "tables", 0);
	recording_event(&recording, "0 c 1 8388608");
	recording_event(&recording, "1000000 x 1 0 1 0 0 0 1 0 1w");
	cost_ns = play(&recording, costly_tables).waits.cpu_cost_ns;
	/* The context's command buffer and its fence have mappings of their own. */
	assert_in_range(cost_ns, MS, 4 * MS);
	assert_int_equal(cost_ns % MS, 0);
}

static void costs_are_a_name_or_a_list(void **state)
{
	struct cost_model model;

	(void)state;
	assert_true(cost_model_parse("none", &model) && cost_model_is_none(&model));
	assert_true(cost_model_parse("model", &model));
	assert_int_equal(model.ns[COST_SUBMIT], 3500);
	assert_int_equal(model.ns[COST_MAP], 20000);
	assert_true(cost_model_parse("map=12.5,submit=0", &model));
	assert_int_equal(model.ns[COST_SUBMIT], 0);
	assert_int_equal(model.ns[COST_MAP], 12500);
	assert_int_equal(model.ns[COST_UNMAP], 14000);
	assert_false(cost_model_parse("", &model));
	assert_false(cost_model_parse("map", &model));
	assert_false(cost_model_parse("map=", &model));
	assert_false(cost_model_parse("map=-1", &model));
	assert_false(cost_model_parse("map=1,", &model));
	assert_false(cost_model_parse("maps=1", &model));
	assert_false(cost_model_parse("map=1x", &model));
	assert_false(cost_model_parse("map=2000000", &model));
}

/* Both buffers together are larger than the memory: one submission runs in two portions. */
static void a_split_submission_completes_once(void **state)
{
	struct recording recording;
	struct process_times times;

	(void)state;
	recording_begin(&recording, "split", 0);
	recording_event(&recording, "0 c 1 3145728");
	recording_event(&recording, "0 c 2 3145728");
	EACH(k, 5)
	recording_event(&recording, "%u000000 x %u 0 1 0 0 0 2 0 1w 2w", k * 40, k);
	times = play(&recording, little_memory);
	assert_int_equal(times.latency.count, 5);
	assert_int_equal(times.frames.count, 5);
	assert_near(times.waits.gpu_busy_ns, 5 * (BASE + 6 * LOCAL));
	/*
	 * Between the portions buffer 1 moves out and buffer 2 in; before the first, the reverse.
	 */
	assert_true(times.waits.gpu_paging_ns > 5 * 3 * LINK);
	assert_near(times.latency.p50_ns, BASE + 6 * LOCAL + 4 * 3 * LINK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_frame_ends_where_the_program_writes_another_image),
		cmocka_unit_test(a_slow_frame_is_late_and_the_longest_stall),
		cmocka_unit_test(without_two_images_a_pause_ends_a_frame),
		cmocka_unit_test(flat_out_a_frame_takes_the_time_of_its_submissions),
		cmocka_unit_test(a_recording_without_submissions_has_no_frames),
		cmocka_unit_test(a_run_that_fits_is_as_fast_as_the_recording),
		cmocka_unit_test(the_gpu_is_idle_while_paging_comes_first),
		cmocka_unit_test(work_in_the_aperture_keeps_the_gpu_busy),
		cmocka_unit_test(the_cpu_waits_in_locks_for_the_gpu),
		cmocka_unit_test(the_cpu_waits_for_free_dma_buffers),
		cmocka_unit_test(each_process_has_its_waits),
		cmocka_unit_test(the_cpu_pays_for_submissions_and_mappings),
		cmocka_unit_test(the_cpu_pays_for_transfers),
		cmocka_unit_test(the_cpu_pays_once_for_updates_of_tables_in_a_row),
		cmocka_unit_test(costs_are_a_name_or_a_list),
		cmocka_unit_test(a_split_submission_completes_once),
	};

	return cmocka_run_group_tests_name("times", tests, NULL, NULL);
}
