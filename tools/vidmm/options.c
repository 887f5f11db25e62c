/* SPDX-License-Identifier: MIT */
/* The command line of `vidmm replay`. */
#include <errno.h>
#include <popt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options.h"
#include "by_bytes.h"
#include "comma_list.h"
#include "driver_options.h"
#include "host_memory.h"
#include "policy.h"
#include "time_options.h"
#include "units.h"

#define RANGES_MAX         65535u
#define APERTURE_BYTES_MAX ((uint64_t)1 << 40) /* where softgpu's aperture begins */
#define THRASH_DEFAULT     5u
#define THRASH_MAX         1000u

/* Values of the options as popt stores them. NULL: the option was not given. */
struct raw {
	char *vram, *aperture, *ranges, *verify, *seed, *switch_chance, *backend, *gpu_time,
		*compare, *color, *events, *record, *connect_path, *model, *policy, *thrash,
		*memory;
	struct time_raw time;
	struct driver_raw driver;
	int json, quiet, parse_only, connect, against_reference, by_bytes;
};

static bool usage(const char *format, const char *value)
{
	fprintf(stderr, "vidmm replay: ");
	fprintf(stderr, format, value);
	fprintf(stderr, "\ntry: vidmm replay --help\n");
	return false;
}

bool options_usage(const char *format, const char *value)
{
	return usage(format, value);
}

int options_choose(const char *text, const char *const *words)
{
	int i;

	if (!text)
		return 0;
	for (i = 0; words[i]; i++) {
		if (strcmp(text, words[i]) == 0)
			return i;
	}
	return -1;
}

static bool add_run(void *context, char *size)
{
	struct options *options = context;

	return options->run_count < OPTIONS_RUNS_MAX &&
	       memory_size_parse(size, &options->runs[options->run_count++]);
}

static bool parse_runs(const struct raw *raw, struct options *options)
{
	if (raw->compare && raw->vram)
		return usage("--compare and --vram cannot be combined%s", "");
	if (!raw->compare) {
		options->run_count = 1;
		return memory_size_parse(raw->vram ? raw->vram : "100%", &options->runs[0]) ||
		       usage("--vram \"%s\" is not valid: expected 4K to below 1T, or a percentage",
			     raw->vram);
	}
	options->compare = true;
	return comma_list_each(raw->compare, add_run, options) ||
	       usage("--compare \"%s\" is not valid: expected 1 to 8 sizes of 4K to below 1T, or "
		     "percentages",
		     raw->compare);
}

static bool needs_next_uses(const struct options *options)
{
	return options->replay.policy == REPLAY_POLICY_REFERENCE ||
	       options->replay.against_reference;
}

static bool parse_policy(const char *text, struct options *options, int *exit_code)
{
	enum replay_policy *policy = &options->replay.policy;
	enum replay_status status = text ? policy_parse(text, policy) : REPLAY_CLEAN;

	options->replay.policy_functions = policy_functions(*policy);
	if (status == REPLAY_USAGE)
		return usage("--policy \"%s\" is not valid: expected " POLICY_ARGUMENTS, text);
	if (status != REPLAY_CLEAN)
		*exit_code = status;
	return status == REPLAY_CLEAN;
}

static bool parse_words(const struct raw *raw, struct options *options, int *exit_code)
{
	static const char *const verifies[] = {"none", "stamps", "full", NULL};
	static const char *const backends[] = {"sim", "linux", NULL};
	int model = options_choose(raw->model, replay_models);
	int verify = options_choose(raw->verify, verifies),
	    backend = options_choose(raw->backend, backends);

	if (verify < 0)
		return usage("--verify \"%s\" is not valid: expected none, stamps or full",
			     raw->verify);
	if (backend < 0)
		return usage("--backend \"%s\" is not valid: expected sim or linux", raw->backend);
	if (model < 0)
		return usage("--model \"%s\" is not valid: expected wddm1 or wddm2", raw->model);
	if (!parse_policy(raw->policy, options, exit_code))
		return false;
	options->replay.against_reference = raw->against_reference;
	options->replay.by_bytes = raw->by_bytes;
	if (raw->by_bytes && !by_bytes_knows(options->replay.policy))
		return usage("--by-bytes cannot count the policy %s", raw->policy);
	if (needs_next_uses(options) && backend != 0)
		return usage("--policy reference and --against-reference need --backend sim%s", "");
	if (!color_parse(raw->color, &options->color))
		return usage("--color \"%s\" is not valid: expected auto, always or never",
			     raw->color);
	options->replay.verify = (enum replay_verify)verify;
	options->replay.host_kind = backend == 0 ? VIDMM_HOST_SIM : VIDMM_HOST_LINUX;
	options->replay.wddm2 = model == 1;
	return true;
}

/* A driver with a command adapter takes the time that it takes: softgpu's model is not its. */
static bool parse_gpu_time(const struct raw *raw, struct options *options)
{
	static const char *const times[] = {"model", "none", NULL};
	int gpu_time = options_choose(raw->gpu_time, times);

	if (gpu_time < 0)
		return usage("--gpu-time \"%s\" is not valid: expected model or none",
			     raw->gpu_time);
	if (raw->driver.commands && raw->gpu_time && gpu_time == 0)
		return usage("--gpu-time model is a model of softgpu: with --commands it is none%s",
			     "");
	options->replay.gpu_time = gpu_time == 0 && !raw->driver.commands;
	return true;
}

static bool parse_thrash(const struct raw *raw, struct options *options)
{
	uint64_t count = THRASH_DEFAULT;

	if (raw->thrash && (!units_parse_u64(raw->thrash, &count) || count > THRASH_MAX))
		return usage("--thrash \"%s\" is not valid: expected a number up to 1000",
			     raw->thrash);
	options->replay.thrash_count = (unsigned)count;
	return true;
}

/* The memory of the host that --connect names is not limited. */
static bool parse_memory(const struct raw *raw, struct options *options)
{
	uint64_t *bytes = &options->replay.memory_bytes, available;

	if (raw->memory && strcmp(raw->memory, "none") == 0)
		return true;
	if (raw->memory)
		return (units_parse_size(raw->memory, bytes) && *bytes > 0) ||
		       usage("--memory \"%s\" is not valid: expected a size, or none", raw->memory);
	available = host_memory_available("");
	if (!options->replay.connect && available != UINT64_MAX)
		*bytes = available / 2 + 1;
	return true;
}

static bool parse_numbers(const struct raw *raw, struct options *options)
{
	uint64_t chance = 0;

	options->replay.aperture_bytes = REPLAY_APERTURE_BYTES;
	if (raw->aperture && strcmp(raw->aperture, "none") == 0)
		options->replay.aperture_bytes = 0;
	else if (raw->aperture &&
		 (!units_parse_size(raw->aperture, &options->replay.aperture_bytes) ||
		  options->replay.aperture_bytes > APERTURE_BYTES_MAX))
		return usage("--aperture \"%s\" is not valid: expected a size up to 1T, or none",
			     raw->aperture);
	options->replay.aperture_bytes = (options->replay.aperture_bytes + 4095) & ~(uint64_t)4095;
	uint64_t ranges = 0;
	options->replay.limit_ranges = raw->ranges != NULL;
	if (raw->ranges && (!units_parse_u64(raw->ranges, &ranges) || ranges > RANGES_MAX))
		return usage("--ranges \"%s\" is not valid: expected a number up to 65535",
			     raw->ranges);
	options->replay.ranges = (uint32_t)ranges;
	if (options->replay.wddm2 && (raw->ranges || !options->replay.aperture_bytes))
		return usage("--model wddm2 needs an aperture and has no swizzling ranges%s", "");
	/* JSON output contains the seed, and JSON integers are signed. */
	if (raw->seed && (!units_parse_u64(raw->seed, &options->replay.seed) ||
			  options->replay.seed > INT64_MAX))
		return usage("--seed \"%s\" is not valid: expected a number below 2^63", raw->seed);
	if (raw->switch_chance && (!units_parse_u64(raw->switch_chance, &chance) || chance > 1024))
		return usage("--switch \"%s\" is not valid: expected a number up to 1024",
			     raw->switch_chance);
	options->replay.switch_per_1024 = (uint32_t)chance;
	return parse_thrash(raw, options) && parse_memory(raw, options);
}

static bool take_inputs(poptContext context, struct options *options)
{
	const char **paths = poptGetArgs(context);
	unsigned count = 0, i;
	bool measured = false, piped = false;

	while (paths && paths[count])
		count++;
	if (count == 0)
		return usage("no recording was given%s", "");
	options->inputs = calloc(count, sizeof(*options->inputs));
	if (!options->inputs)
		return false;
	for (i = 0; i < count; i++) {
		options->inputs[i].path = strdup(paths[i]);
		if (!options->inputs[i].path)
			return false;
		piped = piped || strcmp(paths[i], "-") == 0;
	}
	for (i = 0; i < options->run_count && !options->replay.connect; i++)
		measured = measured || options->runs[i].bytes == 0;
	options->replay.inputs = options->inputs;
	options->replay.input_count = count;
	if (piped && (needs_next_uses(options) || options->replay.by_bytes))
		return usage("--policy reference, --against-reference and --by-bytes read a "
			     "recording twice: it must be a file%s",
			     "");
	if (piped && (count > 1 || options->run_count > 1 || (measured && !options->parse_only)))
		return usage("the standard input can be read only once: --vram must be a size%s",
			     "");
	return true;
}

/* Options about what the host decides are refused with --connect. */
static bool parse_connection(const struct raw *raw, struct options *options)
{
	const char *const others[] = {raw->vram,
				      raw->aperture,
				      raw->ranges,
				      raw->compare,
				      raw->backend,
				      raw->seed,
				      raw->events,
				      raw->record,
				      raw->switch_chance,
				      raw->model,
				      raw->time.link,
				      raw->time.paging_engine,
				      raw->policy,
				      raw->thrash,
				      raw->memory,
				      raw->against_reference ? "against-reference" : NULL,
				      raw->by_bytes ? "by-bytes" : NULL};
	size_t i;

	if (!raw->connect && !raw->connect_path)
		return true;
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (others[i])
			return usage("with --connect, memory, GPU and scheduling are the host's; "
				     "option value \"%s\" is not allowed",
				     others[i]);
	}
	options->connect_path = strdup(raw->connect_path ? raw->connect_path : "");
	options->replay.connect = options->connect_path;
	return options->connect_path != NULL;
}

static bool interpret(poptContext context, const struct raw *raw, struct options *options,
		      int *exit_code)
{
	options->json = raw->json;
	options->replay.hash_events = raw->json; /* only JSON output contains it */
	options->quiet = raw->quiet;
	options->parse_only = raw->parse_only;
	if (!parse_connection(raw, options) || !parse_runs(raw, options) ||
	    !parse_words(raw, options, exit_code) || !parse_gpu_time(raw, options) ||
	    !time_options_apply(&raw->time, raw->events || raw->record, options) ||
	    !parse_numbers(raw, options) ||
	    !driver_options_apply(&raw->driver, options, exit_code) ||
	    !take_inputs(context, options))
		return false;
	if ((raw->events || raw->record) && options->run_count > 1)
		return usage("--events and --record cover one run, but --compare has several%s",
			     "");
	if (raw->record && !raw->record[0])
		return usage("--record has no value: expected a file%s", "");
	options->events_path = raw->events ? strdup(raw->events) : NULL;
	options->record_path = raw->record ? strdup(raw->record) : NULL;
	return !raw->events == !options->events_path && !raw->record == !options->record_path;
}

static void free_raw(struct raw *raw)
{
	free(raw->vram);
	free(raw->aperture);
	free(raw->ranges);
	free(raw->verify);
	free(raw->seed);
	free(raw->switch_chance);
	free(raw->backend);
	free(raw->gpu_time);
	free(raw->compare);
	free(raw->color);
	free(raw->events);
	free(raw->record);
	free(raw->connect_path);
	free(raw->model);
	free(raw->policy);
	free(raw->memory);
	free(raw->thrash);
	time_options_free(&raw->time);
	driver_options_free(&raw->driver);
}

bool options_read(poptContext context, const char *verb, const int *help, int *exit_code)
{
	errno = 0;
	int code = poptGetNextOpt(context);

	/*
	 * The table has no option without a variable: NULLARG also means no memory. popt takes an
	 * option whose value it had no memory for as one without a value, and says nothing.
	 */
	if (code == POPT_ERROR_MALLOC || code == POPT_ERROR_NULLARG || errno == ENOMEM) {
		fprintf(stderr, "vidmm: out of memory\n");
		*exit_code = REPLAY_ENVIRONMENT;
		return false;
	}
	if (code < -1) {
		fprintf(stderr, "vidmm %s: %s: %s\ntry: vidmm %s --help\n", verb,
			poptBadOption(context, POPT_BADOPTION_NOALIAS), poptStrerror(code), verb);
		return false;
	}
	if (!*help)
		return true;
	poptPrintHelp(context, stdout, 0);
	*exit_code = REPLAY_CLEAN;
	return false;
}

/* Reads the command line by its table, and frees RAW and CONTEXT. */
static bool read_raw(poptContext context, struct raw *raw, const int *help, struct options *options,
		     int *exit_code)
{
	bool proceed;

	memset(options, 0, sizeof(*options));
	*exit_code = REPLAY_USAGE;
	poptSetOtherOptionHelp(context, "TRACE... [OPTION...]");
	proceed = options_read(context, "replay", help, exit_code) &&
		  interpret(context, raw, options, exit_code);
	free_raw(raw);
	poptFreeContext(context);
	return proceed;
}

bool options_parse(int argc, const char **argv, struct options *options, int *exit_code)
{
	struct raw raw = {0};
	struct poptOption time_table[TIME_OPTIONS], driver_table[DRIVER_OPTIONS];
	int help = 0;
	struct poptOption table[] = {
		{"vram", 0, POPT_ARG_STRING, &raw.vram, 0,
		 "video memory: a size, or a percentage of the peak of live buffers "
		 "(default 100%), or with suffix \"largest\" of the largest submission's buffers",
		 "SIZE|PERCENT%"},
		{"model", 0, POPT_ARG_STRING, &raw.model, 0,
		 "driver model of the GPU and its driver: wddm1 (default) or wddm2", "MODEL"},
		{"policy", 0, POPT_ARG_STRING, &raw.policy, 0,
		 "order of eviction in a class: " POLICY_ARGUMENTS " (default predicted)", "NAME"},
		{"against-reference", 0, POPT_ARG_NONE, &raw.against_reference, 0,
		 "count of victims that the policy reference would have kept", NULL},
		{"by-bytes", 0, POPT_ARG_NONE, &raw.by_bytes, 0, "count paging by bytes", NULL},
		{"aperture", 0, POPT_ARG_STRING, &raw.aperture, 0,
		 "size of the aperture segment, or none (default 1G)", "SIZE"},
		{"ranges", 0, POPT_ARG_STRING, &raw.ranges, 0,
		 "number of swizzling ranges of the GPU (default 64)", "N"},
		{"compare", 0, POPT_ARG_STRING, &raw.compare, 0,
		 "comparison of runs with these amounts of video memory (100%,50%,25%)", "LIST"},
		{"thrash", 0, POPT_ARG_STRING, &raw.thrash, 0,
		 "length of the list of the most paged buffers, 0 to 1000 (default 5)", "N"},
		{"memory", 0, POPT_ARG_STRING, &raw.memory, 0,
		 "most memory of this machine for the buffers, or none (default half of what is "
		 "available)",
		 "SIZE"},
		{"verify", 0, POPT_ARG_STRING, &raw.verify, 0,
		 "verification of contents: none (default), stamps (each 64 KiB), full (each page)",
		 "HOW"},
		{"gpu-time", 0, POPT_ARG_STRING, &raw.gpu_time, 0,
		 "time of the GPU: model (default; the recording's) or none, for events as fast as "
		 "possible",
		 "HOW"},
		{NULL, 0, POPT_ARG_INCLUDE_TABLE, time_table, 0, "Model of time:", NULL},
		{NULL, 0, POPT_ARG_INCLUDE_TABLE, driver_table, 0, "Driver:", NULL},
		{"backend", 0, POPT_ARG_STRING, &raw.backend, 0,
		 "threads and time: sim (default, one thread, virtual time) or linux (real)",
		 "WHICH"},
		{"seed", 0, POPT_ARG_STRING, &raw.seed, 0, "sim: random seed (default 0)", "N"},
		{"switch", 0, POPT_ARG_STRING, &raw.switch_chance, 0,
		 "sim: probability in 1024 of a thread switch where possible (default 0)", "N"},
		{"events", 0, POPT_ARG_STRING, &raw.events, 0,
		 "file for the events of the run, one line each (-: standard output)", "FILE"},
		{"record", 0, POPT_ARG_STRING, &raw.record, 0, "recording of all events", "FILE"},
		{"connect", 0, POPT_ARG_NONE, &raw.connect, 0,
		 "use of a running host (`vidmm serve`), with a process for each recording", NULL},
		{"socket", 0, POPT_ARG_STRING, &raw.connect_path, 0,
		 "as --connect, with the path of the host's socket", "PATH"},
		{"json", 0, POPT_ARG_NONE, &raw.json, 0, "JSON output (docs/replay.md)", NULL},
		{"quiet", 'q', POPT_ARG_NONE, &raw.quiet, 0,
		 "no summary and no progress bar, only findings and failures", NULL},
		{"color", 0, POPT_ARG_STRING, &raw.color, 0,
		 "colored output: auto (default), always, never", "WHEN"},
		{"parse-only", 0, POPT_ARG_NONE | POPT_ARGFLAG_DOC_HIDDEN, &raw.parse_only, 0,
		 "no replay: check of the recordings, with the time that takes", NULL},
		{"help", 'h', POPT_ARG_NONE, &help, 0, "this help text", NULL},
		POPT_TABLEEND};

	argv[0] = "vidmm replay"; /* the name that popt shows in its help */
	time_options_table(&raw.time, time_table);
	driver_options_table(&raw.driver, driver_table);
	return read_raw(poptGetContext(NULL, argc, argv, table, 0), &raw, &help, options,
			exit_code);
}

void options_finish(struct options *options)
{
	unsigned i;

	for (i = 0; i < options->replay.input_count; i++)
		free((void *)(uintptr_t)options->inputs[i].path);
	free(options->inputs);
	free(options->events_path);
	free(options->record_path);
	free(options->connect_path);
	if (options->driver)
		caps_options_finish(options->driver);
	free(options->driver);
}

bool color_parse(const char *text, enum color_mode *mode)
{
	static const char *const colors[] = {"auto", "always", "never", NULL};
	int color = options_choose(text, colors);

	if (color >= 0)
		*mode = (enum color_mode)color;
	return color >= 0;
}

bool color_wanted(enum color_mode mode, int fd)
{
	const char *no_color = getenv("NO_COLOR");

	if (mode != COLOR_AUTO)
		return mode == COLOR_ALWAYS;
	return isatty(fd) && !(no_color && no_color[0] != '\0');
}

bool options_color(const struct options *options, int fd)
{
	return color_wanted(options->color, fd);
}
