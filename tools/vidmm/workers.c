/* SPDX-License-Identifier: MIT */
/*
 * Forks one worker process for each recording, waits for all of them, and adds up their results.
 * Results, the table of shared buffers and the clocks are in memory that is shared with the
 * workers.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "statistics.h"
#include "workers.h"

struct workers {
	const struct replay_options *options;
	worker_play_fn *play;
	unsigned count, running;
	struct exchange *exchange;
	struct order *order;
	struct trace_header *headers;
	pid_t *pids;
	struct replay_result *results; /* shared memory; each worker writes its own element */
	enum replay_status status;     /* the worst so far */
};

static void say(const struct workers *workers, const char *text)
{
	if (workers->options->message)
		workers->options->message(workers->options->message_context, text);
}

static void worse(struct workers *workers, enum replay_status status)
{
	if (status > workers->status)
		workers->status = status;
}

/* Allocates what the workers share. It has to exist before the first fork. */
static bool prepare(struct workers *workers)
{
	size_t bytes = workers->count * sizeof(*workers->results);

	workers->results =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (workers->results == MAP_FAILED)
		workers->results = NULL;
	workers->exchange = exchange_create(true);
	workers->order = order_create(workers->count);
	workers->headers = calloc(workers->count, sizeof(*workers->headers));
	workers->pids = calloc(workers->count, sizeof(*workers->pids));
	if (workers->results && workers->exchange && workers->order && workers->headers &&
	    workers->pids)
		return true;
	say(workers, "out of memory");
	return false;
}

static void finish(struct workers *workers)
{
	if (workers->results)
		munmap(workers->results, workers->count * sizeof(*workers->results));
	exchange_destroy(workers->exchange);
	order_destroy(workers->order);
	free(workers->headers);
	free(workers->pids);
}

static enum replay_status read_header(struct workers *workers, unsigned index)
{
	const struct replay_input *input = &workers->options->inputs[index];
	struct trace_reader *reader = NULL;
	enum trace_result result =
		input->data ? trace_open_memory(input->path, input->data, input->size,
						workers->options->limits, &reader)
			    : trace_open_file(input->path, workers->options->limits, TRACE_SKIM,
					      &reader);

	if (result == TRACE_OK)
		workers->headers[index] = *trace_header(reader);
	else
		say(workers, reader ? trace_error(reader) : "out of memory");
	trace_close(reader);
	if (result == TRACE_OK)
		return REPLAY_CLEAN;
	return result == TRACE_BAD ? REPLAY_BAD_INPUT : REPLAY_ENVIRONMENT;
}

static uint64_t earliest_ns(const struct workers *workers)
{
	uint64_t first_ns = UINT64_MAX;
	unsigned i;

	for (i = 0; i < workers->count; i++) {
		if (workers->headers[i].t0_ns < first_ns)
			first_ns = workers->headers[i].t0_ns;
	}
	return first_ns;
}

/*
 * Runs in the forked worker and does not return. The kernel kills the worker when its parent ends.
 * _exit keeps buffered output of the parent from being written twice.
 */
static void play(struct workers *workers, unsigned index, pid_t parent)
{
	struct replay_options options = *workers->options;
	const struct world_worker worker = {
		.index = index,
		.count = workers->count,
		.exchange = workers->exchange,
		.order = workers->order,
		.headers = workers->headers,
		.shift_ns = workers->headers[index].t0_ns - earliest_ns(workers),
	};
	enum replay_status status;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(REPLAY_ENVIRONMENT);
	options.inputs = &workers->options->inputs[index];
	options.input_count = 1;
	options.progress = NULL;
	status = workers->play(&options, &worker, &workers->results[index]);
	_exit((int)status);
}

static void start(struct workers *workers)
{
	pid_t parent = getpid();
	unsigned i;

	for (i = 0; i < workers->count && workers->status == REPLAY_CLEAN; i++) {
		workers->pids[i] = fork();
		if (workers->pids[i] == 0)
			play(workers, i, parent);
		if (workers->pids[i] < 0) {
			say(workers, strerror(errno));
			worse(workers, REPLAY_ENVIRONMENT);
		} else {
			workers->running++;
		}
	}
	/* No worker waits for one that was not started. */
	for (; i < workers->count; i++)
		order_reach(workers->order, i, ORDER_END);
}

static void ended(struct workers *workers, unsigned index, int status)
{
	char text[128];

	order_reach(workers->order, index, ORDER_END);
	workers->pids[index] = 0;
	workers->running--;
	if (WIFEXITED(status)) {
		worse(workers, (enum replay_status)WEXITSTATUS(status));
		return;
	}
	snprintf(text, sizeof(text), "%.63s: killed by signal %d", workers->headers[index].program,
		 WTERMSIG(status));
	say(workers, text);
	worse(workers, REPLAY_FINDINGS);
}

static void wait_for_all(struct workers *workers)
{
	while (workers->running > 0) {
		int status;
		pid_t pid = wait(&status);
		unsigned i;

		for (i = 0; i < workers->count; i++) {
			if (pid > 0 && workers->pids[i] == pid)
				ended(workers, i, status);
		}
		if (pid < 0 && errno != EINTR)
			return;
	}
}

/*
 * Adds the counters of one worker. Peaks are not added, because they occurred at different times.
 */
static void add(struct replay_result *sum, const struct replay_result *one)
{
	if (one->refusal.refused)
		sum->refusal = one->refusal;
	sum->events += one->events;
	sum->submissions += one->submissions;
	sum->references += one->references;
	sum->relocations += one->relocations;
	sum->renders += one->renders;
	sum->extra_renders += one->extra_renders;
	sum->offers += one->offers;
	sum->reclaims += one->reclaims;
	sum->discarded += one->discarded;
	sum->clamped_deltas += one->clamped_deltas;
	sum->unmatched_imports += one->unmatched_imports;
	sum->refused_tilings += one->refused_tilings;
	sum->foreign_accesses += one->foreign_accesses;
	sum->ignored_tilings += one->ignored_tilings;
	sum->ignored_exports += one->ignored_exports;
	sum->bytes_written += one->bytes_written;
	sum->blocks_checked += one->blocks_checked;
	sum->verify_errors += one->verify_errors;
	if (one->wall_ns > sum->wall_ns)
		sum->wall_ns = one->wall_ns;
}

/* The peak of live bytes over all processes follows from the recordings alone. */
static void measure(struct workers *workers, struct replay_result *result)
{
	struct replay_options options = *workers->options;
	struct replay_measure found = {0};

	options.progress = NULL;
	worse(workers, replay_measure(&options, false, &found));
	result->peak_live_bytes = found.peak_live_bytes;
}

static void add_up(struct workers *workers, struct replay_result *result)
{
	unsigned i;

	for (i = 0; i < workers->count; i++) {
		add(result, &workers->results[i]);
		/*
		 * Every surviving worker sampled the adapter at the same two points of the replay,
		 * so one of them suffices.
		 */
		if (workers->results[i].statistics_known && !result->statistics_known)
			statistics_copy(&workers->results[i], result);
	}
	measure(workers, result);
	result->virtual_ns = result->wall_ns;
	result->process_count = workers->count;
	result->headers = workers->headers;
	workers->headers = NULL;
}

enum replay_status workers_run(const struct replay_options *options, worker_play_fn *play_one,
			       struct replay_result *result)
{
	struct workers workers = {
		.options = options, .play = play_one, .count = options->input_count};
	unsigned i;

	if (!prepare(&workers))
		worse(&workers, REPLAY_ENVIRONMENT);
	for (i = 0; i < workers.count && workers.status == REPLAY_CLEAN; i++)
		worse(&workers, read_header(&workers, i));
	if (workers.status == REPLAY_CLEAN) {
		start(&workers);
		wait_for_all(&workers);
		add_up(&workers, result);
	}
	finish(&workers);
	return workers.status;
}
