/* SPDX-License-Identifier: MIT */
/*
 * Plays recordings: opens and merges them, starts a world and a driver for each process, and runs
 * the events in merged order.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "by_bytes.h"
#include "memory_limit.h"
#include "next_uses.h"
#include "times.h"
#include "umd.h"
#include "victims.h"
#include "workers.h"

/* The open recordings of a replay and their merge. */
struct recordings {
	const struct replay_options *options;
	struct trace_reader **readers;
	unsigned count;
	struct trace_merge *merge;
	struct live live;
};

static void print_message(const struct replay_options *options, const char *text)
{
	if (options->message)
		options->message(options->message_context, text);
}

static enum replay_status status_of(const struct replay_options *options, enum trace_result result,
				    const struct trace_reader *reader)
{
	print_message(options, reader ? trace_error(reader) : "out of memory");
	return result == TRACE_BAD ? REPLAY_BAD_INPUT : REPLAY_ENVIRONMENT;
}

static enum replay_status open_recordings(struct recordings *recordings,
					  const struct replay_options *options, unsigned flags)
{
	unsigned i;

	*recordings = (struct recordings){.options = options};
	recordings->readers = calloc(options->input_count, sizeof(struct trace_reader *));
	if (!recordings->readers)
		return status_of(options, TRACE_IO, NULL);
	for (i = 0; i < options->input_count; i++) {
		const struct replay_input *input = &options->inputs[i];
		struct trace_reader **reader = &recordings->readers[recordings->count++];
		enum trace_result result =
			input->data ? trace_open_memory(input->path, input->data, input->size,
							options->limits, reader)
				    : trace_open_file(input->path, options->limits,
						      flags | TRACE_READ_AHEAD, reader);

		if (result != TRACE_OK)
			return status_of(options, result, *reader);
	}
	recordings->merge = trace_merge_create(recordings->readers, recordings->count);
	return recordings->merge ? REPLAY_CLEAN : status_of(options, TRACE_IO, NULL);
}

static void close_recordings(struct recordings *recordings)
{
	unsigned i;

	trace_merge_destroy(recordings->merge);
	for (i = 0; i < recordings->count; i++)
		trace_close(recordings->readers[i]);
	free(recordings->readers);
}

static void show_progress(const struct recordings *recordings)
{
	uint64_t done = 0, size = 0;
	unsigned i;

	for (i = 0; i < recordings->count; i++) {
		uint64_t one_done, one_size;

		trace_progress(recordings->readers[i], &one_done, &one_size);
		done += one_done;
		size += one_size;
	}
	if (size)
		recordings->options->progress(recordings->options->progress_context,
					      (double)done / (double)size);
}

/* Refuses an event after which the buffers need USED bytes, if that passes the limit. */
static enum replay_status check_memory(const struct recordings *recordings, unsigned process,
				       const struct trace_event *event, uint64_t used, bool renamed)
{
	uint64_t limit = recordings->options->memory_bytes;
	char text[512];

	if (!limit || used <= limit)
		return REPLAY_CLEAN;
	memory_limit_text(text, sizeof(text), trace_name(recordings->readers[process]), event, used,
			  limit, renamed);
	print_message(recordings->options, text);
	return REPLAY_BAD_INPUT;
}

/* Reads the next event in merged order. At the end it returns REPLAY_CLEAN with *EVENT NULL. */
static enum replay_status next_event(struct recordings *recordings, uint64_t count,
				     unsigned *process, uint64_t *when_ns,
				     const struct trace_event **event)
{
	enum trace_result result;

	if (recordings->options->progress && count % 1024 == 0)
		show_progress(recordings);
	*event = NULL;
	result = trace_merge_next(recordings->merge, process, when_ns, event);
	if (result == TRACE_END)
		return REPLAY_CLEAN;
	if (result == TRACE_OK) {
		live_count(&recordings->live, *event);
		return check_memory(recordings, *process, *event, recordings->live.bytes, false);
	}
	return status_of(recordings->options, result, recordings->readers[*process]);
}

/* Takes the next event. Returns false when out of memory. */
typedef bool take_event(void *context, unsigned process, const struct trace_event *event);

/* Reads the recordings once. */
static enum replay_status read_events(const struct replay_options *options, unsigned flags,
				      take_event *take, void *context)
{
	struct recordings recordings;
	enum replay_status status = open_recordings(&recordings, options, flags);
	const struct trace_event *event;
	uint64_t count = 0, when_ns;
	unsigned process;

	while (status == REPLAY_CLEAN) {
		status = next_event(&recordings, count++, &process, &when_ns, &event);
		if (status != REPLAY_CLEAN || !event)
			break;
		if (!take(context, process, event))
			status = status_of(options, TRACE_IO, NULL);
	}
	close_recordings(&recordings);
	return status;
}

struct measuring {
	struct live live;
	bool submissions;
	uint64_t largest_submission_bytes;
};

static bool measure_event(void *context, unsigned process, const struct trace_event *event)
{
	struct measuring *m = context;

	(void)process;
	live_count(&m->live, event);
	if (m->submissions && event->op == TRACE_SUBMIT &&
	    event->u.submission->referenced_bytes > m->largest_submission_bytes)
		m->largest_submission_bytes = event->u.submission->referenced_bytes;
	return true;
}

enum replay_status replay_measure(const struct replay_options *options, bool submissions,
				  struct replay_measure *measure)
{
	struct measuring m = {.submissions = submissions};
	enum replay_status status =
		read_events(options, submissions ? 0 : TRACE_SKIM, measure_event, &m);

	if (submissions)
		measure->largest_submission_bytes = m.largest_submission_bytes;
	measure->peak_live_bytes = m.live.peak_bytes;
	measure->largest_buffer_bytes = m.live.largest_bytes;
	return status;
}

const char *const replay_status_names[] = {
	[REPLAY_CLEAN] = "clean",
	[REPLAY_FINDINGS] = "findings",
	[REPLAY_USAGE] = "usage",
	[REPLAY_BAD_INPUT] = "bad input",
	[REPLAY_ENVIRONMENT] = "environment",
};
const char *const replay_models[] = {"wddm1", "wddm2", NULL};

static uint64_t wall_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Prepares the list of the most paged buffers. Returns false when out of memory. */
static bool prepare_thrash(struct world *world, unsigned recording_count)
{
	unsigned most = world->options->thrash_count;
	bool judged = world->options->against_reference;

	if ((!most && !judged) || !world->host)
		return true;
	world->result->thrash = calloc(most + 1, sizeof(*world->result->thrash));
	world->thrash = thrash_create(world->host, world->adapter, recording_count);
	if (world->thrash && judged)
		world->victims = victims_create(world);
	return world->result->thrash && world->thrash && (!judged || world->victims);
}

/* A report names all recordings, also if the adapter or a device is refused. */
static enum replay_status take_headers(struct replay_result *result,
				       const struct recordings *recordings)
{
	result->headers = calloc(recordings->count, sizeof(struct trace_header));
	result->process_times = calloc(recordings->count, sizeof(struct process_times));
	if (!result->headers || !result->process_times)
		return status_of(recordings->options, TRACE_IO, NULL);
	for (unsigned i = 0; i < recordings->count; i++)
		result->headers[i] = *trace_header(recordings->readers[i]);
	result->process_count = recordings->count;
	return REPLAY_CLEAN;
}

static enum replay_status start_processes(struct world *world, const struct recordings *recordings)
{
	enum replay_status status = REPLAY_CLEAN;
	unsigned i;

	world->processes = calloc(recordings->count, sizeof(struct umd *));
	if (!world->processes || !prepare_thrash(world, recordings->count))
		return status_of(world->options, TRACE_IO, NULL);
	for (i = 0; i < recordings->count && status == REPLAY_CLEAN; i++) {
		world->process_count++;
		status = umd_create(world, i, &world->result->headers[i], &world->processes[i]);
	}
	if (status != REPLAY_CLEAN || !world->options->gpu_time || !world->host)
		return status;
	world->times = times_create(world->host, &world->options->costs, world->result->headers,
				    world->process_count);
	return world->times ? status : status_of(world->options, TRACE_IO, NULL);
}

/*
 * Publishes that all events before this one are done. If the event touches shared memory, waits for
 * this worker's turn in the recorded order.
 */
static void wait_for_turn(struct world *world, const struct trace_event *event, uint64_t when_ns)
{
	const struct world_worker *worker = &world->worker;

	if (!worker->order)
		return;
	uint64_t time_ns = ORDER_BEGIN + when_ns + worker->shift_ns;
	order_reach(worker->order, worker->index, time_ns);
	if (umd_touches_shared(world->processes[0], event))
		order_wait(worker->order, worker->index, time_ns);
}

/* Barrier of all workers: returns when each of them has reached WHEN_NS. */
static void wait_for_all(struct world *world, uint64_t when_ns)
{
	if (!world->worker.order)
		return;
	order_reach(world->worker.order, world->worker.index, when_ns);
	order_wait(world->worker.order, world->worker.index, when_ns - 1);
}

/* Plays an event. On a sim host, the time that it costs the CPU passes afterwards. */
static enum replay_status run_event(struct world *world, unsigned process,
				    const struct trace_event *event)
{
	enum replay_status status = umd_event(world->processes[process], event);
	uint64_t ns;

	if (world->next_uses && event->op == TRACE_SUBMIT)
		next_uses_advance(world->next_uses);
	if (status == REPLAY_CLEAN && event->op == TRACE_SUBMIT)
		status = umd_poll_report(world->processes[process], false);
	if (status != REPLAY_CLEAN || !world->times || world->deadlocked)
		return status;
	ns = times_cost_ns(world->times, process);
	if (ns != 0)
		world->ops->wait_until_ns(world, world->ops->now_ns(world) + ns);
	return status;
}

/*
 * Refuses a recording whose renames and closed buffers pass the limit of memory. The memory manager
 * is asked only if the sum of what they may have left would.
 */
static enum replay_status check_beyond(struct world *world, const struct recordings *recordings,
				       struct memory_beyond *beyond, unsigned process,
				       const struct trace_event *event)
{
	uint64_t limit = world->options->memory_bytes, live = recordings->live.bytes, used;

	memory_beyond_count(beyond, event);
	if (!limit || live + beyond->bytes <= limit)
		return REPLAY_CLEAN;
	used = world->ops->used_bytes(world);
	beyond->bytes = used > live ? used - live : 0;
	return check_memory(recordings, process, event, used, true);
}

/* Runs every event, at its recorded time or as fast as possible. */
static enum replay_status run_events(struct world *world, struct recordings *recordings,
				     uint64_t start_ns)
{
	struct replay_result *result = world->result;
	bool paced = world->options->recorded_pace;
	enum replay_status status;
	const struct trace_event *event;
	struct memory_beyond beyond = {0};
	uint64_t when_ns;
	unsigned process;

	for (;;) {
		status = next_event(recordings, result->events, &process, &when_ns, &event);
		if (status != REPLAY_CLEAN || !event)
			return status;
		result->events++;
		result->peak_live_bytes = recordings->live.peak_bytes;
		if (paced)
			world->ops->wait_until_ns(world,
						  start_ns + when_ns + world->worker.shift_ns);
		wait_for_turn(world, event, when_ns);
		if (world->times)
			times_event(world->times, process, event, when_ns);
		status = run_event(world, process, event);
		if (status == REPLAY_CLEAN)
			status = check_beyond(world, recordings, &beyond, process, event);
		if (status != REPLAY_CLEAN)
			return status;
		if (world->deadlocked)
			return REPLAY_FINDINGS;
	}
}

/* With WDDM 2.x the driver renames and waits, and not the memory manager. */
static void add_driver_counts(struct replay_result *result)
{
	result->renames += result->driver.renames;
	result->waits_avoided += result->driver.renames;
	result->lock_waits += result->driver.waits;
	result->lock_wait_ns += result->driver.wait_ns;
}

static enum replay_status check_everything(struct world *world)
{
	enum replay_status status = REPLAY_CLEAN;
	unsigned i;

	/* Wait until no worker changes shared buffers any more. */
	if (world->worker.order) {
		order_reach(world->worker.order, world->worker.index, ORDER_END);
		order_wait(world->worker.order, world->worker.index, ORDER_END);
	}
	for (i = 0; i < world->process_count && status == REPLAY_CLEAN; i++)
		status = umd_final_check(world->processes[i]);
	return status;
}

static enum replay_status run_world(struct world *world, struct recordings *recordings)
{
	struct replay_result *result = world->result;
	enum replay_status status = world_start(world), idle = REPLAY_CLEAN;
	uint64_t start_ns, wall_ns;

	/*
	 * The statistics begin when all workers have connected and end when the last one has played
	 * its recording.
	 */
	if (status == REPLAY_CLEAN) {
		wait_for_all(world, ORDER_BEGIN);
		status = start_processes(world, recordings);
	}
	if (status != REPLAY_CLEAN)
		return status;
	start_ns = world->ops->now_ns(world);
	wall_ns = wall_clock_ns();
	status = run_events(world, recordings, start_ns);
	if (!world->deadlocked)
		idle = world->ops->wait_idle(world);
	status = status == REPLAY_CLEAN ? idle : status;
	result->wall_ns = wall_clock_ns() - wall_ns;
	result->virtual_ns = world->ops->now_ns(world) - start_ns;
	/* Sample the statistics before the final check, which is not part of the recordings. */
	wait_for_all(world, ORDER_PLAYED);
	world->ops->collect(world);
	add_driver_counts(result);
	if (status == REPLAY_CLEAN)
		status = check_everything(world);
	result->event_hash = world->ops->event_hash(world);
	return status;
}

static bool add_next_uses(void *context, unsigned process, const struct trace_event *event)
{
	return next_uses_add(context, process, event);
}

/* For the policy `reference`, or to compare with it. */
static enum replay_status find_next_uses(struct world *world)
{
	world->next_uses = next_uses_create(world->options->input_count);
	if (!world->next_uses)
		return status_of(world->options, TRACE_IO, NULL);
	return read_events(world->options, 0, add_next_uses, world->next_uses);
}

static bool count_event(void *context, unsigned process, const struct trace_event *event)
{
	return by_bytes_count(context, process, event);
}

static enum replay_status count_by_bytes(struct world *world)
{
	const struct replay_options *options = world->options;
	bool ahead = options->policy == REPLAY_POLICY_REFERENCE;
	struct by_bytes *b = by_bytes_create(options->input_count, options->policy,
					     ahead ? world->next_uses : NULL, options->vram_bytes);
	enum replay_status status =
		b ? read_events(options, 0, count_event, b) : status_of(options, TRACE_IO, NULL);

	if (status == REPLAY_CLEAN)
		world->result->by_bytes_again = by_bytes_again(b);
	by_bytes_destroy(b);
	if (ahead)
		next_uses_rewind(world->next_uses);
	return status;
}

static enum replay_status run_recordings(const struct replay_options *options,
					 const struct world_worker *worker,
					 struct replay_result *result)
{
	struct world world = {.options = options, .result = result, .worker = *worker};
	struct recordings recordings = {.options = options};
	enum replay_status status = REPLAY_CLEAN;

	if (options->policy == REPLAY_POLICY_REFERENCE || options->against_reference)
		status = find_next_uses(&world);
	if (status == REPLAY_CLEAN && options->by_bytes)
		status = count_by_bytes(&world);
	if (status == REPLAY_CLEAN)
		status = open_recordings(&recordings, options, 0);
	if (status == REPLAY_CLEAN)
		status = take_headers(result, &recordings);
	if (status == REPLAY_CLEAN) {
		status = run_world(&world, &recordings);
		world_stop(&world);
	}
	close_recordings(&recordings);
	next_uses_destroy(world.next_uses);
	if (status == REPLAY_CLEAN && (result->verify_errors > 0 || result->finding_count > 0))
		status = REPLAY_FINDINGS;
	return status;
}

enum replay_status replay_run(const struct replay_options *options, struct replay_result *result)
{
	memset(result, 0, sizeof(*result));
	if (options->connect && options->input_count > 1)
		result->status = workers_run(options, run_recordings, result);
	else
		result->status = run_recordings(options, &(struct world_worker){0}, result);
	return result->status;
}

bool replay_has_value(const struct replay_options *options, const struct replay_result *result,
		      size_t offset)
{
	if (!options->connect)
		return true;
	/*
	 * A host in another process writes the findings of all its clients to its log and its
	 * events.
	 */
	if (offset == offsetof(struct replay_result, finding_count))
		return false;
	if (offset >= offsetof(struct replay_result, times) &&
	    offset < offsetof(struct replay_result, process_times))
		return false;
	return result->statistics_known ||
	       offset < offsetof(struct replay_result, statistics_known) ||
	       offset >= offsetof(struct replay_result, blocks_checked);
}

void replay_result_finish(struct replay_result *result)
{
	free(result->headers);
	free(result->process_times);
	free(result->thrash);
	result->headers = NULL;
	result->thrash = NULL;
	result->process_times = NULL;
}
