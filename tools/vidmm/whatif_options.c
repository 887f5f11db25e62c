/* SPDX-License-Identifier: MIT */
/* The command line of `vidmm what-if`. */
#include <popt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "policy.h"
#include "units.h"
#include "whatif.h"

static bool usage(const char *option, const char *value, const char *expected)
{
	fprintf(stderr,
		"vidmm what-if: --%s \"%s\" is not valid: expected %s\n"
		"try: vidmm what-if --help\n",
		option, value, expected);
	return false;
}

static bool refuse(const char *text)
{
	fprintf(stderr, "vidmm what-if: %s\ntry: vidmm what-if --help\n", text);
	return false;
}

static bool take_lists(struct whatif_options *options)
{
	struct whatif_lists *lists = &options->lists;
	struct whatif_list_error error;

	if (!lists->vram || !lists->policy)
		return refuse("--vram and --policy are needed");
	if (!lists->link)
		lists->link = strdup(LINK_DEFAULT);
	if (!lists->model)
		lists->model = strdup(replay_models[0]);
	if (!lists->link || !lists->model)
		return false;
	if (whatif_lists_parse(options, &error))
		return true;
	return !options->bad_policy_file && usage(error.option, error.value, error.expected);
}

/* A replay is found in the file by the name of its policy, whose file may have changed. */
static bool may_keep(const struct whatif_options *options)
{
	for (unsigned i = 0; options->state_path && i < options->policy_count; i++)
		if (policy_functions(options->policies[i]))
			return refuse("--state keeps replays by the name of the policy, so none of "
				      "the policies may be a file (Q-352)");
	return true;
}

/* Those that this process may use. */
static unsigned cpu_count(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

static bool parse_jobs(const char *text, struct whatif_options *options)
{
	uint64_t jobs = cpu_count();

	if (text && (!units_parse_u64(text, &jobs) || jobs < 1 || jobs > WHATIF_JOBS_MAX))
		return usage("jobs", text, "a number from 1 to 1024");
	options->jobs = (unsigned)jobs;
	return true;
}

static bool take_recordings(const char **paths, struct whatif_options *options)
{
	unsigned count = 0;

	while (paths && paths[count])
		count++;
	if (count == 0)
		return refuse("no recording was given");
	options->recordings = calloc(count, sizeof(*options->recordings));
	for (unsigned i = 0; i < count && options->recordings; i++) {
		if (strcmp(paths[i], "-") == 0)
			return refuse("a recording is read several times: it must be a file");
		options->recordings[i] = strdup(paths[i]);
		if (!options->recordings[i])
			return false;
		options->recording_count++;
	}
	return options->recordings != NULL;
}

/* A number from 1 to 9999, without a sign or another base. Returns 0 for other texts. */
static unsigned small_number(const char *text, size_t length)
{
	unsigned number = 0;

	if (length < 1 || length > 4 || text[0] == '0')
		return 0;
	for (size_t i = 0; i < length; i++) {
		if (text[i] < '0' || text[i] > '9')
			return 0;
		number = number * 10 + (unsigned)(text[i] - '0');
	}
	return number;
}

static bool parse_shard(const char *text, struct whatif_options *options)
{
	const char *slash = text ? strchr(text, '/') : NULL;

	if (!text)
		return true;
	if (slash) {
		options->shard = small_number(text, (size_t)(slash - text));
		options->shards = small_number(slash + 1, strlen(slash + 1));
	}
	if (options->shard < 1 || options->shard > options->shards)
		return usage("shard", text, "I/N, I from 1 to N, N up to 9999");
	if (!options->state_path)
		return refuse("--shard needs --state, the file for its part of the result");
	for (unsigned i = 0; i < WHATIF_FORMS; i++)
		if (options->files.paths[i])
			return refuse("--shard has a part of the result: `vidmm merge` writes "
				      "--csv, --json, --html and --svg");
	return true;
}

bool whatif_options_parse(int argc, const char **argv, struct whatif_options *options,
			  int *exit_code)
{
	char *jobs = NULL, *shard = NULL;
	int help = 0;
	const struct poptOption table[] = {
		{"vram", 0, POPT_ARG_STRING, &options->lists.vram, 0,
		 "amounts of video memory: sizes, percentages, and ranges FROM..TO:geometric[:N]",
		 "LIST"},
		{"policy", 0, POPT_ARG_STRING, &options->lists.policy, 0,
		 "eviction policies: all, all+reference, or some of " POLICY_ARGUMENTS, "LIST"},
		{"link", 0, POPT_ARG_STRING, &options->lists.link, 0,
		 "links to system memory: none or pcieGxN (default " LINK_DEFAULT ")", "LIST"},
		{"model", 0, POPT_ARG_STRING, &options->lists.model, 0,
		 "driver models: wddm1 (default), wddm2", "LIST"},
		{"jobs", 0, POPT_ARG_STRING, &jobs, 0, "replays at a time (default: the CPUs)",
		 "N"},
		WHATIF_FILE_OPTIONS(options->files),
		{"state", 0, POPT_ARG_STRING, &options->state_path, 0,
		 "file of finished replays: they are taken from it, and others are appended",
		 "FILE"},
		{"shard", 0, POPT_ARG_STRING, &shard, 0,
		 "replay part I of N only, for `vidmm merge`; needs --state", "I/N"},
		{"help", 'h', POPT_ARG_NONE, &help, 0, "this help text", NULL},
		POPT_TABLEEND};
	poptContext context;
	bool proceed;

	*options = (struct whatif_options){.verb = "what-if"};
	argv[0] = "vidmm what-if"; /* the name that popt shows in its help */
	context = poptGetContext(NULL, argc, argv, table, 0);
	*exit_code = REPLAY_USAGE;
	poptSetOtherOptionHelp(context, "TRACE... --vram LIST --policy LIST [OPTION...]");
	proceed = options_read(context, options->verb, &help, exit_code) && take_lists(options) &&
		  parse_jobs(jobs, options) && parse_shard(shard, options) && may_keep(options) &&
		  whatif_files_valid(&options->files, options->verb) &&
		  take_recordings(poptGetArgs(context), options);
	if (options->bad_policy_file)
		*exit_code = REPLAY_BAD_INPUT;
	free(jobs);
	free(shard);
	poptFreeContext(context);
	return proceed;
}

void whatif_options_finish(struct whatif_options *options)
{
	for (unsigned i = 0; i < options->recording_count; i++)
		free(options->recordings[i]);
	free(options->recordings);
	whatif_lists_finish(&options->lists);
	whatif_files_finish(&options->files);
	free(options->state_path);
}
