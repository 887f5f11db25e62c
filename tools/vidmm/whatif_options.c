/* SPDX-License-Identifier: MIT */
/* The command line of `vidmm what-if`. */
#include <popt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comma_list.h"
#include "options.h"
#include "policy.h"
#include "units.h"
#include "whatif.h"

/* Values of the options as popt stores them. NULL: the option was not given. */
struct raw {
	char *vram, *policy, *link, *model, *jobs;
};

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

static bool add_one_policy(struct whatif_options *options, enum replay_policy policy)
{
	for (unsigned i = 0; i < options->policy_count; i++)
		if (options->policies[i] == policy)
			return false;
	options->policies[options->policy_count++] = policy;
	return true;
}

/*
 * Each function adds what an element names, and returns false if it names nothing, or again.
 * `reference` reads the recording ahead, which no adapter can, so `all` leaves it out.
 */
static bool add_policy(void *context, char *text)
{
	struct whatif_options *options = context;
	bool all = strcmp(text, "all") == 0 || strcmp(text, "all+reference") == 0;
	enum replay_policy policy = REPLAY_POLICY_FIRST;

	if (!all)
		return policy_parse(text, &policy) && add_one_policy(options, policy);
	for (; policy < REPLAY_POLICY_REFERENCE; policy++)
		if (!add_one_policy(options, policy))
			return false;
	return strcmp(text, "all") == 0 || add_one_policy(options, REPLAY_POLICY_REFERENCE);
}

static bool add_link(void *context, char *text)
{
	struct whatif_options *options = context;
	struct whatif_link *link = &options->links[options->link_count];

	for (unsigned i = 0; i < options->link_count; i++)
		if (strcmp(options->links[i].name, text) == 0)
			return false;
	/* All names that can be parsed fit, and there are no more of them than elements. */
	if (options->link_count == WHATIF_LINKS_MAX || !link_parse(text, &link->model))
		return false;
	snprintf(link->name, sizeof(link->name), "%s", text);
	options->link_count++;
	/* The defaults of `vidmm replay`. */
	return cost_model_parse(link->model.bytes_per_us ? "model" : "none", &link->costs);
}

static bool add_model(void *context, char *text)
{
	struct whatif_options *options = context;
	int model = options_choose(text, replay_models);

	for (unsigned i = 0; i < options->model_count; i++)
		if (options->wddm2[i] == (model == 1))
			return false;
	if (model < 0)
		return false;
	options->wddm2[options->model_count++] = model == 1;
	return true;
}

static bool parse_lists(const struct raw *raw, struct whatif_options *options)
{
	const char *link = raw->link ? raw->link : LINK_DEFAULT;
	const char *model = raw->model ? raw->model : replay_models[0];

	if (!raw->vram || !raw->policy)
		return refuse("--vram and --policy are needed");
	if (!size_list_parse(raw->vram, &options->sizes))
		return usage("vram", raw->vram,
			     "up to 64 sizes or percentages, or a range such as 64M..8G:geometric");
	if (!comma_list_each(raw->policy, add_policy, options))
		return usage("policy", raw->policy,
			     "all, all+reference, or each once of " POLICY_NAMES);
	if (!comma_list_each(link, add_link, options))
		return usage("link", link, "each once: none, or names such as pcie3x16");
	if (!comma_list_each(model, add_model, options))
		return usage("model", model, "wddm1, wddm2 or both");
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

static bool read_options(poptContext context, const int *help, int *exit_code)
{
	int code = poptGetNextOpt(context);

	if (code < -1) {
		fprintf(stderr, "vidmm what-if: %s: %s\ntry: vidmm what-if --help\n",
			poptBadOption(context, POPT_BADOPTION_NOALIAS), poptStrerror(code));
		return false;
	}
	if (!*help)
		return true;
	poptPrintHelp(context, stdout, 0);
	*exit_code = REPLAY_CLEAN;
	return false;
}

static void free_raw(struct raw *raw)
{
	free(raw->vram);
	free(raw->policy);
	free(raw->link);
	free(raw->model);
	free(raw->jobs);
}

bool whatif_options_parse(int argc, const char **argv, struct whatif_options *options,
			  int *exit_code)
{
	struct raw raw = {0};
	int help = 0;
	const struct poptOption table[] = {
		{"vram", 0, POPT_ARG_STRING, &raw.vram, 0,
		 "amounts of video memory: sizes, percentages, and ranges FROM..TO:geometric[:N]",
		 "LIST"},
		{"policy", 0, POPT_ARG_STRING, &raw.policy, 0,
		 "eviction policies: all, all+reference, or some of " POLICY_NAMES, "LIST"},
		{"link", 0, POPT_ARG_STRING, &raw.link, 0,
		 "links to system memory: none or pcieGxN (default " LINK_DEFAULT ")", "LIST"},
		{"model", 0, POPT_ARG_STRING, &raw.model, 0,
		 "driver models: wddm1 (default), wddm2", "LIST"},
		{"jobs", 0, POPT_ARG_STRING, &raw.jobs, 0, "replays at a time (default: the CPUs)",
		 "N"},
		WHATIF_FILE_OPTIONS(options->files),
		{"help", 'h', POPT_ARG_NONE, &help, 0, "this help text", NULL},
		POPT_TABLEEND};
	poptContext context;
	bool proceed;

	*options = (struct whatif_options){.verb = "what-if"};
	argv[0] = "vidmm what-if"; /* the name that popt shows in its help */
	context = poptGetContext(NULL, argc, argv, table, 0);
	*exit_code = REPLAY_USAGE;
	poptSetOtherOptionHelp(context, "TRACE... --vram LIST --policy LIST [OPTION...]");
	proceed = read_options(context, &help, exit_code) && parse_lists(&raw, options) &&
		  parse_jobs(raw.jobs, options) &&
		  whatif_files_valid(&options->files, options->verb) &&
		  take_recordings(poptGetArgs(context), options);
	free_raw(&raw);
	poptFreeContext(context);
	return proceed;
}

void whatif_options_finish(struct whatif_options *options)
{
	for (unsigned i = 0; i < options->recording_count; i++)
		free(options->recordings[i]);
	free(options->recordings);
	whatif_files_finish(&options->files);
}
