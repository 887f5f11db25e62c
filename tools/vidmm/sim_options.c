/* SPDX-License-Identifier: MIT */
/* Implements sim_options.h. */
#include <popt.h>
#include <stdlib.h>
#include <string.h>
#include <vidmm/softgpu.h>

#include "comma_list.h"
#include "driver.h"
#include "options.h"
#include "sim_options.h"
#include "units.h"

#define STEPS_DEFAULT     10000u
#define STEPS_MAX         1000000000u
#define SEEDS_MAX         1000000u
#define WEIGHT_MAX        1000000u
#define PROCESSES_DEFAULT 3u
/* A hundred times what a step needs that pages everything in. */
#define PACKETS_DEFAULT   10000u
#define PACKETS_MAX       1000000000u

/* Values as popt stores them. NULL: the option was not given. */
struct raw {
	char *seed, *seeds, *steps, *processes, *packets, *driver, *model, *faults, *weights,
		*contents;
	int minimise, quiet;
};

static bool usage(const char *format, const char *value)
{
	fputs("vidmm sim: ", stderr);
	fprintf(stderr, format, value);
	fputs("\ntry: vidmm sim --help\n", stderr);
	return false;
}

static bool take_number(const char *name, const char *text, uint64_t least, uint64_t most,
			uint64_t *value)
{
	if (!text)
		return true;
	if (units_parse_u64(text, value) && *value >= least && *value <= most)
		return true;
	fprintf(stderr,
		"vidmm sim: --%s \"%s\" is not valid: expected a number from %llu to %llu\n"
		"try: vidmm sim --help\n",
		name, text, (unsigned long long)least, (unsigned long long)most);
	return false;
}

static bool take_numbers(const struct raw *raw, struct sim_options *options)
{
	uint64_t processes = PROCESSES_DEFAULT;

	if (!take_number("seed", raw->seed, 0, UINT64_MAX, &options->setup.seed) ||
	    !take_number("seeds", raw->seeds, 1, SEEDS_MAX, &options->seeds) ||
	    !take_number("steps", raw->steps, 1, STEPS_MAX, &options->steps) ||
	    !take_number("processes", raw->processes, 1, MODEL_PROCESSES, &processes) ||
	    !take_number("packets", raw->packets, 1, PACKETS_MAX, &options->setup.packets))
		return false;
	options->setup.processes = (uint32_t)processes;
	return true;
}

static bool take_words(const struct raw *raw, struct sim_options *options)
{
	static const char *const models[] = {"both", "wddm1", "wddm2", NULL};
	static const char *const contents[] = {"bytes", "none", NULL};
	int model = options_choose(raw->model, models),
	    content = options_choose(raw->contents, contents);

	if (model < 0)
		return usage("--model \"%s\" is not valid: expected both, wddm1 or wddm2",
			     raw->model);
	if (content < 0)
		return usage("--contents \"%s\" is not valid: expected bytes or none",
			     raw->contents);
	options->setup.model = model == 1   ? SOFTGPU_MODEL_WDDM1
			       : model == 2 ? SOFTGPU_MODEL_WDDM2
					    : 0;
	options->setup.no_contents = content == 1;
	return true;
}

/* ---- lists ---- */

static bool take_weight(void *context, char *element)
{
	struct sim_options *options = context;
	char *value = strchr(element, '=');
	uint64_t weight;

	if (!value)
		return false;
	*value++ = '\0';
	for (uint32_t i = 0; i < SIM_OPS; i++) {
		if (strcmp(element, sim_op_names[i]) != 0)
			continue;
		if (!units_parse_u64(value, &weight) || weight > WEIGHT_MAX)
			return false;
		options->weights[i] = (uint32_t)weight;
		return true;
	}
	return false;
}

static bool take_fault(void *context, char *element)
{
	struct sim_options *options = context;

	for (uint32_t i = 0; i < SIM_FAULTS_OF_SETUP; i++)
		if (strcmp(element, sim_fault_names[i]) == 0) {
			options->setup_faults |= 1u << i;
			return true;
		}
	for (uint32_t i = SIM_FIRST_FAULT; i < SIM_OPS; i++)
		if (strcmp(element, sim_op_names[i]) == 0) {
			options->weights[i] = sim_weights[i];
			return true;
		}
	return false;
}

static bool take_faults(const char *text, struct sim_options *options)
{
	if (!text || strcmp(text, "all") == 0)
		return true;
	options->setup_faults = 0;
	memset(options->weights + SIM_FIRST_FAULT, 0,
	       (SIM_OPS - SIM_FIRST_FAULT) * sizeof(options->weights[0]));
	return strcmp(text, "none") == 0 || comma_list_each(text, take_fault, options) ||
	       usage("--faults \"%s\" is not valid: expected all, none, or a list of the names in "
		     "vidmm-sim(1)",
		     text);
}

static bool take_lists(const struct raw *raw, struct sim_options *options)
{
	uint64_t sum = 0;

	memcpy(options->weights, sim_weights, sizeof(options->weights));
	options->setup_faults = (1u << SIM_FAULTS_OF_SETUP) - 1;
	if (!take_faults(raw->faults, options))
		return false;
	if (raw->weights && !comma_list_each(raw->weights, take_weight, options))
		return usage("--weights \"%s\" is not valid: expected OPERATION=NUMBER,...",
			     raw->weights);
	for (uint32_t i = 0; i < SIM_OPS; i++)
		sum += options->weights[i];
	return sum || usage("--weights leaves no operation%s", "");
}

/* ---- all ---- */

static bool fits_together(const struct raw *raw, const struct sim_options *options)
{
	if (options->script && (raw->seed || raw->seeds || raw->steps || raw->processes ||
				raw->model || raw->faults || raw->weights))
		return usage("--script has its seed, its settings and its steps: only --driver, "
			     "--contents, --packets, --record, --minimise and --output apply%s",
			     "");
	if (options->record && options->seeds > 1)
		return usage("--record needs one seed%s", "");
	if (options->output && !options->minimise)
		return usage("--output needs --minimise%s", "");
	return true;
}

static bool interpret(const struct raw *raw, struct sim_options *options, int *exit_code)
{
	options->minimise = raw->minimise;
	options->quiet = raw->quiet;
	if (!take_numbers(raw, options) || !take_words(raw, options) || !take_lists(raw, options) ||
	    !fits_together(raw, options))
		return false;
	if (raw->driver && !driver_path(raw->driver, &options->driver)) {
		*exit_code = REPLAY_ENVIRONMENT;
		return false;
	}
	enum replay_status status = driver_load(options->driver, &options->entry);
	if (status != REPLAY_CLEAN)
		*exit_code = status;
	return status == REPLAY_CLEAN;
}

static void free_raw(struct raw *raw)
{
	free(raw->seed);
	free(raw->seeds);
	free(raw->steps);
	free(raw->processes);
	free(raw->packets);
	free(raw->driver);
	free(raw->model);
	free(raw->faults);
	free(raw->weights);
	free(raw->contents);
}

bool sim_options_parse(int argc, const char **argv, struct sim_options *options, int *exit_code)
{
	struct raw raw = {0};
	int help = 0;
	const struct poptOption table[] = {
		{"seed", 0, POPT_ARG_STRING, &raw.seed, 0, "the first seed (default 1)", "N"},
		{"seeds", 0, POPT_ARG_STRING, &raw.seeds, 0, "number of seeds (default 1)", "N"},
		{"steps", 0, POPT_ARG_STRING, &raw.steps, 0, "steps of each seed (default 10000)",
		 "N"},
		{"processes", 0, POPT_ARG_STRING, &raw.processes, 0, "1 to 8 (default 3)", "N"},
		{"packets", 0, POPT_ARG_STRING, &raw.packets, 0,
		 "completed packets at which a step counts as endless (default 10000)", "N"},
		{"driver", 0, POPT_ARG_STRING, &raw.driver, 0,
		 "miniport with the commands of softgpu: softgpu (default), or a shared object",
		 "DRIVER"},
		{"model", 0, POPT_ARG_STRING, &raw.model, 0,
		 "wddm1, wddm2, or both (default): wddm2 with odd seeds", "MODEL"},
		{"faults", 0, POPT_ARG_STRING, &raw.faults, 0,
		 "all (default), none, or a list (docs/sim.md)", "LIST"},
		{"weights", 0, POPT_ARG_STRING, &raw.weights, 0,
		 "how often operations are drawn: OPERATION=N,... (docs/sim.md)", "LIST"},
		{"contents", 0, POPT_ARG_STRING, &raw.contents, 0,
		 "bytes (default): compare contents; none", "WHAT"},
		{"record", 0, POPT_ARG_STRING, &options->record, 0,
		 "write the events into a file (docs/record-format.md)", "FILE"},
		{"minimise", 0, POPT_ARG_NONE, &raw.minimise, 0,
		 "after a failure, find few steps that repeat it, and write them as a script",
		 NULL},
		{"output", 0, POPT_ARG_STRING, &options->output, 0,
		 "where --minimise writes the script (default: standard output)", "FILE"},
		{"script", 0, POPT_ARG_STRING, &options->script, 0, "run the steps of a script",
		 "FILE"},
		{"quiet", 'q', POPT_ARG_NONE, &raw.quiet, 0, "print failures only", NULL},
		{"help", 'h', POPT_ARG_NONE, &help, 0, "this help text", NULL},
		POPT_TABLEEND};

	memset(options, 0, sizeof(*options));
	options->seeds = 1;
	options->steps = STEPS_DEFAULT;
	options->setup.seed = 1;
	options->setup.packets = PACKETS_DEFAULT;
	argv[0] = "vidmm sim"; /* the name that popt shows in its help */
	poptContext context = poptGetContext(NULL, argc, argv, table, 0);
	bool proceed = options_read(context, "sim", &help, exit_code);
	if (proceed && poptPeekArg(context))
		proceed = usage("unexpected argument \"%s\"", poptPeekArg(context));
	proceed = proceed && interpret(&raw, options, exit_code);
	free_raw(&raw);
	poptFreeContext(context);
	return proceed;
}

void sim_options_finish(struct sim_options *options)
{
	free(options->script);
	free(options->output);
	free(options->record);
	free(options->driver);
}
