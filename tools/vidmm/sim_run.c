/* SPDX-License-Identifier: MIT */
/* A run: a process that does one step after the other. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "crash.h"
#include "record_write.h"
#include "sim.h"

/* The invariants of the memory manager are checked after so many steps. */
#define CHECK_STEPS   64u
/* So many steps may not use more processor time than this. */
#define LIMIT_STEPS   1024u
#define LIMIT_SECONDS 120
/* Of the heap, from one run of a series to the next. */
#define KEPT_BYTES    (32 << 20)

sim_act_fn *const sim_acts[SIM_OPS] = {
	[SIM_CREATE] = sim_create,
	[SIM_DESTROY] = sim_destroy,
	[SIM_READ] = sim_read,
	[SIM_WRITE] = sim_write,
	[SIM_HOLD] = sim_hold,
	[SIM_RELEASE] = sim_release,
	[SIM_DISCARD] = sim_discard,
	[SIM_FILL] = sim_fill,
	[SIM_COPY] = sim_copy,
	[SIM_OFFER] = sim_offer,
	[SIM_RECLAIM] = sim_reclaim,
	[SIM_PRIORITY] = sim_priority,
	[SIM_QUERY] = sim_query,
	[SIM_LIST] = sim_list,
	[SIM_UNLIST] = sim_unlist,
	[SIM_BUDGET] = sim_budget,
	[SIM_CONTEXT] = sim_context,
	[SIM_DEVICE] = sim_device,
	[SIM_FENCE] = sim_fence,
	[SIM_SIGNAL] = sim_signal,
	[SIM_GPU_SIGNAL] = sim_gpu_signal,
	[SIM_GPU_WAIT] = sim_gpu_wait,
	[SIM_IDLE] = sim_idle_step,
	[SIM_ILLEGAL] = sim_illegal,
	[SIM_STALL] = sim_stall,
	[SIM_REPEAT] = sim_repeat,
	[SIM_LOSE] = sim_lose,
	[SIM_LOSE_ALL] = sim_lose_all,
	[SIM_ANSWER] = sim_answer,
	[SIM_HANG] = sim_hang,
	[SIM_POWER] = sim_power,
	[SIM_DEATH] = sim_death,
	[SIM_RESTART] = sim_restart,
	[SIM_REMOVAL] = sim_removal,
	[SIM_CLOCK] = sim_clock,
	[SIM_NO_MEMORY] = sim_no_memory,
};

/* Of this process's processor time, which other programs do not change. */
static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- in the process of the run ---- */

static void limit_time(void)
{
	const struct itimerval limit = {.it_value.tv_sec = LIMIT_SECONDS};

	(void)setitimer(ITIMER_PROF, &limit, NULL);
}

/* A step that breaks no rule must have no finding. */
static void end_step(struct sim *sim)
{
	if (sim->findings && !sim->findings_expected)
		sim_wrong(sim, sim_rule(sim, "FINDING"), "a finding about a legal step: %s",
			  sim->finding);
	sim->findings = 0;
	sim->recoveries = 0;
	sim->completions_before_step = sim->completions;
	sim->findings_expected = false;
	sim->finding[0] = '\0';
}

static void run_steps(struct sim *sim, const struct sim_plan *plan)
{
	for (uint64_t i = 0; i < plan->count; i++) {
		struct sim_step step = plan->steps ? plan->steps[i]
						   : sim_draw(plan->setup.seed, i,
							      plan->setup.processes, plan->weights);

		uint64_t skipped = sim->result->skipped[step.op];

		sim->result->step = i;
		sim->step = &step;
		if (i % LIMIT_STEPS == 0)
			limit_time();
		sim_pick(sim, &step);
		if (plan->picked)
			plan->picked[i] = step;
		sim_acts[step.op](sim, &step);
		if (plan->picked && sim->result->skipped[step.op] != skipped)
			plan->picked[i].op = SIM_OPS;
		if (i % CHECK_STEPS == 0)
			vidmm_adapter_check(sim->adapter);
		end_step(sim);
	}
}

/* At the end everything is compared, and everything ends. */
static void finish(struct sim *sim)
{
	struct vidmm_counter evictions;
	const struct sim_step idle = {.op = SIM_IDLE};

	sim->step = &idle;
	for (uint32_t i = 0; i < sim->setup->processes; i++) {
		struct sim_step step = {.op = SIM_IDLE, .process = i};

		sim_idle_step(sim, &step);
		sim->result->done[SIM_IDLE]--;
	}
	vidmm_event_counter(sim->host, VIDMM_EVENT_VICTIM, &evictions);
	sim->result->evictions = evictions.count;
	sim_stop(sim);
	end_step(sim);
	sim->result->hash = vidmm_event_hash(sim->host);
	vidmm_host_destroy(sim->host);
	sim->result->finished = true;
}

static bool open_record(struct sim *sim, const struct sim_plan *plan)
{
	if (!plan->record)
		return true;
	json_t *about =
		json_pack("{s:s,s:I}", "command", "sim", "seed", (json_int_t)plan->setup.seed);
	sim->record = record_create(plan->record, about);
	json_decref(about);
	return sim->record && vidmm_subscribe(sim->host, UINT64_MAX, record_event, sim->record);
}

static int be_a_run(const struct sim_plan *plan, struct sim_result *result)
{
	struct sim *sim = calloc(1, sizeof(*sim));
	double began = seconds_now();

	if (!sim)
		return REPLAY_ENVIRONMENT;
	sim->setup = &plan->setup;
	sim->result = result;
	sim->entry = plan->entry;
	if (!sim_create_host(sim) || !open_record(sim, plan))
		return REPLAY_ENVIRONMENT;
	sim_start(sim);
	run_steps(sim, plan);
	finish(sim);
	result->seconds = seconds_now() - began;
	bool good = record_finish(sim->record);
	free(sim);
	return good ? REPLAY_CLEAN : REPLAY_ENVIRONMENT;
}

static bool prepare(const struct sim_plan *plan)
{
	/* A run uses the memory of the one before it again, instead of new pages of the system. */
	(void)mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
	(void)mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
	if (plan->quiet && !freopen("/dev/null", "w", stderr))
		return false;
	crash_watch(STDERR_FILENO, plan->entry);
	return true;
}

static int be_a_series(sim_next_fn *next, void *context, uint64_t first, struct sim_result *result)
{
	struct sim_plan plan = {0};
	uint64_t runs = 0;
	int status = REPLAY_CLEAN;

	result->finished = true;
	for (uint64_t run = first; status == REPLAY_CLEAN; run++) {
		enum sim_next which = next(context, run, &plan);

		if (which == SIM_LAST)
			break;
		if (which == SIM_NO_RUN)
			continue;
		if (!runs && !prepare(&plan))
			return REPLAY_ENVIRONMENT;
		memset(result, 0, sizeof(*result));
		result->run = run;
		result->runs = ++runs;
		status = be_a_run(&plan, result);
	}
	return status;
}

/* ---- in the process of the program ---- */

void *sim_share(size_t size_bytes)
{
	void *memory =
		mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

void sim_unshare(void *memory, size_t size_bytes)
{
	if (memory)
		munmap(memory, size_bytes);
}

/* The process has ended without a result. */
static void note_end(struct sim_result *result, int status)
{
	if (result->failed || result->finished)
		return;
	result->failed = true;
	if (WIFSIGNALED(status)) {
		snprintf(result->rule, sizeof(result->rule), "SIGNAL-%d", WTERMSIG(status));
		snprintf(result->text, sizeof(result->text), "%s",
			 WTERMSIG(status) == SIGPROF ? "the step does not end"
						     : "the process of the run ended by a signal");
		return;
	}
	snprintf(result->rule, sizeof(result->rule), "EXIT-%d", WEXITSTATUS(status));
	snprintf(result->text, sizeof(result->text),
		 "the process of the run ended with exit code %d", WEXITSTATUS(status));
}

bool sim_run_series(sim_next_fn *next, void *context, uint64_t first, struct sim_result *result)
{
	int status = 0;

	memset(result, 0, sizeof(*result));
	fflush(NULL);
	pid_t child = fork();
	if (child < 0) {
		fprintf(stderr, "vidmm sim: no process for the run: %s\n", strerror(errno));
		return false;
	}
	if (child == 0)
		_Exit(be_a_series(next, context, first, result));
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	if (WIFEXITED(status) && WEXITSTATUS(status) == REPLAY_ENVIRONMENT && !result->failed)
		return false;
	note_end(result, status);
	return true;
}

static enum sim_next only_run(void *context, uint64_t index, struct sim_plan *plan)
{
	*plan = *(const struct sim_plan *)context;
	return index ? SIM_LAST : SIM_RUN;
}

bool sim_run(const struct sim_plan *plan, struct sim_result *result)
{
	struct sim_plan copy = *plan;

	return sim_run_series(only_run, &copy, 0, result);
}
