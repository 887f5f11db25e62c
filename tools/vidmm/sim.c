/* SPDX-License-Identifier: MIT */
/* `vidmm sim`: its runs, and what it prints. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <vidmm/softgpu.h>

#include "sim_options.h"

/* ---- output ---- */

static void add(struct sim_result *sum, const struct sim_result *result)
{
	for (uint32_t i = 0; i < SIM_OPS; i++) {
		sum->done[i] += result->done[i];
		sum->refused[i] += result->refused[i];
		sum->skipped[i] += result->skipped[i];
	}
	sum->compared_bytes += result->compared_bytes;
	sum->evictions += result->evictions;
	sum->discards += result->discards;
	sum->resets += result->resets;
	sum->seconds += result->seconds;
}

/* How many adapters had which fault by their properties. */
static void print_properties(const uint64_t adapters[SIM_FAULTS_OF_SETUP])
{
	for (uint32_t i = 0; i < SIM_FAULTS_OF_SETUP; i++)
		printf("%-12s %10" PRIu64 " adapters  fault\n", sim_fault_names[i], adapters[i]);
}

static void print_table(const struct sim_result *sum, const uint64_t adapters[SIM_FAULTS_OF_SETUP])
{
	uint64_t steps = 0;

	printf("%-12s %10s %10s %10s\n", "operation", "done", "refused", "skipped");
	for (uint32_t i = 0; i < SIM_OPS; i++) {
		steps += sum->done[i] + sum->refused[i] + sum->skipped[i];
		printf("%-12s %10" PRIu64 " %10" PRIu64 " %10" PRIu64 "%s\n", sim_op_names[i],
		       sum->done[i], sum->refused[i], sum->skipped[i],
		       i >= SIM_FIRST_FAULT ? "  fault" : "");
	}
	print_properties(adapters);
	printf("%" PRIu64 " steps, %" PRIu64 " bytes compared, %" PRIu64 " evictions, %" PRIu64
	       " discards, %" PRIu64 " resets",
	       steps, sum->compared_bytes, sum->evictions, sum->discards, sum->resets);
	if (sum->seconds > 0)
		printf(", %.0f steps per second of processor time", (double)steps / sum->seconds);
	printf("\n");
}

static struct sim_step step_of(const struct sim_plan *plan, uint64_t index)
{
	return plan->steps
		       ? plan->steps[index]
		       : sim_draw(plan->setup.seed, index, plan->setup.processes, plan->weights);
}

static void print_failure(const struct sim_plan *plan, const struct sim_result *result)
{
	struct sim_step step = step_of(plan, result->step);

	printf("seed %" PRIu64 ", step %" PRIu64 " (%s %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32
	       " %" PRIu32 "): %s: %s\n",
	       plan->setup.seed, result->step, sim_op_names[step.op], step.process, step.a, step.b,
	       step.c, step.d, result->rule, result->text);
}

/* ---- a failure in few steps ---- */

static bool write_script(const struct sim_options *options, const struct sim_setup *setup,
			 const struct sim_step *steps, uint64_t count)
{
	FILE *file = options->output ? fopen(options->output, "w") : stdout;
	bool good = file && sim_script_write(file, setup, steps, count);

	if (file && file != stdout)
		good = fclose(file) == 0 && good;
	if (!good && options->output)
		fprintf(stderr, "vidmm sim: %s: %s\n", options->output, strerror(errno));
	return good;
}

static enum replay_status minimise(const struct sim_options *options, const struct sim_plan *plan,
				   const struct sim_result *failure)
{
	uint64_t count = failure->step + 1, runs = 0;
	struct sim_step *steps = calloc(count, sizeof(*steps));
	struct sim_setup setup;
	bool good = steps != NULL;

	if (!good)
		fputs("vidmm sim: out of memory\n", stderr);
	for (uint64_t i = 0; good && i < count; i++)
		steps[i] = step_of(plan, i);
	good = good && sim_minimise(plan, failure, &setup, steps, &count, &runs);
	if (good) {
		printf("%s%" PRIu64 " steps break %s, too; found after %" PRIu64 " runs\n",
		       options->output ? "" : "# ", count, failure->rule, runs);
		good = write_script(options, &setup, steps, count);
	}
	free(steps);
	return good ? REPLAY_FINDINGS : REPLAY_ENVIRONMENT;
}

/* ---- runs ---- */

static enum replay_status run_one(const struct sim_options *options, const struct sim_plan *plan,
				  struct sim_result *result)
{
	if (!sim_run(plan, result))
		return REPLAY_ENVIRONMENT;
	if (result->failed) {
		print_failure(plan, result);
		return options->minimise ? minimise(options, plan, result) : REPLAY_FINDINGS;
	}
	if (!options->quiet)
		printf("seed %" PRIu64 ": event hash %016" PRIx64 "\n", plan->setup.seed,
		       result->hash);
	return REPLAY_CLEAN;
}

static enum replay_status run_seeds(const struct sim_options *options, struct sim_plan *plan)
{
	struct sim_result *result = sim_share(sizeof(*result)), sum = {0};
	enum replay_status status = result ? REPLAY_CLEAN : REPLAY_ENVIRONMENT;
	uint64_t adapters[SIM_FAULTS_OF_SETUP] = {0};

	for (uint64_t i = 0; i < options->seeds && status == REPLAY_CLEAN; i++) {
		if (!plan->steps) {
			plan->setup = options->setup;
			plan->setup.seed = options->setup.seed + i;
			sim_draw_setup(&plan->setup, options->setup_faults);
		}
		for (uint32_t k = 0; k < SIM_FAULTS_OF_SETUP; k++)
			adapters[k] += plan->setup.faults >> k & 1;
		status = run_one(options, plan, result);
		add(&sum, result);
	}
	if (status == REPLAY_CLEAN && !options->quiet)
		print_table(&sum, adapters);
	sim_unshare(result, sizeof(*result));
	return status;
}

int sim_main(int argc, const char **argv)
{
	struct sim_options options;
	struct sim_step *steps = NULL;
	int exit_code = REPLAY_USAGE;

	if (sim_options_parse(argc, argv, &options, &exit_code)) {
		struct sim_plan plan = {.setup = options.setup,
					.count = options.steps,
					.weights = options.weights,
					.entry = options.entry,
					.record = options.record};
		enum replay_status status = REPLAY_CLEAN;

		if (options.script)
			status = sim_script_read(options.script, &plan.setup, &steps, &plan.count);
		plan.steps = steps;
		plan.setup.no_contents = options.setup.no_contents;
		plan.setup.packets = options.setup.packets;
		exit_code = status == REPLAY_CLEAN ? (int)run_seeds(&options, &plan) : (int)status;
	}
	free(steps);
	sim_options_finish(&options);
	return exit_code;
}
