/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crew.h"
#include "figures.h"

struct crew {
	const struct replay_options *options;
	crew_play_fn *play;
	unsigned count, running;
	struct exchange *exchange;
	struct order *order;
	struct trace_header *headers;
	pid_t *pids;
	struct replay_result *results; /* shared: each program writes its own */
	enum replay_status status;     /* the worst */
};

static void say(const struct crew *crew, const char *text)
{
	if (crew->options->message)
		crew->options->message(crew->options->message_context, text);
}

static void worse(struct crew *crew, enum replay_status status)
{
	if (status > crew->status)
		crew->status = status;
}

/* Everything that must be there before the first fork. */
static bool prepare(struct crew *crew)
{
	size_t bytes = crew->count * sizeof(*crew->results);

	crew->results =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (crew->results == MAP_FAILED)
		crew->results = NULL;
	crew->exchange = exchange_create(true);
	crew->order = order_create(crew->count);
	crew->headers = calloc(crew->count, sizeof(*crew->headers));
	crew->pids = calloc(crew->count, sizeof(*crew->pids));
	if (crew->results && crew->exchange && crew->order && crew->headers && crew->pids)
		return true;
	say(crew, "out of memory");
	return false;
}

static void finish(struct crew *crew)
{
	if (crew->results)
		munmap(crew->results, crew->count * sizeof(*crew->results));
	exchange_destroy(crew->exchange);
	order_destroy(crew->order);
	free(crew->headers);
	free(crew->pids);
}

static enum replay_status read_header(struct crew *crew, unsigned index)
{
	const struct replay_input *input = &crew->options->inputs[index];
	struct trace_reader *reader = NULL;
	enum trace_result result =
		input->data
			? trace_open_memory(input->path, input->data, input->size,
					    crew->options->limits, &reader)
			: trace_open_file(input->path, crew->options->limits, TRACE_SKIM, &reader);

	if (result == TRACE_OK)
		crew->headers[index] = *trace_header(reader);
	else
		say(crew, reader ? trace_error(reader) : "out of memory");
	trace_close(reader);
	if (result == TRACE_OK)
		return REPLAY_CLEAN;
	return result == TRACE_BAD ? REPLAY_BAD_INPUT : REPLAY_ENVIRONMENT;
}

static uint64_t earliest_ns(const struct crew *crew)
{
	uint64_t first_ns = UINT64_MAX;
	unsigned i;

	for (i = 0; i < crew->count; i++) {
		if (crew->headers[i].t0_ns < first_ns)
			first_ns = crew->headers[i].t0_ns;
	}
	return first_ns;
}

/* The forked program: it ends with its parent, and says nothing twice. */
static void play(struct crew *crew, unsigned index, pid_t parent)
{
	struct replay_options options = *crew->options;
	const struct world_crew member = {
		.index = index,
		.count = crew->count,
		.exchange = crew->exchange,
		.order = crew->order,
		.headers = crew->headers,
		.shift_ns = crew->headers[index].t0_ns - earliest_ns(crew),
	};
	enum replay_status status;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(REPLAY_ENVIRONMENT);
	options.inputs = &crew->options->inputs[index];
	options.input_count = 1;
	options.progress = NULL;
	status = crew->play(&options, &member, &crew->results[index]);
	_exit((int)status);
}

static void start(struct crew *crew)
{
	pid_t parent = getpid();
	unsigned i;

	for (i = 0; i < crew->count && crew->status == REPLAY_CLEAN; i++) {
		crew->pids[i] = fork();
		if (crew->pids[i] == 0)
			play(crew, i, parent);
		if (crew->pids[i] < 0) {
			say(crew, strerror(errno));
			worse(crew, REPLAY_ENVIRONMENT);
		} else {
			crew->running++;
		}
	}
	/* Nobody waits for those that there are not. */
	for (; i < crew->count; i++)
		order_reach(crew->order, i, ORDER_END);
}

static void ended(struct crew *crew, unsigned index, int status)
{
	char text[128];

	order_reach(crew->order, index, ORDER_END);
	crew->pids[index] = 0;
	crew->running--;
	if (WIFEXITED(status)) {
		worse(crew, (enum replay_status)WEXITSTATUS(status));
		return;
	}
	snprintf(text, sizeof(text), "%.63s: killed by signal %d", crew->headers[index].program,
		 WTERMSIG(status));
	say(crew, text);
	worse(crew, REPLAY_FINDINGS);
}

static void wait_for_all(struct crew *crew)
{
	while (crew->running > 0) {
		int status;
		pid_t pid = wait(&status);
		unsigned i;

		for (i = 0; i < crew->count; i++) {
			if (pid > 0 && crew->pids[i] == pid)
				ended(crew, i, status);
		}
		if (pid < 0 && errno != EINTR)
			return;
	}
}

/* What each counted for itself; peaks were not at one time, so they are not added. */
static void add(struct replay_result *sum, const struct replay_result *one)
{
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

/* The most that was alive of all together is a matter of the recordings. */
static void measure(struct crew *crew, struct replay_result *result)
{
	struct replay_options options = *crew->options;
	struct replay_measure found = {0};

	options.progress = NULL;
	worse(crew, replay_measure(&options, false, &found));
	result->peak_live_bytes = found.peak_live_bytes;
}

static void add_up(struct crew *crew, struct replay_result *result)
{
	unsigned i;

	for (i = 0; i < crew->count; i++) {
		add(result, &crew->results[i]);
		/* All asked between the same two moments, if they lived to see the second. */
		if (crew->results[i].told && !result->told)
			figures_copy(&crew->results[i], result);
	}
	measure(crew, result);
	result->virtual_ns = result->wall_ns;
	result->process_count = crew->count;
	result->headers = crew->headers;
	crew->headers = NULL;
}

enum replay_status crew_run(const struct replay_options *options, crew_play_fn *play_one,
			    struct replay_result *result)
{
	struct crew crew = {.options = options, .play = play_one, .count = options->input_count};
	unsigned i;

	if (!prepare(&crew))
		worse(&crew, REPLAY_ENVIRONMENT);
	for (i = 0; i < crew.count && crew.status == REPLAY_CLEAN; i++)
		worse(&crew, read_header(&crew, i));
	if (crew.status == REPLAY_CLEAN) {
		start(&crew);
		wait_for_all(&crew);
		add_up(&crew, result);
	}
	finish(&crew);
	return crew.status;
}
